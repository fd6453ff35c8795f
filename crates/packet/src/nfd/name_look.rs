//! NameLook: what one worker has pending and stored for a name, and where its FIB leads (dataset `status/name/<name>`).
//!
//! This dataset is ours; NFD has no such dataset. It has one entry for each worker.

use super::{NextHopRecord, element::element, numbers::types::FACE_ID};
use crate::{FaceId, NameBuf, tlv::types::NAME};

element! {
    dataset "status/name":
    /// One entry of `status/name/<name>`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct NameLook {
        /// The worker, from 0.
        pub worker: u64 = 128,
        /// True if Interests for this name go to this worker.
        pub is_owner: bool = 129,
        /// Its pending Interests of this name.
        pub pending: Vec<PendingLook> = 130,
        /// Stored Data that answers the name itself.
        pub stored: Option<StoredLook> = 131,
        /// Stored Data that answers the name with CanBePrefix, if it is another.
        pub stored_under: Option<StoredLook> = 132,
        /// Where its FIB leads an Interest for the name now; of the owner only.
        pub fib: Option<FibLook> = 143,
    }
}

element! {
    element:
    /// The answer of FIB and strategy.
    ///
    /// A lossy FIB may give next hops to a name without a route, and does not know of which route they are.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct FibLook {
        /// The strategy, with its version and parameters.
        pub strategy: NameBuf = NAME,
        /// Next hops, the cheapest first.
        pub next_hops: Vec<NextHopRecord> = 129,
        /// The next hops that the strategy would choose for a new Interest now; none if that is not known before.
        pub chosen: Vec<FaceId> = 144,
        /// Next hops that the strategy avoids, because earlier Interests got no answer there.
        pub silent: Vec<FaceId> = 145,
    }
}

element! {
    element:
    /// A pending Interest.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PendingLook {
        /// Data of longer names may answer.
        pub can_be_prefix: bool = 133,
        /// Only fresh Data may answer.
        pub must_be_fresh: bool = 134,
        /// Milliseconds until it expires.
        pub expires_ms: u64 = 135,
        /// It has been answered and waits for further answers.
        pub is_satisfied: bool = 136 as "is_answered",
        /// The faces that wait, at most 32.
        pub downstreams: Vec<FaceId> = 137 as "waiting_face_ids",
        /// The faces that were asked, at most 32.
        pub upstreams: Vec<UpstreamLook> = 138 as "asked",
    }
}

element! {
    element:
    /// A face that was asked.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct UpstreamLook {
        /// Its number.
        pub face: FaceId = FACE_ID as "face_id",
        /// Milliseconds since it was asked last.
        pub sent_ms_ago: u64 = 139,
        /// What it refused with, or that its link went down since.
        pub failure: Option<String> = 140,
    }
}

element! {
    element:
    /// Stored Data.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct StoredLook {
        /// Its own name.
        pub name: NameBuf = NAME,
        /// Bytes of the packet.
        pub bytes: u64 = 141,
        /// Milliseconds for which it is still fresh; 0: it is stale.
        pub fresh_ms: u64 = 142,
    }
}
