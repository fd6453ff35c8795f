//! Name hash: what is the keyed hash of every prefix of this name?
//!
//! Source: Yuan15 chapter 3 (all prefixes of a name in one pass); So et al. 2013 and Takemasa19 §4.4.4 (a
//! keyed hash, against collisions). Deviation: not SipHash but a universal family.
//! [`crate::hash_key`] has the function and the proof, `docs/decisions/0003-name-hash.md` the measurements.
//! The tables compare names anyway: a collision costs time and never gives a wrong answer.
//!
//! One pass over the name as blocks of 16 bytes gives the sum up to each block, and the hash of the whole name. The
//! hash of a prefix is computed only on request, from the sum of its blocks and its last 16 bytes. Few are requested:
//! the FIB needs those of the lengths that it has, if the name is new; PIT and Content Store need only that of the
//! whole name.
//!
//! ```text
//! NameHashes │ full │ known │ components │ after u32 × 32 │ hashes u64 × 32 │ spilled Vec │ last step │ sums │ text │
//!            0      8       16           20              152               408           432         512    768   1040
//! ```
//!
//! Cost: hashing reads the name's own lines and writes a copy of it, because a prefix's last 16 bytes must be at hand
//! when its hash is wanted. `sums` takes as much again. Names with more than 16 components or 255 bytes have all
//! hashes computed at once. Components after the 16th are stored in `spilled`, the only allocation: it grows by
//! doubling to at most [`MAX_NAME_COMPONENTS`] and is reused.
//! Limit: [`MAX_NAME_COMPONENTS`]; longer names are refused. Writers: the owner.

pub use crate::hash_key::HashKey;
use crate::hash_key::{KEYED_BLOCKS, LastStep, Tail};

/// The most components a name may have in the tables. The shortest component takes two bytes, so a packet
/// of 8800 bytes could carry 4400. Names in practice have fewer than 32 (NFD's name tree stops there).
pub const MAX_NAME_COMPONENTS: usize = 256;

/// Components whose prefixes need no allocation.
pub(crate) const INLINE_COMPONENTS: usize = 16;
/// Bytes of a block and of a window.
const BLOCK_BYTES: usize = 16;
/// Bytes of a name whose prefixes are hashed when wanted: one byte can count them.
const INLINE_BYTES: usize = u8::MAX as usize;
const INLINE_BLOCKS: usize = INLINE_BYTES / BLOCK_BYTES;
/// A power of two above [`INLINE_COMPONENTS`]: a component's number, cut to this, needs no other check.
const NOTED: usize = 32;

/// The longest parent that has a number: with what a table keeps beside it, two lines of memory.
pub(crate) const PARENT_BYTES_MAX: usize = 104;

/// The name has more than [`MAX_NAME_COMPONENTS`] components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name has more than {MAX_NAME_COMPONENTS} components")]
pub struct TooManyComponents;

/// The hash of one whole name: equal to [`NameHashes::full_hash`] of the same name and key.
#[inline]
pub fn hash_name(key: &HashKey, name_value: &[u8]) -> u64 {
    GrowingPrefix::new(key, name_value).hash(name_value.len())
}

/// Longer and longer prefixes of one name.
struct GrowingPrefix<'a> {
    key: &'a HashKey,
    name_value: &'a [u8],
    /// Blocks in `sum`, the keyed ones, and in `tail`, the others.
    keyed: usize,
    sum: u128,
    unkeyed: usize,
    tail: Tail<'a>,
}

impl<'a> GrowingPrefix<'a> {
    #[inline]
    fn new(key: &'a HashKey, name_value: &'a [u8]) -> Self {
        Self { key, name_value, keyed: 0, sum: key.start(), unkeyed: 0, tail: key.tail() }
    }

    /// The hash of the first `bytes` bytes, which are not fewer than in the call before.
    #[inline]
    fn hash(&mut self, bytes: usize) -> u64 {
        let prefix = &self.name_value[..bytes];
        let (blocks, _) = prefix.as_chunks::<BLOCK_BYTES>();
        for (block, key) in blocks.iter().zip(self.key.blocks()).skip(self.keyed) {
            self.sum = self.sum.wrapping_add(key.product(*block));
            self.keyed += 1;
        }
        let sum = match blocks.get(KEYED_BLOCKS..) {
            Some(unkeyed @ [_, ..]) => self.sum.wrapping_add(self.add_unkeyed(unkeyed)),
            _ => self.sum,
        };
        let window = prefix.last_chunk().copied().unwrap_or_else(|| short_window(prefix));
        self.key.last_step().hash(sum, window, bytes)
    }

    /// What the blocks that have no key of their own add to the sum.
    #[cold]
    fn add_unkeyed(&mut self, blocks: &[[u8; BLOCK_BYTES]]) -> u128 {
        blocks[self.unkeyed..].iter().for_each(|block| self.tail.add(*block));
        self.unkeyed = blocks.len();
        self.tail.part_of_sum()
    }
}

/// The window of a name that is shorter than one.
fn short_window(name_value: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut window = [0; BLOCK_BYTES];
    window[BLOCK_BYTES - name_value.len()..].copy_from_slice(name_value);
    window
}

/// The hash and the length of every prefix of one name; a buffer to reuse.
///
/// Prefix `n` is the first `n` components; prefix 0 is the root. A new buffer describes the root, and so
/// does one whose name was refused.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct NameHashes {
    /// The hash of the whole name.
    full: u64,
    /// Bit `n`: `hashes` has the hash of prefix `n`. Never set for a prefix that the name does not have.
    known: u64,
    components: u16,
    /// Whether there are sums and text of the name: unless all prefixes were hashed at once, or its hash was taken from
    /// elsewhere.
    has_sums: bool,
    /// Element `n`: how many bytes come after prefix `n`, for the prefixes that are kept inline.
    after: [u32; NOTED],
    /// Element `n`: the hash of prefix `n`, if it is known.
    hashes: [u64; NOTED],
    /// Element `n`: the hash of prefix `n + 1 + INLINE_COMPONENTS` and how many bytes come after it.
    spilled: Vec<(u64, u32)>,
    /// With `sums` and `text`: what the other prefixes are hashed from.
    last_step: LastStep,
    /// Element `n`: the sum of the first `n` blocks.
    sums: [u128; INLINE_BLOCKS + 1],
    /// As many zeros as a window has, then the name: so the window of `n` bytes begins at `n`.
    text: [u8; BLOCK_BYTES + INLINE_BYTES + 1],
}

const _: () = assert!(size_of::<NameHashes>() == 1040);

impl Default for NameHashes {
    fn default() -> Self {
        Self {
            full: 0,
            known: 1,
            components: 0,
            has_sums: false,
            after: [0; NOTED],
            hashes: [0; NOTED],
            spilled: Vec::new(),
            last_step: LastStep::default(),
            sums: [0; INLINE_BLOCKS + 1],
            text: [0; BLOCK_BYTES + INLINE_BYTES + 1],
        }
    }
}

impl NameHashes {
    /// A buffer that never allocates: it has room for the longest name already, 4 KiB. (A default one makes
    /// that room when it first needs some.)
    pub fn with_full_room() -> Self {
        Self { spilled: Vec::with_capacity(MAX_NAME_COMPONENTS - INLINE_COMPONENTS), ..Self::default() }
    }

    /// Hashes `name_value` in one pass; its prefixes when they are wanted.
    ///
    /// `name_value` must be a checked Name TLV-VALUE. Other bytes never cause a panic: the unreadable rest
    /// counts as one last component.
    ///
    /// # Errors
    /// If the name has more than [`MAX_NAME_COMPONENTS`] components; then `self` holds only the root.
    #[inline]
    pub fn compute(&mut self, key: &HashKey, name_value: &[u8]) -> Result<(), TooManyComponents> {
        let (mut components, mut end) = (0, 0);
        while end < name_value.len() {
            end = component_end(name_value, end);
            components += 1;
            self.note(components, name_value.len() - end);
        }
        self.compute_noted(key, name_value, components)
    }

    /// Notes how many bytes of a name come after its first `components` components, 1 or more. For
    /// [`NameHashes::compute_noted`]; until then, this buffer describes nothing.
    #[inline(always)]
    pub fn note(&mut self, components: usize, after: usize) {
        self.after[components % NOTED] = after as u32;
    }

    /// [`NameHashes::compute`] for a name whose components, of this number, have been noted in order.
    ///
    /// # Errors
    /// As [`NameHashes::compute`].
    #[inline(always)]
    pub fn compute_noted(
        &mut self,
        key: &HashKey,
        name_value: &[u8],
        components: usize,
    ) -> Result<(), TooManyComponents> {
        let bytes = name_value.len();
        if components > INLINE_COMPONENTS || bytes > INLINE_BYTES {
            return self.compute_long(key, name_value);
        }
        (self.components, self.has_sums) = (components as u16, true);
        self.after[0] = bytes as u32;
        self.last_step = *key.last_step();
        let mut sum = key.start();
        self.sums[0] = sum;
        let (blocks, _) = name_value.as_chunks::<BLOCK_BYTES>();
        let copies = self.text[BLOCK_BYTES..].as_chunks_mut().0;
        for (((block, key), sum_after), copy) in blocks.iter().zip(key.blocks()).zip(&mut self.sums[1..]).zip(copies) {
            sum = sum.wrapping_add(key.product(*block));
            *sum_after = sum;
            *copy = *block;
        }
        match name_value.last_chunk::<BLOCK_BYTES>() {
            Some(window) => self.text[bytes..][..BLOCK_BYTES].copy_from_slice(window),
            None => self.text[BLOCK_BYTES..][..bytes].copy_from_slice(name_value),
        }
        self.full = self.last_step.hash(sum, self.window(bytes), bytes);
        self.hashes[components] = self.full;
        self.known = 1 << components;
        Ok(())
    }

    /// Hashes every prefix at once.
    #[cold]
    #[inline(never)]
    fn compute_long(&mut self, key: &HashKey, name_value: &[u8]) -> Result<(), TooManyComponents> {
        let mut growing = GrowingPrefix::new(key, name_value);
        let root = growing.hash(0);
        (self.full, self.components, self.known, self.after[0], self.hashes[0]) = (root, 0, 1, 0, root);
        self.spilled.clear();
        self.has_sums = false;
        let (mut components, mut end) = (0, 0);
        while end < name_value.len() {
            if components == MAX_NAME_COMPONENTS {
                self.known = 1;
                return Err(TooManyComponents);
            }
            end = component_end(name_value, end);
            components += 1;
            let (hash, after) = (growing.hash(end), (name_value.len() - end) as u32);
            if components > INLINE_COMPONENTS {
                self.spilled.push((hash, after));
            } else {
                (self.hashes[components], self.after[components]) = (hash, after);
                self.known |= 1 << components;
            }
        }
        (self.full, self.components, self.after[0]) = (growing.hash(end), components as u16, name_value.len() as u32);
        Ok(())
    }

    /// Describes a name of this many components by its hash alone: until the next name is computed, nobody may ask for
    /// its prefixes.
    #[inline(always)]
    pub fn take_whole(&mut self, hash: u64, components: usize) {
        (self.full, self.components, self.has_sums, self.known) = (hash, components as u16, false, 0);
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

    /// Hashes the prefixes whose bit is set in `lengths` and that this name has, of those that are kept inline. The
    /// others are hashed each time that somebody asks.
    #[inline(always)]
    pub fn make_known(&mut self, lengths: u64) {
        debug_assert!(self.has_sums || self.known != 0, "the prefixes of a name that was not computed");
        let longest = self.components.min(INLINE_COMPONENTS as u16);
        let mut missing = lengths & !self.known & u64::MAX >> (63 - longest);
        self.known |= missing;
        while missing != 0 {
            let n = missing.trailing_zeros() as usize;
            self.hashes[n % NOTED] = self.hash_of(n);
            missing &= missing - 1;
        }
    }

    /// A number for the name without its last component: equal for equal bytes, and nearly always another for others.
    /// Costs a third of a hash, but has no proof against collisions, so it is good only where bytes are compared.
    /// `None` for names of fewer than 3 components, for those whose prefixes are hashed at once, and for parents of
    /// more than [`PARENT_BYTES_MAX`] bytes.
    #[inline(always)]
    pub(crate) fn parent_number(&self) -> Option<u64> {
        if self.components < 3 || !self.has_sums {
            return None;
        }
        let bytes = self.parent_bytes();
        if bytes > PARENT_BYTES_MAX {
            return None;
        }
        // Both factors are secret: who does not know the key cannot choose parents of one number.
        let window = u128::from_le_bytes(self.window(bytes));
        // N.B. The upper half of the sum alone was equal for many parents that differ in one of their first bytes.
        let (sum, start) = (self.sums[bytes / BLOCK_BYTES], self.sums[0]);
        let product = u128::from((sum ^ sum >> 64 ^ window) as u64) * u128::from((start ^ window >> 64) as u64);
        Some(product as u64 ^ (product >> 64) as u64)
    }

    /// The bytes that [`NameHashes::parent_number`] is for.
    #[inline(always)]
    pub(crate) fn parent(&self) -> &[u8] {
        self.text.get(BLOCK_BYTES..BLOCK_BYTES + self.parent_bytes()).unwrap_or_default()
    }

    /// At most 255.
    #[inline(always)]
    fn parent_bytes(&self) -> usize {
        usize::from(self.after[0].wrapping_sub(self.after[(usize::from(self.components) - 1) % NOTED]) as u8)
    }

    /// Whether the prefixes whose bit is set in `lengths` are hashed already.
    #[inline(always)]
    pub(crate) fn knows(&self, lengths: u64) -> bool {
        lengths & !self.known == 0
    }

    /// Element `n`: the hash of prefix `n`, if it is known; else any number.
    #[inline(always)]
    pub(crate) fn first_hashes(&self) -> &[u64; NOTED] {
        &self.hashes
    }

    /// The hash of the first `n` components. Cost: a read if it is known, see [`NameHashes::make_known`]; else a step
    /// of the hash.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_hash(&self, n: usize) -> u64 {
        if n < NOTED && self.known >> n & 1 != 0 { self.hashes[n] } else { self.unknown_prefix_hash(n) }
    }

    #[inline(never)]
    fn unknown_prefix_hash(&self, n: usize) -> u64 {
        assert!(n <= self.components(), "prefix {n} of {} components", self.components);
        assert!(self.has_sums || n > INLINE_COMPONENTS, "a prefix of a name that was not computed");
        match n.checked_sub(INLINE_COMPONENTS + 1) {
            None => self.hash_of(n),
            Some(spilled) => self.spilled[spilled].0,
        }
    }

    /// The hash of prefix `n`, which is kept inline but not known.
    #[inline(always)]
    fn hash_of(&self, n: usize) -> u64 {
        let bytes = usize::from(self.after[0].wrapping_sub(self.after[n % NOTED]) as u8);
        self.last_step.hash(self.sums[bytes / BLOCK_BYTES], self.window(bytes), bytes)
    }

    /// The last 16 of the first `bytes` bytes.
    #[inline(always)]
    fn window(&self, bytes: usize) -> [u8; BLOCK_BYTES] {
        self.text[bytes..].first_chunk().copied().unwrap_or_default()
    }

    /// How many bytes the first `n` components take.
    ///
    /// # Panics
    /// If `n > self.components()`.
    #[inline]
    pub fn prefix_bytes(&self, n: usize) -> usize {
        assert!(n <= self.components(), "prefix {n} of {} components", self.components);
        let after = match n {
            0..=INLINE_COMPONENTS => self.after[n],
            _ => self.spilled[n - 1 - INLINE_COMPONENTS].1,
        };
        (self.after[0] - after) as usize
    }

    /// The hash of the whole name.
    #[inline(always)]
    pub fn full_hash(&self) -> u64 {
        self.full
    }

    /// Whether these prefixes cover all of `name_value`: false after a refusal.
    #[inline]
    pub fn describes(&self, name_value: &[u8]) -> bool {
        self.prefix_bytes(self.components()) == name_value.len()
    }
}

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
        assert!(hashes.compute(&key, &name(MAX_NAME_COMPONENTS + 1)).is_err());
        assert_eq!((hashes.components(), hashes.known), (0, 1), "the root only");
    }

    #[test]
    fn parents_that_differ_in_any_byte_have_numbers_that_differ_in_their_ends() {
        let (key, mut hashes) = (HashKey::from_seed(1), NameHashes::default());
        let mut number = |parent: &[u8]| {
            hashes.compute(&key, &[parent, &[8, 1, b'z']].concat()).unwrap();
            (hashes.parent() == parent).then(|| hashes.parent_number()).flatten().expect("it has a number")
        };
        for components in [2, 5, 11, 20, 34] {
            let parent = [8, 1, b'a'].repeat(components.min(14));
            let parent = [&parent[..], &[8, 40], &[b'b'; 40]][..1 + 2 * usize::from(components > 14)].concat();
            for place in (0..parent.len()).filter(|&place| parent[place] >= b'a') {
                let ends = (0..=255).map(|byte| {
                    let mut other = parent.clone();
                    other[place] = byte;
                    let number = number(&other);
                    (number as u8, (number >> 48) as u16)
                });
                let different: std::collections::HashSet<_> = ends.collect();
                assert!(different.len() > 250, "{} of 256 at {place} of {parent:?}", different.len());
            }
        }
    }
}
