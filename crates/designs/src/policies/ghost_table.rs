//! Ghost table: was this name among the last names evicted?
//!
//! Source: Yang et al., SOSP 2023, on how to keep the ghost queue G of S3-FIFO: a table of buckets with short
//! fingerprints and the time at which each was inserted, counted in names. A name that was inserted too long ago
//! counts as absent, and is overwritten when its place is needed.
//!
//! ```text
//! bucket, 64 bytes, one line:
//!  0                         30     32                         62  64
//!  | tags 0-14, 2 bytes each | next | times 0-14, 2 bytes each | 0 |
//! ```
//!
//! The lower 48 bits of a name's hash choose its bucket. Its *tag* is the upper 16 bits, with 0 replaced by 1; tag 0
//! means empty. A new name takes the *next* place of the bucket, in turn: the place of the oldest entry. Times are
//! coarse ([`TICKS`]). They wrap only after at least sixteen times as many insertions as the table is made for. By then
//! no entry of the earlier time is left.
//!
//! Compared with [`GhostQueue`](super::ghost_queue::GhostQueue), which is exact:
//! - Some names are forgotten early, because fifteen others come into their bucket before their time is over (at
//!   [`MEAN_NAMES`] 1.0 % of them by the Poisson distribution).
//! - A name that was never inserted counts as present in [`MEAN_NAMES`] / 65,535 of all cases.
//! - The age at which a name is forgotten is exact only to a tick.
//! - But forgetting costs nothing, where a queue must find its oldest name. That saves a third of the lines of
//!   S3-FIFO's ghosts, and the queue itself.
//!
//! Cost: each operation takes 1 line. Bytes: a name takes 64 / [`MEAN_NAMES`] = 6.4. Only [`GhostTable::grow`]
//! allocates. Writers: the owner.

use bytemuck::Zeroable;
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;
use std::mem::offset_of;

/// Names in a bucket of fifteen, on average.
pub const MEAN_NAMES: u32 = 10;
/// As many names as the table is for come in this many ticks, or in up to twice as many. In a table for
/// fewer names each name has a tick of its own.
pub const TICKS: u32 = 1 << 11;

const NAMES: usize = 15;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u16; NAMES],
    /// The place of the oldest entry.
    next: u16,
    times: [u16; NAMES],
}

const _: () = assert!(size_of::<Bucket>() == 64 && offset_of!(Bucket, times) == 32);

/// Tags of names, and when they were inserted.
pub struct GhostTable {
    buckets: PageArray<Bucket>,
    pages: PageSize,
    /// How many names have come.
    now: u64,
    /// Names per tick, as a power of two.
    tick_log2: u32,
}

impl GhostTable {
    /// A table for the last `names` names.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(names: u32, pages: PageSize) -> io::Result<Self> {
        let buckets = PageArray::zeroed(buckets_for(names), pages)?;
        let tick_log2 = (names / TICKS).max(1).ilog2();
        Ok(Self { buckets, pages, now: 0, tick_log2 })
    }

    /// Remembers a name.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        self.now += 1;
        let (home, time) = (self.home(hash), self.time());
        let bucket = &mut self.buckets[home];
        let place = usize::from(bucket.next) % NAMES;
        bucket.next = (place as u16 + 1) % NAMES as u16;
        (bucket.tags[place], bucket.times[place]) = (tag(hash), time);
    }

    /// Forgets the name; returns whether it was remembered and is one of the last `names` that were inserted.
    #[inline]
    pub fn remove(&mut self, hash: u64, names: u32) -> bool {
        let (home, time, tag) = (self.home(hash), self.time(), tag(hash));
        let ticks = names.div_ceil(1 << self.tick_log2);
        let bucket = &mut self.buckets[home];
        let mut was_there = false;
        if bucket.tags.iter().fold(false, |any, &other| any | (other == tag)) {
            for (other, &mut came) in bucket.tags.iter_mut().zip(&mut bucket.times) {
                if *other == tag {
                    was_there |= u32::from(time.wrapping_sub(came)) < ticks;
                    *other = 0;
                }
            }
        }
        was_there
    }

    /// Begins to fetch the line that [`GhostTable::push`] and [`GhostTable::remove`] touch.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[self.home(hash)]);
    }

    /// Makes it a table for the last `names` names. If it was for fewer, it begins empty: tags do not tell
    /// the buckets of a larger table.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then everything is still remembered.
    pub fn grow(&mut self, names: u32) -> io::Result<()> {
        if buckets_for(names) > self.buckets.len() {
            *self = Self::new(names, self.pages)?;
        }
        Ok(())
    }

    /// Bytes of memory mapped for the table.
    pub fn bytes(&self) -> usize {
        self.buckets.mapped_bytes()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << 16) * self.buckets.len() as u128) >> 64) as usize
    }

    /// The time in ticks; wraps.
    #[inline]
    fn time(&self) -> u16 {
        (self.now >> self.tick_log2) as u16
    }
}

#[inline]
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}

fn buckets_for(names: u32) -> usize {
    names.div_ceil(MEAN_NAMES).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A list of the last names. As many as a bucket has places are always known.
    #[test]
    fn a_bucket_equals_a_list() {
        let mut table = GhostTable::new(MEAN_NAMES, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let mut list: VecDeque<Option<u64>> = VecDeque::new();
        for _ in 0..200_000 {
            let hash = random.u64(1..30) << 48 | random.u64(..1000);
            let names = random.u32(1..=NAMES as u32);
            assert_eq!(table.remove(hash, names), known(&mut list, hash, names as usize));
            if random.bool() {
                table.push(hash);
                list.push_front(Some(hash >> 48));
                list.truncate(NAMES);
            }
        }
    }

    /// Forgets all names with the tag; returns whether one was among the last `names`.
    fn known(list: &mut VecDeque<Option<u64>>, hash: u64, names: usize) -> bool {
        let is_it = |tag: &Option<u64>| *tag == Some(hash >> 48);
        let known = list.iter().take(names).any(is_it);
        list.iter_mut().filter(|tag| is_it(tag)).for_each(|tag| *tag = None);
        known
    }

    #[test]
    fn few_are_forgotten_early_and_none_remembered_late() {
        const TABLE: u32 = 100_000;
        let mut table = GhostTable::new(TABLE, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(2);
        // Times wrap twice.
        let hashes: Vec<u64> = (0..50 * TABLE).map(|_| random.u64(..)).collect();
        hashes.iter().for_each(|&hash| table.push(hash));
        let (older, last) = hashes.split_at((49 * TABLE) as usize);
        let known = |table: &mut GhostTable, hashes: &[u64]| {
            hashes.iter().filter(|&&hash| table.remove(hash, TABLE)).count() as f64 / hashes.len() as f64
        };
        let early = 1.0 - known(&mut table, last);
        assert!((0.008..0.013).contains(&early), "{early} were forgotten early");
        assert_eq!(known(&mut table, last), 0.0);
        hashes.iter().for_each(|&hash| table.push(hash));
        let late = known(&mut table, &older[..(10 * TABLE) as usize]);
        assert!(late < 2.0 * f64::from(MEAN_NAMES) / 65_535.0, "{late} were known too long");
        assert!(table.bytes() as f64 / f64::from(TABLE) < 6.5);
    }

    #[test]
    fn time_wraps() {
        let mut table = GhostTable::new(100, PageSize::Base).unwrap();
        table.now = u64::from(u16::MAX) - 25;
        (1..=30_u64).for_each(|name| table.push(name << 48));
        assert!((1..=20_u64).all(|name| !table.remove(name << 48, 10)));
        assert!((21..=30_u64).all(|name| table.remove(name << 48, 10)));
    }
}
