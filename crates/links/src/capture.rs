//! Captures: copies of the frames of chosen faces, or notes of decisions, for a reader on another thread.
//!
//! A capture has two ends. Workers hold clones of its [`CaptureTap`]; each captured face has a [`FaceTap`] in its link
//! service, which copies every frame as the link carries it, received or sent. The worker notes its decisions about
//! packets under a prefix ([`CaptureTap::note_decision`]). The control thread has the [`CaptureReader`].
//!
//! ```text
//!   link service ─ FaceTap ─┐
//!   link service ─ FaceTap ─┼─► records, at most `queue_bytes` ─► CaptureReader ─► the client
//!   link service ─ FaceTap ─┘
//! ```
//!
//! Cost: a link without a capture checks an empty list once per frame. A captured frame takes one allocation, one copy
//! of at most `snap_bytes` and one look at the clock.
//!
//! Limit: `queue_bytes` of records wait. A frame beyond that is counted as missed ([`CaptureReader::missed`]); a worker
//! never waits for the reader. The notice that a face has left takes no room: only faces that have a record, or that
//! the user named, have such a notice. For all other faces, one record at the end has the number of missed frames.
//!
//! No capture includes the face of a client. The frames of such a face carry captured frames, so two clients would
//! capture each other's pieces for ever.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use namewire_packet::{
    FaceId,
    nfd::{CaptureDecision, CaptureFace, CaptureFrame, CaptureLeft, CaptureRecord, FaceUri},
};

use crate::FaceInfo;

/// Memory of a record beside its bytes.
const RECORD_OVERHEAD_BYTES: usize = 128;

/// Room for the two FaceUris of an introduction. The longest are paths of sockets, 108 bytes each.
const URI_BYTES: usize = 256;

/// Which faces a capture takes by itself, also those that are made later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureScope {
    /// Only faces that are named one by one.
    Named,
    /// No face: decisions about packets under this name (TLV-VALUE).
    Decisions(Box<[u8]>),
    /// Every face.
    All,
    /// The faces whose local end is on this network interface.
    Interface {
        /// Its name.
        name: String,
        /// The addresses that it had when the capture began.
        addresses: Vec<IpAddr>,
    },
}

impl CaptureScope {
    /// True if a capture of this scope takes the face without its being named.
    pub fn takes(&self, info: &FaceInfo) -> bool {
        match self {
            CaptureScope::Named | CaptureScope::Decisions(_) => false,
            CaptureScope::All => true,
            CaptureScope::Interface { name, addresses } => match &info.local {
                FaceUri::Dev(device) => device == name,
                local => local.ip().is_some_and(|ip| addresses.contains(&ip)),
            },
        }
    }
}

/// Settings of one capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Its number.
    pub id: u64,
    /// The faces that it takes by itself.
    pub scope: CaptureScope,
    /// One frame of this number is taken, at random. Of decisions, all those about one name of this number.
    pub one_in: u64,
    /// Bytes kept of each frame.
    pub snap_bytes: usize,
    /// Bytes of records that may wait for the reader.
    pub queue_bytes: usize,
}

/// What both ends count.
#[derive(Default)]
struct Queue {
    bytes: AtomicUsize,
    missed: AtomicU64,
    /// Those of `missed` that belong to faces which have left without a notice.
    missed_untold: AtomicU64,
}

/// A worker's end of a capture.
#[derive(Clone)]
pub struct CaptureTap {
    options: Arc<CaptureOptions>,
    queue: Arc<Queue>,
    records: Sender<CaptureRecord>,
}

/// The reader's end of a capture.
pub struct CaptureReader {
    queue: Arc<Queue>,
    records: Receiver<CaptureRecord>,
}

/// What a look at a capture brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// The next record.
    Record(CaptureRecord),
    /// None for now.
    Nothing,
    /// None any more: no face is captured, and none will be.
    Ended,
}

/// A new capture, of no face so far.
pub fn capture(options: CaptureOptions) -> (CaptureTap, CaptureReader) {
    let (sender, receiver) = channel();
    let queue = Arc::<Queue>::default();
    let tap = CaptureTap { options: Arc::new(options), queue: Arc::clone(&queue), records: sender };
    (tap, CaptureReader { queue, records: receiver })
}

impl CaptureReader {
    /// The next record, if there is one.
    pub fn take(&mut self) -> Taken {
        match self.records.try_recv() {
            Ok(record) => {
                if let Some(bytes) = bytes_of(&record) {
                    self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                Taken::Record(record)
            }
            Err(TryRecvError::Empty) => Taken::Nothing,
            Err(TryRecvError::Disconnected) => match self.queue.missed_untold.swap(0, Ordering::Relaxed) {
                0 => Taken::Ended,
                missed => {
                    let left = CaptureLeft { face: FaceId::INVALID, missed, reason: None };
                    Taken::Record(CaptureRecord::Left(left))
                }
            },
        }
    }

    /// Frames that found no room so far.
    pub fn missed(&self) -> u64 {
        self.queue.missed.load(Ordering::Relaxed)
    }
}

impl CaptureTap {
    /// Its settings.
    pub fn options(&self) -> &CaptureOptions {
        &self.options
    }

    /// The tap of one face.
    pub fn of_face(&self, face: FaceId, info: &FaceInfo) -> FaceTap {
        FaceTap {
            face,
            remote: info.remote.clone(),
            local: info.local.clone(),
            is_introduced: false,
            missed: 0,
            // Any number except 0; faces should not draw alike.
            random: face.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            capture: self.clone(),
        }
    }

    /// Tells the reader that a face which it named is not there (any more).
    pub fn tell_gone(&self, face: FaceId) {
        self.send(CaptureRecord::Left(CaptureLeft { face, missed: 0, reason: Some("closed".to_owned()) }));
    }

    /// Notes a decision. One that finds no room is counted as missed.
    pub fn note_decision(&self, decision: CaptureDecision) {
        let record = CaptureRecord::Decision(decision);
        if self.take_room(bytes_of(&record).unwrap_or_default()) {
            self.send(record);
        } else {
            self.queue.missed.fetch_add(1, Ordering::Relaxed);
            self.queue.missed_untold.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn send(&self, record: CaptureRecord) {
        // A reader that has gone has no use for it.
        let _ = self.records.send(record);
    }

    /// Takes room for a record, if there is some.
    fn take_room(&self, bytes: usize) -> bool {
        let has_room = self.queue.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.options.queue_bytes;
        if !has_room {
            self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        has_room
    }
}

/// The room that a record takes; `None` if it takes none.
fn bytes_of(record: &CaptureRecord) -> Option<usize> {
    match record {
        CaptureRecord::Face(_) => Some(RECORD_OVERHEAD_BYTES + URI_BYTES),
        CaptureRecord::Frame(frame) => Some(RECORD_OVERHEAD_BYTES + frame.bytes.len()),
        CaptureRecord::Decision(decision) => {
            let to_bytes = decision.to.len() * size_of::<FaceId>();
            Some(RECORD_OVERHEAD_BYTES + decision.name.value().len() + to_bytes)
        }
        CaptureRecord::Left(_) => None,
    }
}

/// One face's part in a capture.
pub struct FaceTap {
    capture: CaptureTap,
    face: FaceId,
    remote: FaceUri,
    local: FaceUri,
    is_introduced: bool,
    missed: u64,
    random: u64,
}

impl FaceTap {
    /// Number of the capture.
    pub fn capture_id(&self) -> u64 {
        self.capture.options.id
    }

    /// Copies a frame, given in two parts.
    pub fn note(&mut self, is_sent: bool, head: &[u8], rest: &[u8]) {
        if !self.draws() {
            return;
        }
        let snap_bytes = self.capture.options.snap_bytes;
        let head_kept = &head[..head.len().min(snap_bytes)];
        let rest_kept = &rest[..rest.len().min(snap_bytes - head_kept.len())];
        if !self.introduce() || !self.capture.take_room(RECORD_OVERHEAD_BYTES + head_kept.len() + rest_kept.len()) {
            self.missed += 1;
            self.capture.queue.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.capture.send(CaptureRecord::Frame(CaptureFrame {
            face: self.face,
            is_sent,
            time_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
            len: (head.len() + rest.len()) as u64,
            bytes: [head_kept, rest_kept].concat().into(),
        }));
    }

    /// Ends the face's part. `reason` says why the face closed, if it did.
    pub fn end(self, reason: Option<String>) {
        if self.is_introduced || self.capture.options.scope == CaptureScope::Named {
            let left = CaptureLeft { face: self.face, missed: self.missed, reason };
            self.capture.send(CaptureRecord::Left(left));
        } else {
            self.capture.queue.missed_untold.fetch_add(self.missed, Ordering::Relaxed);
        }
    }

    /// Introduces the face before its first frame; false if there is no room.
    fn introduce(&mut self) -> bool {
        if !self.is_introduced && self.capture.take_room(RECORD_OVERHEAD_BYTES + URI_BYTES) {
            self.is_introduced = true;
            let (remote, local) = (self.remote.to_string(), self.local.to_string());
            self.capture.send(CaptureRecord::Face(CaptureFace { face: self.face, remote, local }));
        }
        self.is_introduced
    }

    /// Whether the next frame is in the sample.
    ///
    /// N.B. at random, not every n-th: an Interest and its Data on two faces are four frames, and every fourth would
    /// always be of the same kind.
    fn draws(&mut self) -> bool {
        let one_in = self.capture.options.one_in;
        if one_in <= 1 {
            return true;
        }
        // xorshift64 (Marsaglia 2003)
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(one_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::{FacePersistency, FaceScope, LinkType, PacketKind, Verdict};

    fn info(local: FaceUri) -> FaceInfo {
        FaceInfo {
            remote: "udp4://192.0.2.9:6363".parse().unwrap(),
            local,
            scope: FaceScope::NonLocal,
            persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            mtu: 8800,
            credentials: None,
        }
    }

    fn options(scope: CaptureScope) -> CaptureOptions {
        CaptureOptions { id: 7, scope, one_in: 1, snap_bytes: 10, queue_bytes: 1000 }
    }

    fn all(reader: &mut CaptureReader) -> Vec<CaptureRecord> {
        std::iter::from_fn(|| match reader.take() {
            Taken::Record(record) => Some(record),
            Taken::Nothing | Taken::Ended => None,
        })
        .collect()
    }

    #[test]
    fn frames_are_copied_cut_and_ended() {
        let (tap, mut reader) = capture(options(CaptureScope::All));
        let mut face = tap.of_face(FaceId(300), &info(FaceUri::Internal));
        face.note(true, b"head", b"and the rest");
        face.end(Some("idle".to_owned()));
        drop(tap);
        let records = all(&mut reader);
        let [CaptureRecord::Face(of), CaptureRecord::Frame(frame), CaptureRecord::Left(left)] = &records[..] else {
            panic!("{records:?}");
        };
        assert_eq!((of.face, of.remote.as_str()), (FaceId(300), "udp4://192.0.2.9:6363"));
        assert_eq!((frame.is_sent, frame.len, &*frame.bytes), (true, 16, &b"headand th"[..]));
        assert_eq!((left.missed, left.reason.as_deref()), (0, Some("idle")));
        assert_eq!(reader.take(), Taken::Ended);
    }

    #[test]
    fn frames_beyond_the_room_are_missed_and_reading_makes_room() {
        let (tap, mut reader) = capture(options(CaptureScope::Named));
        let mut face = tap.of_face(FaceId(300), &info(FaceUri::Internal));
        for _ in 0..20 {
            face.note(false, b"", b"0123456789");
        }
        let kept = all(&mut reader).len() as u64 - 1;
        assert_eq!((kept, reader.missed()), (4, 16));
        face.note(false, b"", b"0123456789");
        assert_eq!(all(&mut reader).len(), 1);
        face.end(None);
        assert!(matches!(&all(&mut reader)[..], [CaptureRecord::Left(left)] if left.missed == 16));
        assert_eq!(reader.queue.bytes.load(Ordering::Relaxed), 0);
    }

    /// The story: each face that came while the queue was full left a notice, also if the client had never heard of it.
    /// Notices take no room, so they could fill the memory.
    #[test]
    fn faces_that_found_no_room_share_one_notice_at_the_end() {
        let (tap, mut reader) = capture(CaptureOptions { queue_bytes: 10, ..options(CaptureScope::All) });
        for face in 300..320 {
            let mut face = tap.of_face(FaceId(face), &info(FaceUri::Internal));
            face.note(false, b"", b"x");
            face.end(Some("idle".to_owned()));
        }
        tap.of_face(FaceId(320), &info(FaceUri::Internal)).end(None);
        assert_eq!((all(&mut reader), reader.missed()), (Vec::new(), 20));
        drop(tap);
        let left = CaptureLeft { face: FaceId::INVALID, missed: 20, reason: None };
        assert_eq!(all(&mut reader), [CaptureRecord::Left(left)]);
        assert_eq!(reader.take(), Taken::Ended);
    }

    #[test]
    fn decisions_beyond_the_room_are_missed_and_told_at_the_end() {
        let (tap, mut reader) = capture(options(CaptureScope::Decisions([].into())));
        let decision = CaptureDecision {
            face: FaceId(300),
            time_ns: 1,
            kind: PacketKind::Interest,
            name: "/a".parse().unwrap(),
            is_name_cut: false,
            verdict: Verdict::Sent,
            reason: None,
            to: vec![FaceId(301)],
            more: 0,
            worker: 0,
            lifetime_ms: None,
        };
        (0..20).for_each(|_| tap.note_decision(decision.clone()));
        let kept = all(&mut reader);
        assert!(kept.iter().all(|record| *record == CaptureRecord::Decision(decision.clone())));
        let missed = 20 - kept.len() as u64;
        assert!(missed > 0 && reader.missed() == missed, "{missed}");
        assert_eq!(reader.queue.bytes.load(Ordering::Relaxed), 0, "reading makes room");
        drop(tap);
        let left = CaptureLeft { face: FaceId::INVALID, missed, reason: None };
        assert_eq!(all(&mut reader), [CaptureRecord::Left(left)]);
    }

    #[test]
    fn a_sample_has_about_its_share() {
        let sample = CaptureOptions { one_in: 10, queue_bytes: 1 << 20, ..options(CaptureScope::All) };
        let (tap, mut reader) = capture(sample);
        let mut face = tap.of_face(FaceId(300), &info(FaceUri::Internal));
        for _ in 0..1000 {
            face.note(false, b"", b"x");
        }
        let taken = all(&mut reader).len();
        assert!((50..200).contains(&taken), "{taken}");
    }

    #[test]
    fn an_interface_has_the_faces_of_its_name_and_addresses() {
        let addresses = vec!["192.0.2.1".parse().unwrap()];
        let scope = CaptureScope::Interface { name: "eth0".to_owned(), addresses };
        let takes = |uri: &str| scope.takes(&info(uri.parse().unwrap()));
        assert!(takes("dev://eth0") && takes("udp4://192.0.2.1:6363") && takes("tcp4://192.0.2.1:6363"));
        assert!(!takes("dev://eth1") && !takes("udp4://192.0.2.2:6363") && !takes("unix:///run/nfd/nfd.sock"));
    }
}
