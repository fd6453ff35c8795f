//! Advertisements: which descriptors were advertised beyond which face, and what to announce on each link?
//!
//! A router hears advertisements from its applications and, along each tree, announcements from its neighbours. To each
//! neighbour in a tree it announces what it heard through all its other faces in that tree. So every router of the tree
//! knows through which face a matching application is.
//!
//! Source: decision 0009; TagNet16 §3.1.1 for the relation of descriptors, trees and interfaces.
//!
//! # Redundant announcements
//! A descriptor that serves pushes is held back from a link where a proper subset of it is announced for pushes: every
//! push that matches the descriptor matches the subset too. A descriptor that serves pulls is always announced, because
//! the largest subset decides where a pull goes. Invariant: on each link, each descriptor for which other faces want
//! pushes is announced for pushes, or is held back by a proper subset that is announced for pushes.
//!
//! If a subset of an announced descriptor comes later, the descriptor stays announced: redundant, but right. When a
//! descriptor is withdrawn, each descriptor that it held back finds another that holds it back, or is announced. So an
//! advertisement costs one search for each link, and a withdrawal one for each descriptor held back. Searching for the
//! minimal descriptors again at each change was refused: it needs all supersets of a descriptor, which no table finds
//! fast.
//!
//! # Limits
//! [`AdvertisementLimits`]: descriptors in all, for each face, and a reserve for applications here. A face that
//! advertises more gets [`AdvertisementRefusal::FaceShareUsed`]; what it advertised before stays.

mod link_state;
#[cfg(test)]
mod tests;

use crate::{
    Descriptor, TagSet,
    forwarder::{Branch, BranchSet, Serves},
    matching::{Entry, SubsetTable, trie::Trie},
};
use link_state::LinkState;
use namewire_packet::FaceId;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

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
}

#[derive(Clone, Copy, Debug)]
struct Advertised {
    serves: Serves,
    is_application: bool,
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
    links: BTreeMap<TreeLink, LinkState>,
    /// Advertisements of each face.
    per_face: BTreeMap<FaceId, usize>,
    /// Descriptors whose branches have changed since they were last taken.
    changed: BTreeSet<Descriptor>,
}

impl Advertisements {
    /// None, with room for these.
    pub fn new(limits: AdvertisementLimits) -> Self {
        Advertisements {
            limits,
            trie: Trie::default(),
            known: Vec::new(),
            free: Vec::new(),
            links: BTreeMap::new(),
            per_face: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Number of descriptors.
    pub fn len(&self) -> usize {
        self.trie.len()
    }

    /// True without descriptors.
    pub fn is_empty(&self) -> bool {
        self.trie.is_empty()
    }

    /// The descriptors whose branches have changed since this was last asked, with what they are now.
    pub fn take_changed(&mut self) -> Vec<(Descriptor, Option<BranchSet>)> {
        let changed = std::mem::take(&mut self.changed);
        let present = |descriptor: Descriptor| {
            let index = self.trie.get(&descriptor);
            (descriptor, index.map(|index| self.known[index as usize].branch_set()))
        };
        changed.into_iter().map(present).collect()
    }

    /// The descriptors, with their branches, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (Descriptor, BranchSet)> {
        let known = self.known.iter().filter(|known| !known.branches.is_empty());
        known.map(|known| (known.descriptor, known.branch_set()))
    }

    /// A neighbour joined the tree: it is told everything, in `out`.
    pub fn link_up(&mut self, link: TreeLink, out: &mut Vec<Announcement>) {
        self.links.insert(link, LinkState::default());
        let wanted = |known: &Known| known.branches.keys().any(|branch| branch.tree == link.tree);
        let mut all: Vec<u32> =
            (0..self.known.len() as u32).filter(|index| wanted(&self.known[*index as usize])).collect();
        // Small sets first: they hold the larger ones back.
        all.sort_by_key(|index| self.known[*index as usize].descriptor.weight());
        all.into_iter().for_each(|index| self.refresh(link, index, out));
    }

    /// A neighbour left the tree, with what it had announced.
    pub fn link_down(&mut self, link: TreeLink, out: &mut Vec<Announcement>) {
        self.links.remove(&link);
        self.withdraw_all(link, out);
    }

    /// An application, or a neighbour, is gone from a tree: withdraws what it advertised there.
    pub fn withdraw_all(&mut self, link: TreeLink, out: &mut Vec<Announcement>) {
        if !self.per_face.contains_key(&link.face) {
            return;
        }
        let has_any = |index: &u32| self.known[*index as usize].branches.contains_key(&link);
        let all: Vec<u32> = (0..self.known.len() as u32).filter(has_any).collect();
        for index in all {
            let known = &mut self.known[index as usize];
            let sets = known.tag_sets.len();
            known.tag_sets.retain(|set| set.link != link);
            let advertisements = (sets - known.tag_sets.len()).max(1);
            self.count(link.face, -(advertisements as isize));
            self.set_branch(index, link, None, out);
        }
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
        out: &mut Vec<Announcement>,
    ) -> Result<(), AdvertisementRefusal> {
        let known = self.trie.get(descriptor);
        let had = known.filter(|index| self.known[*index as usize].branches.contains_key(&link));
        let advertised = serves.map(|serves| Advertised { serves, is_application: false });
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
        self.set_branch(index, link, advertised, out);
        Ok(())
    }

    /// An application advertised a set of tags, or changed what the set serves.
    ///
    /// # Errors
    /// If a limit is met.
    pub fn advertise(
        &mut self,
        link: TreeLink,
        tags: TagSet,
        serves: Serves,
        out: &mut Vec<Announcement>,
    ) -> Result<(), AdvertisementRefusal> {
        let descriptor = tags.descriptor();
        let index = match self.trie.get(&descriptor) {
            Some(index) if self.tag_set(index, link, &tags).is_some() => index,
            known => self.admit(link.face, &descriptor, known, self.limits.descriptors)?,
        };
        match self.tag_set(index, link, &tags) {
            Some(place) => self.known[index as usize].tag_sets[place].serves = serves,
            None => self.known[index as usize].tag_sets.push(AdvertisedTags { link, tags, serves }),
        }
        self.set_application_branch(index, link, out);
        Ok(())
    }

    /// An application withdraws a set of tags; false if it had not advertised it.
    pub fn withdraw(&mut self, link: TreeLink, tags: &TagSet, out: &mut Vec<Announcement>) -> bool {
        let Some(index) = self.trie.get(&tags.descriptor()) else { return false };
        let Some(place) = self.tag_set(index, link, tags) else { return false };
        self.known[index as usize].tag_sets.remove(place);
        self.count(link.face, -1);
        self.set_application_branch(index, link, out);
        true
    }

    fn tag_set(&self, index: u32, link: TreeLink, tags: &TagSet) -> Option<usize> {
        self.known[index as usize].tag_sets.iter().position(|set| set.link == link && set.tags == *tags)
    }

    /// The branch of an application serves what its sets of tags serve together.
    fn set_application_branch(&mut self, index: u32, link: TreeLink, out: &mut Vec<Announcement>) {
        let sets = self.known[index as usize].tag_sets.iter().filter(|set| set.link == link);
        let serves = sets.map(|set| set.serves).reduce(Serves::union);
        self.set_branch(index, link, serves.map(|serves| Advertised { serves, is_application: true }), out);
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
        let index = match known {
            Some(index) => index,
            None if self.trie.len() >= room => return Err(AdvertisementRefusal::Full),
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

    /// Sets or removes a branch of a descriptor, and tells the other neighbours of the tree.
    fn set_branch(&mut self, index: u32, link: TreeLink, branch: Option<Advertised>, out: &mut Vec<Announcement>) {
        self.changed.insert(self.known[index as usize].descriptor);
        let known = &mut self.known[index as usize];
        match branch {
            Some(branch) => drop(known.branches.insert(link, branch)),
            None => drop(known.branches.remove(&link)),
        }
        let others = |other: &TreeLink| other.tree == link.tree && other.face != link.face;
        let others: Vec<TreeLink> = self.links.keys().copied().filter(others).collect();
        others.into_iter().for_each(|other| self.refresh(other, index, out));
        if self.known[index as usize].branches.is_empty() {
            self.trie.remove(&self.known[index as usize].descriptor);
            self.known[index as usize] = Known::default();
            self.free.push(index);
        }
    }

    /// Makes a link announce a descriptor as the branches beyond the other faces ask for.
    fn refresh(&mut self, link: TreeLink, index: u32, out: &mut Vec<Announcement>) {
        let wanted = self.known[index as usize].wanted_by_others(link);
        let wants_push = wanted.is_some_and(|serves| serves.meets(Serves::PUSH));
        let Some(state) = self.links.get(&link) else { return };
        let announces_push = state.announces_push(index);
        if wants_push && !announces_push && !state.is_held(index) {
            self.hold_or_announce(link, index);
        } else if !wants_push && state.is_held(index) {
            self.state(link).release(index);
        } else if !wants_push && announces_push {
            self.state(link).set_push(index, false);
            for held in self.state(link).take_held_by(index) {
                self.hold_or_announce(link, held);
                self.tell(link, held, out);
            }
        }
        self.tell(link, index, out);
    }

    fn state(&mut self, link: TreeLink) -> &mut LinkState {
        self.links.get_mut(&link).expect("a link that is up")
    }

    /// Lets another descriptor hold this one back, or announces it for pushes.
    fn hold_or_announce(&mut self, link: TreeLink, index: u32) {
        let descriptor = self.known[index as usize].descriptor;
        let state = &self.links[&link];
        let mut holder = None;
        self.trie.find_all(&descriptor, |value| match value != index && state.announces_push(value) {
            true => {
                holder = Some(value);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        });
        match holder {
            Some(holder) => self.state(link).hold(index, holder),
            None => self.state(link).set_push(index, true),
        }
    }

    /// Tells the neighbour what changed.
    fn tell(&mut self, link: TreeLink, index: u32, out: &mut Vec<Announcement>) {
        let known = &self.known[index as usize];
        let wants_pull = known.wanted_by_others(link).is_some_and(|serves| serves.meets(Serves::PULL));
        let descriptor = known.descriptor;
        if let Some(serves) = self.state(link).changed(index, wants_pull) {
            out.push(Announcement { link, descriptor, serves });
        }
    }

    /// Descriptors that a neighbour may still announce.
    pub fn room_of(&self, face: FaceId) -> usize {
        let of_face = self.limits.per_face.saturating_sub(self.per_face.get(&face).copied().unwrap_or(0));
        let in_all = self.limits.descriptors.saturating_sub(self.limits.reserved).saturating_sub(self.trie.len());
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
