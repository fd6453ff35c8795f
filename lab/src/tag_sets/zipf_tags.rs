//! Independent Zipf tags: 2, 3 or 4 tags of one vocabulary.
//!
//! Memory: 32 bytes for each tag of the vocabulary. `docs/tag-sets.md` has the numbers.

use namewire_tagnet::Descriptor;

use super::{SETS_MAX, Tag, TagSource, filters, random_of_set};
use crate::requests::popularity::Popularity;

/// The exponents of the sweep.
pub const EXPONENTS: [f64; 9] = [0.0, 0.5, 0.8, 1.0, 1.2, 1.4, 1.6, 1.9, 2.4];

/// Sets of tags that are independent of each other.
#[derive(Debug)]
pub struct ZipfTags {
    title: String,
    seed: u64,
    popularity: Popularity,
    filters: Vec<Descriptor>,
}

impl ZipfTags {
    /// Tags of a vocabulary of this size, the most popular one first.
    pub fn new(seed: u64, vocabulary: u32, exponent: f64) -> Self {
        Self {
            title: format!("Zipf {exponent}"),
            seed,
            popularity: Popularity::zipf(vocabulary, exponent),
            filters: filters(vocabulary, text),
        }
    }
}

fn text(tag: u32) -> String {
    format!("tag-{tag}")
}

impl TagSource for ZipfTags {
    fn title(&self) -> &str {
        &self.title
    }

    fn sets(&self) -> u32 {
        SETS_MAX
    }

    fn write_tags(&self, number: u32, out: &mut Vec<Tag>) {
        let mut random = random_of_set(self.seed, number);
        let wanted = random.usize(2..=4);
        out.clear();
        while out.len() < wanted {
            let tag = self.extra_tag(number, out.len(), &mut random);
            if !out.contains(&tag) {
                out.push(tag);
            }
        }
    }

    fn extra_tag(&self, _: u32, _: usize, random: &mut fastrand::Rng) -> Tag {
        Tag(self.popularity.draw(random.u64(..)).into())
    }

    fn write_text(&self, tag: Tag, out: &mut String) {
        *out = text(tag.0 as u32);
    }

    fn filter(&self, tag: Tag) -> Descriptor {
        self.filters[tag.0 as usize]
    }
}
