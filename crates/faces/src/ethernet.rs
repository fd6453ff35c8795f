//! NDN directly over Ethernet: type 0x8624, no IP (drop-in.md §2).
//!
//! One packet socket per interface gives the payload of each frame and its sender; the kernel writes and reads the
//! Ethernet header. The socket needs CAP_NET_RAW. The interface decides about VLAN tags: on a VLAN interface frames
//! carry its tag, on others none. On request, AF_XDP takes the place of the packet socket (`frame_port`).
//!
//! Faces are never local. The MTU is the interface's, at most 8800 bytes. Larger packets are fragmented, also to a
//! group; the receiver reassembles the fragments of each sender separately.
//!
//! Limit: one group per interface. The packet socket does not report the group to which a frame was sent. So the
//! group's face receives the frames of every NDN group that any process on this machine has joined on the interface.

use std::io;
use std::os::fd::AsFd;

use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, MacAddress},
    tlv,
};
use socket2::{Domain, Socket, Type};

use crate::datagram_port::DatagramPort;
use crate::frame_port::{HEADER_BYTES, xdp};
use crate::{FaceInfo, sys};

/// Kernel receive buffer asked for, in bytes; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Least payload of a frame. Drivers of real interfaces pad shorter ones, virtual ones do not, and NFD accepts none
/// that is shorter.
pub(crate) const LEAST_PAYLOAD_BYTES: usize = 46;

/// How frames of an interface are to get to the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkIo {
    /// By a packet socket.
    Socket,
    /// By AF_XDP, or not at all.
    Xdp,
    /// By AF_XDP if the interface and the privileges of the process allow it, otherwise by a packet socket.
    Auto,
}

/// The open ports of an interface: a packet socket, or an AF_XDP socket for each receive queue.
pub struct LinkSocket {
    /// The first one also sends.
    pub(crate) ports: Vec<DatagramPort>,
    pub(crate) interface: u32,
    pub(crate) name: String,
    pub(crate) mtu: usize,
    pub(crate) how: String,
    pub(crate) limits: PortLimits,
}

/// The facts of an interface without which its ports do not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// The interface has this address, if the ports write it themselves.
    pub address: Option<MacAddress>,
    /// Its MTU is at most this, in bytes.
    pub mtu_max: usize,
}

impl LinkSocket {
    /// The name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The MTU of the interface, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// True if frames come in shared memory (AF_XDP, DPDK), not by a packet socket.
    pub fn is_of_frames(&self) -> bool {
        self.ports.iter().all(|port| matches!(port, DatagramPort::Frames(_)))
    }

    /// In words, how frames get to the router, and if not by AF_XDP although it was wanted, why.
    pub fn how(&self) -> &str {
        &self.how
    }

    /// When the ports have to be opened anew.
    pub fn limits(&self) -> PortLimits {
        self.limits
    }
}

/// Opens the interface of this number, name, address and MTU (in bytes).
///
/// # Errors
/// `PermissionDenied` without CAP_NET_RAW; otherwise if there is no such interface or no descriptor is left, and with
/// [`LinkIo::Xdp`] if AF_XDP does not work there.
pub fn open(interface: u32, name: &str, address: MacAddress, mtu: usize, wanted: LinkIo) -> io::Result<LinkSocket> {
    let tried = match wanted {
        LinkIo::Socket => None,
        LinkIo::Xdp | LinkIo::Auto => Some(xdp::open(interface, address)),
    };
    let (ports, how) = match (tried, wanted) {
        (Some(Ok((ports, how))), _) => {
            (ports.into_iter().map(|port| DatagramPort::Frames(Box::new(port))).collect(), how)
        }
        (Some(Err(error)), LinkIo::Xdp) => return Err(error),
        (Some(Err(error)), _) => {
            (vec![open_packet_socket(interface)?], format!("a packet socket, because AF_XDP does not work: {error}"))
        }
        (None, _) => (vec![open_packet_socket(interface)?], "a packet socket".to_owned()),
    };
    let is_xdp = matches!(ports[..], [DatagramPort::Frames(_), ..]);
    let mtu_max = ports.first().map_or(usize::MAX, DatagramPort::payload_bytes_max);
    let limits = PortLimits { address: is_xdp.then_some(address), mtu_max };
    Ok(LinkSocket { ports, interface, name: name.to_owned(), mtu, how, limits })
}

fn open_packet_socket(interface: u32) -> io::Result<DatagramPort> {
    // Protocol 0: it receives nothing before it is bound to the interface.
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
    // Best effort: a small buffer only loses more in a burst.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    sys::bind_to_link(socket.as_fd(), interface)?;
    Ok(DatagramPort::Socket(socket.into()))
}

/// Opens an interface for whole frames, with their Ethernet headers: for programs that speak as several stations. It
/// receives the NDN frames of the interface.
///
/// # Errors
/// As for [`open`].
pub fn open_whole_frames(interface: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
    sys::bind_to_link(socket.as_fd(), interface)?;
    Ok(socket)
}

/// A frame that carries a packet of at most 1500 bytes.
pub fn whole_frame(to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &sys::ETHERTYPE_NDN.to_be_bytes(), packet].concat();
    frame.resize(frame.len().max(HEADER_BYTES + LEAST_PAYLOAD_BYTES), 0);
    frame
}

/// Facts about a face to a station or a group.
pub(crate) fn face_info(
    interface: &str,
    remote: MacAddress,
    persistency: FacePersistency,
    link_type: LinkType,
    mtu: usize,
) -> FaceInfo {
    FaceInfo {
        remote: FaceUri::Ether(remote),
        local: FaceUri::Dev(interface.to_owned()),
        scope: FaceScope::NonLocal,
        persistency,
        link_type,
        mtu: mtu.min(MAX_PACKET_BYTES),
        credentials: None,
    }
}

/// Whether a face with `face_mtu` takes the new MTU of its interface: it had the old one, or its own is larger than the
/// new one.
pub fn follows_link(face_mtu: usize, before: usize, now: usize) -> bool {
    face_mtu == before.min(MAX_PACKET_BYTES) || face_mtu > now
}

/// The element of a frame, without the padding up to [`LEAST_PAYLOAD_BYTES`].
pub(crate) fn without_padding(frame: &[u8]) -> &[u8] {
    match tlv::element_size(frame) {
        Ok(Some(size)) if size < frame.len() => &frame[..size],
        _ => frame, // also what is malformed: the link service says how
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_cut_and_anything_else_kept() {
        assert_eq!(without_padding(&[5, 2, 7, 0, 0, 0, 0]), [5, 2, 7, 0]);
        for whole in [&[5, 2, 7, 0][..], &[5, 9, 7, 0], &[5], &[], &[0xfd, 0, 5, 0]] {
            assert_eq!(without_padding(whole), whole);
        }
    }

    #[test]
    fn a_whole_frame_has_its_header_and_its_least_length() {
        let (to, from) = (MacAddress([1, 2, 3, 4, 5, 6]), MacAddress([2, 0, 0, 0, 0, 7]));
        let frame = whole_frame(to, from, &[5, 2, 7, 0]);
        assert_eq!(frame[..18], [1, 2, 3, 4, 5, 6, 2, 0, 0, 0, 0, 7, 0x86, 0x24, 5, 2, 7, 0]);
        assert_eq!((frame.len(), without_padding(&frame[14..])), (60, &[5, 2, 7, 0][..]));
        assert_eq!(whole_frame(to, from, &[5; 100]).len(), 114);
    }

    #[test]
    fn a_face_follows_its_interface_unless_it_was_told_otherwise() {
        assert!(follows_link(1500, 1500, 9000));
        assert!(follows_link(8800, 9000, 1500));
        assert!(follows_link(1400, 1500, 1280));
        assert!(!follows_link(1280, 1500, 9000));
        assert!(!follows_link(1280, 9000, 1500));
    }
}
