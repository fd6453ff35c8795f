//! Turns against an oracle: the order within a holder, and how far services differ from the fair share.

use namewire_shares::{Holder, HolderId, HolderTable, Payer, Turns};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const QUANTUM: u32 = 64;
/// The most that one turn costs.
const COST_MAX: u32 = 100;

fn host(number: u16) -> Holder {
    Holder::of_address(format!("192.0.{}.{}", number / 256, number % 256).parse().unwrap(), false)
}

fn enter(table: &HolderTable, holders: impl IntoIterator<Item = Holder>) -> Vec<HolderId> {
    holders.into_iter().map(|holder| table.enter(&holder)).collect()
}

/// Gives `turns` turns; what each holder's cost, if all wait for ever. `cost` is of the turn of that number.
fn serve(turns: &mut Turns<HolderId>, count: usize, cost: impl Fn(usize) -> u32) -> BTreeMap<HolderId, u64> {
    let mut served = BTreeMap::new();
    for number in 0..count {
        let holder = turns.begin().unwrap();
        *served.entry(holder).or_default() += u64::from(cost(number));
        turns.end(cost(number), true);
    }
    served
}

/// The story: a host with 2,000 connections had 2,000 turns for each one of another host.
#[test]
fn a_holder_has_one_share_however_many_sockets_it_has() {
    let table = HolderTable::default();
    let mut turns = Turns::new(QUANTUM, table.groups());
    let holders = enter(&table, [host(1), host(2), Holder::User(1000), Holder::User(1001)]);
    let [greedy, modest, greedy_user, modest_user] = holders[..] else { panic!() };
    for (holder, sockets) in [(greedy, 2_000), (greedy_user, 600), (modest, 1), (modest_user, 1)] {
        (0..sockets).for_each(|_| turns.push(Payer::Holder(holder), holder));
    }
    let served = serve(&mut turns, 40_000, |number| 1 + number as u32 % 20);
    let fair = served.values().sum::<u64>() / 4;
    for (holder, served) in served {
        assert!(served.abs_diff(fair) <= u64::from(QUANTUM + 2 * 20), "{holder:?} had {served}, and {fair} are fair");
    }
}

#[test]
fn the_sockets_of_a_holder_have_equal_turns() {
    let table = HolderTable::default();
    let holder = table.enter(&host(1));
    let mut turns = Turns::new(QUANTUM, table.groups());
    (0..5).for_each(|socket| turns.push(Payer::Holder(holder), socket));
    let order: Vec<u32> = (0..15)
        .map(|_| {
            let socket = turns.begin().unwrap();
            turns.end(3, true);
            socket
        })
        .collect();
    assert_eq!(order, (0..15).map(|turn| turn % 5).collect::<Vec<_>>());
}

/// The networks of a site, and the stations of a link, have the share of one holder.
#[test]
fn a_group_has_the_share_of_one_holder() {
    let table = HolderTable::default();
    let mut turns = Turns::new(QUANTUM, table.groups());
    let network = |number: u16| Holder::of_address(format!("2001:db8:1:{number:x}::1").parse().unwrap(), false);
    let site = enter(&table, (0..40).map(network));
    let other = table.enter(&host(1));
    site.iter().chain([&other]).for_each(|&holder| turns.push(Payer::Holder(holder), holder));
    let served = serve(&mut turns, 8_000, |_| 10);
    assert!(served[&other].abs_diff(40_000) < 200, "{}", served[&other]);
    let of_networks: Vec<u64> = site.iter().map(|network| served[network]).collect();
    assert!(of_networks.iter().all(|served| served.abs_diff(1_000) <= 100), "{of_networks:?}");
}

#[test]
fn each_class_has_a_quarter_against_any_number_of_the_other() {
    for (hosts, users) in [(1_000, 1), (1, 200)] {
        let table = HolderTable::default();
        let mut turns = Turns::new(QUANTUM, table.groups());
        let remote = enter(&table, (0..hosts).map(host));
        let local = enter(&table, (0..users).map(Holder::User));
        remote.iter().chain(&local).for_each(|&holder| turns.push(Payer::Holder(holder), holder));
        let served = serve(&mut turns, 20_000, |_| 20);
        let of = |class: &[HolderId]| class.iter().filter_map(|holder| served.get(holder)).sum::<u64>();
        let (of_hosts, of_users) = (of(&remote), of(&local));
        let fewer = if hosts == 1 { of_hosts } else { of_users };
        let fair = (of_hosts + of_users) / 4;
        assert!(fewer.abs_diff(fair) <= u64::from(4 * QUANTUM), "{of_hosts} and {of_users}");
    }
}

#[test]
fn a_listener_has_the_weight_of_all_its_senders() {
    let table = HolderTable::default();
    let mut turns = Turns::new(QUANTUM, table.groups());
    turns.push(Payer::Senders(3), 0);
    turns.push(Payer::Holder(table.enter(&host(1))), 1);
    let mut served = [0_u32; 2];
    for _ in 0..2_000 {
        let which = turns.begin().unwrap();
        served[which] += 16;
        if which == 0 {
            turns.set_weight(5);
        }
        turns.end(16, true);
    }
    assert!(served[0].abs_diff(5 * served[1]) <= 10 * QUANTUM, "{served:?}");
}

#[test]
fn a_new_member_waits_for_one_round() {
    let table = HolderTable::default();
    let mut turns = Turns::new(QUANTUM, table.groups());
    let hosts = enter(&table, (0..20).map(host));
    hosts.iter().for_each(|&holder| turns.push(Payer::Holder(holder), holder));
    serve(&mut turns, 777, |_| 7);
    let new = table.enter(&host(99));
    turns.push(Payer::Holder(new), new);
    let mut waited = 0;
    while turns.begin() != Some(new) {
        turns.end(7, true);
        waited += 7;
    }
    assert!(waited <= 20 * (QUANTUM + 7), "{waited}");
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Serve { cost: u32, wants_more: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..12_usize).prop_map(Step::Push),
        (0..COST_MAX, any::<bool>()).prop_map(|(cost, wants_more)| Step::Serve { cost, wants_more }),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    /// Whatever comes and goes: things of one holder have their turns in the order in which they wait, nothing is lost,
    /// and the turns of two hosts that always wait differ by no more than promised.
    #[test]
    fn turns_agree_with_the_oracle(steps in steps()) {
        let table = HolderTable::default();
        let others = (0..4).map(|network| format!("2001:db8:{}:{network}::1", network % 2).parse().unwrap());
        let mut holders = vec![Holder::Management, Holder::User(0), Holder::User(1), host(3), host(4), host(5)];
        holders.extend(others.map(|address| Holder::of_address(address, false)));
        let mut payers: Vec<Payer> = enter(&table, holders).into_iter().map(Payer::Holder).collect();
        payers.extend([Payer::Senders(0), Payer::Senders(5)]);
        let mut turns = Turns::new(QUANTUM, table.groups());
        let mut oracle: BTreeMap<usize, VecDeque<u32>> = BTreeMap::new();
        let always = enter(&table, [host(1), host(2)]);
        let mut served = [0_u64; 2];
        always.iter().enumerate().for_each(|(which, &holder)| turns.push(Payer::Holder(holder), (100 + which, 0)));
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(who) => {
                    turns.push(payers[who], (who, number as u32));
                    oracle.entry(who).or_default().push_back(number as u32);
                }
                Step::Serve { cost, wants_more } => {
                    let (who, what) = turns.begin().unwrap();
                    if who >= 100 {
                        served[who - 100] += u64::from(cost);
                        turns.end(cost, true);
                    } else {
                        let line = oracle.get_mut(&who).unwrap();
                        prop_assert_eq!(line.pop_front(), Some(what));
                        if wants_more {
                            line.push_back(what);
                        }
                        turns.end(cost, wants_more);
                    }
                    prop_assert!(served[0].abs_diff(served[1]) <= u64::from(QUANTUM + 2 * COST_MAX), "{:?}", served);
                }
            }
            let waiting: usize = oracle.values().map(VecDeque::len).sum();
            prop_assert_eq!(turns.len(), waiting + 2);
        }
    }
}
