//! Bit permutation (TagNet16 §3.2.1): the bits in the order of their frequency in the set.
//!
//! Question: at which position of the trie is bit 57? [`BitOrder`] states the purpose of each order.
//!
//! A [`Key`] is a permuted descriptor with position 0 in the most significant bit of the first word. So descending
//! keys are the trie's order: siblings by position, and the terminator last.
//!
//! Cost of permuting a query: one look-up for each 1-bit, in a table of 192 bytes.

use namewire_packet::descriptor::{DESCRIPTOR_BITS, Descriptor};

/// The paper's `$`: no position. It is above every 1-bit's.
pub(super) const END: u8 = 255;

/// The order of bits in the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOrder {
    /// As in the descriptor.
    Unchanged,
    /// The paper's permutation: popular bits first, so that descriptors share prefixes.
    PopularFirst,
    /// Rare bits first, so that most branches of the trie end early for a query. Not in the paper.
    RareFirst,
}

/// Which bit of a descriptor is at which position of the trie.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    position_of_bit: [u8; DESCRIPTOR_BITS],
    bit_at_position: [u8; DESCRIPTOR_BITS],
}

impl Permutation {
    /// Each bit at its own position.
    pub(super) fn identity() -> Self {
        let positions = std::array::from_fn(|position| position as u8);
        Permutation { position_of_bit: positions, bit_at_position: positions }
    }

    /// The order that was chosen, for these descriptors; of equally popular bits the lowest is first.
    pub(super) fn new<'a>(order: BitOrder, descriptors: impl IntoIterator<Item = &'a Descriptor>) -> Self {
        let mut permutation = Permutation::identity();
        if order == BitOrder::Unchanged {
            return permutation;
        }
        let mut counts = [0_u64; DESCRIPTOR_BITS];
        for descriptor in descriptors {
            descriptor.positions().for_each(|bit| counts[usize::from(bit)] += 1);
        }
        let popularity = |bit: &u8| counts[usize::from(*bit)];
        match order {
            BitOrder::PopularFirst => permutation.bit_at_position.sort_by_key(|bit| std::cmp::Reverse(popularity(bit))),
            _ => permutation.bit_at_position.sort_by_key(popularity),
        }
        for (position, bit) in permutation.bit_at_position.iter().enumerate() {
            permutation.position_of_bit[usize::from(*bit)] = position as u8;
        }
        permutation
    }

    /// The descriptor in the order of the trie.
    pub(super) fn key(&self, descriptor: &Descriptor) -> Key {
        let mut key = Key::default();
        descriptor.positions().for_each(|bit| key.set(self.position_of_bit[usize::from(bit)]));
        key
    }

    /// The descriptor that has this key.
    pub(super) fn descriptor(&self, key: Key) -> Descriptor {
        key.positions(0).map(|position| self.bit_at_position[usize::from(position)]).collect()
    }
}

/// A permuted descriptor; position 0 is the most significant bit of the first word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([u64; 3]);

impl Key {
    fn set(&mut self, position: u8) {
        self.0[usize::from(position / 64)] |= 1 << (63 - position % 64);
    }

    /// With a 1-bit at this position.
    pub(super) fn with(mut self, position: u8) -> Self {
        self.set(position);
        self
    }

    pub(super) fn has(&self, position: u8) -> bool {
        self.0[usize::from(position / 64)] >> (63 - position % 64) & 1 == 1
    }

    /// True if the other has all 1-bits of this one.
    #[inline(always)]
    pub(super) fn is_subset_of(&self, other: &Key) -> bool {
        let [a, b, c] = [0, 1, 2].map(|word| self.0[word] & !other.0[word]);
        a | b | c == 0
    }

    /// The 1-bits that one of both has.
    pub(super) fn union(self, other: Key) -> Self {
        Key([0, 1, 2].map(|word| self.0[word] | other.0[word]))
    }

    /// Its 1-bits that the other does not have.
    pub(super) fn without(self, other: Key) -> Self {
        Key([0, 1, 2].map(|word| self.0[word] & !other.0[word]))
    }

    pub(super) fn weight(&self) -> u8 {
        self.0.iter().map(|word| word.count_ones() as u8).sum()
    }

    /// The lowest position of a 1-bit that is `from` or higher, or [`END`].
    pub(super) fn next(&self, from: u8) -> u8 {
        let mut word = usize::from(from / 64);
        let mut rest = self.0.get(word).map_or(0, |bits| bits & u64::MAX >> (from % 64));
        while rest == 0 {
            word += 1;
            match self.0.get(word) {
                Some(bits) => rest = *bits,
                None => return END,
            }
        }
        (word as u32 * 64 + rest.leading_zeros()) as u8
    }

    /// The positions of the 1-bits that are `from` or higher, lowest first.
    pub(super) fn positions(self, from: u8) -> impl Iterator<Item = u8> {
        let step = move |position: u8| (position != END).then_some(position);
        std::iter::successors(step(self.next(from)), move |position| step(self.next(position + 1)))
    }

    /// Calls `visit` for the position of each 1-bit that is `from` or higher, lowest first.
    #[inline(always)]
    pub(super) fn for_each_from_the_left(&self, from: u8, mut visit: impl FnMut(u8)) {
        for (word, bits) in (0_u8..).zip(self.0) {
            let before = u32::from(from.saturating_sub(64 * word));
            let mut rest = bits & u64::MAX.checked_shr(before).unwrap_or(0);
            while rest != 0 {
                let place = rest.leading_zeros();
                visit(word * 64 + place as u8);
                rest &= !(1 << 63 >> place);
            }
        }
    }

    /// Calls `visit` for the position of each 1-bit, highest first.
    pub(super) fn for_each_from_the_right(&self, mut visit: impl FnMut(u8)) {
        for (word, bits) in self.0.iter().enumerate().rev() {
            let mut rest = *bits;
            while rest != 0 {
                visit(word as u8 * 64 + 63 - rest.trailing_zeros() as u8);
                rest &= rest - 1;
            }
        }
    }

    /// The 32 positions that begin at `from`, the first in the most significant bit. There are no 1-bits at 192 and
    /// above.
    pub(super) fn window(&self, from: u8) -> u32 {
        let word = |index: u8| self.0.get(usize::from(index)).copied().unwrap_or(0);
        let (first, shift) = (from / 64, from % 64);
        ((word(first) << shift | word(first + 1) >> 1 >> (63 - shift)) >> 32) as u32
    }

    /// Its 1-bits below position `from`, of at most 192.
    pub(super) fn before(mut self, from: u8) -> Self {
        for (word, bits) in (0_u32..).zip(&mut self.0) {
            let kept = u32::from(from).saturating_sub(64 * word).min(64);
            *bits &= !u64::MAX.checked_shr(kept).unwrap_or(0);
        }
        self
    }

    /// The words: position 0 is the most significant bit of the first.
    pub(super) fn words(&self) -> [u64; 3] {
        self.0
    }

    /// The number of leading 1-bits whose positions both have: the nodes that two paths of the trie share.
    pub(super) fn shared_depth(&self, other: &Key) -> u8 {
        let mut shared = 0;
        for (mine, others) in self.0.iter().zip(other.0) {
            let same = (mine ^ others).leading_zeros();
            shared += (mine & !u64::MAX.checked_shr(same).unwrap_or(0)).count_ones() as u8;
            if same < 64 {
                break;
            }
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn popular_bits_come_first_and_of_equals_the_lowest() {
        let sets = [[2, 3, 5], [3, 5, 7], [5, 100, 191]].map(Descriptor::from_iter);
        let permutation = Permutation::new(BitOrder::PopularFirst, &sets);
        assert_eq!(permutation.bit_at_position[..6], [5, 3, 2, 7, 100, 191]);
        let positions = |set: &Descriptor| permutation.key(set).positions(0).collect::<Vec<u8>>();
        assert_eq!(sets.each_ref().map(positions), [vec![0, 1, 2], vec![0, 1, 3], vec![0, 4, 5]]);
        assert_eq!(sets.map(|set| permutation.descriptor(permutation.key(&set))), sets);
    }

    proptest! {
        #[test]
        fn keys_know_their_positions(a: [u64; 3], b: [u64; 3], from in 0..=192_u8, first: bool) {
            let (a, b) = (Descriptor(a), Descriptor([if first { a[0] } else { b[0] }, b[1], b[2]]));
            let [one, two] = [&a, &b].map(|descriptor| Permutation::identity().key(descriptor));
            let [bits, others] = [a, b].map(|descriptor| descriptor.positions().collect::<Vec<u8>>());
            prop_assert_eq!(one.positions(0).collect::<Vec<u8>>(), bits.clone());
            prop_assert_eq!(one.next(from), bits.iter().copied().find(|bit| *bit >= from).unwrap_or(END));
            prop_assert!((0..192).all(|bit| one.has(bit) == a.has(bit)));
            prop_assert_eq!(u32::from(one.weight()), a.weight());
            let below = bits.iter().copied().filter(|bit| *bit < from).collect::<Vec<u8>>();
            prop_assert_eq!(one.before(from).positions(0).collect::<Vec<u8>>(), below);
            let is_in_window = |bit: u8| one.window(from) << (bit - from) >> 31 == 1;
            prop_assert!((from..from + 32).all(|bit| is_in_window(bit) == (bit < 192 && a.has(bit))));
            let mut from_the_left = vec![];
            one.for_each_from_the_left(from, |position| from_the_left.push(position));
            prop_assert_eq!(from_the_left, bits.iter().copied().filter(|bit| *bit >= from).collect::<Vec<u8>>());
            let mut from_the_right = vec![];
            one.for_each_from_the_right(|position| from_the_right.push(position));
            prop_assert_eq!(from_the_right.into_iter().rev().collect::<Vec<u8>>(), bits.clone());
            // Two paths part at the first bit that only one of them has.
            let parts = (0..192).find(|bit| a.has(*bit) != b.has(*bit)).unwrap_or(192);
            prop_assert_eq!(usize::from(one.shared_depth(&two)), bits.iter().filter(|bit| **bit < parts).count());
            // Descending keys are the order of the paths, a terminator after every position.
            let path = |bits: &[u8]| [bits, &[END]].concat();
            prop_assert_eq!(two.cmp(&one), path(&bits).cmp(&path(&others)));
        }
    }
}
