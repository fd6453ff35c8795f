//! Packets in, faces out: one router in the middle of a tree.
//!
//! ```text
//!               parent (face 300)
//!                  │
//!   applications ─ router ─ light child (302)
//!   1, 2           │
//!               heavy child (301)
//! ```

use super::*;
use crate::{
    TagSet,
    locator::{Assignment, TreeLabels},
    matching::{Entry, linear::LinearTable},
};
use namewire_packet::tag::{TagPacketBuilder, TagPacketError, TreeEpoch};
use std::sync::Arc;

const PARENT: FaceId = FaceId(300);
const HEAVY: FaceId = FaceId(301);
const LIGHT: FaceId = FaceId(302);
const APP1: FaceId = FaceId(1001);
const APP2: FaceId = FaceId(1002);
const TREE: TreeEpoch = TreeEpoch { tree: 1, epoch: 7 };

/// Nodes: the root 0, this router 1, its heavy child 2 with two leaves, its light child 5.
const PARENTS: [Option<u32>; 6] = [None, Some(0), Some(1), Some(2), Some(2), Some(1)];
const ME: u32 = 1;

struct Router {
    tables: TagTables<LinearTable>,
    labels: TreeLabels<u32>,
    scratch: TagScratch,
}

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

impl Router {
    fn new() -> Self {
        let labels: TreeLabels<u32> = TreeLabels::of(&PARENTS).unwrap();
        let (state, label) = (*labels.state(ME), labels.label(ME));
        let tree = TreeTable { tree: 1, epoch: 7, state, label, faces: vec![HEAVY, LIGHT, PARENT] };
        let mut tables = TagTables { trees: vec![tree], ..TagTables::default() };
        tables.may_push.extend([APP1, APP2]);
        Router { tables, labels, scratch: TagScratch::default() }
    }

    /// Beyond each of these faces, the set was advertised.
    fn advertised(mut self, set: &str, faces: &[FaceId], serves: Serves) -> Self {
        let is_application = |face: FaceId| [APP1, APP2].contains(&face);
        let branch = |face: &FaceId| Branch { tree: 1, face: *face, serves, is_application: is_application(*face) };
        let tag_sets = faces.iter().copied().filter(|face| is_application(*face)).map(|face| (face, tags(set)));
        let value = self.tables.branch_sets.len() as u32;
        let branches = BranchSet::new(faces.iter().map(branch).collect(), tag_sets.collect());
        self.tables.branch_sets.push(Arc::new(branches));
        self.tables.descriptors.insert(Entry { descriptor: tags(set).descriptor(), value });
        self
    }

    fn send(&mut self, wire: &[u8], from: FaceId) -> Result<Vec<TagTransmit>, TagDrop> {
        let (result, out) = self.send_all(wire, from);
        result.map(|()| out)
    }

    fn send_all(&mut self, wire: &[u8], from: FaceId) -> (Result<(), TagDrop>, Vec<TagTransmit>) {
        let packet = TagPacket::parse(wire).unwrap_or_else(|error: TagPacketError| panic!("{error}"));
        let from = Arrival { face: from, is_application: [APP1, APP2].contains(&from) };
        let mut out = vec![TagTransmit { face: FaceId(0), hop_limit: 0, fan_out: 0 }];
        let is_application = |face| [APP1, APP2].contains(&face);
        let result = self.tables.view().forward(&packet, from, &is_application, &mut self.scratch, &mut out);
        (result, out)
    }

    /// The faces through which a packet leaves.
    fn faces(&mut self, packet: TagPacketBuilder<'_>, from: FaceId) -> Result<Vec<u64>, TagDrop> {
        let out = self.send(&packet.build(), from)?;
        Ok(out.iter().map(|transmit| transmit.face.0).collect())
    }
}

fn by_tags(kind: TagPacketKind, set: &TagSet) -> TagPacketBuilder<'_> {
    let filter = set.descriptor().to_bytes();
    TagPacketBuilder::by_descriptor(kind, TREE, filter, set.tags().iter().map(String::as_str))
}

fn pull(set: &TagSet) -> TagPacketBuilder<'_> {
    by_tags(TagPacketKind::Pull, set)
}

fn push(set: &TagSet) -> TagPacketBuilder<'_> {
    by_tags(TagPacketKind::Push, set)
}

#[test]
fn a_pull_goes_to_the_largest_subset_that_others_advertised() {
    let mut router = Router::new()
        .advertised("concert, classical", &[HEAVY], Serves::PULL)
        .advertised("concert", &[LIGHT], Serves::PULL)
        .advertised("concert, classical, ninth", &[PARENT], Serves::PUSH);
    let wanted = tags("classical, Beethoven, ninth, concert, 360bps");
    assert_eq!(router.faces(pull(&wanted), APP1), Ok(vec![301]));
    assert_eq!(router.faces(pull(&wanted), HEAVY), Ok(vec![302]), "never back");
    assert_eq!(router.faces(pull(&tags("opera")), APP1), Err(TagDrop::NoMatch));
    assert_eq!(router.faces(pull(&wanted).fan_out(2), PARENT), Ok(vec![301, 302]));
}

#[test]
fn a_push_goes_to_all_that_asked_but_its_sender() {
    let mut router = Router::new()
        .advertised("concert", &[HEAVY, LIGHT, APP1], Serves::PUSH)
        .advertised("classical", &[HEAVY, APP1, APP2, PARENT], Serves::BOTH)
        .advertised("jazz", &[PARENT], Serves::PUSH);
    let about = tags("concert, classical, tonight");
    assert_eq!(router.faces(push(&about), APP2), Ok(vec![300, 301, 302, 1001]));
    assert_eq!(router.faces(push(&about), HEAVY), Ok(vec![300, 302, 1001, 1002]));
}

#[test]
fn several_branches_of_one_descriptor_are_chosen_by_the_nonce() {
    let mut router = Router::new().advertised("a", &[HEAVY, LIGHT, PARENT], Serves::PULL);
    let set = tags("a");
    let chosen: Vec<u64> = (0..6).map(|nonce| router.faces(pull(&set).nonce(nonce), APP1).unwrap()[0]).collect();
    assert_eq!(chosen, [300, 301, 302, 300, 301, 302]);
}

#[test]
fn the_fan_out_is_shared_and_never_exceeded() {
    let mut router = Router::new().advertised("a", &[HEAVY, LIGHT, PARENT, APP2], Serves::BOTH);
    let set = tags("a, b");
    let mut shares = |fan_out: u32| -> Vec<u32> {
        let out = router.send(&pull(&set).fan_out(fan_out).build(), APP1).unwrap();
        out.iter().map(|transmit| transmit.fan_out).collect()
    };
    assert_eq!(shares(2), [1, 1]);
    assert_eq!(shares(4), [1, 1, 1, 1]);
    assert_eq!(shares(10), [3, 3, 2, 2]);
    assert_eq!(router.faces(pull(&set).fan_out(0), APP1), Err(TagDrop::NoFanOut));
}

#[test]
fn an_application_gets_only_what_its_tags_ask_for() {
    // The set of branches says that the filter matches; the tags do not.
    let mut router = Router::new().advertised("a", &[LIGHT], Serves::BOTH);
    let branch = Branch { tree: 1, face: APP1, serves: Serves::BOTH, is_application: true };
    router.tables.branch_sets.push(Arc::new(BranchSet::new(vec![branch], vec![(APP1, tags("elsewhere"))])));
    router.tables.descriptors.insert(Entry { descriptor: tags("a, b").descriptor(), value: 1 });
    let set = tags("a, b, c");
    assert_eq!(router.faces(pull(&set), PARENT), Ok(vec![302]), "the next largest subset");
    assert_eq!(router.faces(push(&set), PARENT), Ok(vec![302]));
    assert_eq!(router.faces(pull(&set), LIGHT), Err(TagDrop::FalsePositive));
}

#[test]
fn a_locator_leads_along_the_tree() {
    let mut router = Router::new();
    let label = |node: u32, router: &Router| router.labels.label(node).to_bytes();
    for (node, face) in [(0, 300), (2, 301), (3, 301), (4, 301), (5, 302), (1, 1002)] {
        let label = label(node, &router);
        let place = Place { endpoint: 1002, label: &label };
        let packet = TagPacketBuilder::by_locator(TagPacketKind::Reply, TREE, place);
        assert_eq!(router.faces(packet, APP1), Ok(vec![face]), "node {node}");
    }
    let here = label(ME, &router);
    let to = |endpoint| TagPacketBuilder::by_locator(TagPacketKind::Pull, TREE, Place { endpoint, label: &here });
    assert_eq!(router.faces(to(300), HEAVY), Err(TagDrop::NoEndpoint), "a face, but no application");
    assert_eq!(router.faces(to(1001), APP1), Err(TagDrop::BackToSender));
    let root = label(0, &router);
    let up = TagPacketBuilder::by_locator(TagPacketKind::Reply, TREE, Place { endpoint: 0, label: &root });
    assert_eq!(router.faces(up, PARENT), Err(TagDrop::BackToSender));
}

#[test]
fn a_forged_label_is_refused_or_goes_astray_without_harm() {
    let mut router = Router::new();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(1..13)).map(|_| random.u8(..)).collect();
        let place = Place { endpoint: random.u32(..), label: &bytes };
        let packet = TagPacketBuilder::by_locator(TagPacketKind::Push, TREE, place);
        let went = router.faces(packet, PARENT);
        assert!(matches!(went.as_deref(), Err(_) | Ok([301 | 302 | 1001 | 1002])), "{bytes:?}: {went:?}");
    }
}

#[test]
fn trees_epochs_and_hop_limits_stop_stray_packets() {
    let mut router = Router::new().advertised("a", &[LIGHT, APP1], Serves::BOTH);
    let set = tags("a");
    let of = |tree: TreeEpoch| {
        let filter = set.descriptor().to_bytes();
        TagPacketBuilder::by_descriptor(TagPacketKind::Push, tree, filter, ["a"])
    };
    assert_eq!(router.faces(of(TreeEpoch { tree: 2, epoch: 7 }), HEAVY), Err(TagDrop::UnknownTree));
    assert_eq!(router.faces(of(TreeEpoch { tree: 1, epoch: 6 }), HEAVY), Err(TagDrop::StaleEpoch));
    assert_eq!(router.faces(of(TREE), FaceId(999)), Err(TagDrop::NotOnTree));
    assert_eq!(router.faces(of(TREE).hop_limit(1), HEAVY), Ok(vec![302, 1001]));
    let (dropped, out) = router.send_all(&of(TREE).hop_limit(0).build(), HEAVY);
    assert_eq!(dropped, Err(TagDrop::HopLimitZero), "the copy for a link has a counter");
    assert_eq!(out.iter().map(|transmit| transmit.face).collect::<Vec<_>>(), [APP1], "an application still gets it");
    assert_eq!(router.faces(of(TREE).hop_limit(0), APP1), Err(TagDrop::HopLimitZero));
    let all_ones = TagPacketBuilder::by_descriptor(TagPacketKind::Pull, TREE, [255; 24], []);
    assert_eq!(router.faces(all_ones, HEAVY), Err(TagDrop::DescriptorTooHeavy));
    let false_filter =
        || TagPacketBuilder::by_descriptor(TagPacketKind::Push, TREE, tags("a").descriptor().to_bytes(), ["b"]);
    assert_eq!(router.faces(false_filter(), APP1), Err(TagDrop::DescriptorMismatch));
    assert_eq!(router.faces(false_filter(), HEAVY), Ok(vec![302]), "but the application here gets nothing");
    let reply = TagPacketBuilder::by_descriptor(TagPacketKind::Reply, TREE, [0; 24], []);
    assert_eq!(router.faces(reply, HEAVY), Err(TagDrop::ReplyByDescriptor));
}

#[test]
fn the_root_sends_nothing_to_a_parent() {
    let root = Assignment::of(WideLabel::root(), &[]).unwrap();
    let mut router = Router::new();
    let label = WideLabel::root();
    router.tables.trees[0] = TreeTable { tree: 1, epoch: 7, state: root.state, label, faces: Vec::new() };
    let label = router.labels.label(4).to_bytes();
    let packet = TagPacketBuilder::by_locator(TagPacketKind::Reply, TREE, Place { endpoint: 1, label: &label });
    assert_eq!(router.faces(packet, APP1), Err(TagDrop::BadLabel));
}

#[test]
fn an_application_cannot_choose_where_replies_go_and_may_leave_the_tree_open() {
    let mut router = Router::new().advertised("a", &[HEAVY], Serves::BOTH);
    let set = tags("a");
    let filter = set.descriptor().to_bytes();
    let open = TreeEpoch { tree: 0, epoch: 0 };
    let forged = Place { endpoint: 1, label: &[1, 2, 3] };
    let wire = TagPacketBuilder::by_descriptor(TagPacketKind::Pull, open, filter, ["a"]).reply_to(forged).build();
    let completed = router.tables.view().completed(&TagPacket::parse(&wire).unwrap(), APP1).unwrap();
    let packet = TagPacket::parse(&completed).unwrap();
    let label = router.labels.label(ME).to_bytes();
    assert_eq!((packet.tree, packet.reply_to), (TREE, Some(Place { endpoint: 1001, label: &label })));
    assert_eq!(router.send(&completed, APP1).unwrap().len(), 1);
    let stale = TreeEpoch { tree: 1, epoch: 3 };
    let follow_up = TagPacketBuilder::by_locator(TagPacketKind::Pull, stale, forged).build();
    let completed = router.tables.view().completed(&TagPacket::parse(&follow_up).unwrap(), APP1).unwrap();
    assert_eq!(TagPacket::parse(&completed).unwrap().tree, stale, "a locator belongs to its epoch");
    let elsewhere = TagPacketBuilder::by_locator(TagPacketKind::Pull, TreeEpoch { tree: 9, epoch: 0 }, forged).build();
    let packet = TagPacket::parse(&elsewhere).unwrap();
    assert_eq!(router.tables.view().completed(&packet, APP1), Err(TagDrop::UnknownTree));
}

#[test]
fn only_applications_that_joined_may_push() {
    let mut router = Router::new().advertised("a", &[LIGHT], Serves::BOTH);
    router.tables.may_push.remove(&APP2);
    let set = tags("a");
    assert_eq!(router.faces(push(&set), APP2), Err(TagDrop::PushNotAllowed));
    assert_eq!(router.faces(pull(&set), APP2), Ok(vec![302]), "everyone may pull");
    assert_eq!(router.faces(push(&set), HEAVY), Ok(vec![302]), "its own router has asked it");
}
