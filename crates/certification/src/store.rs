//! The memory of an authority: one SQLite file, which only its user can read.
//!
//! | table | rows |
//! | --- | --- |
//! | `requests` | those under way, as [`crate::authority::kept`] writes them |
//! | `pins` | codes that the operator has made and nobody has used |
//! | `issued` | certificates, until a month after their end |
//! | `revoked` | revocation records, by the certificate's name |
//!
//! `namewire cert pin` and `cert revoke` write into the file while the authority runs, so the authority reads both
//! before it judges one.

use crate::authority::{
    Authority, Change, kept,
    pins::{PINS_MAX, Pin},
};
use namewire_ndncert::RequestId;
use namewire_packet::{Name, NameBuf};
use namewire_security::{Certificate, trust::RevocationRecord};
use rusqlite::{Connection, OptionalExtension, params};
use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

/// Most certificates that the file holds. Beyond them, the authority issues no more.
pub const ISSUED_MAX: u64 = 1_000_000;
/// Most revocation records.
pub const REVOKED_MAX: u32 = 4096;
/// How long a certificate is kept after its end: for those who validate old Data.
const KEPT_AFTER_MS: u64 = 30 * 24 * 3_600_000;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    CREATE TABLE IF NOT EXISTS requests (id BLOB PRIMARY KEY, state TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS pins (code TEXT PRIMARY KEY, name TEXT NOT NULL, expires_ms INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS issued (
        name TEXT PRIMARY KEY, key_name TEXT NOT NULL, not_after_ms INTEGER NOT NULL, wire BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS revoked (name TEXT PRIMARY KEY, wire BLOB NOT NULL);
    CREATE INDEX IF NOT EXISTS issued_by_key ON issued (key_name, not_after_ms);
";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file or its folder.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// What is in it.
    #[error("the state of the authority: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Others can read it.
    #[error("{0} can be read by others, and holds secrets: chmod 600 {0}")]
    Readable(PathBuf),
    /// Another authority has this state.
    #[error("{0} is locked: an authority with this state runs already")]
    InUse(PathBuf),
    /// There are too many.
    #[error("{0} certificates are revoked already")]
    ManyRevoked(u64),
    /// There are too many.
    #[error("there are {0} codes already, which nobody has used")]
    ManyPins(u64),
}

/// The file.
#[derive(Debug)]
pub struct Store {
    file: Connection,
    /// The version of the file, which changes when another process writes it, at which the operator's part was read.
    read_at: Option<i64>,
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If it cannot be opened, is no file of an authority, or can be read by others.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::File(path.to_owned(), error);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(StoreError::Readable(path.to_owned()));
                }
            }
            Err(error) => return Err(failed(error)),
        }
        let file = Connection::open(path)?;
        file.busy_timeout(BUSY_TIMEOUT)?;
        file.execute_batch(TABLES)?;
        Ok(Store { file, read_at: None })
    }

    /// Locks the file against another authority, until the result is dropped.
    ///
    /// # Errors
    /// [`StoreError::InUse`], or if the lock cannot be made.
    pub fn lock(&self) -> Result<fs::File, StoreError> {
        let path = PathBuf::from(self.file.path().unwrap_or_default()).with_extension("lock");
        let failed = |error| StoreError::File(path.clone(), error);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse(path)),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Gives the authority the requests that were under way. Returns how many.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn restore(&self, authority: &mut Authority) -> Result<usize, StoreError> {
        let mut statement = self.file.prepare("SELECT id, state FROM requests")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?)))?;
        let mut restored = 0;
        for row in rows {
            let (id, state) = row?;
            let request = id.try_into().ok().and_then(|id| kept::read(RequestId(id), &state));
            if let Some(request) = request {
                authority.requests().add(request);
                restored += 1;
            }
        }
        Ok(restored)
    }

    /// Gives the authority what the operator's commands have written, if they have since the last time: codes, and
    /// revoked certificates. Returns whether they have.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_operator(&mut self, authority: &mut Authority) -> Result<bool, StoreError> {
        let version: i64 = self.file.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        if self.read_at == Some(version) {
            return Ok(false);
        }
        let mut statement = self.file.prepare_cached("SELECT name, code, expires_ms FROM pins")?;
        let pins = statement.query_map([], |row| {
            let (name, code, expires_ms): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(name.parse().ok().map(|name: NameBuf| Pin { name, code, expires_ms: expires_ms.cast_unsigned() }))
        })?;
        let pins: Result<Vec<Option<Pin>>, rusqlite::Error> = pins.collect();
        authority.pins().set(pins?.into_iter().flatten().collect());
        authority.set_revoked(self.revoked()?);
        self.read_at = Some(version);
        Ok(true)
    }

    /// All revocation records.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn revoked(&self) -> Result<Vec<RevocationRecord>, StoreError> {
        let mut statement = self.file.prepare_cached("SELECT wire FROM revoked LIMIT ?1")?;
        let rows = statement.query_map(params![REVOKED_MAX], |row| row.get::<_, Vec<u8>>(0))?;
        let wires: Result<Vec<Vec<u8>>, rusqlite::Error> = rows.collect();
        Ok(wires?.iter().filter_map(|wire| RevocationRecord::parse(wire).ok()).collect())
    }

    /// Adds a revocation record.
    ///
    /// # Errors
    /// If there are too many, or the file cannot be written.
    pub fn add_revoked(&self, record: &RevocationRecord) -> Result<(), StoreError> {
        let count: i64 = self.file.query_row("SELECT count(*) FROM revoked", [], |row| row.get(0))?;
        if count >= i64::from(REVOKED_MAX) {
            return Err(StoreError::ManyRevoked(count.cast_unsigned()));
        }
        let row = params![record.certificate().to_string(), record.wire()];
        self.file.execute("INSERT OR REPLACE INTO revoked (name, wire) VALUES (?1, ?2)", row)?;
        Ok(())
    }

    /// The issued certificates of an identity, a key, or with this name.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn issued_to(&self, name: Name<'_>) -> Result<Vec<Certificate>, StoreError> {
        let is_of = |certificate: &Certificate| {
            name == certificate.identity() || name == certificate.key_name() || name == certificate.name()
        };
        Ok(self.issued(u32::MAX)?.into_iter().filter(is_of).collect())
    }

    /// Adds a code.
    ///
    /// # Errors
    /// If there are too many, or the file cannot be written.
    pub fn add_pin(&self, pin: &Pin, now_ms: u64) -> Result<(), StoreError> {
        self.file.execute("DELETE FROM pins WHERE expires_ms < ?1", params![now_ms.cast_signed()])?;
        let count: i64 = self.file.query_row("SELECT count(*) FROM pins", [], |row| row.get(0))?;
        if count as usize >= PINS_MAX {
            return Err(StoreError::ManyPins(count.cast_unsigned()));
        }
        let row = params![pin.code, pin.name.to_string(), pin.expires_ms.cast_signed()];
        self.file.execute("INSERT INTO pins (code, name, expires_ms) VALUES (?1, ?2, ?3)", row)?;
        Ok(())
    }

    /// Writes what has happened, as one step.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&mut self, changes: &[Change], authority: &mut Authority) -> Result<(), StoreError> {
        let step = self.file.transaction()?;
        for change in changes {
            match change {
                Change::Keep(id) => {
                    let Some(request) = authority.requests().get(*id) else { continue };
                    let state = kept::write(request);
                    step.execute("INSERT OR REPLACE INTO requests VALUES (?1, ?2)", params![&id.0[..], state])?;
                }
                Change::Forget(id) => {
                    step.execute("DELETE FROM requests WHERE id = ?1", params![&id.0[..]])?;
                }
                Change::PinUsed(code) => {
                    step.execute("DELETE FROM pins WHERE code = ?1", params![code])?;
                }
                Change::Issued(certificate) => {
                    let not_after_ms = certificate.validity().not_after_ms;
                    let (name, key_name) = (certificate.name().to_string(), certificate.key_name().to_string());
                    let row = params![name, key_name, not_after_ms.cast_signed(), certificate.wire()];
                    step.execute("INSERT OR REPLACE INTO issued VALUES (?1, ?2, ?3, ?4)", row)?;
                }
                Change::Code { .. } | Change::Refused { .. } => {}
            }
        }
        step.commit()?;
        Ok(())
    }

    /// Removes certificates that ended long ago. Returns how many are left.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn clean(&self, now_ms: u64) -> Result<u64, StoreError> {
        let over_ms = now_ms.saturating_sub(KEPT_AFTER_MS).cast_signed();
        self.file.execute("DELETE FROM issued WHERE not_after_ms < ?1", params![over_ms])?;
        let left: i64 = self.file.query_row("SELECT count(*) FROM issued", [], |row| row.get(0))?;
        Ok(left.cast_unsigned())
    }

    /// The certificate of this name, or the newest one of this key.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn certificate(&self, name: Name<'_>) -> Result<Option<Vec<u8>>, StoreError> {
        const QUERY: &str =
            "SELECT wire FROM issued WHERE name = ?1 OR key_name = ?1 ORDER BY not_after_ms DESC LIMIT 1";
        let mut statement = self.file.prepare_cached(QUERY)?;
        Ok(statement.query_row(params![name.to_string()], |row| row.get(0)).optional()?)
    }

    /// All certificates, those that end last first, at most `limit`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn issued(&self, limit: u32) -> Result<Vec<Certificate>, StoreError> {
        let mut statement = self.file.prepare("SELECT wire FROM issued ORDER BY not_after_ms DESC LIMIT ?1")?;
        let rows = statement.query_map(params![limit], |row| row.get::<_, Vec<u8>>(0))?;
        let wires: Result<Vec<Vec<u8>>, rusqlite::Error> = rows.collect();
        Ok(wires?.iter().filter_map(|wire| Certificate::parse(wire).ok()).collect())
    }
}
