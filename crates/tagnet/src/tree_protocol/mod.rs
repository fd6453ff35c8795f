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
//! number. So parents never form a circle among routers that believe in one root, whatever is lost or late. Routers
//! that believe in different roots take no labels from each other. A router without such a parent is a root of its own,
//! until a newer sequence number reaches it on another way. A root that is gone raises no sequence number; after
//! [`TreeTimes::root_dead_ms`] routers believe only a newer number.
//!
//! # Labels
//! Each router tells its parent the size of its subtree, and its shape: a hash of its children, with the sizes and
//! shapes of their subtrees. When the shape at the root has not changed for [`TreeTimes::settle_ms`], the root begins
//! an epoch with a random number, and labels its children. Each router that has its label labels its own children. A
//! label comes with the shape for which it was made. A router whose subtree has another shape does not take the label:
//! the new shape is on its way to the root, and another epoch will follow. So within an epoch a label stands for one
//! router. Sizes alone did not suffice: if a child moves from one router to another below the same parent, the sizes
//! above stay, and with them the epoch; the two routers got other labels in it, and packets arrived at the wrong one.
//!
//! # Limits
//! Neighbours: as many as the caller has faces. A neighbour that lies about its size or number can pull the tree to
//! itself, as in any spanning-tree protocol: who may take part is a matter of trust rules. Sums of sizes are checked.

mod hello;
#[cfg(test)]
mod tests;

pub use hello::{ChildLabel, TreeHello};

use crate::{
    forwarder::TreeTable,
    locator::{Assignment, WideLabel},
};
use namewire_packet::FaceId;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

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
        TreeTimes { hello_ms: 1_000, neighbour_dead_ms: 3_500, root_dead_ms: 8_000, settle_ms: 500 }
    }
}

/// The root that a router believes in, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    root: u64,
    sequence: u32,
    distance: u16,
}

/// What a router has told its neighbours of a root.
#[derive(Clone, Copy, Debug)]
struct Told {
    sequence: u32,
    /// The least distance, for that sequence number.
    distance: u16,
    /// When the sequence number last rose.
    rose_ms: u64,
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
    /// The sequence number of this router as a root.
    sequence: u32,
    /// What this router has told of each root that it believed in.
    told: BTreeMap<u64, Told>,
    /// The children as they are, and since when.
    children: Vec<Child>,
    settled_since_ms: u64,
    labelled: Option<Labelled>,
    next_hello_ms: u64,
    /// Hellos sent, above the first sequence number in the upper half.
    hello_number: u64,
    /// Something changed that neighbours should hear at once.
    is_due: bool,
}

/// Most roots for which a router remembers what it told. It forgets the oldest first.
const TOLD_MAX: usize = 64;

/// True if sequence number `a` is newer than `b`; they wrap around.
fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl TreeProtocol {
    /// A router with this number, which must be unique, alone in a tree.
    ///
    /// `sequence` is its first sequence number. If a router starts again, this number must be newer than all numbers of
    /// its earlier life. The time in seconds is newer, since sequence numbers rise once for each regular hello.
    pub fn new(tree: u16, me: u64, sequence: u32, times: TreeTimes, seed: u64, now_ms: u64) -> Self {
        TreeProtocol {
            tree,
            me,
            times,
            random: fastrand::Rng::with_seed(seed),
            neighbours: BTreeMap::new(),
            parent: None,
            claim: Claim { root: me, sequence, distance: 0 },
            sequence,
            told: BTreeMap::new(),
            children: Vec::new(),
            settled_since_ms: now_ms,
            labelled: None,
            next_hello_ms: now_ms,
            hello_number: u64::from(sequence) << 32,
            is_due: true,
        }
    }

    /// A neighbour's hello arrived. False if it is no news: it was overtaken, or is not of this tree.
    pub fn heard(&mut self, face: FaceId, hello: TreeHello, now_ms: u64) -> bool {
        // An older hello that was overtaken would bring back an older sequence number, and with it another parent.
        let is_overtaken = |last: &Neighbour| last.hello.sender == hello.sender && hello.number <= last.hello.number;
        if hello.tree != self.tree || hello.sender == self.me || self.neighbours.get(&face).is_some_and(is_overtaken) {
            return false;
        }
        self.neighbours.insert(face, Neighbour { hello, heard_ms: now_ms });
        self.follow(now_ms);
        true
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
            self.sequence = self.sequence.wrapping_add(1);
            if self.claim.root == self.me {
                self.claim.sequence = self.sequence;
            }
        }
        self.is_due = false;
        true
    }

    /// When [`TreeProtocol::run`] should be called next, at the latest.
    pub fn deadline_ms(&self) -> u64 {
        match (self.is_due, self.lacks_epoch()) {
            (true, _) => 0,
            (false, true) => self.next_hello_ms.min(self.settled_since_ms + self.times.settle_ms),
            (false, false) => self.next_hello_ms,
        }
    }

    /// True for a root whose children, or their subtrees, are not those of its last epoch.
    fn lacks_epoch(&self) -> bool {
        let is_of_epoch = |labelled: &Labelled| labelled.parent.is_none() && labelled.children == self.children;
        self.parent.is_none() && !self.labelled.as_ref().is_some_and(is_of_epoch)
    }

    /// The next hello for a neighbour.
    pub fn hello(&mut self, face: FaceId) -> TreeHello {
        self.hello_number += 1;
        let parent = self.parent.and_then(|parent| self.neighbours.get(&parent));
        TreeHello {
            tree: self.tree,
            sender: self.me,
            number: self.hello_number,
            root: self.claim.root,
            sequence: self.claim.sequence,
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

    /// The nodes of this router's subtree.
    pub fn subtree(&self) -> u32 {
        self.children.iter().fold(1, |sum: u32, child| sum.saturating_add(child.size))
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
        if parent.is_some() {
            self.note_told(claim, now_ms);
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
        let is_feasible = self.told.get(&claim.root).is_none_or(|told| {
            let is_alive = now_ms < told.rose_ms + self.times.root_dead_ms;
            let is_nearer = claim.sequence == told.sequence && hello.distance < told.distance;
            is_newer(claim.sequence, told.sequence) || is_alive && is_nearer
        });
        is_feasible.then_some(claim)
    }

    fn note_told(&mut self, claim: Claim, now_ms: u64) {
        match self.told.get_mut(&claim.root) {
            Some(told) if told.sequence == claim.sequence => told.distance = told.distance.min(claim.distance),
            _ => {
                let told = Told { sequence: claim.sequence, distance: claim.distance, rose_ms: now_ms };
                self.told.insert(claim.root, told);
            }
        }
        if self.told.len() > TOLD_MAX {
            let oldest = self.told.iter().min_by_key(|(_, told)| told.rose_ms).map(|(root, _)| *root);
            oldest.and_then(|root| self.told.remove(&root));
        }
    }

    fn count_children(&mut self, now_ms: u64) {
        let is_child = |(face, neighbour): &(&FaceId, &Neighbour)| {
            neighbour.hello.parent == self.me && Some(**face) != self.parent && neighbour.hello.root == self.claim.root
        };
        let children = self.neighbours.iter().filter(is_child);
        let child = |(face, Neighbour { hello, .. }): (&FaceId, &Neighbour)| {
            let (router, size, shape) = (hello.sender, hello.subtree.max(1), hello.shape);
            Child { face: *face, router, size, shape }
        };
        let children: Vec<Child> = children.map(child).collect();
        if children != self.children {
            self.children = children;
            self.settled_since_ms = now_ms;
            self.is_due = true;
        }
    }

    /// The root begins an epoch when the shape of the tree has settled; others take the label that their parent gives.
    fn take_label(&mut self, now_ms: u64) {
        let (epoch, label) = match self.parent.and_then(|face| self.neighbours.get(&face)) {
            None => {
                if !self.lacks_epoch() || now_ms < self.settled_since_ms + self.times.settle_ms {
                    return;
                }
                (self.random.u32(..), WideLabel::root())
            }
            Some(parent) => {
                let Some(given) = parent.hello.label else { return };
                let present = self.labelled.as_ref();
                let has_it = present.is_some_and(|labelled| {
                    (labelled.epoch, labelled.assignment.label()) == (given.epoch, given.label)
                        && labelled.parent == self.parent
                        && labelled.children == self.children
                });
                if has_it || given.shape != self.shape() {
                    return;
                }
                (given.epoch, given.label)
            }
        };
        let sizes: Vec<u32> = self.children.iter().map(|child| child.size).collect();
        // It fails only if a neighbour lied about sizes.
        let Ok(assignment) = Assignment::of(label, &sizes) else { return };
        self.labelled = Some(Labelled { epoch, assignment, children: self.children.clone(), parent: self.parent });
        self.is_due = true;
    }
}

impl Labelled {
    fn label_of(&self, child: FaceId) -> Option<ChildLabel> {
        let place = self.children.iter().position(|labelled| labelled.face == child)?;
        Some(ChildLabel { epoch: self.epoch, label: self.assignment.labels[place], shape: self.children[place].shape })
    }
}
