//! A router's FIB of any design behind the interface of its designs, so that the same operations run on it. A prefix
//! leads to one next hop, whose face is the number.

use crate::design_options::Variant;
use crate::fib_designs::CAPACITY;
use namewire_designs::fib::string_differentiation::DefaultRoute;
use namewire_tables::fib::{FibConfig, PrefixMatch, PrefixTable};
use namewire_tables::{Fib, FibMatch, FibRefusal, HashKey, NameHashes, NextHop};
use std::collections::HashMap;

pub(crate) struct RouterFib {
    fib: Fib,
    /// What each prefix leads to: of a change, the FIB says only whether the prefix was there.
    numbers: HashMap<Vec<u8>, u32>,
    is_lossless: bool,
}

impl RouterFib {
    /// A default table's number would be that of a set of next hops, which the FIB chooses.
    pub(crate) fn is_for(variant: &Variant) -> bool {
        !matches!(variant.options.default_route, Some(DefaultRoute::Table(_)))
    }

    pub(crate) fn new(variant: &Variant, seed: u64) -> Self {
        let fib = variant.design.fib(&variant.options, FibConfig::new(CAPACITY), HashKey::from_seed(seed));
        Self {
            fib: fib.expect("memory for a small table"),
            numbers: HashMap::new(),
            is_lossless: variant.design.is_lossless(),
        }
    }
}

fn number(found: FibMatch<'_>) -> u32 {
    (found.nexthops[0].face - 256) as u32
}

impl PrefixTable for RouterFib {
    fn insert(&mut self, prefix: &[u8], new: u32) -> Result<Option<u32>, FibRefusal> {
        let inserted = self.fib.insert(prefix, &[NextHop { face: 256 + u64::from(new), cost: 0 }], 0, false)?;
        self.fib.publish();
        let before = self.numbers.insert(prefix.to_vec(), new);
        assert_eq!(before.is_some(), inserted.replaced);
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let was_there = self.fib.remove(prefix).expect("no reader is in the way");
        self.fib.publish();
        let before = self.numbers.remove(prefix);
        assert_eq!(before.is_some(), was_there);
        before
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        for (name, out) in names.iter().zip(out) {
            let found = self.look_up(name);
            *out = found.map(|found| PrefixMatch { number: number(found), prefix_bytes: found.prefix_bytes as u16 });
        }
    }

    fn len(&self) -> usize {
        self.fib.len()
    }

    fn bytes(&self) -> usize {
        self.fib.bytes()
    }

    fn is_lossless(&self) -> bool {
        self.is_lossless
    }
}

impl RouterFib {
    /// `None` for a name of too many components, which a router drops.
    fn look_up(&self, name: &[u8]) -> Option<FibMatch<'_>> {
        let mut hashes = NameHashes::default();
        hashes.compute(self.fib.key(), name).ok()?;
        self.fib.view().longest_prefix_match(name, &hashes)
    }
}
