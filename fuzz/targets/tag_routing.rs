//! Question: can any bytes from a neighbour make a router's TagNet routing panic, and does a packet that is read have
//! just one form?
//!
//! Input: packets, each two length bytes and its bytes, from a neighbour that says hello first. Tree 2 has a key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::{FaceId, tag::TagFrame};
use namewire_tagnet::{
    advertisements::AdvertisementLimits,
    routing::{KEY_BYTES, TagRouting, TagRoutingConfig, TreeKey, wire::RoutingPacket},
    tree_protocol::TreeTimes,
};

fuzz_target!(|input: &[u8]| {
    let limits = AdvertisementLimits { descriptors: 64, reserved: 8, per_face: 32 };
    let keys = [(2, TreeKey::new([1; KEY_BYTES]))].into();
    let config = TagRoutingConfig { trees: vec![1, 2], router: 7, times: TreeTimes::default(), limits, keys };
    let mut routing = TagRouting::new(&config, 1, 0).expect("address space for the tables");
    routing.neighbour_up(FaceId(300));
    let (mut rest, mut now_ms) = (input, 0);
    while let Some(([high, low], packet)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(packet.len());
        let (packet, next) = packet.split_at(length);
        rest = next;
        now_ms += 50;
        if let Ok(parsed) = RoutingPacket::parse(packet) {
            assert_eq!(parsed.to_bytes(), packet);
        }
        routing.received(FaceId(300), packet, now_ms);
        routing.run(now_ms);
        let packets = routing.take_packets();
        assert!(packets.iter().all(|(_, packet)| TagFrame::of(packet) == Some(TagFrame::Routing)));
        assert!(routing.descriptors() <= limits.per_face);
    }
});
