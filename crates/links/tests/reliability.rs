//! Reliability against NDNLPv2 §5: its bytes, its times and its limits. It also causes no avoidable loss.

mod reliable_link;

use namewire_links::reliability::arrivals::ACK_DELAY_NS;
use namewire_links::reliability::unacknowledged::{MAX_FRAMES, MAX_RETRANSMISSIONS};
use namewire_links::{LinkDrop, LinkOptions, LinkPolicy, LinkService, Received};
use namewire_packet::lp::{LinkFields, LpHeaders, LpPacket, write_headers};
use namewire_packet::tlv;
use proptest::prelude::*;
use reliable_link::{Scenario, run};

const MS: u64 = 1_000_000;
const CXX_INTEREST: &str = "0514070A08036E646E0803746C7621000A04A1A2A3A4";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn reliable(first_sequence: u64, mtu: usize) -> LinkService {
    let policy = LinkPolicy { reliability: true, ..LinkPolicy::default() };
    LinkService::new(LinkOptions { fragmentation: true, mtu, first_sequence, policy, ..LinkOptions::default() })
}

fn data(value_bytes: usize, seed: u8) -> Vec<u8> {
    let mut wire = Vec::new();
    let value: Vec<u8> = (0..value_bytes).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
    tlv::write_tlv(&mut wire, 6, &value);
    wire
}

fn send(link: &mut LinkService, now_ns: u64, packet: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link.encode(now_ns, &LpHeaders::default(), packet, |header, slice| frames.push([header, slice].concat())).unwrap();
    frames
}

fn pump(link: &mut LinkService, now_ns: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link.pump(now_ns, true, |header, slice| frames.push([header, slice].concat()));
    frames
}

/// A frame as a reliable peer sends it.
fn frame(tx_sequence: u64, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let link = LinkFields { sequence: Some(sequence), tx_sequence: Some(tx_sequence), ..LinkFields::default() };
    let mut frame = Vec::new();
    write_headers(&mut frame, &LpHeaders::default(), &link, payload.len());
    frame.extend_from_slice(payload);
    frame
}

fn acks(numbers: &[u64]) -> Vec<u8> {
    let mut frame = Vec::new();
    write_headers(&mut frame, &LpHeaders::default(), &LinkFields { acks: numbers, ..LinkFields::default() }, 0);
    frame
}

fn numbers(frame: &[u8]) -> (u64, u64) {
    let frame = LpPacket::parse(frame).unwrap();
    (frame.sequence.unwrap(), frame.tx_sequence.unwrap())
}

#[test]
fn a_frame_is_what_the_vector_says() {
    // L-cxx-reliable: Sequence 7, Ack 5, TxSequence 9.
    let mut link = reliable(7_u64.wrapping_sub(9), 8800);
    for _ in 0..9 {
        send(&mut link, 0, &hex(CXX_INTEREST));
    }
    link.receive(0, &frame(5, 1, &hex(CXX_INTEREST))).unwrap();
    let expected = "643A51080000000000000007FD0344080000000000000005FD0348080000000000000009\
                    50160514070A08036E646E0803746C7621000A04A1A2A3A4";
    assert_eq!(send(&mut link, 0, &hex(CXX_INTEREST)), [hex(expected)]);
    assert_eq!(link.acks_due_ns(), None, "the Ack went with it");
    // The peer reads it: TxSequence 9 is acknowledged, Sequence 7 remembered.
    let mut peer = reliable(0, 8800);
    assert!(matches!(peer.receive(0, &hex(expected)), Ok(Received::Packet { len: 22, .. })));
    assert_eq!(peer.receive(0, &hex(expected)), Err(LinkDrop::DuplicateSequence));
    assert_eq!(pump(&mut peer, ACK_DELAY_NS), [acks(&[9, 9])]);
}

#[test]
fn acks_go_alone_after_5_ms() {
    let mut link = reliable(0, 8800);
    for (i, tx_sequence) in [1, 16, u64::MAX].into_iter().enumerate() {
        link.receive(i as u64, &frame(tx_sequence, i as u64, &hex(CXX_INTEREST))).unwrap();
    }
    assert_eq!(link.acks_due_ns(), Some(ACK_DELAY_NS));
    assert!(pump(&mut link, ACK_DELAY_NS - 1).is_empty());
    // L-cxx-idle-3acks
    let expected = "6424FD0344080000000000000001FD0344080000000000000010FD034408FFFFFFFFFFFFFFFF";
    assert_eq!(pump(&mut link, ACK_DELAY_NS), [hex(expected)]);
    assert!(matches!(link.receive(9, &hex("6400")), Ok(Received::Idle)));
    assert_eq!(link.acks_due_ns(), None, "an IDLE packet is not acknowledged");
}

#[test]
fn acks_that_fill_a_frame_go_at_once() {
    let mut link = reliable(0, 300);
    let mut count = 0;
    while pump(&mut link, 0).is_empty() {
        link.receive(0, &frame(count, count, &hex(CXX_INTEREST))).unwrap();
        count += 1;
    }
    assert_eq!(count, (300 - 4) / 12);
}

#[test]
fn what_nobody_acknowledges_is_sent_four_times_in_four_seconds() {
    let mut link = reliable(70, 8800);
    let packet = data(50, 1);
    assert_eq!(numbers(&send(&mut link, 0, &packet)[0]), (70, 0));
    for second in 1..=3 {
        assert_eq!(link.retransmission_due_ns(), Some(second * 1000 * MS));
        assert!(pump(&mut link, second * 1000 * MS - 1).is_empty());
        let again = pump(&mut link, second * 1000 * MS);
        assert_eq!(again.len(), 1);
        assert_eq!(numbers(&again[0]), (70, second), "the same Sequence, a new TxSequence");
        assert_eq!(LpPacket::parse(&again[0]).unwrap().fragment, Some(&packet[..]));
    }
    assert!(pump(&mut link, 4000 * MS).is_empty());
    assert_eq!(link.counters().dropped(LinkDrop::RetransmissionsExhausted), 1);
    assert_eq!(link.counters().frames_retransmitted, u64::from(MAX_RETRANSMISSIONS));
    assert_eq!(link.retransmission_due_ns(), None);
}

#[test]
fn after_a_sample_the_rto_is_200_ms() {
    let mut link = reliable(0, 8800);
    send(&mut link, 0, &data(9, 0));
    link.receive(10 * MS, &acks(&[0])).unwrap();
    assert_eq!((link.counters().acknowledged, link.counters().retransmitted), (1, 0));
    send(&mut link, 20 * MS, &data(9, 1));
    assert_eq!(link.retransmission_due_ns(), Some(220 * MS));
    assert_eq!(pump(&mut link, 220 * MS).len(), 1);
    // Acknowledged late: no sample of the round-trip time.
    link.receive(800 * MS, &acks(&[2])).unwrap();
    assert_eq!((link.counters().acknowledged, link.counters().retransmitted), (1, 1));
    send(&mut link, 1000 * MS, &data(9, 2));
    assert_eq!(link.retransmission_due_ns(), Some(1200 * MS));
}

#[test]
fn three_later_acks_are_a_loss_and_two_are_not() {
    let mut link = reliable(0, 8800);
    for i in 0..5 {
        send(&mut link, 0, &data(9, i));
    }
    link.receive(MS, &acks(&[4, 2])).unwrap();
    link.receive(MS, &acks(&[4])).unwrap(); // again: counts once
    assert!(pump(&mut link, MS).is_empty());
    link.receive(MS, &acks(&[3])).unwrap();
    let again = pump(&mut link, MS);
    assert_eq!(again.iter().map(|frame| numbers(frame)).collect::<Vec<_>>(), [(0, 5), (1, 6)]);
    // The new transmissions have three later Acks only when three follow them.
    link.receive(MS, &acks(&[6])).unwrap();
    assert!(pump(&mut link, MS).is_empty());
    assert_eq!(link.counters().frames_retransmitted, 2);
}

#[test]
fn a_late_ack_ends_what_took_the_place_of_its_frame() {
    let mut link = reliable(0, 8800);
    for i in 0..4 {
        send(&mut link, 0, &data(9, i));
    }
    link.receive(MS, &acks(&[1, 2, 3])).unwrap();
    assert_eq!(numbers(&pump(&mut link, MS)[0]), (0, 4));
    assert_eq!(numbers(&pump(&mut link, 300 * MS)[0]), (0, 5), "by the RTO");
    link.receive(301 * MS, &acks(&[0])).unwrap();
    assert_eq!(link.retransmission_due_ns(), None);
    assert_eq!((link.counters().acknowledged, link.counters().retransmitted), (3, 1));
    link.receive(302 * MS, &acks(&[0, 4, 5])).unwrap(); // of the copies: nothing is left to end
    assert_eq!((link.counters().acknowledged, link.counters().retransmitted), (3, 1));
}

#[test]
fn all_fragments_of_a_packet_are_given_up_together() {
    let mut link = reliable(0, 300);
    let frames = send(&mut link, 0, &data(800, 0));
    assert_eq!(frames.len(), 4, "238 bytes each: 12 go to reliability");
    assert!(frames[..3].iter().all(|frame| LpPacket::parse(frame).unwrap().fragment.unwrap().len() <= 238));
    link.receive(MS, &acks(&[1])).unwrap();
    let mut at_ns = 0;
    while let Some(due_ns) = link.retransmission_due_ns() {
        at_ns = due_ns;
        pump(&mut link, at_ns);
    }
    assert_eq!(link.counters().dropped(LinkDrop::RetransmissionsExhausted), 1, "one packet");
    assert_eq!(at_ns, 4 * 200 * MS);
    assert_eq!((link.counters().acknowledged, link.counters().retransmitted), (0, 0));
}

#[test]
fn the_oldest_gives_way_when_too_much_is_under_way() {
    let mut link = reliable(0, 8800);
    for i in 0..MAX_FRAMES + 10 {
        send(&mut link, 0, &data(9, i as u8));
    }
    assert_eq!(link.counters().dropped(LinkDrop::UnacknowledgedEvicted), 10);
    assert_eq!(link.counters().out_data, MAX_FRAMES as u64 + 10, "it was sent all the same");
    link.receive(1, &acks(&[0, 9])).unwrap();
    assert_eq!(link.counters().acknowledged, 0, "forgotten");
    link.receive(1, &acks(&[10])).unwrap();
    assert_eq!(link.counters().acknowledged, 1);
}

#[test]
fn without_reliability_nothing_is_acknowledged() {
    let mut link = LinkService::new(LinkOptions::default());
    assert!(matches!(link.receive(0, &frame(1, 1, &hex(CXX_INTEREST))), Ok(Received::Packet { .. })));
    assert!(matches!(link.receive(0, &frame(1, 1, &hex(CXX_INTEREST))), Ok(Received::Packet { .. })));
    assert_eq!((link.acks_due_ns(), link.retransmission_due_ns()), (None, None));
    assert!(pump(&mut link, u64::MAX).is_empty());
}

#[test]
fn what_has_no_room_for_the_fields_of_reliability_leaves_a_stream_without_them() {
    let policy = LinkPolicy { reliability: true, ..LinkPolicy::default() };
    let mut stream = LinkService::new(LinkOptions { policy, ..LinkOptions::default() });
    let fits_alone = data(8790, 0);
    assert_eq!(send(&mut stream, 0, &fits_alone), [fits_alone]);
    assert_eq!(stream.retransmission_due_ns(), None);
    let refused = stream.encode(0, &LpHeaders::default(), &data(8800, 0), |_, _| panic!("a frame"));
    assert_eq!(refused, Err(LinkDrop::PacketTooLarge));
    assert_eq!(numbers(&send(&mut stream, 0, &data(8700, 0))[0]), (0, 0));
}

#[test]
fn a_queue_may_be_long_because_of_what_is_sent_again() {
    let mut link = reliable(0, 8800);
    link.set_policy(LinkPolicy {
        reliability: true,
        congestion_marking: true,
        marking_threshold_bytes: 1500,
        ..LinkPolicy::default()
    });
    send(&mut link, 0, &data(1000, 0));
    assert!(!link.wants_queue_length(1000 * MS));
    assert_eq!(pump(&mut link, 1000 * MS).len(), 1);
    assert!(link.wants_queue_length(1000 * MS));
}

#[test]
fn turned_off_it_forgets_and_a_new_connection_begins_anew() {
    let mut link = reliable(0, 8800);
    send(&mut link, 0, &data(9, 0));
    link.restart();
    assert_eq!(link.retransmission_due_ns(), None);
    assert_eq!(numbers(&send(&mut link, 0, &data(9, 0))[0]).1, 0);
    link.set_policy(LinkPolicy::default());
    assert_eq!(send(&mut link, 0, &data(9, 0)), [data(9, 0)], "bare");
}

/// Packets of one end, one every 100 ms, so that the channel is never full.
fn packets(sizes: &[usize], seed: u8) -> Vec<(u64, Vec<u8>)> {
    let packet = |(i, &size): (usize, &usize)| {
        let mut packet = data(size.max(2), seed);
        let end = packet.len();
        packet[end - 2..].copy_from_slice(&(i as u16).to_be_bytes());
        (i as u64 * 100 * MS, packet)
    };
    sizes.iter().enumerate().map(packet).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// As long as one of the four transmissions arrives, every packet arrives, once.
    #[test]
    fn everything_arrives_within_the_budget(
        sizes in proptest::collection::vec(1usize..1200, 1..60),
        mtu in 260usize..1500,
        loss in 0u8..160,
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let packets = packets(&sizes, seed as u8);
        let mut expected: Vec<Vec<u8>> = packets.iter().map(|(_, packet)| packet.clone()).collect();
        let budget = Some(u32::from(MAX_RETRANSMISSIONS));
        let scenario = Scenario { packets: [packets, Vec::new()], mtu, loss, losses_per_sequence: budget };
        let outcome = run(scenario, || random.u8(..));
        let mut delivered = outcome.delivered[1].clone();
        delivered.sort();
        expected.sort();
        prop_assert_eq!(delivered, expected);
        let counters = outcome.ends[0].counters();
        prop_assert_eq!(counters.dropped(LinkDrop::RetransmissionsExhausted), 0);
        prop_assert_eq!(counters.acknowledged + counters.retransmitted, sizes.len() as u64);
    }

    /// With any loss, of Acks too, in both directions, a packet arrives or is given up.
    #[test]
    fn what_does_not_arrive_is_given_up(
        sizes in proptest::collection::vec(1usize..1200, 1..40),
        mtu in 260usize..1500,
        loss in 0u8..200,
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let both = [packets(&sizes, 1), packets(&sizes, 2)];
        let scenario = Scenario { packets: both, mtu, loss, losses_per_sequence: None };
        let mut outcome = run(scenario, || random.u8(..));
        for (from, to) in [(0, 1), (1, 0)] {
            let mut delivered = std::mem::take(&mut outcome.delivered[to]);
            delivered.sort();
            delivered.dedup();
            let given_up = outcome.ends[from].counters().dropped(LinkDrop::RetransmissionsExhausted);
            prop_assert!(delivered.len() as u64 + given_up >= sizes.len() as u64);
            prop_assert_eq!(outcome.ends[from].retransmission_due_ns(), None);
        }
    }
}

/// The story: on a path that drops large datagrams without a report, no large Data ever arrived.
#[test]
fn a_path_on_which_large_frames_vanish_is_a_black_hole_and_a_dead_or_lossy_one_is_not() {
    // Which frames arrive, by size and number.
    type Path = fn(usize, usize) -> bool;
    let hole: Path = |bytes, _| bytes <= 1300;
    let dead: Path = |_, _| false;
    let lossy: Path = |_, number| number % 3 == 0;
    for (path, expected) in [(hole, true), (dead, false), (lossy, false)] {
        let [mut near, mut far] = [reliable(0, 1472), reliable(0, 1472)];
        let (mut found, mut number) = (None, 0);
        for round in 0..300 {
            let now_ns = round * 100 * MS;
            // The last fragment is small.
            let mut frames = if round < 20 { send(&mut near, now_ns, &data(4500, round as u8)) } else { Vec::new() };
            frames.extend(pump(&mut near, now_ns));
            for frame in frames {
                number += 1;
                if path(frame.len(), number) {
                    let _ = far.receive(now_ns, &frame); // a duplicate is refused
                }
            }
            for acks in pump(&mut far, now_ns + 10 * MS) {
                near.receive(now_ns + 20 * MS, &acks).unwrap();
            }
            found = found.or(near.take_black_hole());
        }
        assert_eq!(found.is_some_and(|bytes| bytes > 1300), expected);
        assert!(expected || found.is_none());
    }
}
