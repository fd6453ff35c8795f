//! What an operator learns of one name: pending Interests, stored Data, and how long faces take to answer.

use namewire_engine::{EngineConfig, PendingInterest, PendingUpstream, StoredData};
use namewire_packet::NackReason;
use namewire_testbed::*;

#[test]
fn pending_interests_are_shown_with_their_faces() {
    let mut node = Forwarder::new(EngineConfig::default());
    node.route_with("/a", &[B, C], "multicast");
    node.at(1000).receive(A, interest("/a/1", 1).lifetime_ms(2000));
    node.receive(A, interest("/a/1", 2).lifetime_ms(2000).can_be_prefix());
    node.at(1500).receive(C, nack(NackReason::NoRoute, "/a/1", 1));
    let state = node.engine().name_state(node.now, uri("/a/1").as_name());
    let upstream = |face, nack| PendingUpstream { face, sent_ms_ago: 500, nack, is_lost: false };
    let plain = PendingInterest {
        can_be_prefix: false,
        must_be_fresh: false,
        expires_ms: 1500,
        is_satisfied: false,
        downstreams: vec![A],
        upstreams: vec![upstream(B, None), upstream(C, Some(NackReason::NoRoute))],
    };
    assert!(state.pending.contains(&plain), "{state:?}");
    assert_eq!(state.pending.iter().filter(|pending| pending.can_be_prefix).count(), 1);
    assert_eq!((state.stored, state.stored_under), (None, None));
    let other = node.engine().name_state(node.now, uri("/a").as_name());
    assert_eq!(other.pending, [], "a prefix is another name");
}

#[test]
fn stored_data_is_shown_without_an_effect_on_the_policy() {
    let mut node = Forwarder::new(EngineConfig::default());
    node.route("/a", &[B]);
    node.at(0).receive(A, interest("/a/1", 1));
    let packet = fresh_data("/a/1", 1000);
    let bytes = packet.wire.len() as u64;
    node.receive(B, packet);
    let stored = StoredData { name: uri("/a/1"), bytes, fresh_ms: 1000 };
    let before = node.counters();
    let state = node.engine().name_state(node.now, uri("/a/1").as_name());
    assert_eq!((state.stored, state.stored_under), (Some(stored), None));
    node.at(5000);
    let stale = node.engine().name_state(node.now, uri("/a/1").as_name()).stored.expect("it is stored");
    assert_eq!(stale.fresh_ms, 0);
    node.engines[0].configure_cs(64 << 20, 100, true, false);
    let state = node.engine().name_state(node.now, uri("/a/1").as_name());
    assert_eq!(state.stored, None, "a store that serves nothing answers nothing");
    assert_eq!(node.counters(), before);
}

#[test]
fn stored_data_passes_to_another_engine_with_the_time_for_which_it_is_fresh() {
    let mut old = Forwarder::new(EngineConfig::default());
    old.route("/a", &[B]);
    for (name, freshness_ms) in [("/a/1", 1000), ("/a/2", 0), ("/a/3", 5000)] {
        old.at(0).receive(A, interest(name, 1));
        old.receive(B, fresh_data(name, freshness_ms));
    }
    old.at(400);
    let (mut stored, mut next) = (Vec::new(), Some(0));
    while let Some(start) = next {
        next = old.engine().stored_step(old.now, start, 2, |data, fresh_ms| stored.push((data.to_vec(), fresh_ms)));
    }
    assert_eq!(stored.len(), 3);
    let mut new = Forwarder::new(EngineConfig::default());
    new.at(9000);
    // What came since is newer.
    new.route("/a", &[B]);
    new.receive(A, interest("/a/3", 1));
    new.receive(B, fresh_data("/a/3", 7000));
    let now = new.now;
    let kept: Vec<bool> =
        stored.iter().map(|(data, fresh_ms)| new.engines[0].store_again(now, data, *fresh_ms)).collect();
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 2);
    assert!(!new.engines[0].store_again(now, b"no Data", 5));
    let fresh_ms = |name: &str| new.engine().name_state(now, uri(name).as_name()).stored.map(|stored| stored.fresh_ms);
    assert_eq!(["/a/1", "/a/2", "/a/3"].map(fresh_ms), [Some(600), Some(0), Some(7000)]);
}

#[test]
fn answers_are_timed_and_silence_is_counted() {
    let mut node = Forwarder::new(EngineConfig::default());
    node.route("/a", &[B]);
    node.at(0).receive(A, interest("/a/1", 1));
    node.at(30).receive(B, data("/a/1"));
    node.receive(A, interest("/a/2", 2).lifetime_ms(100));
    node.receive(A, interest("/a/3", 3).lifetime_ms(100));
    node.receive(B, nack(NackReason::Congestion, "/a/3", 3));
    node.at(1000).run_timers();
    let times: Vec<_> = node.engine().upstream_times().collect();
    let [of_b] = times[..] else { panic!("{times:?}") };
    assert_eq!((of_b.face, of_b.answered.iter().sum::<u64>(), of_b.answered_ns), (B, 1, 30_000_000));
    assert_eq!(of_b.answered[9], 1, "from 20 to 50 ms");
    assert_eq!(of_b.unanswered, 1, "a Nack is an answer");
    node.remove_face(B);
    assert_eq!(node.engine().upstream_times().len(), 0);
}

/// The story: the Interest that was sent upstream had expired, but its entry lived on for a suppressed retransmission.
/// Then the upstream closed, and the entry expired. The closed face got a place in the table of times for ever; after
/// 1024 such faces, no new one would be timed.
#[test]
fn a_face_that_closed_before_an_interest_expired_takes_no_place() {
    let mut node = Forwarder::new(EngineConfig::default());
    node.route("/a", &[B]);
    node.at(0).receive(A, interest("/a/1", 1).lifetime_ms(100));
    assert!(node.at(5).receive(A, interest("/a/1", 2).lifetime_ms(1000)).is_empty(), "suppressed");
    node.at(200).remove_face(B);
    assert_eq!(node.pit_len(), 1);
    node.at(2000).run_timers();
    assert_eq!((node.pit_len(), node.engine().upstream_times().len()), (0, 0));
}
