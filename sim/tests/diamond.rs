//! A diamond: consumer – entry, two paths over upper and lower, exit – producer.
//!
//! Does traffic survive the silent failure of one path? Do Interests end that loop between routers whose routes point
//! at each other?

use namewire_engine::DropReason;
use namewire_packet::{NackReason, NameBuf};
use namewire_sim::{
    Connection, Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Outcome, Producer, RunEnd,
};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

struct Diamond {
    net: Network,
    entry: NodeId,
    upper: NodeId,
    lower: NodeId,
    exit: NodeId,
    /// entry–upper, entry–lower, upper–exit, lower–exit, upper–lower.
    links: [Connection; 5],
}

/// Both paths cost the same. Upper and lower also have routes to each other and back to entry, at a higher cost: the
/// loops.
fn diamond(seed: u64, node: &NodeOptions, link: LinkOptions, strategy: &str) -> Diamond {
    let mut net = Network::new(seed, 10_000_000);
    let [entry, upper, lower, exit] = [0, 1, 2, 3].map(|_| net.add_node(node.clone()));
    let pairs = [(entry, upper), (entry, lower), (upper, exit), (lower, exit), (upper, lower)];
    let links = pairs.map(|(a, b)| net.connect(a, b, link));
    net.add_route(entry, "/p", links[0].face_a, 10);
    net.add_route(entry, "/p", links[1].face_a, 10);
    net.add_route(upper, "/p", links[2].face_a, 10);
    net.add_route(lower, "/p", links[3].face_a, 10);
    net.add_route(upper, "/p", links[4].face_a, 100);
    net.add_route(lower, "/p", links[4].face_b, 100);
    net.add_route(upper, "/p", links[0].face_b, 200);
    net.add_route(lower, "/p", links[1].face_b, 200);
    let producer = net.attach(exit, Producer::of_content(1000, 10_000));
    net.add_route(exit, "/p", producer.face, 0);
    for node in [entry, upper, lower, exit] {
        net.set_strategy(node, "/", strategy);
    }
    Diamond { net, entry, upper, lower, exit, links }
}

fn names(count: usize) -> impl Iterator<Item = NameBuf> {
    (0..count).map(|number| format!("/p/{number}").parse().expect("a name"))
}

fn patient() -> ConsumerOptions {
    ConsumerOptions {
        lifetime_ms: 1000,
        retransmit_after_ms: 200,
        transmissions: 10,
        interval_ns: MS_NS,
        ..ConsumerOptions::default()
    }
}

/// best-route stays with the first next hop until retransmissions show that it is silent. Before it learned from them,
/// every name requested after the cut took two transmissions.
#[test]
fn best_route_avoids_a_dead_link() {
    for workers in [1, 3] {
        let node = NodeOptions { workers, ..NodeOptions::default() };
        let mut d = diamond(1, &node, LinkOptions::default(), "best-route");
        let consumer = d.net.attach(d.entry, Consumer::new(names(3000), patient()));
        let dead = d.links[2].link;
        let half_time_ns = d.net.now_ns() + 1500 * MS_NS;
        d.net.at(half_time_ns, move |net| net.set_link_up(dead, false));
        assert_eq!(d.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let asked = d.net.application::<Consumer>(consumer.app);
        assert_eq!(asked.satisfied(), 3000);
        let after_one = |outcome: &&Outcome| matches!(outcome, Outcome::Satisfied { transmissions: 1, .. });
        let first_try = asked.outcomes().values().filter(after_one).count();
        assert!((2000..2990).contains(&first_try), "{first_try} at the first try");
        assert!(d.net.counters(d.lower).satisfied > 1000);
        assert_eq!(d.net.audit(), Vec::<String>::new());
    }
}

/// With both paths to exit dead, retransmissions loop from entry over upper and lower back to entry. Entry drops them
/// by Nonce and answers with a Nack; soon the network is idle.
#[test]
fn loops_between_routers_end_by_nonce() {
    let mut d = diamond(2, &NodeOptions::default(), LinkOptions::default(), "best-route");
    d.net.set_link_up(d.links[2].link, false);
    d.net.set_link_up(d.links[3].link, false);
    let consumer = d.net.attach(d.entry, Consumer::new(names(500), patient()));
    assert_eq!(d.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

    let asked = d.net.application::<Consumer>(consumer.app);
    assert_eq!((asked.satisfied(), asked.outcomes().len()), (0, 500));
    let counters = [d.entry, d.upper, d.lower].map(|node| d.net.counters(node));
    let loops: u64 = counters.iter().map(|counters| counters.dropped(DropReason::DuplicateNonce)).sum();
    let nacks: u64 = counters.iter().map(|counters| counters.in_nacks).sum();
    assert!(loops >= 500, "{counters:?}");
    assert_eq!(loops, nacks, "each loop is answered by one Nack");
    let interests: u64 = counters.iter().map(|counters| counters.in_interests).sum();
    assert!(interests <= 4 * asked.tally().interests, "one turn each, not more: {counters:?}");
    assert_eq!(d.net.counters(d.exit).in_interests, 0);
    assert_eq!(d.net.audit(), Vec::<String>::new());
}

/// multicast uses both paths at once, so the failure of one has no effect. Exit aggregates or drops the second copy.
#[test]
fn multicast_does_not_notice_a_dead_link() {
    let mut d = diamond(3, &NodeOptions::default(), LinkOptions::default(), "multicast");
    let options = ConsumerOptions { interval_ns: MS_NS, lifetime_ms: 1000, ..ConsumerOptions::default() };
    let consumer = d.net.attach(d.entry, Consumer::new(names(2000), options));
    let dead = d.links[3].link;
    let half_time_ns = d.net.now_ns() + SECOND_NS;
    d.net.at(half_time_ns, move |net| net.set_link_up(dead, false));
    assert_eq!(d.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

    let asked = d.net.application::<Consumer>(consumer.app);
    assert_eq!((asked.satisfied(), asked.tally().interests), (2000, 2000), "at the first try");
    assert_eq!(d.net.audit(), Vec::<String>::new());
}

/// Everything at once: both paths are lossy, and one of them fails and recovers.
#[test]
fn every_failure_on_lossy_paths_has_a_cause() {
    for (seed, strategy) in [(4, "best-route"), (5, "multicast"), (6, "asf"), (7, "access"), (8, "random")] {
        let link = LinkOptions {
            jitter_ns: 500_000,
            loss: 0.05,
            duplication: 0.05,
            reordering: 0.05,
            reordering_delay_ns: 15 * MS_NS,
            ..LinkOptions::default()
        };
        let node = NodeOptions { batch_packets: 1, ..NodeOptions::default() };
        let mut d = diamond(seed, &node, link, strategy);
        let options = ConsumerOptions { transmissions: 2, ..patient() };
        let consumer = d.net.attach(d.entry, Consumer::new(names(4000), options));
        let (dying, start_ns) = (d.links[0].link, d.net.now_ns());
        d.net.at(start_ns + SECOND_NS, move |net| net.set_link_up(dying, false));
        d.net.at(start_ns + 2 * SECOND_NS, move |net| net.set_link_up(dying, true));
        assert_eq!(d.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let asked = d.net.application::<Consumer>(consumer.app);
        assert_eq!((asked.outcomes().len(), asked.tally().damaged), (4000, 0));
        assert!(asked.satisfied() > 3000, "{strategy}: {}", asked.satisfied());
        assert_eq!(d.net.unexplained_failures(consumer.app), Vec::<NameBuf>::new(), "{strategy}");
        assert_eq!(d.net.audit(), Vec::<String>::new(), "{strategy}");
    }
}

#[test]
fn without_a_route_the_consumer_gets_a_nack_at_once() {
    let mut d = diamond(6, &NodeOptions::default(), LinkOptions::default(), "best-route");
    let elsewhere = (0..200).map(|number| format!("/elsewhere/{number}").parse().expect("a name"));
    let options = ConsumerOptions { token_bytes: 32, ..ConsumerOptions::default() };
    let consumer = d.net.attach(d.entry, Consumer::new(elsewhere, options));
    assert_eq!(d.net.run_for(10 * SECOND_NS), RunEnd::Idle);

    let asked = d.net.application::<Consumer>(consumer.app);
    assert!(asked.failed().all(|(_, outcome)| outcome == Outcome::Nacked(NackReason::NoRoute)));
    assert_eq!((asked.outcomes().len(), asked.tally().wrong_token), (200, 0));
    assert_eq!(d.net.counters(d.entry).dropped(DropReason::NoRoute), 200);
    assert_eq!(d.net.audit(), Vec::<String>::new());
}
