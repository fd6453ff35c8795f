//! Tree link: a neighbour, or an application, in one tree.

use namewire_packet::FaceId;

/// A neighbour in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeLink {
    /// The tree.
    pub tree: u16,
    /// The face of the neighbour.
    pub face: FaceId,
}
