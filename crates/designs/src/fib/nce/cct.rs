//! CCT: what is the code of this component?
//!
//! Source: Wang et al. 2012 (NCE), *Component Character Trie*: all components of all prefixes in one trie of
//! characters, with each component once, however many prefixes have it. The trie is kept in [`TransitionArrays`]; a
//! state where a component ends has the component's code.
//!
//! ```text
//! node with room for n transitions, of a state where a component ends or (array + 16) does:
//! | state | transitions u16, n bytes, padded … | code | component | n next states … |
//! 0       4                                      only where one ends
//! ```
//!
//! Arrays: 0 is for no transition, `i` for 2^(i-1), up to 256. If a component ends at the state, the number of its
//! array is 16 higher. Transitions are sorted by their bytes and found by binary search.
//!
//! The trie spells the type of the component, then its bytes. It does not spell the length, because the state where a
//! component ends implies it. Cost: for each byte, a look-up reads 1 line of the base array, 1 of the node, and 1 more
//! for the transition if the node has many. Bytes: a state with one transition takes 16. Deviation: the paper's
//! characters are those of URLs, and its components have no types.

use super::transition_arrays::{ARRAYS, NO_STATE, TransitionArrays};
use namewire_tables::pages::PageSize;
use std::io;

/// The state before the first byte.
pub(super) const ROOT: u32 = 0;
/// Stands for no component: at a state where a component ended and the node could not be moved.
pub(super) const NO_CODE: u32 = u32::MAX;
/// Arrays for states where a component ends begin here.
const ENDING: usize = 16;
/// The array of the most transitions: 256.
const WIDEST: usize = 9;
/// The word with the number of transitions and their bytes.
const BYTES: usize = 1;

pub(super) struct ComponentCharacterTrie {
    arrays: TransitionArrays,
}

/// What the trie says of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    /// Stands for the component in the encoded trie.
    pub(super) code: u32,
    /// The component's number, which no other component has.
    pub(super) component: u32,
}

/// What is spelled of a component: its type and its bytes.
#[derive(Clone, Copy)]
pub(super) struct Spelling<'name> {
    component: &'name [u8],
    type_bytes: usize,
    length_bytes: usize,
}

impl<'name> Spelling<'name> {
    pub(super) fn of(component: &'name [u8]) -> Self {
        let number_bytes = |at: usize| match component.get(at) {
            None | Some(0..=252) => 1,
            Some(253) => 3,
            Some(254) => 5,
            Some(255) => 9,
        };
        let type_bytes = number_bytes(0);
        Self { component, type_bytes, length_bytes: number_bytes(type_bytes) }
    }

    /// How many bytes are spelled.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.component.len().saturating_sub(self.length_bytes)
    }

    #[inline(always)]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.component[if at < self.type_bytes { at } else { at + self.length_bytes }]
    }
}

/// Parts of a node, by the array it is in.
#[derive(Clone, Copy)]
struct Layout {
    room: usize,
    ends: bool,
}

impl Layout {
    #[inline(always)]
    const fn of(array: usize) -> Self {
        Self { room: (1 << (array % ENDING)) >> 1, ends: array >= ENDING }
    }

    fn array_for(transitions: usize, ends: bool) -> usize {
        let size = transitions.checked_sub(1).map_or(0, |more| more.checked_ilog2().map_or(0, |log| log + 1) + 1);
        size as usize + if ends { ENDING } else { 0 }
    }

    /// The first of the two words about the component that ends.
    const fn end(self) -> usize {
        BYTES + (2 + self.room).div_ceil(4)
    }

    const fn next_states(self) -> usize {
        self.end() + if self.ends { 2 } else { 0 }
    }

    const fn words(self) -> usize {
        self.next_states() + self.room
    }
}

const _: () = assert!(Layout::of(1).words() * 4 + 4 == 16, "a state with one transition, and its base entry");
const _: () = assert!(Layout::of(WIDEST).room == 256 && ENDING + WIDEST < ARRAYS);

/// The bytes of the transitions, sorted.
#[inline(always)]
fn bytes(node: &[u32]) -> &[u8] {
    let header = bytemuck::cast_slice::<u32, u8>(&node[BYTES..]);
    &header[2..][..usize::from(u16::from_le_bytes([header[0], header[1]]))]
}

/// Writes all transitions of a node.
fn set_transitions(node: &mut [u32], layout: Layout, transitions: impl ExactSizeIterator<Item = (u8, u32)>) {
    let count = transitions.len() as u16;
    for (place, (byte, next)) in transitions.enumerate() {
        bytemuck::cast_slice_mut::<u32, u8>(&mut node[BYTES..])[2 + place] = byte;
        node[layout.next_states() + place] = next;
    }
    bytemuck::cast_slice_mut::<u32, u8>(&mut node[BYTES..])[..2].copy_from_slice(&count.to_le_bytes());
}

impl ComponentCharacterTrie {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let node_words = |array| if array % ENDING <= WIDEST { Layout::of(array).words() } else { 0 };
        let mut arrays = TransitionArrays::new(std::array::from_fn(node_words), pages)?;
        arrays.reserve(0, 1)?;
        let root = arrays.add(0);
        debug_assert_eq!(root, ROOT);
        set_transitions(arrays.node_mut(root).1, Layout::of(0), [].into_iter());
        Ok(Self { arrays })
    }

    /// The base entry of a state.
    #[inline(always)]
    pub(super) fn entry(&self, state: u32) -> &u32 {
        self.arrays.entry(state)
    }

    /// The first word of the node of an entry.
    #[inline(always)]
    pub(super) fn first_word(&self, entry: u32) -> &u32 {
        &self.arrays.node_of(entry).1[0]
    }

    /// Which transition of the state of an entry has this byte.
    #[inline(always)]
    pub(super) fn transition(&self, entry: u32, byte: u8) -> Option<usize> {
        bytes(self.arrays.node_of(entry).1).binary_search(&byte).ok()
    }

    /// The word with the state that a transition leads to.
    #[inline(always)]
    pub(super) fn next_state(&self, entry: u32, transition: usize) -> &u32 {
        let (array, node) = self.arrays.node_of(entry);
        &node[Layout::of(array).next_states() + transition]
    }

    /// The state that a byte leads to.
    fn next(&self, state: u32, byte: u8) -> Option<u32> {
        let entry = *self.entry(state);
        self.transition(entry, byte).map(|transition| *self.next_state(entry, transition))
    }

    /// What ends in the state of this entry.
    #[inline(always)]
    pub(super) fn ending(&self, entry: u32) -> Option<Encoding> {
        let (array, node) = self.arrays.node_of(entry);
        let layout = Layout::of(array);
        let encoding = layout.ends.then(|| Encoding { code: node[layout.end()], component: node[layout.end() + 1] })?;
        (encoding.code != NO_CODE).then_some(encoding)
    }

    /// The state where a component ends and the component's encoding, if the trie has the component.
    pub(super) fn find(&self, spelling: Spelling<'_>) -> Option<(u32, Encoding)> {
        let (state, spelled) = self.follow(spelling);
        let encoding = self.ending(*self.entry(state))?;
        (spelled == spelling.len()).then_some((state, encoding))
    }

    /// Lets another code stand for the component that ends in this state.
    pub(super) fn set_code(&mut self, state: u32, code: u32) {
        let (array, node) = self.arrays.node_mut(state);
        node[Layout::of(array).end()] = code;
    }

    /// The state that the first bytes lead to, and the number of these bytes.
    fn follow(&self, spelling: Spelling<'_>) -> (u32, usize) {
        let (mut state, mut spelled) = (ROOT, 0);
        while spelled < spelling.len() {
            match self.next(state, spelling.byte(spelled)) {
                Some(next) => (state, spelled) = (next, spelled + 1),
                None => break,
            }
        }
        (state, spelled)
    }

    /// Adds a component that is not there; gives the state where it ends.
    pub(super) fn add(&mut self, spelling: Spelling<'_>, encoding: Encoding) -> io::Result<u32> {
        let (at, spelled) = self.follow(spelling);
        let left = spelling.len() - spelled;
        let (array, node) = self.arrays.node(at);
        let (transitions, ends) = (bytes(node).len() + usize::from(left > 0), Layout::of(array).ends || left == 0);
        let wider = Layout::array_for(transitions.max(Layout::of(array).room), ends);
        self.arrays.reserve(wider, 1)?;
        self.arrays.reserve(ENDING, 1)?;
        self.arrays.reserve(1, left)?;
        self.move_node(at, wider);
        let mut last = at;
        for place in spelled..spelling.len() {
            let array = if place + 1 < spelling.len() { 1 } else { ENDING };
            let next = self.arrays.add(array);
            set_transitions(self.arrays.node_mut(next).1, Layout::of(array), [].into_iter());
            self.insert_transition(last, spelling.byte(place), next);
            last = next;
        }
        let (array, node) = self.arrays.node_mut(last);
        let end = Layout::of(array).end();
        node[end..end + 2].copy_from_slice(&[encoding.code, encoding.component]);
        Ok(last)
    }

    /// Removes a component that is there, and the states that only it needs.
    pub(super) fn remove(&mut self, spelling: Spelling<'_>) {
        // The last state before the end that stays, and which byte leads on from it.
        let (mut state, mut stays) = (ROOT, (ROOT, 0));
        for place in 0..spelling.len() {
            let (array, node) = self.arrays.node(state);
            if state == ROOT || Layout::of(array).ends || bytes(node).len() > 1 {
                stays = (state, place);
            }
            let Some(next) = self.next(state, spelling.byte(place)) else { return };
            state = next;
        }
        let (array, node) = self.arrays.node(state);
        if !bytes(node).is_empty() || spelling.len() == 0 {
            self.set_code(state, NO_CODE);
            self.move_node_if_room(state, array % ENDING);
            return;
        }
        let (stays, place) = stays;
        let mut gone = self.remove_transition(stays, spelling.byte(place));
        for place in place + 1..spelling.len() {
            let next = self.next(gone, spelling.byte(place));
            self.arrays.remove(gone);
            gone = next.unwrap_or(NO_STATE);
        }
        self.arrays.remove(gone);
    }

    /// Puts a transition in its place; the node has room.
    fn insert_transition(&mut self, state: u32, byte: u8, next: u32) {
        let (array, node) = self.arrays.node_mut(state);
        let (layout, count) = (Layout::of(array), bytes(node).len());
        let place = bytes(node).partition_point(|other| *other < byte);
        let states = layout.next_states();
        node.copy_within(states + place..states + count, states + place + 1);
        node[states + place] = next;
        let header = bytemuck::cast_slice_mut::<u32, u8>(&mut node[BYTES..]);
        header.copy_within(2 + place..2 + count, 3 + place);
        header[2 + place] = byte;
        header[..2].copy_from_slice(&(count as u16 + 1).to_le_bytes());
    }

    /// Gives the state that the transition led to.
    fn remove_transition(&mut self, state: u32, byte: u8) -> u32 {
        let (array, node) = self.arrays.node_mut(state);
        let (layout, count) = (Layout::of(array), bytes(node).len());
        let place = bytes(node).partition_point(|other| *other < byte);
        let states = layout.next_states();
        let next = node[states + place];
        node.copy_within(states + place + 1..states + count, states + place);
        let header = bytemuck::cast_slice_mut::<u32, u8>(&mut node[BYTES..]);
        header.copy_within(3 + place..2 + count, 2 + place);
        header[..2].copy_from_slice(&(count as u16 - 1).to_le_bytes());
        self.move_node_if_room(state, Layout::array_for(count - 1, layout.ends));
        next
    }

    fn move_node_if_room(&mut self, state: u32, array: usize) {
        if self.arrays.reserve(array, 1).is_ok() {
            self.move_node(state, array);
        }
    }

    /// Moves a node to where there is more room or less, and where components end or do not.
    fn move_node(&mut self, state: u32, array: usize) {
        let (old_array, _) = self.arrays.node(state);
        if old_array == array {
            return;
        }
        let (from, to) = (Layout::of(old_array), Layout::of(array));
        self.arrays.change_array(state, array, |old, new| {
            let next_states = old[from.next_states()..].iter().copied();
            let bytes = bytes(old);
            set_transitions(new, to, bytes.iter().copied().zip(next_states.take(bytes.len())));
            if from.ends && to.ends {
                new[to.end()..to.end() + 2].copy_from_slice(&old[from.end()..from.end() + 2]);
            }
        });
    }

    pub(super) fn bytes(&self) -> usize {
        self.arrays.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(number: usize) -> Vec<u8> {
        match number {
            0..256 => vec![8, 1, number as u8],
            256..512 => vec![8, 2, 1, number as u8],
            512 => vec![8, 0],
            _ => vec![253, 1, 0, 1, number as u8],
        }
    }

    /// Also the widest state, with a transition to a state as wide.
    #[test]
    fn components_come_and_go_and_leave_the_root() {
        let mut trie = ComponentCharacterTrie::new(PageSize::Base).unwrap();
        let mut there = vec![None; 520];
        for (stride, remove) in [(7, false), (21, true), (11, false), (63, true)] {
            for step in 0..there.len() {
                let number = step * stride % there.len();
                let component = component(number);
                let spelling = Spelling::of(&component);
                assert_eq!(trie.find(spelling), there[number], "{component:?}");
                if remove {
                    trie.remove(spelling);
                    there[number] = None;
                } else {
                    let encoding = Encoding { code: step as u32, component: number as u32 };
                    there[number] = Some((trie.add(spelling, encoding).unwrap(), encoding));
                }
                assert_eq!(trie.find(spelling), there[number], "{component:?}");
            }
            let node = trie.arrays.node(ROOT).1;
            assert_eq!(bytes(node), if remove { &[][..] } else { &[8, 253] });
        }
    }
}
