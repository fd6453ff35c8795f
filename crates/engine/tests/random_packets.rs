//! Random packet sequences. Under any schedule, a batch decides as its packets would one by one without prefetch (the
//! scalar twin). Every packet is accounted for once, no state is left over, and no bytes cause a panic.

use namewire_engine::{
    Answer, CoreConfig, Counters, DataFrom, DropNote, DropReason, EngineConfig, FaceId, PitRole, Schedule,
    Strategy as ForwardingStrategy, StrategyContext, StrategyTable, UnsolicitedPolicy, WithoutEntry,
    batch::measured::MeasuredOrder,
};
use namewire_packet::{Interest, NackReason, lp::LpHeaders, lp::PitToken};
use namewire_tables::{
    NextHop,
    fingerprint_pit::{FaceList, FingerprintPitConfig},
};
use namewire_testbed::*;
use proptest::prelude::*;
use std::sync::Arc;

const NAMES: [&str; 8] = ["/a", "/a/b", "/a/b/c", "/b", "/b/a", "/localhost/x", "/localhop/y", "/none"];

/// Each of two prefixes gets one of them.
const STRATEGIES: [&str; 6] =
    ["access", "asf/v=5/probing-interval~1000", "best-route", "multicast", "random", "self-learning"];

/// What arrives at once, how long after the last batch, and the change of a face in between.
type Batches = Vec<(u64, Option<(Change, FaceId)>, Vec<(FaceId, Packet)>)>;

/// What happens to a face.
#[derive(Clone, Copy, Debug)]
enum Change {
    Down,
    Up,
    Gone,
}

/// Changes the face, if it exists. What is sent goes to faces that are up.
fn change_face(node: &mut Forwarder, change: Option<(Change, FaceId)>) -> Vec<Sent> {
    let Some((change, face)) = change.filter(|(_, face)| node.faces.get(*face).is_some()) else { return Vec::new() };
    let sent = match change {
        Change::Down => node.face_down(face),
        Change::Up => node.face_up(face),
        Change::Gone => node.remove_face(face),
    };
    sent.iter().for_each(|sent| check_sent(node, sent));
    sent
}

fn face() -> impl Strategy<Value = FaceId> {
    proptest::sample::select(&[A, B, C, L, M, X, H, FaceId(999)][..])
}

fn headers() -> impl Strategy<Value = LpHeaders> {
    let token = proptest::option::of(proptest::collection::vec(0..3_u8, 1..8));
    let next_hop = proptest::option::weighted(0.1, face());
    let flags = (proptest::bool::weighted(0.1), proptest::bool::weighted(0.2), proptest::bool::weighted(0.1));
    (token, next_hop, flags, 0..2_u64).prop_map(
        |(token, next_hop_face_id, (no_cache, non_discovery, collided), mark)| LpHeaders {
            pit_token: token.and_then(|token| PitToken::new(&token)),
            next_hop_face_id,
            no_cache,
            congestion_mark: mark,
            non_discovery,
            collided,
            ..LpHeaders::default()
        },
    )
}

fn interest_packet() -> impl Strategy<Value = Packet> {
    let name = proptest::sample::select(&NAMES[..]);
    let by_digest = proptest::option::weighted(0.15, 0..3_u64);
    let nonce = proptest::option::weighted(0.9, 0..10_u32);
    let hop_limit = proptest::option::weighted(0.3, 0..3_u8);
    let delegation = proptest::sample::select(&["/region", "/b", "/none"][..]);
    let hint = proptest::option::weighted(0.2, proptest::collection::vec(delegation, 1..11));
    let lifetime = proptest::sample::select(&[0, 10, 100, 4000][..]);
    let parameters = proptest::option::weighted(0.1, 0..300_usize);
    let flags = (any::<bool>(), any::<bool>());
    (name, by_digest, nonce, hop_limit, hint, lifetime, parameters, flags).prop_map(
        |(name, by_digest, nonce, hop_limit, hint, lifetime, parameters, (can_be_prefix, must_be_fresh))| {
            let name = by_digest.map_or(name.to_owned(), |ms| full_name(&fresh_data(name, ms * 50)));
            let mut packet = nonce.map_or_else(|| bare_interest(&name), |nonce| interest(&name, nonce));
            packet = packet.lifetime_ms(lifetime);
            packet = if can_be_prefix { packet.can_be_prefix() } else { packet };
            packet = if must_be_fresh { packet.must_be_fresh() } else { packet };
            packet = hop_limit.map_or(packet.clone(), |limit| packet.hop_limit(limit));
            packet = hint.map_or(packet.clone(), |hint| packet.hint(&hint));
            parameters.map_or(packet.clone(), |size| packet.parameters(&vec![1; size]))
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let reason = proptest::sample::select(
        &[NackReason::None, NackReason::Congestion, NackReason::Duplicate, NackReason::NoRoute][..],
    );
    let name = || proptest::sample::select(&NAMES[..]);
    let plain = prop_oneof![
        8 => interest_packet(),
        5 => (name(), 0..3_u64).prop_map(|(name, ms)| fresh_data(name, ms * 50)),
        2 => (reason, name(), 0..10_u32).prop_map(|(reason, name, nonce)| nack(reason, name, nonce)),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Packet::raw),
    ];
    // Flips a byte in some packets: most of these are malformed, some are merely odd.
    let flip = proptest::option::weighted(0.1, (any::<proptest::sample::Index>(), any::<u8>()));
    let announcement = proptest::option::weighted(0.2, proptest::sample::select(&["/a", "/b", "/none"][..]));
    (plain, headers(), flip, announcement).prop_map(|(mut packet, headers, flip, announcement)| {
        packet.headers = LpHeaders { nack: packet.headers.nack, ..headers };
        if let (Some(prefix), Some(&6)) = (announcement, packet.wire.first()) {
            packet = packet.announcing(prefix);
        }
        if let Some((index, byte)) = flip
            && !packet.wire.is_empty()
        {
            let at = index.index(packet.wire.len());
            packet.wire[at] = byte;
        }
        packet
    })
}

fn batches() -> impl Strategy<Value = Batches> {
    let wait = prop_oneof![Just(0_u64), 1..20_u64, 50..5000_u64];
    let batch = proptest::collection::vec((face(), packet()), 1..65);
    let change = prop_oneof![3 => Just(Change::Down), 2 => Just(Change::Up), 1 => Just(Change::Gone)];
    let change = proptest::option::weighted(0.5, (change, face()));
    proptest::collection::vec((wait, change, batch), 1..6)
}

#[derive(Clone, Debug)]
struct Settings {
    config: EngineConfig,
    strategies: [&'static str; 2],
}

/// Small tables, so that their limits are met.
fn settings() -> impl Strategy<Value = Settings> {
    use UnsolicitedPolicy::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
    let policy = proptest::sample::select(&[DropAll, AdmitLocal, AdmitNetwork, AdmitAll][..]);
    let cs_capacity_bytes = proptest::sample::select(&[STORES_NOTHING_BYTES, 64 << 20][..]);
    let record_capacity = proptest::sample::select(&[0_u32, 1, 65_536][..]);
    let data_from = proptest::sample::select(&DataFrom::ALL[..]);
    let strategies = [(); 2].map(|()| proptest::sample::select(&STRATEGIES[..]));
    ((policy, data_from), cs_capacity_bytes, record_capacity, proptest::bool::weighted(0.8), strategies, pit_role())
        .prop_map(|((unsolicited, data_from), cs_capacity_bytes, record_capacity, cs_admit, strategies, pit_role)| {
            let config = EngineConfig {
                pit_role,
                measurement_capacity: 2,
                pit_capacity_entries: 10,
                record_capacity,
                interest_overflow_bytes: 600,
                cs_capacity_bytes,
                cs_capacity_packets: 4,
                cs_admit,
                dead_nonce_capacity: 20,
                unsolicited,
                data_from,
                region_names: vec![uri("/region/here")],
                ..EngineConfig::default()
            };
            Settings { config, strategies }
        })
}

/// Core, with so few fingerprints that names collide.
fn pit_role() -> impl Strategy<Value = PitRole> {
    let faces = proptest::sample::select(&[FaceList::Bits, FaceList::Sets { max_sets: 2 }][..]);
    let sizes = (1..4_u8, 1..4_u8, faces).prop_map(|(fingerprint_bits, segments, faces)| {
        let sizes = FingerprintPitConfig::new(32);
        FingerprintPitConfig { fingerprint_bits, segments, faces, overflow_entries: 1, ..sizes }
    });
    let core = (sizes, 0..4_u32, any::<bool>(), proptest::option::of(1..4_u8)).prop_map(
        |(fingerprints, names_up_to, aggregate, expiry_round_trips)| {
            PitRole::Core(CoreConfig { fingerprints, names_up_to, aggregate, expiry_round_trips })
        },
    );
    prop_oneof![Just(PitRole::Edge), core]
}

/// A Content Store of this size stores no Data.
const STORES_NOTHING_BYTES: u64 = 100;

fn node(settings: Settings) -> Forwarder {
    let mut node = Forwarder::new(settings.config);
    let [of_a, of_b] = settings.strategies;
    node.route_with("/a", &[B, C, L], of_a);
    node.route_with("/a/b/c", &[], of_a);
    node.route_with("/b", &[A, C, X, H], of_b);
    node.know_announcement("/a");
    node.route("/localhost", &[M]);
    node.route("/localhop", &[B, M]);
    for face in [B, C, M] {
        node.send_tokens(face);
    }
    node
}

/// What came of a sequence.
#[derive(Debug, PartialEq)]
struct Run {
    sent: Vec<Sent>,
    counters: Counters,
    /// The packets that were dropped on arrival, by their place in the sequence, and why.
    dropped: Vec<(usize, DropReason)>,
}

fn run(batches: &Batches, settings: Settings, one_by_one: bool) -> Run {
    run_on(node(settings), batches, one_by_one)
}

fn run_on(mut node: Forwarder, batches: &Batches, one_by_one: bool) -> Run {
    let (mut log, mut ms) = (Vec::new(), 0);
    let (mut dropped, mut place) = (Vec::new(), 0);
    for (wait, change, packets) in batches {
        ms += wait;
        log.extend(node.at(ms).run_timers());
        log.extend(change_face(&mut node, *change));
        let size = if one_by_one { 1 } else { packets.len() };
        for chunk in packets.chunks(size) {
            log.extend(node.receive_batch(chunk));
            let of_frame =
                |note: &DropNote| (place + usize::from(note.frame.expect("a frame was dropped")), note.reason);
            dropped.extend(node.engine().drop_notes().iter().map(of_frame));
            place += chunk.len();
        }
    }
    nothing_is_left(&mut node);
    check_form(&log);
    let counters = node.counters();
    for reason in DropReason::ALL {
        let noted = dropped.iter().filter(|(_, of)| *of == reason).count() as u64;
        assert!(noted <= counters.dropped(reason), "timers drop too, but no packet of a batch goes uncounted");
    }
    Run { sent: log, counters, dropped }
}

/// After every lifetime has passed and the store was emptied, no state is left.
fn nothing_is_left(node: &mut Forwarder) {
    node.now = node.now.plus_ms(11 * 24 * 3600 * 1000);
    node.run_timers();
    // Unanswered Interests are remembered for a while.
    node.now = node.now.plus_ms(3600 * 1000);
    node.run_timers();
    assert_eq!((node.pit_len(), node.engine().measurements_len(), node.engine().next_deadline()), (0, 0, None));
    node.engines[0].configure_cs(0, 0, true, true);
    assert_eq!((node.engine().cs_len(), node.engine().name_groups()), (0, 0));
    for pool in ["pit", "in-records", "out-records", "long-interests"] {
        assert_eq!(held(node, pool), 0, "{pool}: what was charged is given back once");
    }
}

/// Where an Interest can end. Each is counted exactly once.
fn interest_ends(node: &Forwarder, hop_limit_was_zero: bool) -> u64 {
    let counters = node.counters();
    let pending = node.pit_len() - node.engine().pit_answered_len();
    let entries_made = counters.satisfied + counters.unsatisfied + pending as u64;
    let refused = [
        DropReason::UnknownFace,
        DropReason::ScopeViolation,
        DropReason::DuplicateNonce,
        DropReason::TooLargeWithNonce,
        DropReason::PitFull,
        DropReason::FaceShareUsed,
        DropReason::PitShareUsed,
        DropReason::PitOverflowFull,
        DropReason::InRecordsFull,
    ];
    let refused: u64 = refused.into_iter().map(|reason| counters.dropped(reason)).sum();
    let at_hop_limit = if hop_limit_was_zero { counters.dropped(DropReason::HopLimitZero) } else { 0 };
    let kept = entries_made + counters.aggregated + counters.retransmitted + counters.by_fingerprint;
    counters.cs_hits + refused + at_hop_limit + kept
}

fn data_ends(counters: &Counters) -> u64 {
    let reasons = [
        DropReason::UnknownFace,
        DropReason::ScopeViolation,
        DropReason::UnsolicitedData,
        DropReason::DataNotAsked,
        DropReason::DataSentAlready,
    ];
    reasons.into_iter().map(|reason| counters.dropped(reason)).sum()
}

/// Whether unsolicited Data is kept instead of dropped.
fn would_be_stored(node: &Forwarder, config: &EngineConfig, face: FaceId, packet: &Packet) -> bool {
    let is_local = node.faces.get(face).is_some_and(|attributes| attributes.is_local());
    let is_admitted = match config.unsolicited {
        UnsolicitedPolicy::DropAll => false,
        UnsolicitedPolicy::AdmitLocal => is_local,
        UnsolicitedPolicy::AdmitNetwork => !is_local,
        UnsolicitedPolicy::AdmitAll => true,
    };
    let may_be_stored = config.cs_admit && config.cs_capacity_bytes > STORES_NOTHING_BYTES;
    is_admitted && may_be_stored && !packet.headers.no_cache
}

/// What all holders together have of a pool, by the report that users see.
fn held(node: &Forwarder, pool: &str) -> u64 {
    let pools = node.engine().pools();
    let reader = pools.iter().find(|reader| reader.config().name == pool).expect("the pool is there");
    reader.holdings().map(|holding| holding.held).sum()
}

/// Hands in one packet and checks that it is accounted for.
fn receive_and_account(node: &mut Forwarder, config: &EngineConfig, face: FaceId, packet: &Packet) {
    let before = node.counters();
    let answered_before = node.engine().pit_answered_len();
    let zero_hops = Interest::parse(&packet.wire).is_ok_and(|interest| interest.hop_limit() == Some(0));
    let ends_before = interest_ends(node, zero_hops);
    let sent = node.receive(face, packet.clone());
    check_form(&sent);
    let after = node.counters();

    let out = |counters: &Counters| counters.out_interests + counters.out_data + counters.out_nacks;
    assert_eq!(out(&after) - out(&before), sent.len() as u64);
    assert_eq!(held(node, "pit"), node.pit_len() as u64, "each entry is charged to one holder");
    let of_reason = |reason| after.dropped(reason) - before.dropped(reason);
    let unread = of_reason(DropReason::Malformed) + of_reason(DropReason::NameTooLong);
    let interests = after.in_interests - before.in_interests;
    let (datas, nacks) = (after.in_data - before.in_data, after.in_nacks - before.in_nacks);
    assert_eq!(unread + interests + datas + nacks, 1, "{packet:?}");
    let refused_upstreams = of_reason(DropReason::OutRecordsFull);
    assert!(refused_upstreams == 0 || refused_upstreams == 1 && after.out_interests == before.out_interests);
    if interests == 1 {
        // An Interest aggregated by fingerprint counts as both.
        let is_by_fingerprint = after.by_fingerprint > before.by_fingerprint;
        let twice = u64::from(is_by_fingerprint && after.aggregated > before.aggregated);
        assert_eq!(interest_ends(node, zero_hops) - ends_before, 1 + twice, "{packet:?}");
    }
    if datas == 1 {
        let answers = |counters: &Counters| counters.satisfied + counters.fingerprints_satisfied;
        let satisfied = u64::from(answers(&after) > answers(&before));
        let ends = data_ends(&after) - data_ends(&before) + satisfied;
        match ends {
            // A further answer to an entry that waits for more.
            0 if answered_before > 0 => {}
            // Neither an answer nor a drop: the Data was stored, and no part was refused.
            0 => assert!(would_be_stored(node, config, face, packet), "{packet:?}"),
            _ => assert_eq!(ends, 1, "{packet:?}"),
        }
        let unsolicited = of_reason(DropReason::UnsolicitedData) == 1;
        assert!(!unsolicited || !would_be_stored(node, config, face, packet), "{packet:?}");
    }
    if nacks == 1 {
        let refused = of_reason(DropReason::UnmatchedNack)
            + of_reason(DropReason::NackNotPassedOn)
            + of_reason(DropReason::NackOnMultiAccess)
            + of_reason(DropReason::UnknownFace);
        assert!(refused == 1 || refused == 0 && after.dropped_total() == before.dropped_total(), "{packet:?}");
    }
}

/// Everything that leaves is an Interest with a nonce, or Data.
fn check_form(sent: &[Sent]) {
    sent.iter().for_each(|sent| drop(sent.line()));
}

/// What must hold for every packet that leaves under the rules of scope.
fn check_sent(node: &Forwarder, sent: &Sent) {
    let attributes = node.faces.get(sent.face).expect("the face exists");
    // The whole first component, not one that merely begins with it.
    let is_localhost = sent.line().split(" /").skip(1).any(|name| name.split(['/', ' ']).next() == Some("localhost"));
    assert!(attributes.is_local() || !is_localhost, "{}", sent.line());
    if let Ok(interest) = Interest::parse(&sent.wire)
        && sent.headers.nack.is_none()
    {
        assert!(interest.hop_limit() != Some(0) || attributes.is_local(), "{}", sent.line());
        assert!(attributes.is_up, "an Interest into a link that is down: {}", sent.line());
    }
    assert!(sent.wire.len() <= namewire_packet::MAX_PACKET_BYTES);
}

/// best-route as the engine would use it if it chose no first next hop without a call.
#[derive(Debug)]
struct AlwaysCalled(StrategyTable);

impl AlwaysCalled {
    fn best_route(&self) -> &dyn ForwardingStrategy {
        self.0.get(0)
    }
}

impl ForwardingStrategy for AlwaysCalled {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        self.best_route().after_receive_interest(context);
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, reason: NackReason) {
        self.best_route().after_receive_nack(context, reason);
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        self.best_route().before_satisfy(context, answer);
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        self.best_route().after_new_next_hop(context, face);
    }

    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        self.best_route().after_upstream_lost(context);
    }

    fn before_expiry(&self, context: &mut StrategyContext<'_, '_, '_>) {
        self.best_route().before_expiry(context);
    }

    fn without_entry(&self) -> Option<WithoutEntry> {
        self.best_route().without_entry()
    }
}

/// A node with [`AlwaysCalled`] in place of best-route.
fn node_that_always_calls(settings: Settings) -> Forwarder {
    let mut node = node(settings);
    let always_called = Arc::new(AlwaysCalled(StrategyTable::default()));
    let strategy = node.strategies.add(uri("/always-called"), always_called).unwrap();
    for (prefix, next_hops) in [("/a", &[B, C, L][..]), ("/a/b/c", &[]), ("/b", &[A, C, X, H])] {
        let next_hops: Vec<NextHop> =
            next_hops.iter().zip(10..).map(|(face, cost)| NextHop { face: face.0, cost }).collect();
        node.fib.insert(uri(prefix).value(), &next_hops, strategy, false).unwrap();
    }
    node
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_first_next_hop_is_what_best_route_would_choose(batches in batches(), settings in settings()) {
        let settings = Settings { strategies: ["best-route"; 2], ..settings };
        let called = run_on(node_that_always_calls(settings.clone()), &batches, false);
        prop_assert_eq!(run(&batches, settings, false), called);
    }

    #[test]
    fn every_schedule_decides_as_the_scalar_twin(batches in batches(), settings in settings()) {
        let with = |schedule| Settings { config: EngineConfig { schedule, ..settings.config.clone() }, ..settings.clone() };
        let twin = run(&batches, with(Schedule::Naive), true);
        for schedule in Schedule::ALL {
            let result = run(&batches, with(schedule), false);
            prop_assert_eq!(&result, &twin, "{}", schedule.name());
        }
        for order in [
            MeasuredOrder::PacketByPacket,
            MeasuredOrder::StageByStage { split: false },
            MeasuredOrder::StageByStage { split: true },
        ] {
            let mut node = node(with(Schedule::default()));
            node.measured = Some(order);
            let result = run_on(node, &batches, false);
            prop_assert_eq!(&result, &twin, "{:?}", order);
        }
    }

    #[test]
    fn every_packet_is_accounted_for_once(batches in batches(), settings in settings()) {
        let (mut node, mut ms) = (node(settings.clone()), 0);
        for (wait, change, packets) in &batches {
            ms += wait;
            node.at(ms).run_timers();
            change_face(&mut node, *change);
            for (face, packet) in packets {
                receive_and_account(&mut node, &settings.config, *face, packet);
            }
        }
        nothing_is_left(&mut node);
    }

    #[test]
    fn what_leaves_is_well_formed_and_in_scope(batches in batches(), settings in settings()) {
        let (mut node, mut ms) = (node(settings), 0);
        for (wait, change, packets) in &batches {
            ms += wait;
            node.at(ms).run_timers();
            change_face(&mut node, *change);
            let left = node.receive_batch(packets);
            check_form(&left);
            for sent in left {
                // Scope does not bind NextHopFaceId (§1).
                if !packets.iter().any(|(_, packet)| packet.headers.next_hop_face_id.is_some()) {
                    check_sent(&node, &sent);
                }
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(settings in settings(), frames in proptest::collection::vec(
        (face(), proptest::collection::vec(any::<u8>(), 0..300), headers(), any::<bool>()), 1..64,
    )) {
        let mut node = node(settings);
        let batch: Vec<(FaceId, Packet)> = frames
            .into_iter()
            .map(|(face, mut bytes, headers, looks_right)| {
                if looks_right && bytes.len() > 4 {
                    // An outer header that fits, so that the parser goes further.
                    bytes.truncate(250);
                    (bytes[0], bytes[1]) = (5 + bytes[0] % 2, bytes.len() as u8 - 2);
                }
                let mut packet = Packet::raw(bytes);
                packet.headers = headers;
                (face, packet)
            })
            .collect();
        check_form(&node.receive_batch(&batch));
        let counters = node.counters();
        let read = counters.in_interests + counters.in_data + counters.in_nacks;
        prop_assert_eq!(read + counters.dropped(DropReason::Malformed) + counters.dropped(DropReason::NameTooLong), batch.len() as u64);
    }
}
