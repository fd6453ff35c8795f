//! Patricia nodes: how few octets do the trie's nodes take?
//!
//! Source: Yuan15 §4.3.6 (the single-memory-address scheme: a node keeps the address of its left
//! child, the right child lies next to it; internal nodes and leaf nodes have layouts of their
//! own, so that a pair of siblings moves when one of them changes its type), §4.2 and the
//! memory it gives: 5.58 MiB for 10⁶ domain names, 7.32 GiB for 10⁹ synthetic ones.
//!
//! The papers at hand do not draw the node. 5.58 MiB are 5.85 octets a name, 7.32 GiB are 7.86: an
//! internal and a leaf node together, of which the leaf needs an octet for the port. This is a
//! layout in whole octets that comes to the same:
//!
//! ```text
//! internal node, I = 4…8 octets, little endian
//! bit 0        2        4 …              4+p …
//!    | type of | type of | bit position,  | address of the |
//!    | left    | right   | p bits         | left child     |
//!
//! leaf node, L = 1…8 octets: where a rule of few components and a small number leads, one octet
//! wide leaf node, W = 8 octets: the same for any rule         (see `patricia_leaf`)
//!
//! pair of siblings at an address (in octets):  | left | right |
//! ```
//!
//! p is what the longest key needs (11 for 255 octets, 17 for any name), I what p and the highest
//! address need. There is a leaf for each name and one internal node less, whatever the shape:
//!
//! | names | longest key | I + L octets per name | Yuan15 |
//! | --- | --- | --- | --- |
//! | 10⁶ | 255 octets | 5 + 1 | 5.85 |
//! | 10⁹ | 255 octets | 7 + 1 | 7.86 |
//! | 10⁹ | 8800 octets | 7 + 1 | |
//!
//! Why types stand in the parent: a node's address then says how long it and its left sibling are
//! before either is read. Wide leaves are ours: the paper has ports of eight bits and no more.
//! Limits: keys of 2²⁴ bits; 10¹² octets of nodes.

/// Octets of the longest node.
pub const MAX_NODE_OCTETS: usize = 8;

const TYPE_BITS: u32 = 4;

/// The widths of the nodes of a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// By [`NodeType`].
    octets: [u8; 3],
    position_bits: u8,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NodeType {
    /// It has two children.
    Internal,
    /// A rule's leaf.
    Leaf,
    /// A rule's leaf with more room.
    WideLeaf,
}

/// The content of an internal node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternalNode {
    /// Which bit of the key is examined here.
    pub position: usize,
    /// Where the left child is; the right one is next to it.
    pub left_address: u64,
    /// What the left and the right child are.
    pub types: [NodeType; 2],
}

impl NodeType {
    /// How many there are.
    pub const COUNT: usize = 3;

    /// Whether it has no children.
    #[inline(always)]
    pub const fn is_leaf(self) -> bool {
        !matches!(self, Self::Internal)
    }

    #[inline(always)]
    const fn of_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Internal,
            1 => Self::Leaf,
            _ => Self::WideLeaf,
        }
    }
}

impl NodeLayout {
    /// For so many names at most, keys of so many octets, and leaf nodes of so many bits (wide
    /// ones have 64).
    ///
    /// # Panics
    /// If leaf nodes were to hold nothing or more than 64 bits, or the numbers are beyond the
    /// limits: a mistake of the caller.
    pub const fn new(capacity_names: usize, key_octets_max: usize, leaf_bits: u32) -> Self {
        assert!(leaf_bits > 0 && leaf_bits <= u64::BITS);
        let leaf_octets = leaf_bits.div_ceil(8) as u8;
        let position_bits = bits_of(key_octets_max as u64 * 8);
        let mut internal_octets = 4;
        loop {
            let layout = Self { octets: [internal_octets, leaf_octets, 8], position_bits: position_bits as u8 };
            if TYPE_BITS + position_bits + bits_of(layout.octets_max(capacity_names)) <= 8 * internal_octets as u32 {
                return layout;
            }
            internal_octets += 1;
            assert!(internal_octets as usize <= MAX_NODE_OCTETS, "a trie beyond the limits");
        }
    }

    /// Octets of a node of this type.
    #[inline(always)]
    pub const fn octets(self, node_type: NodeType) -> usize {
        self.octets[node_type as usize] as usize
    }

    /// Octets of all nodes of so many names, none of them with a wide leaf.
    pub const fn node_octets(self, names: usize) -> usize {
        names * self.octets(NodeType::Leaf) + names.saturating_sub(1) * self.octets(NodeType::Internal)
    }

    /// Octets that nodes may be spread over: those that they need if every leaf is wide, and half
    /// as much again for pairs that updates have freed (see `patricia_updates`).
    pub const fn octets_max(self, capacity_names: usize) -> u64 {
        let octets = (capacity_names as u64 + 4) * (self.octets[0] as u64 + MAX_NODE_OCTETS as u64);
        octets + octets / 2
    }

    /// The low bits of eight octets that belong to a node of this type.
    #[inline(always)]
    pub const fn mask(self, node_type: NodeType) -> u64 {
        u64::MAX >> (64 - 8 * self.octets(node_type))
    }

    /// An internal node as a word.
    pub const fn pack(self, node: InternalNode) -> u64 {
        debug_assert!(node.position >> self.position_bits == 0);
        node.types[0] as u64
            | (node.types[1] as u64) << 2
            | (node.position as u64) << TYPE_BITS
            | node.left_address << (TYPE_BITS + self.position_bits as u32)
    }

    /// What the word of an internal node says.
    #[inline(always)]
    pub const fn unpack(self, word: u64) -> InternalNode {
        InternalNode {
            position: ((word >> TYPE_BITS) & ((1 << self.position_bits) - 1)) as usize,
            left_address: word >> (TYPE_BITS + self.position_bits as u32),
            types: [NodeType::of_bits(word), NodeType::of_bits(word >> 2)],
        }
    }
}

/// How many bits the number needs.
const fn bits_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}

const _: () = {
    // The table of the header.
    let (alexa, synthetic) = (NodeLayout::new(1_000_000, 255, 8), NodeLayout::new(1_000_000_000, 8804, 8));
    assert!(alexa.octets(NodeType::Internal) == 5 && alexa.octets(NodeType::Leaf) == 1);
    assert!(synthetic.octets(NodeType::Internal) == 7 && synthetic.octets(NodeType::WideLeaf) == MAX_NODE_OCTETS);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_what_the_table_says() {
        let octets = |names, longest| NodeLayout::new(names, longest, 8).node_octets(names).div_ceil(names);
        assert_eq!([octets(1_000_000, 255), octets(1_000_000_000, 255), octets(1_000_000_000, 8804)], [6, 8, 8]);
        assert_eq!(NodeLayout::new(10, 10, 9).node_octets(3), 3 * 2 + 2 * 4);
    }

    #[test]
    fn an_internal_node_is_its_word() {
        let types = [NodeType::Internal, NodeType::Leaf, NodeType::WideLeaf];
        for layout in [NodeLayout::new(1_000_000_000, 8804, 64), NodeLayout::new(2, 1, 1)] {
            for left in types {
                for right in types {
                    let position = (1 << layout.position_bits) - 1;
                    let node = InternalNode { position, left_address: layout.octets_max(2), types: [left, right] };
                    assert_eq!(layout.unpack(layout.pack(node)), node);
                    assert_eq!(layout.pack(node) & !layout.mask(NodeType::Internal), 0);
                }
            }
        }
    }
}
