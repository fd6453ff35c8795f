//! Patricia trie: which rule does the name have, if it has one?
//!
//! Source: Yuan15 §4.2 (speculative binary Patricia trie, sBPT), §4.3.3 (FPT: the same trie over keys that begin with a
//! fingerprint, see [`super::key_bits`]). This is the lossy trie as a forwarding engine holds it: it has the positions
//! of differing bits and what the leaves lead to, but no name. Any key comes to some leaf. A key that has a rule comes
//! to the leaf of its rule (the keys of the rules are prefix-free). The route controller has the names; its
//! [`PatriciaInstruction`]s write the trie (see `patricia_updates`).
//!
//! ```text
//! root, kept apart ──▶ | left | right |     pairs of siblings at any address of one array;
//!                          │      └──▶ | left | right |      nodes as in `patricia_node`
//!                          └──▶ …
//! ```
//!
//! Cost: each level takes a dependent fetch of one line (one node in eight to ten lies in two); the upper levels stay
//! in the caches. With n names, leaves are log₂ n deep or more. A batch has up to 64 keys on the way. Each key moves a
//! level down per turn, and each turn begins the fetch for the next. Such batches are a deviation: Yuan15 §4.3.7
//! prefetches for hash tables only.
//! Bytes: a name takes I + L (see [`NodeLayout`]); pairs that updates have freed take room too.
//! Limits: those of the layout. The writer of the instructions must ensure that the nodes fit.
//! Writers: the owner.

use super::key_bits::KeyBits;
use super::patricia_node::{InternalNode, MAX_NODE_BYTES, NodeLayout, NodeType};
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

/// Keys that [`PatriciaTrie::find_batch`] has on the way at most.
pub const KEYS_IN_FLIGHT: usize = 64;

/// A node as its parent describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub node_type: NodeType,
    /// An internal node's fields or the leaf's content.
    pub word: u64,
}

/// One step in changing a trie, from the route controller to every copy of it. The trie is whole
/// after the instructions of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatriciaInstruction {
    /// There is nothing under the root, or this node.
    Root(Option<Node>),
    /// Write a node or a pair of nodes.
    Write {
        /// Where.
        address: u64,
        /// The bytes, little endian.
        nodes: u128,
        /// How many they are.
        bytes: u8,
    },
}

/// How deep the leaves are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LeafDepths {
    /// Leaf nodes: as many as names.
    pub leaves: u64,
    /// Those of them that are wide.
    pub wide_leaves: u64,
    /// Nodes of all types.
    pub nodes: u64,
    /// Internal nodes above a leaf, on average over the leaves.
    pub mean: f64,
    /// The same at most.
    pub max: usize,
}

/// The lossy trie.
pub struct PatriciaTrie {
    layout: NodeLayout,
    root: Option<Node>,
    nodes: PageArray<u8>,
    /// Bytes from the first to the last that was ever written.
    touched_bytes: usize,
}

impl PatriciaTrie {
    /// An empty trie for this many names at most; its memory is mapped now and touched when used.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(layout: NodeLayout, capacity_names: usize, pages: PageSize) -> io::Result<Self> {
        let bytes = layout.bytes_max(capacity_names) as usize + MAX_NODE_BYTES;
        Ok(Self { layout, root: None, nodes: PageArray::zeroed_for_growth(bytes, pages)?, touched_bytes: 0 })
    }

    /// The widths of its nodes.
    pub const fn layout(&self) -> NodeLayout {
        self.layout
    }

    /// The node under the root, if there is any rule.
    pub const fn root(&self) -> Option<Node> {
        self.root
    }

    /// Bytes of memory: all that was ever written, in whole pages.
    pub fn bytes(&self) -> usize {
        self.nodes.touched_bytes(self.touched_bytes) + size_of::<Self>()
    }

    /// Does what the route controller says. The controller sees to the order and to the addresses.
    ///
    /// # Panics
    /// If an address is none of a trie of this layout and capacity.
    pub fn apply(&mut self, instruction: &PatriciaInstruction) {
        match *instruction {
            PatriciaInstruction::Root(root) => self.root = root,
            PatriciaInstruction::Write { address, nodes, bytes } => {
                let (start, bytes) = (address as usize, usize::from(bytes));
                self.nodes[start..start + bytes].copy_from_slice(&nodes.to_le_bytes()[..bytes]);
                self.touched_bytes = self.touched_bytes.max(start + bytes);
            }
        }
    }

    /// The leaf that the key comes to, one line after the other.
    pub fn find(&self, key: &KeyBits<'_>) -> Option<Node> {
        let mut node = self.root?;
        while !node.node_type.is_leaf() {
            let (address, node_type) = self.child(node.word, key);
            node = self.node(address, node_type);
        }
        Some(node)
    }

    /// Whether every bit that is examined on the key's way is one of the key's, so that keys that
    /// begin with it come to the same leaf.
    pub fn is_found_within(&self, key: &KeyBits<'_>) -> bool {
        let (mut next, mut last_position) = (self.root, None);
        while let Some(node) = next.filter(|node| !node.node_type.is_leaf()) {
            last_position = Some(self.layout.unpack(node.word).position); // the highest so far
            let (address, node_type) = self.child(node.word, key);
            next = Some(self.node(address, node_type));
        }
        last_position.is_none_or(|position| position < key.bits())
    }

    /// [`PatriciaTrie::find`] for every key, all on the way together; `out[i]` is for `keys[i]`.
    ///
    /// # Panics
    /// If there are more than [`KEYS_IN_FLIGHT`] keys, or `out` is shorter.
    pub fn find_batch(&self, keys: &[KeyBits<'_>], out: &mut [Option<Node>]) {
        let out = &mut out[..keys.len()];
        let Some(root) = self.root.filter(|root| !root.node_type.is_leaf()) else {
            out.fill(self.root);
            return;
        };
        assert!(keys.len() <= KEYS_IN_FLIGHT, "at most {KEYS_IN_FLIGHT} keys in a batch");
        // Keys on the way: (which, its next node's address and type).
        let mut on_the_way = [(0_u8, 0_u64, NodeType::Internal); KEYS_IN_FLIGHT];
        for (place, (way, key)) in on_the_way.iter_mut().zip(keys).enumerate() {
            *way = self.step(place as u8, root.word, key);
        }
        let mut remaining = keys.len();
        while remaining > 0 {
            let mut going_on = 0;
            for place in 0..remaining {
                let (key, address, node_type) = on_the_way[place];
                let node = self.node(address, node_type);
                if node_type.is_leaf() {
                    out[usize::from(key)] = Some(node);
                } else {
                    on_the_way[going_on] = self.step(key, node.word, &keys[usize::from(key)]);
                    going_on += 1;
                }
            }
            remaining = going_on;
        }
    }

    /// Goes on from an internal node and begins to fetch where.
    #[inline(always)]
    fn step(&self, place: u8, word: u64, key: &KeyBits<'_>) -> (u8, u64, NodeType) {
        let (address, node_type) = self.child(word, key);
        prefetch(&self.nodes[address as usize]);
        (place, address, node_type)
    }

    /// Which child of an internal node the key goes to: address and type.
    #[inline(always)]
    fn child(&self, word: u64, key: &KeyBits<'_>) -> (u64, NodeType) {
        let InternalNode { position, left_address, types } = self.layout.unpack(word);
        let side = key.bit(position);
        (left_address + (side * self.layout.bytes(types[0])) as u64, types[side])
    }

    /// The node of this type at an address.
    #[inline(always)]
    pub(super) fn node(&self, address: u64, node_type: NodeType) -> Node {
        let bytes = self.nodes[address as usize..].first_chunk();
        let word = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)) & self.layout.mask(node_type);
        Node { node_type, word }
    }

    /// The pair at an address.
    pub(super) fn pair(&self, address: u64, types: [NodeType; 2]) -> [Node; 2] {
        let right_address = address + self.layout.bytes(types[0]) as u64;
        [self.node(address, types[0]), self.node(right_address, types[1])]
    }

    /// Both children of an internal node.
    pub(super) fn children(&self, word: u64) -> [Node; 2] {
        let InternalNode { left_address, types, .. } = self.layout.unpack(word);
        self.pair(left_address, types)
    }

    /// The depths of all leaves. Visits every node.
    pub fn leaf_depths(&self) -> LeafDepths {
        let mut depths = LeafDepths::default();
        let mut depths_sum = 0;
        let mut to_visit: Vec<(Node, usize)> = self.root.map(|root| (root, 0)).into_iter().collect();
        while let Some((node, depth)) = to_visit.pop() {
            depths.nodes += 1;
            if node.node_type.is_leaf() {
                depths.leaves += 1;
                depths.wide_leaves += u64::from(node.node_type == NodeType::WideLeaf);
                depths_sum += depth as u64;
                depths.max = depths.max.max(depth);
            } else {
                to_visit.extend(self.children(node.word).map(|child| (child, depth + 1)));
            }
        }
        depths.mean = depths_sum as f64 / depths.leaves.max(1) as f64;
        depths
    }
}
