//! Advertisements: through which faces was each descriptor advertised, and what does the router announce on each link?
//!
//! A router hears advertisements from its applications and, along each tree, announcements from its neighbours. To each
//! neighbour in a tree it announces what it received through all its other faces in that tree. So every router of the
//! tree knows the faces that lead to a matching application.
//!
//! Source: decision 0009; TagNet16 §3.1.1 for the relation of descriptors, trees and interfaces.
//!
//! # Redundant announcements
//! The router does not announce a push descriptor on a link if it announces a proper subset of it there, also for
//! pushes: every push that matches the descriptor matches the subset, too. A descriptor that serves pulls is always
//! announced, because the largest subset decides where a pull goes. So for pushes, a link announces exactly the minimal
//! descriptors, in whatever order descriptors came and went.
//!
//! A change becomes queued work: [`Advertisements::settle`] does a bounded part of it at a time ([`settling`]). When a
//! small set arrives or goes, every larger set may have to be announced or withdrawn, on every link. An arrival takes a
//! comparison of all descriptors with the new one, some 1 ns each. A table of supersets was refused, because with 192
//! positions it visits nearly all descriptors too.
//!
//! # Departures
//! A face that is gone, or a neighbour that begins its announcements again, withdraws everything at once. The router
//! records this departure. From then on, everything that the face advertised before counts as withdrawn. The router
//! removes the branches later, as part of the queued work ([`departures`]).
//!
//! # Limits
//! [`AdvertisementLimits`]: descriptors in total, descriptors of each face, and a reserve for applications of this
//! machine. A face that advertises more gets [`AdvertisementRefusal::FaceShareUsed`]; what it advertised before stays.
//! Withdrawn descriptors stay until the neighbours know of the withdrawal. With these, the table has at most twice the
//! limit.

mod departures;
mod link_state;
mod settling;
#[cfg(test)]
mod tests;

use crate::{
    Descriptor, TagSet,
    forwarder::{Branch, BranchSet, Serves},
    matching::{Entry, SubsetTable, trie::Trie},
};
use departures::Departures;
use link_state::LinkState;
use namewire_packet::FaceId;
use settling::{Cover, Hold, Job};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A neighbour in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeLink {
    /// The tree.
    pub tree: u16,
    /// The face of the neighbour.
    pub face: FaceId,
}

/// What a neighbour is to know from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The neighbour.
    pub link: TreeLink,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// The packets that are wanted for it; `None` withdraws it.
    pub serves: Option<Serves>,
}

/// How much may be advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisementLimits {
    /// Descriptors in all.
    pub descriptors: usize,
    /// Of these, the number that only applications here may use. Neighbours cannot shut them out.
    pub reserved: usize,
    /// Descriptors of one face, in all trees; each set of tags of an application counts.
    pub per_face: usize,
}

/// Why an advertisement was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdvertisementRefusal {
    /// The router knows as many descriptors as it may.
    #[error("the router knows as many descriptors as it may")]
    Full,
    /// The face has advertised as many descriptors as it may.
    #[error("the face has advertised as many descriptors as it may")]
    FaceShareUsed,
}

/// A descriptor, and where it was advertised.
#[derive(Debug, Default)]
struct Known {
    descriptor: Descriptor,
    branches: BTreeMap<TreeLink, Advertised>,
    tag_sets: Vec<AdvertisedTags>,
    /// The branches for pushes as neighbours know them, and what holds the descriptor back: see [`settling`].
    pushers: Vec<TreeLink>,
    covers: Vec<Cover>,
    is_queued: bool,
}

#[derive(Clone, Copy, Debug)]
struct Advertised {
    serves: Serves,
    is_application: bool,
    /// When, by [`Departures::now`].
    at: u64,
}

/// A set of tags that an application advertised in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AdvertisedTags {
    link: TreeLink,
    tags: TagSet,
    serves: Serves,
}

/// All advertisements that a router knows.
#[derive(Debug)]
pub struct Advertisements {
    limits: AdvertisementLimits,
    /// Descriptors; the value is the index of what the router knows of the descriptor.
    trie: Trie,
    known: Vec<Known>,
    free: Vec<u32>,
    /// Descriptors with branches. Others wait until neighbours know that they were withdrawn.
    advertised: usize,
    links: BTreeMap<TreeLink, LinkState>,
    /// Advertisements of each face.
    per_face: BTreeMap<FaceId, usize>,
    departures: Departures,
    /// Descriptors whose branches have changed since they were last taken.
    changed: BTreeSet<Descriptor>,
    /// Descriptors of which neighbours are to be told, and the one at which work is.
    queue: VecDeque<u32>,
    job: Option<Job>,
    /// What each descriptor holds back.
    holds: BTreeSet<Hold>,
}

impl Advertisements {
    /// None, with room for these.
    pub fn new(limits: AdvertisementLimits) -> Self {
        Advertisements {
            limits,
            trie: Trie::default(),
            known: Vec::new(),
            free: Vec::new(),
            advertised: 0,
            links: BTreeMap::new(),
            per_face: BTreeMap::new(),
            departures: Departures::default(),
            changed: BTreeSet::new(),
            queue: VecDeque::new(),
            job: None,
            holds: BTreeSet::new(),
        }
    }

    /// Number of descriptors.
    pub fn len(&self) -> usize {
        self.advertised
    }

    /// True without descriptors.
    pub fn is_empty(&self) -> bool {
        self.advertised == 0
    }

    /// At most `most` of the descriptors whose branches have changed since they were last taken, with what they are
    /// now.
    pub fn take_changed(&mut self, most: usize) -> Vec<(Descriptor, Option<BranchSet>)> {
        let rest = self.changed.iter().nth(most).copied().map(|first| self.changed.split_off(&first));
        let changed = std::mem::replace(&mut self.changed, rest.unwrap_or_default());
        let present = |descriptor: Descriptor| {
            let known = self.trie.get(&descriptor).map(|index| &self.known[index as usize]);
            (descriptor, known.filter(|known| !known.branches.is_empty()).map(Known::branch_set))
        };
        changed.into_iter().map(present).collect()
    }

    /// True if more has changed than was taken.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The descriptors, with their branches, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (Descriptor, BranchSet)> {
        let known = self.known.iter().filter(|known| !known.branches.is_empty());
        known.map(|known| (known.descriptor, known.branch_set()))
    }

    /// A neighbour joined the tree: it will be told everything.
    pub fn link_up(&mut self, link: TreeLink) {
        self.links.insert(link, LinkState::new());
    }

    /// A neighbour left the tree, with what it had announced.
    pub fn link_down(&mut self, link: TreeLink) {
        self.links.remove(&link);
        self.withdraw_all(link);
    }

    /// An application, or a neighbour, is gone from a tree: what it advertised there will be withdrawn.
    pub fn withdraw_all(&mut self, link: TreeLink) {
        if self.per_face.contains_key(&link.face) {
            self.departures.note(link, self.known.len());
        }
    }

    /// Removes what a face advertised before it departed, if it has such a branch of this descriptor.
    fn remove_departed(&mut self, index: u32, link: TreeLink) {
        let known = &mut self.known[index as usize];
        let Some(branch) = known.branches.get(&link) else { return };
        if !self.departures.is_over(link, branch.at) {
            return;
        }
        let sets = known.tag_sets.len();
        known.tag_sets.retain(|set| set.link != link);
        let advertisements = (sets - known.tag_sets.len()).max(1);
        self.count(link.face, -(advertisements as isize));
        self.set_branch(index, link, None);
    }

    /// A neighbour announced a descriptor, or withdrew it (`None`).
    ///
    /// # Errors
    /// If a limit is met.
    pub fn announced(
        &mut self,
        link: TreeLink,
        descriptor: &Descriptor,
        serves: Option<Serves>,
    ) -> Result<(), AdvertisementRefusal> {
        let known = self.trie.get(descriptor);
        if let Some(index) = known {
            self.remove_departed(index, link);
        }
        let had = known.filter(|index| self.known[*index as usize].branches.contains_key(&link));
        let at = self.departures.now();
        let advertised = serves.map(|serves| Advertised { serves, is_application: false, at });
        let index = match had {
            None if advertised.is_none() => return Ok(()),
            None => {
                let room = self.limits.descriptors.saturating_sub(self.limits.reserved);
                self.admit(link.face, descriptor, known, room)?
            }
            Some(index) => index,
        };
        if had.is_some() && advertised.is_none() {
            self.count(link.face, -1);
        }
        self.set_branch(index, link, advertised);
        Ok(())
    }

    /// An application advertised a set of tags, or changed what the set serves.
    ///
    /// # Errors
    /// If a limit is met.
    pub fn advertise(&mut self, link: TreeLink, tags: TagSet, serves: Serves) -> Result<(), AdvertisementRefusal> {
        let descriptor = tags.descriptor();
        let known = self.trie.get(&descriptor);
        if let Some(index) = known {
            self.remove_departed(index, link);
        }
        let index = match known {
            Some(index) if self.tag_set(index, link, &tags).is_some() => index,
            known => self.admit(link.face, &descriptor, known, self.limits.descriptors)?,
        };
        match self.tag_set(index, link, &tags) {
            Some(place) => self.known[index as usize].tag_sets[place].serves = serves,
            None => self.known[index as usize].tag_sets.push(AdvertisedTags { link, tags, serves }),
        }
        self.set_application_branch(index, link);
        Ok(())
    }

    /// An application withdraws a set of tags; false if it had not advertised it.
    pub fn withdraw(&mut self, link: TreeLink, tags: &TagSet) -> bool {
        let Some(index) = self.trie.get(&tags.descriptor()) else { return false };
        self.remove_departed(index, link);
        let Some(place) = self.tag_set(index, link, tags) else { return false };
        self.known[index as usize].tag_sets.remove(place);
        self.count(link.face, -1);
        self.set_application_branch(index, link);
        true
    }

    fn tag_set(&self, index: u32, link: TreeLink, tags: &TagSet) -> Option<usize> {
        self.known[index as usize].tag_sets.iter().position(|set| set.link == link && set.tags == *tags)
    }

    /// The branch of an application serves what its sets of tags serve together.
    fn set_application_branch(&mut self, index: u32, link: TreeLink) {
        let sets = self.known[index as usize].tag_sets.iter().filter(|set| set.link == link);
        let serves = sets.map(|set| set.serves).reduce(Serves::union);
        let at = self.departures.now();
        self.set_branch(index, link, serves.map(|serves| Advertised { serves, is_application: true, at }));
    }

    /// Makes room for one more advertisement of a face, and returns the index of its descriptor, which is `known` or
    /// new. A new descriptor needs less than `room` of them.
    fn admit(
        &mut self,
        face: FaceId,
        descriptor: &Descriptor,
        known: Option<u32>,
        room: usize,
    ) -> Result<u32, AdvertisementRefusal> {
        if self.per_face.get(&face).is_some_and(|count| *count >= self.limits.per_face) {
            return Err(AdvertisementRefusal::FaceShareUsed);
        }
        let is_advertised = known.is_some_and(|index| !self.known[index as usize].branches.is_empty());
        if !is_advertised && self.advertised >= room {
            return Err(AdvertisementRefusal::Full);
        }
        let index = match known {
            Some(index) => index,
            None if self.trie.len() >= 2 * self.limits.descriptors => return Err(AdvertisementRefusal::Full),
            None => self.add(descriptor),
        };
        self.count(face, 1);
        Ok(index)
    }

    fn add(&mut self, descriptor: &Descriptor) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.known.push(Known::default());
            self.known.len() as u32 - 1
        });
        self.known[index as usize].descriptor = *descriptor;
        self.trie.insert(Entry { descriptor: *descriptor, value: index });
        index
    }

    fn count(&mut self, face: FaceId, change: isize) {
        let count = self.per_face.entry(face).or_default();
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.per_face.remove(&face);
        }
    }

    /// Sets or removes a branch of a descriptor; the other neighbours of the tree will be told.
    fn set_branch(&mut self, index: u32, link: TreeLink, branch: Option<Advertised>) {
        let known = &mut self.known[index as usize];
        self.changed.insert(known.descriptor);
        let had_any = !known.branches.is_empty();
        match branch {
            Some(branch) => drop(known.branches.insert(link, branch)),
            None => drop(known.branches.remove(&link)),
        }
        self.advertised = self.advertised + usize::from(!known.branches.is_empty()) - usize::from(had_any);
        self.enqueue(index);
    }

    /// Descriptors that a neighbour may still announce.
    pub fn room_of(&self, face: FaceId) -> usize {
        let of_face = self.limits.per_face.saturating_sub(self.per_face.get(&face).copied().unwrap_or(0));
        let in_all = self.limits.descriptors.saturating_sub(self.limits.reserved).saturating_sub(self.advertised);
        of_face.min(in_all)
    }

    /// The descriptors that a neighbour was told, with what they serve.
    pub fn announced_on(&self, link: TreeLink) -> BTreeMap<Descriptor, Serves> {
        let told = self.links.get(&link).into_iter().flat_map(LinkState::told);
        told.map(|(index, serves)| (self.known[index as usize].descriptor, serves)).collect()
    }

    /// The neighbours of all trees.
    pub fn links(&self) -> BTreeSet<TreeLink> {
        self.links.keys().copied().collect()
    }
}

impl Known {
    fn branch_set(&self) -> BranchSet {
        let branch = |(link, advertised): (&TreeLink, &Advertised)| Branch {
            tree: link.tree,
            face: link.face,
            serves: advertised.serves,
            is_application: advertised.is_application,
        };
        // A set that serves several trees is told once.
        let tag_sets: BTreeSet<_> = self.tag_sets.iter().map(|set| (set.link.face, set.tags.clone())).collect();
        BranchSet::new(self.branches.iter().map(branch).collect(), tag_sets.into_iter().collect())
    }

    /// What the branches beyond the other faces of the tree ask for.
    fn wanted_by_others(&self, link: TreeLink) -> Option<Serves> {
        let others = self.branches.iter().filter(|(branch, _)| branch.tree == link.tree && branch.face != link.face);
        others.map(|(_, advertised)| advertised.serves).reduce(Serves::union)
    }
}
