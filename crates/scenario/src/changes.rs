//! The file of changes: what becomes of links, and when.
//!
//! CSV with the columns `time` (seconds, rising), `a` and `b`, and one or more of `up`, `delay`, `loss` and
//! `bandwidth`; an empty cell changes nothing. The file is read while the network runs, so that a day of a
//! constellation needs no memory.

use crate::bit_rate::BitRate;
use crate::topology::truth;
use anyhow::{Context as _, ensure};
use namewire_configuration::units::Span;
use serde::Deserialize;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A change of one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub at_ns: u64,
    pub a: String,
    pub b: String,
    pub up: Option<bool>,
    pub delay_ns: Option<u64>,
    pub loss: Option<f64>,
    pub bandwidth: Option<BitRate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    time: f64,
    a: String,
    b: String,
    #[serde(default)]
    up: Option<String>,
    #[serde(default)]
    delay: Option<Span>,
    #[serde(default)]
    loss: Option<f64>,
    #[serde(default)]
    bandwidth: Option<BitRate>,
}

/// Reads changes in order.
pub struct Changes {
    rows: csv::DeserializeRecordsIntoIter<BufReader<File>, Row>,
    file: PathBuf,
    last_ns: u64,
}

impl Changes {
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        let opened = File::open(file).with_context(|| file.display().to_string())?;
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.trim(csv::Trim::All).comment(Some(b'#')).from_reader(BufReader::new(opened));
        Ok(Changes { rows: reader.into_deserialize(), file: file.to_owned(), last_ns: 0 })
    }

    /// The next change, or `None` at the end.
    ///
    /// # Errors
    /// If the line is malformed or its time falls.
    pub fn next_change(&mut self) -> anyhow::Result<Option<Change>> {
        let line = self.rows.reader().position().line();
        self.read_change().with_context(|| format!("{}, line {line}", self.file.display()))
    }

    fn read_change(&mut self) -> anyhow::Result<Option<Change>> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        let Row { time, a, b, up, delay, loss, bandwidth } = row?;
        ensure!((0.0..1e9).contains(&time), "{time} is no time in seconds");
        let at_ns = (time * 1e9) as u64;
        ensure!(at_ns >= self.last_ns, "the time falls at {time} s");
        self.last_ns = at_ns;
        let up = up.filter(|cell| !cell.is_empty()).map(|cell| truth(&cell)).transpose()?;
        ensure!(loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "a loss is 0 to 1");
        let delay_ns = delay.map(|delay| u64::try_from(delay.0.as_nanos()).unwrap_or(u64::MAX));
        Ok(Some(Change { at_ns, a, b, up, delay_ns, loss, bandwidth }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(text: &str) -> anyhow::Result<Vec<Change>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("changes.csv");
        std::fs::write(&file, text)?;
        let (mut changes, mut all) = (Changes::open(&file)?, Vec::new());
        while let Some(change) = changes.next_change()? {
            all.push(change);
        }
        Ok(all)
    }

    #[test]
    fn empty_cells_change_nothing() -> anyhow::Result<()> {
        let all = changes("time,a,b,up,delay\n0.5,x,y,down,\n15,x,z,up,2.5ms\n")?;
        assert_eq!((all[0].at_ns, all[0].up, all[0].delay_ns), (500_000_000, Some(false), None));
        assert_eq!((all[1].b.as_str(), all[1].up, all[1].delay_ns), ("z", Some(true), Some(2_500_000)));
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (text, line) in [
            ("time,a,b,up\n2,x,y,up\n1,x,y,up\n", "line 3"),
            ("time,a,b,up\n2,x,y,soon\n", "line 2"),
            ("time,a,b,loss\n2,x,y,7\n", "line 2"),
            ("time,a,b,los\n2,x,y,0.1\n", "los"),
        ] {
            let error = format!("{:#}", changes(text).unwrap_err());
            assert!(error.contains(line), "{error}");
        }
    }
}
