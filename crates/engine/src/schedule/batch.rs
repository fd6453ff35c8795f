//! In which order do the stages of a batch run, and what do they prefetch?
//!
//! Source: Takemasa19 §4.3-4.4.1 (the four schedules of the thesis) and our own. Every schedule runs the same stages.
//! Schedules differ only in the order of the stages and in the prefetches between them, and so in the wait for memory.
//! No schedule can change a verdict: the prefetching stages find only hints. The acting stage takes the packets in
//! arrival order and verifies each hint (`tests/random_packets.rs` compares all schedules with a scalar twin).
//!
//! | stage | per packet | then prefetches |
//! | --- | --- | --- |
//! | `decode_and_hash` (d) | the view of the packet, the hash of its name unless a PIT token identifies the group | |
//! | `prefetch_bucket` (b) | | the PIT/CS bucket, the name's state in the store's policy |
//! | `prefetch_fib_buckets` (f) | | for an Interest, all buckets of the FIB |
//! | `probe` (p) | tags in the PIT/CS bucket | name group |
//! | `probe_fib` (l) | for a new Interest, hashes of prefixes and tags in the FIB's buckets | the longest candidate |
//! | `probe_fib_together` (L) | d, b and l of the whole batch, in groups of packets: see `SteppedSearch` | the bucket, or the candidate |
//! | `prefetch_entries` (e) | the group's links | PIT entry, stored Data, timer |
//! | `victims` (v) | what the batch's Data will evict, one link a call | Content Store entry; group, index bucket and block |
//! | `act` (a) | the pipeline: everything else | |
//!
//! | schedule | order | paper |
//! | --- | --- | --- |
//! | `naive` | d0 a0 d1 a1 … | *Naive* |
//! | `bucket-prefetch` | d0 b0 f0 a0 d1 b1 f1 a1 … | *Bucket Prefetch* (So et al. 2013) |
//! | `pre-hash` | d0 b0 f0 d1 b1 f1 a0 a1, … | *Pre-Hash*: two packets at a time |
//! | `shtl` | d0 b0 f0 d1 b1 f1 v p0 l0 p1 l1 v a0 a1, … | *SHTL*: the same, with short-circuit evaluation |
//! | `vector` | L, v, then p8 v8 e4 a0 p9 v9 e5 a1 … | ours |
//!
//! The thesis handles two consecutive packets (§4.3.2): hashing and bucket checks of one overlap with the fetches of
//! the other. Short-circuit evaluation fetches only the longest FIB candidate, since it is nearly always the match.

use crate::{
    DropReason, Schedule,
    dispatch::token::WorkerToken,
    ground::{
        measured::{MeasuredOrder, PartClock, Stage, StageCosts},
        order::BATCH_PACKETS,
    },
    pipeline::{
        call::{Call, Hints, Received},
        data::incoming_data,
        frame::{Decoded, Frame, decode},
        interest::incoming_interest,
        nack::incoming_nack,
    },
    state::parts::Parts,
};
use arrayvec::ArrayVec;
use namewire_tables::{
    GroupToken, NameHashes, Probed,
    fib::{BatchLookUp, FibHint, Flow, FlowCache, MAX_SEARCHED_NAMES, SteppedTable, WholeBatchTable, steps},
};
use std::ops::Range;

/// One packet on its way through the stages.
struct Packet<'f, 'v> {
    decoded: Decoded<'f>,
    hints: Hints<'v>,
}

const _: () = assert!(BATCH_PACKETS <= MAX_SEARCHED_NAMES);

impl<'f> Packet<'f, '_> {
    /// The bytes of an Interest's name.
    fn interest_name(&self) -> Option<&'f [u8]> {
        match &self.decoded {
            Decoded::Interest(interest) => Some(interest.name().value()),
            _ => None,
        }
    }
}

/// The name group that the PIT token of this Data tells, if the token is ours.
#[inline(always)]
fn group_told(parts: &Parts, frame: &Frame<'_>) -> Option<GroupToken> {
    let token = WorkerToken::decode(frame.headers.pit_token.as_ref()?)?;
    (token.worker == parts.tables.worker).then_some(token.group)
}

/// The places of the bits that are set, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bits = std::num::NonZero::new(self.0)?;
        self.0 &= self.0 - 1;
        Some(bits.trailing_zeros() as usize)
    }
}

/// The packets of one call, in the order of arrival, and what their stages work on.
pub(crate) struct Stages<'e, 'f, 'b, 'v, 'o, C: PartClock> {
    parts: &'e mut Parts,
    call: Call<'v, 'o, C>,
    frames: &'f [Frame<'b>],
    packets: ArrayVec<Packet<'f, 'v>, BATCH_PACKETS>,
    /// One per packet; these buffers outlive the batch.
    hashes: &'e mut [NameHashes],
    /// One bit per packet: whether it is an Interest.
    interests: u64,
    /// One bit per packet: whether it is a Data that is not hashed, because a PIT token tells its name group.
    unhashed: u64,
    /// Whether Data with a PIT token of ours is not hashed.
    trusts_tokens: bool,
}

/// Packets between two stages of [`Schedule::Vector`].
///
/// N.B. Cycles per packet at quick scale, alternating runs on a shared machine: 4 apart 673 and 696, 3 apart 690, 2
/// apart 681. Every stage over 16, 32 or 64 packets before the next: 737, 749, 747. PIT and Content Store buckets
/// fetched one by one during decoding: 710; in groups of eight: 647 to 679; all after decoding: 734. Prefetching the
/// frames themselves gained nothing.
const AHEAD: usize = 4;

impl<'e, 'f, 'b, 'v, 'o, C: PartClock> Stages<'e, 'f, 'b, 'v, 'o, C> {
    /// No stage has run yet. `hashes` has an element per frame.
    pub(crate) fn new(
        parts: &'e mut Parts,
        call: Call<'v, 'o, C>,
        frames: &'f [Frame<'b>],
        hashes: &'e mut [NameHashes],
    ) -> Self {
        let trusts_tokens = !parts.wants_prefixes_of_data();
        Stages { parts, call, frames, packets: ArrayVec::new(), hashes, interests: 0, unhashed: 0, trusts_tokens }
    }

    /// Runs all stages in the order of the schedule.
    pub(crate) fn run(&mut self) {
        let count = self.frames.len();
        match self.parts.config.schedule {
            Schedule::Naive => self.run_naive(),
            Schedule::BucketPrefetch => {
                for packet in 0..count {
                    self.decode_and_hash();
                    self.prefetch_bucket(packet);
                    self.prefetch_fib_buckets(packet);
                    self.act(packet);
                }
            }
            Schedule::PreHash => self.run_in_pairs(false),
            Schedule::SpeculativeLookup => self.run_in_pairs(true),
            Schedule::Vector => self.run_vector(),
        }
    }

    fn run_naive(&mut self) {
        for packet in 0..self.frames.len() {
            self.decode_and_hash();
            self.act(packet);
        }
    }

    fn run_in_pairs(&mut self, is_speculative: bool) {
        let count = self.frames.len();
        for first in (0..count).step_by(2) {
            let pair = first..(first + 2).min(count);
            for packet in pair.clone() {
                self.decode_and_hash();
                self.prefetch_bucket(packet);
                self.prefetch_fib_buckets(packet);
            }
            if is_speculative {
                self.prefetch_victims(pair.clone());
                for packet in pair.clone() {
                    self.probe(packet);
                    self.probe_fib(packet);
                }
                self.parts.tables.pit_cs.prefetch_victim_links(0..pair.len());
            }
            for packet in pair {
                self.act(packet);
            }
        }
    }

    /// Decoding, hashing and the FIB's buckets run in groups, so that the fetches of one group overlap with the work on
    /// the next. The later stages run [`AHEAD`] packets apart: their fetches overlap with the work on other packets,
    /// and the core can hold all fetches under way.
    fn run_vector(&mut self) {
        let count = self.frames.len();
        self.probe_fib_together();
        let has_victims = self.prefetch_victims(0..count);
        for step in 0..count + 2 * AHEAD {
            if step < count {
                self.probe(step);
                if has_victims {
                    self.parts.tables.pit_cs.prefetch_victim_links(step..step + 1);
                }
            }
            if let Some(packet) = step.checked_sub(AHEAD).filter(|&packet| packet < count) {
                self.prefetch_entries(packet);
            }
            if let Some(packet) = step.checked_sub(2 * AHEAD) {
                self.act(packet);
            }
        }
    }

    /// A view of the next frame, and the hash of its name. Data with a PIT token of ours is not hashed if only the hash
    /// of the whole name will be wanted: its name group has that.
    fn decode_and_hash(&mut self) {
        let place = self.packets.len();
        let hashes = &mut self.hashes[place];
        let decoded = decode(&self.frames[place], hashes);
        self.packets.push(Packet { decoded, hints: Hints::default() });
        self.call.clock.end_of_part(Stage::Decode);
        let Packet { decoded, hints } = &mut self.packets[place];
        let name = match decoded {
            Decoded::Interest(interest) => {
                self.interests |= 1 << place;
                interest.name()
            }
            Decoded::Nack(_, interest) => interest.name(),
            Decoded::Data(data) => {
                if self.trusts_tokens
                    && let Some(group) = group_told(self.parts, &self.frames[place])
                {
                    self.unhashed |= 1 << place;
                    hints.group = Probed::Candidate(group.hint());
                    return self.call.clock.end_of_part(Stage::Hash);
                }
                data.name()
            }
            Decoded::Tag | Decoded::Refused(_) => return self.call.clock.end_of_part(Stage::Hash),
        };
        if hashes.compute_noted(self.parts.tables.pit_cs.key(), name.value(), name.len()).is_err() {
            *decoded = Decoded::Refused(DropReason::NameTooLong);
            self.interests &= !(1 << place);
        }
        self.call.clock.end_of_part(Stage::Hash);
    }

    fn is_unhashed(&self, packet: usize) -> bool {
        self.unhashed >> packet & 1 != 0
    }

    /// Takes the hash of an unhashed Data from the name group that its token tells, if that group has its name; else
    /// computes it.
    #[inline(always)]
    fn take_hash(&mut self, packet: usize) {
        let (tables, hashes) = (&self.parts.tables, &mut self.hashes[packet]);
        let Packet { decoded, hints } = &mut self.packets[packet];
        let Decoded::Data(data) = decoded else { return };
        let name = data.name();
        // A CanBePrefix Interest may have come in this batch.
        if let Probed::Candidate(hint) = hints.group
            && let Some((group, hash)) = tables.pit_cs.group_if_named(hint, name.value())
            && !tables.has_pending_prefixes(None)
        {
            hashes.take_whole(hash, name.len());
            hints.own_name = Some(group);
            return;
        }
        hints.group = Probed::NotYet;
        if hashes.compute_noted(tables.pit_cs.key(), name.value(), name.len()).is_err() {
            *decoded = Decoded::Refused(DropReason::NameTooLong);
        }
    }

    /// Prefetches the bucket of the packet's name and the name's state in the store's policy.
    #[inline(always)]
    fn prefetch_bucket(&self, packet: usize) {
        if self.packets[packet].decoded.is_nameless() || self.is_unhashed(packet) {
            return;
        }
        let name_hash = self.hashes[packet].full_hash();
        let pit_cs = &self.parts.tables.pit_cs;
        pit_cs.prefetch_bucket(name_hash);
        pit_cs.prefetch_cs_request(name_hash);
        if self.parts.core.is_some() {
            self.prefetch_for_core(packet, name_hash);
        }
    }

    /// Prefetches the fingerprint's buckets, and for an Interest those in its face's segment and the place of its
    /// nonce.
    #[inline(never)]
    fn prefetch_for_core(&self, packet: usize, name_hash: u64) {
        let Parts { tables, core: Some(core), .. } = &*self.parts else { return };
        core.sent_names.prefetch(name_hash);
        let Decoded::Interest(interest) = &self.packets[packet].decoded else {
            return core.fingerprints.prefetch(name_hash);
        };
        if let Some(port) = core.ports.known(self.frames[packet].face) {
            core.fingerprints.prefetch_for_port(name_hash, port);
        }
        if let Some(nonce) = interest.nonce() {
            tables.dead_nonces.prefetch(name_hash, nonce.to_u32());
        }
    }

    /// Prefetches every bucket of the FIB for an Interest's name.
    fn prefetch_fib_buckets(&self, packet: usize) {
        if matches!(self.packets[packet].decoded, Decoded::Interest(_)) {
            self.call.fib.prefetch_buckets(&self.hashes[packet]);
        }
    }

    /// Notes what the Data among `packets` will evict, and prefetches it. Returns whether there may be anything.
    fn prefetch_victims(&mut self, packets: Range<usize>) -> bool {
        let is_data = |packet: &&Packet<'_, '_>| matches!(packet.decoded, Decoded::Data(_));
        let data = if self.parts.config.cs_admit { self.packets[packets].iter().filter(is_data).count() } else { 0 };
        self.parts.tables.pit_cs.prefetch_victims(data);
        data > 0
    }

    /// Reads the tags of the bucket, and prefetches the group that one of them points at.
    #[inline(always)]
    fn probe(&mut self, packet: usize) {
        let Packet { decoded, hints } = &mut self.packets[packet];
        if decoded.is_nameless() {
            return;
        }
        let pit_cs = &self.parts.tables.pit_cs;
        if hints.group == Probed::NotYet {
            hints.group = pit_cs.probe(self.hashes[packet].full_hash());
        }
        if let Probed::Candidate(group) = hints.group {
            pit_cs.prefetch_group(group);
        }
    }

    /// Finds the FIB's candidate of an Interest. An Interest whose name seems known probably needs none.
    fn probe_fib(&mut self, packet: usize) {
        let Packet { decoded, hints, .. } = &mut self.packets[packet];
        if hints.group == Probed::Absent && matches!(decoded, Decoded::Interest(_)) {
            hints.fib = self.call.fib.candidate(&self.hashes[packet]);
            if let Some(entry) = hints.fib {
                self.call.fib.prefetch_entry(entry);
            }
        }
    }

    /// Decodes and hashes the rest of the batch, finds the FIB's candidates of the new Interests, and prefetches them.
    fn probe_fib_together(&mut self) {
        match self.call.fib.batch_look_up() {
            BatchLookUp::Stepped(table) => self.step_through_fib(&table),
            BatchLookUp::AtOnce(table) => self.look_up_at_once(&table),
        }
    }

    /// Searches the router's own table: the work on one group of packets overlaps with the fetches of others.
    ///
    /// N.B. Creating the search at the first Interest cost 40 instructions per Interest: it was copied into its
    /// `Option`.
    #[inline(never)]
    fn step_through_fib(&mut self, table: &SteppedTable<'v>) {
        let count = self.frames.len();
        if self.interests == 0 && self.packets.len() == count {
            return;
        }
        let (mut search, wanted) = (table.search_flows(&mut self.parts.flows), table.wanted_lengths());
        let mut to_be_noted = 0;
        for step in steps(count) {
            self.make_ready(step.ready.clone());
            search.fetch_flows(step.ready, self.interests, self.hashes, &mut self.parts.flows);
            self.for_new_interests(step.begin, |packet, hashes, flows| {
                match search.recall(packet, hashes, flows) {
                    Flow::Known(hint) => return Some(hint),
                    Flow::ToBeNoted => to_be_noted |= 1 << packet,
                    Flow::Unknown => {}
                }
                hashes.make_known(wanted);
                search.begin(packet, hashes);
                None
            });
            search.step(self.hashes);
        }
        search.finish(self.hashes);
        for (packet, candidate) in search.found() {
            self.packets[packet].hints.fib = Some(candidate);
        }
        for packet in Bits(to_be_noted) {
            if let Some(found) = self.packets[packet].hints.fib {
                search.note_flow(&mut self.parts.flows, &self.hashes[packet], found);
            }
        }
    }

    /// Searches a design of the literature.
    #[cold]
    fn look_up_at_once(&mut self, table: &WholeBatchTable<'v>) {
        let count = self.frames.len();
        self.make_ready(0..count);
        let mut wanted = 0;
        self.for_new_interests(0..count, |packet, _, _| {
            wanted |= 1 << packet;
            None
        });
        let names: ArrayVec<&[u8], BATCH_PACKETS> =
            Bits(wanted).filter_map(|packet| self.packets[packet].interest_name()).collect();
        let mut found = [None; BATCH_PACKETS];
        table.look_up(&names, &mut found);
        for (packet, found) in Bits(wanted).zip(found) {
            self.packets[packet].hints.fib = found;
        }
    }

    /// Decodes and hashes those of these packets that are not decoded yet, and prefetches their buckets.
    #[inline(always)]
    fn make_ready(&mut self, packets: Range<usize>) {
        let decoded = self.packets.len();
        (decoded..packets.end).for_each(|_| self.decode_and_hash());
        (packets.start.max(decoded)..packets.end).for_each(|packet| self.prefetch_bucket(packet));
    }

    /// Calls `search` with every Interest among these packets whose name seems new, and keeps what it knows already.
    /// For other packets the FIB is probably not needed.
    #[inline(always)]
    fn for_new_interests(
        &mut self,
        packets: Range<usize>,
        mut search: impl FnMut(usize, &mut NameHashes, &mut FlowCache) -> Option<FibHint<'v>>,
    ) {
        if packets.is_empty() {
            return;
        }
        let among = u64::MAX << packets.start & u64::MAX >> (BATCH_PACKETS - packets.end);
        for packet in Bits(self.interests & among) {
            let hints = &mut self.packets[packet].hints;
            let hashes = &mut self.hashes[packet];
            hints.group = self.parts.tables.pit_cs.probe(hashes.full_hash());
            if hints.group == Probed::Absent {
                hints.fib = search(packet, hashes, &mut self.parts.flows);
            }
        }
    }

    /// Prefetches the entries that the name group links to.
    #[inline(always)]
    fn prefetch_entries(&self, packet: usize) {
        let Parts { tables, .. } = &*self.parts;
        let Probed::Candidate(group) = self.packets[packet].hints.group else { return };
        if self.is_unhashed(packet) {
            tables.pit_cs.prefetch_cs_request_of(group);
        }
        if let Some(entry) = tables.pit_cs.prefetch_entries(group) {
            tables.timers.prefetch(entry.0);
        }
    }

    /// The packet's pipeline.
    #[inline(never)]
    fn act(&mut self, packet: usize) {
        if self.is_unhashed(packet) {
            self.take_hash(packet);
        }
        let Stages { parts, call, frames, packets, hashes, .. } = self;
        let Packet { decoded, hints, .. } = &packets[packet];
        let (frame, carrier, hashes) = (packet as u16, &frames[packet], &hashes[packet]);
        parts.counters.begin_frame(frame);
        macro_rules! received {
            ($view:ident) => {
                &Received { frame, carrier, packet: $view, hashes, hints }
            };
        }
        match decoded {
            Decoded::Interest(interest) => incoming_interest(parts, call, received!(interest)),
            Decoded::Data(data) => incoming_data(parts, call, received!(data)),
            Decoded::Nack(reason, interest) => incoming_nack(parts, call, received!(interest), *reason),
            Decoded::Tag => call.outbound.out.tag_frames.push(frame),
            Decoded::Refused(reason) => parts.counters.drop(*reason),
        }
        call.clock.end_of_part(Stage::Emit);
    }
}

/// The orders used for measuring.
impl Stages<'_, '_, '_, '_, '_, StageCosts> {
    /// Runs all stages in that order; returns the cost of each.
    pub(crate) fn run_measured(mut self, order: MeasuredOrder) -> StageCosts {
        self.call.clock.start();
        match order {
            MeasuredOrder::PacketByPacket => self.run_naive(),
            MeasuredOrder::StageByStage { .. } => self.run_stage_by_stage(),
        }
        self.call.clock
    }

    fn run_stage_by_stage(&mut self) {
        let count = self.frames.len();
        (0..count).for_each(|_| self.decode_and_hash());
        self.call.clock.end_of_whole(Stage::DecodeAndHash);
        (0..count).for_each(|packet| self.prefetch_bucket(packet));
        self.prefetch_victims(0..count);
        self.call.clock.end(Stage::PrefetchBuckets);
        self.probe_fib_together();
        self.call.clock.end(Stage::ProbeFib);
        (0..count).for_each(|packet| self.probe(packet));
        self.parts.tables.pit_cs.prefetch_victim_links(0..count);
        self.call.clock.end(Stage::Probe);
        (0..count).for_each(|packet| self.prefetch_entries(packet));
        self.call.clock.end(Stage::PrefetchEntries);
        (0..count).for_each(|packet| self.act(packet));
        self.call.clock.end_of_whole(Stage::Act);
    }
}
