//! Face sets: lets a field of 16 bits name a set of more than 16 faces.
//!
//! Source: ours. Yuan15 §5.4.2 says that more than 16 ports need another representation than a bit vector,
//! and leaves it open. Entries with the same faces share one *interned* set, and the field is the set's
//! number; 0 means no face. Most entries have one face, so a router with n faces uses little more than n
//! sets.
//!
//! A set counts the entries that refer to it, and is freed when there is none. When a face is closed, it is
//! removed from the sets, not from the entries. Two sets may then be equal: new entries use one of them,
//! and the other is freed with its last old entry.
//!
//! Cost: a new entry, or an entry that gains a face, touches 1 line of the index and 1 or 2 of sets.
//! Removing an entry touches 1 line. Bytes: a set takes 40, and 2 to 4 of index. Limits: see
//! [`FaceSets::new`]. Full: a new set is refused. Writers: the table's owner.

use super::port_set::PortSet;
use crate::pages::{PageArray, PageSize};
use bytemuck::Zeroable;
use std::io;

/// No set, and the end of a chain.
const NONE: u16 = 0;

#[derive(Clone, Copy, Zeroable)]
struct FaceSet {
    ports: PortSet,
    /// Entries that name it; 0 if it is free.
    references: u32,
    /// The next set of its chain, or the next free one.
    next: u16,
    /// 1 if a chain leads to it: not if it is free, or if a chain leads to an equal set.
    indexed: u16,
}

const _: () = assert!(size_of::<FaceSet>() == 40);

/// All sets of a table.
pub(super) struct FaceSets {
    /// A set's number is its place; place 0 is [`NONE`].
    sets: PageArray<FaceSet>,
    /// A power of two of chains.
    heads: PageArray<u16>,
    free: u16,
    /// Places up to this one were ever used.
    used: u16,
}

impl FaceSets {
    /// Room for at most `max_sets` sets, 1 or more.
    pub(super) fn new(max_sets: u16, pages: PageSize) -> io::Result<Self> {
        let chains = usize::from(max_sets).next_power_of_two();
        Ok(Self {
            sets: PageArray::zeroed(usize::from(max_sets) + 1, pages)?,
            heads: PageArray::zeroed(chains, pages)?,
            free: NONE,
            used: 0,
        })
    }

    /// The set with the ports of set `field` and `port`, for one more entry; `None` if there is no room for
    /// it. The caller releases the entry's hold on `field`.
    pub(super) fn hold_with(&mut self, field: u16, port: u16) -> Option<u16> {
        let mut ports = self.ports(field);
        ports.insert(port);
        let number = self.find(&ports).or_else(|| self.make(ports))?;
        self.sets[usize::from(number)].references += 1;
        Some(number)
    }

    /// An entry no longer names this set.
    pub(super) fn release(&mut self, field: u16) {
        if field == NONE {
            return;
        }
        let set = &mut self.sets[usize::from(field)];
        set.references -= 1;
        if set.references > 0 {
            return;
        }
        if set.indexed != 0 {
            self.unlink(field);
        }
        self.sets[usize::from(field)].next = self.free;
        self.free = field;
    }

    /// The ports of this set.
    #[inline]
    pub(super) fn ports(&self, field: u16) -> PortSet {
        self.sets[usize::from(field)].ports
    }

    /// Removes the ports from every set: one pass over all sets, not over the entries.
    pub(super) fn remove_ports(&mut self, gone: &PortSet) {
        for number in 1..=self.used {
            let set = self.sets[usize::from(number)];
            if set.references == 0 || !set.ports.intersects(gone) {
                continue;
            }
            if set.indexed != 0 {
                self.unlink(number);
            }
            let ports = &mut self.sets[usize::from(number)].ports;
            ports.remove(gone);
            let ports = *ports;
            if self.find(&ports).is_none() {
                self.link(number);
            }
        }
    }

    /// Bytes of memory, as allocated.
    pub(super) fn bytes(&self) -> usize {
        self.sets.mapped_bytes() + self.heads.mapped_bytes()
    }

    /// The chain of this set.
    fn chain(&self, ports: &PortSet) -> usize {
        (ports.digest() >> 40) as usize & (self.heads.len() - 1)
    }

    fn find(&self, ports: &PortSet) -> Option<u16> {
        let mut number = self.heads[self.chain(ports)];
        while number != NONE {
            let set = &self.sets[usize::from(number)];
            if set.ports == *ports {
                return Some(number);
            }
            number = set.next;
        }
        None
    }

    fn make(&mut self, ports: PortSet) -> Option<u16> {
        let number = if self.free != NONE {
            let number = self.free;
            self.free = self.sets[usize::from(number)].next;
            number
        } else if usize::from(self.used) + 1 < self.sets.len() {
            self.used += 1;
            self.used
        } else {
            return None;
        };
        self.sets[usize::from(number)] = FaceSet { ports, ..FaceSet::zeroed() };
        self.link(number);
        Some(number)
    }

    fn link(&mut self, number: u16) {
        let chain = self.chain(&self.ports(number));
        let set = &mut self.sets[usize::from(number)];
        set.next = self.heads[chain];
        set.indexed = 1;
        self.heads[chain] = number;
    }

    fn unlink(&mut self, number: u16) {
        let chain = self.chain(&self.ports(number));
        let set = &mut self.sets[usize::from(number)];
        set.indexed = 0;
        let next = set.next;
        let mut before = self.heads[chain];
        if before == number {
            self.heads[chain] = next;
            return;
        }
        while self.sets[usize::from(before)].next != number {
            before = self.sets[usize::from(before)].next;
        }
        self.sets[usize::from(before)].next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_use(sets: &FaceSets) -> usize {
        sets.sets.iter().filter(|set| set.references > 0).count()
    }

    #[test]
    fn entries_with_the_same_faces_share_a_set() {
        let mut sets = FaceSets::new(2, PageSize::Base).unwrap();
        let one = sets.hold_with(NONE, 200).unwrap();
        assert_eq!(sets.hold_with(NONE, 200), Some(one));
        let both = sets.hold_with(one, 7).unwrap();
        assert_eq!(sets.ports(both).iter().collect::<Vec<_>>(), [7, 200]);
        assert_eq!(sets.hold_with(NONE, 8), None, "two are the limit");
        sets.release(one);
        assert_eq!(sets.hold_with(NONE, 8), None, "one entry still names it");
        sets.release(one);
        assert!(sets.hold_with(NONE, 8).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Entries come, gain faces, go; faces go.
        #[test]
        fn fields_stand_for_their_faces(operations in prop::collection::vec((0..6_u8, 0..12_usize, 0..7_u16), 1..300)) {
            let mut sets = FaceSets::new(9, PageSize::Base).unwrap();
            let mut entries = [(NONE, PortSet::EMPTY); 12];
            for (operation, place, port) in operations {
                let (field, ports) = &mut entries[place];
                match operation {
                    0 => {
                        sets.release(*field);
                        (*field, *ports) = (NONE, PortSet::EMPTY);
                    }
                    1 => {
                        let gone = [port, (place % 7) as u16].into_iter().collect();
                        sets.remove_ports(&gone);
                        entries.iter_mut().for_each(|(_, ports)| ports.remove(&gone));
                    }
                    _ => {
                        if let Some(number) = sets.hold_with(*field, port) {
                            sets.release(*field);
                            *field = number;
                            ports.insert(port);
                        } else {
                            prop_assert_eq!(in_use(&sets), 9, "refused with room");
                        }
                    }
                }
                for (field, ports) in &entries {
                    prop_assert_eq!(sets.ports(*field), *ports);
                }
            }
            entries.iter().for_each(|(field, _)| sets.release(*field));
            prop_assert_eq!(in_use(&sets), 0);
            prop_assert!(sets.heads.iter().all(|&head| head == NONE), "no chain leads to a free set");
        }
    }
}
