//! AF_XDP: frames from the driver of a network card into memory of this process and back, past the kernel's network
//! stack.
//!
//! | question | file |
//! | --- | --- |
//! | which frames go to the router? | [`program`], `bpf/steer.c` |
//! | which part of the program does the kernel get, and by which calls? | `steer`, `bpf` |
//! | how does one queue of an interface receive and send? | [`socket`] |
//! | who owns a frame's memory now? | `queue`, `umem` |
//! | how do two sides exchange entries without a lock? | `ring` |
//! | how long are the frames of an interface? | `interface` |
//!
//! ```text
//!   card ──► steer.c ──► RX ring ──► XdpSocket::receive ──► fill ring ──► card
//!               │ all but NDN
//!               └──► network stack of the kernel
//!   XdpSocket::send ──► TX ring ──► card ──► completion ring ──► free frames
//! ```
//!
//! Source: Documentation/networking/af_xdp.rst of Linux, linux/if_xdp.h. The crate needs Linux 5.9 or later, and no
//! other software. On other systems it is empty. The process needs `CAP_NET_RAW` for a socket, and `CAP_BPF` and
//! `CAP_NET_ADMIN` for the program. Without `CAP_IPC_LOCK`, the limit of locked memory must be large enough for the
//! frames.
//!
//! The crate knows frames, not NDN packets: it depends on no other crate of the workspace.
#![cfg(target_os = "linux")]

mod bpf;
mod interface;
mod mapping;
pub mod program;
mod queue;
mod ring;
pub mod socket;
mod steer;
mod umem;

pub use program::{AttachMode, Program};
pub use socket::{Options, Statistics, XdpSocket};

use std::io;

/// The error of a step, with the name of the step in front of its text.
fn failed(step: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
