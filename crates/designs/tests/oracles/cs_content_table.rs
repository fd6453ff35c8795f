//! The Content Table against a plain table of the same geometry.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice};
use namewire_designs::policies::content_table::{CHOICES, ENTRIES};
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};

#[derive(Clone, Copy)]
struct Entry {
    name: u64,
    statistic: u64,
}

/// Rows of a bucket for each part; a row is added when three quarters are full.
#[derive(Default)]
struct Table {
    rows: Vec<[[Option<Entry>; ENTRIES]; CHOICES]>,
    len: usize,
}

type Place = (usize, usize, usize);

impl Table {
    /// The buckets of a name: a row in each part.
    fn choices(&self, name: u64) -> [(usize, usize); CHOICES] {
        let spread = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93_u64];
        [0, 1, 2, 3].map(|part| {
            let upper = name.wrapping_mul(spread[part]) >> 32;
            (((upper * self.rows.len() as u64) >> 32) as usize, part)
        })
    }

    fn places(&self) -> Vec<Place> {
        let entries = |(row, part)| (0..ENTRIES).map(move |entry| (row, part, entry));
        let buckets = (0..self.rows.len()).flat_map(|row| (0..CHOICES).map(move |part| (row, part)));
        buckets.flat_map(entries).collect()
    }

    fn find(&self, name: u64) -> Option<Place> {
        self.places().into_iter().find(|&place| self.at(place).is_some_and(|entry| entry.name == name))
    }

    fn at(&self, place: Place) -> Option<Entry> {
        let (row, part, entry) = place;
        self.rows[row][part][entry]
    }

    fn at_mut(&mut self, place: Place) -> &mut Option<Entry> {
        let (row, part, entry) = place;
        &mut self.rows[row][part][entry]
    }

    /// The least of the candidates; of equals the first, beginning with the one that the name selects.
    fn least(&self, newcomer: u64) -> Option<Place> {
        let in_order = |buckets: &[(usize, usize)]| {
            let places = buckets.iter().flat_map(|&(row, part)| (0..ENTRIES).map(move |entry| (row, part, entry)));
            let candidates = (CHOICES * ENTRIES) as u64;
            let numbered = places
                .zip(0_u64..)
                .map(|(place, number)| ((number + candidates - newcomer % candidates) % candidates, place));
            let held = numbered.filter_map(|(order, place)| Some((self.at(place)?.statistic, order, place)));
            held.min_by_key(|&(statistic, order, _)| (statistic, order)).map(|(.., place)| place)
        };
        let choices = self.choices(newcomer);
        let mut all: Vec<(usize, usize)> =
            (0..self.rows.len()).flat_map(|row| (0..CHOICES).map(move |part| (row, part))).collect();
        let first = all.iter().position(|bucket| *bucket == choices[0])?;
        all.rotate_left(first);
        in_order(&choices).or_else(|| all.into_iter().find_map(|bucket| in_order(&[bucket])))
    }

    fn insert(&mut self, name: u64, statistic: u64) {
        self.len += 1;
        if self.len * 4 > self.rows.len() * CHOICES * ENTRIES * 3 {
            self.rows.push(Default::default());
        }
        let held = |&(row, part): &(usize, usize)| self.rows[row][part].iter().flatten().count();
        let choices = self.choices(name);
        let (row, part) = choices.into_iter().min_by_key(held).unwrap();
        let entry = (0..ENTRIES).find(|&entry| self.rows[row][part][entry].is_none());
        let entry = entry.expect("the test fills no bucket: that is the module's own");
        *self.at_mut((row, part, entry)) = Some(Entry { name, statistic });
    }

    fn remove(&mut self, place: Place) {
        *self.at_mut(place) = None;
        self.len -= 1;
    }
}

fn model(capacity: usize, is_lru: bool) -> impl FnMut(Operation) -> Outcome {
    let (mut table, mut now) = (Table::default(), 0);
    move |operation| {
        now += 1;
        match operation {
            Operation::Erase(name) => {
                if let Some(place) = table.find(name) {
                    table.remove(place);
                }
                Outcome::NotAdmitted
            }
            Operation::Request(name) => {
                if let Some(place) = table.find(name) {
                    let entry = table.at_mut(place).as_mut().unwrap();
                    entry.statistic = if is_lru { now } else { entry.statistic + 1 };
                    return Outcome::Hit;
                }
                if table.len == capacity {
                    let victim = table.least(name).expect("a full table has one");
                    table.remove(victim);
                }
                table.insert(name, if is_lru { now } else { 1 });
                Outcome::Stored
            }
        }
    }
}

#[test]
fn content_tables_equal_a_plain_table() {
    for (eviction, is_lru) in [(EvictionName::ContentTableLru, true), (EvictionName::ContentTableLfu, false)] {
        let policy = PolicyChoice { eviction, ..PolicyChoice::default() };
        for (capacity, names) in [(1, 5), (24, 100), (25, 200), (300, 1_000)] {
            for seed in 0..4 {
                let operations = operations(4_000, names, seed);
                equals_the_model(policy, capacity, &operations, model(capacity as usize, is_lru));
            }
        }
    }
}

/// Most entries are erased, then Data comes that takes all bytes: the victim is in none of its buckets.
#[test]
fn a_victim_is_found_in_a_table_that_is_nearly_empty() {
    let spread =
        |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0x94d0_49bb);
    for eviction in [EvictionName::ContentTableLru, EvictionName::ContentTableLfu] {
        let policy = PolicyChoice { eviction, ..PolicyChoice::default() };
        let mut store = SimulatedStore::new(policy, 100_000, 100_000, 1).unwrap();
        let mut ask = |number, account_bytes| {
            let outcome = store.request(&Request { hash: spread(number), account_bytes, requests: 1 });
            (outcome, store.len())
        };
        (0..100_000).for_each(|number| _ = ask(number, 1));
        assert_eq!(ask(200_000, 99_990), (Outcome::Stored, 11));
        assert_eq!(ask(200_001, 100_000), (Outcome::Stored, 1));
        assert_eq!(ask(200_001, 100_000), (Outcome::Hit, 1));
    }
}
