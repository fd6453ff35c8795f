//! The attacker of the control: who knows the key computes names that all have one hash.
//!
//! The hash of `/flood/X`, X of 14 octets, is a function of the upper half of
//! `S + (a + y)(b + x)` modulo 2¹²⁸ (see the tables' `hash_key`). With the key, S, a
//! and b are numbers. For any x the names with one hash are the y for which
//! `(b + x) · y` falls into a window of 2⁶⁴: about one among 2⁶⁴, and Euclid's
//! algorithm on (2¹²⁸, b + x) walks to it in some forty steps.
//!
//! The key words are expanded here once more, from the definition, so that a
//! collision found is also a check of the tables' hash.

use namewire_tables::sip_hash::SipHash;

/// Octets in front of those the attacker chooses: the component `flood`, and the header of the second one.
const FLOOD: &[u8] = b"\x08\x05flood";
const CHOSEN_HEADER: [u8; 2] = [8, 14];

/// What the attacker knows.
pub(super) struct KnownKey {
    secret: u128,
}

impl KnownKey {
    /// The 16 octets a router's key was made of.
    pub(super) fn new(octets: [u8; 16]) -> Self {
        Self { secret: u128::from_le_bytes(octets) }
    }

    /// Word `counter` of the expanded key.
    fn word(&self, counter: u64) -> u64 {
        let mut hash = SipHash::<2, 4>::new([self.secret as u64, (self.secret >> 64) as u64]);
        hash.write(&counter.to_le_bytes());
        hash.finish()
    }

    fn double(&self, counter: u64) -> u128 {
        u128::from(self.word(counter)) | u128::from(self.word(counter + 1)) << 64
    }

    /// `c`, with which every sum begins.
    pub(super) fn start(&self) -> u128 {
        self.double(3)
    }

    /// `a` and `b` of pair `n`.
    pub(super) fn pair(&self, n: u64) -> (u128, u128) {
        (self.double(7 + 4 * n), self.double(9 + 4 * n))
    }

    /// `count` different names whose hashes under this key are the same 64 bits.
    pub(super) fn colliding_names(&self, count: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut first = [0; 16];
        first[..FLOOD.len()].copy_from_slice(FLOOD);
        let number = u128::from_le_bytes(first);
        let ((a0, b0), (a, b)) = (self.pair(0), self.pair(1));
        let before = self.start().wrapping_add(product(a0, b0, number as u64, (number >> 64) as u64));
        // Any sum will do as long as all names have its upper half.
        let wanted = (u128::from(seed) << 64).wrapping_sub(before);
        let header = u64::from(u16::from_le_bytes(CHOSEN_HEADER));
        let xs = (0_u64..1 << 48).map(|free| free.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 16 | header);
        let names = xs.filter_map(|x| {
            let step = b.wrapping_add(x.into());
            let y = reach(step, wanted.wrapping_sub(a.wrapping_mul(step)))?;
            Some([FLOOD, &x.to_le_bytes(), &y.to_le_bytes()].concat())
        });
        names.take(count).collect()
    }
}

fn product(a: u128, b: u128, x: u64, y: u64) -> u128 {
    a.wrapping_add(y.into()).wrapping_mul(b.wrapping_add(x.into()))
}

/// So many single steps, and how far they lead together, modulo 2¹²⁸.
#[derive(Clone, Copy)]
struct Stride {
    steps: u128,
    way: u128,
}

impl Stride {
    /// This stride and `times` of one in the other direction.
    fn shortened(self, times: u128, other: Stride) -> Option<Stride> {
        let steps = other.steps.checked_mul(times)?.checked_add(self.steps)?;
        Some(Stride { steps, way: self.way - times * other.way })
    }
}

/// How many steps of length `step` lead from 0 to at least `from` and less than `from`
/// + 2⁶⁴, modulo 2¹²⁸; `None` if the way found takes 2⁶⁴ or more.
fn reach(step: u128, from: u128) -> Option<u64> {
    const WINDOW: u128 = 1 << 64;
    if step < WINDOW {
        return None; // one key in 2⁶⁴
    }
    let around = u128::MAX / step;
    let mut forward = Stride { steps: 1, way: step };
    let mut back = Stride { steps: around, way: 0_u128.wrapping_sub(around.wrapping_mul(step)) };
    let mut rest = from.wrapping_add(WINDOW - 1);
    let mut steps = rest / forward.way;
    rest %= forward.way;
    while rest >= WINDOW {
        // The longest stride that is not too long, once; then the next convergent, as often as it fits.
        let times = (forward.way - rest).div_ceil(back.way);
        if times * back.way < forward.way {
            let fitting = forward.shortened(times, back)?;
            steps += fitting.steps;
            rest -= fitting.way;
        }
        forward = forward.shortened((forward.way - 1) / back.way, back)?;
        steps += (rest / forward.way).checked_mul(forward.steps)?;
        rest %= forward.way;
        back = back.shortened((back.way - 1) / forward.way, forward)?;
        if steps > u128::from(u64::MAX) {
            return None;
        }
    }
    u64::try_from(steps).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::{HashKey, hash_name};
    use std::collections::HashSet;

    #[test]
    fn names_for_a_known_key_are_different_and_have_one_hash_there_only() {
        for seed in 0..20_u8 {
            let octets = [seed; 16];
            let names = KnownKey::new(octets).colliding_names(50, u64::from(seed) << 50);
            let under = |key: HashKey| names.iter().map(|name| hash_name(&key, name)).collect::<HashSet<u64>>();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), 50);
            assert_eq!(under(HashKey::new(octets)).len(), 1);
            assert_eq!(under(HashKey::new([seed + 1; 16])).len(), 50);
        }
    }
}
