//! Prefixes: what is NFD's hash of every prefix of these names?
//!
//! Source: NFD's name tree: exclusive or of the hashes of the component TLVs, so that one pass over a name gives the
//! hash of every prefix. The root's is 0.
//!
//! Cost: it computes one CityHash64 per component, and writes 10 bytes per prefix into buffers that are reused.
//! Limits: [`MAX_NAME_COMPONENTS`], [`MAX_PREFIX_BYTES`]; of longer names it hashes only the prefixes within them.

use super::{MAX_NAME_COMPONENTS, MAX_PREFIX_BYTES, city_hash_64};
use namewire_tables::name_hash::component_end;

/// Hash and length of the prefixes of a batch of names.
#[derive(Default)]
pub(super) struct Prefixes {
    hashes: Vec<u64>,
    ends: Vec<u16>,
    /// Where the prefixes of each name begin.
    firsts: Vec<u32>,
}

impl Prefixes {
    /// Forgets all names; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.ends.clear();
        self.firsts.clear();
    }

    /// Appends the prefixes of a name of at most `depth` components; false if it has longer ones.
    pub(super) fn compute(&mut self, name: &[u8], depth: usize) -> bool {
        self.firsts.push(self.hashes.len() as u32);
        let (mut hash, mut at) = (0, 0);
        self.hashes.push(hash);
        self.ends.push(0);
        for _ in 0..depth {
            let end = component_end(name, at);
            if at == name.len() || end > MAX_PREFIX_BYTES {
                break;
            }
            hash ^= city_hash_64(&name[at..end]);
            at = end;
            self.hashes.push(hash);
            self.ends.push(end as u16);
        }
        at == name.len()
    }

    /// The prefixes of one name and of no other; false if it is beyond the limits.
    pub(super) fn compute_one(&mut self, name: &[u8]) -> bool {
        self.clear();
        self.compute(name, MAX_NAME_COMPONENTS)
    }

    /// Hash and bytes of every prefix of the `place`th name, the root first.
    #[inline]
    pub(super) fn of(&self, place: usize) -> (&[u64], &[u16]) {
        let first = self.firsts[place] as usize;
        let end = self.firsts.get(place + 1).map_or(self.hashes.len(), |&end| end as usize);
        (&self.hashes[first..end], &self.ends[first..end])
    }

    pub(super) fn bytes(&self) -> usize {
        self.hashes.capacity() * 8 + self.ends.capacity() * 2 + self.firsts.capacity() * 4
    }
}
