//! Reader: a worker's access to the live tables.

use super::{SearchedTable, Shared, Version, lock};
use crate::{
    forwarder::TagView,
    matching::burst_trie::{BurstTrieReader, BurstTrieView},
};
use namewire_tables::quiescence::{Pin, Reader};
use std::sync::{Arc, atomic::Ordering};

/// A worker's access to the tables.
#[derive(Debug)]
pub struct LiveTablesReader {
    shared: Arc<Shared>,
    reader: Reader,
    number: u64,
    version: Arc<Version>,
    trie: BurstTrieReader,
}

/// The tables while a worker forwards a batch.
#[derive(Debug)]
pub struct PinnedTables<'a> {
    version: &'a Version,
    table: SearchedTable<'a>,
    /// None if the reader holds the tables.
    _pin: Option<Pin<'a>>,
}

impl LiveTablesReader {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let number = shared.number.load(Ordering::Acquire);
        let version = Arc::clone(&lock(&shared.present));
        let (reader, trie) = (Reader::new(&shared.domain), version.trie.clone());
        LiveTablesReader { shared: Arc::clone(shared), reader, number, version, trie }
    }

    /// The tables for a batch.
    pub fn pin(&mut self) -> PinnedTables<'_> {
        // Before the version: what is freed from now on waits for this pin.
        let pin = self.reader.pin();
        if let Some((number, version, trie)) = newer(&self.shared, self.number, &self.version) {
            (self.number, self.version) = (number, version);
            trie.into_iter().for_each(|trie| self.trie = trie);
        }
        PinnedTables { version: &self.version, table: searched(&self.version, self.trie.pin()), _pin: Some(pin) }
    }

    /// Takes over the newest tables, so that the memory of former ones is free. The reader must hold none.
    pub fn refresh(&mut self) {
        drop(self.pin());
    }

    /// Keeps the tables as they are now until [`LiveTablesReader::release`], for work that takes several batches. What
    /// changes meanwhile waits for it, so it must not take long.
    pub fn hold(&mut self) {
        self.reader.hold();
        if let Some((number, version, trie)) = newer(&self.shared, self.number, &self.version) {
            (self.number, self.version) = (number, version);
            trie.into_iter().for_each(|trie| self.trie = trie);
        }
        self.trie.hold();
    }

    /// The tables that this reader holds.
    pub fn held(&self) -> PinnedTables<'_> {
        PinnedTables { version: &self.version, table: searched(&self.version, self.trie.held()), _pin: None }
    }

    /// Ends [`LiveTablesReader::hold`].
    pub fn release(&mut self) {
        self.trie.release();
        self.reader.release();
    }
}

/// The present version if it is another one, with a reader of its trie if that is another one.
fn newer(shared: &Shared, number: u64, version: &Version) -> Option<(u64, Arc<Version>, Option<BurstTrieReader>)> {
    let present = shared.number.load(Ordering::Acquire);
    if present == number {
        return None;
    }
    let newer = Arc::clone(&lock(&shared.present));
    let trie = (newer.trie_number != version.trie_number).then(|| newer.trie.clone());
    Some((present, newer, trie))
}

fn searched<'a>(version: &'a Version, trie: BurstTrieView<'a>) -> SearchedTable<'a> {
    match &version.vector {
        None => SearchedTable::Burst(trie),
        Some(vector) => SearchedTable::Vector(vector),
    }
}

impl<'a> PinnedTables<'a> {
    /// What a packet is forwarded by.
    pub fn view(&self) -> TagView<'_, SearchedTable<'a>> {
        let Version { trees, may_push, branch_sets, .. } = self.version;
        TagView { trees, descriptors: &self.table, branch_sets, may_push }
    }
}
