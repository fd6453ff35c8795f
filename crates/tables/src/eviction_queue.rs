//! Eviction queue: which stored entry is evicted next?
//!
//! An owner adds entries at the newest end, and removes any entry by its place. It can ask a queue only for
//! its oldest entry, or walk the queue from there.
//!
//! Source: the list of least recent use, unrolled (Shao et al. 1994, "Unrolling lists"): a node is one
//! cache line of values. The values that are evicted next lie side by side, so a batch can prefetch all its
//! victims without following one pointer per victim. Moving an entry to the newest end touches one line
//! instead of two neighbours.
//!
//! ```text
//! block, 64 bytes, one line:
//!  0                         52      56      60     62    63
//!  | values 0-12, 4 bytes    | newer | older | live | end | 0 |       of slots
//!  0                         48      52      56     58    59
//!  | values 0-5, 8 bytes     | newer | older | live | end | 0 |       of hashes
//! ```
//!
//! The owner stores an entry's *place*: block × 16 + index. `live` has a bit for each value still in the
//! queue. A block is freed when its last value is removed. Free blocks are used again in the order in which
//! they were freed. So a queue stays in the order of memory if entries are only added at the newest end and
//! removed at the oldest. Several queues share one pool of blocks ([`EvictionQueues`]).
//!
//! Cost: adding an entry or taking the oldest writes 1 line that is in cache. Removing an entry from the
//! middle writes 1 line, and in 1 of 13 cases the 2 neighbours of this line.
//! Bytes per entry: 5 for slots and 11 for hashes if no entry is removed from the middle; at worst 64,
//! because every block but the newest holds at least one value.
//! Full: the queue is made for a number of entries; the owner adds no more.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use crate::slab::NIL;
use bytemuck::Zeroable;
use std::io;

const PLACES_PER_BLOCK: u32 = 16;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Block<T, const VALUES: usize> {
    values: [T; VALUES],
    /// In a free block: the block that was freed after it.
    newer: u32,
    older: u32,
    /// A bit for each value still in the queue.
    live: u16,
    /// Values from this index on are not set yet.
    end: u8,
}

/// Slots in a line.
const SLOTS: usize = 13;
/// Hashes in a line.
pub const HASHES: usize = 6;

const _: () = assert!(size_of::<Block<u32, SLOTS>>() == 64);
const _: () = assert!(size_of::<Block<u64, HASHES>>() == 64);

/// One queue.
pub type EvictionQueue<T = u32, const VALUES: usize = SLOTS> = EvictionQueues<1, T, VALUES>;

/// Queues of slots, or of values of another type. `VALUES` of them, at most 16, fill a line.
pub struct EvictionQueues<const QUEUES: usize, T = u32, const VALUES: usize = SLOTS> {
    blocks: QueueBlocks<T, VALUES>,
    ends: [Ends; QUEUES],
    lens: [u32; QUEUES],
}

/// The blocks of queues, for an owner of many queues that keeps their [`Ends`] in an array of its own.
pub struct QueueBlocks<T = u32, const VALUES: usize = SLOTS> {
    blocks: PageArray<Block<T, VALUES>>,
    /// Every block ever used is below this.
    extent: u32,
    /// Free blocks, in the order they were freed; `NIL` = none.
    free_first: u32,
    free_last: u32,
}

/// A queue: the blocks at its ends; `NIL` = it has none.
#[derive(Clone, Copy, Zeroable)]
#[repr(C)]
pub struct Ends {
    oldest: u32,
    newest: u32,
}

impl Ends {
    /// A queue without blocks.
    pub const NONE: Self = Self { oldest: NIL, newest: NIL };
}

/// The calls of an owner with one queue.
impl<T: Copy + Zeroable, const VALUES: usize> EvictionQueue<T, VALUES> {
    /// [`EvictionQueues::push_newest_of`].
    #[inline]
    pub fn push_newest(&mut self, value: T) -> u32 {
        self.push_newest_of(0, value)
    }

    /// [`EvictionQueues::is_newest_of`].
    #[inline]
    pub fn is_newest(&self, place: u32) -> bool {
        self.is_newest_of(0, place)
    }

    /// [`EvictionQueues::remove_of`].
    #[inline]
    pub fn remove(&mut self, place: u32) {
        self.remove_of(0, place);
    }

    /// [`EvictionQueues::oldest_of`].
    #[inline]
    pub fn oldest(&self) -> Option<T> {
        self.oldest_of(0)
    }

    /// Removes the oldest entry and returns it.
    #[inline(always)]
    pub fn take_oldest(&mut self) -> Option<T> {
        let oldest = self.blocks.take_oldest(&mut self.ends[0])?;
        self.lens[0] -= 1;
        Some(oldest)
    }

    /// Entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.iter_of(0)
    }

    /// [`EvictionQueues::upcoming_of`].
    pub fn upcoming(&self, count: usize, values: &mut Vec<T>) {
        self.upcoming_of(0, count, values);
    }

    /// Begins to fetch the lines of the next `count` entries, as far as they lie behind each other in
    /// memory.
    pub fn prefetch(&self, count: usize) {
        self.blocks.prefetch(self.ends[0].oldest, count);
    }
}

impl<const QUEUES: usize, T: Copy + Zeroable, const VALUES: usize> EvictionQueues<QUEUES, T, VALUES> {
    /// Empty queues with room for `entries` entries in all.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        let blocks = QueueBlocks::new(entries, QUEUES as u32, pages)?;
        Ok(Self { blocks, ends: [Ends::NONE; QUEUES], lens: [0; QUEUES] })
    }

    /// Entries of all queues together.
    #[inline]
    pub fn len(&self) -> u32 {
        self.lens.iter().sum()
    }

    /// Whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries of a queue.
    #[inline]
    pub fn len_of(&self, queue: usize) -> u32 {
        self.lens[queue]
    }

    /// Makes room for `entries` entries, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the room stays as it was.
    pub fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.blocks.grow(entries, QUEUES as u32)
    }

    /// Bytes of memory that were mapped for it.
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Adds an entry to a queue and gives its place.
    #[inline]
    pub fn push_newest_of(&mut self, queue: usize, value: T) -> u32 {
        self.lens[queue] += 1;
        self.blocks.push_newest(&mut self.ends[queue], value)
    }

    /// Whether the queue's entry at `place` is its newest. May be false although every newer entry was
    /// removed.
    #[inline]
    pub fn is_newest_of(&self, queue: usize, place: u32) -> bool {
        self.blocks.is_newest(self.ends[queue], place)
    }

    /// Removes the entry from its queue; another entry may then use `place`.
    #[inline]
    pub fn remove_of(&mut self, queue: usize, place: u32) {
        self.lens[queue] -= 1;
        self.blocks.remove(&mut self.ends[queue], place);
    }

    /// The value of the entry at `place`.
    #[inline]
    pub fn get(&self, place: u32) -> T {
        self.blocks.get(place)
    }

    /// The oldest entry of a queue, which is evicted next.
    #[inline]
    pub fn oldest_of(&self, queue: usize) -> Option<T> {
        self.oldest_place_of(queue).map(|place| self.get(place))
    }

    /// The place of that entry.
    #[inline]
    pub fn oldest_place_of(&self, queue: usize) -> Option<u32> {
        self.blocks.oldest_place(self.ends[queue])
    }

    /// Entries of a queue, oldest first.
    pub fn iter_of(&self, queue: usize) -> impl Iterator<Item = T> + '_ {
        self.blocks.iter(self.ends[queue])
    }

    /// The places of a queue's entries, oldest first.
    pub fn places_of(&self, queue: usize) -> impl Iterator<Item = u32> + '_ {
        self.blocks.places(self.ends[queue])
    }

    /// Appends the oldest `count` entries of a queue to `values`, oldest first. Begins to fetch the lines of
    /// the `count` entries after these, as far as they lie behind each other in memory.
    pub fn upcoming_of(&self, queue: usize, count: usize, values: &mut Vec<T>) {
        self.blocks.upcoming(self.ends[queue], count, values);
    }
}

/// Every queue passed to a call must be made of these blocks only.
impl<T: Copy + Zeroable, const VALUES: usize> QueueBlocks<T, VALUES> {
    /// Blocks for `entries` entries in all, in at most `queues` queues.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, queues: u32, pages: PageSize) -> io::Result<Self> {
        let blocks = PageArray::zeroed(blocks_for(entries, queues), pages)?;
        Ok(Self { blocks, extent: 0, free_first: NIL, free_last: NIL })
    }

    /// Makes room for `entries` entries in at most `queues` queues, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the room stays as it was.
    pub fn grow(&mut self, entries: u32, queues: u32) -> io::Result<()> {
        self.blocks.grow(blocks_for(entries, queues))
    }

    /// Bytes of memory that were mapped for it.
    pub fn bytes(&self) -> usize {
        self.blocks.mapped_bytes()
    }

    /// [`EvictionQueues::push_newest_of`].
    #[inline(always)]
    pub fn push_newest(&mut self, queue: &mut Ends, value: T) -> u32 {
        let newest = queue.newest; // `NIL` is beyond the end
        if let Some(block) = self.blocks.get_mut(newest as usize)
            && let Some(free) = block.values.get_mut(usize::from(block.end))
        {
            *free = value;
            let index = u32::from(block.end);
            block.end += 1;
            block.live |= 1 << index;
            return newest * PLACES_PER_BLOCK + index;
        }
        self.push_in_new_block(queue, value)
    }

    #[inline(never)]
    fn push_in_new_block(&mut self, queue: &mut Ends, value: T) -> u32 {
        self.add_block(queue);
        let block = &mut self.blocks[queue.newest as usize];
        block.values[0] = value;
        (block.end, block.live) = (1, 1);
        queue.newest * PLACES_PER_BLOCK
    }

    #[inline]
    fn is_newest(&self, queue: Ends, place: u32) -> bool {
        place + 1 == queue.newest * PLACES_PER_BLOCK + u32::from(self.blocks[queue.newest as usize].end)
    }

    /// [`EvictionQueues::remove_of`].
    #[inline]
    pub fn remove(&mut self, queue: &mut Ends, place: u32) {
        let number = place / PLACES_PER_BLOCK;
        let block = &mut self.blocks[number as usize];
        block.live &= !(1 << (place % PLACES_PER_BLOCK));
        if block.live == 0 {
            self.end_block(queue, number);
        }
    }

    /// Removes the oldest value of a queue and returns it.
    #[inline(always)]
    fn take_oldest(&mut self, queue: &mut Ends) -> Option<T> {
        let block = self.blocks.get_mut(queue.oldest as usize)?; // `NIL` is beyond the end
        let oldest = *block.values.get(block.live.trailing_zeros() as usize)?;
        block.live &= block.live.wrapping_sub(1);
        if block.live == 0 {
            self.end_block(queue, queue.oldest);
        }
        Some(oldest)
    }

    /// The last value of a block was removed.
    #[inline(never)]
    fn end_block(&mut self, queue: &mut Ends, number: u32) {
        if number == queue.newest {
            self.blocks[number as usize].end = 0;
        } else {
            self.remove_block(queue, number);
        }
    }

    /// Frees the last block of an empty queue; returns whether the queue is empty.
    #[inline]
    pub fn release_if_empty(&mut self, queue: &mut Ends) -> bool {
        if queue.oldest != queue.newest {
            return false;
        }
        let is_empty = self.oldest_place(*queue).is_none();
        if is_empty && queue.newest != NIL {
            self.free(queue.newest);
            *queue = Ends::NONE;
        }
        is_empty
    }

    /// [`EvictionQueues::get`].
    #[inline]
    pub fn get(&self, place: u32) -> T {
        self.blocks[(place / PLACES_PER_BLOCK) as usize].values[(place % PLACES_PER_BLOCK) as usize]
    }

    /// [`EvictionQueues::oldest_place_of`].
    #[inline]
    pub fn oldest_place(&self, queue: Ends) -> Option<u32> {
        let block = self.blocks.get(queue.oldest as usize)?; // `NIL` is beyond the end
        (block.live != 0).then(|| queue.oldest * PLACES_PER_BLOCK + block.live.trailing_zeros())
    }

    /// [`EvictionQueues::iter_of`].
    pub fn iter(&self, queue: Ends) -> impl Iterator<Item = T> + '_ {
        self.places(queue).map(|place| self.get(place))
    }

    fn places(&self, queue: Ends) -> impl Iterator<Item = u32> + '_ {
        let mut number = queue.oldest;
        std::iter::from_fn(move || {
            let block = self.blocks.get(number as usize)?;
            let first = number * PLACES_PER_BLOCK;
            number = block.newer;
            Some((first, block.live))
        })
        .flat_map(|(first, mut live)| {
            std::iter::from_fn(move || {
                let index = (live != 0).then(|| live.trailing_zeros())?;
                live &= live - 1;
                Some(first + index)
            })
        })
    }

    /// [`EvictionQueues::upcoming_of`].
    pub fn upcoming(&self, queue: Ends, count: usize, values: &mut Vec<T>) {
        let (mut number, mut left) = (queue.oldest, count);
        while left > 0 {
            let Some(block) = self.blocks.get(number as usize) else { return };
            let first = block.live.trailing_zeros() as usize;
            let beside = block.live.checked_shr(first as u32).unwrap_or(0).trailing_ones() as usize;
            let side_by_side = block.values.get(first..first + beside.min(left)).unwrap_or_default();
            values.extend_from_slice(side_by_side);
            left -= side_by_side.len();
            // Only if entries in the middle were removed.
            let mut others = block.live.checked_shr((first + beside) as u32).unwrap_or(0);
            let mut index = first + beside;
            while others != 0 && left > 0 {
                if others & 1 != 0 {
                    values.push(block.values[index]);
                    left -= 1;
                }
                (others, index) = (others >> 1, index + 1);
            }
            number = block.newer;
        }
        self.prefetch(number, count);
    }

    /// Begins to fetch as many blocks as `count` entries take, from this block on.
    fn prefetch(&self, first: u32, count: usize) {
        let first = first as usize;
        for number in first..first.saturating_add(count / VALUES + 1) {
            let Some(block) = self.blocks.get(number) else { return };
            prefetch(block);
        }
    }

    fn add_block(&mut self, queue: &mut Ends) {
        let number = match self.free_first {
            NIL => {
                self.extent += 1;
                self.extent - 1
            }
            free => {
                self.free_first = self.blocks[free as usize].newer;
                free
            }
        };
        let older = std::mem::replace(&mut queue.newest, number);
        self.blocks[number as usize] = Block { newer: NIL, older, ..Block::zeroed() };
        match older {
            NIL => queue.oldest = number,
            _ => self.blocks[older as usize].newer = number,
        }
    }

    fn remove_block(&mut self, queue: &mut Ends, number: u32) {
        let Block { newer, older, .. } = self.blocks[number as usize];
        self.blocks[newer as usize].older = older; // the newest block is never removed
        match older {
            NIL => queue.oldest = newer,
            _ => self.blocks[older as usize].newer = newer,
        }
        self.free(number);
    }

    fn free(&mut self, number: u32) {
        self.blocks[number as usize].newer = NIL;
        match self.free_first {
            NIL => self.free_first = number,
            _ => self.blocks[self.free_last as usize].newer = number,
        }
        self.free_last = number;
    }
}

/// Enough blocks: every block of a queue but its newest holds an entry.
fn blocks_for(entries: u32, queues: u32) -> usize {
    entries as usize + queues as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn queues_equal_lists(operations in prop::collection::vec(any::<(u8, prop::sample::Index)>(), 0..600)) {
            const ENTRIES: usize = 40;
            let mut queues: EvictionQueues<2> = EvictionQueues::new(ENTRIES as u32, PageSize::Base).unwrap();
            let mut lists: [Vec<(u32, u32)>; 2] = [Vec::new(), Vec::new()];
            for (number, (kind, index)) in (0..).zip(operations) {
                let (queue, held) = (usize::from(kind / 4 % 2), lists[0].len() + lists[1].len());
                let list = &mut lists[queue];
                match kind % 4 {
                    0 | 1 if held < ENTRIES => list.push((number, queues.push_newest_of(queue, number))),
                    2 if !list.is_empty() => queues.remove_of(queue, list.remove(index.index(list.len())).1),
                    3 if !list.is_empty() => {
                        let (id, place) = list.remove(index.index(list.len()));
                        queues.remove_of(queue, place);
                        let other = usize::from(kind / 8 % 2);
                        lists[other].push((id, queues.push_newest_of(other, id)));
                    }
                    _ => {}
                }
                for (queue, list) in lists.iter().enumerate() {
                    prop_assert!(queues.iter_of(queue).eq(list.iter().map(|entry| entry.0)));
                    prop_assert!(queues.places_of(queue).eq(list.iter().map(|entry| entry.1)));
                    prop_assert_eq!(queues.oldest_place_of(queue), list.first().map(|entry| entry.1));
                    prop_assert_eq!(queues.len_of(queue) as usize, list.len());
                    let count = usize::from(kind) % (ENTRIES + 2);
                    let mut upcoming = vec![7];
                    queues.upcoming_of(queue, count, &mut upcoming);
                    prop_assert!(upcoming.into_iter().skip(1).eq(list.iter().take(count).map(|entry| entry.0)));
                }
            }
        }

        #[test]
        fn the_newest_is_known(operations in prop::collection::vec(any::<(u8, prop::sample::Index)>(), 0..300)) {
            let mut queue: EvictionQueue = EvictionQueue::new(40, PageSize::Base).unwrap();
            let mut list: Vec<(u32, u32)> = Vec::new();
            for (number, (kind, index)) in (0..).zip(operations) {
                match kind % 3 {
                    0 | 1 if list.len() < 40 => {
                        list.push((number, queue.push_newest(number)));
                        prop_assert!(list.last().is_some_and(|entry| queue.is_newest(entry.1)));
                    }
                    2 if kind % 2 == 0 => {
                        let oldest = (!list.is_empty()).then(|| list.remove(0).0);
                        prop_assert_eq!(queue.take_oldest(), oldest);
                    }
                    2 if !list.is_empty() => queue.remove(list.remove(index.index(list.len())).1),
                    _ => {}
                }
                prop_assert_eq!(queue.len() as usize, list.len());
                prop_assert_eq!(queue.oldest(), list.first().map(|entry| entry.0));
                prop_assert!(list.iter().rev().skip(1).all(|entry| !queue.is_newest(entry.1)));
            }
        }

        #[test]
        fn empty_queues_give_their_blocks_back(operations in prop::collection::vec((0_usize..20, any::<prop::sample::Index>()), 0..300)) {
            const ENTRIES: usize = 30;
            let mut blocks: QueueBlocks = QueueBlocks::new(ENTRIES as u32, 10, PageSize::Base).unwrap();
            let mut queues = [(); 10].map(|()| (Ends::NONE, Vec::new()));
            for (number, (kind, index)) in (0..).zip(operations) {
                let held: usize = queues.iter().map(|(_, list)| list.len()).sum();
                let (ends, list) = &mut queues[kind % 10];
                if kind < 10 && held < ENTRIES {
                    list.push((number, blocks.push_newest(ends, number)));
                } else if !list.is_empty() {
                    blocks.remove(ends, list.remove(index.index(list.len())).1);
                }
                prop_assert_eq!(blocks.release_if_empty(ends), list.is_empty());
                for (ends, list) in &queues {
                    prop_assert!(blocks.iter(*ends).eq(list.iter().map(|entry| entry.0)));
                }
            }
        }
    }

    /// First in, first out: the blocks are used in the order of memory, so the lines of the next victims
    /// are known without reading them.
    #[test]
    fn a_queue_that_only_moves_on_stays_in_order() {
        let mut queue: EvictionQueue = EvictionQueue::new(1000, PageSize::Base).unwrap();
        let mut places: std::collections::VecDeque<u32> = (0..1000).map(|id| queue.push_newest(id)).collect();
        for id in 1000..100_000 {
            queue.remove(places.pop_front().unwrap());
            places.push_back(queue.push_newest(id));
        }
        let blocks: Vec<u32> = places.iter().map(|place| place / PLACES_PER_BLOCK).collect();
        let jumps = blocks.windows(2).filter(|pair| pair[1] != pair[0] && pair[1] != pair[0] + 1).count();
        assert!(jumps <= 1, "{jumps} jumps");
        assert!(queue.blocks.extent <= 1000 / 13 + 3);
    }
}
