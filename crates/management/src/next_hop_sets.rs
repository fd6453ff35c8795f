//! Next-hop sets, each kept once: a hundred thousand routes of a routing daemon use a handful of sets.
//!
//! Bytes: a use takes 8; a set takes 16 per next hop, and some 50 more. A set is freed with its last use. Cost: a
//! change of an entry takes a hash of the set.

use hashbrown::HashSet;
use namewire_packet::FaceId;
use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    ops::Deref,
};
use triomphe::ThinArc;

/// A face to send Interests to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The face.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
}

/// A set in use: next hops by cost, then face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextHopSet(ThinArc<(), NextHop>);

impl Deref for NextHopSet {
    type Target = [NextHop];

    fn deref(&self) -> &[NextHop] {
        &self.0.slice
    }
}

impl Borrow<[NextHop]> for NextHopSet {
    fn borrow(&self) -> &[NextHop] {
        self
    }
}

impl Hash for NextHopSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct NextHopSets {
    sets: HashSet<NextHopSet>,
}

impl NextHopSets {
    /// The set with these next hops. Return each use with [`NextHopSets::release`].
    pub(crate) fn get(&mut self, next_hops: &[NextHop]) -> NextHopSet {
        let new = |next_hops: &[NextHop]| NextHopSet(ThinArc::from_header_and_slice((), next_hops));
        self.sets.get_or_insert_with(next_hops, new).clone()
    }

    /// Ends one use.
    pub(crate) fn release(&mut self, set: NextHopSet) {
        // Two references are left: this use and the table's own.
        if ThinArc::strong_count(&set.0) <= 2 {
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
        assert!(std::ptr::eq(&*first, &*second) && empty.is_empty());
        sets.release(first);
        assert_eq!((sets.sets.len(), &*second), (2, &hops[..]));
        sets.release(second);
        sets.release(empty);
        assert!(sets.sets.is_empty());
    }
}
