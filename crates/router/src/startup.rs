//! From a configuration to running threads, and back: listeners, secrets, tables,
//! workers, control, in this order; what fails half-way takes down what was there.

use crate::{
    RouterConfig, StartError,
    control::Control,
    control_inbox::ControlInbox,
    cs_erasure::{CsErasureQueue, CsErasures},
    cs_settings::CsSettings,
    environment::{Node, unix_ms},
    exit::Exit,
    fib_writer::FibWriter,
    held_answers::HeldAnswers,
    link_faces::LinkFaces,
    link_state::{LinkChanges, LocalEnds},
    listeners::{AcceptCounters, Listeners, SocketFile},
    management_queue::ManagementQueue,
    mesh::{self, Bell},
    messages::{ControlSender, ToControl, WORKER_QUEUE, WorkerSender},
    operator::{Operator, OperatorDesk},
    pit_looks::PitLooks,
    ring::Doorbell,
    shared::Shared,
    trust_anchors::{AnchorFileError, TrustAnchors},
    websocket::{self, WebSockets},
    worker::Worker,
};
use namewire_engine::{Engine, dispatch::Dispatcher};
use namewire_faces::{DriverConfig, FaceIdAllocator, LinkCounters, LinkPolicy, SocketDriver};
use namewire_management::{ManagementConfig, RibLimits, TrustConfig, fib_computation::FibDemand};
use namewire_packet::nfd::{FaceCounters, FaceUri};
use namewire_tables::fib::designs::catalogue::FibDesign;
use namewire_tables::{Fib, FibConfig, HashKey, PageSize, head_room};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{SocketAddr, UdpSocket},
    path::PathBuf,
    sync::{Arc, mpsc::sync_channel},
    thread::{self, JoinHandle},
};
use tokio::sync::{mpsc, watch};

/// Beside the tables a worker allocates some 30 MiB when it starts: buffers, and its thread's stack.
const WORKER_BYTES: usize = 48 << 20;

/// Starts routers.
pub struct Router;

/// A running router. Dropping it stops it.
pub struct RouterHandle {
    events: mpsc::UnboundedSender<ToControl>,
    control: Option<JoinHandle<()>>,
    socket: Option<SocketFile>,
    tcp: Vec<SocketAddr>,
    udp: Vec<SocketAddr>,
    websocket: Vec<FaceUri>,
    warnings: Vec<String>,
    revision: watch::Receiver<u64>,
    faces_lost: watch::Receiver<u64>,
}

impl RouterHandle {
    /// A way to the router's management for this process.
    pub fn operator(&self) -> Operator {
        Operator { events: self.events.clone(), revision: self.revision.clone(), faces_lost: self.faces_lost.clone() }
    }

    /// Where applications connect, if a Unix socket was asked for.
    pub fn socket(&self) -> Option<&PathBuf> {
        self.socket.as_ref().map(SocketFile::path)
    }

    /// Addresses of the TCP listeners, with the ports that were given for port 0.
    pub fn tcp(&self) -> &[SocketAddr] {
        &self.tcp
    }

    /// Addresses of the UDP listeners.
    pub fn udp(&self) -> &[SocketAddr] {
        &self.udp
    }

    /// FaceUris of the WebSocket listeners.
    pub fn websocket(&self) -> &[FaceUri] {
        &self.websocket
    }

    /// What was asked for and could not be had, in words: multicast and Ethernet on interfaces
    /// that do not let us. The router runs without.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Lets other settings decide who may command, from the next command on.
    ///
    /// # Errors
    /// A certificate cannot be read; then the settings stay as they are.
    pub fn set_trust(&self, trust: TrustConfig) -> Result<(), AnchorFileError> {
        let anchors = TrustAnchors::read(&trust)?;
        // Control is gone only when the router stops.
        let _ = self.events.send(ToControl::Trust { trust: Box::new(trust), anchors });
        Ok(())
    }

    /// Removes the socket, sends what is queued and ends all threads.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Before its listener closes: see there.
        self.socket = None;
        let _ = self.events.send(ToControl::Stop);
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
    }
}

impl Drop for RouterHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// Secrets of one start: keys of tables and shards, seeds of the engines.
struct Secrets {
    tables: HashKey,
    shards: HashKey,
    seed: u64,
}

impl Secrets {
    fn new(seed: Option<u64>) -> io::Result<Self> {
        if let Some(seed) = seed {
            let shards = HashKey::from_seed(seed ^ 0x5851_F42D_4C95_7F2D);
            return Ok(Secrets { tables: HashKey::from_seed(seed), shards, seed });
        }
        let mut octets = [0; 40];
        getrandom::fill(&mut octets).map_err(|error| io::Error::other(error.to_string()))?;
        let part = |at: usize| {
            let mut part = [0; 16];
            part.copy_from_slice(&octets[at..at + 16]);
            part
        };
        let mut seed = [0; 8];
        seed.copy_from_slice(&octets[32..]);
        Ok(Secrets { tables: HashKey::new(part(0)), shards: HashKey::new(part(16)), seed: u64::from_ne_bytes(seed) })
    }
}

impl Router {
    /// Opens listeners and starts threads. When it returns, applications can connect.
    ///
    /// Errors: a listener's address is taken or not allowed; no threads or descriptors.
    pub fn start(config: RouterConfig) -> Result<RouterHandle, StartError> {
        config.check()?;
        require_memory()?;
        let anchors = TrustAnchors::read(&config.trust)?;
        let secrets = Secrets::new(config.seed)?;
        let mut listeners = Listeners::open(&config)?;
        let websocket_listeners = websocket::open_listeners(&config.websocket)?;
        let dispatcher =
            Dispatcher::new(config.workers, secrets.shards).with_prefix_rounds(config.engine.cs_prefix_lookup);
        let dispatcher = Arc::new(dispatcher);
        let management = ManagementConfig {
            trust: config.trust.clone(),
            router_uid: Some(rustix::process::geteuid().as_raw()),
            readvertise: config.readvertise.clone(),
            ..ManagementConfig::default()
        };
        let size = fib_config(&config, management.rib);
        let fib = Fib::with_design(config.fib_design, &config.fib_options, size, secrets.tables)
            .map_err(|error| config.no_fib(error))?;
        let shared = Arc::new(Shared::new(fib, dispatcher));
        let (events, event_queue) = mpsc::unbounded_channel();
        let interests = Arc::new(ManagementQueue::default());
        let interest_queue = Arc::clone(&interests);
        let sender = ControlSender { events: events.clone(), interests };
        let face_ids = FaceIdAllocator::new();
        let (channels, udp) = (listeners.channels(), listeners.udp.clone());
        let udp_sockets = std::mem::take(&mut listeners.udp_sockets);
        require(config.workers.saturating_mul(WORKER_BYTES) + mesh::bytes(config.workers))?;
        let (worker_threads, workers, faceless) =
            start_workers(&config, &secrets, &shared, &sender, &face_ids, udp_sockets)?;

        let engine = &config.engine;
        let websockets = WebSockets::start(config.websocket.clone(), websocket_listeners, events.clone())?;
        let websocket = websockets.channels().to_vec();
        let accepts = Arc::<AcceptCounters>::default();
        let mut node = Node {
            shared,
            faces_per_worker: vec![0; workers.len()],
            workers,
            sender,
            face_ids,
            faces: HashMap::new(),
            udp_listeners: udp.clone(),
            outgoing_tcp: config.outgoing_tcp,
            outgoing_udp: config.outgoing_udp,
            channels,
            links: LinkFaces::new(config.udp_multicast.clone(), config.ethernet.clone()),
            websockets,
            cs: CsSettings::of(engine),
            cs_erasures: CsErasures::default(),
            start_unix_ms: unix_ms(),
            congestion_marking: config.congestion_marking,
            udp_idle_timeout: config.udp_idle_timeout,
            pending: HashMap::new(),
            link_changes: LinkChanges::default(),
            local_ends: LocalEnds::default(),
            faces_lost: 0,
            retry_pauses: HashMap::new(),
            fib_design: config.fib_design,
            fib_writer: FibWriter::default(),
            held_answers: HeldAnswers::default(),
            accept_failures: 0,
            accepts: Arc::clone(&accepts),
            places: HashMap::new(),
            unreadable_anchors: 0,
            refused_connections: 0,
            closed_faces: LinkCounters::default(),
            closing: VecDeque::new(),
            close_counts: HashMap::new(),
            faceless,
            internal: FaceCounters::default(),
        };
        let (revision, revision_seen) = watch::channel(0);
        let (faces_lost, faces_lost_seen) = watch::channel(0);
        let mut warnings = node.start_links();
        warnings.extend(core_role(config.fib_design));
        let control = Control::new(node, management, anchors, OperatorDesk::new(revision, faces_lost))?;
        let tcp = listeners.tcp_addresses();
        require_memory()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (acceptors, socket) = listeners.register(&runtime)?;
        let threads = Threads { control, workers: worker_threads };
        let thread = thread::Builder::new().name("nw-control".to_owned()).spawn(move || {
            let Threads { control, workers } = { threads };
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                acceptors.serve(control.events(), &accepts);
                control.run(ControlInbox::new(event_queue, interest_queue)).await;
            });
            drop(workers);
        });
        let thread = thread.map_err(StartError::Thread)?;
        let control = Some(thread);
        Ok(RouterHandle {
            events,
            control,
            socket,
            tcp,
            udp,
            websocket,
            warnings,
            revision: revision_seen,
            faces_lost: faces_lost_seen,
        })
    }
}

/// Refuses to start without the memory that a router leaves to what cannot refuse.
///
/// # Errors
/// [`StartError::Memory`].
pub fn require_memory() -> Result<(), StartError> {
    require(0)
}

fn require(bytes: usize) -> Result<(), StartError> {
    head_room::is_there(bytes).then_some(()).ok_or(StartError::Memory { bytes })
}

/// What whoever starts a router with a lossy FIB should know (Yuan15 §4.2).
fn core_role(design: FibDesign) -> Option<String> {
    (!design.is_lossless()).then(|| {
        format!(
            "core role: the FIB design {} may forward names that have no route; edge routers must hold a lossless one",
            design.name()
        )
    })
}

/// A FIB for everything that management may put there, if that is address space only.
/// Explicit huge pages are taken at once: there it has room for prefixes of the usual size,
/// and what does not fit is refused, counted and tried again.
fn fib_config(config: &RouterConfig, rib: RibLimits) -> FibConfig {
    let capacity_entries = config.fib_capacity_entries;
    let pages = config.engine.pages;
    let size = match pages {
        PageSize::Base | PageSize::Transparent => {
            FibConfig::for_prefixes(capacity_entries, FibDemand::of(rib).prefix_bytes)
        }
        PageSize::Huge2MiB | PageSize::Huge1GiB => FibConfig::new(capacity_entries),
    };
    FibConfig { pages, ..size }
}

/// The worker threads. Dropping it waits for them to end, which they do when their
/// [`WorkerSender`]s are dropped.
#[derive(Default)]
struct WorkerThreads(Vec<JoinHandle<()>>);

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join(); // fails only if it panicked, which was reported then
        }
    }
}

type Workers = (WorkerThreads, Vec<WorkerSender>, Vec<Arc<namewire_faces::FaceCounters>>);

fn start_workers(
    config: &RouterConfig,
    secrets: &Secrets,
    shared: &Arc<Shared>,
    sender: &ControlSender,
    face_ids: &FaceIdAllocator,
    udp_sockets: Vec<Vec<UdpSocket>>,
) -> Result<Workers, StartError> {
    let mut drivers = Vec::new();
    for sockets in udp_sockets {
        let mut driver = SocketDriver::new(DriverConfig {
            udp_idle_timeout: config.udp_idle_timeout,
            max_faces: config.max_faces,
            face_ids: face_ids.clone(),
            udp_offload: config.udp_offload,
            link_policy: LinkPolicy { congestion_marking: config.congestion_marking, ..LinkPolicy::default() },
            ..DriverConfig::default()
        })?;
        for socket in sockets {
            driver.add_udp_listener(socket)?;
        }
        drivers.push(driver);
    }
    let bells: Arc<[Bell]> =
        drivers.iter().map(|driver| Bell { doorbell: Doorbell::new(), waker: driver.waker() }).collect();
    // Before the senders: on failure these are dropped first, and end the threads.
    let mut threads = WorkerThreads::default();
    let (mut senders, mut faceless) = (Vec::new(), Vec::new());
    for (index, (driver, (outbox, inbox))) in drivers.into_iter().zip(mesh::connect(&bells)).enumerate() {
        let (messages, queue) = sync_channel(WORKER_QUEUE);
        senders.push(WorkerSender::new(messages, driver.waker()));
        faceless.push(driver.faceless_counters());
        let seed = secrets.seed.wrapping_add(index as u64);
        let dispatcher = Arc::clone(&shared.dispatcher);
        let worker = Worker {
            shared: Arc::clone(shared),
            engine: Engine::new(config.engine_per_worker(), index as u8, dispatcher, secrets.tables, seed)
                .map_err(|error| config.unmapped(error))?,
            messages: queue,
            inbox,
            busy_poll: config.busy_poll,
            cs_erasures: CsErasureQueue::default(),
            pit_looks: PitLooks::default(),
            exit: Exit {
                index: index as u8,
                now_ns: shared.now_ns(),
                driver,
                outbox,
                control: sender.clone(),
                drops: Default::default(),
            },
        };
        let builder = thread::Builder::new().name(format!("nw-worker-{index}"));
        let Some(&processor) = config.pin.get(index) else {
            threads.0.push(builder.spawn(move || worker.run()).map_err(StartError::Thread)?);
            continue;
        };
        // A thread can pin only itself, or one whose id it has told.
        let (report, pinned) = sync_channel(1);
        let thread = builder.spawn(move || {
            let result = pin_to(processor);
            let is_pinned = result.is_ok();
            let _ = report.send(result); // the receiver waits for it
            if is_pinned {
                worker.run();
            }
        });
        threads.0.push(thread.map_err(StartError::Thread)?);
        let ended = || io::Error::other("the worker ended");
        let refused = |source| StartError::Pin { processor, usable: usable_processors(), source };
        pinned.recv().map_err(|_| ended())?.map_err(refused)?;
    }
    Ok((threads, senders, faceless))
}

/// Lets the calling thread run on one processor only.
fn pin_to(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(processor);
    Ok(sched_setaffinity(None, &only)?)
}

/// The processors that a thread of this process may be given, as the kernel writes them: `0-3,8`.
fn usable_processors() -> String {
    // Asked of a thread that lets itself run anywhere: what this process was started with is
    // narrower after `taskset`, and the kernel leaves out what is absent or not allowed here.
    let anywhere = || {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
        sched_setaffinity(None, &all)?;
        sched_getaffinity(None)
    };
    match thread::spawn(anywhere).join() {
        Ok(Ok(usable)) => ranges((0..CpuSet::MAX_CPU).filter(|&processor| usable.is_set(processor))),
        _ => "unknown ones".to_owned(),
    }
}

/// Ascending numbers as `0-3,8`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// What the control thread takes over. The order matters: control holds the senders
/// whose end ends the workers, and the workers are waited for.
struct Threads {
    control: Control,
    workers: WorkerThreads,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_as_ranges() {
        assert_eq!(ranges([0, 1, 2, 3, 8, 10, 11].into_iter()), "0-3,8,10-11");
        assert_eq!(ranges([5].into_iter()), "5");
        assert_eq!(ranges([].into_iter()), "");
    }

    /// A RIB within its own limits did not fit into the FIB: it had room for prefixes of 120
    /// octets, the RIB for 268.
    #[test]
    fn a_full_rib_of_long_prefixes_fits_into_the_fib() {
        let config = RouterConfig::default();
        assert!(FibDemand::of(RibLimits::default()).entries <= config.fib_capacity_entries);
        let mut size = fib_config(&config, RibLimits::default());
        assert_eq!(size.pages, config.engine.pages);
        // A fiftieth of everything, as far as the RIB goes.
        size.entry_octets /= 50;
        let rib = RibLimits::default();
        let (routes, prefix_octets) = (rib.routes / 50, rib.prefix_bytes / rib.routes);
        let mut fib = Fib::with_config(size, HashKey::from_seed(1)).expect("address space");
        for route in 0..routes {
            let mut prefix = vec![8, 253, 0, 0];
            prefix[2..].copy_from_slice(&(prefix_octets as u16 - 4).to_be_bytes());
            prefix.extend(route.to_be_bytes());
            prefix.resize(prefix_octets, 0);
            fib.insert(&prefix, &[], 0, false).expect("within the limits of the RIB");
        }
    }
}
