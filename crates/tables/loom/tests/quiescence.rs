//! Quiescence: no interleaving lets a pinned reader see a half-made entry, or overwrites an entry that the
//! reader holds.
//!
//! The table of these models is a small FIB: an index slot with the number of an entry, and entries whose
//! words are plain memory. Loom fails a model in which a thread writes an entry while another may read it.
//! It also fails a model in which a thread reads an entry before that entry is written.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use namewire_tables_loom::quiescence::{Domain, Reader, Retired};

/// No entry.
const NONE: usize = usize::MAX;

struct Table {
    index: AtomicUsize,
    /// The two words of an entry are equal unless a write is half done.
    entries: [UnsafeCell<[u32; 2]>; 2],
}

// Loom watches the cells: a race on them fails the model.
unsafe impl Sync for Table {}
unsafe impl Send for Table {}

impl Table {
    fn new() -> Self {
        Self { index: AtomicUsize::new(NONE), entries: [UnsafeCell::new([0, 0]), UnsafeCell::new([0, 0])] }
    }

    fn write(&self, entry: usize, value: u32) {
        self.entries[entry].with_mut(|words| unsafe { *words = [value, value] });
    }

    fn publish(&self, entry: usize) {
        self.index.store(entry, Ordering::Release);
    }

    /// The value found. Reads twice, as a look-up does: once to compare, once to use.
    fn read(&self) -> Option<u32> {
        let entry = self.index.load(Ordering::Acquire);
        (entry != NONE).then(|| {
            let read = || self.entries[entry].with(|words| unsafe { *words });
            let ([first, second], again) = (read(), read());
            assert_eq!((first, [first, second]), (second, again), "an entry is whole and stays");
            first
        })
    }
}

fn table_and_reader() -> (Arc<Table>, Reader, Retired<usize>) {
    let domain = Arc::new(Domain::new());
    let reader = Reader::new(&domain);
    (Arc::new(Table::new()), reader, Retired::new(&domain))
}

/// Removes an entry, reclaims, and uses the place for another entry if it is free.
#[test]
fn a_place_is_reused_only_when_no_reader_holds_it() {
    loom::model(|| {
        let (table, mut reader, mut retired) = table_and_reader();
        table.write(0, 1);
        table.publish(0);
        let seen = Arc::clone(&table);
        let reading = thread::spawn(move || {
            for _ in 0..2 {
                let pin = reader.pin();
                let value = seen.read();
                assert!(value.is_none_or(|value| value == 1 || value == 2));
                drop(pin);
            }
        });
        table.publish(NONE);
        retired.retire(0);
        let mut free = None;
        retired.reclaim(|entry| free = Some(entry));
        if let Some(entry) = free {
            table.write(entry, 2);
            table.publish(entry);
        }
        reading.join().unwrap();
        retired.reclaim(|entry| free = Some(entry));
        assert_eq!(free, Some(0), "nobody is online");
    });
}

/// Changes an entry: the new one is published in place of the old one, which is retired and used for a
/// third value. Every reader finds one of the values, never nothing.
#[test]
fn an_entry_that_stays_is_never_missed() {
    loom::model(|| {
        let (table, mut reader, mut retired) = table_and_reader();
        table.write(0, 1);
        table.publish(0);
        let seen = Arc::clone(&table);
        let reading = thread::spawn(move || {
            let mut last = 0;
            for _ in 0..2 {
                let pin = reader.pin();
                let value = seen.read().expect("there is always one");
                assert!(value >= last, "an older value after a newer one");
                last = value;
                drop(pin);
            }
        });
        table.write(1, 2);
        table.publish(1);
        retired.retire(0);
        let mut free = None;
        retired.reclaim(|entry| free = Some(entry));
        if let Some(entry) = free {
            table.write(entry, 3);
            table.publish(entry);
        }
        reading.join().unwrap();
    });
}

/// Two readers: only the slower one still holds the place.
#[test]
fn every_reader_is_waited_for() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let domain = Arc::new(Domain::new());
        let table = Arc::new(Table::new());
        let mut retired = Retired::new(&domain);
        table.write(0, 1);
        table.publish(0);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (table, mut reader) = (Arc::clone(&table), Reader::new(&domain));
                thread::spawn(move || {
                    let pin = reader.pin();
                    table.read();
                    drop(pin);
                })
            })
            .collect();
        table.publish(NONE);
        retired.retire(0);
        retired.reclaim(|entry| table.write(entry, 2));
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
