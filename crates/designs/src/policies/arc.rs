//! ARC: entries used once and entries used again share the store; names that return set the proportion.
//!
//! Source: Megiddo and Modha, FAST 2003, "ARC: a self-tuning, low overhead replacement cache", Fig. 4; Takemasa19 §5.4
//! compares its admission with it.
//!
//! ```text
//! newcomer ───────────> once ── used ──> again <─┐ used
//!    │                   │ evicted         │ ────┘
//!    │                   v                 v evicted
//!    ├─ among ───── ghosts of once   ghosts of again
//!    └─ those: into again, and the target moves to the list that it was missed in
//! ```
//!
//! | Megiddo | here |
//! | --- | --- |
//! | T1, T2 | the queues [`ONCE`] and [`AGAIN`], [`PolicyMark::list`](namewire_tables::cs_policy::PolicyMark::list) |
//! | B1, B2 | `ghosts`, the same two |
//! | p | `target_once`, in entries; it has fractions, as there |
//! | c | `full_at`: entries that were held when last the store was full |
//! | REPLACE | [`Eviction::victim`] |
//! | Case I | [`Eviction::hit`] |
//! | Cases II and III | [`Eviction::arriving`], once for each newcomer |
//! | Case IV | [`Eviction::insert`] |
//!
//! Deviations:
//! - If every Data counts as one packet, only the order of deletions differs (below).
//! - If bytes limit the store, c is not a constant. For a Data that is larger than others, several entries are evicted,
//!   all by the same target.
//! - The paper deletes ghosts from B1 or B2 before REPLACE. Here they are deleted after it, in every case.
//! - Erased names leave no ghost.
//! - If c becomes smaller, ghosts are forgotten [`FORGOTTEN_PER_NEWCOMER`] at a time.
//!
//! Cost: a hit writes 1 line of the queues, and nothing else if the entry is the newest of `again` already. A newcomer
//! reads 1 line of the index of each list of ghosts. An eviction leaves a ghost, which takes 2 lines, and 2 more for
//! the ghost that is forgotten for it. Bytes: an entry takes 5 for the queues and 19 for each of two ghosts. Full: the
//! policy is made for a number of entries; the owner adds no more.

use super::ghost_queue::GhostQueue;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use std::io;

/// The list of entries not used since they were stored (T1).
const ONCE: u8 = 0;
/// The list of entries that were used (T2).
const AGAIN: u8 = 1;

/// The most ghosts forgotten at a time in each list, when there are too many.
const FORGOTTEN_PER_NEWCOMER: u32 = 2;

/// The newcomer that was announced last.
#[derive(Clone, Copy)]
struct Arrival {
    hash: u64,
    /// The list that had its ghost.
    ghost_of: Option<u8>,
}

/// Two queues, two lists of ghosts of what went from them, and a target.
pub struct Arc {
    queues: EvictionQueues<2>,
    ghosts: [GhostQueue; 2],
    /// How many entries [`ONCE`] should have.
    target_once: f64,
    full_at: u32,
    /// `full_at` was measured when the last newcomer was announced.
    is_full_at_known: bool,
    arrival: Option<Arrival>,
}

impl Arc {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            queues: EvictionQueues::new(entries, pages)?,
            ghosts: [GhostQueue::new(entries, pages)?, GhostQueue::new(entries, pages)?],
            target_once: 0.0,
            full_at: entries,
            is_full_at_known: false,
            arrival: None,
        })
    }

    /// The list that has the newcomer's ghost, or had it when the newcomer was announced.
    #[inline]
    fn ghost_of(&self, hash: u64) -> Option<u8> {
        match self.arrival {
            Some(arrival) if arrival.hash == hash => arrival.ghost_of,
            _ => [ONCE, AGAIN].into_iter().find(|list| self.ghosts[usize::from(*list)].contains(hash)),
        }
    }

    /// The list of the next victim. `is_ghost_of_again`: the newcomer has a ghost among those of [`AGAIN`].
    #[inline]
    fn list_to_shorten(&self, is_ghost_of_again: bool) -> u8 {
        let [once, again] = [ONCE, AGAIN].map(|list| self.queues.len_of(list.into()));
        let (held, target) = (f64::from(once), self.target_once);
        if again == 0 || once > 0 && (held > target || is_ghost_of_again && held >= target) { ONCE } else { AGAIN }
    }

    /// Moves the target towards the list that was shortened too early. The step grows as that list's ghosts
    /// are outnumbered by the other's.
    fn adapt(&mut self, ghost_of: u8) {
        let [once, again] = [0, 1].map(|list: usize| f64::from(self.ghosts[list].len().max(1)));
        let target = match ghost_of {
            ONCE => self.target_once + (again / once).max(1.0),
            _ => self.target_once - (once / again).max(1.0),
        };
        self.target_once = target.clamp(0.0, self.full_at.into());
    }

    /// Forgets ghosts: `once` and its ghosts have at most as many names as a full store has entries, both
    /// lists with their ghosts at most twice as many.
    fn forget(&mut self) {
        let full_at = self.full_at.max(self.queues.len());
        for _ in 0..FORGOTTEN_PER_NEWCOMER {
            let [once, again] = [0, 1].map(|list: usize| self.queues.len_of(list) + self.ghosts[list].len());
            if once >= full_at {
                self.ghosts[usize::from(ONCE)].pop_oldest();
            } else if u64::from(once) + u64::from(again) >= 2 * u64::from(full_at) {
                self.ghosts[usize::from(AGAIN)].pop_oldest();
            }
        }
    }
}

impl Eviction for Arc {
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.ghosts.iter().for_each(|ghosts| ghosts.prefetch(hash));
    }

    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        self.ghosts.iter().for_each(|ghosts| ghosts.prefetch(hash));
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        let mark = marks.mark_mut(slot);
        if mark.list == AGAIN && self.queues.is_newest_of(AGAIN.into(), mark.place) {
            return;
        }
        self.queues.remove_of(mark.list.into(), mark.place);
        (mark.list, mark.place) = (AGAIN, self.queues.push_newest_of(AGAIN.into(), slot));
    }

    fn arriving(&mut self, newcomer: &Newcomer) {
        let ghost_of = [ONCE, AGAIN].into_iter().find(|list| self.ghosts[usize::from(*list)].contains(newcomer.hash));
        if let Some(list) = ghost_of {
            self.adapt(list);
            self.ghosts[usize::from(list)].remove(newcomer.hash);
        }
        self.arrival = Some(Arrival { hash: newcomer.hash, ghost_of });
        self.is_full_at_known = false;
    }

    fn victim(&mut self, _: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        if !self.is_full_at_known {
            self.full_at = self.queues.len();
            self.is_full_at_known = true;
        }
        let is_ghost_of_again = self.ghost_of(newcomer.hash) == Some(AGAIN);
        self.queues.oldest_of(self.list_to_shorten(is_ghost_of_again).into())
    }

    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        let list = match self.arrival.take() {
            Some(Arrival { hash, ghost_of: Some(_) }) if hash == newcomer.hash => AGAIN,
            _ => {
                self.forget();
                ONCE
            }
        };
        let mark = marks.mark_mut(slot);
        (mark.list, mark.place) = (list, self.queues.push_newest_of(list.into(), slot));
    }

    fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: RemovalReason) {
        let mark = marks.mark(slot);
        self.queues.remove_of(mark.list.into(), mark.place);
        if why == RemovalReason::Evicted {
            self.ghosts[usize::from(mark.list)].push(marks.hash(slot));
        }
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        let list = usize::from(self.list_to_shorten(false));
        self.queues.upcoming_of(list, count, slots);
        self.ghosts[list].prefetch_oldest(count);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        for ghosts in &mut self.ghosts {
            ghosts.grow(entries)?;
        }
        self.queues.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queues.bytes() + self.ghosts.iter().map(GhostQueue::bytes).sum::<usize>()
    }
}
