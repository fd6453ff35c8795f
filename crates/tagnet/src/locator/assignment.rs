//! Assignment: a node's state and its children's labels, from its own label and its children's subtree sizes.
//!
//! Question: how do routers label a tree with messages between neighbours only? Each router reports the size of its
//! subtree to its parent once it knows the sizes of its children's subtrees. The root takes [`TreeLabel::root`]. Each
//! node that has its label makes its assignment, and sends each child its label. [`super::TreeLabels::of`] gives the
//! same labels if a node lists its children in the order of the numbers that they have in the tree given to it.
//!
//! Cost: O(c log c) for c children, at a change of the tree only. A neighbour may send anything: sums are checked.

use super::{NodeState, TreeLabel, Word};

/// What a node knows once it has its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment<W> {
    label: TreeLabel<W>,
    /// Its forwarding state.
    pub state: NodeState,
    /// The label of each child, in the order of the sizes given.
    pub labels: Vec<TreeLabel<W>>,
    /// The number of the interface to each child, in the same order.
    pub interfaces: Vec<u32>,
}

/// Why there is no assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// A child's subtree has no node.
    #[error("a child says that its subtree is empty")]
    EmptySubtree,
    /// The labels have no room for the nodes.
    #[error("the subtree has more nodes than labels of this width allow")]
    TooManyNodes,
    /// A list does not fit. With a label from an honest parent this does not happen.
    #[error("an interface list is too long for labels of this width")]
    ListTooLong,
}

impl<W: Word> Assignment<W> {
    /// The node's own label.
    pub fn label(&self) -> TreeLabel<W> {
        self.label
    }

    /// The assignment of the node with this label, whose children's subtrees have these sizes.
    ///
    /// # Errors
    /// If a size is 0, or if the ids or the lists do not fit.
    pub fn of(label: TreeLabel<W>, sizes: &[u32]) -> Result<Self, AssignmentError> {
        if sizes.contains(&0) {
            return Err(AssignmentError::EmptySubtree);
        }
        let size = sizes.iter().fold(1, |sum: u64, &size| sum.saturating_add(size.into()));
        if u64::from(label.node_id()) + size > W::NODES_MAX {
            return Err(AssignmentError::TooManyNodes);
        }
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&child| std::cmp::Reverse(sizes[child]));
        let mut assignment = Assignment {
            label,
            state: state(label, size as u32, order.iter().map(|&child| sizes[child])),
            labels: vec![label; sizes.len()],
            interfaces: vec![0; sizes.len()],
        };
        for (interface, &child) in (1..).zip(&order) {
            assignment.interfaces[child] = interface;
        }
        let by_size = order.iter().map(|&child| sizes[child]);
        for (&child, label) in order.iter().zip(child_labels(label, size as u32, by_size)) {
            assignment.labels[child] = label.ok_or(AssignmentError::ListTooLong)?;
        }
        Ok(assignment)
    }
}

/// The state of the node with this label, a subtree of `size` nodes and children of these sizes, largest first.
pub(super) fn state<W: Word>(
    label: TreeLabel<W>,
    size: u32,
    mut sizes: impl ExactSizeIterator<Item = u32>,
) -> NodeState {
    let children = sizes.len() as u32;
    NodeState::new(label, size, sizes.next().unwrap_or(0), children)
}

/// The labels of the children of the node with this label and a subtree of `size` nodes; the children's sizes come
/// largest first. `None` for a label that does not fit.
pub(super) fn child_labels<W: Word>(
    label: TreeLabel<W>,
    size: u32,
    sizes: impl Iterator<Item = u32>,
) -> impl Iterator<Item = Option<TreeLabel<W>>> {
    let first = u64::from(label.node_id());
    let mut light_id = first + 1;
    (1..).zip(sizes).map(move |(interface, child_size)| {
        if interface == super::HEAVY_CHILD {
            return label.behind(interface, first + u64::from(size - child_size));
        }
        let child = label.behind(interface, light_id);
        light_id += u64::from(child_size);
        child
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::{Label, WideLabel};

    #[test]
    fn the_larger_subtree_comes_first_and_the_heavy_child_has_the_last_ids() {
        let assignment = Assignment::of(Label::root(), &[1, 7, 3, 7]).unwrap();
        assert_eq!(assignment.interfaces, [4, 1, 3, 2]);
        let ids: Vec<u32> = assignment.labels.iter().map(|label| label.node_id()).collect();
        assert_eq!(ids, [1 + 7 + 3, 1 + 7 + 3 + 1, 1 + 7, 1]);
        assert_eq!((assignment.state.subtree_size(), assignment.state.parent_interface()), (19, 5));
        assert_eq!(assignment.state.heavy_child_id(), Some(12));
        for (label, interface) in assignment.labels.iter().zip(&assignment.interfaces) {
            assert_eq!(assignment.state.forward(*label), *interface);
        }
    }

    #[test]
    fn invalid_sizes_and_labels_of_neighbours_are_refused() {
        let of = |label: Label, sizes: &[u32]| Assignment::of(label, sizes).unwrap_err();
        assert_eq!(of(Label::root(), &[1, 0]), AssignmentError::EmptySubtree);
        assert_eq!(of(Label::root(), &[65_536]), AssignmentError::TooManyNodes);
        assert_eq!(of(Label::root(), &[u32::MAX; 9]), AssignmentError::TooManyNodes);
        assert!(Assignment::of(Label::root(), &[65_535]).is_ok());
        assert!(Assignment::of(WideLabel::root(), &[u32::MAX - 1]).is_ok());
        assert!(Assignment::of(WideLabel::root(), &[u32::MAX]).is_err());
        let forged = Label::new(1, 0, 0xffff).unwrap();
        assert_eq!(of(forged, &[1, 1]), AssignmentError::ListTooLong);
        assert!(Assignment::of(forged, &[1]).is_ok(), "the heavy child's code is empty");
    }
}
