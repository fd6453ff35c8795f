//! A device as a port with one receive queue and one transmit queue, for one thread.
//!
//! Source: DPDK 22.11, programmer's guide, "Poll Mode Driver": configure, set up queues, start; later stop, close,
//! detach.
//!
//! Memory: each port has a pool of buffers. A device may still hold buffers of a port that was closed: devices of
//! net_ring pass them on without a copy. So a pool is freed only when the last port closes. Until then, a port that
//! opens with the same options takes a pool of a closed one, if all its buffers are back.
#![allow(unsafe_code, reason = "leaf: decides when queues and pools of DPDK may be used and freed")]

use std::ffi::CString;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::burst::Queues;
use crate::eal::{Eal, failed, register_thread};
use crate::ffi::{self, Device, Pool, Setup};
use crate::gate::Passage;
use crate::options::{CACHE_BUFFERS, PortCounters, PortOptions};
use crate::sync::lock;

/// The part of a device's name that says that its peers may leave during a burst. See `gate.rs`.
const MEMIF: &str = "memif";

/// Most groups that a port asks its device for.
const GROUPS_MAX: usize = 64;

/// One port of a device, with one receive and one transmit queue, for one thread at a time. Dropping it stops the
/// device and detaches it. See the module.
pub struct Port {
    // Drops first, while the device runs.
    queues: Queues,
    opened: Opened,
    name: String,
    driver: String,
    address: [u8; 6],
    is_virtual: bool,
    mtu: u16,
    groups: Vec<[u8; 6]>,
}

impl Port {
    /// Opens a device and starts it. `device` is a PCI address (`0000:03:00.0`), a virtual device with its arguments
    /// (`net_memif0,role=server,id=0,socket=/run/x.sock,socket-abstract=no`), or the name of a device that DPDK
    /// attached when it started. If DPDK does not have the device yet, it is attached.
    ///
    /// The call may take seconds, until a card is ready. The link may come up later ([`is_up`](Self::is_up)). A memif
    /// client opens only while its server listens. A memif peer must be trusted: the driver believes the offsets that
    /// the peer writes.
    ///
    /// # Errors
    /// `InvalidInput` if an option is out of its range, or the driver refuses it; `ResourceBusy` if the device is open;
    /// `OutOfMemory` if DPDK has too little memory (`-m`, huge pages) for the buffers; `Unsupported` for memif with
    /// `zero-copy=yes`, where a peer could change a frame while it is read; and others that DPDK gives, for example if
    /// no driver knows the device. The text quotes DPDK's log.
    pub fn open(eal: &Arc<Eal>, device: &str, options: &PortOptions) -> io::Result<Port> {
        options.check()?;
        refuse_zero_copy(device)?;
        // One passage for bursts, one to open and close.
        let needs_passage = device.contains(MEMIF);
        let burst_passage = needs_passage.then(Passage::new).transpose()?;
        let passage = needs_passage.then(Passage::new).transpose()?;
        let mut ports = lock(&eal.ports);
        let inside = passage.as_ref().map(Passage::enter_surely);
        let attached = Attached::new(device)?;
        if ports.open.contains(&attached.id) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{device} is open")));
        }
        let (description, pool, mtu) = ports.start(&attached, options).inspect_err(|_| {
            // SAFETY: the device is not open, so no Port uses its queues.
            unsafe { attached.close() };
            ports.free_if_idle();
        })?;
        drop(inside);
        // SAFETY:
        // - `start` started the port with one queue each way; `Opened` stops it, and drops after the queues;
        // - the port was not in the list of open ports, and now is, so there is one `Queues` for it;
        // - names of net_memif's devices start with its name, so they have a passage;
        // - `Opened` has the pool, whose buffers have room for `frame_bytes_max`, which `check` limits.
        let queues = unsafe { Queues::new(attached.id, &pool.pool, options.frame_bytes_max, burst_passage) };
        ports.open.push(attached.id);
        Ok(Port {
            queues,
            opened: Opened { eal: Arc::clone(eal), device: attached, passage, pool: Some(pool) },
            name: description.name(),
            driver: description.driver(),
            address: description.address,
            is_virtual: description.is_virtual(),
            mtu,
            groups: Vec::new(),
        })
    }

    /// DPDK's name of the device, for example `net_memif0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's name, for example `net_memif`.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// The MAC address.
    #[must_use]
    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// The device's MTU: bytes of a frame without its Ethernet header. Some virtual devices take longer frames.
    #[must_use]
    pub fn mtu(&self) -> usize {
        usize::from(self.mtu)
    }

    /// Largest frame that [`send`](Self::send) takes, in bytes, with its Ethernet header: the room of a buffer. The
    /// device may drop frames that are longer than its MTU and their headers.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.queues.frame_bytes_max()
    }

    /// Whether the link is up. Does not wait. Most drivers read a register or a variable.
    ///
    /// N.B. A memif client does not connect again after its server left: drop the port, and open it again.
    #[must_use]
    pub fn is_up(&self) -> bool {
        ffi::is_up(self.opened.device.id)
    }

    /// Passes up to `at_most` frames that came, and at most [`BURST_FRAMES_MAX`](crate::BURST_FRAMES_MAX), whole and
    /// with their Ethernet header, to `visit`, and returns how many. Does not wait.
    ///
    /// A return value below `at_most` does not mean that the device is empty: some drivers give at most 32 frames, and
    /// malformed frames are dropped ([`PortCounters`]).
    pub fn receive(&mut self, at_most: usize, visit: impl FnMut(&[u8])) -> usize {
        register_thread();
        self.queues.receive(at_most, visit)
    }

    /// Copies a frame, made of these parts, into a buffer, for the next [`flush`](Self::flush). Zeroes are added to a
    /// frame below 60 bytes, as Ethernet wants. False if [`BURST_FRAMES_MAX`](crate::BURST_FRAMES_MAX) frames wait, if
    /// the pool has no buffer, or if the frame is longer than [`frame_bytes_max`](Self::frame_bytes_max).
    #[must_use]
    pub fn send(&mut self, parts: &[&[u8]]) -> bool {
        self.queues.send(parts)
    }

    /// Gives the frames that wait to the device and returns how many it took. The others wait for the next call. Does
    /// not wait.
    pub fn flush(&mut self) -> usize {
        register_thread();
        self.queues.flush()
    }

    /// Frames that wait for the next [`flush`](Self::flush).
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Receives frames for this multicast address, too. If the device has no filter for it, the port receives all
    /// groups, or else everything. A virtual device that has no filter at all receives everything anyway.
    ///
    /// # Errors
    /// `InvalidInput` after 64 groups; `Unsupported` if a card has no way to receive them; others of the driver.
    pub fn hear_group(&mut self, group: [u8; 6]) -> io::Result<()> {
        if self.groups.contains(&group) {
            return Ok(());
        }
        if self.groups.len() == GROUPS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {GROUPS_MAX} groups")));
        }
        self.groups.push(group);
        // Two threads must not change one device.
        let _ports = lock(&self.opened.eal.ports);
        match ffi::hear_groups(self.opened.device.id, &self.groups) {
            Err(error) if !(self.is_virtual && error.kind() == io::ErrorKind::Unsupported) => {
                self.groups.pop();
                Err(failed(&format!("receiving a multicast group on {}", self.name), &error))
            }
            _ => Ok(()),
        }
    }

    /// What the port and its device counted. Some drivers ask the card, which takes microseconds.
    #[must_use]
    pub fn counters(&self) -> PortCounters {
        let device = ffi::counters(self.opened.device.id).unwrap_or_default();
        PortCounters {
            receive_missed: device.missed,
            receive_errors: device.receive_errors,
            receive_no_buffer: device.no_buffer,
            receive_malformed: self.queues.malformed,
            transmit_errors: device.transmit_errors,
            transmit_no_buffer: self.queues.no_buffer,
        }
    }
}

/// A peer of such a memif device shares the memory of our buffers, and could change a frame while it is read.
fn refuse_zero_copy(device: &str) -> io::Result<()> {
    if device.contains("zero-copy=yes") {
        let text = format!("{device}: zero-copy=yes lets a peer change frames while they are read");
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok(())
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("name", &self.name).field("driver", &self.driver).finish_non_exhaustive()
    }
}

const _: () = {
    const fn moves_between_threads<T: Send>() {}
    moves_between_threads::<Port>();
};

/// A device that is started, and the pool of its buffers.
struct Opened {
    eal: Arc<Eal>,
    device: Attached,
    passage: Option<Passage>,
    /// There until the drop.
    pool: Option<SizedPool>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut ports = lock(&self.eal.ports);
        let _inside = self.passage.as_ref().map(Passage::enter_surely);
        // SAFETY: the Port's queues were dropped before.
        unsafe { self.device.close() };
        ports.open.retain(|&id| id != self.device.id);
        ports.parked.extend(self.pool.take());
        ports.free_if_idle();
    }
}

/// An attached device, by the number of its port.
struct Attached {
    id: u16,
    /// How to attach it again after it was closed, if DPDK attached it when it started.
    again: Option<CString>,
}

impl Attached {
    /// Finds or attaches the device.
    fn new(device: &str) -> io::Result<Attached> {
        let step = format!("attaching {device}");
        let name = CString::new(device.split(',').next().unwrap_or_default())?;
        if let Some(id) = ffi::find(&name) {
            let arguments = ffi::describe(id).map_err(|e| failed(&step, &e))?.arguments();
            return Ok(Attached { id, again: Some(CString::new(arguments)?) });
        }
        ffi::probe(&CString::new(device)?).map_err(|e| failed(&step, &e))?;
        let id = ffi::find(&name).ok_or_else(|| failed(&step, &io::Error::other("the device has no port")))?;
        Ok(Attached { id, again: None })
    }

    /// # Safety
    /// No thread uses the port's queues during the call or after it.
    unsafe fn close(&self) {
        // SAFETY: as the caller promises.
        let closed = unsafe { ffi::close(self.id) };
        if let (Ok(()), Some(again)) = (closed, &self.again) {
            // Without it, the device is gone, and the next `open` of its name says so.
            let _ = ffi::probe(again);
        }
    }
}

/// A pool, and the options that made it.
#[derive(Debug)]
struct SizedPool {
    pool: Pool,
    buffers: u32,
    room: usize,
}

/// The ports that are open, and pools of ports that were closed.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    open: Vec<u16>,
    parked: Vec<SizedPool>,
    /// Pools made so far, for their names.
    pools: u32,
}

impl Ports {
    /// Starts a device with a pool of its own, and returns its MTU, too.
    fn start(&mut self, attached: &Attached, options: &PortOptions) -> io::Result<(Device, SizedPool, u16)> {
        let device = ffi::describe(attached.id).map_err(|e| failed("reading the device", &e))?;
        refuse_zero_copy(&device.arguments())?;
        let pool = self.take_pool(options, attached.id)?;
        let mut setup = Setup {
            receive_descriptors: options.receive_descriptors,
            transmit_descriptors: options.transmit_descriptors,
            mtu: options.mtu.unwrap_or(0),
            promiscuous: u8::from(options.promiscuous),
        };
        // SAFETY: no Port has this device. On an error, the caller's lock keeps the parked pool from others until the
        // device is closed.
        match unsafe { ffi::start(attached.id, &pool.pool, &mut setup) } {
            Ok(()) => Ok((device, pool, setup.mtu)),
            Err(error) => {
                self.parked.push(pool);
                Err(failed(&format!("starting {}", device.name()), &error))
            }
        }
    }

    /// A pool for a port: one that is parked, or a new one.
    fn take_pool(&mut self, options: &PortOptions, port: u16) -> io::Result<SizedPool> {
        let (buffers, room) = (options.buffers, options.room_bytes());
        let fits =
            |parked: &SizedPool| parked.buffers == buffers && parked.room == room && parked.pool.available() == buffers;
        if let Some(found) = self.parked.iter().position(fits) {
            return Ok(self.parked.swap_remove(found));
        }
        self.pools += 1;
        let name = CString::new(format!("namewire-{}", self.pools))?;
        let pool = Pool::new(&name, buffers, CACHE_BUFFERS, room as u16, port).ok_or_else(|| {
            let text = format!("making buffers of {} MB", options.bytes() / 1_000_000);
            failed(&text, &io::ErrorKind::OutOfMemory.into())
        })?;
        Ok(SizedPool { pool, buffers, room })
    }

    /// Frees the pools of closed ports if no port is open.
    fn free_if_idle(&mut self) {
        if !self.open.is_empty() {
            return;
        }
        for parked in self.parked.drain(..) {
            // SAFETY: all ports are closed, so no device is started with a pool of ours, and no thread has a Port.
            unsafe { parked.pool.free() };
        }
    }
}
