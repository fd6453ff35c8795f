//! A line of three routers: consumer – left – middle – right – producer.
//!
//! Is every Interest satisfied if no frame is lost, and accounted for otherwise?

use namewire_engine::{DropReason, EngineConfig};
use namewire_packet::NameBuf;
use namewire_sim::{
    AppId, Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Outcome, Producer, RunEnd, TraceKind,
};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

struct Line {
    net: Network,
    nodes: [NodeId; 3],
    producer: AppId,
}

fn line(seed: u64, node: &NodeOptions, link: LinkOptions, producer: Producer) -> Line {
    let mut net = Network::new(seed, 10_000_000);
    let nodes = [0, 1, 2].map(|_| net.add_node(node.clone()));
    for pair in nodes.windows(2) {
        let connection = net.connect(pair[0], pair[1], link);
        net.add_route(pair[0], "/p", connection.face_a, 10);
    }
    let producer = net.attach(nodes[2], producer);
    net.add_route(nodes[2], "/p", producer.face, 0);
    Line { net, nodes, producer: producer.app }
}

fn names(prefix: &str, count: usize) -> impl Iterator<Item = NameBuf> {
    (0..count).map(move |number| format!("{prefix}/{number}").parse().expect("a name"))
}

/// Every packet is alone in its batch, so that drops are traced by name.
fn traced() -> NodeOptions {
    NodeOptions { batch_packets: 1, ..NodeOptions::default() }
}

fn lossy() -> LinkOptions {
    LinkOptions {
        jitter_ns: 300_000,
        loss: 0.02,
        duplication: 0.03,
        reordering: 0.1,
        reordering_delay_ns: 5 * MS_NS,
        ..LinkOptions::default()
    }
}

#[test]
fn without_loss_everything_is_satisfied_and_crosses_each_link_once() {
    for content_bytes in [100, 7000] {
        let producer = Producer::of_content(content_bytes, 10_000);
        let mut line = line(1, &NodeOptions::default(), LinkOptions::default(), producer);
        let consumer = line.net.attach(line.nodes[0], Consumer::new(names("/p", 3000), ConsumerOptions::default()));
        assert_eq!(line.net.run_for(60 * SECOND_NS), RunEnd::Idle);

        let asked = line.net.application::<Consumer>(consumer.app);
        assert_eq!(asked.satisfied(), 3000);
        assert_eq!((asked.tally().interests, asked.tally().unexpected, asked.tally().damaged), (3000, 0, 0));
        assert_eq!(line.net.application::<Producer>(line.producer).tally().interests, 3000);
        assert_eq!(line.net.audit(), Vec::<String>::new());
        for node in line.nodes {
            let counters = line.net.counters(node);
            assert_eq!((counters.in_interests, counters.out_interests, counters.satisfied), (3000, 3000, 3000));
            assert_eq!((counters.in_data, counters.out_data, counters.dropped_total()), (3000, 3000, 0));
        }
    }
}

#[test]
fn a_second_consumer_is_served_by_the_content_store_next_to_it() {
    let mut line = line(2, &NodeOptions::default(), LinkOptions::default(), Producer::of_content(3000, 3_600_000));
    let first = line.net.attach(line.nodes[0], Consumer::new(names("/p", 500), ConsumerOptions::default()));
    assert_eq!(line.net.run_for(10 * SECOND_NS), RunEnd::Idle);
    let fresh = ConsumerOptions { must_be_fresh: true, token_bytes: 4, ..ConsumerOptions::default() };
    let second = line.net.attach(line.nodes[0], Consumer::new(names("/p", 500), fresh));
    assert_eq!(line.net.run_for(10 * SECOND_NS), RunEnd::Idle);

    for app in [first.app, second.app] {
        assert_eq!(line.net.application::<Consumer>(app).satisfied(), 500);
    }
    let tally = line.net.application::<Consumer>(second.app).tally();
    assert_eq!((tally.wrong_token, tally.damaged), (0, 0));
    assert_eq!(line.net.counters(line.nodes[0]).cs_hits, 500);
    assert_eq!(line.net.counters(line.nodes[1]).in_interests, 500, "only the first consumer's");
    assert_eq!(line.net.audit(), Vec::<String>::new());
}

#[test]
fn interests_of_two_consumers_for_the_same_names_are_aggregated() {
    let producer = Producer::of_content(100, 0).processing_ns(50 * MS_NS);
    // Without a store only aggregation can serve the second Interest.
    let engine = EngineConfig { cs_admit: false, ..EngineConfig::default() };
    let mut line = line(3, &NodeOptions { engine, ..NodeOptions::default() }, LinkOptions::default(), producer);
    let options = ConsumerOptions { token_bytes: 7, ..ConsumerOptions::default() };
    let apps = [0, 1].map(|_| line.net.attach(line.nodes[0], Consumer::new(names("/p", 1000), options)).app);
    assert_eq!(line.net.run_for(60 * SECOND_NS), RunEnd::Idle);

    for app in apps {
        let consumer = line.net.application::<Consumer>(app);
        assert_eq!((consumer.satisfied(), consumer.tally().wrong_token), (1000, 0));
    }
    let counters = line.net.counters(line.nodes[0]);
    assert_eq!((counters.aggregated, counters.dropped(DropReason::Suppressed)), (1000, 1000));
    assert_eq!(line.net.application::<Producer>(line.producer).tally().interests, 1000);
    assert_eq!(line.net.audit(), Vec::<String>::new());
}

#[test]
fn with_loss_repetition_and_reordering_retransmission_gets_everything_through() {
    for (seed, content_bytes) in [(4, 100), (5, 4000)] {
        let mut line = line(seed, &traced(), lossy(), Producer::of_content(content_bytes, 10_000));
        let options = ConsumerOptions {
            lifetime_ms: 1000,
            retransmit_after_ms: 300,
            transmissions: 20,
            ..ConsumerOptions::default()
        };
        let consumer = line.net.attach(line.nodes[0], Consumer::new(names("/p", 4000), options));
        assert_eq!(line.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let asked = line.net.application::<Consumer>(consumer.app);
        assert_eq!(asked.satisfied(), 4000);
        assert_eq!(asked.tally().damaged, 0);
        assert!(asked.tally().interests > 4000, "the links lost nothing?");
        assert_eq!(line.net.audit(), Vec::<String>::new());
    }
}

#[test]
fn with_loss_and_no_retransmission_every_failure_has_a_named_cause() {
    let mut line = line(6, &traced(), lossy(), Producer::of_content(2500, 10_000));
    // At this rate few packets are fragmented at the same time: packets evicted from the reassembler have no name.
    let options = ConsumerOptions { lifetime_ms: 500, interval_ns: 10 * MS_NS, ..ConsumerOptions::default() };
    let consumer = line.net.attach(line.nodes[0], Consumer::new(names("/p", 5000), options));
    assert_eq!(line.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

    let asked = line.net.application::<Consumer>(consumer.app);
    assert!(asked.is_done());
    assert_eq!(asked.outcomes().len(), 5000);
    // Two links, one Interest frame and two Data frames each: about 1 - 0.98^6 = 11 % fail.
    assert!((300..900).contains(&asked.failed().count()), "{} failed", asked.failed().count());
    assert_eq!(line.net.unexplained_failures(consumer.app), Vec::<NameBuf>::new());
    assert_eq!(line.net.audit(), Vec::<String>::new());
    // Conversely, a name without a loss did not fail.
    let trace = line.net.trace();
    let lost = |kind: &TraceKind| matches!(kind, TraceKind::LinkLost(_) | TraceKind::LinkDropped(_));
    for (name, outcome) in asked.outcomes().iter().step_by(50) {
        if !trace.of_name(name).any(|event| lost(&event.kind)) {
            assert!(matches!(outcome, Outcome::Satisfied { .. }), "{name:?}");
        }
    }
}

/// Four workers per node, and a producer without PIT tokens: Data comes back by name, for Interests whose prefix
/// another worker holds.
#[test]
fn prefix_interests_are_satisfied_at_any_number_of_workers_without_tokens_from_the_producer() {
    for workers in [1, 2, 4, 7] {
        let node = NodeOptions { workers, processing_jitter_ns: 20_000, ..NodeOptions::default() };
        let producer = Producer::of_content(600, 10_000).echo_tokens(false);
        let mut line = line(7, &node, LinkOptions::default(), producer);
        let options = ConsumerOptions { can_be_prefix: true, token_bytes: 3, ..ConsumerOptions::default() };
        let consumer = line.net.attach(line.nodes[0], Consumer::new(names("/p/q", 2000), options));
        assert_eq!(line.net.run_for(60 * SECOND_NS), RunEnd::Idle);

        let asked = line.net.application::<Consumer>(consumer.app);
        assert_eq!(asked.satisfied(), 2000, "with {workers} workers");
        assert_eq!((asked.tally().damaged, asked.tally().wrong_token, asked.tally().unexpected), (0, 0, 0));
        assert_eq!(line.net.audit(), Vec::<String>::new());
    }
}

#[test]
fn reliability_leaves_nothing_for_the_consumer_to_ask_again() {
    let run = |reliability| {
        let link = LinkOptions { loss: 0.05, reliability, ..lossy() };
        let mut line = line(5, &NodeOptions::default(), link, Producer::of_content(7000, 10_000));
        let consumer = line.net.attach(line.nodes[0], Consumer::new(names("/p", 1000), ConsumerOptions::default()));
        assert_eq!(line.net.run_for(60 * SECOND_NS), RunEnd::Idle);
        assert_eq!(line.net.audit(), Vec::<String>::new());
        let asked = line.net.application::<Consumer>(consumer.app);
        assert_eq!((asked.tally().interests, asked.tally().damaged), (1000, 0));
        asked.satisfied()
    };
    assert_eq!(run(true), 1000);
    let without = run(false);
    assert!(without < 800, "{without} of 1000 come through 24 frames without loss");
}
