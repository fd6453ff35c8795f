//! `[repo]`: a repository, which keeps Data on disk or in a database. `namewire run` starts it inside the router if it
//! is enabled; `namewire repo run` reads the same section.

use super::choice::{Choice, named};
use super::ranges::{commands_max, commands_running, readers, retention_interval};
use crate::{
    text::Prefix,
    units::{Bytes, Span},
};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, path::PathBuf};

/// `[repo]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepoSection {
    /// Run a repository in the router's process.
    pub enabled: bool,
    /// The repository's own name, under which it takes commands.
    pub name: Prefix,
    /// Prefixes of Data that the repository serves when it starts.
    pub prefixes: Vec<Prefix>,
    /// Sync groups that the repository joins when it starts.
    pub groups: Vec<Prefix>,
    /// The kind of store.
    pub store: Choice<RepoStore>,
    /// Folder of the store, if it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Most bytes of names and Data. A Redis server has a limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// When acknowledged Data are on the disk, if the store is in a file.
    pub sync: Choice<RepoSync>,
    /// How a database finds names.
    pub index: Choice<RepoIndex>,
    /// The Redis server, or some servers of the cluster.
    pub redis: Vec<String>,
    /// What all keys in Redis begin with. Repositories with the same prefix share their Data.
    pub redis_prefix: String,
    /// Threads that answer reads.
    #[serde(deserialize_with = "readers")]
    pub readers: u16,
    /// Answer Interests for what is not stored with a Nack (NoRoute).
    pub nack_missing: bool,
    /// Commands may have further prefixes registered.
    pub register_prefixes: bool,
    /// Applications of this machine may command.
    pub local_commands: bool,
    /// Who else may command: `any`, `schema` (that of `[trust]`), or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<String>,
    /// Rules for the Data to be stored: `any`, `schema` (that of `[trust]`), or a file of rules. Without it, the
    /// repository checks no signatures but digests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Most commands that the repository has accepted and not finished.
    #[serde(deserialize_with = "commands_max")]
    pub commands_max: u32,
    /// Most commands that fetch and store at the same time.
    #[serde(deserialize_with = "commands_running")]
    pub commands_running: u32,
    /// Where bulk insertion listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk_listen: Option<SocketAddr>,
    /// How often the rules of retention are applied.
    #[serde(deserialize_with = "retention_interval")]
    pub retention_interval: Span,
    /// What may be forgotten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retention: Vec<RetentionEntry>,
}

/// `[[repo.retention]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionEntry {
    /// The names that it is for.
    pub prefix: Prefix,
    /// Data that was stored longer ago goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// Most bytes of names and Data; the oldest Data beyond this goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Data goes when its FreshnessPeriod is over.
    #[serde(default)]
    pub stale: bool,
}

namewire_packet::names! {
    /// Where a repository keeps Data.
    #[derive(Default)]
    pub enum RepoStore {
        /// In one file (redb).
        #[default]
        Embedded = "embedded",
        /// In a file of SQLite.
        Sqlite = "sqlite",
        /// In a Redis server.
        Redis = "redis",
        /// In a Redis Cluster.
        RedisCluster = "redis-cluster",
        /// In memory; nothing stays after the end.
        Memory = "memory",
    }
}

namewire_packet::names! {
    /// When what a repository acknowledges is on the disk.
    #[derive(Default)]
    pub enum RepoSync {
        /// Before the acknowledgement.
        #[default]
        Always = "always",
        /// When the kernel likes.
        Os = "os",
    }
}

namewire_packet::names! {
    /// How a repository's database finds names.
    #[derive(Default)]
    pub enum RepoIndex {
        /// In an ordered index of its own.
        #[default]
        Stored = "stored",
        /// Through all names in the repository's memory.
        Memory = "memory",
        /// Not in order: by whole names, or not at all.
        None = "none",
    }
}

named! {
    RepoStore: &Self::ALL;
    RepoSync: &Self::ALL;
    RepoIndex: &Self::ALL;
}

impl Default for RepoSection {
    fn default() -> Self {
        RepoSection {
            enabled: false,
            name: "/localhost/repo".parse().expect("a name"),
            prefixes: Vec::new(),
            groups: Vec::new(),
            store: Choice::default(),
            folder: None,
            capacity: None,
            sync: Choice::default(),
            index: Choice::default(),
            redis: vec!["redis://127.0.0.1:6379".to_owned()],
            redis_prefix: "namewire:".to_owned(),
            readers: 1,
            nack_missing: false,
            register_prefixes: true,
            local_commands: true,
            commands: None,
            data: None,
            commands_max: 2048,
            commands_running: 256,
            bulk_listen: None,
            retention_interval: Span::from_secs(600),
            retention: Vec::new(),
        }
    }
}

impl RepoSection {
    /// Why a repository with this section cannot run, whichever program runs it.
    pub(crate) fn problem(&self) -> Option<String> {
        let needs_folder = matches!(self.store.0, RepoStore::Embedded | RepoStore::Sqlite);
        if self.name.0.is_empty() {
            return Some("[repo] name must not be the root".to_owned());
        }
        if self.enabled && needs_folder && self.folder.is_none() {
            return Some(format!("[repo] store \"{}\" needs a folder", self.store.0.name()));
        }
        if self.store.0 == RepoStore::Redis && self.redis.len() != 1 {
            return Some(format!("[repo] redis must name one server, not {}", self.redis.len()));
        }
        if self.redis_prefix.contains(['{', '}']) {
            return Some("[repo] redis_prefix must be without braces".to_owned());
        }
        let is_empty = |entry: &&RetentionEntry| entry.age.is_none() && entry.bytes.is_none() && !entry.stale;
        let idle = self.retention.iter().find(is_empty)?;
        Some(format!("[[repo.retention]] for {} needs age, bytes or stale", idle.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::from_toml;

    #[test]
    fn what_cannot_run_is_refused() {
        for (text, problem) in [
            ("[repo]\nname = \"/\"", "the root"),
            ("[repo]\nenabled = true", "\"embedded\" needs a folder"),
            ("[repo]\nenabled = true\nstore = \"sqlite\"", "\"sqlite\" needs a folder"),
            ("[repo]\nstore = \"redis\"\nredis = []", "one server, not 0"),
            ("[repo]\nredis_prefix = \"a{b}\"", "without braces"),
            ("[[repo.retention]]\nprefix = \"/a\"", "for /a needs age, bytes or stale"),
            ("[repo]\nstore = \"rocks\"", "unknown value \"rocks\""),
            ("[repo]\nreaders = 0", "line 2: "),
        ] {
            let error = from_toml(text).expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let memory =
            from_toml("[repo]\nenabled = true\nstore = \"memory\"\n[[repo.retention]]\nprefix = \"/\"\nage = \"1 d\"");
        assert_eq!(memory.unwrap().repo.retention[0].age, Some(Span::from_secs(86_400)));
    }
}
