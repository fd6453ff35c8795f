//! Fetches the pieces of a capture in order, some ahead of time.

use crate::{ExitCode, Failure};
use namewire_client::{Client, DataBuf, ExpressError};
use namewire_packet::{
    InterestBuilder, NameBuf,
    nfd::{CaptureRecord, CaptureStream},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use std::collections::VecDeque;
use tokio::task::JoinHandle;

/// Pieces asked for at once: as the router answers within milliseconds, they suffice for a gigabit per second.
const WINDOW: usize = 16;

/// The router sends an empty piece after 260 ms. As pieces do not pass through its PIT, the Interests stay there as
/// long as they live.
const LIFETIME_MS: u64 = 400;

/// Interests for one piece, for eight seconds in all. The router waits ten for the next one.
const ATTEMPTS_MAX: u32 = 20;

/// See the module documentation. Dropping it forgets the Interests.
pub(super) struct Pieces<'a> {
    client: &'a Client,
    capture: NameBuf,
    stream: CaptureStream,
    asked: VecDeque<Asked>,
    next_sequence: u64,
    is_over: bool,
}

struct Asked {
    sequence: u64,
    attempts: u32,
    answer: JoinHandle<Result<DataBuf, ExpressError>>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(client: &'a Client, capture: NameBuf) -> Self {
        let (stream, asked) = (CaptureStream::default(), VecDeque::new());
        Pieces { client, capture, stream, asked, next_sequence: 0, is_over: false }
    }

    /// The records of the next piece, of which there may be none; `None` after the last piece. The future may be
    /// dropped and the method called again.
    ///
    /// # Errors
    /// If the router does not answer, or not sensibly.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<CaptureRecord>>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        loop {
            while self.asked.len() < WINDOW {
                let sequence = self.next_sequence;
                self.next_sequence += 1;
                self.asked.push_back(Asked { sequence, attempts: 1, answer: self.ask(sequence) });
            }
            let Some(first) = self.asked.front_mut() else { return Ok(None) };
            let answer = (&mut first.answer).await;
            let answer = answer.map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
            let (sequence, attempts) = (first.sequence, first.attempts);
            match answer {
                Ok(data) => {
                    self.asked.pop_front();
                    return self.read(&data).map(Some);
                }
                Err(ExpressError::Timeout(_)) if attempts < ATTEMPTS_MAX => {
                    self.asked[0] = Asked { sequence, attempts: attempts + 1, answer: self.ask(sequence) };
                }
                Err(ExpressError::Timeout(_)) => {
                    return Err(Failure::new(
                        ExitCode::Timeout,
                        "the router has ended the capture, or does not answer",
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ask(&self, sequence: u64) -> JoinHandle<Result<DataBuf, ExpressError>> {
        let mut name = self.capture.clone();
        name.push_typed_nni(SEQUENCE_NUM_COMPONENT, sequence);
        let interest = InterestBuilder::new(name).lifetime_ms(LIFETIME_MS);
        let client = self.client.clone();
        tokio::spawn(async move { client.express(&interest).await })
    }

    fn read(&mut self, data: &DataBuf) -> Result<Vec<CaptureRecord>, Failure> {
        let data = data.data();
        self.is_over = data.final_block_id().is_some_and(|last| Some(last) == data.name().last());
        self.stream.push(data.content());
        let mut records = Vec::new();
        loop {
            match self.stream.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return Ok(records),
                Err(error) => {
                    let why = format!("the forwarder's capture is malformed: {error}");
                    return Err(Failure::new(ExitCode::Failed, why));
                }
            }
        }
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.asked.iter().for_each(|asked| asked.answer.abort());
    }
}
