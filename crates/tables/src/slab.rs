//! Slab: where does entry number `id` live?
//!
//! Slots are handed out last-freed-first (its lines are the warmest). A released
//! slot keeps its value, so that buffers inside it can be reused; who allocates
//! overwrites it. Growth doubles and stops at the capacity.
//!
//! Bytes per slot beyond the value: 4 (free list) and 1 bit (live). Full:
//! [`Slab::allocate`] gives `None`.

/// The `u32` that names no slot: capacities are at most this, ids below them.
pub(crate) const NIL: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
    live: Vec<u64>,
    live_count: u32,
    capacity: u32,
}

impl<T: Default> Slab<T> {
    pub(crate) fn new(capacity: u32) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), live: Vec::new(), live_count: 0, capacity }
    }

    pub(crate) fn len(&self) -> u32 {
        self.live_count
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn is_full(&self) -> bool {
        self.live_count >= self.capacity
    }

    /// A slot with `T::default()` or what its former user left in it.
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.extend()?,
        };
        self.live[id as usize / 64] |= 1 << (id % 64);
        self.live_count += 1;
        Some(id)
    }

    fn extend(&mut self) -> Option<u32> {
        let used = self.slots.len();
        if used >= self.capacity as usize {
            return None;
        }
        if used == self.slots.capacity() {
            let grown = (used * 2).clamp(16, (self.capacity as usize).max(16));
            self.slots.reserve_exact(grown - used);
        }
        self.slots.push(T::default());
        if used.is_multiple_of(64) {
            self.live.push(0);
        }
        Some(used as u32)
    }

    pub(crate) fn release(&mut self, id: u32) {
        assert!(self.is_live(id), "slot {id} is released twice");
        self.live[id as usize / 64] &= !(1 << (id % 64));
        self.live_count -= 1;
        self.free.push(id);
    }

    #[inline]
    pub(crate) fn is_live(&self, id: u32) -> bool {
        self.live.get(id as usize / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// The slots ever used, live or not; ids are below this.
    pub(crate) fn extent(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn live_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.live.iter().zip(0_u32..).flat_map(|(&word, index)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| index * 64 + bit)
        })
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        debug_assert!(self.is_live(id), "slot {id} is not in use");
        &self.slots[id as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        debug_assert!(self.is_live(id), "slot {id} is not in use");
        &mut self.slots[id as usize]
    }
}
