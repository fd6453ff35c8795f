//! Search: the walks of Algorithms 1 to 3, without recursion and without allocation.
//!
//! A walk scans a list of siblings and puts on its stack the cells that may lead to a subset. Then it takes the last
//! one from the stack. It is an inner node, whose children are the next list; or a terminator, whose chain is compared.
//!
//! One comparison for each sibling serves the bit test and the first two pruning strategies, in every combination: see
//! [`Query`]. It ends in no branch, because some 15 % of cells pass, at random.

use super::VectorTable;
use super::cell::{END, Pending};
use super::permutation::Key;
use crate::{Descriptor, matching::Entry};
use std::ops::ControlFlow;

/// Bytes of a value behind its chain.
pub(super) const VALUE_BYTES: usize = size_of::<u32>();
/// Cells of a walk's stack: a power of two, so that masked places need no check of bounds.
///
/// At most 193 are in use. Say that the walk is below positions p₁ < p₂ < … of a path. Cells are taken last first. So
/// those of the path's list i that are still on the stack begin at positions below pᵢ, and they begin above pᵢ₋₁, where
/// their list begins. All cells on the stack thus begin at different positions. Only a descriptor's own end, `$`, begins
/// at none; it is last of its list and leaves the stack first. A scan writes one cell beyond.
const STACK_CELLS: usize = 256;
const _: () = assert!(STACK_CELLS.is_power_of_two() && STACK_CELLS > crate::descriptor::DESCRIPTOR_BITS + 2);

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
    /// False if nothing below the cell is wanted any more.
    fn wants(&self, query: &Query, pending: Pending) -> bool;

    /// The walk goes below this node.
    fn enter(&mut self, depth: u8, position: u8);

    /// A subset: its terminator, the rest of its positions, its value.
    fn found(&mut self, end: Pending, chain: &[u8], value: u32) -> ControlFlow<()>;
}

/// *Find All Subsets*.
pub(super) struct All<F>(pub(super) F);

impl<F: FnMut(u32) -> ControlFlow<()>> Goal for All<F> {
    fn wants(&self, _: &Query, _: Pending) -> bool {
        true
    }

    fn enter(&mut self, _: u8, _: u8) {}

    fn found(&mut self, _: Pending, _: &[u8], value: u32) -> ControlFlow<()> {
        (self.0)(value)
    }
}

/// *Find Largest Subset*. With `TIES`, subsets as large as the best are looked at too, and the lowest descriptor wins.
pub(super) struct Largest<'a, const TIES: bool, F> {
    table: &'a VectorTable,
    /// Whether a value may be the answer.
    accepts: F,
    /// The lowest weight that is still wanted.
    wanted: u8,
    /// Positions from the root to the list that is scanned; as long as the stack, for the same reason.
    path: [u8; STACK_CELLS],
    pub(super) best: Option<Entry>,
}

impl<'a, const TIES: bool, F> Largest<'a, TIES, F> {
    pub(super) fn new(table: &'a VectorTable, accepts: F) -> Self {
        Largest { table, accepts, wanted: 0, path: [0; STACK_CELLS], best: None }
    }

    /// The descriptor at the end of the path.
    fn descriptor(&self, end: Pending, chain: &[u8]) -> Descriptor {
        let head = Some(end.cell().position()).filter(|position| *position != END);
        let path = &self.path[..usize::from(end.depth())];
        path.iter().copied().chain(head).chain(chain.iter().copied()).map(|at| self.table.permutation.bit(at)).collect()
    }
}

impl<const TIES: bool, F: FnMut(u32) -> bool> Goal for Largest<'_, TIES, F> {
    fn wants(&self, query: &Query, pending: Pending) -> bool {
        let cell = pending.cell();
        // Of all bits that the descriptors below the cell may match, at most these.
        let potential = u32::from(pending.depth()) + u32::from(query.remaining[usize::from(cell.position())]);
        cell.max_depth() >= self.wanted && potential >= u32::from(self.wanted)
    }

    fn enter(&mut self, depth: u8, position: u8) {
        self.path[usize::from(depth)] = position;
    }

    fn found(&mut self, end: Pending, chain: &[u8], value: u32) -> ControlFlow<()> {
        if !(self.accepts)(value) {
            return ControlFlow::Continue(());
        }
        let weight = end.cell().max_depth();
        let entry = Entry { descriptor: self.descriptor(end, chain), value };
        // Only a tie is no gain.
        if weight > self.wanted || self.best.is_none_or(|best| entry.is_preferred_to(&best)) {
            self.best = Some(entry);
        }
        self.wanted = if TIES { weight } else { weight + 1 };
        ControlFlow::Continue(())
    }
}

/// The cells that a walk still has to visit; the last comes first.
struct Stack {
    cells: [Pending; STACK_CELLS],
    len: usize,
}

impl Stack {
    /// Keeps the cell if `keep`, without a branch.
    fn push_if(&mut self, keep: bool, pending: Pending) {
        self.cells[self.len % STACK_CELLS] = pending;
        self.len += usize::from(keep);
    }

    fn pop(&mut self) -> Option<Pending> {
        self.len = self.len.checked_sub(1)?;
        Some(self.cells[self.len % STACK_CELLS])
    }
}

impl VectorTable {
    /// Walks through the trie for a goal, until it breaks.
    pub(super) fn walk<G: Goal, O: Observer>(&self, mut query: Query, goal: &mut G, observer: &mut O) {
        let mut stack = Stack { cells: [Pending::UNUSED; STACK_CELLS], len: 0 };
        self.scan(0, 0, &query, &mut stack, observer);
        while let Some(pending) = stack.pop() {
            if !goal.wants(&query, pending) {
                continue;
            }
            let (cell, depth) = (pending.cell(), pending.depth());
            if !cell.is_terminator() {
                goal.enter(depth, cell.position());
                query.enter(cell.position());
                self.scan(cell.offset(), depth + 1, &query, &mut stack, observer);
                continue;
            }
            let outside = usize::from(cell.max_depth() - depth - u8::from(cell.position() != END));
            if outside == 0 {
                if goal.found(pending, &[], cell.offset() as u32).is_break() {
                    return;
                }
                continue;
            }
            observer.chain();
            let bytes = &self.chains[cell.offset() as usize..][..outside + VALUE_BYTES];
            let (chain, value) = bytes.split_last_chunk::<VALUE_BYTES>().expect("a chain and its value");
            if chain.iter().all(|position| query.has(*position))
                && goal.found(pending, chain, u32::from_le_bytes(*value)).is_break()
            {
                return;
            }
        }
    }

    /// Puts the cells of a list that may lead to subsets on the stack.
    fn scan<O: Observer>(&self, first: u64, depth: u8, query: &Query, stack: &mut Stack, observer: &mut O) {
        let added = if query.adds_depth { u32::from(depth) } else { 0 };
        let list = self.cells.get(first as usize..).unwrap_or(&[]);
        for (index, cell) in list.iter().enumerate() {
            let limit = added + u32::from(query.limit[usize::from(cell.position())]);
            stack.push_if(u32::from(cell.min_depth()) <= limit, cell.pending(depth));
            if cell.is_last() {
                observer.list(index + 1);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::*;

    #[test]
    fn a_cell_that_is_pushed_without_keeping_leaves_no_trace() {
        let mut stack = Stack { cells: [Pending::UNUSED; STACK_CELLS], len: 0 };
        let pending = |position| Cell::node(position, 0).pending(0);
        stack.push_if(true, pending(1));
        stack.push_if(false, pending(2));
        stack.push_if(true, pending(3));
        stack.push_if(false, pending(4));
        let popped: Vec<u8> = std::iter::from_fn(|| stack.pop()).map(|pending| pending.cell().position()).collect();
        assert_eq!(popped, [3, 1]);
    }
}
