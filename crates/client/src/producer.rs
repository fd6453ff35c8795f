//! The producer side: Interests from the forwarder, and their answers.
//!
//! [`Client::serve`] registers a prefix and calls a closure for each Interest. [`Client::interests`] gives them as a
//! stream instead. Both register the prefix again when the forwarder comes back.
//!
//! A busy producer takes all waiting Interests with [`InterestStream::next_batch`] and sends all answers with
//! [`Client::send_replies`]: one lock and one wake-up for the batch.
//!
//! One stream may have several routes ([`InterestStream::routes`]): longer prefixes that must lead here although other
//! producers have the shorter one, too.
//!
//! Limits: at most [`InterestOptions::queue_max`] wait in each stream; more are dropped and counted, or get a Nack.
//! [`Client::serve`] works on [`SERVED_AT_ONCE_MAX`] Interests at the same time.

use crate::{
    client::Client,
    close_reason::CloseReason,
    connection::Backoff,
    face::{Face, PrefixInUse},
    incoming_interest::{IncomingInterest, ReplyBatch, RespondError, Responder},
    management::{ControlError, RouteOptions},
};
use namewire_packet::{Data, MAX_PACKET_BYTES, NackReason, NameBuf};
use std::{
    future::Future,
    panic::resume_unwind,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{sync::mpsc, task::JoinSet};

/// Interests that may wait in one stream by default.
pub const INCOMING_INTERESTS_MAX: usize = 4096;

/// Interests that the closure of [`Client::serve`] works on at the same time.
pub const SERVED_AT_ONCE_MAX: usize = 256;

/// Why a prefix is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// This client serves it already.
    #[error(transparent)]
    PrefixInUse(#[from] PrefixInUse),
    /// The forwarder gives no route.
    #[error("the prefix is not registered: {0}")]
    NotRegistered(#[from] ControlError),
    /// The handler returned what cannot be sent.
    #[error("the handler's answer: {0}")]
    BadAnswer(RespondError),
    /// The connection has ended and cannot be opened again.
    #[error("connection lost: {0}")]
    Closed(CloseReason),
}

/// What an Interest gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This Data, as bytes.
    Data(Vec<u8>),
    /// A Nack.
    Nack(NackReason),
    /// Nothing: the Interest times out.
    Nothing,
}

impl From<Vec<u8>> for Answer {
    fn from(data_wire: Vec<u8>) -> Self {
        Answer::Data(data_wire)
    }
}

impl From<Option<Vec<u8>>> for Answer {
    fn from(data_wire: Option<Vec<u8>>) -> Self {
        data_wire.map_or(Answer::Nothing, Answer::Data)
    }
}

impl From<NackReason> for Answer {
    fn from(reason: NackReason) -> Self {
        Answer::Nack(reason)
    }
}

/// How Interests under a prefix are taken.
#[derive(Clone, Copy, Debug)]
pub struct InterestOptions {
    /// Interests that may wait.
    pub queue_max: usize,
    /// What further Interests get; `None`: nothing.
    pub nack_when_full: Option<NackReason>,
    /// The route that brings them. `None`: nothing is registered, because another route leads here, and the stream ends
    /// with the connection.
    pub route: Option<RouteOptions>,
}

impl Default for InterestOptions {
    fn default() -> Self {
        InterestOptions {
            queue_max: INCOMING_INTERESTS_MAX,
            nack_when_full: None,
            route: Some(RouteOptions::default()),
        }
    }
}

/// The Interests under one prefix. Dropping it stops serving the prefix; the route stays until the client is dropped.
pub struct InterestStream {
    prefix: NameBuf,
    options: InterestOptions,
    /// `None` while the connection is lost.
    receiver: Option<mpsc::Receiver<IncomingInterest>>,
    backoff: Backoff,
    routes: InterestRoutes,
}

/// The routes of one [`InterestStream`], each with its prefix; also while another task waits for Interests.
#[derive(Clone)]
pub struct InterestRoutes {
    client: Client,
    /// Those to register after a loss of the connection.
    wanted: Arc<Mutex<Vec<(NameBuf, RouteOptions)>>>,
}

impl InterestRoutes {
    fn change(&self, prefix: &NameBuf, route: Option<RouteOptions>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        match (wanted.iter().position(|(other, _)| other == prefix), route) {
            (Some(at), Some(route)) => wanted[at].1 = route,
            (Some(at), None) => drop(wanted.remove(at)),
            (None, Some(route)) => wanted.push((prefix.clone(), route)),
            (None, None) => {}
        }
    }

    fn wanted(&self) -> Vec<(NameBuf, RouteOptions)> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a route for `prefix`, or changes the one that is there. The prefix is that of the stream or a longer one:
    /// the Interests of others reach no stream. While the connection is lost, the route comes with the next one.
    ///
    /// # Errors
    /// If the forwarder refuses the route, or does not answer; the stream keeps the routes that it had.
    pub async fn set(&self, prefix: &NameBuf, route: RouteOptions) -> Result<(), ControlError> {
        match self.client.register_prefix_with(prefix, route).await {
            Err(error) if self.client.close_reason().is_none() => Err(error),
            _ => {
                self.change(prefix, Some(route));
                Ok(())
            }
        }
    }

    /// Removes the route of `prefix`.
    ///
    /// # Errors
    /// If the forwarder does not answer; the route is not registered again in any case.
    pub async fn remove(&self, prefix: &NameBuf) -> Result<(), ControlError> {
        self.change(prefix, None);
        match self.client.unregister_prefix(prefix).await {
            Err(error) if self.client.close_reason().is_none() => Err(error),
            _ => Ok(()),
        }
    }
}

impl InterestStream {
    /// Answers each Interest with what `handler` returns, as [`Client::serve`]. The route is there already.
    ///
    /// # Errors
    /// If the handler returns bytes that are no Data; or if the connection is lost and cannot be opened again.
    pub async fn serve<Handler, Answering>(mut self, mut handler: Handler) -> Result<(), ServeError>
    where
        Handler: FnMut(IncomingInterest) -> Answering,
        Answering: Future<Output: Into<Answer>> + Send + 'static,
    {
        let mut answering = JoinSet::new();
        loop {
            let has_room = answering.len() < SERVED_AT_ONCE_MAX;
            tokio::select! {
                interest = self.next(), if has_room => {
                    let Some(interest) = interest else { break };
                    let (responder, answer) = (interest.responder(), handler(interest));
                    answering.spawn(async move { respond(responder, answer.await.into()).await });
                }
                Some(ended) = answering.join_next() => match ended {
                    // Another connection has no use for answers to the Interests of this one.
                    Ok(Ok(()) | Err(RespondError::Closed(_))) => {}
                    Ok(Err(mistake)) => return Err(ServeError::BadAnswer(mistake)),
                    Err(ended) => resume_unwind(ended.into_panic()),
                },
            }
        }
        Err(ServeError::Closed(self.client().close_reason().unwrap_or(CloseReason::Local)))
    }

    /// The next Interest; `None` when the connection is lost and cannot be opened again. Dropping the future loses no
    /// Interest.
    pub async fn next(&mut self) -> Option<IncomingInterest> {
        loop {
            if let Some(receiver) = &mut self.receiver
                && let Some(interest) = receiver.recv().await
            {
                return Some(interest);
            }
            self.restore().await?;
        }
    }

    /// Waits for an Interest, and appends it and those that wait behind it to `batch`, at most `max`. Returns how many;
    /// 0 when [`InterestStream::next`] returns `None`.
    pub async fn next_batch(&mut self, batch: &mut Vec<IncomingInterest>, max: usize) -> usize {
        loop {
            if let Some(receiver) = &mut self.receiver {
                let received = receiver.recv_many(batch, max).await;
                if received > 0 {
                    return received;
                }
            }
            if self.restore().await.is_none() {
                return 0;
            }
        }
    }

    /// Connects and registers again, however long that takes; `None` if that is not wanted, or cannot be.
    async fn restore(&mut self) -> Option<()> {
        self.receiver = None;
        self.options.route?;
        let client = self.client().clone();
        loop {
            client.come_back(&mut self.backoff).await.ok()?;
            match client.registered_stream(&self.prefix, &self.options, &self.routes.wanted()).await {
                Ok(receiver) => {
                    client.is_back(&mut self.backoff);
                    self.receiver = Some(receiver);
                    return Some(());
                }
                Err(error) => client.is_still_lost(&mut self.backoff, &error),
            }
        }
    }

    /// The prefix served.
    pub fn prefix(&self) -> &NameBuf {
        &self.prefix
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.routes.client
    }

    /// Its routes, to add others or to change them. Cost: two reference counts.
    pub fn routes(&self) -> InterestRoutes {
        self.routes.clone()
    }
}

impl Drop for InterestStream {
    fn drop(&mut self) {
        self.client().face().remove_producer(&self.prefix);
    }
}

impl Client {
    /// Registers `prefix`, and answers each Interest under it with what `handler` returns: Data as bytes, a
    /// [`NackReason`], or nothing (`None`). It runs until the caller drops the future, and survives a restart of the
    /// forwarder. A program that must know when the route is there calls [`Client::interests`], which returns then, and
    /// [`InterestStream::serve`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use namewire_client::{Client, DataBuilder, IncomingInterest};
    ///
    /// let client = Client::connect().await?;
    /// let prefix = "/example".parse()?;
    /// let hello = async |interest: IncomingInterest| {
    ///     DataBuilder::new(interest.interest().name()).freshness_ms(1000).content(b"hello").sign_digest()
    /// };
    /// client.serve(&prefix, hello).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If this client serves the prefix already; if the forwarder refuses the route at the start; if the handler
    /// returns bytes that are no Data; or if the connection is lost and cannot be opened again.
    pub async fn serve<Handler, Answering>(&self, prefix: &NameBuf, handler: Handler) -> Result<(), ServeError>
    where
        Handler: FnMut(IncomingInterest) -> Answering,
        Answering: Future<Output: Into<Answer>> + Send + 'static,
    {
        self.interests(prefix).await?.serve(handler).await
    }

    /// Registers `prefix`, and opens the stream of Interests under it. An Interest goes to the longest prefix served.
    ///
    /// # Errors
    /// If this client serves the prefix already, or the forwarder refuses the route.
    pub async fn interests(&self, prefix: &NameBuf) -> Result<InterestStream, ServeError> {
        self.interests_with(prefix, InterestOptions::default()).await
    }

    /// As [`Client::interests`], with another queue or route.
    ///
    /// # Errors
    /// As [`Client::interests`].
    pub async fn interests_with(
        &self,
        prefix: &NameBuf,
        options: InterestOptions,
    ) -> Result<InterestStream, ServeError> {
        let wanted = Vec::from_iter(options.route.map(|route| (prefix.clone(), route)));
        let receiver = match options.route {
            Some(_) => self.registered_stream(prefix, &options, &wanted).await?,
            None => open_stream(&self.face(), prefix, &options)?,
        };
        let routes = InterestRoutes { client: self.clone(), wanted: Arc::new(Mutex::new(wanted)) };
        let (prefix, backoff) = (prefix.clone(), Backoff::default());
        Ok(InterestStream { prefix, options, receiver: Some(receiver), backoff, routes })
    }

    /// The stream is open before the routes lead to it.
    async fn registered_stream(
        &self,
        prefix: &NameBuf,
        options: &InterestOptions,
        routes: &[(NameBuf, RouteOptions)],
    ) -> Result<mpsc::Receiver<IncomingInterest>, ServeError> {
        let face = self.open_face().await.map_err(ServeError::Closed)?;
        let receiver = open_stream(&face, prefix, options)?;
        for (prefix, route) in routes {
            self.register_prefix_with(prefix, *route).await?;
        }
        Ok(receiver)
    }

    /// Sends all answers and empties the batch, waiting while the send queue is full. They must answer Interests of
    /// this client.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send_replies(&self, batch: &mut ReplyBatch) -> Result<(), RespondError> {
        let sent = self.face().send_frames(batch.bytes(), batch.ends()).await;
        batch.clear();
        Ok(sent?)
    }

    /// Sends a Data that no Interest asked for. A forwarder drops it, or stores it if its policy for unsolicited Data
    /// says so.
    ///
    /// # Errors
    /// If the bytes are no Data of at most 8800 bytes, or the connection is gone.
    pub async fn send_unsolicited(&self, data_wire: &[u8]) -> Result<(), RespondError> {
        if data_wire.len() > MAX_PACKET_BYTES {
            return Err(RespondError::TooLarge(data_wire.len()));
        }
        Data::parse(data_wire)?;
        Ok(self.face().send_frames(data_wire, &[data_wire.len()]).await?)
    }
}

fn open_stream(
    face: &Face,
    prefix: &NameBuf,
    options: &InterestOptions,
) -> Result<mpsc::Receiver<IncomingInterest>, PrefixInUse> {
    let (sender, receiver) = mpsc::channel(options.queue_max);
    face.add_producer(prefix, sender, options.nack_when_full)?;
    Ok(receiver)
}

async fn respond(responder: Responder, answer: Answer) -> Result<(), RespondError> {
    match answer {
        Answer::Data(wire) => responder.data(&wire).await,
        Answer::Nack(reason) => responder.nack(reason).await,
        Answer::Nothing => Ok(()),
    }
}
