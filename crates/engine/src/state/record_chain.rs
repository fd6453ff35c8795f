//! Record chains: the in- and out-records of PIT entries, without a buffer per entry.
//!
//! The first record of an entry is in the entry itself, and is nearly always the only one. Further ones are nodes of
//! one pool for all entries, so that the data plane never allocates. The pool maps its memory at the start and touches
//! it when used.
//!
//! Cost: the first record costs nothing beyond the entry. Each further one costs a cache line; chains are walked in
//! order. Memory: a node takes the record and 8 bytes. When the pool is full, [`RecordPool::append`] returns `None`.
//! Writer: the engine that owns the pool.

use namewire_tables::{PageSize, PageVec};
use std::io;

/// No node.
const NIL: u32 = u32::MAX;

/// The records of one entry, in the order of arrival. [`RecordPool::clear`] empties it. Dropping it without that leaks
/// its nodes.
#[derive(Debug)]
pub struct RecordChain<T> {
    first: T,
    length: u16,
    /// The second record.
    rest: u32,
}

impl<T: Default> Default for RecordChain<T> {
    fn default() -> Self {
        RecordChain { first: T::default(), length: 0, rest: NIL }
    }
}

impl<T> RecordChain<T> {
    /// How many records there are.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Removes the only record, or nothing if there is none. There must be no further ones.
    #[inline(always)]
    pub(crate) fn forget_first(&mut self) {
        debug_assert!(self.length <= 1 && self.rest == NIL, "further records would leak");
        self.length = 0;
    }

    /// The only record, if there is one and no other.
    #[inline(always)]
    pub fn only(&self) -> Option<&T> {
        (self.length == 1).then_some(&self.first)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    record: T,
    next: u32,
}

/// The records of all entries, except the first of each.
pub struct RecordPool<T> {
    nodes: PageVec<Node<T>>,
    free: u32,
}

impl<T: Copy + Default> RecordPool<T> {
    /// A pool of at most `capacity` records.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(capacity: u32, pages: PageSize) -> io::Result<Self> {
        Ok(RecordPool { nodes: PageVec::with_capacity(capacity as usize, pages)?, free: NIL })
    }

    /// The records of `chain`, in the order of arrival.
    #[inline]
    pub fn iter<'a>(&'a self, chain: &'a RecordChain<T>) -> impl Iterator<Item = &'a T> {
        let mut node = chain.rest;
        let rest = std::iter::from_fn(move || {
            let Node { record, next } = self.nodes.get(node as usize)?;
            node = *next;
            Some(record)
        });
        (!chain.is_empty()).then_some(&chain.first).into_iter().chain(rest)
    }

    /// The first record of `chain` that `is_wanted`, to be changed.
    #[inline]
    pub fn find_mut<'a>(
        &'a mut self,
        chain: &'a mut RecordChain<T>,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Option<&'a mut T> {
        if chain.is_empty() {
            return None;
        }
        if is_wanted(&chain.first) {
            return Some(&mut chain.first);
        }
        let mut place = chain.rest;
        while let Some(node) = self.nodes.get(place as usize) {
            if is_wanted(&node.record) {
                return Some(&mut self.nodes[place as usize].record);
            }
            place = node.next;
        }
        None
    }

    /// Appends a record, for the caller to write. `None`, and no change, if the pool is full.
    ///
    /// N.B. Written in place: passed by value, the fields were stored one by one and then copied in pieces of 16 bytes.
    /// Each piece waited for the stores to leave the core. Nine tenths of a profile's samples of this call fell on that
    /// copy.
    #[must_use]
    #[inline(always)]
    pub fn append<'a>(&'a mut self, chain: &'a mut RecordChain<T>) -> Option<&'a mut T> {
        if chain.is_empty() {
            return Some(Self::begin(chain));
        }
        self.append_node(chain)
    }

    /// The first record of an empty chain, for the caller to write.
    #[inline(always)]
    pub fn begin(chain: &mut RecordChain<T>) -> &mut T {
        debug_assert!(chain.is_empty(), "the chain has a first record");
        chain.length = 1;
        &mut chain.first
    }

    #[inline(never)]
    fn append_node(&mut self, chain: &mut RecordChain<T>) -> Option<&mut T> {
        if chain.length == u16::MAX {
            return None;
        }
        let new = self.allocate(Node { record: T::default(), next: NIL })?;
        match self.last_node(chain.rest) {
            NIL => chain.rest = new,
            last => self.nodes[last as usize].next = new,
        }
        chain.length += 1;
        Some(&mut self.nodes[new as usize].record)
    }

    /// Removes the records for which `keep` is false.
    pub fn retain(&mut self, chain: &mut RecordChain<T>, mut keep: impl FnMut(&T) -> bool) {
        while !chain.is_empty() && !keep(&chain.first) {
            self.remove_first(chain);
        }
        let mut previous = NIL;
        let mut place = chain.rest;
        while let Some(&Node { record, next }) = self.nodes.get(place as usize) {
            if keep(&record) {
                previous = place;
            } else {
                match previous {
                    NIL => chain.rest = next,
                    node => self.nodes[node as usize].next = next,
                }
                chain.length -= 1;
                self.release(place);
            }
            place = next;
        }
    }

    /// Removes all records.
    #[inline(always)]
    pub fn clear(&mut self, chain: &mut RecordChain<T>) {
        if chain.rest != NIL {
            self.clear_nodes(chain);
        }
        chain.length = 0;
    }

    #[cold]
    fn clear_nodes(&mut self, chain: &mut RecordChain<T>) {
        while chain.rest != NIL {
            let next = self.nodes[chain.rest as usize].next;
            self.release(chain.rest);
            chain.rest = next;
        }
    }

    fn remove_first(&mut self, chain: &mut RecordChain<T>) {
        chain.length -= 1;
        if let Some(&Node { record, next }) = self.nodes.get(chain.rest as usize) {
            self.release(chain.rest);
            (chain.first, chain.rest) = (record, next);
        }
    }

    fn last_node(&self, first: u32) -> u32 {
        let mut last = first;
        while let Some(&Node { next, .. }) = self.nodes.get(last as usize)
            && next != NIL
        {
            last = next;
        }
        last
    }

    fn allocate(&mut self, node: Node<T>) -> Option<u32> {
        if let Some(free) = self.nodes.get_mut(self.free as usize) {
            let place = self.free;
            self.free = free.next;
            *free = node;
            return Some(place);
        }
        if self.nodes.len() == self.nodes.capacity() {
            return None;
        }
        self.nodes.push(node);
        Some(self.nodes.len() as u32 - 1)
    }

    fn release(&mut self, place: u32) {
        self.nodes[place as usize].next = self.free;
        self.free = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Operation {
        Push(usize, u8),
        Change(usize, u8),
        Retain(usize, u8),
        Clear(usize),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let (chain, value) = (0..3_usize, 0..6_u8);
        prop_oneof![
            5 => (chain.clone(), value.clone()).prop_map(|(chain, value)| Operation::Push(chain, value)),
            2 => (chain.clone(), value.clone()).prop_map(|(chain, value)| Operation::Change(chain, value)),
            2 => (chain.clone(), value).prop_map(|(chain, value)| Operation::Retain(chain, value)),
            1 => chain.prop_map(Operation::Clear),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Three chains on one small pool equal three vectors; a refused append changes nothing.
        #[test]
        fn chains_equal_vectors(operations in prop::collection::vec(operation(), 0..200)) {
            let mut pool = RecordPool::new(7, PageSize::Base).unwrap();
            let mut chains: [RecordChain<u8>; 3] = Default::default();
            let mut models: [Vec<u8>; 3] = Default::default();
            for operation in operations {
                match operation {
                    Operation::Push(chain, value) => {
                        let in_nodes: usize = models.iter().map(|model| model.len().saturating_sub(1)).sum();
                        let fits = models[chain].is_empty() || in_nodes < 7;
                        let place = pool.append(&mut chains[chain]);
                        prop_assert_eq!(place.is_some(), fits);
                        place.into_iter().for_each(|place| *place = value);
                        if fits {
                            models[chain].push(value);
                        }
                    }
                    Operation::Change(chain, value) => {
                        let found = pool.find_mut(&mut chains[chain], |record| *record == value);
                        let model = models[chain].iter_mut().find(|record| **record == value);
                        prop_assert_eq!(found.is_some(), model.is_some());
                        if let (Some(found), Some(model)) = (found, model) {
                            (*found, *model) = (value + 100, value + 100);
                        }
                    }
                    Operation::Retain(chain, value) => {
                        pool.retain(&mut chains[chain], |record| *record % 6 != value);
                        models[chain].retain(|record| *record % 6 != value);
                    }
                    Operation::Clear(chain) => {
                        pool.clear(&mut chains[chain]);
                        models[chain].clear();
                    }
                }
                for (chain, model) in chains.iter().zip(&models) {
                    prop_assert!(pool.iter(chain).eq(model.iter()));
                    prop_assert_eq!((chain.len(), chain.is_empty()), (model.len(), model.is_empty()));
                }
            }
        }
    }
}
