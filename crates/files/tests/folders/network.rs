//! A router with real sockets, and folders that are served and fetched over it.

use namewire_client::{Client, Data, FetchOptions, IncomingInterest, NameBuf, Reply};
use namewire_configuration::Settings;
use namewire_files::{
    folder_fetch::{FolderError, FolderEvent, FolderFetch, FolderFetchOptions, FolderProgress},
    folder_server::{FolderCounters, FolderOptions, FolderServer},
    target::Target,
};
use namewire_router::{Router, RouterHandle};
use std::path::Path;
use tokio::task::JoinHandle;

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// A router that only this process can reach.
pub(crate) struct Network {
    router: RouterHandle,
    pub(crate) directory: tempfile::TempDir,
}

impl Network {
    pub(crate) fn start() -> Network {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::listening_nowhere();
        settings.router.workers = 1;
        (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(directory.path().join("nfd.sock")));
        Network { router: Router::start(&settings.into()).unwrap(), directory }
    }

    pub(crate) async fn client(&self) -> Client {
        let uri = format!("unix://{}", self.router.socket().unwrap().display());
        Client::connect_to(uri.parse().unwrap()).await.unwrap()
    }

    /// Serves the folder at `path` as `/folder`, and calls `before` for each Interest before it is answered. The task
    /// ends with the counters when `client` is dropped.
    pub(crate) async fn serve(
        &self,
        path: &Path,
        options: FolderOptions,
        mut before: impl FnMut(&IncomingInterest) + Send + 'static,
    ) -> Served {
        self.serve_with(path, options, move |incoming, server| {
            before(incoming);
            wire_of(server.answer(&incoming.interest()))
        })
        .await
    }

    /// As [`Network::serve`]; `change` makes other packets of those that the server answers with.
    pub(crate) async fn serve_changed(
        &self,
        path: &Path,
        options: FolderOptions,
        mut change: impl FnMut(NameBuf, Vec<u8>) -> Vec<u8> + Send + 'static,
    ) -> Served {
        self.serve_with(path, options, move |incoming, server| {
            let wire = wire_of(server.answer(&incoming.interest()))?;
            let name = Data::parse(&wire).unwrap().name().to_buf();
            Some(change(name, wire))
        })
        .await
    }

    async fn serve_with(
        &self,
        path: &Path,
        options: FolderOptions,
        mut answer: impl FnMut(&IncomingInterest, &mut FolderServer) -> Option<Vec<u8>> + Send + 'static,
    ) -> Served {
        let client = self.client().await;
        let mut server = FolderServer::open(path, &name("/folder"), options).unwrap();
        let mut interests = server.register(&client).await.unwrap();
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            loop {
                let incoming = tokio::select! {
                    incoming = interests.next() => incoming.unwrap(),
                    _ = &mut stopped => return server.counters(),
                };
                if let Some(wire) = answer(&incoming, &mut server) {
                    incoming.respond(&wire).await.unwrap();
                }
            }
        });
        Served { task, stop }
    }
}

fn wire_of(reply: Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Data(wire) | Reply::UncachedData(wire) => Some(wire.to_vec()),
        _ => None,
    }
}

pub(crate) struct Served {
    task: JoinHandle<FolderCounters>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Served {
    pub(crate) async fn stop(self) -> FolderCounters {
        self.stop.send(()).unwrap();
        self.task.await.unwrap()
    }
}

/// What a fetch ended with, and the entries that it refused, with the reasons, in their order.
pub(crate) struct Fetched {
    pub(crate) result: Result<FolderProgress, FolderError>,
    pub(crate) refused: Vec<(String, String)>,
}

impl Fetched {
    /// The progress of a fetch that refused nothing.
    pub(crate) fn whole(self) -> FolderProgress {
        assert!(self.refused.is_empty(), "{:?}", self.refused);
        self.result.unwrap()
    }
}

pub(crate) async fn fetch(client: &Client, uri: &str, place: &Path, options: FolderFetchOptions) -> Fetched {
    let target = Target::new(place);
    let mut refused = Vec::new();
    let fetch = FolderFetch { client, name: name(uri), target: &target, options };
    let result = fetch.run(|event| {
        if let FolderEvent::Refused { path, why } = event {
            refused.push((path.to_owned(), why.to_string()));
        }
    });
    let result = result.await;
    refused.sort();
    Fetched { result, refused }
}

pub(crate) fn preserving() -> FolderFetchOptions {
    FolderFetchOptions { is_preserving: true, ..FolderFetchOptions::default() }
}

/// One segment in flight: what happens at one Interest comes before what happens at the next.
pub(crate) fn step_by_step() -> FolderFetchOptions {
    let fetch = FetchOptions { window_initial: 1, window_max: 1, ..FetchOptions::default() };
    FolderFetchOptions { fetch, jobs_max: 1, ..FolderFetchOptions::default() }
}
