//! Code allocation: which code does this component have?
//!
//! Source: Wang et al. 2012 (NCE), *code allocation mechanism*. Components that lead away from one state must have
//! different codes; others may share one. So a component gets the lowest code that is free in all states that it leads
//! away from. Then there are about as few codes as the widest state needs, and a state with many transitions has
//! nearly the codes 0, 1, 2, ….
//!
//! A new prefix can make a component lead away from a state where another component has the same code. Then, of the two
//! components, the one that leads away from fewer states gets another code in all these states. Only updates read the
//! lists that this needs:
//!
//! ```text
//! component: | state of the character trie | newest edge | edges |        12 bytes
//! edge:      | state it leads away from | older | newer |                 12 bytes, by the state it leads to
//! ```
//!
//! Cost: a new edge takes 1 line of its component and 2 of edges. A change of a code takes some 3 lines for each edge
//! of the component, and the transitions between its old and its new place. We do not know from the paper which
//! component gets the other code, and how a change of a code reaches all places that use it. Both are ours.

use super::NameComponentEncoding;
use super::cct::{Encoding, Spelling};
use super::transition_arrays::grow_for;
use bytemuck::{Pod, Zeroable};
use namewire_tables::pages::{PageArray, PageSize};
use std::io;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Component {
    /// The state of the character trie where the component ends.
    state: u32,
    /// The newest edge; the next free number if this number is free.
    newest: u32,
    edges: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Edge {
    from: u32,
    older: u32,
    newer: u32,
}

const _: () = assert!(size_of::<Component>() == 12 && size_of::<Edge>() == 12);

/// The number that no component, and the state that no edge, has.
const NONE: u32 = u32::MAX;

/// Which edges each component has.
pub(super) struct Management {
    components: PageArray<Component>,
    /// Components that ever were; numbers are below this.
    component_count: u32,
    free_component: u32,
    /// By the state that the edge leads to.
    edges: PageArray<Edge>,
}

impl Management {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let components = PageArray::zeroed_preferably(0, pages)?;
        let edges = PageArray::zeroed_preferably(0, pages)?;
        Ok(Self { components, component_count: 0, free_component: NONE, edges })
    }

    /// Room for one more component, and for edges to states below this.
    fn reserve(&mut self, states: usize) -> io::Result<()> {
        grow_for(&mut self.components, self.component_count as usize + 1)?;
        grow_for(&mut self.edges, states)
    }

    /// The number that the next component is going to have.
    fn next_component(&self) -> u32 {
        if self.free_component == NONE { self.component_count } else { self.free_component }
    }

    fn add_component(&mut self, state: u32) {
        let component = self.next_component();
        if self.free_component == NONE {
            self.component_count += 1;
        } else {
            self.free_component = self.components[component as usize].newest;
        }
        self.components[component as usize] = Component { state, newest: NONE, edges: 0 };
    }

    fn remove_component(&mut self, component: u32) {
        self.components[component as usize].newest = self.free_component;
        self.free_component = component;
    }

    /// The states that an edge of the component leads away from.
    fn states_of(&self, component: u32) -> impl Iterator<Item = u32> {
        let is_one = |edge: &u32| *edge != NONE;
        let newest = Some(self.components[component as usize].newest).filter(is_one);
        std::iter::successors(newest, move |edge| Some(self.edges[*edge as usize].older).filter(is_one))
            .map(|edge| self.edges[edge as usize].from)
    }

    fn edge_count(&self, component: u32) -> u32 {
        self.components[component as usize].edges
    }

    fn link(&mut self, component: u32, from: u32, to: u32) {
        let of = &mut self.components[component as usize];
        let older = std::mem::replace(&mut of.newest, to);
        of.edges += 1;
        self.edges[to as usize] = Edge { from, older, newer: NONE };
        if older != NONE {
            self.edges[older as usize].newer = to;
        }
    }

    fn unlink(&mut self, component: u32, to: u32) {
        let Edge { older, newer, .. } = self.edges[to as usize];
        let of = &mut self.components[component as usize];
        of.edges -= 1;
        match newer {
            NONE => of.newest = older,
            newer => self.edges[newer as usize].older = older,
        }
        if older != NONE {
            self.edges[older as usize].newer = newer;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.components.mapped_bytes() + self.edges.mapped_bytes()
    }
}

impl NameComponentEncoding {
    /// Adds a transition for a component to a state that has none for it; gives the state that it leads to. If there is
    /// no room, nothing changed.
    pub(super) fn add_edge(&mut self, from: u32, spelling: Spelling<'_>) -> io::Result<u32> {
        self.enpt.reserve(from)?;
        self.management.reserve(self.enpt.states() + 1)?;
        let Encoding { mut code, component } = match self.cct.find(spelling) {
            Some((_, encoding)) => encoding,
            None => {
                let code = self.enpt.node(from).free_code(0);
                let encoding = Encoding { code, component: self.management.next_component() };
                let state = self.cct.add(spelling, encoding)?;
                self.management.add_component(state);
                encoding
            }
        };
        if let Some(to) = self.enpt.next(from, code) {
            let other = self.enpt.node(to).component();
            if self.management.edge_count(other) <= self.management.edge_count(component) {
                self.change_code(other, code, from);
            } else {
                code = self.change_code(component, code, from);
            }
        }
        let to = self.enpt.add_state(component);
        self.enpt.add_transition(from, code, to);
        self.management.link(component, from, to);
        Ok(to)
    }

    /// Removes a transition and the state that it leads to, which has none itself.
    pub(super) fn remove_edge(&mut self, from: u32, to: u32, spelling: Spelling<'_>) {
        let Some((_, Encoding { code, component })) = self.cct.find(spelling) else { return };
        self.enpt.remove_transition(from, code);
        self.enpt.remove_state(to);
        self.management.unlink(component, to);
        if self.management.edge_count(component) == 0 {
            self.management.remove_component(component);
            self.cct.remove(spelling);
        }
    }

    /// Gives a component the lowest code that is free in the state `also` and wherever it leads
    /// away from.
    fn change_code(&mut self, component: u32, old: u32, also: u32) -> u32 {
        let mut new = self.enpt.node(also).free_code(0);
        loop {
            let before = new;
            for state in self.management.states_of(component) {
                new = self.enpt.node(state).free_code(new);
            }
            new = self.enpt.node(also).free_code(new);
            if new == before {
                break;
            }
        }
        for state in self.management.states_of(component) {
            self.enpt.change_code(state, old, new);
        }
        self.cct.set_code(self.management.components[component as usize].state, new);
        new
    }
}
