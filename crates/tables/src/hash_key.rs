//! Hash key: chooses, from a family of functions, the one with which this router hashes names.
//!
//! Source: the sum of products is NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway 1999, §4.2, with words of 64
//! bits). The last step is the pair hash of Thorup ("High speed hashing for integers and strings", 2015). The lemma
//! below is ours: it bounds the probability that two names enter the last step with the same words.
//!
//! ```text
//!  a name of e bytes:  block 0 │ block 1 │ … │ block q−1 │ rest       16 bytes each; x = 8 bytes │ y = 8 bytes
//!                                              └─ window ─┘           the last 16 bytes, zeros before a shorter name
//!  sum  = c + Σ (aᵢ + xᵢ) · (bᵢ + yᵢ)       mod 2¹²⁸ over the q blocks; each factor mod 2⁶⁴
//!         + t · T                           only after KEYED_BLOCKS blocks, see below
//!  S    = sum + (α + x) · (β + y)           of the window
//!  hash = spread(upper half of m + (k + high half of S) · (l + low half of S + e  mod 2⁶⁴)  mod 2¹²⁸)
//!                                           k, l, m of 128 bits
//!                                           spread(h): h ^= h >> 32; h *= s, which is odd; h ^= h >> 32
//! ```
//!
//! All letters but x, y, e and q are secret. The sums of all q give the hash of every prefix at the cost of one step:
//! a prefix needs no padding, because its window may overlap with its last block.
//!
//! *The hashes of any two different names, chosen without seeing hashes, are independent and uniform, but for a
//! probability of 2⁻⁶².* So two names share one of B buckets with a probability of at most 1/B + 2⁻⁶², B a power of
//! two, and a bucket and a tag of 16 bits with 1/(65,536 B) + 2⁻⁶², whichever bits of the hash these are. They share
//! all bits with less than 2⁻⁶¹.
//!
//! Proof. Let D be the difference of the two S, as pairs of words (low, high), with e in the low one. If D is not 0,
//! two different pairs of words go into the last step. Say that the high words differ by d (if not, exchange the
//! roles). Then the two products differ by d · (l + …) plus what does not depend on l, and d is not 0 and below 2⁶⁴, so
//! that 64 upper bits of this difference are uniform, whatever its lower bits are. m makes the sum of the first name
//! uniform and independent of the difference. So both upper halves are uniform and independent of each other, and as
//! `spread` is a bijection, so are the hashes. It remains to show that D is 0 with a probability of at most 2⁻⁶².
//!
//! *Lemma.* Two different names have a product that differs, or one has a product that the other lacks, or they differ
//! in T only (see below), or in e only. In the last case their number of blocks is the same, so D is e − e′, which is
//! not 0. If there is such a product, (a + x) · (b + y), let only its key word U = a + x vary, so that the other
//! factors of both names differ by some F with 0 < |F| < 2⁶⁴. (If y = y′, exchange the roles. If the other name lacks
//! the product, F = b + y, which is 0 with a probability of 2⁻⁶⁴.) Then D = K + U · F for all U with which a + x′ does
//! not wrap around, and D = K′ + U · F for the others. F is 2ⁱ times an odd number, with i below 64. That the low word
//! is 0 restricts U to one residue modulo 2⁶⁴⁻ⁱ, and among these U the i lowest bits of the high word are uniform.
//! That gives 2⁻⁶⁴ for each of the two cases, and twice that because the difference of the high words has a borrow or
//! not: 2⁻⁶². (If F may be 0, the two cases are one.)
//!
//! The names are compared as byte strings, so this holds for bytes that are no names too.
//!
//! `spread` is needed because the proof covers two names only, and products keep differences: numbered names would lie
//! in rows for a few keys (the lab's `hash-flood` has the numbers).
//!
//! Blocks after the first [`KEYED_BLOCKS`] have no separate key. They are cut in words of 7 bytes, the coefficients of
//! a polynomial over the prime field of 2⁶¹ − 1. Its value at a secret point is `T`. If two names differ only there, n
//! words in the longer one, their values are equal with a probability of at most (n + 1) / 2⁶¹: the difference of two
//! such polynomials has n roots at most, and two secret points are 0. That is 2⁻⁵⁰ for a packet that consists of one
//! name. If the values of T differ, t times their difference is uniform in the high word.
//!
//! SipHash-2-4 of a counter expands 128 secret bits into the key. The bounds hold as far as SipHash-2-4 is
//! a pseudorandom function. They hold only against a sender that cannot see hashes: each known hash helps
//! to solve for the key.
//!
//! [`PairHash`] hashes two words that are not a name. It uses the function of the last step with separate keys. Hashes
//! of two different pairs are exactly independent and uniform.
//!
//! N.B. The last step was linear, `k · low + l · high + m` modulo 2⁶⁴, with one multiplication less. Its upper bits are
//! as good, but the lowest bits of two names agreed with a probability of 3/4 if they differed in the top bit of a
//! word, and `spread` mixes low bits into the bits that tables use. A fresh reader of the proof found this.
//!
//! Cost: 16 bytes of name take 1 multiplication, and a quarter of a line of key. The hash of each prefix takes 5 more.
//! Bytes: a key takes 704. Writers: none.

use crate::sip_hash::SipHash;

/// Blocks with a key of their own: the first 512 bytes of a name.
pub(crate) const KEYED_BLOCKS: usize = 32;
/// The prime 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;

/// A secret hash key, made of 128 bits. Its `Debug` output does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    blocks: [BlockKey; KEYED_BLOCKS],
    start: u128,
    last_step: LastStep,
    tail_point: u64,
    tail_factor: u128,
    single: PairHash,
}

const _: () = assert!(size_of::<HashKey>() == 704);

/// `a` and `b` of one block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BlockKey {
    a: u64,
    b: u64,
}

/// From the sum of a prefix's blocks and its window to its hash: α and β; k, l, m and s.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastStep {
    window: BlockKey,
    pair: PairHash,
}

/// The hash of a pair of words.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PairHash {
    a: u128,
    b: u128,
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
        let window = BlockKey { a: word(), b: word() };
        let spreads = [word() | 1, word() | 1];
        let mut double = || u128::from(word()) | u128::from(word()) << 64;
        let (start, tail_factor) = (double(), double());
        let [pair, single] = spreads.map(|spread| PairHash { a: double(), b: double(), start: double(), spread });
        let last_step = LastStep { window, pair };
        let blocks = std::array::from_fn(|_| BlockKey { a: word(), b: word() });
        Self { blocks, start, last_step, tail_point, tail_factor, single }
    }

    /// A key that is a function of `seed`: for tests, the simulator and the lab.
    pub fn from_seed(seed: u64) -> Self {
        Self::new(Self::bytes_from_seed(seed))
    }

    /// The bytes of that key (splitmix64).
    pub fn bytes_from_seed(seed: u64) -> [u8; 16] {
        let split_mix = |step: u64| {
            let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let number = u128::from(split_mix(1)) | u128::from(split_mix(2)) << 64;
        number.to_le_bytes()
    }

    /// The sum of no blocks.
    #[inline(always)]
    pub(crate) fn start(&self) -> u128 {
        self.start
    }

    /// The keys of the first blocks of a name, in order.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> &[BlockKey; KEYED_BLOCKS] {
        &self.blocks
    }

    /// For the blocks after those.
    pub(crate) fn tail(&self) -> Tail<'_> {
        Tail { key: self, value: 1 }
    }

    /// From a sum to a hash.
    #[inline(always)]
    pub(crate) fn last_step(&self) -> &LastStep {
        &self.last_step
    }

    /// The function for callers that hash two words, not a name, under a key that nothing else uses.
    pub(crate) fn pair_hash(&self) -> PairHash {
        self.single
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

impl std::fmt::Debug for LastStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LastStep(secret)")
    }
}

impl BlockKey {
    /// What 16 bytes add to the sum.
    #[inline(always)]
    pub(crate) fn product(&self, bytes: [u8; 16]) -> u128 {
        let bytes = u128::from_le_bytes(bytes);
        let (x, y) = (bytes as u64, (bytes >> 64) as u64);
        u128::from(self.a.wrapping_add(x)) * u128::from(self.b.wrapping_add(y))
    }
}

impl LastStep {
    /// The hash of `bytes` bytes that have this sum of blocks and end in `window`.
    #[inline(always)]
    pub(crate) fn hash(&self, sum: u128, window: [u8; 16], bytes: usize) -> u64 {
        let sum = sum.wrapping_add(self.window.product(window));
        self.pair.of((sum as u64).wrapping_add(bytes as u64), (sum >> 64) as u64)
    }
}

impl PairHash {
    /// Any two different pairs have independent uniform hashes.
    #[inline(always)]
    pub(crate) fn of(&self, x: u64, y: u64) -> u64 {
        let product = self.a.wrapping_add(y.into()).wrapping_mul(self.b.wrapping_add(x.into()));
        spread((self.start.wrapping_add(product) >> 64) as u64, self.spread)
    }
}

/// `T`, a hash of the blocks that have no key of their own.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'k> {
    key: &'k HashKey,
    /// Begins with 1, to tell sequences apart that begin with zeros.
    value: u64,
}

impl Tail<'_> {
    /// Adds 16 bytes.
    pub(crate) fn add(&mut self, bytes: [u8; 16]) {
        let bytes = u128::from_le_bytes(bytes);
        let low_56_bits = |number: u128| number as u64 & ((1 << 56) - 1);
        for word in [low_56_bits(bytes), low_56_bits(bytes >> 56), (bytes >> 112) as u64] {
            self.value = multiply_add(self.value, self.key.tail_point, word);
        }
    }

    /// What these blocks add to the sum.
    pub(crate) fn part_of_sum(&self) -> u128 {
        self.key.tail_factor.wrapping_mul(self.value.into())
    }
}

#[inline(always)]
fn spread(hash: u64, odd: u64) -> u64 {
    let product = (hash ^ hash >> 32).wrapping_mul(odd);
    product ^ product >> 32
}

/// `a · b + c` modulo 2⁶¹ − 1, for `a` and `b` of at most 61 bits and `c` of at most 60.
fn multiply_add(a: u64, b: u64, c: u64) -> u64 {
    let number = u128::from(a) * u128::from(b) + u128::from(c);
    let folded = (number as u64 & PRIME) + (number >> 61) as u64;
    let folded = (folded & PRIME) + (folded >> 61);
    if folded >= PRIME { folded - PRIME } else { folded }
}
