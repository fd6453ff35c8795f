//! Question: can any sequence of packets and events make the engine panic, exceed a capacity, send Data without a
//! request, or break the rules of scope, HopLimit and tokens?
//!
//! Input: one byte of settings (its upper bits choose strategies; without any Content Store the engine is a core
//! router), then records {action, two bytes of length, bytes}. Bytes are an Interest, Data or LpPacket. The action's
//! low two bits choose the face. The others end the batch, advance the clock, add or remove a face, or set its link
//! down or up.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use namewire_engine::{
    BATCH_PACKETS, CoreConfig, EngineConfig, FaceAttributes, FaceScope, Instant, LinkType, PacketRef, PitRole,
    UnsolicitedPolicy,
};
use namewire_packet::{
    Data, FaceId, Interest, Name,
    lp::{LpHeaders, LpPacket},
};
use namewire_tables::{HashKey, NextHop, PrefixLookup, fingerprint_pit::FingerprintPitConfig};
use namewire_testbed::{Arrival, Forwarder, Sent, uri};

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
/// Strategies; `/`, `/A` and `/A/B` have one each.
const STRATEGIES: [&str; 6] =
    ["best-route", "asf/v=5/probing-interval~1000/max-timeouts~1", "self-learning", "access", "random", "multicast"];
const CS_CAPACITY_BYTES: u64 = 6_000;
const CS_CAPACITY_PACKETS: u64 = 8;

/// A forwarder, and what is known of its past.
struct Watched {
    forwarder: Forwarder,
    /// A core stores fingerprints: of two names with one fingerprint, each gets the Data of both.
    is_core: bool,
    /// Interests from a face, minus answers to it.
    owed: BTreeMap<FaceId, i64>,
    /// Tokens that each face has sent.
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

impl Watched {
    fn new(settings: u8) -> Self {
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
            region_names: vec![uri("/A")],
            ..EngineConfig::default()
        };
        let mut forwarder = Forwarder::with_key(config, 1, HashKey::from_seed(1), 2).expect("memory");
        FACES.into_iter().for_each(|face| forwarder.faces.insert(face, attributes(face)));
        let chosen = |shift: u8| usize::from(settings >> shift) % STRATEGIES.len();
        let (of_root, of_a) = (STRATEGIES[chosen(5)], STRATEGIES[(chosen(4) + 3) % STRATEGIES.len()]);
        let hop = |face: FaceId, cost| NextHop { face: face.0, cost };
        for (prefix, hops, strategy) in [
            ("/", vec![hop(ROUTER, 1), hop(SEGMENT, 2)], of_root),
            ("/A", vec![hop(ROUTER, 1), hop(RADIO, 2), hop(APPLICATION, 3)], of_a),
            ("/A/B", vec![], of_root),
            ("/A/B/C", vec![hop(ROUTER, 0), hop(SEGMENT, 0), hop(RADIO, 0), hop(APPLICATION, 0)], "multicast"),
            ("/localhost", vec![hop(APPLICATION, 0), hop(ROUTER, 0)], "multicast"),
            ("/localhost/nfd", vec![hop(FaceId::INTERNAL, 0)], "best-route"),
        ] {
            let (strategy, _) = forwarder.strategy(strategy);
            forwarder.fib.insert(uri(prefix).value(), &hops, strategy, false).expect("there is room");
        }
        forwarder.now = Instant(1);
        Watched { forwarder, is_core, owed: BTreeMap::new(), tokens: BTreeMap::new(), sent: 0, handed_in: 0 }
    }

    fn process(&mut self, batch: &mut Vec<Arrival>) {
        let originals = batch.clone();
        for arrival in batch.iter().filter(|arrival| arrival.headers.nack.is_none()) {
            if Interest::parse(&arrival.wire).is_ok() {
                *self.owed.entry(arrival.face).or_default() += 1;
                let token = arrival.headers.pit_token.map(|token| token.as_bytes().to_vec());
                self.tokens.entry(arrival.face).or_default().extend(token);
            }
        }
        self.handed_in += batch.len() as u64;
        let decided = self.forwarder.decide(0, batch);
        assert!(decided.handed_over.is_empty(), "there is no other worker");
        batch.clear();
        self.check(decided.sent, &originals);
    }

    /// Checks what left, `originals` being the batch that led to it.
    fn check(&mut self, sent: Vec<Sent>, originals: &[Arrival]) {
        self.sent += sent.len() as u64;
        for (place, sent) in sent.iter().enumerate() {
            let origin = match self.forwarder.out.transmits.get(place).map(|transmit| transmit.packet) {
                Some(PacketRef::Frame(index)) => originals.get(usize::from(index)),
                _ => None,
            };
            let attributes = self.forwarder.faces.get(sent.face).expect("a packet for a face that does not exist");
            if let Ok(data) = Data::parse(sent.packet()) {
                assert!(sent.headers.nack.is_none());
                assert!(attributes.is_local() || !is_localhost(data.name()), "/localhost Data leaves the machine");
                self.answer(sent);
                continue;
            }
            let interest = Interest::parse(sent.packet()).expect("what is sent is an Interest or Data");
            if sent.headers.nack.is_some() {
                assert_eq!(attributes.link_type, LinkType::PointToPoint);
                self.answer(sent);
                continue;
            }
            // An application that chooses the next hop itself bypasses scope and the rule below.
            let chosen = originals.iter().any(|original| original.headers.next_hop_face_id.is_some());
            assert!(chosen || attributes.is_up, "an Interest into a link that is down");
            let stays = !chosen && is_localhost(interest.name());
            assert!(attributes.is_local() || !stays, "a /localhost Interest leaves the machine");
            assert!(interest.nonce().is_some(), "an Interest is sent without a nonce");
            assert!(sent.headers.pit_token.is_none() || attributes.wants_tokens());
            if let Some(origin) = origin {
                let original = Interest::parse(&origin.wire).expect("it was forwarded");
                assert_eq!(interest.hop_limit(), original.hop_limit().map(|limit| limit - 1));
                assert!(attributes.is_local() || interest.hop_limit() != Some(0));
                assert!(
                    chosen || origin.face != sent.face || attributes.link_type == LinkType::AdHoc,
                    "an Interest goes back where it came from"
                );
            }
        }
    }

    /// An answer goes only to a face with an Interest, once, and with a token from that face.
    fn answer(&mut self, Sent { face, headers, .. }: &Sent) {
        if let Some(token) = headers.pit_token {
            let known = self.tokens.get(face).is_some_and(|tokens| tokens.contains(token.as_bytes()));
            assert!(known, "face {face} is sent a token that it never gave");
        }
        let owed = self.owed.entry(*face).or_default();
        *owed -= 1;
        assert!(self.is_core || *owed >= 0, "more answers than Interests on face {face}");
    }

    fn wait(&mut self, ms: u64) {
        self.forwarder.now = self.forwarder.now.plus_ms(ms);
    }

    fn run_timers(&mut self) {
        let sent = self.forwarder.run_timers();
        self.check(sent, &[]);
    }

    fn check_limits(&self) {
        let engine = self.forwarder.engine();
        assert!(engine.pit_len() <= PIT_CAPACITY_ENTRIES as usize);
        assert!(engine.cs_bytes() <= CS_CAPACITY_BYTES);
        assert!(engine.cs_len() as u64 <= CS_CAPACITY_PACKETS);
        let counters = engine.counters();
        assert_eq!(counters.out_interests + counters.out_data + counters.out_nacks, self.sent);
        assert!(counters.in_interests + counters.in_data + counters.in_nacks <= self.handed_in);
    }
}

fn is_localhost(name: Name<'_>) -> bool {
    name.get(0).is_some_and(|first| first.type_number == 8 && first.value == b"localhost")
}

/// The packet and its headers, as from a link service.
fn unwrap(face: FaceId, frame: &[u8]) -> (LpHeaders, Vec<u8>) {
    match LpPacket::parse(frame) {
        Ok(LpPacket { headers, fragment: Some(fragment), frag_count: 1, prefix_announcement, path_label, .. }) => {
            let local = face == APPLICATION; // only an application may choose a next hop
            let next_hop_face_id = headers.next_hop_face_id.filter(|_| local);
            // The link service refuses an announcement on anything but Data, and lets a PathLabel choose the next hop.
            let (is_data, is_interest) = (Data::parse(fragment).is_ok(), Interest::parse(fragment).is_ok());
            let label = path_label.filter(|_| is_data || is_interest && headers.nack.is_none());
            let lead = prefix_announcement.filter(|_| is_data).or(label).unwrap_or_default();
            let by_label = (is_interest && !lead.is_empty()).then_some(FaceId::BY_PATH_LABEL);
            let headers =
                LpHeaders { next_hop_face_id: next_hop_face_id.or(by_label), lead_bytes: lead.len() as u16, ..headers };
            (headers, [lead, fragment].concat())
        }
        _ => (LpHeaders::default(), frame.to_vec()),
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&settings, mut rest)) = input.split_first() else { return };
    let mut node = Watched::new(settings);
    let mut batch = Vec::new();
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        let size = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (bytes, tail) = tail.split_at(size);
        rest = tail;
        let face = FACES[usize::from(action & 3)];
        if node.forwarder.faces.get(face).is_some() {
            let (headers, wire) = unwrap(face, bytes);
            batch.push(node.forwarder.dispatch(0, face, headers, wire));
        }
        let ends_batch = action & 0xFC != 0 || batch.len() == BATCH_PACKETS || rest.len() < 3;
        if !ends_batch {
            continue;
        }
        node.process(&mut batch);
        node.wait(u64::from(action >> 2 & 7) * 150);
        if action & 0x20 != 0 {
            node.run_timers();
        }
        let forwarder = &mut node.forwarder;
        let sent = match action >> 6 {
            1 if face != APPLICATION && low & 1 == 0 => forwarder.remove_face(face),
            1 if face != APPLICATION && forwarder.faces.get(face).is_some() => forwarder.face_down(face),
            2 => {
                FACES.into_iter().for_each(|face| forwarder.faces.insert(face, attributes(face)));
                forwarder.face_up(face)
            }
            3 => forwarder.new_next_hop("/A", face),
            _ => Vec::new(),
        };
        node.check(sent, &[]);
        node.check_limits();
    }
    // After the longest lifetime no Interest is pending.
    node.wait(namewire_engine::state::pit_state::MAX_LIFETIME_MS + 1000);
    node.run_timers();
    // Measurements of unanswered Interests stay for a while.
    node.wait(3_600_000);
    node.run_timers();
    let engine = node.forwarder.engine();
    assert_eq!(engine.pit_len(), 0, "Interests that never expire");
    assert_eq!(engine.measurements_len(), 0, "measurements that never expire");
    assert_eq!(engine.next_deadline(), None);
    node.check_limits();
});
