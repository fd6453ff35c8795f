//! Two network namespaces joined by a cable (a veth pair): ours, with the interface under test, and the peer's.
//!
//! Both belong to one thread of the test and to nothing else: they have no names, and the kernel removes them with the
//! thread and its descriptors, also if the test panics.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use namewire_afxdp::{Options, Program, XdpSocket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use socket2::Socket;

use crate::calls;

/// Our end of the cable.
pub(crate) const OURS: &str = "nw0";
/// The peer's end.
pub(crate) const PEERS: &str = "nw1";
/// The ends of the cable of two queues, if a test has one.
pub(crate) const WIDE: &str = "nw2";
const PEERS_WIDE: &str = "nw3";
/// The EtherType of NDN.
pub(crate) const NDN: u16 = 0x8624;

/// How long a test waits for something that should come. Only a failure takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The namespaces; the thread is in ours.
pub(crate) struct Network {
    ours: File,
    peers: File,
    /// Number of our interface.
    pub(crate) interface: u32,
    /// Number of the peer's interface.
    pub(crate) peers_interface: u32,
}

/// Runs a test in a thread and namespaces of its own. Says why and passes if the system does not let us make them.
pub(crate) fn run(test: impl FnOnce(&Network) + Send) {
    let outcome = std::thread::scope(|scope| {
        let thread = scope.spawn(|| match Network::new() {
            Ok(network) => test(&network),
            Err(why) => println!("skipped, because network namespaces or XDP do not work here: {why}"),
        });
        thread.join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

impl Network {
    fn new() -> std::io::Result<Self> {
        let mut namespaces = vec![];
        for _ in 0..2 {
            calls::enter_new_network()?;
            namespaces.push(File::open("/proc/thread-self/ns/net")?);
        }
        let (peers, ours) = (namespaces.remove(0), namespaces.remove(0));
        Command::new("ip").arg("-V").output()?;
        // The loopback interface of the new namespace has number 1. Where the system forbids programs, nothing works.
        drop(Program::attach(1)?);
        let mut network = Network { ours, peers, interface: 0, peers_interface: 0 };
        network.lay_cable(OURS, PEERS, 1);
        network.interface = network.configure(OURS, "10.81.0.1/24");
        network.peers_interface = network.at_peer(|| network.configure(PEERS, "10.81.0.2/24"));
        Ok(network)
    }

    /// A second cable, both ends of which have two queues. Returns the numbers of our interface and of the peer's.
    pub(crate) fn cable_of_two_queues(&self) -> (u32, u32) {
        self.lay_cable(WIDE, PEERS_WIDE, 2);
        let ours = self.configure(WIDE, "10.81.1.1/24");
        (ours, self.at_peer(|| self.configure(PEERS_WIDE, "10.81.1.2/24")))
    }

    fn lay_cable(&self, ours: &str, peers: &str, queues: u32) {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.peers.as_raw_fd());
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!("link add name {ours} {queues} type veth peer name {peers} netns {path} {queues}"));
    }

    /// Sets up an interface and returns its number.
    fn configure(&self, name: &str, address: &str) -> u32 {
        // No host of these namespaces speaks IPv6 on its own, which would disturb counts.
        ip(&format!("link set {name} addrgenmode none"));
        ip(&format!("address add {address} dev {name}"));
        ip(&format!("link set {name} up"));
        ip(&format!("link show {name}")).split(':').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Runs something in the peer's namespace. Sockets made there stay there.
    pub(crate) fn at_peer<R>(&self, action: impl FnOnce() -> R) -> R {
        enter(&self.peers);
        let result = action();
        enter(&self.ours);
        result
    }

    /// A packet socket for this EtherType at the peer.
    pub(crate) fn packet_socket_at_peer(&self, ether_type: u16) -> Socket {
        self.at_peer(|| calls::packet_socket(self.peers_interface, ether_type)).expect("root may open packet sockets")
    }

    /// A packet socket for this EtherType on our side: what the kernel's network stack sees.
    pub(crate) fn packet_socket(&self, ether_type: u16) -> Socket {
        calls::packet_socket(self.interface, ether_type).expect("root may open packet sockets")
    }

    /// The program and a socket for our only queue.
    pub(crate) fn open(&self, options: Options) -> (Program, XdpSocket) {
        let socket = XdpSocket::open(self.interface, 0, options).expect("a socket");
        let mut program = Program::attach(self.interface).expect("an interface without a program");
        program.insert(0, &socket).expect("a place for queue 0");
        (program, socket)
    }

    /// True if the system says that our interface has an XDP program.
    pub(crate) fn has_program(&self) -> bool {
        ip(&format!("link show {OURS}")).contains("xdp")
    }
}

fn enter(namespace: &File) {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("our own namespace");
}

/// Runs `ip` in the namespace of the thread, and returns what it prints.
pub(crate) fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip is there");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A frame of `bytes` bytes with this EtherType. `seed` makes its content.
pub(crate) fn frame(ether_type: u16, bytes: usize, seed: usize) -> Vec<u8> {
    let mut frame = vec![0xFF; 6]; // To all stations, so that no filter of addresses counts.
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(ether_type.to_be_bytes());
    frame.extend((0..bytes - frame.len()).map(|i| (i + seed + (seed >> 8)) as u8));
    frame
}

/// Waits until the test is true.
pub(crate) fn wait_for(what: &str, mut test: impl FnMut() -> bool) {
    let start = Instant::now();
    while !test() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// The next frame of a packet socket.
pub(crate) fn next_frame(socket: &Socket) -> Vec<u8> {
    let mut bytes = vec![0; 16_384];
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let length = rustix::net::recv(socket, &mut bytes[..], rustix::net::RecvFlags::empty()).expect("a frame").0;
    bytes.truncate(length);
    bytes
}

/// True if a packet socket has nothing to read.
pub(crate) fn is_empty(socket: &Socket) -> bool {
    rustix::net::recv(socket, &mut [0u8; 1][..], rustix::net::RecvFlags::DONTWAIT) == Err(rustix::io::Errno::AGAIN)
}

/// Receives exactly `count` frames.
pub(crate) fn receive(socket: &mut XdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut frames = vec![];
    wait_for("frames of the XDP socket", || {
        socket.receive(count - frames.len(), |frame| frames.push(frame.to_vec()));
        frames.len() == count
    });
    frames
}
