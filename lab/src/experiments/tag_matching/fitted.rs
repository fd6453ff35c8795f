//! Fitted: the sets that stand for the paper's 10M, 10M-CCN and 63M, beside what it tells of them.
//!
//! 63M is the population; 10M is a sample of its descriptors, as in the paper, and so are the sizes between. 10M-CCN
//! is names with `www`. The generator is fitted to the facts that do not depend on a machine; `docs/tag-sets.md` has
//! the table of them.
//!
//! An *access* is a place of memory that a search reads: a list of siblings or a chain of the paper's vector, or a step
//! of the router's own table (a partition, a line of a node, a leaf). It is what the paper's facts about time are
//! compared with, because a search waits for memory most of the time.
//!
//! The paper's speed per thread: its total at 32 threads, less the mean gain of each of five doublings. That is what
//! one thread alone makes there, and more than a 24th or a 32nd of the total.

use serde::Deserialize;

use super::compression::Compression;
use super::forms::{Form, Goal};
use super::speeds::Speeds;
use super::subject::Subject;
use super::{COMMON, Size, figures, headline};
use crate::experiment::{Context, Outcome};
use crate::papers;
use crate::tag_sets::{NameTags, StoredSets, TagSource, Users};

/// The forms of the largest set: those without chain removal take 10 GB.
const LARGEST: [Form; 3] = [Form::SiblingOrder, Form::Paper, Form::BurstTrieBatches];
/// Bytes of a cell with which the paper's 17.1 bytes are those of its cells alone.
const WIDE_CELL_BYTES: f64 = 12.0;

/// Steps of the progress bar.
pub(super) fn steps(size: &Size) -> usize {
    2 + figures::STEPS + size.sizes.len()
}

/// What the paper tells of its three sets.
#[derive(Deserialize)]
struct PaperFacts {
    /// Thousand packets per second at 32 threads.
    fas_10m: f64,
    fls_10m: f64,
    /// Percent that twice the threads gain, on average.
    fas_gain: f64,
    fls_gain: f64,
    doublings: i32,
}

impl PaperFacts {
    /// Packets per second of one thread, 10M.
    fn per_thread(&self, goal: Goal) -> f64 {
        let (total, gain) = match goal {
            Goal::All => (self.fas_10m, self.fas_gain),
            Goal::Largest => (self.fls_10m, self.fls_gain),
        };
        1e3 * total / (1.0 + gain / 100.0).powi(self.doublings)
    }
}

/// Measures the three sets and the sizes between.
pub(super) fn run(context: &Context, size: &Size, names: NameTags, outcome: &mut Outcome) -> anyhow::Result<()> {
    let subject = Subject::build(context, size, &names, size.descriptors, &Form::ALL)?;
    subject.measure(context, size.brief, outcome)?;
    add_facts(&subject, outcome)?;
    drop(subject);
    drop(names);
    let users = Users::new(context.seed, size.topic_vocabulary_max);
    context.begin_step(users.title())?;
    let population = StoredSets::draw(&users, size.population)?;
    let sample = population.sample(size.descriptors, context.seed);
    let subject = Subject::of_stored(context, size.scans, &users, sample, &Form::ALL)?;
    let speeds = subject.measure(context, size.effort, outcome)?;
    headline::add_headline(&subject, &speeds, outcome)?;
    add_per_thread(&subject, &speeds, outcome)?;
    let small = Work::of(&subject, &speeds)?;
    add_facts(&subject, outcome)?;
    figures::run(context, size, &subject, outcome)?;
    drop(subject);
    for &descriptors in &size.sizes {
        context.begin_step(&format!("{}, {descriptors}", users.title()))?;
        let is_all = descriptors >= population.numbered.len();
        let forms = if is_all { LARGEST } else { COMMON };
        let sample = population.sample(descriptors, context.seed);
        let subject = Subject::of_stored(context, size.scans, &users, sample, &forms)?;
        let speeds = subject.measure(context, size.brief, outcome)?;
        if is_all {
            let tables = [subject.table(Form::Paper)?, subject.table(Form::BurstTrieBatches)?];
            figures::threads(context, size, &subject, (&tables, &format!("Fig. 10, {}", subject.case)), outcome)?;
            add_facts(&subject, outcome)?;
            add_largest(&subject, &small, &Work::of(&subject, &speeds)?, outcome)?;
        }
    }
    Ok(())
}

/// What a search costs in one set: of the paper's form and of ours, by goal as in [`Goal::BOTH`].
struct Work {
    accesses: [[f64; 2]; 2],
    per_s: [[f64; 2]; 2],
}

/// The two forms that are compared.
const COMPARED: [Form; 2] = [Form::Paper, Form::BurstTrieBatches];

impl Work {
    fn of(subject: &Subject<'_>, speeds: &Speeds) -> anyhow::Result<Self> {
        let mut work = Work { accesses: [[0.0; 2]; 2], per_s: [[0.0; 2]; 2] };
        for (form, (accesses, per_s)) in COMPARED.into_iter().zip(work.accesses.iter_mut().zip(&mut work.per_s)) {
            *accesses = subject.accesses(form)?;
            *per_s = Goal::BOTH.map(|goal| speeds.samples(form, goal).median().unwrap_or(0.0));
        }
        Ok(work)
    }
}

/// The facts that depend on no machine.
fn add_facts(subject: &Subject<'_>, outcome: &mut Outcome) -> anyhow::Result<()> {
    let Subject { case, compression: Compression { descriptors, .. }, .. } = subject;
    for form in COMPARED {
        let [all, largest] = subject.accesses(form)?;
        outcome.add_value(case, &form.to_string(), ("accesses, FAS over FLS", "times"), all / largest);
    }
    let cells = subject.table(Form::Paper)?.cells().unwrap_or(0) as f64 / (*descriptors).max(1) as f64;
    let wide = ("memory in cells of 12 bytes alone", "bytes per descriptor");
    outcome.add_value(case, "facts", wide, cells * WIDE_CELL_BYTES);
    Ok(())
}

/// One thread beside one thread of the paper.
fn add_per_thread(subject: &Subject<'_>, speeds: &Speeds, outcome: &mut Outcome) -> anyhow::Result<()> {
    let paper: PaperFacts = papers::figures(papers::TAG_NET_16, "/section_4_4")?;
    let [faithful_accesses, own_accesses] = [subject.accesses(Form::Paper)?, subject.accesses(Form::BurstTrieBatches)?];
    let keys = ["fas_over_paper_per_thread", "fls_over_paper_per_thread"];
    for (place, (goal, key)) in Goal::BOTH.into_iter().zip(keys).enumerate() {
        let theirs = paper.per_thread(goal);
        for form in COMPARED {
            let ratios = speeds.combined(form, form, goal, |ours, _| ours / theirs);
            let metric = format!("{} over the paper's, one thread", goal.name());
            outcome.rows.push(ratios.row(&subject.case, &form.to_string(), &metric, "times", None));
            if form == Form::BurstTrieBatches {
                outcome.add_ratio(key, &ratios);
            }
        }
        let faithful = speeds.samples(Form::Paper, goal).median().unwrap_or(0.0);
        let [accesses, ours] = [faithful_accesses[place], own_accesses[place]];
        let ns = 1e9 / faithful / accesses;
        outcome.notes.push(format!(
            "{}, {}: one thread of the paper makes {:.1} thousand packets a second, its own form here {:.1}. A packet \
             takes {accesses:.0} accesses of {ns:.0} ns there; the paper's speed leaves {:.0} of them. The router's \
             own table takes {ours:.0}.",
            subject.case,
            goal.name(),
            theirs / 1e3,
            faithful / 1e3,
            1e9 / theirs / ns
        ));
    }
    Ok(())
}

/// 63M beside 10M.
fn add_largest(subject: &Subject<'_>, small: &Work, large: &Work, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mean = |ratio: [f64; 2]| (ratio[0] + ratio[1]) / 2.0;
    for (place, form) in COMPARED.into_iter().enumerate() {
        let accesses = [0, 1].map(|goal| large.accesses[place][goal] / small.accesses[place][goal]);
        let slowdown = [0, 1].map(|goal| small.per_s[place][goal] / large.per_s[place][goal]);
        for (metric, ratio) in [("accesses over those of 10 M", accesses), ("time over that of 10 M", slowdown)] {
            for (goal, ratio) in Goal::BOTH.into_iter().zip(ratio) {
                let metric = format!("{metric}, {}", goal.name());
                outcome.add_value(&subject.case, &form.to_string(), (&metric, "times"), ratio);
            }
            outcome.add_value(&subject.case, &form.to_string(), (&format!("{metric}, mean"), "times"), mean(ratio));
        }
        if form == Form::BurstTrieBatches {
            outcome.headline.insert("tag_63m_over_10m_slowdown".to_owned(), mean(slowdown));
        }
    }
    let bytes = subject.table(Form::BurstTrieBatches)?.bytes_per_descriptor();
    outcome.headline.insert("tag_63m_bytes".to_owned(), bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_paper_is_its_total_less_the_gains() -> anyhow::Result<()> {
        let paper: PaperFacts = papers::figures(papers::TAG_NET_16, "/section_4_4")?;
        assert!((paper.per_thread(Goal::All) - 25_830.0).abs() < 10.0, "{}", paper.per_thread(Goal::All));
        assert!((paper.per_thread(Goal::Largest) - 44_410.0).abs() < 20.0, "{}", paper.per_thread(Goal::Largest));
        Ok(())
    }
}
