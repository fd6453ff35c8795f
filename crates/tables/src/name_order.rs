//! Name order: which stored name is the first, in canonical order, under this prefix?
//!
//! Source: forwarding §2.2 (NFD's store is ordered by full name, and a look-up by prefix takes the first
//! entry that satisfies). The search tree is Morrison's PATRICIA (1968), as a crit-bit tree. It holds the
//! [name groups](crate::name_group) that have Data of their own. The tree exists only if the store looks up
//! under all prefixes ([`PrefixLookup::All`](crate::PrefixLookup)).
//!
//! Canonical order compares the Name TLV-VALUEs byte by byte; if one name begins with the other, the
//! shorter is first. The tree reads a name as its bits, followed by zeros without end. No component begins
//! with a zero byte. So no two names have the same bits, and the shorter is first here too. A *branch* is
//! the first bit in which the names below it differ; a *leaf* is a group. From the root to a leaf the bit
//! numbers only grow.
//!
//! ```text
//! branch, 32 bytes, half a line:
//!  0             8       12    16                        32        leaves, by group:
//!  | below 0 | 1 | above | bit | fresh until below 0 | 1 |         | branch above | … |
//!  | branch, or LEAF and a group |                               4 bytes each
//! ```
//!
//! For each of its two sides, a branch stores until when some Data below is fresh. So one descent finds the
//! first fresh name under a prefix, however many stale names come before it.
//!
//! Cost: a descent reads one branch (half a line) for each bit in which stored names differ on its way. For
//! a million names it reads some 20 to 40; the upper branches are in cache. At its end, a look-up reads one
//! group's name. An insertion descends twice, reads one name, and writes one branch and its neighbours. A
//! removal does not descend. A change of freshness is passed up as long as it is the latest below the
//! branch.
//! Bytes: a name takes 36 (branch and free list), a group 4. They are mapped at the start and touched when
//! used.
//!
//! Limits: a name has at most [`MAX_ORDERED_NAME_BYTES`], so no descent has more than 8 × that many steps.
//! A neighbour router that wants to make the descent to a name long must store another name for each bit of
//! it. The tree holds as many names as the store may have Data.
//! Writers: the worker that owns the tables.

use crate::name_group::NameGroups;
use crate::pages::{PageArray, PageSize};
use crate::slab::{NIL, Slab};
use std::io;

/// Longer names are found by their own name and digest only, not under their prefixes.
pub const MAX_ORDERED_NAME_BYTES: usize = 2_048;

/// Marks a leaf among the numbers below a branch; group numbers are smaller.
const LEAF: u32 = 1 << 31;

#[derive(Clone, Copy)]
struct Branch {
    below: [u32; 2],
    /// `NIL` = the root.
    above: u32,
    /// Counted from the front of the name.
    bit: u32,
    fresh_until_ns: [u64; 2],
}

const _: () = assert!(size_of::<Branch>() == 32);

impl Default for Branch {
    fn default() -> Self {
        Self { below: [NIL; 2], above: NIL, bit: 0, fresh_until_ns: [0; 2] }
    }
}

/// A branch or a leaf of the tree.
#[derive(Clone, Copy)]
struct Node {
    /// A branch, a leaf, or `NIL`.
    id: u32,
    fresh_until_ns: u64,
}

/// Where a node is attached.
#[derive(Clone, Copy)]
struct Place {
    /// `NIL` = it is the root.
    above: u32,
    side: usize,
}

const ROOT: Place = Place { above: NIL, side: 0 };

pub(crate) struct NameOrder {
    branches: Slab<Branch>,
    /// By group; meaningless for groups that are not in the tree.
    above_leaf: PageArray<u32>,
    root: Node,
}

impl NameOrder {
    pub(crate) fn new(names: u32, groups: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            branches: Slab::new(names, pages)?,
            above_leaf: PageArray::zeroed(groups as usize, pages)?,
            root: Node { id: NIL, fresh_until_ns: 0 },
        })
    }

    /// Makes room for this many names, if there is less.
    pub(crate) fn grow(&mut self, names: u32, groups: u32) -> io::Result<()> {
        self.above_leaf.grow(groups as usize)?;
        self.branches.grow(names)
    }

    /// Bytes mapped.
    pub(crate) fn bytes(&self) -> usize {
        self.branches.bytes() + self.above_leaf.mapped_bytes()
    }

    /// The first group whose name begins with `prefix`; with `fresh_at_ns` the first with Data that is
    /// fresh then.
    pub(crate) fn first_under(&self, groups: &NameGroups, prefix: &[u8], fresh_at_ns: Option<u64>) -> Option<u32> {
        // Freshness 0 is never fresh, not even at 0.
        let least_ns = fresh_at_ns.map_or(0, |at| at.max(1));
        let mut node = self.root;
        // Below a bit after the prefix, all names agree in the prefix: if one begins with it, all do.
        while let Some(branch) = self.branch(node).filter(|branch| (branch.bit as usize) < prefix.len() * 8) {
            node = branch.node(bit_of(prefix, branch.bit));
        }
        while let Some(branch) = self.branch(node) {
            node = branch.node(usize::from(branch.fresh_until_ns[0] < least_ns));
        }
        let group = node.leaf().filter(|_| node.fresh_until_ns >= least_ns)?;
        groups.name(group).starts_with(prefix).then_some(group)
    }

    /// Adds a group that is not in the tree. Its name must be within the limit.
    pub(crate) fn insert(&mut self, groups: &NameGroups, group: u32, fresh_until_ns: u64) {
        let name = groups.name(group);
        let leaf = Node { id: LEAF | group, fresh_until_ns };
        let Some(nearest) = self.leaf_like(name) else {
            return self.hang(leaf, ROOT);
        };
        let bit = first_difference(name, groups.name(nearest));
        let (mut node, mut place) = (self.root, ROOT);
        while let Some(branch) = self.branch(node).filter(|branch| branch.bit < bit) {
            let side = bit_of(name, branch.bit);
            (node, place) = (branch.node(side), Place { above: node.id, side });
        }
        let side = bit_of(name, bit);
        let Some(id) = self.branches.allocate() else {
            // There are as many branches as Data, and the tree needs one fewer.
            debug_assert!(false, "no branch is free");
            return;
        };
        self.branches.get_mut(id).bit = bit;
        self.hang(leaf, Place { above: id, side });
        self.hang(node, Place { above: id, side: 1 - side });
        let fresh_until_ns = node.fresh_until_ns;
        self.hang(Node { id, fresh_until_ns }, place);
        self.freshness_changed(id);
    }

    /// Removes a group that is in the tree.
    pub(crate) fn remove(&mut self, group: u32) {
        let above = self.above_leaf[group as usize];
        if above == NIL {
            self.root = Node { id: NIL, fresh_until_ns: 0 };
            return;
        }
        let branch = *self.branches.get(above);
        let other = branch.node(1 - branch.side_of(LEAF | group));
        let place = self.place_of(above, branch.above);
        self.branches.release(above);
        self.hang(other, place);
        if place.above != NIL {
            self.freshness_changed(place.above);
        }
    }

    /// Notes until when something of this group, which is in the tree, is fresh.
    pub(crate) fn set_fresh_until(&mut self, group: u32, fresh_until_ns: u64) {
        let above = self.above_leaf[group as usize];
        let place = self.place_of(LEAF | group, above);
        self.hang(Node { id: LEAF | group, fresh_until_ns }, place);
        if above != NIL {
            self.freshness_changed(above);
        }
    }

    /// A group whose name shares the longest run of first bits with `name`.
    fn leaf_like(&self, name: &[u8]) -> Option<u32> {
        let mut node = self.root;
        while let Some(branch) = self.branch(node) {
            node = branch.node(bit_of(name, branch.bit));
        }
        node.leaf()
    }

    #[inline]
    fn branch(&self, node: Node) -> Option<&Branch> {
        (node.id & LEAF == 0).then(|| self.branches.get(node.id))
    }

    fn place_of(&self, id: u32, above: u32) -> Place {
        if above == NIL { ROOT } else { Place { above, side: self.branches.get(above).side_of(id) } }
    }

    /// Attaches a node at a place, in place of the one there.
    fn hang(&mut self, node: Node, place: Place) {
        if node.id & LEAF == 0 {
            self.branches.get_mut(node.id).above = place.above;
        } else {
            self.above_leaf[(node.id & !LEAF) as usize] = place.above;
        }
        if place.above == NIL {
            self.root = node;
        } else {
            let branch = self.branches.get_mut(place.above);
            (branch.below[place.side], branch.fresh_until_ns[place.side]) = (node.id, node.fresh_until_ns);
        }
    }

    /// Tells the branches above `id` until when something below it is fresh.
    fn freshness_changed(&mut self, mut id: u32) {
        loop {
            let branch = self.branches.get(id);
            let latest_ns = branch.fresh_until_ns[0].max(branch.fresh_until_ns[1]);
            let above = branch.above;
            if above == NIL {
                self.root.fresh_until_ns = latest_ns;
                return;
            }
            let branch = self.branches.get_mut(above);
            let side = branch.side_of(id);
            if std::mem::replace(&mut branch.fresh_until_ns[side], latest_ns) == latest_ns {
                return;
            }
            id = above;
        }
    }
}

impl Branch {
    #[inline]
    fn node(&self, side: usize) -> Node {
        Node { id: self.below[side], fresh_until_ns: self.fresh_until_ns[side] }
    }

    fn side_of(&self, id: u32) -> usize {
        usize::from(self.below[1] == id)
    }
}

impl Node {
    fn leaf(self) -> Option<u32> {
        (self.id != NIL).then_some(self.id & !LEAF)
    }
}

/// A bit of a name, with zeros after its end.
#[inline]
fn bit_of(name: &[u8], bit: u32) -> usize {
    let byte = name.get(bit as usize / 8).copied().unwrap_or(0);
    usize::from(byte >> (7 - bit % 8) & 1)
}

/// The first bit in which two different names differ.
fn first_difference(a: &[u8], b: &[u8]) -> u32 {
    const CHUNK: usize = 8;
    let same = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(a, b)| a == b).count() * CHUNK;
    let byte = |name: &[u8], at: usize| name.get(at).copied().unwrap_or(0);
    let longer = a.len().max(b.len());
    let at = (same..longer).find(|&at| byte(a, at) != byte(b, at)).unwrap_or(longer);
    at as u32 * 8 + (byte(a, at) ^ byte(b, at)).leading_zeros()
}
