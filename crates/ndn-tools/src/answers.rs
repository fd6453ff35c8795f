//! Answers to pings, and to the one Interest that a single Data is for.

use namewire_client::{InterestStream, RespondError};
use namewire_packet::{Component, Data, DataBuilder, NameBuf, tlv::types::IMPLICIT_SHA256_DIGEST};
use namewire_security::{SignError, Signer};
use std::io;

/// Why no more pings are answered.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// An answer cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// An answer cannot be sent.
    #[error(transparent)]
    Respond(#[from] RespondError),
    /// What was answered cannot be printed.
    #[error(transparent)]
    Print(#[from] io::Error),
}

/// Answers pings, over one connection after the other.
#[derive(Debug)]
pub struct PingAnswers {
    /// Signs them.
    pub signer: Signer,
    /// FreshnessPeriod.
    pub freshness_ms: u64,
    /// Content of each.
    pub content: Vec<u8>,
    /// Answers to give; `None`: without end.
    pub count: Option<u64>,
    /// Answers given.
    pub answered: u64,
}

impl PingAnswers {
    /// Content of as many bytes as somebody wants to measure with.
    pub fn content_of(bytes: usize) -> Vec<u8> {
        vec![b'a'; bytes]
    }

    /// Answers until `count` is reached or the stream ends. `tell` learns the name of each ping.
    ///
    /// # Errors
    /// If an answer cannot be signed or sent, or `tell` fails.
    pub async fn serve(
        &mut self,
        interests: &mut InterestStream,
        mut tell: impl FnMut(&NameBuf) -> io::Result<()>,
    ) -> Result<(), AnswerError> {
        while self.count.is_none_or(|count| self.answered < count) {
            let Some(incoming) = interests.next().await else { break };
            let name = incoming.interest().name().to_buf();
            let names_digest = |component: Component<'_>| component.type_number == IMPLICIT_SHA256_DIGEST;
            if name.as_name().components().any(names_digest) {
                continue; // it asks for a Data that was made before, and no Data has such a name
            }
            let data = DataBuilder::new(name.clone()).freshness_ms(self.freshness_ms).content(&self.content);
            match incoming.respond(&self.signer.sign_data(&data)?).await {
                Ok(()) => {}
                Err(RespondError::Closed(_)) => continue, // the stream comes back
                Err(error) => return Err(error.into()),
            }
            self.answered += 1;
            tell(&name)?;
        }
        Ok(())
    }
}

/// Answers the first Interest that `data` satisfies, and gives its bytes; `None` if the stream ends before. `tell`
/// learns of each Interest, and whether `data` satisfies it.
///
/// # Errors
/// If the answer cannot be sent.
pub async fn answer_one(
    interests: &mut InterestStream,
    data: &Data<'_>,
    mut tell: impl FnMut(&namewire_packet::Interest<'_>, bool),
) -> Result<Option<NameBuf>, RespondError> {
    while let Some(incoming) = interests.next().await {
        let matches = incoming.interest().matches(data);
        tell(&incoming.interest(), matches);
        if matches {
            let name = incoming.interest().name().to_buf();
            incoming.respond(data.wire()).await?;
            return Ok(Some(name));
        }
    }
    Ok(None)
}
