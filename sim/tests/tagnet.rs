//! TagNet over whole networks: 60 routers on a random graph (200 in `make system`), lossy links, cuts with and without
//! notice, a partition that heals, thousands of descriptors.
//!
//! The oracle knows only the links that work, and the tags that each application advertised; it has no filter, tree or
//! table. When the routers have had time to repair their tree, it determines which applications must get a packet, and
//! which may answer a pull. At any time, the ledger of [`namewire_sim::TagLedger`] must hold, and each pull without an
//! answer must have met a loss or a drop.

use crate::from_environment;
use fastrand::Rng;
use namewire_engine::{EngineConfig, FaceId};
use namewire_packet::nfd::FacePersistency;
use namewire_packet::tag::TagPacketKind;
use namewire_sim::{
    AppId, Attachment, Connection, LinkFailure, LinkId, LinkOptions, Network, NodeId, NodeOptions, RunEnd, TagConsumer,
    TagConsumerOptions, TagLedger, TagPublisher, TagRequest, TagSent, TraceKind,
};
use namewire_tagnet::TagSet;
use namewire_tagnet::advertisements::AdvertisementLimits;
use namewire_tagnet::forwarder::{Serves, TagDrop};
use namewire_tagnet::routing::wire::{Progress, RoutingPacket};
use namewire_tagnet::routing::{TagRoutingConfig, TreeStatus};
use namewire_tagnet::tree_protocol::{TreeHello, TreeTimes};
use std::collections::{BTreeMap, BTreeSet};

const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000 * MS_NS;
/// Time in which routers notice every cut, agree on a tree and announce everything again, at 5 % loss.
const REPAIR_NS: u64 = 40 * SECOND_NS;
const LIMITS: AdvertisementLimits = AdvertisementLimits { descriptors: 20_000, reserved: 1_000, per_face: 10_000 };
/// Words that tags are made of. Few, so that sets contain each other.
const WORDS: usize = 60;

struct Wire {
    ends: [usize; 2],
    faces: [FaceId; 2],
    link: LinkId,
    is_up: bool,
}

struct Publisher {
    node: usize,
    attachment: Attachment,
    sets: BTreeMap<TagSet, Serves>,
}

/// Requests of one application.
struct Asked {
    node: usize,
    app: AppId,
}

struct World {
    net: Network,
    rng: Rng,
    nodes: Vec<NodeId>,
    wires: Vec<Wire>,
    publishers: Vec<Publisher>,
}

fn node_options(router: u64, trees: &[u16]) -> NodeOptions {
    let (times, keys) = (TreeTimes::default(), BTreeMap::new());
    let tagnet = TagRoutingConfig { trees: trees.to_vec(), router, times, limits: LIMITS, keys };
    let engine = EngineConfig { pit_capacity_entries: 64, cs_capacity_packets: 64, ..EngineConfig::default() };
    NodeOptions { engine, tagnet: Some(tagnet), fib_capacity_entries: 64, ..NodeOptions::default() }
}

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

impl World {
    /// Routers joined by a random tree, and by `extra` further links.
    fn new(seed: u64, routers: usize, extra: usize, loss: f64, trees: &[u16]) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut net = Network::new(seed, usize::MAX);
        let mut numbers: Vec<u64> = (1..=routers as u64).collect();
        rng.shuffle(&mut numbers);
        let nodes: Vec<NodeId> = numbers.iter().map(|number| net.add_node(node_options(*number, trees))).collect();
        let tree = (1..routers).map(|router| [router / 3 + rng.usize(0..router - router / 3), router]);
        let mut ends: BTreeSet<[usize; 2]> = tree.collect();
        while ends.len() < (routers - 1 + extra).min(routers * (routers - 1) / 2) {
            let (a, b) = (rng.usize(0..routers), rng.usize(0..routers));
            ends.extend((a < b).then_some([a, b]));
        }
        let wires = ends.into_iter().map(|ends| {
            let delay_ns = rng.u64(1..10) * MS_NS;
            let options = LinkOptions { delay_ns, jitter_ns: delay_ns, loss, ..LinkOptions::default() };
            let Connection { link, face_a, face_b } = net.connect(nodes[ends[0]], nodes[ends[1]], options);
            Wire { ends, faces: [face_a, face_b], link, is_up: true }
        });
        let wires = wires.collect();
        World { net, rng, nodes, wires, publishers: Vec::new() }
    }

    fn run_for(&mut self, duration_ns: u64) {
        assert_eq!(self.net.run_for(duration_ns), RunEnd::TimeReached);
    }

    fn add_publisher(&mut self, node: usize) -> usize {
        let number = self.publishers.len();
        let attachment = self.net.attach(self.nodes[node], TagPublisher::new(number as u64));
        self.publishers.push(Publisher { node, attachment, sets: BTreeMap::new() });
        number
    }

    fn advertise(&mut self, publisher: usize, set: &TagSet, serves: Serves) {
        let Publisher { node, attachment, sets } = &mut self.publishers[publisher];
        self.net.advertise(self.nodes[*node], attachment.face, set, serves).unwrap();
        sets.insert(set.clone(), serves);
    }

    fn withdraw(&mut self, publisher: usize, set: &TagSet) {
        let Publisher { node, attachment, sets } = &mut self.publishers[publisher];
        assert!(self.net.withdraw(self.nodes[*node], attachment.face, set));
        sets.remove(set);
    }

    /// A publisher on every router with `sets` sets of 2 to 4 tags. Single tags would make false positives frequent.
    fn publish(&mut self, sets: usize) {
        for node in 0..self.nodes.len() {
            let publisher = self.add_publisher(node);
            for _ in 0..sets {
                let count = self.rng.usize(2..5);
                let set = self.random_tags(count);
                let serves = self.rng.choice([Serves::PULL, Serves::PUSH, Serves::BOTH]).unwrap();
                self.advertise(publisher, &set, serves);
            }
        }
    }

    fn random_tags(&mut self, count: usize) -> TagSet {
        // The minimum of two: some words are more frequent than others.
        let word = |rng: &mut Rng| rng.usize(0..WORDS).min(rng.usize(0..WORDS));
        TagSet::new((0..count).map(|_| format!("word{}", word(&mut self.rng)))).unwrap()
    }

    /// What some publisher advertised, and a few tags more.
    fn random_query(&mut self) -> TagSet {
        let place = self.rng.usize(0..self.publishers.len());
        let sets = &self.publishers[place].sets;
        let base = sets.keys().nth(self.rng.usize(0..sets.len().max(1))).cloned().unwrap_or_default();
        let more = self.random_tags(2);
        TagSet::new(base.tags().iter().chain(more.tags()).cloned()).unwrap()
    }

    fn set_loss(&mut self, loss: f64) {
        self.wires.iter().for_each(|wire| self.net.set_loss(wire.link, loss));
    }

    /// Cuts a link. Noticed: both ends get errors.
    fn cut(&mut self, wire: usize, is_noticed: bool) {
        let Wire { link, is_up, .. } = &mut self.wires[wire];
        *is_up = false;
        if is_noticed {
            self.net.set_persistency(*link, FacePersistency::Permanent);
            self.net.set_link_failure(*link, Some(LinkFailure::CannotSend));
        } else {
            self.net.set_link_up(*link, false);
        }
    }

    fn mend_all(&mut self) {
        for Wire { link, is_up, .. } in &mut self.wires {
            if !std::mem::replace(is_up, true) {
                self.net.set_link_failure(*link, None);
            }
        }
    }

    /// Cuts off about this number of routers around the last one, every other link with notice.
    fn partition(&mut self, routers: usize) {
        let mut inside = vec![self.nodes.len() - 1];
        for place in 0.. {
            if inside.len() >= routers {
                break;
            }
            let at = inside[place];
            let next: Vec<usize> = self.neighbours(at).filter(|next| !inside.contains(next)).collect();
            inside.extend(next);
        }
        let border = |wire: &Wire| inside.contains(&wire.ends[0]) != inside.contains(&wire.ends[1]);
        let border: Vec<usize> = (0..self.wires.len()).filter(|wire| border(&self.wires[*wire])).collect();
        border.into_iter().for_each(|wire| self.cut(wire, wire % 2 == 0));
    }

    fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> {
        let up = self.wires.iter().filter(|wire| wire.is_up);
        up.filter(move |wire| wire.ends.contains(&node)).map(move |wire| wire.ends[usize::from(wire.ends[0] == node)])
    }

    fn component(&self, node: usize) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::from([node]), vec![node]);
        while let Some(at) = open.pop() {
            let next: Vec<usize> = self.neighbours(at).filter(|next| found.insert(*next)).collect();
            open.extend(next);
        }
        found
    }

    /// The publishers that a request must reach or may reach, each with the largest number of tags of a matching set.
    fn matching(&self, component: &BTreeSet<usize>, request: &TagRequest) -> BTreeMap<u64, usize> {
        let wants = if request.kind == TagPacketKind::Push { Serves::PUSH } else { Serves::PULL };
        let connected = (0..).zip(&self.publishers).filter(|(_, publisher)| component.contains(&publisher.node));
        let matched = connected.filter_map(|(number, publisher)| {
            let sets =
                publisher.sets.iter().filter(|(set, serves)| serves.meets(wants) && set.is_subset_of(&request.tags));
            Some((number, sets.map(|(set, _)| set.tags().len()).max()?))
        });
        matched.collect()
    }

    /// An application on each of some routers that sends `each` requests.
    fn ask(
        &mut self,
        apps: usize,
        each: usize,
        kind: TagPacketKind,
        fan_outs: &[Option<u32>],
        transmissions: usize,
    ) -> Vec<Asked> {
        let mut asked = Vec::new();
        for _ in 0..apps {
            let node = self.rng.usize(0..self.nodes.len());
            let plan: Vec<TagRequest> = (0..each)
                .map(|number| {
                    let fan_out = fan_outs[number % fan_outs.len()];
                    TagRequest { kind, tags: self.random_query(), fan_out }
                })
                .collect();
            asked.push(self.ask_at(node, plan, transmissions));
        }
        asked
    }

    fn ask_at(&mut self, node: usize, plan: Vec<TagRequest>, transmissions: usize) -> Asked {
        let options = TagConsumerOptions {
            interval_ns: 20 * MS_NS,
            transmissions,
            retransmit_after_ns: SECOND_NS / 2,
            follow_ups: true,
        };
        let Attachment { app, face } = self.net.attach(self.nodes[node], TagConsumer::new(plan, options));
        self.net.allow_push(self.nodes[node], face);
        Asked { node, app }
    }

    /// The publishers that got each request, by nonce.
    fn deliveries(&self) -> BTreeMap<u32, Vec<u64>> {
        let mut deliveries: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (number, publisher) in (0..).zip(&self.publishers) {
            for delivery in self.net.application::<TagPublisher>(publisher.attachment.app).delivered() {
                assert!(delivery.meant_for.is_none_or(|meant| meant == number), "{delivery:?} at {number}");
                deliveries.entry(delivery.nonce).or_default().push(number);
            }
        }
        deliveries
    }

    /// What must hold at any time: only those who match get a request, at most as many as its fan-out, each once.
    /// Every pull without an answer has met a loss or a drop.
    fn check_sent(&self, asked: &[Asked]) {
        let deliveries = self.deliveries();
        for Asked { app, .. } in asked {
            let consumer = self.net.application::<TagConsumer>(*app);
            assert_eq!(consumer.unexpected(), 0);
            for sent in consumer.sent() {
                check_answers(sent);
                for nonce in &sent.nonces {
                    let got = deliveries.get(nonce).map_or(&[][..], Vec::as_slice);
                    let is_once = got.iter().collect::<BTreeSet<_>>().len() == got.len();
                    let is_pull = sent.request.kind == TagPacketKind::Pull;
                    let most = sent.request.fan_out.unwrap_or(if is_pull { 1 } else { u32::MAX });
                    assert!(is_once && got.len() <= most as usize, "{sent:?}: {got:?}");
                }
            }
        }
        let unexplained = self.net.unexplained_pulls(asked.iter().map(|asked| asked.app));
        assert!(unexplained.is_empty(), "{unexplained:?}");
    }

    /// What must hold beyond that when trees are repaired: the oracle's publishers answer and get pushes. Without loss,
    /// one transmission suffices. Returns how many requests had matching publishers.
    fn check_reached(&self, asked: &[Asked], is_lossless: bool) -> usize {
        self.check_sent(asked);
        let deliveries = self.deliveries();
        // A filter had the bits of a tag that is not among the packet's: this request may have gone astray.
        let mistaken = self.net.requests_with(|kind| kind == TraceKind::TagDropped(TagDrop::FalsePositive));
        let mut matched = 0;
        for Asked { node, app } in asked {
            let component = self.component(*node);
            for sent in self.net.application::<TagConsumer>(*app).sent() {
                assert!(!is_lossless || sent.publisher.is_none() || sent.nonces.len() == 1, "{sent:?}");
                if sent.publisher.is_some() {
                    assert_eq!(sent.replies.len().min(1), 1, "a follow-up is answered: {sent:?}");
                    continue;
                }
                let matching = self.matching(&component, &sent.request);
                matched += usize::from(!matching.is_empty());
                let got: BTreeSet<u64> =
                    sent.nonces.iter().flat_map(|nonce| deliveries.get(nonce).into_iter().flatten()).copied().collect();
                if !got.is_empty() || sent.nonces.iter().all(|nonce| !mistaken.contains(nonce)) {
                    check_oracle(sent, &matching, &got, is_lossless);
                }
            }
        }
        matched
    }

    /// Every pull with a connected publisher is answered by one that it may reach, after enough transmissions.
    fn pull_with_loss(&mut self) {
        let asked = self.ask(20, 10, TagPacketKind::Pull, &FAN_OUTS, 30);
        self.run_for(16 * SECOND_NS);
        assert!(self.check_reached(&asked, false) > 100);
    }

    /// Without loss, one transmission of each request reaches whom the oracle names, and none that withdrew.
    fn without_loss(&mut self) {
        self.set_loss(0.0);
        self.run_for(10 * SECOND_NS);
        let before = self.audit();
        let mut asked = self.ask(20, 20, TagPacketKind::Pull, &FAN_OUTS, 1);
        asked.extend(self.ask(20, 20, TagPacketKind::Push, &[None], 1));
        self.run_for(5 * SECOND_NS);
        assert!(self.check_reached(&asked, true) > 400);
        for publisher in (0..self.publishers.len()).step_by(2) {
            let sets: Vec<TagSet> = self.publishers[publisher].sets.keys().cloned().collect();
            sets.iter().for_each(|set| self.withdraw(publisher, set));
        }
        self.run_for(10 * SECOND_NS);
        let mut asked = self.ask(20, 20, TagPacketKind::Pull, &FAN_OUTS, 1);
        asked.extend(self.ask(20, 20, TagPacketKind::Push, &[None], 1));
        self.run_for(5 * SECOND_NS);
        assert!(self.check_reached(&asked, true) > 100);
        // Only requests without any publisher were dropped.
        let after = self.audit();
        assert_eq!(after.lost, before.lost);
        let dropped = TagDrop::ALL.into_iter().filter(|why| after.dropped(*why) > before.dropped(*why));
        let dropped: Vec<TagDrop> = dropped.collect();
        assert!(matches!(dropped[..], [TagDrop::NoMatch] | [TagDrop::NoMatch, TagDrop::FalsePositive]), "{dropped:?}");
    }

    fn audit(&self) -> TagLedger {
        let ledger = self.net.audit_tags();
        assert!(ledger.broken.is_empty(), "{:#?}", ledger.broken);
        ledger
    }
}

/// Replies come from different publishers, at most as many for each transmission as its fan-out.
fn check_answers(sent: &TagSent) {
    for nonce in &sent.nonces {
        let replies = sent.replies.iter().filter(|reply| reply.nonce == *nonce);
        let publishers: Vec<u64> = replies.map(|reply| reply.publisher).collect();
        let different: BTreeSet<&u64> = publishers.iter().collect();
        assert!(different.len() == publishers.len(), "{sent:?}");
        assert!(publishers.len() <= sent.request.fan_out.unwrap_or(1) as usize, "{sent:?}");
        assert!(sent.publisher.is_none_or(|asked| publishers.iter().all(|publisher| *publisher == asked)), "{sent:?}");
    }
}

fn check_oracle(sent: &TagSent, matching: &BTreeMap<u64, usize>, got: &BTreeSet<u64>, is_lossless: bool) {
    let everyone: BTreeSet<u64> = matching.keys().copied().collect();
    assert!(got.is_subset(&everyone), "{sent:?}: {got:?} of {matching:?}");
    let fan_out = match sent.request.kind {
        TagPacketKind::Push => sent.request.fan_out.unwrap_or(u32::MAX),
        _ => sent.request.fan_out.unwrap_or(1),
    };
    if fan_out == 1 {
        let largest = matching.values().max();
        assert!(got.iter().all(|number| matching.get(number) == largest), "{sent:?}: {got:?} of {matching:?}");
    }
    // No branch gets fewer copies than it has applications.
    if fan_out > 1 << 20 && is_lossless {
        assert_eq!(*got, everyone, "{sent:?}");
    }
    assert!(got.is_empty() == matching.is_empty(), "{sent:?}: {got:?} of {matching:?}");
    if sent.request.kind == TagPacketKind::Pull {
        assert!(sent.replies.is_empty() == matching.is_empty(), "{sent:?} of {matching:?}");
        assert!(!is_lossless || sent.replies.len() == got.len(), "{sent:?}: {got:?}");
    }
}

/// One answer, few, and all.
const FAN_OUTS: [Option<u32>; 4] = [None, Some(1), Some(8), Some(u32::MAX)];

/// The decision's example: without {a, b, c} on the left link, {a, b} on the right would answer.
#[test]
fn a_set_is_announced_beside_its_subset() {
    let mut world = World::new(1, 3, 0, 0.0, &[1]);
    let middle = (0..3).find(|node| world.neighbours(*node).count() == 2).unwrap();
    let others: Vec<usize> = world.neighbours(middle).collect();
    let [left, right] = others[..] else { panic!("{others:?}") };
    let [small, large, medium] = [left, left, right].map(|node| world.add_publisher(node));
    // The small one first, so that it could hold the large one back.
    for (publisher, set) in [(small, "a"), (medium, "a, b"), (large, "a, b, c")] {
        world.advertise(publisher, &tags(set), Serves::BOTH);
        world.run_for(5 * SECOND_NS);
    }
    let pull = |set: &str| TagRequest { kind: TagPacketKind::Pull, tags: tags(set), fan_out: None };
    let asked = world.ask_at(middle, vec![pull("a, b, c"), pull("a, b"), pull("a"), pull("b")], 1);
    world.run_for(5 * SECOND_NS);
    let sent = world.net.application::<TagConsumer>(asked.app).sent();
    let answered = sent.iter().map(|sent| sent.replies.iter().map(|reply| reply.publisher as usize).collect());
    let answered: Vec<Vec<usize>> = answered.take(4).collect();
    assert_eq!(answered, [vec![large], vec![medium], vec![small], vec![]]);
    assert_eq!(world.check_reached(&[asked], true), 3);
    assert_eq!(world.audit().dropped(TagDrop::NoMatch), 1);
}

/// Routers through a cut, a partition and its end, with 5 % loss, and then without loss.
fn cut_and_mended(seed: u64, routers: usize, sets: usize, trees: &[u16]) {
    let mut world = World::new(seed, routers, routers, 0.05, trees);
    world.publish(sets);
    world.run_for(REPAIR_NS);
    world.pull_with_loss();

    // Requests are under way while links fail.
    let mut asked = world.ask(20, 50, TagPacketKind::Pull, &FAN_OUTS, 2);
    asked.extend(world.ask(20, 50, TagPacketKind::Push, &[None], 1));
    let some: Vec<usize> = (0..routers / 10).map(|_| world.rng.usize(0..world.wires.len())).collect();
    some.iter().for_each(|wire| world.cut(*wire, wire % 2 == 0));
    world.partition(routers / 3);
    assert!(world.component(routers - 1).len() < routers * 3 / 4);
    world.run_for(REPAIR_NS);
    world.check_sent(&asked);
    world.pull_with_loss();

    let asked = world.ask(20, 50, TagPacketKind::Pull, &FAN_OUTS, 2);
    world.mend_all();
    world.run_for(REPAIR_NS);
    world.check_sent(&asked);

    world.without_loss();
    // Trees changed while packets were under way.
    let ledger = world.audit();
    assert!(ledger.dropped(TagDrop::StaleEpoch) > 0 && ledger.lost > 0, "{ledger:?}");
}

#[test]
fn many_routers_are_cut_and_mended() {
    cut_and_mended(1, from_environment("NAMEWIRE_SIM_ROUTERS", 60) as usize, 10, &[1]);
}

#[test]
fn small_networks_with_two_trees_are_cut_and_mended() {
    (2..5).for_each(|seed| cut_and_mended(seed, 16, 40, &[1, 2]));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed| {
        let mut world = World::new(seed, 12, 12, 0.05, &[1, 2]);
        world.publish(10);
        world.run_for(REPAIR_NS);
        world.ask(5, 10, TagPacketKind::Pull, &FAN_OUTS, 5);
        world.run_for(5 * SECOND_NS);
        world.net.trace().digest()
    };
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

impl World {
    /// True if all routers have one root and labels of one epoch.
    fn is_one_tree(&self) -> bool {
        let trees: Vec<_> = self.nodes.iter().map(|node| self.net.trees(*node).remove(0)).collect();
        let epoch = |tree: &TreeStatus| tree.label.as_ref().map(|(epoch, _)| *epoch);
        trees.iter().all(|tree| tree.root == trees[0].root && epoch(tree).is_some() && epoch(tree) == epoch(&trees[0]))
    }

    /// The router that is the root.
    fn root(&self) -> usize {
        let is_root = |node: &NodeId| self.net.trees(*node)[0].root == self.net.trees(*node)[0].router;
        self.nodes.iter().position(is_root).expect("a root")
    }

    /// Milliseconds until all routers are in one tree, at most `most`.
    fn repaired_within(&mut self, most: u64) -> u64 {
        for passed in (0..most).step_by(100) {
            if self.is_one_tree() {
                return passed;
            }
            self.run_for(100 * MS_NS);
        }
        panic!("not one tree after {most} ms");
    }

    /// A router hears for four seconds, on one of its faces, that its root is beside it, with a sequence number that is
    /// as far from the true one as `jump`.
    fn forge_hellos(&mut self, victim: usize, face: FaceId, root: u64, jump: u32) {
        for number in 0..16 {
            // Roots raise their numbers once a second, from 1 on.
            let true_sequence = (self.net.now_ns() / SECOND_NS) as u32;
            let sequence = true_sequence.wrapping_add(jump).wrapping_add(number);
            let hello = TreeHello {
                tree: 1,
                sender: u64::MAX - 1,
                number: u64::from(number) << 32,
                root,
                sequence,
                age_ms: 0,
                heard_of_you: sequence,
                distance: 0,
                parent: root,
                subtree: u32::MAX,
                shape: number.into(),
                label: None,
            };
            let packet = RoutingPacket::Hello(hello, Progress { session: number.into(), heard: 0, next: 0 });
            self.net.forge_tag_routing(self.nodes[victim], face, &packet.to_bytes());
            self.run_for(250 * MS_NS);
        }
    }

    /// What applications of a router advertise, once more: it has forgotten it.
    fn advertise_again(&mut self, node: usize) {
        for publisher in 0..self.publishers.len() {
            if self.publishers[publisher].node == node {
                let sets = self.publishers[publisher].sets.clone();
                sets.iter().for_each(|(set, serves)| self.advertise(publisher, set, *serves));
            }
        }
    }

    /// Pulls and pushes reach whom the oracle names, without a second transmission.
    fn check_all_reached(&mut self) {
        self.run_for(5 * SECOND_NS);
        let mut asked = self.ask(8, 8, TagPacketKind::Pull, &FAN_OUTS, 1);
        asked.extend(self.ask(8, 8, TagPacketKind::Push, &[None], 1));
        self.run_for(5 * SECOND_NS);
        assert!(self.check_reached(&asked, true) > 30);
    }
}

/// The story: four seconds of hellos with the root's number and a sequence number 2^31 ahead isolated a router until it
/// was started again.
#[test]
fn forged_hellos_isolate_no_router_for_ten_seconds() {
    let mut world = World::new(41, 20, 10, 0.0, &[1]);
    world.publish(4);
    world.run_for(REPAIR_NS);
    let root = world.net.trees(world.nodes[0])[0].root;
    let jumps = [1, 20, 64, 65, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 64, u32::MAX];
    let mut longest = 0;
    for jump in jumps {
        for place in 0..3 {
            // Beside the root, beside a leaf, and anywhere.
            let wire = match place {
                0 => world.wires.iter().position(|wire| wire.ends.contains(&world.root())).unwrap(),
                1 => world.wires.len() - 1,
                _ => world.rng.usize(0..world.wires.len()),
            };
            let end = world.rng.usize(0..2);
            let (victim, face) = (world.wires[wire].ends[end], world.wires[wire].faces[end]);
            world.forge_hellos(victim, face, root, jump);
            longest = longest.max(world.repaired_within(10_000));
        }
    }
    println!("after forged hellos the tree was whole again within {longest} ms");
    world.check_all_reached();
    world.audit();
}

/// Routers start again by clocks that are hours and decades ahead or behind, the root too.
#[test]
fn routers_whose_clocks_jump_are_back_within_ten_seconds() {
    const HOUR_MS: u64 = 3_600_000;
    const FIFTY_YEARS_MS: u64 = 50 * 365 * 24 * HOUR_MS;
    let mut world = World::new(42, 20, 10, 0.0, &[1]);
    world.publish(4);
    world.run_for(REPAIR_NS);
    let mut longest = 0;
    for clock_ms in [FIFTY_YEARS_MS, 0, HOUR_MS, 0, FIFTY_YEARS_MS + HOUR_MS, FIFTY_YEARS_MS] {
        for node in [world.root(), world.rng.usize(0..20)] {
            world.net.restart_tags(world.nodes[node], clock_ms);
            world.advertise_again(node);
            world.run_for(100 * MS_NS);
            longest = longest.max(world.repaired_within(10_000));
        }
        world.check_all_reached();
    }
    println!("after a start by another clock the tree was whole again within {longest} ms");
    world.audit();
}
