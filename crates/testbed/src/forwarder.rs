//! The forwarder: tables and workers. The time is an argument.

use crate::{
    faces,
    packet::{Packet, announcement, uri},
    worker::{Sent, Worker},
};
use namewire_engine::{
    AnnouncementTable, Counters, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable,
    Foresight, Frame, HandOver, Instant, Output, RouteRequest, StrategyId, StrategyTable, View,
    batch::measured::{MeasuredOrder, StageCosts},
    dispatch::{Dispatcher, Visits},
};
use namewire_packet::{NameBuf, lp::LpHeaders};
use namewire_shares::Groups;
use namewire_tables::{Fib, HashKey, NameHashes, NextHop};
use std::{
    cell::Cell,
    io, mem,
    sync::{Arc, atomic::Ordering},
};

/// Room for FIB entries at first.
const FIB_CAPACITY_ENTRIES: usize = 1000;

/// A forwarder in memory. Its tables are public, so that a test can read and change them.
pub struct Forwarder {
    /// The FIB of all workers.
    pub fib: Fib,
    /// The faces of all workers.
    pub faces: FaceTable,
    /// The strategies of all workers.
    pub strategies: StrategyTable,
    /// Chooses the worker that decides a packet.
    pub dispatcher: Arc<Dispatcher>,
    /// One for each worker.
    pub engines: Vec<Engine>,
    /// The time.
    pub now: Instant,
    /// The output of the last call of an engine.
    pub out: Output,
    /// Requests of strategies to the control side in the last batch, each with its announcement or name.
    pub route_requests: Vec<(RouteRequest, Vec<u8>)>,
    /// The order in which batches run, with a clock that counts its readings.
    pub measured: Option<MeasuredOrder>,
    /// The costs of the last such batch.
    pub costs: Option<StageCosts>,
    scratch: NameHashes,
}

/// A packet on its way to a worker.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The worker that must decide.
    pub worker: u8,
    /// The face that received it.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// Its bytes.
    pub wire: Vec<u8>,
    /// No worker has seen it.
    pub is_new: bool,
    visits: Visits,
}

/// The results of a batch.
#[derive(Debug)]
pub struct Decided {
    /// Packets that left, in order.
    pub sent: Vec<Sent>,
    /// Packets that go to another worker next.
    pub handed_over: Vec<Arrival>,
}

/// [`Engine::faces_down`] and similar methods; true if there is more to do.
type FaceChange = fn(&mut Engine, Instant, &View<'_>, &[FaceId], &mut Output) -> bool;

impl Default for Forwarder {
    fn default() -> Self {
        Forwarder::new(EngineConfig::default())
    }
}

impl Forwarder {
    /// One worker with these settings, and the faces of [`faces`].
    pub fn new(config: EngineConfig) -> Self {
        Forwarder::with_workers(config, 1)
    }

    /// The same with several workers.
    pub fn with_workers(config: EngineConfig, workers: usize) -> Self {
        let made = Forwarder::with_key(config, workers, HashKey::from_seed(7), 8);
        Forwarder { faces: faces::all(), ..made.expect("address space for the tables") }
    }

    /// One worker, for faces whose holders belong to these groups.
    pub fn sharing(config: EngineConfig, groups: &Groups) -> Self {
        let made = Forwarder::made(config, 1, HashKey::from_seed(7), 8, groups);
        Forwarder { faces: faces::all(), ..made.expect("address space for the tables") }
    }

    /// No faces. `key` is the key of name hashes, for a FIB that the caller will put in.
    ///
    /// # Errors
    ///
    /// There is no memory for the tables.
    pub fn with_key(config: EngineConfig, workers: usize, key: HashKey, seed: u64) -> io::Result<Self> {
        Forwarder::made(config, workers, key, seed, &Groups::default())
    }

    fn made(config: EngineConfig, workers: usize, key: HashKey, seed: u64, groups: &Groups) -> io::Result<Self> {
        let dispatcher = Dispatcher::new(workers, HashKey::from_seed(seed)).with_prefix_visits(config.cs_prefix_lookup);
        let dispatcher = Arc::new(dispatcher);
        let engine = |worker| {
            let seed = seed.wrapping_add(1 + u64::from(worker));
            Engine::new(config.clone(), worker, Arc::clone(&dispatcher), key, seed, groups)
        };
        let engines = (0..workers as u8).map(engine).collect::<io::Result<_>>()?;
        Ok(Forwarder {
            fib: Fib::new(FIB_CAPACITY_ENTRIES, key),
            faces: FaceTable::default(),
            strategies: StrategyTable::default(),
            dispatcher,
            engines,
            now: Instant::default(),
            out: Output::default(),
            route_requests: Vec::new(),
            measured: None,
            costs: None,
            scratch: NameHashes::default(),
        })
    }

    /// Empties PITs, Content Stores and all else that engines keep, as a new start does. FIB, faces and strategies
    /// stay.
    ///
    /// # Errors
    ///
    /// There is no memory for the tables.
    pub fn restart(&mut self, config: EngineConfig, key: HashKey, seed: u64) -> io::Result<()> {
        let fresh = Forwarder::with_key(config, self.engines.len(), key, seed)?;
        (self.engines, self.dispatcher) = (fresh.engines, fresh.dispatcher);
        Ok(())
    }

    /// One worker with one route.
    pub fn routing(prefix: &str, next_hops: &[FaceId]) -> Self {
        let mut node = Forwarder::default();
        node.route(prefix, next_hops);
        node
    }

    /// Adds a route with these next hops, cheapest first, and best-route.
    pub fn route(&mut self, prefix: &str, next_hops: &[FaceId]) {
        self.route_with(prefix, next_hops, "best-route");
    }

    /// The same with any strategy, given by its short name.
    pub fn route_with(&mut self, prefix: &str, next_hops: &[FaceId], strategy: &str) {
        let (strategy, _) = self.strategy(strategy);
        let next_hops: Vec<NextHop> =
            next_hops.iter().zip(10..).map(|(face, cost)| NextHop { face: face.0, cost }).collect();
        self.fib.insert(uri(prefix).value(), &next_hops, strategy, false).expect("there is room in the FIB");
    }

    /// The strategy `/localhost/nfd/strategy/<name>`, and its name with version; `name` may be the whole name, too.
    pub fn strategy(&mut self, name: &str) -> (StrategyId, NameBuf) {
        let full = if name.starts_with('/') { name.to_owned() } else { format!("/localhost/nfd/strategy/{name}") };
        self.strategies.resolve(&uri(&full)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// From now on the forwarder knows the announcement of this prefix only.
    pub fn know_announcement(&mut self, prefix: &str) {
        let mut table = AnnouncementTable::default();
        assert!(table.insert(&uri(prefix), announcement(prefix).into()));
        self.strategies.set_announcements(table.into());
    }

    /// Adds a point-to-point face that worker 0 owns.
    pub fn add_face(&mut self, face: FaceId, scope: FaceScope) {
        self.faces.insert(face, FaceAttributes::new(scope, 0, false));
    }

    /// From now on our PIT tokens leave through the face.
    pub fn send_tokens(&mut self, face: FaceId) {
        self.faces.get(face).expect("the face exists").tokens.store(true, Ordering::Relaxed);
    }

    /// From now on the link of `face` carries packets, or does not. Engines are not told.
    pub fn set_up(&mut self, face: FaceId, is_up: bool) {
        let attributes = self.faces.get(face).expect("the face exists").clone();
        self.faces.insert(face, FaceAttributes { is_up, ..attributes });
    }

    /// From now on it is `ms` milliseconds after the start.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Instant::default().plus_ms(ms);
        self
    }

    /// One worker with everything that it sees.
    pub fn worker(&mut self, number: u8) -> Worker<'_> {
        Worker {
            engine: &mut self.engines[usize::from(number)],
            now: self.now,
            view: View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces },
            out: &mut self.out,
        }
    }

    /// Receives one packet; returns what leaves.
    pub fn receive(&mut self, face: FaceId, packet: Packet) -> Vec<Sent> {
        self.receive_batch(&[(face, packet)])
    }

    /// Receives one batch: each worker gets its share, then the packets that other workers hand over.
    pub fn receive_batch(&mut self, packets: &[(FaceId, Packet)]) -> Vec<Sent> {
        let arrive = |(face, packet): &(FaceId, Packet)| self.dispatch(0, *face, packet.headers, packet.wire.clone());
        let mut waiting: Vec<Arrival> = packets.iter().map(arrive).collect();
        let mut sent = Vec::new();
        for _ in 0..=self.engines.len() {
            let mut batch = mem::take(&mut waiting);
            for worker in 0..self.engines.len() as u8 {
                let mut share: Vec<Arrival> = batch.extract_if(.., |arrival| arrival.worker == worker).collect();
                if !share.is_empty() {
                    let decided = self.decide(worker, &mut share);
                    sent.extend(decided.sent);
                    waiting.extend(decided.handed_over);
                }
            }
        }
        assert!(waiting.is_empty(), "a packet is dispatched for ever");
        sent
    }

    /// Finds the first worker for a packet that `receiver` has read from its face.
    pub fn dispatch(&mut self, receiver: u8, face: FaceId, headers: LpHeaders, wire: Vec<u8>) -> Arrival {
        let mut visits = self.dispatcher.route(receiver, &headers, &wire, &mut self.scratch);
        Arrival { worker: visits.take(receiver), face, headers, wire, is_new: true, visits }
    }

    /// Lets one worker decide a batch.
    pub fn decide(&mut self, number: u8, batch: &mut [Arrival]) -> Decided {
        let order = self.measured;
        let mut worker = self.worker(number);
        let mut frames: Vec<Frame<'_>> = batch.iter_mut().map(Arrival::frame).collect();
        let costs = match order {
            None => {
                worker.process(&mut frames);
                None
            }
            Some(order) => Some(worker.process_measured(&mut frames, order, count_readings)),
        };
        let sent = worker.sent(&frames).collect();
        let route_requests = worker.out.route_requests.iter().map(|request| {
            let (RouteRequest::Learn { announcement: of, .. } | RouteRequest::Forget { name: of, .. }) = *request;
            (*request, worker.engine.packet(&frames, worker.out, of).to_vec())
        });
        let route_requests = route_requests.collect();
        let hand_over = |&HandOver { frame, mut visits }: &HandOver| {
            let Frame { face, headers, packet, .. } = &frames[usize::from(frame)];
            let next = visits.take(number);
            assert_ne!(next, number, "a worker hands over to itself");
            Arrival { worker: next, face: *face, headers: *headers, wire: packet.to_vec(), is_new: false, visits }
        };
        let handed_over = worker.out.hand_over.iter().map(hand_over).collect();
        (self.costs, self.route_requests) = (costs, route_requests);
        Decided { sent, handed_over }
    }

    /// Serves every timer that is due.
    pub fn run_timers(&mut self) -> Vec<Sent> {
        (0..self.engines.len() as u8).flat_map(|number| self.worker(number).run_timers()).collect()
    }

    /// Shows a new next hop to pending Interests.
    pub fn new_next_hop(&mut self, prefix: &str, face: FaceId) -> Vec<Sent> {
        self.new_next_hops(&[(uri(prefix), face)])
    }

    /// The same with several next hops.
    pub fn new_next_hops(&mut self, gained: &[(NameBuf, FaceId)]) -> Vec<Sent> {
        self.call_workers(|Worker { engine, now, view, out }| {
            engine.new_next_hops(*now, view, gained, out);
            false
        })
    }

    /// The face is gone; the FIB may still name it.
    pub fn remove_face(&mut self, face: FaceId) -> Vec<Sent> {
        self.faces.remove(face);
        self.change_face(face, Engine::faces_removed)
    }

    /// The link of the face goes down, and engines are told.
    pub fn face_down(&mut self, face: FaceId) -> Vec<Sent> {
        self.set_up(face, false);
        self.change_face(face, Engine::faces_down)
    }

    /// The link of the face comes up, and engines are told.
    pub fn face_up(&mut self, face: FaceId) -> Vec<Sent> {
        self.set_up(face, true);
        self.change_face(face, Engine::faces_up)
    }

    fn change_face(&mut self, face: FaceId, change: FaceChange) -> Vec<Sent> {
        self.call_workers(|Worker { engine, now, view, out }| change(engine, *now, view, &[face], out))
    }

    /// Calls each worker until it reports that there is no more to do.
    fn call_workers(&mut self, mut call: impl FnMut(&mut Worker<'_>) -> bool) -> Vec<Sent> {
        let mut sent = Vec::new();
        for number in 0..self.engines.len() as u8 {
            let mut worker = self.worker(number);
            let mut is_more = true;
            while is_more {
                is_more = call(&mut worker);
                sent.extend(worker.sent(&[]));
            }
        }
        sent
    }

    /// Where the first worker would send a new Interest for this name now.
    pub fn foresee(&mut self, name: &str) -> Foresight {
        let (now, name) = (self.now, uri(name));
        let mut hashes = NameHashes::default();
        hashes.compute(self.fib.view().key(), name.as_name().value()).expect("a short name");
        let Worker { engine, view, .. } = self.worker(0);
        let found = view.fib.longest_prefix_match(name.as_name().value(), &hashes);
        found.map(|found| engine.foresee(now, &view, name.as_name(), &found)).unwrap_or_default()
    }

    /// The engine of the first worker.
    pub fn engine(&self) -> &Engine {
        &self.engines[0]
    }

    /// Counters of all workers.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.engines.iter().for_each(|engine| sum.merge(&engine.counters()));
        sum
    }

    /// Packets that were dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.counters().dropped(reason)
    }

    /// PIT entries of all workers.
    pub fn pit_len(&self) -> usize {
        self.engines.iter().map(Engine::pit_len).sum()
    }
}

impl Arrival {
    fn frame(&mut self) -> Frame<'_> {
        Frame { face: self.face, headers: self.headers, packet: &mut self.wire, visits: self.visits }
    }
}

/// A clock that ticks once with every reading.
fn count_readings() -> u64 {
    thread_local!(static READINGS: Cell<u64> = const { Cell::new(0) });
    READINGS.with(|readings| readings.replace(readings.get() + 1))
}
