//! The store's policy: which one is in force, and how a call reaches it.
//!
//! The four policies of this crate are called statically: each call costs one branch, always taken the same
//! way. Any other policy is a [`BoxedPolicy`] that a [`PolicyDesign`] makes. Each call of its trait is one
//! dynamic call. It sees the entries directly ([`StoreMarks`]), so the policy reads and writes marks
//! without dynamic calls.

use super::slot::CsSlot;
use crate::cs_policy::adaptive_window::AdaptiveWindow;
use crate::cs_policy::priority_fifo::PriorityFifo;
use crate::cs_policy::queue::{Fifo, Lru};
use crate::cs_policy::{Eviction, HASH_STEP, Marks, Newcomer, PolicyMark, RemovalReason};
use crate::pages::PageSize;
use crate::slab::Slab;
use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// The entries of a Content Store.
pub type StoreMarks = Slab<CsSlot>;

/// Which Data is evicted when the Content Store is full, and which is stored.
#[derive(Clone, Debug, Default)]
pub enum CsPolicy {
    /// Evicts the Data that was stored first.
    Fifo,
    /// Evicts the least recently used Data.
    Lru,
    /// NFD's `priority_fifo`: evicts unsolicited Data first, then stale Data, then the oldest.
    PriorityFifo,
    /// A window and SIEVE; the window has the size that does best. It may refuse a newcomer itself.
    #[default]
    AdaptiveWindow,
    /// A policy of another crate.
    Other(Arc<dyn PolicyDesign>),
}

/// The names of a policy in configuration and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyName {
    /// The eviction's name.
    pub eviction: &'static str,
    /// The admission's name.
    pub admission: &'static str,
}

/// A policy that is not one of this crate's, with its options.
pub trait PolicyDesign: Any + Debug + Send + Sync {
    /// Its names.
    fn name(&self) -> PolicyName;

    /// Makes one for this number of entries; `seed` is for random choices.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    fn build(&self, entries: u32, seed: u64, pages: PageSize) -> io::Result<Box<dyn BoxedPolicy>>;

    /// Whether a store with the other policy would do the same.
    fn is_same(&self, other: &dyn PolicyDesign) -> bool;
}

/// An [`Eviction`] behind a pointer, with its admission; each call passes on to it.
#[allow(missing_docs, reason = "the calls are those of `Eviction`")]
pub trait BoxedPolicy: Send {
    fn request(&mut self, hash: u64);
    fn prefetch_request(&self, hash: u64);
    fn prefetch_victim(&self, hash: u64);
    fn hit(&mut self, marks: &mut StoreMarks, slot: u32);
    fn refresh(&mut self, marks: &mut StoreMarks, slot: u32, again: &Newcomer);
    fn admits(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> bool;
    fn arriving(&mut self, newcomer: &Newcomer);
    fn victim(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> Option<u32>;
    fn evict(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> Option<u32> {
        let victim = self.victim(marks, newcomer)?;
        self.remove(marks, victim, RemovalReason::Evicted);
        Some(victim)
    }
    fn insert(&mut self, marks: &mut StoreMarks, slot: u32, newcomer: &Newcomer);
    fn take_over(&mut self, marks: &mut StoreMarks, slot: u32, stored: &Newcomer);
    fn remove(&mut self, marks: &mut StoreMarks, slot: u32, why: RemovalReason);
    fn upcoming(&self, count: usize, slots: &mut Vec<u32>);
    /// # Errors
    /// If the kernel does not map the memory.
    fn grow(&mut self, entries: u32) -> io::Result<()>;
    fn bytes(&self) -> usize;
}

impl CsPolicy {
    /// Its names.
    pub fn name(&self) -> PolicyName {
        let eviction = match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::PriorityFifo => "priority-fifo",
            Self::AdaptiveWindow => "adaptive-window",
            Self::Other(design) => return design.name(),
        };
        PolicyName { eviction, admission: "all" }
    }
}

impl PartialEq for CsPolicy {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Other(design), Self::Other(other)) => design.is_same(&**other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The policy at work.
pub(super) struct PolicyInForce {
    choice: CsPolicy,
    policy: AnyPolicy,
    /// Whether the policy may learn from a request. FIFO, LRU and priority FIFO do not: then an Interest costs them one
    /// comparison, where the call cost 28 instructions.
    counts_requests: bool,
}

/// N.B. With a tag of its own: where a bool of one policy said which policy it is, each call took 4 instructions more.
#[repr(u8)]
enum AnyPolicy {
    AdaptiveWindow(Box<AdaptiveWindow>),
    Fifo(Fifo),
    Lru(Lru),
    PriorityFifo(PriorityFifo),
    Boxed(Box<dyn BoxedPolicy>),
}

macro_rules! call {
    ($any:expr, $policy:ident => $call:expr) => {
        match $any {
            AnyPolicy::AdaptiveWindow($policy) => $call,
            AnyPolicy::Fifo($policy) => $call,
            AnyPolicy::Lru($policy) => $call,
            AnyPolicy::PriorityFifo($policy) => $call,
            AnyPolicy::Boxed($policy) => $call,
        }
    };
}

impl PolicyInForce {
    /// Makes the policy for this number of entries.
    pub(super) fn new(choice: CsPolicy, entries: u32, seed: u64, pages: PageSize) -> io::Result<Self> {
        let policy = match &choice {
            CsPolicy::Fifo => AnyPolicy::Fifo(Fifo::new(entries, pages)?),
            CsPolicy::Lru => AnyPolicy::Lru(Lru::new(entries, pages)?),
            CsPolicy::PriorityFifo => AnyPolicy::PriorityFifo(PriorityFifo::new(entries, pages)?),
            CsPolicy::AdaptiveWindow => AnyPolicy::AdaptiveWindow(Box::new(AdaptiveWindow::new(entries, pages)?)),
            CsPolicy::Other(design) => AnyPolicy::Boxed(design.build(entries, seed, pages)?),
        };
        let counts_requests = matches!(policy, AnyPolicy::AdaptiveWindow(_) | AnyPolicy::Boxed(_));
        Ok(Self { choice, policy, counts_requests })
    }

    pub(super) fn choice(&self) -> &CsPolicy {
        &self.choice
    }

    #[inline(always)]
    pub(super) fn counts_requests(&self) -> bool {
        self.counts_requests
    }

    #[inline(always)]
    pub(super) fn request(&mut self, hash: u64) {
        if self.counts_requests {
            self.count_request(hash);
        }
    }

    #[inline(never)]
    fn count_request(&mut self, hash: u64) {
        call!(&mut self.policy, policy => policy.request(hash));
    }

    #[inline(always)]
    pub(super) fn prefetch_request(&self, hash: u64) {
        if self.counts_requests {
            call!(&self.policy, policy => policy.prefetch_request(hash));
        }
    }

    #[inline]
    pub(super) fn prefetch_victim(&self, hash: u64) {
        call!(&self.policy, policy => policy.prefetch_victim(hash));
    }

    #[inline(always)]
    pub(super) fn hit(&mut self, marks: &mut StoreMarks, slot: u32) {
        call!(&mut self.policy, policy => policy.hit(marks, slot));
    }

    #[inline]
    pub(super) fn refresh(&mut self, marks: &mut StoreMarks, slot: u32, again: &Newcomer) {
        call!(&mut self.policy, policy => policy.refresh(marks, slot, again));
    }

    #[inline(always)]
    pub(super) fn admits(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> bool {
        call!(&mut self.policy, policy => policy.admits(marks, newcomer))
    }

    #[inline]
    pub(super) fn arriving(&mut self, newcomer: &Newcomer) {
        call!(&mut self.policy, policy => policy.arriving(newcomer));
    }

    fn victim(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> Option<u32> {
        call!(&mut self.policy, policy => policy.victim(marks, newcomer))
    }

    #[inline(always)]
    pub(super) fn evict(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> Option<u32> {
        call!(&mut self.policy, policy => policy.evict(marks, newcomer))
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, marks: &mut StoreMarks, slot: u32, newcomer: &Newcomer) {
        call!(&mut self.policy, policy => policy.insert(marks, slot, newcomer));
    }

    #[inline]
    pub(super) fn remove(&mut self, marks: &mut StoreMarks, slot: u32, why: RemovalReason) {
        call!(&mut self.policy, policy => policy.remove(marks, slot, why));
    }

    /// Takes over all entries of a former policy, in the order in which it would have evicted them at
    /// `now_ns`. `stored` gives what is known of an entry.
    pub(super) fn take_over(
        &mut self,
        mut former: Self,
        marks: &mut StoreMarks,
        now_ns: u64,
        stored: impl Fn(&StoreMarks, u32) -> Newcomer,
    ) {
        let mut no_newcomer = Newcomer { now_ns, ..Newcomer::default() };
        while let Some(slot) = former.victim(marks, &no_newcomer) {
            former.remove(marks, slot, RemovalReason::Erased);
            *marks.mark_mut(slot) = PolicyMark::default();
            let stored = stored(marks, slot);
            call!(&mut self.policy, policy => policy.take_over(marks, slot, &stored));
            no_newcomer.hash = no_newcomer.hash.wrapping_add(HASH_STEP);
        }
    }

    pub(super) fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        call!(&self.policy, policy => policy.upcoming(count, slots));
    }

    pub(super) fn grow(&mut self, entries: u32) -> io::Result<()> {
        call!(&mut self.policy, policy => policy.grow(entries))
    }

    pub(super) fn bytes(&self) -> usize {
        call!(&self.policy, policy => policy.bytes())
    }
}
