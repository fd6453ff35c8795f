//! The stores under test.

use std::path::Path;

use namewire_repo::store::embedded::{EmbeddedOptions, Sync};
use namewire_repo::store::index::Index;
use namewire_repo::store::redis::RedisOptions;
use namewire_repo::store::sqlite::SqliteOptions;
use namewire_repo::store::{self, Store, StoreSettings};

use super::redis::RedisServer;

/// Most bytes of a store; no run comes near.
const BYTES_MAX: u64 = 64 << 30;
/// What all keys in Redis begin with.
const REDIS_PREFIX: &str = "lab:";

/// A store, and how it finds names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Embedded,
    Memory,
    Sqlite(Index),
    Redis(Index),
}

/// All, ours and those of the paper.
pub(super) const SUBJECTS: [Subject; 8] = [
    Subject::Embedded,
    Subject::Memory,
    Subject::Sqlite(Index::Stored),
    Subject::Sqlite(Index::Memory),
    Subject::Sqlite(Index::None),
    Subject::Redis(Index::Stored),
    Subject::Redis(Index::Memory),
    Subject::Redis(Index::None),
];

impl Subject {
    /// Its name in the record.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Memory => "memory",
            Self::Sqlite(Index::Stored) => "SQLite, stored index",
            Self::Sqlite(Index::Memory) => "SQLite, index in memory",
            Self::Sqlite(Index::None) => "SQLite, no index",
            Self::Redis(Index::Stored) => "Redis, stored index",
            Self::Redis(Index::Memory) => "Redis, index in memory",
            Self::Redis(Index::None) => "Redis, no index",
        }
    }

    pub(super) const fn needs_redis(self) -> bool {
        matches!(self, Self::Redis(_))
    }

    /// SQLite without an index cannot find a name, as in the paper.
    pub(super) fn can_read(self) -> bool {
        self != Self::Sqlite(Index::None)
    }

    /// Opens it in this process.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub(super) fn open(self, folder: &Path, redis: Option<&RedisServer>) -> anyhow::Result<std::sync::Arc<dyn Store>> {
        let folder = folder.to_path_buf();
        let settings = match self {
            Self::Embedded => StoreSettings::Embedded {
                folder,
                options: EmbeddedOptions { bytes_max: BYTES_MAX, sync: Sync::Always },
            },
            Self::Memory => StoreSettings::Memory { bytes_max: BYTES_MAX },
            Self::Sqlite(index) => StoreSettings::Sqlite {
                folder,
                options: SqliteOptions { index, sync: Sync::Always, bytes_max: BYTES_MAX },
            },
            Self::Redis(index) => StoreSettings::Redis(RedisOptions {
                urls: redis.map(RedisServer::url).into_iter().collect(),
                is_cluster: false,
                prefix: REDIS_PREFIX.to_owned(),
                index,
            }),
        };
        Ok(store::open(&settings)?)
    }

    /// The options of `namewire repo run` for it.
    pub(super) fn options(self, folder: &Path, redis: Option<&RedisServer>) -> Vec<String> {
        let (kind, index) = match self {
            Self::Embedded => ("embedded", None),
            Self::Memory => ("memory", None),
            Self::Sqlite(index) => ("sqlite", Some(index)),
            Self::Redis(index) => ("redis", Some(index)),
        };
        let mut options = vec!["--store".to_owned(), kind.to_owned()];
        let mut option = |name: &str, value: String| options.extend([format!("--{name}"), value]);
        if !self.needs_redis() {
            option("capacity", format!("{BYTES_MAX} B"));
        }
        if matches!(self, Self::Embedded | Self::Sqlite(_)) {
            option("folder", folder.display().to_string());
        }
        if let Some(index) = index {
            option("index", index.name().to_owned());
        }
        if let Some(server) = redis {
            option("redis", server.url());
            option("redis-prefix", REDIS_PREFIX.to_owned());
        }
        options
    }
}
