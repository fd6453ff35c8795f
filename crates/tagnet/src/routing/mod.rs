//! Routing: one router's part in all trees, for the thread that controls it.
//!
//! ```text
//!   hellos ─────────► TreeProtocol, one for each tree ─► parent, children, labels ──────────┐
//!   announcements ──► Session, one for each link ──────► Advertisements ─► what to announce │
//!   applications ───────────────────────────────────────┘      │                            │
//!                                                              └─► LiveTables ◄─────────────┘
//! ```
//!
//! Question: what must this router send its neighbours, and which tables do its workers use? The caller reports faces,
//! packets and the time, and takes packets ([`TagRouting::take_packets`]). Workers read the tables
//! ([`TagRouting::tables`]) while they change.
//!
//! Links of a tree are its parent and its children. A link has a session for announcements in each direction. When a
//! link ends, the router withdraws from all other links what came through it.
//!
//! A router has a different number in each tree: a mix of its own number and the tree's. The router with the lowest
//! number becomes the root, so trees have different roots.
//!
//! # Limits
//! [`AdvertisementLimits`]. At most [`WAITING_MAX`] announcements wait for a neighbour. If there would be more, the
//! session begins again with the present state. A neighbour to whom [`BUSY_ENTRIES`] are on the way is told of changes,
//! but not yet of what it does not know. Only faces that the caller names as
//! neighbours take part, and in a tree with a key only routers that have it ([`authentication`]).

mod advertised_sets;
mod authentication;
mod refusal;
mod session;
#[cfg(test)]
mod tests;
pub mod wire;

pub use authentication::{KEY_BYTES, TreeKey};
pub use refusal::RoutingRefusal;

use crate::{
    TagSet,
    advertisements::{AdvertisementLimits, AdvertisementRefusal, Advertisements, Announcement, Known, TreeLink},
    forwarder::{BranchSet, LiveTables, Serves, TreeTable},
    matching::burst_trie::BuildError,
    tree_protocol::{TreeProtocol, TreeTimes},
};
use advertised_sets::AdvertisedSets;
use authentication::Authentication;
use namewire_packet::FaceId;
use session::{Session, Standing};
use std::collections::{BTreeMap, BTreeSet};
use wire::{AnnouncedEntry, Progress, RoutingPacket};

/// A link whose neighbour announced too much is heard again when this part of the face's share is free.
const FREE_BEFORE_HEARD_AGAIN: usize = 8;
/// Units of work on announcements in one call of [`TagRouting::run`], some milliseconds
/// ([`Advertisements::settle`]). What remains is done in the next ones.
const TURN_UNITS: usize = 8_192;
/// Announcements that wait for a neighbour before its session begins again: 8 MiB.
const WAITING_MAX: usize = 1 << 18;
/// Announcements that wait for a neighbour before it is told no more of what it does not know.
const BUSY_ENTRIES: usize = 4_096;
/// Sets of applications that end in one turn, and as many of applications that are gone.
const SETS_PER_TURN: usize = 1_024;

/// How a router takes part.
#[derive(Clone, Debug)]
pub struct TagRoutingConfig {
    /// The numbers of its trees.
    pub trees: Vec<u16>,
    /// The router's number, which must be unique. The lowest is the root.
    pub router: u64,
    /// How often and how long.
    pub times: TreeTimes,
    /// How much may be advertised.
    pub limits: AdvertisementLimits,
    /// The keys of trees that have one.
    pub keys: BTreeMap<u16, TreeKey>,
}

/// A tree and its links.
#[derive(Debug)]
struct Tree {
    protocol: TreeProtocol,
    links: BTreeMap<FaceId, Session>,
    /// The table that the caller has.
    table: Option<TreeTable>,
}

/// What a user may ask about a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeStatus {
    /// The number of the tree.
    pub tree: u16,
    /// This router's number in it.
    pub router: u64,
    /// The number of the root.
    pub root: u64,
    /// The parent; `None` at the root.
    pub parent: Option<FaceId>,
    /// The children.
    pub children: Vec<FaceId>,
    /// The nodes of the subtree.
    pub subtree: u32,
    /// Epoch and bytes of the label, once there is one.
    pub label: Option<(u32, Vec<u8>)>,
}

/// See the module documentation.
#[derive(Debug)]
pub struct TagRouting {
    limits: AdvertisementLimits,
    trees: BTreeMap<u16, Tree>,
    neighbours: BTreeSet<FaceId>,
    authentication: Authentication,
    advertisements: Advertisements,
    sets: AdvertisedSets,
    may_push: BTreeSet<FaceId>,
    random: fastrand::Rng,
    packets: Vec<(FaceId, Vec<u8>)>,
    refusals: [u64; RoutingRefusal::COUNT],
    /// Trees, or who may push.
    is_changed: bool,
}

/// The router's number in a tree: each router gets another for each, and two routers never the same.
fn number_in_tree(router: u64, tree: u16) -> u64 {
    // The multiplier of SplitMix64; tree 1 keeps the router's number.
    router ^ (u64::from(tree) - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl TagRouting {
    /// A router without neighbours.
    ///
    /// # Errors
    /// If there is no memory for its tables.
    pub fn new(config: &TagRoutingConfig, seed: u64, now_ms: u64) -> Result<Self, BuildError> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tree = |number: &u16| {
            let me = number_in_tree(config.router, *number);
            let protocol = TreeProtocol::new(*number, me, config.times, random.u64(..), now_ms);
            (*number, Tree { protocol, links: BTreeMap::new(), table: None })
        };
        let trees = config.trees.iter().map(&mut tree).collect();
        let silent_ms = config.times.neighbour_dead_ms;
        Ok(TagRouting {
            limits: config.limits,
            trees,
            neighbours: BTreeSet::new(),
            authentication: Authentication::new(config.keys.clone(), silent_ms, random.fork()),
            advertisements: Advertisements::new(config.limits)?,
            sets: AdvertisedSets::default(),
            may_push: BTreeSet::new(),
            random,
            packets: Vec::new(),
            refusals: [0; RoutingRefusal::COUNT],
            is_changed: true,
        })
    }

    /// A face whose neighbour may take part.
    pub fn neighbour_up(&mut self, face: FaceId) {
        if self.neighbours.insert(face) {
            for tree in self.trees.values_mut() {
                tree.protocol.greet();
            }
        }
    }

    /// A face is gone or down: of a neighbour, of an application, or of something else. What it advertised goes in the
    /// next turns.
    pub fn face_down(&mut self, face: FaceId, now_ms: u64) {
        if self.neighbours.remove(&face) {
            self.authentication.face_down(face);
            for tree in self.trees.values_mut() {
                tree.protocol.lost(face, now_ms);
            }
            self.follow_trees();
        }
        self.is_changed |= self.may_push.remove(&face);
        self.sets.face_down(face);
        for tree in self.trees.keys() {
            self.advertisements.withdraw_all(TreeLink { tree: *tree, face });
        }
    }

    /// A packet between routers arrived.
    pub fn received(&mut self, face: FaceId, packet: &[u8], now_ms: u64) {
        if let Err(why) = self.take(face, packet, now_ms) {
            self.refusals[why as usize] += 1;
        }
    }

    fn take(&mut self, face: FaceId, packet: &[u8], now_ms: u64) -> Result<(), RoutingRefusal> {
        if !self.neighbours.contains(&face) {
            return Err(RoutingRefusal::NotNeighbour);
        }
        let (packet, sealed) = self.authentication.open(face, packet, now_ms)?;
        let packet = RoutingPacket::parse(packet).map_err(|_| RoutingRefusal::Malformed)?;
        if self.authentication.has_key(packet.tree()) && sealed != Some(packet.tree()) {
            return Err(RoutingRefusal::NotAuthentic);
        }
        match packet {
            RoutingPacket::Hello(hello, progress) => {
                let number = hello.tree;
                let tree = self.trees.get_mut(&number).ok_or(RoutingRefusal::UnknownTree)?;
                let is_news = tree.protocol.heard(face, hello, now_ms);
                self.refusals[RoutingRefusal::SequenceJump as usize] += tree.protocol.take_jumps_refused();
                if is_news {
                    self.follow_trees();
                    self.progressed(TreeLink { tree: number, face }, progress, now_ms);
                }
                Ok(())
            }
            RoutingPacket::Announcements { tree, session, first, entries } => {
                self.announced(TreeLink { tree, face }, session, first, &entries)
            }
        }
    }

    /// Takes what a neighbour's hello says about the two sessions of a link.
    fn progressed(&mut self, link: TreeLink, progress: Progress, now_ms: u64) {
        let Some(session) = session(&mut self.trees, link) else { return };
        let is_new = progress.session != 0 && session.is_new(progress.session);
        let standing = session.confirmed(progress.heard, progress.next, now_ms);
        if is_new {
            session.follow(progress.session);
            self.advertisements.withdraw_all(link);
        }
        if standing == Standing::Forgotten {
            self.begin_session_again(link);
        }
    }

    /// Tells a neighbour everything again.
    fn begin_session_again(&mut self, link: TreeLink) {
        let number = self.random.u64(1..);
        let Some(session) = session(&mut self.trees, link) else { return };
        session.begin_again(number);
        self.advertisements.link_up(link);
    }

    fn announced(
        &mut self,
        link: TreeLink,
        number: u64,
        first: u64,
        entries: &[AnnouncedEntry],
    ) -> Result<(), RoutingRefusal> {
        if !self.trees.contains_key(&link.tree) {
            return Err(RoutingRefusal::UnknownTree);
        }
        let session = session(&mut self.trees, link).ok_or(RoutingRefusal::NotOnTree)?;
        if session.is_new(number) {
            // An old packet of a session that has ended would also come here. The sender's next hello puts it right.
            if first > 0 || number == 0 {
                return Ok(());
            }
            session.follow(number);
            self.advertisements.withdraw_all(link);
        }
        let Some(session) = self::session(&mut self.trees, link) else { return Ok(()) };
        let new = session.received(first, entries);
        for AnnouncedEntry { descriptor, serves } in new {
            if let Err(refusal) = self.advertisements.announced(link, descriptor, *serves) {
                self.refusals[RoutingRefusal::from(refusal) as usize] += 1;
                session.has_refused = true;
            }
        }
        Ok(())
    }

    /// An application advertises a set of tags in all trees, until `ends_ms` or until its face is gone.
    ///
    /// # Errors
    /// If a limit is met.
    pub fn advertise(
        &mut self,
        face: FaceId,
        tags: &TagSet,
        serves: Serves,
        ends_ms: Option<u64>,
    ) -> Result<(), AdvertisementRefusal> {
        let mut result = Ok(());
        for tree in self.trees.keys() {
            let link = TreeLink { tree: *tree, face };
            result = result.and(self.advertisements.advertise(link, tags.clone(), serves));
        }
        if result.is_ok() {
            self.sets.insert(face, tags.clone(), ends_ms.unwrap_or(u64::MAX));
        } else if !self.sets.contains(face, tags) {
            // One tree had room and another had not: neither gets it.
            for tree in self.trees.keys() {
                self.advertisements.withdraw(TreeLink { tree: *tree, face }, tags);
            }
        }
        result
    }

    /// An application withdraws a set of tags; false if it had not advertised it.
    pub fn withdraw(&mut self, face: FaceId, tags: &TagSet) -> bool {
        self.withdraw_in_trees(face, tags);
        self.sets.remove(face, tags)
    }

    fn withdraw_in_trees(&mut self, face: FaceId, tags: &TagSet) {
        for tree in self.trees.keys() {
            self.advertisements.withdraw(TreeLink { tree: *tree, face }, tags);
        }
    }

    /// An application may send pushes from now on.
    pub fn allow_push(&mut self, face: FaceId) {
        self.is_changed |= self.may_push.insert(face);
    }

    /// Lets time pass, and makes the packets that are due.
    pub fn run(&mut self, now_ms: u64) {
        self.sets.throw_away(SETS_PER_TURN);
        for _ in 0..SETS_PER_TURN {
            let Some((face, tags)) = self.sets.take_over(now_ms) else { break };
            self.withdraw_in_trees(face, &tags);
        }
        self.hear_again();
        let mut greeted = Vec::new();
        for (number, tree) in &mut self.trees {
            if tree.protocol.run(now_ms) {
                greeted.extend(self.neighbours.iter().map(|face| TreeLink { tree: *number, face: *face }));
            }
        }
        self.follow_trees();
        let (busy, mut told) = (self.busy(), Vec::new());
        self.advertisements.settle(TURN_UNITS, &busy, &mut told);
        self.tell(told);
        for (number, tree) in &mut self.trees {
            let owing = tree.links.iter().filter(|(_, session)| session.owes_hello);
            greeted.extend(owing.map(|(face, _)| TreeLink { tree: *number, face: *face }));
        }
        greeted.sort_unstable();
        greeted.dedup();
        greeted.into_iter().for_each(|link| self.greet(link, now_ms));
        for (number, tree) in &mut self.trees {
            for (face, session) in &mut tree.links {
                session.take_due(*number, now_ms, |packet| {
                    self.packets.push((*face, self.authentication.seal(*face, *number, packet.to_bytes(), now_ms)));
                });
            }
        }
    }

    /// Sends a hello to one neighbour.
    fn greet(&mut self, link: TreeLink, now_ms: u64) {
        let Some(tree) = self.trees.get_mut(&link.tree) else { return };
        let mut progress = Progress::default();
        if let Some(session) = tree.links.get_mut(&link.face) {
            session.owes_hello = false;
            progress = session.progress();
        }
        let hello = RoutingPacket::Hello(tree.protocol.hello(link.face, now_ms), progress);
        let packet = self.authentication.seal(link.face, link.tree, hello.to_bytes(), now_ms);
        self.packets.push((link.face, packet));
    }

    /// Asks neighbours again for entries that found no room, if there is room now.
    fn hear_again(&mut self) {
        if !self.advertisements.is_settled() {
            return;
        }
        let needed = self.limits.per_face / FREE_BEFORE_HEARD_AGAIN;
        let mut again = Vec::new();
        for (number, tree) in &mut self.trees {
            for (face, session) in tree.links.iter_mut().filter(|(_, session)| session.has_refused) {
                if self.advertisements.room_of(*face) > needed {
                    session.forget_heard();
                    again.push(TreeLink { tree: *number, face: *face });
                }
            }
        }
        again.into_iter().for_each(|link| self.advertisements.withdraw_all(link));
    }

    /// When [`TagRouting::run`] should be called next.
    pub fn deadline_ms(&self) -> u64 {
        let tables = self.tables();
        let may_settle = !tables.waits_for_readers() && !self.advertisements.is_settled_but_for(&self.busy());
        if may_settle || tables.has_changes() {
            return 0;
        }
        let trees = self.trees.values().flat_map(|tree| {
            let sessions = tree.links.values().filter_map(Session::deadline_ms);
            sessions.chain([tree.protocol.deadline_ms()])
        });
        trees.chain([self.sets.deadline_ms()]).min().unwrap_or(u64::MAX)
    }

    /// Neighbours to whom much is on the way.
    fn busy(&self) -> BTreeSet<TreeLink> {
        let links = self.trees.iter().flat_map(|(tree, it)| it.links.iter().map(move |(face, it)| (*tree, *face, it)));
        let busy = links.filter(|(.., session)| session.waiting() >= BUSY_ENTRIES);
        busy.map(|(tree, face, _)| TreeLink { tree, face }).collect()
    }

    /// Lets the links follow the trees.
    fn follow_trees(&mut self) {
        for (number, tree) in &mut self.trees {
            let wanted: BTreeSet<FaceId> = tree.protocol.parent().into_iter().chain(tree.protocol.children()).collect();
            let ended: Vec<FaceId> = tree.links.keys().copied().filter(|face| !wanted.contains(face)).collect();
            for face in ended {
                tree.links.remove(&face);
                self.advertisements.link_down(TreeLink { tree: *number, face });
            }
            for face in wanted {
                tree.links.entry(face).or_insert_with(|| {
                    self.advertisements.link_up(TreeLink { tree: *number, face });
                    Session::new(self.random.u64(1..))
                });
            }
            let table = tree.protocol.table();
            if tree.table != table {
                tree.table = table;
                self.is_changed = true;
            }
        }
    }

    /// Queues what neighbours are to know.
    fn tell(&mut self, told: Vec<Announcement>) {
        let mut overfull = BTreeSet::new();
        for Announcement { link, descriptor, serves } in told {
            let Some(session) = session(&mut self.trees, link) else { continue };
            session.push(AnnouncedEntry { descriptor, serves });
            if session.waiting() > WAITING_MAX {
                overfull.insert(link);
            }
        }
        overfull.into_iter().for_each(|link| self.begin_session_again(link));
    }

    /// The packets to send, each through its face.
    pub fn take_packets(&mut self) -> Vec<(FaceId, Vec<u8>)> {
        std::mem::take(&mut self.packets)
    }

    /// True once after each change of the trees, or of who may push.
    pub fn take_trees_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// The tables by which workers forward. Descriptors change in them at once, trees with
    /// [`TagRouting::publish_trees`].
    pub fn tables(&self) -> &LiveTables<Known> {
        self.advertisements.tables()
    }

    /// The same, to do waiting steps and to build another trie.
    pub fn tables_mut(&mut self) -> &mut LiveTables<Known> {
        self.advertisements.tables_mut()
    }

    /// Gives workers the present trees, and who may push.
    pub fn publish_trees(&mut self) {
        let trees = self.tree_tables().cloned().collect();
        let may_push = self.may_push.clone();
        self.tables_mut().set_trees(trees, may_push);
    }

    /// The number of descriptors in each tree.
    pub fn descriptors_of_trees(&self) -> BTreeMap<u16, u64> {
        self.advertisements.per_tree()
    }

    /// The trees as workers need them.
    pub fn tree_tables(&self) -> impl Iterator<Item = &TreeTable> {
        self.trees.values().filter_map(|tree| tree.table.as_ref())
    }

    /// The applications that may push.
    pub const fn may_push(&self) -> &BTreeSet<FaceId> {
        &self.may_push
    }

    /// Descriptors with their branches, in no order: not many more than `most`, all of them if there are fewer.
    pub fn entries(&self, most: usize) -> impl Iterator<Item = (crate::Descriptor, BranchSet)> {
        self.advertisements.entries(most)
    }

    /// Number of descriptors.
    pub fn descriptors(&self) -> usize {
        self.advertisements.len()
    }

    /// What was refused so far.
    pub const fn refusals(&self) -> &[u64; RoutingRefusal::COUNT] {
        &self.refusals
    }

    /// The state of each tree.
    pub fn trees(&self) -> impl Iterator<Item = TreeStatus> {
        self.trees.iter().map(|(number, Tree { protocol, .. })| TreeStatus {
            tree: *number,
            router: protocol.router(),
            root: protocol.root(),
            parent: protocol.parent(),
            children: protocol.children().collect(),
            subtree: protocol.subtree(),
            label: protocol.label().map(|(epoch, label)| (epoch, label.to_bytes().to_vec())),
        })
    }
}

fn session(trees: &mut BTreeMap<u16, Tree>, link: TreeLink) -> Option<&mut Session> {
    trees.get_mut(&link.tree)?.links.get_mut(&link.face)
}

impl From<AdvertisementRefusal> for RoutingRefusal {
    fn from(refusal: AdvertisementRefusal) -> Self {
        match refusal {
            AdvertisementRefusal::Full => RoutingRefusal::TableFull,
            AdvertisementRefusal::FaceShareUsed => RoutingRefusal::FaceShareUsed,
        }
    }
}
