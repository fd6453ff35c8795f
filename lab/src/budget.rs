//! Budget: how many instructions may each stage of a packet take?
//!
//! `lab/budget.json` holds, for each kind of packet and each stage, the instructions of one packet: the mean of a batch
//! that [`packet_costs::count_by_stage`] steps through in a release build. `make budget` counts again and fails if a
//! stage takes over [`TOLERANCE_PERCENT`] and over [`TOLERANCE_INSTRUCTIONS`] more. A change that needs more
//! instructions raises the budget in the same commit, and the commit gives the reason. A change that needs fewer lowers
//! it: `cargo run --release -p namewire-lab --bin namewire-budget -- lab/budget.json --write`.
//!
//! Counts depend on the code, the compiler and the place of tables in memory. Two runs of one program differ by less
//! than the tolerance; the time of day and the machine's load do not matter. Limit: if the kernel does not let a
//! process trace its child, nothing can be counted; then the check prints this and passes ([`cannot_count`]).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::experiment::Context;
use crate::experiments::packet_costs;
use crate::record::write_whole;

/// A stage may take this much more than its budget.
pub const TOLERANCE_PERCENT: f64 = 3.0;

/// And at least this much: where other code of the program changes, the compiler chooses registers of a stage anew,
/// which is more than [`TOLERANCE_PERCENT`] of a stage of 8 instructions. One instruction, as the table prints it: half
/// of its last digit is allowed beside.
pub const TOLERANCE_INSTRUCTIONS: f64 = 1.05;

/// Instructions by kind of packet and stage.
pub type Counts = BTreeMap<String, BTreeMap<String, f64>>;

/// Counts the instructions of each stage.
///
/// # Errors
/// If memory is lacking, or nothing can be counted here ([`cannot_count`]).
pub fn count(context: &Context) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for row in packet_costs::count_by_stage(context)? {
        if let Some(value) = &row.value {
            counts.entry(row.case).or_default().insert(row.subject, value.median);
        }
    }
    Ok(counts)
}

/// True if [`count`] failed because the kernel lets no process trace its child.
#[must_use]
pub fn cannot_count(error: &anyhow::Error) -> bool {
    let kind = error.root_cause().downcast_ref().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported))
}

/// The budget in a file.
///
/// # Errors
/// If the file cannot be read, or holds something else.
pub fn read(path: &Path) -> anyhow::Result<Counts> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a budget", path.display()))
}

/// Replaces the budget in a file.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, counts: &Counts) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(counts)? + "\n";
    write_whole(path, text.as_bytes())
}

/// A table of all stages: budget, count, difference.
///
/// # Errors
/// Names every stage that takes more than it may, and every stage that one side lacks.
pub fn compare(budget: &Counts, counts: &Counts) -> anyhow::Result<String> {
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for (case, stages) in counts {
        for (stage, &count) in stages {
            let Some(&allowed) = budget.get(case).and_then(|stages| stages.get(stage)) else {
                wrong.push(format!("{case}, {stage}: no budget"));
                continue;
            };
            let percent = 100.0 * (count - allowed) / allowed;
            table.push_str(&format!("{case:16} {stage:17} {allowed:7.1} {count:7.1} {percent:+6.1} %\n"));
            if percent > TOLERANCE_PERCENT && count - allowed > TOLERANCE_INSTRUCTIONS {
                wrong.push(format!("{case}, {stage}: {count:.1} instructions, {allowed:.1} allowed"));
            }
        }
    }
    let counted = |case: &str, stage: &str| counts.get(case).is_some_and(|stages| stages.contains_key(stage));
    for (case, stages) in budget {
        wrong.extend(stages.keys().filter(|stage| !counted(case, stage)).map(|stage| format!("{case}, {stage}: gone")));
    }
    if wrong.is_empty() {
        return Ok(table);
    }
    bail!("{table}over the budget, or not in it:\n{}", wrong.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(verdict: f64) -> Counts {
        BTreeMap::from([(
            "Data".to_owned(),
            BTreeMap::from([("decode".to_owned(), 200.0), ("verdict".to_owned(), verdict)]),
        )])
    }

    #[test]
    fn a_stage_over_its_budget_is_named() {
        let budget = counts(100.0);
        assert!(compare(&budget, &counts(102.9)).is_ok());
        assert!(compare(&budget, &counts(50.0)).is_ok());
        let error = compare(&budget, &counts(103.1)).expect_err("over the budget").to_string();
        assert!(error.contains("Data, verdict: 103.1 instructions, 100.0 allowed"), "{error}");
        assert!(!error.contains("Data, decode:"), "{error}");
    }

    #[test]
    fn one_instruction_of_a_short_stage_is_no_fault() {
        let budget = counts(7.8);
        assert!(compare(&budget, &counts(8.8)).is_ok());
        assert!(compare(&budget, &counts(9.0)).is_err());
    }

    #[test]
    fn only_a_kernel_that_refuses_is_a_reason_not_to_count() {
        let error = |kind| anyhow::Error::from(io::Error::from(kind)).context("counted");
        assert!(cannot_count(&error(io::ErrorKind::PermissionDenied)));
        assert!(!cannot_count(&error(io::ErrorKind::OutOfMemory)));
        assert!(!cannot_count(&anyhow::anyhow!("the copy died (status 9)")));
    }

    #[test]
    fn a_stage_that_one_side_lacks_is_named() {
        let (budget, mut counts) = (counts(100.0), counts(100.0));
        counts.get_mut("Data").expect("there").remove("verdict");
        let error = compare(&budget, &counts).expect_err("a stage is gone").to_string();
        assert!(error.contains("Data, verdict: gone"), "{error}");
        let error = compare(&counts, &budget).expect_err("a stage is new").to_string();
        assert!(error.contains("Data, verdict: no budget"), "{error}");
    }
}
