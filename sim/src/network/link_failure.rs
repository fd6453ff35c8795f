//! Links that fail with an error, and the reaction of a router's control side.
//!
//! A silent failure loses frames without notice ([`Network::set_link_up`]). Here the sender gets an error: at once, or,
//! if the far end's forwarder has stopped, after a round trip. A persistent face then closes with its routes. A
//! permanent face is down until the link works again, and its routes stay. [`Network::set_persistency`] chooses.

use super::{End, Event, LinkId, Network, Place, Wire};
use crate::router::Consequences;
use crate::trace::NodeId;
use namewire_engine::FaceId;
use namewire_packet::nfd::FacePersistency;

/// Time after which a permanent face notices that its link was mended.
const RETRY_NS: u64 = 100_000_000;

/// Failures of a link that its ends notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFailure {
    /// Neither end can send: each attempt is an error at once.
    CannotSend,
    /// The forwarder at the second end has stopped: the first end gets an error a round trip after each attempt.
    SecondEndStopped,
}

/// The state of a link, and the reaction of its ends.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    failure: Option<LinkFailure>,
    /// What becomes of each face when the link reports an error; `None`: nothing.
    persistency: [Option<FacePersistency>; 2],
}

impl Network {
    /// Sets how both faces of a link react to errors. Until it is called, they do not notice errors.
    pub fn set_persistency(&mut self, link: LinkId, persistency: FacePersistency) {
        self.links[link.0].wire_mut().expect("the link is a wire").state.persistency = [Some(persistency); 2];
    }

    /// Lets a link fail with errors for its ends, or mends it.
    pub fn set_link_failure(&mut self, link: LinkId, failure: Option<LinkFailure>) {
        self.links[link.0].wire_mut().expect("the link is a wire").state.failure = failure;
        self.set_link_up(link, failure.is_none());
        if failure.is_none() {
            let at_ns = self.now_ns() + RETRY_NS;
            for end in [0, 1] {
                self.queue.schedule(at_ns, Event::LinkMended(End(link, end)));
            }
        }
    }

    /// A frame could not leave `end`, or was lost.
    pub(super) fn note_link_loss(&mut self, end: End) {
        let Some(link) = self.links[end.0.0].wire() else { return };
        let round_trip_ns = link.directions.iter().map(|direction| direction.delay_ns()).sum::<u64>();
        let error_at_ns = match (link.state.failure, end.1) {
            (Some(LinkFailure::CannotSend), _) => self.now_ns(),
            (Some(LinkFailure::SecondEndStopped), 0) => self.now_ns() + round_trip_ns,
            _ => return,
        };
        self.queue.schedule(error_at_ns, Event::LinkError(end));
    }

    /// The router at `end` gets an error from its link.
    pub(super) fn link_error(&mut self, end: End) {
        let Some((node, face)) = self.face_at(end) else { return };
        let is_up = self.nodes[node.0].faces().get(face).is_some_and(|attributes| attributes.is_up);
        let now_ns = self.now_ns();
        let Some(Wire { state, .. }) = self.links[end.0.0].wire() else { return };
        let consequences = match state.persistency[end.1] {
            _ if !is_up || state.failure.is_none() => return,
            None => return,
            Some(FacePersistency::Permanent) => self.nodes[node.0].set_face_up(now_ns, face, false),
            Some(_) => self.nodes[node.0].remove_face(now_ns, face),
        };
        self.carry_out(node, consequences);
    }

    /// The router at `end` tries its link again.
    pub(super) fn link_mended(&mut self, end: End) {
        let Some((node, face)) = self.face_at(end) else { return };
        let is_down = self.nodes[node.0].faces().get(face).is_some_and(|attributes| !attributes.is_up);
        let works = self.links[end.0.0].wire().is_some_and(|wire| wire.state.failure.is_none());
        let consequences = match is_down && works {
            true => self.nodes[node.0].set_face_up(self.queue.now_ns(), face, true),
            false => Consequences::default(),
        };
        self.carry_out(node, consequences);
    }

    fn face_at(&self, End(link, end): End) -> Option<(NodeId, FaceId)> {
        match self.links[link.0].ends[end].place {
            Place::Face(node, face) => Some((node, face)),
            Place::App(_) => None,
        }
    }
}
