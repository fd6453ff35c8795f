//! The paper's number, ours, and whether they agree.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use super::{Agreement, Figure, OurValue, Ours, Paper, PaperFigure, PaperResult};
use crate::experiment::SPREAD_PERCENT_MAX;
use crate::papers;
use crate::peers;
use crate::record::Record;
use crate::statistics::Summary;

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
    /// Of the repetitions of our row, or of the ratio of two rows; `None` for a headline.
    pub spread_percent: Option<f64>,
    /// `None` if the paper gives no number, or if our repetitions spread over [`SPREAD_PERCENT_MAX`] and some of them
    /// agree.
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
        .collect::<anyhow::Result<_>>()
        // What this machine could not measure has a reason.
        .or_else(|error| if result.not_here.is_some() { Ok(Vec::new()) } else { Err(error) })?;
    let verdict = if result.explains.is_some() {
        Verdict::Explains
    } else if figures.is_empty() {
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
    let number = our_number(record, &figure.ours)?;
    let theirs = figure.paper.as_ref().map(|place| paper_number(paper.text, place)).transpose()?;
    let agrees = theirs.zip(figure.agrees).and_then(|(theirs, agreement)| number.agrees(agreement, theirs));
    Ok(ComparedFigure {
        what: figure.what.clone(),
        unit: figure.unit.clone(),
        paper: theirs,
        ours: number.value,
        spread_percent: number.spread_percent,
        agrees,
    })
}

/// A number of ours.
struct Number {
    value: f64,
    /// Its repetitions; of a headline, the number alone.
    samples: Vec<f64>,
    /// Of the repetitions; of what was saved, that of the ratio that was left, because a saving may be near nothing.
    spread_percent: Option<f64>,
}

impl Number {
    fn new(value: f64, samples: Vec<f64>) -> Self {
        let summary = Summary::of(&samples).filter(|summary| summary.samples.len() > 1);
        Self { value, spread_percent: summary.map(|summary| summary.spread_percent), samples }
    }

    /// Repetition by repetition, if both have as many; one repetition goes with each of the other's.
    fn with(&self, other: &Self, both: impl Fn(f64, f64) -> f64) -> Self {
        let value = both(self.value, other.value);
        let samples = match (&self.samples[..], &other.samples[..]) {
            (ours, [one]) => ours.iter().map(|&sample| both(sample, *one)).collect(),
            ([one], others) => others.iter().map(|&sample| both(*one, sample)).collect(),
            (ours, others) if ours.len() == others.len() => {
                ours.iter().zip(others).map(|(&one, &other)| both(one, other)).collect()
            }
            _ => vec![value],
        };
        Self::new(value, samples)
    }

    /// The same in another form, which spreads as this one does.
    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let Self { value, samples, spread_percent } = self;
        Self { value: change(value), samples: samples.into_iter().map(change).collect(), spread_percent }
    }

    fn agrees(&self, agreement: Agreement, theirs: f64) -> Option<bool> {
        let holds = agreement.holds(self.value, theirs);
        let is_steady = self.spread_percent.is_none_or(|spread| spread.abs() <= SPREAD_PERCENT_MAX);
        let all_say_so = || self.samples.iter().all(|&sample| agreement.holds(sample, theirs) == holds);
        (is_steady || all_say_so()).then_some(holds)
    }
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

fn our_number(record: &Record, ours: &Ours) -> anyhow::Result<Number> {
    let mut number = measured(record, &ours.value)?;
    if let Some(other) = &ours.plus {
        number = number.with(&measured(record, other)?, |one, other| one + other);
    }
    if let Some(divisor) = &ours.over {
        number = number.with(&measured(record, divisor)?, |one, other| one / other);
    }
    if ours.saved_percent {
        number = number.map(|ratio| 100.0 * (1.0 - ratio));
    }
    Ok(number.map(|number| number * ours.times))
}

fn measured(record: &Record, value: &OurValue) -> anyhow::Result<Number> {
    match value {
        OurValue::Headline { headline } => {
            let number = record.headline.get(headline);
            let value = *number.with_context(|| format!("the record has no headline {headline}"))?;
            Ok(Number::new(value, vec![value]))
        }
        OurValue::Row { case, subject, metric } => {
            let row = record.rows.iter().find(|row| (&row.case, &row.subject, &row.metric) == (case, subject, metric));
            let row = row.with_context(|| format!("the record has no row {case}, {subject}, {metric}"))?;
            let value = row.value.as_ref().with_context(|| format!("{case}, {subject}, {metric} was refused"))?;
            Ok(Number::new(value.median, value.samples.clone()))
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

    #[test]
    fn a_number_that_spreads_has_a_verdict_only_if_all_repetitions_say_the_same() {
        let number = |samples: &[f64]| Number::new(samples[1], samples.to_vec());
        for (samples, theirs, expected) in [
            ([0.91, 1.0, 1.1], 0.95, Some(true)),
            ([0.8, 1.0, 1.1], 0.95, None),
            ([0.8, 1.0, 1.1], 0.5, Some(true)),
            ([0.8, 1.0, 1.1], 2.0, Some(false)),
        ] {
            assert_eq!(number(&samples).agrees(Agreement::AtLeast, theirs), expected, "{samples:?} {theirs}");
        }
        let ratio = number(&[2.0, 4.0, 8.0]).with(&number(&[1.0, 2.0, 4.0]), |one, other| one / other);
        assert_eq!((ratio.value, ratio.spread_percent), (2.0, Some(0.0)));
        let apart = number(&[2.0, 4.0, 8.0]).with(&Number::new(2.0, vec![1.0, 3.0]), |a, b| a / b);
        assert_eq!((apart.value, apart.spread_percent), (2.0, None));
        // A ratio near 1 is steady, although what it saves is near nothing.
        let saved = number(&[0.98, 1.0, 1.02]).map(|ratio| 100.0 * (1.0 - ratio));
        assert_eq!(
            (saved.agrees(Agreement::AtLeast, 4.0), saved.spread_percent.map(f64::round)),
            (Some(false), Some(4.0))
        );
    }
}
