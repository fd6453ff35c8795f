//! Memory: a store without a disk, for tests and for repositories that may forget.
//!
//! Memory: the bytes of names and records, and some 100 bytes for each.

use super::{Change, Record, Store, StoreError, Usage, Written};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Records = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// Data in memory, in canonical order.
#[derive(Debug)]
pub struct MemoryStore {
    inner: RwLock<Inner>,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Inner {
    records: Records,
    bytes: u64,
    notes: Records,
}

impl MemoryStore {
    /// An empty store that keeps at most so many bytes of names and records.
    pub fn new(bytes_max: u64) -> Self {
        MemoryStore { inner: RwLock::default(), bytes_max }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        // Nothing panics while the lock is held.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode<'a>(record: &'a [u8]) -> Result<Record<'a>, StoreError> {
    Record::decode(record).ok_or_else(|| StoreError::Damaged("a record is too short".to_owned()))
}

impl Store for MemoryStore {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
        let inner = self.read();
        for (place, name) in names.iter().enumerate() {
            if let Some(record) = inner.records.get(*name) {
                found(place, decode(record)?);
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let inner = self.read();
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let below = inner.records.range::<[u8], _>((from, Bound::Unbounded));
        for (name, record) in below.take_while(|(name, _)| name.starts_with(prefix)) {
            if visit(name, decode(record)?).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
        let mut inner = self.lock();
        let grows = |change: &Change<'_>| match change {
            Change::Put { name, record } => (name.len() + record.len()) as u64,
            Change::Delete { .. } | Change::Note { .. } => 0,
        };
        let more: u64 = changes.iter().map(grows).sum();
        if more > 0 && inner.bytes + more > self.bytes_max {
            return Err(StoreError::Full(format!("it holds {} of {} bytes", inner.bytes, self.bytes_max)));
        }
        let mut written = Written::default();
        for change in changes {
            let (name, before) = match *change {
                Change::Put { name, record } => {
                    inner.bytes += (name.len() + record.len()) as u64;
                    (name, inner.records.insert(name.into(), record.into()))
                }
                Change::Delete { name } => (name, inner.records.remove(name)),
                Change::Note { key, note } => {
                    match note {
                        Some(note) => inner.notes.insert(key.into(), note.into()),
                        None => inner.notes.remove(key),
                    };
                    continue;
                }
            };
            inner.bytes -= before.as_ref().map_or(0, |record| (name.len() + record.len()) as u64);
            match (change, before.is_some()) {
                (Change::Put { .. }, false) => written.added += 1,
                (Change::Put { .. }, true) => written.replaced += 1,
                (_, is_stored) => written.deleted += u64::from(is_stored),
            }
        }
        Ok(written)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let inner = self.read();
        Ok(Usage { records: inner.records.len() as u64, bytes: inner.bytes })
    }

    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.read().notes.iter().for_each(|(key, note)| visit(key, note));
        Ok(())
    }
}
