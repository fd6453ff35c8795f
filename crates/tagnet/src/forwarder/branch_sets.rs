//! Branch sets by number: a table of which each version costs a copy of one part only.
//!
//! ```text
//!   parts │ Arc │ Arc │ Arc │      a version shares the parts that did not change with the version before
//!            └► 128 sets, each an Arc
//! ```

use super::BranchSet;
use std::sync::Arc;

/// Sets of a part: a change copies this many pointers, and one for each part.
const PART: usize = 128;

/// Sets of branches, by number.
#[derive(Clone, Debug, Default)]
pub struct BranchSets {
    parts: Vec<Arc<Vec<Arc<BranchSet>>>>,
}

impl BranchSets {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |last| (self.parts.len() - 1) * PART + last.len())
    }

    /// True without sets.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a set; returns its number.
    pub fn push(&mut self, set: Arc<BranchSet>) -> u32 {
        let number = self.len();
        if number.is_multiple_of(PART) {
            self.parts.push(Arc::default());
        }
        Arc::make_mut(&mut self.parts[number / PART]).push(set);
        number as u32
    }

    /// Gives a number to another set.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn replace(&mut self, number: u32, set: Arc<BranchSet>) {
        Arc::make_mut(&mut self.parts[number as usize / PART])[number as usize % PART] = set;
    }

    /// The set with this number.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn get(&self, number: u32) -> &BranchSet {
        &self.parts[number as usize / PART][number as usize % PART]
    }
}

impl FromIterator<BranchSet> for BranchSets {
    /// The sets in order, numbered from 0.
    fn from_iter<I: IntoIterator<Item = BranchSet>>(sets: I) -> Self {
        let mut all = BranchSets::default();
        sets.into_iter().for_each(|set| _ = all.push(Arc::new(set)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TagSet;
    use namewire_packet::FaceId;

    fn set(number: u64) -> BranchSet {
        BranchSet::new(Vec::new(), vec![(FaceId(number), TagSet::default())])
    }

    #[test]
    fn a_version_stays_as_it_was_when_the_next_one_changes() {
        let first: BranchSets = (0..300).map(set).collect();
        let mut second = first.clone();
        second.replace(200, Arc::new(set(9)));
        assert_eq!(second.push(Arc::new(set(300))), 300);
        assert_eq!((first.len(), second.len()), (300, 301));
        assert_eq!((first.get(200), second.get(200), second.get(300)), (&set(200), &set(9), &set(300)));
        assert!(Arc::ptr_eq(&first.parts[0], &second.parts[0]), "a part that did not change is shared");
    }
}
