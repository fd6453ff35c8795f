//! How much memory does a table of descriptors take, and how many packets does it match in a second?
//!
//! Source: TagNet16 §4.1 to §4.4, Figs. 7 to 10. Its descriptors are not public; `docs/tag-sets.md` fixes ours.
//! `--tags` adds real ones.
//!
//! | part | what it measures | paper |
//! | --- | --- | --- |
//! | `forms.rs` | the tables: the paper's, step by step, and those with our work | §3.2 |
//! | `compression.rs` | tags, 1-bits, memory by step | Fig. 9a |
//! | `speeds.rs` | tables in turn, on the same queries | Figs. 9b, 9c |
//! | `figures.rs` | sweeps of matching rate, extra tags, threads | Figs. 7, 8, 10a, 10b |
//! | `updates.rs` | a writer and a reader at the same time, in the router's own table | not in the paper |
//! | here | every source of sets, sizes, headline, notes | Fig. 10c |
//!
//! *Faithful* is the fastest form with the paper's own switches: no compression, bit permutation, or chain removal too
//! with SOL or SROL; always with all three prunings. For FLS it has the paper's walk, which takes the first largest
//! subset that it meets. Our forms find the lowest of the largest subsets, which costs more.
//!
//! Before any time, some queries are compared with a scan of all descriptors. In each repetition all tables must find
//! the same.
//!
//! Limits: it times the search alone. `tag-traffic` times the whole way of a packet.

mod compression;
mod figures;
mod forms;
mod speeds;
mod updates;

use anyhow::Context as _;
use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::Entry;
use namewire_tagnet::matching::vector::SearchCounts;
use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::papers;
use crate::record::Row;
use crate::tag_sets::{
    ApplicationClasses, EXPONENTS, NameTags, PacketTags, RARE_TAGS, StoredSets, TagFile, TagSource, ZipfTags,
};
use compression::{Compression, exponent_of};
use forms::{Form, Goal, Scanned, Table};
use speeds::{Effort, Speeds};

pub(super) const FILE: &str = include_str!("experiment.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Descriptors of a set.
    descriptors: usize,
    zipf_vocabulary: u32,
    topic_vocabulary_max: u32,
    /// Further sizes, in descriptors (Fig. 10c).
    sizes: Vec<usize>,
    /// For the headline.
    effort: Effort,
    /// For everything else.
    brief: Effort,
    /// Queries compared with a scan, for each set.
    scans: usize,
}

/// The forms that every set is stored in.
const COMMON: [Form; 3] = [Form::Paper, Form::OurVector, Form::BurstTrieBatches];

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let file = context.tags.as_deref().map(TagFile::read).transpose()?;
    context.plan_steps(
        EXPONENTS.len()
            + RARE_TAGS.len()
            + 2
            + size.sizes.len()
            + usize::from(file.is_some())
            + figures::STEPS
            + updates::STEPS,
    );
    let mut outcome = Outcome::default();
    let mut sweep = Vec::new();
    for exponent in EXPONENTS {
        let source = ZipfTags::new(context.seed, size.zipf_vocabulary, exponent);
        let subject = Subject::build(context, &size, &source, size.descriptors, &COMMON)?;
        subject.measure(context, size.brief, &mut outcome)?;
        sweep.push((exponent, subject.compression.permutation_percent));
    }
    for rare_tags in RARE_TAGS {
        let source = ApplicationClasses::with_rare_tags(context.seed, size.topic_vocabulary_max, rare_tags);
        Subject::build(context, &size, &source, size.descriptors, &COMMON)?.measure(
            context,
            size.brief,
            &mut outcome,
        )?;
    }
    let names = NameTags::invented(context.seed, size.descriptors)?;
    Subject::build(context, &size, &names, size.descriptors, &Form::ALL)?.measure(context, size.brief, &mut outcome)?;
    drop(names);
    if let Some(file) = &file {
        Subject::build(context, &size, file, size.descriptors, &Form::ALL)?.measure(
            context,
            size.brief,
            &mut outcome,
        )?;
        outcome.notes.push(format!("{}: {} sets, {} lines left out.", file.title(), file.sets(), file.left_out));
    }
    let classes = ApplicationClasses::new(context.seed, size.topic_vocabulary_max);
    let subject = Subject::build(context, &size, &classes, size.descriptors, &Form::ALL)?;
    let speeds = subject.measure(context, size.effort, &mut outcome)?;
    add_headline(&subject, &speeds, &mut outcome)?;
    add_sweep_note(&sweep, subject.compression.permutation_percent, &mut outcome);
    figures::run(context, &size, &subject, &mut outcome)?;
    drop(subject);
    updates::run(context, &size, &classes, &mut outcome)?;
    for &descriptors in &size.sizes {
        let subject = Subject::build(context, &size, &classes, descriptors, &COMMON)?;
        subject.measure(context, size.brief, &mut outcome)?;
    }
    add_range_notes(&mut outcome);
    Ok(outcome)
}

/// One set of descriptors in several tables, and the packets for it.
struct Subject<'s> {
    case: String,
    compression: Compression,
    tables: Vec<Table>,
    packets: std::cell::RefCell<PacketTags<'s>>,
}

/// Packets of which the searches are counted.
const COUNTED: usize = 512;
/// Stored sets that packets are drawn from.
const PACKET_SETS: usize = 1 << 20;

impl<'s> Subject<'s> {
    fn build(
        context: &Context,
        size: &Size,
        source: &'s dyn TagSource,
        descriptors: usize,
        forms: &[Form],
    ) -> anyhow::Result<Self> {
        context.begin_step(source.title())?;
        let stored = StoredSets::draw(source, descriptors)?;
        let mut compression = Compression::of_sets(source, &stored);
        let mut packets = PacketTags::new(source, &stored, PACKET_SETS.min(stored.numbered.len()), context.seed);
        let case = format!("{}, {}", source.title(), stored.rounded());
        let entries = stored.into_entries();
        let unpermuted_nodes = forms::unpermuted_nodes(entries.clone())?;
        let mut tables = Vec::new();
        for form in forms {
            context.check_interrupt()?;
            tables.push(form.build(entries.clone())?);
        }
        check_by_scan(context, &entries, &tables, size.scans, &mut packets)?;
        compression.add_tables(unpermuted_nodes, &tables);
        Ok(Subject { case, compression, tables, packets: packets.into() })
    }

    /// Measures every table with packets that all match and have up to two extra tags, and adds the rows.
    fn measure(&self, context: &Context, effort: Effort, outcome: &mut Outcome) -> anyhow::Result<Speeds> {
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
    fn draw(&self, extra_tags_max: usize) -> anyhow::Result<Descriptor> {
        Ok(self.packets.borrow_mut().matching_up_to(extra_tags_max)?.descriptor())
    }

    fn table(&self, form: Form) -> anyhow::Result<&Table> {
        self.tables.iter().find(|table| table.form == form).with_context(|| format!("no table {form}"))
    }

    /// What the searches for [`COUNTED`] packets do.
    fn counts(&self, form: Form, goal: Goal) -> anyhow::Result<Option<SearchCounts>> {
        let queries: Vec<Descriptor> = (0..COUNTED).map(|_| self.draw(2)).collect::<anyhow::Result<_>>()?;
        Ok(self.table(form)?.counts(goal, &queries))
    }

    /// What a search does in each table: the reason of its speed.
    fn add_counts(&self, outcome: &mut Outcome) -> anyhow::Result<()> {
        for table in &self.tables {
            for goal in Goal::BOTH {
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
fn add_speeds(speeds: &Speeds, case: &str, tables: &[&Table], outcome: &mut Outcome) {
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

fn add_headline(subject: &Subject<'_>, speeds: &Speeds, outcome: &mut Outcome) -> anyhow::Result<()> {
    for (goal, speed_key, ratio_key) in
        [(Goal::All, "fas_per_s", "fas_speedup"), (Goal::Largest, "fls_per_s", "fls_speedup")]
    {
        let Some(faithful) = speeds.fastest(&Form::OF_THE_PAPER, goal) else { continue };
        let Some(beyond) = speeds.fastest(&Form::BEYOND_THE_PAPER, goal) else { continue };
        let samples = speeds.samples(faithful, goal);
        let ratios = speeds.combined(beyond, faithful, goal, |beyond, faithful| beyond / faithful);
        let (speed, ratio) = (samples.median().unwrap_or(0.0), ratios.median().unwrap_or(0.0));
        outcome.add_steady(speed_key, &samples);
        outcome.add_steady(ratio_key, &ratios);
        outcome.notes.push(format!(
            "{}, {}: the fastest of the paper's own forms is \"{faithful}\" with {speed:.0} packets a second; of ours, \
             \"{beyond}\" with {ratio:.2} times as many.",
            subject.case,
            goal.name(),
        ));
        add_reason(subject, faithful, goal, speed, outcome)?;
        add_step_reason(subject, goal, outcome)?;
    }
    let compression = &subject.compression;
    let own = subject.table(Form::BurstTrie)?.bytes_per_descriptor();
    outcome.headline.insert("bytes_per_descriptor".to_owned(), own);
    outcome.headline.insert("permutation_saved_percent".to_owned(), compression.permutation_percent);
    outcome.headline.insert("chains_saved_percent".to_owned(), compression.chain_percent);
    Ok(())
}

/// The paper's speeds on one thread, in thousand packets per second (§2.4). The text does not say which end is FAS.
#[derive(Deserialize)]
struct PaperSpeed {
    least: f64,
    most: f64,
}

/// Why the paper's form is as fast as it is: what a search reads, and how much of that the paper's speed allows.
fn add_reason(subject: &Subject<'_>, form: Form, goal: Goal, per_s: f64, outcome: &mut Outcome) -> anyhow::Result<()> {
    let paper: PaperSpeed = papers::figures(papers::TAG_NET_16, "/section_2_4_thousand_per_s")?;
    let counts = subject.counts(form, goal)?.context("the paper's forms count")?;
    let [lists, cells, chains] = [counts.lists, counts.cells, counts.chains].map(|sum| sum as f64 / COUNTED as f64);
    let ns_of_one = 1e9 / per_s / (lists + chains);
    outcome.notes.push(format!(
        "Why: a search of \"{form}\" for {} scans {cells:.0} cells in {lists:.0} lists and compares {chains:.0} chains; \
         that is {ns_of_one:.0} ns for each list or chain. The paper's {:.0} to {:.0} thousand packets a second on one \
         thread leave {:.0} to {:.0} such lists and chains for a packet.",
        goal.name(),
        paper.least,
        paper.most,
        1e6 / paper.most / ns_of_one,
        1e6 / paper.least / ns_of_one
    ));
    Ok(())
}

/// What each step of the paper takes from a search, and what it adds: the reason for the time that it saves or costs.
fn add_step_reason(subject: &Subject<'_>, goal: Goal, outcome: &mut Outcome) -> anyhow::Result<()> {
    let counts = |form: Form| -> anyhow::Result<[f64; 2]> {
        let counts = subject.counts(form, goal)?.context("the paper's forms count")?;
        Ok([counts.lists, counts.chains].map(|sum| sum as f64 / COUNTED as f64))
    };
    let ([plain, _], [permuted, _], [lists, chains]) =
        (counts(Form::Plain)?, counts(Form::BitPermutation)?, counts(Form::Paper)?);
    let verdict = if chains > permuted - lists { "more" } else { "fewer" };
    outcome.notes.push(format!(
        "Steps, {}: a search scans {plain:.0} lists without compression, {permuted:.0} with popular bits first, and \
         {lists:.0} without chains. Then it also compares {chains:.0} chains, each in a place of its own: {verdict} \
         places than the {:.0} lists that chain removal takes away. SOL and SROL visit the same, in another order.",
        goal.name(),
        permuted - lists
    ));
    Ok(())
}

/// In which sets the paper's final form is fastest and slowest.
fn add_range_notes(outcome: &mut Outcome) {
    for goal in Goal::BOTH {
        let is_speed = |row: &&Row| row.subject == Form::Paper.name() && row.metric == goal.name();
        let of_sets = outcome.rows.iter().filter(is_speed).filter(|row| !row.case.starts_with("Fig."));
        let mut speeds: Vec<(f64, &str)> =
            of_sets.filter_map(|row| Some((row.value.as_ref()?.median, row.case.as_str()))).collect();
        speeds.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (Some((slowest, slow_set)), Some((fastest, fast_set))) = (speeds.first(), speeds.last()) else { continue };
        let note = format!(
            "The paper's final form, {}: from {slowest:.1} thousand packets a second with {slow_set} to {fastest:.1} with \
             {fast_set}.",
            goal.name()
        );
        outcome.notes.push(note);
    }
}

fn add_sweep_note(sweep: &[(f64, f64)], classes_percent: f64, outcome: &mut Outcome) {
    let savings: Vec<String> = sweep.iter().map(|(exponent, saved)| format!("{saved:.0} % at {exponent}")).collect();
    let reached = |percent: f64| match exponent_of(percent, sweep) {
        Some(exponent) => format!("{percent} % at an exponent of {exponent:.2}"),
        None => format!("{percent} % at no exponent"),
    };
    outcome.notes.push(format!(
        "Bit permutation saves, by Zipf exponent: {}. So independent tags reach the paper's {}, and {}. Application \
         classes save {classes_percent:.0} %.",
        savings.join(", "),
        reached(42.0),
        reached(48.0)
    ));
}
