//! Graphs of routers in simulated time: with loss, delays, cuts and healed cuts.

use super::*;
use crate::locator::HERE;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TIMES: TreeTimes = TreeTimes { hello_ms: 1_000, neighbour_dead_ms: 3_500, root_dead_ms: 8_000, settle_ms: 500 };

/// Routers 0 to n − 1; the face of router a to router b has the number 1000 + b.
struct Graph {
    routers: Vec<TreeProtocol>,
    /// Links, each in both directions.
    links: BTreeSet<(usize, usize)>,
    /// On their way: when they arrive, from, to.
    hellos: Vec<(u64, usize, usize, TreeHello)>,
    now_ms: u64,
    random: fastrand::Rng,
    loss_percent: u8,
    /// The router of each label, by epoch.
    labels: BTreeMap<(u32, Vec<u8>), usize>,
}

fn face(router: usize) -> FaceId {
    FaceId(1000 + router as u64)
}

impl Graph {
    fn new(routers: usize, links: &[(usize, usize)], seed: u64, loss_percent: u8) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        // Numbers in a random order, so that the root is anywhere.
        let mut numbers: Vec<u64> = (0..routers as u64).map(|number| number * 10).collect();
        random.shuffle(&mut numbers);
        let router = |number: &u64| TreeProtocol::new(1, *number, u32::MAX - 5, TIMES, seed ^ number, 0);
        let links = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(a, b)| a != b).collect();
        Graph {
            routers: numbers.iter().map(router).collect(),
            links,
            hellos: Vec::new(),
            now_ms: 0,
            random,
            loss_percent,
            labels: BTreeMap::new(),
        }
    }

    /// Lets time pass, and checks after each step that parents form no circle.
    fn run_for(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while self.now_ms < end {
            self.now_ms += 50;
            let (now_ms, hellos) = (self.now_ms, std::mem::take(&mut self.hellos));
            for (at_ms, from, to, hello) in hellos {
                if at_ms > now_ms {
                    self.hellos.push((at_ms, from, to, hello));
                } else if self.links.contains(&(from, to)) {
                    self.routers[to].heard(face(from), hello, now_ms);
                }
            }
            for from in 0..self.routers.len() {
                if !self.routers[from].run(now_ms) {
                    continue;
                }
                for (_, to) in self.links.range((from, 0)..(from + 1, 0)) {
                    if self.random.u8(0..100) >= self.loss_percent {
                        let hello = self.routers[from].hello(face(*to));
                        self.hellos.push((now_ms + self.random.u64(1..200), from, *to, hello));
                    }
                }
            }
            self.no_circles();
            self.labels_are_final();
        }
    }

    /// A label of an epoch never stands for another router. Routers that forward by it would disagree.
    fn labels_are_final(&mut self) {
        for (number, router) in self.routers.iter().enumerate() {
            let Some((epoch, label)) = router.label() else { continue };
            let owner = self.labels.entry((epoch, label.to_bytes().to_vec())).or_insert(number);
            assert_eq!(*owner, number, "label {label:?} of epoch {epoch} at {} ms", self.now_ms);
        }
    }

    fn cut(&mut self, a: usize, b: usize, is_noticed: bool) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
        if is_noticed {
            self.routers[a].lost(face(b), self.now_ms);
            self.routers[b].lost(face(a), self.now_ms);
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        self.links.extend([(a, b), (b, a)]);
    }

    fn parent(&self, router: usize) -> Option<usize> {
        self.routers[router].parent().map(|face| face.0 as usize - 1000)
    }

    fn no_circles(&self) {
        for start in 0..self.routers.len() {
            let mut at = start;
            for _ in 0..=self.routers.len() {
                let Some(parent) = self.parent(at) else { break };
                if self.routers[parent].root() != self.routers[at].root() {
                    break;
                }
                at = parent;
                assert_ne!(at, start, "a circle of parents at {} ms", self.now_ms);
            }
        }
    }

    /// The routers that are connected with this one.
    fn component(&self, router: usize) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::from([router]), vec![router]);
        while let Some(at) = open.pop() {
            for (_, next) in self.links.range((at, 0)..(at + 1, 0)) {
                if found.insert(*next) {
                    open.push(*next);
                }
            }
        }
        found
    }

    /// All connected routers have one root, one epoch, and locators that lead from each to each.
    fn check_converged(&self) {
        for router in 0..self.routers.len() {
            let component = self.component(router);
            let lowest = component.iter().map(|other| self.routers[*other].me).min().unwrap();
            assert_eq!(self.routers[router].root(), lowest, "the root of {router}");
            let (epoch, _) = self.routers[router].label().expect("a label");
            for destination in component {
                let (other_epoch, label) = self.routers[destination].label().expect("a label");
                assert_eq!(epoch, other_epoch, "{router} and {destination}");
                let mut at = router;
                for _ in 0..=self.routers.len() {
                    let table = self.routers[at].table().expect("labelled");
                    match table.state.forward(label) {
                        HERE => break,
                        interface => at = table.faces[interface as usize - 1].0 as usize - 1000,
                    }
                }
                assert_eq!(at, destination, "from {router}");
            }
        }
    }
}

#[test]
fn two_routers_agree_and_part() {
    let mut graph = Graph::new(2, &[(0, 1)], 1, 0);
    graph.run_for(3_000);
    graph.check_converged();
    let epoch = graph.routers[0].label().unwrap().0;
    graph.run_for(20_000);
    assert_eq!(graph.routers[0].label().unwrap().0, epoch, "no epoch without a change");
    for router in &mut graph.routers {
        let is_due = router.run(graph.now_ms);
        assert!(is_due || router.deadline_ms() > graph.now_ms, "a caller that sleeps until the deadline does not spin");
    }
    graph.cut(0, 1, true);
    graph.run_for(2_000);
    graph.check_converged();
}

#[test]
fn a_root_that_falls_silent_is_replaced() {
    // A ring: after the root's links are cut unnoticed, the others still hear of it from each other.
    let mut graph = Graph::new(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)], 3, 0);
    graph.run_for(5_000);
    graph.check_converged();
    let root = (0..6).find(|router| graph.parent(*router).is_none()).unwrap();
    graph.cut(root, (root + 1) % 6, false);
    graph.cut(root, (root + 5) % 6, false);
    graph.run_for(15_000);
    graph.check_converged();
    graph.join(root, (root + 1) % 6);
    graph.run_for(10_000);
    graph.check_converged();
}

/// A child of one router becomes a child of another, and the root counts as many routers beyond each child as before:
/// the two exchange their labels, unless the root begins an epoch.
#[test]
fn a_router_that_moves_below_the_root_begins_an_epoch() {
    for seed in 0..20 {
        // The root leads to 1; 1 to 2 and 3; 4 is below 2 and may go below 3.
        let mut graph = Graph::new(6, &[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5)], seed, 0);
        graph.run_for(5_000);
        for _ in 0..4 {
            let (parent, child) = [(2, 4), (3, 4)].into_iter().find(|link| graph.links.contains(link)).unwrap();
            let other = 5 - parent;
            graph.join(other, child);
            graph.run_for(3_000);
            graph.cut(parent, child, true);
            graph.run_for(5_000);
            graph.check_converged();
        }
    }
}

#[test]
fn a_router_that_starts_again_finds_its_place() {
    let mut graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)], 5, 0);
    graph.run_for(5_000);
    for router in 0..4 {
        let me = graph.routers[router].me;
        graph.routers[router] = {
            let sequence = (u32::MAX - 5).wrapping_add(1 + graph.now_ms as u32 / 1_000);
            TreeProtocol::new(1, me, sequence, TIMES, 1_000 + me, graph.now_ms)
        };
        graph.run_for(20_000);
        graph.check_converged();
    }
}

#[test]
fn a_neighbour_that_lies_breaks_nothing() {
    let mut router = TreeProtocol::new(1, 10, 0, TIMES, 1, 0);
    let mut random = fastrand::Rng::with_seed(9);
    for now_ms in 0..20_000 {
        let shape = *random.choice(&[0, router.shape()]).unwrap();
        let label = WideLabel::new(random.u32(..), 1, 2).ok();
        let hello = TreeHello {
            tree: random.u16(0..2),
            sender: random.u64(0..30),
            number: random.u64(..),
            root: random.u64(0..30),
            sequence: random.u32(..),
            distance: random.u16(..),
            parent: random.u64(9..12),
            subtree: random.u32(..),
            shape: random.u64(0..3),
            label: label.map(|label| ChildLabel { epoch: 1, label, shape }),
        };
        router.heard(face(random.usize(0..5)), hello, now_ms);
        let _ = (router.run(now_ms), router.hello(face(1)), router.table());
    }
    assert!(router.told.len() <= TOLD_MAX);
}

/// A connected graph: a random tree and some links more.
fn graph() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (2..14_usize).prop_flat_map(|routers| {
        let tree: Vec<_> = (1..routers).map(|router| (0..router).prop_map(move |other| (router, other))).collect();
        let more = proptest::collection::vec((0..routers, 0..routers), 0..8);
        (tree, more).prop_map(move |(tree, more)| (routers, [tree, more].concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_graph_converges_through_loss_cuts_and_heals(
        (routers, links) in graph(), seed: u64, loss in 0..30_u8, cuts in proptest::collection::vec((any::<proptest::sample::Index>(), any::<bool>()), 0..4),
    ) {
        let mut graph = Graph::new(routers, &links, seed, loss);
        graph.run_for(30_000);
        let mut removed = Vec::new();
        for (index, is_noticed) in cuts {
            let (a, b) = *index.get(&links);
            graph.cut(a, b, is_noticed);
            removed.push((a, b));
            graph.run_for(3_000);
        }
        graph.loss_percent = 0;
        graph.run_for(60_000);
        graph.check_converged();
        removed.into_iter().filter(|(a, b)| a != b).for_each(|(a, b)| graph.join(a, b));
        graph.run_for(60_000);
        graph.check_converged();
    }
}
