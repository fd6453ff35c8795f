//! Stored sets: the sets of a source that a router stores, with different descriptors.
//!
//! Sets are drawn in the order of their numbers. Of those with one descriptor, the first is kept. So the descriptor of
//! every set up to the last kept number is stored.
//!
//! Duplicates are found by sorting, not by a table of hashes.
//!
//! Memory: 32 bytes for each descriptor, and up to half as many more while they are drawn.

use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::Entry;

use super::{Tag, TagSource};
use crate::interrupt::{self, Interrupted};
use crate::split_mix::split_mix;

/// Different sets of branches that descriptors have.
pub const BRANCH_SETS: u32 = 1_000;
/// So many draws for each wanted descriptor, then the source has no more to give.
const DRAWS_FACTOR: u64 = 8;

/// Sets with different descriptors.
#[derive(Debug)]
pub struct StoredSets {
    /// The descriptors in the order of their sets' numbers; the value is that number.
    pub numbered: Vec<Entry>,
}

impl StoredSets {
    /// This number of descriptors, or fewer if the source does not have so many.
    ///
    /// # Errors
    /// If the user interrupted.
    pub fn draw(source: &dyn TagSource, wanted: usize) -> Result<Self, Interrupted> {
        let draws_max = u64::from(source.sets()).min(wanted as u64 * DRAWS_FACTOR) as u32;
        let (mut numbered, mut tags, mut draws) = (Vec::with_capacity(wanted + wanted / 10), Vec::new(), 0);
        while numbered.len() < wanted && draws < draws_max {
            let until = draws_max.min(draws.saturating_add(batch(wanted, numbered.len(), draws)));
            for number in draws..until {
                if number % 65_536 == 0 {
                    interrupt::check()?;
                }
                numbered.push(Entry { descriptor: descriptor(source, number, &mut tags), value: number });
            }
            draws = until;
            numbered.sort_unstable_by_key(|entry| (entry.descriptor, entry.value));
            numbered.dedup_by_key(|entry| entry.descriptor);
        }
        numbered.sort_unstable_by_key(|entry| entry.value);
        numbered.truncate(wanted);
        Ok(Self { numbered })
    }

    /// So many of these sets, each choice with the same probability; all if there are not so many.
    #[must_use]
    pub fn sample(&self, wanted: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut missing = wanted.min(self.numbered.len());
        let mut numbered = Vec::with_capacity(missing);
        for (place, entry) in self.numbered.iter().enumerate() {
            if random.usize(..self.numbered.len() - place) < missing {
                numbered.push(*entry);
                missing -= 1;
            }
        }
        Self { numbered }
    }

    /// The descriptors as a router stores them: with the numbers of their sets of branches.
    pub fn entries(&self) -> Vec<Entry> {
        let stored = |entry: &Entry| Entry { value: branch_set(entry.value), ..*entry };
        self.numbered.iter().map(stored).collect()
    }

    /// As [`StoredSets::entries`], in the memory of the sets.
    pub fn into_entries(self) -> Vec<Entry> {
        let mut entries = self.numbered;
        entries.iter_mut().for_each(|entry| entry.value = branch_set(entry.value));
        entries
    }

    /// The number of descriptors in words: 10 M, 170 k.
    pub fn rounded(&self) -> String {
        match self.numbered.len() {
            few @ 0..1_000 => few.to_string(),
            some @ 1_000..1_000_000 => format!("{} k", (some + 500) / 1_000),
            many => format!("{} M", (many + 500_000) / 1_000_000),
        }
    }

    /// The mean number of 1-bits.
    pub fn mean_weight(&self) -> f64 {
        let bits: u64 = self.numbered.iter().map(|entry| u64::from(entry.descriptor.weight())).sum();
        bits as f64 / self.numbered.len().max(1) as f64
    }

    /// The mean number of tags of some of the sets, spread evenly.
    pub fn mean_tags(&self, source: &dyn TagSource, sample: usize) -> f64 {
        let step = (self.numbered.len() / sample.max(1)).max(1);
        let (mut tags, mut all_tags, mut sets) = (Vec::new(), 0, 0);
        for entry in self.numbered.iter().step_by(step) {
            source.write_tags(entry.value, &mut tags);
            (all_tags, sets) = (all_tags + tags.len(), sets + 1);
        }
        all_tags as f64 / f64::from(sets.max(1))
    }
}

/// How many sets to draw next, when so many draws gave so many different descriptors. Each round sorts all, so the
/// fewer rounds the better; and what is drawn at a time takes memory, so half of what is wanted is the most.
fn batch(wanted: usize, different: usize, draws: u32) -> u32 {
    let missing = (wanted - different) as f64;
    let draws_each = if different == 0 { 1.0 } else { f64::from(draws) / different as f64 };
    (missing * draws_each * 1.0625 + 64.0).min(wanted as f64 / 2.0 + 64.0) as u32
}

/// The number of the set of branches of set `number`.
fn branch_set(number: u32) -> u32 {
    (split_mix(number.into()) % u64::from(BRANCH_SETS)) as u32
}

fn descriptor(source: &dyn TagSource, number: u32, tags: &mut Vec<Tag>) -> Descriptor {
    source.write_tags(number, tags);
    tags.iter().fold(Descriptor::EMPTY, |descriptor, tag| descriptor.union(source.filter(*tag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag_sets::{TagFile, ZipfTags};
    use std::collections::HashSet;

    #[test]
    fn descriptors_are_different_and_those_of_the_first_sets() -> anyhow::Result<()> {
        let source = ZipfTags::new(1, 30, 1.0);
        let stored = StoredSets::draw(&source, 1_000)?;
        let descriptors: HashSet<Descriptor> = stored.numbered.iter().map(|entry| entry.descriptor).collect();
        assert_eq!((stored.numbered.len(), descriptors.len()), (1_000, 1_000));
        let (last, mut tags) = (stored.numbered[999].value, Vec::new());
        assert!(last > 1_100, "a small vocabulary gives the same set often");
        for number in 0..=last {
            assert!(descriptors.contains(&descriptor(&source, number, &mut tags)));
        }
        let mean_tags = stored.mean_tags(&source, 1_000);
        assert!((2.0..4.0).contains(&mean_tags) && stored.mean_weight() > 6.0 * mean_tags);
        let entries = stored.entries();
        assert!(entries.iter().all(|entry| entry.value < BRANCH_SETS));
        assert_eq!(stored.into_entries(), entries);
        Ok(())
    }

    #[test]
    fn a_sample_has_every_set_with_the_same_probability() -> anyhow::Result<()> {
        let stored = StoredSets::draw(&ZipfTags::new(1, 1_000, 0.0), 100)?;
        let mut chosen = std::collections::HashMap::new();
        for seed in 0..1_000 {
            let sample = stored.sample(30, seed);
            assert!(sample.numbered.is_sorted_by_key(|entry| entry.value) && sample.numbered.len() == 30);
            sample.numbered.iter().for_each(|entry| *chosen.entry(entry.value).or_insert(0) += 1);
        }
        assert!(chosen.len() == 100 && chosen.values().all(|times| (220..380).contains(times)), "{chosen:?}");
        assert_eq!(stored.sample(1_000, 1).numbered, stored.numbered);
        Ok(())
    }

    #[test]
    fn a_source_that_is_used_up_gives_what_it_has() -> anyhow::Result<()> {
        let file = TagFile::of_text("f", &b"a\nb\na b\n"[..])?;
        assert_eq!(StoredSets::draw(&file, 10)?.numbered.len(), 3);
        assert_eq!(StoredSets::draw(&file, 2)?.numbered.len(), 2);
        let few = ZipfTags::new(1, 4, 0.0);
        assert_eq!(StoredSets::draw(&few, 100)?.numbered.len(), 6 + 4 + 1);
        Ok(())
    }
}
