//! Mirrored design: a design of the literature as the FIB of a router.
//!
//! The designs are structures for one thread that lead prefixes to numbers ([`super::designs`]).
//! Two copies of one make a FIB ([`super::mirrored`]); a number is that of a next-hop set
//! ([`super::next_hop_sets`]), and each copy has the sets of its numbers, so that a set lives
//! exactly as long as that copy leads there.
//!
//! Cost of a look-up: the design's, and a cell and a set, both hot. Bytes: twice those of the
//! design. Limits: the design's, [`MAX_PREFIX_OCTETS`], [`super::MAX_NEXT_HOPS`].
//! Who may write: the one owner; a change waits for readers no longer than
//! [`super::mirrored`] says, and is refused then.

use super::designs::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use super::left_right::{LeftRightPin, LeftRightReader};
use super::look_up::{FibHint, FibMatch, Hint, NameBatch};
use super::mirrored::{Mirror, Mirrored, NotDone};
use super::next_hop_sets::{NextHopSet, OwnedSets};
use super::{FibRefusal, MAX_PREFIX_OCTETS};
use crate::name_hash::{HashKey, NameHashes};
use arrayvec::ArrayVec;
use std::sync::Arc;

/// A design, and what its numbers mean.
pub(super) struct DesignCopy {
    key: Arc<HashKey>,
    table: Box<dyn PrefixTable>,
    sets: OwnedSets,
}

/// A change of a [`DesignCopy`].
pub(super) enum DesignChange {
    Insert { prefix: Box<[u8]>, set: NextHopSet },
    Remove { prefix: Box<[u8]> },
}

impl DesignCopy {
    fn bytes(&self) -> usize {
        self.table.bytes() + self.sets.bytes() + size_of::<Self>()
    }
}

impl Mirror for DesignCopy {
    type Operation = DesignChange;
    /// Whether the prefix was there before.
    type Effect = bool;
    type Refusal = FibRefusal;

    fn apply(&mut self, change: &DesignChange) -> Result<bool, FibRefusal> {
        let before = match change {
            DesignChange::Insert { prefix, set } => {
                let number = self.sets.acquire(set.clone());
                self.table.insert(prefix, number).inspect_err(|_| self.sets.release(number))?
            }
            DesignChange::Remove { prefix } => self.table.remove(prefix),
        };
        if let Some(number) = before {
            self.sets.release(number);
        }
        Ok(before.is_some())
    }
}

/// The owner's side.
pub(super) struct MirroredDesign {
    copies: Mirrored<DesignCopy>,
    prefix_octets: usize,
}

pub(super) type DesignPin<'a> = LeftRightPin<'a, DesignCopy>;

impl MirroredDesign {
    /// Of two empty tables, made alike.
    pub(super) fn new(tables: [Box<dyn PrefixTable>; 2], key: HashKey) -> Self {
        let key = Arc::new(key);
        let [left, right] = tables.map(|table| DesignCopy { key: Arc::clone(&key), table, sets: OwnedSets::new() });
        Self { copies: Mirrored::new(left, right), prefix_octets: 0 }
    }

    pub(super) fn reader(&self) -> DesignReader {
        DesignReader { key: Arc::clone(&self.copies.latest().key), reader: self.copies.reader() }
    }

    pub(super) fn key(&self) -> &HashKey {
        &self.copies.latest().key
    }

    pub(super) fn view(&self) -> DesignView<'_> {
        DesignView::new(self.copies.latest())
    }

    pub(super) fn len(&self) -> usize {
        self.copies.latest().table.len()
    }

    pub(super) fn prefix_octets(&self) -> usize {
        self.prefix_octets
    }

    /// Octets of memory of both copies and of the log.
    pub(super) fn bytes(&self) -> usize {
        let log = self.copies.log();
        let prefixes = log.iter().map(|change| match change {
            DesignChange::Insert { prefix, .. } | DesignChange::Remove { prefix } => prefix.len(),
        });
        let log_bytes = log.capacity() * size_of::<DesignChange>() + prefixes.sum::<usize>();
        self.copies.both().iter().map(|copy| copy.bytes()).sum::<usize>() + log_bytes
    }

    /// Changes that one copy lacks.
    pub(super) fn waiting(&self) -> usize {
        self.copies.log().len()
    }

    pub(super) fn publish(&mut self) {
        self.copies.publish();
    }

    /// Says whether the prefix was there before.
    pub(super) fn insert(&mut self, prefix: &[u8], set: NextHopSet) -> Result<bool, FibRefusal> {
        let replaced = self.change(DesignChange::Insert { prefix: prefix.into(), set })?;
        self.prefix_octets += if replaced { 0 } else { prefix.len() };
        Ok(replaced)
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, prefix: &[u8]) -> Result<bool, FibRefusal> {
        if prefix.len() > MAX_PREFIX_OCTETS {
            return Ok(false); // no insertion allowed it
        }
        let was_there = self.change(DesignChange::Remove { prefix: prefix.into() })?;
        self.prefix_octets -= if was_there { prefix.len() } else { 0 };
        Ok(was_there)
    }

    fn change(&mut self, change: DesignChange) -> Result<bool, FibRefusal> {
        self.copies.change(change).map_err(|not_done| match not_done {
            NotDone::ReadersBehind => FibRefusal::ReadersBehind,
            NotDone::Refused(refusal) => refusal,
        })
    }
}

/// One thread's access.
pub(super) struct DesignReader {
    key: Arc<HashKey>,
    reader: LeftRightReader<DesignCopy>,
}

impl DesignReader {
    #[inline]
    pub(super) fn pin(&mut self) -> DesignPin<'_> {
        self.reader.pin()
    }

    pub(super) fn key(&self) -> &HashKey {
        &self.key
    }
}

/// One copy during a batch.
#[derive(Clone, Copy)]
pub(super) struct DesignView<'a> {
    copy: &'a DesignCopy,
}

impl<'a> DesignView<'a> {
    pub(super) fn new(copy: &'a DesignCopy) -> Self {
        Self { copy }
    }

    pub(super) fn key(self) -> &'a HashKey {
        &self.copy.key
    }

    pub(super) fn longest_prefix_match(self, name_value: &[u8]) -> Option<FibMatch<'a>> {
        let mut found = [None];
        self.copy.table.longest_prefix_match_batch(&[name_value], &mut found);
        self.resolve(found[0]).map(|(set, prefix_octets)| FibMatch::new(usize::from(prefix_octets), set))
    }

    pub(super) fn longest_prefix_match_batch(self, names: &[(&[u8], &NameHashes)], out: &mut [Option<FibMatch<'a>>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (names, out) in names.chunks(DESIGN_BATCH_NAMES).zip(out.chunks_mut(DESIGN_BATCH_NAMES)) {
            let octets: ArrayVec<&[u8], DESIGN_BATCH_NAMES> = names.iter().map(|&(octets, _)| octets).collect();
            let mut found = [None; DESIGN_BATCH_NAMES];
            self.copy.table.longest_prefix_match_batch(&octets, &mut found);
            for (out, found) in out[..names.len()].iter_mut().zip(found) {
                let resolved = self.resolve(found);
                *out = resolved.map(|(set, prefix_octets)| FibMatch::new(usize::from(prefix_octets), set));
            }
        }
    }

    /// Looks all wanted names up in one call. What is not wanted gets `None`, and what has no
    /// prefix a hint that says so.
    pub(super) fn candidates(self, count: usize, names: &mut impl NameBatch, out: &mut [Option<FibHint<'a>>]) {
        names.make_ready(0..count);
        let wanted: ArrayVec<usize, DESIGN_BATCH_NAMES> = (0..count).filter(|&name| names.is_wanted(name)).collect();
        let octets: ArrayVec<&[u8], DESIGN_BATCH_NAMES> = wanted.iter().map(|&name| names.name_value(name)).collect();
        let mut found = [None; DESIGN_BATCH_NAMES];
        self.copy.table.longest_prefix_match_batch(&octets, &mut found);
        out[..count].fill(None);
        for (name, found) in wanted.into_iter().zip(found) {
            let (set, prefix_octets) = self.resolve(found).unzip();
            out[name] = Some(FibHint(Hint::Resolved { set, prefix_octets: prefix_octets.unwrap_or_default() }));
        }
    }

    fn resolve(self, found: Option<PrefixMatch>) -> Option<(&'a NextHopSet, u16)> {
        let PrefixMatch { number, prefix_octets } = found?;
        Some((self.copy.sets.get(number)?, prefix_octets))
    }
}
