//! Event queue: the next event, and the virtual clock of a network.
//!
//! Time advances only when an event is taken, to the time of that event. Events of the same time are taken in the order
//! of scheduling, so that a run depends on its seed alone.
//!
//! Events lie in slots, and the heap orders 24-byte keys: a heap of whole events moves some hundred bytes a level.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in order of virtual time.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Scheduled>>,
    slots: Vec<Option<E>>,
    free_slots: Vec<u32>,
    now_ns: u64,
    scheduled: u64,
}

/// An event's time, its place in the order of scheduling (the tie-breaker), and its slot. Compared in this order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    at_ns: u64,
    order: u64,
    slot: u32,
}

impl<E> EventQueue<E> {
    /// An empty queue at time `start_ns`.
    pub(crate) fn new(start_ns: u64) -> Self {
        EventQueue {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            now_ns: start_ns,
            scheduled: 0,
        }
    }

    /// Virtual time, in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Schedules `event`; a time in the past means now.
    pub(crate) fn schedule(&mut self, at_ns: u64, event: E) {
        let order = self.scheduled;
        self.scheduled += 1;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(event);
        self.heap.push(Reverse(Scheduled { at_ns: at_ns.max(self.now_ns), order, slot }));
    }

    /// Advances the clock to the next event up to `until_ns` and returns the event. Without such an event the clock
    /// advances to `until_ns`.
    pub(crate) fn next_until(&mut self, until_ns: u64) -> Option<E> {
        if self.heap.peek().is_none_or(|Reverse(next)| next.at_ns > until_ns) {
            self.now_ns = self.now_ns.max(until_ns);
            return None;
        }
        let Reverse(next) = self.heap.pop()?;
        self.now_ns = next.at_ns;
        self.free_slots.push(next.slot);
        self.slots[next.slot as usize].take()
    }

    /// True if nothing is scheduled.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_order_of_scheduling() {
        let mut queue = EventQueue::new(100);
        for (at_ns, event) in [(300, 'd'), (200, 'b'), (50, 'a'), (200, 'c'), (900, 'z')] {
            queue.schedule(at_ns, event);
        }
        let mut seen = Vec::new();
        while let Some(event) = queue.next_until(500) {
            seen.push((queue.now_ns(), event));
        }
        assert_eq!(seen, [(100, 'a'), (200, 'b'), (200, 'c'), (300, 'd')]);
        assert_eq!((queue.now_ns(), queue.is_empty()), (500, false));
        assert_eq!((queue.next_until(900), queue.now_ns()), (Some('z'), 900));
    }
}
