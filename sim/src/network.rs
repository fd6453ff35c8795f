//! Network: nodes, links and applications under one virtual clock.
//!
//! Everything that takes time is an event: a frame on a link, a batch of a worker, a timer, a call of an application,
//! an action of the test. A packet crosses the NDNLPv2 link service at both ends of every link, so links carry frames:
//! whole packets or fragments.
//!
//! Cost: one heap operation per event; memory grows with the number of events in flight. Limit:
//! [`Network::set_event_limit`], so that a network that never becomes idle fails instead of hanging.

mod air;
mod frames;
mod interruptions;
mod link_failure;
mod recovery;
mod tags;

pub use link_failure::LinkFailure;

use crate::air::{Air, Track};
use crate::application::{AppIo, Application};
use crate::event_queue::EventQueue;
use crate::link::{LinkDirection, LinkOptions, LinkTally};
use crate::router::{Consequences, NodeOptions, Router};
use crate::tag_node::START_NS;
use crate::trace::{NodeId, Trace, TraceEvent, TraceKind};
use fastrand::Rng;
use namewire_engine::{Counters, Engine, FaceId, FaceScope, LinkType, Strategy};
use namewire_links::{LinkCounters, LinkDrop, LinkOptions as LinkServiceOptions, LinkPolicy, LinkService};
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

struct Link {
    ends: Vec<LinkEnd>,
    carrier: Carrier,
    tap: Option<FrameTap>,
}

/// Sees each frame that is given to a link: the time in nanoseconds, the number of the end that sends, and the bytes.
pub type FrameTap = Box<dyn FnMut(u64, usize, &[u8])>;

/// What carries the frames of a link.
enum Carrier {
    Wire(Box<Wire>),
    Air(Box<Air>),
}

/// `directions[i]` leads away from `ends[i]`.
struct Wire {
    directions: [LinkDirection; 2],
    state: link_failure::LinkState,
}

impl LinkEnd {
    fn new(place: Place, service: LinkServiceOptions) -> Self {
        LinkEnd { place, service: LinkService::new(service), expire_at_ns: u64::MAX, pump_at_ns: u64::MAX }
    }
}

struct PlacedApp {
    node: NodeId,
    link: LinkId,
    rng: Rng,
    application: Box<dyn Application>,
}

/// A link and the number of its end. A wire has two ends, air one for each node.
#[derive(Clone, Copy)]
struct End(LinkId, usize);

impl End {
    /// The other end of a wire.
    fn opposite(self) -> End {
        End(self.0, 1 - self.1)
    }
}

impl Link {
    /// The wire, if it is one.
    fn wire(&self) -> Option<&Wire> {
        match &self.carrier {
            Carrier::Wire(wire) => Some(wire),
            Carrier::Air(_) => None,
        }
    }

    fn wire_mut(&mut self) -> Option<&mut Wire> {
        match &mut self.carrier {
            Carrier::Wire(wire) => Some(wire),
            Carrier::Air(_) => None,
        }
    }
}

enum Event {
    StartApplication(AppId),
    WakeApplication(AppId),
    ApplicationSends(AppId, LpHeaders, Vec<u8>),
    FrameArrives { at: End, frame: Vec<u8>, name: Option<Rc<NameBuf>> },
    TryAir(End),
    AirFrameEnds(LinkId, u64),
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
    /// Where nodes are.
    tracks: Vec<Track>,
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
            tracks: Vec::new(),
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
        let face_a = self.nodes[a.0].add_face(FaceScope::NonLocal, LinkType::PointToPoint, tokens, holder_of_host(b.0));
        let face_b = self.nodes[b.0].add_face(FaceScope::NonLocal, LinkType::PointToPoint, tokens, holder_of_host(a.0));
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
        let face = self.nodes[node.0].add_face(scope, LinkType::PointToPoint, false, holder);
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
        let ends = places.into_iter().map(|place| LinkEnd::new(place, service)).collect();
        let wire = Wire { directions, state: Default::default() };
        self.links.push(Link { ends, carrier: Carrier::Wire(Box::new(wire)), tap: None });
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

    /// Removes a route of [`Network::add_route`].
    pub fn remove_route(&mut self, node: NodeId, prefix: &str, face: FaceId) {
        self.nodes[node.0].remove_route(&parse(prefix), face);
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
        self.change_link(link, |direction| direction.set_up(up));
    }

    /// Sets the probability that a frame vanishes, in both directions.
    pub fn set_loss(&mut self, link: LinkId, loss: f64) {
        self.change_link(link, |direction| direction.set_loss(loss));
    }

    /// Sets the propagation delay of a link, in both directions. Frames on their way arrive as before.
    pub fn set_delay(&mut self, link: LinkId, delay_ns: u64) {
        self.change_link(link, |direction| direction.set_delay(delay_ns));
    }

    /// Sets the rate at which bytes leave, in both directions. Frames that wait leave as before.
    pub fn set_bandwidth(&mut self, link: LinkId, bits_per_s: Option<u64>) {
        self.change_link(link, |direction| direction.set_bandwidth(bits_per_s));
    }

    /// Shows each frame that is given to a link from now on, whether it arrives or not. The first node of a wire is end
    /// 0; nodes on air have the order in which they joined.
    pub fn tap(&mut self, link: LinkId, tap: FrameTap) {
        self.links[link.0].tap = Some(tap);
    }

    /// Changes both directions of a wire.
    fn change_link(&mut self, link: LinkId, change: impl FnMut(&mut LinkDirection)) {
        let wire = self.links[link.0].wire_mut().expect("the link is a wire");
        wire.directions.iter_mut().for_each(change);
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
                self.send_packet(end, &headers, packet);
            }
            Event::FrameArrives { at, frame, name } => self.frame_arrives(at, frame, name),
            Event::TryAir(end) => self.try_air(end),
            Event::AirFrameEnds(link, transmission) => self.air_frame_ends(link, transmission),
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
                Some(end) => self.send_packet(end, &headers, packet),
                None => {
                    self.sent_to_no_face.push(node);
                    let name = self.trace.name_of(headers.packet(&packet));
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

    fn record_at(&mut self, end: End, kind: TraceKind, name: Option<Rc<NameBuf>>) {
        if !self.trace.keeps() {
            return;
        }
        match self.links[end.0.0].ends[end.1].place {
            Place::Face(node, face) => self.record(node, face, kind, name),
            // An application is identified by the node and face at the other end of its wire.
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

    /// Both directions of every wire, including links to applications.
    pub fn link_tallies(&self) -> impl Iterator<Item = &LinkTally> {
        self.links.iter().filter_map(Link::wire).flat_map(|wire| &wire.directions).map(LinkDirection::tally)
    }

    /// The two directions of a link.
    ///
    /// # Panics
    /// If it is air.
    pub fn link_tally(&self, link: LinkId) -> [LinkTally; 2] {
        let wire = self.links[link.0].wire().expect("the link is a wire");
        wire.directions.each_ref().map(|direction| *direction.tally())
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
