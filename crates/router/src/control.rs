//! The control thread: management, listeners, and the life of faces.
//!
//! [`Control::run`] takes one event at a time: a management Interest, something that
//! happened to a face, a timer. Management answers with effects, and
//! [`Control::carry_out`] does them in order.

use crate::{
    RouterConfig, StartError,
    environment::{CsSettings, FaceRecord, Node, unix_ms},
    listeners,
    mesh::{self, Bell},
    messages::{ControlSender, MANAGEMENT_QUEUE, ToControl, ToWorker, WORKER_QUEUE, WorkerSender},
    ring::Doorbell,
    shared::{Shared, SharedTables},
    worker::Worker,
};
use namewire_engine::{Engine, FaceTable, StrategyTable, dispatch::Dispatcher};
use namewire_faces::{DriverConfig, FaceIdAllocator, SocketDriver, tcp, udp, unix};
use namewire_management::{Effect, FibChange, Management, ManagementConfig};
use namewire_packet::{
    FaceId,
    lp::{LpHeaders, PitToken},
    nfd::FaceUri,
};
use namewire_tables::{Fib, HashKey, NameHashes, NextHop};
use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, mpsc::sync_channel},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::mpsc;

/// Starts routers.
pub struct Router;

/// A running router. Dropping it stops it.
pub struct RouterHandle {
    events: mpsc::UnboundedSender<ToControl>,
    control: Option<JoinHandle<()>>,
    socket: Option<PathBuf>,
    tcp: Vec<SocketAddr>,
    udp: Vec<SocketAddr>,
}

impl RouterHandle {
    /// Where applications connect, if a Unix socket was asked for.
    pub fn socket(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    /// Addresses of the TCP listeners, with the ports that were given for port 0.
    pub fn tcp(&self) -> &[SocketAddr] {
        &self.tcp
    }

    /// Addresses of the UDP listeners.
    pub fn udp(&self) -> &[SocketAddr] {
        &self.udp
    }

    /// Sends what is queued, ends all threads and removes the socket.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.events.send(ToControl::Stop);
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        if let Some(socket) = self.socket.take() {
            let _ = std::fs::remove_file(socket);
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
        let secrets = Secrets::new(config.seed)?;
        let listeners = Listeners::open(&config)?;
        let dispatcher = Arc::new(Dispatcher::new(config.workers, secrets.shards));
        let tables = SharedTables {
            fib: Fib::new(config.fib_capacity_entries, secrets.tables),
            strategies: StrategyTable::default(),
            faces: FaceTable::default(),
        };
        let shared = Arc::new(Shared::new(tables, dispatcher));
        let (events, event_queue) = mpsc::unbounded_channel();
        let (interests, interest_queue) = mpsc::channel(MANAGEMENT_QUEUE);
        let sender = ControlSender { events: events.clone(), interests };
        let face_ids = FaceIdAllocator::new();
        let (workers, faceless, worker_threads) =
            start_workers(&config, &secrets, &shared, &sender, &face_ids, &listeners)?;

        let engine = &config.engine;
        let mut node = Node {
            shared,
            faces_per_worker: vec![0; workers.len()],
            workers,
            sender,
            face_ids,
            faces: HashMap::new(),
            udp_listeners: listeners.udp.clone(),
            channels: listeners.channels(),
            cs: CsSettings {
                capacity_bytes: engine.cs_capacity_bytes,
                capacity_packets: engine.cs_capacity_packets,
                admit: engine.cs_admit,
                serve: engine.cs_serve,
            },
            start_unix_ms: unix_ms(),
            pending_local_fields: HashSet::new(),
            retry_pauses: HashMap::new(),
            fib_refusals: 0,
            closed_face_drops: [0; namewire_faces::LinkDrop::COUNT],
            close_counts: HashMap::new(),
            faceless,
        };
        let mut effects = Vec::new();
        let management = Management::new(ManagementConfig::default(), &mut node, &mut effects)?;
        let mut control = Control { management, node, hashes: NameHashes::default() };
        control.carry_out(effects);

        let (socket, tcp, udp) = (config.socket.clone(), listeners.tcp_addresses(), listeners.udp.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("nw-control".to_owned()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                // Registering a listener with the runtime fails only without descriptors;
                // then nobody can connect, which the applications' errors show.
                let _ = listeners.serve(&control.node.sender.events);
                control.run(event_queue, interest_queue).await;
            });
            for worker in worker_threads {
                let _ = worker.join();
            }
        })?;
        Ok(RouterHandle { events, control: Some(thread), socket, tcp, udp })
    }
}

/// Listening sockets, opened before any thread starts so that errors are the caller's.
struct Listeners {
    unix: Option<(std::os::unix::net::UnixListener, PathBuf)>,
    tcp: Vec<std::net::TcpListener>,
    udp: Vec<SocketAddr>,
    /// Per worker, one socket per address: the kernel spreads remotes over them.
    udp_sockets: std::cell::RefCell<Vec<Vec<std::net::UdpSocket>>>,
}

impl Listeners {
    fn open(config: &RouterConfig) -> Result<Self, StartError> {
        let failed = |what: String| move |source| StartError::Listen { what, source };
        let mut udp_addresses = Vec::new();
        let mut udp_sockets: Vec<Vec<std::net::UdpSocket>> = (0..config.workers).map(|_| Vec::new()).collect();
        for &address in &config.udp {
            let mut address = address;
            for (index, sockets) in udp_sockets.iter_mut().enumerate() {
                let what = namewire_faces::face_uri::udp(address);
                let socket = udp::bind_listener(address, index > 0).map_err(failed(what.clone()))?;
                address = socket.local_addr().map_err(failed(what))?;
                sockets.push(socket);
            }
            udp_addresses.push(address);
        }
        let listen_tcp =
            |&address: &SocketAddr| tcp::listen(address).map_err(failed(namewire_faces::face_uri::tcp(address)));
        let tcp = config.tcp.iter().map(listen_tcp).collect::<Result<Vec<_>, _>>()?;
        // Last, so that a failure above leaves no socket file behind.
        let unix = match &config.socket {
            None => None,
            Some(path) => {
                let listener = unix::listen(path).map_err(failed(namewire_faces::face_uri::unix(path)))?;
                Some((listener, path.clone()))
            }
        };
        Ok(Listeners { unix, tcp, udp: udp_addresses, udp_sockets: udp_sockets.into() })
    }

    fn tcp_addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    fn channels(&self) -> Vec<FaceUri> {
        let unix = self.unix.iter().map(|(_, path)| FaceUri::Unix(path.to_string_lossy().into_owned()));
        let tcp = self.tcp_addresses().into_iter().map(FaceUri::tcp);
        unix.chain(tcp).chain(self.udp.iter().copied().map(FaceUri::udp)).collect()
    }

    fn serve(self, events: &mpsc::UnboundedSender<ToControl>) -> io::Result<()> {
        for listener in self.tcp {
            listeners::serve_tcp(listener, events.clone())?;
        }
        if let Some((listener, path)) = self.unix {
            listeners::serve_unix(listener, path, events.clone())?;
        }
        Ok(())
    }
}

type Workers = (Vec<WorkerSender>, Vec<Arc<namewire_faces::FaceCounters>>, Vec<JoinHandle<()>>);

fn start_workers(
    config: &RouterConfig,
    secrets: &Secrets,
    shared: &Arc<Shared>,
    sender: &ControlSender,
    face_ids: &FaceIdAllocator,
    listeners: &Listeners,
) -> Result<Workers, StartError> {
    let mut drivers = Vec::new();
    for sockets in listeners.udp_sockets.borrow_mut().drain(..) {
        let mut driver = SocketDriver::new(DriverConfig {
            udp_idle_timeout: config.udp_idle_timeout,
            max_faces: config.max_faces,
            face_ids: face_ids.clone(),
            ..DriverConfig::default()
        })?;
        for socket in sockets {
            driver.add_udp_listener(socket)?;
        }
        drivers.push(driver);
    }
    let bells: Arc<[Bell]> =
        drivers.iter().map(|driver| Bell { doorbell: Doorbell::new(), waker: driver.waker() }).collect();
    let (mut senders, mut faceless, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (driver, (outbox, inbox))) in drivers.into_iter().zip(mesh::connect(&bells)).enumerate() {
        let (messages, queue) = sync_channel(WORKER_QUEUE);
        senders.push(WorkerSender { messages, waker: driver.waker() });
        faceless.push(driver.faceless_counters());
        let seed = secrets.seed.wrapping_add(index as u64);
        let dispatcher = Arc::clone(&shared.dispatcher);
        let worker = Worker {
            index: index as u8,
            shared: Arc::clone(shared),
            engine: Engine::new(config.engine_per_worker(), index as u8, dispatcher, secrets.tables, seed),
            driver,
            messages: queue,
            control: sender.clone(),
            outbox,
            inbox,
        };
        threads.push(thread::Builder::new().name(format!("nw-worker-{index}")).spawn(move || worker.run())?);
    }
    Ok((senders, faceless, threads))
}

struct Control {
    management: Management,
    node: Node,
    hashes: NameHashes,
}

impl Control {
    async fn run(mut self, mut events: mpsc::UnboundedReceiver<ToControl>, mut interests: mpsc::Receiver<ToControl>) {
        loop {
            let now_ns = self.node.shared.now_ns();
            let until_deadline =
                self.management.next_deadline().map(|at| Duration::from_nanos(at.saturating_sub(now_ns)));
            let event = tokio::select! {
                biased;
                Some(event) = events.recv() => Some(event),
                Some(interest) = interests.recv() => Some(interest),
                () = tokio::time::sleep(until_deadline.unwrap_or(Duration::MAX)), if until_deadline.is_some() => None,
            };
            let mut effects = Vec::new();
            match event {
                Some(ToControl::Stop) => break,
                Some(event) => self.serve(event, &mut effects),
                None => self.management.run_timers(self.node.times(), &mut effects),
            }
            self.carry_out(effects);
        }
        for worker in &self.node.workers {
            worker.send(ToWorker::Stop);
        }
    }

    fn serve(&mut self, event: ToControl, effects: &mut Vec<Effect>) {
        let now = self.node.times();
        match event {
            ToControl::Interest { incoming, pit_token, packet } => {
                self.management.on_interest(now, incoming, &packet, pit_token, &mut self.node, effects);
            }
            ToControl::Accepted { socket, info } => {
                self.node.add_stream(socket, info, None);
            }
            ToControl::FaceAdded { worker, face, ticket, result } => {
                match (ticket, self.node.face_added(worker, face, result)) {
                    (Some(ticket), result) => self.management.on_face_command_done(now, ticket, result, effects),
                    (None, Ok(properties)) => self.management.on_face_created(now, properties, effects),
                    (None, Err(_)) => {} // the connection was closed: the peer notices
                }
            }
            ToControl::FaceMade { worker, face, info, counters } => {
                self.node.faces_per_worker[usize::from(worker)] += 1;
                self.node.faces.insert(face, FaceRecord { worker, info, counters, local_fields: false });
                if let Some(properties) = self.node.properties(face) {
                    self.management.on_face_created(now, properties, effects);
                }
            }
            ToControl::FaceClosed { face, reason } => {
                self.node.count_closed(reason);
                self.close_face(face, effects);
            }
            ToControl::FaceDown { face, reason } => {
                self.node.count_closed(reason);
                self.node.face_down(face);
            }
            ToControl::Retry { face } => self.node.retry(face),
            ToControl::Connected { request, result } => {
                if let Some((ticket, error)) = self.node.connected(*request, result) {
                    self.management.on_face_command_done(now, ticket, Err(error), effects);
                }
            }
            ToControl::Stop => {}
        }
    }

    fn close_face(&mut self, face: FaceId, effects: &mut Vec<Effect>) {
        if self.node.forget_face(face) {
            let now = self.node.times();
            self.management.on_face_closed(now, face, effects);
        }
    }

    /// Does what management decided, in order; what follows from it (the answer to a
    /// face command) comes right behind.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let mut more = Vec::new();
            match effect {
                Effect::Reply { packet, pit_token } => self.reply(packet, pit_token),
                Effect::Fib(changes) => self.change_fib(changes),
                Effect::NewNextHops(gained) => {
                    let gained = Arc::new(gained);
                    for worker in &self.node.workers {
                        worker.send(ToWorker::NewNextHops(Arc::clone(&gained)));
                    }
                }
                Effect::CreateFace(create) => {
                    if let Err(error) = self.node.create_face(&create) {
                        let now = self.node.times();
                        self.management.on_face_command_done(now, create.ticket, Err(error), &mut more);
                    }
                }
                Effect::UpdateFace(update) => {
                    let result = self.node.update_face(&update);
                    let now = self.node.times();
                    self.management.on_face_command_done(now, update.ticket, result, &mut more);
                }
                Effect::DestroyFace { ticket, face } => {
                    let properties = self.node.properties(face).ok_or_else(|| namewire_management::FaceCommandError {
                        code: 404,
                        text: "Face not found".to_owned(),
                        body: None,
                    });
                    if let Some(record) = self.node.faces.get(&face) {
                        self.node.worker(record.worker).send(ToWorker::RemoveFace { face });
                    }
                    let now = self.node.times();
                    self.management.on_face_command_done(now, ticket, properties, &mut more);
                    self.close_face(face, &mut more);
                }
                Effect::ConfigureCs { capacity_packets, admit, serve } => {
                    self.configure_cs(capacity_packets, admit, serve);
                }
            }
            self.carry_out(more);
        }
    }

    /// A reply goes to the worker whose engine sent the Interest here.
    fn reply(&mut self, packet: Vec<u8>, pit_token: Option<PitToken>) {
        let headers = LpHeaders { pit_token, ..LpHeaders::default() };
        let workers = self.node.shared.dispatcher.route(0, &headers, &packet, &mut self.hashes);
        for worker in workers.iter() {
            self.node.worker(worker).send(ToWorker::Packet { packet: packet.clone(), pit_token });
        }
    }

    fn change_fib(&mut self, changes: Vec<FibChange>) {
        let mut tables = self.node.shared.write();
        for change in changes {
            match change {
                FibChange::Insert { name, next_hops, strategy, hidden } => {
                    let next_hops: Vec<NextHop> =
                        next_hops.iter().map(|hop| NextHop { face: hop.face.0, cost: hop.cost }).collect();
                    if tables.fib.insert(name.value(), &next_hops, strategy, hidden).is_err() {
                        self.node.fib_refusals += 1;
                    }
                }
                FibChange::Remove { name } => {
                    tables.fib.remove(name.value());
                }
            }
        }
    }

    fn configure_cs(&mut self, capacity_packets: Option<u64>, admit: Option<bool>, serve: Option<bool>) {
        let cs = &mut self.node.cs;
        cs.capacity_packets = capacity_packets.unwrap_or(cs.capacity_packets);
        cs.admit = admit.unwrap_or(cs.admit);
        cs.serve = serve.unwrap_or(cs.serve);
        let workers = self.node.workers.len() as u64;
        let cs = self.node.cs;
        for worker in &self.node.workers {
            worker.send(ToWorker::ConfigureCs {
                capacity_bytes: cs.capacity_bytes.div_ceil(workers),
                capacity_packets: cs.capacity_packets.div_ceil(workers),
                admit: cs.admit,
                serve: cs.serve,
            });
        }
    }
}
