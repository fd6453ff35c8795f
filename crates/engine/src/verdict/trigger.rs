//! Trigger: why a strategy is called, and what it would send.

use crate::{ground::output::PacketRef, state::tables::Tables, verdict::scope::NameScope};
use namewire_packet::{FaceId, Nonce};
use namewire_tables::PitId;

/// Why the strategy is called, and what it would send.
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    /// The face the packet came from; without a packet, the last downstream.
    pub ingress: FaceId,
    /// How far the name may travel.
    pub(crate) scope: NameScope,
    /// The Interest to be sent; `None`: the PIT entry's own copy.
    pub packet: Option<PacketRef>,
    /// Nonce that goes upstream.
    pub nonce: Nonce,
    /// HopLimit after this hop decremented it.
    pub hop_limit: Option<u8>,
    /// Lifetime of an Interest sent now.
    pub lifetime_ms: u64,
    /// Congestion mark to pass on.
    pub congestion_mark: u64,
    /// The Interest must not be flooded (NonDiscovery).
    pub non_discovery: bool,
}

impl Trigger {
    /// A call without an Interest at hand: the last downstream's nonce is used.
    pub(crate) fn of_entry(ingress: FaceId, tables: &Tables, entry: PitId, lifetime_ms: u64) -> Self {
        let last = tables.records.downstreams(tables.state(entry)).last();
        let (nonce, non_discovery) =
            last.map_or((Nonce::default(), false), |record| (record.nonce, record.non_discovery));
        let scope = NameScope::of(tables.name_of(entry));
        Trigger { ingress, scope, packet: None, nonce, hop_limit: None, lifetime_ms, congestion_mark: 0, non_discovery }
    }
}
