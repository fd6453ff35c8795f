//! Walk: all descriptors of a table, a part at a time, while the writer changes it.
//!
//! A cursor is the last descriptor that the walk has seen, so it stays valid whatever the writer does to nodes and
//! leaves. A walk meets every descriptor that is in the table from its first part to its last, each once. It meets
//! those that come or go meanwhile, or not.
//!
//! Cost: a way to the cursor for each part, and some 50 ns for each descriptor.

use super::leaf::Leaf;
use super::search::Shared;
use super::slot::{END_POSITION, Slot};
use super::{BurstTrieView, SLOTS_MAX};
use crate::Entry;
use crate::permutation::Key;
use arrayvec::ArrayVec;

/// Where a walk is. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    partition: u16,
    /// The last key that the walk has seen in the partition.
    after: Option<Key>,
}

/// A node of the way, the place of its next slot, and the path to the node.
struct Level {
    node: u32,
    next: usize,
    path: Key,
}

impl BurstTrieView<'_> {
    /// Goes on with a walk: calls `visit` with at least `most` further descriptors, and with at most one leaf more.
    /// False at the end of the table.
    pub fn walk(&self, cursor: &mut Cursor, most: usize, mut visit: impl FnMut(Entry)) -> bool {
        let mut left = most.max(1);
        while usize::from(cursor.partition) < self.shared.roots.len() {
            if !self.shared.walk_partition(cursor, &mut left, &mut visit) {
                return true;
            }
            *cursor = Cursor { partition: cursor.partition + 1, after: None };
        }
        false
    }
}

impl Shared {
    /// True at the end of the partition.
    fn walk_partition(&self, cursor: &mut Cursor, left: &mut usize, visit: &mut impl FnMut(Entry)) -> bool {
        let mask = self.partitions.get(cursor.partition).mask;
        let mut levels = self.levels_after(*cursor);
        while let Some(Level { node, next, path }) = levels.last_mut() {
            let Some(slot) = self.words.slots(*node).get(*next).map(Slot::load) else {
                levels.pop();
                continue;
            };
            *next += 1;
            if slot.is_inner() {
                let path = path.with(slot.first());
                levels.push(Level { node: slot.block(), next: 0, path });
                continue;
            }
            // Descending keys are the order of the trie.
            for row in Leaf::new(self.words.block(slot.block())).rows(*path) {
                if cursor.after.is_none_or(|after| row.key < after) {
                    cursor.after = Some(row.key);
                    *left = left.saturating_sub(1);
                    visit(Entry { descriptor: self.order.descriptor(row.key.union(mask)), value: row.value });
                }
            }
            if *left == 0 {
                return false;
            }
        }
        true
    }

    /// The way to the first slot that may have something behind the cursor.
    fn levels_after(&self, cursor: Cursor) -> ArrayVec<Level, SLOTS_MAX> {
        let mut levels = ArrayVec::new();
        let (mut node, mut path, mut from) = (self.root(cursor.partition).block(), Key::default(), 0);
        let Some(after) = cursor.after else {
            levels.push(Level { node, next: 0, path });
            return levels;
        };
        loop {
            let position = after.next(from).min(END_POSITION);
            let slots = self.words.slots(node);
            let next = slots.partition_point(|slot| Slot::load(slot).last() < position);
            match slots.get(next).map(Slot::load) {
                Some(slot) if slot.is_inner() && slot.first() == position => {
                    levels.push(Level { node, next: next + 1, path });
                    (node, path, from) = (slot.block(), path.with(position), position + 1);
                }
                _ => {
                    levels.push(Level { node, next, path });
                    return levels;
                }
            }
        }
    }
}
