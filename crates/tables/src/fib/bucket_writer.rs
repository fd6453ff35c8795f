//! Bucket writer: what readers and the writer of the bucket table share, and the steps that change the
//! table while readers look.
//!
//! ```text
//!  entry   units given by `space` ─► written ─► linked in the index ─► unlinked ─► retired ─► given back
//!  set     made ─► named by an entry ─► named by none ─► retired ─► freed
//!  index   made and filled ─► the present one ─► replaced ─► retired ─► freed
//! ```
//!
//! Readers find an entry once it is *linked*, a set once it is *named*, and an index once it is *present*.
//! Between *retired* and the last step, [`crate::quiescence`] waits for readers. Only this file takes these
//! steps. Entries and sets are found only through [`Index`] and its [`IndexLook`]s. An `IndexLook` exists
//! only during a pin, or during a borrow of the writer. The promises of `unsafe` in this folder rest on
//! these facts.
//!
//! For cost and limits see [`super::Fib`]. Writers: the owner of the [`Writer`].
#![allow(unsafe_code, reason = "leaf: gives memory that readers could reach back, after quiescence")]

use super::bucket_view::BucketView;
use super::config::{FibConfig, NameStorage};
use super::entries::{Entries, FibEntryRef};
use super::entry::{FibRefusal, MAX_WAITING};
use super::flow_cache::FlowEntry;
use super::lengths::{LengthCounts, Lengths};
use super::name_code::CODE_BUFFER_BYTES;
use super::next_hop_sets::{Interner, NextHopSet, NextHopSets};
use super::published::Published;
use super::space::Space;
use super::version::Version;
use crate::name_hash::{HashKey, NameHashes};
use crate::quiescence::{Domain, Pin, Reader, Retired};
use crate::tag_index::{FirstBucket, IndexKey, Look, Step, TagIndex, Walk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first index has 8 entries. This many indices: the first, and one per doubling up to room for 2³²
/// entries.
const MAX_INDICES: usize = 30;

/// What readers see.
pub(super) struct Shared {
    pub(super) key: HashKey,
    pub(super) lengths: Lengths,
    /// Prefixes that agree in this many components begin in one bucket.
    pub(super) together_components: usize,
    domain: Arc<Domain>,
    /// The place in `indices` of the present index.
    index: AtomicUsize,
    indices: [Published<TagIndex>; MAX_INDICES],
    pub(super) entries: Entries,
    sets: NextHopSets,
    /// Of what is linked.
    pub(super) version: Version,
}

impl Shared {
    /// The place in the index of the prefix of `components` components.
    #[inline(always)]
    pub(super) fn index_key(&self, hashes: &NameHashes, components: usize) -> IndexKey {
        let first = components.min(self.together_components);
        IndexKey {
            first: key_hash(hashes.prefix_hash(first), first),
            own: key_hash(hashes.prefix_hash(components), components),
        }
    }

    /// The place in the index of the whole name.
    pub(super) fn name_key(&self, hashes: &NameHashes) -> IndexKey {
        self.index_key(hashes, hashes.components())
    }

    /// # Safety
    /// As long as the view lives, a reader of `domain` stays pinned or the [`Writer`] does not change.
    #[inline]
    unsafe fn view(&self) -> BucketView<'_> {
        let tags = self.indices[self.index.load(Ordering::Acquire)].get();
        BucketView { shared: self, index: Index { tags: tags.expect("the present index is there"), shared: self } }
    }
}

/// The hash of a prefix as the index has it. Two of the bits that choose a `passed` counter are the
/// prefix's length modulo 4. So a crowd under one name of two components fills only the counters of its own
/// lengths, and a search for other names ends at its first bucket.
///
/// N.B. Cycles per look-up without and with it, in turn, machine busy. 3,054,593 domain names, a fifth of
/// them in crowds: 653 and 561, for those in crowds 919 and 771. Synthetic names, no crowds: 500 and 493.
#[inline(always)]
pub(super) fn key_hash(hash: u64, components: usize) -> u64 {
    const LENGTH_BITS: u64 = 3 << 48;
    hash & !LENGTH_BITS | (components as u64) << 48 & LENGTH_BITS
}

/// What [`key_hash`] makes the lowest two bits of the tags of four consecutive lengths, by the first of them modulo 4.
const LOWEST_BITS: [[u32; 4]; 4] = [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]];

/// What is linked. Everything found here stays valid during `'a`: a reader is pinned or the writer does not
/// change.
#[derive(Clone, Copy)]
pub(super) struct Index<'a> {
    tags: &'a TagIndex,
    shared: &'a Shared,
}

/// A bucket of an [`Index`], as it was when it was read.
#[derive(Clone, Copy)]
pub(super) struct IndexLook<'a> {
    index: Index<'a>,
    look: Look<'a>,
}

impl<'a> Index<'a> {
    /// See [`TagIndex::first_bucket`].
    #[inline(always)]
    pub(super) fn first_bucket(self, first: u64) -> FirstBucket<'a> {
        self.tags.first_bucket(first)
    }

    /// Looks at a bucket of this index.
    #[inline(always)]
    pub(super) fn look_at_first(self, bucket: FirstBucket<'a>) -> IndexLook<'a> {
        IndexLook { index: self, look: bucket.look() }
    }

    /// See [`TagIndex::walk`].
    #[inline(always)]
    pub(super) fn walk(self, key: IndexKey) -> Walk {
        self.tags.walk(key)
    }

    /// See [`TagIndex::prefetch_step`].
    #[inline(always)]
    pub(super) fn prefetch_step(self, walk: Walk) {
        self.tags.prefetch_step(walk);
    }

    /// See [`TagIndex::look`].
    #[inline(always)]
    pub(super) fn look(self, walk: Walk) -> IndexLook<'a> {
        IndexLook { index: self, look: self.tags.look(walk) }
    }

    /// See [`TagIndex::find`].
    #[inline]
    pub(super) fn find(self, key: IndexKey, is_wanted: impl Fn(FibEntryRef<'a>) -> bool) -> Option<FibEntryRef<'a>> {
        self.tags.find(key, |unit| is_wanted(self.entry(unit))).map(|unit| self.entry(unit))
    }

    /// Every entry.
    pub(super) fn entries(self) -> impl Iterator<Item = FibEntryRef<'a>> {
        self.tags.values().map(move |unit| self.entry(unit))
    }

    /// What the entry leads to; nothing or anything if it belongs to another FIB.
    #[inline(always)]
    pub(super) fn set(self, entry: FibEntryRef<'a>) -> Option<&'a NextHopSet> {
        self.shared.sets.get(entry.set())
    }

    /// The entry of a flow. Only to be called if the flow has a version that [`Shared::version`] had during `'a`: then
    /// nothing was unlinked that a reader of this index would not have to wait for, and `self.tags` holds the number.
    #[inline(always)]
    pub(super) fn entry_of_flow(self, flow: FlowEntry) -> FibEntryRef<'a> {
        self.entry(flow.unit)
    }

    /// Only to be called with numbers that `self.tags` holds.
    #[inline(always)]
    fn entry(self, unit: u32) -> FibEntryRef<'a> {
        // SAFETY: the index shows only numbers that `Writer::link` put there after it wrote their entries
        // (`tag_index` publishes a tag after its value). `Writer::unlink` retires an entry after it removed
        // the number. A reader that found the number meanwhile was pinned before, and stays pinned during
        // `'a`. The writer, which borrows, frees nothing.
        unsafe { self.shared.entries.entry(unit) }
    }
}

impl<'a> IndexLook<'a> {
    /// The entries here.
    pub(super) fn entries(self) -> impl Iterator<Item = FibEntryRef<'a>> + use<'a> {
        let Self { index, look } = self;
        look.values().map(move |unit| index.entry(unit))
    }

    /// See [`Look::has_trace`].
    #[inline(always)]
    pub(super) fn has_trace(&self, own: u64) -> bool {
        self.look.has_trace(own)
    }

    /// See [`Look::has_passed`].
    #[inline(always)]
    pub(super) fn has_passed(&self, own: u64) -> bool {
        self.look.has_passed(own)
    }

    /// See [`Look::is_passed`].
    #[inline(always)]
    pub(super) fn is_passed(&self) -> bool {
        self.look.is_passed()
    }

    /// The longest of four prefixes with an equal tag here: its place among them, and its entry. `hashes` are the
    /// hashes of the prefixes of `shortest` components, one more, and so on. See [`Look::last_of_four`].
    #[inline(always)]
    pub(super) fn longest_of_four(
        &self,
        hashes: &[u64; 4],
        shortest: usize,
        places: u64,
    ) -> Option<(usize, FibEntryRef<'a>)> {
        let (place, unit) = self.look.last_of_four(hashes, &LOWEST_BITS[shortest % 4], places)?;
        Some((place, self.index.entry(unit)))
    }

    /// See [`TagIndex::step`].
    #[inline(always)]
    pub(super) fn step(self, walk: Walk, own: u64) -> Step<FibEntryRef<'a>> {
        match self.index.tags.step(self.look, walk, own) {
            Step::Found(unit) => Step::Found(self.index.entry(unit)),
            Step::Next(walk) => Step::Next(walk),
            Step::Absent => Step::Absent,
        }
    }
}

/// Things that readers may still hold.
#[derive(Debug)]
enum Unlinked {
    Entry { unit: u32, units: u32 },
    NextHopSet(u32),
    Index(usize),
}

/// The only owner of changes to a [`Shared`].
pub(super) struct Writer {
    shared: Arc<Shared>,
    space: Space,
    interner: Interner,
    counts: LengthCounts,
    retired: Retired<Unlinked>,
    /// Buffer for the code of a name.
    code: Box<[u8]>,
}

impl Writer {
    pub(super) fn new(key: HashKey, units: usize, index_entries: usize, config: &FibConfig) -> io::Result<Self> {
        let shared = Shared {
            key,
            lengths: Lengths::default(),
            together_components: config.search.together_components(),
            domain: Arc::new(Domain::new()),
            index: AtomicUsize::new(0),
            indices: [const { Published::empty() }; MAX_INDICES],
            entries: Entries::new(units, config.names, config.pages)?,
            sets: NextHopSets::new(),
            version: Version::new(),
        };
        shared.indices[0].set(Box::new(TagIndex::new(index_entries, config.pages)?));
        Ok(Self {
            space: Space::new(&shared.entries),
            interner: Interner::new(),
            counts: LengthCounts::new(),
            retired: Retired::new(&shared.domain),
            shared: Arc::new(shared),
            code: match config.names {
                NameStorage::Inline => Box::default(),
                NameStorage::Encoded => vec![0; CODE_BUFFER_BYTES].into(),
            },
        })
    }

    pub(super) fn reader(&self) -> BucketReader {
        BucketReader { shared: Arc::clone(&self.shared), reader: Reader::new(&self.shared.domain) }
    }

    pub(super) fn key(&self) -> &HashKey {
        &self.shared.key
    }

    #[inline]
    pub(super) fn view(&self) -> BucketView<'_> {
        // SAFETY: every change of the writer needs `&mut self`.
        unsafe { self.shared.view() }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.shared.entries.touched_bytes(self.space.used_units())
            + self.growing_bytes()
            + self.code.len()
            + size_of::<Shared>()
    }

    /// Bytes of everything but the entries.
    pub(super) fn growing_bytes(&self) -> usize {
        let indices: usize = self.shared.indices.iter().filter_map(Published::get).map(TagIndex::bytes).sum();
        indices + self.interner.bytes(&self.shared.sets) + self.space.bytes() + self.retired.bytes()
    }

    /// How many things wait until no reader can hold them.
    pub(super) fn waiting(&self) -> usize {
        self.retired.len()
    }

    /// Makes a new entry, if there is room for its bytes. The index must have room for it, and no entry of
    /// this name.
    pub(super) fn link(&mut self, hashes: &NameHashes, name_value: &[u8], content: NextHopSet) -> bool {
        let mut code = std::mem::take(&mut self.code);
        let stored = self.shared.entries.stored_name(name_value, &mut code);
        let unit = self.allocate(stored.units());
        if let Some(unit) = unit {
            let set = self.interner.acquire(&self.shared.sets, content);
            // SAFETY: `space` gave these units: they were never used, or `reclaim` gave them back.
            unsafe { self.shared.entries.write(unit, stored, set) };
        }
        self.code = code;
        let Some(unit) = unit else { return false };
        self.shared.version.begin_change();
        self.counts.add(&self.shared.lengths, hashes.components());
        self.tags().insert(self.shared.name_key(hashes), unit);
        self.shared.version.end_change();
        self.reclaim_if_due();
        true
    }

    /// Changes what the entry of this name leads to; returns whether there is one.
    pub(super) fn change(
        &mut self,
        hashes: &NameHashes,
        name_value: &[u8],
        content: &NextHopSet,
    ) -> Result<bool, FibRefusal> {
        let Some((unit, set)) = self.find(hashes, name_value) else { return Ok(false) };
        if self.shared.sets.get(set) == Some(content) {
            return Ok(true);
        }
        self.check_waiting()?;
        let new = self.interner.acquire(&self.shared.sets, content.clone());
        // SAFETY: the index holds `unit`, so an entry lies there.
        unsafe { self.shared.entries.change(unit, new) };
        self.release_set(set);
        self.reclaim_if_due();
        Ok(true)
    }

    /// Removes the entry of this name; returns whether there was one.
    pub(super) fn unlink(&mut self, hashes: &NameHashes, name_value: &[u8]) -> bool {
        let Some((unit, set)) = self.find(hashes, name_value) else { return false };
        self.shared.version.begin_change();
        assert!(self.tags().remove(self.shared.name_key(hashes), unit), "found there just now");
        self.counts.subtract(&self.shared.lengths, hashes.components());
        self.shared.version.end_change();
        let units = self.shared.entries.stored_name(name_value, &mut self.code).units() as u32;
        self.retired.retire(Unlinked::Entry { unit, units });
        self.release_set(set);
        self.reclaim_if_due();
        true
    }

    /// Makes an index for `entries` entries and publishes it. The pause is proportional to the number of
    /// entries; readers go on with the old index.
    pub(super) fn replace_index(&mut self, entries: usize, config: &FibConfig) -> io::Result<()> {
        let larger = TagIndex::new(entries, config.pages)?;
        let (mut hashes, mut buffer) = (NameHashes::default(), Vec::new());
        for entry in self.view().index.entries() {
            hashes
                .compute(self.key(), self.shared.entries.name_in(entry, &mut buffer))
                .expect("no longer than an insertion allowed");
            larger.insert(self.shared.name_key(&hashes), self.shared.entries.unit(entry));
        }
        let old = self.shared.index.load(Ordering::Relaxed);
        self.shared.indices[old + 1].set(Box::new(larger));
        self.shared.index.store(old + 1, Ordering::Release);
        self.retired.retire(Unlinked::Index(old));
        self.reclaim();
        Ok(())
    }

    /// Refuses if readers hold up too many retired things.
    pub(super) fn check_waiting(&mut self) -> Result<(), FibRefusal> {
        if self.waiting() >= MAX_WAITING {
            self.reclaim();
        }
        if self.waiting() < MAX_WAITING { Ok(()) } else { Err(FibRefusal::ReadersBehind) }
    }

    /// Frees what readers cannot hold any more.
    pub(super) fn reclaim(&mut self) {
        let Self { shared, space, interner, retired, .. } = self;
        retired.reclaim(|unlinked| {
            // SAFETY: each thing was unlinked before it was retired (by `unlink` and `replace_index`; a set
            // when `interner` had counted that no entry names it), and retired once. Quiescence has shown
            // that every reader that was pinned before is gone. The writer itself holds nothing: `&mut
            // self`.
            unsafe {
                match unlinked {
                    Unlinked::Entry { unit, units } => space.release(&shared.entries, unit, units as usize),
                    Unlinked::NextHopSet(number) => interner.free(&shared.sets, number),
                    Unlinked::Index(place) => shared.indices[place].clear(),
                }
            }
        });
    }

    fn tags(&self) -> &TagIndex {
        self.view().index.tags
    }

    /// The number of the entry of this name, and the number of its set.
    fn find(&self, hashes: &NameHashes, name_value: &[u8]) -> Option<(u32, u32)> {
        let entry = self.view().find_name(hashes, name_value)?;
        Some((self.shared.entries.unit(entry), entry.set()))
    }

    /// An entry that was just unlinked or changed no longer names the set.
    fn release_set(&mut self, set: u32) {
        if self.interner.release(&self.shared.sets, set) {
            self.retired.retire(Unlinked::NextHopSet(set));
        }
    }

    /// Ends every update, even one that retired nothing: earlier retired things may wait.
    fn reclaim_if_due(&mut self) {
        if self.retired.is_due() {
            self.reclaim();
        }
    }

    fn allocate(&mut self, units: usize) -> Option<u32> {
        self.space.allocate(&self.shared.entries, units).or_else(|| {
            self.reclaim();
            self.space.allocate(&self.shared.entries, units)
        })
    }
}

/// One thread's access to the table. Holds nothing between pins, however long it sleeps.
pub(super) struct BucketReader {
    shared: Arc<Shared>,
    reader: Reader,
}

impl BucketReader {
    /// Begins a batch: what is in the FIB now stays valid until the pin is dropped. Keep it short: what is
    /// removed meanwhile cannot be reused.
    #[inline]
    pub(super) fn pin(&mut self) -> BucketPin<'_> {
        BucketPin { shared: &self.shared, _pin: self.reader.pin() }
    }

    /// The key for [`NameHashes::compute`].
    pub(super) fn key(&self) -> &HashKey {
        &self.shared.key
    }
}

/// A batch during which the table can be searched.
pub(super) struct BucketPin<'a> {
    shared: &'a Shared,
    _pin: Pin<'a>,
}

impl BucketPin<'_> {
    /// The FIB.
    #[inline]
    pub(super) fn view(&self) -> BucketView<'_> {
        // SAFETY: `_pin` is a pin of `shared`'s domain, and the view borrows it.
        unsafe { self.shared.view() }
    }
}
