//! The paper's number, ours, and whether they agree.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use super::{Agreement, Figure, OurValue, Ours, Paper, PaperFigure, PaperResult};
use crate::papers;
use crate::peers;
use crate::record::Record;

/// The records of a folder, by experiment.
#[derive(Debug, Default)]
pub struct Records(pub BTreeMap<String, Record>);

impl Records {
    /// Reads every record of `dir`.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file in it is not a record.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let mut records = BTreeMap::new();
        for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let record = Record::read(&path)?;
                records.insert(record.experiment.clone(), record);
            }
        }
        Ok(Self(records))
    }
}

/// What became of a table or figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All numbers agree.
    FoundAgain,
    /// At least one does not agree.
    Differs,
    /// The paper's text gives no number: ours is shown alone.
    OursAlone,
    /// There is no number of ours.
    NotHere,
    /// A drawing or an example.
    Explains,
}

/// One number of the paper beside ours.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    pub what: String,
    pub unit: String,
    pub paper: Option<f64>,
    pub ours: f64,
    /// Of the repetitions of our row; `None` for a headline, and for a ratio.
    pub spread_percent: Option<f64>,
    /// `None` if the paper gives no number.
    pub agrees: Option<bool>,
}

impl ComparedFigure {
    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.paper.filter(|paper| *paper != 0.0).map(|paper| self.ours / paper)
    }
}

/// A table or figure, compared.
#[derive(Clone, Debug)]
pub struct Compared {
    pub verdict: Verdict,
    pub figures: Vec<ComparedFigure>,
}

/// Sets the numbers of `result` beside ours.
///
/// # Errors
/// If a record lacks a number that the result asks for, or the paper's file does.
pub fn compare(paper: &Paper, result: &PaperResult, records: &Records) -> anyhow::Result<Compared> {
    let figures: Vec<ComparedFigure> = result
        .figures
        .iter()
        .map(|figure| {
            compare_figure(paper, result, figure, records).with_context(|| format!("{}, {}", result.id, figure.what))
        })
        .collect::<anyhow::Result<_>>()?;
    let verdict = if result.explains.is_some() {
        Verdict::Explains
    } else if result.not_here.is_some() {
        Verdict::NotHere
    } else if figures.iter().any(|figure| figure.agrees == Some(false)) {
        Verdict::Differs
    } else if figures.iter().any(|figure| figure.agrees == Some(true)) {
        Verdict::FoundAgain
    } else {
        Verdict::OursAlone
    };
    Ok(Compared { verdict, figures })
}

fn compare_figure(
    paper: &Paper,
    result: &PaperResult,
    figure: &Figure,
    records: &Records,
) -> anyhow::Result<ComparedFigure> {
    let experiment = result.experiment.as_deref().context("no experiment is named")?;
    let record = records.0.get(experiment).with_context(|| format!("there is no record of {experiment}"))?;
    let (ours, spread_percent) = our_number(record, &figure.ours)?;
    let theirs = figure.paper.as_ref().map(|place| paper_number(paper.text, place)).transpose()?;
    let agrees = theirs.zip(figure.agrees).map(|(theirs, agreement)| agreement.holds(ours, theirs));
    Ok(ComparedFigure {
        what: figure.what.clone(),
        unit: figure.unit.clone(),
        paper: theirs,
        ours,
        spread_percent,
        agrees,
    })
}

impl Agreement {
    fn holds(self, ours: f64, theirs: f64) -> bool {
        match self {
            // Two zeros agree, too.
            Self::Within(factor) => ours <= theirs * factor && theirs <= ours * factor,
            Self::AtLeast => ours >= theirs,
            Self::AtMost => ours <= theirs,
        }
    }
}

fn paper_number(text: &str, place: &PaperFigure) -> anyhow::Result<f64> {
    match place {
        PaperFigure::Number(number) => Ok(*number),
        PaperFigure::Place(pointer) => papers::figures(text, pointer),
        PaperFigure::Beside { case, metric, subject } => {
            let beside: Vec<peers::Peers> = papers::figures(text, "/beside_ours")?;
            beside
                .iter()
                .flat_map(|peers| &peers.figures)
                .find(|figure| (&figure.case, &figure.metric) == (case, metric) && figure.values.contains_key(subject))
                .and_then(|figure| figure.values.get(subject).copied())
                .with_context(|| format!("the paper has no {case}, {metric}, {subject}"))
        }
    }
}

/// The number and, if it is one row's, the spread of its repetitions in percent.
fn our_number(record: &Record, ours: &Ours) -> anyhow::Result<(f64, Option<f64>)> {
    let (mut value, mut spread_percent) = measured(record, &ours.value)?;
    if let Some(other) = &ours.plus {
        value += measured(record, other)?.0;
        spread_percent = None;
    }
    let Some(divisor) = &ours.over else { return Ok((value * ours.times, spread_percent)) };
    let ratio = value / measured(record, divisor)?.0;
    let ratio = if ours.saved_percent { 100.0 * (1.0 - ratio) } else { ratio };
    Ok((ratio * ours.times, None))
}

fn measured(record: &Record, value: &OurValue) -> anyhow::Result<(f64, Option<f64>)> {
    match value {
        OurValue::Headline { headline } => {
            let number = record.headline.get(headline);
            Ok((*number.with_context(|| format!("the record has no headline {headline}"))?, None))
        }
        OurValue::Row { case, subject, metric } => {
            let row = record.rows.iter().find(|row| (&row.case, &row.subject, &row.metric) == (case, subject, metric));
            let row = row.with_context(|| format!("the record has no row {case}, {subject}, {metric}"))?;
            let value = row.value.as_ref().with_context(|| format!("{case}, {subject}, {metric} was refused"))?;
            Ok((value.median, (value.samples.len() > 1).then_some(value.spread_percent)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_within_a_factor_or_on_one_side() {
        for (agreement, ours, theirs, expected) in [
            (Agreement::Within(1.1), 1.09, 1.0, true),
            (Agreement::Within(1.1), 1.0, 1.09, true),
            (Agreement::Within(1.1), 1.11, 1.0, false),
            (Agreement::Within(1.1), 0.0, 0.0, true),
            (Agreement::Within(1.1), 0.0, 1.0, false),
            (Agreement::AtLeast, 2.0, 1.0, true),
            (Agreement::AtLeast, 0.9, 1.0, false),
            (Agreement::AtMost, 2.0, 1.0, false),
            (Agreement::AtMost, 1.0, 1.0, true),
        ] {
            assert_eq!(agreement.holds(ours, theirs), expected, "{agreement:?} {ours} {theirs}");
        }
    }
}
