//! Word heap: where do the nodes of a trie live, and what becomes of removed ones?
//!
//! Source: ours; the tries of the papers call `malloc`. Here one array holds all blocks. So a pointer is a 32-bit
//! number of words and takes 4 bytes, as it would in a 32-bit process, and what a trie takes is known exactly.
//!
//! ```text
//! words:  | 0 | block … | free: next of its class, … | block … |  never used  |
//!                                                              ^ end
//! free:   newest free block of each size class, 0 = none
//! ```
//!
//! A block has no header: its user knows its size. Up to 64 words, every size is a separate class. Above that, every
//! doubling has 8 classes, and a block is rounded up to its class. A freed block serves the next block of its class;
//! free blocks are not joined. So nodes whose sizes stay the same reuse their room. The room lost is at most what each
//! class once needed.
//!
//! Cost: to allocate or free takes 1 line. Bytes: beyond the blocks, at most an eighth of those above 256 bytes is
//! lost. Limit: 2^32 words, 16 GiB. Writers: the owner.

use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::{LINE_BYTES, prefetch};
use std::io;

/// The address that no block has.
pub(super) const NONE: u32 = 0;

/// Sizes up to this many words have a class each.
const EXACT_WORDS: usize = 64;
const CLASSES_PER_DOUBLING: usize = 8;
const CLASSES: usize = EXACT_WORDS + CLASSES_PER_DOUBLING * (32 - EXACT_WORDS.ilog2() as usize);
/// Room that a heap begins with, and the least that it grows by.
const FIRST_WORDS: usize = 1 << 12;
const LINE_WORDS: u32 = (LINE_BYTES / 4) as u32;

pub(super) struct WordHeap {
    words: PageArray<u32>,
    /// Blocks, in use or free, are below this.
    end: usize,
    free: [u32; CLASSES],
}

impl WordHeap {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let words = PageArray::zeroed_preferably(FIRST_WORDS, pages)?;
        Ok(Self { words, end: 1, free: [NONE; CLASSES] })
    }

    /// Sees to it that blocks of `words` words in sum, `blocks` of them, can be had without fail.
    pub(super) fn reserve(&mut self, words: usize, blocks: usize) -> io::Result<()> {
        let needed = self.end + words + words / CLASSES_PER_DOUBLING + blocks;
        if needed <= self.words.len() {
            return Ok(());
        }
        if needed > u32::MAX as usize {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // Nothing is copied, so there is no need to double; a sixteenth keeps the calls few.
        let roomy = (self.words.len() + self.words.len() / 16 + FIRST_WORDS).min(u32::MAX as usize);
        self.words.grow(needed.max(roomy))
    }

    /// A block of this many words, of whatever content.
    ///
    /// # Panics
    /// If there is no room: [`WordHeap::reserve`] comes first.
    pub(super) fn allocate(&mut self, words: usize) -> u32 {
        let (class, rounded) = class_of(words);
        let newest = self.free[class];
        if newest != NONE {
            self.free[class] = self.words[newest as usize];
            return newest;
        }
        let at = self.end;
        assert!(at + rounded <= self.words.len(), "no room was reserved for {words} words");
        self.end += rounded;
        at as u32
    }

    /// Gives a block back, of as many words as it was asked for with.
    pub(super) fn free(&mut self, at: u32, words: usize) {
        let (class, _) = class_of(words);
        self.words[at as usize] = self.free[class];
        self.free[class] = at;
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.mapped_bytes() + size_of::<Self>()
    }

    #[inline(always)]
    pub(super) fn word(&self, at: u32) -> u32 {
        self.words[at as usize]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, at: u32, word: u32) {
        self.words[at as usize] = word;
    }

    #[inline(always)]
    pub(super) fn words_mut(&mut self, at: u32, words: usize) -> &mut [u32] {
        &mut self.words[at as usize..][..words]
    }

    /// Copies words to another block; they may overlap.
    pub(super) fn copy(&mut self, from: u32, to: u32, words: usize) {
        self.words.copy_within(from as usize..from as usize + words, to as usize);
    }

    /// Bytes that begin at the word `at`.
    #[inline(always)]
    pub(super) fn bytes_at(&self, at: u32, bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.words[at as usize..][..bytes.div_ceil(4)])[..bytes]
    }

    /// Writes bytes from the word `at` on.
    pub(super) fn set_bytes(&mut self, at: u32, bytes: &[u8]) {
        let words = self.words_mut(at, bytes.len().div_ceil(4));
        bytemuck::cast_slice_mut(words)[..bytes.len()].copy_from_slice(bytes);
    }

    /// Begins to fetch the line that a word lies in.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: u32) {
        if let Some(word) = self.words.get(at as usize) {
            prefetch(word);
        }
    }

    /// Whether two words lie in one cache line.
    #[inline(always)]
    pub(super) fn in_one_line(one: u32, other: u32) -> bool {
        one / LINE_WORDS == other / LINE_WORDS
    }
}

/// The class of a block and how many words its blocks have.
fn class_of(words: usize) -> (usize, usize) {
    if words <= EXACT_WORDS {
        let words = words.max(1);
        return (words - 1, words);
    }
    let exponent = (words - 1).ilog2();
    let step = 1 << (exponent - CLASSES_PER_DOUBLING.ilog2());
    let rounded = words.next_multiple_of(step);
    let doubling = (exponent - EXACT_WORDS.ilog2()) as usize;
    (EXACT_WORDS + doubling * CLASSES_PER_DOUBLING + rounded / step - CLASSES_PER_DOUBLING - 1, rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_rounds_up_by_an_eighth_at_most_and_classes_are_in_order() {
        let mut before = (0, 1);
        for words in 2..100_000 {
            let (class, rounded) = class_of(words);
            assert!(words <= rounded && rounded - words <= words / 8, "{words} words rounded to {rounded}");
            assert!(before == (class, rounded) || (before.0 + 1 == class && before.1 < rounded), "{words} words");
            assert_eq!(class_of(rounded), (class, rounded));
            before = (class, rounded);
        }
        assert_eq!(class_of(u32::MAX as usize).0, CLASSES - 1);
    }

    #[test]
    fn what_is_freed_is_used_again() {
        let mut heap = WordHeap::new(PageSize::Base).unwrap();
        heap.reserve(1000, 3).unwrap();
        let (one, two) = (heap.allocate(70), heap.allocate(3));
        heap.words_mut(two, 3).copy_from_slice(&[1, 2, 3]);
        heap.free(one, 70);
        assert_eq!(heap.allocate(72), one, "the same class");
        assert_ne!(heap.allocate(70), one);
        assert_eq!(heap.words_mut(two, 3), [1, 2, 3]);
        let end = heap.end;
        for _ in 0..1000 {
            let at = heap.allocate(300);
            heap.free(at, 300);
        }
        assert!(heap.end - end <= 320);
    }

    #[test]
    fn sizes_beyond_the_address_range_are_refused() {
        let mut heap = WordHeap::new(PageSize::Base).unwrap();
        assert!(heap.reserve(u32::MAX as usize, 1).is_err());
        assert!(heap.reserve(10 << 20, 1).is_ok());
        assert_eq!(heap.allocate(1), 1);
    }
}
