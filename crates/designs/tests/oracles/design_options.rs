//! Every FIB design with its options: which options exist, and which answers must be right.
//!
//! An option is set by a [`Setting`]. A design takes the settings that it has ([`Variant::new`]); the others are left
//! out. So a list of settings fits every design, and a new design takes part without further lines.

use crate::fib_designs::{CAPACITY, Compared};
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::hash_tables::{MarkerMaintenance, PrefixHash, StringMatching};
use namewire_designs::fib::min_ascii::NameCodes;
use namewire_designs::fib::string_differentiation::DefaultRoute;
use namewire_tables::HashKey;
use namewire_tables::fib::{FibConfig, MAX_PREFIX_BYTES, PrefixTable};
use proptest::prelude::*;
use proptest::sample::select;
use std::num::{NonZeroU16, NonZeroU32};

/// One option with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Prefetch(FibPrefetch),
    Hash(PrefixHash),
    Matching(StringMatching),
    Maintenance(MarkerMaintenance),
    NameCodes(NameCodes),
    FirstComponents(u16),
    LevelPulling(u32),
    FingerprintBits(u8),
    FingerprintComponents(u8),
    PortBits(u8),
    LeafComponents(u16),
    LocalBits(u8),
    PrefixBytesMax(u16),
}

impl Setting {
    fn apply(self, options: FibDesignOptions) -> FibDesignOptions {
        match self {
            Self::Prefetch(prefetch) => FibDesignOptions { prefetch: Some(prefetch), ..options },
            Self::Hash(hash) => FibDesignOptions { hash: Some(hash), ..options },
            Self::Matching(matching) => FibDesignOptions { matching: Some(matching), ..options },
            Self::Maintenance(maintenance) => FibDesignOptions { maintenance: Some(maintenance), ..options },
            Self::NameCodes(codes) => FibDesignOptions { name_codes: Some(codes), ..options },
            Self::FirstComponents(first) => FibDesignOptions { first_components: NonZeroU16::new(first), ..options },
            Self::LevelPulling(children) => FibDesignOptions { level_pulling: NonZeroU32::new(children), ..options },
            Self::FingerprintBits(bits) => FibDesignOptions { fingerprint_bits: Some(bits), ..options },
            Self::FingerprintComponents(n) => FibDesignOptions { fingerprint_components: Some(n), ..options },
            Self::PortBits(bits) => FibDesignOptions { port_bits: Some(bits), ..options },
            Self::LeafComponents(n) => FibDesignOptions { leaf_components: Some(n), ..options },
            Self::LocalBits(bits) => FibDesignOptions { local_bits: Some(bits), ..options },
            Self::PrefixBytesMax(bytes) => FibDesignOptions { prefix_bytes_max: Some(bytes), ..options },
        }
    }
}

/// Every option at every named value, or at its least and its greatest number.
fn extremes() -> Vec<Setting> {
    let named = [
        FibPrefetch::ALL.map(Setting::Prefetch).to_vec(),
        PrefixHash::ALL.map(Setting::Hash).to_vec(),
        StringMatching::ALL.map(Setting::Matching).to_vec(),
        MarkerMaintenance::ALL.map(Setting::Maintenance).to_vec(),
        NameCodes::ALL.map(Setting::NameCodes).to_vec(),
    ];
    let numbers = [
        [1, 256, u16::MAX].map(Setting::FirstComponents).to_vec(),
        [1, u32::MAX].map(Setting::LevelPulling).to_vec(),
        // The first two are FPT's, the others FHT's.
        [1, 32, 12, 24].map(Setting::FingerprintBits).to_vec(),
        [1, 4].map(Setting::FingerprintComponents).to_vec(),
        [1, 32, 8, 24].map(Setting::PortBits).to_vec(),
        [0, 256].map(Setting::LeafComponents).to_vec(),
        [0, 15].map(Setting::LocalBits).to_vec(),
        [1, 16, MAX_PREFIX_BYTES as u16].map(Setting::PrefixBytesMax).to_vec(),
    ];
    named.concat().into_iter().chain(numbers.concat()).collect()
}

/// The numbers of the operations are among those of the two tables, and others.
const DEFAULT_ROUTES: [Option<DefaultRoute>; 6] = [
    None,
    Some(DefaultRoute::Exact),
    Some(DefaultRoute::Speculative),
    Some(DefaultRoute::Table(0)),
    Some(DefaultRoute::Table(4)),
    Some(DefaultRoute::Followed),
];

/// Any value of any option.
fn setting() -> impl Strategy<Value = Setting> {
    let numbers = prop_oneof![
        (1..8_u16).prop_map(Setting::FirstComponents),
        (1..4_u32).prop_map(Setting::LevelPulling),
        (1..=32_u8).prop_map(Setting::FingerprintBits),
        (1..=4_u8).prop_map(Setting::FingerprintComponents),
        (1..=32_u8).prop_map(Setting::PortBits),
        (0..=5_u16).prop_map(Setting::LeafComponents),
        (0..=15_u8).prop_map(Setting::LocalBits),
        (1..300_u16).prop_map(Setting::PrefixBytesMax),
    ];
    prop_oneof![select(extremes()), numbers]
}

/// Any design with a few of its options.
pub(crate) fn variant() -> impl Strategy<Value = Variant> {
    let settings = prop::collection::vec(setting(), 0..6);
    (select(&FibDesign::ALL), select(&DEFAULT_ROUTES), settings)
        .prop_map(|(design, route, settings)| Variant::new(design, route, &settings))
}

/// Every design, with every way to treat the root if it has them, and there each option alone at its extremes.
pub(crate) fn one_option_each() -> Vec<Variant> {
    let routes = |design: FibDesign| DEFAULT_ROUTES.map(move |route| (design, route));
    let settings = extremes().into_iter().map(Some).chain([None]);
    let mut variants: Vec<Variant> = Vec::new();
    for (design, route) in FibDesign::ALL.into_iter().flat_map(routes) {
        for setting in settings.clone() {
            let variant = Variant::new(design, route, setting.as_slice());
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
    }
    for setting in extremes() {
        let has_it = |variant: &Variant| setting.apply(variant.options) == variant.options;
        assert!(variants.iter().any(has_it), "no design takes {setting:?}");
    }
    variants
}

/// A design as a router may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) design: FibDesign,
    pub(crate) options: FibDesignOptions,
}

impl Variant {
    /// The design with the settings that it has; a setting may need one before it.
    fn new(design: FibDesign, default_route: Option<DefaultRoute>, settings: &[Setting]) -> Self {
        let none = FibDesignOptions::default();
        let with_route = FibDesignOptions { default_route, ..none };
        let options = if design.check(&with_route).is_ok() { with_route } else { none };
        let options = settings.iter().fold(options, |options, setting| {
            let changed = setting.apply(options);
            if design.check(&changed).is_ok() { changed } else { options }
        });
        Self { design, options }
    }

    /// One table.
    pub(crate) fn table(&self, seed: u64) -> Box<dyn PrefixTable> {
        let table = self.design.build(&self.options, &FibConfig::new(CAPACITY), HashKey::from_seed(seed));
        table.expect("memory for a small table")
    }

    pub(crate) fn compared(&self) -> Compared {
        match self.options.default_route {
            None | Some(DefaultRoute::Exact) => Compared::Matches,
            Some(_) => Compared::NumbersBelowTheRoot,
        }
    }

    /// Bytes of the longest prefix that it takes.
    pub(crate) fn prefix_bytes_max(&self) -> usize {
        self.options.prefix_bytes_max.map_or(MAX_PREFIX_BYTES, usize::from)
    }
}
