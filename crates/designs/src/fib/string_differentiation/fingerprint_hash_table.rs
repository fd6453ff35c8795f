//! Fingerprint-based hash table (FHT): which slot has the fingerprint of this name?
//!
//! Source: Yuan15 §4.3.4, Fig. 4.6 and Table 4.4: a 4-left hash table that keeps only a fingerprint of every name,
//! after Bonomi et al., "An improved construction for counting Bloom filters" (2006). Symbols: d = [`SUBTABLES`] = 4,
//! E = [`BUCKET_SLOTS`] = 8, B = buckets of a subtable, w = fingerprint bits; outgoing port of 8 bits = *port* (wider
//! where asked for); one bit *occupied*.
//!
//! A name has one hash H below B·2^w, where B is any number: its 64-bit hash, multiplied by B·2^w and divided by 2⁶⁴.
//! The lower w bits of H are the fingerprint f, the upper part is b < B. In subtable i, the bucket is b + gᵢ(f) mod B,
//! with a fixed pseudo-random gᵢ(f) < B. So b follows from bucket and fingerprint: two names that agree in both in
//! *one* subtable agree in H and therefore in all subtables. At most one slot of the whole table answers to a name,
//! whatever is inserted and removed. Of n names n²/(2·B·2^w) are expected to find their hash taken (B = 2²⁵, w = 16, n
//! = 10⁹: 227,374).
//!
//! Deviation: Bonomi et al. permute H by H·aᵢ mod 2^q, which needs a power of two for B, and so up to twice the memory.
//! Here a name has one fingerprint in all subtables. The load of the paper is reached as well: see the tests.
//!
//! ```text
//! bucket │ occupied, 8 bits │ fingerprint 0 … fingerprint 7, w bits each │ port 0 … port 7, p bits each │
//!        0                  1                                            1 + w                     1 + w + p bytes
//! ```
//!
//! With w = 16 and p = 8, a bucket of 8 slots takes 25 bytes: exactly the paper's 3.125 per slot. Buckets lie back to
//! back, as the paper's figure implies: 3 of 8 buckets cross a line. (Two buckets in each line would take 4 bytes per
//! slot, as much as w = 24 does here.) All fields of a bucket begin at a byte, and the eight fingerprints are compared
//! four at a time.
//!
//! Cost: a look-up reads 4 buckets, 1.375 lines each, that do not depend on each other. Bytes: a slot takes 1 + w/8 +
//! p/8 - 7/8.
//! Overflows: of names inserted into an empty table, 10⁻⁴ find no room at the load of the paper. If names come and go
//! at that load, 2.9 % of those present found none when they came; at 95 % of that load 0.55 %, at 90 % 0.04 % (250,001
//! names, each replaced 20 times).
//! Limits: 32 to 2³⁰ slots, a multiple of 32. When all four buckets of a name are full,
//! [`FingerprintHashTable::vacant_slot`] gives `None`.
//! Writers: the owner.

use super::differentiator::reduced;
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

/// d of the paper.
pub const SUBTABLES: usize = 4;
/// E of the paper.
pub const BUCKET_SLOTS: usize = 8;
/// The most slots: `wide_leads` names one in 31 bits.
const MAX_SLOTS: usize = 1 << 30;
/// The load for which a table is made, the paper's 93 %: this many names in 2³⁰ slots.
const NAMES_PER_2_30_SLOTS: u64 = 1_000_000_000;
/// For gᵢ: odd, and as different in their upper and lower bits as digits of irrational numbers are.
const MULTIPLIERS: [u64; SUBTABLES] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];
/// Bytes behind the last bucket, so that a field can be read with what comes after it.
const PADDING: usize = 16;

/// Widths of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotFormat {
    /// w: 12, 14 … 24. Even, so that half a bucket's fingerprints end at a byte.
    pub fingerprint_bits: u32,
    /// 8 to 24.
    pub port_bits: u32,
}

impl SlotFormat {
    /// The paper's choice: 16 bits of fingerprint, 8 of port.
    pub const PAPER: Self = Self { fingerprint_bits: 16, port_bits: 8 };

    /// Whether there are slots like that.
    pub const fn is_valid(self) -> bool {
        matches!(self.fingerprint_bits, 12..=24)
            && self.fingerprint_bits.is_multiple_of(2)
            && matches!(self.port_bits, 8..=24)
    }

    const fn bucket_bytes(self) -> usize {
        1 + self.fingerprint_bits as usize + self.port_bits as usize
    }
}

const _: () = assert!(SlotFormat::PAPER.bucket_bytes() == 25);

/// A name's H: fingerprint, and what its buckets are counted from.
#[derive(Clone, Copy)]
struct Home {
    /// b.
    bucket: u64,
    /// f.
    fingerprint: u64,
}

/// The table.
pub struct FingerprintHashTable {
    bytes: PageArray<u8>,
    format: SlotFormat,
    /// B.
    subtable_buckets: u64,
    occupied_slots: usize,
}

impl FingerprintHashTable {
    /// One for this many names at the paper's load, 93.13 %, or less: as many slots as that takes, in whole buckets.
    ///
    /// # Errors
    /// If that takes more than 2³⁰ slots, the format is none, or the kernel does not map the memory.
    pub fn for_names(names: usize, format: SlotFormat, pages: PageSize) -> io::Result<Self> {
        if !format.is_valid() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slots = (names as u64).saturating_mul(1 << 30).div_ceil(NAMES_PER_2_30_SLOTS);
        if slots > MAX_SLOTS as u64 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let subtable_buckets = slots.div_ceil((SUBTABLES * BUCKET_SLOTS) as u64).max(1);
        let buckets = SUBTABLES * subtable_buckets as usize;
        Ok(Self {
            bytes: PageArray::zeroed(buckets * format.bucket_bytes() + PADDING, pages)?,
            format,
            subtable_buckets,
            occupied_slots: 0,
        })
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        SUBTABLES * BUCKET_SLOTS * self.subtable_buckets as usize
    }

    /// How many of them are occupied.
    pub fn occupied_slots(&self) -> usize {
        self.occupied_slots
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        self.bytes.mapped_bytes()
    }

    /// Bytes of the slots alone.
    pub fn slot_bytes(&self) -> usize {
        self.bytes.len() - PADDING
    }

    /// Widths of the fields.
    pub fn format(&self) -> SlotFormat {
        self.format
    }

    /// B·2^w: names whose hashes are the same when reduced to below this number are the same to the table.
    pub fn hashes(&self) -> u64 {
        self.subtable_buckets << self.format.fingerprint_bits
    }

    /// The slot that answers to this hash, and its port.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<(u32, u32)> {
        let home = self.home(hash);
        for subtable in 0..SUBTABLES {
            let bucket = self.bucket(home, subtable);
            if let Some(entry) = self.entry_with(bucket, home.fingerprint) {
                return Some(((bucket * BUCKET_SLOTS + entry) as u32, self.port(bucket, entry)));
            }
        }
        None
    }

    /// A slot that this hash may have, in the least full of the four buckets; of equally full buckets, in the first.
    #[inline]
    pub fn vacant_slot(&self, hash: u64) -> Option<u32> {
        let home = self.home(hash);
        let buckets: [usize; SUBTABLES] = std::array::from_fn(|subtable| self.bucket(home, subtable));
        let bucket = buckets.into_iter().min_by_key(|&bucket| self.occupied(bucket).count_ones())?;
        let entry = self.occupied(bucket).trailing_ones() as usize;
        (entry < BUCKET_SLOTS).then_some((bucket * BUCKET_SLOTS + entry) as u32)
    }

    /// The fingerprint of this hash, the same in every slot.
    pub fn fingerprint(&self, hash: u64) -> u32 {
        self.home(hash).fingerprint as u32
    }

    /// Occupies the slot, or changes what is in it.
    pub fn set(&mut self, slot: u32, fingerprint: u32, port: u32) {
        let (bucket, entry) = (slot as usize / BUCKET_SLOTS, slot as usize % BUCKET_SLOTS);
        let start = self.start(bucket);
        self.occupied_slots += usize::from(self.occupied(bucket) >> entry & 1 == 0);
        self.bytes[start] |= 1 << entry;
        self.write(start + 1, entry, self.format.fingerprint_bits, fingerprint);
        self.write(start + 1 + self.format.fingerprint_bits as usize, entry, self.format.port_bits, port);
    }

    /// Makes the slot vacant.
    pub fn clear(&mut self, slot: u32) {
        self.set(slot, 0, 0);
        let start = self.start(slot as usize / BUCKET_SLOTS);
        self.bytes[start] &= !(1 << (slot as usize % BUCKET_SLOTS));
        self.occupied_slots -= 1;
    }

    /// Begins to fetch the four buckets of this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let home = self.home(hash);
        for subtable in 0..SUBTABLES {
            let start = self.start(self.bucket(home, subtable));
            prefetch(&self.bytes[start]);
            prefetch(&self.bytes[start + self.format.bucket_bytes() - 1]);
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> Home {
        let (bits, hash) = (self.format.fingerprint_bits, reduced(hash, self.hashes()));
        Home { bucket: hash >> bits, fingerprint: hash & ((1 << bits) - 1) }
    }

    /// b + gᵢ(f) mod B, and the subtables before this one.
    #[inline(always)]
    fn bucket(&self, home: Home, subtable: usize) -> usize {
        let buckets = self.subtable_buckets;
        let spread = home.fingerprint.wrapping_mul(MULTIPLIERS[subtable]) >> 32;
        let bucket = home.bucket + ((spread * buckets) >> 32); // B < 2³²
        let bucket = bucket.min(bucket.wrapping_sub(buckets)); // less B, if that is not negative
        subtable * buckets as usize + bucket as usize
    }

    #[inline(always)]
    fn start(&self, bucket: usize) -> usize {
        bucket * self.format.bucket_bytes()
    }

    #[inline(always)]
    fn occupied(&self, bucket: usize) -> u8 {
        self.bytes[self.start(bucket)]
    }

    #[inline(always)]
    fn entry_with(&self, bucket: usize, fingerprint: u64) -> Option<usize> {
        let (bits, start) = (self.format.fingerprint_bits, self.start(bucket));
        let [first, second] = [start + 1, start + 1 + bits as usize / 2];
        let [first, second] = if bits <= 16 {
            [first, second].map(|at| u128::from(equal_lanes_64(self.word(at), fingerprint, bits)))
        } else {
            [first, second].map(|at| equal_lanes_128(self.double_word(at), fingerprint.into(), bits))
        };
        if first | second == 0 {
            return None;
        }
        self.occupied_entry(first, 0, bucket).or_else(|| self.occupied_entry(second, BUCKET_SLOTS / 2, bucket))
    }

    /// The occupied slot among the lanes found; vacant ones have the fingerprint 0, as names may.
    #[inline]
    fn occupied_entry(&self, mut lanes: u128, first_entry: usize, bucket: usize) -> Option<usize> {
        while lanes != 0 {
            let entry = first_entry + (lanes.trailing_zeros() / self.format.fingerprint_bits) as usize;
            if self.occupied(bucket) >> entry & 1 == 1 {
                return Some(entry);
            }
            lanes &= lanes - 1;
        }
        None
    }

    #[inline(always)]
    fn port(&self, bucket: usize, entry: usize) -> u32 {
        let bits = self.format.port_bits;
        let at = self.start(bucket) + 1 + self.format.fingerprint_bits as usize;
        let bit = entry * bits as usize;
        (self.word(at + bit / 8) >> (bit % 8)) as u32 & ((1 << bits) - 1)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        self.bytes[at..].first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))
    }

    #[inline(always)]
    fn double_word(&self, at: usize) -> u128 {
        self.bytes[at..].first_chunk().map_or(0, |&bytes| u128::from_le_bytes(bytes))
    }

    /// Writes field `entry` of those of `bits` bits that begin at byte `at`.
    fn write(&mut self, at: usize, entry: usize, bits: u32, value: u32) {
        let bit = entry * bits as usize;
        let (at, shift) = (at + bit / 8, bit % 8);
        let mask = ((1 << bits) - 1) << shift;
        let word = self.word(at) & !mask | (u64::from(value) << shift) & mask;
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// The uppermost bit of each of the four lanes of `bits` bits that equals `fingerprint`.
#[inline(always)]
fn equal_lanes_64(lanes: u64, fingerprint: u64, bits: u32) -> u64 {
    let ones = 1 | 1 << bits | 1 << (2 * bits) | 1 << (3 * bits);
    let upper = ones << (bits - 1);
    let lower = upper - ones;
    let differing = lanes ^ fingerprint.wrapping_mul(ones);
    // A lane's sum does not carry into the next; its uppermost bit is clear if the lane is zero.
    !(((differing & lower) + lower) | differing) & upper
}

/// The same for lanes so wide that four do not fit into 64 bits.
#[inline(always)]
fn equal_lanes_128(lanes: u128, fingerprint: u128, bits: u32) -> u128 {
    let ones = 1 | 1 << bits | 1 << (2 * bits) | 1 << (3 * bits);
    let upper = ones << (bits - 1);
    let lower = upper - ones;
    let differing = lanes ^ fingerprint.wrapping_mul(ones);
    !(((differing & lower) + lower) | differing) & upper
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const WIDTHS: [u32; 4] = [12, 16, 20, 24];

    fn table(names: usize, fingerprint_bits: u32, port_bits: u32) -> FingerprintHashTable {
        let format = SlotFormat { fingerprint_bits, port_bits };
        FingerprintHashTable::for_names(names, format, PageSize::Base).expect("a small table")
    }

    #[test]
    fn bytes_are_the_papers() {
        // Table 4.4, M_HT for 2³⁰ slots in GiB.
        for (bits, gibibytes) in WIDTHS.into_iter().zip([2.625, 3.125, 3.625, 4.125]) {
            let table = table(1 << 16, bits, 8);
            assert_eq!(table.slot_bytes() as f64 / table.slots() as f64, gibibytes);
        }
        assert_eq!(table(976_562, 16, 8).slots(), 1 << 20, "2²⁰ × 93 %, where Fig. 4.12 begins");
        let huge = FingerprintHashTable::for_names(1_000_000_000, SlotFormat::PAPER, PageSize::Transparent);
        assert_eq!(huge.expect("address space").slots(), 1 << 30);
        for (names, slots) in [(0, 32), (29, 32), (30, 64), (3_000, 3_232), (1_000_000, 1_073_760)] {
            let table = table(names, 16, 8);
            assert_eq!((table.slots(), table.slot_bytes()), (slots, slots / 8 * 25), "{names} names");
        }
        assert!(FingerprintHashTable::for_names(1_000_000_001, SlotFormat::PAPER, PageSize::Base).is_err());
        assert!(
            FingerprintHashTable::for_names(1, SlotFormat { fingerprint_bits: 13, port_bits: 8 }, PageSize::Base)
                .is_err()
        );
    }

    #[test]
    fn slots_are_found_by_their_hash_and_by_no_other() {
        for bits in [12, 14, 16, 18, 20, 22, 24] {
            for (port_bits, names) in [(8, 3_000), (11, 3_815), (24, 2_000), (16, 28), (8, 60), (24, 86)] {
                let mut table = table(names, bits, port_bits);
                let hashes = table.hashes();
                assert_eq!(hashes, (table.slots() as u64 / 32) << bits);
                let mut rng = fastrand::Rng::with_seed(u64::from(bits));
                let mut held: HashMap<u64, (u32, u32, u64)> = HashMap::new(); // reduced hash → slot, port, hash
                for _ in 0..20_000 {
                    let hash = rng.u64(..);
                    let seen = reduced(hash, hashes);
                    assert_eq!(table.find(hash), held.get(&seen).map(|&(slot, port, _)| (slot, port)));
                    if held.contains_key(&seen) || held.len() == names {
                        let &gone = held.keys().next().expect("not empty");
                        table.clear(held[&gone].0);
                        held.remove(&gone);
                    } else if let Some(slot) = table.vacant_slot(hash) {
                        let port = rng.u32(..1 << port_bits);
                        table.set(slot, table.fingerprint(hash), port);
                        held.insert(seen, (slot, port, hash));
                    }
                }
                assert_eq!(table.occupied_slots(), held.len());
                for &(slot, port, hash) in held.values() {
                    assert_eq!(table.find(hash), Some((slot, port)));
                }
                let slots: Vec<u32> = held.values().map(|held| held.0).collect();
                slots.into_iter().for_each(|slot| table.clear(slot));
                assert!(table.bytes.iter().all(|&byte| byte == 0), "what is cleared leaves nothing");
            }
        }
    }

    /// In each subtable, bucket and fingerprint say which hash it is: no two hashes share them, none is left over.
    #[test]
    fn each_subtable_permutes_the_hashes() {
        for names in [1, 60, 86, 120, 300] {
            let table = table(names, 12, 8);
            let (hashes, buckets) = (table.hashes(), table.subtable_buckets as usize);
            for subtable in 0..SUBTABLES {
                let mut seen = vec![false; hashes as usize];
                for number in 0..hashes {
                    // The least hash that reduces to this number.
                    let hash = (u128::from(number) << 64).div_ceil(u128::from(hashes)) as u64;
                    assert_eq!(reduced(hash, hashes), number);
                    let home = table.home(hash);
                    let bucket = table.bucket(home, subtable);
                    assert!((subtable * buckets..(subtable + 1) * buckets).contains(&bucket));
                    let place = (bucket - subtable * buckets) << 12 | home.fingerprint as usize;
                    assert!(!std::mem::replace(&mut seen[place], true), "{number} of {hashes}");
                }
            }
        }
    }

    #[test]
    fn every_width_compares_every_lane() {
        for bits in WIDTHS {
            for lane in 0..4 {
                let largest = (1_u128 << bits) - 1;
                for fingerprint in [0, 1, largest >> 1, largest] {
                    for others in [fingerprint ^ 1, fingerprint ^ (1 << (bits - 1))] {
                        let lanes =
                            (0..4).map(|place| (if place == lane { fingerprint } else { others }) << (place * bits));
                        let lanes: u128 = lanes.sum();
                        let expected = 1 << (lane * bits + bits - 1);
                        assert_eq!(equal_lanes_128(lanes, fingerprint, bits), expected);
                        if bits <= 16 {
                            let lanes = lanes as u64;
                            assert_eq!(u128::from(equal_lanes_64(lanes, fingerprint as u64, bits)), expected);
                        }
                    }
                }
            }
        }
    }

    /// Table 4.4 at the load of the paper, for 2¹⁸ slots and for numbers of slots that are no powers of two: how many
    /// names find their hash taken, and how many no room.
    #[test]
    fn collisions_and_overflows_are_as_many_as_the_model_says() {
        // 244,140 are 10⁹ / 2¹².
        for (names, slots) in [(244_140, 1 << 18), (250_001, 268_448), (305_000, 327_520), (488_000, 524_000)] {
            let mut table = table(names, 12, 8);
            assert_eq!((table.slots(), table.hashes()), (slots, (slots as u64 / 32) << 12));
            let mut rng = fastrand::Rng::with_seed(3);
            let (mut collisions, mut overflows) = (0, 0);
            for _ in 0..names {
                let hash = rng.u64(..);
                if table.find(hash).is_some() {
                    collisions += 1;
                } else if let Some(slot) = table.vacant_slot(hash) {
                    table.set(slot, table.fingerprint(hash), 0);
                } else {
                    overflows += 1;
                }
            }
            let expected = (names as f64).powi(2) / (2 * table.hashes()) as f64;
            let difference = (f64::from(collisions) - expected).abs();
            assert!(difference < 6.0 * expected.sqrt(), "{collisions} of {names}, expected {expected}");
            // The paper's 10⁵ of 10⁹, and 69 % of it with the names that collisions keep out.
            let overflows_of_a_million = f64::from(overflows) / names as f64 * 1e6;
            assert!((16.0..250.0).contains(&overflows_of_a_million), "{overflows} overflows of {names}");
        }
    }
}
