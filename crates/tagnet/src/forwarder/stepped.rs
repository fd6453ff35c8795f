//! Stepped tables: forward one packet at a time, with a search that may continue over several batches.
//!
//! The tables stay as they are from the first step of a packet to its last, so changes by the control thread wait until
//! then.

use super::{Arrival, LiveTablesReader, TagDrop, TagScratch, TagTransmit};
use namewire_packet::{FaceId, tag::TagPacket};
use std::task::Poll;

/// See the module documentation.
#[derive(Debug)]
pub struct SteppedTables {
    reader: LiveTablesReader,
    scratch: TagScratch,
    is_held: bool,
}

impl SteppedTables {
    /// With a reader of its own.
    pub fn new(reader: LiveTablesReader) -> Self {
        SteppedTables { reader, scratch: TagScratch::default(), is_held: false }
    }

    /// Takes over the newest tables, unless a packet is under way, so that the memory of former ones is free.
    pub fn refresh(&mut self) {
        if !self.is_held {
            self.reader.refresh();
        }
    }

    /// Begins or goes on with a packet, as [`TagView::forward_within`](super::TagView::forward_within). After
    /// `Pending`, the next call must be for the same packet.
    ///
    /// # Errors
    /// As there.
    pub fn forward(
        &mut self,
        packet: &TagPacket<'_>,
        from: Arrival,
        is_application: &dyn Fn(FaceId) -> bool,
        steps: &mut usize,
        out: &mut Vec<TagTransmit>,
    ) -> Poll<Result<(), TagDrop>> {
        if !self.is_held {
            self.reader.hold();
            self.is_held = true;
            self.scratch.give_up();
        }
        let tables = self.reader.held();
        let result = tables.view().forward_within(packet, from, is_application, &mut self.scratch, steps, out);
        drop(tables);
        if result.is_ready() {
            self.reader.release();
            self.is_held = false;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Descriptor, TagSet,
        forwarder::{Branch, BranchSet, LiveTables, Serves, TreeTable},
        locator::{TreeLabels, WideLabel},
    };
    use namewire_packet::tag::{TagPacketBuilder, TagPacketKind, TreeEpoch};

    const TREE: TreeEpoch = TreeEpoch { tree: 1, epoch: 7 };
    const FROM: FaceId = FaceId(300);
    const BEYOND: FaceId = FaceId(301);

    fn set(number: u32) -> TagSet {
        TagSet::new([format!("kind{}", number % 9), format!("own{number}")]).unwrap()
    }

    /// A router between two neighbours; beyond the second one, these sets were advertised.
    fn tables(sets: u32) -> LiveTables {
        let mut tables = LiveTables::new(10_000).unwrap();
        let labels: TreeLabels<u32> = TreeLabels::of(&[None, Some(0), Some(1)]).unwrap();
        let (state, label): (_, WideLabel) = (*labels.state(1), labels.label(1));
        let tree = TreeTable { tree: 1, epoch: 7, state, label, faces: vec![BEYOND, FROM] };
        tables.set_trees(vec![tree], [].into());
        let branch = Branch { tree: 1, face: BEYOND, serves: Serves::BOTH, is_application: false };
        let branches = BranchSet::new(vec![branch], Vec::new());
        tables.change((0..sets).map(|number| (set(number).descriptor(), Some(branches.clone()))));
        tables
    }

    /// A packet by this filter; between routers, its tags are not compared with it.
    fn packet(kind: TagPacketKind, filter: Descriptor, fan_out: u32) -> Vec<u8> {
        TagPacketBuilder::by_descriptor(kind, TREE, filter.to_bytes(), ["a"]).fan_out(fan_out).build()
    }

    /// What a packet does in steps is what it does at once, and control changes the tables when it is over.
    #[test]
    fn a_stepped_search_sends_a_packet_where_an_unstepped_one_does() {
        let mut tables = tables(3_000);
        let mut reader = tables.reader();
        let mut stepped = SteppedTables::new(tables.reader());
        let arrival = Arrival { face: FROM, is_application: false };
        let heavy: Descriptor = (0..192).filter(|bit| bit % 7 < 4).collect();
        for (kind, fan_out, filter) in [
            (TagPacketKind::Push, u32::MAX, heavy),
            (TagPacketKind::Pull, 1, heavy),
            (TagPacketKind::Pull, 5, heavy),
            (TagPacketKind::Pull, 1, set(77).descriptor()),
            (TagPacketKind::Pull, 0, heavy),
        ] {
            let wire = packet(kind, filter, fan_out);
            let packet = TagPacket::parse(&wire).unwrap();
            let (mut scratch, mut expected) = (TagScratch::default(), Vec::new());
            let result = reader.pin().view().forward(&packet, arrival, &|_| false, &mut scratch, &mut expected);
            let mut out = Vec::new();
            let mut turns = 1;
            while stepped.forward(&packet, arrival, &|_| false, &mut { 5 }, &mut out).is_pending() {
                assert!(out.is_empty());
                tables.change([(set(9_000).descriptor(), None)]);
                tables.change([(set(9_000).descriptor(), Some(BranchSet::default()))]);
                assert!(tables.is_waiting(), "until the packet has ended");
                turns += 1;
            }
            assert!(turns > 5 || fan_out == 0 || filter != heavy || fan_out == 5, "{turns} turns");
            tables.run();
            assert!(!tables.is_waiting());
            let again = stepped.forward(&packet, arrival, &|_| false, &mut { usize::MAX }, &mut out);
            assert_eq!((again, &out), (Poll::Ready(result), &expected), "{kind:?} {fan_out}");
        }
    }
}
