//! Walk: how far has one look-up by codes come, and what does it read next?
//!
//! ```text
//! State ─► Node ─► CharacterState ─► CharacterNode ─► CharacterTransition    a component's bytes,
//!   ▲                   ▲                 │                   │
//!   │                   └─────────────────│───────────────────┘
//!   └──────────────── Transition ◄────────┘                                  then its code
//! ```
//!
//! Each arrow is an access that waits for the one before, unless it stays in the same cache line.

use super::NameComponentEncoding;
use super::cct::{self, Encoding, Spelling};
use super::enpt::{self, NO_COMPONENT};
use crate::fib::trie_walk::Walkable;
use namewire_tables::fib::PrefixMatch;
use namewire_tables::name_hash::components_of;
use namewire_tables::prefetch::{LINE_BYTES, prefetch};

/// One look-up.
pub(in super::super) struct Walk<'name> {
    /// From the component on that is looked up.
    rest: &'name [u8],
    prefix_bytes: usize,
    next: Next,
    /// The line that is going to be read.
    line: usize,
    /// The component that is looked up, and how many of its bytes were spelled.
    spelling: Spelling<'name>,
    component_bytes: usize,
    spelled: usize,
    /// What it was encoded to.
    encoding: Encoding,
    /// The base entry of the ENPT state, and which of its transitions are left to search.
    entry: u32,
    low: usize,
    high: usize,
    longest: Option<PrefixMatch>,
}

/// What a walk reads next.
#[derive(Clone, Copy)]
enum Next {
    /// The base entry of a state of the ENPT.
    State(u32),
    /// The node of [`Walk::entry`].
    Node,
    /// The base entry of a state of the CCT.
    CharacterState(u32),
    /// The node of that entry.
    CharacterNode(u32),
    /// The next state, by a transition of that node.
    CharacterTransition { entry: u32, transition: usize },
    /// The transition in the middle of those that are left.
    Transition,
}

impl NameComponentEncoding {
    /// Reads what is next; gives the word to read then, or `None` at the end.
    #[inline]
    fn advance(&self, walk: &mut Walk<'_>) -> Option<&u32> {
        match walk.next {
            Next::State(state) => {
                walk.entry = *self.enpt.entry(state);
                walk.next = Next::Node;
                Some(self.enpt.node_of(walk.entry).first_word())
            }
            Next::Node => {
                let node = self.enpt.node_of(walk.entry);
                if node.component() != walk.encoding.component {
                    return None;
                }
                walk.prefix_bytes += walk.component_bytes;
                walk.rest = &walk.rest[walk.component_bytes..];
                if let Some(number) = node.number() {
                    walk.longest = Some(PrefixMatch { number, prefix_bytes: walk.prefix_bytes as u16 });
                }
                (walk.low, walk.high) = (0, node.transition_count());
                if walk.high == 0 {
                    return None;
                }
                let component = components_of(walk.rest).next()?;
                (walk.spelling, walk.component_bytes, walk.spelled) = (Spelling::of(component), component.len(), 0);
                // That root is in every look-up, and so in the caches.
                walk.next = Next::CharacterNode(*self.cct.entry(cct::ROOT));
                self.advance(walk)
            }
            Next::CharacterState(state) => {
                let entry = *self.cct.entry(state);
                walk.next = Next::CharacterNode(entry);
                Some(self.cct.first_word(entry))
            }
            Next::CharacterNode(entry) => {
                if walk.spelled == walk.spelling.len() {
                    walk.encoding = self.cct.ending(entry)?;
                    return self.middle(walk);
                }
                let transition = self.cct.transition(entry, walk.spelling.byte(walk.spelled))?;
                walk.next = Next::CharacterTransition { entry, transition };
                Some(self.cct.next_state(entry, transition))
            }
            Next::CharacterTransition { entry, transition } => {
                let next = *self.cct.next_state(entry, transition);
                walk.spelled += 1;
                walk.next = Next::CharacterState(next);
                Some(self.cct.entry(next))
            }
            Next::Transition => {
                let middle = walk.low.midpoint(walk.high);
                let [code, next] = self.enpt.node_of(walk.entry).transitions()[middle];
                if code == walk.encoding.code {
                    walk.next = Next::State(next);
                    return Some(self.enpt.entry(next));
                }
                if code < walk.encoding.code {
                    walk.low = middle + 1
                } else {
                    walk.high = middle
                }
                self.middle(walk)
            }
        }
    }

    #[inline(always)]
    fn middle(&self, walk: &mut Walk<'_>) -> Option<&u32> {
        walk.next = Next::Transition;
        let left = walk.low < walk.high;
        left.then(|| &self.enpt.node_of(walk.entry).transitions()[walk.low.midpoint(walk.high)][0])
    }
}

impl Walkable for NameComponentEncoding {
    type Walk<'name> = Walk<'name>;

    fn begin<'name>(&self, name: &'name [u8]) -> Walk<'name> {
        Walk {
            rest: name,
            prefix_bytes: 0,
            next: Next::State(enpt::ROOT),
            line: 0,
            spelling: Spelling::of(b""),
            component_bytes: 0,
            spelled: 0,
            encoding: Encoding { code: 0, component: NO_COMPONENT },
            entry: 0,
            low: 0,
            high: 0,
            longest: None,
        }
    }

    #[inline]
    fn step<const PREFETCH: bool>(&self, walk: &mut Walk<'_>) -> bool {
        loop {
            let Some(word) = self.advance(walk) else { return false };
            let line = std::ptr::from_ref(word).addr() / LINE_BYTES;
            // What lies in the line at hand is read at once.
            if line != walk.line {
                walk.line = line;
                if PREFETCH {
                    prefetch(word);
                }
                return true;
            }
        }
    }

    fn longest(walk: &Walk<'_>) -> Option<PrefixMatch> {
        walk.longest
    }
}
