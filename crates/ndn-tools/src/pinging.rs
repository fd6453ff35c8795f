//! Pings: Interests for `/<prefix>/ping/<number>`, and when their answers came.
//!
//! The protocol is ndnping's: the number has decimal digits in a generic component, and counts up.

use namewire_client::{Client, ExpressError};
use namewire_packet::{InterestBuilder, NameBuf};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval},
};

/// What to send.
#[derive(Clone, Debug)]
pub struct Pings {
    /// The prefix of the server, without `/ping`.
    pub prefix: NameBuf,
    /// A component before the number, so that two programs do not share their pings.
    pub identifier: Option<String>,
    /// The number of the first ping.
    pub first: u64,
    /// Pings to send; `None`: without end.
    pub count: Option<u64>,
    /// Time from one to the next.
    pub interval: Duration,
    /// Time to wait for each answer.
    pub timeout_ms: u64,
    /// Take no stale answers from caches.
    pub must_be_fresh: bool,
}

/// What became of one ping.
#[derive(Debug)]
pub struct Pong {
    /// Counts from 0.
    pub sequence: u64,
    /// The number in the name.
    pub number: u64,
    /// An answer, or why there is none.
    pub outcome: Result<(), ExpressError>,
    /// Time since it was sent.
    pub elapsed: Duration,
}

/// Sends pings and collects their answers.
pub struct Pinger {
    client: Client,
    pings: Pings,
    ticks: Interval,
    sent: u64,
    ended: u64,
    // Bounded by time: each ping ends after `timeout_ms`.
    sender: mpsc::UnboundedSender<Pong>,
    pongs: mpsc::UnboundedReceiver<Pong>,
}

impl Pinger {
    /// Sends the first ping at the first call of [`Pinger::next`].
    pub fn new(client: Client, pings: Pings) -> Self {
        let mut ticks = interval(pings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (sender, pongs) = mpsc::unbounded_channel();
        Pinger { client, pings, ticks, sent: 0, ended: 0, sender, pongs }
    }

    /// Pings sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends no more; those on the way may still be answered.
    pub fn stop(&mut self) {
        self.pings.count = Some(self.sent);
    }

    /// Sends what is due, and waits for the end of any ping; `None`: all have ended. Dropping the future loses no ping.
    pub async fn next(&mut self) -> Option<Pong> {
        loop {
            let wants_more = self.pings.count.is_none_or(|count| self.sent < count);
            if !wants_more && self.ended >= self.sent {
                return None;
            }
            tokio::select! {
                _ = self.ticks.tick(), if wants_more => self.send(),
                Some(pong) = self.pongs.recv() => {
                    self.ended += 1;
                    return Some(pong);
                }
            }
        }
    }

    fn send(&mut self) {
        let (sequence, number) = (self.sent, self.pings.first.wrapping_add(self.sent));
        let mut name = self.pings.prefix.clone();
        name.push_generic(b"ping");
        if let Some(identifier) = &self.pings.identifier {
            name.push_generic(identifier.as_bytes());
        }
        name.push_generic(number.to_string().as_bytes());
        let interest =
            InterestBuilder::new(name).must_be_fresh(self.pings.must_be_fresh).lifetime_ms(self.pings.timeout_ms);
        let (client, sender) = (self.client.clone(), self.sender.clone());
        tokio::spawn(async move {
            let start = Instant::now();
            let outcome = client.express(&interest).await.map(|_| ());
            drop(sender.send(Pong { sequence, number, outcome, elapsed: start.elapsed() }));
        });
        self.sent += 1;
    }
}
