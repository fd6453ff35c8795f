//! Mirrored: no interleaving lets a reader see a copy while it is changed, an older state after a newer
//! one, or a state that misses an operation.

use crate::left_right::LeftRight;
use crate::mirrored::{Mirror, Mirrored, NotDone};
use loom::cell::UnsafeCell;
use loom::thread;

/// Plain memory. Loom fails a model in which one thread writes it while another may read it. The words are
/// equal unless a write is half done.
struct Watched(UnsafeCell<[u32; 2]>);

// SAFETY: loom watches the cell: a race on it fails the model.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Self {
        Self(UnsafeCell::new([0, 0]))
    }

    fn add(&mut self, value: u32) {
        self.0.with_mut(|words| {
            // SAFETY: loom fails the model if another thread may read.
            let words = unsafe { &mut *words };
            *words = words.map(|word| word + value);
        });
    }

    /// Reads twice, as a look-up does: once to compare, once to use.
    fn read(&self) -> u32 {
        // SAFETY: loom fails the model if another thread may write.
        let read = || self.0.with(|words| unsafe { *words });
        let ([first, second], again) = (read(), read());
        assert_eq!((first, [first, second]), (second, again), "a copy is whole and stays");
        first
    }
}

impl Mirror for Watched {
    type Operation = u32;
    type Effect = u32;
    type Refusal = ();

    fn apply(&mut self, value: &u32) -> Result<u32, ()> {
        self.add(*value);
        Ok(self.read())
    }
}

#[test]
fn a_copy_is_changed_only_when_no_reader_looks_at_it() {
    loom::model(|| {
        let mut copies = LeftRight::new(Watched::new(), Watched::new());
        let mut reader = copies.reader();
        let reading = thread::spawn(move || {
            let mut last = 0;
            for _ in 0..2 {
                let pin = reader.pin();
                let value = pin.get().read();
                assert!(value >= last, "an older state after a newer one");
                last = value;
            }
        });
        copies.standby_mut().expect("never published").add(1);
        copies.publish();
        if let Some(standby) = copies.standby_mut() {
            standby.add(2);
            copies.publish();
        }
        reading.join().unwrap();
        assert!(copies.standby_mut().is_some(), "nobody is online");
    });
}

/// Changes both copies one after the other under one pin: neither may change before the pin ends.
#[test]
fn what_a_pin_saw_stays_although_it_looks_again() {
    loom::model(|| {
        let mut copies = LeftRight::new(Watched::new(), Watched::new());
        let mut reader = copies.reader();
        let reading = thread::spawn(move || {
            let pin = reader.pin();
            let (first, second) = (pin.get(), pin.get());
            assert!(first.read() <= second.read());
            first.read();
        });
        copies.standby_mut().expect("never published").add(1);
        copies.publish();
        if let Some(standby) = copies.standby_mut() {
            standby.add(2);
            copies.publish();
        }
        reading.join().unwrap();
    });
}

#[test]
fn readers_see_every_published_operation_in_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let mut mirrored = Mirrored::new(Watched::new(), Watched::new());
        let mut reader = mirrored.reader();
        let reading = thread::spawn(move || {
            let mut last = 0;
            for _ in 0..2 {
                let value = reader.pin().get().read();
                assert!([0, 1, 3].contains(&value) && value >= last);
                last = value;
            }
        });
        let mut done = 0;
        for value in [1, 2] {
            match mirrored.change(value) {
                Ok(sum) => {
                    done += value;
                    assert_eq!(sum, done, "the result is known at the call");
                }
                Err(refusal) => {
                    assert_eq!((value, refusal), (2, NotDone::ReadersBehind), "the first finds a copy never published");
                }
            }
            mirrored.publish();
        }
        reading.join().unwrap();
        mirrored.publish();
        assert!(mirrored.log().is_empty(), "nobody is online");
        assert!(mirrored.both().iter().all(|copy| copy.read() == done) && mirrored.latest().read() == done);
    });
}
