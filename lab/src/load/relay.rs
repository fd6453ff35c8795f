//! The bare relay: a process that only copies packets between two sockets.
//!
//! Question answered: what do kernel sockets alone cost for this traffic? The relay parses no packet. Unix: large reads
//! and writes of bytes. UDP: `recvmmsg` and `sendmmsg`, no segmentation offload. Ethernet: AF_XDP between two
//! interfaces. Shared memory: memif between two processes. It gives the lower bound for a router's cost.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use anyhow::Context as _;
use namewire_load::FramePort;
use namewire_load::datagram_batch::{self, ReceiveBatch};
use namewire_memif::{Accept, Listener};
use namewire_packet::nfd::MacAddress;
use rustix::event::{PollFd, PollFlags, poll};

use super::connection::HELLO;

/// Bytes copied by one read and write.
const COPY_BYTES: usize = 256 * 1024;
/// Requested from the kernel for each UDP direction; it may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Where the relay listens; also the options of `namewire-lab relay`.
#[derive(Clone, Debug, clap::Args)]
pub struct RelayPlan {
    /// Unix socket to listen on: the first connection is one side, the second the other
    #[arg(long, conflicts_with_all = ["udp", "interfaces"])]
    pub socket: Option<PathBuf>,
    /// Relay UDP between two ports of its own, instead
    #[arg(long, conflicts_with = "interfaces", required_unless_present_any = ["socket", "interfaces", "memif"])]
    pub udp: bool,
    /// Address of the two ports
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Relay Ethernet frames between two interfaces, instead
    #[arg(long, value_delimiter = ',', requires = "stations")]
    pub interfaces: Vec<String>,
    /// Relay frames between a client of memif at each of two sockets, instead
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["interfaces", "socket", "udp"])]
    pub memif: Vec<PathBuf>,
    /// Ethernet addresses at the other ends of the two interfaces
    #[arg(long, value_delimiter = ',')]
    pub stations: Vec<MacAddress>,
}

/// Copies until a side closes (Unix) or the process is ended (UDP). When it is ready it prints one line: `ready`, or
/// `ready ADDRESS ADDRESS` for UDP.
///
/// # Errors
/// If a socket breaks.
pub fn run(plan: &RelayPlan) -> anyhow::Result<()> {
    if let ([first, second], [first_peer, second_peer]) = (&plan.interfaces[..], &plan.stations[..]) {
        let ports = [FramePort::open(first, *first_peer)?, FramePort::open(second, *second_peer)?];
        println!("ready");
        return relay_frames(ports);
    }
    if let [first, second] = &plan.memif[..] {
        let listeners = [first, second].map(|path| Listener::bind(path, 0o600, Accept::default()));
        let [first, second] = listeners;
        let (first, second) = (first?, second?);
        println!("ready");
        // As the load connects: the producer first.
        let second = FramePort::accept(&second)?;
        return relay_frames([FramePort::accept(&first)?, second]);
    }
    match &plan.socket {
        Some(path) => {
            let listener = UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))?;
            println!("ready");
            let (first, second) = (listener.accept()?.0, listener.accept()?.0);
            relay_streams(first, second)
        }
        None => {
            let sides = [UdpSocket::bind((plan.bind, 0))?, UdpSocket::bind((plan.bind, 0))?];
            println!("ready {} {}", sides[0].local_addr()?, sides[1].local_addr()?);
            relay_datagrams(sides)
        }
    }
}

/// Bytes read from one side that the other did not take yet.
struct Pipe {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Pipe {
    fn new() -> Self {
        Self { buffer: vec![0; COPY_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns false when `from` is closed.
    fn copy(&mut self, mut from: &UnixStream, mut to: &UnixStream) -> io::Result<bool> {
        if self.is_empty() {
            match from.read(&mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(bytes) => (self.start, self.end) = (0, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        match to.write(&self.buffer[self.start..self.end]) {
            Ok(bytes) => self.start += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

fn relay_streams(first: UnixStream, second: UnixStream) -> anyhow::Result<()> {
    first.set_nonblocking(true)?;
    second.set_nonblocking(true)?;
    let (mut forth, mut back) = (Pipe::new(), Pipe::new());
    loop {
        // A side is read while its pipe is empty and written while the other's is not.
        let interest_in = |reads: &Pipe, writes: &Pipe| {
            let read = if reads.is_empty() { PollFlags::IN } else { PollFlags::empty() };
            let write = if writes.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            read | write
        };
        let mut descriptors = [
            PollFd::from_borrowed_fd(first.as_fd(), interest_in(&forth, &back)),
            PollFd::from_borrowed_fd(second.as_fd(), interest_in(&back, &forth)),
        ];
        poll(&mut descriptors, None)?;
        let [first_ready, second_ready] = [descriptors[0].revents(), descriptors[1].revents()];
        let forth_moves =
            if forth.is_empty() { !first_ready.is_empty() } else { second_ready.contains(PollFlags::OUT) };
        let back_moves = if back.is_empty() { !second_ready.is_empty() } else { first_ready.contains(PollFlags::OUT) };
        let is_open = (!forth_moves || forth.copy(&first, &second)?) && (!back_moves || back.copy(&second, &first)?);
        if !is_open {
            return Ok(());
        }
    }
}

fn relay_datagrams(sides: [UdpSocket; 2]) -> anyhow::Result<()> {
    for side in &sides {
        let peer = wait_for_peer(side)?;
        side.connect(peer)?;
        side.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(side, SOCKET_BUFFER_BYTES)?;
        rustix::net::sockopt::set_socket_send_buffer_size(side, SOCKET_BUFFER_BYTES)?;
    }
    let mut batch = ReceiveBatch::default();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    loop {
        let mut descriptors = sides.each_ref().map(|side| PollFd::from_borrowed_fd(side.as_fd(), PollFlags::IN));
        poll(&mut descriptors, None)?;
        let ready = descriptors.map(|descriptor| !descriptor.revents().is_empty());
        for (from, to) in [(0, 1), (1, 0)] {
            if !ready[from] || batch.receive(sides[from].as_fd()).unwrap_or(0) == 0 {
                continue;
            }
            bytes.clear();
            ends.clear();
            for datagram in batch.datagrams() {
                bytes.extend_from_slice(datagram);
                ends.push(bytes.len());
            }
            send_all(&sides[to], &bytes, &ends)?;
        }
    }
}

/// Frames that find no room are lost, as on any full link.
fn relay_frames(mut ports: [FramePort; 2]) -> anyhow::Result<()> {
    loop {
        let descriptors = ports.each_ref().map(FramePort::descriptor);
        if let [Some(first), Some(second)] = descriptors {
            let mut descriptors = [first, second].map(|port| PollFd::from_borrowed_fd(port, PollFlags::IN));
            poll(&mut descriptors, None)?;
        }
        let [first, second] = &mut ports;
        copy(first, second)?;
        copy(second, first)?;
        first.flush()?;
        second.flush()?;
    }
}

fn copy(from: &mut FramePort, to: &mut FramePort) -> io::Result<()> {
    let mut sent = Ok(());
    from.receive(|packet| {
        if let Err(error) = to.send(packet) {
            sent = Err(error);
        }
    })?;
    sent
}

/// Sends as much as the socket takes; the rest is lost, as on any full link.
fn send_all(socket: &UdpSocket, bytes: &[u8], ends: &[usize]) -> anyhow::Result<()> {
    let mut sent = 0;
    while sent < ends.len() {
        let start = if sent == 0 { 0 } else { ends[sent - 1] };
        match datagram_batch::send(socket.as_fd(), bytes, start, &ends[sent..]) {
            Ok(0) => return Ok(()),
            Ok(count) => sent += count,
            // The load has ended; so will this process.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_for_peer(side: &UdpSocket) -> anyhow::Result<SocketAddr> {
    let mut bytes = [0; HELLO.len()];
    loop {
        let (_, peer) = side.recv_from(&mut bytes)?;
        if bytes == HELLO {
            return Ok(peer);
        }
    }
}
