//! Chains of core routers that keep some Interests by name and others by fingerprint, on links that lose nothing: does
//! every Interest get its Data?
//!
//! Once some did not: 38 of the 100,800 that this test asks for, 13 to 269 of 1.08 million in an earlier one. A second
//! copy of some Data came when its own entry was gone, and took away the fingerprint of another name. There were three
//! ways to it; each has a test in `crates/engine/tests/core_role/copies.rs`:
//!
//! * (a) Two workers of a neighbour sent a copy each, one for the name of an Interest with CanBePrefix, unmarked, and
//!   one for the fingerprint.
//! * (b) An Interest that the adaptive PIT keeps by name was repeated, and answered twice.
//! * (c) An Interest with CanBePrefix was answered by what another had asked for. Its own answer came later.
//!
//! `NAMEWIRE_SIM_INTERESTS=10000000 cargo test --release -p namewire-sim --test mixed_cores` asks for more, and
//! `NAMEWIRE_SIM_SEED=2` for others.

use namewire_sim::{MixedCores, MixedOutcome, PrefixAnswers};

/// Names of each consumer; a network asks for some 2,000.
const NAMES: usize = 100;

fn from_environment(variable: &str, otherwise: u64) -> u64 {
    let number = std::env::var(variable).ok();
    number.map_or(otherwise, |number| number.parse().unwrap_or_else(|_| panic!("{variable} is not a number")))
}

fn run(plan: &MixedCores) -> MixedOutcome {
    let outcome = plan.run();
    assert_eq!(outcome.broken, Vec::<String>::new(), "{plan:?}");
    outcome
}

/// Asks for this number of names; gives the networks that lost some.
fn losses(prefix_answers: PrefixAnswers, interests: u64, first_seed: u64) -> Vec<String> {
    let (mut asked, mut lost, mut told) = (0, 0, Vec::new());
    let (mut by_name, mut collided, mut left) = (0, 0, 0);
    for seed in first_seed.. {
        if asked >= interests {
            break;
        }
        let plan = MixedCores::drawn(seed, prefix_answers, NAMES);
        let outcome = run(&plan);
        asked += outcome.asked as u64;
        lost += outcome.lost.len();
        by_name += outcome.cores.satisfied;
        collided += outcome.cores.fingerprints_collided;
        left += outcome.cores.answers_after_their_names;
        if !outcome.lost.is_empty() {
            told.push(format!("seed {seed}: {plan:?} lost {:?}", outcome.lost));
        }
    }
    println!("{prefix_answers:?}: {lost} of {asked} lost; {collided} collided, {by_name} by name, {left} after theirs");
    assert!(by_name > asked / 10 && collided > asked / 10 && left > asked / 10_000, "they do not mix");
    told
}

fn every_interest_is_answered(prefix_answers: PrefixAnswers) {
    let interests = from_environment("NAMEWIRE_SIM_INTERESTS", 100_000);
    // Far apart, so that runs with neighbouring numbers do not ask for the same.
    let first_seed = from_environment("NAMEWIRE_SIM_SEED", 1) << 32;
    assert_eq!(losses(prefix_answers, interests / 2, first_seed), Vec::<String>::new());
}

/// (a) and (b).
#[test]
fn every_interest_is_answered_where_names_and_fingerprints_mix() {
    every_interest_is_answered(PrefixAnswers::AskedByName);
}

/// (a), (b) and (c).
#[test]
fn every_interest_is_answered_where_another_answers_a_prefix_first() {
    every_interest_is_answered(PrefixAnswers::BesideAnother);
}

/// What is left of (c): a core cannot tell late answers where neighbours take no PIT tokens. It is counted, and whoever
/// repeats an Interest gets the Data.
#[test]
fn without_tokens_what_is_lost_is_counted_and_comes_when_it_is_repeated() {
    let (mut lost, mut counted) = (0, 0);
    for seed in 1..=12 {
        let drawn = MixedCores::drawn(seed, PrefixAnswers::BesideAnother, NAMES);
        let plan = MixedCores { without_tokens: true, fingerprint_bits: 4, ..drawn };
        let outcome = run(&plan);
        lost += outcome.lost.len() as u64;
        counted += outcome.cores.prefixes_without_token;
        let repeated = run(&MixedCores { transmissions: 2, ..plan });
        assert_eq!(repeated.lost, [], "{plan:?}");
    }
    assert!((1..=counted).contains(&lost), "{lost} lost, {counted} counted");
}
