//! What do updates cost with each of the three ways to keep markers?
//!
//! Source: Yuan15 §3.3.1, "FIB Updates", which compares them by complexity and has no figures. Two questions:
//!
//! - *Fill*: is the time for a route the same in a large table as in a small one? Routes of 4 to 7 components come in
//!   random order, among them the prefixes of sites (64 routes each) and zones (4,096 routes each).
//! - *Update*: what does a prefix above 1, 64 or 4,096 routes take to insert, to change and to remove? The table has no
//!   other prefix of fewer than four components, so all markers below the prefix inherit from it.
//!
//! Times are processor time of this thread. After each fill and each update, markers must lead where the reference
//! model says.

use std::ops::Range;

use anyhow::ensure;
use namewire_designs::fib::hash_tables::{HashTableOptions, HashTables, MarkerMaintenance};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixTable as _};

use crate::clock::thread_time_ns;
use crate::experiment::{Context, Outcome, Samples, Scale};
use crate::name_arena::{NameArena, ReferenceModel, port};
use crate::split_mix::split_mix;

const LONGEST_COMPONENTS: u64 = 7;
/// Components of the shortest route.
const LEAST_COMPONENTS: u64 = 4;
const SITE_ROUTES: u64 = 64;
const ZONE_ROUTES: u64 = 4_096;
/// Routes below a prefix of 1, 2 and 3 components.
const ROUTES_BELOW: [u64; 3] = [ZONE_ROUTES, SITE_ROUTES, 1];

const SMALL_FILL: usize = 5_000;
const LARGE_FILL: usize = 40_000;
const REPETITIONS: usize = 7;
const _: () = assert!(LARGE_FILL.is_multiple_of(SMALL_FILL));
/// Prefixes that an update is timed with.
const UPDATED: u64 = 16;
const COMPONENT_CHARACTERS: usize = 8;
const COMPONENT_BYTES: usize = 2 + COMPONENT_CHARACTERS;

/// Adds the rows of all methods, and the headline.
pub(super) fn measure(context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    fills(context, outcome)?;
    let routes = match context.scale {
        Scale::Smoke => SMALL_FILL,
        Scale::Quick => LARGE_FILL,
        Scale::Full => 1_000_000,
    };
    MarkerMaintenance::ALL.into_iter().try_for_each(|method| updates(method, routes, context, outcome))
}

fn options(maintenance: MarkerMaintenance) -> HashTableOptions {
    HashTableOptions { maintenance, longest_components: LONGEST_COMPONENTS as usize, ..HashTableOptions::CITY_A }
}

/// Repetitions, and fills of a repetition, whose median counts. A smoke test fills once and checks the tables.
const fn repetitions_and_rounds(scale: Scale) -> (usize, usize) {
    match scale {
        Scale::Smoke => (1, 1),
        Scale::Quick | Scale::Full => (REPETITIONS, 5),
    }
}

/// To look through all entries is linear in the routes by design; so only the other two methods take part.
fn fills(context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let large = routes_with_prefixes(context.seed, LARGE_FILL);
    let small = |number: u64| routes_with_prefixes(split_mix(context.seed ^ number), SMALL_FILL);
    let small: Vec<NameArena> = (0..(LARGE_FILL / SMALL_FILL) as u64).map(small).collect();
    let (repetitions, rounds) = repetitions_and_rounds(context.scale);
    for method in [MarkerMaintenance::Lists, MarkerMaintenance::Partitions] {
        let mut samples = <[Samples; 3]>::default();
        for _ in 0..repetitions {
            let mut fills =
                (0..rounds).map(|_| fill(method, &small, &large, context)).collect::<anyhow::Result<Vec<_>>>()?;
            fills.sort_by(|[.., one], [.., other]| one.total_cmp(other));
            samples.iter_mut().zip(fills[rounds / 2]).for_each(|(samples, value)| samples.add(value));
        }
        for (samples, routes) in samples.iter().zip([SMALL_FILL, LARGE_FILL]) {
            let case = format!("maintenance, {routes} routes");
            outcome.rows.push(samples.row(&case, method.name(), "fill", "ns per route", None));
        }
        if method == MarkerMaintenance::Lists {
            outcome.add_steady("lists_ns_40k_over_5k", &samples[2]);
        }
    }
    Ok(())
}

/// Fills small tables, and in turn with them a large one with as many routes together. Nanoseconds per route of both,
/// and the large table's over the small ones'.
fn fill(
    method: MarkerMaintenance,
    small: &[NameArena],
    large: &NameArena,
    context: &Context,
) -> anyhow::Result<[f64; 3]> {
    context.check_interrupt()?;
    let empty = |routes: &NameArena| HashTables::new(routes.len(), [context.seed, !context.seed], options(method));
    let mut large_table = empty(large)?;
    let (mut small_ns, mut large_ns) = (0, 0);
    for (place, routes) in small.iter().enumerate() {
        let mut table = empty(routes)?;
        small_ns += insert(&mut table, routes, 0..routes.len())?;
        check(&table, routes)?;
        large_ns += insert(&mut large_table, large, place * SMALL_FILL..(place + 1) * SMALL_FILL)?;
    }
    check(&large_table, large)?;
    let [small_ns, large_ns] = [small_ns, large_ns].map(|ns| ns as f64 / large.len() as f64);
    Ok([small_ns, large_ns, large_ns / small_ns])
}

/// The processor time that this takes.
fn insert(table: &mut HashTables, routes: &NameArena, numbers: Range<usize>) -> anyhow::Result<u64> {
    let started_ns = thread_time_ns();
    for number in numbers {
        table.insert(routes.get(number), port(number))?;
    }
    Ok(thread_time_ns() - started_ns)
}

fn updates(method: MarkerMaintenance, routes: usize, context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let leaves = leaves(context.seed, routes);
    let mut table = HashTables::new(routes + UPDATED as usize, [context.seed, !context.seed], options(method))?;
    // Shortest first, an insertion finds no longer entries to look through.
    let mut numbers: Vec<usize> = (0..leaves.len()).collect();
    numbers.sort_by_key(|&number| LEAST_COMPONENTS + number as u64 % LEAST_COMPONENTS);
    for number in numbers {
        table.insert(leaves.get(number), port(number))?;
    }
    let case = format!("maintenance, {routes} routes");
    outcome.add_value(&case, method.name(), ("memory", "bytes per route"), table.bytes() as f64 / routes as f64);
    for (components, below) in (1..).zip(ROUTES_BELOW) {
        let mut samples = <[Samples; 3]>::default();
        for _ in 0..REPETITIONS {
            context.check_interrupt()?;
            let times_ns = update_once(&mut table, context.seed, components, below, routes as u64)?;
            for (samples, ns) in samples.iter_mut().zip(times_ns) {
                samples.add(ns);
            }
        }
        for (samples, what) in samples.iter().zip(["insert", "change", "remove"]) {
            let metric = format!("{what} a prefix above {below} routes");
            outcome.rows.push(samples.row(&case, method.name(), &metric, "ns", None));
        }
    }
    check(&table, &leaves)
}

/// Inserts, changes and removes some prefixes of this many components; the mean time of each.
fn update_once(
    table: &mut HashTables,
    seed: u64,
    components: u64,
    below: u64,
    routes: u64,
) -> anyhow::Result<[f64; 3]> {
    let prefixes = UPDATED.min(routes / below);
    // A route of seven components.
    let route = |number: u64| (number * (routes / prefixes)) | 3;
    let above = arena(seed, (0..prefixes).map(|number| (route(number), components)));
    // It ends at the longer marker of the route.
    let below = arena(seed, (0..prefixes).map(|number| (route(number), 6)));
    let mut times_ns = [0.0; 3];
    for (time_ns, port) in times_ns.iter_mut().zip([Some(300), Some(301), None]) {
        let started_ns = thread_time_ns();
        for prefix in above.iter() {
            match port {
                Some(port) => drop(table.insert(prefix, port)?),
                None => drop(table.remove(prefix)),
            }
        }
        *time_ns = (thread_time_ns() - started_ns) as f64 / prefixes as f64;
        for name in below.iter() {
            let mut found = [None];
            table.longest_prefix_match_batch(&[name], &mut found);
            ensure!(found[0].map(|found| found.number) == port, "{found:?} instead of {port:?}");
        }
    }
    Ok(times_ns)
}

/// Routes, and names that may end at their markers, lead where the model says.
fn check(table: &HashTables, routes: &NameArena) -> anyhow::Result<()> {
    let model = ReferenceModel::new(routes);
    let cut = |route: &'_ [u8], components: usize| route.len().saturating_sub(components * COMPONENT_BYTES);
    for components in 0..LONGEST_COMPONENTS as usize {
        let names: Vec<&[u8]> = routes.iter().map(|route| &route[..cut(route, components)]).collect();
        for names in names.chunks(DESIGN_BATCH_NAMES) {
            let mut found = vec![None; names.len()];
            table.longest_prefix_match_batch(names, &mut found);
            for (name, found) in names.iter().zip(found) {
                let answer = model.longest_prefix_match(name);
                ensure!(found == answer, "{found:?} instead of {answer:?}");
            }
        }
    }
    Ok(())
}

/// Routes in random order; with those of sites and zones.
fn routes_with_prefixes(seed: u64, routes: usize) -> NameArena {
    let of_route = |route: u64| {
        let leaf = LEAST_COMPONENTS + route % LEAST_COMPONENTS;
        let prefixes =
            [(1, ZONE_ROUTES), (2, SITE_ROUTES)].into_iter().filter(move |(_, every)| route.is_multiple_of(*every));
        prefixes.map(|(components, _)| components).chain([leaf]).map(move |components| (route, components))
    };
    let mut names: Vec<(u64, u64)> = (0..).flat_map(of_route).take(routes).collect();
    names.sort_by_key(|&(route, components)| split_mix(seed ^ split_mix((route << 3) | components)));
    arena(seed, names.into_iter())
}

fn leaves(seed: u64, routes: usize) -> NameArena {
    arena(seed, (0..routes as u64).map(|route| (route, LEAST_COMPONENTS + route % LEAST_COMPONENTS)))
}

fn arena(seed: u64, names: impl Iterator<Item = (u64, u64)>) -> NameArena {
    let mut arena = NameArena::default();
    let mut name = Vec::new();
    for (route, components) in names {
        name.clear();
        push_name(seed, route, components, &mut name);
        arena.push(&name);
    }
    arena
}

/// The first components of a route: its zone, its site, and others of its own.
fn push_name(seed: u64, route: u64, components: u64, out: &mut Vec<u8>) {
    for place in 0..components {
        let part = match place {
            0 => route / ZONE_ROUTES,
            1 => route / SITE_ROUTES,
            _ => route,
        };
        out.extend_from_slice(&[8, COMPONENT_CHARACTERS as u8]);
        let random = split_mix(seed ^ split_mix((part << 3) | place)).to_le_bytes();
        out.extend(random.map(|byte| b'a' + byte % 26));
    }
}
