//! Hello: the message about a tree from a router to a neighbour.

use crate::locator::WideLabel;

/// What a router tells one neighbour about a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHello {
    /// The number of the tree.
    pub tree: u16,
    /// The number of the router.
    pub sender: u64,
    /// The number of the hello, which rises.
    pub number: u64,
    /// The root that it believes in.
    pub root: u64,
    /// The newest sequence number of that root.
    pub sequence: u32,
    /// Milliseconds since the root raised it, as far as routers know; links are not counted.
    pub age_ms: u16,
    /// The newest sequence number of the neighbour as a root that the sender was told; 0 if none.
    pub heard_of_you: u32,
    /// Links to the root.
    pub distance: u16,
    /// The number of its parent; its own if it is a root.
    pub parent: u64,
    /// The nodes of its subtree, itself included, as it says.
    pub subtree: u32,
    /// Another number for each other shape of its subtree. Only the sender knows how it comes about.
    pub shape: u64,
    /// The label of the neighbour, if that is its child.
    pub label: Option<ChildLabel>,
}

/// A label that a parent gives to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildLabel {
    /// The epoch.
    pub epoch: u32,
    /// The label.
    pub label: WideLabel,
    /// The shape of the child's subtree for which the label was made.
    pub shape: u64,
    /// The nodes for which the child's subtree has labels: what it claims, or less.
    pub size: u32,
}
