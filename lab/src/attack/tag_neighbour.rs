//! A hostile neighbour in TagNet's tree.
//!
//! `heavy-tags` takes part honestly, announces many sets of tags, and then sends pulls with as many 1-bits as sixteen
//! tags can have. The search for each pull visits a large part of the router's table, and matches only descriptors
//! behind the sender.
//!
//! `forged-hellos` takes no part in the tree. It claims to be next to the root, with sequence numbers that differ from
//! the true ones by each value of [`JUMPS`] in turn. It learns the true ones from the router.

use super::{AttackPlan, FORGED_ROOT};
use anyhow::Context as _;
use namewire_packet::{
    FaceId,
    descriptor::{Descriptor, MAX_WEIGHT, TagSet},
    lp::LpPacket,
    tag::{TagFrame, TagPacketBuilder, TagPacketKind, TreeEpoch},
};
use namewire_tagnet::{
    advertisements::AdvertisementLimits,
    forwarder::Serves,
    routing::{
        TagRouting, TagRoutingConfig,
        wire::{Progress, RoutingPacket},
    },
    tree_protocol::{TreeHello, TreeTimes},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
    time::Instant,
};

/// The tree in which the attacks are.
const TREE: u16 = 1;
/// Tags of a heavy packet.
const TAGS: usize = 16;
/// From the true sequence number to the forged one.
const JUMPS: [u32; 9] = [1, 30, 64, 65, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX];
const ROUTER: FaceId = FaceId(300);
const APPLICATION: FaceId = FaceId(400);

/// A socket to the router, and what an honest neighbour would say.
struct Neighbour {
    socket: UdpSocket,
    routing: TagRouting,
    started: Instant,
    /// The last hello of the router.
    heard: Option<TreeHello>,
}

impl Neighbour {
    fn new(plan: &AttackPlan) -> anyhow::Result<Self> {
        let own = plan.bind.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let socket = UdpSocket::bind((own, 0))?;
        socket.connect(plan.router.context("--router must say where the router listens")?)?;
        socket.set_nonblocking(true)?;
        let most = plan.sets as usize + 1;
        let limits = AdvertisementLimits { descriptors: most, reserved: 0, per_face: most };
        // The highest number: it is never the root.
        let (router, times) = (u64::MAX - 1, TreeTimes::default());
        let config = TagRoutingConfig { trees: vec![TREE], router, times, limits, keys: BTreeMap::new() };
        let mut routing = TagRouting::new(&config, fastrand::u64(..), 0)?;
        routing.neighbour_up(ROUTER);
        Ok(Neighbour { socket, routing, started: Instant::now(), heard: None })
    }

    /// Hears what came; `true` answers as an honest neighbour.
    fn turn(&mut self, takes_part: bool) {
        let now_ms = self.started.elapsed().as_millis() as u64;
        let mut datagram = [0; 9_000];
        while let Ok(length) = self.socket.recv(&mut datagram) {
            let bytes = &datagram[..length];
            let packet = LpPacket::parse(bytes).ok().and_then(|packet| packet.fragment).unwrap_or(bytes);
            if TagFrame::of(packet) != Some(TagFrame::Routing) {
                continue;
            }
            if let Ok(RoutingPacket::Hello(hello, _)) = RoutingPacket::parse(packet) {
                self.heard = Some(hello);
            }
            self.routing.received(ROUTER, packet, now_ms);
        }
        if !takes_part || self.routing.deadline_ms() > now_ms {
            return;
        }
        self.routing.run(now_ms);
        for (_, packet) in self.routing.take_packets() {
            let _ = self.socket.send(&packet); // what is lost is sent again
        }
    }
}

/// Announces `plan.sets` sets, and sends heavy pulls as soon as it is in the tree.
pub(super) fn heavy_tags(plan: &AttackPlan) -> anyhow::Result<u64> {
    let mut neighbour = Neighbour::new(plan)?;
    for number in 0..plan.sets {
        let set =
            TagSet::new([format!("kind{}", number % 50), format!("place{}", number % 997), format!("own{number}")]);
        neighbour.routing.advertise(APPLICATION, &set?, Serves::PULL, None)?;
    }
    let tags = heavy_tag_set();
    let filter = Descriptor::of_tags(tags.iter().map(String::as_str)).to_bytes();
    Ok(plan.paced(|number| {
        neighbour.turn(true);
        let Some(epoch) = neighbour.routing.tree_tables().next().map(|table| table.epoch) else { return false };
        let tree = TreeEpoch { tree: TREE, epoch };
        let pull = TagPacketBuilder::by_descriptor(TagPacketKind::Pull, tree, filter, tags.iter().map(String::as_str));
        neighbour.socket.send(&pull.nonce(number as u32).build()).is_ok()
    }))
}

/// Sixteen tags that share no bit.
fn heavy_tag_set() -> Vec<String> {
    let (mut tags, mut weight) = (Vec::<String>::new(), 0);
    for number in 0_u64.. {
        let tag = format!("heavy{number}");
        let with = Descriptor::of_tags(tags.iter().map(String::as_str).chain([tag.as_str()]));
        if with.weight() == weight + MAX_WEIGHT / TAGS as u32 {
            weight = with.weight();
            tags.push(tag);
        }
        if tags.len() == TAGS {
            break;
        }
    }
    tags.sort_unstable();
    tags
}

/// Forges hellos of [`FORGED_ROOT`].
pub(super) fn forged_hellos(plan: &AttackPlan) -> anyhow::Result<u64> {
    let mut neighbour = Neighbour::new(plan)?;
    Ok(plan.paced(|number| {
        neighbour.turn(false);
        let heard = neighbour.heard.map_or(0, |heard| heard.sequence);
        let sequence = heard.wrapping_add(JUMPS[number as usize % JUMPS.len()]);
        let hello = TreeHello {
            tree: TREE,
            sender: FORGED_ROOT + 6,
            number,
            root: FORGED_ROOT,
            sequence,
            age_ms: 0,
            heard_of_you: sequence,
            distance: 0,
            parent: FORGED_ROOT,
            subtree: u32::MAX,
            shape: number,
            label: None,
        };
        let progress = Progress { session: number + 1, heard: 0, next: 0 };
        neighbour.socket.send(&RoutingPacket::Hello(hello, progress).to_bytes()).is_ok()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_packets_have_all_bits_that_a_packet_may_have() {
        let tags = heavy_tag_set();
        assert_eq!(tags.len(), TAGS);
        assert_eq!(Descriptor::of_tags(tags.iter().map(String::as_str)).weight(), MAX_WEIGHT);
    }
}
