//! Cell: one node of the trie in 8 bytes.
//!
//! ```text
//!   byte         0                1              2                 3 ......................... 7
//!   inner node   position         min depth      max depth         bit 0: last child
//!   terminator   first position   weight         second position   bit 1: terminator
//!                                                                  bits 2-39: offset
//! ```
//!
//! | cell | offset |
//! | --- | --- |
//! | inner node | its first child's cell |
//! | terminator whose whole chain is in the cell | the value |
//! | terminator | the rest of the chain, and its value behind it |
//!
//! The depths of an inner node are the weights of the lightest and the heaviest descriptor below it. Both depths of a
//! terminator are the weight of its descriptor, so the cell stores this weight once. A terminator has room for the
//! first two positions of a removed chain, its *heads*; a missing head is `END`. The cell does not store the length of
//! the chain: it is the weight less the number of 1-bits above.

/// Positions of a removed chain that its terminator can keep.
pub(super) const CHAIN_HEADS: u8 = 2;
/// Offsets are below this: 2 TiB of cells.
pub(super) const OFFSETS: u64 = 1 << 38;

const MIN_DEPTH_SHIFT: u32 = 8;
const MAX_DEPTH_SHIFT: u32 = 16;
const LAST: u64 = 1 << 24;
const TERMINATOR: u64 = 1 << 25;
const OFFSET_SHIFT: u32 = 26;

/// A node or a terminator; the module's header draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Cell(u64);

const _: () = assert!(size_of::<Cell>() == 8 && align_of::<Cell>() == 8);
const _: () = assert!(OFFSETS - 1 == u64::MAX >> OFFSET_SHIFT);

impl Cell {
    /// Fills memory that is not in use.
    pub(super) const UNUSED: Cell = Cell(0);

    /// A node; its depths are added when its subtree is known.
    pub(super) fn node(position: u8, offset: u64) -> Self {
        debug_assert!(offset < OFFSETS);
        Cell(u64::from(position) | offset << OFFSET_SHIFT)
    }

    /// Makes the cell a terminator for a descriptor of this weight.
    pub(super) fn end(&mut self, heads: [u8; CHAIN_HEADS as usize], weight: u8, offset: u64) {
        debug_assert!(offset < OFFSETS);
        let last = self.0 & LAST;
        self.0 = u64::from(heads[0]) | last | TERMINATOR | offset << OFFSET_SHIFT;
        self.set_depths(weight, heads[1]);
    }

    /// Links a node to its first child.
    pub(super) fn link(&mut self, first_child: u64) {
        debug_assert!(first_child < OFFSETS);
        self.0 = self.0 & ((1 << OFFSET_SHIFT) - 1) | first_child << OFFSET_SHIFT;
    }

    pub(super) fn set_depths(&mut self, min: u8, max: u8) {
        self.0 = self.0 & !(0xffff << MIN_DEPTH_SHIFT)
            | u64::from(min) << MIN_DEPTH_SHIFT
            | u64::from(max) << MAX_DEPTH_SHIFT;
    }

    pub(super) fn set_last(&mut self) {
        self.0 |= LAST;
    }

    pub(super) fn position(self) -> u8 {
        self.0 as u8
    }

    pub(super) fn min_depth(self) -> u8 {
        (self.0 >> MIN_DEPTH_SHIFT) as u8
    }

    /// The weight of the heaviest descriptor at or below the cell.
    pub(super) fn max_depth(self) -> u8 {
        if self.is_terminator() { self.min_depth() } else { (self.0 >> MAX_DEPTH_SHIFT) as u8 }
    }

    /// The positions that a terminator has, or `END`.
    pub(super) fn heads(self) -> [u8; CHAIN_HEADS as usize] {
        debug_assert!(self.is_terminator());
        [self.position(), (self.0 >> MAX_DEPTH_SHIFT) as u8]
    }

    pub(super) fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    pub(super) fn is_terminator(self) -> bool {
        self.0 & TERMINATOR != 0
    }

    pub(super) fn offset(self) -> u64 {
        self.0 >> OFFSET_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permutation::END;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_do_not_touch_each_other(
            position in 0..=END, min: u8, max: u8, first in 0..OFFSETS, then in 0..OFFSETS, second: u8
        ) {
            let mut cell = Cell::node(position, first);
            prop_assert!(!cell.is_last() && !cell.is_terminator() && cell.offset() == first);
            cell.set_last();
            cell.set_depths(min, max);
            cell.link(then);
            prop_assert_eq!((cell.position(), cell.min_depth(), cell.max_depth()), (position, min, max));
            prop_assert!(cell.is_last() && !cell.is_terminator() && cell.offset() == then);
            cell.end([position, second], max, first);
            prop_assert_eq!((cell.heads(), cell.min_depth(), cell.max_depth()), ([position, second], max, max));
            prop_assert!(cell.is_last() && cell.is_terminator() && cell.offset() == first);
        }
    }
}
