//! PIT and Content Store behind one index: is this name pending, and is it stored?
//!
//! Source: So et al. 2013; NDN-DPDK's PIT-CS composite table. One hash probe
//! finds the [name group](crate::name_group), which leads to the
//! [PIT entries](crate::pit) and the [Content Store](crate::content_store) entry.
//! Deviation: PIT entries of all four selector combinations belong to one group, so that one token
//! satisfies them all.
//!
//! Memory: every array is mapped at its full size when the tables are made, and touched when it is used
//! ([`crate::pages`]). No operation allocates, except [`PitCs::cs_set_capacity`] beyond the former limits.
//!
//! Cost, in lines that must come from memory when the tables are much larger than the caches (names up to
//! 96 bytes; the forwarder's state `R` has 168 bytes):
//!
//! | operation | index | group | PIT entry | Content Store |
//! | --- | --- | --- | --- | --- |
//! | Interest that is new | 1 | 2, written | 3, written (4 if the rest is above 24 bytes) | – |
//! | Data by name, satisfies | 1 | 2 | 3 | – |
//! | Data by token, satisfies | 1, to remove the name; 0 if it is stored | 2 | 3 | – |
//! | Content Store hit | 1 | 2 | – | 1, the Data; LRU: 1 of the queue |
//! | Data stored, nothing evicted | 0, known from its Interest | 0 | – | 1, the Data, written |
//! | the Data evicted for it | 1 | 1 | – | 1, 1-2 of the block if sizes differ |
//!
//! The alarm of a new entry costs 1 line more. The slot freed last is reused first, so the lines written are
//! often still cached. The stages of a batch fetch these lines ahead: see [`PitCs::prefetch_bucket`] and
//! its neighbours.
//!
//! N.B. A core drops prefetches when too many are in progress; this shows only in measured times. This was
//! measured on these tables alone (Zen 4, 2^20 Interests outstanding, a full store); no record was kept. If
//! each stage of satisfaction ran over the whole batch of 64 before the next stage began, the stages gained
//! less than with stages a few packets apart.
//!
//! Limits: [`PitCsConfig`] bounds entries and bytes. Groups are ≤ PIT entries + 2 × stored Data + 1,
//! clamped so that tokens can name all of them. A table that shrank keeps its memory.
//! Writers: the worker that owns the tables.

use crate::content_store::policy::CsPolicy;
use crate::content_store::{
    ContentStore, CsArrival, CsEntry, CsHit, CsId, CsInsert, CsWanted, ENTRY_OVERHEAD_BYTES, IndirectRefusal,
    MAX_CAPACITY_BYTES, PrefixLookup, entries_within,
};
use crate::head_room;
use crate::name_group::{
    CsLink, GroupHint, GroupId, GroupRefusal, GroupToken, INLINE_NAME_BYTES, MAX_GROUPS, NameGroups, Probed,
};
use crate::name_hash::{HashKey, hash_name};
use crate::pages::PageSize;
use crate::pit::{INLINE_REST_BYTES, Pit, PitEntry, PitId, PitRefusal, Recycle, Variant, name_overflow};
use crate::sip_hash::SipHash;
use crate::slab::NIL;
use std::io;
use std::ops::Range;

/// The most PIT entries: half of the groups that tokens can name.
pub const MAX_PIT_ENTRIES: u32 = MAX_GROUPS / 2;

/// The limits of a [`PitCs`].
#[derive(Clone, Debug, PartialEq)]
pub struct PitCsConfig {
    /// PIT entries, at most [`MAX_PIT_ENTRIES`].
    pub pit_capacity_entries: u32,
    /// Bytes of Interests and names that are too large to be kept inline, with the
    /// rounding of their blocks ([`crate::pit::overflow_bytes`]).
    pub interest_overflow_bytes: u64,
    /// Content Store, accounted as [`crate::content_store`] says; 0 = store nothing.
    /// Clamped to [`MAX_CAPACITY_BYTES`].
    pub cs_capacity_bytes: u64,
    /// Content Store entries; clamped to (2²⁶ − 1 − PIT entries) / 2. 0 = store nothing.
    pub cs_capacity_packets: u64,
    /// Which Data is stored, and which is evicted first.
    pub cs_policy: CsPolicy,
    /// Under which prefixes stored Data is found.
    pub cs_prefix_lookup: PrefixLookup,
    /// The pages that the tables lie on. Explicit huge pages are taken at once.
    pub pages: PageSize,
}

/// PIT and Content Store; `R` is what the forwarder keeps per PIT entry.
///
/// An id is valid until its entry or group is removed. Using one after that is a mistake of the caller: it
/// panics where the check costs nothing, always in debug builds, and else gives an unspecified entry.
pub struct PitCs<R> {
    key: HashKey,
    groups: NameGroups,
    pit: Pit<R>,
    cs: ContentStore,
    interest_overflow_bytes: u64,
}

impl<R: Recycle> PitCs<R> {
    /// Empty tables. Every `hash` argument of a call must be made with this `key`.
    ///
    /// # Errors
    /// If the kernel does not map the memory: its address space, or reserved huge pages.
    pub fn new(config: PitCsConfig, key: HashKey) -> io::Result<Self> {
        let PitCsConfig { interest_overflow_bytes, cs_policy, pages, .. } = config;
        let pit_entries = config.pit_capacity_entries.min(MAX_PIT_ENTRIES);
        let (bytes, packets) = clamp_capacity(config.cs_capacity_bytes, config.cs_capacity_packets, pit_entries);
        let groups = groups_for(pit_entries, bytes, packets);
        let mut cs = ContentStore::new(bytes, packets, cs_policy, policy_seed(&key), pages)?;
        if config.cs_prefix_lookup == PrefixLookup::All {
            cs = cs.with_prefix_index(groups)?;
        }
        Ok(Self {
            key,
            groups: NameGroups::new(groups, overflow_arena_bytes(interest_overflow_bytes, bytes), pages)?,
            pit: Pit::new(pit_entries, interest_overflow_bytes, pages)?,
            cs,
            interest_overflow_bytes,
        })
    }

    /// The key that `hash` arguments must be made with.
    pub fn key(&self) -> &HashKey {
        &self.key
    }
}

/// Name groups.
impl<R: Recycle> PitCs<R> {
    /// The group of exactly this name, if anything is pending or stored under it.
    #[inline]
    pub fn find(&self, hash: u64, name_value: &[u8]) -> Option<GroupId> {
        self.groups.find(hash, name_value).map(GroupId)
    }

    /// The name of a group.
    #[inline(always)]
    pub fn group_name(&self, group: GroupId) -> &[u8] {
        self.groups.name(group.0)
    }

    /// The pending Interests of a group, by [`Variant`] as index.
    #[inline(always)]
    pub fn pit_of_group(&self, group: GroupId) -> [Option<PitId>; 4] {
        self.groups.get(group.0).pit.map(|id| (id != NIL).then_some(PitId(id)))
    }

    /// The pending Interest of a group and a variant.
    #[inline(always)]
    pub fn pit_of_variant(&self, group: GroupId, variant: Variant) -> Option<PitId> {
        let id = self.groups.get(group.0).pit[variant as usize];
        (id != NIL).then_some(PitId(id))
    }

    /// The pending Interest of a group, if there is exactly one.
    #[inline(always)]
    pub fn only_pit_of_group(&self, group: GroupId) -> Option<PitId> {
        match self.groups.get(group.0).pit {
            [id, NIL, NIL, NIL] | [NIL, id, NIL, NIL] | [NIL, NIL, id, NIL] | [NIL, NIL, NIL, id] => {
                (id != NIL).then_some(PitId(id))
            }
            _ => None,
        }
    }

    /// The token of this group. It names no later group until the slot was freed 2¹⁴ times.
    #[inline(always)]
    pub fn token(&self, group: GroupId) -> GroupToken {
        self.groups.token(group.0)
    }

    /// The group of a token, unless the group was freed.
    #[inline(always)]
    pub fn group_by_token(&self, token: GroupToken) -> Option<GroupId> {
        self.groups.by_token(token).map(GroupId)
    }

    /// How many groups there are.
    pub fn group_len(&self) -> usize {
        self.groups.len()
    }
}

/// Pending Interest Table.
impl<R: Recycle> PitCs<R> {
    /// Finds the entry of this name and variant, or makes it (`true`).
    ///
    /// `rest` is the part after the Name in the Interest's TLV-VALUE. An existing entry keeps its Interest.
    ///
    /// # Errors
    /// [`PitRefusal::Full`] if a new entry is needed and the PIT is full; [`PitRefusal::OverflowFull`] if a
    /// large Interest or name exceeds the bytes set aside for them.
    pub fn pit_insert(
        &mut self,
        hash: u64,
        name_value: &[u8],
        variant: Variant,
        rest: &[u8],
    ) -> Result<(PitId, bool), PitRefusal> {
        let found = self.find(hash, name_value);
        let known = found.and_then(|group| self.pit_of_variant(group, variant));
        match known {
            Some(id) => Ok((id, false)),
            None => self.pit_insert_new(found, hash, name_value, variant, rest).map(|(id, _)| (id, true)),
        }
    }

    /// Makes the entry of this name and variant, which does not exist. `found` is the result of [`PitCs::find`] or
    /// [`PitCs::find_probed`] for this name: nothing may have been removed or added in between.
    ///
    /// # Errors
    /// As [`PitCs::pit_insert`].
    #[inline(always)]
    pub fn pit_insert_new(
        &mut self,
        found: Option<GroupId>,
        hash: u64,
        name_value: &[u8],
        variant: Variant,
        rest: &[u8],
    ) -> Result<(PitId, &mut PitEntry<R>), PitRefusal> {
        debug_assert_eq!(found, self.find(hash, name_value), "what was found has changed");
        let is_short = name_value.len() <= INLINE_NAME_BYTES && rest.len() <= INLINE_REST_BYTES;
        if found.is_some() || !is_short {
            let id = self.pit_insert_in_general(found.map(|group| group.0), hash, name_value, variant, rest)?;
            return Ok((PitId(id), self.pit.slots.get_mut(id)));
        }
        let Some(id) = self.pit.slots.allocate() else { return Err(PitRefusal::Full) };
        let Some(group) = self.groups.create_short(hash, name_value, variant, id) else {
            self.pit.slots.release(id);
            return Err(PitRefusal::Full);
        };
        let entry = self.pit.slots.get_mut(id);
        entry.begin(GroupId(group), variant, rest.len() as u16, rest);
        Ok((PitId(id), entry))
    }

    #[inline(never)]
    fn pit_insert_in_general(
        &mut self,
        known: Option<u32>,
        hash: u64,
        name_value: &[u8],
        variant: Variant,
        rest: &[u8],
    ) -> Result<u32, PitRefusal> {
        let is_first = known.is_none_or(|id| !self.groups.get(id).has_pit_entry());
        let new_name = is_first.then_some(name_value);
        self.pit.admits(rest, new_name)?;
        let group = match known {
            Some(group) => group,
            None => self.groups.create(hash, name_value).map_err(|refusal| match refusal {
                GroupRefusal::Full => PitRefusal::Full,
                GroupRefusal::NoRoomForName => PitRefusal::OverflowFull,
            })?,
        };
        let allocated = self.pit.allocate(&mut self.groups.overflow, GroupId(group), variant, rest, new_name);
        match allocated {
            Ok(id) => self.groups.get_mut(group).pit[variant as usize] = id,
            Err(_) => self.groups.release_if_empty(group),
        }
        allocated
    }

    /// What follows the name in the Interest of an entry.
    pub fn pit_rest(&self, id: PitId) -> &[u8] {
        self.pit.rest(&self.groups.overflow, id.0)
    }

    /// Appends the whole Interest of an entry, byte for byte as it came: TLV numbers have one form only
    /// (packet-format §1; NDN packet specification 0.3, §1.1).
    pub fn pit_interest(&self, id: PitId, out: &mut Vec<u8>) {
        let (name, rest) = (self.group_name(self.pit(id).group()), self.pit_rest(id));
        let mut name_head = TlvHead::default();
        name_head.write(TYPE_NAME, name.len());
        let mut head = TlvHead::default();
        head.write(TYPE_INTEREST, name_head.bytes().len() + name.len() + rest.len());
        for part in [head.bytes(), name_head.bytes(), name, rest] {
            out.extend_from_slice(part);
        }
    }

    /// The entry.
    #[inline]
    pub fn pit(&self, id: PitId) -> &PitEntry<R> {
        self.pit.slots.get(id.0)
    }

    /// The entry, to change its state.
    #[inline]
    pub fn pit_mut(&mut self, id: PitId) -> &mut PitEntry<R> {
        self.pit.slots.get_mut(id.0)
    }

    /// Whether an entry has this id now.
    pub fn pit_exists(&self, id: PitId) -> bool {
        self.pit.slots.peek(id.0).is_some_and(PitEntry::exists)
    }

    /// Removes the entry.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline(always)]
    pub fn pit_remove(&mut self, id: PitId) {
        let entry = self.pit.slots.get_mut(id.0);
        let (group_id, variant, has_long_rest) = (entry.end().0, entry.variant(), entry.has_long_rest());
        let group = self.groups.get_mut(group_id);
        let is_last = group.unlink_pit(variant, id.0);
        let is_stored = group.cs() != CsLink::None;
        if has_long_rest || group.has_long_name() {
            let last_name = if is_last { name_overflow(self.groups.name(group_id)) } else { 0 };
            self.pit.give_back(&mut self.groups.overflow, id.0, last_name);
        }
        self.pit.slots.release(id.0);
        if is_last && !is_stored {
            self.groups.release(group_id);
        }
    }

    /// How many Interests are pending.
    pub fn pit_len(&self) -> usize {
        self.pit.slots.len() as usize
    }

    /// How many Interests may be pending: every [`PitId`] is below this.
    pub fn pit_capacity_entries(&self) -> u32 {
        self.pit.slots.capacity()
    }

    /// Bytes of large Interests and names held now, with the rounding of their blocks.
    pub fn pit_overflow_bytes(&self) -> u64 {
        self.pit.overflow_bytes()
    }

    /// Every entry's id is below this.
    pub fn pit_extent(&self) -> u32 {
        self.pit.slots.extent()
    }

    /// Every entry, in the order of slots. Visits slots from the first on until it has seen all entries.
    pub fn pit_iter_ids(&self) -> impl Iterator<Item = PitId> + '_ {
        (0..self.pit.slots.extent()).map(PitId).filter(|&id| self.pit_exists(id)).take(self.pit_len())
    }
}

/// Content Store.
impl<R: Recycle> PitCs<R> {
    /// Stores a copy of the Data, if the policy admits it, and evicts what no longer fits.
    pub fn cs_insert(&mut self, hash: u64, name_value: &[u8], data: &[u8], arrival: CsArrival) -> CsInsert {
        let known = self.groups.find(hash, name_value);
        self.cs.insert(&mut self.groups, known, (hash, name_value), data, arrival)
    }

    /// [`PitCs::cs_insert`] with the result that [`PitCs::find`] or [`PitCs::find_probed`] has just given
    /// for this name: nothing may have been removed or added in between.
    pub fn cs_insert_found(
        &mut self,
        found: Option<GroupId>,
        (hash, name_value): (u64, &[u8]),
        data: &[u8],
        arrival: CsArrival,
    ) -> CsInsert {
        debug_assert_eq!(found, self.find(hash, name_value), "what was found has changed");
        let known = found.map(|group| group.0);
        self.cs.insert(&mut self.groups, known, (hash, name_value), data, arrival)
    }

    /// Lets the Data also be found under the name of an Interest that it answered.
    ///
    /// An indirect entry of other Data is replaced. A Data has at most
    /// [`MAX_INDIRECT`](crate::content_store::MAX_INDIRECT) such names; beyond that the oldest is dropped.
    /// In all there are at most as many as there may be Data.
    ///
    /// # Errors
    /// [`IndirectRefusal`] says why not. Stored Data stays, except what is evicted to make room for the
    /// name, which may be this Data.
    pub fn cs_add_indirect(&mut self, hash: u64, interest_name_value: &[u8], id: CsId) -> Result<(), IndirectRefusal> {
        self.cs.add_indirect(&mut self.groups, (hash, interest_name_value), id)
    }

    /// The Data stored under the group's name. The caller checks freshness and, for an indirect hit, that
    /// the Interest matches the Data.
    #[inline]
    pub fn cs_lookup(&self, group: GroupId) -> Option<CsHit> {
        match self.groups.get(group.0).cs() {
            CsLink::None => None,
            CsLink::Direct(id) => Some(CsHit { id: CsId(id), direct: true }),
            CsLink::Indirect(id) => Some(CsHit { id: CsId(id), direct: false }),
        }
    }

    /// The first stored Data in canonical order whose name begins with `prefix_value`; with `fresh_at_ns`
    /// the first that is fresh then. Also `None` if the store does not look up under all prefixes.
    #[inline]
    pub fn cs_first_under(&self, prefix_value: &[u8], fresh_at_ns: Option<u64>) -> Option<CsId> {
        self.cs.first_under(&self.groups, prefix_value, fresh_at_ns)
    }

    /// The first Data, by digest, of exactly the group's name that satisfies `wanted`.
    pub fn cs_version(&self, group: GroupId, wanted: CsWanted<'_>) -> Option<CsId> {
        self.cs.version(&self.groups, group.0, wanted)
    }

    /// Under which prefixes stored Data is found.
    pub fn cs_prefix_lookup(&self) -> PrefixLookup {
        if self.cs.has_prefix_index() { PrefixLookup::All } else { PrefixLookup::Own }
    }

    /// Bytes of memory mapped for look-ups under all prefixes.
    pub fn cs_prefix_index_bytes(&self) -> usize {
        self.cs.prefix_index_bytes()
    }

    /// How often Data came whose name is too long to be found under its prefixes.
    pub fn cs_unordered_names(&self) -> u64 {
        self.cs.unordered_names()
    }

    /// The stored Data. If a batch evicts it, it can be read to the end of that batch.
    #[inline]
    pub fn cs(&self, id: CsId) -> CsEntry<'_> {
        self.cs.entry(&self.groups, id)
    }

    /// Whether the entry is stored and not evicted.
    pub fn cs_contains(&self, id: CsId) -> bool {
        self.cs.contains(id)
    }

    /// Tells the policy that an Interest of this name came, before its answer is known.
    #[inline]
    pub fn cs_request(&mut self, hash: u64) {
        self.cs.request(hash);
    }

    /// Tells the policy that the entry answered an Interest.
    #[inline]
    pub fn cs_touch(&mut self, id: CsId) {
        self.cs.touch(id);
    }

    /// [`PitCs::cs_request`] of the entry's own name, if it answers an Interest of another name
    /// (`asked_hash`). When Data must go, the policy compares how often each was asked for, by whatever
    /// name.
    #[inline]
    pub fn cs_request_stored(&mut self, id: CsId, asked_hash: u64) {
        self.cs.request_stored(id, asked_hash);
    }

    /// Changes the limits, clamped as in [`PitCsConfig`], and evicts down to them.
    ///
    /// Growing maps more memory and may rebuild the index from all names. Shrinking visits every Data that
    /// it evicts, and frees it at the end of the batch.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the limits grow no further than they were:
    /// [`PitCs::cs_capacity`] says what is in force.
    pub fn cs_set_capacity(&mut self, bytes: u64, packets: u64) -> io::Result<()> {
        let (mut bytes, mut packets) = clamp_capacity(bytes, packets, self.pit.slots.capacity());
        let grown = self.cs_grow(bytes, packets);
        if grown.is_err() {
            let (former_bytes, former_packets) = self.cs.capacity();
            (bytes, packets) = (bytes.min(former_bytes), packets.min(former_packets));
        }
        self.cs.set_capacity(&mut self.groups, bytes, packets);
        grown
    }

    fn cs_grow(&mut self, bytes: u64, packets: u64) -> io::Result<()> {
        let (former_bytes, former_packets) = self.cs.capacity();
        let more_packets = packets.saturating_sub(former_packets).saturating_mul(ENTRY_OVERHEAD_BYTES);
        let more = bytes.saturating_sub(former_bytes).saturating_add(more_packets);
        if more > 0 && !head_room::is_there(more as usize) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let groups = groups_for(self.pit.slots.capacity(), bytes, packets);
        // First: every group and entry needs a place in this index.
        self.cs.grow_prefix_index(bytes, packets, groups)?;
        self.groups.grow(groups, overflow_arena_bytes(self.interest_overflow_bytes, bytes))?;
        self.cs.grow(bytes, packets)
    }

    /// The limits in force: bytes, packets.
    pub fn cs_capacity(&self) -> (u64, u64) {
        self.cs.capacity()
    }

    /// How many Interest names lead to Data of another name.
    pub fn cs_indirect_len(&self) -> usize {
        self.cs.indirect_len() as usize
    }

    /// How many Data are stored.
    pub fn cs_len(&self) -> usize {
        self.cs.len() as usize
    }

    /// Accounted bytes of the stored Data.
    pub fn cs_bytes(&self) -> u64 {
        self.cs.bytes()
    }

    /// The policy in force.
    pub fn cs_policy(&self) -> &CsPolicy {
        self.cs.policy()
    }

    /// Changes the policy. All Data stays stored, in the order in which the former policy would have
    /// evicted it. Visits every entry. Does nothing if this policy, with these options, is in force
    /// already.
    ///
    /// # Errors
    /// If the kernel does not map the policy's memory; then the former policy stays.
    pub fn cs_set_policy(&mut self, policy: CsPolicy) -> io::Result<()> {
        self.cs.set_policy(policy, policy_seed(&self.key))
    }

    /// Bytes of memory that the policy has mapped; its marks lie in the entries.
    pub fn cs_policy_bytes(&self) -> usize {
        self.cs.policy_bytes()
    }

    /// Shows stored Data, at most those of `visits` slots from `start` (first 0) on. Returns the next `start` if slots
    /// are left.
    pub fn cs_each_step(&self, start: u32, visits: u32, mut each: impl FnMut(CsEntry<'_>)) -> Option<u32> {
        let (extent, end) = (self.cs.extent(), start.saturating_add(visits).min(self.cs.extent()));
        let stored = (start..end).map(CsId).filter(|id| self.cs.contains(*id));
        stored.for_each(|id| each(self.cs.entry(&self.groups, id)));
        (end < extent).then_some(end)
    }

    /// How many Data the limits evicted.
    pub fn cs_evictions(&self) -> u64 {
        self.cs.evictions()
    }

    /// Erases at most `limit` Data whose name starts with the prefix; returns how many.
    ///
    /// Visits every slot ever used; [`PitCs::cs_erase_prefix_step`] does it in pieces.
    pub fn cs_erase_prefix(&mut self, prefix_value: &[u8], limit: usize) -> usize {
        self.cs.erase_prefix(&mut self.groups, prefix_value, limit, 0, u32::MAX).0
    }

    /// A piece of [`PitCs::cs_erase_prefix`]: at most `visits` slots from `start` (first 0) on. Returns how
    /// many were erased, and the next `start` if slots are left.
    pub fn cs_erase_prefix_step(
        &mut self,
        prefix_value: &[u8],
        limit: usize,
        start: u32,
        visits: u32,
    ) -> (usize, Option<u32>) {
        self.cs.erase_prefix(&mut self.groups, prefix_value, limit, start, visits)
    }

    /// Frees the Data evicted since the last call: its ids may not be used any more. Nor may results of
    /// [`PitCs::probe`].
    pub fn end_of_batch(&mut self) {
        self.cs.end_of_batch();
        self.groups.end_of_batch();
    }
}

/// The stages of a batch. Each call begins to fetch lines. It reads only lines that the call before it in
/// the list began to fetch a stage ago. All are hints: they change no answer, and may be stale when used.
///
/// For every packet: [`PitCs::prefetch_bucket`], then [`PitCs::probe`] and [`PitCs::prefetch_group`], then
/// [`PitCs::prefetch_entries`], then act, with [`PitCs::find_probed`]. Once per batch, as far apart as
/// possible: [`PitCs::prefetch_victims`], [`PitCs::prefetch_victim_links`].
impl<R: Recycle> PitCs<R> {
    /// Begins to fetch the index bucket of a name.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.groups.prefetch_bucket(hash);
    }

    /// Begins to fetch what the store's policy remembers of a name.
    #[inline]
    pub fn prefetch_cs_request(&self, hash: u64) {
        self.cs.prefetch_request(hash);
    }

    /// [`PitCs::prefetch_cs_request`] for the name of this group, whose first line was fetched.
    #[inline(always)]
    pub fn prefetch_cs_request_of(&self, hint: GroupHint) {
        if let Some(group) = self.groups.peek(hint.0) {
            self.cs.prefetch_request(group.hash());
        }
    }

    /// The group that a hint means and the hash of its name, if the group exists and has this name.
    #[inline(always)]
    pub fn group_if_named(&self, hint: GroupHint, name_value: &[u8]) -> Option<(GroupId, u64)> {
        let hash = self.groups.hash_if_named(hint.0, name_value)?;
        Some((GroupId(hint.0), hash))
    }

    /// The group that probably has this name; compares fingerprints only, and reads no group.
    #[inline]
    pub fn probe(&self, hash: u64) -> Probed {
        self.groups.probe(hash)
    }

    /// Begins to fetch both lines of a group.
    #[inline]
    pub fn prefetch_group(&self, hint: GroupHint) {
        self.groups.prefetch(hint.0);
    }

    /// Begins to fetch one of a group's PIT entries (the two lines that Data needs) and its Content Store
    /// entry. Returns the PIT entry, so that its timer can be fetched too. A group rarely has several.
    #[inline(always)]
    pub fn prefetch_entries(&self, hint: GroupHint) -> Option<PitId> {
        let group = self.groups.peek(hint.0)?;
        if let CsLink::Direct(id) | CsLink::Indirect(id) = group.cs() {
            self.cs.prefetch(id);
        }
        let [first, second, third, fourth] = group.pit;
        let id = first.min(second).min(third.min(fourth)); // NIL is greater than all ids
        self.pit.slots.prefetch_lines(id, 2);
        (id != NIL).then_some(PitId(id))
    }

    /// [`PitCs::find`] with the result of a probe for this hash since the last [`PitCs::end_of_batch`]: it looks at the
    /// candidate before the index. If there was none, it asks the index only if a name of such a hash has come since. A
    /// candidate of another hash does not change the answer.
    #[inline(always)]
    pub fn find_probed(&self, hash: u64, name_value: &[u8], probed: Probed) -> Option<GroupId> {
        self.groups.find_probed(hash, name_value, probed).map(GroupId)
    }

    /// Notes the Content Store entries that `count` insertions (64 at most) would evict, and begins to
    /// fetch them. Notes none if there is room. Also begins to fetch the eviction queue's lines for the
    /// next call.
    pub fn prefetch_victims(&mut self, count: usize) {
        self.cs.prefetch_victims(count);
    }

    /// Begins to fetch the lines that evicting the noted entries will write, selected by their order: groups,
    /// index buckets, and the blocks of their Data.
    #[inline(always)]
    pub fn prefetch_victim_links(&self, which: Range<usize>) {
        self.cs.prefetch_victim_links(&self.groups, which);
    }
}

const TYPE_INTEREST: u8 = 0x05;
const TYPE_NAME: u8 = 0x07;

/// TLV-TYPE and TLV-LENGTH, in the shortest form, the only one allowed (packet-format §1; NDN packet
/// specification 0.3, §1.1).
#[derive(Default)]
struct TlvHead {
    bytes: [u8; 6],
    len: usize,
}

impl TlvHead {
    fn write(&mut self, type_number: u8, value_bytes: usize) {
        self.bytes[0] = type_number;
        self.len = match value_bytes {
            0..=252 => {
                self.bytes[1] = value_bytes as u8;
                2
            }
            253..=0xffff => {
                self.bytes[1] = 253;
                self.bytes[2..4].copy_from_slice(&(value_bytes as u16).to_be_bytes());
                4
            }
            _ => {
                self.bytes[1] = 254;
                self.bytes[2..6].copy_from_slice(&(value_bytes as u32).to_be_bytes());
                6
            }
        };
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The seed of the policy's random choices. They cannot be predicted without the key, and reveal nothing of
/// it.
fn policy_seed(key: &HashKey) -> u64 {
    let mut hash = SipHash::<2, 4>::new([hash_name(key, &[]), 0]);
    hash.write(b"content store policy");
    hash.finish()
}

/// Limits the Content Store so that tokens can name all groups, and the PIT never runs out of them.
fn clamp_capacity(bytes: u64, packets: u64, pit_entries: u32) -> (u64, u64) {
    (bytes.min(MAX_CAPACITY_BYTES), packets.min(u64::from(MAX_GROUPS - 1 - pit_entries) / 2))
}

/// PIT entries, stored Data, as many indirect names, and one for Data that replaces another. Indirect names
/// are rare: the worst case would be 5 × as many, and leave four fifths of the index empty.
fn groups_for(pit_entries: u32, cs_bytes: u64, cs_packets: u64) -> u32 {
    pit_entries + 2 * entries_within(cs_bytes, cs_packets) + 1
}

/// Both limits count blocks of the arena; an eighth and 1 MiB are to spare for holes.
fn overflow_arena_bytes(interest_overflow_bytes: u64, cs_bytes: u64) -> u64 {
    let bytes = interest_overflow_bytes.saturating_add(cs_bytes);
    bytes.saturating_add(bytes / 8).saturating_add(1 << 20)
}
