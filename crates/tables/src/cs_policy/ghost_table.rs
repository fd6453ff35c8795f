//! Ghost table: did this name go among the last so many?
//!
//! Source: Yang et al., SOSP 2023, on how to keep the ghost queue G of S3-FIFO: a table of
//! buckets with short fingerprints and the time at which each came, counted in names that came.
//! What came too long ago is not there any more, and is overwritten when its place is needed.
//!
//! ```text
//! bucket, 64 bytes, one line:
//!  0      8      16       20  24                               64
//!  | tags 0-3 | tags 4-7 | tags 8-9 | 0 | times 0-9, 4 bytes each |
//! ```
//!
//! A name is in one bucket, which the lower 48 bits of its hash name, by a *tag* of 16 bits: the
//! upper ones of its hash, 0 as 1; tag 0 stands for nothing. Who comes takes the place of the
//! entry in the bucket that came longest ago. Times are 32-bit numbers that wrap.
//!
//! Against a queue ([`GhostQueue`](super::ghost_queue::GhostQueue), which is exact): some names
//! are forgotten early, when ten others come into their bucket in time (at [`MEAN_NAMES`] 1.3 %
//! of them by the Poisson distribution); a name that never came is taken for one that did in
//! [`MEAN_NAMES`] / 65,535 of all cases. But what is forgotten costs nothing, where a queue must
//! find it: that is a third of the lines of S3-FIFO's ghosts, and the queue itself.
//!
//! Cost: each operation 1 line. Bytes per name: 64 / [`MEAN_NAMES`] = 10.7. No operation but
//! [`GhostTable::grow`] allocates. Who may write: the owner.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use crate::tag_compare::equal_tags;
use bytemuck::Zeroable;
use std::io;

/// Names in a bucket of ten, on average.
pub const MEAN_NAMES: u32 = 6;

const NAMES: usize = 10;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    /// Tags in lanes of 16 bits; the third word holds two.
    tags: [u64; 3],
    times: [u32; NAMES],
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// The age that is given to a place whose name was removed: far above that of any name that is
/// still looked for.
const LONG_AGO: u32 = 1 << 31;

/// Tags of names, and when they came.
pub struct GhostTable {
    buckets: PageArray<Bucket>,
    pages: PageSize,
    /// How many names came.
    now: u32,
}

impl GhostTable {
    /// For the last `names` names.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(names: u32, pages: PageSize) -> io::Result<Self> {
        let buckets = PageArray::zeroed(buckets_for(names), pages)?;
        Ok(Self { buckets, pages, now: 0 })
    }

    /// Remembers a name.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        self.now = self.now.wrapping_add(1);
        let (home, now) = (self.home(hash), self.now);
        let bucket = &mut self.buckets[home];
        // What was never used is as old as the table.
        let (mut place, mut age_max) = (0, 0);
        for (index, &time) in bucket.times.iter().enumerate() {
            let age = now.wrapping_sub(time);
            if age > age_max {
                (place, age_max) = (index, age);
            }
        }
        bucket.set_tag(place, tag(hash));
        bucket.times[place] = now;
    }

    /// Forgets the name; says whether it was remembered and is one of the last `names` that came.
    #[inline]
    pub fn remove(&mut self, hash: u64, names: u32) -> bool {
        let (home, now) = (self.home(hash), self.now);
        let bucket = &mut self.buckets[home];
        let mut places = equal_tags(bucket.tags, tag(hash) as u16);
        let mut was_there = false;
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            was_there |= now.wrapping_sub(bucket.times[place]) < names;
            bucket.set_tag(place, 0);
            bucket.times[place] = now.wrapping_sub(LONG_AGO);
        }
        was_there
    }

    /// Begins to fetch the line that [`GhostTable::push`] and [`GhostTable::remove`] touch.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[self.home(hash)]);
    }

    /// For the last `names` names. If it was for fewer, it begins anew: tags do not say where in
    /// a larger table their names would be.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then everything is still remembered.
    pub fn grow(&mut self, names: u32) -> io::Result<()> {
        if buckets_for(names) > self.buckets.len() {
            *self = Self::new(names, self.pages)?;
        }
        Ok(())
    }

    /// Octets of memory that were mapped for it.
    pub fn bytes(&self) -> usize {
        self.buckets.mapped_bytes()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << 16) * self.buckets.len() as u128) >> 64) as usize
    }
}

impl Bucket {
    #[inline]
    fn set_tag(&mut self, place: usize, tag: u64) {
        let (word, shift) = (&mut self.tags[place / 4], 16 * (place % 4));
        *word = *word & !(0xffff << shift) | tag << shift;
    }
}

#[inline]
fn tag(hash: u64) -> u64 {
    (hash >> 48).max(1)
}

fn buckets_for(names: u32) -> usize {
    names.div_ceil(MEAN_NAMES).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A list of the last names, with those of the next that it must not know; ten of one bucket
    /// are always known.
    #[test]
    fn a_bucket_equals_a_list() {
        let mut table = GhostTable::new(MEAN_NAMES, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let mut list: VecDeque<Option<u64>> = VecDeque::new();
        for _ in 0..20_000 {
            let (hash, names) = (random.u64(1..30) << 48 | random.u64(..1000), random.u32(1..=10));
            if random.bool() {
                // As a policy does, which asks for every name before it can go.
                assert_eq!(table.remove(hash, 10), known(&mut list, hash, 10));
                table.push(hash);
                list.push_front(Some(hash >> 48));
                list.truncate(10);
            } else {
                assert_eq!(table.remove(hash, names), known(&mut list, hash, names as usize));
            }
        }
    }

    /// Forgets all names of the tag; whether one was among the last `names`.
    fn known(list: &mut VecDeque<Option<u64>>, hash: u64, names: usize) -> bool {
        let is_it = |tag: &Option<u64>| *tag == Some(hash >> 48);
        let known = list.iter().take(names).any(is_it);
        list.iter_mut().filter(|tag| is_it(tag)).for_each(|tag| *tag = None);
        known
    }

    #[test]
    fn few_are_forgotten_early_and_none_remembered_late() {
        const NAMES: u32 = 60_000;
        let mut table = GhostTable::new(NAMES, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(2);
        let hashes: Vec<u64> = (0..5 * NAMES).map(|_| random.u64(..)).collect();
        hashes.iter().for_each(|&hash| table.push(hash));
        let (older, last) = hashes.split_at((4 * NAMES) as usize);
        let known = |table: &mut GhostTable, hashes: &[u64]| {
            hashes.iter().filter(|&&hash| table.remove(hash, NAMES)).count() as f64 / hashes.len() as f64
        };
        let late = known(&mut table, older);
        assert!(late < 2.0 * f64::from(MEAN_NAMES) / 65_535.0, "{late} were known too long");
        let early = 1.0 - known(&mut table, last);
        assert!((0.009..0.017).contains(&early), "{early} were forgotten early");
        assert_eq!(known(&mut table, last), 0.0);
        assert!(table.bytes() as f64 / f64::from(NAMES) < 11.0);
    }

    #[test]
    fn time_wraps() {
        let mut table = GhostTable::new(100, PageSize::Base).unwrap();
        table.now = u32::MAX - 25;
        (1..=30_u64).for_each(|name| table.push(name << 48));
        assert!((1..=20_u64).all(|name| !table.remove(name << 48, 10)));
        assert!((21..=30_u64).all(|name| table.remove(name << 48, 10)));
    }
}
