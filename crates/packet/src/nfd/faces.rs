//! FaceStatus and its relatives: datasets `faces/*` and the event notification.

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError, write_optional},
    numbers::types::{
        BASE_CONGESTION_MARKING_INTERVAL, CHANNEL_STATUS, DATASET_ENTRY, DEFAULT_CONGESTION_THRESHOLD,
        EXPIRATION_PERIOD, FACE_EVENT_KIND, FACE_EVENT_NOTIFICATION, FACE_ID, FACE_PERSISTENCY, FACE_QUERY_FILTER,
        FACE_SCOPE, FLAGS, LINK_TYPE, LOCAL_URI, MTU, N_IN_BYTES, N_IN_DATA, N_IN_INTERESTS, N_IN_NACKS, N_OUT_BYTES,
        N_OUT_DATA, N_OUT_INTERESTS, N_OUT_NACKS, URI, URI_SCHEME,
    },
};
use crate::{FaceId, tlv};
use std::fmt;

/// Gives an enum of the protocol its numbers, its words and its field codec.
macro_rules! protocol_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code),+ }

        impl $name {
            /// Number on the wire.
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// The value with this number, if there is one.
            pub const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $word),+ })
            }
        }

        impl Field for $name {
            fn write(&self, out: &mut Vec<u8>, type_number: u32) {
                self.code().write(out, type_number);
            }
            fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
                let code = u64::read(type_number, value)?;
                $name::from_code(code).ok_or(NfdError::BadValue { field: type_number, value: code })
            }
        }
    };
}

protocol_enum! {
    /// Whether a face leads to this host or to others.
    FaceScope {
        /// Leads to other hosts.
        NonLocal = 0 "non-local",
        /// Leads to an application on this host.
        Local = 1 "local"
    }
}
protocol_enum! {
    /// How long a face stays.
    FacePersistency {
        /// Until destroyed or failed.
        Persistent = 0 "persistent",
        /// Until idle.
        OnDemand = 1 "on-demand",
        /// Until destroyed; failures are mended.
        Permanent = 2 "permanent"
    }
}
protocol_enum! {
    /// Who hears what is sent on a face.
    LinkType {
        /// One other node.
        PointToPoint = 0 "point-to-point",
        /// Several nodes that hear each other.
        MultiAccess = 1 "multi-access",
        /// Several nodes that may not hear each other.
        AdHoc = 2 "adhoc"
    }
}
protocol_enum! {
    /// What happened to a face.
    FaceEventKind {
        /// It was created.
        Created = 1 "created",
        /// It was destroyed.
        Destroyed = 2 "destroyed",
        /// It works again.
        Up = 3 "up",
        /// It does not work for now.
        Down = 4 "down"
    }
}

/// Packet and octet counters of one face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the field names are the protocol's
pub struct FaceCounters {
    pub n_in_interests: u64,
    pub n_in_data: u64,
    pub n_in_nacks: u64,
    pub n_out_interests: u64,
    pub n_out_data: u64,
    pub n_out_nacks: u64,
    pub n_in_bytes: u64,
    pub n_out_bytes: u64,
}

/// One entry of `faces/list` (management.md §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceStatus {
    /// Its number.
    pub face_id: FaceId,
    /// Remote FaceUri.
    pub uri: String,
    /// Local FaceUri.
    pub local_uri: String,
    /// Milliseconds until an idle on-demand face closes.
    pub expiration_period_ms: Option<u64>,
    /// Local or not.
    pub face_scope: FaceScope,
    /// How long it stays.
    pub face_persistency: FacePersistency,
    /// Who hears it.
    pub link_type: LinkType,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in octets that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in octets; at most 8800 is shown.
    pub mtu: Option<u64>,
    /// What went through.
    pub counters: FaceCounters,
    /// [`super::face_flags`].
    pub flags: u64,
}

impl DatasetEntry for FaceStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.face_id.write(out, FACE_ID);
            self.uri.write(out, URI);
            self.local_uri.write(out, LOCAL_URI);
            write_optional(out, EXPIRATION_PERIOD, &self.expiration_period_ms);
            self.face_scope.write(out, FACE_SCOPE);
            self.face_persistency.write(out, FACE_PERSISTENCY);
            self.link_type.write(out, LINK_TYPE);
            write_optional(out, BASE_CONGESTION_MARKING_INTERVAL, &self.base_congestion_marking_interval_ns);
            write_optional(out, DEFAULT_CONGESTION_THRESHOLD, &self.default_congestion_threshold_bytes);
            write_optional(out, MTU, &self.mtu);
            self.counters.write(out);
            self.flags.write(out, FLAGS);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(FaceStatus {
            face_id: fields.required(FACE_ID)?,
            uri: fields.required(URI)?,
            local_uri: fields.required(LOCAL_URI)?,
            expiration_period_ms: fields.optional(EXPIRATION_PERIOD)?,
            face_scope: fields.required(FACE_SCOPE)?,
            face_persistency: fields.required(FACE_PERSISTENCY)?,
            link_type: fields.required(LINK_TYPE)?,
            base_congestion_marking_interval_ns: fields.optional(BASE_CONGESTION_MARKING_INTERVAL)?,
            default_congestion_threshold_bytes: fields.optional(DEFAULT_CONGESTION_THRESHOLD)?,
            mtu: fields.optional(MTU)?,
            counters: FaceCounters::read(&fields)?,
            flags: fields.required(FLAGS)?,
        })
    }
}

impl FaceCounters {
    fn write(&self, out: &mut Vec<u8>) {
        self.n_in_interests.write(out, N_IN_INTERESTS);
        self.n_in_data.write(out, N_IN_DATA);
        self.n_in_nacks.write(out, N_IN_NACKS);
        self.n_out_interests.write(out, N_OUT_INTERESTS);
        self.n_out_data.write(out, N_OUT_DATA);
        self.n_out_nacks.write(out, N_OUT_NACKS);
        self.n_in_bytes.write(out, N_IN_BYTES);
        self.n_out_bytes.write(out, N_OUT_BYTES);
    }

    fn read(fields: &Fields<'_>) -> Result<Self, NfdError> {
        Ok(FaceCounters {
            n_in_interests: fields.required(N_IN_INTERESTS)?,
            n_in_data: fields.required(N_IN_DATA)?,
            n_in_nacks: fields.required(N_IN_NACKS)?,
            n_out_interests: fields.required(N_OUT_INTERESTS)?,
            n_out_data: fields.required(N_OUT_DATA)?,
            n_out_nacks: fields.required(N_OUT_NACKS)?,
            n_in_bytes: fields.required(N_IN_BYTES)?,
            n_out_bytes: fields.required(N_OUT_BYTES)?,
        })
    }
}

/// One entry of `faces/channels`: a local address that makes or takes faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Local FaceUri.
    pub local_uri: String,
}

impl DatasetEntry for ChannelStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, CHANNEL_STATUS, |out| self.local_uri.write(out, LOCAL_URI));
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, CHANNEL_STATUS)?;
        Ok(ChannelStatus { local_uri: fields.required(LOCAL_URI)? })
    }
}

/// Which faces `faces/query` asks for: those that match every given field
/// (management.md §6.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the field names are those of FaceStatus
pub struct FaceQueryFilter {
    pub face_id: Option<FaceId>,
    /// Scheme of the local or of the remote FaceUri.
    pub uri_scheme: Option<String>,
    pub uri: Option<String>,
    pub local_uri: Option<String>,
    pub face_scope: Option<FaceScope>,
    pub face_persistency: Option<FacePersistency>,
    pub link_type: Option<LinkType>,
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

    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, FACE_QUERY_FILTER, |out| {
            write_optional(out, FACE_ID, &self.face_id);
            write_optional(out, URI_SCHEME, &self.uri_scheme);
            write_optional(out, URI, &self.uri);
            write_optional(out, LOCAL_URI, &self.local_uri);
            write_optional(out, FACE_SCOPE, &self.face_scope);
            write_optional(out, FACE_PERSISTENCY, &self.face_persistency);
            write_optional(out, LINK_TYPE, &self.link_type);
        });
    }

    /// Reads one whole element.
    ///
    /// # Errors
    /// If the octets are not exactly one FaceQueryFilter element.
    pub fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, FACE_QUERY_FILTER)?;
        Ok(FaceQueryFilter {
            face_id: fields.optional(FACE_ID)?,
            uri_scheme: fields.optional(URI_SCHEME)?,
            uri: fields.optional(URI)?,
            local_uri: fields.optional(LOCAL_URI)?,
            face_scope: fields.optional(FACE_SCOPE)?,
            face_persistency: fields.optional(FACE_PERSISTENCY)?,
            link_type: fields.optional(LINK_TYPE)?,
        })
    }
}

/// Content of a `faces/events` Data (management.md §6.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the field names are those of FaceStatus
pub struct FaceEventNotification {
    pub kind: FaceEventKind,
    pub face_id: FaceId,
    pub uri: String,
    pub local_uri: String,
    pub face_scope: FaceScope,
    pub face_persistency: FacePersistency,
    pub link_type: LinkType,
    pub flags: u64,
}

impl FaceEventNotification {
    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, FACE_EVENT_NOTIFICATION, |out| {
            self.kind.write(out, FACE_EVENT_KIND);
            self.face_id.write(out, FACE_ID);
            self.uri.write(out, URI);
            self.local_uri.write(out, LOCAL_URI);
            self.face_scope.write(out, FACE_SCOPE);
            self.face_persistency.write(out, FACE_PERSISTENCY);
            self.link_type.write(out, LINK_TYPE);
            self.flags.write(out, FLAGS);
        });
    }

    /// Reads one whole element.
    ///
    /// # Errors
    /// If the octets are not exactly one FaceEventNotification element.
    pub fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, FACE_EVENT_NOTIFICATION)?;
        Ok(FaceEventNotification {
            kind: fields.required(FACE_EVENT_KIND)?,
            face_id: fields.required(FACE_ID)?,
            uri: fields.required(URI)?,
            local_uri: fields.required(LOCAL_URI)?,
            face_scope: fields.required(FACE_SCOPE)?,
            face_persistency: fields.required(FACE_PERSISTENCY)?,
            link_type: fields.required(LINK_TYPE)?,
            flags: fields.required(FLAGS)?,
        })
    }
}
