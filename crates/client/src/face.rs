//! The face: packets between this process and its forwarder.
//!
//! Two tasks share one [`Face`]. The reader cuts the byte stream into packets, and passes each to the pending
//! Interests, to a producer or to the users of TagNet ([`crate::tag_exchange`]). The writer takes the whole send queue
//! and writes it with one call. So packets queued in the same turn of the runtime share a system call. No task holds
//! the lock across an await.
//!
//! A received packet is a bare Interest, Data or tag packet, or an LpPacket. The client uses the headers Nack,
//! PitToken, CongestionMark and IncomingFaceId, and ignores other legal ones. A packet is sent bare unless it needs a
//! header. [`crate::reassembly`] joins fragments (UDP).
//!
//! Limits: if the send queue has [`SEND_QUEUE_BYTES_MAX`], senders wait. A frame above [`FRAME_BYTES_MAX`] closes a
//! stream; a datagram above it is dropped. If the queue of a producer is full, further Interests are dropped and
//! counted; the producer chooses whether they get a Nack.

use crate::{
    close_reason::CloseReason,
    data_buf::DataBuf,
    express_error::ExpressError,
    incoming_interest::{IncomingInterest, ReplyBatch},
    pending_interest::{PendingInterests, nacked},
    reassembly::Reassembly,
    repeats::Fetches,
    tag_exchange::{Delivery, TagExchange, TagPacketBuf},
};
use namewire_packet::{
    Data, Interest, MAX_PACKET_BYTES, NackReason, NameBuf,
    lp::{LpHeaders, LpPacket},
    path_label::PathLabel,
    tlv::{self, types},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UdpSocket,
    sync::{Notify, mpsc},
};

/// Bytes that may wait to be written; further senders wait.
pub const SEND_QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// Largest frame accepted: a network packet and its link headers.
pub const FRAME_BYTES_MAX: usize = MAX_PACKET_BYTES + 256;
/// Size of the read buffer of a stream.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Counters of a face since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceCounters {
    /// Frames received.
    pub in_frames: u64,
    /// Frames put on the send queue.
    pub out_frames: u64,
    /// Frames that are no legal packet.
    pub dropped_malformed: u64,
    /// Data that no pending Interest asked for (late, or unsolicited).
    pub dropped_unsolicited_data: u64,
    /// Nacks of Interests that are not pending.
    pub dropped_unsolicited_nacks: u64,
    /// Interests under no prefix that is served here.
    pub dropped_unserved_interests: u64,
    /// Interests for a producer whose queue was full.
    pub dropped_producer_busy: u64,
    /// Fragments of messages that never became whole.
    pub dropped_fragments: u64,
    /// TagNet replies that no pull waits for (late, or unsolicited).
    pub dropped_unsolicited_replies: u64,
    /// Pulls and pushes while no receiver is open.
    pub dropped_unserved_tag_packets: u64,
    /// Pulls and pushes for a receiver whose queue was full.
    pub dropped_tag_receiver_busy: u64,
}

#[derive(Default)]
struct SendQueue {
    bytes: Vec<u8>,
    /// End of each frame in `bytes`, for datagram sockets.
    ends: Vec<usize>,
}

impl SendQueue {
    /// Appends the frames of `bytes`, which end at `ends`.
    fn append(&mut self, bytes: &[u8], ends: &[usize]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.ends.extend(ends.iter().map(|end| start + end));
    }
}

/// Who takes the Interests under a prefix.
struct Producer {
    sender: mpsc::Sender<IncomingInterest>,
    /// What a full queue answers; `None`: nothing.
    nack_when_full: Option<NackReason>,
}

#[derive(Default)]
pub(crate) struct FaceState {
    pub(crate) pending: PendingInterests,
    producers: HashMap<Box<[u8]>, Producer>,
    pub(crate) tags: TagExchange,
    pub(crate) fetches: Fetches,
    queue: SendQueue,
    is_writing: bool,
    is_closing: bool,
    closed: Option<CloseReason>,
    counters: FaceCounters,
    reassembly: Reassembly,
}

/// One connection to a forwarder, shared by its tasks and handles.
#[derive(Default)]
pub(crate) struct Face {
    state: Mutex<FaceState>,
    wake_writer: Notify,
    room: Notify,
    drained: Notify,
}

/// A prefix is already served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is already served by this client")]
pub struct PrefixInUse(pub NameBuf);

impl Face {
    pub(crate) fn lock(&self) -> MutexGuard<'_, FaceState> {
        // A panic elsewhere leaves no table in a harmful state.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn counters(&self) -> FaceCounters {
        self.lock().counters
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }

    /// Queues one frame written by `write`, waiting while the queue is full. `also` runs under the same lock, so that
    /// an answer cannot arrive before its Interest is pending.
    pub(crate) async fn send<T>(
        &self,
        write: impl FnOnce(&mut Vec<u8>),
        also: impl FnOnce(&mut FaceState) -> T,
    ) -> Result<T, CloseReason> {
        let queue = |state: &mut FaceState| {
            write(&mut state.queue.bytes);
            let end = state.queue.bytes.len();
            state.queue.ends.push(end);
            state.counters.out_frames += 1;
            also(state)
        };
        self.when_there_is_room(queue).await
    }

    /// Queues the frames of `bytes`, which end at `ends`, waiting while the queue is full.
    pub(crate) async fn send_frames(&self, bytes: &[u8], ends: &[usize]) -> Result<(), CloseReason> {
        let queue = |state: &mut FaceState| {
            state.queue.append(bytes, ends);
            state.counters.out_frames += ends.len() as u64;
        };
        self.when_there_is_room(queue).await
    }

    async fn when_there_is_room<T>(&self, queue: impl FnOnce(&mut FaceState) -> T) -> Result<T, CloseReason> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone());
                }
                if state.queue.bytes.len() < SEND_QUEUE_BYTES_MAX {
                    let result = queue(&mut state);
                    drop(state);
                    self.wake_writer.notify_one();
                    return Ok(result);
                }
            }
            room.await;
        }
    }

    /// Waits until the kernel has taken everything queued.
    pub(crate) async fn flush(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let state = self.lock();
                if state.closed.is_some() || (state.queue.bytes.is_empty() && !state.is_writing) {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Lets the writer finish the queue, then ends it.
    pub(crate) fn close_when_drained(&self) {
        self.lock().is_closing = true;
        self.wake_writer.notify_one();
    }

    fn close(&self, reason: CloseReason) {
        let (pending, producers, tags) = {
            let mut state = self.lock();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(reason.clone());
            (state.pending.drain(), std::mem::take(&mut state.producers), std::mem::take(&mut state.tags))
        };
        for completion in pending {
            completion.complete(Err(ExpressError::Closed(reason.clone())));
        }
        drop((producers, tags)); // their streams end
        self.wake_writer.notify_one();
        self.room.notify_waiters();
        self.drained.notify_waiters();
    }

    pub(crate) fn add_producer(
        &self,
        prefix: &NameBuf,
        sender: mpsc::Sender<IncomingInterest>,
        nack_when_full: Option<NackReason>,
    ) -> Result<(), PrefixInUse> {
        let mut state = self.lock();
        // On a closed face the sender is dropped, which ends the stream.
        if state.closed.is_some() {
            return Ok(());
        }
        match state.producers.get(prefix.value()) {
            Some(other) if !other.sender.is_closed() => Err(PrefixInUse(prefix.clone())),
            _ => {
                state.producers.insert(prefix.value().into(), Producer { sender, nack_when_full });
                Ok(())
            }
        }
    }

    pub(crate) fn remove_producer(&self, prefix: &NameBuf) {
        self.lock().producers.remove(prefix.value());
    }

    /// Gives pulls and pushes to this receiver from now on; false if another is open.
    pub(crate) fn open_tag_receiver(&self, receiver: mpsc::Sender<TagPacketBuf>) -> bool {
        let mut state = self.lock();
        // On a closed face the sender is dropped, which ends the stream.
        state.closed.is_some() || state.tags.open(receiver)
    }

    /// Handles one frame: a bare packet or an LpPacket.
    fn receive(self: &Arc<Self>, frame: &[u8]) {
        self.lock().counters.in_frames += 1;
        if frame.first() != Some(&(types::LP_PACKET as u8)) {
            return self.receive_network_packet(&LpHeaders::default(), None, frame);
        }
        let Ok(packet) = LpPacket::parse(frame) else { return self.count_malformed() };
        let Some(fragment) = packet.fragment else { return }; // IDLE: link matters only
        if packet.frag_count <= 1 {
            return self.receive_network_packet(&packet.headers, packet.path_label, fragment);
        }
        let whole = {
            let mut state = self.lock();
            let whole = state.reassembly.receive(&packet, fragment, std::time::Instant::now());
            state.counters.dropped_fragments = state.reassembly.dropped_fragments();
            whole
        };
        if let Some((headers, bytes)) = whole {
            self.receive_network_packet(&headers, None, &bytes);
        }
    }

    /// `path` is its PathLabel, which fragments lose.
    fn receive_network_packet(self: &Arc<Self>, headers: &LpHeaders, path: Option<&[u8]>, wire: &[u8]) {
        match wire.first().map(|first| u32::from(*first)) {
            Some(types::DATA) => self.receive_data(headers, path, wire),
            Some(types::INTEREST) => self.receive_interest(headers, wire),
            // Every other type is TagNet's, or unknown.
            _ => self.receive_tag_packet(wire),
        }
    }

    fn receive_tag_packet(&self, wire: &[u8]) {
        let Ok(packet) = TagPacketBuf::new(wire) else { return self.count_malformed() };
        let mut state = self.lock();
        match state.tags.deliver(packet) {
            Delivery::Delivered => {}
            Delivery::Unsolicited => state.counters.dropped_unsolicited_replies += 1,
            Delivery::Unserved => state.counters.dropped_unserved_tag_packets += 1,
            Delivery::Busy => state.counters.dropped_tag_receiver_busy += 1,
        }
    }

    fn receive_data(&self, headers: &LpHeaders, path: Option<&[u8]>, wire: &[u8]) {
        let Ok(data) = Data::parse(wire) else { return self.count_malformed() };
        let satisfied = {
            let mut state = self.lock();
            let satisfied = state.pending.take_satisfied(&data);
            if satisfied.is_empty() {
                state.counters.dropped_unsolicited_data += 1;
                state.fetches.count(&data);
            }
            satisfied
        };
        if satisfied.is_empty() {
            return;
        }
        let Ok(mut data) = DataBuf::new(wire) else { return };
        data.congestion_mark = headers.congestion_mark;
        data.incoming_face_id = headers.incoming_face_id;
        data.path = path.and_then(|path| PathLabel::parse_tlv(path).ok()).map(Arc::new);
        for completion in satisfied {
            completion.complete(Ok(data.clone()));
        }
    }

    fn receive_interest(self: &Arc<Self>, headers: &LpHeaders, wire: &[u8]) {
        let Ok(interest) = Interest::parse(wire) else { return self.count_malformed() };
        if let Some(reason) = headers.nack {
            let mut state = self.lock();
            let taken = state.pending.take_nacked(&interest);
            state.counters.dropped_unsolicited_nacks += u64::from(taken.is_empty());
            drop(state);
            return taken.into_iter().for_each(|completion| completion.complete(nacked(reason)));
        }
        let state = &mut *self.lock();
        let name = interest.name();
        let producer = (0..=name.len()).rev().find_map(|count| state.producers.get(name.prefix(count).value()));
        let Some(producer) = producer else { return state.counters.dropped_unserved_interests += 1 };
        match producer.sender.try_send(IncomingInterest::new(self, wire, headers)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Closed(_)) => state.counters.dropped_unserved_interests += 1,
            Err(mpsc::error::TrySendError::Full(incoming)) => {
                state.counters.dropped_producer_busy += 1;
                // The reader cannot wait for room, so a full send queue gets no Nack.
                if let Some(reason) = producer.nack_when_full
                    && state.queue.bytes.len() < SEND_QUEUE_BYTES_MAX
                {
                    let mut nack = ReplyBatch::default();
                    nack.push_nack(&incoming, reason);
                    state.queue.append(nack.bytes(), nack.ends());
                    state.counters.out_frames += 1;
                    self.wake_writer.notify_one();
                }
            }
        }
    }

    fn count_malformed(&self) {
        self.lock().counters.dropped_malformed += 1;
    }

    /// Starts the tasks of a stream connection.
    pub(crate) fn run_stream<R, W>(self: &Arc<Self>, reader: R, writer: W) -> [tokio::task::JoinHandle<()>; 2]
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (face, other) = (Arc::clone(self), Arc::clone(self));
        [
            tokio::spawn(async move { face.close(face.read_stream(reader).await) }),
            tokio::spawn(async move { other.close(other.write_stream(writer).await) }),
        ]
    }

    /// Starts the tasks of a connected UDP socket.
    pub(crate) fn run_datagram(self: &Arc<Self>, socket: UdpSocket) -> [tokio::task::JoinHandle<()>; 2] {
        let socket = Arc::new(socket);
        let (face, read) = (Arc::clone(self), Arc::clone(&socket));
        let other = Arc::clone(self);
        [
            tokio::spawn(async move { face.close(face.read_datagrams(&read).await) }),
            tokio::spawn(async move { other.close(other.write_datagrams(&socket).await) }),
        ]
    }

    async fn read_stream(self: &Arc<Self>, mut reader: impl AsyncRead + Unpin) -> CloseReason {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let (mut start, mut end) = (0, 0);
        loop {
            match reader.read(&mut buffer[end..]).await {
                Ok(0) => return CloseReason::Remote,
                Ok(count) => end += count,
                Err(error) => return CloseReason::Io(error.to_string()),
            }
            loop {
                match tlv::element_size(&buffer[start..end]) {
                    Err(_) => return CloseReason::NotTlv,
                    Ok(Some(size)) if size > FRAME_BYTES_MAX => return CloseReason::NotTlv,
                    Ok(Some(size)) if size <= end - start => {
                        self.receive(&buffer[start..start + size]);
                        start += size;
                    }
                    Ok(_) => break, // the rest of this frame is still to come
                }
            }
            if start == end {
                (start, end) = (0, 0);
            } else if buffer.len() - end < FRAME_BYTES_MAX {
                buffer.copy_within(start..end, 0);
                (start, end) = (0, end - start);
            }
        }
    }

    async fn read_datagrams(self: &Arc<Self>, socket: &UdpSocket) -> CloseReason {
        let mut buffer = vec![0; FRAME_BYTES_MAX + 1];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(size) => match tlv::element_size(&buffer[..size]) {
                    // Exactly one packet in a datagram (NDNLPv2 §2).
                    Ok(Some(element)) if element == size && size <= FRAME_BYTES_MAX => self.receive(&buffer[..size]),
                    _ => self.count_malformed(),
                },
                // An ICMP "port unreachable" for an earlier datagram: no program listens there now.
                Err(error) => return CloseReason::Io(error.to_string()),
            }
        }
    }

    /// Swaps the queue into `batch`; `None` when no more will come.
    async fn next_batch(&self, batch: &mut SendQueue) -> Option<()> {
        batch.bytes.clear();
        batch.ends.clear();
        loop {
            {
                let mut state = self.lock();
                state.is_writing = false;
                if state.closed.is_some() {
                    return None;
                }
                if !state.queue.bytes.is_empty() {
                    std::mem::swap(&mut state.queue, batch);
                    state.is_writing = true;
                    drop(state);
                    self.room.notify_waiters();
                    return Some(());
                }
                if state.is_closing {
                    return None;
                }
            }
            self.drained.notify_waiters();
            self.wake_writer.notified().await;
        }
    }

    async fn write_stream(&self, mut writer: impl AsyncWrite + Unpin) -> CloseReason {
        let mut batch = SendQueue::default();
        while self.next_batch(&mut batch).await.is_some() {
            if let Err(error) = writer.write_all(&batch.bytes).await {
                return CloseReason::Io(error.to_string());
            }
        }
        drop(writer.shutdown().await); // the other side may be gone already
        CloseReason::Local
    }

    async fn write_datagrams(&self, socket: &UdpSocket) -> CloseReason {
        let mut batch = SendQueue::default();
        while self.next_batch(&mut batch).await.is_some() {
            let mut start = 0;
            for &end in &batch.ends {
                if let Err(error) = socket.send(&batch.bytes[start..end]).await {
                    return CloseReason::Io(error.to_string());
                }
                start = end;
            }
        }
        CloseReason::Local
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_interest::Completion;
    use namewire_packet::{
        DataBuilder, InterestBuilder, lp,
        tag::{Place, TagPacketBuilder, TagPacketKind, TreeEpoch},
    };
    use proptest::prelude::*;

    fn frames() -> Vec<Vec<u8>> {
        let name: NameBuf = "/a/b".parse().unwrap();
        let interest = InterestBuilder::new(name.clone()).can_be_prefix(true).lifetime_ms(100).build();
        let data = DataBuilder::new(name).freshness_ms(1).final_segment(0).content(b"content").sign_digest();
        let nack = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
        let token = LpHeaders { pit_token: lp::PitToken::new(b"token"), congestion_mark: 1, ..LpHeaders::default() };
        let fragment = lp::LinkFields { sequence: Some(7), fragment: Some((0, 2)), ..lp::LinkFields::default() };
        let mut frames = vec![interest.clone(), data.clone()];
        for (headers, link, packet) in [
            (nack, lp::LinkFields::default(), &interest),
            (token, lp::LinkFields::default(), &data),
            (token, fragment, &data),
        ] {
            let mut frame = Vec::new();
            lp::write_headers(&mut frame, &headers, &link, packet.len());
            frame.extend_from_slice(packet);
            frames.push(frame);
        }
        for kind in [TagPacketKind::Pull, TagPacketKind::Reply] {
            let place = Place { endpoint: 300, label: &[1, 2] };
            let tree = TreeEpoch { tree: 1, epoch: 7 };
            let builder = TagPacketBuilder::by_locator(kind, tree, place).nonce(9).reply_to(place);
            frames.push(builder.payload(b"payload").build());
        }
        frames
    }

    proptest! {
        /// Damaged packets change counters only: no panic, and the face still works.
        #[test]
        fn damaged_frames_do_no_harm(
            which in 0..7_usize,
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let face = Arc::new(Face::default());
            let (sender, mut incoming) = mpsc::channel(4);
            face.add_producer(&NameBuf::new(), sender, None).unwrap();
            let (pulls, mut waiting) = mpsc::channel(4);
            let (replies, mut replied) = mpsc::unbounded_channel();
            prop_assert!(face.open_tag_receiver(pulls) && face.lock().tags.begin(9, 2, replies));
            let (done, mut outcomes) = mpsc::unbounded_channel();
            let wire = InterestBuilder::new("/a/b".parse::<NameBuf>().unwrap()).build();
            face.lock().pending.insert(&Interest::parse(&wire).unwrap(), Completion::Tagged(1, done));

            let mut frame = frames().swap_remove(which);
            for (place, byte) in damage {
                let place = place.index(frame.len());
                frame[place] = byte;
            }
            frame.truncate(cut.index(frame.len()) + 1);
            face.receive(&frame);
            prop_assert_eq!(face.counters().in_frames, 1);
            while incoming.try_recv().is_ok() {}

            face.receive(&frames()[0]);
            prop_assert!(incoming.try_recv().is_ok());
            face.receive(&frames()[1]);
            prop_assert!(outcomes.try_recv().is_ok());
            while waiting.try_recv().is_ok() {}
            face.receive(&frames()[5]);
            prop_assert!(waiting.try_recv().is_ok());
            face.receive(&frames()[6]);
            prop_assert!(replied.try_recv().is_ok());
        }
    }
}
