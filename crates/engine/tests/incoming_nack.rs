//! Packet tables of the Incoming Nack pipeline and of Nack processing (§4.3).

use namewire_engine::{DropReason, FaceId};
use namewire_packet::NackReason::{self, Congestion, Duplicate, NoRoute};
use namewire_testbed::*;

/// Two upstreams asked, by a retransmission after the suppression interval.
fn two_upstreams() -> Forwarder {
    let mut node = Forwarder::routing("/a", &[B, C]);
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1"]);
    assert_eq!(node.at(20).receive(A, interest("/a", 2)), ["C Interest /a #2"]);
    node
}

#[test]
fn only_upstream_nacks() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1).token(b"t"));
    node.receive(C, interest("/a", 2));
    let sent = node.receive(B, nack(Congestion, "/a", 1));
    assert_eq!(sent, ["A Nack Congestion /a #1 token=74", "C Nack Congestion /a #2"]);
    assert_eq!((node.pit_len(), node.counters().unsatisfied, node.counters().out_nacks), (0, 1, 2));
    assert_eq!(node.engine().next_deadline(), None);
    // The copies that were sent may still loop back.
    assert_eq!(node.receive(D, interest("/a", 1)), ["D Nack Duplicate /a #1"]);
}

#[test]
fn least_severe_reason_wins() {
    let reasons = [
        (NoRoute, Congestion, "Congestion"),
        (Congestion, NoRoute, "Congestion"),
        (Duplicate, NoRoute, "Duplicate"),
        (Duplicate, Congestion, "Congestion"),
        (NackReason::None, NoRoute, "NoRoute"),
        (NackReason::None, NackReason::None, "None"),
    ];
    for (first, second, expected) in reasons {
        let mut node = two_upstreams();
        assert_eq!(node.receive(B, nack(first, "/a", 1)), NOTHING, "C may still answer");
        let sent = node.receive(C, nack(second, "/a", 2));
        assert_eq!(sent, [format!("A Nack {expected} /a #2").as_str()]);
        assert_eq!(node.pit_len(), 0);
    }
}

#[test]
fn one_nacked_the_other_answers() {
    let mut node = two_upstreams();
    node.receive(B, nack(NoRoute, "/a", 1));
    assert_eq!(node.receive(C, data("/a")), ["A Data /a"]);
}

/// Two routers that ask each other: the one remaining upstream is waiting for us.
#[test]
fn the_one_not_nacked_is_also_a_downstream() {
    let mut node = two_upstreams();
    node.receive(C, interest("/a", 3));
    assert_eq!(node.receive(B, nack(NoRoute, "/a", 1)), ["C Nack NoRoute /a #3"]);
    assert_eq!(node.pit_len(), 1, "A still waits for C");
    assert_eq!(node.receive(C, nack(Duplicate, "/a", 2)), ["A Nack Duplicate /a #2"]);
    assert_eq!(node.pit_len(), 0);
}

/// A regression: the in-record was erased although a Nack is never sent on a link with several peers. The Data that
/// came later did not go there.
#[test]
fn multi_access_downstream_that_cannot_be_nacked_goes_on_waiting() {
    let mut node = Forwarder::routing("/a", &[B, X]);
    node.receive(A, interest("/a", 1));
    node.at(20).receive(A, interest("/a", 2));
    node.receive(X, interest("/a", 3));
    assert_eq!(node.receive(B, nack(NoRoute, "/a", 1)), NOTHING);
    let sent = node.receive(B, data("/a"));
    assert_eq!(sent, ["A Data /a", "X Data /a"]);
}

#[test]
fn refused_nacks() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a", 1));
    // face, name, nonce
    let refused = [
        (B, "/a", 2),   // not what we sent
        (C, "/a", 1),   // not asked
        (A, "/a", 1),   // a downstream
        (B, "/b", 1),   // not pending
        (B, "/a/b", 1), // not that name
    ];
    for (n, (face, name, nonce)) in refused.into_iter().enumerate() {
        assert_eq!(node.receive(face, nack(NoRoute, name, nonce)), NOTHING);
        assert_eq!(node.dropped(DropReason::UnmatchedNack), n as u64 + 1, "{face} {name} {nonce}");
    }
    let other_selectors = interest("/a", 1).can_be_prefix().nacked(NoRoute);
    assert_eq!(node.receive(B, other_selectors), NOTHING);
    let without_nonce = bare_interest("/a").nacked(NoRoute);
    assert_eq!(node.receive(B, without_nonce), NOTHING);
    assert_eq!(node.dropped(DropReason::UnmatchedNack), 7);
    assert_eq!(node.receive(FaceId(999), nack(NoRoute, "/a", 1)), NOTHING);
    assert_eq!(node.dropped(DropReason::UnknownFace), 1);
    assert_eq!(node.counters().in_nacks, 8);
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.receive(B, nack(NoRoute, "/a", 1)), ["A Nack NoRoute /a #1"]);
}

#[test]
fn nack_on_a_link_with_several_peers_is_ignored() {
    for link in [X, H] {
        let mut node = Forwarder::routing("/a", &[link]);
        node.receive(A, interest("/a", 1));
        assert_eq!(node.receive(link, nack(NoRoute, "/a", 1)), NOTHING);
        assert_eq!((node.dropped(DropReason::NackOnMultiAccess), node.pit_len()), (1, 1));
    }
}

#[test]
fn no_nack_to_a_link_with_several_peers() {
    for link in [X, H] {
        let mut node = Forwarder::routing("/a", &[B]);
        assert_eq!(node.receive(link, interest("/none", 1)), NOTHING);
        assert_eq!(node.dropped(DropReason::NoRoute), 1);
        node.receive(link, interest("/a", 2));
        assert_eq!(node.receive(B, nack(NoRoute, "/a", 2)), NOTHING);
        assert_eq!(node.pit_len(), 0);
    }
}

/// A regression: §1 ends an entry once no upstream can answer. Under multicast, which sends no Nacks, it lived until
/// its lifetime ended.
#[test]
fn multicast_entry_ends_silently_when_every_upstream_has_nacked() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B, C], "multicast");
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(B, nack(NoRoute, "/a", 1)), NOTHING);
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.receive(C, nack(NoRoute, "/a", 1)), NOTHING);
    assert_eq!((node.pit_len(), node.counters().unsatisfied, node.counters().out_nacks), (0, 1, 0));
}

#[test]
fn interest_after_all_nacked_but_one_starts_over() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a", 1));
    node.at(20).receive(A, interest("/a", 2));
    node.receive(C, nack(Congestion, "/a", 2));
    // B is pending: a retransmission goes to the unused next hop, else to the one asked longest ago.
    assert_eq!(node.at(60).receive(A, interest("/a", 3)), ["B Interest /a #3"]);
}
