//! FaceUris for the ends of a socket (NFD management protocol, FaceUri), with the interface that IPv6 link-local
//! addresses need: `udp6://[fe80::1%eth0]:6363`. The kernel knows interfaces by number, FaceUris by name.

use std::net::SocketAddr;

use namewire_packet::nfd::FaceUri;

/// FaceUri of a TCP socket address.
pub fn tcp(address: SocketAddr) -> FaceUri {
    FaceUri::tcp_on(address, interface(address))
}

/// FaceUri of a UDP socket address.
pub fn udp(address: SocketAddr) -> FaceUri {
    FaceUri::udp_on(address, interface(address))
}

/// The interface name of an address's scope id, if it has one; its number if the interface no longer exists.
fn interface(address: SocketAddr) -> Option<String> {
    let index = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => v6.scope_id(),
        _ => return None,
    };
    // Any socket can answer this.
    let socket = std::net::UdpSocket::bind("[::1]:0").ok();
    let name = socket.and_then(|socket| rustix::net::netdevice::index_to_name(&socket, index).ok());
    Some(name.unwrap_or_else(|| index.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_name_their_interface() {
        let lo = std::net::SocketAddrV6::new("fe80::1".parse().unwrap(), 6363, 0, 1);
        assert_eq!(udp(SocketAddr::V6(lo)).to_string(), "udp6://[fe80::1%lo]:6363");
        assert_eq!(tcp("[2001:db8:0:0::1]:9".parse().unwrap()).to_string(), "tcp6://[2001:db8::1]:9");
    }

    /// `faces/create tcp6://[::ffff:192.0.2.1]:9` once made a face that was listed as `tcp4://192.0.2.1:9`. A second
    /// command did not find it, and made another connection.
    #[test]
    fn an_ipv4_mapped_address_stays_an_ipv6_one() {
        let mapped = "[::ffff:192.0.2.1]:9".parse().unwrap();
        assert_eq!(tcp(mapped).to_string(), "tcp6://[::ffff:192.0.2.1]:9");
        assert_eq!(udp(mapped).to_string(), "udp6://[::ffff:192.0.2.1]:9");
    }
}
