//! A router in memory that answers from its Content Store when it can: an engine that forwards requests for repeating
//! names.

use std::collections::VecDeque;

use anyhow::ensure;
use namewire_designs::policies::catalogue::PolicyChoice;
use namewire_engine::{BATCH_PACKETS, Counters, DropReason, EngineConfig, PacketRef, Schedule};
use namewire_packet::lp::LpHeaders;
use namewire_tables::content_store::{ENTRY_OVERHEAD_BYTES, stored_bytes};
use namewire_tables::{Fib, HashKey, PrefixLookup};
use namewire_testbed::Forwarder;

use crate::experiments::prefetch::forwarder::{CONSUMER, PRODUCER, between_consumer_and_producer, cycles_of};
use crate::experiments::prefetch::traffic::{Packets, Traffic};
use crate::requests::Request;
use crate::synthetic_names::SyntheticNames;

/// Interests waiting for their Data.
pub(super) const OUTSTANDING: usize = 4_096;
/// Bytes of an Interest and of a Data (Takemasa19 §5.4.1), and of the Content in such a Data.
pub(super) const INTEREST_BYTES: usize = 121;
pub(super) const DATA_BYTES: usize = 1143;
const PAYLOAD_BYTES: usize = 1017;
/// Virtual time between packets: 5 million per second.
const NS_PER_PACKET: u64 = 200;

/// Results of a run, and their time.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) interests: u64,
    pub(super) data: u64,
    /// Interests and Data sent.
    pub(super) forwarded: u64,
    pub(super) hits: u64,
    /// Cycles of each batch of Interests, and of Data.
    pub(super) interest_batches: Vec<f64>,
    pub(super) data_batches: Vec<f64>,
}

impl Done {
    /// Adds the results of a later run.
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
    node: Forwarder,
    traffic: Traffic,
    /// Objects whose Data has not come, the oldest request in front.
    outstanding: VecDeque<u32>,
    is_outstanding: Vec<bool>,
    nonce: u32,
    packets: Packets,
}

impl CachingRouter {
    pub(super) fn new(
        (policy, prefix_lookup): (PolicyChoice, PrefixLookup),
        capacity: u32,
        objects: u32,
        names: SyntheticNames,
        key: HashKey,
    ) -> anyhow::Result<Self> {
        let mut traffic = Traffic::new(names, PAYLOAD_BYTES);
        traffic.pad_interests(INTEREST_BYTES);
        let bytes = traffic.packet_bytes();
        ensure!(bytes == (INTEREST_BYTES, DATA_BYTES), "packets of {bytes:?} bytes");
        let config = EngineConfig {
            pit_capacity_entries: 4 * OUTSTANDING as u32,
            interest_overflow_bytes: 4 * OUTSTANDING as u64 * 1024,
            // The capacity in packets is the limit, not the bytes.
            cs_capacity_bytes: (u64::from(capacity) + 64) * (ENTRY_OVERHEAD_BYTES + stored_bytes(DATA_BYTES)),
            cs_capacity_packets: capacity.into(),
            cs_policy: policy.into(),
            cs_prefix_lookup: prefix_lookup,
            ..EngineConfig::default()
        };
        Ok(Self {
            node: between_consumer_and_producer(config, key, 1)?,
            traffic,
            outstanding: VecDeque::new(),
            is_outstanding: vec![false; objects as usize],
            nonce: 0,
            packets: Packets::default(),
        })
    }

    /// Processes these requests in batches; Data come when more than [`OUTSTANDING`] Interests wait.
    pub(super) fn run(&mut self, fib: &Fib, schedule: Schedule, requests: &[Request]) -> anyhow::Result<Done> {
        self.node.engines[0].set_schedule(schedule);
        let before = self.node.counters();
        let mut done = Done::default();
        for batch in requests.chunks(BATCH_PACKETS) {
            self.interests(fib, batch, &mut done)?;
            while self.outstanding.len() >= OUTSTANDING + BATCH_PACKETS {
                self.data(fib, &mut done)?;
            }
        }
        let after = self.node.counters();
        // A second Interest for a pending name is suppressed; nothing else may be dropped.
        let dropped = |counters: &Counters| counters.dropped_total() - counters.dropped(DropReason::Suppressed);
        ensure!(dropped(&after) == dropped(&before), "the engine dropped packets: {after:?}");
        done.hits = after.cs_hits - before.cs_hits;
        done.forwarded = after.out_interests - before.out_interests + after.out_data - before.out_data;
        Ok(done)
    }

    fn interests(&mut self, fib: &Fib, batch: &[Request], done: &mut Done) -> anyhow::Result<()> {
        self.packets.clear();
        for request in batch {
            self.nonce = self.nonce.wrapping_add(0x9e37_79b9); // odd: a nonce repeats after 2³² steps
            self.traffic.push_interest_with(request.object.into(), self.nonce, &mut self.packets);
        }
        self.node.now.0 += NS_PER_PACKET * batch.len() as u64;
        let mut frames = self.packets.frames(CONSUMER);
        let cycles = cycles_of(self.node.worker(0).with_fib(fib), &mut frames)?;
        done.interest_batches.push(cycles as f64);
        done.interests += batch.len() as u64;
        for transmit in &self.node.out.transmits {
            match transmit.packet {
                PacketRef::Stored(_) => ensure!(transmit.face == CONSUMER, "a stored Data left on another face"),
                PacketRef::Frame(place) => {
                    ensure!(transmit.face == PRODUCER, "an Interest left on another face");
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
        self.node.now.0 += NS_PER_PACKET * BATCH_PACKETS as u64;
        let mut frames = self.packets.frames(PRODUCER);
        let cycles = cycles_of(self.node.worker(0).with_fib(fib), &mut frames)?;
        done.data_batches.push(cycles as f64);
        done.data += BATCH_PACKETS as u64;
        let sent = &self.node.out.transmits;
        let went_back = sent.len() == BATCH_PACKETS && sent.iter().all(|transmit| transmit.face == CONSUMER);
        ensure!(went_back, "{} of {BATCH_PACKETS} Data went on", sent.len());
        Ok(())
    }
}
