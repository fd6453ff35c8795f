//! Config: the size of the FIB, how it is searched, and how it stores names.

use super::unit::{HEADER_UNITS, UNIT_BYTES};
use crate::pages::PageSize;

/// The size of a FIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibConfig {
    /// The most prefixes; up to 2³² − 1.
    pub capacity_entries: usize,
    /// The most bytes of all entries: for each entry 8, its name and up to 3 of fill. Removed entries count
    /// while readers may still hold them. Up to 2³⁴. Takes address space, and memory when it is used; with
    /// explicit huge pages memory at once.
    pub entry_bytes: usize,
    /// Pages of the entries and of the index.
    pub pages: PageSize,
    /// How the FIB searches for the longest prefix.
    pub search: FibSearch,
    /// How the FIB stores names.
    pub names: NameStorage,
}

namewire_packet::names! {
    /// How the names of prefixes are stored. The answers are the same, and so are the limits.
    ///
    /// Measured in turn on a busy machine (Zen 4, counter of 2.6 GHz), batches with hashing, names requested
    /// with two more components. Cycles per look-up and bytes per name, everything counted:
    ///
    /// | prefixes | inline | encoded | NameTrie18's trie |
    /// | --- | --- | --- | --- |
    /// | 3,054,593 domain names (Tranco, UT1) | 565 and 40.3 | 683 and 25.9 | 1386 and 53.9 |
    /// | 509,774 addresses (UT1) | 689 and 73.9 | 1023 and 49.2 | 1506 and 66.7 |
    /// | 111,122 addresses of software, tables in the caches | 797 and 105.9 | 1193 and 61.1 | 1081 and 72.8 |
    ///
    /// N.B. Two other ways to need less memory were tried. An index 88 or 92 % full instead of 80: 25.1 and
    /// 24.8 bytes per domain name for 5 and 23 % more time. Entries that refer to the entry of their longest
    /// prefix (computed): 0.2 bytes less per domain name, 5.6 less per address, for a line more per look-up;
    /// refused.
    #[derive(Default)]
    pub enum NameStorage {
        /// As they are. The default: the fastest to compare.
        #[default]
        Inline = "inline",
        /// In a code that makes text shorter; names that it would not shorten stay as they are.
        Encoded = "encoded",
    }
}

/// The text names no [`NameStorage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("names of FIB entries are stored \"inline\" or \"encoded\"")]
pub struct UnknownNameStorage;

impl std::str::FromStr for NameStorage {
    type Err = UnknownNameStorage;

    fn from_str(text: &str) -> Result<Self, UnknownNameStorage> {
        Self::find(text).ok_or(UnknownNameStorage)
    }
}

namewire_packet::names! {
    /// How the longest prefix is searched for. All ways find the same.
    ///
    /// Measured with 13,548,815 prefixes of 2 to 6 components in batches, hashing included, machine busy,
    /// variants in turn. Cycles of a 2.6 GHz counter (Zen 4) per look-up, and bytes per entry beyond its name:
    /// one bucket 266 and 17.8, longest first 365 and 17.8. Tried and dropped: binary search over the lengths,
    /// by markers in a filter, 431 and 19.8. It asks only three markers, but each is a line as far away as a
    /// bucket.
    #[derive(Default)]
    pub enum FibSearch {
        /// Longest first. All prefixes of a name with two components or more begin in one bucket, so that one
        /// line serves all their lengths. The default.
        #[default]
        OneBucket = "longest first, one bucket",
        /// Longest first, one bucket for each length: the search of the papers.
        LongestFirst = "longest first",
    }
}

/// How many components prefixes share that begin in one bucket. As many as the shortest prefix of a population that is
/// not all under a few names: with 1, all names of a top-level domain would crowd into one bucket.
pub(super) const TOGETHER_COMPONENTS: usize = 2;

impl FibSearch {
    /// How many components must agree for prefixes to begin in one bucket.
    pub(super) const fn together_components(self) -> usize {
        match self {
            Self::OneBucket => TOGETHER_COMPONENTS,
            Self::LongestFirst => usize::MAX,
        }
    }
}

impl FibConfig {
    /// Room for this many prefixes of 120 bytes on average, on transparent huge pages.
    pub fn new(capacity_entries: usize) -> Self {
        let entry_bytes = capacity_entries.saturating_mul(128).clamp(16 << 20, 1 << 34);
        Self {
            capacity_entries,
            entry_bytes,
            pages: PageSize::default(),
            search: FibSearch::default(),
            names: NameStorage::default(),
        }
    }

    /// Room for this many prefixes of this many bytes in all, on transparent huge pages. Leaves little room
    /// for free pieces that are too small to use once the FIB is full.
    pub fn for_prefixes(capacity_entries: usize, prefix_bytes: usize) -> Self {
        let entry_bytes = prefix_bytes.saturating_add(beside_names(capacity_entries)).clamp(16 << 20, 1 << 34);
        Self { entry_bytes, ..Self::new(capacity_entries) }
    }

    /// Bytes of prefixes for which there is room in the router's own table, however many they are: the inverse of
    /// [`FibConfig::for_prefixes`].
    pub const fn prefix_bytes(&self) -> usize {
        self.entry_bytes.saturating_sub(beside_names(self.capacity_entries))
    }
}

/// The most bytes that this many entries take beside their names.
const fn beside_names(entries: usize) -> usize {
    entries.saturating_mul((HEADER_UNITS + 1) * UNIT_BYTES - 1)
}
