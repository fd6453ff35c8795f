//! CityHash64: a fast hash of bytes, without a key.
//!
//! Source: Pike and Alakuijala, CityHash version 1.1 (Google, 2011-2013), the 64-bit function;
//! the papers' fast hash (Yuan15 §3.3.2 and ch. 4). Symbols: `k0`..`k2` are `K0`..`K2`,
//! `kMul` is `PAIR_MULTIPLIER`, `ShiftMix`, `HashLen16` and `WeakHashLen32WithSeeds` are
//! `shift_mix`, `mix_pair` and `weak_mix`. No deviation: equal to the published function
//! on every input.
//!
//! Cost: no memory access beyond the input, no allocation; one pass, in one of five ways chosen by length.
//! So the hash of a name does not help with its prefixes: to hash all prefixes takes a pass for each.
//! Limits: none.
//!
//! Not a defence: an attacker who knows the function can make names that collide, whatever the seed. Tables
//! that use it compare names at every match.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
const PAIR_MULTIPLIER: u64 = 0x9ddf_ea08_eb38_2d69;
/// Bytes of a round of the loop over long inputs.
const BLOCK_BYTES: usize = 64;

/// `CityHash64` of the bytes.
#[inline]
pub fn city_hash_64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => hash_to_16(bytes),
        17..=32 => hash_17_to_32(bytes),
        33..=64 => hash_33_to_64(bytes),
        _ => hash_from_65(bytes),
    }
}

/// `CityHash64WithSeed`: another function for each seed. The seed is mixed in at the end, so inputs that
/// collide under one seed collide under all.
#[inline]
pub fn city_hash_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    mix_pair(city_hash_64(bytes).wrapping_sub(K2), seed, PAIR_MULTIPLIER)
}

#[inline(always)]
fn hash_to_16(s: &[u8]) -> u64 {
    let len = s.len();
    let multiplier = K2.wrapping_add(2 * len as u64);
    if len >= 8 {
        let a = word(s, 0).wrapping_add(K2);
        let b = word(s, len - 8);
        let c = b.rotate_right(37).wrapping_mul(multiplier).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(multiplier);
        return mix_pair(c, d, multiplier);
    }
    if len >= 4 {
        let (first, last) = (u64::from(half_word(s, 0)), u64::from(half_word(s, len - 4)));
        return mix_pair((len as u64).wrapping_add(first << 3), last, multiplier);
    }
    let [first, .., last] = s else {
        return s.first().map_or(K2, |&only| hash_to_3(only, only, only, 1));
    };
    hash_to_3(*first, s[len / 2], *last, len as u32)
}

#[inline(always)]
fn hash_to_3(first: u8, middle: u8, last: u8, len: u32) -> u64 {
    let y = u32::from(first) + (u32::from(middle) << 8);
    let z = len + (u32::from(last) << 2);
    shift_mix(u64::from(y).wrapping_mul(K2) ^ u64::from(z).wrapping_mul(K0)).wrapping_mul(K2)
}

#[inline(always)]
fn hash_17_to_32(s: &[u8]) -> u64 {
    let len = s.len();
    let multiplier = K2.wrapping_add(2 * len as u64);
    let a = word(s, 0).wrapping_mul(K1);
    let b = word(s, 8);
    let c = word(s, len - 8).wrapping_mul(multiplier);
    let d = word(s, len - 16).wrapping_mul(K2);
    let u = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let v = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    mix_pair(u, v, multiplier)
}

#[inline]
fn hash_33_to_64(s: &[u8]) -> u64 {
    let len = s.len();
    let multiplier = K2.wrapping_add(2 * len as u64);
    let a = word(s, 0).wrapping_mul(K2);
    let b = word(s, 8);
    let c = word(s, len - 24);
    let d = word(s, len - 32);
    let e = word(s, 16).wrapping_mul(K2);
    let f = word(s, 24).wrapping_mul(9);
    let g = word(s, len - 8);
    let h = word(s, len - 16).wrapping_mul(multiplier);
    let a_and_g = a.wrapping_add(g);
    let u = a_and_g.rotate_right(43).wrapping_add(b.rotate_right(30).wrapping_add(c).wrapping_mul(9));
    let v = (a_and_g ^ d).wrapping_add(f).wrapping_add(1);
    let w = u.wrapping_add(v).wrapping_mul(multiplier).swap_bytes().wrapping_add(h);
    let x = e.wrapping_add(f).rotate_right(42).wrapping_add(c);
    let y = v.wrapping_add(w).wrapping_mul(multiplier).swap_bytes().wrapping_add(g).wrapping_mul(multiplier);
    let z = e.wrapping_add(f).wrapping_add(c);
    let a = x.wrapping_add(z).wrapping_mul(multiplier).wrapping_add(y).swap_bytes().wrapping_add(b);
    let b = shift_mix(z.wrapping_add(a).wrapping_mul(multiplier).wrapping_add(d).wrapping_add(h));
    b.wrapping_mul(multiplier).wrapping_add(x)
}

fn hash_from_65(s: &[u8]) -> u64 {
    let len = s.len();
    let mut x = word(s, len - 40);
    let mut y = word(s, len - 16).wrapping_add(word(s, len - 56));
    let mut z = mix_pair(word(s, len - 48).wrapping_add(len as u64), word(s, len - 24), PAIR_MULTIPLIER);
    let mut v = weak_mix(s, len - 64, len as u64, z);
    let mut w = weak_mix(s, len - 32, y.wrapping_add(K1), x);
    x = x.wrapping_mul(K1).wrapping_add(word(s, 0));
    // All whole blocks that begin before the last byte; the end was mixed in above.
    for block in s[..(len - 1) / BLOCK_BYTES * BLOCK_BYTES].as_chunks::<BLOCK_BYTES>().0 {
        let sum = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(block, 8));
        x = sum.rotate_right(37).wrapping_mul(K1) ^ w.1;
        y = y.wrapping_add(v.1).wrapping_add(word(block, 48)).rotate_right(42).wrapping_mul(K1);
        y = y.wrapping_add(v.0).wrapping_add(word(block, 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak_mix(block, 0, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak_mix(block, 32, z.wrapping_add(w.1), y.wrapping_add(word(block, 16)));
        (x, z) = (z, x);
    }
    let first = mix_pair(v.0, w.0, PAIR_MULTIPLIER).wrapping_add(shift_mix(y).wrapping_mul(K1)).wrapping_add(z);
    mix_pair(first, mix_pair(v.1, w.1, PAIR_MULTIPLIER).wrapping_add(x), PAIR_MULTIPLIER)
}

/// A 16-byte hash of the 32 bytes at `at` and two seeds.
#[inline(always)]
fn weak_mix(s: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (first, last) = (word(s, at), word(s, at + 24));
    let a = a.wrapping_add(first);
    let b = b.wrapping_add(a).wrapping_add(last).rotate_right(21);
    let sum = a.wrapping_add(word(s, at + 8)).wrapping_add(word(s, at + 16));
    (sum.wrapping_add(last), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

#[inline(always)]
fn mix_pair(u: u64, v: u64, multiplier: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(multiplier));
    shift_mix((v ^ a).wrapping_mul(multiplier)).wrapping_mul(multiplier)
}

#[inline(always)]
fn shift_mix(word: u64) -> u64 {
    word ^ word >> 47
}

/// The 8 bytes at `at`, little-endian.
#[inline(always)]
fn word(s: &[u8], at: usize) -> u64 {
    s[at..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The 4 bytes at `at`, little-endian.
#[inline(always)]
fn half_word(s: &[u8], at: usize) -> u32 {
    s[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another implementation, of every length up to many blocks.
    #[test]
    fn equals_the_crate_cityhasher() {
        let mut random = fastrand::Rng::with_seed(11);
        for bytes in (0..700).chain([1000, 4096, 8800]) {
            for _ in 0..3 {
                let message: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
                let reference: u64 = cityhasher::hash(&message);
                assert_eq!(city_hash_64(&message), reference, "{bytes} bytes");
                let seed = random.u64(..);
                let seeded: u64 = cityhasher::hash_with_seed(&message, seed);
                assert_eq!(city_hash_64_with_seed(&message, seed), seeded, "{bytes} bytes, seed {seed}");
            }
        }
    }

    /// The first of the reference implementation's vectors for the empty input.
    #[test]
    fn nothing_hashes_to_the_published_constant() {
        assert_eq!(city_hash_64(b""), 0x9ae1_6a3b_2f90_404f);
    }
}
