//! NameTrie: which is the longest prefix of this name, by a trie of bytes whose pieces no insertion cuts?
//!
//! Source: NameTrie18 §IV, Figs. 3-8. The paper's NameNodes are `name_nodes`, its EdgeHT is `edge_hash_table`,
//! minASCII is [`super::min_ascii`]; *piece* = node, *branching point* = a code after which edges begin, *forwarding
//! point* = a slash or EOP before which a prefix in the FIB ends, LPM = longest prefix match.
//!
//! ```text
//! root      ndn/ucla•  (• EOP, a forwarding point)        after /ndn/ucla, /ndn/ua, /ndn/ua/cs
//! / EOP ──► n d n / u c l a 1 ─ ⟨piece, 8, EOP⟩ ─► number of /ndn/ucla
//!                   │ u is a branching point, next byte a: ⟨piece, 4, a⟩
//!                   ▼
//!                   a 1 ─ ⟨piece, 1, EOP⟩ ─► number of /ndn/ua
//!                   │ a is a branching point, next byte /: ⟨piece, 0, /⟩
//!                   ▼
//!                   / c s 1 ─ ⟨piece, 3, EOP⟩ ─► number of /ndn/ua/cs
//! ```
//!
//! A name is compared with a piece as far as they agree. Where name and piece part, the last code that agreed shows
//! whether edges begin after it. If so, EdgeHT gives the end of the edge for the name's next byte. Insertion never cuts
//! a piece. Where a prefix's forwarding point is depends only on the piece that has its last byte. There are two cases,
//! depending on the code after that byte in the piece:
//!
//! - a slash or EOP: that code shows whether the prefix is in the FIB, and ⟨node, its offset, EOP⟩ leads to its number;
//! - something else: ⟨node, offset of the last byte, EOP⟩ leads to the number if the prefix is in the FIB, and the
//!   last byte is a branching point. (The paper's figures have no such case. A piece of nothing but EOP would cost one
//!   access more.)
//!
//! Removal (`removal`): a piece without forwarding and branching points is removed, then its parent, if the parent now
//! has no such point either, and so on. A piece is cut off after its last forwarding or branching point, so that memory
//! is given back (the paper keeps the bytes). If a piece has only one child left, and its edge begins at the end of the
//! piece, the two are joined.
//!
//! Deviations: EdgeHT keeps the number of edges at each branching point that has two or more
//! (`edge_hash_table::SIBLINGS`). Otherwise a removal would have to ask for all 127 bytes whether the point still
//! branches. Numbers of prefixes take the place of pointers to FIB entries. As in the paper, several threads look up at
//! the same time. This table has one writer, its owner; [`super::shared_name_trie`] is filled by several.
//!
//! Prefetching: [`BatchPrefetch`].
//!
//! Cost: a look-up makes 2 d accesses for d pieces on the way (the paper's O(2 d)): an edge and a piece each, and the
//! edge to the number. Bytes: a prefix takes 61 (two edges of 18, a share of the counts of edges, the piece). Measured
//! with 900,000 domains and URLs, domain first, medians of batches of 64, machine busy, in turn with HT
//! (`name_tree_hash_table`: naive 1,149 ns, batched 492): naive 2,357 ns, batched 688; insertion 2,120, removal 2,684.
//! Limits: as for all designs; 16 GiB of pieces. Writers: the owner, while there are no readers.

mod edge_hash_table;
mod learned_codes;
mod look_up;
mod name_nodes;
mod removal;

pub use learned_codes::{LEARNED_FROM_BYTES, LearnedNameTrie};

use super::BatchPrefetch;
use super::min_ascii::{BRANCHING_POINT, CodedName, CodedNames, EOP, FORWARDING_POINT, MinAscii};
use edge_hash_table::{EdgeHashTable, EdgeKey, SIBLINGS, TO_FIB_ENTRY};
use look_up::agreement;
pub(super) use look_up::agreement_of_words;
use name_nodes::{NameNodes, is_branching};
use namewire_tables::fib::FibRefusal;
use namewire_tables::fib::{PrefixMatch, PrefixTable};
use namewire_tables::pages::PageSize;
use std::io;

/// The node that contains the slash of every URI, and EOP.
const ROOT: u32 = 0;
/// Where comparing with the root begins: behind its slash.
const BEHIND_SLASH: usize = 1;

/// How a NameTrie codes and searches.
#[derive(Clone, Debug, Default)]
pub struct NameTrieOptions {
    /// How names are coded.
    pub coding: MinAscii,
    /// How names are looked up.
    pub look_ups: BatchPrefetch,
    /// What its arrays lie on.
    pub pages: PageSize,
}

/// NameTrie.
pub struct NameTrie {
    coding: MinAscii,
    look_ups: BatchPrefetch,
    nodes: NameNodes,
    edges: EdgeHashTable,
    len: usize,
    capacity_entries: usize,
    /// Of the writer: the name that it inserts or removes, and the edges on the way there.
    coded: CodedNames,
    path: Vec<Step>,
}

/// An edge that was followed.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: u32,
    offset: usize,
    byte: u8,
}

/// Where a name ends in the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameEnd {
    /// Before the slash or EOP at this offset.
    AtPoint { node: u32, offset: usize },
    /// With the byte at this offset, after which the piece continues with another byte.
    Within { node: u32, offset: usize },
    /// Nowhere: from code `position` on, it would be a child behind this offset.
    Outside { node: u32, offset: usize, position: usize },
}

impl NameTrie {
    /// An empty trie for this many prefixes.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    pub fn new(capacity_entries: usize, seed: u64, options: NameTrieOptions) -> io::Result<Self> {
        let mut nodes = NameNodes::new(options.pages)?;
        nodes.reserve(2)?;
        nodes.allocate([&[super::min_ascii::SLASH, EOP], &[]]);
        Ok(Self {
            coding: options.coding,
            look_ups: options.look_ups,
            nodes,
            edges: EdgeHashTable::new(seed, options.pages)?,
            len: 0,
            capacity_entries,
            coded: CodedNames::default(),
            path: Vec::new(),
        })
    }

    /// How many edges there are, those to numbers included.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// Bytes of the pieces of names.
    pub fn name_nodes_bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// Bytes of the edges.
    pub fn edge_hash_table_bytes(&self) -> usize {
        self.edges.bytes()
    }

    /// How many pieces the way of a look-up has (the paper's d), the root not counted; `None` for a name beyond the
    /// limits.
    pub fn pieces_on_the_way(&mut self, name_value: &[u8]) -> Option<usize> {
        let name = self.encode(name_value)?;
        self.locate(name);
        Some(self.path.len())
    }

    /// Changes how names are looked up from now on.
    pub fn set_look_ups(&mut self, look_ups: BatchPrefetch) {
        self.look_ups = look_ups;
    }

    /// Codes a prefix for the writer, if it is within the limits.
    fn encode(&mut self, prefix: &[u8]) -> Option<CodedName> {
        self.coded.clear();
        let name = self.coding.encode(prefix, &mut self.coded);
        name.is_whole().then_some(name)
    }

    /// Where the name ends; the edges on the way are in `path`.
    fn locate(&mut self, name: CodedName) -> NameEnd {
        self.path.clear();
        let (mut node, mut offset, mut position) = (ROOT, BEHIND_SLASH, 0);
        loop {
            let piece = self.nodes.from(node);
            let codes = self.coded.codes_from(name, position);
            let (agreed, _) = agreement(&piece[offset..], codes);
            offset += agreed;
            position += agreed;
            if position == self.coded.codes(name).len() {
                let follows = piece[offset] & !BRANCHING_POINT;
                return match ends_component(follows) {
                    true => NameEnd::AtPoint { node, offset },
                    false => NameEnd::Within { node, offset: offset - 1 },
                };
            }
            offset -= 1;
            let step = Step { node, offset, byte: codes[agreed] };
            let child = is_branching(piece[offset]).then(|| self.edges.get(step.key())).flatten();
            let Some(child) = child else { return NameEnd::Outside { node, offset, position } };
            self.path.push(step);
            (node, offset) = (child, 0);
        }
    }

    /// Makes room for a new prefix, whose piece has this many codes.
    fn reserve(&mut self, edges: usize, codes: usize) -> Result<(), FibRefusal> {
        if self.len == self.capacity_entries {
            return Err(FibRefusal::Full);
        }
        let reserved = self.edges.reserve(edges).and_then(|()| self.nodes.reserve(codes));
        reserved.map_err(|_| FibRefusal::NoMemory)
    }

    /// Adds an edge behind a code; room for two was reserved.
    fn add_edge(&mut self, Step { node, offset, byte }: Step, value: u32) {
        let code = self.nodes.code_mut(node, offset);
        if is_branching(*code) {
            let siblings = EdgeKey::new(node, offset, SIBLINGS);
            match self.edges.get(siblings) {
                Some(edges) => drop(self.edges.set(siblings, edges + 1)),
                None => self.edges.insert(siblings, 2),
            }
        } else {
            *code |= BRANCHING_POINT;
        }
        self.edges.insert(EdgeKey::new(node, offset, byte), value);
    }
}

impl Step {
    fn key(self) -> EdgeKey {
        EdgeKey::new(self.node, self.offset, self.byte)
    }
}

/// Whether a code, branching or not, is a slash or EOP.
#[inline(always)]
pub(super) fn ends_component(code: u8) -> bool {
    code & !BRANCHING_POINT <= super::min_ascii::SLASH | FORWARDING_POINT
}

impl PrefixTable for NameTrie {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let name = self.encode(prefix).ok_or(FibRefusal::PrefixTooLong)?;
        match self.locate(name) {
            NameEnd::AtPoint { node, offset } => {
                let key = EdgeKey::new(node, offset, TO_FIB_ENTRY);
                if *self.nodes.code_mut(node, offset) & FORWARDING_POINT != 0 {
                    return Ok(self.edges.set(key, number));
                }
                self.reserve(1, 0)?;
                *self.nodes.code_mut(node, offset) |= FORWARDING_POINT;
                self.edges.insert(key, number);
            }
            NameEnd::Within { node, offset } => {
                let step = Step { node, offset, byte: TO_FIB_ENTRY };
                if let Some(before) = self.edges.set(step.key(), number) {
                    return Ok(Some(before));
                }
                self.reserve(2, 0)?;
                self.add_edge(step, number);
            }
            NameEnd::Outside { node, offset, position } => {
                let codes = self.coded.codes(name).len() - position;
                self.reserve(3, codes + 1)?;
                let rest = &self.coded.codes(name)[position..];
                let byte = rest[0];
                let child = self.nodes.allocate([rest, &[EOP | FORWARDING_POINT]]);
                self.add_edge(Step { node, offset, byte }, child);
                self.edges.insert(EdgeKey::new(child, codes, TO_FIB_ENTRY), number);
            }
        }
        self.len += 1;
        Ok(None)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let name = self.encode(prefix)?;
        let end = self.locate(name);
        self.remove_at(end)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        self.look_up(names, out);
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        let scratch = self.coded.bytes() + self.path.capacity() * size_of::<Step>();
        size_of::<Self>() + self.nodes.bytes() + self.edges.bytes() + scratch
    }
}

#[cfg(test)]
mod tests;
