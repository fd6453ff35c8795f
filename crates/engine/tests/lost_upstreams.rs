//! Links go down while Interests wait for them.
//!
//! The story: an Interest whose next hop's link went down waited until it expired, and was sent elsewhere only if its
//! consumer asked again. Now it is sent to another next hop at once, and only once, with a new nonce.

use namewire_engine::{DropReason, FaceId};
use namewire_packet::{Interest, NackReason};
use namewire_testbed::*;

const STRATEGIES: [&str; 6] = ["best-route", "multicast", "asf", "access", "random", "self-learning"];

/// A node with next hops for /a, and an Interest from A that went to B alone.
fn waits_for_b(name: &str, next_hops: &[FaceId]) -> Forwarder {
    let mut node = Forwarder::default();
    // One next hop at first, so that multicast and random ask it alone.
    node.route_with("/a", &[B], name);
    assert_eq!(faces(&node.receive(A, interest("/a", 1))), [B], "{name}");
    node.route_with("/a", next_hops, name);
    node
}

fn faces(sent: &[Sent]) -> Vec<FaceId> {
    sent.iter().map(|sent| sent.face).collect()
}

fn nonce(sent: &Sent) -> u32 {
    Interest::parse(&sent.wire).unwrap().nonce().unwrap().to_u32()
}

/// Each way in which engines can learn of the loss.
type Loss = fn(&mut Forwarder, FaceId) -> Vec<Sent>;
const LOSSES: [Loss; 3] = [
    Forwarder::face_down,
    Forwarder::remove_face,
    // Down, and closed later, in the control side's order.
    |node, face| {
        let sent = node.face_down(face);
        assert_eq!(node.remove_face(face), NOTHING, "once only");
        sent
    },
];

#[test]
fn the_next_hop_takes_over_at_once_with_a_new_nonce_under_every_strategy() {
    for name in STRATEGIES {
        for (fib_knows, loss) in LOSSES.into_iter().flat_map(|loss| [(false, loss), (true, loss)]) {
            // The FIB may have lost the face before or afterwards.
            let next_hops: &[FaceId] = if fib_knows { &[C] } else { &[B, C] };
            let mut node = waits_for_b(name, next_hops);
            let sent = loss(&mut node, B);
            assert_eq!(faces(&sent), [C], "{name}");
            assert_ne!(nonce(&sent[0]), 1, "{name}: behind B it may be pending with the first");
            assert_eq!(node.run_timers(), NOTHING, "{name}");
            // A copy that comes back is a loop: the first one, and the one sent now.
            for looped in [1, nonce(&sent[0])] {
                node.receive(D, interest("/a", looped));
            }
            assert_eq!(node.dropped(DropReason::DuplicateNonce), 2, "{name}");
            assert_eq!(node.receive(C, data("/a")), ["A Data /a"], "{name}");
            assert_eq!((node.pit_len(), node.counters().satisfied), (0, 1), "{name}");
            node.receive(D, interest("/a", nonce(&sent[0])).must_be_fresh());
            assert_eq!(node.dropped(DropReason::DuplicateNonce), 3, "{name}: known after the entry's end too");
        }
    }
}

#[test]
fn an_interest_that_others_may_answer_stays_there() {
    for name in ["best-route", "asf", "access", "random", "multicast"] {
        let mut node = Forwarder::default();
        node.route_with("/a", &[B, C, D], "multicast");
        node.receive(A, interest("/a", 1));
        node.route_with("/a", &[B, C, D], name);
        assert_eq!(node.face_down(B), NOTHING, "{name}");
        assert_eq!(node.face_down(C), NOTHING, "{name}");
        assert_eq!(node.face_down(D), NOTHING, "{name}: none is left");
        assert_eq!(node.pit_len(), 1, "{name}");
    }
}

/// As in NFD, an Interest that no upstream can answer waits until it expires or something new comes; no consumer gets a
/// Nack.
#[test]
fn without_another_next_hop_it_waits_for_one_or_for_the_link() {
    for name in ["best-route", "multicast", "asf", "access", "random"] {
        for next_hops in [&[B][..], &[]] {
            let mut node = waits_for_b(name, next_hops);
            assert_eq!(node.face_down(B), NOTHING, "{name}");
            assert_eq!((node.pit_len(), node.counters().out_nacks), (1, 0), "{name}");
            node.route_with("/a", &[B, D], name);
            assert_eq!(faces(&node.new_next_hop("/a", D)), [D], "{name}");
            assert_eq!(node.face_up(B), NOTHING, "{name}: D was asked");
        }
        let mut node = waits_for_b(name, &[B]);
        node.face_down(B);
        let sent = node.face_up(B);
        assert_eq!(faces(&sent), [B], "{name}");
        assert_ne!(nonce(&sent[0]), 1, "{name}");
        assert_eq!(node.face_up(B), NOTHING, "{name}: once");
        assert_eq!(node.receive(B, data("/a")), ["A Data /a"], "{name}");
    }
}

/// While the only link is down, new Interests wait too: a Nack would make consumers give up at each flap.
#[test]
fn new_interests_wait_for_a_link_that_is_down() {
    for name in STRATEGIES {
        let mut node = Forwarder::default();
        node.route_with("/a", &[B], name);
        node.face_down(B);
        let sent = node.receive(A, interest("/a", 1));
        if name == "self-learning" {
            assert!(!faces(&sent).contains(&B) && !sent.is_empty(), "it floods around the dead link");
            continue;
        }
        assert_eq!(sent, NOTHING, "{name}");
        assert_eq!((node.dropped(DropReason::NextHopDown), node.pit_len()), (1, 1), "{name}");
        assert_eq!(node.receive(A, interest("/a", 2)), NOTHING, "{name}");
        assert_eq!(node.face_up(B), ["B Interest /a #2"], "{name}: nothing was sent before, the nonce is its own");
        // Without any next hop it is as before.
        node.route_with("/b", &[], name);
        node.receive(A, interest("/b", 3));
        assert_eq!(node.dropped(DropReason::NoRoute), 1, "{name}");
    }
}

/// C has already sent a Nack; then B, which was asked instead, is lost. A later Nack then ends the Interest.
#[test]
fn a_lost_upstream_does_not_delay_a_nack() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a", 1));
    let sent = node.face_down(B);
    assert_eq!(node.receive(C, nack(NackReason::Congestion, "/a", nonce(&sent[0]))), ["A Nack Congestion /a #1"]);
    assert_eq!(node.pit_len(), 0);
}

/// It is sent for a downstream that allows it: not back to where it came from, and within its scope.
#[test]
fn the_copy_is_sent_for_a_downstream_that_it_may_be_sent_for() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a", 1));
    node.receive(C, interest("/a", 2)); // joined: C waits for us
    let sent = node.face_down(B);
    assert_eq!(faces(&sent), [C], "for A's sake");
    assert_eq!(sent[0].headers.incoming_face_id, Some(A));

    let mut node = Forwarder::routing("/localhop/a", &[L, B]);
    node.receive(A, interest("/localhop/a", 1));
    assert_eq!(node.remove_face(L), NOTHING, "it came from afar and may not go on");

    let mut node = Forwarder::routing("/a", &[L, C]);
    node.receive(A, interest("/a", 1).hop_limit(1));
    assert_eq!(node.remove_face(L), NOTHING, "HopLimit 0 ends at this node");
}

/// An entry that waits for a probe's answer is already answered: no downstream waits for it.
#[test]
fn an_answered_entry_is_sent_nowhere() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B, C], "asf/v=5/probing-interval~1000");
    let mut number = 0;
    let both_asked = (0..2000).find_map(|_| {
        number += 1;
        node.at(u64::from(number) * 10).run_timers();
        let name = format!("/a/{number}");
        let sent = node.receive(A, interest(&name, number));
        node.receive(sent[0].face, data(&name));
        (sent.len() == 2).then(|| sent[1].face)
    });
    let probed = both_asked.expect("a probe");
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.face_down(probed), NOTHING);
}

/// More Interests than one call may send: the next calls send the rest.
#[test]
fn every_pending_interest_is_sent_however_many_there_are() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    for number in 0..3000 {
        node.receive(A, interest(&format!("/a/{number}"), number));
    }
    let sent = node.face_down(B);
    assert_eq!((sent.len(), node.dropped(DropReason::NextHopScanFull)), (3000, 0));
    assert!(sent.iter().all(|sent| sent.face == C));
}

/// self-learning: the learned next hop's link goes down. An Interest that may be flooded is flooded anew. The sender of
/// one that may not gets a Nack: its route leads nowhere.
#[test]
fn self_learning_looks_for_another_way() {
    let mut node = waits_for_b("self-learning", &[B]);
    let mut flood = faces(&node.face_down(B));
    flood.sort();
    assert!(flood.contains(&C) && flood.contains(&D) && !flood.contains(&B) && !flood.contains(&A), "{flood:?}");

    let mut node = Forwarder::default();
    node.route_with("/a", &[B], "self-learning");
    let mut asked = interest("/a", 1);
    asked.headers.non_discovery = true;
    node.receive(A, asked);
    assert_eq!(node.face_down(B), ["A Nack NoRoute /a #1"]);
    assert_eq!(node.pit_len(), 0);
}

/// self-learning: the learned next hop is silent. A retransmission that may be flooded is flooded.
#[test]
fn self_learning_floods_a_retransmission_when_its_route_is_silent() {
    let mut node = waits_for_b("self-learning", &[B]);
    assert_eq!(faces(&node.at(100).receive(A, interest("/a", 2))), [B], "it may answer still");
    let sent = node.at(400).receive(A, interest("/a", 3));
    let flood = faces(&sent);
    assert!(flood.contains(&C) && flood.contains(&D), "{flood:?}");
    assert!(sent.iter().all(|sent| !sent.headers.non_discovery));
    let mut asked = interest("/a", 4);
    asked.headers.non_discovery = true;
    assert_eq!(faces(&node.at(900).receive(A, asked)), [B], "what must not be flooded is not");
}

/// The first next hop is silent, and the consumer asks again: every strategy sends to the other one.
#[test]
fn a_retransmission_goes_to_another_next_hop_under_every_strategy() {
    for name in STRATEGIES {
        for seed in 0..20 {
            let mut node = waits_for_b(name, &[B, C]);
            (0..seed).for_each(|number| drop(node.receive(A, interest(&format!("/x/{number}"), 9))));
            let sent = node.at(200).receive(A, interest("/a", 2));
            assert!(faces(&sent).contains(&C), "{name}: {sent:?}");
        }
    }
}
