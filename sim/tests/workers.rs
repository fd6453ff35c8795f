//! Do several workers decide like one worker? The same network, seed and traffic run with 1, 2, 4 and 8 workers per
//! router.
//!
//! Every router must count the same: packets received and sent, Interests satisfied, Nacked, aggregated, looped and
//! answered by the Content Store, and drops for each reason. This holds without a Content Store and with one that has
//! room. For a store that overflows, the hits are compared.
//!
//! Each worker learns for itself which of several next hops is silent, and while it suspects one, it takes second
//! answers as answers. So where two links join the same routers, unsolicited Data are not compared.
//!
//! Links lose no frames here: losses depend on the order of frames, and workers may send packets of the same nanosecond
//! in another order. `random_networks.rs` has whole lossy networks with workers.

use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::{Counters, DropReason, EngineConfig};
use namewire_packet::tlv::types;
use namewire_packet::{Component, Data, NameBuf};
use namewire_sim::{
    AppId, Consumer, ConsumerOptions, ConsumerTally, LinkOptions, Network, NodeId, NodeOptions, Outcome, Producer,
    RunEnd, data_for,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

const MS_NS: u64 = 1_000_000;
const WORKERS: [u8; 4] = [1, 2, 4, 8];
const CONTENT_BYTES: usize = 50;
const FRESHNESS_MS: u64 = 1000;

/// The kind of a consumer's Interests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// The exact name of the Data.
    Exact,
    /// A prefix of the name, with CanBePrefix: the same Data.
    Prefix,
    /// The name and the implicit digest: the same Data.
    Digest,
    /// A name without a route.
    NoRoute,
    /// A name without an answer.
    Silence,
    /// A name whose answer comes after the Interest has expired.
    Late,
    /// A name for which two neighbours' routes point at each other.
    Loop,
    /// The exact name, with a HopLimit that is sometimes too small.
    FewHops(u8),
}

impl Wish {
    fn name(self, number: usize) -> NameBuf {
        let prefix = match self {
            Wish::Exact | Wish::Prefix | Wish::Digest | Wish::FewHops(_) => "/p/common",
            Wish::NoRoute => "/none",
            Wish::Silence => "/p/silence",
            Wish::Late => "/late",
            Wish::Loop => "/loop",
        };
        let prefix: NameBuf = format!("{prefix}/{number}").parse().expect("a name");
        match self {
            Wish::Exact | Wish::FewHops(_) => version_of(&prefix),
            Wish::Digest => {
                let name = version_of(&prefix);
                let data = data_for(&name, CONTENT_BYTES, FRESHNESS_MS);
                let digest = Data::parse(&data).expect("well-formed").implicit_digest();
                name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &digest })
            }
            _ => prefix,
        }
    }

    fn options(self, token_bytes: usize, transmissions: u32) -> ConsumerOptions {
        ConsumerOptions {
            can_be_prefix: self == Wish::Prefix,
            hop_limit: if let Wish::FewHops(hops) = self { Some(hops) } else { None },
            lifetime_ms: 500,
            retransmit_after_ms: 180,
            transmissions,
            token_bytes,
            ..ConsumerOptions::default()
        }
    }
}

fn version_of(name: &NameBuf) -> NameBuf {
    let mut name = name.clone();
    name.push_version(1);
    name
}

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    size: usize,
    /// Pairs of nodes (modulo their number), in addition to a line that joins all.
    extra_links: Vec<(usize, usize)>,
    multicast: Vec<bool>,
    producer_at: usize,
    echo_tokens: bool,
    /// Node, kind of Interest, bytes of its tokens, transmissions.
    consumers: Vec<(usize, Wish, usize, u32)>,
    names: usize,
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        3 => Just(Wish::Exact),
        3 => Just(Wish::Prefix),
        2 => Just(Wish::Digest),
        1 => Just(Wish::NoRoute),
        1 => Just(Wish::Silence),
        1 => Just(Wish::Late),
        1 => Just(Wish::Loop),
        1 => (0..4u8).prop_map(Wish::FewHops),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    (2..6usize).prop_flat_map(|size| {
        let consumer = (0..size, wish(), prop_oneof![Just(0usize), Just(5)], 1..4u32);
        (
            any::<u64>(),
            prop::collection::vec((0..size, 0..size), 0..4),
            prop::collection::vec(prop::bool::weighted(0.3), size),
            0..size,
            any::<bool>(),
            prop::collection::vec(consumer, 1..7),
            1..30usize,
        )
            .prop_map(move |(seed, extra_links, multicast, producer_at, echo_tokens, consumers, names)| Plan {
                seed,
                size,
                extra_links,
                multicast,
                producer_at,
                echo_tokens,
                consumers,
                names,
            })
    })
}

/// The results of a run.
struct Totals {
    routers: Vec<Counters>,
    consumers: Vec<(BTreeMap<NameBuf, How>, ConsumerTally)>,
}

/// An [`Outcome`] without times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Satisfied(u32),
    Failed(Outcome),
}

impl Plan {
    /// Whether two links join the same routers: then prefixes have several next hops.
    fn has_parallel_links(&self) -> bool {
        let mut joined = BTreeSet::new();
        self.links().any(|(a, b)| !joined.insert((a.min(b), a.max(b))))
    }

    fn links(&self) -> impl Iterator<Item = (usize, usize)> {
        let line = (1..self.size).map(|index| (index - 1, index));
        line.chain(self.extra_links.iter().copied()).filter(|(a, b)| a != b)
    }

    fn run(&self, workers: u8, engine: &EngineConfig) -> Totals {
        let mut net = Network::new(self.seed, 0);
        net.set_event_limit(2_000_000);
        let options = NodeOptions {
            workers,
            engine: engine.clone(),
            // A worker processes each packet at once and alone, so that times do not depend on the number of workers.
            batch_packets: 1,
            processing_ns: 0,
            ..NodeOptions::default()
        };
        let nodes: Vec<NodeId> = (0..self.size).map(|_| net.add_node(options.clone())).collect();
        self.connect(&mut net, &nodes);
        let apps = self.attach_consumers(&mut net, &nodes);
        assert_eq!(net.run_for(60_000 * MS_NS), RunEnd::Idle);
        assert_eq!(net.audit(), Vec::<String>::new());
        let consumers = apps.iter().map(|app| outcomes(&net, app.get().expect("it was attached"))).collect();
        let routers = nodes.iter().map(|&node| self.comparable(net.counters(node))).collect();
        Totals { routers, consumers }
    }

    /// Ignores void tokens, which only workers exchange, admissions (each worker with a pending Interest stores the
    /// Data), and unsolicited Data as the header says.
    fn comparable(&self, counters: Counters) -> Counters {
        let mut counters = Counters { redispatched: 0, cs_insertions: 0, ..counters };
        if self.has_parallel_links() {
            counters.drops[DropReason::UnsolicitedData as usize] = 0;
        }
        counters
    }

    /// Links, producers and routes: `/p` and `/late` by shortest paths, `/loop` in a loop.
    fn connect(&self, net: &mut Network, nodes: &[NodeId]) {
        let mut neighbours = vec![Vec::new(); self.size];
        for (which, (a, b)) in self.links().enumerate() {
            // Odd delays: packets of different paths do not meet in the same nanosecond.
            let delay_ns = 3 * MS_NS + 104_729 * which as u64;
            let link = LinkOptions { delay_ns, jitter_ns: 40_009, ..LinkOptions::default() };
            let connection = net.connect(nodes[a], nodes[b], link);
            neighbours[a].push((b, connection.face_a));
            neighbours[b].push((a, connection.face_b));
        }
        net.add_route(nodes[0], "/loop", neighbours[0][0].1, 0);
        net.add_route(nodes[1], "/loop", neighbours[1][0].1, 0);

        let producer = net.attach(nodes[self.producer_at], common_producer().echo_tokens(self.echo_tokens));
        let late = Producer::of_content(CONTENT_BYTES, 0).processing_ns(1300 * MS_NS).echo_tokens(self.echo_tokens);
        let late = net.attach(nodes[self.producer_at], late);
        net.add_route(nodes[self.producer_at], "/p", producer.face, 0);
        net.add_route(nodes[self.producer_at], "/late", late.face, 0);
        let mut to_visit = VecDeque::from([self.producer_at]);
        let mut visited = vec![false; self.size];
        visited[self.producer_at] = true;
        while let Some(near) = to_visit.pop_front() {
            for &(far, _) in &neighbours[near] {
                if !std::mem::replace(&mut visited[far], true) {
                    let towards = neighbours[far].iter().filter(|(node, _)| *node == near);
                    for (cost, (_, face)) in towards.enumerate() {
                        net.add_route(nodes[far], "/p", *face, cost as u64);
                        net.add_route(nodes[far], "/late", *face, cost as u64);
                    }
                    to_visit.push_back(far);
                }
            }
        }
        for (index, &multicast) in self.multicast.iter().enumerate() {
            net.set_strategy(nodes[index], "/", if multicast { "multicast" } else { "best-route" });
        }
    }

    fn attach_consumers(&self, net: &mut Network, nodes: &[NodeId]) -> Vec<Rc<Cell<Option<AppId>>>> {
        let attach = |(which, &(at, wish, token_bytes, transmissions)): (usize, &(usize, Wish, usize, u32))| {
            let app = Rc::new(Cell::new(None));
            let names: Vec<NameBuf> = (0..self.names).map(|number| wish.name(number)).collect();
            let (slot, node) = (Rc::clone(&app), nodes[at]);
            let options = wish.options(token_bytes, transmissions);
            // Each starts a little later than the one before: some meet others' Interests, some only their Data.
            let at_ns = net.now_ns() + 1_500_007 * which as u64;
            net.at(at_ns, move |net| slot.set(Some(net.attach(node, Consumer::new(names, options)).app)));
            app
        };
        self.consumers.iter().enumerate().map(attach).collect()
    }
}

/// Answers prefix, name and full name with the same Data, and `/p/silence` with nothing.
fn common_producer() -> Producer {
    let silence: NameBuf = "/p/silence".parse().expect("a name");
    Producer::new(move |interest| {
        let mut name = interest.name().to_buf();
        if silence.as_name().is_prefix_of(&name.as_name()) {
            return None;
        }
        if name.as_name().last().is_some_and(|last| last.type_number == types::IMPLICIT_SHA256_DIGEST) {
            name.pop();
        }
        let name = if interest.can_be_prefix() { version_of(&name) } else { name };
        Some(data_for(&name, CONTENT_BYTES, FRESHNESS_MS))
    })
}

fn outcomes(net: &Network, app: AppId) -> (BTreeMap<NameBuf, How>, ConsumerTally) {
    let consumer = net.application::<Consumer>(app);
    let without_time = |outcome: Outcome| match outcome {
        Outcome::Satisfied { transmissions, .. } => How::Satisfied(transmissions),
        failed => How::Failed(failed),
    };
    let outcomes = consumer.outcomes().iter().map(|(name, outcome)| (name.clone(), without_time(*outcome)));
    (outcomes.collect(), consumer.tally())
}

/// Tables far larger than a plan needs, but quick to make: a plan makes up to 75 engines.
fn small_engine() -> EngineConfig {
    EngineConfig {
        pit_capacity_entries: 2048,
        cs_capacity_packets: 2048,
        cs_capacity_bytes: 4 << 20,
        dead_nonce_capacity: 1 << 14,
        ..EngineConfig::default()
    }
}

/// Runs random plans with 1, 2, 4 and 8 workers and requires the same totals; returns the events that occurred.
fn same_totals(engine: &EngineConfig) -> Counters {
    let config = ProptestConfig { failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::with_cases(150) };
    let seen = RefCell::new(Counters::default());
    let result = TestRunner::new(config).run(&plan(), |plan| {
        let one = plan.run(1, engine);
        one.routers.iter().for_each(|counters| seen.borrow_mut().merge(counters));
        for workers in &WORKERS[1..] {
            let several = plan.run(*workers, engine);
            prop_assert_eq!(&one.routers, &several.routers, "{} workers", workers);
            prop_assert_eq!(&one.consumers, &several.consumers, "{} workers", workers);
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    seen.into_inner()
}

#[test]
fn without_content_store_all_totals_are_the_same() {
    let seen = same_totals(&EngineConfig { cs_admit: false, ..small_engine() });
    // The plans must cause the events for which they exist; otherwise equality says little.
    let occurred =
        [seen.satisfied, seen.unsatisfied, seen.aggregated, seen.retransmitted, seen.in_nacks, seen.out_nacks];
    assert!(occurred.iter().all(|&count| count > 0), "{seen:?}");
    for reason in [
        DropReason::DuplicateNonce,
        DropReason::HopLimitZero,
        DropReason::NoRoute,
        DropReason::Suppressed,
        DropReason::UnsolicitedData,
    ] {
        assert!(seen.dropped(reason) > 0, "{} never occurred: {seen:?}", reason.name());
    }
}

#[test]
fn with_content_store_all_totals_are_the_same() {
    let seen = same_totals(&small_engine());
    assert!(seen.cs_hits > 0, "{seen:?}");
}

/// A store that is too small for its names: each worker has its share of the bytes, and names are not quite evenly
/// distributed over workers. Prints the hits; every Interest must get its Data.
#[test]
fn a_store_that_overflows_hits_about_as_often_with_several_workers() {
    const NAMES: usize = 2000;
    const CAPACITY_PACKETS: u64 = 1024;
    const ROUNDS: usize = 12;
    let hits = |workers: u8| {
        let cs_capacity_packets = CAPACITY_PACKETS / u64::from(workers);
        let engine = EngineConfig { cs_capacity_packets, cs_policy: EvictionName::Lru.into(), ..small_engine() };
        let mut net = Network::new(5, 0);
        let node = net.add_node(NodeOptions { workers, engine, ..NodeOptions::default() });
        let producer = net.attach(node, Producer::of_content(CONTENT_BYTES, 3_600_000));
        net.add_route(node, "/p", producer.face, 0);
        let mut random = fastrand::Rng::with_seed(11);
        let mut order: Vec<usize> = (0..NAMES).collect();
        for _ in 0..ROUNDS {
            random.shuffle(&mut order);
            // Every round requests the lower half of the names, and one in four of the others.
            let asked = order.iter().filter(|&&name| name < NAMES / 2 || random.u8(..4) == 0);
            let names: Vec<NameBuf> = asked.map(|name| format!("/p/{name}").parse().expect("a name")).collect();
            let count = names.len();
            let consumer = net.attach(node, Consumer::new(names, ConsumerOptions::default()));
            assert_eq!(net.run_for(60_000 * MS_NS), RunEnd::Idle);
            assert_eq!(net.application::<Consumer>(consumer.app).satisfied(), count);
        }
        net.counters(node).cs_hits
    };
    let one = hits(1);
    for workers in &WORKERS[1..] {
        let several = hits(*workers);
        let difference_percent = (several as f64 / one as f64 - 1.0) * 100.0;
        println!("Content Store hits: {one} with one worker, {several} with {workers} ({difference_percent:+.1} %)");
        assert!(difference_percent.abs() < 3.0, "{one} hits with one worker, {several} with {workers}");
    }
}
