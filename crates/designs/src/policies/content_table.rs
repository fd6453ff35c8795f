//! Content Table: evicts the least used of the few entries in the newcomer's buckets.
//!
//! Source: Yuan15 §6.1.2-6.1.3, *local search*: LRU and LFU without a list of all entries. The table is a d-left hash
//! table. A newcomer has one bucket in each of its d parts. The entry with the least *statistical information* among
//! the d × E in those buckets is evicted.
//!
//! | paper | here |
//! | --- | --- |
//! | d | [`CHOICES`] |
//! | E, entries of a bucket | [`ENTRIES`] |
//! | Statistical Information | [`Statistic`]: [`LastUse`], [`Uses`] |
//! | Pktbuf Addr | `slot`, the number of the entry |
//! | Occupied | the `slot` is not 0; numbers are kept with 1 added |
//!
//! ```text
//! bucket, 64 bytes, one line:      in memory, d = 4; a newcomer has a row in each part:
//!  0           32              64    row  0 0 0 0 1 1 1 1 2 2 2 2 3 …
//!  | slots × 8 | statistics × 8 |    part 0 1 2 3 0 1 2 3 0 1 2 3 0 …  (bucket = row × d + part)
//! ```
//!
//! Deviations:
//! - The paper's table also finds Data by name, so each entry has a *Fingerprint* and a *Name Offset*. Here the store
//!   has a separate index, and an entry's mark has its place in this table. The statistic uses those bits.
//! - So an entry may be in any bucket. If the newcomer's buckets are full, it is put into the next bucket with room,
//!   and is a candidate there. (The paper uses an overflow table, or evicts an entry of these buckets.)
//! - The table grows with the number of entries, a row at a time. However many entries the store's limit in bytes
//!   allows, the table is 3/4 full, so that there are always enough candidates. Growing moves nothing. All candidate
//!   places may still be empty, if most entries were erased or the store became much smaller (rows stay). Then the
//!   candidates are the entries of the next bucket that has any.
//! - Ties, frequent among counts, are broken by the newcomer's hash, not by place. Otherwise entries in the first part
//!   of the table would always be evicted first.
//!
//! Cost: a hit writes 1 line, an insertion or a removal 1. Finding the victim reads the d lines of the newcomer's
//! buckets, which do not depend on each other. Bytes: an entry takes 11: 8 at 3/4 load and a bit per bucket. Full: the
//! policy is made for a number of entries; the owner adds no more.

use super::number_set::NumberSet;
use bytemuck::Zeroable;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::pages::{PageArray, PageSize};
use std::io;

/// Parts of the table, each with one bucket for a newcomer.
pub const CHOICES: usize = 4;
/// Entries of a bucket.
pub const ENTRIES: usize = 8;
/// Candidates for one newcomer.
const CANDIDATES: u32 = (CHOICES * ENTRIES) as u32;
/// Entries for each row of [`CHOICES`] buckets: 3/4 of the places.
const ENTRIES_PER_ROW: u32 = CANDIDATES * 3 / 4;

/// The greatest age of an entry of [`LastUse`], in uses.
const OLDEST_AGE: u32 = 1 << 31;
/// After this many uses one more bucket is swept for entries of that age.
const USES_PER_BUCKET: u32 = 32;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    /// 1 + the number of the store's entry; 0 = not occupied.
    slots: [u32; ENTRIES],
    statistics: [u32; ENTRIES],
}

const _: () = assert!(size_of::<Bucket>() == 64);
// A bit for each candidate.
const _: () = assert!(CANDIDATES == u32::BITS);

/// Statistical information: how much an entry matters.
pub trait Statistic: Default {
    /// The statistic of an entry that is stored now.
    fn of_newcomer(&mut self, newcomer: &Newcomer) -> u32;
    /// The new statistic of an entry that is used now.
    fn of_used(&mut self, statistic: u32) -> u32;
    /// Of several entries, the one with the least rank is evicted.
    fn rank(&self, statistic: u32) -> u32;
    /// Whether one more bucket must be swept with [`Statistic::in_range`].
    #[inline]
    fn is_bucket_due(&self) -> bool {
        false
    }
    /// The statistic to write in its place, if it would soon mean something else.
    #[inline]
    fn in_range(&self, statistic: u32) -> u32 {
        statistic
    }
}

/// LRU: the time of the last use, counted in uses of any entry.
///
/// It rolls over after 2^32 uses; an entry that old would then count as new. So one bucket is swept every
/// 32 uses, and entries more than 2^31 uses old are set to that age. In a table of up to 2^26 buckets (402
/// million entries) every bucket has its turn in time.
#[derive(Debug, Default)]
pub struct LastUse {
    now: u32,
}

impl Statistic for LastUse {
    #[inline]
    fn of_newcomer(&mut self, _: &Newcomer) -> u32 {
        self.now = self.now.wrapping_add(1);
        self.now
    }

    #[inline]
    fn of_used(&mut self, _: u32) -> u32 {
        self.now = self.now.wrapping_add(1);
        self.now
    }

    #[inline]
    fn rank(&self, statistic: u32) -> u32 {
        let age = self.now.wrapping_sub(statistic);
        u32::MAX - age
    }

    #[inline]
    fn is_bucket_due(&self) -> bool {
        self.now.is_multiple_of(USES_PER_BUCKET)
    }

    #[inline]
    fn in_range(&self, statistic: u32) -> u32 {
        let age = self.now.wrapping_sub(statistic);
        self.now.wrapping_sub(age.min(OLDEST_AGE))
    }
}

/// LFU: how many Interests the entry answered since it was stored. Counts do not age.
#[derive(Debug, Default)]
pub struct Uses;

impl Statistic for Uses {
    #[inline]
    fn of_newcomer(&mut self, newcomer: &Newcomer) -> u32 {
        newcomer.requests
    }

    #[inline]
    fn of_used(&mut self, statistic: u32) -> u32 {
        statistic.saturating_add(1)
    }

    #[inline]
    fn rank(&self, statistic: u32) -> u32 {
        statistic
    }
}

/// The table; see the module.
pub struct ContentTable<S> {
    buckets: PageArray<Bucket>,
    /// Buckets that hold an entry.
    occupied: NumberSet,
    statistic: S,
    /// Rows in use; the buckets of newcomers are in these.
    rows: u32,
    len: u32,
    /// The bucket that is swept next.
    due: u32,
}

impl<S: Statistic> ContentTable<S> {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Self::with_statistic(S::default(), entries, pages)
    }

    fn with_statistic(statistic: S, entries: u32, pages: PageSize) -> io::Result<Self> {
        let buckets = buckets_for(entries);
        let occupied = NumberSet::new(buckets, pages)?;
        let buckets = PageArray::zeroed(buckets as usize, pages)?;
        Ok(Self { buckets, occupied, statistic, rows: 0, len: 0, due: 0 })
    }

    /// The buckets of a name, one of each part.
    #[inline]
    fn choices(&self, hash: u64) -> [u32; CHOICES] {
        const SPREAD: [u64; CHOICES] =
            [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
        std::array::from_fn(|part| {
            let spread = hash.wrapping_mul(SPREAD[part]) >> 32;
            let row = (spread * u64::from(self.rows)) >> 32;
            row as u32 * CHOICES as u32 + part as u32
        })
    }

    /// The entry with the least rank in these buckets; of equals the first, beginning with the one that the
    /// hash selects.
    #[inline]
    fn least(&self, buckets: &[u32], hash: u64) -> Option<u32> {
        // Takes the same entry of all buckets together, so that the compiler compares several at a time.
        let mut least = [u32::MAX; ENTRIES];
        for &bucket in buckets {
            let Bucket { slots, statistics } = &self.buckets[bucket as usize];
            for entry in 0..ENTRIES {
                let rank = self.statistic.rank(statistics[entry]);
                least[entry] = least[entry].min(if slots[entry] == 0 { u32::MAX } else { rank });
            }
        }
        let least = least.into_iter().min()?;
        let mut places = [0; ENTRIES];
        for (place, &bucket) in (0..).step_by(ENTRIES).zip(buckets) {
            let Bucket { slots, statistics } = &self.buckets[bucket as usize];
            for entry in 0..ENTRIES {
                let is_least = slots[entry] != 0 && self.statistic.rank(statistics[entry]) == least;
                places[entry] |= u32::from(is_least) << place;
            }
        }
        let candidates = (0..ENTRIES).fold(0, |all, entry| all | places[entry] << entry);
        let first = hash as u32 % CANDIDATES;
        let candidate = (first + candidates.rotate_right(first).trailing_zeros()) % CANDIDATES;
        let bucket = (candidates != 0).then(|| &self.buckets[buckets[candidate as usize / ENTRIES] as usize])?;
        Some(bucket.slots[candidate as usize % ENTRIES] - 1)
    }

    /// The bucket for a newcomer: the least occupied of its own, of equals the leftmost; if all are full,
    /// the next with room.
    #[inline]
    fn bucket_for(&self, hash: u64) -> u32 {
        let choices = self.choices(hash);
        let occupied = |bucket: u32| self.buckets[bucket as usize].slots.map(|slot| u32::from(slot != 0)).iter().sum();
        let (fewest, bucket) = choices
            .map(|bucket| (occupied(bucket), bucket))
            .into_iter()
            .fold((ENTRIES as u32, choices[0]), |best, next| if next.0 < best.0 { next } else { best });
        if fewest < ENTRIES as u32 { bucket } else { self.next_with_room(bucket) }
    }

    /// There is always one: the rows in use have more places than there are entries.
    #[cold]
    fn next_with_room(&self, bucket: u32) -> u32 {
        let in_use = self.rows * CHOICES as u32;
        let has_room = |bucket: &u32| self.buckets[*bucket as usize].slots.contains(&0);
        (bucket..in_use).chain(0..bucket).find(has_room).expect("a place for every entry")
    }

    /// To be called after an entry was stored or used.
    #[inline]
    fn go_over_a_bucket_if_due(&mut self) {
        if !self.statistic.is_bucket_due() {
            return;
        }
        self.due = if self.due + 1 < self.rows * CHOICES as u32 { self.due + 1 } else { 0 };
        for statistic in &mut self.buckets[self.due as usize].statistics {
            *statistic = self.statistic.in_range(*statistic);
        }
    }
}

impl<S: Statistic> Eviction for ContentTable<S> {
    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        let (bucket, entry) = bucket_and_entry(marks.mark(slot).place);
        let statistic = &mut self.buckets[bucket as usize].statistics[entry];
        *statistic = self.statistic.of_used(*statistic);
        self.go_over_a_bucket_if_due();
    }

    fn victim(&mut self, _: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let choices = self.choices(newcomer.hash);
        self.least(&choices, newcomer.hash).or_else(|| {
            let next = self.occupied.first_from(choices[0]).or_else(|| self.occupied.first_from(0))?;
            self.least(&[next], newcomer.hash)
        })
    }

    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        self.len += 1;
        self.rows = self.rows.max(self.len.div_ceil(ENTRIES_PER_ROW));
        let number = self.bucket_for(newcomer.hash);
        let bucket = &mut self.buckets[number as usize];
        let entry = bucket.slots.iter().position(|&slot| slot == 0).expect("a bucket with room");
        bucket.slots[entry] = slot + 1;
        bucket.statistics[entry] = self.statistic.of_newcomer(newcomer);
        self.occupied.insert(number);
        marks.mark_mut(slot).place = number * ENTRIES as u32 + entry as u32;
        self.go_over_a_bucket_if_due();
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        let (number, entry) = bucket_and_entry(marks.mark(slot).place);
        let bucket = &mut self.buckets[number as usize];
        bucket.slots[entry] = 0;
        if bucket.slots == [0; ENTRIES] {
            self.occupied.remove(number);
        }
        self.len -= 1;
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        let buckets = buckets_for(entries);
        self.occupied.grow(buckets)?;
        self.buckets.grow(buckets as usize)
    }

    fn bytes(&self) -> usize {
        self.buckets.mapped_bytes() + self.occupied.bytes()
    }
}

fn buckets_for(entries: u32) -> u32 {
    entries.div_ceil(ENTRIES_PER_ROW) * CHOICES as u32
}

#[inline]
fn bucket_and_entry(place: u32) -> (u32, usize) {
    (place / ENTRIES as u32, place as usize % ENTRIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::cs_policy::named_entry::NamedEntry;

    fn hash(slot: u32) -> u64 {
        u64::from(slot + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn named(entries: u32) -> Vec<NamedEntry> {
        (0..entries).map(|slot| NamedEntry::new(hash(slot), ())).collect()
    }

    fn newcomer(slot: u32) -> Newcomer {
        Newcomer { hash: hash(slot), requests: 1, ..Newcomer::default() }
    }

    fn full<S: Statistic>(statistic: S, entries: u32) -> (ContentTable<S>, Vec<NamedEntry>) {
        let mut table = ContentTable::with_statistic(statistic, entries, PageSize::Base).unwrap();
        let mut names = named(entries);
        (0..entries).for_each(|slot| table.insert(&mut names, slot, &newcomer(slot)));
        (table, names)
    }

    /// The clock is shortly before its end, or long before: the same entries go.
    #[test]
    fn a_clock_that_rolls_over_changes_no_victim() {
        const ENTRIES: u32 = 1_000;
        let run = |now| {
            let (mut table, mut names) = full(LastUse { now }, ENTRIES);
            let mut random = fastrand::Rng::with_seed(3);
            let mut went = Vec::new();
            for _ in 0..20_000 {
                table.hit(&mut names, random.u32(..ENTRIES));
                let came = newcomer(ENTRIES + random.u32(..ENTRIES));
                let victim = table.victim(&mut names, &came).unwrap();
                assert_eq!(table.victim(&mut names, &came), Some(victim));
                went.push(victim);
                table.remove(&mut names, victim, RemovalReason::Evicted);
                table.insert(&mut names, victim, &came);
            }
            went
        };
        assert_eq!(run(0), run(u32::MAX - 10_000));
    }

    /// An entry that is not requested stays old, however long that lasts.
    #[test]
    fn an_old_entry_never_looks_recent() {
        let (mut table, mut names) = full(LastUse::default(), 24);
        let statistic = |table: &ContentTable<LastUse>, names: &Vec<NamedEntry>, slot: u32| {
            let (bucket, entry) = bucket_and_entry(names.mark(slot).place);
            table.buckets[bucket as usize].statistics[entry]
        };
        let first = table.statistic.rank(statistic(&table, &names, 7));
        for step in 1..=5 {
            table.statistic.now = table.statistic.now.wrapping_add(1 << 30);
            for _ in 0..CHOICES as u32 * USES_PER_BUCKET {
                table.hit(&mut names, 3);
            }
            let rank = table.statistic.rank(statistic(&table, &names, 7));
            assert!(rank < first && rank <= u32::MAX - step.min(2) * (1 << 30), "{step}: {rank}");
            let victim = table.victim(&mut names, &newcomer(99)).unwrap();
            assert_ne!(victim, 3);
        }
    }

    /// More names than their buckets have places: every name has a place, and can become the victim.
    #[test]
    fn a_full_bucket_runs_over_into_the_next() {
        const ENTRIES: u32 = 240;
        let mut table: ContentTable<Uses> = ContentTable::new(ENTRIES, PageSize::Base).unwrap();
        let mut names = named(ENTRIES);
        let same = newcomer(5);
        (0..ENTRIES).for_each(|slot| table.insert(&mut names, slot, &same));
        let mut places: Vec<u32> = names.iter().map(|entry| entry.mark.place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), ENTRIES as usize);
        for left in (0..ENTRIES).rev() {
            let victim = table.victim(&mut names, &same).unwrap();
            table.remove(&mut names, victim, RemovalReason::Evicted);
            assert_eq!(table.len, left);
        }
        assert_eq!(table.victim(&mut names, &same), None);
    }

    /// The load is as it should be, however few of the slots are used; and nothing moves.
    #[test]
    fn the_table_grows_with_what_it_holds() {
        let (table, names) = full(Uses, 10_000);
        let places: Vec<u32> = names.iter().map(|entry| entry.mark.place).collect();
        let mut sparse: ContentTable<Uses> = ContentTable::new(10_000_000, PageSize::Base).unwrap();
        let mut names = named(10_000);
        (0..10_000).for_each(|slot| sparse.insert(&mut names, slot, &newcomer(slot)));
        assert!(names.iter().map(|entry| entry.mark.place).eq(places));
        assert_eq!(sparse.rows, 10_000_u32.div_ceil(24));
        assert_eq!(sparse.rows, table.rows);
    }

    #[test]
    fn bytes_per_entry() {
        let table: ContentTable<LastUse> = ContentTable::new(1_000_000, PageSize::Base).unwrap();
        assert_eq!(table.bytes() / 1_000_000, 10);
    }
}
