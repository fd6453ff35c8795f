//! TagTree: one tree of TagNet as a router sees it (dataset `tags/trees`).
//!
//! This dataset is ours; NFD has no TagNet. It follows the protocol's rules, so that any management client can fetch
//! it.

use super::element::element;
use crate::FaceId;

element! {
    dataset "tags/trees":
    /// One entry of `tags/trees`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TagTree {
        /// Number of the tree.
        pub tree: u64 = 128,
        /// Epoch of its labels.
        pub epoch: u64 = 129,
        /// Number of the router at the root.
        pub root: u64 = 130,
        /// Number of this router.
        pub router: u64 = 131,
        /// This router's label as locators have it; empty while it has none.
        #[cfg_attr(feature = "serde", serde(serialize_with = "super::field::as_hex"))]
        pub label: Box<[u8]> = 132 as "label_hex",
        /// The face of the parent; the root has none.
        pub parent: Option<FaceId> = 133 as "parent_face_id",
        /// The faces of the children.
        pub children: Vec<FaceId> = 134 as "child_face_ids",
        /// Routers of the subtree, this one included.
        pub routers_below: u64 = 135,
        /// Descriptors that were advertised in the tree, as far as this router knows.
        pub descriptors: u64 = 136,
    }
}
