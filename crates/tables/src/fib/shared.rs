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
//! and a thing is found through [`Index`] alone, which exists only while a pin or a borrow of
//! the writer does: that is what the promises of `unsafe` in this folder rest on.
//!
//! Cost, limits: the [`super::Fib`]'s. Who may write: the one owner of the [`Writer`].
#![allow(unsafe_code, reason = "leaf: gives memory that readers could reach back, after quiescence")]

use super::entries::{Entries, FibEntryRef};
use super::lengths::{LengthCounts, Lengths};
use super::next_hop_sets::{Interner, NextHopSet, NextHopSets};
use super::published::Published;
use super::space::Space;
use super::view::FibView;
use super::{FibRefusal, MAX_WAITING};
use crate::name_hash::{HashKey, hash_name};
use crate::pages::PageSize;
use crate::quiescence::{Domain, Pin, Reader, Retired};
use crate::tag_index::{Step, TagIndex, Walk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(doc)]
use crate::name_hash::NameHashes;

/// How often an index for 8 can double before it has room for 2³² entries, and the first.
const MAX_INDICES: usize = 30;

/// What readers see.
pub(super) struct Shared {
    pub(super) key: HashKey,
    pub(super) lengths: Lengths,
    domain: Arc<Domain>,
    /// The place of the present one in `indices`.
    index: AtomicUsize,
    indices: [Published<TagIndex>; MAX_INDICES],
    entries: Entries,
    sets: NextHopSets,
}

impl Shared {
    /// # Safety
    /// As long as the view lives, a reader of `domain` stays pinned or the [`Writer`] unchanged.
    #[inline]
    unsafe fn view(&self) -> FibView<'_> {
        let index = self.indices[self.index.load(Ordering::Acquire)].get();
        FibView { shared: self, index: Index { index: index.expect("the present index is there"), shared: self } }
    }
}

/// What is linked. Everything found here stays whole during `'a`, as long as which a reader is
/// pinned or the writer does not change.
#[derive(Clone, Copy)]
pub(super) struct Index<'a> {
    index: &'a TagIndex,
    shared: &'a Shared,
}

impl<'a> Index<'a> {
    /// See [`TagIndex::prefetch`].
    #[inline(always)]
    pub(super) fn prefetch(self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// See [`TagIndex::walk`].
    #[inline(always)]
    pub(super) fn walk(self, hash: u64) -> Walk {
        self.index.walk(hash)
    }

    /// See [`TagIndex::prefetch_step`].
    #[inline(always)]
    pub(super) fn prefetch_step(self, walk: Walk) {
        self.index.prefetch_step(walk);
    }

    /// See [`TagIndex::step`].
    #[inline(always)]
    pub(super) fn step(self, walk: &mut Walk) -> Step<FibEntryRef<'a>> {
        match self.index.step(walk) {
            Step::Found(unit) => Step::Found(self.entry(unit)),
            Step::Next => Step::Next,
            Step::Absent => Step::Absent,
        }
    }

    /// See [`TagIndex::find`].
    #[inline]
    pub(super) fn find(self, hash: u64, is_wanted: impl Fn(FibEntryRef<'a>) -> bool) -> Option<FibEntryRef<'a>> {
        self.index.find(hash, |unit| is_wanted(self.entry(unit))).map(|unit| self.entry(unit))
    }

    /// See [`TagIndex::candidate`].
    #[inline]
    pub(super) fn candidate(self, hash: u64) -> Option<FibEntryRef<'a>> {
        self.index.candidate(hash).map(|unit| self.entry(unit))
    }

    /// Every entry.
    pub(super) fn entries(self) -> impl Iterator<Item = FibEntryRef<'a>> {
        self.index.values().map(move |unit| self.entry(unit))
    }

    /// What the entry leads to; nothing or anything if it is one of another FIB.
    #[inline(always)]
    pub(super) fn set(self, entry: FibEntryRef<'a>) -> Option<&'a NextHopSet> {
        self.shared.sets.get(entry.set())
    }

    /// To be called with numbers that `self.index` holds, and those only.
    #[inline(always)]
    fn entry(self, unit: u32) -> FibEntryRef<'a> {
        // SAFETY: the index shows only numbers that `Writer::link` put there after it wrote
        // their entries (`tag_index` publishes a tag after its value), and `Writer::unlink`
        // retires an entry after it took the number out. A reader that found it meanwhile
        // was pinned before, and is so during `'a`; the writer, who borrows, frees nothing.
        unsafe { self.shared.entries.entry(unit) }
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
}

impl Writer {
    pub(super) fn new(key: HashKey, units: usize, index_entries: usize, pages: PageSize) -> io::Result<Self> {
        let shared = Shared {
            key,
            lengths: Lengths::default(),
            domain: Arc::new(Domain::new()),
            index: AtomicUsize::new(0),
            indices: [const { Published::empty() }; MAX_INDICES],
            entries: Entries::new(units, pages)?,
            sets: NextHopSets::new(),
        };
        shared.indices[0].set(Box::new(TagIndex::new(index_entries, pages)?));
        Ok(Self {
            space: Space::new(&shared.entries),
            interner: Interner::new(),
            counts: LengthCounts::new(),
            retired: Retired::new(&shared.domain),
            shared: Arc::new(shared),
        })
    }

    pub(super) fn reader(&self) -> FibReader {
        FibReader { shared: Arc::clone(&self.shared), reader: Reader::new(&self.shared.domain) }
    }

    pub(super) fn key(&self) -> &HashKey {
        &self.shared.key
    }

    #[inline]
    pub(super) fn view(&self) -> FibView<'_> {
        // SAFETY: whatever changes the writer needs `&mut self`.
        unsafe { self.shared.view() }
    }

    /// Octets of memory.
    pub(super) fn bytes(&self) -> usize {
        let indices: usize = self.shared.indices.iter().filter_map(Published::get).map(TagIndex::bytes).sum();
        self.shared.entries.touched_bytes(self.space.used_units())
            + indices
            + self.interner.bytes(&self.shared.sets)
            + self.space.bytes()
            + self.retired.bytes()
            + size_of::<Shared>()
    }

    /// How many things wait until no reader can hold them.
    pub(super) fn waiting(&self) -> usize {
        self.retired.len()
    }

    /// A new entry, if there is room for its octets. The index has room for it, and none of this name.
    pub(super) fn link(&mut self, hash: u64, components: usize, name_value: &[u8], content: NextHopSet) -> bool {
        let Some(unit) = self.allocate(Entries::units_for(name_value.len())) else { return false };
        let set = self.interner.acquire(&self.shared.sets, content);
        // SAFETY: `space` gave these units: they were never used, or given back by `reclaim`.
        unsafe { self.shared.entries.write(unit, name_value, set) };
        self.counts.add(&self.shared.lengths, components);
        self.index().insert(hash, unit);
        self.reclaim_if_due();
        true
    }

    /// Lets the entry of this name lead elsewhere; says whether there is one.
    pub(super) fn change(&mut self, hash: u64, name_value: &[u8], content: &NextHopSet) -> Result<bool, FibRefusal> {
        let Some((unit, set)) = self.find(hash, name_value) else { return Ok(false) };
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
    pub(super) fn unlink(&mut self, hash: u64, components: usize, name_value: &[u8]) -> bool {
        let Some((unit, set)) = self.find(hash, name_value) else { return false };
        assert!(self.index().remove(hash, unit), "found there just now");
        self.counts.subtract(&self.shared.lengths, components);
        let units = Entries::units_for(name_value.len()) as u32;
        self.retired.retire(Unlinked::Entry { unit, units });
        self.release_set(set);
        self.reclaim_if_due();
        true
    }

    /// Makes an index for `entries` entries and publishes it. The pause is in proportion to
    /// those there are; readers go on with the old one.
    pub(super) fn replace_index(&mut self, entries: usize, pages: PageSize) -> io::Result<()> {
        let larger = TagIndex::new(entries, pages)?;
        for entry in self.view().index.entries() {
            larger.insert(hash_name(self.key(), entry.name_value()), self.shared.entries.unit(entry));
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

    fn index(&self) -> &TagIndex {
        self.view().index.index
    }

    /// The number of the entry of this name, and that of its set.
    fn find(&self, hash: u64, name_value: &[u8]) -> Option<(u32, u32)> {
        let entry = self.view().find(hash, name_value)?;
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

/// One thread's access to the FIB. Holds nothing between pins, however long it sleeps.
pub struct FibReader {
    shared: Arc<Shared>,
    reader: Reader,
}

impl FibReader {
    /// Begins a batch: what is in the FIB now stays whole until the pin is dropped. To be
    /// kept short; what is removed meanwhile cannot be used again.
    #[inline]
    pub fn pin(&mut self) -> FibPin<'_> {
        FibPin { shared: &self.shared, _pin: self.reader.pin() }
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        &self.shared.key
    }
}

/// A batch in which the FIB may be looked at.
pub struct FibPin<'a> {
    shared: &'a Shared,
    _pin: Pin<'a>,
}

impl FibPin<'_> {
    /// The FIB.
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        // SAFETY: `_pin` is one of the domain of `shared`, and the view borrows it.
        unsafe { self.shared.view() }
    }
}
