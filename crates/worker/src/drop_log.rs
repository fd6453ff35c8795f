//! Drop log: the last packets that a worker dropped, with name, face, reason and time.
//!
//! Counters show how often packets are dropped, but an operator asks about one Interest. The worker writes, the control
//! thread reads.
//!
//! ```text
//!   engine ─ drop notes ─┐
//!                        ├─ DropNoter (worker) ── try_lock ──► DropLog ──► status/dropped, the observer
//!   rings, management ───┘
//! ```
//!
//! Cost: a batch without drops looks at the length of an empty list. A drop that is kept costs a copy of the name and
//! one look at the clock.
//!
//! Limits: [`KEPT_PER_REASON`] packets for each reason. If there are more, the face with most of them loses its oldest.
//! So the drops of a flooding neighbour hide neither other reasons nor other neighbours. [`NOTED_PER_MS`] packets a
//! millisecond, [`NOTED_OF_FACE`] of them of one face, so that a flood of bad packets costs the worker little more than
//! before and leaves room for others. [`NAME_BYTES`] of each name. The worker never waits: while control reads, its
//! drops are only counted.

use crate::shared::unix_ms;
use arrayvec::ArrayVec;
use namewire_engine::{DropNote, Frame};
use namewire_packet::{
    Data, FaceId, Interest, Name, NameBuf,
    lp::LpHeaders,
    nfd::{DroppedPacket, PacketKind},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

/// Packets kept for each reason.
const KEPT_PER_REASON: usize = 32;

/// Packets that a worker may note in a millisecond.
const NOTED_PER_MS: usize = 16;

/// Packets of one face that it may note in a millisecond.
const NOTED_OF_FACE: usize = 4;

/// Bytes kept of a name. It is cut between two components.
const NAME_BYTES: usize = 512;

/// Where and why, for example `engine` and `no-route`.
type Reason = (&'static str, &'static str);

/// The last drops of one worker.
#[derive(Default)]
pub(crate) struct DropLog(BTreeMap<Reason, VecDeque<DroppedPacket>>);

impl DropLog {
    fn add(&mut self, reason: Reason, packet: DroppedPacket) {
        let kept = self.0.entry(reason).or_default();
        if kept.len() >= KEPT_PER_REASON {
            let count = |of: &DroppedPacket| kept.iter().filter(|other| other.face == of.face).count();
            // Of equals, the first: it has the oldest packet.
            let (place, _) =
                kept.iter().map(count).enumerate().rev().max_by_key(|(_, count)| *count).expect("it is full");
            kept.remove(place);
        }
        kept.push_back(packet);
    }

    /// All that are kept, in no order.
    pub(crate) fn all(&self) -> Vec<DroppedPacket> {
        self.0.values().flatten().cloned().collect()
    }
}

/// A worker's end of its log.
pub(crate) struct DropNoter {
    log: Arc<Mutex<DropLog>>,
    /// The present millisecond.
    present_ms: u64,
    /// The faces of the packets that were noted in it.
    noted: ArrayVec<Option<FaceId>, NOTED_PER_MS>,
}

/// A dropped packet as the worker has it.
pub(crate) struct Dropped<'a> {
    pub(crate) face: FaceId,
    pub(crate) headers: &'a LpHeaders,
    pub(crate) packet: &'a [u8],
}

impl DropNoter {
    pub(crate) fn new(log: Arc<Mutex<DropLog>>) -> Self {
        DropNoter { log, present_ms: 0, noted: ArrayVec::new() }
    }

    /// Notes the packets that the engine dropped in one call.
    #[cold]
    pub(crate) fn note_all(&mut self, now_ns: u64, notes: &[DropNote], frames: &[Frame<'_>]) {
        for note in notes {
            let frame = note.frame.and_then(|frame| frames.get(usize::from(frame)));
            let dropped =
                frame.map(|frame| Dropped { face: frame.face, headers: &frame.headers, packet: frame.packet });
            self.note(now_ns, ("engine", note.reason.name()), dropped);
        }
    }

    /// Notes one drop. `None`: the packet that had come earlier is not at hand.
    #[cold]
    pub(crate) fn note(&mut self, now_ns: u64, reason: Reason, dropped: Option<Dropped<'_>>) {
        if !self.may_note(now_ns / 1_000_000, dropped.as_ref().map(|dropped| dropped.face)) {
            return;
        }
        let mut log = match self.log.try_lock() {
            Ok(log) => log,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(std::sync::TryLockError::WouldBlock) => return,
        };
        log.add(reason, describe(reason, dropped));
    }

    /// Takes a part of what may be noted in this millisecond, if there is one left for the face.
    fn may_note(&mut self, now_ms: u64, face: Option<FaceId>) -> bool {
        if self.present_ms != now_ms {
            self.present_ms = now_ms;
            self.noted.clear();
        }
        let of_face = self.noted.iter().filter(|noted| **noted == face).count();
        of_face < NOTED_OF_FACE && self.noted.try_push(face).is_ok()
    }
}

fn describe((place, reason): Reason, dropped: Option<Dropped<'_>>) -> DroppedPacket {
    let mut packet = DroppedPacket {
        time_ms: unix_ms(),
        reason: format!("{place}.{reason}"),
        kind: PacketKind::Unknown,
        face: None,
        name: None,
        is_name_cut: false,
        count: 1,
    };
    let Some(dropped) = dropped else { return packet };
    packet.face = Some(dropped.face);
    let bytes = dropped.headers.packet(dropped.packet);
    let (kind, name) = match (Interest::parse(bytes), Data::parse(bytes)) {
        (Ok(interest), _) if dropped.headers.nack.is_some() => (PacketKind::Nack, shortened(interest.name())),
        (Ok(interest), _) => (PacketKind::Interest, shortened(interest.name())),
        (_, Ok(data)) => (PacketKind::Data, shortened(data.name())),
        _ => return packet,
    };
    (packet.kind, packet.name, packet.is_name_cut) = (kind, Some(name.0), name.1);
    packet
}

/// The name with at most [`NAME_BYTES`], and whether components are missing.
pub(crate) fn shortened(name: Name<'_>) -> (NameBuf, bool) {
    let fits = |components: &usize| name.prefix(*components).value().len() <= NAME_BYTES;
    let components = (0..=name.len()).rev().find(fits).unwrap_or_default();
    (name.prefix(components).to_buf(), components < name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::InterestBuilder;
    use std::sync::LazyLock;

    const NO_ROUTE: Reason = ("engine", "no-route");

    fn interest(name: &str) -> Vec<u8> {
        InterestBuilder::new(name.parse::<NameBuf>().expect("a name")).build()
    }

    fn dropped(face: u64, packet: &[u8]) -> Option<Dropped<'_>> {
        static PLAIN: LazyLock<LpHeaders> = LazyLock::new(LpHeaders::default);
        Some(Dropped { face: FaceId(face), headers: &PLAIN, packet })
    }

    fn kept(log: &Mutex<DropLog>) -> Vec<DroppedPacket> {
        log.lock().expect("no panic").all()
    }

    #[test]
    fn a_packet_has_its_kind_its_name_and_its_face() {
        let log = Arc::<Mutex<DropLog>>::default();
        let mut noter = DropNoter::new(Arc::clone(&log));
        noter.note(0, NO_ROUTE, dropped(300, &interest("/a/b")));
        noter.note(0, ("engine", "malformed"), dropped(301, b"nonsense"));
        noter.note(0, ("engine", "next-hop-down"), None);
        let kept = kept(&log);
        let of = |reason: &str| kept.iter().find(|packet| packet.reason == reason).expect("it is kept");
        let no_route = of("engine.no-route");
        assert_eq!(no_route.name, Some("/a/b".parse().expect("a name")));
        assert_eq!((no_route.kind, no_route.face), (PacketKind::Interest, Some(FaceId(300))));
        let malformed = of("engine.malformed");
        assert_eq!((malformed.kind, malformed.name.clone()), (PacketKind::Unknown, None));
        assert_eq!(of("engine.next-hop-down").face, None);
    }

    /// A neighbour that floods must hide neither what others lost, nor another reason.
    #[test]
    fn a_flood_loses_its_own_oldest() {
        let log = Arc::<Mutex<DropLog>>::default();
        let mut noter = DropNoter::new(Arc::clone(&log));
        noter.note(0, NO_ROUTE, dropped(300, &interest("/quiet")));
        noter.note(0, ("engine", "pit-full"), dropped(301, &interest("/other")));
        for number in 0..1000 {
            noter.note(number * 1_000_000, NO_ROUTE, dropped(301, &interest(&format!("/flood/{number}"))));
        }
        // All in one millisecond: another face still has a part of it.
        for _ in 0..1000 {
            noter.note(1000 * 1_000_000, ("engine", "malformed"), dropped(301, b"flood"));
        }
        noter.note(1000 * 1_000_000, NO_ROUTE, dropped(302, &interest("/victim")));
        let kept = kept(&log);
        assert_eq!(kept.len(), KEPT_PER_REASON + 1 + NOTED_OF_FACE);
        let has = |name: &str| kept.iter().any(|packet| packet.name == Some(name.parse().expect("a name")));
        assert!(has("/quiet") && has("/other") && has("/flood/999") && has("/flood/970") && !has("/flood/969"));
        assert!(has("/victim"));
    }

    #[test]
    fn a_millisecond_has_room_for_some() {
        let log = Arc::<Mutex<DropLog>>::default();
        let mut noter = DropNoter::new(Arc::clone(&log));
        for face in 0..20 {
            noter.note(5, NO_ROUTE, dropped(face, &interest("/a")));
        }
        assert_eq!(kept(&log).len(), NOTED_PER_MS);
        noter.note(1_000_000, NO_ROUTE, dropped(20, &interest("/a")));
        assert_eq!(kept(&log).len(), NOTED_PER_MS + 1);
        let _reader = log.lock();
        noter.note(1_000_000, NO_ROUTE, dropped(21, &interest("/a"))); // does not wait
    }

    #[test]
    fn a_long_name_is_cut_between_components() {
        let long: NameBuf = format!("/a/{}/b", "c".repeat(NAME_BYTES)).parse().expect("a name");
        assert_eq!(shortened(long.as_name()), ("/a".parse().expect("a name"), true));
        let short: NameBuf = "/a/b".parse().expect("a name");
        assert_eq!(shortened(short.as_name()), (short.clone(), false));
    }
}
