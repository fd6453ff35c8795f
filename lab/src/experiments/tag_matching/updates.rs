//! Updates: how many descriptors a writer inserts and withdraws in a second, and how much slower a reader is meanwhile.
//!
//! One thread searches all the time, in batches of [`BATCH`] packets between two pins, half of the batches for all
//! subsets and half for the largest. In every second phase another thread changes the table as fast as it can: it
//! inserts a descriptor of a pool that is not in the table and withdraws one that is, in turn. Packets ask for sets
//! outside the pool, which must be found whatever the writer does.
//!
//! Both threads are measured by their own processor time, so that a machine with few processors, or a busy one, shows
//! the cost of the table, not which thread had a processor.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use namewire_tables::pages::PageSize;
use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::Entry;
use namewire_tagnet::matching::burst_trie::{BurstTrie, BurstTrieReader, Refusal};

use super::Size;
use crate::clock::thread_time_ns;
use crate::experiment::{Context, Outcome, Samples};
use crate::tag_sets::{PacketTags, StoredSets, TagSource};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 1;
/// Packets between two pins.
const BATCH: usize = 64;
/// One of this many descriptors belongs to the pool.
const POOL_SHARE: usize = 10;
/// Updates between two looks at the clock.
const SLICE: usize = 64;
/// Packets, searched in turn.
const QUERIES: usize = 1 << 16;

/// Measures updates and look-ups.
///
/// # Errors
/// If a look-up misses what is there throughout, or if the table is wrong in the end.
pub(super) fn run(context: &Context, size: &Size, source: &dyn TagSource, outcome: &mut Outcome) -> anyhow::Result<()> {
    context.begin_step("updates")?;
    let stored = StoredSets::draw(source, size.descriptors)?;
    let case = format!("{}, {}", source.title(), stored.rounded());
    let (pool, stable): (Vec<_>, Vec<_>) =
        stored.entries().into_iter().enumerate().partition(|(place, _)| place % POOL_SHARE == 0);
    let [pool, stable]: [Vec<Entry>; 2] = [pool, stable].map(|part| part.into_iter().map(|(_, entry)| entry).collect());
    let queries = queries(source, stored, context.seed)?;
    let inside = pool.len() / 2;
    let entries: Vec<Entry> = stable.iter().chain(&pool[..inside]).copied().collect();
    drop(stable);
    let mut table = BurstTrie::build(entries, size.descriptors, PageSize::default())?;
    let reader = table.reader();
    let shared = Shared::default();
    let phases = 2 * size.effort.repetitions;
    let measured = std::thread::scope(|scope| {
        let looking_up = scope.spawn(|| {
            let phases = look_up(context, reader, &queries, phases, size.effort.pass_ns, &shared);
            shared.is_over.store(true, Ordering::Relaxed);
            phases
        });
        let removed = write(&mut table, &pool, inside, &shared);
        let phases = looking_up.join().expect("looking up does not panic");
        removed.and_then(|removed| Ok((removed, phases?)))
    });
    let (removed, phases) = measured?;
    check(&table, &pool, inside, removed)?;
    add_rows(&case, &phases, outcome);
    Ok(())
}

/// Packets for sets outside the pool.
fn queries(source: &dyn TagSource, mut stored: StoredSets, seed: u64) -> anyhow::Result<Vec<Descriptor>> {
    let mut place = 0;
    stored.numbered.retain(|_| {
        place += 1;
        (place - 1) % POOL_SHARE != 0
    });
    let mut packets = PacketTags::new(source, &stored, seed);
    (0..QUERIES).map(|_| Ok(packets.matching_up_to(2)?.descriptor())).collect()
}

/// What the two threads tell each other.
#[derive(Default)]
struct Shared {
    is_writing: AtomicBool,
    is_over: AtomicBool,
    updates: AtomicU64,
    update_ns: AtomicU64,
}

/// One phase of the reader.
struct Phase {
    is_writing: bool,
    lookups_per_s: f64,
    updates_per_s: f64,
}

/// Searches in phases without and with updates, in turn.
fn look_up(
    context: &Context,
    mut reader: BurstTrieReader,
    queries: &[Descriptor],
    phases: usize,
    phase_ns: u64,
    shared: &Shared,
) -> anyhow::Result<Vec<Phase>> {
    let mut batches = queries.chunks_exact(BATCH).cycle();
    let mut measured = Vec::new();
    for phase in 0..phases {
        let is_writing = phase % 2 == 1;
        shared.is_writing.store(is_writing, Ordering::Relaxed);
        let progress = || (shared.updates.load(Ordering::Relaxed), shared.update_ns.load(Ordering::Relaxed));
        let (before, started_ns, mut lookups) = (progress(), thread_time_ns(), 0_u64);
        let mut took_ns = 0;
        // A phase with updates lasts until there are some.
        while took_ns < phase_ns || (is_writing && progress().0 == before.0) {
            context.check_interrupt()?;
            for _ in 0..2 {
                let Some(batch) = batches.next() else { break };
                let found = search(&mut reader, batch, (lookups / BATCH as u64).is_multiple_of(2));
                ensure!(found == BATCH, "{found} of {BATCH} packets found a set that is there throughout");
                lookups += BATCH as u64;
            }
            took_ns = thread_time_ns() - started_ns;
        }
        let after = progress();
        measured.push(Phase {
            is_writing,
            lookups_per_s: lookups as f64 * 1e9 / took_ns as f64,
            updates_per_s: (after.0 - before.0) as f64 * 1e9 / (after.1 - before.1).max(1) as f64,
        });
    }
    Ok(measured)
}

/// Searches one batch; returns how many of its packets have a subset.
fn search(reader: &mut BurstTrieReader, batch: &[Descriptor], is_for_all: bool) -> usize {
    let view = reader.pin();
    let mut found = [false; BATCH];
    if is_for_all {
        view.find_all_of_each(batch, |place, _| {
            found[place] = true;
            ControlFlow::Continue(())
        });
    } else {
        view.find_largest_of_each(batch, |place, largest| found[place] = largest.is_some());
    }
    found.iter().filter(|found| **found).count()
}

/// Changes the table while the reader wants it; returns how many of the pool were withdrawn, which is how many were
/// inserted. The pool is a ring: what is inside begins at the first that was not withdrawn yet.
fn write(table: &mut BurstTrie, pool: &[Entry], inside: usize, shared: &Shared) -> anyhow::Result<usize> {
    let mut removed = 0;
    while !shared.is_over.load(Ordering::Relaxed) {
        if !shared.is_writing.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        let started_ns = thread_time_ns();
        for _ in 0..SLICE / 2 {
            let entry = pool[(removed + inside) % pool.len()];
            let inserted = until_accepted(|| table.insert(entry))?;
            let withdrawn = until_accepted(|| table.remove(&pool[removed % pool.len()].descriptor))?;
            ensure!(inserted.is_none() && withdrawn.is_some(), "an update found the table as it should not be");
            removed += 1;
        }
        shared.updates.fetch_add(SLICE as u64, Ordering::Relaxed);
        shared.update_ns.fetch_add(thread_time_ns() - started_ns, Ordering::Relaxed);
    }
    Ok(removed)
}

/// Tries again while readers hold former blocks.
fn until_accepted(mut change: impl FnMut() -> Result<Option<u32>, Refusal>) -> Result<Option<u32>, Refusal> {
    loop {
        match change() {
            Err(Refusal::Readers | Refusal::Memory) => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// What is in the table in the end.
fn check(table: &BurstTrie, pool: &[Entry], inside: usize, removed: usize) -> anyhow::Result<()> {
    for place in 0..pool.len() {
        let entry = pool[(removed + place) % pool.len()];
        let wanted = (place < inside).then_some(entry.value);
        ensure!(table.get(&entry.descriptor) == wanted, "{entry:?} is in the table or not against the updates");
    }
    Ok(())
}

fn add_rows(case: &str, phases: &[Phase], outcome: &mut Outcome) {
    let [mut alone, mut beside, mut updates, mut loss] = std::array::from_fn(|_| Samples::default());
    for pair in phases.chunks_exact(2) {
        debug_assert!(!pair[0].is_writing && pair[1].is_writing);
        alone.add(pair[0].lookups_per_s / 1e3);
        beside.add(pair[1].lookups_per_s / 1e3);
        updates.add(pair[1].updates_per_s);
        loss.add(1.0 - pair[1].lookups_per_s / pair[0].lookups_per_s);
    }
    outcome.rows.push(alone.row(case, "without updates", "look-ups", "thousand per s", None));
    outcome.rows.push(beside.row(case, "beside updates", "look-ups", "thousand per s", None));
    outcome.rows.push(updates.row(case, "beside look-ups", "updates, half of them withdrawals", "per s", None));
    outcome.rows.push(loss.row(case, "beside updates", "look-ups lost", "of 1", None));
    outcome.add_steady("tag_updates_per_s", &updates);
    // The loss is near 0, so a spread in percent of it says nothing; the row shows all repetitions.
    loss.median().map(|loss| outcome.headline.insert("tag_update_lookup_loss".to_owned(), loss));
}
