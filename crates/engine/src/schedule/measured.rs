//! What does each stage of a batch cost?
//!
//! Question answered: of the cycles that a packet takes, how many are decoding, hashing,
//! look-ups, records? Source: Takemasa19 §3.3 and Tables 5.1-5.2 (cycles by function
//! block). The stages are those that every schedule runs; two orders let them be told
//! apart:
//!
//! | order | readings of the clock | what it shows |
//! | --- | --- | --- |
//! | [`MeasuredOrder::PacketByPacket`] | after every part of every packet | as *Naive*: every wait is paid where it arises |
//! | [`MeasuredOrder::StageByStage`] | after every stage of the batch | as *vector*: waits are hidden behind the batch |
//!
//! In the second order the first and the last stage can be one figure each ([`Stage::Act`]) or split
//! into their parts, which takes readings in every packet again. N.B.: a reading takes some tens of
//! cycles, in which fetches go on, and one that waits for what stands before it keeps
//! packets from overlapping; whoever shows the parts should show the undisturbed whole
//! beside them.
//!
//! Cost when nobody measures: a test of one flag at the end of each part. N.B.: the stages
//! are called here as the schedules call them. When these orders called decoding and hashing
//! as functions of their own, the compiler inlined neither any more, and every schedule
//! lost 25 to 40 cycles a packet.

use super::Batch;
use crate::{Engine, Frame, Instant, Output, View, batch::Pass};
use arrayvec::ArrayVec;

/// A part of the work on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Both of the following, where they are not told apart.
    DecodeAndHash,
    /// A checked view of the packet.
    Decode,
    /// The hash of every prefix of the name.
    Hash,
    /// Prefetch of the name's bucket, and of what Data will evict.
    PrefetchBuckets,
    /// The FIB's candidates of new Interests are found, a bucket of each name a round.
    ProbeFib,
    /// Tags of the name's bucket are read, and what they point at is prefetched.
    Probe,
    /// What hangs off the name group is prefetched.
    PrefetchEntries,
    /// The whole pipeline, where it is not split into the parts below.
    Act,
    /// What the packet is: the checks, the name's look-up in the PIT and Content Store; of Data all that it satisfies.
    Verdict,
    /// The PIT entry of a new Interest, its downstream and timer; the Content Store entry of Data.
    Insert,
    /// Longest prefix match.
    Fib,
    /// The strategy's decision, records and what leaves; of Data the end of the PIT entry.
    Emit,
}

impl Stage {
    /// Every stage, in the order in which a packet passes them.
    pub const ALL: [Self; 12] = [
        Self::DecodeAndHash,
        Self::Decode,
        Self::Hash,
        Self::PrefetchBuckets,
        Self::ProbeFib,
        Self::Probe,
        Self::PrefetchEntries,
        Self::Act,
        Self::Verdict,
        Self::Insert,
        Self::Fib,
        Self::Emit,
    ];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DecodeAndHash => "decode and hash",
            Self::Decode => "decode",
            Self::Hash => "hash",
            Self::PrefetchBuckets => "prefetch buckets",
            Self::ProbeFib => "probe FIB",
            Self::Probe => "probe",
            Self::PrefetchEntries => "prefetch entries",
            Self::Act => "act",
            Self::Verdict => "verdict",
            Self::Insert => "insert",
            Self::Fib => "FIB",
            Self::Emit => "emit",
        }
    }
}

/// In which order [`Engine::process_measured`] runs the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredOrder {
    /// Each packet through all stages, without prefetch.
    PacketByPacket,
    /// Each stage over the whole batch, with prefetches.
    StageByStage {
        /// Readings in every packet: decoding apart from hashing, and inside the pipelines.
        split: bool,
    },
}

/// What the stages of one batch took, in ticks of the clock that was handed in.
#[derive(Clone, Copy, Debug)]
pub struct StageCosts {
    clock: fn() -> u64,
    last: u64,
    ticks: [u64; Stage::ALL.len()],
    readings: [u32; Stage::ALL.len()],
    /// Stages are read part by part.
    is_split: bool,
}

impl StageCosts {
    /// Nobody measures.
    pub(crate) const NONE: Self =
        Self { clock: || 0, last: 0, ticks: [0; Stage::ALL.len()], readings: [0; Stage::ALL.len()], is_split: false };

    /// Ticks of `stage` over the batch, readings included.
    pub fn ticks(&self, stage: Stage) -> u64 {
        self.ticks[stage as usize]
    }

    /// How many readings of the clock `ticks` of this stage include.
    pub fn readings(&self, stage: Stage) -> u32 {
        self.readings[stage as usize]
    }

    fn start(&mut self) {
        self.last = (self.clock)();
    }

    /// What passed since the last reading was `stage`.
    #[cold]
    fn end(&mut self, stage: Stage) {
        let now = (self.clock)();
        self.ticks[stage as usize] += now.saturating_sub(self.last);
        self.readings[stage as usize] += 1;
        self.last = now;
    }
}

impl Engine {
    /// Decides a batch as [`Engine::process`] does, in an order made for measuring, and says
    /// what each stage took. `clock` gives ticks that only grow.
    ///
    /// # Panics
    /// As [`Engine::process`].
    pub fn process_measured(
        &mut self,
        now: Instant,
        view: &View<'_>,
        frames: &mut [Frame<'_>],
        out: &mut Output,
        order: MeasuredOrder,
        clock: fn() -> u64,
    ) -> StageCosts {
        let is_split = order != MeasuredOrder::StageByStage { split: false };
        self.stage_costs = StageCosts { clock, is_split, ..StageCosts::NONE };
        self.process_in_order(now, view, frames, out, |engine, pass, frames, hashes| {
            let batch = &mut Batch { frames, packets: ArrayVec::new(), hashes };
            engine.stage_costs.start();
            match order {
                MeasuredOrder::PacketByPacket => engine.packet_by_packet(pass, batch),
                MeasuredOrder::StageByStage { .. } => engine.stage_by_stage(pass, batch),
            }
        });
        std::mem::replace(&mut self.stage_costs, StageCosts::NONE)
    }

    fn packet_by_packet<'v>(&mut self, pass: &mut Pass<'v, '_>, batch: &mut Batch<'_, '_, '_, 'v>) {
        for packet in 0..batch.frames.len() {
            self.decode_and_hash(batch);
            self.act(pass, batch, packet);
        }
    }

    fn stage_by_stage<'v>(&mut self, pass: &mut Pass<'v, '_>, batch: &mut Batch<'_, '_, '_, 'v>) {
        let count = batch.frames.len();
        let view = pass.view;
        (0..count).for_each(|_| self.decode_and_hash(batch));
        self.end_of_whole(Stage::DecodeAndHash);
        (0..count).for_each(|packet| self.prefetch_bucket(batch, packet));
        self.prefetch_victims(&batch.packets);
        self.stage_costs.end(Stage::PrefetchBuckets);
        self.probe_fib_together(&view, batch);
        self.stage_costs.end(Stage::ProbeFib);
        (0..count).for_each(|packet| self.probe(batch, packet));
        self.tables.prefetch_victim_groups(0..count);
        self.stage_costs.end(Stage::Probe);
        (0..count).for_each(|packet| self.prefetch_entries(batch, packet));
        self.tables.prefetch_victim_buckets(0..count);
        self.stage_costs.end(Stage::PrefetchEntries);
        (0..count).for_each(|packet| self.act(pass, batch, packet));
        self.end_of_whole(Stage::Act);
    }

    /// Where stages are measured part by part: what passed since the last reading was `stage`.
    #[inline(always)]
    pub(crate) fn end_of_part(&mut self, stage: Stage) {
        if self.stage_costs.is_split {
            self.stage_costs.end(stage);
        }
    }

    /// The same for a stage that is not split.
    fn end_of_whole(&mut self, stage: Stage) {
        if !self.stage_costs.is_split {
            self.stage_costs.end(stage);
        }
    }
}
