//! Question: does the dead nonce list remember each pair for its lifetime, unless it counts an early eviction?
//!
//! Input: a list of operations on few names and nonces. A map is the model.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_tables::{DeadNonceList, HashKey, PageSize};

const CAPACITY: usize = 20;
const LIFETIME_NS: u64 = 1000;

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert { name: u8, nonce: u8 },
    Ask { name: u8, nonce: u8 },
    Advance { by_ns: u16 },
    Expire { limit: u8 },
}

fuzz_target!(|operations: Vec<Operation>| {
    let mut list = DeadNonceList::new(CAPACITY, LIFETIME_NS, HashKey::from_seed(7), PageSize::Base).unwrap();
    let mut inserted_ns = BTreeMap::new();
    let mut now_ns = 0;
    for operation in operations {
        match operation {
            Operation::Insert { name, nonce } => {
                let pair = (u64::from(name % 8), u32::from(nonce % 8));
                list.insert(pair.0, pair.1, now_ns);
                inserted_ns.insert(pair, now_ns);
                assert!(list.contains(pair.0, pair.1, now_ns));
            }
            Operation::Ask { name, nonce } => {
                let pair = (u64::from(name % 8), u32::from(nonce % 8));
                let lives = inserted_ns.get(&pair).is_some_and(|at| now_ns < at + LIFETIME_NS);
                let found = list.contains(pair.0, pair.1, now_ns);
                assert!(!found || lives, "a pair is remembered that should not be");
                assert!(found || !lives || list.evicted_early() > 0, "a pair is forgotten early and uncounted");
            }
            Operation::Advance { by_ns } => now_ns += u64::from(by_ns % 400),
            Operation::Expire { limit } => list.expire(now_ns, limit.into()),
        }
        assert!(list.len() <= CAPACITY);
    }
});
