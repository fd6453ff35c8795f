//! Mirrored design: a design of the literature as the FIB of a router.
//!
//! The designs are structures for one thread that map prefixes to numbers ([`PrefixTable`]). Two copies of
//! a design make a FIB ([`super::mirrored`]). A number names a next-hop set ([`super::next_hop_sets`]).
//! Each copy has the sets of its own numbers, so a set lives exactly as long as a prefix of that copy leads
//! to it.
//!
//! A lossy design keeps its names in a route controller (Yuan15 §4.3.6). One controller serves both copies and sends
//! them its instructions. The controller numbers the sets in the same way as the copies, so that all numbers agree. Its
//! tables have only routes, without their strategies. Each copy keeps everything else in full
//! ([`super::exact_entries`]).
//!
//! Cost: a look-up costs what the design needs, and reads a cell and a set, both hot. Bytes: twice those of
//! the design. Limits: those of the design, [`MAX_PREFIX_BYTES`], [`super::MAX_NEXT_HOPS`]. Writers: the
//! owner. A change waits for readers as long as [`super::mirrored`] says; then it is refused.

use super::entry::{FibEntryKind, FibRefusal, MAX_PREFIX_BYTES};
use super::exact_entries::{ExactEntries, ExactEntry, ExactMatch};
use super::hint::{FibHint, FibMatch, Resolved};
use super::left_right::{LeftRightPin, LeftRightReader};
use super::mirrored::{Mirror, Mirrored, NotDone};
use super::next_hop_sets::{NextHopSet, OwnedSets};
use super::prefix_table::{
    DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable, Split, SplitController, SplitInstructions, SplitTable, SplitUpdate,
};
use crate::head_room;
use crate::name_hash::HashKey;
use std::sync::Arc;

/// A change that moves fewer rules than this takes its memory from the reserve.
const FEW_RULES: usize = 1000;

/// The most that a rule takes when it moves between the differentiator and the suffixes: its instructions
/// with the bytes of a usual name, and its places in both tables while these double.
const BYTES_PER_MOVED_RULE: usize = 2048;

/// A design, and what its numbers mean.
pub(super) struct DesignCopy {
    key: Arc<HashKey>,
    table: Held,
    sets: OwnedSets,
}

/// The structure that finds numbers.
#[allow(clippy::large_enum_variant, reason = "a router has two")]
enum Held {
    /// A whole design.
    Whole(Box<dyn PrefixTable>),
    /// A forwarding table of a controller, and what it does not keep.
    Forwarding(Box<dyn SplitTable>, ExactEntries),
}

impl Held {
    #[inline]
    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        match self {
            Self::Whole(table) => table.longest_prefix_match_batch(names, out),
            Self::Forwarding(table, _) => table.longest_prefix_match_batch(names, out),
        }
    }

    fn exact(&self) -> Option<&ExactEntries> {
        match self {
            Self::Whole(_) => None,
            Self::Forwarding(_, exact) => Some(exact),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Whole(table) => table.bytes(),
            Self::Forwarding(table, exact) => table.bytes() + exact.bytes(),
        }
    }
}

/// A change of a [`DesignCopy`].
pub(super) enum DesignChange {
    Insert {
        prefix: Box<[u8]>,
        set: NextHopSet,
    },
    Remove {
        prefix: Box<[u8]>,
    },
    /// For a controller: its instructions, the set of an insertion, the number that the prefix had.
    Instructed {
        instructions: Box<dyn SplitInstructions>,
        set: Option<NextHopSet>,
        before: Option<u32>,
    },
    InsertExact(ExactEntry),
    RemoveExact {
        prefix: Box<[u8]>,
    },
}

impl DesignChange {
    fn bytes(&self) -> usize {
        match self {
            Self::Insert { prefix, .. }
            | Self::Remove { prefix }
            | Self::InsertExact(ExactEntry { prefix, .. })
            | Self::RemoveExact { prefix } => prefix.len(),
            Self::Instructed { instructions, .. } => instructions.bytes(),
        }
    }
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
        let before = match (change, &mut self.table) {
            (DesignChange::Insert { prefix, set }, Held::Whole(table)) => {
                let number = self.sets.acquire(set.clone());
                table.insert(prefix, number).inspect_err(|_| self.sets.release(number))?
            }
            (DesignChange::Remove { prefix }, Held::Whole(table)) => table.remove(prefix),
            (DesignChange::InsertExact(entry), Held::Forwarding(_, exact)) => return Ok(exact.insert(entry)),
            (DesignChange::RemoveExact { prefix }, Held::Forwarding(_, exact)) => return Ok(exact.remove(prefix)),
            (DesignChange::Instructed { instructions, set, before }, Held::Forwarding(table, _)) => {
                if let Some(set) = set {
                    self.sets.acquire(set.clone());
                }
                table.apply(&**instructions);
                *before
            }
            _ => unreachable!("a change is made for the kind of the copies"),
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
    /// For a lossy design.
    controller: Option<Controller>,
    len: usize,
    prefix_bytes: usize,
}

/// The controller of a lossy design, which knows the names.
struct Controller {
    routes: Box<dyn SplitController>,
    /// The sets as the copies number them.
    sets: OwnedSets,
    /// Prefixes of all kinds.
    capacity_entries: usize,
}

pub(super) type DesignPin<'a> = LeftRightPin<'a, DesignCopy>;

impl MirroredDesign {
    /// A FIB of two empty tables, made alike.
    pub(super) fn new(tables: [Box<dyn PrefixTable>; 2], key: HashKey) -> Self {
        Self { copies: copies(tables.map(Held::Whole), key), controller: None, len: 0, prefix_bytes: 0 }
    }

    /// A FIB of a controller and its tables, all empty.
    pub(super) fn of_split(split: Split, capacity_entries: usize, key: HashKey) -> Self {
        let Split { controller: routes, tables } = split;
        let controller = Some(Controller { routes, sets: OwnedSets::new(), capacity_entries });
        let tables = tables.map(|table| Held::Forwarding(table, ExactEntries::new()));
        Self { copies: copies(tables, key), controller, len: 0, prefix_bytes: 0 }
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
        self.len
    }

    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix_bytes
    }

    /// Bytes of memory of both copies, the log, and the controller.
    pub(super) fn bytes(&self) -> usize {
        let log = self.copies.log();
        let log_bytes = log.capacity() * size_of::<DesignChange>() + log.iter().map(DesignChange::bytes).sum::<usize>();
        let controller = self.controller.as_ref().map_or(0, |of| of.routes.bytes() + of.sets.bytes());
        self.copies.both().iter().map(|copy| copy.bytes()).sum::<usize>() + controller + log_bytes
    }

    /// Changes that one copy lacks.
    pub(super) fn waiting(&self) -> usize {
        self.copies.log().len()
    }

    pub(super) fn publish(&mut self) {
        self.copies.publish();
    }

    /// Adds the prefix or replaces what it leads to; returns whether it was there before.
    pub(super) fn insert(&mut self, prefix: &[u8], set: NextHopSet, kind: FibEntryKind) -> Result<bool, FibRefusal> {
        if self.controller.is_some() {
            return self.counted(prefix, |design| design.insert_beside(prefix, set, kind));
        }
        let replaced = self.copies.change(DesignChange::Insert { prefix: prefix.into(), set }).map_err(refusal)?;
        if !replaced {
            self.len += 1;
            self.prefix_bytes += prefix.len();
        }
        Ok(replaced)
    }

    /// Whether there is exactly this prefix.
    pub(super) fn has(&self, prefix: &[u8]) -> bool {
        match &self.controller {
            Some(controller) => controller.routes.contains(prefix) || self.is_exact(prefix),
            None => {
                let found = self.view().longest_prefix_match(prefix);
                found.is_some_and(|found| found.prefix_bytes == prefix.len())
            }
        }
    }

    /// Removes the prefix; returns whether it was there.
    pub(super) fn remove(&mut self, prefix: &[u8]) -> Result<bool, FibRefusal> {
        // Insertion refuses prefixes that are too long. For an absent prefix the caller need not wait for
        // readers, nor try again.
        if prefix.len() > MAX_PREFIX_BYTES || !self.has(prefix) {
            return Ok(false);
        }
        if self.controller.is_some() {
            return self.counted(prefix, |design| {
                design.copies.make_ready().map_err(refusal)?;
                design.remove_route(prefix)?;
                design.remove_exact(prefix)
            });
        }
        let was_there = self.copies.change(DesignChange::Remove { prefix: prefix.into() }).map_err(refusal)?;
        if was_there {
            self.len -= 1;
            self.prefix_bytes -= prefix.len();
        }
        Ok(was_there)
    }

    /// Counts a prefix of a lossy design after a change of it, which may have been done in part. Returns whether it was
    /// there before.
    fn counted(
        &mut self,
        prefix: &[u8],
        change: impl FnOnce(&mut Self) -> Result<(), FibRefusal>,
    ) -> Result<bool, FibRefusal> {
        let was_there = self.has(prefix);
        let result = change(self);
        match (was_there, self.has(prefix)) {
            (false, true) => (self.len, self.prefix_bytes) = (self.len + 1, self.prefix_bytes + prefix.len()),
            (true, false) => (self.len, self.prefix_bytes) = (self.len - 1, self.prefix_bytes - prefix.len()),
            _ => {}
        }
        result.map(|()| was_there)
    }

    /// Makes the prefix one of this kind. It is in one place at least, all the time.
    fn insert_beside(&mut self, prefix: &[u8], content: NextHopSet, kind: FibEntryKind) -> Result<(), FibRefusal> {
        let is_full = self.controller.as_ref().is_some_and(|controller| self.len >= controller.capacity_entries);
        if is_full && !self.has(prefix) {
            return Err(FibRefusal::Full);
        }
        self.copies.make_ready().map_err(refusal)?;
        if kind.is_route() {
            self.insert_route(prefix, NextHopSet { strategy: 0, ..content.clone() })?;
        }
        if kind != FibEntryKind::Route {
            let entry = ExactEntry { prefix: prefix.into(), content, kind };
            self.copies.change(DesignChange::InsertExact(entry)).map_err(refusal)?;
        }
        match kind {
            FibEntryKind::Route => self.remove_exact(prefix),
            FibEntryKind::RouteWithStrategy => Ok(()),
            FibEntryKind::Strategy | FibEntryKind::Own => self.remove_route(prefix),
        }
    }

    fn insert_route(&mut self, prefix: &[u8], set: NextHopSet) -> Result<(), FibRefusal> {
        let Some(Controller { routes, sets, .. }) = &mut self.controller else { return Ok(()) };
        has_room_to_move(routes.moved_by_insertion(prefix))?;
        let number = sets.acquire(set.clone());
        let update = routes.insert(prefix, number).inspect_err(|_| sets.release(number))?;
        let SplitUpdate { before, instructions } = update;
        before.into_iter().for_each(|before| sets.release(before));
        self.copies.change(DesignChange::Instructed { instructions, set: Some(set), before }).map_err(refusal)?;
        Ok(())
    }

    fn remove_route(&mut self, prefix: &[u8]) -> Result<(), FibRefusal> {
        let Some(Controller { routes, sets, .. }) = &mut self.controller else { return Ok(()) };
        if !routes.contains(prefix) {
            return Ok(());
        }
        self.copies.make_ready().map_err(refusal)?;
        has_room_to_move(routes.moved_by_removal(prefix))?;
        let Some(SplitUpdate { before, instructions }) = routes.remove(prefix) else { return Ok(()) };
        before.into_iter().for_each(|before| sets.release(before));
        self.copies.change(DesignChange::Instructed { instructions, set: None, before }).map_err(refusal)?;
        Ok(())
    }

    fn remove_exact(&mut self, prefix: &[u8]) -> Result<(), FibRefusal> {
        if self.is_exact(prefix) {
            self.copies.change(DesignChange::RemoveExact { prefix: prefix.into() }).map_err(refusal)?;
        }
        Ok(())
    }

    fn is_exact(&self, prefix: &[u8]) -> bool {
        self.copies.latest().table.exact().is_some_and(|exact| exact.contains(prefix))
    }
}

fn copies(tables: [Held; 2], key: HashKey) -> Mirrored<DesignCopy> {
    let key = Arc::new(key);
    let [left, right] = tables.map(|table| DesignCopy { key: Arc::clone(&key), table, sets: OwnedSets::new() });
    Mirrored::new(left, right)
}

/// Refuses a change of this many rules if there is no memory for their places.
fn has_room_to_move(rules: usize) -> Result<(), FibRefusal> {
    let has_room = rules < FEW_RULES || head_room::is_there(rules.saturating_mul(BYTES_PER_MOVED_RULE));
    has_room.then_some(()).ok_or(FibRefusal::NoMemory)
}

fn refusal(not_done: NotDone<FibRefusal>) -> FibRefusal {
    match not_done {
        NotDone::ReadersBehind => FibRefusal::ReadersBehind,
        NotDone::Refused(refusal) => refusal,
    }
}

/// One thread's access to the design.
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
        self.resolve(name_value, found[0]).map(FibMatch::from)
    }

    pub(super) fn longest_prefix_match_batch(self, names: &[&[u8]], out: &mut [Option<FibMatch<'a>>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (names, out) in names.chunks(DESIGN_BATCH_NAMES).zip(out.chunks_mut(DESIGN_BATCH_NAMES)) {
            let mut found = [None; DESIGN_BATCH_NAMES];
            self.copy.table.longest_prefix_match_batch(names, &mut found);
            for ((name, out), found) in names.iter().zip(out).zip(found) {
                *out = self.resolve(name, found).map(FibMatch::from);
            }
        }
    }

    /// Looks the names up in one call; a name without a prefix gets a hint that says so.
    pub(super) fn hints(self, names: &[&[u8]], out: &mut [Option<FibHint<'a>>]) {
        let mut found = [None; DESIGN_BATCH_NAMES];
        self.copy.table.longest_prefix_match_batch(names, &mut found);
        for ((name, out), found) in names.iter().zip(out).zip(found) {
            *out = Some(self.resolve(name, found).into());
        }
    }

    fn resolve(self, name: &[u8], found: Option<PrefixMatch>) -> Option<Resolved<'a>> {
        let found = found.and_then(|PrefixMatch { number, prefix_bytes }| {
            let set = self.copy.sets.get(number)?;
            Some(Resolved { set, strategy: set.strategy, prefix_bytes })
        });
        match self.copy.table.exact().and_then(|exact| exact.longest(name)) {
            None => found,
            Some(exact) => Some(beside(exact, found)),
        }
    }
}

/// The answer from an exact entry and what a lossy table found; see [`super::exact_entries`].
fn beside<'a>(exact: ExactMatch<'a>, found: Option<Resolved<'a>>) -> Resolved<'a> {
    let ExactMatch { set, prefix_bytes, is_own } = exact;
    let longer = found.filter(|found| !is_own && usize::from(found.prefix_bytes) > prefix_bytes);
    // No longer than a name that was looked up, and a packet.
    let of_entry = Resolved { set, strategy: set.strategy, prefix_bytes: prefix_bytes as u16 };
    longer.map_or(of_entry, |found| Resolved { strategy: set.strategy, ..found })
}
