//! Does a run depend on its seed alone? Every event, to the byte, must repeat.

use namewire_packet::NameBuf;
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Producer, RunEnd};

const MS_NS: u64 = 1_000_000;

/// Three routers in a triangle with two workers each, lossy links, mixed batches and two consumers: every source of
/// randomness. Returns the digest and the number of events.
fn run(seed: u64) -> (u64, usize) {
    let mut net = Network::new(seed, 1_000_000);
    let node = NodeOptions { workers: 2, processing_jitter_ns: 50_000, ..NodeOptions::default() };
    let nodes = [0, 1, 2].map(|_| net.add_node(node.clone()));
    let link = LinkOptions {
        jitter_ns: MS_NS,
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.1,
        reordering_delay_ns: 10 * MS_NS,
        bandwidth_bits_per_s: Some(50_000_000),
        ..LinkOptions::default()
    };
    for (a, b) in [(0, 1), (1, 2), (2, 0)] {
        let connection = net.connect(nodes[a], nodes[b], link);
        net.add_route(nodes[a], "/p", connection.face_a, 10);
        net.add_route(nodes[b], "/p", connection.face_b, 20);
    }
    net.set_strategy(nodes[1], "/p", "multicast");
    let producer = net.attach(nodes[2], Producer::of_content(3000, 100));
    net.add_route(nodes[2], "/p", producer.face, 0);
    for (node, can_be_prefix) in [(0, false), (1, true)] {
        let names = (0..400).map(|number| format!("/p/{number}").parse::<NameBuf>().expect("a name"));
        let options = ConsumerOptions {
            transmissions: 4,
            retransmit_after_ms: 150,
            lifetime_ms: 600,
            can_be_prefix,
            must_be_fresh: !can_be_prefix,
            token_bytes: 6,
            ..ConsumerOptions::default()
        };
        net.attach(nodes[node], Consumer::new(names, options));
    }
    assert_eq!(net.run_for(600_000 * MS_NS), RunEnd::Idle);
    assert_eq!(net.audit(), Vec::<String>::new());
    (net.trace().digest(), net.trace().events().len())
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let first = run(42);
    assert_eq!(run(42), first);
    assert_ne!(run(43).0, first.0);
    assert!(first.1 > 10_000, "{} events", first.1);
}
