//! Live tables: the tables by which workers forward, while the control thread changes them.
//!
//! Question: how does a change of one advertisement reach all workers at once, without a copy of the tables, and so
//! that a descriptor always leads to its own branches?
//!
//! Readers see two things: a *version* (trees, who may push, branch sets by number), replaced as a whole, and the trie,
//! which changes under them and gives the number of a branch set for each descriptor. A number must mean the same in
//! both. So a change takes three steps, and between two of them all readers that were pinned have ended their pins
//! ([`namewire_tables::quiescence`]):
//!
//! ```text
//!   1. the version gets the new branch set under a free number
//!   2. the trie gets the number                      now every pinned reader has a version with that set
//!   3. the former number is free                     now no pinned reader has found it in the trie
//! ```
//!
//! A reader pins only while it has tag packets, so a step seldom waits. Equal branch sets have one number: a router in
//! the middle of a network has few of them.
//!
//! The trie keeps the order of bits that it was built with. [`LiveTables::wants_build`] says when another order would
//! make searches faster, or when the trie has refused a change; [`LiveTables::build`] then makes another trie, and
//! readers switch to it with the next version.
//!
//! Cost: a change copies one leaf of the trie; a new branch set, 1 KiB of pointers. Limits: those of the trie.

use super::{BranchSet, BranchSets, TagView, TreeTable};
use crate::{
    Descriptor,
    matching::{
        Entry, SubsetTable,
        burst_trie::{BuildError, BurstTrie, BurstTrieReader, BurstTrieView},
    },
};
use namewire_packet::FaceId;
use namewire_tables::{
    pages::PageSize,
    quiescence::{Domain, Pin, Reader, Retired},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The order of bits is chosen again when there are this many times as many descriptors.
const GROWTH: usize = 4;
/// Fewer descriptors need no order.
const LEAST_ORDERED: usize = 1_024;

/// What is replaced as a whole.
#[derive(Debug)]
struct Version {
    trees: Vec<TreeTable>,
    may_push: BTreeSet<FaceId>,
    branch_sets: BranchSets,
    /// Never pinned: readers clone it.
    trie: BurstTrieReader,
    /// The number of the trie; readers clone anew when it changes.
    trie_number: u64,
}

#[derive(Debug)]
struct Shared {
    /// Held only to copy or replace the pointer.
    present: Mutex<Arc<Version>>,
    number: AtomicU64,
    domain: Arc<Domain>,
}

/// A step that waits for readers.
#[derive(Debug)]
enum Step {
    /// Give these descriptors their numbers in the trie, or remove them. Nobody finds the unused numbers after that.
    Apply { trie_number: u64, changes: Vec<(Descriptor, Option<u32>)>, unused: Vec<u32> },
    /// No reader has found these numbers.
    Free(Vec<u32>),
}

/// What will be of a descriptor.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Its number when all steps are done.
    number: Option<u32>,
    /// Steps that concern it.
    steps: usize,
}

/// The tables, as their only writer has them.
#[derive(Debug)]
pub struct LiveTables {
    shared: Arc<Shared>,
    trie: BurstTrie,
    trie_number: u64,
    capacity: usize,
    steps: Retired<Step>,
    /// Descriptors that waiting steps concern.
    pending: HashMap<Descriptor, Pending>,
    branch_sets: BranchSets,
    numbers: HashMap<Arc<BranchSet>, u32>,
    /// For each number, the descriptors that have it when all steps are done.
    uses: Vec<u32>,
    free: Vec<u32>,
    /// Unused numbers that the trie may still have, because it refused a change.
    withheld: Vec<u32>,
    /// Descriptors when the order of bits was chosen.
    ordered: usize,
    has_refused: bool,
}

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
    trie: BurstTrieView<'a>,
    /// None if the reader holds the tables.
    _pin: Option<Pin<'a>>,
}

impl LiveTables {
    /// Empty tables for this number of descriptors.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(capacity: usize) -> Result<Self, BuildError> {
        let trie = BurstTrie::new(capacity, PageSize::Transparent)?;
        let domain = Arc::new(Domain::new());
        let version = Version {
            trees: Vec::new(),
            may_push: BTreeSet::new(),
            branch_sets: BranchSets::default(),
            trie: trie.reader(),
            trie_number: 0,
        };
        let present = Mutex::new(Arc::new(version));
        let steps = Retired::new(&domain);
        Ok(LiveTables {
            shared: Arc::new(Shared { present, number: AtomicU64::new(0), domain }),
            trie,
            trie_number: 0,
            capacity,
            steps,
            pending: HashMap::new(),
            branch_sets: BranchSets::default(),
            numbers: HashMap::new(),
            uses: Vec::new(),
            free: Vec::new(),
            withheld: Vec::new(),
            ordered: 0,
            has_refused: false,
        })
    }

    /// A reader for another thread.
    pub fn reader(&self) -> LiveTablesReader {
        LiveTablesReader::new(&self.shared)
    }

    /// Changes descriptors: each to its branches, or to nothing. Workers see the changes soon, at the latest when
    /// [`LiveTables::run`] was called after all their present pins.
    pub fn change(&mut self, changes: impl IntoIterator<Item = (Descriptor, Option<BranchSet>)>) {
        let (mut applied, mut unused, mut has_new) = (Vec::new(), Vec::new(), false);
        for (descriptor, set) in changes {
            let before = self.wanted(&descriptor);
            let after = set.map(|set| self.number_of(set, &mut has_new));
            if before == after {
                continue;
            }
            if let Some(after) = after {
                self.uses[after as usize] += 1;
            }
            if let Some(before) = before.filter(|before| self.release(*before)) {
                unused.push(before);
            }
            let pending = self.pending.entry(descriptor).or_default();
            *pending = Pending { number: after, steps: pending.steps + 1 };
            applied.push((descriptor, after));
        }
        if has_new {
            self.publish(|_| {});
        }
        if !applied.is_empty() {
            self.steps.retire(Step::Apply { trie_number: self.trie_number, changes: applied, unused });
        }
        self.run();
    }

    /// Replaces trees and who may push.
    pub fn set_trees(&mut self, trees: Vec<TreeTable>, may_push: BTreeSet<FaceId>) {
        self.publish(|version| (version.trees, version.may_push) = (trees, may_push));
    }

    /// Does the steps for which readers need not be waited any more.
    pub fn run(&mut self) {
        // An application may allow the step behind it.
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
        !self.steps.is_empty()
    }

    /// True if another trie would be better: call [`LiveTables::build`] with all descriptors.
    pub fn wants_build(&self) -> bool {
        let len = self.trie.view().len();
        self.has_refused || len >= LEAST_ORDERED && len >= GROWTH * self.ordered
    }

    /// Makes another trie, with an order of bits for the present descriptors. `entries` are all descriptors with the
    /// branches that they were last given.
    ///
    /// # Errors
    /// If there is no memory. The tables stay as they are.
    pub fn build(&mut self, entries: impl IntoIterator<Item = (Descriptor, BranchSet)>) -> Result<(), BuildError> {
        let number = |(descriptor, set): (Descriptor, BranchSet)| {
            let value = *self.numbers.get(&set)?;
            Some(Entry { descriptor, value })
        };
        let entries: Vec<Entry> = entries.into_iter().filter_map(number).collect();
        let ordered = entries.len();
        let trie = BurstTrie::build(entries, self.capacity, PageSize::Transparent)?;
        (self.trie, self.ordered, self.has_refused) = (trie, ordered, false);
        self.trie_number += 1;
        self.pending.clear();
        let (trie, trie_number) = (self.trie.reader(), self.trie_number);
        self.publish(|version| (version.trie, version.trie_number) = (trie, trie_number));
        // Steps that wait concern the former trie; their changes are in this one.
        if !self.withheld.is_empty() {
            self.steps.retire(Step::Free(std::mem::take(&mut self.withheld)));
        }
        Ok(())
    }

    fn take(&mut self, step: Step) {
        let (changes, mut unused) = match step {
            Step::Free(unused) => return self.free.extend(unused),
            Step::Apply { trie_number, changes, unused } if trie_number == self.trie_number => (changes, unused),
            Step::Apply { unused, .. } => (Vec::new(), unused),
        };
        for (descriptor, number) in changes {
            let done = match number {
                Some(value) => self.trie.insert(Entry { descriptor, value }),
                None => self.trie.remove(&descriptor),
            };
            if done.is_err() {
                self.has_refused = true;
                self.withheld.append(&mut unused);
            } else if let Some(pending) = self.pending.get_mut(&descriptor) {
                pending.steps -= 1;
                if pending.steps == 0 {
                    self.pending.remove(&descriptor);
                }
            }
        }
        if !unused.is_empty() {
            self.steps.retire(Step::Free(unused));
        }
    }

    /// The number that a descriptor has when all steps are done.
    fn wanted(&self, descriptor: &Descriptor) -> Option<u32> {
        let pending = self.pending.get(descriptor);
        pending.map_or_else(|| self.trie.view().get(descriptor), |pending| pending.number)
    }

    /// The number of a set, which may be new.
    fn number_of(&mut self, set: BranchSet, has_new: &mut bool) -> u32 {
        if let Some(number) = self.numbers.get(&set) {
            return *number;
        }
        *has_new = true;
        let set = Arc::new(set);
        let number = match self.free.pop() {
            Some(number) => {
                self.branch_sets.replace(number, Arc::clone(&set));
                number
            }
            None => {
                self.uses.push(0);
                self.branch_sets.push(Arc::clone(&set))
            }
        };
        self.numbers.insert(set, number);
        number
    }

    /// One descriptor less has this number; true if none has it now.
    fn release(&mut self, number: u32) -> bool {
        let uses = &mut self.uses[number as usize];
        *uses -= 1;
        let is_unused = *uses == 0;
        if is_unused {
            self.numbers.remove(self.branch_sets.get(number));
        }
        is_unused
    }

    fn publish(&self, change: impl FnOnce(&mut Version)) {
        let before = Arc::clone(&lock(&self.shared.present));
        let mut version = Version {
            trees: before.trees.clone(),
            may_push: before.may_push.clone(),
            branch_sets: self.branch_sets.clone(),
            trie: before.trie.clone(),
            trie_number: before.trie_number,
        };
        change(&mut version);
        *lock(&self.shared.present) = Arc::new(version);
        // Release: a reader that sees this number and then takes the lock finds this version or a later one.
        self.shared.number.fetch_add(1, Ordering::Release);
    }
}

impl LiveTablesReader {
    fn new(shared: &Arc<Shared>) -> Self {
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
        PinnedTables { version: &self.version, trie: self.trie.pin(), _pin: Some(pin) }
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
        PinnedTables { version: &self.version, trie: self.trie.held(), _pin: None }
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

impl<'a> PinnedTables<'a> {
    /// What a packet is forwarded by.
    pub fn view(&self) -> TagView<'_, BurstTrieView<'a>> {
        let Version { trees, may_push, branch_sets, .. } = self.version;
        TagView { trees, descriptors: &self.trie, branch_sets, may_push }
    }
}

// A panic cannot leave half a pointer.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TagSet,
        forwarder::{Branch, Serves},
    };
    use std::{ops::ControlFlow, sync::atomic::AtomicBool};

    fn descriptor(number: u64) -> Descriptor {
        TagSet::new([format!("tag{}", number % 50), format!("own{number}")]).unwrap().descriptor()
    }

    /// A set that tells which descriptor it belongs to, in one of several forms.
    fn set(number: u64, form: u16) -> BranchSet {
        let branch = Branch { tree: form, face: FaceId(number), serves: Serves::BOTH, is_application: false };
        BranchSet::new(vec![branch], Vec::new())
    }

    fn found(tables: &PinnedTables<'_>, number: u64) -> Option<(u64, u16)> {
        let view = tables.view();
        let mut found = None;
        view.descriptors.find_all(&descriptor(number), |value| {
            let branch = view.branch_sets.get(value).branches()[0];
            if branch.face.0 == number {
                found = Some((number, branch.tree));
            }
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn equal_sets_share_a_number_and_unused_numbers_are_used_again() {
        let mut tables = LiveTables::new(100).unwrap();
        let mut reader = tables.reader();
        tables.change((0..10).map(|number| (descriptor(number), Some(set(7, 1)))));
        assert_eq!(tables.branch_sets.len(), 1);
        tables.change([(descriptor(3), Some(set(3, 2)))]);
        assert_eq!(found(&reader.pin(), 3), Some((3, 2)));
        for form in 0..100 {
            tables.change([(descriptor(3), Some(set(3, form)))]);
        }
        assert!(tables.branch_sets.len() <= 4, "{}", tables.branch_sets.len());
        tables.change([(descriptor(3), None)]);
        assert_eq!(found(&reader.pin(), 3), None);
    }

    #[test]
    fn while_a_reader_is_pinned_numbers_keep_their_meaning() {
        let mut tables = LiveTables::new(100).unwrap();
        let mut reader = tables.reader();
        tables.change([(descriptor(1), Some(set(1, 1)))]);
        let pinned = reader.pin();
        tables.change([(descriptor(1), Some(set(1, 2)))]);
        assert_eq!(found(&pinned, 1), Some((1, 1)), "its version has no other set");
        tables.change([(descriptor(2), Some(set(2, 1)))]);
        assert!(tables.is_waiting() && found(&pinned, 2).is_none());
        drop(pinned);
        tables.run();
        assert!(!tables.is_waiting());
        let pinned = reader.pin();
        assert_eq!((found(&pinned, 1), found(&pinned, 2)), (Some((1, 2)), Some((2, 1))));
    }

    /// The story: a step that left a descriptor as a later step would leave it made the tables forget the later one.
    #[test]
    fn each_step_counts_even_if_two_steps_make_the_same_change() {
        let mut tables = LiveTables::new(100).unwrap();
        let [mut first, mut second, mut third] = [(); 3].map(|()| tables.reader());
        tables.change([(descriptor(1), Some(set(1, 1)))]);
        // Each step waits for one more reader than the step before it.
        let pinned = first.pin();
        tables.change([(descriptor(1), None)]);
        let later = second.pin();
        tables.change([(descriptor(1), Some(set(1, 2)))]);
        let last = third.pin();
        tables.change([(descriptor(1), None)]);
        drop(pinned);
        tables.run();
        drop(later);
        tables.run();
        assert_eq!((found(&first.pin(), 1), tables.wanted(&descriptor(1))), (Some((1, 2)), None));
        tables.change([(descriptor(1), None)]);
        drop(last);
        tables.run();
        assert_eq!((found(&first.pin(), 1), tables.pending.len()), (None, 0));
        assert_eq!(tables.free.len(), tables.branch_sets.len());
    }

    #[test]
    fn another_trie_takes_over_with_all_that_is_there() {
        let mut tables = LiveTables::new(10_000).unwrap();
        let mut reader = tables.reader();
        let all = |form: u16| (0..2_000).map(move |number| (descriptor(number), set(number, form)));
        let pinned = reader.pin();
        tables.change(all(1).map(|(descriptor, set)| (descriptor, Some(set))));
        assert!(tables.is_waiting());
        tables.build(all(1)).unwrap();
        assert!((0..2_000).all(|number| found(&pinned, number).is_none()));
        drop(pinned);
        assert!((0..2_000).all(|number| found(&reader.pin(), number) == Some((number, 1))));
        tables.run();
        assert!(!tables.wants_build() && (0..2_000).all(|number| found(&reader.pin(), number) == Some((number, 1))));
        tables.change([(descriptor(5), None)]);
        assert_eq!(found(&reader.pin(), 5), None);
    }

    #[test]
    fn readers_find_what_stays_and_never_another_descriptors_branches() {
        const STAY: u64 = 200;
        let mut tables = LiveTables::new(5_000).unwrap();
        tables.change((0..STAY).map(|number| (descriptor(number), Some(set(number, 0)))));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (mut reader, is_over) = (tables.reader(), &is_over);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    while !is_over.load(Ordering::Relaxed) {
                        let pinned = reader.pin();
                        let view = pinned.view();
                        for _ in 0..8 {
                            let number = random.u64(..STAY * 2);
                            let (mut is_found, query) = (false, descriptor(number));
                            view.descriptors.find_all(&query, |value| {
                                let face = view.branch_sets.get(value).branches()[0].face.0;
                                assert!(descriptor(face).is_subset_of(&query), "{face} for {number}");
                                is_found |= face == number;
                                ControlFlow::Continue(())
                            });
                            assert!(is_found || number >= STAY, "{number} was there throughout");
                        }
                    }
                });
            }
            let mut random = fastrand::Rng::with_seed(9);
            for round in 0..4_000_u16 {
                // Those that stay change their sets; the others come and go.
                let staying = random.u64(..STAY);
                let other = random.u64(STAY..2 * STAY);
                let comes = random.bool().then(|| set(other, round));
                tables.change([(descriptor(staying), Some(set(staying, round))), (descriptor(other), comes)]);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        tables.run();
        assert!(!tables.is_waiting());
        assert_eq!(tables.free.len() + tables.numbers.len(), tables.branch_sets.len(), "every number is used or free");
    }
}
