//! FibEntry: a prefix and its next hops (dataset `fib/list`).

use super::{
    element::element,
    numbers::types::{COST, FACE_ID},
};
use crate::{FaceId, NameBuf, tlv::types::NAME};

element! {
    element:
    /// One next hop of a FIB entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct NextHopRecord {
        /// Face to send to.
        pub face_id: FaceId = FACE_ID,
        /// Cost; lower is better.
        pub cost: u64 = COST,
    }
}

element! {
    dataset "fib/list":
    /// One entry of `fib/list` (management.md §6.2).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FibEntry {
        /// The prefix.
        pub name: NameBuf = NAME as "prefix",
        /// Next hops by cost.
        pub next_hops: Vec<NextHopRecord> = 129,
    }
}
