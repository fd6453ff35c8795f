//! Core and edge (Yuan15 §4.2): a core router with a lossy FIB, between edge routers with exact FIBs.

use namewire_designs::fib::catalogue::FibDesign;
use namewire_engine::DropReason;
use namewire_packet::NameBuf;
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Outcome, Producer, RunEnd};

const SECOND_NS: u64 = 1_000_000_000;
/// Sites; each edge router serves every other one.
const SITES: usize = 400;
/// Names without a route, except for the default route of the consumer's edge, which leads to the core.
const NAMES_WITHOUT_ROUTE: usize = 300;

fn name(uri: String) -> NameBuf {
    uri.parse().expect("a name")
}

/// Prefixes with routes, from 2 to 7 components. Every fourth site has a longer prefix, which leads to the other edge.
fn route(site: usize) -> (String, usize) {
    let deep = if site % 4 == 3 { format!("/{}", site - 1) } else { format!("/{site}") };
    let below = if site % 4 == 3 { "/elsewhere/far/down".to_owned() } else { "/a".repeat(site % 3) };
    (format!("/site{deep}{below}"), site % 2)
}

#[test]
fn a_lossy_core_loses_no_name_with_a_route_and_edges_drop_the_others() {
    let lossy: Vec<FibDesign> = FibDesign::ALL.into_iter().filter(|design| !design.is_lossless()).collect();
    assert!(!lossy.is_empty());
    let taken: Vec<u64> = lossy.into_iter().map(names_without_route_at_an_edge).collect();
    assert!(taken.iter().any(|&taken| taken > 0), "no core was lossy: {taken:?}");
}

fn names_without_route_at_an_edge(design: FibDesign) -> u64 {
    let mut net = Network::new(7, 0);
    let near = net.add_node(NodeOptions::default());
    let core = net.add_node(NodeOptions { fib_design: design, workers: 2, ..NodeOptions::default() });
    let far = [0, 1].map(|_| net.add_node(NodeOptions::default()));
    let uplink = net.connect(near, core, LinkOptions::default());
    net.add_route(near, "/", uplink.face_a, 0);
    let producers = far.map(|edge| {
        let link = net.connect(core, edge, LinkOptions::default());
        (link.face_a, net.attach(edge, Producer::of_content(100, 0)))
    });
    for site in 0..SITES {
        let (prefix, side) = route(site);
        net.add_route(core, &prefix, producers[side].0, 0);
        net.add_route(far[side], &prefix, producers[side].1.face, 0);
    }
    let routed = (0..SITES).map(|site| name(format!("{}/x/{site}", route(site).0)));
    let without_route = (0..NAMES_WITHOUT_ROUTE).map(|number| name(format!("/nowhere/{number}/x")));
    let options = ConsumerOptions { lifetime_ms: 4000, window: 32, ..ConsumerOptions::default() };
    let consumer = net.attach(near, Consumer::new(routed.chain(without_route), options));
    assert_eq!(net.run_for(600 * SECOND_NS), RunEnd::Idle);

    let asked = net.application::<Consumer>(consumer.app);
    for (name, outcome) in asked.outcomes() {
        let has_route = name.to_string().starts_with("/site");
        let is_answered = matches!(outcome, Outcome::Satisfied { .. });
        assert_eq!(is_answered, has_route, "{}: {name} {outcome:?}", design.name());
    }
    assert_eq!(asked.satisfied(), SITES, "{}", design.name());
    let served: u64 =
        producers.iter().map(|(_, producer)| net.application::<Producer>(producer.app).tally().interests).sum();
    assert_eq!(served, SITES as u64, "{}: producers get what they have, once", design.name());
    let no_route = |node| net.counters(node).dropped(DropReason::NoRoute);
    let [at_core, at_edges] = [no_route(core), far.into_iter().map(no_route).sum()];
    assert_eq!(
        at_core + at_edges,
        NAMES_WITHOUT_ROUTE as u64,
        "{}: every name without a route was dropped with a reason",
        design.name()
    );
    assert_eq!(net.audit(), Vec::<String>::new());
    at_edges
}
