//! Branches: where the applications that advertised a descriptor are.

use super::Choice;
use crate::TagSet;
use namewire_packet::{FaceId, tag::Tags};

/// The packets that an advertisement asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serves(u8);

impl Serves {
    /// Pulls: the application answers them.
    pub const PULL: Serves = Serves(1);
    /// Pushes: the application wants them.
    pub const PUSH: Serves = Serves(2);
    /// Both.
    pub const BOTH: Serves = Serves(3);

    /// True if it asks for one of the packets that the other asks for.
    pub const fn meets(self, other: Serves) -> bool {
        self.0 & other.0 != 0
    }

    /// Its number in packets and commands: 1 pulls, 2 pushes, 3 both.
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    /// What this number stands for, if anything.
    pub const fn from_byte(byte: u8) -> Option<Serves> {
        if matches!(byte, 1..=3) { Some(Serves(byte)) } else { None }
    }

    /// What both together ask for.
    #[must_use]
    pub const fn union(self, other: Serves) -> Serves {
        Serves(self.0 | other.0)
    }
}

/// A face of a tree, beyond which a descriptor was advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// The tree.
    pub tree: u16,
    /// The face.
    pub face: FaceId,
    /// The packets that are wanted there.
    pub serves: Serves,
    /// An application on this machine, whose tags are known.
    pub is_application: bool,
}

/// All branches of one descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BranchSet {
    branches: Vec<Branch>,
    /// What applications here advertised: different sets of tags may have one descriptor.
    tag_sets: Vec<(FaceId, TagSet)>,
}

impl BranchSet {
    /// A set of these branches, with the tags that each application among them advertised.
    pub fn new(mut branches: Vec<Branch>, tag_sets: Vec<(FaceId, TagSet)>) -> Self {
        branches.sort_unstable();
        BranchSet { branches, tag_sets }
    }

    /// The branches, in order.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// The sets of tags that an application here advertised.
    pub fn tag_sets_of(&self, application: FaceId) -> impl Iterator<Item = &TagSet> {
        self.tag_sets.iter().filter(move |(face, _)| *face == application).map(|(_, set)| set)
    }

    /// The branches that a packet may take. Adds to `false_positives` the applications whose tags are not among the
    /// packet's.
    pub(super) fn chosen_by(&self, choice: &Choice<'_>, false_positives: &mut u32) -> impl Iterator<Item = Branch> {
        self.branches.iter().copied().filter(move |branch| {
            let is_choice =
                branch.tree == choice.tree && branch.face != choice.from && branch.serves.meets(choice.serves);
            let is_wanted = is_choice && (!branch.is_application || self.wants(branch.face, choice.tags));
            *false_positives += u32::from(is_choice && !is_wanted);
            is_wanted
        })
    }

    /// True if the application advertised a set of tags that are all among these.
    fn wants(&self, application: FaceId, tags: Tags<'_>) -> bool {
        self.tag_sets_of(application).any(|set| set.is_contained_in(tags.iter()))
    }
}
