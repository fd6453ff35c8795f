//! How much memory does a table of descriptors take, and how many packets does it match in a second?
//!
//! Source: TagNet16 §4.1 to §4.4, Figs. 7 to 10. Its descriptors are not public; `docs/tag-sets.md` fixes ours.
//! `--tags` adds real ones.
//!
//! | part | what it measures | paper |
//! | --- | --- | --- |
//! | `forms.rs` | the tables: the paper's, step by step, and those with our work | §3.2 |
//! | `subject.rs` | one set of descriptors in several tables, and the packets for it | |
//! | `compression.rs` | tags, 1-bits, memory by step | Fig. 9a |
//! | `speeds.rs` | tables in turn, on the same queries | Figs. 9b, 9c |
//! | `fitted.rs` | the sets that stand for 10M, 10M-CCN and 63M, beside the paper's numbers | §4.1 to §4.4, Fig. 10c |
//! | `model_sweep.rs` | which numbers of the fitted generator meet which facts | §4.2, §4.4 |
//! | `figures.rs` | sweeps of matching rate, extra tags, threads | Figs. 7, 8, 10a, 10b |
//! | `updates.rs` | a writer and a reader at the same time, in the router's own table | not in the paper |
//! | `headline.rs` | headlines, and why they are as they are | |
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
mod fitted;
mod forms;
mod headline;
mod model_sweep;
mod speeds;
mod subject;
mod updates;

use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::tag_sets::{ApplicationClasses, EXPONENTS, NameTags, RARE_TAGS, TagFile, TagSource as _, ZipfTags};
use forms::Form;
use speeds::Effort;
use subject::Subject;

pub(super) const FILE: &str = include_str!("experiment.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Descriptors of a set.
    descriptors: usize,
    zipf_vocabulary: u32,
    topic_vocabulary_max: u32,
    /// Descriptors of the fitted set of which all other sizes are samples: the paper's 63M.
    population: usize,
    /// Further sizes of the fitted set, in descriptors (Fig. 10c).
    sizes: Vec<usize>,
    /// Descriptors of a model of the sweep, and of a sample of it.
    model_population: usize,
    model_sample: usize,
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
            + usize::from(file.is_some())
            + updates::STEPS
            + model_sweep::STEPS
            + fitted::steps(&size),
    );
    let mut outcome = Outcome::default();
    let sweep = zipf_sweep(context, &size, &mut outcome)?;
    for rare_tags in RARE_TAGS {
        let source = ApplicationClasses::with_rare_tags(context.seed, size.topic_vocabulary_max, rare_tags);
        let subject = Subject::build(context, &size, &source, size.descriptors, &COMMON)?;
        subject.measure(context, size.brief, &mut outcome)?;
    }
    let names = NameTags::invented(context.seed, size.descriptors)?;
    Subject::build(context, &size, &names, size.descriptors, &Form::ALL)?.measure(context, size.brief, &mut outcome)?;
    if let Some(file) = &file {
        let subject = Subject::build(context, &size, file, size.descriptors, &Form::ALL)?;
        subject.measure(context, size.brief, &mut outcome)?;
        outcome.notes.push(format!("{}: {} sets, {} lines left out.", file.title(), file.sets(), file.left_out));
    }
    let classes = ApplicationClasses::new(context.seed, size.topic_vocabulary_max);
    let subject = Subject::build(context, &size, &classes, size.descriptors, &Form::ALL)?;
    subject.measure(context, size.brief, &mut outcome)?;
    headline::add_sweep_note(&sweep, subject.compression.permutation_percent, &mut outcome);
    drop(subject);
    updates::run(context, &size, &classes, &mut outcome)?;
    drop(classes);
    model_sweep::run(context, &size, &mut outcome)?;
    fitted::run(context, &size, names.with_www(), &mut outcome)?;
    headline::add_range_notes(&mut outcome);
    Ok(outcome)
}

/// Independent tags by exponent: how far bit permutation shrinks their table, in percent.
fn zipf_sweep(context: &Context, size: &Size, outcome: &mut Outcome) -> anyhow::Result<Vec<(f64, f64)>> {
    let saved = |exponent: f64| {
        let source = ZipfTags::new(context.seed, size.zipf_vocabulary, exponent);
        let subject = Subject::build(context, size, &source, size.descriptors, &COMMON)?;
        subject.measure(context, size.brief, outcome)?;
        Ok((exponent, subject.compression.permutation_percent))
    };
    EXPONENTS.into_iter().map(saved).collect()
}
