//! Level pulling: below which prefixes should a search begin?
//!
//! Source: Yuan15 §4.1 with Fig. 4.1. Symbols: T is `threshold_children`; C-Trie and component trie keep their names.
//! In lists of URLs, a few prefixes have most of the other prefixes right below them. Only the few are in the C-Trie,
//! which stays in the cache. A search walks down the C-Trie. It then looks up the node reached, plus one component, in
//! the first table. Then the search continues in the hash tables of the design below, which may be any
//! [`SearchFromLength`]:
//!
//! ```text
//!  /com/google/x/y ─► C-Trie /com ─► first: /com/google ─┬ absent: the longest prefix on the way
//!                                                        ├ nothing below it: /com/google, or as above
//!                                                        └ else: the hash tables from 3 components on
//! ```
//!
//! The first table has the component trie's edges ([`c_trie`]). So the C-Trie is a mark on nodes of the component trie:
//! at any time, exactly the nodes with more than T children are pulled.
//!
//! Deviations:
//! - The paper only counts, in a simulation; the algorithm for changes is ours.
//! - Every child of a C-Trie prefix is in the first table. So a name that is not in the first table cannot match
//!   anything longer. The C-Trie knows all shorter matches. So no search of shorter lengths is needed.
//! - An entry of the first table shows whether there is a prefix below it, as the leaf bit of the hash tables does
//!   (§3.3.2).
//! - Prefixes in the C-Trie also stay in the hash tables. Otherwise, moving a prefix back could fail for lack of
//!   memory.
//! - The root is in the C-Trie only if [`LevelPullingOptions::pull_root`] asks for it. The paper's root is not in its
//!   C-Trie, to judge by its sizes. Pulling the root pays most where the first component is the host.
//!
//! Cost of a look-up: it reads the C-Trie's lines (cached), then 2 lines for the first table, then what the design
//! below reads for the remaining lengths. Bytes: level pulling adds 76 to 84 per node of the component trie to the
//! bytes of the design below. Up to half as many nodes again may be free. Limits: those of the design below; 2³² - 1
//! nodes.
//! Writers: the owner, while there are no readers.

pub mod c_trie;
mod growing_index;

use c_trie::{CTrie, Reached};
use namewire_tables::fib::FibRefusal;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::name_hash::{HashKey, NameHashes};
use namewire_tables::pages::PageSize;
use std::cell::RefCell;
use std::io;

pub use c_trie::LevelPullingOptions;

/// A design that searches lengths in some order and can leave out the short ones.
pub trait SearchFromLength: PrefixTable {
    /// The longest prefix of every name; prefixes of fewer than `least_components[i]` components may be left out.
    ///
    /// # Panics
    /// If `least_components` or `out` is shorter than `names`, or there are more than
    /// [`DESIGN_BATCH_NAMES`].
    fn longest_prefix_match_batch_from(
        &self,
        names: &[&[u8]],
        least_components: &[u16],
        out: &mut [Option<PrefixMatch>],
    );

    /// How many hash tables that search asks for this name. For the lab: slow.
    fn hash_lookups_from(&self, name: &[u8], least_components: u16) -> usize;
}

/// A design with level pulling.
pub struct LevelPulling<B> {
    below: B,
    trie: CTrie,
    key: HashKey,
    hashes: NameHashes,
}

impl<B: SearchFromLength> LevelPulling<B> {
    /// Over `below`, which is empty; its own tries on these pages.
    ///
    /// # Errors
    /// If the kernel does not map the first arrays.
    ///
    /// # Panics
    /// If there is a prefix in `below`.
    pub fn new(below: B, options: LevelPullingOptions, key: HashKey, pages: PageSize) -> io::Result<Self> {
        assert!(below.is_empty(), "what is there already has no place in the component trie");
        let trie = CTrie::new(options, &key, pages)?;
        Ok(Self { below, trie, key, hashes: NameHashes::with_full_room() })
    }

    /// Chooses what is pulled; the prefixes stay.
    ///
    /// # Errors
    /// If there is no memory for a larger C-Trie; then nothing is pulled until this succeeds.
    pub fn set_options(&mut self, options: LevelPullingOptions) -> io::Result<()> {
        self.trie.set_options(options)
    }

    /// The design below: the same prefixes, without level pulling.
    pub fn below(&self) -> &B {
        &self.below
    }

    /// The component trie with the C-Trie in it.
    pub fn trie(&self) -> &CTrie {
        &self.trie
    }

    /// How many components the longest prefix of this name in the C-Trie has. For the lab: slow.
    pub fn c_trie_match(&self, name: &[u8]) -> Option<usize> {
        let mut hashes = NameHashes::default();
        hashes.compute(&self.key, name).ok()?;
        self.trie.longest_pulled(&hashes, name)
    }

    /// How many hash look-ups a search for this name makes, the C-Trie not counted (§4.1), and
    /// how many without level pulling. For the lab: slow.
    pub fn hash_lookups(&self, name: &[u8]) -> (usize, usize) {
        let without = self.below.hash_lookups_from(name, 0);
        let mut hashes = NameHashes::default();
        if hashes.compute(&self.key, name).is_err() {
            return (without, without);
        }
        let mut start = Start::new(&self.trie, &hashes, name);
        let first = usize::from(start.look_first);
        start.finish(&self.trie, &hashes, name);
        let rest = start.rest_from.map_or(0, |least| self.below.hash_lookups_from(name, least));
        (first + rest, without)
    }
}

impl<B: SearchFromLength> PrefixTable for LevelPulling<B> {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        self.hashes.compute(&self.key, prefix).map_err(|_| FibRefusal::PrefixTooLong)?;
        let before = self.below.insert(prefix, number)?;
        if self.trie.insert(&self.hashes, prefix, number).is_err() {
            // Only a new prefix needs memory.
            self.below.remove(prefix);
            return Err(FibRefusal::NoMemory);
        }
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let before = self.below.remove(prefix)?;
        if self.hashes.compute(&self.key, prefix).is_ok() {
            self.trie.remove(&self.hashes, prefix);
        }
        Some(before)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        BUFFERS.with_borrow_mut(|buffers| self.search(names, out, buffers));
    }

    fn len(&self) -> usize {
        self.below.len()
    }

    fn bytes(&self) -> usize {
        self.below.bytes() + self.trie.bytes()
    }

    fn forwarding_bytes(&self) -> usize {
        self.below.forwarding_bytes() + self.trie.bytes()
    }
}

impl<B: SearchFromLength> LevelPulling<B> {
    fn search(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>], buffers: &mut Buffers) {
        let Buffers { hashes, starts } = buffers;
        let (starts, trie) = (&mut starts[..names.len()], &self.trie);
        for ((name, hashes), start) in names.iter().zip(hashes.iter_mut()).zip(starts.iter_mut()) {
            *start = match hashes.compute(&self.key, name) {
                Ok(()) => Start::new(trie, hashes, name),
                Err(_) => Start { rest_from: Some(0), ..Start::default() },
            };
            if start.look_first {
                trie.prefetch_edge(hashes, start.reached.components + 1);
            }
        }
        for (hashes, start) in hashes.iter().zip(starts.iter()) {
            if start.look_first {
                trie.prefetch_node(hashes, start.reached.components + 1);
            }
        }
        let mut rest = 0;
        let mut rest_names = [&[][..]; DESIGN_BATCH_NAMES];
        let mut rest_from = [0; DESIGN_BATCH_NAMES];
        let mut places = [0; DESIGN_BATCH_NAMES];
        for (place, (name, hashes)) in names.iter().zip(hashes.iter()).enumerate() {
            starts[place].finish(trie, hashes, name);
            out[place] = starts[place].reached.longest;
            if let Some(least_components) = starts[place].rest_from {
                (rest_names[rest], rest_from[rest], places[rest]) = (name, least_components, place);
                rest += 1;
            }
        }
        let mut found = [None; DESIGN_BATCH_NAMES];
        if rest > 0 {
            self.below.longest_prefix_match_batch_from(&rest_names[..rest], &rest_from[..rest], &mut found[..rest]);
        }
        for (found, place) in found[..rest].iter().zip(places) {
            // The root is found in vain, and so may be what a marker inherits: both are known.
            out[place] = out[place].into_iter().chain(*found).max_by_key(|found| found.prefix_bytes);
        }
    }
}

/// What a search knows before it comes to the hash tables.
#[derive(Clone, Copy, Default)]
struct Start {
    reached: Reached,
    /// The name continues below a prefix of the C-Trie.
    look_first: bool,
    /// What is left to the hash tables.
    rest_from: Option<u16>,
}

impl Start {
    fn new(trie: &CTrie, hashes: &NameHashes, name: &[u8]) -> Self {
        let reached = trie.walk(hashes, name);
        let goes_on = reached.components < hashes.components();
        let look_first = goes_on && reached.is_pulled;
        let rest_from = (goes_on && !look_first).then_some(reached.components as u16 + 1);
        Self { reached, look_first, rest_from }
    }

    /// Visits the first table if the C-Trie said so.
    fn finish(&mut self, trie: &CTrie, hashes: &NameHashes, name: &[u8]) {
        if !self.look_first {
            return;
        }
        if let Some(has_longer) = trie.step(&mut self.reached, hashes, name) {
            self.rest_from = has_longer.then_some(self.reached.components as u16 + 1);
        }
    }
}

struct Buffers {
    hashes: [NameHashes; DESIGN_BATCH_NAMES],
    starts: [Start; DESIGN_BATCH_NAMES],
}

thread_local! {
    /// They outlive the batch, so that no look-up allocates.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        hashes: std::array::from_fn(|_| NameHashes::with_full_room()),
        starts: [Start::default(); DESIGN_BATCH_NAMES],
    });
}
