//! Patricia leaf: what does a leaf node store about its rule?
//!
//! Source: Yuan15 §4.2 (an outgoing port) and §4.3.5 (a local fingerprint: where names of a default table come to the
//! leaf too, the least number of bits that distinguishes them from its owner).
//!
//! ```text
//! leaf node:       | leads, n bits | ‖ which hash 1 | bits 4 | local fingerprint, up to b |
//! wide leaf node:  | leads, 33 bits | none 1 | components 9 | which hash 1 | bits 4 | up to 15 |  64 bits
//!                                       ‖ only in a distributed table (b > 0)
//! ```
//!
//! A leaf node is enough for a rule of exactly [`LeafLayout::components`] components that leads to a number below 2ⁿ −
//! 1; the highest number means nowhere (a name of the default table). With n = 8 that is the paper's port. Every other
//! rule gets a wide leaf node. Deviation: the paper's leaves do not store the length of their rule, since all rules
//! have one component.

use super::differentiator::Leads;
use super::patricia_node::NodeType;
use super::patricia_trie::Node;

/// Bits of the longest local fingerprint.
pub const MAX_LOCAL_BITS: u32 = 15;

const LOCAL_COUNT_BITS: u32 = 4;
const COMPONENTS_BITS: u32 = 9;

const _: () = {
    assert!(MAX_LOCAL_BITS < 1 << LOCAL_COUNT_BITS && namewire_tables::MAX_NAME_COMPONENTS < 1 << COMPONENTS_BITS);
    assert!(Leads::BITS + 1 + COMPONENTS_BITS + 1 + LOCAL_COUNT_BITS + MAX_LOCAL_BITS <= u64::BITS);
};

/// The first bits of one of two hashes of the owner's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalFingerprint {
    /// Of which hash.
    pub is_second_hash: bool,
    /// How many bits; 0 if no other name has to be told from the owner.
    pub bits: u32,
    /// These.
    pub value: u32,
}

/// What a leaf says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatriciaLeaf {
    /// Where the rule leads; nowhere if it is one of the default table.
    pub leads: Option<Leads>,
    /// How many components the rule has.
    pub components: usize,
    /// What tells the owner from others.
    pub local: LocalFingerprint,
}

/// Which rules leaf nodes that are not wide have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafLayout {
    /// n: rules that lead to numbers below 2ⁿ − 1. 1 to 33.
    pub number_bits: u32,
    /// Rules of this many components.
    pub components: usize,
    /// b: local fingerprints of up to this many bits; 0 in a table that is not distributed.
    pub local_bits_max: u32,
}

impl LocalFingerprint {
    /// The highest `bits` bits of one of two hashes.
    pub const fn of(hashes: [u64; 2], is_second_hash: bool, bits: u32) -> Self {
        let hash = hashes[is_second_hash as usize];
        let value = if bits == 0 { 0 } else { (hash >> (u64::BITS - bits)) as u32 };
        Self { is_second_hash, bits, value }
    }
}

impl LeafLayout {
    /// Bits of a leaf node that is not wide.
    pub const fn bits(self) -> u32 {
        let local = if self.local_bits_max == 0 { 0 } else { 1 + LOCAL_COUNT_BITS + self.local_bits_max };
        self.number_bits + local
    }

    /// The leaf as a node.
    pub fn pack(self, leaf: PatriciaLeaf) -> Node {
        let LocalFingerprint { is_second_hash, bits, value } = leaf.local;
        debug_assert!(bits <= self.local_bits_max.min(MAX_LOCAL_BITS));
        let local = u64::from(is_second_hash) | u64::from(bits) << 1 | u64::from(value) << (1 + LOCAL_COUNT_BITS);
        let nowhere = (1 << self.number_bits) - 1;
        let number = leaf.leads.map_or(nowhere, Leads::bits);
        let is_small = number < nowhere || leaf.leads.is_none();
        if is_small && leaf.components == self.components {
            return Node { node_type: NodeType::Leaf, word: number | local << self.number_bits };
        }
        let number = leaf.leads.map_or(1 << Leads::BITS, Leads::bits);
        let number = number | (leaf.components as u64) << (Leads::BITS + 1);
        Node { node_type: NodeType::WideLeaf, word: number | local << (Leads::BITS + 1 + COMPONENTS_BITS) }
    }

    /// What a leaf node says.
    #[inline]
    pub fn unpack(self, node: Node) -> PatriciaLeaf {
        let (number, components, local) = if node.node_type == NodeType::WideLeaf {
            let components = (node.word >> (Leads::BITS + 1)) & ((1 << COMPONENTS_BITS) - 1);
            let is_nowhere = node.word >> Leads::BITS & 1 == 1;
            let leads = (!is_nowhere).then(|| Leads::from_bits(node.word));
            (leads, components as usize, node.word >> (Leads::BITS + 1 + COMPONENTS_BITS))
        } else {
            let nowhere = (1 << self.number_bits) - 1;
            let number = node.word & nowhere;
            let leads = (number != nowhere).then(|| Leads::from_bits(number));
            (leads, self.components, node.word >> self.number_bits)
        };
        let bits = (local >> 1) as u32 & ((1 << LOCAL_COUNT_BITS) - 1);
        let value = (local >> (1 + LOCAL_COUNT_BITS)) as u32;
        let local = LocalFingerprint { is_second_hash: local & 1 == 1, bits, value };
        PatriciaLeaf { leads: number, components, local }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_its_node() {
        for (number_bits, local_bits_max) in [(8, 0), (8, 3), (33, 0), (33, MAX_LOCAL_BITS), (1, 1)] {
            let layout = LeafLayout { number_bits, components: 1, local_bits_max };
            let leads = [0, 1, 254, 255, u32::MAX].map(|number| Some(Leads::to_number(number)));
            for leads in leads.into_iter().chain([None, Some(Leads::to_group(0)), Some(Leads::to_group(u32::MAX))]) {
                for components in [0, 1, 2, namewire_tables::MAX_NAME_COMPONENTS] {
                    for bits in 0..=local_bits_max {
                        let local = LocalFingerprint::of([u64::MAX, 1 << 63], bits % 2 == 1, bits);
                        let leaf = PatriciaLeaf { leads, components, local };
                        let node = layout.pack(leaf);
                        assert_eq!(layout.unpack(node), leaf);
                        let fits = components == 1 && leads.is_none_or(|leads| leads.bits() < (1 << number_bits) - 1);
                        assert_eq!(node.node_type, if fits { NodeType::Leaf } else { NodeType::WideLeaf });
                        let room = if fits { layout.bits() } else { 64 };
                        assert!(node.word.checked_shr(room).unwrap_or(0) == 0);
                    }
                }
            }
        }
        assert_eq!(LeafLayout { number_bits: 8, components: 1, local_bits_max: 0 }.bits(), 8);
        assert_eq!(LocalFingerprint::of([u64::MAX, 1 << 63], true, 3).value, 4);
    }
}
