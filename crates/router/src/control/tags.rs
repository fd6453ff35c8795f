//! TagNet's control side: the trees and advertisements of this node, and the tables that workers forward by.
//!
//! [`TagRouting`] decides, and changes the tables by which workers forward. This module passes faces, packets and time
//! to it, and sends its packets. Other threads make the tables anew ([`TagBuilds`]).

use super::{node::Node, tag_keys};
use crate::{StartError, log_lines};
use namewire_configuration::settings::{TagNeighbours, TagTable, TagnetSection};
use namewire_management::{TagPlane, TagPlaneRefusal, Times};
use namewire_packet::{
    FaceId,
    lp::LpHeaders,
    nfd::{FacePersistency, FaceScope, LinkType, TagBranch, TagRoute, TagServes, TagTree},
    tag::TagList,
};
use namewire_tagnet::{
    Descriptor, TagSet,
    advertisements::{AdvertisementLimits, AdvertisementRefusal, Known},
    forwarder::{BranchSet, LiveTables, Serves},
    matching::vector::VectorOptions,
    routing::{RoutingRefusal, TagRouting, TagRoutingConfig, TreeStatus},
    tree_protocol::TreeTimes,
};
use namewire_worker::{TagBuilds, ToWorker};
use std::collections::HashMap;

/// Steps of the tables that wait for readers are looked at after this time.
const STEP_NS: u64 = 1_000_000;
/// Most routes that a list has.
const ROUTES_MAX: usize = 1 << 18;
/// Most applications that may push.
const MAX_PUSHERS: usize = 65_536;

/// See the module documentation.
pub(crate) struct TagControl {
    routing: TagRouting,
    neighbours: TagNeighbours,
    builds: TagBuilds,
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
        let mut routing = TagRouting::new(&config, seed, now_ns / 1_000_000)?;
        if section.table.0 == TagTable::Vector {
            routing.tables_mut().search_by_vector(VectorOptions::PAPER);
        }
        Ok(Some(TagControl {
            routing,
            neighbours: section.neighbours.0,
            builds: TagBuilds::default(),
            logged: HashMap::new(),
        }))
    }

    /// The tables that workers forward by.
    pub(crate) fn tables(&self) -> &LiveTables<Known> {
        self.routing.tables()
    }

    /// When [`Node::run_tags`] has something to do.
    pub(crate) fn next_deadline_ns(&self, now_ns: u64) -> u64 {
        let routing_ns = self.routing.deadline_ms().saturating_mul(1_000_000);
        let tables = self.routing.tables();
        let tables_ns = [tables.is_waiting().then_some(now_ns + STEP_NS), self.builds.next_deadline_ns(tables, now_ns)];
        tables_ns.into_iter().flatten().fold(routing_ns, u64::min)
    }

    /// What was refused, and what failed.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let refusals = RoutingRefusal::named(self.routing.refusals());
        // The table for advertised descriptors could not be made anew. It is tried again.
        refusals.chain([("table-build-failed", self.builds.failed())])
    }

    /// Logs the trees whose root or parent has changed.
    fn log_trees(&mut self) {
        for TreeStatus { tree, root, parent, .. } in self.routing.trees() {
            if self.logged.insert(tree, (root, parent)) != Some((root, parent)) {
                log_lines::tree_changed(tree, root, parent);
            }
        }
    }

    /// Does what waits in the tables.
    fn follow(&mut self, now_ns: u64) {
        self.routing.tables_mut().run();
        if self.routing.take_trees_changed() {
            self.log_trees();
            self.routing.publish_trees();
        }
        self.builds.run(self.routing.tables_mut(), now_ns);
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
        let descriptors = self.routing.descriptors_of_trees();
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
        let mut entries: Vec<(Descriptor, BranchSet)> = self.routing.entries(ROUTES_MAX).collect();
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
