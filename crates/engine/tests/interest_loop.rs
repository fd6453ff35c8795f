//! Packet tables of loop detection: in-records, out-records, dead nonce list (forwarding §1 step 5 and 8, §2.1).

use namewire_engine::{DropReason, EngineConfig, LimitMet};
use namewire_packet::NackReason;
use namewire_testbed::*;

#[test]
fn loop_through_another_face_is_nacked() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    // The nonce is in A's in-record.
    assert_eq!(node.receive(C, interest("/a", 1).token(b"t")), ["C Nack Duplicate /a #1 token=74"]);
    // … and in B's out-record.
    assert_eq!(node.receive(B, interest("/a", 1)), ["B Nack Duplicate /a #1"]);
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 2);
    assert_eq!(node.receive(B, data("/a")), ["A Data /a"], "the loop left no in-record");
}

#[test]
fn out_record_alone_detects_a_loop() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    node.at(20).receive(A, interest("/a", 2)); // in-record 2, out-record 2
    node.at(25).receive(A, interest("/a", 3)); // suppressed: in-record 3, out-record 2
    assert_eq!(node.receive(C, interest("/a", 2)), ["C Nack Duplicate /a #2"]);
    assert_eq!(node.receive(C, interest("/a", 3)), ["C Nack Duplicate /a #3"]);
    assert_eq!(node.receive(C, interest("/a", 1)), NOTHING, "1 is forgotten: a retransmission took its place");
    assert_eq!(node.counters().aggregated, 1);
}

#[test]
fn same_nonce_from_the_same_point_to_point_face_is_a_retransmission() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.at(12).receive(A, interest("/a", 1)), ["B Interest /a #1"]);
    assert_eq!((node.dropped(DropReason::DuplicateNonce), node.counters().retransmitted), (0, 1));
}

#[test]
fn same_nonce_on_a_link_with_several_peers_is_a_loop_without_nack() {
    for link in [X, H] {
        let mut node = Forwarder::routing("/a", &[B]);
        assert_eq!(node.receive(link, interest("/a", 1)).len(), 1);
        assert_eq!(node.at(12).receive(link, interest("/a", 1)), NOTHING);
        assert_eq!(node.dropped(DropReason::DuplicateNonce), 1);
    }
}

#[test]
fn multicast_is_silent_about_loops() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B], "multicast");
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(C, interest("/a", 1)), NOTHING);
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 1);
}

#[test]
fn dead_nonce_after_timeout_lives_six_seconds() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1).lifetime_ms(100));
    node.at(200).run_timers();
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (0, 1));
    assert_eq!(node.at(6199).receive(C, interest("/a", 1)), ["C Nack Duplicate /a #1"]);
    assert_eq!(node.receive(C, interest("/a/x", 1)), ["B Interest /a/x #1"], "the name is part of it");
    assert_eq!(node.at(6201).receive(C, interest("/a", 1)), ["B Interest /a #1"]);
}

/// (MustBeFresh, FreshnessPeriod ms) → is the nonce remembered after Data?
#[test]
fn dead_nonce_after_data() {
    let table = [
        (false, 0, false),
        (false, 10_000, false),
        (true, 0, true),
        (true, 5_999, true),
        (true, 6_000, false),
        (true, 10_000, false),
    ];
    for (must_be_fresh, freshness_ms, remembered) in table {
        let mut node = Forwarder::new(EngineConfig { cs_admit: false, ..EngineConfig::default() });
        node.route("/a", &[B]);
        let ask = |nonce| match must_be_fresh {
            true => interest("/a", nonce).must_be_fresh(),
            false => interest("/a", nonce),
        };
        node.receive(A, ask(1));
        node.at(10).receive(B, fresh_data("/a", freshness_ms));
        let is_loop = node.at(20).receive(C, ask(1))[0].headers.nack == Some(NackReason::Duplicate);
        assert_eq!(is_loop, remembered, "MustBeFresh {must_be_fresh}, FreshnessPeriod {freshness_ms}");
    }
}

/// Two routers joined by two links, multicast on one: the copy sent over the first link came back over the second after
/// Data had satisfied the entry, and nothing stopped it.
#[test]
fn copies_of_a_satisfied_interest_do_not_go_round() {
    let mut node = Forwarder::new(EngineConfig { cs_admit: false, ..EngineConfig::default() });
    node.route_with("/a", &[B, D], "multicast");
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1", "D Interest /a #1"]);
    assert_eq!(node.at(10).receive(B, fresh_data("/a", 10_000)), ["A Data /a"]);
    assert!(node.at(20).receive(C, interest("/a", 1)).is_empty(), "multicast drops a loop in silence");
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 1);
}

#[test]
fn a_nonce_forgotten_early_is_counted() {
    let mut node = Forwarder::new(EngineConfig { dead_nonce_capacity: 2, ..EngineConfig::default() });
    node.route("/a", &[B]);
    (0..5).for_each(|n| drop(node.receive(A, interest(&format!("/a/{n}"), n).lifetime_ms(100))));
    node.at(200).run_timers();
    assert_eq!(node.counters().met(LimitMet::DeadNonceForgotten), 3);
}

/// In a lossy ring, the copy that came the other way was often the only one whose return path was intact.
#[test]
fn copy_of_a_satisfied_interest_is_answered_from_the_store() {
    let mut node = Forwarder::new(EngineConfig::default());
    node.route_with("/a", &[B, D], "multicast");
    node.receive(A, interest("/a", 1));
    node.at(10).receive(B, fresh_data("/a", 10_000));
    assert_eq!(node.at(20).receive(C, interest("/a", 1)), ["C Data /a cached"]);
    assert_eq!(node.dropped(DropReason::DuplicateNonce), 0);
}
