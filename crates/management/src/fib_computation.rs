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
//! We deviate from NFD on purpose: it updates inherited routes incrementally and
//! loses some (forwarding.md §6.1 lists two defects). Here every name at or under a
//! changed prefix is computed from scratch and compared with what was published;
//! only differences go out.
//!
//! Strategy choice is merged in, so that an Interest needs one look-up: each entry
//! carries the strategy of the longest strategy-choice prefix, and a strategy-choice
//! prefix without routes becomes a *hidden* entry that inherits its next hops by
//! longest prefix match, which is what it would have had without the entry.
//!
//! What was published stands in a table of its own, ordered by name ([`crate::prefix_tree`]),
//! with the name's octets shared with the RIB and each next-hop set kept once
//! ([`crate::next_hop_sets`]): 57 octets per entry. That the forwarder has the same once more
//! is the price for workers that read it without a lock.
//!
//! Cost: for one changed prefix, a look-up in each table, one more per ancestor that has an
//! entry, then work in proportion to the subtree. A leaf among 100,000 routes
//! takes a microsecond or two; a change of `/` visits everything.
//!
//! Limit: [`MAX_NEXT_HOPS`] per entry; the cheapest are kept.

use crate::{
    manual_next_hops::{MAX_MANUAL_NEXT_HOPS, ManualNextHops},
    name_key::NameKey,
    next_hop_sets::{NextHopSet, NextHopSets},
    prefix_tree::PrefixTree,
    rib::{MAX_PREFIX_BYTES, Rib, RibLimits, Route},
    strategy_choice::{MAX_STRATEGY_CHOICES, StrategyChoices},
};
use hashbrown::HashSet;
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{FibEntry, NextHopRecord},
};
use std::sync::Arc;

/// Most next hops of one FIB entry, as in the forwarder's table.
pub const MAX_NEXT_HOPS: usize = 1024;

/// A face to send Interests to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The face.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
}

/// What the forwarder's FIB must do.
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
        /// True for an entry that exists for its strategy alone; datasets leave it out.
        hidden: bool,
    },
    /// Remove the entry.
    Remove {
        /// Prefix.
        name: NameBuf,
    },
}

/// The most that the forwarder's FIB is told to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibDemand {
    /// Entries.
    pub entries: usize,
    /// Octets of the names of all of them.
    pub prefix_bytes: usize,
}

impl FibDemand {
    /// With a RIB of these limits: every prefix of a route, of a manual next hop and of a
    /// strategy choice.
    pub const fn of(rib: RibLimits) -> Self {
        let others = MAX_MANUAL_NEXT_HOPS + MAX_STRATEGY_CHOICES;
        FibDemand { entries: rib.routes + others, prefix_bytes: rib.prefix_bytes + others * MAX_PREFIX_BYTES }
    }
}

/// Result of one recomputation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FibUpdate {
    /// Changes, each name at most once.
    pub changes: Vec<FibChange>,
    /// Next hops that a prefix has and had not: pending Interests under the prefix
    /// that no longer entry covers may now go there.
    pub new_next_hops: Vec<(NameBuf, FaceId)>,
}

/// Where FIB entries come from.
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
    hidden: bool,
}

/// One entry as the forwarder has it.
#[derive(Debug)]
struct Published {
    next_hops: NextHopSet,
    strategy: u32,
    hidden: bool,
}

impl Published {
    fn is(&self, wanted: &Entry) -> bool {
        (self.strategy, self.hidden) == (wanted.strategy, wanted.hidden) && *self.next_hops == *wanted.next_hops
    }

    fn insertion(&self, name: NameBuf) -> FibChange {
        let Published { next_hops, strategy, hidden } = self;
        FibChange::Insert { name, next_hops: next_hops.to_vec(), strategy: *strategy, hidden: *hidden }
    }
}

/// What the forwarder's FIB was told so far.
#[derive(Debug, Default)]
pub struct FibComputation {
    published: PrefixTree<Published>,
    sets: NextHopSets,
    hidden_count: usize,
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

    /// True without any entry that is not hidden.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dataset `fib/list`.
    pub fn dataset(&self) -> impl Iterator<Item = FibEntry> {
        self.published.iter().filter(|(_, entry)| !entry.hidden).map(|(key, entry)| FibEntry {
            name: key.to_buf(),
            next_hops: entry.next_hops.iter().map(|hop| NextHopRecord { face_id: hop.face, cost: hop.cost }).collect(),
        })
    }

    /// The insertion that makes the forwarder's entry what it should be now, for a FIB that
    /// refused an earlier one; `None` if there should be no entry.
    pub fn insertion(&self, name: Name<'_>) -> Option<FibChange> {
        self.published.get(name).map(|entry| entry.insertion(name.to_buf()))
    }

    /// Recomputes every name at or under the changed prefixes.
    pub fn recompute(&mut self, mut changed: Vec<NameBuf>, sources: FibSources<'_>) -> FibUpdate {
        changed.sort_unstable();
        let mut update = FibUpdate::default();
        let mut covered: Option<NameBuf> = None;
        for prefix in changed {
            // In canonical order a prefix comes before everything under it.
            if covered.as_ref().is_some_and(|root| root.as_name().is_prefix_of(&prefix.as_name())) {
                continue;
            }
            self.recompute_subtree(prefix.as_name(), sources, &mut update);
            covered = Some(prefix);
        }
        update
    }

    fn recompute_subtree(&mut self, root: Name<'_>, sources: FibSources<'_>, update: &mut FibUpdate) {
        let mut lineage = Lineage::above(root, sources, &self.published);
        let mut differences = Vec::new();
        for key in self.names_under(root, sources) {
            let wanted = lineage.descend_to(&key, sources);
            let published = self.published.get(key.name());
            let is_same = match (published, &wanted) {
                (Some(published), Some(wanted)) => published.is(wanted),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                if let Some(entry) = &wanted {
                    self.note_new_next_hops(key.name(), entry, update);
                }
                differences.push((key, wanted));
            }
        }
        // Published entries change only now: the notes above compare with the old state.
        for (key, wanted) in differences {
            update.changes.push(self.publish(key, wanted));
        }
    }

    /// Every name at or under `root` that has, or should have, an entry.
    fn names_under(&self, root: Name<'_>, sources: FibSources<'_>) -> Vec<NameKey> {
        // The RIB's first: equal names keep the key that comes first, so that octets are shared.
        let mut names: Vec<NameKey> = sources
            .rib
            .keys_under(root)
            .chain(self.published.subtree(root).map(|(key, _)| key))
            .chain(sources.manual.keys_under(root))
            .chain(sources.strategies.keys_under(root))
            .cloned()
            .collect();
        names.sort(); // four sorted runs: a merge
        names.dedup();
        names
    }

    fn note_new_next_hops(&self, name: Name<'_>, entry: &Entry, update: &mut FibUpdate) {
        let before: &[NextHop] = self.published.nearest(name).map_or(&[], |(_, entry)| &entry.next_hops);
        let new = entry.next_hops.iter().filter(|hop| !before.iter().any(|old| old.face == hop.face));
        update.new_next_hops.extend(new.map(|hop| (name.to_buf(), hop.face)));
    }

    fn publish(&mut self, key: NameKey, wanted: Option<Entry>) -> FibChange {
        let name = key.to_buf();
        let hides = wanted.as_ref().is_some_and(|entry| entry.hidden);
        let (old, change) = match wanted {
            Some(Entry { next_hops, strategy, hidden }) => {
                let entry = Published { next_hops: self.sets.get(&next_hops), strategy, hidden };
                (self.published.insert(key, entry), FibChange::Insert { name, next_hops, strategy, hidden })
            }
            None => (self.published.remove(name.as_name()), FibChange::Remove { name }),
        };
        let was_hidden = old.as_ref().is_some_and(|entry| entry.hidden);
        if let Some(old) = old {
            self.sets.release(old.next_hops);
        }
        self.hidden_count = self.hidden_count + usize::from(hides) - usize::from(was_hidden);
        change
    }
}

/// What one name on the way down contributes to those below it.
struct Ancestor<'a> {
    key: NameKey,
    routes: &'a [Route],
    strategy: Option<u32>,
    /// Next hops of a name that has an entry of its own right.
    next_hops: Option<NextHopSet>,
}

/// The names from the root down to the current one that matter: a stack.
struct Lineage<'a> {
    ancestors: Vec<Ancestor<'a>>,
    root_strategy: u32,
}

impl<'a> Lineage<'a> {
    /// The ancestors of `name`, without itself. They are outside the changed
    /// subtree, so what is published for them holds; a name without an entry has neither routes nor a strategy.
    fn above(name: Name<'_>, sources: FibSources<'a>, published: &PrefixTree<Published>) -> Self {
        let ancestor = |(key, entry): (&NameKey, &Published)| Ancestor {
            key: key.clone(),
            routes: sources.rib.routes(key.name()),
            strategy: sources.strategies.get(key.name()).map(|choice| choice.id),
            next_hops: (!entry.hidden).then(|| Arc::clone(&entry.next_hops)),
        };
        let mut ancestors: Vec<Ancestor<'a>> = published.ancestors(name).map(ancestor).collect();
        ancestors.reverse();
        Lineage { ancestors, root_strategy: sources.strategies.root_id() }
    }

    /// Goes to `key`, which comes later in canonical order than the name before it,
    /// and says which entry it should have.
    fn descend_to(&mut self, key: &NameKey, sources: FibSources<'a>) -> Option<Entry> {
        let name = key.name();
        while self.ancestors.last().is_some_and(|top| !name.value().starts_with(top.key.value())) {
            self.ancestors.pop();
        }
        let routes = sources.rib.routes(name);
        let manual = sources.manual.get(name);
        let own_strategy = sources.strategies.get(name).map(|choice| choice.id);
        let next_hops = (!routes.is_empty() || !manual.is_empty()).then(|| self.next_hops(routes, manual));
        let inherited_strategy = || self.ancestors.iter().rev().find_map(|ancestor| ancestor.strategy);
        let strategy = own_strategy.or_else(inherited_strategy).unwrap_or(self.root_strategy);
        let entry = match (&next_hops, own_strategy) {
            (Some(next_hops), _) => Some(Entry { next_hops: next_hops.clone(), strategy, hidden: false }),
            (None, Some(_)) => {
                let nearest = self.ancestors.iter().rev().find_map(|ancestor| ancestor.next_hops.as_ref());
                Some(Entry { next_hops: nearest.map_or_else(Vec::new, |set| set.to_vec()), strategy, hidden: true })
            }
            (None, None) => None,
        };
        if entry.is_some() {
            let next_hops = next_hops.map(NextHopSet::from);
            self.ancestors.push(Ancestor { key: key.clone(), routes, strategy: own_strategy, next_hops });
        }
        entry
    }

    /// The plain rule for a name with these routes and manual next hops.
    fn next_hops(&self, routes: &[Route], manual: &[NextHop]) -> Vec<NextHop> {
        // Nearly always: one route, and nothing above it.
        if let ([route], []) = (routes, manual)
            && self.ancestors.iter().all(|ancestor| ancestor.routes.is_empty())
        {
            return vec![NextHop { face: route.face, cost: route.cost }];
        }
        let mut taken: HashSet<FaceId> = manual.iter().map(|hop| hop.face).collect();
        let mut next_hops = manual.to_vec();
        take_best_per_face(routes.iter(), &mut taken, &mut next_hops);
        // Without a route of its own, a name of manual next hops inherits nothing.
        if !routes.is_empty() && !routes.iter().any(Route::captures) {
            for ancestor in self.ancestors.iter().rev() {
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
}

/// Adds the cheapest route of each face that is not taken yet. `routes` is sorted by face.
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
