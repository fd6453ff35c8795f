//! Flows: the packets of pull and push flows, as bytes (§4.5).
//!
//! | flow | packet | bytes | address | comes from |
//! | --- | --- | --- | --- | --- |
//! | push | the push | 1280 | descriptor, to all | the parent |
//! | pull | first interest | 800 | descriptor, to one | the parent |
//! | | its data | 1280 | locator | a child |
//! | | 0 to n further interests | 100 | locator | the parent |
//! | | data of each | 1280 | locator | a child |
//!
//! The numbers of bytes are the paper's, and the number of further interests is uniform, as there. That the first
//! interest has data too follows from the mean sizes of Table 1 (731 bytes with 100 % pull flows). All packets of a
//! repetition are shuffled.

use anyhow::ensure;
use namewire_packet::FaceId;
use namewire_packet::tag::{Place, TagPacketBuilder, TagPacketKind};
use namewire_tagnet::TagSet;

use super::tree_router::{TREE, TreeRouter};
use crate::tag_sets::PacketTags;

/// Bytes of a push and of data: the least MTU of a link under IPv6.
const DATA_BYTES: usize = 1280;
/// Bytes of the first interest of a pull.
const FIRST_INTEREST_BYTES: usize = 800;
/// Bytes of a further interest.
const INTEREST_BYTES: usize = 100;

/// A mix of flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    /// Pull flows, of all flows.
    pub(super) pull_percent: u32,
    /// Most further interests of a pull.
    pub(super) further_max: usize,
}

/// Packets as they arrive, their bytes back to back.
#[derive(Default)]
pub(super) struct Packets {
    pub(super) bytes: Vec<u8>,
    /// Where each packet ends, and the face by which it comes; in the order of arrival.
    pub(super) arrivals: Vec<(usize, FaceId)>,
}

impl Packets {
    /// Whole flows, until there are this number of packets.
    ///
    /// # Errors
    /// If a packet cannot have its number of bytes.
    pub(super) fn draw(
        router: &TreeRouter,
        tags: &mut PacketTags<'_>,
        mix: Mix,
        wanted: usize,
        random: &mut fastrand::Rng,
    ) -> anyhow::Result<Self> {
        let mut flows = Flows { router, tags, random, packets: Vec::with_capacity(wanted) };
        while flows.packets.len() < wanted {
            if flows.random.u32(..100) < mix.pull_percent {
                flows.pull(mix.further_max)?;
            } else {
                flows.push()?;
            }
        }
        let Flows { mut packets, random, .. } = flows;
        random.shuffle(&mut packets);
        let mut arrived = Packets::default();
        for (wire, face) in packets {
            arrived.bytes.extend(wire);
            arrived.arrivals.push((arrived.bytes.len(), face));
        }
        Ok(arrived)
    }

    /// Bytes of a packet on average.
    pub(super) fn mean_bytes(&self) -> f64 {
        self.bytes.len() as f64 / self.arrivals.len().max(1) as f64
    }
}

struct Flows<'f, 's> {
    router: &'f TreeRouter,
    tags: &'f mut PacketTags<'s>,
    random: &'f mut fastrand::Rng,
    packets: Vec<(Vec<u8>, FaceId)>,
}

impl Flows<'_, '_> {
    fn push(&mut self) -> anyhow::Result<()> {
        self.by_descriptor(TagPacketKind::Push, DATA_BYTES)
    }

    fn pull(&mut self, further_max: usize) -> anyhow::Result<()> {
        self.by_descriptor(TagPacketKind::Pull, FIRST_INTEREST_BYTES)?;
        self.by_locator(TagPacketKind::Reply, false, DATA_BYTES)?;
        for _ in 0..self.random.usize(..=further_max) {
            self.by_locator(TagPacketKind::Pull, true, INTEREST_BYTES)?;
            self.by_locator(TagPacketKind::Reply, false, DATA_BYTES)?;
        }
        Ok(())
    }

    fn by_descriptor(&mut self, kind: TagPacketKind, bytes: usize) -> anyhow::Result<()> {
        let tags: TagSet = self.tags.matching_up_to(2)?;
        let label = self.router.random_label(false, self.random).to_bytes();
        let filter = tags.descriptor().to_bytes();
        let packet = TagPacketBuilder::by_descriptor(kind, TREE, filter, tags.tags().iter().map(String::as_str))
            .reply_to(Place { endpoint: 1, label: &label });
        self.add(packet, bytes, self.router.parent())
    }

    fn by_locator(&mut self, kind: TagPacketKind, is_below: bool, bytes: usize) -> anyhow::Result<()> {
        let [to, back] =
            [is_below, !is_below].map(|is_below| self.router.random_label(is_below, self.random).to_bytes());
        let packet = TagPacketBuilder::by_locator(kind, TREE, Place { endpoint: 1, label: &to })
            .reply_to(Place { endpoint: 1, label: &back });
        let children = self.router.children();
        let from = if is_below { self.router.parent() } else { children[self.random.usize(..children.len())] };
        self.add(packet, bytes, from)
    }

    /// Adds the packet with as much payload as it takes to have this number of bytes.
    fn add(&mut self, packet: TagPacketBuilder<'_>, bytes: usize, from: FaceId) -> anyhow::Result<()> {
        let packet = packet.nonce(self.random.u32(..));
        let payload = [0xaa; DATA_BYTES];
        let bare = packet.build().len();
        ensure!(bare < bytes, "a packet of {bytes} bytes has no room for {bare} bytes of headers");
        // Lengths of more than 252 take two bytes more, in the packet and in the payload.
        let wire = (0..16).find_map(|header| {
            let wire = packet.clone().payload(&payload[..(bytes - bare).checked_sub(header)?]).build();
            (wire.len() == bytes).then_some(wire)
        });
        let wire = wire.map_or_else(|| anyhow::bail!("no payload makes a packet of {bytes} bytes"), Ok)?;
        self.packets.push((wire, from));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag_sets::{StoredSets, ZipfTags};

    #[test]
    fn mean_sizes_are_those_of_table_1() -> anyhow::Result<()> {
        let router = TreeRouter::in_network(2_000, 1)?;
        let source = ZipfTags::new(1, 1_000, 1.0);
        let stored = StoredSets::draw(&source, 1_000)?;
        let mut tags = PacketTags::new(&source, &stored, 1);
        let mut random = fastrand::Rng::with_seed(1);
        for (pull_percent, mean_bytes) in
            [(0, 1280.0), (20, 835.0), (40, 775.0), (60, 751.0), (80, 739.0), (100, 731.0)]
        {
            let mix = Mix { pull_percent, further_max: 15 };
            let packets = Packets::draw(&router, &mut tags, mix, 20_000, &mut random)?;
            let mean = packets.mean_bytes();
            assert!((mean / mean_bytes - 1.0).abs() < 0.02, "{pull_percent} %: {mean} bytes, not {mean_bytes}");
        }
        Ok(())
    }
}
