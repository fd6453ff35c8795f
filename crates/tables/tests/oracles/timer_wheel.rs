//! Timer wheel against a map of deadlines that is searched from end to end.

use namewire_tables::{PageSize, TimerWheel};
use proptest::prelude::*;
use std::collections::BTreeMap;

const TICK_NS: u64 = 1000;
const SLOTS: usize = 64;
const CAPACITY: u32 = 20;
const HOUR_NS: u64 = 3_600_000_000_000;

fn wheel(tick_ns: u64, capacity: u32) -> TimerWheel {
    TimerWheel::new(tick_ns, SLOTS, capacity, PageSize::Base).unwrap()
}

/// Looks at as many timers as there are.
fn pop(wheel: &mut TimerWheel, now_ns: u64) -> Option<u32> {
    let mut visits = u32::MAX;
    wheel.pop_expired(now_ns, &mut visits)
}

/// An operation on either; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The deadline is relative to now, and may lie in the past.
    Arm {
        id: u32,
        after_ns: u64,
        past: bool,
    },
    Disarm {
        id: u32,
    },
    /// Takes at most `most` due timers and looks at most at `visits`, so that the wheel stops in the middle
    /// of a slot.
    Pop {
        step_ns: u64,
        most: usize,
        visits: u32,
    },
}

fn span_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..3 * TICK_NS,
        0..2 * TICK_NS * SLOTS as u64,
        // Whole turns, so that many timers share a slot.
        (0..4_u64).prop_map(|turns| turns * TICK_NS * SLOTS as u64),
        0..3 * HOUR_NS,
    ]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..CAPACITY, span_ns(), prop::bool::weighted(0.1))
            .prop_map(|(id, after_ns, past)| Operation::Arm { id, after_ns, past }),
        1 => (0..CAPACITY).prop_map(|id| Operation::Disarm { id }),
        3 => (span_ns(), prop_oneof![0..3_usize, Just(usize::MAX)], prop_oneof![0..5_u32, Just(u32::MAX)])
            .prop_map(|(step_ns, most, visits)| Operation::Pop { step_ns, most, visits }),
    ]
}

/// Length of a tick, start, and operations.
pub(crate) fn runs() -> impl Strategy<Value = (u64, u64, Vec<Operation>)> {
    let tick_ns = prop_oneof![3 => Just(TICK_NS), 1 => 1..=256_u64];
    let start_ns = prop_oneof![Just(0), 0..HOUR_NS, Just(u64::MAX / 2)];
    (tick_ns, start_ns, prop::collection::vec(operation(), 1..120))
}

/// The wheel fires what the map says, none early and none more than a tick late.
pub(crate) fn replay(tick_ns: u64, start_ns: u64, operations: Vec<Operation>) {
    let mut wheel = wheel(tick_ns, CAPACITY);
    let mut naive = BTreeMap::new();
    let mut now = start_ns;
    for operation in operations {
        match operation {
            Operation::Arm { id, after_ns, past } => {
                let deadline = if past { now.saturating_sub(after_ns) } else { now + after_ns };
                wheel.arm(id, deadline);
                naive.insert(id, deadline);
            }
            Operation::Disarm { id } => {
                wheel.prefetch(id);
                assert_eq!(wheel.disarm(id), naive.remove(&id).is_some());
            }
            Operation::Pop { step_ns, most, mut visits } => {
                now += step_ns;
                for _ in 0..most {
                    let Some(id) = wheel.pop_expired(now, &mut visits) else {
                        // A caller that stops early is told to come again if a timer is due.
                        if visits == 0 && wheel.next_deadline().is_some_and(|next| next <= now) {
                            break;
                        }
                        // Late by less than a tick: the boundary of every timer that remains is in the
                        // future.
                        for (id, deadline) in &naive {
                            assert!(deadline + tick_ns > now, "timer {} is late", id);
                        }
                        // A caller that sleeps until then makes progress.
                        if let Some(next) = wheel.next_deadline() {
                            assert!(next > now);
                        }
                        break;
                    };
                    let deadline = naive.remove(&id);
                    assert!(deadline.is_some_and(|deadline| deadline <= now), "{} early", id);
                }
            }
        }
        assert_eq!(wheel.len(), naive.len());
        assert!((0..CAPACITY).all(|id| wheel.is_armed(id) == naive.contains_key(&id)));
        let first_boundary = naive.values().min().map(|first| first.next_multiple_of(tick_ns));
        assert_eq!(wheel.next_deadline().is_some(), first_boundary.is_some());
        if let (Some(next), Some(boundary)) = (wheel.next_deadline(), first_boundary) {
            assert!(next <= boundary.max(now), "sleeps until {} past {}", next, boundary);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn wheel_equals_the_naive_one((tick_ns, start_ns, operations) in runs()) {
        replay(tick_ns, start_ns, operations);
    }
}

/// Sleeping until `next_deadline` each time fires everything within its tick.
#[test]
fn a_sleeper_fires_every_timer_in_its_tick() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut wheel = wheel(TICK_NS, 5000);
    let deadlines: Vec<u64> = (0..5000).map(|_| random.u64(0..10_000_000)).collect();
    for (id, &deadline) in (0..).zip(&deadlines) {
        wheel.arm(id, deadline);
    }
    let (mut fired, mut wakings) = (0, 0);
    while let Some(now) = wheel.next_deadline() {
        wakings += 1;
        while let Some(id) = pop(&mut wheel, now) {
            let deadline = deadlines[id as usize];
            assert!(deadline <= now && now < deadline + TICK_NS);
            fired += 1;
        }
    }
    assert_eq!(fired, 5000);
    assert!(wakings <= 10_001, "no more than one waking per tick: {wakings}");
}

/// A sender that chooses lifetimes can put all timers in one slot, turns away. One call once walked them
/// all, 65,536 with the default PIT, while packets waited.
#[test]
fn a_slot_of_far_off_timers_is_walked_in_pieces() {
    let mut wheel = wheel(TICK_NS, 1000);
    let turn_ns = TICK_NS * SLOTS as u64;
    for id in 0..1000 {
        let turns = if id == 500 { 0 } else { 100 };
        wheel.arm(id, turns * turn_ns + 7 * TICK_NS);
    }
    let (mut now, mut calls) = (7 * TICK_NS, 0);
    let fired = loop {
        let mut visits = 100;
        calls += 1;
        if let Some(id) = wheel.pop_expired(now, &mut visits) {
            break id;
        }
        assert_eq!(visits, 0);
        assert!(wheel.next_deadline().unwrap() <= now, "told to come again");
        now += TICK_NS; // packets were served in between
    };
    assert_eq!(fired, 500);
    assert!(calls >= 5, "{calls} calls looked at 500 timers");
    while wheel.next_deadline().unwrap() <= now {
        let mut visits = 100;
        assert_eq!(wheel.pop_expired(now, &mut visits), None);
    }
    assert_eq!(wheel.len(), 999);
}

#[test]
fn extreme_deadlines_do_not_overflow() {
    let mut wheel = wheel(1, 3);
    wheel.arm(0, u64::MAX);
    wheel.arm(1, 0);
    wheel.arm(2, u64::MAX - 1);
    assert_eq!(pop(&mut wheel, 10), Some(1));
    assert_eq!(pop(&mut wheel, u64::MAX - 1), Some(2));
    assert_eq!(pop(&mut wheel, u64::MAX - 1), None);
    assert_eq!(wheel.next_deadline(), Some(u64::MAX));
    assert_eq!(pop(&mut wheel, u64::MAX), Some(0));
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
#[should_panic(expected = "beyond the capacity")]
fn an_id_beyond_the_capacity_is_the_callers_mistake() {
    wheel(TICK_NS, 8).arm(8, 0);
}
