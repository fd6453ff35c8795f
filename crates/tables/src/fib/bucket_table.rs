//! Bucket table: the router's own FIB table, as its owner sees it.
//!
//! Its name comes from its index: buckets of one cache line, with tags and the numbers of entries.
//!
//! This file orders the steps of an update; [`super::bucket_writer`] has the steps that readers may
//! observe. For cost, bytes and limits see [`super`]. Writers: the owner.

use super::bucket_view::BucketView;
use super::bucket_writer::{BucketReader, Writer};
use super::config::FibConfig;
use super::entry::{FibEntry, FibRefusal};
use super::hint::FibMatch;
use super::next_hop_sets::NextHopSet;
use super::unit::UNIT_BYTES;
use crate::name_hash::{HashKey, NameHashes};
use crate::pages::PageSize;
use std::io;

/// Entries in the first index: one bucket. Not on explicit huge pages.
const FIRST_INDEX_ENTRIES: usize = 8;

/// The owner's side of the router's own table.
pub(super) struct BucketTable {
    writer: Writer,
    config: FibConfig,
    len: usize,
    /// Entries that the present index was made for.
    index_entries: usize,
}

impl BucketTable {
    /// An empty table of this size.
    ///
    /// # Errors
    /// If the kernel does not map its arrays: an address space limit, or not enough huge
    /// pages reserved.
    pub(super) fn with_config(config: FibConfig, key: HashKey) -> io::Result<Self> {
        let config = FibConfig { capacity_entries: config.capacity_entries.min(u32::MAX as usize), ..config };
        let units = config.entry_bytes.min(1 << 34) / UNIT_BYTES;
        // While a larger index is filled, the smaller one lies beside it. Explicit huge pages are reserved
        // for the final size, and the smallest index would often take a whole page.
        let first_entries = match config.pages {
            PageSize::Base | PageSize::Transparent => FIRST_INDEX_ENTRIES,
            PageSize::Huge2MiB | PageSize::Huge1GiB => config.capacity_entries,
        };
        let index_entries = config.capacity_entries.min(first_entries);
        let writer = Writer::new(key, units, index_entries, &config)?;
        Ok(Self { writer, config, len: 0, index_entries })
    }

    /// A reader for another thread.
    pub(super) fn reader(&self) -> BucketReader {
        self.writer.reader()
    }

    /// The table while there is no write, which this borrow prevents.
    #[inline]
    pub(super) fn view(&self) -> BucketView<'_> {
        self.writer.view()
    }

    /// The key for [`NameHashes::compute`].
    pub(super) fn key(&self) -> &HashKey {
        self.writer.key()
    }

    /// How many prefixes there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory of everything: entries with their names, room left by removed ones, index, next-hop
    /// sets, and the writer's own lists. Counts whole pages.
    pub(super) fn bytes(&self) -> usize {
        self.writer.bytes() + size_of::<Self>()
    }

    /// Bytes of what grows. The entries are mapped at the start and do not count. The list of things that
    /// readers may still hold counts as if it held everything.
    pub(super) fn growing_bytes(&self) -> usize {
        const RETIRED_BYTES: usize = 32;
        self.writer.growing_bytes() + self.len * RETIRED_BYTES
    }

    /// How many removed entries, former next-hop sets and former indices wait until no reader can hold
    /// them.
    pub(super) fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Adds the prefix of these hashes, or replaces what it leads to; returns whether it was there.
    pub(super) fn insert(
        &mut self,
        hashes: &NameHashes,
        name_value: &[u8],
        content: NextHopSet,
    ) -> Result<bool, FibRefusal> {
        if self.writer.change(hashes, name_value, &content)? {
            return Ok(true);
        }
        self.writer.check_waiting()?;
        if self.len == self.config.capacity_entries {
            return Err(FibRefusal::Full);
        }
        if self.len == self.index_entries {
            self.enlarge_index().map_err(|_| FibRefusal::NoMemory)?;
        }
        if !self.writer.link(hashes, name_value, content) {
            return Err(FibRefusal::BytesFull);
        }
        self.len += 1;
        Ok(false)
    }

    /// Removes the prefix; returns whether it was there.
    pub(super) fn remove(&mut self, name_value: &[u8]) -> bool {
        let mut hashes = NameHashes::default();
        // Longer prefixes cannot be there: insertion refuses them.
        let computed = hashes.compute(self.key(), name_value);
        let was_there = computed.is_ok() && self.writer.unlink(&hashes, name_value);
        self.len -= usize::from(was_there);
        was_there
    }

    /// What exactly this prefix leads to.
    pub(super) fn get(&self, name_value: &[u8]) -> Option<FibMatch<'_>> {
        let (view, mut hashes) = (self.view(), NameHashes::default());
        hashes.compute(self.key(), name_value).ok()?;
        view.find_name(&hashes, name_value).map(|entry| view.found(entry, name_value.len()))
    }

    /// Every entry, hidden ones included, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = FibEntry<'_>> {
        let view = self.view();
        view.index.entries().map(move |entry| view.entry(entry))
    }

    /// Frees what readers cannot hold any more. Happens now and then by itself; useful for callers that
    /// want an exact [`Fib::bytes`].
    pub(super) fn reclaim(&mut self) {
        self.writer.reclaim();
    }

    /// Makes an index for twice as many entries and publishes it. The pause is proportional to the entries;
    /// readers go on with the old index.
    fn enlarge_index(&mut self) -> io::Result<()> {
        let entries = self.index_entries.saturating_mul(2).min(self.config.capacity_entries);
        self.writer.replace_index(entries, &self.config)?;
        self.index_entries = entries;
        Ok(())
    }
}
