//! The FIB is full.

/// Why the forwarder's FIB has no room for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibFull {
    /// All entries are taken.
    #[error("FIB is full (limit is {0} prefixes: tables.fib_capacity)")]
    Entries(usize),
    /// All bytes for names are taken.
    #[error("FIB is full (limit is {0} bytes of prefixes)")]
    PrefixBytes(usize),
}
