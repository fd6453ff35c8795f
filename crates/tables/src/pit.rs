//! PIT: what do we remember of a pending Interest?
//!
//! Source: NFD developer guide (NDN-0021). An entry is keyed by the name
//! and the two selectors (its [`Variant`]); a ForwardingHint is not part of the
//! key. It owns a copy of one Interest, because strategies re-send it and Nacks
//! quote it after the frame is gone, and the state `R` that the forwarder keeps.
//!
//! Cost: an entry is reached by its id (1 line) or through its name group.
//! Bytes per entry: 180 + the size of `R`; Interests above
//! [`INLINE_INTEREST_OCTETS`] are boxed and counted against the overflow limit,
//! and so is the name of a group that has PIT entries and does not fit inline.
//! Full: [`PitRefusal`], and nothing changes.

use crate::name_group::{GroupId, INLINE_NAME_OCTETS};
use crate::slab::Slab;
use smallvec::SmallVec;

/// Interests up to this many octets are kept inside the entry.
pub const INLINE_INTEREST_OCTETS: usize = 160;

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

/// Why an Interest got no PIT entry, or its octets no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PitRefusal {
    /// The PIT has as many entries as it may.
    #[error("the PIT is full")]
    Full,
    /// Large Interests and names already take all the octets they may.
    #[error("the PIT's room for large Interests is used up")]
    OverflowFull,
}

/// State that is emptied, but keeps its buffers, before another entry uses it.
pub trait Recycle: Default {
    /// Makes `self` equal to the default for every reader.
    fn recycle(&mut self);
}

/// One pending Interest.
pub struct PitEntry<R> {
    group: GroupId,
    variant: Variant,
    interest: SmallVec<[u8; INLINE_INTEREST_OCTETS]>,
    /// What the forwarder keeps: in- and out-records, strategy state.
    pub state: R,
}

const _: () = assert!(size_of::<PitEntry<()>>() == 176);

impl<R> PitEntry<R> {
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

    /// The stored Interest.
    #[inline]
    pub fn interest(&self) -> &[u8] {
        &self.interest
    }
}

impl<R: Default> Default for PitEntry<R> {
    fn default() -> Self {
        Self { group: GroupId(u32::MAX), variant: Variant::Exact, interest: SmallVec::new(), state: R::default() }
    }
}

/// The entries and the octets they hold outside themselves; knows no names.
pub(crate) struct Pit<R> {
    pub(crate) slots: Slab<PitEntry<R>>,
    overflow_bytes: u64,
    overflow_limit_bytes: u64,
}

impl<R: Recycle> Pit<R> {
    pub(crate) fn new(capacity_entries: u32, overflow_limit_bytes: u64) -> Self {
        Self { slots: Slab::new(capacity_entries), overflow_bytes: 0, overflow_limit_bytes }
    }

    pub(crate) fn overflow_bytes(&self) -> u64 {
        self.overflow_bytes
    }

    /// Whether an entry with `interest` fits, and, if its group has no entry yet, its name.
    pub(crate) fn admits(&self, interest: &[u8], new_name_value: Option<&[u8]>) -> Result<(), PitRefusal> {
        if self.slots.is_full() {
            return Err(PitRefusal::Full);
        }
        let more = interest_overflow(interest) + new_name_value.map_or(0, name_overflow);
        self.fits(self.overflow_bytes + more)
    }

    /// Only after [`Pit::admits`], with the same arguments.
    pub(crate) fn allocate(
        &mut self,
        group: GroupId,
        variant: Variant,
        interest: &[u8],
        new_name_value: Option<&[u8]>,
    ) -> Option<u32> {
        let id = self.slots.allocate()?;
        self.overflow_bytes += interest_overflow(interest) + new_name_value.map_or(0, name_overflow);
        let entry = self.slots.get_mut(id);
        entry.group = group;
        entry.variant = variant;
        entry.interest = SmallVec::from_slice(interest);
        Some(id)
    }

    pub(crate) fn set_interest(&mut self, id: u32, interest: &[u8]) -> Result<(), PitRefusal> {
        let former = interest_overflow(self.slots.get(id).interest());
        let total = self.overflow_bytes - former + interest_overflow(interest);
        self.fits(total)?;
        self.overflow_bytes = total;
        self.slots.get_mut(id).interest = SmallVec::from_slice(interest);
        Ok(())
    }

    /// Frees the entry; `last_name_value` is its group's name if that has no other entry.
    pub(crate) fn release(&mut self, id: u32, last_name_value: Option<&[u8]>) {
        let entry = self.slots.get_mut(id);
        self.overflow_bytes -= interest_overflow(&entry.interest) + last_name_value.map_or(0, name_overflow);
        entry.interest = SmallVec::new();
        entry.state.recycle();
        self.slots.release(id);
    }

    fn fits(&self, overflow_bytes: u64) -> Result<(), PitRefusal> {
        if overflow_bytes > self.overflow_limit_bytes {
            return Err(PitRefusal::OverflowFull);
        }
        Ok(())
    }
}

fn interest_overflow(interest: &[u8]) -> u64 {
    boxed_octets(interest.len(), INLINE_INTEREST_OCTETS)
}

fn name_overflow(name_value: &[u8]) -> u64 {
    boxed_octets(name_value.len(), INLINE_NAME_OCTETS)
}

fn boxed_octets(octets: usize, inline: usize) -> u64 {
    if octets > inline { octets as u64 } else { 0 }
}
