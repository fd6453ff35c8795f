//! Random: evicts an entry chosen at random, each with the same probability.
//!
//! Source: Takemasa19 §5.4 (the eviction behind TinyLFU, and one of those that Filter is compared with). Slots lie in
//! an array without holes: when an entry leaves, the last slot takes its place.
//!
//! ```text
//! slots: | 7 | 3 | 9 | 4 |          number k of the sequence, scaled to 4: the index of a victim
//! ```
//!
//! The random numbers are a sequence in which each number can be computed alone (SplitMix64: Steele, Lea and Flood
//! 2014), so a batch knows its victims in advance. A newcomer draws one number, which holds until an entry is inserted
//! or leaves. The next newcomer draws another one. Otherwise one popular victim would keep out many newcomers.
//!
//! Cost: a hit writes nothing. A victim costs 1 line of the array, prefetched by the batch, and the mark of the last
//! entry in the array, which is moved and in cache. Bytes: an entry takes 4. Writers: the owner.

use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

/// Slots to draw from.
pub struct Random {
    /// The first `len` are slots of entries; each entry's mark has its index here as its place.
    slots: PageArray<u32>,
    len: u32,
    lots: Lots,
    drawn: Option<Drawn>,
}

/// The number drawn for a newcomer.
#[derive(Clone, Copy)]
struct Drawn {
    newcomer_hash: u64,
    index: u32,
}

impl Random {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, seed: u64, pages: PageSize) -> io::Result<Self> {
        let slots = PageArray::zeroed(entries as usize, pages)?;
        Ok(Self { slots, len: 0, lots: Lots { seed, next: 0 }, drawn: None })
    }
}

impl Eviction for Random {
    #[inline]
    fn hit(&mut self, _: &mut impl Marks, _: u32) {}

    #[inline]
    fn victim(&mut self, _: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let index = match self.drawn {
            Some(drawn) if drawn.newcomer_hash == newcomer.hash => drawn.index,
            _ => self.lots.draw(self.len),
        };
        self.drawn = Some(Drawn { newcomer_hash: newcomer.hash, index });
        Some(self.slots[index as usize])
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.slots[self.len as usize] = slot;
        marks.mark_mut(slot).place = self.len;
        self.len += 1;
        self.drawn = None;
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.len -= 1;
        let (place, last) = (marks.mark(slot).place, self.slots[self.len as usize]);
        self.slots[place as usize] = last;
        marks.mark_mut(last).place = place;
        self.drawn = None;
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        if self.len > 0 {
            let index = |ahead: usize| self.lots.peek(ahead as u64, self.len) as usize;
            slots.extend((0..count).map(|ahead| self.slots[index(ahead)]));
            (count..2 * count).for_each(|ahead| prefetch(&self.slots[index(ahead)]));
        }
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.slots.grow(entries as usize)
    }

    fn bytes(&self) -> usize {
        self.slots.mapped_bytes()
    }
}

/// SplitMix64: number `next` of the sequence of `seed`.
struct Lots {
    seed: u64,
    next: u64,
}

impl Lots {
    #[inline]
    fn draw(&mut self, below: u32) -> u32 {
        let lot = self.peek(0, below);
        self.next += 1;
        lot
    }

    /// The number that [`Lots::draw`] will give after `ahead` others.
    #[inline]
    fn peek(&self, ahead: u64, below: u32) -> u32 {
        let number = self.next.wrapping_add(ahead + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.seed);
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ mixed >> 31) * u128::from(below)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator, as its authors' program prints them for seed 1234567.
    #[test]
    fn random_numbers_are_those_of_split_mix() {
        let mut lots = Lots { seed: 1_234_567, next: 0 };
        let expected = [6_457_827_717_110_365_317_u64, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for number in expected {
            assert_eq!(lots.peek(0, u32::MAX), ((u128::from(number) * u128::from(u32::MAX)) >> 64) as u32);
            lots.draw(1);
        }
    }

    #[test]
    fn random_numbers_are_evenly_distributed() {
        let mut lots = Lots { seed: 1, next: 0 };
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[lots.draw(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
