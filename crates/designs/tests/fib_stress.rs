//! One writer and several readers on real threads: what a reader may see of a FIB that changes all the
//! time.
//!
//! Some prefixes are there throughout, others come and go below and above them, and the index doubles on
//! the way. Every look-up must find the prefix that is always there or a longer one. Every entry must be
//! whole: its name is a prefix of the name looked up and its next hops belong together.

use namewire_designs::fib::default_table::DefaultTable;
use namewire_tables::{Fib, FibConfig, FibRefusal, FibSearch, FibView, HashKey, NameHashes, NameStorage, NextHop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PERMANENT: u64 = 200;
/// Enough for the index to double twice.
const CHURN: u64 = 4_000;
const READERS: usize = 2;
const LEAST_DURATION: Duration = Duration::from_millis(600);
const LEAST_UPDATES: u64 = 60_000;

fn component(bytes: &[u8]) -> Vec<u8> {
    [&[8, bytes.len() as u8], bytes].concat()
}

/// /p/<number>: there throughout.
fn permanent(number: u64) -> Vec<u8> {
    [component(b"p"), component(&number.to_le_bytes())].concat()
}

/// Shorter or longer than the permanent prefix of the same group, of many sizes.
fn churned(number: u64) -> Vec<u8> {
    let mut name = permanent(number % PERMANENT);
    for byte in 0..=number % 3 {
        name.extend(component(&vec![(number / 7) as u8; (number % 61 + byte) as usize]));
    }
    name
}

/// Next hops that belong together: the first face gives their number, and they have one cost.
fn next_hops(random: u64) -> Vec<NextHop> {
    let count = 1 + random % 7;
    (0..count).map(|hop| NextHop { face: 1000 * count + hop, cost: random % 5 }).collect()
}

fn assert_whole(nexthops: &[NextHop]) {
    let count = nexthops.len() as u64;
    assert!((1..=7).contains(&count));
    for (hop, next_hop) in (0..).zip(nexthops) {
        assert_eq!(*next_hop, NextHop { face: 1000 * count + hop, cost: nexthops[0].cost });
    }
}

/// Looks at the table in every way there is; returns how many names were looked up.
fn read_batch(reader: &mut namewire_tables::FibReader, rng: &mut fastrand::Rng) -> u64 {
    let names: Vec<Vec<u8>> =
        (0..16).map(|_| if rng.bool() { churned(rng.u64(..CHURN)) } else { permanent(rng.u64(..PERMANENT)) }).collect();
    let mut hashes = vec![NameHashes::default(); names.len()];
    let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    assert_eq!(NameHashes::compute_batch(reader.key(), &slices, &mut hashes), 0);
    let pin = reader.pin();
    let view = pin.view();
    let mut found = vec![None; names.len()];
    view.longest_prefix_match_batch(&slices, &hashes, &mut found);
    for (place, (name, hashes)) in slices.iter().zip(&hashes).enumerate() {
        let least = permanent(0).len();
        let batched = found[place].expect("the permanent prefix is always there");
        let scalar = view.longest_prefix_match(name, hashes).expect("as above");
        for entry in [batched, scalar] {
            assert!(entry.prefix_bytes >= least, "a shorter prefix than the one that is always there");
            assert_whole(entry.nexthops);
            assert_eq!(entry.strategy as usize, entry.nexthops.len());
        }
    }
    names.len() as u64
}

#[test]
fn readers_never_miss_or_shorten_what_is_there_throughout() {
    let inline = FibSearch::ALL.map(|search| (search, NameStorage::Inline));
    for (search, names) in inline.into_iter().chain([(FibSearch::default(), NameStorage::Encoded)]) {
        let config = FibConfig { search, names, ..FibConfig::new(CHURN as usize * 2) };
        never_misses_or_shortens(Fib::with_config(config, HashKey::from_seed(5)).expect("address space"));
    }
}

/// The same for two copies of a table that knows no readers.
#[test]
fn readers_of_mirrored_tables_never_miss_or_shorten_what_is_there_throughout() {
    never_misses_or_shortens(mirrored(CHURN as usize * 2, HashKey::from_seed(5)));
}

fn mirrored(capacity_entries: usize, key: HashKey) -> Fib {
    let table = || DefaultTable::new(FibConfig::new(capacity_entries), key).expect("address space");
    Fib::of_design([Box::new(table()), Box::new(table())], capacity_entries, key)
}

fn never_misses_or_shortens(mut fib: Fib) {
    let insert = |fib: &mut Fib, name: &[u8], random| {
        let hops = next_hops(random);
        fib.insert(name, &hops, hops.len() as u32, false)
    };
    for number in 0..PERMANENT {
        insert(&mut fib, &permanent(number), number).expect("there is room");
    }
    insert(&mut fib, &component(b"p"), 1).expect("there is room"); // shorter than the permanent ones
    let (stop, looked_up) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let mut updates = 0_u64;
    std::thread::scope(|scope| {
        for seed in 0..READERS {
            let mut reader = fib.reader();
            let (stop, looked_up) = (&stop, &looked_up);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed as u64);
                while !stop.load(Ordering::Relaxed) {
                    looked_up.fetch_add(read_batch(&mut reader, &mut rng), Ordering::Relaxed);
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(99);
        while started.elapsed() < LEAST_DURATION || updates < LEAST_UPDATES {
            for _ in 0..100 {
                let random = rng.u64(..);
                match random % 8 {
                    0 => match done(&mut fib, |fib| insert(fib, &permanent(rng.u64(..PERMANENT)), random)) {
                        Some(inserted) => assert!(inserted.replaced),
                        None => panic!("a change of a next-hop set needs no bytes"),
                    },
                    1..4 => drop(done(&mut fib, |fib| fib.remove(&churned(rng.u64(..CHURN))))),
                    _ => drop(done(&mut fib, |fib| insert(fib, &churned(rng.u64(..CHURN)), random))),
                }
                updates += 1;
            }
            fib.publish();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(looked_up.into_inner() > 1_000, "the readers looked");
    for number in 0..CHURN {
        fib.remove(&churned(number)).expect("nobody reads");
    }
    assert_eq!(fib.len() as u64, PERMANENT + 1);
    fib.reclaim();
    let permanent_bytes = (0..PERMANENT).map(|number| permanent(number).len()).sum::<usize>();
    assert_eq!((fib.name_bytes(), fib.waiting()), (permanent_bytes + component(b"p").len(), 0));
}

/// Tries again while a reader is in the way; `None`: there is no room for the bytes.
fn done<T>(fib: &mut Fib, mut change: impl FnMut(&mut Fib) -> Result<T, FibRefusal>) -> Option<T> {
    loop {
        match change(fib) {
            Ok(result) => return Some(result),
            Err(FibRefusal::BytesFull) => return None,
            Err(FibRefusal::ReadersBehind) => std::thread::yield_now(),
            Err(refusal) => panic!("{refusal}"),
        }
    }
}

/// A reader outlives the FIB's owner, and still sees what it saw.
#[test]
fn a_reader_may_outlive_the_writer() {
    let key = HashKey::from_seed(1);
    [Fib::new(10, key), mirrored(10, key)].into_iter().for_each(reader_outlives_writer);
}

fn reader_outlives_writer(mut fib: Fib) {
    let name = permanent(1);
    fib.insert(&name, &next_hops(3), 4, false).expect("there is room");
    let mut reader = fib.reader();
    drop(fib);
    let mut hashes = NameHashes::default();
    hashes.compute(reader.key(), &name).expect("short");
    let pin = reader.pin();
    assert_eq!(pin.view().longest_prefix_match(&name, &hashes).map(|entry| entry.strategy), Some(4));
}

/// A reader of a mirrored table that never ends its pin stops changes, but stops neither itself nor other
/// readers.
#[test]
fn a_pinned_reader_of_a_mirrored_table_refuses_changes_and_loses_nothing() {
    let mut fib = mirrored(10_000, HashKey::from_seed(1));
    let (mut reader, mut other) = (fib.reader(), fib.reader());
    let pin = reader.pin();
    let before = pin.view();
    let inserted = (0..).find(|&number| {
        let result = fib.insert(&permanent(number), &next_hops(number), 1, false);
        assert!(matches!(result, Ok(_) | Err(FibRefusal::ReadersBehind)), "{result:?}");
        result.is_err()
    });
    let inserted = inserted.expect("the log is bounded");
    assert_eq!(fib.remove(&permanent(0)), Err(FibRefusal::ReadersBehind));
    let mut hashes = NameHashes::default();
    for number in 0..=inserted {
        let name = permanent(number);
        hashes.compute(fib.key(), &name).expect("short");
        assert_eq!(before.longest_prefix_match(&name, &hashes), None, "as it was");
        let expected = (number < inserted).then(|| next_hops(number));
        let seen = |view: FibView<'_>| view.longest_prefix_match(&name, &hashes).map(|found| found.nexthops.to_vec());
        assert_eq!((seen(fib.view()), seen(other.pin().view())), (expected.clone(), expected));
    }
    drop(pin);
    assert_eq!(fib.remove(&permanent(0)), Ok(true));
    assert_eq!((fib.len() as u64, fib.waiting()), (inserted - 1, 0));
}

/// Entries that a pinned reader may hold are not reused; a sleeping reader holds nothing up.
#[test]
fn a_pinned_reader_keeps_what_it_found() {
    let mut fib = Fib::new(100, HashKey::from_seed(1));
    let name = permanent(1);
    fib.insert(&name, &next_hops(3), 4, false).expect("there is room");
    let (mut reader, mut _asleep) = (fib.reader(), fib.reader());
    let mut hashes = NameHashes::default();
    hashes.compute(reader.key(), &name).expect("short");
    let pin = reader.pin();
    let found = pin.view().longest_prefix_match(&name, &hashes).expect("it is there");
    assert_eq!(fib.remove(&name), Ok(true));
    for round in 0..300 {
        let other = permanent(100 + round % 50); // as long as the one that was removed
        fib.insert(&other, &next_hops(round), 1, false).expect("there is room");
        assert_eq!((found.prefix_bytes, found.nexthops), (name.len(), &next_hops(3)[..]));
        if round % 2 == 0 {
            assert_eq!(fib.remove(&other), Ok(true));
        }
    }
    drop(pin);
    let mut churn = || {
        for round in 0..10_000 {
            let other = permanent(1000 + round);
            fib.insert(&other, &next_hops(round), 1, false).expect("there is room");
            assert_eq!(fib.remove(&other), Ok(true));
        }
        fib.bytes()
    };
    // At the end the waiting things differ by some sets and lists.
    let (first, second) = (churn(), churn());
    assert!(second < first + 4096, "places are used again: {first}, then {second} bytes");
}
