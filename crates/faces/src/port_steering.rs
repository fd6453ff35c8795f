//! Port steering: a datagram whose remote has no connected socket reaches a listener of the port, never the socket of a
//! face that is being created.
//!
//! Listeners and faces' sockets share a port, and the kernel chooses among them by a hash of the addresses. It may
//! choose a face's socket as soon as this is bound, but the face can use datagrams only once the socket is connected.
//! So the listeners attach a program to the port, in the machine language of classic BPF. It returns the number of the
//! socket to choose:
//!
//! ```text
//! hash = exclusive-or of the words of the source address · 2654435761
//! number = (hash + source port) · 2654435761 >> 16 mod listeners
//! ```
//!
//! The kernel numbers sockets in the order of binding, and listeners are bound first. When a socket closes, the last
//! one gets its number. So the listeners have the first numbers as long as they are open. Datagrams of one remote
//! always reach the same listener, whatever faces exist.
//!
//! Kernels without such programs (before Linux 4.5) choose by their own hash. Newer kernels can still choose the face's
//! socket if the driver connects it while the kernel searches. If a datagram reaches a face's socket too early, the
//! driver passes it to the listener.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM,
    BPF_MISC, BPF_MOD, BPF_MUL, BPF_RET, BPF_RSH, BPF_ST, BPF_TAX, BPF_W, BPF_X, BPF_XOR, SKF_NET_OFF, sock_filter,
};

use crate::sys;

/// Knuth's multiplier: a prime near 2³² divided by the golden ratio.
const MULTIPLIER: u32 = 2_654_435_761;

/// Bytes of an IPv6 header, after which the UDP header begins. Extension headers between them only make the choice
/// coarser.
const IPV6_HEADER_BYTES: u32 = 40;

/// Where the source address begins in an IPv4 and an IPv6 header.
const SOURCE_IPV4: u32 = 12;
const SOURCE_IPV6: u32 = 8;

/// Gives datagrams of remotes without a socket only to the first `listeners` sockets of this one's port.
pub(crate) fn steer_to_listeners(socket: &UdpSocket, listeners: usize) -> io::Result<()> {
    let is_ipv6 = matches!(socket.local_addr()?, SocketAddr::V6(_));
    sys::attach_port_program(socket.as_fd(), &program(is_ipv6, listeners as u32))
}

fn program(is_ipv6: bool, listeners: u32) -> Vec<sock_filter> {
    let step = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let of_ip_header = |at: u32| (SKF_NET_OFF as u32).wrapping_add(at);
    let load = |size: u32, at: u32| step(BPF_LD | size | BPF_ABS, of_ip_header(at));
    let to_x = step(BPF_MISC | BPF_TAX, 0);
    let multiply = step(BPF_ALU | BPF_MUL | BPF_K, MULTIPLIER);
    let mut program = Vec::new();
    if is_ipv6 {
        program.push(load(BPF_W, SOURCE_IPV6));
        for word in 1..4 {
            program.extend([to_x, load(BPF_W, SOURCE_IPV6 + 4 * word), step(BPF_ALU | BPF_XOR | BPF_X, 0)]);
        }
        program.extend([multiply, to_x, load(BPF_H, IPV6_HEADER_BYTES)]);
    } else {
        program.extend([load(BPF_W, SOURCE_IPV4), multiply, step(BPF_ST, 0)]);
        // The lower half of the first byte is the length of the header in words.
        program.extend([
            load(BPF_B, 0),
            step(BPF_ALU | BPF_AND | BPF_K, 0xf),
            step(BPF_ALU | BPF_LSH | BPF_K, 2),
            to_x,
        ]);
        program.push(step(BPF_LD | BPF_H | BPF_IND, of_ip_header(0)));
        program.push(step(BPF_LDX | BPF_MEM, 0));
    }
    program.extend([
        step(BPF_ALU | BPF_ADD | BPF_X, 0),
        multiply,
        step(BPF_ALU | BPF_RSH | BPF_K, 16),
        step(BPF_ALU | BPF_MOD | BPF_K, listeners.max(1)),
        step(BPF_RET | BPF_A, 0),
    ]);
    program
}
