//! Node: one router of the simulated network.
//!
//! The same parts as a real one, without threads: a dispatcher decides which worker sees a packet,
//! each worker is one engine with an inbox, the FIB and the face table are shared. An inbox is what
//! a ring is between real workers: what arrives while a worker is busy is its next batch.

use crate::routing::{NewNextHop, RouteNews, Routing};
use crate::trace::{Trace, TraceEvent, TraceKind};
use fastrand::Rng;
use namewire_engine::dispatch::{Dispatcher, Round};
use namewire_engine::{
    BATCH_PACKETS, Counters, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame,
    HandOver, Instant, Output, RouteRequest, StrategyTable, View, strategy::registry::instance_name,
};
use namewire_management::announcements::MAX_LEARNED_LIFETIME_MS;
use namewire_management::strategy_choice::ResolvedStrategy;
use namewire_packet::lp::LpHeaders;
use namewire_packet::nfd::prefix_announcement::announce_with_digest;
use namewire_packet::{Name, NameBuf, tlv};
use namewire_tables::fib::designs::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{Fib, FibConfig, HashKey, NameHashes};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Settings of one router.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Number of workers, 1 to 64.
    pub workers: u8,
    /// Settings of each worker's engine.
    pub engine: EngineConfig,
    /// Most packets of one batch, at most [`BATCH_PACKETS`]. With 1, every drop is traced by name.
    pub batch_packets: usize,
    /// Time from the arrival of a packet to the batch that decides it.
    pub processing_ns: u64,
    /// Additional time, uniform from 0 to this: batches of several workers mix.
    pub processing_jitter_ns: u64,
    /// Most FIB entries.
    pub fib_capacity_entries: usize,
    /// The design that holds the FIB.
    pub fib_design: FibDesign,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            workers: 1,
            engine: EngineConfig::default(),
            batch_packets: BATCH_PACKETS,
            processing_ns: 1_000,
            processing_jitter_ns: 0,
            fib_capacity_entries: 4096,
            fib_design: FibDesign::default(),
        }
    }
}

/// [`Engine::faces_removed`] and the like; true if there is more to do.
type FaceChange = fn(&mut Engine, Instant, &View<'_>, &[FaceId], &mut Output) -> bool;

/// A network packet on its way into an engine.
pub(crate) struct Inbound {
    pub(crate) face: FaceId,
    pub(crate) headers: LpHeaders,
    pub(crate) packet: Vec<u8>,
    pub(crate) name: Option<Rc<NameBuf>>,
    round: Round,
}

impl Inbound {
    pub(crate) fn new(face: FaceId, headers: LpHeaders, packet: Vec<u8>) -> Self {
        let name = packet_name(headers.packet(&packet)).map(|name| Rc::new(name.to_buf()));
        Inbound { face, headers, packet, name, round: Round::default() }
    }
}

/// A network packet on its way out.
pub(crate) struct Outbound {
    pub(crate) face: FaceId,
    pub(crate) headers: LpHeaders,
    pub(crate) packet: Vec<u8>,
}

pub(crate) struct Node {
    id: NodeId,
    options: NodeOptions,
    dispatcher: Arc<Dispatcher>,
    workers: Vec<Worker>,
    fib: Fib,
    strategies: StrategyTable,
    pub(crate) faces: FaceTable,
    next_face: u64,
    routing: Routing,
    rng: Rng,
    scratch: NameHashes,
}

struct Worker {
    engine: Engine,
    output: Output,
    inbox: VecDeque<Inbound>,
    /// A batch is scheduled; what arrives until then joins it.
    batch_scheduled: bool,
    /// When the earliest scheduled timer event fires.
    timer_at_ns: u64,
}

impl Node {
    pub(crate) fn new(id: NodeId, options: NodeOptions, seed: u64) -> Self {
        assert!((1..=BATCH_PACKETS).contains(&options.batch_packets), "batch of {}", options.batch_packets);
        let mut rng = Rng::with_seed(seed);
        let table_key = HashKey::from_seed(rng.u64(..));
        let dispatcher = Dispatcher::new(options.workers.into(), HashKey::from_seed(rng.u64(..)));
        let dispatcher = Arc::new(dispatcher.with_prefix_rounds(options.engine.cs_prefix_lookup));
        let workers = (0..options.workers)
            .map(|worker| Worker {
                engine: Engine::new(options.engine.clone(), worker, Arc::clone(&dispatcher), table_key, rng.u64(..))
                    .expect("address space for the tables"),
                output: Output::default(),
                inbox: VecDeque::new(),
                batch_scheduled: false,
                timer_at_ns: u64::MAX,
            })
            .collect();
        let mut strategies = StrategyTable::default();
        let best_route = resolve(&mut strategies, "best-route");
        Node {
            id,
            dispatcher,
            workers,
            fib: Fib::with_design(
                options.fib_design,
                &FibDesignOptions::default(),
                FibConfig::new(options.fib_capacity_entries),
                table_key,
            )
            .expect("memory for the FIB"),
            strategies,
            faces: FaceTable::default(),
            next_face: FaceId::FIRST_DYNAMIC.0,
            routing: Routing::new(best_route),
            rng,
            scratch: NameHashes::default(),
            options,
        }
    }

    /// A new face; its owner worker is chosen in turn.
    pub(crate) fn add_face(&mut self, scope: FaceScope, tokens: bool) -> FaceId {
        let face = FaceId(self.next_face);
        self.next_face += 1;
        let owner = (face.0 % self.workers.len() as u64) as u8;
        self.faces.insert(face, FaceAttributes::new(scope, owner, tokens));
        face
    }

    /// Adds a route and shows pending Interests the next hops that are new.
    pub(crate) fn add_route(&mut self, now_ns: u64, prefix: &NameBuf, face: FaceId, cost: u64) -> Decided {
        let new_next_hops = self.routing.add_route(prefix, face, cost, &mut self.fib);
        self.show_next_hops(now_ns, new_next_hops)
    }

    /// An application at `face` announces a prefix, as by `rib/announce`.
    pub(crate) fn announce(&mut self, now_ns: u64, prefix: &NameBuf, face: FaceId, expiration_ms: u64) -> Decided {
        let announcement = announce_with_digest(prefix.as_name(), now_ns, expiration_ms);
        self.take_route_news(now_ns, vec![RouteNews::Learned { face, announcement, lifetime_ms_max: u64::MAX }])
    }

    /// What self-learning found out, in the order found: routes, and with them announcements, change.
    fn take_route_news(&mut self, now_ns: u64, news: Vec<RouteNews>) -> Decided {
        let new_next_hops = news.into_iter().flat_map(|news| self.routing.take_news(now_ns, news, &mut self.fib));
        let new_next_hops = new_next_hops.collect();
        self.strategies.set_announcements(Arc::new(self.routing.announcements()));
        self.show_next_hops(now_ns, new_next_hops)
    }

    /// Shows pending Interests their new next hops.
    fn show_next_hops(&mut self, now_ns: u64, mut new_next_hops: Vec<NewNextHop>) -> Decided {
        new_next_hops.sort_unstable();
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let mut decided = Decided::default();
        for state in &mut self.workers {
            state.engine.new_next_hops(Instant(now_ns), &view, &new_next_hops, &mut state.output);
            decided.collect(state, &[]);
        }
        for worker in 0..self.workers.len() as u8 {
            decided.timers.extend(self.schedule_timer(worker, now_ns));
        }
        decided
    }

    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: &str) {
        let strategy = resolve(&mut self.strategies, strategy);
        self.routing.set_strategy(prefix, strategy, &mut self.fib);
    }

    /// A face is gone: nobody there waits or answers, and no route leads there. What waited
    /// for others too may now expire earlier; what waited for the face alone goes elsewhere.
    pub(crate) fn remove_face(&mut self, now_ns: u64, face: FaceId) -> Decided {
        self.faces.remove(face);
        self.routing.remove_face(face, &mut self.fib);
        self.change_face(now_ns, face, Engine::faces_removed)
    }

    /// The link of a face goes or comes back. Routes stay.
    pub(crate) fn set_face_up(&mut self, now_ns: u64, face: FaceId, is_up: bool) -> Decided {
        let Some(attributes) = self.faces.get(face).cloned() else { return Decided::default() };
        self.faces.insert(face, FaceAttributes { is_up, ..attributes });
        self.change_face(now_ns, face, if is_up { Engine::faces_up } else { Engine::faces_down })
    }

    /// Tells the workers of a face.
    fn change_face(&mut self, now_ns: u64, face: FaceId, change: FaceChange) -> Decided {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let mut decided = Decided::default();
        for state in &mut self.workers {
            let mut is_more = true;
            while is_more {
                is_more = change(&mut state.engine, Instant(now_ns), &view, &[face], &mut state.output);
                decided.collect(state, &[]);
            }
        }
        for worker in 0..self.workers.len() as u8 {
            decided.timers.extend(self.schedule_timer(worker, now_ns));
        }
        decided
    }

    /// Gives a packet to the first worker that decides it; returns when its batch is due, if it has
    /// none scheduled yet. `takes_tokens`: the peer has shown that it takes PIT tokens.
    pub(crate) fn accept(&mut self, now_ns: u64, inbound: Inbound, takes_tokens: bool) -> Option<(u8, u64)> {
        let face = self.faces.get(inbound.face);
        if let Some(face) = face.filter(|_| takes_tokens) {
            face.tokens.store(true, Ordering::Relaxed);
        }
        let receiver = face.map_or(0, |face| face.owner);
        let mut round = self.dispatcher.route(receiver, &inbound.headers, &inbound.packet, &mut self.scratch);
        let worker = round.take(receiver);
        self.enqueue(now_ns, worker, Inbound { round, ..inbound })
    }

    /// Gives a packet to the next worker of its round, as the router does.
    fn hand_over(&mut self, now_ns: u64, worker: u8, inbound: Inbound, mut round: Round) -> Option<(u8, u64)> {
        let next = round.take(worker);
        self.enqueue(now_ns, next, Inbound { round, ..inbound })
    }

    fn enqueue(&mut self, now_ns: u64, worker: u8, inbound: Inbound) -> Option<(u8, u64)> {
        let jitter_ns = self.rng.u64(0..=self.options.processing_jitter_ns);
        let state = &mut self.workers[usize::from(worker)];
        state.inbox.push_back(inbound);
        let is_scheduled = std::mem::replace(&mut state.batch_scheduled, true);
        (!is_scheduled).then_some((worker, now_ns + self.options.processing_ns + jitter_ns))
    }

    /// Decides the next batch of `worker`.
    pub(crate) fn run_batch(&mut self, worker: u8, now_ns: u64, trace: &mut Trace) -> Decided {
        let state = &mut self.workers[usize::from(worker)];
        state.batch_scheduled = false;
        let count = state.inbox.len().min(self.options.batch_packets);
        let mut batch: Vec<Inbound> = state.inbox.drain(..count).collect();
        let mut decided = Decided::default();
        if !state.inbox.is_empty() {
            state.batch_scheduled = true;
            decided.batches.push((worker, now_ns + self.options.processing_ns));
        }
        let only_name = if let [only] = &batch[..] { only.name.clone() } else { None };
        for inbound in &batch {
            trace.record(TraceEvent {
                at_ns: now_ns,
                node: self.id,
                face: inbound.face,
                kind: TraceKind::Received,
                name: inbound.name.clone(),
            });
        }
        let mut frames: Vec<Frame<'_>> = batch
            .iter_mut()
            .map(|inbound| Frame {
                face: inbound.face,
                headers: inbound.headers,
                packet: &mut inbound.packet,
                round: inbound.round,
            })
            .collect();
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let before = state.engine.counters();
        state.engine.process(Instant(now_ns), &view, &mut frames, &mut state.output);
        decided.collect(state, &frames);
        let mut to_hand_over = std::mem::take(&mut state.output.hand_over);
        let news = route_news(state, &frames);
        let after = state.engine.counters();
        self.record_drops(now_ns, &before, &after, only_name, trace);
        drop(frames);
        // Each frame is there at most once, in ascending order.
        let mut batch: Vec<Option<Inbound>> = batch.into_iter().map(Some).collect();
        for HandOver { frame, round } in to_hand_over.drain(..) {
            if let Some(inbound) = batch[usize::from(frame)].take() {
                decided.batches.extend(self.hand_over(now_ns, worker, inbound, round));
            }
        }
        self.workers[usize::from(worker)].output.hand_over = to_hand_over;
        decided.timers.extend(self.schedule_timer(worker, now_ns));
        if !news.is_empty() || self.routing.is_expiry_due(now_ns) {
            self.routing.expire(now_ns, &mut self.fib);
            decided.append(self.take_route_news(now_ns, news));
        }
        decided
    }

    /// Runs what is due at `worker`; `None` if an earlier timer event has done it.
    pub(crate) fn run_timers(&mut self, worker: u8, now_ns: u64, trace: &mut Trace) -> Option<Decided> {
        let state = &mut self.workers[usize::from(worker)];
        if state.timer_at_ns != now_ns {
            return None;
        }
        state.timer_at_ns = u64::MAX;
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let before = state.engine.counters();
        state.engine.run_timers(Instant(now_ns), &view, &mut state.output);
        let mut decided = Decided::default();
        decided.collect(state, &[]);
        let after = state.engine.counters();
        self.record_drops(now_ns, &before, &after, None, trace);
        decided.timers.extend(self.schedule_timer(worker, now_ns));
        Some(decided)
    }

    /// When a timer event is needed earlier than those scheduled.
    fn schedule_timer(&mut self, worker: u8, now_ns: u64) -> Option<(u8, u64)> {
        let state = &mut self.workers[usize::from(worker)];
        let deadline_ns = state.engine.next_deadline()?.0.max(now_ns);
        (deadline_ns < state.timer_at_ns).then(|| {
            state.timer_at_ns = deadline_ns;
            (worker, deadline_ns)
        })
    }

    fn record_drops(
        &self,
        at_ns: u64,
        before: &Counters,
        after: &Counters,
        name: Option<Rc<NameBuf>>,
        trace: &mut Trace,
    ) {
        for &reason in DropReason::ALL {
            for _ in before.dropped(reason)..after.dropped(reason) {
                let kind = TraceKind::EngineDropped(reason);
                trace.record(TraceEvent { at_ns, node: self.id, face: FaceId::INVALID, kind, name: name.clone() });
            }
        }
    }

    /// Counters of all workers together.
    pub(crate) fn counters(&self) -> Counters {
        let mut total = Counters::default();
        for worker in &self.workers {
            total.merge(&worker.engine.counters());
        }
        total
    }

    pub(crate) fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.workers.iter().map(|worker| &worker.engine)
    }
}

/// What a batch or a timer run leads to.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) outbound: Vec<Outbound>,
    /// Batches to be scheduled: worker and time.
    pub(crate) batches: Vec<(u8, u64)>,
    /// Timer events to be scheduled: worker and time.
    pub(crate) timers: Vec<(u8, u64)>,
}

impl Decided {
    fn append(&mut self, other: Decided) {
        self.outbound.extend(other.outbound);
        self.batches.extend(other.batches);
        self.timers.extend(other.timers);
    }

    fn collect(&mut self, worker: &Worker, frames: &[Frame<'_>]) {
        self.outbound.extend(worker.output.transmits.iter().map(|transmit| Outbound {
            face: transmit.face,
            headers: transmit.headers,
            packet: worker.engine.packet(frames, &worker.output, transmit.packet).to_vec(),
        }));
    }
}

/// What the strategies of a worker found out of routes in its last batch.
fn route_news(worker: &Worker, frames: &[Frame<'_>]) -> Vec<RouteNews> {
    let octets = |of| worker.engine.packet(frames, &worker.output, of).to_vec();
    let news = worker.output.route_requests.iter().map(|request| match *request {
        RouteRequest::Learn { face, announcement } => {
            let lifetime_ms_max = MAX_LEARNED_LIFETIME_MS;
            RouteNews::Learned { face, announcement: octets(announcement), lifetime_ms_max }
        }
        RouteRequest::Forget { face, name } => RouteNews::Lost { face, name: octets(name) },
    });
    news.collect()
}

/// The name of an Interest or Data; nothing else of it is checked.
pub(crate) fn packet_name(packet: &[u8]) -> Option<Name<'_>> {
    let outer = tlv::read_element(packet).ok()?;
    let name = tlv::read_element(outer.value).ok()?;
    (name.type_number == tlv::types::NAME).then(|| Name::parse_value(name.value).ok()).flatten()
}

/// The strategy `/localhost/nfd/strategy/<name>`, or the whole name of one with its parameters.
fn resolve(strategies: &mut StrategyTable, name: &str) -> ResolvedStrategy {
    let requested = if name.starts_with('/') {
        name.parse().unwrap_or_else(|error| panic!("{name} is no name: {error}"))
    } else {
        let mut short = instance_name(name, 0);
        short.pop();
        short
    };
    let (id, instance) = strategies.resolve(&requested).unwrap_or_else(|error| panic!("{name}: {error}"));
    ResolvedStrategy { id, instance }
}
