//! Expiry of PIT entries: at their lifetime, never early, at most one tick late.

use namewire_engine::DropReason;
use namewire_testbed::*;

#[test]
fn entry_expires_at_its_lifetime() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1).lifetime_ms(1000));
    let deadline = node.engine().next_deadline().expect("armed");
    assert!(deadline.0 <= 1_004_000_000, "{deadline:?}: one tick late at most");
    node.at(999).run_timers();
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.at(999).receive(B, data("/a")), ["A Data /a"]);

    node.receive(A, interest("/a/2", 2).lifetime_ms(1000));
    node.at(2003).run_timers();
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (0, 1));
    assert_eq!(node.receive(B, data("/a/2")), NOTHING);
    assert_eq!(node.dropped(DropReason::UnsolicitedData), 1);
    assert_eq!(node.engine().next_deadline(), None);
}

#[test]
fn latest_downstream_decides_expiry_and_the_earlier_gets_nothing_late() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1).lifetime_ms(100));
    node.receive(C, interest("/a", 2).lifetime_ms(1000));
    node.at(500).run_timers();
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.receive(B, data("/a")), ["C Data /a"]);
}

#[test]
fn deadlines_of_many_entries_are_never_late() {
    let mut node = Forwarder::routing("/a", &[B]);
    let mut rng = fastrand::Rng::with_seed(4);
    let lifetimes: Vec<u64> = (0..500).map(|_| rng.u64(0..40_000)).collect();
    for (n, &ms) in lifetimes.iter().enumerate() {
        node.receive(A, interest(&format!("/a/{n}"), n as u32).lifetime_ms(ms));
    }
    // If it wakes only when asked to, no entry outlives its deadline by more than one tick.
    while let Some(deadline) = node.engine().next_deadline() {
        node.now = node.now.max(deadline);
        node.run_timers();
        let should_be_left = lifetimes.iter().filter(|&&ms| ms * 1_000_000 > node.now.0).count();
        let may_be_left = lifetimes.iter().filter(|&&ms| ms * 1_000_000 + 4_000_000 > node.now.0).count();
        assert!((should_be_left..=may_be_left).contains(&node.pit_len()), "at {:?}", node.now);
    }
    assert_eq!(node.counters().unsatisfied, 500);
}

#[test]
fn huge_lifetime_is_capped_and_zero_expires_at_once() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a/1", 1).lifetime_ms(u64::MAX));
    node.at(10 * 24 * 3600 * 1000 + 4).run_timers();
    assert_eq!(node.pit_len(), 0);
    assert_eq!(node.receive(A, interest("/a/2", 2).lifetime_ms(0)).len(), 1);
    node.at(10 * 24 * 3600 * 1000 + 8).run_timers();
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn three_thousand_expiries_are_served_in_pieces() {
    let mut node = Forwarder::routing("/a", &[B]);
    for n in 0..3000 {
        node.receive(A, interest(&format!("/a/{n}"), n));
    }
    node.at(10_000).run_timers();
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (0, 3000));
}
