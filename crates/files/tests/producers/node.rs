//! A router that only this process can reach, and that tests can restart.

use namewire_client::Client;
use namewire_configuration::Settings;
use namewire_router::{Router, RouterHandle};
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) struct Node {
    router: Option<RouterHandle>,
    pub(crate) folder: TempDir,
}

impl Node {
    pub(crate) fn start() -> Self {
        let mut node = Node { router: None, folder: tempfile::tempdir().unwrap() };
        node.start_router();
        node
    }

    fn start_router(&mut self) {
        let mut settings = Settings::listening_nowhere();
        (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(self.socket()));
        self.router = Some(Router::start(&settings.into()).unwrap());
    }

    pub(crate) fn restart_router(&mut self) {
        self.router.take().unwrap().stop();
        self.start_router();
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("nfd.sock")
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect_to(format!("unix://{}", self.socket().display()).parse().unwrap()).await.unwrap()
    }
}
