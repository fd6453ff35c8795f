//! From routes, manual next hops and strategy choices to FIB entries.
//!
//! Source: forwarding.md §6.1, its "plain rule":
//!
//! ```text
//! next(N) = best own per face ∪ { best per face of the nearest ancestor with that
//!           face among inheritable routes, up to and including the first
//!           capturing ancestor }, unless N captures
//! ```
//!
//! We deviate from NFD on purpose. NFD updates inherited routes incrementally and loses some (forwarding.md §6.1 lists
//! two defects). Here every name at or under a changed prefix is computed from scratch and compared with the published
//! entry. Only differences are sent to the FIB.
//!
//! Strategy choice is merged in, so that an Interest needs one look-up. Each entry carries the strategy of the longest
//! strategy-choice prefix. A strategy-choice prefix without routes becomes a *hidden* entry. A hidden entry inherits
//! its next hops by longest prefix match, so it has the next hops that Interests would find without it.
//!
//! Published entries are in a separate table, ordered by name ([`crate::prefix_tree`]). It shares the name's bytes with
//! the RIB and keeps each next-hop set once ([`crate::next_hop_sets`]): 41 bytes per entry. The forwarder holds the
//! same entries once more, so that workers can read them without a lock.
//!
//! A change of `/` concerns every name, and a face that closes may remove a million routes. So each call recomputes at
//! most as many names as its caller allows, and stores where it stopped. The rest of the subtree is a *sweep*, which
//! [`FibComputation::resume`] continues. A prefix that a caller has just changed is recomputed first, however many
//! sweeps wait; the prefixes below it follow. In any order, the last recomputation of a name sees the last change that
//! concerns the name. So the final result is the same as if everything had been computed at once.
//!
//! ```text
//!   subtree of the changed prefix   | done | to do …                      |
//!   changed again meanwhile         | ◄── then these ──| ◄ from here on … |    each name has its turn,
//!                                                                           however often it is changed
//! ```
//!
//! Cost: a changed prefix takes a look-up in each table, one more per ancestor that has an entry, and then work in
//! proportion to the subtree. A leaf among 100,000 routes takes a microsecond or two; a change of `/` visits
//! everything.
//!
//! Limits: [`MAX_NEXT_HOPS`] per entry; the cheapest are kept. A prefix has at most one sweep, and only if its subtree
//! is larger than a call may visit. [`FibLimits`] of the forwarder's table: [`FibComputation::room_for`] reports
//! whether one more prefix fits, so that management can refuse it. An entry whose routes are being removed keeps its
//! place until it is recomputed.

use crate::{
    fib_full::FibFull,
    manual_next_hops::{MAX_MANUAL_NEXT_HOPS, ManualNextHops},
    name_key::NameKey,
    next_hop_sets::{NextHop, NextHopSet, NextHopSets},
    prefix_tree::PrefixTree,
    rib::{MAX_PREFIX_BYTES, Rib, RibLimits, Route},
    strategy_choice::{MAX_STRATEGY_CHOICES, StrategyChoices},
};
use hashbrown::HashSet;
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{FibEntry, NextHopRecord},
};
use std::{borrow::Cow, collections::BTreeMap, ops::Bound};

/// Most next hops of one FIB entry, as in the forwarder's table.
pub const MAX_NEXT_HOPS: usize = 1024;

/// A change to the forwarder's FIB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FibChange {
    /// Add the entry, or replace the one of the same name.
    Insert {
        /// Prefix.
        name: NameBuf,
        /// Next hops by cost, then face; may be empty if `hidden`.
        next_hops: Vec<NextHop>,
        /// Strategy id of the registry.
        strategy: u32,
        /// True if the strategy was chosen for this prefix, not for a shorter one.
        chooses: bool,
        /// True for an entry that exists for its strategy alone; datasets leave it out.
        hidden: bool,
    },
    /// Remove the entry.
    Remove {
        /// Prefix.
        name: NameBuf,
    },
}

/// The largest FIB that the forwarder may have to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibDemand {
    /// Entries.
    pub entries: usize,
    /// Bytes of all their names.
    pub prefix_bytes: usize,
}

impl FibDemand {
    /// The demand with a RIB of these limits: every prefix of a route, of a manual next hop and of a strategy choice.
    pub const fn of(rib: RibLimits) -> Self {
        let others = MAX_MANUAL_NEXT_HOPS + MAX_STRATEGY_CHOICES;
        FibDemand { entries: rib.routes + others, prefix_bytes: rib.prefix_bytes() + others * MAX_PREFIX_BYTES }
    }
}

/// The largest FIB that the forwarder can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibLimits {
    /// Entries, and bytes of all their names.
    pub all: FibDemand,
    /// Bytes of one name, if it is less than [`MAX_PREFIX_BYTES`].
    pub longest_prefix_bytes: usize,
}

impl Default for FibLimits {
    /// More than any RIB needs.
    fn default() -> Self {
        let all = FibDemand { entries: usize::MAX, prefix_bytes: usize::MAX };
        FibLimits { all, longest_prefix_bytes: MAX_PREFIX_BYTES }
    }
}

/// Result of one recomputation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FibUpdate {
    /// Changes, each name at most once.
    pub changes: Vec<FibChange>,
    /// Next hops that are new for a prefix. Pending Interests under the prefix may now go there, unless a longer entry
    /// covers them.
    pub new_next_hops: Vec<(NameBuf, FaceId)>,
}

/// The tables from which FIB entries are computed.
#[derive(Clone, Copy, Debug)]
pub struct FibSources<'a> {
    /// Registered routes.
    pub rib: &'a Rib,
    /// Next hops added by hand.
    pub manual: &'a ManualNextHops,
    /// Strategies by prefix.
    pub strategies: &'a StrategyChoices,
}

/// One entry as it should be.
struct Entry {
    next_hops: Vec<NextHop>,
    strategy: u32,
    chooses: bool,
    hidden: bool,
}

/// One entry as the forwarder has it.
#[derive(Debug)]
struct Published {
    next_hops: NextHopSet,
    strategy: u32,
    chooses: bool,
    hidden: bool,
}

impl Published {
    fn is(&self, wanted: &Entry) -> bool {
        (self.strategy, self.chooses, self.hidden) == (wanted.strategy, wanted.chooses, wanted.hidden)
            && *self.next_hops == *wanted.next_hops
    }

    fn insertion(&self, name: NameBuf) -> FibChange {
        let &Published { ref next_hops, strategy, chooses, hidden } = self;
        FibChange::Insert { name, next_hops: next_hops.to_vec(), strategy, chooses, hidden }
    }
}

/// The part of a subtree that is still to be recomputed.
#[derive(Debug, Default)]
struct Sweep {
    /// The name recomputed last; none: the root is next.
    done: Option<NameKey>,
    /// The end of the sweep; none: the end of the subtree.
    up_to: Option<NameKey>,
    /// After the end of the subtree, the sweep goes on from the root up to here.
    then_up_to: Option<NameKey>,
}

impl Sweep {
    /// Something at the root has changed: every name gets one more turn, waiting names first.
    fn restart(&mut self) {
        (self.up_to, self.then_up_to) = (None, self.done.clone());
    }
}

/// Names to be recomputed.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    root: Name<'a>,
    /// The names of the subtree behind this one (none: all of them),
    after: Option<&'a NameKey>,
    /// up to this one, or to the end,
    up_to: Option<&'a NameKey>,
    /// and no more than the limit.
    most: usize,
    /// True if the published entries were right before the change.
    is_settled: bool,
}

/// The result of recomputing a [`Stretch`].
struct Done {
    names: usize,
    last: Option<NameKey>,
    /// The stretch is complete.
    is_whole: bool,
}

/// The published entries: what the forwarder's FIB was told so far.
#[derive(Debug, Default)]
pub struct FibComputation {
    published: PrefixTree<Published>,
    sets: NextHopSets,
    hidden_count: usize,
    /// Bytes of the names of published entries.
    prefix_bytes: usize,
    /// The sweeps, by the root of the subtree.
    sweeps: BTreeMap<NameKey, Sweep>,
    /// The sweep that had the last turn.
    last_swept: Option<NameKey>,
}

impl FibComputation {
    /// Nothing published yet.
    pub fn new() -> Self {
        FibComputation::default()
    }

    /// Number of entries that are not hidden.
    pub fn len(&self) -> usize {
        self.published.len() - self.hidden_count
    }

    /// True if there are no entries, or only hidden ones.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an entry for this prefix would fit beside those that the forwarder has, or is there already.
    ///
    /// # Errors
    /// Why not.
    pub fn room_for(&self, prefix: Name<'_>, limits: FibDemand) -> Result<(), FibFull> {
        let FibDemand { entries, prefix_bytes } = limits;
        let lacks_bytes = self.prefix_bytes.saturating_add(prefix.value().len()) > prefix_bytes;
        match self.published.len() >= entries {
            false if !lacks_bytes => Ok(()),
            _ if self.published.get(prefix).is_some() => Ok(()),
            true => Err(FibFull::Entries(entries)),
            false => Err(FibFull::PrefixBytes(prefix_bytes)),
        }
    }

    /// The dataset `fib/list`, without next hops to faces that are gone.
    pub fn dataset(&self, is_gone: impl Fn(FaceId) -> bool) -> impl Iterator<Item = FibEntry> {
        self.published.iter().filter_map(move |(key, entry)| shown(key.name(), entry, &is_gone))
    }

    /// Of [`FibComputation::dataset`], the entries that cover `name`, and at most `nearby` that share its first
    /// component.
    pub(crate) fn about(&self, name: Name<'_>, nearby: usize, is_gone: impl Fn(FaceId) -> bool) -> Vec<FibEntry> {
        let own = self.published.get(name).and_then(|entry| shown(name, entry, &is_gone));
        let above = self.published.ancestors(name).filter_map(|(key, entry)| shown(key.name(), entry, &is_gone));
        let beside = self.published.subtree(name.prefix(1), None).take(nearby);
        let mut about: Vec<FibEntry> = own.into_iter().chain(above).collect();
        for entry in beside.filter_map(|(key, entry)| shown(key.name(), entry, &is_gone)) {
            if !about.contains(&entry) {
                about.push(entry);
            }
        }
        about
    }

    /// The insertion that makes the forwarder's entry what it should be now, for a FIB that refused an earlier one.
    /// `None` if there should be no entry.
    pub fn insertion(&self, name: Name<'_>) -> Option<FibChange> {
        self.published.get(name).map(|entry| entry.insertion(name.to_buf()))
    }

    /// True if nothing is left for [`FibComputation::resume`].
    pub fn is_settled(&self) -> bool {
        self.sweeps.is_empty()
    }

    /// Recomputes names at or under the changed prefixes, up to a limit; the others wait for
    /// [`FibComputation::resume`].
    pub fn recompute(&mut self, mut changed: Vec<NameBuf>, sources: FibSources<'_>, most_names: usize) -> FibUpdate {
        changed.sort_unstable();
        let mut update = FibUpdate::default();
        let mut covered: Option<NameBuf> = None;
        let mut left = most_names;
        for prefix in changed {
            // In canonical order a prefix comes before everything under it.
            if covered.as_ref().is_some_and(|root| root.as_name().is_prefix_of(&prefix.as_name())) {
                continue;
            }
            let is_settled = self.is_settled();
            let stretch = Stretch { root: prefix.as_name(), after: None, up_to: None, most: left, is_settled };
            let done = self.recompute_stretch(stretch, sources, &mut update);
            left -= done.names;
            self.note_change(prefix.as_name(), done);
            covered = Some(prefix);
        }
        update
    }

    /// Continues the sweeps, up to a limit of names.
    pub fn resume(&mut self, sources: FibSources<'_>, most_names: usize) -> FibUpdate {
        let mut update = FibUpdate::default();
        let mut left = most_names;
        while left > 0
            && let Some((root, mut sweep)) = self.take_next_sweep()
        {
            let (after, up_to) = (sweep.done.as_ref(), sweep.up_to.as_ref());
            let stretch = Stretch { root: root.name(), after, up_to, most: left, is_settled: false };
            let done = self.recompute_stretch(stretch, sources, &mut update);
            left -= done.names;
            sweep = match (done.is_whole, sweep.then_up_to.take()) {
                (false, then_up_to) => Sweep { done: done.last, then_up_to, ..sweep },
                (true, Some(up_to)) => Sweep { up_to: Some(up_to), ..Sweep::default() },
                (true, None) => continue,
            };
            self.sweeps.insert(root, sweep);
        }
        update
    }

    fn take_next_sweep(&mut self) -> Option<(NameKey, Sweep)> {
        let last = self.last_swept.as_ref().map_or(Bound::Unbounded, |last| Bound::Excluded(last.value()));
        let behind = self.sweeps.range::<[u8], _>((last, Bound::Unbounded)).next();
        let root = behind.or_else(|| self.sweeps.first_key_value())?.0.clone();
        self.last_swept = Some(root.clone());
        self.sweeps.remove_entry(root.value())
    }

    /// Records what is left to recompute after a change at `root`.
    fn note_change(&mut self, root: Name<'_>, done: Done) {
        if done.is_whole {
            self.sweeps.remove(root.value());
        } else if let Some(sweep) = self.sweeps.get_mut(root.value()) {
            sweep.restart();
        } else {
            self.sweeps.insert(NameKey::new(root), Sweep { done: done.last, ..Sweep::default() });
        }
    }

    fn recompute_stretch(&mut self, stretch: Stretch<'_>, sources: FibSources<'_>, update: &mut FibUpdate) -> Done {
        let names = self.names_in(stretch, sources);
        let done = Done { names: names.len(), last: names.last().cloned(), is_whole: names.len() < stretch.most };
        let Some(first) = names.first() else { return done };
        let mut lineage = Lineage::above(first.name(), sources, &self.published);
        let mut differences = Vec::new();
        for key in names {
            let wanted = lineage.descend_to(&key, sources);
            let published = self.published.get(key.name());
            let is_same = match (published, &wanted) {
                (Some(published), Some(wanted)) => published.is(wanted),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                if let Some(entry) = &wanted {
                    self.note_new_next_hops(key.name(), entry, stretch.is_settled, update);
                }
                differences.push((key, wanted));
            }
        }
        // Published entries change only now, because the notes above compare with the old state.
        for (key, wanted) in differences {
            update.changes.push(self.publish(key, wanted));
        }
        done
    }

    /// The names of a stretch that have, or should have, an entry.
    fn names_in(&self, stretch: Stretch<'_>, sources: FibSources<'_>) -> Vec<NameKey> {
        let Stretch { root, after, up_to, most, .. } = stretch;
        let is_in = |key: &&NameKey| up_to.is_none_or(|up_to| *key <= up_to);
        // The RIB's names first: of equal names the first key stays, so that bytes are shared.
        let mut names: Vec<NameKey> = Vec::new();
        names.extend(sources.rib.keys_under(root, after).take(most).take_while(is_in).cloned());
        names.extend(self.published.subtree(root, after).map(|(key, _)| key).take(most).take_while(is_in).cloned());
        names.extend(sources.manual.keys_under(root, after).take(most).take_while(is_in).cloned());
        names.extend(sources.strategies.keys_under(root, after).take(most).take_while(is_in).cloned());
        names.sort(); // four sorted runs: a merge
        names.dedup();
        names.truncate(most);
        names
    }

    /// If other changes are on their way, the entries published above a new entry may be newer than what pending
    /// Interests have seen. Then all its next hops count as new.
    fn note_new_next_hops(&self, name: Name<'_>, entry: &Entry, is_settled: bool, update: &mut FibUpdate) {
        let before = match is_settled {
            true => self.published.nearest(name).map(|(_, entry)| entry),
            false => self.published.get(name),
        };
        let before: &[NextHop] = before.map_or(&[], |entry| &entry.next_hops);
        let new = entry.next_hops.iter().filter(|hop| !before.iter().any(|old| old.face == hop.face));
        update.new_next_hops.extend(new.map(|hop| (name.to_buf(), hop.face)));
    }

    fn publish(&mut self, key: NameKey, wanted: Option<Entry>) -> FibChange {
        let (name, bytes) = (key.to_buf(), key.value().len());
        let hides = wanted.as_ref().is_some_and(|entry| entry.hidden);
        let (old, change) = match wanted {
            Some(Entry { next_hops, strategy, chooses, hidden }) => {
                let entry = Published { next_hops: self.sets.get(&next_hops), strategy, chooses, hidden };
                let old = self.published.insert(key, entry);
                self.prefix_bytes += if old.is_none() { bytes } else { 0 };
                (old, FibChange::Insert { name, next_hops, strategy, chooses, hidden })
            }
            None => {
                let old = self.published.remove(name.as_name());
                self.prefix_bytes -= if old.is_some() { bytes } else { 0 };
                (old, FibChange::Remove { name })
            }
        };
        let was_hidden = old.as_ref().is_some_and(|entry| entry.hidden);
        if let Some(old) = old {
            self.sets.release(old.next_hops);
        }
        self.hidden_count = self.hidden_count + usize::from(hides) - usize::from(was_hidden);
        change
    }
}

/// What one name on the way down contributes to the names below it.
struct Ancestor<'a> {
    key: NameKey,
    routes: Cow<'a, [Route]>,
    manual: &'a [NextHop],
    strategy: Option<u32>,
}

impl Ancestor<'_> {
    /// True if it has an entry for its next hops, not only for its strategy.
    fn has_next_hops(&self) -> bool {
        !self.routes.is_empty() || !self.manual.is_empty()
    }
}

/// A stack of the names from the root to the current one that have routes, next hops or a strategy.
///
/// Everything is read from the sources, because the published entry of an ancestor may be about to change.
struct Lineage<'a> {
    ancestors: Vec<Ancestor<'a>>,
    root_strategy: u32,
}

impl<'a> Lineage<'a> {
    /// The ancestors of `name`, without `name` itself. Every ancestor with routes, next hops or a strategy has a
    /// published entry, though perhaps an outdated one.
    fn above(name: Name<'_>, sources: FibSources<'a>, published: &PrefixTree<Published>) -> Self {
        let ancestors = published.ancestors(name).map(|(key, _)| Ancestor::read(key, sources));
        let mut ancestors: Vec<Ancestor<'a>> = ancestors.collect();
        ancestors.reverse();
        Lineage { ancestors, root_strategy: sources.strategies.root_id() }
    }

    /// Goes to `key`, which comes later in canonical order than the name before it, and returns the entry that it
    /// should have.
    fn descend_to(&mut self, key: &NameKey, sources: FibSources<'a>) -> Option<Entry> {
        while self.ancestors.last().is_some_and(|top| !key.value().starts_with(top.key.value())) {
            self.ancestors.pop();
        }
        let own = Ancestor::read(key, sources);
        let inherited_strategy = || self.ancestors.iter().rev().find_map(|ancestor| ancestor.strategy);
        let strategy = own.strategy.or_else(inherited_strategy).unwrap_or(self.root_strategy);
        let chooses = own.strategy.is_some();
        let entry = if own.has_next_hops() {
            Entry { next_hops: next_hops(&self.ancestors, &own), strategy, chooses, hidden: false }
        } else if chooses {
            let nearest = self.ancestors.iter().rposition(Ancestor::has_next_hops);
            let inherited = nearest.map(|at| next_hops(&self.ancestors[..at], &self.ancestors[at]));
            Entry { next_hops: inherited.unwrap_or_default(), strategy, chooses, hidden: true }
        } else {
            return None;
        };
        self.ancestors.push(own);
        Some(entry)
    }
}

impl<'a> Ancestor<'a> {
    fn read(key: &NameKey, sources: FibSources<'a>) -> Self {
        let name = key.name();
        Ancestor {
            key: key.clone(),
            routes: sources.rib.live_routes(name),
            manual: sources.manual.get(name),
            strategy: sources.strategies.get(name).map(|choice| choice.id),
        }
    }
}

/// The plain rule for a name with these ancestors.
fn next_hops(ancestors: &[Ancestor<'_>], own: &Ancestor<'_>) -> Vec<NextHop> {
    let (routes, manual) = (&*own.routes, own.manual);
    // The usual case: one route, and nothing above it.
    if let ([route], []) = (routes, manual)
        && ancestors.iter().all(|ancestor| ancestor.routes.is_empty())
    {
        return vec![NextHop { face: route.face, cost: route.cost }];
    }
    let mut taken: HashSet<FaceId> = manual.iter().map(|hop| hop.face).collect();
    let mut next_hops = manual.to_vec();
    take_best_per_face(routes.iter(), &mut taken, &mut next_hops);
    // A name with manual next hops and without a route of its own inherits nothing.
    if !routes.is_empty() && !routes.iter().any(Route::captures) {
        for ancestor in ancestors.iter().rev() {
            let inheritable = ancestor.routes.iter().filter(|route| route.is_inheritable());
            take_best_per_face(inheritable, &mut taken, &mut next_hops);
            if ancestor.routes.iter().any(Route::captures) {
                break;
            }
        }
    }
    next_hops.sort_unstable_by_key(|hop| (hop.cost, hop.face));
    next_hops.truncate(MAX_NEXT_HOPS);
    next_hops
}

/// Adds the cheapest route of each face that is not there yet. `routes` is sorted by face.
fn take_best_per_face<'r>(
    routes: impl Iterator<Item = &'r Route>,
    taken: &mut HashSet<FaceId>,
    next_hops: &mut Vec<NextHop>,
) {
    let first_new = next_hops.len();
    for route in routes {
        match next_hops[first_new..].last_mut() {
            Some(last) if last.face == route.face => last.cost = last.cost.min(route.cost),
            _ if taken.insert(route.face) => next_hops.push(NextHop { face: route.face, cost: route.cost }),
            _ => {}
        }
    }
}

/// The entry as datasets show it; `None` if they do not.
fn shown(name: Name<'_>, entry: &Published, is_gone: impl Fn(FaceId) -> bool) -> Option<FibEntry> {
    let hops = entry.next_hops.iter().filter(|hop| !is_gone(hop.face));
    let next_hops: Vec<NextHopRecord> = hops.map(|hop| NextHopRecord { face_id: hop.face, cost: hop.cost }).collect();
    (!entry.hidden && !next_hops.is_empty()).then(|| FibEntry { name: name.to_buf(), next_hops })
}
