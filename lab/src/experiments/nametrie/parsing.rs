//! Table V: the first components of names change speed and memory.
//!
//! The same URLs become names that begin with the protocol (method 1), the top-level label (method 2) or the domain
//! (method 3). The starter pairs are the distinct pairs of first codes. Schemes other than `http` are ours, since lists
//! state none: [`crate::name_sets::Corpus`].

use std::collections::HashSet;

use namewire_designs::fib::catalogue::FibDesign;
use namewire_designs::fib::min_ascii::{CodedNames, MinAscii};

use super::findings::{self, Finding, Ways};
use super::measured::Measured;
use super::{Population, Size, fill, naive, note_ratio, ratio_row, workload};
use crate::experiment::{Context, Outcome};
use crate::name_arena::NameArena;
use crate::name_sets::{NameConversion, NameStatistics, Records};

/// Steps of the progress bar.
pub(super) const STEPS: usize = NameConversion::NAME_TRIE.len();

/// One method's figures.
struct Method {
    case: String,
    measured: Measured,
    pieces: f64,
}

pub(super) fn run(context: &Context, size: &Size, records: &Records, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut methods = Vec::new();
    for (place, conversion) in NameConversion::NAME_TRIE.into_iter().enumerate() {
        let case = format!("method {}, {}", place + 1, conversion.name());
        context.begin_step(&case)?;
        methods.push(measure(context, size, (case, conversion), records, outcome)?);
    }
    let [first, second, third] = &methods[..] else { return Ok(()) };
    let mut found = Vec::new();
    for (other, key) in [(first, 1), (second, 2)] {
        let metric = format!("look-ups of method 3 over those of method {key}");
        let speed =
            ratio_row(&third.case, &third.measured.name, &metric, &other.measured.lookup_ns, &third.measured.lookup_ns);
        let paper = paper_ratio("lookup_million_names_per_s", key);
        let what = format!("look-ups over those of method {key}");
        found.extend(speed.1.map(|ours| (what, ours, paper)));
        note_ratio(outcome, &format!("nametrie_method_3_over_{key}_lookup"), speed);
        let memory = third.measured.bytes_per_name / other.measured.bytes_per_name;
        found.push((format!("memory over that of method {key}"), memory, paper_ratio("memory_mb", key)));
        outcome.headline.insert(format!("nametrie_method_3_memory_over_{key}"), memory);
    }
    let found: Vec<Finding<'_>> =
        found.iter().map(|(what, ours, paper)| Finding { what, ours: *ours, paper: *paper }).collect();
    outcome.notes.push(findings::note_on("Table V, method 3", &found));
    outcome.notes.push(format!(
        "Pieces on the way of a look-up: {:.2}, {:.2} and {:.2} with methods 1, 2 and 3.",
        first.pieces, second.pieces, third.pieces
    ));
    Ok(())
}

fn measure(
    context: &Context,
    size: &Size,
    (case, conversion): (String, NameConversion),
    records: &Records,
    outcome: &mut Outcome,
) -> anyhow::Result<Method> {
    let population = Population::new(&case, records.names(conversion, context.seed)?, context);
    NameStatistics::of(&population.prefixes).add_rows(&case, outcome);
    outcome.add_value(&case, "names", ("starter pairs", "pairs"), starter_pairs(&population.prefixes) as f64);
    let names = workload::names(&population.prefixes, context.seed);
    let pieces = Ways::of(context, &population.prefixes, &names)?.pieces;
    outcome.add_value(&case, "name-trie", ("pieces on the way of a look-up, d", "pieces"), pieces);
    let subject = fill(FibDesign::NameTrie, &naive(), &population.prefixes, context)?;
    let mut measured = Measured::of(subject, &case, &population, size, context)?;
    outcome.rows.append(&mut measured.rows);
    Ok(Method { case, measured, pieces })
}

/// Table V: method 3 over another.
fn paper_ratio(quantity: &str, method: usize) -> Option<f64> {
    let of = |method| findings::paper(&format!("table_5/{quantity}/method {method}"));
    Some(of(3)? / of(method)?)
}

/// Number of distinct beginnings of names.
fn starter_pairs(names: &NameArena) -> usize {
    let (coding, mut coded) = (MinAscii::plain(), CodedNames::default());
    let pairs = names.iter().map(|name| {
        coded.clear();
        let name = coding.encode(name, &mut coded);
        coded.codes(name).iter().copied().take(2).collect::<Vec<u8>>()
    });
    pairs.collect::<HashSet<_>>().len()
}
