//! NameNodes: where are the pieces of names kept?
//!
//! Source: NameTrie18 §IV-B, Figs. 7-8: the codes of a piece follow one another, its end is the code EOP, and each
//! piece has separate memory; the address of a piece names the node. Here all pieces are in one array. An address is a
//! number of 4-byte units, so that 32 bits reach 16 GiB.
//!
//! ```text
//! piece in use:  | code | code | … | EOP | fill to 4 |
//! free block:    | 1 | 0 | units u16 | next free block of this length, if longer than a unit | …
//!                0               4                    8
//! ```
//!
//! A piece has no header: its EOP shows its length. No piece begins with EOP, so the first byte distinguishes a free
//! block from a piece. Each length in units has a separate free list. If no block of a length is free, a piece is cut
//! from the next longer one, or taken from the end. Blocks that touch are joined only when three things hold: a quarter
//! of the array is free, no free block is long enough, and an eighth was freed since the last time. Joining walks
//! through all blocks. So the memory stays within what the pieces need, however often they change.
//!
//! Cost: an allocation writes one line, and so does freeing a piece. Joining reads the array from end to end, which is
//! less than a line for each piece freed since. Bytes: a piece takes 1.5 of fill on average. Limits: 2³² units; an
//! allocation whose room was reserved cannot fail. Writers: the owner.

use super::super::min_ascii::{BRANCHING_POINT, FORWARDING_POINT};
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch_range;
use std::io;

const UNIT_BYTES: usize = 4;
/// Pieces are shorter: offsets take 15 bits.
const MAX_UNITS: usize = (1 << 15) / UNIT_BYTES;
/// No block is free: address 0 is the root, which always is in use.
const NIL: u32 = 0;
/// The first byte of a free block; no piece begins with it.
const IS_FREE: u32 = FORWARDING_POINT as u32;
/// Readable behind every piece, so that codes can be compared eight at a time.
const PADDING_UNITS: usize = 4;

/// NameNodes.
pub(super) struct NameNodes {
    units: PageArray<u32>,
    used_units: usize,
    /// Element `units`: the newest free block of this length, from two units on.
    newest_free: Box<[u32]>,
    /// Bit `units`: there is one.
    has_free: Box<[u64]>,
    /// Free blocks of one unit.
    free_singles: Vec<u32>,
    free_units: usize,
    freed_since_joining: usize,
}

impl NameNodes {
    /// Nodes; the first to be allocated is the root, at address 0.
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            units: PageArray::zeroed_preferably(1024, pages)?,
            used_units: 0,
            newest_free: vec![NIL; MAX_UNITS + 1].into(),
            has_free: vec![0; MAX_UNITS / 64 + 1].into(),
            free_singles: Vec::new(),
            free_units: 0,
            freed_since_joining: 0,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = size_of_val(&*self.newest_free) + size_of_val(&*self.has_free);
        self.units.mapped_bytes() + lists + self.free_singles.capacity() * size_of::<u32>()
    }

    /// The bytes of a node and of all that lies behind it.
    #[inline(always)]
    pub(super) fn from(&self, node: u32) -> &[u8] {
        bytemuck::cast_slice(&self.units[node as usize..])
    }

    /// The piece of a node, its EOP included.
    pub(super) fn piece(&self, node: u32) -> &[u8] {
        let bytes = self.from(node);
        &bytes[..=bytes.iter().position(|&code| is_eop(code)).unwrap_or(0)]
    }

    /// The code at an offset of a node, to be changed.
    pub(super) fn code_mut(&mut self, node: u32, offset: usize) -> &mut u8 {
        &mut bytemuck::cast_slice_mut::<_, u8>(&mut self.units[node as usize..])[offset]
    }

    /// Begins to fetch what most pieces do not go beyond.
    #[inline(always)]
    pub(super) fn prefetch(&self, node: u32) {
        if let Some(unit) = self.units.get(node as usize) {
            prefetch_range(std::ptr::from_ref(unit).cast(), 24);
        }
    }

    /// Makes sure that the next piece, of `codes` codes with its EOP, finds room.
    pub(super) fn reserve(&mut self, codes: usize) -> io::Result<()> {
        let wanted = self.used_units + units_of(codes) + PADDING_UNITS;
        if wanted > self.units.len() {
            if wanted > u32::MAX as usize {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.units.grow(wanted + wanted / 16 + 1024)?;
        }
        Ok(())
    }

    /// Keeps a piece, whose parts are given one after the other; its room was reserved.
    pub(super) fn allocate(&mut self, parts: [&[u8]; 2]) -> u32 {
        let units = units_of(parts[0].len() + parts[1].len());
        if self.free_from(units).is_none() && self.is_joining_due() {
            self.join_free();
        }
        let node = match self.take_free(units) {
            Some(node) => node,
            None => {
                self.used_units += units;
                (self.used_units - units) as u32
            }
        };
        let room = bytemuck::cast_slice_mut::<_, u8>(&mut self.units[node as usize..][..units]);
        room[..parts[0].len()].copy_from_slice(parts[0]);
        room[parts[0].len()..][..parts[1].len()].copy_from_slice(parts[1]);
        node
    }

    /// Gives the memory of a piece back.
    pub(super) fn free(&mut self, node: u32) {
        let units = units_of(self.piece(node).len());
        self.give_back(node, units);
    }

    /// Ends a piece with `eop` at an offset within, and gives the memory of the rest back.
    pub(super) fn truncate(&mut self, node: u32, offset: usize, eop: u8) {
        let (before, after) = (units_of(self.piece(node).len()), units_of(offset + 1));
        *self.code_mut(node, offset) = eop;
        if before > after {
            self.give_back(node + after as u32, before - after);
        }
    }

    fn give_back(&mut self, node: u32, units: usize) {
        self.freed_since_joining += units;
        self.link(node, units);
    }

    fn take_free(&mut self, units: usize) -> Option<u32> {
        let found = self.free_from(units)?;
        let (node, is_last) = if found == 1 {
            (self.free_singles.pop()?, self.free_singles.is_empty())
        } else {
            let node = self.newest_free[found];
            self.newest_free[found] = self.units[node as usize + 1];
            (node, self.newest_free[found] == NIL)
        };
        if is_last {
            self.has_free[found / 64] &= !(1 << (found % 64));
        }
        self.free_units -= found;
        if found > units {
            self.link(node + units as u32, found - units);
        }
        Some(node)
    }

    /// The least length, from `units` on, that has a free block.
    fn free_from(&self, units: usize) -> Option<usize> {
        let first = units / 64;
        let mut bits = self.has_free[first] & (u64::MAX << (units % 64));
        for word in first..self.has_free.len() {
            if word > first {
                bits = self.has_free[word];
            }
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
        }
        None
    }

    fn link(&mut self, node: u32, units: usize) {
        self.units[node as usize] = (IS_FREE | (units as u32) << 16).to_le();
        if units == 1 {
            self.free_singles.push(node);
        } else {
            self.units[node as usize + 1] = self.newest_free[units];
            self.newest_free[units] = node;
        }
        self.has_free[units / 64] |= 1 << (units % 64);
        self.free_units += units;
    }

    fn is_joining_due(&self) -> bool {
        self.free_units * 4 > self.used_units && self.freed_since_joining * 8 > self.used_units
    }

    /// Joins free blocks that touch into one block. Free units at the end of the array become no block.
    fn join_free(&mut self) {
        self.newest_free.fill(NIL);
        self.has_free.fill(0);
        self.free_singles.clear();
        (self.free_units, self.freed_since_joining) = (0, 0);
        let (mut at, mut free) = (0, 0);
        while at < self.used_units {
            let first = u32::from_le(self.units[at]);
            if first & 0xFF == IS_FREE {
                free += (first >> 16) as usize;
                at += (first >> 16) as usize;
            } else {
                self.link_run(at - free, free);
                free = 0;
                at += units_of(self.piece(at as u32).len());
            }
        }
        self.used_units -= free;
    }

    fn link_run(&mut self, mut start: usize, mut units: usize) {
        while units > 0 {
            let block = units.min(MAX_UNITS);
            self.link(start as u32, block);
            (start, units) = (start + block, units - block);
        }
    }
}

/// Whether a code ends a piece.
#[inline(always)]
pub(super) fn is_eop(code: u8) -> bool {
    code <= FORWARDING_POINT
}

/// Whether edges begin after a code.
#[inline(always)]
pub(super) fn is_branching(code: u8) -> bool {
    code & BRANCHING_POINT != 0
}

fn units_of(codes: usize) -> usize {
    codes.div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> NameNodes {
        let mut nodes = NameNodes::new(PageSize::Base).unwrap();
        nodes.reserve(2).unwrap();
        assert_eq!(nodes.allocate([b"\x82\0", b""]), 0);
        nodes
    }

    /// Pieces come, are cut short and go; none is ever written over, and the array stays as large as
    /// what it held at most at once would let expect.
    #[test]
    fn what_is_freed_is_used_again() {
        let mut nodes = nodes();
        let mut rng = fastrand::Rng::with_seed(1);
        let mut held: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut live_units = 0;
        for round in 0..40_000_u32 {
            if rng.u32(0..2) == 0 && live_units < 4000 {
                let codes = [&vec![b'a' + (round % 26) as u8; rng.usize(1..60)], &b"\0"[..]].concat();
                nodes.reserve(codes.len()).unwrap();
                live_units += units_of(codes.len());
                held.push((nodes.allocate([&codes[..1], &codes[1..]]), codes));
            } else if !held.is_empty() {
                let place = rng.usize(0..held.len());
                let (node, codes) = &mut held[place];
                assert_eq!(nodes.piece(*node), codes);
                live_units -= units_of(codes.len());
                if codes.len() > 8 && rng.bool() {
                    codes.truncate(codes.len() / 2);
                    codes.push(1);
                    nodes.truncate(*node, codes.len() - 1, 1);
                    live_units += units_of(codes.len());
                } else {
                    nodes.free(*node);
                    held.swap_remove(place);
                }
            }
        }
        assert!(held.iter().all(|(node, codes)| nodes.piece(*node) == codes));
        assert_eq!(nodes.used_units - nodes.free_units, live_units + 1);
        assert!(nodes.used_units < 4000 * 3 / 2, "{} units", nodes.used_units);
    }

    #[test]
    fn there_is_room_for_the_longest_piece() {
        let mut nodes = nodes();
        let long = [vec![b'x'; (1 << 15) - 2], vec![0]].concat();
        nodes.reserve(long.len()).unwrap();
        let node = nodes.allocate([&long, b""]);
        assert_eq!(nodes.piece(node), long);
        assert!(nodes.from(node).len() >= long.len() + 8);
        nodes.free(node);
        assert_eq!(nodes.allocate([b"a", b"\0"]), node);
    }
}
