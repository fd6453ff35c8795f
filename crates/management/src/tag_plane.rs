//! What management asks of TagNet: to change what applications advertise, and to report what the router knows.
//!
//! Management decides who may command, and answers. The router keeps the tables, because they also hold what neighbours
//! announced.

use crate::environment::Times;
use namewire_packet::{
    FaceId,
    nfd::{TagRoute, TagServes, TagTree},
};

/// Why the tables refused an application. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagPlaneRefusal {
    /// The tables are full.
    #[error("the router knows as many sets of tags, or applications, as it may")]
    Full,
    /// The face has used its share of the tables.
    #[error("the face has advertised as many sets of tags as it may")]
    FaceShareUsed,
}

/// The part of the router that forwards tag packets.
pub trait TagPlane {
    /// An application advertises a set of tags in all trees, or changes what the set serves and how long it lasts. The
    /// tags are ascending, 1 to [`MAX_TAGS`](namewire_packet::tag::MAX_TAGS) of them. Without `expires_ms`, the
    /// advertisement lasts as long as the face.
    ///
    /// # Errors
    /// If a limit is met.
    fn advertise(
        &mut self,
        now: Times,
        face: FaceId,
        tags: &[&str],
        serves: TagServes,
        expires_ms: Option<u64>,
    ) -> Result<(), TagPlaneRefusal>;

    /// An application withdraws a set of tags; false if it had not advertised it.
    fn withdraw(&mut self, face: FaceId, tags: &[&str]) -> bool;

    /// From now on, the router forwards pushes of this face's application, and delivers packets to its place.
    ///
    /// # Errors
    /// If there are too many applications.
    fn allow_push(&mut self, face: FaceId) -> Result<(), TagPlaneRefusal>;

    /// The trees, by number.
    fn trees(&self) -> Vec<TagTree>;

    /// The descriptors with their branches, by descriptor.
    fn routes(&self) -> Vec<TagRoute>;
}
