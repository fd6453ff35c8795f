//! Starts the threads of a router from its configuration, and ends them. The order is: listeners, secrets, tables,
//! workers, control. If a step fails, the steps before it are undone.

use crate::{
    StartError,
    command_journal::CommandJournal,
    content_stores::ContentStores,
    control::{
        Captures, Control, FaceDefaults, FaceParts, Faces, FibWriter, HeldAnswers, HeldRequests, LinkFaces, LinkStates,
        Recent, TagControl,
        inbox::ControlInbox,
        node::{Listening, Node, NodeCounts},
    },
    cs_settings::CsSettings,
    descriptors::Descriptors,
    listeners::{AcceptCounters, Acceptors, Listeners, SocketFile},
    messages::{AcceptedConnection, ToControl},
    name_looks::NameLooks,
    observer_places::ObserverPlaces,
    observing::RouterSource,
    operator::{Operator, OperatorDesk},
    probe_desk::Probes,
    secrets::Secrets,
    worker_shares::workers_config,
};
use namewire_configuration::{
    Configuration,
    in_force::InForce,
    settings::{FacesSection, ObserveSection, Settings, TablesSection},
    state_file::commands_beside,
    trust_anchors::TrustAnchors,
};
use namewire_designs::fib::catalogue::FibDesign;
use namewire_engine::dispatch::Dispatcher;
use namewire_faces::{FaceIdAllocator, FaceInfo, StreamSocket, unix};
use namewire_logging::Log;
use namewire_management::{FibDemand, FibLimits, MAX_PREFIX_BYTES, ManagementConfig, RibLimits, TrustConfig};
use namewire_observe::{ObserveConfig, Observer, ObserverHandle};
use namewire_packet::nfd::FaceUri;
use namewire_shares::{HolderTable, PoolReader};
use namewire_tables::{FibConfig, PageSize};
use namewire_websocket::{AcceptedWebSocket, Connections, WebSockets};
use namewire_worker::{ControlSender, ManagementQueue, Shared, Started, WORKER_BYTES, WorkerThreads, mesh, unix_ms};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::{
    runtime::{self, Runtime},
    sync::mpsc,
};

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
    ports: Vec<String>,
    observed: Option<ObserverHandle>,
    operator: Operator,
}

impl RouterHandle {
    /// Access to the router's management for this process.
    pub fn operator(&self) -> Operator {
        self.operator.clone()
    }

    /// Where applications connect, if a Unix socket was configured.
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

    /// What was configured but is unavailable, in words: multicast and Ethernet on interfaces that we may not use. The
    /// router runs without it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Where metrics and the page are, with the ports that were given for port 0.
    pub fn observed_at(&self) -> &[SocketAddr] {
        self.observed.as_ref().map_or(&[], ObserverHandle::addresses)
    }

    /// How frames of each interface get to the router, in words, if the configuration leaves a choice.
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Connects an application that runs in this process, as if it had connected to the Unix socket. The router's face
    /// is local, and ends when the returned stream is closed.
    ///
    /// # Errors
    /// If there are no descriptors, or the router has stopped.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (application, ours) = UnixStream::pair()?;
        let info = FaceInfo { local: FaceUri::Internal, ..unix::face_info(&ours, Path::new("")) };
        let accepted = AcceptedConnection::apart_from_listeners(StreamSocket::Unix(ours), info);
        self.events.send(ToControl::Accepted(accepted)).map_err(|_| io::ErrorKind::NotConnected)?;
        Ok(application)
    }

    /// Replaces the rules of who may command, from the next command on. Trust anchors that cannot be read now are read
    /// at their refresh.
    pub fn set_trust(&self, trust: TrustConfig) {
        let anchors = TrustAnchors::read(&trust);
        // Control is gone only when the router stops.
        let _ = self.events.send(ToControl::Trust { trust: Box::new(trust), anchors });
    }

    /// Removes the socket, sends what is queued and ends all threads.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.observed = None;
        // The file goes before its listener closes; see [`SocketFile`].
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

impl Router {
    /// Opens listeners and starts threads. When it returns, applications can connect.
    ///
    /// # Errors
    /// If the configuration is inconsistent, if there is too little memory, if a listener's address is in use or not
    /// allowed, or if threads, descriptors or random numbers are unavailable.
    pub fn start(configuration: &Configuration) -> Result<RouterHandle, StartError> {
        Self::start_with(configuration, None)
    }

    /// The same, but applications connect to a listening Unix socket that another process made (systemd). It must be
    /// bound to the configured path. Its file stays when the router ends.
    ///
    /// # Errors
    /// As for [`Router::start`].
    pub fn start_with(
        configuration: &Configuration,
        inherited: Option<UnixListener>,
    ) -> Result<RouterHandle, StartError> {
        let Configuration { settings, trust, sources, .. } = configuration;
        let (faces, workers) = (&settings.faces, usize::from(settings.router.workers));
        StartError::check(settings).and_then(|()| require_memory())?;
        let start_unix_ms = unix_ms(); // before the first command can come
        let anchors = TrustAnchors::read(trust);
        let secrets = Secrets::new(settings.router.seed)?;
        let mut listeners = Listeners::open(settings, inherited)?;
        let observer = observer(settings).map_err(StartError::Observe)?;
        let websocket_listeners = namewire_websocket::open_listeners(&faces.websocket)?;
        let shared = shared_tables(settings, &secrets)?;
        let management = management_config(configuration, &shared.holders);
        let (events, event_queue) = mpsc::unbounded_channel();
        let interests = Arc::new(ManagementQueue::new(shared.holders.groups()));
        shared.add_pools(vec![interests.pool()]);
        let inbox = ControlInbox::new(event_queue, Arc::clone(&interests));
        let sender = control_sender(events.clone(), Arc::clone(&interests));
        let ids = FaceIdAllocator::new();
        let udp_sockets = std::mem::take(&mut listeners.udp_sockets);
        StartError::require_memory(workers.saturating_mul(WORKER_BYTES) + mesh::bytes(workers))?;
        let tags = TagControl::new(&settings.tagnet, secrets.control, shared.now_ns())?;
        let Started { threads: worker_threads, senders: workers, faceless } =
            start_workers(settings, &secrets, &shared, &sender, &ids, udp_sockets, tags.as_ref())?;

        let descriptors = Descriptors::of_process(&shared.holders, events.clone());
        let trusted = faces.websocket.trusted_certificates.clone();
        let connections = Connections::new(&shared.holders, descriptors.clone());
        let websockets = WebSockets::start(trusted, websocket_listeners, accepting(events.clone()), connections)?;
        let places = ObserverPlaces::new(&shared.holders, descriptors.clone());
        shared.add_pools(listener_pools(&websockets, observer.as_ref().map(|_| &places)));
        let websocket = websockets.channels().to_vec();
        let accepts = Arc::<AcceptCounters>::default();
        let parts =
            FaceParts { shared, workers, events: events.clone(), ids, faceless, descriptors: descriptors.clone() };
        let listening = listening(faces, &listeners);
        let counts = NodeCounts { start_unix_ms, accepts: Arc::clone(&accepts), ..NodeCounts::default() };
        let mut node = node(settings, parts, interests, listening, websockets, counts, probes(settings, &secrets));
        (node.tags, node.in_force) = (tags, InForce::new(settings, sources));
        let (mut warnings, ports) = node.start_links(&faces.dpdk);
        warnings.extend(core_role(settings.fib.design.0));
        let (desk, operator) = OperatorDesk::open(events.clone(), faces.udp.mtu.0);
        let control = Control::new(node, management, anchors, desk)?;
        let (tcp, udp) = (listeners.tcp_addresses(), listeners.udp.clone());
        require_memory()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (acceptors, socket) = listeners.register(&runtime)?;
        let threads = Threads { control, workers: worker_threads, descriptors };
        let source = RouterSource::new(events.clone(), warnings.clone(), places);
        let observed = observer.map(|observer| observer.serve(source)).transpose()?;
        let thread = threads.spawn(runtime, acceptors, accepts, inbox)?;
        Ok(RouterHandle {
            events,
            control: Some(thread),
            socket,
            tcp,
            udp,
            websocket,
            warnings,
            ports,
            observed,
            operator,
        })
    }
}

/// How workers reach control.
fn control_sender(events: mpsc::UnboundedSender<ToControl>, interests: Arc<ManagementQueue>) -> ControlSender {
    // Control is gone only when the router stops.
    ControlSender::new(move |report| _ = events.send(ToControl::Worker(report)), interests)
}

/// How accepted WebSocket connections reach control.
fn accepting(events: mpsc::UnboundedSender<ToControl>) -> impl Fn(AcceptedWebSocket) + Send + Sync + 'static {
    // Control is gone only when the router stops.
    move |accepted| _ = events.send(ToControl::Accepted(accepted.into()))
}

/// Starts the workers, each with its share of what the settings give.
fn start_workers(
    settings: &Settings,
    secrets: &Secrets,
    shared: &Arc<Shared>,
    sender: &ControlSender,
    ids: &FaceIdAllocator,
    udp_sockets: Vec<Vec<UdpSocket>>,
    tags: Option<&TagControl>,
) -> Result<Started, StartError> {
    let config = workers_config(settings, secrets, &shared.holders, ids);
    namewire_worker::start(&config, shared, sender, udp_sockets, tags.map(TagControl::tables))
        .map_err(|error| StartError::of_workers(settings.tables.pages.0, error))
}

/// The listeners of metrics and page, if the configuration has some.
fn observer(settings: &Settings) -> io::Result<Option<Observer>> {
    let ObserveSection { listen, page, trace, peers } = settings.observe.clone();
    let config = ObserveConfig { listen, page, trace, peers };
    (!config.listen.is_empty()).then(|| Observer::bind(&config)).transpose()
}

/// What management knows of the listeners.
fn listening(faces: &FacesSection, listeners: &Listeners) -> Listening {
    Listening {
        udp: listeners.udp.clone(),
        channels: listeners.channels(),
        outgoing_tcp: faces.tcp.outgoing,
        outgoing_udp: faces.udp.outgoing,
    }
}

/// The pools from which listeners take for whoever connects.
fn listener_pools(websockets: &WebSockets, observer: Option<&ObserverPlaces>) -> Vec<PoolReader> {
    let of_observer = observer.into_iter().flat_map(ObserverPlaces::readers);
    [websockets.pool()].into_iter().chain(of_observer).collect()
}

fn management_config(configuration: &Configuration, holders: &HolderTable) -> ManagementConfig {
    ManagementConfig {
        fib: fib_limits(&configuration.settings),
        trust: configuration.trust.clone(),
        router_uid: Some(rustix::process::geteuid().as_raw()),
        readvertise: configuration.settings.rib.readvertise(),
        groups: holders.groups().clone(),
        own_name: configuration.settings.router.name.as_ref().map(|name| name.0.clone()),
        ..ManagementConfig::default()
    }
}

fn node(
    settings: &Settings,
    parts: FaceParts,
    interests: Arc<ManagementQueue>,
    listening: Listening,
    websockets: WebSockets,
    counts: NodeCounts,
    probes: Probes,
) -> Node {
    let faces = &settings.faces;
    let defaults = FaceDefaults {
        congestion_marking: faces.congestion_marking,
        udp_idle_timeout: faces.udp.idle_timeout.0,
        udp_mtu: faces.udp.mtu.0 as usize,
    };
    let (shared, workers, events) = (Arc::clone(&parts.shared), Arc::clone(&parts.workers), parts.events.clone());
    let cs = CsSettings::of(&settings.engine_config(), settings.cs.policy());
    Node {
        shared,
        faces: Faces::new(parts, defaults),
        link_states: LinkStates::default(),
        links: LinkFaces::new(faces.multicast.clone(), faces.ethernet.clone()),
        listening,
        websockets,
        cs: ContentStores::new(Arc::clone(&workers), cs),
        name_looks: NameLooks::default(),
        probes,
        workers,
        events,
        interests,
        fib_design: settings.fib.design.0,
        pit_capacity_entries: settings.tables.pit_capacity.into(),
        fib_writer: FibWriter::default(),
        held_answers: HeldAnswers::default(),
        held_requests: HeldRequests::new(settings.state.file.is_some()),
        journal: settings.state.file.as_deref().map(|file| CommandJournal::new(commands_beside(file))),
        tags: None,
        captures: Captures::default(),
        recent: Recent::default(),
        log: Log::installed(),
        counts,
        in_force: InForce::default(),
    }
}

/// What the router says of itself when it is asked by probes.
fn probes(settings: &Settings, secrets: &Secrets) -> Probes {
    Probes::new(settings, &rustix::system::uname().nodename().to_string_lossy(), secrets.instance)
}

/// The tables that all workers read.
fn shared_tables(settings: &Settings, secrets: &Secrets) -> Result<Arc<Shared>, StartError> {
    let workers = usize::from(settings.router.workers);
    let dispatcher = Dispatcher::new(workers, secrets.shards).with_prefix_visits(settings.cs.prefix_lookup.0);
    let size = fib_config(&settings.tables, RibLimits::default());
    let fib = settings.fib.design.0.fib(&settings.fib.options(), size, secrets.tables);
    let fib = fib.map_err(|error| StartError::no_fib(settings.tables.pages.0, error))?;
    Ok(Arc::new(Shared::new(fib, Arc::new(dispatcher))))
}

/// Refuses to start without the memory that a router reserves for allocations that cannot fail gracefully.
///
/// # Errors
/// [`StartError::Memory`].
pub fn require_memory() -> Result<(), StartError> {
    StartError::require_memory(0)
}

/// What the administrator of a router with a lossy FIB should know (Yuan15 §4.2).
fn core_role(design: FibDesign) -> Option<String> {
    (!design.is_lossless()).then(|| {
        format!(
            "core role: the FIB design {} may forward names that have no route; edge routers must hold a lossless one",
            design.name()
        )
    })
}

/// A FIB with room for everything that management may put there, if that costs address space only. Explicit huge pages
/// are taken at once, so there it has room for prefixes of the usual size. Management refuses what does not fit.
fn fib_config(tables: &TablesSection, rib: RibLimits) -> FibConfig {
    let (capacity_entries, pages) = (tables.fib_capacity as usize, tables.pages.0);
    let size = match pages {
        PageSize::Base | PageSize::Transparent => {
            FibConfig::for_prefixes(capacity_entries, FibDemand::of(rib).prefix_bytes)
        }
        PageSize::Huge2MiB | PageSize::Huge1GiB => FibConfig::new(capacity_entries),
    };
    FibConfig { pages, ..size }
}

/// What management may put into the FIB.
fn fib_limits(settings: &Settings) -> FibLimits {
    let size = fib_config(&settings.tables, RibLimits::default());
    let all = FibDemand {
        entries: size.capacity_entries,
        // A design of the literature has no limit of its own.
        prefix_bytes: settings.fib.design.0.search().map_or(usize::MAX, |_| size.prefix_bytes()),
    };
    let longest_prefix_bytes = settings.fib.prefix_bytes_max.map_or(MAX_PREFIX_BYTES, usize::from);
    FibLimits { all, longest_prefix_bytes }
}

/// What the control thread takes over. The order matters: dropping control's senders ends the workers, and only then
/// does the control thread wait for them.
struct Threads {
    control: Control,
    workers: WorkerThreads,
    descriptors: Descriptors,
}

impl Threads {
    /// Starts the control thread, which ends the workers when it ends.
    fn spawn(
        self,
        runtime: Runtime,
        acceptors: Acceptors,
        accepts: Arc<AcceptCounters>,
        inbox: ControlInbox,
    ) -> Result<JoinHandle<()>, StartError> {
        // All other threads run, and have what they need.
        self.control.add_pool(self.descriptors.count());
        let run = move || {
            let Threads { control, workers, descriptors } = { self };
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                acceptors.serve(control.events(), &accepts, &descriptors);
                control.run(inbox).await;
            });
            drop(workers);
        };
        thread::Builder::new().name("nw-control".to_owned()).spawn(run).map_err(StartError::Thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::HashKey;

    /// A RIB within its own limits did not fit into the FIB: the FIB had room for prefixes of 120 bytes, the RIB for
    /// 268.
    #[test]
    fn a_full_rib_of_long_prefixes_fits_into_the_fib() {
        let tables = TablesSection::default();
        assert!(FibDemand::of(RibLimits::default()).entries <= tables.fib_capacity as usize);
        let mut size = fib_config(&tables, RibLimits::default());
        assert_eq!(size.pages, tables.pages.0);
        // A fiftieth of everything that concerns the RIB.
        size.entry_bytes /= 50;
        let rib = RibLimits::default();
        let (routes, prefix_bytes) = (rib.routes / 50, rib.prefix_bytes() / rib.routes);
        let mut fib = namewire_tables::Fib::with_config(size, HashKey::from_seed(1)).expect("address space");
        for route in 0..routes {
            let mut prefix = vec![8, 253, 0, 0];
            prefix[2..].copy_from_slice(&(prefix_bytes as u16 - 4).to_be_bytes());
            prefix.extend(route.to_be_bytes());
            prefix.resize(prefix_bytes, 0);
            fib.insert(&prefix, &[], 0, false).expect("within the limits of the RIB");
        }
    }
}
