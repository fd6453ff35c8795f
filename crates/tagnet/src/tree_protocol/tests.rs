//! Graphs of routers in simulated time: with loss, delays, cuts and healed cuts.

use super::*;
use crate::locator::HERE;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TIMES: TreeTimes = TreeTimes { hello_ms: 1_000, neighbour_dead_ms: 3_500, root_dead_ms: 5_000, settle_ms: 500 };
/// The face of a forger that is a neighbour of its own.
const FORGER: FaceId = FaceId(9_999);

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
    /// Forged numbers are around: parents may form a circle for a moment.
    is_forged: bool,
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
        let mut numbers: Vec<u64> = (1..=routers as u64).map(|number| number * 10).collect();
        random.shuffle(&mut numbers);
        let router = |number: &u64| TreeProtocol::new(1, *number, TIMES, seed ^ number, 0);
        let links = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(a, b)| a != b).collect();
        Graph {
            routers: numbers.iter().map(router).collect(),
            links,
            hellos: Vec::new(),
            now_ms: 0,
            random,
            loss_percent,
            is_forged: false,
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
                        let hello = self.routers[from].hello(face(*to), now_ms);
                        self.hellos.push((now_ms + self.random.u64(1..200), from, *to, hello));
                    }
                }
            }
            if !self.is_forged {
                self.no_circles();
            }
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

    /// The victim hears a forged hello of a root by one of its faces.
    fn forge(&mut self, victim: usize, from: FaceId, root: u64, sequence: u32) {
        let sender = if from == FORGER { 7 } else { self.routers[from.0 as usize - 1_000].me };
        let hello = forged_hello(sender, u64::MAX - self.random.u64(0..1 << 40), root, sequence);
        self.routers[victim].heard(from, hello, self.now_ms);
    }

    /// The victim hears of a child that its subtree has more routers than there can be, and this shape.
    fn claim_routers(&mut self, victim: usize, liar: u64, shape: u64) {
        let router = &mut self.routers[victim];
        let hello = TreeHello {
            parent: router.me,
            subtree: u32::MAX,
            shape,
            ..forged_hello(900 + liar, self.now_ms, router.root(), 0)
        };
        router.heard(FaceId(FORGER.0 + liar), hello, self.now_ms);
    }

    fn root_epoch(&self) -> Option<u32> {
        self.routers.iter().find(|router| router.parent.is_none())?.label().map(|(epoch, _)| epoch)
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
        self.routers[router].parent().filter(|face| *face != FORGER).map(|face| face.0 as usize - 1000)
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

/// A router's neighbours have its place back a second or two later, though its sequence numbers begin again: they say
/// which number they were told.
#[test]
fn a_router_that_starts_again_finds_its_place() {
    for (silent_ms, back_ms) in [(0, 3_000), (2_000, 3_000), (7_000, 5_000), (60_000, 3_000)] {
        let mut graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)], 5, 0);
        graph.run_for(200_000);
        for router in 0..4 {
            let neighbours: Vec<usize> = (0..4).filter(|other| graph.links.contains(&(router, *other))).collect();
            neighbours.iter().for_each(|other| graph.cut(router, *other, false));
            graph.run_for(silent_ms);
            let me = graph.routers[router].me;
            graph.routers[router] = TreeProtocol::new(1, me, TIMES, 1_000 + me + silent_ms, graph.now_ms);
            neighbours.iter().for_each(|other| graph.join(router, *other));
            graph.run_for(back_ms);
            graph.check_converged();
            graph.run_for(10_000);
        }
    }
}

/// The story: four seconds of hellos with the root's number and a sequence number 2^31 ahead isolated a router until it
/// started again. Wherever the forger is, whatever it says: some seconds after its end the tree is as before.
#[test]
fn forged_sequence_numbers_isolate_no_router_for_long() {
    let jumps =
        [1, 2, 31, 32, 63, 64, 65, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 64, u32::MAX];
    for (place, jump) in jumps.into_iter().enumerate() {
        // A ring with a tail: 0-1-2-3-0, 2-4-5.
        let links = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5)];
        let mut graph = Graph::new(6, &links, place as u64, 0);
        graph.is_forged = true;
        graph.run_for(100_000);
        graph.check_converged();
        let root = graph.routers[0].root();
        for victim in 0..6 {
            let linked: Vec<FaceId> =
                (0..6).filter(|other| graph.links.contains(&(victim, *other))).map(face).collect();
            for from in linked.into_iter().chain([FORGER]) {
                for is_rising in [false, true] {
                    let first = graph.routers[victim].claim.sequence.wrapping_add(jump);
                    for number in 0..16 {
                        let sequence = first.wrapping_add(if is_rising { number * jump.min(40) } else { 0 });
                        graph.forge(victim, from, root, sequence);
                        graph.run_for(250);
                    }
                    graph.run_for(10_000);
                    graph.check_converged();
                }
            }
        }
        assert!(graph.routers.iter().any(|router| router.jumps_refused > 0) || jump <= 64 || jump >= u32::MAX - 64);
    }
}

/// A root that does not exist is below all others: it takes the whole tree, and gives it back.
#[test]
fn a_forged_root_is_forgotten() {
    let mut graph = Graph::new(6, &[(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5)], 4, 0);
    graph.run_for(5_000);
    for victim in 0..6 {
        for number in 0..100 {
            graph.forge(victim, FORGER, 1, number * 3);
            graph.run_for(100);
        }
        assert!(graph.routers.iter().all(|router| router.root() == 1));
        graph.run_for(9_000);
        graph.check_converged();
    }
}

/// The story: a child that claimed 4,294,967,295 nodes ended the labelling of the whole tree.
#[test]
fn children_that_claim_too_much_do_not_stop_labelling() {
    for (liars, is_restless) in [(1, false), (2, false), (3, false), (1, true), (3, true)] {
        let mut graph = Graph::new(6, &[(0, 1), (1, 2), (2, 3), (2, 4), (4, 5)], liars, 0);
        graph.run_for(5_000);
        for victim in 0..6 {
            let epoch = graph.root_epoch();
            for step in 0..60 {
                for liar in 0..liars {
                    graph.claim_routers(victim, liar, if is_restless { step } else { 7 });
                }
                graph.run_for(100);
            }
            assert_ne!(graph.root_epoch(), epoch, "the root goes on");
            if !is_restless {
                graph.check_converged();
                assert_eq!(graph.routers.iter().map(TreeProtocol::subtree).max(), Some(ROUTERS_MAX));
            }
            graph.run_for(10_000);
            graph.check_converged();
        }
    }
}

/// A hello of a neighbour that claims to be next to a root, far from all that is true otherwise.
fn forged_hello(sender: u64, number: u64, root: u64, sequence: u32) -> TreeHello {
    TreeHello {
        tree: 1,
        sender,
        number,
        root,
        sequence,
        age_ms: 0,
        heard_of_you: sequence,
        distance: 0,
        parent: root,
        subtree: 1,
        shape: 0,
        label: None,
    }
}

#[test]
fn a_neighbour_that_lies_breaks_nothing() {
    let mut router = TreeProtocol::new(1, 10, TIMES, 1, 0);
    let mut random = fastrand::Rng::with_seed(9);
    for now_ms in 0..20_000 {
        let shape = *random.choice(&[0, router.shape()]).unwrap();
        let label = WideLabel::new(random.u32(..), 1, 2).ok();
        let size = random.u32(..);
        let hello = TreeHello {
            tree: random.u16(0..2),
            sender: random.u64(0..30),
            number: random.u64(..),
            root: random.u64(0..30),
            sequence: random.u32(..),
            age_ms: random.u16(..),
            heard_of_you: random.u32(..),
            distance: random.u16(..),
            parent: random.u64(9..12),
            subtree: random.u32(..),
            shape: random.u64(0..3),
            label: label.map(|label| ChildLabel { epoch: 1, label, shape, size }),
        };
        router.heard(face(random.usize(0..5)), hello, now_ms);
        let _ = (router.run(now_ms), router.hello(face(1), now_ms), router.table());
    }
    assert!(router.told.len() <= told::TOLD_MAX);
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
