//! The entries of `[[face]]`, `[[route]]` and `[[strategy]]`, in configuration and state files.

use super::ranges::mtu;
use crate::configuration::{
    text::{Origin, Prefix, StrategyName, Uri},
    units::{Octets, Span},
};
use serde::{Deserialize, Serialize};

/// `[[face]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceEntry {
    /// Far end, for example `udp://host:6363`.
    pub uri: Uri,
    /// Near end, where the transport needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_uri: Option<Uri>,
    /// How long it stays.
    #[serde(default)]
    pub persistency: Persistency,
    /// Largest frame in octets.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "mtu")]
    pub mtu: Option<u64>,
    /// NDNLPv2 reliability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<bool>,
    /// Mark packets while the queue is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_marking: Option<bool>,
    /// Time between congestion marks at the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_marking_interval: Option<Span>,
    /// Length of the queue that counts as congestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_threshold: Option<Octets>,
}

/// `[[route]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteEntry {
    /// Names it is for.
    pub prefix: Prefix,
    /// Next hop: a face's far end. A permanent face is made if none leads there.
    pub face: Uri,
    /// Lower is better.
    #[serde(default)]
    pub cost: u64,
    /// Who registers it.
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
    /// Names it is for.
    pub prefix: Prefix,
    /// A short name such as `multicast`, or the whole name.
    pub strategy: StrategyName,
}

/// How long a declared face stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistency {
    /// Until it fails.
    Persistent,
    /// For ever.
    #[default]
    Permanent,
}

fn yes() -> bool {
    true
}

fn static_origin() -> Origin {
    Origin(namewire_packet::nfd::origin::STATIC)
}
