//! One UDP socket with its send queue: a listener that many on-demand faces share, or
//! the connected socket of one face.
//!
//! Packets of one batch are queued and leave with as few `sendmmsg` calls as their number
//! allows, to however many remotes. A datagram that the kernel refuses for good is handed
//! back so that its face counts it; one that does not fit now waits, up to a limit.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use namewire_packet::FaceId;

use crate::buffer_pool::BufferPool;
use crate::sys;

/// Queue slots that a drained socket keeps, so that usual batches allocate nothing.
const KEPT_QUEUE_SLOTS: usize = 256;

pub(crate) struct DatagramSocket {
    pub(crate) socket: UdpSocket,
    pub(crate) local: SocketAddr,
    /// The one face of a connected socket and its remote.
    pub(crate) connected: Option<(FaceId, SocketAddr)>,
    /// In the driver's list of sources to read.
    pub(crate) is_ready: bool,
    /// In the driver's list of sockets to flush.
    pub(crate) is_dirty: bool,
    /// The kernel refused datagrams; wait until it says that the socket is writable.
    pub(crate) is_blocked: bool,
    octets: Vec<u8>,
    queue: VecDeque<Queued>,
}

/// One datagram, `octets[start..start + len]`.
struct Queued {
    start: usize,
    len: usize,
    destination: Option<SocketAddr>,
    face: FaceId,
}

impl DatagramSocket {
    pub(crate) fn new(socket: UdpSocket, connected: Option<(FaceId, SocketAddr)>) -> io::Result<Self> {
        Ok(DatagramSocket {
            local: socket.local_addr()?,
            socket,
            connected,
            is_ready: false,
            is_dirty: false,
            is_blocked: false,
            octets: Vec::new(),
            queue: VecDeque::new(),
        })
    }

    /// Octets queued and not yet taken by the kernel.
    pub(crate) fn queued_octets(&self) -> usize {
        self.octets.len() - self.queue.front().map_or(self.octets.len(), |first| first.start)
    }

    /// Appends one datagram for `face`; `destination` is needed on a listener.
    pub(crate) fn queue(
        &mut self,
        face: FaceId,
        destination: Option<SocketAddr>,
        header: &[u8],
        slice: &[u8],
        pool: &mut BufferPool,
    ) {
        if self.octets.capacity() == 0 {
            self.octets = pool.take();
        }
        let start = self.octets.len();
        self.octets.extend_from_slice(header);
        self.octets.extend_from_slice(slice);
        let len = self.octets.len() - start;
        self.queue.push_back(Queued { start, len, destination, face });
    }

    /// Sends as much as the kernel takes; sets `is_blocked` if it does not take all. Calls
    /// `failed` for each datagram that was given up.
    pub(crate) fn flush(&mut self, pool: &mut BufferPool, mut failed: impl FnMut(FaceId)) {
        self.is_blocked = false;
        let mut retried = false;
        while let Some(first) = self.queue.front() {
            let face = first.face;
            let datagrams =
                self.queue.iter().map(|queued| (&self.octets[queued.start..][..queued.len], queued.destination));
            match sys::send_batch(self.socket.as_fd(), datagrams) {
                Ok(sent @ 1..) => {
                    self.queue.drain(..sent);
                    retried = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) => return self.block(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.block(),
                // The peer's refusal of an earlier datagram is reported on this one, which
                // was not sent: try it once more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && !retried => {
                    retried = true;
                }
                Err(_) => {
                    self.queue.pop_front();
                    retried = false;
                    failed(face);
                }
            }
        }
        pool.give(&mut self.octets);
        self.queue.shrink_to(KEPT_QUEUE_SLOTS);
    }

    /// Forgets what is queued for a face that goes.
    pub(crate) fn forget_face(&mut self, face: FaceId) {
        self.queue.retain(|queued| queued.face != face);
    }

    /// Waits for room, with what is left moved to the front once that is the smaller part.
    fn block(&mut self) {
        self.is_blocked = true;
        let Some(first) = self.queue.front().map(|queued| queued.start) else { return };
        if first * 2 >= self.octets.len() {
            self.octets.drain(..first);
            for queued in &mut self.queue {
                queued.start -= first;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn receiver() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn sender() -> DatagramSocket {
        DatagramSocket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), None).unwrap()
    }

    fn next(socket: &UdpSocket) -> Vec<u8> {
        let mut octets = [0; 100];
        let len = socket.recv(&mut octets).unwrap();
        octets[..len].to_vec()
    }

    #[test]
    fn a_datagram_that_the_kernel_refuses_is_reported_and_the_rest_go() {
        let (receiver, address) = receiver();
        let unusable: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        for (face, destination) in [(1, address), (2, unusable), (3, address), (2, unusable)] {
            socket.queue(FaceId(face), Some(destination), b"face", &[face as u8], &mut pool);
        }
        assert_eq!(socket.queued_octets(), 20);
        let mut failed = Vec::new();
        socket.flush(&mut pool, |face| failed.push(face));
        assert_eq!(failed, [FaceId(2), FaceId(2)]);
        assert_eq!(socket.queued_octets(), 0);
        assert_eq!([next(&receiver), next(&receiver)], [b"face\x01".to_vec(), b"face\x03".to_vec()]);
    }

    #[test]
    fn what_waits_keeps_its_place_and_a_removed_face_leaves_the_queue() {
        let (receiver, address) = receiver();
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        for (face, text) in [(1, "one, which the kernel took"), (2, "two"), (3, "three"), (2, "four")] {
            socket.queue(FaceId(face), Some(address), b"", text.as_bytes(), &mut pool);
        }
        socket.queue.pop_front();
        socket.block();
        assert_eq!(socket.octets, b"twothreefour");
        assert_eq!(socket.queued_octets(), 12);
        socket.forget_face(FaceId(3));
        socket.flush(&mut pool, |_| panic!("refused"));
        assert_eq!([next(&receiver), next(&receiver)], [b"two".to_vec(), b"four".to_vec()]);
        assert!(!socket.is_blocked);
    }
}
