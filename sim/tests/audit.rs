//! Does the audit hold if the Content Store serves no Data, and does it still notice missing packets?
//!
//! The story: the audit counted new Interests by the misses of the Content Store. A store that serves no Data is never
//! searched and has no misses. The audit then reported "0 against 1000" in a sound network. With a full PIT or a core
//! role it subtracted from zero misses, overflowed and panicked.

use namewire_engine::{CoreConfig, DropReason, EngineConfig, PitRole};
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd};

const SECOND_NS: u64 = 1_000_000_000;
const NAMES: usize = 1000;

/// Consumer – node – node – producer, with two consumers; the stores of both nodes serve no Data.
fn pair(engine: EngineConfig, producer: Producer) -> (Network, [NodeId; 2]) {
    let mut net = Network::new(5, 0);
    let node = NodeOptions { engine: EngineConfig { cs_serve: false, ..engine }, ..NodeOptions::default() };
    let nodes = [0, 1].map(|_| net.add_node(node.clone()));
    let link = net.connect(nodes[0], nodes[1], LinkOptions::default());
    net.add_route(nodes[0], "/p", link.face_a, 0);
    let producer = net.attach(nodes[1], producer);
    net.add_route(nodes[1], "/p", producer.face, 0);
    // The second consumer requests what the first has fetched.
    for _ in 0..2 {
        let names = (0..NAMES).map(|number| format!("/p/{number}").parse().expect("a name"));
        net.attach(nodes[0], Consumer::new(names, ConsumerOptions { window: 64, ..Default::default() }));
        assert_eq!(net.run_for(600 * SECOND_NS), RunEnd::Idle);
    }
    (net, nodes)
}

#[test]
fn the_audit_holds_with_a_store_that_serves_no_data() {
    let (net, nodes) = pair(EngineConfig::default(), Producer::of_content(100, 10_000));
    for node in nodes {
        let counters = net.counters(node);
        assert_eq!((counters.cs_hits, counters.cs_misses), (0, 0));
        assert_eq!((counters.cs_not_asked, counters.satisfied), (2 * NAMES as u64, 2 * NAMES as u64));
    }
    assert_eq!(net.audit(), Vec::<String>::new());
}

#[test]
fn the_audit_holds_with_a_full_pit() {
    let engine = EngineConfig { pit_capacity_entries: 8, ..EngineConfig::default() };
    let (net, nodes) = pair(engine, Producer::of_content(100, 10_000).processing_ns(SECOND_NS));
    let counters = net.counters(nodes[0]);
    let refused = [DropReason::PitFull, DropReason::FaceShareUsed, DropReason::PitShareUsed];
    assert!(refused.into_iter().any(|reason| counters.dropped(reason) > 0), "{counters:?}");
    assert_eq!(net.audit(), Vec::<String>::new());
}

#[test]
fn the_audit_holds_with_fingerprints_in_place_of_names() {
    let pit_role = PitRole::Core(CoreConfig::new(4096));
    let (net, nodes) = pair(EngineConfig { pit_role, ..EngineConfig::default() }, Producer::of_content(100, 10_000));
    assert!(net.counters(nodes[1]).by_fingerprint > 0, "{:?}", net.counters(nodes[1]));
    assert_eq!(net.audit(), Vec::<String>::new());
}
