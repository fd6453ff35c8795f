//! DPDK ports: frames from the driver of a network card, or of a virtual device, into memory of this process and back.
//! The kernel sees none of them.
//!
//! | question | file |
//! | --- | --- |
//! | how does DPDK start and end? | `eal`, `arguments` |
//! | how does a device become a port? | `port`, [`PortOptions`] |
//! | how do frames come and go? | `burst` |
//! | why does the peer of a memif device not crash us when it leaves? | `gate` |
//! | what does DPDK offer only as macros and inline functions? | `shim.c`, `ffi` |
//!
//! ```text
//!   device ──► rx burst (≤ 64) ──► Port::receive ──► visit(&[u8]) ──► buffers back to the pool, in bulk
//!   Port::send ──► copy into a buffer ──► Port::flush ──► tx burst (≤ 64) ──► device
//! ```
//!
//! Without the feature `dpdk`, the crate needs no DPDK and no C compiler. The API is the same, [`Eal::init`] returns
//! [`Unsupported`](std::io::ErrorKind::Unsupported), and no [`Port`] can exist.
//!
//! Cost: one C call per burst, not per frame, and no system call unless the driver makes one. Every frame is copied
//! once by the sender, into its buffer. Memory: [`PortOptions::bytes`] per port, 78 MB with the default options.
//!
//! Source: DPDK 22.11, programmer's guide, "Environment Abstraction Layer", "Poll Mode Driver", "Mempool Library",
//! "Mbuf Library". The crate knows frames, not NDN packets: it depends on no other crate of the workspace.

#[cfg(not(feature = "dpdk"))]
mod absent;
#[cfg(any(feature = "dpdk", test))]
mod arguments;
#[cfg(feature = "dpdk")]
mod burst;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod ffi;
#[cfg(feature = "dpdk")]
mod gate;
#[cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "nothing opens a port"))]
mod options;
#[cfg(feature = "dpdk")]
mod port;
#[cfg(feature = "dpdk")]
mod sync;

#[cfg(not(feature = "dpdk"))]
pub use absent::{Eal, Port};
#[cfg(feature = "dpdk")]
pub use eal::Eal;
pub use options::{PortCounters, PortOptions};
#[cfg(feature = "dpdk")]
pub use port::Port;

/// Most frames of one call to [`Port::receive`], and most that wait for one [`Port::flush`].
pub const BURST_FRAMES_MAX: usize = 64;
