//! `recvmmsg` and `sendmmsg` (many datagrams per system call), and UDP segmentation offload (many datagrams per pass
//! through the kernel's network stack). Also the number of bytes that a socket still has to send, and the MTU of its
//! path.
//!
//! This file needs `unsafe`, because the standard library and rustix offer none of these calls. Its functions take
//! slices and socket addresses and return counts. Packet sockets (NDN over Ethernet, [`crate::ethernet`]) use the same
//! two calls. This file also has the addresses of packet sockets and binds these sockets to a link.
//!
//! The kernel takes or gives one *message* at a time. Without offload a message is one datagram. With offload it is a
//! sequence of datagrams of equal size (the last may be shorter), and a control message carries the size s
//! ([`control`]):
//!
//! ```text
//!   bytes    │ datagram │ datagram │ datagram │ last │     at most 65,535 bytes, 64 datagrams
//!             0          s         2s         3s    len
//! ```
//!
//! Cost: each requested message needs one 64-byte header, one 16-byte vector, 72 bytes of control and, to receive, one
//! 128-byte address. These are on the stack or reused.
#![allow(unsafe_code, reason = "leaf: the standard library and rustix offer none of these calls")]

mod control;

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use namewire_packet::nfd::MacAddress;

use crate::remote::{Destination, LinkAddress, Remote};
use control::Control;

/// Most messages per system call.
pub(crate) const MAX_BATCH: usize = 64;

/// Most datagrams in one message: older kernels refuse to send more, and coalesce no more.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Most bytes of one message: what IPv4 leaves of 65,535 for the payload of UDP.
pub(crate) const MAX_MESSAGE_BYTES: usize = 65_507;

/// Asks the kernel to coalesce received datagrams of equal size from one remote. False if it cannot; then each message
/// is one datagram, and callers need no change.
pub(crate) fn coalesce_received(socket: BorrowedFd<'_>) -> bool {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one c_int.
    unsafe { set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &on) }.is_ok()
}

/// Asks the kernel to say to which of our addresses each datagram was sent ([`ReceivedBatch::own_address`]).
pub(crate) fn tell_own_address(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (level, option) = match is_ipv6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        false => (libc::IPPROTO_IP, libc::IP_PKTINFO),
    };
    // SAFETY: the option's value is one c_int.
    unsafe { set_option(socket, level, option, &on) }
}

/// Sets an option of a socket.
///
/// # Safety
///
/// `value` is what the option takes, and what it points to is alive. The kernel copies and writes nothing else.
unsafe fn set_option<T>(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let bytes = size_of_val(value) as libc::socklen_t;
    // SAFETY: `value` is alive and only read, and the caller vouches for the rest.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), bytes) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel run `program` for each datagram of the port of `socket`. The result is the number of the socket
/// that gets it (`SO_ATTACH_REUSEPORT_CBPF`, linux/Documentation/networking/filter). The kernel checks the program.
pub(crate) fn attach_port_program(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    // libc has this only for Android; the number is the same on every processor.
    const SO_ATTACH_REUSEPORT_CBPF: libc::c_int = 51;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the option's value is a sock_fprog that points to `len` instructions; both are alive, and the kernel
    // copies them and writes neither.
    unsafe { set_option(socket, libc::SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter) }
}

/// Largest IP packet on the path of a connected UDP socket, in bytes, as far as the kernel knows (`IP_MTU`).
pub(crate) fn path_mtu(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<usize> {
    let (level, option) = if is_ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let [mtu] = option_of(socket, level, option)?;
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Whether the kernel keeps more unread input of a socket than half of what it may (`SO_MEMINFO`). False if the kernel
/// does not say.
pub(crate) fn is_half_full(socket: BorrowedFd<'_>) -> bool {
    // linux/sock_diag.h: SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_RCVBUF are the first two.
    let [used, room] = option_of(socket, libc::SOL_SOCKET, libc::SO_MEMINFO).unwrap_or_default();
    used > room / 2
}

/// The value of an option that is at least `N` integers.
fn option_of<const N: usize>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<[libc::c_int; N]> {
    let mut value = [0; N];
    let mut bytes = size_of_val(&value) as libc::socklen_t;
    // SAFETY: any bytes are integers; `value` is alive and as long as `bytes` says, and the kernel writes no more; it
    // keeps neither pointer; `socket` is open, because it is borrowed.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut bytes) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Bytes that the kernel has not sent yet: for TCP those not yet on their way, for other sockets all the memory that
/// they hold. 0 if it does not say.
pub(crate) fn unsent_bytes(socket: BorrowedFd<'_>, is_tcp: bool) -> u64 {
    /// `SIOCOUTQNSD` of linux/sockios.h.
    const NOT_SENT: u32 = 0x894B;
    let request = if is_tcp { NOT_SENT as _ } else { libc::TIOCOUTQ as _ };
    let mut bytes: libc::c_int = 0;
    // SAFETY: both requests write one c_int, which is alive; `socket` is open, because it is borrowed.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut bytes) };
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Lets the allocator give free pages back to the kernel, where it keeps them.
pub(crate) fn give_pages_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time and from any thread; it frees only what no allocation holds.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Reusable result of one `recvmmsg`.
pub(crate) struct ReceivedBatch {
    sources: Box<[libc::sockaddr_storage; MAX_BATCH]>,
    controls: Box<[Control; MAX_BATCH]>,
    starts: [u32; MAX_BATCH],
    lengths: [u32; MAX_BATCH],
    /// The last batch came by [`ReceivedBatch::note_frame`]: who sent each message, and to whom.
    stations: Option<Box<[(LinkAddress, Addressee); MAX_BATCH]>>,
    are_frames: bool,
}

impl ReceivedBatch {
    pub(crate) fn new() -> Self {
        // SAFETY: sockaddr_storage is integers and arrays of integers: all zeroes is a value of it.
        let zeroed: libc::sockaddr_storage = unsafe { mem::zeroed() };
        ReceivedBatch {
            sources: Box::new([zeroed; MAX_BATCH]),
            controls: Box::new([Control::NONE; MAX_BATCH]),
            starts: [0; MAX_BATCH],
            lengths: [0; MAX_BATCH],
            stations: None,
            are_frames: false,
        }
    }

    /// Receives at most `buffer.len() / slot_bytes` messages (and at most [`MAX_BATCH`]), the i-th into `buffer[i *
    /// slot_bytes..]`. Does not block. A slot of 65,535 bytes holds every message; a smaller one loses the end of a
    /// larger message.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        slot_bytes: usize,
        at_most: usize,
    ) -> io::Result<usize> {
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_BATCH];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
        let mut asked = 0;
        for slot in buffer.chunks_exact_mut(slot_bytes).take(MAX_BATCH.min(at_most)) {
            let vector = vectors[asked].write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
            // SAFETY: mmsghdr is integers and pointers, and null pointers are values of the latter.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = (&raw mut self.sources[asked]).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            let (control, control_bytes) = self.controls[asked].room();
            (message.msg_hdr.msg_control, message.msg_hdr.msg_controllen) = (control, control_bytes as _);
            messages[asked].write(message);
            asked += 1;
        }
        if asked == 0 {
            return Ok(0);
        }
        // SAFETY:
        // - `messages[..asked]` was written above, and mmsghdr and its MaybeUninit have one layout;
        // - each points to one iovec in `vectors`, one address in `self.sources`, one control
        //   buffer in `self.controls` and one slot of `buffer`, which are distinct, alive and not
        //   used otherwise until the call returns;
        // - `socket` is open, because it is borrowed; no timeout is passed.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                asked as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        self.are_frames = false;
        for (i, message) in messages.iter().enumerate().take(received) {
            // SAFETY: `received` is at most `asked`, and that many were written above.
            let message = unsafe { message.assume_init_ref() };
            self.lengths[i] = message.msg_len;
            self.controls[i].set_len(message.msg_hdr.msg_controllen as _);
            self.starts[i] = (i * slot_bytes) as u32; // the arena has less than 2^31 bytes
        }
        Ok(received)
    }

    /// Makes a frame that did not come by `recvmmsg` the i-th message. All messages of a batch are such frames, or
    /// none.
    #[inline]
    pub(crate) fn note_frame(&mut self, i: usize, start: usize, bytes: usize, from: LinkAddress, addressee: Addressee) {
        self.are_frames = true;
        let nobody = (LinkAddress { interface: 0, address: MacAddress([0; MAC_BYTES]) }, Addressee::Others);
        self.stations.get_or_insert_with(|| Box::new([nobody; MAX_BATCH]))[i] = (from, addressee);
        (self.starts[i], self.lengths[i]) = (start as u32, bytes as u32); // the arena has less than 2^31 bytes
    }

    /// Sender and addressee of the i-th message, if it is a frame.
    #[inline]
    fn station(&self, i: usize) -> Option<(LinkAddress, Addressee)> {
        self.stations.as_ref().filter(|_| self.are_frames).map(|stations| stations[i])
    }

    /// Where the i-th message begins in the buffer.
    pub(crate) fn start(&self, i: usize) -> usize {
        self.starts[i] as usize
    }

    /// Bytes of the i-th message.
    pub(crate) fn len(&self, i: usize) -> usize {
        self.lengths[i] as usize
    }

    /// Bytes of each datagram of the i-th message except the last, which may be shorter. Equals the message's size if
    /// it is one datagram.
    pub(crate) fn segment_bytes(&self, i: usize) -> usize {
        if self.are_frames { self.len(i) } else { self.controls[i].segment_bytes().unwrap_or(self.len(i)) }
    }

    /// The address of ours that the i-th message was sent to, after [`tell_own_address`].
    pub(crate) fn own_address(&self, i: usize) -> Option<IpAddr> {
        self.controls[i].own_address().filter(|_| !self.are_frames)
    }

    /// Sender of the i-th message; `None` for an address family that is neither IP nor Ethernet.
    pub(crate) fn source(&self, i: usize) -> Option<Remote> {
        if let Some((from, _)) = self.station(i) {
            return Some(Remote::Ethernet(from));
        }
        let storage = &self.sources[i];
        match libc::c_int::from(storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in,
                // whose fields are integers, so any bytes are a value of it.
                let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(Remote::Udp(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)))))
            }
            libc::AF_INET6 => {
                // SAFETY: as above, for sockaddr_in6.
                let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                // The flow label varies per packet and would split one remote into many.
                let port = u16::from_be(v6.sin6_port);
                Some(Remote::Udp(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id))))
            }
            libc::AF_PACKET => {
                let station = self.link_layer(i);
                let [a, b, c, d, e, f, ..] = station.sll_addr;
                let is_ethernet = usize::from(station.sll_halen) == MAC_BYTES;
                is_ethernet.then_some(Remote::Ethernet(LinkAddress {
                    interface: station.sll_ifindex as u32,
                    address: MacAddress([a, b, c, d, e, f]),
                }))
            }
            _ => None,
        }
    }

    /// The addressee of the i-th message of an Ethernet socket.
    pub(crate) fn addressee(&self, i: usize) -> Addressee {
        if let Some((_, addressee)) = self.station(i) {
            return addressee;
        }
        match self.link_layer(i).sll_pkttype {
            libc::PACKET_HOST => Addressee::Us,
            libc::PACKET_MULTICAST | libc::PACKET_BROADCAST => Addressee::Group,
            _ => Addressee::Others,
        }
    }

    fn link_layer(&self, i: usize) -> &libc::sockaddr_ll {
        // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_ll, whose
        // fields are integers, so any bytes are a value of it.
        unsafe { &*(&raw const self.sources[i]).cast::<libc::sockaddr_ll>() }
    }
}

/// The addressee of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressee {
    /// This station.
    Us,
    /// A group of stations.
    Group,
    /// Another station (the interface hears everything), or we sent it ourselves.
    Others,
}

/// Bytes of an Ethernet address.
const MAC_BYTES: usize = 6;

/// Room for any address that this crate uses, in the kernel's layout.
union RawAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    link: libc::sockaddr_ll,
}

impl RawAddress {
    /// The address, and how many of its bytes count.
    fn new(remote: Remote) -> (Self, libc::socklen_t) {
        let length = |bytes: usize| bytes as libc::socklen_t; // the largest is 28
        match remote {
            Remote::Udp(SocketAddr::V4(address)) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as _,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                (RawAddress { v4 }, length(size_of_val(&v4)))
            }
            Remote::Udp(SocketAddr::V6(address)) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as _,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                (RawAddress { v6 }, length(size_of_val(&v6)))
            }
            Remote::Ethernet(LinkAddress { interface, address: MacAddress([a, b, c, d, e, f]) }) => {
                let link = libc::sockaddr_ll {
                    sll_family: libc::AF_PACKET as _,
                    sll_protocol: ETHERTYPE_NDN.to_be(),
                    sll_ifindex: interface as libc::c_int,
                    sll_hatype: 0,
                    sll_pkttype: 0,
                    sll_halen: MAC_BYTES as u8,
                    sll_addr: [a, b, c, d, e, f, 0, 0],
                };
                (RawAddress { link }, length(size_of_val(&link)))
            }
        }
    }
}

/// The EtherType of NDN (drop-in.md §2).
pub(crate) const ETHERTYPE_NDN: u16 = 0x8624;

/// Makes a packet socket receive NDN frames from one interface.
pub(crate) fn bind_to_link(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let address = LinkAddress { interface, address: MacAddress([0; MAC_BYTES]) };
    let (address, length) = RawAddress::new(Remote::Ethernet(address));
    // SAFETY: the address is alive, only read, and `length` is the size of the variant written.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes an interface receive frames to `group` for as long as the packet socket is open.
pub(crate) fn join_link_group(socket: BorrowedFd<'_>, interface: u32, group: MacAddress) -> io::Result<()> {
    let MacAddress([a, b, c, d, e, f]) = group;
    let request = libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_MULTICAST as _,
        mr_alen: MAC_BYTES as _,
        mr_address: [a, b, c, d, e, f, 0, 0],
    };
    // SAFETY: the option's value is one packet_mreq.
    unsafe { set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request) }
}

/// One message for [`send_batch`].
pub(crate) struct Outgoing<'a> {
    /// One datagram, or several back to back; at most [`MAX_MESSAGE_BYTES`].
    pub(crate) bytes: &'a [u8],
    /// If there are several: bytes of each except the last, which may be shorter. At most [`MAX_SEGMENTS`] datagrams.
    pub(crate) segment_bytes: Option<u16>,
    /// Needed unless the socket is connected.
    pub(crate) destination: Option<Destination>,
}

/// Sends messages and returns how many the kernel took, each as a whole. Does not block. Tries at most [`MAX_BATCH`].
pub(crate) fn send_batch<'a>(
    socket: BorrowedFd<'_>,
    outgoing: impl Iterator<Item = Outgoing<'a>>,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_BATCH];
    let mut addresses = [const { MaybeUninit::<RawAddress>::uninit() }; MAX_BATCH];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_BATCH];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    let mut asked = 0;
    for Outgoing { bytes, segment_bytes, destination } in outgoing.take(MAX_BATCH) {
        let vector =
            vectors[asked].write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        // SAFETY: mmsghdr is integers and pointers, and null pointers are values of the latter.
        let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
        if let Some(destination) = destination {
            let (address, length) = RawAddress::new(destination.remote);
            message.msg_hdr.msg_name = (&raw mut *addresses[asked].write(address)).cast();
            message.msg_hdr.msg_namelen = length;
        }
        let from = destination.and_then(|destination| destination.from);
        if segment_bytes.is_some() || from.is_some() {
            let control = controls[asked].write(Control::NONE);
            segment_bytes.into_iter().for_each(|bytes| control.add_segment_bytes(bytes));
            from.into_iter().for_each(|address| control.add_own_address(address));
            message.msg_hdr.msg_control = control.room().0;
            message.msg_hdr.msg_controllen = control.len() as _;
        }
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        messages[asked].write(message);
        asked += 1;
    }
    if asked == 0 {
        return Ok(0);
    }
    // SAFETY:
    // - `messages[..asked]` was written above, and mmsghdr and its MaybeUninit have one layout;
    // - each points to one iovec in `vectors`, to bytes that outlive `'a`, and to an address in
    //   `addresses` and control messages in `controls`, or none; the kernel only reads the four,
    //   and writes `msg_len` in `messages`;
    // - `socket` is open, because it is borrowed.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            asked as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Creates a socket without segmentation offload: the kernel refuses it where checksums are off.
#[cfg(test)]
pub(crate) fn turn_checksums_off(socket: BorrowedFd<'_>) {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one c_int.
    unsafe { set_option(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &on) }.expect("the kernel knows the option");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an address as passed to the kernel.
    fn raw(address: SocketAddr) -> Vec<u8> {
        let (raw, length) = RawAddress::new(Remote::Udp(address));
        // SAFETY: `length` bytes of the union were written, and are alive while copied.
        unsafe { std::slice::from_raw_parts((&raw const raw).cast::<u8>(), length as usize).to_vec() }
    }

    #[test]
    fn socket_addresses_are_those_of_the_system() {
        for text in ["192.0.2.1:6363", "[2001:db8::1]:6363", "[fe80::1%3]:56363"] {
            let address: SocketAddr = text.parse().unwrap();
            let expected = socket2::SockAddr::from(address);
            // SAFETY: `len` bytes of it are initialized.
            let bytes = unsafe { std::slice::from_raw_parts(expected.as_ptr().cast::<u8>(), expected.len() as usize) };
            assert_eq!(raw(address), bytes, "{text}");
        }
    }
}
