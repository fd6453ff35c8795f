//! Names as tag sets: `/org/gnu` is {1:org, 2:gnu} (TagNet16 §2.1, §4.1: 10M-CCN).
//!
//! The names are invented domains in reverse ([`crate::name_sets::invented`]); the paper's list is of domains too.
//! With `www` as third label of most names they are fitted to what the paper tells of 10M-CCN (`docs/tag-sets.md`).
//! Memory: a name takes its bytes and 8 more; 10⁷ names take 0.3 GB, and 1.2 GB while they are made.

use std::fmt::Write as _;

use namewire_packet::tlv::Reader;

use super::{Tag, TagSource};
use crate::name_arena::NameArena;
use crate::name_sets::{NameConversion, invented};
use crate::split_mix::split_mix;

/// A tag of no name: its upper half is this bit and a random number, its lowest byte the place of the component.
const NEW_WORD: u64 = 1 << 63;
/// The tag `3:www`.
const WWW: Tag = Tag(1 << 62);
/// Of the names of two labels, in percent, so many have `www` as third label.
const WWW_PERCENT: u64 = 90;

/// Sets that stand for hierarchical names.
#[derive(Debug)]
pub struct NameTags {
    title: &'static str,
    names: NameArena,
    has_www: bool,
}

impl NameTags {
    /// About this number of names.
    ///
    /// # Errors
    /// If the user interrupted.
    pub fn invented(seed: u64, names: usize) -> anyhow::Result<Self> {
        let names = invented::domains(seed, names).names(NameConversion::Tld, seed)?.names;
        Ok(Self { title: "names", names, has_www: false })
    }

    /// The same names, most of those of two labels with `www` as third.
    #[must_use]
    pub fn with_www(self) -> Self {
        Self { title: "names with www", has_www: true, ..self }
    }

    fn components(&self, number: u32) -> impl Iterator<Item = &[u8]> {
        let mut reader = Reader::new(self.names.get(number as usize));
        std::iter::from_fn(move || Some(reader.next_element().ok()??.value))
    }
}

/// Component `place`, from 0, of a name.
fn component(name: u32, place: usize) -> Tag {
    Tag(u64::from(name) << 8 | place as u64)
}

impl TagSource for NameTags {
    fn title(&self) -> &str {
        self.title
    }

    fn sets(&self) -> u32 {
        self.names.len() as u32
    }

    fn write_tags(&self, number: u32, out: &mut Vec<Tag>) {
        out.clear();
        out.extend(self.components(number).enumerate().map(|(place, _)| component(number, place)));
        if self.has_www && out.len() == 2 && split_mix(number.into()) % 100 < WWW_PERCENT {
            out.push(WWW);
        }
    }

    fn extra_tag(&self, _: u32, tags: usize, random: &mut fastrand::Rng) -> Tag {
        let other = random.u32(..self.sets());
        match self.components(other).nth(tags) {
            Some(_) => component(other, tags),
            None => Tag(NEW_WORD | u64::from(random.u32(..)) << 8 | tags as u64),
        }
    }

    fn write_text(&self, tag: Tag, out: &mut String) {
        let place = tag.0 as u8;
        let number = (tag.0 >> 8) as u32;
        out.clear();
        if tag == WWW {
            out.push_str("3:www");
            return;
        }
        // Writing to a string does not fail.
        let _ = if tag.0 & NEW_WORD != 0 {
            write!(out, "{}:word-{number}", place + 1)
        } else {
            let word = self.components(number).nth(place.into()).unwrap_or_default();
            write!(out, "{}:{}", place + 1, String::from_utf8_lossy(word))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Name;
    use namewire_tagnet::TagSet;

    #[test]
    fn a_name_becomes_its_numbered_components() -> anyhow::Result<()> {
        let source = NameTags::invented(1, 2_000)?;
        let (mut tags, mut text, mut random) = (Vec::new(), String::new(), fastrand::Rng::with_seed(1));
        assert!(source.sets() > 1_500);
        for number in 0..source.sets() {
            source.write_tags(number, &mut tags);
            let texts = tags.iter().map(|&tag| {
                source.write_text(tag, &mut text);
                text.clone()
            });
            let name = Name::parse_value(source.names.get(number as usize))?.to_string();
            let wanted = TagSet::of_name_components(name.trim_start_matches('/').split('/'))?;
            assert_eq!(TagSet::new(texts)?, wanted, "{name}");
            let extra = source.extra_tag(number, tags.len(), &mut random);
            source.write_text(extra, &mut text);
            assert!(text.starts_with(&format!("{}:", tags.len() + 1)), "{text} after {name}");
        }
        Ok(())
    }

    #[test]
    fn most_names_of_two_labels_have_www_as_third() -> anyhow::Result<()> {
        let (bare, source) = (NameTags::invented(1, 2_000)?, NameTags::invented(1, 2_000)?.with_www());
        let (mut plain, mut tags, mut text) = (Vec::new(), Vec::new(), String::new());
        let (mut of_two, mut with_www) = (0, 0);
        for number in 0..source.sets() {
            bare.write_tags(number, &mut plain);
            source.write_tags(number, &mut tags);
            of_two += u32::from(plain.len() == 2);
            if tags != plain {
                let [first, second, third] = tags[..] else { panic!("{tags:?}") };
                assert_eq!((plain, third), (vec![first, second], WWW));
                plain = Vec::new();
                source.write_text(third, &mut text);
                assert_eq!(text, "3:www");
                with_www += 1;
            }
        }
        let percent = f64::from(with_www) * 100.0 / f64::from(of_two);
        assert!((percent - WWW_PERCENT as f64).abs() < 3.0, "{percent} % of {of_two}");
        Ok(())
    }
}
