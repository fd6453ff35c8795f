//! FIB computation: the worked example of forwarding.md §6.1, and the incremental result compared with a naive oracle
//! that computes everything from lists.

use namewire_management::{
    FibChange, HolderId, NextHop,
    fib_computation::{FibComputation, FibSources, FibUpdate},
    manual_next_hops::ManualNextHops,
    rib::{Rib, Route},
    strategy_choice::{ResolvedStrategy, StrategyChoices},
};
use namewire_packet::{FaceId, NameBuf};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
};

/// A forwarder's FIB as a plain map: name → (next hops, strategy, hidden). Whether the strategy was chosen there is
/// compared with the choices as each change comes.
type Mirror = BTreeMap<NameBuf, (Vec<NextHop>, u32, bool)>;

fn name(uri: &str) -> NameBuf {
    uri.parse().expect("name")
}

fn strategy(id: u32) -> ResolvedStrategy {
    ResolvedStrategy { id, instance: name(&format!("/strategy/{id}")) }
}

/// Tables, computation, and the FIB that results from the changes alone.
struct Tables {
    rib: Rib,
    manual: ManualNextHops,
    strategies: StrategyChoices,
    fib: FibComputation,
    mirror: Mirror,
    /// Of each name ever there: was its strategy chosen for it when it changed last?
    chosen: BTreeMap<NameBuf, bool>,
}

impl Tables {
    fn new() -> Self {
        let mut node = Tables {
            rib: Rib::default(),
            manual: ManualNextHops::default(),
            strategies: StrategyChoices::new(strategy(0)),
            fib: FibComputation::new(),
            mirror: Mirror::new(),
            chosen: BTreeMap::new(),
        };
        node.recompute(vec![NameBuf::new()]);
        node
    }

    fn recompute(&mut self, changed: Vec<NameBuf>) -> FibUpdate {
        self.follow(|fib, sources| fib.recompute(changed, sources, usize::MAX))
    }

    fn follow(&mut self, compute: impl FnOnce(&mut FibComputation, FibSources<'_>) -> FibUpdate) -> FibUpdate {
        let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.strategies };
        let update = compute(&mut self.fib, sources);
        for change in &update.changes {
            match change.clone() {
                FibChange::Insert { name, next_hops, strategy, chooses, hidden } => {
                    let entry = (next_hops, strategy, hidden);
                    let is_chosen = self.strategies.get(name.as_name()).is_some();
                    assert_eq!(chooses, is_chosen, "{name:?}");
                    let before = self.chosen.get(&name).copied();
                    let is_same = self.mirror.get(&name) == Some(&entry) && before == Some(chooses);
                    assert!(!is_same, "{name:?} did not change");
                    self.chosen.insert(name.clone(), chooses);
                    self.mirror.insert(name, entry);
                }
                FibChange::Remove { name } => assert!(self.mirror.remove(&name).is_some(), "{name:?} was not there"),
            }
        }
        update
    }

    fn register(&mut self, prefix: &str, face: char, origin: u64, cost: u64, flags: u64) -> FibUpdate {
        let route =
            Route { face: face_of(face), origin, cost, flags, expires_at_ns: None, holder: HolderId::ANY_LOCAL };
        self.rib.insert(name(prefix).as_name(), route).expect("room");
        self.recompute(vec![name(prefix)])
    }

    fn unregister(&mut self, prefix: &str, face: char, origin: u64) -> FibUpdate {
        assert!(self.rib.remove(name(prefix).as_name(), face_of(face), origin));
        self.recompute(vec![name(prefix)])
    }

    /// An entry in the form of the worked example: `A10 B20`.
    fn shown(&self, prefix: &str) -> String {
        let (next_hops, _, hidden) = self.mirror.get(&name(prefix)).unwrap_or_else(|| panic!("no entry {prefix}"));
        assert!(!hidden);
        let letter = |hop: &NextHop| char::from_u32(hop.face.0 as u32).expect("letter");
        next_hops.iter().map(|hop| format!("{}{}", letter(hop), hop.cost)).collect::<Vec<_>>().join(" ")
    }
}

fn face_of(letter: char) -> FaceId {
    FaceId(u64::from(u32::from(letter)))
}

const APP: u64 = 0;
const STATIC: u64 = 255;
const INHERIT: u64 = 1;
const CAPTURE: u64 = 2;

#[test]
fn the_worked_example() {
    let mut node = Tables::new();
    node.register("/w", 'A', APP, 10, INHERIT);
    node.register("/w", 'B', APP, 20, 0);
    node.register("/w/x", 'D', APP, 5, INHERIT);
    assert_eq!((node.shown("/w"), node.shown("/w/x")), ("A10 B20".into(), "D5 A10".into()));
    node.register("/w/x/y", 'A', APP, 99, INHERIT);
    assert_eq!((node.shown("/w"), node.shown("/w/x")), ("A10 B20".into(), "D5 A10".into()));
    assert_eq!(node.shown("/w/x/y"), "D5 A99", "own A hides inherited A10");
    node.register("/w/x", 'A', STATIC, 50, INHERIT);
    assert_eq!((node.shown("/w/x"), node.shown("/w/x/y")), ("D5 A50".into(), "D5 A99".into()));
    node.register("/w/x/z", 'D', APP, 7, CAPTURE);
    assert_eq!(node.shown("/w/x/z"), "D7");
    // Here NFD loses A50: an own route that had replaced an inherited one.
    node.register("/w/x", 'B', APP, 3, CAPTURE | INHERIT);
    assert_eq!(node.shown("/w"), "A10 B20");
    assert_eq!(node.shown("/w/x"), "B3 D5 A50");
    assert_eq!(node.shown("/w/x/y"), "B3 D5 A99");
    assert_eq!(node.shown("/w/x/z"), "D7");
    // And never finds it again.
    node.unregister("/w/x", 'B', APP);
    assert_eq!(node.shown("/w/x"), "D5 A50");
    assert_eq!(node.shown("/w/x/y"), "D5 A99");
    assert_eq!(node.shown("/w/x/z"), "D7");
}

/// NFD's second defect: the ancestor set is keyed by face and the first listed route wins. So a child inherits 10 or 4
/// depending on when it was created.
#[test]
fn a_child_inherits_the_best_route_of_a_face_whenever_it_was_created() {
    let mut node = Tables::new();
    node.register("/w/old", 'D', APP, 1, INHERIT);
    node.register("/w", 'A', APP, 10, INHERIT);
    node.register("/w", 'A', STATIC, 4, INHERIT);
    node.register("/w/new", 'D', APP, 1, INHERIT);
    assert_eq!((node.shown("/w/old"), node.shown("/w/new")), ("D1 A4".into(), "D1 A4".into()));
}

#[test]
fn strategies_without_routes_become_hidden_entries_that_follow_their_parent() {
    let mut node = Tables::new();
    node.strategies.set(name("/w/s/t").as_name(), strategy(7));
    node.recompute(vec![name("/w/s/t")]);
    assert_eq!(node.mirror[&name("/w/s/t")], (vec![], 7, true));
    let update = node.register("/w", 'A', APP, 10, INHERIT);
    let a10 = NextHop { face: face_of('A'), cost: 10 };
    assert_eq!(node.mirror[&name("/w/s/t")], (vec![a10], 7, true));
    let told: BTreeSet<_> = update.new_next_hops.into_iter().map(|(prefix, _)| prefix).collect();
    assert_eq!(told, BTreeSet::from([name("/w"), name("/w/s/t")]));
    // A route under it gets its strategy. With a route of its own, the hidden name becomes a real entry.
    node.register("/w/s/t/u", 'B', APP, 1, 0);
    assert_eq!(node.mirror[&name("/w/s/t/u")].1, 7);
    node.register("/w/s/t", 'D', APP, 5, INHERIT);
    assert_eq!(node.shown("/w/s/t"), "D5 A10");
    node.unregister("/w/s/t", 'D', APP);
    assert_eq!(node.mirror[&name("/w/s/t")], (vec![a10], 7, true));
    node.strategies.unset(name("/w/s/t").as_name());
    node.recompute(vec![name("/w/s/t")]);
    assert!(!node.mirror.contains_key(&name("/w/s/t")));
    assert_eq!(node.mirror[&name("/w/s/t/u")].1, 0);
    let listed: Vec<NameBuf> = node.fib.dataset(|_| false).map(|entry| entry.name).collect();
    assert_eq!(listed, [name("/w"), name("/w/s/t/u")], "hidden entries are not listed");
    assert_eq!(node.fib.len(), 2);
}

/// Deterministic: it counts changes, not time. Each registration changes one FIB entry, whatever else the RIB holds.
#[test]
fn a_leaf_among_a_hundred_thousand_routes_changes_one_entry() {
    let mut node = Tables::new();
    let mut prefixes = Vec::new();
    for i in 0..100_000 {
        let prefix = name(&format!("/net/{}/site/{i}", i % 317));
        let route = Route {
            face: FaceId(300 + i % 64),
            origin: APP,
            cost: i % 9,
            flags: INHERIT,
            expires_at_ns: None,
            holder: HolderId::ANY_LOCAL,
        };
        node.rib.insert(prefix.as_name(), route).expect("room");
        prefixes.push(prefix);
    }
    let update = node.recompute(vec![NameBuf::new()]);
    assert_eq!(update.changes.len(), 100_000);
    for i in 0..1000usize {
        let prefix = format!("{}/app", prefixes[i * 97].as_name());
        let update = node.register(&prefix, 'A', APP, 1, INHERIT);
        assert_eq!(update.changes.len(), 1, "{prefix}");
        assert_eq!(update.new_next_hops, [(name(&prefix), face_of('A'))], "the inherited face is not new there");
    }
    for i in 0..1000usize {
        let prefix = format!("{}/app", prefixes[i * 97].as_name());
        assert_eq!(node.unregister(&prefix, 'A', APP).changes, [FibChange::Remove { name: name(&prefix) }]);
    }
    assert_eq!(node.fib.len(), 100_000);
}

// ---- the oracle ----

#[derive(Clone, Debug)]
enum Operation {
    Register { prefix: NameBuf, face: u64, origin: u64, cost: u64, flags: u64, lifetime: Option<u64> },
    Unregister { prefix: NameBuf, face: u64, origin: u64 },
    Add { prefix: NameBuf, face: u64, cost: u64 },
    RemoveNextHop { prefix: NameBuf, face: u64 },
    FaceGone { face: u64 },
    Set { prefix: NameBuf, strategy: u32 },
    Unset { prefix: NameBuf },
    Pass { time: u64 },
}

fn prefix() -> impl Strategy<Value = NameBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..5).prop_map(|components| {
        let mut name = NameBuf::new();
        components.iter().for_each(|component| {
            name.push_generic(component.as_bytes());
        });
        name
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let register =
        (prefix(), 1..5u64, prop::sample::select(vec![0u64, 255]), 0..6u64, 0..4u64, prop::option::of(1..9u64))
            .prop_map(|(prefix, face, origin, cost, flags, lifetime)| Operation::Register {
                prefix,
                face,
                origin,
                cost,
                flags,
                lifetime,
            });
    prop_oneof![
        6 => register,
        3 => (prefix(), 1..5u64, prop::sample::select(vec![0u64, 255]))
            .prop_map(|(prefix, face, origin)| Operation::Unregister { prefix, face, origin }),
        1 => (prefix(), 1..5u64, 0..6u64).prop_map(|(prefix, face, cost)| Operation::Add { prefix, face, cost }),
        1 => (prefix(), 1..5u64).prop_map(|(prefix, face)| Operation::RemoveNextHop { prefix, face }),
        1 => (1..5u64).prop_map(|face| Operation::FaceGone { face }),
        2 => (prefix(), 1..4u32).prop_map(|(prefix, strategy)| Operation::Set { prefix, strategy }),
        1 => prefix().prop_map(|prefix| Operation::Unset { prefix }),
        1 => (1..5u64).prop_map(|time| Operation::Pass { time }),
    ]
}

/// The oracle: everything as unordered lists, and the plain rule as the notes state it.
#[derive(Default)]
struct Oracle {
    routes: Vec<(NameBuf, Route)>,
    manual: Vec<(NameBuf, NextHop)>,
    strategies: Vec<(NameBuf, u32)>,
}

impl Oracle {
    fn is_prefix(a: &NameBuf, b: &NameBuf) -> bool {
        a.as_name().is_prefix_of(&b.as_name())
    }

    fn routes_of(&self, prefix: &NameBuf) -> Vec<Route> {
        self.routes.iter().filter(|(at, _)| at == prefix).map(|(_, route)| *route).collect()
    }

    fn next_hops(&self, at: &NameBuf) -> Vec<NextHop> {
        let mut best: BTreeMap<FaceId, u64> = BTreeMap::new();
        for route in self.routes_of(at) {
            let cost = best.entry(route.face).or_insert(route.cost);
            *cost = route.cost.min(*cost);
        }
        let own = self.routes_of(at);
        if !own.is_empty() && own.iter().all(|route| route.flags & CAPTURE == 0) {
            for length in (0..at.len()).rev() {
                let ancestor = self.routes_of(&at.as_name().prefix(length).to_buf());
                let mut inherited: BTreeMap<FaceId, u64> = BTreeMap::new();
                for route in ancestor.iter().filter(|route| route.flags & INHERIT != 0) {
                    let cost = inherited.entry(route.face).or_insert(route.cost);
                    *cost = route.cost.min(*cost);
                }
                for (face, cost) in inherited {
                    best.entry(face).or_insert(cost);
                }
                if ancestor.iter().any(|route| route.flags & CAPTURE != 0) {
                    break;
                }
            }
        }
        for (_, hop) in self.manual.iter().filter(|(prefix, _)| prefix == at) {
            best.insert(hop.face, hop.cost);
        }
        let mut hops: Vec<NextHop> = best.into_iter().map(|(face, cost)| NextHop { face, cost }).collect();
        hops.sort_by_key(|hop| (hop.cost, hop.face));
        hops
    }

    fn strategy(&self, at: &NameBuf) -> u32 {
        let matching = self.strategies.iter().filter(|(prefix, _)| Oracle::is_prefix(prefix, at));
        matching.max_by_key(|(prefix, _)| prefix.len()).map_or(0, |(_, strategy)| *strategy)
    }

    fn fib(&self) -> Mirror {
        let mut real = BTreeSet::new();
        real.extend(self.routes.iter().map(|(prefix, _)| prefix.clone()));
        real.extend(self.manual.iter().map(|(prefix, _)| prefix.clone()));
        let mut fib: Mirror =
            real.iter().map(|at| (at.clone(), (self.next_hops(at), self.strategy(at), false))).collect();
        let chosen = self.strategies.iter().map(|(prefix, _)| prefix.clone());
        for at in chosen.chain([NameBuf::new()]).filter(|at| !real.contains(at)) {
            let parent = real.iter().filter(|prefix| Oracle::is_prefix(prefix, &at)).max_by_key(|prefix| prefix.len());
            let hops = parent.map_or(vec![], |parent| self.next_hops(parent));
            let strategy = self.strategy(&at);
            fib.insert(at, (hops, strategy, true));
        }
        fib
    }
}

fn longest_match<'m>(fib: &'m Mirror, at: &NameBuf) -> &'m [NextHop] {
    let matching = fib.iter().filter(|(prefix, _)| Oracle::is_prefix(prefix, at));
    matching.max_by_key(|(prefix, _)| prefix.len()).map_or(&[], |(_, (hops, ..))| hops)
}

/// Applies one operation to both; returns the changed prefixes.
fn apply(node: &mut Tables, oracle: &mut Oracle, now: &mut u64, operation: Operation) -> Vec<NameBuf> {
    match operation {
        Operation::Register { prefix, face, origin, cost, flags, lifetime } => {
            let expires_at_ns = lifetime.and_then(|lifetime| NonZero::new(*now + lifetime));
            let route = Route { face: FaceId(face), origin, cost, flags, expires_at_ns, holder: HolderId::ANY_LOCAL };
            let changes = node.rib.insert(prefix.as_name(), route).expect("room");
            oracle.routes.retain(|(at, r)| (at, r.face, r.origin) != (&prefix, route.face, origin));
            oracle.routes.push((prefix.clone(), route));
            if changes { vec![prefix] } else { vec![] }
        }
        Operation::Unregister { prefix, face, origin } => {
            let before = oracle.routes.len();
            oracle.routes.retain(|(at, r)| (at, r.face, r.origin) != (&prefix, FaceId(face), origin));
            assert_eq!(node.rib.remove(prefix.as_name(), FaceId(face), origin), before != oracle.routes.len());
            vec![prefix]
        }
        Operation::Add { prefix, face, cost } => {
            let hop = NextHop { face: FaceId(face), cost };
            node.manual.insert(prefix.as_name(), hop).expect("room");
            oracle.manual.retain(|(at, h)| (at, h.face) != (&prefix, hop.face));
            oracle.manual.push((prefix.clone(), hop));
            vec![prefix]
        }
        Operation::RemoveNextHop { prefix, face } => {
            node.manual.remove(prefix.as_name(), FaceId(face));
            oracle.manual.retain(|(at, h)| (at, h.face) != (&prefix, FaceId(face)));
            vec![prefix]
        }
        Operation::FaceGone { face } => {
            node.rib.leave(FaceId(face));
            let mut changed = node.rib.remove_leaving(usize::MAX);
            changed.extend(node.manual.remove_face(FaceId(face)));
            oracle.routes.retain(|(_, r)| r.face != FaceId(face));
            oracle.manual.retain(|(_, h)| h.face != FaceId(face));
            changed
        }
        Operation::Set { prefix, strategy: id } => {
            node.strategies.set(prefix.as_name(), strategy(id));
            oracle.strategies.retain(|(at, _)| *at != prefix);
            oracle.strategies.push((prefix.clone(), id));
            vec![prefix]
        }
        Operation::Unset { prefix } => {
            node.strategies.unset(prefix.as_name());
            oracle.strategies.retain(|(at, _)| *at != prefix || at.is_empty());
            vec![prefix]
        }
        Operation::Pass { time } => {
            *now += time;
            oracle.routes.retain(|(_, route)| route.expires_at_ns.is_none_or(|at| at.get() > *now));
            node.rib.expire(*now, usize::MAX)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn incremental_equals_from_scratch(operations in prop::collection::vec(operation(), 1..60)) {
        let (mut node, mut oracle, mut now) = (Tables::new(), Oracle::default(), 0);
        for operation in operations {
            let before = node.mirror.clone();
            let shown = format!("{operation:?}");
            let changed = apply(&mut node, &mut oracle, &mut now, operation);
            let update = node.recompute(changed);
            prop_assert_eq!(&node.mirror, &oracle.fib(), "after {}", &shown);
            prop_assert_eq!(node.rib.len(), oracle.routes.len());
            prop_assert_eq!(node.fib.len(), node.mirror.values().filter(|(_, _, hidden)| !hidden).count());
            let told: BTreeSet<(NameBuf, FaceId)> = update.new_next_hops.iter().cloned().collect();
            prop_assert_eq!(told.len(), update.new_next_hops.len());
            let mut new = BTreeSet::new();
            for (at, (hops, ..)) in &node.mirror {
                let old = longest_match(&before, at);
                let is_new = |hop: &&NextHop| !old.iter().any(|o| o.face == hop.face);
                new.extend(hops.iter().filter(is_new).map(|hop| (at.clone(), hop.face)));
            }
            prop_assert_eq!(told, new, "new next hops after {}", &shown);
        }
    }

    /// Any changes, each computed for a few names only, with or without slices of the rest in between. In the end every
    /// entry is right, and pending Interests were told of every next hop that they may now use.
    #[test]
    fn slices_in_any_order_equal_from_scratch(
        steps in prop::collection::vec((operation(), 1_usize..4, 0_usize..4), 1..60),
    ) {
        let (mut node, mut oracle, mut now) = (Tables::new(), Oracle::default(), 0);
        let before = node.mirror.clone();
        let mut told = BTreeSet::new();
        for (operation, most_names, slices) in steps {
            let changed = apply(&mut node, &mut oracle, &mut now, operation);
            let own = changed.first().cloned().filter(|_| changed.len() == 1);
            told.extend(node.follow(|fib, sources| fib.recompute(changed, sources, most_names)).new_next_hops);
            if let Some(own) = own {
                let found = node.mirror.get(&own).filter(|(_, _, hidden)| !hidden);
                let wanted = oracle.fib();
                prop_assert_eq!(found, wanted.get(&own).filter(|(_, _, hidden)| !hidden), "at once: {}", own);
            }
            for _ in 0..slices {
                told.extend(node.follow(|fib, sources| fib.resume(sources, 2)).new_next_hops);
            }
        }
        let mut slices = 0;
        while !node.fib.is_settled() {
            told.extend(node.follow(|fib, sources| fib.resume(sources, 2)).new_next_hops);
            slices += 1;
            prop_assert!(slices < 10_000, "it never ends");
        }
        prop_assert_eq!(&node.mirror, &oracle.fib());
        prop_assert_eq!(node.fib.len(), node.mirror.values().filter(|(_, _, hidden)| !hidden).count());
        for (at, (hops, ..)) in &node.mirror {
            let old = longest_match(&before, at);
            for hop in hops.iter().filter(|hop| !old.iter().any(|old| old.face == hop.face)) {
                let is_told = |(prefix, face): &(NameBuf, FaceId)| *face == hop.face && Oracle::is_prefix(prefix, at);
                prop_assert!(told.iter().any(is_told), "{} was not told of {}", at, hop.face);
            }
        }
    }
}
