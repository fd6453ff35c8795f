//! The comparison as text: one Markdown table of all papers, or one result for the terminal.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::comparison::{Compared, ComparedFigure, Records, Verdict, compare};
use super::{Paper, PaperResult};
use namewire_drawing::figure;

/// Follows the name of a record whose sources have changed since.
pub(super) const STALE: &str = " (stale)";
/// The table is between these two lines.
const BEGIN: &str = "<!-- papers: `make papers` writes what follows -->";
const END: &str = "<!-- papers end -->";

/// All results, one table for each paper. `is_stale` says whether the record of an experiment is.
///
/// # Errors
/// As for [`compare`].
pub fn markdown(papers: &[Paper], records: &Records, is_stale: &dyn Fn(&str) -> bool) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut counts = [0_usize; 5];
    for paper in papers {
        let _ = write!(
            out,
            "\n### {}\n\n| id | shows | what became of it | number | paper | ours | ratio | spread | record |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            paper.name
        );
        for result in &paper.results {
            let compared = compare(paper, result, records)?;
            counts[compared.verdict as usize] += 1;
            write_result(&mut out, result, &compared, records, is_stale);
        }
    }
    let [again, differs, alone, not_here, explains] = counts;
    Ok(format!(
        "Of {} tables and figures, {again} are found again; {differs} are found with a difference; {alone} have no number \
         in the paper's text beside ours; {not_here} have no number of ours, for the reason given; {explains} are \
         drawings or examples.\n{out}\n",
        counts.iter().sum::<usize>()
    ))
}

fn write_result(
    out: &mut String,
    result: &PaperResult,
    compared: &Compared,
    records: &Records,
    is_stale: &dyn Fn(&str) -> bool,
) {
    let verdict = verdict_text(result, compared);
    let measured_by = result.experiment.as_deref().filter(|_| !compared.figures.is_empty());
    let record = measured_by.map_or_else(String::new, |id| record_text(id, records, is_stale));
    if compared.figures.is_empty() {
        let _ = writeln!(out, "| {} | {} | {verdict} | – | – | – | – | – | – |", result.id, result.shows);
    }
    for (place, figure) in compared.figures.iter().enumerate() {
        let [id, shows, verdict, record] =
            if place == 0 { [&result.id, &result.shows, &verdict, &record].map(String::as_str) } else { ["〃"; 4] };
        let numbers = cells(figure).join(" | ");
        let _ = writeln!(out, "| {id} | {shows} | {verdict} | {numbers} | {record} |");
    }
}

/// Number, paper, ours, ratio, spread.
pub fn cells(compared: &ComparedFigure) -> [String; 5] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let unit = if compared.unit.is_empty() { String::new() } else { format!(", {}", compared.unit) };
    [
        format!("{}{unit}", compared.what),
        or_dash(compared.paper.map(figure)),
        figure(compared.ours),
        or_dash(compared.ratio().map(figure)),
        or_dash(compared.spread_percent.map(|percent| format!("{percent:.0} %"))),
    ]
}

/// What became of it, in a sentence; `**` encloses what differs.
pub fn verdict_text(result: &PaperResult, compared: &Compared) -> String {
    let reason = |text: &Option<String>| text.clone().unwrap_or_else(|| "the reason is not known".to_owned());
    match compared.verdict {
        Verdict::FoundAgain => "found again".to_owned(),
        Verdict::Differs => format!("**differs**: {}", reason(&result.difference)),
        Verdict::OursAlone => "ours alone: the text gives no number".to_owned(),
        Verdict::NotHere => format!("**no number**: {}", reason(&result.not_here)),
        Verdict::Explains => format!("explains: {}", reason(&result.explains)),
    }
}

fn record_text(id: &str, records: &Records, is_stale: &dyn Fn(&str) -> bool) -> String {
    let scale = records.0.get(id).map_or("no record", |record| record.scale.as_str());
    format!("[{id}](record/{id}.json), {scale}{}", if is_stale(id) { STALE } else { "" })
}

/// One result for the terminal: the paper's numbers, ours, and the command that measures them again.
///
/// # Errors
/// As for [`compare`].
pub fn one(paper: &Paper, result: &PaperResult, records: &Records) -> anyhow::Result<String> {
    let compared = compare(paper, result, records)?;
    let mut out = format!("{} of {} ({}): {}\n", result.id, paper.name, paper.title, result.shows);
    if !compared.figures.is_empty() {
        let lines: Vec<[String; 5]> = compared.figures.iter().map(cells).collect();
        let width = |text: &str| text.chars().count();
        let what_width = lines.iter().map(|line| width(&line[0])).max().unwrap_or(0);
        let _ = writeln!(out, "  {:what_width$} {:>12} {:>12} {:>8} {:>7}", "", "paper", "ours", "ratio", "spread");
        for [what, theirs, ours, ratio, spread] in lines {
            let _ = writeln!(out, "  {what:what_width$} {theirs:>12} {ours:>12} {ratio:>8} {spread:>7}");
        }
    }
    let _ = writeln!(out, "{}", verdict_text(result, &compared).replace("**", ""));
    let measured_by = result.experiment.as_ref().filter(|_| !compared.figures.is_empty());
    if let Some(record) = measured_by.and_then(|id| records.0.get(id)) {
        let _ =
            writeln!(out, "measured by {} ({:.0} s, {})", record.command, record.duration_s, record.machine.processor);
    }
    Ok(out)
}

/// `document` with `table` between its two marks.
///
/// # Errors
/// If the marks are not there.
pub fn write_between_marks(document: &str, table: &str) -> anyhow::Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("the document lacks the mark that begins the table")?;
    let (old, after) = rest.split_once(END).context("the document lacks the mark that ends the table")?;
    ensure!(!old.contains(BEGIN), "the mark that begins the table is there twice");
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_replaces_what_is_between_the_marks() -> anyhow::Result<()> {
        let document = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let once = write_between_marks(&document, "new")?;
        assert_eq!(once, format!("before\n{BEGIN}\n\nnew\n{END}\nafter\n"));
        assert_eq!(write_between_marks(&once, "new")?, once);
        assert!(write_between_marks("no marks", "new").is_err());
        Ok(())
    }
}
