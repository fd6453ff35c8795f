//! `[tagnet]`: forwarding by sets of tags, in addition to names.

use super::choice::Choice;
use super::ranges::{tag_descriptors, trees};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[tagnet]`. Descriptors are counted over all trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TagnetSection {
    /// The numbers of the trees; none turns TagNet off.
    #[serde(deserialize_with = "trees")]
    pub trees: Vec<u16>,
    /// The router's number, unique in the network. Without it, a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_number: Option<u32>,
    /// The faces whose neighbours are in the trees.
    pub neighbours: Choice<TagNeighbours>,
    /// The file with the keys of the trees; without it, a tree has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The table in which packets are searched.
    pub table: Choice<TagTable>,
    /// Most descriptors.
    #[serde(deserialize_with = "tag_descriptors")]
    pub descriptors: u32,
    /// Of these, the number that only applications of this host may use.
    pub reserved: u32,
    /// Most descriptors of one face; an application's sets of tags count in each tree.
    #[serde(deserialize_with = "tag_descriptors")]
    pub per_face: u32,
}

namewire_packet::names! {
    /// The faces whose neighbours are in the trees.
    #[derive(Default)]
    pub enum TagNeighbours {
        /// Faces that a declaration or a command made.
        #[default]
        Created = "created",
        /// All faces to other hosts.
        Any = "any",
    }
}

namewire_packet::names! {
    /// The table in which packets by descriptor are searched.
    #[derive(Default)]
    pub enum TagTable {
        /// The router's own, which changes in place.
        #[default]
        Burst = "burst",
        /// The paper's, which is built anew after changes.
        Vector = "vector",
    }
}

super::choice::named! {
    TagNeighbours: &Self::ALL;
    TagTable: &Self::ALL;
}

impl Default for TagnetSection {
    fn default() -> Self {
        TagnetSection {
            trees: Vec::new(),
            router_number: None,
            neighbours: Choice::default(),
            key_file: None,
            table: Choice::default(),
            descriptors: 262_144,
            reserved: 16_384,
            per_face: 65_536,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::from_toml;

    #[test]
    fn trees_have_numbers_from_1_on_each_once() {
        let settings = from_toml("[tagnet]\ntrees = [1, 7]\nneighbours = \"any\"").unwrap();
        assert_eq!((settings.tagnet.trees, settings.tagnet.neighbours.0), (vec![1, 7], TagNeighbours::Any));
        assert_eq!(from_toml("[tagnet]\ntable = \"vector\"").unwrap().tagnet.table.0, TagTable::Vector);
        for wrong in ["[0]", "[1, 1]", "[65536]", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"] {
            assert!(from_toml(&format!("[tagnet]\ntrees = {wrong}")).is_err(), "{wrong}");
        }
    }
}
