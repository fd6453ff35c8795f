//! How deep is a Patricia trie of domains, by the length of the fingerprints before its keys?
//!
//! Source: Yuan15 Fig. 4.4 and §4.3.3 (30 levels for Alexa's domains, 52 for Dmoz', 24 for Dmoz' with fingerprints of
//! 20 bits). `string-differentiation` builds such tries; this experiment counts their depths without building them, so
//! that it can take every list, and keys in the thesis' form and in ours:
//!
//! * characters: the thesis' keys, the host as text;
//! * with lengths: our tries' keys, where type and length of the component stand before the characters. Names of equal
//!   length then share their first bits, and the first characters differ within fewer names.
//!
//! A Patricia trie has an internal node for each place where neighbouring sorted keys first differ. The leaves below a
//! node are the longest run of neighbours that do not differ before. So the mean depth is the sum of these runs over
//! the number of keys, in one pass over the sorted keys.

use namewire_designs::city_hash::city_hash_64;
use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::name_sets::{NameConversion, record_sets};
use crate::root_rules::root_rules;

pub(super) const FILE: &str = include_str!("trie_depth.toml");

/// Fingerprint lengths (Fig. 4.4).
const FINGERPRINT_BITS: [u32; 9] = [0, 4, 8, 12, 16, 20, 24, 28, 32];
/// Type and length, before the characters of a component of a host.
const LENGTH_BYTES: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    invented: usize,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let lists = record_sets(context.names.as_deref(), size.invented, context.seed)?;
    context.plan_steps(lists.len());
    let mut outcome = Outcome::default();
    for list in &lists {
        let set = list.names(NameConversion::Host, context.seed)?;
        context.begin_step(&set.title)?;
        let rules = root_rules(&set, Some(1), context.seed);
        let names: Vec<&[u8]> = rules.names.iter().collect();
        let case = format!("{}, {} hosts", set.title, names.len());
        outcome.add_value(&case, "balanced trie", ("mean depth", "levels"), (names.len() as f64).log2());
        for (subject, skipped) in [("characters", LENGTH_BYTES), ("with lengths", 0)] {
            for bits in FINGERPRINT_BITS {
                context.check_interrupt()?;
                let depth = mean_depth(names.iter().map(|name| key(name, skipped, bits)).collect());
                let metric = if bits == 0 { "mean depth".to_owned() } else { format!("mean depth, {bits} bits") };
                outcome.add_value(&case, subject, (&metric, "levels"), depth);
            }
        }
    }
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

/// The fingerprint in whole bytes, and the name from byte `skipped` on.
fn key(name: &[u8], skipped: usize, fingerprint_bits: u32) -> Vec<u8> {
    let fingerprint = if fingerprint_bits == 0 { 0 } else { city_hash_64(name) >> (64 - fingerprint_bits) };
    let bytes = fingerprint_bits.div_ceil(8) as usize;
    let shifted = fingerprint << (8 * bytes as u32 - fingerprint_bits);
    let mut key = shifted.to_be_bytes()[8 - bytes..].to_vec();
    key.extend_from_slice(&name[skipped.min(name.len())..]);
    key.push(0);
    key
}

/// Internal nodes above a leaf, on average.
fn mean_depth(mut keys: Vec<Vec<u8>>) -> f64 {
    keys.sort_unstable();
    keys.dedup();
    // Bits that neighbours share; 0 at both ends closes all runs.
    let shared = |one: &[u8], other: &[u8]| {
        let bytes = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let differing = one.get(bytes).zip(other.get(bytes)).map_or(0, |(one, other)| (one ^ other).leading_zeros());
        8 * bytes as u32 + differing + 1
    };
    let neighbours = keys.windows(2).map(|pair| shared(&pair[0], &pair[1]));
    // Places that wait for one with fewer shared bits: (shared bits, first key of the run).
    let mut open: Vec<(u32, usize)> = Vec::new();
    let mut leaves_below = 0;
    for (place, shared) in neighbours.chain([0]).enumerate() {
        let mut first = place;
        while let Some(&(bits, begun)) = open.last().filter(|(bits, _)| *bits > shared) {
            debug_assert!(bits > 0);
            leaves_below += place + 1 - begun;
            first = begun;
            open.pop();
        }
        open.push((shared, first));
    }
    leaves_below as f64 / keys.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use namewire_designs::fib::string_differentiation::differentiator::{Differentiator, Leads};
    use namewire_designs::fib::string_differentiation::{
        Fingerprints, PatriciaController, PatriciaOptions, PatriciaTable,
    };

    use super::*;
    use crate::name_sets::NameSet;

    #[test]
    fn depths_of_small_tries_are_those_drawn_by_hand() {
        let depth = |keys: &[&[u8]]| mean_depth(keys.iter().map(|key| key.to_vec()).collect());
        assert_eq!(depth(&[b"a"]), 0.0);
        assert_eq!(depth(&[b"a", b"b"]), 1.0);
        // 00, 01, 1: two leaves below two nodes, one below one.
        assert_eq!(depth(&[&[0x00], &[0x40], &[0x80]]), 5.0 / 3.0);
        assert_eq!(depth(&[&[0x00], &[0x40], &[0x80], &[0xc0]]), 2.0);
        assert_eq!(depth(&[b"abc\0", b"abcd\0", b"x\0"]), 5.0 / 3.0);
    }

    /// The trie of `string-differentiation` has these depths.
    #[test]
    fn depths_are_those_of_the_trie_itself() -> anyhow::Result<()> {
        let lists = record_sets(None, 3_000, 7)?;
        let set: NameSet = lists[0].names(NameConversion::Host, 7)?;
        let rules = root_rules(&set, Some(1), 7);
        for bits in [0, 12, 20] {
            let bytes_max = rules.names.iter().map(<[u8]>::len).max().unwrap_or(0);
            let options = PatriciaOptions {
                fingerprints: Fingerprints { bits, components: 1 },
                rule_bytes_max: bytes_max,
                ..PatriciaOptions::fpt(rules.names.len())
            };
            let (mut controller, mut table) = (PatriciaController::new(options, false)?, PatriciaTable::new(options)?);
            for number in 0..rules.names.len() {
                controller.insert_rule(&rules, number as u32, Some(Leads::to_number(1)));
                controller.take_instructions().for_each(|instruction| table.apply(&instruction));
            }
            let built = table.trie().leaf_depths().mean;
            let counted = mean_depth(rules.names.iter().map(|name| key(name, 0, bits)).collect());
            assert!((built - counted).abs() < 1e-9, "{bits} bits: {built} built, {counted} counted");
        }
        Ok(())
    }
}
