//! System calls that the tests need and that no safe library offers: a network namespace for one thread, packet sockets
//! that are bound to an interface, and many frames per call (for the comparison of speeds).
#![allow(unsafe_code, reason = "system calls that no safe library offers")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsRawFd;

use rustix::thread::{UnshareFlags, unshare_unsafe};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Moves the calling thread into a new network namespace.
pub(crate) fn enter_new_network() -> io::Result<()> {
    // SAFETY: only UnshareFlags::FILES makes descriptors unusable for other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into)
}

/// A packet socket that sends and receives whole frames of this EtherType on one interface.
pub(crate) fn packet_socket(interface: u32, ether_type: u16) -> io::Result<Socket> {
    // Without a protocol, it receives nothing before it is bound.
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
    // SAFETY: `try_init` passes memory of zeroes that is larger and at least as aligned as a sockaddr_ll, whose fields
    // are integers; the length is the number of bytes written.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            *storage.cast() = libc::sockaddr_ll {
                sll_family: libc::AF_PACKET as _,
                sll_protocol: ether_type.to_be(),
                sll_ifindex: interface as _,
                sll_hatype: 0,
                sll_pkttype: 0,
                sll_halen: 0,
                sll_addr: [0; 8],
            };
            *length = size_of::<libc::sockaddr_ll>() as _;
            Ok(())
        })
    }?;
    socket.bind(&address)?;
    Ok(socket)
}

/// Frames per call of the two functions below.
pub(crate) const BATCH: usize = 64;

/// Sends the same frame `count` times, at most [`BATCH`], by one `sendmmsg`. Returns how many the kernel took.
pub(crate) fn send_many(socket: &Socket, frame: &[u8], count: usize) -> io::Result<usize> {
    let mut vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
    let mut messages = messages(|_| &raw mut vector);
    let count = count.min(BATCH) as _;
    // SAFETY: `messages` has at least `count` entries, which point to `vector` and so to `frame`; all are alive, and
    // the kernel writes only the lengths in `messages`.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives up to [`BATCH`] frames by one `recvmmsg` and drops them. Returns how many there were.
pub(crate) fn receive_many(socket: &Socket) -> io::Result<usize> {
    let mut bytes = [[0u8; 2_048]; BATCH];
    let mut vectors =
        bytes.each_mut().map(|bytes| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
    let mut messages = messages(|i| &raw mut vectors[i]);
    // SAFETY: each of the BATCH messages points to one vector, and the vector to one array of its length. All are
    // alive, and nothing else uses them until the call returns.
    let received = unsafe {
        let flags = libc::MSG_DONTWAIT as _;
        libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as _, flags, std::ptr::null_mut())
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

fn messages(mut vector: impl FnMut(usize) -> *mut libc::iovec) -> [libc::mmsghdr; BATCH] {
    std::array::from_fn(|i| {
        // SAFETY: mmsghdr is integers and pointers, and null pointers are values of the latter.
        let mut message: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_hdr.msg_iov = vector(i);
        message.msg_hdr.msg_iovlen = 1;
        message
    })
}

const _: () = assert!(mem::size_of::<libc::sockaddr_ll>() <= mem::size_of::<libc::sockaddr_storage>());
