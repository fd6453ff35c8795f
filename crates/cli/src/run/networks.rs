//! The networks that this host has joined, kept by the router's process (`router.keep_networks`).
//!
//! A thread looks for the list that `namewire join` writes. Only when there is one, the thread has a runtime and a
//! connection to the router; a host that has joined nothing has neither.

use namewire_certification::membership::keeper::{Keeper, LOOK_EVERY, keep_all, of_process};
use namewire_client::Client;
use namewire_configuration::Configuration;
use namewire_router::{Connector, RouterHandle};
use std::{
    fs, io,
    path::PathBuf,
    thread::{self, JoinHandle},
};
use tokio::{
    net::UnixStream,
    runtime,
    sync::oneshot::{self, Receiver, error::TryRecvError},
    time::sleep,
};

/// The thread. Dropping it ends it.
pub(super) struct KeptNetworks {
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KeptNetworks {
    /// Starts or ends the thread as the configuration says. If it cannot start, the router goes on.
    pub(super) fn follow(kept: &mut Option<Self>, configuration: &Configuration, router: &RouterHandle) {
        match kept {
            _ if !configuration.settings.router.keep_networks => *kept = None,
            Some(_) => {}
            None => {
                // Networks are joined over the socket; a router without one keeps none.
                let Some(socket) = router.socket() else { return };
                let socket = fs::canonicalize(socket).unwrap_or_else(|_| socket.clone());
                match KeptNetworks::start(router.connector(), socket) {
                    Ok(started) => *kept = Some(started),
                    Err(error) => tracing::error!(target: "trust", "no network is kept: {error}"),
                }
            }
        }
    }

    fn start(router: Connector, socket: PathBuf) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let work = move || {
            if let Err(error) = keep(&router, socket, stopped) {
                tracing::error!(target: "trust", "no network is kept: {error}");
            }
        };
        let thread = thread::Builder::new().name("nw-networks".to_owned()).spawn(work)?;
        Ok(KeptNetworks { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for KeptNetworks {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // a thread that panicked has nothing left to do
        }
    }
}

fn keep(router: &Connector, socket: PathBuf, mut stopped: Receiver<()>) -> io::Result<()> {
    // Without a home there is no key chain, and nobody can have joined a network.
    let Ok((list, location, home)) = of_process() else { return Ok(()) };
    while list.kept_by(&socket).is_ok_and(|networks| networks.is_empty()) {
        thread::park_timeout(LOOK_EVERY);
        if stopped.try_recv() != Err(TryRecvError::Empty) {
            return Ok(());
        }
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        loop {
            let stream = router.connect()?;
            stream.set_nonblocking(true)?;
            let client = Client::from_stream(UnixStream::from_std(stream)?, true);
            let keeper =
                Keeper { socket: socket.clone(), list: list.clone(), location: location.clone(), home: home.clone() };
            tokio::select! {
                _ = &mut stopped => return Ok(()),
                // It ends with its connection only; then there is another one.
                () = keep_all(client, keeper) => {}
            }
            tokio::select! {
                _ = &mut stopped => return Ok(()),
                () = sleep(LOOK_EVERY) => {}
            }
        }
    });
    runtime.shutdown_background(); // a disk may not answer
    outcome
}
