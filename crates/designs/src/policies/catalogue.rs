//! Catalogue: the Content Store policies, their names, and how each is made.
//!
//! The names are those of configuration (`cs.policy`, `cs.admission`) and of the lab's records.
//! [`CachePolicy`] is one admission and one eviction, chosen at run time: each call is a branch that is
//! always taken the same way.
//!
//! To add a policy (of a paper, trivial or new; an admission has the same places under its own names):
//!
//! 1. its module: a file in this folder, which implements [`Eviction`] or [`Admission`], and `pub mod` in `mod.rs`;
//! 2. a variant of [`EvictionName`] with its name in configuration; `ALL` and the look-up by name follow from it;
//! 3. a variant of `AnyEviction`, an arm of the macro `eviction!` and an arm of [`CachePolicy::new`];
//! 4. for options, a field of [`PolicyOptions`] and a line of [`PolicyChoice::in_effect`], and the settings in
//!    `crates/configuration/src/settings/cs.rs`;
//! 5. a test module `cs_….rs` in `crates/designs/tests/oracles`, with its `mod` line in `main.rs` there: it gives
//!    `equals_the_model` of `cs_policy.rs` a naive model of the policy;
//! 6. rows in the tables of `docs/content-store.md`, and a line in `CHANGELOG.md`.
//!
//! Through `ALL` a policy takes part, without further lines, in:
//!
//! - the rules of `tests/oracles/cs_policy.rs`, and the oracles `pit_cs.rs` and `cs_prefix_index.rs` there;
//! - the tests of `tests/no_allocation.rs`, and an eviction in those of `crates/router/tests/node/content_store.rs`;
//! - the fuzz targets `pit_cs_operations` and `prefix_index_operations`;
//! - the lab's experiment `cache-policies`, if it is an eviction.
//!
//! These need a line:
//!
//! - an eviction that itself refuses newcomers: `may_refuse` of `cs_policy.rs`, and `has_its_own_mind` in
//!   `crates/router/tests/node/content_store.rs`;
//! - an eviction that keeps the order of entries it takes over: `eviction_order_is_kept_after_a_change` of
//!   `cs_policy.rs`;
//! - an admission that the lab is to measure: `BEHIND` in `lab/src/experiments/cache_policies/contestant.rs`.

use super::admission::{Admission, AdmitAll};
use super::arc::Arc;
use super::clock::Clock;
use super::content_table::{ContentTable, LastUse, Uses};
use super::filter::{Filter, FilterOptions};
use super::lfu::{Lfu, WhileStored};
use super::random::Random;
use super::request_count::{RequestCount, RequestCountOptions};
use super::request_history::{RequestHistory, RequestHistoryOptions};
use super::s3_fifo::S3Fifo;
use super::sieve::Sieve;
use super::tiny_lfu::{TinyLfu, TinyLfuOptions};
use super::w_tiny_lfu::{WTinyLfu, WTinyLfuOptions};
use namewire_tables::content_store::policy::{BoxedPolicy, CsPolicy, PolicyDesign, PolicyName, StoreMarks};
use namewire_tables::cs_policy::adaptive_window::AdaptiveWindow;
use namewire_tables::cs_policy::priority_fifo::PriorityFifo;
use namewire_tables::cs_policy::queue::{Fifo, Lru};
use namewire_tables::cs_policy::{Eviction, HASH_STEP, Marks, Newcomer, PolicyMark, RemovalReason};
use namewire_tables::pages::PageSize;
use std::any::Any;
use std::io;
use std::str::FromStr;

namewire_packet::names! {
    /// Which Data is evicted when the Content Store is full.
    #[derive(Default)]
    pub enum EvictionName {
        /// The first that was stored.
        Fifo = "fifo",
        /// The least recently used.
        Lru = "lru",
        /// A random one.
        Random = "random",
        /// The first that was stored, unless it was used since the hand last passed it.
        Clock = "clock",
        /// Data used less than twice while it was new; of the others, as CLOCK with counts.
        S3Fifo = "s3-fifo",
        /// As CLOCK, but entries that the hand passes keep their place.
        Sieve = "sieve",
        /// The less frequent of a window's victim and the main part's; the window is that of the best trial.
        WTinyLfu = "w-tiny-lfu",
        /// A window and SIEVE; the window has the size that does best. It may refuse a newcomer itself.
        #[default]
        AdaptiveWindow = "adaptive-window",
        /// NFD's `priority_fifo`: unsolicited Data, then stale Data, then the oldest.
        PriorityFifo = "priority-fifo",
        /// The least frequently used while stored.
        Lfu = "lfu",
        /// The least frequently requested, stored or not.
        PerfectLfu = "perfect-lfu",
        /// From entries used once or entries used again; names that return set the proportion.
        Arc = "arc",
        /// The least recently used in a newcomer's buckets.
        ContentTableLru = "content-table-lru",
        /// The least frequently used in a newcomer's buckets.
        ContentTableLfu = "content-table-lfu",
    }
}

namewire_packet::names! {
    /// Which Data is admitted when the Content Store is full.
    #[derive(Default)]
    pub enum AdmissionName {
        /// Everything.
        #[default]
        All = "all",
        /// Data requested often enough among the last Interests.
        Filter = "filter",
        /// Data requested more often than the victim.
        TinyLfu = "tiny-lfu",
        /// Data that several Interests waited for.
        RequestCount = "request-count",
    }
}

/// There is no policy of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy is called {0:?}")]
pub struct UnknownPolicy(pub String);

impl FromStr for EvictionName {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::find(name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl FromStr for AdmissionName {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::find(name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// The options of a policy; defaults are in the policy's module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyOptions {
    /// For [`AdmissionName::Filter`].
    pub filter: FilterOptions,
    /// For [`AdmissionName::TinyLfu`].
    pub tiny_lfu: TinyLfuOptions,
    /// For [`AdmissionName::RequestCount`].
    pub request_count: RequestCountOptions,
    /// For [`EvictionName::WTinyLfu`].
    pub w_tiny_lfu: WTinyLfuOptions,
    /// For [`EvictionName::PerfectLfu`]; not in configuration, because it is for the lab's models.
    pub perfect_lfu: RequestHistoryOptions,
}

/// A policy by name: an eviction and an admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyChoice {
    /// The eviction.
    pub eviction: EvictionName,
    /// The admission.
    pub admission: AdmissionName,
    /// The options of both.
    pub options: PolicyOptions,
}

impl PolicyChoice {
    /// The same choice without the options of policies that are not chosen.
    pub fn in_effect(self) -> Self {
        let Self { eviction, admission, options } = self;
        let mut used = PolicyOptions::default();
        match admission {
            AdmissionName::Filter => used.filter = options.filter,
            AdmissionName::TinyLfu => used.tiny_lfu = options.tiny_lfu,
            AdmissionName::RequestCount => used.request_count = options.request_count,
            AdmissionName::All => {}
        }
        if eviction == EvictionName::WTinyLfu {
            used.w_tiny_lfu = options.w_tiny_lfu;
        }
        if eviction == EvictionName::PerfectLfu {
            used.perfect_lfu = options.perfect_lfu;
        }
        Self { eviction, admission, options: used }
    }
}

/// This eviction, with an admission that admits everything.
impl From<EvictionName> for PolicyChoice {
    fn from(eviction: EvictionName) -> Self {
        Self { eviction, ..Self::default() }
    }
}

/// For the policies that `namewire_tables` has itself, this gives their names, so that no call is dynamic.
impl From<PolicyChoice> for CsPolicy {
    fn from(choice: PolicyChoice) -> Self {
        match (choice.eviction, choice.admission) {
            (EvictionName::Fifo, AdmissionName::All) => Self::Fifo,
            (EvictionName::Lru, AdmissionName::All) => Self::Lru,
            (EvictionName::PriorityFifo, AdmissionName::All) => Self::PriorityFifo,
            (EvictionName::AdaptiveWindow, AdmissionName::All) => Self::AdaptiveWindow,
            _ => Self::Other(std::sync::Arc::new(choice)),
        }
    }
}

impl From<EvictionName> for CsPolicy {
    fn from(eviction: EvictionName) -> Self {
        PolicyChoice::from(eviction).into()
    }
}

impl PolicyDesign for PolicyChoice {
    fn name(&self) -> PolicyName {
        PolicyName { eviction: self.eviction.name(), admission: self.admission.name() }
    }

    fn build(&self, entries: u32, seed: u64, pages: PageSize) -> io::Result<Box<dyn BoxedPolicy>> {
        Ok(Box::new(CachePolicy::new(*self, entries, seed, pages)?))
    }

    fn is_same(&self, other: &dyn PolicyDesign) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| other.in_effect() == self.in_effect())
    }
}

enum AnyEviction {
    Fifo(Fifo),
    Lru(Lru),
    Random(Random),
    Clock(Clock),
    S3Fifo(S3Fifo),
    Sieve(Sieve),
    WTinyLfu(WTinyLfu),
    AdaptiveWindow(Box<AdaptiveWindow>),
    PriorityFifo(PriorityFifo),
    Lfu(Lfu<WhileStored>),
    PerfectLfu(Lfu<RequestHistory>),
    Arc(Arc),
    ContentTableLru(ContentTable<LastUse>),
    ContentTableLfu(ContentTable<Uses>),
}

enum AnyAdmission {
    All(AdmitAll),
    Filter(Filter),
    TinyLfu(TinyLfu),
    RequestCount(RequestCount),
}

macro_rules! eviction {
    ($any:expr, $policy:ident => $call:expr) => {
        match $any {
            AnyEviction::Fifo($policy) => $call,
            AnyEviction::Lru($policy) => $call,
            AnyEviction::Random($policy) => $call,
            AnyEviction::Clock($policy) => $call,
            AnyEviction::S3Fifo($policy) => $call,
            AnyEviction::Sieve($policy) => $call,
            AnyEviction::WTinyLfu($policy) => $call,
            AnyEviction::AdaptiveWindow($policy) => $call,
            AnyEviction::PriorityFifo($policy) => $call,
            AnyEviction::Lfu($policy) => $call,
            AnyEviction::PerfectLfu($policy) => $call,
            AnyEviction::Arc($policy) => $call,
            AnyEviction::ContentTableLru($policy) => $call,
            AnyEviction::ContentTableLfu($policy) => $call,
        }
    };
}

macro_rules! admission {
    ($any:expr, $policy:ident => $call:expr) => {
        match $any {
            AnyAdmission::All($policy) => $call,
            AnyAdmission::Filter($policy) => $call,
            AnyAdmission::TinyLfu($policy) => $call,
            AnyAdmission::RequestCount($policy) => $call,
        }
    };
}

/// One admission and one eviction at work.
pub struct CachePolicy {
    name: PolicyChoice,
    eviction: AnyEviction,
    admission: AnyAdmission,
    /// Entries that were inserted and not removed.
    held: u32,
}

impl CachePolicy {
    /// A policy for this many entries; `seed` is for random choices.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(name: PolicyChoice, entries: u32, seed: u64, pages: PageSize) -> io::Result<Self> {
        let eviction = match name.eviction {
            EvictionName::Fifo => AnyEviction::Fifo(Fifo::new(entries, pages)?),
            EvictionName::Lru => AnyEviction::Lru(Lru::new(entries, pages)?),
            EvictionName::Random => AnyEviction::Random(Random::new(entries, seed, pages)?),
            EvictionName::Clock => AnyEviction::Clock(Clock::new(entries, pages)?),
            EvictionName::S3Fifo => AnyEviction::S3Fifo(S3Fifo::new(entries, pages)?),
            EvictionName::Sieve => AnyEviction::Sieve(Sieve::new(entries, pages)?),
            EvictionName::WTinyLfu => AnyEviction::WTinyLfu(WTinyLfu::new(entries, name.options.w_tiny_lfu, pages)?),
            EvictionName::AdaptiveWindow => AnyEviction::AdaptiveWindow(Box::new(AdaptiveWindow::new(entries, pages)?)),
            EvictionName::PriorityFifo => AnyEviction::PriorityFifo(PriorityFifo::new(entries, pages)?),
            EvictionName::Lfu => AnyEviction::Lfu(Lfu::new(entries, WhileStored, pages)?),
            EvictionName::PerfectLfu => {
                let history = RequestHistory::new(entries, name.options.perfect_lfu, pages)?;
                AnyEviction::PerfectLfu(Lfu::new(entries, history, pages)?)
            }
            EvictionName::Arc => AnyEviction::Arc(Arc::new(entries, pages)?),
            EvictionName::ContentTableLru => AnyEviction::ContentTableLru(ContentTable::new(entries, pages)?),
            EvictionName::ContentTableLfu => AnyEviction::ContentTableLfu(ContentTable::new(entries, pages)?),
        };
        let admission = match name.admission {
            AdmissionName::All => AnyAdmission::All(AdmitAll),
            AdmissionName::Filter => AnyAdmission::Filter(Filter::new(entries, name.options.filter, pages)?),
            AdmissionName::TinyLfu => AnyAdmission::TinyLfu(TinyLfu::new(entries, name.options.tiny_lfu, pages)?),
            AdmissionName::RequestCount => AnyAdmission::RequestCount(RequestCount::new(name.options.request_count)),
        };
        Ok(Self { name, eviction, admission, held: 0 })
    }

    /// The choice it was made from.
    pub fn name(&self) -> PolicyChoice {
        self.name
    }

    /// See [`Eviction::request`], [`Admission::request`].
    #[inline]
    pub fn request(&mut self, hash: u64) {
        eviction!(&mut self.eviction, policy => policy.request(hash));
        admission!(&mut self.admission, policy => policy.request(hash));
    }

    /// See [`Eviction::prefetch_request`], [`Admission::prefetch_request`].
    #[inline]
    pub fn prefetch_request(&self, hash: u64) {
        eviction!(&self.eviction, policy => policy.prefetch_request(hash));
        admission!(&self.admission, policy => policy.prefetch_request(hash));
    }

    /// See [`Eviction::prefetch_victim`], [`Admission::prefetch_victim`].
    #[inline]
    pub fn prefetch_victim(&self, hash: u64) {
        eviction!(&self.eviction, policy => policy.prefetch_victim(hash));
        admission!(&self.admission, policy => policy.prefetch_victim(hash));
    }

    /// See [`Eviction::hit`].
    #[inline(always)]
    pub fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        eviction!(&mut self.eviction, policy => policy.hit(marks, slot));
    }

    /// See [`Eviction::refresh`].
    #[inline]
    pub fn refresh(&mut self, marks: &mut impl Marks, slot: u32, again: &Newcomer) {
        eviction!(&mut self.eviction, policy => policy.refresh(marks, slot, again));
    }

    /// See [`Eviction::admits`] and [`Admission::admits`]: both must agree. The victim is found by
    /// [`Eviction::victim`].
    #[inline(always)]
    pub fn admits(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> bool {
        let Self { eviction, admission, held, .. } = self;
        if !eviction!(eviction, policy => policy.admits(marks, newcomer)) {
            return false;
        }
        let victim_hash = || {
            let victim = eviction!(eviction, policy => policy.victim(marks, newcomer))?;
            Some(marks.hash(victim))
        };
        admission!(admission, policy => {
            policy.full_with(*held);
            policy.admits(newcomer, victim_hash)
        })
    }

    /// See [`Eviction::arriving`].
    #[inline]
    pub fn arriving(&mut self, newcomer: &Newcomer) {
        eviction!(&mut self.eviction, policy => policy.arriving(newcomer));
    }

    /// See [`Eviction::victim`].
    #[inline]
    pub fn victim(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        eviction!(&mut self.eviction, policy => policy.victim(marks, newcomer))
    }

    /// See [`Eviction::insert`].
    #[inline(always)]
    pub fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        self.held += 1;
        eviction!(&mut self.eviction, policy => policy.insert(marks, slot, newcomer));
    }

    /// See [`Eviction::remove`].
    #[inline]
    pub fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: RemovalReason) {
        self.held -= 1;
        eviction!(&mut self.eviction, policy => policy.remove(marks, slot, why));
    }

    /// Takes over all entries of a former policy, in the order in which they would have gone at `now_ns`.
    /// `stored` gives what is known of an entry.
    pub fn take_over<M: Marks>(
        &mut self,
        mut former: Self,
        marks: &mut M,
        now_ns: u64,
        stored: impl Fn(&M, u32) -> Newcomer,
    ) {
        let mut nobody = Newcomer { now_ns, ..Newcomer::default() };
        while let Some(slot) = former.victim(marks, &nobody) {
            former.remove(marks, slot, RemovalReason::Erased);
            *marks.mark_mut(slot) = PolicyMark::default();
            let stored = stored(marks, slot);
            self.take_over_one(marks, slot, &stored);
            nobody.hash = nobody.hash.wrapping_add(HASH_STEP);
        }
    }

    /// See [`Eviction::take_over`].
    pub fn take_over_one(&mut self, marks: &mut impl Marks, slot: u32, stored: &Newcomer) {
        self.held += 1;
        eviction!(&mut self.eviction, policy => policy.take_over(marks, slot, stored));
    }

    /// See [`Eviction::upcoming`].
    pub fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        eviction!(&self.eviction, policy => policy.upcoming(count, slots));
    }

    /// See [`Eviction::grow`], [`Admission::grow`].
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the policy works as before, but the part that got its
    /// memory may have forgotten its counts.
    pub fn grow(&mut self, entries: u32) -> io::Result<()> {
        eviction!(&mut self.eviction, policy => policy.grow(entries))?;
        admission!(&mut self.admission, policy => policy.grow(entries))
    }

    /// Bytes of memory mapped for the policy.
    pub fn bytes(&self) -> usize {
        eviction!(&self.eviction, policy => policy.bytes()) + admission!(&self.admission, policy => policy.bytes())
    }
}

/// The policy in a router's Content Store; the store's entries are [`StoreMarks`].
impl BoxedPolicy for CachePolicy {
    fn request(&mut self, hash: u64) {
        Self::request(self, hash);
    }

    fn prefetch_request(&self, hash: u64) {
        Self::prefetch_request(self, hash);
    }

    fn prefetch_victim(&self, hash: u64) {
        Self::prefetch_victim(self, hash);
    }

    fn hit(&mut self, marks: &mut StoreMarks, slot: u32) {
        Self::hit(self, marks, slot);
    }

    fn refresh(&mut self, marks: &mut StoreMarks, slot: u32, again: &Newcomer) {
        Self::refresh(self, marks, slot, again);
    }

    fn admits(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> bool {
        Self::admits(self, marks, newcomer)
    }

    fn arriving(&mut self, newcomer: &Newcomer) {
        Self::arriving(self, newcomer);
    }

    fn victim(&mut self, marks: &mut StoreMarks, newcomer: &Newcomer) -> Option<u32> {
        Self::victim(self, marks, newcomer)
    }

    fn insert(&mut self, marks: &mut StoreMarks, slot: u32, newcomer: &Newcomer) {
        Self::insert(self, marks, slot, newcomer);
    }

    fn take_over(&mut self, marks: &mut StoreMarks, slot: u32, stored: &Newcomer) {
        self.take_over_one(marks, slot, stored);
    }

    fn remove(&mut self, marks: &mut StoreMarks, slot: u32, why: RemovalReason) {
        Self::remove(self, marks, slot, why);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        Self::upcoming(self, count, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        Self::grow(self, entries)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}
