//! Embedded: Data in one file of this machine, by LMDB. The default store.
//!
//! Question: how does a repository answer from ten million Data at the speed of memory, and survive the end of its
//! process at any moment?
//!
//! Source: LMDB (<http://www.lmdb.tech/doc/>), a B+ tree that is mapped into memory. A commit never changes a page that
//! the former root reaches, and ends by the one write of a new root. So a process that is killed leaves the last whole
//! commit, no log has to be read at the start, and readers never wait for the writer. `docs/decisions/0010-repo.md`
//! has the measurement by which it was chosen.
//!
//! ```text
//!   folder/data.mdb   data    1 │ name, or its first 1,900 bytes and a SHA-256   →  record
//!                             2 │ key of a note                                  →  note
//!                             0 │                                                →  version, records, bytes
//!          lock.mdb   who reads which version of the tree
//! ```
//!
//! LMDB's keys have at most 1,982 bytes. So a name of more than [`WHOLE_NAME_BYTES`] is kept by its first bytes and its
//! SHA-256, and the name itself stands before the record. Such names that share their first bytes are not in canonical
//! order among themselves.
//!
//! Several processes may open one folder: LMDB lets one of them write at a time, and counts are part of each commit.
//! The folder must be on a local file system. Space of deleted Data is used again; the file does not shrink, but
//! [`EmbeddedStore::copy_without_free_space`] makes a smaller one.
//!
//! Cost: a look-up reads one page for each level of the tree, four with 10⁷ Data. Memory: the pages that the kernel
//! keeps in its page cache, which it takes back when it needs them.
//!
//! On a disk that is full, LMDB cannot even delete, because a commit writes new pages before it frees any. So puts are
//! refused while the disk and the free pages of the file have less than [`DISK_RESERVE_BYTES`] left.
//!
//! Limits: [`EmbeddedOptions::bytes_max`]. Deletions need some free pages; so the map is larger than what puts may
//! fill.

mod environment;

use super::{Change, Record, Store, StoreError, Usage, Written};
use heed::types::Bytes;
use heed::{CommitOrAbort, CompactionOption, Database, Env, MdbError, RoTxn, RwTxn};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::io::ErrorKind;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};

/// LMDB's name of the file in its folder.
const DATA_FILE: &str = "data.mdb";
/// Names up to this length are keys as they are.
const WHOLE_NAME_BYTES: usize = 1_900;
/// Processes and threads that may read at the same time.
const READERS_MAX: u32 = 512;
/// Bytes of the map that puts leave free, beside a page for every page that they fill.
const MAP_RESERVE_BYTES: usize = 256 << 20;
/// Bytes of the disk that puts leave free.
const DISK_RESERVE_BYTES: u64 = 16 << 20;
/// The format of this code.
const FORMAT_VERSION: u64 = 1;

/// What kind of entry a key is of: its first byte.
const FACTS: u8 = 0;
const DATA: u8 = 1;
const NOTE: u8 = 2;

type Tree = Database<'static, Bytes, Bytes>;

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
    env: Env,
    tree: Tree,
    folder: PathBuf,
    bytes_max: u64,
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
    /// If the folder cannot be used, or if a later version of this program wrote it.
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, StoreError> {
        let other = |error: std::io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(other)?;
        // A page holds at least half of what it could; large records take whole pages.
        let map_bytes = (options.bytes_max as usize).saturating_mul(2).saturating_add(MAP_RESERVE_BYTES);
        let env = environment::open(folder, map_bytes, READERS_MAX, options.sync == Sync::Os).map_err(failure)?;
        // Readers that were killed would keep former pages from being used again.
        env.clear_stale_readers().map_err(failure)?;
        let transaction = env.write_txn().map_err(failure)?;
        let tree = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                opener.create_database(transaction, None).map(CommitOrAbort::<Database<'_, Bytes, Bytes>, ()>::Commit)
            })
            .map_err(failure)?
            .unwrap_commit();
        let store = EmbeddedStore { env, tree, folder: folder.to_owned(), bytes_max: options.bytes_max };
        store.begin_format()?;
        Ok(store)
    }

    /// Writes the version of the format into a new store, and refuses one that is too new.
    fn begin_format(&self) -> Result<(), StoreError> {
        let mut transaction = self.env.write_txn().map_err(failure)?;
        match self.facts(&transaction)? {
            Some(Facts { version: FORMAT_VERSION, .. }) => return Ok(()),
            Some(Facts { version, .. }) => {
                return Err(StoreError::Other(format!(
                    "its format has version {version}, and this program knows version {FORMAT_VERSION}: use a later \
                     release"
                )));
            }
            None => {}
        }
        self.put_facts(&mut transaction, Facts { version: FORMAT_VERSION, usage: Usage::default() })?;
        transaction.commit().map_err(failure)
    }

    /// Writes a copy of the store as it is now, without free space, to a new folder. Readers and the writer go on.
    ///
    /// # Errors
    /// If the folder exists or cannot be written.
    pub fn copy_without_free_space(&self, folder: &Path) -> Result<(), StoreError> {
        let other = |error: std::io::Error| StoreError::Other(format!("{}: {error}", folder.display()));
        std::fs::create_dir(folder).map_err(other)?;
        self.env.copy_to_path(folder.join(DATA_FILE), CompactionOption::Enabled).map_err(failure)?;
        Ok(())
    }

    /// Bytes of the store's file in a folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn file_bytes(folder: &Path) -> std::io::Result<u64> {
        Ok(std::fs::metadata(folder.join(DATA_FILE))?.len())
    }

    /// Refuses puts without room for them and for deletions afterwards, on the disk or in free pages of the file.
    fn require_room(&self, transaction: &RoTxn<'_>, changes: &[Change<'_>]) -> Result<(), StoreError> {
        let bytes = changes.iter().map(|change| match change {
            Change::Put { name, record } => (name.len() + record.len()) as u64,
            Change::Delete { .. } | Change::Note { .. } => 0,
        });
        let bytes: u64 = bytes.sum();
        // Each page of new Data may be half full.
        let needed = bytes.saturating_mul(2).saturating_add(DISK_RESERVE_BYTES);
        let disk = rustix::fs::statvfs(&self.folder).map_err(|error| StoreError::Other(error.to_string()))?;
        let on_disk = disk.f_bavail.saturating_mul(disk.f_frsize);
        if bytes == 0 || on_disk >= needed {
            return Ok(());
        }
        let tree = self.tree.stat(transaction).map_err(failure)?;
        let used = tree.branch_pages + tree.leaf_pages + tree.overflow_pages;
        let free = (self.env.info().last_page_number.saturating_sub(used) * tree.page_size as usize) as u64;
        if on_disk.saturating_add(free) < needed {
            return Err(StoreError::Full(format!("its disk has {on_disk} bytes left, and its file {free}")));
        }
        Ok(())
    }

    fn facts(&self, transaction: &RoTxn<'_>) -> Result<Option<Facts>, StoreError> {
        self.tree.get(transaction, &[FACTS]).map_err(failure)?.map(Facts::decode).transpose()
    }

    fn put_facts(&self, transaction: &mut RwTxn<'_>, facts: Facts) -> Result<(), StoreError> {
        self.tree.put(transaction, &[FACTS], &facts.encode()).map_err(failure)
    }

    /// Does one change in a transaction.
    fn change(
        &self,
        transaction: &mut RwTxn<'_>,
        change: &Change<'_>,
        usage: &mut Usage,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        let name = match *change {
            Change::Put { name, .. } | Change::Delete { name } => name,
            Change::Note { key, note } => {
                let key = [&[NOTE], key].concat();
                return match note {
                    Some(note) => self.tree.put(transaction, &key, note).map_err(failure),
                    None => self.tree.delete(transaction, &key).map(|_| ()).map_err(failure),
                };
            }
        };
        let key = data_key(name);
        let before = self.tree.get(transaction, &key).map_err(failure)?.map(|value| value.len() as u64);
        // The value of a long name has the name itself; so the bytes of a value are those of its record, and more.
        let head = value_head(name);
        if let Some(bytes) = before {
            usage.bytes -= name.len() as u64 + bytes - head.len() as u64;
            usage.records -= 1;
        }
        match *change {
            Change::Put { record, .. } => {
                let value = if head.is_empty() { Cow::Borrowed(record) } else { [&head, record].concat().into() };
                self.tree.put(transaction, &key, &value).map_err(failure)?;
                usage.bytes += (name.len() + record.len()) as u64;
                usage.records += 1;
                let count = if before.is_some() { &mut written.replaced } else { &mut written.added };
                *count += 1;
            }
            _ if before.is_some() => {
                self.tree.delete(transaction, &key).map_err(failure)?;
                written.deleted += 1;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The key of a name's record.
fn data_key(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + name.len().min(WHOLE_NAME_BYTES + 32));
    key.push(DATA);
    key.extend_from_slice(&name[..name.len().min(WHOLE_NAME_BYTES)]);
    if name.len() > WHOLE_NAME_BYTES {
        key.extend_from_slice(&Sha256::digest(name));
    }
    key
}

/// What stands before the record of a name: of a long one its length, and the name.
fn value_head(name: &[u8]) -> Vec<u8> {
    match name.len() > WHOLE_NAME_BYTES {
        true => [&(name.len() as u32).to_le_bytes(), name].concat(),
        false => vec![],
    }
}

/// The name and the record of an entry.
fn entry<'a>(key: &'a [u8], value: &'a [u8]) -> Result<(&'a [u8], Record<'a>), StoreError> {
    let damaged = || StoreError::Damaged("a record is too short".to_owned());
    let (name, record) = match key.len() > 1 + WHOLE_NAME_BYTES {
        false => (&key[1..], value),
        true => {
            let (length, rest) = value.split_first_chunk().ok_or_else(damaged)?;
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?
        }
    };
    Ok((name, Record::decode(record).ok_or_else(damaged)?))
}

fn failure(error: heed::Error) -> StoreError {
    let text = error.to_string();
    match error {
        heed::Error::Mdb(MdbError::MapFull) => StoreError::Full(text),
        heed::Error::Io(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            StoreError::Full(text)
        }
        heed::Error::Io(error) if error.kind() == ErrorKind::FileTooLarge => StoreError::Full(text),
        heed::Error::Mdb(
            MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid | MdbError::VersionMismatch,
        ) => StoreError::Damaged(text),
        _ => StoreError::Other(text),
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
        let transaction = self.env.read_txn().map_err(failure)?;
        for (place, name) in names.iter().enumerate() {
            let key = data_key(name);
            if let Some(value) = self.tree.get(&transaction, &key).map_err(failure)? {
                found(place, entry(&key, value)?.1);
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let transaction = self.env.read_txn().map_err(failure)?;
        // Where keys have all that a prefix says. Beyond that, names are compared.
        let prefix_key = [&[DATA], &prefix[..prefix.len().min(WHOLE_NAME_BYTES)]].concat();
        let after_key = after.map(data_key).filter(|after| *after >= prefix_key);
        let from = after_key.as_deref().map_or(Bound::Included(&prefix_key[..]), Bound::Excluded);
        for found in self.tree.range(&transaction, &(from, Bound::Unbounded)).map_err(failure)? {
            let (key, value) = found.map_err(failure)?;
            if !key.starts_with(&prefix_key) {
                break;
            }
            let (name, record) = entry(key, value)?;
            if name.starts_with(prefix) && visit(name, record).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
        let mut transaction = self.env.write_txn().map_err(failure)?;
        self.require_room(&transaction, changes)?;
        let facts = self.facts(&transaction)?.ok_or_else(|| StoreError::Damaged("it has no counts".to_owned()))?;
        let (mut usage, mut written) = (facts.usage, Written::default());
        for change in changes {
            self.change(&mut transaction, change, &mut usage, &mut written)?;
        }
        if usage.bytes > self.bytes_max && usage.bytes > facts.usage.bytes {
            return Err(StoreError::Full(format!("it holds {} of {} bytes", facts.usage.bytes, self.bytes_max)));
        }
        self.put_facts(&mut transaction, Facts { usage, ..facts })?;
        transaction.commit().map_err(failure)?;
        Ok(written)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let transaction = self.env.read_txn().map_err(failure)?;
        Ok(self.facts(&transaction)?.map_or(Usage::default(), |facts| facts.usage))
    }

    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let transaction = self.env.read_txn().map_err(failure)?;
        for found in self.tree.prefix_iter(&transaction, &[NOTE]).map_err(failure)? {
            let (key, note) = found.map_err(failure)?;
            visit(&key[1..], note);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_a_later_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let mut transaction = store.env.write_txn().unwrap();
        store.put_facts(&mut transaction, Facts { version: 2, usage: Usage::default() }).unwrap();
        transaction.commit().unwrap();
        drop(store);
        let refused = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("version 2"), "{refused}");
    }
}
