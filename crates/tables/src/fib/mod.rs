//! FIB: which next hops has the longest prefix of this name?
//!
//! Source: NFD developer guide (NDN-0021) for the content; Takemasa17 §3.3.1 for the
//! search, longest first with one hash probe per length; So et al. 2013 for buckets of
//! one cache line that hold fingerprints beside pointers. Deviations: lengths that no
//! prefix has are skipped, prefixes that agree in their first two components begin in one
//! bucket, so that a search reads one line for all lengths ([`FibSearch`] has the papers'
//! way and binary search as well), names lie inline in the entries, as they are or in code
//! ([`NameStorage`]), and equal next-hop sets are stored once.
//!
//! ```text
//!  hash of a prefix ─► index bucket, 1 line          entry, 1-2 lines                 set, shared, hot
//!                      | tags … | units … |  ─────►  | set | octets | name … |  ────► | next hops |
//!                      `tag_index`                   `entries`                        `next_hop_sets`
//! ```
//!
//! One entry = one prefix with its next hops (cheapest first), the strategy that
//! applies there and whether the entry is *hidden*: made for a strategy choice
//! only, and not shown in datasets.
//!
//! Cost of a look-up (`view`): one line of index, and 0.18 of another (the bucket was full,
//! or seemed so for a longer prefix); one more per length below two components that exists;
//! 1.75 lines of the entry for names of 44 octets. A crowd under one name of two components
//! has only 10 prefixes in its bucket: each search there reads that line, which stays in the
//! cache if the crowd is large, and then one per length that the crowd has. Bytes per entry beyond its name:
//! 8 of index at the full capacity (up to 16 before, because the index doubles), 8 of header,
//! 0 to 3 of fill, the next-hop set if it is not shared, and what removals have left free. With names
//! in code, everything counted, 25.9 per domain name of 22 octets, and 4 of header.
//! Limits: [`FibConfig`], [`MAX_NAME_COMPONENTS`], [`MAX_PREFIX_OCTETS`],
//! [`MAX_NEXT_HOPS`], [`MAX_WAITING`]; beyond them `insert` refuses and nothing changes.
//!
//! Who may write: the one owner of the [`Fib`]. Readers have a [`FibReader`] each and
//! never wait: they pin it for a batch and look at a [`FibView`]. A prefix that is in the
//! FIB throughout a look-up is found, or a longer one; an entry is seen whole or not at
//! all: it is written before the index leads to it, its change is one store, and what was
//! unlinked (entries, sets, an index that became too small) stays until
//! [`crate::quiescence`] tells that no reader can hold it. A reader may still see a prefix
//! that was removed after it was pinned.
//!
//! All this is said of the house's own table. A FIB may be two copies of a design of the
//! literature instead ([`designs`], [`Fib::of_design`]): its costs and limits are the design's,
//! readers never wait either, changes may have to wait for them (`mirrored`).

pub mod designs;
mod entries;
mod house;
mod left_right;
mod lengths;
mod look_up;
mod markers;
mod mirrored;
mod mirrored_design;
mod name_code;
mod next_hop_sets;
mod published;
mod shared;
mod space;
mod view;

pub use look_up::{FibHint, FibMatch, FibPin, FibReader, FibView, NameBatch};

use crate::head_room::GrowthGuard;
use crate::name_hash::{HashKey, NameHashes};
use crate::pages::PageSize;
use designs::PrefixTable;
use designs::catalogue::{FibDesign, FibDesignError, FibDesignOptions};
use entries::{HEADER_UNITS, UNIT_OCTETS};
use house::House;
use look_up::{Reader, View};
use mirrored_design::MirroredDesign;
use next_hop_sets::NextHopSet;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::io;

#[cfg(doc)]
use crate::name_hash::MAX_NAME_COMPONENTS;

/// The longest prefix, in octets of its TLV-VALUE: what fits into one packet.
pub const MAX_PREFIX_OCTETS: usize = 8800;
/// The most next hops of one entry.
pub const MAX_NEXT_HOPS: usize = 1024;

/// Removed entries, former next-hop sets and indices that pinned readers may still hold: with
/// more of them nothing is inserted or changed, or one reader that never ends its pin would
/// cost ever more memory. Removals go on: they are no more than there are entries. Each takes
/// some 20 octets and what it was (a set of [`MAX_NEXT_HOPS`], 16 KiB).
pub const MAX_WAITING: usize = 1 << 16;

/// One way onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The face to send to.
    pub face: u64,
    /// Lower is better.
    pub cost: u64,
}

/// What one entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FibEntry<'a> {
    /// The prefix: octets of a Name TLV-VALUE. Made anew if it is stored in code.
    pub name_value: Cow<'a, [u8]>,
    /// Cheapest first; equal costs in the order given at insertion.
    pub nexthops: &'a [NextHop],
    /// An opaque number of the strategy that applies here.
    pub strategy: u32,
    /// Not to be shown in datasets.
    pub hidden: bool,
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The prefix was there before.
    pub replaced: bool,
}

/// Why an insertion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibRefusal {
    /// The capacity is used up.
    #[error("the FIB is full")]
    Full,
    /// No room of this size is left in [`FibConfig::entry_octets`], perhaps because readers
    /// may still hold what was removed.
    #[error("the FIB has no room for the octets of this entry")]
    OctetsFull,
    /// [`MAX_WAITING`] things that were removed or replaced may still be held by readers; or, of a design,
    /// the copy that is to be changed.
    #[error("a reader has kept the FIB for too long")]
    ReadersBehind,
    /// The kernel grants no memory for a larger index, or too little would be left for the rest
    /// of the process ([`crate::head_room`]).
    #[error("the system has no memory for a larger FIB")]
    NoMemory,
    /// The prefix is longer than [`MAX_PREFIX_OCTETS`] or [`MAX_NAME_COMPONENTS`].
    #[error("the prefix is too long for the FIB")]
    PrefixTooLong,
    /// More than [`MAX_NEXT_HOPS`].
    #[error("the FIB entry would have more than {MAX_NEXT_HOPS} next hops")]
    TooManyNextHops,
}

impl FibRefusal {
    /// The counter of this refusal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "fib-full",
            Self::OctetsFull => "fib-octets-full",
            Self::ReadersBehind => "fib-readers-behind",
            Self::NoMemory => "fib-no-memory",
            Self::PrefixTooLong => "fib-prefix-too-long",
            Self::TooManyNextHops => "fib-too-many-next-hops",
        }
    }

    /// Whether the same insertion may succeed later.
    pub const fn may_pass(self) -> bool {
        !matches!(self, Self::PrefixTooLong | Self::TooManyNextHops)
    }
}

/// The size of a FIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibConfig {
    /// Prefixes at most; up to 2³² − 1.
    pub capacity_entries: usize,
    /// Octets of all entries at most: for each 8, its name and up to 3 of fill; also
    /// removed ones that readers may still hold. Up to 2³⁴. Address space, and memory
    /// when it is used; with explicit huge pages memory at once.
    pub entry_octets: usize,
    /// Pages of the entries and of the index.
    pub pages: PageSize,
    /// How the longest prefix is searched for.
    pub search: FibSearch,
    /// How names are stored.
    pub names: NameStorage,
}

/// How the names of prefixes are stored. The answers are the same, and so are the limits.
///
/// Measured in turn on a busy machine (Zen 4, counter of 2.6 GHz), batches with hashing, asked for with two more
/// components; cycles per look-up and bytes per name, everything counted: 3,054,593 domain names (Tranco, UT1)
/// inline 565 and 40.3, encoded 683 and 25.9, NameTrie18's trie 1386 and 53.9; 509,774 addresses (UT1) 689 and 73.9,
/// 1023 and 49.2, 1506 and 66.7; 111,122 addresses of software, tables in the caches, 797 and 105.9, 1193 and 61.1,
/// 1081 and 72.8.
///
/// N.B. Also tried for less memory. An index that is 88 or 92 % full in place of 80: 25.1 and 24.8 bytes per domain
/// name for 5 and 23 % more time. Entries that refer to that of their longest prefix (computed): 0.2 octets less
/// per domain name, 5.6 less per address, for a line more per look-up; refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameStorage {
    /// As they are. The default: the fastest to compare.
    #[default]
    Inline,
    /// In a code that makes text shorter, where it does.
    Encoded,
}

/// The text names no [`NameStorage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("names of FIB entries are stored \"inline\" or \"encoded\"")]
pub struct UnknownNameStorage;

impl NameStorage {
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Inline, Self::Encoded];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Encoded => "encoded",
        }
    }
}

impl std::str::FromStr for NameStorage {
    type Err = UnknownNameStorage;

    fn from_str(text: &str) -> Result<Self, UnknownNameStorage> {
        Self::ALL.into_iter().find(|storage| storage.name() == text).ok_or(UnknownNameStorage)
    }
}

/// How the longest prefix is searched for. All find the same.
///
/// Measured with 13,548,815 prefixes of 2 to 6 components in batches, hashing included, machine
/// busy, one run with all three in turn; cycles of a 2.6 GHz counter (Zen 4) per look-up, and
/// bytes per entry beyond its name: one bucket 266 and 17.8, longest first 365 and 17.8, binary
/// 431 and 19.8. Binary search loses although it asks only three markers, because each is
/// a line as far away as a bucket. Its markers are in the filter for their size: as entries
/// of the index they would take 4.8 octets per prefix in place of 2 (computed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FibSearch {
    /// Longest first, and all prefixes of a name that are two components or longer begin in
    /// one bucket, so that one line tells of all their lengths. The default.
    #[default]
    OneBucket,
    /// Longest first, one bucket for each length: the search of the papers.
    LongestFirst,
    /// Binary search over the lengths by markers, which cost 2 octets per entry.
    BinaryOverLengths,
}

impl FibSearch {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::OneBucket, Self::LongestFirst, Self::BinaryOverLengths];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneBucket => "longest first, one bucket",
            Self::LongestFirst => "longest first",
            Self::BinaryOverLengths => "binary over lengths",
        }
    }

    /// How many components must agree for prefixes to begin in one bucket.
    const fn together_components(self) -> usize {
        match self {
            // As many as the shortest prefix of a population that is not all under a few names:
            // with 1, all of a top-level domain would crowd into one bucket.
            Self::OneBucket => 2,
            Self::LongestFirst | Self::BinaryOverLengths => usize::MAX,
        }
    }
}

impl FibConfig {
    /// Room for this many prefixes of 120 octets on average, on transparent huge pages.
    pub fn new(capacity_entries: usize) -> Self {
        let entry_octets = capacity_entries.saturating_mul(128).clamp(16 << 20, 1 << 34);
        Self {
            capacity_entries,
            entry_octets,
            pages: PageSize::default(),
            search: FibSearch::default(),
            names: NameStorage::default(),
        }
    }

    /// Room for this many prefixes of so many octets in all, on transparent huge pages. Little
    /// is left for free octets in pieces that are too small, once everything is used.
    pub fn for_prefixes(capacity_entries: usize, prefix_octets: usize) -> Self {
        let beside_names = capacity_entries.saturating_mul((HEADER_UNITS + 1) * UNIT_OCTETS - 1);
        let entry_octets = prefix_octets.saturating_add(beside_names).clamp(16 << 20, 1 << 34);
        Self { entry_octets, ..Self::new(capacity_entries) }
    }
}

impl Table {
    fn len(&self) -> usize {
        match self {
            Self::House(house) => house.len(),
            Self::Design(design) => design.len(),
        }
    }

    fn has(&self, name_value: &[u8]) -> bool {
        match self {
            Self::House(house) => house.get(name_value).is_some(),
            Self::Design(design) => design.has(name_value),
        }
    }

    /// Bytes of all that may have to be copied to grow.
    fn growing_bytes(&self) -> usize {
        match self {
            Self::House(house) => house.growing_bytes(),
            Self::Design(design) => design.bytes(),
        }
    }
}

/// The forwarding information base: its owner's side, which writes.
pub struct Fib {
    table: Table,
    capacity_entries: usize,
    growth: GrowthGuard,
}

#[allow(clippy::large_enum_variant, reason = "a router has one")]
enum Table {
    House(House),
    Design(MirroredDesign),
}

impl Fib {
    /// An empty FIB of at most `capacity_entries`, as [`FibConfig::new`] sizes it. `key` must
    /// be the one that the [`NameHashes`] of look-ups are made with.
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
        Ok(Self::of(Table::House(House::with_config(config, key)?), config.capacity_entries))
    }

    /// An empty FIB of this size that `design` holds: the house's own table, or two copies of one of
    /// the literature's.
    ///
    /// # Errors
    /// If the design has no such options, or there is no memory.
    pub fn with_design(
        design: FibDesign,
        options: &FibDesignOptions,
        config: FibConfig,
        key: HashKey,
    ) -> Result<Self, FibDesignError> {
        let table = || design.build(options, &config, key);
        if let Some(search) = design.search() {
            design.check(options)?;
            let names = design.names().unwrap_or(config.names);
            return Ok(Self::with_config(FibConfig { search, names, ..config }, key)?);
        }
        let capacity_entries = config.capacity_entries;
        Ok(match design.build_split(options, &config, key)? {
            Some(split) => Self::of(Table::Design(MirroredDesign::of_split(split, key)), capacity_entries),
            None => Self::of_design([table()?, table()?], capacity_entries, key),
        })
    }

    /// An empty FIB in two tables of one design, made alike, for `capacity_entries` each.
    pub fn of_design(tables: [Box<dyn PrefixTable>; 2], capacity_entries: usize, key: HashKey) -> Self {
        Self::of(Table::Design(MirroredDesign::new(tables, key)), capacity_entries)
    }

    fn of(table: Table, capacity_entries: usize) -> Self {
        let growth = GrowthGuard::new(table.growing_bytes());
        Self { table, capacity_entries, growth }
    }

    /// A reader for another thread.
    pub fn reader(&self) -> FibReader {
        FibReader(match &self.table {
            Table::House(house) => Reader::House(house.reader()),
            Table::Design(design) => Reader::Design(design.reader()),
        })
    }

    /// The FIB as it is while nobody writes, which this borrow prevents; also what readers
    /// do not see before [`Fib::publish`].
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        FibView(match &self.table {
            Table::House(house) => View::House(house.view()),
            Table::Design(design) => View::Design(design.view()),
        })
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        match &self.table {
            Table::House(house) => house.key(),
            Table::Design(design) => design.key(),
        }
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of memory that should be free beside the reserve of [`crate::head_room`] for the next change.
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

    /// Octets of memory of everything: entries with their names, room left by removed ones,
    /// index, next-hop sets, and the writer's own lists; of a design both copies. Whole pages count.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.table {
                Table::House(house) => house.bytes(),
                Table::Design(design) => design.bytes(),
            }
    }

    /// How many removed entries, former next-hop sets and former indices wait until no reader
    /// can hold them; of a design, how many changes one of the copies lacks.
    pub fn waiting(&self) -> usize {
        match &self.table {
            Table::House(house) => house.waiting(),
            Table::Design(design) => design.waiting(),
        }
    }

    /// Octets of the TLV-VALUEs of all prefixes. Visits every entry of the house's table.
    pub fn name_bytes(&self) -> usize {
        match &self.table {
            Table::House(house) => house.iter().map(|entry| entry.name_value.len()).sum(),
            Table::Design(design) => design.prefix_octets(),
        }
    }

    /// Adds the prefix, or replaces what it leads to.
    ///
    /// # Errors
    /// See [`FibRefusal`]; then nothing changed.
    pub fn insert(
        &mut self,
        name_value: &[u8],
        nexthops: &[NextHop],
        strategy: u32,
        hidden: bool,
    ) -> Result<Inserted, FibRefusal> {
        if name_value.len() > MAX_PREFIX_OCTETS {
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
        let content = NextHopSet { nexthops, strategy, hidden };
        let replaced = match &mut self.table {
            Table::House(house) => house.insert(&hashes, name_value, content),
            Table::Design(design) => design.insert(name_value, content),
        };
        replaced.map(|replaced| Inserted { replaced })
    }

    /// Removes the prefix; says whether it was there.
    ///
    /// # Errors
    /// [`FibRefusal::ReadersBehind`], and [`FibRefusal::NoMemory`] while one copy of a design has no
    /// room for what the other has, or a lossy one none for the rules that would change their place;
    /// then nothing changed. The house's table refuses nothing.
    pub fn remove(&mut self, name_value: &[u8]) -> Result<bool, FibRefusal> {
        match &mut self.table {
            Table::House(house) => Ok(house.remove(name_value)),
            Table::Design(design) => design.remove(name_value),
        }
    }

    /// What exactly this prefix leads to.
    pub fn get(&self, name_value: &[u8]) -> Option<FibMatch<'_>> {
        match &self.table {
            Table::House(house) => house.get(name_value),
            Table::Design(design) => {
                let found = design.view().longest_prefix_match(name_value);
                found.filter(|found| found.prefix_octets == name_value.len())
            }
        }
    }

    /// Every entry, hidden ones included, in no particular order. `None`: the table is that of a
    /// design, which need not know the names.
    pub fn iter(&self) -> Option<impl Iterator<Item = FibEntry<'_>>> {
        match &self.table {
            Table::House(house) => Some(house.iter()),
            Table::Design(_) => None,
        }
    }

    /// Lets readers see every change. Those of the house's table are seen at once, and those of
    /// a design while nobody reads; else they wait for this or for others to come.
    pub fn publish(&mut self) {
        if let Table::Design(design) = &mut self.table {
            design.publish();
        }
    }

    /// Frees what readers cannot hold any more. Done now and then by itself; of use to
    /// who wants [`Fib::bytes`] exact.
    pub fn reclaim(&mut self) {
        match &mut self.table {
            Table::House(house) => house.reclaim(),
            Table::Design(design) => design.publish(),
        }
    }
}
