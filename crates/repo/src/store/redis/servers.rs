//! Servers: connections to one Redis server or to the masters of a cluster.
//!
//! A request belongs to a shard. All keys of a shard have the same hash tag, so they are on one server (Redis Cluster
//! specification, "Hash tags"). Requests for several servers are sent to all of them before the first answer is read.
//!
//! No call waits longer than [`CONNECT_MAX`] and twice [`ANSWER_MAX`]. After a failed connection, requests for that
//! server fail at once for some time. This time doubles with each failure, up to [`BACK_OFF_MAX`].

use super::super::StoreError;
use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, ServerErrorKind,
    Value,
};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Longest wait for an answer, and for room to send.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Delay after the first failed connection, and the longest one.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(2);
/// Shortest time between two questions where the shards are.
const ASK_SHARDS_MIN: Duration = Duration::from_millis(200);

/// A command for one shard.
pub(super) struct Request {
    pub(super) shard: usize,
    pub(super) command: redis::Cmd,
}

/// Why a request has no answer.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The server did not do it.
    Refused(RedisError),
    /// It is not known what the server did.
    Lost(RedisError),
    /// It was not sent.
    NotSent(String),
}

impl Failure {
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Failure::NotSent(reason) => StoreError::Unavailable(reason),
            Failure::Lost(error) => StoreError::Unavailable(error.to_string()),
            Failure::Refused(error) => match error.code() {
                // MISCONF: the server cannot write its own files.
                Some("OOM" | "MISCONF") => StoreError::Full(error.to_string()),
                _ if is_passing(&error) => StoreError::Unavailable(error.to_string()),
                _ => StoreError::Other(error.to_string()),
            },
        }
    }
}

/// One server, and the connections to it that no thread uses now.
struct Server {
    info: ConnectionInfo,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    back_off: Option<BackOff>,
}

struct BackOff {
    delay: Duration,
    until: Instant,
    reason: String,
}

/// Where the shards are.
pub(super) struct Servers {
    seeds: Vec<Arc<Server>>,
    /// A key of each shard; empty with one server.
    shard_keys: Vec<String>,
    shards: RwLock<Vec<Arc<Server>>>,
    asked_at: Mutex<Instant>,
}

impl Servers {
    /// Connects to one server.
    pub(super) fn one(url: &str) -> Result<Self, StoreError> {
        let server = Arc::new(Server::new(connection_info(url)?));
        let connection = server.take().map_err(Failure::into_store_error)?;
        server.give_back(connection);
        Ok(Servers {
            seeds: vec![],
            shard_keys: vec![],
            shards: RwLock::new(vec![server]),
            asked_at: Mutex::new(Instant::now()),
        })
    }

    /// Connects to a cluster, whose servers the first one that answers will name. `shard_keys` has a key of each shard.
    pub(super) fn cluster(urls: &[String], shard_keys: Vec<String>) -> Result<Self, StoreError> {
        let seeds = urls.iter().map(|url| Ok(Arc::new(Server::new(connection_info(url)?))));
        let servers = Servers {
            seeds: seeds.collect::<Result<_, StoreError>>()?,
            shard_keys,
            shards: RwLock::default(),
            asked_at: Mutex::new(Instant::now()),
        };
        servers.ask_for_shards().map_err(Failure::into_store_error)?;
        Ok(servers)
    }

    /// A shard of each server.
    pub(super) fn one_shard_of_each_server(&self) -> Vec<usize> {
        let shards = self.shards();
        let is_first = |place: &usize| !shards[..*place].iter().any(|before| Arc::ptr_eq(before, &shards[*place]));
        (0..shards.len()).filter(is_first).collect()
    }

    /// Sends all requests, and returns their answers in the same order. A request that failed is sent once more, to
    /// where its shard is then; so a server may do it twice.
    pub(super) fn exchange(&self, requests: &[Request]) -> Vec<Result<Value, Failure>> {
        let places: Vec<usize> = (0..requests.len()).collect();
        let mut answers = self.exchange_once(requests, &places);
        let is_worth_another = |answer: &Result<Value, Failure>| match answer {
            Ok(_) => false,
            Err(Failure::Refused(error)) => is_passing(error),
            Err(Failure::Lost(_) | Failure::NotSent(_)) => true,
        };
        let again: Vec<usize> = places.into_iter().filter(|place| is_worth_another(&answers[*place])).collect();
        if again.is_empty() {
            return answers;
        }
        self.ask_for_shards_again();
        for (place, answer) in again.iter().zip(self.exchange_once(requests, &again)) {
            // If the first was lost, a refusal of the second does not say what the first did.
            if answer.is_ok() || !matches!(answers[*place], Err(Failure::Lost(_))) {
                answers[*place] = answer;
            }
        }
        answers
    }

    /// Sends the requests at these places, and returns their answers.
    fn exchange_once(&self, requests: &[Request], places: &[usize]) -> Vec<Result<Value, Failure>> {
        let mut answers: Vec<Result<Value, Failure>> = vec![];
        answers.resize_with(places.len(), || Err(Failure::NotSent(String::new())));
        let mut sent = vec![];
        for (server, numbers) in self.by_server(requests, places) {
            let mut bytes = vec![];
            numbers.iter().for_each(|number| requests[places[*number]].command.write_packed_command(&mut bytes));
            let begun = server.take().and_then(|mut connection| match connection.send_packed_command(&bytes) {
                Ok(()) => Ok(connection),
                Err(error) => {
                    server.forget_idle();
                    Err(Failure::Lost(error))
                }
            });
            match begun {
                Ok(connection) => sent.push((server, connection, numbers)),
                Err(failure) => numbers.iter().for_each(|number| answers[*number] = Err(failure.clone())),
            }
        }
        for (server, mut connection, numbers) in sent {
            let mut lost = None;
            for number in numbers {
                answers[number] = match &lost {
                    Some(error) => Err(Failure::Lost(RedisError::clone(error))),
                    None => match connection.recv_response() {
                        Ok(Value::ServerError(error)) => Err(Failure::Refused(error.into())),
                        Ok(value) => Ok(value),
                        Err(error) => Err(Failure::Lost(lost.insert(error).clone())),
                    },
                };
            }
            if lost.is_some() { server.forget_idle() } else { server.give_back(connection) }
        }
        answers
    }

    /// The numbers of these places, by the server that they are for.
    fn by_server(&self, requests: &[Request], places: &[usize]) -> Vec<(Arc<Server>, Vec<usize>)> {
        let shards = self.shards();
        let mut groups: Vec<(Arc<Server>, Vec<usize>)> = vec![];
        for (number, place) in places.iter().enumerate() {
            let server = &shards[requests[*place].shard];
            match groups.iter_mut().find(|(other, _)| Arc::ptr_eq(other, server)) {
                Some((_, numbers)) => numbers.push(number),
                None => groups.push((server.clone(), vec![number])),
            }
        }
        groups
    }

    fn shards(&self) -> Vec<Arc<Server>> {
        self.shards.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks a cluster where the shards are, if no thread did so a short time ago. What is known stays if none answers.
    fn ask_for_shards_again(&self) {
        if self.shard_keys.is_empty() {
            return;
        }
        {
            let mut asked_at = lock(&self.asked_at);
            if asked_at.elapsed() < ASK_SHARDS_MIN {
                return;
            }
            *asked_at = Instant::now();
        }
        let _ = self.ask_for_shards();
    }

    /// Asks the servers in turn, until one knows where all shards are.
    fn ask_for_shards(&self) -> Result<(), Failure> {
        let shards = self.shards();
        let mut known: Vec<Arc<Server>> =
            self.one_shard_of_each_server().into_iter().map(|shard| shards[shard].clone()).collect();
        known.extend(self.seeds.iter().cloned());
        let mut last = Failure::NotSent("no server is configured".to_owned());
        for server in &known {
            match self.shards_known_to(server, &known) {
                Ok(shards) => {
                    *self.shards.write().unwrap_or_else(PoisonError::into_inner) = shards;
                    return Ok(());
                }
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Where the shards are, as a server says.
    fn shards_known_to(&self, server: &Server, known: &[Arc<Server>]) -> Result<Vec<Arc<Server>>, Failure> {
        let mut connection = server.take()?;
        let mut questions = redis::pipe();
        for key in &self.shard_keys {
            questions.cmd("CLUSTER").arg("KEYSLOT").arg(key);
        }
        let slots: Vec<u16> = questions.query(&mut connection).map_err(Failure::Lost)?;
        let ranges: Vec<Vec<Value>> =
            redis::cmd("CLUSTER").arg("SLOTS").query(&mut connection).map_err(Failure::Lost)?;
        server.give_back(connection);
        let ranges: Vec<_> = ranges.iter().filter_map(|range| master_of(range, server.info.addr())).collect();
        let mut servers = known.to_vec();
        let of_slot = |slot| {
            let found = ranges.iter().find(|(slots, _)| slots.contains(&slot));
            let (_, address) = found.ok_or_else(|| Failure::NotSent(format!("no server has the slot {slot}")))?;
            let server = servers.iter().find(|server| server.info.addr() == address).cloned();
            Ok(server.unwrap_or_else(|| {
                servers.push(Arc::new(Server::new(self.seeds[0].info.clone().set_addr(address.clone()))));
                servers[servers.len() - 1].clone()
            }))
        };
        slots.into_iter().map(of_slot).collect()
    }
}

impl Server {
    fn new(info: ConnectionInfo) -> Self {
        Server { info, pool: Mutex::default() }
    }

    /// A connection that no other thread uses.
    fn take(&self) -> Result<Connection, Failure> {
        {
            let mut pool = lock(&self.pool);
            if let Some(connection) = pool.idle.pop() {
                return Ok(connection);
            }
            if let Some(BackOff { until, reason, .. }) = &pool.back_off
                && Instant::now() < *until
            {
                return Err(Failure::NotSent(reason.clone()));
            }
        }
        let connected = self.connect();
        let mut pool = lock(&self.pool);
        match connected {
            Ok(connection) => {
                pool.back_off = None;
                Ok(connection)
            }
            Err(error) => {
                let delay = pool.back_off.as_ref().map_or(BACK_OFF_MIN, |before| (before.delay * 2).min(BACK_OFF_MAX));
                let reason = format!("{}: {error}", self.info.addr());
                pool.back_off = Some(BackOff { delay, until: Instant::now() + delay, reason: reason.clone() });
                Err(Failure::NotSent(reason))
            }
        }
    }

    fn connect(&self) -> Result<Connection, RedisError> {
        let connection = Client::open(self.info.clone())?.get_connection_with_timeout(CONNECT_MAX)?;
        connection.set_read_timeout(Some(ANSWER_MAX))?;
        connection.set_write_timeout(Some(ANSWER_MAX))?;
        Ok(connection)
    }

    fn give_back(&self, connection: Connection) {
        lock(&self.pool).idle.push(connection);
    }

    /// Closes what is probably as dead as the connection that failed.
    fn forget_idle(&self) {
        lock(&self.pool).idle.clear();
    }
}

fn connection_info(url: &str) -> Result<ConnectionInfo, StoreError> {
    url.into_connection_info().map_err(|error| StoreError::Other(format!("{url}: {error}")))
}

/// The slots and the address of a master: one row of the answer to CLUSTER SLOTS. An empty host is that of the server
/// that was asked.
fn master_of(range: &[Value], asked: &ConnectionAddr) -> Option<(RangeInclusive<u16>, ConnectionAddr)> {
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = range else { return None };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let host = match (host, asked) {
        (Value::BulkString(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        (_, ConnectionAddr::Tcp(host, _)) => host.clone(),
        _ => return None,
    };
    let slots = u16::try_from(*first).ok()?..=u16::try_from(*last).ok()?;
    Some((slots, ConnectionAddr::Tcp(host, u16::try_from(*port).ok()?)))
}

/// True if the same command may succeed later or elsewhere.
fn is_passing(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    match error.kind() {
        ErrorKind::Server(Ask | BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain) => true,
        _ => error.code() == Some("BUSY"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is whole between any two steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
