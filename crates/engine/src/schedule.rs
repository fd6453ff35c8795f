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
//! | `prefetch_buckets` (b) | | the PIT/CS bucket; of an Interest the FIB's buckets |
//! | `probe` (p) | tags in the buckets | name group; of an Interest the longest FIB candidate |
//! | `prefetch_entries` (e) | the group's links | PIT entry, stored Data, timer |
//! | `act` (a) | the pipeline: everything else | |
//!
//! | schedule | order | paper |
//! | --- | --- | --- |
//! | `naive` | d0 a0 d1 a1 … | *Naive* |
//! | `bucket-prefetch` | d0 b0 a0 d1 b1 a1 … | *Bucket Prefetch* (So et al. 2013) |
//! | `pre-hash` | d0 b0 d1 b1 a0 a1, d2 b2 d3 b3 a2 a3 … | *Pre-Hash*: two packets at a time |
//! | `shtl` | d0 b0 d1 b1 p0 p1 a0 a1, … | *SHTL*: the same, with short-circuit evaluation |
//! | `vector` | d0 b0 d1 b1 …, then p8 e4 a0 p9 e5 a1 … | ours |
//!
//! The thesis handles two consecutive packets (§4.3.2): the fetches of one hide behind the
//! hash and the bucket checks of the other. Short-circuit: of the FIB's candidates only
//! the longest is fetched, since nearly always it is the match.

use crate::{
    BATCH_PACKETS, DropReason, Engine, Frame, View,
    batch::{Arrival, Decoded, Pass, decode},
};
use arrayvec::ArrayVec;
use namewire_tables::{FibHint, GroupHint, NameHashes};

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
    /// The whole batch is decoded and hashed and its buckets prefetched; the later stages follow
    /// each other a few packets apart. The default.
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
                    self.prefetch_buckets(&view, batch, packet);
                    self.act(pass, batch, packet);
                }
            }
            Schedule::PreHash | Schedule::SpeculativeLookup => {
                let is_speculative = self.config.schedule == Schedule::SpeculativeLookup;
                for first in (0..count).step_by(2) {
                    let pair = first..(first + 2).min(count);
                    for packet in pair.clone() {
                        self.decode_and_hash(batch);
                        self.prefetch_buckets(&view, batch, packet);
                    }
                    if is_speculative {
                        self.tables.prefetch_victims(pair.len());
                        for packet in pair.clone() {
                            self.probe(&view, batch, packet);
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

    /// Decode and hash over the whole batch; the stages after it [`AHEAD`] packets apart, so
    /// that the fetches of one stage overlap with each other and with the work on other
    /// packets, but no more of them are under way than the core holds.
    fn run_vector<'v>(&mut self, pass: &mut Pass<'v, '_>, batch: &mut Batch<'_, '_, '_, 'v>) {
        let count = batch.frames.len();
        let view = pass.view;
        for packet in 0..count {
            self.decode_and_hash(batch);
            self.prefetch_buckets(&view, batch, packet);
        }
        let data = batch.packets.iter().filter(|packet| matches!(packet.decoded, Decoded::Data(_))).count();
        let victims = if self.config.cs_admit { data } else { 0 };
        self.tables.prefetch_victims(victims);
        for step in 0..count + 2 * AHEAD {
            if step < count {
                self.probe(&view, batch, step);
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
    }

    /// Begins to fetch every bucket that the packet's name leads to.
    fn prefetch_buckets(&self, view: &View<'_>, batch: &Batch<'_, '_, '_, '_>, packet: usize) {
        let hashes = &batch.hashes[packet];
        match batch.packets[packet].decoded {
            Decoded::Refused(_) => {}
            Decoded::Interest(_) => {
                self.tables.prefetch_bucket(hashes.full_hash());
                view.fib.prefetch_buckets(hashes);
            }
            Decoded::Data(_) | Decoded::Nack(..) => self.tables.prefetch_bucket(hashes.full_hash()),
        }
    }

    /// Reads tags, and begins to fetch what they point at. An Interest whose name seems
    /// known is probably answered without the FIB.
    fn probe<'v>(&self, view: &View<'v>, batch: &mut Batch<'_, '_, '_, 'v>, packet: usize) {
        let hashes = &batch.hashes[packet];
        let Packet { decoded, hints } = &mut batch.packets[packet];
        if matches!(decoded, Decoded::Refused(_)) {
            return;
        }
        hints.group = self.tables.probe(hashes.full_hash());
        match (hints.group, &decoded) {
            (Some(group), _) => self.tables.prefetch_group(group),
            (None, Decoded::Interest(_)) => {
                hints.fib = view.fib.candidate(hashes);
                if let Some(entry) = hints.fib {
                    view.fib.prefetch_entry(entry);
                }
            }
            _ => {}
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
        let Frame { face, headers, round, .. } = &batch.frames[packet];
        let arrival = Arrival { index: packet as u16, face: *face, headers, round: *round };
        let hashes = &batch.hashes[packet];
        let Packet { decoded, hints } = &batch.packets[packet];
        match decoded {
            Decoded::Interest(interest) => self.incoming_interest(pass, &arrival, interest, hashes, hints),
            Decoded::Data(data) => self.incoming_data(pass, &arrival, data, hashes, hints),
            Decoded::Nack(reason, interest) => self.incoming_nack(pass, &arrival, *reason, interest, hashes),
            Decoded::Refused(reason) => self.counters.drop(*reason),
        }
    }
}
