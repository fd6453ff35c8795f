//! Vector form: readers search the paper's table, which is built whole, and not the trie.
//!
//! The writer keeps its trie. A [`VectorBuild`] makes a vector of what the trie has, on any thread, while the trie
//! changes. So readers see a change only with the next vector: a withdrawn descriptor leads to its former branches
//! until then, a new one to none. Numbers that a vector may have are not used again before readers have the next one.
//!
//! A search in the vector does not pause: it takes the steps of a turn as it likes. So this form is for comparisons,
//! not for a router to which strangers send.

use super::{Changes, Kept, LiveTables, Step};
use crate::Descriptor;
use crate::matching::{
    Entry, SubsetTable,
    burst_trie::{BurstTrieReader, BurstTrieView, Cursor, PausedSearch},
    vector::{self, VectorOptions, VectorTable},
};
use std::{ops::ControlFlow, sync::Arc, task::Poll};

/// Descriptors of one pin of the walk.
const WALKED_AT_A_TIME: usize = 4_096;
/// Steps that a search in the vector counts as.
pub(crate) const VECTOR_SEARCH_STEPS: usize = 64;

/// What the writer remembers for the vector of its readers.
#[derive(Debug)]
pub(super) struct VectorForm {
    options: VectorOptions,
    is_under_way: bool,
    /// The trie has changed since the walk of the last build began.
    pub(super) has_changed: bool,
    /// Unused numbers that the present vector, or that of the build, may have.
    pub(super) retained: Vec<u32>,
    /// Unused numbers that the vector of the build has not.
    leaving: Vec<u32>,
}

/// A vector to be made, on any thread.
#[derive(Debug)]
pub struct VectorBuild {
    reader: BurstTrieReader,
    descriptors: usize,
    options: VectorOptions,
}

impl VectorBuild {
    /// Makes the vector. This takes one to two microseconds for each descriptor.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn run(mut self) -> Result<VectorTable, vector::BuildError> {
        let mut entries: Vec<Entry> = Vec::new();
        entries.try_reserve_exact(self.descriptors + self.descriptors / 16)?;
        let mut cursor = Cursor::default();
        while self.reader.pin().walk(&mut cursor, WALKED_AT_A_TIME, |entry| entries.push(entry)) {}
        VectorTable::build(entries, self.options)
    }
}

impl<K: Kept> LiveTables<K> {
    /// From now on readers search a vector, which is empty at first.
    pub fn search_by_vector(&mut self, options: VectorOptions) {
        let (retained, leaving) = (Vec::new(), Vec::new());
        self.vector = Some(VectorForm { options, is_under_way: false, has_changed: true, retained, leaving });
        self.publish(|version| version.vector = Some(Arc::default()));
    }

    /// True if readers search a vector that lacks changes: call [`LiveTables::begin_vector`].
    pub fn wants_vector(&self) -> bool {
        self.vector.as_ref().is_some_and(|form| form.has_changed && !form.is_under_way)
    }

    /// Begins with another vector; nothing if readers search the trie.
    pub fn begin_vector(&mut self) -> Option<VectorBuild> {
        let form = self.vector.as_mut()?;
        (form.is_under_way, form.has_changed) = (true, false);
        form.leaving.append(&mut form.retained);
        let (reader, descriptors) = (self.trie.reader(), self.trie.len());
        Some(VectorBuild { reader, descriptors, options: form.options })
    }

    /// Gives readers the vector of [`VectorBuild::run`]. Without one, they keep the former.
    pub fn finish_vector(&mut self, built: Option<VectorTable>) {
        let Some(form) = &mut self.vector else { return };
        form.is_under_way = false;
        if let Some(vector) = built {
            let leaving = std::mem::take(&mut form.leaving);
            self.publish(|version| version.vector = Some(Arc::new(vector)));
            self.steps.retire(Step::Reuse(leaving));
        } else {
            form.has_changed = true;
            form.retained.append(&mut form.leaving);
        }
    }

    /// No reader of the trie has found these numbers. One that searches the vector may have.
    pub(super) fn release_numbers(&mut self, unused: Vec<u32>) {
        match &mut self.vector {
            Some(form) => form.retained.extend(unused),
            None => self.free.extend(unused),
        }
    }
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.unused.is_empty()
    }
}

/// The table in which packets are searched.
#[derive(Debug)]
pub enum SearchedTable<'a> {
    /// The router's own table.
    Burst(BurstTrieView<'a>),
    /// The paper's.
    Vector(&'a VectorTable),
}

impl SearchedTable<'_> {
    /// As [`BurstTrieView::find_all_within`]; a search in the vector does not pause.
    pub fn find_all_within(
        &self,
        query: &Descriptor,
        paused: &mut PausedSearch,
        steps: &mut usize,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Poll<()> {
        match self {
            SearchedTable::Burst(trie) => trie.find_all_within(query, paused, steps, visit),
            SearchedTable::Vector(vector) => {
                *steps = steps.saturating_sub(VECTOR_SEARCH_STEPS);
                vector.find_all(query, visit);
                Poll::Ready(())
            }
        }
    }

    /// As [`BurstTrieView::find_largest_within`]; a search in the vector does not pause.
    pub fn find_largest_within(
        &self,
        query: &Descriptor,
        paused: &mut PausedSearch,
        steps: &mut usize,
        accepts: impl FnMut(u32) -> bool,
    ) -> Poll<Option<Entry>> {
        match self {
            SearchedTable::Burst(trie) => trie.find_largest_within(query, paused, steps, accepts),
            SearchedTable::Vector(vector) => {
                *steps = steps.saturating_sub(VECTOR_SEARCH_STEPS);
                Poll::Ready(vector.find_largest_of(query, accepts))
            }
        }
    }
}

impl SubsetTable for SearchedTable<'_> {
    fn len(&self) -> usize {
        match self {
            SearchedTable::Burst(trie) => trie.len(),
            SearchedTable::Vector(vector) => vector.len(),
        }
    }

    fn find_all(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) {
        match self {
            SearchedTable::Burst(trie) => trie.find_all(query, visit),
            SearchedTable::Vector(vector) => vector.find_all(query, visit),
        }
    }

    fn find_largest_of(&self, query: &Descriptor, accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        match self {
            SearchedTable::Burst(trie) => trie.find_largest_of(query, accepts),
            SearchedTable::Vector(vector) => vector.find_largest_of(query, accepts),
        }
    }
}
