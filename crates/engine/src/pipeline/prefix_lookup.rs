//! Finds stored Data under every prefix of its name. Only `cs.prefix_lookup = "all"` needs this part of the Incoming
//! Interest pipeline.
//!
//! Source: forwarding §2.2. As in NFD, a worker takes the first matching Data in canonical order. If there are several
//! workers, each has the Data of its share of the names. So an Interest by prefix visits the other workers before its
//! home ([`crate::dispatch`]).

use crate::{
    ground::{measured::PartClock, output::HandOver},
    pipeline::{
        call::{Call, Received},
        content_store::other_match,
    },
    state::parts::Parts,
    verdict::scope::NameScope,
};
use namewire_packet::Interest;
use namewire_tables::CsId;

/// An Interest for a prefix that visits this worker before its home: Data may be stored here. It is counted where its
/// visits end.
#[cold]
pub(super) fn visiting_interest<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
) -> Option<CsId> {
    let interest = received.packet;
    let outbound = &mut call.outbound;
    let scope = NameScope::of(interest.name().value());
    let is_sound = outbound.faces.get(received.face()).is_some_and(|face| !scope.forbids(face));
    let looks_up = is_sound && parts.config.cs_serve && interest.hop_limit() != Some(0);
    let stored = other_match(&parts.tables.pit_cs, outbound.now, interest, None).filter(|_| looks_up);
    if stored.is_some() {
        parts.counters.in_interests += 1;
        parts.cs_counting.count_look_up(&mut parts.counters, received.hashes, true);
    } else {
        outbound.out.hand_over.push(HandOver { frame: received.frame, visits: received.visits().going_on() });
    }
    stored
}
