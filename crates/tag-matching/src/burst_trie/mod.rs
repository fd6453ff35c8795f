//! Burst trie: the router's own table of descriptors. One writer changes it while any number of readers search it.
//!
//! Question: which of 10⁷ stored descriptors are subsets of this one, now?
//!
//! Source: a burst trie (Heinz, Zobel, Williams, "Burst tries", ACM TOIS 20, 2002) over the sets of bit positions of
//! TagNet16 §3.1: a trie whose leaves hold up to 24 strings, and *burst* into a node and smaller leaves when they are
//! full. Ours has rare bits first, so that a walk meets few nodes; and a leaf may hold the descriptors of several
//! neighbouring positions, so that leaves are well filled. Descriptors with a popular tag have a separate trie, in
//! which its bits are not stored ([`partitions`]).
//!
//! ```text
//!   root   │ 0-2 │ 3 │ 4-6 │ 7-192 │          a slot: positions, min and max weight, child
//!             │    └► node │ 4-9 │ 10 │ 11-192 │
//!             └► leaf │ heads │ lengths │ values │ tails │
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `partitions.rs` | which descriptors have a separate trie |
//! | `slot.rs` | the data of a child that its parent holds |
//! | `leaf.rs` | how descriptors are packed, and compared with a query |
//! | `parts.rs` | a leaf decomposed to change one row |
//! | `blocks.rs` | the memory of nodes and leaves |
//! | `layout.rs` | from sorted descriptors to nodes and leaves |
//! | `update.rs` | insertion and removal |
//! | `search.rs` | *Find All Subsets*, *Find Largest Subset*, several queries at a time |
//! | `paused.rs` | the same in steps, for one query |
//! | `walk.rs` | all descriptors, a part at a time |
//!
//! Readers and the writer: an update makes a new leaf, and the nodes whose number of children changes, in free blocks.
//! One store of one slot then makes them visible. Blocks that no slot leads to any more are free when no reader is
//! pinned that may use them ([`namewire_tables::quiescence`]). So readers never wait, and find every descriptor that is
//! in the table during their whole pin. They may find or miss descriptors that are inserted or removed meanwhile.
//!
//! The order of bits and the partitions are fixed when the table is made: [`BurstTrie::build`] takes them from its
//! entries, [`BurstTrie::new`] keeps bits as they are, in one partition. They affect speed and memory, never answers.
//! To change them, build another table.
//!
//! Cost: an update copies one leaf. A search scans the slots of the nodes that it visits, and reads the heads of
//! leaves.
//! Memory: some 14 bytes for each descriptor of three tags, of which the value takes 2; some 17 without partitions.
//!
//! Limits: the capacity given at the start, and [`BYTES_MAX`] bytes for each descriptor of this capacity. [`Refusal`]
//! names what refuses a change; a refused change leaves the table as it was. Writers: one.

mod blocks;
mod layout;
mod leaf;
mod partitions;
mod parts;
mod paused;
mod search;
mod slot;
mod update;
mod walk;

use super::permutation::{BitOrder, Key, Permutation};
use super::{Entry, SubsetTable};
use blocks::{Space, WORD_BYTES, Words};
pub use layout::Refusal;
use layout::{BLOCK_WORDS_MAX, Layout, SLOTS_MAX};
use leaf::{Leaf, ROWS_MAX, Row};
use namewire_packet::descriptor::Descriptor;
use namewire_tables::pages::PageSize;
use namewire_tables::quiescence::{Domain, Pin, Reader, Retired};
use partitions::{PARTITION_BYTES, PARTITIONS_MAX, Partitions};
pub use paused::PausedSearch;
use search::{All, Goal, Largest, Proper, Search, Shared};
pub use search::{StepLimit, WALKS};
use slot::Slot;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub use walk::Cursor;

/// Bytes of blocks for each descriptor of the capacity. Three tags need 14 to 17; the rest is for heavier descriptors
/// and for blocks that wait for readers. Memory that is never touched costs nothing.
pub const BYTES_MAX: usize = 32;
/// Bytes of blocks of a table, whatever its capacity: a few descriptors may have many 1-bits.
const BYTES_MIN: usize = 1 << 20;
/// Bytes of blocks of a table for no descriptors: it has a root.
const BYTES_NONE: usize = 1 << 12;
/// Blocks that may wait for readers before changes are refused.
const WAITING_MAX: usize = 1 << 16;
/// Fewest descriptors of a partition: it costs some 300 bytes.
const PARTITION_MIN: usize = 256;
/// Rows at which a leaf takes no further group when the whole table is built.
const ROWS_BUILT: usize = ROWS_MAX * 3 / 4;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The kernel maps no memory.
    #[error("no memory for the table of descriptors: {0}")]
    NoMemory(#[from] std::io::Error),
    /// The entries do not fit.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Bytes of a table by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstTrieMemory {
    /// Stored descriptors.
    pub descriptors: usize,
    /// Masks and roots of partitions.
    pub partitions: usize,
    /// Nodes, and their slots.
    pub nodes: usize,
    /// Leaves: the 32 rarest positions of each descriptor.
    pub heads: usize,
    /// Leaves: the lengths of tails.
    pub lengths: usize,
    /// Leaves: further positions.
    pub tails: usize,
    /// Leaves: the values.
    pub values: usize,
    /// Leaves: headers, and what fills the last words.
    pub headers: usize,
    /// Blocks that wait for readers, free blocks, and the lists of both.
    pub unused: usize,
}

impl BurstTrieMemory {
    /// All bytes.
    pub fn bytes(&self) -> usize {
        self.partitions + self.nodes + self.heads + self.lengths + self.tails + self.values + self.headers + self.unused
    }

    /// Bytes for each descriptor; 0 without descriptors.
    pub fn bytes_per_descriptor(&self) -> f64 {
        self.bytes() as f64 / self.descriptors.max(1) as f64
    }
}

/// The table, as its only writer has it.
#[derive(Debug)]
pub struct BurstTrie {
    shared: Arc<Shared>,
    domain: Arc<Domain>,
    retired: Retired<u32>,
    space: Space,
    capacity: usize,
}

/// A reader of a table, for one thread. A clone is another reader.
#[derive(Clone, Debug)]
pub struct BurstTrieReader {
    shared: Arc<Shared>,
    reader: Reader,
}

/// A table as a reader sees it: what stays in the table while the view exists is found.
#[derive(Debug)]
pub struct BurstTrieView<'a> {
    shared: &'a Shared,
    /// The writer's own view needs none.
    _pin: Option<Pin<'a>>,
}

impl BurstTrie {
    /// An empty table for at most `capacity` descriptors. Bits stay in their order.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(capacity: usize, pages: PageSize) -> Result<Self, BuildError> {
        Self::build(vec![], capacity, pages)
    }

    /// A table of these entries, for at most `capacity` descriptors. Of entries with one descriptor the last one's
    /// value is kept. Bits that are rare in the entries come first, and descriptors with popular tags have partitions.
    ///
    /// It works in the memory of `entries`, 32 bytes each, and sorts them there.
    ///
    /// # Errors
    /// If the kernel maps no memory, or if the entries do not fit.
    pub fn build(entries: Vec<Entry>, capacity: usize, pages: PageSize) -> Result<Self, BuildError> {
        let least = PARTITION_MIN.max(entries.len() / PARTITIONS_MAX);
        Self::build_partitioned(entries, capacity, pages, least)
    }

    /// As [`BurstTrie::build`], with a partition wherever at least so many descriptors have a tag in common;
    /// `usize::MAX` makes none.
    ///
    /// # Errors
    /// As there.
    pub fn build_partitioned(
        entries: Vec<Entry>,
        capacity: usize,
        pages: PageSize,
        least: usize,
    ) -> Result<Self, BuildError> {
        let order = match entries.is_empty() {
            true => Permutation::identity(),
            false => Permutation::new(BitOrder::RareFirst, entries.iter().map(|entry| &entry.descriptor)),
        };
        let sample = entries.iter().step_by(partitions::sample_step(entries.len()));
        let sample = sample.map(|entry| order.key(&entry.descriptor)).collect();
        let partitions = Partitions::of_sample(sample, entries.len(), least);
        let (rows, ends) = sorted_rows(entries, &order, &partitions);
        if rows.len() > capacity {
            return Err(Refusal::Descriptors.into());
        }
        let bytes_min = if capacity == 0 { BYTES_NONE } else { BYTES_MIN };
        let words = Words::new((capacity.saturating_mul(BYTES_MAX)).max(bytes_min) / WORD_BYTES, pages)?;
        let mut space = Space::new(words.len(), BLOCK_WORDS_MAX);
        let mut layout = Layout { words: &words, space: &mut space, rows_wanted: ROWS_BUILT, reserve: 0, made: vec![] };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let root = |(start, end): (usize, &usize)| {
            let slots = layout.slots(&rows[start..*end], 0)?;
            Ok(AtomicU64::new(Slot::root(layout.node(&slots)?).0))
        };
        let roots = starts.zip(&ends).map(root).collect::<Result<_, Refusal>>()?;
        let len = AtomicUsize::new(rows.len());
        let shared = Arc::new(Shared { words, order, partitions, roots, len });
        let domain = Arc::new(Domain::new());
        Ok(BurstTrie { retired: Retired::new(&domain), shared, domain, space, capacity })
    }

    /// The most descriptors that it holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// A reader for another thread.
    pub fn reader(&self) -> BurstTrieReader {
        BurstTrieReader { shared: Arc::clone(&self.shared), reader: Reader::new(&self.domain) }
    }

    /// The table as it is until the next change.
    pub fn view(&self) -> BurstTrieView<'_> {
        BurstTrieView { shared: &self.shared, _pin: None }
    }

    /// Where its memory goes. This visits every leaf.
    pub fn memory(&self) -> BurstTrieMemory {
        let Shared { words, roots, partitions, .. } = &*self.shared;
        let mut memory = BurstTrieMemory { descriptors: self.len(), ..BurstTrieMemory::default() };
        memory.partitions = partitions.len() * (PARTITION_BYTES + size_of_val(&roots[0]));
        let mut open: Vec<Slot> = roots.iter().map(Slot::load).collect();
        while let Some(slot) = open.pop() {
            if slot.is_inner() {
                memory.nodes += words.header(slot.block()).words() * WORD_BYTES;
                open.extend(words.slots(slot.block()).iter().map(Slot::load));
                continue;
            }
            let leaf = Leaf::new(words.block(slot.block())).bytes();
            memory.heads += leaf.heads;
            memory.lengths += leaf.lengths;
            memory.tails += leaf.tails;
            memory.values += leaf.values;
            memory.headers += leaf.rest;
        }
        memory.unused = words.touched_bytes(self.space.touched()) - (memory.bytes() - memory.partitions);
        memory.unused += self.space.bytes() + self.retired.bytes();
        memory
    }
}

/// An entry before it is a row.
struct Record {
    key: Key,
    value: u32,
    /// Place among the entries: of duplicates the last wins. Then the partition.
    place: u32,
}

// `collect` turns entries into records, and these into rows, in their place, because one fits exactly in the other.
const _: () = assert!(size_of::<Record>() == size_of::<Entry>() && align_of::<Record>() == align_of::<Entry>());
const _: () = assert!(size_of::<Record>() == size_of::<Row>() && align_of::<Record>() == align_of::<Row>());

/// The rows of one partition after the other, in the order of its trie, each descriptor once; and where each
/// partition's end.
fn sorted_rows(entries: Vec<Entry>, order: &Permutation, partitions: &Partitions) -> (Vec<Row>, Vec<usize>) {
    let to_record = |(place, entry): (usize, Entry)| Record {
        key: order.key(&entry.descriptor),
        value: entry.value,
        place: place as u32,
    };
    let mut records: Vec<Record> = entries.into_iter().enumerate().map(to_record).collect();
    // Of duplicates the last is first, and stays.
    records.sort_unstable_by(|a, b| b.key.cmp(&a.key).then(b.place.cmp(&a.place)));
    records.dedup_by(|next, kept| next.key == kept.key);
    for record in &mut records {
        let partition = partitions.of(&record.key);
        record.key = record.key.without(partitions.get(partition).mask);
        record.place = u32::from(partition);
    }
    records.sort_unstable_by(|a, b| a.place.cmp(&b.place).then(b.key.cmp(&a.key)));
    let end = |partition| records.partition_point(|record| record.place <= partition);
    let ends = (0..partitions.len() as u32).map(end).collect();
    (records.into_iter().map(|Record { key, value, .. }| Row { key, value }).collect(), ends)
}

impl BurstTrieReader {
    /// The table until the view is dropped, at the end of a batch.
    #[inline]
    pub fn pin(&mut self) -> BurstTrieView<'_> {
        BurstTrieView { shared: &self.shared, _pin: Some(self.reader.pin()) }
    }

    /// Keeps the table pinned until [`BurstTrieReader::release`], for a search that pauses.
    pub fn hold(&mut self) {
        self.reader.hold();
    }

    /// The table, which this reader holds.
    pub fn held(&self) -> BurstTrieView<'_> {
        BurstTrieView { shared: &self.shared, _pin: None }
    }

    /// Ends [`BurstTrieReader::hold`].
    pub fn release(&mut self) {
        self.reader.release();
    }
}

impl BurstTrieView<'_> {
    /// The value of a stored descriptor.
    pub fn get(&self, descriptor: &Descriptor) -> Option<u32> {
        self.shared.get(descriptor)
    }

    /// Calls `visit` with the value of each stored subset of `query` other than `query` itself, in any order, until it
    /// breaks. Returns the number of steps that the search took.
    pub fn find_proper(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) -> usize {
        let mut goal = Proper { weight: query.weight() as u8, visit };
        let mut steps = usize::MAX;
        Search::<Key, 1>::new(self.shared, std::slice::from_ref(query)).run(self.shared, &mut goal, &mut steps);
        usize::MAX - steps
    }

    /// [`SubsetTable::find_all`] for several queries at a time: calls `visit` with the place of a query and the value
    /// of one of its subsets, in any order. If it breaks, the search for this query ends.
    pub fn find_all_of_each(&self, queries: &[Descriptor], mut visit: impl FnMut(usize, u32) -> ControlFlow<()>) {
        for (batch, queries) in queries.chunks(WALKS).enumerate() {
            let mut goal = All(|walk, value| visit(batch * WALKS + walk, value));
            self.shared.search::<_, WALKS>(queries, &mut goal);
        }
    }

    /// [`SubsetTable::find_largest`] for several queries at a time: calls `answer` with each place and its answer.
    pub fn find_largest_of_each(&self, queries: &[Descriptor], mut answer: impl FnMut(usize, Option<Entry>)) {
        for (batch, queries) in queries.chunks(WALKS).enumerate() {
            let mut goal = Largest::<_, WALKS>::new(&self.shared.order, |_, _| true);
            self.shared.search::<_, WALKS>(queries, &mut goal);
            (0..queries.len()).for_each(|walk| answer(batch * WALKS + walk, goal.best[walk]));
        }
    }
}

/// What searches at a time did that had a limit of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The steps of all searches.
    pub steps: usize,
    /// Bit n: search n was longer than the limit, and has no answer.
    pub stopped: u32,
}

impl BurstTrieView<'_> {
    /// [`BurstTrieView::find_all_of_each`] for at most [`WALKS`] queries, with a limit of steps. A search that needs
    /// more ends there; what it found until then was visited.
    ///
    /// # Panics
    /// If there are more queries.
    pub fn find_all_limited(
        &self,
        queries: &[Descriptor],
        limit: StepLimit,
        visit: impl FnMut(usize, u32) -> ControlFlow<()>,
    ) -> Limited {
        let mut search = Search::<(), WALKS>::new(self.shared, queries);
        let (steps, stopped) = search.run_each(self.shared, &mut All(visit), limit);
        Limited { steps, stopped }
    }

    /// [`SubsetTable::find_largest_of`] for at most [`WALKS`] queries, with a limit of steps. `accepts` gets the
    /// place of the query. Returns the answers, too, of searches that were not stopped.
    ///
    /// # Panics
    /// If there are more queries.
    pub fn find_largest_limited(
        &self,
        queries: &[Descriptor],
        limit: StepLimit,
        accepts: impl FnMut(usize, u32) -> bool,
    ) -> (Limited, [Option<Entry>; WALKS]) {
        let mut goal = Largest::<_, WALKS>::new(&self.shared.order, accepts);
        let (steps, stopped) = Search::<Key, WALKS>::new(self.shared, queries).run_each(self.shared, &mut goal, limit);
        (Limited { steps, stopped }, goal.best)
    }
}

impl Shared {
    fn search<G: Goal, const BATCH: usize>(&self, queries: &[Descriptor], goal: &mut G) {
        Search::<G::Path, BATCH>::new(self, queries).run(self, goal, &mut { usize::MAX });
    }

    /// A slot that leads to the root of a partition.
    fn root(&self, partition: u16) -> Slot {
        Slot::load(&self.roots[usize::from(partition)])
    }
}

impl SubsetTable for BurstTrieView<'_> {
    fn len(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }

    fn find_all(&self, query: &Descriptor, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        let mut goal = All(|_, value| visit(value));
        self.shared.search::<_, 1>(std::slice::from_ref(query), &mut goal);
    }

    fn find_largest_of(&self, query: &Descriptor, mut accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        let mut goal = Largest::<_, 1>::new(&self.shared.order, |_, value| accepts(value));
        self.shared.search::<_, 1>(std::slice::from_ref(query), &mut goal);
        goal.best[0]
    }
}
