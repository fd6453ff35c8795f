//! Label: where a node is in a tree.
//!
//! One struct for both widths. What it proves: the list has no bit above the highest 1 of the mask. What it does not
//! prove: that a node has this label.

use std::mem::{offset_of, size_of};

/// The integers of a label: `u16` or `u32`.
pub trait Word: Copy + Default + Eq + Into<u32> + TryFrom<u64> + sealed::Sealed {
    /// The most nodes of a tree whose labels are made of this integer.
    ///
    /// The largest id is one below this number. With `u32` one id stays unused, so that a leaf's state can name the id
    /// after its own.
    const NODES_MAX: u64;
}

impl Word for u16 {
    const NODES_MAX: u64 = 1 << 16;
}

impl Word for u32 {
    const NODES_MAX: u64 = (1 << 32) - 1;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// The label of a node: its id, and the light edges on its path from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TreeLabel<W> {
    node_id: W,
    ifx_list: W,
    mask: W,
}

/// The paper's label: 48 bits, for every tree of at most 65,536 nodes.
pub type Label = TreeLabel<u16>;
/// A label of 96 bits, for larger trees.
pub type WideLabel = TreeLabel<u32>;

const _: () = assert!(size_of::<Label>() == 6 && size_of::<WideLabel>() == 12);
const _: () = assert!(offset_of!(Label, node_id) == 0 && offset_of!(WideLabel, node_id) == 0);
const _: () = assert!(offset_of!(Label, ifx_list) == 2 && offset_of!(WideLabel, ifx_list) == 4);
const _: () = assert!(offset_of!(Label, mask) == 4 && offset_of!(WideLabel, mask) == 8);

/// Why three integers are no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The list has a bit that belongs to no code.
    #[error("the interface list goes on after the mask")]
    ListAfterMask,
    /// An integer of a wide label is too large for a narrow one.
    #[error("the label has more than 48 bits")]
    TooWide,
}

impl<W: Word> TreeLabel<W> {
    /// The label with these parts.
    ///
    /// # Errors
    /// If the list has a bit above the highest 1 of the mask.
    pub fn new(node_id: W, ifx_list: W, mask: W) -> Result<Self, LabelError> {
        let label = TreeLabel { node_id, ifx_list, mask };
        if u64::from(ifx_list.into()) >> label.list_bits() == 0 { Ok(label) } else { Err(LabelError::ListAfterMask) }
    }

    /// The root's label: id 0, and no light edge.
    pub fn root() -> Self {
        TreeLabel::default()
    }

    /// The node's place in the depth-first walk, from 0.
    pub fn node_id(self) -> u32 {
        self.node_id.into()
    }

    /// The codes of the light edges, the root's in the lowest bits.
    pub fn ifx_list(self) -> u32 {
        self.ifx_list.into()
    }

    /// A 1 at the highest bit of each code.
    pub fn mask(self) -> u32 {
        self.mask.into()
    }

    /// The bits of the list.
    pub fn list_bits(self) -> u32 {
        32 - self.mask().leading_zeros()
    }

    /// The label of the node with this id behind this interface of the labelled node; `None` if it does not fit.
    ///
    /// `interface` is 1 or more.
    pub(super) fn behind(self, interface: u32, node_id: u64) -> Option<Self> {
        let (at, bits) = (self.list_bits(), interface.ilog2());
        let code = u64::from(interface) - (1 << bits);
        let code_mask = 1_u64 << bits >> 1;
        Some(TreeLabel {
            node_id: W::try_from(node_id).ok()?,
            ifx_list: W::try_from(u64::from(self.ifx_list()) | code << at).ok()?,
            mask: W::try_from(u64::from(self.mask()) | code_mask << at).ok()?,
        })
    }
}

impl From<Label> for WideLabel {
    fn from(label: Label) -> Self {
        TreeLabel { node_id: label.node_id.into(), ifx_list: label.ifx_list.into(), mask: label.mask.into() }
    }
}

impl TryFrom<WideLabel> for Label {
    type Error = LabelError;

    fn try_from(label: WideLabel) -> Result<Self, LabelError> {
        let narrow = |word: u32| u16::try_from(word).map_err(|_| LabelError::TooWide);
        let (node_id, ifx_list, mask) = (narrow(label.node_id)?, narrow(label.ifx_list)?, narrow(label.mask)?);
        Ok(TreeLabel { node_id, ifx_list, mask })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_header_is_right() {
        let between = Label::root().behind(5, 7).unwrap();
        let label = between.behind(2, 8).unwrap().behind(1, 9).unwrap();
        assert_eq!((between.ifx_list(), between.mask(), between.list_bits()), (0b01, 0b10, 2));
        assert_eq!((label.node_id(), label.ifx_list(), label.mask(), label.list_bits()), (9, 0b001, 0b110, 3));
    }

    #[test]
    fn labels_that_do_not_fit_are_refused() {
        assert!(Label::root().behind(0xffff, 65_535).is_some_and(|label| label.list_bits() == 15));
        assert!(Label::root().behind(0x1_ffff, 1).is_some_and(|label| label.list_bits() == 16));
        assert_eq!(Label::root().behind(0x2_0000, 1), None);
        assert_eq!(Label::root().behind(1, 65_536), None);
        let full = WideLabel::new(0, u32::MAX, u32::MAX).unwrap();
        assert_eq!((full.behind(2, 1), full.behind(u32::MAX, 1)), (None, None));
        assert!(full.behind(1, u32::MAX.into()).is_some());
        assert_eq!(Label::try_from(full), Err(LabelError::TooWide));
        assert_eq!(Label::new(0, 2, 1), Err(LabelError::ListAfterMask));
        assert_eq!(Label::new(0, 1, 0), Err(LabelError::ListAfterMask));
        assert!(Label::new(0, 0xffff, 0x8000).is_ok());
    }
}
