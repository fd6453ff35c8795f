//! Subject: one set of descriptors in several tables, the packets for it, and its rows.

use anyhow::Context as _;
use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::Entry;
use namewire_tagnet::matching::vector::SearchCounts;

use super::Size;
use super::compression::Compression;
use super::forms::{self, Form, Goal, Scanned, Table};
use super::speeds::{Effort, Speeds};
use crate::experiment::{Context, Outcome};
use crate::tag_sets::{PacketTags, StoredSets, TagSource};

/// One set of descriptors in several tables, and the packets for it.
pub(super) struct Subject<'s> {
    pub(super) case: String,
    pub(super) compression: Compression,
    pub(super) tables: Vec<Table>,
    pub(super) packets: std::cell::RefCell<PacketTags<'s>>,
}

/// Packets of which the searches are counted.
pub(super) const COUNTED: usize = 2_048;

impl<'s> Subject<'s> {
    /// The first sets of a source.
    pub(super) fn build(
        context: &Context,
        size: &Size,
        source: &'s dyn TagSource,
        descriptors: usize,
        forms: &[Form],
    ) -> anyhow::Result<Self> {
        context.begin_step(source.title())?;
        Self::of_stored(context, size.scans, source, StoredSets::draw(source, descriptors)?, forms)
    }

    /// These sets.
    pub(super) fn of_stored(
        context: &Context,
        scans: usize,
        source: &'s dyn TagSource,
        stored: StoredSets,
        forms: &[Form],
    ) -> anyhow::Result<Self> {
        let mut compression = Compression::of_sets(source, &stored);
        let mut packets = PacketTags::new(source, &stored, context.seed);
        let case = format!("{}, {}", source.title(), stored.rounded());
        let entries = stored.into_entries();
        let unpermuted_nodes = forms::unpermuted_nodes(entries.clone())?;
        let mut tables = Vec::new();
        for form in forms {
            context.check_interrupt()?;
            tables.push(form.build(entries.clone())?);
        }
        check_by_scan(context, &entries, &tables, scans, &mut packets)?;
        compression.add_tables(unpermuted_nodes, &tables);
        Ok(Subject { case, compression, tables, packets: packets.into() })
    }

    /// Measures every table with packets that all match and have up to two extra tags, and adds the rows.
    pub(super) fn measure(&self, context: &Context, effort: Effort, outcome: &mut Outcome) -> anyhow::Result<Speeds> {
        self.compression.add_rows(&self.case, &self.tables, outcome);
        let tables: Vec<&Table> = self.tables.iter().collect();
        let mut draw = || self.draw(2);
        let speeds = Speeds::measure(context, &tables, effort, &mut draw)?;
        add_speeds(&speeds, &self.case, &tables, outcome);
        let subjects = ("subsets found", "for each packet");
        outcome.add_value(&self.case, "all", subjects, speeds.found_mean);
        self.add_counts(outcome)?;
        add_savings(&speeds, &self.case, &self.tables, outcome);
        Ok(speeds)
    }

    /// The descriptor of a packet that matches, with up to two extra tags.
    pub(super) fn draw(&self, extra_tags_max: usize) -> anyhow::Result<Descriptor> {
        Ok(self.packets.borrow_mut().matching_up_to(extra_tags_max)?.descriptor())
    }

    pub(super) fn table(&self, form: Form) -> anyhow::Result<&Table> {
        self.tables.iter().find(|table| table.form == form).with_context(|| format!("no table {form}"))
    }

    /// What the searches for [`COUNTED`] packets do.
    pub(super) fn counts(&self, form: Form, goal: Goal) -> anyhow::Result<Option<SearchCounts>> {
        let queries: Vec<Descriptor> = (0..COUNTED).map(|_| self.draw(2)).collect::<anyhow::Result<_>>()?;
        Ok(self.table(form)?.counts(goal, &queries))
    }

    /// Places of memory that a packet's search reads in the table, on average, by goal as in [`Goal::BOTH`]: lists and
    /// chains of a vector, or steps of the router's own table (a partition, a line of a node, a leaf). Both goals have
    /// the same packets.
    pub(super) fn accesses(&self, form: Form) -> anyhow::Result<[f64; 2]> {
        let queries: Vec<Descriptor> = (0..COUNTED).map(|_| self.draw(2)).collect::<anyhow::Result<_>>()?;
        let table = self.table(form)?;
        let mut means = [0.0; 2];
        for (mean, goal) in means.iter_mut().zip(Goal::BOTH) {
            let all = match table.counts(goal, &queries) {
                Some(counts) => counts.lists + counts.chains,
                None => table.steps(goal, &queries).context("a table counts its searches")?,
            };
            *mean = all as f64 / COUNTED as f64;
        }
        Ok(means)
    }

    /// What a search does in each table: the reason of its speed.
    fn add_counts(&self, outcome: &mut Outcome) -> anyhow::Result<()> {
        for table in &self.tables {
            for (goal, accesses) in Goal::BOTH.into_iter().zip(self.accesses(table.form)?) {
                let metric = format!("accesses of {}", goal.name());
                outcome.add_value(&self.case, &table.form.to_string(), (&metric, "for each packet"), accesses);
                let Some(counts) = self.counts(table.form, goal)? else { continue };
                for (what, count) in [("lists", counts.lists), ("cells", counts.cells), ("chains", counts.chains)] {
                    let metric = format!("{what} of {}", goal.name());
                    let mean = count as f64 / COUNTED as f64;
                    outcome.add_value(&self.case, &table.form.to_string(), (&metric, "for each packet"), mean);
                }
            }
        }
        Ok(())
    }
}

/// Compares the answers to some queries with a scan of all entries.
fn check_by_scan(
    context: &Context,
    entries: &[Entry],
    tables: &[Table],
    scans: usize,
    packets: &mut PacketTags<'_>,
) -> anyhow::Result<()> {
    for scan in 0..scans {
        context.check_interrupt()?;
        let tags = if scan % 4 == 3 { packets.absent()? } else { packets.matching_up_to(2)? };
        let query = tags.descriptor();
        let scanned = Scanned::new(entries, &query);
        tables.iter().try_for_each(|table| table.check(&query, &scanned))?;
    }
    Ok(())
}

/// A row for each table and goal.
pub(super) fn add_speeds(speeds: &Speeds, case: &str, tables: &[&Table], outcome: &mut Outcome) {
    for goal in Goal::BOTH {
        for table in tables {
            let samples = speeds.combined(table.form, table.form, goal, |per_s, _| per_s / 1e3);
            outcome.rows.push(samples.row(case, &table.form.to_string(), goal.name(), "thousand per s", None));
        }
    }
}

/// The time that each step of the paper saves (Figs. 9b, 9c).
fn add_savings(speeds: &Speeds, case: &str, tables: &[Table], outcome: &mut Outcome) {
    let has = |form: Form| tables.iter().any(|table| table.form == form);
    for (step, before, after) in [
        ("time saved by bit permutation", Form::Plain, Form::BitPermutation),
        ("time saved then by chain removal", Form::BitPermutation, Form::Paper),
        ("time saved by SROL over SOL", Form::SiblingOrder, Form::Paper),
    ] {
        for goal in Goal::BOTH.into_iter().filter(|_| has(before) && has(after)) {
            let saved = speeds.combined(before, after, goal, |before, after| 100.0 * (1.0 - before / after));
            outcome.rows.push(saved.row(case, goal.name(), step, "%", None));
        }
    }
}
