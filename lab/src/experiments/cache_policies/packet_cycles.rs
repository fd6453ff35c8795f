//! Packet cycles: the cost of a request in the router's own Content Store.
//!
//! The tables of an engine ([`PitCs`]) process the web requests of Takemasa19 §5.4.1: names of 7 components of 9
//! characters, Data of 1,024 bytes. A request updates the history (B2) and looks up the name. A hit touches its entry
//! (B4); a miss admits its Data (B13), evicts (B12) and copies the Data in (B10). PIT, FIB and the rest of forwarding
//! are excluded; `cache-forwarding` measures them.
//!
//! *Cost per packet* is the time of the median batch of 64 requests, hits and misses mixed, divided by 64. A policy
//! with more hits copies less, and one that admits less copies even less. Packets are processed one by one, without
//! prefetching. While the stores fill, every answer is checked: it must be the requested Data, and the store must
//! respect its capacity.

use std::hint::black_box;

use anyhow::{Context as _, ensure};
use namewire_tables::content_store::{ENTRY_OVERHEAD_BYTES, stored_bytes};
use namewire_tables::{
    CsArrival, CsInsert, CsRefusal, HashKey, PageSize, PitCs, PitCsConfig, PrefixLookup, Recycle, hash_name,
};
use serde::Deserialize;

use super::case::Case;
use super::contestant::Contestant;
use super::hit_ratio::share_out;
use crate::experiment::{Context, Samples};
use crate::requests::Request;
use crate::split_mix::split_mix;
use crate::statistics::Summary;
use crate::synthetic_names::SyntheticNames;
use crate::tsc;

/// Bytes of a Data.
const DATA_BYTES: usize = 1024;
/// Packets of a batch.
const BATCH: usize = 64;

/// Sizes of the measurement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    pub(super) warm_up: usize,
    pub(super) repetitions: usize,
    pub(super) slices: usize,
    pub(super) requests_per_slice: usize,
}

/// The cost of a request.
#[derive(Clone, Debug)]
pub(super) struct PacketCycles {
    pub(super) contestant: Contestant,
    pub(super) per_request: Samples,
    /// Cycles over those of LRU in the same repetition.
    pub(super) over_lru: Samples,
    /// Hit ratio of the measured requests.
    pub(super) hit_ratio: f64,
    /// Bytes of the policy, without its marks in the entries.
    pub(super) policy_bytes: usize,
}

/// Records of Interests: none.
#[derive(Default)]
struct NoRecord;

impl Recycle for NoRecord {
    fn recycle(&mut self) {}
}

/// Measures all contestants in turn.
///
/// # Errors
/// If there is no counter, memory is unavailable, a store behaves unexpectedly, or the user interrupted.
pub(super) fn measure(
    context: &Context,
    case: &Case,
    contestants: &[Contestant],
    size: &Size,
) -> anyhow::Result<Vec<PacketCycles>> {
    tsc::required()?;
    let key = HashKey::from_seed(context.seed);
    let names = SyntheticNames::new(context.seed, u64::from(case.workload.objects()));
    let mut stores = share_out(contestants.len(), |place| {
        let contestant = &contestants[place];
        context.begin_step(&format!("a Content Store under {}", contestant.name))?;
        let mut store = RealStore::new(contestant, case.capacity, key, names)?;
        let mut warmed = Ok(());
        case.workload.for_each(size.warm_up, context.seed, |request| {
            if warmed.is_ok() {
                warmed = store.warm(request);
            }
        });
        warmed.map(|()| store)
    })?;
    let lru = contestants
        .iter()
        .position(|contestant| contestant.name == "lru")
        .context("LRU is not among the contestants")?;
    let mut measured = vec![(Samples::default(), Samples::default()); contestants.len()];
    let mut requests = Vec::with_capacity(size.requests_per_slice);
    for repetition in 0..size.repetitions {
        context.begin_step("requests")?;
        let mut batches = vec![Vec::new(); stores.len()];
        for slice in 0..size.slices {
            let seed = split_mix(!context.seed ^ split_mix((repetition * size.slices + slice + 1) as u64));
            requests.clear();
            case.workload.for_each(size.requests_per_slice, seed, |request| requests.push(request));
            for (store, batches) in stores.iter_mut().zip(&mut batches) {
                store.slice(&requests, batches)?;
            }
        }
        let medians: Vec<f64> =
            batches.iter().map(|cycles| Summary::of(cycles).map_or(f64::NAN, |summary| summary.median)).collect();
        for ((cycles, over_lru), &median) in measured.iter_mut().zip(&medians) {
            cycles.add(median);
            over_lru.add(median / medians[lru]);
        }
    }
    let found = contestants.iter().zip(measured).zip(&stores).map(|((contestant, (per_request, over_lru)), store)| {
        let hit_ratio = store.hits as f64 / store.requests.max(1) as f64;
        let contestant = contestant.clone();
        PacketCycles { contestant, per_request, over_lru, hit_ratio, policy_bytes: store.tables.cs_policy_bytes() }
    });
    Ok(found.collect())
}

struct RealStore {
    tables: PitCs<NoRecord>,
    names: SyntheticNames,
    key: HashKey,
    name: Vec<u8>,
    data: Vec<u8>,
    /// The names of a slice back to back, their ends, and their hashes.
    prepared: (Vec<u8>, Vec<usize>, Vec<u64>),
    in_batch: usize,
    hits: usize,
    requests: usize,
}

impl RealStore {
    fn new(contestant: &Contestant, capacity: u32, key: HashKey, names: SyntheticNames) -> anyhow::Result<Self> {
        let bytes_per_data = ENTRY_OVERHEAD_BYTES + stored_bytes(DATA_BYTES);
        let config = PitCsConfig {
            pit_capacity_entries: 64,
            interest_overflow_bytes: 0,
            // The capacity in packets is the limit, not the bytes.
            cs_capacity_bytes: (u64::from(capacity) + 64) * bytes_per_data,
            cs_capacity_packets: capacity.into(),
            cs_policy: contestant.policy.into(),
            cs_prefix_lookup: PrefixLookup::Own,
            pages: PageSize::default(),
        };
        Ok(Self {
            tables: PitCs::new(config, key)?,
            names,
            key,
            name: Vec::new(),
            data: vec![0x5a; DATA_BYTES],
            prepared: Default::default(),
            in_batch: 0,
            hits: 0,
            requests: 0,
        })
    }

    fn warm(&mut self, request: Request) -> anyhow::Result<()> {
        self.names.write_name(request.object.into(), &mut self.name);
        let name = std::mem::take(&mut self.name);
        let hash = hash_name(&self.key, &name);
        let found = self.tables.find(hash, &name).and_then(|group| self.tables.cs_lookup(group));
        let is_right = found.is_none_or(|hit| self.tables.cs(hit.id).name_value() == Some(name.as_slice()));
        let hit = self.request(hash, &name)?;
        ensure!(is_right && hit == found.is_some(), "the store answers with the wrong Data");
        ensure!(self.tables.cs_len() as u64 <= self.tables.cs_capacity().1, "the store exceeds its capacity");
        self.name = name;
        Ok(())
    }

    /// Adds the cycles of a request for each batch of `requests`.
    fn slice(&mut self, requests: &[Request], batches: &mut Vec<f64>) -> anyhow::Result<()> {
        let (mut bytes, mut ends, mut hashes) = std::mem::take(&mut self.prepared);
        bytes.clear();
        ends.clear();
        hashes.clear();
        for request in requests {
            self.names.write_name(request.object.into(), &mut self.name);
            hashes.push(hash_name(&self.key, &self.name));
            bytes.extend_from_slice(&self.name);
            ends.push(bytes.len());
        }
        let mut start = 0;
        for (ends, hashes) in ends.chunks(BATCH).zip(hashes.chunks(BATCH)) {
            let before = tsc::read_in_order().unwrap_or(0);
            for (&end, &hash) in ends.iter().zip(hashes) {
                self.hits += usize::from(self.request(hash, &bytes[start..end])?);
                start = end;
            }
            let cycles = tsc::read_in_order().unwrap_or(before) - before;
            batches.push(cycles as f64 / ends.len() as f64);
        }
        self.requests += requests.len();
        self.prepared = (bytes, ends, hashes);
        Ok(())
    }

    /// An Interest and its Data; returns whether it hit.
    #[inline]
    fn request(&mut self, hash: u64, name: &[u8]) -> anyhow::Result<bool> {
        self.in_batch += 1;
        if self.in_batch == BATCH {
            self.in_batch = 0;
            self.tables.end_of_batch();
        }
        self.tables.cs_request(hash);
        let found = self.tables.find(hash, name);
        if let Some(hit) = found.and_then(|group| self.tables.cs_lookup(group)) {
            self.tables.cs_touch(hit.id);
            black_box(self.tables.cs(hit.id).data().first());
            return Ok(true);
        }
        let inserted = self.tables.cs_insert_found(found, (hash, name), &self.data, CsArrival::default());
        ensure!(
            matches!(inserted, CsInsert::Stored(_) | CsInsert::Refused(CsRefusal::NotAdmitted)),
            "unexpected result of an insertion: {inserted:?}"
        );
        Ok(false)
    }
}
