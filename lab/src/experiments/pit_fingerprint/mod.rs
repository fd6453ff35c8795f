//! The fingerprint-only PIT: how often do fingerprints collide, how many names overflow, how long does an operation
//! take?
//!
//! Source: Yuan15 §5.6. Table 5.4 is [`collisions`], Fig. 5.7 [`latency`]; both use the same [`churn`] of names
//! ([`requested_names`]). The table is `namewire_tables::fingerprint_pit`.
//!
//! Limits: the Data that collisions deliver to faces without a request (`pit-network`), and the other work of a router
//! (`prefetch`).

mod churn;
mod collisions;
mod latency;
mod requested_names;

use namewire_tables::FingerprintPit;
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

use self::requested_names::RequestedNames;
use crate::experiment::{Context, Experiment, Input, Outcome, Scale};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "pit-fingerprint",
    source: "Yuan15 Table 5.4, Fig. 5.7",
    question: "How often do fingerprints of pending Interests collide, how many overflow, how long does an operation take?",
    needs: "quick: 6 min, 1 GiB; full: 30 min, 1 GiB (the paper's sizes)",
    takes: Some(Input::Names),
    run,
    sources: &["lab/src/experiments/pit_fingerprint", "crates/tables/src/fingerprint_pit"],
};

/// Sizes of a run.
struct Size {
    /// N of Table 5.4.
    collision_tables: &'static [u32],
    /// Times that phase two turns all names over; the table may still fill in the first 9.
    rounds: u64,
    /// N of Fig. 5.7.
    latency_tables: &'static [u32],
    repetitions: usize,
    /// Slices per variant and repetition.
    slices: usize,
}

const MI: u32 = 1 << 20;

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => {
            Size { collision_tables: &[4096], rounds: 12, latency_tables: &[8192], repetitions: 3, slices: 1 }
        }
        Scale::Quick => Size {
            collision_tables: &[MI, 2 * MI],
            rounds: 25,
            latency_tables: &[65_536, MI, 16 * MI],
            repetitions: 5,
            slices: 100,
        },
        Scale::Full => Size {
            collision_tables: &[MI, 2 * MI, 4 * MI, 8 * MI, 16 * MI],
            rounds: 25,
            latency_tables: &[65_536, MI, 2 * MI, 4 * MI, 8 * MI, 16 * MI],
            repetitions: 9,
            slices: 200,
        },
    }
}

/// A size as the paper writes it: 1M is 2²⁰.
fn size_name(entries: u32) -> String {
    if entries.is_multiple_of(MI) { format!("{}m", entries / MI) } else { entries.to_string() }
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    let names = RequestedNames::new(context)?;
    context.plan_steps(collisions::steps(&size) + latency::steps(&size));
    let mut outcome = Outcome::default();
    collisions::table_5_4(context, &names, &size, &mut outcome)?;
    latency::figure_5_7(context, &names, &size, &mut outcome)?;
    memory(&size, &mut outcome)?;
    outcome.notes = vec![
        format!("Names: a number appended to {}.", names.describe()),
        format!(
            "Second phase: {} times all pending names (Yuan15: 25). All pending names arrive in 80 ms; entries live 10 times \
         that.",
            size.rounds
        ),
        "f'p is the rate over all inserted names, and the largest over all dp: that of dp = 0 %, where the first phase fills \
         the table. Names requested twice stay 10 rounds, so with dp > 0 % the table fills during 9 rounds of the second \
         phase, and f'p is lower. From the 10th round on, at 75 % load, the rate is E d ld / 2^w for every dp; otherwise \
         the run fails. Yuan15 does not state the base of its rate."
            .to_owned(),
        "M is the most names in the overflow table at a time, the largest over all dp.".to_owned(),
        "An operation is the insertion of an Interest or its deletion by Data. Batch (pit_op_ns, with the hash \
         pit_op_with_hash_ns): of 64 operations each has its buckets prefetched 8 before it is done. Batch in the \
         engine's order (pit_op_engine_ns): 8 names are hashed, then their buckets prefetched, then the next 8; the first \
         of 64 is done after the last prefetch. Without the work between them such prefetches come faster than the \
         processor holds, and it drops what it does not hold; so that order is measured with the hash only. The engine \
         also decodes and looks at the FIB in between."
            .to_owned(),
    ];
    Ok(outcome)
}

/// Memory of the tables of Table 5.4: the paper's entries have 44 bits, ours 64 with their share of a line.
fn memory(size: &Size, outcome: &mut Outcome) -> anyhow::Result<()> {
    for &entries in size.collision_tables {
        let config = FingerprintPitConfig::new(entries);
        let pit = FingerprintPit::new(FingerprintPitConfig { overflow_entries: 0, ..config }, 0)?;
        for (subject, bytes) in [("44 bits an entry", f64::from(entries) * 5.5), ("ours", pit.bytes() as f64)] {
            outcome.add_value(&format!("memory, {}", size_name(entries)), subject, ("buckets", "MB"), bytes / 1e6);
        }
    }
    Ok(())
}
