//! Notification streams: what a forwarder announces as it happens, for example `/localhost/nfd/faces/events`.
//!
//! Source: management.md §6.4, and the behaviour of ndn-cxx's notification subscriber. A first Interest (CanBePrefix
//! and MustBeFresh) gets the latest notification while it is fresh, or else the next one. From then on, an Interest for
//! the next sequence number is always pending. After a time-out the subscriber asks for the latest notification again,
//! because the forwarder may have dropped the next one.
//!
//! Limit: a forwarder keeps only a few notifications. The subscriber counts those that it missed.

use crate::{client::Client, connection::Backoff, express_error::ExpressError};
use namewire_packet::{InterestBuilder, NameBuf, tlv::types::SEQUENCE_NUM_COMPONENT};
use std::time::Duration;
use tokio::time::sleep;

/// How long one Interest waits for a notification.
const LIFETIME_MS: u64 = 60_000;
/// Pause after the first Nack; it doubles with each, up to the longest pause.
const NACK_PAUSE: Duration = Duration::from_millis(100);
const NACK_PAUSE_LAST: Duration = Duration::from_secs(5);

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its number in the stream.
    pub sequence: u64,
    /// Notifications between the one before and this one that did not come.
    pub missed: u64,
    /// What is announced, in the encoding of the stream.
    pub content: Vec<u8>,
}

/// A place in a notification stream.
pub struct NotificationStream {
    client: Client,
    name: NameBuf,
    /// The number after the last notification, and whether to ask for it by number.
    next: Option<u64>,
    asks_by_number: bool,
    backoff: Backoff,
}

impl NotificationStream {
    /// The stream of this name, from its latest fresh notification on.
    pub fn new(client: &Client, name: NameBuf) -> Self {
        NotificationStream {
            client: client.clone(),
            name,
            next: None,
            asks_by_number: false,
            backoff: Backoff::default(),
        }
    }

    /// Waits for the next notification, however long that takes. After a restart of the forwarder, the stream goes on
    /// with the numbers of the new one.
    ///
    /// # Errors
    /// If the connection is lost and cannot be opened again.
    pub async fn next(&mut self) -> Result<Notification, ExpressError> {
        let mut pause = NACK_PAUSE;
        loop {
            match self.client.express(&self.interest()).await {
                Ok(data) => {
                    let last = data.data().name().last();
                    let numbered = last.filter(|last| last.type_number == SEQUENCE_NUM_COMPONENT);
                    // Another program's Data under this name is none of the stream.
                    let number = numbered.and_then(|last| last.as_nni()).filter(|number| *number < u64::MAX);
                    let Some(sequence) = number else {
                        sleep(pause).await;
                        continue;
                    };
                    self.asks_by_number = true;
                    let next = self.next.unwrap_or(sequence);
                    // After a time-out, the latest may be one that came before.
                    if sequence >= next {
                        self.next = Some(sequence + 1);
                        let content = data.data().content().to_vec();
                        return Ok(Notification { sequence, missed: sequence - next, content });
                    }
                }
                Err(ExpressError::Timeout(_)) => self.asks_by_number = false,
                Err(ExpressError::Nack(_)) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(NACK_PAUSE_LAST);
                }
                Err(ExpressError::Closed(reason)) => {
                    let again = self.client.come_back(&mut self.backoff).await;
                    again.map_err(|_| ExpressError::Closed(reason))?;
                    self.client.is_back(&mut self.backoff);
                    (self.next, self.asks_by_number) = (None, false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn interest(&self) -> InterestBuilder {
        let mut name = self.name.clone();
        let interest = match self.next {
            Some(next) if self.asks_by_number => {
                name.push_typed_nni(SEQUENCE_NUM_COMPONENT, next);
                InterestBuilder::new(name)
            }
            _ => InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true),
        };
        interest.lifetime_ms(LIFETIME_MS)
    }
}
