//! Patricia bulk load: how is a trie of a billion names filled without a controller?
//!
//! Source: Yuan15 §4.3.7 (Fig. 4.13: look-ups in tries of up to 10⁹ names). A controller keeps every name in full,
//! which no common machine can for a billion. If the keys come in ascending order, only the bit at which each differs
//! from the one before is needed: the trie over these bits is their Cartesian tree, the lowest at the root. It is built
//! along its right edge, so that building needs only one more entry of memory for each level.
//!
//! ```text
//! keys  00… 010… 011… 1…        differs at   1, 2, 0        right edge while 011… is added:
//!                                                              1 ─ left: 00…
//!                                                                ╲ 2 ─ left: 010…
//!                                                                    ╲ 011…
//! ```
//!
//! A pair is written when the trie below it is complete, so that the nodes are dense and in depth-first order, as after
//! a controller has rewritten them (see [`super::patricia_updates`]).
//!
//! Cost: a few dozen nanoseconds for each name, in the order of the memory. Limits: those of the layout; a table filled
//! here takes no updates.

use super::patricia_leaf::PatriciaLeaf;
use super::patricia_node::{InternalNode, NodeType};
use super::patricia_table::{PatriciaOptions, PatriciaTable};
use super::patricia_trie::{Node, PatriciaInstruction, PatriciaTrie};
use std::io;

/// A table to be filled in the order of its keys.
pub struct PatriciaBulkLoad {
    options: PatriciaOptions,
    trie: PatriciaTrie,
    /// Nodes on the right edge: the bit that each examines, and what is on its left.
    edge: Vec<(usize, Node)>,
    /// Where the right edge ends; nothing before the first name.
    last: Option<Node>,
    /// Behind the last pair.
    end: u64,
    names: usize,
}

impl PatriciaBulkLoad {
    /// An empty one.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(options: PatriciaOptions) -> io::Result<Self> {
        let trie = PatriciaTrie::new(options.node_layout(), options.capacity_rules, options.pages)?;
        Ok(Self { options, trie, edge: Vec::new(), last: None, end: 0, names: 0 })
    }

    /// Adds the leaf of the next key, which differs from the one before at bit `differs_at` for the first time. Does
    /// not matter for the first key.
    ///
    /// # Panics
    /// If there are more keys than the options allow.
    pub fn push(&mut self, differs_at: usize, leaf: PatriciaLeaf) {
        self.names += 1;
        assert!(self.names <= self.options.capacity_rules, "more names than the table is made for");
        let leaf = self.options.leaves.pack(leaf);
        if let Some(left) = self.complete(differs_at) {
            self.edge.push((differs_at, left));
        }
        self.last = Some(leaf);
    }

    /// The table of all keys.
    pub fn finish(mut self) -> PatriciaTable {
        let root = self.complete(0);
        self.trie.apply(&PatriciaInstruction::Root(root));
        PatriciaTable::of_trie(self.options, self.trie)
    }

    /// Writes what hangs below the nodes of the right edge that examine bits behind `position`, or bit 0 at the end;
    /// returns the topmost.
    fn complete(&mut self, position: usize) -> Option<Node> {
        let mut right = self.last?;
        while let Some((examined, left)) = self.edge.pop_if(|&mut (examined, _)| examined >= position) {
            let layout = self.trie.layout();
            let types = [left.node_type, right.node_type];
            let left_bytes = layout.bytes(types[0]);
            let bytes = left_bytes + layout.bytes(types[1]);
            let nodes = u128::from(left.word) | u128::from(right.word) << (8 * left_bytes);
            self.trie.apply(&PatriciaInstruction::Write { address: self.end, nodes, bytes: bytes as u8 });
            let node = InternalNode { position: examined, left_address: self.end, types };
            self.end += bytes as u64;
            right = Node { node_type: NodeType::Internal, word: layout.pack(node) };
        }
        Some(right)
    }
}

#[cfg(test)]
mod tests {
    use super::super::differentiator::{Differentiator, Leads, RootMatch};
    use super::super::key_bits::Fingerprints;
    use super::super::patricia_leaf::LocalFingerprint;
    use super::super::{LeafLayout, PatriciaController};
    use super::*;
    use std::collections::BTreeSet;

    /// A component of one to three letters of an alphabet of four.
    fn name_of(number: usize) -> Vec<u8> {
        let letters = 1 + number % 3;
        let mut name = vec![8, letters as u8];
        name.extend((0..letters).map(|place| b"adkz"[((number / 3) >> (2 * place)) & 3]));
        name
    }

    #[test]
    fn a_loaded_table_is_that_of_a_controller() -> io::Result<()> {
        let names: BTreeSet<Vec<u8>> = (0..400).map(name_of).collect();
        for fingerprints in [Fingerprints::NONE, Fingerprints { bits: 5, components: 1 }] {
            for number_bits in [8, 3] {
                let leaves = LeafLayout { number_bits, components: 1, local_bits_max: 0 };
                let options = PatriciaOptions { fingerprints, leaves, ..PatriciaOptions::fpt(names.len()) };
                let mut sorted: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                sorted.sort_by(|one, other| {
                    let (one, other) = (fingerprints.key(one), fingerprints.key(other));
                    let side = one.first_difference(&other).map(|position| (one.bit(position), other.bit(position)));
                    side.map_or(std::cmp::Ordering::Equal, |(one, other)| one.cmp(&other))
                });
                let mut load = PatriciaBulkLoad::new(options)?;
                let leads = |name: &[u8]| Leads::to_number(u32::from(name[2]) % 9);
                for (place, name) in sorted.iter().enumerate() {
                    let before = fingerprints.key(sorted[place.saturating_sub(1)]);
                    let differs_at = before.first_difference(&fingerprints.key(name)).unwrap_or(0);
                    let leaf =
                        PatriciaLeaf { leads: Some(leads(name)), components: 1, local: LocalFingerprint::default() };
                    load.push(differs_at, leaf);
                }
                let loaded = load.finish();
                let mut found = vec![None; sorted.len()];
                for (names, found) in sorted.chunks(64).zip(found.chunks_mut(64)) {
                    loaded.find_root_rules(names, &[], found);
                }
                for (name, found) in sorted.iter().zip(found) {
                    assert_eq!(found, Some(RootMatch { leads: leads(name), prefix_bytes: name.len() as u16 }));
                }
                let owners: Vec<Vec<u8>> = sorted.iter().map(|name| name.to_vec()).collect();
                let mut controller = PatriciaController::new(options, false)?;
                for number in 0..owners.len() {
                    let leads = Some(leads(&owners[number]));
                    controller.insert_rule(&owners, number as u32, leads);
                }
                let mut table = PatriciaTable::new(options)?;
                controller.take_instructions().for_each(|instruction| table.apply(&instruction));
                assert_eq!(loaded.trie().leaf_depths(), table.trie().leaf_depths());
            }
        }
        Ok(())
    }

    #[test]
    fn no_name_and_one_name_make_a_table() -> io::Result<()> {
        let options = PatriciaOptions::sbpt(1);
        assert_eq!(PatriciaBulkLoad::new(options)?.finish().trie().root(), None);
        let mut load = PatriciaBulkLoad::new(options)?;
        load.push(
            0,
            PatriciaLeaf { leads: Some(Leads::to_number(1)), components: 1, local: LocalFingerprint::default() },
        );
        assert!(load.finish().trie().root().is_some_and(|root| root.node_type.is_leaf()));
        Ok(())
    }
}
