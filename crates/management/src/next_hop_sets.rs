//! Next-hop sets, each kept once: a hundred thousand routes of a routing daemon use a handful of sets.
//!
//! Bytes: a use takes 16; a set takes 16 per next hop, and some 50 more. A set is freed with its last use. Cost: a
//! change of an entry takes a hash of the set.

use hashbrown::HashSet;
use namewire_packet::FaceId;
use std::sync::Arc;

/// A face to send Interests to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The face.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
}

/// A set in use: next hops by cost, then face.
pub(crate) type NextHopSet = Arc<[NextHop]>;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct NextHopSets {
    sets: HashSet<NextHopSet>,
}

impl NextHopSets {
    /// The set with these next hops. Return each use with [`NextHopSets::release`].
    pub(crate) fn get(&mut self, next_hops: &[NextHop]) -> NextHopSet {
        Arc::clone(self.sets.get_or_insert_with(next_hops, |next_hops| Arc::from(next_hops)))
    }

    /// Ends one use.
    pub(crate) fn release(&mut self, set: NextHopSet) {
        // Two references are left: this use and the table's own.
        if Arc::strong_count(&set) <= 2 {
            self.sets.remove(&set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::FaceId;

    #[test]
    fn equal_sets_are_stored_once_and_freed_with_their_last_use() {
        let mut sets = NextHopSets::default();
        let hops = [NextHop { face: FaceId(300), cost: 1 }];
        let (first, second, empty) = (sets.get(&hops), sets.get(&hops), sets.get(&[]));
        assert!(Arc::ptr_eq(&first, &second) && empty.is_empty());
        sets.release(first);
        assert_eq!((sets.sets.len(), &*second), (2, &hops[..]));
        sets.release(second);
        sets.release(empty);
        assert!(sets.sets.is_empty());
    }
}
