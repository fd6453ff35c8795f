//! What is measured: an engine with its tables, and the traffic of the present case.
//!
//! The programs that are compared are one engine, whose flow cache is on or off.

use std::collections::VecDeque;

use anyhow::{Context as _, ensure};
use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::{BATCH_PACKETS, FaceAttributes, FaceId, FaceScope, Frame, Schedule};
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_tables::{Fib, HashKey};
use namewire_testbed::Worker;

use super::case::{Case, Size};
use super::traffic::{PRODUCERS, Patterns, Requests, Wanted, producer};
use crate::experiments::prefetch::forwarder::{
    CONSUMER, NS_PER_PACKET, Taken, between_consumer_and_producer, cycles_of, engine_config,
};
use crate::experiments::prefetch::traffic::Packets;
use crate::synthetic_names::SyntheticNames;

/// Batches that are prepared together for the warm-up.
const WARM_UP_BATCHES: usize = 8;

namewire_packet::names! {
    /// What is compared.
    pub(super) enum Program {
        FlowCache = "flow cache",
        /// The program as it was before.
        NoFlowCache = "no flow cache",
    }
}

/// See the module.
pub(super) struct Subject {
    node: namewire_testbed::Forwarder,
    patterns: Patterns,
    /// Of each case; what a case has asked for never comes again.
    requests: Vec<Requests>,
    /// Of the present case, in the order of their Interests.
    outstanding: VecDeque<Exchange>,
    outstanding_max: usize,
    /// The Interests that are prepared.
    asked: VecDeque<Wanted>,
    interests: Packets,
    data: Packets,
    data_faces: Vec<FaceId>,
    sent_interests: u64,
    sent_data: u64,
}

/// An Interest that waits for its Data.
struct Exchange {
    wanted: Wanted,
    token: PitToken,
}

impl Subject {
    pub(super) fn new(size: &Size, cases: &[Case], names: SyntheticNames, key: HashKey) -> anyhow::Result<Self> {
        let config = engine_config(size.outstanding, size.store_bytes, EvictionName::Fifo.into())?;
        let mut node = between_consumer_and_producer(config, key, 1)?;
        for prefix in 0..PRODUCERS {
            node.faces.insert(producer(prefix), FaceAttributes::new(FaceScope::NonLocal, 0, true));
        }
        node.engines[0].set_schedule(Schedule::Vector);
        let requests = (1..).zip(cases).map(|(number, &case)| Requests::new(case, number, names)).collect();
        Ok(Self {
            node,
            patterns: Patterns::new(names),
            requests,
            outstanding: VecDeque::new(),
            outstanding_max: size.outstanding as usize,
            asked: VecDeque::new(),
            interests: Packets::default(),
            data: Packets::default(),
            data_faces: Vec::new(),
            sent_interests: 0,
            sent_data: 0,
        })
    }

    /// From now on this program runs.
    pub(super) fn set_program(&mut self, program: Program) {
        self.node.engines[0].turn_flow_cache(program == Program::FlowCache);
    }

    /// Data in the store.
    pub(super) fn stored(&self) -> usize {
        self.node.engine().cs_len()
    }

    /// Exchanges of the first case until the store evicts, and until it holds nothing that came before that.
    ///
    /// N.B. The Data that fill an empty store lie one after the other in memory. As long as those are evicted, a Data
    /// takes 350 cycles, and then 650.
    pub(super) fn fill(&mut self, fib: &Fib) -> anyhow::Result<()> {
        loop {
            let stored = self.stored();
            self.warm_up(0, WARM_UP_BATCHES * BATCH_PACKETS, fib)?;
            let is_outstanding = self.outstanding.len() >= self.outstanding_max;
            if is_outstanding && self.stored() < stored + WARM_UP_BATCHES * BATCH_PACKETS {
                return self.warm_up(0, self.stored(), fib);
            }
        }
    }

    /// At least as many exchanges of this case, so that what comes next meets the state that the case leaves behind.
    pub(super) fn warm_up(&mut self, case: usize, exchanges: usize, fib: &Fib) -> anyhow::Result<()> {
        for _ in 0..exchanges.div_ceil(WARM_UP_BATCHES * BATCH_PACKETS) {
            self.prepare(case, WARM_UP_BATCHES * BATCH_PACKETS);
            self.run_prepared(fib, BATCH_PACKETS, |mut worker, frames| {
                worker.process(frames);
                Ok(())
            })?;
            crate::interrupt::check()?;
        }
        Ok(())
    }

    /// The cycles of each batch of one slice.
    pub(super) fn slice(&mut self, case: usize, batches: usize, fib: &Fib) -> anyhow::Result<Taken<u64>> {
        self.prepare(case, batches * BATCH_PACKETS);
        self.run_prepared(fib, BATCH_PACKETS, cycles_of)
    }

    /// Prepares this many Interests, and as many Data for the oldest outstanding ones if enough are outstanding.
    pub(super) fn prepare(&mut self, case: usize, packets: usize) {
        self.interests.clear();
        self.data.clear();
        self.data_faces.clear();
        self.asked.clear();
        for _ in 0..packets {
            let wanted = self.requests[case].next();
            let nonce = (self.sent_interests as u32).wrapping_add(self.asked.len() as u32);
            self.patterns.push_interest(&wanted, nonce, &mut self.interests);
            self.asked.push_back(wanted);
        }
        if self.outstanding.len() < self.outstanding_max {
            return;
        }
        for exchange in self.outstanding.iter().take(packets) {
            let headers = LpHeaders { pit_token: Some(exchange.token), ..LpHeaders::default() };
            self.patterns.push_data(&exchange.wanted, headers, &mut self.data);
            self.data_faces.push(exchange.wanted.producer);
        }
    }

    /// Processes the prepared packets in batches, of Interests and of Data in turn; `decide` processes each.
    pub(super) fn run_prepared<T>(
        &mut self,
        fib: &Fib,
        batch_packets: usize,
        mut decide: impl FnMut(Worker<'_>, &mut [Frame<'_>]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Taken<T>> {
        let mut taken = Taken::default();
        let mut interest_frames = self.interests.frames(CONSUMER);
        let mut data_frames = self.data.frames(CONSUMER);
        for (frame, &face) in data_frames.iter_mut().zip(&self.data_faces) {
            frame.face = face;
        }
        let mut data_batches = data_frames.chunks_mut(batch_packets);
        for frames in interest_frames.chunks_mut(batch_packets) {
            self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
            taken.interests.push(decide(self.node.worker(0).with_fib(fib), frames)?);
            let sent = &self.node.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Interests went on", sent.len(), frames.len());
            for (transmit, wanted) in sent.iter().zip(self.asked.drain(..frames.len())) {
                ensure!(transmit.headers.nack.is_none(), "an Interest was refused");
                ensure!(transmit.face == wanted.producer, "an Interest left on another face");
                let token = transmit.headers.pit_token.context("an Interest left without a token")?;
                self.outstanding.push_back(Exchange { wanted, token });
            }
            self.sent_interests += frames.len() as u64;
            let Some(frames) = data_batches.next() else { continue };
            self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
            taken.data.push(decide(self.node.worker(0).with_fib(fib), frames)?);
            let sent = &self.node.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Data went on", sent.len(), frames.len());
            ensure!(sent.iter().all(|transmit| transmit.face == CONSUMER), "a Data left on another face");
            self.outstanding.drain(..frames.len());
            self.sent_data += frames.len() as u64;
        }
        Ok(taken)
    }

    /// Checks that every exchange was a miss, a forwarded Interest and a returned Data, without drops.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let counters = self.node.counters();
        let (interests, data) = (self.sent_interests, self.sent_data);
        ensure!(
            (counters.in_interests, counters.out_interests, counters.satisfied, counters.out_data)
                == (interests, interests, data, data)
                && counters.dropped_total() == 0
                && counters.cs_hits == 0,
            "the engine did not only forward: {counters:?}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{ALIKE, RANDOM, STREAMS, TWICE};
    use super::*;
    use namewire_tables::NextHop;

    const PREFIXES: u64 = 2_000;

    fn size() -> Size {
        Size {
            prefixes: PREFIXES,
            outstanding: 512,
            store_bytes: 1 << 19,
            warm_up: 0,
            repetitions: 0,
            slices: 0,
            batches: 0,
            fetches: Vec::new(),
            bursts: Vec::new(),
            never_again_percent: Vec::new(),
            components: Vec::new(),
            counted_packets: 0,
            counted_batches: 0,
        }
    }

    /// What becomes of exchanges if prefixes lead there.
    fn exchanges(program: Program, next_hop: impl Fn(u64) -> FaceId) -> anyhow::Result<()> {
        let (names, key) = (SyntheticNames::new(1, PREFIXES), HashKey::from_seed(1));
        let (mut fib, mut prefix) = (Fib::new(PREFIXES as usize, key), Vec::new());
        for number in 0..PREFIXES {
            names.write_prefix(number, &mut prefix);
            fib.insert(&prefix, &[NextHop { face: next_hop(number).0, cost: 0 }], 0, false)?;
        }
        let cases = [STREAMS, RANDOM, TWICE, ALIKE];
        let mut subject = Subject::new(&size(), &cases, names, key)?;
        subject.set_program(program);
        subject.fill(&fib)?;
        for case in 0..cases.len() {
            subject.warm_up(case, 2_048, &fib)?;
        }
        assert!(subject.stored() > 500, "{} in the store", subject.stored());
        subject.check()
    }

    #[test]
    fn every_interest_misses_and_is_answered() -> anyhow::Result<()> {
        Program::ALL.into_iter().try_for_each(|program| exchanges(program, producer))
    }

    #[test]
    fn a_wrong_look_up_is_noticed() {
        let error = exchanges(Program::FlowCache, |prefix| producer(prefix + u64::from(prefix == 7)));
        assert!(error.is_err_and(|error| error.to_string().contains("another face")));
    }
}
