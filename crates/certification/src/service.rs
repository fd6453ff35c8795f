//! An authority that serves: Interests from the router, answers back, state on the disk.
//!
//! It registers `/<prefix>/CA`, and answers below it by [`Authority`]. The certificates that it has issued are below
//! the prefix, which it does not register: they are asked for with the forwarding hint `/<prefix>/CA`, and their owners
//! serve them afterwards. What must outlive a restart is on the disk before an answer leaves.

use crate::{
    authority::{Authority, AuthorityError, Change, Errand, Outcome, Reply, Task},
    operator_command,
    store::{ISSUED_MAX, Store, StoreError},
};
use namewire_certificates::{CertificateEvent, CertificateKeeper};
use namewire_client::{
    Client, IncomingInterest, InterestOptions, InterestRoutes, RouteOptions, ServeError,
    object_protocol::{metadata, metadata_name},
};
use namewire_ndncert::{service_name, verbs};
use namewire_packet::{
    Component, Data, FaceId, NackReason, NameBuf,
    nfd::{FaceStatus, FaceUri},
};
use namewire_security::{Certificate, SignError, Signer, key_chain::KeyChain};
use namewire_shares::Holder;
use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep};

/// Until the stream of Interests with a hint is opened again after the connection was lost.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two lists of the router's faces.
const LIST_PAUSE: Duration = Duration::from_millis(500);
/// How often revocation records are looked for.
pub const RECORDS_EVERY: Duration = Duration::from_secs(3);
/// How often old certificates are removed.
const CLEAN_EVERY: Duration = Duration::from_secs(3600);

/// Why an authority does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The router does not let it.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Its memory fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// It cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// The commands of the operator.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Sends mails.
    pub mail: Option<PathBuf>,
    /// Decides, by the challenge.
    pub judges: HashMap<String, PathBuf>,
}

/// Authority and memory, which change together.
struct State {
    authority: Authority,
    store: Store,
    /// What could not be written yet. Nothing is answered before it is.
    backlog: Vec<Change>,
    /// Interests for which the operator's command is at work, by name; the one that came last gets the answer.
    waiting: HashMap<NameBuf, IncomingInterest>,
    /// The hosts behind the router's faces, as numbers.
    askers: HashMap<FaceId, u64>,
    /// When the faces were listed last.
    listed: Option<Instant>,
}

impl State {
    /// Writes what has happened, then tells it.
    fn keep(&mut self, on_change: &(dyn Fn(&Change) + Send + Sync)) -> Result<(), StoreError> {
        self.backlog.extend(self.authority.take_changes());
        if self.backlog.is_empty() {
            return Ok(());
        }
        self.store.keep(&self.backlog, &mut self.authority)?;
        self.backlog.drain(..).for_each(|change| on_change(&change));
        Ok(())
    }
}

/// An authority that serves.
pub struct Service {
    state: Mutex<State>,
    prefix: NameBuf,
    signer: Signer,
    commands: Commands,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    records_every: Duration,
    /// Gets what happens, for people.
    on_change: Box<dyn Fn(&Change) + Send + Sync>,
}

impl Service {
    /// Puts authority and memory together; `signer` is the authority's.
    ///
    /// # Errors
    /// If the memory cannot be read.
    pub fn new(
        mut authority: Authority,
        store: Store,
        signer: Signer,
        commands: Commands,
        on_change: impl Fn(&Change) + Send + Sync + 'static,
    ) -> Result<Self, ServiceError> {
        store.restore(&mut authority)?;
        let prefix = authority.settings().prefix.clone();
        let (backlog, waiting, askers) = (Vec::new(), HashMap::new(), HashMap::new());
        let state = Mutex::new(State { authority, store, backlog, waiting, askers, listed: None });
        let (clock, on_change) = (Box::new(unix_ms), Box::new(on_change));
        Ok(Service { state, prefix, signer, commands, clock, records_every: RECORDS_EVERY, on_change })
    }

    /// Another clock than the system's: milliseconds since 1970.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Looks for revocation records this often, instead of each [`RECORDS_EVERY`].
    #[must_use]
    pub fn with_records_every(mut self, pause: Duration) -> Self {
        self.records_every = pause;
        self
    }

    /// Serves until the connection cannot be opened again.
    ///
    /// # Errors
    /// If the router does not let it.
    pub async fn run(self: Arc<Self>, client: &Client) -> Result<(), ServiceError> {
        // Without it all askers are one: the router does not tell faces to applications of other machines.
        let _ = client.use_local_fields().await;
        let services = self.prefix.join(Component::generic(b"CA"));
        let mut interests = client.interests(&services).await?;
        let serving = async {
            while let Some(interest) = interests.next().await {
                Arc::clone(&self).answer(client, interest).await;
            }
        };
        tokio::select! {
            () = serving => {}
            () = self.serve_hinted(client) => {}
            () = self.clean() => {}
        }
        Ok(())
    }

    /// Serves the certificates that the authority has issued, to whoever knows the hint.
    async fn serve_hinted(&self, client: &Client) {
        let options = InterestOptions { route: None, ..InterestOptions::default() };
        loop {
            if let Ok(mut interests) = client.interests_with(&self.prefix, options).await {
                let routes = interests.routes();
                let serving = async {
                    while let Some(interest) = interests.next().await {
                        self.answer_with_certificate(interest).await;
                    }
                };
                tokio::select! {
                    () = serving => {}
                    () = self.register_records(&routes) => {}
                }
            }
            sleep(AGAIN).await;
        }
    }

    /// Registers the names of revocation records, as the operator's commands add them.
    async fn register_records(&self, routes: &InterestRoutes) {
        let mut registered: HashSet<NameBuf> = HashSet::new();
        // The owner of the certificate, who may not like the record, has a route for a shorter prefix.
        let route = RouteOptions { capture: true, ..RouteOptions::default() };
        loop {
            let wanted: Vec<NameBuf> = {
                let mut state = self.state();
                let State { authority, store, .. } = &mut *state;
                if let Err(error) = store.read_operator(authority) {
                    tracing::error!(target: "certification", "{error}");
                }
                authority.revoked().iter().map(|record| record.name().parent().to_buf()).collect()
            };
            for prefix in wanted {
                if !registered.contains(&prefix) && routes.set(&prefix, route).await.is_ok() {
                    registered.insert(prefix);
                }
            }
            sleep(self.records_every).await;
        }
    }

    async fn clean(&self) {
        loop {
            let now_ms = (self.clock)();
            let cleaned = self.state().store.clean(now_ms);
            match cleaned {
                Ok(left) => {
                    let is_full = left >= ISSUED_MAX;
                    self.state().authority.set_full(is_full);
                    if is_full {
                        tracing::error!(target: "certification", "{left} certificates are kept: no more are issued");
                    }
                }
                Err(error) => tracing::error!(target: "certification", "{error}"),
            }
            sleep(CLEAN_EVERY).await;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate of the authority was renewed.
    ///
    /// # Errors
    /// If the profile cannot be signed.
    pub fn set_certificate(&self, certificate: Certificate) -> Result<(), ServiceError> {
        let now_ms = (self.clock)();
        Ok(self.state().authority.set_certificate(certificate, now_ms)?)
    }

    /// Looks after the authority's own certificate.
    pub async fn keep_own_certificate(self: Arc<Self>, chain: KeyChain, client: Client) {
        let key_name = self.state().authority.certificate().key_name().to_buf();
        let service = Arc::clone(&self);
        let keeper = CertificateKeeper::new(chain, key_name).over(client);
        keeper
            .run(move |event| match event {
                CertificateEvent::Renewed(certificate) => {
                    tracing::info!(target: "certification", "the authority has the certificate {}", certificate.name());
                    if let Err(error) = service.set_certificate(certificate) {
                        tracing::error!(target: "certification", "{error}");
                    }
                }
                warning => tracing::warn!(target: "certification", "{warning}"),
            })
            .await;
    }

    async fn answer(self: Arc<Self>, client: &Client, incoming: IncomingInterest) {
        if let Some(wire) = self.metadata_for(&incoming) {
            let _ = incoming.respond(&wire).await; // or the consumer is gone
            return;
        }
        let asker = self.asker(client, incoming.incoming_face_id).await;
        match self.handle(&incoming, asker) {
            Outcome::Reply(reply) => send(incoming, reply).await,
            Outcome::Repeated => {
                let name = incoming.interest().name().to_buf();
                self.state().waiting.insert(name, incoming);
            }
            Outcome::Errand(errand) => {
                self.state().waiting.insert(errand.interest.clone(), incoming);
                tokio::spawn(async move {
                    let said = self.run_errand(&errand).await;
                    let reply = self.finish(&errand, said);
                    let latest = self.state().waiting.remove(&errand.interest);
                    if let Some(latest) = latest {
                        send(latest, reply).await;
                    }
                });
            }
        }
    }

    /// The answer to `/<prefix>/CA/INFO/32=metadata`.
    fn metadata_for(&self, incoming: &IncomingInterest) -> Option<Vec<u8>> {
        let info = service_name(self.prefix.as_name(), verbs::INFO);
        let interest = incoming.interest();
        if !interest.can_be_prefix() || interest.name() != metadata_name(&info).as_name() {
            return None;
        }
        let versioned = self.state().authority.profile().0.clone();
        metadata(&info, &versioned, &self.signer).ok()
    }

    /// Who sent an Interest over this face: its host, so that one host with many connections is one asker; or the face
    /// itself, for an application of this machine.
    async fn asker(&self, client: &Client, face: Option<FaceId>) -> u64 {
        let Some(face) = face else { return 0 };
        if let Some(asker) = self.state().askers.get(&face) {
            return *asker;
        }
        // A host that opens faces without end does not make the authority read lists without end.
        if self.state().listed.replace(Instant::now()).is_some_and(|at| at.elapsed() < LIST_PAUSE) {
            return face.0;
        }
        let faces: Vec<FaceStatus> = client.list().await.unwrap_or_default();
        let mut state = self.state();
        state.askers = faces.iter().map(|face| (face.face_id, number_of(face))).collect();
        // A face that has just closed, or a forwarder that does not say.
        *state.askers.entry(face).or_insert(face.0)
    }

    fn handle(&self, incoming: &IncomingInterest, asker: u64) -> Outcome {
        let now_ms = (self.clock)();
        let mut state = self.state();
        // An answer that was made before must not leave before what it tells is on the disk.
        if let Err(error) = state.keep(&self.on_change) {
            tracing::error!(target: "certification", "{error}");
            return Outcome::Reply(Reply::Nothing);
        }
        let State { authority, store, .. } = &mut *state;
        if let Err(error) = store.read_operator(authority) {
            tracing::error!(target: "certification", "{error}");
        }
        let outcome = authority.handle(&incoming.interest(), asker, now_ms);
        match state.keep(&self.on_change) {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(target: "certification", "{error}");
                Outcome::Reply(Reply::Nothing)
            }
        }
    }

    async fn run_errand(&self, errand: &Errand) -> crate::authority::CommandSaid {
        let command = match &errand.task {
            Task::Mail { .. } => self.commands.mail.as_ref(),
            Task::Judge { challenge, .. } => self.commands.judges.get(challenge),
        };
        match command {
            Some(command) => operator_command::run(command, errand, &self.prefix.to_string()).await,
            None => crate::authority::CommandSaid::No("the authority has no command for this".to_owned()),
        }
    }

    fn finish(&self, errand: &Errand, said: crate::authority::CommandSaid) -> Reply {
        let now_ms = (self.clock)();
        let mut state = self.state();
        let reply = state.authority.finish(errand, said, now_ms);
        match state.keep(&self.on_change) {
            Ok(()) => reply,
            Err(error) => {
                tracing::error!(target: "certification", "{error}");
                Reply::Nothing
            }
        }
    }

    async fn answer_with_certificate(&self, incoming: IncomingInterest) {
        let wire = {
            let interest = incoming.interest();
            let name = namewire_ndncert::requester::without_digest(interest.name());
            let state = self.state();
            let own = state.authority.certificate();
            let found = if name.is_prefix_of(&own.name()) {
                Some(own.wire().to_vec())
            } else if let Some(record) = state.authority.revoked().iter().find(|one| name.is_prefix_of(&one.name())) {
                Some(record.wire().to_vec())
            } else {
                state.store.certificate(name).ok().flatten()
            };
            found.filter(|wire| Data::parse(wire).is_ok_and(|data| interest.matches(&data)))
        };
        if let Some(wire) = wire {
            let _ = incoming.respond(&wire).await; // or the consumer is gone
        }
    }
}

/// A number for the host behind a face.
fn number_of(face: &FaceStatus) -> u64 {
    let ip = face.uri.parse().ok().and_then(|uri: FaceUri| uri.ip());
    let Some(host) = ip.map(|ip| Holder::of_address(ip, false)) else { return face.face_id.0 };
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    hasher.finish()
}

async fn send(incoming: IncomingInterest, reply: Reply) {
    // An answer that cannot be sent is asked for again.
    let _ = match reply {
        Reply::Data(wire) => incoming.respond(&wire).await,
        Reply::Busy => incoming.nack(NackReason::Congestion).await,
        Reply::Nothing => return,
    };
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
