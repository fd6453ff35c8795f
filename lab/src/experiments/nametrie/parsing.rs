//! Table V: the first components of names change speed and memory.
//!
//! The same records become names that begin with the protocol (method 1), the top-level label (method 2) or the domain
//! (method 3). The starter pairs are the distinct pairs of first codes.

use std::collections::HashSet;

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::min_ascii::{CodedNames, MinAscii};

use super::{Population, Size, fill, naive, note_ratio, ratio_row};
use crate::design_measurement::{Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome};
use crate::name_arena::NameArena;
use crate::name_sets::{NameConversion, one_name_set};

/// Steps of the progress bar.
pub(super) const STEPS: usize = NameConversion::NAME_TRIE.len() + 1;

pub(super) fn run(context: &Context, size: &Size, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut methods = Vec::new();
    for (place, conversion) in NameConversion::NAME_TRIE.into_iter().enumerate() {
        let case = format!("method {}, {}", place + 1, conversion.name());
        context.begin_step(&case)?;
        let set = one_name_set(context.names.as_deref(), size.side_names, conversion, context.seed)?;
        let population = Population::new(set, size.side_names, context);
        let subjects = [naive(), FibDesignOptions::default()]
            .map(|options| fill(FibDesign::NameTrie, &options, &population.prefixes, context));
        let [one_by_one, in_turns] = subjects;
        methods.push((case, population, [one_by_one?, in_turns?]));
    }
    context.begin_step("look-ups by method")?;
    for repetition in 0..size.repetitions {
        for (_, population, subjects) in &mut methods {
            let mut all: Vec<&mut Subject> = subjects.iter_mut().collect();
            look_up_in_turn(&mut all, &population.queries, size.first_slice(repetition), size.slices, context)?;
        }
    }
    for (case, population, subjects) in &methods {
        let pairs = starter_pairs(&population.prefixes) as f64;
        outcome.add_value(case, "names", ("starter pairs", "pairs"), pairs);
        subjects.iter().for_each(|subject| outcome.rows.extend(subject.rows(case)));
    }
    let [(_, _, [first, _]), (_, _, [second, _]), (case, _, [third, _])] = &methods[..] else { return Ok(()) };
    for (other, key) in [(first, 1), (second, 2)] {
        let metric = format!("look-ups of method 3 over those of method {key}");
        let speed = ratio_row(case, &third.name, &metric, &other.lookup_ns, &third.lookup_ns);
        note_ratio(outcome, &format!("nametrie_method_3_over_{key}_lookup"), speed);
        let memory = third.bytes_per_name() / other.bytes_per_name();
        outcome.headline.insert(format!("nametrie_method_3_memory_over_{key}"), memory);
    }
    Ok(())
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
