//! PIT: what does the router remember of a pending Interest?
//!
//! Source: NFD developer's guide (NDN-0021). An entry is keyed by the name and the two selectors (its
//! [`Variant`]); a ForwardingHint is not part of the key. Strategies re-send the Interest, and Nacks quote
//! it, when its frame no longer exists. So the group keeps the name. The entry keeps the *rest* (all that
//! follows the name: Nonce, lifetime, …) and the forwarder's state `R`.
//!
//! ```text
//! entry, aligned to lines, here with an R of 168 bytes:
//!  0       4         6         7   8                        176                224     256
//!  | group | bytes  | variant | 0 | R: records, deadlines  | rest (or where   | unused |
//!  |       | of rest |         |   |                        | it is), 48 bytes |        |
//! ```
//!
//! Cost: an entry is reached by its id or through its name group. Data needs the lines of the header and of
//! `R` (3 of 4 in the example); only a re-sent Interest needs the rest.
//! Bytes: an entry takes the size of [`PitEntry`] and 4. A rest above [`INLINE_REST_BYTES`] lies in an
//! arena. Its rounded block ([`overflow_bytes`]) counts against the overflow limit. So does the block of a
//! name that does not fit inline, if its group has PIT entries.
//! Full: the caller gets a [`PitRefusal`], and nothing changes.

use crate::arena::{Arena, block_bytes};
use crate::name_group::{GroupId, INLINE_NAME_BYTES};
use crate::pages::PageSize;
use crate::short_copy::copy_to_front;
use crate::slab::{NIL, Slab};
use std::io;

/// The group of an entry that is not in use.
const NO_GROUP: GroupId = GroupId(NIL);

/// Rests of Interests up to this many bytes are kept inside the entry.
pub const INLINE_REST_BYTES: usize = 48;

/// Names a PIT entry while it exists; a small number (good as a timer id), reused after removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PitId(pub u32);

/// The selectors of an Interest, the part of the PIT key beside the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Variant {
    /// Neither selector.
    Exact = 0,
    /// CanBePrefix.
    CanBePrefix = 1,
    /// MustBeFresh.
    MustBeFresh = 2,
    /// CanBePrefix and MustBeFresh.
    CanBePrefixMustBeFresh = 3,
}

impl Variant {
    /// Every variant, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Exact, Self::CanBePrefix, Self::MustBeFresh, Self::CanBePrefixMustBeFresh];

    /// The variant of these selectors.
    #[inline]
    pub fn new(can_be_prefix: bool, must_be_fresh: bool) -> Self {
        Self::ALL[usize::from(can_be_prefix) | usize::from(must_be_fresh) << 1]
    }

    /// Whether the Interest may be answered by a longer name.
    pub fn can_be_prefix(self) -> bool {
        self as u8 & 1 != 0
    }

    /// Whether a stored answer must be fresh.
    pub fn must_be_fresh(self) -> bool {
        self as u8 & 2 != 0
    }
}

/// Why an Interest got no PIT entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PitRefusal {
    /// The PIT has as many entries as allowed.
    #[error("the PIT is full")]
    Full,
    /// Large Interests and names already take all the bytes set aside for them.
    #[error("the PIT's room for large Interests is used up")]
    OverflowFull,
}

/// State that is emptied, but keeps its buffers, for the next entry to use.
pub trait Recycle: Default {
    /// Makes `self` equal to the default for every reader. `self` is new, or is left from a removed entry.
    fn recycle(&mut self);
}

/// One pending Interest.
#[repr(C, align(64))]
pub struct PitEntry<R> {
    group: GroupId,
    rest_bytes: u16,
    variant: Variant,
    /// What the forwarder keeps: in- and out-records, strategy state.
    pub state: R,
    rest: [u8; INLINE_REST_BYTES],
}

const _: () = assert!(size_of::<PitEntry<()>>() == 64);
const _: () = assert!(size_of::<PitEntry<[u64; 21]>>() == 256);
const _: () = assert!(std::mem::offset_of!(PitEntry<[u64; 21]>, state) == 8);

impl<R> PitEntry<R> {
    /// Whether the entry is in use.
    #[inline(always)]
    pub(crate) fn exists(&self) -> bool {
        self.group != NO_GROUP
    }

    /// The name group that the entry belongs to.
    #[inline]
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The selectors.
    #[inline]
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Whether the rest lies in the arena.
    #[inline(always)]
    pub(crate) fn has_long_rest(&self) -> bool {
        usize::from(self.rest_bytes) > INLINE_REST_BYTES
    }

    fn long_rest_at(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.rest;
        self.has_long_rest().then_some(u32::from_ne_bytes([a, b, c, d]))
    }

    /// What follows the name in the Interest, if it lies in the entry; else fewer bytes.
    #[inline(always)]
    pub fn inline_rest_mut(&mut self) -> &mut [u8] {
        let bytes = usize::from(self.rest_bytes);
        if self.has_long_rest() { &mut [] } else { &mut self.rest[..bytes] }
    }
}

impl<R> PitEntry<R> {
    /// Ends the entry; returns the group that it belonged to.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> GroupId {
        std::mem::replace(&mut self.group, NO_GROUP)
    }
}

impl<R: Recycle> PitEntry<R> {
    /// Begins anew, with a rest that is kept inline: the rest itself, or where [`keep`] has put it.
    #[inline(always)]
    pub(crate) fn begin(&mut self, group: GroupId, variant: Variant, rest_bytes: u16, inline: &[u8]) {
        self.state.recycle();
        self.group = group;
        self.variant = variant;
        self.rest_bytes = rest_bytes;
        copy_to_front(&mut self.rest, inline);
    }
}

impl<R: Default> Default for PitEntry<R> {
    fn default() -> Self {
        Self {
            group: NO_GROUP,
            rest_bytes: 0,
            variant: Variant::Exact,
            state: R::default(),
            rest: [0; INLINE_REST_BYTES],
        }
    }
}

/// The entries and the account of the bytes they hold outside themselves. It knows no names.
pub(crate) struct Pit<R> {
    pub(crate) slots: Slab<PitEntry<R>>,
    overflow_bytes: u64,
    overflow_limit_bytes: u64,
}

impl<R: Recycle> Pit<R> {
    pub(crate) fn new(capacity_entries: u32, overflow_limit_bytes: u64, pages: PageSize) -> io::Result<Self> {
        Ok(Self { slots: Slab::new(capacity_entries, pages)?, overflow_bytes: 0, overflow_limit_bytes })
    }

    pub(crate) fn overflow_bytes(&self) -> u64 {
        self.overflow_bytes
    }

    /// Whether an entry with `rest` fits, and its name too if its group has no entry yet.
    pub(crate) fn admits(&self, rest: &[u8], new_name_value: Option<&[u8]>) -> Result<(), PitRefusal> {
        if self.slots.is_full() {
            return Err(PitRefusal::Full);
        }
        let more = rest_overflow(rest.len()) + new_name_value.map_or(0, name_overflow);
        if self.overflow_bytes.saturating_add(more) > self.overflow_limit_bytes {
            return Err(PitRefusal::OverflowFull);
        }
        Ok(())
    }

    /// Makes an entry. Only after [`Pit::admits`] with the same arguments. If refused, nothing changes.
    pub(crate) fn allocate(
        &mut self,
        overflow: &mut Arena,
        group: GroupId,
        variant: Variant,
        rest: &[u8],
        new_name_value: Option<&[u8]>,
    ) -> Result<u32, PitRefusal> {
        let (rest_bytes, at) = keep(overflow, rest)?;
        let Some(id) = self.slots.allocate() else { unreachable!("it was admitted") };
        self.overflow_bytes += rest_overflow(rest.len()) + new_name_value.map_or(0, name_overflow);
        let at = at.map(u32::to_ne_bytes);
        self.slots.get_mut(id).begin(group, variant, rest_bytes, at.as_ref().map_or(rest, |at| at));
        Ok(id)
    }

    pub(crate) fn rest<'a>(&'a self, overflow: &'a Arena, id: u32) -> &'a [u8] {
        let entry = self.slots.get(id);
        let bytes = usize::from(entry.rest_bytes);
        match entry.long_rest_at() {
            None => &entry.rest[..bytes],
            Some(at) => overflow.get(at, bytes),
        }
    }

    /// Gives back what an entry that just ended holds outside itself. `last_name` is what its group's name
    /// counts, if the group has no other entry.
    #[cold]
    pub(crate) fn give_back(&mut self, overflow: &mut Arena, id: u32, last_name: u64) {
        let Some(entry) = self.slots.peek(id) else { return };
        if let Some(at) = entry.long_rest_at() {
            overflow.free(at);
        }
        self.overflow_bytes -= rest_overflow(usize::from(entry.rest_bytes)) + last_name;
    }
}

/// What bytes outside the entry count against the overflow limit.
pub fn overflow_bytes(bytes: usize) -> u64 {
    block_bytes(bytes)
}

/// The same of an Interest with this name and rest, its name counted as if no other Interest had it.
pub fn overflow_bytes_of(name_value: &[u8], rest: &[u8]) -> u64 {
    name_overflow(name_value) + rest_overflow(rest.len())
}

/// The length of the rest, and its place in the arena if it does not fit the entry.
fn keep(overflow: &mut Arena, rest: &[u8]) -> Result<(u16, Option<u32>), PitRefusal> {
    let bytes = u16::try_from(rest.len()).map_err(|_| PitRefusal::OverflowFull)?;
    if rest.len() <= INLINE_REST_BYTES {
        return Ok((bytes, None));
    }
    let at = overflow.allocate(rest).ok_or(PitRefusal::OverflowFull)?;
    Ok((bytes, Some(at)))
}

fn rest_overflow(bytes: usize) -> u64 {
    if bytes > INLINE_REST_BYTES { block_bytes(bytes) } else { 0 }
}

pub(crate) fn name_overflow(name_value: &[u8]) -> u64 {
    if name_value.len() > INLINE_NAME_BYTES { block_bytes(name_value.len()) } else { 0 }
}
