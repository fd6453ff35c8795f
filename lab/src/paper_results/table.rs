//! The comparison as text: one Markdown table of all papers, or one result for the terminal.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::verdict::{Cell, Verdict};
use super::{Compared, ComparedFigure, Paper, PaperResult, Records, compare};
use namewire_drawing::figure;

/// Follows the name of a record whose sources have changed since.
pub(super) const STALE: &str = " (stale)";
/// The table is between these two lines.
const BEGIN: &str = "<!-- papers: `make papers` writes what follows -->";
const END: &str = "<!-- papers end -->";

/// What [`cells`] gives, in its order.
pub const CELLS: [&str; 6] = ["number", "paper (line)", "ours", "ratio", "spread", "verdict"];

/// All results, one table for each paper. `is_stale` says whether the record of an experiment is.
///
/// # Errors
/// As for [`compare`].
pub fn markdown(papers: &[Paper], records: &Records, is_stale: &dyn Fn(&str) -> bool) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut all = Vec::new();
    for paper in papers {
        let _ = write!(
            out,
            "\n### {}\n\n| id | shows | what became of it | {} | record |\n| {}--- |\n",
            paper.name,
            CELLS.join(" | "),
            "--- | ".repeat(3 + CELLS.len())
        );
        for result in &paper.results {
            let compared = compare(paper, result, records)?;
            write_result(&mut out, result, &compared, records, is_stale);
            all.push(compared);
        }
    }
    Ok(format!("{}\n{out}\n", counted(&all)))
}

/// How many tables and figures have each verdict, and how many of their numbers.
pub fn counted(all: &[Compared]) -> String {
    let verdicts = |of: Verdict| all.iter().filter(|compared| compared.verdict == of).count();
    let numbers = || all.iter().flat_map(|compared| &compared.figures);
    let cells: Vec<String> = Cell::ALL
        .iter()
        .map(|cell| (cell, numbers().filter(|figure| figure.cell == *cell).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(cell, count)| format!("{count} “{}”", cell.text().replace('*', "")))
        .collect();
    format!(
        "Of {} tables and figures, {} are found again; in {} ours are beyond the paper's; {} agree with words of the text; \
         {} are equal by calculation; {} are generated so; in {} at least one number differs; {} spread too far for a \
         verdict; {} have no number in the paper's text beside ours; {} have no number of ours, for the reason given; {} \
         are drawings or examples. Their {} numbers: {}.",
        all.len(),
        verdicts(Verdict::FoundAgain),
        verdicts(Verdict::Beyond),
        verdicts(Verdict::InWords),
        verdicts(Verdict::Calculated),
        verdicts(Verdict::Generated),
        verdicts(Verdict::Differs),
        verdicts(Verdict::Unsteady),
        verdicts(Verdict::OursAlone),
        verdicts(Verdict::NotHere),
        verdicts(Verdict::Explains),
        numbers().count(),
        cells.join(", ")
    )
}

fn write_result(
    out: &mut String,
    result: &PaperResult,
    compared: &Compared,
    records: &Records,
    is_stale: &dyn Fn(&str) -> bool,
) {
    let verdict = verdict_text(result, compared);
    if compared.figures.is_empty() {
        let dashes = "– | ".repeat(CELLS.len());
        let _ = writeln!(out, "| {} | {} | {verdict} | {dashes}– |", result.id, result.shows);
    }
    let mut last_record = String::new();
    for (place, figure) in compared.figures.iter().enumerate() {
        let [id, shows, verdict] =
            if place == 0 { [&result.id, &result.shows, &verdict].map(String::as_str) } else { ["〃"; 3] };
        let numbers = cells(figure).join(" | ");
        let record = record_text(result, figure, records, is_stale);
        let same = place > 0 && record == last_record;
        let _ = writeln!(out, "| {id} | {shows} | {verdict} | {numbers} | {} |", if same { "〃" } else { &record });
        last_record = record;
    }
}

/// The cells of one number: those that [`CELLS`] names.
pub fn cells(compared: &ComparedFigure) -> [String; 6] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let unit = if compared.unit.is_empty() { String::new() } else { format!(", {}", compared.unit) };
    let paper = match &compared.words {
        Some(words) => Some(format!("“{words}”")),
        None => compared.paper.map(|paper| {
            let most = compared.paper_most.map_or_else(String::new, |most| format!(" to {}", figure(most)));
            figure(paper) + &most
        }),
    };
    let line = compared.line.map_or_else(String::new, |line| format!(" ({line})"));
    [
        format!("{}{unit}", compared.what),
        or_dash(paper.map(|paper| format!("{paper}{line}"))),
        or_dash(compared.ours.map(figure)),
        or_dash(compared.ratio().map(figure)),
        or_dash(compared.spread_percent.map(|percent| format!("{percent:.0} %"))),
        match compared.within {
            Some(factor) if compared.cell == Cell::Agrees => format!("agrees within {factor}"),
            _ => compared.cell.text().to_owned(),
        },
    ]
}

/// What became of it, in a sentence; `**` encloses what differs.
pub fn verdict_text(result: &PaperResult, compared: &Compared) -> String {
    let verdict = match compared.verdict {
        Verdict::FoundAgain => "found again",
        Verdict::Beyond => "ours beyond",
        Verdict::InWords => "agrees with words of the text",
        Verdict::Calculated => "equal by calculation",
        Verdict::Generated => "generated so",
        Verdict::Differs => "**differs**",
        Verdict::Unsteady => "our repetitions spread too far",
        Verdict::OursAlone => "ours alone: the text has no number beside ours",
        Verdict::NotHere => "**no number**",
        Verdict::Explains => "explains",
    };
    let reasons: Vec<&str> =
        [&result.difference, &result.not_here, &result.explains].into_iter().filter_map(Option::as_deref).collect();
    let counts = counts(compared);
    if reasons.is_empty() { format!("{verdict}{counts}") } else { format!("{verdict}{counts}: {}", reasons.join(". ")) }
}

/// ` (2 of 9; 4 agrees)`: how many numbers have the verdict, and what the others have; empty if all have the same.
fn counts(compared: &Compared) -> String {
    let count = |cell: &Cell| compared.figures.iter().filter(|figure| figure.cell == *cell).count();
    let all: Vec<(&Cell, usize)> =
        Cell::ALL.iter().map(|cell| (cell, count(cell))).filter(|(_, count)| *count > 0).collect();
    if all.len() < 2 {
        return String::new();
    }
    let texts: Vec<String> =
        all.iter().map(|(cell, count)| format!("{count} {}", cell.text().replace('*', ""))).collect();
    format!(" ({})", texts.join(", "))
}

fn record_text(
    result: &PaperResult,
    figure: &ComparedFigure,
    records: &Records,
    is_stale: &dyn Fn(&str) -> bool,
) -> String {
    let Some(experiment) = result.experiment.as_deref().filter(|_| figure.ours.is_some()) else {
        return "–".to_owned();
    };
    if let Some(other) = &figure.record {
        let scale = records.elsewhere.get(other).map_or("no record", |record| record.scale.as_str());
        return format!("[{other}]({other}.json), {scale}");
    }
    let scale = records.kept.get(experiment).map_or("no record", |record| record.scale.as_str());
    let stale = if is_stale(experiment) { STALE } else { "" };
    format!("[{experiment}](record/{experiment}.json), {scale}{stale}")
}

/// One result for the terminal: the paper's numbers, ours, and the command that measures them again.
///
/// # Errors
/// As for [`compare`].
pub fn one(paper: &Paper, result: &PaperResult, records: &Records) -> anyhow::Result<String> {
    let compared = compare(paper, result, records)?;
    let mut out = format!("{} of {} ({}): {}\n", result.id, paper.name, paper.title, result.shows);
    let mut lines = vec![CELLS.map(str::to_owned)];
    lines.extend(compared.figures.iter().map(cells).map(|cells| cells.map(|cell| cell.replace("**", ""))));
    if lines.len() > 1 {
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..CELLS.len()).map(width).collect();
        for line in &lines {
            let _ = write!(out, "  {:width$}", line[0], width = widths[0]);
            for (cell, width) in line.iter().zip(&widths).skip(1) {
                let _ = write!(out, "  {cell:>width$}");
            }
            out.push('\n');
        }
    }
    let _ = writeln!(out, "{}", verdict_text(result, &compared).replace("**", ""));
    let measured_by =
        result.experiment.as_ref().filter(|_| compared.figures.iter().any(|figure| figure.ours.is_some()));
    if let Some(record) = measured_by.and_then(|id| records.kept.get(id)) {
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
