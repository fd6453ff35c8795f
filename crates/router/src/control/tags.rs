//! TagNet's control side: the trees and advertisements of this node, and the tables that workers forward by.
//!
//! [`TagRouting`] decides. This module passes faces, packets and time to it, sends its packets, and applies its changes
//! to the tables ([`LiveTables`]).

use super::{node::Node, tag_keys};
use crate::{StartError, log_lines};
use namewire_configuration::settings::{TagNeighbours, TagnetSection};
use namewire_management::{TagPlane, TagPlaneRefusal, Times};
use namewire_packet::{
    FaceId,
    lp::LpHeaders,
    nfd::{FacePersistency, FaceScope, LinkType, TagBranch, TagRoute, TagServes, TagTree},
    tag::TagList,
};
use namewire_tagnet::{
    Descriptor, TagSet,
    advertisements::{AdvertisementLimits, AdvertisementRefusal},
    forwarder::{BranchSet, LiveTables, Serves},
    routing::{RoutingRefusal, TagRouting, TagRoutingConfig, TreeStatus},
    tree_protocol::TreeTimes,
};
use namewire_worker::ToWorker;
use std::collections::HashMap;

/// Steps of the tables that wait for readers are looked at after this time.
const STEP_NS: u64 = 1_000_000;
/// After the tables found no memory, control tries again after this time.
const BUILD_AGAIN_NS: u64 = 1_000_000_000;
/// Most applications that may push.
const MAX_PUSHERS: usize = 65_536;

/// See the module documentation.
pub(crate) struct TagControl {
    routing: TagRouting,
    neighbours: TagNeighbours,
    tables: LiveTables,
    /// When the tables may be built again.
    next_build_ns: u64,
    builds_failed: u64,
    /// Root and parent of each tree, as the log has them.
    logged: HashMap<u16, (u64, Option<FaceId>)>,
}

impl TagControl {
    /// TagNet of this node; `None` without trees. `seed` fixes the random numbers.
    ///
    /// # Errors
    /// If there is no memory, or if the keys cannot be read.
    pub(crate) fn new(section: &TagnetSection, seed: u64, now_ns: u64) -> Result<Option<Self>, StartError> {
        if section.trees.is_empty() {
            return Ok(None);
        }
        let limits = AdvertisementLimits {
            descriptors: section.descriptors as usize,
            reserved: section.reserved as usize,
            per_face: section.per_face as usize,
        };
        // Numbers from the configuration are below all random ones, and so nearer to the root.
        let router = section.router_number.map_or(seed | 1 << 63, u64::from);
        let keys = tag_keys::read(section)?;
        let config =
            TagRoutingConfig { trees: section.trees.clone(), router, times: TreeTimes::default(), limits, keys };
        Ok(Some(TagControl {
            routing: TagRouting::new(&config, seed, now_ns / 1_000_000),
            neighbours: section.neighbours.0,
            tables: LiveTables::new(limits.descriptors)?,
            next_build_ns: now_ns,
            builds_failed: 0,
            logged: HashMap::new(),
        }))
    }

    /// The tables that workers forward by.
    pub(crate) fn tables(&self) -> &LiveTables {
        &self.tables
    }

    /// When [`Node::run_tags`] has something to do.
    pub(crate) fn next_deadline_ns(&self, now_ns: u64) -> u64 {
        let routing_ns = self.routing.deadline_ms().saturating_mul(1_000_000);
        let tables_ns = [
            self.tables.is_waiting().then_some(now_ns + STEP_NS),
            self.routing.has_changed_descriptors().then_some(now_ns),
            self.tables.wants_build().then_some(self.next_build_ns),
        ];
        tables_ns.into_iter().flatten().fold(routing_ns, u64::min)
    }

    /// What was refused, and what failed.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let refusals = RoutingRefusal::named(self.routing.refusals());
        // The table for advertised descriptors could not be made anew. It is tried again.
        refusals.chain([("table-build-failed", self.builds_failed)])
    }

    /// Logs the trees whose root or parent has changed.
    fn log_trees(&mut self) {
        for TreeStatus { tree, root, parent, .. } in self.routing.trees() {
            if self.logged.insert(tree, (root, parent)) != Some((root, parent)) {
                log_lines::tree_changed(tree, root, parent);
            }
        }
    }

    /// Passes what changed to the tables; of a large change, one slice.
    fn follow(&mut self, now_ns: u64) {
        let changed = self.routing.take_changed_descriptors();
        if changed.is_empty() {
            self.tables.run();
        } else {
            self.tables.change(changed);
        }
        if self.routing.take_trees_changed() {
            self.log_trees();
            self.tables.set_trees(self.routing.tree_tables().cloned().collect(), self.routing.may_push().clone());
        }
        // A new trie takes all descriptors, so it waits until the tables have all changes.
        if self.tables.wants_build()
            && !self.routing.has_changed_descriptors()
            && now_ns >= self.next_build_ns
            && self.tables.build(self.routing.entries()).is_err()
        {
            self.builds_failed += 1;
            self.next_build_ns = now_ns + BUILD_AGAIN_NS;
        }
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
                self.faces.send(record.worker, ToWorker::Transmit { face, headers: LpHeaders::default(), packet });
            }
        }
        tags.follow(now_ns);
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
