//! Question: does every store do what the store in memory does, after any sequence of changes?

mod redis_stores;

use namewire_repo::store::embedded::{EmbeddedOptions, EmbeddedStore, Sync};
use namewire_repo::store::index::Index;
use namewire_repo::store::memory::MemoryStore;
use namewire_repo::store::sqlite::{SqliteOptions, SqliteStore};
use namewire_repo::store::{Change, Record, Store, StoreError, StoreSettings, Written};
use std::ops::ControlFlow;
use std::path::Path;

/// A name of these components, all generic.
fn name(components: &[&[u8]]) -> Vec<u8> {
    let component = |value: &&[u8]| [&[8, value.len() as u8], *value].concat();
    components.iter().flat_map(component).collect()
}

fn record(stored_ms: u64, wire: &[u8]) -> Vec<u8> {
    Record { stored_ms, freshness_ms: 1000, wire }.encode()
}

/// What is stored below a prefix, after a name.
fn listed(store: &dyn Store, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = vec![];
    let visit = &mut |name: &[u8], record: Record<'_>| {
        all.push((name.to_vec(), record.encode()));
        if all.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.scan(prefix, after, visit).expect("an ordered store");
    all
}

fn notes(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = vec![];
    store.notes(&mut |key, note| all.push((key.to_vec(), note.to_vec()))).expect("a store that answers");
    all.sort_unstable();
    all
}

fn got(store: &dyn Store, names: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let mut all = vec![None; names.len()];
    store.get(names, &mut |place, record| all[place] = Some(record.encode())).expect("a store that answers");
    all
}

/// Does random changes in both, and compares everything that can be asked. Both are empty before.
fn compare_with_memory(store: &dyn Store, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let reference = MemoryStore::new(u64::MAX);
    let parts: [&[u8]; 7] = [b"", b"a", b"b", b"ab", &[0], &[255; 20], &[7; 250]];
    let any_name = |random: &mut fastrand::Rng| {
        let components: Vec<&[u8]> = (0..random.usize(..4)).map(|_| parts[random.usize(..parts.len())]).collect();
        name(&components)
    };
    for round in 0..60_u64 {
        let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..random.usize(..20))
            .map(|number| {
                let wire = vec![round as u8; random.usize(..300)];
                (any_name(&mut random), (random.u8(..4) > 0).then(|| record(round << 8 | number as u64, &wire)))
            })
            .collect();
        let mut changes: Vec<Change<'_>> = changes
            .iter()
            .map(|(name, record)| match record {
                Some(record) => Change::Put { name, record },
                None => Change::Delete { name },
            })
            .collect();
        let key = parts[random.usize(1..parts.len())];
        changes.push(Change::Note { key, note: random.bool().then_some(b"noted") });
        assert_eq!(store.write(&changes).unwrap(), reference.write(&changes).unwrap());
        assert_eq!(store.usage().unwrap(), reference.usage().unwrap());
        assert_eq!(notes(store), notes(&reference));
        let names: Vec<Vec<u8>> = (0..10).map(|_| any_name(&mut random)).collect();
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        assert_eq!(got(store, &names), got(&reference, &names));
        if store.is_ordered() {
            let after = random.bool().then_some(names[0]);
            let limit = random.usize(1..30);
            assert_eq!(listed(store, names[1], after, limit), listed(&reference, names[1], after, limit));
        }
    }
}

#[test]
fn the_store_in_memory_keeps_the_last_record_of_each_name_in_canonical_order() {
    let store = MemoryStore::new(10_000);
    let [short, long, other] = [name(&[b"a"]), name(&[b"a", b"b"]), name(&[b"aa"])];
    let records = [record(1, b"one"), record(2, b"two"), record(3, b"three")];
    let put = |name: &[u8], record: &[u8]| store.write(&[Change::Put { name, record }]).unwrap();
    assert_eq!(put(&other, &records[0]), Written { added: 1, ..Written::default() });
    put(&long, &records[1]);
    put(&short, &records[0]);
    assert_eq!(put(&short, &records[2]), Written { replaced: 1, ..Written::default() });
    let all = [(short.clone(), records[2].clone()), (long.clone(), records[1].clone()), (other, records[0].clone())];
    assert_eq!(listed(&store, &[], None, 9), all, "a longer component comes after a shorter one");
    assert_eq!(listed(&store, &short, Some(&short), 9), all[1..2]);
    assert_eq!(store.write(&[Change::Delete { name: &long }]).unwrap(), Written { deleted: 1, ..Written::default() });
    assert_eq!(store.usage().unwrap().records, 2);
    compare_with_memory(&MemoryStore::new(u64::MAX), 1);
}

#[test]
fn a_full_store_refuses_and_stays_what_it_was() {
    let store = MemoryStore::new(100);
    let (first, second) = (name(&[b"a"]), name(&[b"b"]));
    let small = record(0, &[0; 50]);
    store.write(&[Change::Put { name: &first, record: &small }]).unwrap();
    let refused = store.write(&[Change::Delete { name: &first }, Change::Put { name: &second, record: &small }]);
    assert!(matches!(refused, Err(namewire_repo::store::StoreError::Full(_))), "{refused:?}");
    assert_eq!(store.usage().unwrap().records, 1);
    store.write(&[Change::Delete { name: &first }]).unwrap();
    store.write(&[Change::Put { name: &second, record: &small }]).unwrap();
}

fn embedded(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, EmbeddedOptions::default()).expect("a store")
}

#[test]
fn the_embedded_store_does_what_the_store_in_memory_does() {
    for seed in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        compare_with_memory(&embedded(folder.path()), seed);
    }
}

#[test]
fn the_embedded_store_keeps_its_data_when_it_is_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (name(&[b"a"]), name(&[&[1; 250][..]; 30]));
    let records = [record(1, b"one"), record(2, &[3; 8_000])];
    let store = embedded(folder.path());
    let put = |name, record| Change::Put { name, record };
    store
        .write(&[put(&short, &records[0]), put(&long, &records[1]), Change::Note { key: b"k", note: Some(b"n") }])
        .unwrap();
    let before = (listed(&store, &[], None, 9), store.usage().unwrap(), notes(&store));
    drop(store);
    let store = embedded(folder.path());
    assert_eq!((listed(&store, &[], None, 9), store.usage().unwrap(), notes(&store)), before);
    assert_eq!(before.0, [(short, records[0].clone()), (long.clone(), records[1].clone())]);
    assert_eq!(listed(&store, &long[..2520], None, 9).len(), 1, "a prefix may be longer than a key");
    assert_eq!(listed(&store, &[&long[..2520], &[8, 1, 1]].concat(), None, 9), []);
}

#[test]
fn names_of_eight_kilobytes_with_a_common_prefix_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let store = embedded(folder.path());
    let names: Vec<Vec<u8>> = (0..40_u8).map(|last| [name(&[&[1; 250][..]; 31]), name(&[&[last]])].concat()).collect();
    for (place, name) in names.iter().enumerate() {
        let record = record(place as u64, name);
        assert_eq!(store.write(&[Change::Put { name, record: &record }]).unwrap().added, 1);
    }
    let wanted: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let expected = names.iter().enumerate().map(|(place, name)| Some(record(place as u64, name)));
    assert_eq!(got(&store, &wanted), expected.collect::<Vec<_>>());
    // All are listed once, and a listing goes on where it stopped.
    let mut seen = vec![];
    while let [(last, _), ..] = &listed(&store, &[], seen.last().map(Vec::as_slice), 1)[..] {
        seen.push(last.clone());
    }
    seen.sort_unstable();
    assert_eq!(seen, names);
}

#[test]
fn a_full_embedded_store_refuses_answers_and_has_room_after_a_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { bytes_max: 100_000, ..EmbeddedOptions::default() };
    let store = namewire_repo::store::open(&StoreSettings::Embedded { folder: folder.path().into(), options }).unwrap();
    let big = record(0, &[0; 1000]);
    let mut stored = vec![];
    let refused = loop {
        let name = name(&[&[stored.len() as u8]]);
        match store.write(&[Change::Put { name: &name, record: &big }]) {
            Ok(_) => stored.push(name),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    assert_eq!(store.usage().unwrap().records, stored.len() as u64);
    assert_eq!(got(&*store, &[&stored[0]]), [Some(big.clone())]);
    assert_eq!(store.write(&[Change::Delete { name: &stored[0] }]).unwrap().deleted, 1);
    assert_eq!(store.write(&[Change::Put { name: &stored[0], record: &big }]).unwrap().added, 1);
}

fn sqlite(folder: &Path, index: Index) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(folder, SqliteOptions { index, sync: Sync::Os, bytes_max: 1 << 40 })
}

#[test]
fn sqlite_does_what_the_store_in_memory_does() {
    for index in [Index::Stored, Index::Memory] {
        for seed in 1..=3 {
            let folder = tempfile::tempdir().unwrap();
            let store = sqlite(folder.path(), index).unwrap();
            compare_with_memory(&store, seed);
            let before = (listed(&store, &[], None, 99), store.usage().unwrap(), notes(&store));
            drop(store);
            let store = sqlite(folder.path(), index).unwrap();
            assert_eq!((listed(&store, &[], None, 99), store.usage().unwrap(), notes(&store)), before);
        }
    }
}

#[test]
fn sqlite_without_an_index_can_only_insert() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), Index::None).unwrap();
    let (first, second) = (name(&[b"a"]), name(&[b"b"]));
    let one = record(1, b"one");
    let changes = [&first, &second].map(|name| Change::Put { name, record: &one });
    assert_eq!(store.write(&changes).unwrap(), Written { added: 2, ..Written::default() });
    let refused = store.write(&[changes[0], Change::Delete { name: &first }]);
    assert!(matches!(refused, Err(StoreError::NoIndex)), "{refused:?}");
    assert!(matches!(store.get(&[&first], &mut |_, _| ()), Err(StoreError::NoIndex)));
    drop(store);
    let usage = sqlite(folder.path(), Index::None).unwrap().usage().unwrap();
    assert_eq!((usage.records, usage.bytes), (2, (first.len() + second.len() + 2 * one.len()) as u64));
}

#[test]
fn sqlite_is_opened_once_and_only_with_the_settings_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), Index::Stored).unwrap();
    let refused = sqlite(folder.path(), Index::Stored).unwrap_err();
    assert!(refused.to_string().contains("another process"), "{refused}");
    drop(store);
    let refused = sqlite(folder.path(), Index::Memory).unwrap_err();
    assert!(refused.to_string().contains("made with index = \"stored\""), "{refused}");
    // A later version of this program made it.
    let database = rusqlite::Connection::open(folder.path().join("records.sqlite")).unwrap();
    database.pragma_update(None, "user_version", 2).unwrap();
    drop(database);
    let refused = sqlite(folder.path(), Index::Stored).unwrap_err();
    assert!(refused.to_string().contains("format 2"), "{refused}");
    std::fs::write(folder.path().join("records.sqlite"), [1; 5000]).unwrap();
    assert!(matches!(sqlite(folder.path(), Index::Stored), Err(StoreError::Damaged(_))));
}

#[test]
fn a_full_sqlite_refuses_answers_and_has_room_after_a_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { index: Index::Stored, sync: Sync::Always, bytes_max: 100 };
    let store = namewire_repo::store::open(&StoreSettings::Sqlite { folder: folder.path().into(), options }).unwrap();
    let (first, second) = (name(&[b"a"]), name(&[b"b"]));
    let half = record(0, &[0; 50]);
    store.write(&[Change::Put { name: &first, record: &half }]).unwrap();
    let refused = store.write(&[Change::Put { name: &second, record: &half }]);
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert_eq!(got(&*store, &[&first, &second]), [Some(half.clone()), None]);
    store.write(&[Change::Delete { name: &first }]).unwrap();
    store.write(&[Change::Put { name: &second, record: &half }]).unwrap();
}
