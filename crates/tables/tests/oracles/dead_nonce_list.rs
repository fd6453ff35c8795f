//! Dead nonce list against a plain queue that is searched from end to end.

use namewire_tables::{DeadNonceList, HashKey, PageSize};
use proptest::prelude::*;
use std::collections::VecDeque;

const CAPACITY: usize = 12;
const LIFETIME_NS: u64 = 1000;

fn list(capacity: usize) -> DeadNonceList {
    DeadNonceList::new(capacity, LIFETIME_NS, HashKey::from_seed(5), PageSize::Base).unwrap()
}

#[derive(Default)]
struct Naive {
    queue: VecDeque<(u64, u32, u64)>,
    evicted_early: u64,
}

impl Naive {
    fn expire(&mut self, now: u64, limit: usize) {
        for _ in 0..limit {
            if self.queue.front().is_some_and(|&(.., expires)| expires <= now) {
                self.queue.pop_front();
            }
        }
    }

    fn insert(&mut self, name: u64, nonce: u32, now: u64) {
        self.expire(now, 4);
        if self.queue.len() == CAPACITY {
            self.queue.pop_front();
            self.evicted_early += 1;
        }
        self.queue.push_back((name, nonce, now + LIFETIME_NS));
    }

    fn contains(&self, name: u64, nonce: u32, now: u64) -> bool {
        self.queue.iter().any(|&entry| (entry.0, entry.1) == (name, nonce) && now < entry.2)
    }
}

/// Name, nonce, and time since the step before. Most steps insert the pair; others let some pairs expire, or nothing.
type Step = ((u64, u32), u64, Option<usize>);

/// A step for both; the fuzz target uses them too.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let expire = prop_oneof![2 => Just(None), 1 => (0..6_usize).prop_map(Some)];
    ((0..4_u64, 0..5_u32), 0..200_u64, expire)
}

/// Both must know the same pairs.
pub(crate) fn replay(steps: Vec<Step>) {
    let mut list = list(CAPACITY);
    let mut naive = Naive::default();
    let mut now = 0;
    for ((name, nonce), step, expire) in steps {
        now += step;
        if let Some(limit) = expire {
            list.expire(now, limit);
            naive.expire(now, limit);
        } else {
            list.insert(name, nonce, now);
            naive.insert(name, nonce, now);
        }
        for name in 0..4 {
            for nonce in 0..5 {
                list.prefetch(name, nonce);
                let expected = naive.contains(name, nonce, now);
                assert_eq!(list.contains(name, nonce, now), expected, "name {name} Nonce {nonce} at {now}");
            }
        }
        assert_eq!(list.len(), naive.queue.len());
        assert_eq!(list.evicted_early(), naive.evicted_early);
    }
}

proptest! {
    #[test]
    fn list_equals_the_naive_one(steps in prop::collection::vec(step(), 1..200)) {
        replay(steps);
    }
}

#[test]
fn an_entry_lives_exactly_its_lifetime() {
    let mut list = list(10);
    list.insert(1, 2, 50);
    assert!(list.contains(1, 2, 50 + LIFETIME_NS - 1));
    assert!(!list.contains(1, 2, 50 + LIFETIME_NS));
    assert!(!list.contains(2, 1, 50));
    list.expire(50 + LIFETIME_NS, 1);
    assert!(list.is_empty());
    assert_eq!(list.evicted_early(), 0);
}

/// A hundred thousand pairs in a list of a thousand: the last thousand are there.
#[test]
fn a_flood_evicts_the_oldest_and_is_counted() {
    let mut list = list(1000);
    for nonce in 0..100_000 {
        list.insert(7, nonce, 0);
    }
    assert_eq!((list.len(), list.evicted_early()), (1000, 99_000));
    assert!((99_000..100_000).all(|nonce| list.contains(7, nonce, 0)));
    assert!((0..99_000).all(|nonce| !list.contains(7, nonce, 0)));
}
