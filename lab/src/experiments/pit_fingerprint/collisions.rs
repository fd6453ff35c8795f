//! Table 5.4: how often fingerprints collide, and how many names overflow.
//!
//! f'_p counts all inserted names, in both phases. Phase one does not fill the table: names requested twice stay k
//! times as long as all pending names take. So, unless d_p = 0, the load reaches ld only [`FILLING_ROUNDS`] into phase
//! two. From then on every d_p must have the rate E·d·ld/2^w of §5.4.5, which is printed too. M is the most names in
//! the overflow table at a time.

use anyhow::ensure;
use namewire_tables::HashKey;

use super::churn::{Churn, LIFETIME_FACTOR};
use super::requested_names::{NameHash, RequestedNames};
use super::{Size, size_name};
use crate::experiment::{Context, Outcome};

/// d_p of the paper, in percent.
const DUPLICATE_PERCENTS: [u64; 6] = [0, 20, 40, 60, 80, 100];
/// d of the paper.
pub(super) const SUBTABLES: [u8; 2] = [2, 4];
/// E·ld/2^w of the paper; times d, it is the expected rate at load ld.
const EXPECTED_RATE: f64 = 8.0 * 0.75 / 65_536.0;
/// Rounds of phase two until as many names requested twice leave as enter: k, less phase one.
const FILLING_ROUNDS: u64 = LIFETIME_FACTOR - 1;
/// Tolerance of the rate beyond chance: lives are rounded up to a tick, which is a fiftieth of a life.
const TOLERANCE: f64 = 0.03;

/// The steps that [`table_5_4`] takes.
pub(super) const fn steps(size: &Size) -> usize {
    (size.collision_tables.len() + 1) * SUBTABLES.len()
}

/// The result of one table, for one d_p or the maximum over all.
#[derive(Default)]
struct Shown {
    per_10_000: f64,
    at_load_per_10_000: f64,
    overflowed: usize,
}

const RATE: (&str, &str) = ("f'p", "per 10000 names");
const RATE_AT_LOAD: (&str, &str) = ("f'p at 75 % load", "per 10000 names");
const OVERFLOWED: (&str, &str) = ("M", "100000 names");

/// Table 5.4, and its first column under CityHash.
pub(super) fn table_5_4(
    context: &Context,
    names: &RequestedNames,
    size: &Size,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let keyed = NameHash::Keyed(HashKey::from_seed(context.seed));
    for subtables in SUBTABLES {
        let case = format!("Table 5.4, d = {subtables}");
        for &entries in &size.collision_tables {
            let largest = largest(context, names, keyed, (entries, subtables), size.rounds, outcome)?;
            let subject = size_name(entries);
            outcome.add_value(&case, &subject, RATE, largest.per_10_000);
            outcome.add_value(&case, &subject, RATE_AT_LOAD, largest.at_load_per_10_000);
            outcome.add_value(&case, &subject, OVERFLOWED, largest.overflowed as f64 / 1e5);
            outcome.headline.insert(format!("fp_collision_d{subtables}"), largest.per_10_000 / 1e4);
            outcome.headline.insert(format!("fp_overflow_d{subtables}_{subject}"), largest.overflowed as f64);
        }
        outcome.add_value(&case, "E d ld / 2^w", RATE, EXPECTED_RATE * f64::from(subtables) * 1e4);
        let entries = size.collision_tables[0];
        let city = nothing_twice(context, names, NameHash::City, (entries, subtables), size.rounds)?;
        let subject = format!("{}, CityHash, dp = 0 %", size_name(entries));
        outcome.add_value(&case, &subject, RATE, city.per_10_000);
    }
    Ok(())
}

fn nothing_twice(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    table: (u32, u8),
    rounds: u64,
) -> anyhow::Result<Shown> {
    context.begin_step(&format!("{}, d = {}, CityHash", size_name(table.0), table.1))?;
    let shown = run(context, names, hash, table, 0, rounds)?;
    Ok(shown)
}

/// All d_p for one size and number of subtables, with a row each.
fn largest(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    (entries, subtables): (u32, u8),
    rounds: u64,
    outcome: &mut Outcome,
) -> anyhow::Result<Shown> {
    context.begin_step(&format!("{}, d = {subtables}", size_name(entries)))?;
    let mut largest = Shown::default();
    for duplicate_percent in DUPLICATE_PERCENTS {
        let shown = run(context, names, hash, (entries, subtables), duplicate_percent, rounds)?;
        let case = format!("d = {subtables}, dp = {duplicate_percent} %");
        let subject = size_name(entries);
        outcome.add_value(&case, &subject, RATE, shown.per_10_000);
        outcome.add_value(&case, &subject, RATE_AT_LOAD, shown.at_load_per_10_000);
        outcome.add_value(&case, &subject, OVERFLOWED, shown.overflowed as f64 / 1e5);
        largest.per_10_000 = largest.per_10_000.max(shown.per_10_000);
        largest.at_load_per_10_000 = largest.at_load_per_10_000.max(shown.at_load_per_10_000);
        largest.overflowed = largest.overflowed.max(shown.overflowed);
    }
    Ok(largest)
}

fn run(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    table: (u32, u8),
    duplicate_percent: u64,
    rounds: u64,
) -> anyhow::Result<Shown> {
    let check = || Ok(context.check_interrupt()?);
    let mut churn = Churn::new(names, hash, table, duplicate_percent, context.seed)?;
    churn.fill(&check)?;
    churn.turn_over(FILLING_ROUNDS * churn.pending(), &check)?;
    let (filled, collided) = (churn.inserted(), churn.fingerprint_collisions());
    churn.turn_over((rounds - FILLING_ROUNDS) * churn.pending(), &check)?;
    let (at_load, collided_at_load) = (churn.inserted() - filled, churn.fingerprint_collisions() - collided);
    let expected = EXPECTED_RATE * f64::from(table.1) * at_load as f64;
    let off = (collided_at_load as f64 - expected).abs();
    ensure!(
        off < TOLERANCE * expected + 4.0 * (expected + 1.0).sqrt(), // chance exceeds four deviations in one of 16,000 runs
        "{} entries, d = {}, dp = {duplicate_percent} %: {collided_at_load} collisions in {at_load} names, \
         expected {expected:.1}",
        table.0,
        table.1
    );
    let rate = |collisions: u64, names: u64| collisions as f64 / names as f64 * 1e4;
    Ok(Shown {
        per_10_000: rate(churn.fingerprint_collisions(), churn.inserted()),
        at_load_per_10_000: rate(collided_at_load, at_load),
        overflowed: churn.overflowed_max(),
    })
}
