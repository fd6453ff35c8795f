//! Findings: which ratios of the paper are reproduced, and what explains the others?
//!
//! Every sentence is made from the numbers of the run and those of `lab/papers/nametrie18.json`. The explanation counts
//! dependent accesses. NameTrie makes two for each piece on the way, an edge and the piece (Table I, 2 d). HT asks for
//! each length from the longest that any entry has down to the match, and reads an entry only where its hash is there.

use namewire_designs::fib::name_trie::{NameTrie, NameTrieOptions};
use namewire_tables::fib::PrefixTable;

use super::{Population, workload};
use crate::experiment::{Context, Outcome};
use crate::name_arena::{NameArena, component_bytes, port};
use crate::papers;

/// A ratio is found again if it is on the same side of 1 and differs by this share at most.
const TOLERANCE: f64 = 0.2;
/// The data set whose headlines have no suffix.
const MAIN: &str = "12M";

/// A ratio of ours, and the paper's if it has one.
pub(super) struct Finding<'f> {
    pub(super) what: &'f str,
    pub(super) ours: f64,
    pub(super) paper: Option<f64>,
}

impl Finding<'_> {
    fn text(&self) -> String {
        let Self { what, ours, paper } = *self;
        match paper {
            Some(paper) => format!("{what} {ours:.2} (paper {paper:.2}, {})", verdict(ours, paper)),
            None => format!("{what} {ours:.2}"),
        }
    }
}

fn verdict(ours: f64, paper: f64) -> &'static str {
    match ((ours > 1.0) == (paper > 1.0), (ours / paper - 1.0).abs() <= TOLERANCE) {
        (true, true) => "found again",
        (true, false) => "same order, other ratio",
        (false, _) => "not found again",
    }
}

/// The sentence on NameTrie and one other design.
pub(super) fn note(data_set: &str, other: &str, findings: &[Finding<'_>]) -> String {
    let texts: Vec<String> = findings.iter().map(Finding::text).collect();
    format!("{data_set}, NameTrie over {other} (ours is a reconstruction): {}.", texts.join("; "))
}

/// The sentence on ratios between variants of NameTrie.
pub(super) fn note_on(what: &str, findings: &[Finding<'_>]) -> String {
    let texts: Vec<String> = findings.iter().map(Finding::text).collect();
    format!("{what}: {}.", texts.join("; "))
}

/// The key of a headline for a data set.
pub(super) fn key(key: &str, data_set: &str) -> String {
    if data_set == MAIN { key.to_owned() } else { format!("{key}_{}", data_set.to_lowercase().replace(' ', "_")) }
}

/// Table IV: NameTrie's speed over that of `other`.
pub(super) fn paper_speed_ratio(data_set: &str, operation: &str, other: &str) -> Option<f64> {
    let speed = |design: &str| paper(&format!("table_4_million_names_per_s/{data_set}/{operation}/{design}"));
    Some(speed("NameTrie")? / speed(other)?)
}

/// Table III: NameTrie's memory over that of `other`.
pub(super) fn paper_memory_ratio(data_set: &str, other: &str) -> Option<f64> {
    let memory = |design: &str| paper(&format!("table_3_memory_mb/{data_set}/{design}"));
    Some(memory("NameTrie")? / memory(other)?)
}

/// A figure of the paper; `None` where it has none.
pub(super) fn paper(place: &str) -> Option<f64> {
    papers::figures(papers::NAME_TRIE_18, &format!("/{place}")).ok()
}

/// Counts accesses of a look-up, as rows and as a note.
pub(super) fn explain(context: &Context, population: &Population, outcome: &mut Outcome) -> anyhow::Result<()> {
    let case = format!("accesses, {}", population.data_set);
    let names = workload::names(&population.prefixes, context.seed);
    let ways = Ways::of(context, &population.prefixes, &names)?;
    let lengths = lengths_asked(population, &names);
    let mut row = |subject, metric, unit, value| outcome.add_value(&case, subject, (metric, unit), value);
    row("name-trie", "pieces on the way of a look-up, d", "pieces", ways.pieces);
    row("name-trie", "bytes of pieces per name", "bytes", ways.piece_bytes);
    row("name-trie", "bytes of edges per name", "bytes", ways.edge_bytes);
    row("name-tree", "lengths asked for by a look-up", "lengths", lengths);
    outcome.notes.push(format!(
        "{}: a look-up goes through {:.2} pieces of NameTrie, which is {:.1} accesses that depend on each other (2 d), and \
         asks HT for {lengths:.2} lengths, whose buckets do not depend on each other.",
        population.data_set,
        ways.pieces,
        2.0 * ways.pieces,
    ));
    Ok(())
}

/// What a NameTrie is like.
pub(super) struct Ways {
    /// Pieces on the way of a look-up on average.
    pub(super) pieces: f64,
    piece_bytes: f64,
    edge_bytes: f64,
}

impl Ways {
    /// Fills a trie with `prefixes` and follows the ways of `names`.
    pub(super) fn of(context: &Context, prefixes: &NameArena, names: &NameArena) -> anyhow::Result<Self> {
        let mut trie = NameTrie::new(prefixes.len(), context.seed, NameTrieOptions::default())?;
        for (number, prefix) in prefixes.iter().enumerate() {
            trie.insert(prefix, port(number))?;
            if number % 4096 == 0 {
                context.check_interrupt()?;
            }
        }
        let pieces: usize = names.iter().filter_map(|name| trie.pieces_on_the_way(name)).sum();
        let (looked_up, stored) = (names.len().max(1) as f64, prefixes.len().max(1) as f64);
        Ok(Self {
            pieces: pieces as f64 / looked_up,
            piece_bytes: trie.name_nodes_bytes() as f64 / stored,
            edge_bytes: trie.edge_hash_table_bytes() as f64 / stored,
        })
    }
}

/// Lengths for which HT asks on average: from the longest down to the match or the root.
fn lengths_asked(population: &Population, names: &NameArena) -> f64 {
    let longest = population.prefixes.iter().map(components).max().unwrap_or(0);
    let asked: usize = names
        .iter()
        .zip(population.queries.answers())
        .map(|(name, answer)| {
            let matched = answer.map_or(0, |answer| components(&name[..usize::from(answer.prefix_bytes)]));
            components(name).min(longest) - matched + 1
        })
        .sum();
    asked as f64 / names.len().max(1) as f64
}

fn components(name: &[u8]) -> usize {
    let (mut components, mut at) = (0, 0);
    while let Some(bytes) = component_bytes(&name[at..]) {
        at += bytes;
        components += 1;
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_follows_from_its_numbers() {
        let finding = |ours, paper| Finding { what: "look-ups", ours, paper };
        for (ours, paper, text) in [
            (2.3, Some(2.36), "look-ups 2.30 (paper 2.36, found again)"),
            (1.1, Some(2.36), "look-ups 1.10 (paper 2.36, same order, other ratio)"),
            (0.33, Some(2.36), "look-ups 0.33 (paper 2.36, not found again)"),
            (0.99, Some(1.16), "look-ups 0.99 (paper 1.16, not found again)"),
            (0.5, None, "look-ups 0.50"),
        ] {
            assert_eq!(finding(ours, paper).text(), text);
        }
    }

    #[test]
    fn ratios_are_those_of_the_papers_tables() {
        let ratio = |operation, other| paper_speed_ratio("12M", operation, other).map(|ratio| (ratio * 100.0).round());
        assert_eq!(
            (ratio("lookup", "HT"), ratio("lookup", "NPT"), ratio("insert", "NPT")),
            (Some(237.0), Some(2480.0), None)
        );
        assert!(paper_memory_ratio("12M", "HT").is_some_and(|ratio| (ratio - 0.1486).abs() < 1e-4));
        assert_eq!(paper_memory_ratio("listed URLs", "HT"), None);
        assert_eq!((key("a", "12M"), key("a", "listed URLs")), ("a".to_owned(), "a_listed_urls".to_owned()));
    }
}
