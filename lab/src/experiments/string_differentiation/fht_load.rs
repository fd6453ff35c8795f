//! A fingerprint hash table full of numbered names, and look-ups in it.
//!
//! Names are made in slices, shortly before a slice is timed, as the names of received packets would
//! be written; making them is not part of any time. What is looked up must lead where the name's
//! number says; without the collision table, names that are only there may be missed.

use anyhow::ensure;
use namewire_tables::fib::designs::string_differentiation::bulk_load::BulkLoad;
use namewire_tables::fib::designs::string_differentiation::{FhtOptions, FhtTable, ForwardingTable, SlotFormat};
use namewire_tables::fib::designs::{DESIGN_BATCH_NAMES, PrefixMatch};
use namewire_tables::{HashKey, PageSize};

use crate::experiment::Context;
use crate::numbered_names::{NUMBERED_NAME_OCTETS, NumberedNames};

/// Names of a slice.
pub(super) const SLICE_NAMES: usize = 1024;
const _: () = assert!(SLICE_NAMES.is_multiple_of(DESIGN_BATCH_NAMES));

/// How look-ups are done (Fig. 4.14).
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

/// Names of a slice, side by side, and what they lead to.
struct Slice {
    octets: Vec<[u8; NUMBERED_NAME_OCTETS]>,
    ports: Vec<u32>,
}

impl Slice {
    fn new() -> Self {
        Self { octets: Vec::with_capacity(SLICE_NAMES), ports: Vec::with_capacity(SLICE_NAMES) }
    }

    fn fill(&mut self, names: NumberedNames, numbers: impl Iterator<Item = u64>) {
        self.octets.clear();
        self.ports.clear();
        for number in numbers {
            let mut name = [0; NUMBERED_NAME_OCTETS];
            names.write(number, &mut name);
            self.octets.push(name);
            self.ports.push(names.port(number));
        }
    }

    /// Hands the names and their ports over in batches.
    fn batches(&self, mut take: impl FnMut(&[&[u8]], &[u32])) {
        let mut batch = [&[][..]; DESIGN_BATCH_NAMES];
        for (octets, ports) in self.octets.chunks(DESIGN_BATCH_NAMES).zip(self.ports.chunks(DESIGN_BATCH_NAMES)) {
            for (name, octets) in batch.iter_mut().zip(octets) {
                *name = octets;
            }
            take(&batch[..octets.len()], ports);
        }
    }
}

/// Nanoseconds for each of many names, of which slices were timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EachNs {
    /// Of all slices.
    pub(super) mean: f64,
    /// Of the median slice: one in which the thread had to wait for a processor says nothing.
    pub(super) median: f64,
}

impl EachNs {
    fn of(mut slices_ns: Vec<u64>, names: u64, context: &Context) -> anyhow::Result<Self> {
        let mean = context.clock.resolve(slices_ns.iter().sum())? as f64 / names as f64;
        slices_ns.sort_unstable();
        let median_ns = context.clock.resolve(slices_ns[slices_ns.len() / 2])?;
        Ok(Self { mean, median: median_ns as f64 / (names as f64).min(SLICE_NAMES as f64) })
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
    /// Makes and fills it.
    ///
    /// # Errors
    /// If the kernel has no memory for it, or on an interrupt.
    pub(super) fn fill(context: &Context, names: u64, format: SlotFormat, pages: PageSize) -> anyhow::Result<Self> {
        let key = HashKey::from_seed(context.seed);
        let options = FhtOptions { format, pages, ..FhtOptions::default() };
        let table = ForwardingTable::new(key, FhtTable::new(names as usize, options)?)?;
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

    /// How many names there are.
    pub(super) fn names(&self) -> u64 {
        self.load.names()
    }

    /// How many of them the collision table has.
    pub(super) fn collision_table_names(&self) -> u64 {
        self.load.table().differentiator().collisions().len() as u64
    }

    /// Looks every name up, and says how many nanoseconds each took.
    ///
    /// # Errors
    /// If one does not lead where it should, or on an interrupt.
    pub(super) fn look_all_up(&mut self, context: &Context) -> anyhow::Result<EachNs> {
        self.set(LookUps { prefetch: true, collision_table: true });
        let names = self.names();
        let mut slices_ns = Vec::with_capacity(names as usize / SLICE_NAMES + 1);
        for first in (0..names).step_by(SLICE_NAMES) {
            self.slice.fill(self.names, first..names.min(first + SLICE_NAMES as u64));
            let (slice_ns, missed) = self.look_slice_up(context);
            ensure!(missed == 0, "{missed} of the names from {first} on lead elsewhere");
            slices_ns.push(slice_ns);
            context.check_interrupt()?;
        }
        EachNs::of(slices_ns, names, context)
    }

    /// Looks a slice of names drawn at random up, and says how many nanoseconds that took.
    ///
    /// # Errors
    /// If one does not lead where it should.
    pub(super) fn look_some_up(&mut self, way: LookUps, context: &Context) -> anyhow::Result<u64> {
        self.set(way);
        let (names, names_there, first) = (self.names, self.names(), self.asked);
        self.slice.fill(names, (first..first + SLICE_NAMES as u64).map(|place| names.at_random(place, names_there)));
        self.asked += SLICE_NAMES as u64;
        let (took_ns, missed) = self.look_slice_up(context);
        // Those in the collision table are 1 of 3,000 with 16 bits, 1 of 270 with 12.
        let most = if way.collision_table { 0 } else { SLICE_NAMES / 16 };
        ensure!(missed <= most, "{missed} names of a slice lead elsewhere, {}", way.name());
        Ok(took_ns)
    }

    fn set(&mut self, way: LookUps) {
        let table = self.load.table_mut().differentiator_mut();
        table.set_prefetch(way.prefetch);
        table.set_query_of_collisions(way.collision_table);
    }

    /// Nanoseconds of the look-ups, and how many did not lead where they should.
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
            .map(|&number| Some(PrefixMatch { number, prefix_octets: NUMBERED_NAME_OCTETS as u16 }));
        (took_ns, expected.zip(found).filter(|(expected, found)| expected != found).count())
    }
}
