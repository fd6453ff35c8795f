//! A store without repository and network, asked as the repository's threads ask it: [`WRITE_BATCH`] changes in one
//! call, in the order of the segments; [`WINDOW`] names in one look-up, in random order.
//!
//! Only the calls count; the batches are made between them.

use std::time::{Duration, Instant};

use anyhow::ensure;
use namewire_repo::store::{Change, Record, Store};

use super::clients::WINDOW;
use super::packets::ObjectPackets;
use crate::experiment::Context;

/// A batch that the repository's writer does not let wait for more.
pub(super) const WRITE_BATCH: usize = 1_024;
/// When the Data were stored, in milliseconds since 1970. Any moment will do.
const STORED_MS: u64 = 1_700_000_000_000;

/// Stores all packets; how long the store took.
pub(super) fn write_all(context: &Context, store: &dyn Store, object: &ObjectPackets) -> anyhow::Result<Duration> {
    let mut took = Duration::ZERO;
    for start in (0..object.count()).step_by(WRITE_BATCH) {
        context.check_interrupt()?;
        let segments = start..(start + WRITE_BATCH).min(object.count());
        let packets: Vec<_> = segments.map(|segment| object.data(segment)).collect();
        let records: Vec<Vec<u8>> = packets.iter().map(|data| Record::of_data(data, STORED_MS).encode()).collect();
        let change = |(data, record): (&namewire_packet::Data<'_>, _)| (data.name().value().to_vec(), record);
        let changes: Vec<(Vec<u8>, &Vec<u8>)> = packets.iter().zip(&records).map(change).collect();
        let changes: Vec<Change<'_>> = changes.iter().map(|(name, record)| Change::Put { name, record }).collect();
        let started = Instant::now();
        let written = store.write(&changes)?;
        took += started.elapsed();
        ensure!(written.added == changes.len() as u64, "a store added {written:?} of {}", changes.len());
    }
    Ok(took)
}

/// Looks all names up; how long the store took. Every Data must be found as it was stored.
pub(super) fn read_all(
    context: &Context,
    store: &dyn Store,
    object: &ObjectPackets,
    seed: u64,
) -> anyhow::Result<Duration> {
    let mut order: Vec<usize> = (0..object.count()).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let (mut took, mut found) = (Duration::ZERO, 0);
    for batch in order.chunks(WINDOW) {
        context.check_interrupt()?;
        let packets: Vec<_> = batch.iter().map(|&segment| object.data(segment)).collect();
        let names: Vec<&[u8]> = packets.iter().map(|data| data.name().value()).collect();
        let started = Instant::now();
        store.get(&names, &mut |place, record| found += usize::from(record.wire == packets[place].wire()))?;
        took += started.elapsed();
    }
    ensure!(found == order.len(), "a store found {found} of {}", order.len());
    Ok(took)
}
