//! Left-right: lets a writer change a structure while readers look at it, although the structure knows
//! nothing of readers.
//!
//! Source: Ramalhete and Correia, "Left-right: a concurrency control technique with wait-free population
//! oblivious reads" (2015). There are two copies. Readers look at the published copy. The writer changes
//! the standby and publishes it. Once no reader looks at the former copy any more, the writer changes that
//! one too. Deviation: the paper counts arriving and departing readers in two indicators. Here
//! [`crate::quiescence`] detects when all earlier readers have left.
//!
//! ```text
//!  published ─► left    readers          left  ◄ the last of those who came before
//!               right   writer    ─►     right ◄ published, new readers      ─►  left  writer …
//! ```
//!
//! Cost: a reader pays for a pin and one load; for the writer see [`crate::quiescence`]. Bytes: those of
//! both copies. Writers: the one owner of the [`LeftRight`]. The loom models in `crates/tables/loom` check
//! this file.
#![allow(unsafe_code, reason = "leaf: a copy that readers could look at is changed after quiescence")]

use crate::quiescence::{Domain, Pin, Reader, Retired};
#[cfg(loom)]
use loom::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::cell::UnsafeCell;
#[cfg(not(loom))]
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

struct Copies<T> {
    copies: [UnsafeCell<T>; 2],
    /// The place of the copy that readers look at.
    published: AtomicUsize,
    domain: Arc<Domain>,
}

// SAFETY: threads that share it get `&T` from `LeftRightPin::get`. The thread that has the `LeftRight`,
// wherever it was sent, gets `&T` and `&mut T`. Hence both bounds. The comments where these references are
// made show that the two never meet on one copy.
unsafe impl<T: Send + Sync> Sync for Copies<T> {}

impl<T> Copies<T> {
    /// # Safety
    /// During `'_` no `&mut` to this copy exists.
    unsafe fn get(&self, copy: usize) -> &T {
        // SAFETY: the caller's promise; the pointer is to a live cell.
        unsafe { &*self.copies[copy].get() }
    }
}

/// Two copies and the right to change them.
pub(super) struct LeftRight<T> {
    shared: Arc<Copies<T>>,
    /// Not empty as long as a reader may look at the standby.
    standby_held: Retired<()>,
}

impl<T> LeftRight<T> {
    /// Readers see `published`; `standby` is free to change.
    pub(super) fn new(published: T, standby: T) -> Self {
        let domain = Arc::new(Domain::new());
        let standby_held = Retired::new(&domain);
        let copies = [UnsafeCell::new(published), UnsafeCell::new(standby)];
        Self { shared: Arc::new(Copies { copies, published: AtomicUsize::new(0), domain }), standby_held }
    }

    /// A reader for another thread.
    pub(super) fn reader(&self) -> LeftRightReader<T> {
        LeftRightReader { shared: Arc::clone(&self.shared), reader: Reader::new(&self.shared.domain) }
    }

    /// What new readers see.
    pub(super) fn published(&self) -> &T {
        // SAFETY: only `standby` makes a `&mut`, of the other copy, and it needs `&mut self`.
        unsafe { self.shared.get(self.place_published()) }
    }

    /// The other copy; as long as readers may look at it, it is as it was published.
    pub(super) fn standby(&self) -> &T {
        // SAFETY: `standby_mut`, which alone makes a `&mut` to it, needs `&mut self`.
        unsafe { self.shared.get(1 - self.place_published()) }
    }

    /// The other copy, to change, if no reader can look at it any more.
    pub(super) fn standby_mut(&mut self) -> Option<&mut T> {
        if !self.standby_held.is_empty() {
            self.standby_held.reclaim(|()| {});
        }
        if !self.standby_held.is_empty() {
            return None;
        }
        let standby = 1 - self.place_published();
        // SAFETY: no other reference to this copy exists during the borrow.
        // - The owner's references borrow from `self`, which is `&mut`.
        // - A reader has one while it is pinned, to the copy that it found published. `publish` stored the
        //   other place and then retired this copy. `Retired::reclaim` showed that every reader that was
        //   pinned before is gone; a reader pinned later sees that store (`crate::quiescence`). Before the
        //   first `publish` this copy was never published.
        // - Only `publish` publishes it again, and that needs `&mut self`.
        Some(unsafe { &mut *self.shared.copies[standby].get() })
    }

    /// Publishes the standby; the other copy becomes the standby.
    ///
    /// # Panics
    /// If readers may still look at the standby from when it was published before.
    pub(super) fn publish(&mut self) {
        assert!(self.standby_held.is_empty(), "readers left the standby before it was changed");
        // Released, with every change of the copy.
        self.shared.published.store(1 - self.place_published(), Ordering::Release);
        self.standby_held.retire(());
    }

    /// Whether a reader is pinned now, as far as can be seen.
    pub(super) fn is_anyone_reading(&self) -> bool {
        self.shared.domain.is_anyone_online()
    }

    /// Only this owner stores it.
    fn place_published(&self) -> usize {
        self.shared.published.load(Ordering::Relaxed)
    }
}

/// One thread's access to the published copy.
pub(super) struct LeftRightReader<T> {
    shared: Arc<Copies<T>>,
    reader: Reader,
}

impl<T> LeftRightReader<T> {
    /// What is found from now on stays as it is until the pin is dropped.
    #[inline]
    pub(super) fn pin(&mut self) -> LeftRightPin<'_, T> {
        LeftRightPin { shared: &self.shared, _pin: self.reader.pin() }
    }
}

/// A pinned reader.
pub(super) struct LeftRightPin<'a, T> {
    shared: &'a Copies<T>,
    _pin: Pin<'a>,
}

impl<T> LeftRightPin<'_, T> {
    /// The copy that is published now: the same as at the last call, or a later one.
    #[inline]
    pub(super) fn get(&self) -> &T {
        let published = self.shared.published.load(Ordering::Acquire);
        // SAFETY: during the borrow this reader is pinned, in the domain of these copies, and found this
        // one published. `LeftRight::standby_mut` does not lend it out before the pin ends.
        unsafe { self.shared.get(published) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn readers_see_what_was_published_and_hold_it() {
        let mut copies = LeftRight::new(1, 1);
        let (mut early, mut late) = (copies.reader(), copies.reader());
        *copies.standby_mut().expect("never published") = 2;
        assert_eq!((*copies.published(), *copies.standby()), (1, 2));
        let pin = early.pin();
        let seen = pin.get();
        copies.publish();
        assert_eq!((*seen, *pin.get(), *late.pin().get()), (1, 2, 2));
        assert!(copies.standby_mut().is_none() && copies.is_anyone_reading());
        drop(pin);
        assert!(!copies.is_anyone_reading());
        *copies.standby_mut().expect("nobody is left") = 3;
        assert_eq!(*early.pin().get(), 2);
        copies.publish();
        drop(copies);
        assert_eq!(*late.pin().get(), 3, "readers may outlive the owner");
    }

    #[test]
    #[should_panic(expected = "readers left the standby")]
    fn a_copy_that_is_looked_at_is_not_published_twice() {
        let mut copies = LeftRight::new(1, 1);
        copies.publish();
        copies.publish();
    }
}
