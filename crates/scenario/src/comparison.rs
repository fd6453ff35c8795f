//! Variants of a scenario beside each other, each run with several seeds.
//!
//! Each run is a process of its own: runs share nothing, so they use all processors. The result of a variant is the
//! mean over its seeds with the 95 % interval of Student's t.

use crate::csv_files::{SUMMARY, SummaryRow, TIMELINE, TimelineRow, read_rows, rounded, write_rows};
use crate::page::{self, Section, section, thinned};
use anyhow::{Context as _, ensure};
use maud::html;
use namewire_drawing::{Axis, Chart, Point, Series, figure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Most runs of a comparison.
const RUNS_MAX: usize = 10_000;
/// Groups of consumers that get charts of their own.
const GROUPS_MAX: usize = 6;
/// What is drawn by variant, if a run has it.
const DRAWN: [&str; 6] = [
    "satisfied",
    "latency, median",
    "latency, 95 of 100",
    "content",
    "time of a file, median",
    "received by the others",
];

/// What to compare.
pub(crate) struct Comparison {
    pub(crate) scenario: PathBuf,
    /// Changes for all runs, each `KEY=VALUE`.
    pub(crate) settings: Vec<String>,
    /// Keys with several values, each `KEY=VALUE,VALUE`.
    pub(crate) vary: Vec<String>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) jobs: usize,
    pub(crate) folder: PathBuf,
}

/// A combination of values.
#[derive(Clone, Debug, PartialEq)]
struct Variant {
    name: String,
    settings: Vec<String>,
}

/// One run of a comparison.
struct Run<'v> {
    variant: &'v Variant,
    seed: u64,
    folder: PathBuf,
}

/// A line of `comparison.csv`.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    variant: String,
    about: String,
    metric: String,
    unit: String,
    mean: f64,
    low: f64,
    high: f64,
    seeds: usize,
}

/// All combinations of `KEY=VALUE,VALUE`.
fn variants(vary: &[String]) -> anyhow::Result<Vec<Variant>> {
    let mut all = vec![Variant { name: String::new(), settings: Vec::new() }];
    for choice in vary {
        let (key, values) = choice.split_once('=').with_context(|| format!("--vary {choice}: KEY=VALUE,VALUE"))?;
        let values: Vec<&str> = values.split(',').map(str::trim).filter(|value| !value.is_empty()).collect();
        ensure!(!values.is_empty(), "--vary {choice}: there are no values");
        let with = |variant: &Variant, value: &str| {
            let short = key.rsplit('.').next().unwrap_or(key);
            // The last key and the value say enough; two varied keys are told apart.
            let own = if vary.len() == 1 { value.to_owned() } else { format!("{short}={value}") };
            let name = if variant.name.is_empty() { own } else { format!("{}, {own}", variant.name) };
            let settings = variant.settings.iter().cloned().chain([format!("{key}={value}")]).collect();
            Variant { name, settings }
        };
        all = all.iter().flat_map(|variant| values.iter().map(|value| with(variant, value))).collect();
    }
    Ok(all)
}

/// Runs everything and writes `comparison.csv` and `index.html`; returns the page.
///
/// # Errors
/// If a run fails, or a file cannot be written.
pub(crate) fn compare(comparison: &Comparison, title: &str, question: &str) -> anyhow::Result<PathBuf> {
    let variants = variants(&comparison.vary)?;
    let count = variants.len() * comparison.seeds.len();
    ensure!(count <= RUNS_MAX, "{count} runs, {RUNS_MAX} are allowed");
    let mut runs = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        for &seed in &comparison.seeds {
            let folder = comparison.folder.join(folder_name(number, variant)).join(format!("seed-{seed}"));
            runs.push(Run { variant, seed, folder });
        }
    }
    run_all(comparison, &runs)?;
    let mut rows = Vec::new();
    let mut timelines = Vec::new();
    for variant in &variants {
        let folders = runs.iter().filter(|run| run.variant == variant).map(|run| run.folder.as_path());
        let folders: Vec<&Path> = folders.collect();
        rows.append(&mut summary(variant, &folders)?);
        timelines.push((variant.name.clone(), timeline(&folders)?));
    }
    write_rows(&comparison.folder.join("comparison.csv"), rows.iter())?;
    let mut sections = charts_by_variant(&rows, &variants);
    sections.append(&mut charts_over_time(&timelines));
    let head = html! {
        @if !question.is_empty() { p class="question" { (question) } }
        p class="faint" {
            (format!("{} variants, seeds {}. Values are means over the seeds, with the 95 % interval.",
                variants.len(), list(&comparison.seeds)))
        }
    };
    let cells = rows.iter().map(|row| {
        let interval = format!("{} to {}", figure(row.low), figure(row.high));
        vec![row.about.clone(), row.metric.clone(), row.variant.clone(), figure(row.mean), interval, row.unit.clone()]
    });
    let mut cells: Vec<Vec<String>> = cells.collect();
    // Variants of one number stand below each other.
    let order: Vec<[String; 2]> = rows.iter().map(|row| [row.about.clone(), row.metric.clone()]).collect();
    cells.sort_by_key(|cell| order.iter().position(|key| key[0] == cell[0] && key[1] == cell[1]));
    let table = page::table(&["about", "what", "variant", "mean", "95 % interval", "unit"], cells.into_iter());
    let file = comparison.folder.join("index.html");
    std::fs::write(&file, page::whole(title, &head, &sections, &table)).with_context(|| file.display().to_string())?;
    Ok(file)
}

fn list(seeds: &[u64]) -> String {
    match seeds {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    }
}

/// A number, so that no two are equal, and what a reader recognises.
fn folder_name(number: usize, variant: &Variant) -> String {
    let safe = |letter: char| if letter.is_alphanumeric() || "-_.=".contains(letter) { letter } else { '-' };
    let name: String = variant.name.chars().map(safe).take(100).collect();
    if name.is_empty() { "runs".to_owned() } else { format!("{}-{name}", number + 1) }
}

/// Runs processes, as many at a time as allowed. The first failure ends the others.
fn run_all(comparison: &Comparison, runs: &[Run<'_>]) -> anyhow::Result<()> {
    let mut waiting = runs.iter();
    let mut running: Vec<(String, Child)> = Vec::new();
    let mut done = 0;
    let result = loop {
        while running.len() < comparison.jobs.max(1) {
            let Some(run) = waiting.next() else { break };
            match start(comparison, run) {
                Ok(child) => running.push((format!("{} seed {}", run.variant.name, run.seed), child)),
                Err(error) => return stop(running, Err(error)),
            }
        }
        if running.is_empty() {
            break Ok(());
        }
        let ended = running.iter_mut().position(|(_, child)| !matches!(child.try_wait(), Ok(None)));
        let Some(place) = ended else {
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        };
        let (name, child) = running.swap_remove(place);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            break Err(anyhow::anyhow!("{}: {text}", name.trim()));
        }
        done += 1;
        eprintln!("{done} of {} runs: {}", runs.len(), name.trim());
    };
    stop(running, result)
}

/// Ends what still runs.
fn stop(running: Vec<(String, Child)>, result: anyhow::Result<()>) -> anyhow::Result<()> {
    for (_, mut child) in running {
        // It may have ended meanwhile.
        let _ = child.kill();
        child.wait()?;
    }
    result
}

fn start(comparison: &Comparison, Run { variant, seed, folder }: &Run<'_>) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("the path of this program")?;
    let mut command = Command::new(program);
    command.arg("run").arg(&comparison.scenario).args(["--seed", &seed.to_string()]).arg("--folder").arg(folder);
    for setting in comparison.settings.iter().chain(&variant.settings) {
        command.args(["--set", setting]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("start a run")
}

fn summary(variant: &Variant, folders: &[&Path]) -> anyhow::Result<Vec<Row>> {
    let mut order = Vec::new();
    let mut values: BTreeMap<(String, String, String), Vec<f64>> = BTreeMap::new();
    for folder in folders {
        for SummaryRow { about, metric, unit, value } in read_rows(&folder.join(SUMMARY))? {
            let key = (about, metric, unit);
            if !values.contains_key(&key) {
                order.push(key.clone());
            }
            values.entry(key).or_default().push(value);
        }
    }
    let rows = order.into_iter().map(|key| {
        let of_seeds = &values[&key];
        let (mean, low, high) = interval(of_seeds);
        let [mean, low, high] = [mean, low, high].map(rounded);
        let (about, metric, unit) = key;
        Row { variant: variant.name.clone(), about, metric, unit, mean, low, high, seeds: of_seeds.len() }
    });
    Ok(rows.collect())
}

/// Mean and 95 % interval of the mean.
fn interval(values: &[f64]) -> (f64, f64, f64) {
    /// Student's t, 97.5 %, for 1 to 30 degrees of freedom.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let Some(freedom) = values.len().checked_sub(2) else { return (mean, mean, mean) };
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = T.get(freedom).copied().unwrap_or(1.96) * (variance / count).sqrt();
    (mean, mean - half, mean + half)
}

/// By group and time: the share of requests without Data, and the latency; means over the seeds.
type Timeline = BTreeMap<String, BTreeMap<u64, (f64, Option<f64>)>>;

fn timeline(folders: &[&Path]) -> anyhow::Result<Timeline> {
    /// Of all seeds together.
    #[derive(Default)]
    struct Sum {
        requests: u64,
        satisfied: u64,
        latencies_ms: Vec<f64>,
    }
    let mut sums: BTreeMap<String, BTreeMap<u64, Sum>> = BTreeMap::new();
    for folder in folders {
        for row in read_rows::<TimelineRow>(&folder.join(TIMELINE))? {
            let at_ms = (row.time_s * 1e3).round() as u64;
            let sum = sums.entry(row.about).or_default().entry(at_ms).or_default();
            sum.requests += row.requests;
            sum.satisfied += row.satisfied;
            sum.latencies_ms.extend(row.latency_median_ms);
        }
    }
    let point = |sum: Sum| {
        let lost = (sum.requests - sum.satisfied) as f64 / (sum.requests.max(1)) as f64 * 100.0;
        let latency_ms = sum.latencies_ms.iter().sum::<f64>() / sum.latencies_ms.len() as f64;
        (lost, Some(latency_ms).filter(|ms| ms.is_finite()))
    };
    let of_group = |bins: BTreeMap<u64, Sum>| bins.into_iter().map(|(at_ms, sum)| (at_ms, point(sum))).collect();
    Ok(sums.into_iter().map(|(group, bins)| (group, of_group(bins))).collect())
}

fn charts_by_variant(rows: &[Row], variants: &[Variant]) -> Vec<Section> {
    let mut sections = Vec::new();
    for metric in DRAWN {
        let of_metric = || rows.iter().filter(|row| row.metric == metric);
        let Some(first) = of_metric().next() else { continue };
        let mut series: Vec<Series> = Vec::new();
        for row in of_metric() {
            let at = variants.iter().position(|variant| variant.name == row.variant).unwrap_or(0) as f64;
            let place = series.iter().position(|known| known.name == row.about).unwrap_or_else(|| {
                series.push(Series { name: row.about.clone(), is_ours: true, points: Vec::new() });
                series.len() - 1
            });
            series[place].points.push(Point { at, value: row.mean, low: row.low, high: row.high });
        }
        let chart = Chart {
            title: metric.to_owned(),
            x: Axis::linear(&format!("{metric} ({})", first.unit)),
            y: Axis::linear("variant"),
            series,
            categories: variants.iter().map(|variant| variant.name.clone()).collect(),
        };
        sections.push(Section { chart, note: String::new() });
    }
    sections
}

fn charts_over_time(timelines: &[(String, Timeline)]) -> Vec<Section> {
    let groups: std::collections::BTreeSet<&String> = timelines.iter().flat_map(|timeline| timeline.1.keys()).collect();
    let mut sections = Vec::new();
    for group in groups.into_iter().take(GROUPS_MAX) {
        let series = |value: fn(&(f64, Option<f64>)) -> Option<f64>| -> Vec<Series> {
            let of_variants = timelines.iter().filter_map(|(variant, timeline)| {
                let points = timeline
                    .get(group)?
                    .iter()
                    .filter_map(|(at_ms, point)| Some(Point::single(*at_ms as f64 / 1e3, value(point)?)));
                Some(Series { name: variant.clone(), is_ours: true, points: thinned(points.collect()) })
            });
            of_variants.collect()
        };
        let time = "simulated time (s)";
        let title = format!("{group}: requests without Data over time");
        sections.push(section(&title, time, "requests that got none (%)", series(|point| Some(point.0)), ""));
        let title = format!("{group}: latency over time");
        sections.push(section(&title, time, "latency, median of a bin (ms)", series(|point| point.1), ""));
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_all_combinations() -> anyhow::Result<()> {
        let all = variants(&["strategy=asf,multicast".to_owned(), "link_defaults.loss=0,0.1".to_owned()])?;
        let names: Vec<&str> = all.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names[1], "strategy=asf, loss=0.1");
        assert_eq!((all.len(), all[3].settings.join(" ")), (4, "strategy=multicast link_defaults.loss=0.1".to_owned()));
        assert_eq!(variants(&["strategy=asf,best-route".to_owned()])?[1].name, "best-route");
        assert!(variants(&["strategy".to_owned()]).is_err() && variants(&["strategy=".to_owned()]).is_err());
        Ok(())
    }

    #[test]
    fn an_interval_is_students() {
        let (mean, low, high) = interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (high - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{low} {high}");
        assert_eq!(interval(&[7.0]), (7.0, 7.0, 7.0));
    }
}
