//! Starts the threads of a router from its configuration, and ends them. The order is: listeners, secrets, tables,
//! workers, control. If a step fails, the steps before it are undone.

use crate::{
    StartError,
    content_stores::ContentStores,
    control::unix_us,
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
    observer_places::ObserverPlaces,
    observing::RouterSource,
    operator::{Operator, OperatorDesk},
    probe_desk::Probes,
    process_desk::ProcessDesk,
    secrets::Secrets,
    worker_shares::workers_config,
};
use namewire_configuration::{
    Configuration,
    command_journal::CommandJournal,
    in_force::InForce,
    settings::{FacesSection, ObserveSection, Settings, TablesSection},
    state_file::commands_beside,
    trust_anchors::TrustAnchors,
};
use namewire_designs::fib::catalogue::FibDesign;
use namewire_engine::dispatch::Dispatcher;
use namewire_faces::{FaceCounters, FaceIdAllocator, FaceInfo, StreamSocket, unix};
use namewire_handover::{Handed, TakeOver, messages::Listener, place};
use namewire_logging::Log;
use namewire_management::{FibDemand, FibLimits, MAX_PREFIX_BYTES, ManagementConfig, RibLimits, TrustConfig};
use namewire_observe::{ObserveConfig, Observer, ObserverHandle};
use namewire_packet::{FaceId, nfd::FaceUri};
use namewire_shares::{HolderTable, PoolReader};
use namewire_tables::{FibConfig, PageSize};
use namewire_websocket::{AcceptedWebSocket, Connections, Listener as WebSocketListener, WebSockets};
use namewire_worker::{
    ControlSender, LaneFaces, ManagementQueue, NameLooks, Shared, Started, WORKER_BYTES, WhyNot, WorkerSender,
    WorkerThreads, mesh, unix_ms,
};
use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
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
    sleeps_at_once: Option<WhyNot>,
    observed: Option<ObserverHandle>,
    operator: Operator,
    taken: Option<TakenFrom>,
}

/// See [`RouterHandle::connector`].
#[derive(Clone)]
pub struct Connector(mpsc::UnboundedSender<ToControl>);

impl Connector {
    /// As [`RouterHandle::connect`].
    ///
    /// # Errors
    /// If there are no descriptors, or the router has stopped.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (application, ours) = UnixStream::pair()?;
        let info = FaceInfo { local: FaceUri::Internal, ..unix::face_info(&ours, Path::new("")) };
        let accepted = AcceptedConnection::apart_from_listeners(StreamSocket::Unix(ours), info);
        self.0.send(ToControl::Accepted(accepted)).map_err(|_| io::ErrorKind::NotConnected)?;
        Ok(application)
    }
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

    /// What it has taken from another program, if it has.
    pub fn taken(&self) -> Option<TakenFrom> {
        self.taken
    }

    /// Ends all threads after a hand-over ([`Operator::hand_over`]): the files and sockets are another program's.
    pub fn leave(mut self) {
        self.socket.iter_mut().for_each(SocketFile::leave);
        self.end();
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

    /// Why idle workers sleep at once, although the configuration lets them look for packets as long as it pays.
    pub fn sleeps_at_once(&self) -> Option<WhyNot> {
        self.sleeps_at_once
    }

    /// Connects an application that runs in this process, as if it had connected to the Unix socket. The router's face
    /// is local, and ends when the returned stream is closed.
    ///
    /// # Errors
    /// If there are no descriptors, or the router has stopped.
    pub fn connect(&self) -> io::Result<UnixStream> {
        self.connector().connect()
    }

    /// Connects applications of this process later, from other threads.
    pub fn connector(&self) -> Connector {
        Connector(self.events.clone())
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
        StartError::check(&configuration.settings).and_then(|()| require_memory())?;
        let mut opened = Opened::fresh(&configuration.settings, inherited)?;
        let foundation = Foundation::lay(configuration, opened.take_udp_sockets())?;
        foundation.build(opened, None)
    }

    /// Takes over from another program, which forwards until this one has everything. When it returns, this one
    /// forwards. Listeners of the configuration that the other program does not have are opened.
    ///
    /// # Errors
    /// As for [`Router::start`], and if the other program does not hand over; then that one goes on.
    pub fn take_over(configuration: &Configuration, take_over: TakeOver) -> Result<RouterHandle, StartError> {
        let settings = &configuration.settings;
        StartError::check(settings).and_then(|()| require_memory())?;
        let none = (0..settings.router.workers).map(|_| Vec::new()).collect();
        let foundation = Foundation::lay(configuration, none)?;
        // The sockets of the other program count for their holders, so they must not count as used before.
        foundation.descriptors.count();
        let mut handed = Handed::receive(take_over, settings.router.workers)?;
        foundation.ids.skip_to(FaceId(handed.node.next_face));
        let opened = Opened::taken(settings, &mut handed)?;
        foundation.build(opened, Some(handed))
    }
}

/// The listening sockets of a router.
struct Opened {
    listeners: Listeners,
    observer: Option<Observer>,
    websocket: Vec<WebSocketListener>,
    warnings: Vec<String>,
}

impl Opened {
    fn fresh(settings: &Settings, inherited: Option<UnixListener>) -> Result<Self, StartError> {
        Ok(Opened {
            listeners: Listeners::open(settings, inherited)?,
            observer: observer(settings, |_| None).map_err(StartError::Observe)?,
            websocket: namewire_websocket::open_listeners(&settings.faces.websocket)?,
            warnings: Vec::new(),
        })
    }

    fn taken(settings: &Settings, handed: &mut Handed) -> Result<Self, StartError> {
        let (sockets, mut warnings) = (&mut handed.listeners, Vec::new());
        let listeners = Listeners::take_over(settings, sockets, &mut warnings)?;
        let observer = observer(settings, |address| sockets.take_stream("http", address));
        let observer = observer.map_err(StartError::Observe)?;
        let websocket = &settings.faces.websocket;
        let websocket =
            namewire_websocket::open_or_take_listeners(websocket, |address| sockets.take_stream("ws", address))?;
        warnings.extend(sockets.left().map(|left| format!("no longer listening on {left}")));
        Ok(Opened { listeners, observer, websocket, warnings })
    }

    /// The UDP sockets of each worker.
    fn take_udp_sockets(&mut self) -> Vec<Vec<UdpSocket>> {
        std::mem::take(&mut self.listeners.udp_sockets)
    }

    /// Other descriptors of the stream listeners, for a program that takes over.
    fn duplicates(&self) -> io::Result<Vec<(Listener, OwnedFd)>> {
        let said = |kind, address| Listener { uri: place(kind, address), ..Listener::default() };
        let mut all = self.listeners.duplicates()?;
        if let Some(observer) = &self.observer {
            let duplicates = observer.duplicates()?.into_iter();
            all.extend(duplicates.map(|(address, socket)| (said("http", address), socket.into())));
        }
        for listener in &self.websocket {
            let socket = listener.duplicate()?;
            all.push((said("ws", socket.local_addr()?), socket.into()));
        }
        Ok(all)
    }
}

/// Tables, workers, and the ways between threads: what a router has before its listeners are served.
struct Foundation<'a> {
    configuration: &'a Configuration,
    start_unix_ms: u64,
    anchors: TrustAnchors,
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<ToControl>,
    interests: Arc<ManagementQueue>,
    inbox: ControlInbox,
    ids: FaceIdAllocator,
    tags: Option<TagControl>,
    probes: Probes,
    /// For neighbours with lanes.
    shards_bytes: [u8; 16],
    descriptors: Descriptors,
    senders: Arc<[WorkerSender]>,
    faceless: Vec<Arc<FaceCounters>>,
    /// After the senders: dropping it waits for the threads, which end without senders.
    threads: WorkerThreads,
    sleeps_at_once: Option<WhyNot>,
}

impl<'a> Foundation<'a> {
    fn lay(configuration: &'a Configuration, udp_sockets: Vec<Vec<UdpSocket>>) -> Result<Self, StartError> {
        let Configuration { settings, trust, .. } = configuration;
        let start_unix_ms = unix_ms(); // before the first command can come
        let anchors = TrustAnchors::read(trust);
        let secrets = Secrets::new(settings.router.seed)?;
        let shared = shared_tables(settings, &secrets)?;
        let (events, event_queue) = mpsc::unbounded_channel();
        let interests = Arc::new(ManagementQueue::new(shared.holders.groups()));
        shared.add_pools(vec![interests.pool()]);
        let inbox = ControlInbox::new(event_queue, Arc::clone(&interests));
        let sender = control_sender(events.clone(), Arc::clone(&interests));
        let ids = FaceIdAllocator::new();
        // I/O threads have no UDP sockets.
        let count = settings.router.threads();
        let mut udp_sockets = udp_sockets;
        udp_sockets.resize_with(count, Vec::new);
        StartError::require_memory(count.saturating_mul(WORKER_BYTES) + mesh::bytes(count))?;
        let tags = TagControl::new(&settings.tagnet, secrets.control, shared.now_ns())?;
        let started = start_workers(settings, &secrets, &shared, &sender, &ids, udp_sockets, tags.as_ref())?;
        let Started { threads, senders, faceless, sleeps_at_once } = started;
        let descriptors = Descriptors::of_process(&shared.holders, events.clone());
        Ok(Foundation {
            configuration,
            start_unix_ms,
            anchors,
            shared,
            events,
            interests,
            inbox,
            ids,
            tags,
            probes: probes(settings, &secrets),
            shards_bytes: secrets.shards_bytes,
            descriptors,
            senders,
            faceless,
            threads,
            sleeps_at_once,
        })
    }

    /// Control and all other threads. With `handed`, they go on where another program stops.
    fn build(self, mut opened: Opened, mut handed: Option<Handed>) -> Result<RouterHandle, StartError> {
        let (configuration, shared) = (self.configuration, Arc::clone(&self.shared));
        let sleeps_at_once = self.sleeps_at_once;
        let (events, descriptors) = (self.events.clone(), self.descriptors.clone());
        let faces = &configuration.settings.faces;
        let management = management_config(configuration, &shared.holders);
        let sockets = opened.duplicates()?;
        let websockets = self.websockets(std::mem::take(&mut opened.websocket), handed.is_some())?;
        let places = ObserverPlaces::new(&shared.holders, descriptors.clone());
        shared.add_pools(listener_pools(&websockets, opened.observer.as_ref().map(|_| &places)));
        let websocket = websockets.channels().to_vec();
        let accepts = Arc::<AcceptCounters>::default();
        let listening = listening(faces, &opened.listeners, sockets);
        let (worker_threads, mut node, anchors, inbox) = self.node(listening, websockets, &accepts);
        handed.iter().for_each(|handed| node.links.number_groups(&handed.node.groups));
        let (mut warnings, ports) = node.start_links(&faces.dpdk);
        warnings.extend(core_role(configuration.settings.fib.design.0));
        warnings.append(&mut opened.warnings);
        let (desk, operator) = OperatorDesk::open(events.clone(), faces.udp.mtu.0);
        let mut control = Control::new(node, management, anchors, desk, handed.is_some())?;
        if let Some(handed) = &mut handed {
            control.take_over(handed, opened.take_udp_sockets());
        }
        let taken = control.taken();
        let (tcp, udp) = (opened.listeners.tcp_addresses(), opened.listeners.udp.clone());
        require_memory()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (acceptors, mut socket) = opened.listeners.register(&runtime)?;
        let threads = Threads { control, workers: worker_threads, descriptors };
        let mut thread = threads.spawn(runtime, acceptors, accepts, inbox)?;
        let taken = handed.map(|handed| goes_on(handed, taken, &events)).transpose()?;
        if taken.is_some() {
            socket.iter_mut().for_each(SocketFile::claim);
        }
        let source = RouterSource::new(events.clone(), warnings.clone(), places);
        let observed = opened.observer.map(|observer| observer.serve(source)).transpose();
        let observed = match observed {
            Err(error) if taken.is_some() => {
                warnings.push(format!("no metrics: {error}")); // nobody else forwards
                None
            }
            observed => observed?,
        };
        Ok(RouterHandle {
            events,
            control: thread.begin(),
            socket,
            tcp,
            udp,
            websocket,
            warnings,
            ports,
            sleeps_at_once,
            observed,
            operator,
            taken,
        })
    }

    /// WebSocket, on its thread; before another program has stopped, it accepts nothing.
    fn websockets(&self, listeners: Vec<WebSocketListener>, is_taking_over: bool) -> Result<WebSockets, StartError> {
        let trusted = self.configuration.settings.faces.websocket.trusted_certificates.clone();
        let connections = Connections::new(&self.shared.holders, self.descriptors.clone());
        let mut websockets = WebSockets::before_start(trusted, listeners, accepting(self.events.clone()), connections);
        if !is_taking_over {
            websockets.listen()?;
        }
        Ok(websockets)
    }

    /// The node, and what is not its.
    fn node(
        self,
        listening: Listening,
        websockets: WebSockets,
        accepts: &Arc<AcceptCounters>,
    ) -> (WorkerThreads, Node, TrustAnchors, ControlInbox) {
        let Foundation { configuration, start_unix_ms, shared, events, ids, descriptors, faceless, .. } = self;
        let (workers, shards_bytes) = (self.senders, self.shards_bytes);
        let parts = FaceParts { shared, workers, events, ids, faceless, descriptors, shards_bytes };
        let counts = NodeCounts { start_unix_ms, accepts: Arc::clone(accepts), ..NodeCounts::default() };
        let settings = &configuration.settings;
        let mut node = node(settings, parts, self.interests, listening, websockets, counts, self.probes);
        (node.tags, node.in_force) = (self.tags, InForce::new(settings, &configuration.sources));
        (self.threads, node, self.anchors, self.inbox)
    }
}

/// What a router has taken from another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenFrom {
    /// Faces.
    pub faces: u64,
    /// Routes.
    pub routes: u64,
    /// How long no program used the sockets.
    pub stall: Duration,
}

/// Waits until the other program uses no socket any more; what it had stored follows.
fn goes_on(
    handed: Handed,
    (faces, routes): (u64, u64),
    events: &mpsc::UnboundedSender<ToControl>,
) -> Result<TakenFrom, StartError> {
    let frozen_unix_us = handed.node.frozen_unix_us;
    let line = handed.into_line();
    line.wait_for_go(faces, routes)?;
    let events = events.clone();
    line.pass_stored(move |data| {
        let (done, is_done) = sync_channel(1);
        // Otherwise the router has stopped.
        events.send(ToControl::Stored { data, done }).is_ok() && is_done.recv().is_ok()
    });
    Ok(TakenFrom { faces, routes, stall: Duration::from_micros(unix_us().saturating_sub(frozen_unix_us)) })
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
fn observer(
    settings: &Settings,
    handed: impl FnMut(SocketAddr) -> Option<TcpListener>,
) -> io::Result<Option<Observer>> {
    let ObserveSection { listen, page, trace, peers } = settings.observe.clone();
    let config = ObserveConfig { listen, page, trace, peers };
    (!config.listen.is_empty()).then(|| Observer::bind_or_take(&config, handed)).transpose()
}

/// What management knows of the listeners.
fn listening(faces: &FacesSection, listeners: &Listeners, sockets: Vec<(Listener, OwnedFd)>) -> Listening {
    Listening {
        sockets,
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
        lanes: LaneFaces::new(parts.shards_bytes, Arc::clone(&workers), settings.router.workers.into()),
        faces: Faces::new(parts, defaults),
        link_states: LinkStates::default(),
        links: LinkFaces::new(faces.multicast.clone(), faces.ethernet.clone()),
        listening,
        websockets,
        cs: ContentStores::new(Arc::clone(&workers), settings.router.workers.into(), cs),
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
        process: ProcessDesk::default(),
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
    Ok(Arc::new(Shared::new(fib, Arc::new(dispatcher), settings.router.threads())))
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
    /// Starts the control thread, which ends the workers when it ends. It waits for [`ControlThread::begin`].
    fn spawn(
        self,
        runtime: Runtime,
        acceptors: Acceptors,
        accepts: Arc<AcceptCounters>,
        inbox: ControlInbox,
    ) -> Result<ControlThread, StartError> {
        // All other threads run, and have what they need.
        self.control.add_pool(self.descriptors.count());
        let (begin, begins) = sync_channel::<()>(1);
        let run = move || {
            let Threads { control, workers, descriptors } = { self };
            if begins.recv().is_ok() {
                let local = tokio::task::LocalSet::new();
                local.block_on(&runtime, async move {
                    acceptors.serve(control.events(), &accepts, &descriptors);
                    control.run(inbox).await;
                });
            } else {
                drop(control);
            }
            drop(workers);
        };
        let thread = thread::Builder::new().name("nw-control".to_owned()).spawn(run).map_err(StartError::Thread)?;
        Ok(ControlThread { begin: Some(begin), thread: Some(thread) })
    }
}

/// The control thread before it serves anyone. Dropping it ends the thread.
struct ControlThread {
    begin: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlThread {
    /// Lets it serve.
    fn begin(&mut self) -> Option<JoinHandle<()>> {
        // The thread waits for it.
        self.begin.take().into_iter().for_each(|begin| _ = begin.send(()));
        self.thread.take()
    }
}

impl Drop for ControlThread {
    fn drop(&mut self) {
        self.begin = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // fails only if it panicked, which was reported then
        }
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
