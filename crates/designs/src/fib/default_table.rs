//! Default table: the router's own FIB behind the interface of the papers' designs.
//!
//! This wraps [`namewire_tables::fib`], so that one harness and one experiment can compare it with the papers' designs.
//! An entry has no next hops; its strategy field holds the number. So each number has its own next-hop set, as in a
//! router.
//!
//! Cost, layout, limits: those of [`Fib`]. Writers: the owner.

use namewire_tables::fib::{BatchLookUp, Fib, FibConfig, FibRefusal, steps};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::name_hash::{HashKey, NameHashes};
use std::cell::RefCell;
use std::io;

/// The router's own table.
pub struct DefaultTable {
    fib: Fib,
}

impl DefaultTable {
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

impl PrefixTable for DefaultTable {
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
        let BatchLookUp::Stepped(table) = view.batch_look_up() else { unreachable!("a FIB of that kind is made") };
        HASHES.with_borrow_mut(|hashes| {
            let mut search = table.search();
            for step in steps(names.len()) {
                for name in step.ready {
                    // One that is refused is left with the root: no longer prefix can be there.
                    let _ = hashes[name].compute(self.fib.key(), names[name]);
                }
                step.begin.for_each(|name| search.begin(name, &hashes[name]));
                search.step(hashes);
            }
            search.finish(hashes);
            out[..names.len()].fill(None);
            for (name, hint) in search.found() {
                let found = view.longest_prefix_match_hinted(names[name], &hashes[name], Some(hint));
                out[name] =
                    found.map(|found| PrefixMatch { number: found.strategy, prefix_bytes: found.prefix_bytes as u16 });
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
