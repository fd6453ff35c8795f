//! The contents of the record: rows by case, the headline, and what follows from the numbers.

use std::collections::BTreeMap;

use super::case::{ALIKE, COMPONENTS, Case, RANDOM, STREAMS, Size, TWICE};
use super::counting::{INSTRUCTIONS, UNIT};
use super::subject::Program;
use super::traffic::ALPHA;
use super::{OVER_BEFORE, OVER_RANDOM, THROUGHPUT};
use crate::experiment::{Outcome, Samples};
use crate::sample_table::SampleTable;

const NOW: &str = Program::FlowCache.name();
const BEFORE: &str = Program::NoFlowCache.name();

/// `entries` of the FIB, and Data in a full store.
pub(super) fn outcome(table: &SampleTable, cases: &[Case], size: &Size, entries: (usize, usize)) -> Outcome {
    let mut outcome = Outcome {
        rows: table.rows(),
        headline: counted(table),
        notes: vec![setup(size, entries)],
        ..Outcome::default()
    };
    // Rows of one case stay together.
    let cases: Vec<Case> = std::iter::once(RANDOM).chain(cases.iter().copied()).collect();
    let labels: Vec<String> = cases.iter().map(Case::label).collect();
    outcome.rows.sort_by_key(|row| labels.iter().position(|label| *label == row.case));
    let find = |case: &Case, metric| table.find(&case.label(), NOW, metric).cloned().unwrap_or_default();
    let adversarial = worst([&TWICE, &ALIKE].map(|case| (case.label(), find(case, OVER_BEFORE))));
    outcome.add_steady("streams_mpps", &find(&STREAMS, THROUGHPUT));
    for (key, what, samples) in [
        ("streams_mpps_over_random_mpps", "streams over names that never repeat", &find(&STREAMS, OVER_RANDOM)),
        ("streams_mpps_over_before", "streams, the flow cache over none", &find(&STREAMS, OVER_BEFORE)),
        ("random_mpps_over_before", "names that never repeat, the flow cache over none", &find(&RANDOM, OVER_BEFORE)),
        ("streams_adversarial_over_before", &format!("{}, the flow cache over none", adversarial.0), &adversarial.1),
    ] {
        outcome.add_ratio(key, samples);
        outcome.notes.extend(samples.against_one(what));
    }
    outcome.notes.extend(saving_note(table, &cases));
    outcome
}

/// The headlines of instructions, as far as they were counted.
fn counted(table: &SampleTable) -> BTreeMap<String, f64> {
    let mut headline = BTreeMap::new();
    for (traffic, case) in [("streams", STREAMS), ("random", RANDOM)] {
        for (program, suffix) in [(NOW, ""), (BEFORE, "_before")] {
            for (kind, metric) in ["interest_miss", "data_by_token"].into_iter().zip(INSTRUCTIONS) {
                let median = table.find(&case.label(), program, metric).and_then(Samples::median);
                headline.extend(median.map(|count| (format!("{traffic}_{kind}_instructions{suffix}"), count)));
            }
        }
    }
    headline
}

/// The one with the lowest median.
fn worst<const N: usize>(cases: [(String, Samples); N]) -> (String, Samples) {
    let median = |samples: &Samples| samples.median().unwrap_or(f64::INFINITY);
    cases.into_iter().min_by(|one, other| median(&one.1).total_cmp(&median(&other.1))).unwrap_or_default()
}

fn setup(size: &Size, (prefixes, stored): (usize, usize)) -> String {
    let (least, most) = COMPONENTS;
    format!(
        "{prefixes} FIB entries; {} Interests outstanding; {stored} Data in a full FIFO store; fetches by Zipf's law, \
         exponent {ALPHA}; names of {least} to {most} components if the case has no number of them.",
        size.outstanding
    )
}

/// The case in which the flow cache saves most of an Interest's instructions, and the one in which it costs most.
fn saving_note(table: &SampleTable, cases: &[Case]) -> Option<String> {
    let [interest, _] = INSTRUCTIONS;
    let of = |case: &Case, program| table.find(&case.label(), program, interest)?.median();
    let mut savings: Vec<(String, f64)> =
        cases.iter().filter_map(|case| Some((case.label(), of(case, BEFORE)? - of(case, NOW)?))).collect();
    savings.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((worst, least), (best, most)) = (savings.first()?, savings.last()?);
    let change = |saved: f64| if saved < 0.0 { format!("{:.0} more", -saved) } else { format!("{saved:.0} fewer") };
    Some(format!(
        "With the flow cache an Interest takes {} {UNIT} at best ({best}), and {} at worst ({worst}).",
        change(*most),
        change(*least)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(now: [f64; 2], before: [f64; 2]) -> SampleTable {
        let mut table = SampleTable::default();
        for (case, (now, before)) in [STREAMS, RANDOM].iter().zip(now.into_iter().zip(before)) {
            table.add(&case.label(), NOW, INSTRUCTIONS[0], UNIT, now);
            table.add(&case.label(), BEFORE, INSTRUCTIONS[0], UNIT, before);
        }
        table
    }

    #[test]
    fn the_note_on_savings_follows_from_the_numbers() {
        let cases = [RANDOM, STREAMS];
        let note = |now, before| saving_note(&table(now, before), &cases).expect("counted");
        let usual = note([1_100.0, 2_000.0], [1_900.0, 1_950.0]);
        assert!(usual.contains("800 fewer") && usual.contains("(1000 fetches, bursts of 1)"), "{usual}");
        assert!(usual.contains("50 more at worst (names that never repeat)"), "{usual}");
        assert!(note([1_000.0, 900.0], [1_000.0, 1_000.0]).contains("100 fewer instructions"));
        assert_eq!(saving_note(&SampleTable::default(), &cases), None);
    }

    #[test]
    fn the_worst_of_the_adversarial_cases_counts() {
        let cases = [("a", 0.97), ("b", 0.95), ("c", 1.0)].map(|(case, ratio)| (case.to_owned(), Samples::one(ratio)));
        assert_eq!(worst(cases).0, "b");
    }
}
