//! What does a packet cost on real traffic: streams of segments whose names differ in the last component only?
//!
//! The other experiments request names that never repeat, as the papers do. Here consumers fetch files. Rows:
//!
//! | case | names of the Interests |
//! | --- | --- |
//! | `1000 fetches, bursts of 1` | segments of 1,000 files at once; each Interest's file is drawn by Zipf's law: the headlines |
//! | `… bursts of 16` | windows of 16 that open at once: so many consecutive Interests have one file |
//! | `… 25 % never again` | of a quarter of the Interests, the file never comes again |
//! | `names that never repeat` | that holds for all of them |
//! | `… 6 components` | names of 6 components; elsewhere a file has 4 to 8 |
//! | `parents that come twice` | two segments of each file: a cache that notes files gains nothing |
//! | `parents in one place` | no parent repeats, but the flow cache has one place for many of them ([`traffic`]) |
//!
//! Set-up as in `prefetch`, with fewer outstanding Interests: 1,000 windows of 64, rounded up. No name is requested
//! twice, so every Interest misses; Data has the PIT token that left with the Interest. One engine is two
//! programs: with the flow cache (`tables.flow_cache`, the default), and without, which is the program before. They
//! take turns slice by slice, and with them those of another engine for names that never repeat; so a ratio between two
//! of the four is of the same moment. Every case begins with a warm-up. The result of a repetition is the median batch
//! of each kind. Instructions are counted last ([`counting`]), with no effect of the machine's load.
//!
//! N.B. Two engines with equal settings in one process differed by 2 to 7 % of throughput, as long as it ran: their
//! tables lie on other pages. So do two programs of one engine if the second one always finds its caches warm.
//!
//! The FIB's prefixes lead to eight next hops, and each Interest must take the one of its prefix.
//!
//! Limits: the instructions of few fetches, and of long bursts, are those of few files; the length of a parent and its
//! place in the FIB decide them. Sockets and drivers are not covered. The FIB does not change meanwhile. Consumers do
//! not wait for Data: a window says how Interests come, not how many are outstanding.

mod case;
mod counting;
mod outcome;
mod subject;
mod traffic;

use anyhow::Context as _;
use namewire_tables::{Fib, HashKey};

pub(super) use case::Size;
use case::{Case, RANDOM, STREAMS};
use subject::{Program, Subject};

use super::prefetch::forwarder::Taken;
use super::prefetch::{per_packet, populate_towards};
use crate::experiment::{Context, Outcome};
use crate::sample_table::SampleTable;
use crate::synthetic_names::SyntheticNames;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Metrics of the rows.
const THROUGHPUT: &str = "throughput";
const CYCLES: [&str; 2] = ["cycles of an Interest", "cycles of a Data"];
const OVER_BEFORE: &str = "throughput over no flow cache";
const OVER_RANDOM: &str = "throughput over names that never repeat";

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let tsc_hz = context.clock.tsc_hz().context("this processor has no time stamp counter that we can read")?;
    let cases = Case::all(&size);
    context.plan_steps(3 + cases.len() * (size.repetitions + 1));
    context.begin_step("FIB")?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let key = HashKey::from_seed(context.seed);
    let fib = populate_towards(context, names, key, traffic::producer)?;

    context.begin_step("full stores")?;
    let make = |cases| Subject::new(&size, cases, names, key);
    let mut subjects = [make(&cases)?, make(&[RANDOM])?];
    subjects.iter_mut().try_for_each(|subject| subject.fill(&fib))?;
    let mut table = SampleTable::default();
    for repetition in 0..size.repetitions {
        for place in 0..cases.len() {
            context.begin_step("packets")?;
            let case = if repetition % 2 == 0 { place } else { cases.len() - 1 - place };
            let [of_case, random] = measure(&mut subjects, case, &size, &fib)?;
            note(&cases[case], of_case, tsc_hz, &mut table);
            if cases[case] == STREAMS {
                note(&RANDOM, random, tsc_hz, &mut table);
            }
            for ((program, of_case), random) in Program::ALL.into_iter().zip(of_case).zip(random) {
                let ratio = random.of_packet() / of_case.of_packet();
                table.add(&cases[case].label(), program.name(), OVER_RANDOM, "ratio", ratio);
            }
        }
    }
    subjects.iter().try_for_each(Subject::check)?;
    let counted = count(context, &mut subjects, &cases, (&size, &fib), &mut table);
    crate::interrupt::check()?;
    let mut outcome = outcome::outcome(&table, &cases, &size, (fib.len(), subjects[0].stored()));
    if let Err(error) = counted {
        outcome.notes.push(format!("Instructions were not counted: {error:#}."));
    }
    Ok(outcome)
}

const PROGRAMS: usize = Program::ALL.len();

/// Cycles of a packet of each kind.
#[derive(Clone, Copy)]
struct Cycles {
    interest: f64,
    data: f64,
}

impl Cycles {
    /// There are as many Interests as Data.
    fn of_packet(self) -> f64 {
        f64::midpoint(self.interest, self.data)
    }
}

/// One repetition of a case, by program: the case itself, and names that never repeat. All of them take turns, and the
/// one that comes first in a slice comes last in the next.
fn measure(
    subjects: &mut [Subject; 2],
    case: usize,
    size: &Size,
    fib: &Fib,
) -> anyhow::Result<[[Cycles; PROGRAMS]; 2]> {
    let [of_case, _] = subjects;
    of_case.set_program(Program::FlowCache);
    of_case.warm_up(case, size.warm_up, fib)?;
    let mut taken: [Taken<u64>; 2 * PROGRAMS] = Default::default();
    for slice in 0..size.slices {
        for (number, subject) in subjects.iter_mut().enumerate() {
            let case = if number == 0 { case } else { 0 };
            for turn in 0..PROGRAMS {
                // The first finds the caches full of the other engine's tables.
                let program = (slice + turn) % PROGRAMS;
                subject.set_program(Program::ALL[program]);
                taken[number * PROGRAMS + program].append(subject.slice(case, size.batches, fib)?);
            }
        }
    }
    let [now, before, random_now, random_before] =
        taken.map(|Taken { interests, data }| Cycles { interest: per_packet(&interests), data: per_packet(&data) });
    Ok([[now, before], [random_now, random_before]])
}

fn note(case: &Case, of_programs: [Cycles; PROGRAMS], tsc_hz: f64, table: &mut SampleTable) {
    let label = case.label();
    for (program, cycles) in Program::ALL.into_iter().zip(of_programs) {
        table.add(&label, program.name(), THROUGHPUT, "Mpps", tsc_hz / cycles.of_packet() / 1e6);
        for (metric, cycles) in CYCLES.into_iter().zip([cycles.interest, cycles.data]) {
            table.add(&label, program.name(), metric, "TSC cycles per packet", cycles);
        }
    }
    let [now, before] = of_programs.map(Cycles::of_packet);
    table.add(&label, Program::FlowCache.name(), OVER_BEFORE, "ratio", before / now);
}

/// Counts the instructions of all cases.
fn count(
    context: &Context,
    [of_cases, random]: &mut [Subject; 2],
    cases: &[Case],
    (size, fib): (&Size, &Fib),
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    for (place, case) in cases.iter().enumerate() {
        context.begin_step("instructions")?;
        of_cases.set_program(Program::FlowCache);
        of_cases.warm_up(place, size.warm_up, fib)?;
        for program in Program::ALL {
            of_cases.set_program(program);
            counting::count(of_cases, (place, &case.label()), program.name(), (size, fib), table)?;
        }
    }
    context.begin_step("instructions")?;
    for program in Program::ALL {
        random.set_program(program);
        counting::count(random, (0, &RANDOM.label()), program.name(), (size, fib), table)?;
    }
    Ok(())
}
