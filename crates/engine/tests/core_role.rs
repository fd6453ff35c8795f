//! The core role: plain Interests are kept by fingerprint, the others by name, and everybody gets what they asked for.

mod harness;

use harness::*;
use namewire_engine::{
    CoreConfig, Counters, DropReason, EngineConfig, FaceAttributes, FaceId, FaceScope, LimitMet, PitRole,
};
use namewire_packet::{Data, NackReason, NameBuf};
use namewire_tables::{
    CsPolicy, HashKey, cs_policy::catalogue::AdmissionName, fingerprint_pit::FingerprintPitConfig, hash_name,
};
use std::collections::VecDeque;

/// A core with room for any name, of which two share a fingerprint hardly ever.
fn core() -> CoreConfig {
    CoreConfig::new(1 << 16)
}

/// A core with 8 different fingerprints.
fn crowded() -> CoreConfig {
    let fingerprints = FingerprintPitConfig { fingerprint_bits: 1, ..FingerprintPitConfig::new(64) };
    CoreConfig { fingerprints, ..core() }
}

fn node_with(config: CoreConfig, workers: usize) -> Node {
    let config = EngineConfig { pit_role: PitRole::Core(config), cs_admit: false, ..EngineConfig::default() };
    let mut node = Node::with_workers(config, workers);
    node.route("/p", &[D, C]);
    node.route_with("/all", &[C, D], MULTICAST);
    node
}

fn node(config: CoreConfig) -> Node {
    node_with(config, 1)
}

/// Names under /p with one fingerprint in [`crowded`].
fn colliding<const N: usize>() -> [String; N] {
    let mut names = (0..).map(|number| format!("/p/{number}"));
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
    node.faces.get(D).unwrap().tokens.store(true, std::sync::atomic::Ordering::Relaxed);
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
fn nothing_is_aggregated_and_a_collided_entry_stays() {
    let mut node = node(core());
    for (nonce, face) in [(1, A), (2, B), (3, A)] {
        assert_eq!(node.receive(face, interest("/p/a", nonce)), [format!("D Interest /p/a #{nonce}").as_str()]);
    }
    assert_eq!(by_fingerprint(&node.counters()), (3, 2));
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a collided", "B Data /p/a collided"]);
    assert_eq!(node.engine().fingerprints_len(), 1, "as long as the Interests live");
    assert_eq!(node.at(4100).receive(D, data("/p/a")), NOTHING);
    assert_eq!(node.counters().collided_marks_out, 2);
    assert_eq!(node.dropped(DropReason::UnsolicitedData), 1);
}

/// Else what a peer has once it could have multiplied as often as it likes.
#[test]
fn an_entry_that_stays_passes_data_on_once_for_each_interest() {
    let [a, b] = &colliding();
    let mut node = node(crowded());
    node.receive(A, interest(a, 1));
    node.receive(B, interest(a, 2));
    for (name, asks_again) in [(a, false), (b, false), (a, true), (b, true)] {
        if asks_again {
            node.receive(B, interest(name, 3));
        }
        let sent = node.receive(D, data(name));
        let both = [&*format!("A Data {name} collided"), &format!("B Data {name} collided")];
        assert_eq!(sent, both, "b was never here, and may be meant all the same");
        for _ in 0..3 {
            assert_eq!(node.receive(C, data(name).collided()), NOTHING);
        }
    }
    assert_eq!((node.dropped(DropReason::DataSentAlready), node.dropped(DropReason::UnsolicitedData)), (12, 0));
    // What nobody could be sent does not count.
    let mut node = self::node(core());
    node.receive(A, interest("/p/a", 4));
    assert_eq!(node.receive(A, data("/p/a").collided()), NOTHING);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a collided"]);
}

/// Two cores and the node of who asks are on one medium, which hands back what comes by it.
#[test]
fn cores_on_one_ad_hoc_medium_do_not_hand_data_to_each_other_for_ever() {
    let mut cores = [node(core()), node(core())];
    for core in &mut cores {
        core.route_with("/air", &[D, H], MULTICAST);
    }
    // The producers answer when all Interests are there.
    let asks = |nonce| (2, H, interest("/air/a", nonce));
    let (mut under_way, mut answers) = ((1..=4).map(asks).collect::<VecDeque<_>>(), VecDeque::new());
    let mut data_on_air = 0;
    while let Some((sender, face, packet)) = under_way.pop_front().or_else(|| answers.pop_front()) {
        data_on_air += u64::from(face == H && Data::parse(&packet.wire).is_ok());
        assert!(data_on_air < 100, "it goes round");
        let hears = |number: usize| (face == H) == (number != sender);
        for (number, core) in cores.iter_mut().enumerate().filter(|(number, _)| hears(*number)) {
            for sent in core.receive(face, packet.clone()) {
                if sent.face == D {
                    answers.push_back((number, D, data("/air/a")));
                    continue;
                }
                let mut packet = Packet::raw(sent.wire);
                packet.headers.collided = sent.headers.collided;
                under_way.push_back((number, H, packet));
            }
        }
    }
    assert!((1..=12).contains(&data_on_air), "{data_on_air}: once for an Interest and a core at most");
}

#[test]
fn names_with_one_fingerprint_get_their_data_each() {
    let [a, b] = &colliding();
    for order in [[a, b], [b, a]] {
        let mut node = node(crowded());
        assert_eq!(node.receive(A, interest(a, 1)).len(), 1);
        assert_eq!(node.receive(B, interest(b, 2)).len(), 1, "it goes on whatever is there");
        for name in order {
            let sent = node.receive(D, data(name));
            assert_eq!(sent, [&*format!("A Data {name} collided"), &format!("B Data {name} collided")]);
        }
    }
}

/// Of the two, the router here knows one only: the other collided with it at a router further on.
#[test]
fn the_mark_of_a_router_further_on_keeps_the_entry_and_goes_on() {
    let [asked, stranger] = &colliding();
    let first_of = |stranger: Packet| {
        let mut node = node(crowded());
        node.receive(A, interest(asked, 1));
        assert_eq!(node.receive(D, stranger).len(), 1);
        node.receive(D, data(asked))
    };
    assert_eq!(first_of(data(stranger).collided()), [&*format!("A Data {asked} collided")]);
    assert_eq!(first_of(data(stranger)), NOTHING, "without it the Data is lost: why there is a mark");
}

#[test]
fn an_application_cannot_keep_an_entry() {
    let mut node = node(core());
    for (producer, is_believed) in [(L, false), (D, true)] {
        node.receive(A, interest("/p/a", 1 + u32::from(is_believed)));
        assert_eq!(node.receive(producer, data("/p/a").collided()).len(), 1);
        assert_eq!(node.engine().fingerprints_len(), u64::from(is_believed));
    }
    assert_eq!((node.counters().collided_marks_in, node.counters().collided_marks_ignored), (2, 1));
    assert_eq!(node.counters().collided_marks_out, 1);
}

#[test]
fn an_edge_sees_no_mark_and_sends_none() {
    let mut node = Node::routing("/p", &[D]);
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, data("/p/a").collided()), ["A Data /p/a"]);
    assert_eq!(node.receive(D, data("/p/a").collided()), NOTHING);
}

#[test]
fn what_a_fingerprint_cannot_say_is_kept_by_name() {
    let strategy = "/localhost/nfd/strategy/";
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
        node.route_with("/asf", &[D], &format!("{strategy}asf"));
        node.route_with("/wait", &[], MULTICAST);
        node.route_with("/localhop", &[D, L], MULTICAST);
        node.receive(face, packet);
        let is_localhop = what == "to the node only"; // its next hop is an application
        assert_eq!(
            (node.pit_len() == 1, node.engine().fingerprints_len() == 0),
            (!is_localhop, !is_localhop),
            "{what}"
        );
    }
    let mut node = node(core());
    let with_token = node.receive(A, interest("/p/a", 1).token(&[7; 8]));
    assert_eq!(with_token, ["D Interest /p/a #1"]);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a token=0707070707070707"]);
}

#[test]
fn without_a_next_hop_the_strategy_speaks() {
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
    node.route_with("/any", &[B, C, D], "/localhost/nfd/strategy/random");
    let mut chosen: Vec<FaceId> = (0..50).map(|n| node.receive(A, interest(&format!("/any/{n}"), n))[0].face).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [B, C, D]);
    assert_eq!(node.pit_len(), 0);
}

/// Both tables know the fingerprint; the Data for the one name must not take the other's entry away.
#[test]
fn a_name_kept_beside_its_fingerprint_is_answered_too() {
    let [a, b] = &colliding();
    let mut node = node(crowded());
    node.receive(L, interest(a, 1));
    node.receive(B, interest(b, 2));
    assert_eq!((node.pit_len(), node.engine().fingerprints_len()), (1, 1));
    assert_eq!(node.receive(D, data(a)), [&*format!("L Data {a}"), &format!("B Data {a} collided")]);
    assert_eq!(node.receive(D, data(b)), [&*format!("B Data {b} collided")]);
    // One who asked in both ways gets one copy.
    node.receive(B, interest(a, 3).can_be_prefix());
    node.receive(B, interest(a, 4));
    assert_eq!(node.receive(D, data(a)), [&*format!("B Data {a}")]);
}

#[test]
fn loops_end_and_what_a_link_doubles_is_no_loop() {
    let mut node = node(core());
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, interest("/p/a", 1)), ["D Nack Duplicate /p/a #1"], "it came back");
    assert_eq!(node.receive(A, interest("/p/a", 1)), NOTHING, "a Nack would end what is under way");
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 2);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a"]);
    assert_eq!(node.receive(D, interest("/p/a", 1)), ["D Nack Duplicate /p/a #1"], "when the entry is gone too");
}

#[test]
fn a_nack_goes_to_who_asked_if_it_is_for_an_interest_of_ours() {
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
    assert!(!node.receive(D, data("/all/a")).is_empty());
    let mut edge = Node::routing("/p", &[D]);
    assert_eq!(edge.receive(D, nack(NackReason::NoRoute, a, 1)), NOTHING);
}

#[test]
fn a_late_nack_leaves_the_entry_to_the_name_that_has_it_now() {
    let [a, b] = &colliding();
    let mut node = node(crowded());
    node.receive(A, interest(a, 1));
    assert_eq!(node.receive(D, data(a)).len(), 1);
    node.receive(B, interest(b, 2));
    assert_eq!(node.receive(D, nack(NackReason::NoRoute, a, 1)), [&*format!("B Nack NoRoute {a} #1")]);
    assert_eq!(node.receive(D, data(b)), [&*format!("B Data {b}")]);
}

#[test]
fn a_nack_goes_on_once_for_an_interest_though_the_entry_stays() {
    let mut node = node(core());
    node.receive(A, interest("/p/a", 1));
    node.receive(B, interest("/p/a", 2));
    for nonce in [1, 2] {
        assert_eq!(node.receive(D, nack(NackReason::NoRoute, "/p/a", nonce)).len(), 2);
        for _ in 0..3 {
            assert_eq!(node.receive(C, nack(NackReason::NoRoute, "/p/a", nonce)), NOTHING);
        }
    }
    assert_eq!(node.dropped(DropReason::UnmatchedNack), 6);
    assert_eq!(node.receive(D, data("/p/a")).len(), 2);
}

#[test]
fn a_face_that_is_gone_is_sent_nothing_and_its_number_to_nobody_else() {
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
        node.faces.insert(face, FaceAttributes::new(FaceScope::NonLocal, 0, false));
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

#[test]
fn under_little_load_names_are_kept_and_aggregated() {
    let mut node = node(CoreConfig { names_up_to: 2, ..core() });
    let pending = |node: &Node| (node.pit_len(), node.engine().fingerprints_len());
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(B, interest("/p/a", 2)), NOTHING, "aggregated");
    node.receive(A, interest("/p/b", 3));
    assert_eq!(pending(&node), (2, 0));
    node.receive(A, interest("/p/c", 4));
    assert_eq!(pending(&node), (2, 1));
    assert_eq!(node.receive(C, interest("/p/b", 5)), NOTHING, "what is kept by name stays so");
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a", "B Data /p/a"]);
    node.receive(A, interest("/p/d", 6));
    assert_eq!(pending(&node), (1, 2), "not at once");
    node.receive(D, data("/p/b"));
    node.receive(A, interest("/p/e", 7));
    assert_eq!(pending(&node), (1, 2));
    for name in ["/p/c", "/p/d", "/p/e"] {
        assert_eq!(node.receive(D, data(name)), [&*format!("A Data {name}")]);
    }
}

#[test]
fn where_false_positives_are_allowed_a_fingerprint_is_taken_for_the_name() {
    let [a, b] = &colliding();
    let mut node = node(CoreConfig { aggregate: true, ..crowded() });
    assert_eq!(node.receive(A, interest(a, 1)).len(), 1);
    assert_eq!(node.receive(B, interest(a, 2)), NOTHING);
    assert_eq!(node.receive(C, interest(b, 3)), NOTHING, "the price");
    assert_eq!(node.counters().aggregated, 2);
    let sent = node.receive(D, data(a));
    assert_eq!(sent.iter().map(|sent| sent.face).collect::<Vec<_>>(), [A, B, C]);
    assert!(sent.iter().all(|sent| !sent.headers.collided));
    assert_eq!(node.receive(D, data(a)), NOTHING, "and gone");
}

/// Else a name whose Interest was lost further on could not be had while somebody wants it.
#[test]
fn an_aggregated_interest_is_repeated_and_prolongs_nothing() {
    let config = CoreConfig { aggregate: true, ..core() };
    let mut node = self::node(config.clone());
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.at(1000).receive(B, interest("/p/a", 2)), NOTHING);
    assert_eq!(node.at(2000).receive(B, interest("/p/a", 3)), ["D Interest /p/a #3"], "B asks again");
    assert_eq!(node.at(5000).receive(C, interest("/p/a", 4)), NOTHING, "what B sent may still be answered");
    assert_eq!(node.at(6100).receive(C, interest("/p/a", 5)), ["D Interest /p/a #5"], "C has prolonged nothing");
    // Data was here for an entry that a mark lets stay: it may not come again by itself.
    let mut node = self::node(config);
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, data("/p/a").collided()), ["A Data /p/a collided"]);
    assert_eq!(node.receive(B, interest("/p/a", 2)), ["D Interest /p/a #2"]);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a collided", "B Data /p/a collided"]);
}

/// Yuan15 §5.4.4: what was asked for more than once is stored, and its entries are not refreshed for ever.
#[test]
fn data_of_a_collided_entry_was_asked_for_more_than_once() {
    let cs_policy = CsPolicy { admission: AdmissionName::RequestCount, ..CsPolicy::default() };
    let pit_role = PitRole::Core(core());
    let mut node = Node::new(EngineConfig { pit_role, cs_policy, cs_capacity_packets: 1, ..EngineConfig::default() });
    node.route("/p", &[D]);
    for (name, faces, is_stored) in
        [("/p/first", &[A][..], true), ("/p/once", &[A], false), ("/p/twice", &[A, B], true)]
    {
        for (&face, nonce) in faces.iter().zip(1..) {
            node.receive(face, interest(name, nonce));
        }
        assert_eq!(node.receive(D, data(name)).len(), faces.len());
        let again = node.receive(C, interest(name, 9));
        assert_eq!(again == [&*format!("C Data {name} cached")], is_stored, "{name}: {again:?}");
    }
}

#[test]
fn interests_expire_after_some_round_trips_of_their_prefix() {
    let mut node = node(CoreConfig { expiry_round_trips: Some(3), ..core() });
    node.receive(A, interest("/p/measured", 1));
    assert_eq!(node.at(80).receive(D, data("/p/measured")).len(), 1);
    node.receive(A, interest("/p/a", 2));
    node.receive(A, interest("/p/b", 3));
    node.receive(A, interest("/all/c", 4));
    assert_eq!(node.at(80 + 230).receive(D, data("/p/a")), ["A Data /p/a"]);
    assert_eq!(node.at(80 + 280).receive(D, data("/p/b")), NOTHING, "3 x 80 ms, and a tick of 16 ms");
    assert_eq!(node.at(80 + 3900).receive(D, data("/all/c")).len(), 1, "nothing is known of that prefix");
}

/// What the prefix of it answered at another worker may not have been asked for at its home.
#[test]
fn a_name_answered_at_another_worker_leaves_fingerprints_of_others() {
    for workers in [2, 3, 5] {
        let mut node = node_with(crowded(), workers);
        let mut collided = 0;
        for nonce in 0..300 {
            let [other, asked] = ["x", "y"].map(|name| format!("/p/{name}/{nonce}"));
            node.receive(L, interest("/p", 2 * nonce).can_be_prefix());
            node.receive(A, interest(&asked, 2 * nonce + 1));
            let sent = node.receive(D, data(&other));
            assert_eq!(sent[0], &*format!("L Data {other}"));
            collided += sent.len() - 1;
            let faces: Vec<FaceId> = node.receive(D, data(&asked)).iter().map(|sent| sent.face).collect();
            assert_eq!(faces, [A], "{workers} workers: {asked}");
            node.now = node.now.plus_ms(5000);
            node.run_timers();
        }
        assert!(collided > 5, "{collided}");
    }
}

/// Else a peer decides how long entries live.
#[test]
fn what_a_peer_sends_unasked_measures_nothing() {
    let mut node = node(CoreConfig { expiry_round_trips: Some(3), ..core() });
    node.receive(A, interest("/p/measured", 1));
    assert_eq!(node.at(1).receive(A, data("/p/measured")), NOTHING, "it takes its own entry away");
    node.receive(A, interest("/p/a", 2));
    assert_eq!(node.at(2).receive(D, data("/p/measured")), NOTHING);
    assert_eq!(node.at(1000).receive(D, data("/p/a")), ["A Data /p/a"], "3 x 1 ms would be over");
}

/// Fingerprints are those of one worker: Data that another sees too must not take away what is not meant there.
#[test]
fn with_several_workers_fingerprints_are_looked_for_at_the_home_of_the_name() {
    // Pending prefixes are counted by the low bits of a hash: while this one is, the owner of /p sees what is under
    // /p, and before its home does.
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
