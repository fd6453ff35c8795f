//! The results as CSV: what `namewire-sim` writes, and reads again to compare runs.

use crate::results::{Bin, LOSSES, Results};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

pub(crate) const SUMMARY: &str = "summary.csv";
pub(crate) const TIMELINE: &str = "timeline.csv";

/// A line of `summary.csv`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct SummaryRow {
    pub(crate) about: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
}

/// A line of `timeline.csv`: a bin of a group.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct TimelineRow {
    pub(crate) time_s: f64,
    pub(crate) about: String,
    pub(crate) requests: u64,
    pub(crate) satisfied: u64,
    pub(crate) latency_median_ms: Option<f64>,
    pub(crate) latency_95_ms: Option<f64>,
    pub(crate) content_bytes: u64,
}

/// Writes the files of one run into a folder that exists.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write(results: &Results, bin_s: f64, folder: &Path) -> anyhow::Result<()> {
    let summary = results.figures.iter().map(|figure| SummaryRow {
        about: figure.about.clone(),
        metric: figure.metric.clone(),
        unit: figure.unit.to_owned(),
        value: rounded(figure.value),
    });
    write_rows(&folder.join(SUMMARY), summary)?;
    write_rows(&folder.join(TIMELINE), timeline(results, bin_s))?;
    let mut nodes = writer(&folder.join("nodes.csv"))?;
    if let Some((_, counters)) = results.nodes.first() {
        nodes.write_record(["node"].into_iter().chain(counters.iter().map(|counter| counter.0.as_str())))?;
    }
    for (node, counters) in &results.nodes {
        let values = counters.iter().map(|counter| counter.1.to_string());
        nodes.write_record([node.clone()].into_iter().chain(values))?;
    }
    nodes.flush()?;
    let mut links = writer(&folder.join("links.csv"))?;
    links.write_record(["link", "sender", "sent", "arrived"].into_iter().chain(LOSSES))?;
    for row in &results.links {
        let counts = [row.sent, row.arrived].into_iter().chain(row.lost).map(|count| count.to_string());
        links.write_record([row.link.clone(), row.sender.clone()].into_iter().chain(counts))?;
    }
    links.flush()?;
    Ok(())
}

/// The bins in which a group asked for or got something.
fn timeline(results: &Results, bin_s: f64) -> impl Iterator<Item = TimelineRow> {
    let in_use = |bin: &Bin| bin.requests > 0 || bin.content_bytes > 0;
    results.groups.iter().flat_map(move |group| {
        group.bins.iter().enumerate().filter(move |(_, bin)| in_use(bin)).map(move |(number, bin)| TimelineRow {
            time_s: rounded(number as f64 * bin_s),
            about: group.name.clone(),
            requests: bin.requests,
            satisfied: bin.satisfied,
            latency_median_ms: Some(bin.latency_median_ms).filter(|ms| ms.is_finite()).map(rounded),
            latency_95_ms: Some(bin.latency_95_ms).filter(|ms| ms.is_finite()).map(rounded),
            content_bytes: bin.content_bytes,
        })
    })
}

/// Six decimals: nanoseconds of a millisecond.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn writer(file: &Path) -> anyhow::Result<csv::Writer<fs::File>> {
    csv::Writer::from_path(file).with_context(|| file.display().to_string())
}

/// # Errors
/// If the file cannot be written.
pub(crate) fn write_rows(file: &Path, rows: impl Iterator<Item = impl Serialize>) -> anyhow::Result<()> {
    let mut writer = writer(file)?;
    for row in rows {
        writer.serialize(row)?;
    }
    writer.flush()?;
    Ok(())
}

/// # Errors
/// If the file cannot be read or has other columns.
pub(crate) fn read_rows<R: for<'d> Deserialize<'d>>(file: &Path) -> anyhow::Result<Vec<R>> {
    let mut reader = csv::Reader::from_path(file).with_context(|| file.display().to_string())?;
    reader.deserialize().collect::<Result<_, _>>().with_context(|| file.display().to_string())
}
