//! Places: where the store puts a Data, and how it reuses the place of an evicted one.
//!
//! A place is a slot and a block of the arena. Verdicts of the batch may refer to evicted Data, so its place
//! stays as it is until the batch ends. From then on the place is *reusable*: the next Data of its size takes
//! slot and block together, without a call of slab or arena. If the next Data has another size, or if
//! [`MAX_REUSABLE`] places would wait, places go back to slab and arena. Places also go back if slab or arena
//! would otherwise have no room. So waiting places never cause the refusal of a Data.
//!
//! ```text
//! evicted in this batch:  last_evicted -> … -> first_evicted -> NIL     links: `CsSlot::evicted_before`
//! reusable:               reusable -> … -> NIL                          next is the one evicted last
//! ```
//!
//! Cost: a reused place reads its slot and its block's header, which the caller writes next anyway. Writers:
//! the owner.
//!
//! N.B. Data by name took 118 instructions for the arena's allocation, 15 for the slab's, and as much again
//! after the batch to free the victim's block and slot (packets of one size, FIFO).

use super::{ContentStore, CsRefusal, NewData};
use crate::slab::NIL;

/// The most places that wait to be reused: two full batches.
pub(super) const MAX_REUSABLE: u32 = 128;

/// A slot, and the block that it leads to.
pub(super) struct Place {
    pub(super) id: u32,
    pub(super) data_at: u32,
}

/// Entries that were evicted, by the batch.
#[derive(Clone, Copy)]
pub(super) struct EvictedPlaces {
    /// The last entry evicted in this batch; `NIL` = none.
    last_evicted: u32,
    /// The first one; only if there is one.
    first_evicted: u32,
    /// How many entries were evicted in this batch.
    pub(super) in_batch: u32,
    /// The last of the entries evicted in earlier batches whose places are not reused yet.
    reusable: u32,
    reusable_len: u32,
}

impl EvictedPlaces {
    pub(super) const NONE: Self =
        Self { last_evicted: NIL, first_evicted: NIL, in_batch: 0, reusable: NIL, reusable_len: 0 };

    /// Notes an entry; returns the entry evicted before it.
    #[inline(always)]
    pub(super) fn note(&mut self, id: u32) -> u32 {
        if self.in_batch == 0 {
            self.first_evicted = id;
        }
        self.in_batch += 1;
        std::mem::replace(&mut self.last_evicted, id)
    }
}

impl ContentStore {
    /// A slot, and a block that holds a copy of `data`.
    #[inline(always)]
    pub(super) fn take_place(&mut self, data: &NewData<'_>) -> Result<Place, CsRefusal> {
        let id = self.evicted.reusable;
        if let Some(slot) = self.slots.peek(id)
            && self.data.overwrite(slot.data_at, data.bytes, data.block_bytes)
        {
            self.evicted.reusable = slot.evicted_before;
            self.evicted.reusable_len -= 1;
            return Ok(Place { id, data_at: slot.data_at });
        }
        self.take_other_place(data.bytes)
    }

    #[inline(never)]
    fn take_other_place(&mut self, data: &[u8]) -> Result<Place, CsRefusal> {
        self.free_reusable(1);
        let data_at = match self.data.allocate(data) {
            Some(at) => at,
            None => {
                self.free_reusable(MAX_REUSABLE);
                self.data.allocate(data).ok_or(CsRefusal::NoRoomInBatch)?
            }
        };
        if self.slots.is_full() {
            self.free_reusable(MAX_REUSABLE);
        }
        let Some(id) = self.slots.allocate() else {
            self.data.free(data_at);
            return Err(CsRefusal::NamesFull);
        };
        Ok(Place { id, data_at })
    }

    /// Takes back a place that was not needed.
    #[cold]
    pub(super) fn free_place(&mut self, Place { id, data_at }: Place) {
        self.data.free(data_at);
        self.slots.release(id);
    }

    pub(crate) fn end_of_batch(&mut self) {
        if self.evicted.in_batch == 0 {
            return;
        }
        if self.evicted.in_batch + self.evicted.reusable_len > MAX_REUSABLE {
            self.free_reusable(MAX_REUSABLE);
        }
        let EvictedPlaces { last_evicted, first_evicted, in_batch, reusable, reusable_len } = self.evicted;
        self.slots.get_mut(first_evicted).evicted_before = reusable;
        self.evicted =
            EvictedPlaces { reusable: last_evicted, reusable_len: reusable_len + in_batch, ..EvictedPlaces::NONE };
        self.free_reusable(self.evicted.reusable_len.saturating_sub(MAX_REUSABLE));
    }

    /// Gives at most this many reusable places back to slab and arena.
    fn free_reusable(&mut self, most: u32) {
        for _ in 0..most.min(self.evicted.reusable_len) {
            let id = self.evicted.reusable;
            let slot = self.slots.get(id);
            self.evicted.reusable = slot.evicted_before;
            self.evicted.reusable_len -= 1;
            self.data.free(slot.data_at);
            self.slots.release(id);
        }
    }
}
