//! Two network namespaces joined by cables: the router in one, its remote peers in the other, on the first cable with
//! several addresses, each for a different host.
//!
//! ```text
//!   router  eth0 10.79.0.1, 02:00:00:00:00:01 ───── eth0 02:00:00:00:00:02, 10.79.0.2 and 10.79.0.3  peers
//!           eth1 10.79.1.1, 02:00:00:00:01:01 ───── eth1 02:00:00:00:01:02, 10.79.1.2
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::ensure;

const PORT: u16 = 6_363;

/// The name of both ends of a cable.
pub(crate) fn interface(cable: usize) -> String {
    format!("eth{cable}")
}

/// The router's Ethernet address on a cable.
pub(crate) fn router_station(cable: usize) -> String {
    format!("02:00:00:00:{cable:02x}:01")
}

/// The Ethernet address of the peers on a cable.
pub(crate) fn peer_station(cable: usize) -> String {
    format!("02:00:00:00:{cable:02x}:02")
}

/// See the module. Dropping it removes the namespaces.
#[derive(Debug)]
pub(crate) struct Network {
    id: u32,
}

impl Network {
    /// # Errors
    /// If the system does not let us make namespaces.
    pub(crate) fn new(cables: usize) -> anyhow::Result<Self> {
        let network = Network { id: std::process::id() };
        let (router, peers) = (network.router(), network.peers());
        ip(&["netns", "add", &router])?;
        ip(&["netns", "add", &peers])?;
        for namespace in [&router, &peers] {
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        for cable in 0..cables {
            let name = interface(cable);
            ip(&["-n", &router, "link", "add", &name, "type", "veth", "peer", "name", &name, "netns", &peers])?;
            ip(&["-n", &router, "addr", "add", &format!("{}/24", address(cable, 1)), "dev", &name])?;
            let hosts = if cable == 0 { 2..=3 } else { 2..=2 };
            for host in hosts {
                ip(&["-n", &peers, "addr", "add", &format!("{}/24", address(cable, host)), "dev", &name])?;
            }
            ip(&["-n", &router, "link", "set", &name, "address", &router_station(cable), "up"])?;
            ip(&["-n", &peers, "link", "set", &name, "address", &peer_station(cable), "up"])?;
        }
        Ok(network)
    }

    /// Where the router listens.
    pub(crate) fn listens(&self) -> SocketAddr {
        (address(0, 1), PORT).into()
    }

    /// A command in the router's namespace.
    pub(crate) fn on_router(&self, program: &std::path::Path) -> Command {
        in_namespace(&self.router(), program)
    }

    /// A command in the namespace of the peers.
    pub(crate) fn on_peers(&self, program: &std::path::Path) -> Command {
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
pub(crate) enum Peer {
    Hostile,
    Honest,
}

impl Peer {
    pub(crate) fn address(self) -> IpAddr {
        address(0, if self == Peer::Hostile { 2 } else { 3 }).into()
    }
}

fn address(cable: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, cable as u8, host)
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
