//! ENPT: which state does this code lead to?
//!
//! Source: Wang et al. 2012 (NCE), *Encoded Name Prefix Trie*: the name prefix trie ([`super::super::npt`]) with a
//! code on every edge instead of a component, kept in [`TransitionArrays`].
//!
//! ```text
//! | state | transitions, 31: has a number | component | number | code, next state | … |
//! 0       4                               8           12       16
//! ```
//!
//! Arrays: 0 is for no transition, `i` for 2^(i-1). Transitions are sorted by their codes and found by binary search.
//! Cost: for each component, a look-up reads 1 line of the base array, 1 of the node, and the other lines of the
//! log2(k) transitions that the binary search compares. Adding or removing a transition moves those behind it. Bytes: a
//! state takes 20, and 8 to 16 per transition (32 while transitions are removed).

use super::transition_arrays::{ARRAYS, TransitionArrays};
use namewire_tables::pages::PageSize;
use std::io;

/// The state of the empty name.
pub(super) const ROOT: u32 = 0;
/// The number that no component has: what leads to the root.
pub(super) const NO_COMPONENT: u32 = u32::MAX;

const META: usize = 1;
const COMPONENT: usize = 2;
const NUMBER: usize = 3;
const TRANSITIONS: usize = 4;
const HAS_NUMBER: u32 = 1 << 31;

pub(super) struct EncodedNamePrefixTrie {
    arrays: TransitionArrays,
}

/// The words of a node.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(&'a [u32]);

impl<'a> Node<'a> {
    #[inline(always)]
    pub(super) fn component(self) -> u32 {
        self.0[COMPONENT]
    }

    #[inline(always)]
    pub(super) fn number(self) -> Option<u32> {
        (self.0[META] & HAS_NUMBER != 0).then_some(self.0[NUMBER])
    }

    #[inline(always)]
    pub(super) fn transition_count(self) -> usize {
        (self.0[META] & !HAS_NUMBER) as usize
    }

    /// Code and next state, in the order of codes.
    #[inline(always)]
    pub(super) fn transitions(self) -> &'a [[u32; 2]] {
        &self.0[TRANSITIONS..].as_chunks().0[..self.transition_count()]
    }

    /// The first word.
    #[inline(always)]
    pub(super) fn first_word(self) -> &'a u32 {
        &self.0[0]
    }

    /// The lowest code from `code` on that no transition has.
    pub(super) fn free_code(self, code: u32) -> u32 {
        let transitions = self.transitions();
        let from = &transitions[transitions.partition_point(|[other, _]| *other < code)..];
        // Codes rise by 1 at least, so those without a gap are the first ones.
        let (mut low, mut high) = (0, from.len());
        while low < high {
            let middle = low.midpoint(high);
            if from[middle][0] == code + middle as u32 { low = middle + 1 } else { high = middle }
        }
        code + low as u32
    }
}

/// Room of the nodes of an array.
const fn room(array: usize) -> usize {
    (1 << array) >> 1
}

/// The array for this many transitions.
fn array_for(transitions: usize) -> usize {
    if transitions == 0 { 0 } else { transitions.next_power_of_two().ilog2() as usize + 1 }
}

const _: () = assert!(TRANSITIONS * 4 == 16 && room(0) == 0 && room(1) == 1 && room(ARRAYS - 1) == 1 << (ARRAYS - 2));

impl EncodedNamePrefixTrie {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let mut arrays = TransitionArrays::new(std::array::from_fn(|array| TRANSITIONS + 2 * room(array)), pages)?;
        arrays.reserve(0, 1)?;
        let mut trie = Self { arrays };
        let root = trie.add_state(NO_COMPONENT);
        debug_assert_eq!(root, ROOT);
        Ok(trie)
    }

    /// Room for one more transition of a state and a state that it leads to.
    pub(super) fn reserve(&mut self, state: u32) -> io::Result<()> {
        let (array, count) = (self.arrays.node(state).0, self.node(state).transition_count());
        if count == room(array) {
            self.arrays.reserve(array_for(count + 1), 1)?;
        }
        self.arrays.reserve(0, 2)
    }

    /// States are below this.
    pub(super) fn states(&self) -> usize {
        self.arrays.states()
    }

    /// A state without transitions that this component leads to.
    pub(super) fn add_state(&mut self, component: u32) -> u32 {
        let state = self.arrays.add(0);
        let (_, node) = self.arrays.node_mut(state);
        node[META..TRANSITIONS].copy_from_slice(&[0, component, 0]);
        state
    }

    pub(super) fn remove_state(&mut self, state: u32) {
        self.arrays.remove(state);
    }

    /// The base entry of a state.
    #[inline(always)]
    pub(super) fn entry(&self, state: u32) -> &u32 {
        self.arrays.entry(state)
    }

    #[inline(always)]
    pub(super) fn node_of(&self, entry: u32) -> Node<'_> {
        Node(self.arrays.node_of(entry).1)
    }

    pub(super) fn node(&self, state: u32) -> Node<'_> {
        Node(self.arrays.node(state).1)
    }

    /// Where the transition with this code is among those of a state, or would be put.
    pub(super) fn find(&self, state: u32, code: u32) -> Result<usize, usize> {
        self.node(state).transitions().binary_search_by_key(&code, |[code, _]| *code)
    }

    /// The state that a code leads to.
    pub(super) fn next(&self, state: u32, code: u32) -> Option<u32> {
        let place = self.find(state, code).ok()?;
        Some(self.node(state).transitions()[place][1])
    }

    pub(super) fn set_number(&mut self, state: u32, number: Option<u32>) {
        let (_, node) = self.arrays.node_mut(state);
        node[META] = node[META] & !HAS_NUMBER | if number.is_some() { HAS_NUMBER } else { 0 };
        node[NUMBER] = number.unwrap_or(0);
    }

    /// Adds a transition with a code that the state has none for; room was reserved.
    pub(super) fn add_transition(&mut self, state: u32, code: u32, next: u32) {
        let Err(place) = self.find(state, code) else { unreachable!("code {code} of state {state} is taken") };
        let (array, count) = (self.arrays.node(state).0, self.node(state).transition_count());
        if count == room(array) {
            self.move_node(state, array_for(count + 1));
        }
        let (_, node) = self.arrays.node_mut(state);
        node.copy_within(TRANSITIONS + 2 * place..TRANSITIONS + 2 * count, TRANSITIONS + 2 * place + 2);
        node[TRANSITIONS + 2 * place..][..2].copy_from_slice(&[code, next]);
        node[META] += 1;
    }

    pub(super) fn remove_transition(&mut self, state: u32, code: u32) {
        let Ok(place) = self.find(state, code) else { unreachable!("code {code} of state {state} is not there") };
        let (array, node) = self.arrays.node_mut(state);
        node[META] -= 1;
        let count = (node[META] & !HAS_NUMBER) as usize;
        node.copy_within(TRANSITIONS + 2 * place + 2..TRANSITIONS + 2 * count + 2, TRANSITIONS + 2 * place);
        // Not before a large node is three quarters free, so that one that comes and goes does not move them all.
        let spare = if array > 4 { 4 } else { 1 };
        let smaller = array_for(count * spare);
        if smaller < array && self.arrays.reserve(smaller, 1).is_ok() {
            self.move_node(state, smaller);
        }
    }

    /// Gives a transition another code, which the state has no transition for.
    pub(super) fn change_code(&mut self, state: u32, old: u32, new: u32) {
        let Ok(from) = self.find(state, old) else { unreachable!("code {old} of state {state} is not there") };
        let Err(to) = self.find(state, new) else { unreachable!("code {new} of state {state} is taken") };
        let (_, node) = self.arrays.node_mut(state);
        let transitions = node[TRANSITIONS..].as_chunks_mut::<2>().0;
        transitions[from][0] = new;
        if to > from {
            transitions[from..to].rotate_left(1);
        } else {
            transitions[to..=from].rotate_right(1);
        }
    }

    fn move_node(&mut self, state: u32, array: usize) {
        let words = TRANSITIONS + 2 * self.node(state).transition_count();
        self.arrays.change_array(state, array, |old, new| new[META..words].copy_from_slice(&old[META..words]));
    }

    pub(super) fn bytes(&self) -> usize {
        self.arrays.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_stay_sorted_and_the_first_gap_is_found() {
        let mut trie = EncodedNamePrefixTrie::new(PageSize::Base).unwrap();
        for code in [4, 0, 1, 7, 5] {
            trie.reserve(ROOT).unwrap();
            let next = trie.add_state(code);
            trie.add_transition(ROOT, code, next);
        }
        let codes = |trie: &EncodedNamePrefixTrie| -> Vec<u32> {
            trie.node(ROOT).transitions().iter().map(|[code, _]| *code).collect()
        };
        assert_eq!(codes(&trie), [0, 1, 4, 5, 7]);
        for (from, free) in [(0, 2), (2, 2), (3, 3), (4, 6), (5, 6), (7, 8), (9, 9)] {
            assert_eq!(trie.node(ROOT).free_code(from), free, "from {from}");
        }
        trie.change_code(ROOT, 0, 6);
        trie.change_code(ROOT, 7, 3);
        assert_eq!(codes(&trie), [1, 3, 4, 5, 6]);
        for (code, component) in [(1, 1), (3, 7), (4, 4), (5, 5), (6, 0)] {
            assert_eq!(trie.node(trie.next(ROOT, code).unwrap()).component(), component);
        }
        for code in [4, 1, 6, 3, 5] {
            let next = trie.next(ROOT, code).unwrap();
            trie.remove_transition(ROOT, code);
            trie.remove_state(next);
        }
        assert_eq!((codes(&trie), trie.arrays.node(ROOT).0), (vec![], 0));
    }
}
