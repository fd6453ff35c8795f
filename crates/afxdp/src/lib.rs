//! AF_XDP: frames from the driver of a network card into memory of this process and back, past the kernel's network
//! stack.
//!
//! | question | file |
//! | --- | --- |
//! | which frame memory belongs to whom at which time? | `queue`, `umem` |
//! | how do two sides exchange entries without a lock? | `ring` |
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
//! `CAP_NET_ADMIN` for the program. Without `CAP_IPC_LOCK`, the limit of locked memory must allow for the frames.
//!
//! The crate knows frames, not NDN packets: it depends on no other crate of the workspace.
#![cfg(target_os = "linux")]

mod mapping;
mod queue;
mod ring;
mod umem;
