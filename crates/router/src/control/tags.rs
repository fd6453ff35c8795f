//! TagNet's control side: the trees and advertisements of this node, and the tables that workers forward by.
//!
//! [`TagRouting`] decides. This module tells it of faces, packets and time, sends its packets, and publishes the
//! tables. Building the tables takes some 2 µs for each descriptor. So after a build, the next one waits for
//! [`BUILD_SHARE`] times as long as the build took: control spends at most a part of its time on building.

use super::node::Node;
use crate::{
    messages::ToWorker,
    shared::{Shared, unix_ms},
};
use namewire_configuration::settings::{TagNeighbours, TagnetSection};
use namewire_management::{TagPlane, TagPlaneRefusal, Times};
use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, FaceScope, LinkType, TagBranch, TagRoute, TagServes, TagTree},
    tag::TagList,
};
use namewire_tagnet::{
    Descriptor, TagSet,
    advertisements::{AdvertisementLimits, AdvertisementRefusal},
    forwarder::{BranchSet, Serves, TagTables},
    matching::{
        Entry,
        vector::{VectorOptions, VectorTable},
    },
    routing::{RoutingRefusal, TagRouting, TagRoutingConfig, TreeStatus},
    tree_protocol::TreeTimes,
};
use std::collections::HashMap;

/// Control spends at most one part in this number, plus one, on building tables.
const BUILD_SHARE: u64 = 4;
/// Most applications that may push.
const MAX_PUSHERS: usize = 65_536;

/// See the module documentation.
pub(crate) struct TagControl {
    routing: TagRouting,
    neighbours: TagNeighbours,
    /// Workers do not have the newest tables.
    owes_tables: bool,
    next_build_ns: u64,
    builds_failed: u64,
}

impl TagControl {
    /// TagNet of this node; `None` without trees. `seed` fixes the random numbers.
    pub(crate) fn new(section: &TagnetSection, seed: u64, now_ns: u64) -> Option<Self> {
        if section.trees.is_empty() {
            return None;
        }
        let limits = AdvertisementLimits {
            descriptors: section.descriptors as usize,
            reserved: section.reserved as usize,
            per_face: section.per_face as usize,
        };
        // Numbers from the configuration are below all random ones, and so nearer to the root.
        let router = section.router_number.map_or(seed | 1 << 63, u64::from);
        let config = TagRoutingConfig { trees: section.trees.clone(), router, times: TreeTimes::default(), limits };
        let unix_s = (unix_ms() / 1_000) as u32;
        Some(TagControl {
            routing: TagRouting::new(&config, unix_s, seed, now_ns / 1_000_000),
            neighbours: section.neighbours.0,
            owes_tables: false,
            next_build_ns: now_ns,
            builds_failed: 0,
        })
    }

    /// When [`Node::run_tags`] has something to do.
    pub(crate) fn next_deadline_ns(&self) -> u64 {
        let routing_ns = self.routing.deadline_ms().saturating_mul(1_000_000);
        if self.owes_tables { routing_ns.min(self.next_build_ns) } else { routing_ns }
    }

    /// What was refused, and what failed.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let refusals = RoutingRefusal::named(self.routing.refusals());
        refusals.chain([("table-build-failed", self.builds_failed)])
    }

    /// Publishes the tables, if they have changed and the last build is long enough ago.
    fn publish(&mut self, shared: &Shared, now_ns: u64) {
        self.owes_tables |= self.routing.take_changed();
        if !self.owes_tables || now_ns < self.next_build_ns {
            return;
        }
        match self.tables() {
            Some(tables) => shared.tags.replace(tables),
            None => self.builds_failed += 1,
        }
        self.owes_tables = false;
        let end_ns = shared.now_ns();
        self.next_build_ns = end_ns + BUILD_SHARE * (end_ns - now_ns);
    }

    /// The tables as workers need them; `None` without memory.
    fn tables(&self) -> Option<TagTables<VectorTable>> {
        let mut numbers: HashMap<BranchSet, u32> = HashMap::new();
        let mut branch_sets = Vec::new();
        let mut entries = Vec::with_capacity(self.routing.descriptors());
        for (descriptor, set) in self.routing.entries() {
            let value = *numbers.entry(set).or_insert_with_key(|set| {
                branch_sets.push(set.clone());
                branch_sets.len() as u32 - 1
            });
            entries.push(Entry { descriptor, value });
        }
        let descriptors = VectorTable::build(entries, VectorOptions::FASTEST).ok()?;
        let trees = self.routing.tree_tables().cloned().collect();
        Some(TagTables { trees, descriptors, branch_sets, may_push: self.routing.may_push().clone() })
    }
}

impl Node {
    /// A face is up or has changed: its neighbour may be one in the trees.
    pub(crate) fn tag_face_up(&mut self, face: FaceId) {
        let (Some(tags), Some(record)) = (&mut self.tags, self.faces.get(face)) else { return };
        let info = &record.info;
        let is_created = info.persistency != FacePersistency::OnDemand;
        let may_be_neighbour = info.scope == FaceScope::NonLocal && info.link_type == LinkType::PointToPoint;
        if may_be_neighbour && (is_created || tags.neighbours == TagNeighbours::Any) {
            tags.routing.neighbour_up(face);
        }
    }

    /// A face is down or gone.
    pub(crate) fn tag_face_down(&mut self, face: FaceId) {
        let now_ms = self.shared.now_ns() / 1_000_000;
        if let Some(tags) = &mut self.tags {
            tags.routing.face_down(face, now_ms);
        }
    }

    /// A neighbour's packet about trees.
    pub(crate) fn tag_packet(&mut self, face: FaceId, packet: &[u8]) {
        let now_ms = self.shared.now_ns() / 1_000_000;
        if let Some(tags) = &mut self.tags {
            tags.routing.received(face, packet, now_ms);
        }
    }

    /// Does what is due.
    pub(crate) fn run_tags(&mut self) {
        let Some(tags) = &mut self.tags else { return };
        let now_ns = self.shared.now_ns();
        if tags.routing.deadline_ms().saturating_mul(1_000_000) <= now_ns {
            tags.routing.run(now_ns / 1_000_000);
        }
        for (face, packet) in tags.routing.take_packets() {
            if let Some(record) = self.faces.get(face) {
                self.faces.send(record.worker, ToWorker::Transmit { face, packet });
            }
        }
        tags.publish(&self.shared, now_ns);
    }
}

impl TagPlane for TagControl {
    fn advertise(
        &mut self,
        now: Times,
        face: FaceId,
        tags: &[&str],
        serves: TagServes,
        expires_ms: Option<u64>,
    ) -> Result<(), TagPlaneRefusal> {
        let serves = match serves {
            TagServes::Pull => Serves::PULL,
            TagServes::Push => Serves::PUSH,
            TagServes::Both => Serves::BOTH,
        };
        let ends_ms = expires_ms.map(|expires_ms| (now.mono_ns / 1_000_000).saturating_add(expires_ms));
        self.routing.advertise(face, &tag_set(tags), serves, ends_ms).map_err(|refusal| match refusal {
            AdvertisementRefusal::Full => TagPlaneRefusal::Full,
            AdvertisementRefusal::FaceShareUsed => TagPlaneRefusal::FaceShareUsed,
        })
    }

    fn withdraw(&mut self, face: FaceId, tags: &[&str]) -> bool {
        self.routing.withdraw(face, &tag_set(tags))
    }

    fn allow_push(&mut self, face: FaceId) -> Result<(), TagPlaneRefusal> {
        let pushers = self.routing.may_push();
        if pushers.len() >= MAX_PUSHERS && !pushers.contains(&face) {
            return Err(TagPlaneRefusal::Full);
        }
        self.routing.allow_push(face);
        Ok(())
    }

    fn trees(&self) -> Vec<TagTree> {
        let mut descriptors: HashMap<u16, u64> = HashMap::new();
        for (_, set) in self.routing.entries() {
            let mut trees: Vec<u16> = set.branches().iter().map(|branch| branch.tree).collect();
            trees.dedup();
            trees.into_iter().for_each(|tree| *descriptors.entry(tree).or_default() += 1);
        }
        let tree = |status: TreeStatus| {
            let (epoch, label) = status.label.unwrap_or_default();
            TagTree {
                tree: status.tree.into(),
                epoch: epoch.into(),
                root: status.root,
                router: status.router,
                label: label.into(),
                parent: status.parent,
                children: status.children,
                routers_below: status.subtree.into(),
                descriptors: descriptors.get(&status.tree).copied().unwrap_or_default(),
            }
        };
        self.routing.trees().map(tree).collect()
    }

    fn routes(&self) -> Vec<TagRoute> {
        let mut entries: Vec<(Descriptor, BranchSet)> = self.routing.entries().collect();
        entries.sort_unstable_by_key(|(descriptor, _)| *descriptor);
        let route = |(descriptor, set): (Descriptor, BranchSet)| {
            let branches = set.branches().iter().map(|branch| TagBranch {
                tree: branch.tree.into(),
                face_id: branch.face,
                serves: TagServes::from_code(branch.serves.to_byte().into()).unwrap_or(TagServes::Both),
                is_application: branch.is_application,
                tag_sets: set.tag_sets_of(branch.face).filter_map(tag_list).collect(),
            });
            TagRoute { descriptor: descriptor.to_bytes(), branches: branches.collect() }
        };
        entries.into_iter().map(route).collect()
    }
}

/// Management has checked the limits.
fn tag_set(tags: &[&str]) -> TagSet {
    TagSet::new(tags.iter().copied()).unwrap_or_default()
}

fn tag_list(set: &TagSet) -> Option<TagList> {
    TagList::new(set.tags().iter().map(String::as_str)).ok()
}
