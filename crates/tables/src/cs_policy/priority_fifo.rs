//! Priority FIFO: unsolicited Data is evicted first, then stale Data, then the oldest.
//!
//! Source: NFD's `priority_fifo`. It has three queues: unsolicited Data in the order of arrival; stale Data
//! in the order in which they became stale; all other Data in the order of arrival. A hit changes nothing.
//! Data that arrives again is moved to the end of the queue to which it then belongs.
//!
//! Deviation: no timer moves an entry from one queue to the next. Solicited Data is kept both in the order
//! of arrival and in a [heap](super::stale_heap) by the time from which it is stale. If the first of the
//! heap is stale, it is the victim.
//!
//! ```text
//! node, 16 bytes, four to a line: | slot 4 | place in the heap, NIL = unsolicited 4 | older 4 | newer 4 |
//! ```
//!
//! The mark's `place` is the number of the node.
//!
//! Cost: a hit costs nothing. An insertion writes 1 line of the node, 1 of its neighbour, and 1-2 of the
//! heap if Data become stale in the order of arrival. An eviction writes the same lines, and also
//! log₄(entries) lines of the heap and as many of nodes.
//! Bytes: an entry takes 36. Full: the policy is made for a number of entries; the store inserts no more.

use super::stale_heap::{StaleFrom, StaleHeap};
use super::{Eviction, Marks, Newcomer, RemovalReason};
use crate::pages::PageSize;
use crate::slab::{NIL, Slab};
use std::io;

#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    slot: u32,
    heap_place: u32,
    older: u32,
    newer: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

impl Default for Node {
    fn default() -> Self {
        Self { slot: NIL, heap_place: NIL, older: NIL, newer: NIL }
    }
}

/// Nodes in the order of arrival.
struct Queue {
    oldest: u32,
    newest: u32,
}

impl Queue {
    const EMPTY: Self = Self { oldest: NIL, newest: NIL };

    fn push_newest(&mut self, nodes: &mut Slab<Node>, number: u32) {
        let older = std::mem::replace(&mut self.newest, number);
        nodes.get_mut(number).older = older;
        match older {
            NIL => self.oldest = number,
            _ => nodes.get_mut(older).newer = number,
        }
    }

    fn remove(&mut self, nodes: &mut Slab<Node>, number: u32) {
        let Node { older, newer, .. } = *nodes.get(number);
        match older {
            NIL => self.oldest = newer,
            _ => nodes.get_mut(older).newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            _ => nodes.get_mut(newer).older = older,
        }
    }

    /// Slots, oldest first.
    fn slots<'a>(&self, nodes: &'a Slab<Node>) -> impl Iterator<Item = u32> + 'a {
        let mut number = self.oldest;
        std::iter::from_fn(move || {
            let node = (number != NIL).then(|| nodes.get(number))?;
            number = node.newer;
            Some(node.slot)
        })
    }
}

/// The policy in NFD's order: see the module.
pub struct PriorityFifo {
    nodes: Slab<Node>,
    unsolicited: Queue,
    asked_for: Queue,
    stale: StaleHeap,
    /// Entries that came so far.
    order: u32,
    /// When the last one came.
    now_ns: u64,
}

impl PriorityFifo {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            nodes: Slab::new(entries, pages)?,
            unsolicited: Queue::EMPTY,
            asked_for: Queue::EMPTY,
            stale: StaleHeap::new(entries, pages)?,
            order: 0,
            now_ns: 0,
        })
    }

    fn enter(&mut self, slot: u32, newcomer: &Newcomer) -> u32 {
        let number = self.nodes.allocate().expect("a policy has room for every entry of its store");
        *self.nodes.get_mut(number) = Node { slot, ..Node::default() };
        self.order = self.order.wrapping_add(1);
        self.now_ns = newcomer.now_ns;
        if newcomer.unsolicited {
            self.unsolicited.push_newest(&mut self.nodes, number);
            return number;
        }
        self.asked_for.push_newest(&mut self.nodes, number);
        let stale_from_ns = match newcomer.fresh_until_ns {
            0 => newcomer.now_ns,
            last_fresh => last_fresh.saturating_add(1),
        };
        let Self { stale, nodes, .. } = self;
        stale.push(StaleFrom { stale_from_ns, order: self.order, member: number }, |member, place| {
            nodes.get_mut(member).heap_place = place;
        });
        number
    }

    /// Removes an entry's node; returns whether it was unsolicited.
    fn leave(&mut self, number: u32) -> bool {
        let Self { stale, nodes, .. } = self;
        let heap_place = nodes.get(number).heap_place;
        let is_unsolicited = heap_place == NIL;
        if is_unsolicited {
            self.unsolicited.remove(nodes, number);
        } else {
            self.asked_for.remove(nodes, number);
            stale.remove(heap_place, |member, place| nodes.get_mut(member).heap_place = place);
        }
        self.nodes.release(number);
        is_unsolicited
    }

    fn slot(&self, number: u32) -> Option<u32> {
        (number != NIL).then(|| self.nodes.get(number).slot)
    }

    fn stale_at(&self, now_ns: u64) -> impl Iterator<Item = u32> + '_ {
        let is_stale = move |entry: &&StaleFrom| entry.stale_from_ns <= now_ns;
        self.stale.entries().iter().take_while(is_stale).map(|entry| entry.member)
    }
}

impl Eviction for PriorityFifo {
    #[inline]
    fn hit(&mut self, _: &mut impl Marks, _: u32) {}

    fn refresh(&mut self, marks: &mut impl Marks, slot: u32, again: &Newcomer) {
        let was_unsolicited = self.leave(marks.mark(slot).place);
        let again = Newcomer { unsolicited: was_unsolicited && again.unsolicited, ..*again };
        marks.mark_mut(slot).place = self.enter(slot, &again);
    }

    fn victim(&mut self, _: &mut impl Marks, newcomer: &Newcomer) -> Option<u32> {
        let stale = self.stale_at(newcomer.now_ns).next();
        let unsolicited = self.slot(self.unsolicited.oldest);
        unsolicited.or_else(|| self.slot(stale.unwrap_or(self.asked_for.oldest)))
    }

    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        marks.mark_mut(slot).place = self.enter(slot, newcomer);
    }

    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.leave(marks.mark(slot).place);
    }

    /// Of the stale entries it returns the first in the heap: nearly the first to go.
    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        let stale = self.stale_at(self.now_ns).filter_map(|number| self.slot(number));
        let unsolicited = self.unsolicited.slots(&self.nodes);
        slots.extend(unsolicited.chain(stale).chain(self.asked_for.slots(&self.nodes)).take(count));
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.stale.grow(entries)?;
        self.nodes.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.nodes.bytes() + self.stale.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cs_policy::named_entry::NamedEntry;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Operation {
        Insert { fresh_ns: u64, unsolicited: bool },
        Refresh { entry: prop::sample::Index, fresh_ns: u64, unsolicited: bool },
        Remove(prop::sample::Index),
        Evict,
        Wait(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let fresh = || prop_oneof![Just(0), 1..30_u64, Just(u64::MAX)];
        prop_oneof![
            6 => (fresh(), prop::bool::weighted(0.2))
                .prop_map(|(fresh_ns, unsolicited)| Operation::Insert { fresh_ns, unsolicited }),
            2 => (any::<prop::sample::Index>(), fresh(), any::<bool>())
                .prop_map(|(entry, fresh_ns, unsolicited)| Operation::Refresh { entry, fresh_ns, unsolicited }),
            1 => any::<prop::sample::Index>().prop_map(Operation::Remove),
            3 => Just(Operation::Evict),
            3 => (0..20_u64).prop_map(Operation::Wait),
        ]
    }

    /// What the model knows, in the order of arrival: (slot, unsolicited, stale from).
    type Known = (u32, bool, u64);

    fn goes_next(list: &[Known], now_ns: u64) -> Option<u32> {
        let unsolicited = list.iter().find(|(_, unsolicited, _)| *unsolicited);
        let stale = list.iter().filter(|(_, _, stale_from)| *stale_from <= now_ns).min_by_key(|known| known.2);
        unsolicited.or(stale).or(list.first()).map(|known| known.0)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_policy_equals_a_list(operations in prop::collection::vec(operation(), 0..400)) {
            const ENTRIES: u32 = 30;
            let mut policy = PriorityFifo::new(ENTRIES, PageSize::Base).unwrap();
            let mut marks = Vec::<NamedEntry>::new();
            let (mut list, mut now_ns): (Vec<Known>, u64) = (Vec::new(), 1);
            let newcomer = |now_ns: u64, fresh_ns: u64, unsolicited| {
                let fresh_until_ns = if fresh_ns == 0 { 0 } else { now_ns.saturating_add(fresh_ns) };
                let stale_from = if fresh_ns == 0 { now_ns } else { fresh_until_ns.saturating_add(1) };
                (Newcomer { fresh_until_ns, now_ns, unsolicited, ..Newcomer::default() }, stale_from)
            };
            for operation in operations {
                match operation {
                    Operation::Insert { fresh_ns, unsolicited } if list.len() < ENTRIES as usize => {
                        let slot = marks.len() as u32;
                        let (newcomer, stale_from) = newcomer(now_ns, fresh_ns, unsolicited);
                        marks.push(NamedEntry::default());
                        policy.insert(&mut marks, slot, &newcomer);
                        list.push((slot, unsolicited, stale_from));
                    }
                    Operation::Refresh { entry, fresh_ns, unsolicited } if !list.is_empty() => {
                        let (slot, was_unsolicited, _) = list.remove(entry.index(list.len()));
                        let (again, stale_from) = newcomer(now_ns, fresh_ns, unsolicited);
                        policy.refresh(&mut marks, slot, &again);
                        list.push((slot, was_unsolicited && unsolicited, stale_from));
                    }
                    Operation::Remove(entry) if !list.is_empty() => {
                        let (slot, ..) = list.remove(entry.index(list.len()));
                        policy.remove(&mut marks, slot, RemovalReason::Erased);
                    }
                    Operation::Evict if !list.is_empty() => {
                        let slot = goes_next(&list, now_ns).unwrap();
                        list.retain(|known| known.0 != slot);
                        policy.remove(&mut marks, slot, RemovalReason::Evicted);
                    }
                    Operation::Wait(ns) => now_ns += ns,
                    _ => {}
                }
                list.iter().for_each(|known| policy.hit(&mut marks, known.0));
                let at = Newcomer { now_ns, ..Newcomer::default() };
                prop_assert_eq!(policy.victim(&mut marks, &at), goes_next(&list, now_ns));
                let mut upcoming = Vec::new();
                policy.upcoming(4, &mut upcoming);
                prop_assert!(upcoming.len() <= 4 && upcoming.is_empty() == list.is_empty());
                prop_assert!(upcoming.iter().all(|slot| list.iter().any(|known| known.0 == *slot)));
            }
        }
    }
}
