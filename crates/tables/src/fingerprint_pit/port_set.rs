//! Port set: a set of ports below 256, as a value of four words.

use bytemuck::Zeroable;

/// Ports are numbered below this: 16 segments with a vector of 16 bits each.
pub const MAX_PORTS: u16 = 256;

const WORDS: usize = MAX_PORTS as usize / 64;

/// A set of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Zeroable)]
pub struct PortSet([u64; WORDS]);

impl PortSet {
    /// No port.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Adds a port below [`MAX_PORTS`].
    #[inline(always)]
    pub fn insert(&mut self, port: u16) {
        self.0[usize::from(port) / 64] |= 1 << (port % 64);
    }

    /// Removes all ports of another.
    #[inline]
    pub fn remove(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= !other;
        }
    }

    /// Whether the two sets share a port.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(word, other)| word & other != 0)
    }

    /// Adds all ports of another.
    #[inline(always)]
    pub fn extend(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// Whether the port is in the set.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.0.get(usize::from(port) / 64).is_some_and(|word| word >> (port % 64) & 1 != 0)
    }

    /// Whether the set has no port.
    #[inline]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// How many ports the set has.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The ports, in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let mut words = self.0;
        let mut place = 0;
        std::iter::from_fn(move || {
            while words[place] == 0 {
                place += 1;
                if place == WORDS {
                    place = WORDS - 1; // empty for good
                    return None;
                }
            }
            let bit = words[place].trailing_zeros();
            words[place] &= words[place] - 1;
            Some((place * 64) as u16 + bit as u16)
        })
    }

    /// Adds ports of the first 16, one bit each.
    #[inline(always)]
    pub(super) fn insert_first_sixteen(&mut self, bits: u16) {
        self.0[0] |= u64::from(bits);
    }

    /// The key by which an index of sets finds it.
    #[inline]
    pub(super) fn digest(&self) -> u64 {
        let fold = |digest: u64, word: &u64| (digest.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0.iter().fold(0, fold)
    }
}

impl FromIterator<u16> for PortSet {
    fn from_iter<I: IntoIterator<Item = u16>>(ports: I) -> Self {
        let mut set = Self::EMPTY;
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set() {
        let mut set = PortSet::EMPTY;
        assert!(set.is_empty() && set.iter().next().is_none());
        for port in [255, 0, 63, 64, 128, 0] {
            set.insert(port);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 128, 255]);
        assert_eq!(set.len(), 5);
        assert!(set.contains(128) && !set.contains(129) && !set.contains(MAX_PORTS) && !set.contains(u16::MAX));
        let gone = [255, 7].into_iter().collect::<PortSet>();
        assert!(set.intersects(&gone));
        set.remove(&gone);
        assert!(!set.intersects(&gone));
        let mut ports = set.iter();
        assert_eq!(ports.by_ref().last(), Some(128));
        assert_eq!((ports.next(), ports.next()), (None, None));
        let mut other = PortSet::EMPTY;
        other.insert_first_sixteen(0x8002);
        other.extend(&set);
        assert_eq!(other.iter().collect::<Vec<_>>(), [0, 1, 15, 63, 64, 128]);
        assert_ne!(other.digest(), set.digest());
    }
}
