//! One forwarder in memory: an engine with a stream of exchanges that never repeats a name, and a fixed number of
//! outstanding Interests (for `prefetch` and `packet-costs`).

use super::traffic::{Packets, Traffic};
use crate::synthetic_names::SyntheticNames;
use crate::tsc;
use anyhow::ensure;
use namewire_designs::policies::catalogue::PolicyChoice;
use namewire_engine::{
    BATCH_PACKETS, EngineConfig, FaceAttributes, FaceId, FaceScope, Frame, Instant, PacketRef, Schedule, Transmit,
};
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_tables::{Fib, HashKey};
use namewire_testbed::Worker;

pub(in crate::experiments) const CONSUMER: FaceId = FaceId(300);
pub(in crate::experiments) const PRODUCER: FaceId = FaceId(301);

/// Parameters of a forwarder.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiments) struct Setup {
    pub(in crate::experiments) names: SyntheticNames,
    /// Bytes of a Data's Content.
    pub(in crate::experiments) payload_bytes: usize,
    /// Interests outstanding before their Data come.
    pub(in crate::experiments) outstanding: u64,
    pub(in crate::experiments) store_bytes: u64,
    /// The store's policy.
    pub(in crate::experiments) policy: PolicyChoice,
    pub(in crate::experiments) key: HashKey,
    /// First number of the names that this forwarder uses.
    pub(in crate::experiments) first_name: u64,
}

/// The results of each batch in order: cycles, or more.
#[derive(Clone, Debug)]
pub(in crate::experiments) struct Taken<T> {
    pub(in crate::experiments) interests: Vec<T>,
    pub(in crate::experiments) data: Vec<T>,
}

/// Cycles of each batch.
pub(in crate::experiments) type Cycles = Taken<u64>;

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Self { interests: Vec::new(), data: Vec::new() }
    }
}

impl<T> Taken<T> {
    pub(in crate::experiments) fn append(&mut self, mut other: Self) {
        self.interests.append(&mut other.interests);
        self.data.append(&mut other.data);
    }
}

pub(in crate::experiments) struct Forwarder {
    node: namewire_testbed::Forwarder,
    traffic: Traffic,
    setup: Setup,
    next_interest: u64,
    next_data: u64,
    hits: u64,
    /// Tokens of outstanding Interests, by number modulo their count.
    tokens: Vec<Option<PitToken>>,
    interests: Packets,
    data: Packets,
}

/// How Data finds its pending Interests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiments) enum Finding {
    /// By its name alone.
    Name,
    /// By the PIT token that left with the Interest.
    Token,
}

/// Most batches of each kind that are prepared at once.
const MAX_BATCHES: usize = 512;

/// One turn of a worker, as far as it concerns the engine: due timers, and a batch under the engine's schedule. Returns
/// TSC cycles.
pub(in crate::experiments) fn cycles_of(mut worker: Worker<'_>, frames: &mut [Frame<'_>]) -> anyhow::Result<u64> {
    let before = tsc::required()?;
    run_timers(&mut worker);
    worker.process(frames);
    Ok(tsc::read().unwrap_or(before) - before)
}

/// Timers that are due. Packets that they send are ignored here; [`Forwarder::check`] checks that there were none.
pub(in crate::experiments) fn run_timers(worker: &mut Worker<'_>) {
    if worker.engine.next_deadline().is_some_and(|at| at <= worker.now) {
        worker.engine.run_timers(worker.now, &worker.view, worker.out);
    }
}

/// The only worker of its own router, between the consumer and the producer.
pub(in crate::experiments) fn between_consumer_and_producer(
    config: EngineConfig,
    key: HashKey,
    seed: u64,
) -> anyhow::Result<namewire_testbed::Forwarder> {
    let mut node = namewire_testbed::Forwarder::with_key(config, 1, key, seed)?;
    node.faces.insert(CONSUMER, FaceAttributes::new(FaceScope::NonLocal, 0, false));
    node.faces.insert(PRODUCER, FaceAttributes::new(FaceScope::NonLocal, 0, true));
    node.now = Instant(1_000_000_000);
    node.engines[0].expect_load();
    Ok(node)
}

/// The settings of an engine with this many outstanding Interests and a store of this size.
pub(in crate::experiments) fn engine_config(
    outstanding: u64,
    store_bytes: u64,
    policy: PolicyChoice,
) -> anyhow::Result<EngineConfig> {
    Ok(EngineConfig {
        // Three sixteenths are kept for local faces and management.
        pit_capacity_entries: u32::try_from(outstanding + outstanding / 4 + 8192)?,
        face_share_percent: 100, // there is only one consumer
        // Long names are not stored inline.
        interest_overflow_bytes: outstanding * 1024,
        cs_capacity_bytes: store_bytes,
        // The capacity in bytes is the limit: every Data takes more than this.
        cs_capacity_packets: store_bytes / 256,
        cs_policy: policy.into(),
        ..EngineConfig::default()
    })
}

/// Virtual time between packets: 5 million per second.
pub(in crate::experiments) const NS_PER_PACKET: u64 = 200;

impl Forwarder {
    pub(in crate::experiments) fn new(setup: Setup) -> anyhow::Result<Self> {
        let config = engine_config(setup.outstanding, setup.store_bytes, setup.policy)?;
        Ok(Self {
            node: between_consumer_and_producer(config, setup.key, setup.first_name)?,
            traffic: Traffic::new(setup.names, setup.payload_bytes),
            next_interest: setup.first_name,
            next_data: setup.first_name,
            hits: 0,
            tokens: vec![None; setup.outstanding as usize + MAX_BATCHES * BATCH_PACKETS],
            interests: Packets::default(),
            data: Packets::default(),
            setup,
        })
    }

    /// Bytes of an Interest and of a Data.
    pub(in crate::experiments) fn packet_bytes(&self) -> (usize, usize) {
        self.traffic.packet_bytes()
    }

    /// Pads every Interest to `bytes` bytes.
    pub(in crate::experiments) fn pad_interests(&mut self, bytes: usize) {
        self.traffic.pad_interests(bytes);
    }

    pub(in crate::experiments) fn set_schedule(&mut self, schedule: Schedule) {
        self.node.engines[0].set_schedule(schedule);
    }

    pub(in crate::experiments) fn stored(&self) -> usize {
        self.node.engine().cs_len()
    }

    /// Sends Interests until enough are outstanding, then exchanges until the store is full and evicts.
    pub(in crate::experiments) fn fill(
        &mut self,
        fib: &Fib,
        check: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while self.next_interest - self.next_data < self.setup.outstanding {
            self.interests.clear();
            self.data.clear();
            self.push_interests(BATCH_PACKETS as u64);
            self.run_prepared(fib, Schedule::default())?;
            check()?;
        }
        loop {
            let stored = self.node.engine().cs_len();
            let batches = self.batches_at_once();
            self.exchange(fib, Schedule::default(), batches, Finding::Name)?;
            check()?;
            if self.node.engine().cs_len() < stored + batches * BATCH_PACKETS {
                return Ok(());
            }
        }
    }

    /// Most batches that may be prepared at once: their Data must answer outstanding Interests.
    pub(in crate::experiments) fn batches_at_once(&self) -> usize {
        MAX_BATCHES.min(self.setup.outstanding as usize / BATCH_PACKETS)
    }

    /// Prepares `batches` batches of new Interests, and as many of Data for the oldest outstanding ones.
    pub(in crate::experiments) fn prepare(&mut self, batches: usize, finding: Finding) {
        assert!(batches <= self.batches_at_once());
        self.prepare_packets(batches * BATCH_PACKETS, finding);
    }

    /// The same for a number of packets.
    pub(in crate::experiments) fn prepare_packets(&mut self, packets: usize, finding: Finding) {
        self.interests.clear();
        self.data.clear();
        let packets = packets as u64;
        self.push_interests(packets);
        for number in self.next_data..self.next_data + packets {
            let pit_token = match finding {
                Finding::Name => None,
                Finding::Token => self.tokens[self.token_place(number)],
            };
            self.traffic.push_data(number, LpHeaders { pit_token, ..LpHeaders::default() }, &mut self.data);
        }
    }

    /// Prepares the packets, then starts the clock and runs them.
    pub(in crate::experiments) fn exchange(
        &mut self,
        fib: &Fib,
        schedule: Schedule,
        batches: usize,
        finding: Finding,
    ) -> anyhow::Result<Cycles> {
        self.prepare(batches, finding);
        self.run_prepared(fib, schedule)
    }

    /// Requests names again whose Data arrived `age` Data ago and is still stored; returns the cycles of each batch.
    pub(in crate::experiments) fn hits(
        &mut self,
        fib: &Fib,
        schedule: Schedule,
        batches: usize,
        age: u64,
    ) -> anyhow::Result<Vec<u64>> {
        self.node.engines[0].set_schedule(schedule);
        self.hits_by(fib, BATCH_PACKETS, batches, age, cycles_of)
    }

    /// The same in batches of `batch_packets`; `decide` processes each.
    pub(in crate::experiments) fn hits_by<T>(
        &mut self,
        fib: &Fib,
        batch_packets: usize,
        batches: usize,
        age: u64,
        mut decide: impl FnMut(Worker<'_>, &mut [Frame<'_>]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        self.interests.clear();
        let first = self.next_data - age;
        for number in first..first + (batches * batch_packets) as u64 {
            self.traffic.push_interest(number, &mut self.interests);
        }
        let mut taken = Vec::with_capacity(batches);
        for frames in self.interests.frames(CONSUMER).chunks_mut(batch_packets) {
            self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
            taken.push(decide(self.node.worker(0).with_fib(fib), frames)?);
            let sent = &self.node.out.transmits;
            let is_stored = |transmit: &Transmit| matches!(transmit.packet, PacketRef::Stored(_));
            ensure!(sent.len() == frames.len() && sent.iter().all(is_stored), "the store lacks what it should hold");
            self.hits += frames.len() as u64;
        }
        Ok(taken)
    }

    fn push_interests(&mut self, packets: u64) {
        for number in self.next_interest..self.next_interest + packets {
            self.traffic.push_interest(number, &mut self.interests);
        }
    }

    fn token_place(&self, number: u64) -> usize {
        (number % self.tokens.len() as u64) as usize
    }

    /// Processes the prepared packets, a batch of Interests and a batch of Data in turn.
    pub(in crate::experiments) fn run_prepared(&mut self, fib: &Fib, schedule: Schedule) -> anyhow::Result<Cycles> {
        self.node.engines[0].set_schedule(schedule);
        self.run_prepared_by(fib, BATCH_PACKETS, cycles_of)
    }

    /// The same in batches of `batch_packets`; `decide` processes each.
    pub(in crate::experiments) fn run_prepared_by<T>(
        &mut self,
        fib: &Fib,
        batch_packets: usize,
        mut decide: impl FnMut(Worker<'_>, &mut [Frame<'_>]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Taken<T>> {
        let mut taken = Taken::default();
        let mut interest_frames = self.interests.frames(CONSUMER);
        let mut data_frames = self.data.frames(PRODUCER);
        let mut data_batches = data_frames.chunks_mut(batch_packets);
        for frames in interest_frames.chunks_mut(batch_packets) {
            self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
            taken.interests.push(decide(self.node.worker(0).with_fib(fib), frames)?);
            let sent = &self.node.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Interests went on", sent.len(), frames.len());
            for transmit in sent {
                ensure!(
                    transmit.face == PRODUCER && transmit.headers.nack.is_none(),
                    "an Interest left on another face"
                );
                let place = (self.next_interest % self.tokens.len() as u64) as usize;
                self.tokens[place] = transmit.headers.pit_token;
                self.next_interest += 1;
            }
            let Some(frames) = data_batches.next() else { continue };
            self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
            taken.data.push(decide(self.node.worker(0).with_fib(fib), frames)?);
            let sent = &self.node.out.transmits;
            ensure!(sent.len() == frames.len(), "{} of {} Data went on", sent.len(), frames.len());
            ensure!(sent.iter().all(|transmit| transmit.face == CONSUMER), "a Data left on another face");
            self.next_data += frames.len() as u64;
        }
        Ok(taken)
    }

    /// Checks that every exchange was a miss, a forwarded Interest and a returned Data, without drops.
    pub(in crate::experiments) fn check(&self) -> anyhow::Result<()> {
        let counters = self.node.counters();
        let interests = self.next_interest - self.setup.first_name;
        let data = self.next_data - self.setup.first_name;
        ensure!(
            (counters.in_interests, counters.out_interests, counters.satisfied, counters.out_data)
                == (interests + self.hits, interests, data, data + self.hits)
                && counters.dropped_total() == 0
                && counters.cs_hits == self.hits,
            "the engine did not only forward: {counters:?}"
        );
        Ok(())
    }
}
