//! Slab: a fixed number of slots of one size; an entry's number is its slot's.
//!
//! ```text
//! slots: | T 0 | T 1 | … | T extent-1 | never used, untouched … capacity |
//! free:  | 7 | 3 | 9 |                  ids, the last one is handed out next
//! ```
//!
//! The slot freed last is handed out first: its lines are the most likely to be in cache. A released slot
//! keeps its value, so that buffers inside it can be reused; the code that allocates a slot overwrites it.
//! All memory is mapped at the start and touched when it is used.
//!
//! Cost: an operation touches 1 line of the slot, and 1 word each of `free` and `live`, which are mostly
//! cached. Bytes: beyond its value, a slot takes 4 (free) and 1 bit (live). Full: [`Slab::allocate`]
//! returns `None`.

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
    live: PageArray<u64>,
    live_count: u32,
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
            live: PageArray::zeroed(capacity.div_ceil(64), pages)?,
            live_count: 0,
        })
    }

    /// Makes room for `capacity` slots, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; all slots in use stay as they were.
    pub fn grow(&mut self, capacity: u32) -> io::Result<()> {
        let capacity = capacity as usize;
        self.free.grow(capacity)?;
        self.live.grow(capacity.div_ceil(64))?;
        self.slots.grow(capacity)
    }

    /// Slots in use.
    pub fn len(&self) -> u32 {
        self.live_count
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
        self.live_count >= self.capacity()
    }

    /// A slot with `T::default()` or what its former user left in it.
    #[inline]
    pub fn allocate(&mut self) -> Option<u32> {
        let id = match self.free_count.checked_sub(1) {
            Some(last) => {
                self.free_count = last;
                self.free[last]
            }
            None if self.slots.len() < self.slots.capacity() => {
                self.slots.push(T::default());
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        self.live[id as usize / 64] |= 1 << (id % 64);
        self.live_count += 1;
        Some(id)
    }

    /// Frees a slot.
    pub fn release(&mut self, id: u32) {
        assert!(self.is_live(id), "slot {id} is released twice");
        self.live[id as usize / 64] &= !(1 << (id % 64));
        self.live_count -= 1;
        self.free[self.free_count] = id;
        self.free_count += 1;
    }

    /// Whether the slot is in use.
    #[inline]
    pub fn is_live(&self, id: u32) -> bool {
        self.live.get(id as usize / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// How many slots were ever used, live or not; ids are below this.
    pub fn extent(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Every slot in use.
    pub fn live_ids(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.slots.len().div_ceil(64);
        self.live[..words].iter().zip(0_u32..).flat_map(|(&word, index)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| index * 64 + bit)
        })
    }

    /// The value in a slot.
    #[inline]
    pub fn get(&self, id: u32) -> &T {
        debug_assert!(self.is_live(id), "slot {id} is not in use");
        &self.slots[id as usize]
    }

    /// The value in a slot, to change.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut T {
        debug_assert!(self.is_live(id), "slot {id} is not in use");
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
