//! House: the router's own table behind the papers' call.
//!
//! Not a design of a paper but [`crate::fib`], so that the same harness and the same experiment
//! take it beside them. A number is kept as the strategy of an entry without next hops, so that
//! as many next-hop sets are read as there are different numbers, as in a router.
//!
//! Cost, layout, limits: [`Fib`]'s. Who may write: the owner.

use super::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use crate::fib::{Fib, FibConfig, FibRefusal, NameBatch};
use crate::name_hash::{HashKey, NameHashes};
use std::cell::RefCell;
use std::io;
use std::ops::Range;

/// The house's table.
pub struct HouseTable {
    fib: Fib,
}

impl HouseTable {
    /// An empty table of this size.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    pub fn new(config: FibConfig, key: HashKey) -> io::Result<Self> {
        Ok(Self { fib: Fib::with_config(config, key)? })
    }

    /// The FIB itself.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }
}

impl PrefixTable for HouseTable {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let before = self.fib.get(prefix).map(|entry| entry.strategy);
        self.fib.insert(prefix, &[], number, false).map(|_| before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let before = self.fib.get(prefix).map(|entry| entry.strategy)?;
        (self.fib.remove(prefix) == Ok(true)).then_some(before)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        let view = self.fib.view();
        HASHES.with_borrow_mut(|hashes| {
            let mut candidates = [None; DESIGN_BATCH_NAMES];
            let mut batch = Names { key: self.fib.key(), names, hashes };
            view.candidates(names.len(), &mut batch, &mut candidates);
            for ((name, hashes), (candidate, out)) in names.iter().zip(hashes).zip(candidates.into_iter().zip(out)) {
                // No candidate: there is none, and none is searched for again.
                let found = candidate.and_then(|hint| view.longest_prefix_match_hinted(name, hashes, Some(hint)));
                *out = found
                    .map(|found| PrefixMatch { number: found.strategy, prefix_octets: found.prefix_octets as u16 });
            }
        });
    }

    fn len(&self) -> usize {
        self.fib.len()
    }

    fn bytes(&self) -> usize {
        self.fib.bytes()
    }
}

thread_local! {
    /// As in the engine, a buffer that outlives the batch.
    static HASHES: RefCell<[NameHashes; DESIGN_BATCH_NAMES]> =
        RefCell::new(std::array::from_fn(|_| NameHashes::with_full_room()));
}

/// Names that are hashed as the search comes to them.
struct Names<'n> {
    key: &'n HashKey,
    names: &'n [&'n [u8]],
    hashes: &'n mut [NameHashes; DESIGN_BATCH_NAMES],
}

impl NameBatch for Names<'_> {
    fn make_ready(&mut self, names: Range<usize>) {
        for name in names {
            // One that is refused is left with the root: no longer prefix can be there.
            let _ = self.hashes[name].compute(self.key, self.names[name]);
        }
    }

    fn is_wanted(&mut self, _: usize) -> bool {
        true
    }

    fn hashes(&self, name: usize) -> &NameHashes {
        &self.hashes[name]
    }

    fn name_value(&self, name: usize) -> &[u8] {
        self.names[name]
    }
}
