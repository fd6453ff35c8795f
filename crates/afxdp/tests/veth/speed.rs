//! Question: how much less does a frame cost with AF_XDP than with a packet socket?
//!
//! Workload: frames of 100 bytes over a veth pair, 64 at a time, one thread at both ends. A veth has no hardware, so
//! the numbers show the cost of the kernel and of our rings, in copy mode; they are no measure of cards with zero copy.
//! The peer of the sender has no socket. The sender to a receiver is the same in both cases, and its system call also
//! does the work of the receiving interface, so the time of both ends counts. Times are CPU times of the thread: other
//! programs on the machine disturb them less. They do not include the work of the kernel's own threads.
//!
//! `cargo test --release -p namewire-afxdp --test veth -- --ignored --nocapture frames_per_second`; needs root. The
//! tests run it with few frames.

use std::time::{Duration, Instant};

use namewire_afxdp::{AttachMode, Options};
use rustix::time::{ClockId, clock_gettime};
use socket2::Socket;

use crate::calls::{BATCH, receive_many, send_many};
use crate::network::{NDN, Network, PATIENCE, frame, run};

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time for the frames of one measurement, at one end and at both.
struct Cost {
    frames: usize,
    own: Duration,
    both: Duration,
}

impl Cost {
    fn print(&self, what: &str) {
        let per_frame = |time: Duration| time.as_nanos() as f64 / self.frames as f64;
        let rate = self.frames as f64 / self.both.as_secs_f64();
        println!(
            "{what:34} {:8.1} ns at our end, {:8.1} ns at both ends, {rate:9.0} frames per second of CPU",
            per_frame(self.own),
            per_frame(self.both)
        );
    }
}

/// Sends `frames` frames, a batch at a time by `send`, which returns how many it sent.
fn sending(frames: usize, mut send: impl FnMut() -> usize) -> Cost {
    let (start, since) = (cpu_time(), Instant::now());
    let mut sent = 0;
    while sent < frames {
        sent += send();
        assert!(since.elapsed() < 10 * PATIENCE, "stuck after {sent} frames");
    }
    let own = cpu_time() - start;
    Cost { frames: sent, own, both: own }
}

/// Receives `frames` frames, each batch sent by a packet socket at the peer and received by `receive`.
fn receiving(frames: usize, peer: &Socket, mut receive: impl FnMut() -> usize) -> Cost {
    let bytes = frame(NDN, 100, 0);
    let (start, mut own, mut received) = (cpu_time(), Duration::ZERO, 0);
    while received < frames {
        let sent = send_many(peer, &bytes, BATCH).expect("sent");
        let (before, since, mut came) = (cpu_time(), Instant::now(), 0);
        while came < sent {
            came += receive();
            assert!(since.elapsed() < PATIENCE, "frames are missing: {came} of {sent}");
        }
        own += cpu_time() - before;
        received += came;
    }
    Cost { frames: received, own, both: cpu_time() - start }
}

fn compare(network: &Network, frames: usize) {
    let bytes = frame(NDN, 100, 0);
    let (header, content) = bytes.split_at(14);

    let packet_socket = network.packet_socket(NDN);
    sending(frames, || send_many(&packet_socket, &bytes, BATCH).unwrap_or(0)).print("packet socket, sendmmsg");
    let peer = network.packet_socket_at_peer(NDN);
    receiving(frames, &peer, || receive_many(&packet_socket).unwrap_or(0)).print("packet socket, recvmmsg");
    drop((peer, packet_socket));

    let (program, mut socket) = network.open(Options { zero_copy: false, ..Options::default() });
    assert_eq!(program.mode(), AttachMode::Native);
    let cost = sending(frames, || {
        let queued = (0..BATCH).take_while(|_| socket.send(&[header, content])).count();
        socket.flush().expect("sent");
        queued
    });
    cost.print("XdpSocket, send and flush");
    let peer = network.packet_socket_at_peer(NDN);
    let mut checked = 0usize;
    let cost = receiving(frames, &peer, || socket.receive(BATCH, |frame| checked += usize::from(frame == bytes)));
    cost.print("XdpSocket, receive");
    assert_eq!(checked, cost.frames, "whole frames");
}

#[test]
fn the_comparison_works() {
    run(|network| compare(network, 2_000));
}

#[test]
#[ignore = "a measurement"]
fn frames_per_second() {
    run(|network| {
        for round in 1..=3 {
            println!("round {round}");
            compare(network, 1_000_000);
        }
    });
}
