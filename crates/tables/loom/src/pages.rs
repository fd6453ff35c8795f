//! Arrays on the heap instead of on pages: loom's atomics are not valid as zeros.

use std::io;
use std::ops::Deref;

pub(crate) enum PageSize {
    Base,
}

pub(crate) struct PageArray<T>(Vec<T>);

impl<T: Default> PageArray<T> {
    pub(crate) fn zeroed(len: usize, _: PageSize) -> io::Result<Self> {
        Ok(Self((0..len).map(|_| T::default()).collect()))
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.0.len() * size_of::<T>()
    }
}

impl<T> Deref for PageArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
