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

/// Looks at as many alarms as there are.
fn pop(wheel: &mut TimerWheel, now_ns: u64) -> Option<u32> {
    let mut visits = u32::MAX;
    wheel.pop_expired(now_ns, &mut visits)
}

/// An operation on either; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The deadline is relative to now, and may lie in the past.
    Arm { id: u32, after_ns: u64, past: bool },
    /// The wheel is not told.
    Forget { id: u32 },
    /// Takes at most `most` alarms and looks at most at `visits`, so that the wheel stops in the middle of a
    /// slot.
    Pop { step_ns: u64, most: usize, visits: u32 },
}

fn span_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..3 * TICK_NS,
        0..2 * TICK_NS * SLOTS as u64,
        // Whole turns, so that many alarms share a slot.
        (0..4_u64).prop_map(|turns| turns * TICK_NS * SLOTS as u64),
        0..3 * HOUR_NS,
    ]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..CAPACITY, span_ns(), prop::bool::weighted(0.1))
            .prop_map(|(id, after_ns, past)| Operation::Arm { id, after_ns, past }),
        1 => (0..CAPACITY).prop_map(|id| Operation::Forget { id }),
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

/// With an owner that looks at its deadlines, the wheel fires what the map says: none more than a tick late, and with
/// no more alarms than the owner armed.
pub(crate) fn replay(tick_ns: u64, start_ns: u64, operations: Vec<Operation>) {
    let mut wheel = wheel(tick_ns, CAPACITY);
    let mut naive = BTreeMap::new();
    let mut now = start_ns;
    let (mut armed, mut came) = (0, 0);
    for operation in operations {
        match operation {
            Operation::Arm { id, after_ns, past } => {
                let deadline = if past { now.saturating_sub(after_ns) } else { now + after_ns };
                wheel.prefetch(id);
                wheel.arm(id, deadline);
                armed += 1;
                naive.insert(id, deadline);
            }
            Operation::Forget { id } => {
                naive.remove(&id);
            }
            Operation::Pop { step_ns, most, mut visits } => {
                now += step_ns;
                for _ in 0..most {
                    let Some(id) = wheel.pop_expired(now, &mut visits) else {
                        // A caller that stops early is told to come again if an alarm is due.
                        if visits == 0 && wheel.next_deadline().is_some_and(|next| next <= now) {
                            break;
                        }
                        // Late by less than a tick: the boundary of every deadline that remains is in the
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
                    came += 1;
                    assert!(!wheel.has_alarm(id));
                    match naive.get(&id) {
                        Some(&deadline) if deadline > now => {
                            wheel.arm(id, deadline);
                            armed += 1;
                        }
                        Some(_) => {
                            naive.remove(&id);
                        }
                        None => {}
                    }
                }
            }
        }
        assert_eq!(wheel.len(), (0..CAPACITY).filter(|&id| wheel.has_alarm(id)).count());
        assert!(came + wheel.len() <= armed, "{} alarms for {} calls", came, armed);
        assert!(naive.keys().all(|&id| wheel.has_alarm(id)));
        assert_eq!(wheel.next_deadline().is_some(), !wheel.is_empty());
        if let Some(boundary) = naive.values().min().map(|first| first.next_multiple_of(tick_ns)) {
            let next = wheel.next_deadline();
            assert!(next.is_some_and(|next| next <= boundary.max(now)), "sleeps until {:?} past {}", next, boundary);
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

/// Entries that are answered at once use the same ids. Alarms come as often as a lifetime passes, not as
/// often as there are entries.
#[test]
fn an_id_used_again_and_again_has_one_alarm_per_lifetime() {
    const LIFETIME_NS: u64 = 40 * TICK_NS;
    let mut wheel = wheel(TICK_NS, 4);
    let mut came = 0;
    for now in (0..10 * LIFETIME_NS).step_by(100) {
        (0..4).for_each(|id| wheel.arm(id, now + LIFETIME_NS));
        while let Some(id) = pop(&mut wheel, now) {
            wheel.arm(id, now + LIFETIME_NS);
            came += 1;
        }
    }
    assert!((4 * 8..4 * 10).contains(&came), "{came} alarms for 16,000 entries");
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

/// A sender that chooses lifetimes can put all alarms in one slot, turns away. One call once walked them
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
fn an_id_beyond_the_capacity_panics() {
    wheel(TICK_NS, 8).arm(8, 0);
}
