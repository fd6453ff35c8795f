//! Linear scan: compares a query with every descriptor.
//!
//! Question: what is the right answer? The linear scan is the reference of every other table, and the fastest below
//! some hundred descriptors. Cost: a query reads 3 words for each descriptor.

use crate::{Entry, SubsetTable};
use namewire_packet::descriptor::Descriptor;
use std::ops::ControlFlow;

/// Descriptors in the order of their insertion.
#[derive(Clone, Debug, Default)]
pub struct LinearTable {
    entries: Vec<Entry>,
}

impl LinearTable {
    /// Stores a descriptor, or gives a stored one this value.
    pub fn insert(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|stored| stored.descriptor == entry.descriptor) {
            Some(stored) => stored.value = entry.value,
            None => self.entries.push(entry),
        }
    }

    /// Removes a descriptor; false if it was not stored.
    pub fn remove(&mut self, descriptor: &Descriptor) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.descriptor != *descriptor);
        self.entries.len() < before
    }

    /// The entries, in the order of their insertion.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn subsets(&self, query: &Descriptor) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.descriptor.is_subset_of(query))
    }
}

impl SubsetTable for LinearTable {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn find_all(&self, query: &Descriptor, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        let _ = self.subsets(query).try_for_each(|entry| visit(entry.value));
    }

    fn find_largest_of(&self, query: &Descriptor, mut accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        let better = |best: Entry, entry: Entry| if entry.is_preferred_to(&best) { entry } else { best };
        self.subsets(query).filter(|entry| accepts(entry.value)).copied().reduce(better)
    }
}
