//! Packet tags: the tags of packets that match stored sets, and of packets that match none.

use namewire_tagnet::{TagSet, TagSetError};

use super::{StoredSets, Tag, TagSource};

/// Draws of one extra tag, if those before were in the packet already.
const TRIES: usize = 16;

/// Draws packets. Memory: 4 bytes for each stored set.
pub struct PacketTags<'s> {
    source: &'s dyn TagSource,
    /// The numbers of all stored sets.
    stored: Vec<u32>,
    random: fastrand::Rng,
}

impl<'s> PacketTags<'s> {
    /// Packets for these sets, drawn uniformly from all of them.
    pub fn new(source: &'s dyn TagSource, stored: &StoredSets, seed: u64) -> Self {
        let stored = stored.numbered.iter().map(|entry| entry.value).collect();
        Self { source, stored, random: fastrand::Rng::with_seed(seed) }
    }

    /// The tags of a stored set, and this number of extra tags.
    ///
    /// # Errors
    /// If these are more than a packet can carry.
    pub fn matching(&mut self, extra_tags: usize) -> Result<TagSet, TagSetError> {
        let number = self.stored[self.random.usize(..self.stored.len())];
        let mut tags: Vec<Tag> = Vec::new();
        self.source.write_tags(number, &mut tags);
        for _ in 0..extra_tags {
            let extra = (0..TRIES).map(|_| self.source.extra_tag(number, tags.len(), &mut self.random));
            tags.extend(extra.into_iter().find(|extra| !tags.contains(extra)));
        }
        let text = |tag: &Tag| {
            let mut text = String::new();
            self.source.write_text(*tag, &mut text);
            text
        };
        TagSet::new(tags.iter().map(text))
    }

    /// As [`PacketTags::matching`], with 0 to `extra_tags_max` extra tags, each number with the same probability.
    ///
    /// # Errors
    /// As there.
    pub fn matching_up_to(&mut self, extra_tags_max: usize) -> Result<TagSet, TagSetError> {
        let extra_tags = self.random.usize(..=extra_tags_max);
        self.matching(extra_tags)
    }

    /// Tags that no set has, as many as a stored set has.
    ///
    /// # Errors
    /// As [`PacketTags::matching`].
    pub fn absent(&mut self) -> Result<TagSet, TagSetError> {
        let number = self.stored[self.random.usize(..self.stored.len())];
        let mut tags = Vec::new();
        self.source.write_tags(number, &mut tags);
        TagSet::new(tags.iter().map(|_| format!("absent-{}", self.random.u64(..))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag_sets::{ApplicationClasses, NameTags, TagFile, Users, ZipfTags};
    use std::collections::HashSet;

    #[test]
    fn a_packet_has_a_stored_set_and_extra_tags() -> anyhow::Result<()> {
        let file = TagFile::of_text("f", &b"a b c d e f g\nh i j k\nl m n\no\n"[..])?;
        let names = NameTags::invented(1, 500)?;
        let with_www = NameTags::invented(1, 500)?.with_www();
        let (classes, users) = (ApplicationClasses::new(1, 100), Users::new(1, 100));
        let sources: [&dyn TagSource; 6] = [&ZipfTags::new(1, 1_000, 1.0), &classes, &users, &names, &with_www, &file];
        for source in sources {
            let stored = StoredSets::draw(source, 200)?;
            let descriptors: Vec<_> = stored.numbered.iter().map(|entry| entry.descriptor).collect();
            let mut packets = PacketTags::new(source, &stored, 1);
            for extra_tags in [0, 1, 2, 4] {
                for _ in 0..20 {
                    let tags = packets.matching(extra_tags)?;
                    let is_subset = |stored: &_| namewire_tagnet::Descriptor::is_subset_of(stored, &tags.descriptor());
                    assert!(descriptors.iter().any(is_subset), "{}: {tags}", source.title());
                    assert!(extra_tags > 0 || descriptors.contains(&tags.descriptor()));
                }
            }
            let lengths: HashSet<usize> =
                (0..50).map(|_| packets.matching_up_to(2).map_or(0, |tags| tags.tags().len())).collect();
            assert!(lengths.len() > 1 && !lengths.contains(&0));
            assert!(packets.absent()?.tags().iter().all(|tag| tag.starts_with("absent-")));
        }
        Ok(())
    }
}
