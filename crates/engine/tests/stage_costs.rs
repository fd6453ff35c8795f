//! A measured batch reports the stages that its packets passed, and its readings cover all its time.

use namewire_engine::batch::measured::{MeasuredOrder, Stage, StageCosts};
use namewire_testbed::*;

const ORDERS: [MeasuredOrder; 3] = [
    MeasuredOrder::PacketByPacket,
    MeasuredOrder::StageByStage { split: false },
    MeasuredOrder::StageByStage { split: true },
];

/// The clock of a measured batch ticks with every reading, so ticks are readings.
fn readings(costs: &StageCosts) -> Vec<(Stage, u32)> {
    let read: Vec<_> = Stage::ALL.into_iter().map(|stage| (stage, costs.readings(stage))).collect();
    assert!(read.iter().all(|&(stage, readings)| costs.ticks(stage) == u64::from(readings)));
    read.into_iter().filter(|&(_, readings)| readings > 0).collect()
}

fn measure(
    node: &mut Forwarder,
    order: MeasuredOrder,
    packets: &[(namewire_engine::FaceId, Packet)],
) -> Vec<(Stage, u32)> {
    node.measured = Some(order);
    node.receive_batch(packets);
    readings(&node.costs.expect("a measured batch has costs"))
}

#[test]
fn every_kind_of_packet_passes_its_stages() {
    use Stage::{
        Act, Decode, DecodeAndHash, Emit, Fib, Hash, Insert, PrefetchBuckets, PrefetchEntries, Probe, ProbeFib, Verdict,
    };
    let middle = [PrefetchBuckets, ProbeFib, Probe, PrefetchEntries];
    let strategies = ["best-route", "multicast", "asf", "access", "random", "self-learning"];
    for (order, strategy) in ORDERS.into_iter().flat_map(|order| strategies.map(|strategy| (order, strategy))) {
        let mut node = Forwarder::default();
        node.route_with("/a", &[B], strategy);
        let mut expect = |packets: &[(namewire_engine::FaceId, Packet)], parts: &[(Stage, u32)]| {
            let count = packets.len() as u32;
            let expected: Vec<(Stage, u32)> = match order {
                MeasuredOrder::PacketByPacket => {
                    [(Decode, count), (Hash, count)].iter().chain(parts).copied().collect()
                }
                MeasuredOrder::StageByStage { split: false } => {
                    [DecodeAndHash].into_iter().chain(middle).chain([Act]).map(|stage| (stage, 1)).collect()
                }
                MeasuredOrder::StageByStage { split: true } => {
                    let middle = middle.map(|stage| (stage, 1));
                    [(Decode, count), (Hash, count)].iter().chain(&middle).chain(parts).copied().collect()
                }
            };
            assert_eq!(measure(&mut node, order, packets), expected, "{order:?}, {strategy}");
        };
        let miss = [(A, interest("/a/1", 1)), (A, interest("/a/2", 2))];
        expect(&miss, &[(Verdict, 2), (Insert, 2), (Fib, 2), (Emit, 2)]);
        expect(&[(B, data("/a/1")), (B, data("/a/2"))], &[(Verdict, 2), (Insert, 2), (Emit, 2)]);
        expect(&[(C, interest("/a/1", 3))], &[(Verdict, 1), (Emit, 1)]);
        // No Interest asked: the look-up, and the counter of drops.
        expect(&[(B, data("/a/3"))], &[(Verdict, 1), (Emit, 1)]);
        // Nacks and refused packets are not split.
        expect(&[(A, Packet::raw(vec![5, 200]))], &[(Emit, 1)]);
        let counters = node.counters();
        assert_eq!((counters.cs_hits, counters.satisfied, counters.dropped_total()), (1, 2, 2));
    }
}
