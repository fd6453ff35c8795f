//! Overflow table: the names whose buckets were full in all subtables.
//!
//! Source: Yuan15 §5.4.2, §5.6.2 ("can be stored on SRAM or TCAM"). The paper searches it in parallel, for
//! every name. A *class* is a name's bucket and fingerprint ([`super::class`]). Here each bucket of the
//! first subtable counts how many overflow entries belong to its classes. The table is searched only if the
//! count is not zero. Entries are chained by class. A name that is put here stays until it is satisfied or
//! expires, even if its buckets have room later.
//!
//! ```text
//!  byte 0        8            16      20      22         23
//!      │ class, segment above │ expires_tick │ next │ faces │ collided │ occupied
//! ```
//!
//! Deviation: an entry is 24 bytes: it stores its class, which a bucket's 44-bit entry gets from its place.
//! Cost: a search reads 2 lines. Limits: see [`Overflow::new`]. Full: an insertion looks for expired
//! entries in [`RECLAIMED_PER_INSERT`] places, and is refused if it finds none. Writers: the table's owner.

use super::class::Class;
use crate::pages::{PageArray, PageSize};
use bytemuck::Zeroable;
use std::io;

/// The end of a chain. Entry n has the number n + 1.
const NONE: u32 = 0;
/// Places that one insertion into a full table looks at for an expired entry.
pub(super) const RECLAIMED_PER_INSERT: usize = 64;
const SEGMENT_AT: u32 = 56;

/// An entry.
#[derive(Clone, Copy, Zeroable)]
#[repr(C)]
pub(super) struct OverflowEntry {
    key: u64,
    pub(super) expires_tick: u64,
    next: u32,
    pub(super) faces: u16,
    pub(super) collided: u8,
    occupied: u8,
}

const _: () = assert!(size_of::<OverflowEntry>() == 24);

/// The table.
pub(super) struct Overflow {
    entries: PageArray<OverflowEntry>,
    /// A power of two of chains.
    heads: PageArray<u32>,
    len: usize,
    free: u32,
    /// Entries up to this number were ever used.
    used: u32,
}

impl OverflowEntry {
    /// Its segment and class.
    pub(super) fn class(&self) -> (usize, Class) {
        ((self.key >> SEGMENT_AT) as usize, Class(self.key & ((1 << SEGMENT_AT) - 1)))
    }

    /// Whether it is in use.
    pub(super) fn is_occupied(&self) -> bool {
        self.occupied != 0
    }
}

impl Overflow {
    /// Room for at most `capacity_entries` entries.
    pub(super) fn new(capacity_entries: u32, pages: PageSize) -> io::Result<Self> {
        let chains = (capacity_entries as usize).max(1).next_power_of_two();
        Ok(Self {
            entries: PageArray::zeroed(capacity_entries as usize, pages)?,
            heads: PageArray::zeroed(chains, pages)?,
            len: 0,
            free: NONE,
            used: 0,
        })
    }

    /// How many entries there are, expired ones included until they are removed.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many there can be.
    pub(super) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no room.
    pub(super) fn is_full(&self) -> bool {
        self.len == self.entries.len()
    }

    /// The place of the entry of this class, expired or not.
    pub(super) fn find(&self, segment: usize, class: Class) -> Option<usize> {
        let key = key(segment, class);
        let mut number = self.heads[self.chain(key)];
        while number != NONE {
            let entry = &self.entries[number as usize - 1];
            if entry.key == key {
                return Some(number as usize - 1);
            }
            number = entry.next;
        }
        None
    }

    /// The entry at this place, below the capacity.
    pub(super) fn entry(&self, place: usize) -> &OverflowEntry {
        &self.entries[place]
    }

    /// The entry at this place, to change.
    pub(super) fn entry_mut(&mut self, place: usize) -> &mut OverflowEntry {
        &mut self.entries[place]
    }

    /// Adds an entry for a class that has none. The table must not be full.
    pub(super) fn insert(&mut self, segment: usize, class: Class, faces: u16, expires_tick: u64) {
        let number = if self.free != NONE {
            let number = self.free;
            self.free = self.entries[number as usize - 1].next;
            number
        } else {
            self.used += 1;
            self.used
        };
        let key = key(segment, class);
        let chain = self.chain(key);
        let next = self.heads[chain];
        self.entries[number as usize - 1] = OverflowEntry { key, expires_tick, next, faces, collided: 0, occupied: 1 };
        self.heads[chain] = number;
        self.len += 1;
    }

    /// Removes the entry at this place, which must be occupied.
    pub(super) fn remove(&mut self, place: usize) {
        let number = place as u32 + 1;
        let OverflowEntry { key, next, .. } = self.entries[place];
        let chain = self.chain(key);
        let mut before = self.heads[chain];
        if before == number {
            self.heads[chain] = next;
        } else {
            while self.entries[before as usize - 1].next != number {
                before = self.entries[before as usize - 1].next;
            }
            self.entries[before as usize - 1].next = next;
        }
        self.entries[place] = OverflowEntry { next: self.free, ..OverflowEntry::zeroed() };
        self.free = number;
        self.len -= 1;
    }

    /// Bytes of memory, as allocated.
    pub(super) fn bytes(&self) -> usize {
        self.entries.mapped_bytes() + self.heads.mapped_bytes()
    }

    fn chain(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.heads.len() - 1)
    }
}

#[inline]
fn key(segment: usize, class: Class) -> u64 {
    (segment as u64) << SEGMENT_AT | class.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_equals_a_map() {
        let mut overflow = Overflow::new(50, PageSize::Base).unwrap();
        let mut map = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(3);
        let mut refused = 0;
        for _ in 0..20_000 {
            let (segment, class) = (random.usize(..16), Class(random.u64(..6) << 45 | random.u64(..2)));
            match (overflow.find(segment, class), map.get(&(segment, class.0))) {
                (Some(place), Some(&faces)) => {
                    assert_eq!((overflow.entry(place).faces, overflow.entry(place).class()), (faces, (segment, class)));
                    if random.bool() {
                        overflow.remove(place);
                        map.remove(&(segment, class.0));
                    }
                }
                (None, None) => {
                    let faces = random.u16(..);
                    assert_eq!(overflow.is_full(), map.len() == 50);
                    if overflow.is_full() {
                        refused += 1;
                    } else {
                        overflow.insert(segment, class, faces, 9);
                        map.insert((segment, class.0), faces);
                    }
                }
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
            assert_eq!(overflow.len(), map.len());
        }
        assert!(refused > 100);
        for &(segment, class) in map.keys() {
            overflow.remove(overflow.find(segment, Class(class)).unwrap());
        }
        assert!(overflow.len() == 0 && overflow.heads.iter().all(|&head| head == NONE));
    }
}
