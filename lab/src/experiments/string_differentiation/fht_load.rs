//! A fingerprint hash table full of numbered names, and look-ups in it.
//!
//! Names are made in slices shortly before a slice is timed, like names of received packets; making them does not
//! count. Every look-up must give the port that belongs to the name's number. Without the collision table, look-ups may
//! miss the names that only it holds.

use anyhow::ensure;
use namewire_designs::fib::string_differentiation::bulk_load::BulkLoad;
use namewire_designs::fib::string_differentiation::{FhtOptions, FhtTable, ForwardingTable, SlotFormat};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch};
use namewire_tables::{HashKey, PageSize};

use crate::experiment::Context;
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames};

/// Names of a slice.
pub(super) const SLICE_NAMES: usize = 1024;
const _: () = assert!(SLICE_NAMES.is_multiple_of(DESIGN_BATCH_NAMES));

/// Variants of look-ups (Fig. 4.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LookUps {
    pub(super) prefetch: bool,
    pub(super) collision_table: bool,
}

impl LookUps {
    pub(super) const ALL: [Self; 4] = [
        Self { prefetch: true, collision_table: true },
        Self { prefetch: true, collision_table: false },
        Self { prefetch: false, collision_table: true },
        Self { prefetch: false, collision_table: false },
    ];

    pub(super) const fn name(self) -> &'static str {
        match (self.prefetch, self.collision_table) {
            (true, true) => "prefetch, with CT",
            (true, false) => "prefetch, without CT",
            (false, true) => "no prefetch, with CT",
            (false, false) => "no prefetch, without CT",
        }
    }
}

/// Names of a slice, back to back, and their ports.
struct Slice {
    bytes: Vec<[u8; NUMBERED_NAME_BYTES]>,
    ports: Vec<u32>,
}

impl Slice {
    fn new() -> Self {
        Self { bytes: Vec::with_capacity(SLICE_NAMES), ports: Vec::with_capacity(SLICE_NAMES) }
    }

    fn fill(&mut self, names: NumberedNames, numbers: impl Iterator<Item = u64>) {
        self.bytes.clear();
        self.ports.clear();
        for number in numbers {
            let mut name = [0; NUMBERED_NAME_BYTES];
            names.write(number, &mut name);
            self.bytes.push(name);
            self.ports.push(names.port(number));
        }
    }

    /// Passes names and ports on in batches.
    fn batches(&self, mut take: impl FnMut(&[&[u8]], &[u32])) {
        let mut batch = [&[][..]; DESIGN_BATCH_NAMES];
        for (bytes, ports) in self.bytes.chunks(DESIGN_BATCH_NAMES).zip(self.ports.chunks(DESIGN_BATCH_NAMES)) {
            for (name, bytes) in batch.iter_mut().zip(bytes) {
                *name = bytes;
            }
            take(&batch[..bytes.len()], ports);
        }
    }
}

/// Nanoseconds per name, measured in slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct EachNs {
    /// Over all slices.
    pub(super) mean: f64,
    /// Of the median slice, which ignores slices in which the thread waited for a processor.
    pub(super) median: f64,
}

impl EachNs {
    fn of(slices_ns: Vec<u64>, names: u64, context: &Context) -> anyhow::Result<Self> {
        let mean = context.clock.resolve(slices_ns.iter().sum())? as f64 / names as f64;
        Ok(Self { mean, median: context.clock.median_ns(slices_ns, SLICE_NAMES.min(names as usize))? })
    }
}

/// A table with the names from 0 on.
pub(super) struct LoadedTable {
    pub(super) load: BulkLoad,
    pub(super) pages: PageSize,
    /// Nanoseconds of an insertion.
    pub(super) insert_ns: EachNs,
    names: NumberedNames,
    slice: Slice,
    asked: u64,
}

impl LoadedTable {
    /// Makes and fills a table.
    ///
    /// # Errors
    /// If the kernel has no memory for it, or on an interrupt.
    pub(super) fn fill(context: &Context, names: u64, format: SlotFormat, pages: PageSize) -> anyhow::Result<Self> {
        let key = HashKey::from_seed(context.seed);
        let options = FhtOptions { format, pages, ..FhtOptions::default() };
        let table = ForwardingTable::new(key, FhtTable::new(names as usize, options)?, pages)?;
        let mut loaded = Self {
            load: BulkLoad::new(key, table, 1, None),
            pages,
            insert_ns: EachNs { mean: 0.0, median: 0.0 },
            names: NumberedNames::new(context.seed),
            slice: Slice::new(),
            asked: 0,
        };
        let mut slices_ns = Vec::with_capacity(names as usize / SLICE_NAMES + 1);
        for first in (0..names).step_by(SLICE_NAMES) {
            loaded.slice.fill(loaded.names, first..names.min(first + SLICE_NAMES as u64));
            let started_ns = context.clock.now_ns();
            loaded.slice.batches(|names, ports| loaded.load.insert_batch(names, ports));
            slices_ns.push(context.clock.now_ns() - started_ns);
            context.check_interrupt()?;
        }
        loaded.insert_ns = EachNs::of(slices_ns, names, context)?;
        Ok(loaded)
    }

    pub(super) fn names(&self) -> u64 {
        self.load.names()
    }

    /// Number of names in the collision table.
    pub(super) fn collision_table_names(&self) -> u64 {
        self.load.table().differentiator().collisions().len() as u64
    }

    /// Looks up every name; returns the nanoseconds of each.
    ///
    /// # Errors
    /// If an answer is wrong, or on an interrupt.
    pub(super) fn look_all_up(&mut self, context: &Context) -> anyhow::Result<EachNs> {
        self.set(LookUps { prefetch: true, collision_table: true });
        let names = self.names();
        let mut slices_ns = Vec::with_capacity(names as usize / SLICE_NAMES + 1);
        for first in (0..names).step_by(SLICE_NAMES) {
            self.slice.fill(self.names, first..names.min(first + SLICE_NAMES as u64));
            let (slice_ns, missed) = self.look_slice_up(context);
            ensure!(missed == 0, "{missed} of the names from {first} on have wrong answers");
            slices_ns.push(slice_ns);
            context.check_interrupt()?;
        }
        EachNs::of(slices_ns, names, context)
    }

    /// Looks up a slice of random names; returns its nanoseconds.
    ///
    /// # Errors
    /// If an answer is wrong.
    pub(super) fn look_some_up(&mut self, way: LookUps, context: &Context) -> anyhow::Result<u64> {
        self.set(way);
        let (names, names_there, first) = (self.names, self.names(), self.asked);
        self.slice.fill(names, (first..first + SLICE_NAMES as u64).map(|place| names.at_random(place, names_there)));
        self.asked += SLICE_NAMES as u64;
        let (took_ns, missed) = self.look_slice_up(context);
        // The collision table holds 1 of 3,000 names with 16 bits, 1 of 270 with 12.
        let most = if way.collision_table { 0 } else { SLICE_NAMES / 16 };
        ensure!(missed <= most, "{missed} names of a slice have wrong answers, {}", way.name());
        Ok(took_ns)
    }

    fn set(&mut self, way: LookUps) {
        let table = self.load.table_mut().differentiator_mut();
        table.set_prefetch(way.prefetch);
        table.set_query_of_collisions(way.collision_table);
    }

    /// Nanoseconds of the look-ups, and the number of wrong answers.
    fn look_slice_up(&self, context: &Context) -> (u64, usize) {
        let mut found = [None::<PrefixMatch>; SLICE_NAMES];
        let mut places = found.chunks_mut(DESIGN_BATCH_NAMES);
        let started_ns = context.clock.now_ns();
        self.slice.batches(|names, _| {
            let out = places.next().unwrap_or_default();
            self.load.longest_prefix_match_batch(names, out);
        });
        let took_ns = context.clock.now_ns() - started_ns;
        let expected = self
            .slice
            .ports
            .iter()
            .map(|&number| Some(PrefixMatch { number, prefix_bytes: NUMBERED_NAME_BYTES as u16 }));
        (took_ns, expected.zip(found).filter(|(expected, found)| expected != found).count())
    }
}
