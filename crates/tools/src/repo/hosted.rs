//! A repository inside the router's process: `namewire run --repo PATH`.
//!
//! It has a thread and a runtime of its own, so that neither its store nor the router's files hold the other up. Its
//! face is one end of a pair of sockets, whose other end the router has.

use super::{run::what_runs, settings};
use crate::{ExitCode, Failure};
use namewire_client::Client;
use namewire_configuration::Configuration;
use namewire_repo::{Repo, RepoSettings, store::Store};
use namewire_security::Signer;
use std::{
    io,
    os::unix::net::UnixStream,
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::{runtime, sync::oneshot};

/// A repository that runs. Dropping it does not stop it; [`HostedRepo::stop`] does.
pub struct HostedRepo {
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    /// What `namewire run` prints about the repository.
    pub line: String,
}

impl HostedRepo {
    /// Starts the repository of the configuration on this end of a face. When it returns, the repository can be used.
    ///
    /// # Errors
    /// In words, what could not be opened.
    pub async fn start(configuration: &Configuration, router: io::Result<UnixStream>) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot start the repository: {error}"));
        let settings = settings::repo_settings(configuration, Signer::digest())?;
        let stream = router.map_err(failed)?;
        let section = configuration.settings.repo.clone();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let serve = move || {
            // The store may take its time, so the router's signals are obeyed meanwhile.
            let store = settings::open(&section);
            runtime.block_on(async move {
                match start(settings, stream, store).await {
                    Ok((repo, line)) => {
                        let _ = ready.send(Ok(line)); // or the router ends already
                        run(repo, stopped).await;
                    }
                    Err(failure) => drop(ready.send(Err(failure))),
                }
            });
        };
        let thread = thread::Builder::new().name("repo".to_owned()).spawn(serve).map_err(failed)?;
        let ended = || Failure::new(ExitCode::Failed, "the repository did not start");
        let line = is_ready.await.map_err(|_| ended())??;
        Ok(HostedRepo { thread, stop, line })
    }

    /// Ends it: what was accepted is written.
    pub fn stop(self) {
        let _ = self.stop.send(()); // or it has ended
        let _ = self.thread.join(); // a thread that panicked has nothing left to do
    }
}

async fn start(
    settings: RepoSettings,
    stream: UnixStream,
    store: Result<Arc<dyn Store>, Failure>,
) -> Result<(Repo, String), Failure> {
    let store = store?;
    stream.set_nonblocking(true)?;
    let client = Client::from_stream(tokio::net::UnixStream::from_std(stream)?, true);
    let repo = Repo::start(settings.clone(), client, Arc::clone(&store)).await;
    let repo = repo.map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    for warning in repo.warnings() {
        tracing::warn!(target: "repo", "{warning}");
    }
    let line = what_runs(&repo, &settings, &*store);
    Ok((repo, line))
}

async fn run(mut repo: Repo, stopped: oneshot::Receiver<()>) {
    tokio::select! {
        () = repo.disconnected() => tracing::error!(target: "repo", "the repository has lost its face and ends"),
        _ = stopped => {}
    }
    repo.stop().await;
}
