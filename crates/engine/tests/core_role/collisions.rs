//! Entries that collided and stay: each of their faces gets Data and Nacks as often as it should.

use super::{by_fingerprint, colliding, core, crowded, node, node_with};
use namewire_engine::{CoreConfig, DropReason, FaceId};
use namewire_packet::{Data, NackReason};
use namewire_tables::fingerprint_pit::FingerprintPitConfig;
use namewire_testbed::*;
use std::collections::VecDeque;

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

/// Otherwise a peer could have one Data multiplied as often as it likes.
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
    // Data that could be sent to no face does not count.
    let mut node = self::node(core());
    node.receive(A, interest("/p/a", 4));
    assert_eq!(node.receive(A, data("/p/a").collided()), NOTHING);
    assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a collided"]);
}

/// Two cores and the consumer's node share one medium, which repeats what it carries.
#[test]
fn cores_on_one_ad_hoc_medium_do_not_hand_data_to_each_other_for_ever() {
    let mut cores = [node(core()), node(core())];
    for core in &mut cores {
        core.route_with("/air", &[D, H], "multicast");
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

/// With two segments, the faces are in different ones, and neither Interest sees the other's entry. The Data of the
/// first once removed both.
#[test]
fn names_with_one_fingerprint_get_their_data_each() {
    let [a, b] = &colliding();
    for (segments, order) in [(1, [a, b]), (1, [b, a]), (2, [a, b]), (2, [b, a])] {
        let fingerprints = FingerprintPitConfig { segments, ..crowded().fingerprints };
        let mut node = node(CoreConfig { fingerprints, ..crowded() });
        assert_eq!(node.receive(A, interest(a, 1)).len(), 1);
        assert_eq!(node.receive(B, interest(b, 2)).len(), 1, "it goes on whatever is there");
        for name in order {
            let sent = node.receive(D, data(name));
            assert_eq!(sent, [&*format!("A Data {name} collided"), &format!("B Data {name} collided")]);
        }
    }
}

/// The router here knows only one of the two: the other collided with it at a router further on.
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
    let mut node = Forwarder::routing("/p", &[D]);
    node.receive(A, interest("/p/a", 1));
    assert_eq!(node.receive(D, data("/p/a").collided()), ["A Data /p/a"]);
    assert_eq!(node.receive(D, data("/p/a").collided()), NOTHING);
}

/// Both tables know the fingerprint; the Data for one name must not remove the other's entry.
#[test]
fn a_name_kept_beside_its_fingerprint_is_answered_too() {
    let [a, b] = &colliding();
    let mut node = node(crowded());
    node.receive(L, interest(a, 1));
    node.receive(B, interest(b, 2));
    assert_eq!((node.pit_len(), node.engine().fingerprints_len()), (1, 1));
    assert_eq!(node.receive(D, data(a)), [&*format!("L Data {a}"), &format!("B Data {a} collided")]);
    assert_eq!(node.receive(D, data(b)), [&*format!("B Data {b} collided")]);
    // A face that asked in both ways gets one copy.
    node.receive(B, interest(a, 3).can_be_prefix());
    node.receive(B, interest(a, 4));
    assert_eq!(node.receive(D, data(a)), [&*format!("B Data {a}")]);
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

/// Another worker answered a prefix of the name; its home may not have been asked for it.
#[test]
fn a_name_answered_at_another_worker_leaves_fingerprints_of_others() {
    for workers in [2, 3, 5] {
        let mut node = node_with(crowded(), workers);
        let mut collided = 0;
        for nonce in 0..1000 {
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
