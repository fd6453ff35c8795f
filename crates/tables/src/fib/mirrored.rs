//! Mirrored: keeps two copies of a structure in step, while readers look at one of them all the time.
//!
//! Each operation is applied to the standby ([`super::left_right`]) and logged. So the call can return the
//! result of the operation. The standby is published when the owner asks for it, at once if there is no
//! reader, or when the log has [`MAX_UNPUBLISHED`] operations. When the last reader has left the former
//! copy, the log is replayed there.
//!
//! ```text
//!  ahead    standby = published + log       changes go on at once
//!  behind   published = standby + log       the next change replays the log first, and waits for
//!                                           readers, but no more than WAIT_PAUSES
//! ```
//!
//! An operation that succeeded on one copy may find no memory on the other. It then stays in the log, and
//! no other operation is accepted until it is replayed. Readers continue with the copy on which it
//! succeeded.
//!
//! Cost: each operation is done twice. Bytes: those of both copies and of the log. Limit: the log has at
//! most [`MAX_UNPUBLISHED`] operations. Writers: the owner. A loom model checks this file.

use super::left_right::{LeftRight, LeftRightReader};
use std::collections::VecDeque;

/// Operations that readers do not see yet, or that one copy lacks.
pub(super) const MAX_UNPUBLISHED: usize = 1024;

/// How often a change lets other threads run before it is refused because of readers. A batch takes less
/// time than the first of these pauses. A reader that the kernel took off its processor takes less than
/// all: some 50 ms of sleep, and more where a pause that only yields gives another thread its whole time
/// slice.
#[cfg(not(loom))]
const WAIT_PAUSES: usize = YIELDS + 400;
/// Pauses that only yield; later ones sleep.
#[cfg(not(loom))]
const YIELDS: usize = 400;
#[cfg(loom)]
const WAIT_PAUSES: usize = 1;

/// A structure that can be kept twice.
pub(super) trait Mirror {
    /// A change, to apply to both copies.
    type Operation;
    /// What a change did.
    type Effect;
    /// Why it changed nothing.
    type Refusal;

    /// Applies the operation. Copies that had the same operations must answer alike, except when memory is
    /// short.
    ///
    /// # Errors
    /// Then nothing changed.
    fn apply(&mut self, operation: &Self::Operation) -> Result<Self::Effect, Self::Refusal>;
}

/// Why an operation was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotDone<R> {
    /// A reader looks at the copy that must change.
    ReadersBehind,
    /// The structure refused: this operation, or an earlier one on the other copy.
    Refused(R),
}

/// Two copies of a `T`.
pub(super) struct Mirrored<T: Mirror> {
    copies: LeftRight<T>,
    /// Oldest first.
    log: VecDeque<T::Operation>,
    /// True: the standby has the log and the published copy lacks it. False: the reverse.
    is_ahead: bool,
    /// A wait for readers failed; it is not repeated until they have left.
    waited_in_vain: bool,
}

impl<T: Mirror> Mirrored<T> {
    /// The copies must be alike.
    pub(super) fn new(left: T, right: T) -> Self {
        Self { copies: LeftRight::new(left, right), log: VecDeque::new(), is_ahead: true, waited_in_vain: false }
    }

    /// A reader for another thread.
    pub(super) fn reader(&self) -> LeftRightReader<T> {
        self.copies.reader()
    }

    /// The copy that has every operation.
    pub(super) fn latest(&self) -> &T {
        if self.is_ahead { self.copies.standby() } else { self.copies.published() }
    }

    /// Both copies, in no particular order.
    pub(super) fn both(&self) -> [&T; 2] {
        [self.copies.published(), self.copies.standby()]
    }

    /// Operations that one copy lacks.
    pub(super) fn log(&self) -> &VecDeque<T::Operation> {
        &self.log
    }

    /// Waits for readers if necessary, so that the next [`Mirrored::change`] is not refused because of
    /// them.
    ///
    /// # Errors
    /// As for a change.
    pub(super) fn make_ready(&mut self) -> Result<(), NotDone<T::Refusal>> {
        self.caught_up(WAIT_PAUSES).map(drop)
    }

    /// Applies `operation`.
    ///
    /// # Errors
    /// Then neither copy has it.
    pub(super) fn change(&mut self, operation: T::Operation) -> Result<T::Effect, NotDone<T::Refusal>> {
        let standby = self.caught_up(WAIT_PAUSES)?;
        let effect = standby.apply(&operation).map_err(NotDone::Refused)?;
        self.log.push_back(operation);
        if self.log.len() >= MAX_UNPUBLISHED || !self.copies.is_anyone_reading() {
            self.publish();
        }
        Ok(effect)
    }

    /// Makes every operation visible to readers from now on.
    pub(super) fn publish(&mut self) {
        if self.is_ahead && !self.log.is_empty() {
            self.copies.publish();
            self.is_ahead = false;
        }
        // Does not wait; if readers or memory prevent it, the next change reports that.
        let _ = self.caught_up(0);
    }

    /// The standby, after it has got every operation.
    fn caught_up(&mut self, pauses: usize) -> Result<&mut T, NotDone<T::Refusal>> {
        self.wait_for_readers(pauses)?;
        let Some(standby) = self.copies.standby_mut() else { return Err(NotDone::ReadersBehind) };
        if !self.is_ahead {
            while let Some(operation) = self.log.front() {
                standby.apply(operation).map_err(NotDone::Refused)?;
                self.log.pop_front();
            }
            self.is_ahead = true;
        }
        Ok(standby)
    }

    fn wait_for_readers(&mut self, pauses: usize) -> Result<(), NotDone<T::Refusal>> {
        let pauses = if self.waited_in_vain { 0 } else { pauses };
        let is_free = (0..=pauses).any(|paused| {
            if paused > 0 {
                pause(paused);
            }
            self.copies.standby_mut().is_some()
        });
        self.waited_in_vain = !is_free && (self.waited_in_vain || pauses > 0);
        if is_free { Ok(()) } else { Err(NotDone::ReadersBehind) }
    }
}

#[cfg(not(loom))]
fn pause(paused: usize) {
    if paused <= YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

#[cfg(loom)]
fn pause(_: usize) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Refuses values above its limit.
    struct Sum {
        values: Vec<u32>,
        most: u32,
    }

    impl Mirror for Sum {
        type Operation = u32;
        type Effect = usize;
        type Refusal = u32;

        fn apply(&mut self, value: &u32) -> Result<usize, u32> {
            if *value > self.most {
                return Err(*value);
            }
            self.values.push(*value);
            Ok(self.values.len())
        }
    }

    fn sum(most: u32) -> Sum {
        Sum { values: Vec::new(), most }
    }

    #[test]
    fn without_readers_every_change_is_published_at_once() {
        let mut mirrored = Mirrored::new(sum(9), sum(9));
        let mut reader = mirrored.reader();
        for value in 0..5 {
            assert_eq!(mirrored.change(value), Ok(value as usize + 1));
            assert_eq!(reader.pin().get().values.last(), Some(&value));
            assert!(mirrored.log().is_empty());
        }
        assert_eq!(mirrored.change(10), Err(NotDone::Refused(10)));
        assert!(mirrored.both().iter().all(|copy| copy.values == [0, 1, 2, 3, 4]));
    }

    #[test]
    fn a_reader_that_stays_is_neither_disturbed_nor_waited_for_twice() {
        let mut mirrored = Mirrored::new(sum(u32::MAX), sum(u32::MAX));
        let mut reader = mirrored.reader();
        let pin = reader.pin();
        let seen = pin.get();
        for value in 0..MAX_UNPUBLISHED as u32 - 1 {
            assert!(mirrored.change(value).is_ok(), "what readers need not see is done at once");
        }
        assert!(pin.get().values.is_empty() && mirrored.latest().values.len() == MAX_UNPUBLISHED - 1);
        mirrored.publish();
        assert_eq!((seen.values.len(), pin.get().values.len()), (0, MAX_UNPUBLISHED - 1));
        for _ in 0..100_000 {
            assert_eq!(mirrored.change(7), Err(NotDone::ReadersBehind));
        }
        assert_eq!((mirrored.latest().values.len(), mirrored.log().len()), (MAX_UNPUBLISHED - 1, MAX_UNPUBLISHED - 1));
        drop(pin);
        assert_eq!(mirrored.change(7), Ok(MAX_UNPUBLISHED));
        assert!(mirrored.both().iter().all(|copy| copy.values.len() == MAX_UNPUBLISHED) && mirrored.log().is_empty());
    }

    #[test]
    fn the_log_is_bounded() {
        let mut mirrored = Mirrored::new(sum(u32::MAX), sum(u32::MAX));
        let mut reader = mirrored.reader();
        let pin = reader.pin();
        let done = (0..2 * MAX_UNPUBLISHED as u32).filter(|&value| mirrored.change(value).is_ok()).count();
        assert_eq!((done, mirrored.log().len()), (MAX_UNPUBLISHED, MAX_UNPUBLISHED));
        assert_eq!(pin.get().values.len(), MAX_UNPUBLISHED, "published when the log was full");
    }

    #[test]
    fn an_operation_that_one_copy_refuses_waits_and_readers_go_on() {
        let mut mirrored = Mirrored::new(sum(5), sum(9));
        let mut reader = mirrored.reader();
        assert_eq!(mirrored.change(7), Ok(1), "by the copy with more room");
        assert_eq!(reader.pin().get().values, [7]);
        for _ in 0..3 {
            assert_eq!(mirrored.change(1), Err(NotDone::Refused(7)), "the other has no room for 7");
            assert_eq!((&mirrored.latest().values[..], &reader.pin().get().values[..]), (&[7][..], &[7][..]));
        }
    }
}
