//! Question: can any sequence of frames make the link service panic, exceed its memory limits, or deliver bytes that
//! are not one packet? And does a packet from one link service arrive whole at another?
//!
//! Input: two bytes of MTU, then records {action, two bytes of length, frame}. The action's low bits advance the clock;
//! bit 7 runs timers. Bit 6 makes a flood of first fragments, with the record's size, whose packets are never
//! completed.
#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use namewire_links::{LinkDrop, LinkOptions, LinkService, Received};
use namewire_packet::{
    MAX_PACKET_BYTES,
    lp::{LinkFields, LpHeaders, write_headers},
    tlv::{self, types},
};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const REASSEMBLY_BYTES: usize = 32 * 1024;
/// Sixteen messages in progress and sixteen spare ones, each with a buffer that may have doubled to twice the largest
/// packet, and 400 piece records; the assembled packet; scratch.
const HELD_BYTES_MAX: usize = 32 * (2 * MAX_PACKET_BYTES + 512 * 8 + 512) + 4 * MAX_PACKET_BYTES;
const CLOCK_STEP_NS: u64 = 50_000_000;
const FLOOD_FRAGMENTS: u64 = 40;

fuzz_target!(|input: &[u8]| {
    let Some((mtu, mut rest)) = input.split_first_chunk::<2>() else { return };
    let mtu = 64 + usize::from(u16::from_be_bytes(*mtu)) % (MAX_PACKET_BYTES - 64);
    let held_before = ALLOCATOR.allocated();
    let mut link = LinkService::new(LinkOptions {
        fragmentation: true,
        local_fields: true,
        reassembly_bytes: REASSEMBLY_BYTES,
        ..LinkOptions::default()
    });
    let mut now_ns = 0;
    let mut received = 0;
    let mut flood_sequence = 1 << 40;
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        let size = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (frame, tail) = tail.split_at(size);
        rest = tail;
        now_ns += u64::from(action & 0x0F) * CLOCK_STEP_NS;
        if action & 0x80 != 0 {
            link.expire(now_ns);
            assert!(link.next_deadline_ns().is_none_or(|deadline| deadline > now_ns));
        }
        if action & 0x40 != 0 {
            flood(&mut link, now_ns, &mut flood_sequence, &[high, low]);
        }
        let (headers, packet) = match link.receive(now_ns, frame) {
            Ok(Received::Packet { headers, start, len }) => (headers, frame[start..start + len].to_vec()),
            Ok(Received::Reassembled { headers, packet }) => (headers, packet.to_vec()),
            Ok(Received::Incomplete | Received::Idle) | Err(_) => continue,
        };
        received += 1;
        check_packet(headers.packet(&packet));
        send_and_receive(&headers, &packet, mtu);
    }
    let held = ALLOCATOR.allocated().saturating_sub(held_before);
    assert!(held <= HELD_BYTES_MAX, "the link service holds {held} bytes");
    let counters = link.counters();
    assert_eq!(counters.in_interests + counters.in_data + counters.in_nacks, received);
});

/// First fragments of forty packets, each at most `size` bytes.
fn flood(link: &mut LinkService, now_ns: u64, sequence: &mut u64, size: &[u8; 2]) {
    let payload = [6; MAX_PACKET_BYTES];
    let payload = &payload[..1 + usize::from(u16::from_be_bytes(*size)) % 8000];
    for _ in 0..FLOOD_FRAGMENTS {
        *sequence += 1000;
        let fields = LinkFields { sequence: Some(*sequence), fragment: Some((0, 399)), ..LinkFields::default() };
        let mut frame = Vec::new();
        write_headers(&mut frame, &LpHeaders::default(), &fields, payload.len());
        frame.extend_from_slice(payload);
        // The input may have begun a message with this sequence and another count.
        let received = link.receive(now_ns, &frame);
        assert!(matches!(received, Ok(Received::Incomplete) | Err(LinkDrop::FragCountChanged)), "{received:?}");
    }
}

/// The link service delivers exactly one Interest or Data element.
fn check_packet(packet: &[u8]) {
    let element = tlv::element_size(packet);
    assert_eq!(element, Ok(Some(packet.len())));
    assert!(packet.len() <= MAX_PACKET_BYTES);
    assert!([types::INTEREST, types::DATA].contains(&u32::from(packet[0])));
}

/// Sends the packet with small frames over a perfect link.
fn send_and_receive(headers: &LpHeaders, packet: &[u8], mtu: usize) {
    let options = LinkOptions { fragmentation: true, mtu, ..LinkOptions::default() };
    let mut frames = Vec::new();
    let sent = LinkService::new(options).encode(0, headers, packet, |header, piece| {
        frames.push([header, piece].concat());
    });
    match sent {
        Ok(()) => {}
        Err(LinkDrop::PacketTooLarge) => return, // its headers leave no room, or too many fragments
        Err(other) => panic!("a packet that was received cannot be sent: {other:?}"),
    }
    let mut peer = LinkService::new(options);
    let last = frames.len() - 1;
    for (index, frame) in frames.iter().enumerate() {
        assert!(frame.len() <= mtu, "a frame of {} bytes above the MTU of {mtu}", frame.len());
        let (arrived_headers, arrived) = match peer.receive(0, frame) {
            Ok(Received::Packet { headers, start, len }) => (headers, frame[start..start + len].to_vec()),
            Ok(Received::Reassembled { headers, packet }) => (headers, packet.to_vec()),
            Ok(Received::Incomplete) if index < last => continue,
            other => panic!("frame {index} of {last}: {other:?}"),
        };
        assert_eq!(index, last);
        assert_eq!(arrived_headers.packet(&arrived), headers.packet(packet));
        if arrived_headers.lead_bytes > 0 {
            assert_eq!(arrived_headers.announcement(&arrived), headers.announcement(packet));
        }
        // An announcement may be left out, and the fields between it and the Data may be shorter.
        let lead_bytes = arrived_headers.lead_bytes;
        // Fields between an application and its own router stay there.
        let own = LpHeaders { incoming_face_id: None, next_hop_face_id: None, no_cache: false, ..*headers };
        let expected = LpHeaders { lead_bytes, ..own };
        assert_eq!(arrived_headers, expected);
    }
}
