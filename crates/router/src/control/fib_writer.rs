//! The FIB writer: applies the decisions of management to the FIB.
//!
//! One command may change many entries, and some designs of the FIB take long for each ([`FibWriter::apply`]: with
//! `marker_maintenance = "enumerate"`, a change looks at all longer entries). So the writer works in turns of
//! [`TURN_NS`]. The writer makes the first changes of a command at once, and begins with the prefix of the command.
//! Then control may answer the command. The other changes wait for later turns, and control answers other commands in
//! between. Management computes no further slice of a large change until the writer has caught up.
//!
//! The table may refuse a change: for good because it is full, or for a moment because a worker may still hold removed
//! entries. Each reason of refusal has its own counter. The writer tries a refused prefix again, with the next hops
//! that management wants at that time.
//!
//! Cost: a change costs an update of the table. Bytes: the writer keeps the name of each prefix that waits or was
//! refused. Limits: it keeps at most as many names as management has FIB entries, or had. The writer retries
//! [`RETRIED_AT_ONCE`] of the refused ones every [`RETRY_NS`], in turn, so that control stays free for commands as long
//! as the table is full.

use namewire_management::FibChange;
use namewire_packet::{FaceId, Name, NameBuf};
use namewire_tables::{Fib, FibRefusal, NextHop, fib::FibEntryKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// How long the writer changes the table before control answers commands,
const TURN_NS: u64 = 10_000_000;
/// but it makes so many changes in any case: a few entries are changed together even if the thread is interrupted.
const CHANGES_PER_TURN_MIN: usize = 16;
/// Pause between two attempts. It is longer than a worker's turn, which is how long a momentary refusal lasts.
const RETRY_NS: u64 = 100_000_000;
/// Refused prefixes tried at once, which takes a millisecond.
const RETRIED_AT_ONCE: usize = 1000;

#[derive(Default)]
pub(crate) struct FibWriter {
    refusals: BTreeMap<&'static str, u64>,
    /// Prefixes whose change waits for a turn.
    waiting: BTreeSet<NameBuf>,
    refused: BTreeSet<NameBuf>,
    /// The prefix that was tried last; the next attempt goes on behind it.
    last_tried: NameBuf,
    retry_ns: u64,
}

/// A clock, in monotonic nanoseconds.
type Clock<'a> = &'a dyn Fn() -> u64;

/// The end of a turn.
struct Turn<'a> {
    clock: Clock<'a>,
    end_ns: u64,
    changes: usize,
}

impl<'a> Turn<'a> {
    fn begin(clock: Clock<'a>) -> Self {
        Turn { clock, end_ns: clock().saturating_add(TURN_NS), changes: 0 }
    }

    /// A change was made. True if the turn is over.
    fn ends(&mut self) -> bool {
        self.changes += 1;
        self.changes >= CHANGES_PER_TURN_MIN && (self.clock)() >= self.end_ns
    }
}

impl FibWriter {
    /// Makes the changes that management decided: the first ones at once, the others in this turn or a later one.
    pub(crate) fn apply(&mut self, fib: &mut Fib, clock: Clock<'_>, changes: Vec<FibChange>) {
        let mut turn = Turn::begin(clock);
        let mut is_over = false;
        for change in changes {
            if is_over {
                let (FibChange::Insert { name, .. } | FibChange::Remove { name }) = change;
                self.waiting.insert(name);
            } else {
                self.make(fib, clock, change);
                is_over = turn.ends();
            }
        }
        fib.publish();
    }

    /// True if changes wait for a turn.
    pub(crate) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When [`FibWriter::run`] has work next.
    pub(crate) fn next_run_ns(&self) -> Option<u64> {
        match (self.is_behind(), self.refused.is_empty()) {
            (true, _) => Some(0),
            (false, false) => Some(self.retry_ns),
            (false, true) => None,
        }
    }

    /// Has one turn: makes changes that wait, and tries refused ones again if it is time. `insertion` gives what is
    /// wanted at a prefix now. Returns the next hops that are new in the FIB, because pending Interests may wait for
    /// them.
    pub(crate) fn run(
        &mut self,
        fib: &mut Fib,
        clock: Clock<'_>,
        insertion: impl Fn(Name<'_>) -> Option<FibChange>,
    ) -> Vec<(NameBuf, FaceId)> {
        let (mut turn, mut gained) = (Turn::begin(clock), Vec::new());
        while let Some(name) = self.waiting.pop_first() {
            let wanted = insertion(name.as_name()).unwrap_or(FibChange::Remove { name });
            let next_hops = next_hops(&wanted);
            if self.make(fib, clock, wanted) {
                gained.extend(next_hops);
            }
            if turn.ends() {
                break;
            }
        }
        if !self.refused.is_empty() && self.retry_ns <= clock() {
            self.retry(fib, &mut turn, insertion, &mut gained);
        }
        fib.publish();
        gained
    }

    fn retry(
        &mut self,
        fib: &mut Fib,
        turn: &mut Turn<'_>,
        insertion: impl Fn(Name<'_>) -> Option<FibChange>,
        gained: &mut Vec<(NameBuf, FaceId)>,
    ) {
        let behind = (Bound::Excluded(&self.last_tried), Bound::Unbounded);
        let mut names: Vec<NameBuf> = self.refused.range(behind).take(RETRIED_AT_ONCE).cloned().collect();
        if names.is_empty() {
            names = self.refused.iter().take(RETRIED_AT_ONCE).cloned().collect();
        }
        for name in names {
            self.last_tried.clone_from(&name);
            let wanted = insertion(name.as_name()).unwrap_or(FibChange::Remove { name });
            let next_hops = next_hops(&wanted);
            // A refusal was counted the first time.
            if self.change(fib, turn.clock, wanted).is_ok() {
                gained.extend(next_hops);
            }
            if turn.ends() {
                break;
            }
        }
        self.retry_ns = (turn.clock)() + RETRY_NS;
    }

    /// Makes a change, or counts its refusal.
    fn make(&mut self, fib: &mut Fib, clock: Clock<'_>, change: FibChange) -> bool {
        let result = self.change(fib, clock, change);
        if let Err(refusal) = result {
            *self.refusals.entry(refusal.name()).or_default() += 1;
        }
        result.is_ok()
    }

    /// Changes that the table refused, by reason.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.refusals.iter().map(|(&refusal, &count)| (refusal, count))
    }

    fn change(&mut self, fib: &mut Fib, clock: Clock<'_>, change: FibChange) -> Result<(), FibRefusal> {
        match change {
            FibChange::Insert { name, next_hops, strategy, chooses, hidden } => {
                let kind = kind_of(&next_hops, chooses, hidden);
                let next_hops: Vec<NextHop> =
                    next_hops.iter().map(|hop| NextHop { face: hop.face.0, cost: hop.cost }).collect();
                let result = fib.insert_as(name.value(), &next_hops, strategy, kind);
                self.settle(clock, name, result)
            }
            FibChange::Remove { name } => {
                let result = fib.remove(name.value());
                self.settle(clock, name, result)
            }
        }
    }

    /// The change of `name` was made, or must be tried again.
    fn settle<T>(&mut self, clock: Clock<'_>, name: NameBuf, result: Result<T, FibRefusal>) -> Result<(), FibRefusal> {
        self.waiting.remove(&name);
        match result {
            Err(refusal) if refusal.may_pass() => {
                if self.refused.is_empty() {
                    self.retry_ns = clock() + RETRY_NS;
                }
                self.refused.insert(name);
            }
            _ => {
                self.refused.remove(&name);
            }
        }
        result.map(drop)
    }
}

/// The next hops that pending Interests may use after a change.
fn next_hops(change: &FibChange) -> Vec<(NameBuf, FaceId)> {
    match change {
        FibChange::Insert { name, next_hops, .. } => next_hops.iter().map(|hop| (name.clone(), hop.face)).collect(),
        FibChange::Remove { .. } => Vec::new(),
    }
}

/// What an entry of management is to the FIB.
fn kind_of(next_hops: &[namewire_management::NextHop], chooses: bool, hidden: bool) -> FibEntryKind {
    match (next_hops.iter().any(|hop| hop.face == FaceId::INTERNAL), hidden, chooses) {
        (true, _, _) => FibEntryKind::Own,
        (false, true, _) => FibEntryKind::Strategy,
        (false, false, true) => FibEntryKind::RouteWithStrategy,
        (false, false, false) => FibEntryKind::Route,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_designs::fib::{
        catalogue::{FibDesign, FibDesignOptions},
        hash_tables::MarkerMaintenance,
    };
    use namewire_tables::{FibConfig, HashKey};
    use std::cell::Cell;

    fn insert(number: usize, face: u64) -> FibChange {
        let next_hops = vec![namewire_management::NextHop { face: FaceId(face), cost: 0 }];
        FibChange::Insert { name: name(number), next_hops, strategy: 0, chooses: false, hidden: false }
    }

    fn insert_hidden(name: NameBuf) -> FibChange {
        FibChange::Insert { name, next_hops: vec![], strategy: 0, chooses: true, hidden: true }
    }

    fn name(number: usize) -> NameBuf {
        format!("/{number:08}").parse().expect("a name")
    }

    fn face(fib: &Fib, number: usize) -> Option<u64> {
        fib.get(name(number).value()).map(|found| found.nexthops[0].face)
    }

    /// A momentary refusal, in the middle of a worker's turn, was never tried again.
    #[test]
    fn what_was_refused_for_a_moment_is_there_afterwards_as_it_is_wanted_then() {
        // Entries of 20 bytes.
        let config = FibConfig { entry_bytes: 200, ..FibConfig::new(100) };
        let mut fib = Fib::with_config(config, HashKey::from_seed(1)).expect("address space");
        let (mut reader, mut writer) = (fib.reader(), FibWriter::default());
        writer.apply(&mut fib, &|| 0, (0..10).map(|number| insert(number, 1)).collect());
        assert_eq!(writer.next_run_ns(), None);
        let pin = reader.pin();
        let mut changes: Vec<FibChange> = (0..3).map(|number| FibChange::Remove { name: name(number) }).collect();
        changes.extend((10..13).map(|number| insert(number, 1)));
        writer.apply(&mut fib, &|| 5, changes);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-bytes-full", 3)]);
        assert_eq!(writer.next_run_ns(), Some(5 + RETRY_NS));
        // Meanwhile one prefix is no longer wanted, and management has forgotten another.
        writer.apply(&mut fib, &|| 6, vec![FibChange::Remove { name: name(10) }]);
        let wanted = |wanted: Name<'_>| (wanted == name(12).as_name()).then(|| insert(12, 2));
        assert_eq!(writer.run(&mut fib, &|| 5 + RETRY_NS, wanted), []);
        assert_eq!((face(&fib, 12), writer.next_run_ns()), (None, Some(5 + 2 * RETRY_NS)), "still pinned");
        drop(pin);
        let gained = writer.run(&mut fib, &|| 5 + 2 * RETRY_NS, wanted);
        assert_eq!(gained, [(name(12), FaceId(2))], "what pending Interests are to be shown");
        assert_eq!([10, 11, 12].map(|number| face(&fib, number)), [None, None, Some(2)]);
        assert_eq!(writer.next_run_ns(), None);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-bytes-full", 3)], "attempts are not counted");
    }

    #[test]
    fn every_refused_prefix_has_its_turn() {
        let mut fib = Fib::new(10, HashKey::from_seed(1));
        let mut writer = FibWriter::default();
        let most = 2 * RETRIED_AT_ONCE + 10;
        writer.apply(&mut fib, &|| 0, (0..most).map(|number| insert(number, 1)).collect());
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-full", most as u64 - 10)]);
        let tried = std::cell::RefCell::new(BTreeSet::new());
        for attempt in 1..=2 {
            writer.run(&mut fib, &|| attempt * RETRY_NS, |name| {
                tried.borrow_mut().insert(name.to_buf());
                Some(insert_hidden(name.to_buf()))
            });
        }
        assert_eq!(tried.borrow().len(), 2 * RETRIED_AT_ONCE);
    }

    /// The story: with 16,000 routes and markers that are kept right by enumeration, each of a thousand changes of one
    /// command took 0.2 ms, and no other command was answered meanwhile; with a million routes, for minutes.
    #[test]
    fn a_turn_ends_in_the_middle_of_a_large_change_and_a_command_s_own_prefix_does_not_wait() {
        let options = FibDesignOptions { maintenance: Some(MarkerMaintenance::Enumerate), ..Default::default() };
        let made = FibDesign::Binary.fib(&options, FibConfig::new(2000), HashKey::from_seed(1));
        let (mut fib, mut writer) = (made.expect("memory"), FibWriter::default());
        writer.apply(&mut fib, &|| 0, (0..1000).map(|number| insert(number, 1)).collect());
        assert!(!writer.is_behind());
        // Each reading of the clock takes a hundredth of a turn. From the 16th change, there is one for each.
        let now_ns = Cell::new(0);
        let clock = || now_ns.replace(now_ns.get() + TURN_NS / 100);
        writer.apply(&mut fib, &clock, (0..1000).map(|number| insert(number, 2)).collect());
        let changed = |fib: &Fib| (0..1000).filter(|&number| face(fib, number) == Some(2)).count();
        assert_eq!((changed(&fib), writer.is_behind(), writer.next_run_ns()), (115, true, Some(0)));
        // Another command, on a prefix that waits, and many others.
        let slow = || now_ns.replace(now_ns.get() + TURN_NS);
        writer.apply(&mut fib, &slow, [999].into_iter().chain(900..999).map(|number| insert(number, 3)).collect());
        assert_eq!([999, 914, 915].map(|number| face(&fib, number)), [Some(3), Some(3), Some(1)]);
        let wanted = |name: Name<'_>| {
            let number: usize = name.to_string()[1..].parse().expect("a number");
            (number != 500).then(|| insert(number, if number < 900 { 2 } else { 3 }))
        };
        let (mut turns, mut gained) = (0, 0);
        while writer.is_behind() {
            gained += writer.run(&mut fib, &clock, wanted).len();
            turns += 1;
        }
        assert_eq!((turns, gained, changed(&fib)), (8, 868, 899), "869 waited, and one of them is no longer wanted");
        assert_eq!((face(&fib, 500), face(&fib, 998), writer.next_run_ns()), (None, Some(3), None));
    }

    #[test]
    fn what_can_never_fit_is_counted_and_not_tried_again() {
        let mut fib = Fib::new(10, HashKey::from_seed(1));
        let mut writer = FibWriter::default();
        let long: NameBuf = "/a".repeat(300).parse().expect("a name");
        writer.apply(&mut fib, &|| 0, vec![insert_hidden(long)]);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-prefix-too-long", 1)]);
        assert_eq!(writer.next_run_ns(), None);
    }
}
