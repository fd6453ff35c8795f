//! memif: frames between two processes of one host through shared memory, without a system call per frame.
//!
//! | question | file |
//! | --- | --- |
//! | which messages do two ends exchange while they connect? | `message`, `control` |
//! | how does a server accept a client? | [`server`] |
//! | how does a client connect? | [`client`] |
//! | how does a connected end receive and send? | [`port`], `receiving`, `sending` |
//! | what lies where in the shared memory? | `ring`, `region` |
//! | which files and descriptors of a peer are safe to use? | `memfd`, `doorbell` |
//!
//! ```text
//!   client                                   one memory file, made by the client              server
//!   Port::send    ──► S2M ring: head (client writes) … descriptors … tail (server writes) ──► Port::receive
//!   Port::receive ◄── M2S ring: tail (server writes) … descriptors … head (client writes) ◄── Port::send
//!   control socket: hello, init, add_region, add_ring, connect, connected, disconnect; one doorbell (eventfd) per ring
//! ```
//!
//! The protocol is memif version 2.0. VPP, libmemif, gomemif and DPDK's net_memif speak it too. Older texts call the
//! server *master* and the client *slave*; the names of the rings (S2M, M2S) keep these letters.
//!
//! Source: "Memif Poll Mode Driver" in DPDK's guide of network drivers, with the layouts of
//! `drivers/net/memif/memif.h`; the documentation of libmemif in VPP. The protocol has no other specification.
//!
//! The peer is not trusted. It may write anything into the shared memory at any time and send any message. Whatever it
//! does, this process does not read or write other memory, stop, or keep a file of the peer open. See [`port`] for one
//! limit: a doorbell that blocks.
//!
//! The crate knows frames, not NDN packets: it depends on no other crate of the workspace. It needs Linux 5.8. On other
//! systems it is empty.
#![cfg(target_os = "linux")]

pub mod client;
mod control;
mod doorbell;
#[doc(hidden)]
pub mod fuzzing;
mod memfd;
mod message;
pub mod port;
mod receiving;
mod region;
mod ring;
mod sending;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::{ClientOptions, DEFAULT_BUFFER_BYTES, connect};
pub use port::Port;
pub use receiving::Frame;
pub use server::{Accept, Handshake, Listener, Progress};

use std::io;

/// Most bytes of one frame, in one buffer or in several.
pub const FRAME_BYTES_MAX: usize = 65_535;

/// Most slots of a ring, as a power of two. Indices of slots have 16 bits.
const RING_LOG2_MAX: u8 = 14;

/// Most regions of one connection, and most bytes of all of them.
const REGIONS_MAX: usize = 16;
const REGION_BYTES_MAX: u64 = 256 << 20;

/// How this software calls itself in messages.
const APPLICATION: &str = "namewire";

/// The peer broke a rule. The text names it, and is what the peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken(&'static str);

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, broken.0)
    }
}

/// The error of a step, with the name of the step in front of its text.
fn failed(step: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
