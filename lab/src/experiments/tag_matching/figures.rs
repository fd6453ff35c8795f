//! Figures: results that the paper has only for its 10M set. Sweeps of the matching rate (Fig. 7) and of the number of
//! extra tags (Fig. 8), and several threads (Figs. 10a, 10b).

use anyhow::ensure;
use namewire_tagnet::Descriptor;

use super::Size;
use super::forms::{Form, Goal, Table};
use super::speeds::{Speeds, by_threads};
use super::subject::{Subject, add_speeds};
use crate::experiment::{Context, Outcome, Samples};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 3;
/// Percent of packets that match.
const MATCHING_PERCENT: [u32; 5] = [0, 25, 50, 75, 100];
/// Extra tags of a packet.
const EXTRA_TAGS: [usize; 7] = [0, 1, 2, 3, 4, 5, 6];
/// As in the paper.
const THREADS_MAX: usize = 32;
/// Draws of a packet that matches nothing.
const TRIES: usize = 1_000;

/// Measures the paper's final form and ours.
pub(super) fn run(context: &Context, size: &Size, subject: &Subject<'_>, outcome: &mut Outcome) -> anyhow::Result<()> {
    let tables = [subject.table(Form::Paper)?, subject.table(Form::BurstTrieBatches)?];
    context.begin_step("matching rate")?;
    for percent in MATCHING_PERCENT {
        let mut random = fastrand::Rng::with_seed(context.seed);
        let mut draw = || if random.u32(..100) < percent { subject.draw(2) } else { absent(subject, tables[1]) };
        let speeds = Speeds::measure(context, &tables, size.brief, &mut draw)?;
        add_speeds(&speeds, &format!("Fig. 7, {percent} % match"), &tables, outcome);
    }
    context.begin_step("extra tags")?;
    for extra_tags in EXTRA_TAGS {
        let mut draw = || Ok(subject.packets.borrow_mut().matching(extra_tags)?.descriptor());
        let speeds = Speeds::measure(context, &tables, size.brief, &mut draw)?;
        add_speeds(&speeds, &format!("Fig. 8, {extra_tags} extra tags"), &tables, outcome);
    }
    context.begin_step("threads")?;
    threads(context, size, subject, (&tables, "Fig. 10"), outcome)
}

/// A packet of which the table finds no subset.
fn absent(subject: &Subject<'_>, table: &Table) -> anyhow::Result<Descriptor> {
    for _ in 0..TRIES {
        let query = subject.packets.borrow_mut().absent()?.descriptor();
        if table.search(Goal::Largest, &[query]).found == 0 {
            return Ok(query);
        }
    }
    anyhow::bail!("{TRIES} packets with tags of no set have all matched")
}

/// Throughput by number of threads (Figs. 10a, 10b): of these tables, in cases that begin so.
pub(super) fn threads(
    context: &Context,
    size: &Size,
    subject: &Subject<'_>,
    (tables, case): (&[&Table], &str),
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS_MAX));
    let counts: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&threads| threads <= cores).collect();
    for table in tables {
        for goal in Goal::BOTH {
            // One thread's time for these is about a pass.
            let started_ns = context.clock.now_ns();
            let mut queries: Vec<Descriptor> = Vec::new();
            while context.clock.now_ns() - started_ns < size.brief.pass_ns || queries.len() < 2 * cores {
                let query = subject.draw(2)?;
                std::hint::black_box(table.search(goal, &[query]));
                queries.push(query);
            }
            let mut speeds = vec![Samples::default(); counts.len()];
            let expected = table.search(goal, &queries);
            for _ in 0..size.brief.repetitions {
                for (&threads, samples) in counts.iter().zip(&mut speeds) {
                    context.check_interrupt()?;
                    let (took_ns, totals) = by_threads(context, table, goal, threads, &queries);
                    ensure!(totals == expected, "{threads} threads find {totals:?}, not {expected:?}");
                    let per_s = context.clock.resolve(took_ns).map(|ns| queries.len() as f64 * 1e6 / ns as f64);
                    samples.add_resolved(per_s);
                }
            }
            for (threads, samples) in counts.iter().zip(speeds) {
                let case = format!("{case}, {threads} threads");
                outcome.rows.push(samples.row(&case, &table.form.to_string(), goal.name(), "thousand per s", None));
            }
        }
    }
    Ok(())
}
