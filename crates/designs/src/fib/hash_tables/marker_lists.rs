//! Marker lists: each prefix knows the markers that inherit from it.
//!
//! Source: Yuan15 §3.3.1, "FIB Updates", the second solution. Markers that inherit only from the root have a separate
//! list.
//!
//! ```text
//!  slot of a prefix: link ─► node ◄─► node ◄─► node       node: | marker | owner | before | after |
//!                             ▲ link of the marker's slot
//! ```
//!
//! Cost: adding a prefix scans the whole list of its parent prefix. Changing or removing a prefix scans the list of
//! that prefix. Bytes: the lists take 28 per marker, and 4 per slot. Writers: the owner.

use super::maintenance::{Marker, Owner, inherited};
use super::name_entries::{NameEntries, SlotRef};

/// No node; the first element of the array is none.
const NONE: u32 = 0;

/// All lists.
pub(super) struct MarkerLists {
    nodes: Vec<Node>,
    /// Free nodes, chained by `after`.
    free: u32,
    /// The first marker of the list for the root.
    without_owner: u32,
}

const _: () = assert!(size_of::<Node>() == 28);

#[derive(Clone, Copy)]
struct Node {
    marker: Marker,
    owner: Option<SlotRef>,
    before: u32,
    after: u32,
}

impl Default for MarkerLists {
    fn default() -> Self {
        let none = Node { marker: Marker { name_entry: 0, bytes: 0, slot: 0 }, owner: None, before: NONE, after: NONE };
        Self { nodes: vec![none], free: NONE, without_owner: NONE }
    }
}

impl MarkerLists {
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    pub(super) fn enter(&mut self, names: &mut NameEntries, marker: Marker, owner: Option<Owner>) {
        let node = match self.free {
            NONE => {
                self.nodes.push(self.nodes[0]);
                self.nodes.len() as u32 - 1
            }
            free => {
                self.free = self.nodes[free as usize].after;
                free
            }
        };
        self.nodes[node as usize].marker = marker;
        names.set_link(marker.at(), node);
        self.link(names, node, owner);
    }

    pub(super) fn leave(&mut self, names: &mut NameEntries, marker: Marker) {
        let node = names.link(marker.at());
        self.unlink(names, node);
        self.nodes[node as usize].after = self.free;
        self.free = node;
        names.set_link(marker.at(), NONE);
    }

    pub(super) fn hand_over(&mut self, names: &mut NameEntries, prefix: &[u8], from: Option<Owner>, to: Option<Owner>) {
        let from = from.map(|owner| owner.at);
        let mut next = self.first(names, from);
        while next != NONE {
            let (node, Node { marker, after, .. }) = (next, self.nodes[next as usize]);
            next = after;
            // The entry may be of something longer than the marker.
            if usize::from(marker.bytes) < prefix.len() || !names.begins_with(marker.name_entry, prefix) {
                continue;
            }
            if from == to.map(|owner| owner.at) {
                names.set(marker.at(), inherited(to));
            } else {
                self.unlink(names, node);
                self.link(names, node, to);
            }
        }
    }

    fn first(&self, names: &NameEntries, owner: Option<SlotRef>) -> u32 {
        owner.map_or(self.without_owner, |owner| names.link(owner))
    }

    fn set_first(&mut self, names: &mut NameEntries, owner: Option<SlotRef>, node: u32) {
        match owner {
            Some(owner) => names.set_link(owner, node),
            None => self.without_owner = node,
        }
    }

    /// Puts a node at the beginning of a list, and the marker under its prefix.
    fn link(&mut self, names: &mut NameEntries, node: u32, owner: Option<Owner>) {
        let at = owner.map(|owner| owner.at);
        let first = self.first(names, at);
        let marker = self.nodes[node as usize].marker;
        self.nodes[node as usize] = Node { marker, owner: at, before: NONE, after: first };
        if first != NONE {
            self.nodes[first as usize].before = node;
        }
        self.set_first(names, at, node);
        names.set(marker.at(), inherited(owner));
    }

    fn unlink(&mut self, names: &mut NameEntries, node: u32) {
        let Node { owner, before, after, .. } = self.nodes[node as usize];
        match before {
            NONE => self.set_first(names, owner, after),
            before => self.nodes[before as usize].after = after,
        }
        if after != NONE {
            self.nodes[after as usize].before = before;
        }
    }
}
