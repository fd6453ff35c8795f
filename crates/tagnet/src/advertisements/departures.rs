//! Departures: which faces have withdrawn everything, and how far is the search for their old branches?
//!
//! A branch of a face that has departed lately carries the number of departures before it, any other 0. It is void if
//! its face has departed since. One walk through all descriptors finds the branches of all faces that departed before
//! it began; if a face departs meanwhile, another walk follows. So a thousand faces that go down together cost two
//! walks, not a thousand.

use super::{known::Known, tree_link::TreeLink};
use crate::forwarder::TableCursor;
use std::collections::BTreeMap;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Departures so far.
    count: u64,
    /// Faces whose branches before this departure are over.
    departed: BTreeMap<TreeLink, u64>,
    /// Where the walk is.
    pub(super) cursor: TableCursor,
    /// A face departed since the walk began.
    is_late: bool,
}

impl Departures {
    /// The time of a branch of this face that is set now.
    pub(super) fn now(&self, link: TreeLink) -> u64 {
        self.departed.get(&link).copied().unwrap_or(0)
    }

    /// A face withdraws everything.
    pub(super) fn note(&mut self, link: TreeLink) {
        if self.departed.is_empty() {
            self.cursor = TableCursor::default();
        } else {
            self.is_late = true;
        }
        self.count += 1;
        self.departed.insert(link, self.count);
    }

    /// Whether a branch of this face that was set at this time is over.
    pub(super) fn is_over(&self, link: TreeLink, at: u64) -> bool {
        self.departed.get(&link).is_some_and(|departed| at < *departed)
    }

    /// The branches that are over.
    pub(super) fn over(&self, known: &Known) -> impl Iterator<Item = TreeLink> {
        known.branches.iter().filter(|(link, branch)| self.is_over(*link, branch.at)).map(|(link, _)| *link)
    }

    /// True if no branch is over.
    pub(super) fn is_settled(&self) -> bool {
        self.departed.is_empty()
    }

    /// The walk has ended: another begins, or all faces are forgotten.
    pub(super) fn walk_ended(&mut self) {
        self.cursor = TableCursor::default();
        if !std::mem::take(&mut self.is_late) {
            self.departed.clear();
        }
    }
}
