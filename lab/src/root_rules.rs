//! Root rules: the names of a set that have no proper prefix in the set.
//!
//! A lossy table differentiates these (Yuan15 §4.3.2); other tables keep the longer rules below them in full.

use namewire_designs::fib::string_differentiation::patricia_controller::RuleNames;
use namewire_packet::Name;

use crate::name_arena::NameArena;
use crate::name_sets::NameSet;

/// Prefix-free names, by number.
pub struct Rules {
    /// The names, in an order without pattern.
    pub names: NameArena,
}

impl RuleNames for Rules {
    fn write_name(&self, rule: u32, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.names.get(rule as usize));
    }
}

/// The root rules of the set; or of the first `components` components of its names.
pub fn root_rules(set: &NameSet, components: Option<usize>, seed: u64) -> Rules {
    let cut = |name| match (components, Name::parse_value(name)) {
        (Some(components), Ok(parsed)) => parsed.prefix(components).value(),
        _ => name,
    };
    let mut names: Vec<&[u8]> = set.names.iter().map(cut).filter(|name| !name.is_empty()).collect();
    // In sorted order, the names below a prefix follow it.
    names.sort_unstable();
    let mut above: Option<&[u8]> = None;
    names.retain(|name| {
        let is_root_rule = above.is_none_or(|above| !name.starts_with(above));
        above = if is_root_rule { Some(name) } else { above };
        is_root_rule
    });
    fastrand::Rng::with_seed(seed).shuffle(&mut names);
    Rules { names: names.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_others_are_left_out() {
        let names: NameArena =
            [&b"\x08\x01a\x08\x01b"[..], b"\x08\x01a", b"\x08\x01b\x08\x01c", b"\x08\x01b\x08\x01d", b""]
                .into_iter()
                .collect();
        let set = NameSet { title: String::new(), names };
        let sorted = |rules: Rules| {
            let mut names: Vec<Vec<u8>> = rules.names.iter().map(<[u8]>::to_vec).collect();
            names.sort();
            names
        };
        assert_eq!(
            sorted(root_rules(&set, None, 1)),
            [&b"\x08\x01a"[..], b"\x08\x01b\x08\x01c", b"\x08\x01b\x08\x01d"]
        );
        assert_eq!(sorted(root_rules(&set, Some(1), 1)), [b"\x08\x01a", b"\x08\x01b"]);
    }
}
