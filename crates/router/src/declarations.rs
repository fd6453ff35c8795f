//! Faces, routes and strategies that somebody declared: made by management commands, and
//! changed as a difference when the declarations change.
//!
//! [`Keeper::apply`] compares what is declared with what it has made before. What left goes
//! (routes, then faces, then strategies, which get their default again), what is new,
//! different or lost comes; nothing else is touched, whoever made it. A host name that cannot be
//! resolved, or a connection that cannot be made, is tried again by [`Keeper::retry`], as is a face
//! that closed ([`Keeper::note_lost`]); what management refuses is not.
//!
//! A face is known by its URI as written; two spellings of one address lead to one face,
//! which stays until both are gone.

mod keeper;
mod works_of_others;

use crate::configuration::{
    Settings,
    settings::{FaceEntry, Persistency, RouteEntry, StrategyEntry},
    text::{Prefix, Uri},
};
use keeper::Ends;
pub use keeper::{Keeper, Problem};
use namewire_engine::StrategyTable;
use namewire_management::DEFAULT_CHOICES;
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, FacePersistency, face_flags},
};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody wants to be there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// Faces.
    pub faces: Vec<FaceEntry>,
    /// Routes.
    pub routes: Vec<RouteEntry>,
    /// Strategies.
    pub strategies: Vec<StrategyEntry>,
    /// Prefixes whose default strategy is not wanted.
    pub unset: Vec<Prefix>,
}

impl Declarations {
    /// What a configuration declares.
    pub fn of(settings: &Settings) -> Self {
        Declarations {
            faces: settings.face.clone(),
            routes: settings.route.clone(),
            strategies: settings.strategy.clone(),
            unset: Vec::new(),
        }
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty() && self.routes.is_empty() && self.strategies.is_empty() && self.unset.is_empty()
    }

    /// The faces by their ends, those that only routes name included.
    fn faces_by_ends(&self) -> BTreeMap<Ends, FaceEntry> {
        let declared: BTreeSet<&Uri> = self.faces.iter().map(|entry| &entry.uri).collect();
        let only_named = self.routes.iter().map(|route| &route.face).filter(|uri| !declared.contains(uri));
        let named = only_named.map(|uri| FaceEntry::permanent(uri.clone()));
        named.chain(self.faces.iter().cloned()).map(|entry| (Ends::of(&entry), entry)).collect()
    }
}

impl FaceEntry {
    /// A permanent face with the defaults of its transport.
    pub fn permanent(uri: Uri) -> Self {
        FaceEntry {
            uri,
            local_uri: None,
            persistency: Persistency::Permanent,
            mtu: None,
            reliability: None,
            congestion_marking: None,
            congestion_marking_interval: None,
            congestion_threshold: None,
        }
    }

    /// What makes a face that was made by `previous` like this one: what is not said any longer
    /// gets its default, where there is one for every transport.
    fn parameters_after(&self, previous: Option<&FaceEntry>) -> ControlParameters {
        let mut entry = self.clone();
        if previous.is_some_and(|previous| previous.mtu.is_some()) {
            entry.mtu = entry.mtu.or(Some(namewire_packet::MAX_PACKET_BYTES as u64));
        }
        if previous.is_some_and(|previous| previous.reliability.is_some()) {
            entry.reliability = entry.reliability.or(Some(false));
        }
        entry.parameters()
    }

    fn parameters(&self) -> ControlParameters {
        let mut parameters = ControlParameters {
            face_persistency: Some(match self.persistency {
                Persistency::Persistent => FacePersistency::Persistent.code(),
                Persistency::Permanent => FacePersistency::Permanent.code(),
            }),
            mtu: self.mtu,
            base_congestion_marking_interval_ns: self.congestion_marking_interval.map(|span| span.0.as_nanos() as u64),
            default_congestion_threshold_bytes: self.congestion_threshold.map(|octets| octets.0),
            ..ControlParameters::default()
        };
        for (wanted, bit) in
            [(self.reliability, face_flags::LP_RELIABILITY), (self.congestion_marking, face_flags::CONGESTION_MARKING)]
        {
            if let Some(is_on) = wanted {
                *parameters.mask.get_or_insert(0) |= bit;
                *parameters.flags.get_or_insert(0) |= if is_on { bit } else { 0 };
            }
        }
        parameters
    }
}

/// What every node starts with, by whole names.
fn default_strategies() -> BTreeMap<NameBuf, NameBuf> {
    let mut table = StrategyTable::default();
    let name = |text: &str| text.parse::<NameBuf>().expect("names in the source are well-formed");
    let whole = |text: &str, table: &mut StrategyTable| {
        let name = name(text);
        table.resolve(&name).map_or(name, |(_, instance)| instance)
    };
    DEFAULT_CHOICES.iter().map(|(prefix, strategy)| (name(prefix), whole(strategy, &mut table))).collect()
}
