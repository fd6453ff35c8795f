//! Tables: the tables by which a worker forwards tag packets.

use super::{BranchSet, BranchSets, TagDrop};
use crate::locator::{NodeState, WideLabel};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    tag::{Place, TagAddress, TagPacket, TreeEpoch},
};
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
    /// The same as the label that others address it by.
    pub label: WideLabel,
    /// The faces of its interfaces, from interface 1 on. The last is the parent's; the root has none there.
    pub faces: Vec<FaceId>,
}

/// Everything that a worker needs to forward tag packets. `T` finds descriptors.
#[derive(Debug)]
pub struct TagView<'a, T> {
    /// The trees, by number.
    pub trees: &'a [TreeTable],
    /// Descriptors; the value is the number of a set in `branch_sets`.
    pub descriptors: &'a T,
    /// The sets of branches.
    pub branch_sets: &'a BranchSets,
    /// The applications here that may push.
    pub may_push: &'a BTreeSet<FaceId>,
}

/// The same, for tables that do not change while packets are forwarded.
#[derive(Clone, Debug, Default)]
pub struct TagTables<T> {
    /// The trees, by number.
    pub trees: Vec<TreeTable>,
    /// Descriptors; the value is the number of a set in `branch_sets`.
    pub descriptors: T,
    /// The sets of branches.
    pub branch_sets: BranchSets,
    /// The applications here that may push.
    pub may_push: BTreeSet<FaceId>,
}

impl<T> TagTables<T> {
    /// What a packet is forwarded by.
    pub fn view(&self) -> TagView<'_, T> {
        let TagTables { trees, descriptors, branch_sets, may_push } = self;
        TagView { trees, descriptors, branch_sets, may_push }
    }
}

impl<T> TagView<'_, T> {
    pub(super) fn tree(&self, tree: u16) -> Option<&TreeTable> {
        self.trees.iter().find(|table| table.tree == tree)
    }

    /// The bytes of an application's packet as it goes on: with the epoch of the tree, and with the application's
    /// place for replies, which it cannot forge. Tree 0 stands for the first tree. A packet by locator keeps its epoch,
    /// because the locator belongs to it.
    ///
    /// # Errors
    /// If there is no such tree, or if the packet would be too large.
    pub fn completed(&self, packet: &TagPacket<'_>, application: FaceId) -> Result<Vec<u8>, TagDrop> {
        let TreeEpoch { tree, epoch } = packet.tree;
        let table = if tree == 0 { self.trees.first() } else { self.tree(tree) };
        let table = table.ok_or(TagDrop::UnknownTree)?;
        let is_by_locator = matches!(packet.address, TagAddress::Locator(_));
        let epoch = if is_by_locator { epoch } else { table.epoch };
        let endpoint = u32::try_from(application.0).map_err(|_| TagDrop::NoEndpoint)?;
        let label = table.label.to_bytes();
        let bytes = packet.with(TreeEpoch { tree: table.tree, epoch }, Place { endpoint, label: &label });
        if bytes.len() > MAX_PACKET_BYTES { Err(TagDrop::TooLarge) } else { Ok(bytes) }
    }

    pub(super) fn branch_set(&self, value: u32) -> &BranchSet {
        self.branch_sets.get(value)
    }
}
