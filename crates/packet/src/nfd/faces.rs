//! FaceStatus and related elements, for the datasets `faces/*` and the event notification.

use super::{
    FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType, PacketCounts,
    element::{Member, element},
    field::{Fields, NfdError},
    numbers::types::{
        BASE_CONGESTION_MARKING_INTERVAL, CHANNEL_STATUS, DATASET_ENTRY, DEFAULT_CONGESTION_THRESHOLD,
        EXPIRATION_PERIOD, FACE_EVENT_KIND, FACE_EVENT_NOTIFICATION, FACE_ID, FACE_PATH_MTU, FACE_PERSISTENCY,
        FACE_PORT, FACE_QUERY_FILTER, FACE_SCOPE, FACE_STATE, FLAGS, LINK_TYPE, LOCAL_URI, MTU, N_IN_BYTES,
        N_IN_INTERESTS, N_OUT_BYTES, URI, URI_SCHEME,
    },
};
use crate::FaceId;

element! {
    fields:
    /// Packet and byte counters of one face.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
    pub struct FaceCounters {
        /// Packets.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub packets: PacketCounts = N_IN_INTERESTS,
        /// Bytes received.
        pub in_bytes: u64 = N_IN_BYTES,
        /// Bytes sent.
        pub out_bytes: u64 = N_OUT_BYTES,
    }
}

element! {
    element DATASET_ENTRY:
    /// One entry of `faces/list` (management.md §6.2).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FaceStatus {
        /// Its number.
        pub face_id: FaceId = FACE_ID,
        /// Remote FaceUri.
        pub uri: String = URI,
        /// Local FaceUri.
        pub local_uri: String = LOCAL_URI,
        /// Milliseconds until an idle on-demand face closes.
        pub expiration_period_ms: Option<u64> = EXPIRATION_PERIOD,
        /// Local or not.
        pub face_scope: FaceScope = FACE_SCOPE,
        /// How long it stays.
        pub face_persistency: FacePersistency = FACE_PERSISTENCY,
        /// How many peers hear it.
        pub link_type: LinkType = LINK_TYPE,
        /// Nanoseconds between congestion marks at the threshold.
        pub base_congestion_marking_interval_ns: Option<u64> = BASE_CONGESTION_MARKING_INTERVAL,
        /// Send queue length in bytes that counts as congestion.
        pub default_congestion_threshold_bytes: Option<u64> = DEFAULT_CONGESTION_THRESHOLD,
        /// Largest frame in bytes; at most 8800 is shown.
        pub mtu: Option<u64> = MTU,
        /// Packets and bytes that passed through it.
        pub counters: FaceCounters = N_IN_INTERESTS,
        /// [`super::face_flags`].
        pub flags: u64 = FLAGS,
        /// In words, how frames of an Ethernet face get to the router; our addition.
        pub port: Option<String> = FACE_PORT,
        /// Whether it can send at present; our addition.
        pub state: Option<FaceState> = FACE_STATE,
        /// Largest frame in bytes that its path takes, if that is less than its MTU; our addition.
        pub path_mtu: Option<u64> = FACE_PATH_MTU,
    }
}

/// Its fields are among those of the element that contains it; the type number is that of its first field.
impl Member for FaceCounters {
    fn write_member(&self, out: &mut Vec<u8>, _: u32) {
        self.write_fields(out);
    }
    fn read_member(fields: &Fields<'_>, _: u32) -> Result<Self, NfdError> {
        FaceCounters::read_fields(fields)
    }
}

element! {
    element CHANNEL_STATUS:
    /// One entry of `faces/channels`: a local address that creates or accepts faces.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChannelStatus {
        /// Local FaceUri.
        pub local_uri: String = LOCAL_URI,
    }
}

element! {
    message FACE_QUERY_FILTER:
    /// Which faces `faces/query` asks for: those that match every given field
    /// (management.md §6.3).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are those of FaceStatus
    pub struct FaceQueryFilter {
        pub face_id: Option<FaceId> = FACE_ID,
        /// Scheme of the local or of the remote FaceUri.
        pub uri_scheme: Option<String> = URI_SCHEME,
        pub uri: Option<String> = URI,
        pub local_uri: Option<String> = LOCAL_URI,
        pub face_scope: Option<FaceScope> = FACE_SCOPE,
        pub face_persistency: Option<FacePersistency> = FACE_PERSISTENCY,
        pub link_type: Option<LinkType> = LINK_TYPE,
    }
}

impl FaceQueryFilter {
    /// True if the face matches every given field; an empty filter matches all.
    pub fn matches(&self, face: &FaceStatus) -> bool {
        let has_scheme = |uri: &str, scheme: &str| uri.split_once("://").is_some_and(|(found, _)| found == scheme);
        let scheme_matches = |scheme: &String| has_scheme(&face.uri, scheme) || has_scheme(&face.local_uri, scheme);
        self.face_id.is_none_or(|id| id == face.face_id)
            && self.uri_scheme.as_ref().is_none_or(scheme_matches)
            && self.uri.as_ref().is_none_or(|uri| *uri == face.uri)
            && self.local_uri.as_ref().is_none_or(|uri| *uri == face.local_uri)
            && self.face_scope.is_none_or(|scope| scope == face.face_scope)
            && self.face_persistency.is_none_or(|persistency| persistency == face.face_persistency)
            && self.link_type.is_none_or(|link_type| link_type == face.link_type)
    }
}

element! {
    message FACE_EVENT_NOTIFICATION:
    /// Content of a `faces/events` Data (management.md §6.4).
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are those of FaceStatus
    pub struct FaceEventNotification {
        pub kind: FaceEventKind = FACE_EVENT_KIND,
        pub face_id: FaceId = FACE_ID,
        pub uri: String = URI,
        pub local_uri: String = LOCAL_URI,
        pub face_scope: FaceScope = FACE_SCOPE,
        pub face_persistency: FacePersistency = FACE_PERSISTENCY,
        pub link_type: LinkType = LINK_TYPE,
        pub flags: u64 = FLAGS,
    }
}
