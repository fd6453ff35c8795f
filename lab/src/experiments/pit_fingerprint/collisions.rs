//! Table 5.4: how often do fingerprints collide, and how many names find no room?
//!
//! f'_p is taken over all names inserted, both phases; the first phase, in which the table fills, has half the rate
//! of the second. E·d·ld/2^w of §5.4.5, the rate at 75 %, is printed beside it, and so is that of the second phase
//! alone. M is the most that was in the overflow table at a time.

use anyhow::ensure;
use namewire_tables::HashKey;

use super::churn::Churn;
use super::requested_names::{NameHash, RequestedNames};
use super::{Size, size_name};
use crate::experiment::{Context, Outcome, Samples};

/// d_p of the paper, in percent.
const DUPLICATE_PERCENTS: [u64; 6] = [0, 20, 40, 60, 80, 100];
/// d of the paper.
pub(super) const SUBTABLES: [u8; 2] = [2, 4];
/// E·ld/2^w of the paper, per 10,000 names: times d that is the rate to expect.
const EXPECTED_PER_10_000: f64 = 8.0 * 0.75 / 65_536.0 * 10_000.0;

/// The steps that [`table_5_4`] takes.
pub(super) const fn steps(size: &Size) -> usize {
    (size.collision_tables.len() + 1) * SUBTABLES.len()
}

/// What one table of one number of subtables shows at most, over all d_p.
#[derive(Default)]
struct Largest {
    per_10_000: f64,
    second_phase_per_10_000: f64,
    overflowed: usize,
}

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
        for &entries in size.collision_tables {
            let largest = largest(context, names, keyed, (entries, subtables), size.rounds, outcome)?;
            let subject = size_name(entries);
            let expected = EXPECTED_PER_10_000 * f64::from(subtables);
            let off = largest.second_phase_per_10_000 / expected;
            ensure!(
                size.is_smoke || (0.9..1.1).contains(&off),
                "{case}, {subject}: {:.3} collisions in 10,000 names of the second phase, expected {expected:.3}",
                largest.second_phase_per_10_000
            );
            add(outcome, &case, &subject, ("f'p", "per 10000 names"), largest.per_10_000);
            add(outcome, &case, &subject, ("M", "100000 names"), largest.overflowed as f64 / 1e5);
            outcome.headline.insert(format!("fp_collision_d{subtables}"), largest.per_10_000 / 1e4);
            outcome.headline.insert(format!("fp_overflow_d{subtables}_{subject}"), largest.overflowed as f64);
        }
        let expected = EXPECTED_PER_10_000 * f64::from(subtables);
        add(outcome, &case, "E d ld / 2^w", ("f'p", "per 10000 names"), expected);
        let entries = size.collision_tables[0];
        let city = nothing_twice(context, names, NameHash::City, (entries, subtables), size.rounds)?;
        let subject = format!("{}, CityHash, dp = 0 %", size_name(entries));
        add(outcome, &case, &subject, ("f'p", "per 10000 names"), city.per_10_000);
    }
    Ok(())
}

fn nothing_twice(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    table: (u32, u8),
    rounds: u64,
) -> anyhow::Result<Largest> {
    context.begin_step(&format!("{}, d = {}, CityHash", size_name(table.0), table.1))?;
    let shown = run(context, names, hash, table, 0, rounds)?;
    context.end_step();
    Ok(shown)
}

/// All d_p for one size and number of subtables, and a row for each.
fn largest(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    (entries, subtables): (u32, u8),
    rounds: u64,
    outcome: &mut Outcome,
) -> anyhow::Result<Largest> {
    context.begin_step(&format!("{}, d = {subtables}", size_name(entries)))?;
    let mut largest = Largest::default();
    for duplicate_percent in DUPLICATE_PERCENTS {
        let shown = run(context, names, hash, (entries, subtables), duplicate_percent, rounds)?;
        let case = format!("d = {subtables}, dp = {duplicate_percent} %");
        let subject = size_name(entries);
        add(outcome, &case, &subject, ("f'p", "per 10000 names"), shown.per_10_000);
        add(outcome, &case, &subject, ("f'p of the second phase", "per 10000 names"), shown.second_phase_per_10_000);
        add(outcome, &case, &subject, ("M", "100000 names"), shown.overflowed as f64 / 1e5);
        largest.per_10_000 = largest.per_10_000.max(shown.per_10_000);
        largest.second_phase_per_10_000 = largest.second_phase_per_10_000.max(shown.second_phase_per_10_000);
        largest.overflowed = largest.overflowed.max(shown.overflowed);
    }
    context.end_step();
    Ok(largest)
}

fn run(
    context: &Context,
    names: &RequestedNames,
    hash: NameHash,
    table: (u32, u8),
    duplicate_percent: u64,
    rounds: u64,
) -> anyhow::Result<Largest> {
    let check = || Ok(context.check_interrupt()?);
    let mut churn = Churn::new(names, hash, table, duplicate_percent, context.seed)?;
    churn.fill(&check)?;
    let (filled, collided) = (churn.inserted(), churn.fingerprint_collisions());
    churn.turn_over(rounds * churn.pending(), &check)?;
    let rate = |collisions: u64, names: u64| collisions as f64 / names as f64 * 1e4;
    let collisions = churn.fingerprint_collisions();
    Ok(Largest {
        per_10_000: rate(collisions, churn.inserted()),
        second_phase_per_10_000: rate(collisions - collided, churn.inserted() - filled),
        overflowed: churn.overflowed_max(),
    })
}

fn add(outcome: &mut Outcome, case: &str, subject: &str, (metric, unit): (&str, &str), value: f64) {
    let mut samples = Samples::default();
    samples.add(value);
    outcome.rows.push(samples.row(case, subject, metric, unit, None));
}
