//! Several core routers: does every Interest get its own Data, and what do collisions cost?
//!
//! Source: Yuan15 §5.5, Fig. 5.6, which gives no numbers: it guarantees delivery, and states that entries may double in
//! the worst case.
//!
//! ```text
//!   consumers of /west ─┐
//!                      near edge ── core 1 ── core 2 ── far edge ── producer
//!   consumers of /south ┘    └───────────────────┘
//! ```
//!
//! Real engines, link services and dispatchers run in the simulator. The near edge requests /west through both cores
//! and /south through the second alone. Where names of both collide at the second core, the first core gets Data that
//! it never requested. Such Data may match one of the first core's own fingerprints: the case of Fig. 5.6. Each network
//! runs with links that pass the mark *collided* and with links that remove it. No router stores Data, because a cache
//! would hide a loss. For comparison, the same network runs with routers that store names.
//!
//! The chains of [`mixed`] have Interests by name and by fingerprint; there the question is which Data the second
//! copies take away.
//!
//! Checked: with the mark, and with names, all Data come, intact and once, and the network's counters add up. Without
//! the mark some are lost; otherwise the collisions for which it exists did not happen.
//!
//! Limits: with fingerprints of 16 bits and a table of some size, almost no names collide; the short fingerprints here
//! force collisions.

mod mixed;

use crate::experiment::{Context, Outcome, Scale};
use anyhow::ensure;
use namewire_engine::{CoreConfig, EngineConfig, PitRole};
use namewire_sim::{AppId, Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Producer, RunEnd};
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Bits of a fingerprint; with the buckets of [`TABLE_ENTRIES`] there are 32 times as many classes.
const FINGERPRINT_BITS: [u8; 6] = [1, 2, 4, 6, 8, 16];
/// Entries of a core's table.
const TABLE_ENTRIES: u32 = 512;
/// Consumers of each prefix.
const CONSUMERS: usize = 4;
/// Pending names per consumer.
const WINDOW: usize = 24;
/// Virtual time between two checks of the tables.
const LOOK_NS: u64 = 5_000_000;
/// Virtual time far beyond the end of any run.
const END_NS: u64 = 3_600_000_000_000;

/// How the routers in the middle store Interests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Middle {
    Names,
    Fingerprints { bits: u8, mark: bool },
}

/// Results of one network.
struct Seen {
    asked: usize,
    answered: usize,
    /// Data that the edges dropped for lack of a request.
    extra: u64,
    /// Interests that matched a pending fingerprint, at both cores.
    collided: u64,
    /// Data that reached both cores for forwarding.
    core_data: u64,
    /// The most entries of both cores at once, names or fingerprints.
    entries_max: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let names = match context.scale {
        Scale::Smoke => 150,
        Scale::Quick => 6_000,
        Scale::Full => 60_000,
    };
    context.plan_steps(1 + 2 * FINGERPRINT_BITS.len() + mixed::STEPS);
    let mut outcome = Outcome::default();
    let plain = step(context, Middle::Names, names)?;
    put(&mut outcome, "names", "edge routers only", &plain);
    ensure!(plain.answered == plain.asked && plain.extra == 0, "with names, something is lost or superfluous");
    let (mut least_with, mut least_without) = (1.0_f64, 1.0_f64);
    for bits in FINGERPRINT_BITS {
        let case = format!("{bits}-bit fingerprints");
        let marked = step(context, Middle::Fingerprints { bits, mark: true }, names)?;
        ensure!(marked.answered == marked.asked, "{case}: {} of {} came", marked.answered, marked.asked);
        let unmarked = step(context, Middle::Fingerprints { bits, mark: false }, names)?;
        put(&mut outcome, &case, "with the mark", &marked);
        put(&mut outcome, &case, "without the mark", &unmarked);
        least_with = least_with.min(delivered(&marked));
        least_without = least_without.min(delivered(&unmarked));
        if bits == 16 {
            let extra = marked.extra as f64 / marked.asked as f64;
            outcome.headline.insert("pit_network_extra_data_16_bits".to_owned(), extra);
        }
    }
    // At smoke scale there are too few names for a loss to be sure.
    ensure!(context.scale == Scale::Smoke || least_without < 1.0, "nothing is lost without the mark either");
    outcome.headline.insert("pit_network_delivered".to_owned(), least_with);
    outcome.headline.insert("pit_network_delivered_without_mark".to_owned(), least_without);
    outcome.add_notes(FILE)?;
    mixed::run(context, &mut outcome)?;
    Ok(outcome)
}

fn step(context: &Context, middle: Middle, names: usize) -> anyhow::Result<Seen> {
    context.begin_step("network")?;
    let seen = simulate(context, middle, names)?;
    Ok(seen)
}

fn delivered(seen: &Seen) -> f64 {
    seen.answered as f64 / seen.asked as f64
}

fn put(outcome: &mut Outcome, case: &str, subject: &str, seen: &Seen) {
    let of_asked = |count: u64| count as f64 / seen.asked as f64;
    for (metric, unit, value) in [
        ("asked", "Interests", seen.asked as f64),
        ("answered", "Interests", seen.answered as f64),
        ("delivered", "ratio", delivered(seen)),
        ("extra Data at edges", "per Interest", of_asked(seen.extra)),
        ("Data at cores", "per Interest", of_asked(seen.core_data)),
        ("collided at cores", "per Interest", of_asked(seen.collided)),
        ("entries at once, both cores", "entries", seen.entries_max as f64),
    ] {
        outcome.add_value(case, subject, (metric, unit), value);
    }
}

fn node(pit_role: PitRole) -> NodeOptions {
    let engine = EngineConfig { pit_role, cs_admit: false, ..EngineConfig::default() };
    NodeOptions { engine, processing_jitter_ns: 5_000, ..NodeOptions::default() }
}

fn role(middle: Middle) -> PitRole {
    match middle {
        Middle::Names => PitRole::Edge,
        Middle::Fingerprints { bits, .. } => {
            let sizes = FingerprintPitConfig::new(TABLE_ENTRIES);
            let fingerprints = FingerprintPitConfig { fingerprint_bits: bits, ..sizes };
            PitRole::Core(CoreConfig { fingerprints, ..CoreConfig::new(TABLE_ENTRIES) })
        }
    }
}

fn simulate(context: &Context, middle: Middle, names: usize) -> anyhow::Result<Seen> {
    let mut net = Network::new(context.seed, 0);
    net.set_event_limit(u64::MAX);
    let [near, far] = [0, 1].map(|_| net.add_node(node(PitRole::Edge)));
    let cores = [0, 1].map(|_| net.add_node(node(role(middle))));
    let drops_collided_mark = matches!(middle, Middle::Fingerprints { mark: false, .. });
    let link = LinkOptions { delay_ns: 5_000_000, jitter_ns: 3_000_000, drops_collided_mark, ..LinkOptions::default() };
    for (from, to, prefix) in [(near, cores[0], "/west"), (cores[0], cores[1], "/west"), (near, cores[1], "/south")] {
        let face = net.connect(from, to, link).face_a;
        net.add_route(from, prefix, face, 0);
    }
    let onward = net.connect(cores[1], far, link).face_a;
    let producer = net.attach(far, Producer::of_content(100, 0));
    let mut consumers: Vec<AppId> = Vec::new();
    for prefix in ["/west", "/south"] {
        net.add_route(cores[1], prefix, onward, 0);
        net.add_route(far, prefix, producer.face, 0);
        for consumer in 0..CONSUMERS {
            let asked = (0..names).map(|number| format!("{prefix}/{consumer}/{number}").parse());
            let asked = asked.collect::<Result<Vec<_>, _>>()?;
            let options = ConsumerOptions { window: WINDOW, ..ConsumerOptions::default() };
            consumers.push(net.attach(near, Consumer::new(asked, options)).app);
        }
    }
    let mut entries_max = 0;
    let mut end = RunEnd::TimeReached;
    while end == RunEnd::TimeReached && net.now_ns() < END_NS {
        context.check_interrupt()?;
        end = net.run_for(LOOK_NS);
        let of_core =
            |core| net.engines(core).map(|engine| engine.pit_len() as u64 + engine.fingerprints_len()).sum::<u64>();
        let entries: u64 = cores.map(of_core).into_iter().sum();
        entries_max = entries_max.max(entries);
    }
    ensure!(end == RunEnd::Idle, "the network does not become idle");
    ensure!(net.audit().is_empty(), "{:?}", net.audit());
    let asked: Vec<&Consumer> = consumers.iter().map(|app| net.application::<Consumer>(*app)).collect();
    for consumer in &asked {
        ensure!((consumer.tally().damaged, consumer.tally().unexpected) == (0, 0), "{:?}", consumer.tally());
    }
    let counters = cores.map(|core| net.counters(core));
    Ok(Seen {
        asked: consumers.len() * names,
        answered: asked.iter().map(|consumer| consumer.satisfied()).sum(),
        extra: [near, far].into_iter().map(|edge| net.data_not_wanted(edge)).sum(),
        collided: counters.iter().map(|core| core.fingerprints_collided).sum(),
        core_data: counters.iter().map(|core| core.in_data).sum(),
        entries_max,
    })
}
