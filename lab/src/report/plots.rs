//! Which rows become which plot.
//!
//! `lab/plots.json` lists the plots. A plot takes the rows of one experiment that its pattern matches, written as
//! `metric | case | subject`. Named parts of the pattern say what a row is in the plot:
//!
//! | part | meaning |
//! | --- | --- |
//! | `x` | the place on the x axis, a number; commas between thousands are dropped |
//! | `category` | instead of `x`: the row's line in a plot by category |
//! | `series`, `series2` | the curve that the row belongs to |
//!
//! The figures of papers and peers for comparison ([`crate::peers`]) are matched in the same way, and so are the
//! numbers of the papers' tables and figures that stand beside a row ([`crate::paper_results`]). They become separate
//! curves.
//!
//! A plot has at most six curves of ours, as a test says: more cannot be told apart.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, ensure};
use namewire_drawing::{Axis, Chart, Point, Series};
use regex_lite::Regex;
use serde::Deserialize;

use crate::paper_results::{self, Cell, Figure, OurValue, Records, compare};
use crate::peers;
use crate::record::Record;
use crate::statistics::Summary;

/// One plot of `lab/plots.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// Name of its files.
    pub id: String,
    pub experiment: String,
    pub title: String,
    /// The pattern.
    pub rows: String,
    pub x: Axis,
    pub y: Axis,
    /// The table or figure of a paper that it is in the form of.
    pub like: Option<String>,
}

/// A plot with its points.
#[derive(Clone, Debug)]
pub struct Plot {
    pub spec: PlotSpec,
    pub chart: Chart,
}

impl Plot {
    fn new(spec: PlotSpec, series: Vec<Series>, categories: Vec<String>) -> Self {
        let (title, x, y) = (spec.title.clone(), spec.x.clone(), spec.y.clone());
        Plot { spec, chart: Chart { title, x, y, series, categories } }
    }
}

/// Most curves of ours in a plot of `lab/plots.json`.
#[cfg(test)]
pub const CURVES_MAX: usize = 6;

const PLOTS: &str = include_str!("../../plots.json");

/// Every plot whose experiment has a record with such rows.
///
/// # Errors
/// If a plot is malformed.
pub fn all(records: &Records) -> anyhow::Result<Vec<Plot>> {
    let specs: Vec<PlotSpec> = serde_json::from_str(PLOTS).context("lab/plots.json")?;
    specs
        .into_iter()
        .filter_map(|spec| {
            let id = spec.id.clone();
            plot(spec, records).with_context(|| format!("plot {id}")).transpose()
        })
        .collect()
}

/// Our numbers over those of the papers, for each experiment that has some.
///
/// # Errors
/// If a data file is malformed.
pub fn ratios(records: &Records) -> anyhow::Result<Vec<Plot>> {
    let papers = paper_results::all()?;
    let results = || papers.iter().flat_map(|paper| paper.results.iter().map(move |result| (paper, result)));
    let of_experiment = |experiment: &String| {
        let mut categories: Vec<String> = Vec::new();
        let mut series: Vec<Series> = RATIO_CELLS
            .iter()
            .map(|cell| Series { name: cell.text().replace('*', ""), is_ours: true, points: Vec::new() })
            .collect();
        for (paper, result) in results().filter(|(_, result)| result.experiment.as_ref() == Some(experiment)) {
            let Ok(compared) = compare(paper, result, records) else { continue };
            for figure in &compared.figures {
                let Some(ratio) = figure.ratio().filter(|ratio| *ratio > 0.0) else { continue };
                let Some(place) = RATIO_CELLS.iter().position(|cell| *cell == figure.cell) else { continue };
                series[place].points.push(Point::single(categories.len() as f64, ratio));
                categories.push(format!("{}, {}", result.id, figure.what));
            }
        }
        series.retain(|series| !series.points.is_empty());
        let spec = PlotSpec {
            id: format!("{experiment}-over-paper"),
            experiment: experiment.clone(),
            title: format!("{experiment}: our number over the paper's"),
            rows: String::new(),
            x: Axis { log: true, mark: Some(1.0), ..Axis::linear("times the paper's number") },
            y: Axis::linear("number"),
            like: None,
        };
        Plot::new(spec, series, categories)
    };
    Ok(records.kept.keys().map(of_experiment).filter(|plot| !plot.chart.categories.is_empty()).collect())
}

/// What was measured; what was computed or made so is 1.
const RATIO_CELLS: [Cell; 4] = [Cell::Agrees, Cell::Beyond, Cell::Differs, Cell::Unsteady];

/// The paper's number as a row beside ours, if ours is a row as it is.
fn paper_row(figure: &Figure) -> Option<(String, f64)> {
    let (ours, paper) = (figure.ours.as_ref()?, figure.paper.as_ref()?);
    let is_plain = ours.plus.is_none() && ours.over.is_none() && !ours.saved_percent && !ours.inverse;
    let OurValue::Row { case, subject, metric } = &ours.value else { return None };
    // Our nanoseconds become cycles at the clock of our machine, which is not the paper's.
    if figure.unit == "cycles" && ours.times != 1.0 {
        return None;
    }
    let value = paper.value().ok().filter(|_| is_plain && paper.words().is_none() && figure.record.is_none())?;
    Some((text(metric, case, subject), value / ours.times))
}

/// A number that a plot may show.
struct Shown {
    row: String,
    is_ours: bool,
    value: f64,
    low: f64,
    high: f64,
}

/// All numbers of the record, of peers and of papers, ours first.
fn shown(spec: &PlotSpec, record: &Record) -> anyhow::Result<Vec<Shown>> {
    let ours = record.rows.iter().filter_map(|row| {
        let Summary { median, low, high, .. } = *row.value.as_ref()?;
        Some(Shown { row: text(&row.metric, &row.case, &row.subject), is_ours: true, value: median, low, high })
    });
    let mut shown: Vec<Shown> = ours.collect();
    let others = |row, value| Shown { row, is_ours: false, value, low: value, high: value };
    for figure in peers::for_experiment(&spec.experiment)?.iter().flat_map(|source| &source.figures) {
        let rows = figure.values.iter().map(|(subject, &value)| (text(&figure.metric, &figure.case, subject), value));
        shown.extend(rows.map(|(row, value)| others(row, value)));
    }
    for result in paper_results::all()?.iter().flat_map(|paper| &paper.results) {
        if result.experiment.as_ref() == Some(&spec.experiment) {
            shown.extend(result.figures.iter().filter_map(paper_row).map(|(row, value)| others(row, value)));
        }
    }
    Ok(shown)
}

/// `None` without a row of ours.
fn plot(spec: PlotSpec, records: &Records) -> anyhow::Result<Option<Plot>> {
    let pattern = Regex::new(&spec.rows)?;
    let names: Vec<&str> = pattern.capture_names().flatten().collect();
    ensure!(names.contains(&"x") != names.contains(&"category"), "a pattern has `x` or `category`");
    let Some(record) = records.kept.get(&spec.experiment) else { return Ok(None) };
    let (mut series, mut categories): (Vec<Series>, Vec<String>) = Default::default();
    let mut rows = HashSet::new();
    for Shown { row, is_ours, value, low, high } in shown(&spec, record)? {
        // A record may measure something twice; the first time counts.
        if !rows.insert((row.clone(), is_ours)) {
            continue;
        }
        let Some(parts) = pattern.captures(&row) else { continue };
        let part = |name: &str| parts.name(name).map(|part| part.as_str().trim().to_owned());
        let at = match (part("x"), part("category")) {
            (Some(x), _) => number(&x).with_context(|| format!("{x:?} in {row:?} is no number"))?,
            (None, category) => {
                let category = category.unwrap_or_default();
                let known = categories.iter().position(|known| *known == category);
                known.unwrap_or_else(|| {
                    categories.push(category);
                    categories.len() - 1
                }) as f64
            }
        };
        let has_it = |series: &Series| series.points.iter().any(|point| (point.at, point.value) == (at, value));
        // A paper's number may be among the peers' figures, too.
        if !is_ours && series.iter().any(|known| !known.is_ours && has_it(known)) {
            continue;
        }
        let name = [part("series"), part("series2")].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let place = series.iter().position(|known| known.name == name && known.is_ours == is_ours);
        let place = place.unwrap_or_else(|| {
            series.push(Series { name, is_ours, points: Vec::new() });
            series.len() - 1
        });
        series[place].points.push(Point { at, value, low, high });
    }
    if !series.iter().any(|series| series.is_ours) {
        return Ok(None);
    }
    for series in &mut series {
        series.points.sort_by(|one, other| one.at.total_cmp(&other.at));
        if series.name.is_empty() {
            series.name = if series.is_ours { "here".to_owned() } else { "elsewhere".to_owned() };
        }
    }
    // A legend names each curve once.
    let ours: HashSet<String> =
        series.iter().filter(|series| series.is_ours).map(|series| series.name.clone()).collect();
    for series in series.iter_mut().filter(|series| !series.is_ours && ours.contains(&series.name)) {
        series.name.push_str(" (others)");
    }
    ensure_distinct(&series)?;
    Ok(Some(Plot::new(spec, series, categories)))
}

#[cfg(test)]
pub fn count_specs() -> usize {
    serde_json::from_str::<Vec<PlotSpec>>(PLOTS).map_or(0, |specs| specs.len())
}

/// 65536, 65,536, 0.5; or 16m, which is how Yuan15 writes millions.
fn number(text: &str) -> Option<f64> {
    let digits = text.replace(',', "");
    match digits.strip_suffix('m') {
        Some(millions) => Some(1e6 * millions.parse::<f64>().ok()?),
        None => digits.parse().ok(),
    }
}

fn text(metric: &str, case: &str, subject: &str) -> String {
    format!("{metric} | {case} | {subject}")
}

/// A pattern that confuses two rows is wrong.
fn ensure_distinct(series: &[Series]) -> anyhow::Result<()> {
    for Series { name, points, .. } in series {
        let mut places: BTreeMap<u64, u32> = BTreeMap::new();
        points.iter().for_each(|point| *places.entry(point.at.to_bits()).or_default() += 1);
        ensure!(places.values().all(|&rows| rows == 1), "two rows are at one place of the curve {name:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Outcome;
    use crate::record::Record;

    fn records() -> anyhow::Result<Records> {
        let mut outcome = Outcome::default();
        for (case, subject, value) in
            [("2,000 names", "a", 3.0), ("1,000 names", "a", 1.0), ("1,000 names", "b", 2.0), ("none", "a", 9.0)]
        {
            outcome.add_value(case, subject, ("speed", "per s"), value);
        }
        let text = format!(
            r#"{{"experiment": "dram-model", "question": "", "scale": "quick", "commit": "", "command": "", "seed": 1,
            "machine": {}, "started_unix_s": 0, "duration_s": 0, "headline": {{}}, "notes": [], "rows": {}}}"#,
            serde_json::to_string(&crate::machine::Machine::describe(&crate::clock::Clock::calibrate()))?,
            serde_json::to_string(&outcome.rows)?
        );
        let record: Record = serde_json::from_str(&text)?;
        Ok(Records { kept: [(record.experiment.clone(), record)].into(), ..Records::default() })
    }

    fn spec(rows: &str) -> PlotSpec {
        let axis = Axis::linear("x");
        PlotSpec {
            id: "p".to_owned(),
            experiment: "dram-model".to_owned(),
            title: "t".to_owned(),
            rows: rows.to_owned(),
            x: axis.clone(),
            y: axis,
            like: None,
        }
    }

    #[test]
    fn rows_become_points_in_order() -> anyhow::Result<()> {
        let plot = plot(spec(r"^speed \| (?P<x>[\d,]+) names \| (?P<series>.*)$"), &records()?)?.context("points")?;
        let points = |place: usize| plot.chart.series[place].points.iter().map(|p| (p.at, p.value)).collect::<Vec<_>>();
        assert_eq!((points(0), points(1)), (vec![(1000.0, 1.0), (2000.0, 3.0)], vec![(1000.0, 2.0)]));
        assert_eq!(plot.chart.series[1].name, "b");
        Ok(())
    }

    #[test]
    fn categories_are_in_the_order_of_the_rows() -> anyhow::Result<()> {
        let plot = plot(spec(r"^speed \| (?P<category>.*) \| a$"), &records()?)?.context("points")?;
        assert_eq!(plot.chart.categories, ["2,000 names", "1,000 names", "none"]);
        assert_eq!(plot.chart.place_name(&plot.chart.series[0].points[1]), "1,000 names");
        assert!(plot.chart.description().contains("here"));
        Ok(())
    }

    #[test]
    fn numbers_are_written_in_several_ways() {
        let numbers = ["65536", "1,000,000", "0.5", "16m", "m", "large"].map(number);
        assert_eq!(numbers, [Some(65536.0), Some(1e6), Some(0.5), Some(16e6), None, None]);
    }

    #[test]
    fn a_wrong_pattern_is_an_error() -> anyhow::Result<()> {
        for (rows, reason) in [
            (r"^speed \| (?P<x>[\d,]+) names \| .*$", "two rows are at one place"),
            (r"^speed \| none \| (?P<x>.*)$", "is no number"),
            (r"^speed", "has `x` or `category`"),
        ] {
            let error = format!("{:#}", plot(spec(rows), &records()?).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
        assert!(plot(spec(r"^none \| (?P<x>.*)$"), &records()?)?.is_none());
        Ok(())
    }
}
