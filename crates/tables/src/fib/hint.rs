//! Hint: the result of a look-up, and what earlier stages already know of it.

use super::entries::FibEntryRef;
use super::entry::NextHop;
use super::next_hop_sets::NextHopSet;

/// What the longest prefix of a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibMatch<'a> {
    /// How many bytes of the name's TLV-VALUE the prefix has; 0 is the root.
    pub prefix_bytes: usize,
    /// Cheapest first; equal costs in the order given at insertion.
    pub nexthops: &'a [NextHop],
    /// The number of the strategy that applies here; opaque here.
    pub strategy: u32,
    /// Not shown in datasets.
    pub hidden: bool,
}

impl<'a> FibMatch<'a> {
    #[inline]
    pub(super) fn new(prefix_bytes: usize, set: &'a NextHopSet) -> Self {
        Self { prefix_bytes, nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }
}

/// A design's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved<'a> {
    /// Next hops.
    pub(super) set: &'a NextHopSet,
    /// The strategy, which may be another than that of the set.
    pub(super) strategy: u32,
    pub(super) prefix_bytes: u16,
}

impl<'a> From<Option<Resolved<'a>>> for FibHint<'a> {
    fn from(found: Option<Resolved<'a>>) -> Self {
        Self(match found {
            Some(Resolved { set, strategy, prefix_bytes }) => Hint::Resolved { set: Some(set), strategy, prefix_bytes },
            None => Hint::Resolved { set: None, strategy: 0, prefix_bytes: 0 },
        })
    }
}

impl<'a> From<Resolved<'a>> for FibMatch<'a> {
    fn from(Resolved { set, strategy, prefix_bytes }: Resolved<'a>) -> Self {
        Self { strategy, ..Self::new(usize::from(prefix_bytes), set) }
    }
}

/// An entry with the tag of a prefix of the name: very probably its longest match.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) entry: FibEntryRef<'a>,
    pub(super) prefix_bytes: u16,
}

impl<'a> Candidate<'a> {
    /// The hint that this is the match.
    #[inline(always)]
    pub(super) fn known(self) -> FibHint<'a> {
        FibHint(Hint::Known { entry: self.entry, prefix_bytes: self.prefix_bytes })
    }
}

impl<'a> From<Candidate<'a>> for FibHint<'a> {
    #[inline(always)]
    fn from(Candidate { entry, prefix_bytes }: Candidate<'a>) -> Self {
        Self(Hint::Entry { entry, prefix_bytes })
    }
}

/// What is known of a name's longest match before the look-up.
#[derive(Clone, Copy, Debug)]
pub struct FibHint<'a>(pub(super) Hint<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Hint<'a> {
    /// A [`Candidate`].
    Entry { entry: FibEntryRef<'a>, prefix_bytes: u16 },
    /// The match itself: the name has this prefix, and no longer one is in the FIB.
    Known { entry: FibEntryRef<'a>, prefix_bytes: u16 },
    /// A design's answer, as in [`Resolved`]; `None`: it has no prefix of the name.
    Resolved { set: Option<&'a NextHopSet>, strategy: u32, prefix_bytes: u16 },
}

// A batch has one hint for each packet, so the kinds of FIB share its bytes.
const _: () = assert!(size_of::<Option<FibHint<'_>>>() == 16);
