//! Question: does every FIB design of the papers, with any of its options, agree with an ordered map that is searched
//! prefix by prefix?
//!
//! Input: a design, options, then operations on names. Their components come from a small, confusing alphabet: empty
//! and long ones, types of one and of three bytes, one that looks like two, and beginnings and markup of others. The
//! capacity is reached. A lossy design must be right about every name that has a prefix. Names with more components
//! than the tables accept are looked up too; for these, no match is also right.
#![no_main]

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignError, FibDesignOptions};
use namewire_designs::fib::hash_tables::{MarkerMaintenance, PrefixHash, StringMatching};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::fib::{FibConfig, FibRefusal, MAX_PREFIX_BYTES};
use namewire_tables::{HashKey, MAX_NAME_COMPONENTS};

const CAPACITY_ENTRIES: usize = 24;

#[derive(Arbitrary, Debug)]
struct Choice {
    design: u8,
    prefetch: u8,
    hash: u8,
    matching: u8,
    maintenance: u8,
    first_components: u8,
    level_pulling: u8,
    fingerprint_bits: u8,
}

/// A name is a list of components; a byte chooses each.
#[derive(Arbitrary, Debug)]
enum Operation {
    Insert { prefix: Vec<u8>, number: u8 },
    Remove { prefix: Vec<u8> },
    Match { names: Vec<Vec<u8>> },
}

fn component(choice: u8) -> Vec<u8> {
    let long = |bytes: usize, last: u8| [&[8, 250][..], &vec![b'l'; bytes - 1], &[last]].concat();
    match choice % 16 {
        letter @ 0..=4 => vec![8, 1, b'a' + letter],
        5 => vec![8, 0],
        6 => vec![8, 2, b'a', b'b'],
        7 => vec![8, 3, 8, 1, b'a'],
        8 => vec![1, 1, b'a'],
        9 => vec![253, 1, 0, 1, b'a'],
        10 => vec![8, 1, 0],
        11 => vec![8, 1, 255],
        12 => long(250, b'x'),
        13 => long(250, b'y'),
        14 => vec![8, 4, b'%', b'/', 128, b'%'],
        _ => [&[8, 253, 1, 0][..], &[choice; 256]].concat(),
    }
}

fn name_value(choices: &[u8]) -> Vec<u8> {
    choices.iter().flat_map(|choice| component(*choice)).collect()
}

/// One of `all`, or `None`.
fn one_of<T: Copy>(all: &[T], choice: u8) -> Option<T> {
    let choice = usize::from(choice) % (all.len() + 1);
    choice.checked_sub(1).map(|index| all[index])
}

fn make(choice: &Choice) -> (FibDesign, Box<dyn PrefixTable>) {
    let design = FibDesign::ALL[usize::from(choice.design) % FibDesign::ALL.len()];
    let options = FibDesignOptions {
        prefetch: one_of(&FibPrefetch::ALL, choice.prefetch),
        hash: one_of(&[PrefixHash::City, PrefixHash::Sip], choice.hash),
        matching: one_of(&[StringMatching::Always, StringMatching::AtEnd], choice.matching),
        maintenance: one_of(&MarkerMaintenance::ALL, choice.maintenance),
        first_components: NonZeroU16::new(u16::from(choice.first_components % 8)),
        level_pulling: NonZeroU32::new(u32::from(choice.level_pulling % 4)),
        fingerprint_bits: one_of(&[12, 16, 24], choice.fingerprint_bits),
        ..FibDesignOptions::default()
    };
    // Unsupported options are left out.
    let prefetch_only = FibDesignOptions { prefetch: options.prefetch, ..FibDesignOptions::default() };
    let build =
        |options: &FibDesignOptions| design.build(options, &FibConfig::new(CAPACITY_ENTRIES), HashKey::from_seed(7));
    let refused = |table: &Result<_, _>| matches!(table, Err(FibDesignError::Option { .. }));
    let mut table = build(&options);
    for fewer in [prefetch_only, FibDesignOptions::default()] {
        if refused(&table) {
            table = build(&fewer);
        }
    }
    (design, table.expect("memory for a small table"))
}

/// The model.
#[derive(Default)]
struct Oracle(BTreeMap<Vec<u8>, u32>);

impl Oracle {
    fn longest(&self, choices: &[u8]) -> Option<PrefixMatch> {
        (0..=choices.len()).rev().map(|n| name_value(&choices[..n])).find_map(|prefix| {
            let number = *self.0.get(&prefix)?;
            Some(PrefixMatch { number, prefix_bytes: prefix.len() as u16 })
        })
    }
}

fn check(design: FibDesign, table: &dyn PrefixTable, oracle: &Oracle, names: &[Vec<u8>]) {
    for names in names.chunks(DESIGN_BATCH_NAMES) {
        let values: Vec<Vec<u8>> = names.iter().map(|name| name_value(name)).collect();
        let slices: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
        let mut found = vec![None; names.len()];
        table.longest_prefix_match_batch(&slices, &mut found);
        for (name, found) in names.iter().zip(found) {
            let expected = oracle.longest(name);
            let is_bound = table.is_lossless() || expected.is_some();
            let is_too_long = name.len() > MAX_NAME_COMPONENTS || name_value(name).len() > MAX_PREFIX_BYTES;
            if is_bound && !(is_too_long && found.is_none()) {
                assert_eq!(found, expected, "{} of {name:?}", design.name());
            }
        }
    }
}

fuzz_target!(|input: (Choice, Vec<Operation>)| {
    let (choice, operations) = input;
    let (design, mut table) = make(&choice);
    let mut oracle = Oracle::default();
    let mut names: Vec<Vec<u8>> = vec![];
    for operation in operations {
        match operation {
            Operation::Insert { prefix, number } => {
                let value = name_value(&prefix);
                let result = table.insert(&value, number.into());
                let before = oracle.0.get(&value).copied();
                match result {
                    Ok(was) => {
                        assert_eq!(was, before, "{} inserts {prefix:?}", design.name());
                        oracle.0.insert(value, number.into());
                        names.push(prefix);
                    }
                    Err(FibRefusal::PrefixTooLong) => {
                        assert!(prefix.len() > MAX_NAME_COMPONENTS || value.len() > MAX_PREFIX_BYTES);
                    }
                    Err(FibRefusal::Full) => assert!(before.is_none() && oracle.0.len() == CAPACITY_ENTRIES),
                    Err(refusal) => panic!("{}: {refusal}", design.name()),
                }
            }
            Operation::Remove { prefix } => {
                let value = name_value(&prefix);
                assert_eq!(table.remove(&value), oracle.0.remove(&value), "{} removes {prefix:?}", design.name());
            }
            Operation::Match { names } => check(design, &*table, &oracle, &names[..names.len().min(100)]),
        }
        assert_eq!(table.len(), oracle.0.len(), "{}", design.name());
    }
    // Every name that ever was a prefix, and one below it.
    let below: Vec<Vec<u8>> = names.iter().map(|name| [&name[..], &[3]].concat()).collect();
    check(design, &*table, &oracle, &names);
    check(design, &*table, &oracle, &below);
    assert!(table.forwarding_bytes() <= table.bytes());
});
