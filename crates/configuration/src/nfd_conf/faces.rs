//! The section `face_system`: its listeners and multicast faces.

use super::{Read, Reader, SettingsError, flag, number, value, wrong};
use crate::{
    InterfacePattern,
    info::Entry,
    text::Mac,
    units::{Bytes, Span},
};
use namewire_packet::nfd::face_uri::DEFAULT_WEBSOCKET_PORT;
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

/// NFD's Unix socket.
const DEFAULT_SOCKET: &str = "/run/nfd/nfd.sock";

/// The sections of the transports that NFD has.
const SECTIONS: &[&str] = &["general", "unix", "tcp", "udp", "ether", "websocket", "netdev_bound"];

/// Most seconds of an idle timeout.
const IDLE_SECONDS_MAX: u64 = 864_000;

/// The keys that `tcp`, `udp` and `websocket` share.
struct Port {
    port: u16,
    ipv4: bool,
    ipv6: bool,
    listen: bool,
}

impl Port {
    const KEYS: [&str; 4] = ["port", "enable_v4", "enable_v6", "listen"];

    fn new(port: u16) -> Self {
        Port { port, ipv4: true, ipv6: true, listen: true }
    }

    /// True if the entry is one of these keys.
    fn read(&mut self, entry: &Entry) -> Result<bool, SettingsError> {
        match entry.key.as_str() {
            "port" => self.port = number(entry, 1..=65535)?,
            "enable_v4" => self.ipv4 = flag(entry)?,
            "enable_v6" => self.ipv6 = flag(entry)?,
            "listen" => self.listen = flag(entry)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn addresses(&self, section: &Entry) -> Result<Vec<SocketAddr>, SettingsError> {
        if !self.ipv4 && !self.ipv6 {
            return Err(wrong(section, "IPv4 and IPv6 are both off; remove the section to switch the protocol off"));
        }
        let v4 = self.ipv4.then_some((Ipv4Addr::UNSPECIFIED, self.port).into());
        let v6 = self.ipv6.then_some((Ipv6Addr::UNSPECIFIED, self.port).into());
        Ok(v4.into_iter().chain(v6).collect())
    }
}

impl Reader<'_> {
    pub(super) fn face_system(&mut self, section: &Entry) -> Read {
        for protocol in &section.children {
            match protocol.key.as_str() {
                "general" => self.faces_general(protocol)?,
                "unix" => self.unix(protocol),
                "tcp" => self.tcp(protocol)?,
                "udp" => self.udp(protocol)?,
                "ether" => self.ether(protocol)?,
                "websocket" => self.websocket(protocol)?,
                "netdev_bound" => {
                    if !protocol.children.is_empty() {
                        self.ignore(protocol, "give the faces to make as [[face]] entries of a configuration in TOML");
                    }
                }
                _ => self.unknown("face_system", protocol, SECTIONS),
            }
        }
        Ok(())
    }

    fn faces_general(&mut self, section: &Entry) -> Read {
        for entry in &section.children {
            match entry.key.as_str() {
                "enable_congestion_marking" => self.settings.faces.congestion_marking = flag(entry)?,
                _ => self.unknown("face_system.general", entry, &["enable_congestion_marking"]),
            }
        }
        Ok(())
    }

    fn unix(&mut self, section: &Entry) {
        let mut path = PathBuf::from(DEFAULT_SOCKET);
        for entry in &section.children {
            match entry.key.as_str() {
                "path" => path = PathBuf::from(&entry.value),
                _ => self.unknown("face_system.unix", entry, &["path"]),
            }
        }
        self.settings.faces.unix.enabled = true;
        self.settings.faces.unix.path = Some(path);
    }

    fn tcp(&mut self, section: &Entry) -> Read {
        let mut port = Port::new(namewire_packet::nfd::face_uri::DEFAULT_PORT);
        for entry in &section.children {
            match entry.key.as_str() {
                _ if port.read(entry)? => {}
                "local" => self.ignore(entry, "a TCP face is local if both ends are addresses of the loopback device"),
                _ => self.unknown("face_system.tcp", entry, &[&Port::KEYS[..], &["local"]].concat()),
            }
        }
        let addresses = port.addresses(section)?;
        let tcp = &mut self.settings.faces.tcp;
        (tcp.enabled, tcp.outgoing, tcp.listen) = (port.listen, true, Some(addresses));
        Ok(())
    }

    fn udp(&mut self, section: &Entry) -> Read {
        const KEYS: &[&str] = &[
            "idle_timeout",
            "keep_alive_interval",
            "unicast_mtu",
            "mcast",
            "mcast_group",
            "mcast_port",
            "mcast_group_v6",
            "mcast_port_v6",
            "mcast_ad_hoc",
            "whitelist",
            "blacklist",
        ];
        let mut port = Port::new(namewire_packet::nfd::face_uri::DEFAULT_PORT);
        self.settings.faces.multicast.enabled = true;
        for entry in &section.children {
            let multicast = &mut self.settings.faces.multicast;
            match entry.key.as_str() {
                _ if port.read(entry)? => {}
                "idle_timeout" => self.idle_timeout(entry)?,
                "keep_alive_interval" => self.ignore(entry, "NFD has given it up as well"),
                "unicast_mtu" => self.settings.faces.udp.mtu = Bytes(number(entry, 64..=8800)?),
                "mcast" => multicast.enabled = flag(entry)?,
                "mcast_group" => multicast.group_v4.set_ip(value(entry)?),
                "mcast_port" => multicast.group_v4.set_port(number(entry, 1..=65535)?),
                "mcast_group_v6" => multicast.group_v6.set_ip(value(entry)?),
                "mcast_port_v6" => multicast.group_v6.set_port(number(entry, 1..=65535)?),
                "mcast_ad_hoc" => multicast.ad_hoc = flag(entry)?,
                "whitelist" => multicast.interfaces = patterns(entry)?,
                "blacklist" => multicast.except = patterns(entry)?,
                _ => self.unknown("face_system.udp", entry, &[&Port::KEYS[..], KEYS].concat()),
            }
        }
        let addresses = port.addresses(section)?;
        let multicast = &mut self.settings.faces.multicast;
        (multicast.ipv4, multicast.ipv6) = (port.ipv4, port.ipv6);
        let udp = &mut self.settings.faces.udp;
        (udp.enabled, udp.outgoing, udp.listen) = (port.listen, true, Some(addresses));
        Ok(())
    }

    fn ether(&mut self, section: &Entry) -> Read {
        const KEYS: &[&str] =
            &["listen", "idle_timeout", "mcast", "mcast_group", "mcast_ad_hoc", "whitelist", "blacklist"];
        let ethernet = &mut self.settings.faces.ethernet;
        (ethernet.listen, ethernet.multicast) = (true, true);
        // With both off, the section is there for faces that commands make.
        ethernet.by_command = true;
        for entry in &section.children {
            let ethernet = &mut self.settings.faces.ethernet;
            match entry.key.as_str() {
                "listen" => ethernet.listen = flag(entry)?,
                "idle_timeout" => {
                    let seconds = number(entry, 1..=IDLE_SECONDS_MAX)?;
                    if Span::from_secs(seconds) != self.settings.faces.udp.idle_timeout {
                        self.ignore(entry, "Ethernet faces have the idle timeout of UDP faces");
                    }
                }
                "mcast" => ethernet.multicast = flag(entry)?,
                "mcast_group" => ethernet.group = value::<Mac>(entry)?,
                "mcast_ad_hoc" => ethernet.ad_hoc = flag(entry)?,
                "whitelist" => ethernet.interfaces = patterns(entry)?,
                "blacklist" => ethernet.except = patterns(entry)?,
                _ => self.unknown("face_system.ether", entry, KEYS),
            }
        }
        Ok(())
    }

    fn websocket(&mut self, section: &Entry) -> Read {
        let mut port = Port::new(DEFAULT_WEBSOCKET_PORT);
        for entry in &section.children {
            if !port.read(entry)? {
                self.unknown("face_system.websocket", entry, &Port::KEYS);
            }
        }
        let websocket = &mut self.settings.faces.websocket;
        (websocket.enabled, websocket.listen) = (port.listen, port.addresses(section)?);
        Ok(())
    }

    fn idle_timeout(&mut self, entry: &Entry) -> Read {
        self.settings.faces.udp.idle_timeout = Span::from_secs(number(entry, 1..=IDLE_SECONDS_MAX)?);
        Ok(())
    }
}

/// The entries of a `whitelist` or `blacklist`: `ifname eth*`, `ether MAC`, `subnet 192.0.2.0/24`, `*`.
fn patterns(list: &Entry) -> Result<Vec<InterfacePattern>, SettingsError> {
    let pattern = |entry: &Entry| match entry.key.as_str() {
        "*" => Ok(InterfacePattern::Name("*".to_owned())),
        "ifname" => match value(entry)? {
            name @ InterfacePattern::Name(_) => Ok(name),
            _ => Err(wrong(entry, format!("\"{}\" is not the name of an interface", entry.value))),
        },
        "ether" => value::<Mac>(entry).map(|mac| InterfacePattern::Ethernet(mac.0)),
        "subnet" => match value(entry)? {
            subnet @ InterfacePattern::Subnet(..) => Ok(subnet),
            _ => Err(wrong(entry, format!("\"{}\" is not a subnet such as 192.0.2.0/24", entry.value))),
        },
        _ => Err(wrong(entry, "expected ifname, ether, subnet or *")),
    };
    list.children.iter().map(pattern).collect()
}
