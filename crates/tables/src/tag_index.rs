//! Tag index: which entry numbers may belong to this hash?
//!
//! Source: So et al. 2013 and Yuan15 chapter 3 (a bucket is one cache line and holds short fingerprints and
//! pointers); the overflow counter is from F14 and similar SwissTable-like designs. The index knows no
//! names: the caller compares them.
//!
//! ```text
//! bucket, 64 bytes, one line:
//!  0      8      16       20        24                                64
//!  | tags 0-3 | tags 4-7 | tags 8-9 | passed | values 0-9, 4 bytes each   |
//! ```
//!
//! A hash has a *tag*, its upper 16 bits (0 means an empty slot, so 0 becomes 1). Its *home* bucket is its
//! lower 48 bits scaled to the number of buckets, which need not be a power of two. The *way* of a value is
//! its home, the bucket after it, and so on. The value is put into the first bucket on its way with a free
//! slot.
//!
//! Each bucket has eight `passed` counters of 4 bits; the lowest three bits of a tag choose one. A value
//! that passes a full bucket raises its counter in that bucket. So a search ends at the first bucket that
//! no value with such a tag had to pass. A counter that has reached 15 stays at 15. If all buckets have
//! such a counter, an unsuccessful search ends where it began, after one turn through the index. A value
//! never moves, except when the owner makes a larger index.
//!
//! *Keys that begin together* ([`IndexKey`]): the way of a key may begin at the home of another hash, its
//! *first* hash. So one line can serve several keys, for example all prefixes of one name. If that bucket
//! is full, the key's way continues at its own home. So if many keys have one first hash, each of them
//! costs one line more, and other keys cost nothing more.
//!
//! Cost: a search reads 1 line, and one more for each bucket on the way that a value with such a tag
//! passed. At a load of [`MAX_LOAD_PERCENT`] an unsuccessful search reads 1.2 lines in all, as measured in
//! the tests. With one counter for all tags, it read 1.6 in a simulation. In 10 × load / 65,535 of all
//! searches, a wrong value has an equal tag.
//! Bytes: a value takes 6.4 / load, which is 8 at [`MAX_LOAD_PERCENT`].
//! Full: the index is made for a number of values; the owner must not insert more.
//!
//! Writers: one thread. Readers may look at the same time. They find every value that is in the index
//! throughout the search, for three reasons. The value does not move. Its tag is published after it. The
//! writer raises `passed` before it adds the value and lowers `passed` after it removes the value. A reader
//! may see a value that was just removed, or a tag with the value of the slot's next user. So it compares
//! names, and entries stay readable until no reader can hold them. The loom models in `crates/tables/loom`
//! check this file.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use crate::tag_compare::{equal_tags, equal_tags_of_four};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Values per bucket.
const SLOTS: usize = 10;
/// Percent of the slots in use when the index is full.
pub const MAX_LOAD_PERCENT: usize = 80;

/// The `passed` counters are the upper half of the third word.
const COUNTERS_SHIFT: u64 = 32;

/// A `passed` counter at this value is never lowered again: the true count may be higher.
const MANY: u64 = 0xf;

#[cfg_attr(not(loom), derive(bytemuck::Zeroable))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
struct Bucket {
    /// Tags in lanes of 16 bits; the third word holds two, then the `passed` counters.
    tags: [AtomicU64; 3],
    values: [AtomicU32; SLOTS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

/// Where a search begins, and what it looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IndexKey {
    /// The hash that selects the first bucket.
    pub first: u64,
    /// The hash that selects the tag, and the second bucket if that is another one.
    pub own: u64,
}

impl From<u64> for IndexKey {
    #[inline(always)]
    fn from(hash: u64) -> Self {
        Self { first: hash, own: hash }
    }
}

/// A search, and the bucket that it has come to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Walk {
    place: u32,
    /// The search is still in the first bucket, and the second is not the one after it.
    jumps: bool,
}

impl Walk {
    /// Whether other keys with the same `first` begin in this bucket too.
    #[inline(always)]
    pub fn is_shared(self) -> bool {
        self.jumps
    }

    /// The walk of the key that has its own hash as the first one.
    #[inline(always)]
    pub fn of_own_hash(self) -> Self {
        Self { jumps: false, ..self }
    }
}

/// The bucket where the ways of some keys begin.
#[derive(Clone, Copy)]
pub struct FirstBucket<'a>(&'a Bucket);

impl<'a> FirstBucket<'a> {
    /// Begins to fetch it.
    #[inline(always)]
    pub fn prefetch(self) {
        prefetch(self.0);
    }

    /// Looks at it.
    #[inline(always)]
    pub fn look(self) -> Look<'a> {
        Look { bucket: self.0, words: self.0.words() }
    }
}

/// A bucket that was looked at, with its tags and counters as they were then.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    bucket: &'a Bucket,
    words: [u64; 3],
}

impl<'a> Look<'a> {
    /// The values here.
    pub fn values(self) -> impl Iterator<Item = u32> + use<'a> {
        let used = move |slot: &usize| self.words[slot / 4] >> (16 * (slot % 4)) & 0xffff != 0;
        (0..SLOTS).filter(used).map(move |slot| self.bucket.values[slot].load(Ordering::Acquire))
    }

    /// Whether the bucket gives a reason to go on with the search for `own`: a tag, or a value that passed.
    #[inline(always)]
    pub fn has_trace(&self, own: u64) -> bool {
        let tag = tag(own);
        u64::from(equal_tags(self.words, tag as u16)) | passed(self.words, tag) != 0
    }

    /// Whether a value with such a tag passed the bucket.
    #[inline(always)]
    pub fn has_passed(&self, own: u64) -> bool {
        passed(self.words, tag(own)) != 0
    }

    /// Whether any value passed the bucket.
    #[inline(always)]
    pub fn is_passed(&self) -> bool {
        self.words[2] >> COUNTERS_SHIFT != 0
    }

    /// The last of four hashes with an equal tag here, by its place, and a value with this tag, unverified.
    /// In place of the lowest two bits of their tags the hashes have those in `lowest`. Only hashes whose 16
    /// bits in `places` are set count.
    #[inline(always)]
    pub fn last_of_four(&self, hashes: &[u64; 4], lowest: &[u32; 4], places: u64) -> Option<(usize, u32)> {
        let equal = equal_tags_of_four(self.words, hashes, lowest) & places;
        let last = equal.checked_ilog2()? as usize;
        Some((last / 16, self.bucket.values[last % 16].load(Ordering::Acquire)))
    }
}

/// The result of looking at a bucket.
pub enum Step<V = u32> {
    /// A value with the tag, unverified.
    Found(V),
    /// Not here, but perhaps in this next bucket.
    Next(Walk),
    /// Not in the index.
    Absent,
}

/// Values found by hash; see the module.
pub struct TagIndex {
    buckets: PageArray<Bucket>,
}

impl TagIndex {
    /// An index for at most `values` values.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(values: usize, pages: PageSize) -> io::Result<Self> {
        let buckets = (values * 100).div_ceil(SLOTS * MAX_LOAD_PERCENT).max(1);
        Ok(Self { buckets: PageArray::zeroed(buckets, pages)? })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.buckets.mapped_bytes()
    }

    /// Begins to fetch the first bucket.
    #[inline(always)]
    pub fn prefetch(&self, key: impl Into<IndexKey>) {
        prefetch(&self.buckets[self.home(key.into().first)]);
    }

    /// The first bucket of keys with this `first`.
    #[inline(always)]
    pub fn first_bucket(&self, first: u64) -> FirstBucket<'_> {
        FirstBucket(&self.buckets[self.home(first)])
    }

    /// Begins a search bucket by bucket, for a caller that works between two buckets. The first bucket
    /// should be prefetched.
    #[inline(always)]
    pub fn walk(&self, key: impl Into<IndexKey>) -> Walk {
        let key = key.into();
        Walk { place: self.home(key.first) as u32, jumps: key.first != key.own }
    }

    /// Begins to fetch the bucket that [`TagIndex::look`] reads.
    #[inline(always)]
    pub fn prefetch_step(&self, walk: Walk) {
        prefetch(&self.buckets[walk.place as usize]);
    }

    /// Looks at one bucket.
    #[inline(always)]
    pub fn look(&self, walk: Walk) -> Look<'_> {
        let bucket = &self.buckets[walk.place as usize];
        Look { bucket, words: bucket.words() }
    }

    /// What this look tells the walk of a key with the hash `own`.
    #[inline(always)]
    pub fn step(&self, look: Look<'_>, walk: Walk, own: u64) -> Step {
        let tag = tag(own);
        if let Some(slot) = slots_with(look.words, tag).next() {
            return Step::Found(look.bucket.values[slot].load(Ordering::Acquire));
        }
        if passed(look.words, tag) == 0 {
            return Step::Absent;
        }
        self.after(walk, own).map_or(Step::Absent, Step::Next)
    }

    /// The first value, in the order of the search, that `is_wanted` accepts.
    #[inline]
    pub fn find(&self, key: impl Into<IndexKey>, mut is_wanted: impl FnMut(u32) -> bool) -> Option<u32> {
        let key = key.into();
        let (mut walk, tag) = (self.walk(key), tag(key.own));
        loop {
            let bucket = &self.buckets[walk.place as usize];
            let words = bucket.words();
            for slot in slots_with(words, tag) {
                let value = bucket.values[slot].load(Ordering::Acquire);
                if is_wanted(value) {
                    return Some(value);
                }
            }
            if passed(words, tag) == 0 {
                return None;
            }
            walk = self.after(walk, key.own)?;
        }
    }

    /// The first value with the tag of `key`, unverified: probably the one that a search will find.
    #[inline(always)]
    pub fn candidate(&self, key: impl Into<IndexKey>) -> Option<u32> {
        let key = key.into();
        let (bucket, tag) = (&self.buckets[self.home(key.first)], tag(key.own));
        let words = bucket.words();
        if let Some(slot) = slots_with(words, tag).next() {
            return Some(bucket.values[slot].load(Ordering::Acquire));
        }
        if passed(words, tag) == 0 { None } else { self.candidate_beyond_first(key) }
    }

    /// [`TagIndex::candidate`] if the first bucket has none.
    #[inline(never)]
    fn candidate_beyond_first(&self, key: IndexKey) -> Option<u32> {
        self.find(key, |_| true)
    }

    /// Every value. Values added or removed meanwhile may be missing.
    pub fn values(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flat_map(|bucket| {
            let used = |slot: usize| bucket.tags[slot / 4].load(Ordering::Acquire) >> (16 * (slot % 4)) & 0xffff != 0;
            (0..SLOTS).filter(move |&slot| used(slot)).map(|slot| bucket.values[slot].load(Ordering::Acquire))
        })
    }

    /// Adds `value`, which must not be there under this key. One thread only. The index must have room
    /// left.
    #[inline(always)]
    pub fn insert(&self, key: impl Into<IndexKey>, value: u32) {
        let key = key.into();
        if !self.buckets[self.home(key.first)].put(tag(key.own), value) {
            self.insert_beyond_first(key, value);
        }
    }

    /// [`TagIndex::insert`] if the first bucket is full.
    #[inline(never)]
    fn insert_beyond_first(&self, key: IndexKey, value: u32) {
        let (mut walk, tag) = (self.walk(key), tag(key.own));
        loop {
            let bucket = &self.buckets[walk.place as usize];
            if bucket.put(tag, value) {
                return;
            }
            bucket.add_passed(tag, 1);
            let Some(next) = self.after(walk, key.own) else {
                unreachable!("the owner inserts no more values than the index was made for")
            };
            walk = next;
        }
    }

    /// Removes `value`; returns whether it was there under this key. One thread only.
    #[inline(always)]
    pub fn remove(&self, key: impl Into<IndexKey>, value: u32) -> bool {
        let key = key.into();
        let bucket = &self.buckets[self.home(key.first)];
        match bucket.slot_of(bucket.words(), tag(key.own), value) {
            Some(slot) => bucket.flip_tag(slot, tag(key.own)),
            None => return self.remove_beyond_first(key, value),
        }
        true
    }

    /// [`TagIndex::remove`] if the value is not in the first bucket.
    #[inline(never)]
    fn remove_beyond_first(&self, key: IndexKey, value: u32) -> bool {
        let Some((end, slot)) = self.slot_of(key, value) else { return false };
        let (mut walk, tag) = (self.walk(key), tag(key.own));
        self.buckets[end.place as usize].flip_tag(slot, tag);
        while walk != end {
            self.buckets[walk.place as usize].add_passed(tag, -1);
            let Some(next) = self.after(walk, key.own) else { break };
            walk = next;
        }
        true
    }

    /// Replaces `old` by `new`; returns whether `old` was there. One thread only.
    pub fn replace(&self, key: impl Into<IndexKey>, old: u32, new: u32) -> bool {
        let Some((walk, slot)) = self.slot_of(key.into(), old) else { return false };
        self.buckets[walk.place as usize].values[slot].store(new, Ordering::Release);
        true
    }

    /// The bucket and the slot that hold `value`. Only for the writing thread.
    fn slot_of(&self, key: IndexKey, value: u32) -> Option<(Walk, usize)> {
        let (mut walk, tag) = (self.walk(key), tag(key.own));
        loop {
            let bucket = &self.buckets[walk.place as usize];
            let words = bucket.words();
            if let Some(slot) = bucket.slot_of(words, tag, value) {
                return Some((walk, slot));
            }
            if passed(words, tag) == 0 {
                return None;
            }
            walk = self.after(walk, key.own)?;
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash << 16) * self.buckets.len() as u128) >> 64) as usize
    }

    /// The bucket after this one in the walk of the key with the hash `own`, if there is one.
    #[inline(always)]
    fn after(&self, walk: Walk, own: u64) -> Option<Walk> {
        let second = self.home(own) as u32;
        let place = match walk.jumps {
            true => second,
            false if walk.place as usize + 1 == self.buckets.len() => 0,
            false => walk.place + 1,
        };
        // The walk ends after one turn. Otherwise a search in vain would never end once every bucket had
        // been passed.
        (walk.jumps || place != second).then_some(Walk { place, jumps: false })
    }
}

impl Bucket {
    /// Tags and counters. Each word is read once; readers do not need the words to agree.
    #[inline(always)]
    fn words(&self) -> [u64; 3] {
        let [first, second, third] = &self.tags; // a `map` over the three was a call of 20 instructions
        [first.load(Ordering::Acquire), second.load(Ordering::Acquire), third.load(Ordering::Acquire)]
    }

    /// Puts the value into a free slot; returns whether there was one. Only for the writing thread.
    #[inline(always)]
    fn put(&self, tag: u64, value: u32) -> bool {
        let Some(slot) = slots_with(self.words(), 0).next() else { return false };
        self.values[slot].store(value, Ordering::Release);
        self.flip_tag(slot, tag);
        true
    }

    /// The slot of a value in a bucket with these words. Only for the writing thread.
    #[inline(always)]
    fn slot_of(&self, words: [u64; 3], tag: u64, value: u32) -> Option<usize> {
        slots_with(words, tag).find(|&slot| self.values[slot].load(Ordering::Relaxed) == value)
    }

    /// The only writer calls this, so load and store need not be one step.
    fn add_passed(&self, tag: u64, more: i64) {
        let words = self.words();
        let passed = passed(words, tag);
        if passed < MANY {
            let changed = passed.wrapping_add_signed(more);
            let cleared = words[2] & !(MANY << passed_shift(tag));
            self.tags[2].store(cleared | changed << passed_shift(tag), Ordering::Release);
        }
    }

    /// Sets the tag of an empty slot, or empties the slot that has this tag.
    #[inline(always)]
    fn flip_tag(&self, slot: usize, tag: u64) {
        let word = &self.tags[slot / 4];
        word.store(word.load(Ordering::Relaxed) ^ tag << (16 * (slot % 4)), Ordering::Release);
    }
}

/// How many values with a tag like this one had to pass the bucket with these words.
#[inline(always)]
fn passed(words: [u64; 3], tag: u64) -> u64 {
    words[2] >> passed_shift(tag) & MANY
}

#[inline(always)]
fn tag(hash: u64) -> u64 {
    (hash >> 48).max(1)
}

#[inline(always)]
fn passed_shift(tag: u64) -> u64 {
    COUNTERS_SHIFT + 4 * (tag & 7)
}

/// The slots of a bucket whose tags equal `tag`, in order.
#[inline(always)]
fn slots_with(words: [u64; 3], tag: u64) -> impl Iterator<Item = usize> {
    let mut slots = equal_tags(words, tag as u16);
    std::iter::from_fn(move || {
        (slots != 0).then(|| {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            slot
        })
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Any order of insertions and removals on few homes and tags, so that buckets overflow.
        #[test]
        fn the_index_equals_a_set(operations in prop::collection::vec((0_u64..9, 0_u64..4, 0_u32..30, any::<bool>()), 0..400)) {
            let index = TagIndex::new(90, PageSize::Base).unwrap();
            let mut model = BTreeSet::new();
            let mut sticky = false;
            for (tag, home, value, insert) in operations {
                let hash = tag << 48 | home << 46;
                let key = (tag.max(1), home, value); // tags 0 and 1 are one
                let value = value | (home as u32) << 8;
                if !insert {
                    prop_assert_eq!(index.remove(hash, value), model.remove(&key));
                } else if model.len() < 90 && model.insert(key) {
                    index.insert(hash, value);
                }
                sticky |= index.buckets.iter().any(|bucket| (0..8).any(|tag| passed(bucket.words(), tag) == MANY));
                prop_assert_eq!(index.find(hash, |other| other == value).is_some(), model.contains(&key));
            }
            let mut expected: Vec<u32> = model.iter().map(|&(_, home, value)| value | (home as u32) << 8).collect();
            let mut listed: Vec<u32> = index.values().collect();
            expected.sort_unstable();
            listed.sort_unstable();
            prop_assert_eq!(listed, expected);
            for &(tag, home, value) in &model {
                let hash = tag << 48 | home << 46;
                prop_assert!(index.replace(hash, value | (home as u32) << 8, 7777));
                prop_assert!(index.remove(hash, 7777));
            }
            prop_assert_eq!(index.values().count(), 0);
            let all_passed = |bucket: &Bucket| (0..8).map(|tag| passed(bucket.words(), tag)).sum::<u64>();
            prop_assert_eq!(index.buckets.iter().any(|bucket| all_passed(bucket) > 0), sticky);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The same with keys that begin together, and walks step by step as well.
        #[test]
        fn keys_that_begin_together_are_found(operations in prop::collection::vec((0_u64..3, 0_u64..60, any::<bool>()), 0..400)) {
            let index = TagIndex::new(64, PageSize::Base).unwrap();
            let mut model = BTreeSet::new();
            for (first, own, insert) in operations {
                let hash = |number: u64| number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let key = IndexKey { first: hash(first), own: if own == 0 { hash(first) } else { hash(own) } };
                let value = (first * 100 + own) as u32;
                if !insert {
                    prop_assert_eq!(index.remove(key, value), model.remove(&value));
                } else if model.len() < 64 && model.insert(value) {
                    index.insert(key, value);
                }
                prop_assert_eq!(index.find(key, |other| other == value).is_some(), model.contains(&value));
                let mut walk = index.walk(key);
                let candidate = loop {
                    let look = index.look(walk);
                    match index.step(look, walk, key.own) {
                        Step::Found(value) => break Some(value),
                        Step::Next(next) => walk = next,
                        Step::Absent => break None,
                    }
                    prop_assert!(look.has_trace(key.own));
                };
                prop_assert_eq!(candidate, index.candidate(key));
            }
            let mut listed: Vec<u32> = index.values().collect();
            listed.sort_unstable();
            prop_assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
        }
    }

    /// More values with one tag pass a bucket than its counter can count.
    #[test]
    fn a_counter_at_its_end_never_hides_a_value() {
        let index = TagIndex::new(200, PageSize::Base).unwrap();
        (0..60).for_each(|value| index.insert(5 << 48, value));
        (0..59).for_each(|value| assert!(index.remove(5 << 48, value)));
        assert_eq!(passed(index.buckets[0].words(), 5), MANY);
        assert_eq!(index.find(5 << 48, |value| value == 59), Some(59));
    }

    /// Saturated counters in every bucket of the index made a search in vain go round for ever.
    #[test]
    fn a_search_ends_when_every_bucket_was_passed() {
        let index = TagIndex::new(32, PageSize::Base).unwrap();
        let hash = |home: u64| 5 << 48 | home << 46;
        assert_eq!((index.buckets.len(), [0, 1, 2, 3].map(|home| index.home(hash(home)))), (4, [0, 1, 2, 3]));
        for home in 0..4 {
            // 32 values from one home on: 22 pass its bucket, 12 the next one.
            (0..32).for_each(|value| index.insert(hash(home), value));
            (0..32).for_each(|value| assert!(index.remove(hash(home), value)));
        }
        assert!(index.buckets.iter().all(|bucket| passed(bucket.words(), 5) == MANY));
        let begin_together = |home| IndexKey { first: hash((home + 2) % 4), own: hash(home) };
        let alone = (0..4).map(|home| (IndexKey::from(hash(home)), 3));
        for (key, steps) in alone.chain((0..4).map(|home| (begin_together(home), 4))) {
            assert_eq!(index.find(key, |_| true), None);
            assert!(!index.remove(key, 1) && !index.replace(key, 1, 2));
            let step = |walk: &Walk| match index.step(index.look(*walk), *walk, key.own) {
                Step::Next(next) => Some(next),
                Step::Found(_) | Step::Absent => None,
            };
            assert_eq!(std::iter::successors(Some(index.walk(key)), step).skip(1).take(9).count(), steps);
        }
        for key in [IndexKey::from(hash(1)), begin_together(1)] {
            (0..32).for_each(|value| index.insert(key, value));
            assert!((0..32).all(|value| index.find(key, |found| found == value).is_some()));
            assert!((0..32).all(|value| index.remove(key, value)));
        }
    }

    #[test]
    fn a_full_index_is_searched_in_few_lines() {
        let index = TagIndex::new(100_000, PageSize::Base).unwrap();
        let mut rng = fastrand::Rng::with_seed(1);
        let hashes: Vec<u64> = (0..100_000).map(|_| rng.u64(..)).collect();
        for (value, &hash) in (0..).zip(&hashes) {
            index.insert(hash, value);
        }
        assert!((0..).zip(&hashes).all(|(value, &hash)| index.find(hash, |found| found == value).is_some()));
        // The searches of a longest prefix match are mostly for prefixes that are not there.
        let lines = |hash: u64| {
            let is_passed = |walk: &Walk| passed(index.buckets[walk.place as usize].words(), tag(hash)) > 0;
            let on_the_way = std::iter::successors(Some(index.walk(hash)), |&walk| index.after(walk, hash));
            1 + on_the_way.take_while(is_passed).count()
        };
        let misses = 100_000;
        let lines = (0..misses).map(|_| lines(rng.u64(..))).sum::<usize>() as f64 / f64::from(misses);
        assert!(lines < 1.25, "{lines} lines for a search in vain");
        assert!(index.bytes() as f64 / 100_000.0 < 8.1);
    }
}
