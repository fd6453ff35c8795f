//! C-Trie: how many children has each prefix of the FIB, and which prefixes are in the C-Trie?
//!
//! The component trie of the FIB has a node for every prefix and for everything that a prefix begins with. It keeps no
//! lists of children: an edge is looked up by the hash of the name up to and including its component, then verified by
//! parent and component. Two indexes lead to nodes. The index *edges* has all nodes. The index *C-Trie* has the
//! *pulled* nodes, those with more than T children, and the nodes on the way to them. The paper's sizes count only
//! pulled nodes.
//!
//! ```text
//! node, 64 bytes, one line:
//!  0       8         12        16          20       24        28           30        31          63
//!  | hash  | parent  | number  | children  | below  | pulled  | component  | is      | component | 0 |
//!  |       |         |         |           |        |         | bytes     | prefix  | or where  |   |
//! ```
//!
//! The field *below* counts the prefixes further down; the field *pulled* counts the pulled nodes among this node and
//! all further down. A component TLV of more than 32 bytes is in an arena; the first four bytes of the component field
//! then hold its place.
//!
//! Cost: an insertion touches one node and one bucket per component. When a node starts or stops being pulled, the
//! update touches one more of each per component. Writers: the owner.

use super::growing_index::GrowingIndex;
use namewire_tables::arena::Arena;
use namewire_tables::fib::PrefixMatch;
use namewire_tables::name_hash::{HashKey, NameHashes};
use namewire_tables::pages::PageSize;
use namewire_tables::slab::{NIL, Slab};
use std::io;

/// Bytes of a component in its node.
const INLINE_BYTES: usize = 32;
/// The node of the root.
const ROOT: u32 = 0;
/// Nodes for which room is made at first: a page of them.
const FIRST_NODES: u32 = 64;
/// Bytes by which the arena of long components grows at least.
const LEAST_GROWTH_BYTES: u64 = 1 << 14;

/// What is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelPullingOptions {
    /// T: a prefix with more children is in the C-Trie.
    pub threshold_children: u32,
    /// Whether the root may be pulled.
    pub pull_root: bool,
}

impl LevelPullingOptions {
    #[inline(always)]
    fn pulls(self, id: u32, children: u32) -> bool {
        children > self.threshold_children && (id != ROOT || self.pull_root)
    }

    /// Whether the last inserted child, or the next removed one, makes the difference.
    fn is_at_threshold(self, id: u32, children: u32) -> bool {
        children.checked_sub(1) == Some(self.threshold_children) && self.pulls(id, children)
    }
}

impl Default for LevelPullingOptions {
    /// The paper's.
    fn default() -> Self {
        Self { threshold_children: 64, pull_root: false }
    }
}

#[derive(Default)]
#[repr(C, align(64))]
struct Node {
    hash: u64,
    parent: u32,
    number: u32,
    children: u32,
    below: u32,
    pulled: u32,
    component_bytes: u16,
    is_prefix: bool,
    component: [u8; INLINE_BYTES],
}

const _: () = assert!(size_of::<Node>() == 64 && std::mem::offset_of!(Node, component) == 31);

/// How far down a name is known.
#[derive(Clone, Copy, Default)]
pub(super) struct Reached {
    node: u32,
    pub(super) components: usize,
    /// The longest prefix on the way.
    pub(super) longest: Option<PrefixMatch>,
    /// The last node is pulled.
    pub(super) is_pulled: bool,
}

/// The component trie, and the C-Trie in it.
pub struct CTrie {
    options: LevelPullingOptions,
    nodes: Slab<Node>,
    edges: GrowingIndex,
    c_trie: GrowingIndex,
    pulled: usize,
    long_components: Arena,
    long_reserved_bytes: u64,
    pages: PageSize,
}

impl CTrie {
    pub(super) fn new(options: LevelPullingOptions, key: &HashKey, pages: PageSize) -> io::Result<Self> {
        let mut nodes = Slab::new(FIRST_NODES, pages)?.or_transparent();
        let mut hashes = NameHashes::default();
        if let (Some(root), Ok(())) = (nodes.allocate(), hashes.compute(key, &[])) {
            *nodes.get_mut(root) = Node { hash: hashes.full_hash(), parent: NIL, ..Node::default() };
        }
        Ok(Self {
            options,
            nodes,
            edges: GrowingIndex::new(pages)?,
            c_trie: GrowingIndex::new(pages)?,
            pulled: 0,
            long_components: Arena::new(0, pages)?.or_transparent(),
            long_reserved_bytes: 0,
            pages,
        })
    }

    /// Chooses what is pulled.
    ///
    /// # Errors
    /// If there is no memory for a larger C-Trie; then nothing is pulled until this succeeds.
    pub(super) fn set_options(&mut self, options: LevelPullingOptions) -> io::Result<()> {
        if options == self.options {
            return Ok(());
        }
        let none = LevelPullingOptions { threshold_children: u32::MAX, pull_root: false };
        let c_trie = GrowingIndex::new(self.pages)?; // as small as what will be in it
        let before = std::mem::replace(&mut self.options, none);
        self.pulled_by(before).into_iter().for_each(|id| self.demote(id));
        self.c_trie = c_trie;
        let pulled = self.pulled_by(options);
        for (done, &id) in pulled.iter().enumerate() {
            let nodes = &self.nodes;
            let above = std::iter::successors(Some(id), |&id| Some(nodes.get(id).parent).filter(|&id| id != NIL));
            if let Err(error) = self.c_trie.reserve(above.count(), |id| nodes.get(id).hash) {
                pulled[..done].iter().for_each(|&id| self.demote(id));
                return Err(error);
            }
            self.promote(id);
        }
        self.options = options;
        Ok(())
    }

    /// What is pulled.
    pub fn options(&self) -> LevelPullingOptions {
        self.options
    }

    /// How many prefixes are in the C-Trie for their children.
    pub fn c_trie_prefixes(&self) -> usize {
        self.pulled
    }

    /// Bytes that the walk down the C-Trie reads: the line of every pulled node and of every node above one, and the
    /// index.
    pub fn c_trie_bytes(&self) -> usize {
        (self.c_trie.len() + 1) * size_of::<Node>() + self.c_trie.bytes()
    }

    /// How many nodes there are, the root included.
    pub fn nodes(&self) -> usize {
        self.nodes.len() as usize
    }

    pub(super) fn bytes(&self) -> usize {
        let node_bytes = self.nodes.capacity() as usize * (size_of::<Node>() + size_of::<u32>());
        node_bytes + self.edges.bytes() + self.c_trie.bytes() + self.long_components.bytes()
    }

    /// Walks down the C-Trie.
    #[inline]
    pub(super) fn walk(&self, hashes: &NameHashes, name: &[u8]) -> Reached {
        let mut reached = Reached::default();
        self.arrive(&mut reached, ROOT, 0, hashes);
        while reached.components < hashes.components() {
            let components = reached.components + 1;
            let Some(child) = self.child(&self.c_trie, reached.node, hashes, components, name) else { break };
            self.arrive(&mut reached, child, components, hashes);
        }
        reached
    }

    /// How many components the longest pulled prefix has.
    pub(super) fn longest_pulled(&self, hashes: &NameHashes, name: &[u8]) -> Option<usize> {
        let (mut node, mut components) = (ROOT, 0);
        let mut longest = None;
        loop {
            if self.options.pulls(node, self.nodes.get(node).children) {
                longest = Some(components);
            }
            components += 1;
            if components > hashes.components() {
                return longest;
            }
            match self.child(&self.c_trie, node, hashes, components, name) {
                Some(child) => node = child,
                None => return longest,
            }
        }
    }

    /// Looks the next component up in the first table; says whether there is a prefix below it. `None` if the first
    /// table lacks it.
    #[inline]
    pub(super) fn step(&self, reached: &mut Reached, hashes: &NameHashes, name: &[u8]) -> Option<bool> {
        let components = reached.components + 1;
        let child = self.child(&self.edges, reached.node, hashes, components, name)?;
        self.arrive(reached, child, components, hashes);
        Some(self.nodes.get(child).below > 0)
    }

    #[inline(always)]
    fn arrive(&self, reached: &mut Reached, id: u32, components: usize, hashes: &NameHashes) {
        let node = self.nodes.get(id);
        (reached.node, reached.components, reached.is_pulled) = (id, components, self.options.pulls(id, node.children));
        if node.is_prefix {
            let prefix_bytes = hashes.prefix_bytes(components) as u16;
            reached.longest = Some(PrefixMatch { number: node.number, prefix_bytes });
        }
    }

    /// Begins to fetch the bucket of the edge that ends the first `components` components.
    #[inline(always)]
    pub(super) fn prefetch_edge(&self, hashes: &NameHashes, components: usize) {
        self.edges.index().prefetch(hashes.prefix_hash(components));
    }

    /// Begins to fetch what that bucket names.
    #[inline(always)]
    pub(super) fn prefetch_node(&self, hashes: &NameHashes, components: usize) {
        if let Some(id) = self.edges.index().candidate(hashes.prefix_hash(components)) {
            self.nodes.prefetch(id);
        }
    }

    /// Adds a prefix, or lets it lead to `number`.
    ///
    /// # Errors
    /// If there is no memory for it; nothing changed then.
    pub(super) fn insert(&mut self, hashes: &NameHashes, prefix: &[u8], number: u32) -> io::Result<()> {
        let mut node = ROOT;
        for components in 1..=hashes.components() {
            let child = self.child(&self.edges, node, hashes, components, prefix);
            match child.map_or_else(|| self.add_child(node, hashes, components, prefix), Ok) {
                Ok(child) => node = child,
                Err(error) => {
                    self.prune(node);
                    return Err(error);
                }
            }
        }
        let entry = self.nodes.get_mut(node);
        entry.number = number;
        if !std::mem::replace(&mut entry.is_prefix, true) {
            self.for_each_above(node, |above| above.below += 1);
        }
        Ok(())
    }

    /// Removes a prefix, if it is there.
    pub(super) fn remove(&mut self, hashes: &NameHashes, prefix: &[u8]) {
        let path = |node, components| self.child(&self.edges, node, hashes, components, prefix);
        let Some(node) = (1..=hashes.components()).try_fold(ROOT, path) else { return };
        if std::mem::take(&mut self.nodes.get_mut(node).is_prefix) {
            self.for_each_above(node, |above| above.below -= 1);
            self.prune(node);
        }
    }

    /// The child of `parent` that the first `components` components of `name` lead to.
    #[inline(always)]
    fn child(
        &self,
        index: &GrowingIndex,
        parent: u32,
        hashes: &NameHashes,
        components: usize,
        name: &[u8],
    ) -> Option<u32> {
        let component = &name[hashes.prefix_bytes(components - 1)..hashes.prefix_bytes(components)];
        index.index().find(hashes.prefix_hash(components), |id| {
            let node = self.nodes.get(id);
            node.parent == parent && self.component(node) == component
        })
    }

    #[inline(always)]
    fn component<'n>(&'n self, node: &'n Node) -> &'n [u8] {
        let bytes = usize::from(node.component_bytes);
        match node.component.get(..bytes) {
            Some(component) => component,
            None => self.long_components.get(long_component(node), bytes),
        }
    }

    fn add_child(&mut self, parent: u32, hashes: &NameHashes, components: usize, name: &[u8]) -> io::Result<u32> {
        self.reserve(components)?;
        let component = &name[hashes.prefix_bytes(components - 1)..hashes.prefix_bytes(components)];
        let hash = hashes.prefix_hash(components);
        let mut node = Node { hash, parent, component_bytes: component.len() as u16, ..Node::default() };
        match node.component.get_mut(..component.len()) {
            Some(place) => place.copy_from_slice(component),
            None => {
                let at = self.allocate_long(component)?;
                node.component[..4].copy_from_slice(&at.to_le_bytes());
            }
        }
        let id = self.nodes.allocate().ok_or(io::ErrorKind::OutOfMemory)?;
        *self.nodes.get_mut(id) = node;
        self.edges.insert(hash, id);
        self.nodes.get_mut(parent).children += 1;
        if self.options.is_at_threshold(parent, self.nodes.get(parent).children) {
            self.promote(parent);
        }
        Ok(id)
    }

    /// Room for a node of `components` components, and for all above it in the C-Trie.
    fn reserve(&mut self, components: usize) -> io::Result<()> {
        if self.nodes.is_full() {
            let capacity = self.nodes.capacity();
            self.nodes.grow(capacity.saturating_add(capacity / 2))?;
        }
        let nodes = &self.nodes;
        self.edges.reserve(1, |id| nodes.get(id).hash)?;
        self.c_trie.reserve(components, |id| nodes.get(id).hash)
    }

    fn allocate_long(&mut self, component: &[u8]) -> io::Result<u32> {
        if let Some(at) = self.long_components.allocate(component) {
            return Ok(at);
        }
        let growth = (self.long_reserved_bytes / 4).max(LEAST_GROWTH_BYTES);
        self.long_components.grow(self.long_reserved_bytes + growth)?;
        self.long_reserved_bytes += growth;
        self.long_components.allocate(component).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Removes the node and what is above it as far as nothing needs them.
    fn prune(&mut self, mut id: u32) {
        while id != ROOT && !self.nodes.get(id).is_prefix && self.nodes.get(id).children == 0 {
            let &Node { hash, parent, component_bytes, .. } = self.nodes.get(id);
            if usize::from(component_bytes) > INLINE_BYTES {
                self.long_components.free(long_component(self.nodes.get(id)));
            }
            self.edges.remove(hash, id);
            self.nodes.release(id);
            if self.options.is_at_threshold(parent, self.nodes.get(parent).children) {
                self.demote(parent);
            }
            self.nodes.get_mut(parent).children -= 1;
            id = parent;
        }
    }

    fn pulled_by(&self, options: LevelPullingOptions) -> Vec<u32> {
        self.nodes.live_ids().filter(|&id| options.pulls(id, self.nodes.get(id).children)).collect()
    }

    /// Takes a node into the C-Trie, with all above it.
    fn promote(&mut self, mut id: u32) {
        self.pulled += 1;
        while id != NIL {
            let node = self.nodes.get_mut(id);
            node.pulled += 1;
            if node.pulled == 1 && id != ROOT {
                self.c_trie.insert(node.hash, id);
            }
            id = node.parent;
        }
    }

    fn demote(&mut self, mut id: u32) {
        self.pulled -= 1;
        while id != NIL {
            let node = self.nodes.get_mut(id);
            node.pulled -= 1;
            if node.pulled == 0 && id != ROOT {
                self.c_trie.remove(node.hash, id);
            }
            id = node.parent;
        }
    }

    fn for_each_above(&mut self, id: u32, change: impl Fn(&mut Node)) {
        let mut above = self.nodes.get(id).parent;
        while above != NIL {
            let node = self.nodes.get_mut(above);
            change(node);
            above = node.parent;
        }
    }
}

/// Where a component is that has no room in its node.
fn long_component(node: &Node) -> u32 {
    node.component.first_chunk().copied().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The TLV-VALUE of a name; components of one digit are long ones.
    fn name(uri: &str) -> Vec<u8> {
        let components = uri.split('/').filter(|component| !component.is_empty());
        let long = |component: &str| match component.parse::<u8>() {
            Ok(digit) => vec![digit; 40 + usize::from(digit)],
            Err(_) => component.as_bytes().to_vec(),
        };
        components.map(long).flat_map(|component| [&[8, component.len() as u8][..], &component].concat()).collect()
    }

    struct Twin {
        trie: CTrie,
        key: HashKey,
    }

    impl Twin {
        fn new(threshold_children: u32, pull_root: bool) -> Self {
            let key = HashKey::from_seed(5);
            let trie = CTrie::new(LevelPullingOptions { threshold_children, pull_root }, &key, PageSize::Base);
            Self { trie: trie.expect("memory"), key }
        }

        fn hashes(&self, name: &[u8]) -> NameHashes {
            let mut hashes = NameHashes::default();
            hashes.compute(&self.key, name).expect("few components");
            hashes
        }

        fn insert(&mut self, uri: &str, number: u32) {
            let name = name(uri);
            self.trie.insert(&self.hashes(&name), &name, number).expect("memory");
        }

        fn remove(&mut self, uri: &str) {
            let name = name(uri);
            self.trie.remove(&self.hashes(&name), &name);
        }

        /// Components that the walk reaches, the number found on the way, whether the end is pulled.
        fn walk(&self, uri: &str) -> (usize, Option<u32>, bool) {
            let name = name(uri);
            let reached = self.trie.walk(&self.hashes(&name), &name);
            (reached.components, reached.longest.map(|longest| longest.number), reached.is_pulled)
        }

        /// What the first table says after the walk: whether there is more below, and the number.
        fn step(&self, uri: &str) -> Option<(bool, Option<u32>)> {
            let name = name(uri);
            let mut reached = self.trie.walk(&self.hashes(&name), &name);
            let has_longer = self.trie.step(&mut reached, &self.hashes(&name), &name)?;
            Some((has_longer, reached.longest.map(|longest| longest.number)))
        }
    }

    /// Fig. 4.1 with T = 2: below /com/google are three, so that it and /com above it are in the C-Trie.
    #[test]
    fn a_prefix_is_pulled_when_it_has_more_than_t_children() {
        let mut twin = Twin::new(2, false);
        for (number, uri) in ["/com/google/a", "/com/google/b/x", "/com", "/org/b"].into_iter().enumerate() {
            twin.insert(uri, number as u32);
        }
        assert_eq!((twin.trie.c_trie_prefixes(), twin.walk("/com/google/a")), (0, (0, None, false)));
        twin.insert("/com/google/3", 9);
        twin.insert("/com/google/3", 10);
        assert_eq!((twin.trie.c_trie_prefixes(), twin.walk("/com/google/c/d")), (1, (2, Some(2), true)));
        assert_eq!(twin.walk("/com/other/x"), (1, Some(2), false));
        assert_eq!(twin.walk("/org/b"), (0, None, false));
        assert_eq!(twin.step("/com/google/a/y"), Some((false, Some(0))));
        assert_eq!(twin.step("/com/google/b/y"), Some((true, Some(2))));
        assert_eq!(twin.step("/com/google/3"), Some((false, Some(10))));
        assert_eq!(twin.step("/com/google/c"), None);
        twin.remove("/com");
        assert_eq!(twin.walk("/com/google/c/d"), (2, None, true));
        twin.remove("/com/google/b"); // is none
        assert_eq!(twin.trie.c_trie_prefixes(), 1);
        twin.remove("/com/google/b/x");
        assert_eq!((twin.trie.c_trie_prefixes(), twin.walk("/com/google/a")), (0, (0, None, false)));
        for uri in ["/com/google/3", "/com/google/a", "/org/b"] {
            twin.remove(uri);
        }
        assert_eq!((twin.trie.nodes(), twin.trie.edges.len(), twin.trie.c_trie.len()), (1, 0, 0));
        let root = twin.trie.nodes.get(ROOT);
        assert_eq!((root.children, root.below, root.pulled), (0, 0, 0));
    }

    #[test]
    fn the_root_is_pulled_only_if_asked_for() {
        for pull_root in [false, true] {
            let mut twin = Twin::new(1, pull_root);
            twin.insert("/a", 1);
            twin.insert("/b", 2);
            twin.insert("", 3);
            assert_eq!(twin.trie.c_trie_prefixes(), usize::from(pull_root));
            assert_eq!(twin.walk("/a"), (0, Some(3), pull_root));
            twin.remove("/b");
            assert_eq!((twin.trie.c_trie_prefixes(), twin.walk("/a").2), (0, false));
        }
    }

    /// Many names, so that the arrays are made anew several times; and all go again.
    #[test]
    fn a_crowd_comes_and_goes() {
        let mut twin = Twin::new(64, false);
        let uri = |number: u32| format!("/{}/x{}/{}/y{number}", number % 3, number % 97, number % 2);
        (0..20_000).for_each(|number| twin.insert(&uri(number), number));
        // Each third has 97 children, and each of the 582 halves 34 or 35.
        assert_eq!((twin.trie.c_trie_prefixes(), twin.trie.nodes()), (3, 1 + 3 + 3 * 97 + 582 + 20_000));
        assert!((0..20_000).all(|number| twin.walk(&uri(number)).0 == 1));
        let bytes = twin.trie.bytes();
        for _ in 0..3 {
            (0..20_000).step_by(2).for_each(|number| twin.remove(&uri(number)));
            (0..20_000).step_by(2).for_each(|number| twin.insert(&uri(number), number));
        }
        assert_eq!((twin.trie.bytes(), twin.trie.c_trie_prefixes()), (bytes, 3));
        for (threshold_children, pull_root, prefixes) in
            [(33, true, 585), (34, false, 215), (2, true, 586), (96, true, 3), (97, true, 0), (96, false, 3)]
        {
            twin.trie.set_options(LevelPullingOptions { threshold_children, pull_root }).expect("memory");
            assert_eq!(twin.trie.c_trie_prefixes(), prefixes);
        }
        (0..20_000).for_each(|number| twin.remove(&uri(number)));
        assert_eq!((twin.trie.nodes(), twin.trie.c_trie_prefixes()), (1, 0));
    }
}
