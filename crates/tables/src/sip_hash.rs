//! SipHash-c-d, incremental: what is the keyed hash of the bytes so far?
//!
//! Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012),
//! §2: `v` is v0..v3, `C` the compression rounds per 8-byte word, `D` the
//! finalisation rounds. SipHash-2-4 expands the key of the name hash ([`crate::hash_key`]). The papers hash
//! names with it (So et al. 2013; Takemasa19 §4.4.4); the lab measures our name hash against it and against
//! SipHash-1-3.
//!
//! Deviation: [`SipHash::finish`] works on a copy of the state, so that one pass
//! over a name can give the hash of every prefix.
//!
//! Cost: 48 bytes of state, no memory access beyond the input.

/// Incremental SipHash with `C` compression and `D` finalisation rounds.
#[derive(Clone, Copy)]
pub struct SipHash<const C: usize, const D: usize> {
    v: [u64; 4],
    /// Bytes not yet compressed, little-endian in the low `8 * tail_bytes` bits.
    tail: u64,
    tail_bytes: u32,
    length_bytes: u64,
}

/// The fastest variant in use.
pub type SipHash13 = SipHash<1, 3>;

impl<const C: usize, const D: usize> SipHash<C, D> {
    /// A hash of no bytes yet, under the 128-bit key `[k0, k1]`.
    #[inline]
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            v: [
                key[0] ^ 0x736f_6d65_7073_6575,
                key[1] ^ 0x646f_7261_6e64_6f6d,
                key[0] ^ 0x6c79_6765_6e65_7261,
                key[1] ^ 0x7465_6462_7974_6573,
            ],
            tail: 0,
            tail_bytes: 0,
            length_bytes: 0,
        }
    }

    /// Appends `bytes`. How the input is cut into calls does not matter.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        self.length_bytes = self.length_bytes.wrapping_add(bytes.len() as u64);
        let mut rest = bytes;
        if self.tail_bytes > 0 {
            let wanted = (8 - self.tail_bytes) as usize;
            let taken = wanted.min(rest.len());
            self.tail |= load_short(&rest[..taken]) << (8 * self.tail_bytes);
            if taken < wanted {
                self.tail_bytes += taken as u32;
                return;
            }
            self.compress(self.tail);
            rest = &rest[taken..];
        }
        let (words, short) = rest.as_chunks::<8>();
        for word in words {
            self.compress(u64::from_le_bytes(*word));
        }
        self.tail = load_short(short);
        self.tail_bytes = short.len() as u32;
    }

    /// The hash of everything written so far; writing may go on afterwards.
    #[inline]
    pub fn finish(&self) -> u64 {
        let mut end = *self;
        end.compress((self.length_bytes << 56) | self.tail);
        end.v[2] ^= 0xff;
        for _ in 0..D {
            end.round();
        }
        end.v[0] ^ end.v[1] ^ end.v[2] ^ end.v[3]
    }

    #[inline]
    fn compress(&mut self, word: u64) {
        self.v[3] ^= word;
        for _ in 0..C {
            self.round();
        }
        self.v[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [v0, v1, v2, v3] = &mut self.v;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }
}

/// The little-endian number made of at most 7 bytes.
#[inline]
fn load_short(bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() < 8);
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    const KEY: [u64; 2] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];

    fn input(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| i as u8).collect()
    }

    /// The paper's appendix A, and the first of the reference implementation's
    /// vectors: key 00..0f, input 00 01 02 …
    #[test]
    fn published_siphash_2_4_vectors() {
        let published = [
            (0, 0x726f_db47_dd0e_0e31_u64),
            (1, 0x74f8_39c5_93dc_67fd),
            (2, 0x0d6c_8009_d9a9_4f5a),
            (3, 0x8567_6696_d7fb_7e2d),
            (4, 0xcf27_94e0_2771_87b7),
            (5, 0x1876_5564_cd99_a68d),
            (6, 0xcbc9_466e_58fe_e3ce),
            (7, 0xab02_00f5_8b01_d137),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ];
        for (bytes, expected) in published {
            let mut hash = SipHash::<2, 4>::new(KEY);
            hash.write(&input(bytes));
            assert_eq!(hash.finish(), expected, "{bytes} bytes");
        }
    }

    #[test]
    #[allow(deprecated)] // the standard library's SipHash-2-4, the only other one at hand
    fn siphash_2_4_equals_the_standard_library() {
        for bytes in 0..300 {
            let mut ours = SipHash::<2, 4>::new(KEY);
            ours.write(&input(bytes));
            let mut reference = std::hash::SipHasher::new_with_keys(KEY[0], KEY[1]);
            reference.write(&input(bytes));
            assert_eq!(ours.finish(), reference.finish(), "{bytes} bytes");
        }
    }

    /// `DefaultHasher::new()` is SipHash-1-3 under the zero key.
    #[test]
    fn siphash_1_3_equals_the_standard_library_however_it_is_cut() {
        let mut random = fastrand::Rng::with_seed(7);
        for bytes in 0..300 {
            let message: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
            let mut reference = std::hash::DefaultHasher::new();
            reference.write(&message);
            let mut ours = SipHash13::new([0, 0]);
            let mut rest = &message[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(random.usize(1..=rest.len().min(20)));
                ours.write(piece);
                ours.finish(); // must not disturb the state
                rest = after;
            }
            assert_eq!(ours.finish(), reference.finish(), "{bytes} bytes");
        }
    }
}
