//! The prefix tree: a large table ordered by name, for RIB entries and FIB entries.
//!
//! A `BTreeMap` of shared names has three disadvantages. It takes more bytes than its contents, because its nodes are
//! half empty. It would need another table for entry numbers that stay the same. And each of its comparisons reads
//! another name, which is not in the cache. Here the records lie in one array, and a record keeps its number until it
//! is removed. The order consists of lists of such numbers, each with eight bytes of the name ([`crate::key_digests`]).
//!
//! ```text
//!   heads       | digest of each block's first name |
//!                   │
//!   blocks      | 7 2 9 …, digests | 4 1 …, digests | …     in canonical order, ≤ 128 a block
//!                   │
//!   nodes       | … | key, value | … | free | …
//!                      │
//!                      └► bytes of the name, shared with other tables
//! ```
//!
//! Bytes: an entry takes its value, 8 for the key, and 12 to 24 for the order. All tables share one copy of the name's
//! bytes, which takes 16 more and the allocator's overhead. Memory of removed entries is used again, and not returned.
//! Cost: a look-up searches two lists and reads one name or two. An insertion or a removal also moves at most a block
//! of numbers. If it splits or removes a block, it also moves 64 bytes per block. Limit: 2³² entries; the owners'
//! limits are lower.

use crate::{key_digests::KeyDigests, name_key::NameKey};
use namewire_packet::Name;

/// Numbers in a full block. With their digests they take 1.5 KiB, so that moving them costs less than finding the
/// place.
const BLOCK_LEN: usize = 128;

/// The number of an entry. It stays until the entry is removed; then another entry may get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PrefixId(u32);

#[derive(Debug)]
struct Node<V> {
    key: NameKey,
    value: V,
}

/// Numbers of entries in order.
#[derive(Debug, Default)]
struct Block {
    ids: Vec<PrefixId>,
    digests: KeyDigests,
}

/// The place of a name, or the place where it would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    block: usize,
    at: usize,
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct PrefixTree<V> {
    nodes: Vec<Option<Node<V>>>,
    free: Vec<PrefixId>,
    /// No block is empty.
    blocks: Vec<Block>,
    heads: KeyDigests,
}

impl<V> Default for PrefixTree<V> {
    fn default() -> Self {
        PrefixTree { nodes: Vec::new(), free: Vec::new(), blocks: Vec::new(), heads: KeyDigests::default() }
    }
}

impl<V> PrefixTree<V> {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// The number of an entry, or the place where [`PrefixTree::insert_at`] puts it.
    pub(crate) fn find(&self, name: Name<'_>) -> Result<PrefixId, Place> {
        self.locate(name.value()).map(|place| self.id_at(place))
    }

    pub(crate) fn get(&self, name: Name<'_>) -> Option<&V> {
        self.find(name).ok().map(|id| &self.node(id).value)
    }

    pub(crate) fn key(&self, id: PrefixId) -> &NameKey {
        &self.node(id).key
    }

    pub(crate) fn value(&self, id: PrefixId) -> &V {
        &self.node(id).value
    }

    /// The value; `None` if the entry is gone and its number is not used again.
    pub(crate) fn try_value(&self, id: PrefixId) -> Option<&V> {
        self.nodes[id.0 as usize].as_ref().map(|node| &node.value)
    }

    pub(crate) fn value_mut(&mut self, id: PrefixId) -> &mut V {
        &mut self.nodes[id.0 as usize].as_mut().expect("the number of an entry").value
    }

    /// Adds an entry or replaces its value; returns the former value.
    pub(crate) fn insert(&mut self, key: NameKey, value: V) -> Option<V> {
        match self.locate(key.value()) {
            Ok(place) => Some(std::mem::replace(self.value_mut(self.id_at(place)), value)),
            Err(place) => {
                self.insert_at(place, key, value);
                None
            }
        }
    }

    /// Adds an entry at the place that [`PrefixTree::find`] has just returned.
    pub(crate) fn insert_at(&mut self, place: Place, key: NameKey, value: V) -> PrefixId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            PrefixId(u32::try_from(self.nodes.len() - 1).expect("the owners' limits are lower"))
        });
        self.nodes[id.0 as usize] = Some(Node { key, value });
        self.put_in_order(place, id);
        id
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, name: Name<'_>) -> Option<V> {
        let Place { block, at } = self.locate(name.value()).ok()?;
        let id = self.blocks[block].ids.remove(at);
        self.blocks[block].digests.remove(at);
        if self.blocks[block].ids.is_empty() {
            self.blocks.remove(block);
            self.heads.remove(block);
        } else if at == 0 {
            self.renew_head(block);
        }
        self.join_small(block);
        self.join_small(block.wrapping_sub(1));
        self.free.push(id);
        self.nodes[id.0 as usize].take().map(|node| node.value)
    }

    /// All entries in canonical order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NameKey, &V)> {
        self.blocks.iter().flat_map(|block| &block.ids).map(|&id| self.entry(id))
    }

    /// The entries at and under `prefix`, in canonical order. With `after`, only the entries behind it.
    pub(crate) fn subtree<'t>(
        &'t self,
        prefix: Name<'t>,
        after: Option<&NameKey>,
    ) -> impl Iterator<Item = (&'t NameKey, &'t V)> {
        let from = match after.map(|key| self.locate(key.value())) {
            None => self.locate(prefix.value()).unwrap_or_else(|place| place),
            Some(Ok(place)) => Place { at: place.at + 1, ..place },
            Some(Err(place)) => place,
        };
        let first = self.blocks.get(from.block).map_or(&[][..], |block| &block.ids[from.at..]);
        let further = self.blocks.get(from.block + 1..).unwrap_or_default();
        let ids = first.iter().chain(further.iter().flat_map(|block| &block.ids));
        ids.map(|&id| self.entry(id)).take_while(move |(key, _)| key.value().starts_with(prefix.value()))
    }

    /// The entry of the longest prefix of `name`, which may be all of it.
    ///
    /// Every prefix of `name` in the table is also a prefix of the last name before it. So only what both have in
    /// common needs a look-up.
    pub(crate) fn nearest(&self, name: Name<'_>) -> Option<(&NameKey, &V)> {
        let mut longest = name;
        loop {
            let before = match self.locate(longest.value()) {
                Ok(place) => return Some(self.entry(self.id_at(place))),
                Err(place) => self.before(place)?,
            };
            let (key, value) = self.entry(before);
            if longest.value().starts_with(key.value()) {
                return Some((key, value));
            }
            let common = longest.value().iter().zip(key.value()).take_while(|(a, b)| a == b).count();
            let fits = |length: &usize| longest.prefix(*length).value().len() <= common;
            longest = longest.prefix((0..longest.len()).rev().find(fits)?);
            if longest.is_empty() {
                // Usually nothing is in common, and `/` is easy to find.
                let (key, value) = self.entry(self.id_at(Place { block: 0, at: 0 }));
                return key.value().is_empty().then_some((key, value));
            }
        }
    }

    /// The entries of all proper prefixes of `name`, the longest first.
    pub(crate) fn ancestors<'t>(&'t self, name: Name<'t>) -> impl Iterator<Item = (&'t NameKey, &'t V)> {
        let mut below = name;
        std::iter::from_fn(move || {
            let found = (!below.is_empty()).then(|| self.nearest(below.parent())).flatten();
            below = found.map_or(Name::ROOT, |(key, _)| key.name());
            found
        })
    }

    fn node(&self, id: PrefixId) -> &Node<V> {
        self.nodes[id.0 as usize].as_ref().expect("the number of an entry")
    }

    fn entry(&self, id: PrefixId) -> (&NameKey, &V) {
        let node = self.node(id);
        (&node.key, &node.value)
    }

    fn id_at(&self, place: Place) -> PrefixId {
        self.blocks[place.block].ids[place.at]
    }

    fn key_of(&self, id: PrefixId) -> &[u8] {
        self.node(id).key.value()
    }

    fn locate(&self, value: &[u8]) -> Result<Place, Place> {
        let block = match self.heads.search(value, |block| self.key_of(self.blocks[block].ids[0])) {
            Ok(block) => return Ok(Place { block, at: 0 }),
            Err(behind) => behind.saturating_sub(1),
        };
        let place = |at| Place { block, at };
        let Some(Block { ids, digests }) = self.blocks.get(block) else { return Err(place(0)) };
        digests.search(value, |at| self.key_of(ids[at])).map(place).map_err(place)
    }

    fn before(&self, place: Place) -> Option<PrefixId> {
        // Only the first block begins behind a name that is not in it.
        place.at.checked_sub(1).map(|at| self.id_at(Place { at, ..place }))
    }

    fn put_in_order(&mut self, mut place: Place, id: PrefixId) {
        let last = self.blocks.len().saturating_sub(1);
        let Some(block) = self.blocks.get_mut(place.block) else { return self.insert_block(place.block, vec![id]) };
        if block.ids.len() == BLOCK_LEN {
            if place.block == last && place.at == BLOCK_LEN {
                // Names that arrive in order leave full blocks behind.
                return self.insert_block(place.block + 1, vec![id]);
            }
            let upper = block.ids.split_off(BLOCK_LEN / 2);
            self.renew_digests(place.block);
            self.insert_block(place.block + 1, upper);
            if place.at > BLOCK_LEN / 2 {
                place = Place { block: place.block + 1, at: place.at - BLOCK_LEN / 2 };
            }
        }
        let PrefixTree { nodes, blocks, .. } = self;
        let key = |id: PrefixId| nodes[id.0 as usize].as_ref().map_or(&[][..], |node| node.key.value());
        let Block { ids, digests } = &mut blocks[place.block];
        digests.insert(place.at, key(id), |at| key(ids[at]));
        ids.insert(place.at, id);
        if place.at == 0 {
            self.renew_head(place.block);
        }
    }

    fn insert_block(&mut self, at: usize, ids: Vec<PrefixId>) {
        let digests = KeyDigests::of(ids.len(), |at| self.key_of(ids[at]));
        self.blocks.insert(at, Block { ids, digests });
        self.insert_head(at);
    }

    /// Joins a block with the next one if both together fill at most half a block.
    fn join_small(&mut self, block: usize) {
        let len = |block: usize| self.blocks.get(block).map(|block| block.ids.len());
        let next = block.wrapping_add(1);
        if let (Some(left), Some(right)) = (len(block), len(next))
            && left + right <= BLOCK_LEN / 2
        {
            let mut right = self.blocks.remove(next);
            self.heads.remove(next);
            self.blocks[block].ids.append(&mut right.ids);
            self.renew_digests(block);
        }
    }

    fn renew_digests(&mut self, block: usize) {
        let ids = &self.blocks[block].ids;
        self.blocks[block].digests = KeyDigests::of(ids.len(), |at| self.key_of(ids[at]));
    }

    /// Updates the head of a block after its first name has changed.
    fn renew_head(&mut self, block: usize) {
        self.heads.remove(block);
        self.insert_head(block);
    }

    fn insert_head(&mut self, block: usize) {
        let PrefixTree { nodes, blocks, heads, .. } = self;
        let first =
            |block: usize| nodes[blocks[block].ids[0].0 as usize].as_ref().map_or(&[][..], |node| node.key.value());
        // Among the other heads, because this block has no head yet.
        heads.insert(block, first(block), |head| first(head + usize::from(head >= block)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::NameBuf;
    use std::collections::BTreeMap;

    /// Names of up to four components out of three: many are prefixes of each other.
    fn random_name(random: &mut fastrand::Rng) -> NameBuf {
        let mut name = NameBuf::new();
        for _ in 0..random.usize(0..8) {
            name.push_generic(["a", "b", "bb"][random.usize(0..3)].as_bytes());
        }
        name
    }

    #[test]
    fn it_is_an_ordered_map() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut tree = PrefixTree::default();
        let mut model: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for step in 0..20_000 {
            let name = random_name(&mut random);
            // The table grows to some thousand names, then shrinks.
            if random.u32(0..10) < if step < 10_000 { 8 } else { 2 } {
                let before = tree.insert(NameKey::new(name.as_name()), step);
                assert_eq!(before, model.insert(name.value().to_vec(), step));
                let id = tree.find(name.as_name()).expect("just inserted");
                assert_eq!((tree.key(id).value(), *tree.value(id)), (name.value(), step));
            } else {
                assert_eq!(tree.remove(name.as_name()), model.remove(name.value()));
            }
            assert_eq!(tree.len(), model.len());
            let name = random_name(&mut random);
            let name = name.as_name();
            assert_eq!(tree.get(name), model.get(name.value()));
            let prefixes: Vec<usize> =
                (0..name.len()).rev().filter_map(|length| model.get(name.prefix(length).value()).copied()).collect();
            assert_eq!(tree.ancestors(name).map(|(_, value)| *value).collect::<Vec<_>>(), prefixes);
            let nearest = model.get(name.value()).or(prefixes.first());
            assert_eq!(tree.nearest(name).map(|(_, value)| value), nearest);
            if step % 100 == 0 {
                let under = model.iter().filter(|(value, _)| value.starts_with(name.value())).map(|(_, step)| step);
                assert!(tree.subtree(name, None).map(|(_, step)| step).eq(under));
                let after = NameKey::new(random_name(&mut random).as_name());
                let behind =
                    model.iter().filter(|(value, _)| value.starts_with(name.value()) && &value[..] > after.value());
                if after.value() >= name.value() {
                    assert!(tree.subtree(name, Some(&after)).map(|(_, step)| step).eq(behind.map(|(_, step)| step)));
                }
                assert!(tree.iter().map(|(key, step)| (key.value(), step)).eq(model.iter().map(|(k, v)| (&k[..], v))));
            }
        }
        assert!(tree.blocks.len() <= 1 + 4 * tree.len() / BLOCK_LEN, "{} blocks for {}", tree.blocks.len(), tree.len());
    }

    #[test]
    fn names_that_come_in_order_fill_their_blocks_and_numbers_are_used_again() {
        let mut tree = PrefixTree::default();
        let name = |number: u32| format!("/{number:08}").parse::<NameBuf>().expect("a name");
        for number in 0..10 * BLOCK_LEN as u32 {
            tree.insert(NameKey::new(name(number).as_name()), number);
        }
        assert_eq!(tree.blocks.len(), 10);
        for number in 0..10 * BLOCK_LEN as u32 {
            assert_eq!(tree.remove(name(number).as_name()), Some(number));
        }
        assert!(tree.blocks.is_empty() && tree.len() == 0);
        tree.insert(NameKey::new(name(1).as_name()), 1);
        assert_eq!(tree.nodes.len(), 10 * BLOCK_LEN);
    }
}
