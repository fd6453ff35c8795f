//! Measures FIB designs side by side: their speed and their memory.
//!
//! Every design is called through [`PrefixTable`], in batches of up to 64 names, hashing included. Shortly before a
//! slice of names is timed, its names are copied into one buffer, as if they had just been received: the names are then
//! in the CPU caches and the tables are not. A *warm* look-up repeats the slice just looked up. Designs take turns
//! slice by slice, so that a disturbance of the machine affects all of them. The result of a repetition is the median
//! of its slices.
//!
//! Every answer is compared with [`ReferenceModel`]'s, outside the timed part. A lossless design must always agree; a
//! lossy one must agree where a prefix exists.
//!
//! Memory: the bytes that the design reports, and the growth of the process, which shows bytes that a design does not
//! report.

use anyhow::ensure;
use namewire_tables::fib::FibRefusal;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};

use crate::clock::Clock;
use crate::experiment::{Context, Samples};
use crate::name_arena::{NameArena, ReferenceModel, port};
use crate::process;
use crate::record::Row;

/// Names of a slice.
pub const SLICE_NAMES: usize = 1024;
const _: () = assert!(SLICE_NAMES.is_multiple_of(DESIGN_BATCH_NAMES));

/// Names to look up, with the right answers.
pub struct Queries {
    names: NameArena,
    answers: Vec<Option<PrefixMatch>>,
}

impl Queries {
    pub fn new(names: NameArena, model: &ReferenceModel<'_>) -> Self {
        let answers = names.iter().map(|name| model.longest_prefix_match(name)).collect();
        Self { names, answers }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The number of whole slices.
    pub fn slices(&self) -> usize {
        self.names.len() / SLICE_NAMES
    }

    /// The right answers, in the order of the names.
    pub fn answers(&self) -> &[Option<PrefixMatch>] {
        &self.answers
    }

    /// How many names have a prefix.
    pub fn answered(&self) -> usize {
        self.answers.iter().flatten().count()
    }
}

/// A design with its measurements so far.
pub struct Subject {
    /// The name in records.
    pub name: String,
    pub table: Box<dyn PrefixTable>,
    /// Nanoseconds per look-up, tables not in the caches.
    pub lookup_ns: Samples,
    /// Nanoseconds per look-up of a slice that was just looked up.
    pub warm_lookup_ns: Samples,
    /// Nanoseconds per insertion of a prefix into the table that is being filled.
    pub insert_ns: Samples,
    /// Nanoseconds per removal from the full table, in random order.
    pub remove_ns: Samples,
    /// Nanoseconds per insertion into the full table of the removed prefixes, in another order.
    pub reinsert_ns: Samples,
    /// Bytes of the table after each tenth of the prefixes.
    pub bytes_by_tenth: Vec<usize>,
    /// Bytes by which the process grew while the table was filled; `None` if the system does not report it.
    pub grown_bytes: Option<usize>,
}

impl Subject {
    /// Fills the empty `table` with every prefix: number `i` leads to [`port`]`(i)`.
    ///
    /// # Errors
    /// If the table refuses a prefix or already had it; or on an interrupt.
    pub fn fill(
        name: &str,
        table: Box<dyn PrefixTable>,
        prefixes: &NameArena,
        context: &Context,
    ) -> anyhow::Result<Self> {
        Self::fill_in_order(name, table, prefixes, 0..prefixes.len(), context)
    }

    /// As [`Subject::fill`], in the order of `numbers`, which has each once.
    ///
    /// # Errors
    /// As [`Subject::fill`].
    pub fn fill_in_order(
        name: &str,
        table: Box<dyn PrefixTable>,
        prefixes: &NameArena,
        numbers: impl ExactSizeIterator<Item = usize>,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let mut subject = Self {
            name: name.to_owned(),
            table,
            lookup_ns: Samples::default(),
            warm_lookup_ns: Samples::default(),
            insert_ns: Samples::default(),
            remove_ns: Samples::default(),
            reinsert_ns: Samples::default(),
            bytes_by_tenth: Vec::new(),
            grown_bytes: None,
        };
        let before = resident_bytes();
        let started_ns = context.clock.now_ns();
        for (place, number) in numbers.enumerate() {
            let inserted = subject.insert(prefixes, number)?;
            ensure!(inserted.is_none(), "{name}: prefix {number} was there before");
            if (place + 1) * 10 / prefixes.len() > place * 10 / prefixes.len() {
                subject.bytes_by_tenth.push(subject.table.bytes());
            }
            if place % 4096 == 0 {
                context.check_interrupt()?;
            }
        }
        let took_ns = context.clock.now_ns() - started_ns;
        let resolved = context.clock.resolve(took_ns);
        subject.insert_ns.add_resolved(resolved.map(|ns| ns as f64 / prefixes.len() as f64));
        subject.grown_bytes = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
        ensure!(subject.table.len() == prefixes.len(), "{name}: has {} prefixes", subject.table.len());
        Ok(subject)
    }

    /// Bytes of memory per prefix, everything counted.
    pub fn bytes_per_name(&self) -> f64 {
        self.table.bytes() as f64 / self.table.len().max(1) as f64
    }

    /// One repetition: removes `numbers`, then inserts them again in reverse order; times both.
    ///
    /// # Errors
    /// If the table refuses a prefix, or did not have it.
    pub fn update(&mut self, prefixes: &NameArena, numbers: &[usize], clock: &Clock) -> anyhow::Result<()> {
        let started_ns = clock.now_ns();
        for &number in numbers {
            let before = self.table.remove(prefixes.get(number));
            ensure!(before == Some(port(number)), "{}: removed {before:?} for prefix {number}", self.name);
        }
        let removed_ns = clock.now_ns();
        for &number in numbers.iter().rev() {
            let before = self.insert(prefixes, number)?;
            ensure!(before.is_none(), "{}: prefix {number} was not removed", self.name);
        }
        let inserted_ns = clock.now_ns();
        let each = |took_ns: u64| clock.resolve(took_ns).map(|ns| ns as f64 / numbers.len() as f64);
        self.remove_ns.add_resolved(each(removed_ns - started_ns));
        self.reinsert_ns.add_resolved(each(inserted_ns - removed_ns));
        Ok(())
    }

    /// The rows that every experiment with designs reports.
    pub fn rows(&self, case: &str) -> Vec<Row> {
        let times = [
            ("look-up", &self.lookup_ns),
            ("look-up, warm", &self.warm_lookup_ns),
            ("insert", &self.insert_ns),
            ("insert again", &self.reinsert_ns),
            ("remove", &self.remove_ns),
        ];
        let mut rows: Vec<Row> =
            times.into_iter().map(|(metric, samples)| samples.row(case, &self.name, metric, "ns", None)).collect();
        let names = self.table.len().max(1) as f64;
        let total = self.table.bytes() as f64;
        let grown = self.grown_bytes.map(|bytes| format!("the process grew by {:.1} per name", bytes as f64 / names));
        rows.push(Samples::one(total / names).row(case, &self.name, "memory per name", "bytes", grown));
        rows.push(Samples::one(total).row(case, &self.name, "memory", "bytes", None));
        if self.table.forwarding_bytes() != self.table.bytes() {
            let forwarding = self.table.forwarding_bytes() as f64 / names;
            let remark = "without the route controller's names".to_owned();
            let samples = Samples::one(forwarding);
            rows.push(samples.row(case, &self.name, "forwarding memory per name", "bytes", Some(remark)));
        }
        rows
    }

    fn insert(&mut self, prefixes: &NameArena, number: usize) -> anyhow::Result<Option<u32>> {
        let result = self.table.insert(prefixes.get(number), port(number));
        result.map_err(|refusal: FibRefusal| anyhow::anyhow!("{}: prefix {number}: {refusal}", self.name))
    }
}

/// One repetition for every subject: in turn, each looks up `slices` slices from slice `first` on. Each slice is looked
/// up cold and then, from the same buffers, warm.
///
/// # Errors
/// If an answer is wrong, or on an interrupt.
pub fn look_up_in_turn(
    subjects: &mut [&mut Subject],
    queries: &Queries,
    first: usize,
    slices: usize,
    context: &Context,
) -> anyhow::Result<()> {
    ensure!(queries.slices() > 0, "too few names for a slice of {SLICE_NAMES}");
    let mut took_ns = vec![[Vec::new(), Vec::new()]; subjects.len()];
    let mut slice = Slice::default();
    for number in first..first + slices {
        context.check_interrupt()?;
        for (subject, took_ns) in subjects.iter().zip(&mut took_ns) {
            let first_name = number % queries.slices() * SLICE_NAMES;
            slice.copy(&queries.names, first_name);
            for took_ns in took_ns {
                took_ns.push(slice.look_up(&*subject.table, &context.clock));
                slice.check(subject, &queries.answers[first_name..])?;
            }
        }
    }
    for (subject, [cold, warm]) in subjects.iter_mut().zip(took_ns) {
        subject.lookup_ns.add_resolved(context.clock.median_ns(cold, SLICE_NAMES));
        subject.warm_lookup_ns.add_resolved(context.clock.median_ns(warm, SLICE_NAMES));
    }
    Ok(())
}

/// [`SLICE_NAMES`] names in one buffer that was just written, and the answers to their look-ups.
#[derive(Default)]
pub struct Slice {
    pub names: NameArena,
    pub found: Vec<Option<PrefixMatch>>,
}

impl Slice {
    fn copy(&mut self, names: &NameArena, first: usize) {
        self.names.clear();
        (first..first + SLICE_NAMES).for_each(|number| self.names.push(names.get(number)));
    }

    /// Looks up the names in batches; returns the nanoseconds taken.
    pub fn look_up(&mut self, table: &dyn PrefixTable, clock: &Clock) -> u64 {
        let mut batch = [&[][..]; DESIGN_BATCH_NAMES];
        // Otherwise a table that writes no answer would pass with the answers of the previous table.
        self.found.clear();
        self.found.resize(SLICE_NAMES, None);
        let started_ns = clock.now_ns();
        for (number, found) in self.found.chunks_mut(DESIGN_BATCH_NAMES).enumerate() {
            for (place, name) in batch.iter_mut().enumerate() {
                *name = self.names.get(number * DESIGN_BATCH_NAMES + place);
            }
            table.longest_prefix_match_batch(&batch, found);
        }
        clock.now_ns() - started_ns
    }

    fn check(&self, subject: &Subject, answers: &[Option<PrefixMatch>]) -> anyhow::Result<()> {
        let is_lossless = subject.table.is_lossless();
        for (place, (found, answer)) in self.found.iter().zip(answers).enumerate() {
            let is_right = found == answer || (!is_lossless && answer.is_none());
            ensure!(
                is_right,
                "{} found {found:?} instead of {answer:?} for {:?}",
                subject.name,
                String::from_utf8_lossy(self.names.get(place))
            );
        }
        Ok(())
    }
}

/// Resident memory of this process; `None` if the system does not report it.
fn resident_bytes() -> Option<usize> {
    process::resident_kib(std::process::id()).map(|kib| kib as usize * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use namewire_designs::fib::default_table::DefaultTable;
    use namewire_tables::{FibConfig, HashKey};

    /// A table that is wrong about one prefix, or writes no answer at all.
    struct Wrong {
        table: DefaultTable,
        writes_nothing: bool,
    }

    impl PrefixTable for Wrong {
        fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
            self.table.insert(prefix, number)
        }
        fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
            self.table.remove(prefix)
        }
        fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
            if self.writes_nothing {
                return;
            }
            self.table.longest_prefix_match_batch(names, out);
            if names.contains(&prefix(77).as_slice()) {
                out[0] = None;
            }
        }
        fn len(&self) -> usize {
            self.table.len()
        }
        fn bytes(&self) -> usize {
            self.table.bytes()
        }
    }

    fn filled(prefixes: &NameArena) -> DefaultTable {
        let mut table = default_table();
        for (number, prefix) in prefixes.iter().enumerate() {
            table.insert(prefix, port(number)).expect("room");
        }
        table
    }

    fn prefix(number: u32) -> Vec<u8> {
        [&[8, 4][..], &number.to_be_bytes()].concat()
    }

    fn default_table() -> DefaultTable {
        DefaultTable::new(FibConfig::new(5_000), HashKey::from_seed(1)).expect("address space")
    }

    #[test]
    fn a_wrong_table_cannot_look_fast() {
        let context = Context::new(Scale::Smoke, 1, vec![1], std::path::PathBuf::new());
        let names: Vec<Vec<u8>> = (0..3_000).map(prefix).collect();
        let prefixes: NameArena = names.iter().map(Vec::as_slice).collect();
        let model = ReferenceModel::new(&prefixes);
        let queries = Queries::new(prefixes.clone(), &model);
        assert_eq!((queries.slices(), queries.answered()), (2, 3_000));
        let mut right = Subject::fill("right", Box::new(default_table()), &prefixes, &context).expect("fits");
        look_up_in_turn(&mut [&mut right], &queries, 0, 3, &context).expect("right answers");
        right.update(&prefixes, &[5, 7, 2_999], &context.clock).expect("there");
        look_up_in_turn(&mut [&mut right], &queries, 0, 2, &context).expect("right answers");
        assert!(right.rows("case").iter().any(|row| row.metric == "memory per name" && row.value.is_some()));
        assert!(right.bytes_per_name() > 6.0);
        let mut wrong = Subject::fill("wrong", Box::new(default_table()), &prefixes, &context).expect("fits");
        for writes_nothing in [false, true] {
            wrong.table = Box::new(Wrong { table: filled(&prefixes), writes_nothing });
            let error = look_up_in_turn(&mut [&mut right, &mut wrong], &queries, 0, 2, &context).expect_err("wrong");
            assert!(error.to_string().starts_with("wrong found None"), "{error}");
        }
        assert!(wrong.update(&prefixes, &[1, 1], &context.clock).is_err());
    }
}
