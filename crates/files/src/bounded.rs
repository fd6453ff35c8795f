//! Bounded memory of what was used last: which things are kept, when there is no room for all?
//!
//! Each thing has a weight, for example its bytes. When the sum exceeds the limit, the things that were not used for
//! the longest time go. The newest stays, even if it alone is too heavy. Cost: one hash look-up for each use.

use hashlink::LruCache;
use std::{borrow::Borrow, hash::Hash};

/// Values by key, with weights.
pub(crate) struct Bounded<K, V> {
    kept: LruCache<K, (V, usize)>,
    weight: usize,
    weight_max: usize,
}

impl<K: Eq + Hash, V> Bounded<K, V> {
    pub(crate) fn new(weight_max: usize) -> Self {
        Bounded { kept: LruCache::new_unbounded(), weight: 0, weight_max }
    }

    /// The value, which counts as used now.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.kept.get(key).map(|(value, _)| value)
    }

    /// Keeps `value` in the place of an earlier one.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.weight += weight;
        if let Some((_, weight)) = self.kept.insert(key, (value, weight)) {
            self.weight -= weight;
        }
        while self.weight > self.weight_max && self.kept.len() > 1 {
            if let Some((_, (_, weight))) = self.kept.remove_lru() {
                self.weight -= weight;
            }
        }
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.weight -= self.kept.remove(key).map_or(0, |(_, weight)| weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_the_longest_time_goes() {
        let mut bounded = Bounded::new(10);
        (0..5).for_each(|key| bounded.insert(key, key, 2));
        assert_eq!(bounded.get(&0), Some(&0));
        bounded.insert(5, 5, 4);
        let kept: Vec<i32> = (0..6).filter(|key| bounded.get(key).is_some()).collect();
        assert_eq!((kept, bounded.weight), (vec![0, 3, 4, 5], 10));
        bounded.insert(5, 6, 1);
        bounded.remove(&3);
        bounded.remove(&3);
        assert_eq!((bounded.get(&5).copied(), bounded.weight), (Some(6), 5));
        bounded.insert(7, 7, 100);
        assert_eq!((bounded.get(&7).copied(), bounded.kept.len(), bounded.weight), (Some(7), 1, 100));
    }
}
