//! Key bits: what does a Patricia trie examine?
//!
//! Source: Yuan15 §4.3.3. For the speculative trie (sBPT) the key is the name. For the fingerprint trie (FPT), a
//! fingerprint of f bits, by CityHash64, is put before the name. So the differences that carry information come first
//! and evenly distributed, and names of the same fingerprint still differ by their own bits.
//!
//! ```text
//! byte 0                       F = ⌈f / 8⌉
//! | f bits of fingerprint, 0s  | first component (type, length, value) | next components …
//!                                                          most significant bit first
//! ```
//!
//! The fingerprint fills whole bytes, with zeros at the end. The positions of these zeros never differ, so no node
//! examines them. Keys must be prefix-free. Keys made of components are prefix-free if none of them is a name prefix of
//! another: a component's TLV says where it ends. A rule's leaf examines only positions where the rule differs from
//! another rule, hence within both. A name below the rule has the same bits at these positions and comes to the same
//! leaf. Positions behind the end of a name read 0; only names without a rule ever get there.
//!
//! Deviation: the paper's rules have one component. Ours may have more, and a look-up does not know how many the rule
//! has. So the fingerprint is computed from the first component, which is in every rule. But many rules may share their
//! first component (`/com`), and then its fingerprint does not distinguish them. So each of the first few components
//! can have its own fingerprint ([`Fingerprints::components`]), right before it. For names of one component, the keys
//! are always the paper's.

use crate::city_hash::city_hash_64;
use namewire_tables::name_hash::components_of;

/// Bits of the longest fingerprint.
pub const MAX_FINGERPRINT_BITS: u32 = 32;
/// Components of a name that have a fingerprint at most.
pub const MAX_FINGERPRINTS: usize = 4;

/// Which fingerprints stand in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    /// f: how many bits; 0 (sBPT) to [`MAX_FINGERPRINT_BITS`].
    pub bits: u32,
    /// How many of the first components have one: 1 to [`MAX_FINGERPRINTS`].
    pub components: usize,
}

/// The bytes whose bits a trie examines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyBits<'n> {
    name: &'n [u8],
    fingerprints: [[u8; 4]; MAX_FINGERPRINTS],
    /// Where each fingerprint begins in the key.
    starts: [u16; MAX_FINGERPRINTS],
    fingerprint_count: u8,
    fingerprint_bytes: u8,
}

impl Fingerprints {
    /// None: the speculative trie.
    pub const NONE: Self = Self { bits: 0, components: 1 };

    /// Bytes that they add to a key at most.
    pub const fn bytes_max(self) -> usize {
        self.bits.div_ceil(8) as usize * self.components
    }

    /// The key of a name (bytes of its TLV-VALUE).
    ///
    /// # Panics
    /// In debug builds, if the fields are out of their ranges.
    #[inline]
    pub fn key(self, name: &[u8]) -> KeyBits<'_> {
        debug_assert!(self.bits <= MAX_FINGERPRINT_BITS && (1..=MAX_FINGERPRINTS).contains(&self.components));
        let fingerprint_bytes = self.bits.div_ceil(8) as u8;
        let mut key = KeyBits { name, fingerprint_bytes, ..KeyBits::default() };
        if self.bits == 0 {
            return key;
        }
        let cleared = MAX_FINGERPRINT_BITS - self.bits;
        let mut start = 0;
        for component in components_of(name).take(self.components.min(MAX_FINGERPRINTS)) {
            let place = usize::from(key.fingerprint_count);
            let hash = (city_hash_64(component) >> 32) as u32;
            key.fingerprints[place] = (hash >> cleared << cleared).to_be_bytes();
            key.starts[place] = (start + place * usize::from(fingerprint_bytes)) as u16;
            key.fingerprint_count += 1;
            start += component.len();
        }
        key
    }
}

impl KeyBits<'_> {
    /// The bit at the position: 0 or 1; 0 behind the end.
    #[inline(always)]
    pub fn bit(&self, position: usize) -> usize {
        let byte = self.byte(position / 8).unwrap_or(0);
        usize::from(byte >> (7 - position % 8) & 1)
    }

    /// How many bits there are.
    pub fn bits(&self) -> usize {
        8 * (self.name.len() + usize::from(self.fingerprint_count) * usize::from(self.fingerprint_bytes))
    }

    /// The first position at which the two differ, if one does before either ends.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let mut place = 0;
        loop {
            let differing = self.byte(place)? ^ other.byte(place)?;
            if differing != 0 {
                return Some(place * 8 + differing.leading_zeros() as usize);
            }
            place += 1;
        }
    }

    #[inline(always)]
    fn byte(&self, place: usize) -> Option<u8> {
        let mut before = usize::from(self.fingerprint_count);
        let fingerprint_bytes = usize::from(self.fingerprint_bytes);
        while let Some(last) = before.checked_sub(1) {
            if let Some(within) = place.checked_sub(self.starts[last].into()) {
                if within < fingerprint_bytes {
                    return Some(self.fingerprints[last][within]);
                }
                break;
            }
            before = last;
        }
        self.name.get(place - before * fingerprint_bytes).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Yuan15 §4.3.1: bit position 7 tells the two apart.
    #[test]
    fn facebook_and_google_differ_in_one_bit() {
        let (facebook, google) = (Fingerprints::NONE.key(b"facebook"), Fingerprints::NONE.key(b"google"));
        assert_eq!(facebook.first_difference(&google), Some(7));
        assert_eq!([facebook.bit(7), google.bit(7)], [0, 1]);
        assert_eq!(google.first_difference(&google), None);
        assert_eq!(google.bit(8 * 6 + 3), 0, "behind the end");
    }

    /// The key as one string of bytes.
    fn written_out(fingerprints: Fingerprints, components: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (place, component) in components.iter().enumerate() {
            if place < fingerprints.components {
                let mask = !u32::MAX.checked_shr(fingerprints.bits).unwrap_or(0);
                let fingerprint = (city_hash_64(component) >> 32) as u32 & mask;
                bytes.extend(&fingerprint.to_be_bytes()[..fingerprints.bits.div_ceil(8) as usize]);
            }
            bytes.extend(*component);
        }
        bytes
    }

    #[test]
    fn fingerprints_stand_before_the_first_components() {
        let components: [&[u8]; 4] = [b"\x08\x03com", b"\x08\x00", b"\x08\x06google", b"\x08\x01w"];
        for bits in 0..=MAX_FINGERPRINT_BITS {
            for fingerprinted in 1..=MAX_FINGERPRINTS {
                let fingerprints = Fingerprints { bits, components: fingerprinted };
                for count in 0..=components.len() {
                    let name = components[..count].concat();
                    let key = fingerprints.key(&name);
                    let expected = written_out(fingerprints, &components[..count]);
                    assert_eq!(key.bits(), 8 * expected.len());
                    for position in 0..8 * (expected.len() + 2) {
                        let byte = expected.get(position / 8).copied().unwrap_or(0);
                        assert_eq!(key.bit(position), usize::from(byte >> (7 - position % 8) & 1));
                    }
                    let longest = components.concat();
                    assert_eq!(key.first_difference(&fingerprints.key(&longest)), None);
                }
            }
        }
    }

    #[test]
    fn names_of_one_fingerprint_differ_by_their_own_bits() {
        let fingerprints = Fingerprints { bits: 1, components: 1 };
        let names: Vec<Vec<u8>> = (0..20_u8).map(|n| vec![8, 1, n]).collect();
        let first_bit = |name: &[u8]| (city_hash_64(name) >> 63) as usize;
        for (a, b) in names.iter().zip(&names[1..]) {
            let differing = fingerprints.key(a).first_difference(&fingerprints.key(b));
            let own = 8 + 16 + (a[2] ^ b[2]).leading_zeros() as usize;
            assert_eq!(differing, Some(if first_bit(a) == first_bit(b) { own } else { 0 }));
        }
    }
}
