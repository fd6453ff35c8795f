//! The paper's number, ours, and whether they agree.

use anyhow::Context as _;

use super::printed::PaperFigure;
use super::verdict::{Agreement, Cell, Origin, Theirs, Verdict};
use super::{Figure, HostCost, OurValue, Ours, Paper, PaperResult, Records};
use crate::experiment::SPREAD_PERCENT_MAX;
use crate::record::Record;
use crate::statistics::Summary;

/// One number of the paper beside ours.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    pub what: String,
    pub unit: String,
    pub paper: Option<f64>,
    /// The upper end, if the text gives a range.
    pub paper_most: Option<f64>,
    /// Words of the text, if it gives no number.
    pub words: Option<String>,
    /// Line of the paper's text.
    pub line: Option<usize>,
    pub ours: Option<f64>,
    /// Of the repetitions of our row, or of the ratio of two rows; `None` for a headline.
    pub spread_percent: Option<f64>,
    pub cell: Cell,
    /// The factor between the two up to which they agree, if it is more than the margin of all others.
    pub within: Option<f64>,
    /// Our record, if it is not that of the table's experiment.
    pub record: Option<String>,
}

impl Default for ComparedFigure {
    fn default() -> Self {
        Self {
            what: String::new(),
            unit: String::new(),
            paper: None,
            paper_most: None,
            words: None,
            line: None,
            ours: None,
            spread_percent: None,
            cell: Cell::NotHere,
            within: None,
            record: None,
        }
    }
}

impl ComparedFigure {
    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        let (paper, ours) = self.paper.zip(self.ours)?;
        (paper != 0.0 && self.words.is_none() && self.paper_most.is_none()).then(|| ours / paper)
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
            compare_figure(result, figure, records)
                .with_context(|| format!("{}, {}, {}", paper.name, result.id, figure.what))
        })
        .collect::<anyhow::Result<_>>()?;
    let verdict = if result.explains.is_some() { Verdict::Explains } else { Verdict::of(&figures) };
    Ok(Compared { verdict, figures })
}

fn compare_figure(result: &PaperResult, figure: &Figure, records: &Records) -> anyhow::Result<ComparedFigure> {
    let number = match our_figure(result, figure, records) {
        // What this machine could not measure has a reason.
        Err(_) if result.not_here.is_some() => None,
        number => number?,
    };
    let paper = figure.paper.as_ref().map(PaperFigure::value).transpose()?;
    let words = figure.paper.as_ref().and_then(PaperFigure::words);
    let cell = match (&number, &figure.paper, figure.agrees) {
        (None, _, _) => Cell::NotHere,
        (Some(number), Some(printed), Some(agreement)) => {
            let (value, most, last_digit) = (printed.value()?, printed.most()?, printed.last_digit()?);
            let theirs = Theirs { value, most, last_digit, is_in_words: words.is_some() };
            match number.cell(agreement, figure.origin.unwrap_or(result.origin), theirs) {
                Cell::Differs | Cell::Unsteady if figure.fewer_processors => Cell::FewerProcessors,
                cell => cell,
            }
        }
        (Some(_), _, _) => Cell::OursAlone,
    };
    Ok(ComparedFigure {
        what: figure.what.clone(),
        unit: figure.unit.clone(),
        paper,
        paper_most: figure.paper.as_ref().map(PaperFigure::most).transpose()?.flatten(),
        words: words.map(str::to_owned),
        line: figure.paper.as_ref().map(|printed| printed.printed.line),
        ours: number.as_ref().map(|number| number.value),
        spread_percent: number.and_then(|number| number.spread_percent),
        cell,
        within: figure.agrees.and_then(Agreement::wide_factor),
        record: figure.record.clone(),
    })
}

fn our_figure(result: &PaperResult, figure: &Figure, records: &Records) -> anyhow::Result<Option<Number>> {
    let Some(ours) = &figure.ours else { return Ok(None) };
    let experiment = result.experiment.as_deref().context("no experiment is named")?;
    let (records, name) = match &figure.record {
        Some(other) => (&records.elsewhere, other.as_str()),
        None => (&records.kept, experiment),
    };
    match records.get(name) {
        Some(record) => our_number(record, ours).map(Some),
        // A user's own records have no other machines beside them.
        None if figure.record.is_some() => Ok(None),
        None => Err(anyhow::anyhow!("there is no record of {name}")),
    }
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

    /// A time as a speed. Medians of both are the same repetition.
    fn inverse(&self) -> Self {
        Self::new(1.0 / self.value, self.samples.iter().map(|sample| 1.0 / sample).collect())
    }

    /// The same in another form, which spreads as this one does.
    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let Self { value, samples, spread_percent } = self;
        Self { value: change(value), samples: samples.into_iter().map(change).collect(), spread_percent }
    }

    fn cell(&self, agreement: Agreement, origin: Origin, theirs: Theirs) -> Cell {
        let holds = agreement.holds(self.value, theirs);
        let is_steady = self.spread_percent.is_none_or(|spread| spread.abs() <= SPREAD_PERCENT_MAX);
        let all_say_so = || self.samples.iter().all(|&sample| agreement.holds(sample, theirs) == holds);
        match holds {
            _ if !is_steady && !all_say_so() => Cell::Unsteady,
            true => agreement.cell(origin, self.value, theirs),
            false => Cell::Differs,
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
    if ours.inverse {
        number = number.inverse();
    }
    if ours.saved_percent {
        number = number.map(|ratio| 100.0 * (1.0 - ratio));
    }
    if ours.core_cycles {
        let mhz = core_mhz(record)?;
        number = number.map(|ns| ns * mhz / 1e3);
    }
    Ok(number.map(|number| number * ours.times))
}

/// The papers' cycles are those of the core. Records have times, and cycles of the time stamp counter, whose clock is
/// its own: 2.6 GHz where the core runs at 3.7. In a record without a host the two clocks count as one.
fn core_mhz(record: &Record) -> anyhow::Result<f64> {
    let core = record.host.as_ref().map(|host| host.core_mhz);
    core.or(record.machine.tsc_mhz).context("the record does not say how fast its processor ran")
}

fn in_core_cycles(record: &Record, is_tsc: bool, number: Number) -> anyhow::Result<Number> {
    let Some(tsc_mhz) = record.machine.tsc_mhz.filter(|_| is_tsc) else { return Ok(number) };
    let ratio = core_mhz(record)? / tsc_mhz;
    Ok(number.map(|cycles| cycles * ratio))
}

fn measured(record: &Record, value: &OurValue) -> anyhow::Result<Number> {
    match value {
        OurValue::Headline { headline } => {
            let number = record.headline.get(headline);
            let value = *number.with_context(|| format!("the record has no headline {headline}"))?;
            in_core_cycles(record, headline.ends_with("_cycles"), Number::new(value, vec![value]))
        }
        OurValue::Host { host: HostCost::LineNs } => {
            let line_ns = record.host.as_ref().and_then(|host| host.line_ns);
            let value = line_ns.context("the record does not say what a line of memory took")?;
            Ok(Number::new(value, vec![value]))
        }
        OurValue::Row { case, subject, metric } => {
            let row = record.rows.iter().find(|row| (&row.case, &row.subject, &row.metric) == (case, subject, metric));
            let row = row.with_context(|| format!("the record has no row {case}, {subject}, {metric}"))?;
            let value = row.value.as_ref().with_context(|| format!("{case}, {subject}, {metric} was refused"))?;
            let is_tsc = row.unit.starts_with("TSC cycles");
            in_core_cycles(record, is_tsc, Number::new(value.median, value.samples.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn cell(number: &Number, value: f64) -> Cell {
        number.cell(
            Agreement::AtLeast,
            Origin::Measured,
            Theirs { value, most: None, last_digit: 0.0, is_in_words: false },
        )
    }

    #[test]
    fn a_number_that_spreads_has_a_verdict_only_if_all_repetitions_say_the_same() {
        let number = |samples: &[f64]| Number::new(samples[1], samples.to_vec());
        for (samples, theirs, expected) in [
            ([0.91, 1.0, 1.1], 0.95, Cell::Agrees),
            ([0.8, 1.0, 1.1], 0.95, Cell::Unsteady),
            ([0.8, 1.0, 1.1], 0.5, Cell::Beyond),
            ([0.8, 1.0, 1.1], 2.0, Cell::Differs),
        ] {
            assert_eq!(cell(&number(&samples), theirs), expected, "{samples:?} {theirs}");
        }
        let ratio = number(&[2.0, 4.0, 8.0]).with(&number(&[1.0, 2.0, 4.0]), |one, other| one / other);
        assert_eq!((ratio.value, ratio.spread_percent), (2.0, Some(0.0)));
        let apart = number(&[2.0, 4.0, 8.0]).with(&Number::new(2.0, vec![1.0, 3.0]), |a, b| a / b);
        assert_eq!((apart.value, apart.spread_percent), (2.0, None));
        // A ratio near 1 is steady, although what it saves is near nothing.
        let saved = number(&[0.98, 1.0, 1.02]).map(|ratio| 100.0 * (1.0 - ratio));
        assert_eq!((cell(&saved, 4.0), saved.spread_percent.map(f64::round)), (Cell::Differs, Some(4.0)));
    }

    #[test]
    fn cycles_of_the_time_stamp_counter_are_shown_as_those_of_the_core() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("record/packet-costs.json");
        let record = Record::read(&kept).expect("a kept record");
        let core_mhz = record.host.as_ref().expect("its host").core_mhz;
        let ratio = core_mhz / record.machine.tsc_mhz.expect("its counter's clock");
        let mut counted = 0;
        for row in &record.rows {
            let Some(kept) = &row.value else { continue };
            let (case, subject, metric) = (row.case.clone(), row.subject.clone(), row.metric.clone());
            let shown = measured(&record, &OurValue::Row { case, subject, metric }).expect("a number").value;
            let is_tsc = row.unit == "TSC cycles per packet";
            counted += usize::from(is_tsc);
            let expected = if is_tsc { kept.median * ratio } else { kept.median };
            assert!((shown - expected).abs() <= 1e-9 * expected.abs(), "{row:?}: {shown}");
        }
        assert!(counted > 10 && counted < record.rows.len());
    }
}
