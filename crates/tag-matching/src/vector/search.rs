//! Search: the walks of Algorithms 1 to 3, without recursion and without allocation.
//!
//! A walk scans a list of siblings and puts on its stack the cells that may lead to a subset. Then it takes the last
//! cells from the stack. Each cell is an inner node, whose children are the next list; or a terminator, whose chain is
//! compared.
//!
//! One comparison for each sibling serves the bit test and the first two pruning strategies, in every combination: see
//! [`Query`]. Its result is used without a branch: about 10 % of cells pass, at random, so a branch would often be
//! mispredicted.
//!
//! Most lists and chains are not in a cache. A walk that takes one cell at a time waits for each list and chain. So our
//! walk takes up to [`BATCH`] cells, and reads the beginning of the list or chain of each cell before it needs the
//! first one.

use super::VectorTable;
use super::cell::Cell;
use crate::Entry;
use crate::permutation::{END, Key, Permutation};
use arrayvec::ArrayVec;
use namewire_packet::descriptor::{DESCRIPTOR_BITS, Descriptor};
use std::ops::ControlFlow;

/// Bytes of a value behind its chain.
pub(super) const VALUE_BYTES: usize = size_of::<u32>();
/// Cells that a walk takes from its stack at a time.
///
/// N.B. With 10⁷ descriptors of 3 tags, `FASTEST` finds all subsets 30,000 times a second with a batch of 1, and 39,000
/// times with 16; 32 is no better. A query visits 5,650 cells in 370 lists, and waits for memory most of the time: with
/// all of them in a cache, a cell takes 0.8 ns.
const BATCH: usize = 16;
/// Cells of one list that can pass: one for each position, and `$`.
const LIST_CELLS: usize = DESCRIPTOR_BITS + 1;
/// Cells on the stack of a walk that takes one cell at a time, above those that were there when it began to do so.
///
/// Say that the walk is below positions p₁ < p₂ < … of a path. Cells are taken last first. So those of the path's
/// list i that are still on the stack begin at positions below pᵢ, and they begin above pᵢ₋₁, where their list
/// begins. All these cells begin at different positions. Only a descriptor's own end, `$`, begins at none; it is last
/// of its list and leaves the stack first.
const DEPTH_FIRST_CELLS: usize = LIST_CELLS;
/// With more cells on its stack, a walk takes one at a time.
const BATCH_STACK_CELLS: usize = 256;
/// Cells of a walk's stack: the lists of one batch may be added to those, and then those of a depth-first walk. With
/// 40 bytes for a cell this takes 140 KB of the thread's stack, and a search writes to the beginning only.
const STACK_CELLS: usize = BATCH_STACK_CELLS + BATCH * LIST_CELLS + DEPTH_FIRST_CELLS;

/// What a search did. It costs nothing where it is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// Lists of siblings that were scanned.
    pub lists: u64,
    /// Cells of these lists.
    pub cells: u64,
    /// Removed chains that were compared.
    pub chains: u64,
}

/// Watches a walk.
pub(super) trait Observer {
    fn list(&mut self, cells: usize);
    fn chain(&mut self);
}

impl Observer for () {
    fn list(&mut self, _: usize) {}
    fn chain(&mut self) {}
}

impl Observer for SearchCounts {
    fn list(&mut self, cells: usize) {
        self.lists += 1;
        self.cells += cells as u64;
    }

    fn chain(&mut self) {
        self.chains += 1;
    }
}

/// A query, prepared for the walk: what each position may lead to.
///
/// A cell below `depth` 1-bits stays if its minimum depth is at most `limit[position]`, plus `depth` under the second
/// strategy:
///
/// | position | limit | with the first strategy | with the second strategy |
/// | --- | --- | --- | --- |
/// | a 1-bit of the query | no limit | the query's weight | the 1-bits from this position on |
/// | a 0-bit | 0 | 0 | 0 |
///
/// A 0-bit never passes: the node's minimum depth counts the node itself, so it is above `depth`. The second strategy
/// implies the first, because `depth` 1-bits of the query are to the left of the position.
pub(super) struct Query {
    limit: [u8; 256],
    adds_depth: bool,
    /// The 1-bits from this position on; for the third strategy.
    remaining: [u8; 256],
}

const NO_LIMIT: u8 = 255;

impl Query {
    pub(super) fn new(table: &VectorTable, descriptor: &Descriptor) -> Self {
        let options = &table.options;
        let key: Key = table.permutation.key(descriptor);
        let mut query = Query { limit: [0; 256], adds_depth: options.prune_remaining, remaining: [NO_LIMIT; 256] };
        let weight = if options.prune_min_depth { key.weight() } else { NO_LIMIT };
        let mut rank = 0;
        key.for_each_from_the_right(|position| {
            rank += 1;
            query.limit[usize::from(position)] = if options.prune_remaining { rank } else { weight };
            if options.prune_best {
                query.remaining[usize::from(position)] = rank;
            }
        });
        query.limit[usize::from(END)] = if options.prune_remaining { rank } else { weight };
        query
    }

    fn has(&self, position: u8) -> bool {
        self.limit[usize::from(position)] != 0
    }

    /// Makes ready for the children of the node at this position: to the right of `$` are all positions of its list.
    fn enter(&mut self, position: u8) {
        if self.adds_depth {
            self.limit[usize::from(END)] = self.limit[usize::from(position)] - 1;
        }
    }
}

/// What a walk looks for.
pub(super) trait Goal {
    /// What the walk remembers of the way to a list.
    type Path: Copy + Default;

    /// The path with one more position.
    fn below(path: Self::Path, position: u8) -> Self::Path;

    /// False if nothing below the cell is wanted any more.
    fn wants(&self, query: &Query, pending: &Pending<Self::Path>) -> bool;

    /// A subset: the terminator, the positions that are not in it, the value.
    fn found(&mut self, end: &Pending<Self::Path>, chain: &[u8], value: u32) -> ControlFlow<()>;
}

/// A cell on a walk's stack.
#[derive(Clone, Copy)]
pub(super) struct Pending<P> {
    cell: Cell,
    /// The number of 1-bits above the cell.
    depth: u8,
    path: P,
}

/// *Find All Subsets*.
pub(super) struct All<F>(pub(super) F);

impl<F: FnMut(u32) -> ControlFlow<()>> Goal for All<F> {
    type Path = ();

    fn below(_: (), _: u8) {}

    fn wants(&self, _: &Query, _: &Pending<()>) -> bool {
        true
    }

    fn found(&mut self, _: &Pending<()>, _: &[u8], value: u32) -> ControlFlow<()> {
        (self.0)(value)
    }
}

/// *Find Largest Subset*. With `TIES`, subsets as large as the best are looked at too, and the lowest descriptor wins.
pub(super) struct Largest<'a, const TIES: bool, F> {
    permutation: &'a Permutation,
    /// Whether a value may be the answer.
    accepts: F,
    /// The lowest weight that is still wanted.
    wanted: u8,
    pub(super) best: Option<Entry>,
}

impl<'a, const TIES: bool, F> Largest<'a, TIES, F> {
    pub(super) fn new(table: &'a VectorTable, accepts: F) -> Self {
        Largest { permutation: &table.permutation, accepts, wanted: 0, best: None }
    }
}

impl<const TIES: bool, F: FnMut(u32) -> bool> Goal for Largest<'_, TIES, F> {
    type Path = Key;

    fn below(path: Key, position: u8) -> Key {
        path.with(position)
    }

    fn wants(&self, query: &Query, pending: &Pending<Key>) -> bool {
        // Of all bits that the descriptors below the cell may match, at most these.
        let remaining = query.remaining[usize::from(pending.cell.position())];
        let potential = u32::from(pending.depth) + u32::from(remaining);
        pending.cell.max_depth() >= self.wanted && potential >= u32::from(self.wanted)
    }

    fn found(&mut self, end: &Pending<Key>, chain: &[u8], value: u32) -> ControlFlow<()> {
        if !(self.accepts)(value) {
            return ControlFlow::Continue(());
        }
        let weight = end.cell.max_depth();
        let positions = end.cell.heads().into_iter().filter(|head| *head != END).chain(chain.iter().copied());
        let descriptor = self.permutation.descriptor(positions.fold(end.path, Key::with));
        let entry = Entry { descriptor, value };
        if self.best.is_none_or(|best| entry.is_preferred_to(&best)) {
            self.best = Some(entry);
        }
        self.wanted = if TIES { weight } else { weight + 1 };
        ControlFlow::Continue(())
    }
}

impl VectorTable {
    /// Walks through the trie for a goal, until it breaks.
    pub(super) fn walk<G: Goal, O: Observer>(&self, mut query: Query, goal: &mut G, observer: &mut O) {
        let mut stack: ArrayVec<Pending<G::Path>, STACK_CELLS> = ArrayVec::new();
        let mut passing = [Cell::UNUSED; PASSING_CELLS];
        let mut touched = 0;
        let mut scan = |query: &Query, stack: &mut ArrayVec<_, STACK_CELLS>, first, depth, path, observer: &mut O| {
            let count = self.scan(first, depth, query, &mut passing, observer);
            stack.extend(passing[..count].iter().map(|cell| Pending { cell: *cell, depth, path }));
        };
        scan(&query, &mut stack, 0, 0, G::Path::default(), observer);
        while !stack.is_empty() {
            let batch = if self.options.overlap_reads && stack.len() <= BATCH_STACK_CELLS { BATCH } else { 1 };
            let mut taken: ArrayVec<Pending<G::Path>, BATCH> = ArrayVec::new();
            while taken.len() < batch {
                let Some(pending) = stack.pop() else { break };
                if goal.wants(&query, &pending) && self.heads_match(pending.cell, &query) {
                    touched ^= self.touch(pending.cell);
                    taken.push(pending);
                }
            }
            for pending in &taken {
                // What the batch has found meanwhile may be better.
                if !goal.wants(&query, pending) {
                    continue;
                }
                let Pending { cell, depth, path } = *pending;
                if cell.is_terminator() {
                    if self.compare(pending, &query, goal, observer).is_break() {
                        return;
                    }
                } else {
                    query.enter(cell.position());
                    let path = G::below(path, cell.position());
                    scan(&query, &mut stack, cell.offset(), depth + 1, path, observer);
                }
            }
        }
        std::hint::black_box(touched);
    }

    /// Compares what is left of a removed chain.
    fn compare<G: Goal, O: Observer>(
        &self,
        end: &Pending<G::Path>,
        query: &Query,
        goal: &mut G,
        observer: &mut O,
    ) -> ControlFlow<()> {
        let inside = end.cell.heads().into_iter().filter(|head| *head != END).count();
        let outside = usize::from(end.cell.max_depth() - end.depth) - inside;
        if outside == 0 {
            return goal.found(end, &[], end.cell.offset() as u32);
        }
        observer.chain();
        let bytes = &self.chains[end.cell.offset() as usize..][..outside + VALUE_BYTES];
        let (chain, value) = bytes.split_last_chunk::<VALUE_BYTES>().expect("a chain and its value");
        match chain.iter().all(|position| query.has(*position)) {
            true => goal.found(end, chain, u32::from_le_bytes(*value)),
            false => ControlFlow::Continue(()),
        }
    }

    /// False for a terminator whose second position is no 1-bit of the query. The scan has looked at the first.
    fn heads_match(&self, cell: Cell, query: &Query) -> bool {
        !cell.is_terminator() || cell.heads()[1] == END || query.has(cell.heads()[1])
    }

    /// Reads the beginning of what a cell leads to. The caller must use the result, or the compiler leaves the read
    /// out.
    fn touch(&self, cell: Cell) -> u64 {
        let offset = cell.offset() as usize;
        match cell.is_terminator() {
            // If the offset is a value, this reads a byte that the search does not need.
            true => self.chains.get(offset).map_or(0, |byte| u64::from(*byte)),
            false => self.cells.get(offset).map_or(0, |cell| cell.offset()),
        }
    }

    /// Gathers the cells of a list that may lead to subsets, and returns their number.
    fn scan<O: Observer>(
        &self,
        first: u64,
        depth: u8,
        query: &Query,
        passing: &mut [Cell; PASSING_CELLS],
        observer: &mut O,
    ) -> usize {
        let added = if query.adds_depth { u32::from(depth) } else { 0 };
        let list = self.cells.get(first as usize..).unwrap_or(&[]);
        let mut count = 0;
        for (index, cell) in list.iter().enumerate() {
            let limit = added + u32::from(query.limit[usize::from(cell.position())]);
            // Written in any case, and kept without a branch.
            passing[count % PASSING_CELLS] = *cell;
            count += usize::from(u32::from(cell.min_depth()) <= limit);
            if cell.is_last() {
                observer.list(index + 1);
                break;
            }
        }
        count
    }
}

/// Room for the cells of a list that pass, and one more; a power of two, so that masked places need no check of
/// bounds.
const PASSING_CELLS: usize = 256;
const _: () = assert!(PASSING_CELLS.is_power_of_two() && PASSING_CELLS > LIST_CELLS);
