//! Space: which units of the entry array are free?
//!
//! ```text
//!  0                                      fresh               limit
//!  | entry | free 7 | entry | free 13 | … | never used         |
//!              └─ list of blocks of 7 units, linked in their first unit
//! ```
//!
//! `allocate` takes a block of the wanted size from the list of that size. If the list is empty, it cuts a
//! block from the units never used. If these do not suffice, it splits a larger block. Only if all three
//! fail, it joins neighbouring free blocks and tries the three again. So the entries of a stable population
//! find exact fits, and the array grows no further.
//!
//! Cost: an allocation touches a line of the free block, and a line of the lists. Joining sorts all free
//! blocks; it happens only if more than a sixteenth of the units was freed since the last time. Bytes: the
//! lists take 9 KiB. Writers: the FIB's writer.
#![allow(unsafe_code, reason = "leaf: lists inside units that readers could reach before")]

use super::entries::Entries;
use super::entry::MAX_PREFIX_BYTES;
use super::unit::{HEADER_UNITS, UNIT_BYTES};

/// The largest entry, and the largest block that has a list.
const MAX_UNITS: usize = HEADER_UNITS + MAX_PREFIX_BYTES.div_ceil(UNIT_BYTES);
/// The end of a list.
const NIL: u32 = u32::MAX;

/// The free units of an [`Entries`].
pub(super) struct Space {
    /// By size in units.
    first_free: Box<[u32]>,
    /// Free blocks larger than any entry: (unit, units). Only joining makes them.
    large: Vec<(u32, u32)>,
    fresh: usize,
    limit: usize,
    freed_since_join: usize,
}

impl Space {
    pub(super) fn new(entries: &Entries) -> Self {
        Self {
            first_free: vec![NIL; MAX_UNITS + 1].into(),
            large: Vec::new(),
            fresh: 0,
            limit: entries.units().min(NIL as usize),
            freed_since_join: 0,
        }
    }

    /// Units from the first to the last ever used.
    pub(super) fn used_units(&self) -> usize {
        self.fresh
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.first_free.len() * size_of::<u32>() + self.large.capacity() * size_of::<(u32, u32)>()
    }

    /// A block of exactly `units` units, or `None` if there is no room.
    pub(super) fn allocate(&mut self, entries: &Entries, units: usize) -> Option<u32> {
        if let Some(unit) = self.pop(entries, units).or_else(|| self.take_fresh(units)) {
            return Some(unit);
        }
        self.split(entries, units).or_else(|| {
            if self.freed_since_join <= self.limit / 16 {
                return None;
            }
            self.join(entries);
            self.pop(entries, units).or_else(|| self.take_fresh(units)).or_else(|| self.split(entries, units))
        })
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// [`Space::allocate`] gave the block, it was not released since, and no reader is left that could
    /// reach it.
    pub(super) unsafe fn release(&mut self, entries: &Entries, unit: u32, units: usize) {
        self.freed_since_join += units;
        self.push(entries, unit, units);
    }

    fn push(&mut self, entries: &Entries, unit: u32, units: usize) {
        if units > MAX_UNITS {
            self.large.push((unit, units as u32));
        } else {
            // SAFETY: the block is free: `release` was promised so, and the other callers took it off a
            // list.
            unsafe { entries.set_link(unit, self.first_free[units]) };
            self.first_free[units] = unit;
        }
    }

    fn pop(&mut self, entries: &Entries, units: usize) -> Option<u32> {
        let unit = self.first_free[units];
        (unit != NIL).then(|| {
            self.first_free[units] = entries.link(unit);
            unit
        })
    }

    fn take_fresh(&mut self, units: usize) -> Option<u32> {
        let end = self.fresh + units;
        (end <= self.limit).then(|| std::mem::replace(&mut self.fresh, end) as u32)
    }

    /// Cuts `units` off the smallest larger block.
    fn split(&mut self, entries: &Entries, units: usize) -> Option<u32> {
        let listed = (units + 1..=MAX_UNITS).find(|&larger| self.first_free[larger] != NIL);
        let (unit, larger) = match listed {
            Some(larger) => (self.pop(entries, larger)?, larger),
            None => self.large.pop().map(|(unit, larger)| (unit, larger as usize))?,
        };
        self.push(entries, unit + units as u32, larger - units);
        Some(unit)
    }

    /// Joins neighbouring free blocks; the last one may join the units never used.
    fn join(&mut self, entries: &Entries) {
        self.freed_since_join = 0;
        let mut blocks = std::mem::take(&mut self.large);
        for units in 1..=MAX_UNITS {
            while let Some(unit) = self.pop(entries, units) {
                blocks.push((unit, units as u32));
            }
        }
        blocks.sort_unstable();
        let mut joined: Option<(u32, u32)> = None;
        for (unit, units) in blocks {
            match &mut joined {
                Some((first, length)) if *first + *length == unit => *length += units,
                _ => {
                    if let Some((first, length)) = joined.replace((unit, units)) {
                        self.push(entries, first, length as usize);
                    }
                }
            }
        }
        match joined {
            Some((first, length)) if (first + length) as usize == self.fresh => self.fresh = first as usize,
            Some((first, length)) => self.push(entries, first, length as usize),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::NameStorage;
    use crate::pages::PageSize;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Blocks never overlap, and freed units can be allocated again.
        #[test]
        fn blocks_are_disjoint(operations in prop::collection::vec((2_usize..40, any::<prop::sample::Index>(), any::<bool>()), 0..300)) {
            const UNITS: usize = 1000;
            let entries = Entries::new(UNITS, NameStorage::Inline, PageSize::Base).unwrap();
            let mut space = Space::new(&entries);
            let mut live: Vec<(u32, usize)> = Vec::new();
            let mut owner = [None; UNITS];
            for (units, which, give_back) in operations {
                if give_back && !live.is_empty() {
                    let (unit, units) = live.swap_remove(which.index(live.len()));
                    owner[unit as usize..][..units].fill(None);
                    // SAFETY: allocated, once; there are no readers.
                    unsafe { space.release(&entries, unit, units) };
                } else if let Some(unit) = space.allocate(&entries, units) {
                    for owner in &mut owner[unit as usize..][..units] {
                        prop_assert_eq!(owner.replace(unit), None);
                    }
                    live.push((unit, units));
                }
            }
            for (unit, units) in live {
                // SAFETY: as above.
                unsafe { space.release(&entries, unit, units) };
            }
            space.join(&entries);
            prop_assert_eq!(space.used_units(), 0, "everything was joined");
        }
    }

    #[test]
    fn small_blocks_are_joined_for_a_large_entry() {
        let entries = Entries::new(MAX_UNITS + 10, NameStorage::Inline, PageSize::Base).unwrap();
        let mut space = Space::new(&entries);
        let blocks: Vec<u32> = std::iter::from_fn(|| space.allocate(&entries, 2)).collect();
        assert_eq!(blocks.len(), (MAX_UNITS + 10) / 2);
        // SAFETY: allocated, once; there are no readers.
        blocks.iter().for_each(|&unit| unsafe { space.release(&entries, unit, 2) });
        assert!(space.allocate(&entries, MAX_UNITS).is_some());
        assert!(space.allocate(&entries, MAX_UNITS).is_none());
    }
}
