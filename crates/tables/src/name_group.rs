//! Name group: what do we hold under exactly this name?
//!
//! Source: So et al. 2013 (one probe answers for PIT and CS) and NDN-DPDK's
//! PIT-CS composite table. A group is one name with its pending Interests, one
//! per [`Variant`](crate::pit::Variant), and its link to the Content Store. It
//! exists as long as one of them does.
//!
//! A group's slot has a 14-bit generation that grows each time the slot is freed;
//! (slot, generation) is the [`GroupToken`] that travels to upstream routers as
//! PIT token. A token of a freed group does not resolve until the slot was freed
//! 2¹⁴ times more, and whoever resolves one compares the name as well.
//!
//! Cost: 1 line of control bytes, on a tag match 1 of indices and 2-3 of the group.
//! Bytes per group: 148 + about 6 of index; a name above [`INLINE_NAME_OCTETS`]
//! is in a box of its own, counted against the limits of the PIT or the Content
//! Store, whichever holds the group.
//! Full: groups ≤ PIT entries + 5 × Content Store entries, so those limits come first.

use crate::slab::{NIL, Slab};
use hashbrown::HashTable;
use smallvec::SmallVec;

/// Names up to this many octets are kept inside the group.
pub const INLINE_NAME_OCTETS: usize = 96;
/// The most groups: tokens have 26 bits for the slot.
pub const MAX_GROUPS: u32 = 1 << GROUP_INDEX_BITS;

const GROUP_INDEX_BITS: u32 = 26;
const GENERATION_BITS: u32 = 14;

/// Names a group while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Names a group for ever: it resolves to this group or to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupToken {
    /// Below 2²⁶.
    pub index: u32,
    /// Below 2¹⁴.
    pub generation: u16,
}

impl GroupToken {
    /// The token as a number below 2⁴⁰: five octets.
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << GROUP_INDEX_BITS) | u64::from(self.index)
    }

    /// The token of a number; bits above the fortieth are ignored.
    pub fn from_bits(bits: u64) -> Self {
        Self {
            index: (bits & u64::from(MAX_GROUPS - 1)) as u32,
            generation: ((bits >> GROUP_INDEX_BITS) & ((1 << GENERATION_BITS) - 1)) as u16,
        }
    }
}

/// What a group has in the Content Store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CsLink {
    #[default]
    None,
    /// Data of exactly this name.
    Direct(u32),
    /// Data that once answered an Interest of this name.
    Indirect(u32),
}

#[derive(Clone)]
pub(crate) struct NameGroup {
    pub(crate) hash: u64,
    pub(crate) name_value: SmallVec<[u8; INLINE_NAME_OCTETS]>,
    /// PIT slots by variant, `NIL` = none.
    pub(crate) pit: [u32; 4],
    pub(crate) cs: CsLink,
    generation: u16,
}

const _: () = assert!(size_of::<NameGroup>() == 144);

impl Default for NameGroup {
    fn default() -> Self {
        Self { hash: 0, name_value: SmallVec::new(), pit: [NIL; 4], cs: CsLink::None, generation: 0 }
    }
}

impl NameGroup {
    pub(crate) fn has_pit_entry(&self) -> bool {
        self.pit != [NIL; 4]
    }
}

pub(crate) struct NameGroups {
    slots: Slab<NameGroup>,
    index: HashTable<u32>,
}

impl NameGroups {
    pub(crate) fn new() -> Self {
        Self { slots: Slab::new(MAX_GROUPS), index: HashTable::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() as usize
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, name_value: &[u8]) -> Option<u32> {
        let is_wanted = |&id: &u32| {
            let group = self.slots.get(id);
            group.hash == hash && *group.name_value == *name_value
        };
        self.index.find(hash, is_wanted).copied()
    }

    /// The group of the name, made if it is not there; `None` = too many groups.
    ///
    /// A new group is empty: the caller puts something in or releases it.
    pub(crate) fn find_or_create(&mut self, hash: u64, name_value: &[u8]) -> Option<u32> {
        if let Some(id) = self.find(hash, name_value) {
            return Some(id);
        }
        let id = self.slots.allocate()?;
        let group = self.slots.get_mut(id);
        group.hash = hash;
        group.name_value = SmallVec::from_slice(name_value);
        let slots = &self.slots;
        self.index.insert_unique(hash, id, |&other| slots.get(other).hash);
        Some(id)
    }

    /// Frees the group if neither PIT nor Content Store uses it any more.
    pub(crate) fn release_if_empty(&mut self, id: u32) {
        let group = self.slots.get_mut(id);
        if group.has_pit_entry() || group.cs != CsLink::None {
            return;
        }
        let hash = group.hash;
        group.name_value = SmallVec::new();
        group.generation = (group.generation + 1) & ((1 << GENERATION_BITS) - 1);
        match self.index.find_entry(hash, |&other| other == id) {
            Ok(found) => drop(found.remove()),
            Err(_) => unreachable!("every group is indexed under its hash"),
        }
        self.slots.release(id);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &NameGroup {
        self.slots.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut NameGroup {
        self.slots.get_mut(id)
    }

    pub(crate) fn token(&self, id: u32) -> GroupToken {
        GroupToken { index: id, generation: self.slots.get(id).generation }
    }

    #[inline]
    pub(crate) fn by_token(&self, token: GroupToken) -> Option<u32> {
        let id = token.index;
        (self.slots.is_live(id) && self.slots.get(id).generation == token.generation).then_some(id)
    }
}
