//! Headline: the fastest of the paper's forms and the fastest of ours, and why they are as fast as they are.

use anyhow::Context as _;
use serde::Deserialize;

use super::compression::exponent_of;
use super::forms::{Form, Goal};
use super::speeds::Speeds;
use super::subject::{COUNTED, Subject};
use crate::experiment::Outcome;
use crate::papers;
use crate::record::Row;

/// The headlines of a set that is in all forms.
pub(super) fn add_headline(subject: &Subject<'_>, speeds: &Speeds, outcome: &mut Outcome) -> anyhow::Result<()> {
    for (goal, speed_key, ratio_key) in
        [(Goal::All, "fas_per_s", "fas_speedup"), (Goal::Largest, "fls_per_s", "fls_speedup")]
    {
        let Some(faithful) = speeds.fastest(&Form::OF_THE_PAPER, goal) else { continue };
        let Some(beyond) = speeds.fastest(&Form::BEYOND_THE_PAPER, goal) else { continue };
        let samples = speeds.samples(faithful, goal);
        let ratios = speeds.combined(beyond, faithful, goal, |beyond, faithful| beyond / faithful);
        let (speed, ratio) = (samples.median().unwrap_or(0.0), ratios.median().unwrap_or(0.0));
        outcome.add_steady(speed_key, &samples);
        outcome.add_steady(ratio_key, &ratios);
        outcome.notes.push(format!(
            "{}, {}: the fastest of the paper's own forms is \"{faithful}\" with {speed:.0} packets a second; of ours, \
             \"{beyond}\" with {ratio:.2} times as many.",
            subject.case,
            goal.name(),
        ));
        add_reason(subject, faithful, goal, speed, outcome)?;
        add_step_reason(subject, goal, outcome)?;
    }
    let compression = &subject.compression;
    let own = subject.table(Form::BurstTrie)?.bytes_per_descriptor();
    outcome.headline.insert("bytes_per_descriptor".to_owned(), own);
    outcome.headline.insert("permutation_saved_percent".to_owned(), compression.permutation_percent);
    outcome.headline.insert("chains_saved_percent".to_owned(), compression.chain_percent);
    Ok(())
}

/// The paper's speeds on one thread, in thousand packets per second (§2.4). The text does not say which end is FAS.
#[derive(Deserialize)]
struct PaperSpeed {
    least: f64,
    most: f64,
}

/// Why the paper's form is as fast as it is: what a search reads, and how much of that the paper's speed allows.
fn add_reason(subject: &Subject<'_>, form: Form, goal: Goal, per_s: f64, outcome: &mut Outcome) -> anyhow::Result<()> {
    let paper: PaperSpeed = papers::figures(papers::TAG_NET_16, "/section_2_4_thousand_per_s")?;
    let counts = subject.counts(form, goal)?.context("the paper's forms count")?;
    let [lists, cells, chains] = [counts.lists, counts.cells, counts.chains].map(|sum| sum as f64 / COUNTED as f64);
    let ns_of_one = 1e9 / per_s / (lists + chains);
    outcome.notes.push(format!(
        "Why: a search of \"{form}\" for {} scans {cells:.0} cells in {lists:.0} lists and compares {chains:.0} chains; \
         that is {ns_of_one:.0} ns for each list or chain. The paper's {:.0} to {:.0} thousand packets a second on one \
         thread leave {:.0} to {:.0} such lists and chains for a packet.",
        goal.name(),
        paper.least,
        paper.most,
        1e6 / paper.most / ns_of_one,
        1e6 / paper.least / ns_of_one
    ));
    Ok(())
}

/// What each step of the paper takes from a search, and what it adds: the reason for the time that it saves or costs.
fn add_step_reason(subject: &Subject<'_>, goal: Goal, outcome: &mut Outcome) -> anyhow::Result<()> {
    let counts = |form: Form| -> anyhow::Result<[f64; 2]> {
        let counts = subject.counts(form, goal)?.context("the paper's forms count")?;
        Ok([counts.lists, counts.chains].map(|sum| sum as f64 / COUNTED as f64))
    };
    let ([plain, _], [permuted, _], [lists, chains]) =
        (counts(Form::Plain)?, counts(Form::BitPermutation)?, counts(Form::Paper)?);
    let verdict = if chains > permuted - lists { "more" } else { "fewer" };
    outcome.notes.push(format!(
        "Steps, {}: a search scans {plain:.0} lists without compression, {permuted:.0} with popular bits first, and \
         {lists:.0} without chains. Then it also compares {chains:.0} chains, each in a place of its own: {verdict} \
         places than the {:.0} lists that chain removal takes away. SOL and SROL visit the same, in another order.",
        goal.name(),
        permuted - lists
    ));
    Ok(())
}

/// In which sets the paper's final form is fastest and slowest.
pub(super) fn add_range_notes(outcome: &mut Outcome) {
    for goal in Goal::BOTH {
        let is_speed = |row: &&Row| row.subject == Form::Paper.name() && row.metric == goal.name();
        let of_sets = outcome.rows.iter().filter(is_speed).filter(|row| !row.case.starts_with("Fig."));
        let mut speeds: Vec<(f64, &str)> =
            of_sets.filter_map(|row| Some((row.value.as_ref()?.median, row.case.as_str()))).collect();
        speeds.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (Some((slowest, slow_set)), Some((fastest, fast_set))) = (speeds.first(), speeds.last()) else { continue };
        let note = format!(
            "The paper's final form, {}: from {slowest:.1} thousand packets a second with {slow_set} to {fastest:.1} with \
             {fast_set}.",
            goal.name()
        );
        outcome.notes.push(note);
    }
}

/// Which Zipf exponents save what, beside the application classes.
pub(super) fn add_sweep_note(sweep: &[(f64, f64)], classes_percent: f64, outcome: &mut Outcome) {
    let savings: Vec<String> = sweep.iter().map(|(exponent, saved)| format!("{saved:.0} % at {exponent}")).collect();
    let reached = |percent: f64| match exponent_of(percent, sweep) {
        Some(exponent) => format!("{percent} % at an exponent of {exponent:.2}"),
        None => format!("{percent} % at no exponent"),
    };
    outcome.notes.push(format!(
        "Bit permutation saves, by Zipf exponent: {}. So independent tags reach the paper's {}, and {}. Application \
         classes save {classes_percent:.0} %.",
        savings.join(", "),
        reached(42.0),
        reached(48.0)
    ));
}
