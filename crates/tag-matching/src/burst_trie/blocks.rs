//! Blocks: memory for nodes and leaves that any number of readers share with one writer.
//!
//! ```text
//!   words    0                                fresh               limit
//!            │ block │ free 7 │ block │ … │ never used         │
//! ```
//!
//! The number of a block is the number of its first word. The writer fills a block before a slot leads to it. It
//! releases a block when no slot leads to it and no reader is left that may have followed one
//! ([`namewire_tables::quiescence`]). So the words that a reader uses do not change, with one exception: the slots of a
//! node. A store to a slot has release ordering and a load has acquire ordering, which makes the words of the new child
//! visible. All words are atomics: a mistake in this protocol could give readers wrong words, but never undefined
//! behaviour. The loom models of quiescence (`crates/tables/loom/tests/quiescence.rs`) have such a slot, and reused
//! blocks.
//!
//! [`Space`] keeps track of free words. It has a list of free blocks for each size. `allocate` takes a block of the
//! wanted size; else words that were never used; else a part of a larger block. Only if these fail, it joins
//! neighbouring free blocks and tries again.
//!
//! Cost: an allocation touches one list. Joining sorts all free blocks; it happens only after a sixteenth of all words
//! was freed since the last time. Bytes: 4 for each free block.

use super::slot::BLOCKS;
use namewire_tables::pages::{PageArray, PageSize};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
pub(super) const WORD_BYTES: usize = size_of::<AtomicU64>();

/// The words of all blocks.
#[derive(Debug)]
pub(super) struct Words(PageArray<AtomicU64>);

impl Words {
    pub(super) fn new(words: usize, pages: PageSize) -> io::Result<Self> {
        PageArray::zeroed_for_growth(words.min(BLOCKS as usize), pages).map(Words)
    }

    /// The words from the first of a block to the last of all blocks.
    #[inline(always)]
    pub(super) fn block(&self, block: u32) -> &[AtomicU64] {
        &self.0[block as usize..]
    }

    /// The slots of a node.
    #[inline(always)]
    pub(super) fn slots(&self, node: u32) -> &[AtomicU64] {
        let words = self.block(node);
        &words[1..][..self.header(node).count()]
    }

    /// Fills a block that no reader can reach.
    pub(super) fn fill(&self, block: u32, contents: &[u64]) {
        let stores = self.block(block).iter().zip(contents);
        stores.for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    /// The header of a block.
    #[inline(always)]
    pub(super) fn header(&self, block: u32) -> Header {
        Header(self.block(block)[0].load(Ordering::Relaxed))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The most memory that is held if only the first `words` were touched.
    pub(super) fn touched_bytes(&self, words: usize) -> usize {
        self.0.touched_bytes(words)
    }
}

/// The first word of a block.
///
/// ```text
///   bits     0 .. 15   16 .. 31   32 .. 39        40 .. 47         48 .. 63
///            count     words      bytes a value   first position   nibbles of all tails   (the last three: a leaf)
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Header(pub(super) u64);

impl Header {
    pub(super) fn of_node(slots: usize) -> Self {
        Header(slots as u64 | (1 + slots as u64) << 16)
    }

    pub(super) fn of_leaf(count: usize, words: usize, value_bytes: usize, first: u8, nibbles: usize) -> Self {
        debug_assert!(count < 1 << 16 && words < 1 << 16 && value_bytes <= 4 && nibbles < 1 << 16);
        let shape = count as u64 | (words as u64) << 16;
        Header(shape | (value_bytes as u64) << 32 | u64::from(first) << 40 | (nibbles as u64) << 48)
    }

    /// Slots of a node, descriptors of a leaf.
    pub(super) fn count(self) -> usize {
        self.0 as usize & 0xffff
    }

    /// Words of the block.
    pub(super) fn words(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }

    pub(super) fn value_bytes(self) -> usize {
        (self.0 >> 32) as usize & 0xff
    }

    pub(super) fn first(self) -> u8 {
        (self.0 >> 40) as u8
    }

    pub(super) fn nibbles(self) -> usize {
        (self.0 >> 48) as usize
    }
}

/// Which words are free.
#[derive(Debug)]
pub(super) struct Space {
    /// Free blocks, by their words.
    free: Vec<Vec<u32>>,
    free_words: usize,
    fresh: usize,
    limit: usize,
    freed_since_join: usize,
}

impl Space {
    /// All words are free. No block is larger than `words_max`.
    pub(super) fn new(limit: usize, words_max: usize) -> Self {
        Space { free: vec![vec![]; words_max + 1], free_words: 0, fresh: 0, limit, freed_since_join: 0 }
    }

    /// Words before the first that was never used.
    pub(super) fn touched(&self) -> usize {
        self.fresh
    }

    /// Bytes of memory of the lists.
    pub(super) fn bytes(&self) -> usize {
        self.free.iter().map(|list| size_of_val(list) + list.capacity() * size_of::<u32>()).sum()
    }

    /// A block of exactly this many words. Nothing if there is no room, or if fewer words than the reserve would stay
    /// free.
    pub(super) fn allocate(&mut self, words: usize, reserve: usize) -> Option<u32> {
        if self.limit - self.fresh + self.free_words < words + reserve {
            return None;
        }
        if let Some(block) = self.cut(words) {
            return Some(block);
        }
        if self.freed_since_join <= self.limit / 16 {
            return None;
        }
        self.join();
        self.cut(words)
    }

    /// Takes a block back that [`Space::allocate`] gave, and that no reader can reach.
    pub(super) fn release(&mut self, block: u32, words: usize) {
        self.freed_since_join += words;
        self.push(block, words);
    }

    fn push(&mut self, block: u32, words: usize) {
        self.free[words].push(block);
        self.free_words += words;
    }

    fn cut(&mut self, words: usize) -> Option<u32> {
        let exact = self.free[words].pop();
        if exact.is_some() {
            self.free_words -= words;
            return exact;
        }
        if words <= self.limit - self.fresh {
            self.fresh += words;
            return Some((self.fresh - words) as u32);
        }
        let larger = (words + 1..self.free.len()).find(|larger| !self.free[*larger].is_empty())?;
        let block = self.free[larger].pop()?;
        self.free_words -= larger;
        self.push(block + words as u32, larger - words);
        Some(block)
    }

    /// Joins neighbouring free blocks, up to the largest size; the last ones join the words that were never used.
    fn join(&mut self) {
        self.freed_since_join = 0;
        self.free_words = 0;
        let lists = self.free.iter_mut().enumerate();
        let mut blocks: Vec<(u32, usize)> =
            lists.flat_map(|(words, list)| std::mem::take(list).into_iter().map(move |block| (block, words))).collect();
        blocks.sort_unstable();
        while let Some((_, words)) = blocks.pop_if(|(block, words)| *block as usize + *words == self.fresh) {
            self.fresh -= words;
        }
        let words_max = self.free.len() - 1;
        let mut blocks = blocks.into_iter().peekable();
        while let Some((mut block, mut words)) = blocks.next() {
            while let Some((_, more)) = blocks.next_if(|(next, _)| *next as usize == block as usize + words) {
                words += more;
                if words > words_max {
                    self.push(block, words_max);
                    (block, words) = (block + words_max as u32, words - words_max);
                }
            }
            self.push(block, words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_never_overlap_and_all_words_come_back() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut space, mut held) = (Space::new(5000, 60), Vec::<(u32, usize)>::new());
        let mut refusals = 0;
        for step in 0..20_000 {
            // Small blocks and large ones in turn, so that free blocks must be cut and joined.
            let words = if step / 2000 % 2 == 0 { random.usize(1..8) } else { random.usize(40..=60) };
            match space.allocate(words, 0) {
                Some(block) => {
                    let overlaps = |(other, size): &(u32, usize)| {
                        (block as usize) < *other as usize + size && (*other as usize) < block as usize + words
                    };
                    assert!(block as usize + words <= 5000 && !held.iter().any(overlaps));
                    held.push((block, words));
                }
                None => refusals += 1,
            }
            let used: usize = held.iter().map(|(_, words)| words).sum();
            assert_eq!(used + space.free_words, space.touched());
            while held.len() > 80 || held.len() > 10 && random.u8(..3) == 0 {
                let (block, words) = held.swap_remove(random.usize(..held.len()));
                space.release(block, words);
            }
        }
        held.drain(..).for_each(|(block, words)| space.release(block, words));
        space.join();
        assert_eq!((space.touched(), space.free_words), (0, 0));
        assert!(refusals < 2000, "{refusals}");
        assert_eq!(space.allocate(60, 0), Some(0));
    }

    #[test]
    fn a_full_space_refuses() {
        let mut space = Space::new(10, 8);
        assert_eq!([space.allocate(8, 0), space.allocate(3, 0), space.allocate(2, 0)], [Some(0), None, Some(8)]);
        space.release(0, 8);
        assert_eq!([space.allocate(3, 6), space.allocate(3, 5)], [None, Some(0)], "6 words would not stay free");
        assert_eq!([space.allocate(5, 0), space.allocate(1, 0)], [Some(3), None]);
    }
}
