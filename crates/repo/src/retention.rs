//! Retention: which Data a repository forgets by itself.
//!
//! Question: how does a store stay within its limits of age and size, without an index of ages?
//!
//! A pass reads every record below the prefix of a rule. The first reading finds Data that is too old, or stale if the
//! rule asks for that. It also sums the bytes of all other Data by age. If these are more bytes than the rule allows,
//! the sums give the time before which Data must go, and a second reading finds that Data. So the oldest Data goes
//! first.
//!
//! Layout: a map from the second in which a Data was stored to bytes. When it has more than [`AGES_MAX`] entries, the
//! unit doubles. So a pass may delete a little more than needed, at most the Data stored within one unit.
//!
//! If new Data arrives under the name of an old one between the reading and the deletion, the deletion removes it, too.
//!
//! Cost: one or two readings of what is below the prefix. Memory: the map, and one batch of names.

use crate::check::Walk;
use crate::store::{Record, Store, StoreError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Entries of the map of ages.
const AGES_MAX: usize = 4_096;

/// What may be forgotten below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The TLV-VALUE of the prefix; all Data if it is empty.
    pub prefix: Vec<u8>,
    /// Data that was stored longer ago is deleted.
    pub age_ms_max: Option<u64>,
    /// Most bytes of names and records; the oldest Data beyond this is deleted.
    pub bytes_max: Option<u64>,
    /// Whether Data is deleted when its FreshnessPeriod is over.
    pub forgets_stale: bool,
}

impl Rule {
    fn is_over(&self, record: &Record<'_>, now_ms: u64) -> bool {
        self.age_ms_max.is_some_and(|max| record.stored_ms.saturating_add(max) < now_ms)
            || self.forgets_stale && !record.is_fresh(now_ms)
    }

    /// Finds what the rule forgets now, and calls `delete` with the names, some at a time, perhaps none.
    ///
    /// # Errors
    /// If the store has no order or fails, or `delete` fails.
    pub fn apply(
        &self,
        store: &dyn Store,
        now_ms: u64,
        delete: &mut dyn FnMut(Vec<Vec<u8>>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut ages = Ages::default();
        self.delete_where(store, delete, |name, record| {
            let is_over = self.is_over(&record, now_ms);
            if !is_over && self.bytes_max.is_some() {
                ages.add(record.stored_ms, (name.len() + record.encoded_len()) as u64);
            }
            is_over
        })?;
        let Some(before_ms) = self.bytes_max.and_then(|max| ages.cut(max)) else { return Ok(()) };
        self.delete_where(store, delete, |_, record| record.stored_ms < before_ms)
    }

    fn delete_where(
        &self,
        store: &dyn Store,
        delete: &mut dyn FnMut(Vec<Vec<u8>>) -> Result<(), StoreError>,
        mut is_over: impl FnMut(&[u8], Record<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let mut walk = Walk::new(store, &self.prefix);
        loop {
            let mut names = vec![];
            let goes_on = walk.go_on(|name, record| {
                if is_over(name, record) {
                    names.push(name.to_vec());
                }
                ControlFlow::Continue(())
            })?;
            delete(names)?;
            if !goes_on {
                return Ok(());
            }
        }
    }
}

/// Bytes by the time at which they were stored.
struct Ages {
    unit_ms: u64,
    bytes: BTreeMap<u64, u64>,
}

impl Default for Ages {
    fn default() -> Self {
        Ages { unit_ms: 1_000, bytes: BTreeMap::new() }
    }
}

impl Ages {
    fn add(&mut self, stored_ms: u64, bytes: u64) {
        *self.bytes.entry(stored_ms / self.unit_ms).or_default() += bytes;
        while self.bytes.len() > AGES_MAX {
            self.unit_ms *= 2;
            let mut joined = BTreeMap::new();
            for (time, bytes) in std::mem::take(&mut self.bytes) {
                *joined.entry(time / 2).or_default() += bytes;
            }
            self.bytes = joined;
        }
    }

    /// The time before which Data must go so that at most so many bytes remain; nothing if none must go.
    fn cut(&self, bytes_max: u64) -> Option<u64> {
        let mut kept = 0;
        let over = self.bytes.iter().rev().find(|(_, bytes)| {
            kept += **bytes;
            kept > bytes_max
        });
        over.map(|(time, _)| (time + 1) * self.unit_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Change;
    use crate::store::memory::MemoryStore;
    use proptest::prelude::*;

    fn name(prefix: u8, number: usize) -> Vec<u8> {
        [&[8, 1, prefix, 8, 2], &(number as u16).to_be_bytes()[..]].concat()
    }

    /// Data stored at these times below /a, with 88 bytes of content, and one old Data below /b.
    fn store(times_ms: &[u64]) -> MemoryStore {
        let store = MemoryStore::new(u64::MAX);
        let put = |name: &[u8], stored_ms| {
            let record = Record { stored_ms, freshness_ms: 5_000, wire: &[0; 88] }.encode();
            store.write(&[Change::Put { name, record: &record }]).unwrap();
        };
        times_ms.iter().enumerate().for_each(|(number, time)| put(&name(b'a', number), *time));
        put(&name(b'b', 0), 0);
        store
    }

    /// The times of what remains below /a.
    fn remaining(store: &MemoryStore, rule: &Rule, now_ms: u64) -> Vec<u64> {
        let delete = &mut |names: Vec<Vec<u8>>| {
            let changes: Vec<Change<'_>> = names.iter().map(|name| Change::Delete { name }).collect();
            assert_eq!(store.write(&changes)?.deleted, names.len() as u64);
            Ok(())
        };
        rule.apply(store, now_ms, delete).unwrap();
        let mut times = vec![];
        let visit = &mut |_: &[u8], record: Record<'_>| {
            times.push(record.stored_ms);
            ControlFlow::Continue(())
        };
        store.scan(&name(b'a', 0)[..3], None, visit).unwrap();
        let mut others = 0;
        store.get(&[&name(b'b', 0)], &mut |_, _| others += 1).unwrap();
        assert_eq!(others, 1, "what is not below the prefix stays");
        times
    }

    fn rule() -> Rule {
        Rule { prefix: vec![8, 1, b'a'], ..Rule::default() }
    }

    #[test]
    fn data_that_is_too_old_or_stale_is_deleted() {
        let times = [10_000, 30_000, 20_000];
        assert_eq!(remaining(&store(&times), &rule(), 90_000), times);
        let by_age = Rule { age_ms_max: Some(15_000), ..rule() };
        assert_eq!(remaining(&store(&times), &by_age, 25_001), [30_000, 20_000]);
        let stale = Rule { forgets_stale: true, ..rule() };
        assert_eq!(remaining(&store(&times), &stale, 25_000), [30_000]);
    }

    #[test]
    fn the_oldest_data_is_deleted_if_there_are_too_many_bytes() {
        // Each Data has 107 bytes.
        let times: Vec<u64> = (0..5_000).map(|number| number * 7_919 % 5_000 * 1_000).collect();
        let by_bytes = Rule { bytes_max: Some(107 * 100), ..rule() };
        let kept = remaining(&store(&times), &by_bytes, 0);
        let oldest = *kept.iter().min().unwrap();
        assert!((99..=100).contains(&kept.len()), "{}", kept.len());
        assert_eq!(times.iter().filter(|time| **time >= oldest).count(), kept.len(), "the newest are kept");
    }

    proptest! {
        #[test]
        fn the_bound_on_bytes_holds(times in proptest::collection::vec(0..100_000_000_u64, 0..300), records in 0..300_u64) {
            let by_bytes = Rule { bytes_max: Some(107 * records), ..rule() };
            let kept = remaining(&store(&times), &by_bytes, 0);
            prop_assert!(kept.len() as u64 <= records);
            prop_assert!(times.len() as u64 > records || kept.len() == times.len());
        }
    }
}
