//! String differentiation: right about every name with a route, and the same on every copy of the table.
//!
//! The fingerprints are the shortest there are and the tables small, so that hashes of a dozen to a few
//! dozen bits collide all the time, as they would among billions of names.

use crate::adversarial_names::component;
use crate::fib_designs::{Compared, answers_as_the_model, equals_the_model, survives_churn};
use namewire_designs::fib::string_differentiation::bulk_load::BulkLoad;
use namewire_designs::fib::string_differentiation::fht_forwarding::FhtInstruction;
use namewire_designs::fib::string_differentiation::rib::Rib;
use namewire_designs::fib::string_differentiation::{
    DefaultRoute, FhtController, FhtOptions, FhtTable, ForwardingTable, Instruction, PatriciaOptions, RouteController,
    SlotFormat, StringDifferentiation,
};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::{HashKey, PageSize};
use std::collections::HashMap;

const SHORTEST: FhtOptions = FhtOptions {
    format: SlotFormat { fingerprint_bits: 12, port_bits: 8 },
    pages: namewire_tables::PageSize::Base,
    collision_entries: 0,
    prefetch: true,
};

fn fht(
    capacity: usize,
    seed: u64,
    options: FhtOptions,
    default_route: DefaultRoute,
) -> StringDifferentiation<FhtController> {
    let key = HashKey::from_seed(seed);
    StringDifferentiation::with_fingerprint_hash_table(capacity, key, options, default_route).expect("a small table")
}

#[test]
fn a_fingerprint_hash_table_is_right_about_names_with_routes() {
    for prefetch in [true, false] {
        let options = FhtOptions { prefetch, ..SHORTEST };
        equals_the_model(|capacity, seed| Box::new(fht(capacity, seed, options, DefaultRoute::Exact)));
    }
    equals_the_model(|capacity, seed| Box::new(fht(capacity, seed, WIDE, DefaultRoute::Exact)));
}

/// Fingerprints so long that the names of a test have different ones.
const WIDE: FhtOptions = FhtOptions { format: SlotFormat { fingerprint_bits: 24, port_bits: 24 }, ..SHORTEST };

/// With a default route that is not exact, names below other rules still go where these lead, but for names that happen
/// to have the fingerprint of a longer rule.
#[test]
fn a_default_route_takes_no_names_of_other_rules() {
    for default_route in
        [DefaultRoute::Speculative, DefaultRoute::Table(0), DefaultRoute::Table(9), DefaultRoute::Followed]
    {
        let tables = |capacity, seed| Box::new(fht(capacity, seed, WIDE, default_route)) as Box<dyn PrefixTable>;
        answers_as_the_model(Compared::NumbersBelowTheRoot, &tables);
        for options in [PatriciaOptions::sbpt, PatriciaOptions::fpt] {
            let trie = |capacity, seed| {
                let key = HashKey::from_seed(seed);
                let trie = StringDifferentiation::with_patricia_trie(key, options(capacity), true, default_route);
                Box::new(trie.expect("a small table")) as Box<dyn PrefixTable>
            };
            answers_as_the_model(Compared::NumbersBelowTheRoot, &trie);
        }
    }
}

#[test]
fn a_fingerprint_hash_table_survives_coming_and_going() {
    survives_churn(|capacity, seed| Box::new(fht(capacity, seed, SHORTEST, DefaultRoute::Exact)));
}

/// Rules of one to four components; many share beginnings.
fn rule(number: u32) -> Vec<u8> {
    let mut name = component(8, format!("{}", number % 997).as_bytes());
    for place in 0..number % 4 {
        name.extend(component(8, format!("{}", number / (5 + place)).as_bytes()));
    }
    name
}

fn look_up(find: impl Fn(&[&[u8]], &mut [Option<PrefixMatch>]), names: &[Vec<u8>]) -> Vec<Option<PrefixMatch>> {
    let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    let mut found = vec![None; names.len()];
    for (names, found) in slices.chunks(DESIGN_BATCH_NAMES).zip(found.chunks_mut(DESIGN_BATCH_NAMES)) {
        find(names, found);
    }
    found
}

/// The router keeps two tables and one controller: the second table applies the same instructions later.
#[test]
fn instructions_make_the_same_table_of_every_copy() {
    for (rules, slots) in [(4_000, 4_320), (3_814, 4_096)] {
        every_copy_is_the_same(rules, slots);
    }
}

fn every_copy_is_the_same(rules: usize, slots: usize) {
    let key = HashKey::from_seed(9);
    let differentiator = FhtController::new(rules, SHORTEST).expect("small");
    let rib = Rib::new(key, differentiator.hashes()).expect("small");
    let mut controller = RouteController::new(rules, rib, differentiator, DefaultRoute::Exact);
    let [mut now, mut later] = [(); 2].map(|()| {
        ForwardingTable::new(key, FhtTable::new(rules, SHORTEST).expect("small"), PageSize::Base).expect("small")
    });
    assert_eq!(now.differentiator().slots().slots(), slots);
    let (mut rng, mut model, mut behind) = (fastrand::Rng::with_seed(2), HashMap::new(), Vec::new());
    let (mut moved_to_collisions, mut moved_back) = (0, 0);
    for round in 0..40_000 {
        let mut instructions = Vec::new();
        let (name, number) = (rule(rng.u32(..8_000)), rng.u32(..) >> rng.u32(..32));
        if rng.u32(..5) < 3 {
            if controller.insert(&name, number, &mut instructions).is_ok() {
                model.insert(name, number);
            } else {
                assert!(instructions.is_empty() && model.len() == rules);
            }
        } else {
            assert_eq!(controller.remove(&name, &mut instructions), model.remove(&name));
        }
        let place = |wanted: fn(&FhtInstruction) -> bool| {
            instructions.iter().position(|instruction| matches!(instruction, Instruction::RootRule(it) if wanted(it)))
        };
        let cleared = place(|it| matches!(it, FhtInstruction::ClearSlot { .. }));
        let inserted = place(|it| matches!(it, FhtInstruction::InsertCollision { .. }));
        moved_to_collisions += u32::from(cleared.is_some() && inserted > cleared);
        let removed = place(|it| matches!(it, FhtInstruction::RemoveCollision { .. }));
        let set = place(|it| matches!(it, FhtInstruction::SetSlot { .. }));
        moved_back += u32::from(removed.is_some() && set > removed);
        instructions.iter().for_each(|instruction| now.apply(instruction));
        behind.append(&mut instructions);
        if round % 997 == 0 {
            behind.drain(..).for_each(|instruction| later.apply(&instruction));
            assert_eq!(controller.len(), model.len());
            let names: Vec<Vec<u8>> = (0..8_000).map(rule).collect();
            let [found, found_later] =
                [&now, &later].map(|table| look_up(|names, out| table.longest_prefix_match_batch(names, out), &names));
            assert_eq!(found, found_later, "strangers too");
            for (name, found) in names.iter().zip(found) {
                if let Some(&number) = model.get(name) {
                    assert_eq!(found, Some(PrefixMatch { number, prefix_bytes: name.len() as u16 }));
                }
            }
        }
    }
    assert!(moved_to_collisions > 20 && moved_back > 20, "{moved_to_collisions}, {moved_back}: it must have come up");
}

/// §4.3.5: rules of the default table take no slots, and are never mistaken for rules that do.
#[test]
fn rules_of_the_default_table_take_no_slots_and_find_the_default() {
    const DEFAULT: u32 = 7;
    let mut table = fht(30_000, 4, SHORTEST, DefaultRoute::Table(DEFAULT));
    let mut model = HashMap::new();
    let mut rng = fastrand::Rng::with_seed(8);
    for _ in 0..60_000 {
        let name = rule(rng.u32(..40_000));
        if rng.u32(..3) == 0 {
            assert_eq!(table.remove(&name), model.remove(&name));
        } else {
            let number = if rng.u32(..4) == 0 { rng.u32(..6) } else { DEFAULT };
            assert_eq!(table.insert(&name, number), Ok(model.get(&name).copied()));
            model.insert(name, number);
        }
    }
    let stored = model.values().filter(|&&number| number != DEFAULT).count();
    let forwarding = table.table().differentiator();
    assert!(stored * 3 < model.len() && forwarding.slots().occupied_slots() <= stored + stored / 2);
    assert!(!forwarding.collisions().is_empty(), "some of so many were alike");
    let names: Vec<Vec<u8>> = model.keys().cloned().collect();
    let found = look_up(|names, out| table.longest_prefix_match_batch(names, out), &names);
    for (name, found) in names.iter().zip(found) {
        assert_eq!(found.map(|found| found.number), Some(model[name]), "{name:?}");
    }
}

/// The same while the root prefix, which the default table follows, changes what it leads to and is
/// sometimes absent.
#[test]
fn the_default_table_follows_the_root_prefix() {
    let tries = [PatriciaOptions::sbpt(3_000), PatriciaOptions::fpt(3_000)];
    let key = HashKey::from_seed(3);
    let tries = tries.map(|options| -> Box<dyn PrefixTable> {
        let trie = StringDifferentiation::with_patricia_trie(key, options, true, DefaultRoute::Followed);
        Box::new(trie.expect("a small trie"))
    });
    let tables = tries.into_iter().chain([Box::new(fht(3_000, 4, SHORTEST, DefaultRoute::Followed)) as Box<_>]);
    for mut table in tables {
        let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut rng = fastrand::Rng::with_seed(9);
        for round in 0..40 {
            for _ in 0..200 {
                let name = if rng.u32(..100) == 0 { Vec::new() } else { rule(rng.u32(..2_000)) };
                if rng.u32(..3) == 0 {
                    assert_eq!(table.remove(&name), model.remove(&name));
                } else {
                    let number = rng.u32(..3);
                    assert_eq!(table.insert(&name, number), Ok(model.insert(name, number)));
                }
            }
            let names: Vec<Vec<u8>> = model.keys().filter(|name| !name.is_empty()).cloned().collect();
            let found = look_up(|names, out| table.longest_prefix_match_batch(names, out), &names);
            for (name, found) in names.iter().zip(found) {
                assert_eq!(found.map(|found| found.number), Some(model[name]), "round {round}: {name:?}");
            }
            assert_eq!(table.len(), model.len());
        }
    }
}

#[test]
fn a_speculative_default_route_is_what_no_other_rule_answers() {
    let mut table = fht(100, 4, SHORTEST, DefaultRoute::Speculative);
    let [a, ab, b] = [component(8, b"a"), [component(8, b"a"), component(8, b"b")].concat(), component(8, b"b")];
    assert_eq!(table.insert(&[], 1), Ok(None));
    assert_eq!(table.insert(&[], 2), Ok(Some(1)));
    assert_eq!(table.insert(&ab, 300), Ok(None));
    assert_eq!(table.table().differentiator().slots().occupied_slots(), 1, "not below the root");
    let find = |table: &StringDifferentiation<FhtController>, name: &Vec<u8>| {
        look_up(|names, out| table.longest_prefix_match_batch(names, out), std::slice::from_ref(name))[0]
    };
    assert_eq!(find(&table, &ab), Some(PrefixMatch { number: 300, prefix_bytes: ab.len() as u16 }));
    for name in [&a, &b] {
        assert_eq!(find(&table, name), Some(PrefixMatch { number: 2, prefix_bytes: 0 }));
    }
    assert_eq!((table.len(), table.remove(&[]), table.remove(&[]), table.len()), (2, Some(2), None, 1));
    assert_eq!(find(&table, &b), None);
}

#[test]
fn names_of_more_components_than_prefixes_have_are_looked_up_too() {
    let mut table = fht(10, 1, SHORTEST, DefaultRoute::Exact);
    let endless = component(8, b"x").repeat(2_000);
    let prefixes = [component(8, b"x"), component(8, b"x").repeat(namewire_tables::MAX_NAME_COMPONENTS)];
    for (number, prefix) in (1..).zip(prefixes) {
        table.insert(&prefix, number).expect("room");
        let mut found = [None];
        table.longest_prefix_match_batch(&[&endless], &mut found);
        assert_eq!(found[0], Some(PrefixMatch { number, prefix_bytes: prefix.len() as u16 }));
    }
}

/// §4.3.5 in its two phases: some names are loaded, and of the others those that would be mistaken for them
/// are noted.
#[test]
fn a_bulk_load_is_right_about_its_names_and_those_of_the_default_table() {
    const STORED: u32 = 30_000;
    const NAMES: u32 = 120_000;
    const DEFAULT: u32 = 300;
    let key = HashKey::from_seed(3);
    let table = ForwardingTable::new(key, FhtTable::new(STORED as usize, SHORTEST).expect("small"), PageSize::Base)
        .expect("small");
    let mut load = BulkLoad::new(key, table, 1, Some(DEFAULT));
    let names: Vec<Vec<u8>> = (0..NAMES).map(|number| component(8, &number.to_be_bytes())).collect();
    let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    let (stored, others) = slices.split_at(STORED as usize);
    let numbers: Vec<u32> = (0..STORED).map(|number| number % 1_000).collect();
    for (names, numbers) in stored.chunks(DESIGN_BATCH_NAMES).zip(numbers.chunks(DESIGN_BATCH_NAMES)) {
        load.insert_batch(names, numbers);
    }
    let taken = load.collisions();
    let before = look_up(|names, out| load.longest_prefix_match_batch(names, out), &names);
    let mistaken = before[STORED as usize..].iter().filter(|found| found.map(|found| found.prefix_bytes) != Some(0));
    let mistaken = mistaken.count() as u64;
    others.chunks(DESIGN_BATCH_NAMES).for_each(|names| load.note_default_batch(names, DEFAULT));
    assert!(taken > 20 && mistaken > 200, "{taken} and {mistaken}: it must have come up");
    assert_eq!(load.collisions(), taken + mistaken);
    assert_eq!(load.names(), u64::from(STORED));
    let found = look_up(|names, out| load.longest_prefix_match_batch(names, out), &names);
    for (number, found) in found.iter().enumerate() {
        let expected = numbers.get(number).copied().unwrap_or(DEFAULT);
        assert_eq!(found.map(|found| found.number), Some(expected), "name {number}");
    }
}
