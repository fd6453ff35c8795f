//! TagNet: the advertisements of a network's applications, and the tables of its routers.

use super::Network;
use crate::trace::NodeId;
use namewire_engine::FaceId;
use namewire_tagnet::TagSet;
use namewire_tagnet::advertisements::AdvertisementRefusal;
use namewire_tagnet::forwarder::Serves;
use namewire_tagnet::routing::{RoutingRefusal, TreeStatus};

impl Network {
    /// The application at `face` advertises a set of tags, as by `tags/advertise`.
    ///
    /// # Errors
    /// If the router has no room for it.
    pub fn advertise(
        &mut self,
        node: NodeId,
        face: FaceId,
        tags: &TagSet,
        serves: Serves,
    ) -> Result<(), AdvertisementRefusal> {
        let consequences = self.nodes[node.0].advertise(self.queue.now_ns(), face, tags, serves)?;
        self.carry_out(node, consequences);
        Ok(())
    }

    /// The application at `face` withdraws a set of tags; false if it had not advertised it.
    pub fn withdraw(&mut self, node: NodeId, face: FaceId, tags: &TagSet) -> bool {
        let (had, consequences) = self.nodes[node.0].withdraw(self.queue.now_ns(), face, tags);
        self.carry_out(node, consequences);
        had
    }

    /// The application at `face` may push from now on, as by `tags/join`.
    pub fn allow_push(&mut self, node: NodeId, face: FaceId) {
        self.nodes[node.0].tags.routing.allow_push(face);
    }

    /// A router hears a packet between routers on one of its faces, whoever sent it: a forger writes what it likes.
    pub fn forge_tag_routing(&mut self, node: NodeId, face: FaceId, packet: &[u8]) {
        let consequences = self.nodes[node.0].hear_routing(self.queue.now_ns(), face, packet);
        self.carry_out(node, consequences);
    }

    /// TagNet's routing of a router ends and starts again, by a clock that showed this at the beginning of the
    /// simulation. What its applications advertised is lost.
    pub fn restart_tags(&mut self, node: NodeId, clock_ms: u64) {
        let consequences = self.nodes[node.0].restart_tags(self.queue.now_ns(), clock_ms);
        self.carry_out(node, consequences);
    }

    /// The trees as a router sees them.
    pub fn trees(&self, node: NodeId) -> Vec<TreeStatus> {
        self.nodes[node.0].tags.routing.trees().collect()
    }

    /// Number of descriptors that a router knows.
    pub fn descriptors(&self, node: NodeId) -> usize {
        self.nodes[node.0].tags.routing.descriptors()
    }

    /// What a router refused of its neighbours' packets and announcements.
    pub fn routing_refusals(&self, node: NodeId) -> [u64; RoutingRefusal::COUNT] {
        *self.nodes[node.0].tags.routing.refusals()
    }
}
