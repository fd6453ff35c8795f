//! Pools against an oracle that is slow and obviously right, and tests of what the rule guarantees.

use namewire_shares::{Class, Groups, Holder, HolderId, HolderTable, Holding, Pool, PoolConfig, Refusal};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CAPACITY: u64 = 10_000;
const MANAGEMENT_RESERVE: u64 = 100;
const LOCAL_RESERVE: u64 = 1_000;

fn config(share_percent: u32) -> PoolConfig {
    PoolConfig {
        name: "test",
        capacity: CAPACITY,
        share_percent,
        management_reserve: MANAGEMENT_RESERVE,
        local_reserve: LOCAL_RESERVE,
    }
}

/// Management, two users, two IPv4 hosts, and networks of two sites.
fn holders() -> (HolderTable, Vec<(Holder, HolderId)>) {
    let table = HolderTable::default();
    let mut holders = vec![Holder::Management, Holder::User(0), Holder::User(1000)];
    holders.extend(["192.0.2.1", "192.0.2.2"].map(|address| Holder::of_address(address.parse().unwrap(), false)));
    for site in 1..=2 {
        let network = |host: u32| format!("2001:db8:{site}:{host}::1").parse().unwrap();
        holders.extend((0..3).map(|host| Holder::of_address(network(host), false)));
    }
    let ids = holders.iter().map(|holder| table.enter(holder)).collect::<Vec<_>>();
    let holders = holders.into_iter().zip(ids).collect();
    (table, holders)
}

/// What each holder has; everything else is computed from it anew.
struct Oracle {
    share_percent: u64,
    held: BTreeMap<HolderId, u64>,
    sites: BTreeMap<HolderId, String>,
}

impl Oracle {
    fn of(&self, class: Class) -> u64 {
        self.held.iter().filter(|(holder, _)| holder.class() == class).map(|(_, held)| held).sum()
    }

    fn used(&self) -> u64 {
        self.held.values().sum()
    }

    fn free(&self, class: Class) -> u64 {
        let [management, local] = [Class::Management, Class::Local].map(|class| self.of(class));
        let of_management = if class > Class::Management { MANAGEMENT_RESERVE.saturating_sub(management) } else { 0 };
        let of_local = if class > Class::Local { LOCAL_RESERVE.saturating_sub(local) } else { 0 };
        CAPACITY.saturating_sub(self.used() + of_management + of_local)
    }

    fn weight(&self, holder: HolderId) -> u64 {
        match self.sites.get(&holder) {
            None => self.held[&holder],
            Some(site) => {
                self.sites.iter().filter(|(_, other)| *other == site).map(|(holder, _)| self.held[holder]).sum()
            }
        }
    }

    fn may_take(&self, holder: HolderId, amount: u64) -> Result<(), Refusal> {
        let free = self.free(holder.class());
        match () {
            () if amount > free => Err(Refusal::PoolFull),
            () if self.weight(holder) * (100 - self.share_percent) >= self.share_percent * free => {
                Err(Refusal::ShareUsed)
            }
            () => Ok(()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_equals_its_oracle(
        share_percent in 1_u32..=100,
        operations in prop::collection::vec((0_usize..11, 1_u64..2_000, any::<bool>()), 0..400),
    ) {
        let (table, holders) = holders();
        let mut pool = Pool::new(config(share_percent), table.groups());
        let site = |holder: &Holder| holder.to_string().starts_with("2001").then(|| holder.to_string()[..10].to_owned());
        let mut oracle = Oracle {
            share_percent: share_percent.into(),
            held: holders.iter().map(|(_, id)| (*id, 0)).collect(),
            sites: holders.iter().filter_map(|(holder, id)| Some((*id, site(holder)?))).collect(),
        };
        let mut refused = 0;
        for (which, amount, takes) in operations {
            let id = holders[which].1;
            if takes {
                let expected = oracle.may_take(id, amount);
                prop_assert_eq!(pool.may_take(id, amount), expected);
                prop_assert_eq!(pool.room(id) > 0, oracle.may_take(id, 1).is_ok());
                prop_assert_eq!(pool.try_take(id, amount), expected);
                refused += u64::from(expected.is_err());
                *oracle.held.get_mut(&id).unwrap() += if expected.is_ok() { amount } else { 0 };
            } else {
                let amount = amount.min(oracle.held[&id]);
                pool.give_back(id, amount);
                *oracle.held.get_mut(&id).unwrap() -= amount;
            }
            let has = oracle.held[&id];
            prop_assert_eq!((pool.held(id), pool.used()), (has, oracle.used()));
            for class in Class::ALL {
                prop_assert_eq!(pool.free(class), oracle.free(class));
                let of_class = oracle.held.iter().filter(|(id, _)| id.class() == class);
                let most = of_class.map(|(_, held)| *held).max().unwrap_or(0);
                let heaviest = pool.heaviest(class);
                prop_assert_eq!(heaviest.is_some(), most > 0);
                prop_assert!(heaviest.is_none_or(|id| id.class() == class && pool.held(id) * 2 >= most));
            }
            let beside = pool.heaviest_beside(id);
            prop_assert!(beside.is_none_or(|other| other != id && pool.held(other) > 0 && other.class() >= id.class()));
        }
        let reader = pool.reader();
        let held = reader.holdings().filter(|holding| holding.held > 0).map(|Holding { holder, held, .. }| (holder, held));
        let expected: Vec<_> = oracle.held.iter().filter(|(_, held)| **held > 0).map(|(id, held)| (*id, *held)).collect();
        prop_assert_eq!(held.collect::<Vec<_>>(), expected);
        prop_assert_eq!(reader.refused().iter().sum::<u64>(), refused);
        prop_assert_eq!(reader.holdings().map(|holding| holding.refused).sum::<u64>(), refused);
    }

    /// Whatever others do: a newcomer finds something while its class has anything, and reserves are there.
    #[test]
    fn newcomers_and_reserves_are_never_locked_out(
        attackers in 1_usize..300,
        amounts in prop::collection::vec(1_u64..50, 100..2_000),
    ) {
        let table = HolderTable::default();
        let mut pool = Pool::new(config(80), table.groups());
        let ids: Vec<_> = (0..attackers as u32).map(|number| table.enter(&Holder::Ipv4(number.into()))).collect();
        for (turn, &amount) in amounts.iter().enumerate() {
            let _ = pool.try_take(ids[turn % attackers], amount);
            let newcomer = table.enter(&Holder::Ipv4(u32::MAX.into()));
            prop_assert_eq!(pool.may_take(newcomer, 1).is_ok(), pool.free(Class::Remote) > 0);
            table.leave(newcomer);
            prop_assert!(pool.used() <= CAPACITY - MANAGEMENT_RESERVE - LOCAL_RESERVE);
            prop_assert!(pool.may_take(table.enter(&Holder::User(7)), LOCAL_RESERVE).is_ok());
            prop_assert!(pool.may_take(HolderId::MANAGEMENT, MANAGEMENT_RESERVE).is_ok());
        }
    }
}

#[test]
fn greedy_holders_leave_the_part_that_the_rule_guarantees() {
    for flooders in 1..=6 {
        let table = HolderTable::default();
        let mut pool = Pool::new(PoolConfig { management_reserve: 0, local_reserve: 0, ..config(80) }, table.groups());
        let ids: Vec<_> = (0..flooders).map(|number| table.enter(&Holder::Ipv4(number.into()))).collect();
        for _ in 0..CAPACITY {
            ids.iter().for_each(|&id| _ = pool.try_take(id, 1));
        }
        let wanted = CAPACITY as f64 * 4.0 / (1.0 + 4.0 * f64::from(flooders));
        let held: Vec<u64> = ids.iter().map(|&id| pool.held(id)).collect();
        assert!(held.iter().all(|&held| (held as f64 - wanted).abs() < 4.0), "{held:?}");
        assert!((pool.free(Class::Remote) as f64 - wanted / 4.0).abs() < 8.0, "{held:?}");
    }
}

/// The story: one host has 65,536 networks of 64 bits if its provider gives it a network of 48.
#[test]
fn a_site_has_the_share_of_one_holder() {
    let table = HolderTable::default();
    let mut pool = Pool::new(config(80), table.groups());
    let network = |number: u64| Holder::Ipv6Network(0x2001_0db8_0001_0000 + number);
    for _ in 0..CAPACITY {
        for number in 0..200 {
            let _ = pool.try_take(table.enter(&network(number)), 1);
        }
    }
    let all = CAPACITY - MANAGEMENT_RESERVE - LOCAL_RESERVE;
    assert_eq!(pool.used(), all * 4 / 5);
    let other = table.enter(&Holder::Ipv6Network(0x2001_0db8_0002_0000));
    assert_eq!(pool.try_take(other, all / 5), Ok(()));
}

/// A number that another holder gets takes its debts along, and the sums stay right.
#[test]
fn a_number_that_changes_hands_keeps_its_debts() {
    let table = HolderTable::default();
    let mut pool = Pool::new(config(80), table.groups());
    let site = Holder::Ipv6Network(0x2001_0db8_0001_0000);
    let id = table.enter(&site);
    pool.take(id, 500);
    table.leave(id);
    let remote = |number: u32| table.enter(&Holder::Ipv4(number.into()));
    let next = (0..5_000).map(remote).find(|&other| other == id).expect("the number is used again");
    assert_eq!(pool.held(next), 500);
    pool.take(next, 100);
    pool.give_back(id, 500);
    pool.give_back(next, 100);
    assert_eq!((pool.used(), pool.held(next)), (0, 0));
    let again = table.enter(&site);
    assert_eq!(pool.room(again), CAPACITY - MANAGEMENT_RESERVE - LOCAL_RESERVE);
}

#[test]
fn a_holder_displaces_the_heaviest_and_never_one_with_more_rights() {
    let table = HolderTable::default();
    let mut pool = Pool::new(config(80), table.groups());
    let [light, heavy] = [1, 2].map(|number| table.enter(&Holder::Ipv4(number.into())));
    let [user, other] = [1, 2].map(|number| table.enter(&Holder::User(number)));
    pool.take(light, 10);
    pool.take(heavy, 500);
    pool.take(user, 5_000);
    assert_eq!(pool.heaviest_beside(light), Some(heavy), "not the user, who has more rights");
    assert_eq!(pool.heaviest_beside(heavy), None, "it has most itself");
    assert_eq!(pool.heaviest_beside(other), Some(heavy), "remote ones go first");
    pool.give_back(heavy, 500);
    pool.give_back(light, 10);
    assert_eq!(pool.heaviest_beside(other), Some(user));
    assert_eq!(pool.heaviest_beside(user), None);
    assert_eq!(pool.heaviest_beside(HolderId::MANAGEMENT), Some(user));
}

#[test]
fn a_dropped_amount_returns_to_the_pool() {
    let pool = namewire_shares::SharedPool::new(Pool::new(config(50), &Groups::default()));
    let taken = pool.try_take(HolderId::ANY_REMOTE, 4_000).expect("there is room");
    assert_eq!(taken.holder(), HolderId::ANY_REMOTE);
    assert!(pool.try_take(HolderId::ANY_REMOTE, 5_000).is_err());
    let more = pool.take(HolderId::ANY_REMOTE, 5_000);
    assert_eq!(pool.lock().used(), 9_000);
    drop((taken, more));
    assert_eq!(pool.lock().used(), 0);
}
