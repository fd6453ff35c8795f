//! Bucket: one cache line with eight entries of 44 bits, field by field.
//!
//! Source: Yuan15 Fig. 5.3 and §5.4.2. Symbols: E is [`BUCKET_ENTRIES`]; occupy, collision, fingerprint (w),
//! expiration (t = 10 bits), face list (n = 16 bits).
//!
//! ```text
//!  octet 0             16           32                 40                  42         43
//!      │ fingerprint × 8 │ faces × 8 │ expiry, lower 8 × 8 │ expiry, upper 2 × 8 │ occupied × 8 │ collided × 8 │
//!  octet 44           48                       52             56
//!      │ visited_tick │ fingerprint, upper 4 × 8 │ overflowed │ spare
//! ```
//!
//! The first 44 octets are the paper's 8 × 44 bits. What stands behind them is ours: the tick of the last visit
//! (see [`super::ticks`]), the bits by which segments lengthen a fingerprint (§5.4.3), and how many names of this
//! bucket are in the overflow table, so that it is asked only for those that may be there.
//!
//! Cost: 1 line. Who may write: the owner of the table.

use super::ticks::MAX_LIFETIME_TICKS;
use crate::tag_compare::equal_tags;
use bytemuck::Zeroable;
use std::mem::offset_of;

/// E of the paper.
pub(super) const BUCKET_ENTRIES: usize = 8;
const ENTRY_BITS: usize = 44;
/// Multiplied by these, the 2 upper bits of each entry's expiry come to be the upper ones of 16.
const EXPIRY_HIGH_SHIFTS: [u16; BUCKET_ENTRIES] = [1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1];

/// Fig. 5.3.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    fingerprints: [u16; BUCKET_ENTRIES],
    faces: [u16; BUCKET_ENTRIES],
    expiry_low: [u8; BUCKET_ENTRIES],
    expiry_high: u16,
    occupied: u8,
    collided: u8,
    visited_tick: u32,
    fingerprints_high: u32,
    overflowed: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);
const _: () = assert!(offset_of!(Bucket, visited_tick) == BUCKET_ENTRIES * ENTRY_BITS / 8);

impl Bucket {
    /// One bit per occupied entry that is expired at `now_tick`, which is no earlier than the last visit.
    #[inline(always)]
    pub(super) fn expired(&self, now_tick: u32) -> u8 {
        let elapsed = now_tick.wrapping_sub(self.visited_tick).min(MAX_LIFETIME_TICKS.into()) as u16;
        if elapsed == 0 {
            return 0;
        }
        let mut left = [0; BUCKET_ENTRIES];
        for (entry, left) in left.iter_mut().enumerate() {
            *left = self.life_at_visit(entry).saturating_sub(elapsed);
        }
        equal_eight(left, 0) & self.occupied
    }

    /// Whether this entry is occupied and not expired.
    #[inline(always)]
    pub(super) fn is_live(&self, entry: usize, now_tick: u32) -> bool {
        self.occupied >> entry & 1 != 0
            && u32::from(self.life_at_visit(entry)) > now_tick.wrapping_sub(self.visited_tick)
    }

    /// Makes these entries vacant. Theirs must be all that are expired: the bucket counts as visited.
    #[inline(always)]
    pub(super) fn reset(&mut self, entries: u8, now_tick: u32) {
        self.occupied &= !entries;
        self.visited_tick = now_tick;
    }

    /// The occupied entry with this fingerprint, expired or not: there is one at most.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: u32) -> Option<usize> {
        let mut equal = equal_eight(self.fingerprints, fingerprint as u16) & self.occupied;
        while equal != 0 {
            let entry = equal.trailing_zeros();
            if self.fingerprints_high >> (4 * entry) & 0xf == fingerprint >> 16 {
                return Some(entry as usize);
            }
            equal &= equal - 1;
        }
        None
    }

    /// How many entries are occupied.
    #[inline(always)]
    pub(super) fn load(&self) -> u32 {
        self.occupied.count_ones()
    }

    /// Fills a vacant entry of a bucket in which nothing is expired and which is not full.
    #[inline(always)]
    pub(super) fn put(&mut self, fingerprint: u32, faces: u16, now_tick: u32, lifetime_ticks: u16) {
        let entry = self.occupied.trailing_ones() as usize;
        self.occupied |= 1 << entry;
        self.collided &= !(1 << entry);
        self.fingerprints[entry] = fingerprint as u16;
        let high_at = 4 * entry;
        self.fingerprints_high = self.fingerprints_high & !(0xf << high_at) | (fingerprint >> 16) << high_at;
        self.faces[entry] = faces;
        self.visited_tick = now_tick;
        self.set_expiry(entry, now_tick.wrapping_add(lifetime_ticks.into()));
    }

    /// Lets an entry live for `lifetime_ticks` from now at least. Nothing in the bucket may be expired.
    #[inline(always)]
    pub(super) fn prolong(&mut self, entry: usize, now_tick: u32, lifetime_ticks: u16) {
        let left = self.life_at_visit(entry) - now_tick.wrapping_sub(self.visited_tick) as u16;
        self.visited_tick = now_tick;
        if lifetime_ticks > left {
            self.set_expiry(entry, now_tick.wrapping_add(lifetime_ticks.into()));
        }
    }

    /// Deletion: the bit alone (§5.4.2).
    #[inline(always)]
    pub(super) fn vacate(&mut self, entry: usize) {
        self.occupied &= !(1 << entry);
    }

    #[inline(always)]
    pub(super) fn is_collided(&self, entry: usize) -> bool {
        self.collided >> entry & 1 != 0
    }

    #[inline(always)]
    pub(super) fn set_collided(&mut self, entry: usize) {
        self.collided |= 1 << entry;
    }

    #[inline(always)]
    pub(super) fn faces(&self, entry: usize) -> u16 {
        self.faces[entry]
    }

    #[inline(always)]
    pub(super) fn set_faces(&mut self, entry: usize, faces: u16) {
        self.faces[entry] = faces;
    }

    /// Clears bits of the face lists of all entries.
    #[inline(always)]
    pub(super) fn clear_faces(&mut self, bits: u16) {
        for faces in &mut self.faces {
            *faces &= !bits;
        }
    }

    /// How many names whose bucket in the first subtable this is are in the overflow table.
    #[inline(always)]
    pub(super) fn overflowed(&self) -> u32 {
        self.overflowed
    }

    #[inline(always)]
    pub(super) fn set_overflowed(&mut self, names: u32) {
        self.overflowed = names;
    }

    /// Ticks that an entry had left at the last visit: 1 or more if it is occupied.
    #[inline(always)]
    fn life_at_visit(&self, entry: usize) -> u16 {
        let high = self.expiry_high.wrapping_mul(EXPIRY_HIGH_SHIFTS[entry]) >> 14;
        let expiry = u16::from(self.expiry_low[entry]) | high << 8;
        expiry.wrapping_sub(self.visited_tick as u16) & MAX_LIFETIME_TICKS
    }

    #[inline(always)]
    fn set_expiry(&mut self, entry: usize, tick: u32) {
        let expiry = tick as u16 & MAX_LIFETIME_TICKS;
        self.expiry_low[entry] = expiry as u8;
        let high_at = 2 * entry;
        self.expiry_high = self.expiry_high & !(3 << high_at) | (expiry >> 8) << high_at;
    }
}

/// One bit for each of the eight that equals `value`.
#[inline(always)]
fn equal_eight(values: [u16; BUCKET_ENTRIES], value: u16) -> u8 {
    let [first, second]: [u64; 2] = bytemuck::cast(values);
    equal_tags([first, second, 0], value) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_neighbours_do_not_touch() {
        let mut bucket = Bucket::zeroed();
        for entry in 0..8_u32 {
            bucket.put(entry << 16 | 0x8000 | entry, 0x100 + entry as u16, 1000, 1 + 140 * entry as u16);
        }
        assert_eq!(bucket.load(), 8);
        for entry in (0..8).rev() {
            let fingerprint = (entry as u32) << 16 | 0x8000 | entry as u32;
            assert_eq!(bucket.find(fingerprint), Some(entry));
            assert_eq!(bucket.find(fingerprint ^ 0x1_0000), None, "the upper four bits tell");
            assert_eq!(bucket.faces(entry), 0x100 + entry as u16);
            let lifetime = 1 + 140 * entry as u32;
            assert!(bucket.is_live(entry, 1000 + lifetime - 1) && !bucket.is_live(entry, 1000 + lifetime));
            assert_eq!(bucket.expired(1000 + lifetime), (0xff_u16 >> (7 - entry)) as u8);
            bucket.set_collided(entry);
            bucket.vacate(entry);
            assert_eq!((bucket.find(fingerprint), bucket.load()), (None, entry as u32));
        }
        assert!((0..8).all(|entry| bucket.is_collided(entry)));
        bucket.put(1, 2, 1000, 5);
        assert!(!bucket.is_collided(0), "who comes next is not collided");
    }

    #[test]
    fn a_bucket_left_alone_for_turns_of_the_timer_is_read_right() {
        for visited in [0, 1023, 1024, u32::MAX - 3] {
            let mut bucket = Bucket::zeroed();
            bucket.put(7, 1, visited, 1023);
            bucket.put(8, 1, visited, 1);
            for elapsed in [0, 1, 2, 1022, 1023, 1024, 1025, 2047, 2048, 5000, 1 << 20] {
                let now = visited.wrapping_add(elapsed);
                assert_eq!(bucket.expired(now) & 1 != 0, elapsed >= 1023, "{visited} + {elapsed}");
                assert_eq!(bucket.expired(now) & 2 != 0, elapsed >= 1, "{visited} + {elapsed}");
                assert_eq!(bucket.is_live(0, now), elapsed < 1023);
            }
        }
    }

    #[test]
    fn a_life_is_never_shortened() {
        let mut bucket = Bucket::zeroed();
        bucket.put(7, 1, 500, 300);
        bucket.prolong(0, 600, 150);
        assert!(bucket.is_live(0, 799) && !bucket.is_live(0, 800));
        bucket.prolong(0, 700, 1023);
        assert!(bucket.is_live(0, 1722) && !bucket.is_live(0, 1723));
    }
}
