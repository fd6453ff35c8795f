//! Which worker decides a packet (house plan §4, "workers, shards, rings").
//!
//! * An Interest or Nack: the home worker of its name. If stored Data is found under all prefixes of its name
//!   ([`Dispatcher::with_prefix_rounds`]), an Interest with CanBePrefix first visits the Content Stores of all other
//!   workers, one after the other, until one answers. So it finds what one worker would; which of several Data, only
//!   those of one worker are compared.
//! * Data: every worker where an Interest may wait for it, one after the other: those that
//!   own a shorter prefix for which a CanBePrefix Interest is pending, and last the home
//!   of its name ([`Round`]). The last one, if nobody before it had asked, says
//!   "unsolicited". So workers satisfy, store and drop what one worker would.
//! * Data with one of our PIT tokens while no CanBePrefix Interest is pending anywhere:
//!   the worker in the token, which must be the home. If nothing that waits there fits, the token
//!   is void and the Data is handed over, by name.
//!
//! The home of a name is a keyed hash of the name without a trailing implicit
//! digest, modulo the workers. The key is not the tables' key: a token shows the
//! worker to the outside and must not reveal table hashes.
//!
//! Pending prefixes are counted by their hash, in [`PENDING_COUNTERS`] counters that all
//! workers share: with n prefixes pending, one prefix of a Data asks a worker in vain
//! with probability n / 32,768. N.B. Counters by worker and number of components
//! asked in vain nearly always: one pending Interest per worker and length sent all Data to all workers.
//!
//! Cost: with one worker nothing; a round of an Interest one hop over a ring for each worker; else one pass over the name, and for Data, while
//! CanBePrefix Interests are pending, one relaxed load per prefix.

use namewire_packet::{
    Interest,
    lp::{LpHeaders, PitToken},
    name::Name,
    tlv::{self, types},
};
use namewire_tables::{GroupToken, HashKey, NameHashes, PrefixLookup, hash_name};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Most workers of one router.
pub const MAX_WORKERS: usize = 64;

/// Octets of our PIT tokens. One peer copes with no other length (NDNLPv2 §3).
pub(crate) const TOKEN_BYTES: usize = 6;

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
        let octets = (u64::from(self.worker) << 40 | self.group.to_bits()).to_be_bytes();
        PitToken::new(&octets[8 - TOKEN_BYTES..])
    }

    /// Reads a token that may be ours; `None` if its length shows that it is not.
    pub fn decode(token: &PitToken) -> Option<Self> {
        let octets: [u8; TOKEN_BYTES] = token.as_bytes().try_into().ok()?;
        let bits = octets.iter().fold(0, |bits, &octet| bits << 8 | u64::from(octet));
        Some(WorkerToken { worker: octets[0], group: GroupToken::from_bits(bits) })
    }
}

/// Counters of pending prefixes: 128 KiB for all workers together.
const PENDING_COUNTERS: usize = 1 << 15;

/// Pending CanBePrefix Interests of all workers, by the hash of their names. Raised
/// before the Interest leaves, so that no Data can overtake it.
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
    fn counter(&self, hash: u64) -> &AtomicU32 {
        &self.by_hash[hash as usize & (PENDING_COUNTERS - 1)]
    }

    fn any(&self) -> bool {
        self.total.load(Ordering::Relaxed) > 0
    }
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

    /// These without `worker`.
    const fn without(self, worker: u8) -> Self {
        Workers(self.0 & !Workers::only(worker).0)
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

/// The way of one packet from worker to worker. An Interest's has one stop, or it looks for stored Data
/// on the way to it; Data goes on until everybody was asked who may be waiting for it.
///
/// ```text
///  octets  0..8   8      9
///          left   last   flags: 1 first, 2 answered
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Still to be asked.
    left: Workers,
    /// Whoever of them comes last: the home of the name.
    last: u8,
    /// Nobody was asked before.
    pub(crate) is_first: bool,
    /// Somebody before had asked for it.
    pub(crate) answered: bool,
}

impl Default for Round {
    /// Where it is now, and nowhere else.
    fn default() -> Self {
        Round::new(Workers(0), 0)
    }
}

impl Round {
    /// Octets of an encoded round.
    pub const BYTES: usize = 10;

    const FIRST: u8 = 1;
    const ANSWERED: u8 = 2;

    const fn new(left: Workers, last: u8) -> Self {
        Round { left, last, is_first: true, answered: false }
    }

    const fn only(worker: u8) -> Self {
        Round::new(Workers::only(worker), worker)
    }

    /// Workers still to be asked.
    pub const fn left(&self) -> Workers {
        self.left
    }

    /// True if nobody is left.
    pub const fn is_over(&self) -> bool {
        self.left.0 == 0
    }

    /// Takes the next worker off the list: `here` if it may come now, or else another.
    /// There must be one.
    pub fn take(&mut self, here: u8) -> u8 {
        debug_assert!(!self.is_over());
        let before_last = self.left.without(self.last);
        let next = match before_last.contains(here) {
            true => here,
            false => before_last.iter().next().unwrap_or(self.last),
        };
        self.left = self.left.without(next);
        next
    }

    /// Takes `here` off the list if it may come now.
    pub(crate) fn take_only(&mut self, here: u8) -> bool {
        let mut after = *self;
        let is_next = !self.is_over() && after.take(here) == here;
        if is_next {
            *self = after;
        }
        is_next
    }

    /// True if nobody else was asked or will be.
    pub const fn is_alone(&self) -> bool {
        self.is_first && !self.answered && self.is_over()
    }

    /// The rest of it, for the next worker.
    pub(crate) const fn going_on(self) -> Self {
        Round { is_first: false, ..self }
    }

    /// As octets, for a ring.
    pub fn to_octets(self) -> [u8; Round::BYTES] {
        let mut octets = [0; Round::BYTES];
        octets[..8].copy_from_slice(&self.left.0.to_le_bytes());
        octets[8] = self.last;
        octets[9] = u8::from(self.is_first) * Round::FIRST + u8::from(self.answered) * Round::ANSWERED;
        octets
    }

    /// Reads what [`Round::to_octets`] wrote.
    pub fn from_octets(octets: &[u8; Round::BYTES]) -> Self {
        let [left @ .., last, flags] = *octets;
        Round {
            left: Workers(u64::from_le_bytes(left)),
            last,
            is_first: flags & Round::FIRST != 0,
            answered: flags & Round::ANSWERED != 0,
        }
    }
}

/// Shared by all workers of a router.
#[derive(Debug)]
pub struct Dispatcher {
    key: HashKey,
    workers: usize,
    pending: PendingPrefixes,
    /// Interests by prefix visit every worker.
    prefix_rounds: bool,
}

impl Dispatcher {
    /// For `workers` workers, 1 to [`MAX_WORKERS`].
    ///
    /// # Panics
    /// If `workers` is outside that range.
    pub fn new(workers: usize, key: HashKey) -> Self {
        assert!((1..=MAX_WORKERS).contains(&workers), "{workers} workers");
        // With one worker nobody asks: no memory for counters.
        let pending = PendingPrefixes::new(if workers > 1 { PENDING_COUNTERS } else { 0 });
        Dispatcher { key, workers, pending, prefix_rounds: false }
    }

    /// Interests with CanBePrefix visit every worker's store from now on, if stored Data is found under all
    /// prefixes of its name.
    pub fn with_prefix_rounds(mut self, lookup: PrefixLookup) -> Self {
        self.prefix_rounds = lookup == PrefixLookup::All;
        self
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The worker whose tables a name belongs to.
    pub fn home(&self, name: Name<'_>) -> u8 {
        self.slot(self.home_hash(name))
    }

    fn home_hash(&self, name: Name<'_>) -> u64 {
        let name = if ends_in_digest(name) { name.parent() } else { name };
        hash_name(&self.key, name.value())
    }

    fn slot(&self, hash: u64) -> u8 {
        // The high half of a product instead of a remainder: no division, no bias that matters.
        ((u128::from(hash) * self.workers as u128) >> 64) as u8
    }

    /// The workers that must see a packet that a face received. Packets without a
    /// well-formed name go to `receiver`, whose engine counts them as malformed.
    pub fn route(&self, receiver: u8, headers: &LpHeaders, packet: &[u8], scratch: &mut NameHashes) -> Round {
        if self.workers == 1 {
            return Round::only(0);
        }
        let Some((type_number, name)) = read_name(headers.packet(packet)) else { return Round::only(receiver) };
        if type_number == types::INTEREST {
            let home = self.home(name);
            let visits_all =
                self.prefix_rounds && headers.nack.is_none() && asks_by_prefix(headers.packet(packet), name);
            let all = Workers(u64::MAX >> (MAX_WORKERS - self.workers));
            return if visits_all { Round::new(all, home) } else { Round::only(home) };
        }
        if !self.pending.any()
            && let Some(token) = headers.pit_token.as_ref().and_then(WorkerToken::decode)
            && usize::from(token.worker) < self.workers
        {
            return Round::only(token.worker);
        }
        self.by_name(name, scratch)
    }

    /// Where Data goes by its name: to the owners of shorter prefixes with pending
    /// CanBePrefix Interests, and last to its home.
    pub fn by_name(&self, name: Name<'_>, scratch: &mut NameHashes) -> Round {
        if !self.pending.any() || scratch.compute(&self.key, name.value()).is_err() {
            return Round::only(self.home(name));
        }
        let own_components = name.len() - usize::from(ends_in_digest(name));
        let home = self.slot(scratch.prefix_hash(own_components));
        let mut asked = Workers::only(home);
        for components in 0..=name.len() {
            let hash = scratch.prefix_hash(components);
            if self.pending.counter(hash).load(Ordering::Relaxed) > 0 {
                asked.0 |= Workers::only(self.slot(hash)).0;
            }
        }
        Round::new(asked, home)
    }

    /// Notes a pending CanBePrefix Interest for a name, given by its TLV-VALUE.
    pub(crate) fn raise(&self, name_value: &[u8]) {
        if let Some(counter) = self.pending_counter(name_value) {
            counter.fetch_add(1, Ordering::Relaxed);
            self.pending.total.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that it is pending no more.
    pub(crate) fn lower(&self, name_value: &[u8]) {
        if let Some(counter) = self.pending_counter(name_value) {
            counter.fetch_sub(1, Ordering::Relaxed);
            self.pending.total.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// `None` with one worker; names in the PIT are well-formed.
    fn pending_counter(&self, name_value: &[u8]) -> Option<&AtomicU32> {
        let name = if self.workers > 1 { Name::parse_value(name_value).ok()? } else { return None };
        Some(self.pending.counter(self.home_hash(name)))
    }
}

fn ends_in_digest(name: Name<'_>) -> bool {
    name.last().is_some_and(|last| last.type_number == types::IMPLICIT_SHA256_DIGEST)
}

/// Whether an Interest takes Data under its name; one for a digest takes one Data only.
fn asks_by_prefix(packet: &[u8], name: Name<'_>) -> bool {
    !ends_in_digest(name) && Interest::parse(packet).is_ok_and(|interest| interest.can_be_prefix())
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
    fn data_reaches_the_owner_of_a_pending_prefix_and_nobody_else() {
        let dispatcher = Dispatcher::new(64, HashKey::from_seed(1));
        let data: NameBuf = "/a/b/c/d".parse().unwrap();
        let home = dispatcher.home(data.as_name());
        let owner = dispatcher.home(data.as_name().prefix(2));
        assert_ne!(home, owner, "choose another seed");
        let mut scratch = NameHashes::default();
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Round::only(home));
        dispatcher.raise(data.as_name().prefix(2).value());
        // Another prefix of that worker and length: it would get the Data in vain.
        let other = (0..).map(|n| format!("/other/{n}").parse::<NameBuf>().unwrap());
        dispatcher.raise({ other }.find(|name| dispatcher.home(name.as_name()) == owner).unwrap().value());
        let asked = dispatcher.by_name(data.as_name(), &mut scratch);
        assert_eq!(asked.left(), Workers(Workers::only(home).0 | Workers::only(owner).0));
        let elsewhere: NameBuf = "/a/c/c/d".parse().unwrap();
        let asked = dispatcher.by_name(elsewhere.as_name(), &mut scratch);
        assert_eq!(asked, Round::only(dispatcher.home(elsewhere.as_name())));
        dispatcher.lower(data.as_name().prefix(2).value());
        assert_eq!(dispatcher.by_name(data.as_name(), &mut scratch), Round::only(home));
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

    #[test]
    fn a_round_asks_each_worker_once_and_the_home_last() {
        let whole = Round::new(Workers(0b1101_0010), 4);
        for here in [0, 1, 4, 6, 63] {
            let mut round = Round::from_octets(&whole.to_octets());
            assert_eq!(round, whole);
            let asked: Vec<u8> = std::iter::from_fn(|| (!round.is_over()).then(|| round.take(here))).collect();
            let mut sorted = asked.clone();
            sorted.sort();
            assert_eq!((sorted, asked.last()), (vec![1, 4, 6, 7], Some(&4)), "seen from {here}");
            assert!(asked[0] == here || ![1, 6].contains(&here), "its own share comes first: {asked:?}");
        }
        let mut round = whole;
        assert!(!round.take_only(4) && !round.take_only(0) && round.take_only(6) && !round.take_only(6));
        let flags = Round { answered: true, ..whole.going_on() };
        assert_eq!(Round::from_octets(&flags.to_octets()), flags);
        assert!(Round::default().is_over() && Round::default().is_first);
    }
}
