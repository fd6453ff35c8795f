//! Names to look up: inserted names in random order, whole, cut or extended.
//!
//! Source: NameTrie18 §V-B.2: a look-up takes a random inserted name, whole, cut or extended. Here each kind is a third
//! of the look-ups. A cut name has at least one component less, if there are two; an extended name has up to three
//! components more.

use crate::design_measurement::SLICE_NAMES;
use crate::name_arena::{NameArena, component_bytes};

/// Most names: 256 slices.
const NAMES_MAX: usize = 256 * SLICE_NAMES;

/// Names to look up among these prefixes, in whole slices.
pub(super) fn names(prefixes: &NameArena, seed: u64) -> NameArena {
    let mut rng = fastrand::Rng::with_seed(seed ^ 0x6c6f_6f6b);
    let wanted = prefixes.len().clamp(SLICE_NAMES, NAMES_MAX) / SLICE_NAMES * SLICE_NAMES;
    let (mut names, mut longer) = (NameArena::default(), Vec::new());
    for _ in 0..wanted {
        let name = prefixes.get(rng.usize(..prefixes.len()));
        match rng.u32(..3) {
            0 => names.push(name),
            1 => {
                let ends = component_ends(name);
                let components = ends.len().saturating_sub(1).max(1);
                names.push(&name[..ends.get(rng.usize(..components)).copied().unwrap_or(0)]);
            }
            _ => {
                longer.clear();
                longer.extend_from_slice(name);
                for _ in 0..=rng.usize(..3) {
                    let bytes = rng.usize(1..9);
                    longer.extend([8, bytes as u8]);
                    longer.extend((0..bytes).map(|_| rng.u8(b'a'..=b'z')));
                }
                names.push(&longer);
            }
        }
    }
    names
}

/// Where the components of a valid name end.
fn component_ends(name: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    while let Some(bytes) = component_bytes(&name[at..]) {
        at += bytes;
        ends.push(at);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_each_is_whole_a_part_and_longer() {
        let prefixes: NameArena = [&b"\x08\x01a\x08\x01b\x08\x01c"[..], b"\x08\x01a\x08\x01d"].into_iter().collect();
        let names = names(&prefixes, 1);
        assert_eq!(names.len(), SLICE_NAMES);
        let count = |is_it: &dyn Fn(&[u8], &[u8]) -> bool| {
            names.iter().filter(|name| prefixes.iter().any(|prefix| is_it(name, prefix))).count()
        };
        let whole = count(&|name, prefix| name == prefix);
        let part = count(&|name, prefix| name.len() < prefix.len() && prefix.starts_with(name));
        let longer = count(&|name, prefix| name.len() > prefix.len() && name.starts_with(prefix));
        assert_eq!(whole + part + longer, names.len());
        assert!([whole, part, longer].iter().all(|&names| names > SLICE_NAMES / 4), "{whole} {part} {longer}");
    }
}
