//! Parts: a leaf decomposed, so that one row changes while the others stay encoded.
//!
//! Most updates add or remove one row and leave the leaf's first position as it is. Then the other rows are copied:
//! heads, lengths, values, and the nibbles of the tails, one in a byte.
//!
//! N.B. Decoding and encoding all rows took half of the time of an update: the table made 90,000 updates a second, and
//! 190,000 with copied rows (half of them removals, 5 * 10⁶ descriptors of three tags, on a busy machine).

use super::blocks::{Header, WORD_BYTES};
use super::leaf::{GAP_GOES_ON, LEAF_WORDS_MAX, Leaf, ROWS_MAX, Row, TAIL_NIBBLES_MAX, tail};
use crate::permutation::Key;
use arrayvec::ArrayVec;
use std::cmp::Ordering;

/// A leaf; the parts of its rows are in the order of the rows.
pub(super) struct Parts {
    first: u8,
    heads: ArrayVec<u32, ROWS_MAX>,
    lengths: ArrayVec<u8, ROWS_MAX>,
    nibbles: ArrayVec<u8, { ROWS_MAX * TAIL_NIBBLES_MAX }>,
    pub(super) values: ArrayVec<u32, ROWS_MAX>,
}

impl Parts {
    /// The leaf of these rows, at most [`ROWS_MAX`].
    pub(super) fn of_rows(rows: &[Row], first: u8) -> Self {
        let mut parts = Parts::empty(first);
        for Row { key, value } in rows {
            let tail = tail(key, first);
            parts.heads.push(key.window(first));
            parts.lengths.push(tail.len() as u8);
            parts.nibbles.extend(tail);
            parts.values.push(*value);
        }
        parts
    }

    /// A leaf of the table.
    pub(super) fn of_leaf(leaf: Leaf<'_>) -> Self {
        let mut parts = Parts::empty(leaf.first());
        for row in 0..leaf.count() {
            parts.heads.push(leaf.head(row));
            parts.lengths.push(leaf.length(row) as u8);
            parts.values.push(leaf.value(row));
        }
        parts.nibbles.extend(leaf.nibbles());
        parts
    }

    fn empty(first: u8) -> Self {
        let (heads, lengths, nibbles) = (ArrayVec::new(), ArrayVec::new(), ArrayVec::new());
        Parts { first, heads, lengths, nibbles, values: ArrayVec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.heads.len()
    }

    /// The place of a key among the rows, or where it belongs. The order of the trie is that of the paths; a path comes
    /// after those that it begins.
    pub(super) fn find(&self, key: &Key) -> Result<usize, usize> {
        let (head, tail) = (key.window(self.first), tail(key, self.first));
        let mut from = 0;
        for (place, (stored, length)) in self.heads.iter().zip(&self.lengths).enumerate() {
            let to = from + usize::from(*length);
            let order = head.cmp(stored).then_with(|| before(&self.nibbles[from..to], &tail));
            match order {
                Ordering::Less => from = to,
                Ordering::Equal => return Ok(place),
                Ordering::Greater => return Err(place),
            }
        }
        Err(self.count())
    }

    /// Adds a row at its place. There must be room.
    pub(super) fn insert(&mut self, place: usize, row: Row) {
        let (from, tail) = (self.nibbles_before(place), tail(&row.key, self.first));
        self.heads.insert(place, row.key.window(self.first));
        self.lengths.insert(place, tail.len() as u8);
        self.values.insert(place, row.value);
        self.nibbles.extend(tail.iter().copied());
        self.nibbles[from..].rotate_right(tail.len());
    }

    /// Removes the row at a place; returns its value.
    pub(super) fn remove(&mut self, place: usize) -> u32 {
        let from = self.nibbles_before(place);
        self.nibbles.drain(from..from + usize::from(self.lengths[place]));
        self.heads.remove(place);
        self.lengths.remove(place);
        self.values.remove(place)
    }

    fn nibbles_before(&self, place: usize) -> usize {
        self.lengths[..place].iter().map(|length| usize::from(*length)).sum()
    }

    /// The weights of the lightest and the heaviest row, whose path has this weight.
    pub(super) fn weights(&self, path_weight: u8) -> [u8; 2] {
        let mut from = 0;
        let weights = self.heads.iter().zip(&self.lengths).map(|(head, length)| {
            let tail = &self.nibbles[from..from + usize::from(*length)];
            from += tail.len();
            path_weight + head.count_ones() as u8 + tail.iter().filter(|nibble| **nibble != GAP_GOES_ON).count() as u8
        });
        weights.fold([u8::MAX, 0], |[min, max], weight| [min.min(weight), max.max(weight)])
    }

    /// The words of the leaf.
    pub(super) fn encode(&self) -> ArrayVec<u64, LEAF_WORDS_MAX> {
        let largest = self.values.iter().max().unwrap_or(&0);
        let value_bytes = (u32::BITS - largest.leading_zeros()).div_ceil(8) as usize;
        let mut bytes: ArrayVec<u8, { LEAF_WORDS_MAX * WORD_BYTES }> = ArrayVec::new();
        bytes.extend(self.lengths.iter().copied());
        bytes.extend(self.nibbles.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4));
        self.values.iter().for_each(|value| bytes.extend(value.to_le_bytes().into_iter().take(value_bytes)));
        let words = 1 + self.count().div_ceil(2) + bytes.len().div_ceil(WORD_BYTES);
        let mut leaf = ArrayVec::new();
        leaf.push(Header::of_leaf(self.count(), words, value_bytes, self.first, self.nibbles.len()).0);
        leaf.extend(self.heads.chunks(2).map(|pair| {
            let second = pair.get(1).copied().unwrap_or(0);
            u64::from(pair[0]) | u64::from(second) << 32
        }));
        leaf.extend(bytes.chunks(WORD_BYTES).map(|chunk| {
            let mut word = [0; WORD_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        debug_assert_eq!(leaf.len(), words);
        leaf
    }
}

/// Whether a stored tail comes before another.
fn before(stored: &[u8], tail: &[u8]) -> Ordering {
    let common = stored.len().min(tail.len());
    stored[..common].cmp(&tail[..common]).then(tail.len().cmp(&stored.len()))
}
