//! Locator on the wire: the number of a tree, and the label of a node in it.
//!
//! ```text
//!   byte  0      2         4          6      8                 0      2         6          10     14
//!         │ tree │ node_id │ ifx_list │ mask │       or        │ tree │ node_id │ ifx_list │ mask │
//! ```
//!
//! All integers are big-endian, as in NDN packets. The two forms differ in length. The long form is only for labels
//! that need it: so a locator has one encoding, and two locators are equal if their bytes are.
//!
//! [`Locator::parse`] refuses other lengths, bits of a list after its mask, and a long form without need. `parse`
//! cannot tell whether a node has the label.

use super::{Label, LabelError, WideLabel};
use arrayvec::ArrayVec;

/// Bytes of a narrow label.
pub const LABEL_BYTES: usize = 6;
/// Bytes of a wide label.
pub const WIDE_LABEL_BYTES: usize = 12;
/// Bytes of a locator with a narrow label.
pub const LOCATOR_BYTES: usize = 2 + LABEL_BYTES;
/// Bytes of a locator with a wide label.
pub const WIDE_LOCATOR_BYTES: usize = 2 + WIDE_LABEL_BYTES;

/// The number of a tree, and the label of a node in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locator {
    /// The number of the tree.
    pub tree: u16,
    /// The label in that tree. A narrow label is stored wide; [`super::NodeState::forward`] takes both.
    pub label: WideLabel,
}

/// Why bytes are no locator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocatorError {
    /// Neither the size of a narrow label nor of a wide one.
    #[error("a label has 6 or 12 bytes, not {0}")]
    Length(usize),
    /// A wide label for what a narrow one can say.
    #[error("12 bytes for a label of 6")]
    TooLong,
    /// The label is none.
    #[error(transparent)]
    Label(#[from] LabelError),
}

impl WideLabel {
    /// The label's bytes: 6 if it fits 48 bits, or else 12.
    pub fn to_bytes(self) -> ArrayVec<u8, WIDE_LABEL_BYTES> {
        let skipped = if Label::try_from(self).is_ok() { 2 } else { 0 };
        let parts = [self.node_id(), self.ifx_list(), self.mask()];
        parts.into_iter().flat_map(|part| part.to_be_bytes().into_iter().skip(skipped)).collect()
    }

    /// The label with exactly these bytes.
    ///
    /// # Errors
    /// If they are not what [`to_bytes`](Self::to_bytes) writes for a label.
    pub fn parse(bytes: &[u8]) -> Result<Self, LocatorError> {
        if bytes.len() != LABEL_BYTES && bytes.len() != WIDE_LABEL_BYTES {
            return Err(LocatorError::Length(bytes.len()));
        }
        let number = |part: &[u8]| part.iter().fold(0, |number: u32, &byte| number << 8 | u32::from(byte));
        let mut parts = [0; 3];
        for (part, bytes) in parts.iter_mut().zip(bytes.chunks_exact(bytes.len() / 3)) {
            *part = number(bytes);
        }
        let label = WideLabel::new(parts[0], parts[1], parts[2])?;
        if bytes.len() == WIDE_LABEL_BYTES && Label::try_from(label).is_ok() {
            return Err(LocatorError::TooLong);
        }
        Ok(label)
    }
}

impl Locator {
    /// The locator's bytes: [`LOCATOR_BYTES`] if the label fits 48 bits, or else [`WIDE_LOCATOR_BYTES`].
    pub fn to_bytes(&self) -> ArrayVec<u8, WIDE_LOCATOR_BYTES> {
        self.tree.to_be_bytes().into_iter().chain(self.label.to_bytes()).collect()
    }

    /// The locator with exactly these bytes.
    ///
    /// # Errors
    /// If they are not what [`to_bytes`](Self::to_bytes) writes for a locator.
    pub fn parse(bytes: &[u8]) -> Result<Self, LocatorError> {
        let (tree, label) = bytes.split_first_chunk().ok_or(LocatorError::Length(bytes.len()))?;
        Ok(Locator { tree: u16::from_be_bytes(*tree), label: WideLabel::parse(label)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_fixed() {
        let narrow = Locator { tree: 0x0102, label: WideLabel::new(0xa1b2, 0b001, 0b110).unwrap() };
        assert_eq!(narrow.to_bytes()[..], [1, 2, 0xa1, 0xb2, 0, 0b001, 0, 0b110]);
        let wide = Locator { tree: 3, label: WideLabel::new(0x10000, 1, 2).unwrap() };
        assert_eq!(wide.to_bytes()[..], [0, 3, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    }

    #[test]
    fn malformed_locators_are_refused() {
        for length in (0..40).filter(|length| ![8, 14].contains(length)) {
            assert!(matches!(Locator::parse(&vec![0; length]), Err(LocatorError::Length(_))), "{length}");
        }
        assert_eq!(Locator::parse(&[0; 14]), Err(LocatorError::TooLong));
        let after_mask = LocatorError::Label(LabelError::ListAfterMask);
        assert_eq!(Locator::parse(&[0, 0, 0, 0, 0, 4, 0, 3]), Err(after_mask));
        assert_eq!(Locator::parse(&[0, 0, 1, 0, 0, 0, 0x80, 0, 0, 0, 0x40, 0, 0, 0]), Err(after_mask));
    }

    proptest! {
        #[test]
        fn a_locator_reads_back(tree: u16, node_id: u32, ifx_list: u32, mask: u32, shift in 0..32) {
            let (ifx_list, mask) = (ifx_list >> shift, mask >> shift);
            for node_id in [node_id, node_id >> 16] {
                let Ok(label) = WideLabel::new(node_id, ifx_list, mask) else { continue };
                let locator = Locator { tree, label };
                prop_assert_eq!(Locator::parse(&locator.to_bytes()), Ok(locator));
            }
        }

        #[test]
        fn a_parsed_locator_is_written_back_unchanged(bytes in proptest::collection::vec(any::<u8>(), 8..15)) {
            if let Ok(locator) = Locator::parse(&bytes) {
                prop_assert_eq!(&locator.to_bytes()[..], &bytes[..]);
            }
        }
    }
}
