//! Every FIB design that a router offers, with each of its options, against the list of prefixes.

use crate::design_options::{Variant, one_option_each, variant};
use crate::fib_designs::{replay, runs};
use crate::router_fib::RouterFib;
use namewire_designs::fib::catalogue::FibDesign;
use namewire_tables::fib::PrefixTable;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn agrees(variant: Variant, make: impl Fn(u64) -> Box<dyn PrefixTable>, cases: u32) {
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let limits = (variant.compared(), variant.prefix_bytes_max());
    let result = runner.run(&(runs(), any::<u64>()), |((pool, strangers, operations), seed)| {
        replay(make(seed), limits, &pool, &strangers, &operations)
    });
    result.unwrap_or_else(|error| panic!("{variant:?}: {error}"));
}

/// Each option of each design, alone, at its default, at its extremes, and with each way to treat the root.
#[test]
fn every_design_agrees_at_the_extremes_of_each_option() {
    let variants = one_option_each();
    for design in FibDesign::ALL {
        let of_design = variants.iter().filter(|variant| variant.design == design).count();
        assert!(of_design >= if design.is_lossless() { 2 } else { 20 }, "{}: {of_design}", design.name());
    }
    for variant in variants {
        agrees(variant, |seed| variant.table(seed), 4);
    }
}

/// The same as a router has them: two copies, or one controller and two tables.
#[test]
fn every_router_s_fib_agrees_at_the_extremes_of_each_option() {
    for variant in one_option_each().into_iter().filter(RouterFib::is_for) {
        agrees(variant, |seed| Box::new(RouterFib::new(&variant, seed)), 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_options_of_any_design_agree(variant in variant(), (pool, strangers, operations) in runs(), seed: u64) {
        let limits = (variant.compared(), variant.prefix_bytes_max());
        replay(variant.table(seed), limits, &pool, &strangers, &operations)?;
        if RouterFib::is_for(&variant) {
            replay(Box::new(RouterFib::new(&variant, seed)), limits, &pool, &strangers, &operations)?;
        }
    }
}
