//! Tables: what a worker forwards tag packets by.

use super::BranchSet;
use crate::locator::NodeState;
use namewire_packet::FaceId;
use std::collections::BTreeSet;

/// A tree as this router sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeTable {
    /// The number of the tree.
    pub tree: u16,
    /// The epoch of its labels.
    pub epoch: u32,
    /// This router's place.
    pub state: NodeState,
    /// The faces of its interfaces, from interface 1 on. The last is the parent's; the root has none there.
    pub faces: Vec<FaceId>,
}

/// Everything that a worker needs to forward tag packets. `T` finds descriptors.
#[derive(Clone, Debug, Default)]
pub struct TagTables<T> {
    /// The trees, by number.
    pub trees: Vec<TreeTable>,
    /// Descriptors; the value is the index of a set in `branch_sets`.
    pub descriptors: T,
    /// The sets of branches.
    pub branch_sets: Vec<BranchSet>,
    /// The applications here that locators may name.
    pub applications: BTreeSet<FaceId>,
}

impl<T> TagTables<T> {
    pub(super) fn tree(&self, tree: u16) -> Option<&TreeTable> {
        self.trees.iter().find(|table| table.tree == tree)
    }

    pub(super) fn branch_set(&self, value: u32) -> &BranchSet {
        &self.branch_sets[value as usize]
    }
}
