//! Synthetic names: prefixes for a FIB of any size, and names under them.
//!
//! Source: Takemasa19 §3.2.2 (13,548,815 prefixes as in the IRCache traces of So et al. 2013; 4 components on average;
//! names of 7 components of 9 characters). The thesis gives only the mean length of prefixes; here lengths are uniform
//! from 2 to 6 components, with mean 4.
//!
//! Every name is a function of (seed, number): no name is stored, and any thread can make any name. Bytes are those of
//! a Name TLV-VALUE.

use crate::split_mix::split_mix;

/// Prefixes of the papers' FIB.
pub const PAPER_PREFIXES: u64 = 13_548_815;
/// Components of a name by default.
pub const NAME_COMPONENTS: u64 = 7;
/// Characters of a component.
pub const COMPONENT_CHARACTERS: usize = 9;
/// Bytes of a name's TLV-VALUE.
pub const NAME_VALUE_BYTES: usize = NAME_COMPONENTS as usize * COMPONENT_TLV_BYTES;

/// Bytes of a component's TLV.
pub const COMPONENT_TLV_BYTES: usize = COMPONENT_CHARACTERS + 2;
/// The characters of components.
pub const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Components of the shortest prefixes.
const SHORTEST_PREFIX: u64 = 2;
/// Nine characters of 32: every number below this makes a different component.
const COMPONENT_VALUES: u64 = 1 << 45;

/// A population of prefixes and the names under them.
#[derive(Clone, Copy, Debug)]
pub struct SyntheticNames {
    seed: u64,
    prefixes: u64,
    name_components: u64,
}

impl SyntheticNames {
    /// `prefixes` prefixes (at least 1) that depend on `seed`.
    ///
    /// # Panics
    /// If there are none.
    pub const fn new(seed: u64, prefixes: u64) -> Self {
        assert!(prefixes > 0);
        Self { seed, prefixes, name_components: NAME_COMPONENTS }
    }

    /// The same prefixes, and names of `name_components` under those that have fewer: there must be some.
    ///
    /// # Panics
    /// If no prefix can be so short.
    pub const fn with_name_components(self, name_components: u64) -> Self {
        assert!(name_components > SHORTEST_PREFIX);
        Self { name_components, ..self }
    }

    pub const fn prefixes(&self) -> u64 {
        self.prefixes
    }

    /// How many components prefix `number` has: 2 to 6.
    pub const fn prefix_components(&self, number: u64) -> u64 {
        SHORTEST_PREFIX + split_mix(self.seed ^ split_mix(number)) % 5
    }

    /// Replaces `out` by prefix `number`.
    pub fn write_prefix(&self, number: u64, out: &mut Vec<u8>) {
        out.clear();
        for component in 0..self.prefix_components(number) {
            push_component(split_mix(self.seed ^ split_mix(number * 8 + component + 1)), out);
        }
    }

    /// The prefix of name `number`: all that are shorter than a name are equally frequent, in a shuffled order.
    pub const fn prefix_of_name(&self, number: u64) -> u64 {
        let mut drawn = split_mix(self.seed.rotate_left(32) ^ number);
        while self.prefix_components(drawn % self.prefixes) >= self.name_components {
            drawn = split_mix(drawn);
        }
        drawn % self.prefixes
    }

    /// Replaces `out` by name `number`; names below 2⁴⁵ are all distinct.
    pub fn write_name(&self, number: u64, out: &mut Vec<u8>) {
        let prefix = self.prefix_of_name(number);
        self.write_prefix(prefix, out);
        for component in self.prefix_components(prefix)..self.name_components - 1 {
            push_component(split_mix(number ^ component << 48), out);
        }
        // An odd multiplier permutes the numbers below a power of two.
        push_component(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % COMPONENT_VALUES, out);
    }
}

fn push_component(value: u64, out: &mut Vec<u8>) {
    let mut component = [0; COMPONENT_TLV_BYTES];
    (component[0], component[1]) = (8, COMPONENT_CHARACTERS as u8); // GenericNameComponent
    for (place, byte) in component[2..].iter_mut().enumerate() {
        *byte = ALPHABET[(value >> (5 * place)) as usize % 32];
    }
    out.extend_from_slice(&component);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_population_is_what_the_paper_describes() {
        let names = SyntheticNames::new(1, 20_000);
        let (mut prefix, mut name) = (Vec::new(), Vec::new());
        let mut prefixes = HashSet::new();
        let mut bytes = 0;
        for number in 0..names.prefixes() {
            names.write_prefix(number, &mut prefix);
            bytes += prefix.len();
            prefixes.insert(prefix.clone());
        }
        assert_eq!(prefixes.len(), 20_000);
        let components = bytes as f64 / COMPONENT_TLV_BYTES as f64 / 20_000.0;
        assert!((components - 4.0).abs() < 0.05, "{components} components on average");
        let mut seen = HashSet::new();
        for number in 0..20_000 {
            names.write_name(number, &mut name);
            names.write_prefix(names.prefix_of_name(number), &mut prefix);
            assert_eq!(name.len(), NAME_VALUE_BYTES);
            assert!(name.starts_with(&prefix));
            let longest = (prefix.len() + COMPONENT_TLV_BYTES..name.len()).step_by(COMPONENT_TLV_BYTES);
            assert!(longest.clone().all(|end| !prefixes.contains(&name[..end])), "the prefix is the longest match");
            assert!(seen.insert(name.clone()), "all names are distinct");
        }
        for (components, number) in [(15, 7), (3, 7), (3, 8), (4, 9), (6, 10)] {
            let names = names.with_name_components(components);
            names.write_name(number, &mut name);
            names.write_prefix(names.prefix_of_name(number), &mut prefix);
            assert!(name.len() == components as usize * COMPONENT_TLV_BYTES && name.starts_with(&prefix));
            assert!(prefix.len() < name.len(), "the name is longer");
        }
    }
}
