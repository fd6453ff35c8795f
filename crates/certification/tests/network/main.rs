//! Authority and requesters over a network in memory, on simulated time.

mod attacks;
mod wire;
mod year;

use namewire_certificates::request::{
    CaProfile, CaTrust, Challenge, RequestedKey, Terms, ca_profile, request_certificate,
};
use namewire_certification::{
    authority::{Authority, Change, Offer, Settings},
    service::{Commands, Service},
    store::Store,
};
use namewire_client::{
    Client, NameBuf,
    security::{
        Certificate, PrivateKey,
        key_chain::{KeyChain, KeyChainLocation},
    },
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) const DAY_MS: u64 = 24 * 3600 * 1000;
/// 2026-11-30.
const BEGIN_MS: u64 = 1_796_000_000_000;

/// The time of the simulation, in milliseconds since 1970.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(Instant::now())
    }

    pub(crate) fn now_ms(self) -> u64 {
        BEGIN_MS + self.0.elapsed().as_millis() as u64
    }
}

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

pub(crate) fn open(home: &Path) -> KeyChain {
    KeyChain::open_or_create(&KeyChainLocation::new(None, None, home).unwrap(), home).unwrap()
}

/// A key with a self-signed certificate.
pub(crate) fn add_key(chain: &KeyChain, identity: &str, clock: Clock) -> Certificate {
    let key = PrivateKey::generate_ecdsa().unwrap();
    chain.add_identity_key(name(identity).as_name(), key, clock.now_ms()).unwrap()
}

/// The key of this certificate, as a requester has it.
pub(crate) fn requested(chain: &KeyChain, own: &Certificate) -> RequestedKey {
    let signer = chain.lasting_signer(own.key_name()).unwrap();
    RequestedKey { name: own.key_name().to_buf(), spki: own.spki().to_vec(), signer }
}

/// The authority of `/site`, and what it told its operator.
pub(crate) struct Site {
    pub(crate) home: tempfile::TempDir,
    pub(crate) certificate: Certificate,
    pub(crate) told: Arc<Mutex<Vec<Change>>>,
    clock: Clock,
}

impl Site {
    pub(crate) fn new(clock: Clock) -> Self {
        let home = tempfile::tempdir().unwrap();
        let certificate = add_key(&open(home.path()), "/site", clock);
        Site { home, certificate, told: Arc::default(), clock }
    }

    pub(crate) fn state_file(&self) -> std::path::PathBuf {
        self.home.path().join("ca/site.db")
    }

    /// Serves over this client until the task is aborted, with the state of the run before.
    pub(crate) fn serve(&self, client: Client, proofs: Vec<Offer>) -> tokio::task::JoinHandle<()> {
        let settings = Settings {
            prefix: name("/site"),
            info: "the site".to_owned(),
            max_validity_ms: 30 * DAY_MS,
            max_suffix: 2,
            issuer_id: "NDNCERT".to_owned(),
            proofs,
        };
        let (clock, told) = (self.clock, Arc::clone(&self.told));
        let signer = open(self.home.path()).lasting_signer(name("/site").as_name()).unwrap();
        let authority = Authority::new(settings, self.certificate.clone(), signer.clone(), clock.now_ms()).unwrap();
        let store = Store::open(&self.state_file()).unwrap();
        let on_change = move |change: &Change| told.lock().unwrap().push(change.clone());
        let service = Service::new(authority, store, signer, Commands::default(), on_change).unwrap();
        let service = service.with_clock(move || clock.now_ms()).with_records_every(Duration::from_secs(3600));
        let service = Arc::new(service);
        tokio::spawn(async move { service.run(&client).await.unwrap() })
    }

    /// The code that the operator saw last.
    pub(crate) fn code(&self) -> String {
        let told = self.told.lock().unwrap();
        let code = |change: &Change| match change {
            Change::Code { code, .. } => Some(code.clone()),
            _ => None,
        };
        told.iter().rev().find_map(code).expect("a code was told")
    }

    pub(crate) async fn profile(&self, client: &Client) -> CaProfile {
        ca_profile(client, &name("/site"), CaTrust::Certificate(&self.certificate)).await.unwrap()
    }
}

/// Gets a certificate by the operator's code.
pub(crate) async fn request_by_pin(site: &Site, client: &Client, key: RequestedKey, clock: Clock) -> Certificate {
    let profile = site.profile(client).await;
    let terms = Terms { now_ms: clock.now_ms(), period_ms: None };
    let code = async |_, _| Ok(Some(site.code()));
    request_certificate(client, profile, key, &Challenge::Pin, terms, code).await.unwrap()
}
