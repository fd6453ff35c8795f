//! Running router: how much memory does a router process need for each advertised descriptor, and how fast does it take
//! advertisements in?
//!
//! The process is `namewire run` with one worker and one tree. A neighbour on the loopback interface takes part in the
//! tree and announces all descriptors for pulls and pushes. It speaks as a router does: at most [`WINDOW_ENTRIES`]
//! entries are on their way, and what is not confirmed in time is sent again. It sends no tag packets.
//!
//! Memory is the growth of the process's resident memory, from the moment when both are in the tree to the end of all
//! work on the descriptors. It includes everything: the table, what control knows, free blocks, buffers. The peak
//! includes what the router needs while it builds its table anew.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_packet::FaceId;
use namewire_packet::lp::LpPacket;
use namewire_packet::nfd::{TagTree, decode_dataset};
use namewire_tagnet::forwarder::Serves;
use namewire_tagnet::matching::Entry;
use namewire_tagnet::routing::wire::{AnnouncedEntry, MAX_ENTRIES, Progress, RoutingPacket};
use namewire_tagnet::tree_protocol::{TreeProtocol, TreeTimes};

use crate::experiment::{Context, Outcome};
use crate::process::{resident_kib, resident_kib_max};
use crate::router_process::{RouterProcess, find_program};
use crate::tag_sets::{StoredSets, TagSource};

/// The tree.
const TREE: u16 = 1;
/// The neighbour's name for its link.
const ROUTER: FaceId = FaceId(300);
/// Most entries on their way, as from a router.
const WINDOW_ENTRIES: u64 = 16 * MAX_ENTRIES as u64;
/// Entries are sent again after this time.
const RESEND: Duration = Duration::from_millis(300);
/// The neighbour waits this long for a packet before it looks at the time.
const RECEIVE_LIMIT: Duration = Duration::from_millis(5);
/// The router must confirm something within this time.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Work on the descriptors is over when resident memory was the same for this time.
const QUIET: Duration = Duration::from_secs(3);
/// Fewer descriptors say nothing about the memory of each.
const TELLING: usize = 1_000_000;

/// Measures a router with so many descriptors.
///
/// # Errors
/// If there is no router to measure, or if it does not take the descriptors in.
pub(super) fn run(
    context: &Context,
    source: &dyn TagSource,
    descriptors: usize,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("running router")?;
    let stored = StoredSets::draw(source, descriptors)?;
    let case = format!("running router, {}, {}", source.title(), stored.rounded());
    let (router, _file) = start(&find_program(&context.program)?, stored.numbered.len())?;
    let mut neighbour = Neighbour::join(context, &router)?;
    let before_kib = resident(resident_kib(router.id()))?;
    let began = Instant::now();
    neighbour.announce(context, &stored.numbered)?;
    let seconds = began.elapsed().as_secs_f64();
    let after_kib = neighbour.wait_for_quiet(context, &router)?;
    let known =
        decode_dataset::<TagTree>(&router.control()?.dataset("tags/trees")?)?.first().map(|tree| tree.descriptors);
    ensure!(
        known == Some(stored.numbered.len() as u64),
        "the router knows {known:?} of {} sets",
        stored.numbered.len()
    );
    let peak_kib = resident(resident_kib_max(router.id()))?;
    let of_each = |kib: u64| kib.saturating_sub(before_kib) as f64 * 1024.0 / stored.numbered.len() as f64;
    outcome.add_value(&case, "router", ("resident memory", "bytes per descriptor"), of_each(after_kib));
    outcome.add_value(&case, "router", ("highest resident memory", "bytes per descriptor"), of_each(peak_kib));
    outcome.add_value(&case, "router", ("advertisements taken in", "per s"), stored.numbered.len() as f64 / seconds);
    if stored.numbered.len() >= TELLING {
        outcome.headline.insert("tag_router_bytes_per_descriptor".to_owned(), of_each(after_kib));
    }
    Ok(())
}

fn resident(kib: Option<u64>) -> anyhow::Result<u64> {
    kib.context("the kernel does not tell the resident memory of other processes")
}

/// A router in the tree, which hears any neighbour, with room for the descriptors; and its configuration.
fn start(program: &Path, descriptors: usize) -> anyhow::Result<(RouterProcess, tempfile::NamedTempFile)> {
    let (file, listens) = (tempfile::NamedTempFile::new()?, RouterProcess::free_udp_address()?);
    let faces = format!("[faces.udp]\nlisten = [\"{listens}\"]\n[faces.tcp]\nenabled = false\n");
    let room = format!("descriptors = {}\nreserved = 0\nper_face = {descriptors}\n", descriptors + 1);
    let tagnet = format!("[tagnet]\ntrees = [{TREE}]\nrouter_number = 1\nneighbours = \"any\"\n{room}");
    std::fs::write(file.path(), faces + &tagnet)?;
    let mut command = Command::new(program);
    command.args(["run", "--workers", "1", "--config"]).arg(file.path());
    Ok((RouterProcess::start_command(command, listens, None)?, file))
}

/// The router's neighbour: its part in the tree, and where it is with its announcements.
struct Neighbour {
    socket: UdpSocket,
    protocol: TreeProtocol,
    started: Instant,
    session: u64,
    /// The router's session; 0 before there is a link in the tree.
    heard: u64,
    confirmed: u64,
    sent: u64,
    resend_at: Instant,
}

impl Neighbour {
    /// A neighbour that the router has in its tree.
    fn join(context: &Context, router: &RouterProcess) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(router.udp())?;
        socket.set_read_timeout(Some(RECEIVE_LIMIT))?;
        // The highest number: it is never the root.
        let mut protocol = TreeProtocol::new(TREE, u64::MAX - 1, TreeTimes::default(), context.seed, 0);
        protocol.greet();
        let now = Instant::now();
        let (session, resend_at) = (context.seed | 1, now);
        let mut neighbour =
            Neighbour { socket, protocol, started: now, session, heard: 0, confirmed: 0, sent: 0, resend_at };
        while neighbour.heard == 0 {
            context.check_interrupt()?;
            neighbour.turn()?;
            ensure!(now.elapsed() < SILENCE_LIMIT, "the router does not let its neighbour into the tree");
        }
        Ok(neighbour)
    }

    /// Hears what comes, and says hello when it is time.
    fn turn(&mut self) -> anyhow::Result<()> {
        let mut datagram = [0; 9_000];
        if let Ok(length) = self.socket.recv(&mut datagram) {
            let bytes = &datagram[..length];
            let packet = LpPacket::parse(bytes).ok().and_then(|packet| packet.fragment).unwrap_or(bytes);
            if let Ok(RoutingPacket::Hello(hello, progress)) = RoutingPacket::parse(packet) {
                self.protocol.heard(ROUTER, hello, self.now_ms());
                self.heard = progress.session;
                if progress.heard == self.session && progress.next > self.confirmed {
                    self.confirmed = progress.next;
                    self.sent = self.sent.max(self.confirmed);
                    self.resend_at = Instant::now() + RESEND;
                }
            }
        }
        if self.protocol.run(self.now_ms()) {
            let progress = Progress { session: self.session, heard: self.heard, next: 0 };
            let hello = RoutingPacket::Hello(self.protocol.hello(ROUTER, self.now_ms()), progress);
            self.send(&hello)?;
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// A full socket loses the packet, which is sent again.
    fn send(&self, packet: &RoutingPacket) -> anyhow::Result<()> {
        match self.socket.send(&packet.to_bytes()) {
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionRefused => Err(why.into()),
            _ => Ok(()),
        }
    }

    /// Announces these, until the router has confirmed all.
    fn announce(&mut self, context: &Context, stored: &[Entry]) -> anyhow::Result<()> {
        let (all, mut progressed) = (stored.len() as u64, (0, Instant::now()));
        while self.confirmed < all {
            if self.confirmed > progressed.0 {
                progressed = (self.confirmed, Instant::now());
            }
            ensure!(
                progressed.1.elapsed() < SILENCE_LIMIT,
                "the router has confirmed {} of {all} sets",
                self.confirmed
            );
            context.check_interrupt()?;
            if Instant::now() >= self.resend_at {
                self.sent = self.confirmed;
                self.resend_at = Instant::now() + RESEND;
            }
            while self.sent < all.min(self.confirmed + WINDOW_ENTRIES) {
                let end = (self.sent + MAX_ENTRIES as u64).min(all).min(self.confirmed + WINDOW_ENTRIES);
                let entry =
                    |stored: &Entry| AnnouncedEntry { descriptor: stored.descriptor, serves: Some(Serves::BOTH) };
                let entries = stored[self.sent as usize..end as usize].iter().map(entry).collect();
                self.send(&RoutingPacket::Announcements {
                    tree: TREE,
                    session: self.session,
                    first: self.sent,
                    entries,
                })?;
                self.sent = end;
            }
            self.turn()?;
        }
        Ok(())
    }

    /// The router's resident memory when it no longer changes.
    fn wait_for_quiet(&mut self, context: &Context, router: &RouterProcess) -> anyhow::Result<u64> {
        let began = Instant::now();
        let mut last = (resident(resident_kib(router.id()))?, Instant::now());
        while last.1.elapsed() < QUIET {
            context.check_interrupt()?;
            self.turn()?;
            let kib = resident(resident_kib(router.id()))?;
            if kib.abs_diff(last.0) > 64 {
                last = (kib, Instant::now());
            }
            ensure!(began.elapsed() < SILENCE_LIMIT, "the router's memory does not come to rest");
        }
        Ok(last.0)
    }
}
