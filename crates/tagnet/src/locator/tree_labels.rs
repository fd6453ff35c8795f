//! Tree labels: the labels and the states of all nodes of a tree, computed in one place.
//!
//! Layout: an array each of labels, states and parents by node, and the children of all nodes in one array, the larger
//! subtree first. So interface p of a node is its child p − 1, and the interface after the children is its parent.

use super::assignment::{child_labels, state};
use super::{HERE, NodeState, TreeLabel, Word};

/// The labels and states of the nodes of a tree.
#[derive(Clone, Debug)]
pub struct TreeLabels<W> {
    labels: Vec<TreeLabel<W>>,
    states: Vec<NodeState>,
    tree: Tree,
}

/// Why parents make no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// No node is without parent.
    #[error("no node is the root")]
    NoRoot,
    /// A second node without parent.
    #[error("node {0} is a second root")]
    SecondRoot(u32),
    /// A parent that is no node.
    #[error("the parent of node {0} is no node")]
    UnknownParent(u32),
    /// A node that the root does not reach.
    #[error("some nodes are their own ancestors")]
    Cycle,
    /// More nodes than labels of this width allow.
    #[error("more nodes than labels of this width allow")]
    TooManyNodes,
}

impl<W: Word> TreeLabels<W> {
    /// The labels of the tree whose node number i has the parent `parents[i]`.
    ///
    /// # Errors
    /// If this is no tree with one root, or if it has too many nodes for labels of this width.
    pub fn of(parents: &[Option<u32>]) -> Result<Self, TreeError> {
        if parents.len() as u64 > W::NODES_MAX {
            return Err(TreeError::TooManyNodes);
        }
        let mut tree = Tree::of(parents)?;
        let order = tree.breadth_first()?;
        let mut sizes = vec![1_u32; parents.len()];
        for &node in order.iter().rev() {
            if let Some(parent) = parents[node as usize] {
                sizes[parent as usize] += sizes[node as usize];
            }
        }
        let mut labels = vec![TreeLabel::root(); parents.len()];
        let mut states = vec![NodeState::new(TreeLabel::<W>::root(), 1, 0, 0); parents.len()];
        for &node in &order {
            let (label, size) = (labels[node as usize], sizes[node as usize]);
            let children = tree.children_mut(node);
            children.sort_by_key(|&child| std::cmp::Reverse(sizes[child as usize]));
            let by_size = children.iter().map(|&child| sizes[child as usize]);
            states[node as usize] = state(label, size, by_size.clone());
            for (&child, label) in children.iter().zip(child_labels(label, size, by_size)) {
                labels[child as usize] = label.ok_or(TreeError::TooManyNodes)?;
            }
        }
        Ok(TreeLabels { labels, states, tree })
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.labels.len()
    }

    /// The label of this node.
    ///
    /// # Panics
    /// If the number is none of a node.
    pub fn label(&self, node: u32) -> TreeLabel<W> {
        self.labels[node as usize]
    }

    /// The forwarding state of this node.
    ///
    /// # Panics
    /// If the number is none of a node.
    pub fn state(&self, node: u32) -> &NodeState {
        &self.states[node as usize]
    }

    /// The node behind this interface of a node (behind [`HERE`] the node itself), or `None` if it lacks the interface.
    ///
    /// # Panics
    /// If the number is none of a node.
    pub fn node_behind(&self, node: u32, interface: u32) -> Option<u32> {
        if interface == HERE {
            Some(node)
        } else if interface == self.state(node).parent_interface() {
            self.tree.parent(node)
        } else {
            self.tree.children(node).get(interface as usize - 1).copied()
        }
    }

    /// The node that has the packet after this node; `None` if the label is forged and names an interface that this
    /// node lacks.
    ///
    /// # Panics
    /// If the number is none of a node.
    pub fn next(&self, node: u32, destination: TreeLabel<W>) -> Option<u32> {
        self.node_behind(node, self.state(node).forward(destination))
    }

    /// The length of this node's label as the paper counts: the bits of an id, of the list, and of the mask.
    ///
    /// # Panics
    /// If the number is none of a node.
    pub fn label_bits(&self, node: u32) -> u32 {
        (self.nodes() as u64 - 1).checked_ilog2().map_or(0, |log| log + 1) + 2 * self.label(node).list_bits()
    }
}

/// Parents and children.
#[derive(Clone, Debug)]
struct Tree {
    root: u32,
    /// The root's parent is the root.
    parents: Vec<u32>,
    /// By node, where its children begin; at the end, where the last node's end.
    begins: Vec<u32>,
    children: Vec<u32>,
}

impl Tree {
    /// The tree with the children of each node in the order of their numbers. There may be cycles.
    fn of(parents: &[Option<u32>]) -> Result<Self, TreeError> {
        let nodes = parents.len();
        let mut root = None;
        let mut begins = vec![0_u32; nodes + 1];
        for (node, parent) in (0..).zip(parents) {
            match parent {
                Some(parent) if *parent as usize >= nodes => return Err(TreeError::UnknownParent(node)),
                Some(parent) => begins[*parent as usize] += 1,
                None if root.is_some() => return Err(TreeError::SecondRoot(node)),
                None => root = Some(node),
            }
        }
        let root = root.ok_or(TreeError::NoRoot)?;
        // Now a node's entry has the number of its children. Sums make it the end of its children; filling them in
        // from the last node on moves it to their begin.
        let mut sum = 0;
        for count in &mut begins {
            sum += *count;
            *count = sum;
        }
        let mut children = vec![0; nodes - 1];
        for (node, parent) in (0..nodes as u32).zip(parents).rev() {
            if let Some(parent) = parent {
                begins[*parent as usize] -= 1;
                children[begins[*parent as usize] as usize] = node;
            }
        }
        let parents = parents.iter().map(|parent| parent.unwrap_or(root)).collect();
        Ok(Tree { root, parents, begins, children })
    }

    /// All nodes, each after its parent.
    fn breadth_first(&self) -> Result<Vec<u32>, TreeError> {
        let mut order = Vec::with_capacity(self.parents.len());
        order.push(self.root);
        let mut place = 0;
        while let Some(&node) = order.get(place) {
            order.extend_from_slice(self.children(node));
            place += 1;
        }
        if order.len() == self.parents.len() { Ok(order) } else { Err(TreeError::Cycle) }
    }

    fn parent(&self, node: u32) -> Option<u32> {
        (node != self.root).then(|| self.parents[node as usize])
    }

    fn children(&self, node: u32) -> &[u32] {
        &self.children[self.range(node)]
    }

    fn children_mut(&mut self, node: u32) -> &mut [u32] {
        let range = self.range(node);
        &mut self.children[range]
    }

    fn range(&self, node: u32) -> std::ops::Range<usize> {
        self.begins[node as usize] as usize..self.begins[node as usize + 1] as usize
    }
}
