//! FIB: which next hops does the longest prefix of this name have?
//!
//! Source: the content of entries is from the NFD developer's guide (NDN-0021). The search, longest prefix first with
//! one hash probe per length, is from Takemasa17 §3.3.1. Buckets of one cache line that hold fingerprints and pointers
//! are from So et al. 2013.
//!
//! Deviations:
//! - Lengths that no prefix has are skipped.
//! - Prefixes that agree in their first two components begin in one bucket, so that a search reads one line
//!   for all lengths. [`FibSearch`] also has the papers' way.
//! - Names lie inline in the entries, as they are or in code ([`NameStorage`]).
//! - Equal next-hop sets are stored once.
//!
//! ```text
//!  hash of a prefix ─► index bucket, 1 line          entry, 1-2 lines                 set, shared, hot
//!                      | tags … | units … |  ─────►  | set | bytes | name … |  ────► | next hops |
//!                      `tag_index`                   `entries`                        `next_hop_sets`
//! ```
//!
//! An entry is one prefix with its next hops (cheapest first) and the strategy that applies to it. A
//! *hidden* entry was made only for a strategy choice, and datasets do not show it.
//!
//! Cost: a look-up (`bucket_view`) reads one line of the index. On average it reads 0.18 of another line,
//! because the bucket was full, or seemed full for a longer prefix. It reads one more line for each
//! existing length below two components. For names of 44 bytes it reads 1.75 lines of the entry. If many
//! prefixes share a name of two components, their bucket has only 10 of them. Each search for one of them
//! reads the line of this bucket, and then one line per length that these prefixes have. If they are many,
//! the bucket's line stays in the cache.
//!
//! Bytes: beyond its name, an entry takes 8 of index at the full capacity (up to 16 before, because the
//! index doubles), 8 of header and 0 to 3 of fill. A next-hop set that is not shared, and the room that
//! removals have left free, add to this. With names in code, the header takes 4; a domain name of 22 bytes
//! then takes 25.9 in all.
//!
//! Limits: [`FibConfig`], [`MAX_NAME_COMPONENTS`], [`MAX_PREFIX_BYTES`], [`MAX_NEXT_HOPS`] and
//! [`MAX_WAITING`]. Beyond any of them `insert` refuses, and nothing changes.
//!
//! Writers: the owner of the [`Fib`]. Each reader has a [`FibReader`] and never waits: it pins the `FibReader` for a
//! batch and looks at a [`FibView`]. If a prefix is in the FIB throughout a look-up, the look-up finds it or a longer
//! one. A reader sees an entry whole or not at all: the owner writes it before the index leads to it, and changes it by
//! one store. Unlinked entries, sets and former indices stay until [`crate::quiescence`] has found that no reader can
//! hold them. A reader may still see a prefix that was removed after the reader was pinned.
//!
//! All of this holds for the router's own table. A FIB may instead be two copies of a design of the literature
//! ([`PrefixTable`], [`Fib::of_design`]). Such a FIB has the costs and limits of the design. Its readers never wait
//! either, but a change may have to wait for readers (`mirrored`). A lossy design has only routes; strategies and the
//! forwarder's own prefixes are kept separately and in full (`exact_entries`).

mod bucket_table;
mod bucket_view;
mod bucket_writer;
mod config;
mod entries;
mod entry;
mod exact_entries;
mod flow_cache;
mod hint;
mod left_right;
mod lengths;
mod look_up;
mod mirrored;
mod mirrored_design;
mod name_code;
mod next_hop_sets;
mod prefix_table;
mod published;
mod space;
mod stepped_search;
mod unit;
mod version;

pub use config::{FibConfig, FibSearch, NameStorage, UnknownNameStorage};
pub use entry::{FibEntry, FibEntryKind, FibRefusal, Inserted, MAX_NEXT_HOPS, MAX_PREFIX_BYTES, MAX_WAITING, NextHop};
pub use flow_cache::{FlowCache, MAX_FLOWS};
pub use hint::{FibHint, FibMatch};
pub use look_up::{BatchLookUp, FibPin, FibReader, FibView, SteppedTable, WholeBatchTable};
pub use prefix_table::{
    DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable, Split, SplitController, SplitInstructions, SplitTable, SplitUpdate,
};
pub use stepped_search::{Flow, MAX_SEARCHED_NAMES, SearchStep, SteppedSearch, steps};

use crate::head_room::GrowthGuard;
use crate::name_hash::{HashKey, NameHashes};
use bucket_table::BucketTable;
use look_up::{Reader, View};
use mirrored_design::MirroredDesign;
use next_hop_sets::NextHopSet;
use smallvec::SmallVec;
use std::io;

#[cfg(doc)]
use crate::name_hash::MAX_NAME_COMPONENTS;

impl Table {
    fn len(&self) -> usize {
        match self {
            Self::Bucket(table) => table.len(),
            Self::Design(design) => design.len(),
        }
    }

    fn has(&self, name_value: &[u8]) -> bool {
        match self {
            Self::Bucket(table) => table.get(name_value).is_some(),
            Self::Design(design) => design.has(name_value),
        }
    }

    /// Bytes of everything that may have to be copied to grow.
    fn growing_bytes(&self) -> usize {
        match self {
            Self::Bucket(table) => table.growing_bytes(),
            Self::Design(design) => design.bytes(),
        }
    }
}

/// The Forwarding Information Base: its owner's side, which writes.
pub struct Fib {
    table: Table,
    capacity_entries: usize,
    growth: GrowthGuard,
}

#[allow(clippy::large_enum_variant, reason = "a router has one")]
enum Table {
    Bucket(BucketTable),
    Design(MirroredDesign),
}

impl Fib {
    /// An empty FIB of at most `capacity_entries`, as [`FibConfig::new`] sizes it. The [`NameHashes`] of
    /// look-ups must be made with `key`.
    ///
    /// # Panics
    /// If the kernel does not map the address space.
    pub fn new(capacity_entries: usize, key: HashKey) -> Self {
        match Self::with_config(FibConfig::new(capacity_entries), key) {
            Ok(fib) => fib,
            Err(error) => panic!("no address space for a FIB of {capacity_entries} entries: {error}"),
        }
    }

    /// An empty FIB of this size.
    ///
    /// # Errors
    /// If the kernel does not map its arrays: an address space limit, or not enough huge
    /// pages reserved.
    pub fn with_config(config: FibConfig, key: HashKey) -> io::Result<Self> {
        let config = FibConfig { capacity_entries: config.capacity_entries.min(u32::MAX as usize), ..config };
        Ok(Self::of(Table::Bucket(BucketTable::with_config(config, key)?), config.capacity_entries))
    }

    /// An empty FIB of two tables of one design, made alike, for `capacity_entries` each.
    pub fn of_design(tables: [Box<dyn PrefixTable>; 2], capacity_entries: usize, key: HashKey) -> Self {
        Self::of(Table::Design(MirroredDesign::new(tables, key)), capacity_entries)
    }

    /// An empty FIB of a controller and its two tables, for `capacity_entries`.
    pub fn of_split(split: Split, capacity_entries: usize, key: HashKey) -> Self {
        Self::of(Table::Design(MirroredDesign::of_split(split, capacity_entries, key)), capacity_entries)
    }

    fn of(table: Table, capacity_entries: usize) -> Self {
        let growth = GrowthGuard::new(table.growing_bytes());
        Self { table, capacity_entries, growth }
    }

    /// A reader for another thread.
    pub fn reader(&self) -> FibReader {
        FibReader(match &self.table {
            Table::Bucket(table) => Reader::Bucket(table.reader()),
            Table::Design(design) => Reader::Design(design.reader()),
        })
    }

    /// The FIB while there is no write, which this borrow prevents. Shows even what readers do not see
    /// before [`Fib::publish`].
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        FibView(match &self.table {
            Table::Bucket(table) => View::Bucket(table.view()),
            Table::Design(design) => View::Design(design.view()),
        })
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        match &self.table {
            Table::Bucket(table) => table.key(),
            Table::Design(design) => design.key(),
        }
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes that should be free for the next change, beside the reserve of [`crate::head_room`].
    pub fn wanted_bytes(&self) -> usize {
        self.growth.wanted_bytes()
    }

    /// Whether there is no prefix at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many prefixes there may be.
    pub fn capacity_entries(&self) -> usize {
        self.capacity_entries
    }

    /// Bytes of memory of everything: entries with their names, room left by removed ones, index, next-hop
    /// sets, and the writer's own lists; of a design both copies. Counts whole pages.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.table {
                Table::Bucket(table) => table.bytes(),
                Table::Design(design) => design.bytes(),
            }
    }

    /// How many removed entries, former next-hop sets and former indices wait until no reader can hold
    /// them. For a design: how many changes one of the copies lacks.
    pub fn waiting(&self) -> usize {
        match &self.table {
            Table::Bucket(table) => table.waiting(),
            Table::Design(design) => design.waiting(),
        }
    }

    /// Bytes of the TLV-VALUEs of all prefixes. Visits every entry of the router's own table.
    pub fn name_bytes(&self) -> usize {
        match &self.table {
            Table::Bucket(table) => table.iter().map(|entry| entry.name_value.len()).sum(),
            Table::Design(design) => design.prefix_bytes(),
        }
    }

    /// Adds a route, or a strategy if it is `hidden`; see [`Fib::insert_as`].
    ///
    /// # Errors
    /// As there.
    pub fn insert(
        &mut self,
        name_value: &[u8],
        nexthops: &[NextHop],
        strategy: u32,
        hidden: bool,
    ) -> Result<Inserted, FibRefusal> {
        let kind = if hidden { FibEntryKind::Strategy } else { FibEntryKind::Route };
        self.insert_as(name_value, nexthops, strategy, kind)
    }

    /// Adds the prefix, or replaces what it leads to. A lossy table keeps no `strategy` of a [`FibEntryKind::Route`].
    ///
    /// # Errors
    /// See [`FibRefusal`]; then nothing changed. With a lossy table, a prefix that changes its kind may be of both
    /// kinds until the insertion is repeated.
    pub fn insert_as(
        &mut self,
        name_value: &[u8],
        nexthops: &[NextHop],
        strategy: u32,
        kind: FibEntryKind,
    ) -> Result<Inserted, FibRefusal> {
        if name_value.len() > MAX_PREFIX_BYTES {
            return Err(FibRefusal::PrefixTooLong);
        }
        let mut hashes = NameHashes::default();
        hashes.compute(self.key(), name_value).map_err(|_| FibRefusal::PrefixTooLong)?;
        if nexthops.len() > MAX_NEXT_HOPS {
            return Err(FibRefusal::TooManyNextHops);
        }
        let Self { table, growth, .. } = self;
        let has_room = growth.allows_change(table.len(), || table.growing_bytes());
        if !has_room && !table.has(name_value) {
            return Err(FibRefusal::NoMemory);
        }
        let mut nexthops = SmallVec::from_slice(nexthops);
        nexthops.sort_by_key(|next_hop: &NextHop| next_hop.cost); // stable
        let content = NextHopSet { nexthops, strategy, hidden: kind == FibEntryKind::Strategy };
        let replaced = match &mut self.table {
            Table::Bucket(table) => table.insert(&hashes, name_value, content),
            Table::Design(design) => design.insert(name_value, content, kind),
        };
        replaced.map(|replaced| Inserted { replaced })
    }

    /// Removes the prefix; returns whether it was there.
    ///
    /// # Errors
    /// [`FibRefusal::ReadersBehind`]. [`FibRefusal::NoMemory`] while one copy of a design has no room for
    /// what the other has, or a lossy design has no room for the rules that would move. Then nothing
    /// changed. The router's own table never refuses.
    pub fn remove(&mut self, name_value: &[u8]) -> Result<bool, FibRefusal> {
        match &mut self.table {
            Table::Bucket(table) => Ok(table.remove(name_value)),
            Table::Design(design) => design.remove(name_value),
        }
    }

    /// What exactly this prefix leads to.
    pub fn get(&self, name_value: &[u8]) -> Option<FibMatch<'_>> {
        match &self.table {
            Table::Bucket(table) => table.get(name_value),
            Table::Design(design) => {
                let found = design.view().longest_prefix_match(name_value);
                found.filter(|found| found.prefix_bytes == name_value.len())
            }
        }
    }

    /// Every entry, hidden ones included, in no particular order. `None`: the table is a design, which need
    /// not know the names.
    pub fn iter(&self) -> Option<impl Iterator<Item = FibEntry<'_>>> {
        match &self.table {
            Table::Bucket(table) => Some(table.iter()),
            Table::Design(_) => None,
        }
    }

    /// Makes every change visible to readers. Changes of the router's own table are visible at once; so are
    /// changes of a design while there is no reader. Otherwise they wait for this call or for more changes.
    pub fn publish(&mut self) {
        if let Table::Design(design) = &mut self.table {
            design.publish();
        }
    }

    /// Frees what readers cannot hold any more. Happens now and then by itself; useful for callers that
    /// want an exact [`Fib::bytes`].
    pub fn reclaim(&mut self) {
        match &mut self.table {
            Table::Bucket(table) => table.reclaim(),
            Table::Design(design) => design.publish(),
        }
    }
}
