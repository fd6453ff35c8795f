//! Patricia updates: how does a trie that has no names change?
//!
//! Source: Yuan15 §4.3.6, Fig. 4.11. A route controller has the names. The controller knows the bit at which a new name
//! differs from the rule whose leaf the name comes to, and gives the position of this bit to the editor. The editor
//! holds the controller's copy of the trie, finds the place, decides about memory and sends [`PatriciaInstruction`]s:
//! what to write where. Other copies replay the instructions and stay the same, byte for byte.
//!
//! ```text
//! insert at bit d, below X:                    X a leaf (Fig. 4.11 a):          X internal (b):
//!
//!        P                     P                new pair (X, new leaf);          new pair (X, new leaf);
//!      ┌─┴─┐                 ┌─┴─┐              X's type changes, so its pair    X is overwritten
//!      X   Y       ──▶       N   Y              moves and P's address changes    in place
//!                          ┌─┴─┐
//!                          X  new               remove: the same backwards
//! ```
//!
//! X is the first node on the key's way that is a leaf or examines a bit behind d. An insertion or removal writes two
//! pairs and one node at most. Freed pairs are used again for pairs of the same size. When the nodes have spread over
//! the whole room ([`NodeLayout::bytes_max`]; they need two thirds of it at most), all of them are rewritten, densely
//! and in depth-first order.
//!
//! Cost: an update reads the look-up's lines and two to four more. The cost of rewriting is spread over the updates
//! that have used up a third of the room since the last time. Bytes: those of the trie and eight for each free pair.

use super::key_bits::KeyBits;
use super::patricia_node::{InternalNode, MAX_NODE_BYTES, NodeLayout, NodeType};
use super::patricia_trie::{Node, PatriciaInstruction, PatriciaTrie};
use namewire_tables::pages::PageSize;
use std::io;

/// A trie and what is needed to change it.
pub struct PatriciaEditor {
    trie: PatriciaTrie,
    /// Addresses, by bytes of the pair.
    free_pairs: [Vec<u64>; 2 * MAX_NODE_BYTES + 1],
    /// Where no pair ever was since they were last written anew.
    end: u64,
    limit: u64,
    /// Kept for other copies of the trie, if there are any.
    instructions: Option<Vec<PatriciaInstruction>>,
}

/// A node on the key's way and its sibling; the node under the root has none.
#[derive(Clone, Copy)]
struct Visited {
    node: Node,
    pair: Option<Pair>,
}

#[derive(Clone, Copy)]
struct Pair {
    address: u64,
    nodes: [Node; 2],
    /// Which of them was visited.
    side: usize,
}

impl PatriciaEditor {
    /// An empty trie. If `records`, instructions are kept for [`PatriciaEditor::take_instructions`].
    ///
    /// # Errors
    /// As [`PatriciaTrie::new`].
    pub fn new(layout: NodeLayout, capacity_names: usize, pages: PageSize, records: bool) -> io::Result<Self> {
        Ok(Self {
            trie: PatriciaTrie::new(layout, capacity_names, pages)?,
            free_pairs: [const { Vec::new() }; 2 * MAX_NODE_BYTES + 1],
            end: 0,
            limit: layout.bytes_max(capacity_names),
            instructions: records.then(Vec::new),
        })
    }

    /// The trie.
    pub const fn trie(&self) -> &PatriciaTrie {
        &self.trie
    }

    /// The instructions since the last call, in the order in which other copies must follow them.
    pub fn take_instructions(&mut self) -> impl Iterator<Item = PatriciaInstruction> + '_ {
        self.instructions.iter_mut().flat_map(|instructions| instructions.drain(..))
    }

    /// Bytes of memory: the trie's, the lists of free pairs, room for instructions.
    pub fn bytes(&self) -> usize {
        let free: usize = self.free_pairs.iter().map(|pairs| pairs.capacity() * size_of::<u64>()).sum();
        let instructions = self.instructions.as_ref().map_or(0, Vec::capacity) * size_of::<PatriciaInstruction>();
        self.trie.bytes() + free + instructions + size_of::<Self>() - size_of::<PatriciaTrie>()
    }

    /// Adds a leaf for the key, which differs at `position` for the first time from the key of the leaf
    /// that it comes to. In an empty trie the position does not matter.
    ///
    /// # Panics
    /// In debug builds, if the node is none of a leaf.
    pub fn insert(&mut self, key: &KeyBits<'_>, position: usize, leaf: Node) {
        debug_assert!(leaf.node_type.is_leaf());
        self.make_room();
        let [_, parent, Some(below)] = self.visit(key, position) else {
            self.write(PatriciaInstruction::Root(Some(leaf)));
            return;
        };
        let pair = if key.bit(position) == 1 { [below.node, leaf] } else { [leaf, below.node] };
        let split = self.internal_node(position, pair);
        self.replace(parent, below, split);
    }

    /// Replaces the leaf that the key comes to.
    pub fn change(&mut self, key: &KeyBits<'_>, leaf: Node) {
        self.make_room();
        if let [_, parent, Some(old)] = self.visit(key, usize::MAX) {
            self.replace(parent, old, leaf);
        }
    }

    /// Removes the leaf that the key comes to.
    pub fn remove(&mut self, key: &KeyBits<'_>) {
        self.make_room();
        let [grandparent, parent, leaf] = self.visit(key, usize::MAX);
        let (Some(parent), Some(pair)) = (parent, leaf.and_then(|leaf| leaf.pair)) else {
            self.write(PatriciaInstruction::Root(None));
            self.free_pairs.iter_mut().for_each(Vec::clear);
            self.end = 0;
            return;
        };
        self.replace(grandparent, parent, pair.nodes[1 - pair.side]);
        self.free_pair(pair);
    }

    /// Room for the pairs that one update writes: those whose nodes change their type move.
    fn make_room(&mut self) {
        if self.end + 4 * MAX_NODE_BYTES as u64 > self.limit {
            self.write_anew();
        }
    }

    /// The leaves below the node that a leaf inserted for the key at `position` would become the sibling of.
    pub(super) fn leaves_below(&self, key: &KeyBits<'_>, position: usize) -> Vec<Node> {
        let [_, _, top] = self.visit(key, position);
        let mut to_visit: Vec<Node> = top.map(|top| top.node).into_iter().collect();
        let mut leaves = Vec::new();
        while let Some(node) = to_visit.pop() {
            if node.node_type.is_leaf() {
                leaves.push(node);
            } else {
                to_visit.extend(self.trie.children(node.word));
            }
        }
        leaves
    }

    /// The node at which the key's way ends that examines no bit from `end` on, last; its parent and
    /// grandparent before it.
    fn visit(&self, key: &KeyBits<'_>, end: usize) -> [Option<Visited>; 3] {
        let mut visited = [None, None, self.trie.root().map(|node| Visited { node, pair: None })];
        while let Some(Visited { node, .. }) = visited[2]
            && !node.node_type.is_leaf()
        {
            let InternalNode { position, left_address, .. } = self.trie.layout().unpack(node.word);
            if position >= end {
                break;
            }
            let pair = Pair { address: left_address, nodes: self.trie.children(node.word), side: key.bit(position) };
            visited = [visited[1], visited[2], Some(Visited { node: pair.nodes[pair.side], pair: Some(pair) })];
        }
        visited
    }

    /// Puts `node` where `old` is; if it is of another type, the pair moves and the parent is told.
    fn replace(&mut self, parent: Option<Visited>, old: Visited, node: Node) {
        let (Some(pair), Some(parent)) = (old.pair, parent) else {
            self.write(PatriciaInstruction::Root(Some(node)));
            return;
        };
        if old.node.node_type == node.node_type {
            self.write_in_place(pair, node);
            return;
        }
        let mut nodes = pair.nodes;
        nodes[pair.side] = node;
        let position = self.trie.layout().unpack(parent.node.word).position;
        let moved = self.internal_node(position, nodes);
        match parent.pair {
            Some(above) => self.write_in_place(above, moved),
            None => self.write(PatriciaInstruction::Root(Some(moved))),
        }
        self.free_pair(pair);
    }

    /// An internal node over these two, which are written as a new pair.
    fn internal_node(&mut self, position: usize, pair: [Node; 2]) -> Node {
        let bytes = self.pair_bytes(pair);
        let left_address = self.free_pairs[bytes].pop().unwrap_or_else(|| {
            self.end += bytes as u64;
            self.end - bytes as u64
        });
        self.write_pair(left_address, pair);
        let types = pair.map(|node| node.node_type);
        let word = self.trie.layout().pack(InternalNode { position, left_address, types });
        Node { node_type: NodeType::Internal, word }
    }

    fn write_pair(&mut self, address: u64, pair: [Node; 2]) {
        let left_bytes = self.trie.layout().bytes(pair[0].node_type);
        let nodes = u128::from(pair[0].word) | u128::from(pair[1].word) << (8 * left_bytes);
        let bytes = self.pair_bytes(pair) as u8;
        self.write(PatriciaInstruction::Write { address, nodes, bytes });
    }

    fn write_in_place(&mut self, pair: Pair, node: Node) {
        let layout = self.trie.layout();
        let address = pair.address + (pair.side * layout.bytes(pair.nodes[0].node_type)) as u64;
        let bytes = layout.bytes(node.node_type) as u8;
        self.write(PatriciaInstruction::Write { address, nodes: node.word.into(), bytes });
    }

    fn free_pair(&mut self, pair: Pair) {
        self.free_pairs[self.pair_bytes(pair.nodes)].push(pair.address);
    }

    fn pair_bytes(&self, pair: [Node; 2]) -> usize {
        pair.iter().map(|node| self.trie.layout().bytes(node.node_type)).sum()
    }

    fn write(&mut self, instruction: PatriciaInstruction) {
        self.trie.apply(&instruction);
        if let Some(instructions) = &mut self.instructions {
            instructions.push(instruction);
        }
    }

    /// Writes every pair anew, from the first address on, parents before children and subtrees together:
    /// no pair is free then, and the last levels of a look-up often share a line.
    pub fn write_anew(&mut self) {
        self.free_pairs.iter_mut().for_each(Vec::clear);
        let layout = self.trie.layout();
        let Some(root) = self.trie.root() else { return };
        // Apart from the old nodes, so that all of those are read before one is overwritten.
        let mut anew: Vec<u8> = Vec::new();
        let mut end = 0;
        let mut moved = |node: Node| {
            if node.node_type.is_leaf() {
                return (node, None);
            }
            let left_address = end;
            let fields = InternalNode { left_address, ..layout.unpack(node.word) };
            end += fields.types.map(|node_type| layout.bytes(node_type) as u64).iter().sum::<u64>();
            (Node { word: layout.pack(fields), ..node }, Some((left_address as usize, node.word)))
        };
        let (new_root, first) = moved(root);
        let mut to_visit: Vec<(usize, u64)> = first.into_iter().collect();
        while let Some((mut address, old_parent)) = to_visit.pop() {
            let children = self.trie.children(old_parent).map(&mut moved);
            for (node, below) in children {
                let bytes = layout.bytes(node.node_type);
                if anew.len() < address + bytes {
                    anew.resize(address + bytes, 0);
                }
                anew[address..address + bytes].copy_from_slice(&node.word.to_le_bytes()[..bytes]);
                address += bytes;
                to_visit.extend(below);
            }
        }
        self.end = end;
        for (place, bytes) in anew.chunks(2 * MAX_NODE_BYTES).enumerate() {
            let nodes = bytes.iter().rev().fold(0, |nodes, &byte| nodes << 8 | u128::from(byte));
            let address = (place * 2 * MAX_NODE_BYTES) as u64;
            self.write(PatriciaInstruction::Write { address, nodes, bytes: bytes.len() as u8 });
        }
        self.write(PatriciaInstruction::Root(Some(new_root)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_bits::Fingerprints;
    use super::*;
    use proptest::prelude::*;

    fn leaf(word: u64) -> Node {
        // Every third one is wide, so that leaves change their type too.
        Node { node_type: if word.is_multiple_of(3) { NodeType::WideLeaf } else { NodeType::Leaf }, word }
    }

    /// An editor over a list of names, and a copy that follows its instructions.
    struct Tries {
        fingerprints: Fingerprints,
        editor: PatriciaEditor,
        copy: PatriciaTrie,
        names: Vec<(Vec<u8>, Node)>,
    }

    impl Tries {
        fn new(fingerprints: Fingerprints, capacity: usize) -> Self {
            let layout = NodeLayout::new(capacity, 400, 32);
            Self {
                fingerprints,
                editor: PatriciaEditor::new(layout, capacity, PageSize::Base, true).expect("a few KiB"),
                copy: PatriciaTrie::new(layout, capacity, PageSize::Base).expect("a few KiB"),
                names: Vec::new(),
            }
        }

        fn key<'n>(&self, name: &'n [u8]) -> KeyBits<'n> {
            self.fingerprints.key(name)
        }

        fn insert(&mut self, name: &[u8], leaf: Node) {
            let key = self.fingerprints.key(name);
            let reached = self.editor.trie().find(&key);
            // The words of the leaves are unique.
            let owner = self.names.iter().find(|(_, leaf)| Some(*leaf) == reached);
            let position = owner.map_or(0, |(owner, _)| key.first_difference(&self.key(owner)).expect("prefix-free"));
            self.editor.insert(&key, position, leaf);
            self.names.push((name.to_vec(), leaf));
        }

        fn remove(&mut self, place: usize) {
            let (name, _) = self.names.swap_remove(place);
            self.editor.remove(&self.fingerprints.key(&name));
        }

        fn change(&mut self, place: usize, leaf: Node) {
            let (name, old) = &mut self.names[place];
            *old = leaf;
            self.editor.change(&self.fingerprints.key(name), leaf);
        }

        fn check(&mut self) {
            for instruction in self.editor.take_instructions() {
                self.copy.apply(&instruction);
            }
            let below: Vec<Vec<u8>> = self.names.iter().map(|(name, _)| [name, &b"\x08\x01x"[..]].concat()).collect();
            let keys: Vec<KeyBits<'_>> = self
                .names
                .iter()
                .map(|(name, _)| &name[..])
                .chain(below.iter().map(|name| &name[..]))
                .map(|name| self.key(name))
                .collect();
            let mut found = vec![None; keys.len()];
            for (keys, found) in keys.chunks(64).zip(found.chunks_mut(64)) {
                self.copy.find_batch(keys, found);
            }
            for (place, (key, found)) in keys.iter().zip(found).enumerate() {
                let expected = Some(self.names[place % self.names.len()].1);
                assert_eq!([found, self.copy.find(key), self.editor.trie().find(key)], [expected; 3]);
            }
            assert_eq!(self.copy.root(), self.editor.trie().root());
            let depths = self.copy.leaf_depths();
            let names = self.names.len() as u64;
            assert_eq!((depths.leaves, depths.nodes), (names, (2 * names).saturating_sub(1)));
        }
    }

    /// Prefix-free names: components; the last one tells where the name ends.
    fn name(letters: &[u8]) -> Vec<u8> {
        let mut name: Vec<u8> = letters.iter().flat_map(|&letter| [8, 1, letter]).collect();
        name.extend([8, 0]);
        name
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn copies_that_follow_the_instructions_find_every_name(
            operations in prop::collection::vec((prop::collection::vec(0_u8..5, 0..6), 0..4_u8, any::<prop::sample::Index>()), 1..120),
            bits in prop::sample::select(vec![0_u32, 3, 20]),
            components in 1..=4_usize,
        ) {
            let mut tries = Tries::new(Fingerprints { bits, components }, 40);
            for (number, (letters, what, which)) in (0_u64..).zip(operations) {
                let name = name(&letters);
                let is_there = tries.names.iter().any(|(there, _)| *there == name);
                match what {
                    0 if !tries.names.is_empty() => tries.remove(which.index(tries.names.len())),
                    1 if !tries.names.is_empty() => tries.change(which.index(tries.names.len()), leaf(number)),
                    _ if !is_there && tries.names.len() < 40 => tries.insert(&name, leaf(number)),
                    _ => tries.editor.write_anew(),
                }
                tries.check();
            }
            while !tries.names.is_empty() {
                tries.remove(0);
            }
            tries.check();
            prop_assert_eq!(tries.editor.end, 0);
        }
    }

    /// Fig. 4.11: in (a) B is a leaf, in (b) C is an internal node.
    #[test]
    fn both_cases_of_the_figure() {
        let mut tries = Tries::new(Fingerprints::NONE, 8);
        let layout = tries.editor.trie().layout();
        let root = |tries: &Tries| tries.editor.trie().root().map(|root| layout.unpack(root.word)).expect("not empty");
        tries.insert(b"\x00", leaf(1)); // B
        tries.insert(b"\xc0", leaf(2));
        tries.insert(b"\xe0", leaf(4)); // C, internal, over 0xc0 and 0xe0 at bit 2
        tries.check();
        let before = root(&tries);
        assert_eq!((before.position, before.types), (0, [NodeType::Leaf, NodeType::Internal]));
        tries.insert(b"\x80", leaf(5)); // splits C at bit 1
        let after = root(&tries);
        assert_eq!(after, before, "case (b): C's type stays, so neither pair nor parent moves");
        tries.insert(b"\x40", leaf(7)); // splits B at bit 1
        let after = root(&tries);
        assert_eq!(after.types, [NodeType::Internal; 2]);
        assert_ne!(after.left_address, before.left_address, "case (a): B's type changes, so B and C move");
        tries.check();
        let bytes: usize = tries.editor.take_instructions().map(|_| 1).sum();
        assert_eq!(bytes, 0, "all were replayed");
    }

    #[test]
    fn freed_pairs_are_reused_and_fragments_are_rewritten() {
        const NAMES: usize = 1000;
        let mut tries = Tries::new(Fingerprints { bits: 16, components: 1 }, NAMES);
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut highest_end, mut written_anew) = (0, 0);
        for round in 0..20_000_u64 {
            // Leaves of one type come in waves, so that the freed pairs do not fit.
            let node_type = if round / 4000 % 2 == 0 { NodeType::Leaf } else { NodeType::WideLeaf };
            if tries.names.len() == NAMES {
                tries.remove(rng.usize(0..NAMES));
            }
            let before = tries.editor.end;
            tries.insert(&[&[8, 8][..], &rng.u64(..).to_be_bytes()].concat(), Node { node_type, word: round });
            highest_end = highest_end.max(tries.editor.end);
            written_anew += u32::from(tries.editor.end < before);
            tries.editor.take_instructions().for_each(|instruction| tries.copy.apply(&instruction));
        }
        tries.check();
        assert!(highest_end <= tries.editor.limit && (1..20).contains(&written_anew), "{written_anew} times");
        tries.editor.write_anew();
        tries.check();
        let layout = tries.editor.trie().layout();
        let dense = layout.node_bytes(NAMES) as u64;
        // Some of the last wave but one are left.
        assert!((dense - 9..dense + dense / 20).contains(&tries.editor.end), "{} for {dense}", tries.editor.end);
    }
}
