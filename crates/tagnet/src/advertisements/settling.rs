//! Settling: brings announcements to neighbours up to date with advertisements, one bounded part at a time.
//!
//! The search for branches of departed faces comes first ([`super::departures`]). Descriptors that faces want for
//! pushes since, or no longer, wait in a queue. A [`Job`] takes a batch of them:
//!
//! ```text
//!   begin   each of the batch   find what holds it back; tell the links, if a face wants pushes now
//!   scan    all descriptors     those of which one of the batch is a proper subset: hold them back, or find what else
//!                               holds them back; tell the links
//!   end     each of the batch   tell the links what is no longer wanted; forget it if nobody wants it
//! ```
//!
//! The router announces a small set before it withdraws the larger ones, and announces the larger ones before it
//! withdraws the small set. So if a push matches a set throughout the change, it always finds a match at the neighbour.
//!
//! If more than [`QUEUE_MAX`] descriptors wait, they are not listed: the next job is for all descriptors. It searches
//! for what holds each of them back.
//!
//! # Covers
//! A descriptor d is redundant on the link to face f if a proper subset of d is wanted for pushes by a face of the tree
//! other than f. So the router need not search for each link. Two subsets that different faces want make d redundant on
//! every link; one subset makes it redundant on all links but one. A descriptor keeps at most two such faces for each
//! tree, its *covers*. It needs a second one only if a face other than the first wants d too. Which subset a cover
//! wants is not kept. So when a face no longer wants a subset, the job searches again for each larger set that has this
//! cover.
//!
//! # Work units
//! A unit takes less than 1 µs. It is one of these: one link looked at; [`STEPS`] steps of a search; a descriptor of a
//! walk; a branch of a departed face removed. A call finishes a part that it has begun: at most one search, and one
//! look at each link.

use super::{Advertisements, Announcement, known::Known, tree_link::TreeLink, walk::Walk};
use crate::{
    Descriptor,
    matching::{Entry, trie::Trie},
};
use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
};

/// Steps of a search that count as one unit.
const STEPS: usize = 8;
/// Descriptors that are looked at together for branches of departed faces.
const DEPARTED_AT_A_TIME: usize = 16;
/// Descriptors of a batch. Few in tests, so that they meet full ones.
const BATCH_MAX: usize = if cfg!(test) { 3 } else { 16_384 };
/// Descriptors that wait by name.
const QUEUE_MAX: usize = if cfg!(test) { 6 } else { 65_536 };

/// Descriptors whose changes wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    listed: VecDeque<Descriptor>,
    /// There were too many.
    is_overfull: bool,
}

impl Queue {
    pub(super) fn push(&mut self, descriptor: &Descriptor) {
        if self.listed.len() < QUEUE_MAX && !self.is_overfull {
            self.listed.push_back(*descriptor);
        } else {
            *self = Queue { listed: VecDeque::new(), is_overfull: true };
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && !self.is_overfull
    }

    /// The next job.
    fn take(&mut self) -> Job {
        let batch = match std::mem::take(&mut self.is_overfull) {
            true => None,
            false => {
                let list = self.listed.drain(..self.listed.len().min(BATCH_MAX)).collect();
                Some(Batch { list, place: 0, news: Vec::new(), trie: Trie::default() })
            }
        };
        Job { batch, stage: Stage::Begin, walk: Walk::default() }
    }
}

/// What a job does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Scan,
    End,
}

/// Changed descriptors, and what is to be done about them: see the module's header.
#[derive(Debug)]
pub(super) struct Job {
    /// Nothing if the job is for all descriptors.
    batch: Option<Batch>,
    stage: Stage,
    walk: Walk,
}

#[derive(Debug)]
struct Batch {
    list: Vec<Descriptor>,
    /// The next one.
    place: usize,
    /// Those that matter to larger sets.
    news: Vec<News>,
    /// They, with their places in `news`.
    trie: Trie,
}

/// What has changed about a descriptor that matters to larger sets.
#[derive(Debug)]
struct News {
    descriptor: Descriptor,
    /// Faces that want pushes since.
    gained: Vec<TreeLink>,
    /// Faces that want no pushes any more.
    lost: Vec<TreeLink>,
}

impl Job {
    /// The next descriptor of the stage; `Break` at the end of it.
    fn next(&mut self, advertisements: &Advertisements) -> ControlFlow<(), Option<Descriptor>> {
        let Job { batch, stage, walk } = self;
        let next = match (batch, *stage) {
            (Some(batch), Stage::Begin | Stage::End) => {
                batch.place += 1;
                batch.list.get(batch.place - 1).copied()
            }
            (_, Stage::Scan) => {
                let is_wanted = |known: &Known| !known.pushers.is_empty();
                if walk.read(&advertisements.tables, is_wanted) {
                    return ControlFlow::Continue(walk.next());
                }
                None
            }
            (None, _) => {
                if walk.read(&advertisements.tables, |_| true) {
                    return ControlFlow::Continue(walk.next());
                }
                None
            }
        };
        next.map_or(ControlFlow::Break(()), |next| ControlFlow::Continue(Some(next)))
    }

    /// Goes on to the next stage. False if the job is done.
    fn next_stage(&mut self) -> bool {
        self.walk = Walk::default();
        let has_news = self.batch.as_ref().is_none_or(|batch| !batch.news.is_empty());
        if let Some(batch) = &mut self.batch {
            batch.place = 0;
        }
        self.stage = match self.stage {
            Stage::Begin if has_news => Stage::Scan,
            Stage::Begin | Stage::Scan => Stage::End,
            Stage::End => return false,
        };
        true
    }
}

impl Advertisements {
    /// Does about this number of units of work, at least one part if any waits, and says in `out` what neighbours are
    /// to be told. Returns the units that it needed. Neighbours in `busy` are not told of what they do not know yet.
    pub fn settle(&mut self, units: usize, busy: &BTreeSet<TreeLink>, out: &mut Vec<Announcement>) -> usize {
        out.append(&mut self.told);
        let mut used = 0;
        while used < units.max(1) {
            self.tables.run();
            if self.tables.has_pending() {
                // A search would miss what waits for readers.
                break;
            }
            if !self.departures.is_settled() {
                used += self.remove_some_departed();
            } else if let Some(job) = self.job.take() {
                self.job = self.go_on(job, &mut used);
            } else if let Some(link) = self.link_behind(busy) {
                used += self.catch_up(link);
            } else if !self.queue.is_empty() {
                self.job = Some(self.queue.take());
            } else {
                break;
            }
            out.append(&mut self.told);
        }
        used
    }

    /// True if neighbours were told everything that they are to know.
    pub fn is_settled(&self) -> bool {
        self.is_settled_but_for(&BTreeSet::new())
    }

    /// The same, but for what busy neighbours do not know yet.
    pub fn is_settled_but_for(&self, busy: &BTreeSet<TreeLink>) -> bool {
        let is_idle = self.departures.is_settled() && self.job.is_none() && self.queue.is_empty();
        is_idle && self.told.is_empty() && self.link_behind(busy).is_none()
    }

    /// Removes the branches of faces that departed from some descriptors. Returns the units.
    fn remove_some_departed(&mut self) -> usize {
        let (mut over, mut cursor) = (Vec::new(), self.departures.cursor);
        let is_at_end = !self.tables.walk(&mut cursor, DEPARTED_AT_A_TIME, |Entry { descriptor, value }| {
            let links = self.tables.kept(value).into_iter().flat_map(|known| self.departures.over(known));
            over.extend(links.map(|link| (descriptor, link)));
        });
        self.departures.cursor = cursor;
        over.iter().for_each(|(descriptor, link)| self.remove_departed(descriptor, *link));
        if is_at_end {
            self.departures.walk_ended();
        }
        DEPARTED_AT_A_TIME / STEPS + over.len() * (1 + self.links.len())
    }

    fn link_behind(&self, busy: &BTreeSet<TreeLink>) -> Option<TreeLink> {
        let mut behind = self.links.iter().filter(|(_, state)| state.catching_up.is_some());
        behind.find(|(link, _)| !busy.contains(link)).map(|(link, _)| *link)
    }

    /// Tells a new neighbour of one descriptor, or reads on. What holds it back was not kept up to date while no other
    /// neighbour was there. Returns the units.
    fn catch_up(&mut self, link: TreeLink) -> usize {
        let Some(state) = self.links.get_mut(&link) else { return 0 };
        let Some(walk) = &mut state.catching_up else { return 0 };
        let is_under_way = walk.read(&self.tables, |known| known.branches.iter().any(|(it, _)| it.tree == link.tree));
        let next = walk.next();
        if !is_under_way {
            state.catching_up = None;
        }
        let Some(descriptor) = next else { return 1 };
        let Some(known) = self.tables.get(&descriptor) else { return 1 };
        let mut known = Known::clone(known);
        let units = self.find_all_covers(&descriptor, &mut known);
        self.tell_links(&descriptor, &mut known);
        self.store(&descriptor, known);
        units + 1 + self.links.len()
    }

    /// Does one part of a job. Returns what remains.
    fn go_on(&mut self, mut job: Job, used: &mut usize) -> Option<Job> {
        *used += 1;
        match job.next(self) {
            ControlFlow::Break(()) if !job.next_stage() => return None,
            ControlFlow::Continue(Some(descriptor)) => {
                if let Some(known) = self.tables.get(&descriptor) {
                    let known = Known::clone(known);
                    *used += match job.stage {
                        Stage::Begin => self.begin(&descriptor, known, job.batch.as_mut()),
                        Stage::Scan => self.scan(&descriptor, known, job.batch.as_ref()),
                        Stage::End => self.end(&descriptor, known),
                    };
                }
            }
            _ => {}
        }
        Some(job)
    }

    fn begin(&mut self, descriptor: &Descriptor, mut known: Known, batch: Option<&mut Batch>) -> usize {
        // It may be in the list twice. What has changed since is in the queue again.
        if batch.as_ref().is_some_and(|batch| batch.trie.get(descriptor).is_some()) {
            return 0;
        }
        let before = known.pushers.clone();
        let lost: Vec<TreeLink> = before.iter().copied().filter(|link| !known.wants_push(*link)).collect();
        let is_new = |link: &TreeLink| known.wants_push(*link) && !before.contains(link);
        let mut gained: Vec<TreeLink> = known.branches.iter().map(|(link, _)| *link).filter(is_new).collect();
        if gained.is_empty() && lost.is_empty() {
            return 0;
        }
        let mut units = 0;
        if !gained.is_empty() {
            known.pushers.extend(&gained);
            known.pushers.sort_unstable();
            units = self.find_covers(descriptor, &mut known) + self.links.len();
            self.tell_links(descriptor, &mut known);
            gained.retain(|link| known.is_news_to_larger_sets(&before, *link));
        }
        known.leaving.clone_from(&lost);
        self.store(descriptor, known);
        if let Some(batch) = batch.filter(|_| !gained.is_empty() || !lost.is_empty()) {
            batch.trie.insert(Entry { descriptor: *descriptor, value: batch.news.len() as u32 });
            batch.news.push(News { descriptor: *descriptor, gained, lost });
        }
        units
    }

    fn scan(&mut self, descriptor: &Descriptor, mut known: Known, batch: Option<&Batch>) -> usize {
        let mut units = 0;
        let Some(Batch { news, trie, .. }) = batch else {
            units += self.find_all_covers(descriptor, &mut known) + self.links.len();
            self.tell_links(descriptor, &mut known);
            self.store(descriptor, known);
            return units;
        };
        let (mut has_more, mut has_less) = (false, false);
        trie.visit_subsets(descriptor, |place| {
            let News { descriptor: subset, gained, lost } = &news[place as usize];
            if subset != descriptor {
                gained.iter().for_each(|link| has_more |= known.note_cover(*link));
                lost.iter().for_each(|link| has_less |= known.release(*link));
            }
            ControlFlow::Continue(())
        });
        if has_less {
            units += self.find_covers(descriptor, &mut known);
        }
        if has_more || has_less {
            units += self.links.len();
            self.tell_links(descriptor, &mut known);
            self.store(descriptor, known);
        }
        units
    }

    fn end(&mut self, descriptor: &Descriptor, mut known: Known) -> usize {
        let Known { pushers, leaving, .. } = &mut known;
        pushers.retain(|link| !leaving.contains(link));
        leaving.clear();
        known.release_unused();
        self.tell_links(descriptor, &mut known);
        self.store(descriptor, known);
        self.links.len()
    }

    /// Searches for covers as if none were known. Returns the units.
    fn find_all_covers(&self, descriptor: &Descriptor, known: &mut Known) -> usize {
        known.covers.clear();
        self.find_covers(descriptor, known)
    }

    /// Searches for the covers that a descriptor still needs. Returns the units.
    fn find_covers(&self, descriptor: &Descriptor, known: &mut Known) -> usize {
        if !known.needs_covers() {
            return 0;
        }
        let steps = self.tables.trie().find_proper(descriptor, |number| {
            let subset = self.tables.kept(number);
            subset.into_iter().flat_map(|subset| subset.staying_pushers()).for_each(|link| _ = known.note_cover(link));
            if known.needs_covers() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        steps.div_ceil(STEPS)
    }
}
