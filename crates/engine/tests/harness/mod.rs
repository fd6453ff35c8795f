//! A forwarder in a test: packets in at chosen times, one readable line per packet out.
//!
//! Faces: `A` `B` `C` `D` are remote, `L` `M` are applications of this machine, `X`
//! is a multi-access link, `H` an ad hoc one. A line reads
//! `B Interest /a #1 hop=3 token=0a`: what left, and through which face.
#![allow(dead_code, unreachable_pub, reason = "every pipeline's tests use a part of it")]

use namewire_engine::{
    Counters, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, HandOver, Instant,
    LinkType, Output, PacketRef, RouteRequest, StrategyTable, View,
    dispatch::{Dispatcher, Round},
    schedule::measured::{MeasuredOrder, StageCosts},
};
use namewire_packet::{
    Data, DataBuilder, Interest, InterestBuilder, NackReason, Name, NameBuf, Nonce,
    lp::{LpHeaders, PitToken},
};
use namewire_tables::{Fib, HashKey, NameHashes, NextHop};
use std::{cell::Cell, fmt::Write as _, sync::Arc};

pub const A: FaceId = FaceId(301);
pub const B: FaceId = FaceId(302);
pub const C: FaceId = FaceId(303);
pub const D: FaceId = FaceId(304);
pub const L: FaceId = FaceId(310);
pub const M: FaceId = FaceId(311);
pub const X: FaceId = FaceId(320);
pub const H: FaceId = FaceId(330);

/// No packet leaves.
pub const NOTHING: [&str; 0] = [];
pub const MULTICAST: &str = "/localhost/nfd/strategy/multicast";

/// A packet to be handed in.
#[derive(Clone, Debug)]
pub struct Packet {
    pub wire: Vec<u8>,
    pub headers: LpHeaders,
    builder: Option<InterestBuilder>,
}

/// An Interest with this nonce.
pub fn interest(name: &str, nonce: u32) -> Packet {
    Packet::of(InterestBuilder::new(uri(name)).nonce(Nonce::from_u32(nonce)))
}

/// An Interest without a nonce.
pub fn bare_interest(name: &str) -> Packet {
    Packet::of(InterestBuilder::new(uri(name)))
}

pub fn data(name: &str) -> Packet {
    fresh_data(name, 0)
}

pub fn fresh_data(name: &str, freshness_ms: u64) -> Packet {
    Packet::raw(DataBuilder::new(uri(name)).freshness_ms(freshness_ms).content(b"content").sign_digest())
}

pub fn nack(reason: NackReason, name: &str, nonce: u32) -> Packet {
    interest(name, nonce).nacked(reason)
}

pub fn uri(name: &str) -> NameBuf {
    name.parse().unwrap()
}

/// The name that asks for exactly this Data.
pub fn full_name(data: &Packet) -> String {
    let parsed = Data::parse(&data.wire).unwrap();
    let digest: String = parsed.implicit_digest().iter().map(|octet| format!("{octet:02x}")).collect();
    match parsed.name().is_empty() {
        true => format!("/sha256digest={digest}"),
        false => format!("{}/sha256digest={digest}", parsed.name()),
    }
}

impl Packet {
    fn of(builder: InterestBuilder) -> Self {
        Packet { wire: builder.build(), headers: LpHeaders::default(), builder: Some(builder) }
    }

    pub fn raw(wire: Vec<u8>) -> Self {
        Packet { wire, headers: LpHeaders::default(), builder: None }
    }

    fn rebuilt(mut self, change: impl FnOnce(InterestBuilder) -> InterestBuilder) -> Self {
        let builder = change(self.builder.take().expect("an Interest"));
        Packet { headers: self.headers, ..Packet::of(builder) }
    }

    pub fn can_be_prefix(self) -> Self {
        self.rebuilt(|b| b.can_be_prefix(true))
    }

    pub fn must_be_fresh(self) -> Self {
        self.rebuilt(|b| b.must_be_fresh(true))
    }

    pub fn hop_limit(self, limit: u8) -> Self {
        self.rebuilt(|b| b.hop_limit(limit))
    }

    pub fn lifetime_ms(self, ms: u64) -> Self {
        self.rebuilt(|b| b.lifetime_ms(ms))
    }

    pub fn hint(self, delegations: &[&str]) -> Self {
        let delegations: Vec<NameBuf> = delegations.iter().map(|d| uri(d)).collect();
        self.rebuilt(|b| b.forwarding_hint(&delegations))
    }

    pub fn parameters(self, parameters: &[u8]) -> Self {
        self.rebuilt(|b| b.application_parameters(parameters.to_vec()))
    }

    pub fn token(mut self, token: &[u8]) -> Self {
        self.headers.pit_token = Some(PitToken::new(token).unwrap());
        self
    }

    pub fn mark(mut self, mark: u64) -> Self {
        self.headers.congestion_mark = mark;
        self
    }

    pub fn collided(mut self) -> Self {
        self.headers.collided = true;
        self
    }

    pub fn next_hop(mut self, face: FaceId) -> Self {
        self.headers.next_hop_face_id = Some(face);
        self
    }

    pub fn no_cache(mut self) -> Self {
        self.headers.no_cache = true;
        self
    }

    pub fn nacked(mut self, reason: NackReason) -> Self {
        self.headers.nack = Some(reason);
        self
    }
}

/// [`Engine::faces_down`] and the like.
type FaceChange = fn(&mut Engine, Instant, &View<'_>, &[FaceId], &mut Output) -> bool;

/// What a worker is given: face, headers, octets, and whether others were given it too.
type Received = (FaceId, LpHeaders, Vec<u8>, Round);

/// What left: the line, and what the line does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub line: String,
    pub face: FaceId,
    pub headers: LpHeaders,
    pub wire: Vec<u8>,
}

impl PartialEq<&str> for Sent {
    fn eq(&self, line: &&str) -> bool {
        self.line == *line
    }
}

pub struct Node {
    pub fib: Fib,
    pub faces: FaceTable,
    pub strategies: StrategyTable,
    pub dispatcher: Arc<Dispatcher>,
    pub engines: Vec<Engine>,
    pub now: Instant,
    /// Batches run in this order, with a clock that counts its readings.
    pub measured: Option<MeasuredOrder>,
    /// What the last such batch took.
    pub costs: Option<StageCosts>,
    out: Output,
}

impl Default for Node {
    fn default() -> Self {
        Node::new(EngineConfig::default())
    }
}

impl Node {
    pub fn new(config: EngineConfig) -> Self {
        Node::with_workers(config, 1)
    }

    pub fn with_workers(config: EngineConfig, workers: usize) -> Self {
        let key = HashKey::from_seed(7);
        let dispatcher = Dispatcher::new(workers, HashKey::from_seed(8)).with_prefix_rounds(config.cs_prefix_lookup);
        let dispatcher = Arc::new(dispatcher);
        let engines = (0..workers)
            .map(|worker| {
                Engine::new(config.clone(), worker as u8, dispatcher.clone(), key, 9 + worker as u64).unwrap()
            })
            .collect();
        let mut faces = FaceTable::default();
        for face in [A, B, C, D] {
            faces.insert(face, FaceAttributes::new(FaceScope::NonLocal, 0, false));
        }
        for face in [L, M] {
            faces.insert(face, FaceAttributes::new(FaceScope::Local, 0, false));
        }
        for (face, link_type) in [(X, LinkType::MultiAccess), (H, LinkType::AdHoc)] {
            faces.insert(face, FaceAttributes { link_type, ..FaceAttributes::new(FaceScope::NonLocal, 0, false) });
        }
        Node {
            fib: Fib::new(1000, key),
            faces,
            strategies: StrategyTable::default(),
            dispatcher,
            engines,
            now: Instant::default(),
            measured: None,
            costs: None,
            out: Output::default(),
        }
    }

    /// A node with one route.
    pub fn routing(prefix: &str, next_hops: &[FaceId]) -> Self {
        let mut node = Node::default();
        node.route(prefix, next_hops);
        node
    }

    /// Next hops, cheapest first, with best-route.
    pub fn route(&mut self, prefix: &str, next_hops: &[FaceId]) {
        self.route_with(prefix, next_hops, "/localhost/nfd/strategy/best-route");
    }

    pub fn route_with(&mut self, prefix: &str, next_hops: &[FaceId], strategy: &str) {
        let (strategy, _) = self.strategies.resolve(&uri(strategy)).unwrap();
        let next_hops: Vec<NextHop> =
            next_hops.iter().zip(10..).map(|(face, cost)| NextHop { face: face.0, cost }).collect();
        self.fib.insert(uri(prefix).value(), &next_hops, strategy, false).unwrap();
    }

    /// From now on the link of `face` carries packets, or does not.
    pub fn set_up(&mut self, face: FaceId, is_up: bool) {
        let attributes = self.faces.get(face).unwrap().clone();
        self.faces.insert(face, FaceAttributes { is_up, ..attributes });
    }

    /// From now on it is `ms` milliseconds after the start.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Instant::default().plus_ms(ms);
        self
    }

    pub fn receive(&mut self, face: FaceId, packet: Packet) -> Vec<Sent> {
        self.receive_batch(&[(face, packet)])
    }

    /// One batch, as each worker gets it; then what was to be dispatched again.
    pub fn receive_batch(&mut self, packets: &[(FaceId, Packet)]) -> Vec<Sent> {
        let mut scratch = NameHashes::default();
        let mut shares: Vec<Vec<Received>> = vec![Vec::new(); self.engines.len()];
        for (face, packet) in packets {
            let mut round = self.dispatcher.route(0, &packet.headers, &packet.wire, &mut scratch);
            let worker = round.take(0);
            shares[usize::from(worker)].push((*face, packet.headers, packet.wire.clone(), round));
        }
        let mut sent = Vec::new();
        let mut rounds = 0;
        while shares.iter().any(|share| !share.is_empty()) {
            rounds += 1;
            assert!(rounds <= self.engines.len() + 1, "a packet is dispatched for ever");
            let mut again = vec![Vec::new(); self.engines.len()];
            for (worker, share) in shares.iter_mut().enumerate().filter(|(_, share)| !share.is_empty()) {
                let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
                let mut frames: Vec<Frame<'_>> = share
                    .iter_mut()
                    .map(|(face, headers, wire, round)| Frame {
                        face: *face,
                        headers: *headers,
                        packet: wire,
                        round: *round,
                    })
                    .collect();
                let engine = &mut self.engines[worker];
                match self.measured {
                    None => engine.process(self.now, &view, &mut frames, &mut self.out),
                    Some(order) => {
                        let costs =
                            engine.process_measured(self.now, &view, &mut frames, &mut self.out, order, count_readings);
                        self.costs = Some(costs);
                    }
                }
                sent.extend(read_out(&self.engines[worker], &frames, &self.out));
                for HandOver { frame, mut round } in self.out.hand_over.drain(..) {
                    let frame = &frames[usize::from(frame)];
                    let next = round.take(worker as u8);
                    assert_ne!(usize::from(next), worker, "a worker hands over to itself");
                    again[usize::from(next)].push((frame.face, frame.headers, frame.packet.to_vec(), round));
                }
            }
            shares = again;
        }
        sent
    }

    /// Serves every timer that is due.
    pub fn run_timers(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        for engine in &mut self.engines {
            while engine.next_deadline().is_some_and(|deadline| deadline <= self.now) {
                engine.run_timers(self.now, &view, &mut self.out);
                sent.extend(read_out(engine, &[], &self.out));
            }
        }
        sent
    }

    pub fn new_next_hop(&mut self, prefix: &str, face: FaceId) -> Vec<Sent> {
        self.new_next_hops(&[(uri(prefix), face)])
    }

    pub fn new_next_hops(&mut self, gained: &[(NameBuf, FaceId)]) -> Vec<Sent> {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.engines[0].new_next_hops(self.now, &view, gained, &mut self.out);
        read_out(&self.engines[0], &[], &self.out)
    }

    /// The face is gone; the FIB may still name it.
    pub fn remove_face(&mut self, face: FaceId) -> Vec<Sent> {
        self.faces.remove(face);
        self.change_faces(&[face], Engine::faces_removed)
    }

    /// The link of the face goes, and engines are told.
    pub fn face_down(&mut self, face: FaceId) -> Vec<Sent> {
        self.set_up(face, false);
        self.change_faces(&[face], Engine::faces_down)
    }

    /// The link of the face comes back, and engines are told.
    pub fn face_up(&mut self, face: FaceId) -> Vec<Sent> {
        self.set_up(face, true);
        self.change_faces(&[face], Engine::faces_up)
    }

    fn change_faces(&mut self, faces: &[FaceId], change: FaceChange) -> Vec<Sent> {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let mut sent = Vec::new();
        for engine in &mut self.engines {
            let mut is_more = change(engine, self.now, &view, faces, &mut self.out);
            sent.extend(read_out(engine, &[], &self.out));
            while is_more {
                is_more = change(engine, self.now, &view, faces, &mut self.out);
                sent.extend(read_out(engine, &[], &self.out));
            }
        }
        sent
    }

    /// What strategies asked of the control side in the last batch.
    pub fn route_requests(&self) -> &[RouteRequest] {
        &self.out.route_requests
    }

    /// The octets of something that a route request names.
    pub fn octets(&self, of: PacketRef) -> &[u8] {
        self.engines[0].packet(&[], &self.out, of)
    }

    pub fn engine(&self) -> &Engine {
        &self.engines[0]
    }

    /// Counters of all workers.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.engines.iter().for_each(|engine| sum.merge(&engine.counters()));
        sum
    }

    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.counters().dropped(reason)
    }

    pub fn pit_len(&self) -> usize {
        self.engines.iter().map(Engine::pit_len).sum()
    }
}

/// A clock that ticks once with every reading.
fn count_readings() -> u64 {
    thread_local!(static READINGS: Cell<u64> = const { Cell::new(0) });
    READINGS.with(|readings| readings.replace(readings.get() + 1))
}

fn read_out(engine: &Engine, frames: &[Frame<'_>], out: &Output) -> Vec<Sent> {
    out.transmits
        .iter()
        .map(|transmit| {
            let wire = engine.packet(frames, out, transmit.packet).to_vec();
            let line = line(transmit.face, &transmit.headers, transmit.headers.packet(&wire));
            Sent { line, face: transmit.face, headers: transmit.headers, wire }
        })
        .collect()
}

fn line(face: FaceId, headers: &LpHeaders, wire: &[u8]) -> String {
    let known = [(A, "A"), (B, "B"), (C, "C"), (D, "D"), (L, "L"), (M, "M"), (X, "X"), (H, "H")];
    let mut line = known.iter().find(|(id, _)| *id == face).map_or(face.to_string(), |(_, name)| (*name).to_owned());
    let mut say = |words: String| line.push_str(&words);
    match Interest::parse(wire) {
        Ok(interest) => {
            match headers.nack {
                Some(reason) => say(format!(" Nack {reason}")),
                None => say(" Interest".to_owned()),
            }
            say(format!(" {}", interest.name()));
            say(format!(" #{:x}", interest.nonce().expect("what we send has a nonce").to_u32()));
            if interest.can_be_prefix() {
                say(" CanBePrefix".to_owned());
            }
            if interest.must_be_fresh() {
                say(" MustBeFresh".to_owned());
            }
            for delegation in interest.forwarding_hint() {
                say(format!(" hint={delegation}"));
            }
            if let Some(limit) = interest.hop_limit() {
                say(format!(" hop={limit}"));
            }
        }
        Err(_) => {
            let data = Data::parse(wire).expect("what we send is well-formed");
            say(format!(" Data {}", data.name()));
            if headers.incoming_face_id == Some(FaceId::CONTENT_STORE) {
                say(" cached".to_owned());
            }
        }
    }
    if let Some(token) = headers.pit_token {
        say(format!(" token={token:?}"));
    }
    if headers.congestion_mark != 0 {
        let _ = write!(line, " mark={}", headers.congestion_mark);
    }
    if headers.collided {
        line.push_str(" collided");
    }
    line
}

/// A name of that many one-letter components.
pub fn long_name(components: usize) -> NameBuf {
    let value: Vec<u8> = [8, 1, b'n'].repeat(components);
    Name::parse_value(&value).unwrap().to_buf()
}
