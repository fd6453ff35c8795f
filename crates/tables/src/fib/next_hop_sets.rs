//! Next-hop sets: FIB entries lead to them, and each set is stored once.
//!
//! Entries with the same next hops, strategy and visibility share one immutable set and refer to it by
//! number. A table of millions of prefixes has some thousand different sets, one for each combination of
//! faces and costs in use. So the sets stay in the caches. To change an entry, the writer stores another
//! number in it.
//!
//! ```text
//! number n: segment ⌊log2(n + 64)⌋ − 6 of 64, 128, 256, … cells, never moved; the first lies here; a cell
//! points to a set: | next hops, up to 4 inline | strategy | hidden |
//! ```
//!
//! Cost: a read takes the cell (8 bytes) and the set (1-2 lines), which are hot when shared. Bytes: a set
//! takes 8 to 16 of cells, 80 for itself, 16 for each next hop if there are more than four, and about 14
//! for the writer. If every entry had a different set, an entry would cost some 110 bytes more than the
//! FIB's header states. Limit: 2³² sets; the FIB has no more than it has entries and waiting removals.
//! Writers: the FIB's writer; a set is freed after quiescence.
#![allow(unsafe_code, reason = "leaf: frees what readers could reach")]

use super::entry::NextHop;
use super::published::Published;
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// Next hops stored in the set itself.
const INLINE_NEXT_HOPS: usize = 4;
/// Cells of the first segment; each later one has twice as many.
const FIRST_SEGMENT: usize = 64;
const SEGMENTS: usize = 27;

/// What an entry leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NextHopSet {
    /// Cheapest first.
    pub(super) nexthops: SmallVec<[NextHop; INLINE_NEXT_HOPS]>,
    pub(super) strategy: u32,
    pub(super) hidden: bool,
}

const _: () = assert!(size_of::<NextHopSet>() == 80);

/// Sets by number, as readers see them.
pub(super) struct NextHopSets {
    first: [Published<NextHopSet>; FIRST_SEGMENT],
    /// The segments after the first.
    segments: [OnceLock<Box<[Published<NextHopSet>]>>; SEGMENTS - 1],
}

impl NextHopSets {
    pub(super) fn new() -> Self {
        let first = [const { Published::empty() }; FIRST_SEGMENT];
        Self { first, segments: [const { OnceLock::new() }; SEGMENTS - 1] }
    }

    /// The set with this number, taken from an entry that the caller may read.
    ///
    /// N.B. Few routers have more sets than the first segment. To find it like the others took 15 instructions more.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&NextHopSet> {
        match self.first.get(number as usize) {
            Some(cell) => cell.get(),
            None => self.get_later(number),
        }
    }

    #[inline(never)]
    fn get_later(&self, number: u32) -> Option<&NextHopSet> {
        let (segment, offset) = place(number);
        self.segments.get(segment.checked_sub(1)?)?.get()?[offset].get()
    }

    fn cell(&self, number: u32) -> &Published<NextHopSet> {
        let (segment, offset) = place(number);
        let cells = || (0..FIRST_SEGMENT << segment).map(|_| Published::empty()).collect();
        match segment {
            0 => &self.first[offset],
            _ => &self.segments[segment - 1].get_or_init(cells)[offset],
        }
    }

    fn bytes(&self) -> usize {
        let cells: usize = self.segments.iter().filter_map(OnceLock::get).map(|segment| segment.len()).sum();
        cells * size_of::<Published<NextHopSet>>()
    }
}

#[inline(always)]
fn place(number: u32) -> (usize, usize) {
    let shifted = number as usize + FIRST_SEGMENT;
    let segment = (shifted / FIRST_SEGMENT).ilog2() as usize;
    (segment, shifted - (FIRST_SEGMENT << segment))
}

/// The writer's side: the number of each set, and how many entries name it.
pub(super) struct Interner {
    by_content: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// By number; 0 once unlinked.
    references: Vec<u32>,
    free: Vec<u32>,
    set_bytes: usize,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self {
            by_content: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            references: Vec::new(),
            free: Vec::new(),
            set_bytes: 0,
        }
    }

    /// The number of a set with this content, for one more entry.
    pub(super) fn acquire(&mut self, sets: &NextHopSets, content: NextHopSet) -> u32 {
        let hash = self.hasher.hash_one(Some(&content));
        if let Some(&number) = self.by_content.find(hash, |&number| sets.get(number) == Some(&content)) {
            self.references[number as usize] += 1;
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.references.push(0);
            (self.references.len() - 1) as u32
        });
        self.references[number as usize] = 1;
        self.set_bytes += bytes_of(&content);
        sets.cell(number).set(Box::new(content));
        let hasher = &self.hasher;
        self.by_content.insert_unique(hash, number, |&other| hasher.hash_one(sets.get(other)));
        number
    }

    /// An entry no longer names the set. True if it was the last; the set must then be retired.
    pub(super) fn release(&mut self, sets: &NextHopSets, number: u32) -> bool {
        let references = &mut self.references[number as usize];
        *references -= 1;
        if *references > 0 {
            return false;
        }
        let hash = self.hasher.hash_one(sets.get(number));
        if let Ok(found) = self.by_content.find_entry(hash, |&other| other == number) {
            found.remove();
        }
        true
    }

    /// Frees a retired set.
    ///
    /// # Safety
    /// [`Interner::release`] said that no entry names the set any more, and no reader is left that found it
    /// through one.
    pub(super) unsafe fn free(&mut self, sets: &NextHopSets, number: u32) {
        self.set_bytes -= sets.get(number).map_or(0, bytes_of);
        // SAFETY: the caller's promise; the reference above is gone.
        unsafe { sets.cell(number).clear() };
        self.free.push(number);
    }

    /// Bytes of memory: the sets, their cells and this.
    pub(super) fn bytes(&self, sets: &NextHopSets) -> usize {
        let numbers = (self.references.capacity() + self.free.capacity()) * size_of::<u32>();
        sets.bytes() + self.set_bytes + numbers + self.by_content.allocation_size()
    }
}

/// Sets that are reached only by borrowing their owner. A set is freed with the last entry that names it,
/// without waiting for readers.
pub(super) struct OwnedSets {
    sets: NextHopSets,
    interner: Interner,
}

impl OwnedSets {
    pub(super) fn new() -> Self {
        Self { sets: NextHopSets::new(), interner: Interner::new() }
    }

    /// The set with this number, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&NextHopSet> {
        self.sets.get(number)
    }

    /// The number of a set with this content, for one more entry.
    pub(super) fn acquire(&mut self, content: NextHopSet) -> u32 {
        self.interner.acquire(&self.sets, content)
    }

    /// An entry no longer names the set.
    pub(super) fn release(&mut self, number: u32) {
        if self.interner.release(&self.sets, number) {
            // SAFETY: `release` said so; every caller of `get` borrowed `self`, which is `&mut` here.
            unsafe { self.interner.free(&self.sets, number) };
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.interner.bytes(&self.sets)
    }
}

fn bytes_of(set: &NextHopSet) -> usize {
    let spilled = if set.nexthops.spilled() { set.nexthops.capacity() * size_of::<NextHop>() } else { 0 };
    size_of::<NextHopSet>() + spilled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_separate_place() {
        let mut expected = (0..SEGMENTS).flat_map(|segment| (0..FIRST_SEGMENT << segment).map(move |at| (segment, at)));
        assert!((0..100_000).all(|number| expected.next() == Some(place(number))));
        assert_eq!(place(u32::MAX), (SEGMENTS - 1, FIRST_SEGMENT - 1), "every number has a place");
    }

    #[test]
    fn equal_sets_share_a_number_until_the_last_is_released() {
        let (sets, mut interner) = (NextHopSets::new(), Interner::new());
        let set = |face: u64, count| NextHopSet {
            nexthops: (0..=count).map(|cost| NextHop { face, cost }).collect(),
            strategy: 1,
            hidden: false,
        };
        let empty_bytes = interner.set_bytes;
        let numbers: Vec<u32> = (0..300).map(|face| interner.acquire(&sets, set(face, face % 9))).collect();
        assert_eq!(interner.acquire(&sets, set(7, 7)), numbers[7]);
        assert_ne!(numbers[7], numbers[8]);
        assert!(!interner.release(&sets, numbers[7]));
        assert!((0..300).zip(&numbers).all(|(face, &number)| sets.get(number) == Some(&set(face, face % 9))));
        for &number in &numbers {
            assert!(interner.release(&sets, number));
            assert!(sets.get(number).is_some(), "readers may still hold it");
            // SAFETY: released just now; no reference is left.
            unsafe { interner.free(&sets, number) };
            assert!(sets.get(number).is_none());
        }
        assert_eq!(interner.set_bytes, empty_bytes);
        assert!(numbers.contains(&interner.acquire(&sets, set(1, 1))), "numbers are used again");
    }
}
