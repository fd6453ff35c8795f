//! NameLook: what one worker has pending and stored for a name, and where its FIB leads (dataset `status/name/<name>`).
//!
//! This dataset is ours; NFD has no such dataset. It has one entry for each worker.

use super::{
    NextHopRecord,
    element::element,
    numbers::types::{
        DATASET_ENTRY, FACE_ID, LOOK_AGE, LOOK_BYTES, LOOK_CHOSEN, LOOK_DOWNSTREAM, LOOK_EXPIRES, LOOK_FIB, LOOK_FRESH,
        LOOK_IS_OWNER, LOOK_IS_PREFIX, LOOK_MUST_BE_FRESH, LOOK_NACK, LOOK_PENDING, LOOK_SATISFIED, LOOK_SILENT,
        LOOK_STORED, LOOK_STORED_UNDER, LOOK_UPSTREAM, LOOK_WORKER, NESTED_RECORD,
    },
};
use crate::{FaceId, NameBuf, tlv::types::NAME};

element! {
    element DATASET_ENTRY:
    /// One entry of `status/name/<name>`: 128 { 128 worker, 129 owner?, 130 pending *, 131 stored ?, 132 stored under
    /// ?, 143 FIB ? }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct NameLook {
        /// The worker, from 0.
        pub worker: u64 = LOOK_WORKER,
        /// True if Interests for this name go to this worker.
        pub is_owner: bool = LOOK_IS_OWNER,
        /// Its pending Interests of this name.
        pub pending: Vec<PendingLook> = LOOK_PENDING,
        /// Stored Data that answers the name itself.
        pub stored: Option<StoredLook> = LOOK_STORED,
        /// Stored Data that answers the name with CanBePrefix, if it is another.
        pub stored_under: Option<StoredLook> = LOOK_STORED_UNDER,
        /// Where its FIB leads an Interest for the name now; of the owner only.
        pub fib: Option<FibLook> = LOOK_FIB,
    }
}

element! {
    element:
    /// The answer of FIB and strategy: { 7 strategy, 129 next hop *, 144 chosen face *, 145 silent face * }.
    ///
    /// A lossy FIB may give next hops to a name without a route, and does not know of which route they are.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct FibLook {
        /// The strategy, with its version and parameters.
        pub strategy: NameBuf = NAME,
        /// Next hops, the cheapest first.
        pub next_hops: Vec<NextHopRecord> = NESTED_RECORD,
        /// The next hops that the strategy would choose for a new Interest now; none if that is not known before.
        pub chosen: Vec<FaceId> = LOOK_CHOSEN,
        /// Next hops that the strategy avoids, because earlier Interests got no answer there.
        pub silent: Vec<FaceId> = LOOK_SILENT,
    }
}

element! {
    element:
    /// A pending Interest: { 133 CanBePrefix?, 134 MustBeFresh?, 135 expires in ms, 136 answered?, 137 downstream face
    /// *, 138 upstream * }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PendingLook {
        /// Data of longer names may answer.
        pub can_be_prefix: bool = LOOK_IS_PREFIX,
        /// Only fresh Data may answer.
        pub must_be_fresh: bool = LOOK_MUST_BE_FRESH,
        /// Milliseconds until it expires.
        pub expires_ms: u64 = LOOK_EXPIRES,
        /// It has been answered and waits for further answers.
        pub is_satisfied: bool = LOOK_SATISFIED,
        /// The faces that wait, at most 32.
        pub downstreams: Vec<FaceId> = LOOK_DOWNSTREAM,
        /// The faces that were asked, at most 32.
        pub upstreams: Vec<UpstreamLook> = LOOK_UPSTREAM,
    }
}

element! {
    element:
    /// A face that was asked: { 105 face, 139 ms ago, 140 Nack ? }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct UpstreamLook {
        /// Its number.
        pub face: FaceId = FACE_ID,
        /// Milliseconds since it was asked last.
        pub sent_ms_ago: u64 = LOOK_AGE,
        /// What it refused with, or that its link went down since.
        pub failure: Option<String> = LOOK_NACK,
    }
}

element! {
    element:
    /// Stored Data: { 7 name, 141 size, 142 fresh for ms }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct StoredLook {
        /// Its own name.
        pub name: NameBuf = NAME,
        /// Bytes of the packet.
        pub bytes: u64 = LOOK_BYTES,
        /// Milliseconds for which it is still fresh; 0: it is stale.
        pub fresh_ms: u64 = LOOK_FRESH,
    }
}
