//! A router with real sockets, clients of it, and repositories on it.

use namewire_client::{Client, DataBuf, ExpressError, PublishOptions, SegmentPublisher};
use namewire_configuration::Settings;
use namewire_packet::{DataBuilder, InterestBuilder, NameBuf};
use namewire_repo::{
    RemoteRepo, Repo, RepoSettings,
    store::{Store, memory::MemoryStore},
};
use namewire_router::{Router, RouterHandle};
use std::sync::Arc;

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// A router that only this process can reach. Its Content Store is off, so every answer is the repository's.
pub(crate) struct Network {
    pub(crate) router: RouterHandle,
    pub(crate) directory: tempfile::TempDir,
}

impl Network {
    pub(crate) fn start() -> Network {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::listening_nowhere();
        settings.router.workers = 1;
        (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(directory.path().join("nfd.sock")));
        settings.cs.serve = false;
        Network { router: Router::start(&settings.into()).unwrap(), directory }
    }

    pub(crate) async fn client(&self) -> Client {
        let uri = format!("unix://{}", self.router.socket().unwrap().display());
        Client::connect_to(uri.parse().unwrap()).await.unwrap()
    }

    pub(crate) async fn repo(&self, settings: RepoSettings, store: Arc<dyn Store>) -> Repo {
        Repo::start(settings, self.client().await, store).await.unwrap()
    }

    /// A client of the repository `/repo`.
    pub(crate) async fn remote(&self) -> RemoteRepo {
        RemoteRepo::new(self.client().await, name("/repo"))
    }
}

/// `/repo`, which serves `/data`.
pub(crate) fn settings() -> RepoSettings {
    RepoSettings { prefixes: vec![name("/data")], ..RepoSettings::new(name("/repo")) }
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(256 << 20))
}

pub(crate) fn bytes(count: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(count as u64);
    (0..count).map(|_| dice.u8(..)).collect()
}

/// An object as repositories' clients publish it.
pub(crate) fn object(uri: &str, content: &[u8]) -> SegmentPublisher {
    let options = PublishOptions { is_versioned: false, segment_bytes: 1000, ..PublishOptions::default() };
    SegmentPublisher::of_bytes(content, &name(uri), options).unwrap()
}

pub(crate) async fn ask(client: &Client, uri: &str) -> Result<DataBuf, ExpressError> {
    client.express(&InterestBuilder::new(name(uri)).lifetime_ms(500)).await
}

/// A producer of single packets under `prefix`: every Interest gets Data of its name.
pub(crate) async fn produce(client: &Client, prefix: &NameBuf) {
    let mut interests = client.interests(prefix).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = interests.next().await {
            let data = DataBuilder::new(incoming.interest().name()).content(b"packet").sign_digest();
            incoming.respond(&data).await.unwrap();
        }
    });
}
