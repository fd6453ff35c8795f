//! One worker of the forwarder: its engine, the tables that the engine sees, and the packets that it sends.

use crate::faces;
use namewire_engine::{
    Engine, FaceId, Frame, Instant, Output, View,
    batch::measured::{MeasuredOrder, StageCosts},
};
use namewire_packet::{Data, Interest, lp::LpHeaders};
use namewire_tables::Fib;
use std::fmt;

/// No packet leaves.
pub const NOTHING: [&str; 0] = [];

/// One worker, for callers that drive its engine themselves.
pub struct Worker<'a> {
    /// The engine of the worker.
    pub engine: &'a mut Engine,
    /// The time.
    pub now: Instant,
    /// The tables that all workers share.
    pub view: View<'a>,
    /// The output of the last call of any engine. Each call starts anew.
    pub out: &'a mut Output,
}

impl<'a> Worker<'a> {
    /// The same worker with another FIB.
    pub fn with_fib(self, fib: &'a Fib) -> Self {
        Worker { view: View { fib: fib.view(), ..self.view }, ..self }
    }

    /// Runs a batch.
    pub fn process(&mut self, frames: &mut [Frame<'_>]) {
        self.engine.process(self.now, &self.view, frames, self.out);
    }

    /// Runs a batch in this order; returns the time of each stage by the clock.
    pub fn process_measured(
        &mut self,
        frames: &mut [Frame<'_>],
        order: MeasuredOrder,
        clock: fn() -> u64,
    ) -> StageCosts {
        self.engine.process_measured(self.now, &self.view, frames, self.out, order, clock)
    }

    /// The packets that left with the last call, which had these frames.
    pub fn sent(&self, frames: &[Frame<'_>]) -> impl Iterator<Item = Sent> {
        self.out.transmits.iter().map(|transmit| Sent {
            face: transmit.face,
            headers: transmit.headers,
            wire: self.engine.packet(frames, self.out, transmit.packet).to_vec(),
        })
    }

    /// Serves every timer that is due.
    pub fn run_timers(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.engine.run_timers(self.now, &self.view, self.out);
            sent.extend(self.sent(&[]));
        }
        sent
    }
}

/// A packet that left. It equals the text of its line: `B Interest /a #1 hop=3 token=0a`.
#[derive(Clone, PartialEq, Eq)]
pub struct Sent {
    /// The face through which it left.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// Its bytes, with its announcement in front if the headers say so.
    pub wire: Vec<u8>,
}

impl Sent {
    /// The Interest or Data, without announcement.
    pub fn packet(&self) -> &[u8] {
        self.headers.packet(&self.wire)
    }

    /// The parts of it that a test's reader wants to know.
    pub fn line(&self) -> String {
        let Sent { face, headers, .. } = self;
        let mut line = faces::letter(*face);
        match Interest::parse(self.packet()) {
            Ok(interest) => {
                line += &headers.nack.map_or(" Interest".to_owned(), |reason| format!(" Nack {reason}"));
                let nonce = interest.nonce().expect("what we send has a nonce").to_u32();
                line += &format!(" {} #{nonce:x}", interest.name());
                line += if interest.can_be_prefix() { " CanBePrefix" } else { "" };
                line += if interest.must_be_fresh() { " MustBeFresh" } else { "" };
                interest.forwarding_hint().for_each(|delegation| line += &format!(" hint={delegation}"));
                line += &interest.hop_limit().map_or(String::new(), |limit| format!(" hop={limit}"));
            }
            Err(_) => {
                let data = Data::parse(self.packet()).expect("what we send is well-formed");
                line += &format!(" Data {}", data.name());
                line += if headers.incoming_face_id == Some(FaceId::CONTENT_STORE) { " cached" } else { "" };
            }
        }
        line += &headers.pit_token.map_or(String::new(), |token| format!(" token={token:?}"));
        if headers.congestion_mark != 0 {
            line += &format!(" mark={}", headers.congestion_mark);
        }
        line + if headers.collided { " collided" } else { "" }
    }
}

impl PartialEq<&str> for Sent {
    fn eq(&self, line: &&str) -> bool {
        self.line() == *line
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}
