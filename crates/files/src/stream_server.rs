//! Serves a stream: bytes of a pipe or of a growing file, while they come.
//!
//! ```text
//!   pipe ──thread──► chunks ──► segments ──► answers ──► router
//!                      ▲                        ▲
//!              wants_bytes (back pressure)   Interests, some held until their segment is there
//! ```
//!
//! The version of a stream is the time of its start. `stream_answers` has the table of the answers, and the limits of
//! memory. After the end of the input, what is kept is served until the caller stops, or, with
//! [`Until::Delivered`], until it is delivered.
//!
//! Cost at full speed: for each segment of 8000 bytes two copies and a signature.

use crate::{
    standing::{Place, Registration, StandingChange},
    stream_answers::{Replies, StreamAnswers},
    stream_input::StreamInput,
};
use namewire_client::{Client, IncomingInterest, NameBuf, PublishError, ReplyBatch, RespondError};
use std::{io, pin::pin};
use tokio::time::{Instant, sleep_until};

pub use crate::stream_answers::{
    HELD_MAX, HELD_PER_SEGMENT_MAX, HELD_TIME_MAX, KEEP_BYTES_DEFAULT, LINGER, QUIET_TIME, READ_AHEAD_BYTES,
    SEGMENTS_AHEAD_MAX, StreamCounters, StreamOptions,
};

/// Interests that are answered with one call.
const SERVED_TOGETHER_MAX: usize = 64;

/// When [`StreamServer::serve`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When the caller drops the future.
    Stopped,
    /// Once each segment of the stream has been sent, and none has been asked for in the last [`QUIET_TIME`].
    Delivered,
}

/// What happens while a stream is served.
#[derive(Debug)]
pub enum StreamEvent {
    /// The input has ended: the stream is whole.
    InputEnded,
    /// Each segment has been sent at least once.
    AllSent,
    /// Another producer has a newer version, or has it no more.
    Standing(StandingChange),
}

/// Why a stream is served no more.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The input has failed: the stream will never be whole. Those who waited for more have an application Nack.
    #[error("cannot read the input: {0}")]
    Input(io::Error),
    /// An answer cannot be sent.
    #[error(transparent)]
    Respond(#[from] RespondError),
}

/// A stream, ready to be served.
pub struct StreamServer {
    answers: StreamAnswers<IncomingInterest>,
    /// The input gives no more bytes.
    has_ended: bool,
    told_all_sent: bool,
    /// Empty between the calls; its memory is used again.
    batch: ReplyBatch,
}

impl StreamServer {
    /// A stream under `object` that has no bytes yet.
    ///
    /// # Errors
    /// If the options do not fit.
    pub fn new(object: &NameBuf, options: StreamOptions) -> Result<Self, PublishError> {
        Ok(StreamServer {
            answers: StreamAnswers::new(object, options)?,
            has_ended: false,
            told_all_sent: false,
            batch: ReplyBatch::default(),
        })
    }

    /// Its version.
    pub fn version(&self) -> u64 {
        self.answers.version()
    }

    /// Its name with the version.
    pub fn versioned_name(&self) -> &NameBuf {
        self.answers.versioned_name()
    }

    /// Segments until now.
    pub fn segments(&self) -> u64 {
        self.answers.segments().next()
    }

    /// Bytes in these segments.
    pub fn bytes(&self) -> u64 {
        self.answers.segments().bytes()
    }

    /// The first segment that is still there.
    pub fn oldest_segment(&self) -> u64 {
        self.answers.segments().oldest()
    }

    /// The counters since the start.
    pub fn counters(&self) -> StreamCounters {
        self.answers.counters()
    }

    /// Reads the input and answers Interests. Returns when the connection is lost and cannot be opened again, or as
    /// `until` says. Calls `tell` after each event.
    ///
    /// # Errors
    /// If the input fails, or an answer cannot be sent.
    pub async fn serve(
        &mut self,
        registration: &mut Registration,
        input: &mut StreamInput,
        until: Until,
        mut tell: impl FnMut(&StreamServer, StreamEvent),
    ) -> Result<(), StreamError> {
        let Registration { standing, interests } = registration;
        let client = interests.client().clone();
        let (mut batch, mut replies) = (Vec::new(), Vec::new());
        loop {
            let received = {
                // It is not dropped at other events, because they would interrupt the pauses of a lost connection.
                let mut next = pin!(interests.next_batch(&mut batch, SERVED_TOGETHER_MAX));
                loop {
                    let (cut_at, done_at) = (self.answers.cut_at(), self.done_at(until));
                    tokio::select! {
                        received = &mut next => break received,
                        chunk = input.next(), if !self.has_ended && self.answers.wants_bytes() => {
                            match self.take(chunk, &mut replies) {
                                Ok(false) => {}
                                Ok(true) => tell(self, StreamEvent::InputEnded),
                                Err(error) => {
                                    self.send(&client, &mut replies, &mut tell).await?;
                                    return Err(StreamError::Input(error));
                                }
                            }
                        }
                        () = sleep_until_some(cut_at), if cut_at.is_some() => {
                            self.answers.cut_rest(Instant::now(), &mut replies);
                        }
                        change = standing.change() => {
                            standing.settle_cost().await;
                            tell(self, StreamEvent::Standing(change));
                        }
                        () = sleep_until_some(done_at), if done_at.is_some() => {
                            if self.answers.is_delivered(Instant::now(), client.close_reason().is_none()) {
                                return Ok(());
                            }
                        }
                    }
                    self.send(&client, &mut replies, &mut tell).await?;
                }
            };
            if received == 0 {
                return Ok(());
            }
            let now = Instant::now();
            for incoming in batch.drain(..) {
                self.answer(incoming, standing.place(), now, &mut replies);
            }
            self.send(&client, &mut replies, &mut tell).await?;
        }
    }

    /// Ends a stream whose input would go on, as that of a growing file: what has come is the whole. Answers the
    /// Interests that wait.
    ///
    /// # Errors
    /// If an answer cannot be sent.
    pub async fn finish(&mut self, client: &Client) -> Result<(), RespondError> {
        let mut replies = Vec::new();
        if !self.has_ended {
            self.has_ended = true;
            self.answers.finish(Instant::now(), &mut replies);
        }
        self.send(client, &mut replies, &mut |_, _| ()).await
    }

    fn answer(
        &mut self,
        incoming: IncomingInterest,
        place: Place,
        now: Instant,
        replies: &mut Replies<IncomingInterest>,
    ) {
        // The packet is shared, not copied: the Interest is read while its owner moves.
        let wire = incoming.wire();
        let Ok(interest) = namewire_client::Interest::parse(&wire) else { return };
        self.answers.answer(&interest, incoming, place, now, replies);
    }

    /// Takes what came from the input; true at its end.
    fn take(
        &mut self,
        chunk: Option<io::Result<Vec<u8>>>,
        replies: &mut Replies<IncomingInterest>,
    ) -> io::Result<bool> {
        self.has_ended = !matches!(chunk, Some(Ok(_)));
        match chunk {
            Some(Ok(bytes)) => self.answers.push(&bytes, Instant::now(), replies),
            Some(Err(error)) => {
                self.answers.fail(replies);
                return Err(error);
            }
            None => self.answers.finish(Instant::now(), replies),
        }
        Ok(self.has_ended)
    }

    fn done_at(&self, until: Until) -> Option<Instant> {
        self.answers.delivered_at().filter(|_| until == Until::Delivered)
    }

    async fn send(
        &mut self,
        client: &Client,
        replies: &mut Replies<IncomingInterest>,
        tell: &mut impl FnMut(&StreamServer, StreamEvent),
    ) -> Result<(), RespondError> {
        if replies.is_empty() {
            return Ok(());
        }
        replies.iter().for_each(|(incoming, reply)| self.batch.push(incoming, reply));
        match client.send_replies(&mut self.batch).await {
            Ok(()) => {}
            // The stream of Interests comes back with others, or ends.
            Err(RespondError::Closed(_)) => self.answers.take_back(replies),
            Err(error) => return Err(error),
        }
        replies.clear();
        if self.answers.is_all_sent() && !std::mem::replace(&mut self.told_all_sent, true) {
            tell(self, StreamEvent::AllSent);
        }
        Ok(())
    }
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
