//! ControlParameters: the arguments of a command, and the body of its answer.

use super::{
    element::element,
    numbers::types::{
        BASE_CONGESTION_MARKING_INTERVAL, CAPACITY, CONTROL_PARAMETERS, COST, DEFAULT_CONGESTION_THRESHOLD,
        EXPIRATION_PERIOD, FACE_ID, FACE_PERSISTENCY, FLAGS, LOCAL_URI, MTU, ORIGIN, STRATEGY, URI,
    },
};
use crate::{
    FaceId, NameBuf,
    tag::{TagList, tag_types::TAGS},
    tlv::types::NAME,
};

element! {
    message CONTROL_PARAMETERS:
    /// Arguments of a command (management.md §3). Each command defines the fields that it needs, allows and forbids;
    /// this type accepts all of them. Fields are in the order of management.md §3.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ControlParameters {
        /// Prefix of a route, strategy choice or Content Store operation.
        pub name: Option<NameBuf> = NAME,
        /// The face; 0 means the one that the command came from.
        pub face_id: Option<FaceId> = FACE_ID,
        /// Remote FaceUri, as sent.
        pub uri: Option<String> = URI,
        /// Local FaceUri, as sent.
        pub local_uri: Option<String> = LOCAL_URI,
        /// The registrant of the route, one of [`super::origin`].
        pub origin: Option<u64> = ORIGIN,
        /// Cost of the next hop; lower is better.
        pub cost: Option<u64> = COST,
        /// Content Store capacity in packets.
        pub capacity: Option<u64> = CAPACITY,
        /// Number of packets to erase, or erased.
        pub count: Option<u64> = 132,
        /// Bits of a route, face or Content Store; or the packets that an advertisement of tags asks for
        /// ([`super::TagServes`]).
        pub flags: Option<u64> = FLAGS,
        /// The bits of `flags` that are set.
        pub mask: Option<u64> = 112,
        /// Name of a strategy.
        pub strategy: Option<NameBuf> = STRATEGY,
        /// Lifetime of a route, or of an advertisement of tags, in milliseconds.
        pub expiration_period_ms: Option<u64> = EXPIRATION_PERIOD,
        /// [`super::FacePersistency`] as a number, not yet checked.
        pub face_persistency: Option<u64> = FACE_PERSISTENCY,
        /// Nanoseconds between congestion marks at the threshold.
        pub base_congestion_marking_interval_ns: Option<u64> = BASE_CONGESTION_MARKING_INTERVAL,
        /// Send queue length in bytes that counts as congestion.
        pub default_congestion_threshold_bytes: Option<u64> = DEFAULT_CONGESTION_THRESHOLD,
        /// Largest frame in bytes.
        pub mtu: Option<u64> = MTU,
        /// Content Store policy, as `filter/fifo` (admission and eviction) or `fifo`. This field is Namewire's own; its
        /// type number is even, so other programs ignore it.
        pub cs_policy: Option<String> = 33_024,
        /// Content Store capacity in bytes. This field is Namewire's own, as `cs_policy` is.
        pub cs_capacity_bytes: Option<u64> = 33_026,
        /// The tags that an application advertises. This field is Namewire's own; only commands of `tags` have it.
        pub tags: Option<TagList> = TAGS,
        /// Levels of the log, as `info,faces=debug`. This field is Namewire's own; only `log/set` has it.
        pub log_levels: Option<String> = 33_028,
        /// What a command of `process` has to say, as JSON. This field is Namewire's own.
        pub report: Option<String> = 33_030,
    }
}
