//! The public information base: identities, keys and certificates in SQLite (drop-in §3), in the tables of ndn-cxx (its
//! `security/pib/impl/pib-sqlite3.cpp`).
//!
//! Every name is a whole Name element; every row points to its owner's row. Triggers keep exactly one default among the
//! rows of one owner; foreign keys delete dependent rows. Tables, columns and triggers equal those of ndn-cxx and
//! python-ndn, because all programs open the same file.
//!
//! Limits: a list has at most [`ROWS_MAX`] rows; a name or a certificate has at most the bytes of one packet. An
//! operation waits at most five seconds for a lock that another program holds. After that wait an operation fails with
//! [`PibError::Sql`].

use super::key_files::make_private_directory;
use namewire_packet::{MAX_PACKET_BYTES, Name, NameBuf};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};
use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Most rows read of one list.
pub const ROWS_MAX: usize = 10_000;
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Why an operation of the PIB failed.
#[derive(Debug, thiserror::Error)]
pub enum PibError {
    /// The PIB does not exist, and was opened for reading only.
    #[error("there is no key chain at {}", .0.display())]
    Missing(PathBuf),
    /// The file or directory cannot be created.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// SQLite reports an error.
    #[error("pib.db: {0}")]
    Sql(#[from] rusqlite::Error),
    /// A row has an unexpected content.
    #[error("pib.db: a row of {0} is damaged")]
    Damaged(&'static str),
}

/// A row of an identity, key or certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: NameBuf,
    /// Whether it is the default of its owner.
    pub is_default: bool,
    /// The SubjectPublicKeyInfo of a key, the packet of a certificate, empty for an identity.
    pub bytes: Vec<u8>,
}

/// An open PIB.
#[derive(Debug)]
pub struct Pib {
    connection: Connection,
}

impl Pib {
    /// Opens the PIB in this directory for reading. A file without tables counts as missing: python-ndn leaves one
    /// where it finds no key chain.
    ///
    /// # Errors
    /// [`PibError::Missing`] if there is no PIB; [`PibError::Sql`] if SQLite cannot open or read the file.
    pub fn open(directory: &Path) -> Result<Self, PibError> {
        let path = directory.join("pib.db");
        if !path.exists() {
            return Err(PibError::Missing(path));
        }
        let pib = Self::connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let has_tables = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'tpmInfo')";
        match pib.connection.query_row(has_tables, [], |row| row.get(0))? {
            true => Ok(pib),
            false => Err(PibError::Missing(path)),
        }
    }

    /// Opens the PIB in this directory for changes; creates missing files and tables.
    ///
    /// # Errors
    /// [`PibError::Io`] if directory or file cannot be created; [`PibError::Sql`] if SQLite cannot open the file or
    /// create the tables.
    pub fn open_or_create(directory: &Path) -> Result<Self, PibError> {
        let path = directory.join("pib.db");
        make_private_directory(directory).map_err(|error| PibError::Io { path: directory.to_owned(), error })?;
        // SQLite would create the file with the umask's mode.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(PibError::Io { path, error }),
            _ => {}
        }
        let pib = Self::connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        pib.connection.execute_batch(&schema())?;
        Ok(pib)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, PibError> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(Pib { connection })
    }

    /// Reads the locator of the TPM with the private keys, if there is one.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot read the file.
    pub fn tpm_locator(&self) -> Result<Option<String>, PibError> {
        // ndn-cxx stores it as text, python-ndn as a blob.
        let locator = self
            .connection
            .query_row("SELECT CAST(tpm_locator AS TEXT) FROM tpmInfo", [], |row| row.get::<_, Option<String>>(0))
            .optional()?;
        Ok(locator.flatten())
    }

    /// Writes the locator of the TPM.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn set_tpm_locator(&self, locator: &str) -> Result<(), PibError> {
        if self.connection.execute("UPDATE tpmInfo SET tpm_locator = ?1", [locator])? == 0 {
            self.connection.execute("INSERT INTO tpmInfo (tpm_locator) VALUES (?1)", [locator])?;
        }
        Ok(())
    }

    /// Lists all identities, in the order of their encoded names.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot read the file; [`PibError::Damaged`] if a row holds no name.
    pub fn identities(&self) -> Result<Vec<Entry>, PibError> {
        self.list(
            "identities",
            "SELECT identity, is_default, x'' FROM identities ORDER BY identity LIMIT ?1",
            [ROWS_MAX as i64],
        )
    }

    /// Lists the keys of one identity; none if it is unknown.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot read the file; [`PibError::Damaged`] if a row holds no name, or a key longer
    /// than a packet.
    pub fn keys(&self, identity: Name<'_>) -> Result<Vec<Entry>, PibError> {
        let sql = "SELECT key_name, keys.is_default, key_bits FROM keys
                   JOIN identities ON identities.id = identity_id WHERE identity = ?1 ORDER BY key_name LIMIT ?2";
        self.list("keys", sql, params![wire(identity), ROWS_MAX as i64])
    }

    /// Lists the certificates of one key; none if it is unknown.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot read the file; [`PibError::Damaged`] if a row holds no name, or a certificate
    /// longer than a packet.
    pub fn certificates(&self, key_name: Name<'_>) -> Result<Vec<Entry>, PibError> {
        let sql = "SELECT certificate_name, certificates.is_default, certificate_data FROM certificates
                   JOIN keys ON keys.id = key_id WHERE key_name = ?1 ORDER BY certificate_name LIMIT ?2";
        self.list("certificates", sql, params![wire(key_name), ROWS_MAX as i64])
    }

    /// Lists the certificates of all keys.
    ///
    /// # Errors
    /// As [`Pib::certificates`].
    pub fn all_certificates(&self) -> Result<Vec<Entry>, PibError> {
        let sql = "SELECT certificate_name, is_default, certificate_data FROM certificates
                   ORDER BY certificate_name LIMIT ?1";
        self.list("certificates", sql, [ROWS_MAX as i64])
    }

    fn list(&self, table: &'static str, sql: &str, parameters: impl Params) -> Result<Vec<Entry>, PibError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns =
            |row: &Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, bool>(1)?, row.get::<_, Vec<u8>>(2)?));
        let rows = statement.query_map(parameters, columns)?;
        rows.map(|row| {
            let (name, is_default, bytes) = row?;
            let name = Name::parse_tlv(&name).map_err(|_| PibError::Damaged(table))?.to_buf();
            if bytes.len() > MAX_PACKET_BYTES {
                return Err(PibError::Damaged(table));
            }
            Ok(Entry { name, is_default, bytes })
        })
        .collect()
    }

    /// Adds a key and its identity, unless they exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file; then nothing has changed.
    pub fn add_key(&self, identity: Name<'_>, key_name: Name<'_>, spki: &[u8]) -> Result<(), PibError> {
        self.in_transaction(|pib| {
            pib.connection.execute("INSERT OR IGNORE INTO identities (identity) VALUES (?1)", [wire(identity)])?;
            pib.connection.execute(
                "INSERT OR IGNORE INTO keys (identity_id, key_name, key_bits)
                 SELECT id, ?2, ?3 FROM identities WHERE identity = ?1",
                params![wire(identity), wire(key_name), spki],
            )?;
            Ok(())
        })
    }

    /// Adds a certificate of an existing key; replaces one with the same name, and does nothing if the key is unknown.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file; then nothing has changed.
    pub fn add_certificate(&self, key_name: Name<'_>, name: Name<'_>, packet: &[u8]) -> Result<(), PibError> {
        self.in_transaction(|pib| {
            pib.connection.execute(
                "INSERT INTO certificates (key_id, certificate_name, certificate_data)
                 SELECT id, ?2, ?3 FROM keys WHERE key_name = ?1
                 ON CONFLICT (certificate_name) DO UPDATE SET certificate_data = excluded.certificate_data",
                params![wire(key_name), wire(name), packet],
            )?;
            Ok(())
        })
    }

    /// Makes an identity the default; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn set_default_identity(&self, identity: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE identities SET is_default = 1 WHERE identity = ?1", identity)
    }

    /// Makes a key the default of its identity; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn set_default_key(&self, key_name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE keys SET is_default = 1 WHERE key_name = ?1", key_name)
    }

    /// Makes a certificate the default of its key; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn set_default_certificate(&self, name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE certificates SET is_default = 1 WHERE certificate_name = ?1", name)
    }

    /// Removes an identity with its keys and certificates; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn remove_identity(&self, identity: Name<'_>) -> Result<bool, PibError> {
        self.change_one("DELETE FROM identities WHERE identity = ?1", identity)
    }

    /// Removes a key with its certificates; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn remove_key(&self, key_name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("DELETE FROM keys WHERE key_name = ?1", key_name)
    }

    /// Removes a certificate; false if it does not exist.
    ///
    /// # Errors
    /// [`PibError::Sql`] if SQLite cannot write the file.
    pub fn remove_certificate(&self, name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("DELETE FROM certificates WHERE certificate_name = ?1", name)
    }

    fn change_one(&self, sql: &str, name: Name<'_>) -> Result<bool, PibError> {
        Ok(self.connection.execute(sql, [wire(name)])? > 0)
    }

    fn in_transaction(&self, change: impl FnOnce(&Self) -> Result<(), PibError>) -> Result<(), PibError> {
        let transaction = self.connection.unchecked_transaction()?;
        change(self)?;
        Ok(transaction.commit()?)
    }
}

fn wire(name: Name<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.tlv_size());
    name.write_tlv(&mut out);
    out
}

/// A table of the schema: its name, the base of its objects' names, its columns, and its owner.
struct Table {
    name: &'static str,
    prefix: &'static str,
    name_column: &'static str,
    bytes_column: Option<&'static str>,
    /// The column that holds the owner's row, and the owner's table.
    owner: Option<(&'static str, &'static str)>,
}

const TABLES: [Table; 3] = [
    Table { name: "identities", prefix: "identity", name_column: "identity", bytes_column: None, owner: None },
    Table {
        name: "keys",
        prefix: "key",
        name_column: "key_name",
        bytes_column: Some("key_bits"),
        owner: Some(("identity_id", "identities")),
    },
    Table {
        name: "certificates",
        prefix: "cert",
        name_column: "certificate_name",
        bytes_column: Some("certificate_data"),
        owner: Some(("key_id", "keys")),
    },
];

fn schema() -> String {
    let mut sql = "CREATE TABLE IF NOT EXISTS tpmInfo (tpm_locator BLOB);".to_owned();
    for table in &TABLES {
        let Table { name, prefix, name_column, .. } = table;
        let bytes = table.bytes_column.map_or(String::new(), |column| format!("{column} BLOB NOT NULL,"));
        let owner_column = table.owner.map_or(String::new(), |(column, _)| format!("{column} INTEGER NOT NULL,"));
        let owner_rule = table.owner.map_or(String::new(), |(column, owner)| {
            format!(", FOREIGN KEY ({column}) REFERENCES {owner} (id) ON DELETE CASCADE ON UPDATE CASCADE")
        });
        let same_owner = table.owner.map_or("1".to_owned(), |(column, _)| format!("{column} = NEW.{column}"));
        sql += &format!(
            "CREATE TABLE IF NOT EXISTS {name} (id INTEGER PRIMARY KEY, {owner_column}
                 {name_column} BLOB NOT NULL, {bytes} is_default INTEGER DEFAULT 0 {owner_rule});
             CREATE UNIQUE INDEX IF NOT EXISTS {prefix}Index ON {name} ({name_column});
             CREATE TRIGGER IF NOT EXISTS {prefix}_default_before_insert_trigger BEFORE INSERT ON {name}
                 WHEN NEW.is_default = 1 BEGIN UPDATE {name} SET is_default = 0 WHERE {same_owner}; END;
             CREATE TRIGGER IF NOT EXISTS {prefix}_default_after_insert_trigger AFTER INSERT ON {name}
                 WHEN NOT EXISTS (SELECT id FROM {name} WHERE is_default = 1 AND {same_owner})
                 BEGIN UPDATE {name} SET is_default = 1 WHERE id = NEW.id; END;
             CREATE TRIGGER IF NOT EXISTS {prefix}_default_update_trigger BEFORE UPDATE ON {name}
                 WHEN NEW.is_default = 1 AND OLD.is_default = 0
                 BEGIN UPDATE {name} SET is_default = 0 WHERE {same_owner}; END;"
        );
    }
    sql
}
