//! Layout: from sorted rows to nodes and leaves, for a whole table and for a leaf that bursts.
//!
//! Rows that go on with the same position are a group. A group that fits no leaf becomes an inner child. Neighbouring
//! groups share a leaf. So leaves are well filled, although the groups of a node are small: when a leaf bursts, its
//! rows fall into some ten groups.

use super::blocks::{Header, Space, Words};
use super::leaf::{LEAF_WORDS_MAX, ROWS_MAX, Row};
use super::parts::Parts;
use super::slot::{END_POSITION, Slot, weights};
use namewire_packet::descriptor::DESCRIPTOR_BITS;
use std::sync::atomic::AtomicU64;

/// Slots of a node: one for each position, and the end.
pub(super) const SLOTS_MAX: usize = DESCRIPTOR_BITS + 1;
/// Words of the largest block.
pub(super) const BLOCK_WORDS_MAX: usize = if LEAF_WORDS_MAX > 1 + SLOTS_MAX { LEAF_WORDS_MAX } else { 1 + SLOTS_MAX };

/// Why the table refuses a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The table holds as many descriptors as its capacity.
    #[error("the table of descriptors is full")]
    Descriptors,
    /// There is no room for a block.
    #[error("no memory for the table of descriptors")]
    Memory,
    /// Too many blocks wait for a reader that is pinned.
    #[error("readers hold too many former blocks of the table of descriptors")]
    Readers,
}

/// Lays out blocks that no reader can reach yet.
pub(super) struct Layout<'a> {
    pub(super) words: &'a Words,
    pub(super) space: &'a mut Space,
    /// Rows at which a leaf takes no further group.
    pub(super) rows_wanted: usize,
    /// Words that must stay free.
    pub(super) reserve: usize,
    /// Blocks laid out.
    pub(super) made: Vec<u32>,
}

impl Layout<'_> {
    /// The slots of a node for these rows, which share the positions below `from`.
    ///
    /// The position grows with each nested call, so there are at most 193.
    pub(super) fn slots(&mut self, rows: &[Row], from: u8) -> Result<Vec<Slot>, Refusal> {
        let mut slots = Vec::new();
        // Where the rows of the open leaf begin.
        let mut open = 0;
        let mut start = 0;
        while start < rows.len() {
            let position = rows[start].next(from);
            let group = &rows[start..end_of_group(rows, start, position)];
            let end = start + group.len();
            if group.len() > ROWS_MAX {
                slots.extend(self.leaf_of(&rows[open..start], from)?);
                slots.push(self.inner(group, position)?);
                open = end;
            } else if start - open >= self.rows_wanted || end - open > ROWS_MAX {
                slots.extend(self.leaf_of(&rows[open..start], from)?);
                open = start;
            }
            start = end;
        }
        slots.extend(self.leaf_of(&rows[open..], from)?);
        Ok(slots)
    }

    fn inner(&mut self, rows: &[Row], position: u8) -> Result<Slot, Refusal> {
        let slots = self.slots(rows, position + 1)?;
        let node = self.node(&slots)?;
        Ok(Slot::new(node, true, [position; 2], weights(slots)))
    }

    /// A leaf of at most [`ROWS_MAX`] rows, or nothing without rows.
    pub(super) fn leaf_of(&mut self, rows: &[Row], from: u8) -> Result<Option<Slot>, Refusal> {
        let [Some(first), Some(last)] = [rows.first(), rows.last()] else { return Ok(None) };
        let positions = [first.next(from), last.next(from)];
        let leaf = self.block(&Parts::of_rows(rows, positions[0]).encode())?;
        let weights = rows.iter().map(|row| row.key.weight());
        let weights = weights.fold([u8::MAX, 0], |[min, max]: [u8; 2], weight| [min.min(weight), max.max(weight)]);
        Ok(Some(Slot::new(leaf, false, positions, weights)))
    }

    /// A node with these slots.
    pub(super) fn node(&mut self, slots: &[Slot]) -> Result<u32, Refusal> {
        let header = Header::of_node(slots.len());
        let words: Vec<u64> = std::iter::once(header.0).chain(slots.iter().map(|slot| slot.0)).collect();
        self.block(&words)
    }

    /// Gives a block up that was made or is in the table; the latter is added to `unlinked`.
    pub(super) fn discard(&mut self, block: u32, unlinked: &mut Vec<u32>) {
        match self.made.iter().position(|made| *made == block) {
            Some(place) => self.space.release(self.made.swap_remove(place), self.words.header(block).words()),
            None => unlinked.push(block),
        }
    }

    /// A block of these words.
    pub(super) fn block(&mut self, contents: &[u64]) -> Result<u32, Refusal> {
        let block = self.space.allocate(contents.len(), self.reserve).ok_or(Refusal::Memory)?;
        self.words.fill(block, contents);
        self.made.push(block);
        Ok(block)
    }
}

/// Where the rows end that go on with this position; they follow each other. Most groups are small: steps that double
/// find the end sooner than halving the whole range.
fn end_of_group(rows: &[Row], start: usize, position: u8) -> usize {
    if position == END_POSITION {
        return rows.len();
    }
    let has = |row: &Row| row.key.has(position);
    let (mut known, mut step) = (start, 1);
    while known + step < rows.len() && has(&rows[known + step]) {
        known += step;
        step *= 2;
    }
    let end = (known + step).min(rows.len());
    known + rows[known..end].partition_point(has)
}

/// Slots of a node of a table.
pub(super) fn load(words: &[AtomicU64]) -> Vec<Slot> {
    words.iter().map(Slot::load).collect()
}
