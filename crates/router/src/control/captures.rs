//! Captures in progress, of frames or decisions. A capture reads the records of the workers, cuts them into pieces and
//! sends the pieces to its client.
//!
//! ```text
//!   workers ─ records, at most QUEUE_BYTES ─► buffer ─► piece 0, 1, 2 … ─► the client's face
//!                                                          └ the last few are kept, to be sent again
//! ```
//!
//! Control takes records from the queue only when the client has asked for their piece. So the queue fills up if a
//! client reads slowly, or not at all. Frames that find no room there are not captured, but counted. While a client
//! waits, control looks for records every [`LOOK_NS`]; workers do not wake control.
//!
//! No capture includes the face of a client: otherwise two clients would capture each other's pieces for ever. So
//! control announces a new client to the workers before it announces the client's capture.
//!
//! The observer reads the traces of its page itself: control only begins and ends them.
//!
//! Limits: [`MAX_CAPTURES`] captures; [`MAX_NAMED_FACES`] faces named in one; a queue of [`QUEUE_BYTES`] each;
//! [`WINDOW`] pieces kept and as many asked for. A capture whose client asks for nothing ends after [`PATIENCE_NS`],
//! and with its face at once.

use super::{interfaces, node::Node};
use crate::log_lines;
use namewire_faces::capture::{CaptureOptions, CaptureReader, CaptureScope, CaptureTap, Taken, capture};
use namewire_management::{CapturePlane, CaptureRefusal, Subject, Times, WantedCapture};
use namewire_packet::{
    DataBuilder, FaceId, MAX_PACKET_BYTES, Name, NameBuf,
    lp::LpHeaders,
    nfd::{DatasetEntry, FaceUri},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use namewire_worker::{CaptureChange, ToWorker, WorkerSender};
use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Most captures at a time.
const MAX_CAPTURES: usize = 4;

/// Most faces that a capture names one by one.
const MAX_NAMED_FACES: usize = 64;

/// Bytes of records that wait for one client: what a gigabit link carries in 30 ms.
const QUEUE_BYTES: usize = 4 << 20;

/// The same for a trace of the observer's page, which looks four times a second: a thousand packets.
const PAGE_QUEUE_BYTES: usize = 256 << 10;

/// Most content of a piece, as in datasets.
const PIECE_BYTES: usize = 8000;

/// Pieces kept to be sent again, and pieces that may be asked for ahead.
const WINDOW: u64 = 32;

/// How often control looks for records while a client waits.
const LOOK_NS: u64 = 10_000_000;

/// A client that waits gets an empty piece after this time. So its Interests can be short-lived, which matters because
/// they stay in the PIT as long as they live.
const NEWS_NS: u64 = 250_000_000;

/// A capture ends when its client has asked for nothing for this long.
const PATIENCE_NS: u64 = 10_000_000_000;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Captures {
    running: Vec<Running>,
    /// Traces of the observer's page: their numbers there, and here.
    of_page: BTreeMap<u64, u64>,
    /// Frames missed by captures that are over.
    missed_before: u64,
}

/// What becomes of a request for a piece.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// The piece was made before.
    Made(Vec<u8>),
    /// It comes when there is something to tell.
    Later,
    /// It is no longer kept, too far ahead, or after the last one.
    Never,
}

/// One capture.
struct Running {
    id: u64,
    name: NameBuf,
    client: FaceId,
    /// Faces can be added while control holds this end.
    tap: Option<CaptureTap>,
    named_faces: usize,
    /// Its client has ended it.
    is_stopped: bool,
    reader: CaptureReader,
    /// Records that no piece has yet.
    buffer: Vec<u8>,
    /// No record comes any more.
    is_over: bool,
    /// The last pieces that were made, up to `next_sequence`.
    kept: VecDeque<Vec<u8>>,
    next_sequence: u64,
    /// The pieces asked for, and when to send them even if they are empty.
    wanted: BTreeMap<u64, u64>,
    ends_ns: u64,
}

impl Running {
    fn new(id: u64, name: NameBuf, client: FaceId, tap: CaptureTap, reader: CaptureReader, now_ns: u64) -> Self {
        Running {
            id,
            name,
            client,
            tap: Some(tap),
            named_faces: 1,
            is_stopped: false,
            reader,
            buffer: Vec::new(),
            is_over: false,
            kept: VecDeque::new(),
            next_sequence: 0,
            wanted: BTreeMap::new(),
            ends_ns: now_ns + PATIENCE_NS,
        }
    }

    /// Takes one more face by name: returns the end of the capture for it.
    fn add_face(&mut self) -> Result<CaptureTap, CaptureRefusal> {
        if self.is_stopped {
            return Err(CaptureRefusal::Stopped);
        }
        let tap = self.tap.clone().ok_or(CaptureRefusal::Begun)?;
        if self.named_faces >= MAX_NAMED_FACES {
            return Err(CaptureRefusal::TooManyFaces(MAX_NAMED_FACES));
        }
        self.named_faces += 1;
        Ok(tap)
    }

    /// Takes no more faces.
    fn stop(&mut self) {
        self.tap = None;
        self.is_stopped = true;
    }

    /// Takes a request for a piece.
    fn ask(&mut self, now_ns: u64, sequence: u64) -> Asked {
        self.ends_ns = now_ns + PATIENCE_NS;
        // Now all faces are named: when they have closed, the capture is over.
        self.tap = None;
        if sequence < self.next_sequence {
            return self.made(sequence).map_or(Asked::Never, |piece| Asked::Made(piece.clone()));
        }
        if sequence >= self.next_sequence + WINDOW || self.has_last_piece() {
            return Asked::Never;
        }
        self.wanted.entry(sequence).or_insert(now_ns + NEWS_NS);
        Asked::Later
    }

    /// A piece that was made and is still kept.
    fn made(&self, sequence: u64) -> Option<&Vec<u8>> {
        let first_kept = self.next_sequence - self.kept.len() as u64;
        self.kept.get(usize::try_from(sequence.checked_sub(first_kept)?).ok()?)
    }

    /// The next piece, if it is wanted and there is something to tell, or nothing was told for long.
    fn next_piece(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let due_ns = *self.wanted.get(&self.next_sequence)?;
        self.fill();
        if self.buffer.is_empty() && !self.is_over && now_ns < due_ns {
            return None;
        }
        let len = self.buffer.len().min(PIECE_BYTES);
        let mut name = self.name.clone();
        name.push_typed_nni(SEQUENCE_NUM_COMPONENT, self.next_sequence);
        let mut data = DataBuilder::new(&name).content(&self.buffer[..len]);
        if self.is_over && len == self.buffer.len() {
            data = data.final_block_id(name.as_name().last()?);
            self.wanted.clear();
        }
        let packet = data.sign_digest();
        self.buffer.drain(..len);
        self.wanted.remove(&self.next_sequence);
        self.next_sequence += 1;
        self.kept.push_back(packet.clone());
        if self.kept.len() as u64 > WINDOW {
            self.kept.pop_front();
        }
        Some(packet)
    }

    fn fill(&mut self) {
        while self.buffer.len() < PIECE_BYTES && !self.is_over {
            match self.reader.take() {
                Taken::Record(record) => record.encode(&mut self.buffer),
                Taken::Nothing => return,
                Taken::Ended => self.is_over = true,
            }
        }
    }

    fn has_last_piece(&self) -> bool {
        self.is_over && self.buffer.is_empty() && self.next_sequence > 0 && self.wanted.is_empty()
    }
}

impl Captures {
    /// When [`Node::run_captures`] has something to do.
    pub(crate) fn next_deadline_ns(&self, now_ns: u64) -> Option<u64> {
        let due_ns = |of: &Running| if of.wanted.is_empty() { of.ends_ns } else { now_ns + LOOK_NS };
        self.running.iter().map(due_ns).min()
    }

    /// Frames that found no room, in all captures so far.
    pub(crate) fn missed(&self) -> u64 {
        self.running.iter().map(|of| of.reader.missed()).sum::<u64>() + self.missed_before
    }

    /// Whether there is no room for another.
    fn is_full(&self) -> bool {
        self.running.len() + self.of_page.len() >= MAX_CAPTURES
    }

    fn of(&mut self, client: FaceId, name: Name<'_>) -> Option<&mut Running> {
        self.running.iter_mut().find(|of| of.client == client && of.name.as_name() == name)
    }

    /// Forgets the captures that this says, and ends them at the workers.
    fn end_all(&mut self, workers: &[WorkerSender], is_over: impl Fn(&Running) -> bool) {
        let before = self.running.len();
        for running in self.running.extract_if(.., |of| is_over(of)) {
            self.missed_before += running.reader.missed();
            tell_end(workers, running.id);
        }
        if self.running.len() < before {
            self.tell_clients(workers);
        }
    }

    /// Tells the workers which faces are in no capture.
    fn tell_clients(&self, workers: &[WorkerSender]) {
        let clients: Vec<FaceId> = self.running.iter().map(|of| of.client).collect();
        workers.iter().for_each(|worker| worker.send(ToWorker::Capture(CaptureChange::Clients(clients.clone()))));
    }
}

fn tell_end(workers: &[WorkerSender], id: u64) {
    workers.iter().for_each(|worker| worker.send(ToWorker::Capture(CaptureChange::End { id })));
}

impl Node {
    /// Sends the pieces that are ready, and ends captures whose clients are silent.
    pub(crate) fn run_captures(&mut self) {
        if self.captures.running.is_empty() {
            return;
        }
        let now_ns = self.shared.now_ns();
        self.captures.end_all(&self.workers, |of| of.ends_ns <= now_ns);
        for running in &mut self.captures.running {
            while let Some(packet) = running.next_piece(now_ns) {
                if let Some(record) = self.faces.get(running.client) {
                    self.faces.send(
                        record.worker,
                        ToWorker::Transmit { face: running.client, headers: LpHeaders::default(), packet },
                    );
                }
            }
        }
    }

    /// Ends the captures of a face that is gone.
    pub(super) fn end_captures_of(&mut self, face: FaceId) {
        self.captures.end_all(&self.workers, |of| of.client == face);
    }

    /// Begins a trace of the observer's page.
    pub(super) fn begin_trace(
        &mut self,
        number: u64,
        prefix: &NameBuf,
        one_in: u64,
    ) -> Result<CaptureReader, CaptureRefusal> {
        if self.captures.is_full() {
            return Err(CaptureRefusal::TooMany(MAX_CAPTURES));
        }
        let id = getrandom::u64().map_err(|_| CaptureRefusal::Unavailable)?;
        let scope = CaptureScope::Decisions(prefix.value().into());
        let (tap, reader) = capture(CaptureOptions { id, scope, one_in, snap_bytes: 0, queue_bytes: PAGE_QUEUE_BYTES });
        self.captures.of_page.insert(number, id);
        for worker in self.workers.iter() {
            worker.send(ToWorker::Capture(CaptureChange::Decisions(tap.clone())));
        }
        log_lines::page_trace(prefix);
        Ok(reader)
    }

    /// Ends it.
    pub(super) fn end_trace(&mut self, number: u64) {
        if let Some(id) = self.captures.of_page.remove(&number) {
            tell_end(&self.workers, id);
        }
    }

    fn capture_scope(&self, client: FaceId, subject: &Subject) -> Result<CaptureScope, CaptureRefusal> {
        match subject {
            Subject::AllFaces => Ok(CaptureScope::All),
            Subject::Decisions(prefix) => Ok(CaptureScope::Decisions(prefix.value().into())),
            Subject::Face(face) => self.check_face(client, *face).map(|()| CaptureScope::Named),
            Subject::FacesOf(uri) => {
                let FaceUri::Dev(name) = uri else { return Err(CaptureRefusal::NoInterface(uri.to_string())) };
                let interfaces = interfaces::list().unwrap_or_default();
                let interface = interfaces.into_values().find(|interface| interface.name == *name);
                let interface = interface.ok_or_else(|| CaptureRefusal::NoInterface(name.clone()))?;
                let mut addresses = interface.addresses;
                if interface.is_loopback {
                    // They have the scope of the host, and are not listed.
                    addresses.extend([IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)]);
                }
                Ok(CaptureScope::Interface { name: interface.name, addresses })
            }
        }
    }

    fn check_face(&self, client: FaceId, face: FaceId) -> Result<(), CaptureRefusal> {
        if face == client || self.captures.running.iter().any(|of| of.client == face) {
            return Err(CaptureRefusal::OwnFace(face));
        }
        self.faces.get(face).map(|_| ()).ok_or(CaptureRefusal::NoFace(face))
    }

    fn capture_face(&self, face: FaceId, tap: CaptureTap) {
        if let Some(record) = self.faces.get(face) {
            for worker in (0..self.faces.forwarders()).filter(|_| record.wants_lanes) {
                let tap = tap.clone();
                self.faces.send(worker, ToWorker::Capture(CaptureChange::Lane { face, tap }));
            }
            self.faces.send(record.worker, ToWorker::Capture(CaptureChange::Face { face, tap }));
        }
    }
}

impl CapturePlane for Node {
    fn start(&mut self, now: Times, client: FaceId, wanted: WantedCapture) -> Result<NameBuf, CaptureRefusal> {
        let scope = self.capture_scope(client, &wanted.subject)?;
        if self.captures.is_full() {
            return Err(CaptureRefusal::TooMany(MAX_CAPTURES));
        }
        let mut random = [0; 8];
        if self.faces.get(client).is_none() || getrandom::fill(&mut random).is_err() {
            return Err(CaptureRefusal::Unavailable);
        }
        let mut name = NameBuf::new();
        for part in [b"localhost".as_slice(), b"nfd", b"capture", b"piece", &random] {
            name.push_generic(part);
        }
        let id = u64::from_ne_bytes(random);
        let snap_bytes = wanted.snap_bytes.map_or(MAX_PACKET_BYTES, |bytes| bytes as usize);
        let options = CaptureOptions { id, scope, one_in: wanted.one_in, snap_bytes, queue_bytes: QUEUE_BYTES };
        let (tap, reader) = capture(options);
        self.captures.running.push(Running::new(id, name.clone(), client, tap.clone(), reader, now.mono_ns));
        self.captures.tell_clients(&self.workers);
        let tell_all = |change: &dyn Fn(CaptureTap) -> CaptureChange| {
            self.workers.iter().for_each(|worker| worker.send(ToWorker::Capture(change(tap.clone()))));
        };
        match wanted.subject {
            Subject::Face(face) => self.capture_face(face, tap),
            Subject::FacesOf(_) | Subject::AllFaces => tell_all(&CaptureChange::Scope),
            Subject::Decisions(_) => tell_all(&CaptureChange::Decisions),
        }
        Ok(name)
    }

    fn add(&mut self, client: FaceId, capture: Name<'_>, face: FaceId) -> Result<(), CaptureRefusal> {
        self.check_face(client, face)?;
        let running = self.captures.of(client, capture).ok_or(CaptureRefusal::NoCapture)?;
        let tap = running.add_face()?;
        self.capture_face(face, tap);
        Ok(())
    }

    fn stop(&mut self, client: FaceId, capture: Name<'_>) -> Result<(), CaptureRefusal> {
        let running = self.captures.of(client, capture).ok_or(CaptureRefusal::NoCapture)?;
        running.stop();
        tell_end(&self.workers, running.id);
        Ok(())
    }

    fn fetch(&mut self, now: Times, client: FaceId, capture: Name<'_>, sequence: u64) -> bool {
        let Some(running) = self.captures.of(client, capture) else { return false };
        let packet = match running.ask(now.mono_ns, sequence) {
            Asked::Made(packet) => packet,
            Asked::Later => return true,
            Asked::Never => return false,
        };
        if let Some(record) = self.faces.get(client) {
            self.faces.send(record.worker, ToWorker::Transmit { face: client, headers: LpHeaders::default(), packet });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Data;

    fn running(tap: CaptureTap, reader: CaptureReader) -> Running {
        Running::new(1, "/localhost/nfd/capture/piece/x".parse().unwrap(), FaceId(256), tap, reader, 0)
    }

    /// The same after its first fetch: no face can be added any more.
    fn begun(tap: CaptureTap, reader: CaptureReader) -> Running {
        Running { tap: None, ..running(tap, reader) }
    }

    fn options() -> CaptureOptions {
        CaptureOptions { id: 1, scope: CaptureScope::All, one_in: 1, snap_bytes: 8800, queue_bytes: QUEUE_BYTES }
    }

    #[test]
    fn pieces_come_in_order_again_if_asked_and_the_last_one_says_so() {
        let (tap, reader) = capture(options());
        let mut running = begun(tap.clone(), reader);
        (0..700).for_each(|face| tap.tell_gone(FaceId(face))); // some 14 kB
        assert_eq!(running.ask(0, 1), Asked::Later);
        assert_eq!(running.next_piece(0), None, "piece 0 was not asked for");
        assert_eq!(running.ask(0, 0), Asked::Later);
        let pieces = [running.next_piece(0).unwrap(), running.next_piece(0).unwrap()];
        let content = |piece: &[u8]| Data::parse(piece).unwrap().content().len();
        assert_eq!(content(&pieces[0]), PIECE_BYTES);
        assert_eq!([running.ask(0, 0), running.ask(0, 1)], pieces.map(Asked::Made));
        running.ask(NEWS_NS, 2);
        assert_eq!(running.ask(NEWS_NS, 2 + WINDOW), Asked::Never, "too far ahead");
        assert_eq!(running.wanted.len(), 1);
        assert_eq!(running.next_piece(NEWS_NS), None);
        assert_eq!(content(&running.next_piece(2 * NEWS_NS).unwrap()), 0, "a sign of life");
        drop(tap);
        running.ask(0, 3);
        let last = running.next_piece(0).unwrap();
        let last = Data::parse(&last).unwrap();
        assert_eq!(last.final_block_id(), last.name().last());
        assert_eq!((running.ask(0, 4), running.wanted.len()), (Asked::Never, 0));
    }

    #[test]
    fn pieces_that_are_no_longer_kept_never_come() {
        let (tap, reader) = capture(options());
        let mut running = begun(tap.clone(), reader);
        for sequence in 0..=WINDOW {
            assert_eq!(running.ask(0, sequence), Asked::Later);
            assert!(running.next_piece(NEWS_NS).is_some(), "a sign of life");
        }
        assert_eq!(running.ask(0, 0), Asked::Never);
        assert!(matches!(running.ask(0, 1), Asked::Made(_)));
    }

    #[test]
    fn faces_are_named_before_the_first_piece_and_before_the_end() {
        let (tap, reader) = capture(options());
        let mut running = running(tap, reader);
        assert!(running.add_face().is_ok());
        running.named_faces = MAX_NAMED_FACES;
        assert_eq!(running.add_face().err(), Some(CaptureRefusal::TooManyFaces(MAX_NAMED_FACES)));
        running.ask(0, 0);
        assert_eq!(running.add_face().err(), Some(CaptureRefusal::Begun));
        running.stop();
        assert_eq!(running.add_face().err(), Some(CaptureRefusal::Stopped));
    }

    #[test]
    fn an_idle_client_is_waited_for_and_a_waiting_one_is_served() {
        let (tap, reader) = capture(options());
        let mut captures = Captures { running: vec![begun(tap.clone(), reader)], ..Captures::default() };
        assert_eq!(captures.next_deadline_ns(5), Some(PATIENCE_NS));
        captures.running[0].ask(0, 0);
        assert_eq!(captures.next_deadline_ns(5), Some(5 + LOOK_NS));
        captures.end_all(&[], |of| of.ends_ns <= PATIENCE_NS);
        assert_eq!((captures.running.len(), captures.missed()), (0, 0));
    }
}
