//! Tag packets: the worker that receives one forwards it, by tables that all workers read.
//!
//! An application's packet first gets its tree and its place for replies
//! ([`TagView::completed`](namewire_tagnet::forwarder::TagView::completed)). Packets between routers go to control.
//! Long searches continue in later turns (`tag_searches.rs`).

use crate::{
    io::WorkerIo,
    mesh::Task,
    messages::ForManagement,
    shared::TagCounters,
    tag_searches::{FIRST_STEPS, FIRST_TURN_STEPS, TURN_STEPS, TagSearches, WaitingPacket},
};
use namewire_engine::{FaceId, FaceTable, Frame};
use namewire_packet::{
    lp::LpHeaders,
    tag::{TagAddress, TagFrame, TagPacket, TagPacketKind},
};
use namewire_tagnet::{
    forwarder::{Arrival, LiveTablesReader, SteppedTables, TagDrop, TagScratch, TagTransmit, TagView},
    matching::burst_trie::BurstTrieView,
};
use std::{sync::atomic::Ordering, task::Poll};

/// A worker's access to the tables, buffers that it uses again for each packet, and counters.
#[derive(Default)]
pub(crate) struct TagForwarding {
    /// `None` while TagNet is off.
    tables: Option<LiveTablesReader>,
    /// What searches that take long need.
    long: Option<LongSearches>,
    buffers: Buffers,
    pub(crate) counters: TagCounters,
}

struct LongSearches {
    searches: TagSearches,
    tables: SteppedTables,
}

#[derive(Default)]
struct Buffers {
    scratch: TagScratch,
    transmits: Vec<TagTransmit>,
    copy: Vec<u8>,
    /// Steps that the packets of this turn may still use.
    steps: usize,
}

/// What a packet of a batch meets.
struct Place<'a> {
    searches: &'a mut TagSearches,
    buffers: &'a mut Buffers,
    counters: &'a mut TagCounters,
}

/// A packet of a batch.
#[derive(Clone, Copy)]
struct Arrived<'a> {
    face: FaceId,
    headers: &'a LpHeaders,
    wire: &'a [u8],
}

impl TagForwarding {
    /// With two readers for this worker.
    pub(crate) fn new(readers: Option<[LiveTablesReader; 2]>, searches: TagSearches) -> Self {
        let Some([tables, stepped]) = readers else { return TagForwarding::default() };
        let long = Some(LongSearches { searches, tables: SteppedTables::new(stepped) });
        TagForwarding { tables: Some(tables), long, ..TagForwarding::default() }
    }

    /// True if searches wait for the next turn.
    fn has_searches(&self) -> bool {
        self.long.as_ref().is_some_and(|long| !long.searches.is_empty())
    }
}

impl WorkerIo {
    /// Forwards the frames of a batch that hold tag packets.
    #[cold]
    pub(crate) fn forward_tag_frames(&mut self, faces: &FaceTable, frames: &[Frame<'_>], tag_frames: &[u16]) {
        let mut forwarding = std::mem::take(&mut self.tags);
        let TagForwarding { tables, long, buffers, counters } = &mut forwarding;
        let pinned = tables.as_mut().map(LiveTablesReader::pin);
        for &index in tag_frames {
            let Frame { face, headers, packet, .. } = &frames[usize::from(index)];
            let arrived = Arrived { face: *face, headers, wire: packet };
            if TagFrame::of(packet) == Some(TagFrame::Routing) {
                self.hand_to_management(
                    faces,
                    *face,
                    ForManagement::TagRouting { face: *face, packet: packet.to_vec() },
                );
                continue;
            }
            let result = match (&pinned, &mut *long) {
                (Some(pinned), Some(LongSearches { searches, .. })) => {
                    let mut place = Place { searches, buffers, counters };
                    self.forward_tag_packet(faces, &pinned.view(), arrived, &mut place)
                }
                _ => Err(TagDrop::UnknownTree),
            };
            if let Err(why) = result {
                counters.drops[why as usize] += 1;
            }
        }
        drop(pinned);
        self.tags = forwarding;
    }

    fn forward_tag_packet(
        &mut self,
        faces: &FaceTable,
        tables: &TagView<'_, BurstTrieView<'_>>,
        arrived: Arrived<'_>,
        place: &mut Place<'_>,
    ) -> Result<(), TagDrop> {
        let packet = TagPacket::parse(arrived.wire).map_err(|_| TagDrop::Malformed)?;
        let counters = &mut place.counters;
        match packet.kind {
            TagPacketKind::Push => counters.in_pushes += 1,
            TagPacketKind::Pull => counters.in_pulls += 1,
            TagPacketKind::Reply => counters.in_replies += 1,
        }
        // The face may be gone since.
        let attributes = faces.get(arrived.face).ok_or(TagDrop::NotOnTree)?;
        if !attributes.is_local() {
            return self.forward_or_park(faces, tables, arrived, &packet, place);
        }
        attributes.speaks_tags.store(true, Ordering::Relaxed);
        let completed = tables.completed(&packet, arrived.face)?;
        let packet = TagPacket::parse(&completed).map_err(|_| TagDrop::Malformed)?;
        self.forward_or_park(faces, tables, Arrived { wire: &completed, ..arrived }, &packet, place)
    }

    /// Forwards a packet if its search is short, and otherwise lets it wait.
    fn forward_or_park(
        &mut self,
        faces: &FaceTable,
        tables: &TagView<'_, BurstTrieView<'_>>,
        arrived: Arrived<'_>,
        packet: &TagPacket<'_>,
        place: &mut Place<'_>,
    ) -> Result<(), TagDrop> {
        let Place { searches, buffers, counters } = place;
        let holder = faces.get(arrived.face).map(|face| face.holder).unwrap_or_default();
        let is_search = matches!(packet.address, TagAddress::Descriptor { .. });
        let waits = is_search && (buffers.steps == 0 || !searches.is_empty() && searches.has_any_of(holder));
        if !waits {
            let first_steps = buffers.steps.min(FIRST_STEPS);
            let mut steps = first_steps;
            let is_application = |face| is_application(faces, face);
            let Buffers { scratch, transmits, .. } = buffers;
            scratch.give_up();
            let from = arrival(faces, arrived.face);
            let result = tables.forward_within(packet, from, &is_application, scratch, &mut steps, transmits);
            buffers.steps -= first_steps - steps;
            if let Poll::Ready(result) = result {
                self.send_tag_packet(faces, arrived, packet, buffers, counters);
                return result;
            }
        }
        counters.searches_parked += 1;
        let Arrived { face, headers, wire } = arrived;
        let parked = searches.park(holder, WaitingPacket { face, headers: *headers, wire: wire.into() });
        parked.then_some(()).ok_or(TagDrop::SearchesWaiting)
    }

    /// Sends the copies of a packet.
    fn send_tag_packet(
        &mut self,
        faces: &FaceTable,
        arrived: Arrived<'_>,
        packet: &TagPacket<'_>,
        buffers: &mut Buffers,
        counters: &mut TagCounters,
    ) {
        let Buffers { transmits, copy, .. } = buffers;
        for &TagTransmit { face, hop_limit, fan_out } in transmits.iter() {
            copy.clear();
            copy.extend_from_slice(arrived.wire);
            packet.patch(copy, hop_limit, fan_out);
            counters.out_packets += 1;
            match faces.get(face) {
                Some(to) if to.owner != self.index => self.push(to.owner, Task::Transmit, face, arrived.headers, copy),
                _ => self.transmit_here(faces, face, arrived.headers, copy),
            }
        }
    }

    /// Goes on with searches that wait, as far as a turn has steps for them; and begins another turn for packets that
    /// come.
    pub(crate) fn search_tags(&mut self, faces: &FaceTable) {
        self.tags.buffers.steps = FIRST_TURN_STEPS;
        if !self.tags.has_searches() {
            return;
        }
        let mut forwarding = std::mem::take(&mut self.tags);
        let TagForwarding { long, buffers, counters, .. } = &mut forwarding;
        let mut steps = TURN_STEPS;
        while steps > 0
            && let Some(long) = long
            && let Some(waiting) = long.searches.next()
        {
            let before = steps;
            let result = self.go_on(faces, waiting, &mut long.tables, &mut steps, (buffers, counters));
            if let Poll::Ready(Err(why)) = result {
                counters.drops[why as usize] += 1;
            }
            long.searches.charge(before - steps, result.is_ready());
        }
        self.tags = forwarding;
        if self.tags.has_searches() {
            self.driver.waker().wake(); // come back without sleeping
        }
    }

    fn go_on(
        &mut self,
        faces: &FaceTable,
        waiting: &WaitingPacket,
        tables: &mut SteppedTables,
        steps: &mut usize,
        (buffers, counters): (&mut Buffers, &mut TagCounters),
    ) -> Poll<Result<(), TagDrop>> {
        let WaitingPacket { face, headers, wire } = waiting;
        let Ok(packet) = TagPacket::parse(wire) else { return Poll::Ready(Err(TagDrop::Malformed)) };
        let is_application = |face| is_application(faces, face);
        let from = arrival(faces, *face);
        let result = tables.forward(&packet, from, &is_application, steps, &mut buffers.transmits);
        if result.is_ready() {
            let arrived = Arrived { face: *face, headers, wire };
            self.send_tag_packet(faces, arrived, &packet, buffers, counters);
        }
        result
    }
}

fn arrival(faces: &FaceTable, face: FaceId) -> Arrival {
    Arrival { face, is_application: faces.get(face).is_some_and(|face| face.is_local()) }
}

/// True for an application that has sent tag packets.
fn is_application(faces: &FaceTable, face: FaceId) -> bool {
    faces.get(face).is_some_and(|face| face.is_local() && face.speaks_tags())
}
