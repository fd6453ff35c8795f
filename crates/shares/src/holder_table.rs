//! Holder table: gives each holder a small number, and knows the group of each number.
//!
//! Faces carry the number, and pools count by it. The range of a number is its class:
//!
//! ```text
//!   0            management
//!   1 ..   256   local holders; the last one is shared by those that find no free number
//!   256 .. 4096  remote holders; the last 64 are shared in the same way
//! ```
//!
//! A holder keeps its number while it has faces, and afterwards until another holder needs the number. So a host that
//! comes again still has its debts. The table reuses the number that has been free longest. If a pool still counts
//! something for the former holder, the next holder starts with that count.
//!
//! Limits: there are separate numbers for 254 local and 3776 remote holders with faces, and for 1022 groups. Further
//! holders share a number and thus one share. This is worse for them, but their use stays bounded.
//! [`HolderTable::sharing`] counts them. A group has [`NUMBERS_PER_GROUP`] numbers; its further members share one.
//!
//! Cost: one lock and one hash look-up when a face is made or closed. Pools read the group of a number from a table of
//! atomics, without a lock.

use crate::holder::{Class, Holder};
use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

/// Numbers of holders: the length of every pool's table.
pub(crate) const IDS: usize = 4096;

/// Numbers of groups, of which 0 means none and the last one is shared.
pub(crate) const GROUPS: usize = 1024;

/// Numbers that the members of one group may have, each for itself.
pub const NUMBERS_PER_GROUP: u32 = 64;

const LOCAL: Range<u16> = 1..256;
const LOCAL_SHARED: u16 = 1;
const REMOTE: Range<u16> = 256..IDS as u16;
const REMOTE_SHARED: u16 = 64;
const GROUP_SHARED: u16 = GROUPS as u16 - 1;

/// The number of a holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId(u16);

impl HolderId {
    /// The router's management.
    pub const MANAGEMENT: HolderId = HolderId(0);
    /// A local holder for tests and simulations, which have no table.
    pub const ANY_LOCAL: HolderId = HolderId(LOCAL.start);
    /// The same, remote.
    pub const ANY_REMOTE: HolderId = HolderId(REMOTE.start);

    /// The holder with this number, if there can be one.
    pub fn from_index(index: usize) -> Option<Self> {
        (index < IDS).then_some(HolderId(index as u16))
    }

    /// The number.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The class.
    #[inline(always)]
    pub fn class(self) -> Class {
        Class::ALL[usize::from(self.0 >= LOCAL.start) + usize::from(self.0 >= REMOTE.start)]
    }
}

/// The group of each number; clones are the same table.
#[derive(Clone, Debug)]
pub struct Groups(Arc<[AtomicU16]>);

impl Groups {
    /// The group of a number; 0 for none.
    #[inline]
    pub(crate) fn of(&self, holder: HolderId) -> u16 {
        self.0[holder.index()].load(Ordering::Relaxed)
    }
}

impl Default for Groups {
    /// A table without groups.
    fn default() -> Self {
        Groups((0..IDS).map(|_| AtomicU16::new(0)).collect())
    }
}

/// The holders of a router; clones are the same table.
#[derive(Clone, Debug, Default)]
pub struct HolderTable {
    entries: Arc<Mutex<Entries>>,
    groups: Groups,
}

#[derive(Debug)]
struct Entries {
    numbers: HashMap<Holder, HolderId>,
    slots: Box<[Slot]>,
    local: FreeNumbers,
    remote: FreeNumbers,
    groups: HashMap<Holder, Group>,
    free_groups: FreeNumbers,
    sharing: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    holder: Option<Holder>,
    faces: u32,
    is_free: bool,
}

#[derive(Debug)]
struct Group {
    number: u16,
    /// Holders with a number.
    holders: u32,
}

/// Numbers that can be given: those never used, then those free longest.
#[derive(Debug)]
struct FreeNumbers {
    unused: Range<u16>,
    free: VecDeque<u16>,
}

impl FreeNumbers {
    fn new(numbers: Range<u16>, shared: u16) -> Self {
        FreeNumbers { unused: numbers.start..numbers.end - shared, free: VecDeque::new() }
    }
}

impl Default for Entries {
    fn default() -> Self {
        Entries {
            numbers: HashMap::new(),
            slots: vec![Slot::default(); IDS].into(),
            local: FreeNumbers::new(LOCAL, LOCAL_SHARED),
            remote: FreeNumbers::new(REMOTE, REMOTE_SHARED),
            groups: HashMap::new(),
            free_groups: FreeNumbers::new(1..GROUPS as u16, 1),
            sharing: 0,
        }
    }
}

impl HolderTable {
    /// Notes that a holder has one more face. [`HolderTable::leave`] must follow once.
    pub fn enter(&self, holder: &Holder) -> HolderId {
        let mut entries = self.entries();
        let id = entries.number(holder, &self.groups);
        entries.slots[id.index()].faces += 1;
        id
    }

    /// Notes that the holder has one face less.
    pub fn leave(&self, id: HolderId) {
        self.entries().leave(id);
    }

    /// The groups, for pools.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The holder that a number belongs to, in words.
    pub fn describe(&self, id: HolderId) -> String {
        if id == HolderId::MANAGEMENT {
            return Holder::Management.to_string();
        }
        let holder = self.entries().slots[id.index()].holder.as_ref().map(Holder::to_string);
        holder.unwrap_or_else(|| format!("several ({})", id.index()))
    }

    /// How often a holder had to share its number.
    pub fn sharing(&self) -> u64 {
        self.entries().sharing
    }

    // After a panic the entries are still whole enough to count faces.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn number(&mut self, holder: &Holder, groups: &Groups) -> HolderId {
        let class = holder.class();
        if class == Class::Management {
            return HolderId::MANAGEMENT;
        }
        if let Some(&id) = self.numbers.get(holder) {
            return id;
        }
        let holder = self.within_group(holder);
        if let Some(&id) = self.numbers.get(&*holder) {
            return id;
        }
        let Some(number) = self.take_number(class) else {
            self.sharing += 1;
            return shared_number(&holder);
        };
        let id = HolderId(number);
        let slot = &mut self.slots[id.index()];
        if let Some(former) = slot.holder.replace(holder.clone().into_owned()) {
            self.numbers.remove(&former);
            self.leave_group(&former);
        }
        let group = self.enter_group(&holder);
        self.numbers.insert(holder.into_owned(), id);
        groups.0[id.index()].store(group, Ordering::Relaxed);
        id
    }

    /// The holder, or its group if that has as many numbers as it may.
    fn within_group<'a>(&self, holder: &'a Holder) -> Cow<'a, Holder> {
        match holder.group() {
            Some(all) if self.groups.get(&all).is_some_and(|group| group.holders >= NUMBERS_PER_GROUP) => {
                Cow::Owned(all)
            }
            _ => Cow::Borrowed(holder),
        }
    }

    /// A number without faces.
    fn take_number(&mut self, class: Class) -> Option<u16> {
        let numbers = if class == Class::Local { &mut self.local } else { &mut self.remote };
        if let Some(number) = numbers.unused.next() {
            return Some(number);
        }
        while let Some(number) = numbers.free.pop_front() {
            let slot = &mut self.slots[usize::from(number)];
            slot.is_free = false;
            if slot.faces == 0 {
                return Some(number);
            }
            // Its holder has come again meanwhile.
        }
        None
    }

    fn leave(&mut self, id: HolderId) {
        let slot = &mut self.slots[id.index()];
        slot.faces = slot.faces.saturating_sub(1);
        if slot.faces == 0 && slot.holder.is_some() && !slot.is_free {
            slot.is_free = true;
            let numbers = if id.class() == Class::Local { &mut self.local } else { &mut self.remote };
            numbers.free.push_back(id.0);
        }
    }

    fn enter_group(&mut self, holder: &Holder) -> u16 {
        let Some(key) = holder.group() else { return 0 };
        if let Some(group) = self.groups.get_mut(&key) {
            group.holders += 1;
            return group.number;
        }
        let numbers = &mut self.free_groups;
        let Some(number) = numbers.unused.next().or_else(|| numbers.free.pop_front()) else {
            self.sharing += 1;
            return GROUP_SHARED;
        };
        self.groups.insert(key, Group { number, holders: 1 });
        number
    }

    fn leave_group(&mut self, former: &Holder) {
        // A holder that entered while numbers were short may leave a group that it did not enter: the group then ends
        // early, and its members get a new one with their next number.
        let Some(key) = former.group() else { return };
        let Some(group) = self.groups.get_mut(&key) else { return };
        group.holders -= 1;
        if group.holders == 0 {
            let number = group.number;
            self.groups.remove(&key);
            self.free_groups.free.push_back(number);
        }
    }
}

/// The number that a holder shares with others if all are in use. Holders of a group share one.
fn shared_number(holder: &Holder) -> HolderId {
    if holder.class() == Class::Local {
        return HolderId(LOCAL.end - LOCAL_SHARED);
    }
    let bytes = |bytes: &[u8]| bytes.iter().fold(0, |key: u64, &byte| key.rotate_left(8) ^ u64::from(byte));
    let key = match holder {
        Holder::Ipv4(address) => u64::from(address.to_bits()),
        Holder::Ipv6Network(network) => network >> 16,
        Holder::Ipv6Site(site) => *site,
        Holder::Ipv6Neighbour(address) => address.to_bits() as u64,
        Holder::Station { interface, .. } | Holder::Link(interface) => bytes(interface.as_bytes()),
        _ => 0,
    };
    // Fibonacci hashing: the upper bits of the product are evenly distributed.
    let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u16 % REMOTE_SHARED;
    HolderId(REMOTE.end - REMOTE_SHARED + place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::MacAddress;
    use std::collections::HashSet;

    fn remote(number: u32) -> Holder {
        Holder::Ipv4(number.into())
    }

    #[test]
    fn a_holder_keeps_its_number_until_another_needs_it() {
        let table = HolderTable::default();
        let first = table.enter(&remote(1));
        assert_eq!(table.enter(&remote(1)), first);
        table.leave(first);
        table.leave(first);
        assert_eq!(table.enter(&remote(1)), first, "it comes again");
        table.leave(first);
        let own = (REMOTE.len() - usize::from(REMOTE_SHARED)) as u32;
        let others: Vec<HolderId> = (2..=own).map(|number| table.enter(&remote(number))).collect();
        assert!(others.iter().all(|&other| other != first && other.class() == Class::Remote));
        assert_eq!(table.enter(&remote(own + 1)), first, "the only free one");
        assert_eq!((table.describe(first), table.sharing()), (remote(own + 1).to_string(), 0));
    }

    #[test]
    fn too_many_holders_share_numbers_and_local_ones_are_not_among_them() {
        let table = HolderTable::default();
        for number in 0..20_000 {
            assert_eq!(table.enter(&remote(number)).class(), Class::Remote);
        }
        assert!(table.sharing() > 16_000);
        let local = table.enter(&Holder::User(1000));
        assert_eq!((local.class(), table.describe(local).as_str()), (Class::Local, "user 1000"));
        let shared = table.enter(&remote(30_000));
        assert!(table.describe(shared).starts_with("several"));
        for user in 0..1_000 {
            assert_eq!(table.enter(&Holder::User(user)).class(), Class::Local);
        }
    }

    #[test]
    fn networks_of_a_site_have_one_group_and_others_have_none() {
        let table = HolderTable::default();
        let network = |number: u64| Holder::Ipv6Network(0x2001_0db8_0000_0000 + number);
        let group = |holder: &Holder| table.groups().of(table.enter(holder));
        let site = group(&network(0));
        assert!(site > 0);
        assert_eq!(group(&network(0xffff)), site);
        assert_ne!(group(&network(0x1_0000)), site);
        assert_eq!((group(&remote(1)), group(&Holder::User(1))), (0, 0));
        let numbers: HashSet<HolderId> = (0..10_000).map(|number| table.enter(&network(number))).collect();
        assert_eq!(
            numbers.len(),
            NUMBERS_PER_GROUP as usize,
            "one of a network above is not here, one is for the rest"
        );
        assert_eq!(table.describe(table.enter(&network(9_999))), "2001:db8::/48");
        for number in 0..3_000 {
            let group = usize::from(group(&network(number << 16)));
            assert!((1..GROUPS).contains(&group), "{group}");
        }
    }

    #[test]
    fn stations_of_a_link_have_one_group_and_no_more_numbers_than_others() {
        let table = HolderTable::default();
        let station = |interface: &str, number: u32| {
            let [a, b, c, d] = number.to_be_bytes();
            Holder::Station { interface: interface.to_owned(), address: MacAddress([2, 0, a, b, c, d]) }
        };
        let group = |holder: &Holder| table.groups().of(table.enter(holder));
        let link = group(&station("eth0", 0));
        assert!(link > 0);
        assert_eq!(group(&station("eth0", 1)), link);
        assert_ne!(group(&station("eth1", 1)), link);
        let numbers: HashSet<HolderId> = (0..10_000).map(|number| table.enter(&station("eth0", number))).collect();
        assert_eq!(numbers.len(), NUMBERS_PER_GROUP as usize + 1, "one is for the rest");
        assert_eq!(table.describe(table.enter(&station("eth0", 9_999))), "stations%eth0");
    }
}
