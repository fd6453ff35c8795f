//! Hash tables: a fingerprint table per number of components, searched in four orders.
//!
//! Source: Yuan15 chapter 3.
//!
//! | paper | here |
//! | --- | --- |
//! | binary search of hash tables (§3.3.1), longest and shortest first (§3.4.2), two stages (So et al. 2013, §3.2.1) |
//! [`HashSearch`] |
//! | "always" and "only at the end" (§3.3.2) | [`StringMatching`] |
//! | CityHash, SipHash | [`PrefixHash`] |
//! | prefetch none, first, all (§3.4.1) | [`FibPrefetch`] |
//! | CityA, SipE | [`HashTableOptions::CITY_A`], [`HashTableOptions::SIP_E`] |
//! | FIB updates (§3.3.1) | [`MarkerMaintenance`] |
//! | k | [`HashTableOptions::longest_components`] |
//!
//! ```text
//!  name ─► hash of every prefix ─► length to look up ─► bucket, 1 line ─► name prefix entry, 1-2 lines
//!          `prefix_hashes`         `search_order`       `bucket`,         `name_entries`
//!                                  `search`             `fingerprint_table`
//! ```
//!
//! Deviations: a search skips each length that no entry has. The root has no table, only a number. `maintenance` lists
//! what the paper leaves open; the other parts name their own deviations. Everything else is the paper's: bucket, load,
//! shared entries, markers, leaf bit, matching, prefetching.
//!
//! Cost of a binary search: for prefixes of up to k components it reads at most ⌈log₂(k + 1)⌉ lines of buckets. In
//! addition, it reads two lines of a name prefix entry for each bucket ("always") or only for the last bucket ("at the
//! end").
//! Bytes: a prefix of 7 components of 8 characters takes 53 for fingerprints (3 · 17.6), 128 for its entry, and 20 to
//! 40 for two markers in partitions. Limits: the capacity; k components; 32 GiB of entries. Beyond them `insert`
//! refuses and nothing changes. Writers: the owner, while there are no readers.

mod bucket;
mod fingerprint_table;
mod maintenance;
mod marker_lists;
mod marker_partitions;
mod name_entries;
mod prefix_hashes;
mod search;
mod search_order;
mod two_stage;
mod update;

pub use maintenance::MarkerMaintenance;
pub use prefix_hashes::{PrefixHash, PrefixHashes};
pub use search_order::HashSearch;

use super::FibPrefetch;
use super::level_pulling::SearchFromLength;
use fingerprint_table::FingerprintTable;
use maintenance::MarkerKeeper;
use name_entries::NameEntries;
use namewire_tables::fib::FibRefusal;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::name_hash::MAX_NAME_COMPONENTS;
use namewire_tables::pages::PageSize;
use prefix_hashes::Hasher;
use search_order::SearchOrder;
use std::cell::RefCell;
use std::io;

namewire_packet::names! {
    /// When a name is compared with the string of a name prefix entry.
    pub enum StringMatching {
        /// At every fingerprint that matches.
        Always = "always",
        /// At the last one, and at collided ones. Made for [`PrefixHash::Sip`]: with a hash that can be
        /// computed without a key, names can be made that are searched for twice.
        AtEnd = "at-end",
    }
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashTableOptions {
    /// In which order lengths are looked up.
    pub search: HashSearch,
    /// The hash of prefixes.
    pub hash: PrefixHash,
    /// When names are compared.
    pub matching: StringMatching,
    /// What is fetched early.
    pub prefetch: FibPrefetch,
    /// How markers are kept right.
    pub maintenance: MarkerMaintenance,
    /// k: no prefix has more components; 1 to [`MAX_NAME_COMPONENTS`].
    pub longest_components: usize,
    /// What the tables and the name prefix entries lie on.
    pub pages: PageSize,
    /// Of the two-stage search: M becomes the length that most prefixes have ([`two_stage`]); else it stays.
    pub is_first_stage_chosen: bool,
}

impl HashTableOptions {
    /// The paper's CityA, with the best prefetching, for all names.
    pub const CITY_A: Self = Self {
        search: HashSearch::Binary,
        hash: PrefixHash::City,
        matching: StringMatching::Always,
        prefetch: FibPrefetch::Batch,
        maintenance: MarkerMaintenance::Partitions,
        longest_components: MAX_NAME_COMPONENTS,
        pages: PageSize::Transparent,
        is_first_stage_chosen: false,
    };
    /// The paper's SipE, with the best prefetching, for all names.
    pub const SIP_E: Self = Self { hash: PrefixHash::Sip, matching: StringMatching::AtEnd, ..Self::CITY_A };
}

/// How much room there is from the beginning.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Element `n`: for how many prefixes and markers the table of length `n` is made (§3.3.2: n/4 buckets and 10 %).
    pub table_prefixes: Vec<usize>,
    /// Bytes of all name prefix entries.
    pub entry_bytes: u64,
}

/// A FIB of fingerprint tables.
pub struct HashTables {
    options: HashTableOptions,
    order: SearchOrder,
    hasher: Hasher,
    /// Element `n`: the table of prefixes and markers of `n` components; element 0 is not used.
    tables: Vec<FingerprintTable>,
    names: NameEntries,
    keeper: MarkerKeeper,
    root: Option<u32>,
    len: usize,
    capacity: usize,
    longest_in_use: usize,
    /// The two-stage search chooses M when there are this many prefixes.
    next_choice: usize,
    /// No sizes were asked for.
    tables_begin_small: bool,
}

impl HashTables {
    /// An empty table for `capacity` prefixes, hashed under `key` (CityHash takes the first half
    /// as its seed). Tables begin small and are doubled.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    ///
    /// # Panics
    /// If k is 0 or more than [`MAX_NAME_COMPONENTS`], or M is 0.
    pub fn new(capacity: usize, key: [u64; 2], options: HashTableOptions) -> io::Result<Self> {
        Self::with_sizes(capacity, key, options, &Sizes::default())
    }

    /// As [`HashTables::new`], with room from the beginning, so that no array grows while it fills.
    ///
    /// # Errors
    /// As of [`HashTables::new`].
    ///
    /// # Panics
    /// As [`HashTables::new`].
    pub fn with_sizes(capacity: usize, key: [u64; 2], options: HashTableOptions, sizes: &Sizes) -> io::Result<Self> {
        let longest = options.longest_components;
        assert!((1..=MAX_NAME_COMPONENTS).contains(&longest), "k is {longest}");
        if let HashSearch::TwoStage { first_components } = options.search {
            assert!(first_components > 0, "the root has no table");
        }
        let size = |length: usize| sizes.table_prefixes.get(length).copied().unwrap_or(0);
        let table = |length: usize| FingerprintTable::new(size(length), options.pages);
        Ok(Self {
            options,
            order: SearchOrder::new(options.search, longest),
            hasher: Hasher { function: options.hash, key },
            tables: (0..=longest).map(table).collect::<io::Result<_>>()?,
            names: NameEntries::new(sizes.entry_bytes, options.pages)?,
            keeper: MarkerKeeper::new(options.maintenance, options.pages)?,
            root: None,
            len: 0,
            capacity,
            longest_in_use: 0,
            next_choice: two_stage::FIRST_CHOICE,
            tables_begin_small: sizes.table_prefixes.is_empty(),
        })
    }

    /// What was chosen.
    pub fn options(&self) -> HashTableOptions {
        self.options
    }

    /// Chooses other prefetching, or matching: only the search depends on these.
    pub fn set_look_up(&mut self, prefetch: FibPrefetch, matching: StringMatching) {
        (self.options.prefetch, self.options.matching) = (prefetch, matching);
    }

    /// Prefixes and markers: the fingerprints of all tables.
    pub fn fingerprints(&self) -> usize {
        self.tables.iter().map(FingerprintTable::len).sum()
    }

    /// Prefixes and markers of `length` components; the root is not among them.
    pub fn fingerprints_of(&self, length: usize) -> usize {
        self.tables.get(length).map_or(0, FingerprintTable::len)
    }

    /// Bytes of the tables of fingerprints alone.
    pub fn table_bytes(&self) -> usize {
        self.tables.iter().map(FingerprintTable::bytes).sum()
    }

    /// Bytes of the name prefix entries alone.
    pub fn entry_bytes(&self) -> u64 {
        self.names.used_bytes()
    }

    /// Hashes the prefixes of these names, for [`HashTables::longest_prefix_match_hashed`]. The hashes hold until the
    /// table is changed.
    ///
    /// # Panics
    /// If there are more than [`DESIGN_BATCH_NAMES`].
    pub fn hash_names(&self, names: &[&[u8]], hashes: &mut PrefixHashes) {
        hashes.clear();
        for name in names {
            hashes.add(&self.hasher, name, self.longest_in_use, |_, _, _| ());
        }
    }

    /// The longest prefix of every name, one after the other, whose hashes are at hand: nothing
    /// is prefetched (§3.4.1, precomputed hash values).
    ///
    /// # Panics
    /// If `hashes` are not those of these names, or `out` is shorter.
    pub fn longest_prefix_match_hashed(&self, names: &[&[u8]], hashes: &PrefixHashes, out: &mut [Option<PrefixMatch>]) {
        assert!(names.len() == hashes.names() && out.len() >= names.len());
        for (number, (name, out)) in names.iter().zip(out).enumerate() {
            *out = self.longest_prefix(name, hashes.of(number), 0);
        }
    }

    /// Lengths up to `known(i)` of name `i` are left out.
    #[inline(always)]
    fn search_batch(&self, names: &[&[u8]], known: impl Fn(usize) -> usize, out: &mut [Option<PrefixMatch>]) {
        assert!(names.len() <= DESIGN_BATCH_NAMES && out.len() >= names.len());
        HASHES.with_borrow_mut(|hashes| {
            hashes.clear();
            if self.options.prefetch == FibPrefetch::Batch {
                for (number, name) in names.iter().enumerate() {
                    self.hash(name, hashes, FibPrefetch::Batch, known(number));
                }
                return self.search_in_turn(names, hashes, known, out);
            }
            for (number, (name, out)) in names.iter().zip(out).enumerate() {
                hashes.clear();
                self.hash(name, hashes, self.options.prefetch, known(number));
                *out = self.longest_prefix(name, hashes.of(0), known(number));
            }
        });
    }

    /// Hashes one name's prefixes and fetches buckets as soon as their hashes are known.
    #[inline(always)]
    fn hash(&self, name: &[u8], hashes: &mut PrefixHashes, prefetch: FibPrefetch, known: usize) {
        let longest = self.longest_in_use;
        match prefetch {
            FibPrefetch::None => hashes.add(&self.hasher, name, longest, |_, _, _| ()),
            FibPrefetch::All => {
                hashes.add(&self.hasher, name, longest, |_, length, hash| self.tables[length].prefetch(hash))
            }
            FibPrefetch::First | FibPrefetch::Batch => {
                let (mut first, mut of_components) = (0, 0);
                hashes.add(&self.hasher, name, longest, |components, length, hash| {
                    if of_components != components {
                        (first, of_components) = (self.begin(components, known).next, components);
                    }
                    if length == first {
                        self.tables[length].prefetch(hash);
                    }
                });
            }
        }
    }
}

thread_local! {
    /// Kept from batch to batch.
    static HASHES: RefCell<PrefixHashes> = RefCell::default();
}

impl PrefixTable for HashTables {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        self.insert_prefix(prefix, number)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        self.remove_prefix(prefix)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        self.search_batch(names, |_| 0, out);
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.table_bytes()
            + self.names.bytes()
            + self.keeper.bytes()
            + self.order.bytes()
            + size_of::<Self>()
            + self.tables.capacity() * size_of::<FingerprintTable>()
    }
}

impl SearchFromLength for HashTables {
    fn longest_prefix_match_batch_from(
        &self,
        names: &[&[u8]],
        least_components: &[u16],
        out: &mut [Option<PrefixMatch>],
    ) {
        self.search_batch(names, |name| usize::from(least_components[name]).saturating_sub(1), out);
    }

    fn hash_lookups_from(&self, name: &[u8], least_components: u16) -> usize {
        let mut hashes = PrefixHashes::default();
        self.hash(name, &mut hashes, FibPrefetch::None, 0);
        self.count_look_ups(name, hashes.of(0), usize::from(least_components).saturating_sub(1))
    }
}
