//! Two network namespaces joined by a cable: the router in one, its remote peers in the other, several addresses each
//! for a host of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::ensure;

/// The router's address.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const PORT: u16 = 6_363;
/// The name of both ends of the cable.
pub(super) const INTERFACE: &str = "eth0";
/// The router's Ethernet address.
pub(super) const STATION: &str = "02:00:00:00:00:01";

/// See the module. Dropping it removes the namespaces.
#[derive(Debug)]
pub(super) struct Network {
    id: u32,
}

impl Network {
    /// # Errors
    /// If the system does not let us make namespaces.
    pub(super) fn new() -> anyhow::Result<Self> {
        let network = Network { id: std::process::id() };
        let (router, peers) = (network.router(), network.peers());
        ip(&["netns", "add", &router])?;
        ip(&["netns", "add", &peers])?;
        ip(&["-n", &router, "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", &peers])?;
        ip(&["-n", &router, "addr", "add", &format!("{ROUTER}/24"), "dev", INTERFACE])?;
        for peer in [Peer::Hostile, Peer::Honest] {
            ip(&["-n", &peers, "addr", "add", &format!("{}/24", peer.address()), "dev", INTERFACE])?;
        }
        ip(&["-n", &router, "link", "set", INTERFACE, "address", STATION])?;
        for namespace in [&router, &peers] {
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
            ip(&["-n", namespace, "link", "set", INTERFACE, "up"])?;
        }
        Ok(network)
    }

    /// Where the router listens.
    pub(super) fn listens(&self) -> SocketAddr {
        (ROUTER, PORT).into()
    }

    /// A command in the router's namespace.
    pub(super) fn on_router(&self, program: &std::path::Path) -> Command {
        in_namespace(&self.router(), program)
    }

    /// A command in the namespace of the peers.
    pub(super) fn on_peers(&self, program: &std::path::Path) -> Command {
        in_namespace(&self.peers(), program)
    }

    fn router(&self) -> String {
        format!("nw-lab-{}-router", self.id)
    }

    fn peers(&self) -> String {
        format!("nw-lab-{}-peers", self.id)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [self.router(), self.peers()] {
            let _ = ip(&["netns", "delete", &namespace]);
        }
    }
}

/// A host with an address of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Hostile,
    Honest,
}

impl Peer {
    pub(super) fn address(self) -> IpAddr {
        let host = if self == Peer::Hostile { 2 } else { 3 };
        Ipv4Addr::new(10, 79, 0, host).into()
    }
}

fn in_namespace(namespace: &str, program: &std::path::Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), text.trim());
    Ok(())
}
