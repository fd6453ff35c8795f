//! Measurements: how did each next hop answer the Interests under a prefix?
//!
//! Source: forwarding §2 (measurements table), §4.5, §4.6. Strategies write and read it; the engine only removes old
//! entries. Each worker has a separate table, and measures what it forwards.
//!
//! An entry is found by a 64-bit hash of its name under the tables' secret key, mixed with a number of the strategy's
//! kind ([`crate::StrategyContext::prefix_key`]). The name is not kept. Two names with one hash would share their
//! measurements. The worst effect is a wrong choice of face, and without the key such names cannot be found.
//!
//! Cost: a look-up is one probe of a flat index and one entry of about 180 bytes. The entry holds the first measured
//! next hop; further ones are nodes of one pool. A timer wheel ends entries: extending the life of an entry is a single
//! store.
//!
//! Limits: [`crate::EngineConfig::measurement_capacity`] entries. At the limit a new entry replaces, among eight, the
//! one that would end soonest. There are four times as many further next hops. Beyond these, and beyond
//! [`MAX_FACES_PER_PREFIX`], a next hop is not measured. Both are counted ([`crate::LimitMet`]). Writer: the engine's
//! worker.

use crate::{
    Instant,
    state::record_chain::{RecordChain, RecordPool},
};
use hashbrown::HashTable;
use namewire_packet::FaceId;
use namewire_packet::rtt::RttEstimate;
use namewire_tables::{PageSize, TimerWheel};
use std::io;

/// Keeps measurements of different kinds of strategies apart.
pub(crate) fn measurement_key(name_hash: u64, kind: u64) -> u64 {
    name_hash ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Most next hops measured under one prefix.
pub const MAX_FACES_PER_PREFIX: usize = 64;

/// Further next hops, beyond the first of each entry, per entry of the capacity.
const FURTHER_FACES_PER_ENTRY: u32 = 4;

/// Entries considered when one must be evicted.
const EVICTION_CANDIDATES: usize = 8;

/// Tick and slots of the wheel: a full turn takes two minutes, and an entry ends at most 0.25 s late.
const TICK_NS: u64 = 250_000_000;
const SLOTS: usize = 512;

/// The last news of a next hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextHopHealth {
    /// None yet.
    #[default]
    Unmeasured,
    /// An answer came.
    Working,
    /// An answer is overdue.
    TimedOut,
}

/// An Interest whose answer is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The answer is overdue after this.
    pub until: Instant,
    /// Hash of the Interest's name ([`crate::StrategyContext::name_hash`]).
    pub name_hash: u64,
}

/// What is known of one next hop under one prefix.
#[derive(Clone, Copy, Debug, Default)]
pub struct NextHopMeasurement {
    /// The next hop.
    pub face: FaceId,
    /// Its round-trip times.
    pub rtt: RttEstimate,
    /// The last news of it.
    pub health: NextHopHealth,
    /// Answers overdue since the last one that came.
    pub timeouts: u32,
    /// The Interest that is watched, one at a time.
    pub awaited: Option<Awaited>,
    /// When a suspected next hop is judged, or when a silent one is probed.
    pub due: Instant,
    /// When it is forgotten.
    pub expires: Instant,
}

/// What is known of one prefix.
#[derive(Debug, Default)]
pub struct Measurement {
    key: u64,
    expires: Instant,
    /// Round-trip times under the prefix, over all next hops.
    pub rtt: RttEstimate,
    /// The next hop that answered last.
    pub last_next_hop: Option<FaceId>,
    /// When a strategy wants to try another next hop, if it has decided to.
    pub next_probe: Option<Instant>,
    /// Some next hop is suspected of being silent.
    is_suspect: bool,
    next_hops: RecordChain<NextHopMeasurement>,
}

/// Identifies an entry until the next is created or time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasurementId(u32);

/// The entries of one engine.
pub struct Measurements {
    /// Slot numbers by key.
    index: HashTable<u32>,
    slots: Vec<Measurement>,
    free: Vec<u32>,
    /// Where the next search for an entry to evict begins.
    hand: usize,
    next_hops: RecordPool<NextHopMeasurement>,
    wheel: TimerWheel,
    evicted: u64,
    next_hops_refused: u64,
    /// Entries with [`Measurement::is_suspect`].
    suspects: u32,
}

impl Measurements {
    /// Room for `capacity` entries, at least 1; memory is used as they are.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub(crate) fn new(capacity: u32, pages: PageSize) -> io::Result<Self> {
        let capacity = capacity.max(1);
        Ok(Measurements {
            // Twice the entries: at most half full, the table rehashes in place and never allocates.
            index: HashTable::with_capacity(2 * capacity as usize),
            slots: Vec::with_capacity(capacity as usize),
            free: Vec::with_capacity(capacity as usize),
            hand: 0,
            next_hops: RecordPool::new(capacity.saturating_mul(FURTHER_FACES_PER_ENTRY), pages)?,
            wheel: TimerWheel::new(TICK_NS, SLOTS, capacity, pages)?,
            evicted: 0,
            next_hops_refused: 0,
            suspects: 0,
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True without any entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries evicted before their time.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Times that a next hop was not measured for lack of room.
    pub(crate) fn next_hops_refused(&self) -> u64 {
        self.next_hops_refused
    }

    /// The entry with this key, if it has not ended.
    pub fn find(&self, key: u64, now: Instant) -> Option<MeasurementId> {
        let slot = *self.index.find(key, |&slot| self.slots[slot as usize].key == key)?;
        (self.slots[slot as usize].expires > now).then_some(MeasurementId(slot))
    }

    /// The entry with this key, created if there is none; it lives at least until `lifetime_ms` after `now`.
    pub fn find_or_insert(&mut self, key: u64, now: Instant, lifetime_ms: u64) -> MeasurementId {
        let expires = now.plus_ms(lifetime_ms);
        let known = self.index.find(key, |&slot| self.slots[slot as usize].key == key).copied();
        if let Some(slot) = known {
            if self.slots[slot as usize].expires <= now {
                self.clear(slot);
            }
            let entry = &mut self.slots[slot as usize];
            entry.expires = entry.expires.max(expires);
            return MeasurementId(slot);
        }
        let slot = self.take_slot();
        (self.slots[slot as usize].key, self.slots[slot as usize].expires) = (key, expires);
        let slots = &self.slots;
        self.index.insert_unique(key, slot, |&slot| slots[slot as usize].key);
        self.wheel.arm(slot, expires.0);
        MeasurementId(slot)
    }

    /// What is known of the prefix.
    pub fn get(&self, id: MeasurementId) -> &Measurement {
        &self.slots[id.0 as usize]
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: MeasurementId) -> &mut Measurement {
        &mut self.slots[id.0 as usize]
    }

    /// What is known of a next hop, if that is not too old.
    pub fn next_hop_mut(&mut self, id: MeasurementId, face: FaceId, now: Instant) -> Option<&mut NextHopMeasurement> {
        let chain = &mut self.slots[id.0 as usize].next_hops;
        self.next_hops.find_mut(chain, |known| known.face == face && known.expires > now)
    }

    /// The same, only to look at.
    pub fn next_hop(&self, id: MeasurementId, face: FaceId, now: Instant) -> Option<&NextHopMeasurement> {
        let mut known = self.next_hops.iter(&self.slots[id.0 as usize].next_hops);
        known.find(|known| known.face == face && known.expires > now)
    }

    /// What is known of a next hop, created if there is none; it lives at least until `lifetime_ms` after `now`. `None`
    /// if there is no room for it.
    pub fn next_hop_or_insert(
        &mut self,
        id: MeasurementId,
        face: FaceId,
        now: Instant,
        lifetime_ms: u64,
    ) -> Option<&mut NextHopMeasurement> {
        let expires = now.plus_ms(lifetime_ms);
        let chain = &mut self.slots[id.0 as usize].next_hops;
        let is_known = self.next_hops.find_mut(chain, |known| known.face == face && known.expires > now).is_some();
        if !is_known {
            self.next_hops.retain(chain, |known| known.face != face && known.expires > now);
            let has_room = chain.len() < MAX_FACES_PER_PREFIX;
            let place = if has_room { self.next_hops.append(chain) } else { None };
            let Some(place) = place else {
                self.next_hops_refused += 1;
                return None;
            };
            *place = NextHopMeasurement { face, expires, ..NextHopMeasurement::default() };
        }
        let found = self.next_hops.find_mut(chain, |known| known.face == face)?;
        found.expires = found.expires.max(expires);
        Some(found)
    }

    /// Number of prefixes with a next hop suspected of being silent. If it is 0, strategies need not look them up.
    #[inline]
    pub fn suspects(&self) -> u32 {
        self.suspects
    }

    /// Like [`Measurements::find_or_insert`], and marks some next hop there as suspected of being silent.
    pub fn suspect(&mut self, key: u64, now: Instant, lifetime_ms: u64) -> MeasurementId {
        let id = self.find_or_insert(key, now, lifetime_ms);
        self.suspects += u32::from(!std::mem::replace(&mut self.get_mut(id).is_suspect, true));
        id
    }

    /// Forgets what is known of `face`. With the last next hop the entry ends, and so does its suspicion.
    pub fn forget_next_hop(&mut self, id: MeasurementId, face: FaceId, now: Instant) {
        let entry = &mut self.slots[id.0 as usize];
        self.next_hops.retain(&mut entry.next_hops, |known| known.face != face && known.expires > now);
        if entry.next_hops.is_empty() {
            entry.expires = now;
            self.clear(id.0);
            self.wheel.arm(id.0, now.0); // or a later suspicion would last until the former would have ended
        }
    }

    /// When [`Measurements::run_timers`] has something to do; may be early, never late.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.wheel.next_deadline()
    }

    /// Ends what is due, looking at `visits` alarms at most.
    pub(crate) fn run_timers(&mut self, now: Instant, visits: &mut u32) {
        while let Some(slot) = self.wheel.pop_expired(now.0, visits) {
            let expires = self.slots[slot as usize].expires;
            if expires > now {
                self.wheel.arm(slot, expires.0); // more time meanwhile, or an entry that took an evicted one's slot
            } else {
                self.remove(slot);
                self.free.push(slot);
            }
        }
    }

    /// An empty slot: a free one, a new one, or that of an evicted entry.
    fn take_slot(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if self.slots.len() < self.slots.capacity() {
            self.slots.push(Measurement::default());
            return self.slots.len() as u32 - 1;
        }
        // No slot is free, so all are in use.
        let candidates = (0..EVICTION_CANDIDATES).map(|step| (self.hand + step) % self.slots.len());
        let soonest = candidates.min_by_key(|&slot| self.slots[slot].expires).unwrap_or_default();
        self.hand = (self.hand + EVICTION_CANDIDATES) % self.slots.len();
        self.evicted += 1;
        self.remove(soonest as u32);
        soonest as u32
    }

    /// Takes an entry out of the index and empties its slot.
    fn remove(&mut self, slot: u32) {
        let key = self.slots[slot as usize].key;
        if let Ok(indexed) = self.index.find_entry(key, |&other| other == slot) {
            indexed.remove();
        }
        self.clear(slot);
    }

    /// Forgets what an entry knows; its key stays.
    fn clear(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        self.next_hops.clear(&mut entry.next_hops);
        (entry.rtt, entry.last_next_hop, entry.next_probe) = (RttEstimate::default(), None, None);
        self.suspects -= u32::from(std::mem::take(&mut entry.is_suspect));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn ms(ms: u64) -> Instant {
        Instant::default().plus_ms(ms)
    }

    fn measurements(capacity: u32) -> Measurements {
        Measurements::new(capacity, PageSize::Base).unwrap()
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Insert { key: u64, lifetime_ms: u64 },
        NextHop { key: u64, face: u64, lifetime_ms: u64 },
        Wait { ms: u64 },
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..30_u64, 1..900_u64).prop_map(|(key, lifetime_ms)| Operation::Insert { key, lifetime_ms }),
            (0..30_u64, 0..5_u64, 1..900_u64).prop_map(|(key, face, lifetime_ms)| Operation::NextHop {
                key,
                face,
                lifetime_ms
            }),
            (0..400_u64).prop_map(|ms| Operation::Wait { ms }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// While there is room for all, the table equals two maps of deadlines.
        #[test]
        fn the_table_equals_maps(operations in prop::collection::vec(operation(), 0..150)) {
            let mut table = measurements(64);
            let mut entries: BTreeMap<u64, Instant> = BTreeMap::new();
            let mut next_hops: BTreeMap<(u64, u64), Instant> = BTreeMap::new();
            let mut now = ms(0);
            for operation in operations {
                match operation {
                    Operation::Insert { key, lifetime_ms } => {
                        table.find_or_insert(key, now, lifetime_ms);
                        let expires = entries.entry(key).or_default();
                        *expires = (*expires).max(now.plus_ms(lifetime_ms));
                    }
                    Operation::NextHop { key, face, lifetime_ms } => {
                        let Some(id) = table.find(key, now) else { continue };
                        prop_assert!(table.next_hop_or_insert(id, FaceId(face), now, lifetime_ms).is_some());
                        let expires = next_hops.entry((key, face)).or_default();
                        *expires = (*expires).max(now.plus_ms(lifetime_ms));
                    }
                    Operation::Wait { ms } => {
                        now = now.plus_ms(ms);
                        table.run_timers(now, &mut 1000);
                    }
                }
                entries.retain(|_, expires| *expires > now);
                next_hops.retain(|(key, _), expires| *expires > now && entries.contains_key(key));
                for key in 0..30 {
                    let found = table.find(key, now);
                    prop_assert_eq!(found.is_some(), entries.contains_key(&key));
                    for face in 0..5 {
                        let known = found.is_some_and(|id| table.next_hop_mut(id, FaceId(face), now).is_some());
                        prop_assert_eq!(known, next_hops.contains_key(&(key, face)));
                    }
                }
            }
            table.run_timers(now.plus_ms(10_000), &mut 1000);
            prop_assert_eq!((table.len(), table.next_deadline_ns()), (0, None));
        }
    }

    #[test]
    fn a_full_table_replaces_the_entry_that_would_end_first_and_counts_it() {
        let mut table = measurements(8);
        for key in 0..8 {
            table.find_or_insert(key, ms(0), 1000 - key);
        }
        table.find_or_insert(100, ms(1), 5000);
        assert_eq!((table.len(), table.evicted()), (8, 1));
        assert!(table.find(7, ms(1)).is_none() && table.find(0, ms(1)).is_some() && table.find(100, ms(1)).is_some());
        for key in 200..10_000 {
            let id = table.find_or_insert(key, ms(2), 1000);
            table.next_hop_or_insert(id, FaceId(key), ms(2), 1000);
        }
        assert_eq!((table.len(), table.slots.len()), (8, 8));
    }

    #[test]
    fn next_hops_beyond_the_room_are_refused_and_counted() {
        let mut table = measurements(2);
        let id = table.find_or_insert(1, ms(0), 1000);
        let measured = (0..20).filter(|&face| table.next_hop_or_insert(id, FaceId(face), ms(0), 500).is_some()).count();
        assert_eq!((measured, table.next_hops_refused()), (1 + 2 * FURTHER_FACES_PER_ENTRY as usize, 11));
        assert!(table.next_hop_or_insert(id, FaceId(77), ms(600), 500).is_some(), "the old ones have made room");
    }

    #[test]
    fn an_entry_found_again_after_its_end_knows_nothing() {
        let mut table = measurements(2);
        let id = table.find_or_insert(1, ms(0), 100);
        table.get_mut(id).last_next_hop = Some(FaceId(5));
        assert_eq!(table.find(1, ms(100)), None, "though no timer has run");
        let id = table.find_or_insert(1, ms(100), 100);
        assert_eq!(table.get(id).last_next_hop, None);
    }
}
