//! The page of a run or of a comparison: one HTML file that needs nothing else.

use crate::file::Scenario;
use crate::results::Results;
use maud::{Markup, PreEscaped, html};
use namewire_drawing::{Axis, Chart, Point, Series, draw, figure};

/// Points of a curve of a distribution.
const QUANTILES: usize = 40;
/// Most points of a curve over time; more are joined.
const TIMES_MAX: usize = 1_000;

/// A chart under a heading.
pub(crate) struct Section {
    pub(crate) chart: Chart,
    pub(crate) note: String,
}

/// The page of one run.
pub(crate) fn of_run(title: &str, scenario: &Scenario, seed: u64, results: &Results) -> String {
    let bin_s = scenario.bin.0.as_secs_f64();
    let head = html! {
        @if !scenario.question.is_empty() { p class="question" { (scenario.question) } }
        p class="faint" {
            (format!("{} s simulated, seed {seed}, {} nodes, {} links.",
                figure(scenario.duration.0.as_secs_f64()), results.nodes.len(), results.links.len() / 2))
        }
        @for warning in &results.warnings { p { b { (warning) } } }
    };
    let rows = results.figures.iter().map(|figure_of| {
        vec![figure_of.about.clone(), figure_of.metric.clone(), figure(figure_of.value), figure_of.unit.to_owned()]
    });
    let table = table(&["about", "what", "value", "unit"], rows);
    whole(title, &head, &run_sections(results, bin_s), &table)
}

fn run_sections(results: &Results, bin_s: f64) -> Vec<Section> {
    let over_time = |value: &dyn Fn(&crate::results::Bin) -> Option<f64>| -> Vec<Series> {
        let of_groups = results.groups.iter().map(|group| {
            let points = group
                .bins
                .iter()
                .enumerate()
                .filter_map(|(number, bin)| Some(Point::single(number as f64 * bin_s, value(bin)?)));
            Series { name: group.name.clone(), is_ours: true, points: thinned(points.collect()) }
        });
        of_groups.filter(|series| !series.points.is_empty()).collect()
    };
    let latency = over_time(&|bin| Some(bin.latency_median_ms).filter(|ms| ms.is_finite()));
    let lost = over_time(&|bin| {
        (bin.requests > 0).then(|| (bin.requests - bin.satisfied) as f64 / bin.requests as f64 * 100.0)
    });
    let content = over_time(&|bin| (bin.content_bytes > 0).then(|| bin.content_bytes as f64 * 8e-6 / bin_s));
    vec![
        section("Latency over time", "simulated time (s)", "latency, median of a bin (ms)", latency, ""),
        section(
            "Requests without Data over time",
            "simulated time (s)",
            "requests that began then and got none (%)",
            lost,
            "",
        ),
        section("Content over time", "simulated time (s)", "content that arrived (Mbit/s)", content, ""),
        section(
            "Distribution of the latency",
            "latency (ms)",
            "requests with Data, at most so late (%)",
            distributions(results),
            "",
        ),
    ]
}

fn distributions(results: &Results) -> Vec<Series> {
    let of_groups = results.groups.iter().filter(|group| !group.latencies_ms.is_empty()).map(|group| {
        let last = group.latencies_ms.len() - 1;
        let points = (0..=QUANTILES).map(|step| {
            let place = last * step / QUANTILES;
            Point::single(group.latencies_ms[place], (place + 1) as f64 / (last + 1) as f64 * 100.0)
        });
        Series { name: group.name.clone(), is_ours: true, points: points.collect() }
    });
    of_groups.collect()
}

pub(crate) fn section(title: &str, x: &str, y: &str, series: Vec<Series>, note: &str) -> Section {
    let chart =
        Chart { title: title.to_owned(), x: Axis::linear(x), y: Axis::linear(y), series, categories: Vec::new() };
    Section { chart, note: note.to_owned() }
}

/// Every n-th point, so that a page of a day stays small.
pub(crate) fn thinned(points: Vec<Point>) -> Vec<Point> {
    let step = points.len().div_ceil(TIMES_MAX).max(1);
    points.into_iter().step_by(step).collect()
}

pub(crate) fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Markup {
    let is_number = |cell: &str| cell.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
    html! {
        div class="scroll" { table {
            thead { tr { @for column in columns { th { (column) } } } }
            tbody { @for row in rows { tr { @for cell in &row {
                td class=(if is_number(cell) { "n" } else { "" }) { (cell) }
            } } } }
        } }
    }
}

pub(crate) fn whole(title: &str, head: &Markup, sections: &[Section], table: &Markup) -> String {
    let body = html! {
        header { h1 { (title) } (head) }
        main {
            div class="plots" {
                @for Section { chart, note } in sections.iter().filter(|section| !section.chart.series.is_empty()) {
                    figure {
                        h3 { (chart.title) }
                        (PreEscaped(draw::on_page(chart)))
                        @if !note.is_empty() { figcaption { (note) } }
                    }
                }
            }
            (table)
        }
    };
    namewire_drawing::page(title, &body)
}
