//! Path MTU: how large may a UDP datagram be, so that IP need not fragment it on the way to a remote?
//!
//! The kernel knows. It begins with the MTU of the interface, sends datagrams that fit with "don't fragment", and takes
//! over the size that a router reports by ICMP (RFC 1191, RFC 8201). It forgets a report after ten minutes, or when
//! its routes are flushed. We ask with a separate socket, which sends nothing. So faces with a connected socket and
//! faces of a listener get the same answer, and it is never older than the kernel's routes.
//!
//! We leave `IP_MTU_DISCOVER` as it is. By default, the kernel then fragments the datagrams that no longer fit, so
//! those that were queued before a report arrive anyway. `IP_PMTUDISC_DO` would lose them. And an administrator who
//! turns path MTU discovery off (`net.ipv4.ip_no_pmtu_disc`) also turns it off for us.
//!
//! Cost: five system calls for each look-up.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use crate::sys;

/// Bytes of the headers of IP and UDP.
const HEADERS_V4_BYTES: usize = 20 + 8;
const HEADERS_V6_BYTES: usize = 40 + 8;

/// Frames do not become smaller than this, because link headers would take much of each: on a narrower path, IP
/// fragments. The kernel believes no report below 552 bytes of IPv4 and 1280 of IPv6, so only an interface can have a
/// smaller MTU.
pub(crate) const LEAST_BYTES: usize = 512;

/// Largest datagram that the path to `remote` takes in one piece, in bytes, as far as the kernel knows. `local` is the
/// address from which datagrams leave; unspecified if the route decides.
///
/// # Errors
/// If there is no route, or no descriptor is left.
pub(crate) fn look_up(mut local: SocketAddr, remote: SocketAddr) -> io::Result<usize> {
    if local.ip().is_unspecified() {
        let any: IpAddr = if remote.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        local = (any, 0).into();
    }
    local.set_port(0);
    let probe = UdpSocket::bind(local)?;
    probe.connect(remote)?;
    let packet_bytes = sys::path_mtu(probe.as_fd(), remote.is_ipv6())?;
    let headers_bytes = if remote.is_ipv6() { HEADERS_V6_BYTES } else { HEADERS_V4_BYTES };
    Ok(packet_bytes.saturating_sub(headers_bytes).max(LEAST_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values come from the kernel's table of interfaces. No packet of IPv4 has more than 65,535 bytes.
    #[test]
    fn the_path_over_loopback_is_as_wide_as_the_interface() {
        let of_interface = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse::<usize>().unwrap();
        for (local, remote, most, headers) in [
            ("0.0.0.0:6363", "127.0.0.1:9", 65_535, 28),
            ("127.0.0.1:6363", "127.0.0.1:9", 65_535, 28),
            ("[::]:6363", "[::1]:9", usize::MAX, 48),
            ("[::1]:6363", "[::1]:9", usize::MAX, 48),
        ] {
            let found = look_up(local.parse().unwrap(), remote.parse().unwrap()).unwrap();
            assert_eq!(found, of_interface.min(most) - headers, "{local} {remote}");
        }
    }

    #[test]
    fn an_address_that_is_not_ours_has_no_path() {
        assert!(look_up("192.0.2.77:6363".parse().unwrap(), "127.0.0.1:9".parse().unwrap()).is_err());
    }
}
