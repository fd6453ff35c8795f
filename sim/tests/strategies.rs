//! Strategies in whole networks: the behaviour that NFD's documentation describes, with link failures and moving
//! producers.
//!
//! Does asf find the faster path, leave a dead one and return? Does access learn which host answers? Does self-learning
//! flood only once, and find a producer that has moved?

use namewire_engine::{DropReason, FaceId};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{InterestBuilder, NackReason, NameBuf, Nonce};
use namewire_sim::{
    AppIo, Application, Connection, Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Outcome,
    Producer, RunEnd, TraceKind,
};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

fn names(count: usize) -> impl Iterator<Item = NameBuf> {
    (0..count).map(|number| format!("/p/{number}").parse().expect("a name"))
}

fn delayed(delay_ms: u64) -> LinkOptions {
    LinkOptions { delay_ns: delay_ms * MS_NS, ..LinkOptions::default() }
}

/// Outcomes of the names in the order of their requests.
fn outcomes(net: &Network, consumer: namewire_sim::AppId) -> Vec<Outcome> {
    let asked = net.application::<Consumer>(consumer);
    let by_number = names(asked.outcomes().len()).map(|name| asked.outcomes()[&name]);
    by_number.collect()
}

fn transmissions(outcome: &Outcome) -> u32 {
    match outcome {
        Outcome::Satisfied { transmissions, .. } => *transmissions,
        other => panic!("{other:?}"),
    }
}

fn after_ms(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Satisfied { after_ns, .. } => after_ns / MS_NS,
        other => panic!("{other:?}"),
    }
}

/// Two paths from entry to exit: a slow one with a lower cost and a fast one with a higher cost.
struct TwoWays {
    net: Network,
    entry: NodeId,
    slow: NodeId,
    fast: NodeId,
    /// entry–slow, entry–fast, slow–exit, fast–exit.
    links: [Connection; 4],
}

const SLOW_RTT_MS: u64 = 2 * (20 + 20);
const FAST_RTT_MS: u64 = 2 * (2 + 2);

fn two_ways(seed: u64, workers: u8, strategy: &str) -> TwoWays {
    let mut net = Network::new(seed, 0);
    let options = NodeOptions { workers, ..NodeOptions::default() };
    let [entry, slow, fast, exit] = [0, 1, 2, 3].map(|_| net.add_node(options.clone()));
    let links = [(entry, slow, 20), (entry, fast, 2), (slow, exit, 20), (fast, exit, 2)]
        .map(|(a, b, delay_ms)| net.connect(a, b, delayed(delay_ms)));
    net.add_route(entry, "/p", links[0].face_a, 10);
    net.add_route(entry, "/p", links[1].face_a, 20);
    net.add_route(slow, "/p", links[2].face_a, 10);
    net.add_route(fast, "/p", links[3].face_a, 10);
    let producer = net.attach(exit, Producer::of_content(100, 0));
    net.add_route(exit, "/p", producer.face, 0);
    net.set_strategy(entry, "/p", strategy);
    TwoWays { net, entry, slow, fast, links }
}

/// A new name every 10 ms, with up to ten transmissions.
fn steady() -> ConsumerOptions {
    ConsumerOptions {
        window: 100_000,
        interval_ns: 10 * MS_NS,
        lifetime_ms: 2000,
        retransmit_after_ms: 300,
        transmissions: 10,
        ..ConsumerOptions::default()
    }
}

#[test]
fn asf_finds_the_faster_way_leaves_it_when_it_dies_and_comes_back() {
    for (seed, workers) in [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3)] {
        let mut ways = two_ways(seed, workers, "/localhost/nfd/strategy/asf/v=5/probing-interval~1000");
        let consumer = ways.net.attach(ways.entry, Consumer::new(names(6000), steady()));
        let (dying, start_ns) = (ways.links[3].link, ways.net.now_ns());
        ways.net.at(start_ns + 20 * SECOND_NS, move |net| net.set_link_up(dying, false));
        ways.net.at(start_ns + 40 * SECOND_NS, move |net| net.set_link_up(dying, true));
        assert_eq!(ways.net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let ended = outcomes(&ways.net, consumer.app);
        assert_eq!(ended.len(), 6000);
        // The first probe comes within 5 s of each worker's first Interest.
        assert!(
            ended[..3].iter().all(|outcome| after_ms(outcome) == SLOW_RTT_MS),
            "seed {seed}: the cheaper one first"
        );
        let is_fast = |outcome: &&Outcome| after_ms(outcome) == FAST_RTT_MS;
        let fast = |names: &[Outcome]| names.iter().filter(is_fast).count();
        assert_eq!(fast(&ended[700..1990]), 1290, "seed {seed}: the faster one once it was measured");
        // Data keeps arriving: after three timeouts of 200 ms every Interest uses the other path at the first
        // transmission.
        let tried_again = ended[1990..].iter().filter(|outcome| transmissions(outcome) > 1).count();
        assert!((40..=200).contains(&tried_again), "seed {seed}: {tried_again} names needed another try");
        assert!(ended[2200..4000].iter().all(|outcome| transmissions(outcome) == 1), "seed {seed}: after the cut");
        // One probe per second, on the dead path with a probability of one half, finds it alive again.
        assert_eq!(fast(&ended[4900..]), 1100, "seed {seed}: it came back");
        assert_eq!(ways.net.audit(), Vec::<String>::new());
        assert!(ways.net.engines(ways.entry).all(|engine| engine.measurements_len() == 0), "forgotten after 300 s");
    }
}

/// With more timeouts, a dead path is used longer: each takes an RTO.
#[test]
fn asf_gives_up_after_max_timeouts() {
    for seed in 1..4 {
        let affected = [1, 3, 6].map(|max_timeouts| {
            let name = format!("/localhost/nfd/strategy/asf/v=5/max-timeouts~{max_timeouts}");
            let mut ways = two_ways(seed, 1, &name);
            let consumer = ways.net.attach(ways.entry, Consumer::new(names(3000), steady()));
            let (dying, start_ns) = (ways.links[3].link, ways.net.now_ns());
            ways.net.at(start_ns + 10 * SECOND_NS, move |net| net.set_link_up(dying, false));
            assert_eq!(ways.net.run_for(3600 * SECOND_NS), RunEnd::Idle);
            let ended = outcomes(&ways.net, consumer.app);
            ended[900..].iter().filter(|outcome| transmissions(outcome) > 1).count()
        });
        // 200 ms each, and the Interests in flight; in steps of 10 ms.
        for (count, expected) in affected.into_iter().zip([20, 60, 120]) {
            assert!((expected..expected + 25).contains(&count), "seed {seed}: {affected:?}");
        }
    }
}

/// A router and three hosts, one of which answers; later another one does.
#[test]
fn access_learns_who_answers_and_multicasts_when_that_fails() {
    for seed in 1..5 {
        let mut net = Network::new(seed, 0);
        let nodes = [0, 1, 2, 3].map(|_| net.add_node(NodeOptions::default()));
        let [router, hosts @ ..] = nodes;
        let links = hosts.map(|host| net.connect(router, host, delayed(5)));
        for link in &links {
            net.add_route(router, "/p", link.face_a, 10);
        }
        // Host 1 answers, host 2 would too; host 0 is silent.
        for (host, answers) in hosts.into_iter().zip([false, true, true]) {
            let producer = if answers {
                Producer::of_content(100, 0)
            } else {
                Producer::new(|_: &namewire_packet::Interest<'_>| None)
            };
            let delay_ns = if host == hosts[2] { MS_NS } else { 0 };
            let producer = net.attach(host, producer.processing_ns(delay_ns));
            net.add_route(host, "/p", producer.face, 0);
        }
        net.set_strategy(router, "/p", "access");
        let options = ConsumerOptions { transmissions: 1, lifetime_ms: 4000, ..steady() };
        let consumer = net.attach(router, Consumer::new(names(1000), options));
        let (dying, start_ns) = (links[1].link, net.now_ns());
        net.at(start_ns + 5 * SECOND_NS, move |net| net.set_link_up(dying, false));
        assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let ended = outcomes(&net, consumer.app);
        assert!(ended.iter().all(|outcome| transmissions(outcome) == 1), "the router itself tries the others");
        let interests = hosts.map(|host| net.counters(host).in_interests);
        // The first names go to all hosts, until the first answer; at the cut, so do Interests within an RTO.
        assert!((2..20).contains(&interests[0]), "host 0 hears only what goes to all: {interests:?}");
        assert!((480..=500).contains(&interests[1]), "{interests:?}");
        assert!((500..520).contains(&interests[2]), "{interests:?}");
        assert!(ended[5..490].iter().all(|outcome| after_ms(outcome) == 10), "host 1");
        assert!(ended[520..].iter().all(|outcome| after_ms(outcome) == 11), "host 2");
        assert_eq!(net.audit(), Vec::<String>::new());
    }
}

#[test]
fn random_spreads_evenly() {
    for seed in 1..6 {
        let mut ways = two_ways(seed, 1, "random");
        let options = ConsumerOptions { interval_ns: MS_NS, ..steady() };
        let consumer = ways.net.attach(ways.entry, Consumer::new(names(4000), options));
        assert_eq!(ways.net.run_for(3600 * SECOND_NS), RunEnd::Idle);
        assert_eq!(ways.net.application::<Consumer>(consumer.app).satisfied(), 4000);
        let [slow, fast] = [ways.slow, ways.fast].map(|node| ways.net.counters(node).in_interests);
        // Four standard deviations of a fair coin thrown 4000 times are 126.
        assert!(slow + fast == 4000 && slow.abs_diff(2000) < 127, "seed {seed}: {slow} and {fast}");
        assert_eq!(ways.net.audit(), Vec::<String>::new());
    }
}

/// Sends given Interests at given times, and keeps the Nacks.
struct Asker {
    sends: Vec<(u64, LpHeaders, Vec<u8>)>,
    nacks: Vec<NackReason>,
}

impl Asker {
    fn of(name: &str, times_ms: &[u64], headers: LpHeaders) -> Self {
        let interest = |nonce: usize| {
            let name: NameBuf = name.parse().expect("a name");
            InterestBuilder::new(name).nonce(Nonce::from_u32(nonce as u32)).lifetime_ms(60_000).build()
        };
        let sends = times_ms.iter().enumerate().map(|(nonce, ms)| (ms * MS_NS, headers, interest(nonce))).collect();
        Asker { sends, nacks: Vec::new() }
    }
}

impl Application for Asker {
    fn start(&mut self, io: &mut AppIo<'_>) {
        for (after_ns, headers, packet) in self.sends.drain(..) {
            io.send_at(io.now_ns + after_ns, headers, packet);
        }
    }

    fn receive(&mut self, _: &mut AppIo<'_>, headers: &LpHeaders, _: &[u8]) {
        self.nacks.extend(headers.nack);
    }
}

/// The sequence measured on a live NFD (forwarding §4.1), under every strategy that suppresses.
#[test]
fn retransmissions_are_suppressed_as_by_nfd() {
    for strategy in ["best-route", "multicast", "asf", "access", "self-learning"] {
        let mut net = Network::new(1, 1000);
        let [entry, exit] = [0, 1].map(|_| net.add_node(NodeOptions::default()));
        let link = net.connect(entry, exit, LinkOptions::default());
        if strategy != "self-learning" {
            net.add_route(entry, "/p", link.face_a, 10);
        }
        net.set_strategy(entry, "/", strategy);
        net.set_strategy(exit, "/", "multicast"); // which stays silent without a next hop
        let times_ms = [0, 5, 12, 30, 60, 120, 240, 300, 500, 760, 1100];
        net.attach(entry, Asker::of("/p/1", &times_ms, LpHeaders::default()));
        assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);
        let sent =
            net.trace().events().iter().filter(|event| {
                (event.node, event.face) == (entry, link.face_a) && matches!(event.kind, TraceKind::Sent)
            });
        let sent_ns: Vec<u64> = sent.map(|event| event.at_ns).collect();
        let sent_ms: Vec<u64> = sent_ns.iter().map(|at_ns| (at_ns - sent_ns[0]) / MS_NS).collect();
        assert_eq!(sent_ms, [0, 12, 60, 120, 240, 500, 760, 1100], "{strategy}");
        assert_eq!(net.counters(entry).dropped(DropReason::Suppressed), 3, "{strategy}");
    }
}

/// a – b, and behind b the hosts c, d and e; all use self-learning. A producer's face comes and goes.
struct Tree {
    net: Network,
    nodes: [NodeId; 5],
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const E: usize = 4;

fn tree(seed: u64, workers: u8) -> Tree {
    let mut net = Network::new(seed, 0);
    let options = NodeOptions { workers, ..NodeOptions::default() };
    let nodes = [0, 1, 2, 3, 4].map(|_| net.add_node(options.clone()));
    for (near, far) in [(A, B), (B, C), (B, D), (B, E)] {
        net.connect(nodes[near], nodes[far], LinkOptions::default());
    }
    for node in nodes {
        net.set_strategy(node, "/", "self-learning");
    }
    Tree { net, nodes }
}

/// Data that exceeds a frame: the announcement precedes fragments.
fn attach_producer(net: &mut Network, node: NodeId, expiration_ms: u64) -> FaceId {
    let producer = net.attach(node, Producer::of_content(1600, 0));
    net.announce(node, "/p", producer.face, expiration_ms);
    producer.face
}

#[test]
fn self_learning_floods_once_and_then_knows_the_way() {
    for (seed, workers) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        let Tree { mut net, nodes } = tree(seed, workers);
        attach_producer(&mut net, nodes[C], 3_600_000);
        let consumer = net.attach(nodes[A], Consumer::new(names(500), steady()));
        assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let ended = outcomes(&net, consumer.app);
        assert!(ended.iter().all(|outcome| transmissions(outcome) == 1));
        let [_, b, c, d, e] = nodes.map(|node| net.counters(node).in_interests);
        assert_eq!((b, c, d, e), (500, 500, 1, 1), "seed {seed}: one flood, then the way");
        assert_eq!(net.audit(), Vec::<String>::new());
    }
}

/// A learned route ends when its announcement expires, and the next Interest floods again.
#[test]
fn self_learning_forgets_when_the_announcement_expires() {
    let Tree { mut net, nodes } = tree(1, 1);
    attach_producer(&mut net, nodes[C], 1000);
    let keeps_its_route = net.attach(nodes[C], Producer::of_content(10, 0)).face;
    net.add_route(nodes[C], "/p", keeps_its_route, 5000);
    let consumer = net.attach(nodes[A], Consumer::new(names(300), steady()));
    assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);
    assert_eq!(outcomes(&net, consumer.app).len(), 300);
    let d = net.counters(nodes[D]).in_interests;
    // From 1 s on no producer announces, so every Interest floods.
    assert!((195..=202).contains(&d), "{d}");
}

#[test]
fn self_learning_finds_a_producer_that_moved() {
    for (seed, workers) in [(1, 1), (2, 1), (3, 1), (4, 3)] {
        let Tree { mut net, nodes } = tree(seed, workers);
        let former = attach_producer(&mut net, nodes[C], 3_600_000);
        let consumer = net.attach(nodes[A], Consumer::new(names(600), steady()));
        let (start_ns, [_, _, c, d, _]) = (net.now_ns(), nodes);
        net.at(start_ns + 3 * SECOND_NS, move |net| {
            net.remove_face(c, former);
            attach_producer(net, d, 3_600_000);
        });
        assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);

        let ended = outcomes(&net, consumer.app);
        assert_eq!((ended.len(), net.application::<Consumer>(consumer.app).satisfied()), (600, 600));
        // A Nack from c ends the routes of b and a; Interests in flight are retransmitted.
        let again = ended.iter().filter(|outcome| transmissions(outcome) > 1).count();
        assert!((1..=5).contains(&again), "seed {seed}: {again}");
        assert!(ended.iter().all(|outcome| transmissions(outcome) <= 2), "seed {seed}");
        let e = net.counters(nodes[E]).in_interests;
        assert!((2..=6).contains(&e), "seed {seed}: two floods, and what was asked while they were out: {e}");
        assert_eq!(net.audit(), Vec::<String>::new());
    }
}

/// A failing link closes its face: Interests that used it find another path.
#[test]
fn self_learning_finds_another_way_when_a_face_goes() {
    for seed in 1..4 {
        let mut net = Network::new(seed, 0);
        let [a, upper, lower, p] = [0, 1, 2, 3].map(|_| net.add_node(NodeOptions::default()));
        let links = [(a, upper, 2), (a, lower, 9), (upper, p, 2), (lower, p, 9)]
            .map(|(near, far, delay_ms)| net.connect(near, far, delayed(delay_ms)));
        for node in [a, upper, lower, p] {
            net.set_strategy(node, "/", "self-learning");
        }
        attach_producer(&mut net, p, 3_600_000);
        let consumer = net.attach(a, Consumer::new(names(400), steady()));
        let (face, link, start_ns) = (links[0].face_a, links[0].link, net.now_ns());
        net.at(start_ns + 2 * SECOND_NS, move |net| {
            net.set_link_up(link, false);
            net.remove_face(a, face);
        });
        assert_eq!(net.run_for(3600 * SECOND_NS), RunEnd::Idle);
        let ended = outcomes(&net, consumer.app);
        assert!(ended[..190].iter().all(|outcome| after_ms(outcome) < 30), "seed {seed}");
        let late = ended[250..].iter().filter(|outcome| transmissions(outcome) == 1).count();
        assert_eq!(late, 150, "seed {seed}: over lower");
        assert!(net.counters(lower).out_data > 150, "seed {seed}");
    }
}

#[test]
fn a_non_discovery_interest_without_a_route_is_answered_by_a_nack() {
    let Tree { mut net, nodes } = tree(1, 1);
    let headers = LpHeaders { non_discovery: true, ..LpHeaders::default() };
    let asker = net.attach(nodes[A], Asker::of("/p/1", &[0], headers));
    assert_eq!(net.run_for(10 * SECOND_NS), RunEnd::Idle);
    assert_eq!(net.application::<Asker>(asker.app).nacks, [NackReason::NoRoute]);
    assert_eq!(net.counters(nodes[B]).in_interests, 0, "no Interest was forwarded");
}
