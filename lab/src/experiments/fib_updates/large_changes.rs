//! How long does a change take if it concerns many rules of a lossy design?
//!
//! A lossy design distinguishes only the shortest rules, and keeps longer rules in full below them (Yuan15 §4.2). So a
//! new rule above n others moves these n, and so does its removal; a change of the root concerns all rules, or all that
//! lead to its number. Here the FIB is a router's: one controller and two tables. Meanwhile a router's workers read the
//! copy that is not being changed, but the control thread answers no other command.
//!
//! n doubles twice, to show that the time grows as n does. Times are processor time of this thread, both copies
//! included.

use anyhow::ensure;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::string_differentiation::DefaultRoute;
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::{Fib, FibConfig, HashKey, NameHashes, NextHop};

use crate::clock::thread_time_ns;
use crate::experiment::{Context, Outcome, Samples, Scale};
use crate::split_mix::split_mix;

const REPETITIONS: usize = 5;
/// Of a rule.
const COMPONENTS: u64 = 4;
/// Behind the faces of the rules.
const ROOT_FACE: u64 = 200;
const FIRST_FACE: u64 = 256;

/// What changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Of a rule of one component above all others.
    ShortRule,
    /// Of a default route like other rules.
    Root,
    /// Of the number of a default table, to which most rules lead.
    DefaultTable,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Self::ShortRule => "short rule",
            Self::Root => "root",
            Self::DefaultTable => "default table's number",
        }
    }

    fn options(self) -> FibDesignOptions {
        let default_route = match self {
            Self::ShortRule => DefaultRoute::Speculative,
            Self::Root => DefaultRoute::Exact,
            Self::DefaultTable => DefaultRoute::Followed,
        };
        FibDesignOptions { default_route: Some(default_route), ..FibDesignOptions::default() }
    }

    /// Where a rule leads: with a default table, fifteen of sixteen to the root's face.
    const fn face(self, rule: u64) -> u64 {
        if matches!(self, Self::DefaultTable) && !rule.is_multiple_of(16) { ROOT_FACE } else { rule % ROOT_FACE }
    }
}

/// Adds the rows and headlines.
pub(super) fn measure(context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let most = match context.scale {
        Scale::Smoke => 10_000,
        Scale::Quick => 100_000,
        Scale::Full => 1_000_000,
    };
    for design in FibDesign::ALL.into_iter().filter(|design| !design.is_lossless()) {
        for change in [Change::ShortRule, Change::Root, Change::DefaultTable] {
            if design.check(&change.options()).is_ok() {
                of_design(design, change, most, context, outcome)?;
            }
        }
    }
    Ok(())
}

fn of_design(
    design: FibDesign,
    change: Change,
    most: u64,
    context: &Context,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    for rules in [most / 4, most / 2, most] {
        let config = FibConfig::new(rules as usize + 1);
        let mut fib = design.fib(&change.options(), config, HashKey::from_seed(context.seed))?;
        for number in 0..rules {
            insert(&mut fib, &rule(number, COMPONENTS), change.face(number))?;
        }
        let prefix = if change == Change::ShortRule { rule(0, 1) } else { Vec::new() };
        let mut samples = <[Samples; 2]>::default();
        for _ in 0..REPETITIONS {
            context.check_interrupt()?;
            let started_ns = thread_time_ns();
            insert(&mut fib, &prefix, ROOT_FACE)?;
            let insert_ns = thread_time_ns() - started_ns;
            check(&fib, rules, change)?;
            let started_ns = thread_time_ns();
            ensure!(fib.remove(&prefix)?, "the rule was there");
            let remove_ns = thread_time_ns() - started_ns;
            for (samples, ns) in samples.iter_mut().zip([insert_ns, remove_ns]) {
                samples.add(ns as f64 / 1e6);
            }
        }
        for (samples, what) in samples.iter().zip(["insert", "remove"]) {
            let metric = format!("{what}: {}", change.name());
            outcome.rows.push(samples.row(&format!("{rules} rules below"), design.name(), &metric, "ms", None));
        }
    }
    Ok(())
}

fn insert(fib: &mut Fib, prefix: &[u8], face: u64) -> anyhow::Result<()> {
    fib.insert(prefix, &[NextHop { face: FIRST_FACE + face, cost: 0 }], 0, false)?;
    fib.publish();
    Ok(())
}

/// Every rule leads where it should.
fn check(fib: &Fib, rules: u64, change: Change) -> anyhow::Result<()> {
    let mut hashes = vec![NameHashes::default(); DESIGN_BATCH_NAMES];
    for first in (0..rules).step_by(DESIGN_BATCH_NAMES) {
        let numbers = first..rules.min(first + DESIGN_BATCH_NAMES as u64);
        let names: Vec<Vec<u8>> = numbers.clone().map(|number| rule(number, COMPONENTS + 1)).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
        NameHashes::compute_batch(fib.key(), &names, &mut hashes[..names.len()]);
        let mut found = vec![None; names.len()];
        fib.view().longest_prefix_match_batch(&names, &hashes, &mut found);
        for (number, found) in numbers.zip(found) {
            let found = found.map(|found| found.nexthops[0].face - FIRST_FACE);
            ensure!(found == Some(change.face(number)), "rule {number} leads to {found:?}");
        }
    }
    Ok(())
}

/// Components of a rule: one that all rules share, one of 64 rules, and two of its own. A name has one more.
fn rule(number: u64, components: u64) -> Vec<u8> {
    let mut name = Vec::new();
    for place in 0..components {
        let part = match place {
            0 => 0,
            1 => number / 64,
            _ => number,
        };
        name.extend_from_slice(&[8, 8]);
        name.extend(split_mix((part << 3) | place).to_le_bytes().map(|byte| b'a' + byte % 26));
    }
    name
}
