//! Catalogue: which FIB designs are there, what are they called, and how is one made?
//!
//! The names are those of configuration (`fib.design`) and of the lab's records. A design
//! that is made without options has those under which it is fastest; the papers' own ways are
//! options ([`FibDesignOptions`]).
//!
//! To add a design (of a paper, trivial or new):
//!
//! 1. its module: a file in this folder, which implements [`PrefixTable`], and `pub mod` in `mod.rs`;
//! 2. a variant of [`FibDesign`] with its name in configuration; [`FibDesign::ALL`] and the look-up by name follow
//!    from it;
//! 3. an arm of [`FibDesign::build`]; for a route controller with separate tables also one of
//!    [`FibDesign::build_split`], for a lossy design its variant in [`FibDesign::is_lossless`];
//! 4. for a new option, a field of [`FibDesignOptions`], a line of `check_options`, a `Setting` with its extremes in
//!    `crates/designs/tests/oracles/design_options.rs`, and the settings in `crates/configuration/src/settings/fib.rs`;
//! 5. a test module in `crates/designs/tests/oracles`, with its `mod` line in `main.rs` there: it calls
//!    `equals_the_model` and `survives_churn` of `fib_designs.rs` with each way to make the design. A trie needs only
//!    a line in `trie_designs.rs`;
//! 6. a row in the table of `docs/fib-designs.md`, and a line in `CHANGELOG.md`.
//!
//! Through [`FibDesign::ALL`] a design takes part, without further lines, in:
//!
//! - the test below and the FIB's oracle (`tests/oracles/fib.rs`);
//! - the differential test of all designs with all options (`tests/oracles/fib_variants.rs`);
//! - the tests without memory (`tests/fib_designs_no_memory.rs`, `crates/cli/tests/memory_limit.rs`);
//! - the routers of `crates/router/tests/node/fib_designs.rs`; for a lossy design, also those of `lossy_fib.rs` there;
//! - the oracle of whole forwarders, `sim/tests/fib_forwarding.rs`; for a lossy design, also `core_and_edge.rs` there;
//! - the fuzz target `fib_designs` and the lab's experiment `fib-all`.

use super::bit_trie::BitTrie;
use super::character_trie::CharacterTrie;
use super::component_trie::ComponentTrie;
use super::default_table::DefaultTable;
use super::hash_tables::{HashSearch, HashTableOptions, HashTables, MarkerMaintenance, PrefixHash, StringMatching};
use super::level_pulling::{LevelPulling, LevelPullingOptions};
use super::min_ascii::NameCodes;
use super::name_tree_hash_table::NameTreeHashTable;
use super::name_trie::{LearnedNameTrie, NameTrie, NameTrieOptions};
use super::nce::NameComponentEncoding;
use super::npt::NamePrefixTrie;
use super::string_differentiation::key_bits::{MAX_FINGERPRINT_BITS, MAX_FINGERPRINTS};
use super::string_differentiation::patricia_leaf::MAX_LOCAL_BITS;
use super::string_differentiation::split;
use super::string_differentiation::{
    DefaultRoute, FhtOptions, Fingerprints, LeafLayout, PatriciaOptions, SlotFormat, StringDifferentiation,
};
use super::{BatchPrefetch, FibPrefetch};
use namewire_tables::MAX_NAME_COMPONENTS;
use namewire_tables::fib::{Fib, FibConfig, FibSearch, MAX_PREFIX_BYTES, NameStorage, PrefixTable, Split};
use namewire_tables::name_hash::{HashKey, hash_name};
use std::io;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

namewire_packet::names! {
    /// A way to hold the FIB.
    #[derive(Default)]
    pub enum FibDesign {
        /// The router's own table, longest first, all prefixes of a name in one bucket. The default.
        #[default]
        OneBucket = "one-bucket",
        /// The router's own table, longest first, one bucket for each length.
        BucketPerLength = "bucket-per-length",
        /// The router's own table as [`Self::OneBucket`], with its names in code: the smallest that searches so.
        Compact = "compact",
        /// Yuan15 ch. 3: binary search of hash tables by number of components.
        Binary = "binary",
        /// Yuan15 ch. 3: the same tables, longest first (CCNx).
        LongestFirst = "longest-first",
        /// Yuan15 §3.4.2: the same tables, shortest first.
        ShortestFirst = "shortest-first",
        /// So et al. 2013: the same tables, from a populated length to the deepest below it.
        TwoStage = "two-stage",
        /// NameTrie18: a character trie whose edges are a hash table.
        NameTrie = "name-trie",
        /// NameTrie18 compares with it (its HT): NFD's name tree.
        NameTree = "name-tree",
        /// NameTrie18 §III: every node a component.
        ComponentTrie = "component-trie",
        /// NameTrie18 §III: every node a string of bytes.
        CharacterTrie = "character-trie",
        /// NameTrie18 §III: every node a string of bits.
        BitTrie = "bit-trie",
        /// Wang et al. 2011, as NameTrie18 compares with it: the Name Prefix Trie.
        Npt = "npt",
        /// Wang et al. 2012, as NameTrie18 compares with it: name component encoding.
        Nce = "nce",
        /// Yuan15 §4.2: the speculative binary Patricia trie. Lossy.
        Sbpt = "sbpt",
        /// Yuan15 §4.3.3: the fingerprint-based Patricia trie. Lossy.
        Fpt = "fpt",
        /// Yuan15 §4.3.4: the fingerprint hash table. Lossy.
        Fht = "fht",
    }
}

/// What a design is made with; what is not said is what makes it fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FibDesignOptions {
    /// What is fetched ahead.
    pub prefetch: Option<FibPrefetch>,
    /// Of Yuan15's tables: the hash of prefixes.
    pub hash: Option<PrefixHash>,
    /// Of Yuan15's tables: when names are compared.
    pub matching: Option<StringMatching>,
    /// Of Yuan15's tables: how markers are kept right.
    pub maintenance: Option<MarkerMaintenance>,
    /// Of the 2-stage search: M, the length that it begins with; the one that most prefixes have at the time, unless
    /// told otherwise.
    pub first_components: Option<NonZeroU16>,
    /// Of Yuan15's tables: level pulling for prefixes with more children than this; none, unless told so.
    pub level_pulling: Option<NonZeroU32>,
    /// Of NameTrie: what its codes stand for; the paper's, unless told otherwise.
    pub name_codes: Option<NameCodes>,
    /// Of FHT: bits of a fingerprint, an even number from 12 to 24; 16, unless told otherwise. Of FPT: 1 to 32; 24,
    /// unless told otherwise.
    pub fingerprint_bits: Option<u8>,
    /// Of FPT: how many of the first components have a fingerprint, 1 to 4; 1, unless told otherwise.
    pub fingerprint_components: Option<u8>,
    /// Of FHT: bits of what a prefix leads to, 8 to 24, and so how many different numbers there can be; 16, unless told
    /// otherwise. Of Patricia tries: 1 to 32; larger numbers take wide leaves; 8, unless told otherwise.
    pub port_bits: Option<u8>,
    /// Of Patricia tries: prefixes of this many components have leaves that are not wide; 1, unless told otherwise.
    pub leaf_components: Option<u16>,
    /// Of Patricia tries with a default table: bits of a local fingerprint at most, 0 to 15. A leaf that needs more
    /// leaves names of the default table to leaves of their own. [`LOCAL_BITS`], unless told otherwise.
    pub local_bits: Option<u8>,
    /// Of Patricia tries: bytes of the longest prefix, 1 to [`MAX_PREFIX_BYTES`]. The fewer, the smaller the nodes; a
    /// longer prefix is refused. No limit of its own, unless told otherwise.
    pub prefix_bytes_max: Option<u16>,
    /// Of lossy designs: what a rule for the root prefix is; exact, unless told otherwise.
    pub default_route: Option<DefaultRoute>,
}

/// Local fingerprints of log₂(m/n) + 2 bits (Yuan15 §4.3.5), for 16 names of the whole table on each stored one.
pub const LOCAL_BITS: u8 = 6;

/// Why a design cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FibDesignError {
    /// The design has no such option, or not with this value.
    #[error("the FIB design {design} knows no {option} = {value:?}")]
    Option {
        /// The design.
        design: &'static str,
        /// The option.
        option: &'static str,
        /// What was asked for.
        value: String,
    },
    /// The kernel grants no memory.
    #[error("no memory for the FIB: {0}")]
    NoMemory(#[from] io::Error),
}

impl FibDesign {
    /// How the router's own table searches, if it is that one.
    pub const fn search(self) -> Option<FibSearch> {
        match self {
            Self::OneBucket | Self::Compact => Some(FibSearch::OneBucket),
            Self::BucketPerLength => Some(FibSearch::LongestFirst),
            _ => None,
        }
    }

    /// How the router's own table stores names, if the design says it; else as it is configured.
    pub const fn names(self) -> Option<NameStorage> {
        match self {
            Self::Compact => Some(NameStorage::Encoded),
            _ => None,
        }
    }

    /// Whether a name that has no prefix is always told so. A router with a lossy design belongs
    /// into a core whose edge routers verify (Yuan15 §4.2).
    pub const fn is_lossless(self) -> bool {
        !matches!(self, Self::Sbpt | Self::Fpt | Self::Fht)
    }

    /// An empty FIB of this size, for a router: its own table, or two copies of a design of the literature.
    ///
    /// # Errors
    /// [`FibDesignError`].
    pub fn fib(self, options: &FibDesignOptions, config: FibConfig, key: HashKey) -> Result<Fib, FibDesignError> {
        if let Some(search) = self.search() {
            self.check(options)?;
            let names = self.names().unwrap_or(config.names);
            return Ok(Fib::with_config(FibConfig { search, names, ..config }, key)?);
        }
        let capacity_entries = config.capacity_entries;
        if let Some(split) = self.build_split(options, &config, key)? {
            return Ok(Fib::of_split(split, capacity_entries, key));
        }
        let table = || self.build(options, &config, key);
        Ok(Fib::of_design([table()?, table()?], capacity_entries, key))
    }

    /// An empty table of this size.
    ///
    /// # Errors
    /// [`FibDesignError`].
    pub fn build(
        self,
        options: &FibDesignOptions,
        size: &FibConfig,
        key: HashKey,
    ) -> Result<Box<dyn PrefixTable>, FibDesignError> {
        self.check_options(options)?;
        let capacity = size.capacity_entries;
        // Of designs with a hash of their own.
        let seed = hash_name(&key, b"");
        Ok(match self {
            Self::OneBucket | Self::BucketPerLength | Self::Compact => {
                let search = self.search().unwrap_or_default();
                let names = self.names().unwrap_or(size.names);
                self.only_prefetch(options, &[FibPrefetch::Batch])?;
                Box::new(DefaultTable::new(FibConfig { search, names, ..*size }, key)?)
            }
            Self::Binary => self.hash_tables(HashSearch::Binary, options, size, seed)?,
            Self::LongestFirst => self.hash_tables(HashSearch::LongestFirst, options, size, seed)?,
            Self::ShortestFirst => self.hash_tables(HashSearch::ShortestFirst, options, size, seed)?,
            Self::TwoStage => {
                // At first, where it is chosen.
                let first_components = options.first_components.unwrap_or(NonZeroU16::MIN);
                let search = HashSearch::TwoStage { first_components: first_components.get() };
                self.hash_tables(search, options, size, seed)?
            }
            Self::NameTrie => {
                let look_ups = self.trie_prefetch(options)?;
                let codes = options.name_codes.unwrap_or_default();
                let options = NameTrieOptions { coding: codes.coding(), look_ups, pages: size.pages };
                match codes {
                    NameCodes::Learned => Box::new(LearnedNameTrie::new(capacity, seed, options)?),
                    NameCodes::Plain | NameCodes::Web => Box::new(NameTrie::new(capacity, seed, options)?),
                }
            }
            Self::NameTree => {
                let look_ups = self.trie_prefetch(options)?;
                Box::new(NameTreeHashTable::new(capacity, look_ups, size.pages)?)
            }
            Self::ComponentTrie => Box::new(ComponentTrie::new(capacity, self.trie_prefetch(options)?, size.pages)?),
            Self::CharacterTrie => Box::new(CharacterTrie::new(capacity, self.trie_prefetch(options)?, size.pages)?),
            Self::BitTrie => Box::new(BitTrie::new(capacity, self.trie_prefetch(options)?, size.pages)?),
            Self::Npt => Box::new(NamePrefixTrie::new(capacity, self.trie_prefetch(options)?, size.pages)?),
            Self::Nce => Box::new(NameComponentEncoding::new(capacity, self.trie_prefetch(options)?, size.pages)?),
            Self::Sbpt => self.patricia_trie(PatriciaOptions::sbpt(capacity), options, size, key)?,
            Self::Fpt => self.patricia_trie(PatriciaOptions::fpt(capacity), options, size, key)?,
            Self::Fht => {
                let default_route = options.default_route.unwrap_or_default();
                let options = self.fht_options(options, size)?;
                Box::new(StringDifferentiation::with_fingerprint_hash_table(capacity, key, options, default_route)?)
            }
        })
    }

    /// One controller and two tables of this size, if the design keeps its names in a controller: what a
    /// router has in place of two whole tables.
    ///
    /// # Errors
    /// [`FibDesignError`].
    pub fn build_split(
        self,
        options: &FibDesignOptions,
        size: &FibConfig,
        key: HashKey,
    ) -> Result<Option<Split>, FibDesignError> {
        self.check_options(options)?;
        let capacity = size.capacity_entries;
        let default_route = options.default_route.unwrap_or_default();
        let patricia = |trie| {
            let trie = self.patricia_options(trie, options, size)?;
            Ok::<_, FibDesignError>(split::patricia(key, trie, is_distributed(options), default_route)?)
        };
        Ok(match self {
            Self::Sbpt => Some(patricia(PatriciaOptions::sbpt(capacity))?),
            Self::Fpt => Some(patricia(PatriciaOptions::fpt(capacity))?),
            Self::Fht => Some(split::fht(capacity, key, self.fht_options(options, size)?, default_route)?),
            _ => None,
        })
    }

    fn has_default_route(self, options: &FibDesignOptions) -> bool {
        !self.is_lossless() && (self != Self::Fht || !is_distributed(options))
    }

    fn fht_options(self, options: &FibDesignOptions, size: &FibConfig) -> Result<FhtOptions, FibDesignError> {
        let prefetch = self.only_prefetch(options, &[FibPrefetch::Batch, FibPrefetch::None])?;
        Ok(FhtOptions {
            format: self.slot_format(options)?,
            pages: size.pages,
            prefetch: prefetch == FibPrefetch::Batch,
            ..FhtOptions::default()
        })
    }

    /// Whether the design can be made with these options.
    ///
    /// # Errors
    /// [`FibDesignError::Option`] if not.
    pub fn check(self, options: &FibDesignOptions) -> Result<(), FibDesignError> {
        self.build(options, &FibConfig::new(1), HashKey::from_seed(0)).map(drop)
    }

    fn hash_tables(
        self,
        search: HashSearch,
        options: &FibDesignOptions,
        size: &FibConfig,
        seed: u64,
    ) -> Result<Box<dyn PrefixTable>, FibDesignError> {
        let prefetch = options.prefetch.unwrap_or(FibPrefetch::Batch);
        let default = HashTableOptions::SIP_E;
        let level_pulling = options.level_pulling;
        let options = HashTableOptions {
            search,
            prefetch,
            hash: options.hash.unwrap_or(default.hash),
            matching: options.matching.unwrap_or(default.matching),
            maintenance: options.maintenance.unwrap_or(default.maintenance),
            pages: size.pages,
            is_first_stage_chosen: options.first_components.is_none(),
            ..default
        };
        let tables = HashTables::new(size.capacity_entries, [seed, !seed], options)?;
        Ok(match level_pulling {
            None => Box::new(tables),
            Some(children) => {
                let pulled =
                    LevelPullingOptions { threshold_children: children.get(), ..LevelPullingOptions::default() };
                Box::new(LevelPulling::new(tables, pulled, HashKey::from_seed(seed), size.pages)?)
            }
        })
    }

    fn patricia_trie(
        self,
        trie: PatriciaOptions,
        options: &FibDesignOptions,
        size: &FibConfig,
        key: HashKey,
    ) -> Result<Box<dyn PrefixTable>, FibDesignError> {
        let default_route = options.default_route.unwrap_or_default();
        let trie = self.patricia_options(trie, options, size)?;
        Ok(Box::new(StringDifferentiation::with_patricia_trie(key, trie, is_distributed(options), default_route)?))
    }

    fn patricia_options(
        self,
        trie: PatriciaOptions,
        options: &FibDesignOptions,
        size: &FibConfig,
    ) -> Result<PatriciaOptions, FibDesignError> {
        let is_batched = self.trie_prefetch(options)? == BatchPrefetch::Batch;
        let local_bits = if is_distributed(options) { options.local_bits.unwrap_or(LOCAL_BITS) } else { 0 };
        let leaves = LeafLayout {
            number_bits: options.port_bits.map_or(trie.leaves.number_bits, u32::from),
            components: options.leaf_components.map_or(trie.leaves.components, usize::from),
            local_bits_max: local_bits.into(),
        };
        let fingerprints = Fingerprints {
            bits: options.fingerprint_bits.map_or(trie.fingerprints.bits, u32::from),
            components: options.fingerprint_components.map_or(trie.fingerprints.components, usize::from),
        };
        let rule_bytes_max = options.prefix_bytes_max.map_or(trie.rule_bytes_max, usize::from);
        let within = [
            ("port_bits", leaves.number_bits as usize, 1..=u32::BITS as usize),
            ("leaf_components", leaves.components, 0..=MAX_NAME_COMPONENTS),
            ("local_bits", leaves.local_bits_max as usize, 0..=MAX_LOCAL_BITS as usize),
            (
                "fingerprint_bits",
                fingerprints.bits as usize,
                // Only sBPT, which has no such option, has none.
                usize::from(options.fingerprint_bits.is_some())..=MAX_FINGERPRINT_BITS as usize,
            ),
            ("fingerprint_components", fingerprints.components, 1..=MAX_FINGERPRINTS),
            ("prefix_bytes_max", rule_bytes_max, 1..=MAX_PREFIX_BYTES),
        ];
        match within.into_iter().find(|(_, value, range)| !range.contains(value)) {
            Some((option, value, _)) => Err(self.no_option(option, value.to_string())),
            None => Ok(PatriciaOptions { is_batched, pages: size.pages, leaves, fingerprints, rule_bytes_max, ..trie }),
        }
    }

    fn slot_format(self, options: &FibDesignOptions) -> Result<SlotFormat, FibDesignError> {
        let format = SlotFormat {
            fingerprint_bits: options.fingerprint_bits.unwrap_or(16).into(),
            port_bits: options.port_bits.unwrap_or(16).into(),
        };
        if format.is_valid() {
            return Ok(format);
        }
        let SlotFormat { fingerprint_bits, port_bits } = format;
        Err(self.no_option("fingerprint_bits and port_bits", format!("{fingerprint_bits} and {port_bits}")))
    }

    /// Refuses options that the design does not have; of `prefetch` it is told where it is used.
    fn check_options(self, options: &FibDesignOptions) -> Result<(), FibDesignError> {
        let is_trie = matches!(self, Self::Sbpt | Self::Fpt);
        let is_yuan = matches!(self, Self::Binary | Self::LongestFirst | Self::ShortestFirst | Self::TwoStage);
        let given = [
            (is_yuan, "hash", options.hash.map(|hash| hash.name().to_owned())),
            (is_yuan, "string_matching", options.matching.map(|matching| matching.name().to_owned())),
            (is_yuan, "marker_maintenance", options.maintenance.map(|maintenance| maintenance.name().to_owned())),
            (is_yuan, "level_pulling", options.level_pulling.map(|children| children.to_string())),
            (self == Self::NameTrie, "name_codes", options.name_codes.map(|codes| codes.name().to_owned())),
            (self == Self::TwoStage, "first_components", options.first_components.map(|first| first.to_string())),
            (
                matches!(self, Self::Fht | Self::Fpt),
                "fingerprint_bits",
                options.fingerprint_bits.map(|bits| bits.to_string()),
            ),
            (
                self == Self::Fpt,
                "fingerprint_components",
                options.fingerprint_components.map(|components| components.to_string()),
            ),
            (is_trie, "leaf_components", options.leaf_components.map(|components| components.to_string())),
            (is_trie && is_distributed(options), "local_bits", options.local_bits.map(|bits| bits.to_string())),
            (is_trie, "prefix_bytes_max", options.prefix_bytes_max.map(|bytes| bytes.to_string())),
            // Fingerprint hash tables with a default table are right where all rules have one length.
            (
                self.has_default_route(options),
                "default_route",
                options.default_route.map(|route| route.name().to_owned()),
            ),
            (is_trie || self == Self::Fht, "port_bits", options.port_bits.map(|bits| bits.to_string())),
        ];
        for (has_it, option, value) in given {
            if let Some(value) = value.filter(|_| !has_it) {
                return Err(self.no_option(option, value));
            }
        }
        Ok(())
    }

    fn trie_prefetch(self, options: &FibDesignOptions) -> Result<BatchPrefetch, FibDesignError> {
        Ok(match self.only_prefetch(options, &[FibPrefetch::Batch, FibPrefetch::None])? {
            FibPrefetch::None => BatchPrefetch::None,
            _ => BatchPrefetch::Batch,
        })
    }

    /// The way asked for if it is one of these, the first if none is.
    fn only_prefetch(self, options: &FibDesignOptions, ways: &[FibPrefetch]) -> Result<FibPrefetch, FibDesignError> {
        match options.prefetch {
            None => Ok(ways[0]),
            Some(way) if ways.contains(&way) => Ok(way),
            Some(way) => Err(self.no_option("prefetch", way.name().to_owned())),
        }
    }

    fn no_option(self, option: &'static str, value: String) -> FibDesignError {
        FibDesignError::Option { design: self.name(), option, value }
    }
}

/// No design, or no value of an option, has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// It never had; the names that there are.
    #[error("expected one of {}", .0.join(", "))]
    NotKnown(Vec<&'static str>),
    /// A design that was dropped.
    #[error(transparent)]
    Dropped(#[from] DroppedDesign),
}

/// A design that namewire had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the FIB design {name} was dropped; its successor is {successor}")]
pub struct DroppedDesign {
    /// Its name.
    pub name: &'static str,
    /// The design to take instead.
    pub successor: &'static str,
}

/// `marker-filter` took 1.36 times as long as the default per look-up, and more memory.
const DROPPED: [DroppedDesign; 1] = [DroppedDesign { name: "marker-filter", successor: "one-bucket" }];

impl FromStr for FibDesign {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        // As the paper writes it.
        let name = if name == "nametrie" { "name-trie" } else { name };
        match DROPPED.iter().find(|dropped| dropped.name == name) {
            Some(dropped) => Err(UnknownName::Dropped(*dropped)),
            None => Self::find(name).ok_or_else(|| UnknownName::NotKnown(Self::ALL.map(Self::name).to_vec())),
        }
    }
}

/// Whether there is a default table, from which the local fingerprints of a trie tell its own rules.
fn is_distributed(options: &FibDesignOptions) -> bool {
    matches!(options.default_route, Some(DefaultRoute::Followed | DefaultRoute::Table(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::PageSize;
    use namewire_tables::fib::FibRefusal;

    #[test]
    fn every_design_has_a_unique_name_and_can_be_made() {
        for (place, design) in FibDesign::ALL.into_iter().enumerate() {
            assert_eq!(design.name().parse(), Ok(design));
            assert!(FibDesign::ALL[..place].iter().all(|other| other.name() != design.name()));
            let options = FibDesignOptions::default();
            let mut table = design.build(&options, &FibConfig::new(100), HashKey::from_seed(1)).expect("small");
            assert_eq!(table.insert(b"\x08\x01a", 7), Ok(None));
            let mut found = [None];
            table.longest_prefix_match_batch(&[b"\x08\x01a\x08\x01b"], &mut found);
            let found = found[0].map(|found| (found.number, found.prefix_bytes));
            assert_eq!((found, table.is_lossless()), (Some((7, 3)), design.is_lossless()), "{}", design.name());
        }
        assert_eq!(FibDesign::ALL[0], FibDesign::default());
        let unknown = "trie".parse::<FibDesign>().expect_err("no such design");
        assert!(unknown.to_string().starts_with("expected one of one-bucket, "));
        let dropped = "marker-filter".parse::<FibDesign>().expect_err("dropped");
        assert_eq!(dropped.to_string(), "the FIB design marker-filter was dropped; its successor is one-bucket");
    }

    /// Whether explicit ones are reserved or not.
    #[test]
    fn every_design_can_be_made_on_any_pages() {
        for (design, pages) in FibDesign::ALL
            .into_iter()
            .filter(|design| design.search().is_none())
            .flat_map(|design| PageSize::ALL.map(|pages| (design, pages)))
        {
            let size = FibConfig { pages, ..FibConfig::new(5_000) };
            let table = design.build(&FibDesignOptions::default(), &size, HashKey::from_seed(1));
            let mut table = table.unwrap_or_else(|error| panic!("{} on {}: {error}", design.name(), pages.name()));
            for number in 0..5_000_u32 {
                let name = [&[8, 4][..], &number.to_be_bytes(), &[8, 8], &u64::from(number).to_le_bytes()].concat();
                assert_eq!(table.insert(&name, number % 250), Ok(None), "{}", design.name());
            }
        }
    }

    #[test]
    fn an_option_that_a_design_does_not_have_is_refused() {
        let options = FibDesignOptions { prefetch: Some(FibPrefetch::First), ..FibDesignOptions::default() };
        let refused = FibDesign::Npt.build(&options, &FibConfig::new(1), HashKey::from_seed(1)).err();
        let message = refused.map(|refused| refused.to_string());
        assert_eq!(message.as_deref(), Some("the FIB design npt knows no prefetch = \"first\""));
        let options = FibDesignOptions { hash: Some(PrefixHash::City), ..FibDesignOptions::default() };
        assert!(FibDesign::NameTrie.check(&options).is_err() && FibDesign::Binary.check(&options).is_ok());
        let options = FibDesignOptions { name_codes: Some(NameCodes::Web), ..FibDesignOptions::default() };
        assert!(FibDesign::NameTrie.check(&options).is_ok() && FibDesign::Binary.check(&options).is_err());
    }

    #[test]
    fn codes_for_groups_make_a_name_trie_smaller() {
        let bytes = |codes| {
            let options = FibDesignOptions { name_codes: Some(codes), ..FibDesignOptions::default() };
            let mut trie =
                FibDesign::NameTrie.build(&options, &FibConfig::new(10_000), HashKey::from_seed(1)).expect("small");
            for number in 0..10_000_u32 {
                // No two names share more than their first digits.
                let value = format!("{:08x}onlineshop.com", number.wrapping_mul(0x9e37_79b9));
                let name = [&[8, value.len() as u8], value.as_bytes()].concat();
                assert_eq!(trie.insert(&name, number), Ok(None));
            }
            trie.bytes()
        };
        let [plain, web, learned] = NameCodes::ALL.map(bytes);
        assert!(web * 10 < plain * 9, "{web} bytes with groups, {plain} without");
        assert!(learned < web, "{learned} bytes with learned groups, {web} with those of the web");
    }

    #[test]
    fn tries_take_their_options_within_limits() {
        let none = FibDesignOptions::default();
        let followed = FibDesignOptions { default_route: Some(DefaultRoute::Followed), ..none };
        let wide = FibDesignOptions {
            fingerprint_bits: Some(32),
            fingerprint_components: Some(4),
            port_bits: Some(32),
            leaf_components: Some(256),
            local_bits: Some(15),
            prefix_bytes_max: Some(16),
            ..followed
        };
        assert!(FibDesign::Fpt.check(&wide).is_ok());
        for (design, options, message) in [
            (
                FibDesign::Fpt,
                FibDesignOptions { fingerprint_bits: Some(0), ..none },
                "fpt knows no fingerprint_bits = \"0\"",
            ),
            (FibDesign::Sbpt, FibDesignOptions { fingerprint_bits: Some(8), ..none }, "sbpt knows no fingerprint_bits"),
            (FibDesign::Sbpt, FibDesignOptions { port_bits: Some(33), ..none }, "sbpt knows no port_bits = \"33\""),
            (FibDesign::Fpt, FibDesignOptions { local_bits: Some(6), ..none }, "fpt knows no local_bits"),
            (FibDesign::Fpt, FibDesignOptions { local_bits: Some(16), ..followed }, "fpt knows no local_bits = \"16\""),
            (FibDesign::Fht, FibDesignOptions { leaf_components: Some(1), ..none }, "fht knows no leaf_components"),
            (FibDesign::Fpt, FibDesignOptions { prefix_bytes_max: Some(0), ..none }, "fpt knows no prefix_bytes_max"),
        ] {
            let refusal = design.check(&options).expect_err(message).to_string();
            assert!(refusal.contains(message), "{refusal}");
        }
        let mut table = FibDesign::Fpt.build(&wide, &FibConfig::new(10), HashKey::from_seed(1)).expect("small");
        let component = |bytes: usize| [&[8, bytes as u8], &vec![b'a'; bytes][..]].concat();
        assert_eq!(table.insert(&component(14), 7), Ok(None));
        assert_eq!(table.insert(&component(15), 7), Err(FibRefusal::PrefixTooLong));
    }
}
