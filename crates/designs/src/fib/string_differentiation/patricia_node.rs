//! Patricia nodes: how few bytes do the trie's nodes take?
//!
//! Source: Yuan15 §4.3.6, the single-memory-address scheme. A node keeps the address of its left child, and the right
//! child lies next to it. Internal nodes and leaf nodes have different sizes, so a pair of siblings moves when one of
//! them changes its type. The memory is in §4.2: 5.58 MiB for 10⁶ domain names, 7.32 GiB for 10⁹ synthetic ones.
//!
//! The papers at hand do not draw the node. 5.58 MiB are 5.85 bytes a name, and 7.32 GiB are 7.86. A name has one
//! internal node and one leaf node, and the leaf needs a byte for the port. This layout in whole bytes has the same
//! size:
//!
//! ```text
//! internal node, I = 4…8 bytes, little endian
//! bit 0        2        4 …              4+p …
//!    | type of | type of | bit position,  | address of the |
//!    | left    | right   | p bits         | left child     |
//!
//! leaf node, L = 1…8 bytes: where a rule of few components and a small number leads, one byte
//! wide leaf node, W = 8 bytes: the same for any rule         (see `patricia_leaf`)
//!
//! pair of siblings at an address (in bytes):  | left | right |
//! ```
//!
//! p is what the longest key needs (11 for 255 bytes, 17 for any name), and I is what p and the highest address need.
//! There is a leaf for each name and one internal node less, whatever the shape:
//!
//! | names | longest key | I + L bytes per name | Yuan15 |
//! | --- | --- | --- | --- |
//! | 10⁶ | 255 bytes | 5 + 1 | 5.85 |
//! | 10⁹ | 255 bytes | 7 + 1 | 7.86 |
//! | 10⁹ | 8800 bytes | 7 + 1 | |
//!
//! A parent holds its children's types. So the lengths of both siblings are known before either is read. Wide leaves
//! are ours: the paper has only ports of eight bits.
//! Limits: keys of 2²⁴ bits; 10¹² bytes of nodes.

/// Bytes of the longest node.
pub const MAX_NODE_BYTES: usize = 8;

const TYPE_BITS: u32 = 4;

/// The widths of the nodes of a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// By [`NodeType`].
    bytes: [u8; 3],
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
    /// A layout for at most this number of names. Keys have at most this number of bytes, and leaf nodes this
    /// number of bits (wide ones have 64).
    ///
    /// # Panics
    /// If leaf nodes were to hold nothing or more than 64 bits, or the numbers are beyond the
    /// limits: a mistake of the caller.
    pub const fn new(capacity_names: usize, key_bytes_max: usize, leaf_bits: u32) -> Self {
        assert!(leaf_bits > 0 && leaf_bits <= u64::BITS);
        let leaf_bytes = leaf_bits.div_ceil(8) as u8;
        let position_bits = bits_of(key_bytes_max as u64 * 8);
        let mut internal_bytes = 4;
        loop {
            let layout = Self { bytes: [internal_bytes, leaf_bytes, 8], position_bits: position_bits as u8 };
            if TYPE_BITS + position_bits + bits_of(layout.bytes_max(capacity_names)) <= 8 * internal_bytes as u32 {
                return layout;
            }
            internal_bytes += 1;
            assert!(internal_bytes as usize <= MAX_NODE_BYTES, "a trie beyond the limits");
        }
    }

    /// Bytes of a node of this type.
    #[inline(always)]
    pub const fn bytes(self, node_type: NodeType) -> usize {
        self.bytes[node_type as usize] as usize
    }

    /// Bytes of all nodes of this many names, none of them with a wide leaf.
    pub const fn node_bytes(self, names: usize) -> usize {
        names * self.bytes(NodeType::Leaf) + names.saturating_sub(1) * self.bytes(NodeType::Internal)
    }

    /// Bytes that nodes may be spread over: those that they need if every leaf is wide, and half
    /// as much again for pairs that updates have freed (see `patricia_updates`).
    pub const fn bytes_max(self, capacity_names: usize) -> u64 {
        let bytes = (capacity_names as u64 + 4) * (self.bytes[0] as u64 + MAX_NODE_BYTES as u64);
        bytes + bytes / 2
    }

    /// The low bits of eight bytes that belong to a node of this type.
    #[inline(always)]
    pub const fn mask(self, node_type: NodeType) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes(node_type))
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
    assert!(alexa.bytes(NodeType::Internal) == 5 && alexa.bytes(NodeType::Leaf) == 1);
    assert!(synthetic.bytes(NodeType::Internal) == 7 && synthetic.bytes(NodeType::WideLeaf) == MAX_NODE_BYTES);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_what_the_table_says() {
        let bytes = |names, longest| NodeLayout::new(names, longest, 8).node_bytes(names).div_ceil(names);
        assert_eq!([bytes(1_000_000, 255), bytes(1_000_000_000, 255), bytes(1_000_000_000, 8804)], [6, 8, 8]);
        assert_eq!(NodeLayout::new(10, 10, 9).node_bytes(3), 3 * 2 + 2 * 4);
    }

    #[test]
    fn an_internal_node_is_its_word() {
        let types = [NodeType::Internal, NodeType::Leaf, NodeType::WideLeaf];
        for layout in [NodeLayout::new(1_000_000_000, 8804, 64), NodeLayout::new(2, 1, 1)] {
            for left in types {
                for right in types {
                    let position = (1 << layout.position_bits) - 1;
                    let node = InternalNode { position, left_address: layout.bytes_max(2), types: [left, right] };
                    assert_eq!(layout.unpack(layout.pack(node)), node);
                    assert_eq!(layout.pack(node) & !layout.mask(NodeType::Internal), 0);
                }
            }
        }
    }
}
