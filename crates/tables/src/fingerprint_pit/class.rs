//! Class: the bucket of a name in each subtable, and its fingerprint there.
//!
//! Source: Yuan15 §5.4.2 with its reference [7], Bonomi et al., "An improved construction for counting Bloom
//! filters" (2006). Symbols: B = buckets of a subtable, w = fingerprint bits, d = subtables, s = segments.
//!
//! A name's *class* is the upper log₂ B + w bits of its hash. Subtable i permutes it: class·aᵢ mod 2^(log₂
//! B + w), with aᵢ odd. The upper log₂ B bits of the result are the bucket, the lower w the fingerprint. So
//! two names that agree in bucket and fingerprint in *one* subtable have one class, and agree in all
//! subtables. With an independent hash per subtable they need not agree in the others. Then Data for one
//! name could find, in some subtable, the entry of another name, although the two did not collide when they
//! were inserted. The Data would remove that entry: a request would be lost, and no mark would show it. An
//! Interest does not see entries of other segments either; [`super::FingerprintPit::satisfy`] handles that
//! case.
//!
//! With n names pending, the class of the next one is taken with probability n/(B·2^w). At n = ld·E·d·B
//! that is the paper's E·d·ld/2^w.

use super::bucket::BUCKET_ENTRIES;

/// Odd, and as irregular in their upper and lower bits as the digits of irrational numbers.
const MULTIPLIERS: [u64; MAX_SUBTABLES] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];
/// The largest d.
pub(super) const MAX_SUBTABLES: usize = 4;
/// The largest log₂ B: with w = 20 a class then has 48 bits, and the segment lies above them.
pub(super) const MAX_BUCKET_BITS: u32 = 28;
/// The largest w.
pub(super) const MAX_FINGERPRINT_BITS: u32 = 20;

const _: () = assert!(MAX_BUCKET_BITS + MAX_FINGERPRINT_BITS <= 56, "a segment's number needs room above a class");

/// What a table knows of a name: it cannot tell names of one class apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(pub(super) u64);

/// The place of a class in one subtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its place in the array of all buckets.
    pub(super) bucket: usize,
    pub(super) fingerprint: u32,
}

/// How many buckets in how many subtables in how many segments, and the permutations.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    multipliers: [u64; MAX_SUBTABLES],
    subtables: usize,
    segments: usize,
    bucket_bits: u32,
    fingerprint_bits: u32,
    class_mask: u64,
    fingerprint_mask: u32,
}

impl Shape {
    /// At least `capacity_entries` in s·d subtables of equal size, a power of two of buckets. `seed`
    /// chooses their permutations. `None` if that is zero or too much.
    pub(super) fn new(
        capacity_entries: u32,
        subtables: usize,
        segments: usize,
        fingerprint_bits: u32,
        seed: u64,
    ) -> Option<Self> {
        if capacity_entries == 0 || !(1..=MAX_FINGERPRINT_BITS).contains(&fingerprint_bits) {
            return None;
        }
        let buckets = (capacity_entries as usize).div_ceil(BUCKET_ENTRIES * subtables * segments).next_power_of_two();
        let bucket_bits = buckets.ilog2();
        let key = seed << 1 | 1; // one more permutation, before all of them
        let multipliers = MULTIPLIERS.map(|multiplier| multiplier.wrapping_mul(key));
        let class_mask = (1 << (bucket_bits + fingerprint_bits)) - 1;
        let fingerprint_mask = (1 << fingerprint_bits) - 1;
        let shape =
            Self { multipliers, subtables, segments, bucket_bits, fingerprint_bits, class_mask, fingerprint_mask };
        (bucket_bits <= MAX_BUCKET_BITS).then_some(shape)
    }

    /// The class of the name with this hash.
    #[inline(always)]
    pub(super) fn class(&self, hash: u64) -> Class {
        Class(hash >> (u64::BITS - self.class_bits()))
    }

    /// How many upper bits of a hash make its class.
    #[inline(always)]
    pub(super) fn class_bits(&self) -> u32 {
        self.bucket_bits + self.fingerprint_bits
    }

    /// The place of the class in this subtable of this segment.
    #[inline(always)]
    pub(super) fn place(&self, class: Class, segment: usize, subtable: usize) -> Place {
        let permuted = class.0.wrapping_mul(self.multipliers[subtable]) & self.class_mask;
        Place {
            bucket: (segment * self.subtables + subtable) << self.bucket_bits
                | (permuted >> self.fingerprint_bits) as usize,
            fingerprint: permuted as u32 & self.fingerprint_mask,
        }
    }

    /// d.
    #[inline(always)]
    pub(super) fn subtables(&self) -> usize {
        self.subtables
    }

    /// s.
    #[inline(always)]
    pub(super) fn segments(&self) -> usize {
        self.segments
    }

    /// The segment of this port's Interests.
    #[inline(always)]
    pub(super) fn segment_of(&self, port: u16) -> usize {
        if self.segments == 1 { 0 } else { usize::from(port) % self.segments }
    }

    /// The segment that this bucket is in.
    #[inline(always)]
    pub(super) fn segment_of_bucket(&self, bucket: usize) -> usize {
        (bucket >> self.bucket_bits) / self.subtables
    }

    /// Buckets of all subtables of all segments.
    pub(super) fn buckets(&self) -> usize {
        (self.segments * self.subtables) << self.bucket_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_classes_share_a_place_in_a_subtable() {
        for (subtables, segments) in [(2, 1), (4, 1), (2, 3)] {
            let shape = Shape::new(64 * (subtables * segments) as u32, subtables, segments, 9, 77).unwrap();
            assert_eq!((shape.class_bits(), shape.buckets()), (12, 8 * subtables * segments));
            let mut seen = HashSet::new();
            for class in 0..1 << 12 {
                for segment in 0..segments {
                    for subtable in 0..subtables {
                        let place = shape.place(Class(class), segment, subtable);
                        assert_eq!(place.bucket / 8, segment * subtables + subtable);
                        assert_eq!(shape.segment_of_bucket(place.bucket), segment);
                        assert!(place.fingerprint < 1 << 9);
                        assert!(seen.insert((place.bucket, place.fingerprint)), "two classes in one place");
                    }
                }
            }
        }
    }

    #[test]
    fn classes_that_share_a_bucket_in_one_subtable_rarely_do_in_another() {
        let shape = Shape::new(1 << 16, 2, 1, 16, 1).unwrap();
        // The 65,536 classes of one bucket of the first subtable, in the second.
        let mut other_buckets = HashSet::new();
        let mut members = 0;
        for class in 0..1_u64 << shape.class_bits() {
            if shape.place(Class(class), 0, 0).bucket == 5 {
                members += 1;
                other_buckets.insert(shape.place(Class(class), 0, 1).bucket);
            }
        }
        assert_eq!((members, other_buckets.len()), (1 << 16, 1 << 12), "they come into every bucket");
    }

    #[test]
    fn empty_or_oversized_tables_are_refused() {
        assert!(Shape::new(0, 2, 1, 16, 0).is_none());
        assert!(Shape::new(1, 2, 1, 0, 0).is_none());
        assert!(Shape::new(1, 2, 1, 21, 0).is_none());
        assert!(Shape::new(u32::MAX, 2, 1, 16, 0).is_some());
        assert_eq!(Shape::new(1, 4, 16, 20, 0).unwrap().buckets(), 64);
    }
}
