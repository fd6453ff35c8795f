//! The shared NameNodes: pieces of names that several threads write.
//!
//! Source: NameTrie18 §IV-B; §V-B.3: threads write to memory of their own, so that they share few lines. A thread
//! claims a [`Chunk`] of the array by one atomic addition and puts its pieces there, one behind the other. Only marks
//! change later: a code becomes a branching or a forwarding point by an atomic *or*, and never stops being one.
//!
//! ```text
//! unit, 4 bytes:   | code | code | code | code |     the first code is the lowest byte
//! array:           | root | chunk of thread 0 | chunk of thread 1 | chunk of thread 0 | … | padding |
//! ```
//!
//! Cost: an insertion writes its piece and one mark. Bytes: a piece takes 1.5 of fill on average, as in
//! `name_trie::name_nodes`; a chunk that is given up wastes less than a quarter. Limits: 2³² units (16 GiB). Nothing is
//! given back. Writers: within a burst, its threads.

use super::super::min_ascii::{EOP, FORWARDING_POINT, SLASH};
use super::super::name_trie::agreement_of_words;
use namewire_tables::pages::{PageArray, PageSize};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const UNIT_BYTES: usize = 4;
/// Readable behind every piece, so that codes can be compared eight at a time.
const PADDING_UNITS: usize = 4;
/// Units that a thread claims at once.
const CHUNK_UNITS: usize = 1 << 14;
/// A longer piece gets units of its own.
const MAX_UNITS_IN_CHUNK: usize = CHUNK_UNITS / 4;

/// Room of one thread.
#[derive(Debug, Default)]
pub(super) struct Chunk(Range<usize>);

/// The shared NameNodes.
pub(super) struct SharedPieces {
    units: PageArray<AtomicU32>,
    claimed: AtomicUsize,
}

impl SharedPieces {
    /// Pieces; the root, a slash and EOP, is at address 0.
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let units: PageArray<AtomicU32> = PageArray::zeroed_preferably(1024, pages)?;
        units[0].store(u32::from_le_bytes([SLASH, EOP, EOP, EOP]), Ordering::Relaxed);
        Ok(Self { units, claimed: AtomicUsize::new(1) })
    }

    /// Bytes that chunks have claimed.
    pub(super) fn bytes(&self) -> usize {
        self.claimed.load(Ordering::Relaxed) * UNIT_BYTES
    }

    /// Makes room for pieces of `codes` codes in all, their EOPs included, of which there are `pieces`, written by
    /// `threads` threads.
    pub(super) fn reserve(&mut self, pieces: usize, codes: usize, threads: usize) -> io::Result<()> {
        let filled = codes / UNIT_BYTES + pieces;
        // Of a chunk, less than a quarter is given up.
        let wanted = *self.claimed.get_mut() + filled + filled / 2 + threads * CHUNK_UNITS + PADDING_UNITS;
        if wanted > u32::MAX as usize {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.units.grow(wanted)
    }

    /// Keeps a piece of these codes that ends a prefix; its room was reserved. No other thread knows it yet.
    #[inline]
    pub(super) fn allocate(&self, codes: &[u8], chunk: &mut Chunk) -> u32 {
        let units = units_of(codes);
        let node = if units > MAX_UNITS_IN_CHUNK {
            self.claimed.fetch_add(units, Ordering::Relaxed)
        } else {
            if chunk.0.len() < units {
                let first = self.claimed.fetch_add(CHUNK_UNITS, Ordering::Relaxed);
                chunk.0 = first..first + CHUNK_UNITS;
            }
            chunk.0.start += units;
            chunk.0.start - units
        };
        let ends = [EOP | FORWARDING_POINT, EOP, EOP, EOP];
        let (whole, rest) = codes.as_chunks::<UNIT_BYTES>();
        let room = &self.units[node..node + units];
        for (unit, &codes) in room.iter().zip(whole) {
            unit.store(u32::from_le_bytes(codes), Ordering::Relaxed);
        }
        let mut last = ends;
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()..].copy_from_slice(&ends[..UNIT_BYTES - rest.len()]);
        room[whole.len()].store(u32::from_le_bytes(last), Ordering::Relaxed);
        node as u32
    }

    /// Takes back the piece of these codes that was allocated last and that no other thread knows.
    pub(super) fn take_back(&self, node: u32, codes: &[u8], chunk: &mut Chunk) {
        if node as usize + units_of(codes) == chunk.0.start {
            chunk.0.start = node as usize;
        }
    }

    /// The code at an offset of a node.
    #[inline(always)]
    pub(super) fn code(&self, node: u32, offset: usize) -> u8 {
        let unit = self.units[node as usize + offset / UNIT_BYTES].load(Ordering::Acquire);
        unit.to_le_bytes()[offset % UNIT_BYTES]
    }

    /// Adds `mark` to the code at an offset of a node.
    #[inline]
    pub(super) fn mark(&self, node: u32, offset: usize, mark: u8) {
        if self.code(node, offset) & mark != mark {
            let mut bits = [0; UNIT_BYTES];
            bits[offset % UNIT_BYTES] = mark;
            let unit = &self.units[node as usize + offset / UNIT_BYTES];
            unit.fetch_or(u32::from_le_bytes(bits), Ordering::AcqRel);
        }
    }

    /// How many codes a piece and a name agree in, and the last of them that is a slash and a forwarding point.
    #[inline(always)]
    pub(super) fn agreement(&self, node: u32, codes: &[u8]) -> (usize, Option<usize>) {
        let eight_from = |offset: usize| {
            let [low, high] = self.units[node as usize + offset / UNIT_BYTES..].first_chunk()?;
            Some(u64::from(low.load(Ordering::Acquire)) | u64::from(high.load(Ordering::Acquire)) << 32)
        };
        agreement_of_words(eight_from, codes)
    }
}

/// Units of a piece of these codes and EOP.
fn units_of(codes: &[u8]) -> usize {
    codes.len() / UNIT_BYTES + 1
}
