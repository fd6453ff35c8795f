//! Live tables: the tables by which workers forward, while the control thread changes them. They are also where
//! control keeps what it knows of each descriptor.
//!
//! Question: how does a change of one advertisement reach all workers at once, without a copy of the tables, and so
//! that a descriptor always leads to its own branches?
//!
//! Readers see two things: a *version* (trees, who may push, branch sets by number), replaced as a whole, and the trie,
//! which changes under them and gives a number for each descriptor. For readers it is the number of a branch set, for
//! the writer that of what it keeps of the descriptor ([`Kept`]), of which the branch set is a part. Equal ones have
//! one number: most descriptors came the same way. So a descriptor and all that control knows of it take the trie's 14
//! to 20 bytes, and there is no second copy.
//!
//! A number must mean the same in version and trie. A number that all readers know is changed in the trie at once. A
//! new one takes three steps, and between two of them all readers that were pinned have ended their pins
//! ([`namewire_tables::quiescence`]):
//!
//! ```text
//!   1. the version gets the new branch set under a free number
//!   2. the trie gets the number                      now every pinned reader has a version with that set
//!   3. the former number is free                     now no pinned reader has found it in the trie
//! ```
//!
//! A reader pins only while it has tag packets, so a step seldom waits. The writer sees its own changes at once
//! ([`LiveTables::get`]); those that wait are in a map.
//!
//! The trie keeps the order of bits that it was built with; [`rebuild`] makes another. For comparisons, readers search
//! the paper's vector instead of the trie ([`vector_form`]).
//!
//! Cost: a change copies one leaf of the trie; something new to keep, 1 KiB of pointers. Limits: those of the trie.

mod reader;
mod rebuild;
#[cfg(test)]
mod tests;
mod vector_form;

pub use reader::{LiveTablesReader, PinnedTables};
pub use rebuild::TableBuild;
pub(super) use vector_form::VECTOR_SEARCH_STEPS;
pub use vector_form::{SearchedTable, VectorBuild};

use super::{BranchSet, BranchSets, TreeTable};
use crate::{
    Descriptor,
    matching::{
        Entry,
        burst_trie::{BuildError, BurstTrie, BurstTrieReader, BurstTrieView, Cursor, Refusal},
        vector::VectorTable,
    },
};
use namewire_packet::FaceId;
use namewire_tables::{
    pages::PageSize,
    quiescence::{Domain, Retired},
};
use rebuild::Rebuild;
use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
};
use vector_form::VectorForm;

/// What the writer keeps of a descriptor. Readers see its branch set.
pub trait Kept: Eq + Hash {
    /// Where packets for the descriptor go.
    fn branch_set(&self) -> BranchSet;
}

impl Kept for BranchSet {
    fn branch_set(&self) -> BranchSet {
        self.clone()
    }
}

/// What is replaced as a whole.
#[derive(Clone, Debug)]
struct Version {
    trees: Arc<Vec<TreeTable>>,
    may_push: Arc<BTreeSet<FaceId>>,
    branch_sets: BranchSets,
    /// Never pinned: readers clone it.
    trie: BurstTrieReader,
    /// The number of the trie; readers clone anew when it changes.
    trie_number: u64,
    /// What readers search in place of the trie.
    vector: Option<Arc<VectorTable>>,
}

#[derive(Debug)]
struct Shared {
    /// Held only to copy or replace the pointer.
    present: Mutex<Arc<Version>>,
    number: AtomicU64,
    domain: Arc<Domain>,
}

/// Changes that wait, in the order in which they were made: each descriptor with its number, or removed.
#[derive(Debug, Default)]
struct Changes {
    of: Vec<(Descriptor, Option<u32>)>,
    /// Numbers that nobody finds in the trie after that.
    unused: Vec<u32>,
}

/// A step that waits for readers.
#[derive(Debug)]
enum Step {
    Apply(Changes),
    /// No reader of the trie has found these numbers.
    Free(Vec<u32>),
    /// Neither has one of the vector.
    Reuse(Vec<u32>),
}

/// What will be of a descriptor.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Its number when all steps are done.
    number: Option<u32>,
    /// Steps that concern it.
    steps: usize,
}

/// A number.
#[derive(Debug)]
struct Numbered<K> {
    /// Nothing for a free number.
    kept: Option<Arc<K>>,
    /// The descriptors that have it when all steps are done.
    uses: u32,
    /// Some pinned readers may not know it.
    is_new: bool,
}

/// A place in the tables. The walk begins again if another trie took over.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableCursor {
    trie_number: u64,
    cursor: Cursor,
}

/// The tables, as their only writer has them.
#[derive(Debug)]
pub struct LiveTables<K: Kept = BranchSet> {
    shared: Arc<Shared>,
    trie: BurstTrie,
    trie_number: u64,
    steps: Retired<Step>,
    /// Changes that [`LiveTables::run`] makes a step of.
    changes: Changes,
    /// Descriptors that waiting changes concern.
    pending: HashMap<Descriptor, Pending>,
    /// Changes that the trie has refused.
    refused: HashMap<Descriptor, Option<u32>>,
    branch_sets: BranchSets,
    numbers: HashMap<Arc<K>, u32>,
    numbered: Vec<Numbered<K>>,
    free: Vec<u32>,
    /// Unused numbers that the trie may still have, because it refused a change.
    withheld: Vec<u32>,
    /// Descriptors when the order of bits was chosen.
    ordered: usize,
    /// The trie had no memory for a change.
    has_refused: bool,
    rebuild: Option<Rebuild>,
    /// Nothing while readers search the trie.
    vector: Option<VectorForm>,
}

impl<K: Kept> LiveTables<K> {
    /// Empty tables for this number of descriptors.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(capacity: usize) -> Result<Self, BuildError> {
        let trie = BurstTrie::new(capacity, PageSize::Transparent)?;
        let domain = Arc::new(Domain::new());
        let version = Version {
            trees: Arc::default(),
            may_push: Arc::default(),
            branch_sets: BranchSets::default(),
            trie: trie.reader(),
            trie_number: 0,
            vector: None,
        };
        let present = Mutex::new(Arc::new(version));
        let steps = Retired::new(&domain);
        Ok(LiveTables {
            shared: Arc::new(Shared { present, number: AtomicU64::new(0), domain }),
            trie,
            trie_number: 0,
            steps,
            changes: Changes::default(),
            pending: HashMap::new(),
            refused: HashMap::new(),
            branch_sets: BranchSets::default(),
            numbers: HashMap::new(),
            numbered: Vec::new(),
            free: Vec::new(),
            withheld: Vec::new(),
            ordered: 0,
            has_refused: false,
            rebuild: None,
            vector: None,
        })
    }

    /// A reader for another thread.
    pub fn reader(&self) -> LiveTablesReader {
        LiveTablesReader::new(&self.shared)
    }

    /// What is kept of a descriptor, after all changes.
    pub fn get(&self, descriptor: &Descriptor) -> Option<&Arc<K>> {
        self.wanted(descriptor).and_then(|number| self.kept(number))
    }

    /// What has this number.
    pub fn kept(&self, number: u32) -> Option<&Arc<K>> {
        self.numbered[number as usize].kept.as_ref()
    }

    /// Each thing that is kept, and the number of descriptors that have it.
    pub fn uses(&self) -> impl Iterator<Item = (&K, u32)> {
        self.numbered.iter().filter_map(|numbered| Some((&**numbered.kept.as_ref()?, numbered.uses)))
    }

    /// Keeps this for a descriptor from now on, or nothing. Workers see it soon, at the latest when
    /// [`LiveTables::run`] was called after all their present pins.
    pub fn set(&mut self, descriptor: &Descriptor, kept: Option<K>) {
        let after = kept.map(|kept| self.number_of(kept));
        let is_new = after.is_some_and(|after| self.numbered[after as usize].is_new);
        if !is_new && (self.pending.is_empty() || !self.pending.contains_key(descriptor)) {
            match self.apply(descriptor, after) {
                Ok(before) => return self.count(before, after),
                Err(why) => self.has_refused |= why == Refusal::Memory,
            }
        }
        let before = self.wanted(descriptor);
        if before == after {
            return;
        }
        self.count(before, after);
        let pending = self.pending.entry(*descriptor).or_default();
        *pending = Pending { number: after, steps: pending.steps + 1 };
        self.changes.of.push((*descriptor, after));
    }

    /// Changes descriptors as [`LiveTables::set`].
    pub fn change(&mut self, changes: impl IntoIterator<Item = (Descriptor, Option<K>)>) {
        changes.into_iter().for_each(|(descriptor, kept)| self.set(&descriptor, kept));
        self.run();
    }

    /// Replaces trees and who may push.
    pub fn set_trees(&mut self, trees: Vec<TreeTable>, may_push: BTreeSet<FaceId>) {
        self.publish(|version| (version.trees, version.may_push) = (Arc::new(trees), Arc::new(may_push)));
    }

    /// Does the steps for which readers need not be waited any more.
    pub fn run(&mut self) {
        self.try_refused();
        self.switch();
        if !self.changes.is_empty() {
            if self.changes.of.iter().any(|(_, number)| number.is_some_and(|it| self.numbered[it as usize].is_new)) {
                self.publish(|_| {});
            }
            self.steps.retire(Step::Apply(std::mem::take(&mut self.changes)));
        }
        // A step may allow the one behind it.
        while !self.steps.is_empty() {
            let mut due = Vec::new();
            self.steps.reclaim(|step| due.push(step));
            if due.is_empty() {
                return;
            }
            due.into_iter().for_each(|step| self.take(step));
        }
    }

    /// True while steps wait: call [`LiveTables::run`] in a moment.
    pub fn is_waiting(&self) -> bool {
        self.has_pending() || !self.steps.is_empty() || !self.changes.is_empty() || self.is_switching()
    }

    /// True while the trie lacks changes: searches and walks by the writer would not see them.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if [`LiveTables::run`] has changes to make a step of.
    pub fn has_changes(&self) -> bool {
        !self.changes.of.is_empty()
    }

    /// True if the trie lacks changes, and [`LiveTables::run`] waits for readers to apply them.
    pub fn waits_for_readers(&self) -> bool {
        self.has_pending() && !self.has_changes()
    }

    /// The number of descriptors, and perhaps of some more that wait.
    pub fn len_at_most(&self) -> usize {
        self.trie.len() + self.pending.len()
    }

    /// The trie, which lacks what is pending.
    pub fn trie(&self) -> BurstTrieView<'_> {
        self.trie.view()
    }

    /// Goes on with a walk through the trie: visits about this many further descriptors. False at the end.
    pub fn walk(&self, cursor: &mut TableCursor, most: usize, visit: impl FnMut(Entry)) -> bool {
        if cursor.trie_number != self.trie_number {
            *cursor = TableCursor { trie_number: self.trie_number, ..TableCursor::default() };
        }
        self.trie.view().walk(&mut cursor.cursor, most, visit)
    }

    /// Descriptors with what is kept of them, in no order: not many more than `most`, all of them if there are fewer.
    pub fn entries(&self, most: usize) -> impl Iterator<Item = (Descriptor, Arc<K>)> {
        let mut entries = Vec::new();
        let mut cursor = TableCursor::default();
        let visit = |entry: Entry| {
            if !self.pending.contains_key(&entry.descriptor) {
                entries.push((entry.descriptor, entry.value));
            }
        };
        self.walk(&mut cursor, most, visit);
        entries.extend(self.pending.iter().filter_map(|(descriptor, it)| Some((*descriptor, it.number?))));
        entries.into_iter().filter_map(|(descriptor, number)| Some((descriptor, Arc::clone(self.kept(number)?))))
    }

    fn take(&mut self, step: Step) {
        let Changes { of, unused } = match step {
            Step::Free(unused) => return self.release_numbers(unused),
            Step::Reuse(unused) => return self.free.extend(unused),
            Step::Apply(changes) => changes,
        };
        for (descriptor, number) in of {
            if let Some(number) = number {
                self.numbered[number as usize].is_new = false;
            }
            if self.refused.remove(&descriptor).is_some() {
                self.end_step(&descriptor);
            }
            self.apply_or_wait(descriptor, number);
        }
        if self.refused.is_empty() {
            let unused: Vec<u32> = self.withheld.drain(..).chain(unused).collect();
            if !unused.is_empty() {
                self.steps.retire(Step::Free(unused));
            }
        } else {
            self.withheld.extend(unused);
        }
    }

    fn apply_or_wait(&mut self, descriptor: Descriptor, number: Option<u32>) {
        match self.apply(&descriptor, number) {
            Ok(_) => self.end_step(&descriptor),
            Err(why) => {
                self.has_refused |= why == Refusal::Memory;
                self.refused.insert(descriptor, number);
            }
        }
    }

    fn try_refused(&mut self) {
        if self.refused.is_empty() {
            return;
        }
        for (descriptor, number) in std::mem::take(&mut self.refused) {
            self.apply_or_wait(descriptor, number);
        }
    }

    fn end_step(&mut self, descriptor: &Descriptor) {
        let Some(pending) = self.pending.get_mut(descriptor) else { return };
        pending.steps -= 1;
        if pending.steps == 0 {
            self.pending.remove(descriptor);
        }
    }

    /// Changes the trie. Returns the number that it had.
    fn apply(&mut self, descriptor: &Descriptor, number: Option<u32>) -> Result<Option<u32>, Refusal> {
        let before = match number {
            Some(value) => self.trie.insert(Entry { descriptor: *descriptor, value })?,
            None => self.trie.remove(descriptor)?,
        };
        if before != number {
            self.rebuild.iter_mut().for_each(|rebuild| rebuild.note(descriptor));
            self.vector.iter_mut().for_each(|form| form.has_changed = true);
        }
        Ok(before)
    }

    /// The number that a descriptor has when all steps are done.
    fn wanted(&self, descriptor: &Descriptor) -> Option<u32> {
        let pending = if self.pending.is_empty() { None } else { self.pending.get(descriptor) };
        pending.map_or_else(|| self.trie.get(descriptor), |pending| pending.number)
    }

    /// The number of what is to be kept, which may be new.
    fn number_of(&mut self, kept: K) -> u32 {
        if let Some(number) = self.numbers.get(&kept) {
            return *number;
        }
        let (set, kept) = (Arc::new(kept.branch_set()), Arc::new(kept));
        let numbered = Numbered { kept: Some(Arc::clone(&kept)), uses: 0, is_new: true };
        let number = match self.free.pop() {
            Some(number) => {
                self.branch_sets.replace(number, set);
                self.numbered[number as usize] = numbered;
                number
            }
            None => {
                self.numbered.push(numbered);
                self.branch_sets.push(set)
            }
        };
        self.numbers.insert(kept, number);
        number
    }

    /// A descriptor has another number.
    fn count(&mut self, before: Option<u32>, after: Option<u32>) {
        if before == after {
            return;
        }
        if let Some(after) = after {
            self.numbered[after as usize].uses += 1;
        }
        let Some(before) = before else { return };
        let numbered = &mut self.numbered[before as usize];
        numbered.uses -= 1;
        if numbered.uses == 0
            && let Some(kept) = numbered.kept.take()
        {
            self.numbers.remove(&kept);
            self.changes.unused.push(before);
        }
    }

    fn publish(&self, change: impl FnOnce(&mut Version)) {
        let mut version = Version::clone(&lock(&self.shared.present));
        version.branch_sets = self.branch_sets.clone();
        change(&mut version);
        *lock(&self.shared.present) = Arc::new(version);
        // Release: a reader that sees this number and then takes the lock finds this version or a later one.
        self.shared.number.fetch_add(1, Ordering::Release);
    }
}

// A panic cannot leave half a pointer.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
