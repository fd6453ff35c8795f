//! Numbers of the NFD management protocol (management.md §3, §6; drop-in.md §7).

/// Type numbers of management elements, as in ndn-cxx `tlv-nfd.hpp`.
pub mod types {
    #![allow(missing_docs)] // the names are the protocol's
    pub const CONTROL_RESPONSE: u32 = 101;
    pub const STATUS_CODE: u32 = 102;
    pub const STATUS_TEXT: u32 = 103;
    pub const CONTROL_PARAMETERS: u32 = 104;
    pub const FACE_ID: u32 = 105;
    pub const COST: u32 = 106;
    pub const STRATEGY: u32 = 107;
    pub const FLAGS: u32 = 108;
    pub const EXPIRATION_PERIOD: u32 = 109;
    pub const ORIGIN: u32 = 111;
    pub const MASK: u32 = 112;
    pub const URI: u32 = 114;
    pub const LOCAL_URI: u32 = 129;
    pub const CAPACITY: u32 = 131;
    pub const COUNT: u32 = 132;
    pub const FACE_PERSISTENCY: u32 = 133;
    pub const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
    pub const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
    pub const MTU: u32 = 137;
    /// In FaceStatus, after all others, where other programs stop to read.
    pub const FACE_PORT: u32 = 33_026;
    /// As [`FACE_PORT`], after it.
    pub const FACE_STATE: u32 = 33_028;
    /// As [`FACE_PORT`], after [`FACE_STATE`].
    pub const FACE_PATH_MTU: u32 = 33_030;
    /// In a Route, after all others, where other programs stop to read.
    pub const ROUTE_CONTESTED: u32 = 33_032;

    // Datasets reuse 128 to 135.
    pub const DATASET_ENTRY: u32 = 128;
    pub const NESTED_RECORD: u32 = 129;
    pub const CHANNEL_STATUS: u32 = 130;
    pub const URI_SCHEME: u32 = 131;
    pub const FACE_SCOPE: u32 = 132;
    pub const LINK_TYPE: u32 = 134;
    pub const CS_HITS: u32 = 129;
    pub const CS_MISSES: u32 = 130;
    pub const CS_POLICY: u32 = 128;
    pub const CS_BYTES: u32 = 132;
    pub const CS_ADMISSION: u32 = 133;
    pub const CS_POLICY_BYTES: u32 = 134;
    pub const CS_INSERTIONS: u32 = 135;
    pub const CS_NOT_ADMITTED: u32 = 136;
    pub const CS_EVICTIONS: u32 = 137;
    pub const CS_BY_POLICY: u32 = 138;
    pub const CS_BY_PREFIX: u32 = 139;
    pub const CS_PREFIX_LOOKUP: u32 = 140;
    pub const CS_PREFIX_INDEX_BYTES: u32 = 141;
    /// In ControlParameters; even and above 31, so other programs ignore it.
    pub const CS_POLICY_NAME: u32 = 33_024;
    /// In ControlParameters; even and above 31, so other programs ignore it.
    pub const CS_CAPACITY_BYTES: u32 = 33_026;
    /// In ControlParameters; even and above 31, so other programs ignore it.
    pub const LOG_LEVELS: u32 = 33_028;
    pub const FIB_DESIGN: u32 = 128;
    pub const FIB_BYTES: u32 = 132;
    pub const FIB_LOSSY: u32 = 133;
    pub const PROCESS_USER: u32 = 128;
    pub const PROCESS_CAPABILITIES: u32 = 129;
    pub const PROCESS_NO_NEW_PRIVILEGES: u32 = 130;
    pub const DROP_REASON: u32 = 128;
    pub const DROP_TIME: u32 = 129;
    pub const PACKET_KIND: u32 = 130;
    pub const DROP_NAME_CUT: u32 = 131;
    pub const DROP_COUNT: u32 = 132;
    pub const HEALTH_SINCE: u32 = 128;
    pub const HEALTH_ANSWERED: u32 = 129;
    pub const HEALTH_UNANSWERED: u32 = 130;
    pub const HEALTH_LAST: u32 = 131;
    pub const HEALTH_MEDIAN: u32 = 132;
    pub const HEALTH_P99: u32 = 133;
    pub const HEALTH_RECENT: u32 = 134;
    pub const RECENT_SPAN: u32 = 128;
    pub const RECENT_IN_PACKETS: u32 = 129;
    pub const RECENT_IN_BYTES: u32 = 130;
    pub const RECENT_OUT_PACKETS: u32 = 131;
    pub const RECENT_OUT_BYTES: u32 = 132;
    pub const RECENT_ANSWERED: u32 = 133;
    pub const RECENT_UNANSWERED: u32 = 134;
    pub const RECENT_AVOIDED: u32 = 135;
    pub const LOOK_WORKER: u32 = 128;
    pub const LOOK_IS_OWNER: u32 = 129;
    pub const LOOK_PENDING: u32 = 130;
    pub const LOOK_STORED: u32 = 131;
    pub const LOOK_STORED_UNDER: u32 = 132;
    pub const LOOK_IS_PREFIX: u32 = 133;
    pub const LOOK_MUST_BE_FRESH: u32 = 134;
    pub const LOOK_EXPIRES: u32 = 135;
    pub const LOOK_SATISFIED: u32 = 136;
    pub const LOOK_DOWNSTREAM: u32 = 137;
    pub const LOOK_UPSTREAM: u32 = 138;
    pub const LOOK_AGE: u32 = 139;
    pub const LOOK_NACK: u32 = 140;
    pub const LOOK_BYTES: u32 = 141;
    pub const LOOK_FRESH: u32 = 142;
    pub const LOOK_FIB: u32 = 143;
    pub const LOOK_CHOSEN: u32 = 144;
    pub const LOOK_SILENT: u32 = 145;
    pub const POOL_NAME: u32 = 128;
    pub const POOL_HOLDER: u32 = 129;
    pub const POOL_CAPACITY: u32 = 130;
    pub const POOL_HELD: u32 = 131;
    pub const POOL_REFUSED: u32 = 132;
    pub const TREE_NUMBER: u32 = 128;
    pub const TREE_EPOCH: u32 = 129;
    pub const TREE_ROOT: u32 = 130;
    pub const TREE_ROUTER: u32 = 131;
    pub const TREE_LABEL: u32 = 132;
    pub const TREE_PARENT: u32 = 133;
    pub const TREE_CHILD: u32 = 134;
    pub const TREE_ROUTERS_BELOW: u32 = 135;
    pub const TREE_DESCRIPTORS: u32 = 136;
    pub const CAPTURE_FACE: u32 = 128;
    pub const CAPTURE_FRAME: u32 = 129;
    pub const CAPTURE_LEFT: u32 = 130;
    pub const CAPTURE_DECISION: u32 = 131;
    pub const CAPTURE_IS_OUT: u32 = 128;
    pub const CAPTURE_TIME: u32 = 129;
    pub const CAPTURE_FRAME_LEN: u32 = 130;
    pub const CAPTURE_FRAME_BYTES: u32 = 131;
    pub const CAPTURE_MISSED: u32 = 132;
    pub const CAPTURE_REASON: u32 = 133;
    pub const CAPTURE_PACKET_KIND: u32 = 134;
    pub const CAPTURE_NAME_CUT: u32 = 135;
    pub const CAPTURE_VERDICT: u32 = 136;
    pub const CAPTURE_TO: u32 = 137;
    pub const CAPTURE_MORE: u32 = 138;
    pub const CAPTURE_WORKER: u32 = 139;
    pub const CAPTURE_LIFETIME: u32 = 140;
    pub const LOG_NUMBER: u32 = 128;
    pub const LOG_TIME: u32 = 129;
    pub const LOG_LEVEL: u32 = 130;
    pub const LOG_AREA: u32 = 131;
    pub const LOG_MESSAGE: u32 = 132;
    pub const LOG_FIELD: u32 = 133;
    pub const LOG_FIELD_NAME: u32 = 128;
    pub const LOG_FIELD_VALUE: u32 = 129;
    pub const SETTING_KEY: u32 = 128;
    pub const SETTING_VALUE: u32 = 129;
    pub const SETTING_SOURCE: u32 = 130;
    pub const SETTING_PLACE: u32 = 131;
    pub const TAG_DESCRIPTOR: u32 = 128;
    pub const TAG_BRANCH: u32 = 129;
    pub const TAG_SERVES: u32 = 130;
    pub const TAG_APPLICATION: u32 = 131;
    pub const NFD_VERSION: u32 = 128;
    pub const START_TIMESTAMP: u32 = 129;
    pub const CURRENT_TIMESTAMP: u32 = 130;
    pub const N_NAME_TREE_ENTRIES: u32 = 131;
    pub const N_FIB_ENTRIES: u32 = 132;
    pub const N_PIT_ENTRIES: u32 = 133;
    pub const N_MEASUREMENTS_ENTRIES: u32 = 134;
    pub const N_CS_ENTRIES: u32 = 135;

    // Counters are not consecutive.
    pub const N_IN_INTERESTS: u32 = 144;
    pub const N_IN_DATA: u32 = 145;
    pub const N_OUT_INTERESTS: u32 = 146;
    pub const N_OUT_DATA: u32 = 147;
    pub const N_IN_BYTES: u32 = 148;
    pub const N_OUT_BYTES: u32 = 149;
    pub const N_IN_NACKS: u32 = 151;
    pub const N_OUT_NACKS: u32 = 152;
    pub const N_SATISFIED_INTERESTS: u32 = 153;
    pub const N_UNSATISFIED_INTERESTS: u32 = 154;

    pub const FACE_QUERY_FILTER: u32 = 150;
    pub const FACE_EVENT_NOTIFICATION: u32 = 192;
    pub const FACE_EVENT_KIND: u32 = 193;
}

/// The kinds of registrants of a route.
pub mod origin {
    #![allow(missing_docs)] // the names are the protocol's
    pub const APP: u64 = 0;
    pub const AUTOREG: u64 = 64;
    pub const CLIENT: u64 = 65;
    pub const AUTOCONF: u64 = 66;
    pub const NLSR: u64 = 128;
    pub const PREFIX_ANNOUNCEMENT: u64 = 129;
    pub const STATIC: u64 = 255;

    /// nfdc's words for them.
    pub const NAMES: [(&str, u64); 7] = [
        ("app", APP),
        ("autoreg", AUTOREG),
        ("client", CLIENT),
        ("autoconf", AUTOCONF),
        ("nlsr", NLSR),
        ("prefixann", PREFIX_ANNOUNCEMENT),
        ("static", STATIC),
    ];

    pub fn name(code: u64) -> Option<&'static str> {
        NAMES.iter().find(|(_, known)| *known == code).map(|(name, _)| *name)
    }
}

/// Bits of a route's Flags.
pub mod route_flags {
    /// Longer prefixes in the RIB inherit this next hop; the default.
    pub const CHILD_INHERIT: u64 = 1;
    /// Longer prefixes inherit nothing from prefixes shorter than this one.
    pub const CAPTURE: u64 = 2;
}

/// Bits of a face's Flags.
pub mod face_flags {
    /// IncomingFaceId and NextHopFaceId are exchanged; local faces only.
    pub const LOCAL_FIELDS: u64 = 1;
    /// NDNLPv2 link reliability.
    pub const LP_RELIABILITY: u64 = 2;
    /// Packets are marked when the send queue is congested.
    pub const CONGESTION_MARKING: u64 = 4;
}

/// Bits of the Content Store's Flags.
pub mod cs_flags {
    /// New Data is admitted.
    pub const ADMIT: u64 = 1;
    /// Interests are answered from the store.
    pub const SERVE: u64 = 2;
}
