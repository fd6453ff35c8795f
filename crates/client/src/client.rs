//! The connection of an application to its forwarder.
//!
//! [`Client`] is a cheap handle: clones share one connection, which closes when the last clone is dropped. Two
//! background tasks do the I/O, so a Tokio runtime must be running; a current-thread runtime is enough. If the
//! connection ends, the next Interest opens another one (file `connection.rs`).
//!
//! Limit: [`PENDING_INTERESTS_MAX`] Interests wait for an answer at once; further callers of [`Client::express`] wait
//! for room.

use crate::{
    close_reason::CloseReason,
    connection::{Backoff, Connection, ConnectionEvent, Link, list_tried, open_first},
    data_buf::DataBuf,
    discovery::{DiscoveryError, Environment, TransportChoice, TransportSource},
    express_error::ExpressError,
    face::{Face, FaceCounters},
    pending_interest::Completion,
    transport_uri::TransportUri,
};
use namewire_packet::{
    FaceId, Interest, InterestBuilder, MAX_PACKET_BYTES, Nonce,
    lp::{self, LinkFields, LpHeaders},
};
use namewire_security::Signer;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, oneshot},
    time::timeout,
};

/// Interests that may be pending on one client.
pub const PENDING_INTERESTS_MAX: usize = 8192;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The environment or client.conf is wrong.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// No candidate answered.
    #[error("no forwarder answers ({})", list_tried(tried))]
    NoForwarder {
        /// The place that named the candidates.
        source_of_choice: TransportSource,
        /// Each candidate and what went wrong.
        tried: Vec<(TransportUri, io::Error)>,
    },
}

/// A handle to a connection with a forwarder.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    pub(crate) command_signer: Signer,
    listener: Option<Listener>,
}

type Listener = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// A pending Interest. Dropping it forgets the Interest.
pub(crate) struct Outstanding {
    face: Arc<Face>,
    name_value: Box<[u8]>,
    id: u64,
    slot: Option<OwnedSemaphorePermit>,
}

impl Outstanding {
    /// Its slot, for another Interest that takes its place. It stays pending until it is dropped.
    pub(crate) fn take_slot(&mut self) -> Option<OwnedSemaphorePermit> {
        self.slot.take()
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.face.lock().pending.remove(&self.name_value, self.id);
    }
}

impl Client {
    /// Connects to the forwarder that the environment names, or to one in the usual places (see [`crate::discovery`]).
    ///
    /// # Errors
    /// If none answers; the error lists every place tried.
    pub async fn connect() -> Result<Self, ConnectError> {
        Self::connect_to_choice(Environment::of_process().choose_transport()?).await
    }

    /// Connects to the forwarder at `uri`.
    ///
    /// # Errors
    /// If it does not answer. A UDP "connection" always succeeds.
    pub async fn connect_to(uri: TransportUri) -> Result<Self, ConnectError> {
        Self::connect_to_choice(TransportChoice { source: TransportSource::Explicit, candidates: vec![uri] }).await
    }

    /// Connects to the first candidate that answers.
    ///
    /// # Errors
    /// If none answers; the error lists every place tried.
    pub async fn connect_to_choice(choice: TransportChoice) -> Result<Self, ConnectError> {
        match open_first(&choice.candidates).await {
            Ok(link) => Ok(Self::new(link, choice.candidates)),
            Err(tried) => Err(ConnectError::NoForwarder { source_of_choice: choice.source, tried }),
        }
    }

    /// Creates a client from a stream that is already open. `is_local` says whether the forwarder takes commands under
    /// `/localhost` from it.
    pub fn from_stream<S>(stream: S, is_local: bool) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        Self::new(Link::start(None, is_local, |face| face.run_stream(reader, writer)), Vec::new())
    }

    fn new(link: Link, candidates: Vec<TransportUri>) -> Self {
        let connection = Arc::new(Connection::new(link, candidates, PENDING_INTERESTS_MAX));
        Client { connection, command_signer: Signer::digest(), listener: None }
    }

    /// Signs the commands of this handle, and of clones made from it later, with `signer`. Without this call
    /// DigestSha256 signs them, which a forwarder accepts from local applications only.
    pub fn sign_commands_with(mut self, signer: Signer) -> Self {
        self.command_signer = signer;
        self
    }

    /// Calls `listener` when a stream of Interests or notifications of this handle, or of clones made from it later,
    /// loses its connection and when it is back.
    pub fn on_connection_event(mut self, listener: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// The address of the forwarder; `None` if the client was made from a stream.
    pub fn transport(&self) -> Option<TransportUri> {
        self.connection.link().transport.clone()
    }

    /// True if the forwarder regards this face as local: Unix sockets and TCP over loopback are, UDP never is (drop-in
    /// conventions, scope).
    pub fn is_local(&self) -> bool {
        self.connection.link().is_local
    }

    /// The counters of this connection.
    pub fn counters(&self) -> FaceCounters {
        self.face().counters()
    }

    /// Why the connection is closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.face().close_reason()
    }

    /// Number of Interests that wait for an answer.
    pub fn pending_interests(&self) -> usize {
        self.face().lock().pending.len()
    }

    /// Waits until every packet sent so far has been handed to the operating system.
    pub async fn flush(&self) {
        self.face().flush().await;
    }

    /// Opens another connection if the last one has ended, as each Interest does.
    ///
    /// # Errors
    /// Why the last one ended, if no forwarder answers now.
    pub async fn reopen(&self) -> Result<(), CloseReason> {
        self.open_face().await.map(drop)
    }

    /// The face of an open connection, of a new one if the last has ended.
    ///
    /// # Errors
    /// Why the last one ended, if no forwarder answers now.
    pub(crate) async fn open_face(&self) -> Result<Arc<Face>, CloseReason> {
        self.connection.open_face().await.map_err(|error| error.reason)
    }

    /// The face of the latest connection.
    pub(crate) fn face(&self) -> Arc<Face> {
        Arc::clone(&self.connection.link().face)
    }

    /// Waits until there is a connection again, with pauses between the attempts. The caller ends with
    /// [`Client::is_back`], or tells what failed with [`Client::is_still_lost`] and calls this again.
    ///
    /// # Errors
    /// Why the connection ended, if it cannot be opened again.
    pub(crate) async fn come_back(&self, backoff: &mut Backoff) -> Result<(), CloseReason> {
        let lost = self.close_reason().unwrap_or(CloseReason::Remote);
        if !self.connection.can_reopen() {
            return Err(lost);
        }
        if backoff.lost() {
            self.tell(ConnectionEvent::Lost(lost));
        }
        loop {
            backoff.pause().await;
            match self.connection.open_face().await {
                Ok(_) => return Ok(()),
                Err(error) => self.is_still_lost(backoff, &error),
            }
        }
    }

    /// The same for at most `limit`, for those who wait for answers.
    ///
    /// # Errors
    /// Why the connection ended, if there is no other by then.
    pub(crate) async fn come_back_within(&self, limit: Duration, backoff: &mut Backoff) -> Result<(), ExpressError> {
        let came_back = timeout(limit, self.come_back(backoff)).await;
        let lost = || self.close_reason().unwrap_or(CloseReason::Remote);
        came_back.unwrap_or_else(|_| Err(lost())).map_err(ExpressError::Closed)?;
        self.is_back(backoff);
        Ok(())
    }

    pub(crate) fn is_still_lost(&self, backoff: &mut Backoff, error: &dyn std::error::Error) {
        let reason = error.to_string();
        if backoff.failed(&reason) {
            self.tell(ConnectionEvent::StillLost(reason));
        }
    }

    pub(crate) fn is_back(&self, backoff: &mut Backoff) {
        backoff.restored();
        self.tell(ConnectionEvent::Restored);
    }

    fn tell(&self, event: ConnectionEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Sends an Interest with a fresh Nonce and waits for its Data.
    ///
    /// Any number of calls may run at the same time. Dropping the future forgets the Interest. It is not retransmitted.
    /// If the connection has ended, the call opens another one first.
    ///
    /// # Errors
    /// On a Nack, when the InterestLifetime is over, or when the connection is lost.
    pub async fn express(&self, interest: &InterestBuilder) -> Result<DataBuf, ExpressError> {
        self.express_wire(&interest.clone().nonce(fresh_nonce()).build()).await
    }

    /// Sends an Interest as it is, for example a signed one, and waits for its Data.
    ///
    /// # Errors
    /// As [`Client::express`]; and if the bytes are no Interest of at most 8800 bytes.
    pub async fn express_wire(&self, wire: &[u8]) -> Result<DataBuf, ExpressError> {
        self.express_framed(&[], wire).await
    }

    /// Sends an Interest with a fresh Nonce to this face of the forwarder, whatever its routes say (NextHopFaceId). The
    /// forwarder takes that from local applications that have called [`Client::use_local_fields`], and drops the
    /// Interest of others.
    ///
    /// # Errors
    /// As [`Client::express`].
    pub async fn express_by(&self, interest: &InterestBuilder, next_hop: FaceId) -> Result<DataBuf, ExpressError> {
        let wire = interest.clone().nonce(fresh_nonce()).build();
        let chosen = LpHeaders { next_hop_face_id: Some(next_hop), ..LpHeaders::default() };
        let mut headers = Vec::new();
        lp::write_headers(&mut headers, &chosen, &LinkFields::default(), wire.len());
        self.express_framed(&headers, &wire).await
    }

    /// Sends an Interest behind these link headers.
    pub(crate) async fn express_framed(&self, headers: &[u8], wire: &[u8]) -> Result<DataBuf, ExpressError> {
        let (sender, receiver) = oneshot::channel();
        let lifetime_ms = check(wire)?.lifetime_ms();
        let slot = self.slot().await;
        let outstanding = self.send_framed(headers, wire, Completion::Once(sender), slot).await?;
        let outcome = timeout(Duration::from_millis(lifetime_ms), receiver).await;
        drop(outstanding);
        match outcome {
            Ok(Ok(outcome)) => outcome,
            // The table of pending Interests owns the sender, and is cleared only when the connection ends.
            Ok(Err(_)) => Err(ExpressError::Closed(self.close_reason().unwrap_or(CloseReason::Local))),
            Err(_) => Err(ExpressError::Timeout(lifetime_ms)),
        }
    }

    /// Sends an Interest; its outcome, if any comes, goes to `completion`.
    pub(crate) async fn send_interest(
        &self,
        wire: &[u8],
        completion: Completion,
        slot: OwnedSemaphorePermit,
    ) -> Result<Outstanding, ExpressError> {
        self.send_framed(&[], wire, completion, slot).await
    }

    async fn send_framed(
        &self,
        headers: &[u8],
        wire: &[u8],
        completion: Completion,
        slot: OwnedSemaphorePermit,
    ) -> Result<Outstanding, ExpressError> {
        let interest = check(wire)?;
        // A forwarder may be so far away that connecting takes longer than the Interest may.
        let lifetime_ms = interest.lifetime_ms();
        let opened = timeout(Duration::from_millis(lifetime_ms), self.connection.open_face()).await;
        let opened = opened.map_err(|_| ExpressError::Timeout(lifetime_ms))?;
        let face = opened.map_err(|error| ExpressError::Closed(error.reason))?;
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(headers);
            out.extend_from_slice(wire);
        };
        let sent = face.send(write, |state| state.pending.insert(&interest, completion)).await;
        let id = sent.map_err(ExpressError::Closed)?;
        Ok(Outstanding { face, name_value: interest.name().value().into(), id, slot: Some(slot) })
    }

    /// Waits for room for one more pending Interest.
    pub(crate) async fn slot(&self) -> OwnedSemaphorePermit {
        let slots = Arc::clone(&self.connection.slots);
        slots.acquire_owned().await.expect("the semaphore is never closed")
    }

    /// The same without waiting: `None` if there is no room now.
    pub(crate) fn slot_now(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connection.slots).try_acquire_owned().ok()
    }
}

fn check(wire: &[u8]) -> Result<Interest<'_>, ExpressError> {
    if wire.len() > MAX_PACKET_BYTES {
        return Err(ExpressError::TooLarge(wire.len()));
    }
    Interest::parse(wire).map_err(ExpressError::Malformed)
}

/// A random nonce. It needs no secrecy, only to differ from those of other Interests.
pub(crate) fn fresh_nonce() -> Nonce {
    Nonce(fastrand::u32(..).to_be_bytes())
}
