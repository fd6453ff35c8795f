//! Small random networks with any strategies, worker counts and roles (edge or core), and with loops in the routes.
//! Each becomes idle, its counters add up, and each failure has a cause.
//!
//! The cheapest next hop of every router leads to the producer by a shortest path. Further routes are random and may
//! lead anywhere. If no frame is lost, every Interest must be satisfied at the first transmission: the first copy that
//! visits a router leaves its record there, so the Data finds its way back, whatever happens to the other copies.

use namewire_engine::{CoreConfig, EngineConfig, PitRole};
use namewire_packet::{FaceId, NameBuf};
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd};
use namewire_tables::fingerprint_pit::FingerprintPitConfig;
use proptest::prelude::*;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
const NAMES_PER_CONSUMER: usize = 40;
/// Far more than these few names need: a run that reaches it has a loop.
const EVENT_LIMIT: u64 = 1_000_000;

const STRATEGIES: [&str; 5] = ["best-route", "multicast", "asf", "access", "random"];

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    workers: Vec<u8>,
    /// Nodes that store fingerprints of Interests.
    cores: Vec<bool>,
    /// For each node.
    strategies: Vec<&'static str>,
    /// Pairs of nodes (modulo their number), in addition to a line that joins all.
    extra_links: Vec<(usize, usize)>,
    /// (node, its link): a detour.
    detours: Vec<(usize, usize)>,
    producer_at: usize,
    consumers_at: Vec<usize>,
    link: LinkOptions,
    content_bytes: usize,
    echo_tokens: bool,
    can_be_prefix: bool,
    must_be_fresh: bool,
    /// All consumers request the same names.
    shared_names: bool,
    small_tables: bool,
    /// (node, its link, time): a face that closes during the run.
    removal: Option<(usize, usize, u64)>,
}

fn link_options() -> impl Strategy<Value = LinkOptions> {
    let perfect = (prop_oneof![Just(300usize), Just(1452), Just(8800)], 0..20u64)
        .prop_map(|(mtu, delay_ms)| LinkOptions { mtu, delay_ns: delay_ms * MS_NS, ..LinkOptions::default() });
    let jittery =
        (0..20u64).prop_map(|jitter_ms| LinkOptions { jitter_ns: jitter_ms * MS_NS, ..LinkOptions::default() });
    let lossy =
        (0.0..0.3f64, 0.0..0.3f64, 0.0..0.3f64, 0..200u64).prop_map(|(loss, duplication, reordering, held_ms)| {
            LinkOptions {
                loss,
                duplication,
                reordering,
                reordering_delay_ns: held_ms * MS_NS,
                jitter_ns: MS_NS,
                ..LinkOptions::default()
            }
        });
    prop_oneof![perfect, jittery, lossy]
}

fn plan() -> impl Strategy<Value = Plan> {
    (2..8usize).prop_flat_map(|size| {
        let shape = (
            any::<u64>(),
            prop::collection::vec((1..5u8, prop::bool::weighted(0.3)), size),
            prop::collection::vec(prop::sample::select(&STRATEGIES[..]), size),
            prop::collection::vec((0..size, 0..size), 0..6),
            prop::collection::vec((0..size, 0..8usize), 0..12),
            0..size,
            prop::collection::vec(0..size, 1..4),
        );
        let traffic = (link_options(), 0..1100usize, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        let trouble = (prop::bool::weighted(0.2), prop::option::weighted(0.2, (0..size, 0..8usize, 0..1000u64)));
        (shape, traffic, trouble).prop_map(|(shape, traffic, trouble)| {
            let (seed, nodes, strategies, extra_links, detours, producer_at, consumers_at) = shape;
            let (link, content_bytes, echo_tokens, can_be_prefix, must_be_fresh, shared_names) = traffic;
            let (small_tables, removal) = trouble;
            let (workers, cores) = nodes.into_iter().unzip();
            Plan {
                seed,
                workers,
                cores,
                strategies,
                extra_links,
                detours,
                producer_at,
                consumers_at,
                link,
                content_bytes,
                echo_tokens,
                can_be_prefix,
                must_be_fresh,
                shared_names,
                small_tables,
                removal,
            }
        })
    })
}

impl Plan {
    fn is_lossless(&self) -> bool {
        self.link.loss == 0.0 && self.link.duplication == 0.0
    }

    /// No loss, no Nack for another consumer's Interest, and no random choice of a detour can prevent Data.
    fn must_satisfy(&self) -> bool {
        let is_aimless = self.strategies.contains(&"random");
        self.is_lossless() && !self.shared_names && !self.small_tables && self.removal.is_none() && !is_aimless
    }

    /// Every failure belongs to a lost packet of its own name. Not if its Interest may have been aggregated with
    /// another consumer's, and not if a removed face took pending Interests along.
    fn must_explain(&self) -> bool {
        !self.shared_names && self.removal.is_none()
    }

    /// Small tables: a PIT that most bursts fill, and fingerprints that collide.
    fn engine(&self, index: usize) -> EngineConfig {
        let small = EngineConfig { pit_capacity_entries: 8, cs_capacity_packets: 3, ..EngineConfig::default() };
        let engine = if self.small_tables { small } else { EngineConfig::default() };
        let fingerprints = match self.small_tables {
            true => FingerprintPitConfig { fingerprint_bits: 2, overflow_entries: 2, ..FingerprintPitConfig::new(16) },
            false => FingerprintPitConfig::new(1 << 16),
        };
        let core = PitRole::Core(CoreConfig { fingerprints, ..CoreConfig::new(0) });
        EngineConfig { pit_role: if self.cores[index] { core } else { PitRole::Edge }, ..engine }
    }

    fn run(&self) -> (Network, Vec<namewire_sim::AppId>, RunEnd) {
        let size = self.workers.len();
        let mut net = Network::new(self.seed, 3_000_000);
        net.set_event_limit(EVENT_LIMIT);
        let nodes: Vec<NodeId> = (0..size)
            .map(|index| {
                let workers = self.workers[index];
                net.add_node(NodeOptions {
                    workers,
                    engine: self.engine(index),
                    batch_packets: 1,
                    processing_jitter_ns: 10_000,
                    ..NodeOptions::default()
                })
            })
            .collect();

        // Neighbours of each node: node and face.
        let mut neighbours = vec![Vec::new(); size];
        let line = (1..size).map(|index| (index - 1, index));
        for (a, b) in line.chain(self.extra_links.iter().copied()).filter(|(a, b)| a != b) {
            let connection = net.connect(nodes[a], nodes[b], self.link);
            neighbours[a].push((b, connection.face_a));
            neighbours[b].push((a, connection.face_b));
        }

        let producer = Producer::of_content(self.content_bytes, 1000).echo_tokens(self.echo_tokens);
        let producer = net.attach(nodes[self.producer_at], producer);
        net.add_route(nodes[self.producer_at], "/p", producer.face, 0);
        self.add_routes(&mut net, &nodes, &neighbours);

        let options = ConsumerOptions {
            lifetime_ms: 2000,
            transmissions: if self.is_lossless() { 1 } else { 3 },
            retransmit_after_ms: 300,
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            token_bytes: 5,
            ..ConsumerOptions::default()
        };
        let mut apps = Vec::new();
        for (which, &at) in self.consumers_at.iter().enumerate() {
            let which = if self.shared_names { 0 } else { which };
            let names = (0..NAMES_PER_CONSUMER).map(|number| format!("/p/q/{which}/{number}").parse().expect("a name"));
            apps.push(net.attach(nodes[at], Consumer::new(names, options)).app);
        }
        if let Some((node, which, at_ms)) = self.removal {
            let (_, face) = neighbours[node][which % neighbours[node].len()];
            let (node, at_ns) = (nodes[node], net.now_ns() + at_ms * MS_NS);
            net.at(at_ns, move |net| net.remove_face(node, face));
        }
        let end = net.run_for(3600 * SECOND_NS);
        (net, apps, end)
    }

    /// Routes of a breadth-first search from the producer, the detours and the strategies.
    fn add_routes(&self, net: &mut Network, nodes: &[NodeId], neighbours: &[Vec<(usize, FaceId)>]) {
        let size = self.workers.len();
        let mut to_visit = VecDeque::from([self.producer_at]);
        let mut visited = vec![false; size];
        visited[self.producer_at] = true;
        let mut towards_producer = vec![None; size];
        while let Some(near) = to_visit.pop_front() {
            for &(far, _) in &neighbours[near] {
                if !std::mem::replace(&mut visited[far], true) {
                    let (_, towards) =
                        neighbours[far].iter().find(|(node, _)| *node == near).expect("links go both ways");
                    net.add_route(nodes[far], "/p", *towards, 10);
                    towards_producer[far] = Some(*towards);
                    to_visit.push_back(far);
                }
            }
        }
        for &(node, which) in &self.detours {
            let (_, face) = neighbours[node][which % neighbours[node].len()];
            // Its own route would hide the inherited, cheaper one over the same face.
            if towards_producer[node] != Some(face) {
                net.add_route(nodes[node], "/p/q", face, 50);
            }
        }
        for (index, strategy) in self.strategies.iter().enumerate() {
            net.set_strategy(nodes[index], "/p", strategy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn networks_become_idle_add_up_and_have_a_cause_for_each_failure(plan in plan()) {
        let (net, apps, end) = plan.run();
        prop_assert_eq!(end, RunEnd::Idle);
        prop_assert_eq!(net.audit(), Vec::<String>::new());
        for app in apps {
            let asked = net.application::<Consumer>(app);
            prop_assert_eq!(asked.outcomes().len(), NAMES_PER_CONSUMER);
            prop_assert_eq!((asked.tally().damaged, asked.tally().wrong_token), (0, 0));
            if plan.must_explain() {
                prop_assert_eq!(net.unexplained_failures(app), Vec::<NameBuf>::new());
            }
            if plan.must_satisfy() {
                prop_assert_eq!(asked.failed().next(), None);
            }
        }
    }
}
