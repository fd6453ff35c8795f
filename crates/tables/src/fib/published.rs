//! Published: one value that readers follow a pointer to while the writer makes the next.
//!
//! A cell that is set once, read by anybody, and cleared when nobody can hold the value
//! any more. Cost of a read: one load. Who may write: the FIB's writer.
#![allow(unsafe_code, reason = "leaf: a pointer whose target is freed after quiescence")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An owned value or nothing.
pub(super) struct Published<T> {
    value: AtomicPtr<T>,
}

// `AtomicPtr<T>` is `Send` and `Sync` for every `T`; a shared `Published<T>` hands out `&T` and
// lets its writer drop a `T`, so only such `T` are put in one.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<super::shared::IndexTables>();
    is_send_and_sync::<super::next_hop_sets::NextHopSet>();
};

impl<T> Published<T> {
    /// Nothing.
    pub(super) const fn empty() -> Self {
        Self { value: AtomicPtr::new(null_mut()) }
    }

    /// The value, whole. It stays until [`Published::clear`].
    #[inline(always)]
    pub(super) fn get(&self) -> Option<&T> {
        let value = self.value.load(Ordering::Acquire);
        // SAFETY:
        // - `value` is null or came from `Box::into_raw` in `set`, whose release store this
        //   load saw, so the value is whole.
        // - It is freed by `clear`, whose caller promises that no reference of a reader is
        //   left, and by `drop`, which nothing can outlive that borrows from `self`.
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
    /// No reference from [`Published::get`] is left, and none is asked for meanwhile: whatever
    /// leads readers to this cell was unlinked, and [`crate::quiescence`] told that nobody is
    /// left who followed it.
    pub(super) unsafe fn clear(&self) {
        let value = self.value.swap(null_mut(), Ordering::AcqRel);
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, taken out of the cell by this call alone; no
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
