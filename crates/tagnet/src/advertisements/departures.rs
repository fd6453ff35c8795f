//! Departures: which faces have withdrawn everything, and how far is the search for their old branches?
//!
//! A branch carries the number of departures before it. It is void if its face has departed since. One round through
//! all descriptors finds the branches of all faces that departed before it began; if a face departs meanwhile, another
//! round begins at the present position of the search. So a thousand faces that go down together cost two rounds, not a
//! thousand.

use super::TreeLink;
use std::{collections::BTreeMap, ops::Range};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Departures so far.
    count: u64,
    /// Faces whose branches before this departure are over.
    departed: BTreeMap<TreeLink, u64>,
    /// A round looks at so many descriptors. Those that came later have no branch that is over.
    round: usize,
    /// The next descriptor to look at, and how many of them are still to be looked at.
    next: usize,
    left: usize,
}

impl Departures {
    /// The time of a branch that is set now.
    pub(super) const fn now(&self) -> u64 {
        self.count
    }

    /// A face withdraws everything; there are this many descriptors.
    pub(super) fn note(&mut self, link: TreeLink, known: usize) {
        self.count += 1;
        self.departed.insert(link, self.count);
        (self.round, self.left) = (known, known);
    }

    /// Whether a branch of this face that was set at this time is over.
    pub(super) fn is_over(&self, link: TreeLink, at: u64) -> bool {
        self.departed.get(&link).is_some_and(|departed| at < *departed)
    }

    /// True if no branch is over.
    pub(super) fn is_settled(&self) -> bool {
        self.departed.is_empty()
    }

    /// The next descriptors to look at, at most so many. None at the end of a round: then no branch is over, and all
    /// faces are forgotten.
    pub(super) fn take(&mut self, most: usize) -> Range<usize> {
        if self.left == 0 {
            self.departed.clear();
            return 0..0;
        }
        let from = if self.next >= self.round { 0 } else { self.next };
        let end = self.round.min(from + most.min(self.left));
        self.next = end;
        self.left -= end - from;
        from..end
    }
}
