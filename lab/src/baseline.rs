//! Baseline: how does this program compare with an earlier one, on the same machine and in the same run?
//!
//! `namewire-lab run ID --baseline PROGRAM` runs the experiment, then the same experiment of another `namewire-lab`
//! with the same scale, workers and seed. Rows of the other program are added to the record; their subjects end in `of
//! PROGRAM`, the name of its file. So an old implementation stays measurable without its code in this tree.
//!
//! Limit: one program runs after the other, so a change of the machine's load in between shows as a difference. Input
//! files are not passed on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::experiment::Context;
use crate::process::BoundProcess;
use crate::record::Record;

/// The longest that the other program may take.
const LIMIT: Duration = Duration::from_secs(3600);
/// Runs the other program and adds its rows to `record`.
///
/// # Errors
/// If the other program does not run the experiment.
pub fn add(record: &mut Record, program: &Path, context: &Context) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let workers: Vec<String> = context.workers.iter().map(ToString::to_string).collect();
    let mut command = Command::new(program);
    command.args(["run", &record.experiment, "--scale", context.scale.name(), "--workers", &workers.join(",")]);
    command.args(["--seed", &context.seed.to_string(), "--out"]).arg(dir.path());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let output = BoundProcess::start(&mut command, None)?.output(LIMIT)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", program.display(), said.trim());
    let path = dir.path().join(format!("{}.json", record.experiment));
    let baseline = Record::read(&path).context("the baseline wrote no record")?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    merge(record, baseline, &name);
    Ok(())
}

fn merge(record: &mut Record, baseline: Record, program: &str) {
    record.notes.push(format!("Subjects that end in `of {program}` are those of the program that --baseline names."));
    for (name, value) in baseline.headline {
        record.headline.insert(format!("baseline_{name}"), value);
    }
    for mut row in baseline.rows {
        row.subject = format!("{} of {program}", row.subject);
        record.rows.push(row);
    }
}
