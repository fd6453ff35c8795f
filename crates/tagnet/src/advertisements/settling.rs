//! Settling: brings announcements to neighbours up to date with advertisements, one bounded part at a time.
//!
//! The search for branches of departed faces comes first ([`super::departures`]). Each changed descriptor waits in a
//! queue and becomes one [`Job`]. Jobs run one after the other:
//!
//! ```text
//!   1. faces that want pushes now     find what holds the descriptor back; tell the links;
//!                                     go through all descriptors and hold the larger ones back
//!   2. faces that want none any more  each descriptor that this one held back: find another, tell the links
//!   3.                                tell the links about this descriptor; forget it if nobody wants it
//! ```
//!
//! The router announces a small set before it withdraws the larger ones, and announces the larger ones before it
//! withdraws the small set. So if a push matches a set throughout the change, it always finds a match at the neighbour.
//!
//! # Covers
//! A descriptor d is redundant on the link to face f if a proper subset of d is wanted for pushes by a face of the tree
//! other than f. So the router need not search for each link. Two subsets that different faces want make d redundant on
//! every link; one subset makes it redundant on all links but one. A descriptor keeps at most two such [`Cover`]s for
//! each tree. It needs a second one only if a face other than that of the first wants d too.
//!
//! # Work units
//! A unit takes less than 1 µs. It is one of these: one link looked at; [`NODES`] nodes of the trie visited by a
//! search; [`COMPARISONS`] comparisons; as many descriptors checked for branches of departed faces; one such branch
//! removed. A call finishes a part that it has begun: at most one search, and one look at each link.

use super::{Advertisements, Announcement, Known, TreeLink, link_state::LinkState};
use crate::forwarder::Serves;
use std::ops::ControlFlow;

/// Comparisons of two descriptors that count as one unit.
const COMPARISONS: usize = 64;
/// Visited nodes of the trie that count as one unit.
const NODES: usize = 8;

/// A proper subset that holds a descriptor back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    by: u32,
    /// A face that wants the subset for pushes.
    link: TreeLink,
}

/// The same, ordered by what holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hold {
    by: u32,
    link: TreeLink,
    held: u32,
}

/// A changed descriptor, and what is to be done about it: see the module's header.
#[derive(Debug)]
pub(super) struct Job {
    index: u32,
    /// Faces that want pushes since; the descriptors from `scanned` on do not know it yet.
    gained: Vec<TreeLink>,
    scanned: usize,
    /// Faces that want no pushes any more.
    lost: Vec<TreeLink>,
}

/// Work of one turn.
struct Turn<'a> {
    used: usize,
    out: &'a mut Vec<Announcement>,
}

impl Advertisements {
    /// Does about this number of units of work, at least one part if any waits, and says in `out` what neighbours are
    /// to be told. Returns the units that it needed.
    pub fn settle(&mut self, units: usize, out: &mut Vec<Announcement>) -> usize {
        let mut turn = Turn { used: 0, out };
        while turn.used < units.max(1) {
            if !self.departures.is_settled() {
                self.remove_some_departed(&mut turn);
            } else if let Some(job) = self.job.take() {
                self.job = self.go_on(job, &mut turn);
            } else if let Some(link) = self.link_behind() {
                self.catch_up(link, &mut turn);
            } else if let Some(index) = self.queue.pop_front() {
                self.job = Some(self.begin(index, &mut turn));
            } else {
                break;
            }
        }
        turn.used
    }

    /// True if neighbours were told everything that they are to know.
    pub fn is_settled(&self) -> bool {
        self.departures.is_settled() && self.job.is_none() && self.queue.is_empty() && self.link_behind().is_none()
    }

    /// Removes the branches of faces that departed from some descriptors.
    fn remove_some_departed(&mut self, turn: &mut Turn<'_>) {
        turn.used += 1;
        for index in self.departures.take(COMPARISONS) {
            let branches = &self.known[index].branches;
            let over = branches.iter().filter(|(link, branch)| self.departures.is_over(**link, branch.at));
            let over: Vec<TreeLink> = over.map(|(link, _)| *link).collect();
            turn.used += over.len();
            over.into_iter().for_each(|link| self.remove_departed(index as u32, link));
        }
    }

    /// A descriptor's branches have changed.
    pub(super) fn enqueue(&mut self, index: u32) {
        if !std::mem::replace(&mut self.known[index as usize].is_queued, true) {
            self.queue.push_back(index);
        }
    }

    fn link_behind(&self) -> Option<TreeLink> {
        self.links.iter().find(|(_, state)| state.catching_up.is_some()).map(|(link, _)| *link)
    }

    /// Tells a new neighbour some of what it is to know.
    fn catch_up(&mut self, link: TreeLink, turn: &mut Turn<'_>) {
        let Some(state) = self.links.get_mut(&link) else { return };
        let from = state.catching_up.unwrap_or_default();
        let end = self.known.len().min(from + COMPARISONS);
        for index in from..end {
            tell(link, state, (index as u32, &self.known[index]), turn);
        }
        state.catching_up = (end < self.known.len()).then_some(end);
        turn.used += 1 + end - from;
    }

    fn begin(&mut self, index: u32, turn: &mut Turn<'_>) -> Job {
        turn.used += 1;
        let known = &mut self.known[index as usize];
        known.is_queued = false;
        let wants_push = |link: &TreeLink| known.branches.get(link).is_some_and(|it| it.serves.meets(Serves::PUSH));
        let lost: Vec<TreeLink> = known.pushers.iter().copied().filter(|link| !wants_push(link)).collect();
        let is_new = |link: &TreeLink| wants_push(link) && !known.pushers.contains(link);
        let mut gained: Vec<TreeLink> = known.branches.keys().copied().filter(is_new).collect();
        if !gained.is_empty() {
            let before = std::mem::take(&mut known.pushers);
            known.pushers = before.iter().chain(&gained).copied().collect();
            self.find_covers(index, turn);
            self.update(index, turn);
            let known = &self.known[index as usize];
            gained.retain(|link| known.is_news_to_larger_sets(&before, *link));
        }
        Job { index, gained, scanned: 0, lost }
    }

    /// Does one part of a job. Returns what remains.
    fn go_on(&mut self, mut job: Job, turn: &mut Turn<'_>) -> Option<Job> {
        if job.scanned < self.known.len() && !job.gained.is_empty() {
            let mut scanned = job.scanned..self.known.len().min(job.scanned + COMPARISONS);
            // Up to the next one, so that a part has one look at each link.
            scanned.any(|held| self.cover(held as u32, &job, turn));
            job.scanned = scanned.start;
            turn.used += 1;
            return Some(job);
        }
        self.lose(job.index, &job.lost);
        if let Some(hold) = self.next_hold(&job) {
            self.release(hold);
            self.find_covers(hold.held, turn);
            self.update(hold.held, turn);
            return Some(job);
        }
        self.end(job.index, turn);
        None
    }

    /// From now on, no descriptor is held back because these faces want this one.
    fn lose(&mut self, index: u32, lost: &[TreeLink]) {
        self.known[index as usize].pushers.retain(|link| !lost.contains(link));
    }

    /// A descriptor that was held back because of faces that want pushes no more.
    fn next_hold(&self, job: &Job) -> Option<Hold> {
        let hold_for = |link: &TreeLink| {
            let hold = |held| Hold { by: job.index, link: *link, held };
            self.holds.range(hold(0)..=hold(u32::MAX)).next().copied()
        };
        job.lost.iter().find_map(hold_for)
    }

    fn end(&mut self, index: u32, turn: &mut Turn<'_>) {
        let Known { pushers, covers, .. } = &self.known[index as usize];
        let is_unused = |cover: &&Cover| !pushers.iter().any(|link| link.tree == cover.link.tree);
        let unused: Vec<Cover> = covers.iter().filter(is_unused).copied().collect();
        unused.into_iter().for_each(|Cover { by, link }| self.release(Hold { by, link, held: index }));
        self.update(index, turn);
        let known = &self.known[index as usize];
        if known.branches.is_empty() && !known.is_queued {
            self.trie.remove(&known.descriptor);
            self.known[index as usize] = Known::default();
            self.free.push(index);
        }
    }

    /// Holds a descriptor back if that of the job is a proper subset of it, and says so on the links. True if it did.
    fn cover(&mut self, held: u32, job: &Job, turn: &mut Turn<'_>) -> bool {
        let by = job.index;
        let descriptor = self.known[by as usize].descriptor;
        let known = &mut self.known[held as usize];
        if held == by || !descriptor.is_subset_of(&known.descriptor) {
            return false;
        }
        let covers = known.covers.len();
        job.gained.iter().for_each(|link| known.note_cover(Cover { by, link: *link }));
        let new = &known.covers[covers..];
        if new.is_empty() {
            return false;
        }
        self.holds.extend(new.iter().map(|Cover { by, link }| Hold { by: *by, link: *link, held }));
        self.update(held, turn);
        true
    }

    fn release(&mut self, hold: Hold) {
        let Hold { by, link, held } = hold;
        self.known[held as usize].covers.retain(|cover| *cover != Cover { by, link });
        self.holds.remove(&hold);
    }

    /// Searches for the covers that a descriptor still needs.
    fn find_covers(&mut self, index: u32, turn: &mut Turn<'_>) {
        // Its place is empty meanwhile, so that it does not hold itself back.
        let mut own = std::mem::take(&mut self.known[index as usize]);
        let (descriptor, covers) = (own.descriptor, own.covers.len());
        if own.needs_covers() {
            let nodes = self.trie.visit_subsets(&descriptor, |value| {
                let pushers = &self.known[value as usize].pushers;
                pushers.iter().for_each(|link| own.note_cover(Cover { by: value, link: *link }));
                if own.needs_covers() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            turn.used += nodes.div_ceil(NODES);
        }
        let new = own.covers[covers..].iter();
        self.holds.extend(new.map(|Cover { by, link }| Hold { by: *by, link: *link, held: index }));
        self.known[index as usize] = own;
    }

    /// Tells all links what has changed about a descriptor.
    fn update(&mut self, index: u32, turn: &mut Turn<'_>) {
        let known = &self.known[index as usize];
        self.links.iter_mut().for_each(|(link, state)| tell(*link, state, (index, known), turn));
        turn.used += 1 + self.links.len();
    }
}

fn tell(link: TreeLink, state: &mut LinkState, (index, known): (u32, &Known), turn: &mut Turn<'_>) {
    let serves = known.announced_on(link);
    if state.changed(index, serves) {
        turn.out.push(Announcement { link, descriptor: known.descriptor, serves });
    }
}

impl Known {
    /// What the neighbour of a link is to be told.
    fn announced_on(&self, link: TreeLink) -> Option<Serves> {
        let is_other = |other: &TreeLink| other.tree == link.tree && other.face != link.face;
        let pull = self.wanted_by_others(link).is_some_and(|serves| serves.meets(Serves::PULL));
        let is_held_back = self.covers.iter().any(|cover| is_other(&cover.link));
        let push = !is_held_back && self.pushers.iter().any(is_other);
        match (pull, push) {
            (false, false) => None,
            (true, false) => Some(Serves::PULL),
            (false, true) => Some(Serves::PUSH),
            (true, true) => Some(Serves::BOTH),
        }
    }

    /// True if another cover could hold this descriptor back from more links of the tree.
    fn needs_cover_in(&self, tree: u16) -> bool {
        let mut covers = self.covers.iter().filter(|cover| cover.link.tree == tree);
        let mut pushers = self.pushers.iter().filter(|link| link.tree == tree);
        match (covers.next(), covers.next()) {
            (None, _) => pushers.next().is_some(),
            (Some(cover), None) => pushers.any(|link| *link != cover.link),
            (Some(_), Some(_)) => false,
        }
    }

    fn needs_covers(&self) -> bool {
        self.pushers.iter().any(|link| self.needs_cover_in(link.tree))
    }

    /// Notes a cover if it is needed and its face is another than that of the one before.
    fn note_cover(&mut self, cover: Cover) {
        if self.needs_cover_in(cover.link.tree) && self.covers.iter().all(|other| other.link != cover.link) {
            self.covers.push(cover);
        }
    }

    /// False if larger sets are held back as well without this face, which wants this descriptor since: by covers of
    /// this descriptor, or because two other faces want it.
    fn is_news_to_larger_sets(&self, before: &[TreeLink], link: TreeLink) -> bool {
        let mut covers = self.covers.iter().filter(|cover| cover.link.tree == link.tree);
        let before = before.iter().filter(|other| other.tree == link.tree).count();
        before < 2 && covers.clone().count() < 2 && covers.all(|cover| cover.link != link)
    }
}
