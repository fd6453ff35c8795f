//! Content Store policies: which Data is stored, and which is evicted?
//!
//! Source: Takemasa19 §5.1 divides a cache algorithm into two parts. *Admission* decides which Data may be
//! stored. *Eviction* decides which Data is then evicted. The paper's blocks are the calls of the traits in
//! this module. Any admission works with any eviction.
//!
//! | Takemasa19, Figs. 5.1 and 5.2 | here |
//! | --- | --- |
//! | B2, history update: an Interest came | [`Eviction::request`] |
//! | B4, it is answered from the store | [`Eviction::hit`] |
//! | B13, admission | [`Eviction::admits`] |
//! | B12, eviction | [`Eviction::victim`] |
//! | B10, insertion | [`Eviction::insert`] |
//!
//! A policy knows an entry by its *slot* and by the hash of its name; it never sees a name or a Data. Slot
//! numbers can exceed the number of entries that a policy is made for, because evicted Data keeps its slot
//! until the batch ends. So do not index a table of that length by slot. A policy should keep what it knows
//! of an entry in the entry's [`PolicyMark`]: eight bytes of a line that a hit reads anyway. A policy that
//! writes nothing else costs no further line.
//!
//! The store owns the marks ([`Marks`]). The same policies run over the router's [Content
//! Store](crate::content_store), and over the store without Data that tests and experiments use
//! (`crates/designs/src/policies/simulated_store.rs`).
//!
//! The store asks the admission only once it is full: before that, it stores everything. A policy that
//! overrides [`Eviction::admits`] must be listed in `may_refuse` of
//! `crates/designs/tests/oracles/cs_policy.rs`.
//!
//! Limits: a policy is made for a number of entries. After that it allocates only to grow
//! ([`Eviction::grow`]). `crates/designs/tests/no_allocation.rs` checks this for every policy. In that test
//! a policy must admit more than 100 of 19,000 newcomers, each requested up to four times just before. In a
//! whole store it must also evict more than 100 Data, and more than 10,000 where the admission is `all`.
//! Writers: the worker that owns the store.

pub mod adaptive_window;
pub mod frequency_sketch;
mod miniature;
pub mod named_entry;
pub mod priority_fifo;
pub mod queue;
mod stale_heap;
mod window_sieve;

use std::io;

/// What a policy keeps in the entry itself. All zero in an entry that the policy has not seen yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PolicyMark {
    /// The entry's place in the policy: in a queue, or in a table.
    pub place: u32,
    /// Uses, or one bit that says whether it was used.
    pub uses: u8,
    /// The policy's list that has the entry.
    pub list: u8,
    /// What else a policy needs.
    pub other: u16,
}

const _: () = assert!(size_of::<PolicyMark>() == 8);

/// The entries of a store, as a policy sees them. Every slot that a policy is given or returns holds an
/// entry that was inserted and not removed.
pub trait Marks {
    /// The mark of an entry.
    fn mark(&self, slot: u32) -> &PolicyMark;
    /// The mark of an entry, to change.
    fn mark_mut(&mut self, slot: u32) -> &mut PolicyMark;
    /// The hash of its name.
    fn hash(&self, slot: u32) -> u64;
    /// Begins to fetch the line of mark and hash.
    fn prefetch(&self, slot: u32);
}

/// The step from one hash to the next when a victim is asked for without a newcomer: a policy may look near
/// the newcomer's place. It is odd and irregular, so the steps visit all hashes.
pub const HASH_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The most second chances given for one victim; the entry after them is evicted although it was used. A
/// hit pays for each second chance, but all could fall due at once. If a consumer asked for everything
/// stored, and then for something else, the router would stop for a walk through the whole store. With this
/// limit, a store that was used throughout loses 1 entry in 65 wrongly. No packet pays for more than the
/// victims of a batch cost together anyway.
///
/// N.B. A throw-away simulation (2 · 10⁶ Zipf requests, exponents 0.8, 0.9 and 1.1, stores of 1 to 50 % of
/// the names) saw at most 34 second chances for one victim of CLOCK, 7 of SIEVE and 474 of S3-FIFO. The
/// limit took nothing from the hit ratios of the first two and 0.0001 from the third.
pub const MAX_SECOND_CHANCES: usize = 64;

/// Data that arrived and is not stored yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newcomer {
    /// The hash of its name.
    pub hash: u64,
    /// What it would add to the account of the store.
    pub account_bytes: u64,
    /// Interests that it answers: 1 unless several asked for it before it came.
    pub requests: u32,
    /// It is unsolicited: no pending Interest asked for it.
    pub unsolicited: bool,
    /// It is fresh up to and including this time; 0 = never.
    pub fresh_until_ns: u64,
    /// When it came.
    pub now_ns: u64,
}

/// Why an entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// It was evicted to make room: a policy may remember it.
    Evicted,
    /// It was erased or replaced by other Data of its name.
    Erased,
}

/// Decides which entry is evicted next.
pub trait Eviction {
    /// B2: an Interest for this name came, whether it is stored or not.
    #[inline]
    fn request(&mut self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Eviction::request`] will write, and what [`Eviction::insert`] will write if
    /// the name is not stored.
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Eviction::remove`] will write beside the marks, if the entry of this name is
    /// removed.
    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        let _ = hash;
    }

    /// B4: the entry answered an Interest.
    fn hit(&mut self, marks: &mut impl Marks, slot: u32);

    /// Its Data came again, byte for byte, perhaps with another freshness.
    #[inline]
    fn refresh(&mut self, marks: &mut impl Marks, slot: u32, again: &Newcomer) {
        let _ = again;
        self.hit(marks, slot);
    }

    /// B13, for a policy that is both eviction and admission: whether a full store stores the newcomer.
    /// Asked in addition to the admission.
    #[inline]
    fn admits(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> bool {
        let _ = (marks, newcomer);
        true
    }

    /// Called once for a newcomer that will be stored, before the policy is asked for victims.
    #[inline]
    fn arriving(&mut self, newcomer: &Newcomer) {
        let _ = newcomer;
    }

    /// B12: the entry to evict next if this newcomer is stored; `None` only if there is no entry. The entry
    /// stays until it is removed. If nothing changed in between, the same newcomer gets the same answer.
    fn victim(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> Option<u32>;

    /// [`Eviction::victim`], and removes it as evicted.
    #[inline]
    fn evict(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        let victim = self.victim(marks, newcomer)?;
        self.remove(marks, victim, RemovalReason::Evicted);
        Some(victim)
    }

    /// B10: the newcomer is stored in `slot`, whose mark is all zero. There is room for it.
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer);

    /// Takes over an entry of a former policy; the former policy would have evicted it after all entries
    /// taken over before. Otherwise like [`Eviction::insert`].
    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, stored: &Newcomer) {
        self.insert(marks, slot, stored);
    }

    /// The entry is removed; its mark means nothing from now on.
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: RemovalReason);

    /// At most `count` entries that will probably be evicted next, in this order, for a batch that
    /// prefetches them. At most as many again may follow: entries that the policy looks at on the way and
    /// keeps, needed for their marks only. Nothing is promised; slots may be stale.
    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        let _ = (count, slots);
    }

    /// Makes room for `entries`, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the policy works as before.
    fn grow(&mut self, entries: u32) -> io::Result<()>;

    /// Bytes of memory mapped for the policy; the store counts the marks.
    fn bytes(&self) -> usize;
}
