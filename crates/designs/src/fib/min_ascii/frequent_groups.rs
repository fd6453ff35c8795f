//! Frequent groups of characters: which strings get one code?
//!
//! Source: NameTrie18 §IV-A, codes 4 to 31; the paper leaves their choice as future work. The groups are either a list
//! chosen beforehand ([`FREQUENT_ON_THE_WEB`]) or learned from a sample of names. Learning repeatedly picks the string
//! that saves most codes, (bytes − 1) × occurrences, in the text not yet covered.
//!
//! Cost per byte coded: it reads one line of an 8 KiB bitmap of pairs; if the pair begins a group, also the groups
//! with that first byte.

use super::{PLAIN, component_at};
use hashbrown::HashMap;

/// Codes 4 to 31.
pub const MAX_GROUPS: usize = 28;
/// The longest group that is learned: a group is eight bytes of one number while it is counted.
const MAX_LEARNED_BYTES: usize = size_of::<u64>();
/// Bytes of components that are looked at when groups are learned.
const SAMPLE_BYTES: usize = 1 << 16;

/// Strings that host names and URLs are full of.
pub const FREQUENT_ON_THE_WEB: [&str; MAX_GROUPS] = [
    "www", "com", "net", "org", "http", "html", "index", ".php", ".jpg", ".gif", "image", "news", "blog", "shop",
    "online", "host", "web", "wp-", "content", "tion", "ing", "er", "in", "an", "on", "re", "es", "st",
];

/// A choice of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequentGroups(Vec<Vec<u8>>);

impl FrequentGroups {
    /// These, or the first [`MAX_GROUPS`] of them. Strings that are shorter than two bytes or
    /// have bytes that are escaped are left out.
    pub fn new<'a>(groups: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut chosen: Vec<Vec<u8>> = Vec::new();
        for group in groups {
            let is_plain = group.len() >= 2 && group.iter().all(|&byte| PLAIN[byte as usize] != 0);
            if is_plain && chosen.len() < MAX_GROUPS && !chosen.iter().any(|known| known == group) {
                chosen.push(group.to_vec());
            }
        }
        Self(chosen)
    }

    /// [`FREQUENT_ON_THE_WEB`].
    pub fn of_the_web() -> Self {
        Self::new(FREQUENT_ON_THE_WEB.map(str::as_bytes))
    }

    /// Those that save most in these names (Name TLV-VALUEs); only their first 64 KiB count.
    pub fn learned<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut texts = plain_texts(names);
        let mut chosen: Vec<Vec<u8>> = Vec::new();
        while chosen.len() < MAX_GROUPS {
            let Some(best) = most_saving(&texts) else { break };
            texts = texts.iter().flat_map(|text| without(text, &best)).collect();
            chosen.push(best);
        }
        Self(chosen)
    }

    /// The groups, as strings of unreserved bytes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}

/// Runs of bytes that are not escaped.
fn plain_texts<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for name in names {
        let mut at = 0;
        while at < name.len() {
            let (_, value, end) = component_at(name, at);
            at = end;
            bytes += value.len();
            let runs = value.split(|&byte| PLAIN[byte as usize] == 0);
            texts.extend(runs.filter(|run| run.len() >= 2).map(<[u8]>::to_vec));
        }
        if bytes >= SAMPLE_BYTES {
            break;
        }
    }
    texts
}

/// The string that saves most codes, if any occurs twice; of equals the first in the alphabet.
fn most_saving(texts: &[Vec<u8>]) -> Option<Vec<u8>> {
    // A string is a number, its first byte the uppermost; no plain byte is 0.
    let mut occurrences: HashMap<u64, usize> = HashMap::new();
    for text in texts {
        for start in 0..text.len() {
            let mut group = 0;
            for (place, &byte) in text[start..].iter().take(MAX_LEARNED_BYTES).enumerate() {
                group |= u64::from(byte) << (56 - 8 * place);
                if place > 0 {
                    *occurrences.entry(group).or_default() += 1;
                }
            }
        }
    }
    let bytes = |group: u64| MAX_LEARNED_BYTES - group.trailing_zeros() as usize / 8;
    let saved = |&(group, times): &(u64, usize)| (bytes(group) - 1) * times;
    let worth = occurrences.into_iter().filter(|&(_, times)| times >= 2);
    let best = worth.max_by(|a, b| saved(a).cmp(&saved(b)).then(b.0.cmp(&a.0)));
    best.map(|(group, _)| group.to_be_bytes()[..bytes(group)].to_vec())
}

/// What is left of a text between the occurrences of a group.
fn without(text: &[u8], group: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        if text[at..].starts_with(group) {
            parts.push(text[start..at].to_vec());
            at += group.len();
            start = at;
        } else {
            at += 1;
        }
    }
    parts.push(text[start..].to_vec());
    parts.retain(|part| part.len() >= 2);
    parts
}

/// Groups as the coding asks for them.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Bit `first + 256 × second`: some group begins with this pair.
    pairs: [u64; 1024],
    /// Element `byte`: which of `texts` begin with it.
    of_first: [(u8, u8); 256],
    /// By first byte, the longest first; the place is the code − 4.
    texts: Vec<Vec<u8>>,
}

impl Groups {
    pub(super) fn new(groups: &FrequentGroups) -> Self {
        let mut texts = groups.0.clone();
        texts.sort_by(|a, b| a[0].cmp(&b[0]).then(b.len().cmp(&a.len())).then(a.cmp(b)));
        let (mut pairs, mut of_first) = ([0; 1024], [(0, 0); 256]);
        for (place, text) in texts.iter().enumerate() {
            let pair = usize::from(text[0]) + 256 * usize::from(text[1]);
            pairs[pair / 64] |= 1 << (pair % 64);
            let (first, end) = &mut of_first[usize::from(text[0])];
            if *end == 0 {
                *first = place as u8;
            }
            *end = place as u8 + 1;
        }
        Self { pairs, of_first, texts }
    }

    /// The longest group that `text` begins with, and its bytes.
    #[inline]
    pub(super) fn at_start(&self, text: &[u8]) -> Option<(u8, usize)> {
        let &[first, second, ..] = text else { return None };
        let pair = usize::from(first) + 256 * usize::from(second);
        if self.pairs[pair / 64] >> (pair % 64) & 1 == 0 {
            return None;
        }
        let (start, end) = self.of_first[usize::from(first)];
        (start..end)
            .map(|group| (group, &self.texts[usize::from(group)]))
            .find(|(_, group)| text.starts_with(group))
            .map(|(place, group)| (place, group.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CodedNames, MinAscii};
    use super::*;

    fn name(components: &[&[u8]]) -> Vec<u8> {
        components.iter().flat_map(|bytes| [&[8, bytes.len() as u8], *bytes].concat()).collect()
    }

    #[test]
    fn groups_take_one_code_each_and_the_longest_wins() {
        let groups = FrequentGroups::new([&b"com"[..], b"co", b"www", b"a", b"a/b"]);
        assert_eq!(groups.iter().count(), 3, "one byte saves nothing, and a slash is escaped");
        let (minascii, mut coded) = (MinAscii::with_groups(&groups), CodedNames::default());
        let name = minascii.encode(&name(&[b"com", b"cowww", b"c", b"wwwcom/"]), &mut coded);
        assert_eq!(coded.codes(name), b"\x04\x02\x05\x06\x02c\x02\x06\x04%2F");
    }

    #[test]
    fn the_list_of_the_web_is_full_and_plain() {
        assert_eq!(FrequentGroups::of_the_web().iter().count(), MAX_GROUPS);
    }

    #[test]
    fn learned_groups_are_those_that_save_most() {
        let names: Vec<Vec<u8>> = (0..40_u8).map(|number| name(&[b"example", &[b'0' + number % 10, number]])).collect();
        let learned = FrequentGroups::learned(names.iter().map(Vec::as_slice));
        assert_eq!(learned.iter().next(), Some(&b"example"[..]));
    }
}
