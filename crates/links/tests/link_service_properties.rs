//! Properties of the link service: a packet sent in fragments arrives whole, however the network reorders and repeats
//! the fragments, and no received bytes cause a panic.

use namewire_links::{LinkOptions, LinkService, Received};
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_packet::{NackReason, tlv};
use proptest::prelude::*;

fn link(mtu: usize) -> LinkService {
    LinkService::new(LinkOptions { fragmentation: true, mtu, first_sequence: u64::MAX - 7, ..LinkOptions::default() })
}

fn element(type_number: u32, value_bytes: usize, seed: u8) -> Vec<u8> {
    let value: Vec<u8> = (0..value_bytes).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, type_number, &value);
    wire
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fragments_survive_reordering_and_duplication(
        value_bytes in 1usize..8790,
        mtu in 150usize..9000,
        token in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..=32)),
        is_nack in any::<bool>(),
        congestion_mark in prop_oneof![Just(0u64), Just(1), Just(u64::MAX)],
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut sender, mut receiver) = (link(mtu), link(mtu));
        let headers = LpHeaders {
            pit_token: token.and_then(|token| PitToken::new(&token)),
            nack: is_nack.then_some(NackReason::Duplicate),
            congestion_mark,
            ..LpHeaders::default()
        };
        let packet = element(if is_nack { 5 } else { 6 }, value_bytes, seed as u8);
        let mut frames: Vec<Vec<u8>> = Vec::new();
        sender.encode(0, &headers, &packet, |header, slice| frames.push([header, slice].concat())).unwrap();
        prop_assert!(frames.iter().all(|frame| frame.len() <= mtu));
        random.shuffle(&mut frames);
        let repeated = frames[random.usize(..frames.len() - frames.len() / 2)].clone();
        let mut delivered = 0;
        let last = frames.len() - 1;
        for (i, frame) in frames.iter().enumerate() {
            match receiver.receive(i as u64, frame).unwrap() {
                Received::Packet { headers: got, start, len } => {
                    prop_assert_eq!((got, &frame[start..start + len]), (headers, &packet[..]));
                    delivered += 1;
                }
                Received::Reassembled { headers: got, packet: whole } => {
                    prop_assert_eq!((got, whole), (headers, &packet[..]));
                    delivered += 1;
                }
                Received::Incomplete => prop_assert!(i < last),
                Received::Idle => prop_assert!(false),
            }
            if i < last && frame == &repeated {
                prop_assert!(receiver.receive(i as u64, &repeated).is_err());
            }
        }
        prop_assert_eq!(delivered, 1);
    }

    #[test]
    fn interleaved_messages_do_not_mix(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut sender, mut receiver) = (link(200), link(200));
        let packets: Vec<Vec<u8>> = (0..8).map(|i| element(6, 300 + 100 * i, i as u8)).collect();
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for packet in &packets {
            let emit = |header: &[u8], slice: &[u8]| frames.push([header, slice].concat());
            sender.encode(0, &LpHeaders::default(), packet, emit).unwrap();
        }
        random.shuffle(&mut frames);
        let mut whole: Vec<Vec<u8>> = Vec::new();
        for frame in &frames {
            if let Received::Reassembled { packet, .. } = receiver.receive(0, frame).unwrap() {
                whole.push(packet.to_vec());
            }
        }
        whole.sort_by_key(Vec::len);
        prop_assert_eq!(whole, packets);
    }

    #[test]
    fn garbage_never_panics(frames in proptest::collection::vec(garbage(), 1..40)) {
        let mut link = link(1000);
        for (i, frame) in frames.iter().enumerate() {
            let now_ns = i as u64 * 40_000_000;
            if let Ok(Received::Packet { start, len, .. }) = link.receive(now_ns, frame) {
                prop_assert!(len > 0 && start + len <= frame.len());
            }
            link.expire(now_ns);
        }
        let counters = link.counters();
        let accounted = counters.in_interests + counters.in_data + counters.in_nacks + counters.drops.iter().sum::<u64>();
        prop_assert!(accounted <= 2 * frames.len() as u64, "a frame is at most one drop and one message given up");
    }
}

/// Bytes that look like LpPackets to a varying degree.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let field = (
        prop_oneof![Just(80u32), Just(81), Just(82), Just(83), Just(98), Just(800), Just(816), Just(832), 1u32..1000],
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..12),
            Just(vec![5, 0]),
            Just(vec![0, 0, 0, 0, 0, 0, 0, 1]),
            Just(vec![2]),
        ],
    );
    let lp_packet = proptest::collection::vec(field, 0..6).prop_map(|mut fields| {
        fields.sort_by_key(|(type_number, _)| if *type_number == 80 { u32::MAX } else { *type_number });
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, 100, |out| {
            for (type_number, value) in &fields {
                tlv::write_tlv(out, *type_number, value);
            }
        });
        wire
    });
    let raw = proptest::collection::vec(any::<u8>(), 0..60);
    prop_oneof![lp_packet, raw]
}
