//! Arena: keeps byte strings of any length in one array.
//!
//! Source: Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems" (2004). A bitmap
//! names the size classes that have free blocks. Free neighbours are joined at once. Every operation takes
//! constant time.
//!
//! Deviations: blocks are multiples of [`UNIT_BYTES`], named by a 32-bit number of units. A block's size is
//! rounded up to its class, so the hole of a freed block fits the next block of that class. The unused end
//! of the arena is not a block. A block that is freed next to this end becomes part of it.
//!
//! ```text
//! block in use:  | units | units before, if free | bytes …                  |
//! free block:    | units | 0                     | newer | older | …         |
//!                0       4                       8       12     16
//! ```
//!
//! A block stores the size of the block before it, if that one is free (0 = it is in use). Two free blocks
//! are never neighbours. The uppermost bit of `units` is set if the block itself is free. The free blocks
//! of a class form a list, newest first.
//!
//! Cost: an allocation reads 1 line: the block's first, which the owner writes anyway. It also writes the
//! head of the following block, most often in the block's last line. Freeing a block costs the same, and 2
//! lines of list neighbours for each free block that it is joined with.
//! Bytes: a block takes 8 bytes of header. Rounding adds less than 16 bytes to a block below 256 bytes, and
//! at most 1/16 to a larger one.
//! Full: [`Arena::allocate`] returns `None` if there is no room at the end and no hole of the class or a
//! larger one. Scattered holes can cause that even if their sum would be enough. So the owner makes the
//! arena a little larger than it needs.
//! Writers: the owner.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch_lines;
use crate::slab::NIL;
use std::io;

/// Bytes of a unit.
pub const UNIT_BYTES: usize = 16;
/// The most units: a size needs a bit less than a word.
const MAX_UNITS: u64 = 1 << 31;
const HEADER_BYTES: usize = 8;
/// A block for more bytes could not be rounded up.
const LONGEST_BYTES: usize = (FREE as usize / 2 - 1) * UNIT_BYTES - HEADER_BYTES;

/// Sizes below this many units have a class each; from there on, every doubling has this many classes.
const CLASSES_PER_DOUBLING: u32 = 16;
const CLASSES: usize = class_of((MAX_UNITS - 1) as u32) + 1;
const FREE: u32 = 1 << 31;

/// Words of a block's first unit.
const UNITS: usize = 0;
const UNITS_BEFORE: usize = 1;
const NEWER: usize = 2;
const OLDER: usize = 3;

/// Byte strings of any length, given out and taken back by number.
pub struct Arena {
    units: PageArray<[u32; UNIT_BYTES / 4]>,
    /// Blocks, in use or free, are below this. The rest was never used, or was freed and joined the unused
    /// end.
    end: u32,
    /// The newest free block of each class.
    newest: [u32; CLASSES],
    occupied: [u64; CLASSES.div_ceil(64)],
}

impl Arena {
    /// An arena of `bytes` bytes, at most 32 GiB.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(bytes: u64, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            units: PageArray::zeroed(units_within(bytes), pages)?,
            end: 0,
            newest: [NIL; CLASSES],
            occupied: [0; CLASSES.div_ceil(64)],
        })
    }

    /// From now on it grows on transparent pages where too few explicit ones are reserved.
    pub fn or_transparent(self) -> Self {
        Self { units: self.units.or_transparent(), ..self }
    }

    /// Makes room for `bytes` bytes (at most 32 GiB), if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the room stays as it was.
    pub fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.units.grow(units_within(bytes))
    }

    /// Bytes of all blocks so far, free ones included.
    pub fn used_bytes(&self) -> u64 {
        u64::from(self.end) * UNIT_BYTES as u64
    }

    /// Keeps a copy of `bytes`; `None` = no room.
    pub fn allocate(&mut self, bytes: &[u8]) -> Option<u32> {
        let units = units_for(bytes.len())?;
        let at = match self.take_free(units) {
            Some(at) => at,
            None => self.extend(units)?,
        };
        let start = at as usize * UNIT_BYTES + HEADER_BYTES;
        let place = &mut bytemuck::cast_slice_mut::<_, u8>(&mut self.units)[start..][..bytes.len()];
        // N.B. Non-temporal stores were slower in a throw-away measurement that left no record (SSE2,
        // 8,000-byte Data, store always evicting, the whole router).
        place.copy_from_slice(bytes);
        Some(at)
    }

    /// Keeps a copy of `bytes` in a block in use, in place of what it held, if the block has the size of a
    /// new block for them: `needed_bytes`, by [`block_bytes`].
    #[inline(always)]
    pub fn overwrite(&mut self, at: u32, bytes: &[u8], needed_bytes: u64) -> bool {
        let Some(block) = self.units.get_mut(at as usize..) else { return false };
        if block.first().is_none_or(|unit| u64::from(unit[UNITS]) * UNIT_BYTES as u64 != needed_bytes) {
            return false;
        }
        let place = bytemuck::cast_slice_mut::<_, u8>(block).get_mut(HEADER_BYTES..HEADER_BYTES + bytes.len());
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }

    /// The `len` bytes that were given to [`Arena::allocate`].
    #[inline]
    pub fn get(&self, at: u32, len: usize) -> &[u8] {
        let start = at as usize * UNIT_BYTES + HEADER_BYTES;
        &bytemuck::cast_slice(&self.units)[start..][..len]
    }

    /// The bytes that were given to [`Arena::allocate`], and whatever comes after them. For callers that
    /// keep the length in the block.
    #[inline(always)]
    pub fn get_from(&self, at: u32) -> &[u8] {
        &bytemuck::cast_slice(&self.units)[at as usize * UNIT_BYTES + HEADER_BYTES..]
    }

    /// The same bytes, to change. The caller must not change what comes after its own bytes.
    pub fn get_from_mut(&mut self, at: u32) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.units)[at as usize * UNIT_BYTES + HEADER_BYTES..]
    }

    /// Frees all of the block but its first `bytes` bytes.
    pub fn shorten(&mut self, at: u32, bytes: usize) {
        let (units, had) = (units_for(bytes).unwrap_or(u32::MAX), self.units[at as usize][UNITS]);
        if units < had {
            self.units[at as usize][UNITS] = units;
            self.units[(at + units) as usize] = [had - units, 0, 0, 0];
            self.free(at + units);
        }
    }

    /// Bytes mapped.
    pub fn bytes(&self) -> usize {
        self.units.mapped_bytes()
    }

    /// Begins to fetch the first `lines` lines of a block, wherever `at` came from.
    #[inline]
    pub fn prefetch(&self, at: u32, lines: usize) {
        if let Some(unit) = self.units.get(at as usize) {
            prefetch_lines(unit, lines);
        }
    }

    /// Gives a block back.
    pub fn free(&mut self, at: u32) {
        let [units, units_before, ..] = self.units[at as usize];
        debug_assert!(units & FREE == 0 && units > 0, "block {at} is freed twice");
        let (mut start, mut units) = (at, units);
        if units_before != 0 {
            start -= units_before;
            units += units_before;
            self.unlink(start);
        }
        let following = start + units;
        if following < self.end && self.units[following as usize][UNITS] & FREE != 0 {
            units += self.units[following as usize][UNITS] & !FREE;
            self.unlink(following);
        }
        if start + units == self.end {
            self.end = start;
        } else {
            self.link(start, units);
        }
    }

    /// A free block of exactly `units`, cut from a larger one if need be, marked as in use.
    fn take_free(&mut self, units: u32) -> Option<u32> {
        let class = self.occupied_from(class_of(units))?;
        let at = self.newest[class];
        let found = self.units[at as usize][UNITS] & !FREE;
        self.unlink(at);
        if found > units {
            self.link(at + units, found - units);
        } else {
            self.set_before(at + units, 0);
        }
        self.units[at as usize] = [units, 0, 0, 0];
        Some(at)
    }

    fn extend(&mut self, units: u32) -> Option<u32> {
        if self.units.len() - (self.end as usize) < units as usize {
            return None;
        }
        let at = self.end;
        self.end += units;
        self.units[at as usize] = [units, 0, 0, 0];
        Some(at)
    }

    /// The first class from `class` on that has a free block.
    fn occupied_from(&self, class: usize) -> Option<usize> {
        let first = class / 64;
        let mut bits = self.occupied[first] & (u64::MAX << (class % 64));
        for word in first..self.occupied.len() {
            if word > first {
                bits = self.occupied[word];
            }
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
        }
        None
    }

    /// Makes a free block of the `units` units at `at`; its neighbours are in use.
    fn link(&mut self, at: u32, units: u32) {
        let class = class_of(units);
        let older = std::mem::replace(&mut self.newest[class], at);
        self.units[at as usize] = [units | FREE, 0, NIL, older];
        if older != NIL {
            self.units[older as usize][NEWER] = at;
        }
        self.occupied[class / 64] |= 1 << (class % 64);
        self.set_before(at + units, units);
    }

    /// Takes a free block out of the list of its class.
    fn unlink(&mut self, at: u32) {
        let [units, _, newer, older] = self.units[at as usize];
        let class = class_of(units & !FREE);
        // The newest block's `newer` is not kept current, so that taking the block touches no other.
        if self.newest[class] == at {
            self.newest[class] = older;
            if older == NIL {
                self.occupied[class / 64] &= !(1 << (class % 64));
            }
            return;
        }
        self.units[newer as usize][OLDER] = older;
        if older != NIL {
            self.units[older as usize][NEWER] = newer;
        }
    }

    fn set_before(&mut self, at: u32, units: u32) {
        if at < self.end {
            self.units[at as usize][UNITS_BEFORE] = units;
        }
    }
}

/// The bytes that a block for `bytes` bytes takes in an arena.
#[inline(always)]
pub fn block_bytes(bytes: usize) -> u64 {
    units_for(bytes).map_or(u64::MAX / 4, |units| u64::from(units) * UNIT_BYTES as u64)
}

fn units_within(bytes: u64) -> usize {
    (bytes / UNIT_BYTES as u64).min(MAX_UNITS) as usize
}

/// The units of a block for this many bytes: the smallest size of its class.
#[inline(always)]
fn units_for(bytes: usize) -> Option<u32> {
    if bytes > LONGEST_BYTES {
        return None;
    }
    let units = (bytes + HEADER_BYTES).div_ceil(UNIT_BYTES) as u32;
    // Below a doubling's classes the step is 1. It is a power of two, so a mask rounds up.
    let in_step = ((1_u32 << (units | CLASSES_PER_DOUBLING).ilog2()) >> CLASSES_PER_DOUBLING.ilog2()) - 1;
    Some((units + in_step) & !in_step)
}

/// The class of a block. `units_for` asks only for the smallest size of a class, so every block of a class
/// serves every request of it.
const fn class_of(units: u32) -> usize {
    if units < CLASSES_PER_DOUBLING {
        return units as usize;
    }
    let shift = units.ilog2() - CLASSES_PER_DOUBLING.ilog2();
    (shift * CLASSES_PER_DOUBLING + (units >> shift)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn size_classes_are_in_order_and_rounding_is_bounded() {
        let mut last = 0;
        for bytes in (0..100_000).chain([10_000_000, 1 << 30]) {
            let units = units_for(bytes).unwrap();
            let class = class_of(units);
            assert!(class >= last && (units == 1 || class_of(units - 1) < class));
            assert!(units as usize * UNIT_BYTES >= bytes + HEADER_BYTES);
            assert!(units as usize * UNIT_BYTES <= (bytes + 24) + (bytes + 24) / 16 + UNIT_BYTES);
            last = class;
        }
        assert_eq!((units_for(usize::MAX), units_for(1 << 36)), (None, None));
    }

    /// Walks the blocks from end to end: sizes add up, neighbours know each other, no two
    /// free ones touch, and the lists hold exactly the free ones.
    fn check(arena: &Arena) {
        let (mut at, mut before, mut free) = (0, 0, Vec::new());
        while at < arena.end {
            let [units, units_before, ..] = arena.units[at as usize];
            assert_eq!(units_before, before, "at {at}");
            before = 0;
            if units & FREE != 0 {
                assert_eq!(units_before, 0, "two free blocks side by side");
                before = units & !FREE;
                free.push(at);
            }
            at += units & !FREE;
        }
        assert_eq!((at, before), (arena.end, 0), "a free block at the end belongs to the end");
        let mut listed = Vec::new();
        for class in 0..CLASSES {
            let mut at = arena.newest[class];
            assert_eq!(at != NIL, arena.occupied[class / 64] & (1 << (class % 64)) != 0);
            while at != NIL {
                assert_eq!(class_of(arena.units[at as usize][UNITS] & !FREE), class);
                listed.push(at);
                at = arena.units[at as usize][OLDER];
            }
        }
        listed.sort();
        assert_eq!(listed, free);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_keep_their_bytes_and_the_arena_its_shape(
            operations in prop::collection::vec((prop_oneof![0..40_usize, 0..2000_usize], any::<Option<prop::sample::Index>>()), 1..200),
        ) {
            let mut arena = Arena::new(12_000, PageSize::Base).unwrap();
            let mut held: Vec<(u32, Vec<u8>)> = Vec::new();
            for (number, (bytes, freed)) in operations.into_iter().enumerate() {
                match freed.filter(|_| !held.is_empty()) {
                    Some(index) if number % 3 == 0 => {
                        let place = index.index(held.len());
                        let (at, former) = &mut held[place];
                        let again = vec![number as u8; bytes];
                        if units_for(bytes) == units_for(former.len()) {
                            *former = again.clone();
                        }
                        prop_assert_eq!(arena.overwrite(*at, &again, block_bytes(bytes)), *former == again);
                    }
                    Some(index) => arena.free(held.swap_remove(index.index(held.len())).0),
                    None => {
                        let bytes = vec![number as u8; bytes];
                        match arena.allocate(&bytes) {
                            Some(at) => held.push((at, bytes)),
                            None => {
                                let room = arena.units.len() as u32 - arena.end;
                                prop_assert!(room < units_for(bytes.len()).unwrap());
                            }
                        }
                    }
                }
                check(&arena);
                prop_assert!(held.iter().all(|(at, bytes)| arena.get(*at, bytes.len()) == bytes));
            }
            held.into_iter().for_each(|(at, _)| arena.free(at));
            prop_assert_eq!(arena.end, 0, "what is empty is whole again");
        }
    }

    #[test]
    fn freed_blocks_are_reused() {
        let mut arena = Arena::new(4096, PageSize::Base).unwrap();
        let first = arena.allocate(&[1; 200]).unwrap();
        let second = arena.allocate(&[2; 200]).unwrap();
        arena.shorten(first, 200);
        check(&arena);
        arena.shorten(first, 20);
        check(&arena);
        assert_eq!((&arena.get_from(first)[..20], arena.get(second, 200)), (&[1; 20][..], &[2; 200][..]));
        let between = arena.allocate(&[3; 120]).unwrap();
        assert!(first < between && between < second);
        arena.free(between);
        arena.free(first);
        arena.shorten(second, 0);
        arena.get_from_mut(second)[0] = 9;
        check(&arena);
        arena.free(second);
        assert_eq!((arena.end, arena.bytes()), (0, 4096));
    }

    #[test]
    fn an_arena_grows() {
        let mut arena = Arena::new(64, PageSize::Base).unwrap();
        let first = arena.allocate(&[1; 40]).unwrap();
        assert_eq!(arena.allocate(&[2; 40]), None);
        arena.grow(1 << 20).unwrap();
        let second = arena.allocate(&[2; 40]).unwrap();
        assert_eq!((arena.get(first, 40), arena.get(second, 40)), (&[1; 40][..], &[2; 40][..]));
        assert_eq!(arena.allocate(&vec![0; 2 << 20]), None);
        check(&arena);
    }
}
