//! The page of all records.

use maud::{Markup, PreEscaped, html};

use super::plots::Plot;
use crate::experiments;
use crate::paper_results::{
    self, CELLS, Compared, Paper, PaperResult, Records, Verdict, cells, compare, counted, verdict_text,
};
use crate::peers::{self, Peers};
use crate::record::Record;
use crate::terminal::interval_text;
use namewire_drawing::{draw, figure};

const TITLE: &str = "Results of namewire-lab";

/// A table or figure of a paper, and what became of it.
struct Answer<'p> {
    paper: &'p Paper,
    result: &'p PaperResult,
    /// `None` if the record lacks a number that it asks for: it has another scale.
    compared: Option<Compared>,
}

/// # Errors
/// If a data file is malformed, or a record lacks a number that a paper's result asks for.
pub fn page(records: &Records, plots: &[Plot]) -> anyhow::Result<String> {
    let papers = paper_results::all()?;
    let answers = answers(&papers, records);
    let sections = in_order(records)
        .into_iter()
        .map(|(source, record)| section(source, record, plots, &answers))
        .collect::<anyhow::Result<Vec<Markup>>>()?;
    let body = html! {
        header {
            h1 { (TITLE) }
            p { (summary(&answers)) }
        }
        nav aria-label="Contents" { (contents(records, &papers, &answers)) }
        main { @for section in &sections { (section) } }
    };
    Ok(namewire_drawing::page(TITLE, &body))
}

/// The source and the record of each experiment, in the order of the lab's table; then the records of users' own
/// experiments and scenarios.
fn in_order(records: &Records) -> Vec<(&'static str, &Record)> {
    let of_the_lab =
        experiments::TABLE.iter().filter_map(|experiment| Some((experiment.source, records.kept.get(experiment.id)?)));
    let own = records.kept.values().filter(|record| experiments::find(&record.experiment).is_none());
    of_the_lab.chain(own.map(|record| ("own", record))).collect()
}

/// Results whose experiment has a record, and those without an experiment.
fn answers<'p>(papers: &'p [Paper], records: &Records) -> Vec<Answer<'p>> {
    let all = papers.iter().flat_map(|paper| paper.results.iter().map(move |result| (paper, result)));
    let answered = all.filter(|(_, result)| {
        result.experiment.as_ref().is_none_or(|experiment| records.kept.contains_key(experiment))
    });
    answered.map(|(paper, result)| Answer { paper, result, compared: compare(paper, result, records).ok() }).collect()
}

fn summary(answers: &[Answer<'_>]) -> String {
    let compared: Vec<Compared> = answers.iter().filter_map(|answer| answer.compared.clone()).collect();
    counted(&compared)
}

fn contents(records: &Records, papers: &[Paper], answers: &[Answer<'_>]) -> Markup {
    html! {
        h2 { "Experiments" }
        ul class="contents" {
            @for (_, record) in in_order(records) {
                li { a href={ "#" (record.experiment) } { (record.experiment) } ": " (record.question) }
            }
        }
        h2 { "Papers" }
        @for paper in papers {
            details {
                summary { (paper.name) }
                ul {
                    @for answer in answers.iter().filter(|answer| answer.paper.name == paper.name) {
                        li {
                            @match &answer.result.experiment {
                                Some(experiment) => a href={ "#" (experiment) } { (answer.result.id) },
                                None => (answer.result.id),
                            }
                            ", " (answer.result.shows) ": " (verdict(answer))
                        }
                    }
                }
            }
        }
    }
}

fn verdict(answer: &Answer<'_>) -> Markup {
    let Some(compared) = &answer.compared else { return html! { "not in this record" } };
    let text = verdict_text(answer.result, compared);
    let class = if compared.verdict == Verdict::Differs { "differs" } else { "" };
    match text.split_once(": ") {
        Some((verdict, reason)) => html! { span class=(class) { (verdict.replace("**", "")) } ": " (prose(reason)) },
        None => html! { (prose(&text)) },
    }
}

/// What stands between backticks is code, which a narrow screen may break anywhere.
fn prose(text: &str) -> Markup {
    html! {
        @for (i, part) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn section(source: &str, record: &Record, plots: &[Plot], answers: &[Answer<'_>]) -> anyhow::Result<Markup> {
    let machine = &record.machine;
    let of_papers: Vec<&Answer<'_>> =
        answers.iter().filter(|answer| answer.result.experiment.as_deref() == Some(&*record.experiment)).collect();
    let missing: Vec<&str> =
        of_papers.iter().filter(|answer| answer.compared.is_none()).map(|answer| answer.result.id.as_str()).collect();
    let beside = peers::for_experiment(&record.experiment)?;
    Ok(html! {
        section id=(record.experiment) {
            h2 { (record.experiment) }
            p class="question" { (record.question) }
            p class="faint" {
                (source) ". " (machine.processor) ", " (machine.cpus) " processors, " (machine.memory_mib) " MiB, "
                (machine.kernel) ". Commit " (record.commit) ", scale " (record.scale) ", "
                (format!("{:.0}", record.duration_s)) " s"
                @if let Some(memory) = record.memory_peak_mib { ", " (memory) " MiB" }
                ". " code { (record.command) }
                @if let Some(host) = &record.host { ". " (host.text()) }
            }
            @if missing.len() < of_papers.len() { (comparison(record, &of_papers)) }
            div class="plots" {
                @for plot in plots.iter().filter(|plot| plot.spec.experiment == record.experiment) { (drawn(plot)) }
            }
            @if !record.headline.is_empty() { (headline(record)) }
            @if !missing.is_empty() { p { "Not in this record: " (missing.join(", ")) "." } }
            ul { @for note in &record.notes { li { (prose(note)) } } }
            p class="faint" {
                "All rows: " a href={ "report/" (record.experiment) ".csv" } { (record.experiment) ".csv" } "."
                @for source in &beside { " " (others(source)) }
            }
        }
    })
}

fn others(source: &Peers) -> Markup {
    html! { "Figures of others: " (source.title) ". " (source.source) " Machine: " (source.machine) ". " (source.method) }
}

fn comparison(record: &Record, answers: &[&Answer<'_>]) -> Markup {
    html! {
        ul {
            @for answer in answers.iter().filter(|answer| answer.compared.is_some()) {
                li { (answer.result.id) " of " (answer.paper.name) ", " (answer.result.shows) ": " (verdict(answer)) }
            }
        }
        div class="scroll" tabindex="0" role="region" aria-label={ "Numbers of the papers beside those of " (record.experiment) } {
            table {
                thead { tr {
                    th scope="col" { "result" }
                    @for (place, name) in CELLS.iter().enumerate() { th scope="col" class=(column(place)) { (name) } }
                } }
                tbody {
                    @for answer in answers {
                        @for compared in answer.compared.iter().flat_map(|compared| &compared.figures) {
                            tr {
                                td { (answer.result.id) }
                                @for (place, cell) in cells(compared).iter().enumerate() {
                                    td class=(column(place)) { (cell.replace("**", "")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Numbers are aligned to the right; the first and the last of [`CELLS`] are text.
const fn column(place: usize) -> &'static str {
    if place == 0 || place + 1 == CELLS.len() { "" } else { "n" }
}

fn headline(record: &Record) -> Markup {
    html! {
        details {
            summary { "Headline" }
            table {
                thead { tr { th scope="col" { "number" } th scope="col" class="n" { "value" } } }
                tbody {
                    @for (key, value) in &record.headline {
                        tr {
                            td { code { (key) } }
                            td class="n" { (figure(*value)) }
                            td { (record.intervals.get(key).map(|&interval| interval_text(interval)).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

fn drawn(plot: &Plot) -> Markup {
    let spec = &plot.spec;
    let (place, value) = if plot.chart.is_by_category() { (&spec.y, &spec.x) } else { (&spec.x, &spec.y) };
    html! {
        figure {
            h3 { (spec.title) }
            (PreEscaped(draw::on_page(&plot.chart)))
            figcaption class="faint" {
                @if let Some(like) = &spec.like { "In the form of " (like) ". " }
                "Bars: spread of the repetitions. A click in the legend mutes a curve. "
                @for extension in ["svg", "png"] {
                    a href={ "report/" (spec.id) "." (extension) } { (spec.id) "." (extension) } " "
                }
            }
            details {
                summary { "Values of this plot" }
                div class="scroll" tabindex="0" role="region" aria-label={ "Values: " (spec.title) } {
                    table {
                        thead { tr {
                            th scope="col" { "curve" } th scope="col" { (place.label) }
                            th scope="col" class="n" { (value.label) } th scope="col" class="n" { "low" } th scope="col" class="n" { "high" }
                        } }
                        tbody {
                            @for series in &plot.chart.series {
                                @for point in &series.points {
                                    tr {
                                        td { (series.name) @if !series.is_ours && !series.name.ends_with("(others)") { " (others)" } }
                                        td { (plot.chart.place_name(point)) }
                                        td class="n" { (figure(point.value)) }
                                        td class="n" { (figure(point.low)) }
                                        td class="n" { (figure(point.high)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
