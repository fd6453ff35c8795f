//! One forwarder of the experiment: an engine under a stream of exchanges that never
//! repeats a name, with a fixed number of Interests outstanding.

use super::traffic::{Packets, Traffic};
use crate::synthetic_names::SyntheticNames;
use crate::tsc;
use anyhow::{Context as _, ensure};
use namewire_engine::dispatch::Dispatcher;
use namewire_engine::{
    BATCH_PACKETS, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Instant, Output, StrategyTable,
    View,
};
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_tables::{Fib, HashKey, NextHop};
use std::sync::Arc;

pub(super) const CONSUMER: FaceId = FaceId(300);
pub(super) const PRODUCER: FaceId = FaceId(301);

/// What the forwarder is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) names: SyntheticNames,
    /// Interests outstanding before their Data come.
    pub(super) outstanding: u64,
    pub(super) store_bytes: u64,
    pub(super) store_packets: u64,
    /// PIT tokens go out and come back on the Data.
    pub(super) tokens: bool,
    pub(super) key: HashKey,
    /// First number of the names that this forwarder uses.
    pub(super) first_name: u64,
}

/// Cycles of some packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycles {
    pub(super) interests: u64,
    pub(super) data: u64,
    /// Of each.
    pub(super) packets: u64,
}

impl Cycles {
    pub(super) fn add(&mut self, other: Cycles) {
        self.interests += other.interests;
        self.data += other.data;
        self.packets += other.packets;
    }
}

pub(super) struct Forwarder {
    engine: Engine,
    faces: FaceTable,
    strategies: StrategyTable,
    traffic: Traffic,
    setup: Setup,
    now: Instant,
    out: Output,
    next_interest: u64,
    next_data: u64,
    /// Tokens of outstanding Interests, by number modulo their count.
    tokens: Vec<Option<PitToken>>,
    interests: Packets,
    data: Packets,
}

/// Virtual time between packets: 5 million per second.
const NS_PER_PACKET: u64 = 200;

impl Forwarder {
    pub(super) fn new(setup: Setup, worker: u8) -> anyhow::Result<Self> {
        let config = EngineConfig {
            pit_capacity_entries: u32::try_from(setup.outstanding + setup.outstanding / 8 + 4096)?,
            cs_capacity_bytes: setup.store_bytes,
            cs_capacity_packets: setup.store_packets,
            ..EngineConfig::default()
        };
        let dispatcher = Arc::new(Dispatcher::new(usize::from(worker) + 1, setup.key));
        let engine = Engine::new(config, worker, dispatcher, setup.key, setup.first_name);
        let mut faces = FaceTable::default();
        faces.insert(CONSUMER, FaceAttributes::new(FaceScope::NonLocal, worker, false));
        faces.insert(PRODUCER, FaceAttributes::new(FaceScope::NonLocal, worker, setup.tokens));
        Ok(Self {
            engine,
            faces,
            strategies: StrategyTable::default(),
            traffic: Traffic::new(setup.names),
            now: Instant(1_000_000_000),
            out: Output::default(),
            next_interest: setup.first_name,
            next_data: setup.first_name,
            tokens: if setup.tokens { vec![None; setup.outstanding as usize + BATCH_PACKETS] } else { Vec::new() },
            interests: Packets::default(),
            data: Packets::default(),
            setup,
        })
    }

    /// Octets of an Interest and of a Data.
    pub(super) fn packet_octets(&self) -> (usize, usize) {
        self.traffic.packet_octets()
    }

    pub(super) fn stored(&self) -> usize {
        self.engine.cs_len()
    }

    /// Sends Interests until as many are outstanding as asked, then exchanges until the
    /// store is full and evicts.
    pub(super) fn fill(&mut self, fib: &Fib, check: &mut dyn FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
        while self.next_interest - self.next_data < self.setup.outstanding {
            self.interests.clear();
            self.push_interests(BATCH_PACKETS as u64);
            self.run_interests(fib)?;
            check()?;
        }
        loop {
            let stored = self.engine.cs_len();
            self.exchange(fib, 64)?;
            check()?;
            if self.engine.cs_len() < stored + 64 * BATCH_PACKETS {
                return Ok(());
            }
        }
    }

    /// `batches` batches of new Interests and as many of the oldest outstanding ones' Data, in turn.
    /// The packets are made before the clock starts.
    pub(super) fn exchange(&mut self, fib: &Fib, batches: usize) -> anyhow::Result<Cycles> {
        self.interests.clear();
        self.data.clear();
        let packets = (batches * BATCH_PACKETS) as u64;
        self.push_interests(packets);
        for number in self.next_data..self.next_data + packets {
            let pit_token = if self.setup.tokens { self.tokens[self.token_place(number)] } else { None };
            let headers = LpHeaders { pit_token, ..LpHeaders::default() };
            self.traffic.push_data(number, headers, &mut self.data);
        }
        self.run(fib, packets)
    }

    fn push_interests(&mut self, packets: u64) {
        for number in self.next_interest..self.next_interest + packets {
            self.traffic.push_interest(number, &mut self.interests);
        }
    }

    fn token_place(&self, number: u64) -> usize {
        (number % self.tokens.len() as u64) as usize
    }

    fn run_interests(&mut self, fib: &Fib) -> anyhow::Result<()> {
        let packets = self.interests.len() as u64;
        self.run(fib, packets).map(|_| ())
    }

    /// Processes what `interests` and `data` hold, a batch of each in turn.
    fn run(&mut self, fib: &Fib, packets: u64) -> anyhow::Result<Cycles> {
        let mut cycles = Cycles { packets, ..Cycles::default() };
        let view = View { fib, strategies: &self.strategies, faces: &self.faces };
        let (mut interests, mut data) = (std::mem::take(&mut self.interests), std::mem::take(&mut self.data));
        let mut interest_frames = interests.frames(CONSUMER);
        let mut data_frames = data.frames(PRODUCER);
        let mut data_batches = data_frames.chunks_mut(BATCH_PACKETS);
        for frames in interest_frames.chunks_mut(BATCH_PACKETS) {
            self.now.0 += NS_PER_PACKET * frames.len() as u64;
            let before = tsc::read().context("this processor has no time stamp counter that we can read")?;
            self.engine.process(self.now, &view, frames, &mut self.out);
            let after = tsc::read().unwrap_or(before);
            cycles.interests += after - before;
            let sent = &self.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Interests went on", sent.len(), frames.len());
            for transmit in sent {
                ensure!(transmit.face == PRODUCER && transmit.headers.nack.is_none(), "an Interest went astray");
                if !self.tokens.is_empty() {
                    let place = (self.next_interest % self.tokens.len() as u64) as usize;
                    self.tokens[place] = transmit.headers.pit_token;
                }
                self.next_interest += 1;
            }
            let Some(frames) = data_batches.next() else { continue };
            self.now.0 += NS_PER_PACKET * frames.len() as u64;
            let before = tsc::read().unwrap_or(0);
            self.engine.process(self.now, &view, frames, &mut self.out);
            let after = tsc::read().unwrap_or(before);
            cycles.data += after - before;
            let sent = &self.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Data went on", sent.len(), frames.len());
            ensure!(sent.iter().all(|transmit| transmit.face == CONSUMER), "a Data went astray");
            self.next_data += frames.len() as u64;
        }
        drop((interest_frames, data_frames));
        (self.interests, self.data) = (interests, data);
        Ok(cycles)
    }

    /// Every exchange so far was a miss, a hop and a return, and nothing was dropped.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let counters = self.engine.counters();
        let interests = self.next_interest - self.setup.first_name;
        let data = self.next_data - self.setup.first_name;
        ensure!(
            (counters.in_interests, counters.out_interests, counters.satisfied, counters.out_data)
                == (interests, interests, data, data)
                && counters.dropped_total() == 0
                && counters.cs_hits == 0,
            "the engine did something else than forward: {counters:?}"
        );
        Ok(())
    }
}
