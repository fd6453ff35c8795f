//! Staying in the networks of the list: what is done again and again, by the router's process.
//!
//! | how often | what |
//! | --- | --- |
//! | [`LOOK_EVERY`] | has the list changed? One look at the time of a file |
//! | [`REFRESH_EVERY`] | face and routes are there; the network's router has the prefix |
//! | [`RETRY_EVERY`] | the same while a step fails, so that a router that comes back has its host soon |
//! | when it is due | the host's certificate is renewed ([`CertificateKeeper`]) |
//!
//! The certificates of the networks' names are served meanwhile ([`CertificateServer`]): the network's routers fetch
//! them to judge the registration, and consumers to judge Data.
//!
//! What a network's state is can be asked for under [`STATUS_NAME`], from this machine only.

use super::{
    list::{Network, NetworkList},
    steps::{self, StepError},
};
use namewire_certificates::{
    CertificateEvent, CertificateKeeper, CertificateServer, KeyChainPart, Limits, ServerEvent, Sources,
};
use namewire_client::{
    Client, IncomingInterest, Validator,
    discovery::Environment,
    security::{
        key_chain::{KeyChain, KeyChainError, KeyChainLocation},
        trust::AnchorCertificate,
    },
};
use namewire_packet::{DataBuilder, NameBuf};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::{task::JoinHandle, time::sleep};

/// How often the list is looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often the prefix is registered again. The network's router keeps it for [`steps::REGISTERED_FOR`].
pub const REFRESH_EVERY: Duration = Duration::from_secs(60);
/// The same after a failure.
pub const RETRY_EVERY: Duration = Duration::from_secs(5);
/// The name under which the state of the networks is told.
pub const STATUS_NAME: &str = "/localhost/namewire/networks";
const STATUS_FRESHNESS_MS: u64 = 1;
/// Longest content of the state; with [`super::list::NETWORKS_MAX`] networks it is shorter.
const STATUS_BYTES_MAX: usize = 8000;
/// Most bytes of a name, a problem or a certificate's event.
const SHOWN_BYTES: usize = 100;
/// Until a certificate is looked after again, if the key chain could not be opened.
const CHAIN_RETRY: Duration = Duration::from_secs(60);

/// The state of one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkState {
    /// Its router.
    pub router: String,
    /// The host's name there.
    pub name: Option<String>,
    /// True if the last attempt succeeded.
    pub is_joined: bool,
    /// What went wrong at the last attempt.
    pub problem: Option<String>,
    /// What was said about the certificate last: a renewal, or a warning.
    pub certificate: Option<String>,
}

/// What the keeper tells about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The list that it reads.
    pub list: PathBuf,
    /// What is wrong with the list.
    pub problem: Option<String>,
    /// The networks in it.
    pub networks: Vec<NetworkState>,
}

impl Kept {
    /// True if a network with this router is among them.
    pub fn has(&self, router: &str) -> bool {
        self.networks.iter().any(|network| network.router == router)
    }
}

/// The key chain of this process, and the list beside it.
///
/// # Errors
/// If no key chain can be used.
pub fn of_process() -> Result<(NetworkList, KeyChainLocation, PathBuf), String> {
    let (location, home) = Environment::of_process().key_chain_location().map_err(|error| error.to_string())?;
    Ok((NetworkList::beside(&location.pib_directory), location, home))
}

/// Where keys are.
#[derive(Clone)]
struct Keys {
    location: KeyChainLocation,
    home: PathBuf,
}

impl Keys {
    fn open(&self) -> Result<KeyChain, KeyChainError> {
        KeyChain::open_or_create(&self.location, &self.home)
    }
}

type States = Arc<Mutex<BTreeMap<String, NetworkState>>>;

/// What a router's process keeps: the networks of its socket, with the keys of its user.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The router's Unix socket.
    pub socket: PathBuf,
    /// The list of networks.
    pub list: NetworkList,
    /// Where keys are.
    pub location: KeyChainLocation,
    /// `$HOME`, for a key chain whose locator names no directory.
    pub home: PathBuf,
}

/// Keeps the router in the networks of the list, until it is dropped or the connection ends.
pub async fn keep_all(client: Client, keeper: Keeper) {
    let Keeper { socket, list, location, home } = keeper;
    // Commands to the networks' routers choose the face by which they go.
    if let Err(error) = client.use_local_fields().await {
        tracing::error!(target: "trust", "no network is kept: {error}");
        return;
    }
    let keys = Keys { location, home };
    let server = CertificateServer::new(Sources::default(), Limits::default());
    let states = States::default();
    let list_problem = Arc::new(Mutex::new(None));
    tokio::select! {
        () = serve_certificates(&server, &client) => {}
        () = tell_states(&client, list.path(), &states, &list_problem) => {}
        () = follow(&client, (&list, &socket), &keys, &server, (&states, &list_problem)) => {}
    }
}

async fn serve_certificates(server: &CertificateServer, client: &Client) {
    let told = |event| match event {
        ServerEvent::NotRegistered { key, why } => {
            tracing::warn!(target: "trust", "the certificates of {key} are not served: {why}");
        }
        ServerEvent::Problem(problem) => tracing::warn!(target: "trust", "{problem}"),
        _ => {}
    };
    if let Err(error) = server.run(client, told).await {
        tracing::error!(target: "trust", "the certificates of networks are not served: {error}");
    }
}

/// Answers who asks for the state. What fails here must not end the work for the networks.
async fn tell_states(client: &Client, list: &Path, states: &States, problem: &Mutex<Option<String>>) {
    let name: NameBuf = STATUS_NAME.parse().expect("a name in the source is well-formed");
    loop {
        let answer = |incoming: IncomingInterest| {
            let networks = lock(states).values().cloned().collect();
            let kept = Kept { list: list.to_owned(), problem: lock(problem).clone(), networks };
            let content = serde_json::to_vec(&kept).unwrap_or_default();
            let wire = (content.len() <= STATUS_BYTES_MAX).then(|| {
                let packet = DataBuilder::new(incoming.interest().name()).freshness_ms(STATUS_FRESHNESS_MS);
                packet.content(&content).sign_digest()
            });
            async move { wire }
        };
        if let Err(error) = client.serve(&name, answer).await {
            tracing::warn!(target: "trust", "the state of networks is not told: {error}");
        }
        sleep(RETRY_EVERY).await;
    }
}

/// What others say, as it may be kept and shown: short, and nothing that controls a terminal.
fn shown(text: &str) -> String {
    // JSON writes quotes and backslashes with one character more.
    let plain = |c: char| if c.is_control() || matches!(c, '"' | '\\') { ' ' } else { c };
    let mut shown: String = text.chars().map(plain).take(SHOWN_BYTES).collect();
    shown.truncate(shown.floor_char_boundary(SHOWN_BYTES));
    shown
}

/// Starts and ends the work for each network as the list says.
async fn follow(
    client: &Client,
    (list, socket): (&NetworkList, &Path),
    keys: &Keys,
    server: &CertificateServer,
    (states, problem): (&States, &Mutex<Option<String>>),
) {
    let mut running: Vec<(Network, Work)> = Vec::new();
    let mut seen = None;
    loop {
        let stamp = stamp_of(list.path());
        if seen.as_ref() != Some(&stamp) {
            seen = Some(stamp);
            match list.kept_by(socket) {
                Ok(networks) => {
                    *lock(problem) = None;
                    running.retain(|(network, _)| networks.contains(network));
                    lock(states).retain(|router, _| networks.iter().any(|network| network.router == *router));
                    let names: Vec<NameBuf> = networks.iter().filter_map(|network| network.name.clone()).collect();
                    let pib_directory = keys.location.pib_directory.clone();
                    let key_chain = (!names.is_empty()).then_some(KeyChainPart { pib_directory, names: Some(names) });
                    server.set_sources(Sources { key_chain, ..Sources::default() });
                    for network in networks {
                        if !running.iter().any(|(other, _)| *other == network) {
                            let work = Work::start(client.clone(), network.clone(), keys.clone(), Arc::clone(states));
                            running.push((network, work));
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(target: "trust", "{error}");
                    *lock(problem) = Some(shown(&error.to_string()));
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

fn stamp_of(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The tasks for one network; dropping it ends them.
struct Work([JoinHandle<()>; 2]);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Work {
    fn start(client: Client, network: Network, keys: Keys, states: States) -> Self {
        let state = NetworkState {
            router: network.router.clone(),
            name: network.name.as_ref().map(|name| shown(&name.to_string())),
            is_joined: false,
            problem: None,
            certificate: None,
        };
        lock(&states).insert(network.router.clone(), state);
        Work([
            tokio::spawn(stay(client.clone(), network.clone(), keys.clone(), Arc::clone(&states))),
            tokio::spawn(keep_certificate(client, network, keys, states)),
        ])
    }
}

/// Face, routes and registration, again and again.
async fn stay(client: Client, network: Network, keys: Keys, states: States) {
    let mut before: Option<String> = None;
    loop {
        let done = once(&client, &network, &keys).await;
        let problem = done.as_ref().err().map(|problem| shown(problem));
        if problem != before {
            match &problem {
                Some(problem) => tracing::warn!(target: "trust", "network of {}: {problem}", network.router),
                None => tracing::info!(target: "trust", "network of {}: joined", network.router),
            }
        }
        if let Some(state) = lock(&states).get_mut(&network.router) {
            (state.is_joined, state.problem) = (problem.is_none(), problem.clone());
        }
        before = problem;
        sleep(if done.is_ok() { REFRESH_EVERY } else { RETRY_EVERY }).await;
    }
}

/// One attempt; in words what fails.
async fn once(client: &Client, network: &Network, keys: &Keys) -> Result<(), String> {
    let words = |error: StepError| error.to_string();
    let (face_id, _) = steps::face(client, &network.router).await.map_err(words)?;
    steps::routes(client, network, face_id).await.map_err(words)?;
    let Some(name) = &network.name else { return Ok(()) };
    // Certificate and key may have been replaced meanwhile.
    let signer = keys.open().and_then(|chain| chain.signer(name.as_name())).map_err(|error| error.to_string())?;
    let signing = client.clone().sign_commands_with(signer);
    steps::register(&signing, network, name, face_id).await.map_err(words)
}

/// Renews the certificate of the host's name.
async fn keep_certificate(client: Client, network: Network, keys: Keys, states: States) {
    let Some(name) = network.name else { return };
    let router = network.router;
    loop {
        let opened = keys.open().and_then(|chain| Ok((chain.key_of(name.as_name())?.name, chain)));
        match opened {
            Ok((key_name, chain)) => {
                if let Ok(present) = chain.parsed_certificate_of(key_name.as_name())
                    && let Some(state) = lock(&states).get_mut(&router)
                {
                    let [_, end] = present.validity().iso_times();
                    state.certificate = Some(format!("until {end}"));
                }
                let mut keeper = CertificateKeeper::new(chain, key_name).over(client.clone());
                if let Some(anchor) = network.anchor.as_ref().and_then(|text| anchor_of(text)) {
                    keeper = keeper.trusting(Validator::hierarchical([anchor]));
                }
                keeper
                    .run(|event| {
                        match &event {
                            CertificateEvent::Renewed(_) => tracing::info!(target: "trust", "certificate {event}"),
                            warning => tracing::warn!(target: "trust", "{warning}"),
                        }
                        if let Some(state) = lock(&states).get_mut(&router) {
                            state.certificate = Some(shown(&event.to_string()));
                        }
                    })
                    .await;
            }
            Err(error) => tracing::warn!(target: "trust", "the certificate of {name} is not renewed: {error}"),
        }
        sleep(CHAIN_RETRY).await;
    }
}

fn anchor_of(base64: &str) -> Option<AnchorCertificate> {
    AnchorCertificate::parse(base64.as_bytes().to_vec()).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::list::NETWORKS_MAX;

    /// A network's router may answer anything; its text once ended the keeping of all networks.
    #[test]
    fn what_others_say_is_cut_so_that_the_state_fits_a_packet() {
        assert_eq!(shown("403 \u{1b}[2J\r\n\"no\""), "403  [2J   no ");
        for text in ["\u{1}".repeat(5000), "\\".repeat(5000), "é".repeat(5000), "🦀".repeat(5000)] {
            let said = shown(&text);
            assert!(said.len() <= SHOWN_BYTES && !said.chars().any(char::is_control), "{said}");
            let network = NetworkState {
                router: "udp6://[2001:db8:1111:2222:3333:4444:5555:6666]:16363".to_owned(),
                name: Some(said.clone()),
                is_joined: false,
                problem: Some(said.clone()),
                certificate: Some(said.clone()),
            };
            let list = "/home/somebody/.ndn/namewire-networks.toml".into();
            let kept = Kept { list, problem: Some(said), networks: vec![network; NETWORKS_MAX] };
            let bytes = serde_json::to_vec(&kept).unwrap().len();
            assert!(bytes <= STATUS_BYTES_MAX, "{bytes}");
        }
    }
}
