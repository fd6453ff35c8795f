//! Tables III and IV, Figs. 10 and 11: memory and speed of NameTrie and of the designs that the paper compares.
//!
//! All tables exist at the same time and take turns. Insertion is timed while a table fills, removal in the full table,
//! with names in random order. The paper's ratios are between designs that look up one name after the other; *batch* is
//! ours.
//!
//! Our HT is leaner than the paper's: one pass hashes all prefixes, entries have 40 bytes, and it visits existing
//! lengths only. It takes 183 bytes per name; Table III has 262 (NFD's own class takes more). It answered four times
//! as fast as Table IV says for one of 8 threads; NameTrie answered about as fast as in the paper. So NameTrie beats
//! HT in memory only, not in look-ups. Its path is 2 d dependent accesses for d pieces; HT's is at most 3 for each
//! length from the longest down, and real names have two to five.

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{FibConfig, HashKey};

use super::{Population, Size, ensure_full, fill, naive, note_ratio, ratio_row};
use crate::design_measurement::{Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome};
use crate::name_arena::port;

/// Steps of the progress bar.
pub(super) const STEPS: usize = 9 + GROWTH.len();
const CASE: &str = "speed and memory";
/// Designs whose memory is recorded while they fill.
const GROWTH: [FibDesign; 6] = [
    FibDesign::NameTrie,
    FibDesign::NameTree,
    FibDesign::Npt,
    FibDesign::Nce,
    FibDesign::OneBucket,
    FibDesign::Compact,
];
/// Points of Fig. 10.
const TENTHS: usize = 10;

pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let batched = FibDesignOptions::default();
    let designs = [
        (FibDesign::NameTrie, naive()),
        (FibDesign::NameTree, naive()),
        (FibDesign::Npt, naive()),
        (FibDesign::Nce, naive()),
        (FibDesign::NameTrie, batched),
        (FibDesign::NameTree, batched),
        (FibDesign::default(), batched),
        (FibDesign::Compact, batched),
    ];
    let mut subjects = Vec::new();
    for (design, options) in designs {
        context.begin_step(design.name())?;
        subjects.push(fill(design, &options, &population.prefixes, context)?);
    }
    context.begin_step("look-ups and updates")?;
    let mut rng = fastrand::Rng::with_seed(context.seed);
    for repetition in 0..size.repetitions {
        let mut all: Vec<&mut Subject> = subjects.iter_mut().collect();
        look_up_in_turn(&mut all, &population.queries, size.first_slice(repetition), size.slices, context)?;
        let updates = size.updates.min(population.prefixes.len() / 2);
        let numbers = rng.choose_multiple(0..population.prefixes.len(), updates);
        for subject in &mut subjects {
            subject.update(&population.prefixes, &numbers, &context.clock)?;
            ensure_full(subject, population)?;
        }
    }
    for subject in &subjects {
        outcome.rows.extend(subject.rows(CASE));
    }
    compare(&subjects, outcome);
    drop(subjects);
    for design in GROWTH {
        context.begin_step("memory while filled")?;
        follow_memory(context, design, population, outcome)?;
    }
    Ok(())
}

/// The paper's ratios, and ours.
fn compare(subjects: &[Subject], outcome: &mut Outcome) {
    let [trie, hash_table, npt, nce, batched, batched_hash_table, default, compact] = subjects else { return };
    let others = [(hash_table, "hash_table"), (npt, "npt"), (nce, "nce")];
    for (other, key) in others {
        let speed =
            ratio_row(CASE, &other.name, "look-ups of NameTrie over its own", &other.lookup_ns, &trie.lookup_ns);
        note_ratio(outcome, &format!("nametrie_over_{key}_lookup"), speed);
        let warm = (&other.warm_lookup_ns, &trie.warm_lookup_ns);
        let warm = ratio_row(CASE, &other.name, "look-ups of NameTrie over its own, warm", warm.0, warm.1);
        note_ratio(outcome, &format!("nametrie_over_{key}_lookup_warm"), warm);
        let insert = (&other.insert_ns, &trie.insert_ns);
        let insert = ratio_row(CASE, &other.name, "insertions of NameTrie over its own", insert.0, insert.1);
        note_ratio(outcome, &format!("nametrie_over_{key}_insert"), insert);
        let remove = (&other.remove_ns, &trie.remove_ns);
        let remove = ratio_row(CASE, &other.name, "removals of NameTrie over its own", remove.0, remove.1);
        note_ratio(outcome, &format!("nametrie_over_{key}_remove"), remove);
        let memory = trie.bytes_per_name() / other.bytes_per_name();
        outcome.add_value(CASE, &other.name, ("memory of NameTrie over its own", "ratio"), memory);
        outcome.headline.insert(format!("nametrie_memory_over_{key}"), memory);
    }
    let turns = ratio_row(CASE, &batched.name, "look-ups over the naive ones", &trie.lookup_ns, &batched.lookup_ns);
    note_ratio(outcome, "nametrie_batched_over_naive_lookup", turns);
    let hash = (&batched_hash_table.lookup_ns, &batched.lookup_ns);
    let hash = ratio_row(CASE, &batched_hash_table.name, "look-ups of NameTrie in turns over its own", hash.0, hash.1);
    note_ratio(outcome, "nametrie_over_hash_table_lookup_batched", hash);
    for (ours, key) in [(default, "default"), (compact, "compact")] {
        let speed = ratio_row(CASE, &ours.name, "look-ups over NameTrie's", &batched.lookup_ns, &ours.lookup_ns);
        note_ratio(outcome, &format!("{key}_over_nametrie_lookup"), speed);
        let naive = ratio_row(CASE, &ours.name, "look-ups over naive NameTrie's", &trie.lookup_ns, &ours.lookup_ns);
        note_ratio(outcome, &format!("{key}_over_naive_nametrie_lookup"), naive);
        let insert = ratio_row(CASE, &ours.name, "insertions over NameTrie's", &trie.insert_ns, &ours.insert_ns);
        note_ratio(outcome, &format!("{key}_over_nametrie_insert"), insert);
        let memory = ours.bytes_per_name() / trie.bytes_per_name();
        outcome.headline.insert(format!("{key}_memory_over_nametrie"), memory);
    }
    let all = [(trie, "nametrie"), (hash_table, "hash_table"), (npt, "npt"), (nce, "nce"), (default, "default")];
    for (subject, key) in all.into_iter().chain([(compact, "compact")]) {
        outcome.headline.insert(format!("{key}_bytes_per_name"), subject.bytes_per_name());
    }
}

/// Fig. 10: memory after each tenth of the names.
fn follow_memory(
    context: &Context,
    design: FibDesign,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let prefixes = &population.prefixes;
    let config = FibConfig::for_prefixes(prefixes.len(), prefixes.bytes());
    let mut table = design.build(&FibDesignOptions::default(), &config, HashKey::from_seed(context.seed))?;
    for tenth in 1..=TENTHS {
        for number in prefixes.len() * (tenth - 1) / TENTHS..prefixes.len() * tenth / TENTHS {
            table.insert(prefixes.get(number), port(number))?;
            if number % 4096 == 0 {
                context.check_interrupt()?;
            }
        }
        let metric = format!("memory after {tenth} tenths of the names");
        outcome.add_value("memory while filled", design.name(), (&metric, "MB"), table.bytes() as f64 / 1e6);
    }
    Ok(())
}
