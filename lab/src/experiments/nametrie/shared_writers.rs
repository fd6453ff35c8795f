//! Fig. 12, insertions: bursts of names that several threads insert into one trie.
//!
//! Source: NameTrie18 §V-B.3: about 500,000 names at a time, similar names to one thread. The trie is
//! [`SharedNameTrie`]; every number of threads has a trie of its own, and the usual NameTrie with its one writer is
//! beside them. They take turns burst by burst, and with the next burst in the reverse order (1 2 … 2 1): so a ratio
//! compares insertions of the same names into tries of the same size within a second. What divides and sorts the names
//! is part of the time; what reads them from the list is not.

use anyhow::ensure;
use namewire_designs::fib::min_ascii::MinAscii;
use namewire_designs::fib::name_trie::{NameTrie, NameTrieOptions};
use namewire_designs::fib::shared_name_trie::SharedNameTrie;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixTable};
use namewire_tables::pages::PageSize;

use super::{Population, Size, workload};
use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::port;

const CASE: &str = "threads";
const SUBJECT: &str = "shared-name-trie";
/// As in the paper.
const BURST_NAMES: usize = 500_000;
/// Each fills every trie with all names.
const REPETITIONS_MAX: usize = 5;

/// Insertions by one to `threads_max` threads.
pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    threads_max: usize,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("insertions by threads")?;
    let mut times = Times { of_bursts: vec![Samples::default(); threads_max + 1], ..Times::default() };
    times.of_fills.clone_from(&times.of_bursts);
    let mut bytes_per_name = 0.0;
    for repetition in 0..size.repetitions.min(REPETITIONS_MAX) {
        let mut tries = (0..=threads_max)
            .map(|threads| Trie::new(threads, population.prefixes.len(), context))
            .collect::<anyhow::Result<Vec<Trie>>>()?;
        times.fill(&mut tries, repetition, population, context)?;
        tries.iter().try_for_each(|trie| trie.check(population, context))?;
        bytes_per_name = tries.last().map_or(0.0, Trie::bytes) / population.prefixes.len().max(1) as f64;
    }
    outcome.add_value(CASE, SUBJECT, ("names of a burst", "names"), BURST_NAMES as f64);
    outcome.add_value(CASE, SUBJECT, ("memory per name", "bytes"), bytes_per_name);
    times.report(population, outcome);
    Ok(())
}

/// A trie, and who inserts into it.
enum Trie {
    OneWriter(Box<NameTrie>),
    Shared { trie: Box<SharedNameTrie>, threads: usize },
}

impl Trie {
    /// An empty trie; with no threads, one that has one writer.
    fn new(threads: usize, names: usize, context: &Context) -> anyhow::Result<Self> {
        Ok(match threads {
            0 => Self::OneWriter(Box::new(NameTrie::new(names, context.seed, NameTrieOptions::default())?)),
            _ => {
                let trie = SharedNameTrie::new(names, context.seed, MinAscii::plain(), PageSize::default())?;
                Self::Shared { trie: Box::new(trie), threads }
            }
        })
    }

    /// Inserts a burst; gives how many prefixes are new.
    fn insert(&mut self, burst: &[(&[u8], u32)]) -> anyhow::Result<usize> {
        match self {
            Self::Shared { trie, threads } => Ok(trie.insert_burst(burst, *threads)?.added),
            Self::OneWriter(trie) => {
                let before = trie.len();
                burst.iter().try_for_each(|&(prefix, number)| trie.insert(prefix, number).map(drop))?;
                Ok(trie.len() - before)
            }
        }
    }

    fn bytes(&self) -> f64 {
        match self {
            Self::Shared { trie, .. } => trie.bytes() as f64,
            Self::OneWriter(trie) => trie.bytes() as f64,
        }
    }

    /// Compares every answer with the model's.
    fn check(&self, population: &Population, context: &Context) -> anyhow::Result<()> {
        let names = workload::names(&population.prefixes, context.seed);
        let mut found = [None; DESIGN_BATCH_NAMES];
        for (place, answers) in population.queries.answers().chunks(found.len()).enumerate() {
            let first = place * found.len();
            let batch: Vec<&[u8]> = (first..first + answers.len()).map(|number| names.get(number)).collect();
            match self {
                Self::Shared { trie, .. } => trie.longest_prefix_match_batch(&batch, &mut found),
                Self::OneWriter(trie) => trie.longest_prefix_match_batch(&batch, &mut found),
            }
            ensure!(found[..answers.len()] == *answers, "a trie that threads filled gives a wrong answer");
        }
        Ok(())
    }
}

/// Million insertions per second; element 0 of the trie with one writer, element k of k threads.
#[derive(Default)]
struct Times {
    /// For each burst of full size.
    of_bursts: Vec<Samples>,
    /// For each trie that was filled.
    of_fills: Vec<Samples>,
}

impl Times {
    /// Fills the tries, burst by burst in turn.
    fn fill(
        &mut self,
        tries: &mut [Trie],
        repetition: usize,
        population: &Population,
        context: &Context,
    ) -> anyhow::Result<()> {
        let names = population.prefixes.len();
        let mut took_ns = vec![0; tries.len()];
        for (turn, first) in (0..names).step_by(BURST_NAMES).enumerate() {
            let numbers = first..names.min(first + BURST_NAMES);
            let burst: Vec<(&[u8], u32)> =
                numbers.map(|number| (population.prefixes.get(number), port(number))).collect();
            for place in 0..tries.len() {
                let place = if (turn + repetition).is_multiple_of(2) { place } else { tries.len() - 1 - place };
                context.check_interrupt()?;
                let started_ns = context.clock.now_ns();
                let added = tries[place].insert(&burst)?;
                let burst_ns = context.clock.now_ns() - started_ns;
                ensure!(added == burst.len(), "{added} of {} names of a burst are new", burst.len());
                took_ns[place] += burst_ns;
                // A last burst of a few names says little.
                if burst.len() == names.min(BURST_NAMES) {
                    let speed = context.clock.resolve(burst_ns).map(|ns| burst.len() as f64 * 1e3 / ns as f64);
                    self.of_bursts[place].add_resolved(speed);
                }
            }
        }
        for (speeds, &ns) in self.of_fills.iter_mut().zip(&took_ns) {
            speeds.add_resolved(context.clock.resolve(ns).map(|ns| names as f64 * 1e3 / ns as f64));
        }
        Ok(())
    }

    fn report(&self, population: &Population, outcome: &mut Outcome) {
        let [one_writer, shared @ ..] = &self.of_fills[..] else { return };
        outcome.rows.push(one_writer.row(CASE, "name-trie", "insertions by its one writer", "million per s", None));
        for (threads, speeds) in (1..).zip(shared) {
            let metric = format!("insertions by {threads} threads into one trie");
            outcome.rows.push(speeds.row(CASE, SUBJECT, &metric, "million per s", None));
        }
        let [one_writer, one, several @ ..] = &self.of_bursts[..] else { return };
        let alone = one.over(one_writer);
        let metric = "insertions by 1 thread over those by NameTrie's one writer";
        outcome.rows.push(alone.row(CASE, SUBJECT, metric, "ratio", None));
        outcome.add_ratio("nametrie_shared_over_one_writer_insert", &alone);
        for (threads, speeds) in (2..).zip(several) {
            let ratios = speeds.over(one);
            let metric = format!("insertions by {threads} threads over those by 1");
            outcome.rows.push(ratios.row(CASE, SUBJECT, &metric, "ratio", None));
            outcome.add_ratio(&format!("nametrie_shared_writers_{threads}_over_1"), &ratios);
        }
        let medians: Vec<String> =
            shared.iter().filter_map(Samples::median).map(|speed| format!("{speed:.2}")).collect();
        outcome.notes.push(format!(
            "Fig. 12, insertions into one trie, {}: {} million per s with 1 to {} threads, in bursts of {BURST_NAMES} \
             names by similarity (NameTrie with its one writer, in the order of the list: {:.2}); the machine has {} \
             processors (paper: 1 to 8 threads, linear).",
            population.data_set,
            medians.join(", "),
            shared.len(),
            self.of_fills[0].median().unwrap_or(f64::NAN),
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        ));
    }
}
