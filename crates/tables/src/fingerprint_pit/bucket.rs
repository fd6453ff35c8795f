//! Bucket: one cache line with eight entries of 44 bits, field by field.
//!
//! Source: Yuan15 Fig. 5.3 and §5.4.2. Symbols: E is [`BUCKET_ENTRIES`]; occupy, collision, fingerprint (w),
//! expiration (t = 10 bits), face list (n = 16 bits).
//!
//! ```text
//!  byte 0             16           32                 40                  42         43
//!      │ fingerprint × 8 │ faces × 8 │ expiry, lower 8 × 8 │ expiry, upper 2 × 8 │ occupied × 8 │ collided × 8 │
//!  byte 44              48                       52               60
//!      │ earliest_expiry │ fingerprint, upper 4 × 8 │ overflowed × 8 │ spare
//! ```
//!
//! The first 44 bytes are the paper's 8 × 44 bits. The rest is ours: a tick before which nothing expires (see
//! [`super::ticks`]), the bits by which segments lengthen a fingerprint (§5.4.3), and counts of overflow entries. A
//! count is the number of overflow entries whose classes belong to this bucket and agree in their lowest three bits. At
//! 75 % and d = 2 an eighth of all buckets have a class in the overflow table. Without the counts every eighth Interest
//! would search that table, mostly in vain.
//!
//! N.B. Buckets without gaps would take a quarter to a third less memory, but five of eight would cross a line. They
//! were tried at 48 bytes (44 and the tick), 16 M entries, d = 4, on a busy machine. In batches an operation took 140
//! to 147 ns, against 130 to 139 with each bucket in one line. One by one it took 155 to 169 against 171 to 181. The
//! result in batches decided.
//!
//! Cost: a bucket is 1 line. Writers: the owner of the table.

use super::class::Class;
use super::ticks::MAX_LIFETIME_TICKS;
use crate::tag_compare::equal_tags;
use bytemuck::Zeroable;
use std::mem::offset_of;

/// E of the paper.
pub(super) const BUCKET_ENTRIES: usize = 8;
const ENTRY_BITS: usize = 44;
/// Counts of classes in the overflow table.
const OVERFLOW_COUNTS: usize = 8;
/// The bucket of Fig. 5.3.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    fingerprints: [u16; BUCKET_ENTRIES],
    faces: [u16; BUCKET_ENTRIES],
    expiry_low: [u8; BUCKET_ENTRIES],
    expiry_high: u16,
    occupied: u8,
    collided: u8,
    earliest_expiry: u32,
    fingerprints_high: u32,
    overflowed: [u8; OVERFLOW_COUNTS],
}

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);
const _: () = assert!(offset_of!(Bucket, earliest_expiry) == BUCKET_ENTRIES * ENTRY_BITS / 8);

impl Bucket {
    /// Whether an entry may be expired; if false, none is.
    #[inline(always)]
    pub(super) fn is_due(&self, now_tick: u32) -> bool {
        now_tick.wrapping_sub(self.earliest_expiry).cast_signed() >= 0
    }

    /// One bit per occupied entry that is expired.
    pub(super) fn expired(&self, now_tick: u32) -> u8 {
        let occupied = (0..BUCKET_ENTRIES).filter(|entry| self.occupied >> entry & 1 != 0);
        occupied.filter(|&entry| !self.is_live(entry, now_tick)).map(|entry| 1 << entry).sum()
    }

    /// Vacates the entries that [`Bucket::expired`] names. The bucket is then not due until one of the
    /// others expires.
    pub(super) fn reset(&mut self, expired: u8, now_tick: u32) {
        self.occupied &= !expired;
        let occupied = (0..BUCKET_ENTRIES).filter(|entry| self.occupied >> entry & 1 != 0);
        let least = occupied.map(|entry| self.expiry_after_earliest(entry)).min();
        self.earliest_expiry = least.map_or(now_tick.wrapping_add(1), |least| self.earliest_expiry.wrapping_add(least));
    }

    /// Whether this occupied entry is not expired.
    #[inline(always)]
    pub(super) fn is_live(&self, entry: usize, now_tick: u32) -> bool {
        !self.is_due(now_tick) || self.expiry_after_earliest(entry) > now_tick.wrapping_sub(self.earliest_expiry)
    }

    /// One bit for the occupied entry with this fingerprint, expired or not; at most one subtable has it.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: u32) -> u8 {
        let [first, second]: [u64; 2] = bytemuck::cast(self.fingerprints);
        let equal = equal_tags([first, second, 0], fingerprint as u16) as u8 & self.occupied;
        let high = fingerprint >> 16;
        // With one segment there are no upper bits, and no comparison of them.
        if self.fingerprints_high | high == 0 { equal } else { equal & self.equal_high(high) }
    }

    /// One bit for each entry with these upper four bits of a fingerprint.
    fn equal_high(&self, high: u32) -> u8 {
        let differ = self.fingerprints_high ^ (high * 0x1111_1111);
        let mut equal = !(differ | differ >> 1 | differ >> 2 | differ >> 3) & 0x1111_1111;
        equal = (equal | equal >> 3) & 0x0303_0303;
        equal = (equal | equal >> 6) & 0x000f_000f;
        (equal | equal >> 12) as u8
    }

    /// How many entries are occupied.
    #[inline(always)]
    pub(super) fn load(&self) -> u32 {
        self.occupied.count_ones()
    }

    /// Fills a vacant entry of a bucket that is not due and not full.
    #[inline(always)]
    pub(super) fn put(&mut self, fingerprint: u32, faces: u16, now_tick: u32, lifetime_ticks: u16) {
        let entry = self.occupied.trailing_ones() as usize;
        let expiry = now_tick.wrapping_add(lifetime_ticks.into());
        if self.occupied == 0 || !self.is_due(expiry) {
            self.earliest_expiry = expiry;
        }
        self.occupied |= 1 << entry;
        self.collided &= !(1 << entry);
        self.fingerprints[entry] = fingerprint as u16;
        let high_at = 4 * entry;
        self.fingerprints_high = self.fingerprints_high & !(0xf << high_at) | (fingerprint >> 16) << high_at;
        self.faces[entry] = faces;
        self.set_expiry(entry, expiry);
    }

    /// Lets an entry of a bucket that is not due live for at least `lifetime_ticks` from now.
    #[inline(always)]
    pub(super) fn prolong(&mut self, entry: usize, now_tick: u32, lifetime_ticks: u16) {
        let left = self.earliest_expiry.wrapping_sub(now_tick) + self.expiry_after_earliest(entry);
        if u32::from(lifetime_ticks) > left {
            self.set_expiry(entry, now_tick.wrapping_add(lifetime_ticks.into()));
        }
    }

    /// Deletion: clears only the occupied bit (§5.4.2).
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

    /// Whether `class` may be in the overflow table; this is its bucket in the first subtable.
    #[inline(always)]
    pub(super) fn may_have_overflowed(&self, class: Class) -> bool {
        self.overflowed[overflow_count(class)] != 0
    }

    /// Counts one more class there; false if the count is 255 already.
    pub(super) fn count_overflowed(&mut self, class: Class) -> bool {
        let count = &mut self.overflowed[overflow_count(class)];
        let counted = count.checked_add(1);
        *count = counted.unwrap_or(*count);
        counted.is_some()
    }

    /// Counts one class fewer there.
    pub(super) fn uncount_overflowed(&mut self, class: Class) {
        self.overflowed[overflow_count(class)] -= 1;
    }

    /// How many ticks after `earliest_expiry` an occupied entry expires.
    #[inline(always)]
    fn expiry_after_earliest(&self, entry: usize) -> u32 {
        let expiry = u32::from(self.expiry_low[entry]) | u32::from(self.expiry_high >> (2 * entry) & 3) << 8;
        expiry.wrapping_sub(self.earliest_expiry) & u32::from(MAX_LIFETIME_TICKS)
    }

    #[inline(always)]
    fn set_expiry(&mut self, entry: usize, tick: u32) {
        let expiry = tick as u16 & MAX_LIFETIME_TICKS;
        self.expiry_low[entry] = expiry as u8;
        let high_at = 2 * entry;
        self.expiry_high = self.expiry_high & !(3 << high_at) | (expiry >> 8) << high_at;
    }
}

#[inline(always)]
fn overflow_count(class: Class) -> usize {
    class.0 as usize % OVERFLOW_COUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_neighbours_do_not_touch() {
        let mut bucket = Bucket::zeroed();
        bucket.reset(0, 1000);
        for entry in 0..8_u32 {
            bucket.put(entry << 16 | 0x8000 | entry, 0x100 + entry as u16, 1000, 1 + 140 * entry as u16);
        }
        assert_eq!(bucket.load(), 8);
        for entry in (0..8).rev() {
            let fingerprint = (entry as u32) << 16 | 0x8000 | entry as u32;
            assert_eq!(bucket.find(fingerprint), 1 << entry);
            assert_eq!(bucket.find(fingerprint ^ 0x8_0000), 0, "the upper four bits tell");
            assert_eq!(bucket.faces(entry), 0x100 + entry as u16);
            let lifetime = 1 + 140 * entry as u32;
            assert!(bucket.is_live(entry, 1000 + lifetime - 1) && !bucket.is_live(entry, 1000 + lifetime));
            assert_eq!(bucket.expired(1000 + lifetime), (0xff_u16 >> (7 - entry)) as u8);
            bucket.set_collided(entry);
            bucket.vacate(entry);
            assert_eq!((bucket.find(fingerprint), bucket.load()), (0, entry as u32));
        }
        assert!((0..8).all(|entry| bucket.is_collided(entry)));
        bucket.put(1, 2, 1000, 5);
        assert!(!bucket.is_collided(0), "who comes next is not collided");
    }

    #[test]
    fn a_bucket_left_alone_for_turns_of_the_timer_is_read_right() {
        for filled in [0, 1023, 1024, u32::MAX - 3] {
            for first in [1, 600] {
                let mut bucket = Bucket::zeroed();
                bucket.reset(0, filled);
                bucket.put(7, 1, filled, 1023);
                bucket.put(8, 1, filled, first);
                for elapsed in [0, 1, 2, 599, 600, 601, 1022, 1023, 1024, 1025, 2047, 2048, 5000, 1 << 20] {
                    let now = filled.wrapping_add(elapsed);
                    let expired = u8::from(elapsed >= 1023) | u8::from(elapsed >= first.into()) << 1;
                    assert_eq!(bucket.expired(now), expired, "{filled} + {elapsed}");
                    assert_eq!(bucket.is_due(now), expired != 0);
                    let mut visited = bucket;
                    visited.reset(expired, now);
                    assert!(!visited.is_due(now));
                    assert_eq!(visited.load(), 2 - expired.count_ones());
                }
            }
        }
    }

    #[test]
    fn a_life_is_never_shortened() {
        let mut bucket = Bucket::zeroed();
        bucket.reset(0, 500);
        bucket.put(7, 1, 500, 300);
        bucket.prolong(0, 600, 150);
        assert!(bucket.is_live(0, 799) && !bucket.is_live(0, 800));
        bucket.prolong(0, 700, 1023);
        assert!(bucket.is_live(0, 1722) && !bucket.is_live(0, 1723));
    }

    #[test]
    fn overflow_entries_are_counted_by_the_lowest_three_bits() {
        let mut bucket = Bucket::zeroed();
        for class in (0..255).map(|number| Class(number << 3 | 5)) {
            assert!(bucket.count_overflowed(class) && bucket.may_have_overflowed(class));
        }
        assert!(!bucket.count_overflowed(Class(5)), "255 is as far as a count goes");
        assert!(!bucket.may_have_overflowed(Class(4)));
        (0..255).for_each(|_| bucket.uncount_overflowed(Class(5)));
        assert!(!bucket.may_have_overflowed(Class(5)));
    }
}
