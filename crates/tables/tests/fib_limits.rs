//! FIB at its limits: what it refuses, how much memory a pinned reader keeps, and how much is free
//! afterwards.

use namewire_tables::fib::MAX_WAITING;
use namewire_tables::quiescence::UPDATES_PER_EPOCH;
use namewire_tables::{Fib, FibConfig, FibRefusal, FibView, HashKey, NameHashes, NextHop};

/// /<number>, of 10 bytes.
fn name(number: u64) -> Vec<u8> {
    [&[8, 8][..], &number.to_be_bytes()].concat()
}

fn fib(config: FibConfig) -> Fib {
    Fib::with_config(config, HashKey::from_seed(1)).expect("address space")
}

fn insert(fib: &mut Fib, number: u64) -> Result<bool, FibRefusal> {
    fib.insert(&name(number), &[], 0, false).map(|inserted| inserted.replaced)
}

fn strategy(view: FibView<'_>, number: u64) -> Option<u32> {
    let mut hashes = NameHashes::default();
    hashes.compute(view.key(), &name(number)).expect("short");
    view.longest_prefix_match(&name(number), &hashes).map(|entry| entry.strategy)
}

/// A refusal for lack of bytes ends when an entry of that size is removed: no later update, and no call, is
/// needed to free its bytes.
#[test]
fn a_fib_without_free_bytes_takes_an_entry_for_every_one_removed() {
    const ENTRIES: u64 = 200;
    let entry_bytes = ENTRIES as usize * 20; // 8 of header, 10 of name, 2 of fill
    let mut fib = fib(FibConfig { entry_bytes, ..FibConfig::new(10_000) });
    (0..ENTRIES).for_each(|number| assert_eq!(insert(&mut fib, number), Ok(false)));
    assert_eq!(insert(&mut fib, ENTRIES), Err(FibRefusal::BytesFull));
    assert_eq!((fib.len() as u64, strategy(fib.view(), ENTRIES)), (ENTRIES, None), "nothing changed");
    for number in 0..UPDATES_PER_EPOCH as u64 / 4 {
        assert_eq!(fib.remove(&name(number)), Ok(true));
        assert_eq!(insert(&mut fib, 1000 + number), Ok(false));
        assert_eq!(insert(&mut fib, 2000 + number), Err(FibRefusal::BytesFull));
    }
    let mut reader = fib.reader();
    let pin = reader.pin();
    assert_eq!(fib.remove(&name(100)), Ok(true));
    assert_eq!(insert(&mut fib, 3000), Err(FibRefusal::BytesFull), "a reader may hold the only free bytes");
    drop(pin);
    assert_eq!(insert(&mut fib, 3000), Ok(false));
    assert_eq!(fib.len() as u64, ENTRIES);
}

/// Each change of an entry left a set waiting for the reader: memory grew without end.
#[test]
fn changes_stop_when_a_reader_keeps_too_much_waiting() {
    let mut fib = fib(FibConfig::new(100));
    let change = |fib: &mut Fib, face| fib.insert(&name(1), &[NextHop { face, cost: 0 }], 0, false);
    change(&mut fib, 0).expect("there is room");
    insert(&mut fib, 2).expect("there is room");
    let mut reader = fib.reader();
    let pin = reader.pin();
    let mut face = 0;
    let refusal = loop {
        face += 1;
        match change(&mut fib, face) {
            Ok(_) => assert!(face as usize <= MAX_WAITING),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((refusal, fib.waiting()), (FibRefusal::ReadersBehind, MAX_WAITING));
    let bytes = fib.bytes();
    assert_eq!(change(&mut fib, face), Err(FibRefusal::ReadersBehind));
    assert_eq!(insert(&mut fib, 3), Err(FibRefusal::ReadersBehind));
    assert_eq!(change(&mut fib, face - 1).map(|inserted| inserted.replaced), Ok(true), "it is so already");
    assert_eq!(fib.bytes(), bytes);
    assert_eq!(fib.remove(&name(2)), Ok(true), "removals go on");
    drop(pin);
    assert_eq!(insert(&mut fib, 3), Ok(false));
    assert_eq!(fib.waiting(), 0);
}

/// The index is replaced while a reader is pinned. That reader goes on with the former one. After it ends,
/// insertions alone free the former index. (Once only removals did, and a FIB that was filled and never
/// changed kept it for ever.)
#[test]
fn a_former_index_answers_as_long_as_its_reader_and_then_goes() {
    let mut fib = fib(FibConfig::new(1_000_000));
    let mut inserted = 0..;
    let mut add = |fib: &mut Fib, count| {
        for number in inserted.by_ref().take(count) {
            fib.insert(&name(number), &[], number as u32, false).expect("there is room");
        }
    };
    add(&mut fib, 100_000);
    while fib.waiting() > 0 {
        add(&mut fib, 1);
    }
    let (mut reader, mut late) = (fib.reader(), fib.reader());
    let pin = reader.pin();
    let old_view = pin.view();
    let (before, known) = (fib.bytes(), fib.len() as u64);
    add(&mut fib, 100_000); // at 128,000 it doubles
    assert_eq!(fib.waiting(), 1, "the former index");
    assert!(fib.bytes() > before + 3_000_000);
    assert!((0..known).all(|number| strategy(old_view, number) == Some(number as u32)));
    assert_eq!(strategy(old_view, fib.len() as u64 - 1), None, "it is as it was");
    assert_eq!(strategy(late.pin().view(), fib.len() as u64 - 1), Some(fib.len() as u32 - 1));
    drop(pin);
    add(&mut fib, UPDATES_PER_EPOCH);
    assert_eq!(fib.waiting(), 0);
}
