//! The router under test: its place in a tree, and its descriptors.
//!
//! It is the router with the largest subtree among those of at most [`INTERFACES_MAX`] interfaces, in a breadth-first
//! tree of an invented network of 42,113 nodes, the size of the paper's AS graph. All descriptors were advertised below
//! it: packets by descriptor come from its parent and leave through its children.

use anyhow::Context as _;
use namewire_packet::FaceId;
use namewire_packet::tag::TreeEpoch;
use namewire_tagnet::forwarder::{Branch, BranchSet, Serves, TagTables, TreeTable};
use namewire_tagnet::locator::{HERE, NodeState, TreeLabels, WideLabel, spanning_tree};

use crate::network_graph::NetworkGraph;
use crate::tag_sets::BRANCH_SETS;

/// Most interfaces of the router.
const INTERFACES_MAX: usize = 32;
/// The face of interface 1.
const FIRST_FACE: u64 = 300;
/// The tree.
pub(super) const TREE: TreeEpoch = TreeEpoch { tree: 1, epoch: 1 };
/// Of the sets of branches these have one branch, the others two.
const SETS_OF_ONE: u32 = BRANCH_SETS / 10 * 7;

/// A router's place in a tree.
pub(super) struct TreeRouter {
    labels: TreeLabels<u32>,
    nodes: u32,
    state: NodeState,
    label: WideLabel,
    /// One for each child, then the parent's.
    faces: Vec<FaceId>,
}

impl TreeRouter {
    /// The router in a network of this number of nodes.
    ///
    /// # Errors
    /// If the network has no such router.
    pub(super) fn in_network(nodes: u32, seed: u64) -> anyhow::Result<Self> {
        let graph = NetworkGraph::given_or_invented(None, nodes, seed)?;
        let parents = spanning_tree(&graph.neighbours, graph.largest_degree())?;
        let labels = TreeLabels::<u32>::of(&parents)?;
        let mut children = vec![0_usize; parents.len()];
        parents.iter().flatten().for_each(|&parent| children[parent as usize] += 1);
        let is_candidate = |node: &u32| {
            let place = *node as usize;
            parents[place].is_some() && (1..INTERFACES_MAX).contains(&children[place])
        };
        let node = (0..nodes).filter(is_candidate).max_by_key(|&node| labels.state(node).subtree_size());
        let node = node.context("no router of the network has a child and a parent")?;
        let faces = (0..=children[node as usize] as u64).map(|interface| FaceId(FIRST_FACE + interface)).collect();
        let (state, label) = (*labels.state(node), labels.label(node));
        Ok(Self { labels, nodes, state, label, faces })
    }

    /// What it forwards by.
    pub(super) fn tables<T>(&self, descriptors: T) -> TagTables<T> {
        let children = self.children();
        let branch = |face: FaceId| Branch { tree: TREE.tree, face, serves: Serves::BOTH, is_application: false };
        let branch_set = |number: u32| {
            let first = number as usize % children.len();
            let mut branches = vec![branch(children[first])];
            if number >= SETS_OF_ONE && children.len() > 1 {
                branches.push(branch(children[(first + 1) % children.len()]));
            }
            BranchSet::new(branches, vec![])
        };
        let (TreeEpoch { tree, epoch }, faces) = (TREE, self.faces.clone());
        let tree = TreeTable { tree, epoch, state: self.state, label: self.label, faces };
        TagTables {
            trees: vec![tree],
            descriptors,
            branch_sets: (0..BRANCH_SETS).map(branch_set).collect(),
            may_push: Default::default(),
        }
    }

    /// The faces of its children.
    pub(super) fn children(&self) -> &[FaceId] {
        &self.faces[..self.faces.len() - 1]
    }

    /// The parent's face.
    pub(super) fn parent(&self) -> FaceId {
        self.faces[self.faces.len() - 1]
    }

    /// The label of a random node, below this router or elsewhere.
    pub(super) fn random_label(&self, is_below: bool, random: &mut fastrand::Rng) -> WideLabel {
        loop {
            let label = self.labels.label(random.u32(..self.nodes));
            let interface = self.state.forward(label);
            if interface != HERE && is_below == (interface != self.state.parent_interface()) {
                return label;
            }
        }
    }
}
