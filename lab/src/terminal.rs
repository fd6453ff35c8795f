//! A record as text for the terminal, with the figures of others next to ours.

use std::fmt::Write as _;

use anyhow::ensure;

use namewire_drawing::figure;

use crate::host::Host;
use crate::peers::{self, Peers};
use crate::record::{Record, Row};
use crate::statistics::Interval;

/// The record as text for a terminal: the headline and the notes, and with `all` every row; figures of others follow
/// ours for the same case and metric.
///
/// # Errors
/// If a data file of peers is malformed.
pub fn text(record: &Record, all: bool) -> serde_json::Result<String> {
    let mut out = format!("{}: {}\n", record.experiment, record.question);
    let width = record.headline.keys().map(String::len).max().unwrap_or(0);
    for (key, value) in &record.headline {
        let interval = record.intervals.get(key).map(|&interval| "  ".to_owned() + &interval_text(interval));
        let _ = writeln!(out, "  {key:width$} {:>14}{}", figure(*value), interval.unwrap_or_default());
    }
    for note in record.host.iter().map(Host::text).chain(record.notes.iter().cloned()) {
        let _ = writeln!(out, "  {note}");
    }
    if all || record.headline.is_empty() {
        write_rows(&mut out, record)?;
    } else {
        let refused = record.rows.iter().filter(|row| row.value.is_none()).count();
        let _ = writeln!(out, "  {} rows, {refused} of them refused; --all prints them", record.rows.len());
    }
    Ok(out)
}

/// An interval as text.
pub fn interval_text([low, high]: Interval) -> String {
    format!("95 %: {} to {}", figure(low), figure(high))
}

fn write_rows(out: &mut String, record: &Record) -> serde_json::Result<()> {
    let peers = peers::for_experiment(&record.experiment)?;
    let width = |text: fn(&Row) -> &str| record.rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let [case_width, subject_width, metric_width] =
        [width(|row| &row.case), width(|row| &row.subject), width(|row| &row.metric)];
    for (place, row) in record.rows.iter().enumerate() {
        let value = match (&row.value, &row.refused) {
            (Some(value), _) => {
                format!("{:>14} {:14} ±{:.0} %", figure(value.median), row.unit, value.spread_percent / 2.0)
            }
            (None, reason) => format!("refused: {}", reason.as_deref().unwrap_or("no reason given")),
        };
        let remark = row.remark.as_ref().map(|remark| format!("  ({remark})")).unwrap_or_default();
        let (case, subject, metric) = (&row.case, &row.subject, &row.metric);
        let _ = writeln!(out, "  {case:case_width$} {subject:subject_width$} {metric:metric_width$} {value}{remark}");
        let is_like = |other: &Row| (&other.case, &other.metric, &other.unit) == (&row.case, &row.metric, &row.unit);
        if record.rows[place + 1..].iter().any(is_like) {
            continue;
        }
        for (subject, value) in recorded(&peers, row) {
            let _ = writeln!(out, "    recorded: {subject}: {} {}", figure(value), row.unit);
        }
    }
    Ok(())
}

/// Two records of one experiment beside each other: the headlines, and the rows whose repetitions do not overlap; with
/// `all`, every row that both have.
///
/// # Errors
/// If they are of different experiments.
pub fn comparison(one: &Record, other: &Record, all: bool) -> anyhow::Result<String> {
    ensure!(
        one.experiment == other.experiment,
        "{} and {} are different experiments",
        one.experiment,
        other.experiment
    );
    let mut out = format!("{}: {}\n", one.experiment, one.question);
    for (letter, record) in [('A', one), ('B', other)] {
        let Record { machine, commit, scale, command, .. } = record;
        let _ = writeln!(
            out,
            "  {letter}: {}, {} processors; commit {commit}; {scale}; {command}",
            machine.processor, machine.cpus
        );
    }
    let mut lines: Vec<[String; 4]> = vec![["headline".into(), "A".into(), "B".into(), "B over A".into()]];
    for (key, value) in &one.headline {
        let Some(theirs) = other.headline.get(key) else { continue };
        lines.push([key.clone(), figure(*value), figure(*theirs), over(*theirs, *value)]);
    }
    let (mut apart, mut alike) = (0, 0);
    lines.push(["row".into(), "A".into(), "B".into(), "B over A".into()]);
    for row in &one.rows {
        let is_same = |other: &&Row| {
            (&row.case, &row.subject, &row.metric, &row.unit)
                == (&other.case, &other.subject, &other.metric, &other.unit)
        };
        let theirs = other.rows.iter().find(is_same).and_then(|row| row.value.as_ref());
        let (Some(ours), Some(theirs)) = (&row.value, theirs) else { continue };
        let overlap = ours.low <= theirs.high && theirs.low <= ours.high;
        *(if overlap { &mut alike } else { &mut apart }) += 1;
        if all || !overlap {
            let name = format!("{}, {}, {}, {}", row.case, row.subject, row.metric, row.unit);
            lines.push([name, figure(ours.median), figure(theirs.median), over(theirs.median, ours.median)]);
        }
    }
    let width = |place: usize| lines.iter().map(|line| line[place].chars().count()).max().unwrap_or(0);
    let [name, a, b, ratio] = [0, 1, 2, 3].map(width);
    for line in &lines {
        let _ = writeln!(out, "  {:name$}  {:>a$}  {:>b$}  {:>ratio$}", line[0], line[1], line[2], line[3]);
    }
    let _ = writeln!(out, "  {apart} rows differ; the repetitions of the other {alike} overlap");
    Ok(out)
}

fn over(value: f64, under: f64) -> String {
    if under == 0.0 { "-".to_owned() } else { figure(value / under) }
}

/// The figures of others for the case, metric and unit of `like`.
fn recorded<'a>(peers: &'a [Peers], like: &Row) -> impl Iterator<Item = (&'a str, f64)> {
    peers
        .iter()
        .flat_map(|source| &source.figures)
        .filter(|figure| (&figure.case, &figure.metric, &figure.unit) == (&like.case, &like.metric, &like.unit))
        .flat_map(|figure| figure.values.iter().map(|(subject, &value)| (subject.as_str(), value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::machine::Machine;
    use crate::statistics::Summary;

    fn record() -> Record {
        let row = |metric: &str, value: Option<Summary>, refused: Option<&str>| Row {
            case: "unix-100".to_owned(),
            subject: "namewire <&>".to_owned(),
            metric: metric.to_owned(),
            unit: "per s".to_owned(),
            value,
            refused: refused.map(str::to_owned),
            remark: None,
        };
        Record {
            experiment: "router-sockets".to_owned(),
            question: "how many?".to_owned(),
            scale: "smoke".to_owned(),
            machine: Machine::describe(&Clock::calibrate()),
            host: None,
            commit: "abc".to_owned(),
            command: "namewire-lab run router-sockets".to_owned(),
            seed: 1,
            started_unix_s: 0,
            duration_s: 1.0,
            memory_peak_mib: None,
            rows: vec![
                row("exchanges", Summary::of(&[123_456.0, 130_000.0]), None),
                row("cpu", None, Some("3 ns measured")),
            ],
            headline: std::collections::BTreeMap::new(),
            intervals: std::collections::BTreeMap::new(),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn the_text_names_refusals_and_figures_of_others() -> serde_json::Result<()> {
        let mut record = record();
        record.headline.insert("exchanges_per_s".to_owned(), 5.0);
        let all = text(&record, true)?;
        assert!(all.contains("126,728") && all.contains("refused: 3 ns measured"), "{all}");
        let (ours, theirs) = (all.find("126,728"), all.find("recorded: ndn-rs"));
        assert!(ours < theirs, "{all}");
        let short = text(&record, false)?;
        assert!(short.contains("exchanges_per_s") && short.contains("2 rows, 1 of them refused"), "{short}");
        assert!(!short.contains("126,728"), "{short}");
        Ok(())
    }

    #[test]
    fn two_records_are_compared_where_they_differ() -> anyhow::Result<()> {
        let (one, mut other) = (record(), record());
        let same = comparison(&one, &other, false)?;
        assert!(same.contains("0 rows differ") && !same.contains("126,728"), "{same}");
        assert!(comparison(&one, &other, true)?.contains("126,728"));
        other.rows[0].value = Summary::of(&[253_456.0]);
        other.commit = "def".to_owned();
        let apart = comparison(&one, &other, false)?;
        assert!(apart.contains("253,456") && apart.contains("2.000") && apart.contains("commit def"), "{apart}");
        other.experiment = "io".to_owned();
        assert!(comparison(&one, &other, false).is_err());
        Ok(())
    }
}
