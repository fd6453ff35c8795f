//! Store: Data by name, on a disk, in a database or in memory, behind one interface.
//!
//! A store maps names to records. A name is the TLV-VALUE of an NDN name, without the implicit digest. The order of
//! these bytes is the canonical order of NDN names (packet format §2.1): a component's type and length come before
//! its value, and longer numbers begin with larger bytes. So a store that keeps its keys in the order of bytes finds
//! the Data under a prefix in one range.
//!
//! One Data is kept for each name; a later one replaces it. A [`Record`] is what is kept:
//!
//! ```text
//!   bytes    0 ............ 7   8 ............. 11   12 ...
//!            stored at, ms      freshness, ms        the Data as it came
//!            since 1970         (little endian)
//! ```
//!
//! | store | for | order |
//! | --- | --- | --- |
//! | [`embedded::EmbeddedStore`] | the default: one file on a disk of this machine | yes |
//! | [`sqlite::SqliteStore`] | a database file that other tools can read | by [`index::Index`] |
//! | [`redis::RedisStore`] | a Redis server or cluster, which several repositories may share | by [`index::Index`] |
//! | [`memory::MemoryStore`] | tests and caches: nothing survives the process | yes |
//! | [`closed::ClosedStore`] | the substitute for a store that cannot be opened | |
//!
//! All calls block. Many threads may read at the same time; [`Store::write`] is called by one thread at a time.
//!
//! Source: Yuan15 §6.2 (which stores a Repo can have).

pub mod closed;
pub mod embedded;
pub mod index;
pub mod memory;
pub mod redis;
pub mod sqlite;

use namewire_packet::Data;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a record before its Data.
const HEAD_BYTES: usize = 12;

/// A stored Data, and when it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Milliseconds since 1970.
    pub stored_ms: u64,
    /// The FreshnessPeriod in milliseconds, at most [`u32::MAX`].
    pub freshness_ms: u32,
    /// The Data as it came.
    pub wire: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the bytes of a stored record. `None` if they are too few.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (stored_ms, rest) = bytes.split_first_chunk()?;
        let (freshness_ms, wire) = rest.split_first_chunk()?;
        Some(Record {
            stored_ms: u64::from_le_bytes(*stored_ms),
            freshness_ms: u32::from_le_bytes(*freshness_ms),
            wire,
        })
    }

    /// The record of a Data that is stored at this time.
    pub fn of_data(data: &Data<'a>, stored_ms: u64) -> Self {
        let freshness_ms = data.freshness_ms().try_into().unwrap_or(u32::MAX);
        Record { stored_ms, freshness_ms, wire: data.wire() }
    }

    /// Bytes of what a store keeps.
    pub fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.wire.len()
    }

    /// The bytes that a store keeps.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.wire.len());
        bytes.extend_from_slice(&self.stored_ms.to_le_bytes());
        bytes.extend_from_slice(&self.freshness_ms.to_le_bytes());
        bytes.extend_from_slice(self.wire);
        bytes
    }

    /// True if it satisfies MustBeFresh at this time.
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms < self.stored_ms.saturating_add(u64::from(self.freshness_ms))
    }
}

/// A change of one name.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Keeps this record, in place of an earlier one.
    Put {
        /// The name.
        name: &'a [u8],
        /// The encoded [`Record`].
        record: &'a [u8],
    },
    /// Forgets the name.
    Delete {
        /// The name.
        name: &'a [u8],
    },
    /// Keeps or forgets a note of the repository about itself, such as a prefix that it registers.
    Note {
        /// Which note, at most [`NOTE_KEY_BYTES_MAX`].
        key: &'a [u8],
        /// What is noted; nothing to forget it.
        note: Option<&'a [u8]>,
    },
}

/// Bytes of the key of a note.
pub const NOTE_KEY_BYTES_MAX: usize = 1_000;

/// What a batch of changes did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Names that were not stored before.
    pub added: u64,
    /// Names that were stored before, and have another record now.
    pub replaced: u64,
    /// Names that were stored before, and are not any more.
    pub deleted: u64,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Stored Data.
    pub records: u64,
    /// Bytes of their names and records.
    pub bytes: u64,
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk or the configured size is full. Nothing of the batch is stored.
    #[error("the store is full: {0}")]
    Full(String),
    /// The store cannot be reached now; a later attempt may succeed.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// What the store holds cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store has no order of names, which this request needs.
    #[error("this store finds Data only by their whole names")]
    NotOrdered,
    /// The store has no index of names, which this request needs.
    #[error("this store has no index, and so it can only take new Data")]
    NoIndex,
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

/// Which store, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In one file of this machine.
    Embedded {
        /// The folder of the file.
        folder: PathBuf,
        /// Its limits and promises.
        options: embedded::EmbeddedOptions,
    },
    /// In a database file of this machine.
    Sqlite {
        /// The folder of the file.
        folder: PathBuf,
        /// Its index, limits and promises.
        options: sqlite::SqliteOptions,
    },
    /// In Redis.
    Redis(redis::RedisOptions),
    /// In memory.
    Memory {
        /// Most bytes of names and records.
        bytes_max: u64,
    },
}

impl StoreSettings {
    /// The name of the store in configuration and statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreSettings::Embedded { .. } => "embedded",
            StoreSettings::Sqlite { .. } => "sqlite",
            StoreSettings::Redis(_) => "redis",
            StoreSettings::Memory { .. } => "memory",
        }
    }
}

/// The error of a file that is damaged: what is wrong with it, and what to do.
fn damaged(file: &Path, what: &str) -> StoreError {
    let folder = file.parent().unwrap_or(file).display();
    StoreError::Damaged(format!(
        "{}: {what}. Bring back a copy of {folder}; or move it away, and fill a new one: namewire repo import --folder \
         {folder} ARCHIVE",
        file.display()
    ))
}

/// Opens a store.
///
/// # Errors
/// If it cannot be used.
pub fn open(settings: &StoreSettings) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match settings {
        StoreSettings::Embedded { folder, options } => Arc::new(embedded::EmbeddedStore::open(folder, *options)?),
        StoreSettings::Sqlite { folder, options } => Arc::new(sqlite::SqliteStore::open(folder, *options)?),
        StoreSettings::Redis(options) => Arc::new(redis::RedisStore::open(options.clone())?),
        StoreSettings::Memory { bytes_max } => Arc::new(memory::MemoryStore::new(*bytes_max)),
    })
}

/// Data by name.
pub trait Store: Send + Sync {
    /// Its name in configuration and statistics.
    fn kind(&self) -> &'static str;

    /// True if [`Store::scan`] works.
    fn is_ordered(&self) -> bool;

    /// Looks names up. Calls `found` with the place of each name that is stored and its record, in any order.
    ///
    /// # Errors
    /// If the store fails; `found` may have been called for some names.
    fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError>;

    /// Calls `visit` with the names that begin with `prefix` and come after `after`, in canonical order, until it
    /// breaks. A name is below a prefix if it has all its bytes, because both are whole components. What is changed
    /// meanwhile may be seen or not.
    ///
    /// # Errors
    /// [`StoreError::NotOrdered`], or if the store fails.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Does all changes in their order, or none of them. When it returns, they survive the end of this process; whether
    /// they survive a loss of power is the store's sync policy. One thread calls it at a time.
    ///
    /// # Errors
    /// If nothing was changed; or [`StoreError::Unavailable`], where it is not known what was.
    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError>;

    /// How much is stored. Notes do not count.
    ///
    /// # Errors
    /// If the store fails.
    fn usage(&self) -> Result<Usage, StoreError>;

    /// Calls `visit` with the key and the text of each note.
    ///
    /// # Errors
    /// If the store fails.
    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;
}
