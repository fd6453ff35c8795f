//! RibEntry: a prefix and its routes (dataset `rib/list`).

use super::{
    element::element,
    numbers::types::{COST, EXPIRATION_PERIOD, FACE_ID, FLAGS, ORIGIN},
};
use crate::{FaceId, NameBuf, tlv::types::NAME};

element! {
    element:
    /// One route of a RIB entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Route {
        /// Next hop.
        pub face_id: FaceId = FACE_ID,
        /// The registrant, one of [`super::origin`].
        pub origin: u64 = ORIGIN,
        /// Cost; lower is better.
        pub cost: u64 = COST,
        /// [`super::route_flags`].
        pub flags: u64 = FLAGS,
        /// Milliseconds left; `None` = never expires.
        pub expiration_period_ms: Option<u64> = EXPIRATION_PERIOD,
        /// Our addition: the prefix is under `/localhost`, and another user has a route for it or for a shorter prefix
        /// there. Either may answer. `None` if not.
        pub is_contested: Option<bool> = 33_032,
    }
}

element! {
    dataset "rib/list":
    /// One entry of `rib/list` (management.md §6.2).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RibEntry {
        /// The prefix.
        pub name: NameBuf = NAME,
        /// Its routes.
        pub routes: Vec<Route> = 129,
    }
}
