//! FIB: which next hops has the longest prefix of this name?
//!
//! Source: NFD developer guide (NDN-0021) for the content; Takemasa17 §3.3.1 for the
//! search, longest first with one hash probe per length; So et al. 2013 for buckets of
//! one cache line that hold fingerprints beside pointers. Deviations: lengths that no
//! prefix has are skipped, prefixes that agree in their first two components begin in one
//! bucket, so that a search reads one line for all lengths ([`FibSearch`] has the papers'
//! way and binary search as well), names lie inline in the entries, and equal next-hop sets
//! are stored once.
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
//! cache if the crowd is large, and then one per length. Bytes per entry beyond its name:
//! 8 of index at the full capacity (up to 16 before, because the index doubles), 8 of header,
//! 0 to 3 of fill, the next-hop set if it is not shared, and what removals have left free.
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

pub mod designs;
mod entries;
mod lengths;
mod markers;
mod next_hop_sets;
mod published;
mod shared;
mod space;
mod view;

pub use entries::FibEntryRef;
pub use shared::{FibPin, FibReader};
pub use view::{FibHint, FibView, NameBatch};

use crate::name_hash::{HashKey, NameHashes};
use crate::pages::PageSize;
use entries::{HEADER_UNITS, UNIT_OCTETS};
use next_hop_sets::NextHopSet;
use shared::Writer;
use smallvec::SmallVec;
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

/// Entries that the first index is made for, except on explicit huge pages: one bucket of it.
const FIRST_INDEX_ENTRIES: usize = 8;

/// One way onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The face to send to.
    pub face: u64,
    /// Lower is better.
    pub cost: u64,
}

/// What one entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibEntry<'a> {
    /// The prefix: octets of a Name TLV-VALUE.
    pub name_value: &'a [u8],
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
    /// [`MAX_WAITING`] things that were removed or replaced may still be held by readers.
    #[error("a reader has kept the FIB for {MAX_WAITING} changes")]
    ReadersBehind,
    /// The kernel grants no memory for a larger index.
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
        Self { capacity_entries, entry_octets, pages: PageSize::default(), search: FibSearch::default() }
    }

    /// Room for this many prefixes of so many octets in all, on transparent huge pages. Little
    /// is left for free octets in pieces that are too small, once everything is used.
    pub fn for_prefixes(capacity_entries: usize, prefix_octets: usize) -> Self {
        let beside_names = capacity_entries.saturating_mul((HEADER_UNITS + 1) * UNIT_OCTETS - 1);
        let entry_octets = prefix_octets.saturating_add(beside_names).clamp(16 << 20, 1 << 34);
        Self { capacity_entries, entry_octets, pages: PageSize::default(), search: FibSearch::default() }
    }
}

/// The forwarding information base: its owner's side, which writes.
pub struct Fib {
    writer: Writer,
    config: FibConfig,
    len: usize,
    /// Entries that the present index was made for.
    index_entries: usize,
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
        let units = config.entry_octets.min(1 << 34) / UNIT_OCTETS;
        // A larger index lies beside the smaller one while it is filled. Explicit huge pages are
        // reserved for what is needed in the end, and often a whole page for the smallest index.
        let first_entries = match config.pages {
            PageSize::Base | PageSize::Transparent => FIRST_INDEX_ENTRIES,
            PageSize::Huge2MiB | PageSize::Huge1GiB => config.capacity_entries,
        };
        let index_entries = config.capacity_entries.min(first_entries);
        let writer = Writer::new(key, units, index_entries, &config)?;
        Ok(Self { writer, config, len: 0, index_entries })
    }

    /// A reader for another thread.
    pub fn reader(&self) -> FibReader {
        self.writer.reader()
    }

    /// The FIB as it is while nobody writes, which this borrow prevents.
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        self.writer.view()
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        self.writer.key()
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no prefix at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many prefixes there may be.
    pub fn capacity_entries(&self) -> usize {
        self.config.capacity_entries
    }

    /// Octets of memory of everything: entries with their names, room left by removed ones,
    /// index, next-hop sets, and the writer's own lists. Whole pages count.
    pub fn bytes(&self) -> usize {
        self.writer.bytes() + size_of::<Self>()
    }

    /// How many removed entries, former next-hop sets and former indices wait until no reader
    /// can hold them.
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Octets of the TLV-VALUEs of all prefixes. Visits every entry.
    pub fn name_bytes(&self) -> usize {
        self.iter().map(|entry| entry.name_value.len()).sum()
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
        let mut nexthops = SmallVec::from_slice(nexthops);
        nexthops.sort_by_key(|next_hop: &NextHop| next_hop.cost); // stable
        let content = NextHopSet { nexthops, strategy, hidden };

        if self.writer.change(&hashes, name_value, &content)? {
            return Ok(Inserted { replaced: true });
        }
        self.writer.check_waiting()?;
        if self.len == self.config.capacity_entries {
            return Err(FibRefusal::Full);
        }
        if self.len == self.index_entries {
            self.enlarge_index().map_err(|_| FibRefusal::NoMemory)?;
        }
        if !self.writer.link(&hashes, name_value, content) {
            return Err(FibRefusal::OctetsFull);
        }
        self.len += 1;
        Ok(Inserted { replaced: false })
    }

    /// Removes the prefix; says whether it was there.
    pub fn remove(&mut self, name_value: &[u8]) -> bool {
        let mut hashes = NameHashes::default();
        // Longer ones are not there; no insertion allowed them.
        let computed = hashes.compute(self.key(), name_value);
        let was_there = computed.is_ok() && self.writer.unlink(&hashes, name_value);
        self.len -= usize::from(was_there);
        was_there
    }

    /// The entry of exactly this prefix.
    pub fn get(&self, name_value: &[u8]) -> Option<FibEntry<'_>> {
        let (view, mut hashes) = (self.view(), NameHashes::default());
        hashes.compute(self.key(), name_value).ok()?;
        view.find_name(&hashes, name_value).map(|entry| view.entry(entry))
    }

    /// Every entry, hidden ones included, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = FibEntry<'_>> {
        let view = self.view();
        view.index.entries().map(move |entry| view.entry(entry))
    }

    /// Frees what readers cannot hold any more. Done now and then by itself; of use to
    /// who wants [`Fib::bytes`] exact.
    pub fn reclaim(&mut self) {
        self.writer.reclaim();
    }

    /// Makes an index for twice as many entries and publishes it. The pause is in proportion
    /// to the entries; readers go on with the old one.
    fn enlarge_index(&mut self) -> io::Result<()> {
        let entries = self.index_entries.saturating_mul(2).min(self.config.capacity_entries);
        self.writer.replace_index(entries, &self.config)?;
        self.index_entries = entries;
        Ok(())
    }
}
