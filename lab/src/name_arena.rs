//! Name arena: many names, their octets back to back.
//!
//! A name is the octets of its TLV-VALUE. Memory: the octets and eight more per name.

use std::collections::HashMap;

use namewire_packet::tlv::read_var_number;
use namewire_tables::fib::designs::PrefixMatch;

/// Names by number, in the order they were added.
#[derive(Clone, Debug, Default)]
pub struct NameArena {
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl NameArena {
    /// Adds a name.
    pub fn push(&mut self, name_value: &[u8]) {
        self.octets.extend_from_slice(name_value);
        self.ends.push(self.octets.len());
    }

    /// Forgets every name and keeps the room.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    /// Keeps the first `names` at most.
    pub fn truncate(&mut self, names: usize) {
        self.ends.truncate(names);
        self.octets.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Octets of all names.
    pub fn octets(&self) -> usize {
        self.octets.len()
    }

    /// Name `number`.
    ///
    /// # Panics
    /// If there is none of that number.
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.octets[start..self.ends[number]]
    }

    /// Every name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl<'n> FromIterator<&'n [u8]> for NameArena {
    fn from_iter<T: IntoIterator<Item = &'n [u8]>>(names: T) -> Self {
        let mut arena = Self::default();
        names.into_iter().for_each(|name| arena.push(name));
        arena
    }
}

/// The number that prefix `number` of a population leads to: as many as the papers' eight bits
/// of an outgoing port tell apart.
pub const fn port(number: usize) -> u32 {
    (number % 251) as u32
}

/// What a look-up among `prefixes` must find, prefix `i` leading to [`port`]`(i)`: the answers are
/// those of the standard library's hash table, asked for every prefix of a name.
pub struct ReferenceModel<'n> {
    numbers: HashMap<&'n [u8], u32>,
}

impl<'n> ReferenceModel<'n> {
    /// Of every prefix.
    pub fn new(prefixes: &'n NameArena) -> Self {
        Self { numbers: prefixes.iter().enumerate().map(|(number, name)| (name, port(number))).collect() }
    }

    /// The longest prefix of a valid name.
    pub fn longest_prefix_match(&self, name_value: &[u8]) -> Option<PrefixMatch> {
        let mut found = None;
        let mut end = 0;
        loop {
            if let Some(&number) = self.numbers.get(&name_value[..end]) {
                found = Some(PrefixMatch { number, prefix_octets: end as u16 });
            }
            match component_octets(&name_value[end..]) {
                Some(octets) => end += octets,
                None => return found,
            }
        }
    }
}

/// Octets of the first component of a valid rest of a name; `None` at its end.
pub fn component_octets(rest: &[u8]) -> Option<usize> {
    let (_, type_octets) = read_var_number(rest).ok()?;
    let (length, length_octets) = read_var_number(&rest[type_octets..]).ok()?;
    Some(type_octets + length_octets + length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_finds_the_longest_prefix() {
        let long = [&[8, 253, 1, 0][..], &[7; 256]].concat();
        let names = [&b""[..], b"\x08\x01a", b"\x08\x01a\x08\x01b", &long];
        let arena: NameArena = names.iter().copied().collect();
        assert_eq!((arena.len(), arena.octets(), arena.get(2)), (4, 3 + 6 + 260, names[2]));
        let model = ReferenceModel::new(&arena);
        let found = |name: &[u8]| model.longest_prefix_match(name).map(|found| (found.number, found.prefix_octets));
        assert_eq!(found(b"\x08\x01c"), Some((port(0), 0)));
        assert_eq!(found(b"\x08\x01a\x08\x01c"), Some((port(1), 3)));
        assert_eq!(found(b"\x08\x01a\x08\x01b\x08\x00"), Some((port(2), 6)));
        assert_eq!(found(&[&long[..], b"\x08\x00"].concat()), Some((port(3), 260)));
        assert_eq!(ReferenceModel::new(&NameArena::default()).longest_prefix_match(b""), None);
    }
}
