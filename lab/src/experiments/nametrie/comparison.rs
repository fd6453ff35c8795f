//! Tables III and IV, Figs. 10 and 11: memory and speed of NameTrie and of the designs that the paper compares.
//!
//! Insertion is timed while a table fills in random order, removal in the full table. NPT is filled in sorted order
//! ([`super::has_sorted_children`]), so its insertions are compared by those into the full table. The paper's ratios
//! are between designs that look up one name after the other; *batch* is ours.

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};

use super::findings::{self, Finding};
use super::measured::Measured;
use super::{Population, Size, fill, naive, note_ratio, ratio_row};
use crate::experiment::{Context, Outcome};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 9;

pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let case = format!("speed and memory, {}", population.data_set);
    let mut comparison = Comparison { context, size, population, case, outcome };
    let batched = FibDesignOptions::default();
    let trie = comparison.measure(FibDesign::NameTrie, &naive())?;
    for (design, key, paper_name) in
        [(FibDesign::NameTree, "hash_table", "HT"), (FibDesign::Npt, "npt", "NPT"), (FibDesign::Nce, "nce", "NCE")]
    {
        let other = comparison.measure(design, &naive())?;
        comparison.compare_as_in_the_paper(&trie, &other, (key, paper_name))?;
    }
    let trie_batched = comparison.measure(FibDesign::NameTrie, &batched)?;
    let hash_table = comparison.measure(FibDesign::NameTree, &batched)?;
    comparison.compare_batches(&trie, &trie_batched, &hash_table);
    for (design, key) in [(FibDesign::default(), "default"), (FibDesign::Compact, "compact")] {
        let ours = comparison.measure(design, &batched)?;
        comparison.compare_ours(&trie, &trie_batched, (&ours, key));
    }
    let again = comparison.measure(FibDesign::NameTrie, &naive())?;
    let metric = "look-ups of the first measurement over the last";
    let drift = ratio_row(&comparison.case, &again.name, metric, &again.lookup_ns, &trie.lookup_ns);
    comparison.note("nametrie_first_over_last_lookup", drift);
    Ok(())
}

/// The designs with one population.
struct Comparison<'c> {
    context: &'c Context,
    size: &'c Size,
    population: &'c Population,
    case: String,
    outcome: &'c mut Outcome,
}

impl Comparison<'_> {
    /// Fills, measures and drops a table.
    fn measure(&mut self, design: FibDesign, options: &FibDesignOptions) -> anyhow::Result<Measured> {
        let (context, population) = (self.context, self.population);
        context.begin_step(&format!("{}, {}", design.name(), population.data_set))?;
        let subject = fill(design, options, &population.prefixes, context)?;
        let mut measured = Measured::of(subject, &self.case, population, self.size, context)?;
        self.outcome.rows.append(&mut measured.rows);
        let case = format!("memory while filled, {}", population.data_set);
        for (tenth, &bytes) in (1..).zip(&measured.bytes_by_tenth) {
            let metric = format!("memory after {tenth} tenths of the names");
            self.outcome.add_value(&case, &measured.name, (&metric, "MB"), bytes as f64 / 1e6);
        }
        Ok(measured)
    }

    /// The ratios of Tables III and IV, and what became of them.
    fn compare_as_in_the_paper(
        &mut self,
        trie: &Measured,
        other: &Measured,
        (key, paper_name): (&str, &str),
    ) -> anyhow::Result<()> {
        let is_filled_in_order = other.insert_ns.median().is_none();
        let insertions = |measured: &Measured| {
            if is_filled_in_order { measured.reinsert_ns.clone() } else { measured.insert_ns.clone() }
        };
        let speeds = [
            ("lookup", "look-ups", other.lookup_ns.clone(), trie.lookup_ns.clone()),
            ("lookup_warm", "warm look-ups", other.warm_lookup_ns.clone(), trie.warm_lookup_ns.clone()),
            ("insert", "insertions", insertions(other), insertions(trie)),
            ("remove", "removals", other.remove_ns.clone(), trie.remove_ns.clone()),
        ];
        let mut found = Vec::new();
        for (operation, plural, others, tries) in speeds {
            let metric = format!("{plural} of NameTrie over its own");
            let ratio = ratio_row(&self.case, &other.name, &metric, &others, &tries);
            if let Some(ours) = ratio.1 {
                let paper = findings::paper_speed_ratio(&self.population.data_set, operation, paper_name);
                found.push(Finding { what: plural, ours, paper });
            }
            self.note(&format!("nametrie_over_{key}_{operation}"), ratio);
        }
        let ours = trie.bytes_per_name / other.bytes_per_name;
        self.outcome.add_value(&self.case, &other.name, ("memory of NameTrie over its own", "ratio"), ours);
        self.headline(&format!("nametrie_memory_over_{key}"), ours);
        self.headline(&format!("{key}_bytes_per_name"), other.bytes_per_name);
        let paper = findings::paper_memory_ratio(&self.population.data_set, paper_name);
        found.push(Finding { what: "memory", ours, paper });
        self.outcome.notes.push(findings::note(&self.population.data_set, paper_name, &found));
        if paper_name == "HT" {
            findings::explain(self.context, self.population, self.outcome)?;
        }
        Ok(())
    }

    fn compare_batches(&mut self, trie: &Measured, trie_batched: &Measured, hash_table: &Measured) {
        self.headline("nametrie_bytes_per_name", trie.bytes_per_name);
        let (batched, case) = (&trie_batched.lookup_ns, self.case.clone());
        let gain = ratio_row(&case, &trie_batched.name, "look-ups over the naive ones", &trie.lookup_ns, batched);
        self.note("nametrie_batched_over_naive_lookup", gain);
        let metric = "look-ups of NameTrie in batches over its own";
        let over_hash_table = ratio_row(&case, &hash_table.name, metric, &hash_table.lookup_ns, batched);
        self.note("nametrie_over_hash_table_lookup_batched", over_hash_table);
    }

    fn compare_ours(&mut self, trie: &Measured, trie_batched: &Measured, (ours, key): (&Measured, &str)) {
        let case = self.case.clone();
        let ratios = [
            ("nametrie_lookup", "look-ups over NameTrie's", &trie_batched.lookup_ns, &ours.lookup_ns),
            ("naive_nametrie_lookup", "look-ups over naive NameTrie's", &trie.lookup_ns, &ours.lookup_ns),
            ("nametrie_insert", "insertions over NameTrie's", &trie.insert_ns, &ours.insert_ns),
        ];
        for (other, metric, others, own) in ratios {
            self.note(&format!("{key}_over_{other}"), ratio_row(&case, &ours.name, metric, others, own));
        }
        self.headline(&format!("{key}_memory_over_nametrie"), ours.bytes_per_name / trie.bytes_per_name);
        self.headline(&format!("{key}_bytes_per_name"), ours.bytes_per_name);
    }

    /// A ratio as a row and in the headline.
    fn note(&mut self, key: &str, ratio: (crate::record::Row, Option<f64>)) {
        note_ratio(self.outcome, &findings::key(key, &self.population.data_set), ratio);
    }

    fn headline(&mut self, key: &str, value: f64) {
        self.outcome.headline.insert(findings::key(key, &self.population.data_set), value);
    }
}
