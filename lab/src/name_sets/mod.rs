//! Name sets: names as they are on the web, for the experiments that `--names` means something to.
//!
//! Sources: Yuan15 §4.1 (URLs of three public lists, each as names in the three conversions of
//! Table 4.1), NameTrie18 §V (Table V: what a name begins with). The papers' lists are not to
//! be had any more; the user gives files ([`records`]), and where none is given the names are
//! invented ones of the same build ([`invented`]). Nothing in the lab needs a file.
//!
//! Way of a name: a line of a file or an invented record → [`Records`] (text, in memory once) →
//! [`Records::names`] with a [`NameConversion`] → [`NameSet`]: every name once, in an order without
//! pattern (lists come sorted, and neighbours in order would flatter caches and tries), as octets
//! of Name TLV-VALUEs back to back in one arena.
//!
//! Memory: the text and 8 octets a record; the names and 8 octets a name; while a set is made, its
//! names twice and up to 28 octets a name more.
//! Limits: [`text_lines::LINE_OCTETS_MAX`], [`records::RECORDS_MAX`], [`records::TEXT_OCTETS_MAX`],
//! [`MAX_PREFIX_OCTETS`] and [`MAX_NAME_COMPONENTS`]. Who may write: nobody, once made.

pub mod conversion;
pub mod invented;
pub mod records;

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use namewire_packet::Name;
use namewire_tables::MAX_NAME_COMPONENTS;
use namewire_tables::fib::MAX_PREFIX_OCTETS;

use crate::name_arena::NameArena;
use crate::text_lines;

pub use conversion::NameConversion;
pub use records::Records;

/// The sets of records that an experiment shall use: the file at `given`, or every file of that
/// folder; if nothing is given, invented domains and URLs, about `invented` together.
///
/// # Errors
/// If a file cannot be read or is no list of names.
pub fn record_sets(given: Option<&Path>, invented: usize, seed: u64) -> anyhow::Result<Vec<Records>> {
    let Some(path) = given else {
        return Ok(vec![invented::domains(seed, invented / 4 * 3), invented::urls(seed, invented - invented / 4 * 3)]);
    };
    let is_list = |name: &str| [".txt", ".csv", ".txt.xz", ".csv.xz"].iter().any(|end| name.ends_with(end));
    let files = text_lines::files(path, ".txt, .csv, .txt.xz or .csv.xz", is_list)?;
    files.iter().map(|file| Records::read(file)).collect()
}

/// All of [`record_sets`] as one set of names.
///
/// # Errors
/// As that; or if the user interrupted.
pub fn one_name_set(
    given: Option<&Path>,
    invented: usize,
    conversion: NameConversion,
    seed: u64,
) -> anyhow::Result<NameSet> {
    let sets: Vec<NameSet> = record_sets(given, invented, seed)?
        .into_iter()
        .map(|records| records.names(conversion, seed))
        .collect::<anyhow::Result<_>>()?;
    match <[NameSet; 1]>::try_from(sets) {
        Ok([set]) => Ok(set),
        Err(sets) => Ok(NameSet::joined(&sets, seed)),
    }
}

/// Names, each once, in an order without pattern.
#[derive(Clone, Debug)]
pub struct NameSet {
    /// Where they are from.
    pub title: String,
    /// The names.
    pub names: NameArena,
}

/// What a set is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NameSetSummary {
    /// How many names.
    pub names: usize,
    /// Mean of their components.
    pub components_mean: f64,
    /// Most components of a name.
    pub components_max: usize,
    /// Mean of the octets of their TLV-VALUEs.
    pub octets_mean: f64,
    /// Most octets of a name's TLV-VALUE.
    pub octets_max: usize,
}

impl NameSet {
    /// The names of several sets, each once.
    pub fn joined(sets: &[Self], seed: u64) -> Self {
        let titles: Vec<&str> = sets.iter().map(|set| set.title.as_str()).collect();
        let names: NameArena = sets.iter().flat_map(|set| set.names.iter()).collect();
        Self::of_names(titles.join(" + "), &names, seed)
    }

    /// Names of which some may be there more than once, in any order.
    fn of_names(title: String, names: &NameArena, seed: u64) -> Self {
        let mut order = distinct(names);
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        Self { title, names: order.into_iter().map(|number| names.get(number as usize)).collect() }
    }

    /// What the set is like.
    pub fn summary(&self) -> NameSetSummary {
        let (mut components_sum, mut components_max, mut octets_max) = (0, 0, 0);
        for name in self.names.iter() {
            let components = Name::parse_value(name).map_or(0, |name| name.len());
            components_sum += components;
            components_max = components_max.max(components);
            octets_max = octets_max.max(name.len());
        }
        let names = self.names.len().max(1) as f64;
        NameSetSummary {
            names: self.names.len(),
            components_mean: components_sum as f64 / names,
            components_max,
            octets_mean: self.names.octets() as f64 / names,
            octets_max,
        }
    }
}

/// The numbers of the names, without those of names that came before.
fn distinct(names: &NameArena) -> Vec<u32> {
    const FREE: u32 = u32::MAX;
    let slots = (names.len() * 2).next_power_of_two();
    let mut seen = vec![FREE; slots];
    let mut numbers = Vec::with_capacity(names.len());
    for (number, name) in (0..).zip(names.iter()) {
        let mut hasher = DefaultHasher::new(); // the same in every run
        hasher.write(name);
        let mut slot = hasher.finish() as usize & (slots - 1);
        while seen[slot] != FREE && names.get(seen[slot] as usize) != name {
            slot = (slot + 1) & (slots - 1);
        }
        if seen[slot] == FREE {
            seen[slot] = number;
            numbers.push(number);
        }
    }
    numbers
}

/// Whether a table takes it.
fn is_within_limits(name: &[u8], components: usize) -> bool {
    name.len() <= MAX_PREFIX_OCTETS && components <= MAX_NAME_COMPONENTS
}
