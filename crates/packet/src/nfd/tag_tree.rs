//! TagTree: one tree of TagNet as a router sees it (dataset `tags/trees`).
//!
//! This dataset is ours; NFD has no TagNet. It follows the protocol's rules, so that any management client can fetch
//! it.

use super::{
    element::element,
    numbers::types::{
        DATASET_ENTRY, TREE_CHILD, TREE_DESCRIPTORS, TREE_EPOCH, TREE_LABEL, TREE_NUMBER, TREE_PARENT, TREE_ROOT,
        TREE_ROUTER, TREE_ROUTERS_BELOW,
    },
};
use crate::FaceId;

element! {
    element DATASET_ENTRY:
    /// One entry of `tags/trees`: 128 { 128 tree, 129 epoch, 130 root, 131 this router, 132 label bytes, 133 parent
    /// face ?, 134 child face *, 135 routers of the subtree, 136 descriptors }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TagTree {
        /// Number of the tree.
        pub tree: u64 = TREE_NUMBER,
        /// Epoch of its labels.
        pub epoch: u64 = TREE_EPOCH,
        /// Number of the router at the root.
        pub root: u64 = TREE_ROOT,
        /// Number of this router.
        pub router: u64 = TREE_ROUTER,
        /// This router's label as locators have it; empty while it has none.
        pub label: Box<[u8]> = TREE_LABEL,
        /// The face of the parent; the root has none.
        pub parent: Option<FaceId> = TREE_PARENT,
        /// The faces of the children.
        pub children: Vec<FaceId> = TREE_CHILD,
        /// Routers of the subtree, this one included.
        pub routers_below: u64 = TREE_ROUTERS_BELOW,
        /// Descriptors that were advertised in the tree, as far as this router knows.
        pub descriptors: u64 = TREE_DESCRIPTORS,
    }
}
