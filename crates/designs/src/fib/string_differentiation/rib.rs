//! RIB: which rules are there, in full, and which of them lie below which?
//!
//! Source: Yuan15 §4.3.6 (the route controller's Routing Information Base). The dissertation leaves its shape open.
//! Ours is a name tree: one node for every prefix of a rule. A node is found by the keyed hash of the prefix, and
//! checked by its parent and its last component, so that a shared component is kept once. Lossy tables must know not
//! only the rules but also all their prefixes (a name with a route has these prefixes too). They must also find the
//! prefixes that a table with shorter hashes cannot distinguish from a new one. So the index uses the hashes of such a
//! table ([`Rib::nodes_like`]).
//!
//! ```text
//! Node │ hash u64 │ parent │ first child │ next │ previous │ number │ block │ bytes u16 │ components u16 │ rule │
//!      0          8        12            16     20         24       28      32           34               36    40
//! ```
//!
//! Cost: for each component of a prefix, a look-up reads one line of the index, one of the node and one of the
//! component's bytes.
//! Bytes: a node takes 40, 4.6 to 9.2 of index, and the component in a block of at least 16 bytes.
//! Limits: 2³² − 1 nodes and 32 GiB of components. Writers: the route controller.

use super::differentiator::reduced;
use hashbrown::HashTable;
use namewire_tables::arena::{Arena, block_bytes};
use namewire_tables::name_hash::{HashKey, NameHashes};
use namewire_tables::pages::PageSize;
use namewire_tables::slab::NIL;
use std::io;

/// A node of the RIB: a prefix of a rule. Used again after it went.
pub type NodeId = u32;

/// The root prefix, which is always a node.
pub const ROOT: NodeId = 0;

struct Node {
    hash: u64,
    parent: NodeId,
    first_child: NodeId,
    next: NodeId,
    previous: NodeId,
    number: u32,
    block: u32,
    bytes: u16,
    components: u16,
    is_rule: bool,
}

const _: () = assert!(size_of::<Node>() == 40);

/// How far down the RIB knows a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The longest prefix that is a node.
    pub deepest: NodeId,
    /// The shortest rule on the way, the name itself not counted.
    pub shortest_rule_above: Option<NodeId>,
}

/// The rules, in full.
pub struct Rib {
    key: HashKey,
    /// Hashes are below this in the index.
    index_hashes: u64,
    nodes: Vec<Node>,
    /// Ids without a node.
    vacant: Vec<NodeId>,
    index: HashTable<NodeId>,
    components: Arena,
    component_bytes: u64,
    component_room: u64,
    rules: usize,
}

impl Rib {
    /// An empty one, whose index tells nodes apart by their hashes [`reduced`] to below `index_hashes`, which is not
    /// 0; by practically all bits, if it is [`u64::MAX`].
    ///
    /// # Errors
    /// If the kernel does not map the first room for components.
    pub fn new(key: HashKey, index_hashes: u64) -> io::Result<Self> {
        let component_room = 4096;
        let root_hash = NameHashes::default();
        let mut hashes = root_hash;
        let _ = hashes.compute(&key, &[]);
        let root = Node {
            hash: hashes.full_hash(),
            parent: NIL,
            first_child: NIL,
            next: NIL,
            previous: NIL,
            number: 0,
            block: NIL,
            bytes: 0,
            components: 0,
            is_rule: false,
        };
        Ok(Self {
            key,
            index_hashes,
            nodes: vec![root],
            vacant: Vec::new(),
            index: HashTable::new(),
            components: Arena::new(component_room, PageSize::Transparent)?,
            component_bytes: 0,
            component_room,
            rules: 0,
        })
    }

    /// The key of all hashes.
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.rules
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.vacant.capacity() * size_of::<NodeId>()
            + self.index.allocation_size()
            + self.component_room as usize
            + size_of::<Self>()
    }

    /// The hash of the prefix, all 64 bits.
    pub fn hash(&self, node: NodeId) -> u64 {
        self.nodes[node as usize].hash
    }

    /// How many components the prefix has.
    pub fn components(&self, node: NodeId) -> usize {
        self.nodes[node as usize].components.into()
    }

    /// What the prefix leads to, if it is a rule.
    pub fn number(&self, node: NodeId) -> Option<u32> {
        let node = &self.nodes[node as usize];
        node.is_rule.then_some(node.number)
    }

    /// The prefix without its last component; the root has none.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        Some(self.nodes[node as usize].parent).filter(|&parent| parent != NIL)
    }

    /// Whether rules lie below.
    pub fn has_below(&self, node: NodeId) -> bool {
        self.nodes[node as usize].first_child != NIL
    }

    /// The shortest rule that is a proper prefix of this node.
    pub fn shortest_rule_above(&self, node: NodeId) -> Option<NodeId> {
        let (mut at, mut shortest) = (node, None);
        while let Some(parent) = self.parent(at) {
            shortest = self.nodes[parent as usize].is_rule.then_some(parent).or(shortest);
            at = parent;
        }
        shortest
    }

    /// How many bytes the prefix has.
    pub fn prefix_bytes(&self, node: NodeId) -> usize {
        let way = std::iter::successors(Some(node), |&at| self.parent(at));
        way.map(|at| usize::from(self.nodes[at as usize].bytes)).sum()
    }

    /// Replaces `out` by the prefix: bytes of a Name TLV-VALUE.
    pub fn write_prefix(&self, node: NodeId, out: &mut Vec<u8>) {
        out.clear();
        let mut at = node;
        while at != ROOT {
            out.extend(self.component(at).iter().rev());
            at = self.nodes[at as usize].parent;
        }
        out.reverse();
    }

    /// Every node but the root whose hash is that of `hash` in the index.
    pub fn nodes_like(&self, hash: u64) -> impl Iterator<Item = NodeId> + '_ {
        let wanted = self.place(hash);
        self.index.iter_hash(wanted).copied().filter(move |&node| self.place(self.hash(node)) == wanted)
    }

    /// The node after `node` in the part of the tree that begins at `top`; a node comes before all nodes below it.
    pub fn next_below(&self, top: NodeId, node: NodeId) -> Option<NodeId> {
        let first_child = self.nodes[node as usize].first_child;
        if first_child != NIL {
            return Some(first_child);
        }
        let mut at = node;
        while at != top {
            let next = self.nodes[at as usize].next;
            if next != NIL {
                return Some(next);
            }
            at = self.nodes[at as usize].parent;
        }
        None
    }

    /// How far down the name is known. `hashes` has the hashes of all prefixes of the name.
    pub fn walk(&self, hashes: &NameHashes, name: &[u8]) -> Walk {
        let mut walk = Walk { deepest: ROOT, shortest_rule_above: None };
        for n in 1..=hashes.components() {
            if walk.shortest_rule_above.is_none() && self.nodes[walk.deepest as usize].is_rule {
                walk.shortest_rule_above = Some(walk.deepest);
            }
            let component = &name[hashes.prefix_bytes(n - 1)..hashes.prefix_bytes(n)];
            let is_it =
                |&node: &NodeId| self.nodes[node as usize].parent == walk.deepest && self.component(node) == component;
            match self.index.find(self.place(hashes.prefix_hash(n)), is_it) {
                Some(&node) => walk.deepest = node,
                None => break,
            }
        }
        walk
    }

    /// Adds the next prefix of `name` below `deepest`, which has one component less.
    pub(super) fn push_below(&mut self, deepest: NodeId, hashes: &NameHashes, name: &[u8]) -> NodeId {
        let n = self.components(deepest) + 1;
        let component = &name[hashes.prefix_bytes(n - 1)..hashes.prefix_bytes(n)];
        let next = self.nodes[deepest as usize].first_child;
        let node = Node {
            hash: hashes.prefix_hash(n),
            parent: deepest,
            first_child: NIL,
            next,
            previous: NIL,
            number: 0,
            block: self.keep(component),
            bytes: component.len() as u16,
            components: n as u16,
            is_rule: false,
        };
        let hash = self.place(node.hash);
        let id = match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as NodeId - 1
            }
        };
        if next != NIL {
            self.nodes[next as usize].previous = id;
        }
        self.nodes[deepest as usize].first_child = id;
        let (nodes, index_hashes) = (&self.nodes, self.index_hashes);
        self.index.insert_unique(hash, id, |&node| place(nodes[node as usize].hash, index_hashes));
        id
    }

    /// Whether this many more nodes have an id.
    pub(super) fn has_room(&self, nodes: usize) -> bool {
        self.nodes.len() - self.vacant.len() + nodes < NIL as usize
    }

    /// Makes the node a rule, or changes what it leads to.
    pub(super) fn set_rule(&mut self, node: NodeId, number: u32) {
        let node = &mut self.nodes[node as usize];
        self.rules += usize::from(!node.is_rule);
        (node.is_rule, node.number) = (true, number);
    }

    /// The node is no rule any more.
    pub(super) fn unset_rule(&mut self, node: NodeId) {
        let node = &mut self.nodes[node as usize];
        self.rules -= usize::from(node.is_rule);
        node.is_rule = false;
    }

    /// Takes the node out if no rule needs it, and says what its parent and its hash were.
    pub(super) fn prune(&mut self, id: NodeId) -> Option<(NodeId, u64)> {
        let &Node { hash, parent, first_child, next, previous, block, bytes, is_rule, .. } = &self.nodes[id as usize];
        if id == ROOT || is_rule || first_child != NIL {
            return None;
        }
        if let Ok(entry) = self.index.find_entry(self.place(hash), |&node| node == id) {
            entry.remove();
        }
        match previous {
            NIL => self.nodes[parent as usize].first_child = next,
            _ => self.nodes[previous as usize].next = next,
        }
        if next != NIL {
            self.nodes[next as usize].previous = previous;
        }
        self.components.free(block);
        self.component_bytes -= block_bytes(bytes.into());
        self.vacant.push(id);
        Some((parent, hash))
    }

    fn component(&self, node: NodeId) -> &[u8] {
        let node = &self.nodes[node as usize];
        self.components.get(node.block, node.bytes.into())
    }

    fn keep(&mut self, component: &[u8]) -> u32 {
        self.component_bytes += block_bytes(component.len());
        loop {
            if let Some(block) = self.components.allocate(component) {
                return block;
            }
            // As with a `Vec`, a kernel that maps no more ends the process: `GrowthGuard` refuses before.
            self.component_room = (self.component_room * 2).max(self.component_bytes * 2);
            self.components.grow(self.component_room).expect("memory for the components of the RIB");
        }
    }

    fn place(&self, hash: u64) -> u64 {
        place(hash, self.index_hashes)
    }
}

/// The reduced hash, spread: the index takes its place from the low bits and a tag from the upper ones.
fn place(hash: u64, index_hashes: u64) -> u64 {
    reduced(hash, index_hashes).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(rib: &Rib, name: &[u8]) -> NameHashes {
        let mut hashes = NameHashes::default();
        hashes.compute(rib.key(), name).expect("a short name");
        hashes
    }

    fn add(rib: &mut Rib, name: &[u8], number: u32) -> NodeId {
        let hashes = hashes(rib, name);
        let mut at = rib.walk(&hashes, name).deepest;
        while rib.components(at) < hashes.components() {
            at = rib.push_below(at, &hashes, name);
        }
        rib.set_rule(at, number);
        at
    }

    #[test]
    fn rules_are_found_with_the_rule_above_and_go_again() {
        // With 13 hashes in the index, nearly all nodes look alike.
        let mut rib = Rib::new(HashKey::from_seed(1), 13).expect("4 KiB");
        let names: Vec<Vec<u8>> =
            (0..200_u8).map(|n| [&[8, 1, n % 7][..], &[8, 2, n % 5, n][..], &[8, 1, n][..]].concat()).collect();
        for (number, name) in (0..).zip(&names) {
            add(&mut rib, name, number);
        }
        let above = add(&mut rib, &names[3][..3], 1000);
        let mut prefix = Vec::new();
        for (number, name) in (0..).zip(&names) {
            let hashes = hashes(&rib, name);
            let walk = rib.walk(&hashes, name);
            assert_eq!(rib.number(walk.deepest), Some(number));
            assert_eq!(walk.shortest_rule_above, (name[2] == 3).then_some(above));
            assert_eq!(rib.shortest_rule_above(walk.deepest), walk.shortest_rule_above);
            rib.write_prefix(walk.deepest, &mut prefix);
            assert_eq!(&prefix, name);
            assert!(rib.nodes_like(rib.hash(walk.deepest)).any(|node| node == walk.deepest));
        }
        let mut below = 0;
        let mut at = above;
        while let Some(next) = rib.next_below(above, at) {
            below += usize::from(rib.number(next).is_some());
            at = next;
        }
        assert_eq!(below, names.iter().filter(|name| name[2] == 3).count());
        rib.unset_rule(above);
        for name in &names {
            let mut at = rib.walk(&hashes(&rib, name), name).deepest;
            rib.unset_rule(at);
            while let Some((parent, _)) = rib.prune(at) {
                at = parent;
            }
        }
        assert_eq!((rib.rules(), rib.index.len(), rib.component_bytes), (0, 0, 0));
        assert!(!rib.has_below(ROOT));
    }
}
