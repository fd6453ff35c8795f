//! `recvmmsg` and `sendmmsg`: many datagrams for one system call.
//!
//! The only file of this crate with `unsafe`, because the standard library and rustix
//! offer neither call. The façade takes slices and socket addresses and returns counts.
//!
//! Cost: set-up is one 64-octet header, one 16-octet vector and (receiving) one
//! 128-octet address per datagram asked for, on the stack or reused.
#![allow(unsafe_code)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams per system call at most.
pub(crate) const MAX_BATCH: usize = 64;

/// Reusable result of one `recvmmsg`.
pub(crate) struct ReceivedBatch {
    sources: Box<[libc::sockaddr_storage; MAX_BATCH]>,
    lengths: [u32; MAX_BATCH],
    truncated: [bool; MAX_BATCH],
}

impl ReceivedBatch {
    pub(crate) fn new() -> Self {
        // SAFETY: sockaddr_storage is integers and arrays of integers: all zeroes is a value of it.
        let zeroed: libc::sockaddr_storage = unsafe { mem::zeroed() };
        ReceivedBatch { sources: Box::new([zeroed; MAX_BATCH]), lengths: [0; MAX_BATCH], truncated: [false; MAX_BATCH] }
    }

    /// Receives at most `buffer.len() / slot_octets` datagrams (and at most [`MAX_BATCH`]),
    /// the i-th into `buffer[i * slot_octets..]`. Does not block.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        slot_octets: usize,
        at_most: usize,
    ) -> io::Result<usize> {
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_BATCH];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
        let mut asked = 0;
        for slot in buffer.chunks_exact_mut(slot_octets).take(MAX_BATCH.min(at_most)) {
            let vector = vectors[asked].write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
            // SAFETY: mmsghdr is integers and pointers, and null pointers are values of the latter.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = (&raw mut self.sources[asked]).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
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
        // - each points to one iovec in `vectors`, one address in `self.sources` and one slot of
        //   `buffer`, which are distinct, alive and not used otherwise until the call returns;
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
        for (i, message) in messages.iter().enumerate().take(received) {
            // SAFETY: `received` is at most `asked`, and that many were written above.
            let message = unsafe { message.assume_init_ref() };
            self.lengths[i] = message.msg_len;
            self.truncated[i] = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        }
        Ok(received)
    }

    /// Octets of the i-th datagram that are in its slot.
    pub(crate) fn len(&self, i: usize) -> usize {
        self.lengths[i] as usize
    }

    /// True if the i-th datagram was larger than its slot.
    pub(crate) fn is_truncated(&self, i: usize) -> bool {
        self.truncated[i]
    }

    /// Who sent the i-th datagram; `None` for an address family that is not IP.
    pub(crate) fn source(&self, i: usize) -> Option<SocketAddr> {
        let storage = &self.sources[i];
        match libc::c_int::from(storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in,
                // whose fields are integers, so any octets are a value of it.
                let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
            }
            libc::AF_INET6 => {
                // SAFETY: as above, for sockaddr_in6.
                let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                // The flow label varies per packet and would split one remote into many.
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id)))
            }
            _ => None,
        }
    }
}

/// Sends datagrams, each with a destination unless the socket is connected, and returns
/// how many the kernel took. Does not block. At most [`MAX_BATCH`] are looked at.
pub(crate) fn send_batch<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = (&'a [u8], Option<SocketAddr>)>,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_BATCH];
    let mut addresses = [const { MaybeUninit::<socket2::SockAddr>::uninit() }; MAX_BATCH];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    let mut asked = 0;
    for (octets, destination) in datagrams.take(MAX_BATCH) {
        let vector =
            vectors[asked].write(libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() });
        // SAFETY: mmsghdr is integers and pointers, and null pointers are values of the latter.
        let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
        if let Some(destination) = destination {
            let address = addresses[asked].write(socket2::SockAddr::from(destination));
            message.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_namelen = address.len();
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
    // - each points to one iovec in `vectors`, to octets that outlive `'a`, and to an address in
    //   `addresses` or none; the kernel only reads the three, and writes `msg_len` in `messages`;
    // - SockAddr has no destructor, so leaving it in a MaybeUninit leaks nothing;
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
