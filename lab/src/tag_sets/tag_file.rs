//! Tag sets of a file: one set in each line, its tags between blanks or tabs ([`text_lines`]).
//!
//! Left out and counted: lines that are too long, and sets that are beyond the limits of a packet ([`TagSet`]). A file
//! is refused if half of its lines are such. Limits: [`LINES_MAX`].

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, ensure};
use namewire_tagnet::{Descriptor, TagSet};

use super::{Tag, TagSource, filters};
use crate::text_lines;

/// Most lines of a file.
pub const LINES_MAX: usize = 100_000_000;

/// The sets of a file, each once.
#[derive(Debug)]
pub struct TagFile {
    title: String,
    sets: Vec<Box<[u32]>>,
    /// The tag of each place in the file, so that a random place is a tag by its frequency.
    occurrences: Vec<u32>,
    texts: Vec<String>,
    filters: Vec<Descriptor>,
    /// Lines that were no sets.
    pub left_out: usize,
}

impl TagFile {
    /// Reads a file. The title is its name without endings.
    ///
    /// # Errors
    /// If it cannot be read or has no sets of tags.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text_lines::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of_text(&text_lines::title(path), text).with_context(|| format!("no tag sets: {}", path.display()))
    }

    /// The sets of a text.
    ///
    /// # Errors
    /// If it cannot be read, is beyond the limits, or half of its lines are no sets.
    pub fn of_text(title: &str, text: impl BufRead) -> anyhow::Result<Self> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut seen: HashSet<Box<[u32]>> = HashSet::new();
        let (mut sets, mut occurrences, mut lines, mut left_out) = (Vec::new(), Vec::new(), 0, 0);
        let too_long = text_lines::for_each(text, |line| {
            lines += 1;
            ensure!(lines <= LINES_MAX, "more than {LINES_MAX} lines");
            let tags = String::from_utf8_lossy(line);
            let Ok(tags) = TagSet::new(tags.split_ascii_whitespace()) else {
                left_out += 1;
                return Ok(());
            };
            let number_of = |tag: &String| {
                let next = numbers.len() as u32;
                *numbers.entry(tag.clone()).or_insert(next)
            };
            let set: Box<[u32]> = tags.tags().iter().map(number_of).collect();
            occurrences.extend(&set);
            if seen.insert(set.clone()) {
                sets.push(set);
            }
            Ok(())
        })?;
        let left_out = left_out + too_long;
        ensure!(!sets.is_empty(), "it has no sets");
        ensure!(left_out <= lines / 2, "half of its lines are no sets");
        let mut texts = vec![String::new(); numbers.len()];
        numbers.into_iter().for_each(|(text, number)| texts[number as usize] = text);
        let filters = filters(texts.len() as u32, |tag| texts[tag as usize].clone());
        Ok(Self { title: title.to_owned(), sets, occurrences, texts, filters, left_out })
    }
}

impl TagSource for TagFile {
    fn title(&self) -> &str {
        &self.title
    }

    fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    fn write_tags(&self, number: u32, out: &mut Vec<Tag>) {
        out.clear();
        out.extend(self.sets[number as usize].iter().map(|&tag| Tag(tag.into())));
    }

    fn extra_tag(&self, _: u32, _: usize, random: &mut fastrand::Rng) -> Tag {
        Tag(self.occurrences[random.usize(..self.occurrences.len())].into())
    }

    fn write_text(&self, tag: Tag, out: &mut String) {
        out.clone_from(&self.texts[tag.0 as usize]);
    }

    fn filter(&self, tag: Tag) -> Descriptor {
        self.filters[tag.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_a_file_is_read_once() -> anyhow::Result<()> {
        let long = "x".repeat(65);
        let file = TagFile::of_text("f", format!("# tags\nb a\na\tb\na\n{long}\nc a b\n").as_bytes())?;
        assert_eq!((file.sets(), file.left_out, file.occurrences.len()), (3, 1, 8));
        let (mut tags, mut text) = (Vec::new(), String::new());
        file.write_tags(2, &mut tags);
        let mut texts: Vec<String> = Vec::new();
        for &tag in &tags {
            file.write_text(tag, &mut text);
            assert_eq!(file.filter(tag), Descriptor::of_tag(&text));
            texts.push(text.clone());
        }
        assert_eq!(TagSet::new(texts)?.to_string(), "{a, b, c}");
        Ok(())
    }

    #[test]
    fn what_has_no_sets_is_refused() {
        let long = "x".repeat(65);
        for text in ["", "# nothing\n", &format!("a\n{long}\n{long}\n")] {
            assert!(TagFile::of_text("f", text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(TagFile::read(Path::new("/nonexistent")).is_err());
    }
}
