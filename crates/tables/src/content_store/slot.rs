//! Slot: what the store keeps of one Data in addition to its bytes, in one cache line.
//!
//! ```text
//! slot, 64 bytes, one line:
//!  0      8      16            24        28        32       36      40            56        60            61 64
//!  | hash | mark | fresh until | account | Data at | bytes | group | indirect ×4 | evicted | unsolicited | 0 |
//! ```
//!
//! A [policy](crate::cs_policy) knows an entry by `hash` and `mark`. A hit, a comparison of victims and an
//! eviction find both in the line that they read anyway.

use crate::cs_policy::{Marks, PolicyMark};
use crate::slab::{NIL, Slab};
use std::mem::offset_of;

/// Other names that one Data can be found under.
pub const MAX_INDIRECT: usize = 4;

/// What the store keeps of one Data.
#[repr(C, align(64))]
pub struct CsSlot {
    /// The hash of its own name.
    pub(super) hash: u64,
    /// What the policy keeps of it.
    pub(super) mark: PolicyMark,
    pub(super) fresh_until_ns: u64,
    /// What this entry adds to the account.
    pub(super) account_bytes: u32,
    pub(super) data_at: u32,
    pub(super) data_bytes: u32,
    /// The group of its own name; `NIL` = evicted or not in use.
    pub(super) group: u32,
    /// Groups of indirect names, oldest first, then `NIL`.
    pub(super) indirect: [u32; MAX_INDIRECT],
    /// If evicted: the entry evicted before it (see `places.rs`).
    pub(super) evicted_before: u32,
    pub(super) unsolicited: bool,
}

const _: () = assert!(size_of::<CsSlot>() == 64);
const _: () = assert!(offset_of!(CsSlot, hash) == 0 && offset_of!(CsSlot, mark) == 8);
const _: () = assert!(offset_of!(CsSlot, indirect) == 40 && offset_of!(CsSlot, unsolicited) == 60);

impl Default for CsSlot {
    fn default() -> Self {
        Self {
            hash: 0,
            mark: PolicyMark::default(),
            fresh_until_ns: 0,
            account_bytes: 0,
            data_at: 0,
            data_bytes: 0,
            group: NIL,
            indirect: [NIL; MAX_INDIRECT],
            evicted_before: NIL,
            unsolicited: false,
        }
    }
}

impl CsSlot {
    pub(super) fn indirect_len(&self) -> usize {
        self.indirect.iter().filter(|&&group| group != NIL).count()
    }
}

impl Marks for Slab<CsSlot> {
    #[inline]
    fn mark(&self, slot: u32) -> &PolicyMark {
        &self.get(slot).mark
    }

    #[inline]
    fn mark_mut(&mut self, slot: u32) -> &mut PolicyMark {
        &mut self.get_mut(slot).mark
    }

    #[inline]
    fn hash(&self, slot: u32) -> u64 {
        self.get(slot).hash
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        Slab::prefetch(self, slot);
    }
}
