//! Cell: one node of the trie in 8 bytes.
//!
//! ```text
//!   byte   0          1           2           3 ......................... 7
//!          position   min depth   max depth   bit 0: last child
//!                                             bit 1: terminator
//!                                             bits 2-39: offset
//! ```
//!
//! | cell | position | depths | offset |
//! | --- | --- | --- | --- |
//! | inner node | its 1-bit | weights of the lightest and heaviest descriptor below it | its first child's cell |
//! | terminator | [`END`] | the weight of its descriptor, twice | the value |
//! | terminator of a removed chain | the chain's first 1-bit, or [`END`] | the same | its bytes in the chains |
//!
//! A terminator stores no length for its chain: the weight less the 1-bits above it is the number of positions that
//! the chain has. A chain whose only position is in the cell has no bytes: its offset is the value too.

/// The paper's `$`: the position of a terminator. It is above every 1-bit's.
pub(super) const END: u8 = 255;
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
    /// A cell that nothing needs.
    pub(super) const UNUSED: Cell = Cell(0);

    /// A node; its depths are added when its subtree is known.
    pub(super) fn node(position: u8, offset: u64) -> Self {
        debug_assert!(offset < OFFSETS);
        Cell(u64::from(position) | offset << OFFSET_SHIFT)
    }

    /// Makes the cell a terminator for a descriptor of this weight.
    pub(super) fn end(&mut self, position: u8, weight: u8, offset: u64) {
        debug_assert!(offset < OFFSETS);
        let last = self.0 & LAST;
        self.0 = u64::from(position) | last | TERMINATOR | offset << OFFSET_SHIFT;
        self.set_depths(weight, weight);
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

    pub(super) fn max_depth(self) -> u8 {
        (self.0 >> MAX_DEPTH_SHIFT) as u8
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

    /// The cell with `depth` in place of its minimum: what a walk has to remember of a cell on its stack.
    pub(super) fn pending(self, depth: u8) -> Pending {
        Pending(Cell(self.0 & !(0xff << MIN_DEPTH_SHIFT) | u64::from(depth) << MIN_DEPTH_SHIFT))
    }
}

/// A cell on a walk's stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending(Cell);

impl Pending {
    /// Fills an unused part of a stack.
    pub(super) const UNUSED: Pending = Pending(Cell::UNUSED);

    /// The number of 1-bits above the cell.
    pub(super) fn depth(self) -> u8 {
        self.0.min_depth()
    }

    pub(super) fn cell(self) -> Cell {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_do_not_touch_each_other(
            position in 0..=END, min: u8, max: u8, first in 0..OFFSETS, then in 0..OFFSETS, depth: u8
        ) {
            let mut cell = Cell::node(position, first);
            prop_assert!(!cell.is_last() && !cell.is_terminator() && cell.offset() == first);
            cell.set_last();
            cell.set_depths(min, max);
            cell.link(then);
            prop_assert_eq!((cell.position(), cell.min_depth(), cell.max_depth()), (position, min, max));
            prop_assert!(cell.is_last() && !cell.is_terminator() && cell.offset() == then);
            let pending = cell.pending(depth);
            prop_assert_eq!((pending.depth(), pending.cell().max_depth()), (depth, max));
            prop_assert_eq!((pending.cell().position(), pending.cell().offset()), (position, then));
            cell.end(END, max, first);
            prop_assert_eq!((cell.position(), cell.min_depth(), cell.max_depth()), (END, max, max));
            prop_assert!(cell.is_last() && cell.is_terminator() && cell.offset() == first);
        }
    }
}
