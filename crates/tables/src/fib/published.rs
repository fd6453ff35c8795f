//! Published: a value that readers reach by a pointer while the writer makes the next one.
//!
//! The pointer is in a cell. The writer sets the cell once, and clears it when no reader can hold the value
//! any more. Cost: a read takes one load. Writers: the FIB's writer.
#![allow(unsafe_code, reason = "leaf: a pointer whose target is freed after quiescence")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An owned value or nothing.
pub(super) struct Published<T> {
    value: AtomicPtr<T>,
}

// `AtomicPtr<T>` is `Send` and `Sync` for every `T`. A shared `Published<T>` hands out `&T` and lets its
// writer drop a `T`, so `T` must be both.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<crate::tag_index::TagIndex>();
    is_send_and_sync::<super::next_hop_sets::NextHopSet>();
};

impl<T> Published<T> {
    /// Nothing.
    pub(super) const fn empty() -> Self {
        Self { value: AtomicPtr::new(null_mut()) }
    }

    /// The value. It stays until [`Published::clear`].
    #[inline(always)]
    pub(super) fn get(&self) -> Option<&T> {
        let value = self.value.load(Ordering::Acquire);
        // SAFETY:
        // - `value` is null or came from `Box::into_raw` in `set`, whose release store this
        //   load saw, so the value is whole.
        // - It is freed by `clear`, whose caller promises that no reader has a reference left, and by
        //   `drop`, which no borrow from `self` outlives.
        unsafe { value.as_ref() }
    }

    /// Publishes `value`. The cell must be empty.
    pub(super) fn set(&self, value: Box<T>) {
        let before = self.value.swap(Box::into_raw(value), Ordering::AcqRel);
        assert!(before.is_null(), "a published value is cleared before the next");
    }

    /// Drops the value.
    ///
    /// # Safety
    /// No reference from [`Published::get`] is left, and no reader asks for one meanwhile: whatever leads
    /// readers to this cell was unlinked, and [`crate::quiescence`] told that no reader is left that
    /// followed it.
    pub(super) unsafe fn clear(&self) {
        let value = self.value.swap(null_mut(), Ordering::AcqRel);
        if !value.is_null() {
            // SAFETY: the value is from `Box::into_raw`, and this call alone took it out of the cell. No
            // reference is left, as the caller promised.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: references borrow from `self`, which is `&mut` here.
        unsafe { self.clear() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_empty_set_and_cleared() {
        let cell = Published::empty();
        assert_eq!(cell.get(), None);
        cell.set(Box::new("a".to_owned()));
        assert_eq!(cell.get().map(String::as_str), Some("a"));
        // SAFETY: the reference above was used for the last time.
        unsafe {
            cell.clear();
            cell.clear();
        }
        assert_eq!(cell.get(), None);
        cell.set(Box::new("b".to_owned())); // freed by drop: a leak checker would tell
    }
}
