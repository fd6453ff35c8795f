//! Traces: what did this worker decide about the packets under a prefix?
//!
//! While a trace runs, the worker compares the name of each packet with the trace's prefix. The worker decides a
//! matching packet alone, in a batch of one. Then everything that the engine counts and sends results from this packet,
//! and the engine needs no code for traces.
//!
//! ```text
//!   batch of 64:  a a a T a a T a      a: not traced, T: traced
//!   decided as:  [a a a][T][a a][T][a]
//! ```
//!
//! Cost: without a trace, one look at an empty list for each batch. With a trace, some 20 instructions for each packet
//! that does not match (a comparison of the first bytes of its name). For a traced packet, two copies of the counters,
//! and one allocation for each part of the record.
//!
//! Limits: at most as many traces as captures. A record that finds no room in its queue is counted as missed
//! ([`CaptureTap::note_decision`]); the worker never waits. A record names [`FACES_NAMED`] faces of one decision. No
//! trace includes requests to management: the requests of its client would make further records for ever.

use crate::drop_log::shortened;
use namewire_engine::{Counters, Engine, FaceId, Frame, Output};
use namewire_faces::capture::{CaptureScope, CaptureTap};
use namewire_packet::{
    Data, Interest, Name,
    nfd::{CaptureDecision, PacketKind, Verdict},
};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::{SystemTime, UNIX_EPOCH},
};

/// Faces that a record names.
const FACES_NAMED: usize = 16;

/// The name that management serves, as TLV-VALUE.
const MANAGEMENT: &[u8] = b"\x08\x09localhost\x08\x03nfd";

/// The traces of one worker.
#[derive(Default)]
pub(crate) struct Traces(Vec<CaptureTap>);

/// A packet before it is decided.
pub(crate) struct Before {
    counters: Counters,
    kind: PacketKind,
    lifetime_ms: Option<u64>,
}

impl Traces {
    pub(crate) fn add(&mut self, tap: CaptureTap) {
        self.0.push(tap);
    }

    pub(crate) fn end(&mut self, id: u64) {
        self.0.retain(|tap| tap.options().id != id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a trace is about this packet.
    pub(crate) fn takes(&self, frame: &Frame<'_>) -> bool {
        let may_be =
            |tap| prefix_of(tap).is_some_and(|prefix| may_be_under(frame.headers.packet(frame.packet), prefix));
        self.0.iter().any(may_be) && name_of(frame).is_some_and(|name| self.0.iter().any(|tap| is_about(tap, name)))
    }

    /// What must be known before the packet is decided.
    pub(crate) fn before(&self, engine: &Engine, frame: &Frame<'_>) -> Before {
        let interest = Interest::parse(frame.headers.packet(frame.packet)).ok();
        let kind = match &interest {
            Some(_) if frame.headers.nack.is_some() => PacketKind::Nack,
            Some(_) => PacketKind::Interest,
            None => PacketKind::Data,
        };
        let lifetime_ms = interest.filter(|_| kind == PacketKind::Interest).map(|interest| interest.lifetime_ms());
        Before { counters: engine.counters(), kind, lifetime_ms }
    }

    /// Tells every trace that is about the packet what was decided.
    pub(crate) fn note(&self, before: Before, engine: &Engine, frame: &Frame<'_>, output: &Output, worker: u8) {
        let Some(name) = name_of(frame) else { return };
        let (verdict, reason) = verdict(&before, engine, output);
        let faces = output.transmits.iter().map(|transmit| transmit.face).filter(|face| *face != FaceId::INTERNAL);
        let (short_name, is_name_cut) = shortened(name);
        let decision = CaptureDecision {
            face: frame.face,
            time_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
            kind: before.kind,
            name: short_name,
            is_name_cut,
            verdict,
            reason,
            to: faces.clone().take(FACES_NAMED).collect(),
            more: faces.skip(FACES_NAMED).count() as u64,
            worker: worker.into(),
            lifetime_ms: before.lifetime_ms,
        };
        self.0.iter().filter(|tap| is_about(tap, name)).for_each(|tap| tap.note_decision(decision.clone()));
    }
}

/// What became of a packet that was decided alone, and why if it went no further.
fn verdict(before: &Before, engine: &Engine, output: &Output) -> (Verdict, Option<String>) {
    let after = engine.counters();
    let rose = |count: fn(&Counters) -> u64| count(&after) > count(&before.counters);
    let nack = output.transmits.iter().find_map(|transmit| transmit.headers.nack);
    let mut reasons: Vec<&str> = engine.drop_notes().iter().map(|note| note.reason.name()).collect();
    reasons.dedup();
    let dropped = (!reasons.is_empty()).then(|| reasons.join(", "));
    let verdict = if !output.hand_over.is_empty() {
        Verdict::HandedOver
    } else if nack.is_some() && before.kind == PacketKind::Interest {
        return (Verdict::Nacked, dropped.or(nack.map(|reason| reason.to_string())));
    } else if rose(|counters| counters.cs_hits) {
        Verdict::Stored
    } else if output.transmits.iter().any(|transmit| transmit.face == FaceId::INTERNAL) {
        Verdict::Management
    } else if !output.transmits.is_empty() {
        Verdict::Sent
    } else if rose(|counters| counters.aggregated) {
        Verdict::Aggregated
    } else if dropped.is_some() {
        Verdict::Dropped
    } else {
        Verdict::Kept
    };
    (verdict, dropped)
}

fn is_about(tap: &CaptureTap, name: Name<'_>) -> bool {
    prefix_of(tap).is_some_and(|prefix| name.value().starts_with(prefix))
        && !name.value().starts_with(MANAGEMENT)
        && (tap.options().one_in <= 1 || hash(name).is_multiple_of(tap.options().one_in))
}

fn prefix_of(tap: &CaptureTap) -> Option<&[u8]> {
    match &tap.options().scope {
        CaptureScope::Decisions(prefix) => Some(prefix),
        _ => None,
    }
}

/// False if the packet's name does not begin with these bytes. It looks at three headers of TLVs and nothing else,
/// because most packets end here.
fn may_be_under(packet: &[u8], prefix: &[u8]) -> bool {
    let after_length = |bytes: &'_ [u8], at: usize| {
        let length_bytes = match bytes.get(at) {
            Some(253) => 3,
            Some(254) => 5,
            Some(255) => 9,
            _ => 1,
        };
        at + length_bytes
    };
    // Type and length of the packet, then of its name.
    let name = after_length(packet, 1);
    packet.get(after_length(packet, name + 1)..).is_some_and(|rest| rest.starts_with(prefix))
}

/// Of a name the same for its Interest and its Data, so that a sample has both or neither.
fn hash(name: Name<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.value().hash(&mut hasher);
    hasher.finish()
}

/// The packet's name, if it is a packet with a name.
fn name_of<'f>(frame: &'f Frame<'_>) -> Option<Name<'f>> {
    let packet = frame.headers.packet(frame.packet);
    Interest::parse(packet)
        .map(|interest| interest.name())
        .or_else(|_| Data::parse(packet).map(|data| data.name()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_engine::dispatch::Visits;
    use namewire_faces::capture::{CaptureOptions, capture};
    use namewire_packet::{DataBuilder, InterestBuilder, NameBuf, lp::LpHeaders};
    use proptest::prelude::*;

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn traces(prefix: &str, one_in: u64) -> Traces {
        let scope = CaptureScope::Decisions(name(prefix).value().into());
        let (tap, _reader) = capture(CaptureOptions { id: 1, scope, one_in, snap_bytes: 0, queue_bytes: 1000 });
        Traces(vec![tap])
    }

    fn takes(traces: &Traces, packet: &mut [u8]) -> bool {
        let (face, headers, visits) = (FaceId(300), LpHeaders::default(), Visits::default());
        traces.takes(&Frame { face, headers, packet, visits })
    }

    #[test]
    fn whole_components_are_compared_and_management_is_left_out() {
        let interest = |text: &str| InterestBuilder::new(name(text)).build();
        let of_a = traces("/a", 1);
        for (text, is_taken) in [("/a", true), ("/a/b", true), ("/ab", false), ("/b/a", false), ("/", false)] {
            assert_eq!(takes(&of_a, &mut interest(text)), is_taken, "{text}");
        }
        assert!(takes(&of_a, &mut DataBuilder::new(name("/a/b")).content(&[0; 5000]).sign_digest()));
        let of_all = traces("/", 1);
        assert!(takes(&of_all, &mut interest("/localhost/nlsr")));
        assert!(!takes(&of_all, &mut interest("/localhost/nfd/status/general")));
        // A prefix that goes on where the name ends.
        let long = traces("/a/%01", 1);
        assert!(!takes(&long, &mut interest("/a")));
    }

    #[test]
    fn a_sample_has_all_packets_of_its_names() {
        let sample = traces("/", 10);
        let both = (0..1000).map(|number| {
            let name = name(&format!("/{number}"));
            let interest = takes(&sample, &mut InterestBuilder::new(&name).build());
            assert_eq!(interest, takes(&sample, &mut DataBuilder::new(&name).sign_digest()), "{name}");
            interest
        });
        let taken = both.filter(|is_taken| *is_taken).count();
        assert!((50..200).contains(&taken), "{taken}");
    }

    proptest! {
        #[test]
        fn the_quick_look_refuses_no_packet_that_is_meant(
            components in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..8),
            taken in 0..8_usize,
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut whole = NameBuf::new();
            components.iter().for_each(|component| { whole.push_generic(component); });
            let prefix = whole.as_name().prefix(taken.min(components.len()));
            prop_assert!(may_be_under(&InterestBuilder::new(&whole).build(), prefix.value()));
            prop_assert!(may_be_under(&DataBuilder::new(&whole).sign_digest(), prefix.value()));
            may_be_under(&bytes, prefix.value()); // no bytes cause a panic
        }
    }
}
