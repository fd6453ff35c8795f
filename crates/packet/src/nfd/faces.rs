//! FaceStatus and related elements, for the datasets `faces/*` and the event notification.

use super::{
    FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType, PacketCounts,
    element::element,
    numbers::types::{
        BASE_CONGESTION_MARKING_INTERVAL, DEFAULT_CONGESTION_THRESHOLD, EXPIRATION_PERIOD, FACE_ID, FACE_PERSISTENCY,
        FACE_SCOPE, FLAGS, LINK_TYPE, LOCAL_URI, MTU, URI,
    },
};
use crate::FaceId;

element! {
    fields:
    /// Packet and byte counters of one face.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FaceCounters {
        /// Packets.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub packets: PacketCounts = 144,
        pub in_bytes: u64 = 148 => Counter: "Bytes received.",
        pub out_bytes: u64 = 149 => Counter: "Bytes sent.",
    }
}

element! {
    fields:
    /// What the link of a face did; our addition. A new count is a line here, and one where the link says what it did.
    /// `None`: the forwarder does not tell, or the face has no link.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LinkCounts {
        pub frames_retransmitted: Option<u64> = 33_034 => Counter: "Frames that the face sent again, because no acknowledgement came.",
        pub congestion_marked: Option<u64> = 33_036 => Counter: "Packets that the face marked, because its send queue was long.",
    }
}

element! {
    dataset "faces/list":
    /// One entry of `faces/list` (management.md §6.2).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FaceStatus {
        /// Its number.
        pub face_id: FaceId = FACE_ID,
        /// Remote FaceUri.
        pub uri: String = URI as "remote_uri",
        /// Local FaceUri.
        pub local_uri: String = LOCAL_URI,
        /// Milliseconds until an idle on-demand face closes.
        pub expiration_period_ms: Option<u64> = EXPIRATION_PERIOD as "expires_ms",
        /// Local or not.
        pub face_scope: FaceScope = FACE_SCOPE as "scope",
        /// How long it stays.
        pub face_persistency: FacePersistency = FACE_PERSISTENCY as "persistency",
        /// How many peers hear it.
        pub link_type: LinkType = LINK_TYPE,
        /// Nanoseconds between congestion marks at the threshold.
        pub base_congestion_marking_interval_ns: Option<u64> = BASE_CONGESTION_MARKING_INTERVAL,
        /// Send queue length in bytes that counts as congestion.
        pub default_congestion_threshold_bytes: Option<u64> = DEFAULT_CONGESTION_THRESHOLD,
        /// Largest frame in bytes; at most 8800 is shown.
        pub mtu: Option<u64> = MTU as "mtu_bytes",
        /// Packets and bytes that passed through it.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub counters: FaceCounters = 144,
        /// [`super::face_flags`].
        #[cfg_attr(feature = "serde", serde(serialize_with = "super::numbers::face_flags::serialize"))]
        pub flags: u64 = FLAGS,
        // Our additions come after all others, where other programs stop to read.
        /// In words, how frames of an Ethernet face get to the router; our addition.
        pub port: Option<String> = 33_026,
        /// Whether it can send at present; our addition. JSON has [`super::FaceHealth::state_word`].
        #[cfg_attr(feature = "serde", serde(skip))]
        pub state: Option<FaceState> = 33_028,
        /// Largest frame in bytes that its path takes, if that is less than its MTU; our addition.
        pub path_mtu: Option<u64> = 33_030 as "path_mtu_bytes",
        /// What its link did.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub link: LinkCounts = 33_034,
    }
}

element! {
    dataset "faces/channels" 130:
    /// One entry of `faces/channels`: a local address that creates or accepts faces.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChannelStatus {
        /// Local FaceUri.
        pub local_uri: String = LOCAL_URI,
    }
}

element! {
    message 150:
    /// Which faces `faces/query` asks for: those that match every given field
    /// (management.md §6.3).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are those of FaceStatus
    pub struct FaceQueryFilter {
        pub face_id: Option<FaceId> = FACE_ID,
        /// Scheme of the local or of the remote FaceUri.
        pub uri_scheme: Option<String> = 131,
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
    message 192:
    /// Content of a `faces/events` Data (management.md §6.4).
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are those of FaceStatus
    pub struct FaceEventNotification {
        pub kind: FaceEventKind = 193 as "event",
        pub face_id: FaceId = FACE_ID,
        pub uri: String = URI as "remote_uri",
        pub local_uri: String = LOCAL_URI,
        pub face_scope: FaceScope = FACE_SCOPE as "scope",
        pub face_persistency: FacePersistency = FACE_PERSISTENCY as "persistency",
        pub link_type: LinkType = LINK_TYPE,
        #[cfg_attr(feature = "serde", serde(serialize_with = "super::numbers::face_flags::serialize"))]
        pub flags: u64 = FLAGS,
    }
}
