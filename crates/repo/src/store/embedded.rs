//! Embedded: Data in one file of this machine, by redb. The default store.
//!
//! Question: how does a repository answer from ten million Data, survive the end of its process at any moment, and
//! detect damage to its file before it uses the damaged part?
//!
//! Source: redb (<https://github.com/cberner/redb>, `docs/design.md`), a B+ tree. A commit never changes a page that
//! the former root reaches, and ends with a single write of the new root. So the file of a killed process holds the
//! last complete commit, the next start reads no log, and readers never wait for the writer. [`checked_file`] checks
//! every page that is read. `docs/decisions/0010-repo.md` has the measurements that led to this choice.
//!
//! ```text
//!   folder/records.db   entries   1 │ name            →  record
//!                                 2 │ key of a note   →  note
//!                                 0 │                 →  version, records, bytes
//!          reserve      room for deletions on a full disk: [`reserve`]
//! ```
//!
//! Several processes may open one folder: redb lets one of them write at a time, and counts are part of each commit.
//! The folder must be on a local file system. Space of deleted Data is used again; the file does not shrink, but
//! [`EmbeddedStore::copy_without_free_space`] makes a smaller one.
//!
//! After an error redb refuses everything until it is opened again. So the store closes a database that failed, and the
//! next call opens it again. Reads of the damaged part still fail, and others succeed.
//!
//! Cost: a look-up reads one page for each level of the tree, four with 10⁷ Data. A cache in memory holds
//! [`CACHE_BYTES`] of pages. Limits: [`EmbeddedOptions::bytes_max`].

mod checked_file;
mod reserve;

use self::checked_file::CheckedFile;
use self::reserve::Reserve;
use super::{Change, Record, Store, StoreError, Usage, Written};
use redb::{
    ConcurrencyMode, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use std::io::{self, ErrorKind};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The store's file in its folder.
const DATA_FILE: &str = "records.db";
/// The file of stores that earlier programs wrote, by LMDB.
const EARLIER_DATA_FILE: &str = "data.mdb";
/// Most memory for pages that were read or are to be written.
const CACHE_BYTES: usize = 32 << 20;
/// Bytes of entries that a copy writes with one commit.
const COPY_BATCH_BYTES: usize = 4 << 20;
/// How often a look-up begins again because another thread met damage meanwhile.
const RETRIES: u32 = 3;
/// The format of this code. Version 1 was LMDB's.
const FORMAT_VERSION: u64 = 2;
/// Bytes of a unit in which file systems count what a file takes.
const DISK_UNIT_BYTES: u64 = 512;

/// What kind of entry a key is of: its first byte.
const FACTS: u8 = 0;
const DATA: u8 = 1;
const NOTE: u8 = 2;

const ENTRIES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("entries");

type Reading = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Writing<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Before it is acknowledged: it survives a loss of power.
    #[default]
    Always,
    /// When the kernel likes: it survives the end of the process. A loss of power may damage the whole store.
    Os,
}

/// Settings of the embedded store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedOptions {
    /// Most bytes of names and records.
    pub bytes_max: u64,
    /// When a commit is on the disk.
    pub sync: Sync,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        EmbeddedOptions { bytes_max: 1 << 40, sync: Sync::Always }
    }
}

/// Data in a file.
#[derive(Debug)]
pub struct EmbeddedStore {
    folder: PathBuf,
    options: EmbeddedOptions,
    reserve: Arc<Reserve>,
    /// Nothing after a failure, until the next call.
    database: Mutex<Option<Arc<Database>>>,
}

/// What is true of the whole store, as it is kept.
#[derive(Clone, Copy)]
struct Facts {
    version: u64,
    usage: Usage,
}

impl Facts {
    fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let word = |place: usize| bytes.get(place * 8..place * 8 + 8).map(|word| word.try_into().expect("8 bytes"));
        let [Some(version), Some(records), Some(stored)] = [word(0), word(1), word(2)] else {
            return Err(StoreError::Damaged("its counts are too short".to_owned()));
        };
        let [version, records, bytes] = [version, records, stored].map(u64::from_le_bytes);
        Ok(Facts { version, usage: Usage { records, bytes } })
    }

    fn encode(self) -> Vec<u8> {
        [self.version, self.usage.records, self.usage.bytes].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

impl EmbeddedStore {
    /// Opens the store in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// If the folder cannot be used, the store is damaged, or an earlier or later version of this program wrote it.
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, StoreError> {
        let other = |error: io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(other)?;
        let store = EmbeddedStore {
            folder: folder.to_owned(),
            options,
            reserve: Arc::new(Reserve::new(folder)),
            database: Mutex::new(None),
        };
        if !store.file().try_exists().map_err(other)? {
            store.refuse_earlier_format()?;
            store.begin()?;
        }
        store.require_format()?;
        // Without room for it, nothing will be stored; what is there can be read.
        let _ = store.reserve.make();
        Ok(store)
    }

    fn file(&self) -> PathBuf {
        self.folder.join(DATA_FILE)
    }

    fn refuse_earlier_format(&self) -> Result<(), StoreError> {
        let (folder, file) = (self.folder.display(), self.folder.join(EARLIER_DATA_FILE));
        if !file.exists() {
            return Ok(());
        }
        Err(StoreError::Other(format!(
            "{} is a store of an earlier namewire (LMDB), which this program does not read. With the earlier program, \
             type: namewire repo export --folder {folder} all.ndn; then, with this one: namewire repo import --folder \
             NEW all.ndn",
            file.display()
        )))
    }

    /// Makes an empty store, which appears under its name when it is whole. If another process was faster, the store of
    /// that one stays.
    fn begin(&self) -> Result<(), StoreError> {
        let other = |error: io::Error| StoreError::Other(format!("{}: {error}", self.folder.display()));
        let new = self.folder.join(format!("{DATA_FILE}.new.{}.{:016x}", std::process::id(), fastrand::u64(..)));
        let made = self.open_file(&new, true).and_then(|database| {
            let transaction = database.begin_write().map_err(failure)?;
            let facts = Facts { version: FORMAT_VERSION, usage: Usage::default() };
            put_facts(&mut transaction.open_table(ENTRIES).map_err(failure)?, facts)?;
            transaction.commit().map_err(failure)
        });
        let appears = || match std::fs::hard_link(&new, self.file()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            // Not every file system has links.
            outcome => outcome
                .or_else(|_| std::fs::rename(&new, self.file()))
                .and_then(|()| std::fs::File::open(&self.folder)?.sync_all()),
        };
        let appeared = made.and_then(|()| appears().map_err(other));
        // It has another name now, or is of no use.
        let _ = std::fs::remove_file(&new);
        appeared
    }

    /// Refuses a store of another version.
    fn require_format(&self) -> Result<(), StoreError> {
        match self.read(facts)?.version {
            FORMAT_VERSION => Ok(()),
            version => Err(StoreError::Other(format!(
                "{}: its format has version {version}, and this program knows version {FORMAT_VERSION}: use a later \
                 release",
                self.file().display()
            ))),
        }
    }

    fn open_file(&self, path: &Path, is_new: bool) -> Result<Database, StoreError> {
        let syncs = self.options.sync == Sync::Always;
        let file = CheckedFile::open(path, is_new, syncs, Arc::clone(&self.reserve)).map_err(failure)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES).set_concurrency_mode(ConcurrencyMode::MultiWriter);
        builder.create_with_backend(file).map_err(failure)
    }

    /// The database, opened again if it failed.
    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let mut current = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*current {
            return Ok(Arc::clone(database));
        }
        let database = Arc::new(self.open_file(&self.file(), false).map_err(|error| self.with_remedy(error))?);
        *current = Some(Arc::clone(&database));
        Ok(database)
    }

    /// Gives up a database that failed.
    fn give_up(&self, failed: &Arc<Database>, error: StoreError) -> StoreError {
        let mut current = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        current.take_if(|current| Arc::ptr_eq(current, failed));
        self.with_remedy(error)
    }

    /// The error, with the file that is damaged and what to do.
    fn with_remedy(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Damaged(what) => super::damaged(&self.file(), &what),
            error => error,
        }
    }

    /// Does some reading in one state of the store.
    fn read<T>(&self, read: impl FnOnce(&Reading) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let database = self.database()?;
        begin_read(&database).and_then(|entries| read(&entries)).map_err(|error| self.give_up(&database, error))
    }

    /// Writes a copy of the store as it is now, without free space, to a new folder. Readers and the writer go on.
    ///
    /// # Errors
    /// If the folder exists or cannot be written.
    pub fn copy_without_free_space(&self, folder: &Path) -> Result<(), StoreError> {
        let other = |error: io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        std::fs::create_dir(folder).map_err(other)?;
        let copy = EmbeddedStore::open(folder, self.options)?;
        self.read(|entries| {
            let mut entries = entries.range::<&[u8]>(..).map_err(failure)?.peekable();
            while entries.peek().is_some() {
                copy.take_batch(&mut entries)?;
            }
            Ok(())
        })
    }

    /// Stores the next entries of another store, with one commit.
    fn take_batch(&self, entries: &mut impl Iterator<Item = Entry>) -> Result<(), StoreError> {
        let database = self.database()?;
        let transaction = database.begin_write().map_err(failure)?;
        let mut bytes = 0;
        {
            let mut table = transaction.open_table(ENTRIES).map_err(failure)?;
            while bytes < COPY_BATCH_BYTES {
                let Some(entry) = entries.next() else { break };
                let (key, value) = entry.map_err(failure)?;
                bytes += key.value().len() + value.value().len();
                table.insert(key.value(), value.value()).map_err(failure)?;
            }
        }
        transaction.commit().map_err(failure)
    }

    /// Bytes that the store's file in a folder takes of its disk.
    ///
    /// # Errors
    /// If there is none.
    pub fn file_bytes(folder: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(folder.join(DATA_FILE))?.blocks() * DISK_UNIT_BYTES)
    }

    /// Does all changes in one commit. Nothing if they would make the store larger than it may be.
    fn commit(&self, transaction: WriteTransaction, changes: &[Change<'_>]) -> Result<Option<Written>, StoreError> {
        let mut written = Written::default();
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(failure)?;
            let before = facts(&entries)?;
            let mut usage = before.usage;
            for change in changes {
                apply(&mut entries, change, &mut usage, &mut written)?;
            }
            if usage.bytes > self.options.bytes_max && usage.bytes > before.usage.bytes {
                return Ok(None);
            }
            put_facts(&mut entries, Facts { usage, ..before })?;
        }
        transaction.commit().map_err(failure)?;
        Ok(Some(written))
    }

    /// The refusal of changes that would make the store larger than it may be.
    fn refuse_write(&self) -> Result<Written, StoreError> {
        let Usage { bytes, .. } = self.usage()?;
        Err(StoreError::Full(format!("it holds {bytes} of {} bytes", self.options.bytes_max)))
    }
}

type Entry =
    Result<(redb::AccessGuard<'static, &'static [u8]>, redb::AccessGuard<'static, &'static [u8]>), redb::StorageError>;

fn begin_read(database: &Database) -> Result<Reading, StoreError> {
    database.begin_read().map_err(failure)?.open_table(ENTRIES).map_err(failure)
}

fn facts(entries: &impl ReadableTable<&'static [u8], &'static [u8]>) -> Result<Facts, StoreError> {
    let facts = entries.get(&[FACTS][..]).map_err(failure)?;
    Facts::decode(facts.ok_or_else(|| StoreError::Damaged("it has no counts".to_owned()))?.value())
}

fn put_facts(entries: &mut Writing<'_>, facts: Facts) -> Result<(), StoreError> {
    entries.insert(&[FACTS][..], &facts.encode()[..]).map(drop).map_err(failure)
}

/// Does one change in a transaction.
fn apply(
    entries: &mut Writing<'_>,
    change: &Change<'_>,
    usage: &mut Usage,
    written: &mut Written,
) -> Result<(), StoreError> {
    let (name, before) = match *change {
        Change::Put { name, record } => {
            usage.records += 1;
            usage.bytes += (name.len() + record.len()) as u64;
            (name, entries.insert(&key(DATA, name)[..], record).map_err(failure)?)
        }
        Change::Delete { name } => (name, entries.remove(&key(DATA, name)[..]).map_err(failure)?),
        Change::Note { key: note_key, note } => {
            let note_key = key(NOTE, note_key);
            let changed = match note {
                Some(note) => entries.insert(&note_key[..], note),
                None => entries.remove(&note_key[..]),
            };
            return changed.map(drop).map_err(failure);
        }
    };
    if let Some(before) = &before {
        let bytes = (name.len() + before.value().len()) as u64;
        let less = |count: u64, by: u64| {
            count.checked_sub(by).ok_or_else(|| StoreError::Damaged("it counts less than it has".to_owned()))
        };
        *usage = Usage { records: less(usage.records, 1)?, bytes: less(usage.bytes, bytes)? };
    }
    match (change, before.is_some()) {
        (Change::Put { .. }, false) => written.added += 1,
        (Change::Put { .. }, true) => written.replaced += 1,
        (_, is_stored) => written.deleted += u64::from(is_stored),
    }
    Ok(())
}

/// The key of an entry of this kind.
fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(kind);
    key.extend_from_slice(rest);
    key
}

fn decode(record: &[u8]) -> Result<Record<'_>, StoreError> {
    Record::decode(record).ok_or_else(|| StoreError::Damaged("a record is too short".to_owned()))
}

fn failure(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Io(error) if checked_file::is_full(&error) => StoreError::Full(error.to_string()),
        redb::Error::Io(error) if error.kind() == ErrorKind::InvalidData => StoreError::Damaged(error.to_string()),
        redb::Error::Corrupted(what) => StoreError::Damaged(what),
        // Another thread met the failure, or the database was just closed for one.
        error @ (redb::Error::PreviousIo | redb::Error::DatabaseClosed) => StoreError::Unavailable(error.to_string()),
        error => StoreError::Other(error.to_string()),
    }
}

impl Store for EmbeddedStore {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
        let (mut at, mut retries, mut first_failure) = (0, RETRIES, None);
        // A name whose pages are damaged is left out; the others are found in what is opened again.
        while at < names.len() {
            let begin = at;
            let looked_up = self.read(|entries| {
                while let Some(name) = names.get(at) {
                    at += 1;
                    if let Some(record) = entries.get(&key(DATA, name)[..]).map_err(failure)? {
                        found(at - 1, decode(record.value())?);
                    }
                }
                Ok(())
            });
            match looked_up {
                Ok(()) => {}
                // Another thread's failure.
                Err(StoreError::Unavailable(_)) if retries > 0 => {
                    retries -= 1;
                    at = at.saturating_sub(1).max(begin);
                }
                Err(error) if at == begin => return Err(first_failure.unwrap_or(error)),
                Err(error) => drop(first_failure.get_or_insert(error)),
            }
        }
        first_failure.map_or(Ok(()), Err)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let prefix_key = key(DATA, prefix);
        let after_key = after.map(|after| key(DATA, after)).filter(|after| *after >= prefix_key);
        let from = after_key.as_deref().map_or(Bound::Included(&prefix_key[..]), Bound::Excluded);
        self.read(|entries| {
            for entry in entries.range::<&[u8]>((from, Bound::Unbounded)).map_err(failure)? {
                let (key, record) = entry.map_err(failure)?;
                let name = key.value();
                if !name.starts_with(&prefix_key) || visit(&name[1..], decode(record.value())?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
        let adds = |change: &Change<'_>| matches!(change, Change::Put { .. } | Change::Note { note: Some(_), .. });
        let only_deletes = !changes.iter().any(adds);
        match self.reserve.make() {
            Err(error) if !only_deletes && checked_file::is_full(&error) => {
                return Err(StoreError::Full(format!("its disk has no room beside that for deletions: {error}")));
            }
            // Something else about the reserve is no reason to refuse what has room.
            _ => {}
        }
        let database = self.database()?;
        let commit =
            || database.begin_write().map_err(failure).and_then(|transaction| self.commit(transaction, changes));
        let committed = if only_deletes { self.reserve.open_during(commit) } else { commit() };
        match committed {
            Ok(Some(written)) => Ok(written),
            Ok(None) => self.refuse_write(),
            Err(error) => Err(self.give_up(&database, error)),
        }
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        Ok(self.read(facts)?.usage)
    }

    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.read(|entries| {
            for entry in entries.range::<&[u8]>(&[NOTE][..]..).map_err(failure)? {
                let (key, note) = entry.map_err(failure)?;
                visit(&key.value()[1..], note.value());
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_a_later_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let database = store.database().unwrap();
        let transaction = database.begin_write().unwrap();
        let facts = Facts { version: 3, usage: Usage::default() };
        put_facts(&mut transaction.open_table(ENTRIES).unwrap(), facts).unwrap();
        transaction.commit().unwrap();
        drop((store, database));
        let refused = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("version 3"), "{refused}");
    }
}
