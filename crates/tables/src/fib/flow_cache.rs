//! Flow cache: what did the FIB answer for the parent of this name?
//!
//! A *flow* is a stream of Interests whose names differ in the last component only, as the segments of a file
//! do. Their longest prefix is the same, unless one of the names is itself in the FIB. So the entry found
//! for one of them is reused for the others, and the hashes of their prefixes are not needed.
//!
//! Source: flow caches of routers for IP and Ethernet (Open vSwitch's exact-match cache; Pfaff et al., NSDI 2015,
//! §4). Those must forget what a change of the tables touches; here one number tells ([`super::version`]).
//!
//! ```text
//!              seen, of a set           flows, two lines each
//!  number ─►  | tag of a parent | … × 8 |  | version | first | unit | bytes, children | parent … |
//!             0                 2       16  0        8       16     20                24       128
//! ```
//!
//! A parent gets a flow when it comes again while its tag is in `seen`. So names whose parents do not repeat
//! write no flow, and read only `seen`. Of [`UNSEEN_PER_PLACE`] parents that are not seen, one takes the place
//! of another, in turn; so names that do not repeat seldom displace flows. Where fewer than two of three names have
//! flows, one batch in [`BATCHES_PER_TRIAL`] tries.
//!
//! Exact: the parent's bytes are compared, so its number need not be a hash, and the version is that of the FIB
//! now. The caller looks for the whole name by itself.
//!
//! Cost: in experiment `streams`, 1,000 fetches, an Interest takes 300 instructions fewer. A name without a flow takes
//! 80 more in a batch that uses the cache. Nothing is noted while the FIB changes from batch to batch.
//! Limits: parents of at most [`PARENT_BYTES_MAX`] bytes, names of 3 to 16 components. A neighbour with many parents
//! displaces the flows of others, which costs them the search that they had anyway. Writers: the owner.
//!
// N.B. Direct-mapped, 1,000 parents among 4,096 flows: a recall failed 13 % of the time, since two parents in one
// place displace each other. With the hash of the parent in place of its number, names that do not repeat took 31 more
// instructions. A flow that was not fetched ahead saved as many instructions, and no time, from 1,000 fetches on. Where
// half of the names have flows, using the cache costs as much as it saves: the processor cannot predict which.
// A look for the whole name of every recalled flow cost 215 instructions; few parents have children in the FIB.

use crate::name_hash::PARENT_BYTES_MAX;
use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use crate::short_copy;
use crate::tag_compare::equal_tags;
use bytemuck::Zeroable;
use std::io;

/// Flows of a set.
const WAYS: usize = 8;

/// Of so many parents that are not in `seen`, one takes a place there.
const UNSEEN_PER_PLACE: u32 = 4;

/// The bounds of the score: a name with a flow adds 1, one without takes [`MISS`] away. A cache begins with the most.
const SCORE: std::ops::RangeInclusive<i32> = -512..=8192;

/// So the cache pays where two of three names have flows.
const MISS: i32 = 2;

/// With a score below 0, one batch in so many uses the cache.
const BATCHES_PER_TRIAL: u32 = 16;

/// Its multiples, as fractions of 2³², are spread evenly and without a period.
const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// The most flows of a cache: 128 MiB.
pub const MAX_FLOWS: u32 = 1 << 20;

/// A parent, and what the FIB has for it.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Flow {
    /// That of the FIB when it answered; 0: there is no flow.
    version: u64,
    entry: FlowEntry,
    parent: [u8; PARENT_BYTES_MAX],
}

const _: () = assert!(size_of::<Flow>() == 128);

/// An entry of the FIB as a flow keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable)]
#[repr(C)]
pub(super) struct FlowEntry {
    /// The hash that selects the bucket where the search for these names begins.
    pub(super) first: u64,
    pub(super) unit: u32,
    pub(super) prefix_bytes: u8,
    pub(super) parent_bytes: u8,
    /// Whether a name of the flow may be in the FIB itself.
    pub(super) may_have_children: bool,
}

const _: () = assert!(PARENT_BYTES_MAX <= u8::MAX as usize);

/// One more than the number of a flow.
pub(super) type FlowPlace = std::num::NonZero<u32>;

/// How a batch uses the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Not: too few of the names that came lately had flows.
    None,
    /// The FIB has changed since the batch before, so what is noted now would hardly be used.
    Recall,
    All,
}

/// See the module.
pub struct FlowCache {
    seen: PageArray<[u64; WAYS / 4]>,
    flows: PageArray<Flow>,
    /// That of the FIB at the last batch.
    last_version: Option<u64>,
    /// Parents that were not seen.
    unseen: u32,
    /// In [`SCORE`].
    score: i32,
    batches: u32,
    is_off: bool,
}

impl FlowCache {
    /// A cache for this many flows, rounded up to a power of two of at least [`WAYS`], at most [`MAX_FLOWS`]. One
    /// without flows costs nothing.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(flows: u32, pages: PageSize) -> io::Result<Self> {
        let sets = if flows == 0 { 0 } else { flows.min(MAX_FLOWS).next_power_of_two() as usize }.div_ceil(WAYS);
        Ok(Self {
            seen: PageArray::zeroed(sets, pages)?,
            flows: PageArray::zeroed(sets * WAYS, pages)?,
            last_version: None,
            unseen: 0,
            score: *SCORE.end(),
            batches: 0,
            is_off: false,
        })
    }

    /// A batch begins, and the FIB has this version. Whether the batch should use the cache.
    #[inline(always)]
    pub(super) fn is_used_by_next(&mut self, version: Option<u64>) -> Use {
        self.batches = self.batches.wrapping_add(1);
        // Not each sixteenth: batches of Interests and of Data may take turns.
        let is_trial = self.batches.wrapping_mul(GOLDEN_RATIO) < u32::MAX / BATCHES_PER_TRIAL;
        if self.score < 0 && !is_trial || self.seen.is_empty() || self.is_off {
            return Use::None;
        }
        match std::mem::replace(&mut self.last_version, version) == version {
            true => Use::All,
            false => Use::Recall,
        }
    }

    /// Begins to fetch the flow of the parent of this number; see [`FlowCache::place_of`].
    #[inline(always)]
    pub(super) fn fetch(&mut self, number: u64) -> Option<FlowPlace> {
        let place = self.place_of(number)?;
        let address = self.flows.get(place.get() as usize - 1)?;
        prefetch(address);
        prefetch(&address.parent[PARENT_BYTES_MAX - 1]);
        Some(place)
    }

    /// Where the flow of the parent of this number is or should be: `None` if it has not come before, or long ago.
    #[inline(always)]
    fn place_of(&mut self, number: u64) -> Option<FlowPlace> {
        let tag = ((number >> 48) as u16).max(1);
        let set = number as usize & self.seen.len().wrapping_sub(1);
        let [first, second] = *self.seen.get(set)?;
        match std::num::NonZero::new(equal_tags([first, second, 0], tag)) {
            Some(ways) => FlowPlace::new((set * WAYS) as u32 + ways.trailing_zeros() + 1),
            None => self.note_unseen(set, tag),
        }
    }

    #[inline(always)]
    fn note_unseen(&mut self, set: usize, tag: u16) -> Option<FlowPlace> {
        self.unseen = self.unseen.wrapping_add(1);
        self.note_miss();
        if self.unseen.is_multiple_of(UNSEEN_PER_PLACE) {
            let way = (self.unseen / UNSEEN_PER_PLACE) as usize % WAYS;
            let (word, shift) = (&mut self.seen[set][way / 4], way % 4 * 16);
            *word = *word & !(0xffff << shift) | u64::from(tag) << shift;
        }
        None
    }

    /// The longest prefix of every name under this parent that is not itself in the FIB, if that is known of this
    /// version.
    #[inline(always)]
    pub(super) fn recall(&mut self, place: FlowPlace, version: u64, parent: &[u8]) -> Option<FlowEntry> {
        let flow = self.flows.get(place.get() as usize - 1)?;
        if flow.version == version && flow.is_of(parent) {
            self.score = (self.score + 1).min(*SCORE.end());
            return Some(flow.entry);
        }
        self.note_miss();
        None
    }

    #[inline(always)]
    fn note_miss(&mut self) {
        self.score = (self.score - MISS).max(*SCORE.start());
    }

    /// Whether the flow of this parent is noted in this version.
    #[cold]
    pub(super) fn knows(&mut self, number: u64, version: u64, parent: &[u8]) -> bool {
        self.place_of(number).is_some_and(|place| self.recall(place, version, parent).is_some())
    }

    /// Notes the answer that the FIB gave for a parent in this version, if the parent has a place.
    #[cold]
    pub(super) fn note(&mut self, number: u64, version: u64, parent: &[u8], entry: FlowEntry) {
        let Some(place) = self.place_of(number) else { return };
        let Some(flow) = self.flows.get_mut(place.get() as usize - 1) else { return };
        let Some(field) = flow.parent.get_mut(..parent.len()) else { return };
        field.copy_from_slice(parent);
        (flow.version, flow.entry) = (version, entry);
    }

    /// Uses the cache from the next batch on, or does not; flows stay.
    pub fn turn(&mut self, is_on: bool) {
        self.is_off = !is_on;
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.seen.mapped_bytes() + self.flows.mapped_bytes()
    }
}

impl Flow {
    #[inline(always)]
    fn is_of(&self, parent: &[u8]) -> bool {
        usize::from(self.entry.parent_bytes) == parent.len() && short_copy::begins_with(&self.parent, parent)
    }
}
