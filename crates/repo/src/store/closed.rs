//! Closed: the substitute for a store that cannot be opened, so that its repository can report the reason.
//!
//! Every request for Data fails with this reason. A request for notes succeeds and finds none, because a repository
//! makes it before it can report an error.

use super::{Change, Record, Store, StoreError, Usage, Written};
use std::ops::ControlFlow;

/// A store that could not be opened.
#[derive(Debug)]
pub struct ClosedStore {
    kind: &'static str,
    why: String,
}

impl ClosedStore {
    /// The place of a store of this kind, which is closed for this reason.
    pub fn new(kind: &'static str, why: String) -> Self {
        ClosedStore { kind, why }
    }

    fn refuse<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::Other(self.why.clone()))
    }
}

impl Store for ClosedStore {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn get(&self, _names: &[&[u8]], _found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
        self.refuse()
    }

    fn scan(
        &self,
        _prefix: &[u8],
        _after: Option<&[u8]>,
        _visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.refuse()
    }

    fn write(&self, _changes: &[Change<'_>]) -> Result<Written, StoreError> {
        self.refuse()
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        self.refuse()
    }

    fn notes(&self, _visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        Ok(())
    }
}
