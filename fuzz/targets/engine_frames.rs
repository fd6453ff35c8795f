//! Question: can any sequence of packets and events make the engine panic, exceed a
//! capacity, send what nobody asked for, or break the rules of scope, HopLimit and tokens?
//!
//! Input: one octet of settings (its upper bits choose strategies; without any Content Store it is a core router), then records {action, two octets of length,
//! octets}. Octets are an Interest, Data or LpPacket. The action's low two bits
//! choose the face; the others end the batch, move the clock, add or remove a face, or take its link down or up.
#![no_main]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use libfuzzer_sys::fuzz_target;
use namewire_engine::{
    BATCH_PACKETS, CoreConfig, Engine, EngineConfig, FaceAttributes, FaceScope, FaceTable, Frame, Instant, LinkType,
    Output, PacketRef, PitRole, StrategyTable, UnsolicitedPolicy, View,
    dispatch::{Dispatcher, Round},
};
use namewire_packet::{
    Data, FaceId, Interest, Name, NameBuf,
    lp::{LpHeaders, LpPacket},
};
use namewire_tables::{Fib, HashKey, NextHop, PrefixLookup, fingerprint_pit::FingerprintPitConfig};

const APPLICATION: FaceId = FaceId(256);
const ROUTER: FaceId = FaceId(257);
const SEGMENT: FaceId = FaceId(258);
const RADIO: FaceId = FaceId(259);
const FACES: [FaceId; 4] = [APPLICATION, ROUTER, SEGMENT, RADIO];
const PIT_CAPACITY_ENTRIES: u32 = 24;
const UNSOLICITED: [UnsolicitedPolicy; 4] = [
    UnsolicitedPolicy::DropAll,
    UnsolicitedPolicy::AdmitAll,
    UnsolicitedPolicy::AdmitLocal,
    UnsolicitedPolicy::AdmitNetwork,
];
/// Of these `/`, `/A` and `/A/B` have some.
const STRATEGIES: [&str; 6] =
    ["best-route", "asf/v=5/probing-interval~1000/max-timeouts~1", "self-learning", "access", "random", "multicast"];
const CS_CAPACITY_BYTES: u64 = 6_000;
const CS_CAPACITY_PACKETS: u64 = 8;

/// [`Engine::faces_down`] and the like.
type FaceChange = fn(&mut Engine, Instant, &View<'_>, &[FaceId], &mut Output) -> bool;

/// A packet that waits for the end of its batch.
struct Waiting {
    face: FaceId,
    headers: LpHeaders,
    packet: Vec<u8>,
}

struct Node {
    engine: Engine,
    fib: Fib,
    strategies: StrategyTable,
    faces: FaceTable,
    out: Output,
    now: Instant,
    /// It keeps fingerprints: of two names with one, each gets the Data of both.
    is_core: bool,
    /// Interests that came from a face, less answers that went there.
    owed: BTreeMap<FaceId, i64>,
    /// Tokens that a face has sent.
    tokens: BTreeMap<FaceId, BTreeSet<Vec<u8>>>,
    sent: u64,
    handed_in: u64,
}

fn attributes(face: FaceId) -> FaceAttributes {
    match face {
        APPLICATION => FaceAttributes::new(FaceScope::Local, 0, false),
        ROUTER => FaceAttributes::new(FaceScope::NonLocal, 0, true),
        SEGMENT => {
            FaceAttributes { link_type: LinkType::MultiAccess, ..FaceAttributes::new(FaceScope::NonLocal, 0, true) }
        }
        _ => FaceAttributes { link_type: LinkType::AdHoc, ..FaceAttributes::new(FaceScope::NonLocal, 0, false) },
    }
}

fn name(uri: &str) -> NameBuf {
    uri.parse().expect("a name")
}

impl Node {
    fn new(settings: u8) -> Self {
        let key = HashKey::from_seed(1);
        let mut strategies = StrategyTable::default();
        let (multicast, _) = strategies.resolve(&name("/localhost/nfd/strategy/multicast")).expect("it exists");
        let best_route = 0;
        let chosen = |shift: u8| usize::from(settings >> shift) % STRATEGIES.len();
        let mut strategy = |place: usize| {
            let name = name(&format!("/localhost/nfd/strategy/{}", STRATEGIES[place]));
            strategies.resolve(&name).expect("it exists").0
        };
        let (of_root, of_a) = (strategy(chosen(5)), strategy((chosen(4) + 3) % STRATEGIES.len()));
        let mut fib = Fib::new(16, key);
        let hop = |face: FaceId, cost| NextHop { face: face.0, cost };
        for (prefix, hops, strategy) in [
            ("/", vec![hop(ROUTER, 1), hop(SEGMENT, 2)], of_root),
            ("/A", vec![hop(ROUTER, 1), hop(RADIO, 2), hop(APPLICATION, 3)], of_a),
            ("/A/B", vec![], of_root),
            ("/A/B/C", vec![hop(ROUTER, 0), hop(SEGMENT, 0), hop(RADIO, 0), hop(APPLICATION, 0)], multicast),
            ("/localhost", vec![hop(APPLICATION, 0), hop(ROUTER, 0)], multicast),
            ("/localhost/nfd", vec![hop(FaceId::INTERNAL, 0)], best_route),
        ] {
            fib.insert(name(prefix).value(), &hops, strategy, false).expect("there is room");
        }
        let is_core = settings & 3 == 3;
        let fingerprints = FingerprintPitConfig { fingerprint_bits: 2, ..FingerprintPitConfig::new(32) };
        let core = CoreConfig { fingerprints, expiry_round_trips: Some(2), ..CoreConfig::new(32) };
        let config = EngineConfig {
            pit_role: if is_core { PitRole::Core(core) } else { PitRole::Edge },
            pit_capacity_entries: PIT_CAPACITY_ENTRIES,
            interest_overflow_bytes: 3_000,
            cs_capacity_bytes: CS_CAPACITY_BYTES,
            cs_capacity_packets: CS_CAPACITY_PACKETS,
            cs_admit: settings & 1 == 0,
            cs_serve: settings & 2 == 0,
            cs_prefix_lookup: PrefixLookup::ALL[usize::from(settings >> 4 & 1)],
            dead_nonce_capacity: 32,
            unsolicited: UNSOLICITED[usize::from(settings >> 2 & 3)],
            measurement_capacity: 3,
            record_capacity: if settings & 16 == 0 { 65_536 } else { 1 },
            region_names: vec![name("/A")],
            ..EngineConfig::default()
        };
        let dispatcher = Arc::new(Dispatcher::new(1, HashKey::from_seed(2)));
        let mut faces = FaceTable::default();
        FACES.into_iter().for_each(|face| faces.insert(face, attributes(face)));
        Node {
            engine: Engine::new(config, 0, dispatcher, key, 3).unwrap(),
            fib,
            strategies,
            faces,
            out: Output::default(),
            now: Instant(1),
            is_core,
            owed: BTreeMap::new(),
            tokens: BTreeMap::new(),
            sent: 0,
            handed_in: 0,
        }
    }

    fn process(&mut self, batch: &mut Vec<Waiting>) {
        let originals: Vec<Vec<u8>> = batch.iter().map(|waiting| waiting.packet.clone()).collect();
        for waiting in batch.iter().filter(|waiting| waiting.headers.nack.is_none()) {
            if Interest::parse(&waiting.packet).is_ok() {
                *self.owed.entry(waiting.face).or_default() += 1;
                let token = waiting.headers.pit_token.map(|token| token.as_bytes().to_vec());
                self.tokens.entry(waiting.face).or_default().extend(token);
            }
        }
        let from: Vec<FaceId> = batch.iter().map(|waiting| waiting.face).collect();
        let mut frames: Vec<Frame<'_>> = batch
            .iter_mut()
            .map(|Waiting { face, headers, packet }| Frame {
                face: *face,
                headers: *headers,
                packet,
                round: Round::default(),
            })
            .collect();
        self.handed_in += frames.len() as u64;
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.engine.process(self.now, &view, &mut frames, &mut self.out);
        assert!(self.out.hand_over.is_empty(), "one worker has nobody to hand over to");
        self.check_transmits(&frames, &originals, &from);
        self.settle(&frames);
        drop(frames);
        batch.clear();
    }

    fn check_transmits(&mut self, frames: &[Frame<'_>], originals: &[Vec<u8>], from: &[FaceId]) {
        self.sent += self.out.transmits.len() as u64;
        // An application that names the next hop itself bypasses scope and the rule below.
        let chosen = frames.iter().any(|frame| frame.headers.next_hop_face_id.is_some());
        for transmit in &self.out.transmits {
            let attributes = self.faces.get(transmit.face).expect("a packet for a face that does not exist");
            let packet = transmit.headers.packet(self.engine.packet(frames, &self.out, transmit.packet));
            let origin = match transmit.packet {
                PacketRef::Frame(index) => Some(usize::from(index)),
                _ => None,
            };
            if let Ok(data) = Data::parse(packet) {
                assert!(transmit.headers.nack.is_none());
                assert!(attributes.is_local() || !is_localhost(data.name()), "/localhost Data leaves the machine");
                self.check_answer(transmit.face, &transmit.headers);
                continue;
            }
            let interest = Interest::parse(packet).expect("what is sent is an Interest or Data");
            if transmit.headers.nack.is_some() {
                assert_eq!(attributes.link_type, LinkType::PointToPoint);
                self.check_answer(transmit.face, &transmit.headers);
                continue;
            }
            assert!(chosen || attributes.is_up, "an Interest into a link that is down");
            let stays = !chosen && is_localhost(interest.name());
            assert!(attributes.is_local() || !stays, "a /localhost Interest leaves the machine");
            assert!(interest.nonce().is_some(), "an Interest is sent without a nonce");
            assert!(transmit.headers.pit_token.is_none() || attributes.wants_tokens());
            if let Some(index) = origin {
                let original = Interest::parse(&originals[index]).expect("it was forwarded");
                assert_eq!(interest.hop_limit(), original.hop_limit().map(|limit| limit - 1));
                assert!(attributes.is_local() || interest.hop_limit() != Some(0));
                assert!(
                    chosen || from[index] != transmit.face || attributes.link_type == LinkType::AdHoc,
                    "an Interest goes back where it came from"
                );
            }
        }
    }

    /// An answer goes only where an Interest came from, once, with a token from there.
    fn check_answer(&self, face: FaceId, headers: &LpHeaders) {
        if let Some(token) = headers.pit_token {
            let known = self.tokens.get(&face).is_some_and(|tokens| tokens.contains(token.as_bytes()));
            assert!(known, "face {face} is sent a token that it never gave");
        }
    }

    /// Answers to a face never exceed the Interests that came from it.
    fn settle(&mut self, frames: &[Frame<'_>]) {
        for transmit in &self.out.transmits {
            let packet = transmit.headers.packet(self.engine.packet(frames, &self.out, transmit.packet));
            if transmit.headers.nack.is_some() || Data::parse(packet).is_ok() {
                let owed = self.owed.entry(transmit.face).or_default();
                *owed -= 1;
                assert!(self.is_core || *owed >= 0, "more answers than Interests on face {}", transmit.face);
            }
        }
    }

    fn run_timers(&mut self) {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.engine.run_timers(self.now, &view, &mut self.out);
        self.check_transmits(&[], &[], &[]);
        self.settle(&[]);
    }

    fn new_next_hop(&mut self, face: FaceId) {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.engine.new_next_hops(self.now, &view, &[(name("/A"), face)], &mut self.out);
        self.check_transmits(&[], &[], &[]);
        self.settle(&[]);
    }

    fn change_faces(&mut self, face: FaceId, change: FaceChange) {
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let is_more = change(&mut self.engine, self.now, &view, &[face], &mut self.out);
        assert!(!is_more, "the PIT holds less than one call may send");
        self.check_transmits(&[], &[], &[]);
        self.settle(&[]);
    }

    fn check_limits(&self) {
        assert!(self.engine.pit_len() <= PIT_CAPACITY_ENTRIES as usize);
        assert!(self.engine.cs_bytes() <= CS_CAPACITY_BYTES);
        assert!(self.engine.cs_len() as u64 <= CS_CAPACITY_PACKETS);
        let counters = self.engine.counters();
        assert_eq!(counters.out_interests + counters.out_data + counters.out_nacks, self.sent);
        assert!(counters.in_interests + counters.in_data + counters.in_nacks <= self.handed_in);
    }
}

fn is_localhost(name: Name<'_>) -> bool {
    name.get(0).is_some_and(|first| first.type_number == 8 && first.value == b"localhost")
}

/// The packet and its headers, as a link service would hand them over.
fn unwrap(face: FaceId, frame: &[u8]) -> Waiting {
    match LpPacket::parse(frame) {
        Ok(LpPacket { headers, fragment: Some(fragment), frag_count: 1, prefix_announcement, .. }) => {
            let local = face == APPLICATION; // only an application may choose a next hop
            let next_hop_face_id = headers.next_hop_face_id.filter(|_| local);
            // The link service refuses an announcement on anything but Data.
            let announcement = prefix_announcement.filter(|_| Data::parse(fragment).is_ok()).unwrap_or_default();
            let announcement_bytes = announcement.len() as u16;
            let headers = LpHeaders { next_hop_face_id, announcement_bytes, ..headers };
            Waiting { face, headers, packet: [announcement, fragment].concat() }
        }
        _ => Waiting { face, headers: LpHeaders::default(), packet: frame.to_vec() },
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&settings, mut rest)) = input.split_first() else { return };
    let mut node = Node::new(settings);
    let mut batch = Vec::new();
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        let size = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (octets, tail) = tail.split_at(size);
        rest = tail;
        let face = FACES[usize::from(action & 3)];
        if node.faces.get(face).is_some() {
            batch.push(unwrap(face, octets));
        }
        let ends_batch = action & 0xFC != 0 || batch.len() == BATCH_PACKETS || rest.len() < 3;
        if !ends_batch {
            continue;
        }
        node.process(&mut batch);
        node.now = node.now.plus_ms(u64::from(action >> 2 & 7) * 150);
        if action & 0x20 != 0 {
            node.run_timers();
        }
        match action >> 6 {
            1 if face != APPLICATION => {
                if low & 1 == 0 {
                    node.faces.remove(face);
                    node.change_faces(face, Engine::faces_removed);
                } else if let Some(attributes) = node.faces.get(face).cloned() {
                    node.faces.insert(face, FaceAttributes { is_up: false, ..attributes });
                    node.change_faces(face, Engine::faces_down);
                }
            }
            2 => {
                FACES.into_iter().for_each(|face| node.faces.insert(face, attributes(face)));
                node.change_faces(face, Engine::faces_up);
            }
            3 => node.new_next_hop(face),
            _ => {}
        }
        node.check_limits();
    }
    // The longest lifetime is over: nothing is pending any more.
    node.now = node.now.plus_ms(namewire_engine::pit_state::MAX_LIFETIME_MS + 1000);
    for _ in 0..16 {
        node.run_timers();
    }
    // That Interests went unanswered is remembered for a while.
    node.now = node.now.plus_ms(3_600_000);
    node.run_timers();
    assert_eq!(node.engine.pit_len(), 0, "Interests that never expire");
    assert_eq!(node.engine.measurements_len(), 0, "measurements that never expire");
    assert_eq!(node.engine.next_deadline(), None);
    node.check_limits();
});
