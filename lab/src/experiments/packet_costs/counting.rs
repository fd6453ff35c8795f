//! The instructions of a packet, by stage and as a whole: batches stepped in a copy of the process
//! ([`instruction_count`]).
//!
//! They do not depend on the machine's load: two runs of one program agree except for the effect of table addresses.

use namewire_engine::batch::measured::{MeasuredOrder, Stage, StageCosts};
use namewire_engine::{BATCH_PACKETS, Frame, Schedule};
use namewire_tables::{Fib, HashKey};
use namewire_testbed::Worker;

use super::{DATA, DATA_BY_TOKEN, FILE, HIT, MISS, SHAPES, Size, age_of_hits, setup};
use crate::experiment::{Context, Scale};
use crate::experiment_file;
use crate::experiments::prefetch::forwarder::{Finding, Forwarder};
use crate::experiments::prefetch::populate;
use crate::instruction_count::{self, Counts};
use crate::record::Row;
use crate::sample_table::SampleTable;
use crate::synthetic_names::SyntheticNames;

/// For [`crate::budget`]: the rows of [`COUNTED_BY_STAGE`] of the first shape at smoke scale, over a whole batch, and
/// nothing timed before. The batch has the same names in each run, on each machine. (N.B.: in `run`, which counts last,
/// the number of repetitions that the host disturbed decides which names are counted; over 4 packets that changed a
/// stage by 19 %.)
///
/// # Errors
/// If memory is lacking, or the kernel lets no process trace its child.
pub(crate) fn count_by_stage(context: &Context) -> anyhow::Result<Vec<Row>> {
    let size: Size = experiment_file::size(FILE, Scale::Smoke)?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let key = HashKey::from_seed(context.seed);
    let fib = populate(context, names, key)?;
    let mut forwarder = Forwarder::new(setup(0, &SHAPES[0], &size, names, key))?;
    forwarder.fill(&fib, &|| Ok(crate::interrupt::check()?))?;
    let mut table = SampleTable::default();
    count_instructions(std::slice::from_mut(&mut forwarder), &fib, BATCH_PACKETS, &mut table)?;
    Ok(table.rows().into_iter().filter(|row| row.metric == COUNTED_BY_STAGE).collect())
}

/// The metric of instructions that [`crate::budget`] limits.
pub(super) const COUNTED_BY_STAGE: &str = "instructions, by stage";

/// The orders in which instructions are counted, and the metrics of their rows.
const COUNTED: [(MeasuredOrder, &str); 2] = [
    (MeasuredOrder::PacketByPacket, "instructions, naive"),
    (MeasuredOrder::StageByStage { split: true }, COUNTED_BY_STAGE),
];

/// The metric of instructions of a batch that nobody interrupts with readings.
const COUNTED_WHOLE: &str = "instructions, whole";

/// Counts one batch of each kind by stages in both orders and as a whole, in a copy of this process.
pub(super) fn count_instructions(
    forwarders: &mut [Forwarder],
    fib: &Fib,
    batch_packets: usize,
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    let shapes = forwarders.len();
    let counts = instruction_count::in_a_copy(Counts::Instructions, |results| {
        let mut results = results.iter_mut();
        let mut note = |count| *results.next().expect("there are more places than results") = count;
        let per_reading = instruction_count::step(|| StageCosts::ticks_of_a_reading(instruction_count::clock));
        for (forwarder, shape) in forwarders.iter_mut().zip(&SHAPES) {
            let has_hits = shape.has_hits();
            for (order, _) in COUNTED {
                let decide = |worker: &mut Worker<'_>, frames: &mut [Frame<'_>]| {
                    worker.process_measured(frames, order, instruction_count::clock)
                };
                for costs in count_batches(forwarder, fib, batch_packets, has_hits, decide)? {
                    let count = |stage| costs.ticks(stage) - u64::from(costs.readings(stage)) * per_reading;
                    Stage::ALL.into_iter().map(count).for_each(&mut note);
                }
            }
            forwarder.set_schedule(Schedule::Vector);
            let decide = |worker: &mut Worker<'_>, frames: &mut [Frame<'_>]| {
                let before = instruction_count::clock();
                worker.process(frames);
                instruction_count::clock() - before
            };
            count_batches(forwarder, fib, batch_packets, has_hits, decide)?.into_iter().for_each(&mut note);
        }
        Ok(())
    })?;
    let mut counts = counts.into_iter();
    for shape in &SHAPES[..shapes] {
        let mut cases = [MISS, DATA, DATA_BY_TOKEN, HIT].map(|case| format!("{case}{}", shape.suffix)).to_vec();
        cases.truncate(if shape.has_hits() { 4 } else { 3 });
        let mut add = |case: &str, subject: &str, metric, count: u64| {
            table.add(case, subject, metric, "instructions per packet", count as f64 / batch_packets as f64);
        };
        for (_, metric) in COUNTED {
            for case in &cases {
                let stages: Vec<u64> = counts.by_ref().take(Stage::ALL.len()).collect();
                for (&count, stage) in stages.iter().zip(Stage::ALL).filter(|(count, _)| **count > 0) {
                    add(case, stage.name(), metric, count);
                }
                add(case, "all stages", metric, stages.iter().sum());
            }
        }
        for (case, count) in cases.iter().zip(counts.by_ref()) {
            add(case, Schedule::Vector.name(), COUNTED_WHOLE, count);
        }
    }
    Ok(())
}

/// In the copy: what `decide` returns for a batch of Interests, of Data by name, of Data by token and, if there are, of
/// hits. Its instructions are counted.
fn count_batches<T: Copy>(
    forwarder: &mut Forwarder,
    fib: &Fib,
    batch_packets: usize,
    has_hits: bool,
    decide: impl Fn(&mut Worker<'_>, &mut [Frame<'_>]) -> T,
) -> anyhow::Result<Vec<T>> {
    let decide =
        |mut worker: Worker<'_>, frames: &mut [Frame<'_>]| Ok(instruction_count::step(|| decide(&mut worker, frames)));
    let age = age_of_hits(forwarder, 0);
    // One batch of each kind: the first of those prepared.
    forwarder.prepare_packets(batch_packets, Finding::Name);
    let by_name = forwarder.run_prepared_by(fib, batch_packets, decide)?;
    forwarder.prepare_packets(batch_packets, Finding::Token);
    let by_token = forwarder.run_prepared_by(fib, batch_packets, decide)?;
    let mut counted = vec![by_name.interests[0], by_name.data[0], by_token.data[0]];
    if has_hits {
        counted.push(forwarder.hits_by(fib, batch_packets, 1, age, decide)?[0]);
    }
    Ok(counted)
}
