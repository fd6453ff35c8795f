//! Counts the segments of an object that come again: how much does a fetch receive twice?
//!
//! Data that no pending Interest asked for is dropped by the face. If a fetch of its object runs, the face counts it
//! for that fetch: each segment that is asked for has an Interest pending until it has come.
//!
//! Cost: one look-up for each Data that is dropped. Limit: of two fetches of one version over one connection, the later
//! one counts.

use namewire_packet::{Data, NameBuf};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

#[derive(Default)]
struct Counters {
    segments: AtomicU64,
    bytes: AtomicU64,
}

/// The counters of one fetch.
pub(crate) struct Repeats {
    versioned_name: NameBuf,
    counters: Arc<Counters>,
}

impl Repeats {
    pub(crate) fn of(versioned_name: &NameBuf) -> Self {
        Repeats { versioned_name: versioned_name.clone(), counters: Arc::default() }
    }

    /// Segments and bytes of content so far.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.counters.segments.load(Relaxed), self.counters.bytes.load(Relaxed))
    }
}

/// The fetches that a face counts for, by the name of the object.
#[derive(Default)]
pub(crate) struct Fetches(HashMap<Box<[u8]>, Weak<Counters>>);

impl Fetches {
    /// Counts for this fetch too, until it ends.
    pub(crate) fn add(&mut self, repeats: &Repeats) {
        self.0.retain(|_, counters| counters.strong_count() > 0);
        self.0.insert(repeats.versioned_name.value().into(), Arc::downgrade(&repeats.counters));
    }

    /// Counts a packet that is dropped.
    pub(crate) fn count(&self, dropped: &Data<'_>) {
        let counters = self.0.get(dropped.name().parent().value()).and_then(Weak::upgrade);
        if let Some(counters) = counters {
            counters.segments.fetch_add(1, Relaxed);
            counters.bytes.fetch_add(dropped.content().len() as u64, Relaxed);
        }
    }
}
