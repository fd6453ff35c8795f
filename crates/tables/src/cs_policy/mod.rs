//! Content Store policies: which Data comes in, and which goes?
//!
//! Source: Takemasa19 §5.1 divides a cache algorithm into *eviction*, which says what
//! goes when Data comes in, and *admission*, which says what may come in; its blocks are
//! the calls of this seam. Any admission composes with any eviction.
//!
//! | Takemasa19, Figs. 5.1 and 5.2 | here |
//! | --- | --- |
//! | B2, history update: an Interest came | [`Eviction::request`], [`Admission::request`] |
//! | B4, it is answered from the store | [`Eviction::hit`] |
//! | B13, admission | [`Admission::admits`]; [`Eviction::admits`] of a policy that is both |
//! | B12, eviction | [`Eviction::victim`] |
//! | B10, insertion | [`Eviction::insert`] |
//!
//! A policy knows an entry by its *slot* and by the hash of its name; it never sees a name or a
//! Data. A slot is not below the entries that a policy is made for: what was evicted keeps its
//! slot until the batch ends, so no table may be as long as the entries and indexed by slot. What it keeps of an entry
//! should be that entry's [`PolicyMark`]: eight octets of a line that a hit reads anyway, so
//! that a policy which writes nothing else costs no line of its own.
//!
//! Who owns the marks is the store ([`Marks`]); the same policies run over the
//! [Content Store](crate::content_store) of the router and over the
//! [store without Data](simulated_store) of tests and experiments.
//!
//! Admission is asked only once the store is full: before, everything comes in.
//!
//! Limits: a policy is made for a number of entries and does not allocate after that, but to
//! grow ([`Eviction::grow`]). Who may write: the one worker that owns the store.

pub mod adaptive_window;
pub mod arc;
pub mod catalogue;
pub mod clock;
pub mod content_table;
pub mod fifo;
pub mod filter;
pub mod frequency_sketch;
pub mod ghost_queue;
pub mod ghost_table;
pub mod lfu;
pub mod lru;
mod miniature;
pub mod named_entry;
mod number_set;
pub mod priority_fifo;
pub mod random;
pub mod request_count;
pub mod request_history;
pub mod s3_fifo;
pub mod sieve;
pub mod simulated_store;
mod stale_heap;
pub mod tiny_lfu;
pub mod w_tiny_lfu;
mod window_sieve;

use std::io;

/// What a policy keeps in the entry itself. All zero in an entry that is new to the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PolicyMark {
    /// Where the policy has the entry: a place of a queue, an index of a table.
    pub place: u32,
    /// Uses, or one bit of use.
    pub uses: u8,
    /// In which of its lists the policy has the entry.
    pub list: u8,
    /// What else a policy needs.
    pub other: u16,
}

const _: () = assert!(size_of::<PolicyMark>() == 8);

/// The entries of a store, as a policy sees them. Every slot that a policy is asked about
/// or names is that of an entry that was inserted and not removed.
pub trait Marks {
    /// The mark of an entry.
    fn mark(&self, slot: u32) -> &PolicyMark;
    /// The mark of an entry, to be changed.
    fn mark_mut(&mut self, slot: u32) -> &mut PolicyMark;
    /// The hash of its name.
    fn hash(&self, slot: u32) -> u64;
    /// Begins to fetch the line of mark and hash.
    fn prefetch(&self, slot: u32);
}

/// From one hash to the next where nobody comes and a policy is asked who goes: it may look near the
/// newcomer's place. Odd, and as good as random: steps through all hashes.
pub(crate) const HASH_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Data that came and is not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newcomer {
    /// The hash of its name.
    pub hash: u64,
    /// What it adds to the account of the store.
    pub account_bytes: u64,
    /// Interests that it answers: 1 unless several had asked for it before it came.
    pub requests: u32,
    /// Nobody had asked for it.
    pub unsolicited: bool,
    /// It is fresh up to and including this time; 0 = never.
    pub fresh_until_ns: u64,
    /// When it came.
    pub now_ns: u64,
}

/// Why an entry leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It made room: a policy may remember it.
    Evicted,
    /// It was erased or replaced by other Data of its name.
    Erased,
}

/// Which entry goes next.
pub trait Eviction {
    /// B2: an Interest for this name came, whether it is stored or not.
    #[inline]
    fn request(&mut self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Eviction::request`] will write, and [`Eviction::insert`] if the
    /// name is not stored.
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Eviction::remove`] will write beside the marks, if the entry of
    /// this name goes.
    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        let _ = hash;
    }

    /// B4: the entry answered an Interest.
    fn hit(&mut self, marks: &mut impl Marks, slot: u32);

    /// Its Data came again, octet for octet, perhaps with another freshness.
    #[inline]
    fn refresh(&mut self, marks: &mut impl Marks, slot: u32, again: &Newcomer) {
        let _ = again;
        self.hit(marks, slot);
    }

    /// B13 of a policy that is both: whether the newcomer comes into a store that is full, asked
    /// with [`Admission::admits`].
    #[inline]
    fn admits(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> bool {
        let _ = (marks, newcomer);
        true
    }

    /// Said once of a newcomer that will be stored, before it is asked who must go for it.
    #[inline]
    fn arriving(&mut self, newcomer: &Newcomer) {
        let _ = newcomer;
    }

    /// B12: the entry that goes next if this newcomer comes in; `None` only if there is none.
    /// It stays until it is removed. Asked again with the same newcomer and nothing changed in
    /// between, the answer is the same.
    fn victim(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> Option<u32>;

    /// B10: the newcomer is stored in `slot`, whose mark is all zero. There is room for it.
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer);

    /// An entry of a former policy, which would have gone after all that were taken over before it; like
    /// [`Eviction::insert`] otherwise.
    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, stored: &Newcomer) {
        self.insert(marks, slot, stored);
    }

    /// The entry leaves; its mark means nothing from now on.
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: Leaving);

    /// Entries that will probably go next, the first first, at most `count`: for a batch that
    /// fetches them ahead. After them perhaps, at most as many again, others that are looked at
    /// on the way and stay, of which only the marks are needed. Nothing is promised, slots may
    /// be stale.
    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        let _ = (count, slots);
    }

    /// Room for `entries` at once, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then nothing has changed that matters.
    fn grow(&mut self, entries: u32) -> io::Result<()>;

    /// Octets of memory that were mapped for it; those of the marks are the store's.
    fn bytes(&self) -> usize;
}

/// What may come in.
pub trait Admission {
    /// B2: an Interest for this name came, whether it is stored or not.
    #[inline]
    fn request(&mut self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Admission::request`] will write and [`Admission::admits`] read.
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        let _ = hash;
    }

    /// Begins to fetch what [`Admission::admits`] will read of a victim of this name.
    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        let _ = hash;
    }

    /// The store is full with so many entries: octets may limit it, so that it never holds as many as it may. Said
    /// before each decision.
    #[inline]
    fn full_with(&mut self, held: u32) {
        let _ = held;
    }

    /// B13: whether Data comes into a store that is full. `victim_hash` finds the entry that
    /// would go for it, which may cost lines of memory: to be called only if it matters.
    fn admits(&mut self, newcomer: &Newcomer, victim_hash: impl FnOnce() -> Option<u64>) -> bool;

    /// Follows the number of entries that the store may hold.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then nothing has changed that matters.
    fn grow(&mut self, entries: u32) -> io::Result<()>;

    /// Octets of memory that were mapped for it.
    fn bytes(&self) -> usize;
}

/// Everything comes in.
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
