//! Inputs made by the strategies of the property tests, so that a fuzz target has their operations and their model.
//! Each [`OPERATION_BYTES`] of the fuzzer's bytes are the seed of one operation: bytes that change, come or go change
//! one operation, and the others stay.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

const SETUP_BYTES: usize = 8;
const OPERATION_BYTES: usize = 4;
/// More would take too long: every operation is followed by checks of the whole table.
const MOST_OPERATIONS: usize = 200;

/// What the operations are for, and the operations.
pub fn generated<S: Strategy, O: Strategy>(bytes: &[u8], setup: &S, operation: &O) -> (S::Value, Vec<O::Value>) {
    let (first, rest) = bytes.split_at(bytes.len().min(SETUP_BYTES));
    let operations = rest.chunks(OPERATION_BYTES).take(MOST_OPERATIONS).map(|seed| one(seed, operation)).collect();
    (one(first, setup), operations)
}

fn one<S: Strategy>(bytes: &[u8], strategy: &S) -> S::Value {
    let mut seed = [0; 32];
    seed[..bytes.len()].copy_from_slice(bytes);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    strategy.new_tree(&mut runner).expect("the strategies reject nothing").current()
}
