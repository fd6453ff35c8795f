//! Frames in both directions: whole, in order, and without loss of frame memory, also if a queue is full or the link is
//! down.

use std::io::ErrorKind;

use namewire_afxdp::{AttachMode, Options, Program, XdpSocket};

use crate::network::{NDN, OURS, PATIENCE, PEERS, frame, ip, is_empty, next_frame, receive, run, wait_for};
use crate::{COPY, LENGTHS};

#[test]
fn ndn_frames_arrive_whole() {
    run(|network| {
        let (program, mut socket) = network.open(Options::default());
        assert_eq!((program.mode(), socket.is_zero_copy()), (AttachMode::Native, false), "a veth copies");
        let peer = network.packet_socket_at_peer(NDN);
        for (seed, bytes) in LENGTHS.into_iter().enumerate() {
            let sent = frame(NDN, bytes, seed);
            peer.send(&sent).expect("sent");
            assert_eq!(receive(&mut socket, 1), [sent], "{bytes} bytes");
        }
        assert_eq!(socket.refused_descriptors(), 0);
    });
}

#[test]
fn sent_frames_arrive_whole() {
    run(|network| {
        let (_program, mut socket) = network.open(COPY);
        let peer = network.packet_socket_at_peer(NDN);
        for (seed, bytes) in LENGTHS.into_iter().enumerate() {
            let sent = frame(NDN, bytes, seed);
            let (header, rest) = sent.split_at(14);
            let (middle, end) = rest.split_at(rest.len() / 3);
            assert!(socket.send(&[header, middle, &[], end]));
            socket.flush().expect("sent");
            assert_eq!(next_frame(&peer), sent, "{bytes} bytes");
        }
        let longest = socket.frame_bytes_max();
        assert!(!socket.send(&[&vec![0; longest + 1]]), "longer than a frame");
    });
}

/// Closing the socket gives its frames to the kernel, and its queue to the next socket.
#[test]
fn a_queue_has_one_socket_at_a_time() {
    run(|network| {
        let (mut program, socket) = network.open(COPY);
        let error = XdpSocket::open(network.interface, 0, COPY).expect_err("the queue is taken");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
        drop(socket);
        let (peer, kernel) = (network.packet_socket_at_peer(NDN), network.packet_socket(NDN));
        let sent = frame(NDN, 100, 1);
        // Children that other tests start may have a copy of the socket for a moment, so the first may be lost.
        wait_for("the kernel's frames", || peer.send(&sent).is_ok() && !is_empty(&kernel));

        let mut socket = XdpSocket::open(network.interface, 0, COPY).expect("the queue is free again");
        program.insert(0, &socket).expect("a place");
        peer.send(&sent).expect("sent");
        assert_eq!(receive(&mut socket, 1), [sent]);
    });
}

/// Small rings, so that every frame and slot is used again some thousand times.
#[test]
fn a_hundred_thousand_frames_each_way_lose_no_memory() {
    const FRAMES: usize = 100_000;
    const BATCH: usize = 50;
    run(|network| {
        let (_program, mut socket) = network.open(Options { frames: 128, ..COPY });
        let peer = network.packet_socket_at_peer(NDN);
        for first in (0..FRAMES).step_by(BATCH) {
            let sent: Vec<_> = (first..first + BATCH).map(|i| frame(NDN, 60 + i % 1_000, i)).collect();
            for frame in &sent {
                peer.send(frame).expect("sent");
            }
            assert_eq!(receive(&mut socket, BATCH), sent);
            for frame in &sent {
                assert!(socket.send(&[frame]), "64 frames to send, of which at most 50 are in use");
            }
            for frame in &sent {
                socket.flush().expect("sent");
                assert_eq!(next_frame(&peer), *frame);
            }
            wait_for("the memory of sent frames", || socket.flush().is_ok() && socket.unsent() == 0);
        }
        assert_eq!(socket.refused_descriptors(), 0);
        let statistics = socket.statistics().expect("statistics");
        assert_eq!((statistics.rx_invalid_descs, statistics.tx_invalid_descs), (0, 0), "{statistics:?}");
    });
}

/// The memory of frames that cannot leave comes back, too.
#[test]
fn without_a_carrier_frames_are_dropped() {
    run(|network| {
        let (_program, mut socket) = network.open(COPY);
        let peer = network.packet_socket_at_peer(NDN);
        network.at_peer(|| ip(&format!("link set {PEERS} down")));
        assert!((0..10).all(|seed| socket.send(&[&frame(NDN, 100, seed)])));
        // The kernel drops one frame in each call, and says nothing of the others.
        socket.flush().expect("drops are no error");
        assert_eq!((socket.dropped(), socket.has_waiting()), (10, false));
        wait_for("the memory of dropped frames", || socket.flush().is_ok() && socket.unsent() == 0);
        network.at_peer(|| ip(&format!("link set {PEERS} up")));
        drop(peer); // It has the error of the interface that went down.
        let peer = network.packet_socket_at_peer(NDN);
        assert!(socket.send(&[&frame(NDN, 100, 10)]));
        wait_for("the memory of the sent frame", || socket.flush().is_ok() && socket.unsent() == 0);
        assert_eq!(next_frame(&peer), frame(NDN, 100, 10));
    });
}

/// More frames than memory: the kernel drops and counts the rest, and all memory is there afterwards.
#[test]
fn a_full_socket_recovers() {
    run(|network| {
        let (_program, mut socket) = network.open(Options { frames: 128, ..COPY });
        let peer = network.packet_socket_at_peer(NDN);
        for round in 0..3 {
            for seed in 0..200 {
                peer.send(&frame(NDN, 100, seed)).expect("sent");
            }
            let dropped = |socket: &XdpSocket| {
                let statistics = socket.statistics().expect("statistics");
                statistics.rx_dropped + statistics.rx_ring_full + statistics.fill_ring_empty
            };
            wait_for("the drops of the kernel", || dropped(&socket) >= 136 * (round + 1));
            let frames = receive(&mut socket, 64);
            let expected: Vec<_> = (0..64).map(|seed| frame(NDN, 100, seed)).collect();
            assert_eq!(frames, expected, "round {round}");
        }
    });
}

#[test]
fn an_interface_may_go_down_and_up_again() {
    run(|network| {
        let (_program, mut socket) = network.open(Options { frames: 128, ..COPY });
        let peer = network.packet_socket_at_peer(NDN);
        ip(&format!("link set {OURS} down"));
        let sent: Vec<_> = (0..64).map(|seed| frame(NDN, 100, seed)).collect();
        assert!(sent.iter().all(|frame| socket.send(&[frame])));
        assert!(!socket.send(&[&sent[0]]), "all frames are in use");
        assert_eq!(socket.flush().expect_err("the interface is down").kind(), ErrorKind::NetworkDown);
        assert_eq!(socket.unsent(), 64);

        ip(&format!("link set {OURS} up"));
        wait_for("the queued frames", || socket.flush().is_ok() && socket.unsent() == 0);
        assert_eq!(sent.iter().map(|_| next_frame(&peer)).collect::<Vec<_>>(), sent);
        assert!(network.has_program());
        peer.send(&sent[5]).expect("sent");
        assert_eq!(receive(&mut socket, 1), sent[5..6]);
        ip(&format!("link set {OURS} down"));
        let error = XdpSocket::open(network.interface, 0, COPY).expect_err("down");
        assert!([ErrorKind::NetworkDown, ErrorKind::ResourceBusy].contains(&error.kind()), "{error}");
    });
}

#[test]
fn an_mtu_too_large_is_refused() {
    run(|network| {
        ip(&format!("link set {OURS} mtu 3827"));
        let error = XdpSocket::open(network.interface, 0, COPY).expect_err("longer than a frame");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "the interface's MTU is 3827 bytes; AF_XDP allows 3826");
    });
}

#[test]
fn what_cannot_be_opened_is_refused() {
    run(|network| {
        let kind = |interface, queue, options| XdpSocket::open(interface, queue, options).expect_err("refused").kind();
        for options in [
            Options { frames: 1_000, ..COPY },
            Options { frames: 8, ..COPY },
            Options { frames: 0, ..COPY },
            Options { frames: 1 << 31, ..COPY },
            Options { frame_bytes: 1_024, ..COPY },
            Options { frame_bytes: 8_192, ..COPY },
        ] {
            assert_eq!(kind(network.interface, 0, options), ErrorKind::InvalidInput, "{options:?}");
        }
        assert_eq!(kind(network.interface, 1_000, COPY), ErrorKind::InvalidInput, "no such queue");
        assert!(XdpSocket::open(9_999, 0, COPY).is_err(), "no such interface");
        let error = Program::attach(9_999).expect_err("no such interface").to_string();
        assert!(error.contains("No such device"), "{error}");
        let (mut program, socket) = network.open(COPY);
        assert_eq!(program.insert(1_024, &socket).expect_err("beyond the map").kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn epoll_says_when_frames_wait() {
    run(|network| {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let (_program, mut socket) = network.open(COPY);
        let peer = network.packet_socket_at_peer(NDN);
        let ready = |socket: &XdpSocket, seconds| {
            let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
            poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).expect("polled") == 1
        };
        assert!(!ready(&socket, 0));
        peer.send(&frame(NDN, 100, 1)).expect("sent");
        assert!(ready(&socket, PATIENCE.as_secs() as i64));
        receive(&mut socket, 1);
        assert!(!ready(&socket, 0));
    });
}
