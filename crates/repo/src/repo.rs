//! A running repository: its threads and tasks, and how they end.
//!
//! ```text
//!   thread repo-reader-N   Interests under every prefix ─► store ─► answers
//!   thread repo-writer     everything that is to be stored
//!   thread repo-retention  now and then, what may be forgotten
//!   task                   Interests under the repository's name ─► one task for each command
//!   task                   bulk insertion ─► one task for each connection
//! ```
//!
//! A repository needs a client that nothing else uses, because it takes every Interest that the router
//! sends to that client.

use crate::{
    access::{Access, AccessSettings},
    bulk::{self, BulkSettings},
    commands::{CommandLimits, CommandServer},
    jobs::Workshop,
    reads::{QUEUE_INTERESTS_MAX, Reader},
    registrations::Registrations,
    retention::Rule,
    statistics::{Refusal, Snapshot, Statistics},
    store::{Store, StoreError},
    writer::{self, OwnedChange, now_ms},
};
use namewire_client::{Client, ControlError, InterestOptions, ServeError};
use namewire_packet::{NackReason, NameBuf};
use namewire_security::Signer;
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::{Mutex, watch},
    task::{JoinSet, spawn_blocking},
    time::timeout,
};

/// What a repository is to be.
#[derive(Clone, Debug)]
pub struct RepoSettings {
    /// The repository's own name, under which it takes commands.
    pub name: NameBuf,
    /// Prefixes of Data that it registers when it starts.
    pub prefixes: Vec<NameBuf>,
    /// Sync groups that the repository joins when it starts, by their sync prefixes.
    pub groups: Vec<NameBuf>,
    /// True: commands can have further prefixes registered.
    pub obeys_register_prefix: bool,
    /// Threads that answer reads. More than one helps with stores that wait for a network.
    pub readers: usize,
    /// True: an Interest for what is not stored gets a Nack (NoRoute) instead of silence.
    pub nacks_missing: bool,
    /// How many commands are under way.
    pub command_limits: CommandLimits,
    /// Who may command, and what may be stored.
    pub access: AccessSettings,
    /// What may be forgotten.
    pub retention: Vec<Rule>,
    /// How often these rules are applied, beginning with the start.
    pub retention_interval: Duration,
    /// Bulk insertion; `None`: not offered.
    pub bulk: Option<BulkSettings>,
    /// Signs answers to commands.
    pub signer: Signer,
}

impl RepoSettings {
    /// A repository of this name without prefixes of its own and without bulk insertion.
    pub fn new(name: NameBuf) -> Self {
        RepoSettings {
            name,
            prefixes: Vec::new(),
            groups: Vec::new(),
            obeys_register_prefix: true,
            readers: 1,
            nacks_missing: false,
            command_limits: CommandLimits::default(),
            access: AccessSettings::default(),
            retention: Vec::new(),
            retention_interval: Duration::from_secs(600),
            bulk: None,
            signer: Signer::digest(),
        }
    }
}

/// Why a repository does not start.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// The name is empty.
    #[error("a repository needs a name")]
    NoName,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its prefix cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The router does not register a prefix.
    #[error("cannot register a prefix: {0}")]
    Register(#[from] ControlError),
    /// A thread or a listener cannot be made.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

/// A running repository. Dropping it stops it without waiting; [`Repo::stop`] waits.
pub struct Repo {
    client: Client,
    workshop: Arc<Workshop>,
    tasks: JoinSet<()>,
    threads: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    bulk_address: Option<SocketAddr>,
}

impl Repo {
    /// Starts threads and tasks and registers the prefixes. When it returns, the repository can be used.
    ///
    /// # Errors
    /// See [`RepoError`].
    pub async fn start(settings: RepoSettings, client: Client, store: Arc<dyn Store>) -> Result<Repo, RepoError> {
        if settings.name.is_empty() {
            return Err(RepoError::NoName);
        }
        let statistics = Arc::new(Statistics::default());
        let spawned = |error| RepoError::Io { what: "start a thread", error };
        let (queue, writer) = writer::start(Arc::clone(&store), Arc::clone(&statistics)).map_err(spawned)?;
        let configured = std::iter::once(settings.name.clone()).chain(settings.prefixes.iter().cloned()).collect();
        let registrations = load_registrations(&client, &queue, &statistics, configured, &store).await?;
        let access =
            Access::new(client.clone(), settings.name.clone(), Arc::clone(&statistics), settings.access.clone()).await;
        let workshop = Arc::new(Workshop {
            repo: settings.name.clone(),
            client: client.clone(),
            store,
            queue,
            statistics,
            access,
            registrations,
            obeys_register_prefix: settings.obeys_register_prefix,
        });
        let mut repo = Repo {
            client,
            workshop,
            tasks: JoinSet::new(),
            threads: vec![writer],
            stop: watch::channel(false).0,
            bulk_address: None,
        };
        repo.start_commands(&settings).await?;
        repo.start_readers(&settings).await?;
        repo.start_bulk(&settings).await?;
        repo.start_retention(&settings)?;
        repo.workshop.registrations.register_all().await?;
        Ok(repo)
    }

    async fn start_commands(&mut self, settings: &RepoSettings) -> Result<(), RepoError> {
        let interests = self.client.interests_with(&settings.name, interest_options()).await?;
        let server = CommandServer::new(Arc::clone(&self.workshop), settings.signer.clone(), settings.command_limits);
        server.restore_groups(&settings.groups).await?;
        self.tasks.spawn(Arc::new(server).run(interests));
        Ok(())
    }

    async fn start_readers(&mut self, settings: &RepoSettings) -> Result<(), RepoError> {
        // Every Interest that is not a command, whichever prefix brings it.
        let interests = self.client.interests_with(&NameBuf::new(), interest_options()).await?;
        let interests = Arc::new(Mutex::new(interests));
        for number in 0..settings.readers.max(1) {
            let reader = Reader {
                interests: Arc::clone(&interests),
                client: self.client.clone(),
                store: Arc::clone(&self.workshop.store),
                statistics: Arc::clone(&self.workshop.statistics),
                missing: settings.nacks_missing.then_some(NackReason::NoRoute),
                stop: self.stop.subscribe(),
            };
            let runtime = Handle::current();
            let thread = thread::Builder::new().name(format!("repo-reader-{number}"));
            let started = thread.spawn(move || runtime.block_on(reader.run()));
            self.threads.push(started.map_err(|error| RepoError::Io { what: "start a thread", error })?);
        }
        Ok(())
    }

    async fn start_bulk(&mut self, settings: &RepoSettings) -> Result<(), RepoError> {
        let Some(bulk) = settings.bulk else { return Ok(()) };
        let failed = |error| RepoError::Io { what: "listen for bulk insertion", error };
        let listener = TcpListener::bind(bulk.address).await.map_err(failed)?;
        self.bulk_address = Some(listener.local_addr().map_err(failed)?);
        self.tasks.spawn(bulk::serve(listener, Arc::clone(&self.workshop), bulk));
        Ok(())
    }

    fn start_retention(&mut self, settings: &RepoSettings) -> Result<(), RepoError> {
        if settings.retention.is_empty() {
            return Ok(());
        }
        let keeper = Keeper {
            rules: settings.retention.clone(),
            interval: settings.retention_interval,
            workshop: Arc::clone(&self.workshop),
            runtime: Handle::current(),
            stop: self.stop.subscribe(),
        };
        let thread = thread::Builder::new().name("repo-retention".to_owned());
        let started = thread.spawn(move || keeper.run());
        self.threads.push(started.map_err(|error| RepoError::Io { what: "start a thread", error })?);
        Ok(())
    }

    /// Where bulk insertion listens, with the port that was given for port 0.
    pub fn bulk_address(&self) -> Option<SocketAddr> {
        self.bulk_address
    }

    /// What does not work as configured, in words.
    pub fn warnings(&self) -> Vec<String> {
        let blind = "the router does not tell from which face a command comes (the repository is not local to it, or \
                     may not change its face), so no command counts as local";
        if self.workshop.access.is_blind() { vec![blind.to_owned()] } else { Vec::new() }
    }

    /// The counters now.
    pub fn statistics(&self) -> Snapshot {
        self.workshop.snapshot()
    }

    /// Waits until the connection to the router is lost.
    pub async fn disconnected(&mut self) {
        // The tasks end when their streams do; bulk insertion goes on without a router.
        while self.client.close_reason().is_none() && self.tasks.join_next().await.is_some() {}
    }

    /// Ends commands and connections, writes what was accepted, and ends all threads.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        let _ = self.stop.send(true); // readers that have ended need no signal
        let Repo { workshop, threads, client, .. } = self;
        // The writer ends when the last queue is dropped.
        drop(workshop);
        // A thread that panicked has nothing left to do.
        let joined = spawn_blocking(|| threads.into_iter().for_each(|thread| drop(thread.join())));
        let _ = joined.await;
        client.flush().await;
    }
}

/// Applies the rules of retention, again and again.
struct Keeper {
    rules: Vec<Rule>,
    interval: Duration,
    workshop: Arc<Workshop>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

impl Keeper {
    fn run(mut self) {
        loop {
            for rule in &self.rules {
                let deleting = &mut |names: Vec<Vec<u8>>| self.delete(&names);
                if let Err(error) = rule.apply(&*self.workshop.store, now_ms(), deleting) {
                    self.workshop.statistics.refuse_for(&error);
                }
            }
            let Keeper { interval, runtime, stop, .. } = &mut self;
            // Without an elapsed time, it was stopped or dropped.
            if runtime.block_on(async { timeout(*interval, stop.wait_for(|stop| *stop)).await }).is_ok() {
                return;
            }
        }
    }

    fn delete(&self, names: &[Vec<u8>]) -> Result<(), StoreError> {
        if *self.stop.borrow() {
            return Err(StoreError::Unavailable("the repository is stopping".to_owned()));
        }
        if names.is_empty() {
            return Ok(());
        }
        let changes = names.iter().map(|name| OwnedChange::delete(name)).collect();
        let outcome = self.runtime.block_on(self.workshop.queue.write(changes));
        outcome.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

impl Workshop {
    /// The counters now, with those of the connection.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.statistics.snapshot();
        snapshot.refusals[Refusal::Overload as usize] += self.client.counters().dropped_producer_busy;
        snapshot
    }

    /// The counters, the store's usage and how it failed last, for clients.
    pub(crate) fn statistics_json(&self) -> serde_json::Value {
        let mut json = self.snapshot().to_json(&*self.store);
        let closed = self.store.usage().err().map(|error| error.to_string());
        json["store"]["failure"] = closed.or_else(|| self.statistics.failure()).into();
        json
    }
}

/// The prefixes have routes of their own ([`Registrations`]).
fn interest_options() -> InterestOptions {
    InterestOptions { queue_max: QUEUE_INTERESTS_MAX, nack_when_full: Some(NackReason::Congestion), route: None }
}

async fn load_registrations(
    client: &Client,
    queue: &writer::WriteQueue,
    statistics: &Arc<Statistics>,
    configured: Vec<NameBuf>,
    store: &Arc<dyn Store>,
) -> Result<Registrations, RepoError> {
    let (client, queue, statistics, store) = (client.clone(), queue.clone(), Arc::clone(statistics), Arc::clone(store));
    let load = move || Registrations::load(client, queue, statistics, configured, &*store);
    let stopped =
        |error: tokio::task::JoinError| RepoError::Io { what: "read the store", error: io::Error::other(error) };
    Ok(spawn_blocking(load).await.map_err(stopped)??)
}
