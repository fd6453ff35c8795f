//! Adaptive PIT, aggregation, expiry by round-trip times, and the number of requests that admission sees.

use super::{colliding, core, crowded, node};
use namewire_designs::policies::catalogue::{AdmissionName, PolicyChoice};
use namewire_engine::{CoreConfig, EngineConfig, PitRole};
use namewire_testbed::*;

#[test]
fn under_little_load_names_are_kept_and_aggregated() {
    let mut node = node(CoreConfig { names_up_to: 2, ..core() });
    let pending = |node: &Forwarder| (node.pit_len(), node.engine().fingerprints_len());
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

/// A limit above the PIT's capacity, or above a face's share, once dropped Interests although fingerprints had room.
#[test]
fn where_names_have_no_room_fingerprints_are_kept() {
    for (share, by_name) in [(100, 10), (80, 8)] {
        let pit_role = PitRole::Core(CoreConfig { names_up_to: 1000, ..core() });
        // Of eleven, one is kept for local applications.
        let limits = EngineConfig { pit_capacity_entries: 11, face_share_percent: share, ..EngineConfig::default() };
        let mut node = Forwarder::new(EngineConfig { pit_role, ..limits });
        node.route("/p", &[D]);
        for nonce in 0..30 {
            assert_eq!(node.receive(A, interest(&format!("/p/{nonce}"), nonce)).len(), 1);
        }
        assert_eq!((node.pit_len(), node.engine().fingerprints_len()), (by_name, 30 - by_name as u64));
        for nonce in 0..30 {
            assert_eq!(node.receive(D, data(&format!("/p/{nonce}"))).len(), 1);
        }
        assert_eq!(node.counters().dropped_total(), 0);
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

/// Otherwise a name whose Interest was lost further on stays unavailable while other Interests wait for it.
#[test]
fn an_aggregated_interest_is_repeated_and_prolongs_nothing() {
    let config = CoreConfig { aggregate: true, ..core() };
    let mut node = self::node(config.clone());
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.at(1000).receive(B, interest("/p/a", 2)), NOTHING);
    assert_eq!(node.at(2000).receive(B, interest("/p/a", 3)), ["D Interest /p/a #3"], "B asks again");
    assert_eq!(node.at(5000).receive(C, interest("/p/a", 4)), NOTHING, "what B sent may still be answered");
    assert_eq!(node.at(6100).receive(C, interest("/p/a", 5)), ["D Interest /p/a #5"], "C has prolonged nothing");
    // Data came for an entry that a mark keeps: it may not come again by itself.
    let mut node = self::node(config);
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, data("/p/a").collided()), ["A Data /p/a collided"]);
    assert_eq!(node.receive(B, interest("/p/a", 2)), ["D Interest /p/a #2"]);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a collided", "B Data /p/a collided"]);
}

/// Yuan15 §5.4.4: Data requested more than once is stored, and its entries are not refreshed for ever.
#[test]
fn data_of_a_collided_entry_was_asked_for_more_than_once() {
    for aggregate in [false, true] {
        let cs_policy = PolicyChoice { admission: AdmissionName::RequestCount, ..PolicyChoice::default() }.into();
        let pit_role = PitRole::Core(CoreConfig { aggregate, ..core() });
        let config = EngineConfig { pit_role, cs_policy, cs_capacity_packets: 1, ..EngineConfig::default() };
        let mut node = Forwarder::new(config);
        node.route("/p", &[D]);
        for (name, faces, is_stored) in [
            ("/p/first", &[A][..], true), // into a store with room
            ("/p/once", &[A], false),
            ("/p/marked", &[A], false),
            ("/p/twice", &[A, B], true),
        ] {
            for (&face, nonce) in faces.iter().zip(1..) {
                node.receive(face, interest(name, nonce));
            }
            // A mark means that the Data was requested elsewhere.
            let answer = if name == "/p/marked" { data(name).collided() } else { data(name) };
            assert_eq!(node.receive(D, answer).len(), faces.len());
            let again = node.receive(C, interest(name, 9));
            assert_eq!(again == [&*format!("C Data {name} cached")], is_stored, "{name}: {again:?}");
        }
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

/// Otherwise a peer decides how long entries live.
#[test]
fn unsolicited_data_of_a_peer_measures_nothing() {
    let mut node = node(CoreConfig { expiry_round_trips: Some(3), ..core() });
    node.receive(A, interest("/p/measured", 1));
    assert_eq!(node.at(1).receive(A, data("/p/measured")), NOTHING, "it takes its own entry away");
    node.receive(A, interest("/p/a", 2));
    assert_eq!(node.at(2).receive(D, data("/p/measured")), NOTHING);
    assert_eq!(node.at(1000).receive(D, data("/p/a")), ["A Data /p/a"], "3 x 1 ms would be over");
}
