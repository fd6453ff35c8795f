//! Entry: what the FIB holds for one prefix, the limits of an entry, and the reasons to refuse one.

use std::borrow::Cow;

#[cfg(doc)]
use super::config::FibConfig;
#[cfg(doc)]
use crate::name_hash::MAX_NAME_COMPONENTS;

/// The longest prefix, in bytes of its TLV-VALUE: what fits into one packet.
pub const MAX_PREFIX_BYTES: usize = 8800;
/// The most next hops of one entry.
pub const MAX_NEXT_HOPS: usize = 1024;

/// The most removed entries, former next-hop sets and indices that pinned readers may still hold. With more
/// of them nothing is inserted or changed. Otherwise one reader that never ends its pin would cost ever
/// more memory. Removals go on: there are no more of them than entries. Each waiting thing takes some 20
/// bytes and its own size (a set of [`MAX_NEXT_HOPS`], 16 KiB).
pub const MAX_WAITING: usize = 1 << 16;

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The face to send to.
    pub face: u64,
    /// Lower is better.
    pub cost: u64,
}

/// The content of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FibEntry<'a> {
    /// The prefix: bytes of a Name TLV-VALUE. Decoded if it is stored in code.
    pub name_value: Cow<'a, [u8]>,
    /// Cheapest first; equal costs in the order given at insertion.
    pub nexthops: &'a [NextHop],
    /// The number of the strategy of this prefix; opaque here.
    pub strategy: u32,
    /// Not shown in datasets.
    pub hidden: bool,
}

/// What a prefix is in the FIB for.
///
/// An exact table keeps all kinds alike. A lossy table has routes only; the FIB keeps the others beside it, in full
/// (`exact_entries`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibEntryKind {
    /// It has next hops. Its strategy is that of the longest shorter prefix with a strategy of its own.
    Route,
    /// It has next hops, and a strategy of its own.
    RouteWithStrategy,
    /// It has a strategy of its own; its next hops are those of a shorter prefix. Not shown in datasets.
    Strategy,
    /// It leads to this forwarder itself: no name is ever mistaken for one under it.
    Own,
}

impl FibEntryKind {
    /// Whether a lossy table has it.
    pub(super) const fn is_route(self) -> bool {
        matches!(self, Self::Route | Self::RouteWithStrategy)
    }
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The prefix was there before.
    pub replaced: bool,
}

namewire_packet::names! {
    /// Why an insertion was refused.
    #[derive(thiserror::Error)]
    pub enum FibRefusal {
        /// The capacity is used up.
        #[error("the FIB is full")]
        Full = "fib-full",
        /// No room of this size is left in [`FibConfig::entry_bytes`], perhaps because readers may still hold
        /// removed entries.
        #[error("the FIB has no room for the bytes of this entry")]
        BytesFull = "fib-bytes-full",
        /// Readers may still hold [`MAX_WAITING`] things that were removed or replaced. For a design: readers
        /// hold the copy that must change.
        #[error("a reader has kept the FIB for too long")]
        ReadersBehind = "fib-readers-behind",
        /// The kernel grants no memory for a larger index, or too little would be left for the rest
        /// of the process ([`crate::head_room`]).
        #[error("the system has no memory for a larger FIB")]
        NoMemory = "fib-no-memory",
        /// The prefix is longer than [`MAX_PREFIX_BYTES`] or [`MAX_NAME_COMPONENTS`].
        #[error("the prefix is too long for the FIB")]
        PrefixTooLong = "fib-prefix-too-long",
        /// The prefix has more than [`MAX_NEXT_HOPS`].
        #[error("the FIB entry would have more than {MAX_NEXT_HOPS} next hops")]
        TooManyNextHops = "fib-too-many-next-hops",
    }
}

impl FibRefusal {
    /// Whether the same insertion may succeed later.
    pub const fn may_pass(self) -> bool {
        !matches!(self, Self::PrefixTooLong | Self::TooManyNextHops)
    }
}
