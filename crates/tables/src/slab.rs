//! Slab: a fixed number of slots of one size; an entry's number is its slot's.
//!
//! ```text
//! slots: | T 0 | T 1 | … | T extent-1 | never used, untouched … capacity |
//! free:  | 7 | 3 | 9 |                  ids, the last one is handed out next
//! ```
//!
//! The slot freed last is handed out first: its lines are the most likely to be in cache. A released slot
//! keeps its value, so that buffers inside it can be reused; the code that allocates a slot overwrites it.
//! The slab does not record which slots are in use. An owner that must know this marks it in the values.
//! Debug builds record it in a bitmap, and check each access. All memory is mapped at the start and touched
//! when it is used.
//!
//! Cost: an operation touches 1 line of the slot and 1 word of `free`, which is mostly cached. Bytes: beyond
//! its value, a slot takes 4 (free). Full: [`Slab::allocate`] returns `None`.

use crate::pages::{PageArray, PageSize, PageVec};
use crate::prefetch::{prefetch_lines, prefetch_whole};
use std::io;

/// The `u32` that names no slot: capacities are at most this, ids are below the capacity.
pub const NIL: u32 = u32::MAX;

/// Places of one size, given out and taken back by number.
pub struct Slab<T> {
    slots: PageVec<T>,
    free: PageArray<u32>,
    free_count: usize,
    /// In debug builds one bit per slot: whether it is in use.
    live: PageArray<u64>,
}

impl<T: Default> Slab<T> {
    /// Room for `capacity` places.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(capacity: u32, pages: PageSize) -> io::Result<Self> {
        let capacity = capacity as usize;
        Ok(Self {
            slots: PageVec::with_capacity(capacity, pages)?,
            free: PageArray::zeroed(capacity, pages)?,
            free_count: 0,
            live: PageArray::zeroed(words_for(capacity), pages)?,
        })
    }

    /// From now on it grows on transparent pages where too few explicit ones are reserved.
    pub fn or_transparent(self) -> Self {
        let Self { slots, free, live, free_count } = self;
        let (slots, free, live) = (slots.or_transparent(), free.or_transparent(), live.or_transparent());
        Self { slots, free, live, free_count }
    }

    /// Makes room for `capacity` slots, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; all slots in use stay as they were.
    pub fn grow(&mut self, capacity: u32) -> io::Result<()> {
        let capacity = capacity as usize;
        self.free.grow(capacity)?;
        self.live.grow(words_for(capacity))?;
        self.slots.grow(capacity)
    }

    /// Slots in use.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.slots.len() - self.free_count) as u32
    }

    /// Whether no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots, in use or free.
    pub fn capacity(&self) -> u32 {
        self.slots.capacity() as u32
    }

    /// Bytes of memory that were mapped for it.
    pub fn bytes(&self) -> usize {
        self.slots.mapped_bytes() + self.free.mapped_bytes() + self.live.mapped_bytes()
    }

    /// Whether no slot is free.
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// A slot with `T::default()` or what its former user left in it.
    #[inline(always)]
    pub fn allocate(&mut self) -> Option<u32> {
        let id = match self.free_count.checked_sub(1) {
            Some(last) => {
                self.free_count = last;
                self.free[last]
            }
            None => self.first_use()?,
        };
        if cfg!(debug_assertions) {
            self.live[id as usize / 64] |= 1 << (id % 64);
        }
        Some(id)
    }

    /// A slot that was never used.
    #[cold]
    fn first_use(&mut self) -> Option<u32> {
        if self.slots.len() == self.slots.capacity() {
            return None;
        }
        self.slots.push(T::default());
        Some(self.slots.len() as u32 - 1)
    }

    /// Frees a slot, which must be in use.
    ///
    /// # Panics
    /// If as many slots are free as there are; in debug builds also if this slot is free.
    #[inline(always)]
    pub fn release(&mut self, id: u32) {
        self.check(id);
        if cfg!(debug_assertions) {
            self.live[id as usize / 64] &= !(1 << (id % 64));
        }
        self.free[self.free_count] = id;
        self.free_count += 1;
    }

    /// In debug builds, panics unless the slot is in use.
    #[inline(always)]
    fn check(&self, id: u32) {
        if cfg!(debug_assertions) {
            let word = self.live.get(id as usize / 64);
            assert!(word.is_some_and(|word| word & (1 << (id % 64)) != 0), "slot {id} is not in use");
        }
    }

    /// How many slots were ever used, live or not; ids are below this.
    #[inline]
    pub fn extent(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Every slot in use. Cost: a pass over the free ones, and an allocation.
    pub fn live_ids(&self) -> impl Iterator<Item = u32> + use<T> {
        let mut is_free = vec![false; self.slots.len()];
        self.free[..self.free_count].iter().for_each(|&id| is_free[id as usize] = true);
        (0..).zip(is_free).filter(|&(_, is_free)| !is_free).map(|(id, _)| id)
    }

    /// The value in a slot.
    #[inline]
    pub fn get(&self, id: u32) -> &T {
        self.check(id);
        &self.slots[id as usize]
    }

    /// The value in a slot, to change.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut T {
        self.check(id);
        &mut self.slots[id as usize]
    }

    /// What the slot holds, live or not; `None` if it was never used.
    #[inline]
    pub fn peek(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)
    }

    /// Begins to fetch every line of a slot, live or not.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        if let Some(slot) = self.peek(id) {
            prefetch_whole(slot);
        }
    }

    /// Begins to fetch the first `lines` lines of a slot, live or not.
    #[inline]
    pub fn prefetch_lines(&self, id: u32, lines: usize) {
        if let Some(slot) = self.peek(id) {
            prefetch_lines(slot, lines);
        }
    }
}

/// Words of the bitmap.
const fn words_for(capacity: usize) -> usize {
    if cfg!(debug_assertions) { capacity.div_ceil(64) } else { 0 }
}
