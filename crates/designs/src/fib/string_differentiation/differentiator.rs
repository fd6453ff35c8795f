//! Differentiator: how can a table distinguish the root rules of a FIB without their names?
//!
//! Source: Yuan15 §4.3.2 (string differentiation: given a name that is one of a set R, say which) and §4.3.6 (a route
//! controller keeps the names and sends *update instructions* to lossy tables). There are two traits, one for each
//! side:
//!
//! ```text
//!  RouteController ── node of the RIB, Leads ──▶ DifferentiatorController
//!                                                     │ Instruction
//!  ForwardingTable ◀── RootMatch for a batch ─── Differentiator
//! ```
//!
//! The set R consists of the *root rules*: rules that have no shorter rule above them. None is a prefix of another in
//! components. Since components contain their own length, none is a prefix in bytes or bits either. A look-up is right
//! for every name that is a root rule or lies under one; for other names any answer is allowed.

use super::rib::{NodeId, Rib};
use namewire_tables::fib::MAX_PREFIX_BYTES;
use namewire_tables::name_hash::NameHashes;
use std::fmt::Debug;

/// The 64-bit hash as a number below `range`; in proportion, so that all are equally likely.
#[inline(always)]
pub const fn reduced(hash: u64, range: u64) -> u64 {
    ((hash as u128 * range as u128) >> 64) as u64
}

/// Where a root rule leads, in 33 bits: to a number, or to a group of longer rules below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leads(u64);

/// The same, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What the rule itself leads to; no longer rule is below it.
    Number(u32),
    /// The group of the rule and the longer ones below it (see [`super::suffixes`]).
    Group(u32),
}

impl Leads {
    /// How many bits [`Leads::bits`] has.
    pub const BITS: u32 = 33;

    /// To this number.
    pub const fn to_number(number: u32) -> Self {
        Self(number as u64)
    }

    /// To this group.
    pub const fn to_group(group: u32) -> Self {
        Self(1 << 32 | group as u64)
    }

    /// As a number below 2³³; the smaller a rule's number, the smaller this.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What [`Leads::bits`] gave; further bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    /// Taken apart.
    #[inline]
    pub const fn target(self) -> Target {
        if self.0 >> 32 == 0 { Target::Number(self.0 as u32) } else { Target::Group(self.0 as u32) }
    }
}

/// The root rule that a name is taken to lie under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootMatch {
    /// Where it leads.
    pub leads: Leads,
    /// How many bytes of the name's TLV-VALUE the rule has. A table that takes a name for
    /// another may give any number up to the name's length.
    pub prefix_bytes: u16,
}

/// The forwarding side: what a line card has.
pub trait Differentiator: Send + Sync + 'static {
    /// One change of the table. Tables that began alike and were given the same changes are alike.
    type Instruction: Clone + Debug + Send + Sync + 'static;

    /// Whether [`Differentiator::find_root_rules`] reads the hashes.
    const READS_HASHES: bool;

    /// Does it.
    fn apply(&mut self, instruction: &Self::Instruction);

    /// The root rule of every name, into the first elements of `out`, all of them written. At most
    /// [`namewire_tables::fib::DESIGN_BATCH_NAMES`] names; `hashes` has one element for each, of prefixes
    /// of up to [`namewire_tables::MAX_NAME_COMPONENTS`], or none if they are not read.
    fn find_root_rules(&self, names: &[&[u8]], hashes: &[NameHashes], out: &mut [Option<RootMatch>]);

    /// Bytes of memory, as allocated.
    fn bytes(&self) -> usize;
}

/// The controller's side: knows the names through the RIB and decides what the tables hold.
///
/// Nodes of the RIB ([`Rib`]) are prefixes of rules, rules included. Their ids stay while they are
/// in the RIB and are used again afterwards. At every call the RIB is as it is *with* the node.
pub trait DifferentiatorController: Send + Sync + 'static {
    /// What the instructions are for.
    type Table: Differentiator;

    /// Bytes of the longest rule that it can take.
    fn rule_bytes_max(&self) -> usize {
        MAX_PREFIX_BYTES
    }

    /// A root rule. It leads nowhere (`None`) if it is one of the default table (§4.3.5): then it
    /// need not be kept, only never be taken for another.
    fn insert(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<InstructionOf<Self>>);

    /// A root rule that is known leads elsewhere.
    fn change(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<InstructionOf<Self>>);

    /// A root rule ceases to be one. The node stays in the RIB if `stays`; otherwise
    /// [`DifferentiatorController::disappeared`] follows.
    fn remove(&mut self, rib: &Rib, rule: NodeId, stays: bool, out: &mut Vec<InstructionOf<Self>>);

    /// A node that is not a root rule was added to the RIB: names with routes have this prefix.
    fn appeared(&mut self, _rib: &Rib, _node: NodeId, _out: &mut Vec<InstructionOf<Self>>) {}

    /// A node of this hash went out of the RIB; the RIB is as it is without.
    fn disappeared(&mut self, _rib: &Rib, _hash: u64, _out: &mut Vec<InstructionOf<Self>>) {}

    /// Bytes of memory, as allocated, without the RIB.
    fn bytes(&self) -> usize;
}

/// The instructions of a controller.
pub type InstructionOf<C> = <<C as DifferentiatorController>::Table as Differentiator>::Instruction;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_keep_both_kinds_apart() {
        for number in [0, 254, u32::MAX] {
            assert_eq!(Leads::to_number(number).target(), Target::Number(number));
            assert_eq!(Leads::to_group(number).target(), Target::Group(number));
            assert_eq!(Leads::from_bits(Leads::to_group(number).bits() | 1 << 33), Leads::to_group(number));
        }
        assert!(Leads::to_group(0).bits() > Leads::to_number(u32::MAX).bits());
    }
}
