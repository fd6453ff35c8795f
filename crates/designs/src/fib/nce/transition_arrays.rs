//! State transition arrays: where are the transitions of a state of an automaton?
//!
//! Source: Wang et al. 2012 (NCE). For each state, the paper's *Base Array* gives the *Transition Array* that has its
//! transitions, and the place there. There is one transition array for each number of transitions that a state may have
//! room for. States keep their numbers when their transitions move.
//!
//! ```text
//! base:     | 31-27 array, 26-0 place | …                 one u32 per state
//! array i:  | node | node | node | never used …           nodes of one size, without holes
//! node:     | state | what the trie keeps there … |
//! ```
//!
//! A node knows its state. So the last node of an array can be moved into the hole that a removed one leaves. Numbers
//! of former states form a list in the base array.
//!
//! Cost: finding a node reads 1 line of the base array, then the lines of the node. Bytes: a state takes 4, and its
//! node. Limits: 2^27 nodes of a size. Writers: the owner.

use namewire_tables::pages::{PageArray, PageSize};
use std::io;

/// The number that no state has.
pub(super) const NO_STATE: u32 = u32::MAX;

/// Transition arrays: as many as 5 bits can tell apart.
pub(super) const ARRAYS: usize = 32;
const PLACE_BITS: u32 = 27;
const MAX_NODES: usize = 1 << PLACE_BITS;

/// A page: an array of such nodes gives its memory back when the last one leaves it. No new state has one.
const LARGE_NODE_WORDS: usize = 1 << 10;

/// The word of a node with its state.
const STATE: usize = 0;

struct TransitionArray {
    words: PageArray<u32>,
    nodes: usize,
    node_words: usize,
}

pub(super) struct TransitionArrays {
    base: PageArray<u32>,
    /// States that ever were; numbers are below this.
    states: usize,
    /// The newest number that is free again; the base entry of this number holds the next free number.
    free_state: u32,
    arrays: [TransitionArray; ARRAYS],
    pages: PageSize,
}

impl TransitionArrays {
    /// No states; `node_words[i]` is the size of the nodes of array `i`.
    pub(super) fn new(node_words: [usize; ARRAYS], pages: PageSize) -> io::Result<Self> {
        let empty = || PageArray::zeroed_preferably(0, pages);
        let mut arrays = Vec::with_capacity(ARRAYS);
        for node_words in node_words {
            arrays.push(TransitionArray { words: empty()?, nodes: 0, node_words });
        }
        let arrays = arrays.try_into().unwrap_or_else(|_| unreachable!("as many were pushed"));
        Ok(Self { base: empty()?, states: 0, free_state: NO_STATE, arrays, pages })
    }

    /// Room for this many more nodes of an array and as many states.
    pub(super) fn reserve(&mut self, array: usize, nodes: usize) -> io::Result<()> {
        let TransitionArray { words, nodes: in_use, node_words } = &mut self.arrays[array];
        let needed = *in_use + nodes;
        if needed > MAX_NODES || self.states + nodes >= NO_STATE as usize {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        grow_for(words, needed * *node_words)?;
        grow_for(&mut self.base, self.states + nodes)
    }

    /// States that ever were.
    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// A new state; its node may hold anything.
    ///
    /// # Panics
    /// If there is no room: [`TransitionArrays::reserve`] comes first.
    pub(super) fn add(&mut self, array: usize) -> u32 {
        let state = match self.free_state {
            NO_STATE => {
                self.states += 1;
                self.states as u32 - 1
            }
            free => {
                self.free_state = self.base[free as usize];
                free
            }
        };
        self.place_last(state, array);
        state
    }

    pub(super) fn remove(&mut self, state: u32) {
        self.close_hole(self.base[state as usize]);
        self.base[state as usize] = self.free_state;
        self.free_state = state;
    }

    /// Moves the node of a state to another array; `copy` has the old and the new node. Room
    /// for it was reserved.
    pub(super) fn change_array(&mut self, state: u32, array: usize, copy: impl FnOnce(&[u32], &mut [u32])) {
        let old = self.base[state as usize];
        self.place_last(state, array);
        let (old_array, old_place) = parts(old);
        let [from, to] = self.arrays.get_disjoint_mut([old_array, array]).expect("two different arrays");
        copy(from.node(old_place), to.node_mut(to.nodes - 1));
        to.node_mut(to.nodes - 1)[STATE] = state;
        self.close_hole(old);
    }

    /// Gives a state the node behind the last one of an array.
    fn place_last(&mut self, state: u32, array: usize) {
        let into = &mut self.arrays[array];
        into.nodes += 1;
        into.node_mut(into.nodes - 1)[STATE] = state;
        self.base[state as usize] = (array as u32) << PLACE_BITS | (into.nodes - 1) as u32;
    }

    fn close_hole(&mut self, entry: u32) {
        let (array, place) = parts(entry);
        let TransitionArray { words, nodes, node_words } = &mut self.arrays[array];
        *nodes -= 1;
        if place < *nodes {
            words.copy_within(*nodes * *node_words..(*nodes + 1) * *node_words, place * *node_words);
            let moved = words[place * *node_words + STATE];
            self.base[moved as usize] = entry;
        } else if *nodes == 0
            && *node_words >= LARGE_NODE_WORDS
            && let Ok(empty) = PageArray::zeroed_preferably(0, self.pages)
        {
            // One state on its way up used it, and then perhaps none does any more. Not so small nodes:
            // room that was reserved for a state to come must stay.
            *words = empty;
        }
    }

    /// Where the node of a state is; not to be kept over a change.
    #[inline(always)]
    pub(super) fn entry(&self, state: u32) -> &u32 {
        &self.base[state as usize]
    }

    /// The array of an entry and its node there.
    #[inline(always)]
    pub(super) fn node_of(&self, entry: u32) -> (usize, &[u32]) {
        let (array, place) = parts(entry);
        (array, self.arrays[array].node(place))
    }

    #[inline(always)]
    pub(super) fn node(&self, state: u32) -> (usize, &[u32]) {
        self.node_of(*self.entry(state))
    }

    pub(super) fn node_mut(&mut self, state: u32) -> (usize, &mut [u32]) {
        let (array, place) = parts(self.base[state as usize]);
        (array, self.arrays[array].node_mut(place))
    }

    pub(super) fn bytes(&self) -> usize {
        let arrays: usize = self.arrays.iter().map(|array| array.words.mapped_bytes()).sum();
        self.base.mapped_bytes() + arrays + size_of::<Self>()
    }
}

impl TransitionArray {
    #[inline(always)]
    fn node(&self, place: usize) -> &[u32] {
        &self.words[place * self.node_words..][..self.node_words]
    }

    fn node_mut(&mut self, place: usize) -> &mut [u32] {
        &mut self.words[place * self.node_words..][..self.node_words]
    }
}

#[inline(always)]
fn parts(entry: u32) -> (usize, usize) {
    ((entry >> PLACE_BITS) as usize, entry as usize % MAX_NODES)
}

/// Room for `len` elements. Nothing is copied, so there is no need to double; a sixteenth keeps the calls few.
pub(super) fn grow_for<T: bytemuck::Zeroable>(array: &mut PageArray<T>, len: usize) -> io::Result<()> {
    if len <= array.len() {
        return Ok(());
    }
    array.grow(len.max(array.len() + array.len() / 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_no_holes_and_states_keep_their_numbers() {
        let mut arrays = TransitionArrays::new(
            std::array::from_fn(|array| if array < 9 { array + 2 } else { 5000 }),
            PageSize::Base,
        )
        .unwrap();
        arrays.reserve(0, 4).unwrap();
        let states: Vec<u32> = (0..4).map(|_| arrays.add(0)).collect();
        for &state in &states {
            arrays.node_mut(state).1[1] = 100 + state;
        }
        arrays.reserve(5, 1).unwrap();
        arrays.change_array(states[1], 5, |old, new| new[6] = old[1]);
        assert_eq!(arrays.node(states[1]), (5, &[1, 0, 0, 0, 0, 0, 101][..]));
        arrays.remove(states[0]);
        for &state in &states[2..] {
            assert_eq!(arrays.node(state), (0, &[state, 100 + state][..]));
        }
        assert_eq!(arrays.arrays[0].nodes, 2);
        arrays.reserve(0, 1).unwrap();
        assert_eq!(arrays.add(0), states[0], "the number is free again");
        arrays.reserve(9, 1).unwrap();
        arrays.change_array(states[1], 9, |_, _| ());
        assert!(!arrays.arrays[5].words.is_empty() && !arrays.arrays[9].words.is_empty());
        arrays.remove(states[1]);
        assert!(arrays.arrays[9].words.is_empty());
        assert!(arrays.reserve(0, MAX_NODES).is_err());
    }
}
