//! Question: can any bytes make the NDNLPv2 view panic, and does a parsed packet read the same after our writer has
//! written it?
//!
//! Input: one LpPacket.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::lp::{LinkFields, LpPacket, PitToken, write_headers};

fuzz_target!(|wire: &[u8]| {
    assert_eq!(PitToken::new(wire).is_some(), (1..=32).contains(&wire.len()));
    let Ok(packet) = LpPacket::parse(wire) else { return };
    if let Some(fragment) = packet.fragment {
        assert!(!fragment.is_empty());
        assert_eq!(wire.get(packet.fragment_offset..), Some(fragment), "Fragment is the last field");
    }
    assert!(packet.has_fragmentation_fields || (packet.frag_index, packet.frag_count) == (0, 1));

    let acks: Vec<u64> = packet.acks().collect();
    let link = LinkFields {
        sequence: packet.sequence,
        fragment: packet.has_fragmentation_fields.then_some((packet.frag_index, packet.frag_count)),
        tx_sequence: packet.tx_sequence,
        acks: &acks,
        lead: packet.prefix_announcement.or(packet.path_label),
    };
    let fragment = packet.fragment.unwrap_or_default();
    let mut again = Vec::new();
    write_headers(&mut again, &packet.headers, &link, fragment.len());
    again.extend_from_slice(fragment);
    let reread = LpPacket::parse(&again).expect("what we write, we read");
    assert_eq!(reread.headers, packet.headers);
    assert_eq!(reread.fragment, packet.fragment);
    assert_eq!(
        (reread.sequence, reread.frag_index, reread.frag_count, reread.tx_sequence),
        (packet.sequence, packet.frag_index, packet.frag_count, packet.tx_sequence)
    );
    // One of the two travels on.
    assert_eq!(reread.prefix_announcement, packet.prefix_announcement);
    assert_eq!(reread.path_label, packet.path_label.filter(|_| packet.prefix_announcement.is_none()));
    assert!(reread.acks().eq(acks.iter().copied()));
});
