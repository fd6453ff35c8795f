//! Shared: what do the FIB's readers and its writer have in common, and by which steps may
//! it change while readers look?
//!
//! ```text
//!  entry   units given by `space` ─► written ─► linked in the index ─► unlinked ─► retired ─► given back
//!  set     made ─► named by an entry ─► named by none ─► retired ─► freed
//!  index   made and filled ─► the present one ─► replaced ─► retired ─► freed
//! ```
//!
//! From *linked*, *named* and *present* on, readers find the thing; between *retired* and
//! the last step lies what [`crate::quiescence`] waits for. Nobody but this file takes a step,
//! and a thing is found through [`Index`] and its [`IndexLook`]s alone, which exist only while a
//! pin or a borrow of the writer does: that is what the promises of `unsafe` in this folder rest on.
//!
//! Cost, limits: the [`super::Fib`]'s. Who may write: the one owner of the [`Writer`].
#![allow(unsafe_code, reason = "leaf: gives memory that readers could reach back, after quiescence")]

use super::entries::{Entries, FibEntryRef};
use super::lengths::{LengthCounts, Lengths};
use super::markers::Markers;
use super::name_code::CODE_BUFFER_OCTETS;
use super::next_hop_sets::{Interner, NextHopSet, NextHopSets};
use super::published::Published;
use super::space::Space;
use super::view::HouseView;
use super::{FibConfig, FibRefusal, FibSearch, MAX_WAITING, NameStorage};
use crate::name_hash::{HashKey, NameHashes};
use crate::quiescence::{Domain, Pin, Reader, Retired};
use crate::tag_index::{IndexKey, Look, Step, TagIndex, Walk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often an index for 8 can double before it has room for 2³² entries, and the first.
const MAX_INDICES: usize = 30;

/// What readers see.
pub(super) struct Shared {
    pub(super) key: HashKey,
    pub(super) lengths: Lengths,
    /// Prefixes that agree in so many components begin in one bucket.
    pub(super) together_components: usize,
    domain: Arc<Domain>,
    /// The place of the present one in `indices`.
    index: AtomicUsize,
    indices: [Published<IndexTables>; MAX_INDICES],
    pub(super) entries: Entries,
    sets: NextHopSets,
}

/// What leads to the entries.
pub(super) struct IndexTables {
    tags: TagIndex,
    /// With [`FibSearch::BinaryOverLengths`].
    markers: Option<Markers>,
}

impl IndexTables {
    fn new(entries: usize, config: &FibConfig) -> io::Result<Self> {
        let by_markers = config.search == FibSearch::BinaryOverLengths;
        let markers = by_markers.then(|| Markers::new(entries, config.pages)).transpose()?;
        Ok(Self { tags: TagIndex::new(entries, config.pages)?, markers })
    }

    fn bytes(&self) -> usize {
        self.tags.bytes() + self.markers.as_ref().map_or(0, Markers::bytes)
    }

    /// Lets readers find the entry of the whole name of `hashes`.
    fn link(&self, key: IndexKey, hashes: &NameHashes, unit: u32) {
        if let Some(markers) = &self.markers {
            markers.add(hashes);
        }
        self.tags.insert(key, unit);
    }

    /// Undoes it.
    fn unlink(&self, key: IndexKey, hashes: &NameHashes, unit: u32) {
        assert!(self.tags.remove(key, unit), "found there just now");
        if let Some(markers) = &self.markers {
            markers.subtract(hashes);
        }
    }
}

impl Shared {
    /// Where the index has the prefix of `components` components.
    #[inline(always)]
    pub(super) fn index_key(&self, hashes: &NameHashes, components: usize) -> IndexKey {
        let first = components.min(self.together_components);
        IndexKey {
            first: key_hash(hashes.prefix_hash(first), first),
            own: key_hash(hashes.prefix_hash(components), components),
        }
    }

    /// Where the index has the whole name.
    pub(super) fn name_key(&self, hashes: &NameHashes) -> IndexKey {
        self.index_key(hashes, hashes.components())
    }

    /// # Safety
    /// As long as the view lives, a reader of `domain` stays pinned or the [`Writer`] unchanged.
    #[inline]
    unsafe fn view(&self) -> HouseView<'_> {
        let tables = self.indices[self.index.load(Ordering::Acquire)].get();
        HouseView { shared: self, index: Index { tables: tables.expect("the present index is there"), shared: self } }
    }
}

/// The hash of a prefix as the index has it: two of the bits that name a `passed` counter say how
/// long the prefix is, modulo 4. So a crowd under one name of two components fills the counters of
/// its own lengths, and a search for others ends at its first bucket.
///
/// N.B. Without it, 3,054,593 domain names, a fifth of them in crowds: 653 cycles per look-up in place of
/// 561, of those in crowds 919 in place of 771; synthetic names, no crowds: 500 and 493 (in turn, machine busy).
#[inline(always)]
pub(super) fn key_hash(hash: u64, components: usize) -> u64 {
    const LENGTH_BITS: u64 = 3 << 48;
    hash & !LENGTH_BITS | (components as u64) << 48 & LENGTH_BITS
}

/// What is linked. Everything found here stays whole during `'a`, as long as which a reader is
/// pinned or the writer does not change.
#[derive(Clone, Copy)]
pub(super) struct Index<'a> {
    tables: &'a IndexTables,
    shared: &'a Shared,
}

/// A bucket of an [`Index`], as it was when it was looked at.
#[derive(Clone, Copy)]
pub(super) struct IndexLook<'a> {
    index: Index<'a>,
    look: Look<'a>,
}

impl<'a> Index<'a> {
    /// See [`TagIndex::prefetch`].
    #[inline(always)]
    pub(super) fn prefetch(self, first: u64) {
        self.tables.tags.prefetch(first);
    }

    /// See [`TagIndex::walk`].
    #[inline(always)]
    pub(super) fn walk(self, key: IndexKey) -> Walk {
        self.tables.tags.walk(key)
    }

    /// See [`TagIndex::prefetch_step`].
    #[inline(always)]
    pub(super) fn prefetch_step(self, walk: Walk) {
        self.tables.tags.prefetch_step(walk);
    }

    /// See [`TagIndex::look`].
    #[inline(always)]
    pub(super) fn look(self, walk: Walk) -> IndexLook<'a> {
        IndexLook { index: self, look: self.tables.tags.look(walk) }
    }

    /// See [`TagIndex::find`].
    #[inline]
    pub(super) fn find(self, key: IndexKey, is_wanted: impl Fn(FibEntryRef<'a>) -> bool) -> Option<FibEntryRef<'a>> {
        self.tables.tags.find(key, |unit| is_wanted(self.entry(unit))).map(|unit| self.entry(unit))
    }

    /// The markers of the lengths, with [`FibSearch::BinaryOverLengths`].
    #[inline(always)]
    pub(super) fn markers(self) -> Option<&'a Markers> {
        self.tables.markers.as_ref()
    }

    /// Every entry.
    pub(super) fn entries(self) -> impl Iterator<Item = FibEntryRef<'a>> {
        self.tables.tags.values().map(move |unit| self.entry(unit))
    }

    /// What the entry leads to; nothing or anything if it is one of another FIB.
    #[inline(always)]
    pub(super) fn set(self, entry: FibEntryRef<'a>) -> Option<&'a NextHopSet> {
        self.shared.sets.get(entry.set())
    }

    /// To be called with numbers that `self.tables` holds, and those only.
    #[inline(always)]
    fn entry(self, unit: u32) -> FibEntryRef<'a> {
        // SAFETY: the index shows only numbers that `Writer::link` put there after it wrote
        // their entries (`tag_index` publishes a tag after its value), and `Writer::unlink`
        // retires an entry after it took the number out. A reader that found it meanwhile
        // was pinned before, and is so during `'a`; the writer, who borrows, frees nothing.
        unsafe { self.shared.entries.entry(unit) }
    }
}

impl<'a> IndexLook<'a> {
    /// See [`Look::has_trace`].
    #[inline(always)]
    pub(super) fn has_trace(&self, own: u64) -> bool {
        self.look.has_trace(own)
    }

    /// See [`TagIndex::step`].
    #[inline(always)]
    pub(super) fn step(self, walk: Walk, own: u64) -> Step<FibEntryRef<'a>> {
        match self.index.tables.tags.step(self.look, walk, own) {
            Step::Found(unit) => Step::Found(self.index.entry(unit)),
            Step::Next(walk) => Step::Next(walk),
            Step::Absent => Step::Absent,
        }
    }
}

/// What readers may still hold.
#[derive(Debug)]
enum Unlinked {
    Entry { unit: u32, units: u32 },
    NextHopSet(u32),
    Index(usize),
}

/// The only one who changes a [`Shared`].
pub(super) struct Writer {
    shared: Arc<Shared>,
    space: Space,
    interner: Interner,
    counts: LengthCounts,
    retired: Retired<Unlinked>,
    /// For the code of a name.
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
        };
        shared.indices[0].set(Box::new(IndexTables::new(index_entries, config)?));
        Ok(Self {
            space: Space::new(&shared.entries),
            interner: Interner::new(),
            counts: LengthCounts::new(),
            retired: Retired::new(&shared.domain),
            shared: Arc::new(shared),
            code: match config.names {
                NameStorage::Inline => Box::default(),
                NameStorage::Encoded => vec![0; CODE_BUFFER_OCTETS].into(),
            },
        })
    }

    pub(super) fn reader(&self) -> HouseReader {
        HouseReader { shared: Arc::clone(&self.shared), reader: Reader::new(&self.shared.domain) }
    }

    pub(super) fn key(&self) -> &HashKey {
        &self.shared.key
    }

    #[inline]
    pub(super) fn view(&self) -> HouseView<'_> {
        // SAFETY: whatever changes the writer needs `&mut self`.
        unsafe { self.shared.view() }
    }

    /// Octets of memory.
    pub(super) fn bytes(&self) -> usize {
        self.shared.entries.touched_bytes(self.space.used_units())
            + self.growing_bytes()
            + self.code.len()
            + size_of::<Shared>()
    }

    /// Those of all but the entries.
    pub(super) fn growing_bytes(&self) -> usize {
        let indices: usize = self.shared.indices.iter().filter_map(Published::get).map(IndexTables::bytes).sum();
        indices + self.interner.bytes(&self.shared.sets) + self.space.bytes() + self.retired.bytes()
    }

    /// How many things wait until no reader can hold them.
    pub(super) fn waiting(&self) -> usize {
        self.retired.len()
    }

    /// A new entry, if there is room for its octets. The index has room for it, and none of this name.
    pub(super) fn link(&mut self, hashes: &NameHashes, name_value: &[u8], content: NextHopSet) -> bool {
        let mut code = std::mem::take(&mut self.code);
        let stored = self.shared.entries.stored_name(name_value, &mut code);
        let unit = self.allocate(stored.units());
        if let Some(unit) = unit {
            let set = self.interner.acquire(&self.shared.sets, content);
            // SAFETY: `space` gave these units: they were never used, or given back by `reclaim`.
            unsafe { self.shared.entries.write(unit, stored, set) };
        }
        self.code = code;
        let Some(unit) = unit else { return false };
        self.counts.add(&self.shared.lengths, hashes.components());
        self.tables().link(self.shared.name_key(hashes), hashes, unit);
        self.reclaim_if_due();
        true
    }

    /// Lets the entry of this name lead elsewhere; says whether there is one.
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

    /// Removes the entry of this name; says whether there was one.
    pub(super) fn unlink(&mut self, hashes: &NameHashes, name_value: &[u8]) -> bool {
        let Some((unit, set)) = self.find(hashes, name_value) else { return false };
        self.tables().unlink(self.shared.name_key(hashes), hashes, unit);
        self.counts.subtract(&self.shared.lengths, hashes.components());
        let units = self.shared.entries.stored_name(name_value, &mut self.code).units() as u32;
        self.retired.retire(Unlinked::Entry { unit, units });
        self.release_set(set);
        self.reclaim_if_due();
        true
    }

    /// Makes an index for `entries` entries and publishes it. The pause is in proportion to
    /// those there are; readers go on with the old one.
    pub(super) fn replace_index(&mut self, entries: usize, config: &FibConfig) -> io::Result<()> {
        let larger = IndexTables::new(entries, config)?;
        let (mut hashes, mut buffer) = (NameHashes::default(), Vec::new());
        for entry in self.view().index.entries() {
            hashes.compute(self.key(), entry.name_in(&mut buffer)).expect("no longer than an insertion allowed");
            larger.link(self.shared.name_key(&hashes), &hashes, self.shared.entries.unit(entry));
        }
        let old = self.shared.index.load(Ordering::Relaxed);
        self.shared.indices[old + 1].set(Box::new(larger));
        self.shared.index.store(old + 1, Ordering::Release);
        self.retired.retire(Unlinked::Index(old));
        self.reclaim();
        Ok(())
    }

    /// Refuses if readers keep too much waiting.
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
            // SAFETY: each thing was taken from where readers find it before it was
            // retired (`unlink`, `replace_index`; a set when `interner` had counted that no entry
            // names it), each once, and quiescence told that no reader is left that was pinned
            // before. The writer itself holds nothing: `&mut self`.
            unsafe {
                match unlinked {
                    Unlinked::Entry { unit, units } => space.release(&shared.entries, unit, units as usize),
                    Unlinked::NextHopSet(number) => interner.free(&shared.sets, number),
                    Unlinked::Index(place) => shared.indices[place].clear(),
                }
            }
        });
    }

    fn tables(&self) -> &IndexTables {
        self.view().index.tables
    }

    /// The number of the entry of this name, and that of its set.
    fn find(&self, hashes: &NameHashes, name_value: &[u8]) -> Option<(u32, u32)> {
        let entry = self.view().find_name(hashes, name_value)?;
        Some((self.shared.entries.unit(entry), entry.set()))
    }

    /// One entry that was just unlinked or changed names the set no longer.
    fn release_set(&mut self, set: u32) {
        if self.interner.release(&self.shared.sets, set) {
            self.retired.retire(Unlinked::NextHopSet(set));
        }
    }

    /// Ends every update, also one that retired nothing: an earlier one may wait for it.
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
pub(super) struct HouseReader {
    shared: Arc<Shared>,
    reader: Reader,
}

impl HouseReader {
    /// Begins a batch: what is in the FIB now stays whole until the pin is dropped. To be
    /// kept short; what is removed meanwhile cannot be used again.
    #[inline]
    pub(super) fn pin(&mut self) -> HousePin<'_> {
        HousePin { shared: &self.shared, _pin: self.reader.pin() }
    }

    /// The key for [`NameHashes::compute`].
    pub(super) fn key(&self) -> &HashKey {
        &self.shared.key
    }
}

/// A batch in which the table may be looked at.
pub(super) struct HousePin<'a> {
    shared: &'a Shared,
    _pin: Pin<'a>,
}

impl HousePin<'_> {
    /// The FIB.
    #[inline]
    pub(super) fn view(&self) -> HouseView<'_> {
        // SAFETY: `_pin` is one of the domain of `shared`, and the view borrows it.
        unsafe { self.shared.view() }
    }
}
