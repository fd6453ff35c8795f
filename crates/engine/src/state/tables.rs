//! Tables: PIT and Content Store, with the records, the timer and the dead nonces of PIT entries.
//!
//! This file sets the timers of PIT entries and ends the entries (NFD's developer guide §4.2, "Interest Finalize").
//! Writer: the engine's worker.

use crate::{
    Counters, EngineConfig, FaceTable, Instant,
    dispatch::{Dispatcher, token::WorkerToken},
    state::{
        pit_shares::PitCapacities,
        pit_state::{OutRecord, PitState, Rare, Records},
        upstream_times::UpstreamTimes,
    },
};
use namewire_packet::FaceId;
use namewire_shares::{Groups, PoolReader};
use namewire_tables::{
    DeadNonceList, GroupId, HashKey, MAX_NAME_COMPONENTS, PitCs, PitCsConfig, PitId, TimerWheel,
    dead_nonce_list::DEFAULT_LIFETIME_NS,
};
use std::{io, sync::Arc};

/// Tick of the timers: Interests expire at most this much late.
const TIMER_TICK_NS: u64 = 4_000_000;
/// Slots of the timer wheel: one turn is 8 s, twice the default InterestLifetime.
const TIMER_SLOTS: usize = 2048;

/// See the module.
pub(crate) struct Tables {
    pub(crate) pit_cs: PitCs<PitState>,
    pub(crate) records: Records,
    pub(crate) timers: TimerWheel,
    pub(crate) dead_nonces: DeadNonceList,
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// Our number among the dispatcher's workers.
    pub(crate) worker: u8,
    pub(crate) upstream_times: UpstreamTimes,
    pending: PendingNames,
}

/// How many pending names of each length need a look-up of their own when Data arrives: names that match Data of
/// another name, because of CanBePrefix or an implicit digest.
#[derive(Debug)]
struct PendingNames {
    prefixes: Vec<u32>,
    /// The sum of `prefixes`.
    prefixes_total: u32,
    digests: Vec<u32>,
}

impl Tables {
    /// # Errors
    /// If the kernel does not map the memory that the tables may need.
    pub(crate) fn new(
        config: &EngineConfig,
        worker: u8,
        dispatcher: Arc<Dispatcher>,
        key: HashKey,
        groups: &Groups,
    ) -> io::Result<Self> {
        let pit_cs = PitCs::new(
            PitCsConfig {
                pit_capacity_entries: config.pit_capacity_entries,
                interest_overflow_bytes: config.interest_overflow_bytes,
                cs_capacity_bytes: config.cs_capacity_bytes,
                cs_capacity_packets: config.cs_capacity_packets,
                cs_policy: config.cs_policy.clone(),
                cs_prefix_lookup: config.cs_prefix_lookup,
                pages: config.pages,
            },
            key,
        )?;
        let by_length = || vec![0; MAX_NAME_COMPONENTS + 1];
        let capacities = PitCapacities {
            entries: pit_cs.pit_capacity_entries().into(),
            further_records: config.record_capacity.into(),
            long_interest_bytes: config.interest_overflow_bytes,
        };
        Ok(Tables {
            records: Records::new(capacities, config.face_share_percent, groups, config.pages)?,
            timers: TimerWheel::new(TIMER_TICK_NS, TIMER_SLOTS, pit_cs.pit_capacity_entries(), config.pages)?,
            dead_nonces: DeadNonceList::new(config.dead_nonce_capacity, DEFAULT_LIFETIME_NS, key, config.pages)?,
            pit_cs,
            dispatcher,
            worker,
            upstream_times: UpstreamTimes::default(),
            pending: PendingNames { prefixes: by_length(), prefixes_total: 0, digests: by_length() },
        })
    }

    /// The engine's part of a PIT entry.
    #[inline]
    pub(crate) fn state(&self, entry: PitId) -> &PitState {
        &self.pit_cs.pit(entry).state
    }

    /// The engine's part of a PIT entry, to be changed, and the records that it leads to.
    #[inline]
    pub(crate) fn state_mut(&mut self, entry: PitId) -> (&mut PitState, &mut Records) {
        (&mut self.pit_cs.pit_mut(entry).state, &mut self.records)
    }

    /// The name of a PIT entry.
    #[inline]
    pub(crate) fn name_of(&self, entry: PitId) -> &[u8] {
        self.pit_cs.group_name(self.pit_cs.pit(entry).group())
    }

    /// The token by which Data finds this group.
    #[inline(always)]
    pub(crate) fn token(&self, group: GroupId) -> WorkerToken {
        WorkerToken { worker: self.worker, group: self.pit_cs.token(group) }
    }

    /// How many entries the PIT still has room for.
    pub(crate) fn free_entries(&self) -> usize {
        (self.pit_cs.pit_capacity_entries() as usize).saturating_sub(self.pit_cs.pit_len())
    }

    /// Who holds how much of the PIT.
    pub(crate) fn pools(&self) -> [PoolReader; 4] {
        self.records.shares.readers()
    }

    /// Makes sure that an alarm comes at the next deadline of an entry, or earlier.
    #[inline(always)]
    pub(crate) fn arm(&mut self, entry: PitId) {
        let deadline = self.state(entry).deadline();
        self.timers.arm(entry.0, deadline.0);
    }

    /// When an entry may need attention; may be early, never late. Alarms of removed entries count only while some
    /// entry is pending.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        if self.pit_cs.pit_len() == 0 { None } else { self.timers.next_deadline() }
    }

    /// Whether CanBePrefix Interests are pending; with `components`, for names of this length.
    #[inline]
    pub(crate) fn has_pending_prefixes(&self, components: Option<usize>) -> bool {
        match components {
            Some(components) => self.pending.prefixes[components] > 0,
            None => self.pending.prefixes_total > 0,
        }
    }

    /// Whether Interests are pending whose names have this length and end in an implicit digest.
    #[inline]
    pub(crate) fn has_pending_digests(&self, components: usize) -> bool {
        self.pending.digests.get(components).is_some_and(|&pending| pending > 0)
    }

    /// Counts the entry among those that Data of another name can satisfy, before the Interest is sent. Only for a
    /// CanBePrefix Interest, or one that asks by digest; [`Tables::remove_entry`] counts it down.
    #[inline(never)]
    pub(crate) fn count_pending(&mut self, entry: PitId) {
        let pit = self.pit_cs.pit(entry);
        let components = usize::from(pit.state.components);
        if pit.variant().can_be_prefix() {
            self.pending.prefixes[components] += 1;
            self.pending.prefixes_total += 1;
            self.dispatcher.raise(self.pit_cs.group_name(pit.group()));
        }
        if pit.state.rare.has(Rare::BY_DIGEST) {
            self.pending.digests[components] += 1;
        }
    }

    /// What few entries need before they are removed.
    #[inline(never)]
    fn before_removal(&mut self, now: Instant, entry: PitId, keep_nonces: bool) {
        let pit = self.pit_cs.pit(entry);
        if keep_nonces {
            for record in self.records.upstreams(&pit.state) {
                self.dead_nonces.insert(pit.state.name_hash, record.nonce.to_u32(), now.0);
            }
        }
        let components = usize::from(pit.state.components);
        if pit.variant().can_be_prefix() {
            self.pending.prefixes[components] -= 1;
            self.pending.prefixes_total -= 1;
            self.dispatcher.lower(self.pit_cs.group_name(pit.group()));
        }
        if pit.state.rare.has(Rare::BY_DIGEST) {
            self.pending.digests[components] -= 1;
        }
        self.records.shares.long_interests.give_back(pit.state.holder, pit.state.long_bytes.into());
    }

    /// Data from this face satisfies an entry: notes how long it took.
    #[inline(never)]
    pub(crate) fn note_answer(&mut self, now: Instant, entry: PitId, from: FaceId) {
        let state = &self.pit_cs.pit(entry).state;
        let sent = self.records.upstreams(state).find(|record| record.face == from).map(|record| record.sent);
        if let Some(sent) = sent {
            self.upstream_times.answered(from, sent, now);
        }
    }

    /// An entry expires without Data: notes the faces that might have answered. The record of a face that has closed
    /// stays in its entry; counted, it would take a place for ever.
    pub(crate) fn note_silence(&mut self, faces: &FaceTable, entry: PitId) {
        let Tables { pit_cs, records, upstream_times, .. } = self;
        let might_answer =
            |record: &&OutRecord| record.nack.is_none() && !record.is_lost() && faces.get(record.face).is_some();
        let silent = records.upstreams(&pit_cs.pit(entry).state).filter(might_answer);
        silent.for_each(|record| upstream_times.unanswered(record.face));
    }

    /// Interest finalize without Data, or after the last pending answer.
    #[inline(never)]
    pub(crate) fn finalize_unsatisfied(&mut self, now: Instant, entry: PitId, counters: &mut Counters) {
        counters.unsatisfied += u64::from(!self.state(entry).satisfied);
        self.remove_entry(now, entry, true);
    }

    /// Removes an entry from PIT and pending counters. Its alarm still comes, and finds no entry or a later one.
    /// `keep_nonces`: the Interests sent upstream may still loop back.
    #[inline(always)]
    pub(crate) fn remove_entry(&mut self, now: Instant, entry: PitId, keep_nonces: bool) {
        let pit = self.pit_cs.pit(entry);
        if keep_nonces | pit.variant().can_be_prefix() | pit.state.rare.has(Rare::BY_DIGEST.and(Rare::LONG)) {
            self.before_removal(now, entry, keep_nonces);
        }
        let (state, records) = self.state_mut(entry);
        records.clear(state);
        self.pit_cs.pit_remove(entry);
    }

    /// Whether all pending counters are zero.
    #[cfg(test)]
    pub(crate) fn is_nothing_pending(&self) -> bool {
        self.pending.prefixes.iter().chain(&self.pending.digests).all(|&count| count == 0)
    }
}
