//! The public information base: identities, keys and certificates in SQLite (drop-in §3), the tables of ndn-cxx.
//!
//! Every name is a whole Name element; every row points to the one above it; triggers keep exactly one default among
//! the rows of one owner, and foreign keys delete what belongs to a row with it. The tables, columns and triggers are
//! what ndn-cxx and python-ndn make, because all of them open the same file.
//!
//! Limits: [`ROWS_MAX`] rows of one list, names and certificates of at most one packet; a lock that another program holds
//! is waited for five seconds.

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

/// Rows that are read of one list.
pub const ROWS_MAX: usize = 10_000;
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Why the PIB does not answer.
#[derive(Debug, thiserror::Error)]
pub enum PibError {
    /// There is none, and it was to be read only.
    #[error("there is no key chain at {}", .0.display())]
    Missing(PathBuf),
    /// It cannot be made.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// SQLite refuses.
    #[error("pib.db: {0}")]
    Sql(#[from] rusqlite::Error),
    /// A row holds something that is not what its column is for.
    #[error("pib.db: a row of {0} is damaged")]
    Damaged(&'static str),
}

/// One row of identities or keys or certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: NameBuf,
    /// It is the default among its owner's.
    pub is_default: bool,
    /// The SubjectPublicKeyInfo of a key, the packet of a certificate, empty for an identity.
    pub octets: Vec<u8>,
}

/// An open PIB.
#[derive(Debug)]
pub struct Pib {
    connection: Connection,
}

impl Pib {
    /// Opens the PIB in that directory to be read. A file without tables is none: python-ndn leaves one where it finds no
    /// key chain.
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

    /// Opens the PIB in that directory to be changed, and makes it, or the tables it lacks, if there is none.
    pub fn open_or_create(directory: &Path) -> Result<Self, PibError> {
        let path = directory.join("pib.db");
        make_private_directory(directory).map_err(|error| PibError::Io { path: directory.to_owned(), error })?;
        // SQLite would make the file by the umask.
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

    /// The locator of the TPM that has the private keys, if one was written.
    pub fn tpm_locator(&self) -> Result<Option<String>, PibError> {
        // ndn-cxx binds it as text, python-ndn as a blob.
        let locator = self
            .connection
            .query_row("SELECT CAST(tpm_locator AS TEXT) FROM tpmInfo", [], |row| row.get::<_, Option<String>>(0))
            .optional()?;
        Ok(locator.flatten())
    }

    /// Writes the locator of the TPM.
    pub fn set_tpm_locator(&self, locator: &str) -> Result<(), PibError> {
        if self.connection.execute("UPDATE tpmInfo SET tpm_locator = ?1", [locator])? == 0 {
            self.connection.execute("INSERT INTO tpmInfo (tpm_locator) VALUES (?1)", [locator])?;
        }
        Ok(())
    }

    /// All identities.
    pub fn identities(&self) -> Result<Vec<Entry>, PibError> {
        self.list(
            "identities",
            "SELECT identity, is_default, x'' FROM identities ORDER BY identity LIMIT ?1",
            [ROWS_MAX as i64],
        )
    }

    /// The keys of one identity.
    pub fn keys(&self, identity: Name<'_>) -> Result<Vec<Entry>, PibError> {
        let sql = "SELECT key_name, keys.is_default, key_bits FROM keys
                   JOIN identities ON identities.id = identity_id WHERE identity = ?1 ORDER BY key_name LIMIT ?2";
        self.list("keys", sql, params![wire(identity), ROWS_MAX as i64])
    }

    /// The certificates of one key.
    pub fn certificates(&self, key_name: Name<'_>) -> Result<Vec<Entry>, PibError> {
        let sql = "SELECT certificate_name, certificates.is_default, certificate_data FROM certificates
                   JOIN keys ON keys.id = key_id WHERE key_name = ?1 ORDER BY certificate_name LIMIT ?2";
        self.list("certificates", sql, params![wire(key_name), ROWS_MAX as i64])
    }

    fn list(&self, table: &'static str, sql: &str, parameters: impl Params) -> Result<Vec<Entry>, PibError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns =
            |row: &Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, bool>(1)?, row.get::<_, Vec<u8>>(2)?));
        let rows = statement.query_map(parameters, columns)?;
        rows.map(|row| {
            let (name, is_default, octets) = row?;
            let name = Name::parse_tlv(&name).map_err(|_| PibError::Damaged(table))?.to_buf();
            if octets.len() > MAX_PACKET_BYTES {
                return Err(PibError::Damaged(table));
            }
            Ok(Entry { name, is_default, octets })
        })
        .collect()
    }

    /// Adds a key and its identity, unless they are there.
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

    /// Adds a certificate of a key that is there; one of the same name is replaced.
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

    /// Makes an identity the default; false if there is none of that name.
    pub fn set_default_identity(&self, identity: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE identities SET is_default = 1 WHERE identity = ?1", identity)
    }

    /// Makes a key the default of its identity; false if there is none of that name.
    pub fn set_default_key(&self, key_name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE keys SET is_default = 1 WHERE key_name = ?1", key_name)
    }

    /// Makes a certificate the default of its key; false if there is none of that name.
    pub fn set_default_certificate(&self, name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("UPDATE certificates SET is_default = 1 WHERE certificate_name = ?1", name)
    }

    /// Removes an identity with its keys and certificates; false if there is none of that name.
    pub fn remove_identity(&self, identity: Name<'_>) -> Result<bool, PibError> {
        self.change_one("DELETE FROM identities WHERE identity = ?1", identity)
    }

    /// Removes a key with its certificates; false if there is none of that name.
    pub fn remove_key(&self, key_name: Name<'_>) -> Result<bool, PibError> {
        self.change_one("DELETE FROM keys WHERE key_name = ?1", key_name)
    }

    /// Removes a certificate; false if there is none of that name.
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

/// A table of the schema: its own name, what its objects are called after, its columns, and its owner.
struct Table {
    name: &'static str,
    prefix: &'static str,
    name_column: &'static str,
    octets_column: Option<&'static str>,
    /// The column that holds the owner's row, and the owner's table.
    owner: Option<(&'static str, &'static str)>,
}

const TABLES: [Table; 3] = [
    Table { name: "identities", prefix: "identity", name_column: "identity", octets_column: None, owner: None },
    Table {
        name: "keys",
        prefix: "key",
        name_column: "key_name",
        octets_column: Some("key_bits"),
        owner: Some(("identity_id", "identities")),
    },
    Table {
        name: "certificates",
        prefix: "cert",
        name_column: "certificate_name",
        octets_column: Some("certificate_data"),
        owner: Some(("key_id", "keys")),
    },
];

fn schema() -> String {
    let mut sql = "CREATE TABLE IF NOT EXISTS tpmInfo (tpm_locator BLOB);".to_owned();
    for table in &TABLES {
        let Table { name, prefix, name_column, .. } = table;
        let octets = table.octets_column.map_or(String::new(), |column| format!("{column} BLOB NOT NULL,"));
        let owner_column = table.owner.map_or(String::new(), |(column, _)| format!("{column} INTEGER NOT NULL,"));
        let owner_rule = table.owner.map_or(String::new(), |(column, owner)| {
            format!(", FOREIGN KEY ({column}) REFERENCES {owner} (id) ON DELETE CASCADE ON UPDATE CASCADE")
        });
        let same_owner = table.owner.map_or("1".to_owned(), |(column, _)| format!("{column} = NEW.{column}"));
        sql += &format!(
            "CREATE TABLE IF NOT EXISTS {name} (id INTEGER PRIMARY KEY, {owner_column}
                 {name_column} BLOB NOT NULL, {octets} is_default INTEGER DEFAULT 0 {owner_rule});
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
