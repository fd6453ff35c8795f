//! Content Store: is this Data stored already?
//!
//! Source: NDN-DPDK's CS (direct and indirect entries in the name groups). Data is found under its own name
//! (*direct*) and under the names of at most [`MAX_INDIRECT`] Interests that it answered (*indirect*: a
//! prefix, or the name with the implicit digest). Deviations from NFD: the store has no ordered search, and
//! keeps one Data per name (the latest). With [`PrefixLookup::All`] it deviates in neither: it then keeps a
//! prefix index (`prefix_index.rs`) instead of indirect names.
//!
//! A Data is copied into an arena, in one piece, because verdicts lend it out. The *account* of a Data is
//! the memory that it takes: its block ([`stored_bytes`]), [`ENTRY_OVERHEAD_BYTES`], and the block of its
//! name if the name is long. Each indirect name adds [`INDIRECT_OVERHEAD_BYTES`], and a block if that name
//! is long. The store keeps the sum of all accounts within its capacity.
//!
//! The [policy](crate::cs_policy) decides which Data is stored and which is evicted. It combines any
//! admission with any eviction; its trait gives the order of the calls. The policy's mark lies in the
//! entry, next to the name's hash (drawn in `slot.rs`). The store asks the admission only if the Data would
//! not fit. It does not ask about Data whose name is stored already: the new Data replaces the old.
//!
//! Evicted Data can be read by its [`CsId`] until the batch ends, because verdicts of the batch may refer
//! to it. So the store holds its capacity plus what one batch evicts: at most [`MAX_EVICTED_PER_BATCH`]
//! Data when a new one is admitted. For evicted Data and scattered holes, the arena is larger than the
//! capacity by an eighth and 2 MiB. If that is not enough, the store evicts older Data, and refuses new
//! Data until the end of the batch makes room.
//!
//! The *place* of evicted Data, its slot and its block, goes to the next Data of its size in a later batch
//! (`places.rs`).
//!
//! Cost: a hit reads the group, 1 line of the entry and the Data, and writes what the policy writes. An
//! insertion that evicts writes 1 line of the new entry and the lines of the new Data. For the victim, it
//! writes 1 line of the entry, 1 of its group and 1 of the index, and 1-2 of its block if the next Data has
//! another size. Data that is not admitted is not copied: it costs only what the admission reads.
//! Bytes: [`ENTRY_OVERHEAD_BYTES`] counts an eviction queue. If a policy needs more, no account contains
//! the difference; [`PitCs::cs_policy_bytes`](crate::PitCs::cs_policy_bytes) reports it.
//! Full: the policy decides what is evicted. Data larger than the whole capacity is refused.

mod indirect;
mod outcome;
mod places;
pub mod policy;
mod policy_change;
mod prefix_index;
mod slot;
mod stages;
mod versions;

use crate::arena::{Arena, block_bytes};
use crate::cs_policy::{HASH_STEP, Newcomer, PolicyMark, RemovalReason};
use crate::name_group::{CsLink, GROUP_BYTES, NameGroups};
use crate::pages::PageSize;
use crate::pit::name_overflow;
use crate::slab::{NIL, Slab};
use places::{EvictedPlaces, Place};
use policy::{CsPolicy, PolicyInForce};
use prefix_index::PrefixIndex;
use slot::CsSlot;
use stages::MAX_NOTED_VICTIMS;
use std::io;

pub use outcome::{CsArrival, CsEntry, CsHit, CsId, CsInsert, CsRefusal, IndirectRefusal};
pub use prefix_index::PrefixLookup;
pub use slot::MAX_INDIRECT;
pub use versions::{CsWanted, MAX_VERSIONS};

/// Accounted per Data, beside its bytes: entry, group, index, queue.
pub const ENTRY_OVERHEAD_BYTES: u64 = 224;
/// Accounted per indirect name: group and index.
pub const INDIRECT_OVERHEAD_BYTES: u64 = 144;
/// The most evicted entries that may wait for the end of the batch; with more, nothing is admitted.
pub const MAX_EVICTED_PER_BATCH: u32 = 16_384;
/// The most bytes of a Content Store: the most that an arena can hold, less its room to spare.
pub const MAX_CAPACITY_BYTES: u64 = 28 << 30;
/// The most that one Data may add to the account: its field has 32 bits.
const MAX_ACCOUNT_BYTES: u64 = u32::MAX as u64;

/// Slab slots take 4 bytes each, and a bit in debug builds. An entry has a share of 5 in the queue, and two
/// values of 8 in the index; the second of them is for an indirect name.
const _: () = assert!(size_of::<CsSlot>() + 5 + GROUP_BYTES + 5 + 5 + 2 * 8 <= ENTRY_OVERHEAD_BYTES as usize);
const _: () = assert!(GROUP_BYTES + 5 + 8 <= INDIRECT_OVERHEAD_BYTES as usize);

/// What the account counts for Data of this many bytes.
pub fn stored_bytes(bytes: usize) -> u64 {
    block_bytes(bytes)
}

/// Data to be stored.
struct NewData<'a> {
    bytes: &'a [u8],
    /// What a block for these bytes takes.
    block_bytes: u64,
    newcomer: Newcomer,
}

pub(crate) struct ContentStore {
    slots: Slab<CsSlot>,
    data: Arena,
    policy: PolicyInForce,
    /// Entries that are not evicted.
    len: u64,
    indirect_len: u64,
    bytes: u64,
    capacity_bytes: u64,
    capacity_packets: u64,
    /// The most that one Data may add to the account.
    largest_account_bytes: u64,
    /// The most entries that the limits allow, and the most indirect names.
    entries_max: u64,
    evictions: u64,
    evicted: EvictedPlaces,
    /// When the last Data came.
    now_ns: u64,
    pages: PageSize,
    /// The entries that [`ContentStore::prefetch_victims`] has noted; perhaps stale.
    victims: Vec<u32>,
    /// Only if the store looks up under every prefix.
    prefix_index: Option<Box<PrefixIndex>>,
    unordered_names: u64,
}

impl ContentStore {
    /// The limits must be at most [`MAX_CAPACITY_BYTES`] and the most slots of a slab.
    pub(crate) fn new(
        capacity_bytes: u64,
        capacity_packets: u64,
        policy: CsPolicy,
        seed: u64,
        pages: PageSize,
    ) -> io::Result<Self> {
        let entries = entries_within(capacity_bytes, capacity_packets);
        Ok(Self {
            slots: Slab::new(slots_for(entries), pages)?,
            data: Arena::new(arena_bytes(capacity_bytes), pages)?,
            policy: PolicyInForce::new(policy, entries, seed, pages)?,
            len: 0,
            indirect_len: 0,
            bytes: 0,
            capacity_bytes,
            capacity_packets,
            largest_account_bytes: largest_account_bytes(capacity_bytes, capacity_packets),
            entries_max: entries.into(),
            evictions: 0,
            evicted: EvictedPlaces::NONE,
            now_ns: 0,
            pages,
            victims: Vec::with_capacity(2 * MAX_NOTED_VICTIMS),
            prefix_index: None,
            unordered_names: 0,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn indirect_len(&self) -> u64 {
        self.indirect_len
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn capacity(&self) -> (u64, u64) {
        (self.capacity_bytes, self.capacity_packets)
    }

    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    pub(crate) fn policy(&self) -> &CsPolicy {
        self.policy.choice()
    }

    pub(crate) fn policy_bytes(&self) -> usize {
        self.policy.bytes()
    }

    /// An Interest looks into the store: the policy counts it.
    #[inline]
    pub(crate) fn request(&mut self, hash: u64) {
        self.policy.request(hash);
    }

    #[inline]
    pub(crate) fn request_stored(&mut self, id: CsId, asked_hash: u64) {
        if !self.policy.counts_requests() {
            return;
        }
        let hash = self.slots.get(id.0).hash;
        if hash != asked_hash {
            self.policy.request(hash);
        }
    }

    /// Slots ever used.
    pub(crate) fn extent(&self) -> u32 {
        self.slots.extent()
    }

    pub(crate) fn contains(&self, id: CsId) -> bool {
        self.slots.peek(id.0).is_some_and(|slot| slot.group != NIL)
    }

    pub(crate) fn entry<'a>(&'a self, groups: &'a NameGroups, id: CsId) -> CsEntry<'a> {
        let slot = self.slots.get(id.0);
        CsEntry {
            data: self.data.get(slot.data_at, slot.data_bytes as usize),
            name_value: (slot.group != NIL).then(|| groups.name(slot.group)),
            fresh_until_ns: slot.fresh_until_ns,
            unsolicited: slot.unsolicited,
        }
    }

    /// `known` is the group of the name, if there is one.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        groups: &mut NameGroups,
        known: Option<u32>,
        (hash, name_value): (u64, &[u8]),
        data: &[u8],
        arrival: CsArrival,
    ) -> CsInsert {
        let block_bytes = stored_bytes(data.len());
        let account_bytes = ENTRY_OVERHEAD_BYTES + block_bytes + name_overflow(name_value);
        if !self.may_hold(account_bytes) {
            return CsInsert::Refused(CsRefusal::LargerThanCapacity);
        }
        let CsArrival { fresh_until_ns, now_ns, requests, unsolicited } = arrival;
        let newcomer = Newcomer { hash, account_bytes, requests, unsolicited, fresh_until_ns, now_ns };
        let data = &NewData { bytes: data, block_bytes, newcomer };
        self.now_ns = now_ns;
        let Some(group) = known else { return self.insert_new_name(groups, name_value, data) };
        match groups.get(group).cs() {
            CsLink::None => self.insert_new(groups, group, data),
            CsLink::Indirect(_) => self.insert_indirect(groups, group, data),
            CsLink::Direct(former) => self.insert_again(groups, (group, former), data),
        }
    }

    /// Stores Data of a name that has no group: it is unsolicited, or was asked for by another name.
    #[inline(never)]
    fn insert_new_name(&mut self, groups: &mut NameGroups, name_value: &[u8], data: &NewData<'_>) -> CsInsert {
        let place = match self.admit(groups, data) {
            Ok(place) => place,
            Err(refusal) => return CsInsert::Refused(refusal),
        };
        let Ok(group) = groups.create(data.newcomer.hash, name_value) else {
            self.free_place(place);
            return CsInsert::Refused(CsRefusal::NamesFull);
        };
        self.store(groups, group, place, data)
    }

    /// Stores Data of a name under which nothing is stored.
    #[inline(always)]
    fn insert_new(&mut self, groups: &mut NameGroups, group: u32, data: &NewData<'_>) -> CsInsert {
        match self.admit(groups, data) {
            Ok(place) => self.store(groups, group, place, data),
            Err(refusal) => CsInsert::Refused(refusal),
        }
    }

    /// Stores Data under whose name other Data is found until now.
    #[inline(never)]
    fn insert_indirect(&mut self, groups: &mut NameGroups, group: u32, data: &NewData<'_>) -> CsInsert {
        let place = match self.admit(groups, data) {
            Ok(place) => place,
            Err(refusal) => return CsInsert::Refused(refusal),
        };
        if let CsLink::Indirect(other) = groups.get(group).cs() {
            self.forget_indirect(groups, other, group);
        }
        self.store(groups, group, place, data)
    }

    /// Data of this name is stored already: the new Data replaces `former`, or is the same.
    #[inline(never)]
    fn insert_again(&mut self, groups: &mut NameGroups, (group, former): (u32, u32), data: &NewData<'_>) -> CsInsert {
        if self.refresh(groups, former, data.bytes, &data.newcomer) {
            return CsInsert::Refreshed(CsId(former));
        }
        if self.prefix_index.is_some() {
            return self.insert_version(groups, (group, former), data);
        }
        let place = match self.place_for(groups, data) {
            Ok(place) => place,
            Err(refusal) => return CsInsert::Refused(refusal),
        };
        // The former Data goes now, and its group stays: no eviction may take it away.
        groups.get_mut(group).set_cs(CsLink::Direct(place.id));
        self.erase(groups, former);
        match self.store(groups, group, place, data) {
            CsInsert::Stored(id) => CsInsert::Replaced(id),
            other => other,
        }
    }

    /// Asks the policy, if the store is full, and makes a place.
    #[inline(always)]
    fn admit(&mut self, groups: &mut NameGroups, data: &NewData<'_>) -> Result<Place, CsRefusal> {
        if !self.fits(data.newcomer.account_bytes, 1) && !self.policy.admits(&mut self.slots, &data.newcomer) {
            return Err(CsRefusal::NotAdmitted);
        }
        self.place_for(groups, data)
    }

    /// A place with a copy of `data`.
    #[inline(always)]
    fn place_for(&mut self, groups: &mut NameGroups, data: &NewData<'_>) -> Result<Place, CsRefusal> {
        if self.evicted.in_batch >= MAX_EVICTED_PER_BATCH {
            return Err(CsRefusal::TooManyEvictions);
        }
        self.take_place(data).inspect_err(|&refusal| {
            if refusal == CsRefusal::NoRoomInBatch {
                self.evict_bytes(groups, &data.newcomer);
            }
        })
    }

    /// Makes an entry of the Data at `place`, and evicts what no longer fits.
    #[inline(always)]
    fn store(
        &mut self,
        groups: &mut NameGroups,
        group: u32,
        Place { id, data_at }: Place,
        data: &NewData<'_>,
    ) -> CsInsert {
        let newcomer = &data.newcomer;
        // From here on the group is in use, and no eviction can take it away.
        groups.get_mut(group).set_cs(CsLink::Direct(id));
        self.policy.arriving(newcomer);
        while !self.fits(newcomer.account_bytes, 1) && self.evict(groups, newcomer) {}
        *self.slots.get_mut(id) = CsSlot {
            hash: newcomer.hash,
            mark: PolicyMark::default(),
            fresh_until_ns: newcomer.fresh_until_ns,
            account_bytes: newcomer.account_bytes as u32,
            data_at,
            data_bytes: data.bytes.len() as u32,
            group,
            indirect: [NIL; MAX_INDIRECT],
            evicted_before: NIL,
            unsolicited: newcomer.unsolicited,
        };
        self.len += 1;
        self.bytes += newcomer.account_bytes;
        self.policy.insert(&mut self.slots, id, newcomer);
        if self.prefix_index.is_some() {
            self.index_name(groups, group, newcomer.fresh_until_ns);
        }
        CsInsert::Stored(CsId(id))
    }

    /// If the entry holds the same bytes, begins its freshness anew; returns whether it does.
    fn refresh(&mut self, groups: &NameGroups, id: u32, data: &[u8], again: &Newcomer) -> bool {
        if !self.holds(id, data) {
            return false;
        }
        let slot = self.slots.get_mut(id);
        slot.fresh_until_ns = again.fresh_until_ns;
        slot.unsolicited &= again.unsolicited;
        let group = slot.group;
        self.policy.refresh(&mut self.slots, id, again);
        if self.prefix_index.is_some() {
            self.freshness_changed(groups, group);
        }
        true
    }

    #[inline]
    fn holds(&self, id: u32, data: &[u8]) -> bool {
        let slot = self.slots.get(id);
        slot.data_bytes as usize == data.len() && self.data.get(slot.data_at, data.len()) == data
    }

    #[inline]
    pub(crate) fn touch(&mut self, id: CsId) {
        if self.contains(id) {
            self.policy.hit(&mut self.slots, id.0);
        }
    }

    /// Makes room for these limits, if there is less; they are not in force yet.
    pub(crate) fn grow(&mut self, capacity_bytes: u64, capacity_packets: u64) -> io::Result<()> {
        let entries = entries_within(capacity_bytes, capacity_packets);
        self.slots.grow(slots_for(entries))?;
        self.data.grow(arena_bytes(capacity_bytes))?;
        // Last: growing may make a policy forget what it counted.
        self.policy.grow(entries)
    }

    /// Puts limits in force; there must be room for them.
    pub(crate) fn set_capacity(&mut self, groups: &mut NameGroups, bytes: u64, packets: u64) {
        self.capacity_bytes = bytes;
        self.capacity_packets = packets;
        self.largest_account_bytes = largest_account_bytes(bytes, packets);
        self.entries_max = entries_within(bytes, packets).into();
        let mut nobody = self.nobody();
        while !self.fits(0, 0) && self.evict(groups, &nobody) {
            nobody.hash = nobody.hash.wrapping_add(HASH_STEP);
        }
    }

    /// Erases at most `limit` entries under `prefix_value`. Looks at the slots from `start` on, at most
    /// `visits` of them. Returns how many were erased and where to go on, `None` = all slots were seen.
    pub(crate) fn erase_prefix(
        &mut self,
        groups: &mut NameGroups,
        prefix_value: &[u8],
        limit: usize,
        start: u32,
        visits: u32,
    ) -> (usize, Option<u32>) {
        let mut erased = 0;
        let end = start.saturating_add(visits).min(self.slots.extent());
        for id in start..end {
            if erased == limit {
                return (erased, Some(id));
            }
            if !self.contains(CsId(id)) {
                continue;
            }
            // Both are whole components back to back, so a prefix of the bytes
            // is a prefix of the name.
            if groups.name(self.slots.get(id).group).starts_with(prefix_value) {
                self.erase(groups, id);
                erased += 1;
            }
        }
        (erased, (end < self.slots.extent()).then_some(end))
    }

    #[inline(always)]
    fn fits(&self, more_bytes: u64, more_packets: u64) -> bool {
        self.bytes + more_bytes <= self.capacity_bytes && self.len + more_packets <= self.capacity_packets
    }

    /// Whether the store could hold one Data of this account.
    #[inline(always)]
    fn may_hold(&self, account_bytes: u64) -> bool {
        account_bytes <= self.largest_account_bytes
    }

    /// The newcomer to pass to a policy if there is none.
    fn nobody(&self) -> Newcomer {
        Newcomer { now_ns: self.now_ns, ..Newcomer::default() }
    }

    /// Makes room for the account of `newcomer` and `more_packets` entries.
    #[inline(never)]
    fn evict_until_fits(&mut self, groups: &mut NameGroups, more_packets: u64, newcomer: &Newcomer) {
        while !self.fits(newcomer.account_bytes, more_packets) && self.evict(groups, newcomer) {}
    }

    /// Evicts entries of at least as many bytes as `newcomer` has, to make a hole large enough.
    #[cold]
    fn evict_bytes(&mut self, groups: &mut NameGroups, newcomer: &Newcomer) {
        let aim = self.bytes.saturating_sub(newcomer.account_bytes);
        while self.bytes > aim && self.evict(groups, newcomer) {}
    }

    /// Evicts the entry that the policy names next; false if there is none.
    #[inline(always)]
    fn evict(&mut self, groups: &mut NameGroups, newcomer: &Newcomer) -> bool {
        let Some(victim) = self.policy.evict(&mut self.slots, newcomer) else { return false };
        self.take_out(groups, victim);
        self.evictions += 1;
        true
    }

    /// Erases the entry.
    #[inline(never)]
    fn erase(&mut self, groups: &mut NameGroups, id: u32) {
        self.policy.remove(&mut self.slots, id, RemovalReason::Erased);
        self.take_out(groups, id);
    }

    /// Takes an entry that the policy has removed out of every group; its bytes stay until the batch ends.
    #[inline(always)]
    fn take_out(&mut self, groups: &mut NameGroups, id: u32) {
        let slot = self.slots.get_mut(id);
        self.bytes -= u64::from(slot.account_bytes);
        self.len -= 1;
        slot.evicted_before = self.evicted.note(id);
        let own = std::mem::replace(&mut slot.group, NIL);
        // Without other names and other Data of the name, the own group is all that leads to it.
        if slot.indirect[0] != NIL || self.prefix_index.is_some() {
            self.take_out_of_names(groups, id, own);
        }
        groups.release_data(own, id);
    }

    /// Takes the entry out of all groups but that of its own name, and out of the prefix index.
    #[cold]
    fn take_out_of_names(&mut self, groups: &mut NameGroups, id: u32, own: u32) {
        let slot = self.slots.get_mut(id);
        self.indirect_len -= slot.indirect_len() as u64;
        let indirect = std::mem::replace(&mut slot.indirect, [NIL; MAX_INDIRECT]);
        if self.prefix_index.is_some() {
            self.unlink_version(groups, own, id);
        }
        indirect.into_iter().filter(|&group| group != NIL).for_each(|group| groups.release_data(group, id));
    }
}

/// How many entries the limits allow.
pub(crate) fn entries_within(capacity_bytes: u64, capacity_packets: u64) -> u32 {
    capacity_packets.min(capacity_bytes / ENTRY_OVERHEAD_BYTES).min(u64::from(NIL / 4)) as u32
}

/// The entries, those that wait for the end of the batch, and one for Data that replaces another.
fn slots_for(entries: u32) -> u32 {
    entries + MAX_EVICTED_PER_BATCH + 1
}

/// The largest account of one Data. Every account is above 0.
fn largest_account_bytes(capacity_bytes: u64, capacity_packets: u64) -> u64 {
    if capacity_packets == 0 { 0 } else { capacity_bytes.min(MAX_ACCOUNT_BYTES) }
}

/// The Data, and room to spare: see the module.
fn arena_bytes(capacity_bytes: u64) -> u64 {
    if capacity_bytes == 0 { 0 } else { capacity_bytes + capacity_bytes / 8 + (2 << 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long name that did not fit took a slot all the same, and the slot was never given back.
    #[test]
    fn a_name_without_room_takes_no_slot() {
        let mut groups = NameGroups::new(8, 0, PageSize::Base).unwrap();
        let mut store = ContentStore::new(4_096, 4, CsPolicy::default(), 1, PageSize::Base).unwrap();
        let refused = store.insert(&mut groups, None, (1, &[1; 100]), b"data", CsArrival::default());
        assert_eq!(refused, CsInsert::Refused(CsRefusal::NamesFull));
        assert_eq!((store.slots.len(), groups.len()), (0, 0));
        let stored = store.insert(&mut groups, None, (2, &[2; 10]), b"data", CsArrival::default());
        assert!(matches!(stored, CsInsert::Stored(_)), "{stored:?}");
    }
}
