//! One batch: packets in, verdicts out.
//!
//! The stages of a batch and their order are [`crate::schedule`]'s: decode and hash,
//! prefetch, and last the pipelines, which act in arrival order (the same name can
//! occur twice in a batch, and the second packet must see what the first did).

use crate::{
    Counters, DropReason, EngineConfig, FaceTable, Instant, LimitMet, PitRole, Schedule, StrategyTable,
    core_role::CoreRole,
    cs_counts::{CountedPrefixes, FormerPolicies},
    dispatch::{Dispatcher, Round, WorkerToken},
    incoming_data::MAX_MATCHES,
    measurements::Measurements,
    pit_state::{MAX_RECORDS, PitState, Records},
    route_request::{ROUTE_REQUESTS_MAX, RouteRequest},
    schedule::measured::StageCosts,
};
use hashbrown::HashSet;
use namewire_packet::{
    Data, FaceId, Interest, MAX_PACKET_BYTES, NackReason, Name,
    lp::{LpHeaders, PitToken},
    tlv::types,
};
use namewire_tables::{
    CsId, DeadNonceList, FibView, GroupId, HashKey, NameHashes, PitCs, PitCsConfig, PitId, TimerWheel,
    dead_nonce_list::DEFAULT_LIFETIME_NS,
};
use std::{io, sync::Arc};

/// Most packets of one call, and the number of packets whose cache misses are hidden
/// behind each other.
pub const BATCH_PACKETS: usize = 64;

/// Tick of the timers: Interests expire at most this much late.
const TIMER_TICK_NS: u64 = 4_000_000;
/// Slots of the timer wheel: one turn is 8 s, twice the default InterestLifetime.
const TIMER_SLOTS: usize = 2048;

/// A network packet lent to the engine for one batch.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The face that received it.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// The Interest or Data, with its announcement in front if the headers say so. HopLimit is patched in place.
    pub packet: &'a mut [u8],
    /// The workers still to be visited; of Data, whether it answered an Interest at an earlier one.
    pub round: Round,
}

/// Where the octets of a packet to be sent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRef {
    /// In the frame with this index of the batch.
    Frame(u16),
    /// Likewise, with the announcement that came in front of it.
    AnnouncedFrame(u16),
    /// In [`Output`]: a packet the engine had to rewrite.
    Rewritten {
        /// First octet.
        start: u32,
        /// Number of octets.
        length: u32,
    },
    /// In the Content Store, readable until the next batch begins.
    Stored(CsId),
}

/// One packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// The face to send through.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// Its octets: see [`Engine::packet`].
    pub packet: PacketRef,
}

/// A packet for the next worker.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    /// Its frame, by index.
    pub frame: u16,
    /// Who is left.
    pub round: Round,
}

/// What the engine decided. Reused from batch to batch. Has room for as many verdicts as a
/// batch usually gives; a crowd of downstreams makes it grow, once, at most to a verdict for
/// each record that the PIT has room for and each next hop of the batch's Interests.
#[derive(Debug)]
pub struct Output {
    /// Packets to be sent, in order.
    pub transmits: Vec<Transmit>,
    /// Packets that other workers must see too: to be given, with all their headers, to the
    /// next one of its round ([`Round::take`]).
    pub hand_over: Vec<HandOver>,
    /// What strategies learned of routes; nearly always nothing.
    pub route_requests: Vec<RouteRequest>,
    pub(crate) rewritten: Vec<u8>,
}

/// Verdicts that [`Output`] has room for at first: address space, memory only as it is used.
const OUTPUT_TRANSMITS: usize = 64 * BATCH_PACKETS;
/// Octets of Nacks and re-sent Interests that one call may write before it writes no more:
/// those for the 1,024 downstreams of one entry, at full size, take 9 MB. Unlimited, a batch
/// of 64 Nacks came to 577 MB.
const REWRITTEN_BYTES_MAX: usize = 16 << 20;
/// Room for these, for the one that goes beyond (Data with an announcement is two packets), and for arriving Interests that need a
/// nonce (8 octets, and 4 for longer TLV-LENGTHs). Address space, likewise.
const OUTPUT_REWRITTEN_BYTES: usize = REWRITTEN_BYTES_MAX + (2 + BATCH_PACKETS) * (MAX_PACKET_BYTES + 12);

impl Default for Output {
    fn default() -> Self {
        Output {
            transmits: Vec::with_capacity(OUTPUT_TRANSMITS),
            hand_over: Vec::with_capacity(BATCH_PACKETS),
            route_requests: Vec::with_capacity(ROUTE_REQUESTS_MAX),
            rewritten: Vec::with_capacity(OUTPUT_REWRITTEN_BYTES),
        }
    }
}

impl Output {
    fn clear(&mut self) {
        self.transmits.clear();
        self.hand_over.clear();
        self.route_requests.clear();
        self.rewritten.clear();
    }

    pub(crate) fn is_full_of_rewritten(&self) -> bool {
        self.rewritten.len() >= REWRITTEN_BYTES_MAX
    }

    /// Lets `write` append a packet and refers to it.
    pub(crate) fn rewrite(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> PacketRef {
        let start = self.rewritten.len();
        write(&mut self.rewritten);
        PacketRef::Rewritten { start: start as u32, length: (self.rewritten.len() - start) as u32 }
    }
}

/// The shared tables, as they are during one batch.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Next hops and strategy of every prefix.
    pub fib: FibView<'a>,
    /// Strategies by number.
    pub strategies: &'a StrategyTable,
    /// Attributes of every face.
    pub faces: &'a FaceTable,
}

/// What one call works with, beside the engine itself.
pub(crate) struct Pass<'v, 'o> {
    pub(crate) now: Instant,
    pub(crate) view: View<'v>,
    pub(crate) out: &'o mut Output,
}

impl Pass<'_, '_> {
    /// Size of a packet that the engine rewrote; 0 for one that it did not.
    pub(crate) fn octets_rewritten(&self, packet: PacketRef) -> usize {
        match packet {
            PacketRef::Rewritten { length, .. } => length as usize,
            _ => 0,
        }
    }
}

/// A packet of the batch, checked.
pub(crate) enum Decoded<'a> {
    Interest(Interest<'a>),
    Nack(NackReason, Interest<'a>),
    Data(Data<'a>),
    Refused(DropReason),
}

/// Where a packet of the batch came from.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'f> {
    pub(crate) index: u16,
    pub(crate) face: FaceId,
    pub(crate) headers: &'f LpHeaders,
    /// The octets that carry it: see [`LpHeaders::packet`].
    pub(crate) carried: &'f [u8],
    pub(crate) round: Round,
}

/// One complete forwarder for its share of the names.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) worker: u8,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) tables: PitCs<PitState>,
    pub(crate) records: Records,
    pub(crate) timers: TimerWheel,
    pub(crate) dead_nonces: DeadNonceList,
    pub(crate) rng: fastrand::Rng,
    pub(crate) counters: Counters,
    pub(crate) former_policies: FormerPolicies,
    pub(crate) counted_prefixes: CountedPrefixes,
    pub(crate) pending: PendingNames,
    /// Only in the core role.
    pub(crate) core: Option<Box<CoreRole>>,
    /// What strategies remember beyond one PIT entry.
    pub(crate) measurements: Measurements,
    /// HopLimit octets to be written once no view borrows the frames: (frame, offset, value).
    pub(crate) hop_limits: Vec<(u16, u32, u8)>,
    /// An Interest being copied into the PIT.
    pub(crate) interest_copy: Vec<u8>,
    /// Downstreams that the Data at hand was sent to, where several entries ask for it.
    pub(crate) served: HashSet<(FaceId, Option<PitToken>)>,
    /// Pending entries that the Data at hand satisfies.
    pub(crate) matches: Vec<PitId>,
    /// A name being made or moved.
    pub(crate) name_copy: Vec<u8>,
    /// The prefix of a delegation that the Interest at hand goes by.
    pub(crate) hint_prefix: Vec<u8>,
    /// Downstreams being told the same.
    pub(crate) faces_to_tell: Vec<FaceId>,
    /// Pending entries that a change of faces or next hops concerns. Room for all of them:
    /// address space, memory only as it is used.
    pub(crate) entries_to_visit: Vec<PitId>,
    /// Prefixes under the dispatcher's key.
    pub(crate) dispatch_hashes: NameHashes,
    /// Prefixes of a delegation, or of a name that did not just arrive.
    pub(crate) name_hashes: NameHashes,
    hashes: Vec<NameHashes>,
    /// What the batch at hand took so far, if it is measured.
    pub(crate) stage_costs: StageCosts,
}

/// How many pending names of each length need a look-up of their own when Data
/// comes: those that CanBePrefix or an implicit digest makes reachable from another name.
#[derive(Debug, Default)]
pub(crate) struct PendingNames {
    pub(crate) prefixes: Vec<u32>,
    /// The sum of `prefixes`.
    pub(crate) prefixes_total: u32,
    pub(crate) digests: Vec<u32>,
}

impl Engine {
    /// An engine with empty tables. `key` must be the key of the FIB it will be
    /// shown; `worker` is its number among the dispatcher's workers.
    ///
    /// # Errors
    /// If the kernel does not map the memory that the tables may need.
    pub fn new(
        config: EngineConfig,
        worker: u8,
        dispatcher: Arc<Dispatcher>,
        key: HashKey,
        seed: u64,
    ) -> io::Result<Self> {
        assert!(usize::from(worker) < dispatcher.workers());
        let tables = PitCs::new(
            PitCsConfig {
                pit_capacity_entries: config.pit_capacity_entries,
                interest_overflow_bytes: config.interest_overflow_bytes,
                cs_capacity_bytes: config.cs_capacity_bytes,
                cs_capacity_packets: config.cs_capacity_packets,
                cs_policy: config.cs_policy,
                cs_prefix_lookup: config.cs_prefix_lookup,
                pages: config.pages,
            },
            key,
        )?;
        let records = Records::new(config.record_capacity, config.pages)?;
        let entries_to_visit = Vec::with_capacity(tables.pit_capacity_entries() as usize);
        let timers = TimerWheel::new(TIMER_TICK_NS, TIMER_SLOTS, tables.pit_capacity_entries(), config.pages)?;
        let measurements = Measurements::new(config.measurement_capacity, config.pages.for_sparse())?;
        let dead_nonces = DeadNonceList::new(config.dead_nonce_capacity, DEFAULT_LIFETIME_NS, key, config.pages)?;
        let mut rng = fastrand::Rng::with_seed(seed);
        let core = match &config.pit_role {
            PitRole::Edge => None,
            PitRole::Core(core) => Some(Box::new(CoreRole::new(core, config.pages, rng.u64(..))?)),
        };
        let counted = config.cs_counted_prefixes.clone();
        let mut engine = Engine {
            config,
            worker,
            dispatcher,
            tables,
            records,
            timers,
            dead_nonces,
            rng,
            counters: Counters::default(),
            former_policies: FormerPolicies::default(),
            counted_prefixes: CountedPrefixes::default(),
            measurements,
            pending: PendingNames {
                prefixes: vec![0; namewire_tables::MAX_NAME_COMPONENTS + 1],
                prefixes_total: 0,
                digests: vec![0; namewire_tables::MAX_NAME_COMPONENTS + 1],
            },
            core,
            hop_limits: Vec::with_capacity(BATCH_PACKETS),
            interest_copy: Vec::with_capacity(2 * MAX_PACKET_BYTES),
            served: HashSet::with_capacity(2 * MAX_RECORDS),
            matches: Vec::with_capacity(MAX_MATCHES),
            name_copy: Vec::with_capacity(2 * MAX_PACKET_BYTES),
            hint_prefix: Vec::with_capacity(MAX_PACKET_BYTES),
            faces_to_tell: Vec::with_capacity(MAX_RECORDS),
            entries_to_visit,
            dispatch_hashes: NameHashes::with_full_room(),
            name_hashes: NameHashes::with_full_room(),
            hashes: (0..BATCH_PACKETS).map(|_| NameHashes::with_full_room()).collect(),
            stage_costs: StageCosts::NONE,
        };
        engine.count_cs_prefixes(&counted);
        Ok(engine)
    }

    /// Decides a batch of at most [`BATCH_PACKETS`] packets. The verdicts replace
    /// what `out` held; they are valid until the next call.
    ///
    /// # Panics
    /// If the batch is larger.
    pub fn process(&mut self, now: Instant, view: &View<'_>, frames: &mut [Frame<'_>], out: &mut Output) {
        self.process_in_order(now, view, frames, out, Self::run_schedule);
    }

    /// What stands around the stages of a batch; `run` brings them into an order.
    #[inline]
    pub(crate) fn process_in_order<'v>(
        &mut self,
        now: Instant,
        view: &View<'v>,
        frames: &mut [Frame<'_>],
        out: &mut Output,
        run: impl FnOnce(&mut Self, &mut Pass<'v, '_>, &[Frame<'_>], &mut [NameHashes]),
    ) {
        assert!(frames.len() <= BATCH_PACKETS, "a batch is {BATCH_PACKETS} packets at most");
        self.begin(out);
        if let Some(core) = &mut self.core {
            core.fingerprints.sweep(now.0);
        }
        let mut hashes = std::mem::take(&mut self.hashes);
        let mut pass = Pass { now, view: *view, out };
        run(self, &mut pass, frames, &mut hashes);
        self.hashes = hashes;
        for (frame, offset, value) in self.hop_limits.drain(..) {
            frames[usize::from(frame)].packet[offset as usize] = value;
        }
    }

    /// Ends the life of everything the last batch's verdicts referred to.
    pub(crate) fn begin(&mut self, out: &mut Output) {
        out.clear();
        self.tables.end_of_batch();
    }

    /// The octets of a packet to be sent. `frames` and `out` are those of the call
    /// that said so.
    pub fn packet<'a>(&'a self, frames: &'a [Frame<'_>], out: &'a Output, packet: PacketRef) -> &'a [u8] {
        match packet {
            PacketRef::Frame(index) => {
                let frame = &frames[usize::from(index)];
                frame.headers.packet(frame.packet)
            }
            PacketRef::AnnouncedFrame(index) => frames[usize::from(index)].packet,
            PacketRef::Rewritten { start, length } => &out.rewritten[start as usize..(start + length) as usize],
            PacketRef::Stored(id) => self.tables.cs(id).data(),
        }
    }

    /// Changes the order of the stages, from the next batch on.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.config.schedule = schedule;
    }

    /// What this engine has counted, and its tables.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.limits[LimitMet::CsEvicted as usize] = self.tables.cs_evictions();
        counters.limits[LimitMet::CsNameNotOrdered as usize] = self.tables.cs_unordered_names();
        counters.limits[LimitMet::DeadNonceForgotten as usize] = self.dead_nonces.evicted_early();
        counters.limits[LimitMet::MeasurementEvicted as usize] = self.measurements.evicted();
        counters.limits[LimitMet::NextHopNotMeasured as usize] = self.measurements.next_hops_refused();
        counters
    }

    /// Number of fingerprints kept for pending Interests; expired ones may be among them.
    pub fn fingerprints_len(&self) -> u64 {
        self.core.as_ref().map_or(0, |core| core.fingerprints.occupied())
    }

    /// Number of Interests pending by name.
    pub fn pit_len(&self) -> usize {
        self.tables.pit_len()
    }

    /// Number of those that are answered and only wait for further answers. Cost: a walk over the PIT.
    pub fn pit_answered_len(&self) -> usize {
        self.tables.pit_iter_ids().filter(|&id| self.tables.pit(id).state.satisfied).count()
    }

    /// Number of names in the composite index.
    pub fn name_groups(&self) -> usize {
        self.tables.group_len()
    }

    /// Number of prefixes that strategies have measured.
    pub fn measurements_len(&self) -> usize {
        self.measurements.len()
    }

    /// Number of stored Data.
    pub fn cs_len(&self) -> usize {
        self.tables.cs_len()
    }

    /// Octets of the Content Store in use, as accounted.
    pub fn cs_bytes(&self) -> u64 {
        self.tables.cs_bytes()
    }

    /// Changes the limits of the Content Store; what no longer fits is evicted. If the kernel does not
    /// map the memory they grow no further than they were, and [`LimitMet::CsCapacityNotChanged`] counts it.
    pub fn configure_cs(&mut self, capacity_bytes: u64, capacity_packets: u64, admit: bool, serve: bool) {
        if self.tables.cs_set_capacity(capacity_bytes, capacity_packets).is_err() {
            self.counters.meet(LimitMet::CsCapacityNotChanged);
        }
        self.tables.end_of_batch();
        (self.config.cs_admit, self.config.cs_serve) = (admit, serve);
    }

    /// Erases at most `limit` Data under `prefix` from the Content Store, looking at `visits`
    /// slots from `start` (first 0) on. Gives how many, and where to go on if slots are left.
    pub fn erase_cs_step(&mut self, prefix: Name<'_>, limit: usize, start: u32, visits: u32) -> (usize, Option<u32>) {
        let step = self.tables.cs_erase_prefix_step(prefix.value(), limit, start, visits);
        self.tables.end_of_batch();
        step
    }

    pub(crate) fn token(&self, group: GroupId) -> Option<namewire_packet::lp::PitToken> {
        WorkerToken { worker: self.worker, group: self.tables.token(group) }.encode()
    }
}

pub(crate) fn decode<'f>(frame: &'f Frame<'_>) -> Decoded<'f> {
    let packet = frame.headers.packet(frame.packet);
    if packet.len() > namewire_packet::MAX_PACKET_BYTES {
        return Decoded::Refused(DropReason::Malformed);
    }
    let first = packet.first().map_or(0, |&octet| u32::from(octet));
    let decoded = match (first, frame.headers.nack) {
        (types::INTEREST, None) => Interest::parse(packet).map(Decoded::Interest),
        (types::INTEREST, Some(reason)) => Interest::parse(packet).map(|interest| Decoded::Nack(reason, interest)),
        // NDNLPv2 §2: a Nack header belongs to an Interest only.
        (_, Some(_)) => return Decoded::Refused(DropReason::Malformed),
        _ => Data::parse(packet).map(Decoded::Data),
    };
    decoded.unwrap_or(Decoded::Refused(DropReason::Malformed))
}
