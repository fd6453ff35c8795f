//! A worker's part of an erasure from the Content Stores: it visits a few slots per turn.
//!
//! Cost: an erasure visits every slot ever used, [`VISITS_PER_TURN`] between two batches of packets. Limit: as many
//! erasures at a time as management allows.

use crate::messages::{CsErasure, ErasureId};
use namewire_engine::Engine;
use std::collections::VecDeque;

/// Slots that a worker looks at in one turn: some tens of microseconds.
const VISITS_PER_TURN: u32 = 2048;

/// The erasures that the worker was asked for; the first is under way.
#[derive(Default)]
pub(crate) struct CsErasureQueue {
    waiting: VecDeque<CsErasure>,
    erased: u64,
    next_slot: u32,
}

impl CsErasureQueue {
    pub(crate) fn push(&mut self, erasure: CsErasure) {
        self.waiting.push_back(erasure);
    }

    /// True if the next turn has something to erase.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Continues the first erasure. When it is complete, returns how many Data it erased.
    pub(crate) fn step(&mut self, engine: &mut Engine) -> Option<(ErasureId, u64)> {
        let erasure = self.waiting.front()?;
        let left = erasure.limit - self.erased;
        let (erased, next_slot) =
            engine.erase_cs_step(erasure.prefix.as_name(), left as usize, self.next_slot, VISITS_PER_TURN);
        self.erased += erased as u64;
        if let Some(next_slot) = next_slot.filter(|_| self.erased < erasure.limit) {
            self.next_slot = next_slot;
            return None;
        }
        let done = (erasure.id, self.erased);
        self.waiting.pop_front();
        (self.erased, self.next_slot) = (0, 0);
        Some(done)
    }
}
