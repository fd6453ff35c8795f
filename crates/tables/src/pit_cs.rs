//! PIT and Content Store behind one index: is this name pending, and is it stored?
//!
//! Source: So et al. 2013; NDN-DPDK's PIT-CS composite table. One hash probe
//! finds the [name group](crate::name_group), which leads to the
//! [PIT entries](crate::pit) and the [Content Store](crate::content_store) entry.
//! Deviation: PIT entries of all four selector combinations hang off one group,
//! so that one token satisfies them all.
//!
//! Cost: see the three parts. Memory: all slabs start empty and double up to
//! their limits: [`PitCsConfig`] bounds entries and octets, and groups are
//! ≤ PIT entries + 5 × stored Data, clamped so that tokens can name all of them.
//! A table that shrank keeps its slabs.
//! Who may write: the one worker that owns it.

use crate::content_store::{ContentStore, CsEntry, CsHit, CsId, CsInsert, MAX_INDIRECT};
use crate::name_group::{CsLink, GroupId, GroupToken, MAX_GROUPS, NameGroups};
use crate::name_hash::HashKey;
use crate::pit::{Pit, PitEntry, PitId, PitRefusal, Recycle, Variant};
use crate::slab::NIL;

/// The most PIT entries: half of the groups that tokens can name.
pub const MAX_PIT_ENTRIES: u32 = MAX_GROUPS / 2;

/// The limits of a [`PitCs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PitCsConfig {
    /// PIT entries, at most [`MAX_PIT_ENTRIES`].
    pub pit_capacity_entries: u32,
    /// Octets of Interests and names that are too large to be kept inline.
    pub interest_overflow_bytes: u64,
    /// Content Store, accounted as [`crate::content_store`] says; 0 = store nothing.
    pub cs_capacity_bytes: u64,
    /// Content Store entries; clamped to (2²⁶ − PIT entries) / 5. 0 = store nothing.
    pub cs_capacity_packets: u64,
}

/// PIT and Content Store; `R` is what the forwarder keeps per PIT entry.
///
/// Ids are good until what they name is removed. Using one after that is a
/// mistake of the caller: it panics where that costs nothing, always in debug
/// builds, and gives an unspecified entry otherwise.
pub struct PitCs<R> {
    key: HashKey,
    groups: NameGroups,
    pit: Pit<R>,
    cs: ContentStore,
}

impl<R: Recycle> PitCs<R> {
    /// Empty tables. `key` must be the one that the hashes of calls are made with.
    pub fn new(config: PitCsConfig, key: HashKey) -> Self {
        let pit_entries = config.pit_capacity_entries.min(MAX_PIT_ENTRIES);
        let pit = Pit::new(pit_entries, config.interest_overflow_bytes);
        let packets = clamp_packets(config.cs_capacity_packets, pit_entries);
        let cs = ContentStore::new(config.cs_capacity_bytes, packets);
        Self { key, groups: NameGroups::new(), pit, cs }
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

    /// [`PitCs::find`] of every name of a batch. Results are hints: a change in
    /// between can remove or add a group, so whoever acts on one compares the name again.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn find_batch(&self, names: &[(u64, &[u8])], out: &mut [Option<GroupId>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (&(hash, name_value), result) in names.iter().zip(out) {
            *result = self.find(hash, name_value);
        }
    }

    /// The name of a group.
    #[inline]
    pub fn group_name(&self, group: GroupId) -> &[u8] {
        &self.groups.get(group.0).name_value
    }

    /// The pending Interests of a group, by [`Variant`] as index.
    #[inline]
    pub fn pit_of_group(&self, group: GroupId) -> [Option<PitId>; 4] {
        self.groups.get(group.0).pit.map(|id| (id != NIL).then_some(PitId(id)))
    }

    /// The token that names this group and no later one.
    pub fn token(&self, group: GroupId) -> GroupToken {
        self.groups.token(group.0)
    }

    /// The group of a token, unless it is gone.
    #[inline]
    pub fn group_by_token(&self, token: GroupToken) -> Option<GroupId> {
        self.groups.by_token(token).map(GroupId)
    }

    /// How many names are held.
    pub fn group_len(&self) -> usize {
        self.groups.len()
    }
}

/// Pending Interest Table.
impl<R: Recycle> PitCs<R> {
    /// The entry of this name and variant, made if it is not there (`true`).
    ///
    /// An entry that is there keeps the Interest it has.
    pub fn pit_insert(
        &mut self,
        hash: u64,
        name_value: &[u8],
        variant: Variant,
        interest: &[u8],
    ) -> Result<(PitId, bool), PitRefusal> {
        let known = self.groups.find(hash, name_value).map(|id| self.groups.get(id));
        if let Some(group) = known
            && group.pit[variant as usize] != NIL
        {
            return Ok((PitId(group.pit[variant as usize]), false));
        }
        let pending = known.is_some_and(|group| group.has_pit_entry());
        let new_name = (!pending).then_some(name_value);
        self.pit.admits(interest, new_name)?;
        let group = self.groups.find_or_create(hash, name_value).ok_or(PitRefusal::Full)?;
        let Some(id) = self.pit.allocate(GroupId(group), variant, interest, new_name) else {
            self.groups.release_if_empty(group);
            return Err(PitRefusal::Full);
        };
        self.groups.get_mut(group).pit[variant as usize] = id;
        Ok((PitId(id), true))
    }

    /// Replaces the Interest of an entry; if refused, it keeps the one it has.
    pub fn pit_set_interest(&mut self, id: PitId, interest: &[u8]) -> Result<(), PitRefusal> {
        self.pit.set_interest(id.0, interest)
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
        self.pit.slots.is_live(id.0)
    }

    /// Removes the entry and recycles its state.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn pit_remove(&mut self, id: PitId) {
        assert!(self.pit_exists(id), "PIT entry {} does not exist", id.0);
        let entry = self.pit(id);
        let (group_id, variant) = (entry.group().0, entry.variant());
        let group = self.groups.get_mut(group_id);
        group.pit[variant as usize] = NIL;
        let last_name = (!group.has_pit_entry()).then_some(&*group.name_value);
        self.pit.release(id.0, last_name);
        self.groups.release_if_empty(group_id);
    }

    /// How many Interests are pending.
    pub fn pit_len(&self) -> usize {
        self.pit.slots.len() as usize
    }

    /// How many Interests may be pending: every [`PitId`] is below this.
    pub fn pit_capacity_entries(&self) -> u32 {
        self.pit.slots.capacity()
    }

    /// Octets of large Interests and names held now.
    pub fn pit_overflow_bytes(&self) -> u64 {
        self.pit.overflow_bytes()
    }

    /// Every entry, in the order of slots; visits all slots ever used, 64 at a time.
    pub fn pit_iter_ids(&self) -> impl Iterator<Item = PitId> + '_ {
        self.pit.slots.live_ids().map(PitId)
    }
}

/// Content Store.
impl<R: Recycle> PitCs<R> {
    /// Stores a copy of the Data, most recently used, and evicts what no longer fits.
    pub fn cs_insert(
        &mut self,
        hash: u64,
        name_value: &[u8],
        data: &[u8],
        fresh_until_ns: u64,
        unsolicited: bool,
    ) -> CsInsert {
        let name = (hash, name_value);
        self.cs.insert(&mut self.groups, name, data, fresh_until_ns, unsolicited)
    }

    /// Lets the Data also be found under the name of an Interest that it answered;
    /// says whether it is.
    ///
    /// Not if the entry was evicted, or if other Data has that name as its own; an
    /// indirect entry of other Data is taken over. At most
    /// [`MAX_INDIRECT`] per entry, the oldest goes.
    pub fn cs_add_indirect(&mut self, hash: u64, interest_name_value: &[u8], id: CsId) -> bool {
        self.cs.add_indirect(&mut self.groups, (hash, interest_name_value), id)
    }

    /// What is stored under the group's name. The caller checks freshness, and
    /// for an indirect hit that the Interest matches the Data.
    #[inline]
    pub fn cs_lookup(&self, group: GroupId) -> Option<CsHit> {
        match self.groups.get(group.0).cs {
            CsLink::None => None,
            CsLink::Direct(id) => Some(CsHit { id: CsId(id), direct: true }),
            CsLink::Indirect(id) => Some(CsHit { id: CsId(id), direct: false }),
        }
    }

    /// The stored Data, readable to the end of the batch that evicts it.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn cs(&self, id: CsId) -> CsEntry<'_> {
        self.cs.entry(&self.groups, id)
    }

    /// Whether the entry is stored and not evicted.
    pub fn cs_contains(&self, id: CsId) -> bool {
        self.cs.contains(id)
    }

    /// Makes the entry the most recently used.
    #[inline]
    pub fn cs_touch(&mut self, id: CsId) {
        self.cs.touch(id);
    }

    /// Changes the limits and evicts down to them; `packets` is clamped as in [`PitCsConfig`].
    ///
    /// Shrinking visits everything that goes, and frees it at the end of the batch.
    pub fn cs_set_capacity(&mut self, bytes: u64, packets: u64) {
        let packets = clamp_packets(packets, self.pit.slots.capacity());
        self.cs.set_capacity(&mut self.groups, bytes, packets);
    }

    /// The limits in force: bytes, packets.
    pub fn cs_capacity(&self) -> (u64, u64) {
        self.cs.capacity()
    }

    /// How many Data are stored.
    pub fn cs_len(&self) -> usize {
        self.cs.len() as usize
    }

    /// What is stored, in bytes, as accounted.
    pub fn cs_bytes(&self) -> u64 {
        self.cs.bytes()
    }

    /// How many Data went because of the limits.
    pub fn cs_evictions(&self) -> u64 {
        self.cs.evictions()
    }

    /// Erases at most `limit` Data whose name starts with the prefix and says how many.
    ///
    /// Visits every slot ever used; [`PitCs::cs_erase_prefix_step`] does it in pieces.
    pub fn cs_erase_prefix(&mut self, prefix_value: &[u8], limit: usize) -> usize {
        self.cs.erase_prefix(&mut self.groups, prefix_value, limit, 0, u32::MAX).0
    }

    /// A piece of [`PitCs::cs_erase_prefix`]: at most `visits` slots from `start`
    /// (first 0) on. Gives how many were erased, and the next `start` if it is not done.
    pub fn cs_erase_prefix_step(
        &mut self,
        prefix_value: &[u8],
        limit: usize,
        start: u32,
        visits: u32,
    ) -> (usize, Option<u32>) {
        self.cs.erase_prefix(&mut self.groups, prefix_value, limit, start, visits)
    }

    /// Frees what was evicted since the last call: no id of it may be used any more.
    pub fn end_of_batch(&mut self) {
        self.cs.end_of_batch();
    }
}

/// Groups ≤ PIT entries + stored Data × (own name + indirect names) must be within
/// what tokens can name, so that the PIT never runs out of groups.
fn clamp_packets(packets: u64, pit_capacity_entries: u32) -> u64 {
    packets.min(u64::from(MAX_GROUPS - pit_capacity_entries) / (1 + MAX_INDIRECT as u64))
}

/// SHIM
#[derive(Clone, Copy, Debug)]
pub struct GroupHint(u32);
/// SHIM
impl<R: Recycle> PitCs<R> {
    /// SHIM
    pub fn prefetch_bucket(&self, _hash: u64) {}
    /// SHIM
    pub fn probe(&self, _hash: u64) -> Option<GroupHint> {
        None
    }
    /// SHIM
    pub fn prefetch_group(&self, _hint: GroupHint) {}
    /// SHIM
    pub fn prefetch_entries(&self, _hint: GroupHint) -> Option<PitId> {
        None
    }
    /// SHIM
    pub fn find_hinted(&self, hash: u64, name_value: &[u8], _hint: Option<GroupHint>) -> Option<GroupId> {
        self.find(hash, name_value)
    }
    /// SHIM
    pub fn prefetch_victims(&self, _n: usize) {}
    /// SHIM
    pub fn prefetch_victim_groups(&self, _n: usize) {}
    /// SHIM
    pub fn prefetch_victim_buckets(&self, _n: usize) {}
    /// SHIM
    pub fn prefetch_free(&self, _n: usize) {}
}
