//! A router in memory that answers what it can from its store: an engine under requests for names that come again.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::ensure;
use namewire_engine::dispatch::Dispatcher;
use namewire_engine::{
    BATCH_PACKETS, Counters, DropReason, Engine, EngineConfig, FaceAttributes, FaceScope, FaceTable, Instant, Output,
    PacketRef, Schedule, StrategyTable, View,
};
use namewire_packet::lp::LpHeaders;
use namewire_tables::content_store::{ENTRY_OVERHEAD_BYTES, stored_bytes};
use namewire_tables::cs_policy::catalogue::CsPolicy;
use namewire_tables::{Fib, HashKey, PrefixLookup};

use crate::experiments::prefetch::forwarder::{CONSUMER, PRODUCER, cycles_of};
use crate::experiments::prefetch::traffic::{Packets, Traffic};
use crate::requests::Request;
use crate::synthetic_names::SyntheticNames;

/// Interests that wait for their Data.
pub(super) const OUTSTANDING: usize = 4_096;
/// Octets of an Interest and of a Data (Takemasa19 §5.4.1), and of the Content in such a Data.
pub(super) const INTEREST_OCTETS: usize = 121;
pub(super) const DATA_OCTETS: usize = 1143;
const PAYLOAD_OCTETS: usize = 1017;
/// Virtual time between packets: 5 million per second.
const NS_PER_PACKET: u64 = 200;

/// What was done, in which time.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) interests: u64,
    pub(super) data: u64,
    /// Interests and Data that went out.
    pub(super) forwarded: u64,
    pub(super) hits: u64,
    /// Cycles of each batch of Interests, and of Data.
    pub(super) interest_batches: Vec<f64>,
    pub(super) data_batches: Vec<f64>,
}

impl Done {
    /// Adds what was done later.
    pub(super) fn append(&mut self, mut later: Self) {
        self.interests += later.interests;
        self.data += later.data;
        self.forwarded += later.forwarded;
        self.hits += later.hits;
        self.interest_batches.append(&mut later.interest_batches);
        self.data_batches.append(&mut later.data_batches);
    }
}

pub(super) struct CachingRouter {
    engine: Engine,
    faces: FaceTable,
    strategies: StrategyTable,
    traffic: Traffic,
    now: Instant,
    out: Output,
    /// Objects whose Data has not come, the one that was asked for first in front.
    outstanding: VecDeque<u32>,
    is_outstanding: Vec<bool>,
    nonce: u32,
    packets: Packets,
}

impl CachingRouter {
    pub(super) fn new(
        (policy, prefix_lookup): (CsPolicy, PrefixLookup),
        capacity: u32,
        objects: u32,
        names: SyntheticNames,
        key: HashKey,
    ) -> anyhow::Result<Self> {
        let mut traffic = Traffic::new(names, PAYLOAD_OCTETS);
        traffic.pad_interests(INTEREST_OCTETS);
        let octets = traffic.packet_octets();
        ensure!(octets == (INTEREST_OCTETS, DATA_OCTETS), "packets of {octets:?} octets");
        let config = EngineConfig {
            pit_capacity_entries: 4 * OUTSTANDING as u32,
            interest_overflow_bytes: 4 * OUTSTANDING as u64 * 1024,
            // Packets are the limit.
            cs_capacity_bytes: (u64::from(capacity) + 64) * (ENTRY_OVERHEAD_BYTES + stored_bytes(DATA_OCTETS)),
            cs_capacity_packets: capacity.into(),
            cs_policy: policy,
            cs_prefix_lookup: prefix_lookup,
            ..EngineConfig::default()
        };
        let engine = Engine::new(config, 0, Arc::new(Dispatcher::new(1, key)), key, 1)?;
        let mut faces = FaceTable::default();
        faces.insert(CONSUMER, FaceAttributes::new(FaceScope::NonLocal, 0, false));
        faces.insert(PRODUCER, FaceAttributes::new(FaceScope::NonLocal, 0, true));
        Ok(Self {
            engine,
            faces,
            strategies: StrategyTable::default(),
            traffic,
            now: Instant(1_000_000_000),
            out: Output::default(),
            outstanding: VecDeque::new(),
            is_outstanding: vec![false; objects as usize],
            nonce: 0,
            packets: Packets::default(),
        })
    }

    /// Takes these requests in batches; Data come when more than [`OUTSTANDING`] Interests wait.
    pub(super) fn run(&mut self, fib: &Fib, schedule: Schedule, requests: &[Request]) -> anyhow::Result<Done> {
        self.engine.set_schedule(schedule);
        let before = self.engine.counters();
        let mut done = Done::default();
        for batch in requests.chunks(BATCH_PACKETS) {
            self.interests(fib, batch, &mut done)?;
            while self.outstanding.len() >= OUTSTANDING + BATCH_PACKETS {
                self.data(fib, &mut done)?;
            }
        }
        let after = self.engine.counters();
        // A second Interest for a name that waits is suppressed; nothing else may be dropped.
        let dropped = |counters: &Counters| counters.dropped_total() - counters.dropped(DropReason::Suppressed);
        ensure!(dropped(&after) == dropped(&before), "the engine dropped packets: {after:?}");
        done.hits = after.cs_hits - before.cs_hits;
        done.forwarded = after.out_interests - before.out_interests + after.out_data - before.out_data;
        Ok(done)
    }

    fn interests(&mut self, fib: &Fib, batch: &[Request], done: &mut Done) -> anyhow::Result<()> {
        self.packets.clear();
        for request in batch {
            self.nonce = self.nonce.wrapping_add(0x9e37_79b9); // odd: all 2³² before one comes again
            self.traffic.push_interest_with(request.object.into(), self.nonce, &mut self.packets);
        }
        let view = View { fib: fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.now.0 += NS_PER_PACKET * batch.len() as u64;
        let mut frames = self.packets.frames(CONSUMER);
        let cycles = cycles_of(&mut self.engine, self.now, &view, &mut frames, &mut self.out)?;
        done.interest_batches.push(cycles as f64);
        done.interests += batch.len() as u64;
        for transmit in &self.out.transmits {
            match transmit.packet {
                PacketRef::Stored(_) => ensure!(transmit.face == CONSUMER, "a stored Data went astray"),
                PacketRef::Frame(place) => {
                    ensure!(transmit.face == PRODUCER, "an Interest went astray");
                    let object = batch[usize::from(place)].object;
                    if !std::mem::replace(&mut self.is_outstanding[object as usize], true) {
                        self.outstanding.push_back(object);
                    }
                }
                other => anyhow::bail!("the engine sends {other:?}"),
            }
        }
        Ok(())
    }

    fn data(&mut self, fib: &Fib, done: &mut Done) -> anyhow::Result<()> {
        self.packets.clear();
        for object in self.outstanding.drain(..BATCH_PACKETS) {
            self.is_outstanding[object as usize] = false;
            self.traffic.push_data(object.into(), LpHeaders::default(), &mut self.packets);
        }
        let view = View { fib: fib.view(), strategies: &self.strategies, faces: &self.faces };
        self.now.0 += NS_PER_PACKET * BATCH_PACKETS as u64;
        let mut frames = self.packets.frames(PRODUCER);
        let cycles = cycles_of(&mut self.engine, self.now, &view, &mut frames, &mut self.out)?;
        done.data_batches.push(cycles as f64);
        done.data += BATCH_PACKETS as u64;
        let sent = &self.out.transmits;
        let went_back = sent.len() == BATCH_PACKETS && sent.iter().all(|transmit| transmit.face == CONSUMER);
        ensure!(went_back, "{} of {BATCH_PACKETS} Data went on", sent.len());
        Ok(())
    }
}
