//! Search: walks through the tries, several at a time, without recursion and without allocation.
//!
//! A walk goes through the partitions whose masks are subsets of the query, one after the other. It scans the slots of
//! a node. An inner child that may hold subsets becomes the next node. A leaf that may hold some goes to a queue that
//! all walks share. While it waits there, the processor fetches its lines. After each inner child the next walk has its
//! turn, so that nodes are fetched too while other walks go on.
//!
//! ```text
//!   walk 0   frames │ root │ node │ node │ ─┐
//!   walk 1   frames │ root │ node │        ─┼─► queue of leaves │ 0 │ 1 │ 1 │ … │ ─► compare
//!   walk 7   frames │ root │               ─┘
//! ```
//!
//! Partitions with larger masks come first, and children in the order of their positions. So *Find Largest Subset*
//! begins where subsets have the most 1-bits.
//!
//! A search counts its steps: a partition that it enters, [`SLOTS_PER_STEP`] slots of a node (a line), or a leaf that
//! it compares. It may stop after its allowed number of steps, or after at most those of one node more, and go on later
//! (`paused.rs`).

use super::blocks::Words;
use super::leaf::{Leaf, Row};
use super::partitions::{PARTITIONS_MAX, Partitions, Ranks, ranks};
use super::slot::{END_POSITION, Slot};
use crate::Entry;
use crate::permutation::{Key, Permutation};
use arrayvec::ArrayVec;
use namewire_packet::descriptor::DESCRIPTOR_BITS;
use namewire_packet::descriptor::Descriptor;
use namewire_tables::prefetch::prefetch_lines;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Most searches at a time.
pub const WALKS: usize = 16;
/// Leaves that wait for their lines.
const QUEUE_LEAVES: usize = 32;
/// Lines that are fetched before a leaf is compared: all of most leaves.
///
/// N.B. Searches wait for memory. With 3 lines, the heads and lengths of most leaves, *Find All Subsets* made 68,000 to
/// 76,000 searches a second, and with all 5 it made 78,000 to 91,000 (5 * 10⁶ descriptors of three tags).
const LEAF_LINES: usize = 5;
/// Lines that are fetched before a node is scanned.
const NODE_LINES: usize = 2;
/// Nodes of a path: one for each position, and the root.
const FRAMES: usize = DESCRIPTOR_BITS + 1;
/// Slots of a line.
const SLOTS_PER_STEP: usize = 8;

/// How many steps searches may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimit {
    /// Each.
    pub each: usize,
    /// All that run at a time.
    pub together: usize,
}

/// What the writer and readers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) words: Words,
    pub(super) order: Permutation,
    pub(super) partitions: Partitions,
    /// Of each partition a slot that leads to its root, which is a node.
    pub(super) roots: Box<[AtomicU64]>,
    pub(super) len: AtomicUsize,
}

/// A permuted query.
pub(super) struct Query {
    /// Position 0 is the most significant bit of the first word. The last words are zero.
    words: [u64; 5],
    ranks: Ranks,
    /// The ranks without the mask of the partition in which it is searched.
    ranks_without_mask: Ranks,
}

impl Query {
    pub(super) fn new(key: &Key) -> Self {
        let ([first, second, third], ranks) = (key.words(), ranks(key));
        Query { words: [first, second, third, 0, 0], ranks, ranks_without_mask: ranks }
    }

    #[inline(always)]
    pub(super) fn has(&self, position: u8) -> bool {
        self.words[usize::from(position / 64)] << (position % 64) >> 63 == 1
    }

    /// The 32 positions that begin at `from`, the first in the most significant bit.
    #[inline(always)]
    pub(super) fn window(&self, from: u8) -> u32 {
        let (word, shift) = (usize::from(from / 64), from % 64);
        ((self.words[word] << shift | self.words[word + 1] >> 1 >> (63 - shift)) >> 32) as u32
    }

    /// The most 1-bits besides the mask that a subset of the query can have in this child, if it can have subsets.
    ///
    /// The child needs one of its positions, and enough of them for its lightest descriptor.
    #[inline(always)]
    fn potential(&self, slot: Slot, depth: u8) -> Option<u8> {
        let before = |position: u8| self.ranks_without_mask[usize::from(position)];
        let potential = depth + (before(END_POSITION) - before(slot.first()));
        let has_position = before(slot.last() + 1) != before(slot.first());
        (has_position & (potential >= slot.min_weight())).then_some(potential)
    }
}

/// What walks look for. A walk is known by its place in the batch.
pub(super) trait Goal {
    /// What a walk remembers of the way to a node.
    type Path: Copy + Default;

    /// The path of the root of a partition with this mask.
    fn root(mask: Key) -> Self::Path;

    /// The path with one more position.
    fn below(path: Self::Path, position: u8) -> Self::Path;

    /// False if the walk wants no subset with at most so many 1-bits.
    fn wants(&self, walk: usize, weight_max: u8) -> bool;

    /// A subset: a row of a leaf.
    fn found(&mut self, walk: usize, leaf: Leaf<'_>, row: usize, path: Self::Path) -> ControlFlow<()>;
}

/// *Find All Subsets*: calls it with the walk and the value.
pub(super) struct All<F>(pub(super) F);

impl<F: FnMut(usize, u32) -> ControlFlow<()>> Goal for All<F> {
    type Path = ();

    fn root(_: Key) {}

    fn below(_: (), _: u8) {}

    #[inline(always)]
    fn wants(&self, _: usize, _: u8) -> bool {
        true
    }

    #[inline(always)]
    fn found(&mut self, walk: usize, leaf: Leaf<'_>, row: usize, _: ()) -> ControlFlow<()> {
        (self.0)(walk, leaf.value(row))
    }
}

/// All subsets but the query itself: those with fewer 1-bits.
pub(super) struct Proper<F> {
    pub(super) weight: u8,
    pub(super) visit: F,
}

impl<F: FnMut(u32) -> ControlFlow<()>> Goal for Proper<F> {
    type Path = Key;

    fn root(mask: Key) -> Key {
        mask
    }

    fn below(path: Key, position: u8) -> Key {
        path.with(position)
    }

    fn wants(&self, _: usize, _: u8) -> bool {
        true
    }

    fn found(&mut self, _: usize, leaf: Leaf<'_>, row: usize, path: Key) -> ControlFlow<()> {
        let Row { key, value } = leaf.row(row, path);
        if key.weight() < self.weight { (self.visit)(value) } else { ControlFlow::Continue(()) }
    }
}

/// *Find Largest Subset*, ties to the lowest descriptor.
pub(super) struct Largest<'a, F, const BATCH: usize> {
    order: &'a Permutation,
    /// Whether a value may be the answer of a walk.
    accepts: F,
    /// The lowest weight that is still wanted.
    pub(super) wanted: [u8; BATCH],
    pub(super) best: [Option<Entry>; BATCH],
}

impl<'a, F, const BATCH: usize> Largest<'a, F, BATCH> {
    pub(super) fn new(order: &'a Permutation, accepts: F) -> Self {
        Largest { order, accepts, wanted: [0; BATCH], best: [None; BATCH] }
    }
}

impl<F: FnMut(usize, u32) -> bool, const BATCH: usize> Goal for Largest<'_, F, BATCH> {
    type Path = Key;

    fn root(mask: Key) -> Key {
        mask
    }

    fn below(path: Key, position: u8) -> Key {
        path.with(position)
    }

    #[inline(always)]
    fn wants(&self, walk: usize, weight_max: u8) -> bool {
        weight_max >= self.wanted[walk]
    }

    fn found(&mut self, walk: usize, leaf: Leaf<'_>, row: usize, path: Key) -> ControlFlow<()> {
        let Row { key, value } = leaf.row(row, path);
        let weight = key.weight();
        if weight < self.wanted[walk] || !(self.accepts)(walk, value) {
            return ControlFlow::Continue(());
        }
        let entry = Entry { descriptor: self.order.descriptor(key), value };
        if self.best[walk].is_none_or(|best| entry.is_preferred_to(&best)) {
            self.best[walk] = Some(entry);
            self.wanted[walk] = weight;
        }
        ControlFlow::Continue(())
    }
}

/// A node that a walk has not finished.
#[derive(Clone, Copy)]
struct Frame<P> {
    node: u32,
    /// The next slot.
    next: u16,
    /// The number of 1-bits of the path, without the mask.
    depth: u8,
    path: P,
}

struct Walk<P> {
    query: Query,
    /// The partitions that are still to be searched, the last one first: masks with more bits before those above them.
    partitions: ArrayVec<u16, PARTITIONS_MAX>,
    /// The number of 1-bits of the mask of the partition that is searched.
    mask_weight: u8,
    /// The node that is scanned, above its ancestors.
    frames: ArrayVec<Frame<P>, FRAMES>,
    /// Its goal needs no more subsets.
    is_over: bool,
}

impl<P> Walk<P> {
    /// True if it has nothing more to visit.
    fn has_ended(&self) -> bool {
        self.frames.is_empty() && self.partitions.is_empty()
    }

    fn end(&mut self) {
        self.is_over = true;
        self.frames.clear();
        self.partitions.clear();
    }
}

/// A leaf that waits for its lines.
#[derive(Clone, Copy)]
struct Waiting<P> {
    slot: Slot,
    walk: u8,
    /// The most 1-bits that a subset can have in it.
    weight_max: u8,
    path: P,
}

/// Up to `BATCH` walks through the tries of one table, which must stay pinned until they end.
pub(super) struct Search<P, const BATCH: usize> {
    walks: ArrayVec<Walk<P>, BATCH>,
    queue: [Waiting<P>; QUEUE_LEAVES],
    /// Leaves that entered and left the queue.
    entered: usize,
    left: usize,
}

impl<P: Copy + Default, const BATCH: usize> Search<P, BATCH> {
    /// Walks for these queries, at most `BATCH`.
    pub(super) fn new(shared: &Shared, queries: &[Descriptor]) -> Self {
        let walk = |query| {
            let key = shared.order.key(query);
            let mut partitions = ArrayVec::new();
            shared.partitions.for_each_of_query(&key, |partition| partitions.push(partition));
            Walk { query: Query::new(&key), partitions, mask_weight: 0, frames: ArrayVec::new(), is_over: false }
        };
        let empty = Waiting { slot: Slot(0), walk: 0, weight_max: 0, path: P::default() };
        Search { walks: queries.iter().map(walk).collect(), queue: [empty; QUEUE_LEAVES], entered: 0, left: 0 }
    }

    /// Walks until all walks end, or the steps are used up; takes from them. True if all have ended.
    pub(super) fn run<G: Goal<Path = P>>(&mut self, shared: &Shared, goal: &mut G, steps: &mut usize) -> bool {
        let mut is_anyone_walking = true;
        while is_anyone_walking {
            if *steps == 0 {
                return false;
            }
            is_anyone_walking = false;
            for walk in 0..self.walks.len() {
                is_anyone_walking |= self.turn(shared, walk, goal, steps);
            }
        }
        while self.left < self.entered {
            if *steps == 0 {
                return false;
            }
            self.compare(shared, goal, steps);
        }
        true
    }

    /// Walks until all walks end. A walk that has made more steps than its limit ends there; all do when they have made
    /// more than theirs together. Returns the steps of all, and a bitmap of the walks that ended so.
    pub(super) fn run_each<G: Goal<Path = P>>(
        &mut self,
        shared: &Shared,
        goal: &mut G,
        limit: StepLimit,
    ) -> (usize, u32) {
        let (mut used, mut all_used, mut stopped, mut is_anyone_walking) = ([0; BATCH], 0, 0, true);
        while is_anyone_walking {
            is_anyone_walking = false;
            for (index, used) in used.iter_mut().enumerate().take(self.walks.len()) {
                let mut steps = usize::MAX;
                is_anyone_walking |= self.turn(shared, index, goal, &mut steps);
                *used += usize::MAX - steps;
                all_used += usize::MAX - steps;
                let walk = &mut self.walks[index];
                if (*used > limit.each || all_used > limit.together) && !walk.has_ended() {
                    stopped |= 1 << index;
                    walk.end();
                }
            }
        }
        while self.left < self.entered {
            self.compare(shared, goal, &mut { usize::MAX });
            all_used += 1;
        }
        (all_used, stopped)
    }

    /// Scans a node to the next inner child or to its end, or begins with a partition. False if the walk has ended.
    fn turn<G: Goal<Path = P>>(&mut self, shared: &Shared, index: usize, goal: &mut G, steps: &mut usize) -> bool {
        *steps = steps.saturating_sub(1);
        let Some(mut frame) = self.walks[index].frames.pop() else { return self.enter_partition::<G>(shared, index) };
        let slots = shared.words.slots(frame.node);
        let from = usize::from(frame.next);
        for (place, slot) in slots.iter().enumerate().skip(from) {
            let slot = Slot::load(slot);
            let walk = &self.walks[index];
            let Some(potential) = walk.query.potential(slot, frame.depth) else { continue };
            let weight_max = walk.mask_weight + slot.max_weight().min(potential);
            if !goal.wants(index, weight_max) {
                continue;
            }
            let child = shared.words.block(slot.block());
            if slot.is_inner() {
                prefetch_lines(&child[0], NODE_LINES);
                frame.next = place as u16 + 1;
                let path = G::below(frame.path, slot.first());
                let frames = &mut self.walks[index].frames;
                frames.push(frame);
                frames.push(Frame { node: slot.block(), next: 0, depth: frame.depth + 1, path });
                *steps = steps.saturating_sub((place - from) / SLOTS_PER_STEP);
                return true;
            }
            prefetch_lines(&child[0], LEAF_LINES);
            if self.entered - self.left == QUEUE_LEAVES {
                self.compare(shared, goal, steps);
            }
            self.queue[self.entered % QUEUE_LEAVES] = Waiting { slot, walk: index as u8, weight_max, path: frame.path };
            self.entered += 1;
            if self.walks[index].is_over {
                return false;
            }
        }
        *steps = steps.saturating_sub((slots.len() - from) / SLOTS_PER_STEP);
        true
    }

    /// Begins with the next partition. False if there is none.
    fn enter_partition<G: Goal<Path = P>>(&mut self, shared: &Shared, index: usize) -> bool {
        let Walk { query, partitions, mask_weight, frames, .. } = &mut self.walks[index];
        let Some(partition) = partitions.pop() else { return false };
        let node = shared.root(partition).block();
        prefetch_lines(&shared.words.block(node)[0], NODE_LINES);
        let partition = shared.partitions.get(partition);
        query.ranks_without_mask = partition.ranks_without_mask(&query.ranks);
        *mask_weight = partition.mask.weight();
        frames.push(Frame { node, next: 0, depth: 0, path: G::root(partition.mask) });
        true
    }

    /// Compares the leaf that has waited longest.
    fn compare<G: Goal<Path = P>>(&mut self, shared: &Shared, goal: &mut G, steps: &mut usize) {
        *steps = steps.saturating_sub(1);
        let Waiting { slot, walk, weight_max, path } = self.queue[self.left % QUEUE_LEAVES];
        self.left += 1;
        let index = usize::from(walk);
        let walk = &mut self.walks[index];
        // What was found meanwhile may be better.
        if walk.is_over || !goal.wants(index, weight_max) {
            return;
        }
        let leaf = Leaf::new(shared.words.block(slot.block()));
        let mut candidates = leaf.candidates(&walk.query);
        while candidates != 0 {
            let row = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if leaf.tail_matches(row, &walk.query) && goal.found(index, leaf, row, path).is_break() {
                walk.end();
                return;
            }
        }
    }
}
