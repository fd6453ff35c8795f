//! Many datagrams in one system call: `recvmmsg` and `sendmmsg`.
//!
//! One system call per datagram would make the load generator and the relay the bottleneck. Limits: [`BATCH`] datagrams
//! a call, each up to [`SLOT_BYTES`]; the kernel cuts a longer one, and this module counts it as cut.
#![allow(unsafe_code, reason = "leaf: the two system calls have no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most datagrams moved by one system call.
pub const BATCH: usize = 64;
/// Room per received datagram: the largest NDN packet and its link header.
pub const SLOT_BYTES: usize = 9_216;

/// Buffers for one `recvmmsg` and what the last one received.
#[derive(Debug)]
pub struct ReceiveBatch {
    bytes: Box<[u8]>,
    lengths: [usize; BATCH],
    received: usize,
    /// Datagrams that were longer than a slot, since the batch was made.
    pub cut: u64,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self { bytes: vec![0; BATCH * SLOT_BYTES].into_boxed_slice(), lengths: [0; BATCH], received: 0, cut: 0 }
    }
}

impl ReceiveBatch {
    /// Receives the available datagrams without waiting; returns their number.
    ///
    /// # Errors
    /// Whatever `recvmmsg` reports, except "would block".
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.received = 0;
        let mut slices: [libc::iovec; BATCH] = [EMPTY_SLICE; BATCH];
        let mut messages: [libc::mmsghdr; BATCH] = [empty_message(); BATCH];
        for ((slot, slice), message) in self.bytes.chunks_exact_mut(SLOT_BYTES).zip(&mut slices).zip(&mut messages) {
            *slice = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `messages` holds BATCH headers; each points to one slice of
        // `slices`, which points to SLOT_BYTES writable bytes of `self.bytes`
        // that no other slice covers (`chunks_exact_mut`). All three outlive the
        // call, names and control data are null with length 0, and the null
        // time-out is allowed.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return nothing_if_would_block();
        }
        self.received = (count as usize).min(BATCH);
        for (length, message) in self.lengths.iter_mut().zip(&messages).take(self.received) {
            *length = (message.msg_len as usize).min(SLOT_BYTES);
            self.cut += u64::from(message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0);
        }
        Ok(self.received)
    }

    /// The datagrams of the last [`ReceiveBatch::receive`].
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes
            .chunks_exact(SLOT_BYTES)
            .zip(&self.lengths)
            .take(self.received)
            .map(|(slot, &length)| &slot[..length])
    }
}

/// Sends datagrams that lie back to back in `bytes`: the first starts at `start`, the n-th ends at `ends[n]`.
///
/// Tries at most [`BATCH`] and returns how many the kernel took; 0 means that the socket's buffer is full.
///
/// # Errors
/// Whatever `sendmmsg` reports for the first datagram, except "would block".
///
/// # Panics
/// If the ends are not ascending offsets into `bytes`.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], start: usize, ends: &[usize]) -> io::Result<usize> {
    let mut slices: [libc::iovec; BATCH] = [EMPTY_SLICE; BATCH];
    let mut messages: [libc::mmsghdr; BATCH] = [empty_message(); BATCH];
    let mut from = start;
    let count = ends.len().min(BATCH);
    for ((&end, slice), message) in ends.iter().zip(&mut slices).zip(&mut messages) {
        let datagram = &bytes[from..end];
        // The kernel only reads through this pointer: `iovec` has no const form.
        *slice = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
        message.msg_hdr.msg_iov = slice;
        message.msg_hdr.msg_iovlen = 1;
        from = end;
    }
    // SAFETY: the first `count` headers each point to one slice, which points to
    // initialized bytes inside `bytes` (checked by the indexing above); all
    // outlive the call and the kernel writes nothing but `msg_len`.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent < 0 { nothing_if_would_block() } else { Ok(sent as usize) }
}

fn nothing_if_would_block() -> io::Result<usize> {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

const EMPTY_SLICE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

const fn empty_message() -> libc::mmsghdr {
    // SAFETY: `mmsghdr` is a C structure of integers and raw pointers, for all of
    // which zero bytes are a value (padding differs between C libraries, so it
    // cannot be written as a literal).
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn datagrams_cross_in_batches_and_keep_their_bounds() -> io::Result<()> {
        let (left, right) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        left.connect(right.local_addr()?)?;
        let mut batch = ReceiveBatch::default();
        assert_eq!(batch.receive(right.as_fd())?, 0);
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(send(left.as_fd(), &bytes, 0, &[1, 3, 200])?, 3);
        assert_eq!(batch.receive(right.as_fd())?, 3);
        let received: Vec<&[u8]> = batch.datagrams().collect();
        assert_eq!(received, [&bytes[0..1], &bytes[1..3], &bytes[3..200]]);
        Ok(())
    }
}
