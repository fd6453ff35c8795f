//! From `[repo]` and options to the settings of a store and of a repository.

use crate::{ExitCode, Failure, choice::choice, quantity};
use namewire_configuration::{
    Configuration, Source,
    revocation_files::RevocationFiles,
    settings::{Choice, RepoIndex, RepoSection, RepoStore, RepoSync, RetentionEntry},
    units::Bytes,
};
use namewire_repo::{
    RepoSettings,
    access::{AccessSettings, CommandAccess, RevocationsOfFiles},
    bulk::BulkSettings,
    commands::CommandLimits,
    retention::Rule,
    store::{
        self, Store, StoreSettings,
        embedded::{self, EmbeddedOptions},
        index::Index,
        redis::RedisOptions,
        sqlite::SqliteOptions,
    },
};
use namewire_security::Signer;
use std::{path::PathBuf, sync::Arc};
use tokio::sync::watch;

/// Most bytes of a store in memory, unless the section says otherwise.
const MEMORY_BYTES_DEFAULT: u64 = 1 << 30;

/// Where a store is: the `[repo]` section of a file, and options that override it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Place {
    /// Configuration file whose [repo] section says where the store is and what the repository does
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the repository keeps Data [default: embedded]
    #[arg(long, value_name = "KIND", value_parser = choice::<RepoStore>())]
    store: Option<RepoStore>,
    /// Folder of an embedded store or of SQLite
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,
    /// Most bytes of names and Data, for example "100 GiB" [default: 1 TiB on disk, 1 GiB in memory]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    capacity: Option<u64>,
    /// When Data is written to the disk: before it is acknowledged, or when the kernel chooses [default: always]
    #[arg(long, value_name = "WHEN", value_parser = choice::<RepoSync>())]
    sync: Option<RepoSync>,
    /// How SQLite or Redis finds names [default: stored]
    #[arg(long, value_name = "INDEX", value_parser = choice::<RepoIndex>())]
    index: Option<RepoIndex>,
    /// Redis server, or a server of the cluster, repeatable [default: redis://127.0.0.1:6379]
    #[arg(long, value_name = "URL")]
    redis: Vec<String>,
    /// What all keys in Redis begin with [default: namewire:]
    #[arg(long, value_name = "PREFIX")]
    redis_prefix: Option<String>,
}

impl Place {
    /// What the file and the options say together.
    pub(super) fn load(&self) -> Result<Configuration, Failure> {
        let failed = |error: String| Failure::new(ExitCode::Failed, error);
        let mut loaded = match self.config.clone().map(Source::Toml) {
            Some(source) => source.load().map_err(|error| failed(error.to_string()))?,
            None => Configuration::default(),
        };
        self.override_section(&mut loaded.settings.repo);
        loaded.settings.check().map_err(|error| failed(error.to_string()))?;
        Ok(loaded)
    }

    fn override_section(&self, section: &mut RepoSection) {
        section.store = self.store.map_or(section.store, Choice);
        section.folder = self.folder.clone().or(section.folder.take());
        section.capacity = self.capacity.map(Bytes).or(section.capacity);
        section.sync = self.sync.map_or(section.sync, Choice);
        section.index = self.index.map_or(section.index, Choice);
        if !self.redis.is_empty() {
            section.redis.clone_from(&self.redis);
        }
        section.redis_prefix = self.redis_prefix.clone().unwrap_or(std::mem::take(&mut section.redis_prefix));
    }

    /// Opens the store.
    pub(super) fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        open(&self.load()?.settings.repo)
    }
}

/// The store of a section. N.B. It blocks: a store with its index in memory reads all names first.
pub(super) fn open(section: &RepoSection) -> Result<Arc<dyn Store>, Failure> {
    let failed = |error| Failure::new(ExitCode::Failed, format!("cannot open the store: {error}"));
    store::open(&store_settings(section)?).map_err(failed)
}

/// Which store a section names.
///
/// # Errors
/// If it needs a folder and names none.
pub(super) fn store_settings(section: &RepoSection) -> Result<StoreSettings, Failure> {
    let folder = || {
        let missing = || Failure::usage("which store? Name its --folder, or a configuration file with [repo] folder");
        section.folder.clone().ok_or_else(missing)
    };
    let on_disk_bytes = section.capacity.map_or(EmbeddedOptions::default().bytes_max, |bytes| bytes.0);
    let sync = match section.sync.0 {
        RepoSync::Always => embedded::Sync::Always,
        RepoSync::Os => embedded::Sync::Os,
    };
    let index = match section.index.0 {
        RepoIndex::Stored => Index::Stored,
        RepoIndex::Memory => Index::Memory,
        RepoIndex::None => Index::None,
    };
    Ok(match section.store.0 {
        RepoStore::Embedded => {
            let options = EmbeddedOptions { bytes_max: on_disk_bytes, sync };
            StoreSettings::Embedded { folder: folder()?, options }
        }
        RepoStore::Sqlite => {
            let options = SqliteOptions { index, sync, bytes_max: on_disk_bytes };
            StoreSettings::Sqlite { folder: folder()?, options }
        }
        kind @ (RepoStore::Redis | RepoStore::RedisCluster) => StoreSettings::Redis(RedisOptions {
            urls: section.redis.clone(),
            is_cluster: kind == RepoStore::RedisCluster,
            prefix: section.redis_prefix.clone(),
            index,
        }),
        RepoStore::Memory => {
            StoreSettings::Memory { bytes_max: section.capacity.map_or(MEMORY_BYTES_DEFAULT, |bytes| bytes.0) }
        }
    })
}

/// What the repository of a configuration does.
pub(super) fn repo_settings(configuration: &Configuration, signer: Signer) -> Result<RepoSettings, Failure> {
    let section = &configuration.settings.repo;
    Ok(RepoSettings {
        name: section.name.0.clone(),
        prefixes: section.prefixes.iter().map(|prefix| prefix.0.clone()).collect(),
        groups: section.groups.iter().map(|group| group.0.clone()).collect(),
        obeys_register_prefix: section.register_prefixes,
        readers: section.readers.into(),
        nacks_missing: section.nack_missing,
        command_limits: CommandLimits {
            commands_max: section.commands_max as usize,
            running_max: section.commands_running as usize,
        },
        access: access(configuration),
        bulk: section.bulk_listen.map(|address| BulkSettings { address, ..BulkSettings::default() }),
        retention: section.retention.iter().map(rule).collect(),
        retention_interval: section.retention_interval.0,
        signer,
    })
}

fn access(configuration: &Configuration) -> AccessSettings {
    let trust = &configuration.repo_trust;
    let commands = CommandAccess { local: configuration.settings.repo.local_commands, rules: trust.commands.clone() };
    AccessSettings {
        commands,
        data: trust.data.clone(),
        anchors: trust.anchors(),
        revocations: revocations(configuration),
    }
}

/// The records in the files of `trust.revocations`, which a thread looks at.
fn revocations(configuration: &Configuration) -> Option<watch::Receiver<RevocationsOfFiles>> {
    let files = RevocationFiles::read(&configuration.trust.revocations);
    if files.is_empty() {
        return None;
    }
    let (sender, receiver) = watch::channel(files.records().collect());
    let say = |problem| eprintln!("namewire: {problem}; records read before count");
    let watched = files.watch(move |records| sender.send(records).is_ok(), say);
    let _ = watched.inspect_err(|error| eprintln!("namewire: revocations are read only once: {error}"));
    Some(receiver)
}

fn rule(entry: &RetentionEntry) -> Rule {
    Rule {
        prefix: entry.prefix.0.value().to_vec(),
        age_ms_max: entry.age.map(|age| age.0.as_millis() as u64),
        bytes_max: entry.bytes.map(|bytes| bytes.0),
        forgets_stale: entry.stale,
    }
}
