//! Core role: which pending Interests does the router keep as a mere fingerprint, and for how long?
//!
//! Source: Yuan15 ch. 5. Edge routers keep names and aggregate Interests ([`PitRole::Edge`]). Core routers keep a
//! fingerprint of the name, forward every Interest, and let the edges drop unsolicited Data (§5.4.1, Fig. 5.1). The
//! table is [`FingerprintPit`]. This module and two pipelines (`core/interest.rs`, `core/data.rs`) use it.
//! | the paper | here |
//! | --- | --- |
//! | PIT of core routers | [`CoreRole::fingerprints`], in addition to the PIT of names |
//! | face i of n | *port*, a small number for a face: [`Ports`] |
//! | T_exp | the Interest's lifetime, or [`PrefixExpiry`] |
//! | flag in the Data (§5.5.1) | the link header *collided* |
//! | adaptive PIT (§5.4.4) | [`CoreConfig::names_up_to`] |
//! | Content Store for what was requested more than once (§5.4.4) | admission learns the rough number of Interests answered |
//! | false positives allowed (§5.7.1) | [`CoreConfig::aggregate`] |
//!
//! The router also has its PIT of names, and looks up Data in both. It keeps an Interest by name if a fingerprint
//! cannot hold what the router must know of the Interest. This is so in these cases:
//!
//! * it comes from an application of this machine;
//! * it can be answered under other names (CanBePrefix, implicit digest);
//! * its name is under `/localhop`, or it names its next hop;
//! * it lives longer than the timer can count;
//! * its strategy needs an entry ([`crate::Strategy::without_entry`]), or it has no next hop yet;
//! * its PIT token matters (see below);
//! * its face has no port, or the table has no room for its fingerprint.
//!
//! **Loops** end by HopLimit and by the dead nonce list. In the core role the list gets the Nonce of every forwarded
//! Interest. It should have room for the Interests of 6 s ([`crate::EngineConfig::dead_nonce_capacity`]). It also shows
//! whether a Nack answers an Interest of ours, and whether an earlier Nack already did. So the router passes on one
//! Nack for each Interest.
//!
//! **Data is sent once for each Interest** to the ports of an entry that stays; [`SentNames`] knows which names were
//! sent. Otherwise cores that ask each other would pass the Data around until their entries expire.
//!
//! **A second copy** of Data no longer finds its own entry, and would remove another name's entry. A second copy can
//! arrive in two cases. First, an Interest was kept by name: then the router may send two for a name, or one for the
//! name and one for a prefix of it. Second, an Interest was sent to several next hops. [`SentNames`] recognises the
//! copy if its name was answered before. The answer to CanBePrefix can have any name, but it has a PIT token. Interests
//! kept as a fingerprint are sent without a token. Hence *Data with a token never ends a fingerprint*.
//!
//! **PIT tokens** are not kept with a fingerprint. A token of 6 bytes from another node comes from Namewire or ndnd.
//! Both find the Interest by name if the Data has no token. NFD sends no tokens. If an Interest has another token, or
//! comes from an application with a token, it is kept by name, with the token. NDN-DPDK, for example, has tokens of 8
//! bytes, and needs them back. An Interest kept as a fingerprint is forwarded without a token.
//!
//! **The mark** *collided* is sent with Data to every face of a collided fingerprint; all these faces lead to other
//! nodes. A downstream whose Interest was kept by name gets no mark, because it gets the Data that it asked for. A peer
//! that does not know the mark ignores it. A router trusts a neighbour's mark: a false mark only makes the entry stay
//! until it expires. It ignores an application's mark.
//!
//! **Data that matches both tables** does not remove the fingerprint, because the fingerprint may belong to another
//! name. It is treated as collided.
//!
//! Limits: in these cases the core role loses a packet that a PIT of names would not lose. The consumer must
//! retransmit:
//!
//! * A neighbour without tokens answers an Interest with CanBePrefix that was answered before. The Data removes a
//!   fingerprint.
//! * An answer arrives after T_exp.
//! * With [`CoreConfig::aggregate`], two names share one fingerprint.
//!
//! A retransmitted Interest does not try another next hop, since the router does not remember the first.
//!
//! Cost: an Interest takes one cache line in each subtable, and one each for dead nonce, port and sent name. No name is
//! copied and no timer is set. Limits: those of the table, the ports and the samples. An Interest beyond a limit is
//! kept by name and counted.

use crate::state::{core_expiry::PrefixExpiry, core_ports::Ports, sent_names::SentNames};
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
    /// By fingerprint where that is enough: see [`crate::state::core_role`].
    Core(CoreConfig),
}

/// Settings of the core role, per engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreConfig {
    /// The table of fingerprints. Its pages are the engine's.
    pub fingerprints: FingerprintPitConfig,
    /// While fewer Interests than this are pending by name, new ones are kept by name too, and aggregated (adaptive
    /// PIT). Above it new ones are kept by fingerprint, until only half as many names are pending. If the PIT, or the
    /// face's share of it, is full, they are kept by fingerprint too. 0, the default: always by fingerprint.
    pub names_up_to: u32,
    /// Treats a pending fingerprint as the same name, and does not forward the Interest unless its face is already
    /// waiting. This saves traffic. But of two names with one fingerprint, only one is requested until a consumer
    /// retransmits the other. Default no.
    pub aggregate: bool,
    /// T_exp in round-trip times of the FIB's prefix, once some were measured: the paper's k minus one. `None`, the
    /// default: the Interest's lifetime.
    pub expiry_round_trips: Option<u8>,
}

impl CoreConfig {
    /// The paper's table with room for `capacity_entries`, without options.
    pub const fn new(capacity_entries: u32) -> Self {
        let fingerprints = FingerprintPitConfig::new(capacity_entries);
        CoreConfig { fingerprints, names_up_to: 0, aggregate: false, expiry_round_trips: None }
    }

    /// One of `workers` equal shares: numbers of entries are divided, rounding up.
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

/// The parts of an engine that only the core role has.
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
    /// If a size is out of range, or the kernel does not map the memory.
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

    /// Adaptive PIT: whether to keep a new Interest by name while `pending_by_name` are. It switches at the limit, and
    /// back below half of it (rounded up), so that it does not switch with every packet.
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
