//! Name hash: what is the keyed hash of every prefix of this name?
//!
//! Source: So et al. 2013 and Takemasa19 §4.4.4 (SipHash, against collisions),
//! Yuan15 chapter 3 (all prefixes of a name in one pass). The
//! key is secret and random per start, so whoever cannot see hashes cannot
//! build collisions; the tables compare names anyway, so a collision costs time
//! and never gives a wrong answer.
//!
//! The hash of a prefix is SipHash-1-3 of its octets (the component TLVs back to
//! back). One pass over the name finalises a copy of the state at every
//! component boundary.
//!
//! Cost: the name's own cache lines, then 12 octets written per component.
//! Memory: a [`NameHashes`] allocates on first use and then is reused; at most
//! `256 * 12` octets, rounded up by doubling.
//! Limit: [`MAX_NAME_COMPONENTS`]; longer names are refused.

use crate::sip_hash::SipHash13;

/// The most components a name may have in the tables. The shortest component
/// takes two octets, so a packet of 8800 octets could carry 4400; names that
/// people use have fewer than 32 (NFD's name tree stops there).
pub const MAX_NAME_COMPONENTS: usize = 256;

/// The name has more than [`MAX_NAME_COMPONENTS`] components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name has more than {MAX_NAME_COMPONENTS} components")]
pub struct TooManyComponents;

/// A secret 128-bit hash key. Its `Debug` output does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u64; 2]);

impl HashKey {
    /// The key made of 16 octets, which should come from the system's random source.
    pub fn new(octets: [u8; 16]) -> Self {
        let number = u128::from_le_bytes(octets);
        Self([number as u64, (number >> 64) as u64])
    }

    /// A key that is a function of `seed` (splitmix64): for tests, the simulator and the lab.
    pub fn from_seed(seed: u64) -> Self {
        let split_mix = |step: u64| {
            let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([split_mix(1), split_mix(2)])
    }

    #[inline]
    pub(crate) fn sip_hash(&self) -> SipHash13 {
        SipHash13::new(self.0)
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// The hash of one whole name: equal to [`NameHashes::full_hash`] of the same name and key.
#[inline]
pub fn hash_name(key: &HashKey, name_value: &[u8]) -> u64 {
    let mut hash = key.sip_hash();
    hash.write(name_value);
    hash.finish()
}

/// The hash and the length of every prefix of one name; a buffer to reuse.
///
/// Prefix `n` is the first `n` components; prefix 0 is the root. A fresh or
/// refused one describes the root.
#[derive(Clone, Debug, Default)]
pub struct NameHashes {
    root_hash: u64,
    /// Element `n - 1` is prefix `n`.
    hashes: Vec<u64>,
    ends: Vec<u32>,
}

impl NameHashes {
    /// Hashes every prefix of `name_value` in one pass.
    ///
    /// On refusal only the root is left in `self`. `name_value` must be a
    /// validated Name TLV-VALUE; octets that are not make a last component of
    /// what cannot be read, never a panic.
    pub fn compute(&mut self, key: &HashKey, name_value: &[u8]) -> Result<(), TooManyComponents> {
        let mut hash = key.sip_hash();
        self.root_hash = hash.finish();
        self.hashes.clear();
        self.ends.clear();
        let mut start = 0;
        while start < name_value.len() {
            if self.hashes.len() == MAX_NAME_COMPONENTS {
                self.hashes.clear();
                self.ends.clear();
                return Err(TooManyComponents);
            }
            let end = component_end(name_value, start);
            hash.write(&name_value[start..end]);
            self.hashes.push(hash.finish());
            self.ends.push(end as u32);
            start = end;
        }
        Ok(())
    }

    /// Hashes `names[i]` into `out[i]` and returns how many were refused; a refused one
    /// is left with the root only, which [`NameHashes::describes`] tells.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn compute_batch(key: &HashKey, names: &[&[u8]], out: &mut [NameHashes]) -> usize {
        assert!(out.len() >= names.len(), "one buffer per name");
        let mut refused = 0;
        for (name, hashes) in names.iter().zip(out) {
            refused += usize::from(hashes.compute(key, name).is_err());
        }
        refused
    }

    /// How many components the name has.
    #[inline]
    pub fn components(&self) -> usize {
        self.hashes.len()
    }

    /// The hash of the first `n` components.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_hash(&self, n: usize) -> u64 {
        if n == 0 { self.root_hash } else { self.hashes[n - 1] }
    }

    /// How many octets the first `n` components take.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_octets(&self, n: usize) -> usize {
        if n == 0 { 0 } else { self.ends[n - 1] as usize }
    }

    /// The hash of the whole name.
    #[inline]
    pub fn full_hash(&self) -> u64 {
        self.prefix_hash(self.components())
    }

    /// Whether these prefixes cover all of `name_value`: false after a refusal.
    #[inline]
    pub fn describes(&self, name_value: &[u8]) -> bool {
        self.prefix_octets(self.components()) == name_value.len()
    }
}

/// How many components `name_value` has; stops counting above [`MAX_NAME_COMPONENTS`].
pub(crate) fn count_components(name_value: &[u8]) -> Result<usize, TooManyComponents> {
    let (mut count, mut start) = (0, 0);
    while start < name_value.len() {
        if count == MAX_NAME_COMPONENTS {
            return Err(TooManyComponents);
        }
        start = component_end(name_value, start);
        count += 1;
    }
    Ok(count)
}

/// Where the component that begins at `start` ends; the end of the name if its
/// header cannot be read or promises more than there is.
#[inline]
fn component_end(name_value: &[u8], start: usize) -> usize {
    // Nearly every component has a one-octet type and a one-octet length.
    if let [0..=252, length @ 0..=252, ..] = name_value[start..] {
        return (start + 2 + length as usize).min(name_value.len());
    }
    long_component_end(name_value, start).unwrap_or(name_value.len())
}

#[cold]
fn long_component_end(name_value: &[u8], start: usize) -> Option<usize> {
    let (_, after_type) = var_number(name_value, start)?;
    let (length, value_start) = var_number(name_value, after_type)?;
    let end = value_start.checked_add(usize::try_from(length).ok()?)?;
    (end <= name_value.len()).then_some(end)
}

/// The TLV number at `start` and the offset after it (NDN packet format 0.3, §1.1).
fn var_number(octets: &[u8], start: usize) -> Option<(u64, usize)> {
    let first = *octets.get(start)?;
    let size = match first {
        0..=252 => return Some((u64::from(first), start + 1)),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let end = start + 1 + size;
    let number = octets.get(start + 1..end)?;
    Some((number.iter().fold(0, |n, &octet| (n << 8) | u64::from(octet)), end))
}
