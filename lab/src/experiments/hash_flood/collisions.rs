//! The attacker of the control: with the key, it computes names that all have one hash.
//!
//! The hash of `/flood/X`, X of 55 bytes, is a function of the sum of the products `(a + x)(b + y)` of its four blocks
//! of 16 bytes (see the tables' `hash_key`). With the key, a and b are known numbers. For two blocks, x = 1 − a: their
//! products are `b + y`. Then all y that have the same sum for both blocks give one hash.
//!
//! This file expands the key words again, from the definition, so that a found collision also verifies the tables'
//! hash.

use namewire_tables::sip_hash::SipHash;

/// The first block: the component `flood`, the header of the second component, and bytes that all names share.
const FIRST_BLOCK: &[u8; 16] = b"\x08\x05flood\x08\x37-names-";
/// The last block, which all names share too, so that their windows are equal.
const LAST_BLOCK: &[u8; 16] = b"-that-collide---";

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

    /// `c`, the start of every sum.
    pub(super) fn start(&self) -> u128 {
        self.double(5)
    }

    /// `α` and `β` of the last step.
    pub(super) fn window(&self) -> (u64, u64) {
        (self.word(1), self.word(2))
    }

    /// `k`, `l` and `m` of the last step.
    pub(super) fn last_step(&self) -> [u128; 3] {
        [9, 11, 13].map(|n| self.double(n))
    }

    fn double(&self, counter: u64) -> u128 {
        u128::from(self.word(counter)) | u128::from(self.word(counter + 1)) << 64
    }

    /// `a` and `b` of block `n`.
    pub(super) fn block(&self, n: u64) -> (u64, u64) {
        (self.word(21 + 2 * n), self.word(22 + 2 * n))
    }

    /// `count` different names whose hashes under this key are the same 64 bits.
    pub(super) fn colliding_names(&self, count: usize, seed: u64) -> Vec<Vec<u8>> {
        let ((a1, b1), (a2, b2)) = (self.block(1), self.block(2));
        let names = (0..count as u64).map(|n| {
            // Both factors stay below 2⁶⁴, so their sum is the same number each time.
            let share = (seed ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let words =
                [1_u64.wrapping_sub(a1), share.wrapping_sub(b1), 1_u64.wrapping_sub(a2), (!share).wrapping_sub(b2)];
            flood_name(words)
        });
        names.collect()
    }
}

/// The name with these words in its two blocks that names do not share.
pub(super) fn flood_name(words: [u64; 4]) -> Vec<u8> {
    [FIRST_BLOCK.as_slice(), words.map(u64::to_le_bytes).as_flattened(), LAST_BLOCK].concat()
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
