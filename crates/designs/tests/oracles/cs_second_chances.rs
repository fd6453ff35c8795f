//! Random, CLOCK, SIEVE and S3-FIFO equal their papers, written down naively.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice};
use namewire_designs::policies::ghost_table::GhostTable;
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};
use namewire_tables::PageSize;
use namewire_tables::cs_policy::MAX_SECOND_CHANCES;
use namewire_tables::cs_policy::{Marks, Newcomer};

fn policy(eviction: EvictionName) -> PolicyChoice {
    PolicyChoice { eviction, ..PolicyChoice::default() }
}

/// A policy over names, and the names that it holds.
trait Model {
    fn hit(&mut self, hash: u64) -> bool;
    fn is_full(&self, capacity: usize) -> bool;
    fn evict(&mut self);
    fn insert(&mut self, hash: u64);
    fn erase(&mut self, hash: u64);
}

fn outcomes(mut model: impl Model, capacity: usize) -> impl FnMut(Operation) -> Outcome {
    move |operation| match operation {
        Operation::Erase(hash) => {
            model.erase(hash);
            Outcome::NotAdmitted
        }
        Operation::Request(hash) if model.hit(hash) => Outcome::Hit,
        Operation::Request(hash) => {
            if model.is_full(capacity) {
                model.evict();
            }
            model.insert(hash);
            Outcome::Stored
        }
    }
}

/// A small store, and one in which a victim may cost too much; few names, so that most are used.
fn runs() -> impl Iterator<Item = (usize, Vec<Operation>)> {
    let small = (0..20).map(|seed| (25, operations(3_000, 80, seed)));
    let used_throughout = (0..6).map(|seed| (200, operations(20_000, 250, seed)));
    small.chain(used_throughout)
}

/// The names in the order of insertion, the oldest first, and whether each was used.
#[derive(Default)]
struct Used(Vec<(u64, bool)>);

impl Used {
    fn hit(&mut self, hash: u64) -> bool {
        let found = self.0.iter_mut().find(|name| name.0 == hash);
        found.map(|name| name.1 = true).is_some()
    }
}

struct Random {
    names: Vec<u64>,
    state: u64,
}

impl Model for Random {
    fn hit(&mut self, hash: u64) -> bool {
        self.names.contains(&hash)
    }

    fn is_full(&self, capacity: usize) -> bool {
        self.names.len() == capacity
    }

    fn evict(&mut self) {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb), (31, 1)] {
            mixed = (mixed ^ mixed >> shift).wrapping_mul(factor);
        }
        let victim = (u128::from(mixed) * self.names.len() as u128) >> 64;
        self.names.swap_remove(victim as usize);
    }

    fn insert(&mut self, hash: u64) {
        self.names.push(hash);
    }

    fn erase(&mut self, hash: u64) {
        if let Some(index) = self.names.iter().position(|&other| other == hash) {
            self.names.swap_remove(index);
        }
    }
}

#[test]
fn random_evicts_by_its_random_numbers() {
    for (capacity, operations) in runs() {
        let model = Random { names: Vec::new(), state: 7 };
        equals_the_model(policy(EvictionName::Random), capacity as u32, &operations, outcomes(model, capacity));
    }
}

/// A ring, written as a list that begins at the hand.
#[derive(Default)]
struct Clock(Used);

impl Model for Clock {
    fn hit(&mut self, hash: u64) -> bool {
        self.0.hit(hash)
    }

    fn is_full(&self, capacity: usize) -> bool {
        self.0.0.len() == capacity
    }

    fn evict(&mut self) {
        let ring = &mut self.0.0;
        let steps = ring.iter().take_while(|name| name.1).count().min(MAX_SECOND_CHANCES);
        ring[..steps].iter_mut().for_each(|name| name.1 = false);
        ring.rotate_left(steps);
        ring.remove(0);
    }

    fn insert(&mut self, hash: u64) {
        self.0.0.push((hash, false));
    }

    fn erase(&mut self, hash: u64) {
        self.0.0.retain(|name| name.0 != hash);
    }
}

#[test]
fn clock_equals_a_ring() {
    for (capacity, operations) in runs() {
        let model = outcomes(Clock::default(), capacity);
        equals_the_model(policy(EvictionName::Clock), capacity as u32, &operations, model);
    }
}

/// One queue, the tail first, and the index of the hand; beyond the head it means no entry.
#[derive(Default)]
struct Sieve {
    queue: Used,
    hand: usize,
}

impl Sieve {
    fn remove(&mut self, index: usize) {
        self.queue.0.remove(index);
        if index < self.hand {
            self.hand -= 1;
        }
        if self.hand == self.queue.0.len() {
            self.hand = 0; // none: the next search begins at the tail
        }
    }
}

impl Model for Sieve {
    fn hit(&mut self, hash: u64) -> bool {
        self.queue.hit(hash)
    }

    fn is_full(&self, capacity: usize) -> bool {
        self.queue.0.len() == capacity
    }

    fn evict(&mut self) {
        for _ in 0..MAX_SECOND_CHANCES {
            let len = self.queue.0.len();
            let name = &mut self.queue.0[self.hand];
            if !std::mem::take(&mut name.1) {
                break;
            }
            self.hand = (self.hand + 1) % len;
        }
        self.remove(self.hand);
    }

    fn insert(&mut self, hash: u64) {
        self.queue.0.push((hash, false));
    }

    fn erase(&mut self, hash: u64) {
        if let Some(index) = self.queue.0.iter().position(|name| name.0 == hash) {
            self.remove(index);
        }
    }
}

#[test]
fn sieve_equals_a_queue_with_a_hand() {
    for (capacity, operations) in runs() {
        let model = outcomes(Sieve::default(), capacity);
        equals_the_model(policy(EvictionName::Sieve), capacity as u32, &operations, model);
    }
}

/// Algorithm 1, over names with their frequencies, the oldest first; other tests cover its ghosts.
struct S3Fifo {
    small: Vec<(u64, u8)>,
    main: Vec<(u64, u8)>,
    ghosts: GhostTable,
}

impl S3Fifo {
    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}

impl Model for S3Fifo {
    fn hit(&mut self, hash: u64) -> bool {
        let found = self.small.iter_mut().chain(&mut self.main).find(|name| name.0 == hash);
        found.map(|name| name.1 = (name.1 + 1).min(3)).is_some()
    }

    fn is_full(&self, capacity: usize) -> bool {
        self.len() == capacity
    }

    fn evict(&mut self) {
        for chances in 0.. {
            let is_last = chances == MAX_SECOND_CHANCES;
            if self.small.len() as f64 >= 0.1 * self.len() as f64 {
                let (hash, frequency) = self.small.remove(0);
                if frequency <= 1 || is_last {
                    self.ghosts.push(hash);
                    return;
                }
                self.main.push((hash, 0));
            } else {
                let (hash, frequency) = self.main.remove(0);
                if frequency == 0 || is_last {
                    return;
                }
                self.main.push((hash, frequency - 1));
            }
        }
    }

    fn insert(&mut self, hash: u64) {
        let held = self.len() + 1;
        let main_share = held - held / 10;
        let queue = if self.ghosts.remove(hash, main_share as u32) { &mut self.main } else { &mut self.small };
        queue.push((hash, 0));
    }

    fn erase(&mut self, hash: u64) {
        self.small.retain(|name| name.0 != hash);
        self.main.retain(|name| name.0 != hash);
    }
}

#[test]
fn s3_fifo_equals_algorithm_1() {
    for (capacity, operations) in runs() {
        let main_share = (capacity - capacity / 10) as u32;
        let ghosts = GhostTable::new(main_share, PageSize::Base).unwrap();
        let model = outcomes(S3Fifo { small: Vec::new(), main: Vec::new(), ghosts }, capacity);
        equals_the_model(policy(EvictionName::S3Fifo), capacity as u32, &operations, model);
    }
}

/// By hand, 2 Data: S evicts a, b and c; G has room for two names, so b and c. So b comes into M, and stays while d and
/// e go through S. (G once had room for one name: the share of the entries without the newcomer.)
#[test]
fn s3_fifo_of_two_data_remembers_two_names() {
    let mut store = SimulatedStore::new(policy(EvictionName::S3Fifo), 2, u64::MAX, 1).unwrap();
    let hash = |name: u8| u64::from(name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let stored = b"abcdbef".map(|name| {
        let request = Request { hash: hash(name), account_bytes: 1, requests: 1 };
        assert_eq!(store.request(&request), Outcome::Stored);
        let stored = b"abcdef".iter().filter(|&&name| store.contains(hash(name)));
        String::from_utf8(stored.copied().collect()).unwrap()
    });
    assert_eq!(stored, ["a", "ab", "bc", "cd", "bd", "be", "bf"]);
}

/// By hand, 3 Data: for d, the hand spares a and evicts b; for e, it evicts c. All are used then: f spares d, e and a,
/// and evicts d, at which the hand came back.
#[test]
fn sieve_by_hand() {
    let mut store = SimulatedStore::new(policy(EvictionName::Sieve), 3, u64::MAX, 1).unwrap();
    let hash = |name: u8| u64::from(name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let outcomes = b"abcaddeaedfaed".map(|name| {
        let request = Request { hash: hash(name), account_bytes: 1, requests: 1 };
        if store.request(&request) == Outcome::Hit { b'+' } else { b'-' }
    });
    assert_eq!(std::str::from_utf8(&outcomes), Ok("---+-+-+++-++-"));
}

/// A consumer that asks for everything stored makes the next victim cost a few second chances, not all. The
/// entry that goes although it was used is recognized when it is requested again.
#[test]
fn one_victim_costs_a_few_second_chances() {
    for eviction in [EvictionName::Clock, EvictionName::Sieve, EvictionName::S3Fifo] {
        let mut store = SimulatedStore::new(policy(eviction), 1_000, u64::MAX, 1).unwrap();
        for hash in (0..1_000).chain(0..1_000).chain(0..1_000) {
            store.request(&Request { hash: hash << 40, account_bytes: 1, requests: 1 });
        }
        let slots: Vec<u32> = (0..1_000).map(|hash| store.find(hash << 40).unwrap()).collect();
        let (policy, marks) = store.policy_mut();
        let newcomer = Newcomer { hash: u64::MAX, ..Newcomer::default() };
        let victim = policy.victim(marks, &newcomer).unwrap();
        assert_eq!(victim, slots[MAX_SECOND_CHANCES], "{eviction:?}");
        let unused = slots.iter().filter(|&&slot| marks.mark(slot).uses == 0).count();
        assert_eq!(unused, MAX_SECOND_CHANCES + 1, "{eviction:?}");
        assert_eq!(policy.victim(marks, &newcomer), Some(victim), "{eviction:?}");
    }
}
