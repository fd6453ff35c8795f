//! Bit trie: which prefix is the longest, a run of bits at a time?
//!
//! Source: NameTrie18 §III and Fig. 2, the finest of its three granularities in their non-optimised form. Whatever two
//! names have in common is stored once, a node has at most two children, and one bit decides between them. But the
//! trie is the deepest of the three. Path compression (Patricia): a node takes all bits up to the next branch or
//! prefix. All bits are kept, so an answer is certain; the tries of Song15 and Yuan15 §4.3 keep only the bits that
//! differ.
//!
//! ```text
//! node:  | number | label bits, 31: has a number | child 0 | child 1 | bytes of the label … |
//!        0        4                              8         12        16
//! ```
//!
//! A label is stored as the bytes that contain its bits, at the same bit offset as in the name. So labels are compared
//! byte by byte, with the first and the last byte masked. The first bit of a label is the one by which its parent
//! decided. A pointer is the number of a word of the `word_heap`; leaves have two empty pointers. Bits count from the
//! highest of a byte.
//!
//! Cost per level: it reads the node's first line and the other lines of its label. Bytes per name: it takes two
//! nodes, one that branches and one with the number. Each has 16 bytes and its label. Limits: the capacity, 16 GiB.
//! Writers: the owner.
//!
//! Deviation: the bits are those of the name's TLVs, so that every component can be carried. If one name's bits begin
//! with another's, so do its components.

use super::BatchPrefetch;
use super::trie_walk::{Walkable, walk_batch};
use super::word_heap::{NONE, WordHeap};
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use namewire_tables::fib::{PrefixMatch, PrefixTable};
use namewire_tables::name_hash::{MAX_NAME_COMPONENTS, components_of};
use namewire_tables::pages::PageSize;
use std::io;
use std::ops::Range;

/// A Patricia trie over bits.
pub struct BitTrie {
    heap: WordHeap,
    /// The word with the pointer to the root, which has no label and always is there.
    to_root: u32,
    entries: usize,
    capacity_entries: usize,
    prefetch: BatchPrefetch,
}

/// Words of a node before its label.
const NODE_WORDS: usize = 4;
const NUMBER: u32 = 0;
const META: u32 = 1;
const CHILDREN: u32 = 2;
const LABEL: u32 = 4;
const HAS_NUMBER: u32 = 1 << 31;

const _: () = assert!(NODE_WORDS * 4 == 16 && LABEL as usize == NODE_WORDS && MAX_PREFIX_BYTES * 8 < 1 << 31);

impl BitTrie {
    /// An empty trie for this many prefixes, on these pages.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(capacity_entries: usize, prefetch: BatchPrefetch, pages: PageSize) -> io::Result<Self> {
        let mut heap = WordHeap::new(pages)?;
        let to_root = heap.allocate(1);
        let mut trie = Self { heap, to_root, entries: 0, capacity_entries, prefetch };
        let root = trie.new_node(b"", 0..0);
        trie.heap.set(to_root, root);
        Ok(trie)
    }

    fn label_bits(&self, node: u32) -> usize {
        (self.heap.word(node + META) & !HAS_NUMBER) as usize
    }

    /// The bytes in which the label of a node lies that begins at bit `from` of its names.
    fn label(&self, node: u32, from: usize) -> &[u8] {
        self.heap.bytes_at(node + LABEL, bytes_of(from..from + self.label_bits(node)).len())
    }

    fn number(&self, node: u32) -> Option<u32> {
        (self.heap.word(node + META) & HAS_NUMBER != 0).then(|| self.heap.word(node + NUMBER))
    }

    fn set_number(&mut self, node: u32, number: Option<u32>) {
        let meta = self.heap.word(node + META) & !HAS_NUMBER;
        self.heap.set(node + META, if number.is_some() { meta | HAS_NUMBER } else { meta });
        self.heap.set(node + NUMBER, number.unwrap_or(0));
    }

    fn children(&self, node: u32) -> [u32; 2] {
        [self.heap.word(node + CHILDREN), self.heap.word(node + CHILDREN + 1)]
    }

    /// A node without number and children, with these bits of `bytes` as its label; of a name as
    /// long as it is, or from the byte on that the bits begin in.
    fn new_node(&mut self, bytes: &[u8], bits: Range<usize>) -> u32 {
        debug_assert_eq!(bytes.len(), bytes_of(bits.clone()).len());
        let node = self.heap.allocate(NODE_WORDS + bytes.len().div_ceil(4));
        self.heap.words_mut(node, NODE_WORDS).copy_from_slice(&[0, bits.len() as u32, NONE, NONE]);
        self.heap.set_bytes(node + LABEL, bytes);
        node
    }

    fn free_node(&mut self, node: u32, from: usize) {
        let words = NODE_WORDS + self.label(node, from).len().div_ceil(4);
        self.heap.free(node, words);
    }

    /// How many bits the label of a node and a name have in common, both from bit `from` on.
    fn common_bits(&self, node: u32, name: &[u8], from: usize) -> usize {
        let (label, bits) = (self.label(node, from), self.label_bits(node));
        let most = bits.min(name.len() * 8 - from);
        let mut differ = label.iter().zip(&name[from / 8..]).map(|(one, other)| one ^ other).enumerate();
        // Before the label's first bit there may be anything.
        let before = from % 8;
        let first = differ.find_map(|(byte, differ)| {
            let differ = if byte == 0 { differ & (0xff >> before) } else { differ };
            (differ != 0).then(|| byte * 8 + differ.leading_zeros() as usize - before)
        });
        first.map_or(most, |first| first.min(most))
    }

    /// Cuts the label of a node after `bits`; the upper part, a new node, has the lower as its only child.
    fn split(&mut self, link: u32, from: usize, bits: usize) {
        let node = self.heap.word(link);
        let bytes: Label = self.label(node, from).into();
        let (cut, end) = (from + bits, from + self.label_bits(node));
        let upper = self.new_node(&bytes[..bytes_of(from..cut).len()], from..cut);
        let lower = self.new_node(&bytes[cut / 8 - from / 8..], cut..end);
        self.set_number(lower, self.number(node));
        self.heap.copy(node + CHILDREN, lower + CHILDREN, 2);
        let bit = bit(&bytes, cut - from / 8 * 8);
        self.heap.set(upper + CHILDREN + bit, lower);
        self.free_node(node, from);
        self.heap.set(link, upper);
    }

    /// Makes one node of a node without a number and its only child, if there is room for it.
    fn join_with_only_child(&mut self, link: u32, from: usize) {
        let node = self.heap.word(link);
        let child = self.children(node)[0].max(self.children(node)[1]);
        let cut = from + self.label_bits(node);
        let end = cut + self.label_bits(child);
        let mut bytes: Label = self.label(node, from).into();
        // A byte that has bits of both is whole in the lower one.
        bytes.truncate(cut / 8 - from / 8);
        bytes.extend_from_slice(self.label(child, cut));
        if self.heap.reserve(NODE_WORDS + bytes.len().div_ceil(4), 1).is_err() {
            return;
        }
        let joined = self.new_node(&bytes, from..end);
        self.set_number(joined, self.number(child));
        self.heap.copy(child + CHILDREN, joined + CHILDREN, 2);
        self.free_node(child, cut);
        self.free_node(node, from);
        self.heap.set(link, joined);
    }

    /// Whether Patricia has no node there.
    fn is_superfluous(&self, link: u32) -> bool {
        let node = self.heap.word(link);
        let children = self.children(node);
        link != self.to_root && self.number(node).is_none() && children.contains(&NONE) && children != [NONE; 2]
    }

    fn reserve(&mut self, node: u32, name: &[u8]) -> Result<(), FibRefusal> {
        if self.entries == self.capacity_entries {
            return Err(FibRefusal::Full);
        }
        let words = 3 * (NODE_WORDS + 2) + self.label_bits(node) / 32 + name.len() / 4;
        self.heap.reserve(words, 3).map_err(|_| FibRefusal::NoMemory)
    }
}

/// A label while its node is replaced.
type Label = smallvec::SmallVec<[u8; 64]>;

/// The bytes that these bits lie in.
fn bytes_of(bits: Range<usize>) -> Range<usize> {
    if bits.is_empty() { bits.start / 8..bits.start / 8 } else { bits.start / 8..bits.end.div_ceil(8) }
}

fn bit(bytes: &[u8], at: usize) -> u32 {
    u32::from(bytes[at / 8] >> (7 - at % 8) & 1)
}

impl PrefixTable for BitTrie {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        if prefix.len() > MAX_PREFIX_BYTES || components_of(prefix).count() > MAX_NAME_COMPONENTS {
            return Err(FibRefusal::PrefixTooLong);
        }
        let (mut link, mut from, end) = (self.to_root, 0, prefix.len() * 8);
        loop {
            let node = self.heap.word(link);
            let common = self.common_bits(node, prefix, from);
            let at = from + common;
            let is_whole_label = common == self.label_bits(node);
            if is_whole_label && at < end {
                let to_child = node + CHILDREN + bit(prefix, at);
                if self.heap.word(to_child) != NONE {
                    (link, from) = (to_child, at);
                    continue;
                }
            } else if is_whole_label && let Some(before) = self.number(node) {
                self.set_number(node, Some(number));
                return Ok(Some(before));
            }
            self.reserve(node, prefix)?;
            if !is_whole_label {
                self.split(link, from, common);
            }
            let mut node = self.heap.word(link);
            if at < end {
                let leaf = self.new_node(&prefix[bytes_of(at..end)], at..end);
                self.heap.set(node + CHILDREN + bit(prefix, at), leaf);
                node = leaf;
            }
            self.set_number(node, Some(number));
            self.entries += 1;
            return Ok(None);
        }
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let (mut link, mut from, end) = (self.to_root, 0, prefix.len() * 8);
        let mut parent = None;
        let node = loop {
            let node = self.heap.word(link);
            let bits = self.label_bits(node);
            if self.common_bits(node, prefix, from) < bits {
                return None;
            }
            if from + bits == end {
                break node;
            }
            let to_child = node + CHILDREN + bit(prefix, from + bits);
            if self.heap.word(to_child) == NONE {
                return None;
            }
            parent = Some((link, from));
            (link, from) = (to_child, from + bits);
        };
        let before = self.number(node)?;
        self.set_number(node, None);
        self.entries -= 1;
        if self.children(node) == [NONE; 2]
            && let Some((above, above_from)) = parent
        {
            self.heap.set(link, NONE);
            self.free_node(node, from);
            (link, from) = (above, above_from);
        }
        if self.is_superfluous(link) {
            self.join_with_only_child(link, from);
        }
        Some(before)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        walk_batch(self, self.prefetch, names, out);
    }

    fn len(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> usize {
        self.heap.bytes()
    }
}

/// One look-up: the node that it reads next, whose label begins at bit `from`.
pub(super) struct Walk<'name> {
    name: &'name [u8],
    node: u32,
    from: u32,
    longest: Option<PrefixMatch>,
}

impl Walkable for BitTrie {
    type Walk<'name> = Walk<'name>;

    fn begin<'name>(&self, name: &'name [u8]) -> Walk<'name> {
        Walk { name, node: self.heap.word(self.to_root), from: 0, longest: None }
    }

    #[inline]
    fn step<const PREFETCH: bool>(&self, walk: &mut Walk<'_>) -> bool {
        let (node, from) = (walk.node, walk.from as usize);
        let bits = self.label_bits(node);
        let at = from + bits;
        if at > walk.name.len() * 8 || self.common_bits(node, walk.name, from) < bits {
            return false;
        }
        if let Some(number) = self.number(node) {
            walk.longest = Some(PrefixMatch { number, prefix_bytes: (at / 8) as u16 });
        }
        if at == walk.name.len() * 8 {
            return false;
        }
        walk.node = self.heap.word(node + CHILDREN + bit(walk.name, at));
        walk.from = at as u32;
        if PREFETCH && walk.node != NONE {
            self.heap.prefetch(walk.node);
        }
        walk.node != NONE
    }

    fn longest(walk: &Walk<'_>) -> Option<PrefixMatch> {
        walk.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::radix_trie::tests::example;

    /// Every node, depth first: its depth, the bits of its label, its number.
    fn shape(trie: &BitTrie) -> Vec<(usize, usize, Option<u32>)> {
        let (mut nodes, mut left) = (vec![], vec![(0, trie.heap.word(trie.to_root))]);
        while let Some((depth, node)) = left.pop() {
            if node != NONE {
                nodes.push((depth, trie.label_bits(node), trie.number(node)));
                left.extend(trie.children(node).into_iter().rev().map(|child| (depth + 1, child)));
            }
        }
        nodes
    }

    /// The names of NameTrie18 Fig. 3(a), in components of one length, part at bits:
    /// `c` (0110 0011) from `a` at its seventh, `l` (0110 1100) from `i` (0110 1001) at its sixth.
    #[test]
    fn names_part_at_the_first_bit_that_differs() {
        let mut trie = BitTrie::new(10, BatchPrefetch::Batch, PageSize::Base).unwrap();
        for (number, name) in ["/ndn/ucla", "/ndn/uciX", "/ndn/uaXY"].into_iter().enumerate() {
            trie.insert(&example(name), number as u32).unwrap();
        }
        // The headers and `ndn` and `u` are 8 bytes; then 6 bits, and what is left of 11 bytes.
        let all = [(0, 0, None), (1, 70, None), (2, 18, Some(2)), (2, 7, None), (3, 11, Some(1)), (3, 11, Some(0))];
        assert_eq!(shape(&trie), all);
        assert_eq!(trie.remove(&example("/ndn/uciX")), Some(1));
        assert_eq!(shape(&trie), [(0, 0, None), (1, 70, None), (2, 18, Some(2)), (2, 18, Some(0))]);
        assert_eq!(trie.remove(&example("/ndn/uaXY")), Some(2));
        assert_eq!(shape(&trie), [(0, 0, None), (1, 88, Some(0))]);
        let mut found = [None];
        trie.longest_prefix_match_batch(&[&example("/ndn/ucla/cs")], &mut found);
        assert_eq!(found[0], Some(PrefixMatch { number: 0, prefix_bytes: 11 }));
    }
}
