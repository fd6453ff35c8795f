//! Children: which child of a node begins with this unit?
//!
//! ```text
//! | count | capacity | first bytes, padded (characters only) … | pointer … |
//! 0       4          8
//! ```
//!
//! Children are sorted by their first units. Characters are found in the array of bytes before the pointers. A
//! component has no fixed length, so a binary search over components follows the pointer of every child that it
//! compares with.

use super::{CHILDREN, Granularity, RadixTrie, compare};
use crate::fib::word_heap::NONE;
use std::cmp::Ordering;

/// Words of the children before their bytes and pointers.
pub(super) const CHILDREN_WORDS: usize = 2;
pub(super) const COUNT: u32 = 0;
pub(super) const CAPACITY: u32 = 1;

impl<G: Granularity> RadixTrie<G> {
    pub(super) fn child_count(&self, node: u32) -> usize {
        match self.heap.word(node + CHILDREN) {
            NONE => 0,
            children => self.heap.word(children + COUNT) as usize,
        }
    }

    /// The word with the pointer to a child, of children that have room for `capacity`.
    pub(super) fn pointer(children: u32, capacity: usize, position: usize) -> u32 {
        children + (children_words::<G>(capacity) - capacity + position) as u32
    }

    pub(super) fn pointer_to_child(&self, node: u32, position: usize) -> u32 {
        let children = self.heap.word(node + CHILDREN);
        Self::pointer(children, self.heap.word(children + CAPACITY) as usize, position)
    }

    /// Where the child that begins with the first unit of `rest` is, or would be put.
    pub(super) fn find_child(&self, node: u32, rest: &[u8]) -> Result<usize, usize> {
        let unit = G::first_unit(rest);
        let children = self.heap.word(node + CHILDREN);
        if G::IS_BYTE && children != NONE {
            let bytes = self.heap.bytes_at(children + CHILDREN_WORDS as u32, self.child_count(node));
            return bytes.binary_search(&unit[0]);
        }
        let (mut low, mut high) = (0, self.child_count(node));
        while low < high {
            let middle = low.midpoint(high);
            let child = self.heap.word(self.pointer_to_child(node, middle));
            match compare(unit, self.label(child)) {
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Puts a child at its place among the others, which may move to a block with more room.
    pub(super) fn insert_child(&mut self, node: u32, position: usize, child: u32) {
        let (children, count) = (self.heap.word(node + CHILDREN), self.child_count(node));
        let capacity = if children == NONE { 0 } else { self.heap.word(children + CAPACITY) as usize };
        if count == capacity {
            self.move_children(node, capacity_for(count + 1));
        }
        let children = self.heap.word(node + CHILDREN);
        let capacity = self.heap.word(children + CAPACITY) as usize;
        if G::IS_BYTE {
            let byte = self.label(child)[0];
            let bytes = self.child_bytes_mut(children, capacity);
            bytes.copy_within(position..count, position + 1);
            bytes[position] = byte;
        }
        let pointer = Self::pointer(children, capacity, position);
        self.heap.copy(pointer, pointer + 1, count - position);
        self.heap.set(pointer, child);
        self.heap.set(children + COUNT, count as u32 + 1);
    }

    pub(super) fn remove_child(&mut self, node: u32, position: usize) {
        let (children, count) = (self.heap.word(node + CHILDREN), self.child_count(node));
        let capacity = self.heap.word(children + CAPACITY) as usize;
        if count == 1 {
            self.heap.free(children, children_words::<G>(capacity));
            self.heap.set(node + CHILDREN, NONE);
            return;
        }
        if G::IS_BYTE {
            self.child_bytes_mut(children, capacity).copy_within(position + 1..count, position);
        }
        let pointer = Self::pointer(children, capacity, position);
        self.heap.copy(pointer + 1, pointer, count - position - 1);
        self.heap.set(children + COUNT, count as u32 - 1);
        // Not before half is free, so that one child that comes and goes does not move them all.
        let smaller = capacity_for(count - 1);
        if smaller <= capacity / 2 && self.heap.reserve(children_words::<G>(smaller), 1).is_ok() {
            self.move_children(node, smaller);
        }
    }

    /// Gives the children of a node a block with room for `capacity`.
    pub(super) fn move_children(&mut self, node: u32, capacity: usize) {
        let (old, count) = (self.heap.word(node + CHILDREN), self.child_count(node));
        let new = self.heap.allocate(children_words::<G>(capacity));
        self.heap.set(new + COUNT, count as u32);
        self.heap.set(new + CAPACITY, capacity as u32);
        if old != NONE {
            let old_capacity = self.heap.word(old + CAPACITY) as usize;
            if G::IS_BYTE {
                self.heap.copy(old + CHILDREN_WORDS as u32, new + CHILDREN_WORDS as u32, count.div_ceil(4));
            }
            self.heap.copy(Self::pointer(old, old_capacity, 0), Self::pointer(new, capacity, 0), count);
            self.heap.free(old, children_words::<G>(old_capacity));
        }
        self.heap.set(node + CHILDREN, new);
    }

    pub(super) fn child_bytes_mut(&mut self, children: u32, capacity: usize) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.heap.words_mut(children + CHILDREN_WORDS as u32, capacity.div_ceil(4)))
    }
}

pub(super) fn children_words<G: Granularity>(capacity: usize) -> usize {
    CHILDREN_WORDS + if G::IS_BYTE { capacity.div_ceil(4) } else { 0 } + capacity
}

/// Room for this many children: exact up to 4, then with at most a quarter free.
pub(super) fn capacity_for(children: usize) -> usize {
    if children <= 4 { children } else { children.next_multiple_of(1 << ((children - 1).ilog2() - 2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_have_at_most_a_quarter_more_room_than_they_need() {
        for children in 1..100_000 {
            let capacity = capacity_for(children);
            assert!(children <= capacity && capacity - children <= children / 4, "{capacity} for {children}");
            assert!(capacity <= capacity_for(children + 1));
        }
    }
}
