//! Two edges and two cores in line (Yuan15 §5.5): does every Interest get its own Data if cores store only
//! fingerprints, and what happens if links remove the mark *collided*?
//!
//! ```text
//!   consumers of /west ─┐
//!                      near edge ── core 1 ── core 2 ── far edge ── producer
//!   consumers of /south ┘    └───────────────────┘
//! ```
//!
//! The near edge requests /west through both cores and /south through the second alone. At the second core, names of
//! both collide. So the first core gets Data of /south that it never requested, and that match a fingerprint of its own
//! /west.

use namewire_engine::{CoreConfig, Counters, DropReason, EngineConfig, PitRole};
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd};
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

const SECOND_NS: u64 = 1_000_000_000;
const CONSUMERS: usize = 3;
const NAMES_PER_CONSUMER: usize = 300;

struct Outcome {
    answered: usize,
    cores: [Counters; 2],
    /// Data that the edges dropped for lack of a request.
    dropped_at_edges: u64,
}

fn core(fingerprint_bits: u8, workers: u8) -> NodeOptions {
    let sizes = FingerprintPitConfig::new(512);
    let fingerprints = FingerprintPitConfig { fingerprint_bits, ..sizes };
    let pit_role = PitRole::Core(CoreConfig { fingerprints, ..CoreConfig::new(512) });
    // Without a Content Store, which would hide losses of the PIT.
    let engine = EngineConfig { pit_role, cs_admit: false, ..EngineConfig::default() };
    NodeOptions { engine, workers, processing_jitter_ns: 5_000, ..NodeOptions::default() }
}

fn attach_consumers(net: &mut Network, edge: NodeId, prefix: &str) -> Vec<namewire_sim::AppId> {
    let names = |consumer| move |number| format!("{prefix}/{consumer}/{number}").parse().expect("a name");
    (0..CONSUMERS)
        .map(|consumer| {
            let names = (0..NAMES_PER_CONSUMER).map(names(consumer)).collect::<Vec<_>>();
            let options = ConsumerOptions { window: 24, ..ConsumerOptions::default() };
            net.attach(edge, Consumer::new(names, options)).app
        })
        .collect()
}

fn run(fingerprint_bits: u8, workers: u8, drops_collided_mark: bool) -> Outcome {
    let mut net = Network::new(3, 0);
    let [near, far] = [0, 1].map(|_| net.add_node(NodeOptions { workers, ..NodeOptions::default() }));
    let cores = [0, 1].map(|_| net.add_node(core(fingerprint_bits, workers)));
    let link = LinkOptions { delay_ns: 5_000_000, jitter_ns: 3_000_000, drops_collided_mark, ..LinkOptions::default() };
    let ways = [(near, cores[0], "/west"), (cores[0], cores[1], "/west"), (near, cores[1], "/south")];
    for (from, to, prefix) in ways {
        let face = net.connect(from, to, link).face_a;
        net.add_route(from, prefix, face, 0);
    }
    let onward = net.connect(cores[1], far, link).face_a;
    let producer = net.attach(far, Producer::of_content(100, 0));
    let mut consumers = Vec::new();
    for prefix in ["/west", "/south"] {
        net.add_route(cores[1], prefix, onward, 0);
        net.add_route(far, prefix, producer.face, 0);
        consumers.extend(attach_consumers(&mut net, near, prefix));
    }
    assert_eq!(net.run_for(600 * SECOND_NS), RunEnd::Idle);
    assert_eq!(net.audit(), Vec::<String>::new());
    let asked: Vec<&Consumer> = consumers.iter().map(|app| net.application::<Consumer>(*app)).collect();
    assert!(asked.iter().all(|consumer| consumer.tally().damaged == 0 && consumer.tally().unexpected == 0));
    Outcome {
        answered: asked.iter().map(|consumer| consumer.satisfied()).sum(),
        cores: cores.map(|core| net.counters(core)),
        dropped_at_edges: net.data_not_wanted(near),
    }
}

const ASKED: usize = 2 * CONSUMERS * NAMES_PER_CONSUMER;

#[test]
fn every_interest_gets_its_own_data_however_many_names_collide() {
    for workers in [1, 2, 4] {
        for fingerprint_bits in [1, 3, 6] {
            let outcome = run(fingerprint_bits, workers, false);
            let what = format!("{fingerprint_bits} bits, {workers} workers");
            assert_eq!(outcome.answered, ASKED, "{what}");
            let [first, second] = outcome.cores;
            assert_eq!((first.by_fingerprint, second.by_fingerprint), (ASKED as u64 / 2, ASKED as u64), "{what}");
            assert!(second.fingerprints_collided > 0 && first.collided_marks_in > 0, "{what}: {second:?}");
            assert!(outcome.dropped_at_edges > 0, "{what}: what collided came too, and edges drop it");
        }
    }
}

#[test]
fn without_the_mark_data_is_lost() {
    for (workers, fingerprint_bits) in [(1, 3), (2, 3), (1, 4)] {
        let outcome = run(fingerprint_bits, workers, true);
        assert_eq!(outcome.cores[0].collided_marks_in, 0);
        let lost = ASKED - outcome.answered;
        assert!(lost > 0, "{fingerprint_bits} bits, {workers} workers: nothing was lost");
    }
}

#[test]
fn with_fingerprints_of_16_bits_hardly_anything_collides() {
    let outcome = run(16, 1, false);
    assert_eq!(outcome.answered, ASKED);
    assert!(outcome.cores[1].fingerprints_collided < 4, "{:?}", outcome.cores[1]);
}

/// Three cores that send every Interest to each other, and at each an edge whose consumer requests the same names. All
/// entries collide and stay, so Data could loop until they expire, in growing numbers.
#[test]
fn data_does_not_loop_in_a_triangle_of_multicast_cores() {
    const NAMES: usize = 100;
    for (fingerprint_bits, transmissions) in [(16, 1), (4, 1), (16, 3)] {
        let mut net = Network::new(5, 0);
        net.set_event_limit(2_000_000);
        let cores = [0, 1, 2].map(|_| net.add_node(core(fingerprint_bits, 1)));
        let wire = LinkOptions { delay_ns: 2_000_000, jitter_ns: 1_000_000, ..LinkOptions::default() };
        for (from, to) in [(0, 1), (1, 2), (2, 0)].map(|(from, to)| (cores[from], cores[to])) {
            let link = net.connect(from, to, wire);
            net.add_route(from, "/p", link.face_a, 10);
            net.add_route(to, "/p", link.face_b, 10);
        }
        let home = net.add_node(NodeOptions::default());
        let down = net.connect(cores[0], home, wire);
        let producer = net.attach(home, Producer::of_content(100, 0));
        net.add_route(cores[0], "/p", down.face_a, 0);
        net.add_route(home, "/p", producer.face, 0);
        let consumers = cores.map(|core| {
            net.set_strategy(core, "/", "multicast");
            let edge = net.add_node(NodeOptions::default());
            let up = net.connect(edge, core, wire);
            net.add_route(edge, "/p", up.face_a, 0);
            let names = (0..NAMES).map(|number| format!("/p/{number}").parse().expect("a name"));
            let options = ConsumerOptions { window: 8, transmissions, retransmit_after_ms: 50, ..Default::default() };
            net.attach(edge, Consumer::new(names, options)).app
        });
        assert_eq!(net.run_for(120 * SECOND_NS), RunEnd::Idle);
        assert_eq!(net.audit(), Vec::<String>::new());
        for app in consumers {
            assert_eq!(net.application::<Consumer>(app).satisfied(), NAMES);
        }
        for counters in cores.map(|core| net.counters(core)) {
            let (sent, interests) = (counters.out_data, counters.in_interests);
            // At most to three ports, for each Interest and, if names collide, again for another name's Data.
            assert!(sent <= 6 * interests, "{fingerprint_bits} bits: {sent} Data for {interests} Interests");
            assert!(counters.dropped(DropReason::DataSentAlready) > 0, "nothing came twice");
        }
    }
}
