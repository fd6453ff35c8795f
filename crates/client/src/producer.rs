//! The producer side: Interests from the forwarder, and their answers.
//!
//! [`Client::serve`] registers a prefix and calls a closure for each Interest. [`Client::interests`] gives them as a
//! stream instead. Both register the prefix again when the forwarder comes back. An answer returns the PIT token of its
//! Interest unchanged (NDNLPv2 §3).
//!
//! A producer of many answers takes the Interests that wait with [`InterestStream::next_batch`] and sends the answers
//! with [`Client::send_replies`]: one lock and one wake-up for all.
//!
//! Limits: at most [`InterestOptions::queue_max`] wait in each stream; more are dropped and counted, or get a Nack.
//! [`Client::serve`] works on [`SERVED_AT_ONCE_MAX`] Interests at the same time.

use crate::{
    client::Client,
    connection::Backoff,
    face::{CloseReason, Face, PrefixInUse},
    management::{ControlError, RouteOptions},
};
use namewire_packet::{
    Data, FaceId, Interest, MAX_PACKET_BYTES, NackReason, NameBuf, PacketError,
    lp::{self, LinkFields, LpHeaders, PitToken},
};
use std::{fmt, future::Future, panic::resume_unwind, sync::Arc};
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

/// Why an answer was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RespondError {
    /// The connection has ended.
    #[error("connection lost: {0}")]
    Closed(#[from] CloseReason),
    /// The bytes are no Data (a mistake of this program).
    #[error("not a Data: {0}")]
    Malformed(#[from] PacketError),
    /// The packet exceeds the limit of every NDN forwarder (a mistake of this program).
    #[error("the packet has {0} bytes, more than 8800")]
    TooLarge(usize),
}

/// An Interest to answer.
pub struct IncomingInterest {
    wire: Arc<[u8]>,
    /// Face of the forwarder that it came from, if local fields are on.
    pub incoming_face_id: Option<FaceId>,
    /// CongestionMark of the packet: 0 none.
    pub congestion_mark: u64,
    pit_token: Option<PitToken>,
    face: Arc<Face>,
}

impl fmt::Debug for IncomingInterest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IncomingInterest({})", self.interest().name())
    }
}

impl IncomingInterest {
    /// The caller has parsed `wire`.
    pub(crate) fn new(face: &Arc<Face>, wire: &[u8], headers: &LpHeaders) -> Self {
        IncomingInterest {
            wire: wire.into(),
            incoming_face_id: headers.incoming_face_id,
            congestion_mark: headers.congestion_mark,
            pit_token: headers.pit_token,
            face: Arc::clone(face),
        }
    }

    /// The packet. Cost: one parse, no copy.
    pub fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.wire).expect("checked when it arrived, and never changed")
    }

    /// The token that the answer will carry back.
    pub fn pit_token(&self) -> Option<PitToken> {
        self.pit_token
    }

    /// The right to answer, apart from the packet. Cost: two reference counts.
    pub fn responder(&self) -> Responder {
        Responder { interest_wire: Arc::clone(&self.wire), pit_token: self.pit_token, face: Arc::clone(&self.face) }
    }

    /// Answers with a Data, as [`Responder::data`] does.
    ///
    /// # Errors
    /// Those of [`Responder::data`].
    pub async fn respond(self, data_wire: &[u8]) -> Result<(), RespondError> {
        self.responder().data(data_wire).await
    }

    /// Answers with a Nack, as [`Responder::nack`] does.
    ///
    /// # Errors
    /// Those of [`Responder::nack`].
    pub async fn nack(self, reason: NackReason) -> Result<(), RespondError> {
        self.responder().nack(reason).await
    }
}

/// The right to answer one Interest, once. Dropping it answers nothing.
pub struct Responder {
    interest_wire: Arc<[u8]>,
    pit_token: Option<PitToken>,
    face: Arc<Face>,
}

impl Responder {
    /// Sends the Data, waiting while the send queue is full. The caller ensures that its name matches the Interest:
    /// otherwise the forwarder drops it.
    ///
    /// # Errors
    /// If the bytes are no Data of at most 8800 bytes, or the connection is gone.
    pub async fn data(self, data_wire: &[u8]) -> Result<(), RespondError> {
        self.data_marked(data_wire, 0).await
    }

    /// As [`Responder::data`], with a CongestionMark (0 = none).
    ///
    /// # Errors
    /// As [`Responder::data`].
    pub async fn data_marked(self, data_wire: &[u8], congestion_mark: u64) -> Result<(), RespondError> {
        if data_wire.len() > MAX_PACKET_BYTES {
            return Err(RespondError::TooLarge(data_wire.len()));
        }
        Data::parse(data_wire)?;
        let headers = LpHeaders { pit_token: self.pit_token, congestion_mark, ..LpHeaders::default() };
        self.send(&headers, data_wire).await
    }

    /// Sends a Nack that quotes the Interest.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn nack(self, reason: NackReason) -> Result<(), RespondError> {
        let headers = LpHeaders { pit_token: self.pit_token, nack: Some(reason), ..LpHeaders::default() };
        self.send(&headers, &self.interest_wire).await
    }

    async fn send(&self, headers: &LpHeaders, packet: &[u8]) -> Result<(), RespondError> {
        Ok(self.face.send(|out| write_frame(out, headers, packet), |_| ()).await?)
    }
}

fn write_frame(out: &mut Vec<u8>, headers: &LpHeaders, packet: &[u8]) {
    if !headers.is_empty() {
        lp::write_headers(out, headers, &LinkFields::default(), packet.len());
    }
    out.extend_from_slice(packet);
}

/// Answers that are sent together. Layout: the frames back to back, and the end of each.
#[derive(Debug, Default)]
pub struct ReplyBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ReplyBatch {
    /// Adds a Data. The caller ensures that the bytes are a Data of at most 8800 bytes that matches the Interest:
    /// otherwise the forwarder drops it.
    pub fn push_data(&mut self, to: &IncomingInterest, data_wire: &[u8]) {
        self.push(&LpHeaders { pit_token: to.pit_token, ..LpHeaders::default() }, data_wire);
    }

    /// Adds a Nack that quotes the Interest.
    pub fn push_nack(&mut self, to: &IncomingInterest, reason: NackReason) {
        let headers = LpHeaders { pit_token: to.pit_token, nack: Some(reason), ..LpHeaders::default() };
        self.push(&headers, &to.wire);
    }

    fn push(&mut self, headers: &LpHeaders, packet: &[u8]) {
        write_frame(&mut self.bytes, headers, packet);
        self.ends.push(self.bytes.len());
    }

    /// Number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no answer.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
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
    client: Client,
}

impl InterestStream {
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
        let route = self.options.route?;
        loop {
            self.client.come_back(&mut self.backoff).await.ok()?;
            match self.client.registered_stream(&self.prefix, &self.options, route).await {
                Ok(receiver) => {
                    self.client.is_back(&mut self.backoff);
                    self.receiver = Some(receiver);
                    return Some(());
                }
                Err(error) => self.client.is_still_lost(&mut self.backoff, &error),
            }
        }
    }

    /// The prefix served.
    pub fn prefix(&self) -> &NameBuf {
        &self.prefix
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for InterestStream {
    fn drop(&mut self) {
        self.client.face().remove_producer(&self.prefix);
    }
}

impl Client {
    /// Registers `prefix`, and answers each Interest under it with what `handler` returns: Data as bytes, a
    /// [`NackReason`], or nothing (`None`). It runs until the caller drops the future, and survives a restart of the
    /// forwarder.
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
    /// If this client serves the prefix already; if the forwarder refuses the route at the start; if the handler returns
    /// bytes that are no Data; or if the connection is lost and cannot be opened again.
    pub async fn serve<Handler, Answering>(&self, prefix: &NameBuf, mut handler: Handler) -> Result<(), ServeError>
    where
        Handler: FnMut(IncomingInterest) -> Answering,
        Answering: Future<Output: Into<Answer>> + Send + 'static,
    {
        let mut interests = self.interests(prefix).await?;
        let mut answering = JoinSet::new();
        loop {
            let has_room = answering.len() < SERVED_AT_ONCE_MAX;
            tokio::select! {
                interest = interests.next(), if has_room => {
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
        Err(ServeError::Closed(self.close_reason().unwrap_or(CloseReason::Local)))
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
        let receiver = match options.route {
            Some(route) => self.registered_stream(prefix, &options, route).await?,
            None => self.open_stream(prefix, &options)?,
        };
        let (prefix, client, backoff) = (prefix.clone(), self.clone(), Backoff::default());
        Ok(InterestStream { prefix, options, receiver: Some(receiver), backoff, client })
    }

    /// The stream is open before the route leads to it.
    async fn registered_stream(
        &self,
        prefix: &NameBuf,
        options: &InterestOptions,
        route: RouteOptions,
    ) -> Result<mpsc::Receiver<IncomingInterest>, ServeError> {
        let receiver = self.open_stream(prefix, options)?;
        self.register_prefix_with(prefix, route).await?;
        Ok(receiver)
    }

    fn open_stream(
        &self,
        prefix: &NameBuf,
        options: &InterestOptions,
    ) -> Result<mpsc::Receiver<IncomingInterest>, PrefixInUse> {
        let (sender, receiver) = mpsc::channel(options.queue_max);
        self.face().add_producer(prefix, sender, options.nack_when_full)?;
        Ok(receiver)
    }

    /// Sends all answers and empties the batch, waiting while the send queue is full. They must answer Interests of
    /// this client.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send_replies(&self, batch: &mut ReplyBatch) -> Result<(), RespondError> {
        let sent = self.face().send_frames(&batch.bytes, &batch.ends).await;
        batch.bytes.clear();
        batch.ends.clear();
        Ok(sent?)
    }
}

async fn respond(responder: Responder, answer: Answer) -> Result<(), RespondError> {
    match answer {
        Answer::Data(wire) => responder.data(&wire).await,
        Answer::Nack(reason) => responder.nack(reason).await,
        Answer::Nothing => Ok(()),
    }
}
