//! Radix trie: how does a trie of pointers find the longest prefix, a unit of the name at a time?
//!
//! [`super::character_trie`], [`super::component_trie`] and [`super::npt`] share this part; each of them names its
//! paper. A node is a label, and the children for the names that go on after it. [`Granularity`] defines what a unit
//! is, and whether a label may have several.
//!
//! ```text
//! node:      | number | label bytes, 31: has a number | children or 0 | label … |
//!            0        4                                8               12
//! ```
//!
//! A pointer is the number of a word of the [`WordHeap`]; leaves have the empty pointer. `children` says how a child
//! is found.
//!
//! Cost per level: it reads the node's first line and the other lines of its label; then the children's first line and
//! the line of the pointer (mostly the same). With components, it reads log2(children) times the line of a pointer and
//! the first line of a child. An insertion or removal moves on average half the children of one node. Bytes: a node
//! takes 12 and the label; where it has children, also 8, and 4 (5) per child, at most a quarter of it free. Limits:
//! the capacity, 16 GiB. Writers: the owner.

mod children;
mod walk;

use super::BatchPrefetch;
use super::trie_walk::walk_batch;
use super::word_heap::{NONE, WordHeap};
use children::{capacity_for, children_words};
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use namewire_tables::fib::{PrefixMatch, PrefixTable};
use namewire_tables::name_hash::{MAX_NAME_COMPONENTS, components_of};
use namewire_tables::pages::PageSize;
use std::cmp::Ordering;
use std::io;
use std::marker::PhantomData;

/// What a trie goes by.
pub trait Granularity: Send + Sync {
    /// Whether a unit is one byte: then it is beside the pointer to the child it leads to.
    const IS_BYTE: bool;
    /// Whether a label takes all units up to the next branch or prefix (Patricia), or only one.
    const IS_COMPRESSED: bool;

    /// The first unit of bytes that are not empty.
    fn first_unit(bytes: &[u8]) -> &[u8];
}

/// A trie of labelled nodes and pointers; see the granularities for its names.
pub struct RadixTrie<G> {
    heap: WordHeap,
    /// The word with the pointer to the root, which has no label and always is there.
    to_root: u32,
    entries: usize,
    capacity_entries: usize,
    prefetch: BatchPrefetch,
    goes_by: PhantomData<G>,
}

/// Words of a node before its label.
const NODE_WORDS: usize = 3;
const NUMBER: u32 = 0;
const META: u32 = 1;
const CHILDREN: u32 = 2;
const LABEL: u32 = 3;
const HAS_NUMBER: u32 = 1 << 31;
const _: () = assert!(NODE_WORDS * 4 == 12 && LABEL as usize == NODE_WORDS && MAX_PREFIX_BYTES < HAS_NUMBER as usize);

impl<G: Granularity> RadixTrie<G> {
    /// An empty trie for this many prefixes, on these pages.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(capacity_entries: usize, prefetch: BatchPrefetch, pages: PageSize) -> io::Result<Self> {
        let mut heap = WordHeap::new(pages)?;
        let to_root = heap.allocate(1);
        let mut trie = Self { heap, to_root, entries: 0, capacity_entries, prefetch, goes_by: PhantomData };
        let root = trie.new_node(b"");
        trie.heap.set(to_root, root);
        Ok(trie)
    }

    fn label(&self, node: u32) -> &[u8] {
        self.heap.bytes_at(node + LABEL, (self.heap.word(node + META) & !HAS_NUMBER) as usize)
    }

    fn number(&self, node: u32) -> Option<u32> {
        (self.heap.word(node + META) & HAS_NUMBER != 0).then(|| self.heap.word(node + NUMBER))
    }

    fn set_number(&mut self, node: u32, number: u32) {
        let meta = self.heap.word(node + META);
        self.heap.set(node + META, meta | HAS_NUMBER);
        self.heap.set(node + NUMBER, number);
    }

    /// A node without number and children.
    fn new_node(&mut self, label: &[u8]) -> u32 {
        let node = self.heap.allocate(node_words(label.len()));
        self.heap.set(node + META, label.len() as u32);
        self.heap.set(node + CHILDREN, NONE);
        self.heap.set_bytes(node + LABEL, label);
        node
    }

    fn free_node(&mut self, node: u32) {
        let words = node_words(self.label(node).len());
        self.heap.free(node, words);
    }

    /// Makes nodes for all of `rest`; the last one has the number. Gives the first.
    fn new_branch(&mut self, mut rest: &[u8], number: u32) -> u32 {
        let (mut first, mut last) = (NONE, NONE);
        while !rest.is_empty() {
            let bytes = if G::IS_COMPRESSED { rest.len() } else { G::first_unit(rest).len() };
            let node = self.new_node(&rest[..bytes]);
            if last == NONE {
                first = node;
            } else {
                self.insert_child(last, 0, node);
            }
            last = node;
            rest = &rest[bytes..];
        }
        self.set_number(last, number);
        first
    }

    /// Room for what one insertion may need: a node split in two, a branch, more children.
    fn reserve(&mut self, node: u32, rest: &[u8]) -> Result<(), FibRefusal> {
        if self.entries == self.capacity_entries {
            return Err(FibRefusal::Full);
        }
        let new_nodes = if G::IS_COMPRESSED { 1 } else { components_of(rest).count() };
        let labels = node_words(self.label(node).len()) + 1 + node_words(rest.len());
        let links = (new_nodes + 1) * (node_words(3) + children_words::<G>(2));
        let children = children_words::<G>(capacity_for(self.child_count(node) + 1));
        let blocks = 2 * new_nodes + 4;
        self.heap.reserve(labels + links + children, blocks).map_err(|_| FibRefusal::NoMemory)
    }

    /// Cuts the label of a node after `bytes`; the upper part, a new node, has the lower as its only child.
    fn split(&mut self, link: u32, bytes: usize) {
        let node = self.heap.word(link);
        let label: Label = self.label(node).into();
        let upper = self.new_node(&label[..bytes]);
        let lower = self.new_node(&label[bytes..]);
        if let Some(number) = self.number(node) {
            self.set_number(lower, number);
        }
        self.heap.copy(node + CHILDREN, lower + CHILDREN, 1);
        self.free_node(node);
        self.insert_child(upper, 0, lower);
        self.heap.set(link, upper);
    }

    /// Makes one node of a node without a number and its only child, if there is room for it.
    fn join_with_only_child(&mut self, link: u32) {
        let node = self.heap.word(link);
        let child = self.heap.word(self.pointer_to_child(node, 0));
        let label: Label = [self.label(node), self.label(child)].concat().into();
        if self.heap.reserve(node_words(label.len()), 1).is_err() {
            return;
        }
        let joined = self.new_node(&label);
        if let Some(number) = self.number(child) {
            self.set_number(joined, number);
        }
        self.heap.copy(child + CHILDREN, joined + CHILDREN, 1);
        self.remove_child(node, 0);
        self.free_node(child);
        self.free_node(node);
        self.heap.set(link, joined);
    }

    /// Whether Patricia has no node there.
    fn is_superfluous(&self, link: u32) -> bool {
        let node = self.heap.word(link);
        G::IS_COMPRESSED && link != self.to_root && self.number(node).is_none() && self.child_count(node) == 1
    }
}

/// A label while its node is replaced.
type Label = smallvec::SmallVec<[u8; 64]>;

fn node_words(label_bytes: usize) -> usize {
    NODE_WORDS + label_bytes.div_ceil(4)
}

/// Compares a unit with the first unit of a label. (No unit is the beginning of another: a
/// component says its own length.)
fn compare(unit: &[u8], label: &[u8]) -> Ordering {
    unit.cmp(&label[..unit.len().min(label.len())])
}

/// How many bytes of whole units a label and the rest of a name have in common.
fn common_bytes<G: Granularity>(label: &[u8], rest: &[u8]) -> usize {
    let equal = label.iter().zip(rest).take_while(|(one, other)| one == other).count();
    if G::IS_BYTE || equal == label.len() {
        return equal;
    }
    let mut end = 0;
    while end < equal {
        let next = end + G::first_unit(&label[end..]).len();
        if next > equal {
            break;
        }
        end = next;
    }
    end
}

impl<G: Granularity> PrefixTable for RadixTrie<G> {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        if prefix.len() > MAX_PREFIX_BYTES || components_of(prefix).count() > MAX_NAME_COMPONENTS {
            return Err(FibRefusal::PrefixTooLong);
        }
        let (mut link, mut rest) = (self.to_root, prefix);
        loop {
            let node = self.heap.word(link);
            let common = common_bytes::<G>(self.label(node), rest);
            let is_whole_label = common == self.label(node).len();
            rest = &rest[common..];
            if rest.is_empty()
                && is_whole_label
                && let Some(before) = self.number(node)
            {
                self.set_number(node, number);
                return Ok(Some(before));
            }
            let child = if rest.is_empty() || !is_whole_label { Err(0) } else { self.find_child(node, rest) };
            if let Ok(position) = child {
                link = self.pointer_to_child(node, position);
                continue;
            }
            self.reserve(node, rest)?;
            if !is_whole_label {
                self.split(link, common);
            }
            let node = self.heap.word(link);
            if rest.is_empty() {
                self.set_number(node, number);
            } else {
                let branch = self.new_branch(rest, number);
                let position = self.find_child(node, rest).unwrap_or_else(|position| position);
                self.insert_child(node, position, branch);
            }
            self.entries += 1;
            return Ok(None);
        }
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let (mut link, mut rest) = (self.to_root, prefix);
        // The last node before the prefix's that stays if the prefix goes, and which of its children leads there.
        let mut stays = None;
        let node = loop {
            let node = self.heap.word(link);
            rest = rest.strip_prefix(self.label(node))?;
            if rest.is_empty() {
                break node;
            }
            let position = self.find_child(node, rest).ok()?;
            if link == self.to_root || self.number(node).is_some() || self.child_count(node) > 1 {
                stays = Some((link, position));
            }
            link = self.pointer_to_child(node, position);
        };
        let before = self.number(node)?;
        let meta = self.heap.word(node + META);
        self.heap.set(node + META, meta & !HAS_NUMBER);
        self.entries -= 1;
        if self.child_count(node) == 0
            && let Some((link, position)) = stays
        {
            let node = self.heap.word(link);
            let mut gone = self.heap.word(self.pointer_to_child(node, position));
            self.remove_child(node, position);
            while self.child_count(gone) > 0 {
                let below = self.heap.word(self.pointer_to_child(gone, 0));
                self.remove_child(gone, 0);
                self.free_node(gone);
                gone = below;
            }
            self.free_node(gone);
            if self.is_superfluous(link) {
                self.join_with_only_child(link);
            }
        } else if self.is_superfluous(link) {
            self.join_with_only_child(link);
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The TLVs of a name as the papers write it, in generic components.
    pub(in super::super) fn example(uri: &str) -> Vec<u8> {
        uri.split('/').skip(1).flat_map(|part| [&[8, part.len() as u8], part.as_bytes()].concat()).collect()
    }

    /// Every node, depth first: its depth, its label (a slash for each TLV header) and its number.
    pub(in super::super) fn labels<G: Granularity>(trie: &RadixTrie<G>) -> Vec<String> {
        let (mut lines, mut left) = (vec![], vec![(0, trie.heap.word(trie.to_root))]);
        while let Some((depth, node)) = left.pop() {
            let mut uri = String::new();
            for &byte in trie.label(node) {
                match byte {
                    8 => uri.push('/'),
                    0..8 => {}
                    _ => uri.push(byte.into()),
                }
            }
            let number = trie.number(node).map(|number| format!("={number}")).unwrap_or_default();
            lines.push(format!("{depth}:{uri}{number}"));
            let children = (0..trie.child_count(node)).rev();
            left.extend(children.map(|position| (depth + 1, trie.heap.word(trie.pointer_to_child(node, position)))));
        }
        lines
    }
}
