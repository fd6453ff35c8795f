//! Tag packets: a worker forwards them by tables that all workers read, whichever worker received them.
//!
//! An application's packet first gets its tree and its place for replies
//! ([`TagView::completed`](namewire_tagnet::forwarder::TagView::completed)). Packets between routers go to control.

use super::{WorkerIo, mesh::Task};
use crate::{messages::ToControl, shared::TagCounters};
use namewire_engine::{FaceId, FaceTable, Frame};
use namewire_packet::{
    lp::LpHeaders,
    tag::{TagFrame, TagPacket, TagPacketKind},
};
use namewire_tagnet::{
    forwarder::{Arrival, LiveTablesReader, TagDrop, TagScratch, TagTransmit, TagView},
    matching::SubsetTable,
};
use std::sync::atomic::Ordering;

/// A worker's access to the tables, buffers that it uses again for each packet, and counters.
#[derive(Default)]
pub(crate) struct TagForwarding {
    /// `None` while TagNet is off.
    tables: Option<LiveTablesReader>,
    buffers: Buffers,
    pub(crate) counters: TagCounters,
}

#[derive(Default)]
struct Buffers {
    scratch: TagScratch,
    transmits: Vec<TagTransmit>,
    copy: Vec<u8>,
}

/// A packet of a batch.
#[derive(Clone, Copy)]
struct Arrived<'a> {
    face: FaceId,
    headers: &'a LpHeaders,
    wire: &'a [u8],
}

impl TagForwarding {
    pub(crate) fn new(tables: Option<LiveTablesReader>) -> Self {
        TagForwarding { tables, ..TagForwarding::default() }
    }
}

impl WorkerIo {
    /// Forwards the frames of a batch that hold tag packets.
    #[cold]
    pub(super) fn forward_tag_frames(&mut self, faces: &FaceTable, frames: &[Frame<'_>], tag_frames: &[u16]) {
        let mut forwarding = std::mem::take(&mut self.tags);
        let TagForwarding { tables, buffers, counters } = &mut forwarding;
        let pinned = tables.as_mut().map(LiveTablesReader::pin);
        for &index in tag_frames {
            let Frame { face, headers, packet, .. } = &frames[usize::from(index)];
            let arrived = Arrived { face: *face, headers, wire: packet };
            if TagFrame::of(packet) == Some(TagFrame::Routing) {
                self.hand_to_management(faces, *face, ToControl::TagRouting { face: *face, packet: packet.to_vec() });
                continue;
            }
            let result = match &pinned {
                Some(pinned) => self.forward_tag_packet(faces, &pinned.view(), arrived, buffers, counters),
                None => Err(TagDrop::UnknownTree),
            };
            if let Err(why) = result {
                counters.drops[why as usize] += 1;
            }
        }
        drop(pinned);
        self.tags = forwarding;
    }

    fn forward_tag_packet<T: SubsetTable>(
        &mut self,
        faces: &FaceTable,
        tables: &TagView<'_, T>,
        arrived: Arrived<'_>,
        buffers: &mut Buffers,
        counters: &mut TagCounters,
    ) -> Result<(), TagDrop> {
        let packet = TagPacket::parse(arrived.wire).map_err(|_| TagDrop::Malformed)?;
        match packet.kind {
            TagPacketKind::Push => counters.in_pushes += 1,
            TagPacketKind::Pull => counters.in_pulls += 1,
            TagPacketKind::Reply => counters.in_replies += 1,
        }
        // The face may be gone since.
        let attributes = faces.get(arrived.face).ok_or(TagDrop::NotOnTree)?;
        if !attributes.is_local() {
            return self.forward_by(faces, tables, arrived, &packet, buffers, counters);
        }
        attributes.speaks_tags.store(true, Ordering::Relaxed);
        let completed = tables.completed(&packet, arrived.face)?;
        let packet = TagPacket::parse(&completed).map_err(|_| TagDrop::Malformed)?;
        self.forward_by(faces, tables, Arrived { wire: &completed, ..arrived }, &packet, buffers, counters)
    }

    fn forward_by<T: SubsetTable>(
        &mut self,
        faces: &FaceTable,
        tables: &TagView<'_, T>,
        arrived: Arrived<'_>,
        packet: &TagPacket<'_>,
        buffers: &mut Buffers,
        counters: &mut TagCounters,
    ) -> Result<(), TagDrop> {
        let is_local = faces.get(arrived.face).is_some_and(|face| face.is_local());
        let from = Arrival { face: arrived.face, is_application: is_local };
        let is_application = |face| faces.get(face).is_some_and(|face| face.is_local() && face.speaks_tags());
        let Buffers { scratch, transmits, copy } = buffers;
        let result = tables.forward(packet, from, &is_application, scratch, transmits);
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
        result
    }
}
