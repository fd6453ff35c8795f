//! Locators: which interface leads to this node of the tree?
//!
//! A locator is the number of a tree and the label of a node in it. A router forwards by its own state in that tree and
//! by the label alone ([`NodeState::forward`]): no table, a dozen instructions.
//!
//! Source: TagNet16 §3.3 and Fig. 6; Thorup and Zwick, "Compact routing schemes", SPAA 2001, §2.1.
//!
//! | paper | here |
//! | --- | --- |
//! | `node_id`, v | [`TreeLabel::node_id`]: the node's place in a depth-first walk that takes the heavy child last |
//! | `ifx_list`, L | [`TreeLabel::ifx_list`]: the light edges from the root to the node, as codes of their interfaces |
//! | `mask`, M | [`TreeLabel::mask`]: a 1 at the last bit of each code |
//! | k | [`TreeLabel::list_bits`]: the bits of the node's own list |
//! | heavy child, h | the child with the largest subtree, and its `node_id` |
//! | f | the largest `node_id` among the descendants |
//! | P | [`NodeState`]'s interface of the parent; the heavy child has [`HEAVY_CHILD`] |
//!
//! Seen from a node, a destination with v in [own id, h) is the node itself or a light descendant. With v in [h, f] it
//! is below the heavy child, and with any other v beyond the parent.
//!
//! ```text
//!   Label      byte 0      2      4      6       WideLabel   byte 0      4      8      12
//!              │ node_id │ list │ mask │                     │ node_id │ list │ mask │
//!
//!   interfaces 5 and 2 from the root on, codes 01 and 0:
//!              list   ......0 01           bit 0 is on the right
//!              mask   ......1 10           k = 3 at the destination, 2 at the node between, 0 at the root
//! ```
//!
//! # Interfaces
//! A node numbers its interfaces: 0 is the node itself ([`HERE`]), 1 the heavy child, 2, 3, … the light children, the
//! larger subtree first and of equals the earlier child, and last the parent. The code of interface p is p in binary
//! without its first 1: ⌊log₂ p⌋ bits. The heavy child's code is empty, so heavy edges cost nothing.
//!
//! N.B. Thorup and Zwick number the light children from 0, in plain binary: ⌊log₂ 1⌋ + 1 = 1, 1, 2, 2, 3 … bits. Our
//! codes take 1, 1, 2, 2, 2, 2, 3 … bits, for one more addition in `forward`.
//!
//! # Length of a label
//! Interface p of a node v leads to its p-th largest subtree. The p largest subtrees together have fewer nodes than v's
//! own subtree (s nodes), so the p-th has fewer than s / p, and the code's ⌊log₂ p⌋ bits are at most the logarithm of
//! the ratio of sizes. The ratios on the path from the root multiply to at most n. So a list has at most ⌊log₂ n⌋ bits,
//! and a label at most ⌈log₂ n⌉ + 2 ⌊log₂ n⌋ (3 log₂ n; the paper's codes: 3.4 log₂ n). Every tree of [`Label`]'s
//! 65,536 nodes fits its 48 bits.
//!
//! # Cost
//! `forward`: no memory but the label and the 20 bytes of the state. [`TreeLabels::of`]: O(n log n) time, 38 bytes a
//! node with [`Label`], 44 with [`WideLabel`]; no recursion. [`Assignment`]: one message up and one down a link.
//!
//! # Limits
//! 65,536 nodes with [`Label`], 2³² − 1 with [`WideLabel`]. A label is valid for one assignment; if the tree changes,
//! all labels are assigned again. A forged label cannot make `forward` panic. It can name an interface that the node
//! lacks ([`TreeLabels::node_behind`] refuses it), be delivered to the wrong node, or go back and forth until the
//! packet's hop limit.
//!
//! ```
//! use namewire_tagnet::locator::{HERE, Label, TreeLabels, spanning_tree};
//!
//! let neighbours = [vec![1, 2], vec![0, 3], vec![0], vec![1]];
//! let labels: TreeLabels<u16> = TreeLabels::of(&spanning_tree(&neighbours, 0)?)?;
//! let destination: Label = labels.label(2);
//! assert_eq!(labels.state(3).forward(destination), labels.state(3).parent_interface());
//! assert_eq!((labels.next(3, destination), labels.next(1, destination)), (Some(1), Some(0)));
//! assert_eq!((labels.next(0, destination), labels.state(2).forward(destination)), (Some(2), HERE));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assignment;
mod label;
mod node_state;
mod spanning_tree;
mod tree_labels;
mod wire;

pub use assignment::{Assignment, AssignmentError};
pub use label::{Label, LabelError, TreeLabel, WideLabel, Word};
pub use node_state::{HEAVY_CHILD, HERE, NodeState};
pub use spanning_tree::{SpanningTreeError, spanning_tree};
pub use tree_labels::{TreeError, TreeLabels};
pub use wire::{LABEL_BYTES, LOCATOR_BYTES, Locator, LocatorError, WIDE_LABEL_BYTES, WIDE_LOCATOR_BYTES};
