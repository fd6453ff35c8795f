//! Local fingerprint: how few bits distinguish the owner of a leaf from the other names that come to it?
//!
//! Source: Yuan15 §4.3.5, Fig. 4.9-4.10. A distributed table holds the n rules of its *stored* table. The m − n rules
//! of the *default* table are not in the trie, and m/n names come to each leaf. A leaf keeps the least number of bits
//! of a hash of its owner's name that no other name at this leaf shares, about log₂(m/n). There are two hashes; the
//! leaf keeps the bits of the better one, and a bit that says which. The threshold log₂(m/n) + k is the room of a leaf.
//! Where more bits are needed, the names that agree with the owner in all these bits are put into the trie, with leaves
//! that lead nowhere.
//!
//! Symbols: m/n − 1 others per leaf; threshold = [`super::patricia_leaf::LeafLayout::local_bits_max`].
//! Deviation: rules have several components. What is hashed must be known of every name below a rule, the default rules
//! included. So the first c components are hashed; c is the number of components of the owner, and the leaf holds c. A
//! default rule of fewer components is put into the trie.

use super::patricia_leaf::LocalFingerprint;
use crate::city_hash::city_hash_64_with_seed;
use namewire_tables::name_hash::components_of;

/// Seeds of the two hashes: apart from the trie's fingerprint, which the names at a leaf may share.
const SEEDS: [u64; 2] = [0x51a8_a1d7_6e12_f9c3, 0x0f2b_6cc8_3b94_e725];

/// Both hashes of the bytes.
pub fn local_hashes(bytes: &[u8]) -> [u64; 2] {
    SEEDS.map(|seed| city_hash_64_with_seed(bytes, seed))
}

/// The first `components` components of a name, all of them if there are fewer.
pub fn owner_span(name: &[u8], components: usize) -> &[u8] {
    let bytes = components_of(name).take(components).map(<[u8]>::len).sum();
    &name[..bytes]
}

/// The least number of first bits in which `other` differs from `owner`.
pub const fn bits_to_tell(owner: u64, other: u64) -> u32 {
    (owner ^ other).leading_zeros() + 1
}

/// The fewest bits, up to `bits_max`, that tell the owner from as many of the others as such bits can,
/// of the first hash or, if allowed, of either.
pub fn least_local_fingerprint(
    owner: [u64; 2],
    others: &[[u64; 2]],
    bits_max: u32,
    may_use_second: bool,
) -> LocalFingerprint {
    let of_hash = |hash: usize| {
        let (mut beyond, mut bits) = (0, 0);
        for other in others {
            match bits_to_tell(owner[hash], other[hash]) {
                needed if needed > bits_max => beyond += 1,
                needed => bits = bits.max(needed),
            }
        }
        (beyond, bits)
    };
    let first = of_hash(0);
    let second = if may_use_second { of_hash(1) } else { first };
    let is_second_hash = second < first;
    LocalFingerprint::of(owner, is_second_hash, if is_second_hash { second.1 } else { first.1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_is_whole_components() {
        let name = b"\x08\x01a\x08\x00\x08\x02bc";
        assert_eq!([0, 1, 2, 3, 9].map(|components| owner_span(name, components).len()), [0, 3, 5, 9, 9]);
    }

    #[test]
    fn the_better_hash_is_taken_and_the_threshold_kept() {
        let owner = [0, 0];
        let others = [[1 << 61, 1 << 63], [1 << 62, 1 << 62]];
        let least = |bits_max, may_use_second| least_local_fingerprint(owner, &others, bits_max, may_use_second);
        assert_eq!(least(9, false), LocalFingerprint { is_second_hash: false, bits: 3, value: 0 });
        assert_eq!(least(9, true), LocalFingerprint { is_second_hash: true, bits: 2, value: 0 });
        // With one bit the first hash tells none apart, the second one of the two.
        assert_eq!(least(1, false).bits, 0);
        assert_eq!(least(1, true), LocalFingerprint { is_second_hash: true, bits: 1, value: 0 });
        assert_eq!(least_local_fingerprint(owner, &[], 9, true), LocalFingerprint::default());
    }

    /// Fig. 4.9: the average is near log₂(m/n), the maximum well above.
    #[test]
    fn about_log2_bits_are_needed() {
        let mut rng = fastrand::Rng::with_seed(1);
        for others in [1, 7, 63] {
            let mut bits = [0, 0];
            for _ in 0..2000 {
                let owner = [rng.u64(..), rng.u64(..)];
                let others: Vec<[u64; 2]> = (0..others).map(|_| [rng.u64(..), rng.u64(..)]).collect();
                for (bits, may_use_second) in bits.iter_mut().zip([false, true]) {
                    *bits += least_local_fingerprint(owner, &others, 64, may_use_second).bits;
                }
            }
            let [one, two] = bits.map(|bits| f64::from(bits) / 2000.0);
            let log2 = f64::from(others + 1).log2();
            assert!(two < one && (log2..log2 + 2.0).contains(&one) && two > log2 - 0.5, "{others}: {one}, {two}");
        }
    }
}
