//! Which prefixes are registered, and what does an Interest get? The producer of certificates.
//!
//! [`CertificateServer::run`] registers one prefix for each key, `/<identity>/KEY/<key id>`: the rest of the identity's
//! names belongs to other producers. It takes the Interests that no other producer of its [`Client`] takes, and answers
//! those that [`CertificateStore::find`] finds a certificate for.
//!
//! **What is missing gets silence**, neither a Nack nor an application Nack. Another producer of the same prefix may
//! have the certificate. An application Nack is Data: it would satisfy the Interest for everybody. A Nack ends the
//! Interest at a router that asked only this producer, and the retransmission then comes here again. After silence,
//! Namewire's best-route prefers the other producer until this one answers again.
//!
//! Routes for certificates that the user chose cost 0; those for own keys hide the routes of shorter prefixes. Those
//! for fetched certificates cost [`FETCHED_COST`]: they were fetched from a producer, which is asked first.
//!
//! Limits: [`COMMANDS_AT_ONCE`] commands wait for an answer; a refused prefix is tried again after [`RETRY`];
//! [`WAITING_MAX`] Interests wait, and further ones get a Nack (Congestion); [`Limits`] for certificates and prefixes.
//! Sources are looked at once in [`LOOK_EVERY`]. A certificate that comes or goes there is served or withdrawn at the
//! next look.

use crate::{
    sources::{Sources, Watch},
    store::{AddError, CertificateStore, Limits, Source},
};
use namewire_client::{
    Client, CloseReason, ControlError, InterestOptions, InterestStream, ReplyBatch, RouteOptions, ServeError,
};
use namewire_packet::{NackReason, NameBuf};
use namewire_security::Certificate;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::Notify,
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout_at},
};

/// Pause between looks at the sources.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Cost of the routes for fetched certificates: more than a network's routes cost.
pub const FETCHED_COST: u64 = 1_000_000;
/// Commands that wait for an answer at the same time.
const COMMANDS_AT_ONCE: usize = 16;
/// Until a refused prefix is tried again.
const RETRY: Duration = Duration::from_secs(60);
/// The same if no answer came.
const RETRY_UNANSWERED: Duration = Duration::from_secs(5);
/// Interests that wait for this server.
const WAITING_MAX: usize = 512;
/// Interests that are answered together.
const BATCH_MAX: usize = 64;
/// Pauses between attempts to connect again: the first, and the longest.
const RECONNECT: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// What a running server has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// This key's prefix is registered, or the number of its certificates has changed.
    Serving {
        /// The name of the key.
        key: NameBuf,
        /// Certificates of this key.
        certificates: usize,
    },
    /// There are no more certificates of this key, and its prefix is not registered any more.
    Withdrawn {
        /// The name of the key.
        key: NameBuf,
    },
    /// The forwarder does not register this key's prefix; it is asked again later. Each reason is told once.
    NotRegistered {
        /// The name of the key.
        key: NameBuf,
        /// The reason in words.
        why: String,
    },
    /// A source cannot be read, or has more than is served, in words.
    Problem(String),
    /// For the first time, or after changes, everything is registered that can be.
    Settled {
        /// Certificates that are served.
        certificates: usize,
        /// Registered prefixes.
        keys: usize,
    },
    /// The connection is lost; another one is tried.
    Lost(CloseReason),
    /// There is a connection again.
    Restored,
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that got a certificate.
    pub answered: u64,
    /// Interests for what is not here.
    pub missing: u64,
    /// Certificates that [`CertificateServer::add`] refused.
    pub refused: u64,
}

/// A producer of certificates. Clones are the same one.
#[derive(Clone)]
pub struct CertificateServer {
    shared: Arc<Shared>,
}

struct Shared {
    store: Mutex<CertificateStore>,
    watch: Mutex<Watch>,
    /// Replace those of `watch` at the next look. Not set there: a look may wait for a disk.
    next_sources: Mutex<Option<Sources>>,
    changed: Notify,
    answered: AtomicU64,
    missing: AtomicU64,
    refused: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CertificateServer {
    /// A server of these sources. Nothing is read before [`CertificateServer::run`].
    pub fn new(sources: Sources, limits: Limits) -> Self {
        CertificateServer {
            shared: Arc::new(Shared {
                store: Mutex::new(CertificateStore::new(limits)),
                watch: Mutex::new(Watch::new(sources)),
                next_sources: Mutex::new(None),
                changed: Notify::new(),
                answered: AtomicU64::new(0),
                missing: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            }),
        }
    }

    /// Serves these sources instead, after the next look.
    pub fn set_sources(&self, sources: Sources) {
        *lock(&self.shared.next_sources) = Some(sources);
        self.shared.changed.notify_one();
    }

    /// Serves a certificate that was fetched or made at run time. `source` is a number for the peer or task that it
    /// came from; each has a share. The caller has verified the certificate.
    ///
    /// # Errors
    /// If the share of the source, or the room for all of them, does not allow it.
    pub fn add(&self, source: u32, certificate: Certificate) -> Result<(), AddError> {
        let added = lock(&self.shared.store).add(source, certificate);
        match added {
            Ok(()) => self.shared.changed.notify_one(),
            Err(_) => _ = self.shared.refused.fetch_add(1, Ordering::Relaxed),
        }
        added
    }

    /// Forgets what was added from this source.
    pub fn forget(&self, source: u32) {
        lock(&self.shared.store).remove_all(Source::Fetched(source));
        self.shared.changed.notify_one();
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { answered, missing, refused, .. } = &*self.shared;
        Counters { answered: read(answered), missing: read(missing), refused: read(refused) }
    }

    /// Serves over this connection until the future is dropped. A lost connection is opened again. Routes stay until
    /// the client is dropped. `on_event` must not block.
    ///
    /// # Errors
    /// If another producer of this client has the prefix `/`; if a connection is lost that cannot be opened again.
    pub async fn run(&self, client: &Client, mut on_event: impl FnMut(ServerEvent) + Send) -> Result<(), ServeError> {
        let options =
            InterestOptions { queue_max: WAITING_MAX, nack_when_full: Some(NackReason::Congestion), route: None };
        loop {
            let stream = client.interests_with(&NameBuf::new(), options).await?;
            tokio::select! {
                () = self.answer(client, stream) => {}
                () = self.keep_routes(client, &mut on_event) => {}
            }
            let lost = client.close_reason().unwrap_or(CloseReason::Remote);
            if client.transport().is_none() {
                return Err(ServeError::Closed(lost));
            }
            on_event(ServerEvent::Lost(lost));
            let [mut pause, longest] = RECONNECT;
            loop {
                sleep(pause).await;
                if client.reopen().await.is_ok() {
                    break;
                }
                pause = longest.min(2 * pause);
            }
            on_event(ServerEvent::Restored);
        }
    }

    /// Answers Interests until the connection is lost.
    async fn answer(&self, client: &Client, mut stream: InterestStream) {
        let (mut batch, mut replies) = (Vec::with_capacity(BATCH_MAX), ReplyBatch::default());
        while stream.next_batch(&mut batch, BATCH_MAX).await > 0 {
            let now_ms = unix_ms();
            for incoming in batch.drain(..) {
                let found = lock(&self.shared.store).find(&incoming.interest(), now_ms);
                match found {
                    Some(certificate) => {
                        self.shared.answered.fetch_add(1, Ordering::Relaxed);
                        replies.push_data(&incoming, certificate.wire());
                    }
                    None => _ = self.shared.missing.fetch_add(1, Ordering::Relaxed),
                }
            }
            if client.send_replies(&mut replies).await.is_err() {
                return;
            }
        }
    }

    /// Looks at the sources, and registers and withdraws prefixes, until the connection is lost.
    async fn keep_routes(&self, client: &Client, on_event: &mut (impl FnMut(ServerEvent) + Send)) {
        let mut routes = Routes::default();
        let mut next_look = Instant::now();
        let (mut is_first, mut keys_refused) = (true, 0);
        loop {
            if Instant::now() >= next_look || lock(&self.shared.next_sources).is_some() {
                self.look(on_event).await;
                next_look = Instant::now() + LOOK_EVERY;
            }
            let (wanted, refused) = {
                let store = lock(&self.shared.store);
                (Wanted::of(&store), store.keys_refused())
            };
            if std::mem::replace(&mut keys_refused, refused) != refused && refused > 0 {
                on_event(ServerEvent::Problem(format!("{refused} keys are beyond the limit and not registered")));
            }
            let has_changed = routes.follow(client, &wanted, on_event).await;
            if client.close_reason().is_some() {
                return;
            }
            if has_changed || is_first {
                is_first = false;
                let certificates = routes.registered.values().map(|(_, certificates)| certificates).sum();
                on_event(ServerEvent::Settled { certificates, keys: routes.registered.len() });
            }
            sleep(CHANGE_PAUSE).await;
            let _ = timeout_at(next_look, self.shared.changed.notified()).await;
        }
    }

    async fn look(&self, on_event: &mut (impl FnMut(ServerEvent) + Send)) {
        let next = lock(&self.shared.next_sources).take();
        let shared = Arc::clone(&self.shared);
        let look = move || {
            let mut watch = lock(&shared.watch);
            if let Some(sources) = next {
                *watch = Watch::new(sources);
            }
            watch.look()
        };
        let Ok(seen) = spawn_blocking(look).await else { return }; // the runtime ends
        let mut problems = seen.problems;
        let read = [(Source::KeyChain, seen.key_chain), (Source::Files, seen.files)];
        for (source, certificates) in read.into_iter().filter_map(|(source, read)| Some((source, read?))) {
            let refused = lock(&self.shared.store).replace(source, certificates);
            if refused > 0 {
                let what = if source == Source::KeyChain { "the key chain" } else { "the files" };
                problems.push(format!("{refused} certificates of {what} are beyond the limit and not served"));
            }
        }
        problems.into_iter().map(ServerEvent::Problem).for_each(on_event);
    }
}

/// Shortest time between two rounds of changes.
const CHANGE_PAUSE: Duration = Duration::from_millis(50);

/// How a prefix is registered.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    cost: u64,
    /// The routes of shorter prefixes do not count.
    hides_shorter: bool,
}

/// The keys to serve: the cost of the route, and the number of certificates.
struct Wanted {
    keys: HashMap<NameBuf, (Way, usize)>,
    /// In the order in which they are registered.
    order: Vec<NameBuf>,
}

impl Wanted {
    fn of(store: &CertificateStore) -> Self {
        let keys = store.keys();
        let order = keys.iter().map(|(key, ..)| key.clone()).collect();
        let way = |source| match source {
            // Routes of shorter prefixes would be as good as this one, and lead elsewhere. All certificates of an own
            // key are here, so nothing is lost if this route hides them.
            Source::KeyChain => Way { cost: 0, hides_shorter: true },
            Source::Files => Way { cost: 0, hides_shorter: false },
            Source::Fetched(_) => Way { cost: FETCHED_COST, hides_shorter: false },
        };
        let keys = keys.into_iter().map(|(key, count, source)| (key, (way(source), count))).collect();
        Wanted { keys, order }
    }
}

/// The prefixes at the forwarder.
#[derive(Default)]
struct Routes {
    /// Those that are there: their cost, and the certificates of their keys.
    registered: HashMap<NameBuf, (Way, usize)>,
    /// Those that were refused: when to try again, and why.
    refused: HashMap<NameBuf, (Instant, String)>,
}

impl Routes {
    /// Lets the forwarder have the routes that are wanted. True if something has changed.
    async fn follow(
        &mut self,
        client: &Client,
        wanted: &Wanted,
        on_event: &mut (impl FnMut(ServerEvent) + Send),
    ) -> bool {
        let mut has_changed = false;
        self.refused.retain(|key, _| wanted.keys.contains_key(key));
        let gone = self.registered.keys().filter(|key| !wanted.keys.contains_key(key));
        let gone = gone.map(|key| (key.clone(), None)).collect();
        command(client, gone, |key, result| {
            // If the answer was lost, the next round asks again.
            if result.is_ok() {
                has_changed = true;
                self.registered.remove(&key);
                on_event(ServerEvent::Withdrawn { key });
            }
        })
        .await;
        let mut new = Vec::new();
        for key in &wanted.order {
            let (cost, certificates) = wanted.keys[key];
            match self.registered.get_mut(key) {
                Some((now, count)) if *now == cost => {
                    if std::mem::replace(count, certificates) != certificates {
                        has_changed = true;
                        on_event(ServerEvent::Serving { key: key.clone(), certificates });
                    }
                }
                _ if self.refused.get(key).is_some_and(|(at, _)| Instant::now() < *at) => {}
                _ => new.push((key.clone(), Some(cost))),
            }
        }
        command(client, new, |key, result| match result {
            Ok(()) => {
                has_changed = true;
                self.refused.remove(&key);
                let (cost, certificates) = wanted.keys[&key];
                self.registered.insert(key.clone(), (cost, certificates));
                on_event(ServerEvent::Serving { key, certificates });
            }
            Err(error) => {
                let why = error.to_string();
                let is_refusal = matches!(error, ControlError::Refused(_));
                let again = Instant::now() + if is_refusal { RETRY } else { RETRY_UNANSWERED };
                let before = self.refused.insert(key.clone(), (again, why.clone()));
                if before.is_none_or(|(_, before)| before != why) {
                    on_event(ServerEvent::NotRegistered { key, why });
                }
            }
        })
        .await;
        has_changed
    }
}

/// Registers these prefixes in their ways, or withdraws those without, [`COMMANDS_AT_ONCE`] at the same time.
async fn command(
    client: &Client,
    commands: Vec<(NameBuf, Option<Way>)>,
    mut on_answer: impl FnMut(NameBuf, Result<(), ControlError>),
) {
    let mut commands = commands.into_iter();
    let mut waiting = JoinSet::new();
    loop {
        for (key, way) in commands.by_ref().take(COMMANDS_AT_ONCE - waiting.len()) {
            let client = client.clone();
            waiting.spawn(async move {
                let answer = match way {
                    Some(Way { cost, hides_shorter }) => {
                        let route = RouteOptions { cost, capture: hides_shorter, ..RouteOptions::default() };
                        client.register_prefix_with(&key, route).await
                    }
                    None => client.unregister_prefix(&key).await,
                };
                (key, answer.map(drop))
            });
        }
        match waiting.join_next().await {
            Some(Ok((key, answer))) => on_answer(key, answer),
            Some(Err(_)) => {} // the runtime ends
            None => return,
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
