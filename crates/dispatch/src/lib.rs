//! Which worker decides a packet?
//!
//! * An Interest or Nack: the home worker of its name. The store may be set to find Data under all prefixes of its name
//!   ([`Dispatcher::with_prefix_visits`]). Then an Interest with CanBePrefix first visits the Content Stores of all
//!   other workers, one after the other, until one answers. So the Interest gets an answer whenever a router with one
//!   worker would answer it. But only Data of the same worker are compared with each other.
//! * Data: every worker where an Interest may be pending for it, one after the other. These are the workers that own a
//!   shorter prefix with a pending CanBePrefix Interest, and last the home of its name ([`Visits`]). If no Interest was
//!   pending at any of them, the last one treats the Data as unsolicited. So several workers together satisfy, store
//!   and drop the same packets as one worker would.
//! * Data with one of our PIT tokens, while no CanBePrefix Interest is pending at any worker: the worker in the token,
//!   which must be the home. If no pending Interest fits there, the token is void and the Data is dispatched by name.
//!
//! The home of a name is a keyed hash of the name without a trailing implicit digest, modulo the workers. The key is
//! not the tables' key: a token shows the worker to other nodes and must not reveal table hashes.
//!
//! Pending prefixes are counted by their hash, in [`PENDING_COUNTERS`] counters that all workers share. With n prefixes
//! pending, one prefix of a Data causes a needless visit to a worker with probability n / 32,768. N.B. Counters by
//! worker and number of components were tried. With these, nearly every visit was needless: one pending Interest per
//! worker and length sent all Data to all workers.
//!
//! Cost: with one worker, dispatch costs nothing. An Interest that visits all workers costs one hop over a ring for
//! each. Any other packet costs one pass over the name, and Data one relaxed load per prefix while CanBePrefix
//! Interests are pending.

pub mod homes;
pub mod token;
pub mod visits;

pub use homes::Homes;
pub use token::WorkerToken;
pub use visits::{Visits, Workers};

use homes::{ends_in_digest, read_name};
use namewire_packet::{Interest, lp::LpHeaders, name::Name, tlv::types};
use namewire_tables::{HashKey, NameHashes, PrefixLookup};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Most workers of one router.
pub const MAX_WORKERS: usize = 64;

/// Counters of pending prefixes: 128 KiB for all workers together.
const PENDING_COUNTERS: usize = 1 << 15;

/// Pending CanBePrefix Interests of all workers, by the hash of their names. A worker raises the counter before it
/// sends the Interest, so that no Data can overtake it.
#[derive(Debug)]
struct PendingPrefixes {
    total: AtomicUsize,
    by_hash: Box<[AtomicU32]>,
}

impl PendingPrefixes {
    fn new(counters: usize) -> Self {
        let by_hash = (0..counters).map(|_| AtomicU32::new(0)).collect();
        PendingPrefixes { total: AtomicUsize::new(0), by_hash }
    }

    /// The low bits: the high ones choose the worker.
    #[inline]
    fn counter(&self, hash: u64) -> &AtomicU32 {
        &self.by_hash[hash as usize & (PENDING_COUNTERS - 1)]
    }

    #[inline]
    fn any(&self) -> bool {
        self.total.load(Ordering::Relaxed) > 0
    }
}

/// Shared by all workers of a router.
#[derive(Debug)]
pub struct Dispatcher {
    homes: Homes,
    pending: PendingPrefixes,
    /// Interests by prefix visit every worker.
    prefix_visits: bool,
}

impl Dispatcher {
    /// For `workers` workers, 1 to [`MAX_WORKERS`].
    ///
    /// # Panics
    /// If `workers` is outside that range.
    pub fn new(workers: usize, key: HashKey) -> Self {
        assert!((1..=MAX_WORKERS).contains(&workers), "{workers} workers");
        // With one worker, the counters are never read: no memory for them.
        let pending = PendingPrefixes::new(if workers > 1 { PENDING_COUNTERS } else { 0 });
        Dispatcher { homes: Homes::new(key, workers), pending, prefix_visits: false }
    }

    /// From now on, Interests with CanBePrefix visit every worker's store, if stored Data is found under all prefixes
    /// of its name.
    pub fn with_prefix_visits(mut self, lookup: PrefixLookup) -> Self {
        self.prefix_visits = lookup == PrefixLookup::All;
        self
    }

    /// Number of workers.
    #[inline]
    pub fn workers(&self) -> usize {
        self.homes.workers()
    }

    /// The worker whose tables a name belongs to.
    #[inline]
    pub fn home(&self, name: Name<'_>) -> u8 {
        self.homes.home(name)
    }

    /// The workers that must see a packet that a face received. Packets without a
    /// well-formed name go to `receiver`, whose engine counts them as malformed.
    pub fn route(&self, receiver: u8, headers: &LpHeaders, packet: &[u8], scratch: &mut NameHashes) -> Visits {
        if self.workers() == 1 {
            return Visits::only(0);
        }
        let Some((type_number, name)) = read_name(headers.packet(packet)) else { return Visits::only(receiver) };
        if type_number == types::INTEREST {
            let home = self.home(name);
            let visits_all =
                self.prefix_visits && headers.nack.is_none() && asks_by_prefix(headers.packet(packet), name);
            let all = Workers(u64::MAX >> (MAX_WORKERS - self.workers()));
            return if visits_all { Visits::new(all, home) } else { Visits::only(home) };
        }
        if !self.pending.any()
            && let Some(token) = headers.pit_token.as_ref().and_then(WorkerToken::decode)
            && usize::from(token.worker) < self.workers()
        {
            return Visits::only(token.worker);
        }
        self.by_name(name, scratch)
    }

    /// Where Data goes by its name: to the owners of shorter prefixes with pending CanBePrefix Interests, and last to
    /// its home.
    #[inline]
    pub fn by_name(&self, name: Name<'_>, scratch: &mut NameHashes) -> Visits {
        if !self.pending.any() || scratch.compute(self.homes.key(), name.value()).is_err() {
            return Visits::only(self.home(name));
        }
        let own_components = name.len() - usize::from(ends_in_digest(name));
        let home = self.homes.of_hash(scratch.prefix_hash(own_components));
        let mut asked = Workers::only(home);
        for components in 0..=name.len() {
            let hash = scratch.prefix_hash(components);
            if self.pending.counter(hash).load(Ordering::Relaxed) > 0 {
                asked.0 |= Workers::only(self.homes.of_hash(hash)).0;
            }
        }
        Visits::new(asked, home)
    }

    /// Notes a pending CanBePrefix Interest for a name, given by its TLV-VALUE.
    #[inline]
    pub fn raise(&self, name_value: &[u8]) {
        if let Some(counter) = self.pending_counter(name_value) {
            counter.fetch_add(1, Ordering::Relaxed);
            self.pending.total.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a CanBePrefix Interest for the name is no longer pending.
    #[inline]
    pub fn lower(&self, name_value: &[u8]) {
        if let Some(counter) = self.pending_counter(name_value) {
            counter.fetch_sub(1, Ordering::Relaxed);
            self.pending.total.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// `None` with one worker; names in the PIT are well-formed.
    #[inline]
    fn pending_counter(&self, name_value: &[u8]) -> Option<&AtomicU32> {
        let name = if self.workers() > 1 { Name::parse_value(name_value).ok()? } else { return None };
        Some(self.pending.counter(self.homes.hash(name)))
    }
}

/// Whether an Interest takes Data under its name. One for a digest takes one Data only.
fn asks_by_prefix(packet: &[u8], name: Name<'_>) -> bool {
    !ends_in_digest(name) && Interest::parse(packet).is_ok_and(|interest| interest.can_be_prefix())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Component, NameBuf};

    #[test]
    fn digest_interest_and_its_data_meet_at_the_same_worker() {
        let dispatcher = Dispatcher::new(16, HashKey::from_seed(3));
        let name: NameBuf = "/a/b".parse().unwrap();
        let full = name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] });
        assert_eq!(dispatcher.home(name.as_name()), dispatcher.home(full.as_name()));
    }

    #[test]
    fn data_reaches_the_owner_of_a_pending_prefix_and_nobody_else() {
        let dispatcher = Dispatcher::new(64, HashKey::from_seed(1));
        let data: NameBuf = "/a/b/c/d".parse().unwrap();
        let home = dispatcher.home(data.as_name());
        let owner = dispatcher.home(data.as_name().prefix(2));
        assert_ne!(home, owner, "choose another seed");
        let mut scratch = NameHashes::default();
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Visits::only(home));
        dispatcher.raise(data.as_name().prefix(2).value());
        // Another prefix of that worker and length must not get the Data needlessly.
        let other = (0..).map(|n| format!("/other/{n}").parse::<NameBuf>().unwrap());
        dispatcher.raise({ other }.find(|name| dispatcher.home(name.as_name()) == owner).unwrap().value());
        let asked = dispatcher.by_name(data.as_name(), &mut scratch);
        assert_eq!(asked.left(), Workers(Workers::only(home).0 | Workers::only(owner).0));
        let elsewhere: NameBuf = "/a/c/c/d".parse().unwrap();
        let asked = dispatcher.by_name(elsewhere.as_name(), &mut scratch);
        assert_eq!(asked, Visits::only(dispatcher.home(elsewhere.as_name())));
        dispatcher.lower(data.as_name().prefix(2).value());
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Visits::only(home));
    }

    /// A digest in the middle of a name: the prefix that ends there lives at the home of the name before it.
    #[test]
    fn a_pending_prefix_that_ends_in_a_digest_is_found_at_its_home() {
        let dispatcher = Dispatcher::new(64, HashKey::from_seed(1));
        let name: NameBuf = "/a/b".parse().unwrap();
        let full = name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] });
        dispatcher.raise(full.value());
        let below = full.join(Component::generic(b"c"));
        let asked = dispatcher.by_name(below.as_name(), &mut NameHashes::default());
        assert!(asked.left().contains(dispatcher.home(full.as_name())));
    }
}
