//! Frames that an interface of this host sends and receives, by a packet socket (packet(7)).
//!
//! Needs the capability `CAP_NET_RAW`. Frames on the loopback interface come once, though the kernel shows them twice.
//!
//! Limit: the interface is not put into promiscuous mode, because no crate that we use has a safe call for that. So the
//! frames are those that this host would take, its multicast groups included.

use crate::{link_type, pcap_file::Captured};
use nix::{
    errno::Errno,
    ifaddrs::getifaddrs,
    net::if_::{InterfaceFlags, if_nametoindex},
    sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket},
};
use std::{
    fmt,
    os::fd::{AsRawFd, OwnedFd},
    time::{SystemTime, UNIX_EPOCH},
};

/// Most bytes of a frame.
const FRAME_BYTES_MAX: usize = 65_535;
/// Stands for all interfaces.
pub const ANY: &str = "any";

/// Types of links in the kernel (linux/if_arp.h).
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
/// A frame that this host sends (linux/if_packet.h).
const PACKET_OUTGOING: u8 = 4;
/// Bytes before a frame that was received without its own link header: see [`link_type::LINUX_SLL`].
const COOKED_HEADER_BYTES: usize = 16;

/// Why an interface cannot be captured. The words are those of libpcap.
#[derive(Debug)]
pub enum OpenError {
    /// There is no interface of this name.
    NoInterface(String),
    /// This needs privileges.
    NoPermission(String, Errno),
    /// Something else.
    Other(String, Errno),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoInterface(name) => write!(f, "{name}: No such device exists (No such device exists)"),
            OpenError::NoPermission(name, error) => write!(
                f,
                "{name}: You don't have permission to perform this capture on that device (socket: {})",
                error.desc()
            ),
            OpenError::Other(name, error) => write!(f, "{name}: {}", error.desc()),
        }
    }
}

/// An interface that is captured.
pub struct LiveCapture {
    socket: OwnedFd,
    link: u16,
    frame: Vec<u8>,
}

impl LiveCapture {
    /// Opens an interface, or [`ANY`].
    ///
    /// # Errors
    /// If there is no such interface, or privileges are missing.
    pub fn open(interface: &str) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Other(interface.to_owned(), error);
        let is_any = interface == ANY;
        if !is_any && if_nametoindex(interface).is_err() {
            return Err(OpenError::NoInterface(interface.to_owned()));
        }
        let kind = if is_any { SockType::Datagram } else { SockType::Raw };
        let opened = socket(AddressFamily::Packet, kind, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
        let socket = opened.map_err(|error| match error {
            Errno::EPERM | Errno::EACCES => OpenError::NoPermission(interface.to_owned(), error),
            error => failed(error),
        })?;
        let frame = vec![0; COOKED_HEADER_BYTES + FRAME_BYTES_MAX];
        if is_any {
            return Ok(LiveCapture { socket, link: link_type::LINUX_SLL, frame });
        }
        let link = address_of(interface).ok_or_else(|| failed(Errno::ENODEV))?;
        bind(socket.as_raw_fd(), &link).map_err(failed)?;
        let link = match link.hatype() {
            ARPHRD_ETHER | ARPHRD_LOOPBACK => link_type::ETHERNET,
            _ => link_type::RAW,
        };
        Ok(LiveCapture { socket, link, frame })
    }

    /// The type of the frames.
    pub fn link(&self) -> u16 {
        self.link
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// If the interface goes down.
    pub fn next_frame(&mut self) -> Result<Captured<'_>, Errno> {
        let header = if self.link == link_type::LINUX_SLL { COOKED_HEADER_BYTES } else { 0 };
        let (length, from) = loop {
            let received = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut self.frame[header..]);
            let (length, from) = match received {
                Err(Errno::EINTR) => continue,
                received => received?,
            };
            let is_repeat = |from: &LinkAddr| from.hatype() == ARPHRD_LOOPBACK && from.pkttype() == PACKET_OUTGOING;
            if !from.as_ref().is_some_and(is_repeat) {
                break (length, from);
            }
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Some(from) = from.filter(|_| header > 0) {
            self.frame[..header].copy_from_slice(&cooked_header(&from));
        }
        let wire_bytes = header + length;
        let (seconds, microseconds) = (now.as_secs(), now.subsec_micros());
        Ok(Captured { seconds, microseconds, wire_bytes, bytes: &self.frame[..wire_bytes] })
    }
}

/// The header of a frame whose own one the kernel kept back (link type LINUX_SLL).
fn cooked_header(from: &LinkAddr) -> [u8; COOKED_HEADER_BYTES] {
    let mut header = [0; COOKED_HEADER_BYTES];
    header[1] = from.pkttype();
    header[2..4].copy_from_slice(&from.hatype().to_be_bytes());
    header[4..6].copy_from_slice(&(from.halen() as u16).to_be_bytes());
    header[6..12].copy_from_slice(&from.addr().unwrap_or_default());
    // The kernel has it in network byte order.
    header[14..].copy_from_slice(&from.protocol().to_ne_bytes());
    header
}

fn address_of(interface: &str) -> Option<LinkAddr> {
    let mut all = getifaddrs().ok()?;
    all.find_map(|one| if one.interface_name == interface { one.address?.as_link_addr().copied() } else { None })
}

/// The interface to capture when none is named: the first that is up and no loopback; else [`ANY`].
pub fn usual_interface() -> String {
    let is_usual = |flags: InterfaceFlags| {
        flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING)
            && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    let found = getifaddrs().ok().and_then(|mut all| {
        all.find(|one| is_usual(one.flags) && one.address.is_some_and(|address| address.as_link_addr().is_some()))
    });
    found.map_or_else(|| ANY.to_owned(), |one| one.interface_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// The payloads of ours that pass, up to the last one. `None` where this test has no privileges.
    fn seen(interface: &str) -> Option<(u16, Vec<u8>)> {
        let mut live = match LiveCapture::open(interface) {
            Err(OpenError::NoPermission(..)) => return None,
            opened => opened.unwrap_or_else(|error| panic!("{error}")),
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mark: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
        for number in 0..3 {
            socket.send_to(&[&mark[..], &[number]].concat(), socket.local_addr().unwrap()).unwrap();
        }
        let mut numbers = Vec::new();
        while numbers.last() != Some(&2) {
            let frame = live.next_frame().unwrap();
            let (marked, number) = frame.bytes.split_at(frame.bytes.len().saturating_sub(1));
            if marked.ends_with(&mark) {
                numbers.extend_from_slice(number);
            }
        }
        Some((live.link(), numbers))
    }

    #[test]
    fn a_frame_on_the_loopback_interface_comes_once() {
        for (interface, link) in [("lo", link_type::ETHERNET), (ANY, link_type::LINUX_SLL)] {
            if let Some(seen) = seen(interface) {
                assert_eq!(seen, (link, vec![0, 1, 2]));
            }
        }
    }

    #[test]
    fn an_unknown_interface_gets_the_words_of_libpcap() {
        let error = LiveCapture::open("nosuch0").err().unwrap();
        assert_eq!(error.to_string(), "nosuch0: No such device exists (No such device exists)");
    }
}
