//! Tag packets: the worker that receives one forwards it, by tables that all workers read.
//!
//! An application's packet first gets its tree and its place for replies
//! ([`TagView::completed`](namewire_tagnet::forwarder::TagView::completed)). Packets of one batch are searched for
//! together ([`namewire_tagnet::forwarder::batch`]). Packets between routers go to control.
//! Long searches continue in later turns (`tag_searches.rs`).

use crate::{
    io::WorkerIo,
    mesh::Task,
    messages::ForManagement,
    shared::TagCounters,
    tag_searches::{FIRST_STEPS, FIRST_TURN_STEPS, TURN_STEPS, TagSearches, WaitingPacket},
};
use arrayvec::ArrayVec;
use namewire_engine::{FaceId, FaceTable, Frame};
use namewire_packet::{
    lp::LpHeaders,
    tag::{TagAddress, TagFrame, TagPacket, TagPacketKind},
};
use namewire_shares::HolderId;
use namewire_tagnet::{
    forwarder::{
        Arrival, LiveTablesReader, SearchedTable, SteppedTables, TagDrop, TagTransmit, TagView,
        batch::{BatchScratch, PACKETS_MAX},
    },
    matching::burst_trie::StepLimit,
};
use std::{borrow::Cow, sync::atomic::Ordering, task::Poll};

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
    scratch: BatchScratch,
    /// Where the packets of long searches go.
    transmits: Vec<TagTransmit>,
    copy: Vec<u8>,
    /// Steps that the packets of this turn may still use.
    steps: usize,
}

/// What packets of a batch meet.
struct Place<'a> {
    searches: &'a mut TagSearches,
    buffers: &'a mut Buffers,
    counters: &'a mut TagCounters,
}

/// A packet of a batch, whose search is to come: an application's is completed.
struct Prepared<'a> {
    face: FaceId,
    headers: &'a LpHeaders,
    wire: Cow<'a, [u8]>,
}

/// Where the copies of a packet go.
struct Copies<'a> {
    packet: &'a TagPacket<'a>,
    transmits: &'a [TagTransmit],
}

/// A packet that goes on.
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
        long.iter_mut().for_each(|long| long.tables.refresh());
        let pinned = tables.as_mut().map(LiveTablesReader::pin);
        let mut way = match (&pinned, long) {
            (Some(pinned), Some(long)) => Some((pinned.view(), &mut long.searches)),
            _ => None,
        };
        let mut batch = ArrayVec::new();
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
            let Some((tables, searches)) = &mut way else {
                counters.drops[TagDrop::UnknownTree as usize] += 1;
                continue;
            };
            match prepare(faces, tables, arrived, counters) {
                Ok(packet) => batch.push(packet),
                Err(why) => counters.drops[why as usize] += 1,
            }
            if batch.is_full() {
                self.forward_batch(faces, tables, batch.take(), Place { searches, buffers, counters });
            }
        }
        if let Some((tables, searches)) = &mut way {
            self.forward_batch(faces, tables, batch, Place { searches, buffers, counters });
        }
        drop(pinned);
        self.tags = forwarding;
    }

    /// Searches for several packets at a time, and forwards those whose searches are short. The others wait.
    fn forward_batch(
        &mut self,
        faces: &FaceTable,
        tables: &TagView<'_, SearchedTable<'_>>,
        prepared: ArrayVec<Prepared<'_>, PACKETS_MAX>,
        place: Place<'_>,
    ) {
        let (mut packets, mut arrived) = (ArrayVec::<_, PACKETS_MAX>::new(), ArrayVec::<_, PACKETS_MAX>::new());
        for Prepared { face, headers, wire } in &prepared {
            let this = Arrived { face: *face, headers, wire };
            match TagPacket::parse(wire) {
                Err(_) => place.counters.drops[TagDrop::Malformed as usize] += 1,
                Ok(packet) if place.must_wait(faces, &packet, *face) => {
                    Parking { searches: place.searches, counters: place.counters }.park(faces, this)
                }
                Ok(packet) => {
                    packets.push((packet, arrival(faces, *face)));
                    arrived.push(this);
                }
            }
        }
        let Place { searches, buffers: Buffers { scratch, copy, steps, .. }, counters } = place;
        let limit = StepLimit { each: FIRST_STEPS, together: *steps };
        let is_application = |face| is_application(faces, face);
        let mut long_ones = ArrayVec::<Arrived<'_>, PACKETS_MAX>::new();
        let used =
            tables.forward_each(&packets, &is_application, limit, scratch, |place, result, transmits| match result {
                Poll::Pending => long_ones.push(arrived[place]),
                Poll::Ready(result) => {
                    let copies = Copies { packet: &packets[place].0, transmits };
                    self.send_tag_packet(faces, arrived[place], copies, (copy, counters));
                    result.err().into_iter().for_each(|why| counters.drops[why as usize] += 1);
                }
            });
        *steps = steps.saturating_sub(used);
        let mut parking = Parking { searches, counters };
        long_ones.into_iter().for_each(|packet| parking.park(faces, packet));
    }

    /// Sends the copies of a packet.
    fn send_tag_packet(
        &mut self,
        faces: &FaceTable,
        arrived: Arrived<'_>,
        Copies { packet, transmits }: Copies<'_>,
        (copy, counters): (&mut Vec<u8>, &mut TagCounters),
    ) {
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
            let Buffers { transmits, copy, .. } = buffers;
            self.send_tag_packet(faces, arrived, Copies { packet: &packet, transmits }, (copy, counters));
        }
        result
    }
}

/// Counts a packet, and completes an application's.
fn prepare<'a>(
    faces: &FaceTable,
    tables: &TagView<'_, SearchedTable<'_>>,
    arrived: Arrived<'a>,
    counters: &mut TagCounters,
) -> Result<Prepared<'a>, TagDrop> {
    let Arrived { face, headers, wire } = arrived;
    let packet = TagPacket::parse(wire).map_err(|_| TagDrop::Malformed)?;
    match packet.kind {
        TagPacketKind::Push => counters.in_pushes += 1,
        TagPacketKind::Pull => counters.in_pulls += 1,
        TagPacketKind::Reply => counters.in_replies += 1,
    }
    // The face may be gone since.
    let attributes = faces.get(face).ok_or(TagDrop::NotOnTree)?;
    if !attributes.is_local() {
        return Ok(Prepared { face, headers, wire: wire.into() });
    }
    attributes.speaks_tags.store(true, Ordering::Relaxed);
    Ok(Prepared { face, headers, wire: tables.completed(&packet, face)?.into() })
}

impl Place<'_> {
    /// True if a packet's search may not begin in this turn.
    fn must_wait(&self, faces: &FaceTable, packet: &TagPacket<'_>, face: FaceId) -> bool {
        let is_search = matches!(packet.address, TagAddress::Descriptor { .. });
        let holder_waits = || !self.searches.is_empty() && self.searches.has_any_of(holder(faces, face));
        is_search && (self.buffers.steps == 0 || holder_waits())
    }
}

/// Where packets wait whose searches are long.
struct Parking<'a> {
    searches: &'a mut TagSearches,
    counters: &'a mut TagCounters,
}

impl Parking<'_> {
    fn park(&mut self, faces: &FaceTable, Arrived { face, headers, wire }: Arrived<'_>) {
        self.counters.searches_parked += 1;
        let packet = WaitingPacket { face, headers: *headers, wire: wire.into() };
        if !self.searches.park(holder(faces, face), packet) {
            self.counters.drops[TagDrop::SearchesWaiting as usize] += 1;
        }
    }
}

fn holder(faces: &FaceTable, face: FaceId) -> HolderId {
    faces.get(face).map(|face| face.holder).unwrap_or_default()
}

fn arrival(faces: &FaceTable, face: FaceId) -> Arrival {
    Arrival { face, is_application: faces.get(face).is_some_and(|face| face.is_local()) }
}

/// True for an application that has sent tag packets.
fn is_application(faces: &FaceTable, face: FaceId) -> bool {
    faces.get(face).is_some_and(|face| face.is_local() && face.speaks_tags())
}
