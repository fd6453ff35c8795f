//! Slot: the data of one child that its parent holds, in one word that the writer replaces with one store.
//!
//! ```text
//!   bits     0 ............... 30   31      32 .. 39   40 .. 47   48 .. 55     56 .. 63
//!            block of the child     inner   first      last       min weight   max weight
//! ```
//!
//! *First* and *last* are the lowest and the highest position with which descriptors of the child go on. An inner child
//! has one such position, which is part of its path. The position of a descriptor that ends at the node is
//! [`END_POSITION`]. The weights are those of the lightest and the heaviest descriptor of the child. While the writer
//! changes descriptors below an inner child, the range of weights may be too wide for a moment.

use std::sync::atomic::{AtomicU64, Ordering};

/// The position of a descriptor without further 1-bits: behind all others.
pub(super) const END_POSITION: u8 = 192;
/// Blocks are below this.
pub(super) const BLOCKS: u32 = 1 << 31;

const INNER: u64 = 1 << 31;

/// A child of a node; the module's header draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u64);

impl Slot {
    pub(super) fn new(block: u32, is_inner: bool, [first, last]: [u8; 2], [min, max]: [u8; 2]) -> Self {
        debug_assert!(block < BLOCKS && first <= last && last <= END_POSITION && (!is_inner || first == last));
        let bytes = u64::from(u32::from_le_bytes([first, last, min, max]));
        Slot(u64::from(block) | if is_inner { INNER } else { 0 } | bytes << 32)
    }

    /// A slot that leads to a root. Nothing reads its positions and weights.
    pub(super) fn root(node: u32) -> Self {
        Slot::new(node, true, [0; 2], [0; 2])
    }

    /// The slot in a word, with what it leads to.
    #[inline(always)]
    pub(super) fn load(word: &AtomicU64) -> Self {
        Slot(word.load(Ordering::Acquire))
    }

    /// Replaces the slot in a word that readers may use.
    pub(super) fn publish(self, word: &AtomicU64) {
        word.store(self.0, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn block(self) -> u32 {
        self.0 as u32 & (BLOCKS - 1)
    }

    pub(super) fn is_inner(self) -> bool {
        self.0 & INNER != 0
    }

    pub(super) fn first(self) -> u8 {
        (self.0 >> 32) as u8
    }

    pub(super) fn last(self) -> u8 {
        (self.0 >> 40) as u8
    }

    pub(super) fn min_weight(self) -> u8 {
        (self.0 >> 48) as u8
    }

    pub(super) fn max_weight(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub(super) fn with_weights(self, weights: [u8; 2]) -> Self {
        Slot::new(self.block(), self.is_inner(), [self.first(), self.last()], weights)
    }
}

/// The weights of the lightest and the heaviest descriptor of these children.
pub(super) fn weights(slots: impl IntoIterator<Item = Slot>) -> [u8; 2] {
    let wider = |[min, max]: [u8; 2], slot: Slot| [min.min(slot.min_weight()), max.max(slot.max_weight())];
    slots.into_iter().fold([u8::MAX, 0], wider)
}
