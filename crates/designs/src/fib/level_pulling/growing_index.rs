//! Growing index: a [`TagIndex`] that is rebuilt at twice its size when it is full.
//!
//! Cost: an insertion costs as much as an insertion into the [`TagIndex`]. Once in a while, an insertion puts all
//! values into a new index. Bytes: a value takes 8 to 16. Writers: the owner.

use namewire_tables::pages::PageSize;
use namewire_tables::tag_index::TagIndex;
use std::io;

/// Values for which room is made at first: a page.
const FIRST_VALUES: usize = 512;

pub(super) struct GrowingIndex {
    index: TagIndex,
    len: usize,
    capacity: usize,
    pages: PageSize,
}

impl GrowingIndex {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let index = TagIndex::new(FIRST_VALUES, pages)?;
        Ok(Self { index, len: 0, capacity: FIRST_VALUES, pages })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.index.bytes()
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &TagIndex {
        &self.index
    }

    /// Makes room for `more` values; `hash_of` tells the hash of a stored value.
    ///
    /// # Errors
    /// If the kernel has no memory for the new index; nothing changed then.
    pub(super) fn reserve(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) -> io::Result<()> {
        if self.len + more <= self.capacity {
            return Ok(());
        }
        let capacity = (2 * self.capacity).max(self.len + more);
        // On transparent pages if too few explicit ones are reserved.
        let larger =
            TagIndex::new(capacity, self.pages).or_else(|_| TagIndex::new(capacity, self.pages.for_sparse()))?;
        self.index.values().for_each(|value| larger.insert(hash_of(value), value));
        (self.index, self.capacity) = (larger, capacity);
        Ok(())
    }

    /// Adds a value for which room was made.
    pub(super) fn insert(&mut self, hash: u64, value: u32) {
        self.index.insert(hash, value);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, value: u32) {
        if self.index.remove(hash, value) {
            self.len -= 1;
        }
    }
}
