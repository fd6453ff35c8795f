//! Which frames go to the socket and which to the kernel, while the program is attached and afterwards.

use std::io::{ErrorKind, Read};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use namewire_afxdp::{AttachMode, Program, XdpSocket};

use crate::calls::packet_socket;
use crate::network::{NDN, OURS, PATIENCE, PEERS, frame, ip, is_empty, next_frame, receive, run, wait_for};
use crate::{COPY, LENGTHS};

/// An EtherType for experiments (IEEE 802).
const OTHER: u16 = 0x88B5;
/// The EtherType of a VLAN tag (IEEE 802.1Q).
const VLAN: u16 = 0x8100;

/// What a test waits for after the end of a program. A child that another test starts has copies of all descriptors
/// until it runs its own program, so the kernel may detach a moment later.
const DETACHED: &str = "the interface without a program";

#[test]
fn other_frames_reach_the_kernel() {
    run(|network| {
        let (_program, mut socket) = network.open(COPY);
        let (peer, ndn_peer) = (network.packet_socket_at_peer(OTHER), network.packet_socket_at_peer(NDN));
        let (kernel, kernel_ndn) = (network.packet_socket(OTHER), network.packet_socket(NDN));
        let sent = frame(OTHER, 100, 1);
        peer.send(&sent).expect("sent");
        assert_eq!(next_frame(&kernel), sent);

        // An NDN frame of a VLAN, whose tag the kernel removes before a packet socket sees the frame.
        let tagged = tagged(7, NDN, 2);
        peer.send(&tagged).expect("sent");
        assert_eq!(next_frame(&kernel_ndn), [&tagged[..12], &tagged[16..]].concat());

        // IPv4, with the ARP that it needs, both ways.
        let ours = UdpSocket::bind("10.81.0.1:7000").expect("our address");
        let theirs = network.at_peer(|| UdpSocket::bind("10.81.0.2:7000")).expect("the peer's address");
        for (from, to) in [(&theirs, &ours), (&ours, &theirs)] {
            to.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            from.send_to(b"datagram", to.local_addr().expect("bound")).expect("sent");
            let mut bytes = [0; 100];
            assert_eq!(to.recv(&mut bytes).expect("a datagram"), 8);
        }

        // Nothing of this came to the XDP socket; NDN frames still do, and the kernel does not see those.
        let sent = frame(NDN, 100, 3);
        ndn_peer.send(&sent).expect("sent");
        assert_eq!(receive(&mut socket, 1), [sent]);
        assert!(is_empty(&kernel_ndn) && is_empty(&kernel));
    });
}

/// The tag of IEEE 802.1Q: its own EtherType, 3 bits of priority, 1 of eligibility to be dropped, 12 of VLAN id.
fn tagged(tci: u16, ether_type: u16, seed: usize) -> Vec<u8> {
    let mut tagged = frame(VLAN, 100, seed);
    tagged[14..16].copy_from_slice(&tci.to_be_bytes());
    tagged[16..18].copy_from_slice(&ether_type.to_be_bytes());
    tagged
}

/// A tag of VLAN 0 is no VLAN's, only a priority. Packet sockets receive such frames.
#[test]
fn a_priority_tag_makes_no_difference() {
    for (mtu, mode) in [(1_500, AttachMode::Native), (3_826, AttachMode::Generic)] {
        run(|network| {
            network.at_peer(|| ip(&format!("link set {PEERS} mtu {mtu}")));
            ip(&format!("link set {OURS} mtu {mtu}"));
            let (program, mut socket) = network.open(COPY);
            assert_eq!(program.mode(), mode);
            let (peer, kernel) = (network.packet_socket_at_peer(NDN), network.packet_socket(NDN));
            for tci in [0x0000, 0x2000, 0xE000, 0x1000, 0xF000] {
                let sent = tagged(tci, NDN, usize::from(tci));
                peer.send(&sent).expect("sent");
                assert_eq!(receive(&mut socket, 1), [sent], "{tci:#06x}, {mode}");
            }
            for tci in [0x0001, 0x0010, 0x0100, 0x0800, 0x0FFF, 0xE007] {
                let sent = tagged(tci, NDN, usize::from(tci));
                peer.send(&sent).expect("sent");
                assert_eq!(next_frame(&kernel), [&sent[..12], &sent[16..]].concat(), "{tci:#06x}, {mode}");
            }
            // Nothing behind the tag, half an EtherType, a second tag, another EtherType.
            let whole = tagged(0, NDN, 1);
            let twice = [&whole[..12], &[0x81, 0, 0, 0], &whole[12..]].concat();
            for sent in [&whole[..16], &whole[..17], &twice, &tagged(0, OTHER, 1)] {
                peer.send(sent).expect("sent");
            }
            // All of it, and no more.
            for sent in [&whole[..18], &whole] {
                peer.send(sent).expect("sent");
                assert_eq!(receive(&mut socket, 1), [sent], "{mode}");
            }
        });
    }
}

#[test]
fn a_queue_without_a_socket_is_the_kernels() {
    run(|network| {
        let _program = Program::attach(network.interface).expect("attached");
        let (peer, kernel) = (network.packet_socket_at_peer(NDN), network.packet_socket(NDN));
        let sent = frame(NDN, 100, 1);
        peer.send(&sent).expect("sent");
        assert_eq!(next_frame(&kernel), sent);
    });
}

#[test]
fn every_queue_may_have_a_socket() {
    run(|network| {
        let (interface, peers) = network.cable_of_two_queues();
        let mut program = Program::attach(interface).expect("attached");
        let mut sockets = [0, 1].map(|queue| {
            let socket = XdpSocket::open(interface, queue, COPY).expect("a socket");
            program.insert(queue, &socket).expect("a place");
            socket
        });
        let peer = network.at_peer(|| packet_socket(peers, NDN)).expect("root may open packet sockets");
        let kernel = packet_socket(interface, NDN).expect("root may open packet sockets");
        for (seed, socket) in sockets.iter_mut().enumerate() {
            let sent = frame(NDN, 100, seed);
            assert!(socket.send(&[&sent]));
            socket.flush().expect("sent");
            assert_eq!(next_frame(&peer), sent);
        }
        // The system chooses the queue by which a frame comes.
        for seed in 0..100 {
            peer.send(&frame(NDN, 100, seed)).expect("sent");
        }
        let mut came = 0;
        wait_for("a hundred frames", || {
            came += sockets
                .iter_mut()
                .map(|socket| socket.receive(100, |frame| assert_eq!(frame.len(), 100)))
                .sum::<usize>();
            came == 100
        });
        assert!(is_empty(&kernel));
    });
}

#[test]
fn dropping_the_program_detaches_it() {
    run(|network| {
        let (program, mut socket) = network.open(COPY);
        assert!(network.has_program());
        assert_eq!(Program::attach(network.interface).expect_err("there is one").kind(), ErrorKind::ResourceBusy);
        drop(program);
        wait_for(DETACHED, || !network.has_program());
        let (peer, kernel) = (network.packet_socket_at_peer(NDN), network.packet_socket(NDN));
        let sent = frame(NDN, 100, 1);
        peer.send(&sent).expect("sent");
        assert_eq!(next_frame(&kernel), sent);
        assert_eq!(socket.receive(1, |_| ()), 0);
    });
}

/// A killed process runs no destructor, but leaves no program behind.
#[test]
fn the_end_of_the_process_detaches_the_program() {
    run(|network| {
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "steering::a_process_that_attaches", "--ignored"])
            .env(CHILDS_INTERFACE, network.interface.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut child = child.expect("a child");
        wait_for("the child's program", || network.has_program());
        child.kill().expect("killed");
        child.wait().expect("gone");
        wait_for(DETACHED, || !network.has_program());
        Program::attach(network.interface).expect("the place is free");
    });
}

const CHILDS_INTERFACE: &str = "NAMEWIRE_TEST_INTERFACE";

#[test]
#[ignore = "the child of the test above"]
fn a_process_that_attaches() {
    let Ok(interface) = std::env::var(CHILDS_INTERFACE) else { return };
    let _program = Program::attach(interface.parse().expect("a number")).expect("attached");
    // Until the parent kills this process or ends.
    let _ = std::io::stdin().read(&mut [0]);
}

/// The driver cannot have these lengths with XDP, but the kernel can: generic mode.
#[test]
fn generic_mode_takes_over() {
    run(|network| {
        network.at_peer(|| ip(&format!("link set {PEERS} mtu 3826")));
        ip(&format!("link set {OURS} mtu 3826"));
        let (program, mut socket) = network.open(COPY);
        assert_eq!(program.mode(), AttachMode::Generic);
        let (peer, other) = (network.packet_socket_at_peer(NDN), network.packet_socket_at_peer(OTHER));
        let kernel = network.packet_socket(OTHER);
        for (seed, bytes) in LENGTHS.into_iter().chain([socket.frame_bytes_max()]).enumerate() {
            let sent = frame(NDN, bytes, seed);
            peer.send(&sent).expect("sent");
            assert_eq!(receive(&mut socket, 1), std::slice::from_ref(&sent), "{bytes} bytes");
            assert!(socket.send(&[&sent]));
            socket.flush().expect("sent");
            assert_eq!(next_frame(&peer), sent, "{bytes} bytes");
        }
        other.send(&frame(OTHER, 100, 1)).expect("sent");
        assert_eq!(next_frame(&kernel), frame(OTHER, 100, 1));
        drop(program);
        wait_for(DETACHED, || !network.has_program());
    });
}
