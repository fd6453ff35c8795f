//! Tree protocol: how neighbours agree on a spanning tree and on its labels.
//!
//! Question: who is my parent, who are my children, and what is my label? Each router of the neighbour graph runs one
//! [`TreeProtocol`] for each tree, and sends each neighbour a [`TreeHello`] now and then. After a change, all routers
//! that are connected have the lowest router number as their root, parents that lead there, and labels of one epoch.
//!
//! Source: ours; the paper leaves this question to its routing protocol. Labels are Thorup and Zwick's
//! ([`crate::locator`]). The rule against loops is that of DSDV and Babel (RFC 8966 §2.4): sequence numbers and
//! feasible distances.
//!
//! # Parents
//! The root raises a sequence number with every hello. Every other router passes on the newest number that it has heard
//! from its parent. A router takes a parent only if the parent's sequence number is newer than its own; or if the
//! numbers are equal and the parent's distance is smaller than every distance that the router has announced with that
//! number. So among routers that believe in the same root, parents never form a circle, whichever packets are lost or
//! late. Routers that believe in different roots take no labels from each other. A router without such a parent is its
//! own root, until a newer sequence number reaches it by another path. A root that is gone raises no sequence number.
//! After [`TreeTimes::root_dead_ms`] routers believe only a newer number of this root, and some seconds later they
//! forget the old one ([`told`]).
//!
//! Sequence numbers begin at 1 with each start of a router, and have nothing to do with any clock. A root that receives
//! a higher number under its own name, or a neighbour's report of one, jumps past that number. So routers believe a
//! restarted root at once. A root that has run for some time jumps only by as much as its neighbours would believe.
//!
//! # Labels
//! Each router reports to its parent the size of its subtree, and its shape: a hash of its children, with the sizes and
//! shapes of their subtrees. When the shape at the root has not changed for [`TreeTimes::settle_ms`], the root begins
//! an epoch with a random number, and labels its children. Each router that has its label labels its own children. A
//! label comes with the shape for which it was made. A router whose subtree has another shape does not take the label:
//! the new shape is on its way to the root, and another epoch will follow. So within an epoch a label identifies one
//! router. Sizes alone did not suffice. If a child moves from one router to another below the same parent, the sizes
//! above do not change, and neither does the epoch. The two routers got other labels in the same epoch, and packets
//! arrived at the wrong one.
//!
//! Children that claim more nodes than labels have room for get fewer ([`subtree_shares`]); a label comes with the
//! number granted. If a child claims something else with each hello, the tree never rests. Then the root begins an
//! epoch after [`UNSETTLED_MAX`] times the usual wait. The parents of such a child get no label meanwhile, because
//! their shape never equals the shape for which a label was made. It was refused to count a child's changes and delay
//! those beyond a limit: after an attack, each level of the tree accepted the true values later than the level below.
//!
//! # Limits
//! Neighbours: as many as the caller has faces. Routers: [`ROUTERS_MAX`]. A neighbour that lies about the root or its
//! distance pulls the tree to itself while it lies, as in any spanning-tree protocol. Trust rules and the tree's key
//! decide who may take part ([`crate::routing`]). Some seconds after the lie ends, the tree is as before.

mod hello;
mod subtree_shares;
#[cfg(test)]
mod tests;
mod told;

pub use hello::{ChildLabel, TreeHello};
pub use subtree_shares::ROUTERS_MAX;

use crate::{
    forwarder::TreeTable,
    locator::{Assignment, WideLabel},
};
use namewire_packet::FaceId;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};
use subtree_shares::subtree_shares;
use told::{Belief, HeardClaim, JUMP_MAX, ToldRoots};

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeTimes {
    /// Between hellos to a neighbour.
    pub hello_ms: u64,
    /// A neighbour that is silent for that long is gone.
    pub neighbour_dead_ms: u64,
    /// A root whose sequence number did not rise for that long is gone.
    pub root_dead_ms: u64,
    /// The root labels the tree when its shape has not changed for that long.
    pub settle_ms: u64,
}

impl Default for TreeTimes {
    fn default() -> Self {
        TreeTimes { hello_ms: 1_000, neighbour_dead_ms: 3_500, root_dead_ms: 5_000, settle_ms: 500 }
    }
}

/// The root that a router believes in, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    root: u64,
    sequence: u32,
    distance: u16,
}

/// What a neighbour said last.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    hello: TreeHello,
    heard_ms: u64,
}

/// A child with its subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Child {
    face: FaceId,
    router: u64,
    size: u32,
    shape: u64,
}

/// This router's label, and those of its children.
#[derive(Clone, Debug)]
struct Labelled {
    epoch: u32,
    assignment: Assignment<u32>,
    /// The children in the order of the assignment's labels, with the shapes for which these were made.
    children: Vec<Child>,
    /// The face of the parent when the label came; `None` at the root.
    parent: Option<FaceId>,
    /// The nodes for which this router's subtree has labels, and the subtrees of the children in their order.
    granted: u32,
    sizes: Vec<u32>,
}

/// One router's part in one tree.
#[derive(Debug)]
pub struct TreeProtocol {
    tree: u16,
    me: u64,
    times: TreeTimes,
    random: fastrand::Rng,
    neighbours: BTreeMap<FaceId, Neighbour>,
    parent: Option<FaceId>,
    claim: Claim,
    /// The sequence number of this router as a root, and when it was raised.
    sequence: u32,
    raised_ms: u64,
    born_ms: u64,
    told: ToldRoots,
    /// Hellos whose sequence number was too far from what was told.
    jumps_refused: u64,
    /// The children as they are, and since when; and when they first changed since the last epoch.
    children: Vec<Child>,
    settled_since_ms: u64,
    unsettled_since_ms: Option<u64>,
    labelled: Option<Labelled>,
    next_hello_ms: u64,
    /// Hellos sent, above a random number in the upper half.
    hello_number: u64,
    /// Something changed that neighbours should hear at once.
    is_due: bool,
}

/// A hello whose number is at most so far below the last one's was overtaken; any other is of another life of the
/// sender.
const OVERTAKEN_MAX: u64 = 1 << 16;
/// A root that waits for its tree to rest waits at most so many times [`TreeTimes::settle_ms`].
const UNSETTLED_MAX: u64 = 8;

impl TreeProtocol {
    /// A router with this number, which must be unique, alone in a tree.
    pub fn new(tree: u16, me: u64, times: TreeTimes, seed: u64, now_ms: u64) -> Self {
        let (mut random, sequence) = (fastrand::Rng::with_seed(seed), 1);
        TreeProtocol {
            tree,
            me,
            times,
            hello_number: u64::from(random.u32(..)) << 32,
            random,
            neighbours: BTreeMap::new(),
            parent: None,
            claim: Claim { root: me, sequence, distance: 0 },
            sequence,
            raised_ms: now_ms,
            born_ms: now_ms,
            told: ToldRoots::default(),
            jumps_refused: 0,
            children: Vec::new(),
            settled_since_ms: now_ms,
            unsettled_since_ms: None,
            labelled: None,
            next_hello_ms: now_ms,
            is_due: true,
        }
    }

    /// A neighbour's hello arrived. False if it is no news: it was overtaken, or is not of this tree.
    pub fn heard(&mut self, face: FaceId, hello: TreeHello, now_ms: u64) -> bool {
        let last = self.neighbours.get(&face);
        // An older hello that was overtaken would bring back an older sequence number, and with it another parent.
        let is_overtaken = |last: &Neighbour| {
            let behind = last.hello.number.wrapping_sub(hello.number);
            last.hello.sender == hello.sender && behind <= OVERTAKEN_MAX
        };
        if hello.tree != self.tree || hello.sender == self.me || last.is_some_and(is_overtaken) {
            return false;
        }
        let neighbour = Neighbour { hello, heard_ms: now_ms };
        if hello.root == self.me {
            self.jump_past(hello.sequence, now_ms);
        }
        if hello.heard_of_you != 0 {
            self.jump_past(hello.heard_of_you, now_ms);
        }
        let claim = heard_claim(&neighbour);
        self.jumps_refused += u64::from(self.told.belief(&claim, &self.times, now_ms) == Belief::Jump);
        self.neighbours.insert(face, neighbour);
        self.follow(now_ms);
        true
    }

    /// As a root, goes on above a number that routers have heard of this root. A router that has just started takes any
    /// number, because it may be of its earlier life. Later, neighbours would not believe a large jump.
    fn jump_past(&mut self, heard: u32, now_ms: u64) {
        let ahead = heard.wrapping_sub(self.sequence).cast_signed();
        let is_young = now_ms < self.born_ms + self.times.root_dead_ms;
        if ahead <= 0 {
            return;
        }
        if !is_young && ahead > JUMP_MAX / 2 {
            self.jumps_refused += 1;
            return;
        }
        self.raise_above(heard, now_ms);
        self.is_due = true;
    }

    /// Takes the number after this one. 0 is none.
    fn raise_above(&mut self, sequence: u32, now_ms: u64) {
        (self.sequence, self.raised_ms) = (sequence.wrapping_add(1).max(1), now_ms);
        if self.claim.root == self.me {
            self.claim.sequence = self.sequence;
        }
    }

    /// A hello to every neighbour is due: there is a new one.
    pub const fn greet(&mut self) {
        self.is_due = true;
    }

    /// A neighbour's face is gone or down.
    pub fn lost(&mut self, face: FaceId, now_ms: u64) {
        if self.neighbours.remove(&face).is_some() {
            self.follow(now_ms);
        }
    }

    /// Lets time pass. True if a hello is due to every neighbour: see [`TreeProtocol::hello`].
    pub fn run(&mut self, now_ms: u64) -> bool {
        let is_alive = |neighbour: &Neighbour| now_ms < neighbour.heard_ms + self.times.neighbour_dead_ms;
        self.neighbours.retain(|_, neighbour| is_alive(neighbour));
        self.follow(now_ms);
        if !self.is_due && now_ms < self.next_hello_ms {
            return false;
        }
        if now_ms >= self.next_hello_ms {
            self.next_hello_ms = now_ms + self.times.hello_ms;
            self.raise_above(self.sequence, now_ms);
        }
        self.is_due = false;
        true
    }

    /// When [`TreeProtocol::run`] should be called next, at the latest.
    pub fn deadline_ms(&self) -> u64 {
        match (self.is_due, self.lacks_epoch()) {
            (true, _) => 0,
            (false, true) => self.next_hello_ms.min(self.epoch_due_ms()),
            (false, false) => self.next_hello_ms,
        }
    }

    /// True for a root whose children, or their subtrees, are not those of its last epoch.
    fn lacks_epoch(&self) -> bool {
        let is_of_epoch = |labelled: &Labelled| labelled.parent.is_none() && labelled.children == self.children;
        self.parent.is_none() && !self.labelled.as_ref().is_some_and(is_of_epoch)
    }

    /// When a root that lacks an epoch begins one.
    fn epoch_due_ms(&self) -> u64 {
        let settle_ms = self.times.settle_ms;
        let latest_ms = self.unsettled_since_ms.map_or(u64::MAX, |since_ms| since_ms + UNSETTLED_MAX * settle_ms);
        latest_ms.min(self.settled_since_ms + settle_ms)
    }

    /// Takes the number of hellos whose sequence number was refused since this was last asked.
    pub fn take_jumps_refused(&mut self) -> u64 {
        std::mem::take(&mut self.jumps_refused)
    }

    /// The next hello for a neighbour.
    pub fn hello(&mut self, face: FaceId, now_ms: u64) -> TreeHello {
        self.hello_number += 1;
        let parent = self.parent.and_then(|parent| self.neighbours.get(&parent));
        let neighbour = self.neighbours.get(&face);
        let age_ms = match self.parent {
            Some(_) => self.told.age_ms(self.claim.root, now_ms),
            None => now_ms.saturating_sub(self.raised_ms),
        };
        TreeHello {
            tree: self.tree,
            sender: self.me,
            number: self.hello_number,
            root: self.claim.root,
            sequence: self.claim.sequence,
            age_ms: u16::try_from(age_ms).unwrap_or(u16::MAX),
            heard_of_you: neighbour
                .map_or(0, |neighbour| self.told.sequence_of(neighbour.hello.sender, &self.times, now_ms)),
            distance: self.claim.distance,
            parent: parent.map_or(self.me, |parent| parent.hello.sender),
            subtree: self.subtree(),
            shape: self.shape(),
            label: self.labelled.as_ref().and_then(|labelled| labelled.label_of(face)),
        }
    }

    /// The face of the parent; `None` at a root.
    pub fn parent(&self) -> Option<FaceId> {
        self.parent
    }

    /// The faces of the children.
    pub fn children(&self) -> impl Iterator<Item = FaceId> {
        self.children.iter().map(|child| child.face)
    }

    /// This router's number.
    pub const fn router(&self) -> u64 {
        self.me
    }

    /// The number of the root.
    pub fn root(&self) -> u64 {
        self.claim.root
    }

    /// This router's label in the present epoch.
    pub fn label(&self) -> Option<(u32, WideLabel)> {
        self.labelled.as_ref().map(|labelled| (labelled.epoch, labelled.assignment.label()))
    }

    /// The tree as the forwarder needs it; `None` before the first label.
    pub fn table(&self) -> Option<TreeTable> {
        let labelled = self.labelled.as_ref()?;
        let mut faces = vec![FaceId::NULL; labelled.children.len()];
        for (child, interface) in labelled.children.iter().zip(&labelled.assignment.interfaces) {
            faces[*interface as usize - 1] = child.face;
        }
        faces.extend(labelled.parent);
        let Labelled { epoch, assignment, .. } = labelled;
        let (epoch, state, label) = (*epoch, assignment.state, assignment.label());
        Some(TreeTable { tree: self.tree, epoch, state, label, faces })
    }

    /// The nodes of this router's subtree, as its children say: at most [`ROUTERS_MAX`].
    pub fn subtree(&self) -> u32 {
        self.children.iter().fold(1, |sum: u32, child| sum.saturating_add(child.size)).min(ROUTERS_MAX)
    }

    /// Changes with every change in this router's subtree.
    fn shape(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.children.hash(&mut hasher);
        hasher.finish()
    }

    /// Brings parent, children and labels up to date with what the neighbours said.
    fn follow(&mut self, now_ms: u64) {
        self.choose_parent(now_ms);
        self.count_children(now_ms);
        self.take_label(now_ms);
    }

    fn choose_parent(&mut self, now_ms: u64) {
        let candidate = self.neighbours.iter().filter_map(|(face, neighbour)| {
            let claim = self.claim_through(neighbour, now_ms)?;
            let is_other = Some(*face) != self.parent;
            Some(((claim.root, claim.distance, is_other, neighbour.hello.sender), *face, claim))
        });
        let (parent, claim) = match candidate.min_by_key(|(order, ..)| *order) {
            Some((_, face, claim)) => (Some(face), claim),
            None => (None, Claim { root: self.me, sequence: self.sequence, distance: 0 }),
        };
        if let Some(parent) = parent.and_then(|face| self.neighbours.get(&face)) {
            self.told.note(claim, heard_claim(parent).raised_ms, now_ms);
        }
        self.is_due |= self.claim != claim || self.parent != parent;
        (self.claim, self.parent) = (claim, parent);
    }

    /// What this router would claim with the neighbour as its parent; `None` if it may not, or would rather be a root.
    fn claim_through(&self, neighbour: &Neighbour, now_ms: u64) -> Option<Claim> {
        let hello = &neighbour.hello;
        let claim = Claim { root: hello.root, sequence: hello.sequence, distance: hello.distance.checked_add(1)? };
        if claim.root >= self.me || hello.parent == self.me {
            return None;
        }
        (self.told.belief(&heard_claim(neighbour), &self.times, now_ms) == Belief::Feasible).then_some(claim)
    }

    fn count_children(&mut self, now_ms: u64) {
        let is_child = |(face, neighbour): &(&FaceId, &Neighbour)| {
            neighbour.hello.parent == self.me && Some(**face) != self.parent && neighbour.hello.root == self.claim.root
        };
        let children = self.neighbours.iter().filter(is_child);
        let child = |(face, Neighbour { hello, .. }): (&FaceId, &Neighbour)| {
            let (router, size, shape) = (hello.sender, hello.subtree.clamp(1, ROUTERS_MAX), hello.shape);
            Child { face: *face, router, size, shape }
        };
        let children: Vec<Child> = children.map(child).collect();
        if children != self.children {
            self.children = children;
            self.settled_since_ms = now_ms;
            self.unsettled_since_ms.get_or_insert(now_ms);
            self.is_due = true;
        }
    }

    /// The root begins an epoch when the shape of the tree has settled; others take the label that their parent gives.
    fn take_label(&mut self, now_ms: u64) {
        let (epoch, label, granted) = match self.parent.and_then(|face| self.neighbours.get(&face)) {
            None => {
                if !self.lacks_epoch() {
                    self.unsettled_since_ms = None;
                    return;
                }
                if now_ms < self.epoch_due_ms() {
                    return;
                }
                (self.random.u32(..), WideLabel::root(), ROUTERS_MAX)
            }
            Some(parent) => {
                let Some(given) = parent.hello.label else { return };
                let present = self.labelled.as_ref();
                let has_it = present.is_some_and(|labelled| {
                    (labelled.epoch, labelled.assignment.label(), labelled.granted)
                        == (given.epoch, given.label, given.size)
                        && labelled.parent == self.parent
                        && labelled.children == self.children
                });
                if has_it || given.shape != self.shape() {
                    return;
                }
                (given.epoch, given.label, given.size)
            }
        };
        let claims: Vec<u32> = self.children.iter().map(|child| child.size).collect();
        let sizes = subtree_shares(&claims, granted.saturating_sub(1));
        // It fails only if there are fewer labels than children, which takes a neighbour that lies.
        let Ok(assignment) = Assignment::of(label, &sizes) else { return };
        let children = self.children.clone();
        self.labelled = Some(Labelled { epoch, assignment, children, parent: self.parent, granted, sizes });
        self.unsettled_since_ms = None;
        self.is_due = true;
    }
}

/// A neighbour's claim. An age is that of the hello, and the time since.
fn heard_claim(neighbour: &Neighbour) -> HeardClaim {
    let TreeHello { root, sequence, distance, age_ms, .. } = neighbour.hello;
    HeardClaim { root, sequence, distance, raised_ms: neighbour.heard_ms.saturating_sub(age_ms.into()) }
}

impl Labelled {
    fn label_of(&self, child: FaceId) -> Option<ChildLabel> {
        let place = self.children.iter().position(|labelled| labelled.face == child)?;
        let (label, shape) = (self.assignment.labels[place], self.children[place].shape);
        Some(ChildLabel { epoch: self.epoch, label, shape, size: self.sizes[place] })
    }
}
