//! Schedules in turn: how much faster is one than another, whatever the machine does meanwhile?
//!
//! A turn is some batches of one schedule. In a slice every schedule has a turn, and in the next slice they come in the
//! reverse order (A B … B A), so that a machine that becomes slower favours none. [`BLOCK_SLICES`] slices are a
//! *block*, some milliseconds long. One block gives one sample: the median batch of each schedule and kind of packet,
//! and the ratios of these. So a ratio compares what was measured within milliseconds. A block during which the
//! processor was slower is repeated ([`Disturbances`]).

use namewire_engine::{BATCH_PACKETS, Schedule};

use crate::disturbance::{Disturbances, Spins};
use crate::sample_table::SampleTable;
use crate::statistics::Summary;

/// Batches of Interests, and of Data, in one turn of a schedule.
pub(super) const BATCHES_PER_SLICE: usize = 16;

pub(in crate::experiments) const CYCLES: &str = "TSC cycles per packet";

/// Slices of a block, an even number.
const BLOCK_SLICES: usize = 4;

/// The metric of a schedule's ratio to naive.
pub(super) const OVER_NAIVE: &str = "cycles over naive";
/// The metric of its ratio to the papers' fastest.
pub(super) const OVER_SHTL: &str = "cycles over shtl";

const SCHEDULES: usize = Schedule::ALL.len();

/// Cycles of the batches of one turn, by kind of packet.
pub(super) type Turn<const KINDS: usize> = [Vec<u64>; KINDS];

/// The cases of the rows: one for each kind, and one for the mean of the first two, Interests and Data.
pub(super) struct Cases<const KINDS: usize> {
    pub(super) of_kinds: [Option<&'static str>; KINDS],
    pub(super) exchange: &'static str,
}

/// Measures `slices` slices, in blocks, and adds a sample per block to `table`. `turn` measures one turn; it gets the
/// number of the turn.
pub(super) fn measure<const KINDS: usize>(
    cases: &Cases<KINDS>,
    slices: usize,
    disturbances: &mut Disturbances,
    table: &mut SampleTable,
    mut turn: impl FnMut(Schedule, usize) -> anyhow::Result<Turn<KINDS>>,
) -> anyhow::Result<()> {
    let (mut slice, mut turns) = (0, 0);
    while slice < slices {
        let mut of_schedules: [Turn<KINDS>; SCHEDULES] = std::array::from_fn(|_| std::array::from_fn(|_| Vec::new()));
        let mut spins = Spins::default();
        let block = BLOCK_SLICES.min(slices - slice);
        for slice in 0..block {
            for place in 0..SCHEDULES {
                let place = if slice % 2 == 0 { place } else { SCHEDULES - 1 - place };
                let taken = turn(Schedule::ALL[place], turns)?;
                turns += 1;
                of_schedules[place].iter_mut().zip(taken).for_each(|(all, mut taken)| all.append(&mut taken));
            }
            spins.spin();
        }
        if disturbances.accepts(&spins) {
            add(cases, &of_schedules, table);
            slice += block;
        }
    }
    Ok(())
}

/// Cycles per packet of the median batch, on which single interruptions have little effect.
pub(in crate::experiments) fn per_packet(batches: &[u64]) -> f64 {
    let cycles: Vec<f64> = batches.iter().map(|&cycles| cycles as f64).collect();
    Summary::of(&cycles).map_or(f64::NAN, |summary| summary.median / BATCH_PACKETS as f64)
}

fn add<const KINDS: usize>(cases: &Cases<KINDS>, of_schedules: &[Turn<KINDS>; SCHEDULES], table: &mut SampleTable) {
    let cycles = of_schedules.each_ref().map(|turn| turn.each_ref().map(|batches| per_packet(batches)));
    let kinds = cases.of_kinds.iter().enumerate().filter_map(|(kind, case)| {
        let case = (*case)?;
        Some((case, cycles.map(|of_kinds| of_kinds[kind])))
    });
    let exchange = (cases.exchange, cycles.map(|of_kinds| f64::midpoint(of_kinds[0], of_kinds[1])));
    for (case, cycles) in kinds.chain(std::iter::once(exchange)) {
        let of = |schedule| Schedule::ALL.iter().position(|&known| known == schedule).map_or(f64::NAN, |at| cycles[at]);
        for (schedule, cycles) in Schedule::ALL.into_iter().zip(cycles) {
            table.add(case, schedule.name(), "cycles", CYCLES, cycles);
            if schedule != Schedule::Naive {
                table.add(case, schedule.name(), OVER_NAIVE, "ratio", cycles / of(Schedule::Naive));
            }
            if schedule == Schedule::Vector {
                table.add(case, schedule.name(), OVER_SHTL, "ratio", cycles / of(Schedule::SpeculativeLookup));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that becomes slower with every turn: the ratios do not see it.
    #[test]
    fn a_machine_that_slows_down_changes_no_ratio() -> anyhow::Result<()> {
        let cases = Cases { of_kinds: [Some("Interest"), None], exchange: "both" };
        let (mut table, mut order) = (SampleTable::default(), Vec::new());
        measure(&cases, 8, &mut Disturbances::new(0), &mut table, |schedule, turn| {
            order.push(schedule);
            let slower = 1.0 + turn as f64 / 1_000.0;
            let cycles = if schedule == Schedule::Vector { 64_000.0 } else { 192_000.0 } * slower;
            Ok([vec![cycles as u64], vec![cycles as u64]])
        })?;
        let reversed: Vec<_> = order[..SCHEDULES].iter().rev().copied().collect();
        assert_eq!((order.len(), &order[SCHEDULES..2 * SCHEDULES]), (8 * SCHEDULES, &reversed[..]));
        for case in ["Interest", "both"] {
            let ratios = table.find(case, "vector", OVER_NAIVE).expect("measured").taken();
            assert_eq!(ratios.len(), 2, "one sample per block");
            assert!(ratios.iter().all(|ratio| (ratio * 3.0 - 1.0).abs() < 1e-3), "{ratios:?}");
        }
        assert!(table.find("Interest", "naive", OVER_NAIVE).is_none());
        Ok(())
    }
}
