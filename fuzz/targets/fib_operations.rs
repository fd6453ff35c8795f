//! Question: does the FIB agree with an ordered map that is searched prefix by prefix?
//!
//! Input: a list of operations on names from a small alphabet, so that prefixes collide. Entries and bytes are so few
//! that both limits are reached, yet enough that the index doubles.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_tables::{
    Fib, FibConfig, FibMatch, FibRefusal, HashKey, MAX_NAME_COMPONENTS, NameHashes, NameStorage, NextHop,
};

const CAPACITY_ENTRIES: usize = 12;
/// Enough for one name of 256 components and little else.
const ENTRY_BYTES: usize = 1024;

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert { prefix: Vec<u8>, next_hops: Vec<(u8, u8)>, strategy: u8, hidden: bool },
    Remove { prefix: Vec<u8> },
    Match { name: Vec<u8> },
}

/// Next hops, strategy, hidden.
type Leads = (Vec<NextHop>, u32, bool);

/// The model.
#[derive(Default)]
struct Oracle(BTreeMap<Vec<u8>, Leads>);

impl Oracle {
    fn longest(&self, components: &[u8]) -> Option<(Vec<u8>, &Leads)> {
        (0..=components.len()).rev().map(|n| name_value(&components[..n])).find_map(|name| {
            let found = self.0.get(&name)?;
            Some((name, found))
        })
    }
}

/// One component per byte, of one of four letters; one of the letters is no text.
fn name_value(components: &[u8]) -> Vec<u8> {
    const LETTERS: [u8; 4] = *b"ab.\xc0";
    components.iter().flat_map(|&letter| [8, 1, LETTERS[usize::from(letter % 4)]]).collect()
}

fn same(found: &FibMatch<'_>, leads: &Leads) {
    let (next_hops, strategy, hidden) = leads;
    assert_eq!(found.nexthops, next_hops);
    assert_eq!((found.strategy, found.hidden), (*strategy, *hidden));
}

fuzz_target!(|input: (bool, Vec<Operation>)| {
    let (encoded, operations) = input;
    let names = if encoded { NameStorage::Encoded } else { NameStorage::Inline };
    let config = FibConfig { entry_bytes: ENTRY_BYTES, names, ..FibConfig::new(CAPACITY_ENTRIES) };
    let mut fib = Fib::with_config(config, HashKey::from_seed(7)).expect("address space");
    let mut oracle = Oracle::default();
    let mut hashes = NameHashes::default();
    for operation in operations {
        match operation {
            Operation::Insert { prefix, next_hops, strategy, hidden } => {
                let name = name_value(&prefix);
                let mut next_hops: Vec<NextHop> =
                    next_hops.iter().map(|&(face, cost)| NextHop { face: face.into(), cost: cost.into() }).collect();
                let result = fib.insert(&name, &next_hops, strategy.into(), hidden);
                let known = oracle.0.contains_key(&name);
                match result {
                    Ok(inserted) => {
                        assert_eq!(inserted.replaced, known);
                        next_hops.sort_by_key(|hop| hop.cost);
                        oracle.0.insert(name, (next_hops, strategy.into(), hidden));
                        assert!(oracle.0.len() <= CAPACITY_ENTRIES);
                    }
                    Err(FibRefusal::BytesFull) => assert!(!known && fib.get(&name).is_none()),
                    Err(refusal @ (FibRefusal::NoMemory | FibRefusal::ReadersBehind)) => panic!("{refusal}"),
                    Err(FibRefusal::Full) => assert!(!known && oracle.0.len() == CAPACITY_ENTRIES),
                    Err(FibRefusal::PrefixTooLong) => assert!(prefix.len() > MAX_NAME_COMPONENTS),
                    Err(FibRefusal::TooManyNextHops) => assert!(next_hops.len() > 1024),
                }
            }
            Operation::Remove { prefix } => {
                let name = name_value(&prefix);
                assert_eq!(fib.remove(&name), Ok(oracle.0.remove(&name).is_some()));
                assert!(fib.get(&name).is_none());
            }
            Operation::Match { name: components } => {
                let name = name_value(&components);
                if hashes.compute(fib.key(), &name).is_err() {
                    assert!(components.len() > MAX_NAME_COMPONENTS);
                    continue;
                }
                let mut batch = [None];
                let view = fib.view();
                view.longest_prefix_match_batch(&[&name], std::slice::from_ref(&hashes), &mut batch);
                let found = view.longest_prefix_match(&name, &hashes);
                assert_eq!(batch[0], found);
                let hint = view.candidate(&hashes);
                assert_eq!(view.longest_prefix_match_hinted(&name, &hashes, hint), found);
                match (found, oracle.longest(&components)) {
                    (Some(found), Some((prefix, expected))) => {
                        assert_eq!(&name[..found.prefix_bytes], prefix);
                        same(&found, expected);
                    }
                    (None, None) => {}
                    (found, expected) => panic!("found {found:?}, expected {expected:?}"),
                }
            }
        }
        assert_eq!(fib.len(), oracle.0.len());
    }
    let mut entries = 0;
    for entry in fib.iter().expect("the default table") {
        let (next_hops, strategy, hidden) = &oracle.0[&*entry.name_value];
        assert_eq!(entry.nexthops, next_hops);
        assert_eq!((entry.strategy, entry.hidden), (*strategy, *hidden));
        assert_eq!(fib.get(&entry.name_value).map(|found| found.prefix_bytes), Some(entry.name_value.len()));
        entries += 1;
    }
    assert_eq!(entries, oracle.0.len());
});
