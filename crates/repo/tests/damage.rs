//! Question: what does a store answer after another program has changed its file?
//!
//! A store with Data of many sizes is written once. Each round changes its bytes: it cuts the file, flips bits, zeroes
//! or swaps pages, or writes something else over them. Then the test makes every request that a repository and its
//! commands make. Each answer must be what was stored, or an error that names the file. A panic fails the test, and a
//! signal ends it.
//!
//! `NAMEWIRE_DAMAGED_STORES` sets the number of rounds.

use namewire_repo::archive;
use namewire_repo::check::check;
use namewire_repo::store::embedded::{EmbeddedOptions, EmbeddedStore, Sync};
use namewire_repo::store::index::Index;
use namewire_repo::store::sqlite::{SqliteOptions, SqliteStore};
use namewire_repo::store::{Change, Record, Store, StoreError};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const ROUNDS: u64 = 500;
/// Bytes that are swapped, zeroed or written over together.
const PAGE_BYTES: usize = 4112;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn name(number: u32) -> Vec<u8> {
    [&[8, 4], &number.to_be_bytes()[..]].concat()
}

/// What is stored: small records, and some that take several pages.
fn entries() -> Entries {
    let mut random = fastrand::Rng::with_seed(5);
    let wire = |random: &mut fastrand::Rng, number: u32| {
        let size = if number.is_multiple_of(40) { random.usize(4_000..20_000) } else { random.usize(..6_000) };
        (0..size).map(|_| random.u8(..)).collect::<Vec<u8>>()
    };
    let entry = |number| {
        let wire = wire(&mut random, number);
        (name(number), Record { stored_ms: 1, freshness_ms: 0, wire: &wire }.encode())
    };
    (0..600).map(entry).collect()
}

fn fill(store: &dyn Store, entries: &Entries) {
    let all: Vec<_> = entries.iter().collect();
    for batch in all.chunks(50) {
        let changes: Vec<Change<'_>> = batch.iter().map(|(name, record)| Change::Put { name, record }).collect();
        store.write(&changes).unwrap();
    }
    store.write(&[Change::Note { key: b"noted", note: Some(b"this") }]).unwrap();
}

/// Changes some bytes of a file as a broken disk, program or user would.
fn damage(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    let pages = bytes.len() / PAGE_BYTES;
    let page = |random: &mut fastrand::Rng| random.usize(..pages) * PAGE_BYTES;
    match random.u8(..7) {
        0 => bytes.truncate(random.usize(..bytes.len())),
        1 => bytes.truncate(random.usize(..pages) * PAGE_BYTES),
        2 => (0..random.usize(1..4)).for_each(|_| {
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u8(..8);
        }),
        3 => (0..random.usize(1..3)).for_each(|_| {
            let at = page(random);
            bytes[at..at + PAGE_BYTES].fill(0);
        }),
        4 => (0..random.usize(1..3)).for_each(|_| {
            let (a, b) = (page(random), page(random));
            let (first, second) = (bytes[a..a + PAGE_BYTES].to_vec(), bytes[b..b + PAGE_BYTES].to_vec());
            bytes[a..a + PAGE_BYTES].copy_from_slice(&second);
            bytes[b..b + PAGE_BYTES].copy_from_slice(&first);
        }),
        // What matters most is at the beginning.
        5 => {
            let at = random.usize(..600);
            bytes[at] = random.u8(..);
        }
        _ => {
            let (from, count) = (random.usize(..bytes.len()), random.usize(..PAGE_BYTES));
            bytes[from..].iter_mut().take(count).for_each(|byte| *byte = random.u8(..));
        }
    }
}

/// What a repository did with a damaged store.
#[derive(Debug, Default)]
struct Outcome {
    right: u64,
    errors: u64,
    refused_at_start: u64,
}

/// Asks everything. Each answer is an error about this file, or what was stored.
fn ask(store: &dyn Store, entries: &Entries, says: &dyn Fn(&StoreError) -> bool, outcome: &mut Outcome) {
    let mut note = |answer: Result<(), StoreError>| match answer {
        Ok(()) => outcome.right += 1,
        Err(error) => {
            assert!(says(&error), "{error:?}");
            outcome.errors += 1;
        }
    };
    let names: Vec<&[u8]> = entries.keys().map(Vec::as_slice).collect();
    let mut found = vec![false; names.len()];
    let looked_up = store.get(&names, &mut |place, record| {
        assert_eq!(record.encode(), entries[names[place]], "another record than was stored");
        found[place] = true;
    });
    assert!(looked_up.is_err() || found.iter().all(|found| *found), "Data are missing without an error");
    note(looked_up);
    let mut seen = 0;
    let listed = store.scan(&[], None, &mut |name, record| {
        assert_eq!(Some(&record.encode()), entries.get(name), "another record than was stored");
        seen += 1;
        ControlFlow::Continue(())
    });
    assert!(listed.is_err() || seen == entries.len(), "Data are missing without an error");
    note(listed);
    note(store.usage().map(drop));
    note(store.notes(&mut |_, _| ()));
    note(check(store, |_| {}).map(drop));
    match archive::export(store, &[], std::io::sink(), |_| {}) {
        Ok(count) => assert_eq!(count, entries.len() as u64),
        Err(archive::ArchiveError::Store(error)) => note(Err(error)),
        Err(error) => panic!("{error}"),
    }
    let (first, new) = (name(0), name(1 << 20));
    let record = Record { stored_ms: 2, freshness_ms: 0, wire: b"new" }.encode();
    note(store.write(&[Change::Put { name: &new, record: &record }]).map(drop));
    note(store.write(&[Change::Delete { name: &first }, Change::Delete { name: &new }]).map(drop));
}

fn rounds() -> u64 {
    std::env::var("NAMEWIRE_DAMAGED_STORES").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"))
}

fn embedded(folder: &Path) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(folder, EmbeddedOptions { sync: Sync::Os, ..EmbeddedOptions::default() })
}

#[test]
fn a_damaged_embedded_store_answers_with_an_error_or_with_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("records.db");
    let entries = entries();
    fill(&embedded(folder.path()).unwrap(), &entries);
    let whole = fs::read(&file).unwrap();
    let is_about_the_file = |error: &StoreError| {
        matches!(error, StoreError::Damaged(_)) && error.to_string().contains(file.to_str().unwrap())
    };
    let mut outcome = Outcome::default();
    for round in 0..rounds() {
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut fastrand::Rng::with_seed(round));
        fs::write(&file, &bytes).unwrap();
        match embedded(folder.path()) {
            Ok(store) => ask(&store, &entries, &is_about_the_file, &mut outcome),
            Err(error) => {
                assert!(is_about_the_file(&error) && error.to_string().contains("namewire repo import"), "{error:?}");

                outcome.refused_at_start += 1;
            }
        }
    }
    println!("{} damaged files of {} KiB: {outcome:?}", rounds(), whole.len() >> 10);
    assert!(outcome.right > 0 && outcome.errors > 0 && outcome.refused_at_start > 0, "{outcome:?}");
}

/// `cp` reads a store from its beginning to its end while the store is written: later parts are of later commits.
#[test]
fn a_copy_of_a_store_that_was_written_meanwhile_is_refused_or_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.db");
    let mut states = vec![];
    let store = embedded(folder.path()).unwrap();
    for round in 0..12_u8 {
        let record = Record { stored_ms: round.into(), freshness_ms: 0, wire: &[round; 300] }.encode();
        let names: Vec<Vec<u8>> = (0..300).map(|number| name(number * 7 + u32::from(round))).collect();
        let changes: Vec<Change<'_>> = names.iter().map(|name| Change::Put { name, record: &record }).collect();
        store.write(&changes).unwrap();
        states.push((fs::read(&file).unwrap(), listed(&store).unwrap()));
    }
    drop(store);
    let (mut refused, mut right) = (0, 0);
    for seed in 0..rounds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let (first, mut now) = (random.usize(..states.len()), 0);
        let mut copy = vec![];
        // Few commits happen during most copies.
        let pause = random.usize(1..200);
        while let Some(part) = states[first + now].0.get(copy.len()..).filter(|part| !part.is_empty()) {
            copy.extend_from_slice(&part[..PAGE_BYTES.min(part.len())]);
            now = (now + usize::from(random.usize(..pause) == 0)).min(states.len() - 1 - first);
        }
        fs::write(&file, &copy).unwrap();
        match embedded(folder.path()).and_then(|store| listed(&store)) {
            Ok(listed) => {
                assert!(listed == states[first].1, "neither an error nor what was stored when the copy began");
                right += 1;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
                refused += 1;
            }
        }
    }
    println!("{} copies: {right} right, {refused} refused", rounds());
    assert!(refused > 0 && right > 0);
}

fn listed(store: &dyn Store) -> Result<Entries, StoreError> {
    let mut all = Entries::new();
    store.scan(&[], None, &mut |name, record| {
        all.insert(name.to_vec(), record.encode());
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

#[test]
fn a_damaged_sqlite_file_does_not_end_the_process() {
    let open =
        |folder: &Path, index| SqliteStore::open(folder, SqliteOptions { index, sync: Sync::Os, bytes_max: 1 << 40 });
    let entries = entries();
    for index in [Index::Stored, Index::Memory] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("records.sqlite");
        fill(&open(folder.path(), index).unwrap(), &entries);
        let whole = fs::read(&file).unwrap();
        for round in 0..rounds() / 10 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut fastrand::Rng::with_seed(round));
            fs::write(&file, &bytes).unwrap();
            // SQLite has no checksums, so only whether it answers matters.
            let Ok(store) = open(folder.path(), index) else { continue };
            let names: Vec<&[u8]> = entries.keys().map(Vec::as_slice).collect();
            let _ = store.get(&names, &mut |_, _| ());
            let _ = store.scan(&[], None, &mut |_, _| ControlFlow::Continue(()));
            let _ = check(&store, |_| {});
            let changes: Vec<Change<'_>> = names.iter().map(|name| Change::Delete { name }).collect();
            let _ = store.write(&changes);
        }
    }
}
