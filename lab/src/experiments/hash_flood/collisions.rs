//! The attacker of the control: with the key, it computes names that all have one hash.
//!
//! The hash of `/flood/X`, X of 14 bytes, is a function of the upper half of `S + (a + y)(b + x)` modulo 2¹²⁸ (see the
//! tables' `hash_key`). With the key, S, a and b are known numbers. For any x, the colliding names are the y for which
//! `(b + x) · y` falls into a window of 2⁶⁴. About one y in 2⁶⁴ does; Euclid's algorithm on (2¹²⁸, b + x) finds it in
//! some forty steps.
//!
//! This file expands the key words again, from the definition, so that a found collision also verifies the tables'
//! hash.

use namewire_tables::sip_hash::SipHash;

/// Bytes before those that the attacker chooses: the component `flood`, and the header of the second component.
const FLOOD: &[u8] = b"\x08\x05flood";
const CHOSEN_HEADER: [u8; 2] = [8, 14];

/// The key, as the attacker knows it.
pub(super) struct KnownKey {
    secret: u128,
}

impl KnownKey {
    /// From the 16 bytes of a router's key.
    pub(super) fn new(bytes: [u8; 16]) -> Self {
        Self { secret: u128::from_le_bytes(bytes) }
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

    /// `c`, the start of every sum.
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
        // Any sum will do, if all names share its upper half.
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

/// A number of single steps, and the distance that they cover modulo 2¹²⁸.
#[derive(Clone, Copy)]
struct Stride {
    steps: u128,
    way: u128,
}

impl Stride {
    /// This stride plus `times` strides in the other direction.
    fn shortened(self, times: u128, other: Stride) -> Option<Stride> {
        let steps = other.steps.checked_mul(times)?.checked_add(self.steps)?;
        Some(Stride { steps, way: self.way - times * other.way })
    }
}

/// The number of steps of length `step` that leads from 0 to at least `from` and less than `from` + 2⁶⁴, modulo 2¹²⁸;
/// `None` if it would be 2⁶⁴ or more.
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
        // The longest stride that is not too long, once; then the next convergent as often as it fits.
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
            let bytes = [seed; 16];
            let names = KnownKey::new(bytes).colliding_names(50, u64::from(seed) << 50);
            let under = |key: HashKey| names.iter().map(|name| hash_name(&key, name)).collect::<HashSet<u64>>();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), 50);
            assert_eq!(under(HashKey::new(bytes)).len(), 1);
            assert_eq!(under(HashKey::new([seed + 1; 16])).len(), 50);
        }
    }
}
