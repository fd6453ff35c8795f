//! Fig. 5.7: how long an insertion or a deletion takes.
//!
//! Tables are filled to 75 % and turned over once; no name is requested twice (d_p = 0). A slice of names to delete and
//! to insert is written, and hashed, shortly before it is timed, as if packets had just been received and parsed.
//! *Scalar*: one operation after the other. *Batch*: 64 operations, with the buckets of each prefetched [`AHEAD_TURNS`]
//! turns before. Both also run with hashing in the timed part. *Engine's order*: the router's order for the names of a
//! batch, with hashing. All variants take turns by slices on the same table, and every Data of every slice must find
//! its port.

use std::collections::BTreeMap;

use anyhow::ensure;
use namewire_tables::HashKey;
use namewire_tables::fingerprint_pit::FingerprintPit;
use serde::Deserialize;

use super::churn::{Churn, Turn};
use super::collisions::SUBTABLES;
use super::requested_names::{NameHash, RequestedNames};
use super::{Size, size_name};
use crate::clock::Clock;
use crate::experiment::{Context, Outcome, Samples};
use crate::papers;

/// Deletions in a slice; there are as many insertions.
const SLICE_TURNS: usize = 1024;
/// Turns of a batch: 64 operations.
const BATCH_TURNS: usize = 32;
/// Turns between the prefetch of a bucket and its use.
///
/// N.B. Do not prefetch the whole batch at once: without work in between, the processor (Zen 4) drops many prefetches.
/// N = 1 M, d = 2, 5 µs of pause after the prefetches: an operation took 69 ns after 64 prefetches at once, 51 after
/// 32, 37 after 16, 26 after 8, and 25 after 64 with hashing in between. Hence 71 ns for 64 at once but 55 with
/// hashing, which should take longer. By distance in turns: 2 52, 4 33, 8 27, 16 30 ns; d = 4: 57, 46, 48, 50 (longer
/// in a busier run, in the same order).
const AHEAD_TURNS: usize = 4;
/// Turns whose names the engine hashes before it prefetches their buckets: 8 operations.
const GROUP_TURNS: usize = 4;
const OPERATIONS_PER_TURN: f64 = 2.0;

namewire_packet::names! {
    /// How a slice is processed.
    enum Variant {
        Batch = "batch",
        Scalar = "scalar",
        BatchHashing = "batch, hash included",
        ScalarHashing = "scalar, hash included",
        EngineHashing = "batch in the engine's order, hash included",
    }
}

#[derive(Deserialize)]
struct Figure57 {
    entries: u32,
    operation_ns: f64,
}

/// The steps that [`figure_5_7`] takes.
pub(super) const fn steps(size: &Size) -> usize {
    size.latency_tables.len() * SUBTABLES.len() * 2
}

/// Fig. 5.7 for both numbers of subtables and both hashes.
pub(super) fn figure_5_7(
    context: &Context,
    names: &RequestedNames,
    size: &Size,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let paper: Figure57 = papers::figures(papers::YUAN_15, "/figure_5_7")?;
    for &entries in &size.latency_tables {
        for subtables in SUBTABLES {
            for hash in [NameHash::Keyed(HashKey::from_seed(context.seed)), NameHash::City] {
                let subject = size_name(entries);
                context.begin_step(&format!("{subject}, d = {subtables}, {}", hash.name()))?;
                let mut churn = Churn::new(names, hash, (entries, subtables), 0, context.seed)?;
                let medians = measure(context, &mut churn, size, outcome, &format!("d = {subtables}"), &subject)?;
                let is_headline = subtables == 2 && matches!(hash, NameHash::Keyed(_));
                if is_headline {
                    headline(outcome, entries, size, &medians);
                }
                if is_headline && entries == paper.entries {
                    let batch_ns = medians.get("batch, hash included").copied().unwrap_or(f64::NAN);
                    outcome.headline.insert("pit_paper_over_ours_65536".into(), paper.operation_ns / batch_ns);
                }
            }
        }
    }
    Ok(())
}

fn headline(outcome: &mut Outcome, entries: u32, size: &Size, medians: &BTreeMap<&'static str, f64>) {
    let is_largest = Some(&entries) == size.latency_tables.iter().max();
    for (variant, ns) in medians {
        let suffix = match *variant {
            "batch" => "",
            "scalar" => "_scalar",
            "batch, hash included" => "_with_hash",
            "batch in the engine's order, hash included" => "_engine",
            _ => "_scalar_with_hash",
        };
        outcome.headline.insert(format!("pit_op{suffix}_ns_{}", size_name(entries)), *ns);
        if is_largest {
            outcome.headline.insert(format!("pit_op{suffix}_ns"), *ns);
        }
    }
}

/// Adds rows for one table; returns the median of each variant that has one.
fn measure(
    context: &Context,
    churn: &mut Churn<'_>,
    size: &Size,
    outcome: &mut Outcome,
    case: &str,
    subject: &str,
) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let check = || Ok(context.check_interrupt()?);
    churn.fill(&check)?;
    churn.turn_over(churn.pending(), &check)?;
    let mut samples = [const { Vec::new() }; Variant::ALL.len()];
    let mut turns = vec![Turn::default(); SLICE_TURNS];
    for _ in 0..size.repetitions {
        let mut took_ns = [const { Vec::new() }; Variant::ALL.len()];
        for _ in 0..size.slices {
            for (variant, took_ns) in Variant::ALL.into_iter().zip(&mut took_ns) {
                churn.next_turns(&mut turns)?;
                took_ns.push(slice_ns(churn, &turns, variant, &context.clock)?);
            }
        }
        for (mut took_ns, samples) in took_ns.into_iter().zip(&mut samples) {
            took_ns.sort_unstable();
            samples.push(took_ns[took_ns.len() / 2]);
        }
    }
    let mut medians = BTreeMap::new();
    for (variant, slices_ns) in Variant::ALL.into_iter().zip(samples) {
        let mut samples = Samples::default();
        for slice_ns in slices_ns {
            let resolved = context.clock.resolve(slice_ns);
            samples.add_resolved(resolved.map(|ns| ns as f64 / (SLICE_TURNS as f64 * OPERATIONS_PER_TURN)));
        }
        if let Some(ns) = samples.median() {
            medians.insert(variant.name(), ns);
        }
        let subject = format!("{subject}, {}, {}", churn.hash().name(), variant.name());
        outcome.rows.push(samples.row(&format!("Fig. 5.7, {case}"), &subject, "latency", "ns per operation", None));
    }
    Ok(medians)
}

/// Processes the slice; returns its time.
fn slice_ns(churn: &mut Churn<'_>, turns: &[Turn], variant: Variant, clock: &Clock) -> anyhow::Result<u64> {
    let hash = churn.hash();
    let pit = &mut churn.pit;
    let mut answered = 0;
    let started_ns = clock.now_ns();
    match variant {
        Variant::Scalar => {
            for turn in turns {
                answered += operate(pit, turn, [turn.gone_hash, turn.come_hash])?;
            }
        }
        Variant::ScalarHashing => {
            for turn in turns {
                answered += operate(pit, turn, [hash.of(&turn.gone), hash.of(&turn.come)])?;
            }
        }
        Variant::Batch => answered += batches(pit, turns, |turn| [turn.gone_hash, turn.come_hash])?,
        Variant::BatchHashing => {
            answered += batches(pit, turns, |turn| [hash.of(&turn.gone), hash.of(&turn.come)])?;
        }
        Variant::EngineHashing => answered += engine_batches(pit, turns, hash)?,
    }
    let took_ns = clock.now_ns() - started_ns;
    ensure!(answered == turns.len(), "{} of {} Data find their port", answered, turns.len());
    Ok(took_ns)
}

/// The batched schedule.
#[inline]
fn batches(pit: &mut FingerprintPit, turns: &[Turn], hashes_of: impl Fn(&Turn) -> [u64; 2]) -> anyhow::Result<usize> {
    let mut answered = 0;
    let mut hashes = [[0; 2]; BATCH_TURNS];
    for turns in turns.chunks(BATCH_TURNS) {
        for step in 0..turns.len() + AHEAD_TURNS {
            if let Some(turn) = turns.get(step) {
                hashes[step] = hashes_of(turn);
                prefetch(pit, turn, hashes[step]);
            }
            if let Some(now) = step.checked_sub(AHEAD_TURNS) {
                answered += operate(pit, &turns[now], hashes[now])?;
            }
        }
    }
    Ok(answered)
}

/// The order of `namewire_engine`: hashes a group of names, then prefetches; the operations follow all groups.
#[inline]
fn engine_batches(pit: &mut FingerprintPit, turns: &[Turn], hash: NameHash) -> anyhow::Result<usize> {
    let mut answered = 0;
    let mut hashes = [[0; 2]; BATCH_TURNS];
    for turns in turns.chunks(BATCH_TURNS) {
        for (turns, hashes) in turns.chunks(GROUP_TURNS).zip(hashes.chunks_mut(GROUP_TURNS)) {
            for (turn, hashes) in turns.iter().zip(&mut *hashes) {
                *hashes = [hash.of(&turn.gone), hash.of(&turn.come)];
            }
            turns.iter().zip(hashes).for_each(|(turn, hashes)| prefetch(pit, turn, *hashes));
        }
        for (turn, hashes) in turns.iter().zip(hashes) {
            answered += operate(pit, turn, hashes)?;
        }
    }
    Ok(answered)
}

/// Prefetches what the turn reads.
#[inline(always)]
fn prefetch(pit: &FingerprintPit, turn: &Turn, [gone_hash, come_hash]: [u64; 2]) {
    pit.prefetch(gone_hash);
    pit.prefetch_for_port(come_hash, turn.come_port);
}

/// Deletes one name and inserts another; returns 1 if the Data found its port.
#[inline]
fn operate(pit: &mut FingerprintPit, turn: &Turn, [gone_hash, come_hash]: [u64; 2]) -> anyhow::Result<usize> {
    let satisfied = pit.satisfy(gone_hash, turn.now_ns, false);
    pit.insert(come_hash, turn.come_port, turn.now_ns, turn.expires_ns)?;
    Ok(usize::from(satisfied.is_some_and(|found| found.ports.contains(turn.gone_port))))
}
