//! Services inside the router's process: applications that use the router as others do. They share one thread, one
//! runtime and one connection, so that what they do delays neither the router nor the commands.
//!
//! | setting | service |
//! | --- | --- |
//! | `router.serve_certificates` | certificates are served ([`CertificateServer`]) |
//!
//! A further service is a task in [`spawn_all`], and a condition in [`is_wanted`]. It gets a clone of the client. The
//! certificate server has the prefix `/` of this client: it takes what no other service takes. A service that gets
//! certificates gives them to [`CertificateServer::add`].
//!
//! The services start when the router has started, follow the settings at each reload, and end before the router. An
//! upgrade needs nothing from them: the new program starts its own, and the connection of the old ones closes. The
//! repository is apart from them ([`namewire_tools::HostedRepo`]), because its store may keep a thread busy.

use namewire_certificates::{CertificateServer, KeyChainPart, Limits, ServerEvent, Sources};
use namewire_client::{Client, discovery::Environment, security::trust::TrustAnchor};
use namewire_configuration::Configuration;
use namewire_router::RouterHandle;
use std::{
    io,
    os::unix::net::UnixStream,
    thread::{self, JoinHandle},
};
use tokio::{runtime, sync::oneshot, task::JoinSet};

/// The services of this process. Dropping it ends them.
pub(super) struct HostedServices {
    certificates: CertificateServer,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HostedServices {
    /// Starts, changes or ends the services as the configuration says. If they cannot start, the router goes on.
    pub(super) fn follow(services: &mut Option<Self>, configuration: &Configuration, router: &RouterHandle) {
        match services {
            _ if !is_wanted(configuration) => *services = None,
            Some(running) => running.certificates.set_sources(sources(configuration)),
            None => match router.connect().and_then(|stream| HostedServices::start(configuration, stream)) {
                Ok(started) => *services = Some(started),
                Err(error) => tracing::error!(target: "trust", "cannot serve certificates: {error}"),
            },
        }
    }

    fn start(configuration: &Configuration, stream: UnixStream) -> io::Result<Self> {
        let certificates = CertificateServer::new(sources(configuration), Limits::default());
        stream.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = certificates.clone();
        let work = move || {
            runtime.block_on(async {
                let Ok(stream) = tokio::net::UnixStream::from_std(stream) else { return };
                let mut tasks = spawn_all(Client::from_stream(stream, true), server);
                tokio::select! {
                    _ = stopped => {}
                    () = async { while tasks.join_next().await.is_some() {} } => {}
                }
            });
            runtime.shutdown_background(); // a disk may not answer
        };
        let thread = thread::Builder::new().name("nw-services".to_owned()).spawn(work)?;
        Ok(HostedServices { certificates, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HostedServices {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a thread that panicked has nothing left to do
        }
    }
}

/// True if there is a service to run.
fn is_wanted(configuration: &Configuration) -> bool {
    configuration.settings.router.serve_certificates
}

/// Starts all services, each as a task.
fn spawn_all(client: Client, certificates: CertificateServer) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        if let Err(error) = certificates.run(&client, log).await {
            tracing::error!(target: "trust", "certificates are not served any more: {error}");
        }
    });
    tasks
}

/// The certificates that this configuration wants served.
fn sources(configuration: &Configuration) -> Sources {
    let mut sources = Sources::default();
    match Environment::of_process().key_chain_location() {
        Ok((location, _)) => {
            sources.key_chain = Some(KeyChainPart { pib_directory: location.pib_directory, names: None });
        }
        Err(error) => tracing::warn!(target: "trust", "no certificates of a key chain are served: {error}"),
    }
    for anchor in configuration.trust.anchors().chain(configuration.repo_trust.trust_anchors()) {
        match anchor {
            TrustAnchor::Certificate(certificate) => sources.given.push(certificate.certificate().clone()),
            TrustAnchor::File { path, .. } | TrustAnchor::Directory { path, .. } => sources.paths.push(path.clone()),
        }
    }
    sources.paths.sort();
    sources.paths.dedup();
    sources
}

fn log(event: ServerEvent) {
    match event {
        ServerEvent::Serving { key, certificates } => {
            tracing::debug!(target: "trust", %key, certificates, "serving the certificates of a key");
        }
        ServerEvent::Withdrawn { key } => tracing::debug!(target: "trust", %key, "its certificates are gone"),
        ServerEvent::NotRegistered { key, why } => {
            tracing::warn!(target: "trust", "the certificates of {key} are not served: {why}");
        }
        ServerEvent::Problem(problem) => tracing::warn!(target: "trust", "{problem}"),
        ServerEvent::Settled { certificates, keys } => {
            tracing::info!(target: "trust", certificates, keys, "certificates are served");
        }
        // This connection is within the process: it ends with the router, and no other is tried.
        ServerEvent::Lost(_) | ServerEvent::Restored => {}
    }
}
