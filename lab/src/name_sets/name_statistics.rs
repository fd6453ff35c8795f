//! Name statistics: how long are these names, and how much of them do they share?
//!
//! Source: NameTrie18 Table II and Fig. 9. Lengths are in bytes of the URI: a component's are those of its value, a
//! name's include one slash for each component. The *shared prefix* of a name is what a character trie has of it
//! already when the name is inserted (the paper's p, Table I). Its mean does not depend on the order of insertion: it
//! is the mean agreement of neighbours in a sorted list. The paper does not say how it counts the average prefix
//! length of Table II; this reading follows its formula for memory, N ((n d − p) + 12 d).
//!
//! Memory: while the names are sorted, their URIs and 24 bytes each.

use crate::experiment::Outcome;
use crate::name_arena::{NameArena, component_bytes};

/// Statistics of a list of names.
pub struct NameStatistics {
    names: usize,
    components: usize,
    /// Bytes of all components' values.
    value_bytes: usize,
    /// Bytes of all shared prefixes.
    shared_bytes: usize,
    /// Element k: names of k components.
    names_by_components: Vec<usize>,
    /// Element k: components of k bytes.
    components_by_bytes: Vec<usize>,
}

/// The last bar of a distribution holds this length and all greater ones.
const LAST_COMPONENTS: usize = 12;
const LAST_BYTES: usize = 24;

impl NameStatistics {
    pub fn of(names: &NameArena) -> Self {
        let mut statistics = Self {
            names: names.len(),
            components: 0,
            value_bytes: 0,
            shared_bytes: 0,
            names_by_components: vec![0; LAST_COMPONENTS + 1],
            components_by_bytes: vec![0; LAST_BYTES + 1],
        };
        let (mut uris, mut uri) = (NameArena::default(), Vec::new());
        for name in names.iter() {
            uri.clear();
            let mut components = 0;
            for value in values(name) {
                components += 1;
                statistics.value_bytes += value.len();
                statistics.components_by_bytes[value.len().min(LAST_BYTES)] += 1;
                uri.push(b'/');
                uri.extend_from_slice(value);
            }
            statistics.components += components;
            statistics.names_by_components[components.min(LAST_COMPONENTS)] += 1;
            uris.push(uri.get(1..).unwrap_or_default());
        }
        statistics.shared_bytes = shared_bytes(&uris);
        statistics
    }

    pub fn components_per_name(&self) -> f64 {
        self.components as f64 / self.names.max(1) as f64
    }

    pub fn bytes_per_component(&self) -> f64 {
        self.value_bytes as f64 / self.components.max(1) as f64
    }

    pub fn bytes_per_name(&self) -> f64 {
        (self.value_bytes + self.components) as f64 / self.names.max(1) as f64
    }

    pub fn shared_bytes_per_name(&self) -> f64 {
        self.shared_bytes as f64 / self.names.max(1) as f64
    }

    /// The rows of Table II.
    pub fn add_rows(&self, case: &str, outcome: &mut Outcome) {
        let mut row = |metric, unit, value| outcome.add_value(case, "names", (metric, unit), value);
        row("names", "names", self.names as f64);
        row("components", "components", self.components as f64);
        row("components per name", "components", self.components_per_name());
        row("component length", "bytes", self.bytes_per_component());
        row("name length", "bytes", self.bytes_per_name());
        row("shared prefix length", "bytes", self.shared_bytes_per_name());
    }

    /// The rows of Fig. 9.
    pub fn add_distributions(&self, case: &str, outcome: &mut Outcome) {
        let kinds = [
            ("names", "components", &self.names_by_components, self.names),
            ("components", "bytes", &self.components_by_bytes, self.components),
        ];
        for (what, unit, bars, all) in kinds {
            for (length, &count) in bars.iter().enumerate().skip(1) {
                let more = if length + 1 == bars.len() { " and more" } else { "" };
                let metric = format!("{what} of {length}{more} {unit}");
                outcome.add_value(case, "names", (&metric, "%"), 100.0 * count as f64 / all.max(1) as f64);
            }
        }
    }
}

/// The values of a valid name's components.
pub(super) fn values(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let bytes = component_bytes(rest)?;
        let (component, others) = rest.split_at(bytes);
        rest = others;
        // Type and length take one byte each, or three if a value is longer than 252 bytes.
        Some(&component[if component[1] < 253 { 2 } else { 4 }..])
    })
}

/// The agreement of each URI with the one before it in sorted order, in total.
fn shared_bytes(uris: &NameArena) -> usize {
    // The first bytes beside the number: most comparisons read nothing else.
    let mut order: Vec<([u8; 8], u32)> = (0..)
        .zip(uris.iter())
        .map(|(number, uri)| (std::array::from_fn(|place| uri.get(place).copied().unwrap_or(0)), number))
        .collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| uris.get(a.1 as usize).cmp(uris.get(b.1 as usize))));
    let agreement = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let pairs = order.windows(2).map(|pair| agreement(uris.get(pair[0].1 as usize), uris.get(pair[1].1 as usize)));
    pairs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_shared_prefixes_are_those_of_uris() {
        let long = [&[8, 253, 1, 0][..], &[b'z'; 256]].concat();
        // /ab/cd, /ab/ce, /ab, /b and a long one: shared are "ab/c" and "ab".
        let names = [&b"\x08\x02ab\x08\x02cd"[..], b"\x08\x02ab\x08\x02ce", b"\x08\x02ab", b"\x08\x01b", &long];
        let statistics = NameStatistics::of(&names.into_iter().collect());
        assert_eq!((statistics.components, statistics.value_bytes, statistics.shared_bytes), (7, 11 + 256, 4 + 2));
        assert_eq!((statistics.names_by_components[1], statistics.names_by_components[2]), (3, 2));
        assert_eq!((statistics.components_by_bytes[2], statistics.components_by_bytes[LAST_BYTES]), (5, 1));
        let mut outcome = Outcome::default();
        statistics.add_distributions("case", &mut outcome);
        let total: f64 = outcome.rows.iter().filter_map(|row| row.value.as_ref()).map(|value| value.median).sum();
        assert!((total - 200.0).abs() < 1e-9, "two distributions: {total} %");
    }

    #[test]
    fn the_order_of_insertion_changes_nothing() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut names: Vec<Vec<u8>> =
            (0..200).map(|_| vec![8, 3, rng.u8(b'a'..b'e'), rng.u8(b'a'..b'e'), rng.u8(b'a'..=b'z')]).collect();
        names.sort();
        names.dedup();
        rng.shuffle(&mut names);
        // What each name shares with those before it, as a trie sees it.
        let agreement = |a: &[u8], b: &[u8]| a[2..].iter().zip(&b[2..]).take_while(|(a, b)| a == b).count();
        let at_insertion = |number: usize| (0..number).map(|before| agreement(&names[before], &names[number])).max();
        let wanted: usize = (0..names.len()).filter_map(at_insertion).sum();
        let statistics = NameStatistics::of(&names.iter().map(Vec::as_slice).collect());
        assert_eq!(statistics.shared_bytes, wanted);
    }
}
