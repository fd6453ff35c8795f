//! Measured batch: what does each stage of a batch cost?
//!
//! It shows how many of a packet's cycles are spent on decoding, hashing, look-ups and records. Source: Takemasa19 §3.3
//! and Tables 5.1-5.2 (cycles by function block). Every schedule runs these stages. Two orders separate their costs:
//!
//! | order | clock readings | what it shows |
//! | --- | --- | --- |
//! | [`MeasuredOrder::PacketByPacket`] | after every part of every packet | as *Naive*: each part pays for its own cache misses |
//! | [`MeasuredOrder::StageByStage`] | after every stage of the batch | as *vector*: cache misses overlap across the batch |
//!
//! In the second order, the first and the last stage can each be one figure ([`Stage::Act`]), or be split into their
//! parts. Splitting needs readings in every packet, as in the first order.
//!
//! N.B. A reading takes some tens of cycles, during which fetches continue. A reading that waits for earlier
//! instructions also keeps packets from overlapping. So report the total of a run without readings together with the
//! split figures.
//!
//! Cost without measuring: nothing. The clock is a type parameter ([`PartClock`]). The engine has two copies of the
//! pipelines; only [`Engine::process_measured`](crate::Engine::process_measured) calls the one with readings.

namewire_packet::names! {
    /// A part of the work on a packet.
    pub enum Stage {
        /// The two stages below together, where they are not measured separately.
        DecodeAndHash = "decode and hash",
        /// A checked view of the packet.
        Decode = "decode",
        /// The hash of the name, and what its prefixes are hashed from.
        Hash = "hash",
        /// Prefetch of the name's bucket, and of the entries that Data will evict.
        PrefetchBuckets = "prefetch buckets",
        /// Finds the FIB's candidates of new Interests, one bucket per name and round.
        ProbeFib = "probe FIB",
        /// Reads the tags of the name's bucket and prefetches what they point at.
        Probe = "probe",
        /// Prefetches the entries that the name group links to.
        PrefetchEntries = "prefetch entries",
        /// The whole pipeline, where it is not split into the parts below.
        Act = "act",
        /// Checks the packet and looks its name up in PIT and Content Store. For Data: all that it satisfies.
        Verdict = "verdict",
        /// The PIT entry of a new Interest, its downstream and timer; the Content Store entry of Data.
        Insert = "insert",
        /// Longest prefix match.
        Fib = "FIB",
        /// The strategy's decision, the records and the packets sent. For Data: the end of the PIT entry.
        Emit = "emit",
    }
}

/// The order in which [`Engine::process_measured`](crate::Engine::process_measured) runs the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredOrder {
    /// Each packet through all stages, without prefetch.
    PacketByPacket,
    /// Each stage over the whole batch, with prefetches.
    StageByStage {
        /// Read the clock in every packet: decoding apart from hashing, and inside the pipelines.
        split: bool,
    },
}

/// Receives the end of each stage. It is a type parameter of the pipelines: an engine without measurement has a copy of
/// its own, in which these calls compile to nothing.
pub(crate) trait PartClock {
    /// Where stages are measured part by part: the time since the last reading belongs to `stage`.
    fn end_of_part(&mut self, stage: Stage);
}

/// No measurement.
pub(crate) struct Unmeasured;

impl PartClock for Unmeasured {
    #[inline(always)]
    fn end_of_part(&mut self, _: Stage) {}
}

/// What the stages of one batch took, in ticks of the clock that was handed in.
#[derive(Clone, Copy, Debug)]
pub struct StageCosts {
    clock: fn() -> u64,
    last: u64,
    ticks: [u64; Stage::ALL.len()],
    readings: [u32; Stage::ALL.len()],
    /// The clock is read after each part.
    is_split: bool,
}

impl StageCosts {
    /// Nothing yet; `clock` gives ticks that only grow.
    pub(crate) fn new(order: MeasuredOrder, clock: fn() -> u64) -> Self {
        let is_split = order != MeasuredOrder::StageByStage { split: false };
        Self { clock, last: 0, ticks: [0; Stage::ALL.len()], readings: [0; Stage::ALL.len()], is_split }
    }

    /// Ticks of `stage` over the batch, readings included.
    pub fn ticks(&self, stage: Stage) -> u64 {
        self.ticks[stage as usize]
    }

    /// How many clock readings the ticks of this stage include.
    pub fn readings(&self, stage: Stage) -> u32 {
        self.readings[stage as usize]
    }

    /// What one reading adds to the ticks of a split stage: the clock itself and the notes taken.
    pub fn ticks_of_a_reading(clock: fn() -> u64) -> u64 {
        let mut costs = std::hint::black_box(Self::new(MeasuredOrder::PacketByPacket, clock));
        costs.start();
        costs.end_of_part(Stage::Decode);
        costs.end_of_part(Stage::Hash);
        costs.ticks(Stage::Hash)
    }

    pub(crate) fn start(&mut self) {
        self.last = (self.clock)();
    }

    /// The time since the last reading belongs to `stage`.
    #[cold]
    pub(crate) fn end(&mut self, stage: Stage) {
        let now = (self.clock)();
        self.ticks[stage as usize] += now.saturating_sub(self.last);
        self.readings[stage as usize] += 1;
        self.last = now;
    }

    /// The same for a stage that is not split.
    pub(crate) fn end_of_whole(&mut self, stage: Stage) {
        if !self.is_split {
            self.end(stage);
        }
    }
}

impl PartClock for StageCosts {
    #[inline(always)]
    fn end_of_part(&mut self, stage: Stage) {
        if self.is_split {
            self.end(stage);
        }
    }
}
