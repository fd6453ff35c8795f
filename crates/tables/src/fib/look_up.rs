//! Look-up: what does who forwards see of the FIB, whichever table it has?
//!
//! A [`FibView`] is the FIB during one batch: the house's table (`super::view`) or a design of
//! the literature (`super::mirrored_design`). Both answer with a [`FibMatch`], which says how much
//! of the name matched and not what the table has stored: some have no names.
//!
//! | stage | house's table | designs |
//! | --- | --- | --- |
//! | [`FibView::prefetch_buckets`] | begins to fetch | nothing |
//! | [`FibView::candidate`] | looks at tags | nothing |
//! | [`FibView::candidates`] | looks at tags of all names | looks all names up in one call |
//! | [`FibView::longest_prefix_match_hinted`] | compares names | takes what was found, or looks up |
//!
//! Cost: a branch per stage, always the same way. Who may write: nobody; see [`super`].

use super::NextHop;
use super::entries::FibEntryRef;
use super::mirrored_design::{DesignPin, DesignReader, DesignView};
use super::next_hop_sets::NextHopSet;
use super::shared::{HousePin, HouseReader};
use super::view::HouseView;
use crate::name_hash::{HashKey, NameHashes};
use std::ops::Range;

/// The names that go through [`FibView::candidates`] together. They are made ready as it comes
/// to them, so that the work on some hides the fetches of others.
pub trait NameBatch {
    /// Called once for every name, in order, a group at a time and two groups before the names
    /// are asked for: to hash them, and to begin to fetch what [`NameBatch::is_wanted`] reads.
    fn make_ready(&mut self, names: Range<usize>);

    /// Whether the name is to be looked up. Called once for every name, in order.
    fn is_wanted(&mut self, name: usize) -> bool;

    /// The hashes of a name that is ready.
    fn hashes(&self, name: usize) -> &NameHashes;

    /// The octets of the TLV-VALUE of a name that is ready and wanted.
    fn name_value(&self, name: usize) -> &[u8];
}

/// What the longest prefix of a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibMatch<'a> {
    /// How many octets of the name's TLV-VALUE the prefix has; 0 is the root.
    pub prefix_octets: usize,
    /// Cheapest first; equal costs in the order given at insertion.
    pub nexthops: &'a [NextHop],
    /// An opaque number of the strategy that applies here.
    pub strategy: u32,
    /// Not to be shown in datasets.
    pub hidden: bool,
}

impl<'a> FibMatch<'a> {
    #[inline]
    pub(super) fn new(prefix_octets: usize, set: &'a NextHopSet) -> Self {
        Self { prefix_octets, nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }
}

/// The FIB while nothing that it shows can go away: its owner does not write, or a reader is pinned.
#[derive(Clone, Copy)]
pub struct FibView<'a>(pub(super) View<'a>);

#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    House(HouseView<'a>),
    Design(DesignView<'a>),
}

/// What is known of a name's longest match before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct FibHint<'a>(pub(super) Hint<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Hint<'a> {
    /// An entry whose tag is that of a prefix of the name: very probably its longest match.
    Entry { entry: FibEntryRef<'a>, components: u16, prefix_octets: u16 },
    /// What a design answered; `None`: it has no prefix of the name.
    Resolved { set: Option<&'a NextHopSet>, prefix_octets: u16 },
}

// A batch has one for each packet; the FIB's kinds share the place.
const _: () = assert!(size_of::<Option<FibHint<'_>>>() == 24);

impl<'a> FibView<'a> {
    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &'a HashKey {
        match self.0 {
            View::House(view) => view.key(),
            View::Design(view) => view.key(),
        }
    }

    /// What the longest prefix of `name_value` leads to, the root included.
    ///
    /// `hashes` must be those of `name_value` under [`FibView::key`].
    #[inline]
    pub fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        match self.0 {
            View::House(view) => view.longest_prefix_match(name_value, hashes),
            View::Design(view) => view.longest_prefix_match(name_value),
        }
    }

    /// [`FibView::longest_prefix_match`] of every name of a batch, with the fetches of one
    /// name behind those of the others.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn longest_prefix_match_batch(&self, names: &[(&[u8], &NameHashes)], out: &mut [Option<FibMatch<'a>>]) {
        match self.0 {
            View::House(view) => view.longest_prefix_match_batch(names, out),
            View::Design(view) => view.longest_prefix_match_batch(names, out),
        }
    }

    /// Stage 1: begins to fetch the bucket of every length that exists.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &NameHashes) {
        if let View::House(view) = self.0 {
            view.prefetch_buckets(hashes);
        }
    }

    /// Stage 2: the entry that the longest prefix with an equal tag leads to, none touched
    /// and none compared. `None`: nothing is known, or no prefix of the name is in the FIB.
    #[inline]
    pub fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        match self.0 {
            View::House(view) => view.candidate(hashes),
            View::Design(_) => None,
        }
    }

    /// What is known of `count` names beforehand, with the fetches of one name behind those of
    /// the others. `None`: the name is not wanted, or no prefix of it is in the FIB.
    ///
    /// # Panics
    /// If there are more names than `out` has places, or more than 64.
    pub fn candidates(&self, count: usize, names: &mut impl NameBatch, out: &mut [Option<FibHint<'a>>]) {
        match self.0 {
            View::House(view) => view.candidates(count, names, out),
            View::Design(view) => view.candidates(count, names, out),
        }
    }

    /// Begins to fetch the lines that [`FibView::longest_prefix_match_hinted`] will compare.
    #[inline]
    pub fn prefetch_entry(&self, hint: FibHint<'a>) {
        if let View::House(view) = self.0 {
            view.prefetch_entry(hint);
        }
    }

    /// Stage 3: [`FibView::longest_prefix_match`], which it equals, beginning with what
    /// [`FibView::candidate`] or [`FibView::candidates`] found in this view for this name, if anything.
    #[inline]
    pub fn longest_prefix_match_hinted(
        &self,
        name_value: &[u8],
        hashes: &NameHashes,
        hint: Option<FibHint<'a>>,
    ) -> Option<FibMatch<'a>> {
        match (self.0, hint) {
            (View::House(view), hint) => view.longest_prefix_match_hinted(name_value, hashes, hint),
            (View::Design(_), Some(FibHint(Hint::Resolved { set, prefix_octets }))) => {
                set.map(|set| FibMatch::new(usize::from(prefix_octets), set))
            }
            (View::Design(view), _) => view.longest_prefix_match(name_value),
        }
    }
}

impl std::fmt::Debug for FibView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FibView").finish_non_exhaustive()
    }
}

/// One thread's access to the FIB. Holds nothing between pins, however long it sleeps.
pub struct FibReader(pub(super) Reader);

pub(super) enum Reader {
    House(HouseReader),
    Design(DesignReader),
}

impl FibReader {
    /// Begins a batch: what is in the FIB now stays whole until the pin is dropped. To be
    /// kept short; what is removed meanwhile cannot be used again.
    #[inline]
    pub fn pin(&mut self) -> FibPin<'_> {
        FibPin(match &mut self.0 {
            Reader::House(reader) => Pinned::House(reader.pin()),
            Reader::Design(reader) => Pinned::Design(reader.pin()),
        })
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        match &self.0 {
            Reader::House(reader) => reader.key(),
            Reader::Design(reader) => reader.key(),
        }
    }
}

/// A batch in which the FIB may be looked at.
pub struct FibPin<'a>(Pinned<'a>);

enum Pinned<'a> {
    House(HousePin<'a>),
    Design(DesignPin<'a>),
}

impl FibPin<'_> {
    /// The FIB.
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        FibView(match &self.0 {
            Pinned::House(pin) => View::House(pin.view()),
            Pinned::Design(pin) => View::Design(DesignView::new(pin.get())),
        })
    }
}
