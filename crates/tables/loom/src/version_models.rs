//! Version: no interleaving lets a reader reuse what it found before a change that it could see, or an entry whose
//! place was used again.

use crate::quiescence::{Domain, Reader, Retired};
use crate::version::Version;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// No entry.
const NONE: usize = usize::MAX;

/// A FIB of one name at most: what its index has, and the entry that lies in the one place.
struct Table {
    version: Version,
    index: AtomicUsize,
    entry: UnsafeCell<u32>,
}

// SAFETY: loom watches the cell: a race on it fails the model.
unsafe impl Sync for Table {}
// SAFETY: as above.
unsafe impl Send for Table {}

impl Table {
    fn write(&self, value: u32) {
        // SAFETY: loom fails the model if another thread may read.
        self.entry.with_mut(|entry| unsafe { *entry = value });
    }

    fn link(&self, index: usize) {
        self.version.begin_change();
        self.index.store(index, Ordering::Release);
        self.version.end_change();
    }

    /// Looks up twice in separate pins; the second time it reuses what it found, if the version is the same.
    fn look_twice(&self, reader: &mut Reader) {
        let (mut kept, mut newest) = (None, 0);
        for _ in 0..2 {
            let _pin = reader.pin();
            let version = self.version.read();
            let found = match kept {
                Some((found, of_version)) if Some(of_version) == version => found,
                _ => self.index.load(Ordering::Acquire),
            };
            kept = version.map(|version| (found, version));
            if found != NONE {
                // SAFETY: loom fails the model if another thread may write.
                let value = self.entry.with(|entry| unsafe { *entry });
                assert!(value >= newest, "an older entry after a newer one");
                newest = value;
            }
        }
    }
}

fn model(change: impl Fn(&Table, &mut Retired<()>) + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let domain = Arc::new(Domain::new());
        let (mut reader, mut retired) = (Reader::new(&domain), Retired::new(&domain));
        let index = AtomicUsize::new(NONE);
        let table = Arc::new(Table { version: Version::new(), index, entry: UnsafeCell::new(0) });
        table.write(1);
        table.link(0);
        let seen = Arc::clone(&table);
        let reading = thread::spawn(move || seen.look_twice(&mut reader));
        change(&table, &mut retired);
        reading.join().unwrap();
    });
}

#[test]
fn an_entry_is_reused_only_while_it_is_linked() {
    model(|table, retired| {
        table.link(NONE);
        retired.retire(());
        let mut is_free = false;
        retired.reclaim(|()| is_free = true);
        if is_free {
            table.write(2);
            table.link(0);
        }
    });
}

#[test]
fn a_change_that_the_reader_was_told_of_is_seen() {
    loom::model(|| {
        let domain = Arc::new(Domain::new());
        let mut reader = Reader::new(&domain);
        let index = AtomicUsize::new(NONE);
        let table = Arc::new(Table { version: Version::new(), index, entry: UnsafeCell::new(0) });
        let before = table.version.read();
        let told = Arc::new(AtomicUsize::new(0));
        let (seen, seen_told) = (Arc::clone(&table), Arc::clone(&told));
        let reading = thread::spawn(move || {
            let is_told = seen_told.load(Ordering::Acquire) == 1;
            let _pin = reader.pin();
            let version = seen.version.read();
            assert!(!is_told || (version.is_some() && version != before), "an answer from before the change");
        });
        table.link(NONE);
        told.store(1, Ordering::Release);
        reading.join().unwrap();
    });
}

#[test]
fn after_a_newer_answer_no_older_one_is_reused() {
    loom::model(|| {
        let version = Arc::new(Version::new());
        let answer = Arc::new(AtomicUsize::new(0));
        let (seen, seen_answer) = (Arc::clone(&version), Arc::clone(&answer));
        let reading = thread::spawn(move || {
            let noted_in = seen.read();
            let noted = seen_answer.load(Ordering::Acquire);
            let newer = seen_answer.load(Ordering::Acquire);
            let may_reuse = noted_in.is_some() && seen.read() == noted_in;
            assert!(!may_reuse || noted >= newer, "{noted} after {newer}");
        });
        version.begin_change();
        answer.store(1, Ordering::Release);
        version.end_change();
        reading.join().unwrap();
    });
}
