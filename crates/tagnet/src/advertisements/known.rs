//! Known: what a router keeps of one descriptor. Descriptors of which it knows the same share it.

use super::tree_link::TreeLink;
use crate::{
    TagSet,
    forwarder::{Branch, BranchSet, Kept, Serves},
};
use std::collections::BTreeSet;

/// Where a descriptor was advertised, and what neighbours were told. All lists are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    pub(super) branches: Vec<(TreeLink, Advertised)>,
    pub(super) tag_sets: Vec<AdvertisedTags>,
    /// The branches for pushes as neighbours know them.
    pub(super) pushers: Vec<TreeLink>,
    /// Those of them that want no pushes any more, while the job that tells it runs.
    pub(super) leaving: Vec<TreeLink>,
    /// Faces that want a proper subset for pushes, and so hold the descriptor back: see [`super::settling`].
    pub(super) covers: Vec<TreeLink>,
    told: Vec<(TreeLink, Told)>,
}

/// A branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Advertised {
    pub(super) serves: Serves,
    pub(super) is_application: bool,
    /// When, by [`super::departures`].
    pub(super) at: u64,
}

/// A set of tags that an application advertised in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AdvertisedTags {
    pub(super) link: TreeLink,
    pub(super) tags: TagSet,
    pub(super) serves: Serves,
}

/// What a neighbour was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Told {
    /// The life of the link in which it was told: what was told in an earlier one, the neighbour has forgotten.
    life: u64,
    serves: Serves,
}

impl Kept for Known {
    fn branch_set(&self) -> BranchSet {
        let branch = |(link, advertised): &(TreeLink, Advertised)| Branch {
            tree: link.tree,
            face: link.face,
            serves: advertised.serves,
            is_application: advertised.is_application,
        };
        // A set that serves several trees is told once.
        let tag_sets: BTreeSet<_> = self.tag_sets.iter().map(|set| (set.link.face, set.tags.clone())).collect();
        BranchSet::new(self.branches.iter().map(branch).collect(), tag_sets.into_iter().collect())
    }
}

impl Known {
    pub(super) fn branch(&self, link: TreeLink) -> Option<Advertised> {
        let place = self.branches.binary_search_by_key(&link, |branch| branch.0).ok()?;
        Some(self.branches[place].1)
    }

    /// Sets or removes a branch.
    pub(super) fn set_branch(&mut self, link: TreeLink, branch: Option<Advertised>) {
        put(&mut self.branches, link, branch);
    }

    /// The branches that want pushes.
    pub(super) fn wants_push(&self, link: TreeLink) -> bool {
        self.branch(link).is_some_and(|branch| branch.serves.meets(Serves::PUSH))
    }

    /// The place of a set of tags.
    pub(super) fn tag_set(&self, link: TreeLink, tags: &TagSet) -> Option<usize> {
        self.tag_sets.iter().position(|set| set.link == link && set.tags == *tags)
    }

    /// A face wants pushes or does not, and there is no neighbour who must be told.
    pub(super) fn follow_pusher(&mut self, link: TreeLink) {
        self.leaving.retain(|other| *other != link);
        match (self.pushers.binary_search(&link), self.wants_push(link)) {
            (Ok(place), false) => drop(self.pushers.remove(place)),
            (Err(place), true) => self.pushers.insert(place, link),
            _ => {}
        }
    }

    /// The faces that want pushes, as neighbours will know in the end of the present job.
    pub(super) fn staying_pushers(&self) -> impl Iterator<Item = TreeLink> {
        self.pushers.iter().copied().filter(|link| !self.leaving.contains(link))
    }

    /// What the branches beyond the other faces of the tree ask for.
    pub(super) fn wanted_by_others(&self, link: TreeLink) -> Option<Serves> {
        let others = self.branches.iter().filter(|(branch, _)| branch.tree == link.tree && branch.face != link.face);
        others.map(|(_, advertised)| advertised.serves).reduce(Serves::union)
    }

    /// What the neighbour of a link is to be told.
    fn announced_on(&self, link: TreeLink) -> Option<Serves> {
        let is_other = |other: &TreeLink| other.tree == link.tree && other.face != link.face;
        let pull = self.wanted_by_others(link).is_some_and(|serves| serves.meets(Serves::PULL));
        let is_held_back = self.covers.iter().any(is_other);
        let push = !is_held_back && self.staying_pushers().any(|other| is_other(&other));
        match (pull, push) {
            (false, false) => None,
            (true, false) => Some(Serves::PULL),
            (false, true) => Some(Serves::PUSH),
            (true, true) => Some(Serves::BOTH),
        }
    }

    /// What the neighbour of a link was told in this life of the link.
    pub(super) fn told(&self, link: TreeLink, life: u64) -> Option<Serves> {
        let place = self.told.binary_search_by_key(&link, |told| told.0).ok()?;
        Some(self.told[place].1).filter(|told| told.life == life).map(|told| told.serves)
    }

    /// Notes what the neighbour of a link is to be told. Nothing if it was told so; else what it is told now.
    ///
    /// While a face leaves, nothing is withdrawn: larger sets must be announced first.
    pub(super) fn tell(&mut self, link: TreeLink, life: u64) -> Option<Option<Serves>> {
        let (told, mut now) = (self.told(link, life), self.announced_on(link));
        if !self.leaving.is_empty() {
            now = told.into_iter().chain(now).reduce(Serves::union);
        }
        put(&mut self.told, link, now.map(|serves| Told { life, serves }));
        (told != now).then_some(now)
    }

    /// Forgets what was told in former lives; `life_of` tells the present one.
    pub(super) fn forget_told(&mut self, life_of: impl Fn(TreeLink) -> Option<u64>) {
        self.told.retain(|(link, told)| life_of(*link) == Some(told.life));
    }

    /// True if nothing is left to know.
    pub(super) fn is_over(&self) -> bool {
        self.branches.is_empty() && self.pushers.is_empty() && self.told.is_empty()
    }

    /// True if another cover could hold this descriptor back from more links of the tree.
    fn needs_cover_in(&self, tree: u16) -> bool {
        let mut covers = self.covers.iter().filter(|cover| cover.tree == tree);
        let mut pushers = self.pushers.iter().filter(|link| link.tree == tree);
        match (covers.next(), covers.next()) {
            (None, _) => pushers.next().is_some(),
            (Some(cover), None) => pushers.any(|link| link != cover),
            (Some(_), Some(_)) => false,
        }
    }

    pub(super) fn needs_covers(&self) -> bool {
        self.pushers.iter().any(|link| self.needs_cover_in(link.tree))
    }

    /// Notes a cover if it is needed and another face than that of the one before. True if it was noted.
    pub(super) fn note_cover(&mut self, cover: TreeLink) -> bool {
        let Err(place) = self.covers.binary_search(&cover) else { return false };
        let is_needed = self.needs_cover_in(cover.tree);
        if is_needed {
            self.covers.insert(place, cover);
        }
        is_needed
    }

    /// Removes a cover; false if there was none.
    pub(super) fn release(&mut self, cover: TreeLink) -> bool {
        let place = self.covers.binary_search(&cover);
        place.map(|place| self.covers.remove(place)).is_ok()
    }

    /// Removes the covers of trees in which no face wants pushes.
    pub(super) fn release_unused(&mut self) {
        let Known { covers, pushers, .. } = self;
        covers.retain(|cover| pushers.iter().any(|link| link.tree == cover.tree));
    }

    /// False if larger sets are held back as well without this face, which wants this descriptor since: by covers of
    /// this descriptor, or because two other faces want it.
    pub(super) fn is_news_to_larger_sets(&self, before: &[TreeLink], link: TreeLink) -> bool {
        let mut covers = self.covers.iter().filter(|cover| cover.tree == link.tree);
        let before = before.iter().filter(|other| other.tree == link.tree).count();
        before < 2 && covers.clone().count() < 2 && covers.all(|cover| *cover != link)
    }
}

/// Sets or removes what a list in order has of a link.
fn put<T>(list: &mut Vec<(TreeLink, T)>, link: TreeLink, value: Option<T>) {
    match (list.binary_search_by_key(&link, |entry| entry.0), value) {
        (Ok(place), Some(value)) => list[place].1 = value,
        (Ok(place), None) => drop(list.remove(place)),
        (Err(place), Some(value)) => list.insert(place, (link, value)),
        (Err(_), None) => {}
    }
}
