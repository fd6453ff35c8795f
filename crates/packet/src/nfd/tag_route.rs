//! TagRoute: a descriptor, and the faces through which its advertisements came (dataset `tags/list`).
//!
//! This dataset is ours; NFD has no TagNet. It follows the protocol's rules, so that any management client can fetch
//! it.

use super::{
    element::element,
    face_attributes::protocol_enum,
    numbers::types::{DATASET_ENTRY, FACE_ID, TAG_APPLICATION, TAG_BRANCH, TAG_DESCRIPTOR, TAG_SERVES, TREE_NUMBER},
};
use crate::{
    FaceId,
    tag::{DESCRIPTOR_BYTES, TagList, tag_types::TAGS},
};

protocol_enum! {
    /// The packets that an advertisement of tags asks for.
    TagServes {
        /// Pulls: the application answers them.
        Pull = 1 "pull",
        /// Pushes: the application wants them.
        Push = 2 "push",
        /// Both.
        Both = 3 "both"
    }
}

element! {
    element:
    /// 129 { 128 tree, FaceId, 130 packets asked for, 131 1 if an application, 39439 tags * }: a face of a tree, beyond
    /// which a descriptor was advertised.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TagBranch {
        /// The tree.
        pub tree: u64 = TREE_NUMBER,
        /// The face.
        pub face_id: FaceId = FACE_ID,
        /// The packets that are asked for there.
        pub serves: TagServes = TAG_SERVES,
        /// The face is that of an application on the router's machine.
        pub is_application: bool = TAG_APPLICATION,
        /// What the application advertised. Different sets of tags may have one descriptor.
        pub tag_sets: Vec<TagList> = TAGS,
    }
}

element! {
    element DATASET_ENTRY:
    /// One entry of `tags/list`: 128 { 128 descriptor bytes, 129 branch * }.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TagRoute {
        /// The Bloom filter, as tag packets have it.
        pub descriptor: [u8; DESCRIPTOR_BYTES] = TAG_DESCRIPTOR,
        /// The faces.
        pub branches: Vec<TagBranch> = TAG_BRANCH,
    }
}
