//! Question: can any bytes make the view of tag packets panic, and does a parsed packet read the same after our builder
//! has written it, and after a router has patched it?
//!
//! Input: one tag packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::tag::{TagAddress, TagPacket, TagPacketBuilder};

fuzz_target!(|wire: &[u8]| {
    let Ok(packet) = TagPacket::parse(wire) else { return };
    let mut builder = match packet.address {
        TagAddress::Descriptor { filter, tags } => {
            TagPacketBuilder::by_descriptor(packet.kind, packet.tree, *filter, tags.iter())
        }
        TagAddress::Locator(place) => TagPacketBuilder::by_locator(packet.kind, packet.tree, place),
    };
    builder = builder.nonce(packet.nonce).hop_limit(packet.hop_limit).payload(packet.payload);
    builder = packet.fan_out.map_or(builder.clone(), |deliveries| builder.fan_out(deliveries));
    builder = packet.reply_to.map_or(builder.clone(), |place| builder.reply_to(place));
    let again = builder.build();
    let reread = TagPacket::parse(&again).expect("what we write, we read");
    assert_eq!(said(&reread), said(&packet));

    let mut patched = wire.to_vec();
    let hop_limit = packet.hop_limit.wrapping_sub(1);
    packet.patch(&mut patched, hop_limit, 3);
    let patched = TagPacket::parse(&patched).expect("a patch keeps the form");
    assert_eq!((patched.hop_limit, patched.fan_out), (hop_limit, packet.fan_out.map(|_| 3)));
    assert_eq!((patched.nonce, patched.payload), (packet.nonce, packet.payload));
});

/// What the packet says, without its places in the bytes.
fn said<'a>(packet: &TagPacket<'a>) -> impl PartialEq + std::fmt::Debug + use<'a> {
    let TagPacket { kind, nonce, hop_limit, tree, fan_out, reply_to, payload, .. } = *packet;
    let tags: Vec<&str> = match packet.address {
        TagAddress::Descriptor { tags, .. } => tags.iter().collect(),
        TagAddress::Locator(_) => Vec::new(),
    };
    let place = match packet.address {
        TagAddress::Descriptor { filter, .. } => (Some(filter), None),
        TagAddress::Locator(place) => (None, Some(place)),
    };
    ((kind, nonce, hop_limit, tree), (fan_out, reply_to, payload), tags, place)
}
