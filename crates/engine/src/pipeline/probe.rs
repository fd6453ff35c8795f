//! Probes: which Interests of ping and traceroute does this forwarder answer (RFC 9508 §6, RFC 9507 §6)?
//!
//! The engine only decides; management writes the answer. A traceroute whose HopLimit ends here goes to management
//! without a PIT entry, since an entry of its name may be there already, if the path is a loop. A ping for stored Data,
//! and any probe that would go to an application, gets an entry whose only upstream is management: applications never
//! see probes. A ping for the forwarder's own name goes there by the FIB.
//!
//! Cost: an Interest whose HopLimit ends here, or one with MustBeFresh that is in no store, takes a comparison of its
//! name's last bytes. All others take at most one test.
//!
//! N.B. No function here takes an `InterestAtHand`: it would be written to memory for every Interest (30 instructions).

use crate::{
    AnswersProbes, FaceAttributes,
    ground::{
        measured::PartClock,
        output::{PacketRef, Transmit},
    },
    pipeline::call::{Call, Received},
    state::parts::Parts,
    verdict::{journey::Journey, next_hops::NextHops, scope::NameScope, trigger::Trigger},
};
use namewire_packet::{
    FaceId, Interest, Name,
    lp::LpHeaders,
    probe::{Probe, ProbeKind},
};

impl AnswersProbes {
    fn includes(self, asker: &FaceAttributes) -> bool {
        match self {
            AnswersProbes::Nobody => false,
            AnswersProbes::Local => asker.is_local(),
            AnswersProbes::Everybody => true,
        }
    }
}

/// Whether an Interest whose HopLimit ends here is a traceroute that management answers. If so, management gets it,
/// with HopLimit 0.
#[cold]
#[inline(never)]
pub(super) fn ends_here<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    ingress: &FaceAttributes,
) -> bool {
    let (interest, name) = (received.packet, received.packet.name());
    let is_probe = ProbeKind::Traceroute.may_end(name.value())
        && Probe::of(interest).is_some_and(|probe| probe.kind == ProbeKind::Traceroute);
    if !is_probe || !parts.config.answers_probes.includes(ingress) || NameScope::of(name.value()).forbids(ingress) {
        return false;
    }
    if let Some(offset) = interest.hop_limit_offset() {
        parts.scratch.hop_limits.push((received.frame, offset as u32, 0));
    }
    let headers = LpHeaders {
        pit_token: received.headers().pit_token,
        incoming_face_id: Some(received.face()),
        ..LpHeaders::default()
    };
    let packet = PacketRef::Frame(received.frame);
    call.outbound.out.transmits.push(Transmit { face: FaceId::INTERNAL, headers, packet });
    true
}

/// Whether an Interest of this name may be a probe.
#[inline(always)]
pub(super) fn may_be(name: Name<'_>) -> bool {
    ProbeKind::ALL.into_iter().any(|kind| kind.may_end(name.value()))
}

/// Whether a new Interest that must be fresh is a probe that management answers: its target would go to an application,
/// or it is a ping and its target is stored here.
#[cold]
#[inline(never)]
pub(super) fn is_for_us<C: PartClock>(
    parts: &Parts,
    call: &Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    trigger: &Trigger,
    next_hops: Option<NextHops<'_>>,
) -> bool {
    let faces = call.outbound.faces;
    let asker = faces.get(received.face());
    let Some(probe) = Probe::of(received.packet) else { return false };
    if !asker.is_some_and(|asker| parts.config.answers_probes.includes(asker)) {
        return false;
    }
    let &Trigger { ingress, scope, hop_limit, .. } = trigger;
    let journey = Journey { faces, ingress, scope, hop_limit };
    let mut eligible = next_hops.map_or(&[][..], |found| found.next_hops).iter().map(|hop| FaceId(hop.face));
    let first = eligible.find_map(|face| journey.eligible(face).map(|attributes| (face, attributes)));
    first.is_some_and(|(face, attributes)| face != FaceId::INTERNAL && attributes.is_local())
        || probe.kind == ProbeKind::Ping && is_stored(parts, received, probe)
}

/// Whether Data of exactly the target's name is in this worker's store.
fn is_stored(parts: &Parts, received: &Received<'_, '_, Interest<'_>>, probe: Probe<'_>) -> bool {
    let cs = &parts.tables.pit_cs;
    let group = cs.find(received.hashes.prefix_hash(probe.target.len()), probe.target.value());
    parts.config.cs_serve && group.and_then(|group| cs.cs_lookup(group)).is_some_and(|hit| hit.direct)
}
