//! Hash key: chooses, from a family of functions, the one with which this router hashes names.
//!
//! Source: multilinear hashing in pairs, Lemire and Kaser, "Strongly universal string hashing is fast"
//! (2014). The lemma on products is from Thorup, "High speed hashing for integers and strings" (2015). Keys
//! have 128 bits, words 64, the hash 64.
//!
//! ```text
//!  16 bytes of a component, zero-padded:  x = 8 bytes │ y = 8 bytes  (little-endian)
//!  sum  = c + Σ (aᵢ + yᵢ) · (bᵢ + xᵢ)       mod 2¹²⁸, over the pairs so far
//!         + t · T                           only after KEYED_PAIRS pairs, see below
//!  hash = spread(sum >> 64)                 spread(h): h ^= h >> 32; h *= s, which is odd; h ^= h >> 32
//! ```
//!
//! All letters but x and y are secret. *The hashes of any two different names, chosen without seeing
//! hashes, are independent and uniform over 2⁶⁴, up to 2⁻⁶⁴.* So any bits of two hashes agree with the
//! probability of random bits. For example, two names share one of B buckets with probability `1/B`,
//! whether their tags agree or not.
//!
//! Proof, if both names have equally many pairs: their sums differ by `aᵢ · (xᵢ − xᵢ′) + …`, a nonzero
//! number below 2⁶⁴ times a uniform one. That product is uniform over the multiples of some 2ʲ, j < 64, so
//! it is uniform in its upper 64 bits. `c` makes the difference independent of the first hash. If one name
//! has more pairs, its last pair adds a product of two uniform numbers. That product is uniform over the
//! multiples of 2ʲ, with j > 64 in 2⁻⁶⁵ of all cases.
//!
//! `spread` is a bijection, so all of this holds with it too. It is needed because sums keep differences.
//! Without it, if two names had neighbouring places, so would all longer names that continue them in the
//! same way. For a few keys, numbered names would lie in rows (the lab's `hash-flood` has the numbers).
//!
//! Pairs after the first [`KEYED_PAIRS`] have no key of their own. They are cut in words of 7 bytes, the
//! coefficients of a polynomial over the prime field of 2⁶¹ − 1. Its value at a secret point is `T`, one
//! more word of the sum. If two names differ only after the keyed pairs, m words in all, they collide with
//! a probability higher by m / 2⁶¹. That is 2⁻⁴⁹ for a packet that consists of one name.
//!
//! SipHash-2-4 of a counter expands 128 secret bits into the key. The bounds hold as far as SipHash-2-4 is
//! a pseudorandom function. They hold only against a sender that cannot see hashes: each known hash helps
//! to solve for the key.
//!
//! Cost: 16 bytes of name take 3 multiplications that do not wait for each other, and half a line of key.
//! Each prefix takes 1 multiplication more.
//! Bytes: a key takes 1136. Writers: none.

use crate::sip_hash::SipHash;

/// Pairs of words with a key of their own: names of up to 512 bytes, or 32 short components.
pub(crate) const KEYED_PAIRS: usize = 32;
/// The prime 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;

/// A secret hash key, made of 128 bits. Its `Debug` output does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    pairs: [PairKey; KEYED_PAIRS],
    start: u128,
    tail_point: u64,
    spread: u64,
    tail_factor: u128,
    single: PairHash,
}

const _: () = assert!(size_of::<HashKey>() == 1136);

/// `a` and `b` of one pair of words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairKey {
    a: u128,
    b: u128,
}

/// The hash of exactly one pair of words, under a key that nothing else uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairHash {
    pair: PairKey,
    start: u128,
    spread: u64,
}

impl HashKey {
    /// The key made of 16 bytes, which should come from the system's random source.
    pub fn new(bytes: [u8; 16]) -> Self {
        let secret = u128::from_le_bytes(bytes);
        let mut counter = 0_u64;
        let mut word = || {
            let mut hash = SipHash::<2, 4>::new([secret as u64, (secret >> 64) as u64]);
            hash.write(&counter.to_le_bytes());
            counter += 1;
            hash.finish()
        };
        // Only code that computes hashes anew depends on this order: tests and the lab.
        let tail_point = word() & PRIME;
        let spread = word() | 1;
        let single_spread = word() | 1;
        let mut double = || u128::from(word()) | u128::from(word()) << 64;
        let (start, tail_factor) = (double(), double());
        let pairs = std::array::from_fn(|_| PairKey { a: double(), b: double() });
        let single = PairHash { pair: PairKey { a: double(), b: double() }, start: double(), spread: single_spread };
        Self { pairs, start, tail_point, spread, tail_factor, single }
    }

    /// A key that is a function of `seed` (splitmix64): for tests, the simulator and the lab.
    pub fn from_seed(seed: u64) -> Self {
        let split_mix = |step: u64| {
            let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let number = u128::from(split_mix(1)) | u128::from(split_mix(2)) << 64;
        Self::new(number.to_le_bytes())
    }

    /// The sum of no words.
    #[inline]
    pub(crate) fn start(&self) -> u128 {
        self.start
    }

    /// The keys of the first pairs of words of a name, in order.
    #[inline]
    pub(crate) fn pairs(&self) -> &[PairKey; KEYED_PAIRS] {
        &self.pairs
    }

    /// For the pairs after those.
    pub(crate) fn tail(&self) -> Tail<'_> {
        Tail { key: self, value: 1 }
    }

    /// The hash of a sum.
    #[inline]
    pub(crate) fn hash(&self, sum: u128) -> u64 {
        spread(sum, self.spread)
    }

    /// The function for callers that hash two words, not a name.
    pub(crate) fn pair_hash(&self) -> PairHash {
        self.single
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

impl PairKey {
    /// What a pair adds to the sum.
    #[inline]
    pub(crate) fn product(&self, [x, y]: [u64; 2]) -> u128 {
        self.a.wrapping_add(y.into()).wrapping_mul(self.b.wrapping_add(x.into()))
    }
}

impl PairHash {
    /// Any two different pairs have independent uniform hashes.
    #[inline]
    pub(crate) fn of(&self, x: u64, y: u64) -> u64 {
        spread(self.start.wrapping_add(self.pair.product([x, y])), self.spread)
    }
}

/// `T`, a hash of the words that have no key of their own.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'k> {
    key: &'k HashKey,
    /// Begins with 1, to tell sequences apart that begin with zeros.
    value: u64,
}

impl Tail<'_> {
    /// Adds 16 bytes.
    pub(crate) fn add(&mut self, [x, y]: [u64; 2]) {
        let bytes = u128::from(x) | u128::from(y) << 64;
        let low_56_bits = |number: u128| number as u64 & ((1 << 56) - 1);
        for word in [low_56_bits(bytes), low_56_bits(bytes >> 56), (bytes >> 112) as u64] {
            self.value = multiply_add(self.value, self.key.tail_point, word);
        }
    }

    /// What these words add to the sum.
    pub(crate) fn part_of_sum(&self) -> u128 {
        self.key.tail_factor.wrapping_mul(self.value.into())
    }
}

#[inline]
fn spread(sum: u128, odd: u64) -> u64 {
    let high = (sum >> 64) as u64;
    let product = (high ^ high >> 32).wrapping_mul(odd);
    product ^ product >> 32
}

/// `a · b + c` modulo 2⁶¹ − 1, for `a` and `b` of at most 61 bits and `c` of at most 60.
fn multiply_add(a: u64, b: u64, c: u64) -> u64 {
    let number = u128::from(a) * u128::from(b) + u128::from(c);
    let folded = (number as u64 & PRIME) + (number >> 61) as u64;
    let folded = (folded & PRIME) + (folded >> 61);
    if folded >= PRIME { folded - PRIME } else { folded }
}
