//! Which worker decides a packet (house plan §4, "workers, shards, rings").
//!
//! * An Interest or Nack: the home worker of its name.
//! * Data with one of our PIT tokens: the worker in the token. If nothing that waits
//!   there fits it, the token is void and the Data is dispatched again, by name.
//! * Other Data: the home worker of its name and every worker that owns a shorter
//!   prefix for which CanBePrefix Interests are pending.
//!
//! The home of a name is a keyed hash of the name without a trailing implicit
//! digest, modulo the workers. The key is not the tables' key: a token shows the
//! worker to the outside and must not reveal table hashes.
//!
//! Cost: with one worker nothing; else one pass over the name, and for Data one
//! relaxed load per prefix length and worker that has any CanBePrefix Interest.

use namewire_packet::{
    lp::{LpHeaders, PitToken},
    name::Name,
    tlv::{self, types},
};
use namewire_tables::{GroupToken, HashKey, MAX_NAME_COMPONENTS, NameHashes, hash_name};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Most workers of one router.
pub const MAX_WORKERS: usize = 64;

/// Octets of our PIT tokens. One peer copes with no other length (NDNLPv2 §3).
const TOKEN_BYTES: usize = 6;

/// A PIT token of ours: which worker, and which name group there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerToken {
    /// The worker that holds the PIT entry.
    pub worker: u8,
    /// The name group in its tables.
    pub group: GroupToken,
}

impl WorkerToken {
    /// As it goes on the wire: worker, then generation and index.
    pub fn encode(self) -> Option<PitToken> {
        let mut octets = (u64::from(self.worker) << 40 | self.group.to_bits()).to_be_bytes();
        octets.rotate_left(8 - TOKEN_BYTES);
        PitToken::new(&octets[..TOKEN_BYTES])
    }

    /// Reads a token that may be ours; `None` if its length shows that it is not.
    pub fn decode(token: &PitToken) -> Option<Self> {
        let octets: [u8; TOKEN_BYTES] = token.as_bytes().try_into().ok()?;
        let bits = octets.iter().fold(0, |bits, &octet| bits << 8 | u64::from(octet));
        Some(WorkerToken { worker: octets[0], group: GroupToken::from_bits(bits) })
    }
}

/// Pending CanBePrefix Interests of one worker, by number of components. Raised
/// before the Interest leaves, so that no Data can overtake it.
#[derive(Debug)]
struct PendingPrefixes {
    total: AtomicUsize,
    by_components: Box<[AtomicU32]>,
}

/// A set of workers, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers(pub u64);

impl Workers {
    /// Just one worker.
    pub const fn only(worker: u8) -> Self {
        Workers(1 << worker)
    }

    /// True if `worker` is among them.
    pub const fn contains(self, worker: u8) -> bool {
        self.0 & 1 << worker != 0
    }

    /// True if several workers are asked.
    pub const fn is_several(self) -> bool {
        self.0.count_ones() > 1
    }

    /// The workers, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let worker = left.trailing_zeros() as u8;
            left &= left.wrapping_sub(1);
            (worker < 64).then_some(worker)
        })
    }
}

/// Shared by all workers of a router.
#[derive(Debug)]
pub struct Dispatcher {
    key: HashKey,
    pending: Box<[PendingPrefixes]>,
}

impl Dispatcher {
    /// For `workers` workers, 1 to [`MAX_WORKERS`].
    ///
    /// # Panics
    /// If `workers` is outside that range.
    pub fn new(workers: usize, key: HashKey) -> Self {
        assert!((1..=MAX_WORKERS).contains(&workers), "{workers} workers");
        // With one worker nobody asks: no memory for counters.
        let lengths = if workers > 1 { MAX_NAME_COMPONENTS + 1 } else { 0 };
        let pending = (0..workers)
            .map(|_| PendingPrefixes {
                total: AtomicUsize::new(0),
                by_components: (0..lengths).map(|_| AtomicU32::new(0)).collect(),
            })
            .collect();
        Dispatcher { key, pending }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.pending.len()
    }

    /// The worker whose tables a name belongs to.
    pub fn home(&self, name: Name<'_>) -> u8 {
        let name = match name.last() {
            Some(last) if last.type_number == types::IMPLICIT_SHA256_DIGEST => name.parent(),
            _ => name,
        };
        self.slot(hash_name(&self.key, name.value()))
    }

    fn slot(&self, hash: u64) -> u8 {
        // The high half of a product instead of a remainder: no division, no bias that matters.
        ((u128::from(hash) * self.pending.len() as u128) >> 64) as u8
    }

    /// The workers that must see a packet that a face received. Packets without a
    /// well-formed name go to `receiver`, whose engine counts them as malformed.
    pub fn route(&self, receiver: u8, headers: &LpHeaders, packet: &[u8], scratch: &mut NameHashes) -> Workers {
        if self.workers() == 1 {
            return Workers::only(0);
        }
        let Some((type_number, name)) = read_name(packet) else { return Workers::only(receiver) };
        if type_number == types::INTEREST {
            return Workers::only(self.home(name));
        }
        if let Some(token) = headers.pit_token.as_ref().and_then(WorkerToken::decode)
            && usize::from(token.worker) < self.workers()
        {
            return Workers::only(token.worker);
        }
        self.by_name(name, scratch)
    }

    /// Where Data without a valid token goes: its home, and the owners of shorter
    /// prefixes with pending CanBePrefix Interests.
    pub fn by_name(&self, name: Name<'_>, scratch: &mut NameHashes) -> Workers {
        let mut asked = Workers::only(self.home(name));
        let any_pending = self.pending.iter().any(|p| p.total.load(Ordering::Relaxed) > 0);
        if !any_pending || scratch.compute(&self.key, name.value()).is_err() {
            return asked;
        }
        for components in 0..=name.len() {
            let owner = self.slot(scratch.prefix_hash(components));
            let pending = &self.pending[usize::from(owner)].by_components[components];
            if pending.load(Ordering::Relaxed) > 0 {
                asked.0 |= Workers::only(owner).0;
            }
        }
        asked
    }

    /// Notes a pending CanBePrefix Interest of `worker` for a name of that many components.
    pub(crate) fn raise(&self, worker: u8, components: usize) {
        self.change(worker, components, |counter| counter.fetch_add(1, Ordering::Relaxed));
        self.pending[usize::from(worker)].total.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it is pending no more.
    pub(crate) fn lower(&self, worker: u8, components: usize) {
        self.change(worker, components, |counter| counter.fetch_sub(1, Ordering::Relaxed));
        self.pending[usize::from(worker)].total.fetch_sub(1, Ordering::Relaxed);
    }

    fn change(&self, worker: u8, components: usize, change: impl FnOnce(&AtomicU32) -> u32) {
        if let Some(counter) = self.pending[usize::from(worker)].by_components.get(components) {
            change(counter);
        }
    }
}

/// Packet type and name of an Interest or Data, without checking the rest.
fn read_name(packet: &[u8]) -> Option<(u32, Name<'_>)> {
    let outer = tlv::read_element(packet).ok()?;
    if !matches!(outer.type_number, types::INTEREST | types::DATA) {
        return None;
    }
    let first = tlv::read_element(outer.value).ok()?;
    let name = (first.type_number == types::NAME).then(|| Name::parse_value(first.value).ok()).flatten()?;
    Some((outer.type_number, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Component, NameBuf};

    #[test]
    fn tokens_survive_the_wire() {
        for (worker, index, generation) in [(0, 0, 0), (63, (1 << 26) - 1, (1 << 14) - 1), (5, 77, 9)] {
            let token = WorkerToken { worker, group: GroupToken { index, generation } };
            let wire = token.encode().unwrap();
            assert_eq!(wire.as_bytes().len(), 6);
            assert_eq!(WorkerToken::decode(&wire), Some(token));
        }
        assert_eq!(WorkerToken::decode(&PitToken::new(&[1; 7]).unwrap()), None);
    }

    #[test]
    fn digest_interest_and_its_data_meet_at_the_same_worker() {
        let dispatcher = Dispatcher::new(16, HashKey::from_seed(3));
        let name: NameBuf = "/a/b".parse().unwrap();
        let full = name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] });
        assert_eq!(dispatcher.home(name.as_name()), dispatcher.home(full.as_name()));
    }

    #[test]
    fn data_reaches_every_owner_of_a_pending_prefix_and_nobody_else() {
        let dispatcher = Dispatcher::new(64, HashKey::from_seed(1));
        let data: NameBuf = "/a/b/c/d".parse().unwrap();
        let home = dispatcher.home(data.as_name());
        let owner = dispatcher.home(data.as_name().prefix(2));
        assert_ne!(home, owner, "choose another seed");
        let mut scratch = NameHashes::default();
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Workers::only(home));
        dispatcher.raise(owner, 2);
        let asked = dispatcher.by_name(data.as_name(), &mut scratch);
        assert_eq!(asked.iter().collect::<Vec<_>>(), {
            let mut both = vec![home, owner];
            both.sort();
            both
        });
        dispatcher.lower(owner, 2);
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Workers::only(home));
    }
}
