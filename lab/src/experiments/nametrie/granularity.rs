//! Fig. 2: tries of bits, of characters and of components, as ratios to the trie of bits.
//!
//! The text of the paper has no numbers for the bars of the figure. It states which trie is smaller or faster, and the
//! note reports which of these results are reproduced. Insertions are those into the full table, because tries of
//! components are filled in sorted order.

use namewire_designs::fib::catalogue::FibDesign;

use super::measured::Measured;
use super::{Population, Size, fill, naive, note_ratio, ratio_row};
use crate::experiment::{Context, Outcome};

/// Steps of the progress bar.
pub(super) const STEPS: usize = TRIES.len();
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
    let mut tries = Vec::new();
    for (design, _) in TRIES {
        context.begin_step(design.name())?;
        let subject = fill(design, &naive(), &population.prefixes, context)?;
        let mut measured = Measured::of(subject, CASE, population, size, context)?;
        outcome.rows.append(&mut measured.rows);
        tries.push(measured);
    }
    let [bits, coarser @ ..] = &tries[..] else { return Ok(()) };
    for (trie, (_, key)) in coarser.iter().zip(&TRIES[1..]) {
        let speed = ratio_row(CASE, &trie.name, "look-ups over the bit trie's", &bits.lookup_ns, &trie.lookup_ns);
        note_ratio(outcome, &format!("{key}_over_bit_lookup"), speed);
        let metric = "insertions over the bit trie's";
        let insert = ratio_row(CASE, &trie.name, metric, &bits.reinsert_ns, &trie.reinsert_ns);
        note_ratio(outcome, &format!("{key}_over_bit_insert"), insert);
        let memory = trie.bytes_per_name / bits.bytes_per_name;
        outcome.add_value(CASE, &trie.name, ("memory over the bit trie's", "ratio"), memory);
        outcome.headline.insert(format!("{key}_memory_over_bit"), memory);
    }
    if let [bits, characters, _, components] = &tries[..] {
        outcome.notes.push(note(bits, characters, components, population));
    }
    Ok(())
}

/// What §III says of Fig. 2, and whether it holds here.
fn note(bits: &Measured, characters: &Measured, components: &Measured, population: &Population) -> String {
    let is_faster = |one: &Measured, other: &Measured| one.lookup_ns.median() < other.lookup_ns.median();
    let claims = [
        ("bits take the least memory", bits.bytes_per_name < characters.bytes_per_name.min(components.bytes_per_name)),
        ("bits are the slowest", is_faster(characters, bits) && is_faster(components, bits)),
        ("components are slower than characters", is_faster(characters, components)),
    ];
    let texts =
        claims.map(|(claim, holds)| format!("{claim}: {}", if holds { "found again" } else { "not found again" }));
    let sizes = [bits, characters, components].map(|trie| format!("{:.1}", trie.bytes_per_name));
    format!(
        "Fig. 2 with {} names ({}): {}. Bytes per name: {} (bits, characters, components); paths of bits and of \
         characters are compressed here, which the paper does not say of its tries.",
        population.prefixes.len(),
        population.data_set,
        texts.join("; "),
        sizes.join(", "),
    )
}
