//! The tables under `[faces]`: the listeners and links that make faces.

use super::ethernet_io::EthernetIo;
use super::ranges::{idle_timeout, max_per_worker, udp_mtu};
use crate::{
    InterfacePattern,
    text::Mac,
    units::{Bytes, Span},
};
use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{
        MacAddress,
        face_uri::{DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_WEBSOCKET_PORT},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    path::{Path, PathBuf},
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
    /// Faces to applications on this host.
    pub unix: UnixSection,
    /// Applications on this host that share memory with the router.
    pub memif: MemifSection,
    /// TCP streams to other hosts.
    pub tcp: TcpSection,
    /// UDP datagrams to other hosts.
    pub udp: UdpSection,
    /// WebSocket, mostly for browsers.
    pub websocket: WebSocketSection,
    /// UDP multicast.
    pub multicast: MulticastSection,
    /// Ethernet without IP.
    pub ethernet: EthernetSection,
    /// Devices that the router drives itself.
    pub dpdk: DpdkSection,
}

/// `[faces.unix]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixSection {
    /// Listen.
    pub enabled: bool,
    /// The path; without it, the first usual place that can be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// `[faces.memif]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemifSection {
    /// The Unix socket over which applications connect. Without it, none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// `[faces.dpdk]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpdkSection {
    /// Devices: PCI addresses, or virtual devices with their arguments.
    pub ports: Vec<String>,
    /// Options of DPDK's Environment Abstraction Layer.
    pub eal: Vec<String>,
}

/// `[faces.tcp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpSection {
    /// Listen.
    pub enabled: bool,
    /// Addresses to listen on. Without it: port 6363 of all addresses, except those in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<SocketAddr>>,
    /// A connection (also one over WebSocket) closes if it brings no packet for this long.
    #[serde(deserialize_with = "idle_timeout")]
    pub first_packet_timeout: Span,
    /// Faces to others may be made.
    pub outgoing: bool,
}

/// `[faces.udp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdpSection {
    /// Listen.
    pub enabled: bool,
    /// Addresses to listen on. Without it: port 6363 of all addresses, except those in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<SocketAddr>>,
    /// On-demand faces close after this long without a packet.
    #[serde(deserialize_with = "idle_timeout")]
    pub idle_timeout: Span,
    /// MTU of faces to one peer, on demand or by a command that gives none.
    #[serde(deserialize_with = "udp_mtu")]
    pub mtu: Bytes,
    /// Let the kernel join datagrams of equal size.
    pub offload: bool,
    /// Faces to others may be made.
    pub outgoing: bool,
}

/// `[faces.websocket]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketSection {
    /// Listen.
    pub enabled: bool,
    /// Addresses for connections that are not encrypted (`ws`).
    pub listen: Vec<SocketAddr>,
    /// Addresses for encrypted connections (`wss`).
    pub listen_tls: Vec<SocketAddr>,
    /// Certificate chain of `listen_tls`, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Private key in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Certificates in PEM against which `wss://` servers are checked; without it, the system's.
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
    /// True if some peers may not hear each other.
    pub ad_hoc: bool,
    /// Interfaces to use: names with `*` and `?`, Ethernet addresses, subnets.
    pub interfaces: Vec<InterfacePattern>,
    /// Interfaces to leave out all the same.
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
    /// Commands may ask for faces to stations, also if nothing else here needs the privilege for them.
    pub by_command: bool,
    /// The group.
    pub group: Mac,
    /// True if some peers may not hear each other.
    pub ad_hoc: bool,
    /// See [`MulticastSection::interfaces`].
    pub interfaces: Vec<InterfacePattern>,
    /// See [`MulticastSection::except`].
    pub except: Vec<InterfacePattern>,
    /// How frames get to the router.
    pub io: EthernetIo,
}

/// Addresses to listen on if none are given, except those in use.
const DEFAULT_LISTENERS: [SocketAddr; 2] = [
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, DEFAULT_PORT)),
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, DEFAULT_PORT, 0, 0)),
];

/// The IPv4 multicast group of NDN.
const DEFAULT_UDP4_GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(224, 0, 23, 170), DEFAULT_MULTICAST_PORT);

/// The IPv6 multicast group of NDN, on each link.
const DEFAULT_UDP6_GROUP: SocketAddrV6 =
    SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1234), DEFAULT_MULTICAST_PORT, 0, 0);

/// The Ethernet multicast group of NDN.
const DEFAULT_ETHERNET_GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa]);

impl TcpSection {
    /// Addresses to listen on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        addresses(self.enabled, self.listen.as_deref())
    }
}

impl UdpSection {
    /// Addresses to listen on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        addresses(self.enabled, self.listen.as_deref())
    }
}

fn addresses(is_enabled: bool, given: Option<&[SocketAddr]>) -> Vec<SocketAddr> {
    match given {
        _ if !is_enabled => Vec::new(),
        Some(addresses) => addresses.to_vec(),
        None => DEFAULT_LISTENERS.to_vec(),
    }
}

impl UnixSection {
    /// The path to listen on; `None` if the place is still to be chosen.
    pub fn socket(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.enabled)
    }
}

impl MulticastSection {
    /// The IPv4 group to have faces for.
    pub fn group4(&self) -> Option<SocketAddrV4> {
        (self.enabled && self.ipv4).then_some(self.group_v4)
    }

    /// The IPv6 group to have faces for. Its scope is ignored.
    pub fn group6(&self) -> Option<SocketAddrV6> {
        (self.enabled && self.ipv6).then_some(self.group_v6)
    }
}

impl EthernetSection {
    /// The group to have faces for.
    pub fn group(&self) -> Option<MacAddress> {
        self.multicast.then_some(self.group.0)
    }
}

impl Default for FacesSection {
    fn default() -> Self {
        FacesSection {
            congestion_marking: true,
            max_per_worker: 16_384,
            unix: UnixSection::default(),
            memif: MemifSection::default(),
            tcp: TcpSection::default(),
            udp: UdpSection::default(),
            websocket: WebSocketSection::default(),
            multicast: MulticastSection::default(),
            ethernet: EthernetSection::default(),
            dpdk: DpdkSection::default(),
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
        TcpSection { enabled: true, listen: None, first_packet_timeout: Span::from_secs(600), outgoing: true }
    }
}

impl Default for UdpSection {
    fn default() -> Self {
        UdpSection {
            enabled: true,
            listen: None,
            idle_timeout: Span::from_secs(600),
            mtu: Bytes(MAX_PACKET_BYTES as u64),
            offload: true,
            outgoing: true,
        }
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
            by_command: false,
            group: Mac(DEFAULT_ETHERNET_GROUP),
            ad_hoc: false,
            interfaces: all_interfaces(),
            except: Vec::new(),
            io: EthernetIo::default(),
        }
    }
}

fn all_interfaces() -> Vec<InterfacePattern> {
    vec![InterfacePattern::Name("*".to_owned())]
}
