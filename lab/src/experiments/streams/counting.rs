//! The instructions of an Interest and of a Data in each case, by stage: batches stepped in a copy of the process
//! ([`instruction_count`]), as `packet-costs` does.

use namewire_engine::batch::measured::{MeasuredOrder, Stage, StageCosts};
use namewire_engine::{BATCH_PACKETS, Frame};
use namewire_tables::Fib;
use namewire_testbed::Worker;

use super::case::Size;
use super::subject::Subject;
use crate::instruction_count::{self, Counts};
use crate::sample_table::SampleTable;

/// The metrics of an Interest and of a Data.
pub(super) const INSTRUCTIONS: [&str; 2] = ["instructions of an Interest", "instructions of a Data"];
/// The same for their stages.
const BY_STAGE: [&str; 2] = ["instructions of an Interest, by stage", "instructions of a Data, by stage"];
pub(super) const UNIT: &str = "instructions per packet";

const ORDER: MeasuredOrder = MeasuredOrder::StageByStage { split: true };

/// Counts some batches of Interests and of Data, the next ones of this case, in a copy of this process.
///
/// # Errors
/// If the system lets us trace no copy.
pub(super) fn count(
    subject: &mut Subject,
    (case, label): (usize, &str),
    program: &str,
    (size, fib): (&Size, &Fib),
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    let packets = size.counted_packets.min(BATCH_PACKETS);
    let counted = instruction_count::in_a_copy(Counts::Instructions, |results| {
        let per_reading = instruction_count::step(|| StageCosts::ticks_of_a_reading(instruction_count::clock));
        subject.prepare(case, packets * size.counted_batches);
        let taken = subject.run_prepared(fib, packets, |mut worker: Worker<'_>, frames: &mut [Frame<'_>]| {
            Ok(instruction_count::step(|| worker.process_measured(frames, ORDER, instruction_count::clock)))
        })?;
        let mut results = results.iter_mut();
        for costs in [taken.interests, taken.data] {
            let count = |stage, costs: &StageCosts| costs.ticks(stage) - u64::from(costs.readings(stage)) * per_reading;
            for (stage, result) in Stage::ALL.into_iter().zip(results.by_ref()) {
                *result = costs.iter().map(|costs| count(stage, costs)).sum();
            }
        }
        Ok(())
    })?;
    let per_packet = |count: u64| count as f64 / (packets * size.counted_batches) as f64;
    let metrics = INSTRUCTIONS.into_iter().zip(BY_STAGE);
    for ((whole, by_stage), counts) in metrics.zip(counted.chunks(Stage::ALL.len())) {
        table.add(label, program, whole, UNIT, per_packet(counts.iter().sum()));
        for (stage, &count) in Stage::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0) {
            table.add(label, &format!("{program}: {}", stage.name()), by_stage, UNIT, per_packet(count));
        }
    }
    Ok(())
}
