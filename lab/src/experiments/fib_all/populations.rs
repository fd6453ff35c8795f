//! Populations: the prefixes of the designs, and the names that are looked up.
//!
//! *Real* names come from the lists of `--names`, without those of URLs if there are others (or they are invented, and
//! resemble domains and URLs). *URLs* are made of hosts and paths of all these lists, in the proportions of
//! NameTrie18's 12M data set ([`Corpus`]). *Synthetic* names are the papers' ([`SyntheticNames`]). Every prefix is
//! looked up, in shuffled order. Two in four are extended by one to three components, like most names of packets; one
//! is unchanged; one is cut in half. One name in sixteen lies under no prefix of the table.

use crate::design_measurement::Queries;
use crate::experiment::{Context, Outcome};
use crate::name_arena::{NameArena, ReferenceModel, component_bytes};
use crate::name_sets::{Corpus, NameConversion, NameSet, NameStatistics, Records, Shape, record_sets};
use crate::synthetic_names::SyntheticNames;

/// Prefixes, and names with the right answers.
pub(super) struct Population {
    /// `real`, `urls` or `synthetic`.
    pub(super) name: &'static str,
    /// Its source.
    pub(super) title: String,
    pub(super) prefixes: NameArena,
    pub(super) queries: Queries,
}

/// Most names that are looked up, each with the model's answer.
const QUERIES_MAX: usize = 1 << 20;

impl Population {
    /// At most `names` real names; domains begin with the top-level domain.
    pub(super) fn real(context: &Context, names: usize) -> anyhow::Result<Self> {
        let lists = record_sets(context.names.as_deref(), names, context.seed)?;
        let of_urls = |records: &&Records| context.names.is_some() && records.are_urls();
        let mut taken: Vec<&Records> = lists.iter().filter(|records| !of_urls(records)).collect();
        if taken.is_empty() {
            taken = lists.iter().collect();
        }
        let sets = taken.iter().map(|records| records.names(NameConversion::Tld, context.seed));
        let mut set = NameSet::joined(&sets.collect::<anyhow::Result<Vec<_>>>()?, context.seed);
        set.names.truncate(names);
        Ok(Self::of("real", set.title, set.names, context.seed))
    }

    /// URLs like those of NameTrie18; they begin with the top-level domain, too.
    pub(super) fn urls(context: &Context, names: usize) -> anyhow::Result<Self> {
        let shape = Shape::of_name_trie_18("12M")?;
        let corpus = Corpus::of(&record_sets(context.names.as_deref(), names, context.seed)?, context.seed);
        let records = corpus.urls(shape, names, context.seed)?;
        drop(corpus);
        let set = records.names(NameConversion::Tld, context.seed)?;
        Ok(Self::of("urls", set.title, set.names, context.seed))
    }

    /// The papers' synthetic prefixes.
    pub(super) fn synthetic(context: &Context, names: usize) -> Self {
        let synthetic = SyntheticNames::new(context.seed, names as u64);
        let (mut prefixes, mut prefix) = (NameArena::default(), Vec::new());
        for number in 0..synthetic.prefixes() {
            synthetic.write_prefix(number, &mut prefix);
            prefixes.push(&prefix);
        }
        Self::of("synthetic", "2 to 6 components of 9 characters".to_owned(), prefixes, context.seed)
    }

    fn of(name: &'static str, title: String, prefixes: NameArena, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..prefixes.len()).collect();
        rng.shuffle(&mut order);
        let mut asked = NameArena::default();
        let mut name_value = Vec::new();
        for &number in order.iter().cycle().take(prefixes.len().clamp(4096, QUERIES_MAX)) {
            write_asked(prefixes.get(number), &mut rng, &mut name_value);
            asked.push(&name_value);
        }
        let model = ReferenceModel::new(&prefixes);
        let queries = Queries::new(asked, &model);
        drop(model);
        Self { name, title, prefixes, queries }
    }

    /// Components and lengths.
    pub(super) fn add_statistics(&self, outcome: &mut Outcome) {
        NameStatistics::of(&self.prefixes).add_rows(self.name, outcome);
    }

    /// The note for the record.
    pub(super) fn note(&self) -> String {
        format!(
            "{}: {}; {} prefixes of {:.1} bytes on average; {} of {} names looked up have one.",
            self.name,
            self.title,
            self.prefixes.len(),
            self.prefixes.bytes() as f64 / self.prefixes.len().max(1) as f64,
            self.queries.answered(),
            self.queries.len(),
        )
    }
}

fn write_asked(prefix: &[u8], rng: &mut fastrand::Rng, out: &mut Vec<u8>) {
    out.clear();
    if rng.u8(0..16) == 0 {
        return append_components(1 + rng.usize(0..4), rng, out);
    }
    match rng.u8(0..4) {
        0 => out.extend_from_slice(prefix),
        1 => out.extend_from_slice(&prefix[..half(prefix)]),
        _ => {
            out.extend_from_slice(prefix);
            append_components(1 + rng.usize(0..3), rng, out);
        }
    }
}

/// Components of random letters; they almost never continue a prefix.
fn append_components(count: usize, rng: &mut fastrand::Rng, out: &mut Vec<u8>) {
    for _ in 0..count {
        let characters = rng.u8(6..=10);
        out.extend_from_slice(&[8, characters]);
        out.extend((0..characters).map(|_| rng.alphanumeric() as u8));
    }
}

/// Bytes of the first half of a name's components, rounded up.
fn half(name_value: &[u8]) -> usize {
    let mut ends = vec![0];
    while let Some(bytes) = component_bytes(&name_value[ends[ends.len() - 1]..]) {
        ends.push(ends[ends.len() - 1] + bytes);
    }
    ends[ends.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;

    #[test]
    fn most_names_asked_have_a_prefix_and_some_have_none() {
        let context = Context::new(Scale::Smoke, 1, vec![1], std::path::PathBuf::new());
        let population = Population::synthetic(&context, 5_000);
        let answered = population.queries.answered() as f64 / population.queries.len() as f64;
        assert!((0.6..0.99).contains(&answered), "{answered} of the names have a prefix");
        assert_eq!(half(b"\x08\x01a\x08\x01b\x08\x01c"), 6);
        assert_eq!(half(b""), 0);
    }
}
