//! Forwarding with every FIB design: does a router send the same packets as a router with the default design?
//!
//! The story: the FIB computation makes entries for strategy choices without routes. A lossy design kept them like
//! routes, so it mistook names without a route for names under `/ndn/broadcast`, a built-in choice of multicast. If a
//! default route had several next hops, 200 of 200 such Interests went to all of them, by multicast; without any route,
//! 300 of 300 got no Nack. An oracle that only compares next hops does not detect this.
//!
//! One management, given real commands, changes the FIBs of all routers. Each Interest goes to all of them. The sent
//! packets (Interests and Nacks) must be the same, except where a lossy design may err: an Interest for a name without
//! a route may go to next hops of another route, by the strategy that was chosen for its name.
//!
//! `NAMEWIRE_FIB_INTERESTS=1000000 cargo test --release -p namewire-sim --test networks fib_forwarding::` sends more
//! Interests.

use crate::from_environment;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::string_differentiation::DefaultRoute;
use namewire_engine::{EngineConfig, FaceAttributes, FaceScope};
use namewire_management::{FibChange, ManagementConfig, NextHop};
use namewire_packet::nfd::{ControlParameters, route_flags};
use namewire_packet::{FaceId, Interest, NackReason, Name, NameBuf};
use namewire_tables::{FibConfig, FibMatch, HashKey, NameHashes};
use namewire_testbed::management::{Bench, change_fib, for_prefix, udp_face};
use namewire_testbed::{A, B, C, D, Forwarder, L, Packet, Sent, interest, uri};
use std::collections::BTreeMap;

const KEY_SEED: u64 = 11;
/// Faces with routes; Interests also come from there.
const UPSTREAMS: [FaceId; 4] = [A, B, C, D];
/// Interests between two changes of routes. Nothing expires meanwhile.
const ROUND: usize = 192;
const BATCH: usize = 64;

/// A router with one design.
struct Node {
    design: FibDesign,
    default_route: Option<DefaultRoute>,
    forwarder: Forwarder,
}

impl Node {
    fn new(design: FibDesign, default_route: Option<DefaultRoute>) -> Self {
        let key = HashKey::from_seed(KEY_SEED);
        let options = FibDesignOptions { default_route, ..FibDesignOptions::default() };
        let mut forwarder = Forwarder::default();
        forwarder.fib = design.fib(&options, FibConfig::new(4096), key).expect("memory for a small FIB");
        forwarder.faces.insert(FaceId::INTERNAL, FaceAttributes::new(FaceScope::Local, 0, false));
        Node { design, default_route, forwarder }
    }

    /// Every way to treat the default route, if there are several.
    fn all() -> Vec<Node> {
        let ways = [None, Some(DefaultRoute::Speculative), Some(DefaultRoute::Followed)];
        let has = |design: FibDesign, default_route| {
            let options = FibDesignOptions { default_route, ..FibDesignOptions::default() };
            design.check(&options).is_ok()
        };
        let of = |design| ways.into_iter().filter(move |way| has(design, *way)).map(move |way| Node::new(design, way));
        FibDesign::ALL.into_iter().flat_map(of).collect()
    }

    fn lossy() -> Vec<Node> {
        Node::all().into_iter().filter(|node| !node.design.is_lossless()).collect()
    }

    fn label(&self) -> String {
        let way = self.default_route.map_or("", |way| way.name());
        format!("{} {way}", self.design.name())
    }

    /// Takes over what management decided since the last call.
    fn follow(&mut self, bench: &Bench, changes: &[FibChange]) {
        for change in changes {
            change_fib(&mut self.forwarder.fib, change).unwrap_or_else(|refusal| panic!("{}: {refusal}", self.label()));
        }
        self.forwarder.fib.publish();
        self.forwarder.strategies = bench.router.strategies().clone();
        let key = HashKey::from_seed(KEY_SEED);
        self.forwarder.restart(EngineConfig::default(), key, 8).expect("memory for the tables");
    }

    /// What leaves, by the name of the Interest.
    fn ask(&mut self, batch: &[(FaceId, Packet)]) -> BTreeMap<NameBuf, Vec<String>> {
        let mut lines: BTreeMap<NameBuf, Vec<String>> = BTreeMap::new();
        for sent in self.forwarder.receive_batch(batch) {
            lines.entry(name_of(&sent)).or_default().push(sent.line());
        }
        lines.values_mut().for_each(|lines| lines.sort_unstable());
        lines
    }

    fn find(&self, name: Name<'_>) -> Option<FibMatch<'_>> {
        let mut hashes = NameHashes::default();
        hashes.compute(self.forwarder.fib.key(), name.value()).expect("a short name");
        self.forwarder.fib.view().longest_prefix_match(name.value(), &hashes)
    }
}

fn name_of(sent: &Sent) -> NameBuf {
    Interest::parse(sent.packet()).expect("nothing but Interests and Nacks").name().to_buf()
}

/// Management, and its entries as a plain list.
struct Routes {
    bench: Bench,
    entries: BTreeMap<NameBuf, (Vec<NextHop>, bool)>,
}

impl Routes {
    fn new() -> (Self, Vec<FibChange>) {
        let mut routes = Routes { bench: Bench::without_faces(ManagementConfig::default()), entries: BTreeMap::new() };
        let first = routes.note_changes();
        for face in UPSTREAMS {
            routes.bench.add_face(namewire_management::FaceProperties { face, ..udp_face() });
        }
        routes.bench.add_face(namewire_testbed::management::local_face());
        (routes, first)
    }

    fn command(&mut self, verb: &str, parameters: &ControlParameters) -> Vec<FibChange> {
        let response = self.bench.command(verb, parameters);
        assert_eq!(response.code, 200, "{verb}: {response:?}");
        self.note_changes()
    }

    fn note_changes(&mut self) -> Vec<FibChange> {
        let changes = self.bench.fib_changes();
        for change in &changes {
            match change.clone() {
                FibChange::Insert { name, next_hops, hidden, .. } => _ = self.entries.insert(name, (next_hops, hidden)),
                FibChange::Remove { name } => _ = self.entries.remove(&name),
            }
        }
        changes
    }

    /// Whether a lossy design must be right about the name: it has a route, other than a default route that is not
    /// kept exactly.
    fn is_covered(&self, name: Name<'_>, default_route: Option<DefaultRoute>) -> bool {
        let covers = |prefix: &NameBuf| prefix.as_name().is_prefix_of(&name);
        let routes = self.entries.iter().filter(|(prefix, (_, hidden))| !hidden && covers(prefix));
        let longest = routes.map(|(prefix, _)| prefix.len()).max();
        longest.is_some_and(|components| components > 0 || default_route.is_none())
    }

    fn has_next_hops(&self, found: FibMatch<'_>) -> bool {
        let same = |hops: &[NextHop]| {
            hops.iter().map(|hop| (hop.face.0, hop.cost)).eq(found.nexthops.iter().map(|hop| (hop.face, hop.cost)))
        };
        found.nexthops.is_empty() || self.entries.values().any(|(hops, _)| same(hops))
    }
}

/// A prefix for a route or a strategy. Many are prefixes of others.
fn prefix(rng: &mut fastrand::Rng) -> NameBuf {
    let depth = rng.usize(0..5);
    if depth == 0 && rng.u32(..4) > 0 {
        return prefix(rng);
    }
    let mut name = NameBuf::new();
    for _ in 0..depth {
        name.push_generic(["a", "b", "c", "dd", "ndn"][rng.usize(..5)].as_bytes());
    }
    name
}

/// Names under prefixes, under strategy choices without routes, and others.
fn asked(rng: &mut fastrand::Rng, number: usize) -> NameBuf {
    let mut name = match rng.u32(..10) {
        0 => uri("/ndn/broadcast"),
        1 => uri("/localhost/nfd"),
        2 => uri("/localhost"),
        3 | 4 => uri(&format!("/elsewhere/{}", rng.u64(..))),
        _ => prefix(rng),
    };
    (0..rng.usize(0..3)).for_each(|_| {
        name.push_generic(["a", "b", "x"][rng.usize(..3)].as_bytes());
    });
    name.push_generic(format!("{number}").as_bytes());
    name
}

fn change(rng: &mut fastrand::Rng, routes: &mut Routes) -> Vec<FibChange> {
    let of = ControlParameters { name: Some(prefix(rng)), ..ControlParameters::default() };
    let face_id = Some(UPSTREAMS[rng.usize(..4)]);
    let strategy = ["best-route", "multicast"][rng.usize(..2)];
    match rng.u32(..10) {
        0..=5 => {
            let flags = Some([0, route_flags::CHILD_INHERIT, route_flags::CAPTURE][rng.usize(..3)]);
            routes.command("rib/register", &ControlParameters { face_id, flags, cost: Some(rng.u64(..5)), ..of })
        }
        6 => {
            let all = UPSTREAMS.map(|face| ControlParameters { face_id: Some(face), ..of.clone() });
            all.iter().flat_map(|of| routes.command("rib/unregister", of)).collect()
        }
        7 | 8 => {
            let strategy = Some(uri(&format!("/localhost/nfd/strategy/{strategy}")));
            routes.command("strategy-choice/set", &ControlParameters { strategy, ..of })
        }
        _ if of.name.as_ref().is_some_and(|name| !name.is_empty()) => routes.command("strategy-choice/unset", &of),
        _ => Vec::new(),
    }
}

/// What the oracle saw.
#[derive(Debug, Default)]
struct Seen {
    interests: usize,
    nacks: usize,
    multicasts: usize,
    /// Interests that a lossy design sent along another route.
    mistaken: usize,
}

#[test]
fn every_design_forwards_as_the_default_does_but_for_names_that_a_lossy_one_mistakes() {
    let interests = from_environment("NAMEWIRE_FIB_INTERESTS", 100_000) as usize;
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut routes, first) = Routes::new();
    let mut exact = Node::new(FibDesign::default(), None);
    let mut nodes = Node::all();
    exact.follow(&routes.bench, &first);
    nodes.iter_mut().for_each(|node| node.follow(&routes.bench, &first));
    let (mut seen, mut asked_so_far) = (Seen::default(), 0);
    while seen.interests < interests {
        let changes: Vec<FibChange> = (0..rng.usize(5..40)).flat_map(|_| change(&mut rng, &mut routes)).collect();
        exact.follow(&routes.bench, &changes);
        nodes.iter_mut().for_each(|node| node.follow(&routes.bench, &changes));
        for _ in 0..ROUND / BATCH {
            let batch: Vec<(FaceId, Packet)> = (0..BATCH)
                .map(|_| {
                    asked_so_far += 1;
                    let name = asked(&mut rng, asked_so_far).to_string();
                    ([A, B, L][rng.usize(..3)], interest(&name, asked_so_far as u32))
                })
                .collect();
            let wanted = exact.ask(&batch);
            for node in &mut nodes {
                let given = node.ask(&batch);
                compare(&routes, &exact, node, &batch, (&wanted, &given), &mut seen);
            }
        }
    }
    println!("{seen:?}");
    assert!(seen.nacks > interests / 50 && seen.multicasts > interests / 100, "{seen:?}");
    assert!(seen.mistaken > 0, "no design was lossy: {seen:?}");
}

type Lines = BTreeMap<NameBuf, Vec<String>>;

fn compare(
    routes: &Routes,
    exact: &Node,
    node: &Node,
    batch: &[(FaceId, Packet)],
    (wanted, given): (&Lines, &Lines),
    seen: &mut Seen,
) {
    for (face, packet) in batch {
        let read = Interest::parse(&packet.wire).expect("it was built here");
        let (name, label) = (read.name(), node.label());
        let [want, give] = [wanted, given].map(|lines| lines.get(&name.to_buf()).map_or(&[][..], Vec::as_slice));
        let [right, found] = [exact, node].map(|node| node.find(name));
        seen.interests += 1;
        seen.nacks += usize::from(want.iter().any(|line| line.contains("Nack")));
        seen.multicasts += usize::from(want.len() > 1);
        let strategies = [right, found].map(|found| found.map(|found| found.strategy));
        assert_eq!(strategies[0], strategies[1], "{label}: the strategy of {name}");
        let hops = [right, found].map(|found| found.map_or(&[][..], |found| found.nexthops));
        if hops[0] == hops[1] {
            assert_eq!(want, give, "{label}: {name} from {face}");
            continue;
        }
        let must_be_right = node.design.is_lossless() || routes.is_covered(name, node.default_route);
        assert!(!must_be_right, "{label}: next hops of {name}: {hops:?}");
        let found = found.expect("it has next hops");
        assert!(routes.has_next_hops(found), "{label}: {name} goes where no route leads: {found:?}");
        seen.mistaken += 1;
    }
}

/// The Interests for names without a route, from a face without routes.
fn strangers(number: usize) -> Vec<(FaceId, Packet)> {
    (0..number).map(|n| (L, interest(&format!("/stranger/{n}/x"), n as u32 + 1))).collect()
}

#[test]
fn names_without_a_route_get_a_nack_from_every_lossy_design_that_has_no_routes() {
    let (routes, first) = Routes::new();
    for mut node in Node::lossy() {
        node.follow(&routes.bench, &first);
        for batch in strangers(300).chunks(BATCH) {
            for (name, lines) in node.ask(batch) {
                let nack = format!("Nack {}", NackReason::NoRoute);
                assert!(lines.len() == 1 && lines[0].contains(&nack), "{}: {name}: {lines:?}", node.label());
            }
        }
        assert_eq!(node.forwarder.counters().out_nacks, 300, "{}", node.label());
    }
}

#[test]
fn the_default_route_keeps_its_strategy_in_every_lossy_design() {
    let (mut routes, first) = Routes::new();
    let mut changes = first;
    for (face, cost) in [(A, 5), (B, 7), (C, 9)] {
        let parameters = ControlParameters { face_id: Some(face), cost: Some(cost), ..for_prefix("/") };
        changes.extend(routes.command("rib/register", &parameters));
    }
    for mut node in Node::lossy() {
        node.follow(&routes.bench, &changes);
        for batch in strangers(200).chunks(BATCH) {
            for (name, lines) in node.ask(batch) {
                assert!(lines.len() == 1 && lines[0].starts_with("A Interest"), "{}: {name}: {lines:?}", node.label());
            }
        }
        assert_eq!(node.forwarder.counters().out_interests, 200, "{}", node.label());
    }
}
