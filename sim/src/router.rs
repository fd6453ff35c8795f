//! Router: one router of the simulated network.
//!
//! It has the forwarder of `namewire_testbed`, with an inbox for each worker. An inbox replaces the rings between real
//! workers: packets that arrive while a worker is busy are its next batch. Tag packets go to its [`TagNode`].

use crate::past_lives::{PastLives, displaced};
use crate::routing::{NewNextHop, RouteNews, Routing};
use crate::tag_node::TagNode;
use crate::trace::{NodeId, Trace, TraceEvent, TraceKind};
use fastrand::Rng;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_engine::{
    BATCH_PACKETS, Counters, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Instant,
    LinkType, RouteRequest, Schedule, Strategy,
};
use namewire_management::HolderId;
use namewire_management::announcements::MAX_LEARNED_LIFETIME_MS;
use namewire_management::strategy_choice::ResolvedStrategy;
use namewire_packet::NameBuf;
use namewire_packet::lp::LpHeaders;
use namewire_packet::nfd::prefix_announcement::announce_with_digest;
use namewire_tables::{FibConfig, HashKey, pages::PageSize};
use namewire_tagnet::advertisements::AdvertisementRefusal;
use namewire_tagnet::{TagSet, forwarder::Serves, routing::TagRoutingConfig};
use namewire_testbed::{Arrival, Decided, Forwarder, Sent};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Settings of one router.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Number of workers, 1 to 64.
    pub workers: u8,
    /// Settings of each worker's engine.
    pub engine: EngineConfig,
    /// Most packets of one batch, at most [`BATCH_PACKETS`]. With 1, every drop is traced by name.
    pub batch_packets: usize,
    /// Time from the arrival of a packet to its batch; with 0, and no jitter, each packet is a batch.
    pub processing_ns: u64,
    /// Additional time, uniform from 0 to this, which mixes the batches of several workers.
    pub processing_jitter_ns: u64,
    /// Most FIB entries.
    pub fib_capacity_entries: usize,
    /// The design that holds the FIB.
    pub fib_design: FibDesign,
    /// How the router takes part in TagNet, if it does.
    pub tagnet: Option<TagRoutingConfig>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            workers: 1,
            // Most batches have one packet, and most tables are nearly empty.
            engine: EngineConfig { schedule: Schedule::Naive, pages: PageSize::Base, ..EngineConfig::default() },
            batch_packets: BATCH_PACKETS,
            processing_ns: 1_000,
            processing_jitter_ns: 0,
            fib_capacity_entries: 4096,
            fib_design: FibDesign::default(),
            tagnet: None,
        }
    }
}

pub(crate) struct Router {
    id: NodeId,
    options: NodeOptions,
    forwarder: Forwarder,
    queues: Vec<WorkerQueue>,
    next_face: u64,
    routing: Routing,
    pub(crate) tags: TagNode,
    rng: Rng,
    key: HashKey,
    pub(crate) past: PastLives,
}

/// A packet from a link or an application.
pub(crate) struct ReceivedPacket {
    pub(crate) face: FaceId,
    pub(crate) headers: LpHeaders,
    pub(crate) packet: Vec<u8>,
    /// The peer has shown that it takes PIT tokens.
    pub(crate) takes_tokens: bool,
}

/// What waits for a worker.
struct WorkerQueue {
    inbox: VecDeque<Arrival>,
    /// A batch is scheduled; packets that arrive before it join it.
    batch_scheduled: bool,
    /// When the earliest scheduled timer event fires.
    timer_at_ns: u64,
}

impl Router {
    pub(crate) fn new(id: NodeId, options: NodeOptions, seed: u64) -> Self {
        assert!((1..=BATCH_PACKETS).contains(&options.batch_packets), "batch of {}", options.batch_packets);
        let mut rng = Rng::with_seed(seed);
        let key = HashKey::from_seed(rng.u64(..));
        let mut options = options;
        options.engine.batch_packets = options.batch_packets;
        let mut forwarder = Forwarder::with_key(options.engine.clone(), options.workers.into(), key, rng.u64(..))
            .expect("address space for the tables");
        let (design, settings) = (options.fib_design, FibDesignOptions::default());
        forwarder.fib = design
            .fib(&settings, FibConfig { pages: PageSize::Base, ..FibConfig::new(options.fib_capacity_entries) }, key)
            .expect("memory for the FIB");
        let queue = || WorkerQueue { inbox: VecDeque::new(), batch_scheduled: false, timer_at_ns: u64::MAX };
        let best_route = resolve(&mut forwarder, "best-route");
        Router {
            id,
            forwarder,
            queues: (0..options.workers).map(|_| queue()).collect(),
            next_face: FaceId::FIRST_DYNAMIC.0,
            routing: Routing::new(best_route),
            tags: TagNode::new(options.tagnet.as_ref(), rng.u64(..)),
            rng,
            options,
            key,
            past: PastLives::default(),
        }
    }

    /// Ends and starts again: all state of the engines is lost, and every packet that waits. Faces and routes come back
    /// at once, as from a state file.
    pub(crate) fn restart(&mut self, now_ns: u64) -> Consequences {
        for engine in &self.forwarder.engines {
            self.past.end(engine);
        }
        self.queues.iter_mut().flat_map(|queue| queue.inbox.drain(..)).for_each(|arrival| self.past.lose(&arrival));
        let seed = self.rng.u64(..);
        self.at(now_ns);
        let restarted = self.forwarder.restart(self.options.engine.clone(), self.key, seed);
        restarted.expect("memory for the tables");
        self.consequences(Vec::new())
    }

    /// Moves the timers of a worker from now to a later time; false if they are not due now.
    pub(crate) fn postpone_timers(&mut self, worker: u8, now_ns: u64, until_ns: u64) -> bool {
        let queue = &mut self.queues[usize::from(worker)];
        let is_due = queue.timer_at_ns == now_ns;
        if is_due {
            queue.timer_at_ns = until_ns;
        }
        is_due
    }

    /// Adds a face; its owner workers alternate.
    pub(crate) fn add_face(&mut self, scope: FaceScope, link_type: LinkType, tokens: bool, holder: HolderId) -> FaceId {
        let face = FaceId(self.next_face);
        self.next_face += 1;
        let owner = (face.0 % self.queues.len() as u64) as u8;
        let attributes = FaceAttributes { holder, link_type, ..FaceAttributes::new(scope, owner, tokens) };
        self.forwarder.faces.insert(face, attributes);
        face
    }

    /// Adds a route and offers its new next hops to pending Interests.
    pub(crate) fn add_route(&mut self, now_ns: u64, prefix: &NameBuf, face: FaceId, cost: u64) -> Consequences {
        let new_next_hops = self.routing.add_route(prefix, face, cost, &mut self.forwarder.fib);
        self.show_next_hops(now_ns, new_next_hops)
    }

    /// Removes a route. Interests that wait for an answer from there go on waiting.
    pub(crate) fn remove_route(&mut self, prefix: &NameBuf, face: FaceId) {
        self.routing.remove_route(prefix, face, &mut self.forwarder.fib);
    }

    /// An application at `face` announces a prefix, as by `rib/announce`.
    pub(crate) fn announce(&mut self, now_ns: u64, prefix: &NameBuf, face: FaceId, expiration_ms: u64) -> Consequences {
        let announcement = announce_with_digest(prefix.as_name(), now_ns, expiration_ms);
        self.take_route_news(now_ns, vec![RouteNews::Learned { face, announcement, lifetime_ms_max: u64::MAX }])
    }

    /// Applies what self-learning found, in order: changes of routes and their announcements.
    fn take_route_news(&mut self, now_ns: u64, news: Vec<RouteNews>) -> Consequences {
        let Router { routing, forwarder, .. } = self;
        let new_next_hops = news.into_iter().flat_map(|news| routing.take_news(now_ns, news, &mut forwarder.fib));
        let new_next_hops = new_next_hops.collect();
        forwarder.strategies.set_announcements(Arc::new(routing.announcements()));
        self.show_next_hops(now_ns, new_next_hops)
    }

    /// Offers new next hops to pending Interests.
    fn show_next_hops(&mut self, now_ns: u64, mut new_next_hops: Vec<NewNextHop>) -> Consequences {
        new_next_hops.sort_unstable();
        let sent = self.at(now_ns).new_next_hops(&new_next_hops);
        self.consequences(sent)
    }

    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: &str) {
        let strategy = resolve(&mut self.forwarder, strategy);
        self.routing.set_strategy(prefix, strategy, &mut self.forwarder.fib);
    }

    pub(crate) fn set_own_strategy(&mut self, prefix: &NameBuf, instance: NameBuf, strategy: Arc<dyn Strategy>) {
        let id = self.forwarder.strategies.add(instance.clone(), strategy).expect("fewer strategies than may be");
        self.routing.set_strategy(prefix, ResolvedStrategy { id, instance }, &mut self.forwarder.fib);
    }

    /// Removes a face with its routes and records. An Interest from other faces too may now expire earlier; an Interest
    /// that only this face could satisfy goes to another next hop.
    pub(crate) fn remove_face(&mut self, now_ns: u64, face: FaceId) -> Consequences {
        self.routing.remove_face(face, &mut self.forwarder.fib);
        self.tags.face_down(now_ns, face);
        let sent = self.at(now_ns).remove_face(face);
        self.consequences(sent)
    }

    /// Sets the link of a face up or down. Routes stay.
    pub(crate) fn set_face_up(&mut self, now_ns: u64, face: FaceId, is_up: bool) -> Consequences {
        let forwarder = self.at(now_ns);
        let sent = match forwarder.faces.get(face) {
            None => return Consequences::default(),
            Some(_) if is_up => forwarder.face_up(face),
            Some(_) => forwarder.face_down(face),
        };
        match is_up {
            true => self.tags.neighbour_up(face),
            false => self.tags.face_down(now_ns, face),
        }
        self.consequences(sent)
    }

    /// The router at the other end of a link may take part in trees.
    pub(crate) fn neighbour_up(&mut self, now_ns: u64, face: FaceId) -> Consequences {
        self.tags.neighbour_up(face);
        self.at(now_ns);
        self.consequences(Vec::new())
    }

    /// An application advertises a set of tags.
    pub(crate) fn advertise(
        &mut self,
        now_ns: u64,
        face: FaceId,
        tags: &TagSet,
        serves: Serves,
    ) -> Result<Consequences, AdvertisementRefusal> {
        self.tags.routing.advertise(face, tags, serves, None)?;
        self.at(now_ns);
        Ok(self.consequences(Vec::new()))
    }

    /// An application withdraws a set of tags; false if it had not advertised it.
    pub(crate) fn withdraw(&mut self, now_ns: u64, face: FaceId, tags: &TagSet) -> (bool, Consequences) {
        let had = self.tags.routing.withdraw(face, tags);
        self.at(now_ns);
        (had, self.consequences(Vec::new()))
    }

    /// TagNet's routing ends and starts again by another clock; see [`TagNode::restart`].
    pub(crate) fn restart_tags(&mut self, now_ns: u64, clock_ms: u64) -> Consequences {
        self.tags.restart(self.options.tagnet.as_ref(), self.rng.u64(..), now_ns, clock_ms);
        self.at(now_ns);
        self.consequences(Vec::new())
    }

    /// A packet between routers of TagNet arrived, whoever sent it.
    pub(crate) fn hear_routing(&mut self, now_ns: u64, face: FaceId, packet: &[u8]) -> Consequences {
        self.tags.hear(now_ns, face, packet);
        self.at(now_ns);
        self.consequences(Vec::new())
    }

    /// Sends what is due to neighbours in trees.
    pub(crate) fn run_tags(&mut self, now_ns: u64) -> Consequences {
        let sent = self.tags.run(now_ns);
        self.at(now_ns);
        self.consequences(sent)
    }

    /// Gives a packet to the first worker that decides it: at once, if processing takes no time and the router `runs`.
    pub(crate) fn accept(
        &mut self,
        received: ReceivedPacket,
        now_ns: u64,
        runs: bool,
        trace: &mut Trace,
    ) -> Consequences {
        let ReceivedPacket { face, headers, packet, takes_tokens } = received;
        let owner = self.faces().get(face).map(|attributes| attributes.owner);
        if owner.is_some() && takes_tokens {
            self.forwarder.send_tokens(face);
        }
        let arrival = self.forwarder.dispatch(owner.unwrap_or(0), face, headers, packet);
        match self.enqueue(now_ns, arrival) {
            Some((worker, at_ns)) if at_ns == now_ns && runs => self.run_batch(worker, now_ns, trace),
            batch => Consequences { batches: batch.into_iter().collect(), ..Consequences::default() },
        }
    }

    /// Puts a packet into the inbox of its worker; returns when its batch is due, if it has none scheduled yet.
    fn enqueue(&mut self, now_ns: u64, arrival: Arrival) -> Option<(u8, u64)> {
        let jitter_ns = self.rng.u64(0..=self.options.processing_jitter_ns);
        let worker = arrival.worker;
        let queue = &mut self.queues[usize::from(worker)];
        queue.inbox.push_back(arrival);
        let is_scheduled = std::mem::replace(&mut queue.batch_scheduled, true);
        (!is_scheduled).then_some((worker, now_ns + self.options.processing_ns + jitter_ns))
    }

    /// Processes the next batch of `worker`.
    pub(crate) fn run_batch(&mut self, worker: u8, now_ns: u64, trace: &mut Trace) -> Consequences {
        let queue = &mut self.queues[usize::from(worker)];
        let count = queue.inbox.len().min(self.options.batch_packets);
        let mut batch: Vec<Arrival> = queue.inbox.drain(..count).collect();
        queue.batch_scheduled = !queue.inbox.is_empty();
        let mut batches = Vec::new();
        batches.extend(queue.batch_scheduled.then_some((worker, now_ns + self.options.processing_ns)));
        let mut only_name = None;
        for Arrival { face, headers, wire, .. } in &batch {
            let name = trace.name_of(headers.packet(wire));
            only_name = name.clone().filter(|_| count == 1);
            trace.record(TraceEvent { at_ns: now_ns, node: self.id, face: *face, kind: TraceKind::Received, name });
        }
        let before = self.drops_before(worker, trace);
        let Decided { mut sent, handed_over } = self.at(now_ns).decide(worker, &mut batch);
        for index in std::mem::take(&mut self.forwarder.out.tag_frames) {
            self.receive_tags(now_ns, &batch[usize::from(index)], &mut sent, trace);
        }
        self.record_drops(worker, &before, only_name, trace);
        let news: Vec<RouteNews> = self.forwarder.route_requests.drain(..).map(route_news).collect();
        batches.extend(handed_over.into_iter().filter_map(|arrival| self.enqueue(now_ns, arrival)));
        let mut consequences = Consequences { batches, ..self.consequences(sent) };
        if !news.is_empty() || self.routing.is_expiry_due(now_ns) {
            self.routing.expire(now_ns, &mut self.forwarder.fib);
            consequences.append(self.take_route_news(now_ns, news));
        }
        consequences
    }

    /// Passes a frame to the tag node, and records why a tag packet went nowhere.
    fn receive_tags(&mut self, now_ns: u64, arrival: &Arrival, sent: &mut Vec<Sent>, trace: &mut Trace) {
        if let Err(why) = self.tags.receive(now_ns, &self.forwarder.faces, arrival, sent) {
            let (kind, name) = (TraceKind::TagDropped(why), trace.name_of(&arrival.wire));
            trace.record(TraceEvent { at_ns: now_ns, node: self.id, face: arrival.face, kind, name });
        }
    }

    /// Runs what is due at `worker`, unless an earlier timer event has done it.
    pub(crate) fn run_timers(&mut self, worker: u8, now_ns: u64, trace: &mut Trace) -> Consequences {
        let queue = &mut self.queues[usize::from(worker)];
        if queue.timer_at_ns != now_ns {
            return Consequences::default();
        }
        queue.timer_at_ns = u64::MAX;
        let before = self.drops_before(worker, trace);
        let sent = self.at(now_ns).worker(worker).run_timers();
        self.record_drops(worker, &before, None, trace);
        self.consequences(sent)
    }

    /// The forwarder, and what time it is.
    fn at(&mut self, now_ns: u64) -> &mut Forwarder {
        self.forwarder.now = Instant(now_ns);
        &mut self.forwarder
    }

    /// What left, and the timer events that are needed earlier than those scheduled.
    fn consequences(&mut self, sent: Vec<Sent>) -> Consequences {
        let mut timers = Vec::new();
        for (worker, queue) in self.queues.iter_mut().enumerate() {
            let Some(deadline) = self.forwarder.engines[worker].next_deadline() else { continue };
            let deadline_ns = deadline.max(self.forwarder.now).0;
            if deadline_ns < queue.timer_at_ns {
                queue.timer_at_ns = deadline_ns;
                timers.push((worker as u8, deadline_ns));
            }
        }
        let tags_at_ns = self.tags.take_deadline_ns(self.forwarder.now.0);
        Consequences { sent, batches: Vec::new(), timers, tags_at_ns }
    }

    /// The counters of a worker, if drops are traced: reading them costs as much as a small packet.
    fn drops_before(&self, worker: u8, trace: &Trace) -> Option<Counters> {
        trace.keeps().then(|| self.forwarder.engines[usize::from(worker)].counters())
    }

    fn record_drops(&self, worker: u8, before: &Option<Counters>, name: Option<Rc<NameBuf>>, trace: &mut Trace) {
        let Some(before) = before else { return };
        let after = self.forwarder.engines[usize::from(worker)].counters();
        let (at_ns, node, face) = (self.forwarder.now.0, self.id, FaceId::INVALID);
        for reason in DropReason::ALL {
            for _ in before.dropped(reason)..after.dropped(reason) {
                let kind = TraceKind::EngineDropped(reason);
                trace.record(TraceEvent { at_ns, node, face, kind, name: name.clone() });
            }
        }
    }

    pub(crate) fn faces(&self) -> &FaceTable {
        &self.forwarder.faces
    }

    /// Counters of all workers together, and of what they were before restarts.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = self.forwarder.counters();
        sum.merge(&self.past.counters);
        sum
    }

    /// PIT entries that were taken from holders with many, for others.
    pub(crate) fn displaced(&self) -> u64 {
        self.past.displaced + self.engines().map(displaced).sum::<u64>()
    }

    pub(crate) fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.forwarder.engines.iter()
    }
}

/// The results of a batch or a timer run.
#[derive(Default)]
pub(crate) struct Consequences {
    pub(crate) sent: Vec<Sent>,
    /// Batches to schedule: worker and time.
    pub(crate) batches: Vec<(u8, u64)>,
    /// Timer events to schedule: worker and time.
    pub(crate) timers: Vec<(u8, u64)>,
    /// When to call [`Router::run_tags`], if that changed.
    pub(crate) tags_at_ns: Option<u64>,
}

impl Consequences {
    fn append(&mut self, other: Consequences) {
        self.sent.extend(other.sent);
        self.batches.extend(other.batches);
        self.timers.extend(other.timers);
        self.tags_at_ns = other.tags_at_ns.or(self.tags_at_ns);
    }
}

/// What a strategy found out of a route.
fn route_news((request, bytes): (RouteRequest, Vec<u8>)) -> RouteNews {
    match request {
        RouteRequest::Learn { face, .. } => {
            RouteNews::Learned { face, announcement: bytes, lifetime_ms_max: MAX_LEARNED_LIFETIME_MS }
        }
        RouteRequest::Forget { face, .. } => RouteNews::Lost { face, name: bytes },
    }
}

/// A strategy by its short name, or by its whole name with parameters.
fn resolve(forwarder: &mut Forwarder, name: &str) -> ResolvedStrategy {
    let (id, instance) = forwarder.strategy(name);
    ResolvedStrategy { id, instance }
}
