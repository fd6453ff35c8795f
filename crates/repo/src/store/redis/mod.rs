//! Redis: Data in one Redis server or in a Redis Cluster, which several repositories may share.
//!
//! Source: Yuan15 §6.2 put Redis behind repo-ng, with repo-ng's names in memory and without them (Redis-opt). The
//! third form lets Redis keep the order of names. Redis Cluster specification, "Hash tags".
//!
//! ```text
//!   PREFIX{0}r NAME      record
//!   PREFIX{0}z           names in order, a sorted set whose scores are equal     with `Index::Stored`
//!   PREFIX{0}c           counts: records, bytes
//!   PREFIX{0}n           notes
//!   PREFIX{0}v           version of the format, index, number of shards
//! ```
//!
//! A cluster stores a key by the part between braces. So Data is divided into [`CLUSTER_SHARDS`] shards by a hash of
//! its name, `{0}` to `{63}`; notes and version are in the first. One server has one shard.
//!
//! A batch of look-ups is one MGET for each shard, a batch of changes is one script for each shard, and all are sent
//! before an answer is read. A script does all of its changes or none, with the counts. A batch over several shards is
//! not atomic: if some shards fail, the caller does not know what was stored. If a write is repeated, Data that the
//! first try added may count as replaced.
//!
//! The settings of the server decide durability: `appendonly yes` with `appendfsync always` gives what `always` gives
//! in other stores. The server must not evict (`maxmemory-policy noeviction`). Redis 6.2 or newer is needed.
//!
//! With [`Index::Memory`], this process reads all names at the start and sees only its own changes of them: only one
//! repository may then use a prefix. The index may contain names that are no longer stored, but it contains every name
//! that this process stored.
//!
//! Cost of an ordered look-up: a query for names in each shard, then one query for their records.

mod servers;

use self::servers::{Failure, Request, Servers};
use super::index::{Index, NameIndex};
use super::{Change, Record, Store, StoreError, Usage, Written};
use redis::{Cmd, FromRedisValue, Value};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

/// Shards in a cluster. A power of two, so that a hash is spread evenly.
const CLUSTER_SHARDS: usize = 64;
/// The format of this code.
const FORMAT_VERSION: u64 = 1;
/// Names of all shards that a scan asks for at once: first, and at most.
const PAGE_NAMES: [usize; 2] = [4, 1024];
/// Keys that Redis looks at for one answer, when names are read into memory.
const LOAD_KEYS: usize = 10_000;
/// Makes the changes of a shard.
const WRITE_SCRIPT: &str = include_str!("write.lua");

/// Settings of a store in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisOptions {
    /// The server, as `redis://HOST:PORT/DATABASE` or `unix:///PATH`; in a cluster, one or more of its servers.
    pub urls: Vec<String>,
    /// True for a Redis Cluster.
    pub is_cluster: bool,
    /// What all keys begin with. Repositories with the same prefix share their Data.
    pub prefix: String,
    /// How names are found. A store keeps the index that it was made with.
    pub index: Index,
}

/// Data in Redis.
pub struct RedisStore {
    servers: Servers,
    options: RedisOptions,
    /// What the keys of each shard begin with.
    shards: Vec<String>,
    names: Option<NameIndex<()>>,
}

impl RedisStore {
    /// Connects, and makes the store if it is not there.
    ///
    /// # Errors
    /// If no server answers, a later version of this program made the store, or it has another index.
    pub fn open(options: RedisOptions) -> Result<Self, StoreError> {
        if options.prefix.contains(['{', '}']) {
            return Err(StoreError::Other(format!("the prefix {:?} must be without braces", options.prefix)));
        }
        let count = if options.is_cluster { CLUSTER_SHARDS } else { 1 };
        let shards: Vec<String> = (0..count).map(|shard| format!("{}{{{shard}}}", options.prefix)).collect();
        let servers = match &options.urls[..] {
            urls if options.is_cluster => Servers::cluster(urls, shards.clone())?,
            [url] => Servers::one(url)?,
            urls => return Err(StoreError::Other(format!("one URL is needed, not {}", urls.len()))),
        };
        let mut store = RedisStore { servers, options, shards, names: None };
        store.begin_format()?;
        if store.options.index == Index::Memory {
            store.names = Some(NameIndex::new(store.load_names()?));
        }
        Ok(store)
    }

    /// Notes the format in a new store; refuses one that this code or these settings do not fit.
    fn begin_format(&self) -> Result<(), StoreError> {
        let (index, shards) = (self.options.index.name(), self.shards.len());
        let wanted = format!("{FORMAT_VERSION} index={index} shards={shards}");
        let key = self.key(0, "v");
        let set = redis::cmd("SETNX").arg(&key).arg(&wanted).to_owned();
        let get = redis::cmd("GET").arg(&key).to_owned();
        let mut found = String::new();
        for answer in self.servers.exchange(&[Request { shard: 0, command: set }, Request { shard: 0, command: get }]) {
            if let value @ Value::BulkString(_) = answer.map_err(Failure::into_store_error)? {
                found = read(value)?;
            }
        }
        let version: Option<u64> = found.split(' ').next().and_then(|version| version.parse().ok());
        match version {
            _ if found == wanted => Ok(()),
            Some(version) if version > FORMAT_VERSION => Err(StoreError::Other(format!(
                "the store has format {version}, and this program knows formats up to {FORMAT_VERSION}: use a newer program"
            ))),
            _ => Err(StoreError::Other(format!(
                "the store was made as \"{found}\", and cannot be opened as \"{wanted}\""
            ))),
        }
    }

    fn key(&self, shard: usize, what: &str) -> String {
        format!("{}{what}", self.shards[shard])
    }

    /// The key of a record.
    fn record_key(&self, shard: usize, name: &[u8]) -> Vec<u8> {
        [self.shards[shard].as_bytes(), b"r", name].concat()
    }

    /// The shard of a name: FNV-1a, a hash that never changes.
    fn shard_of(&self, name: &[u8]) -> usize {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = if self.shards.len() == 1 { 0 } else { name.iter().fold(0xcbf2_9ce4_8422_2325, mix) };
        (hash ^ hash >> 32) as usize % self.shards.len()
    }

    /// The places of names in each shard.
    fn by_shard<'a>(&self, names: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<usize>> {
        let mut places = vec![vec![]; self.shards.len()];
        names.enumerate().for_each(|(place, name)| places[self.shard_of(name)].push(place));
        places
    }

    /// Sends one command for each shard, and returns their answers.
    fn ask_all(&self, command: impl Fn(usize) -> Cmd) -> Result<Vec<Value>, StoreError> {
        let shards = 0..self.shards.len();
        let requests: Vec<Request> = shards.map(|shard| Request { shard, command: command(shard) }).collect();
        self.servers.exchange(&requests).into_iter().map(|answer| answer.map_err(Failure::into_store_error)).collect()
    }

    /// The first stored names that begin with `prefix` and come after `after`. Empty if there are none.
    fn page(&self, prefix: &[u8], after: Option<&[u8]>, names_max: usize) -> Result<Vec<Box<[u8]>>, StoreError> {
        if let Some(names) = &self.names {
            return Ok(names.page(prefix, after, names_max));
        }
        let (from, below) = match after {
            Some(after) if after >= prefix => ([b"(", after].concat(), end_of(prefix)),
            _ => ([b"[", prefix].concat(), end_of(prefix)),
        };
        let shard_max = names_max.div_ceil(self.shards.len());
        let pages = self.ask_all(|shard| {
            let mut command = redis::cmd("ZRANGEBYLEX");
            command.arg(self.key(shard, "z")).arg(&from).arg(&below).arg("LIMIT").arg(0).arg(shard_max);
            command
        })?;
        let pages: Vec<Vec<Vec<u8>>> = pages.into_iter().map(read).collect::<Result<_, _>>()?;
        // A shard with a full page may have more names after its last one.
        let complete =
            pages.iter().filter(|page| page.len() == shard_max).filter_map(|page| page.last()).min().cloned();
        let mut names: Vec<Box<[u8]>> = pages.into_iter().flatten().map(Vec::into_boxed_slice).collect();
        names.sort_unstable();
        if let Some(complete) = complete {
            names.truncate(names.partition_point(|name| **name <= *complete));
        }
        Ok(names)
    }

    /// Reads the names of all records.
    fn load_names(&self) -> Result<BTreeMap<Box<[u8]>, ()>, StoreError> {
        let special = |letter: char| r"*?[]\^-".contains(letter);
        let escape = |letter: char| special(letter).then_some('\\').into_iter().chain([letter]);
        let pattern: String = self.options.prefix.chars().flat_map(escape).chain("{*}r*".chars()).collect();
        let mut names = BTreeMap::new();
        for shard in self.servers.one_shard_of_each_server() {
            let mut cursor = b"0".to_vec();
            loop {
                let mut command = redis::cmd("SCAN");
                command.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(LOAD_KEYS);
                let answer = self.servers.exchange(&[Request { shard, command }]).swap_remove(0);
                let (next, keys): (Vec<u8>, Vec<Vec<u8>>) = read(answer.map_err(Failure::into_store_error)?)?;
                for key in keys {
                    let tag_end = key.iter().position(|byte| *byte == b'}').unwrap_or(0);
                    names.insert(key[tag_end + 2..].into(), ());
                }
                cursor = next;
                if cursor == b"0" {
                    break;
                }
            }
        }
        Ok(names)
    }

    /// The command that does the changes at these places.
    fn write_command(&self, shard: usize, changes: &[Change<'_>], places: &[usize]) -> Cmd {
        let mut command = redis::cmd("EVAL");
        let mut records: Vec<&[u8]> = vec![];
        let mut notes = vec![];
        let mut seen = HashSet::with_capacity(places.len());
        let mut are_put_once = true;
        let is_record = |place: &&usize| !matches!(changes[**place], Change::Note { .. });
        command.arg(WRITE_SCRIPT).arg(3 + places.iter().filter(is_record).count());
        command.arg(self.key(shard, "c")).arg(self.key(shard, "z")).arg(self.key(shard, "n"));
        for place in places {
            match changes[*place] {
                Change::Put { name, record } => {
                    command.arg(self.record_key(shard, name));
                    records.push(record);
                    are_put_once &= seen.insert(name);
                }
                Change::Delete { name } => {
                    command.arg(self.record_key(shard, name));
                    records.push(b"");
                    are_put_once = false;
                }
                Change::Note { key, note } => {
                    notes.push(key.to_vec());
                    notes.push(note.map_or(vec![], |note| [b"+", note].concat()));
                }
            }
        }
        let is_ordered = u8::from(self.options.index == Index::Stored);
        command.arg(self.record_key(shard, b"").len()).arg(is_ordered).arg(u8::from(are_put_once));
        command.arg(records).arg(notes);
        command
    }

    /// Follows a write in the index in memory. After a failure that leaves open what was done, it keeps all names.
    fn follow(&self, changes: &[Change<'_>], places: &[usize], is_done: bool) {
        let Some(names) = &self.names else { return };
        names.apply(places.iter().filter_map(|place| match changes[*place] {
            Change::Put { name, .. } => Some((name, Some(()))),
            Change::Delete { name } if is_done => Some((name, None)),
            Change::Delete { .. } | Change::Note { .. } => None,
        }));
    }
}

impl Store for RedisStore {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn is_ordered(&self) -> bool {
        self.options.index != Index::None
    }

    fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
        let mut groups = self.by_shard(names.iter().copied());
        let mut requests = vec![];
        for (shard, places) in groups.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let mut command = redis::cmd("MGET");
            for place in places {
                command.arg(self.record_key(shard, names[*place]));
            }
            requests.push(Request { shard, command });
        }
        groups.retain(|places| !places.is_empty());
        let mut outcome = Ok(());
        for (places, answer) in groups.iter().zip(self.servers.exchange(&requests)) {
            match answer {
                Ok(Value::Array(records)) => {
                    for (place, record) in places.iter().zip(&records) {
                        if let Value::BulkString(record) = record {
                            found(*place, decode(record)?);
                        }
                    }
                }
                Ok(value) => outcome = Err(StoreError::Other(format!("Redis answered MGET with {value:?}"))),
                Err(failure) => outcome = Err(failure.into_store_error()),
            }
        }
        outcome
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if self.options.index == Index::None {
            return Err(StoreError::NotOrdered);
        }
        let [mut names_max, most] = PAGE_NAMES;
        let mut page = self.page(prefix, after, names_max)?;
        while let Some(last) = page.last() {
            let asked: Vec<&[u8]> = page.iter().map(Box::as_ref).collect();
            let mut records: Vec<Option<Vec<u8>>> = vec![None; asked.len()];
            self.get(&asked, &mut |place, record| records[place] = Some(record.encode()))?;
            for (name, record) in asked.iter().zip(&records) {
                if let Some(record) = record
                    && visit(name, decode(record)?).is_break()
                {
                    return Ok(());
                }
            }
            names_max = (names_max * 4).min(most);
            page = self.page(prefix, Some(last), names_max)?;
        }
        Ok(())
    }

    fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
        // Notes are in the first shard.
        let mut groups = vec![vec![]; self.shards.len()];
        for (place, change) in changes.iter().enumerate() {
            let shard = match change {
                Change::Put { name, .. } | Change::Delete { name } => self.shard_of(name),
                Change::Note { .. } => 0,
            };
            groups[shard].push(place);
        }
        let shards: Vec<usize> = (0..groups.len()).filter(|shard| !groups[*shard].is_empty()).collect();
        let command = |shard: &usize| self.write_command(*shard, changes, &groups[*shard]);
        let requests: Vec<Request> =
            shards.iter().map(|shard| Request { shard: *shard, command: command(shard) }).collect();
        let mut written = Written::default();
        let mut failures = vec![];
        for (shard, answer) in shards.iter().zip(self.servers.exchange(&requests)) {
            match answer {
                Ok(value) => {
                    let [added, replaced, deleted]: [u64; 3] = read(value)?;
                    written.added += added;
                    written.replaced += replaced;
                    written.deleted += deleted;
                    self.follow(changes, &groups[*shard], true);
                }
                Err(failure) => {
                    if let Failure::Lost(_) = failure {
                        self.follow(changes, &groups[*shard], false);
                    }
                    failures.push(failure.into_store_error());
                }
            }
        }
        match failures.len() {
            0 => Ok(written),
            count if count == shards.len() => Err(failures.swap_remove(0)),
            _ => Err(StoreError::Unavailable(format!("only a part of the batch is stored: {}", failures[0]))),
        }
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let counts = self.ask_all(|shard| {
            let mut command = redis::cmd("HMGET");
            command.arg(self.key(shard, "c")).arg("records").arg("bytes");
            command
        })?;
        let mut usage = Usage::default();
        for shard in counts {
            let [records, bytes]: [Option<u64>; 2] = read(shard)?;
            usage.records += records.unwrap_or(0);
            usage.bytes += bytes.unwrap_or(0);
        }
        Ok(usage)
    }

    fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let command = redis::cmd("HGETALL").arg(self.key(0, "n")).to_owned();
        let answer = self.servers.exchange(&[Request { shard: 0, command }]).swap_remove(0);
        let notes: Vec<(Vec<u8>, Vec<u8>)> = read(answer.map_err(Failure::into_store_error)?)?;
        notes.iter().for_each(|(key, note)| visit(key, note));
        Ok(())
    }
}

/// The end of the names that begin with `prefix`, for ZRANGEBYLEX.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < 255) {
        Some(last) => [b"(", &prefix[..last], &[prefix[last] + 1]].concat(),
        None => b"+".to_vec(),
    }
}

fn read<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn decode(record: &[u8]) -> Result<Record<'_>, StoreError> {
    Record::decode(record).ok_or_else(|| StoreError::Damaged("a record is too short".to_owned()))
}
