//! The core role: plain Interests are kept by fingerprint, the others by name, and all faces get what they asked for.

mod collisions;
mod copies;
mod settings;

use namewire_engine::{CoreConfig, Counters, DropReason, EngineConfig, FaceId, FaceScope, LimitMet, PitRole};
use namewire_packet::{NackReason, NameBuf};
use namewire_tables::{HashKey, fingerprint_pit::FingerprintPitConfig, hash_name};
use namewire_testbed::*;

/// A core with room for all names; two of them hardly ever share a fingerprint.
fn core() -> CoreConfig {
    CoreConfig::new(1 << 16)
}

/// A core with 8 different fingerprints.
fn crowded() -> CoreConfig {
    let fingerprints = FingerprintPitConfig { fingerprint_bits: 1, ..FingerprintPitConfig::new(64) };
    CoreConfig { fingerprints, ..core() }
}

fn node_with(config: CoreConfig, workers: usize) -> Forwarder {
    let config = EngineConfig { pit_role: PitRole::Core(config), cs_admit: false, ..EngineConfig::default() };
    let mut node = Forwarder::with_workers(config, workers);
    node.route("/p", &[D, C]);
    node.route_with("/all", &[C, D], "multicast");
    node
}

fn node(config: CoreConfig) -> Forwarder {
    node_with(config, 1)
}

/// Names under /p with one fingerprint in [`crowded`].
fn colliding<const N: usize>() -> [String; N] {
    colliding_under("/p")
}

/// The same under another prefix.
fn colliding_under<const N: usize>(prefix: &str) -> [String; N] {
    let mut names = (0..).map(|number| format!("{prefix}/{number}"));
    let first = names.next().unwrap();
    let collides = |name: &String| {
        let mut node = node(crowded());
        node.receive(A, interest(&first, 1));
        node.receive(A, interest(name, 2));
        node.counters().fingerprints_collided == 1
    };
    let others = names.filter(collides).take(N - 1).collect::<Vec<_>>();
    let all: Vec<String> = [first].into_iter().chain(others).collect();
    all.try_into().unwrap()
}

fn by_fingerprint(counters: &Counters) -> (u64, u64) {
    (counters.by_fingerprint, counters.fingerprints_collided)
}

#[test]
fn a_fingerprint_is_enough_for_a_plain_interest_and_its_data() {
    let mut node = node(core());
    node.send_tokens(D);
    let asked = interest("/p/a", 1).hop_limit(9).mark(1).token(&[7; 6]).must_be_fresh();
    assert_eq!(node.receive(A, asked), ["D Interest /p/a #1 MustBeFresh hop=8 mark=1"], "without any token");
    assert_eq!((node.pit_len(), node.engine().fingerprints_len()), (0, 1));
    assert_eq!(node.receive(D, data("/p/a").mark(1)), ["A Data /p/a mark=1"]);
    assert_eq!(node.engine().fingerprints_len(), 0);
    assert_eq!(node.receive(D, data("/p/a")), NOTHING);
    assert_eq!(node.dropped(DropReason::UnsolicitedData), 1);
    let counters = node.counters();
    assert_eq!((counters.by_fingerprint, counters.fingerprints_satisfied, counters.satisfied), (1, 1, 0));
}

#[test]
fn interests_that_a_fingerprint_cannot_represent_are_kept_by_name() {
    let plain = || interest("/p/a", 1);
    let digest = full_name(&data("/p/a"));
    let cases = [
        ("CanBePrefix", A, plain().can_be_prefix()),
        ("by digest", A, interest(&digest, 1)),
        ("of an application", L, plain()),
        ("with a next hop", L, plain().next_hop(C)),
        ("longer than the timer", A, plain().lifetime_ms(20_000)),
        ("a token that is somebody's who needs it", A, plain().token(&[7; 8])),
        ("a strategy that remembers", A, interest("/asf/a", 1)),
        ("a strategy that waits for a next hop", A, interest("/wait/a", 1)),
        ("to the node only", A, interest("/localhop/a", 1)),
    ];
    for (what, face, packet) in cases {
        let mut node = node(core());
        node.route_with("/asf", &[D], "asf");
        node.route_with("/wait", &[], "multicast");
        node.route_with("/localhop", &[D, L], "multicast");
        node.receive(face, packet);
        assert_eq!((node.pit_len(), node.engine().fingerprints_len()), (1, 0), "{what}");
    }
    let mut node = node(core());
    node.route_with("/localhop", &[D, L], "multicast");
    assert_eq!(node.receive(A, interest("/localhop/a", 2)), ["L Interest /localhop/a #2"]);
    assert_eq!(node.receive(L, data("/localhop/a")), ["A Data /localhop/a"]);
    let with_token = node.receive(A, interest("/p/a", 1).token(&[7; 8]));
    assert_eq!(with_token, ["D Interest /p/a #1"]);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a token=0707070707070707"]);
}

#[test]
fn without_a_next_hop_the_strategy_decides() {
    let mut node = node(core());
    assert_eq!(node.receive(A, interest("/none/a", 1)), ["A Nack NoRoute /none/a #1"]);
    assert_eq!(node.receive(D, interest("/p/a", 2).hop_limit(1)), NOTHING);
    assert_eq!((node.dropped(DropReason::NoRoute), node.dropped(DropReason::HopLimitZero)), (1, 1));
    assert_eq!(node.receive(D, interest("/p/b", 3)), ["C Interest /p/b #3"], "not back where it came from");
    assert_eq!(node.receive(A, interest("/none/b", 4).hint(&["/p"])), ["D Interest /none/b #4 hint=/p"]);
    assert_eq!(node.receive(D, data("/none/b")), ["A Data /none/b"]);
}

#[test]
fn every_strategy_without_memory_chooses_its_next_hops() {
    let mut node = node(core());
    assert_eq!(node.receive(A, interest("/all/a", 1)), ["C Interest /all/a #1", "D Interest /all/a #1"]);
    node.route_with("/any", &[B, C, D], "random");
    let mut chosen: Vec<FaceId> = (0..50).map(|n| node.receive(A, interest(&format!("/any/{n}"), n))[0].face).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [B, C, D]);
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn loops_end_and_a_packet_that_a_link_duplicates_is_no_loop() {
    let mut node = node(core());
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, interest("/p/a", 1)), ["D Nack Duplicate /p/a #1"], "it came back");
    assert_eq!(node.receive(A, interest("/p/a", 1)), NOTHING, "a Nack would end what is under way");
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 2);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a"]);
    assert_eq!(node.receive(D, interest("/p/a", 1)), ["D Nack Duplicate /p/a #1"], "when the entry is gone too");
}

#[test]
fn a_nack_for_an_interest_of_ours_goes_to_the_faces_that_asked() {
    let [a, b] = &colliding();
    let mut node = node(crowded());
    node.receive(A, interest(a, 1));
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, a, 9)), NOTHING, "another nonce");
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, b, 1)), NOTHING, "another name of that fingerprint");
    assert_eq!(node.dropped(DropReason::UnmatchedNack), 2);
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, a, 1)), [&*format!("A Nack NoRoute {a} #1")]);
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, a, 1)), NOTHING, "told already");

    node.receive(A, interest(a, 2));
    node.receive(B, interest(b, 3));
    let told = node.receive(D, nack(NackReason::Congestion, a, 2));
    assert_eq!(told, [&*format!("A Nack Congestion {a} #2"), &format!("B Nack Congestion {a} #2")]);
    assert_eq!(node.receive(D, data(b)).len(), 2, "the other is still answered");

    node.receive(A, interest("/all/a", 5));
    assert_eq!(node.receive(C, nack(NackReason::NoRoute, "/all/a", 5)), NOTHING, "D may answer");
    assert_eq!(node.dropped(DropReason::NackNotPassedOn), 1);
    assert!(!node.receive(D, data("/all/a")).is_empty());
    node.receive(B, interest("/p/alone", 6));
    node.remove_face(B);
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, "/p/alone", 6)), NOTHING, "nobody waits there");
    assert_eq!(node.dropped(DropReason::NackNotPassedOn), 2);
    let mut edge = Forwarder::routing("/p", &[D]);
    assert_eq!(edge.receive(D, nack(NackReason::NoRoute, a, 1)), NOTHING);
}

#[test]
fn a_closed_face_gets_nothing_and_no_new_face_gets_its_data() {
    let mut node = node(core());
    node.receive(A, interest("/p/a", 1));
    node.receive(B, interest("/p/a", 2));
    node.remove_face(A);
    assert_eq!(node.receive(C, interest("/p/b", 3)), ["D Interest /p/b #3"]);
    assert_eq!(node.receive(D, data("/p/a")), ["B Data /p/a collided"]);
    assert_eq!(node.receive(D, data("/p/b")), ["C Data /p/b"]);
}

#[test]
fn faces_beyond_the_list_are_served_by_name() {
    let mut node = node(core());
    let faces: Vec<FaceId> = (500..520).map(FaceId).collect();
    for (&face, nonce) in faces.iter().zip(1..) {
        node.add_face(face, FaceScope::NonLocal);
        assert_eq!(node.receive(face, interest(&format!("/p/{nonce}"), nonce)).len(), 1);
    }
    assert_eq!((node.engine().fingerprints_len(), node.pit_len()), (16, 4));
    assert_eq!(node.counters().met(LimitMet::PortsFull), 4);
    for (face, nonce) in faces.iter().zip(1..) {
        let sent = node.receive(D, data(&format!("/p/{nonce}")));
        assert_eq!((sent.len(), sent[0].face), (1, *face));
    }
}

#[test]
fn a_full_table_leaves_the_rest_to_names() {
    let fingerprints = FingerprintPitConfig { overflow_entries: 2, ..FingerprintPitConfig::new(16) };
    let mut node = node(CoreConfig { fingerprints, ..core() });
    let names: Vec<String> = (0..40).map(|number| format!("/p/{number}")).collect();
    for (name, nonce) in names.iter().zip(1..) {
        assert_eq!(node.receive(A, interest(name, nonce)), [&*format!("D Interest {name} #{nonce:x}")]);
    }
    let refused = node.counters().met(LimitMet::FingerprintsFull);
    assert_eq!((refused, node.pit_len() as u64, node.engine().fingerprints_len()), (22, 22, 18));
    for name in &names {
        assert_eq!(node.receive(D, data(name)), [&*format!("A Data {name}")]);
    }
}

/// Fingerprints belong to one worker: Data that another worker also sees must not remove a fingerprint there.
#[test]
fn with_several_workers_fingerprints_are_looked_for_at_the_home_of_the_name() {
    // Pending prefixes are counted by the low bits of a hash. While this one is pending, the owner of /p sees Data
    // under /p, and sees it before its home does.
    let low_bits = |name: &NameBuf| hash_name(&HashKey::from_seed(8), name.value()) & 0x7fff;
    let mut names = (0..).map(|number| uri(&format!("/q/{number}")));
    let looks_like_p = names.find(|name| low_bits(name) == low_bits(&uri("/p"))).unwrap().to_string();
    for workers in [2, 3, 5] {
        let mut node = node_with(crowded(), workers);
        node.route("/q", &[C]);
        for round in 0..100_u32 {
            node.receive(L, interest(&looks_like_p, round).can_be_prefix());
            let names = [0, 1, 2].map(|number| (format!("/p/{round}/{number}"), 1000 + 3 * round + number));
            for (name, nonce) in &names {
                assert_eq!(node.receive(A, interest(name, *nonce)).len(), 1);
            }
            for (name, _) in &names {
                assert_eq!(node.receive(D, data(name)).len(), 1, "{workers} workers: {name}");
            }
            node.now = node.now.plus_ms(5000);
            node.run_timers();
        }
        assert_eq!(node.dropped(DropReason::UnsolicitedData), 0);
    }
}
