//! Routers that announce to each other over links that lose and reorder packets.

use super::*;
use crate::{Descriptor, tree_protocol::TreeHello};
use proptest::prelude::*;

const LIMITS: AdvertisementLimits = AdvertisementLimits { descriptors: 1_000, reserved: 100, per_face: 400 };
/// The face of every router's application.
const APPLICATION: FaceId = FaceId(500);

/// The face of a router to another.
fn face(router: usize) -> FaceId {
    FaceId(1_000 + router as u64)
}

fn config(router: usize) -> TagRoutingConfig {
    TagRoutingConfig {
        trees: vec![1, 2],
        router: 10 + router as u64,
        times: TreeTimes::default(),
        limits: LIMITS,
        keys: BTreeMap::new(),
    }
}

/// The same, with a key for each tree.
fn keyed_config(router: usize, key: u8) -> TagRoutingConfig {
    let keys = [1, 2].map(|tree| (tree, TreeKey::new([key; KEY_BYTES])));
    TagRoutingConfig { keys: keys.into(), ..config(router) }
}

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

/// Routers 0 to n − 1.
struct Network {
    routers: Vec<TagRouting>,
    links: BTreeSet<(usize, usize)>,
    /// When they arrive, from, to.
    packets: Vec<(u64, usize, usize, Vec<u8>)>,
    now_ms: u64,
    random: fastrand::Rng,
    loss_percent: u8,
}

impl Network {
    fn new(routers: usize, links: &[(usize, usize)], seed: u64, loss_percent: u8) -> Self {
        let mut network = Network {
            routers: (0..routers)
                .map(|router| TagRouting::new(&config(router), seed ^ router as u64, 0).unwrap())
                .collect(),
            links: BTreeSet::new(),
            packets: Vec::new(),
            now_ms: 0,
            random: fastrand::Rng::with_seed(seed),
            loss_percent,
        };
        links.iter().for_each(|(a, b)| network.join(*a, *b));
        network
    }

    fn line(routers: usize) -> Self {
        let links: Vec<(usize, usize)> = (1..routers).map(|router| (router - 1, router)).collect();
        Network::new(routers, &links, 1, 0)
    }

    fn join(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            self.links.insert((from, to));
            self.routers[from].neighbour_up(face(to));
        }
    }

    fn cut(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            self.links.remove(&(from, to));
            self.routers[from].face_down(face(to), self.now_ms);
        }
    }

    /// A router dies and starts again at once; its neighbours notice nothing.
    fn restart(&mut self, router: usize, seed: u64) {
        self.restart_with(&config(router), router, seed);
    }

    fn restart_with(&mut self, config: &TagRoutingConfig, router: usize, seed: u64) {
        self.routers[router] = TagRouting::new(config, seed, self.now_ms).unwrap();
        let neighbours: Vec<usize> = self.links.range((router, 0)..(router + 1, 0)).map(|(_, to)| *to).collect();
        neighbours.into_iter().for_each(|to| self.routers[router].neighbour_up(face(to)));
    }

    fn run_for(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while self.now_ms < end {
            self.now_ms += 20;
            for (at_ms, from, to, packet) in std::mem::take(&mut self.packets) {
                if at_ms > self.now_ms {
                    self.packets.push((at_ms, from, to, packet));
                } else if self.links.contains(&(from, to)) {
                    self.routers[to].received(face(from), &packet, self.now_ms);
                }
            }
            for from in 0..self.routers.len() {
                if self.routers[from].deadline_ms() > self.now_ms {
                    continue;
                }
                self.routers[from].run(self.now_ms);
                for (to, packet) in self.routers[from].take_packets() {
                    if self.random.u8(0..100) >= self.loss_percent {
                        let at_ms = self.now_ms + self.random.u64(1..60);
                        self.packets.push((at_ms, from, to.0 as usize - 1_000, packet));
                    }
                }
            }
        }
    }

    fn advertise(&mut self, router: usize, set: &str, serves: Serves) -> Result<(), AdvertisementRefusal> {
        self.routers[router].advertise(APPLICATION, &tags(set), serves, None)
    }

    /// The faces of a router beyond which a set is advertised in tree 1.
    fn branches(&self, router: usize, set: &str) -> Vec<u64> {
        let found =
            self.routers[router].entries(usize::MAX).find(|(descriptor, _)| *descriptor == tags(set).descriptor());
        let branches = found.map(|(_, set)| set.branches().to_vec()).unwrap_or_default();
        branches.iter().filter(|branch| branch.tree == 1).map(|branch| branch.face.0).collect()
    }

    /// What each router knows of each descriptor in each tree is what a walk over the tree finds.
    fn check(&self, advertised: &[(usize, Descriptor)]) {
        for tree in [1, 2] {
            for router in 0..self.routers.len() {
                let mut expected: BTreeSet<(Descriptor, FaceId)> = BTreeSet::new();
                for (at, descriptor) in advertised {
                    if let Some(next) = self.next_hop(tree, router, *at) {
                        expected.insert((*descriptor, next));
                    }
                }
                let known = self.routers[router].entries(usize::MAX).flat_map(|(descriptor, set)| {
                    let branches = set.branches().to_vec().into_iter().filter(|branch| branch.tree == tree);
                    branches.map(move |branch| (descriptor, branch.face))
                });
                assert_eq!(known.collect::<BTreeSet<_>>(), expected, "router {router}, tree {tree}");
            }
        }
    }

    /// The face of `from` that leads to `to` along a tree.
    fn next_hop(&self, tree: u16, from: usize, to: usize) -> Option<FaceId> {
        if from == to {
            return Some(APPLICATION);
        }
        let mut open: Vec<(usize, usize, FaceId)> =
            self.neighbours_in(tree, from).map(|next| (from, next, face(next))).collect();
        while let Some((before, at, first)) = open.pop() {
            if at == to {
                return Some(first);
            }
            open.extend(self.neighbours_in(tree, at).filter(|next| *next != before).map(|next| (at, next, first)));
        }
        None
    }

    fn neighbours_in(&self, tree: u16, router: usize) -> impl Iterator<Item = usize> {
        let links = &self.routers[router].trees[&tree].links;
        links.keys().map(|face| face.0 as usize - 1_000)
    }
}

#[test]
fn an_advertisement_reaches_the_other_end_until_it_is_withdrawn() {
    let mut network = Network::line(4);
    network.run_for(5_000);
    network.advertise(0, "concert, classical", Serves::PULL).unwrap();
    network.run_for(2_000);
    assert_eq!(network.branches(3, "classical, concert"), [1_002]);
    assert_eq!(network.branches(0, "classical, concert"), [500]);
    assert!(network.routers[0].withdraw(APPLICATION, &tags("concert, classical")));
    assert!(!network.routers[0].withdraw(APPLICATION, &tags("concert, classical")));
    network.run_for(2_000);
    assert_eq!(network.branches(3, "classical, concert"), []);
    network.advertise(0, "a", Serves::PUSH).unwrap();
    network.run_for(2_000);
    assert_eq!(network.branches(3, "a"), [1_002]);
    network.routers[0].face_down(APPLICATION, network.now_ms);
    network.run_for(2_000);
    assert_eq!(network.branches(3, "a"), [], "the application is gone");
}

/// A forger on the link has no key: it changes nothing, and a router with another key is in no tree.
#[test]
fn in_a_tree_with_a_key_only_its_routers_are_heard() {
    let mut network = Network::line(4);
    for (router, key) in [1, 1, 1, 2].into_iter().enumerate() {
        network.restart_with(&keyed_config(router, key), router, 7 + router as u64);
    }
    network.run_for(6_000);
    network.advertise(0, "concert, classical", Serves::PULL).unwrap();
    network.run_for(2_000);
    assert_eq!(network.branches(2, "classical, concert"), [1_001]);
    assert_eq!(network.branches(3, "classical, concert"), []);
    let trees = |router: usize| network.routers[router].trees().map(|tree| (tree.root, tree.label)).collect::<Vec<_>>();
    let before: Vec<_> = (0..4).map(trees).collect();
    for _ in 0..20 {
        let forged = RoutingPacket::Hello(lowest_root(), Progress { session: 1, heard: 2, next: 3 }).to_bytes();
        let now_ms = network.now_ms;
        for (router, from) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            network.routers[router].received(face(from), &forged, now_ms);
        }
        network.run_for(500);
    }
    let trees = |router: usize| network.routers[router].trees().map(|tree| (tree.root, tree.label)).collect::<Vec<_>>();
    assert_eq!((0..4).map(trees).collect::<Vec<_>>(), before);
    let refused = |router: usize, why: RoutingRefusal| network.routers[router].refusals()[why as usize];
    assert!(refused(1, RoutingRefusal::NotAuthentic) >= 40 && refused(3, RoutingRefusal::NotAuthentic) > 0);

    // A router that starts again is heard again, though its neighbours have its old challenge.
    network.restart_with(&keyed_config(1, 1), 1, 99);
    network.run_for(9_000);
    assert_eq!(network.branches(2, "classical, concert"), [1_001]);
}

/// A hello that would take the whole tree.
fn lowest_root() -> TreeHello {
    TreeHello {
        tree: 1,
        sender: 3,
        number: u64::MAX,
        root: 3,
        sequence: 5,
        age_ms: 0,
        heard_of_you: 0,
        distance: 0,
        parent: 3,
        subtree: 1,
        shape: 0,
        label: None,
    }
}

/// Without a key, the same forger takes the tree while it sends, and no longer. Nothing that was advertised is lost.
#[test]
fn after_forged_hellos_everything_is_announced_again() {
    let mut network = Network::line(4);
    network.run_for(6_000);
    for router in 0..4 {
        network.advertise(router, &format!("from{router}"), Serves::BOTH).unwrap();
    }
    network.run_for(2_000);
    for (victim, from) in [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)] {
        for number in 0..16 {
            let root = network.routers[0].trees().next().unwrap().router;
            let sequence = (1_u32 << 31) + number;
            let hello = TreeHello { number: u64::from(number) << 40, root, sequence, ..lowest_root() };
            let forged = RoutingPacket::Hello(hello, Progress { session: 1 + u64::from(number), heard: 2, next: 3 });
            let now_ms = network.now_ms;
            network.routers[victim].received(face(from), &forged.to_bytes(), now_ms);
            network.run_for(250);
        }
        network.run_for(10_000);
        let advertised: Vec<_> = (0..4).map(|router| (router, tags(&format!("from{router}")).descriptor())).collect();
        network.check(&advertised);
    }
}

#[test]
fn an_advertisement_ends_at_its_time() {
    let mut network = Network::line(2);
    network.run_for(5_000);
    let ends_ms = network.now_ms + 3_000;
    network.routers[0].advertise(APPLICATION, &tags("a"), Serves::BOTH, Some(ends_ms)).unwrap();
    network.run_for(2_000);
    assert_eq!(network.branches(1, "a"), [1_000]);
    network.routers[0].advertise(APPLICATION, &tags("a"), Serves::BOTH, Some(ends_ms + 3_000)).unwrap();
    network.run_for(3_000);
    assert_eq!(network.branches(1, "a"), [1_000], "it was refreshed");
    network.run_for(3_000);
    assert_eq!(network.branches(1, "a"), []);
}

#[test]
fn a_restarted_router_learns_everything_and_announces_nothing_old() {
    let mut network = Network::line(3);
    network.run_for(5_000);
    for router in 0..3 {
        network.advertise(router, &format!("from{router}"), Serves::BOTH).unwrap();
    }
    network.run_for(2_000);
    assert_eq!(network.branches(2, "from0"), [1_001]);
    network.restart(1, 100);
    network.run_for(20_000);
    assert_eq!(network.branches(2, "from0"), [1_001]);
    assert_eq!(network.branches(0, "from2"), [1_001]);
    assert_eq!(network.branches(0, "from1"), [], "its application is gone");
}

#[test]
fn a_neighbour_that_announces_too_much_leaves_room_and_is_accepted_again() {
    let mut network = Network::line(2);
    network.routers[0].limits.per_face = 2_000;
    network.routers[0].advertisements = Advertisements::new(AdvertisementLimits { per_face: 2_000, ..LIMITS }).unwrap();
    network.run_for(5_000);
    // One descriptor counts in each of two trees.
    (0..300).for_each(|number| network.advertise(0, &format!("flood{number}"), Serves::PULL).unwrap());
    network.run_for(5_000);
    assert_eq!(network.routers[1].refusals()[RoutingRefusal::FaceShareUsed as usize], 200);
    network.advertise(1, "mine", Serves::PULL).unwrap();
    for number in 0..150 {
        network.routers[0].withdraw(APPLICATION, &tags(&format!("flood{number}")));
    }
    network.run_for(20_000);
    let all: Vec<(usize, Descriptor)> =
        (150..300).map(|number| (0, tags(&format!("flood{number}")).descriptor())).collect();
    network.check(&[&all[..], &[(1, tags("mine").descriptor())]].concat());
}

/// The story: when a set went that held 65,000 others back, one turn took longer than a neighbour waits for a hello.
#[test]
fn hellos_are_sent_while_a_withdrawal_uncovers_many_sets() {
    const LARGER: usize = 3_000;
    let mut network = Network::line(3);
    let limits = AdvertisementLimits { descriptors: 10_000, reserved: 0, per_face: 10_000 };
    for router in &mut network.routers {
        (router.limits, router.advertisements) = (limits, Advertisements::new(limits).unwrap());
    }
    network.run_for(5_000);
    network.advertise(1, "a", Serves::PUSH).unwrap();
    (0..LARGER).for_each(|number| network.advertise(1, &format!("a, own{number}"), Serves::PUSH).unwrap());
    network.run_for(2_000);
    let announced = |network: &Network| {
        let link = TreeLink { tree: 1, face: face(0) };
        network.routers[1].advertisements.announced_on(link).len()
    };
    assert_eq!(announced(&network), 1);

    network.routers[1].withdraw(APPLICATION, &tags("a"));
    let now_ms = network.now_ms + 1_000;
    network.routers[1].run(now_ms);
    let is_hello = |packet: &[u8]| matches!(RoutingPacket::parse(packet), Ok(RoutingPacket::Hello(..)));
    let packets = network.routers[1].take_packets();
    assert_eq!(packets.iter().filter(|(_, packet)| is_hello(packet)).count(), 4, "two neighbours in two trees");
    let mut turns = 1;
    while !network.routers[1].advertisements.is_settled() {
        assert_eq!(network.routers[1].deadline_ms(), 0, "the next turn is due");
        network.routers[1].run(now_ms);
        turns += 1;
    }
    assert!(turns > 2, "{turns}");
    assert_eq!(announced(&network), LARGER);
}

#[test]
fn a_million_announcements_of_one_face_take_no_more_than_its_share() {
    const ANNOUNCED: u64 = 1 << 20;
    let mut network = Network::line(3);
    network.run_for(5_000);
    let limits = AdvertisementLimits { descriptors: 20_000, reserved: 1_000, per_face: 5_000 };
    let router = &mut network.routers[1];
    (router.limits, router.advertisements) = (limits, Advertisements::new(limits).unwrap());
    router.follow_trees();
    for link in [face(0), face(2)] {
        router.advertisements.link_up(TreeLink { tree: 1, face: link });
    }
    let entry = |number: u64| AnnouncedEntry {
        descriptor: Descriptor([number << 20 | 1, number % 97, 0]),
        serves: Some(Serves::BOTH),
    };
    for first in (0..ANNOUNCED).step_by(wire::MAX_ENTRIES) {
        let entries = (first..ANNOUNCED.min(first + wire::MAX_ENTRIES as u64)).map(entry).collect();
        let packet = RoutingPacket::Announcements { tree: 1, session: 99, first, entries };
        router.received(face(0), &packet.to_bytes(), network.now_ms);
    }
    assert_eq!(router.descriptors(), 5_000);
    assert_eq!(router.refusals()[RoutingRefusal::FaceShareUsed as usize], ANNOUNCED - 5_000);
    let waiting = router.trees[&1].links[&face(2)].waiting();
    assert!(waiting <= BUSY_ENTRIES + TURN_UNITS, "{waiting} wait for the other neighbour");
    router.advertise(APPLICATION, &tags("mine"), Serves::BOTH, None).unwrap();
}

#[test]
fn strangers_and_malformed_packets_change_nothing() {
    let mut network = Network::line(2);
    network.run_for(5_000);
    let router = &mut network.routers[0];
    router.take_trees_changed();
    router.received(FaceId(77), &[0xfd, 1, 1, 0], 1);
    router.received(face(1), &[0xfd, 1, 1, 0], 1);
    let forged = |tree, first| {
        let entries = vec![AnnouncedEntry { descriptor: tags("a").descriptor(), serves: Some(Serves::BOTH) }];
        RoutingPacket::Announcements { tree, session: 99, first, entries }.to_bytes()
    };
    router.received(face(1), &forged(7, 0), 1);
    router.received(face(1), &forged(1, 5), 1);
    assert!(!router.take_trees_changed() && router.descriptors() == 0);
    let counted = |why: RoutingRefusal| router.refusals()[why as usize];
    let reasons = [RoutingRefusal::NotNeighbour, RoutingRefusal::Malformed, RoutingRefusal::UnknownTree];
    assert_eq!(reasons.map(counted), [1, 1, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn routers_that_lose_packets_agree_in_the_end(
        extra in proptest::collection::vec((0..8_usize, 0..8_usize), 0..8),
        steps in proptest::collection::vec((0..8_usize, 0..12_u8, 0..3_u8), 1..40),
        seed: u64,
    ) {
        let links: Vec<(usize, usize)> = (1..8).map(|router| (router / 2, router))
            .chain(extra).filter(|(a, b)| a != b).collect();
        let mut network = Network::new(8, &links, seed, 25);
        let mut advertised: BTreeMap<(usize, u8), ()> = BTreeMap::new();
        for (router, set, what) in steps {
            let set_of = |set: u8| tags(&format!("a{}, b{}", set % 4, set / 4));
            match what {
                0 | 1 => {
                    network.routers[router].advertise(APPLICATION, &set_of(set), Serves::PULL, None).unwrap();
                    advertised.insert((router, set), ());
                }
                _ => {
                    let had = advertised.remove(&(router, set)).is_some();
                    prop_assert_eq!(network.routers[router].withdraw(APPLICATION, &set_of(set)), had);
                }
            }
            network.run_for(300);
        }
        let (a, b) = links[0];
        network.cut(a, b);
        network.run_for(10_000);
        network.join(a, b);
        network.loss_percent = 0;
        network.run_for(40_000);
        let set_of = |set: u8| tags(&format!("a{}, b{}", set % 4, set / 4)).descriptor();
        let all: Vec<(usize, Descriptor)> = advertised.keys().map(|(router, set)| (*router, set_of(*set))).collect();
        network.check(&all);
    }
}
