//! Name group: which pending Interests and which stored Data have exactly this name?
//!
//! Source: So et al. 2013 (one probe answers for PIT and CS) and NDN-DPDK's PIT-CS composite table. A group
//! is one name with its pending Interests, one per [`Variant`](crate::pit::Variant), and its link to the
//! Content Store. It exists as long as it has a pending Interest or that link.
//!
//! ```text
//! group, 128 bytes, two lines:
//!  0      8                24      28                      30            32        64   128
//!  | hash | PIT entries ×4 | CS    | generation, uppermost | bytes of   | name    | …  |
//!  |      | NIL = none     | entry | bit: in use           | the name    | (first) |    |
//! ```
//!
//! The uppermost bit of the CS entry's number is set if the Data has another name (*indirect*). A name
//! above [`INLINE_NAME_BYTES`] lies in an arena; the first four bytes of `name` then say where.
//!
//! A group's slot has a 14-bit generation that grows each time the slot is freed. (slot, generation) is the
//! [`GroupToken`], which the router sends to upstream routers as PIT token. A token of a freed group
//! resolves again only after the slot was freed 2¹⁴ times more. So the caller that resolves a token also
//! compares the name.
//!
//! Cost: finding a group by name reads 1 line of the index (1.2 when the index is full); finding it by
//! token reads none. Of the group it reads 1 line for names up to 32 bytes, and 2 for names up to 96.
//! Longer names cost their own lines as well.
//! Bytes: a group takes 128, 4 for the list of free slots, and 8 of index. A long name also takes a block.
//! The block counts against the limit of the PIT or of the Content Store, depending on which one holds the
//! group.
//! Full: there is room for PIT entries + 2 × Content Store entries, so those two tables are full earlier.

use crate::arena::Arena;
use crate::pages::PageSize;
use crate::pit::Variant;
use crate::prefetch::prefetch;
use crate::short_copy::copy_to_front;
use crate::slab::{NIL, Slab};
use crate::tag_index::TagIndex;
use std::io;
use std::mem::offset_of;

/// Names up to this many bytes are kept inside the group.
pub const INLINE_NAME_BYTES: usize = 96;
/// The most groups: tokens have 26 bits for the slot.
pub const MAX_GROUPS: u32 = 1 << GROUP_INDEX_BITS;

const GROUP_INDEX_BITS: u32 = 26;
const GENERATION_BITS: u32 = 14;
const MAX_GENERATION: u16 = (1 << GENERATION_BITS) - 1;
const IN_USE: u16 = 1 << 15;
const INDIRECT: u32 = 1 << 31;

/// Names a group while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A group that probably has the probed name; see [`PitCs::probe`](crate::PitCs::probe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupHint(pub(crate) u32);

/// What is known of a name's group before it is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probed {
    /// Nothing: [`PitCs::probe`](crate::PitCs::probe) was not called.
    #[default]
    NotYet,
    /// There was none in this batch, when it was probed.
    Absent,
    /// This is the only candidate, or the first.
    Candidate(GroupHint),
}

impl Probed {
    /// The candidate, if there is one.
    #[inline(always)]
    pub fn candidate(self) -> Option<GroupHint> {
        match self {
            Probed::Candidate(hint) => Some(hint),
            _ => None,
        }
    }
}

/// Names a group for longer than its [`GroupId`] does. It resolves to this group or to nothing until the
/// slot was freed 2¹⁴ times; after that it may resolve to a later group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupToken {
    /// Below 2²⁶.
    pub index: u32,
    /// Below 2¹⁴.
    pub generation: u16,
}

impl GroupToken {
    /// The token as a number below 2⁴⁰: five bytes.
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << GROUP_INDEX_BITS) | u64::from(self.index)
    }

    /// The group's number as a hint.
    #[inline(always)]
    pub fn hint(self) -> GroupHint {
        GroupHint(self.index)
    }

    /// The token of a number; bits above the fortieth are ignored.
    pub fn from_bits(bits: u64) -> Self {
        Self {
            index: (bits & u64::from(MAX_GROUPS - 1)) as u32,
            generation: (bits >> GROUP_INDEX_BITS) as u16 & MAX_GENERATION,
        }
    }
}

/// What a group has in the Content Store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CsLink {
    None,
    /// Data of exactly this name.
    Direct(u32),
    /// Data that once answered an Interest of this name.
    Indirect(u32),
}

#[repr(C, align(64))]
pub(crate) struct NameGroup {
    hash: u64,
    /// PIT slots by variant, `NIL` = none.
    pub(crate) pit: [u32; 4],
    cs: u32,
    generation: u16,
    name_bytes: u16,
    name: [u8; INLINE_NAME_BYTES],
}

pub(crate) const GROUP_BYTES: usize = 128;
const _: () = assert!(size_of::<NameGroup>() == GROUP_BYTES && align_of::<NameGroup>() == 64);
const _: () = assert!(offset_of!(NameGroup, name) == 32);

impl Default for NameGroup {
    fn default() -> Self {
        Self { hash: 0, pit: [NIL; 4], cs: NIL, generation: 0, name_bytes: 0, name: [0; INLINE_NAME_BYTES] }
    }
}

impl NameGroup {
    /// Begins anew, with a name that is kept inline: the name itself, or where it lies.
    #[inline(always)]
    fn begin(&mut self, hash: u64, name_bytes: u16, inline: &[u8]) {
        self.hash = hash;
        self.generation |= IN_USE;
        self.name_bytes = name_bytes;
        copy_to_front(&mut self.name, inline);
    }

    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn has_pit_entry(&self) -> bool {
        self.pit != [NIL; 4]
    }

    /// Takes the PIT entry `id` out; returns whether no other is left.
    ///
    /// N.B. The sum comes before the store: the four are read as one, and that read would wait for the store. Every
    /// other number is at least `NIL` = -1, so only three times `NIL` make -3.
    #[inline(always)]
    pub(crate) fn unlink_pit(&mut self, variant: Variant, id: u32) -> bool {
        let sum = self.pit.iter().fold(0_u32, |sum, &id| sum.wrapping_add(id));
        self.pit[variant as usize] = NIL;
        sum == id.wrapping_add(NIL.wrapping_mul(3))
    }

    /// Whether the name lies in the arena.
    #[inline(always)]
    pub(crate) fn has_long_name(&self) -> bool {
        usize::from(self.name_bytes) > INLINE_NAME_BYTES
    }

    #[inline(always)]
    pub(crate) fn cs(&self) -> CsLink {
        match self.cs {
            NIL => CsLink::None,
            id if id & INDIRECT != 0 => CsLink::Indirect(id & !INDIRECT),
            id => CsLink::Direct(id),
        }
    }

    pub(crate) fn set_cs(&mut self, link: CsLink) {
        self.cs = match link {
            CsLink::None => NIL,
            CsLink::Direct(id) => id,
            CsLink::Indirect(id) => id | INDIRECT,
        };
    }

    fn is_in_use(&self) -> bool {
        self.generation & IN_USE != 0
    }

    fn long_name_at(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.name;
        self.has_long_name().then_some(u32::from_ne_bytes([a, b, c, d]))
    }
}

/// Why there is no group for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRefusal {
    /// There are as many groups as allowed.
    Full,
    /// The name is long and the arena has no room for it.
    NoRoomForName,
}

pub(crate) struct NameGroups {
    slots: Slab<NameGroup>,
    index: TagIndex,
    pages: PageSize,
    /// Names that became known in this batch.
    new_names: NewNames,
    /// Long names, and large Interests of the PIT.
    pub(crate) overflow: Arena,
}

/// Names that became known since the batch began: a bit for each, chosen by its hash. A name without its bit is as
/// unknown as when it was probed, so an Interest that is new needs no second search of the index. The 64 new names of a
/// full batch set at most 64 of the 1,024 bits.
#[derive(Default)]
struct NewNames([u64; 16]);

impl NewNames {
    #[inline(always)]
    fn place(hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize % 16, 1 << (hash % 64))
    }

    #[inline(always)]
    fn add(&mut self, hash: u64) {
        let (word, bit) = Self::place(hash);
        self.0[word] |= bit;
    }

    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = Self::place(hash);
        self.0[word] & bit != 0
    }
}

impl NameGroups {
    pub(crate) fn new(groups: u32, overflow_bytes: u64, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            slots: Slab::new(groups, pages)?,
            index: TagIndex::new(groups as usize, pages)?,
            pages,
            new_names: NewNames::default(),
            overflow: Arena::new(overflow_bytes, pages.for_sparse())?,
        })
    }

    /// Makes room for this many groups, if there is less. Cost: the index is rebuilt from all groups.
    pub(crate) fn grow(&mut self, groups: u32, overflow_bytes: u64) -> io::Result<()> {
        self.overflow.grow(overflow_bytes)?;
        if groups > self.slots.capacity() {
            let index = TagIndex::new(groups as usize, self.pages)?;
            self.slots.grow(groups)?;
            self.slots.live_ids().for_each(|id| index.insert(self.slots.get(id).hash, id));
            self.index = index;
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() as usize
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, name_value: &[u8]) -> Option<u32> {
        self.index.find(hash, |id| self.is(id, hash, name_value))
    }

    /// [`NameGroups::find`], but looks first at what the probe found.
    #[inline(always)]
    pub(crate) fn find_probed(&self, hash: u64, name_value: &[u8], probed: Probed) -> Option<u32> {
        let is_absent = probed == Probed::Absent && !self.new_names.may_have(hash);
        debug_assert!(!is_absent || self.find(hash, name_value).is_none(), "a new name was not noted");
        match probed {
            Probed::Absent if is_absent => None,
            Probed::Candidate(GroupHint(id)) if self.is(id, hash, name_value) => Some(id),
            _ => self.search(hash, name_value),
        }
    }

    #[inline(never)]
    fn search(&self, hash: u64, name_value: &[u8]) -> Option<u32> {
        self.find(hash, name_value)
    }

    /// All names of now count as known.
    #[inline]
    pub(crate) fn end_of_batch(&mut self) {
        self.new_names = NewNames::default();
    }

    /// The hash of a group that exists, if it has this name.
    #[inline(always)]
    pub(crate) fn hash_if_named(&self, id: u32, name_value: &[u8]) -> Option<u64> {
        let group = self.slots.peek(id).filter(|group| group.is_in_use())?;
        (*self.name_of(group) == *name_value).then_some(group.hash)
    }

    #[inline(always)]
    fn is(&self, id: u32, hash: u64, name_value: &[u8]) -> bool {
        let group = self.slots.peek(id).filter(|group| group.hash == hash && group.is_in_use());
        group.is_some_and(|group| *self.name_of(group) == *name_value)
    }

    /// Makes an empty group for a name that has none; the caller puts something in or releases it.
    pub(crate) fn create(&mut self, hash: u64, name_value: &[u8]) -> Result<u32, GroupRefusal> {
        let name_bytes = u16::try_from(name_value.len()).map_err(|_| GroupRefusal::NoRoomForName)?;
        let at;
        let inline = if name_value.len() <= INLINE_NAME_BYTES {
            name_value
        } else {
            at = self.overflow.allocate(name_value).ok_or(GroupRefusal::NoRoomForName)?.to_ne_bytes();
            &at
        };
        let Some(id) = self.slots.allocate() else {
            if name_value.len() > INLINE_NAME_BYTES {
                self.overflow.free(u32::from_ne_bytes([inline[0], inline[1], inline[2], inline[3]]));
            }
            return Err(GroupRefusal::Full);
        };
        self.slots.get_mut(id).begin(hash, name_bytes, inline);
        self.new_names.add(hash);
        self.index.insert(hash, id);
        Ok(id)
    }

    /// A group with the PIT entry `pit`, for a name of at most [`INLINE_NAME_BYTES`] that has no group. `None`: there
    /// are as many groups as allowed.
    #[inline(always)]
    pub(crate) fn create_short(&mut self, hash: u64, name_value: &[u8], variant: Variant, pit: u32) -> Option<u32> {
        let id = self.slots.allocate()?;
        let group = self.slots.get_mut(id);
        group.begin(hash, name_value.len() as u16, name_value);
        group.pit[variant as usize] = pit;
        self.new_names.add(hash);
        self.index.insert(hash, id);
        Some(id)
    }

    /// Frees the group if neither PIT nor Content Store uses it any more.
    pub(crate) fn release_if_empty(&mut self, id: u32) {
        let group = self.slots.get(id);
        if !group.has_pit_entry() && group.cs == NIL {
            self.release(id);
        }
    }

    /// Entry `id` leaves the Content Store: frees its name's group unless other Data has the name by now, or
    /// an Interest for it is pending.
    #[inline(always)]
    pub(crate) fn release_data(&mut self, id: u32, entry: u32) {
        let group = self.slots.get_mut(id);
        if group.cs & !INDIRECT != entry {
            return;
        }
        group.cs = NIL;
        if !group.has_pit_entry() {
            self.release(id);
        }
    }

    /// Frees the group, which neither PIT nor Content Store uses any more.
    pub(crate) fn release(&mut self, id: u32) {
        let group = self.slots.get_mut(id);
        group.generation = (group.generation + 1) & MAX_GENERATION;
        if let Some(at) = group.long_name_at() {
            self.overflow.free(at);
        }
        let was_indexed = self.index.remove(group.hash, id);
        assert!(was_indexed, "every group is indexed under its hash");
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

    /// What a slot holds, in use or not.
    #[inline]
    pub(crate) fn peek(&self, id: u32) -> Option<&NameGroup> {
        self.slots.peek(id)
    }

    #[inline(always)]
    pub(crate) fn name(&self, id: u32) -> &[u8] {
        self.name_of(self.slots.get(id))
    }

    #[inline(always)]
    fn name_of<'a>(&'a self, group: &'a NameGroup) -> &'a [u8] {
        let bytes = usize::from(group.name_bytes);
        match group.long_name_at() {
            None => &group.name[..bytes],
            Some(at) => self.overflow.get(at, bytes),
        }
    }

    #[inline(always)]
    pub(crate) fn token(&self, id: u32) -> GroupToken {
        GroupToken { index: id, generation: self.slots.get(id).generation & MAX_GENERATION }
    }

    #[inline(always)]
    pub(crate) fn by_token(&self, token: GroupToken) -> Option<u32> {
        let group = self.slots.peek(token.index)?;
        (group.generation == token.generation | IN_USE).then_some(token.index)
    }
}

/// For the stages of a batch; see [`crate::pit_cs`].
impl NameGroups {
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    #[inline]
    pub(crate) fn probe(&self, hash: u64) -> Probed {
        self.index.candidate(hash).map_or(Probed::Absent, |id| Probed::Candidate(GroupHint(id)))
    }

    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    /// The first line: all but a name above 32 bytes.
    #[inline]
    pub(crate) fn prefetch_header(&self, id: u32) {
        if let Some(group) = self.slots.peek(id) {
            prefetch(group);
        }
    }
}
