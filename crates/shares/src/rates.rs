//! Rates: how often may each holder ask for something?
//!
//! Each holder has a bucket of tokens (a *token bucket*): a request takes one, and tokens come back at a steady rate,
//! up to twice as many as come in a second. So a holder may ask in bursts, and one that floods costs the others
//! nothing.
//!
//! Layout: one bucket for each holder that has asked and whose bucket is not full again; at most one for each number
//! that a holder can have. Cost: one look-up for each request.

use crate::HolderId;
use std::{collections::HashMap, hash::Hash};

/// A token, in the unit of a bucket: the nanoseconds of a second, so that a rate of n a second adds n for each.
const TOKEN: u64 = 1_000_000_000;

/// The buckets of all holders.
#[derive(Debug)]
pub struct Rates<Key = HolderId> {
    per_second: u32,
    buckets: HashMap<Key, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    level: u64,
    at_ns: u64,
}

impl<Key: Copy + Eq + Hash> Rates<Key> {
    /// Each holder may ask this often a second; 0 is never.
    pub fn new(per_second: u32) -> Self {
        Rates { per_second, buckets: HashMap::new() }
    }

    /// Takes a token of the holder; false if it has none. `now_ns` never goes back.
    pub fn try_take(&mut self, holder: Key, now_ns: u64) -> bool {
        let rate = u64::from(self.per_second);
        let full = 2 * rate * TOKEN;
        let level = |bucket: &Bucket| {
            bucket.level.saturating_add(now_ns.saturating_sub(bucket.at_ns).saturating_mul(rate)).min(full)
        };
        let now = self.buckets.get(&holder).map_or(full, level);
        let Some(left) = now.checked_sub(TOKEN) else { return false };
        if !self.buckets.contains_key(&holder) {
            self.buckets.retain(|_, bucket| level(bucket) < full);
        }
        self.buckets.insert(holder, Bucket { level: left, at_ns: now_ns });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn holder(index: usize) -> HolderId {
        HolderId::from_index(index).expect("there is such a holder")
    }

    #[test]
    fn a_holder_may_ask_in_bursts_and_at_its_rate() {
        let mut rates = Rates::new(10);
        let mut taken = |now_ns: u64| (0..100).filter(|_| rates.try_take(holder(300), now_ns)).count();
        assert_eq!(taken(SECOND), 20);
        assert_eq!(taken(SECOND + SECOND / 20), 0, "half a token");
        assert_eq!(taken(SECOND + SECOND / 10), 1);
        assert_eq!(taken(3 * SECOND), 19);
        assert_eq!(taken(u64::MAX), 20);
    }

    #[test]
    fn who_floods_costs_the_others_nothing() {
        let mut rates = Rates::new(5);
        for now_ns in 0..100_000 {
            rates.try_take(holder(300), now_ns);
        }
        assert!(!rates.try_take(holder(300), 100_000) && rates.try_take(holder(301), 100_000));
    }

    #[test]
    fn buckets_that_are_full_again_take_no_memory() {
        let mut rates = Rates::new(1);
        for index in 0..500 {
            assert!(rates.try_take(holder(index), index as u64 * 10 * SECOND));
        }
        assert_eq!(rates.buckets.len(), 1);
    }

    #[test]
    fn a_rate_of_nothing_is_never() {
        assert!(!Rates::new(0).try_take(holder(0), u64::MAX));
    }
}
