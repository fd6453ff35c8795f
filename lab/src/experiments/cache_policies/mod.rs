//! Which Data should a Content Store keep, and what does it cost to decide?
//!
//! Source: Takemasa19 §5.4.1-5.4.3 (Figs. 5.5-5.7, Tables 5.1 and 5.2), Yuan15 §6.1.3. Every eviction of the catalogue,
//! and admissions before those evictions that their sources put behind them, over the paper's web, video and mixed
//! requests and over traces.
//!
//! What is reported:
//! - hit ratios and insertion rates ([`hit_ratio`]), beside the analytic values, Belady's bound, a cache without limit
//!   and, of independent requests, the most popular objects (which is what LFU tends to);
//! - the cycles of each policy's blocks ([`block_cycles`]), and of an Interest and its Data by the paper's equations
//!   ([`equations`]);
//! - the cycles of a request in the router's own Content Store, Data of 1,024 octets copied in ([`packet_cycles`]);
//! - how far each policy is from the best, over all cases ([`choice`]): from this the default was chosen.
//!
//! The paper's hit ratios lie 0.014 above its own analysis throughout; Zipf's exponent 0.81 has them where they are. So
//! the web point is run with both.
//!
//! What the numbers do not say: stores count packets, not octets; all of a trace's objects are one Data; nothing grows
//! stale.

mod block_cycles;
mod case;
mod choice;
pub(super) mod contestant;
mod equations;
mod hit_ratio;
mod object_store;
mod outcome;
mod packet_cycles;

use case::Case;
use contestant::Contestant;
use hit_ratio::{Bounds, Tally};

use crate::experiment::{Context, Experiment, Outcome, Scale};

/// Its line in the table.
pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "cache-policies",
    source: "Takemasa19 Fig. 5.5-5.7, Tables 5.1 and 5.2; Yuan15 §6.1.3",
    question: "Which Data should a Content Store keep, and what does it cost to decide?",
    needs: "quick: half an hour with traces, 5 GiB; full: hours, 8 GiB",
    takes_names: false,
    takes_trace: true,
    run,
};

/// Contestants of the paper's Fig. 5.6, in its order. Its LFU reaches the optimum, so it counts what is not stored too.
const PAPERS: [&str; 6] = ["perfect-lfu", "tiny-lfu/random", "arc", "filter/fifo", "random", "fifo"];
/// Exponent that has the paper's measurements where they are.
const OTHER_ALPHA: f64 = 0.81;

/// All that was found.
struct Found {
    contestants: Vec<Contestant>,
    cases: Vec<Case>,
    /// By case, then contestant.
    tallies: Vec<Vec<Tally>>,
    bounds: Vec<Bounds>,
    papers: Vec<Contestant>,
    other_alpha: Case,
    /// By contestant of the paper.
    other_tallies: Vec<Tally>,
    blocks: Vec<block_cycles::BlockCycles>,
    packets: Vec<packet_cycles::PacketCycles>,
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = case::size(context.scale);
    let contestants = Contestant::all()?;
    let papers = PAPERS.iter().map(|name| Contestant::named(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let cases = case::cases(context, &size)?;
    let (blocks_size, packets_size) = timing_sizes(context.scale);
    let simulated = cases.len() * (contestants.len() + 1) + papers.len();
    let timed = 2 * contestants.len() + blocks_size.repetitions + packets_size.repetitions;
    context.plan_steps(simulated + timed);

    let tallies = hit_ratio::run_all(context, &cases, &contestants)?;
    let bounds = hit_ratio::share_out(cases.len(), |place| {
        context.begin_step(&format!("{} bounds", cases[place].title))?;
        let bounds = hit_ratio::bounds(&cases[place], context.seed);
        context.end_step();
        Ok(bounds)
    })?;
    let other_alpha = case::web_point(OTHER_ALPHA, &size);
    let mut other_tallies = hit_ratio::run_all(context, std::slice::from_ref(&other_alpha), &papers)?;
    let web = case::web_point(crate::requests::web::PAPER_ALPHA, &size);
    let blocks = block_cycles::measure(context, &web, &contestants, &blocks_size)?;
    let packets = packet_cycles::measure(context, &web, &contestants, &packets_size)?;
    let other_tallies = other_tallies.pop().unwrap_or_default();
    outcome::outcome(&Found {
        contestants,
        cases,
        tallies,
        bounds,
        papers,
        other_alpha,
        other_tallies,
        blocks,
        packets,
    })
}

const fn timing_sizes(scale: Scale) -> (block_cycles::Size, packet_cycles::Size) {
    match scale {
        Scale::Smoke => (
            block_cycles::Size {
                warm_up: 2_000,
                repetitions: 1,
                slices: 1,
                requests_per_slice: 512,
                other_lines: 1 << 12,
            },
            packet_cycles::Size { warm_up: 2_000, repetitions: 1, slices: 1, requests_per_slice: 512 },
        ),
        Scale::Quick => (
            block_cycles::Size {
                warm_up: 4_000_000,
                repetitions: 7,
                slices: 31,
                requests_per_slice: 1_024,
                other_lines: 4 << 20,
            },
            packet_cycles::Size { warm_up: 4_000_000, repetitions: 7, slices: 31, requests_per_slice: 4_096 },
        ),
        Scale::Full => (
            block_cycles::Size {
                warm_up: 40_000_000,
                repetitions: 9,
                slices: 45,
                requests_per_slice: 1_024,
                other_lines: 4 << 20,
            },
            packet_cycles::Size { warm_up: 40_000_000, repetitions: 9, slices: 45, requests_per_slice: 4_096 },
        ),
    }
}
