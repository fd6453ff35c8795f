//! The engine: one complete forwarder for its share of the names.
//!
//! This file has the interface of the engine. The work is done in `batch`, `pipeline` and `events`.

use crate::{
    Counters, CsCounts, CsReport, EngineConfig, Instant, LimitMet, PitRole, Schedule,
    counters::cs_counts::CsCounting,
    dispatch::{Dispatcher, MAX_WORKERS},
    events::{face_changes, new_next_hops, timers},
    ground::{
        drop_notes::{Counting, DropNote},
        measured::{MeasuredOrder, PartClock, StageCosts, Unmeasured},
        order::BATCH_PACKETS,
        output::{Outbound, Output, PacketRef},
    },
    pipeline::{
        call::Call,
        frame::{Frame, View},
    },
    schedule::batch::Stages,
    state::{
        core_role::CoreRole, measurements::Measurements, name_state::NameState, parts::Parts, scratch::Scratch,
        tables::Tables, upstream_times::UpstreamTime,
    },
    verdict::{
        foresight::{Foresight, Prospect},
        scope::NameScope,
    },
};
use namewire_packet::{Data, FaceId, Name, NameBuf};
use namewire_shares::{Groups, PoolReader};
use namewire_tables::{CsArrival, CsPolicy, FibMatch, HashKey, NameHashes, fib::FlowCache, hash_name};
use std::{io, sync::Arc};

/// One complete forwarder for its share of the names.
pub struct Engine {
    parts: Parts,
    /// One per packet of a batch.
    hashes: Vec<NameHashes>,
}

impl Engine {
    /// An engine with empty tables. `key` must be the key of the FIBs that it will use; `worker` is the number of its
    /// thread. No name is at home at a thread beyond the dispatcher's workers. `groups` tells which holders of faces
    /// share a share.
    ///
    /// # Errors
    /// If the kernel does not map the memory that the tables may need.
    pub fn new(
        config: EngineConfig,
        worker: u8,
        dispatcher: Arc<Dispatcher>,
        key: HashKey,
        seed: u64,
        groups: &Groups,
    ) -> io::Result<Self> {
        assert!(usize::from(worker) < MAX_WORKERS);
        let tables = Tables::new(&config, worker, dispatcher, key, groups)?;
        let measurements = Measurements::new(config.measurement_capacity, config.pages.for_sparse())?;
        let mut random = fastrand::Rng::with_seed(seed);
        let core = match &config.pit_role {
            PitRole::Edge => None,
            PitRole::Core(core) => Some(Box::new(CoreRole::new(core, config.pages, random.u64(..))?)),
        };
        let mut cs_counting = CsCounting::default();
        cs_counting.count_prefixes(tables.pit_cs.key(), &config.cs_counted_prefixes);
        let scratch = Scratch::new(tables.pit_cs.pit_capacity_entries());
        let (counters, flows) = (Counting::default(), FlowCache::new(config.flow_cache, config.pages.for_sparse())?);
        let batch_packets = config.batch_packets.clamp(1, BATCH_PACKETS);
        Ok(Engine {
            parts: Parts { config, tables, flows, core, measurements, counters, cs_counting, random, scratch },
            hashes: (0..batch_packets).map(|_| NameHashes::with_full_room()).collect(),
        })
    }

    /// Who holds how much of the PIT and of its records, for any thread to read.
    pub fn pools(&self) -> Vec<PoolReader> {
        self.parts.tables.pools().into()
    }

    /// Decides a batch of at most [`EngineConfig::batch_packets`] packets. The verdicts replace
    /// what `out` held; they are valid until the next call.
    ///
    /// # Panics
    /// If the batch is larger.
    pub fn process(&mut self, now: Instant, view: &View<'_>, frames: &mut [Frame<'_>], out: &mut Output) {
        self.begin_batch(now, frames, out);
        Stages::new(&mut self.parts, call(now, view, out, Unmeasured), frames, &mut self.hashes).run();
        self.end_batch(frames);
    }

    /// Decides a batch as [`Engine::process`] does, in an order used for measuring, and returns the cost of each stage.
    /// `clock` returns ticks and never goes back.
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
        self.begin_batch(now, frames, out);
        let call = call(now, view, out, StageCosts::new(order, clock));
        let costs = Stages::new(&mut self.parts, call, frames, &mut self.hashes).run_measured(order);
        self.end_batch(frames);
        costs
    }

    fn begin_batch(&mut self, now: Instant, frames: &[Frame<'_>], out: &mut Output) {
        assert!(frames.len() <= self.hashes.len(), "a batch is {} packets at most", self.hashes.len());
        self.begin(out);
        if let Some(core) = &mut self.parts.core {
            core.fingerprints.sweep(now.0);
        }
    }

    /// Writes the changes that had to wait while views borrowed the frames.
    fn end_batch(&mut self, frames: &mut [Frame<'_>]) {
        for (frame, offset, value) in self.parts.scratch.hop_limits.drain(..) {
            let Frame { headers, packet, .. } = &mut frames[usize::from(frame)];
            packet[usize::from(headers.lead_bytes) + offset as usize] = value;
        }
    }

    /// Invalidates everything that the last batch's verdicts referred to.
    fn begin(&mut self, out: &mut Output) {
        out.clear();
        self.parts.counters.begin();
        self.parts.tables.pit_cs.end_of_batch();
    }

    /// The bytes of a packet to be sent. `frames` and `out` must be those of the call that decided it.
    pub fn packet<'a>(&'a self, frames: &'a [Frame<'_>], out: &'a Output, packet: PacketRef) -> &'a [u8] {
        match packet {
            PacketRef::Frame(index) => {
                let frame = &frames[usize::from(index)];
                frame.headers.packet(frame.packet)
            }
            PacketRef::AnnouncedFrame(index) => frames[usize::from(index)].packet,
            PacketRef::Rewritten { .. } => out.rewritten(packet).unwrap_or_default(),
            PacketRef::Stored(id) => self.parts.tables.pit_cs.cs(id).data(),
        }
    }
}

/// What happens without a packet.
impl Engine {
    /// When [`Engine::run_timers`] must be called; may be early, never late.
    pub fn next_deadline(&self) -> Option<Instant> {
        let Parts { tables, measurements, .. } = &self.parts;
        let deadlines_ns = [tables.next_deadline_ns(), measurements.next_deadline_ns()];
        deadlines_ns.into_iter().flatten().min().map(Instant)
    }

    /// Serves due timers: at most 1,024, looking at 4,096 at most. Call again while [`Engine::next_deadline`] is not
    /// after `now`.
    pub fn run_timers(&mut self, now: Instant, view: &View<'_>, out: &mut Output) {
        self.begin(out);
        timers::run_timers(&mut self.parts, &mut call(now, view, out, Unmeasured));
    }

    /// FIB entries gained next hops: `gained`, in ascending order. Pending Interests that use these entries are sent
    /// there, at most 1,024. Cost: one pass over the PIT.
    pub fn new_next_hops(&mut self, now: Instant, view: &View<'_>, gained: &[(NameBuf, FaceId)], out: &mut Output) {
        self.begin(out);
        new_next_hops::new_next_hops(&mut self.parts, &mut call(now, view, out, Unmeasured), gained);
    }

    /// Removes closed faces, given in ascending order, from all pending Interests. True if [`Engine::faces_down`] must
    /// be called for the same faces, because more Interests are to be sent.
    pub fn faces_removed(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        self.begin(out);
        face_changes::faces_removed(&mut self.parts, &mut call(now, view, out, Unmeasured), faces)
    }

    /// The links of `faces`, in ascending order, went down (the face table says so already). Interests that wait for
    /// these faces alone go to other next hops. True if it must be called again, because more are to be sent.
    pub fn faces_down(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        self.begin(out);
        face_changes::faces_down(&mut self.parts, &mut call(now, view, out, Unmeasured), faces)
    }

    /// The links of `faces`, in ascending order, came up again. Interests that wait for no answer are sent there, if
    /// that is a next hop of theirs. True if it must be called again, because more are to be sent.
    pub fn faces_up(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        self.begin(out);
        face_changes::faces_up(&mut self.parts, &mut call(now, view, out, Unmeasured), faces)
    }
}

/// Settings that can change at run time.
impl Engine {
    /// Changes the order of the stages from the next batch on.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.parts.config.schedule = schedule;
    }

    /// Uses the flow cache from the next batch on, or does not.
    pub fn turn_flow_cache(&mut self, is_on: bool) {
        self.parts.flows.turn(is_on);
    }

    /// Changes the limits of the Content Store and evicts what no longer fits. If the kernel does not map the memory to
    /// grow, the former limits stay, and [`LimitMet::CsCapacityNotChanged`] counts it.
    pub fn configure_cs(&mut self, capacity_bytes: u64, capacity_packets: u64, admit: bool, serve: bool) {
        let Parts { config, tables, counters, .. } = &mut self.parts;
        if tables.pit_cs.cs_set_capacity(capacity_bytes, capacity_packets).is_err() {
            counters.meet(LimitMet::CsCapacityNotChanged);
        }
        tables.pit_cs.end_of_batch();
        (config.cs_admit, config.cs_serve) = (admit, serve);
    }

    /// Changes the policy of the Content Store; everything stays stored. Visits every entry.
    ///
    /// # Errors
    /// If the kernel does not map the policy's memory; then the former one stays, and
    /// [`LimitMet::CsPolicyNotChanged`] counts it.
    pub fn set_cs_policy(&mut self, policy: CsPolicy) -> io::Result<()> {
        let former = self.parts.tables.pit_cs.cs_policy().name();
        if let Err(error) = self.parts.tables.pit_cs.cs_set_policy(policy) {
            self.parts.counters.meet(LimitMet::CsPolicyNotChanged);
            return Err(error);
        }
        let counted = self.cs_counts();
        self.parts.cs_counting.note_policy_change(former, counted);
        Ok(())
    }

    /// Counts from now on what the Content Store does for names under these prefixes, at most
    /// [`MAX_COUNTED_PREFIXES`](crate::MAX_COUNTED_PREFIXES). Prefixes that were counted before keep their counts.
    pub fn count_cs_prefixes(&mut self, prefixes: &[NameBuf]) {
        let Parts { tables, cs_counting, .. } = &mut self.parts;
        cs_counting.count_prefixes(tables.pit_cs.key(), prefixes);
    }

    /// Erases at most `limit` Data under `prefix` from the Content Store, looking at `visits` slots from `start` (at
    /// first 0) on. Returns how many were erased, and where to continue if slots are left.
    pub fn erase_cs_step(&mut self, prefix: Name<'_>, limit: usize, start: u32, visits: u32) -> (usize, Option<u32>) {
        let cs = &mut self.parts.tables.pit_cs;
        let step = cs.cs_erase_prefix_step(prefix.value(), limit, start, visits);
        cs.end_of_batch();
        step
    }

    /// Shows stored Data, each with the milliseconds for which it is still fresh: those of `visits` slots from `start`
    /// (at first 0) on. Returns where to continue if slots are left.
    pub fn stored_step(&self, now: Instant, start: u32, visits: u32, mut each: impl FnMut(&[u8], u64)) -> Option<u32> {
        self.parts.tables.pit_cs.cs_each_step(start, visits, |entry| {
            let fresh_ns = entry.fresh_until_ns().saturating_sub(now.0);
            each(entry.data(), fresh_ns / 1_000_000);
        })
    }

    /// Stores Data that another process had stored, unless Data of its name came since. False if it was refused or is
    /// no Data. Counts nothing.
    pub fn store_again(&mut self, now: Instant, data: &[u8], fresh_ms: u64) -> bool {
        let Ok(data) = Data::parse(data) else { return false };
        let cs = &mut self.parts.tables.pit_cs;
        let name = data.name();
        let hashes = &mut self.hashes[0];
        if !self.parts.config.cs_admit || hashes.compute(cs.key(), name.value()).is_err() {
            return false;
        }
        let found = cs.find(hashes.full_hash(), name.value());
        let is_there = found.and_then(|group| cs.cs_lookup(group)).is_some_and(|hit| hit.direct);
        if is_there {
            return false;
        }
        let fresh_until_ns = if fresh_ms == 0 { 0 } else { now.plus_ms(fresh_ms).0 };
        let arrival = CsArrival { fresh_until_ns, now_ns: now.0, requests: 1, unsolicited: false };
        let inserted = cs.cs_insert_found(found, (hashes.full_hash(), name.value()), data.wire(), arrival);
        cs.end_of_batch();
        inserted.id().is_some()
    }
}

/// What the engine holds and has counted.
impl Engine {
    /// What this engine has counted, and its tables.
    pub fn counters(&self) -> Counters {
        let Parts { tables, measurements, .. } = &self.parts;
        let mut counters = *self.parts.counters;
        let mut set = |limit: LimitMet, count| counters.limits[limit as usize] = count;
        set(LimitMet::CsEvicted, tables.pit_cs.cs_evictions());
        set(LimitMet::CsNameNotOrdered, tables.pit_cs.cs_unordered_names());
        set(LimitMet::DeadNonceForgotten, tables.dead_nonces.evicted_early());
        set(LimitMet::MeasurementEvicted, measurements.evicted());
        set(LimitMet::NextHopNotMeasured, measurements.next_hops_refused());
        set(LimitMet::UpstreamNotTimed, tables.upstream_times.refused());
        counters
    }

    /// The packets that the last call dropped, valid until the next one.
    pub fn drop_notes(&self) -> &[DropNote] {
        self.parts.counters.notes()
    }

    /// What is pending for a name now, and the stored Data that would answer it. Changes nothing.
    pub fn name_state(&self, now: Instant, name: Name<'_>) -> NameState {
        let state = NameState::of(&self.parts.tables, now, name);
        match self.parts.config.cs_serve {
            true => state,
            false => NameState { stored: None, stored_under: None, ..state },
        }
    }

    /// What the strategy of a name would do with a new Interest now. Changes nothing.
    pub fn foresee(&self, now: Instant, view: &View<'_>, name: Name<'_>, found: &FibMatch<'_>) -> Foresight {
        let prefix = &name.value()[..found.prefix_bytes.min(name.value().len())];
        let prospect = Prospect {
            now,
            faces: view.faces,
            scope: NameScope::of(name.value()),
            next_hops: found.nexthops,
            prefix_hash: hash_name(self.parts.tables.pit_cs.key(), prefix),
            measurements: &self.parts.measurements,
        };
        view.strategies.get(found.strategy).foresee(&prospect)
    }

    /// What this engine has measured of each face that it sent Interests to.
    pub fn upstream_times(&self) -> impl ExactSizeIterator<Item = &UpstreamTime> {
        self.parts.tables.upstream_times.iter()
    }

    /// Adapts the sampling of answers to the load. Call it every [`UPSTREAM_PERIOD_MS`](crate::UPSTREAM_PERIOD_MS).
    pub fn end_of_upstream_period(&mut self) {
        self.parts.tables.upstream_times.end_of_period();
    }

    /// Samples answers as seldom as a worker that has been busy for a second: for measurements of an engine alone, in
    /// which no periods end.
    pub fn expect_load(&mut self) {
        self.parts.tables.upstream_times.expect_load();
    }

    /// Overwrites `report` with what this engine has counted of its Content Store. The report keeps its memory.
    pub fn cs_report(&self, report: &mut CsReport) {
        let cs = &self.parts.tables.pit_cs;
        report.policy_bytes = cs.cs_policy_bytes() as u64;
        report.prefix_lookup = cs.cs_prefix_lookup();
        report.prefix_index_bytes = cs.cs_prefix_index_bytes() as u64;
        (report.capacity_bytes, report.capacity_packets) = cs.cs_capacity();
        self.parts.cs_counting.report(cs.cs_policy().name(), self.cs_counts(), report);
    }

    fn cs_counts(&self) -> CsCounts {
        let Parts { tables, counters, .. } = &self.parts;
        CsCounts {
            hits: counters.cs_hits,
            misses: counters.cs_misses,
            insertions: counters.cs_insertions,
            not_admitted: counters.cs_not_admitted,
            evictions: tables.pit_cs.cs_evictions(),
        }
    }

    /// Number of fingerprints kept for pending Interests, perhaps with expired ones among them.
    pub fn fingerprints_len(&self) -> u64 {
        self.parts.core.as_ref().map_or(0, |core| core.fingerprints.occupied())
    }

    /// Number of Interests pending by name.
    pub fn pit_len(&self) -> usize {
        self.parts.tables.pit_cs.pit_len()
    }

    /// Number of pending entries that are answered and only wait for further answers. Cost: a pass over the PIT.
    pub fn pit_answered_len(&self) -> usize {
        let tables = &self.parts.tables;
        tables.pit_cs.pit_iter_ids().filter(|&id| tables.state(id).satisfied).count()
    }

    /// Number of names in the composite index.
    pub fn name_groups(&self) -> usize {
        self.parts.tables.pit_cs.group_len()
    }

    /// Number of prefixes that strategies have measured.
    pub fn measurements_len(&self) -> usize {
        self.parts.measurements.len()
    }

    /// Number of stored Data.
    pub fn cs_len(&self) -> usize {
        self.parts.tables.pit_cs.cs_len()
    }

    /// Bytes of the Content Store in use, as accounted.
    pub fn cs_bytes(&self) -> u64 {
        self.parts.tables.pit_cs.cs_bytes()
    }
}

fn call<'v, 'o, C: PartClock>(now: Instant, view: &View<'v>, out: &'o mut Output, clock: C) -> Call<'v, 'o, C> {
    let View { fib, strategies, faces } = *view;
    let outbound = Outbound { now, faces, announcements: strategies.announcements(), out };
    Call { fib, strategies, outbound, clock }
}

#[cfg(test)]
mod tests {
    use crate::{
        Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, Instant, Output, StrategyTable,
        View,
        dispatch::{Dispatcher, visits::Visits},
    };
    use namewire_packet::{Component, InterestBuilder, NameBuf, lp::LpHeaders, tlv::types};
    use namewire_shares::Groups;
    use namewire_tables::{Fib, HashKey, NextHop};

    /// A counter that was never lowered would cost every later Data of that length a look-up, or a SHA-256.
    #[test]
    fn pending_names_are_counted_down_when_entries_end() {
        let key = HashKey::from_seed(1);
        let dispatcher = Dispatcher::new(1, key).into();
        let mut engine = Engine::new(EngineConfig::default(), 0, dispatcher, key, 1, &Groups::default()).unwrap();
        let (mut fib, mut faces, strategies) = (Fib::new(10, key), FaceTable::default(), StrategyTable::default());
        faces.insert(FaceId(300), FaceAttributes::new(FaceScope::NonLocal, 0, false));
        fib.insert(&[], &[NextHop { face: 1, cost: 0 }], 0, false).unwrap();
        let view = View { fib: fib.view(), strategies: &strategies, faces: &faces };
        let name: NameBuf = "/a".parse().unwrap();
        let digest = name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] });
        let mut out = Output::default();
        for wire in [InterestBuilder::new(&name).can_be_prefix(true), InterestBuilder::new(&digest)] {
            let mut wire = wire.build();
            let (face, headers) = (FaceId(300), LpHeaders::default());
            let mut frames = [Frame { face, headers, packet: &mut wire, visits: Visits::default() }];
            engine.process(Instant(0), &view, &mut frames, &mut out);
        }
        let tables = &engine.parts.tables;
        assert!(tables.has_pending_prefixes(Some(1)) && tables.has_pending_digests(2));
        engine.run_timers(Instant::default().plus_ms(5000), &view, &mut out);
        assert!(engine.parts.tables.is_nothing_pending());
    }
}
