//! Question: is everything that the embedded store acknowledged still there, byte for byte, after kill -9?
//!
//! A child process runs the same program. It inserts one batch after the other, deletes old ones, and writes to its
//! output which batch was acknowledged. Meanwhile, one of its threads makes copies without free space. After a random
//! number of batches the test kills the child. What the store then holds must be what it held after the last batch that
//! was acknowledged, or after the next one, and nothing else. The next round goes on with the same store.
//!
//! `NAMEWIRE_KILL_ROUNDS` sets the number of rounds.

use namewire_repo::store::embedded::{EmbeddedOptions, EmbeddedStore};
use namewire_repo::store::{Change, Record, Store};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

const ROUNDS: u32 = 100;
/// A batch deletes what the one so many before it inserted.
const BATCHES_KEPT: u64 = 40;
const FOLDER: &str = "NAMEWIRE_KILL_FOLDER";

/// The names and records of a batch; sizes differ from batch to batch.
fn batch(number: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(number);
    let entry = |random: &mut fastrand::Rng, place: usize| {
        // Segments in order, and names in random places.
        let part = if place.is_multiple_of(2) { number.to_be_bytes() } else { random.u64(..).to_be_bytes() };
        let name = [&[8, 8], &part[..], &[0x32, 2], &(place as u16).to_be_bytes()].concat();
        let wire: Vec<u8> = (0..random.usize(..3_000)).map(|_| random.u8(..)).collect();
        (name, Record { stored_ms: number, freshness_ms: 0, wire: &wire }.encode())
    };
    (0..random.usize(1..100)).map(|place| entry(&mut random, place)).collect()
}

/// What is stored after a batch.
fn stored_after(number: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = ((number + 1).saturating_sub(BATCHES_KEPT)..=number).flat_map(batch).collect();
    all.sort_unstable();
    all
}

fn open(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, EmbeddedOptions::default()).expect("a store that opens")
}

fn stored(store: &EmbeddedStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = vec![];
    let visit = &mut |name: &[u8], record: Record<'_>| {
        all.push((name.to_vec(), record.encode()));
        ControlFlow::Continue(())
    };
    store.scan(&[], None, visit).expect("a store that is whole");
    all
}

/// The number that the store noted with its last batch.
fn last_batch(store: &EmbeddedStore) -> Option<u64> {
    let mut last = None;
    store.notes(&mut |_, note| last = Some(u64::from_le_bytes(note.try_into().expect("8 bytes")))).unwrap();
    last
}

fn insert(store: &EmbeddedStore, number: u64) {
    let entries = batch(number);
    let former = number.checked_sub(BATCHES_KEPT).map_or(vec![], batch);
    let note = number.to_le_bytes();
    let puts = entries.iter().map(|(name, record)| Change::Put { name, record });
    let deletes = former.iter().map(|(name, _)| Change::Delete { name });
    let changes: Vec<Change<'_>> =
        deletes.chain(puts).chain([Change::Note { key: b"batch", note: Some(&note) }]).collect();
    store.write(&changes).expect("room for a batch");
}

/// The child of the test below; by itself it does nothing.
#[test]
fn child_that_inserts_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let store = open(folder);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let copy = folder.join("copy");
            loop {
                let _ = std::fs::remove_dir_all(&copy);
                store.copy_without_free_space(&copy).expect("room for a copy");
            }
        });
        for number in last_batch(&store).map_or(0, |last| last + 1).. {
            insert(&store, number);
            // One write, so that the parent never reads half a line.
            std::io::stderr().write_all(format!("acknowledged {number}\n").as_bytes()).expect("a parent that reads");
        }
    });
}

#[test]
fn acknowledged_data_survives_a_kill() {
    let rounds = std::env::var("NAMEWIRE_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut acknowledged = None;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_inserts_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.expect("text"));
        let numbers = lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
        let mut numbers = numbers.into_iter();
        let wanted = random.usize(1..30);
        acknowledged = numbers.by_ref().take(wanted).last().or(acknowledged);
        std::thread::sleep(std::time::Duration::from_micros(random.u64(..5_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it was killed counts too.
        acknowledged = numbers.last().max(acknowledged);
        let acknowledged = acknowledged.expect("a child that inserts");
        let store = open(folder.path());
        let last = last_batch(&store).expect("a batch was acknowledged");
        assert!([acknowledged, acknowledged + 1].contains(&last), "round {round}: {last}, {acknowledged} acknowledged");
        let found = stored(&store);
        assert!(found == stored_after(last), "round {round}: not what was inserted until batch {last}");
        let usage = store.usage().unwrap();
        let bytes: usize = found.iter().map(|(name, record)| name.len() + record.len()).sum();
        assert_eq!((usage.records, usage.bytes), (found.len() as u64, bytes as u64), "round {round}");
    }
}
