//! Question: does reliability deliver every packet once, whatever a channel does within its budget? And does it keep
//! its limits, whatever a peer sends?
//!
//! Input: a byte that selects the question, and the MTU. The channel: a count, that many sizes in two bytes, and then
//! the fate of each frame. The peer: records {action, two bytes}; bits 0 to 2 of an action select it, the others say
//! how often or how late.
#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use namewire_links::reliability::arrivals::{MAX_PENDING_ACKS, MAX_REMEMBERED};
use namewire_links::reliability::unacknowledged::{MAX_BYTES, MAX_FRAMES};
use namewire_links::{LinkDrop, LinkService, reassembly};
use namewire_packet::{
    MAX_PACKET_BYTES,
    lp::{LinkFields, LpHeaders, write_headers},
    tlv,
};
use reliable_link::{Scenario, link, run};

#[path = "../../crates/links/tests/reliable_link/mod.rs"]
mod reliable_link;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Every table may have doubled to twice its limit; half of the stored bytes may be stale.
const HELD_BYTES_MAX: usize = 4 * MAX_BYTES
    + MAX_FRAMES * 2 * (64 + 16 + 8)
    + (MAX_REMEMBERED * (9 + 16) + MAX_PENDING_ACKS * 8) * 4
    + (reassembly::MAX_MESSAGES + 16) * (2 * MAX_PACKET_BYTES + 512 * 8 + 512)
    + 8 * MAX_PACKET_BYTES;
const MOST_PACKETS: usize = 40;
const LARGEST_VALUE_BYTES: usize = 1200;

fuzz_target!(|input: &[u8]| {
    let [kind, mtu, rest @ ..] = input else { return };
    let mtu = 260 + 5 * usize::from(*mtu);
    if kind % 2 == 0 { lossy_channel(mtu, rest) } else { hostile_peer(mtu, rest) }
});

fn data(value_bytes: usize, number: usize) -> Vec<u8> {
    let mut value = vec![number as u8; value_bytes.max(2)];
    value[..2].copy_from_slice(&(number as u16).to_be_bytes());
    let mut packet = Vec::new();
    tlv::write_tlv(&mut packet, 6, &value);
    packet
}

fn lossy_channel(mtu: usize, input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let sizes = rest.chunks_exact(2).take(usize::from(count) % MOST_PACKETS);
    let packets: Vec<(u64, Vec<u8>)> = sizes
        .enumerate()
        .map(|(number, size)| {
            let value_bytes = usize::from(u16::from_be_bytes([size[0], size[1]])) % LARGEST_VALUE_BYTES;
            (number as u64 * 100_000_000, data(value_bytes, number))
        })
        .collect();
    let mut fates = rest[2 * packets.len()..].iter();
    let mut expected: Vec<Vec<u8>> = packets.iter().map(|(_, packet)| packet.clone()).collect();
    expected.sort();
    let scenario = Scenario { packets: [packets, Vec::new()], mtu, loss: 128, losses_per_sequence: Some(3) };
    // After the end of the input the channel is perfect.
    let mut outcome = run(scenario, || fates.next().copied().unwrap_or(u8::MAX));
    outcome.delivered[1].sort();
    assert_eq!(outcome.delivered[1], expected);
    let counters = outcome.ends[0].counters();
    assert_eq!(counters.dropped(LinkDrop::RetransmissionsExhausted), 0);
    assert_eq!(counters.acknowledged + counters.retransmitted, expected.len() as u64);
}

fn hostile_peer(mtu: usize, mut rest: &[u8]) {
    let held_before = ALLOCATOR.allocated();
    let mut link = link(mtu);
    let (mut now_ns, mut number) = (0_u64, 0_u64);
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        rest = tail;
        let argument = u64::from(u16::from_be_bytes([high, low]));
        let times = u64::from(action >> 3) + 1;
        match action & 7 {
            0 => now_ns = now_ns.saturating_add(argument * times * 100_000),
            1 => (0..times).for_each(|_| send(&mut link, now_ns, argument as usize % 8700)),
            2 => pump(&mut link, now_ns, mtu),
            3 => link.expire(now_ns),
            4 => {
                let acks: Vec<u64> = (0..times).map(|i| argument.wrapping_sub(i)).collect();
                receive(&mut link, now_ns, &LinkFields { acks: &acks, ..LinkFields::default() }, 0);
            }
            5 => (0..times * 8).for_each(|_| {
                number += 1;
                let fields =
                    LinkFields { sequence: Some(number), tx_sequence: Some(argument), ..LinkFields::default() };
                receive(&mut link, now_ns, &fields, 1);
            }),
            6 => (0..times).for_each(|_| {
                number += 1000;
                let fields = LinkFields {
                    sequence: Some(number),
                    fragment: Some((0, 399)),
                    tx_sequence: Some(number),
                    ..LinkFields::default()
                };
                receive(&mut link, now_ns, &fields, 1 + argument as usize % 8000);
            }),
            _ => {
                let size = (argument as usize).min(rest.len());
                let _ = link.receive(now_ns, &rest[..size]); // refused or not: it must not break
                rest = &rest[size..];
            }
        }
    }
    let held = ALLOCATOR.allocated().saturating_sub(held_before);
    assert!(held <= HELD_BYTES_MAX, "the link service holds {held} bytes");
}

fn send(link: &mut LinkService, now_ns: u64, value_bytes: usize) {
    let packet = data(value_bytes, 0);
    // With a small MTU the packet may need too many fragments.
    let _ = link.encode(now_ns, &LpHeaders::default(), &packet, |_, _| ());
}

fn pump(link: &mut LinkService, now_ns: u64, mtu: usize) {
    link.pump(now_ns, true, |header, slice| assert!(header.len() + slice.len() <= mtu));
    assert!(link.acks_due_ns().is_none_or(|due_ns| due_ns > now_ns));
    assert!(link.retransmission_due_ns().is_none_or(|due_ns| due_ns > now_ns));
}

fn receive(link: &mut LinkService, now_ns: u64, fields: &LinkFields<'_>, payload_bytes: usize) {
    let mut frame = Vec::new();
    write_headers(&mut frame, &LpHeaders::default(), fields, payload_bytes);
    frame.resize(frame.len() + payload_bytes, 6);
    let _ = link.receive(now_ns, &frame); // a payload that is no packet is refused, after its Acks were read
}
