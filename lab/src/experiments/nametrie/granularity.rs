//! Fig. 2: tries of bits, of characters and of components, as ratios to the trie of bits.

use namewire_designs::fib::catalogue::FibDesign;

use super::{Population, Size, fill, naive, note_ratio, ratio_row};
use crate::design_measurement::{Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome};

/// Steps of the progress bar.
pub(super) const STEPS: usize = TRIES.len() + 1;
const CASE: &str = "granularity";
const TRIES: [(FibDesign, &str); 4] = [
    (FibDesign::BitTrie, "bit"),
    (FibDesign::CharacterTrie, "character"),
    (FibDesign::ComponentTrie, "component_run"),
    (FibDesign::Npt, "component"),
];

pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let mut subjects = Vec::new();
    for (design, _) in TRIES {
        context.begin_step(design.name())?;
        subjects.push(fill(design, &naive(), &population.prefixes, context)?);
    }
    context.begin_step("look-ups by granularity")?;
    for repetition in 0..size.repetitions {
        let mut all: Vec<&mut Subject> = subjects.iter_mut().collect();
        look_up_in_turn(&mut all, &population.queries, size.first_slice(repetition), size.slices, context)?;
    }
    let [bits, coarser @ ..] = &subjects[..] else { return Ok(()) };
    for (subject, (_, key)) in coarser.iter().zip(&TRIES[1..]) {
        let speed = ratio_row(CASE, &subject.name, "look-ups over the bit trie's", &bits.lookup_ns, &subject.lookup_ns);
        note_ratio(outcome, &format!("{key}_over_bit_lookup"), speed);
        let insert =
            ratio_row(CASE, &subject.name, "insertions over the bit trie's", &bits.insert_ns, &subject.insert_ns);
        note_ratio(outcome, &format!("{key}_over_bit_insert"), insert);
        let memory = subject.bytes_per_name() / bits.bytes_per_name();
        outcome.add_value(CASE, &subject.name, ("memory over the bit trie's", "ratio"), memory);
        outcome.headline.insert(format!("{key}_memory_over_bit"), memory);
    }
    subjects.iter().for_each(|subject| outcome.rows.extend(subject.rows(CASE)));
    Ok(())
}
