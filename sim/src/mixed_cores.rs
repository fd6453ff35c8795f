//! Mixed cores: a chain of core routers that keep some Interests by name and others by fingerprint. Is Data lost?
//!
//! ```text
//!   west edge ── core ── core ── … ── core ── east edge
//!                         │  └ an application of its own
//!                      middle edge
//! ```
//!
//! The outer edges have a producer each, and all edges consumers that ask for what is far away, so that Interests and
//! Data go both ways through every core. Cores keep names for CanBePrefix, for applications of theirs and, as the
//! adaptive PIT, up to [`MixedCores::names_up_to`]; the rest by fingerprint. No link loses anything and no router
//! stores Data: an Interest without Data was lost by a core.
//!
//! What is asked for, at each edge:
//!
//! | name | who asks |
//! | --- | --- |
//! | `/east/plain/EDGE/N` | one consumer, once |
//! | `/east/shared/N` | one of each edge |
//! | `/east/again/EDGE/N` | one that repeats its Interest before the Data can be there |
//! | `/east/set/N` | CanBePrefix; the producer's own answer is `/east/set/N/v=1` |
//! | `/east/set/N/v=1`, or `/east/set/N/other` | one consumer beside it: see [`PrefixAnswers`] |

use crate::consumer::{Consumer, ConsumerOptions};
use crate::link::LinkOptions;
use crate::network::{AppId, Network, RunEnd};
use crate::node::{NodeId, NodeOptions};
use crate::producer::Producer;
use fastrand::Rng;
use namewire_engine::{CoreConfig, Counters, EngineConfig, FaceId, PitRole};
use namewire_packet::NameBuf;
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

const MS_NS: u64 = 1_000_000;
/// Virtual time that no run comes near.
const END_NS: u64 = 3_600_000_000_000;
/// Names that a consumer has pending.
const WINDOW: usize = 8;
/// Entries of a core's table: 32 buckets in each subtable.
const TABLE_ENTRIES: u32 = 512;
/// Time on a link: the Data is there after 24 ms or more.
const LINK_DELAY_NS: u64 = 4 * MS_NS;
/// When an Interest is repeated: before its Data is there, and after the 10 ms in which best-route would not send it on.
const REPEATED_AFTER_MS: u64 = 11;
/// When a consumer without its Data gives up waiting, and asks again: while others still ask.
const LOST_AFTER_MS: u64 = 200;

/// Which Data is there for a CanBePrefix Interest, beside the one that the producer answers it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixAnswers {
    /// None: the answer itself is asked for by its own name, too.
    AskedByName,
    /// Another, asked for by its name: if it comes first, the producer's own answer comes when no Interest waits any more.
    BesideAnother,
}

/// A network to be run.
#[derive(Clone, Copy, Debug)]
pub struct MixedCores {
    /// All that happens follows from it and the rest.
    pub seed: u64,
    /// Core routers in line, at least 1.
    pub cores: usize,
    /// Workers of each router.
    pub workers: u8,
    /// Bits of a fingerprint, 1 to 16.
    pub fingerprint_bits: u8,
    /// Parts of the table of fingerprints.
    pub segments: u8,
    /// Adaptive PIT: names that a core keeps before it keeps fingerprints.
    pub names_up_to: u32,
    /// Most that a frame is late by, at random.
    pub jitter_ns: u64,
    /// What answers CanBePrefix Interests.
    pub prefix_answers: PrefixAnswers,
    /// Links take PIT tokens off.
    pub without_tokens: bool,
    /// How often a name is asked for, at most, if no Data comes.
    pub transmissions: u32,
    /// Names that each consumer asks for.
    pub names: usize,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct MixedOutcome {
    /// Names that were asked for, once for each consumer.
    pub asked: usize,
    /// Of those, without Data.
    pub lost: Vec<NameBuf>,
    /// Counters of all cores together.
    pub cores: Counters,
    /// Laws of [`Network::audit`] that do not hold, and Data that is not what was asked for.
    pub broken: Vec<String>,
}

/// A network that is being built.
struct Building<'a> {
    plan: &'a MixedCores,
    net: Network,
    consumers: Vec<AppId>,
}

impl MixedCores {
    /// One of all such networks: 2 to 4 cores of 1 to 3 workers, fingerprints of 1 to 7 bits or of 16, any of the
    /// settings that mix names and fingerprints.
    pub fn drawn(seed: u64, prefix_answers: PrefixAnswers, names: usize) -> Self {
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

    /// Runs the network until nothing happens any more.
    pub fn run(&self) -> MixedOutcome {
        let mut net = Network::new(self.seed, 0);
        net.set_event_limit(u64::MAX);
        let mut building = Building { plan: self, net, consumers: Vec::new() };
        let cores = building.chain();
        let Building { mut net, consumers, .. } = building;
        let mut outcome = MixedOutcome::default();
        if net.run_for(END_NS) != RunEnd::Idle {
            outcome.broken.push("the network does not come to rest".to_owned());
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
    /// Builds all of it; gives the cores.
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

    /// Joins two nodes; gives the face of each.
    fn connect(&mut self, a: NodeId, b: NodeId) -> (FaceId, FaceId) {
        let (jitter_ns, drops_pit_tokens) = (self.plan.jitter_ns, self.plan.without_tokens);
        let link = LinkOptions { delay_ns: LINK_DELAY_NS, jitter_ns, drops_pit_tokens, ..LinkOptions::default() };
        let connection = self.net.connect(a, b, link);
        (connection.face_a, connection.face_b)
    }

    /// The consumers at `edge` of what is under `prefix`.
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
