//! Core role: which pending Interests are kept as a fingerprint alone, and for how long?
//!
//! Source: Yuan15 ch. 5. Edge routers keep names, aggregate Interests, and are what [`PitRole::Edge`] says; core
//! routers keep a fingerprint of the name, forward every Interest and let the edges drop Data that nobody asked for
//! (§5.4.1, Fig. 5.1). The table is [`FingerprintPit`]; this module and the two pipelines that use it
//! ([`core_interest`](crate::core_interest), [`core_data`](crate::core_data)) are what a router makes of it.
//!
//! | the paper | here |
//! | --- | --- |
//! | PIT of core routers | [`CoreRole::fingerprints`], beside the PIT of names |
//! | face i of n | *port*, a small number for a face: [`Ports`] |
//! | T_exp | the Interest's lifetime, or [`PrefixExpiry`] |
//! | flag in the Data (§5.5.1) | the link header *collided* |
//! | adaptive PIT (§5.4.4) | [`CoreConfig::names_up_to`] |
//! | Content Store for what was requested more than once (§5.4.4) | about how many Interests Data answers, told to admission |
//! | false positives allowed (§5.7.1) | [`CoreConfig::aggregate`] |
//!
//! The PIT of names stays, and both are asked when Data comes. An Interest is kept by name if a fingerprint cannot
//! say what must be known of it: it comes from an application of this machine, can be answered under other names
//! (CanBePrefix, implicit digest), has a name of `/localhop`, names its next hop, lives longer than the timer counts,
//! has a strategy that remembers ([`crate::Strategy::without_entry`]), has no next hop yet, or its PIT token matters
//! (see below); and if its face finds no port, or its fingerprint no room. What the role loses that the names would not
//! is said at the end.
//!
//! **Loops** end by the dead nonce list, which here gets the Nonce of every Interest that goes on, and by HopLimit.
//! It should have room for the Interests of 6 s ([`crate::EngineConfig::dead_nonce_capacity`]). The same list tells
//! whether a Nack answers an Interest of ours, and whether one did already: each goes on once.
//!
//! **Data goes once for each Interest** to the ports of an entry that stays; [`SentNames`] says what went already. Else
//! cores that ask each other would hand it round until their entries expire.
//!
//! **A second copy** of some Data finds its own entry gone, and what it takes for that is another name's. It comes where
//! an Interest was kept by name (two may be sent for a name, or for it and a prefix of it) or sent to several next hops.
//! [`SentNames`] knows the copy if it has a name that was answered before. The answer to CanBePrefix can have any name,
//! but it has a PIT token: *a fingerprint never ends by Data with one*, since Interests go without where a fingerprint
//! is kept.
//!
//! **PIT tokens** are not kept. A token of 6 octets from another node is ours or ndnd's, and both find the Interest
//! by its name if the Data brings none. NFD sends none. Any other token (NDN-DPDK has 8 octets, and needs them back)
//! and those of applications are kept, with the name. Onward the Interest has no token.
//!
//! **The mark** goes with Data to every face that a collided fingerprint names, all of them to other nodes. It is
//! not sent where the name was kept: that downstream gets what it asked for. Who knows no mark ignores it. A neighbour
//! is believed: its mark costs that the entry stays to its expiry. An application, which is no router, is not.
//!
//! **Data for a name that is kept in both tables** leaves the fingerprint where it is, as if collided: it may be of
//! the other name.
//!
//! What cannot be promised: the answer to CanBePrefix of a neighbour that takes no tokens, when something else has
//! answered it before, takes away a fingerprint, and that Interest must be repeated, as after a loss. So
//! must what is answered after T_exp, and, with [`CoreConfig::aggregate`], one of two names with one fingerprint. A
//! repeated Interest does not try another next hop, since nobody remembers the first.
//!
//! Cost: an Interest 1 line in each subtable, 1 for the dead nonce, 1 for the port, 1 for the name sent; no name is
//! copied, no timer is set. Limits: those of the table, of ports and of samples; whatever is refused goes by name and
//! is counted.

mod expiry;
mod ports;
mod sent_names;

pub(crate) use expiry::PrefixExpiry;
pub(crate) use ports::Ports;
pub(crate) use sent_names::SentNames;

use namewire_tables::{
    PageSize,
    fingerprint_pit::{FingerprintPit, FingerprintPitConfig},
};
use std::io;

/// How pending Interests are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PitRole {
    /// By name; equal ones are aggregated.
    #[default]
    Edge,
    /// By fingerprint where that is enough: see [`crate::core_role`].
    Core(CoreConfig),
}

/// Settings of the core role, per engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreConfig {
    /// The table of fingerprints. Its pages are the engine's.
    pub fingerprints: FingerprintPitConfig,
    /// While fewer Interests than that are pending by name, new ones are kept by name too, and aggregated (adaptive
    /// PIT); above it by fingerprint, until there are only half as many names. By fingerprint too where the PIT, or
    /// what of it is the face's, is full. 0, the default: always by fingerprint.
    pub names_up_to: u32,
    /// A fingerprint that is pending is taken for the same name, and the Interest is not forwarded, unless its face
    /// is one that waits already: less traffic, but of two names with one fingerprint only one is asked for until
    /// somebody repeats the other. Default no.
    pub aggregate: bool,
    /// T_exp in round-trip times of the FIB's prefix, once some were measured: what the paper's k is one more than.
    /// `None`, the default: as long as the Interest lives.
    pub expiry_round_trips: Option<u8>,
}

impl CoreConfig {
    /// The paper's table of so many entries, and nothing optional.
    pub const fn new(capacity_entries: u32) -> Self {
        let fingerprints = FingerprintPitConfig::new(capacity_entries);
        CoreConfig { fingerprints, names_up_to: 0, aggregate: false, expiry_round_trips: None }
    }

    /// What one of `workers` gets of this: of numbers of entries its share, rounded up.
    pub fn share_of(&self, workers: u32) -> Self {
        let FingerprintPitConfig { capacity_entries, overflow_entries, .. } = self.fingerprints;
        CoreConfig {
            fingerprints: FingerprintPitConfig {
                capacity_entries: capacity_entries.div_ceil(workers),
                overflow_entries: overflow_entries.div_ceil(workers),
                ..self.fingerprints
            },
            names_up_to: self.names_up_to.div_ceil(workers),
            ..self.clone()
        }
    }
}

/// What an engine in the core role has beside the others.
pub(crate) struct CoreRole {
    pub(crate) fingerprints: FingerprintPit,
    pub(crate) ports: Ports,
    pub(crate) sent_names: SentNames,
    pub(crate) expiry: Option<PrefixExpiry>,
    pub(crate) aggregates: bool,
    names_up_to: u32,
    keeps_names: bool,
}

impl CoreRole {
    /// # Errors
    /// If a size is outside of its range, or the kernel does not map the memory.
    pub(crate) fn new(config: &CoreConfig, pages: PageSize, seed: u64) -> io::Result<Self> {
        let fingerprints = FingerprintPit::new(FingerprintPitConfig { pages, ..config.fingerprints }, seed)?;
        Ok(CoreRole {
            ports: Ports::new(fingerprints.ports()),
            sent_names: SentNames::new(fingerprints.capacity_entries(), pages)?,
            fingerprints,
            expiry: config.expiry_round_trips.map(PrefixExpiry::new),
            aggregates: config.aggregate,
            names_up_to: config.names_up_to,
            keeps_names: config.names_up_to > 0,
        })
    }

    /// Adaptive PIT: whether a new Interest is kept by name, with so many that are. It changes at the limit and,
    /// back, below half of it (rounded up), so that it does not change with every packet.
    pub(crate) fn keeps_name(&mut self, pending_by_name: usize) -> bool {
        let limit = self.names_up_to as usize;
        self.keeps_names = if self.keeps_names { pending_by_name < limit } else { pending_by_name < limit.div_ceil(2) };
        self.keeps_names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adaptive_pit_does_not_change_with_every_packet() {
        let core = |names_up_to| {
            let config = CoreConfig { names_up_to, ..CoreConfig::new(1024) };
            CoreRole::new(&config, PageSize::default(), 1).unwrap()
        };
        let mut adaptive = core(10);
        let pending = [0, 9, 10, 9, 5, 4, 9, 10, 5];
        let kept = pending.map(|pending| adaptive.keeps_name(pending));
        assert_eq!(kept, [true, true, false, false, false, true, true, false, false]);
        let mut least = core(1);
        assert_eq!([0, 1, 1, 0].map(|pending| least.keeps_name(pending)), [true, false, false, true]);
        let mut always = core(0);
        assert_eq!([0, 1, 100].map(|pending| always.keeps_name(pending)), [false; 3]);
    }
}
