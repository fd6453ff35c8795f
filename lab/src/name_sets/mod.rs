//! Name sets: names as they are on the web, for the experiments that use `--names`.
//!
//! Sources: Yuan15 §4.1 (URLs of three public lists, each as names in the three conversions of Table 4.1), NameTrie18
//! §V (Table V: the first components of a name). The papers' lists are no longer available. The user gives files
//! ([`records`]); without files, the lab invents similar names ([`invented`]). [`shaped_urls`] makes URLs in a data
//! set's proportions from either.
//!
//! From line to name: a line of a file or an invented record → [`Records`] (text, in memory once) → [`Records::names`]
//! with a [`NameConversion`] → [`NameSet`]. A set has every name once, shuffled: lists are sorted, and an order of
//! neighbours would flatter caches and tries. One arena holds the Name TLV-VALUEs back to back.
//!
//! Memory: records take their text and 8 bytes each; a set takes its names and 8 bytes each. While a set is made, it
//! takes its names twice and up to 28 more bytes per name. Limits: [`text_lines::LINE_BYTES_MAX`],
//! [`records::RECORDS_MAX`], [`records::TEXT_BYTES_MAX`], [`MAX_PREFIX_BYTES`] and [`MAX_NAME_COMPONENTS`]. A finished
//! set never changes.

pub mod conversion;
pub mod invented;
mod name_statistics;
pub mod records;
mod shaped_urls;

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use namewire_tables::MAX_NAME_COMPONENTS;
use namewire_tables::fib::MAX_PREFIX_BYTES;

use crate::name_arena::NameArena;
use crate::text_lines;

pub use conversion::NameConversion;
pub use name_statistics::NameStatistics;
pub use records::Records;
pub use shaped_urls::{Corpus, Shape};

/// The record sets for an experiment: the file at `given`, or every list in that folder. Without `given`, about
/// `invented` invented domains and URLs in total.
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
/// As [`record_sets`]; or if the user interrupted.
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

/// Names, each once, shuffled.
#[derive(Clone, Debug)]
pub struct NameSet {
    /// Where the names come from.
    pub title: String,
    /// The names.
    pub names: NameArena,
}

impl NameSet {
    /// The names of several sets, each once.
    pub fn joined(sets: &[Self], seed: u64) -> Self {
        let titles: Vec<&str> = sets.iter().map(|set| set.title.as_str()).collect();
        let names: NameArena = sets.iter().flat_map(|set| set.names.iter()).collect();
        Self::of_names(titles.join(" + "), &names, seed)
    }

    /// A set of names that may contain duplicates, in any order.
    fn of_names(title: String, names: &NameArena, seed: u64) -> Self {
        let mut order = distinct(names);
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        Self { title, names: order.into_iter().map(|number| names.get(number as usize)).collect() }
    }
}

/// The numbers of the names, without duplicates.
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

/// Whether a table accepts the name.
fn is_within_limits(name: &[u8], components: usize) -> bool {
    name.len() <= MAX_PREFIX_BYTES && components <= MAX_NAME_COMPONENTS
}
