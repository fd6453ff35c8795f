//! The tables under `[faces]`: where faces come from.

use super::ranges::{idle_timeout, max_per_worker};
use crate::{
    InterfacePattern,
    configuration::{text::Mac, units::Span},
    link_config::{DEFAULT_ETHERNET_GROUP, DEFAULT_UDP4_GROUP, DEFAULT_UDP6_GROUP, DEFAULT_WEBSOCKET_PORT},
};
use serde::{Deserialize, Serialize};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    path::PathBuf,
};

/// `[faces]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FacesSection {
    /// Faces mark packets while their send queues are long, unless a command says otherwise.
    pub congestion_marking: bool,
    /// Most faces of one worker.
    #[serde(deserialize_with = "max_per_worker")]
    pub max_per_worker: u32,
    /// Applications of this host.
    pub unix: UnixSection,
    /// Streams of other hosts.
    pub tcp: TcpSection,
    /// Datagrams of other hosts.
    pub udp: UdpSection,
    /// WebSocket, mostly of browsers.
    pub websocket: WebSocketSection,
    /// UDP multicast.
    pub multicast: MulticastSection,
    /// Ethernet without IP.
    pub ethernet: EthernetSection,
}

/// `[faces.unix]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixSection {
    /// Listen.
    pub enabled: bool,
    /// Where; without it, the first of the usual places that can be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// `[faces.tcp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpSection {
    /// Listen.
    pub enabled: bool,
    /// Where; without it, on [`DEFAULT_LISTENERS`] as far as they are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<SocketAddr>>,
    /// Faces may be made to others.
    pub outgoing: bool,
}

/// `[faces.udp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdpSection {
    /// Listen.
    pub enabled: bool,
    /// Where; without it, on [`DEFAULT_LISTENERS`] as far as they are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<SocketAddr>>,
    /// On-demand faces close after so long without a packet.
    #[serde(deserialize_with = "idle_timeout")]
    pub idle_timeout: Span,
    /// Let the kernel join datagrams of equal size.
    pub offload: bool,
    /// Faces may be made to others.
    pub outgoing: bool,
}

/// `[faces.websocket]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketSection {
    /// Listen.
    pub enabled: bool,
    /// Where, for connections that are not encrypted (`ws`).
    pub listen: Vec<SocketAddr>,
    /// Where, for encrypted ones (`wss`).
    pub listen_tls: Vec<SocketAddr>,
    /// Certificate chain of `listen_tls`, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Private key in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Certificates in PEM that `wss://` servers are checked against; without it, the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_certificates: Option<PathBuf>,
}

/// `[faces.multicast]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MulticastSection {
    /// Have a face for each interface and group.
    pub enabled: bool,
    /// Use the IPv4 group.
    pub ipv4: bool,
    /// Use the IPv6 group.
    pub ipv6: bool,
    /// The IPv4 group and port.
    pub group_v4: SocketAddrV4,
    /// The IPv6 group and port.
    pub group_v6: SocketAddrV6,
    /// Peers may not all hear each other.
    pub ad_hoc: bool,
    /// Interfaces to use: names with `*` and `?`, Ethernet addresses, subnets.
    pub interfaces: Vec<InterfacePattern>,
    /// Interfaces to leave out nevertheless.
    pub except: Vec<InterfacePattern>,
}

/// `[faces.ethernet]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EthernetSection {
    /// A station that sends a frame becomes a face.
    pub listen: bool,
    /// Have a face for the group on each interface.
    pub multicast: bool,
    /// The group.
    pub group: Mac,
    /// Peers may not all hear each other.
    pub ad_hoc: bool,
    /// As [`MulticastSection::interfaces`].
    pub interfaces: Vec<InterfacePattern>,
    /// As [`MulticastSection::except`].
    pub except: Vec<InterfacePattern>,
}

/// Addresses listened on unless told otherwise.
pub const DEFAULT_LISTENERS: [&str; 2] = ["0.0.0.0:6363", "[::]:6363"];

impl Default for FacesSection {
    fn default() -> Self {
        FacesSection {
            congestion_marking: true,
            max_per_worker: 16_384,
            unix: UnixSection::default(),
            tcp: TcpSection::default(),
            udp: UdpSection::default(),
            websocket: WebSocketSection::default(),
            multicast: MulticastSection::default(),
            ethernet: EthernetSection::default(),
        }
    }
}

impl Default for UnixSection {
    fn default() -> Self {
        UnixSection { enabled: true, path: None }
    }
}

impl Default for TcpSection {
    fn default() -> Self {
        TcpSection { enabled: true, listen: None, outgoing: true }
    }
}

impl Default for UdpSection {
    fn default() -> Self {
        UdpSection { enabled: true, listen: None, idle_timeout: Span::from_secs(600), offload: true, outgoing: true }
    }
}

impl Default for WebSocketSection {
    fn default() -> Self {
        WebSocketSection {
            enabled: false,
            listen: vec![
                (Ipv4Addr::UNSPECIFIED, DEFAULT_WEBSOCKET_PORT).into(),
                (Ipv6Addr::UNSPECIFIED, DEFAULT_WEBSOCKET_PORT).into(),
            ],
            listen_tls: Vec::new(),
            certificate: None,
            key: None,
            trusted_certificates: None,
        }
    }
}

impl Default for MulticastSection {
    fn default() -> Self {
        MulticastSection {
            enabled: false,
            ipv4: true,
            ipv6: true,
            group_v4: DEFAULT_UDP4_GROUP,
            group_v6: DEFAULT_UDP6_GROUP,
            ad_hoc: false,
            interfaces: all_interfaces(),
            except: Vec::new(),
        }
    }
}

impl Default for EthernetSection {
    fn default() -> Self {
        EthernetSection {
            listen: false,
            multicast: false,
            group: Mac(DEFAULT_ETHERNET_GROUP),
            ad_hoc: false,
            interfaces: all_interfaces(),
            except: Vec::new(),
        }
    }
}

fn all_interfaces() -> Vec<InterfacePattern> {
    vec![InterfacePattern::Name("*".to_owned())]
}
