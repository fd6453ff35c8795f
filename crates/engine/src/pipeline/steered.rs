//! Path steering (RFC 9531), for probes: an Interest with a PathLabel goes to the next hop whose label is the last one,
//! and Data with a PathLabel gets the label of the face that it came through.
//!
//! A label chooses among the next hops that the FIB has for the name, and to which the Interest may go. So a forged
//! label leads nowhere where the strategy could not lead. Other packets than probes travel as if they had no label, and
//! lose it here.
//!
//! Cost: a packet without a PathLabel costs nothing, because the link layer writes a next hop into the headers of an
//! Interest that has one ([`FaceId::BY_PATH_LABEL`]), and Data with one takes the way of Data with an announcement.

use crate::{
    DropReason,
    ground::{
        measured::PartClock,
        output::{Output, PacketRef},
    },
    pipeline::call::{Call, Received},
    state::parts::Parts,
    verdict::{context::StrategyContext, journey::Journey, next_hops::NextHops, strategy::Strategy, trigger::Trigger},
};
use namewire_packet::{
    Data, FaceId, Interest, NackReason,
    path_label::{PathLabel, PathMode, label_of},
    probe::Probe,
};
use namewire_tables::PitId;

/// Forwards an Interest that has a PathLabel.
#[cold]
#[inline(never)]
pub(super) fn steer<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Interest<'_>>,
    (entry, trigger): (PitId, Trigger),
    strategy: &dyn Strategy,
    next_hops: Option<NextHops<'v>>,
) {
    let path = path_of(received);
    let (label, rest) = match path {
        Some(mut path) => (path.pop(), path),
        None => (None, PathLabel::empty(PathMode::Fallback)),
    };
    let Trigger { ingress, scope, hop_limit, .. } = trigger;
    let journey = Journey { faces: call.outbound.faces, ingress, scope, hop_limit };
    let hops = next_hops.map_or(&[][..], |found| found.next_hops).iter().map(|hop| FaceId(hop.face));
    let chosen = label.and_then(|label| { hops }.find(|&face| label_of(face) == label && journey.is_eligible(face)));
    let mut context = StrategyContext::new(parts, &mut call.outbound, entry, trigger, next_hops);
    match (label, chosen) {
        (_, Some(face)) => context.send_interest(face),
        (Some(_), None) if rest.mode() == PathMode::Strict => {
            context.count_drop(DropReason::PathLabelVoid);
            context.send_nack_to_all(NackReason::NoRoute);
            context.reject();
        }
        _ => strategy.after_receive_interest(&mut context),
    }
    context.finish();
    if chosen.is_some() && rest.labels().next().is_some() {
        attach(parts, call.outbound.out, (received.packet, hop_limit), &rest);
    }
}

/// The path that a probe wants to take.
fn path_of(received: &Received<'_, '_, Interest<'_>>) -> Option<PathLabel> {
    Probe::of(received.packet)?;
    let label = received.headers().path_label(received.carried())?;
    PathLabel::parse_tlv(label).ok().filter(|path| path.mode() != PathMode::Discovery)
}

/// Puts the rest of the path in front of the Interest that was just sent with this HopLimit.
fn attach(parts: &mut Parts, out: &mut Output, (interest, hop_limit): (&Interest<'_>, Option<u8>), rest: &PathLabel) {
    let Some(sent) = out.transmits.last().copied().filter(|_| !out.is_full_of_rewritten()) else { return };
    let copy = &mut parts.scratch.interest_copy;
    copy.clear();
    match out.rewritten(sent.packet) {
        Some(rewritten) => copy.extend_from_slice(rewritten),
        None => {
            copy.extend_from_slice(interest.wire());
            if let (Some(offset), Some(limit)) = (interest.hop_limit_offset(), hop_limit) {
                copy[offset] = limit;
            }
        }
    }
    let (packet, lead_bytes) = write_led(out, rest, copy);
    if let Some(last) = out.transmits.last_mut() {
        (last.packet, last.headers.lead_bytes) = (packet, lead_bytes);
    }
}

/// The same packet with a path in front of it, and the bytes of the path.
fn write_led(out: &mut Output, path: &PathLabel, packet: &[u8]) -> (PacketRef, u16) {
    let mut lead_bytes = 0;
    let packet = out.rewrite(|out| {
        let start = out.len();
        path.write_tlv(out);
        lead_bytes = (out.len() - start) as u16;
        out.extend_from_slice(packet);
    });
    (packet, lead_bytes)
}

/// The answer to a probe with its PathLabel, to which this hop is added, and the bytes of that; `None` if it came
/// without one.
#[cold]
pub(super) fn labelled(out: &mut Output, received: &Received<'_, '_, Data<'_>>) -> Option<(PacketRef, u16)> {
    let label = received.headers().path_label(received.carried())?;
    let mut path = PathLabel::parse_tlv(label).ok()?;
    Probe::of_name(received.packet.name()).filter(|_| !out.is_full_of_rewritten())?;
    // Management begins the path: what comes from there has made no hop yet.
    let may_go = received.face() == FaceId::INTERNAL || path.push(label_of(received.face()));
    may_go.then(|| write_led(out, &path, received.packet.wire()))
}
