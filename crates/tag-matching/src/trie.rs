//! Trie: a table of descriptors that changes at any time.
//!
//! Question: which stored descriptors are subsets of this one, now? The routing protocol asks this between changes. The
//! trie is the paper's prefix trie (TagNet16 §3.1.1) without its compression: a path is the positions of a descriptor's
//! 1-bits, lowest first.
//!
//! ```text
//!   descriptors {3}, {3, 5}, {4}      root ─ 3 (value) ─ 5 (value)
//!                                         └ 4 (value)
//! ```
//!
//! A node keeps the greatest weight below it, as the paper does, so that *Find Largest Subset* skips subtrees with too
//! small weights. A removal leaves that weight as it is. So the weight may be too large. Then a search visits the node
//! needlessly, but its answer is right.
//!
//! Cost: 40 bytes a node, one node for each 1-bit that no other descriptor shares; an insertion or removal takes one
//! step for each 1-bit. Limit: 2³² − 1 nodes.

use crate::{Entry, SubsetTable};
use namewire_packet::descriptor::Descriptor;
use std::ops::ControlFlow;

/// Marks the end of a descriptor that is not stored.
const NO_VALUE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    position: u8,
    /// The greatest weight of a descriptor here or below, or more.
    max_weight: u8,
    /// [`NO_VALUE`], or the value of the descriptor that ends here.
    value: u32,
    /// In ascending order of their positions.
    children: Vec<u32>,
}

/// A trie of descriptors. Values are below 2³² − 1.
#[derive(Clone, Debug)]
pub struct Trie {
    nodes: Vec<Node>,
    free: Vec<u32>,
    len: usize,
}

impl Default for Trie {
    fn default() -> Self {
        Trie { nodes: vec![Node::new(0)], free: Vec::new(), len: 0 }
    }
}

impl Node {
    fn new(position: u8) -> Self {
        Node { position, max_weight: 0, value: NO_VALUE, children: Vec::new() }
    }
}

impl Trie {
    /// The value of a stored descriptor.
    pub fn get(&self, descriptor: &Descriptor) -> Option<u32> {
        let mut at = 0;
        for position in descriptor.positions() {
            at = self.child(at, position).ok()?;
        }
        Some(self.nodes[at].value).filter(|value| *value != NO_VALUE)
    }

    /// Stores a descriptor, or gives a stored one this value.
    ///
    /// # Panics
    /// If the value is 2³² − 1.
    pub fn insert(&mut self, entry: Entry) {
        assert_ne!(entry.value, NO_VALUE, "a value is below 2^32 - 1");
        let weight = entry.descriptor.weight() as u8;
        let mut at = 0;
        for position in entry.descriptor.positions() {
            self.nodes[at].max_weight = self.nodes[at].max_weight.max(weight);
            at = match self.child(at, position) {
                Ok(child) => child,
                Err(place) => self.add_child(at, place, position),
            };
        }
        self.nodes[at].max_weight = self.nodes[at].max_weight.max(weight);
        self.len += usize::from(self.nodes[at].value == NO_VALUE);
        self.nodes[at].value = entry.value;
    }

    /// Removes a descriptor; false if it was not stored.
    pub fn remove(&mut self, descriptor: &Descriptor) -> bool {
        let mut path = vec![0];
        for position in descriptor.positions() {
            let Ok(child) = self.child(path[path.len() - 1], position) else { return false };
            path.push(child);
        }
        let last = &mut self.nodes[path[path.len() - 1]];
        if std::mem::replace(&mut last.value, NO_VALUE) == NO_VALUE {
            return false;
        }
        self.len -= 1;
        while let [.., parent, child] = path[..] {
            if self.nodes[child].value != NO_VALUE || !self.nodes[child].children.is_empty() {
                break;
            }
            let position = self.nodes[child].position;
            let place = self.place(parent, position).expect("the child of its parent");
            self.nodes[parent].children.remove(place);
            self.free.push(child as u32);
            path.pop();
        }
        true
    }

    /// Where the child with this position is among the children, or belongs.
    fn place(&self, at: usize, position: u8) -> Result<usize, usize> {
        self.nodes[at].children.binary_search_by_key(&position, |child| self.nodes[*child as usize].position)
    }

    fn child(&self, at: usize, position: u8) -> Result<usize, usize> {
        self.place(at, position).map(|place| self.nodes[at].children[place] as usize)
    }

    fn add_child(&mut self, at: usize, place: usize, position: u8) -> usize {
        let child = match self.free.pop() {
            Some(child) => child as usize,
            None => {
                self.nodes.push(Node::new(0));
                self.nodes.len() - 1
            }
        };
        self.nodes[child] = Node::new(position);
        self.nodes[at].children.insert(place, child as u32);
        child
    }

    /// As [`SubsetTable::find_all`], and returns the number of nodes that the search visited.
    pub fn visit_subsets(&self, query: &Descriptor, mut visit: impl FnMut(u32) -> ControlFlow<()>) -> usize {
        self.walk(query, |node, _| {
            let is_broken = node.value != NO_VALUE && visit(node.value).is_break();
            if is_broken { Walk::End } else { Walk::Below }
        })
    }

    /// Visits each node whose path is a subset of the query, parents first, while `visit` says what to do. Returns how
    /// many it visited.
    fn walk(&self, query: &Descriptor, mut visit: impl FnMut(&Node, &[u8]) -> Walk) -> usize {
        let mut visited = 0;
        let mut path = Vec::new();
        let mut open = vec![(0, 0)];
        while let Some((at, depth)) = open.pop() {
            let node: &Node = &self.nodes[at as usize];
            visited += 1;
            path.truncate(depth);
            if at != 0 {
                path[depth - 1..].fill(node.position);
            }
            match visit(node, &path) {
                Walk::Below => {}
                Walk::Past => continue,
                Walk::End => return visited,
            }
            path.push(0);
            let children = node.children.iter().rev().filter(|child| query.has(self.nodes[**child as usize].position));
            open.extend(children.map(|child| (*child, depth + 1)));
        }
        visited
    }
}

/// Where a walk goes after a node.
enum Walk {
    /// To its children.
    Below,
    /// To its next sibling.
    Past,
    /// Nowhere.
    End,
}

impl SubsetTable for Trie {
    fn len(&self) -> usize {
        self.len
    }

    fn find_all(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) {
        self.visit_subsets(query, visit);
    }

    fn find_largest_of(&self, query: &Descriptor, mut accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        let mut best: Option<Entry> = None;
        let mut wanted = 0;
        self.walk(query, |node, path| {
            if u32::from(node.max_weight) < wanted {
                return Walk::Past;
            }
            if node.value != NO_VALUE && path.len() as u32 >= wanted && accepts(node.value) {
                let entry = Entry { descriptor: path.iter().copied().collect(), value: node.value };
                if best.is_none_or(|best| entry.is_preferred_to(&best)) {
                    (best, wanted) = (Some(entry), path.len() as u32);
                }
            }
            Walk::Below
        });
        best
    }
}
