//! Descriptor: a set of tags as a Bloom filter of 192 bits.
//!
//! Question: is one set of tags a subset of another? [`Descriptor::is_subset_of`] compares three machine words. Its
//! "yes" may be wrong, its "no" never. The edge, which has the tags themselves ([`TagSet`]), asks
//! [`TagSet::is_subset_of`], which makes no mistake.
//!
//! Source: TagNet16 §2.2: 192 bits, 7 hash functions.
//!
//! The hash functions are independent: tag → SHA-256 → its first seven big-endian 32-bit words w → bit ⌊192 w / 2³²⌋.
//! All TagNet programs must compute the same hashes, so the functions have no key. Two hash functions combined modulo
//! 192 (double hashing) would give a tag few bit patterns, and false matches a thousand times as often.
//!
//! ```text
//!   word      0                      1                      2
//!   bit       0 ............... 63   64 ............. 127   128 ........... 191
//!   position  0 = the least significant bit of word 0
//! ```
//!
//! Cost: a tag takes one SHA-256 block, about 100 ns, at the edge only. A comparison takes three ANDs.
//!
//! Limits: a set has at most [`MAX_TAGS`] tags of at most [`MAX_TAG_BYTES`] bytes, so its descriptor has at most
//! [`MAX_WEIGHT`] 1-bits.

pub use crate::tag::{DESCRIPTOR_BYTES, MAX_TAG_BYTES, MAX_TAGS};
use sha2::{Digest, Sha256};
use std::{fmt, str::FromStr};

/// Bits of a descriptor.
pub const DESCRIPTOR_BITS: usize = 192;
/// Hash functions, so at most this number of 1-bits for a tag.
pub const HASH_FUNCTIONS: usize = 7;
const _: () = assert!(DESCRIPTOR_BYTES * 8 == DESCRIPTOR_BITS);
/// Most 1-bits of the descriptor of a [`TagSet`].
pub const MAX_WEIGHT: u32 = (MAX_TAGS * HASH_FUNCTIONS) as u32;

/// A set of tags as a Bloom filter. They are ordered word by word, which breaks ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor(pub [u64; 3]);

impl Descriptor {
    /// The descriptor of no tags: a subset of every other.
    pub const EMPTY: Descriptor = Descriptor([0; 3]);

    /// The descriptor of one tag.
    pub fn of_tag(tag: &str) -> Self {
        let hash = Sha256::digest(tag.as_bytes());
        let mut descriptor = Descriptor::EMPTY;
        for word in hash.chunks_exact(4).take(HASH_FUNCTIONS) {
            let word = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            descriptor.set(((u64::from(word) * DESCRIPTOR_BITS as u64) >> 32) as u8);
        }
        descriptor
    }

    /// The descriptor of these tags.
    pub fn of_tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        tags.into_iter().fold(Descriptor::EMPTY, |descriptor, tag| descriptor.union(Descriptor::of_tag(tag)))
    }

    /// With the bits of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Descriptor([self.0[0] | other.0[0], self.0[1] | other.0[1], self.0[2] | other.0[2]])
    }

    /// True if every 1-bit of this one is a 1-bit of the other.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        (self.0[0] & !other.0[0]) | (self.0[1] & !other.0[1]) | (self.0[2] & !other.0[2]) == 0
    }

    /// The number of 1-bits (Hamming weight).
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// True if the bit at this position is 1.
    ///
    /// # Panics
    /// If the position is 192 or more.
    pub fn has(&self, position: u8) -> bool {
        self.0[usize::from(position / 64)] >> (position % 64) & 1 == 1
    }

    /// Makes the bit at this position 1.
    ///
    /// # Panics
    /// If the position is 192 or more.
    pub fn set(&mut self, position: u8) {
        self.0[usize::from(position / 64)] |= 1 << (position % 64);
    }

    /// The positions of the 1-bits, lowest first.
    pub fn positions(&self) -> impl Iterator<Item = u8> {
        let words = self.0;
        (0..3).flat_map(move |index| {
            let mut rest = words[index];
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(index as u8 * 64 + bit as u8)
            })
        })
    }

    /// The bytes on the wire: the words one after the other, each little-endian, so that bit 0 is in the first byte.
    pub fn to_bytes(&self) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes.chunks_exact_mut(8).zip(self.0).for_each(|(part, word)| part.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// The descriptor with these bytes on the wire.
    pub fn from_bytes(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let word = |at: usize| std::array::from_fn(|byte| bytes[at * 8 + byte]);
        Descriptor([u64::from_le_bytes(word(0)), u64::from_le_bytes(word(1)), u64::from_le_bytes(word(2))])
    }
}

impl FromIterator<u8> for Descriptor {
    /// The descriptor with 1-bits at these positions.
    fn from_iter<T: IntoIterator<Item = u8>>(positions: T) -> Self {
        let mut descriptor = Descriptor::EMPTY;
        positions.into_iter().for_each(|position| descriptor.set(position));
        descriptor
    }
}

/// A set of tags as an application gives it: sorted, each tag once, within the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagSet(Vec<String>);

/// Why tags are no set of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagSetError {
    /// More than [`MAX_TAGS`].
    #[error("more than {MAX_TAGS} tags")]
    TooMany,
    /// A tag without characters.
    #[error("an empty tag")]
    Empty,
    /// A tag of more than [`MAX_TAG_BYTES`].
    #[error("a tag of more than {MAX_TAG_BYTES} bytes")]
    TooLong,
}

impl TagSet {
    /// The set of these tags.
    ///
    /// # Errors
    /// If there are too many, or if one is empty or too long.
    pub fn new<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Result<Self, TagSetError> {
        let mut set: Vec<String> = Vec::new();
        for tag in tags {
            let tag = tag.into();
            match tag.len() {
                0 => return Err(TagSetError::Empty),
                1..=MAX_TAG_BYTES => {}
                _ => return Err(TagSetError::TooLong),
            }
            if let Err(place) = set.binary_search(&tag) {
                if set.len() == MAX_TAGS {
                    return Err(TagSetError::TooMany);
                }
                set.insert(place, tag);
            }
        }
        Ok(TagSet(set))
    }

    /// The set that stands for a hierarchical name (TagNet16 §2.1): `/org/gnu` → {1:org, 2:gnu}. A name is a prefix of
    /// another if its set is a subset of the other's.
    ///
    /// # Errors
    /// As [`TagSet::new`].
    pub fn of_name_components<'a>(components: impl IntoIterator<Item = &'a str>) -> Result<Self, TagSetError> {
        TagSet::new(components.into_iter().enumerate().map(|(place, component)| format!("{}:{component}", place + 1)))
    }

    /// The tags, in order.
    pub fn tags(&self) -> &[String] {
        &self.0
    }

    /// Its Bloom filter.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::of_tags(self.0.iter().map(String::as_str))
    }

    /// True if every tag of this set is in the other.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.is_contained_in(other.0.iter().map(String::as_str))
    }

    /// True if every tag of this set is among `tags`, which are ascending.
    pub fn is_contained_in<'a>(&self, mut tags: impl Iterator<Item = &'a str>) -> bool {
        self.0.iter().all(|mine| tags.by_ref().find(|tag| *tag >= mine.as_str()) == Some(mine))
    }
}

impl FromStr for TagSet {
    type Err = TagSetError;

    /// Tags between commas, with blanks around them if you like: `concert, classical`.
    fn from_str(text: &str) -> Result<Self, TagSetError> {
        if text.trim().is_empty() {
            return Ok(TagSet::default());
        }
        TagSet::new(text.split(',').map(str::trim))
    }
}

impl fmt::Display for TagSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bits_of_a_tag_are_fixed() {
        // `printf concert | sha256sum`, words * 192 >> 32. Other implementations must find the same.
        let positions: Vec<u8> = Descriptor::of_tag("concert").positions().collect();
        assert_eq!(positions, [20, 62, 118, 122, 128, 142, 169]);
    }

    #[test]
    fn a_music_server_is_found_by_its_tags() {
        let server: TagSet = "concert, classical".parse().unwrap();
        let wanted: TagSet = "classical,Beethoven,ninth,concert,360bps".parse().unwrap();
        assert!(server.is_subset_of(&wanted) && !wanted.is_subset_of(&server));
        assert!(server.descriptor().is_subset_of(&wanted.descriptor()));
        assert!(!wanted.descriptor().is_subset_of(&server.descriptor()));
        assert_eq!(server.to_string(), "{classical, concert}");
    }

    #[test]
    fn a_prefix_of_a_name_is_a_subset() {
        let set = |name: &str| TagSet::of_name_components(name.split('/').skip(1)).unwrap();
        assert_eq!(set("/org/gnu").tags(), ["1:org", "2:gnu"]);
        assert!(set("/org/gnu").is_subset_of(&set("/org/gnu/software")));
        assert!(!set("/gnu/org").is_subset_of(&set("/org/gnu/software")));
    }

    #[test]
    fn sets_have_limits() {
        let numbers = |count: usize| TagSet::new((0..count).map(|number| number.to_string()));
        assert!(numbers(MAX_TAGS).is_ok_and(|set| set.descriptor().weight() <= MAX_WEIGHT));
        assert_eq!(numbers(MAX_TAGS + 1), Err(TagSetError::TooMany));
        assert_eq!(TagSet::new(["a"; 100]).unwrap().tags(), ["a"]);
        assert_eq!(TagSet::new([""]), Err(TagSetError::Empty));
        assert_eq!("a,,b".parse::<TagSet>(), Err(TagSetError::Empty));
        assert!(TagSet::new(["x".repeat(MAX_TAG_BYTES)]).is_ok());
        assert_eq!(TagSet::new(["x".repeat(MAX_TAG_BYTES + 1)]), Err(TagSetError::TooLong));
        assert_eq!("".parse::<TagSet>().unwrap().descriptor(), Descriptor::EMPTY);
    }

    fn tag_set() -> impl Strategy<Value = TagSet> {
        proptest::collection::vec(0..20_u8, 0..6).prop_map(|tags| TagSet::new(tags.iter().map(u8::to_string)).unwrap())
    }

    proptest! {
        #[test]
        fn a_descriptor_has_no_false_negatives(a in tag_set(), b in tag_set()) {
            prop_assert!(!a.is_subset_of(&b) || a.descriptor().is_subset_of(&b.descriptor()));
        }

        #[test]
        fn positions_and_bytes_read_back(words: [u64; 3]) {
            let descriptor = Descriptor(words);
            prop_assert_eq!(descriptor.positions().collect::<Descriptor>(), descriptor);
            prop_assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), descriptor);
            prop_assert_eq!(descriptor.positions().count() as u32, descriptor.weight());
            prop_assert!(descriptor.positions().all(|position| descriptor.has(position)));
            prop_assert!(descriptor.positions().is_sorted());
        }
    }
}
