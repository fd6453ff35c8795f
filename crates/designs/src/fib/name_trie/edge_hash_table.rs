//! EdgeHT: which piece continues this one, with this byte?
//!
//! Source: NameTrie18 §IV-B, Fig. 8. The paper's key ⟨parent node, offset, next byte⟩ is [`EdgeKey`]. There are n
//! items in m buckets, with n/m constant. Colliding items are in an embedded array of the bucket, not in a list.
//!
//! ```text
//! bucket, one line:  | node × 5 | offset, byte × 5 | value × 5 | overflow |
//!                    0          20                  40          60         64
//! ```
//!
//! An edge takes 12 bytes, as in the paper's analysis (Table I: 12 d). A bucket with more than five edges continues in
//! the overflow array. There are no gaps between edges, so the first empty place ends a bucket. An edge leads to one
//! of three things:
//! - a node,
//! - the number of a prefix,
//! - with the key byte [`SIBLINGS`], the number of edges that begin at one point, kept where there are two or more.
//!
//! n/m stays constant while the table grows because it grows bucket by bucket (linear hashing, Litwin 1980; the paper
//! does not say how): each insertion beyond [`EDGES_PER_4_BUCKETS`] splits one bucket in two. So nothing is ever
//! rehashed as a whole, and m need not be a power of two. The table does not shrink: the room serves the next edges.
//!
//! Cost: a look-up reads 1 line, and about 0.3 more for overflow. Bytes: an edge takes 14 for buckets (64 bytes per
//! 4.5 edges) and about 4 for overflow. Limits: 2³¹ buckets; an insertion whose room was reserved cannot fail.
//! Writers: the owner.

use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use smallvec::SmallVec;
use std::io;

/// Edges of a line.
const EDGES: usize = 5;
const NODES: usize = 0;
const PLACES: usize = EDGES;
const VALUES: usize = 2 * EDGES;
/// The word that says which overflow line follows: its number and 1; 0 = none.
const OVERFLOW: usize = 3 * EDGES;

#[derive(Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u32; 16]);

const _: () = assert!(OVERFLOW == 15 && size_of::<Line>() == 64 && align_of::<Line>() == 64);

/// Load: edges for each four buckets.
const EDGES_PER_4_BUCKETS: usize = 18;
const FIRST_BUCKETS: usize = 16;
/// Uppermost bit of a [`LineRef`]: a line of the overflow array.
const IN_OVERFLOW: u32 = 1 << 31;

/// Byte of the key that leads to the number of a prefix: the code EOP.
pub(super) const TO_FIB_ENTRY: u8 = 0;
/// Byte of the key that leads to the number of edges of a branching point: no code of a name.
pub(super) const SIBLINGS: u8 = 127;

/// ⟨parent node, offset, next byte⟩.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeKey {
    node: u32,
    /// Offset, byte (7 bits), 1: never 0, which is an empty place.
    place: u32,
}

impl EdgeKey {
    #[inline(always)]
    pub(super) fn new(node: u32, offset: usize, byte: u8) -> Self {
        Self { node, place: (offset as u32) << 8 | u32::from(byte) << 1 | 1 }
    }
}

/// A line of some bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRef(u32);

/// What one line says about a key.
pub(super) enum Probe {
    Found(u32),
    Absent,
    /// The bucket continues in this overflow line.
    Next(LineRef),
}

/// EdgeHT.
pub(super) struct EdgeHashTable {
    buckets: PageArray<Line>,
    /// m; buckets behind these are room.
    used_buckets: usize,
    /// One less than the power of two that m is at most.
    mask: u64,
    overflow: PageArray<Line>,
    used_overflow: usize,
    /// The first free overflow line and 1; each leads to the next.
    free_overflow: u32,
    free_overflow_lines: usize,
    edges: usize,
    seed: [u64; 2],
}

impl EdgeHashTable {
    pub(super) fn new(seed: u64, pages: PageSize) -> io::Result<Self> {
        let spread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
        Ok(Self {
            buckets: PageArray::zeroed_preferably(FIRST_BUCKETS, pages)?,
            used_buckets: FIRST_BUCKETS,
            mask: FIRST_BUCKETS as u64 - 1,
            overflow: PageArray::zeroed_preferably(FIRST_BUCKETS, pages)?,
            used_overflow: 0,
            free_overflow: 0,
            free_overflow_lines: 0,
            edges: 0,
            seed: [seed, spread | 1],
        })
    }

    /// n.
    pub(super) fn len(&self) -> usize {
        self.edges
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.mapped_bytes() + self.overflow.mapped_bytes()
    }

    /// The first line of the key's bucket.
    #[inline(always)]
    pub(super) fn bucket(&self, key: EdgeKey) -> LineRef {
        let mixed = (u64::from(key.node) << 32 | u64::from(key.place)) ^ self.seed[0];
        let product = u128::from(mixed) * u128::from(self.seed[1]);
        let hash = (product >> 64) as u64 ^ product as u64;
        let bucket = hash & self.mask;
        let is_split = bucket < self.used_buckets as u64;
        LineRef((if is_split { bucket } else { bucket & (self.mask >> 1) }) as u32)
    }

    #[inline(always)]
    fn line(&self, line: LineRef) -> &[u32; 16] {
        match line.0 & IN_OVERFLOW {
            0 => &self.buckets[line.0 as usize].0,
            _ => &self.overflow[(line.0 & !IN_OVERFLOW) as usize].0,
        }
    }

    fn line_mut(&mut self, line: LineRef) -> &mut [u32; 16] {
        match line.0 & IN_OVERFLOW {
            0 => &mut self.buckets[line.0 as usize].0,
            _ => &mut self.overflow[(line.0 & !IN_OVERFLOW) as usize].0,
        }
    }

    /// Begins to fetch a line.
    #[inline(always)]
    pub(super) fn prefetch(&self, line: LineRef) {
        prefetch(self.line(line));
    }

    /// Compares the key with the edges of one line.
    #[inline(always)]
    pub(super) fn probe(&self, line: LineRef, key: EdgeKey) -> Probe {
        let words = self.line(line);
        for place in 0..EDGES {
            if words[PLACES + place] == key.place && words[NODES + place] == key.node {
                return Probe::Found(words[VALUES + place]);
            }
        }
        following(words).map_or(Probe::Absent, Probe::Next)
    }

    /// What the edge leads to.
    pub(super) fn get(&self, key: EdgeKey) -> Option<u32> {
        let mut line = self.bucket(key);
        loop {
            match self.probe(line, key) {
                Probe::Found(value) => return Some(value),
                Probe::Absent => return None,
                Probe::Next(next) => line = next,
            }
        }
    }

    /// Makes sure that the next `edges` insertions find room.
    pub(super) fn reserve(&mut self, edges: usize) -> io::Result<()> {
        let wanted = (self.used_overflow + edges).saturating_sub(self.free_overflow_lines);
        if wanted > self.overflow.len() {
            self.overflow.grow(wanted + wanted / 16 + 64)?;
        }
        Ok(())
    }

    /// Adds an edge that is not there; its room was reserved.
    pub(super) fn insert(&mut self, key: EdgeKey, value: u32) {
        self.append(key, value);
        self.edges += 1;
        while self.edges * 4 > self.used_buckets * EDGES_PER_4_BUCKETS && self.split_one() {}
    }

    /// Leads an edge that is there elsewhere.
    pub(super) fn set(&mut self, key: EdgeKey, value: u32) -> Option<u32> {
        let (line, place) = self.find(key)?;
        Some(std::mem::replace(&mut self.line_mut(line)[VALUES + place], value))
    }

    /// Takes an edge away: the last of its bucket takes its place.
    pub(super) fn remove(&mut self, key: EdgeKey) -> Option<u32> {
        let (line, place) = self.find(key)?;
        let value = self.line(line)[VALUES + place];
        let (mut before, mut last) = (None, self.bucket(key));
        while let Some(next) = following(self.line(last)) {
            (before, last) = (Some(last), next);
        }
        let last_place = occupied(self.line(last)) - 1;
        let moved = [NODES, PLACES, VALUES].map(|column| self.line(last)[column + last_place]);
        for (column, word) in [NODES, PLACES, VALUES].into_iter().zip(moved) {
            self.line_mut(line)[column + place] = word;
            self.line_mut(last)[column + last_place] = 0;
        }
        if let (0, Some(before)) = (last_place, before) {
            self.line_mut(before)[OVERFLOW] = 0;
            self.free_line(last);
        }
        self.edges -= 1;
        Some(value)
    }

    fn find(&self, key: EdgeKey) -> Option<(LineRef, usize)> {
        let mut line = self.bucket(key);
        loop {
            let words = self.line(line);
            let is_key = |&place: &usize| words[PLACES + place] == key.place && words[NODES + place] == key.node;
            if let Some(place) = (0..EDGES).find(is_key) {
                return Some((line, place));
            }
            line = following(words)?;
        }
    }

    fn append(&mut self, key: EdgeKey, value: u32) {
        let mut line = self.bucket(key);
        while let Some(next) = following(self.line(line)) {
            line = next;
        }
        let mut place = occupied(self.line(line));
        if place == EDGES {
            let fresh = self.take_line();
            self.line_mut(line)[OVERFLOW] = (fresh.0 & !IN_OVERFLOW) + 1;
            (line, place) = (fresh, 0);
        }
        let words = self.line_mut(line);
        words[NODES + place] = key.node;
        words[PLACES + place] = key.place;
        words[VALUES + place] = value;
    }

    /// An empty overflow line; there is one, reserved.
    fn take_line(&mut self) -> LineRef {
        if self.free_overflow == 0 {
            self.used_overflow += 1;
            return LineRef((self.used_overflow - 1) as u32 | IN_OVERFLOW);
        }
        let line = LineRef((self.free_overflow - 1) | IN_OVERFLOW);
        self.free_overflow = std::mem::take(&mut self.line_mut(line)[OVERFLOW]);
        self.free_overflow_lines -= 1;
        line
    }

    fn free_line(&mut self, line: LineRef) {
        let next = self.free_overflow;
        *self.line_mut(line) = [0; 16];
        self.line_mut(line)[OVERFLOW] = next;
        self.free_overflow = (line.0 & !IN_OVERFLOW) + 1;
        self.free_overflow_lines += 1;
    }

    /// Splits the next bucket in two; false, and nothing changed, where there is no memory for it:
    /// then buckets hold more.
    fn split_one(&mut self) -> bool {
        let fresh = self.used_buckets;
        if fresh == self.buckets.len() {
            let grown = (fresh + fresh / 16 + 64).min(IN_OVERFLOW as usize);
            if grown == fresh || self.buckets.grow(grown).is_err() {
                return false;
            }
        }
        self.mask = (fresh as u64 + 1).next_power_of_two() - 1;
        let split = LineRef(fresh as u32 & (self.mask >> 1) as u32);
        let edges = self.take_edges(split);
        self.used_buckets += 1;
        // The lines that the bucket gave back suffice for both.
        for (key, value) in edges {
            self.append(key, value);
        }
        true
    }

    /// Empties a bucket.
    fn take_edges(&mut self, bucket: LineRef) -> SmallVec<[(EdgeKey, u32); 4 * EDGES]> {
        let (mut edges, mut line) = (SmallVec::new(), bucket);
        loop {
            let words = *self.line(line);
            for place in 0..occupied(&words) {
                let key = EdgeKey { node: words[NODES + place], place: words[PLACES + place] };
                edges.push((key, words[VALUES + place]));
            }
            if line == bucket {
                *self.line_mut(line) = [0; 16];
            } else {
                self.free_line(line);
            }
            match following(&words) {
                Some(next) => line = next,
                None => return edges,
            }
        }
    }
}

#[inline(always)]
fn following(words: &[u32; 16]) -> Option<LineRef> {
    (words[OVERFLOW] != 0).then(|| LineRef((words[OVERFLOW] - 1) | IN_OVERFLOW))
}

/// Edges of a line; they stand without gaps.
fn occupied(words: &[u32; 16]) -> usize {
    words[PLACES..VALUES].iter().take_while(|&&place| place != 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn edges_come_and_go_and_the_load_stays() {
        let mut table = EdgeHashTable::new(3, PageSize::Base).unwrap();
        let mut model = HashMap::new();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut bytes = 0;
        for round in 0..150_000_u32 {
            let (node, offset, byte) = (rng.u32(0..3000), rng.usize(0..4), rng.u8(0..2));
            let key = EdgeKey::new(node, offset, byte);
            if rng.bool() {
                match model.insert((node, offset, byte), round) {
                    None => {
                        table.reserve(1).unwrap();
                        table.insert(key, round);
                    }
                    before => assert_eq!(table.set(key, round), before),
                }
            } else {
                assert_eq!(table.remove(key), model.remove(&(node, offset, byte)));
            }
            assert_eq!(table.len(), model.len());
            if round == 100_000 {
                assert!(model.len() > 10_000);
                bytes = table.bytes();
            }
        }
        assert!(table.bytes() < bytes + bytes / 8, "{bytes} {}", table.bytes());
        assert!(table.used_buckets * EDGES_PER_4_BUCKETS <= (model.len() + model.len() / 8) * 4);
        for node in 0..3000 {
            for (offset, byte) in (0..4).flat_map(|offset| [(offset, 0), (offset, 1)]) {
                let expected = model.get(&(node, offset, byte)).copied();
                assert_eq!(table.get(EdgeKey::new(node, offset, byte)), expected);
            }
        }
    }

    #[test]
    fn no_edge_looks_like_an_empty_place() {
        assert_eq!(EdgeKey::new(0, 0, TO_FIB_ENTRY), EdgeKey { node: 0, place: 1 });
        assert_eq!(EdgeKey::new(7, 28_000, SIBLINGS).place >> 8, 28_000);
    }
}
