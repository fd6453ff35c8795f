//! Partitions: a partition keeps descriptors that have many bits in common, without these bits.
//!
//! Question: how does a search leave out, by one comparison, the descriptors of all tags that it does not ask for?
//!
//! Source: Rogora, Papalini, Khazaei, Margara, Carzaniga, Cugola, "High-throughput subset matching on commodity
//! GPU-based systems", EuroSys 2017: a set is cut into partitions whose members share a *mask* of bits. A search visits
//! a partition only if its mask is a subset of the query. In the paper, a mask has a bit that about half of the set
//! has. Our masks are popular tags, whose 7 bits come together. And a partition may have partitions below it: if its
//! mask is no subset of the query, the search skips them too.
//!
//! ```text
//!   0  {}                        the rest: no mask is a subset
//!   1  ├─ {photo}
//!   2  │   ├─ {photo, sunset}    a mask includes the one above
//!   3  │   └─ {photo, cats}
//!   4  └─ {video}
//! ```
//!
//! A descriptor belongs to one partition: a walk from the top enters each partition whose mask is part of the
//! descriptor, and ends at the last one. The trie of this partition stores the remaining bits. So leaves become
//! smaller, and the descriptors that a query meets there resemble it.
//!
//! The builder of a table finds the masks once, in a sample of the entries. A mask begins as two bits that often come
//! together. Then the builder adds bits that most descriptors with this mask have, until there is no such bit. The
//! sample has at most [`SAMPLE_MAX`].
//!
//! Layout: an array in the order of the drawing; each partition has the index where the partitions below it end.
//! Cost: a query is compared with the masks at the top, and with the masks below each mask that it includes. Finding
//! the masks takes some tenths of a second. Bytes: [`PARTITION_BYTES`] each.
//! Limits: [`PARTITIONS_MAX`].

use super::slot::END_POSITION;
use crate::permutation::Key;
use namewire_packet::descriptor::DESCRIPTOR_BITS;

/// Most partitions of a table.
pub(super) const PARTITIONS_MAX: usize = 1024;
/// Bytes of memory of a partition.
pub(super) const PARTITION_BYTES: usize = size_of::<Partition>();
/// Most descriptors of the sample.
const SAMPLE_MAX: usize = 1 << 16;
/// Fewest bits that a mask has more than the one above. Fewer exclude too few queries.
const BITS_MIN: u8 = 3;
/// Pairs of bits that turn out to be together by chance, before the search for masks ends.
const FAILURES_MAX: usize = 64;

/// The number of 1-bits below each position; one more at the position behind [`END_POSITION`], which everything has.
/// The array is as long as a byte can count, so that an index needs no check.
pub(super) type Ranks = [u8; 256];

/// The ranks of a permuted descriptor.
pub(super) fn ranks(key: &Key) -> Ranks {
    let (mut ranks, mut count) = ([0; 256], 0);
    for (position, rank) in (0..END_POSITION).zip(&mut ranks) {
        *rank = count;
        count += u8::from(key.has(position));
    }
    ranks[usize::from(END_POSITION)] = count;
    ranks[usize::from(END_POSITION) + 1] = count + 1;
    ranks
}

/// Descriptors that have a mask in common.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) mask: Key,
    /// The number of 1-bits of the mask below each position.
    ranks: [u8; 256],
    /// The first partition that is not below this one.
    end: u16,
}

impl Partition {
    fn new(mask: Key) -> Self {
        let mut ranks = ranks(&mask);
        // What remains of a descriptor ends once, not twice.
        ranks[usize::from(END_POSITION) + 1] -= 1;
        Partition { mask, ranks, end: 0 }
    }

    /// The ranks of a query without the mask, which is a subset of it.
    #[inline(always)]
    pub(super) fn ranks_without_mask(&self, query: &Ranks) -> Ranks {
        std::array::from_fn(|position| query[position].wrapping_sub(self.ranks[position]))
    }
}

/// The partitions of a table. The first has no mask.
#[derive(Debug)]
pub(super) struct Partitions(Vec<Partition>);

impl Partitions {
    /// The partitions for `descriptors` descriptors like these. The sample lets expect that none has fewer than
    /// `least`, but the first.
    pub(super) fn of_sample(sample: Vec<Key>, descriptors: usize, least: usize) -> Self {
        let sampled_min = (least.min(descriptors + 1) * sample.len()).div_ceil(descriptors.max(1)).max(1);
        let mut partitions = Partitions(vec![]);
        partitions.add(Key::default(), sample, sampled_min);
        partitions
    }

    /// Adds a partition with this mask, and those below it.
    ///
    /// A mask has at least [`BITS_MIN`] bits more than the one above. So there are at most 65 calls in each other.
    fn add(&mut self, mask: Key, mut members: Vec<Key>, sampled_min: usize) {
        let place = self.0.len();
        self.0.push(Partition::new(mask));
        let mut pairs = Pairs::of(&members, mask);
        let mut failures = 0;
        while self.0.len() < PARTITIONS_MAX
            && failures < FAILURES_MAX
            && let Some(pair) = pairs.most_frequent(sampled_min)
        {
            let common = grow(&members, mask.with(pair[0]).with(pair[1]));
            let support = members.iter().filter(|member| common.is_subset_of(member)).count();
            if support < sampled_min || common.weight() < mask.weight() + BITS_MIN {
                pairs.exclude(pair);
                failures += 1;
                continue;
            }
            let (below, others) = members.into_iter().partition(|member| common.is_subset_of(member));
            members = others;
            pairs.remove(&below, mask);
            self.add(common, below, sampled_min);
        }
        self.0[place].end = self.0.len() as u16;
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, partition: u16) -> &Partition {
        &self.0[usize::from(partition)]
    }

    /// The partition that stores a descriptor.
    pub(super) fn of(&self, key: &Key) -> u16 {
        let (mut found, mut place, mut end) = (0, 1, self.0[0].end);
        while place < end {
            let partition = self.get(place);
            if partition.mask.is_subset_of(key) {
                (found, place, end) = (place, place + 1, partition.end);
            } else {
                place = partition.end;
            }
        }
        found
    }

    /// Calls `visit` with each partition that may store subsets of a query; what is below a partition follows it.
    #[inline]
    pub(super) fn for_each_of_query(&self, query: &Key, mut visit: impl FnMut(u16)) {
        let mut place = 0;
        while let Some(partition) = self.0.get(usize::from(place)) {
            if partition.mask.is_subset_of(query) {
                visit(place);
                place += 1;
            } else {
                place = partition.end;
            }
        }
    }
}

/// Of so many entries the sample takes one.
pub(super) fn sample_step(entries: usize) -> usize {
    entries.div_ceil(SAMPLE_MAX).max(1)
}

/// A mask with all bits that at least half of those have that have it: one bit after the other, the most popular first.
fn grow(members: &[Key], mut mask: Key) -> Key {
    let mut having: Vec<&Key> = members.iter().filter(|member| mask.is_subset_of(member)).collect();
    loop {
        let mut counts = [0_usize; DESCRIPTOR_BITS];
        for member in &having {
            member.without(mask).for_each_from_the_left(0, |position| counts[usize::from(position)] += 1);
        }
        let (position, count) = (0_u8..).zip(counts).max_by_key(|(_, count)| *count).unwrap_or((0, 0));
        if count == 0 || 2 * count < having.len() {
            return mask;
        }
        mask = mask.with(position);
        having.retain(|member| member.has(position));
    }
}

/// How many descriptors of a sample have both of two bits.
struct Pairs(Vec<u32>);

impl Pairs {
    fn of(members: &[Key], mask: Key) -> Self {
        let mut pairs = Pairs(vec![0; DESCRIPTOR_BITS * DESCRIPTOR_BITS]);
        pairs.for_each(members, mask, |count| *count += 1);
        pairs
    }

    fn for_each(&mut self, members: &[Key], mask: Key, change: impl Fn(&mut u32)) {
        let mut positions = arrayvec::ArrayVec::<u8, DESCRIPTOR_BITS>::new();
        for member in members {
            positions.clear();
            member.without(mask).for_each_from_the_left(0, |position| positions.push(position));
            for (place, first) in positions.iter().enumerate() {
                let row = &mut self.0[usize::from(*first) * DESCRIPTOR_BITS..][..DESCRIPTOR_BITS];
                positions[place + 1..].iter().for_each(|second| change(&mut row[usize::from(*second)]));
            }
        }
    }

    /// The pair that the most descriptors have, if these are at least `least`.
    fn most_frequent(&self, least: usize) -> Option<[u8; 2]> {
        let (place, count) = self.0.iter().enumerate().max_by_key(|(_, count)| **count)?;
        let pair = [place / DESCRIPTOR_BITS, place % DESCRIPTOR_BITS].map(|position| position as u8);
        (*count as usize >= least).then_some(pair)
    }

    /// The pair is not found again.
    fn exclude(&mut self, [first, second]: [u8; 2]) {
        self.0[usize::from(first) * DESCRIPTOR_BITS + usize::from(second)] = 0;
    }

    fn remove(&mut self, members: &[Key], mask: Key) {
        // What was excluded is 0.
        self.for_each(members, mask, |count| *count = count.saturating_sub(1));
    }
}
