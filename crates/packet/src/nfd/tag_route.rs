//! TagRoute: a descriptor, and the faces through which its advertisements came (dataset `tags/list`).
//!
//! This dataset is ours; NFD has no TagNet. It follows the protocol's rules, so that any management client can fetch
//! it.

use super::{element::element, face_attributes::protocol_enum, numbers::types::FACE_ID};
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
    /// A face of a tree, beyond which a descriptor was advertised.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TagBranch {
        /// The tree.
        pub tree: u64 = 128,
        /// The face.
        pub face_id: FaceId = FACE_ID,
        /// The packets that are asked for there.
        pub serves: TagServes = 130,
        /// The face is that of an application on the router's machine.
        pub is_application: bool = 131,
        /// What the application advertised. Different sets of tags may have one descriptor.
        pub tag_sets: Vec<TagList> = TAGS,
    }
}

element! {
    dataset "tags/list":
    /// One entry of `tags/list`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TagRoute {
        /// The Bloom filter, as tag packets have it.
        #[cfg_attr(feature = "serde", serde(serialize_with = "super::field::as_hex"))]
        pub descriptor: [u8; DESCRIPTOR_BYTES] = 128 as "descriptor_hex",
        /// The faces.
        pub branches: Vec<TagBranch> = 129,
    }
}
