//! The FIB writer: makes the FIB equal to what management has decided.
//!
//! The table may refuse a change: for good because it is full, or for a moment because a worker may still hold removed
//! entries. Each reason of refusal has its own counter. The writer tries a refused prefix again, with the next hops
//! that management wants by then.
//!
//! Cost: a change costs what the table needs. Bytes: the writer keeps the name of each refused prefix. Limits: it keeps
//! at most as many names as management has FIB entries. The writer retries [`RETRIED_AT_ONCE`] of them every
//! [`RETRY_NS`], in turn, so that control stays free for commands however long the table is full.

use namewire_management::FibChange;
use namewire_packet::{FaceId, Name, NameBuf};
use namewire_tables::{Fib, FibRefusal, NextHop, fib::FibEntryKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Pause between two attempts. It is longer than a worker's turn, which is how long a momentary refusal lasts.
const RETRY_NS: u64 = 100_000_000;
/// Refused prefixes tried at once, which takes a millisecond.
const RETRIED_AT_ONCE: usize = 1000;

#[derive(Default)]
pub(crate) struct FibWriter {
    refusals: BTreeMap<&'static str, u64>,
    refused: BTreeSet<NameBuf>,
    /// The prefix that was tried last; the next attempt goes on behind it.
    last_tried: NameBuf,
    retry_ns: u64,
}

impl FibWriter {
    /// Makes the changes that management decided.
    pub(crate) fn apply(&mut self, fib: &mut Fib, now_ns: u64, changes: Vec<FibChange>) {
        for change in changes {
            if let Err(refusal) = self.change(fib, now_ns, change) {
                *self.refusals.entry(refusal.name()).or_default() += 1;
            }
        }
        fib.publish();
    }

    /// When [`FibWriter::retry`] has work next.
    pub(crate) fn next_retry_ns(&self) -> Option<u64> {
        (!self.refused.is_empty()).then_some(self.retry_ns)
    }

    /// Tries refused prefixes again; `insertion` gives what is wanted there now. Returns the next hops that are new in
    /// the FIB, because pending Interests may wait for them.
    pub(crate) fn retry(
        &mut self,
        fib: &mut Fib,
        now_ns: u64,
        insertion: impl Fn(Name<'_>) -> Option<FibChange>,
    ) -> Vec<(NameBuf, FaceId)> {
        let behind = (Bound::Excluded(&self.last_tried), Bound::Unbounded);
        let mut names: Vec<NameBuf> = self.refused.range(behind).take(RETRIED_AT_ONCE).cloned().collect();
        if names.is_empty() {
            names = self.refused.iter().take(RETRIED_AT_ONCE).cloned().collect();
        }
        self.last_tried = names.last().cloned().unwrap_or_default();
        let mut gained = Vec::new();
        for name in names {
            let wanted = insertion(name.as_name()).unwrap_or(FibChange::Remove { name });
            let next_hops: Vec<(NameBuf, FaceId)> = match &wanted {
                FibChange::Insert { name, next_hops, .. } => {
                    next_hops.iter().map(|hop| (name.clone(), hop.face)).collect()
                }
                FibChange::Remove { .. } => Vec::new(),
            };
            // A refusal was counted the first time.
            if self.change(fib, now_ns, wanted).is_ok() {
                gained.extend(next_hops);
            }
        }
        fib.publish();
        self.retry_ns = now_ns + RETRY_NS;
        gained
    }

    /// Changes that the table refused, by reason.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.refusals.iter().map(|(&refusal, &count)| (refusal, count))
    }

    fn change(&mut self, fib: &mut Fib, now_ns: u64, change: FibChange) -> Result<(), FibRefusal> {
        match change {
            FibChange::Insert { name, next_hops, strategy, chooses, hidden } => {
                let kind = kind_of(&next_hops, chooses, hidden);
                let next_hops: Vec<NextHop> =
                    next_hops.iter().map(|hop| NextHop { face: hop.face.0, cost: hop.cost }).collect();
                let result = fib.insert_as(name.value(), &next_hops, strategy, kind);
                self.settle(now_ns, name, result)
            }
            FibChange::Remove { name } => {
                let result = fib.remove(name.value());
                self.settle(now_ns, name, result)
            }
        }
    }

    /// Records whether `name` must be tried again.
    fn settle<T>(&mut self, now_ns: u64, name: NameBuf, result: Result<T, FibRefusal>) -> Result<(), FibRefusal> {
        match result {
            Err(refusal) if refusal.may_pass() => {
                if self.refused.is_empty() {
                    self.retry_ns = now_ns + RETRY_NS;
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
    use namewire_tables::{FibConfig, HashKey};

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
        writer.apply(&mut fib, 0, (0..10).map(|number| insert(number, 1)).collect());
        assert_eq!(writer.next_retry_ns(), None);
        let pin = reader.pin();
        let mut changes: Vec<FibChange> = (0..3).map(|number| FibChange::Remove { name: name(number) }).collect();
        changes.extend((10..13).map(|number| insert(number, 1)));
        writer.apply(&mut fib, 5, changes);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-bytes-full", 3)]);
        assert_eq!(writer.next_retry_ns(), Some(5 + RETRY_NS));
        // Meanwhile one prefix is no longer wanted, and management has forgotten another.
        writer.apply(&mut fib, 6, vec![FibChange::Remove { name: name(10) }]);
        let wanted = |wanted: Name<'_>| (wanted == name(12).as_name()).then(|| insert(12, 2));
        assert_eq!(writer.retry(&mut fib, 5 + RETRY_NS, wanted), []);
        assert_eq!((face(&fib, 12), writer.next_retry_ns()), (None, Some(5 + 2 * RETRY_NS)), "still pinned");
        drop(pin);
        let gained = writer.retry(&mut fib, 5 + 2 * RETRY_NS, wanted);
        assert_eq!(gained, [(name(12), FaceId(2))], "what pending Interests are to be shown");
        assert_eq!([10, 11, 12].map(|number| face(&fib, number)), [None, None, Some(2)]);
        assert_eq!(writer.next_retry_ns(), None);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-bytes-full", 3)], "attempts are not counted");
    }

    #[test]
    fn every_refused_prefix_has_its_turn() {
        let mut fib = Fib::new(10, HashKey::from_seed(1));
        let mut writer = FibWriter::default();
        let most = 2 * RETRIED_AT_ONCE + 10;
        writer.apply(&mut fib, 0, (0..most).map(|number| insert(number, 1)).collect());
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-full", most as u64 - 10)]);
        let tried = std::cell::RefCell::new(BTreeSet::new());
        for _ in 0..2 {
            writer.retry(&mut fib, 0, |name| {
                tried.borrow_mut().insert(name.to_buf());
                Some(insert_hidden(name.to_buf()))
            });
        }
        assert_eq!(tried.borrow().len(), 2 * RETRIED_AT_ONCE);
    }

    #[test]
    fn what_can_never_fit_is_counted_and_not_tried_again() {
        let mut fib = Fib::new(10, HashKey::from_seed(1));
        let mut writer = FibWriter::default();
        let long: NameBuf = "/a".repeat(300).parse().expect("a name");
        writer.apply(&mut fib, 0, vec![insert_hidden(long)]);
        assert_eq!(writer.refusals().collect::<Vec<_>>(), [("fib-prefix-too-long", 1)]);
        assert_eq!(writer.next_retry_ns(), None);
    }
}
