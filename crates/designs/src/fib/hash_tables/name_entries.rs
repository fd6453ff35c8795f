//! Name prefix entries: the string of a prefix, and what the prefix and its markers lead to.
//!
//! Source: Yuan15 Fig. 3.4: forwarding fields for up to log(k) table entries, then the string. A prefix and its markers
//! share one such entry, aligned to 16 bytes. Symbols: the fields are *slots*: one for each of the prefix's markers,
//! and one for the prefix (`super::search_order`). Deviations: a field is a 32-bit number, not 8 bits. In addition to
//! the number, a slot holds three values: how many bytes the match has, because our answers contain it; MD of So et
//! al., for the two-stage search; how many longer prefixes need the marker. The header of the block is the allocator's.
//!
//! ```text
//!  byte 0            8              12        24        36      12 + 12 · slots
//!        | block, 8 | bytes, slots | slot 0 | slot 1 | … |     | string … | fill to 16 |
//!  slot:   number u32 | matched bytes u16 | deepest u16 | markers u32 |
//! ```
//!
//! For a prefix's slot, *matched bytes* is the prefix's length; for a marker's slot, the length of the prefix that the
//! marker inherits from. [`NOTHING`] means that there is no such prefix but the root; [`IN_PARTITION`] means that the
//! number names a partition, which holds the answer. *Deepest* is MD. *Markers* is the reference counter of §3.4.2. An
//! entry lives as long as one of its slots is in use; when its prefix is removed, its string is cut to the longest
//! marker.
//!
//! Cost: a look-up reads 1 line for slots and the string's beginning. An entry of 7 components of 8 characters takes
//! 1.9 lines in all. Limit: 32 GiB of entries. Writers: the owner.

use super::prefix_hashes::prefix_bytes;
use super::search_order::SearchOrder;
use namewire_tables::arena::Arena;
use namewire_tables::pages::PageSize;
use std::io;

/// Matched bytes: nothing but the root.
pub(super) const NOTHING: u16 = u16::MAX;
/// Matched bytes: the number names a partition.
pub(super) const IN_PARTITION: u16 = u16::MAX - 1;
/// Matched bytes: no table entry uses the slot.
const UNUSED: u16 = u16::MAX - 2;

const HEADER_BYTES: usize = 4;
const SLOT_BYTES: usize = 12;

/// Bytes by which the array grows at least.
const LEAST_GROWTH_BYTES: u64 = 1 << 14;

/// All name prefix entries.
pub(super) struct NameEntries {
    arena: Arena,
    reserved_bytes: u64,
    scratch: Vec<u8>,
}

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forwarding {
    pub(super) number: u32,
    pub(super) matched_bytes: u16,
}

impl Forwarding {
    /// Inherited from no prefix.
    pub(super) const NOTHING: Self = Self { number: 0, matched_bytes: NOTHING };
    const UNUSED: Self = Self { number: 0, matched_bytes: UNUSED };
}

/// A table entry by its name prefix entry: a prefix or a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotRef {
    pub(super) name_entry: u32,
    pub(super) slot: u8,
}

impl NameEntries {
    /// None, with room for this many bytes of entries.
    ///
    /// # Errors
    /// If the kernel does not map them.
    pub(super) fn new(bytes: u64, pages: PageSize) -> io::Result<Self> {
        let mut arena = Arena::new(0, pages)?.or_transparent();
        arena.grow(bytes)?;
        Ok(Self { arena, reserved_bytes: bytes, scratch: Vec::new() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes() + self.scratch.capacity()
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.arena.used_bytes()
    }

    /// A new entry, all slots unused.
    ///
    /// # Errors
    /// If the kernel has no memory for it, or 32 GiB are used up.
    pub(super) fn add(&mut self, string: &[u8], slots: usize) -> io::Result<u32> {
        self.scratch.clear();
        self.scratch.extend_from_slice(&(string.len() as u16).to_le_bytes());
        self.scratch.extend_from_slice(&(slots as u16).to_le_bytes());
        self.scratch.resize(HEADER_BYTES + slots * SLOT_BYTES, 0);
        self.scratch.extend_from_slice(string);
        let name_entry = match self.arena.allocate(&self.scratch) {
            Some(name_entry) => name_entry,
            None => {
                let growth = (self.reserved_bytes / 8).max(LEAST_GROWTH_BYTES).max(2 * self.scratch.len() as u64);
                self.arena.grow(self.reserved_bytes + growth)?;
                self.reserved_bytes += growth;
                self.arena.allocate(&self.scratch).ok_or(io::ErrorKind::OutOfMemory)?
            }
        };
        for slot in 0..slots {
            self.set(SlotRef { name_entry, slot: slot as u8 }, Forwarding::UNUSED);
        }
        Ok(name_entry)
    }

    /// The whole string.
    #[inline(always)]
    pub(super) fn string(&self, name_entry: u32) -> &[u8] {
        let entry = self.arena.get_from(name_entry);
        &entry[self.string_at(entry)..][..read_u16(entry, 0).into()]
    }

    /// Whether the entry's string is `prefix` or begins with it.
    #[inline(always)]
    pub(super) fn begins_with(&self, name_entry: u32, prefix: &[u8]) -> bool {
        let entry = self.arena.get_from(name_entry);
        // A shorter string is followed by others; so its length decides first.
        usize::from(read_u16(entry, 0)) >= prefix.len() && entry[self.string_at(entry)..].starts_with(prefix)
    }

    /// Begins to fetch the slots and the first bytes of the string.
    #[inline(always)]
    pub(super) fn prefetch(&self, name_entry: u32) {
        self.arena.prefetch(name_entry, 2);
    }

    #[inline(always)]
    pub(super) fn forwarding(&self, at: SlotRef) -> Forwarding {
        let slot = &self.arena.get_from(at.name_entry)[self.slot_at(at)..];
        Forwarding { number: read_u32(slot, 0), matched_bytes: read_u16(slot, 4) }
    }

    pub(super) fn set(&mut self, at: SlotRef, Forwarding { number, matched_bytes }: Forwarding) {
        let slot = self.slot_mut(at);
        slot[..4].copy_from_slice(&number.to_le_bytes());
        slot[4..6].copy_from_slice(&matched_bytes.to_le_bytes());
    }

    /// MD: the longest prefix, in components, that ever left this marker.
    #[inline(always)]
    pub(super) fn deepest(&self, at: SlotRef) -> usize {
        read_u16(&self.arena.get_from(at.name_entry)[self.slot_at(at)..], 6).into()
    }

    pub(super) fn set_deepest(&mut self, at: SlotRef, components: usize) {
        self.slot_mut(at)[6..8].copy_from_slice(&(components as u16).to_le_bytes());
    }

    /// How many longer prefixes need this one as a marker.
    pub(super) fn markers(&self, at: SlotRef) -> u32 {
        read_u32(&self.arena.get_from(at.name_entry)[self.slot_at(at)..], 8)
    }

    pub(super) fn set_markers(&mut self, at: SlotRef, markers: u32) {
        self.slot_mut(at)[8..12].copy_from_slice(&markers.to_le_bytes());
    }

    /// Nothing leads to the slot any more: frees the entry, or what its string has too much.
    pub(super) fn release(&mut self, at: SlotRef, order: &SearchOrder, components: usize) {
        self.set(at, Forwarding::UNUSED);
        let name_entry = at.name_entry;
        let slots = read_u16(self.arena.get_from(name_entry), 2);
        let used = |&slot: &u8| self.forwarding(SlotRef { name_entry, slot }).matched_bytes != UNUSED;
        // Up to 256; the last has number 255.
        match (0..slots).rev().map(|slot| slot as u8).find(used) {
            None => self.arena.free(name_entry),
            Some(last) if last < at.slot => {
                // The markers of what has gone are those that the slots below it stand for.
                let longest = order.marker_lengths(components).nth(last.into()).unwrap_or(components);
                let bytes = prefix_bytes(self.string(name_entry), longest);
                let string_at = HEADER_BYTES + usize::from(slots) * SLOT_BYTES;
                self.arena.get_from_mut(name_entry)[..2].copy_from_slice(&(bytes as u16).to_le_bytes());
                self.arena.shorten(name_entry, string_at + bytes);
            }
            Some(_) => {}
        }
    }

    #[inline(always)]
    fn slot_at(&self, at: SlotRef) -> usize {
        HEADER_BYTES + usize::from(at.slot) * SLOT_BYTES
    }

    #[inline(always)]
    fn string_at(&self, entry: &[u8]) -> usize {
        HEADER_BYTES + usize::from(read_u16(entry, 2)) * SLOT_BYTES
    }

    fn slot_mut(&mut self, at: SlotRef) -> &mut [u8] {
        let start = self.slot_at(at);
        &mut self.arena.get_from_mut(at.name_entry)[start..]
    }
}

#[inline(always)]
fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::search_order::HashSearch;
    use super::*;

    const NAME: [u8; 21] = [8, 1, 1, 8, 1, 2, 8, 1, 3, 8, 1, 4, 8, 1, 5, 8, 1, 6, 8, 1, 7];

    fn at(name_entry: u32, slot: u8) -> SlotRef {
        SlotRef { name_entry, slot }
    }

    #[test]
    fn an_entry_keeps_the_values_of_each_slot() {
        let mut entries = NameEntries::new(0, PageSize::Base).unwrap();
        let first = entries.add(&NAME, 3).unwrap();
        let second = entries.add(b"", 1).unwrap();
        for slot in 0..3 {
            let forwarding = Forwarding { number: u32::MAX - u32::from(slot), matched_bytes: slot.into() };
            entries.set(at(first, slot), forwarding);
            entries.set_deepest(at(first, slot), 256 - usize::from(slot));
            entries.set_markers(at(first, slot), 77 + u32::from(slot));
        }
        for slot in 0..3 {
            let forwarding = Forwarding { number: u32::MAX - u32::from(slot), matched_bytes: slot.into() };
            assert_eq!(entries.forwarding(at(first, slot)), forwarding);
            assert_eq!(entries.deepest(at(first, slot)), 256 - usize::from(slot));
            assert_eq!(entries.markers(at(first, slot)), 77 + u32::from(slot));
        }
        assert_eq!((entries.string(first), entries.string(second)), (&NAME[..], &b""[..]));
        assert!(entries.begins_with(first, &NAME[..6]) && !entries.begins_with(second, &NAME[..3]));
    }

    #[test]
    fn a_string_is_cut_to_its_longest_marker_and_then_freed() {
        let order = SearchOrder::new(HashSearch::Binary, 7);
        let mut entries = NameEntries::new(0, PageSize::Base).unwrap();
        let entry = entries.add(&NAME, 3).unwrap();
        (0..3).for_each(|slot| entries.set(at(entry, slot), Forwarding::NOTHING));
        entries.release(at(entry, 1), &order, 6);
        assert_eq!(entries.string(entry), NAME);
        entries.release(at(entry, 2), &order, 7);
        assert_eq!(entries.string(entry), &NAME[..12], "the marker at 4");
        entries.release(at(entry, 0), &order, 4);
        assert_eq!(entries.add(b"", 1).unwrap(), entry, "the room is used again");
    }

    /// §3.4.1: 16-byte units; a name of 7 components of 8 characters and its two markers.
    #[test]
    fn bytes_of_the_paper_s_names() {
        let block = namewire_tables::arena::block_bytes(HEADER_BYTES + 3 * SLOT_BYTES + 7 * (2 + 8));
        assert_eq!(block, 128);
    }
}
