//! Every table and figure of the five papers, with our result.
//!
//! Question answered: which results of the papers did we reproduce, which not, and why?
//!
//! Each file of `lab/papers/` lists the tables and figures of its paper under `results`, with a number for every cell
//! that the paper's text prints. A number says in which line of the text it stands ([`PaperFigure`]), which of our
//! measurements answers it ([`Ours`]: a headline or a row of a record, or a ratio of two), and when the two agree
//! ([`Agreement`]). Whether they agree is computed from the record ([`Cell`], [`Verdict`]). Only the reason for a
//! difference is written by hand, and a test asks for one wherever there is a difference.
//!
//! * `printed`: the paper's number, and whether the paper's text has it where we say.
//! * `records`: our records, of this machine and of others.
//! * `comparison`: the paper's number, ours, their ratio.
//! * `verdict`: what follows from them.
//! * `table`: all of them as one table for `lab/README.md`, or one for the terminal.

mod comparison;
mod printed;
mod records;
mod table;
mod verdict;

use serde::Deserialize;

use crate::papers;

pub use comparison::{Compared, ComparedFigure, compare};
pub use printed::{Checked, PaperFigure, check, texts_beside};
pub use records::Records;
pub use table::{CELLS, cells, counted, markdown, one, verdict_text, write_between_marks};
pub use verdict::{Agreement, Cell, Origin, Verdict};

/// One table or figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperResult {
    /// Paper and number, for example `yuan15-4.4` or `nametrie18-fig-9`.
    pub id: String,
    /// What it shows, in a few words.
    pub shows: String,
    /// Our experiment for it; none if there is nothing to measure, or nothing that could be measured here.
    pub experiment: Option<String>,
    /// Where our numbers come from, unless a number says otherwise.
    #[serde(default)]
    pub origin: Origin,
    /// Numbers to compare.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Why ours differs, if it does.
    pub difference: Option<String>,
    /// Why there is no number of ours, or why some are missing.
    pub not_here: Option<String>,
    /// The result is a drawing or an example: it has no measured number. Says where the code or a document has it.
    pub explains: Option<String>,
}

/// One number of a table or figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub what: String,
    pub unit: String,
    /// The paper's number; `None` if its text does not give it (a curve without values).
    pub paper: Option<PaperFigure>,
    /// `None` if nothing here measures it: the result's `not_here` says why.
    pub ours: Option<Ours>,
    pub agrees: Option<Agreement>,
    pub origin: Option<Origin>,
    /// The paper's number is a sum over more processors than ours.
    #[serde(default)]
    pub fewer_processors: bool,
    /// Another machine's record, `FOLDER/EXPERIMENT` beside the folder of kept records.
    pub record: Option<String>,
}

/// One measurement of ours.
#[derive(Clone, Debug, Deserialize)]
pub struct Ours {
    #[serde(flatten)]
    pub value: OurValue,
    /// Add this one.
    pub plus: Option<OurValue>,
    /// To the paper's unit.
    #[serde(default = "one_time")]
    pub times: f64,
    /// Ours is in nanoseconds: show cycles of the core.
    #[serde(default)]
    pub core_cycles: bool,
    /// Divide by this one.
    pub over: Option<OurValue>,
    /// Show 1 / value: a time as a speed.
    #[serde(default)]
    pub inverse: bool,
    /// Show 100 · (1 − value / over): what was saved, in percent.
    #[serde(default)]
    pub saved_percent: bool,
}

/// A headline or a row of the experiment's record, or what the machine cost when it was made.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OurValue {
    Headline { headline: String },
    Row { case: String, subject: String, metric: String },
    Host { host: HostCost },
}

/// A cost of the machine that each record begins with ([`crate::host::Host`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCost {
    /// A random line of memory, in nanoseconds.
    LineNs,
}

const fn one_time() -> f64 {
    1.0
}

/// A paper's name and its results, in the paper's order.
pub struct Paper {
    /// Short name, for example `Yuan15`.
    pub name: &'static str,
    pub title: String,
    /// File of its text, which is not in this repository.
    pub text_file: String,
    pub results: Vec<PaperResult>,
}

/// The five papers.
///
/// # Errors
/// If a data file is malformed (the tests read them all).
pub fn all() -> anyhow::Result<Vec<Paper>> {
    [
        ("Yuan15", papers::YUAN_15),
        ("Takemasa17", papers::TAKEMASA_17),
        ("Takemasa19", papers::TAKEMASA_19),
        ("TagNet16", papers::TAG_NET_16),
        ("NameTrie18", papers::NAME_TRIE_18),
    ]
    .into_iter()
    .map(|(name, text)| {
        let [title, text_file] = ["/title", "/text"].map(|place| papers::figures(text, place));
        Ok(Paper { name, title: title?, text_file: text_file?, results: papers::figures(text, "/results")? })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn kept_records() -> anyhow::Result<Records> {
        Records::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("record"))
    }

    #[test]
    fn every_result_has_a_number_or_a_reason() -> anyhow::Result<()> {
        let mut ids = BTreeSet::new();
        for result in all()?.into_iter().flat_map(|paper| paper.results) {
            let id = &result.id;
            assert!(ids.insert(id.clone()), "{id} is there twice");
            let without_numbers = result.not_here.is_some() || result.explains.is_some();
            assert!(!result.figures.is_empty() || without_numbers, "{id}: numbers or a reason");
            assert!(result.figures.is_empty() || result.explains.is_none(), "{id}: a drawing has no numbers");
            let measured = result.figures.iter().filter(|figure| figure.ours.is_some());
            assert_eq!(result.experiment.is_some(), measured.count() > 0, "{id}");
            for figure in &result.figures {
                let is_pair = figure.paper.is_some() && figure.ours.is_some();
                assert_eq!(is_pair, figure.agrees.is_some(), "{id}, {}", figure.what);
                assert!(figure.paper.is_some() || figure.ours.is_some(), "{id}, {}: a number", figure.what);
            }
        }
        Ok(())
    }

    /// Numbers that spread may have one, too: what their medians suggest.
    #[test]
    fn a_difference_has_a_reason_and_only_a_difference_has_one() -> anyhow::Result<()> {
        let records = kept_records()?;
        let mut faults = Vec::new();
        for paper in all()? {
            for result in &paper.results {
                let compared = compare(&paper, result, &records)?;
                let has = |cell: Cell| compared.figures.iter().any(|figure| figure.cell == cell);
                let id = &result.id;
                match result.difference {
                    None if has(Cell::Differs) => faults.push(format!("{id} differs, and says not why")),
                    Some(_) if !has(Cell::Differs) && !has(Cell::Unsteady) => {
                        faults.push(format!("{id}: no difference"))
                    }
                    _ => {}
                }
                let lacks_some = has(Cell::NotHere) || compared.verdict == Verdict::NotHere;
                if lacks_some != result.not_here.is_some() {
                    faults.push(format!("{id} lacks some numbers: {lacks_some}"));
                }
            }
        }
        assert_eq!(faults, [] as [String; 0]);
        Ok(())
    }

    /// What an entry points to is there: files and folders between backquotes.
    #[test]
    fn an_explanation_points_to_something() -> anyhow::Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for result in all()?.into_iter().flat_map(|paper| paper.results) {
            let texts = [result.explains, result.not_here, result.difference];
            for quoted in texts.iter().flatten().flat_map(|text| text.split('`').skip(1).step_by(2)) {
                if quoted.contains('/') {
                    let place =
                        if quoted.starts_with("record") { root.join("lab").join(quoted) } else { root.join(quoted) };
                    assert!(place.exists(), "{}: {quoted}", result.id);
                }
            }
        }
        Ok(())
    }

    /// Marks of stale records change with every commit: `namewire-lab records --check` compares those, at a release.
    #[test]
    fn the_table_of_the_readme_follows_from_the_records() -> anyhow::Result<()> {
        let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))?;
        let plain = |text: &str| text.replace(table::STALE, "");
        let made = write_between_marks(&readme, &markdown(&all()?, &kept_records()?, &|_| false)?)?;
        assert_eq!(plain(&made), plain(&readme), "`make papers` writes the table anew");
        Ok(())
    }
}
