//! Look-up: the FIB as the forwarding path sees it, with either kind of table.
//!
//! A [`FibView`] is the FIB during one batch: the router's own table (`super::bucket_view`) or a design of
//! the literature (`super::mirrored_design`). Both answer with a [`FibMatch`]. A match gives the number of
//! bytes that matched. It does not give the stored prefix, because some tables store no names.
//!
//! | stage | own table | designs |
//! | --- | --- | --- |
//! | [`FibView::prefetch_buckets`] | begins to fetch | nothing |
//! | [`FibView::candidate`] | looks at tags | nothing |
//! | [`FibView::batch_look_up`] | looks at tags of all names, step by step | looks all names up in one call |
//! | [`FibView::longest_prefix_match_hinted`] | compares names | takes the answer found before, or looks up |
//!
//! Cost: each stage takes one branch, always the same way. Writers: none; see [`super`].

use super::bucket_view::BucketView;
use super::bucket_writer::{BucketPin, BucketReader};
use super::flow_cache::FlowCache;
use super::hint::{FibHint, FibMatch, Hint, Resolved};
use super::mirrored_design::{DesignPin, DesignReader, DesignView};
use super::stepped_search::{self, SteppedSearch};
use crate::name_hash::{HashKey, NameHashes};

/// The FIB while nothing that it shows can go away: its owner does not write, or a reader is pinned.
#[derive(Clone, Copy)]
pub struct FibView<'a>(pub(super) View<'a>);

#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Bucket(BucketView<'a>),
    Design(DesignView<'a>),
}

/// How a FIB looks a batch of names up.
pub enum BatchLookUp<'a> {
    /// The router's own table: the caller steps through a search.
    Stepped(SteppedTable<'a>),
    /// A design of the literature: one call for all names.
    AtOnce(WholeBatchTable<'a>),
}

/// A table that the caller searches step by step.
pub struct SteppedTable<'a>(BucketView<'a>);

impl<'a> SteppedTable<'a> {
    /// A new search.
    #[inline(always)]
    pub fn search(&self) -> SteppedSearch<'a> {
        SteppedSearch::new(self.0)
    }

    /// A new search that uses these flows.
    #[inline(always)]
    pub fn search_flows(&self, flows: &mut FlowCache) -> SteppedSearch<'a> {
        let mut search = self.search();
        search.use_flows(flows);
        search
    }

    /// One bit for each prefix length whose hash most searches want, up to 63.
    #[inline(always)]
    pub fn wanted_lengths(&self) -> u64 {
        let together = self.0.shared.together_components;
        match together < 64 {
            true => self.0.shared.lengths.bits(together, 63) | 1 << together,
            // One length after the other.
            false => self.0.shared.lengths.bits(0, 63),
        }
    }
}

/// A table that looks all names of a batch up in one call.
pub struct WholeBatchTable<'a>(DesignView<'a>);

impl<'a> WholeBatchTable<'a> {
    /// Looks the names up; a name without a prefix gets a hint that says so.
    ///
    /// # Panics
    /// If `out` is shorter than `names`, or there are more than 64.
    pub fn look_up(&self, names: &[&[u8]], out: &mut [Option<FibHint<'a>>]) {
        self.0.hints(names, out);
    }
}

impl<'a> FibView<'a> {
    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &'a HashKey {
        match self.0 {
            View::Bucket(view) => view.key(),
            View::Design(view) => view.key(),
        }
    }

    /// What the longest prefix of `name_value` leads to, the root included.
    ///
    /// `hashes` must be made of `name_value` under [`FibView::key`].
    #[inline]
    pub fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        match self.0 {
            View::Bucket(view) => view.longest_prefix_match(name_value, hashes),
            View::Design(view) => view.longest_prefix_match(name_value),
        }
    }

    /// [`FibView::longest_prefix_match`] of every name of a batch; the fetches of one name hide behind the
    /// work on the others.
    ///
    /// # Panics
    /// If `hashes` or `out` are shorter than `names`.
    pub fn longest_prefix_match_batch(&self, names: &[&[u8]], hashes: &[NameHashes], out: &mut [Option<FibMatch<'a>>]) {
        match self.0 {
            View::Bucket(view) => stepped_search::longest_prefix_match_batch(view, names, hashes, out),
            View::Design(view) => view.longest_prefix_match_batch(names, out),
        }
    }

    /// Stage 1: begins to fetch the bucket of every prefix length in the FIB.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &NameHashes) {
        if let View::Bucket(view) = self.0 {
            view.prefetch_buckets(hashes);
        }
    }

    /// Stage 2: the entry of the longest prefix with an equal tag. Touches and compares no entry. `None`:
    /// nothing is known, or no prefix of the name is in the FIB.
    #[inline]
    pub fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        match self.0 {
            View::Bucket(view) => view.candidate(hashes),
            View::Design(_) => None,
        }
    }

    /// How this FIB looks a batch of names up: it depends on the kind of its table.
    #[inline(always)]
    pub fn batch_look_up(&self) -> BatchLookUp<'a> {
        match self.0 {
            View::Bucket(view) => BatchLookUp::Stepped(SteppedTable(view)),
            View::Design(view) => BatchLookUp::AtOnce(WholeBatchTable(view)),
        }
    }

    /// Begins to fetch the lines that [`FibView::longest_prefix_match_hinted`] will compare.
    #[inline]
    pub fn prefetch_entry(&self, hint: FibHint<'a>) {
        if let View::Bucket(view) = self.0 {
            view.prefetch_entry(hint);
        }
    }

    /// Stage 3: the same result as [`FibView::longest_prefix_match`]. Begins with what
    /// [`FibView::candidate`] or [`FibView::batch_look_up`] found in this view for this name, if anything.
    #[inline(always)]
    pub fn longest_prefix_match_hinted(
        &self,
        name_value: &[u8],
        hashes: &NameHashes,
        hint: Option<FibHint<'a>>,
    ) -> Option<FibMatch<'a>> {
        match self.0 {
            View::Bucket(view) => view.longest_prefix_match_hinted(name_value, hashes, hint),
            View::Design(view) => longest_prefix_match_of_design(view, name_value, hint),
        }
    }
}

#[cold]
fn longest_prefix_match_of_design<'a>(
    view: DesignView<'a>,
    name_value: &[u8],
    hint: Option<FibHint<'a>>,
) -> Option<FibMatch<'a>> {
    match hint {
        Some(FibHint(Hint::Resolved { set, strategy, prefix_bytes })) => {
            set.map(|set| Resolved { set, strategy, prefix_bytes }.into())
        }
        _ => view.longest_prefix_match(name_value),
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
    Bucket(BucketReader),
    Design(DesignReader),
}

impl FibReader {
    /// Begins a batch: what is in the FIB now stays valid until the pin is dropped. Keep it short: what is
    /// removed meanwhile cannot be reused.
    #[inline]
    pub fn pin(&mut self) -> FibPin<'_> {
        FibPin(match &mut self.0 {
            Reader::Bucket(reader) => Pinned::Bucket(reader.pin()),
            Reader::Design(reader) => Pinned::Design(reader.pin()),
        })
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        match &self.0 {
            Reader::Bucket(reader) => reader.key(),
            Reader::Design(reader) => reader.key(),
        }
    }
}

/// A batch during which the FIB can be searched.
pub struct FibPin<'a>(Pinned<'a>);

enum Pinned<'a> {
    Bucket(BucketPin<'a>),
    Design(DesignPin<'a>),
}

impl FibPin<'_> {
    /// The FIB.
    #[inline]
    pub fn view(&self) -> FibView<'_> {
        FibView(match &self.0 {
            Pinned::Bucket(pin) => View::Bucket(pin.view()),
            Pinned::Design(pin) => View::Design(DesignView::new(pin.get())),
        })
    }
}
