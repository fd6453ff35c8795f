//! Prefix hashes: where do the prefixes of these names end, and what are their hashes?
//!
//! Source: Yuan15 §3.4.1: all hashes of a name are computed together, with CityHash prefix by prefix, with SipHash in
//! one pass (So et al. 2013). Deviations: lengths that no prefix of the table has are not hashed. Both functions take a
//! key, so that two tables hash differently.
//!
//! ```text
//!  first: | 0 | 7 | 11 | …        one per name and one more
//!  ends, hashes: | /a, /a/b … of name 0 | of name 1 | … |     the root is not among them
//! ```
//!
//! Cost: hashing a name writes 10 bytes per prefix, in order. Limit: [`DESIGN_BATCH_NAMES`] names.
//! Writers: the owner.

use crate::city_hash::city_hash_64_with_seed;
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::fib::MAX_PREFIX_BYTES;
use namewire_tables::name_hash::component_end;
use namewire_tables::sip_hash::SipHash;

namewire_packet::names! {
    /// The function that prefixes are hashed with.
    pub enum PrefixHash {
        /// CityHash64 with a seed: fast on short names, no defence against chosen names.
        City = "city",
        /// SipHash-2-4: every bit of the key counts, even if an attacker chooses the names.
        Sip = "sip",
    }
}

/// The function and its key.
#[derive(Clone, Copy)]
pub(super) struct Hasher {
    pub(super) function: PrefixHash,
    pub(super) key: [u64; 2],
}

impl Hasher {
    /// The hash of one prefix.
    pub(super) fn hash(&self, prefix: &[u8]) -> u64 {
        match self.function {
            PrefixHash::City => city_hash_64_with_seed(prefix, self.key[0]),
            PrefixHash::Sip => {
                let mut hash = SipHash::<2, 4>::new(self.key);
                hash.write(prefix);
                hash.finish()
            }
        }
    }

    /// The hashes of the prefixes of `name` that end there, shortest first.
    #[inline(always)]
    fn hash_all(&self, name: &[u8], ends: &[u16], mut visit: impl FnMut(u64)) {
        match self.function {
            PrefixHash::City => {
                for &end in ends {
                    visit(city_hash_64_with_seed(&name[..end.into()], self.key[0]));
                }
            }
            PrefixHash::Sip => {
                let (mut hash, mut start) = (SipHash::<2, 4>::new(self.key), 0);
                for end in ends.iter().copied().map(usize::from) {
                    hash.write(&name[start..end]);
                    start = end;
                    visit(hash.finish());
                }
            }
        }
    }
}

/// The prefixes of a batch of names; a buffer to reuse.
#[derive(Clone, Debug)]
pub struct PrefixHashes {
    names: usize,
    first: [u32; DESIGN_BATCH_NAMES + 1],
    ends: Vec<u16>,
    hashes: Vec<u64>,
}

/// The prefixes of one name, from one component on.
#[derive(Clone, Copy)]
pub(super) struct Prefixes<'h> {
    ends: &'h [u16],
    hashes: &'h [u64],
}

impl Default for PrefixHashes {
    fn default() -> Self {
        Self { names: 0, first: [0; DESIGN_BATCH_NAMES + 1], ends: Vec::new(), hashes: Vec::new() }
    }
}

impl PrefixHashes {
    pub(super) fn clear(&mut self) {
        self.names = 0;
        self.ends.clear();
        self.hashes.clear();
    }

    /// Adds a name's prefixes of up to `longest` components. `visit` is told how many there are
    /// going to be, how many components one has, and its hash, as soon as that is known.
    ///
    /// # Panics
    /// If there are [`DESIGN_BATCH_NAMES`] already.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        hasher: &Hasher,
        name: &[u8],
        longest: usize,
        mut visit: impl FnMut(usize, usize, u64),
    ) {
        let first = self.ends.len();
        let mut end = 0;
        while end < name.len() && self.ends.len() - first < longest {
            end = component_end(name, end);
            if end > MAX_PREFIX_BYTES {
                break; // no prefix is that long
            }
            self.ends.push(end as u16);
        }
        let (ends, hashes) = (&self.ends[first..], &mut self.hashes);
        hashes.reserve(ends.len());
        let mut components = 0;
        hasher.hash_all(name, ends, |hash| {
            components += 1;
            hashes.push(hash);
            visit(ends.len(), components, hash);
        });
        self.names += 1;
        self.first[self.names] = self.ends.len() as u32;
    }

    /// How many names there are.
    pub fn names(&self) -> usize {
        self.names
    }

    /// The prefixes of name number `name`.
    #[inline(always)]
    pub(super) fn of(&self, name: usize) -> Prefixes<'_> {
        assert!(name < self.names);
        let range = self.first[name] as usize..self.first[name + 1] as usize;
        Prefixes { ends: &self.ends[range.clone()], hashes: &self.hashes[range] }
    }
}

impl Prefixes<'_> {
    /// How many components the longest has.
    #[inline(always)]
    pub(super) fn components(&self) -> usize {
        self.ends.len()
    }

    /// The hash of the first `components` components, 1 at least.
    #[inline(always)]
    pub(super) fn hash(&self, components: usize) -> u64 {
        self.hashes[components - 1]
    }

    /// How many bytes the first `components` components have.
    #[inline(always)]
    pub(super) fn bytes(&self, components: usize) -> usize {
        match components {
            0 => 0,
            _ => self.ends[components - 1].into(),
        }
    }
}

/// The first `components` components of `name`, or all if there are fewer.
pub(super) fn first_components(name: &[u8], components: usize) -> &[u8] {
    &name[..prefix_bytes(name, components)]
}

/// How many bytes those have.
pub(super) fn prefix_bytes(name: &[u8], components: usize) -> usize {
    (0..components).fold(0, |end, _| if end < name.len() { component_end(name, end) } else { end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_prefixes_of_several_names() {
        let name = [8, 1, b'a', 8, 0, 253, 1, 0, 2, b'b', b'c', 8, 1, 0];
        for function in [PrefixHash::City, PrefixHash::Sip] {
            let hasher = Hasher { function, key: [3, 4] };
            let mut hashes = PrefixHashes::default();
            let mut seen = Vec::new();
            hashes.add(&hasher, &name, 256, |all, components, hash| seen.push((all, components, hash)));
            hashes.add(&hasher, &[], 256, |_, _, _| panic!("the root is not hashed"));
            hashes.add(&hasher, &name, 2, |_, _, _| ());
            let prefixes = hashes.of(0);
            assert_eq!(seen.len(), 4);
            for (components, end) in [(1, 3), (2, 5), (3, 11), (4, 14)] {
                let hash = hasher.hash(&name[..end]);
                assert_eq!((prefixes.bytes(components), prefixes.hash(components)), (end, hash));
                assert_eq!(seen[components - 1], (4, components, hash));
                assert_eq!(prefix_bytes(&name, components), end);
            }
            assert_eq!((hashes.of(1).components(), hashes.of(2).components()), (0, 2));
            assert_eq!(hashes.of(2).hash(2), prefixes.hash(2));
            assert_eq!((prefix_bytes(&name, 9), prefixes.bytes(0)), (14, 0));
        }
    }
}
