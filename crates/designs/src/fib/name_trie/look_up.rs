//! Look-ups in a NameTrie: one after the other, or a batch in turns.
//!
//! Source: NameTrie18 §IV-C, Fig. 7: compare with a piece, ask EdgeHT for the next, note the forwarding points passed,
//! at last ask EdgeHT for the FIB entry of the longest. Each of these accesses depends on the one before. In turns
//! (ours): every name of a batch is a [`Search`] that knows which access is next. A turn makes that access, computes
//! the address of the next access, begins to fetch from there and leaves the processor to the next name. So up to 64
//! fetches overlap. One state machine serves both ways; only the order differs.

use super::super::min_ascii::{BRANCHING_POINT, CodedName, CodedNames, END_OF_NAME, FORWARDING_POINT, SLASH};
use super::edge_hash_table::{EdgeKey, LineRef, Probe, TO_FIB_ENTRY};
use super::name_nodes::is_branching;
use super::{BEHIND_SLASH, BatchPrefetch, NameTrie, ROOT, ends_component};
use arrayvec::ArrayVec;
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::fib::PrefixMatch;
use std::cell::RefCell;

/// The longest forwarding point so far, and how many codes of the name are before it.
#[derive(Clone, Copy)]
enum Best {
    Nothing,
    /// The number of this forwarding point is to be asked for.
    Point {
        key: EdgeKey,
        codes: u32,
    },
    Number {
        number: u32,
        codes: u32,
    },
}

/// The access that is next.
#[derive(Clone, Copy)]
enum Access {
    /// Codes of `node` from `offset` on.
    Piece { node: u32, offset: u32 },
    /// The edge to the FIB entry where a component of the name ends and the piece continues; then
    /// the edge to the child, if the name continues.
    Entry { line: LineRef, key: EdgeKey, child: Option<(LineRef, EdgeKey)> },
    /// The edge to a child.
    Child { line: LineRef, key: EdgeKey },
    /// The edge from the longest forwarding point to its FIB entry.
    Number { line: LineRef, key: EdgeKey },
}

/// A name on its way through the trie.
struct Search {
    name: CodedName,
    /// Codes of the name that were found.
    position: u32,
    best: Best,
    access: Access,
    /// Its place in the batch.
    place: usize,
}

thread_local! {
    /// A buffer that outlives the batch.
    static CODED: RefCell<CodedNames> = RefCell::default();
}

impl NameTrie {
    pub(super) fn look_up(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        assert!(names.len() <= DESIGN_BATCH_NAMES && names.len() <= out.len());
        CODED.with_borrow_mut(|coded| {
            coded.clear();
            match self.look_ups {
                BatchPrefetch::None => self.one_by_one(names, coded, out),
                BatchPrefetch::Batch => self.in_turns(names, coded, out),
            }
        });
    }

    fn one_by_one(&self, names: &[&[u8]], coded: &mut CodedNames, out: &mut [Option<PrefixMatch>]) {
        for (place, name) in names.iter().enumerate() {
            coded.clear();
            let mut search = self.begin(coded, name, place);
            out[place] = loop {
                if let Some(found) = search.turn::<false>(self, coded) {
                    break found;
                }
            };
        }
    }

    fn in_turns(&self, names: &[&[u8]], coded: &mut CodedNames, out: &mut [Option<PrefixMatch>]) {
        let mut searches: ArrayVec<Search, DESIGN_BATCH_NAMES> = ArrayVec::new();
        for (place, name) in names.iter().enumerate() {
            let search = self.begin(coded, name, place);
            searches.push(search);
        }
        while !searches.is_empty() {
            let mut next = 0;
            while next < searches.len() {
                let search = &mut searches[next];
                match search.turn::<true>(self, coded) {
                    None => next += 1,
                    Some(found) => {
                        out[search.place] = found;
                        searches.swap_remove(next);
                    }
                }
            }
        }
    }

    fn begin(&self, coded: &mut CodedNames, name: &[u8], place: usize) -> Search {
        let name = self.coding.encode(name, coded);
        let has_root = self.nodes.from(ROOT)[BEHIND_SLASH] & FORWARDING_POINT != 0;
        let key = EdgeKey::new(ROOT, BEHIND_SLASH, TO_FIB_ENTRY);
        let best = if has_root { Best::Point { key, codes: 0 } } else { Best::Nothing };
        let access = Access::Piece { node: ROOT, offset: BEHIND_SLASH as u32 };
        Search { name, position: 0, best, access, place }
    }
}

/// What a turn has found, once the search is over.
type Found = Option<Option<PrefixMatch>>;

impl Search {
    /// Makes one access; with `AHEAD`, begins the fetch for the next access.
    #[inline(always)]
    fn turn<const AHEAD: bool>(&mut self, trie: &NameTrie, coded: &CodedNames) -> Found {
        match self.access {
            Access::Piece { node, offset } => self.compare::<AHEAD>(trie, coded, node, offset as usize),
            Access::Entry { line, key, child } => {
                match trie.edges.probe(line, key) {
                    Probe::Next(line) => return self.go_on::<AHEAD>(trie, line, Access::Entry { line, key, child }),
                    Probe::Found(number) => self.best = Best::Number { number, codes: self.position },
                    Probe::Absent => {}
                }
                match child {
                    // Its line is on the way already.
                    Some((line, key)) => self.child::<AHEAD>(trie, coded, line, key),
                    None => self.end::<AHEAD>(trie, coded),
                }
            }
            Access::Child { line, key } => self.child::<AHEAD>(trie, coded, line, key),
            Access::Number { line, key } => match trie.edges.probe(line, key) {
                Probe::Next(line) => self.go_on::<AHEAD>(trie, line, Access::Number { line, key }),
                Probe::Found(number) => Some(self.answer(coded, number)),
                Probe::Absent => Some(None),
            },
        }
    }

    /// As far as the name agrees with the piece.
    #[inline(always)]
    fn compare<const AHEAD: bool>(&mut self, trie: &NameTrie, coded: &CodedNames, node: u32, start: usize) -> Found {
        let piece = trie.nodes.from(node);
        let codes = coded.codes_from(self.name, self.position as usize);
        let (agreed, last_point) = agreement(&piece[start..], codes);
        if let Some(point) = last_point {
            let key = EdgeKey::new(node, start + point, TO_FIB_ENTRY);
            self.best = Best::Point { key, codes: self.position + point as u32 };
        }
        self.position += agreed as u32;
        let (offset, next) = (start + agreed, codes[agreed]);
        let ends_here = next == SLASH || next == END_OF_NAME;
        let follows = piece[offset];
        if ends_here && ends_component(follows) && follows & FORWARDING_POINT != 0 {
            self.best = Best::Point { key: EdgeKey::new(node, offset, TO_FIB_ENTRY), codes: self.position };
        }
        if !is_branching(piece[offset - 1]) {
            return self.end::<AHEAD>(trie, coded);
        }
        let child = (next != END_OF_NAME).then(|| {
            let key = EdgeKey::new(node, offset - 1, next);
            (trie.edges.bucket(key), key)
        });
        if ends_here && !ends_component(follows) {
            let key = EdgeKey::new(node, offset - 1, TO_FIB_ENTRY);
            let line = trie.edges.bucket(key);
            if let (true, Some((line, _))) = (AHEAD, child) {
                trie.edges.prefetch(line);
            }
            return self.go_on::<AHEAD>(trie, line, Access::Entry { line, key, child });
        }
        match child {
            Some((line, key)) => self.go_on::<AHEAD>(trie, line, Access::Child { line, key }),
            None => self.end::<AHEAD>(trie, coded),
        }
    }

    #[inline(always)]
    fn child<const AHEAD: bool>(&mut self, trie: &NameTrie, coded: &CodedNames, line: LineRef, key: EdgeKey) -> Found {
        match trie.edges.probe(line, key) {
            Probe::Next(line) => self.go_on::<AHEAD>(trie, line, Access::Child { line, key }),
            Probe::Absent => self.end::<AHEAD>(trie, coded),
            Probe::Found(node) => {
                if AHEAD {
                    trie.nodes.prefetch(node);
                }
                self.access = Access::Piece { node, offset: 0 };
                None
            }
        }
    }

    #[inline(always)]
    fn go_on<const AHEAD: bool>(&mut self, trie: &NameTrie, line: LineRef, access: Access) -> Found {
        if AHEAD {
            trie.edges.prefetch(line);
        }
        self.access = access;
        None
    }

    /// No piece is left to compare.
    #[inline(always)]
    fn end<const AHEAD: bool>(&mut self, trie: &NameTrie, coded: &CodedNames) -> Found {
        match self.best {
            Best::Nothing => Some(None),
            Best::Number { number, codes } => {
                Some(Some(PrefixMatch { number, prefix_bytes: coded.bytes_of(self.name, codes as usize) }))
            }
            Best::Point { key, .. } => {
                let line = trie.edges.bucket(key);
                self.go_on::<AHEAD>(trie, line, Access::Number { line, key })
            }
        }
    }

    fn answer(&self, coded: &CodedNames, number: u32) -> Option<PrefixMatch> {
        let (Best::Point { codes, .. } | Best::Number { codes, .. }) = self.best else { return None };
        Some(PrefixMatch { number, prefix_bytes: coded.bytes_of(self.name, codes as usize) })
    }
}

/// How many codes a piece and a name agree in, and the last of them that is a slash and a
/// forwarding point. Both go on for eight codes and more; a name ends with a code that agrees with
/// none, and EOP is in no name.
#[inline(always)]
pub(super) fn agreement(piece: &[u8], codes: &[u8]) -> (usize, Option<usize>) {
    agreement_of_words(|start| piece[start..].first_chunk().map(|codes| u64::from_le_bytes(*codes)), codes)
}

/// As [`agreement`], of a piece that `eight_from` gives eight codes of at a time, the first code in the lowest byte.
#[inline(always)]
pub(in super::super) fn agreement_of_words(
    eight_from: impl Fn(usize) -> Option<u64>,
    codes: &[u8],
) -> (usize, Option<usize>) {
    let mut last_point = None;
    let mut start = 0;
    loop {
        let (Some(in_piece), Some(in_name)) = (eight_from(start), codes[start..].first_chunk()) else {
            return (start, last_point);
        };
        let in_piece = in_piece & !(u64::from(BRANCHING_POINT) * EACH);
        let in_name = u64::from_le_bytes(*in_name);
        let mut differs = in_piece ^ in_name;
        while differs != 0 {
            let bits = differs.trailing_zeros() & !7;
            let at = start + (bits / 8) as usize;
            let is_point = (differs >> bits) as u8 == FORWARDING_POINT && (in_name >> bits) as u8 == SLASH;
            if !is_point {
                return (at, last_point);
            }
            last_point = Some(at);
            differs &= !(0xFF << bits);
        }
        start += 8;
    }
}

/// 1 in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
