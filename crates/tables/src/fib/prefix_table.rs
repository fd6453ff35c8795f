//! Prefix table: the interface of a FIB design of another crate.
//!
//! A design maps prefixes to *numbers* (the papers' outgoing port; here a next-hop set). It need not know
//! of readers: a router keeps two copies, and readers look at one copy while the router changes the other
//! (`mirrored_design`). The router's own table does not use this interface, because it is changed while
//! readers look.
//!
//! Names are bytes of validated Name TLV-VALUEs, with components of any type and content, the root
//! included. Limits: [`super::MAX_PREFIX_BYTES`], [`crate::MAX_NAME_COMPONENTS`], the capacity that a
//! design is made with. Beyond them `insert` refuses ([`FibRefusal::PrefixTooLong`], [`FibRefusal::Full`])
//! and nothing changes. If the table already has the prefix, `insert` only changes its number, so it
//! succeeds even in a full table. A name to look up or to remove may exceed the limits: a look-up then
//! considers only the components within them, and a removal finds nothing.
//!
//! Memory: a design may use the standard allocator, which ends the process when the system has no memory.
//! So [`super::Fib::insert`] asks a [`GrowthGuard`](crate::head_room::GrowthGuard) first, and refuses a new
//! prefix with [`FibRefusal::NoMemory`]. The guard assumes that one change at most doubles the value of
//! `bytes()`. So `bytes()` must not underestimate. A design that detects a lack of memory itself also
//! refuses with `NoMemory`, before it changes anything.
//!
//! A design that keeps its names in a route controller (Yuan15 §4.3.6) is a [`Split`]: one controller, and
//! two tables that follow its instructions. Writers: the owner, while no reader looks.

use super::entry::FibRefusal;
use std::any::Any;

/// The most names that a caller passes in one call of [`PrefixTable::longest_prefix_match_batch`].
pub const DESIGN_BATCH_NAMES: usize = 64;

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixMatch {
    /// What the prefix leads to.
    pub number: u32,
    /// How many bytes of the name's TLV-VALUE the prefix has; 0 is the root.
    pub prefix_bytes: u16,
}

/// A FIB of one of the papers: prefixes and the number that each leads to.
pub trait PrefixTable: Send + Sync {
    /// Adds the prefix, or changes its number; returns the number that it had before.
    ///
    /// # Errors
    /// [`FibRefusal`]; then nothing changed.
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal>;

    /// Removes the prefix; returns its number, if it was there.
    fn remove(&mut self, prefix: &[u8]) -> Option<u32>;

    /// The longest prefix of every name, with the prefetching that the design is set to. A lossless design
    /// gives `None` if it has no prefix of the name. A lossy design may then give anything. It is right
    /// about every name that has a prefix, except the root where that is set to be a guess.
    ///
    /// # Panics
    /// If `out` is shorter than `names`, or there are more than [`DESIGN_BATCH_NAMES`].
    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]);

    /// How many prefixes there are.
    fn len(&self) -> usize;

    /// Whether there is no prefix at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory of everything that the design needs for look-ups and changes, as allocated: unused
    /// room and free lists included.
    fn bytes(&self) -> usize;

    /// The part of [`PrefixTable::bytes`] that look-ups need. Differs where a route controller keeps what
    /// the forwarding table does not (Yuan15 §4.3.6).
    fn forwarding_bytes(&self) -> usize {
        self.bytes()
    }

    /// Whether the answer for a name without a prefix is always `None`.
    fn is_lossless(&self) -> bool {
        true
    }
}

/// One route controller for both copies of its forwarding table: replaces two whole tables.
pub struct Split {
    /// The controller.
    pub controller: Box<dyn SplitController>,
    /// The tables that follow its instructions.
    pub tables: [Box<dyn SplitTable>; 2],
}

/// Instructions for the tables after an update of the routes: made by a controller, read by its tables
/// only.
pub trait SplitInstructions: Any + Send + Sync {
    /// Bytes of memory, roughly: memory that instructions point to is not counted.
    fn bytes(&self) -> usize;
}

/// An update of the routes that a controller has made.
pub struct SplitUpdate {
    /// The number that the prefix had before.
    pub before: Option<u32>,
    /// What its tables must do.
    pub instructions: Box<dyn SplitInstructions>,
}

/// A route controller: it knows the names.
pub trait SplitController: Send + Sync {
    /// Adds the prefix, or changes its number.
    ///
    /// # Errors
    /// [`FibRefusal`]; then nothing changed.
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<SplitUpdate, FibRefusal>;

    /// Removes the prefix; `None`: it was not there.
    fn remove(&mut self, prefix: &[u8]) -> Option<SplitUpdate>;

    /// Whether there is exactly this prefix.
    fn contains(&self, prefix: &[u8]) -> bool;

    /// How many rules an insertion of the prefix would move.
    fn moved_by_insertion(&self, prefix: &[u8]) -> usize;

    /// How many rules a removal of the prefix would move.
    fn moved_by_removal(&self, prefix: &[u8]) -> usize;

    /// Bytes of memory, as allocated.
    fn bytes(&self) -> usize;
}

/// A forwarding table of a controller. Tables that began alike and applied the same updates are alike.
pub trait SplitTable: Send + Sync {
    /// Follows the controller's instructions.
    ///
    /// # Panics
    /// If the instructions are for another kind of table.
    fn apply(&mut self, instructions: &dyn SplitInstructions);

    /// As [`PrefixTable::longest_prefix_match_batch`].
    ///
    /// # Panics
    /// As there.
    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]);

    /// Bytes of memory, as allocated.
    fn bytes(&self) -> usize;
}
