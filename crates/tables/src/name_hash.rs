//! Name hash: what is the keyed hash of every prefix of this name?
//!
//! Source: Yuan15 chapter 3 (all prefixes of a name in one pass); So et al. 2013 and Takemasa19 §4.4.4 (a
//! keyed hash, against collisions). Deviation: not SipHash but a strongly universal family.
//! [`crate::hash_key`] has the function and the proof, `docs/decisions/0003-name-hash.md` the measurements.
//! The tables compare names anyway: a collision costs time and never gives a wrong answer.
//!
//! A component is cut in pairs of 8-byte words, the last pair zero-padded, and the pairs are added to one
//! sum. The hash of a prefix is a function of the sum after its last component. A component contains its
//! own length, so different prefixes are different sequences of pairs.
//!
//! ```text
//! NameHashes │ components u32 │ after u32 × 17 │ hashes u64 × 17 │ spilled Vec │
//!            0                4                72               208          232
//! ```
//!
//! Cost: hashing reads the name's own lines, and writes 12 bytes per component, in two places. Components
//! after the 16th are stored in `spilled`, the only allocation: it grows by doubling to at most
//! [`MAX_NAME_COMPONENTS`] and is reused.
//! Limit: [`MAX_NAME_COMPONENTS`]; longer names are refused. Writers: the owner.

pub use crate::hash_key::HashKey;
use crate::hash_key::{KEYED_PAIRS, PairKey};

/// The most components a name may have in the tables. The shortest component takes two bytes, so a packet
/// of 8800 bytes could carry 4400. Names in practice have fewer than 32 (NFD's name tree stops there).
pub const MAX_NAME_COMPONENTS: usize = 256;

/// Components whose prefixes need no allocation.
pub(crate) const INLINE_COMPONENTS: usize = 16;

/// The name has more than [`MAX_NAME_COMPONENTS`] components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name has more than {MAX_NAME_COMPONENTS} components")]
pub struct TooManyComponents;

/// The hash of one whole name: equal to [`NameHashes::full_hash`] of the same name and key.
#[inline]
pub fn hash_name(key: &HashKey, name_value: &[u8]) -> u64 {
    let mut whole = key.start();
    for_each_prefix(key, name_value, |_, sum, _| {
        whole = sum;
        true
    });
    key.hash(whole)
}

/// The hash and the length of every prefix of one name; a buffer to reuse.
///
/// Prefix `n` is the first `n` components; prefix 0 is the root. A new buffer describes the root, and so
/// does one whose name was refused.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct NameHashes {
    components: u32,
    /// Element `n`: how many bytes come after prefix `n`, which the loop knows without computing.
    after: [u32; INLINE_COMPONENTS + 1],
    /// Element `n`: the hash of prefix `n`.
    hashes: [u64; INLINE_COMPONENTS + 1],
    /// Element `n`: the hash of prefix `n + 1 + INLINE_COMPONENTS` and how many bytes come after it.
    spilled: Vec<(u64, u32)>,
}

const _: () = assert!(size_of::<NameHashes>() == 232);

impl NameHashes {
    /// A buffer that never allocates: it has room for the longest name already, 4 KiB. (A default one makes
    /// that room when it first needs some.)
    pub fn with_full_room() -> Self {
        Self { spilled: Vec::with_capacity(MAX_NAME_COMPONENTS - INLINE_COMPONENTS), ..Self::default() }
    }

    /// Hashes every prefix of `name_value` in one pass.
    ///
    /// `name_value` must be a checked Name TLV-VALUE. Other bytes never cause a panic: the unreadable rest
    /// counts as one last component.
    ///
    /// # Errors
    /// If the name has more than [`MAX_NAME_COMPONENTS`] components; then `self` holds only the root.
    #[inline]
    pub fn compute(&mut self, key: &HashKey, name_value: &[u8]) -> Result<(), TooManyComponents> {
        self.hashes[0] = key.hash(key.start());
        self.after[0] = name_value.len() as u32;
        self.components = 0;
        let components = for_each_prefix(key, name_value, |n, sum, after| {
            if n > INLINE_COMPONENTS {
                return self.spill(n, key.hash(sum), after);
            }
            self.hashes[n] = key.hash(sum);
            self.after[n] = after as u32;
            true
        });
        self.components = components.ok_or(TooManyComponents)? as u32;
        Ok(())
    }

    /// Notes prefix `n`, for which there is no room inline; false if there is no room at all.
    #[cold]
    fn spill(&mut self, n: usize, hash: u64, after: usize) -> bool {
        if n == INLINE_COMPONENTS + 1 {
            self.spilled.clear();
        }
        let room = n <= MAX_NAME_COMPONENTS;
        if room {
            self.spilled.push((hash, after as u32));
        }
        room
    }

    /// Hashes `names[i]` into `out[i]` and returns how many were refused. A refused one describes the root
    /// only; see [`NameHashes::describes`].
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
        self.components as usize
    }

    /// The hash of the first `n` components.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_hash(&self, n: usize) -> u64 {
        assert!(n <= self.components(), "prefix {n} of {} components", self.components);
        match self.hashes.get(n) {
            Some(&hash) => hash,
            None => self.spilled[n - 1 - INLINE_COMPONENTS].0,
        }
    }

    /// Element `n`: the hash of prefix `n`, for the prefixes that are kept inline.
    #[inline(always)]
    pub(crate) fn first_hashes(&self) -> &[u64; INLINE_COMPONENTS + 1] {
        &self.hashes
    }

    /// How many bytes the first `n` components take.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_bytes(&self, n: usize) -> usize {
        assert!(n <= self.components(), "prefix {n} of {} components", self.components);
        let after = match self.after.get(n) {
            Some(&after) => after,
            None => self.spilled[n - 1 - INLINE_COMPONENTS].1,
        };
        (self.after[0] - after) as usize
    }

    /// The hash of the whole name.
    #[inline]
    pub fn full_hash(&self) -> u64 {
        self.prefix_hash(self.components())
    }

    /// Whether these prefixes cover all of `name_value`: false after a refusal.
    #[inline]
    pub fn describes(&self, name_value: &[u8]) -> bool {
        self.prefix_bytes(self.components()) == name_value.len()
    }
}

/// Calls `visit` with every prefix but the root, shortest first: its number of components, its sum, and how
/// many bytes come after it. Returns the number of prefixes, unless `visit` returned false.
///
/// N.B. Both loops keep their state in registers: every rare case is a call that returns one number, or
/// never comes back. When rare calls took and returned the state in a struct, hashing cost half as much
/// again. The first loop does nothing that most components do not need. A pass over the headers and a
/// second one for the sums was slower too: the cost is instructions, not their order.
#[inline(always)]
fn for_each_prefix(key: &HashKey, name: &[u8], mut visit: impl FnMut(usize, u128, usize) -> bool) -> Option<usize> {
    let (mut sum, mut n, mut rest) = (key.start(), 0, name);
    // Most names begin with components of one byte of type, one of length and 14 of value at most.
    for pair in &key.pairs()[..INLINE_COMPONENTS] {
        let Some(&window) = rest.first_chunk::<16>() else { break };
        let window = u128::from_le_bytes(window);
        let Some(bytes) = short_component(window) else { break };
        sum = sum.wrapping_add(pair.product(masked(window, bytes)));
        rest = &rest[bytes..];
        n += 1;
        if !visit(n, sum, rest.len()) {
            return None;
        }
    }
    let mut pairs = n;
    while !rest.is_empty() {
        let window = match rest.first_chunk::<16>() {
            Some(&window) => u128::from_le_bytes(window),
            None => read_last(name, rest),
        };
        let mut bytes = short_component(window).unwrap_or(usize::MAX);
        if bytes <= rest.len() && pairs < KEYED_PAIRS {
            sum = sum.wrapping_add(key.pairs()[pairs].product(masked(window, bytes)));
            pairs += 1;
        } else {
            bytes = component_end(rest, 0);
            let Some(keys) = key.pairs().get(pairs..pairs + bytes.div_ceil(16)) else {
                return for_each_prefix_with_tail(key, Progress { sum, pairs, n, rest }, visit);
            };
            sum = sum.wrapping_add(long_product(keys, &rest[..bytes]));
            pairs += keys.len();
        }
        rest = &rest[bytes..];
        n += 1;
        if !visit(n, sum, rest.len()) {
            return None;
        }
    }
    Some(n)
}

/// The bytes of the next component in `window`, if they are at most 16 and its header takes 2.
#[inline(always)]
fn short_component(window: u128) -> Option<usize> {
    let (ty, length) = (window as u8, (window as u16 >> 8) as usize);
    (ty <= 252 && length <= 14).then_some(length + 2)
}

/// How far [`for_each_prefix`] came: the sum, the pair keys and components used, and the rest of the name.
struct Progress<'n> {
    sum: u128,
    pairs: usize,
    n: usize,
    rest: &'n [u8],
}

/// The rest of [`for_each_prefix`] once the keys of pairs are used up.
#[cold]
#[inline(never)]
fn for_each_prefix_with_tail(
    key: &HashKey,
    progress: Progress<'_>,
    mut visit: impl FnMut(usize, u128, usize) -> bool,
) -> Option<usize> {
    let Progress { mut sum, mut pairs, mut n, mut rest } = progress;
    let (mut tail, mut with_tail) = (key.tail(), sum);
    while !rest.is_empty() {
        let (component, after) = rest.split_at(component_end(rest, 0));
        for bytes in component.chunks(16) {
            let words = words(bytes.first_chunk().map_or_else(|| read_short(bytes), |&all| u128::from_le_bytes(all)));
            if let Some(pair) = key.pairs().get(pairs) {
                sum = sum.wrapping_add(pair.product(words));
                pairs += 1;
                with_tail = sum;
            } else {
                tail.add(words);
                with_tail = sum.wrapping_add(tail.part_of_sum());
            }
        }
        rest = after;
        n += 1;
        if !visit(n, with_tail, rest.len()) {
            return None;
        }
    }
    Some(n)
}

/// The sum of the products of a component of any length, one key for each 16 bytes.
#[inline(never)]
fn long_product(keys: &[PairKey], component: &[u8]) -> u128 {
    let (windows, last) = component.as_chunks::<16>();
    let products = windows.iter().zip(keys).map(|(&window, key)| key.product(words(u128::from_le_bytes(window))));
    let sum = products.fold(0, u128::wrapping_add);
    match keys.get(windows.len()) {
        Some(key) => sum.wrapping_add(key.product(words(read_last(component, last)))),
        None => sum,
    }
}

/// `rest`, the last bytes of `name` and fewer than 16, as a little-endian number.
#[inline(always)]
fn read_last(name: &[u8], rest: &[u8]) -> u128 {
    match name.last_chunk::<16>() {
        // With the bytes before them, so that no branch depends on their number.
        Some(&last) => u128::from_le_bytes(last) >> (128 - 8 * rest.len()),
        None => read_short(rest),
    }
}

/// Fewer than 16 bytes as a little-endian number: two reads that overlap.
#[inline]
fn read_short(bytes: &[u8]) -> u128 {
    let n = bytes.len();
    if let (Some(&low), Some(&high)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        u128::from(u64::from_le_bytes(low)) | u128::from(u64::from_le_bytes(high)) << (8 * (n - 8))
    } else if let (Some(&low), Some(&high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        u128::from(u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << (8 * (n - 4)))
    } else {
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)).into()
    }
}

/// The two words of 16 bytes.
#[inline(always)]
fn words(bytes: u128) -> [u64; 2] {
    [bytes as u64, (bytes >> 64) as u64]
}

/// The two words of the first bytes of `window`, at most 16, zeros after them.
#[inline(always)]
fn masked(window: u128, bytes: usize) -> [u64; 2] {
    let [x, y] = words(window);
    [x & MASKS[bytes + 8], y & MASKS[bytes]]
}

/// Element `n + 8` keeps the first `n` of 8 bytes; earlier elements keep none, later ones all.
const MASKS: [u64; 25] = {
    let mut masks = [0; 25];
    let mut n = 1;
    while n <= 16 {
        masks[n + 8] = if n < 8 { (1 << (8 * n)) - 1 } else { u64::MAX };
        n += 1;
    }
    masks
};

/// The components of a name one by one, each as its TLV.
pub fn components_of(name_value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = name_value;
    std::iter::from_fn(move || {
        let (component, after) = rest.split_at(if rest.is_empty() { return None } else { component_end(rest, 0) });
        rest = after;
        Some(component)
    })
}

/// Where the component that begins at `start` ends; the end of the name if its
/// header cannot be read or promises more than there is.
#[inline]
pub fn component_end(name_value: &[u8], start: usize) -> usize {
    // Nearly every component has a one-byte type and a one-byte length.
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

/// The TLV number at `start` and the offset after it (NDN packet specification 0.3, §1.1).
pub fn var_number(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(start)?;
    let size = match first {
        0..=252 => return Some((u64::from(first), start + 1)),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let end = start + 1 + size;
    let number = bytes.get(start + 1..end)?;
    Some((number.iter().fold(0, |n, &byte| (n << 8) | u64::from(byte)), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_names_allocate_and_only_once() {
        let (key, mut hashes) = (HashKey::from_seed(1), NameHashes::default());
        let name = |components: usize| [8, 1, b'a'].repeat(components);
        hashes.compute(&key, &name(INLINE_COMPONENTS)).unwrap();
        assert_eq!(hashes.spilled.capacity(), 0);
        hashes.compute(&key, &name(MAX_NAME_COMPONENTS)).unwrap();
        let (room, at) = (hashes.spilled.capacity(), hashes.spilled.as_ptr());
        for components in [0, INLINE_COMPONENTS + 1, MAX_NAME_COMPONENTS] {
            hashes.compute(&key, &name(components)).unwrap();
            assert_eq!((hashes.spilled.capacity(), hashes.spilled.as_ptr()), (room, at));
        }
    }
}
