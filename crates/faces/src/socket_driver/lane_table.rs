//! The lanes of a worker, by the face that they are a part of.

use hashbrown::HashMap;
use namewire_packet::FaceId;

/// This worker's lane of a face.
pub(super) struct Lane {
    /// Index of its socket.
    pub(super) socket: usize,
    /// The links to the lanes of the neighbour, in their order.
    pub(super) links: Vec<FaceId>,
}

pub(super) type LaneTable = HashMap<FaceId, Lane>;
