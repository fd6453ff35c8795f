//! The entries of `[[face]]`, `[[route]]` and `[[strategy]]`, in configuration and state files.

use super::ranges::mtu;
use crate::{
    text::{Origin, Prefix, StrategyName, Uri},
    units::{Bytes, Span},
};
use namewire_packet::nfd::{ControlParameters, FacePersistency, face_flags};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// `[[face]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceEntry {
    /// Remote end, for example `udp://host:6363`.
    pub uri: Uri,
    /// Local end, where the transport needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_uri: Option<Uri>,
    /// How long it stays.
    #[serde(default = "permanent", serialize_with = "persistency_word", deserialize_with = "persistency")]
    pub persistency: FacePersistency,
    /// Largest frame in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "mtu")]
    pub mtu: Option<u64>,
    /// NDNLPv2 reliability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<bool>,
    /// All workers send and receive its packets; UDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<bool>,
    /// Mark packets while the queue is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_marking: Option<bool>,
    /// Time between congestion marks at the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_marking_interval: Option<Span>,
    /// Length of the queue that counts as congestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_threshold: Option<Bytes>,
}

/// `[[route]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteEntry {
    /// The names that it is for.
    pub prefix: Prefix,
    /// Next hop: a face's remote end. A permanent face is made if none leads there.
    pub face: Uri,
    /// Lower is better.
    #[serde(default)]
    pub cost: u64,
    /// The component that registers it.
    #[serde(default = "static_origin")]
    pub origin: Origin,
    /// It also serves longer prefixes that have routes of their own.
    #[serde(default = "yes")]
    pub inherit: bool,
    /// It hides the routes of shorter prefixes.
    #[serde(default)]
    pub capture: bool,
}

/// `[[strategy]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyEntry {
    /// The names that it is for.
    pub prefix: Prefix,
    /// A short name such as `multicast`, or the whole name.
    pub strategy: StrategyName,
}

impl FaceEntry {
    /// A permanent face with the defaults of its transport.
    pub fn permanent(uri: Uri) -> Self {
        FaceEntry {
            uri,
            local_uri: None,
            persistency: FacePersistency::Permanent,
            mtu: None,
            reliability: None,
            lanes: None,
            congestion_marking: None,
            congestion_marking_interval: None,
            congestion_threshold: None,
        }
    }

    /// The parameters that change a face made from `previous` into this one. What is no longer given gets its default,
    /// if all transports have the same default; the MTU becomes `default_mtu`.
    pub fn parameters_after(&self, previous: Option<&FaceEntry>, default_mtu: u64) -> ControlParameters {
        let mut entry = self.clone();
        if previous.is_some_and(|previous| previous.mtu.is_some()) {
            entry.mtu = entry.mtu.or(Some(default_mtu));
        }
        if previous.is_some_and(|previous| previous.reliability.is_some()) {
            entry.reliability = entry.reliability.or(Some(false));
        }
        if previous.is_some_and(|previous| previous.lanes.is_some()) {
            entry.lanes = entry.lanes.or(Some(false));
        }
        entry.parameters()
    }

    /// The parameters for `faces/create` and `faces/update`.
    pub fn parameters(&self) -> ControlParameters {
        let mut parameters = ControlParameters {
            face_persistency: Some(self.persistency.code()),
            mtu: self.mtu,
            base_congestion_marking_interval_ns: self.congestion_marking_interval.map(|span| span.0.as_nanos() as u64),
            default_congestion_threshold_bytes: self.congestion_threshold.map(|bytes| bytes.0),
            ..ControlParameters::default()
        };
        for (wanted, bit) in [
            (self.reliability, face_flags::LP_RELIABILITY),
            (self.congestion_marking, face_flags::CONGESTION_MARKING),
            (self.lanes, face_flags::LANES),
        ] {
            if let Some(is_on) = wanted {
                *parameters.mask.get_or_insert(0) |= bit;
                *parameters.flags.get_or_insert(0) |= if is_on { bit } else { 0 };
            }
        }
        parameters
    }
}

fn yes() -> bool {
    true
}

fn static_origin() -> Origin {
    Origin(namewire_packet::nfd::origin::STATIC)
}

fn permanent() -> FacePersistency {
    FacePersistency::Permanent
}

fn persistency_word<S: Serializer>(persistency: &FacePersistency, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(persistency.word())
}

fn persistency<'de, D: Deserializer<'de>>(from: D) -> Result<FacePersistency, D::Error> {
    let word = String::deserialize(from)?;
    let known = word.parse().ok().filter(|persistency| FacePersistency::LASTING.contains(persistency));
    known.ok_or_else(|| D::Error::unknown_variant(&word, &["persistent", "permanent"]))
}
