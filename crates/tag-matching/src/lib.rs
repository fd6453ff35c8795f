//! Matching: which stored descriptors are subsets of a packet's?
//!
//! *Find All Subsets* ([`SubsetTable::find_all`]) serves pushes and pulls with a fan-out above 1. *Find Largest Subset*
//! ([`SubsetTable::find_largest`]) serves pulls for one answer: among the stored subsets with the most 1-bits, it finds
//! the lowest descriptor. So every table gives one answer, whatever the order of its walk. Therefore pruning must not
//! drop subsets that may be as large as the best one found. The paper's walk drops them, and takes the first largest
//! subset that it meets.
//!
//! | table | what it is for |
//! | --- | --- |
//! | [`linear::LinearTable`] | the reference: compares with every descriptor |
//! | [`trie::Trie`] | a table that changes at any time, for the routing protocol |
//! | [`burst_trie::BurstTrie`] | the router's own table: it changes while readers search it |
//! | [`vector::VectorTable`] | the paper's table, each of its steps with a switch |
//!
//! Source: Papalini, Khazaei, Carzaniga, Rogora, "High Throughput Forwarding for ICN with Descriptors and Locators",
//! ANCS 2016 (TagNet16), §3.1, §3.2. The crate has no socket, no clock and no thread.
#![forbid(unsafe_code)]

pub mod burst_trie;
pub mod linear;
mod permutation;
pub mod trie;
pub mod vector;

use namewire_packet::descriptor::Descriptor;
use std::ops::ControlFlow;

/// A stored descriptor and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The descriptor.
    pub descriptor: Descriptor,
    /// What the caller stored with it: a set of branches.
    pub value: u32,
}

impl Entry {
    /// True if *Find Largest Subset* prefers this entry to the other: more 1-bits, then the lower descriptor.
    pub fn is_preferred_to(&self, other: &Entry) -> bool {
        let (mine, others) = (self.descriptor.weight(), other.descriptor.weight());
        mine > others || mine == others && self.descriptor < other.descriptor
    }
}

/// A table of descriptors that is searched for subsets. Each descriptor is stored once.
pub trait SubsetTable {
    /// Number of descriptors.
    fn len(&self) -> usize;

    /// True without descriptors.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with the value of each stored subset of `query`, in any order, until it breaks.
    fn find_all(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>);

    /// Among the stored subsets of `query` whose value `accepts` takes, the one with the most 1-bits; of equals, the
    /// one with the lowest descriptor.
    fn find_largest_of(&self, query: &Descriptor, accepts: impl FnMut(u32) -> bool) -> Option<Entry>;

    /// The stored subset of `query` with the most 1-bits; of equals the lowest descriptor.
    fn find_largest(&self, query: &Descriptor) -> Option<Entry> {
        self.find_largest_of(query, |_| true)
    }
}
