//! Versions: Data with the same name but different bytes. Only a store that answers under every prefix
//! keeps them.
//!
//! The versions of a name form a list in the order of their implicit digests, as in NFD's store; the name's
//! group leads to the first. Digests are computed when a second version arrives. The digest of a single
//! version is computed when an Interest asks by digest. Admission, eviction and the account treat each
//! version as an entry.
//!
//! Cost: storing the second version takes two SHA-256, one of them for the first version; each later one
//! takes one. A look-up visits the list up to the version that satisfies it. Limit: a name has at most
//! [`MAX_VERSIONS`]; a further one replaces the version whose freshness ends first.

use super::places::Place;
use super::prefix_index::PrefixIndex;
use super::slot::CsSlot;
use super::{ContentStore, CsId, CsInsert, MAX_INDIRECT, NewData, entries_within, slots_for};
use crate::cs_policy::PolicyMark;
use crate::name_group::{CsLink, NameGroups};
use crate::slab::NIL;
use namewire_packet::digest::sha256;
use std::io;

/// The most Data of one name.
pub const MAX_VERSIONS: usize = 16;

/// What an Interest asks for beside a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsWanted<'a> {
    /// The Data must be fresh at this time.
    pub fresh_at_ns: Option<u64>,
    /// The Data must have this implicit digest.
    pub digest: Option<&'a [u8; 32]>,
}

impl ContentStore {
    /// Makes the store answer under every prefix. It must be empty.
    pub(crate) fn with_prefix_index(mut self, groups: u32) -> io::Result<Self> {
        let entries = self.entries_max as u32;
        self.prefix_index = Some(Box::new(PrefixIndex::new(entries, self.slots.capacity(), groups, self.pages)?));
        Ok(self)
    }

    /// Makes room in the index for these limits and this number of names, if there is less. To be called
    /// before there is room for them elsewhere.
    pub(crate) fn grow_prefix_index(&mut self, bytes: u64, packets: u64, groups: u32) -> io::Result<()> {
        let entries = entries_within(bytes, packets);
        self.prefix_index.as_mut().map_or(Ok(()), |index| index.grow(entries, slots_for(entries), groups))
    }

    pub(crate) fn has_prefix_index(&self) -> bool {
        self.prefix_index.is_some()
    }

    /// Bytes mapped.
    pub(crate) fn prefix_index_bytes(&self) -> usize {
        self.prefix_index.as_ref().map_or(0, |index| index.bytes())
    }

    /// Names that got Data and are too long to be found under a prefix, counted when they came.
    pub(crate) fn unordered_names(&self) -> u64 {
        self.unordered_names
    }

    /// The first Data under a prefix that satisfies, in the order of full names.
    pub(crate) fn first_under(&self, groups: &NameGroups, prefix: &[u8], fresh_at_ns: Option<u64>) -> Option<CsId> {
        let group = self.prefix_index.as_ref()?.first_under(groups, prefix, fresh_at_ns)?;
        self.version(groups, group, CsWanted { fresh_at_ns, digest: None })
    }

    /// The first Data of exactly this name that satisfies `wanted`.
    pub(crate) fn version(&self, groups: &NameGroups, group: u32, wanted: CsWanted<'_>) -> Option<CsId> {
        let CsLink::Direct(first) = groups.get(group).cs() else { return None };
        let is_wanted = |&id: &u32| {
            let fresh_until_ns = self.slots.get(id).fresh_until_ns;
            let is_fresh = |at_ns| fresh_until_ns != 0 && fresh_until_ns >= at_ns;
            wanted.fresh_at_ns.is_none_or(is_fresh) && wanted.digest.is_none_or(|digest| *digest == self.digest_of(id))
        };
        self.versions(first).find(is_wanted).map(CsId)
    }

    /// The Data of a name from this one on.
    fn versions(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let index = self.prefix_index.as_ref();
        std::iter::successors(Some(first), move |&id| index.and_then(|index| index.next(id)))
    }

    fn digest_of(&self, id: u32) -> [u8; 32] {
        let known = self.prefix_index.as_ref().and_then(|index| index.digest(id));
        let slot = self.slots.get(id);
        known.copied().unwrap_or_else(|| sha256(&[self.data.get(slot.data_at, slot.data_bytes as usize)]))
    }

    /// Stores Data whose name has other Data already; `first` does not hold these bytes.
    #[cold]
    pub(super) fn insert_version(
        &mut self,
        groups: &mut NameGroups,
        (group, first): (u32, u32),
        data: &NewData<'_>,
    ) -> CsInsert {
        let newcomer = &data.newcomer;
        let same = self.versions(first).skip(1).find(|&id| self.holds(id, data.bytes));
        if let Some(same) = same {
            self.refresh(groups, same, data.bytes, newcomer);
            return CsInsert::Refreshed(CsId(same));
        }
        let Place { id, data_at } = match self.admit(groups, data) {
            Ok(place) => place,
            Err(refusal) => return CsInsert::Refused(refusal),
        };
        let goes = self.version_that_goes(first);
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
        self.link_version(groups, id);
        // From here on the name has this Data, whatever happens to its other Data.
        if let Some(goes) = goes {
            self.erase(groups, goes);
        }
        self.policy.arriving(newcomer);
        self.evict_until_fits(groups, 1, newcomer);
        self.len += 1;
        self.bytes += newcomer.account_bytes;
        self.policy.insert(&mut self.slots, id, newcomer);
        self.freshness_changed(groups, group);
        if goes.is_some() { CsInsert::Replaced(CsId(id)) } else { CsInsert::Stored(CsId(id)) }
    }

    /// The version to replace, if the name has [`MAX_VERSIONS`] already.
    fn version_that_goes(&self, first: u32) -> Option<u32> {
        let is_full = self.versions(first).count() >= MAX_VERSIONS;
        self.versions(first).filter(|_| is_full).min_by_key(|&id| self.slots.get(id).fresh_until_ns)
    }

    /// Adds an entry to the list of its name's Data.
    fn link_version(&mut self, groups: &mut NameGroups, id: u32) {
        let group = self.slots.get(id).group;
        let CsLink::Direct(first) = groups.get(group).cs() else { return };
        let digests = [id, first].map(|id| self.digest_of(id));
        let mut before = None;
        for other in self.versions(first).take(MAX_VERSIONS).take_while(|&other| self.digest_of(other) < digests[0]) {
            before = Some(other);
        }
        let Some(index) = &mut self.prefix_index else { return };
        index.set_digest(id, digests[0]);
        index.set_digest(first, digests[1]);
        match before {
            None => {
                index.set_next(id, Some(first));
                groups.get_mut(group).set_cs(CsLink::Direct(id));
            }
            Some(before) => {
                index.set_next(id, index.next(before));
                index.set_next(before, Some(id));
            }
        }
    }

    /// A name got its first Data. Cold, as all of this file, to stay out of the way of stores without an
    /// index.
    #[cold]
    pub(super) fn index_name(&mut self, groups: &NameGroups, group: u32, fresh_until_ns: u64) {
        if let Some(index) = &mut self.prefix_index {
            self.unordered_names += u64::from(!index.insert_name(groups, group, fresh_until_ns));
        }
    }

    /// Unlinks an entry from its name's Data; the name is removed with its last Data.
    #[cold]
    pub(super) fn unlink_version(&mut self, groups: &mut NameGroups, group: u32, id: u32) {
        let CsLink::Direct(first) = groups.get(group).cs() else { return };
        let before = self.versions(first).take_while(|&other| other != id).last();
        let Some(index) = &mut self.prefix_index else { return };
        let next = index.forget_version(id);
        match (before, next) {
            (Some(before), _) => index.set_next(before, next),
            (None, Some(next)) => groups.get_mut(group).set_cs(CsLink::Direct(next)),
            (None, None) => return index.remove_name(groups, group),
        }
        self.freshness_changed(groups, group);
    }

    /// The freshness of a name's Data changed.
    #[cold]
    pub(super) fn freshness_changed(&mut self, groups: &NameGroups, group: u32) {
        let CsLink::Direct(first) = groups.get(group).cs() else { return };
        let latest_ns = self.versions(first).map(|id| self.slots.get(id).fresh_until_ns).max().unwrap_or(0);
        if let Some(index) = &mut self.prefix_index {
            index.set_fresh_until(groups, group, latest_ns);
        }
    }
}
