//! Measurements of a computer's power, as a CSV file.
//!
//! ```text
//! part,cores,ghz,load,per_s,watts
//! # all cores idle
//! idle,,,,,34.2
//! # one core works half its time, at 3.1 GHz; at least three loads for each frequency
//! cpu,1,3.1,0.5,,41.7
//! # one core works all its time, a second one half
//! cpu,2,3.1,0.5,,47.9
//! # bytes of memory read in a second; at least two rates, for example 0 too
//! memory,,,,2e9,46.1
//! # packets forwarded in a second; the same
//! nic,,,,800000,45.9
//! ```
//!
//! Watts are of the whole computer, or in all rows of its processor alone (then the chassis is that of the processor).
//! `memory` and `nic` need at least two rates each; one of them may be 0.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

/// What a row measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Idle,
    Cpu,
    Memory,
    Nic,
}

impl Part {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Nic => "nic",
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub part: Part,
    /// Of `cpu`: cores that work; all but the last work all the time.
    pub cores: Option<usize>,
    pub ghz: Option<f64>,
    /// Of `cpu`: the share of its time for which the last core works.
    pub load: Option<f64>,
    /// Of `memory`: bytes; of `nic`: packets.
    pub per_s: Option<f64>,
    pub watts: f64,
}

/// All measurements of a computer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements(pub Vec<Row>);

/// Most rows of a file.
const ROWS_MAX: usize = 1_000_000;
/// Most cores of a row.
const CORES_MAX: usize = 1_024;

impl Measurements {
    /// # Errors
    /// If the file cannot be read, or a row is not a measurement: with its line.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let opened = std::fs::File::open(file).with_context(|| file.display().to_string())?;
        Self::parse(opened).with_context(|| file.display().to_string())
    }

    /// # Errors
    /// If a row is not a measurement: with its line.
    pub fn parse(text: impl Read) -> anyhow::Result<Self> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text);
        let mut rows = Vec::new();
        for row in reader.deserialize() {
            let row: Row = row?;
            ensure!(rows.len() < ROWS_MAX, "more than {ROWS_MAX} rows");
            row.check().with_context(|| format!("measurement {}", rows.len() + 1))?;
            rows.push(row);
        }
        Ok(Self(rows))
    }

    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, to: impl std::io::Write) -> anyhow::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        self.0.iter().try_for_each(|row| writer.serialize(row))?;
        Ok(writer.flush()?)
    }

    pub fn watts_of(&self, part: Part) -> Vec<f64> {
        self.0.iter().filter(|row| row.part == part).map(|row| row.watts).collect()
    }

    /// Frequencies of the rows in which so many cores work, slowest first.
    pub fn frequencies(&self, cores: usize) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.0.iter().filter(|row| row.cores == Some(cores)).filter_map(|row| row.ghz).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// Share of work and watts.
    pub fn cpu(&self, cores: usize, ghz: f64) -> Vec<(f64, f64)> {
        let rows = self.0.iter().filter(|row| row.cores == Some(cores) && row.ghz == Some(ghz));
        rows.filter_map(|row| Some((row.load?, row.watts))).collect()
    }

    /// Rate and watts.
    pub fn rates(&self, part: Part) -> Vec<(f64, f64)> {
        let rows = self.0.iter().filter(|row| row.part == part);
        rows.filter_map(|row| Some((row.per_s?, row.watts))).collect()
    }
}

impl Row {
    /// # Errors
    /// If something is missing, or no such number.
    fn check(&self) -> anyhow::Result<()> {
        let is_number = |value: f64| value.is_finite() && value >= 0.0;
        ensure!(is_number(self.watts), "watts of {}", self.watts);
        match self.part {
            Part::Idle => {}
            Part::Cpu => {
                let (cores, ghz, load) = (self.cores.unwrap_or(0), self.ghz.unwrap_or(0.0), self.load.unwrap_or(-1.0));
                ensure!((1..=CORES_MAX).contains(&cores), "`cores` is 1 to {CORES_MAX}");
                ensure!(ghz.is_finite() && ghz > 0.0, "`ghz` is a frequency");
                ensure!((0.0..=1.0).contains(&load), "`load` is 0 to 1");
            }
            Part::Memory | Part::Nic => ensure!(self.per_s.is_some_and(is_number), "`per_s` is a rate"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "part,cores,ghz,load,per_s,watts\n# a comment\nidle,,,,,34.2\ncpu,1,3.1,0.5,,41.7\ncpu,1,1.6,1,,40\n\
                        nic,,,,8e5,45.9\n";

    #[test]
    fn rows_are_read_and_written() -> anyhow::Result<()> {
        let measured = Measurements::parse(TEXT.as_bytes())?;
        assert_eq!(measured.frequencies(1), [1.6, 3.1]);
        assert_eq!(measured.cpu(1, 3.1), [(0.5, 41.7)]);
        assert_eq!(measured.rates(Part::Nic), [(8e5, 45.9)]);
        assert_eq!(measured.watts_of(Part::Idle), [34.2]);
        let mut written = Vec::new();
        measured.write(&mut written)?;
        assert_eq!(Measurements::parse(written.as_slice())?, measured);
        Ok(())
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        for (row, reason) in [
            ("cpu,0,3.1,0.5,,1", "`cores`"),
            ("cpu,1,,0.5,,1", "`ghz`"),
            ("cpu,1,3.1,1.5,,1", "`load`"),
            ("nic,,,,,1", "`per_s`"),
            ("idle,,,,,-1", "watts"),
            ("disk,,,,,1", "unknown variant"),
            ("idle,,,,,NaN", "watts"),
        ] {
            let text = format!("part,cores,ghz,load,per_s,watts\nidle,,,,,1\n{row}\n");
            let error = format!("{:#}", Measurements::parse(text.as_bytes()).unwrap_err());
            assert!(
                error.contains(reason) && (error.contains("measurement 2") || error.contains("line: 3")),
                "{error}"
            );
        }
    }
}
