//! Packet tables of best-route, multicast, retransmission suppression and new next hops
//! (forwarding §4.1, §4.2, §4.4).

use namewire_engine::{DropReason, FaceId};
use namewire_packet::NackReason;
use namewire_testbed::*;

/// The sequence seen on a live NFD (§4.1), through the whole engine.
const ASKED_MS: [u64; 11] = [0, 5, 12, 30, 60, 120, 240, 300, 500, 760, 1100];
const FORWARDED_MS: [u64; 8] = [0, 12, 60, 120, 240, 500, 760, 1100];

#[test]
fn suppression_of_one_consumer() {
    for strategy in ["best-route", "multicast"] {
        let mut node = Forwarder::default();
        node.route_with("/a", &[B], strategy);
        let forwarded: Vec<u64> = ASKED_MS
            .into_iter()
            .zip(1..)
            .filter(|&(ms, nonce)| !node.at(ms).receive(A, interest("/a", nonce)).is_empty())
            .map(|(ms, _)| ms)
            .collect();
        assert_eq!(forwarded, FORWARDED_MS, "{strategy}");
        assert_eq!(node.dropped(DropReason::Suppressed), 3);
        assert_eq!(node.counters().retransmitted, 10);
    }
}

#[test]
fn another_consumer_counts_the_same_way() {
    let mut node = Forwarder::routing("/a", &[B]);
    let forwarded: Vec<u64> = ASKED_MS
        .into_iter()
        .zip(1..)
        .filter(|&(ms, nonce)| {
            !node.at(ms).receive(if nonce % 2 == 0 { A } else { C }, interest("/a", nonce)).is_empty()
        })
        .map(|(ms, _)| ms)
        .collect();
    assert_eq!(forwarded, FORWARDED_MS);
}

/// The second name gets the PIT slot of the first.
#[test]
fn suppression_restarts_with_every_entry() {
    let mut node = Forwarder::routing("/", &[B]);
    for (name, start) in [("/a", 0), ("/b", 1000)] {
        let times = [0, 10, 30, 70];
        let sent = times.map(|ms| node.at(start + ms).receive(A, interest(name, ms as u32)).len());
        assert_eq!(sent, [1, 1, 1, 1], "{name}");
        node.receive(B, data(name));
    }
}

#[test]
fn suppression_parameters() {
    let mut node = Forwarder::default();
    let name = "best-route/v=5/retx-suppression-initial~100/retx-suppression-max~150";
    node.route_with("/a", &[B], name);
    let times = [0, 99, 100, 249, 250, 399, 400];
    let forwarded: Vec<u64> =
        times.into_iter().filter(|&ms| !node.at(ms).receive(A, interest("/a", ms as u32)).is_empty()).collect();
    assert_eq!(forwarded, [0, 100, 250, 400]);
}

#[test]
fn best_route_takes_the_cheapest_then_the_unused_then_the_oldest() {
    let mut node = Forwarder::routing("/a", &[B, C, D]);
    let mut ask = |ms, nonce| node.at(ms).receive(A, interest("/a", nonce).lifetime_ms(10_000))[0].face;
    assert_eq!(ask(0, 1), B);
    assert_eq!(ask(300, 2), C);
    assert_eq!(ask(600, 3), D);
    assert_eq!(ask(900, 4), B);
    assert_eq!(ask(1200, 5), C);
}

#[test]
fn best_route_skips_the_incoming_face_unless_ad_hoc() {
    let mut node = Forwarder::routing("/a", &[A, B]);
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1"]);
    let mut node = Forwarder::routing("/a", &[A]);
    assert_eq!(node.receive(A, interest("/a", 1)), ["A Nack NoRoute /a #1"]);
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (0, 1));
    let mut node = Forwarder::routing("/a", &[H, B]);
    assert_eq!(node.receive(H, interest("/a", 1)), ["H Interest /a #1"]);
    let mut node = Forwarder::routing("/a", &[X]);
    assert_eq!(node.receive(X, interest("/a", 1)), NOTHING);
}

#[test]
fn next_hop_whose_face_is_gone_is_skipped() {
    let mut node = Forwarder::routing("/a", &[FaceId(999), B]);
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1"]);
}

#[test]
fn longest_prefix_decides_even_without_next_hops() {
    let mut node = Forwarder::routing("/", &[B]);
    node.route("/a", &[]);
    assert_eq!(node.receive(A, interest("/a/b", 1)), ["A Nack NoRoute /a/b #1"]);
    assert_eq!(node.receive(A, interest("/b", 1)), ["B Interest /b #1"]);
}

#[test]
fn retransmission_from_the_only_next_hop_is_not_sent_back() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.at(20).receive(B, interest("/a", 2)), NOTHING);
    assert_eq!(node.dropped(DropReason::NoRoute), 1);
    assert_eq!(node.receive(B, data("/a")), ["A Data /a"]);
}

#[test]
fn new_again_once_the_out_records_have_expired() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a", 1).lifetime_ms(100));
    node.at(5).receive(D, interest("/a", 2).lifetime_ms(1000));
    assert_eq!(node.at(150).receive(A, interest("/a", 3)), ["B Interest /a #3"], "the cheapest, not the unused");
}

#[test]
fn multicast_asks_everyone_but_the_asker() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B, C, A, D], "multicast");
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1", "C Interest /a #1", "D Interest /a #1"]);
}

#[test]
fn multicast_suppresses_per_upstream() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[A, B], "multicast");
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1"]);
    // From C, A is an upstream not yet asked, and B one asked 5 ms ago.
    assert_eq!(node.at(5).receive(C, interest("/a", 2)), ["A Interest /a #2"]);
    assert_eq!(node.at(10).receive(C, interest("/a", 3)), ["B Interest /a #3"]);
    assert_eq!(node.at(15).receive(C, interest("/a", 4)), ["A Interest /a #4"]);
    assert_eq!(node.at(16).receive(C, interest("/a", 5)), NOTHING);
    assert_eq!(node.dropped(DropReason::Suppressed), 1);
}

#[test]
fn multicast_asks_again_at_once_who_has_nacked() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B, C], "multicast");
    node.receive(A, interest("/a", 1));
    node.receive(B, nack(NackReason::Congestion, "/a", 1));
    assert_eq!(node.at(5).receive(A, interest("/a", 2)), ["B Interest /a #2"], "C is suppressed, B is not pending");
}

#[test]
fn multicast_without_next_hop_waits() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    assert_eq!(node.receive(A, interest("/a", 1)), NOTHING);
    assert_eq!((node.dropped(DropReason::NoRoute), node.pit_len()), (1, 1));
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.at(7).new_next_hop("/a", B), ["B Interest /a #1"]);
    assert_eq!(node.receive(B, data("/a")), ["A Data /a"]);
}

#[test]
fn multicast_counts_hop_limit() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.receive(A, interest("/a", 1).hop_limit(1)), NOTHING);
    assert_eq!((node.dropped(DropReason::HopLimitZero), node.dropped(DropReason::NoRoute)), (1, 0));
}

// ---- New next hop ----

#[test]
fn best_route_sends_to_a_new_next_hop_only_if_nobody_was_asked() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    node.route("/a", &[B, C]);
    assert_eq!(node.new_next_hop("/a", C), NOTHING);
    node.route("/a", &[B]);
    assert_eq!(node.remove_face(B), NOTHING);
    node.route("/a", &[C]);
    let sent = node.new_next_hop("/a", C);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].line().starts_with("C Interest /a #"), "{sent:?}");
    assert_ne!(sent[0], "C Interest /a #1", "B may have passed that on: it would be taken for a loop");
}

#[test]
fn new_next_hop_concerns_only_what_its_entry_covers() {
    let mut node = Forwarder::default();
    for prefix in ["/a", "/a/b", "/c"] {
        node.route_with(prefix, &[], "multicast");
    }
    for (name, nonce) in [("/a/1", 1), ("/a/b/2", 2), ("/c/3", 3), ("/ab", 4)] {
        node.receive(A, interest(name, nonce));
    }
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.new_next_hop("/a", B), ["B Interest /a/1 #1"]);
    assert_eq!(node.new_next_hop("/a", B), NOTHING, "asked a moment ago");
}

#[test]
fn new_next_hop_obeys_scope_and_hop_limit() {
    let mut node = Forwarder::default();
    for prefix in ["/localhop", "/a"] {
        node.route_with(prefix, &[], "multicast");
    }
    node.receive(A, interest("/localhop/x", 1));
    node.receive(A, interest("/a/x", 2).hop_limit(1));
    for prefix in ["/localhop", "/a"] {
        node.route_with(prefix, &[B, L], "multicast");
        assert_eq!(node.new_next_hop(prefix, B), NOTHING);
        assert_eq!(node.new_next_hop(prefix, L).len(), 1);
    }
}

/// A regression: only the last downstream was considered. If that was the new next hop itself (a consumer that becomes
/// a producer), the others were never served.
#[test]
fn new_next_hop_serves_any_downstream_that_may_use_it() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    node.receive(A, interest("/a", 1));
    node.receive(B, interest("/a", 2));
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.new_next_hop("/a", B), ["B Interest /a #1"]);

    // Downstreams whose Interest has expired do not count, nor does the new next hop itself.
    node.route_with("/b", &[], "multicast");
    node.receive(A, interest("/b", 3).lifetime_ms(10));
    node.receive(B, interest("/b", 4));
    node.route_with("/b", &[B], "multicast");
    assert_eq!(node.at(10).new_next_hop("/b", B), NOTHING);
}

/// A regression: a pending Interest with a ForwardingHint was sent by its own name, which §3 says is not tried, and not
/// by its hint.
#[test]
fn new_next_hop_follows_the_forwarding_hint() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    node.receive(A, interest("/a/1", 1).hint(&["/r"]));
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.new_next_hop("/a", B), NOTHING);
    node.route("/r", &[C]);
    assert_eq!(node.new_next_hop("/r", C), ["C Interest /a/1 #1 hint=/r"]);
}

#[test]
fn new_next_hop_sends_a_bounded_number() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    for n in 0..1100 {
        node.receive(A, interest(&format!("/a/{n}"), n));
    }
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.new_next_hop("/a", B).len(), 1024);
    assert_eq!(node.dropped(DropReason::NextHopScanFull), 76);
}

/// A routing daemon adds next hops by the thousand: one pass serves them all.
#[test]
fn new_next_hops_of_several_prefixes_are_shown_at_once() {
    let mut node = Forwarder::default();
    node.route_with("/", &[], "multicast");
    for (n, name) in ["/a/1", "/a/b/1", "/b", "/c/1", "/d"].into_iter().enumerate() {
        node.receive(A, interest(name, n as u32));
    }
    for (prefix, faces) in [("/a", &[B][..]), ("/a/b", &[C]), ("/c", &[B, C])] {
        node.route_with(prefix, faces, "multicast");
    }
    let gained = [("/a", B), ("/a/b", C), ("/c", B), ("/c", C), ("/x", B)].map(|(prefix, face)| (uri(prefix), face));
    let sent = node.new_next_hops(&gained);
    let expected = ["B Interest /a/1 #0", "C Interest /a/b/1 #1", "B Interest /c/1 #3", "C Interest /c/1 #3"];
    assert!(sent.len() == 4 && expected.iter().all(|&one| sent.iter().any(|sent| *sent == one)), "{sent:?}");
}

#[test]
fn removed_downstream_is_not_retried() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    node.receive(A, interest("/a", 1));
    node.remove_face(A);
    node.route_with("/a", &[B], "multicast");
    assert_eq!(node.new_next_hop("/a", B), NOTHING);
    node.at(5000).run_timers();
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn no_route_without_any_fib_entry() {
    let mut node = Forwarder::default();
    assert_eq!(node.receive(A, interest("/a", 1).token(b"t")), ["A Nack NoRoute /a #1 token=74"]);
    assert_eq!((node.dropped(DropReason::NoRoute), node.pit_len()), (1, 0));
    assert_eq!(
        node.receive(A, interest("/a", 1))[0].headers.nack,
        Some(NackReason::NoRoute),
        "no dead nonce: not sent"
    );
}

/// A link that delivered nothing got the first copy of every Interest while it was the cheapest.
#[test]
fn a_face_that_is_down_gets_no_interest_under_any_strategy() {
    for strategy in ["best-route", "multicast", "asf", "access", "random", "self-learning"] {
        let mut node = Forwarder::default();
        node.route_with("/a", &[B, C], strategy);
        node.set_up(B, false);
        for nonce in 1..20 {
            let sent = node.receive(A, interest(&format!("/a/{nonce}"), nonce));
            let faces: Vec<FaceId> = sent.iter().map(|sent| sent.face).collect();
            assert_eq!(faces, [C], "{strategy}");
        }
        node.set_up(B, true);
        let gets_some = (20..80).any(|nonce| {
            let sent = node.receive(A, interest(&format!("/a/{nonce}"), nonce));
            sent.iter().any(|sent| sent.face == B)
        });
        assert!(gets_some, "{strategy}");
    }
}
