//! minASCII: the cost of names that need escapes, and the savings of frequent groups.
//!
//! The paper leaves codes 4 to 31 as future work. Here the same names are in three NameTries: without groups (as in the
//! paper), with a list of groups that are frequent in URLs, and with groups learned from the first names.

use namewire_designs::fib::BatchPrefetch;
use namewire_designs::fib::min_ascii::{CodedNames, FrequentGroups, MinAscii};
use namewire_designs::fib::name_trie::{NameTrie, NameTrieOptions};

use super::measured::Measured;
use super::{Population, Size, note_ratio, ratio_row};
use crate::design_measurement::Subject;
use crate::experiment::{Context, Outcome};
use crate::name_arena::NameArena;

/// Steps of the progress bar.
pub(super) const STEPS: usize = 2;
const CASE: &str = "minASCII";
/// Names of two components of random bytes.
const RANDOM_COMPONENT_BYTES: usize = 16;

pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("frequent groups")?;
    let learned = FrequentGroups::learned(population.prefixes.iter());
    let codings = [
        ("no groups", MinAscii::plain()),
        ("groups of the web", MinAscii::with_groups(&FrequentGroups::of_the_web())),
        ("learned groups", MinAscii::with_groups(&learned)),
    ];
    let groups: Vec<String> = learned.iter().map(|group| String::from_utf8_lossy(group).into_owned()).collect();
    outcome.notes.push(format!("Learned groups: {}.", groups.join(" ")));
    let mut measured = Vec::new();
    for (name, coding) in &codings {
        let codes = codes_per_byte(coding, &population.prefixes);
        outcome.add_value(CASE, name, ("codes per byte of the names", "codes"), codes);
        let subject = fill(name, coding, &population.prefixes, context)?;
        let mut figures = Measured::of(subject, CASE, population, size, context)?;
        outcome.rows.append(&mut figures.rows);
        measured.push(figures);
    }
    let [plain, others @ ..] = &measured[..] else { return Ok(()) };
    for (other, key) in others.iter().zip(["web", "learned"]) {
        let metric = "look-ups over those without groups";
        let speed = ratio_row(CASE, &other.name, metric, &plain.lookup_ns, &other.lookup_ns);
        note_ratio(outcome, &format!("nametrie_{key}_groups_over_none_lookup"), speed);
        let memory = other.bytes_per_name / plain.bytes_per_name;
        outcome.headline.insert(format!("nametrie_{key}_groups_memory_over_none"), memory);
    }

    context.begin_step("random bytes")?;
    let random = random_names(size.side_names, context.seed);
    let codes = codes_per_byte(&MinAscii::plain(), &random);
    outcome.add_value(CASE, "random bytes", ("codes per byte of the names", "codes"), codes);
    outcome.headline.insert("minascii_codes_per_random_byte".to_owned(), codes);
    let subject = fill("random bytes", &MinAscii::plain(), &random, context)?;
    outcome.add_value(CASE, "random bytes", ("memory per name", "bytes"), subject.bytes_per_name());
    Ok(())
}

fn fill(name: &str, coding: &MinAscii, prefixes: &NameArena, context: &Context) -> anyhow::Result<Subject> {
    let options =
        NameTrieOptions { coding: coding.clone(), look_ups: BatchPrefetch::Batch, ..NameTrieOptions::default() };
    Subject::fill(name, Box::new(NameTrie::new(prefixes.len(), context.seed, options)?), prefixes, context)
}

/// Codes, slashes included, per byte of the components' values, with one byte more per component.
fn codes_per_byte(coding: &MinAscii, names: &NameArena) -> f64 {
    let mut coded = CodedNames::default();
    let codes: usize = names
        .iter()
        .map(|name| {
            coded.clear();
            let name = coding.encode(name, &mut coded);
            coded.codes(name).len() + 1
        })
        .sum();
    // Bytes of the URI, slashes included: a component has one byte more in TLV than its value and a slash.
    let uri_bytes: usize = names.iter().map(|name| name.len() - components(name)).sum();
    codes as f64 / uri_bytes.max(1) as f64
}

fn components(name: &[u8]) -> usize {
    let (mut components, mut at) = (0, 0);
    while let Some(bytes) = crate::name_arena::component_bytes(&name[at..]) {
        at += bytes;
        components += 1;
    }
    components
}

/// Names of two generic components of random bytes.
fn random_names(names: usize, seed: u64) -> NameArena {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut arena = NameArena::default();
    for _ in 0..names {
        let mut name = Vec::new();
        for _ in 0..2 {
            name.extend([8, RANDOM_COMPONENT_BYTES as u8]);
            name.extend((0..RANDOM_COMPONENT_BYTES).map(|_| rng.u8(..)));
        }
        arena.push(&name);
    }
    arena
}
