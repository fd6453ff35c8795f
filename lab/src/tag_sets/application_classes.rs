//! Application classes: the tag of a class, topics by Zipf's law, and one rare tag.
//!
//! TagNet16 §4.1 derives its sets from "a variety of classes of applications" and does not name them. These are ours;
//! `docs/tag-sets.md` shows the table [`CLASSES`].
//!
//! Memory: 32 bytes for each topic, 7 MB for all.

use namewire_tagnet::Descriptor;

use super::{SETS_MAX, Tag, TagSource, filters, random_of_set};
use crate::requests::popularity::Popularity;

/// One kind of application.
struct Class {
    name: &'static str,
    /// Of all sets, in percent.
    share_percent: u32,
    /// Least and most topics of a set.
    topics: (usize, usize),
    vocabulary: u32,
    exponent: f64,
    /// What the rare tag is, and how many there are.
    rare: (&'static str, u32),
}

#[rustfmt::skip] // a table
const CLASSES: [Class; 8] = [
    Class { name: "photo", share_percent: 20, topics: (1, 2), vocabulary: 50_000, exponent: 1.0, rare: ("owner", 20_000_000) },
    Class { name: "video", share_percent: 15, topics: (1, 1), vocabulary: 20_000, exponent: 1.0, rare: ("channel", 5_000_000) },
    Class { name: "news", share_percent: 10, topics: (1, 2), vocabulary: 5_000, exponent: 0.9, rare: ("place", 100_000) },
    Class { name: "messages", share_percent: 25, topics: (0, 1), vocabulary: 100_000, exponent: 1.1, rare: ("user", 100_000_000) },
    Class { name: "bookmarks", share_percent: 10, topics: (1, 3), vocabulary: 50_000, exponent: 1.0, rare: ("site", 5_000_000) },
    Class { name: "sensors", share_percent: 10, topics: (1, 1), vocabulary: 200, exponent: 0.8, rare: ("place", 10_000_000) },
    Class { name: "software", share_percent: 5, topics: (1, 1), vocabulary: 1_000, exponent: 0.9, rare: ("package", 2_000_000) },
    Class { name: "music", share_percent: 5, topics: (1, 1), vocabulary: 500, exponent: 0.9, rare: ("artist", 2_000_000) },
];

/// Rare tags of a class, in the sweep that asks which mix has the paper's figures.
pub const RARE_TAGS: [u32; 3] = [1_000, 30_000, 1_000_000];

/// Sets of several classes of applications.
#[derive(Debug)]
pub struct ApplicationClasses {
    title: String,
    seed: u64,
    /// Most rare tags of a class.
    rare_max: u32,
    /// Of each class, in the order of [`CLASSES`].
    topics: Vec<Topics>,
}

#[derive(Debug)]
struct Topics {
    class_filter: Descriptor,
    popularity: Popularity,
    filters: Vec<Descriptor>,
}

/// What a [`Tag`] stands for: its class is in the upper byte, its part in the next, its number in the lower half.
enum Part {
    Class,
    Topic(u32),
    Rare(u32),
}

impl ApplicationClasses {
    /// All classes. A vocabulary of topics has at most this number of tags, for small runs.
    pub fn new(seed: u64, vocabulary_max: u32) -> Self {
        Self::with_rare_tags(seed, vocabulary_max, u32::MAX)
    }

    /// All classes, each with at most this number of rare tags.
    pub fn with_rare_tags(seed: u64, vocabulary_max: u32, rare_max: u32) -> Self {
        let topics = |class: &Class| {
            let vocabulary = class.vocabulary.min(vocabulary_max);
            Topics {
                class_filter: Descriptor::of_tag(class.name),
                popularity: Popularity::zipf(vocabulary, class.exponent),
                filters: filters(vocabulary, |topic| topic_text(class, topic)),
            }
        };
        let title = match rare_max {
            u32::MAX => "classes".to_owned(),
            _ => format!("classes, {rare_max} rare tags"),
        };
        Self { title, seed, rare_max, topics: CLASSES.iter().map(topics).collect() }
    }

    fn class_of(random: &mut fastrand::Rng) -> usize {
        let mut percent = random.u32(..100);
        for (place, class) in CLASSES.iter().enumerate() {
            match percent.checked_sub(class.share_percent) {
                Some(rest) => percent = rest,
                None => return place,
            }
        }
        unreachable!("the shares of the classes are 100 % together")
    }

    fn topic(&self, class: usize, random: &mut fastrand::Rng) -> Tag {
        tag(class, Part::Topic(self.topics[class].popularity.draw(random.u64(..))))
    }
}

fn topic_text(class: &Class, topic: u32) -> String {
    format!("{}-topic-{topic}", class.name)
}

fn tag(class: usize, part: Part) -> Tag {
    let (part, number) = match part {
        Part::Class => (0, 0),
        Part::Topic(number) => (1, number),
        Part::Rare(number) => (2, number),
    };
    Tag((class as u64) << 56 | part << 48 | u64::from(number))
}

fn part(tag: Tag) -> (usize, Part) {
    let number = tag.0 as u32;
    let part = match tag.0 >> 48 & 0xff {
        0 => Part::Class,
        1 => Part::Topic(number),
        _ => Part::Rare(number),
    };
    ((tag.0 >> 56) as usize, part)
}

impl TagSource for ApplicationClasses {
    fn title(&self) -> &str {
        &self.title
    }

    fn sets(&self) -> u32 {
        SETS_MAX
    }

    fn write_tags(&self, number: u32, out: &mut Vec<Tag>) {
        let mut random = random_of_set(self.seed, number);
        let place = Self::class_of(&mut random);
        let Class { topics: (least, most), rare: (_, rare_tags), .. } = CLASSES[place];
        out.clear();
        out.push(tag(place, Part::Class));
        out.push(tag(place, Part::Rare(random.u32(..rare_tags.min(self.rare_max)))));
        let wanted = out.len() + random.usize(least..=most);
        while out.len() < wanted {
            let topic = self.topic(place, &mut random);
            if !out.contains(&topic) {
                out.push(topic);
            }
        }
    }

    fn extra_tag(&self, number: u32, _: usize, random: &mut fastrand::Rng) -> Tag {
        let class = Self::class_of(&mut random_of_set(self.seed, number));
        self.topic(class, random)
    }

    fn write_text(&self, tag: Tag, out: &mut String) {
        let (class, part) = part(tag);
        let class = &CLASSES[class];
        *out = match part {
            Part::Class => class.name.to_owned(),
            Part::Topic(topic) => topic_text(class, topic),
            Part::Rare(number) => format!("{}-{}-{number}", class.name, class.rare.0),
        };
    }

    fn filter(&self, tag: Tag) -> Descriptor {
        match part(tag) {
            (class, Part::Class) => self.topics[class].class_filter,
            (class, Part::Topic(topic)) => self.topics[class].filters[topic as usize],
            (_, Part::Rare(_)) => {
                let mut text = String::new();
                self.write_text(tag, &mut text);
                Descriptor::of_tag(&text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_classes_and_parts_of_the_table() {
        const SETS: u32 = 20_000;
        let source = ApplicationClasses::new(1, 200);
        let (mut tags, mut all_tags) = (Vec::new(), 0);
        let mut classes = [0_u32; CLASSES.len()];
        for number in 0..SETS {
            source.write_tags(number, &mut tags);
            all_tags += tags.len();
            let class = part(tags[0]).0;
            classes[class] += 1;
            let count = |wanted: fn(&Part) -> bool| tags.iter().filter(|tag| wanted(&part(**tag).1)).count();
            let topics = count(|part| matches!(part, Part::Topic(_)));
            assert_eq!((count(|part| matches!(part, Part::Class)), tags.len() - topics), (1, 2));
            assert!((CLASSES[class].topics.0..=CLASSES[class].topics.1).contains(&topics));
            assert!(tags.iter().all(|tag| part(*tag).0 == class));
        }
        for (class, count) in CLASSES.iter().zip(classes) {
            let percent = f64::from(count) * 100.0 / f64::from(SETS);
            assert!((percent - f64::from(class.share_percent)).abs() < 1.5, "{}: {percent} %", class.name);
        }
        assert_eq!(CLASSES.iter().map(|class| class.share_percent).sum::<u32>(), 100);
        let mean = all_tags as f64 / f64::from(SETS);
        assert!((mean - 3.1).abs() < 0.1, "{mean} tags");
    }

    #[test]
    fn cached_filters_are_those_of_the_text() {
        let source = ApplicationClasses::new(1, 50);
        let (mut tags, mut text) = (Vec::new(), String::new());
        for number in 0..200 {
            source.write_tags(number, &mut tags);
            for &tag in &tags {
                source.write_text(tag, &mut text);
                assert_eq!(source.filter(tag), Descriptor::of_tag(&text), "{text}");
            }
        }
    }
}
