//! The same exchange by the engine alone, in this process: no socket, no frame, no link header.
//!
//! Question answered: what does a packet of the load cost in the engine? Batches of Interests and of the Data that
//! answer them, each of [`BATCH_PACKETS`], go straight into an engine with the settings of a router. Only the engine's
//! own time counts: packets are written before, and their tokens read after.

use std::time::{Duration, Instant};

use namewire_engine::{BATCH_PACKETS, EngineConfig, Frame};
use namewire_load::{ExchangePackets, ExchangeShape, ShapeError};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{Name, NameBuf};
use namewire_testbed::Forwarder;
use namewire_testbed::faces::{A, B};

use super::FRESHNESS_MS;

/// The largest batch of an engine.
const BATCH: u32 = BATCH_PACKETS as u32;

/// An engine with the route of the load.
pub struct EngineAlone {
    forwarder: Forwarder,
    packets: ExchangePackets,
    next: u32,
}

impl EngineAlone {
    /// Consumer and producer are two routers.
    ///
    /// # Errors
    /// If the content is too long.
    pub fn new(content_bytes: usize, seed: u64) -> Result<Self, ShapeError> {
        let shape = ExchangeShape {
            run: "run",
            stream: 0,
            content_bytes,
            can_be_prefix: false,
            lifetime_ms: 4_000,
            freshness_ms: FRESHNESS_MS,
            seed,
        };
        let packets = ExchangePackets::new(&shape)?;
        let mut forwarder = Forwarder::new(EngineConfig::default());
        forwarder.engines[0].expect_load();
        let prefix: NameBuf = Name::parse_value(packets.prefix_value()).map_err(|_| ShapeError)?.to_buf();
        forwarder.route(&prefix.to_string(), &[B]);
        forwarder.send_tokens(B);
        Ok(EngineAlone { forwarder, packets, next: 0 })
    }

    /// Exchanges about `count` Interests and Data. Returns the time and the number of packets that left.
    pub fn exchange(&mut self, count: u32) -> (Duration, u64) {
        let (mut spent, mut left) = (Duration::ZERO, 0);
        for _ in 0..count / BATCH {
            self.forwarder.at(u64::from(self.next / 1_000)); // as if a packet took a microsecond
            let sequences = self.next..self.next + BATCH;
            self.next += BATCH;
            let mut interests: Vec<Vec<u8>> = sequences.clone().map(|sequence| self.interest(sequence)).collect();
            let headers = vec![LpHeaders::default(); interests.len()];
            let (time, tokens) = self.decide(A, &mut interests, &headers);
            let mut data: Vec<Vec<u8>> = sequences.map(|sequence| self.data(sequence)).collect();
            let (data_time, satisfied) = self.decide(B, &mut data, &tokens);
            spent += time + data_time;
            left += (tokens.len() + satisfied.len()) as u64;
        }
        (spent, left)
    }

    fn interest(&mut self, sequence: u32) -> Vec<u8> {
        let mut packet = Vec::new();
        self.packets.write_interest(sequence, &mut packet);
        packet
    }

    fn data(&self, sequence: u32) -> Vec<u8> {
        let mut packet = Vec::new();
        self.packets.write_data(sequence, None, &mut packet);
        packet
    }

    /// Lets the engine decide a batch. Returns its time, and the headers of what leaves.
    fn decide(
        &mut self,
        face: namewire_packet::FaceId,
        packets: &mut [Vec<u8>],
        headers: &[LpHeaders],
    ) -> (Duration, Vec<LpHeaders>) {
        let mut frames: Vec<Frame<'_>> = packets
            .iter_mut()
            .zip(headers)
            .map(|(packet, &headers)| Frame { face, headers, packet, visits: Default::default() })
            .collect();
        let mut worker = self.forwarder.worker(0);
        let began = Instant::now();
        worker.process(&mut frames);
        let time = began.elapsed();
        (time, worker.sent(&frames).map(|sent| sent.headers).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_enters_leaves() {
        let mut engine = EngineAlone::new(100, 1).expect("a legal shape");
        let (_, left) = engine.exchange(640);
        assert_eq!(left, 640 * 2);
    }
}
