//! A NameTrie that several threads fill: how do they insert into one trie at the same time?
//!
//! Source: NameTrie18 §IV and §V-B.3. The trie is that of [`super::name_trie`]: the same codes, pieces, edges and
//! marks, and the same answers. Here its two parts, NameNodes and EdgeHT, are shared by all threads that insert.
//!
//! ```text
//!            burst of 500,000 names, by similarity
//!            | /a… /d… | /d… /k… | /k… /s… | …            parts, one for each thread   `burst`
//!                 │         │         │
//!            thread 0   thread 1   thread 2               coding, chunk, lines of its own
//!                 └─────────┼─────────┘
//!   NameNodes  | root | chunk 0 | chunk 1 | …             marks by atomic or           `pieces`
//!   EdgeHT     | bucket | bucket | bucket | …             a lock in each bucket        `edges`, `bucket`
//! ```
//!
//! The paper: names can be inserted independently if they branch into different paths, false sharing is rare if the
//! names that threads work on are far apart, and a thread misses caches less if a name resembles the one before. The
//! paper does not say what is locked. Ours:
//!
//! - The owner feeds a *burst* of names and says how many threads insert it ([`SharedNameTrie::insert_burst`]). The
//!   burst is divided by similarity, so that threads are in different sub-tries except near the cuts.
//! - Before the burst, EdgeHT gets the buckets for it, and the arrays the room. The threads split buckets, too.
//! - A new piece is written to memory of its thread. One atomic step then adds its edge to EdgeHT, unless another
//!   thread was faster: then the piece is taken back, and the name goes on below the other's piece. After that its
//!   parent's code is marked as a branching point. So a thread that does not see the mark yet merely asks EdgeHT in
//!   vain, or finds the edge when it adds its own.
//! - The edge to a name's number is added or changed by one atomic step as well.
//!
//! Any interleaving gives the answers of one thread that inserts one name after the other: there is at most one edge
//! of a key, pieces do not change but for their marks, and marks are only set. Pieces may be cut differently. Equal
//! names of a burst fall to one thread, so the last one's number counts.
//!
//! Deviations from `name_trie`: nothing is removed, so no branching point's edges are counted (`SIBLINGS`). Look-ups go
//! one by one. The memory that was reserved for a burst and not needed serves the next.
//!
//! Cost: as of `name_trie`, with an atomic exchange for each edge and each mark. What a thread writes for itself is in
//! lines of its own: with both threads' in one line, two threads were slower than one (0.91 times its speed), and 1.74
//! times as fast without. 2.5 million names of 48 bytes in bursts of 500,000, machine busy, took NameTrie 3,370 ns a
//! name, one thread 2,338 and two 1,341, dividing and sorting included. Bytes: as of `name_trie`, without the counts of
//! edges (68 for each of these names, 73 there); while a burst is inserted, 20 for each of its names.
//! Limits: as for all designs; 16 GiB of pieces; [`MAX_THREADS`]; base or transparent pages.
//! Writers: the threads of a burst. Readers: while there is no burst.

mod bucket;
mod burst;
mod edges;
mod pieces;

use super::min_ascii::{BRANCHING_POINT, CodedName, CodedNames, END_OF_NAME, FORWARDING_POINT, MinAscii, SLASH};
use super::name_trie::ends_component;
use burst::{Part, Route};
use edges::{LineStock, SharedEdges, edge_key};
use namewire_tables::fib::{FibRefusal, PrefixMatch};
use namewire_tables::pages::PageSize;
use pieces::{Chunk, SharedPieces};
use std::io;

/// Most threads of a burst.
pub const MAX_THREADS: usize = 64;
/// Byte of the key that leads to the number of a prefix: the code EOP.
const TO_FIB_ENTRY: u8 = 0;
/// A new name adds an edge to its piece and one to its number.
const EDGES_PER_NAME: usize = 2;
/// Codes of a name at most: three for each byte, and 15 for each component beside its two bytes of header.
const CODES_PER_2_BYTES: usize = 3 * 2 + 15;
/// The node that contains the slash of every URI, and EOP.
const ROOT: u32 = 0;

/// A NameTrie for several writers.
pub struct SharedNameTrie {
    shared: Shared,
    stocks: Vec<LineStock>,
    writers: Vec<Writer>,
    prefixes: usize,
    edges: usize,
    capacity_entries: usize,
}

/// What all threads use.
struct Shared {
    coding: MinAscii,
    pieces: SharedPieces,
    edges: SharedEdges,
}

/// What a thread has for itself, in cache lines of its own: with every name it is written several times.
#[derive(Default)]
#[repr(align(128))]
struct Writer {
    coded: CodedNames,
    chunk: Chunk,
    /// Edges that it added in this burst.
    edges: usize,
    inserted: Inserted,
}

/// What became of the names of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// Prefixes that are new.
    pub added: usize,
    /// Names whose prefix was there before, which leads to another number now.
    pub changed: usize,
    /// Names that were refused, because a prefix cannot be so long ([`FibRefusal::PrefixTooLong`]).
    pub too_long: usize,
}

/// The longest forwarding point so far, and how many codes of the name are before it.
#[derive(Clone, Copy)]
enum Best {
    /// The number of this forwarding point is to be asked for.
    Point(u64),
    Number(u32),
}

impl SharedNameTrie {
    /// An empty trie for this many prefixes.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    pub fn new(capacity_entries: usize, seed: u64, coding: MinAscii, pages: PageSize) -> io::Result<Self> {
        // The room for a burst is larger than what the burst fills.
        let pages = pages.for_sparse();
        let shared = Shared { coding, pieces: SharedPieces::new(pages)?, edges: SharedEdges::new(seed, pages)? };
        Ok(Self { shared, stocks: Vec::new(), writers: Vec::new(), prefixes: 0, edges: 0, capacity_entries })
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.prefixes
    }

    /// Whether there is no prefix at all.
    pub fn is_empty(&self) -> bool {
        self.prefixes == 0
    }

    /// Bytes of the pieces and edges, as far as they were ever in use.
    pub fn bytes(&self) -> usize {
        let coded: usize = self.writers.iter().map(|writer| writer.coded.bytes()).sum();
        size_of::<Self>() + self.shared.pieces.bytes() + self.shared.edges.bytes() + coded
    }

    /// Adds these prefixes with their numbers, by up to `threads` threads (1 to [`MAX_THREADS`]). With one thread, none
    /// is started. If the burst has a prefix more than once, its last number counts.
    ///
    /// # Errors
    /// [`FibRefusal::Full`] if the burst has more prefixes than there is capacity left, or [`FibRefusal::NoMemory`];
    /// then nothing changed. A name that is too long is only counted.
    pub fn insert_burst(&mut self, burst: &[(&[u8], u32)], threads: usize) -> Result<Inserted, FibRefusal> {
        let threads = threads.clamp(1, MAX_THREADS);
        if burst.len() > (self.capacity_entries - self.prefixes).min(u32::MAX as usize) {
            return Err(FibRefusal::Full);
        }
        self.reserve(burst, threads).map_err(|_| FibRefusal::NoMemory)?;
        let shared = &self.shared;
        let parts = burst::parts(burst, threads);
        let mut parts = self.writers.iter_mut().zip(&mut self.stocks).zip(parts);
        let own = parts.next();
        std::thread::scope(|scope| {
            for ((writer, stock), part) in parts {
                scope.spawn(move || shared.insert_part(burst, part, writer, stock));
            }
            if let Some(((writer, stock), part)) = own {
                shared.insert_part(burst, part, writer, stock);
            }
        });
        let mut inserted = Inserted::default();
        for writer in &mut self.writers {
            let Inserted { added, changed, too_long } = std::mem::take(&mut writer.inserted);
            inserted.added += added;
            inserted.changed += changed;
            inserted.too_long += too_long;
            self.edges += std::mem::take(&mut writer.edges);
        }
        self.prefixes += inserted.added;
        Ok(inserted)
    }

    fn reserve(&mut self, burst: &[Route<'_>], threads: usize) -> io::Result<()> {
        self.writers.resize_with(self.writers.len().max(threads), Writer::default);
        self.stocks.resize_with(self.stocks.len().max(threads), LineStock::default);
        let bytes: usize = burst.iter().map(|(prefix, _)| prefix.len()).sum();
        let codes = bytes / 2 * CODES_PER_2_BYTES + burst.len() * (CODES_PER_2_BYTES + 1);
        self.shared.pieces.reserve(burst.len(), codes, threads)?;
        self.shared.edges.reserve(self.edges, EDGES_PER_NAME * burst.len(), &mut self.stocks[..threads])
    }

    /// The longest prefix of every name, one name after the other.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        let mut coded = CodedNames::default();
        for (found, name) in out[..names.len()].iter_mut().zip(names) {
            coded.clear();
            let name = self.shared.coding.encode(name, &mut coded);
            *found = self.shared.look_up(name, &coded);
        }
    }
}

impl Shared {
    fn insert_part(&self, burst: &[Route<'_>], part: Part<'_>, writer: &mut Writer, stock: &mut LineStock) {
        for number in burst::ordered(burst, part) {
            let (prefix, number) = burst[number as usize];
            writer.coded.clear();
            let name = self.coding.encode(prefix, &mut writer.coded);
            if !name.is_whole() {
                writer.inserted.too_long += 1;
                continue;
            }
            match self.insert(name, number, writer, stock) {
                None => writer.inserted.added += 1,
                Some(_) => writer.inserted.changed += 1,
            }
        }
    }

    /// Adds a prefix; gives the number that it had before.
    fn insert(&self, name: CodedName, number: u32, writer: &mut Writer, stock: &mut LineStock) -> Option<u32> {
        let codes_of_name = writer.coded.codes(name).len();
        let (mut node, mut position) = (ROOT, 0);
        loop {
            let codes = writer.coded.codes_from(name, position);
            let (agreed, offset, _) = self.compare(node, codes);
            position += agreed;
            let rest = codes_of_name - position;
            if rest == 0 {
                let is_at_point = ends_component(self.pieces.code(node, offset));
                let (offset, mark) =
                    if is_at_point { (offset, FORWARDING_POINT) } else { (offset - 1, BRANCHING_POINT) };
                let before = self.edges.enter(edge_key(node, offset, TO_FIB_ENTRY), number, true, stock);
                self.pieces.mark(node, offset, mark);
                writer.edges += usize::from(before.is_none());
                return before;
            }
            let (offset, codes) = (offset - 1, &codes[agreed..][..rest]);
            let key = edge_key(node, offset, codes[0]);
            let is_branching = self.pieces.code(node, offset) & BRANCHING_POINT != 0;
            if let Some(child) = is_branching.then(|| self.edges.get(key)).flatten() {
                node = child;
                continue;
            }
            let child = self.pieces.allocate(codes, &mut writer.chunk);
            let faster = self.edges.enter(key, child, false, stock);
            self.pieces.mark(node, offset, BRANCHING_POINT);
            if let Some(faster) = faster {
                self.pieces.take_back(child, codes, &mut writer.chunk);
                node = faster;
                continue;
            }
            let before = self.edges.enter(edge_key(child, codes.len(), TO_FIB_ENTRY), number, true, stock);
            writer.edges += 1 + usize::from(before.is_none());
            return before;
        }
    }

    /// How far the rest of a name agrees with a node; the node's offset behind that; and the last of the codes that
    /// agreed that is a slash and a forwarding point.
    #[inline(always)]
    fn compare(&self, node: u32, codes: &[u8]) -> (usize, usize, Option<usize>) {
        if node == ROOT {
            return (0, 1, None); // nothing but EOP is behind the slash
        }
        let (agreed, last_point) = self.pieces.agreement(node, codes);
        (agreed, agreed, last_point)
    }

    fn look_up(&self, name: CodedName, coded: &CodedNames) -> Option<PrefixMatch> {
        let (mut node, mut position) = (ROOT, 0);
        let mut best = None;
        loop {
            let codes = coded.codes_from(name, position);
            let (agreed, offset, last_point) = self.compare(node, codes);
            if let Some(point) = last_point {
                best = Some((Best::Point(edge_key(node, point, TO_FIB_ENTRY)), position + point));
            }
            position += agreed;
            let next = codes[agreed];
            let ends_here = next == SLASH || next == END_OF_NAME;
            let follows = self.pieces.code(node, offset);
            // Every name begins with the root's slash.
            if (ends_here || node == ROOT) && ends_component(follows) && follows & FORWARDING_POINT != 0 {
                best = Some((Best::Point(edge_key(node, offset, TO_FIB_ENTRY)), position));
            }
            if self.pieces.code(node, offset - 1) & BRANCHING_POINT == 0 {
                break;
            }
            if ends_here && !ends_component(follows) {
                let number = self.edges.get(edge_key(node, offset - 1, TO_FIB_ENTRY));
                best = number.map(|number| (Best::Number(number), position)).or(best);
            }
            match (next != END_OF_NAME).then(|| self.edges.get(edge_key(node, offset - 1, next))).flatten() {
                Some(child) => node = child,
                None => break,
            }
        }
        let (best, codes) = best?;
        let number = match best {
            Best::Point(key) => self.edges.get(key)?,
            Best::Number(number) => number,
        };
        Some(PrefixMatch { number, prefix_bytes: coded.bytes_of(name, codes) })
    }
}

#[cfg(test)]
mod tests;
