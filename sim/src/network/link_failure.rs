//! Links that fail, and what a router's control side makes of errors when it sends.
//!
//! A silent failure loses frames and tells no end ([`Network::set_link_up`]). Here the sender gets an error: at once, or, where the far
//! end's forwarder has stopped, after a round trip. A face is then closed with its routes (persistent) or down until
//! the link is mended (permanent), as [`Network::set_persistency`] says.

use super::{End, Event, LinkId, Network, Place};
use crate::node::{Decided, NodeId};
use namewire_engine::FaceId;

/// How long after a link was mended a permanent face finds that out.
const RETRY_NS: u64 = 100_000_000;

/// How a link fails that tells its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFailure {
    /// Neither end can send: each attempt is an error at once.
    CannotSend,
    /// At the second end no forwarder listens any more: the first gets an error a round trip after each attempt.
    SecondEndStopped,
}

/// What becomes of a face whose link reports an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistency {
    /// Nothing: errors are not noticed.
    #[default]
    Unaware,
    /// It closes, and its routes go.
    Persistent,
    /// It is down until the link is mended; its routes stay.
    Permanent,
}

/// How a link is, and how its ends take it.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    failure: Option<LinkFailure>,
    persistency: [Persistency; 2],
}

impl Network {
    /// Says what becomes of both faces of a link when it reports errors.
    pub fn set_persistency(&mut self, link: LinkId, persistency: Persistency) {
        self.links[link.0].state.persistency = [persistency; 2];
    }

    /// Lets a link fail so that its ends can tell, or mends it.
    pub fn set_link_failure(&mut self, link: LinkId, failure: Option<LinkFailure>) {
        self.links[link.0].state.failure = failure;
        self.set_link_up(link, failure.is_none());
        if failure.is_none() {
            let at_ns = self.now_ns() + RETRY_NS;
            for end in [0, 1] {
                self.queue.schedule(at_ns, Event::LinkMended(End(link, end)));
            }
        }
    }

    /// A frame did not leave `end`, or did not get through.
    pub(super) fn note_link_loss(&mut self, end: End) {
        let link = &self.links[end.0.0];
        let round_trip_ns = link.directions.iter().map(|direction| direction.delay_ns()).sum::<u64>();
        let error_at_ns = match (link.state.failure, end.1) {
            (Some(LinkFailure::CannotSend), _) => self.now_ns(),
            (Some(LinkFailure::SecondEndStopped), 0) => self.now_ns() + round_trip_ns,
            _ => return,
        };
        self.queue.schedule(error_at_ns, Event::LinkError(end));
    }

    /// The router at `end` learns that its link carries nothing.
    pub(super) fn link_error(&mut self, end: End) {
        let Some((node, face)) = self.face_at(end) else { return };
        let is_up = self.nodes[node.0].faces.get(face).is_some_and(|attributes| attributes.is_up);
        let now_ns = self.now_ns();
        let state = &self.links[end.0.0].state;
        let decided = match state.persistency[end.1] {
            _ if !is_up || state.failure.is_none() => return,
            Persistency::Unaware => return,
            Persistency::Persistent => self.nodes[node.0].remove_face(now_ns, face),
            Persistency::Permanent => self.nodes[node.0].set_face_up(now_ns, face, false),
        };
        self.carry_out(node, decided);
    }

    /// The router at `end` tries its link again.
    pub(super) fn link_mended(&mut self, end: End) {
        let Some((node, face)) = self.face_at(end) else { return };
        let is_down = self.nodes[node.0].faces.get(face).is_some_and(|attributes| !attributes.is_up);
        let decided = match is_down && self.links[end.0.0].state.failure.is_none() {
            true => self.nodes[node.0].set_face_up(self.queue.now_ns(), face, true),
            false => Decided::default(),
        };
        self.carry_out(node, decided);
    }

    fn face_at(&self, End(link, end): End) -> Option<(NodeId, FaceId)> {
        match self.links[link.0].ends[end].place {
            Place::Face(node, face) => Some((node, face)),
            Place::App(_) => None,
        }
    }
}
