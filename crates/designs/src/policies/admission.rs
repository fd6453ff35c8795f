//! Admission: decides what may come into a full store.
//!
//! Source: Takemasa19 §5.1, block B13. Any admission works with any eviction.

use namewire_tables::cs_policy::Newcomer;
use std::io;

/// Decides which Data may come in.
pub trait Admission {
    /// B2: an Interest for this name arrived, whether it is stored or not.
    #[inline]
    fn request(&mut self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Admission::request`] will write and [`Admission::admits`] will read.
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Admission::admits`] will read of a victim of this name.
    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        let _ = hash;
    }

    /// The store is full with `held` entries. Bytes may limit it, so it may never hold its most entries.
    /// Called before each decision.
    #[inline]
    fn full_with(&mut self, held: u32) {
        let _ = held;
    }

    /// B13: whether a full store admits Data. `victim_hash` finds the entry that would be evicted for it, which
    /// may cost lines of memory: call it only if it matters.
    fn admits(&mut self, newcomer: &Newcomer, victim_hash: impl FnOnce() -> Option<u64>) -> bool;

    /// Follows the number of entries that the store may hold.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the admission works as before.
    fn grow(&mut self, entries: u32) -> io::Result<()>;

    /// Bytes of memory mapped for the admission.
    fn bytes(&self) -> usize;
}

/// Everything is admitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    #[inline]
    fn admits(&mut self, _: &Newcomer, _: impl FnOnce() -> Option<u64>) -> bool {
        true
    }

    fn grow(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }
}
