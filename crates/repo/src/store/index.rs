//! Index: how a store that uses a database finds names; and an index in memory, in canonical order.
//!
//! Source: Yuan15 §6.2.1. Repo-ng kept all names in memory, and used integers as the keys of SQLite or Redis. The
//! dissertation removed this index to measure what it costs.
//!
//! Cost of [`NameIndex`]: a search in a B-tree. Memory: the bytes of names and some 60 bytes for each.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How a store over a database finds names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// The database has them in canonical order.
    #[default]
    Stored,
    /// All names are in the memory of this process, which reads them at the start.
    Memory,
    /// There is no order of names.
    None,
}

impl Index {
    /// Its name in configuration and in stores.
    pub fn name(self) -> &'static str {
        match self {
            Index::Stored => "stored",
            Index::Memory => "memory",
            Index::None => "none",
        }
    }
}

/// Names in memory in canonical order, each with where its record is.
#[derive(Debug)]
pub(super) struct NameIndex<T> {
    names: RwLock<BTreeMap<Box<[u8]>, T>>,
}

impl<T: Copy> NameIndex<T> {
    pub(super) fn new(names: BTreeMap<Box<[u8]>, T>) -> Self {
        NameIndex { names: RwLock::new(names) }
    }

    /// Where the record of a name is.
    pub(super) fn get(&self, name: &[u8]) -> Option<T> {
        self.read().get(name).copied()
    }

    /// Where the records of these names are.
    pub(super) fn places(&self, names: &[&[u8]]) -> Vec<Option<T>> {
        let all = self.read();
        names.iter().map(|name| all.get(*name).copied()).collect()
    }

    /// The first names that begin with `prefix` and come after `after`.
    pub(super) fn page(&self, prefix: &[u8], after: Option<&[u8]>, names_max: usize) -> Vec<Box<[u8]>> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let all = self.read();
        let below = all.range::<[u8], _>((from, Bound::Unbounded)).map(|(name, _)| name);
        below.take_while(|name| name.starts_with(prefix)).take(names_max).cloned().collect()
    }

    /// Does changes in their order: a place for a name, or none.
    pub(super) fn apply<'a>(&self, changes: impl Iterator<Item = (&'a [u8], Option<T>)>) {
        let mut names = self.lock();
        for (name, place) in changes {
            match place {
                Some(place) => match names.get_mut(name) {
                    Some(before) => *before = place,
                    None => drop(names.insert(name.into(), place)),
                },
                None => drop(names.remove(name)),
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, T>> {
        // Nothing panics while the lock is held.
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, T>> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }
}
