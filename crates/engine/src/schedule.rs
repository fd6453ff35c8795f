//! In which order do the stages of a batch run, and what is fetched ahead?
//!
//! Source: Takemasa19 §4.3-4.4.1 (the four schedules of the thesis) and the house's own.
//! The stages are the same code under every schedule; only their order and the
//! prefetches between them differ, and with them the wait for memory. No schedule
//! can change a verdict: what the prefetching stages find are hints, and the stage
//! that acts takes the packets in the order of arrival and verifies each hint
//! (`tests/random_packets.rs` compares all of them with a scalar twin).
//!
//! | stage | per packet | then prefetches |
//! | --- | --- | --- |
//! | `decode_and_hash` (d) | the view of the packet, the hash of every prefix | |
//! | `prefetch_bucket` (b) | | the PIT/CS bucket, the store's policy's memory of the name |
//! | `prefetch_fib_buckets` (f) | | of an Interest, all buckets of the FIB |
//! | `probe` (p) | tags in the PIT/CS bucket | name group |
//! | `probe_fib` (l) | of a new Interest, tags in the FIB's buckets | the longest candidate |
//! | `probe_fib_together` (L) | d, b and l of the whole batch, in groups of packets: see `FibView::candidates` | the bucket, or the candidate |
//! | `prefetch_entries` (e) | the group's links | PIT entry, stored Data, timer |
//! | `victims` (v) | what so many Data will evict, one link a call | Content Store entry; group and block; index bucket |
//! | `act` (a) | the pipeline: everything else | |
//!
//! | schedule | order | paper |
//! | --- | --- | --- |
//! | `naive` | d0 a0 d1 a1 … | *Naive* |
//! | `bucket-prefetch` | d0 b0 f0 a0 d1 b1 f1 a1 … | *Bucket Prefetch* (So et al. 2013) |
//! | `pre-hash` | d0 b0 f0 d1 b1 f1 a0 a1, … | *Pre-Hash*: two packets at a time |
//! | `shtl` | d0 b0 f0 d1 b1 f1 v p0 l0 p1 l1 v v a0 a1, … | *SHTL*: the same, with short-circuit evaluation |
//! | `vector` | L, v, then p8 v8 e4 v4 a0 p9 v9 e5 v5 a1 … | ours |
//!
//! The thesis handles two consecutive packets (§4.3.2): the fetches of one hide behind the
//! hash and the bucket checks of the other. Short-circuit: of the FIB's candidates only
//! the longest is fetched, since nearly always it is the match.

pub mod measured;

use crate::{
    BATCH_PACKETS, DropReason, Engine, Frame, View,
    batch::{Arrival, Decoded, Pass, decode},
};
use arrayvec::ArrayVec;
use measured::Stage;
use namewire_tables::{FibHint, GroupHint, NameBatch, NameHashes};
use std::ops::Range;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// No prefetch.
    Naive,
    /// A packet's own buckets are prefetched before they are searched.
    BucketPrefetch,
    /// Two packets are decoded and hashed, and their buckets prefetched, before both are acted on.
    PreHash,
    /// `PreHash`, and the entries that the buckets name are prefetched.
    SpeculativeLookup,
    /// Decoding, hashing and the look at the FIB's buckets go over the whole batch, in groups; the
    /// later stages follow each other a few packets apart. The default.
    #[default]
    Vector,
}

impl Schedule {
    /// Every schedule, slowest first as the thesis found them.
    pub const ALL: [Self; 5] =
        [Self::Naive, Self::BucketPrefetch, Self::PreHash, Self::SpeculativeLookup, Self::Vector];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::BucketPrefetch => "bucket-prefetch",
            Self::PreHash => "pre-hash",
            Self::SpeculativeLookup => "shtl",
            Self::Vector => "vector",
        }
    }
}

impl std::str::FromStr for Schedule {
    type Err = UnknownSchedule;

    fn from_str(name: &str) -> Result<Self, UnknownSchedule> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name).ok_or(UnknownSchedule)
    }
}

/// No schedule has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedules are naive, bucket-prefetch, pre-hash, shtl and vector")]
pub struct UnknownSchedule;

/// One packet on its way through the stages.
struct Packet<'f, 'v> {
    decoded: Decoded<'f>,
    hints: Hints<'v>,
}

/// What the prefetching stages found; the acting stage verifies it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hints<'v> {
    /// The name group whose tag fits.
    pub(crate) group: Option<GroupHint>,
    /// The FIB entry of the longest prefix whose tag fits.
    pub(crate) fib: Option<FibHint<'v>>,
}

/// The packets of one call, in the order of arrival.
struct Batch<'f, 'b, 'h, 'v> {
    frames: &'f [Frame<'b>],
    packets: ArrayVec<Packet<'f, 'v>, BATCH_PACKETS>,
    /// By packet; a buffer that outlives the batch.
    hashes: &'h mut [NameHashes],
}

/// Packets between two stages of [`Schedule::Vector`].
///
/// N.B. Cycles per packet at quick scale, runs in turn on a machine that others use: 4 apart 673
/// and 696, 3 apart 690, 2 apart 681; every stage over 16, 32 or 64 packets before the next 737,
/// 749, 747. The buckets of PIT and Content Store, asked for one by one among the decoding 710,
/// in groups of eight 647 to 679, all after the decoding 734; the frames themselves fetched ahead
/// gained nothing.
const AHEAD: usize = 4;

impl Engine {
    /// Runs the stages over `frames` in the order of the schedule. `hashes` has an element per frame.
    pub(crate) fn run_schedule(&mut self, pass: &mut Pass<'_, '_>, frames: &[Frame<'_>], hashes: &mut [NameHashes]) {
        let count = frames.len();
        let view = pass.view;
        let batch = &mut Batch { frames, packets: ArrayVec::new(), hashes };
        match self.config.schedule {
            Schedule::Naive => {
                for packet in 0..count {
                    self.decode_and_hash(batch);
                    self.act(pass, batch, packet);
                }
            }
            Schedule::BucketPrefetch => {
                for packet in 0..count {
                    self.decode_and_hash(batch);
                    self.prefetch_bucket(batch, packet);
                    prefetch_fib_buckets(&view, batch, packet);
                    self.act(pass, batch, packet);
                }
            }
            Schedule::PreHash | Schedule::SpeculativeLookup => {
                let is_speculative = self.config.schedule == Schedule::SpeculativeLookup;
                for first in (0..count).step_by(2) {
                    let pair = first..(first + 2).min(count);
                    for packet in pair.clone() {
                        self.decode_and_hash(batch);
                        self.prefetch_bucket(batch, packet);
                        prefetch_fib_buckets(&view, batch, packet);
                    }
                    if is_speculative {
                        self.prefetch_victims(&batch.packets[pair.clone()]);
                        for packet in pair.clone() {
                            self.probe(batch, packet);
                            probe_fib(&view, batch, packet);
                        }
                        self.tables.prefetch_victim_groups(0..pair.len());
                        self.tables.prefetch_victim_buckets(0..pair.len());
                    }
                    for packet in pair {
                        self.act(pass, batch, packet);
                    }
                }
            }
            Schedule::Vector => self.run_vector(pass, batch),
        }
    }

    /// Decoding, hashing and the FIB's buckets in groups, so that the fetches of one group hide
    /// behind the work on the next; the stages after that [`AHEAD`] packets apart, so that their
    /// fetches overlap with the work on other packets, but no more of them are under way than
    /// the core holds.
    fn run_vector<'v>(&mut self, pass: &mut Pass<'v, '_>, batch: &mut Batch<'_, '_, '_, 'v>) {
        let count = batch.frames.len();
        let view = pass.view;
        self.probe_fib_together(&view, batch);
        self.prefetch_victims(&batch.packets);
        for step in 0..count + 2 * AHEAD {
            if step < count {
                self.probe(batch, step);
                self.tables.prefetch_victim_groups(step..step + 1);
            }
            if let Some(packet) = step.checked_sub(AHEAD).filter(|&packet| packet < count) {
                self.prefetch_entries(batch, packet);
                self.tables.prefetch_victim_buckets(packet..packet + 1);
            }
            if let Some(packet) = step.checked_sub(2 * AHEAD) {
                self.act(pass, batch, packet);
            }
        }
    }

    /// A view of the next frame, and the hash of every prefix of its name.
    fn decode_and_hash(&mut self, batch: &mut Batch<'_, '_, '_, '_>) {
        let place = batch.packets.len();
        let mut decoded = decode(&batch.frames[place]);
        self.end_of_part(Stage::Decode);
        let name = match &decoded {
            Decoded::Interest(interest) | Decoded::Nack(_, interest) => Some(interest.name()),
            Decoded::Data(data) => Some(data.name()),
            Decoded::Refused(_) => None,
        };
        if let Some(name) = name
            && batch.hashes[place].compute(self.tables.key(), name.value()).is_err()
        {
            decoded = Decoded::Refused(DropReason::NameTooLong);
        }
        batch.packets.push(Packet { decoded, hints: Hints::default() });
        self.end_of_part(Stage::Hash);
    }

    /// Begins to fetch the bucket of the packet's name, and what the store's policy remembers of it; in the core role
    /// the buckets of its fingerprint too, of an Interest those in the segment of its face, and where its nonce will
    /// be looked for.
    fn prefetch_bucket(&self, batch: &Batch<'_, '_, '_, '_>, packet: usize) {
        let decoded = &batch.packets[packet].decoded;
        if matches!(decoded, Decoded::Refused(_)) {
            return;
        }
        let name_hash = batch.hashes[packet].full_hash();
        self.tables.prefetch_bucket(name_hash);
        self.tables.prefetch_cs_request(name_hash);
        let Some(core) = &self.core else { return };
        core.sent_names.prefetch(name_hash);
        let Decoded::Interest(interest) = decoded else { return core.fingerprints.prefetch(name_hash) };
        if let Some(port) = core.ports.known(batch.frames[packet].face) {
            core.fingerprints.prefetch_for_port(name_hash, port);
        }
        if let Some(nonce) = interest.nonce() {
            self.dead_nonces.prefetch(name_hash, nonce.to_u32());
        }
    }

    /// Notes what the Data among `packets` will evict, and begins to fetch it.
    fn prefetch_victims(&mut self, packets: &[Packet<'_, '_>]) {
        let data = packets.iter().filter(|packet| matches!(packet.decoded, Decoded::Data(_))).count();
        self.tables.prefetch_victims(if self.config.cs_admit { data } else { 0 });
    }

    /// Reads the tags of the bucket, and begins to fetch the group that one of them points at.
    fn probe(&self, batch: &mut Batch<'_, '_, '_, '_>, packet: usize) {
        let Packet { decoded, hints } = &mut batch.packets[packet];
        if matches!(decoded, Decoded::Refused(_)) {
            return;
        }
        hints.group = self.tables.probe(batch.hashes[packet].full_hash());
        if let Some(group) = hints.group {
            self.tables.prefetch_group(group);
        }
    }

    /// Decodes and hashes what of the batch is not decoded yet, finds the FIB's candidates of the
    /// new Interests, and begins to fetch them.
    fn probe_fib_together<'v>(&mut self, view: &View<'v>, batch: &mut Batch<'_, '_, '_, 'v>) {
        let count = batch.frames.len();
        let mut candidates = [None; BATCH_PACKETS];
        view.fib.candidates(count, &mut Arriving { engine: self, batch }, &mut candidates);
        for (packet, candidate) in batch.packets.iter_mut().zip(candidates) {
            packet.hints.fib = candidate;
        }
    }

    /// Begins to fetch what hangs off the name group.
    fn prefetch_entries(&self, batch: &Batch<'_, '_, '_, '_>, packet: usize) {
        if let Some(group) = batch.packets[packet].hints.group
            && let Some(entry) = self.tables.prefetch_entries(group)
        {
            self.timers.prefetch(entry.0);
        }
    }

    /// The packet's pipeline.
    fn act<'v>(&mut self, pass: &mut Pass<'v, '_>, batch: &Batch<'_, '_, '_, 'v>, packet: usize) {
        let Frame { face, headers, packet: carried, round } = &batch.frames[packet];
        let arrival = Arrival { index: packet as u16, face: *face, headers, carried, round: *round };
        let hashes = &batch.hashes[packet];
        let Packet { decoded, hints } = &batch.packets[packet];
        match decoded {
            Decoded::Interest(interest) => self.incoming_interest(pass, &arrival, interest, hashes, hints),
            Decoded::Data(data) => self.incoming_data(pass, &arrival, data, hashes, hints),
            Decoded::Nack(reason, interest) => self.incoming_nack(pass, &arrival, *reason, interest, hashes),
            Decoded::Refused(reason) => self.counters.drop(*reason),
        }
        self.end_of_part(Stage::Emit);
    }
}

/// The packets of a batch as the FIB's search comes to them.
struct Arriving<'e, 'f, 'b, 'h, 'v, 'a> {
    engine: &'e mut Engine,
    batch: &'a mut Batch<'f, 'b, 'h, 'v>,
}

impl NameBatch for Arriving<'_, '_, '_, '_, '_, '_> {
    fn make_ready(&mut self, packets: Range<usize>) {
        let decoded = self.batch.packets.len();
        (decoded..packets.end).for_each(|_| self.engine.decode_and_hash(self.batch));
        (packets.start.max(decoded)..packets.end).for_each(|packet| self.engine.prefetch_bucket(self.batch, packet));
    }

    /// Of an Interest whose name seems known the FIB is probably not asked.
    fn is_wanted(&mut self, packet: usize) -> bool {
        matches!(self.batch.packets[packet].decoded, Decoded::Interest(_))
            && self.engine.tables.probe(self.batch.hashes[packet].full_hash()).is_none()
    }

    fn hashes(&self, packet: usize) -> &NameHashes {
        &self.batch.hashes[packet]
    }

    fn name_value(&self, packet: usize) -> &[u8] {
        match &self.batch.packets[packet].decoded {
            Decoded::Interest(interest) | Decoded::Nack(_, interest) => interest.name().value(),
            Decoded::Data(data) => data.name().value(),
            Decoded::Refused(_) => &[],
        }
    }
}

/// Begins to fetch every bucket of the FIB that an Interest's name leads to.
fn prefetch_fib_buckets(view: &View<'_>, batch: &Batch<'_, '_, '_, '_>, packet: usize) {
    if matches!(batch.packets[packet].decoded, Decoded::Interest(_)) {
        view.fib.prefetch_buckets(&batch.hashes[packet]);
    }
}

/// The FIB's candidate of an Interest. One whose name seems known is probably answered without.
fn probe_fib<'v>(view: &View<'v>, batch: &mut Batch<'_, '_, '_, 'v>, packet: usize) {
    let Packet { decoded, hints } = &mut batch.packets[packet];
    if hints.group.is_none() && matches!(decoded, Decoded::Interest(_)) {
        hints.fib = view.fib.candidate(&batch.hashes[packet]);
        if let Some(entry) = hints.fib {
            view.fib.prefetch_entry(entry);
        }
    }
}
