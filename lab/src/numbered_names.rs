//! Numbered names: a billion different names that need no memory.
//!
//! Source: Yuan15 §4.3.4 (one billion random names of one component, about 30 bytes on average). A name is a function
//! of (seed, number) and never stored. The first eight characters carry the number, permuted, so that all names are
//! different; the others are random.
//!
//! ```text
//! 8 │ 28 │ 8 characters of 5 bits: the number, permuted │ 20 characters of 5 bits
//! 0   1    2                                              10           30 bytes
//! ```

use crate::split_mix::split_mix;

/// Bytes of a name's TLV-VALUE.
pub const NUMBERED_NAME_BYTES: usize = 30;
/// Numbers are below this.
pub const NUMBERS: u64 = 1 << 40;

/// How many names fill `slots` slots at the load of Yuan15 Tables 4.4 and 4.5, 93 %: a billion for 2³⁰.
pub const fn names_at_paper_load(slots: u64) -> u64 {
    (slots * 1_000_000_000) >> 30
}

/// A population of names.
#[derive(Clone, Copy, Debug)]
pub struct NumberedNames {
    seed: u64,
}

impl NumberedNames {
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Writes the name with this number.
    #[inline]
    pub fn write(&self, number: u64, out: &mut [u8; NUMBERED_NAME_BYTES]) {
        (out[0], out[1]) = (8, NUMBERED_NAME_BYTES as u8 - 2); // GenericNameComponent
        out[2..10].copy_from_slice(&characters(spread(permuted(number ^ (self.seed & 0xffff)))));
        let random = split_mix(self.seed ^ number);
        out[10..18].copy_from_slice(&characters(random));
        out[18..26].copy_from_slice(&characters(split_mix(random)));
        out[26..].copy_from_slice(&characters(random.rotate_left(29))[..4]);
    }

    /// The next hop of the name: an 8-bit port, but never the last.
    #[inline]
    pub const fn port(&self, number: u64) -> u32 {
        (split_mix(number.wrapping_add(self.seed)) >> 32) as u32 % 255
    }

    /// A pseudo-random number below `end` for every place of a sequence.
    #[inline]
    pub const fn at_random(&self, place: u64, end: u64) -> u64 {
        ((split_mix(self.seed.rotate_left(32) ^ place) as u128 * end as u128) >> 64) as u64
    }
}

/// Makes every byte a character by setting its upper 3 bits.
#[inline]
fn characters(bits: u64) -> [u8; 8] {
    (bits & 0x1f1f_1f1f_1f1f_1f1f | 0x6060_6060_6060_6060).to_le_bytes()
}

/// A permutation of the numbers below 2⁴⁰.
#[inline]
const fn permuted(number: u64) -> u64 {
    let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (NUMBERS - 1);
    (product ^ product >> 21).wrapping_mul(0xd6e8_feb8_6659_fd93) & (NUMBERS - 1)
}

/// Spreads 40 bits over 8 bytes, five bits each.
#[inline]
const fn spread(number: u64) -> u64 {
    let halves = number & 0xf_ffff | (number >> 20) << 32;
    let quarters = halves & 0x0000_03ff_0000_03ff | (halves & 0x000f_fc00_000f_fc00) << 6;
    quarters & 0x001f_001f_001f_001f | (quarters & 0x03e0_03e0_03e0_03e0) << 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_different_and_ports_are_ports() {
        let names = NumberedNames::new(7);
        let mut seen = HashSet::new();
        let mut ports = HashSet::new();
        for number in (0..50_000).chain(NUMBERS - 50_000..NUMBERS) {
            let mut name = [0; NUMBERED_NAME_BYTES];
            names.write(number, &mut name);
            assert_eq!(name[..2], [8, 28]);
            assert!(seen.insert(name[2..10].to_vec()), "the number alone distinguishes names");
            ports.insert(names.port(number));
        }
        assert_eq!((ports.len(), ports.iter().max()), (255, Some(&254)));
        assert_eq!(spread(NUMBERS - 1), 0x1f1f_1f1f_1f1f_1f1f);
        assert!((0..40).all(|bit| spread(1 << bit).count_ones() == 1));
        let upper_half = (0..10_000).filter(|&place| names.at_random(place, 1000) >= 500).count();
        assert!((4_500..5_500).contains(&upper_half));
    }
}
