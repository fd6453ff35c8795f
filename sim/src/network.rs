//! Network: nodes, links and applications under one virtual clock.
//!
//! Everything that takes time is an event: a frame on a link, a batch of a worker, a timer, a call of an application,
//! an action of the test. A packet crosses the NDNLPv2 link service at both ends of every link, so links carry frames:
//! whole packets or fragments.
//!
//! Cost: one heap operation per event; memory grows with the number of events in flight. Limit:
//! [`Network::set_event_limit`], so that a network that never becomes idle fails instead of hanging.

mod interruptions;
mod link_failure;
mod recovery;
mod tags;

pub use link_failure::LinkFailure;

use crate::application::{AppIo, Application};
use crate::event_queue::EventQueue;
use crate::link::{LinkDirection, LinkLoss, LinkOptions, LinkTally};
use crate::router::{Consequences, NodeOptions, Router};
use crate::tag_node::START_NS;
use crate::trace::{NodeId, Trace, TraceEvent, TraceKind, packet_name};
use fastrand::Rng;
use namewire_engine::{Counters, Engine, FaceId, FaceScope, Strategy};
use namewire_links::{LinkCounters, LinkDrop, LinkOptions as LinkServiceOptions, LinkPolicy, LinkService, Received};
use namewire_management::HolderId;
use namewire_packet::lp::LpHeaders;
use namewire_packet::{MAX_PACKET_BYTES, NameBuf};
use namewire_testbed::Sent;
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Events of one run, unless [`Network::set_event_limit`] says otherwise.
const DEFAULT_EVENT_LIMIT: u64 = 50_000_000;

/// Delay between an application and its router, as of a Unix socket.
const APPLICATION_DELAY_NS: u64 = 10_000;

/// Where the numbers of hosts that are no nodes begin.
const HOSTS: usize = 2048;

/// The holder that a neighbour is. Numbers from 256 on are those of remote holders.
fn holder_of_host(number: usize) -> HolderId {
    HolderId::from_index(256 + number).unwrap_or(HolderId::ANY_REMOTE)
}

/// The holder that a local application is. Numbers from 1 to 255 are those of local holders.
fn holder_of_user(number: usize) -> HolderId {
    HolderId::from_index(2 + number % 250).unwrap_or(HolderId::ANY_LOCAL)
}

/// Identifies a link of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

/// Identifies an application of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(usize);

/// A link between two nodes, created by [`Network::connect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The link.
    pub link: LinkId,
    /// Face of the first node.
    pub face_a: FaceId,
    /// Face of the second node.
    pub face_b: FaceId,
}

/// An application on a node, created by [`Network::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The application.
    pub app: AppId,
    /// The node's face towards it.
    pub face: FaceId,
}

/// The reason why a run ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// No event is scheduled.
    Idle,
    /// The given time was reached.
    TimeReached,
    /// The event limit was reached: the network does not become idle.
    EventLimit,
}

/// Position of one end of a link.
#[derive(Clone, Copy, Debug)]
enum Place {
    Face(NodeId, FaceId),
    App(AppId),
}

struct LinkEnd {
    place: Place,
    service: LinkService,
    /// When a call of the service's `expire` is scheduled.
    expire_at_ns: u64,
    /// When a call of the service's `pump` is scheduled.
    pump_at_ns: u64,
}

/// `directions[i]` leads away from `ends[i]`.
struct Link {
    ends: [LinkEnd; 2],
    directions: [LinkDirection; 2],
    state: link_failure::LinkState,
}

struct PlacedApp {
    node: NodeId,
    link: LinkId,
    rng: Rng,
    application: Box<dyn Application>,
}

/// End 0 or 1 of a link.
#[derive(Clone, Copy)]
struct End(LinkId, usize);

impl End {
    fn opposite(self) -> End {
        End(self.0, 1 - self.1)
    }
}

enum Event {
    StartApplication(AppId),
    WakeApplication(AppId),
    ApplicationSends(AppId, LpHeaders, Vec<u8>),
    FrameArrives { at: End, frame: Rc<[u8]>, name: Option<Rc<NameBuf>> },
    ExpireFragments(End),
    PumpLink(End),
    LinkError(End),
    LinkMended(End),
    RunBatch(NodeId, u8),
    RunTimers(NodeId, u8),
    RunTags(NodeId),
    Act(Box<dyn FnOnce(&mut Network)>),
}

/// A simulated network.
pub struct Network {
    queue: EventQueue<Event>,
    nodes: Vec<Router>,
    links: Vec<Link>,
    apps: Vec<PlacedApp>,
    /// Link ends of each node's faces, by node and by face number from the first dynamic one.
    face_ends: Vec<Vec<End>>,
    /// By node, until when it stands still.
    stands_until_ns: Vec<u64>,
    /// For each packet that was sent to no face, its node.
    sent_to_no_face: Vec<NodeId>,
    trace: Trace,
    seed: u64,
    event_limit: u64,
}

impl Network {
    /// An empty network. All its events depend only on `seed` and on the calls made; the first `trace_limit` events are
    /// kept.
    pub fn new(seed: u64, trace_limit: usize) -> Self {
        Network {
            queue: EventQueue::new(START_NS),
            nodes: Vec::new(),
            links: Vec::new(),
            apps: Vec::new(),
            face_ends: Vec::new(),
            stands_until_ns: Vec::new(),
            sent_to_no_face: Vec::new(),
            trace: Trace::new(trace_limit),
            seed,
            event_limit: DEFAULT_EVENT_LIMIT,
        }
    }

    /// Sets the most events of one run.
    pub fn set_event_limit(&mut self, events: u64) {
        self.event_limit = events;
    }

    /// Virtual time.
    pub fn now_ns(&self) -> u64 {
        self.queue.now_ns()
    }

    /// Adds a router without routes, with best-route everywhere.
    pub fn add_node(&mut self, options: NodeOptions) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Router::new(id, options, self.sub_seed(b'n', id.0)));
        self.face_ends.push(Vec::new());
        self.stands_until_ns.push(0);
        id
    }

    /// Joins two nodes by a link with the same options in both directions.
    pub fn connect(&mut self, a: NodeId, b: NodeId, options: LinkOptions) -> Connection {
        let tokens = !options.drops_pit_tokens;
        let face_a = self.nodes[a.0].add_face(FaceScope::NonLocal, tokens, holder_of_host(b.0));
        let face_b = self.nodes[b.0].add_face(FaceScope::NonLocal, tokens, holder_of_host(a.0));
        let policy = LinkPolicy { reliability: options.reliability, ..LinkPolicy::default() };
        let service =
            LinkServiceOptions { fragmentation: true, mtu: options.mtu, policy, ..LinkServiceOptions::default() };
        let link = self.add_link([Place::Face(a, face_a), Place::Face(b, face_b)], options, service);
        self.face_ends[a.0].push(End(link, 0));
        self.face_ends[b.0].push(End(link, 1));
        for (node, face) in [(a, face_a), (b, face_b)] {
            let consequences = self.nodes[node.0].neighbour_up(self.queue.now_ns(), face);
            self.carry_out(node, consequences);
        }
        Connection { link, face_a, face_b }
    }

    /// Puts an application on a node, as a user of its own. It starts when the run continues.
    pub fn attach(&mut self, node: NodeId, application: impl Application) -> Attachment {
        let user = holder_of_user(self.apps.len());
        self.attach_as(node, FaceScope::Local, user, application)
    }

    /// The same, but on another host: hosts with different numbers, and the nodes of the network, are different holders
    /// of what the node shares. An application with several faces to a node is attached several times.
    pub fn attach_host(&mut self, node: NodeId, host: usize, application: impl Application) -> Attachment {
        self.attach_as(node, FaceScope::NonLocal, holder_of_host(HOSTS + host), application)
    }

    fn attach_as(
        &mut self,
        node: NodeId,
        scope: FaceScope,
        holder: HolderId,
        application: impl Application,
    ) -> Attachment {
        let app = AppId(self.apps.len());
        // No tokens until the application has sent NDNLPv2.
        let face = self.nodes[node.0].add_face(scope, false, holder);
        let options = LinkOptions { delay_ns: APPLICATION_DELAY_NS, mtu: MAX_PACKET_BYTES, ..LinkOptions::default() };
        let service = LinkServiceOptions::default();
        let link = self.add_link([Place::Face(node, face), Place::App(app)], options, service);
        self.face_ends[node.0].push(End(link, 0));
        let rng = Rng::with_seed(self.sub_seed(b'a', app.0));
        self.apps.push(PlacedApp { node, link, rng, application: Box::new(application) });
        self.queue.schedule(self.now_ns(), Event::StartApplication(app));
        Attachment { app, face }
    }

    fn add_link(&mut self, places: [Place; 2], options: LinkOptions, service: LinkServiceOptions) -> LinkId {
        let id = LinkId(self.links.len());
        let directions = [0, 1].map(|direction| LinkDirection::new(options, self.sub_seed(b'l', 2 * id.0 + direction)));
        let ends = places.map(|place| LinkEnd {
            place,
            service: LinkService::new(service),
            expire_at_ns: u64::MAX,
            pump_at_ns: u64::MAX,
        });
        self.links.push(Link { ends, directions, state: Default::default() });
        id
    }

    /// A seed for one part, so that parts do not share a random sequence.
    fn sub_seed(&self, kind: u8, index: usize) -> u64 {
        let mut rng =
            Rng::with_seed(self.seed ^ u64::from(kind) << 56 ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.u64(..)
    }

    /// Adds a route on a node; longer prefixes inherit it. Pending Interests may use it at once.
    pub fn add_route(&mut self, node: NodeId, prefix: &str, face: FaceId, cost: u64) {
        let now_ns = self.now_ns();
        let consequences = self.nodes[node.0].add_route(now_ns, &parse(prefix), face, cost);
        self.carry_out(node, consequences);
    }

    /// The application at `face` announces a prefix for `expiration_ms`, as by `rib/announce`.
    pub fn announce(&mut self, node: NodeId, prefix: &str, face: FaceId, expiration_ms: u64) {
        let now_ns = self.now_ns();
        let consequences = self.nodes[node.0].announce(now_ns, &parse(prefix), face, expiration_ms);
        self.carry_out(node, consequences);
    }

    /// Sets the strategy of a prefix on a node, by its short name, for example `multicast`, or by its whole name with
    /// parameters.
    pub fn set_strategy(&mut self, node: NodeId, prefix: &str, strategy: &str) {
        self.nodes[node.0].set_strategy(&parse(prefix), strategy);
    }

    /// Sets a strategy that the engine does not have, under a name of its own.
    pub fn set_own_strategy(&mut self, node: NodeId, prefix: &str, name: &str, strategy: Arc<dyn Strategy>) {
        self.nodes[node.0].set_own_strategy(&parse(prefix), parse(name), strategy);
    }

    /// Removes a face of a node as if its socket had closed, with its routes and records.
    pub fn remove_face(&mut self, node: NodeId, face: FaceId) {
        let now_ns = self.now_ns();
        let consequences = self.nodes[node.0].remove_face(now_ns, face);
        self.carry_out(node, consequences);
    }

    /// Cuts or mends a link. The nodes get no notice.
    pub fn set_link_up(&mut self, link: LinkId, up: bool) {
        for direction in &mut self.links[link.0].directions {
            direction.set_up(up);
        }
    }

    /// Sets the probability that a frame vanishes, in both directions.
    pub fn set_loss(&mut self, link: LinkId, loss: f64) {
        for direction in &mut self.links[link.0].directions {
            direction.set_loss(loss);
        }
    }

    /// Schedules an action of the test.
    pub fn at(&mut self, at_ns: u64, action: impl FnOnce(&mut Network) + 'static) {
        self.queue.schedule(at_ns, Event::Act(Box::new(action)));
    }

    /// Runs for `duration_ns` of virtual time.
    pub fn run_for(&mut self, duration_ns: u64) -> RunEnd {
        let until_ns = self.now_ns() + duration_ns;
        for _ in 0..self.event_limit {
            match self.queue.next_until(until_ns) {
                Some(event) => self.handle(event),
                None if self.queue.is_empty() => return RunEnd::Idle,
                None => return RunEnd::TimeReached,
            }
        }
        RunEnd::EventLimit
    }

    fn handle(&mut self, event: Event) {
        let Some(event) = self.unless_standing(event) else { return };
        match event {
            Event::StartApplication(app) => self.call(app, |application, io| application.start(io)),
            Event::WakeApplication(app) => self.call(app, |application, io| application.wake(io)),
            Event::ApplicationSends(app, headers, packet) => {
                let end = End(self.apps[app.0].link, 1);
                self.send_packet(end, &headers, &packet);
            }
            Event::FrameArrives { at, frame, name } => self.frame_arrives(at, &frame, name),
            Event::ExpireFragments(end) => self.expire_fragments(end),
            Event::PumpLink(end) => self.pump_link(end),
            Event::LinkError(end) => self.link_error(end),
            Event::LinkMended(end) => self.link_mended(end),
            Event::RunBatch(node, worker) => {
                let now_ns = self.now_ns();
                let consequences = self.nodes[node.0].run_batch(worker, now_ns, &mut self.trace);
                self.carry_out(node, consequences);
            }
            Event::RunTimers(node, worker) => {
                let now_ns = self.now_ns();
                let consequences = self.nodes[node.0].run_timers(worker, now_ns, &mut self.trace);
                self.carry_out(node, consequences);
            }
            Event::RunTags(node) => {
                let consequences = self.nodes[node.0].run_tags(self.queue.now_ns());
                self.carry_out(node, consequences);
            }
            Event::Act(action) => action(self),
        }
    }

    fn call(&mut self, app: AppId, call: impl FnOnce(&mut dyn Application, &mut AppIo<'_>)) {
        let placed = &mut self.apps[app.0];
        let mut io = AppIo::new(self.queue.now_ns(), &mut placed.rng);
        call(&mut *placed.application, &mut io);
        let AppIo { sent, wake_at_ns, .. } = io;
        for (at_ns, headers, packet) in sent {
            self.queue.schedule(at_ns, Event::ApplicationSends(app, headers, packet));
        }
        for at_ns in wake_at_ns {
            self.queue.schedule(at_ns, Event::WakeApplication(app));
        }
    }

    fn carry_out(&mut self, node: NodeId, consequences: Consequences) {
        for (worker, at_ns) in consequences.batches {
            self.queue.schedule(at_ns, Event::RunBatch(node, worker));
        }
        for (worker, at_ns) in consequences.timers {
            self.queue.schedule(at_ns, Event::RunTimers(node, worker));
        }
        if let Some(at_ns) = consequences.tags_at_ns {
            self.queue.schedule(at_ns, Event::RunTags(node));
        }
        for Sent { face, headers, wire: packet } in consequences.sent {
            match self.end_of(node, face) {
                Some(end) => self.send_packet(end, &headers, &packet),
                None => {
                    self.sent_to_no_face.push(node);
                    let name = packet_name(headers.packet(&packet));
                    self.record(node, face, TraceKind::LinkDropped(LinkDrop::NoSuchFace), name);
                }
            }
        }
    }

    /// The link end of a face; `None` for removed faces and faces without a link (management).
    fn end_of(&self, node: NodeId, face: FaceId) -> Option<End> {
        self.nodes[node.0].faces().get(face)?;
        let index = face.0.checked_sub(FaceId::FIRST_DYNAMIC.0)?;
        self.face_ends[node.0].get(index as usize).copied()
    }

    /// Passes a network packet to the link service of `end`, and its frames to the link.
    fn send_packet(&mut self, end: End, headers: &LpHeaders, packet: &[u8]) {
        let name = packet_name(headers.packet(packet));
        self.record_at(end, TraceKind::Sent, name.clone());
        let now_ns = self.now_ns();
        let mut frames: Vec<Rc<[u8]>> = Vec::new();
        let Link { ends, directions, .. } = &mut self.links[end.0.0];
        let headers = &directions[end.1].let_through(headers);
        let encoded = ends[end.1].service.encode(now_ns, headers, packet, |header, slice| {
            frames.push([header, slice].concat().into());
        });
        self.send_frames(end, frames, &name);
        if let Err(reason) = encoded {
            self.record_at(end, TraceKind::LinkDropped(reason), name);
        }
        self.schedule_pump(end);
    }

    /// Passes frames to the link; `name` is their packet's name, if they have a packet.
    fn send_frames(&mut self, end: End, frames: Vec<Rc<[u8]>>, name: &Option<Rc<NameBuf>>) {
        let now_ns = self.now_ns();
        let direction = &mut self.links[end.0.0].directions[end.1];
        let mut losses: Vec<LinkLoss> = Vec::new();
        for frame in frames {
            self.trace.digest_frame(&frame);
            match direction.send(now_ns, frame.len()) {
                Ok(arrivals) => {
                    for at_ns in [Some(arrivals.first_ns), arrivals.second_ns].into_iter().flatten() {
                        let (frame, name) = (Rc::clone(&frame), name.clone());
                        self.queue.schedule(at_ns, Event::FrameArrives { at: end.opposite(), frame, name });
                    }
                }
                Err(loss) => losses.push(loss),
            }
        }
        for loss in losses {
            self.record_at(end, TraceKind::LinkLost(loss), name.clone());
            self.note_link_loss(end);
        }
    }

    fn frame_arrives(&mut self, at: End, frame: &[u8], name: Option<Rc<NameBuf>>) {
        let now_ns = self.now_ns();
        let Link { ends, directions, .. } = &mut self.links[at.0.0];
        if !directions[1 - at.1].arrive() {
            return self.record_at(at.opposite(), TraceKind::LinkLost(LinkLoss::Down), name);
        }
        let (place, service) = (ends[at.1].place, &mut ends[at.1].service);
        let evicted_before = service.counters().drops[LinkDrop::ReassemblyEvicted as usize];
        let received = match service.receive(now_ns, frame) {
            Ok(Received::Packet { headers, start, len }) => Some((headers, frame[start..start + len].to_vec())),
            Ok(Received::Reassembled { headers, packet }) => Some((headers, packet.to_vec())),
            Ok(Received::Incomplete | Received::Idle) => None,
            Err(reason) => {
                self.record_at(at, TraceKind::LinkDropped(reason), name.clone());
                None
            }
        };
        let service = &self.links[at.0.0].ends[at.1].service;
        let evicted = service.counters().drops[LinkDrop::ReassemblyEvicted as usize] - evicted_before;
        for _ in 0..evicted {
            self.record_at(at, TraceKind::LinkDropped(LinkDrop::ReassemblyEvicted), None);
        }
        self.schedule_expiry(at);
        self.schedule_pump(at);
        let Some((headers, packet)) = received else { return };
        match place {
            Place::Face(node, face) => self.router_receives(at, node, face, headers, packet),
            Place::App(app) => {
                self.record_at(at, TraceKind::Received, name);
                self.call(app, |application, io| application.receive(io, &headers, headers.packet(&packet)));
            }
        }
    }

    fn router_receives(&mut self, at: End, node: NodeId, face: FaceId, headers: LpHeaders, packet: Vec<u8>) {
        let now_ns = self.now_ns();
        let link = &self.links[at.0.0];
        let takes_tokens = link.ends[at.1].service.peer_speaks_lp() && link.directions[at.1].takes_tokens();
        let consequences = self.nodes[node.0].accept(now_ns, face, headers, packet, takes_tokens);
        self.carry_out(node, consequences);
    }

    fn schedule_expiry(&mut self, end: End) {
        let state = &mut self.links[end.0.0].ends[end.1];
        if let Some(deadline_ns) = state.service.next_deadline_ns()
            && deadline_ns < state.expire_at_ns
        {
            state.expire_at_ns = deadline_ns;
            self.queue.schedule(deadline_ns, Event::ExpireFragments(end));
        }
    }

    fn expire_fragments(&mut self, end: End) {
        let now_ns = self.now_ns();
        let state = &mut self.links[end.0.0].ends[end.1];
        if state.expire_at_ns > now_ns {
            return; // replaced by a later one
        }
        state.expire_at_ns = u64::MAX;
        let before = state.service.counters().drops[LinkDrop::ReassemblyTimeout as usize];
        state.service.expire(now_ns);
        let given_up = state.service.counters().drops[LinkDrop::ReassemblyTimeout as usize] - before;
        for _ in 0..given_up {
            self.record_at(end, TraceKind::LinkDropped(LinkDrop::ReassemblyTimeout), None);
        }
        self.schedule_expiry(end);
    }

    fn record_at(&mut self, end: End, kind: TraceKind, name: Option<Rc<NameBuf>>) {
        match self.links[end.0.0].ends[end.1].place {
            Place::Face(node, face) => self.record(node, face, kind, name),
            // An application is identified by the node and face at its other end.
            Place::App(_) => match self.links[end.0.0].ends[1 - end.1].place {
                Place::Face(node, _) => self.record(node, FaceId::INVALID, kind, name),
                Place::App(_) => unreachable!("one end of every link is a node's"),
            },
        }
    }

    fn record(&mut self, node: NodeId, face: FaceId, kind: TraceKind, name: Option<Rc<NameBuf>>) {
        let at_ns = self.now_ns();
        self.trace.record(TraceEvent { at_ns, node, face, kind, name });
    }

    /// The events so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Counters of a node, its workers together.
    pub fn counters(&self, node: NodeId) -> Counters {
        self.nodes[node.0].counters()
    }

    /// PIT entries that a node took from holders with many, for others.
    pub fn displaced_entries(&self, node: NodeId) -> u64 {
        self.nodes[node.0].displaced()
    }

    /// The engines of a node, one per worker.
    pub fn engines(&self, node: NodeId) -> impl Iterator<Item = &Engine> {
        self.nodes[node.0].engines()
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// Link-service counters of a node's face.
    ///
    /// # Panics
    /// If the node never had this face.
    pub fn face_counters(&self, node: NodeId, face: FaceId) -> &LinkCounters {
        let End(link, end) = self.face_ends[node.0][(face.0 - FaceId::FIRST_DYNAMIC.0) as usize];
        self.links[link.0].ends[end].service.counters()
    }

    /// Link-service counters of all faces a node ever had.
    pub(crate) fn all_face_counters(&self, node: NodeId) -> impl Iterator<Item = &LinkCounters> {
        self.face_ends[node.0].iter().map(|&End(link, end)| self.links[link.0].ends[end].service.counters())
    }

    pub(crate) fn sent_to_no_face(&self, node: NodeId) -> u64 {
        self.sent_to_no_face.iter().filter(|&&at| at == node).count() as u64
    }

    /// Both directions of every link, including links to applications.
    pub fn link_tallies(&self) -> impl Iterator<Item = &LinkTally> {
        self.links.iter().flat_map(|link| &link.directions).map(LinkDirection::tally)
    }

    /// The two directions of a link.
    pub fn link_tally(&self, link: LinkId) -> [LinkTally; 2] {
        self.links[link.0].directions.each_ref().map(|direction| *direction.tally())
    }

    /// An application as its type.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn application<A: Application>(&self, app: AppId) -> &A {
        let application: &dyn Any = &*self.apps[app.0].application;
        application.downcast_ref().expect("the application is of this type")
    }

    /// The node of an application.
    pub fn node_of(&self, app: AppId) -> NodeId {
        self.apps[app.0].node
    }
}

fn parse(prefix: &str) -> NameBuf {
    prefix.parse().unwrap_or_else(|error| panic!("{prefix} is no name: {error}"))
}
