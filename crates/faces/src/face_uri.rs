//! FaceUri text for the ends of a socket (drop-in §4; ndn-cxx `net/face-uri.cpp`).
//!
//! | end                     | text                                   |
//! |-------------------------|----------------------------------------|
//! | application socket      | `fd://27`                              |
//! | our Unix socket         | `unix:///run/nfd/nfd.sock`             |
//! | TCP, UDP over IPv4      | `tcp4://192.0.2.1:6363`, `udp4://…`    |
//! | TCP, UDP over IPv6      | `tcp6://[2001:db8::1]:6363`, `udp6://…`|
//! | link-local IPv6         | `udp6://[fe80::1%eth0]:6363`           |
//! | Ethernet station, group | `ether://[08:00:27:01:01:01]`          |
//! | Ethernet interface      | `dev://eth0`                           |
//! | WebSocket               | `ws://0.0.0.0:9696`, `wsclient://…`    |

use std::net::SocketAddr;
use std::path::Path;

use namewire_packet::nfd::{FaceUri, MacAddress};

/// `unix://` and the absolute path.
pub fn unix(path: &Path) -> String {
    format!("unix://{}", path.display())
}

/// `fd://` and the descriptor number, as NFD names the far end of a Unix socket.
pub fn fd(descriptor: i32) -> String {
    format!("fd://{descriptor}")
}

/// Canonical TCP FaceUri of an address.
pub fn tcp(address: SocketAddr) -> String {
    inet("tcp", address)
}

/// Canonical UDP FaceUri of an address.
pub fn udp(address: SocketAddr) -> String {
    inet("udp", address)
}

/// Canonical UDP FaceUri of an address on an interface of that name.
pub fn udp_on(address: SocketAddr, interface: &str) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("udp6://[{}%{interface}]:{}", v6.ip(), v6.port()),
        _ => udp(address),
    }
}

/// FaceUri of a WebSocket client's address.
pub fn web_socket_client(address: SocketAddr) -> String {
    FaceUri::WebSocketClient(address).to_string()
}

/// Canonical FaceUri of an Ethernet address.
pub fn ether(address: MacAddress) -> String {
    FaceUri::Ether(address).to_string()
}

/// Canonical FaceUri of an interface.
pub fn dev(interface: &str) -> String {
    format!("dev://{interface}")
}

fn inet(protocol: &str, address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => format!("{protocol}4://{v4}"),
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            let zone = interface_name(v6.scope_id()).unwrap_or_else(|| v6.scope_id().to_string());
            format!("{protocol}6://[{}%{zone}]:{}", v6.ip(), v6.port())
        }
        SocketAddr::V6(v6) => format!("{protocol}6://[{}]:{}", v6.ip(), v6.port()),
    }
}

/// The name behind an interface index, asked through any socket.
fn interface_name(index: u32) -> Option<String> {
    let socket = std::net::UdpSocket::bind("[::1]:0").ok()?;
    rustix::net::netdevice::index_to_name(&socket, index).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        assert_eq!(tcp("127.0.0.1:6363".parse().unwrap()), "tcp4://127.0.0.1:6363");
        assert_eq!(udp("[2001:db8:0:0::1]:9".parse().unwrap()), "udp6://[2001:db8::1]:9");
        assert_eq!(unix(Path::new("/run/nfd/nfd.sock")), "unix:///run/nfd/nfd.sock");
        assert_eq!(fd(7), "fd://7");
    }

    #[test]
    fn link_local_addresses_name_their_interface() {
        let lo = std::net::SocketAddrV6::new("fe80::1".parse().unwrap(), 6363, 0, 1);
        assert_eq!(udp(SocketAddr::V6(lo)), "udp6://[fe80::1%lo]:6363");
    }
}
