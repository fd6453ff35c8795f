//! Node state: what a router knows of one tree, and the forwarding decision (TagNet16 Fig. 6).

use super::{TreeLabel, Word};

/// The number of the interface to the node itself.
pub const HERE: u32 = 0;
/// The number of the interface to the heavy child.
pub const HEAVY_CHILD: u32 = 1;

/// The forwarding state of a node in one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The node's own id.
    node_id: u32,
    /// h; of a leaf, the id after its own.
    heavy_child_id: u32,
    /// f.
    largest_descendant_id: u32,
    /// P[0], and the number of the node's interfaces without [`HERE`].
    parent_interface: u32,
    /// k.
    list_bits: u8,
}

const _: () = assert!(size_of::<NodeState>() == 20);

impl NodeState {
    /// The state of the node with this label, if its subtree has `size` nodes and its children's subtrees are `sizes`.
    ///
    /// `size` ends within the ids of `W`.
    pub(super) fn new<W: Word>(label: TreeLabel<W>, size: u32, heavy_size: u32, children: u32) -> Self {
        NodeState {
            node_id: label.node_id(),
            heavy_child_id: label.node_id() + (size - heavy_size),
            largest_descendant_id: label.node_id() + (size - 1),
            parent_interface: children + 1,
            list_bits: label.list_bits() as u8,
        }
    }

    /// The number of the interface that leads to `destination`.
    ///
    /// The number is [`HERE`] for the node's own label. A forged label may give any number, also of an interface that
    /// the node lacks: look the number up by `get`. At the root, the number of the parent is such a number.
    #[inline]
    pub fn forward<W: Word>(&self, destination: TreeLabel<W>) -> u32 {
        let v = destination.node_id();
        let list = u64::from(destination.ifx_list()) >> self.list_bits;
        let mask = u64::from(destination.mask()) >> self.list_bits;
        if self.node_id <= v && v < self.heavy_child_id {
            first_interface(list, mask)
        } else if self.heavy_child_id <= v && v <= self.largest_descendant_id {
            HEAVY_CHILD
        } else {
            self.parent_interface
        }
    }

    /// The node's id.
    pub fn node_id(&self) -> u32 {
        self.node_id
    }

    /// The nodes of its subtree, the node included.
    pub fn subtree_size(&self) -> u32 {
        self.largest_descendant_id - self.node_id + 1
    }

    /// The id of the heavy child; `None` of a leaf.
    pub fn heavy_child_id(&self) -> Option<u32> {
        (self.heavy_child_id <= self.largest_descendant_id).then_some(self.heavy_child_id)
    }

    /// The largest id in its subtree.
    pub fn largest_descendant_id(&self) -> u32 {
        self.largest_descendant_id
    }

    /// The bits of the node's own list.
    pub fn list_bits(&self) -> u32 {
        self.list_bits.into()
    }

    /// The number of the interface to the parent: the last one. The children have 1 up to the number before.
    pub fn parent_interface(&self) -> u32 {
        self.parent_interface
    }
}

/// The interface whose code is in the lowest bits; [`HERE`] if there is no code.
#[inline]
fn first_interface(list: u64, mask: u64) -> u32 {
    // The bits of the first code are 1. Its missing first 1 is the bit above, and so this number plus 1. Without code
    // all 64 bits are 1, and the sum wraps around to 0.
    let code_bits = mask ^ mask.wrapping_sub(1);
    (list & code_bits).wrapping_add(code_bits).wrapping_add(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::{Label, WideLabel};

    #[test]
    fn every_code_is_read_back() {
        for interface in (1..5_000).chain([65_535, 65_536, 131_071]) {
            let label = Label::root().behind(interface, 1).unwrap();
            let read = first_interface(label.ifx_list().into(), label.mask().into());
            assert_eq!(read, if interface == HEAVY_CHILD { HERE } else { interface });
            let next = label.behind(3, 2);
            assert!(next.is_none_or(|next| first_interface(next.ifx_list().into(), next.mask().into()) >= 2));
        }
        let label = WideLabel::root().behind(u32::MAX, 1).unwrap();
        assert_eq!(first_interface(label.ifx_list().into(), label.mask().into()), u32::MAX);
    }

    #[test]
    fn the_largest_ids_do_not_overflow() {
        let last = WideLabel::new(u32::MAX - 1, 0, 0).unwrap();
        let leaf = NodeState::new(last, 1, 0, 0);
        assert_eq!((leaf.forward(last), leaf.forward(WideLabel::root()), leaf.heavy_child_id()), (HERE, 1, None));
        assert_eq!(leaf.forward(WideLabel::new(u32::MAX, 0, 0).unwrap()), leaf.parent_interface());
    }
}
