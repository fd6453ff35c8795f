//! Every Content Store policy: rules that hold for all of them, and a way to compare one with a model.

use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::filter::FilterOptions;
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};
use namewire_tables::cs_policy::{Marks, Newcomer, RemovalReason};
use namewire_tables::{CsPolicy, PolicyName};
use std::collections::HashMap;

/// An operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Request(u64),
    Erase(u64),
}

/// Requests for some popular names and many others; now and then a name is erased. Hashes are spread like
/// those of names.
pub(crate) fn operations(count: usize, names: u64, seed: u64) -> Vec<Operation> {
    let mut random = fastrand::Rng::with_seed(seed);
    let spread = |number: u64| {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut name = move || spread(random.u64(..=random.clone().u64(0..names)));
    let mut lot = fastrand::Rng::with_seed(seed ^ 1);
    let mut one = || if lot.u8(..) < 6 { Operation::Erase(name()) } else { Operation::Request(name()) };
    (0..count).map(|_| one()).collect()
}

/// Runs the operations, every Data one packet, through the policy and through `model`, which gives the
/// outcome of each request; the two must agree.
pub(crate) fn equals_the_model(
    policy: PolicyChoice,
    capacity: u32,
    operations: &[Operation],
    mut model: impl FnMut(Operation) -> Outcome,
) {
    let mut store = SimulatedStore::new(policy, capacity, u64::MAX, 7).unwrap();
    for (step, &operation) in operations.iter().enumerate() {
        let expected = model(operation);
        match operation {
            Operation::Request(hash) => {
                let outcome = store.request(&Request { hash, account_bytes: 1, requests: 1 });
                assert_eq!(outcome, expected, "{policy:?}, step {step}, {operation:?}");
            }
            Operation::Erase(hash) => {
                store.erase(hash);
            }
        }
    }
}

fn every_policy() -> impl Iterator<Item = PolicyChoice> {
    // There are hundreds of stores: too many for 32 MiB of counters each.
    let filter = FilterOptions { counters_log2: Some(12), ..FilterOptions::default() };
    let options = PolicyOptions { filter, ..PolicyOptions::default() };
    EvictionName::ALL.iter().flat_map(move |&eviction| {
        AdmissionName::ALL.iter().map(move |&admission| PolicyChoice { eviction, admission, options })
    })
}

/// Whether the policy sometimes refuses newcomers.
pub(crate) fn may_refuse(policy: PolicyName) -> bool {
    policy.admission != "all" || policy.eviction == "adaptive-window"
}

/// Limits hold, every hit was stored, nothing is refused before the store is full, nothing is lost.
#[test]
fn rules_that_hold_for_every_policy() {
    const PACKETS: u32 = 40;
    const BYTES: u64 = 3_000;
    for policy in every_policy() {
        let mut store = SimulatedStore::new(policy, PACKETS, BYTES, 3).unwrap();
        let mut sizes = fastrand::Rng::with_seed(5);
        let mut stored: HashMap<u64, u64> = HashMap::new();
        let (mut hits, mut not_admitted) = (0, 0);
        for operation in operations(30_000, 300, 11) {
            let evictions = store.evictions();
            match operation {
                Operation::Request(hash) => {
                    let account_bytes = sizes.u64(10..200);
                    let has_room = stored.len() < PACKETS as usize && store.bytes() + account_bytes <= BYTES;
                    match store.request(&Request { hash, account_bytes, requests: sizes.u32(1..4) }) {
                        Outcome::Hit => {
                            assert!(stored.contains_key(&hash), "{policy:?}");
                            hits += 1;
                        }
                        Outcome::Stored => {
                            assert_eq!(stored.insert(hash, account_bytes), None, "{policy:?}");
                            assert_eq!(has_room, store.evictions() == evictions, "{policy:?}");
                        }
                        Outcome::NotAdmitted => {
                            assert!(!stored.contains_key(&hash) && !has_room, "{policy:?}");
                            assert_eq!(store.evictions(), evictions, "{policy:?}");
                            not_admitted += 1;
                        }
                    }
                }
                Operation::Erase(hash) => assert_eq!(store.erase(hash), stored.remove(&hash).is_some(), "{policy:?}"),
            }
            stored.retain(|&hash, _| store.contains(hash));
            assert_eq!(stored.len(), store.len(), "{policy:?}: something is stored that never came");
            assert_eq!(stored.values().sum::<u64>(), store.bytes(), "{policy:?}");
            assert!(store.len() <= PACKETS as usize && store.bytes() <= BYTES, "{policy:?}");
        }
        assert!(hits > 1_000, "{policy:?}: {hits} hits");
        assert_eq!(not_admitted > 0, may_refuse(CsPolicy::from(policy).name()), "{policy:?}");
    }
}

/// From every policy to every other: all stay stored, and the new policy works on.
#[test]
fn a_policy_is_changed_while_data_is_stored() {
    for from in every_policy() {
        for to in every_policy() {
            let mut store = SimulatedStore::new(from, 30, u64::MAX, 3).unwrap();
            let request = |hash| Request { hash, account_bytes: 1, requests: 2 };
            let operations = operations(600, 100, 13);
            let requests = || {
                operations.iter().filter_map(|operation| match operation {
                    Operation::Request(hash) => Some(request(*hash)),
                    Operation::Erase(_) => None,
                })
            };
            for request in requests() {
                store.request(&request);
            }
            let stored: Vec<u64> =
                requests().map(|request| request.hash).filter(|&hash| store.contains(hash)).collect();
            store.set_policy(to, 4).unwrap();
            assert!(stored.iter().all(|&hash| store.contains(hash)), "{from:?} to {to:?}");
            assert_eq!(store.len(), 30, "{from:?} to {to:?}");
            for request in requests() {
                store.request(&request);
            }
            assert_eq!(store.len(), 30, "{from:?} to {to:?}");
            assert!(stored.into_iter().all(|hash| !store.contains(hash) || store.erase(hash)), "{from:?} to {to:?}");
        }
    }
}

/// A list of names; the first goes next.
fn list(capacity: usize, moves_up: bool) -> impl FnMut(Operation) -> Outcome {
    let mut list: Vec<u64> = Vec::new();
    move |operation| match operation {
        Operation::Erase(hash) => {
            list.retain(|&other| other != hash);
            Outcome::NotAdmitted
        }
        Operation::Request(hash) => match list.iter().position(|&other| other == hash) {
            Some(place) => {
                if moves_up {
                    list[place..].rotate_left(1);
                }
                Outcome::Hit
            }
            None => {
                if list.len() == capacity {
                    list.remove(0);
                }
                list.push(hash);
                Outcome::Stored
            }
        },
    }
}

#[test]
fn lru_and_fifo_equal_a_list() {
    for (eviction, moves_up) in [(EvictionName::Lru, true), (EvictionName::Fifo, false)] {
        let policy = PolicyChoice { eviction, ..PolicyChoice::default() };
        for seed in 0..20 {
            equals_the_model(policy, 25, &operations(3_000, 80, seed), list(25, moves_up));
        }
    }
}

/// The former order is kept, as far as the new policy has one: the least recently used still goes first.
#[test]
fn the_order_survives_a_change() {
    let lru = PolicyChoice { eviction: EvictionName::Lru, ..PolicyChoice::default() };
    let fifo = PolicyChoice { eviction: EvictionName::Fifo, ..PolicyChoice::default() };
    let mut store = SimulatedStore::new(lru, 3, u64::MAX, 1).unwrap();
    let ask = |store: &mut SimulatedStore, hash| store.request(&Request { hash, account_bytes: 1, requests: 1 });
    for hash in [1, 2, 3, 1] {
        ask(&mut store, hash);
    }
    store.set_policy(fifo, 1).unwrap();
    assert_eq!(ask(&mut store, 4), Outcome::Stored);
    assert!(!store.contains(2) && store.contains(1));
    assert_eq!(store.evictions(), 1);
}

/// Asked again, a policy names the same victim, and only entries that it holds.
#[test]
fn a_victim_stays_until_something_changes() {
    for policy in every_policy() {
        let mut store = SimulatedStore::new(policy, 50, u64::MAX, 3).unwrap();
        for operation in operations(5_000, 200, 17) {
            if let Operation::Request(hash) = operation {
                store.request(&Request { hash, account_bytes: 1, requests: 2 });
            } else if store.len() == 50 {
                let (policy, marks) = store.policy_mut();
                let newcomer = Newcomer { hash: 5, account_bytes: 1, requests: 1, ..Newcomer::default() };
                policy.arriving(&newcomer);
                let victim = policy.victim(marks, &newcomer).unwrap();
                assert!((0..3).all(|_| policy.victim(marks, &newcomer) == Some(victim)), "{:?}", policy.name());
                let hash = marks.hash(victim);
                assert_eq!(store.find(hash), Some(victim));
                assert!(store.erase(hash));
            }
        }
    }
}

/// The entry that would have gone first under the former policy goes first under one that has an order.
#[test]
fn eviction_order_is_kept_after_a_change() {
    let drain = |store: &mut SimulatedStore| {
        let (policy, marks) = store.policy_mut();
        let (mut order, mut nobody) = (Vec::new(), Newcomer::default());
        while let Some(victim) = policy.victim(marks, &nobody) {
            order.push(marks.hash(victim));
            policy.remove(marks, victim, RemovalReason::Erased);
            nobody.hash = nobody.hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        order
    };
    for from in every_policy() {
        let store = || {
            let mut store = SimulatedStore::new(from, 100, u64::MAX, 3).unwrap();
            for operation in operations(5_000, 300, 19) {
                if let Operation::Request(hash) = operation {
                    store.request(&Request { hash, account_bytes: 1, requests: 2 });
                }
            }
            store
        };
        let order = drain(&mut store());
        assert_eq!(order.len(), 100, "{from:?}");
        for eviction in [
            EvictionName::Lru,
            EvictionName::Clock,
            EvictionName::S3Fifo,
            EvictionName::Sieve,
            EvictionName::WTinyLfu,
            EvictionName::AdaptiveWindow,
        ] {
            let mut store = store();
            store.set_policy(PolicyChoice { eviction, ..from }, 4).unwrap();
            assert_eq!(drain(&mut store), order, "{from:?} to {eviction:?}");
        }
    }
}
