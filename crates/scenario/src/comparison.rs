//! Variants of a scenario beside each other, each run with several seeds.
//!
//! Each run is a process of its own: runs share nothing, so they use all processors. The result of a variant is the
//! mean over its seeds with the 95 % interval of Student's t.

use crate::bit_rate::BitRate;
use crate::csv_files::{SUMMARY, SummaryRow, TIMELINE, TimelineRow, read_rows, rounded};
use crate::page::{self, Section, section, thinned};
use anyhow::{Context as _, ensure};
use maud::html;
use namewire_configuration::units::Span;
use namewire_drawing::{Axis, Chart, Point, Series, figure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Most runs of a comparison.
const RUNS_MAX: usize = 10_000;
/// Groups of consumers that get charts of their own.
const GROUPS_MAX: usize = 6;
/// What is drawn by variant, if a run has it.
const DRAWN: [&str; 7] = [
    "satisfied",
    "latency, median",
    "latency, 95 of 100",
    "content",
    "speed of a file, median",
    "received by the others",
    "Data of producers per request",
];
/// Variants that curves over time can tell apart.
const CURVES_MAX: usize = 6;

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

/// Units of what is counted.
const COUNTS: [&str; 5] = ["packets", "frames", "requests", "files", "changes"];

/// A combination of values: the keys that are varied, and the value of each.
#[derive(Clone, Debug, Default, PartialEq)]
struct Variant {
    values: Vec<(String, String)>,
}

impl Variant {
    /// What tells it from the others. Of one key, the value says enough.
    fn name(&self) -> String {
        match &self.values[..] {
            [(_, value)] => value.clone(),
            values => {
                let one = |(key, value): &(String, String)| format!("{}={value}", short(key));
                values.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The last part of a key.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// One run of a comparison.
struct Run<'v> {
    variant: &'v Variant,
    seed: u64,
    folder: PathBuf,
}

/// A line of `comparison.csv`.
#[derive(Clone, Debug, PartialEq)]
struct Row<'v> {
    variant: &'v Variant,
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
    let mut all = vec![Variant::default()];
    for choice in vary {
        let (key, values) = choice.split_once('=').with_context(|| format!("--vary {choice}: KEY=VALUE,VALUE"))?;
        let values = parts(values);
        ensure!(!values.is_empty(), "--vary {choice}: there are no values");
        let with = |variant: &Variant, value: &String| {
            let mut values = variant.values.clone();
            values.push((key.to_owned(), value.clone()));
            Variant { values }
        };
        all = all.iter().flat_map(|variant| values.iter().map(|value| with(variant, value))).collect();
    }
    Ok(all)
}

/// The parts of a list. Commas in brackets and quotes belong to a part.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut is_quoted) = (vec![String::new()], 0_i32, false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(letter);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
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
        timelines.push((variant.name(), timeline(&folders)?));
    }
    write_table(&comparison.folder.join("comparison.csv"), &rows)?;
    let mut sections = charts_by_variant(&rows, &variants);
    if variants.len() <= CURVES_MAX {
        sections.append(&mut charts_over_time(&timelines));
    }
    let differs = variants.len() == 1 || differ(&rows, &variants);
    if !differs {
        eprintln!("The variants do not differ in any number: does the scenario use what is varied?");
    }
    let head = html! {
        @if !question.is_empty() { p class="question" { (question) } }
        p class="faint" {
            (format!("{} variants, seeds {}. Values are means over the seeds, with the 95 % interval.",
                variants.len(), list(&comparison.seeds)))
        }
        @if !differs { p { b { "The variants do not differ in any number." } } }
    };
    let cells = rows.iter().map(|row| {
        let interval = format!("{} to {}", figure(row.low), figure(row.high));
        vec![row.about.clone(), row.metric.clone(), row.variant.name(), figure(row.mean), interval, row.unit.clone()]
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

/// Whether some number is not the same in all variants.
fn differ(rows: &[Row<'_>], variants: &[Variant]) -> bool {
    let of = |variant: &Variant| {
        let own = rows.iter().filter(|row| row.variant == variant);
        own.map(|row| (&row.about, &row.metric, row.mean.to_bits())).collect::<Vec<_>>()
    };
    variants.iter().any(|variant| of(variant) != of(&variants[0]))
}

/// A column for each varied key, and then the numbers.
fn write_table(file: &Path, rows: &[Row<'_>]) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_path(file).with_context(|| file.display().to_string())?;
    let keys = rows.first().map(|row| row.variant.values.iter().map(|value| value.0.as_str())).into_iter().flatten();
    writer.write_record(keys.chain(["about", "metric", "unit", "mean", "low", "high", "seeds"]))?;
    for Row { variant, about, metric, unit, mean, low, high, seeds } in rows {
        let values = variant.values.iter().map(|value| value.1.clone());
        let numbers = [mean, low, high].map(f64::to_string);
        let names = [about, metric, unit].map(String::clone);
        writer.write_record(values.chain(names).chain(numbers).chain([seeds.to_string()]))?;
    }
    writer.flush()?;
    Ok(())
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
    let name: String = variant.name().chars().map(safe).take(100).collect();
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
                Ok(child) => running.push((format!("{} seed {}", run.variant.name(), run.seed), child)),
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
    let varied = variant.values.iter().map(|(key, value)| format!("{key}={value}"));
    for setting in comparison.settings.iter().cloned().chain(varied) {
        command.args(["--set", &setting]);
    }
    // The run ends when this process does, whose end closes the pipe.
    command
        .arg("--child")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start a run")
}

fn summary<'v>(variant: &'v Variant, folders: &[&Path]) -> anyhow::Result<Vec<Row<'v>>> {
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
        let mut of_seeds = values[&key].clone();
        let (about, metric, unit) = key;
        // A count that a run does not name is 0 there.
        if COUNTS.contains(&unit.as_str()) {
            of_seeds.resize(folders.len(), 0.0);
        }
        let (mean, low, high) = interval(&of_seeds);
        // Nothing here is below 0, and no share above 100.
        let most = if unit == "%" { 100.0 } else { f64::INFINITY };
        let (low, high) = (low.max(0.0).min(mean), high.min(most).max(mean));
        let [mean, low, high] = [mean, low, high].map(rounded);
        Row { variant, about, metric, unit, mean, low, high, seeds: of_seeds.len() }
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

/// The place of a key whose values are numbers: it is the x axis.
fn number_axis(variants: &[Variant]) -> Option<usize> {
    let keys = variants.first()?.values.len();
    (0..keys).find(|place| {
        let mut values: Vec<&str> = variants.iter().map(|variant| variant.values[*place].1.as_str()).collect();
        values.sort_unstable();
        values.dedup();
        values.len() > 1 && values.iter().all(|value| number(value).is_some())
    })
}

/// A number, or a span or size with its unit, in seconds or bytes.
fn number(value: &str) -> Option<f64> {
    let span = || value.parse::<Span>().ok().map(|span| span.0.as_secs_f64());
    let rate = || value.parse::<BitRate>().ok().map(|rate| rate.0 as f64);
    value.parse().ok().or_else(span).or_else(rate).filter(|number: &f64| number.is_finite())
}

/// The x axis of a key with numbers: logarithmic where they span two decades.
fn axis_over(variants: &[Variant], place: usize) -> Axis {
    let numbers = || variants.iter().filter_map(|variant| number(&variant.values[place].1));
    let (least, most) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max));
    Axis { log: least > 0.0 && most >= 100.0 * least, ..Axis::linear(&variants[0].values[place].0) }
}

fn charts_by_variant(rows: &[Row<'_>], variants: &[Variant]) -> Vec<Section> {
    DRAWN.iter().filter_map(|metric| chart_by_variant(rows, variants, metric)).collect()
}

/// A metric over the number that is varied, a curve for each of the rest; or by category, if no number is varied.
fn chart_by_variant(rows: &[Row<'_>], variants: &[Variant], metric: &str) -> Option<Section> {
    let of_metric = || rows.iter().filter(|row| row.metric == metric);
    let unit = &of_metric().next()?.unit;
    let axis = number_axis(variants);
    let mut series: Vec<Series> = Vec::new();
    for row in of_metric() {
        let (at, name) = match axis {
            None => {
                let at = variants.iter().position(|variant| variant == row.variant)?;
                (at as f64, row.about.clone())
            }
            Some(place) => {
                let mut rest = row.variant.values.clone();
                let (_, value) = rest.remove(place);
                let others = rest.iter().map(|(_, value)| value.clone());
                let name: Vec<String> = [row.about.clone()].into_iter().chain(others).collect();
                (number(&value)?, name.join(", "))
            }
        };
        let place = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
            series.push(Series { name, is_ours: true, points: Vec::new() });
            series.len() - 1
        });
        series[place].points.push(Point { at, value: row.mean, low: row.low, high: row.high });
    }
    series.iter_mut().for_each(|series| series.points.sort_by(|one, other| one.at.total_cmp(&other.at)));
    let values = Axis::linear(&format!("{metric} ({unit})"));
    let (x, y, categories) = match axis {
        Some(place) => (axis_over(variants, place), values, Vec::new()),
        None => (values, Axis::linear("variant"), variants.iter().map(Variant::name).collect()),
    };
    Some(Section { chart: Chart { title: metric.to_owned(), x, y, series, categories }, note: String::new() })
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
        assert_eq!((all.len(), all[1].name().as_str()), (4, "strategy=asf, loss=0.1"));
        assert_eq!(number_axis(&all), Some(1));
        let one = variants(&["strategy=asf,best-route".to_owned()])?;
        assert_eq!((one[1].name().as_str(), number_axis(&one)), ("best-route", None));
        assert!(variants(&["strategy".to_owned()]).is_err() && variants(&["strategy=".to_owned()]).is_err());
        let lists = variants(&["consumer.0.nodes=[\"a\"],[\"a\", \"b,c\"]".to_owned()])?;
        assert_eq!(lists[1].values[0].1, "[\"a\", \"b,c\"]");
        Ok(())
    }

    #[test]
    fn numbers_have_units_or_none() {
        let numbers = ["0.5", "20ms", "3min", "10 Mbit/s", "asf"].map(number);
        assert_eq!(numbers, [Some(0.5), Some(0.02), Some(180.0), Some(1e7), None]);
    }

    #[test]
    fn an_interval_is_students() {
        let (mean, low, high) = interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (high - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{low} {high}");
        assert_eq!(interval(&[7.0]), (7.0, 7.0, 7.0));
    }
}
