//! Quiescence: when can readers no longer hold what was unlinked?
//!
//! Source: quiescent-state-based reclamation (McKenney and Slingwine, "Read-copy update", PDCS 1998), with
//! the per-thread epochs of Hart et al., "Performance of memory reclamation for lockless synchronization",
//! JPDC 67, 2007. A worker has a natural quiescent point: between two batches it holds no reference into
//! the shared tables.
//!
//! ```text
//!  epoch          1        2        3          the writer's, advanced after unlinking
//!  reader slot  0 … 1 … 0 … … 2 … … 0          0: offline; else the epoch it saw when it
//!                  └pin┘    └─pin─┘            went online
//!  retired          ▲a       ▲b                a waits for readers that saw 1 or less,
//!                                              b for those that saw 2 or less
//! ```
//!
//! Why this is enough: the writer unlinks, advances the epoch and, after a full fence, reads the slots. A
//! reader stores the epoch into its slot and, after a full fence, reads the tables. There are three cases:
//! - The writer does not see the reader's slot: the writer's fence came first, so the reader sees the
//!   unlinking.
//! - The writer sees a later epoch than the one in which the thing was retired: the reader saw that epoch,
//!   and with it the unlinking.
//! - Otherwise the writer waits.
//!
//! A reader that sleeps between batches is always offline, because a [`Pin`] ends with the batch. Cost: a
//! reader makes one load, one store and one fence when a batch begins, and one store when it ends. Its slot
//! has a separate cache line. While anything waits, the writer makes one fence and reads one line per
//! reader for every [`UPDATES_PER_EPOCH`] updates.
//!
//! Limits: this module has none. If a pin is never dropped, everything retired after it waits for ever. So
//! the owner checks [`Retired::len`], and refuses changes when it is too large.
//!
//! Writers: any number of readers, each in its own slot; one writer per domain. The loom
//! models in `crates/tables/loom` check this file.

#[cfg(loom)]
use loom::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering, fence},
};
use std::collections::VecDeque;
#[cfg(not(loom))]
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering, fence},
};

/// Updates before the writer advances the epoch and looks at the readers.
pub const UPDATES_PER_EPOCH: usize = 64;

/// A slot's value while its reader holds nothing.
const OFFLINE: u64 = 0;

/// One writer and its readers.
#[derive(Debug)]
pub struct Domain {
    epoch: Line,
    slots: Mutex<Vec<Arc<Line>>>,
}

/// A number alone in its line, and in the pair of lines that prefetchers fetch.
#[derive(Debug)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Domain {
    /// A domain without readers.
    #[allow(clippy::new_without_default, reason = "loom's atomics are not made in a Default")]
    pub fn new() -> Self {
        Self { epoch: Line(AtomicU64::new(1)), slots: Mutex::new(Vec::new()) }
    }

    /// The oldest epoch that an online reader saw; `u64::MAX` if all are offline.
    fn oldest_seen(&self) -> u64 {
        let slots = self.lock();
        let seen = slots.iter().map(|slot| slot.0.load(Ordering::Acquire));
        seen.filter(|&epoch| epoch != OFFLINE).min().unwrap_or(u64::MAX)
    }

    /// Whether a reader is pinned. A reader may begin or end while this is asked.
    pub fn is_anyone_online(&self) -> bool {
        self.oldest_seen() != u64::MAX
    }

    #[cfg(not(loom))]
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Line>>> {
        self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[cfg(loom)]
    fn lock(&self) -> loom::sync::MutexGuard<'_, Vec<Arc<Line>>> {
        self.slots.lock().unwrap()
    }
}

/// One reader's place in a domain; offline unless it is pinned.
#[derive(Debug)]
pub struct Reader {
    domain: Arc<Domain>,
    slot: Arc<Line>,
}

impl Reader {
    /// A new reader.
    pub fn new(domain: &Arc<Domain>) -> Self {
        let slot = Arc::new(Line(AtomicU64::new(OFFLINE)));
        domain.lock().push(Arc::clone(&slot));
        Self { domain: Arc::clone(domain), slot }
    }

    /// Goes online: everything reachable from now on stays valid until the pin is dropped.
    #[inline]
    pub fn pin(&mut self) -> Pin<'_> {
        let epoch = self.domain.epoch.0.load(Ordering::Acquire);
        // Release: a writer may see this store and not the one that ended the last pin. This store must
        // still come after that pin's reads. (Relaxed: the loom models failed.)
        self.slot.0.store(epoch, Ordering::Release);
        // Before any load of the tables; pairs with the fence in `Retired::reclaim`.
        fence(Ordering::SeqCst);
        Pin { slot: &self.slot }
    }
}

impl Reader {
    /// Goes online as [`Reader::pin`] does, and stays so until [`Reader::release`]: for work that takes
    /// several batches. The writer frees nothing meanwhile. A pin of the same reader would end it.
    pub fn hold(&mut self) {
        std::mem::forget(self.pin());
    }

    /// Goes offline.
    pub fn release(&mut self) {
        drop(Pin { slot: &self.slot });
    }
}

impl Clone for Reader {
    /// Another reader of the domain.
    fn clone(&self) -> Self {
        Reader::new(&self.domain)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.domain.lock().retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

/// A reader that is online.
#[derive(Debug)]
pub struct Pin<'a> {
    slot: &'a Line,
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        // After every load of the tables.
        self.slot.0.store(OFFLINE, Ordering::Release);
    }
}

/// Things that the writer of a domain unlinked and cannot yet free, oldest first.
#[derive(Debug)]
pub struct Retired<T> {
    domain: Arc<Domain>,
    waiting: VecDeque<(u64, T)>,
    updates: usize,
}

impl<T> Retired<T> {
    /// The list of a domain's only writer.
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self { domain: Arc::clone(domain), waiting: VecDeque::new(), updates: 0 }
    }

    /// Adds a thing that is unlinked: no reader that comes online from now on can reach it.
    pub fn retire(&mut self, unlinked: T) {
        let epoch = self.domain.epoch.0.load(Ordering::Relaxed);
        self.waiting.push_back((epoch, unlinked));
    }

    /// Whether something waits, and enough updates came since the last [`Retired::reclaim`] to be worth its
    /// fence. To be asked after every update, even one that retired nothing.
    pub fn is_due(&mut self) -> bool {
        self.updates += 1;
        self.updates >= UPDATES_PER_EPOCH && !self.waiting.is_empty()
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u64, T)>()
    }

    /// Hands to `free` everything that no reader can hold any more.
    pub fn reclaim(&mut self, mut free: impl FnMut(T)) {
        let epoch = self.domain.epoch.0.load(Ordering::Relaxed);
        self.domain.epoch.0.store(epoch + 1, Ordering::Release);
        self.updates = 0;
        // After the unlinking; pairs with the fence in `Reader::pin`.
        fence(Ordering::SeqCst);
        let oldest_seen = self.domain.oldest_seen();
        while let Some((_, unlinked)) = self.waiting.pop_front_if(|&mut (epoch, _)| epoch < oldest_seen) {
            free(unlinked);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn freed(retired: &mut Retired<u32>) -> Vec<u32> {
        let mut freed = Vec::new();
        retired.reclaim(|thing| freed.push(thing));
        freed
    }

    #[test]
    fn only_what_a_pinned_reader_may_hold_waits() {
        let domain = Arc::new(Domain::new());
        let (mut early, mut late) = (Reader::new(&domain), Reader::new(&domain));
        let mut retired = Retired::new(&domain);
        retired.retire(1);
        assert_eq!(freed(&mut retired), [1], "all readers are offline");
        let pin = early.pin();
        retired.retire(2);
        assert_eq!(freed(&mut retired), []);
        let later_pin = late.pin();
        retired.retire(3);
        assert_eq!(freed(&mut retired), []);
        drop(pin);
        assert_eq!(freed(&mut retired), [2], "the later reader came online after 2 was unlinked");
        drop(early.pin());
        drop(later_pin);
        assert_eq!(freed(&mut retired), [3]);
        assert!(retired.is_empty());
    }

    #[test]
    fn what_a_reader_holds_waits_until_it_is_released() {
        let domain = Arc::new(Domain::new());
        let (mut reader, mut other) = (Reader::new(&domain), Reader::new(&domain));
        let mut retired = Retired::new(&domain);
        reader.hold();
        retired.retire(1);
        drop(other.pin());
        assert_eq!((freed(&mut retired), domain.is_anyone_online()), (vec![], true));
        reader.release();
        assert_eq!((freed(&mut retired), domain.is_anyone_online()), (vec![1], false));
    }

    #[test]
    fn a_reader_that_is_gone_holds_nothing() {
        let domain = Arc::new(Domain::new());
        let mut reader = Reader::new(&domain);
        std::mem::forget(reader.pin());
        let mut retired = Retired::new(&domain);
        retired.retire(1);
        assert_eq!(freed(&mut retired), []);
        drop(reader);
        assert_eq!(freed(&mut retired), [1]);
    }

    #[test]
    fn every_update_counts_and_nothing_is_due_while_nothing_waits() {
        let mut retired = Retired::new(&Arc::new(Domain::new()));
        assert!((0..2 * UPDATES_PER_EPOCH).all(|_| !retired.is_due()));
        retired.retire(1);
        assert!(retired.is_due());
        assert_eq!(freed(&mut retired), [1]);
        retired.retire(2);
        assert!((1..UPDATES_PER_EPOCH).all(|_| !retired.is_due()));
        assert!(retired.is_due(), "though nothing more was retired");
    }
}
