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
//! A change for pulls is announced at once. One for pushes becomes queued work: [`Advertisements::settle`] does a
//! bounded part of it at a time ([`settling`]). When a small set arrives or goes, every larger set may have to be
//! announced or withdrawn, on every link. So the changes that wait are dealt with together, in one walk through all
//! descriptors. A table of supersets was refused, because with 192 positions it visits nearly all descriptors too. In a
//! tree without another neighbour nothing waits.
//!
//! # Memory
//! What the router knows of a descriptor is a number beside it in the table by which workers forward
//! ([`LiveTables`]): where it was advertised, and what each neighbour was told. Descriptors of which it knows the same
//! have the same number. There is no other list of descriptors, but for those whose changes wait.
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
//! limit. [`settling`] limits the queue.

mod departures;
mod known;
mod link_state;
mod settling;
#[cfg(test)]
mod tests;
mod tree_link;
mod walk;

pub use known::Known;
pub use tree_link::TreeLink;

use crate::{
    Descriptor, TagSet,
    forwarder::{BranchSet, Kept, LiveTables, Serves},
    matching::burst_trie::BuildError,
};
use departures::Departures;
use known::{Advertised, AdvertisedTags};
use link_state::LinkState;
use namewire_packet::FaceId;
use settling::{Job, Queue};
use std::collections::{BTreeMap, BTreeSet};

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

/// All advertisements that a router knows.
#[derive(Debug)]
pub struct Advertisements {
    limits: AdvertisementLimits,
    tables: LiveTables<Known>,
    /// Descriptors with branches. Others wait until neighbours know that they were withdrawn.
    advertised: usize,
    links: BTreeMap<TreeLink, LinkState>,
    /// Lives of links so far.
    lives: u64,
    /// Advertisements of each face.
    per_face: BTreeMap<FaceId, usize>,
    departures: Departures,
    /// What neighbours are to be told with the next call of [`Advertisements::settle`].
    told: Vec<Announcement>,
    /// Descriptors of which neighbours are to be told, and the job that tells them.
    queue: Queue,
    job: Option<Job>,
}

impl Advertisements {
    /// None, with room for these.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(limits: AdvertisementLimits) -> Result<Self, BuildError> {
        Ok(Advertisements {
            limits,
            tables: LiveTables::new(2 * limits.descriptors)?,
            advertised: 0,
            links: BTreeMap::new(),
            lives: 0,
            per_face: BTreeMap::new(),
            departures: Departures::default(),
            told: Vec::new(),
            queue: Queue::default(),
            job: None,
        })
    }

    /// Number of descriptors.
    pub fn len(&self) -> usize {
        self.advertised
    }

    /// True without descriptors.
    pub fn is_empty(&self) -> bool {
        self.advertised == 0
    }

    /// The tables by which workers forward.
    pub fn tables(&self) -> &LiveTables<Known> {
        &self.tables
    }

    /// The same, to publish trees, to do waiting steps and to build another trie. Only advertisements change
    /// descriptors.
    pub fn tables_mut(&mut self) -> &mut LiveTables<Known> {
        &mut self.tables
    }

    /// Descriptors with their branches, in no order: not many more than `most`, all of them if there are fewer.
    pub fn entries(&self, most: usize) -> impl Iterator<Item = (Descriptor, BranchSet)> {
        let entries = self.tables.entries(most).filter(|(_, known)| !known.branches.is_empty());
        entries.map(|(descriptor, known)| (descriptor, known.branch_set()))
    }

    /// The number of descriptors that were advertised in each tree.
    pub fn per_tree(&self) -> BTreeMap<u16, u64> {
        let mut per_tree = BTreeMap::new();
        for (known, descriptors) in self.tables.uses() {
            let trees: BTreeSet<u16> = known.branches.iter().map(|(link, _)| link.tree).collect();
            trees.into_iter().for_each(|tree| *per_tree.entry(tree).or_default() += u64::from(descriptors));
        }
        per_tree
    }

    /// A neighbour joined the tree, or has forgotten what it was told: it will be told everything.
    pub fn link_up(&mut self, link: TreeLink) {
        self.forget_waiting(link);
        self.lives += 1;
        self.links.insert(link, LinkState::new(self.lives));
    }

    /// A neighbour left the tree, with what it had announced.
    pub fn link_down(&mut self, link: TreeLink) {
        self.forget_waiting(link);
        self.links.remove(&link);
        self.withdraw_all(link);
    }

    /// What waits for a neighbour belongs to the life of its link that ends now. If it were told in the next life, the
    /// router would not know of it, and would never withdraw it.
    fn forget_waiting(&mut self, link: TreeLink) {
        self.told.retain(|waiting| waiting.link != link);
    }

    /// An application, or a neighbour, is gone from a tree: what it advertised there will be withdrawn.
    pub fn withdraw_all(&mut self, link: TreeLink) {
        if self.per_face.contains_key(&link.face) {
            self.departures.note(link);
        }
    }

    /// What is known of a descriptor, without what a face advertised before it departed.
    fn known_without_departed(&mut self, descriptor: &Descriptor, link: TreeLink) -> Option<Known> {
        if !self.departures.is_settled() {
            self.remove_departed(descriptor, link);
        }
        self.tables.get(descriptor).map(|known| Known::clone(known))
    }

    /// Removes what a face advertised before it departed, if it has such a branch of this descriptor.
    fn remove_departed(&mut self, descriptor: &Descriptor, link: TreeLink) {
        let Some(known) = self.tables.get(descriptor) else { return };
        if !known.branch(link).is_some_and(|branch| self.departures.is_over(link, branch.at)) {
            return;
        }
        let mut known = Known::clone(known);
        let sets = known.tag_sets.len();
        known.tag_sets.retain(|set| set.link != link);
        let advertisements = (sets - known.tag_sets.len()).max(1);
        self.count(link.face, -(advertisements as isize));
        self.set_branch(descriptor, known, link, None);
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
        let known = self.known_without_departed(descriptor, link);
        let had = known.as_ref().and_then(|known| known.branch(link));
        let at = self.departures.now(link);
        let advertised = serves.map(|serves| Advertised { serves, is_application: false, at });
        match (had, advertised) {
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let room = self.limits.descriptors.saturating_sub(self.limits.reserved);
                self.admit(link.face, known.as_ref(), room)?;
            }
            (Some(_), None) => self.count(link.face, -1),
            (Some(_), Some(_)) => {}
        }
        self.set_branch(descriptor, known.unwrap_or_default(), link, advertised);
        Ok(())
    }

    /// An application advertised a set of tags, or changed what the set serves.
    ///
    /// # Errors
    /// If a limit is met.
    pub fn advertise(&mut self, link: TreeLink, tags: TagSet, serves: Serves) -> Result<(), AdvertisementRefusal> {
        let descriptor = tags.descriptor();
        let known = self.known_without_departed(&descriptor, link);
        let place = known.as_ref().and_then(|known| known.tag_set(link, &tags));
        if place.is_none() {
            self.admit(link.face, known.as_ref(), self.limits.descriptors)?;
        }
        let mut known = known.unwrap_or_default();
        match place {
            Some(place) => known.tag_sets[place].serves = serves,
            None => known.tag_sets.push(AdvertisedTags { link, tags, serves }),
        }
        self.set_application_branch(&descriptor, known, link);
        Ok(())
    }

    /// An application withdraws a set of tags; false if it had not advertised it.
    pub fn withdraw(&mut self, link: TreeLink, tags: &TagSet) -> bool {
        let descriptor = tags.descriptor();
        let Some(mut known) = self.known_without_departed(&descriptor, link) else { return false };
        let Some(place) = known.tag_set(link, tags) else { return false };
        known.tag_sets.remove(place);
        self.count(link.face, -1);
        self.set_application_branch(&descriptor, known, link);
        true
    }

    /// The branch of an application serves what its sets of tags serve together.
    fn set_application_branch(&mut self, descriptor: &Descriptor, known: Known, link: TreeLink) {
        let sets = known.tag_sets.iter().filter(|set| set.link == link);
        let serves = sets.map(|set| set.serves).reduce(Serves::union);
        let at = self.departures.now(link);
        let branch = serves.map(|serves| Advertised { serves, is_application: true, at });
        self.set_branch(descriptor, known, link, branch);
    }

    /// Counts one more advertisement of a face, if there is room. A new descriptor needs less than `room` of them.
    fn admit(&mut self, face: FaceId, known: Option<&Known>, room: usize) -> Result<(), AdvertisementRefusal> {
        if self.per_face.get(&face).is_some_and(|count| *count >= self.limits.per_face) {
            return Err(AdvertisementRefusal::FaceShareUsed);
        }
        let is_advertised = known.is_some_and(|known| !known.branches.is_empty());
        let is_full = known.is_none() && self.tables.len_at_most() >= 2 * self.limits.descriptors;
        if !is_advertised && self.advertised >= room || is_full {
            return Err(AdvertisementRefusal::Full);
        }
        self.count(face, 1);
        Ok(())
    }

    fn count(&mut self, face: FaceId, change: isize) {
        let count = self.per_face.entry(face).or_default();
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.per_face.remove(&face);
        }
    }

    /// Sets or removes a branch of a descriptor. The other neighbours of the tree are told at once, or will be.
    fn set_branch(&mut self, descriptor: &Descriptor, mut known: Known, link: TreeLink, branch: Option<Advertised>) {
        let (had_any, wanted_push) = (!known.branches.is_empty(), known.wants_push(link));
        known.set_branch(link, branch);
        self.advertised = self.advertised + usize::from(!known.branches.is_empty()) - usize::from(had_any);
        let mut of_tree = self.links.range(TreeLink { face: FaceId(0), ..link }..);
        let mut others = of_tree.by_ref().take_while(|(other, _)| other.tree == link.tree);
        if others.all(|(other, _)| other.face == link.face) {
            known.follow_pusher(link);
        } else if wanted_push || known.wants_push(link) {
            self.queue.push(descriptor);
        } else {
            self.tell_links(descriptor, &mut known);
        }
        self.store(descriptor, known);
    }

    /// Tells all links what has changed about a descriptor.
    fn tell_links(&mut self, descriptor: &Descriptor, known: &mut Known) {
        for (link, state) in &self.links {
            if let Some(serves) = known.tell(*link, state.life) {
                self.told.push(Announcement { link: *link, descriptor: *descriptor, serves });
            }
        }
    }

    /// Keeps what is known of a descriptor.
    fn store(&mut self, descriptor: &Descriptor, mut known: Known) {
        known.forget_told(|link| self.links.get(&link).map(|state| state.life));
        self.tables.set(descriptor, (!known.is_over()).then_some(known));
    }

    /// Descriptors that a neighbour may still announce.
    pub fn room_of(&self, face: FaceId) -> usize {
        let of_face = self.limits.per_face.saturating_sub(self.per_face.get(&face).copied().unwrap_or(0));
        let in_all = self.limits.descriptors.saturating_sub(self.limits.reserved).saturating_sub(self.advertised);
        of_face.min(in_all)
    }

    /// The descriptors that a neighbour was told, with what they serve.
    pub fn announced_on(&self, link: TreeLink) -> BTreeMap<Descriptor, Serves> {
        let Some(LinkState { life, .. }) = self.links.get(&link) else { return BTreeMap::new() };
        self.tables
            .entries(usize::MAX)
            .filter_map(|(descriptor, known)| Some((descriptor, known.told(link, *life)?)))
            .collect()
    }

    /// The neighbours of all trees.
    pub fn links(&self) -> BTreeSet<TreeLink> {
        self.links.keys().copied().collect()
    }
}
