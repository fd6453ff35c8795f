//! Own address: does an address lead to this router itself?
//!
//! A face to one of the router's own listeners is a loop: the router receives what it sends, through the face that the
//! listener makes. `faces/create` refuses such a face (406). Another router on this machine, at another port or another
//! of the machine's addresses, is a different forwarder and is allowed.

use super::interfaces;
use namewire_management::FaceCommandError;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Refuses a `remote` that one of our `listeners` answers, or that is the broadcast address of one of our networks.
/// `kind` names the kind of the listeners.
pub(crate) fn check(remote: SocketAddr, listeners: &[SocketAddr], kind: &str) -> Result<(), FaceCommandError> {
    if is_own(remote, listeners, is_of_this_machine) {
        return Err(FaceCommandError::new(
            406,
            format!("Cannot create {kind} faces to this forwarder's own address {remote}"),
        ));
    }
    if is_broadcast(remote) {
        return Err(FaceCommandError::new(406, format!("Cannot create broadcast {kind} faces")));
    }
    Ok(())
}

fn is_own(remote: SocketAddr, listeners: &[SocketAddr], is_here: impl Fn(IpAddr) -> bool) -> bool {
    // A packet to `[::ffff:192.0.2.1]` arrives at `192.0.2.1`.
    let (ip, port) = (remote.ip().to_canonical(), remote.port());
    listeners.iter().filter(|listener| listener.port() == port && listener.is_ipv4() == ip.is_ipv4()).any(|listener| {
        let listens_everywhere = listener.ip().is_unspecified();
        listener.ip() == ip || listens_everywhere && is_here(ip)
    })
}

fn is_of_this_machine(ip: IpAddr) -> bool {
    if ip.is_loopback() {
        return true;
    }
    // A cheap question first, which settles it for neighbours. But a machine may be set up so that any address can be
    // bound.
    let may_be_bound = UdpSocket::bind((ip, 0)).is_ok() || is_link_local(ip);
    may_be_bound
        && interfaces::list()
            .is_ok_and(|interfaces| interfaces.values().any(|interface| interface.addresses.contains(&ip)))
}

/// True for an address that cannot be bound without its interface.
fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// The kernel connects a socket to a broadcast address only if the socket asked for broadcast. Connecting sends
/// nothing.
fn is_broadcast(remote: SocketAddr) -> bool {
    let IpAddr::V4(ip) = remote.ip().to_canonical() else { return false };
    let connected = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect((ip, remote.port())));
    connected.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_listener_of_ours_answers_is_our_own() {
        let is_here = |ip: IpAddr| ["127.0.0.9", "192.0.2.1", "2001:db8::1"].iter().any(|own| ip.to_string() == *own);
        let is_own = |remote: &str, listeners: &[&str]| {
            let listeners: Vec<SocketAddr> = listeners.iter().map(|listener| listener.parse().unwrap()).collect();
            is_own(remote.parse().unwrap(), &listeners, is_here)
        };
        let everywhere = ["0.0.0.0:6363", "[::]:6363"];
        for remote in ["127.0.0.9:6363", "192.0.2.1:6363", "[2001:db8::1]:6363", "[::ffff:192.0.2.1]:6363"] {
            assert!(is_own(remote, &everywhere), "{remote}");
            assert!(!is_own(&remote.replace("6363", "6364"), &everywhere), "another router of this machine");
            assert!(!is_own(remote, &["192.0.2.7:6363"]), "{remote}: another router, at another address");
        }
        assert!(is_own("192.0.2.1:6363", &["192.0.2.1:6363"]));
        assert!(!is_own("192.0.2.2:6363", &everywhere), "a neighbour");
        assert!(!is_own("[2001:db8::1]:6363", &["0.0.0.0:6363"]), "IPv6, where only IPv4 listens");
    }

    #[test]
    fn loopback_and_the_addresses_of_interfaces_are_of_this_machine() {
        for ip in ["127.0.0.1", "127.8.9.10", "::1"] {
            assert!(is_of_this_machine(ip.parse().unwrap()), "{ip}");
        }
        let own = interfaces::list().unwrap().into_values().flat_map(|interface| interface.addresses);
        own.for_each(|ip| assert!(is_of_this_machine(ip), "{ip}"));
        for ip in ["192.0.2.77", "2001:db8::77", "fe80::77"] {
            assert!(!is_of_this_machine(ip.parse().unwrap()), "{ip}");
        }
    }
}
