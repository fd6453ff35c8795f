//! Candidates for the tables' name hash; each hashes all prefixes in one pass.
//!
//! They are simplified for the comparison. Names have 16 bytes of slack, so no candidate treats the end of a name
//! specially, as the tables' hash must. Components have one byte of type and one of length. So a candidate may seem
//! cheaper than it would be in production, never dearer: the comparison favours the alternatives.

use namewire_tables::sip_hash::SipHash;
use namewire_tables::{HashKey, NameHashes};

use super::collisions::KnownKey;

/// Most components of a compared name.
pub(super) const MAX_COMPONENTS: usize = 16;
const SLACK: usize = 16;
const PRIME: u64 = (1 << 61) - 1;

/// A name with slack behind it.
pub(super) struct Padded {
    bytes: Vec<u8>,
}

impl Padded {
    pub(super) fn new(name_value: &[u8]) -> Self {
        Self { bytes: [name_value, &[0; SLACK]].concat() }
    }

    /// The Name TLV-VALUE.
    #[inline]
    pub(super) fn name_value(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - SLACK]
    }

    /// Calls `visit` with each component and with the 16 bytes from its beginning, which may include following bytes.
    #[inline(always)]
    fn for_each_component(&self, mut visit: impl FnMut(&[u8], u128)) {
        let (end, mut start) = (self.bytes.len() - SLACK, 0);
        while start < end {
            let rest = &self.bytes[start..];
            let bytes = usize::from(rest[1]) + 2;
            visit(&rest[..bytes], rest.first_chunk().map_or(0, |&first| u128::from_le_bytes(first)));
            start += bytes;
        }
    }
}

/// Hashes of prefixes 1, 2, …
pub(super) type Hashes = [u64; MAX_COMPONENTS];

/// A hash of all prefixes.
pub(super) trait Candidate {
    /// The name in records.
    const NAME: &'static str;
    /// With a key that is a function of `seed`.
    fn with_seed(seed: u64) -> Self;
    /// Writes the hash of every prefix but the root; returns their number.
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize;
}

/// The tables' own hash.
pub(super) struct Tables {
    key: HashKey,
    hashes: NameHashes,
}

impl Candidate for Tables {
    const NAME: &'static str = "NH, pair hash (tables)";

    fn with_seed(seed: u64) -> Self {
        Self { key: HashKey::from_seed(seed), hashes: NameHashes::default() }
    }

    #[inline]
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize {
        if self.hashes.compute(&self.key, name.name_value()).is_err() {
            return 0;
        }
        self.hashes.make_known(u64::MAX);
        // The experiment reads one hash only; `hashes` has them all.
        out[self.hashes.components() - 1] = self.hashes.full_hash();
        self.hashes.components()
    }
}

/// The tables' hash without the bijection at the end.
pub(super) struct NotSpread {
    start: u128,
    blocks: [(u64, u64); MAX_COMPONENTS],
    window: (u64, u64),
    last_step: [u128; 3],
}

impl Candidate for NotSpread {
    const NAME: &'static str = "NH, pair hash, not spread";

    fn with_seed(seed: u64) -> Self {
        let key = KnownKey::new(u128::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes());
        let blocks = std::array::from_fn(|n| key.block(n as u64));
        Self { start: key.start(), blocks, window: key.window(), last_step: key.last_step() }
    }

    #[inline]
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize {
        let product = |a: u64, b: u64, bytes: u128| {
            u128::from(a.wrapping_add(bytes as u64)) * u128::from(b.wrapping_add((bytes >> 64) as u64))
        };
        let (mut sum, mut n, mut end, mut done) = (self.start, 0, 0, 0);
        let ((alpha, beta), [k, l, m]) = (self.window, self.last_step);
        name.for_each_component(|component, _| {
            end += component.len();
            let (blocks, _) = name.bytes[..end].as_chunks::<16>();
            for (block, (a, b)) in blocks.iter().zip(self.blocks).skip(done) {
                sum = sum.wrapping_add(product(a, b, u128::from_le_bytes(*block)));
                done += 1;
            }
            let bytes = u128::from_le_bytes(name.bytes[..16].try_into().unwrap_or_default());
            let window = match name.bytes[..end].last_chunk::<16>() {
                Some(&window) => u128::from_le_bytes(window),
                None => bytes << (8 * (16 - end)),
            };
            let sum = sum.wrapping_add(product(alpha, beta, window));
            let (sum_low, sum_high) = ((sum as u64).wrapping_add(end as u64), (sum >> 64) as u64);
            let product = k.wrapping_add(sum_high.into()).wrapping_mul(l.wrapping_add(sum_low.into()));
            out[n] = (m.wrapping_add(product) >> 64) as u64;
            n += 1;
        });
        n
    }
}

/// SipHash of the bytes, finished after every component: the papers' choice.
pub(super) struct Sip<const C: usize, const D: usize> {
    key: [u64; 2],
}

impl<const C: usize, const D: usize> Candidate for Sip<C, D> {
    const NAME: &'static str = if C == 1 { "SipHash-1-3" } else { "SipHash-2-4" };

    fn with_seed(seed: u64) -> Self {
        Self { key: [mixed(seed), mixed(!seed)] }
    }

    #[inline]
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize {
        let (mut hash, mut n) = (SipHash::<C, D>::new(self.key), 0);
        name.for_each_component(|component, _| {
            hash.write(component);
            out[n] = hash.finish();
            n += 1;
        });
        n
    }
}

/// A polynomial over the prime field of 2⁶¹ − 1 in words of 7 bytes, then a linear function there.
pub(super) struct Polynomial {
    point: u64,
    factor: u64,
    offset: u64,
}

impl Candidate for Polynomial {
    const NAME: &'static str = "polynomial, 2^61 - 1";

    fn with_seed(seed: u64) -> Self {
        let [point, factor, offset] = [1, 2, 3].map(|n| mixed(seed ^ n << 32) & PRIME);
        Self { point, factor, offset }
    }

    #[inline]
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize {
        let (mut value, mut n) = (1, 0);
        name.for_each_component(|component, window| {
            let mut left = window & MASKS[component.len().min(16)];
            for _ in 0..component.len().min(16).div_ceil(7) {
                value = multiply_add(value, self.point, left as u64 & ((1 << 56) - 1));
                left >>= 56;
            }
            let number = multiply_add(value, self.factor, self.offset);
            out[n] = number << 3 | number >> 58;
            n += 1;
        });
        n
    }
}

/// Products of 64 by 64 bits folded to 64: fast, but without any proof.
pub(super) struct MultiplyFold {
    keys: [u64; 3],
}

impl Candidate for MultiplyFold {
    const NAME: &'static str = "multiply-fold";

    fn with_seed(seed: u64) -> Self {
        Self { keys: [1, 2, 3].map(|n| mixed(seed ^ n << 32)) }
    }

    #[inline]
    fn hash_prefixes(&mut self, name: &Padded, out: &mut Hashes) -> usize {
        let (mut state, mut n) = (self.keys[2], 0);
        name.for_each_component(|component, window| {
            let [x, y] = words(window, component.len());
            let product = u128::from(x ^ self.keys[0] ^ state) * u128::from(y ^ self.keys[1]);
            state = product as u64 ^ (product >> 64) as u64;
            out[n] = state;
            n += 1;
        });
        n
    }
}

/// The first `bytes` bytes of `window`, at most 16, padded with zeros.
#[inline(always)]
fn words(window: u128, bytes: usize) -> [u64; 2] {
    let kept = window & MASKS[bytes.min(16)];
    [kept as u64, (kept >> 64) as u64]
}

const MASKS: [u128; 17] = {
    let mut masks = [0; 17];
    let mut bytes = 1;
    while bytes <= 16 {
        masks[bytes] = u128::MAX >> (128 - 8 * bytes);
        bytes += 1;
    }
    masks
};

/// `a · b + c` modulo 2⁶¹ − 1; the result may exceed the modulus a little, which the next step tolerates.
#[inline(always)]
fn multiply_add(a: u64, b: u64, c: u64) -> u64 {
    let number = u128::from(a) * u128::from(b) + u128::from(c);
    let folded = (number as u64 & PRIME) + (number >> 61) as u64;
    (folded & PRIME) + (folded >> 61)
}

/// SplitMix64's function.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
