//! Tag sets: the advertisements of applications, for the experiments with TagNet.
//!
//! Source: TagNet16 §4.1, whose sets are not public. `docs/tag-sets.md` fixes ours, and how packets are drawn.
//!
//! | what | where |
//! | --- | --- |
//! | the sources of sets: generators, and a file | [`ZipfTags`], [`ApplicationClasses`], [`Users`], [`NameTags`], [`TagFile`] |
//! | sets with different descriptors, of any source | [`StoredSets`] |
//! | tags of packets that match, and of packets that do not | [`PacketTags`] |
//!
//! A source makes the tags of each set from its number, so that no set is kept: a stored set is a number of 4 bytes.

mod application_classes;
mod name_tags;
mod packet_tags;
mod stored_sets;
mod tag_file;
mod users;
mod zipf_tags;

pub use application_classes::{ApplicationClasses, RARE_TAGS};
pub use name_tags::NameTags;
pub use packet_tags::PacketTags;
pub use stored_sets::{BRANCH_SETS, StoredSets};
pub use tag_file::TagFile;
pub use users::{FITTED, UserModel, Users};
pub use zipf_tags::{EXPONENTS, ZipfTags};

use namewire_tagnet::Descriptor;

use crate::split_mix::split_mix;

/// A tag of a source; only the source knows what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u64);

/// Sets of tags by number.
pub trait TagSource: Sync {
    /// What it is called.
    fn title(&self) -> &str;

    /// The number of sets. A source that makes up sets has [`SETS_MAX`]; several may be equal.
    fn sets(&self) -> u32;

    /// Replaces `out` by the tags of a set, each once, in any order.
    fn write_tags(&self, number: u32, out: &mut Vec<Tag>);

    /// A tag that sets of this kind have, to be added to a packet for set `number`, which has `tags` tags so far.
    fn extra_tag(&self, number: u32, tags: usize, random: &mut fastrand::Rng) -> Tag;

    /// Replaces `out` by the tag's text.
    fn write_text(&self, tag: Tag, out: &mut String);

    /// The descriptor of one tag.
    fn filter(&self, tag: Tag) -> Descriptor {
        let mut text = String::new();
        self.write_text(tag, &mut text);
        Descriptor::of_tag(&text)
    }
}

/// Sets of a source that makes them up.
pub const SETS_MAX: u32 = u32::MAX;

/// The random numbers of one set.
fn random_of_set(seed: u64, number: u32) -> fastrand::Rng {
    fastrand::Rng::with_seed(split_mix(seed ^ split_mix(u64::from(number))))
}

/// The descriptors of the tags of a vocabulary, so that a set with a popular tag costs no hash.
fn filters(tags: u32, text: impl Fn(u32) -> String) -> Vec<Descriptor> {
    (0..tags).map(|tag| Descriptor::of_tag(&text(tag))).collect()
}
