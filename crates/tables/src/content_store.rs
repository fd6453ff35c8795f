//! Content Store: do we have this Data already?
//!
//! Source: NDN-DPDK's CS (direct and indirect entries in the name groups);
//! replacement is least recently used. Data is found under its own name
//! (*direct*) and under the names of at most [`MAX_INDIRECT`] Interests that it
//! answered (*indirect*: a prefix, or the name with the implicit digest).
//! Deviation from NFD: no ordered search, one Data per name (the latest).
//!
//! A Data is copied into memory of its own. Its account is its octets, its
//! name's, [`ENTRY_OVERHEAD_BYTES`], and per indirect name that name's octets and
//! [`INDIRECT_OVERHEAD_BYTES`]; their sum is kept within the capacity.
//!
//! What is evicted stays readable by its [`CsId`] until the batch ends, because
//! verdicts of the batch may refer to it; so the memory really held is the
//! capacity plus what one batch evicts, of which there are at most
//! [`MAX_EVICTED_PER_BATCH`] when a new Data is admitted.
//!
//! Cost: a hit is the group, 1-2 lines of the entry (64 bytes), the Data; touching it writes
//! 2 neighbours. Full: the least recently used go; a Data larger than the whole
//! capacity is refused.

use crate::name_group::{CsLink, NameGroup, NameGroups};
use crate::slab::{NIL, Slab};

/// Other names that one Data can be found under.
pub const MAX_INDIRECT: usize = 4;
/// Accounted per Data, beside its octets and its name's: entry, group, index, allocator,
/// and a share of what doubling leaves unused.
pub const ENTRY_OVERHEAD_BYTES: u64 = 320;
/// Accounted per indirect name, beside its octets: group and index.
pub const INDIRECT_OVERHEAD_BYTES: u64 = 192;
/// Evicted entries waiting for the end of the batch, above which nothing is admitted.
pub const MAX_EVICTED_PER_BATCH: usize = 16_384;

const _: () = assert!(
    size_of::<CsSlot>() + size_of::<NameGroup>() + 48 <= ENTRY_OVERHEAD_BYTES as usize
        && size_of::<NameGroup>() + 16 <= INDIRECT_OVERHEAD_BYTES as usize
);

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
    /// [`MAX_EVICTED_PER_BATCH`] entries wait for `end_of_batch`.
    #[error("too many evictions in one batch")]
    TooManyEvictions,
    /// There are as many names as tokens can name.
    #[error("no room for another name")]
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

const _: () = assert!(size_of::<CsSlot>() == 64);

#[derive(Default)]
struct CsSlot {
    data: Box<[u8]>,
    fresh_until_ns: u64,
    /// What this entry adds to the account.
    account_bytes: u64,
    /// The group of its own name; `NIL` = evicted.
    group: u32,
    /// Groups of indirect names, oldest first, then `NIL`.
    indirect: [u32; MAX_INDIRECT],
    newer: u32,
    older: u32,
    unsolicited: bool,
}

pub(crate) struct ContentStore {
    slots: Slab<CsSlot>,
    newest: u32,
    oldest: u32,
    /// Entries that are not evicted.
    len: u64,
    bytes: u64,
    capacity_bytes: u64,
    capacity_packets: u64,
    evictions: u64,
    evicted_in_batch: Vec<u32>,
}

impl ContentStore {
    pub(crate) fn new(capacity_bytes: u64, capacity_packets: u64) -> Self {
        Self {
            slots: Slab::new(NIL),
            newest: NIL,
            oldest: NIL,
            len: 0,
            bytes: 0,
            capacity_bytes,
            capacity_packets,
            evictions: 0,
            evicted_in_batch: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
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
        self.slots.is_live(id.0) && self.slots.get(id.0).group != NIL
    }

    pub(crate) fn entry<'a>(&'a self, groups: &'a NameGroups, id: CsId) -> CsEntry<'a> {
        assert!(self.slots.is_live(id.0), "Content Store entry {} does not exist", id.0);
        let slot = self.slots.get(id.0);
        CsEntry {
            data: &slot.data,
            name_value: (slot.group != NIL).then(|| &*groups.get(slot.group).name_value),
            fresh_until_ns: slot.fresh_until_ns,
            unsolicited: slot.unsolicited,
        }
    }

    pub(crate) fn insert(
        &mut self,
        groups: &mut NameGroups,
        (hash, name_value): (u64, &[u8]),
        data: &[u8],
        fresh_until_ns: u64,
        unsolicited: bool,
    ) -> CsInsert {
        let account_bytes = ENTRY_OVERHEAD_BYTES + data.len() as u64 + name_value.len() as u64;
        if account_bytes > self.capacity_bytes || self.capacity_packets == 0 {
            return CsInsert::Refused(CsRefusal::LargerThanCapacity);
        }
        let former = groups.find(hash, name_value).and_then(|group| match groups.get(group).cs {
            CsLink::Direct(former) => Some(former),
            _ => None,
        });
        if let Some(former) = former
            && *self.slots.get(former).data == *data
        {
            let slot = self.slots.get_mut(former);
            slot.fresh_until_ns = fresh_until_ns;
            slot.unsolicited &= unsolicited;
            self.touch(CsId(former));
            return CsInsert::Refreshed(CsId(former));
        }
        if self.evicted_in_batch.len() >= MAX_EVICTED_PER_BATCH {
            return CsInsert::Refused(CsRefusal::TooManyEvictions);
        }
        if let Some(former) = former {
            self.detach(groups, former);
        }
        self.evict_until_fits(groups, account_bytes, 1);
        let Some(group) = groups.find_or_create(hash, name_value) else {
            return CsInsert::Refused(CsRefusal::NamesFull);
        };
        let Some(id) = self.slots.allocate() else {
            groups.release_if_empty(group);
            return CsInsert::Refused(CsRefusal::NamesFull);
        };
        if let CsLink::Indirect(other) = groups.get(group).cs {
            self.forget_indirect(groups, other, group);
        }
        groups.get_mut(group).cs = CsLink::Direct(id);
        *self.slots.get_mut(id) = CsSlot {
            // N.B. Non-temporal stores (SSE2, 8,000-octet Data, store always evicting) gained nothing:
            // medians of 5 interleaved runs of the whole router 2.42 µs per packet plain, 2.70 streamed.
            data: data.into(),
            fresh_until_ns,
            account_bytes,
            group,
            indirect: [NIL; MAX_INDIRECT],
            newer: NIL,
            older: NIL,
            unsolicited,
        };
        self.link_newest(id);
        self.len += 1;
        self.bytes += account_bytes;
        if former.is_some() { CsInsert::Replaced(CsId(id)) } else { CsInsert::Stored(CsId(id)) }
    }

    pub(crate) fn add_indirect(&mut self, groups: &mut NameGroups, (hash, name_value): (u64, &[u8]), id: CsId) -> bool {
        let more_bytes = INDIRECT_OVERHEAD_BYTES + name_value.len() as u64;
        if !self.contains(id)
            || self.slots.get(id.0).account_bytes + more_bytes > self.capacity_bytes
            || self.evicted_in_batch.len() >= MAX_EVICTED_PER_BATCH
        {
            return false;
        }
        let Some(group) = groups.find_or_create(hash, name_value) else {
            return false;
        };
        match groups.get(group).cs {
            CsLink::Direct(_) => return false,
            CsLink::Indirect(other) if other == id.0 => return true,
            CsLink::Indirect(other) => self.forget_indirect(groups, other, group),
            CsLink::None => {}
        }
        groups.get_mut(group).cs = CsLink::Indirect(id.0);
        let oldest = self.slots.get(id.0).indirect[0];
        if self.slots.get(id.0).indirect[MAX_INDIRECT - 1] != NIL {
            self.forget_indirect(groups, id.0, oldest);
            groups.release_if_empty(oldest);
        }
        let slot = self.slots.get_mut(id.0);
        if let Some(place) = slot.indirect.iter_mut().find(|place| **place == NIL) {
            *place = group;
        }
        slot.account_bytes += more_bytes;
        self.bytes += more_bytes;
        // This entry is now the newest and fits alone, so it is not what goes.
        self.touch(id);
        self.evict_until_fits(groups, 0, 0);
        true
    }

    pub(crate) fn touch(&mut self, id: CsId) {
        if self.contains(id) && self.newest != id.0 {
            self.unlink(id.0);
            self.link_newest(id.0);
        }
    }

    pub(crate) fn set_capacity(&mut self, groups: &mut NameGroups, bytes: u64, packets: u64) {
        self.capacity_bytes = bytes;
        self.capacity_packets = packets;
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
            if groups.get(self.slots.get(id).group).name_value.starts_with(prefix_value) {
                self.detach(groups, id);
                erased += 1;
            }
        }
        (erased, (end < self.slots.extent()).then_some(end))
    }

    pub(crate) fn end_of_batch(&mut self) {
        for id in self.evicted_in_batch.drain(..) {
            self.slots.get_mut(id).data = Box::default();
            self.slots.release(id);
        }
        self.evicted_in_batch.shrink_to(MAX_EVICTED_PER_BATCH);
    }

    fn evict_until_fits(&mut self, groups: &mut NameGroups, more_bytes: u64, more_packets: u64) {
        while self.oldest != NIL
            && (self.bytes + more_bytes > self.capacity_bytes || self.len + more_packets > self.capacity_packets)
        {
            self.detach(groups, self.oldest);
            self.evictions += 1;
        }
    }

    /// Takes the entry out of every group and list; its octets stay until the batch ends.
    fn detach(&mut self, groups: &mut NameGroups, id: u32) {
        self.unlink(id);
        let slot = self.slots.get_mut(id);
        self.bytes -= slot.account_bytes;
        self.len -= 1;
        let own = std::mem::replace(&mut slot.group, NIL);
        let indirect = std::mem::replace(&mut slot.indirect, [NIL; MAX_INDIRECT]);
        for group in indirect.into_iter().chain([own]).filter(|&group| group != NIL) {
            groups.get_mut(group).cs = CsLink::None;
            groups.release_if_empty(group);
        }
        self.evicted_in_batch.push(id);
    }

    /// Takes `group` off the indirect names of entry `id`; the caller disposes of the group.
    fn forget_indirect(&mut self, groups: &mut NameGroups, id: u32, group: u32) {
        let slot = self.slots.get_mut(id);
        let Some(place) = slot.indirect.iter().position(|&other| other == group) else {
            return;
        };
        slot.indirect.copy_within(place + 1.., place);
        slot.indirect[MAX_INDIRECT - 1] = NIL;
        let group = groups.get_mut(group);
        let bytes = INDIRECT_OVERHEAD_BYTES + group.name_value.len() as u64;
        slot.account_bytes -= bytes;
        self.bytes -= bytes;
        group.cs = CsLink::None;
    }

    fn link_newest(&mut self, id: u32) {
        let second = std::mem::replace(&mut self.newest, id);
        let slot = self.slots.get_mut(id);
        (slot.newer, slot.older) = (NIL, second);
        if second == NIL {
            self.oldest = id;
        } else {
            self.slots.get_mut(second).newer = id;
        }
    }

    fn unlink(&mut self, id: u32) {
        let CsSlot { newer, older, .. } = *self.slots.get(id);
        match newer {
            NIL => self.newest = older,
            _ => self.slots.get_mut(newer).older = older,
        }
        match older {
            NIL => self.oldest = newer,
            _ => self.slots.get_mut(older).newer = newer,
        }
    }
}
