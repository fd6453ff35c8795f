//! SQLite: Data in a database file, for those who want to look at it with other tools.
//!
//! Source: Yuan15 §6.2: the store of repo-ng. Its three forms are the dissertation's: with an index in the database,
//! with all names in memory as repo-ng had them, and without an index (SQLite-opt), which can insert but not find Data.
//!
//! ```text
//!   folder/records.sqlite   records   id │ name │ record      unique index by name, with [`Index::Stored`]
//!                           notes     key │ note
//!                           facts     index, records, bytes   one row
//!          lock             held by the process that has the store open
//! ```
//!
//! The write-ahead log lets readers go on while the writer commits. Counts are part of each commit. `user_version` of
//! the file is the version of the format.
//!
//! Cost: see [`Index`]; names in memory are read from the file at the start. Each reading thread has a connection with
//! a page cache of 2 MB. Limits: [`SqliteOptions::bytes_max`].

use super::embedded::Sync;
use super::index::{Index, NameIndex};
use super::{Change, Record, Store, StoreError, Usage, Written};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, params};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The format of this code.
const FORMAT_VERSION: i64 = 1;
/// Names that a scan takes at once from the index in memory: first, and at most.
const PAGE_NAMES: [usize; 2] = [4, 1024];

/// Settings of a store in SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How names are found. A store keeps the index that it was made with.
    pub index: Index,
    /// When a commit is on the disk. Neither choice can damage the store.
    pub sync: Sync,
    /// Most bytes of names and records.
    pub bytes_max: u64,
}

/// Data in a database file.
#[derive(Debug)]
pub struct SqliteStore {
    file: PathBuf,
    options: SqliteOptions,
    writer: Mutex<Connection>,
    /// Connections that no thread uses now.
    readers: Mutex<Vec<Connection>>,
    usage: Mutex<Usage>,
    names: Option<NameIndex<Place>>,
    /// The last field: the connections close first.
    _lock: FolderLock,
}

/// One process at a time has the folder open.
#[derive(Debug)]
struct FolderLock(File);

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: i64,
    record_bytes: u32,
}

/// A batch of changes, before its commit.
struct Batch<'a> {
    transaction: Transaction<'a>,
    index: Index,
    names: Option<&'a NameIndex<Place>>,
    /// What the batch will change in the index in memory.
    moved: HashMap<&'a [u8], Option<Place>>,
    written: Written,
    usage: Usage,
}

impl FolderLock {
    fn take(folder: &Path) -> Result<FolderLock, StoreError> {
        let other = |error: std::io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        let file = File::create(folder.join("lock")).map_err(other)?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock(file)),
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::Other(format!("{}: another process has this store open", folder.display())))
            }
            Err(TryLockError::Error(error)) => Err(other(error)),
        }
    }
}

impl Drop for FolderLock {
    /// Unlocks. Closing the file is not enough: a process that another thread starts now has a copy of it until it runs
    /// its program, and the lock would last as long.
    fn drop(&mut self) {
        // If this fails, the lock ends with the last copy of the file.
        let _ = self.0.unlock();
    }
}

impl SqliteStore {
    /// Opens the store in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// If another process has it open, a later version of this program made it, or it has another index.
    pub fn open(folder: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let other = |error: std::io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(other)?;
        let lock = FolderLock::take(folder)?;
        let file = folder.join("records.sqlite");
        let mut writer = Connection::open(&file).map_err(failure)?;
        writer.pragma_update(None, "journal_mode", "WAL").map_err(failure)?;
        let synchronous = if options.sync == Sync::Always { "FULL" } else { "NORMAL" };
        writer.pragma_update(None, "synchronous", synchronous).map_err(failure)?;
        begin_format(&mut writer, options.index)?;
        let usage = writer
            .query_row("SELECT records, bytes FROM facts", [], |row| {
                Ok(Usage { records: row.get::<_, i64>(0)? as u64, bytes: row.get::<_, i64>(1)? as u64 })
            })
            .map_err(failure)?;
        let names = (options.index == Index::Memory).then(|| load_names(&writer)).transpose().map_err(failure)?;
        Ok(SqliteStore {
            file,
            options,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            usage: Mutex::new(usage),
            names,
            _lock: lock,
        })
    }

    /// Calls `read` with a connection that sees one state of the database.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.file).map_err(failure)?,
        };
        let transaction = connection.unchecked_transaction().map_err(failure)?;
        let answer = read(&transaction)?;
        transaction.commit().map_err(failure)?;
        lock(&self.readers).push(connection);
        Ok(answer)
    }

    fn scan_stored(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (from, query) = match after {
            Some(after) if after >= prefix => (after, "SELECT name, record FROM records WHERE name > ?1 ORDER BY name"),
            _ => (prefix, "SELECT name, record FROM records WHERE name >= ?1 ORDER BY name"),
        };
        self.with_reader(|connection| {
            let mut statement = connection.prepare_cached(query).map_err(failure)?;
            let mut rows = statement.query([from]).map_err(failure)?;
            while let Some(row) = rows.next().map_err(failure)? {
                let name = blob(row, 0)?;
                if !name.starts_with(prefix) || visit(name, decode(blob(row, 1)?)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn scan_memory(
        &self,
        names: &NameIndex<Place>,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let [mut names_max, most] = PAGE_NAMES;
        let mut page = names.page(prefix, after, names_max);
        while let Some(last) = page.last() {
            let mut flow = ControlFlow::Continue(());
            let asked: Vec<&[u8]> = page.iter().map(Box::as_ref).collect();
            self.get(&asked, &mut |place, record| {
                if flow.is_continue() {
                    flow = visit(asked[place], record);
                }
            })?;
            if flow.is_break() {
                break;
            }
            names_max = (names_max * 4).min(most);
            page = names.page(prefix, Some(last), names_max);
        }
        Ok(())
    }

    fn refuse_what_is_too_much(&self, changes: &[Change<'_>]) -> Result<(), StoreError> {
        let grows = |change: &Change<'_>| match change {
            Change::Put { name, record } => (name.len() + record.len()) as u64,
            Change::Delete { .. } | Change::Note { .. } => 0,
        };
        let more: u64 = changes.iter().map(grows).sum();
        let Usage { bytes, .. } = *lock(&self.usage);
        if more > 0 && bytes.saturating_add(more) > self.options.bytes_max {
            return Err(StoreError::Full(format!("it holds {bytes} of {} bytes", self.options.bytes_max)));
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn is_ordered(&self) -> bool {
        self.options.index != Index::None
    }

    fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
        if self.options.index == Index::None {
            return Err(StoreError::NoIndex);
        }
        let places = self.names.as_ref().map(|index| index.places(names));
        self.with_reader(|connection| {
            let query = match places {
                Some(_) => "SELECT name, record FROM records WHERE id = ?1",
                None => "SELECT name, record FROM records WHERE name = ?1",
            };
            let mut statement = connection.prepare_cached(query).map_err(failure)?;
            for (number, name) in names.iter().enumerate() {
                let mut rows = match &places {
                    Some(places) => match places[number] {
                        Some(place) => statement.query([place.id]).map_err(failure)?,
                        None => continue,
                    },
                    None => statement.query([name]).map_err(failure)?,
                };
                // An id belongs to another name if the first one was deleted after the look into the index.
                if let Some(row) = rows.next().map_err(failure)?
                    && blob(row, 0)? == *name
                {
                    found(number, decode(blob(row, 1)?)?);
                }
            }
            Ok(())
        })
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        match (self.options.index, &self.names) {
            (Index::None, _) => Err(StoreError::NotOrdered),
            (_, Some(names)) => self.scan_memory(names, prefix, after, visit),
            (_, None) => self.scan_stored(prefix, after, visit),
        }
    }

    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
        self.refuse_what_is_too_much(changes)?;
        let mut writer = lock(&self.writer);
        let mut batch = Batch {
            transaction: writer.transaction().map_err(failure)?,
            index: self.options.index,
            names: self.names.as_ref(),
            moved: HashMap::new(),
            written: Written::default(),
            usage: *lock(&self.usage),
        };
        for change in changes {
            batch.change(*change)?;
        }
        let Batch { transaction, moved, written, usage, .. } = batch;
        transaction
            .prepare_cached("UPDATE facts SET records = ?1, bytes = ?2")
            .and_then(|mut statement| statement.execute([usage.records as i64, usage.bytes as i64]))
            .map_err(failure)?;
        transaction.commit().map_err(failure)?;
        if let Some(names) = &self.names {
            names.apply(moved.into_iter());
        }
        *lock(&self.usage) = usage;
        Ok(written)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        Ok(*lock(&self.usage))
    }

    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.with_reader(|connection| {
            let mut statement = connection.prepare_cached("SELECT key, note FROM notes").map_err(failure)?;
            let mut rows = statement.query([]).map_err(failure)?;
            while let Some(row) = rows.next().map_err(failure)? {
                visit(blob(row, 0)?, blob(row, 1)?);
            }
            Ok(())
        })
    }
}

impl<'a> Batch<'a> {
    fn change(&mut self, change: Change<'a>) -> Result<(), StoreError> {
        match change {
            Change::Put { name, record } => self.put(name, record).map_err(failure),
            Change::Delete { .. } if self.index == Index::None => Err(StoreError::NoIndex),
            Change::Delete { name } => self.delete(name).map_err(failure),
            Change::Note { key, note: Some(note) } => {
                self.execute("INSERT OR REPLACE INTO notes (key, note) VALUES (?1, ?2)", params![key, note])
            }
            Change::Note { key, note: None } => self.execute("DELETE FROM notes WHERE key = ?1", params![key]),
        }
    }

    fn execute(&self, query: &str, values: &[&dyn rusqlite::ToSql]) -> Result<(), StoreError> {
        let mut statement = self.transaction.prepare_cached(query).map_err(failure)?;
        statement.execute(values).map(drop).map_err(failure)
    }

    /// Where the record of a name is, with what the batch has done.
    fn find(&self, name: &[u8]) -> rusqlite::Result<Option<Place>> {
        match (self.index, self.names) {
            (Index::None, _) => Ok(None),
            (_, Some(names)) => Ok(self.moved.get(name).copied().unwrap_or_else(|| names.get(name))),
            (_, None) => self
                .transaction
                .prepare_cached("SELECT id, length(record) FROM records WHERE name = ?1")?
                .query_row([name], |row| Ok(Place { id: row.get(0)?, record_bytes: row.get(1)? }))
                .optional(),
        }
    }

    fn put(&mut self, name: &'a [u8], record: &[u8]) -> rusqlite::Result<()> {
        let record_bytes = record.len() as u32;
        let id = match self.find(name)? {
            Some(Place { id, record_bytes: before }) => {
                let query = "UPDATE records SET record = ?2 WHERE id = ?1";
                self.transaction.prepare_cached(query)?.execute(params![id, record])?;
                self.written.replaced += 1;
                // A damaged file may count less than it has.
                self.usage.bytes = self.usage.bytes.saturating_sub(before.into());
                id
            }
            None => {
                let query = "INSERT INTO records (name, record) VALUES (?1, ?2)";
                let id = self.transaction.prepare_cached(query)?.insert([name, record])?;
                self.written.added += 1;
                self.usage.records = self.usage.records.saturating_add(1);
                self.usage.bytes = self.usage.bytes.saturating_add(name.len() as u64);
                id
            }
        };
        self.usage.bytes = self.usage.bytes.saturating_add(record_bytes.into());
        if self.names.is_some() {
            self.moved.insert(name, Some(Place { id, record_bytes }));
        }
        Ok(())
    }

    fn delete(&mut self, name: &'a [u8]) -> rusqlite::Result<()> {
        let Some(Place { id, record_bytes }) = self.find(name)? else { return Ok(()) };
        self.transaction.prepare_cached("DELETE FROM records WHERE id = ?1")?.execute([id])?;
        self.written.deleted += 1;
        self.usage.records = self.usage.records.saturating_sub(1);
        self.usage.bytes = self.usage.bytes.saturating_sub(name.len() as u64 + u64::from(record_bytes));
        if self.names.is_some() {
            self.moved.insert(name, None);
        }
        Ok(())
    }
}

/// Makes the tables of a new store; refuses one that this code or this index does not fit.
fn begin_format(connection: &mut Connection, index: Index) -> Result<(), StoreError> {
    let transaction = connection.transaction().map_err(failure)?;
    let version: i64 =
        transaction.query_row("SELECT user_version FROM pragma_user_version", [], |row| row.get(0)).map_err(failure)?;
    if version == 0 {
        let tables = "CREATE TABLE records (id INTEGER PRIMARY KEY, name BLOB NOT NULL, record BLOB NOT NULL);
            CREATE TABLE notes (key BLOB PRIMARY KEY, note BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE facts (\"index\" TEXT NOT NULL, records INTEGER NOT NULL, bytes INTEGER NOT NULL);";
        transaction.execute_batch(tables).map_err(failure)?;
        if index == Index::Stored {
            transaction.execute_batch("CREATE UNIQUE INDEX names ON records (name)").map_err(failure)?;
        }
        transaction.execute("INSERT INTO facts VALUES (?1, 0, 0)", [index.name()]).map_err(failure)?;
        transaction.pragma_update(None, "user_version", FORMAT_VERSION).map_err(failure)?;
        return transaction.commit().map_err(failure);
    }
    if version > FORMAT_VERSION {
        return Err(StoreError::Other(format!(
            "the store has format {version}, and this program knows formats up to {FORMAT_VERSION}: use a newer program"
        )));
    }
    let made: String = transaction.query_row("SELECT \"index\" FROM facts", [], |row| row.get(0)).map_err(failure)?;
    if made != index.name() {
        return Err(StoreError::Other(format!(
            "the store was made with index = \"{made}\", and cannot be opened with \"{}\"",
            index.name()
        )));
    }
    Ok(())
}

fn load_names(connection: &Connection) -> rusqlite::Result<NameIndex<Place>> {
    let mut statement = connection.prepare("SELECT name, id, length(record) FROM records")?;
    let rows = statement.query_map([], |row| {
        let name: Vec<u8> = row.get(0)?;
        Ok((name.into_boxed_slice(), Place { id: row.get(1)?, record_bytes: row.get(2)? }))
    })?;
    Ok(NameIndex::new(rows.collect::<rusqlite::Result<BTreeMap<_, _>>>()?))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can leave no half-done change: a transaction that is dropped is rolled back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, column: usize) -> Result<&'a [u8], StoreError> {
    let value = row.get_ref(column).map_err(failure)?;
    value.as_blob().map_err(|error| StoreError::Damaged(error.to_string()))
}

fn decode(record: &[u8]) -> Result<Record<'_>, StoreError> {
    Record::decode(record).ok_or_else(|| StoreError::Damaged("a record is too short".to_owned()))
}

fn failure(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(error.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        let copy = lock.0.try_clone().unwrap();
        assert!(FolderLock::take(folder.path()).is_err());
        drop(lock);
        assert!(FolderLock::take(folder.path()).is_ok());
        drop(copy);
    }
}
