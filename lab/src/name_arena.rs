//! Name arena: many names, their bytes back to back.
//!
//! A name is the bytes of its TLV-VALUE. Memory: a name takes its bytes and eight more.

use std::collections::HashMap;

use namewire_packet::tlv::read_var_number;
use namewire_tables::fib::PrefixMatch;

/// Names by number, in the order they were added.
#[derive(Clone, Debug, Default)]
pub struct NameArena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl NameArena {
    /// Adds a name.
    pub fn push(&mut self, name_value: &[u8]) {
        self.bytes.extend_from_slice(name_value);
        self.ends.push(self.bytes.len());
    }

    /// Removes every name and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Keeps at most the first `names`.
    pub fn truncate(&mut self, names: usize) {
        self.ends.truncate(names);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all names.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Name `number`.
    ///
    /// # Panics
    /// If there is no such name.
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

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

/// The next hop of prefix `number`: few enough values for the papers' 8-bit outgoing ports.
pub const fn port(number: usize) -> u32 {
    (number % 251) as u32
}

/// The right answers of look-ups among `prefixes`, where prefix `i` leads to [`port`]`(i)`. The model looks up every
/// prefix of a name in the standard library's hash table.
pub struct ReferenceModel<'n> {
    numbers: HashMap<&'n [u8], u32>,
}

impl<'n> ReferenceModel<'n> {
    pub fn new(prefixes: &'n NameArena) -> Self {
        Self { numbers: prefixes.iter().enumerate().map(|(number, name)| (name, port(number))).collect() }
    }

    /// The longest prefix of a valid name.
    pub fn longest_prefix_match(&self, name_value: &[u8]) -> Option<PrefixMatch> {
        let mut found = None;
        let mut end = 0;
        loop {
            if let Some(&number) = self.numbers.get(&name_value[..end]) {
                found = Some(PrefixMatch { number, prefix_bytes: end as u16 });
            }
            match component_bytes(&name_value[end..]) {
                Some(bytes) => end += bytes,
                None => return found,
            }
        }
    }
}

/// Bytes of the first component of `rest`, a valid remainder of a name; `None` at its end.
pub fn component_bytes(rest: &[u8]) -> Option<usize> {
    let (_, type_bytes) = read_var_number(rest).ok()?;
    let (length, length_bytes) = read_var_number(&rest[type_bytes..]).ok()?;
    Some(type_bytes + length_bytes + length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_finds_the_longest_prefix() {
        let long = [&[8, 253, 1, 0][..], &[7; 256]].concat();
        let names = [&b""[..], b"\x08\x01a", b"\x08\x01a\x08\x01b", &long];
        let arena: NameArena = names.iter().copied().collect();
        assert_eq!((arena.len(), arena.bytes(), arena.get(2)), (4, 3 + 6 + 260, names[2]));
        let model = ReferenceModel::new(&arena);
        let found = |name: &[u8]| model.longest_prefix_match(name).map(|found| (found.number, found.prefix_bytes));
        assert_eq!(found(b"\x08\x01c"), Some((port(0), 0)));
        assert_eq!(found(b"\x08\x01a\x08\x01c"), Some((port(1), 3)));
        assert_eq!(found(b"\x08\x01a\x08\x01b\x08\x00"), Some((port(2), 6)));
        assert_eq!(found(&[&long[..], b"\x08\x00"].concat()), Some((port(3), 260)));
        assert_eq!(ReferenceModel::new(&NameArena::default()).longest_prefix_match(b""), None);
    }
}
