//! Chains of cores that store some Interests by name and others by fingerprint: which Data are lost?
//!
//! The networks are [`namewire_sim::MixedCores`]: 2 to 4 cores, Interests in both directions, 1 to 3 workers,
//! fingerprints of 1 to 7 bits and of 16, CanBePrefix, repeated Interests, the adaptive PIT. Each seed generates
//! another network. Data can be lost in three ways, (a) to (c) of `sim/tests/mixed_cores.rs`:
//!
//! | case | what can be lost |
//! | --- | --- |
//! | answers to prefixes are requested by name | (a) two copies from workers, (b) a repeated Interest |
//! | other Data answer prefixes first | (a), (b) and (c) the prefix's own answer comes late |
//! | the same without PIT tokens | (c) cannot be distinguished from other Data: the remainder |
//! | the same with fingerprints of 16 bits | the remainder as in a real network |

use crate::experiment::{Context, Outcome, Scale};
use anyhow::ensure;
use namewire_sim::{MixedCores, PrefixAnswers};

/// Cases.
pub(super) const STEPS: usize = 4;
/// Names that each consumer requests; a network has 21 consumers.
const NAMES: usize = 100;

struct Case {
    name: &'static str,
    prefix_answers: PrefixAnswers,
    without_tokens: bool,
    /// `None`: as generated from the seed.
    fingerprint_bits: Option<u8>,
}

const CASES: [Case; STEPS] = [
    Case {
        name: "mixed, answers of prefixes are asked for by name",
        prefix_answers: PrefixAnswers::AskedByName,
        without_tokens: false,
        fingerprint_bits: None,
    },
    Case {
        name: "mixed, others answer prefixes first",
        prefix_answers: PrefixAnswers::BesideAnother,
        without_tokens: false,
        fingerprint_bits: None,
    },
    Case {
        name: "mixed, others answer prefixes first, no PIT tokens",
        prefix_answers: PrefixAnswers::BesideAnother,
        without_tokens: true,
        fingerprint_bits: None,
    },
    Case {
        name: "mixed, others answer prefixes first, no PIT tokens, 16-bit fingerprints",
        prefix_answers: PrefixAnswers::BesideAnother,
        without_tokens: true,
        fingerprint_bits: Some(16),
    },
];

/// Sums over the networks of a case.
#[derive(Default)]
struct Total {
    asked: u64,
    lost: u64,
    left: u64,
    possible: u64,
}

/// Runs all cases; adds rows and headline.
pub(super) fn run(context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let interests = match context.scale {
        Scale::Smoke => 4_000,
        Scale::Quick => 500_000,
        Scale::Full => 5_000_000,
    };
    let (mut asked, mut lost) = (0, 0);
    for case in &CASES {
        context.begin_step("mixed network")?;
        let total = simulate(context, case, interests)?;
        put(outcome, case, &total);
        if !case.without_tokens {
            asked += total.asked;
            lost += total.lost;
            continue;
        }
        ensure!(total.lost <= total.possible, "{}: {} lost, {} counted", case.name, total.lost, total.possible);
        let key = match case.fingerprint_bits {
            None => "pit_network_mixed_lost_without_tokens",
            Some(_) => "pit_network_mixed_lost_without_tokens_16_bits",
        };
        outcome.headline.insert(key.to_owned(), total.lost as f64 / total.asked as f64);
    }
    outcome.headline.insert("pit_network_mixed_lost".to_owned(), lost as f64);
    outcome.headline.insert("pit_network_mixed_asked".to_owned(), asked as f64);
    outcome.notes.push(
        "Mixed: of the requested Interests (asked), lost is the number that (a), (b) and (c) cost together. Without PIT \
         tokens it is what (c) cost, in networks with one CanBePrefix Interest in five, each beside another Interest \
         whose Data answers it too."
            .to_owned(),
    );
    Ok(())
}

/// Simulates networks until enough Interests were sent.
fn simulate(context: &Context, case: &Case, interests: u64) -> anyhow::Result<Total> {
    let mut total = Total::default();
    for number in 0.. {
        if total.asked >= interests {
            break;
        }
        context.check_interrupt()?;
        let network = MixedCores::random((context.seed << 32) + number, case.prefix_answers, NAMES);
        let fingerprint_bits = case.fingerprint_bits.unwrap_or(network.fingerprint_bits);
        let plan = MixedCores { fingerprint_bits, without_tokens: case.without_tokens, ..network };
        let seen = plan.run();
        ensure!(seen.broken.is_empty(), "{plan:?}: {:?}", seen.broken);
        total.asked += seen.asked as u64;
        total.lost += seen.lost.len() as u64;
        total.left += seen.cores.answers_after_their_names;
        total.possible += seen.cores.prefixes_without_token;
    }
    Ok(total)
}

fn put(outcome: &mut Outcome, case: &Case, total: &Total) {
    for (metric, unit, value) in [
        ("asked", "Interests", total.asked),
        ("lost", "Interests", total.lost),
        ("answers after their names", "Data", total.left),
        ("prefixes without token", "Interests", total.possible),
    ] {
        outcome.add_value(case.name, "names and fingerprints", (metric, unit), value as f64);
    }
}
