//! Mixed cores: a chain of core routers that store some Interests by name and others by fingerprint. Is Data lost?
//!
//! ```text
//!   west edge ── core ── core ── … ── core ── east edge
//!                         │  └ an application of its own
//!                      middle edge
//! ```
//!
//! The outer edges have a producer each. All edges have consumers that request remote names, so that Interests and Data
//! cross every core in both directions. Cores store names for CanBePrefix, for their local applications and, as the
//! adaptive PIT does, up to [`MixedCores::names_up_to`]; they store fingerprints for the rest. No link loses frames and
//! no router stores Data, so an Interest without Data was lost by a core.
//!
//! Requests of each edge:
//!
//! | name | consumers |
//! | --- | --- |
//! | `/east/plain/EDGE/N` | one consumer, once |
//! | `/east/shared/N` | one of each edge |
//! | `/east/again/EDGE/N` | one that repeats its Interest before the Data can arrive |
//! | `/east/set/N` | one with CanBePrefix; the producer's own answer is `/east/set/N/v=1` |
//! | `/east/set/N/v=1`, or `/east/set/N/other` | one at the same edge: see [`PrefixAnswers`] |

use crate::consumer::{Consumer, ConsumerOptions};
use crate::link::LinkOptions;
use crate::network::{AppId, Network, RunEnd};
use crate::producer::Producer;
use crate::router::NodeOptions;
use crate::trace::NodeId;
use fastrand::Rng;
use namewire_engine::{CoreConfig, Counters, EngineConfig, FaceId, PitRole};
use namewire_packet::NameBuf;
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

const MS_NS: u64 = 1_000_000;
/// Virtual time far beyond the end of any run.
const END_NS: u64 = 3_600_000_000_000;
/// Pending names per consumer.
const WINDOW: usize = 8;
/// Entries of a core's table: 32 buckets in each subtable.
const TABLE_ENTRIES: u32 = 512;
/// Delay of a link: Data arrives after at least 24 ms.
const LINK_DELAY_NS: u64 = 4 * MS_NS;
/// When an Interest is repeated: before its Data arrives, but after the 10 ms in which best-route suppresses it.
const REPEATED_AFTER_MS: u64 = 11;
/// When a consumer without Data repeats its Interest, while other consumers still send theirs.
const LOST_AFTER_MS: u64 = 200;

/// Which Data can answer a CanBePrefix Interest, besides the producer's own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixAnswers {
    /// None; a consumer also requests the producer's answer by its own name.
    AskedByName,
    /// Another Data, requested by its name. If it comes first, the producer's own answer comes when no Interest is
    /// pending.
    BesideAnother,
}

/// A network to run.
#[derive(Clone, Copy, Debug)]
pub struct MixedCores {
    /// Seed of all random choices.
    pub seed: u64,
    /// Core routers in line, at least 1.
    pub cores: usize,
    /// Workers of each router.
    pub workers: u8,
    /// Bits of a fingerprint, 1 to 16.
    pub fingerprint_bits: u8,
    /// Parts of the table of fingerprints.
    pub segments: u8,
    /// Adaptive PIT: names that a core stores before it stores fingerprints.
    pub names_up_to: u32,
    /// Largest random delay of a frame.
    pub jitter_ns: u64,
    /// The Data that answers CanBePrefix Interests.
    pub prefix_answers: PrefixAnswers,
    /// Links remove PIT tokens.
    pub without_tokens: bool,
    /// Most Interests for a name without Data.
    pub transmissions: u32,
    /// Names that each consumer requests.
    pub names: usize,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct MixedOutcome {
    /// Requested names, counted once for each consumer.
    pub asked: usize,
    /// Those without Data.
    pub lost: Vec<NameBuf>,
    /// Counters of all cores together.
    pub cores: Counters,
    /// Violated laws of [`Network::audit`], and wrong Data.
    pub broken: Vec<String>,
}

/// A network under construction.
struct Building<'a> {
    plan: &'a MixedCores,
    net: Network,
    consumers: Vec<AppId>,
}

impl MixedCores {
    /// A random network: 2 to 4 cores of 1 to 3 workers, fingerprints of 1 to 7 bits or of 16, any of the settings that
    /// mix names and fingerprints.
    pub fn random(seed: u64, prefix_answers: PrefixAnswers, names: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        MixedCores {
            seed: rng.u64(..),
            cores: rng.usize(2..=4),
            workers: rng.u8(1..=3),
            fingerprint_bits: [1, 2, 3, 4, 5, 6, 7, 16][rng.usize(..8)],
            segments: rng.u8(1..=2),
            names_up_to: [0, 0, 8, 24, 64][rng.usize(..5)],
            jitter_ns: [0, MS_NS][rng.usize(..2)],
            prefix_answers,
            without_tokens: false,
            transmissions: 1,
            names,
        }
    }

    /// Runs the network until it is idle.
    pub fn run(&self) -> MixedOutcome {
        let mut net = Network::new(self.seed, 0);
        net.set_event_limit(u64::MAX);
        let mut building = Building { plan: self, net, consumers: Vec::new() };
        let cores = building.chain();
        let Building { mut net, consumers, .. } = building;
        let mut outcome = MixedOutcome::default();
        if net.run_for(END_NS) != RunEnd::Idle {
            outcome.broken.push("the network does not become idle".to_owned());
        }
        outcome.broken.extend(net.audit());
        for app in consumers {
            let consumer = net.application::<Consumer>(app);
            let tally = consumer.tally();
            if (tally.damaged, tally.wrong_token) != (0, 0) {
                outcome.broken.push(format!("{tally:?}"));
            }
            outcome.asked += consumer.outcomes().len();
            outcome.lost.extend(consumer.failed().map(|(name, _)| name.clone()));
        }
        cores.into_iter().for_each(|core| outcome.cores.merge(&net.counters(core)));
        outcome
    }

    fn node(&self, pit_role: PitRole) -> NodeOptions {
        let engine = EngineConfig { pit_role, cs_admit: false, ..EngineConfig::default() };
        NodeOptions { engine, workers: self.workers, processing_jitter_ns: 5_000, ..NodeOptions::default() }
    }

    fn core_role(&self) -> PitRole {
        let MixedCores { fingerprint_bits, segments, .. } = *self;
        let sizes = FingerprintPitConfig::new(TABLE_ENTRIES);
        let fingerprints = FingerprintPitConfig { fingerprint_bits, segments, ..sizes };
        let names_up_to = self.names_up_to.div_ceil(self.workers.into());
        PitRole::Core(CoreConfig { fingerprints, names_up_to, ..CoreConfig::new(TABLE_ENTRIES) })
    }

    fn options(&self) -> ConsumerOptions {
        let transmissions = self.transmissions;
        ConsumerOptions {
            window: WINDOW,
            transmissions,
            retransmit_after_ms: LOST_AFTER_MS,
            ..ConsumerOptions::default()
        }
    }
}

impl Building<'_> {
    /// Builds the network; returns the cores.
    fn chain(&mut self) -> Vec<NodeId> {
        let plan = self.plan;
        let cores: Vec<NodeId> = (0..plan.cores).map(|_| self.net.add_node(plan.node(plan.core_role()))).collect();
        let [west, middle, east] = [0, 1, 2].map(|_| self.net.add_node(plan.node(PitRole::Edge)));
        let line: Vec<NodeId> = [west].into_iter().chain(cores.iter().copied()).chain([east]).collect();
        for pair in line.windows(2) {
            let (eastward, westward) = self.connect(pair[0], pair[1]);
            self.net.add_route(pair[0], "/east", eastward, 0);
            self.net.add_route(pair[1], "/west", westward, 0);
        }
        let crossing = cores[plan.cores / 2];
        let (up, _) = self.connect(middle, crossing);
        for (edge, prefix) in [(west, "/west"), (east, "/east")] {
            let producer = self.net.attach(edge, Producer::of_content(20, 0));
            self.net.add_route(edge, prefix, producer.face, 0);
            self.net.add_route(middle, prefix, up, 0);
        }
        for (edge, edge_name, prefix) in
            [(west, "w", "/east"), (middle, "m", "/east"), (east, "e", "/west"), (middle, "m", "/west")]
        {
            self.ask(edge, edge_name, prefix);
        }
        let of_the_core = ConsumerOptions { token_bytes: 8, ..plan.options() };
        self.consume(crossing, of_the_core, |number| format!("/east/shared/{number}"));
        cores
    }

    /// Joins two nodes; returns the face of each.
    fn connect(&mut self, a: NodeId, b: NodeId) -> (FaceId, FaceId) {
        let (jitter_ns, drops_pit_tokens) = (self.plan.jitter_ns, self.plan.without_tokens);
        let link = LinkOptions { delay_ns: LINK_DELAY_NS, jitter_ns, drops_pit_tokens, ..LinkOptions::default() };
        let connection = self.net.connect(a, b, link);
        (connection.face_a, connection.face_b)
    }

    /// Attaches the consumers at `edge` for names under `prefix`.
    fn ask(&mut self, edge: NodeId, edge_name: &str, prefix: &str) {
        let options = self.plan.options();
        self.consume(edge, options, |number| format!("{prefix}/plain/{edge_name}/{number}"));
        self.consume(edge, options, |number| format!("{prefix}/shared/{number}"));
        let beside = match self.plan.prefix_answers {
            PrefixAnswers::AskedByName => "v=1",
            PrefixAnswers::BesideAnother => "other",
        };
        self.consume(edge, options, |number| format!("{prefix}/set/{number}/{beside}"));
        let by_prefix = ConsumerOptions { can_be_prefix: true, ..options };
        self.consume(edge, by_prefix, |number| format!("{prefix}/set/{number}"));
        let transmissions = options.transmissions + 2;
        let again = ConsumerOptions { transmissions, retransmit_after_ms: REPEATED_AFTER_MS, ..options };
        self.consume(edge, again, |number| format!("{prefix}/again/{edge_name}/{number}"));
    }

    fn consume(&mut self, node: NodeId, options: ConsumerOptions, name: impl Fn(usize) -> String) {
        let names = (0..self.plan.names).map(|number| name(number).parse().expect("a name"));
        self.consumers.push(self.net.attach(node, Consumer::new(names, options)).app);
    }
}
