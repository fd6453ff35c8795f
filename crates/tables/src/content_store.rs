//! Content Store: do we have this Data already?
//!
//! Source: NDN-DPDK's CS (direct and indirect entries in the name groups). Data is
//! found under its own name
//! (*direct*) and under the names of at most [`MAX_INDIRECT`] Interests that it
//! answered (*indirect*: a prefix, or the name with the implicit digest).
//! Deviation from NFD: no ordered search, one Data per name (the latest).
//!
//! A Data is copied into an arena, in one piece, because verdicts lend it out. Its
//! account is what it really takes: its block ([`stored_bytes`]), [`ENTRY_OVERHEAD_BYTES`],
//! the block of its name if that is long, and per indirect name [`INDIRECT_OVERHEAD_BYTES`]
//! and again the block of a long one; their sum is kept within the capacity.
//!
//! ```text
//! slot, 64 bytes, one line:
//!  0             8         16        20       24      28      32            48            49  64
//!  | fresh until | account | Data at | octets | group | place | indirect ×4 | unsolicited | 0 |
//! ```
//!
//! What is evicted stays readable by its [`CsId`] until the batch ends, because
//! verdicts of the batch may refer to it; so the memory really held is the
//! capacity plus what one batch evicts, of which there are at most
//! [`MAX_EVICTED_PER_BATCH`] when a new Data is admitted. The arena has an eighth of the
//! capacity and 2 MiB to spare for that and for scattered holes; when that does not
//! do, older Data go until the end of the batch makes room, and the new one is refused.
//!
//! Cost: a hit is the group, 1 line of the entry, the Data; touching it writes 1 line of
//! the eviction queue with [`CsPolicy::Lru`], and none with
//! [`CsPolicy::Fifo`]. An insertion that evicts: 1 line of the entry and those of the new Data, written;
//! of the victim 1 line of the entry, 1-2 of its block, 1 of its group and 1 of the index.
//! Full: as the [`CsPolicy`] says; a Data larger than the whole capacity is refused.

use crate::arena::{Arena, block_bytes};
use crate::eviction_queue::EvictionQueue;
use crate::name_group::{CsLink, GROUP_BYTES, GroupRefusal, NameGroups};
use crate::pages::PageSize;
use crate::pit::name_overflow;
use crate::slab::{NIL, Slab};
use arrayvec::ArrayVec;
use std::io;
use std::ops::Range;

/// Other names that one Data can be found under.
pub const MAX_INDIRECT: usize = 4;
/// Accounted per Data, beside its octets: entry, group, index, queue.
pub const ENTRY_OVERHEAD_BYTES: u64 = 224;
/// Accounted per indirect name: group and index.
pub const INDIRECT_OVERHEAD_BYTES: u64 = 144;
/// Evicted entries waiting for the end of the batch, above which nothing is admitted.
pub const MAX_EVICTED_PER_BATCH: u32 = 16_384;
/// The most octets of a Content Store: what an arena can hold, less its room to spare.
pub const MAX_CAPACITY_BYTES: u64 = 28 << 30;

/// Slab slots take 4 octets and a bit each; an entry has a share of 5 in the queue, and
/// the index has two values of 8 for it; an indirect name is the second of them.
const _: () = assert!(size_of::<CsSlot>() + 5 + GROUP_BYTES + 5 + 5 + 2 * 8 <= ENTRY_OVERHEAD_BYTES as usize);
const _: () = assert!(GROUP_BYTES + 5 + 8 <= INDIRECT_OVERHEAD_BYTES as usize);

/// Which Data goes when the Content Store is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CsPolicy {
    /// The least recently used: stored, refreshed, found, or given another name. The default, as NFD's.
    #[default]
    Lru,
    /// The first that was stored. A hit writes nothing.
    Fifo,
}

/// What the octets of a Data take.
pub fn stored_bytes(octets: usize) -> u64 {
    block_bytes(octets)
}

/// Names a stored Data, from insertion to the end of the batch that evicts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CsId(pub u32);

/// What was found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsHit {
    /// The Data.
    pub id: CsId,
    /// The name is the Data's own, not that of an Interest it once answered.
    pub direct: bool,
}

/// What became of a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsInsert {
    /// It is new.
    Stored(CsId),
    /// The same octets were there: their freshness starts anew.
    Refreshed(CsId),
    /// Other Data of the same name was there and went, with its indirect names.
    Replaced(CsId),
    /// It was not stored.
    Refused(CsRefusal),
}

impl CsInsert {
    /// The stored Data, unless it was refused.
    pub fn id(self) -> Option<CsId> {
        match self {
            Self::Stored(id) | Self::Refreshed(id) | Self::Replaced(id) => Some(id),
            Self::Refused(_) => None,
        }
    }
}

/// Why a Data was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CsRefusal {
    /// It alone is larger than the capacity (which may be zero).
    #[error("the Data is larger than the Content Store")]
    LargerThanCapacity,
    /// No hole is large enough before the batch ends; older Data was evicted to make one.
    #[error("no room in one piece before the batch ends")]
    NoRoomInBatch,
    /// [`MAX_EVICTED_PER_BATCH`] entries wait for `end_of_batch`.
    #[error("too many evictions in one batch")]
    TooManyEvictions,
    /// There is no room for another name, or none for a long one.
    #[error("no room for another name")]
    NamesFull,
}

/// Why a Data cannot be found under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IndirectRefusal {
    /// The Data is not stored (any more).
    #[error("the Data is not stored")]
    NotStored,
    /// It would be larger than the capacity.
    #[error("the Data and its names are larger than the Content Store")]
    LargerThanCapacity,
    /// Other Data has that name as its own.
    #[error("the name is that of other Data")]
    NameOfOtherData,
    /// [`MAX_EVICTED_PER_BATCH`] entries wait for `end_of_batch`.
    #[error("too many evictions in one batch")]
    TooManyEvictions,
    /// There are as many indirect names as the store may have Data, or there is no
    /// room for a long one. They are rare: a consumer that asks by prefix once goes on by full names.
    #[error("no room for another indirect name")]
    NamesFull,
}

/// A view of a stored Data.
#[derive(Clone, Copy, Debug)]
pub struct CsEntry<'a> {
    data: &'a [u8],
    name_value: Option<&'a [u8]>,
    fresh_until_ns: u64,
    unsolicited: bool,
}

impl<'a> CsEntry<'a> {
    /// The Data as it was inserted.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Its name; `None` once it was evicted.
    pub fn name_value(&self) -> Option<&'a [u8]> {
        self.name_value
    }

    /// Fresh up to and including this time.
    pub fn fresh_until_ns(&self) -> u64 {
        self.fresh_until_ns
    }

    /// Nobody had asked for it when it came.
    pub fn is_unsolicited(&self) -> bool {
        self.unsolicited
    }
}

#[repr(C, align(64))]
struct CsSlot {
    fresh_until_ns: u64,
    /// What this entry adds to the account.
    account_bytes: u64,
    data_at: u32,
    data_octets: u32,
    /// The group of its own name; `NIL` = evicted or not in use.
    group: u32,
    /// In the eviction queue; of an evicted entry: the one evicted before it in this batch.
    place: u32,
    /// Groups of indirect names, oldest first, then `NIL`.
    indirect: [u32; MAX_INDIRECT],
    unsolicited: bool,
}

const _: () = assert!(size_of::<CsSlot>() == 64);
const _: () = assert!(std::mem::offset_of!(CsSlot, unsolicited) == 48);

impl Default for CsSlot {
    fn default() -> Self {
        Self {
            fresh_until_ns: 0,
            account_bytes: 0,
            data_at: 0,
            data_octets: 0,
            group: NIL,
            place: NIL,
            indirect: [NIL; MAX_INDIRECT],
            unsolicited: false,
        }
    }
}

impl CsSlot {
    fn indirect_len(&self) -> usize {
        self.indirect.iter().filter(|&&group| group != NIL).count()
    }
}

pub(crate) struct ContentStore {
    slots: Slab<CsSlot>,
    data: Arena,
    queue: EvictionQueue,
    policy: CsPolicy,
    /// Entries that are not evicted.
    len: u64,
    indirect_len: u64,
    bytes: u64,
    capacity_bytes: u64,
    capacity_packets: u64,
    /// The most entries that the limits let in, and the most indirect names.
    entries_max: u64,
    evictions: u64,
    /// The last entry evicted in this batch; `NIL` = none.
    last_evicted: u32,
    evicted_in_batch: u32,
    /// What [`ContentStore::prefetch_victims`] has noted; perhaps stale.
    victims: ArrayVec<u32, MAX_NOTED_VICTIMS>,
}

impl ContentStore {
    /// The limits must be at most [`MAX_CAPACITY_BYTES`] and a slab's.
    pub(crate) fn new(
        capacity_bytes: u64,
        capacity_packets: u64,
        policy: CsPolicy,
        pages: PageSize,
    ) -> io::Result<Self> {
        let entries = entries_within(capacity_bytes, capacity_packets);
        Ok(Self {
            slots: Slab::new(slots_for(entries), pages)?,
            data: Arena::new(arena_bytes(capacity_bytes), pages)?,
            queue: EvictionQueue::new(entries, pages)?,
            policy,
            len: 0,
            indirect_len: 0,
            bytes: 0,
            capacity_bytes,
            capacity_packets,
            entries_max: entries.into(),
            evictions: 0,
            last_evicted: NIL,
            evicted_in_batch: 0,
            victims: ArrayVec::new(),
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

    pub(crate) fn contains(&self, id: CsId) -> bool {
        self.slots.peek(id.0).is_some_and(|slot| slot.group != NIL)
    }

    pub(crate) fn entry<'a>(&'a self, groups: &'a NameGroups, id: CsId) -> CsEntry<'a> {
        assert!(self.slots.is_live(id.0), "Content Store entry {} does not exist", id.0);
        let slot = self.slots.get(id.0);
        CsEntry {
            data: self.data.get(slot.data_at, slot.data_octets as usize),
            name_value: (slot.group != NIL).then(|| groups.name(slot.group)),
            fresh_until_ns: slot.fresh_until_ns,
            unsolicited: slot.unsolicited,
        }
    }

    /// `known` is the group of the name, if there is one.
    pub(crate) fn insert(
        &mut self,
        groups: &mut NameGroups,
        known: Option<u32>,
        (hash, name_value): (u64, &[u8]),
        data: &[u8],
        fresh_until_ns: u64,
        unsolicited: bool,
    ) -> CsInsert {
        let account_bytes = ENTRY_OVERHEAD_BYTES + stored_bytes(data.len()) + name_overflow(name_value);
        if account_bytes > self.capacity_bytes || self.capacity_packets == 0 {
            return CsInsert::Refused(CsRefusal::LargerThanCapacity);
        }
        let former = known.map_or(CsLink::None, |group| groups.get(group).cs());
        if let CsLink::Direct(former) = former
            && self.refresh(former, data, fresh_until_ns, unsolicited)
        {
            return CsInsert::Refreshed(CsId(former));
        }
        if self.evicted_in_batch >= MAX_EVICTED_PER_BATCH {
            return CsInsert::Refused(CsRefusal::TooManyEvictions);
        }
        let Some(data_at) = self.data.allocate(data) else {
            self.evict_bytes(groups, account_bytes);
            return CsInsert::Refused(CsRefusal::NoRoomInBatch);
        };
        let group = known.map_or_else(|| groups.create(hash, name_value), Ok);
        let (Ok(group), Some(id)) = (group, self.slots.allocate()) else {
            self.data.free(data_at);
            if let Ok(group) = group {
                groups.release_if_empty(group);
            }
            return CsInsert::Refused(CsRefusal::NamesFull);
        };
        if let CsLink::Indirect(other) = former {
            self.forget_indirect(groups, other, group);
        }
        // From here on the group is in use, and no eviction can take it away.
        groups.get_mut(group).set_cs(CsLink::Direct(id));
        if let CsLink::Direct(former) = former {
            self.detach(groups, former);
        }
        self.evict_until_fits(groups, account_bytes, 1);
        *self.slots.get_mut(id) = CsSlot {
            fresh_until_ns,
            account_bytes,
            data_at,
            data_octets: data.len() as u32,
            group,
            place: self.queue.push_newest(id),
            indirect: [NIL; MAX_INDIRECT],
            unsolicited,
        };
        self.len += 1;
        self.bytes += account_bytes;
        let is_replacement = matches!(former, CsLink::Direct(_));
        if is_replacement { CsInsert::Replaced(CsId(id)) } else { CsInsert::Stored(CsId(id)) }
    }

    /// Freshness starts anew if the entry holds the same octets; says whether it does.
    fn refresh(&mut self, id: u32, data: &[u8], fresh_until_ns: u64, unsolicited: bool) -> bool {
        let slot = self.slots.get_mut(id);
        if slot.data_octets as usize != data.len() || self.data.get(slot.data_at, data.len()) != data {
            return false;
        }
        slot.fresh_until_ns = fresh_until_ns;
        slot.unsolicited &= unsolicited;
        self.touch(CsId(id));
        true
    }

    pub(crate) fn add_indirect(
        &mut self,
        groups: &mut NameGroups,
        (hash, name_value): (u64, &[u8]),
        id: CsId,
    ) -> Result<(), IndirectRefusal> {
        let more_bytes = INDIRECT_OVERHEAD_BYTES + name_overflow(name_value);
        if !self.contains(id) {
            return Err(IndirectRefusal::NotStored);
        }
        if self.slots.get(id.0).account_bytes + more_bytes > self.capacity_bytes {
            return Err(IndirectRefusal::LargerThanCapacity);
        }
        if self.evicted_in_batch >= MAX_EVICTED_PER_BATCH {
            return Err(IndirectRefusal::TooManyEvictions);
        }
        let known = groups.find(hash, name_value);
        match known.map_or(CsLink::None, |group| groups.get(group).cs()) {
            CsLink::Direct(_) => return Err(IndirectRefusal::NameOfOtherData),
            CsLink::Indirect(other) if other == id.0 => return Ok(()),
            CsLink::Indirect(other) => self.forget_indirect(groups, other, known.unwrap_or(NIL)),
            CsLink::None => {
                let is_one_more = self.slots.get(id.0).indirect_len() < MAX_INDIRECT;
                if is_one_more && self.indirect_len >= self.entries_max {
                    return Err(IndirectRefusal::NamesFull);
                }
            }
        }
        let group = match known.map_or_else(|| groups.create(hash, name_value), Ok) {
            Ok(group) => group,
            Err(GroupRefusal::Full | GroupRefusal::NoRoomForName) => return Err(IndirectRefusal::NamesFull),
        };
        groups.get_mut(group).set_cs(CsLink::Indirect(id.0));
        let slot = self.slots.get(id.0);
        if slot.indirect_len() == MAX_INDIRECT {
            let oldest = slot.indirect[0];
            self.forget_indirect(groups, id.0, oldest);
            groups.release_if_empty(oldest);
        }
        let slot = self.slots.get_mut(id.0);
        slot.indirect[slot.indirect_len()] = group;
        slot.account_bytes += more_bytes;
        self.bytes += more_bytes;
        self.indirect_len += 1;
        self.touch(id);
        // First in, first out: this entry may itself be what goes.
        self.evict_until_fits(groups, 0, 0);
        if self.contains(id) { Ok(()) } else { Err(IndirectRefusal::NotStored) }
    }

    pub(crate) fn touch(&mut self, id: CsId) {
        if self.policy == CsPolicy::Fifo || !self.contains(id) {
            return;
        }
        let place = self.slots.get(id.0).place;
        if !self.queue.is_newest(place) {
            self.queue.remove(place);
            self.slots.get_mut(id.0).place = self.queue.push_newest(id.0);
        }
    }

    /// Room for these limits, if there is less; they are not in force yet.
    pub(crate) fn grow(&mut self, capacity_bytes: u64, capacity_packets: u64) -> io::Result<()> {
        let entries = entries_within(capacity_bytes, capacity_packets);
        self.slots.grow(slots_for(entries))?;
        self.queue.grow(entries)?;
        self.data.grow(arena_bytes(capacity_bytes))
    }

    /// Puts limits in force that there is room for.
    pub(crate) fn set_capacity(&mut self, groups: &mut NameGroups, bytes: u64, packets: u64) {
        self.capacity_bytes = bytes;
        self.capacity_packets = packets;
        self.entries_max = entries_within(bytes, packets).into();
        self.evict_until_fits(groups, 0, 0);
    }

    /// Erases entries under `prefix_value`, at most `limit`, looking at the slots
    /// from `start` on, at most `visits` of them. Gives how many were erased and
    /// where to go on, `None` = all slots were seen.
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
            // Both are whole components back to back, so a prefix of the octets
            // is a prefix of the name.
            if groups.name(self.slots.get(id).group).starts_with(prefix_value) {
                self.detach(groups, id);
                erased += 1;
            }
        }
        (erased, (end < self.slots.extent()).then_some(end))
    }

    pub(crate) fn end_of_batch(&mut self) {
        while self.last_evicted != NIL {
            let id = self.last_evicted;
            let slot = self.slots.get(id);
            self.last_evicted = slot.place;
            self.data.free(slot.data_at);
            self.slots.release(id);
        }
        self.evicted_in_batch = 0;
    }

    fn evict_until_fits(&mut self, groups: &mut NameGroups, more_bytes: u64, more_packets: u64) {
        while self.bytes + more_bytes > self.capacity_bytes || self.len + more_packets > self.capacity_packets {
            let Some(oldest) = self.queue.oldest() else { return };
            self.detach(groups, oldest);
            self.evictions += 1;
        }
    }

    /// Evicts entries of at least so many octets, so that holes come about where none are.
    fn evict_bytes(&mut self, groups: &mut NameGroups, bytes: u64) {
        let aim = self.bytes.saturating_sub(bytes);
        while self.bytes > aim {
            let Some(oldest) = self.queue.oldest() else { return };
            self.detach(groups, oldest);
            self.evictions += 1;
        }
    }

    /// Takes the entry out of every group and list; its octets stay until the batch ends.
    fn detach(&mut self, groups: &mut NameGroups, id: u32) {
        let slot = self.slots.get_mut(id);
        self.queue.remove(slot.place);
        self.bytes -= slot.account_bytes;
        self.len -= 1;
        self.indirect_len -= slot.indirect_len() as u64;
        slot.place = std::mem::replace(&mut self.last_evicted, id);
        let own = std::mem::replace(&mut slot.group, NIL);
        let indirect = std::mem::replace(&mut slot.indirect, [NIL; MAX_INDIRECT]);
        self.evicted_in_batch += 1;
        for group in indirect.into_iter().chain([own]).filter(|&group| group != NIL) {
            // Other Data may have taken the name over.
            if matches!(groups.get(group).cs(), CsLink::Direct(other) | CsLink::Indirect(other) if other == id) {
                groups.get_mut(group).set_cs(CsLink::None);
                groups.release_if_empty(group);
            }
        }
    }

    /// Takes `group` off the indirect names of entry `id`; the caller disposes of the group.
    fn forget_indirect(&mut self, groups: &mut NameGroups, id: u32, group: u32) {
        let slot = self.slots.get_mut(id);
        let Some(place) = slot.indirect.iter().position(|&other| other == group) else {
            return;
        };
        slot.indirect.copy_within(place + 1.., place);
        slot.indirect[MAX_INDIRECT - 1] = NIL;
        let bytes = INDIRECT_OVERHEAD_BYTES + name_overflow(groups.name(group));
        slot.account_bytes -= bytes;
        self.bytes -= bytes;
        self.indirect_len -= 1;
        groups.get_mut(group).set_cs(CsLink::None);
    }
}

/// For the stages of a batch; see [`crate::pit_cs`].
impl ContentStore {
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    /// Notes the entries that `count` Data would evict now, none if there is room.
    pub(crate) fn prefetch_victims(&mut self, count: usize) {
        let headroom = count as u64 * LARGE_DATA_BYTES;
        let is_full = self.bytes + headroom > self.capacity_bytes || self.len + count as u64 > self.capacity_packets;
        self.victims.clear();
        if is_full {
            self.victims.extend(self.queue.iter().take(count.min(MAX_NOTED_VICTIMS)));
            self.victims.iter().for_each(|&id| self.slots.prefetch(id));
            self.queue.prefetch(2 * count);
        }
    }

    pub(crate) fn prefetch_victim_groups(&self, groups: &NameGroups, which: Range<usize>) {
        for slot in self.victims(which) {
            groups.prefetch_header(slot.group);
            self.data.prefetch(slot.data_at, 1);
            self.data.prefetch_following(slot.data_at, slot.data_octets as usize);
        }
    }

    pub(crate) fn prefetch_victim_buckets(&self, groups: &NameGroups, which: Range<usize>) {
        for group in self.victims(which).filter_map(|slot| groups.peek(slot.group)) {
            groups.prefetch_bucket(group.hash());
        }
    }

    fn victims(&self, which: Range<usize>) -> impl Iterator<Item = &CsSlot> {
        let end = which.end.min(self.victims.len());
        let noted = self.victims.get(which.start..end).unwrap_or_default();
        noted.iter().filter_map(|&id| self.slots.peek(id))
    }
}

/// Victims that are noted for prefetching: a batch.
const MAX_NOTED_VICTIMS: usize = 64;

/// A store with less room than this for each Data of a batch is taken as full.
const LARGE_DATA_BYTES: u64 = 9_000;

/// How many entries the limits let in.
pub(crate) fn entries_within(capacity_bytes: u64, capacity_packets: u64) -> u32 {
    capacity_packets.min(capacity_bytes / ENTRY_OVERHEAD_BYTES).min(u64::from(NIL / 4)) as u32
}

/// The entries, what waits for the end of the batch, and one that takes another's place.
fn slots_for(entries: u32) -> u32 {
    entries + MAX_EVICTED_PER_BATCH + 1
}

/// The Data, and room to spare: see the module.
fn arena_bytes(capacity_bytes: u64) -> u64 {
    if capacity_bytes == 0 { 0 } else { capacity_bytes + capacity_bytes / 8 + (2 << 20) }
}
