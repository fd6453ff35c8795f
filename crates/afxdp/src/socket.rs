//! One queue of an interface, as a socket.
//!
//! Source: Documentation/networking/af_xdp.rst and net/xdp/xsk.c of Linux. The socket has separate memory for its
//! frames, which the kernel pins. One half receives, the other half sends. `queue.rs` moves the frames. This file makes
//! the socket and wakes the kernel when it has to look at the rings (`XDP_USE_NEED_WAKEUP`).
//!
//! Modes: with *zero copy*, the card itself reads and writes the frames. Otherwise (*copy mode*), the kernel copies
//! each packet, and sends only within a system call: at most 32 packets each, so [`XdpSocket::flush`] makes several.
//!
//! Cost: to receive, no system call. To send, one for 32 packets in copy mode, and at most one per flush with zero
//! copy. Memory: `frames` × `frame_bytes`, 16 MB with the default options, and for each frame 24 bytes of rings.
//!
//! Limits: the kernel drops and counts a frame that arrives while no frame memory is free ([`Statistics`]). If all
//! frames to send are in use, [`XdpSocket::send`] refuses. The socket counts impossible descriptors of the kernel
//! ([`XdpSocket::refused_descriptors`]). It also counts frames that the kernel drops in copy mode instead of sending
//! them, because the link has no carrier or the queue of a device is full ([`XdpSocket::dropped`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpMmapOffsets, XdpOptionsFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use crate::mapping::Mapping;
use crate::queue::Queue;
use crate::ring::{ConsumerRing, Entry, Layout, ProducerRing};
use crate::umem::Umem;
use crate::{failed, interface};

/// Bytes of an Ethernet header without a tag.
const ETHERNET_HEADER_BYTES: usize = 14;

/// Fewest and most frames of a socket. The kernel wants rings of at least one slot; 2²⁰ frames are 4 GB.
const FRAMES_MIN: u32 = 16;
const FRAMES_MAX: u32 = 1 << 20;

/// A queue stays busy for a moment after its socket was closed: the kernel cleans up later. So often and so long
/// [`XdpSocket::open`] waits for it.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// What a socket is to be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of frames, a power of two from 16 to 2²⁰: half to receive, half to send. Default 4,096.
    pub frames: u32,
    /// Bytes of one frame: 2,048 or 4,096 (default). The kernel uses 256 of them.
    pub frame_bytes: u32,
    /// Zero copy if the driver can; otherwise copy mode. Default true.
    pub zero_copy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { frames: 4_096, frame_bytes: 4_096, zero_copy: true }
    }
}

impl Options {
    fn check(&self) -> io::Result<()> {
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if !self.frames.is_power_of_two() || !(FRAMES_MIN..=FRAMES_MAX).contains(&self.frames) {
            return wrong(format!("{} frames: must be a power of two, {FRAMES_MIN} to {FRAMES_MAX}", self.frames));
        }
        if ![2_048, 4_096].contains(&self.frame_bytes) {
            return wrong(format!("{} bytes per frame: must be 2048 or 4096", self.frame_bytes));
        }
        Ok(())
    }
}

/// What the kernel counted since the socket was opened (`XDP_STATISTICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that came and were dropped, for example because they were too long.
    pub rx_dropped: u64,
    /// Entries of the fill ring that named no frame.
    pub rx_invalid_descs: u64,
    /// Entries of the TX ring that named no bytes of a frame.
    pub tx_invalid_descs: u64,
    /// Frames dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Frames dropped because the fill ring was empty: all frames to receive wait for [`XdpSocket::receive`].
    pub fill_ring_empty: u64,
    /// How often the kernel found the TX ring empty.
    pub tx_ring_empty: u64,
}

/// One queue of an interface. epoll reports it readable when frames wait. See the module.
#[derive(Debug)]
pub struct XdpSocket {
    socket: OwnedFd,
    queue: Queue,
    is_zero_copy: bool,
    dropped: u64,
    has_waiting: bool,
}

impl XdpSocket {
    /// Opens a queue of an interface, which must be up. It receives after [`Program::insert`](crate::Program::insert).
    ///
    /// # Errors
    /// `InvalidInput` if an option is out of its range, the interface has no such queue, or its frames are too long for
    /// `frame_bytes`; `ResourceBusy` if another socket has the queue; `NetworkDown` if the interface is down;
    /// `PermissionDenied` without privileges; and others that the kernel gives, with their text.
    pub fn open(interface: u32, queue: u32, options: Options) -> io::Result<XdpSocket> {
        options.check()?;
        let mut tries = 0;
        loop {
            match Self::try_open(interface, queue, options) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < BUSY_TRIES => tries += 1,
                result => return result,
            }
            std::thread::sleep(BUSY_PAUSE);
        }
    }

    fn try_open(interface: u32, queue: u32, options: Options) -> io::Result<XdpSocket> {
        let step = |step: &'static str| move |e: Errno| failed(step, &e.into());
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(step("making an AF_XDP socket"))?;
        let umem = Umem::new(options.frames, options.frame_bytes)?;
        check_mtu(interface, &umem)?;
        register(socket.as_fd(), &umem).map_err(step("registering frame memory"))?;
        let mut rings = map_rings(socket.as_fd(), umem, options.frames / 2)?;
        rings.fill();
        set_send_buffer(socket.as_fd(), &options);
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        if !options.zero_copy {
            flags |= SocketAddrXdpFlags::XDP_COPY;
        }
        // Without XDP_COPY and XDP_ZEROCOPY, the kernel tries zero copy first.
        bind(&socket, &SocketAddrXdp::new(flags, interface, queue))
            .map_err(|e| failed(&format!("binding to queue {queue}"), &e.into()))?;
        let is_zero_copy = sockopt::xdp_options(&socket)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(XdpSocket { socket, queue: rings, is_zero_copy, dropped: 0, has_waiting: false })
    }

    /// True if the card reads and writes the frames itself.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Passes up to `max` frames that came, whole and with their Ethernet header, to `take`, gives their memory back to
    /// the kernel and returns how many. Does not block. If `take` panics, the memory of that frame is lost.
    pub fn receive(&mut self, max: usize, take: impl FnMut(&[u8])) -> usize {
        let taken = self.queue.receive(max, take);
        if self.queue.fill.needs_wakeup() {
            // What it says does not matter: no bytes are received by this call, and the next one tries again.
            let _ = recv(&self.socket, &mut [0u8; 0][..], RecvFlags::DONTWAIT);
        }
        taken
    }

    /// Whether a frame has come. No system call.
    #[must_use]
    pub fn has_received(&self) -> bool {
        self.queue.rx.has_more()
    }

    /// Queues one frame, made of these parts. False if no frame memory is free (call [`flush`](Self::flush) and try
    /// later), or if it is longer than [`frame_bytes_max`](Self::frame_bytes_max). The kernel sends it after `flush`.
    #[must_use]
    pub fn send(&mut self, parts: &[&[u8]]) -> bool {
        self.queue.send(parts)
    }

    /// Makes the kernel send what is queued, and takes back the memory of frames that it has sent. Does not block. What
    /// the kernel cannot take yet stays queued ([`unsent`](Self::unsent)) for the next call.
    ///
    /// # Errors
    /// `NetworkDown` while the interface is down, and others that the kernel gives. The frames stay queued.
    pub fn flush(&mut self) -> io::Result<()> {
        self.queue.reap();
        self.queue.tx.publish();
        // The kernel says that it sleeps, then looks at the ring once more; we write the ring, then look whether it
        // sleeps. Without the fence, both could miss the other.
        fence(Ordering::SeqCst);
        let result = self.wake_sender();
        self.has_waiting = self.queue.tx.unread() > 0;
        self.queue.reap();
        result
    }

    /// Calls until the kernel has taken all or takes no more.
    fn wake_sender(&mut self) -> io::Result<()> {
        let mut unread = self.queue.tx.unread();
        // The kernel shows that it has read a frame only after it has sent one, so drops are no sign of progress.
        let mut drops_left = unread;
        // A driver with zero copy may also need the call to see which frames have left.
        while self.queue.tx.needs_wakeup() && (unread > 0 || (self.is_zero_copy && self.unsent() > 0)) {
            match send(&self.socket, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                // EAGAIN: it has sent as many as it sends in one call, or as the send buffer allows.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => (),
                // The kernel has dropped one frame instead of sending it; the next may pass.
                Err(Errno::BUSY) if drops_left > 0 => {
                    drops_left -= 1;
                    self.dropped += 1;
                    continue;
                }
                Err(Errno::BUSY | Errno::NOBUFS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let left = self.queue.tx.unread();
            if left >= unread {
                return Ok(());
            }
            unread = left;
        }
        Ok(())
    }

    /// Largest frame, in bytes, with its Ethernet header.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.queue.umem.packet_bytes_max()
    }

    /// Frames that [`send`](Self::send) took and whose memory has not come back yet: queued or in the kernel.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.queue.umem.sending()
    }

    /// Whether the kernel left frames behind in the last [`flush`](Self::flush). Call it again soon: nothing else makes
    /// the kernel send them.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.has_waiting
    }

    /// Frames that the kernel dropped instead of sending them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Descriptors of the kernel that named no frame which it had. More than 0 is a fault of the kernel.
    #[must_use]
    pub fn refused_descriptors(&self) -> u64 {
        self.queue.refused
    }

    /// What the kernel counted.
    ///
    /// # Errors
    /// What the kernel gives.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let counted = sockopt::xdp_statistics(&self.socket)?;
        Ok(Statistics {
            rx_dropped: counted.rx_dropped,
            rx_invalid_descs: counted.rx_invalid_descs,
            tx_invalid_descs: counted.tx_invalid_descs,
            rx_ring_full: counted.rx_ring_full.unwrap_or(0),
            fill_ring_empty: counted.rx_fill_ring_empty_descs.unwrap_or(0),
            tx_ring_empty: counted.tx_ring_empty_descs.unwrap_or(0),
        })
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const _: () = {
    const fn moves_between_threads<T: Send>() {}
    moves_between_threads::<XdpSocket>();
};

/// Refuses an interface whose frames the kernel would drop because they are longer than ours.
fn check_mtu(interface: u32, umem: &Umem) -> io::Result<()> {
    let mtu = interface::mtu(interface).map_err(|e| failed("reading the MTU", &e))?;
    let mtu_max = umem.packet_bytes_max() - ETHERNET_HEADER_BYTES;
    if mtu > mtu_max {
        let text = format!("the interface's MTU is {mtu} bytes; AF_XDP allows {mtu_max}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

fn register(socket: BorrowedFd<'_>, umem: &Umem) -> rustix::io::Result<()> {
    let memory = umem.memory();
    sockopt::set_xdp_umem_reg(
        socket,
        XdpUmemReg {
            addr: memory.start().as_ptr().expose_provenance() as u64,
            len: memory.bytes() as u64,
            chunk_size: umem.frame_bytes(),
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        },
    )
}

/// Makes the four rings, each of `slots` slots.
fn map_rings(socket: BorrowedFd<'_>, umem: Umem, slots: u32) -> io::Result<Queue> {
    sockopt::set_xdp_umem_fill_ring_size(socket, slots)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, slots)?;
    sockopt::set_xdp_rx_ring_size(socket, slots)?;
    sockopt::set_xdp_tx_ring_size(socket, slots)?;
    let XdpMmapOffsets { rx, tx, fr, cr, .. } = sockopt::xdp_mmap_offsets(socket)?;
    let (fill, fill_layout) = map_ring::<u64>(socket, XDP_UMEM_PGOFF_FILL_RING, &fr, slots)?;
    let (completion, completion_layout) = map_ring::<u64>(socket, XDP_UMEM_PGOFF_COMPLETION_RING, &cr, slots)?;
    let (rx, rx_layout) = map_ring::<libc::xdp_desc>(socket, XDP_PGOFF_RX_RING, &rx, slots)?;
    let (tx, tx_layout) = map_ring::<libc::xdp_desc>(socket, XDP_PGOFF_TX_RING, &tx, slots)?;
    Ok(Queue {
        umem,
        fill: ProducerRing::new(fill, fill_layout, slots)?,
        completion: ConsumerRing::new(completion, completion_layout, slots)?,
        rx: ConsumerRing::new(rx, rx_layout, slots)?,
        tx: ProducerRing::new(tx, tx_layout, slots)?,
        refused: 0,
    })
}

fn map_ring<T: Entry>(
    socket: BorrowedFd<'_>,
    offset: u64,
    parts: &XdpRingOffset,
    slots: u32,
) -> io::Result<(Arc<Mapping>, Layout)> {
    // Linux 5.4 and later have flags, and the program needs a later one.
    let flags = parts.flags.ok_or(io::ErrorKind::Unsupported)?;
    let layout = Layout { producer: parts.producer, consumer: parts.consumer, flags, slots: parts.desc };
    let memory =
        Mapping::of_socket(socket, offset, layout.bytes::<T>(slots)).map_err(|e| failed("mapping a ring", &e))?;
    Ok((Arc::new(memory), layout))
}

/// In copy mode, a frame that waits in the driver counts against the send buffer, with the kernel's own memory for it.
/// Asks for room for all; the system may allow less, and then [`XdpSocket::flush`] leaves more frames queued.
fn set_send_buffer(socket: BorrowedFd<'_>, options: &Options) {
    let bytes = (options.frames / 2) as usize * (options.frame_bytes as usize + 1_024);
    if sockopt::set_socket_send_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, bytes);
    }
}
