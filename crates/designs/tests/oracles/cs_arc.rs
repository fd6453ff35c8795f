//! ARC against the procedure of its paper, on plain lists.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice};
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};
use std::collections::VecDeque;

/// Megiddo and Modha 2003, Fig. 4. The least recently used of each list is in front.
struct Model {
    c: usize,
    p: f64,
    t1: VecDeque<u64>,
    t2: VecDeque<u64>,
    b1: VecDeque<u64>,
    b2: VecDeque<u64>,
}

fn take(list: &mut VecDeque<u64>, x: u64) -> bool {
    let place = list.iter().position(|&other| other == x);
    place.map(|place| list.remove(place)).is_some()
}

impl Model {
    fn new(c: usize) -> Self {
        let list = VecDeque::new;
        Self { c, p: 0.0, t1: list(), t2: list(), b1: list(), b2: list() }
    }

    fn replace(&mut self, is_in_b2: bool) {
        if self.t1.len() + self.t2.len() < self.c {
            return; // something was erased: not in the paper
        }
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || is_in_b2 && t1 == self.p) {
            self.b1.push_back(self.t1.pop_front().unwrap());
        } else {
            self.b2.push_back(self.t2.pop_front().unwrap());
        }
    }

    fn request(&mut self, x: u64) -> Outcome {
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return Outcome::Hit;
        }
        if self.b1.contains(&x) {
            self.p = (self.p + if b1 >= b2 { 1.0 } else { b2 / b1 }).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            self.p = (self.p - if b2 >= b1 { 1.0 } else { b1 / b2 }).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let l2 = self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.t1.pop_front();
                }
            } else if l1 < self.c && l1 + l2 >= self.c {
                if l1 + l2 == 2 * self.c {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
            self.t1.push_back(x);
        }
        Outcome::Stored
    }

    fn erase(&mut self, x: u64) {
        let _ = take(&mut self.t1, x) || take(&mut self.t2, x);
    }
}

#[test]
fn arc_equals_its_paper() {
    let mut furthest = 0.0_f64;
    for capacity in [1, 2, 25, 60] {
        for seed in 0..20 {
            let mut model = Model::new(capacity as usize);
            equals_the_model(arc(), capacity, &operations(4_000, 200, seed), |operation| match operation {
                Operation::Request(x) => {
                    let outcome = model.request(x);
                    furthest = furthest.max(model.p);
                    outcome
                }
                Operation::Erase(x) => {
                    model.erase(x);
                    Outcome::NotAdmitted
                }
            });
        }
    }
    assert!(furthest > 20.0, "the target moves, at most to {furthest}");
}

fn arc() -> PolicyChoice {
    PolicyChoice { eviction: EvictionName::Arc, ..PolicyChoice::default() }
}

/// Names requested again and again stay while others pass by once: LRU would lose them.
#[test]
fn a_scan_leaves_what_was_used_again() {
    let mut store = SimulatedStore::new(arc(), 100, u64::MAX, 1).unwrap();
    let mut ask = |hash: u64| store.request(&Request { hash, account_bytes: 1, requests: 1 });
    for _ in 0..2 {
        (1..=50).for_each(|hash| _ = ask(hash));
    }
    (1_000..2_000).for_each(|hash| _ = ask(hash));
    assert!((1..=50).all(|hash| ask(hash) == Outcome::Hit));
}

/// Bytes limit the store to a tenth of the entries that it was made for: it behaves as if made for those.
#[test]
fn a_limit_in_bytes_is_a_limit_in_entries() {
    let mut model = Model::new(30);
    let mut store = SimulatedStore::new(arc(), 300, 3_000, 1).unwrap();
    let mut outcomes = [0; 2];
    for operation in operations(20_000, 200, 5) {
        let Operation::Request(hash) = operation else { continue };
        let outcome = store.request(&Request { hash, account_bytes: 100, requests: 1 });
        outcomes[usize::from(outcome == Outcome::Hit)] += 1;
        assert_eq!(outcome, model.request(hash));
    }
    assert!(outcomes.iter().all(|&count| count > 2_000), "{outcomes:?}");
}
