//! What happens to pending Interests when the network changes, or has no room for them?

use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::{DropReason, EngineConfig, FaceId};
use namewire_packet::NameBuf;
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Outcome, Producer, RunEnd};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

fn names(count: usize) -> impl Iterator<Item = NameBuf> {
    (0..count).map(|number| format!("/p/{number}").parse().expect("a name"))
}

fn ask_once(lifetime_ms: u64) -> ConsumerOptions {
    ConsumerOptions { lifetime_ms, window: 100_000, interval_ns: 1_000, ..ConsumerOptions::default() }
}

/// Under multicast, every worker sends its pending Interests as soon as a producer registers.
#[test]
fn pending_interests_reach_a_next_hop_that_comes_later() {
    for workers in [1, 4] {
        let mut net = Network::new(1, 0);
        let node = net.add_node(NodeOptions { workers, ..NodeOptions::default() });
        net.set_strategy(node, "/p", "multicast");
        let consumer = net.attach(node, Consumer::new(names(500), ask_once(4000)));
        let register_ns = net.now_ns() + 2 * SECOND_NS;
        net.at(register_ns, move |net| {
            let producer = net.attach(node, Producer::of_content(100, 0));
            net.add_route(node, "/p", producer.face, 0);
        });
        assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);

        let asked = net.application::<Consumer>(consumer.app);
        assert_eq!(asked.satisfied(), 500, "with {workers} workers");
        let waited =
            |outcome: &Outcome| matches!(outcome, Outcome::Satisfied { after_ns, .. } if *after_ns > SECOND_NS);
        assert!(asked.outcomes().values().all(waited));
        assert_eq!(net.audit(), Vec::<String>::new());
    }
}

/// A producer leaves with unanswered Interests; another one takes over. best-route finds it when the consumer
/// retransmits.
#[test]
fn interests_survive_the_loss_of_their_only_next_hop() {
    let mut net = Network::new(2, 0);
    let [left, right] = [0, 1].map(|_| net.add_node(NodeOptions::default()));
    let wire = net.connect(left, right, LinkOptions::default());
    net.add_route(left, "/p", wire.face_a, 10);
    let silent = net.attach(right, Producer::new(|_| None));
    net.add_route(right, "/p", silent.face, 0);
    let options = ConsumerOptions { transmissions: 3, retransmit_after_ms: 1000, ..ask_once(4000) };
    let consumer = net.attach(left, Consumer::new(names(300), options));
    let change_ns = net.now_ns() + 500 * MS_NS;
    net.at(change_ns, move |net| {
        net.remove_face(right, silent.face);
        let speaking = net.attach(right, Producer::of_content(100, 0));
        net.add_route(right, "/p", speaking.face, 0);
    });
    assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);

    assert_eq!(net.application::<Producer>(silent.app).tally().interests, 300);
    assert_eq!(net.application::<Consumer>(consumer.app).satisfied(), 300);
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// A consumer that leaves takes its records along: its Data is sent to no face, and no state remains.
#[test]
fn records_of_a_consumer_go_when_it_leaves() {
    let mut net = Network::new(3, 0);
    let node = net.add_node(NodeOptions::default());
    let producer = net.attach(node, Producer::of_content(100, 0).processing_ns(SECOND_NS));
    net.add_route(node, "/p", producer.face, 0);
    let consumer = net.attach(node, Consumer::new(names(300), ask_once(4000)));
    let leave_ns = net.now_ns() + 500 * MS_NS;
    net.at(leave_ns, move |net| net.remove_face(node, consumer.face));
    assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);

    let counters = net.counters(node);
    assert_eq!((counters.in_data, counters.out_data), (300, 0));
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// A flood beyond the PIT's capacity: excess Interests are dropped with a reason, the others are answered, and
/// afterwards the PIT has room again.
#[test]
fn a_flood_meets_the_capacity_of_the_pit_and_leaves_nothing_behind() {
    let mut net = Network::new(4, 0);
    let engine = EngineConfig { pit_capacity_entries: 256, face_share_percent: 100, ..EngineConfig::default() };
    let node = net.add_node(NodeOptions { engine, ..NodeOptions::default() });
    let producer = net.attach(node, Producer::of_content(100, 0).processing_ns(SECOND_NS));
    net.add_route(node, "/p", producer.face, 0);
    let flood = net.attach(node, Consumer::new(names(5000), ask_once(4000)));
    assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);

    let counters = net.counters(node);
    assert_eq!((counters.satisfied, counters.dropped(DropReason::PitFull)), (240, 4760), "16 are kept for management");
    assert_eq!(net.application::<Consumer>(flood.app).satisfied(), 240);
    assert_eq!(net.audit(), Vec::<String>::new());

    let others = (0..200).map(|number| format!("/p/later/{number}").parse().expect("a name"));
    let calm = net.attach(node, Consumer::new(others, ask_once(4000)));
    assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);
    assert_eq!(net.application::<Consumer>(calm.app).satisfied(), 200);
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// Two faces flood the PIT with Interests that no producer answers. Each is limited to its share, and counted; a third
/// face with few Interests at a time gets all its Data.
#[test]
fn floods_are_limited_and_a_face_with_few_interests_is_served() {
    let mut net = Network::new(5, 0);
    let engine = EngineConfig { pit_capacity_entries: 900, ..EngineConfig::default() };
    let node = net.add_node(NodeOptions { engine, ..NodeOptions::default() });
    let producer = net.attach(node, Producer::of_content(100, 0).processing_ns(MS_NS));
    net.add_route(node, "/p", producer.face, 0);
    let silent = net.attach(node, Producer::of_content(100, 0).processing_ns(100 * SECOND_NS));
    net.add_route(node, "/nobody", silent.face, 0);
    let nothing =
        |flood: u32| (0..5000).map(move |number| format!("/nobody/{flood}/{number}").parse().expect("a name"));
    let floods = [1, 2].map(|flood| net.attach(node, Consumer::new(nothing(flood), ask_once(4000))));
    assert_ne!(net.run_for(SECOND_NS), RunEnd::Idle);
    let calm = net.attach(node, Consumer::new(names(50), ask_once(4000)));
    assert_ne!(net.run_for(SECOND_NS), RunEnd::Idle);

    assert_eq!(net.application::<Consumer>(calm.app).satisfied(), 50);
    let counters = net.counters(node);
    assert_eq!(counters.dropped(DropReason::PitFull), 0);
    let cut: Vec<FaceId> = counters.faces_cut.iter().map(|cut| cut.face).collect();
    assert!(floods.iter().all(|flood| cut.contains(&flood.face)) && cut.len() == 2, "{cut:?}");
    let cuts: u64 = counters.faces_cut.iter().map(|cut| cut.interests).sum();
    assert_eq!(cuts, counters.dropped(DropReason::FaceShareUsed));
    assert!(cuts > 9_000, "{cuts} of 10,000");

    assert_eq!(net.run_for(200 * SECOND_NS), RunEnd::Idle);
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// A Content Store with little room changes hits and misses, but not answers.
#[test]
fn a_small_content_store_only_costs_hits() {
    let mut net = Network::new(5, 0);
    let cs_policy = EvictionName::Lru.into();
    let engine = EngineConfig { cs_capacity_packets: 10, cs_policy, ..EngineConfig::default() };
    let node = net.add_node(NodeOptions { engine, ..NodeOptions::default() });
    let producer = net.attach(node, Producer::of_content(1000, 10_000));
    net.add_route(node, "/p", producer.face, 0);
    for _ in 0..2 {
        let consumer = net.attach(node, Consumer::new(names(500), ask_once(4000)));
        assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);
        assert_eq!(net.application::<Consumer>(consumer.app).satisfied(), 500);
    }
    let stored: usize = net.engines(node).map(|engine| engine.cs_len()).sum();
    assert_eq!((stored, net.counters(node).cs_hits), (10, 0), "LRU and a sequence longer than the store");
    assert_eq!(net.audit(), Vec::<String>::new());
}
