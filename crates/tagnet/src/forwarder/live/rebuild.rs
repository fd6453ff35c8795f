//! Rebuild: another trie, with an order of bits for the present descriptors, made while the present one changes.
//!
//! ```text
//!   begin_build ──► TableBuild::run, on any thread ──► finish_build ──► run, a part of the log at a time ──► swap
//!       └─ the log of changed descriptors begins ───────────────────────────────┘
//! ```
//!
//! The build walks through the present trie as a reader does, some descriptors for each pin. What changes meanwhile is
//! in the log: before readers switch to the new trie, it gets what the present one has of each logged descriptor.
//!
//! Cost: while it is built, 32 bytes for each descriptor in addition to both tries, and 24 for each change.

use super::{Kept, LiveTables};
use crate::{
    Descriptor,
    matching::{
        Entry,
        burst_trie::{BuildError, BurstTrie, BurstTrieReader, Cursor},
    },
};
use namewire_tables::pages::PageSize;

/// The order of bits is chosen again when there are this many times as many descriptors.
const GROWTH: usize = 4;
/// Fewer descriptors need no order.
const LEAST_ORDERED: usize = 1_024;
/// Descriptors of one pin of the walk.
const WALKED_AT_A_TIME: usize = 4_096;
/// Changes that the new trie gets in one turn.
const CAUGHT_UP_AT_A_TIME: usize = 8_192;

/// A new trie to be made, on any thread.
#[derive(Debug)]
pub struct TableBuild {
    reader: BurstTrieReader,
    capacity: usize,
    descriptors: usize,
}

impl TableBuild {
    /// Makes the trie. This takes about a microsecond for each descriptor.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn run(mut self) -> Result<BurstTrie, BuildError> {
        let mut entries: Vec<Entry> = Vec::new();
        entries.try_reserve_exact(self.descriptors + self.descriptors / 16).map_err(std::io::Error::other)?;
        let mut cursor = Cursor::default();
        while self.reader.pin().walk(&mut cursor, WALKED_AT_A_TIME, |entry| entries.push(entry)) {}
        BurstTrie::build(entries, self.capacity, PageSize::Transparent)
    }
}

/// A build that is under way.
#[derive(Debug)]
pub(super) struct Rebuild {
    /// Descriptors that have changed since it began and that `trie` does not know so.
    log: Vec<Descriptor>,
    /// The new trie, once it is made.
    trie: Option<BurstTrie>,
}

impl Rebuild {
    /// A descriptor has changed in the present trie.
    pub(super) fn note(&mut self, descriptor: &Descriptor) {
        self.log.push(*descriptor);
    }
}

impl<K: Kept> LiveTables<K> {
    /// True if another trie would be better: call [`LiveTables::begin_build`].
    pub fn wants_build(&self) -> bool {
        let len = self.trie.len();
        self.rebuild.is_none() && (self.has_refused || len >= LEAST_ORDERED && len >= GROWTH * self.ordered)
    }

    /// Begins with another trie.
    pub fn begin_build(&mut self) -> TableBuild {
        self.rebuild = Some(Rebuild { log: Vec::new(), trie: None });
        TableBuild { reader: self.trie.reader(), capacity: self.trie.capacity(), descriptors: self.trie.len() }
    }

    /// Takes the trie of [`TableBuild::run`]. Readers switch to it in one of the next calls of [`LiveTables::run`].
    ///
    /// # Errors
    /// If there is none. The tables stay as they are.
    pub fn finish_build(&mut self, built: Result<BurstTrie, BuildError>) -> Result<(), BuildError> {
        match (built, &mut self.rebuild) {
            (Ok(trie), Some(rebuild)) => {
                rebuild.trie = Some(trie);
                self.run();
                Ok(())
            }
            (Ok(_), None) => Ok(()),
            (Err(why), _) => {
                self.rebuild = None;
                Err(why)
            }
        }
    }

    /// Makes another trie at once.
    ///
    /// # Errors
    /// If there is no memory. The tables stay as they are.
    pub fn build(&mut self) -> Result<(), BuildError> {
        let built = self.begin_build().run();
        self.finish_build(built)
    }

    /// True while a new trie takes over.
    pub(super) fn is_switching(&self) -> bool {
        self.rebuild.as_ref().is_some_and(|rebuild| rebuild.trie.is_some())
    }

    /// Gives the new trie some of what has changed. When it has all, readers switch to it.
    pub(super) fn switch(&mut self) {
        let Some(Rebuild { log, trie: Some(trie) }) = &mut self.rebuild else { return };
        for _ in 0..CAUGHT_UP_AT_A_TIME {
            let Some(descriptor) = log.pop() else { break };
            let done = match self.trie.get(&descriptor) {
                Some(value) => trie.insert(Entry { descriptor, value }),
                None => trie.remove(&descriptor),
            };
            if done.is_err() {
                // No room for what the present trie has: it stays.
                self.rebuild = None;
                self.has_refused = true;
                return;
            }
        }
        if log.is_empty()
            && let Some(Rebuild { trie: Some(trie), .. }) = self.rebuild.take()
        {
            (self.ordered, self.trie, self.has_refused) = (trie.len(), trie, false);
            self.trie_number += 1;
            self.vector.iter_mut().for_each(|form| form.has_changed = true);
            let (trie, trie_number) = (self.trie.reader(), self.trie_number);
            self.publish(|version| (version.trie, version.trie_number) = (trie, trie_number));
        }
    }
}
