//! Catalogue: which Content Store policies are there, what are they called, and how is one made?
//!
//! The names are those of configuration (`cs.policy`, `cs.admission`) and of the lab's
//! records. [`CachePolicy`] is one admission and one eviction, chosen at run time: each call is a
//! branch that is always taken the same way.

use super::adaptive_window::AdaptiveWindow;
use super::arc::Arc;
use super::clock::Clock;
use super::content_table::{ContentTable, LastUse, Uses};
use super::fifo::Fifo;
use super::filter::{Filter, FilterOptions};
use super::lfu::{Lfu, WhileStored};
use super::lru::Lru;
use super::priority_fifo::PriorityFifo;
use super::random::Random;
use super::request_count::{RequestCount, RequestCountOptions};
use super::request_history::RequestHistory;
use super::s3_fifo::S3Fifo;
use super::sieve::Sieve;
use super::tiny_lfu::{TinyLfu, TinyLfuOptions};
use super::w_tiny_lfu::{WTinyLfu, WTinyLfuOptions};
use super::{Admission, AdmitAll, Eviction, HASH_STEP, Leaving, Marks, Newcomer, PolicyMark};
use crate::pages::PageSize;
use std::io;
use std::str::FromStr;

/// Which Data goes when the Content Store is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictionName {
    /// The first that was stored.
    Fifo,
    /// The least recently used.
    Lru,
    /// Any, by lot.
    Random,
    /// The first that was stored and not used since it was last passed over.
    Clock,
    /// What was used less than twice while it was new; of the others, as CLOCK with counts.
    S3Fifo,
    /// As CLOCK, but what is passed over keeps its place.
    Sieve,
    /// Of a window and what passed it, the less frequent one; the window climbs.
    WTinyLfu,
    /// A window and SIEVE, the window as large as does best; it may refuse a newcomer itself.
    #[default]
    AdaptiveWindow,
    /// NFD's `priority_fifo`: what nobody asked for, then what is stale, then the first that came.
    PriorityFifo,
    /// The least frequently used of those stored.
    Lfu,
    /// The least frequently asked for, stored or not.
    PerfectLfu,
    /// Of what was used once and what was used again, as what comes back teaches.
    Arc,
    /// The least recently used of a newcomer's buckets.
    ContentTableLru,
    /// The least frequently used of a newcomer's buckets.
    ContentTableLfu,
}

impl EvictionName {
    /// All of them.
    pub const ALL: &[EvictionName] = &[
        Self::Fifo,
        Self::Lru,
        Self::Random,
        Self::Clock,
        Self::S3Fifo,
        Self::Sieve,
        Self::WTinyLfu,
        Self::AdaptiveWindow,
        Self::PriorityFifo,
        Self::Lfu,
        Self::PerfectLfu,
        Self::Arc,
        Self::ContentTableLru,
        Self::ContentTableLfu,
    ];

    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Random => "random",
            Self::Clock => "clock",
            Self::S3Fifo => "s3-fifo",
            Self::Sieve => "sieve",
            Self::WTinyLfu => "w-tiny-lfu",
            Self::AdaptiveWindow => "adaptive-window",
            Self::PriorityFifo => "priority-fifo",
            Self::Lfu => "lfu",
            Self::PerfectLfu => "perfect-lfu",
            Self::Arc => "arc",
            Self::ContentTableLru => "content-table-lru",
            Self::ContentTableLfu => "content-table-lfu",
        }
    }
}

/// Which Data comes in when the Content Store is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AdmissionName {
    /// Everything.
    #[default]
    All,
    /// What was asked for often enough among the last Interests.
    Filter,
    /// What is asked for more often than what would go for it.
    TinyLfu,
    /// What several Interests waited for.
    RequestCount,
}

impl AdmissionName {
    /// All of them.
    pub const ALL: &[AdmissionName] = &[Self::All, Self::Filter, Self::TinyLfu, Self::RequestCount];

    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Filter => "filter",
            Self::TinyLfu => "tiny-lfu",
            Self::RequestCount => "request-count",
        }
    }
}

/// There is no policy of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy is called {0:?}")]
pub struct UnknownPolicy(pub String);

impl FromStr for EvictionName {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let found = Self::ALL.iter().find(|eviction| eviction.as_str() == name);
        found.copied().ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl FromStr for AdmissionName {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let found = Self::ALL.iter().find(|admission| admission.as_str() == name);
        found.copied().ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// What a policy is made with; what is not said is as its module says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyOptions {
    /// Of [`AdmissionName::Filter`].
    pub filter: FilterOptions,
    /// Of [`AdmissionName::TinyLfu`].
    pub tiny_lfu: TinyLfuOptions,
    /// Of [`AdmissionName::RequestCount`].
    pub request_count: RequestCountOptions,
    /// Of [`EvictionName::WTinyLfu`].
    pub w_tiny_lfu: WTinyLfuOptions,
}

/// A policy by name: what goes, and what comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CsPolicy {
    /// What goes.
    pub eviction: EvictionName,
    /// What comes in.
    pub admission: AdmissionName,
    /// What both are made with.
    pub options: PolicyOptions,
}

impl CsPolicy {
    /// The same without the options of policies that are not chosen.
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
        Self { eviction, admission, options: used }
    }
}

/// That eviction, and everything comes in.
impl From<EvictionName> for CsPolicy {
    fn from(eviction: EvictionName) -> Self {
        Self { eviction, ..Self::default() }
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
    name: CsPolicy,
    eviction: AnyEviction,
    admission: AnyAdmission,
    /// Entries that were inserted and not removed.
    held: u32,
}

impl CachePolicy {
    /// For so many entries at once; `seed` is for what a policy draws by lot.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(name: CsPolicy, entries: u32, seed: u64, pages: PageSize) -> io::Result<Self> {
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
            EvictionName::Lfu => AnyEviction::Lfu(Lfu::new(entries, pages)?),
            EvictionName::PerfectLfu => AnyEviction::PerfectLfu(Lfu::new(entries, pages)?),
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

    /// What it was made as.
    pub fn name(&self) -> CsPolicy {
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

    /// See [`Eviction::admits`] and [`Admission::admits`]: both must agree. The victim's hash is
    /// that of [`Eviction::victim`].
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
    pub fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: Leaving) {
        self.held -= 1;
        eviction!(&mut self.eviction, policy => policy.remove(marks, slot, why));
    }

    /// Takes over all that a former policy holds, in the order in which it would have gone at `now_ns`;
    /// `stored` says what is known of an entry.
    pub fn take_over<M: Marks>(
        &mut self,
        mut former: Self,
        marks: &mut M,
        now_ns: u64,
        stored: impl Fn(&M, u32) -> Newcomer,
    ) {
        let mut nobody = Newcomer { now_ns, ..Newcomer::default() };
        while let Some(slot) = former.victim(marks, &nobody) {
            former.remove(marks, slot, Leaving::Erased);
            *marks.mark_mut(slot) = PolicyMark::default();
            let stored = stored(marks, slot);
            self.held += 1;
            eviction!(&mut self.eviction, policy => policy.take_over(marks, slot, &stored));
            nobody.hash = nobody.hash.wrapping_add(HASH_STEP);
        }
    }

    /// See [`Eviction::upcoming`].
    pub fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        eviction!(&self.eviction, policy => policy.upcoming(count, slots));
    }

    /// See [`Eviction::grow`], [`Admission::grow`].
    ///
    /// # Errors
    /// If the kernel does not map the memory; then nothing has changed that matters, but that the one of the two which had
    /// its memory may have forgotten what it counted.
    pub fn grow(&mut self, entries: u32) -> io::Result<()> {
        eviction!(&mut self.eviction, policy => policy.grow(entries))?;
        admission!(&mut self.admission, policy => policy.grow(entries))
    }

    /// Octets of memory that were mapped for it.
    pub fn bytes(&self) -> usize {
        eviction!(&self.eviction, policy => policy.bytes()) + admission!(&self.admission, policy => policy.bytes())
    }
}
