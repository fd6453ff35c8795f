//! Leaf: up to [`ROWS_MAX`] descriptors that share a path, in 11 to 14 bytes each instead of 24, and their values.
//!
//! ```text
//!   word     0        1 ...................   then bytes one after the other
//!            header   heads, two in a word    lengths   nibbles of all tails   values
//! ```
//!
//! | part | of each descriptor |
//! | --- | --- |
//! | head, 32 bits | the 32 positions from the leaf's first on; the rarest, so that a comparison mostly ends here |
//! | tail, nibbles | the gaps between the further 1-bits: 0 to 14, or 15 for "15 zeros, and the gap goes on" |
//! | length, a byte | nibbles of the tail |
//! | value, 0 to 4 bytes | as many as the largest value of the leaf needs |
//!
//! Source: gaps of bit positions are geometrically distributed, for which a code with a fixed divisor is nearly optimal
//! (Golomb, "Run-length encodings", 1966). With 9 positions a gap, a nibble takes 4.7 bits for each 1-bit; a bitmap
//! takes 9.
//!
//! The rows are sorted in the order of the trie. The positions before the leaf's first one are its path, which leaves
//! do not store. Cost: a search reads the heads, and the lengths and a tail for each head that passes, about one in 20.

use super::blocks::{Header, WORD_BYTES};
use super::search::Query;
use super::slot::END_POSITION;
use crate::permutation::Key;
use arrayvec::ArrayVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most descriptors of a leaf.
///
/// N.B. With 32, the table is 3 % smaller (16.9 bytes, not 17.4, for each of 10⁷ descriptors of three tags). But an
/// update copies more, and *Find All Subsets* in batches was some 10 % slower.
pub(super) const ROWS_MAX: usize = 24;
/// Positions of a head.
const HEAD_POSITIONS: u8 = 32;
/// A nibble that says that the gap goes on.
pub(super) const GAP_GOES_ON: u8 = 15;
/// Nibbles of the longest tail: a 1-bit at each position.
pub(super) const TAIL_NIBBLES_MAX: usize = (END_POSITION - HEAD_POSITIONS) as usize;
/// Words of the largest leaf.
pub(super) const LEAF_WORDS_MAX: usize =
    1 + ROWS_MAX / 2 + (ROWS_MAX * (1 + 4 + TAIL_NIBBLES_MAX / 2)).div_ceil(WORD_BYTES);

/// A permuted descriptor and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) value: u32,
}

impl Row {
    /// The position with which it goes on at a node, from the node's first position on.
    pub(super) fn next(&self, from: u8) -> u8 {
        self.key.next(from).min(END_POSITION)
    }
}

/// The nibbles of the tail of a key.
pub(super) fn tail(key: &Key, first: u8) -> ArrayVec<u8, TAIL_NIBBLES_MAX> {
    let mut nibbles = ArrayVec::new();
    let mut expected = first.saturating_add(HEAD_POSITIONS).min(END_POSITION);
    key.for_each_from_the_left(expected, |position| {
        let mut gap = position - expected;
        while gap >= GAP_GOES_ON {
            nibbles.push(GAP_GOES_ON);
            gap -= GAP_GOES_ON;
        }
        nibbles.push(gap);
        expected = position + 1;
    });
    nibbles
}

/// A leaf that a reader or the writer can reach.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'a> {
    words: &'a [AtomicU64],
    header: Header,
}

/// Bytes of a leaf by part.
pub(super) struct LeafBytes {
    pub(super) heads: usize,
    pub(super) lengths: usize,
    pub(super) tails: usize,
    pub(super) values: usize,
    /// The header, and what fills the last words.
    pub(super) rest: usize,
}

impl<'a> Leaf<'a> {
    /// The leaf that begins these words.
    #[inline(always)]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        let header = Header(words[0].load(Ordering::Relaxed));
        Leaf { words: &words[..header.words()], header }
    }

    /// The first position of its heads.
    pub(super) fn first(self) -> u8 {
        self.header.first()
    }

    pub(super) fn head(self, row: usize) -> u32 {
        (self.word(1 + row / 2) >> (32 * (row % 2))) as u32
    }

    /// The nibbles of all tails.
    pub(super) fn nibbles(self) -> impl Iterator<Item = u8> {
        let from = self.tail_from(0);
        (from..from + self.header.nibbles()).map(move |index| self.nibble(index))
    }

    #[inline(always)]
    fn nibble(self, index: usize) -> u8 {
        (self.word(index / 16) >> (4 * (index % 16))) as u8 & 15
    }

    pub(super) fn count(self) -> usize {
        self.header.count()
    }

    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// The word with the first length.
    #[inline(always)]
    fn bytes_from(self) -> usize {
        1 + self.count().div_ceil(2)
    }

    /// The rows whose head is a subset of the query's, as a bitmap.
    #[inline(always)]
    pub(super) fn candidates(self, query: &Query) -> u64 {
        let missing = u64::from(!query.window(self.header.first()));
        let missing = missing | missing << 32;
        let count = self.count();
        let mut passing = 0;
        for (pair, word) in self.words[1..1 + count.div_ceil(2)].iter().enumerate() {
            let outside = word.load(Ordering::Relaxed) & missing;
            let bits = u64::from(outside as u32 == 0) | u64::from(outside >> 32 == 0) << 1;
            passing |= bits << (2 * pair);
        }
        // An odd leaf has one head too many.
        passing & !(u64::MAX << count)
    }

    /// Nibbles of the tails of the first rows.
    #[inline(always)]
    fn nibbles_before(self, row: usize) -> usize {
        let mut sum = 0;
        for word in 0..row.div_ceil(WORD_BYTES) {
            let lengths = self.word(self.bytes_from() + word);
            let kept = (row - word * WORD_BYTES).min(WORD_BYTES);
            let lengths = lengths & u64::MAX >> (64 - 8 * kept);
            // Bytes to sums of two, then all of these into the highest 16 bits: at most 8 * 160.
            let pairs = (lengths & 0x00ff_00ff_00ff_00ff) + (lengths >> 8 & 0x00ff_00ff_00ff_00ff);
            sum += (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize;
        }
        sum
    }

    #[inline(always)]
    pub(super) fn length(self, row: usize) -> usize {
        (self.word(self.bytes_from() + row / WORD_BYTES) >> (8 * (row % WORD_BYTES))) as usize & 0xff
    }

    /// Where the tail of a row begins that has so many nibbles before it.
    #[inline(always)]
    fn tail_from(self, nibbles_before: usize) -> usize {
        2 * (self.bytes_from() * WORD_BYTES + self.count()) + nibbles_before
    }

    /// Calls `visit` with the positions of a tail, lowest first, while it returns true. True if it never returned
    /// false.
    #[inline(always)]
    fn all_of_tail(self, tail: Range<usize>, mut visit: impl FnMut(u8) -> bool) -> bool {
        let mut position = usize::from(self.header.first()) + usize::from(HEAD_POSITIONS);
        for index in tail {
            let nibble = self.nibble(index);
            position += usize::from(nibble);
            if nibble != GAP_GOES_ON {
                if !visit(position as u8) {
                    return false;
                }
                position += 1;
            }
        }
        true
    }

    /// Whether the tail of a row is a subset of the query.
    #[inline(always)]
    pub(super) fn tail_matches(self, row: usize, query: &Query) -> bool {
        let from = self.tail_from(self.nibbles_before(row));
        self.all_of_tail(from..from + self.length(row), |position| query.has(position))
    }

    /// The value of a row.
    #[inline(always)]
    pub(super) fn value(self, row: usize) -> u32 {
        let bytes = self.header.value_bytes();
        if bytes == 0 {
            return 0;
        }
        let before = self.count() + self.header.nibbles().div_ceil(2) + row * bytes;
        let from = self.bytes_from() * WORD_BYTES + before;
        let (word, shift) = (from / WORD_BYTES, from % WORD_BYTES * 8);
        let mut value = self.word(word) >> shift;
        if shift + 8 * bytes > 64 {
            value |= self.word(word + 1) << (64 - shift);
        }
        value as u32 & u32::MAX >> (32 - 8 * bytes)
    }

    fn key(self, row: usize, tail: Range<usize>, path: Key) -> Key {
        let first = self.header.first();
        let mut key = path;
        let mut rest = self.head(row);
        while rest != 0 {
            let place = rest.leading_zeros();
            key = key.with(first + place as u8);
            rest &= !(1 << (31 - place));
        }
        self.all_of_tail(tail, |position| {
            key = key.with(position);
            true
        });
        key
    }

    /// A row of a leaf with this path.
    pub(super) fn row(self, row: usize, path: Key) -> Row {
        let from = self.tail_from(self.nibbles_before(row));
        Row { key: self.key(row, from..from + self.length(row), path), value: self.value(row) }
    }

    /// All rows.
    pub(super) fn rows(self, path: Key) -> impl Iterator<Item = Row> {
        let mut from = self.tail_from(0);
        (0..self.count()).map(move |row| {
            let tail = from..from + self.length(row);
            from = tail.end;
            Row { key: self.key(row, tail, path), value: self.value(row) }
        })
    }

    pub(super) fn bytes(self) -> LeafBytes {
        let count = self.count();
        let tails = self.header.nibbles().div_ceil(2);
        let values = count * self.header.value_bytes();
        let all = self.header.words() * WORD_BYTES;
        LeafBytes { heads: count * 4, lengths: count, tails, values, rest: all - count * 5 - tails - values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst_trie::parts::Parts;
    use crate::permutation::Permutation;
    use namewire_packet::descriptor::Descriptor;
    use proptest::prelude::*;

    fn descriptor() -> impl Strategy<Value = Descriptor> {
        let some = proptest::collection::vec(0..192_u8, 0..30).prop_map(Descriptor::from_iter);
        let complement = some.clone().prop_map(|some| Descriptor(some.0.map(|word| !word)));
        prop_oneof![4 => some, 1 => complement, 1 => any::<[u64; 3]>().prop_map(Descriptor)]
    }

    proptest! {
        #[test]
        fn a_leaf_gives_back_its_rows_and_finds_subsets(
            entries in proptest::collection::vec((descriptor(), 0..32_u32), 1..=ROWS_MAX),
            values: u32, first in 0..=192_u8, query in descriptor(), more in descriptor(),
        ) {
            let order = Permutation::identity();
            // Rows that share a path: what is below the first position is that of the first row.
            let path = order.key(&entries[0].0).before(first);
            let row = |(descriptor, bits): &(Descriptor, u32)| {
                let key = order.key(descriptor).positions(first).fold(path, Key::with);
                Row { key, value: values.checked_shr(*bits).unwrap_or(0) }
            };
            let rows: Vec<Row> = entries.iter().map(row).collect();
            let encoded = Parts::of_rows(&rows, first).encode();
            let words: Vec<AtomicU64> = encoded.iter().map(|word| AtomicU64::new(*word)).collect();
            let leaf = Leaf::new(&words);
            prop_assert_eq!(leaf.rows(path).collect::<Vec<Row>>(), rows.clone());
            let bytes = leaf.bytes();
            prop_assert_eq!(bytes.heads + bytes.lengths + bytes.tails + bytes.values + bytes.rest, encoded.len() * 8);
            for query in [query, query.union(more), entries[0].0.union(more)] {
                // The path is the walk's affair.
                let query = order.descriptor(path).union(query);
                let permuted = Query::new(&order.key(&query));
                let candidates = leaf.candidates(&permuted);
                for (index, row) in rows.iter().enumerate() {
                    let is_found = candidates >> index & 1 == 1 && leaf.tail_matches(index, &permuted);
                    prop_assert_eq!(is_found, order.descriptor(row.key).is_subset_of(&query));
                }
                prop_assert!(candidates >> rows.len() == 0);
            }
        }
    }
}
