//! Copies of Data: an Interest kept by name, or sent to several next hops, may be answered after its entry has ended.
//! If the answer then matches a fingerprint, this is another name's, and must stay.
//!
//! Each test is a way in which Data was lost on links that lose nothing (`sim/tests/mixed_cores.rs`).

use super::{colliding, colliding_under, core, crowded, node, node_with};
use namewire_engine::{CoreConfig, DropReason};
use namewire_testbed::*;

/// (a) A neighbour kept the prefix at one of its workers and the fingerprint at another, and sent a copy for each.
#[test]
fn the_second_of_two_copies_leaves_the_fingerprint_of_another_name() {
    let [answer, other] = &colliding();
    let mut node = node(crowded());
    node.receive(A, interest("/p", 1).can_be_prefix());
    assert_eq!(node.receive(D, data(answer).collided()), [&*format!("A Data {answer}")]);
    node.receive(B, interest(other, 2));
    assert_eq!(node.receive(D, data(answer)), NOTHING, "it is the second copy");
    assert_eq!(node.dropped(DropReason::DataSentAlready), 1);
    assert_eq!(node.receive(D, data(other)), [&*format!("B Data {other}")]);
}

/// The same with several workers here: the worker of the prefix sees the first copy, perhaps not the second.
#[test]
fn the_second_copy_is_known_at_every_worker() {
    for workers in [1, 2, 3, 5] {
        let mut node = node_with(crowded(), workers);
        for round in 0..1000 {
            let [answer, other] = ["x", "y"].map(|name| format!("/p/{name}/{round}"));
            node.receive(A, interest("/p", 2 * round).can_be_prefix());
            assert_eq!(node.receive(D, data(&answer).collided()).len(), 1);
            node.receive(B, interest(&other, 2 * round + 1));
            node.receive(D, data(&answer));
            let sent = node.receive(D, data(&other));
            assert!(sent.iter().any(|sent| sent.face == B), "{workers} workers: {other} is lost");
            node.now = node.now.plus_ms(5000);
            node.run_timers();
        }
        assert!(node.dropped(DropReason::DataSentAlready) > 5);
    }
}

/// A core that keeps names while fewer than two are pending.
fn adaptive() -> CoreConfig {
    CoreConfig { names_up_to: 2, ..crowded() }
}

/// (b) The adaptive PIT kept it by name, it was retransmitted, and both were answered.
#[test]
fn the_second_answer_to_a_repeated_interest_leaves_the_fingerprint_of_another_name() {
    let [repeated, other] = &colliding();
    let mut node = node(adaptive());
    node.receive(A, interest(repeated, 1));
    assert_eq!(node.at(20).receive(A, interest(repeated, 2)).len(), 1, "it goes on again");
    node.receive(A, interest("/p/filler", 3));
    assert_eq!(node.receive(D, data(repeated)), [&*format!("A Data {repeated}")]);
    node.receive(A, interest("/p/another-filler", 4));
    node.receive(B, interest(other, 5));
    assert_eq!(node.engine().fingerprints_len(), 1);
    assert_eq!(node.receive(D, data(repeated)), NOTHING);
    assert_eq!(node.receive(D, data(other)), [&*format!("B Data {other}")]);
}

/// The name is also requested by fingerprint before its second answer. That answer satisfies it, and a third comes.
#[test]
fn a_name_that_was_answered_twice_is_answered_again_and_then_remembered() {
    let [repeated, other] = &colliding();
    let mut node = node(adaptive());
    node.receive(A, interest(repeated, 1));
    node.at(20).receive(A, interest(repeated, 2));
    node.receive(A, interest("/p/filler", 3));
    node.receive(D, data(repeated));
    node.receive(A, interest("/p/another-filler", 4));
    node.receive(B, interest(repeated, 5));
    assert_eq!(node.receive(D, data(repeated)), [&*format!("B Data {repeated}")]);
    node.receive(C, interest(other, 6));
    assert_eq!(node.receive(D, data(repeated)), NOTHING, "the answer to the third Interest");
    assert_eq!(node.receive(D, data(other)), [&*format!("C Data {other}")]);
}

/// (c) Data that another consumer requested by name answered the prefix. The prefix's own answer has another name, so
/// that no table here remembers it. But it has a PIT token, as only answers to names have.
#[test]
fn an_answer_with_a_token_leaves_every_fingerprint() {
    let [first, own, other] = &colliding();
    let mut node = node(crowded());
    node.send_tokens(D);
    let asked = node.receive(A, interest("/p", 1).can_be_prefix());
    let token = asked[0].headers.pit_token.expect("a token");
    assert_eq!(node.receive(D, data(first)), [&*format!("A Data {first}")]);
    node.receive(B, interest(other, 2));
    let own = data(own).token(token.as_bytes());
    assert_eq!(node.receive(D, own).len(), 1, "B may have meant it");
    assert_eq!(node.counters().answers_after_their_names, 1);
    assert_eq!(node.receive(D, data(other)), [&*format!("B Data {other} collided")]);
    assert_eq!(node.counters().prefixes_without_token, 0);
}

/// The worker that the token names has forgotten the prefix, and hands the Data over to the home of its name.
#[test]
fn an_answer_keeps_its_token_from_worker_to_worker() {
    for workers in [2, 3, 5] {
        let mut node = node_with(crowded(), workers);
        node.send_tokens(D);
        // The fingerprints and homes that it takes meet in 6 of 300 rounds with 5 workers.
        for round in 0..1000 {
            let [first, own, other] = ["x", "y", "z"].map(|name| format!("/p/{name}/{round}"));
            let asked = node.receive(A, interest("/p", 2 * round).can_be_prefix());
            let token = asked[0].headers.pit_token.expect("a token");
            node.receive(D, data(&first));
            node.receive(B, interest(&other, 2 * round + 1));
            node.receive(D, data(&own).token(token.as_bytes()));
            let sent = node.receive(D, data(&other));
            assert!(sent.iter().any(|sent| sent.face == B), "{workers} workers: {other} is lost");
            node.now = node.now.plus_ms(5000);
            node.run_timers();
        }
        assert!(node.counters().answers_after_their_names > 5);
    }
}

/// The rest of (c): where neighbours take no tokens the answer is lost, and counted; a retransmission gets it.
#[test]
fn an_answer_without_a_token_may_take_a_fingerprint_away_and_is_counted() {
    let [first, own, other] = &colliding();
    let mut node = node(crowded());
    node.receive(A, interest("/p", 1).can_be_prefix());
    assert_eq!(node.receive(D, data(first)), [&*format!("A Data {first}")]);
    assert_eq!(node.counters().prefixes_without_token, 1);
    node.receive(B, interest(other, 3));
    assert_eq!(node.receive(D, data(own)), [&*format!("B Data {own}")]);
    assert_eq!(node.receive(D, data(other)), NOTHING, "lost");
    assert_eq!(node.receive(B, interest(other, 4)).len(), 1);
    assert_eq!(node.receive(D, data(other)), [&*format!("B Data {other}")]);
    // An Interest for a whole name has no other answer.
    node.receive(A, interest(first, 5).can_be_prefix());
    node.receive(D, data(first));
    assert_eq!(node.counters().prefixes_without_token, 1);
}

/// An Interest that goes to several next hops gets an answer from each.
#[test]
fn the_answers_of_several_next_hops_leave_the_fingerprint_of_another_name() {
    let [asked, other] = &colliding_under("/all");
    let mut node = node(crowded());
    assert_eq!(node.receive(A, interest(asked, 1)).len(), 2, "to C and D");
    assert_eq!(node.receive(C, data(asked)), [&*format!("A Data {asked}")]);
    node.receive(B, interest(other, 2));
    assert_eq!(node.receive(D, data(asked)), NOTHING);
    assert_eq!(node.receive(D, data(other)), [&*format!("B Data {other}")]);
    assert_eq!(node.receive(C, data(other)), NOTHING);
    assert_eq!(node.engine().fingerprints_len(), 0, "no entry stays for it");
}

#[test]
fn data_that_comes_once_is_not_remembered() {
    let mut node = node(core());
    for nonce in 0..3 {
        node.receive(A, interest("/p/a", nonce));
        assert_eq!(node.receive(D, data("/p/a")), ["A Data /p/a"]);
        assert_eq!(node.receive(D, data("/p/a")), NOTHING);
    }
    assert_eq!((node.dropped(DropReason::UnsolicitedData), node.dropped(DropReason::DataSentAlready)), (3, 0));
}
