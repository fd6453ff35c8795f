//! Check: reads everything that a store holds, and reports what is wrong.
//!
//! Question: is every Data complete and under its own name, and are the counts right?
//!
//! Cost: one pass over the store, in reads of [`CHUNK`] names. Short reads let the store soon reuse pages that the
//! writer has replaced.
//! Limits: the first [`PROBLEMS_MAX`] problems are described, all are counted.

use crate::store::{Record, Store, StoreError};
use namewire_packet::{Data, Name};
use std::ops::ControlFlow;

/// Names for each look into the store.
const CHUNK: usize = 1_000;
/// Problems that are described.
pub const PROBLEMS_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Records read.
    pub records: u64,
    /// Bytes of their names and records.
    pub bytes: u64,
    /// How many problems there are.
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<String>,
}

impl CheckReport {
    fn add(&mut self, problem: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem());
        }
    }

    fn check_record(&mut self, name: &[u8], record: Record<'_>) {
        let shown = || Name::parse_value(name).map_or_else(|_| format!("{name:02x?}"), |name| name.to_string());
        match Data::parse(record.wire) {
            Err(error) => self.add(|| format!("{}: not a Data: {error}", shown())),
            Ok(data) if data.name().value() != name => {
                self.add(|| format!("{}: holds the Data {}", shown(), data.name()));
            }
            Ok(_) => {}
        }
    }
}

/// Checks a store. Calls `progress` with the records read so far, now and then.
///
/// What changes meanwhile may make the counts differ; the report then says so. Damage ends the check, and is its last
/// problem.
///
/// # Errors
/// If the store has no order, or cannot be read.
pub fn check(store: &dyn Store, mut progress: impl FnMut(u64)) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    let mut walk = Walk::new(store, &[]);
    loop {
        let walked = walk.go_on(|name, record| {
            report.records += 1;
            report.bytes += (name.len() + record.encoded_len()) as u64;
            report.check_record(name, record);
            ControlFlow::Continue(())
        });
        progress(report.records);
        match walked {
            Ok(true) => {}
            Ok(false) => break,
            Err(StoreError::Damaged(what)) => {
                report.add(|| what);
                return Ok(report);
            }
            Err(error) => return Err(error),
        }
    }
    let usage = store.usage()?;
    let (records, bytes) = (report.records, report.bytes);
    if (usage.records, usage.bytes) != (records, bytes) {
        report
            .add(|| format!("it counts {} Data of {} bytes, and has {records} of {bytes}", usage.records, usage.bytes));
    }
    progress(report.records);
    Ok(report)
}

/// A walk over every record below a prefix in canonical order, [`CHUNK`] for each look into the store. Between two
/// looks nothing of the store is held.
pub(crate) struct Walk<'s> {
    store: &'s dyn Store,
    prefix: &'s [u8],
    last: Option<Vec<u8>>,
}

impl<'s> Walk<'s> {
    pub(crate) fn new(store: &'s dyn Store, prefix: &'s [u8]) -> Self {
        Walk { store, prefix, last: None }
    }

    /// Visits the next records. False if there are no more, or if `visit` broke.
    pub(crate) fn go_on(
        &mut self,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        let (mut seen, mut flow, mut next) = (0, ControlFlow::Continue(()), None);
        self.store.scan(self.prefix, self.last.as_deref(), &mut |name, record| {
            seen += 1;
            flow = visit(name, record);
            if flow.is_continue() && seen == CHUNK {
                next = Some(name.to_vec());
                return ControlFlow::Break(());
            }
            flow
        })?;
        self.last = next;
        Ok(self.last.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;
    use crate::store::{Change, Usage};
    use namewire_packet::{DataBuilder, NameBuf};

    fn put(store: &MemoryStore, name: &NameBuf, wire: &[u8]) {
        let record = Record { stored_ms: 1, freshness_ms: 0, wire }.encode();
        store.write(&[Change::Put { name: name.value(), record: &record }]).unwrap();
    }

    #[test]
    fn every_record_is_read_once_and_problems_are_named() {
        let store = MemoryStore::new(u64::MAX);
        let names: Vec<NameBuf> = (0..2 * CHUNK + 1).map(|number| format!("/a/{number}").parse().unwrap()).collect();
        names.iter().for_each(|name| put(&store, name, &DataBuilder::new(name).content(b"x").sign_digest()));
        let Usage { records, bytes } = store.usage().unwrap();
        let whole = CheckReport { records, bytes, ..CheckReport::default() };
        assert_eq!(check(&store, |_| {}).unwrap(), whole);
        put(&store, &names[1], b"no packet");
        put(&store, &names[2], &DataBuilder::new(&names[3]).sign_digest());
        let report = check(&store, |_| {}).unwrap();
        assert_eq!((report.records, report.problem_count), (records, 2));
        assert!(report.problems[0].starts_with("/a/1: not a Data: "), "{report:?}");
        assert_eq!(report.problems[1], "/a/2: holds the Data /a/3");
    }
}
