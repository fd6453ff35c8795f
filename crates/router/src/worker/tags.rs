//! Tag packets: a worker forwards them by tables that all workers read, whichever worker received them.
//!
//! An application's packet first gets its tree and its place for replies
//! ([`TagTables::completed`](namewire_tagnet::forwarder::TagTables::completed)). Packets between routers go to control.

use super::WorkerIo;
use crate::{
    messages::ToControl,
    shared::{Tables, TagCounters},
};
use namewire_engine::{FaceId, Frame};
use namewire_packet::{
    lp::LpHeaders,
    tag::{TagFrame, TagPacket, TagPacketKind},
};
use namewire_tagnet::forwarder::{Arrival, TagDrop, TagScratch, TagTransmit};
use std::sync::atomic::Ordering;

/// Buffers of a worker, used again for each packet, and its counters.
#[derive(Default)]
pub(crate) struct TagForwarding {
    scratch: TagScratch,
    transmits: Vec<TagTransmit>,
    copy: Vec<u8>,
    pub(crate) counters: TagCounters,
}

impl WorkerIo {
    /// Forwards the frames of a batch that hold tag packets.
    #[cold]
    pub(super) fn forward_tag_frames(&mut self, tables: &Tables<'_>, frames: &[Frame<'_>], tag_frames: &[u16]) {
        for &index in tag_frames {
            let frame = &frames[usize::from(index)];
            let packet: &[u8] = frame.packet;
            if TagFrame::of(packet) == Some(TagFrame::Routing) {
                let message = ToControl::TagRouting { face: frame.face, packet: packet.to_vec() };
                self.hand_to_management(frame.face, message);
            } else if let Err(why) = self.forward_tag_packet(tables, frame.face, &frame.headers, packet) {
                self.tags.counters.drops[why as usize] += 1;
            }
        }
    }

    fn forward_tag_packet(
        &mut self,
        tables: &Tables<'_>,
        face: FaceId,
        headers: &LpHeaders,
        wire: &[u8],
    ) -> Result<(), TagDrop> {
        let packet = TagPacket::parse(wire).map_err(|_| TagDrop::Malformed)?;
        let counters = &mut self.tags.counters;
        match packet.kind {
            TagPacketKind::Push => counters.in_pushes += 1,
            TagPacketKind::Pull => counters.in_pulls += 1,
            TagPacketKind::Reply => counters.in_replies += 1,
        }
        // The face may be gone since.
        let attributes = tables.view().faces.get(face).ok_or(TagDrop::NotOnTree)?;
        if !attributes.is_local() {
            let arrival = Arrival { face, is_application: false };
            return self.forward_by_tables(tables, arrival, headers, wire, &packet);
        }
        attributes.speaks_tags.store(true, Ordering::Relaxed);
        let completed = tables.tags.completed(&packet, face)?;
        let packet = TagPacket::parse(&completed).map_err(|_| TagDrop::Malformed)?;
        self.forward_by_tables(tables, Arrival { face, is_application: true }, headers, &completed, &packet)
    }

    fn forward_by_tables(
        &mut self,
        tables: &Tables<'_>,
        arrival: Arrival,
        headers: &LpHeaders,
        wire: &[u8],
        packet: &TagPacket<'_>,
    ) -> Result<(), TagDrop> {
        let faces = tables.view().faces;
        let is_application = |face| faces.get(face).is_some_and(|face| face.is_local() && face.speaks_tags());
        let mut forwarding = std::mem::take(&mut self.tags);
        let TagForwarding { scratch, transmits, copy, counters } = &mut forwarding;
        let result = tables.tags.forward(packet, arrival, &is_application, scratch, transmits);
        for &TagTransmit { face, hop_limit, fan_out } in transmits.iter() {
            copy.clear();
            copy.extend_from_slice(wire);
            packet.patch(copy, hop_limit, fan_out);
            counters.out_packets += 1;
            self.transmit_tag_packet(tables, face, headers, copy);
        }
        self.tags = forwarding;
        result
    }

    fn transmit_tag_packet(&mut self, tables: &Tables<'_>, face: FaceId, headers: &LpHeaders, packet: &[u8]) {
        match tables.view().faces.get(face) {
            Some(attributes) if attributes.owner != self.index => {
                self.push(attributes.owner, super::Task::Transmit, face, headers, packet);
            }
            _ => self.transmit_here(face, headers, packet),
        }
    }
}
