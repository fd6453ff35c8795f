//! Walk: descriptors of the table one after the other, read some at a time.
//!
//! A descriptor that changes after it was read has its own place in the queue of changes, so what the walk's owner does
//! for it may come twice, but is never missed.

use super::known::Known;
use crate::{
    Descriptor,
    forwarder::{LiveTables, TableCursor},
};
use std::collections::VecDeque;

/// Descriptors that are read at a time.
const READ_AT_A_TIME: usize = 64;

/// See the module documentation. The default is at the beginning.
#[derive(Debug, Default)]
pub(super) struct Walk {
    cursor: TableCursor,
    read: VecDeque<Descriptor>,
    is_at_end: bool,
}

impl Walk {
    /// Reads on if nothing read is left: descriptors of which the router knows what `is_wanted` asks for. False if the
    /// walk is over.
    pub(super) fn read(&mut self, tables: &LiveTables<Known>, is_wanted: impl Fn(&Known) -> bool) -> bool {
        if self.read.is_empty() && !self.is_at_end {
            let Walk { cursor, read, .. } = self;
            self.is_at_end = !tables.walk(cursor, READ_AT_A_TIME, |entry| {
                if tables.kept(entry.value).is_some_and(|known| is_wanted(known)) {
                    read.push_back(entry.descriptor);
                }
            });
        }
        !(self.read.is_empty() && self.is_at_end)
    }

    /// The next descriptor that was read.
    pub(super) fn next(&mut self) -> Option<Descriptor> {
        self.read.pop_front()
    }
}
