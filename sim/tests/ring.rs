//! A ring of routers, in which every Interest could loop for ever.
//!
//! Does its Nonce stop it while the PIT has its entry, and does the Dead Nonce List stop it afterwards?

use namewire_engine::{DropReason, EngineConfig};
use namewire_packet::NameBuf;
use namewire_sim::{
    Connection, Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd,
};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

struct Ring {
    net: Network,
    nodes: Vec<NodeId>,
}

/// `links[i]` joins node i with node i + 1; the last one closes the ring.
fn ring(
    seed: u64,
    size: usize,
    node: &NodeOptions,
    link: LinkOptions,
    mut route: impl FnMut(&mut Network, NodeId, NodeId, &Connection),
) -> Ring {
    let mut net = Network::new(seed, 10_000_000);
    let nodes: Vec<NodeId> = (0..size).map(|_| net.add_node(node.clone())).collect();
    for here in 0..size {
        let (a, b) = (nodes[here], nodes[(here + 1) % size]);
        let connection = net.connect(a, b, link);
        route(&mut net, a, b, &connection);
    }
    Ring { net, nodes }
}

fn both_ways(net: &mut Network, a: NodeId, b: NodeId, connection: &Connection) {
    net.add_route(a, "/p", connection.face_a, 10);
    net.add_route(b, "/p", connection.face_b, 10);
    net.set_strategy(a, "/", "multicast");
}

fn names(count: usize) -> impl Iterator<Item = NameBuf> {
    (0..count).map(|number| format!("/p/{number}").parse().expect("a name"))
}

#[test]
fn multicast_in_a_ring_reaches_the_producer_and_visits_each_router_at_most_twice() {
    for workers in [1, 4] {
        let node = NodeOptions { workers, processing_jitter_ns: 5_000, ..NodeOptions::default() };
        let Ring { mut net, nodes } = ring(1, 6, &node, LinkOptions::default(), both_ways);
        let producer = net.attach(nodes[3], Producer::of_content(2000, 10_000));
        net.add_route(nodes[3], "/p", producer.face, 0);
        let consumer = net.attach(nodes[0], Consumer::new(names(2000), ConsumerOptions::default()));
        assert_eq!(net.run_for(60 * SECOND_NS), RunEnd::Idle);

        let asked = net.application::<Consumer>(consumer.app);
        assert_eq!((asked.satisfied(), asked.tally().damaged, asked.tally().unexpected), (2000, 0, 0));
        assert_eq!(net.application::<Producer>(producer.app).tally().interests, 2000, "one copy of each");
        for &node in &nodes {
            let counters = net.counters(node);
            assert!(counters.in_interests <= 2 * 2000, "{node:?}: {counters:?}");
        }
        assert_eq!(net.audit(), Vec::<String>::new());
    }
}

/// The same with frames lost, repeated and reordered. multicast sends no Nacks, so Interests fail by expiry, and the
/// trace has the loss.
#[test]
fn a_lossy_multicast_ring_comes_to_rest_and_explains_its_failures() {
    let link = LinkOptions {
        jitter_ns: 2 * MS_NS,
        loss: 0.1,
        duplication: 0.1,
        reordering: 0.1,
        reordering_delay_ns: 30 * MS_NS,
        ..LinkOptions::default()
    };
    let node = NodeOptions { batch_packets: 1, ..NodeOptions::default() };
    let Ring { mut net, nodes } = ring(2, 5, &node, link, both_ways);
    let producer = net.attach(nodes[2], Producer::of_content(500, 10_000));
    net.add_route(nodes[2], "/p", producer.face, 0);
    let options = ConsumerOptions { lifetime_ms: 400, ..ConsumerOptions::default() };
    let consumer = net.attach(nodes[0], Consumer::new(names(3000), options));
    assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);

    let asked = net.application::<Consumer>(consumer.app);
    assert_eq!((asked.outcomes().len(), asked.tally().damaged), (3000, 0));
    // Two disjoint paths of 2 and 3 links, there and back: 0.344 * 0.469 = 16 % should fail, and fewer do because the
    // paths help each other.
    assert!((150..600).contains(&asked.failed().count()), "{}", asked.failed().count());
    assert_eq!(net.unexplained_failures(consumer.app), Vec::<NameBuf>::new());
    let loops: u64 = nodes.iter().map(|&node| net.counters(node).dropped(DropReason::DuplicateNonce)).sum();
    assert!(loops > 2000, "{loops}");
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// Routes lead around the ring and to no producer. One round takes longer than an Interest lives: when it returns, no
/// PIT has its entry.
fn long_one_way_ring(dead_nonce_capacity: usize) -> (Ring, RunEnd) {
    let link = LinkOptions { delay_ns: 60 * MS_NS, ..LinkOptions::default() };
    let engine = EngineConfig { dead_nonce_capacity, ..EngineConfig::default() };
    let node = NodeOptions { engine, ..NodeOptions::default() };
    let clockwise = |net: &mut Network, a: NodeId, _: NodeId, connection: &Connection| {
        net.add_route(a, "/p", connection.face_a, 10);
    };
    let mut ring = ring(3, 3, &node, link, clockwise);
    let options = ConsumerOptions { lifetime_ms: 100, window: 1000, ..ConsumerOptions::default() };
    ring.net.attach(ring.nodes[0], Consumer::new(names(1000), options));
    let end = ring.net.run_for(30 * SECOND_NS);
    (ring, end)
}

#[test]
fn the_dead_nonce_list_stops_what_the_pit_has_forgotten() {
    let (Ring { net, nodes }, end) = long_one_way_ring(EngineConfig::default().dead_nonce_capacity);
    assert_eq!(end, RunEnd::Idle);
    let first = net.counters(nodes[0]);
    assert_eq!((first.in_interests, first.dropped(DropReason::DuplicateNonce)), (2000, 1000));
    assert_eq!(net.counters(nodes[1]).in_interests, 1000, "no Interest loops twice");
    assert_eq!(net.audit(), Vec::<String>::new());
}

/// Shows that the test above can fail: with room for one nonce, Interests loop without end.
#[test]
fn without_a_dead_nonce_list_interests_loop_for_ever() {
    let (Ring { net, nodes }, end) = long_one_way_ring(1);
    assert_eq!(end, RunEnd::TimeReached);
    assert!(net.counters(nodes[1]).in_interests > 50_000, "{:?}", net.counters(nodes[1]));
}

/// HopLimit ends the loop after its number of hops.
#[test]
fn hop_limit_ends_a_loop() {
    let link = LinkOptions { delay_ns: 60 * MS_NS, ..LinkOptions::default() };
    let engine = EngineConfig { dead_nonce_capacity: 1, ..EngineConfig::default() };
    let node = NodeOptions { engine, ..NodeOptions::default() };
    let clockwise = |net: &mut Network, a: NodeId, _: NodeId, connection: &Connection| {
        net.add_route(a, "/p", connection.face_a, 10);
    };
    let Ring { mut net, nodes } = ring(4, 3, &node, link, clockwise);
    let options = ConsumerOptions { lifetime_ms: 100, window: 1000, hop_limit: Some(10), ..ConsumerOptions::default() };
    net.attach(nodes[0], Consumer::new(names(1000), options));
    assert_eq!(net.run_for(30 * SECOND_NS), RunEnd::Idle);
    // 10 routers: 4 visits to the first, 3 to each of the others. The list's one nonce stops an Interest now and then.
    for (&node, expected) in nodes.iter().zip([4000, 3000, 3000]) {
        let counters = net.counters(node);
        let stopped: u64 = nodes.iter().map(|&node| net.counters(node).dropped(DropReason::DuplicateNonce)).sum();
        assert!((1..10).contains(&stopped), "{stopped}");
        assert!((expected - 4 * stopped..=expected).contains(&counters.in_interests), "{counters:?}");
    }
    assert!(net.counters(nodes[0]).dropped(DropReason::HopLimitZero) > 990);
    assert_eq!(net.audit(), Vec::<String>::new());
}
