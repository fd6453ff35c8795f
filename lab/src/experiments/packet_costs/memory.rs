//! How many bytes of memory does a packet move?
//!
//! Source: Takemasa19 Table 3.1 (909, 511 and 816 bytes of an Interest that misses, of one that hits, and of a Data),
//! measured there by the memory channels' counters. Here it is a simulation: the lines that a batch touches for the
//! first time ([`crate::instruction_count::lines`]), 64 bytes each, once when they are fetched and once more if they
//! are written. A batch of each kind marks the lines that all batches touch; the next one is counted.
//!
//! Limits: lines that the processor fetches ahead on its own are not seen. A line that a real cache would keep from one
//! such batch to the next by luck is counted. The buffers of received packets are the same for each batch, so they are
//! not counted (network cards write into the cache).

use namewire_engine::Frame;
use namewire_engine::batch::measured::{MeasuredOrder, Stage, StageCosts};
use namewire_tables::Fib;
use namewire_testbed::Worker;

use super::super::prefetch::forwarder::{Finding, Forwarder};
use super::{CASES, age_of_hits};
use crate::instruction_count::{self, Counts};
use crate::sample_table::SampleTable;

/// The orders, and the metrics of their rows.
const ORDERS: [(MeasuredOrder, [&str; 2]); 2] = [
    (MeasuredOrder::PacketByPacket, ["bytes fetched, naive", "bytes written, naive"]),
    (MeasuredOrder::StageByStage { split: true }, ["bytes fetched, by stage", "bytes written, by stage"]),
];
const BYTES: &str = "bytes per packet";
const LINE_BYTES: f64 = 64.0;
/// Lines written are in the lower half of a reading, lines fetched in the upper one.
const HALF_BITS: u32 = 32;

/// Both counters in one reading: neither reaches 2^32, and both only grow.
fn clock() -> u64 {
    instruction_count::fetched_lines() << HALF_BITS | instruction_count::written_lines()
}

/// Adds the bytes of each stage of each kind of packet, in both orders.
///
/// # Errors
/// If the system lets us trace no copy.
pub(super) fn measure(
    forwarder: &mut Forwarder,
    fib: &Fib,
    batch_packets: usize,
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    let counted = instruction_count::in_a_copy(Counts::Lines, |results| {
        let mut results = results.iter_mut();
        for (order, _) in ORDERS {
            batches(forwarder, fib, batch_packets, order)?;
            for costs in batches(forwarder, fib, batch_packets, order)? {
                for (stage, result) in Stage::ALL.into_iter().zip(results.by_ref()) {
                    *result = costs.ticks(stage);
                }
            }
        }
        Ok(())
    })?;
    let mut counted = counted.into_iter();
    for (_, metrics) in ORDERS {
        for case in CASES {
            let lines: Vec<u64> = counted.by_ref().take(Stage::ALL.len()).collect();
            let halves = |lines: u64| [lines >> HALF_BITS, lines & u64::from(u32::MAX)];
            let mut sums = [0; 2];
            for (stage, lines) in Stage::ALL.into_iter().zip(lines) {
                for ((metric, lines), sum) in metrics.into_iter().zip(halves(lines)).zip(&mut sums) {
                    *sum += lines;
                    if lines > 0 {
                        table.add(case, stage.name(), metric, BYTES, bytes(lines, batch_packets));
                    }
                }
            }
            for (metric, sum) in metrics.into_iter().zip(sums) {
                table.add(case, "all stages", metric, BYTES, bytes(sum, batch_packets));
            }
        }
    }
    Ok(())
}

fn bytes(lines: u64, packets: usize) -> f64 {
    lines as f64 * LINE_BYTES / packets as f64
}

/// A batch of each kind of [`CASES`].
fn batches(
    forwarder: &mut Forwarder,
    fib: &Fib,
    batch_packets: usize,
    order: MeasuredOrder,
) -> anyhow::Result<[StageCosts; 4]> {
    let decide = |mut worker: Worker<'_>, frames: &mut [Frame<'_>]| {
        Ok(instruction_count::step(|| worker.process_measured(frames, order, clock)))
    };
    let age = age_of_hits(forwarder, 0);
    forwarder.prepare_packets(batch_packets, Finding::Name);
    let by_name = forwarder.run_prepared_by(fib, batch_packets, decide)?;
    forwarder.prepare_packets(batch_packets, Finding::Token);
    let by_token = forwarder.run_prepared_by(fib, batch_packets, decide)?;
    // Other Data than the batch before.
    let hits = forwarder.hits_by(fib, batch_packets, 1, age, decide)?;
    Ok([by_name.interests[0], hits[0], by_name.data[0], by_token.data[0]])
}

/// The bytes of a packet of this kind, fetched and written, with prefetches.
pub(super) fn of_packet(table: &SampleTable, case: &str) -> Option<f64> {
    let [_, (_, [fetched, written])] = ORDERS;
    let sum = |metric| table.find(case, "all stages", metric)?.median();
    Some(sum(fetched)? + sum(written)?)
}
