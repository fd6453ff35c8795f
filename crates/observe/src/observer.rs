//! Observer: listeners, and the one thread that serves them.
//!
//! Contract: [`Observer::bind`] takes the addresses and starts no thread, so that a router can bind first, then give
//! up privileges, then start. [`Observer::serve`] starts the thread. Dropping the handle ends the thread and all
//! connections at once, and waits for it.

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use namewire_node_model::observer_address::ObservedPeer;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::connections::{self, Limits};
use crate::site::{Shown, Site};
use crate::source::Source;

/// Where to listen, and what to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObserveConfig {
    /// The addresses. Port 0 lets the system choose. `[::]` takes IPv4 too where the system says so.
    pub listen: Vec<SocketAddr>,
    /// Whether there is a page at `/` (and `/events`, which it needs).
    pub page: bool,
    /// Whether `/trace` is answered: it shows the names of packets to everyone who reaches the address.
    pub trace: bool,
    /// Other routers whose observers are read for `/network.json`, while a client asks for that. At most
    /// [`ROUTERS_MAX`](namewire_network::ROUTERS_MAX).
    pub peers: Vec<ObservedPeer>,
}

impl Default for ObserveConfig {
    /// No address, the page, no traces, no peers.
    fn default() -> Self {
        Self { listen: Vec::new(), page: true, trace: false, peers: Vec::new() }
    }
}

/// Listeners that nobody serves yet.
#[derive(Debug)]
pub struct Observer {
    listeners: Vec<std::net::TcpListener>,
    addresses: Vec<SocketAddr>,
    shown: Shown,
    limits: Limits,
}

/// A thread that serves. Dropping it ends the thread.
#[derive(Debug)]
pub struct ObserverHandle {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Takes the addresses. Starts no thread.
    ///
    /// # Errors
    ///
    /// An address that cannot be had, with its text in the message; or no descriptors for an event loop.
    pub fn bind(config: &ObserveConfig) -> io::Result<Self> {
        Self::bind_with(config, Limits::default())
    }

    /// The same, but `handed` may have a listener for an address already.
    ///
    /// # Errors
    ///
    /// Those of [`Observer::bind`].
    pub fn bind_or_take(
        config: &ObserveConfig,
        mut handed: impl FnMut(SocketAddr) -> Option<std::net::TcpListener>,
    ) -> io::Result<Self> {
        Self::listening(config, Limits::default(), |address| handed(address).map_or_else(|| listen(address), Ok))
    }

    /// Other descriptors of the listeners, with their addresses.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn duplicates(&self) -> io::Result<Vec<(SocketAddr, std::net::TcpListener)>> {
        let duplicates = self.listeners.iter().map(std::net::TcpListener::try_clone);
        self.addresses.iter().copied().zip(duplicates).map(|(address, listener)| Ok((address, listener?))).collect()
    }

    pub(crate) fn bind_with(config: &ObserveConfig, limits: Limits) -> io::Result<Self> {
        Self::listening(config, limits, listen)
    }

    fn listening(
        config: &ObserveConfig,
        limits: Limits,
        mut open: impl FnMut(SocketAddr) -> io::Result<std::net::TcpListener>,
    ) -> io::Result<Self> {
        let listeners = config.listen.iter().map(|&address| open(address)).collect::<io::Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<_>>()?;
        Ok(Self { listeners, addresses, shown: Shown::of(config), limits })
    }

    /// The addresses that it listens on, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, or no descriptors for its event loop.
    pub fn serve(self, source: impl Source) -> io::Result<ObserverHandle> {
        let (stop, stopped) = oneshot::channel();
        let addresses = self.addresses.clone();
        // The event loop belongs to the thread: the caller may have one of its own, in which another must not end.
        let (report, started) = std::sync::mpsc::sync_channel(1);
        let run = move || match Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => {
                let _ = report.send(Ok(()));
                self.run(&runtime, source, stopped);
                // A look-up of a peer's host name may still hang in a thread; nobody waits for it.
                runtime.shutdown_background();
            }
            Err(error) => drop(report.send(Err(error))),
        };
        let thread = thread::Builder::new().name("observe".into()).spawn(run)?;
        started.recv().map_err(io::Error::other)??;
        Ok(ObserverHandle { addresses, stop: Some(stop), thread: Some(thread) })
    }

    fn run(self, runtime: &Runtime, source: impl Source, stopped: oneshot::Receiver<()>) {
        let tasks = LocalSet::new();
        tasks.block_on(runtime, async {
            // A listener that the runtime cannot watch has no descriptor left; the others serve.
            let listeners = self.listeners.into_iter().filter_map(|listener| TcpListener::from_std(listener).ok());
            tokio::select! {
                _ = stopped => (),
                () = connections::serve(listeners.collect(), Site::new(source, &self.shown), self.limits) => (),
            }
        });
    }
}

impl ObserverHandle {
    /// The addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for ObserverHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let bound =
        std::net::TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address} for HTTP: {error}")))
}
