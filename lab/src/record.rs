//! The record of one experiment: its results, the machine and the command.
//!
//! Question answered: can others repeat this and compare their results? The file `DIR/ID.json` is written under another
//! name and then renamed, so that no reader sees half a file, and no interrupt leaves one.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::machine::Machine;
use crate::statistics::{Interval, Summary};

/// Everything one run of one experiment leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Experiment id, also the file's name.
    pub experiment: String,
    /// The question it answers.
    pub question: String,
    /// Scale: `smoke`, `quick` or `full`.
    pub scale: String,
    /// Where it was taken.
    pub machine: Machine,
    /// What that machine cost at the start; `None` in older records.
    #[serde(default)]
    pub host: Option<Host>,
    /// State of the source.
    pub commit: String,
    /// The command line that repeats it.
    pub command: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Start, in seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took.
    pub duration_s: f64,
    /// The most memory that this program held, without routers that it started; `None` in older records.
    #[serde(default)]
    pub memory_peak_mib: Option<u64>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// The numbers that matter, by name.
    pub headline: BTreeMap<String, f64>,
    /// The 95 % intervals of those that are medians of repetitions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
    /// What a reader must know to read the rows rightly.
    pub notes: Vec<String>,
}

/// One quantity of one subject in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was done, e.g. `unix-100`.
    pub case: String,
    /// What was measured, e.g. `namewire`.
    pub subject: String,
    /// The measured quantity, e.g. `exchanges`.
    pub metric: String,
    /// Unit of the value, e.g. `per s`.
    pub unit: String,
    /// Summary of the repetitions; `None` if refused.
    pub value: Option<Summary>,
    /// Why there is no value.
    pub refused: Option<String>,
    /// What is wrong with, or special about, this row.
    pub remark: Option<String>,
}

impl Record {
    /// Writes `dir/ID.json` whole or not at all and returns its path.
    ///
    /// # Errors
    /// If the directory cannot be made or written to.
    pub fn write(&self, dir: &Path) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let path = dir.join(format!("{}.json", self.experiment));
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_whole(&path, &text)?;
        Ok(path)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// If the file cannot be read or is not a record.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a record of the lab", path.display()))
    }
}

/// Writes `bytes` to `path`: a reader sees the whole new file or the file as it was before.
///
/// # Errors
/// If the file cannot be written or renamed; then nothing is left behind.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> anyhow::Result<()> {
        // Removed on drop unless it was renamed.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        // A temporary file has mode 0600; everyone may read a record.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_record_survives_the_file_and_nothing_else_is_left() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let record = Record {
            experiment: "example".to_owned(),
            question: "does it survive?".to_owned(),
            scale: "smoke".to_owned(),
            machine: Machine::describe(&Clock::calibrate()),
            host: Some(Host { line_ns: Some(95.5), ..Host::default() }),
            commit: "unknown".to_owned(),
            command: "namewire-lab run example".to_owned(),
            seed: 1,
            started_unix_s: 2,
            duration_s: 0.5,
            memory_peak_mib: Some(3),
            rows: vec![Row {
                case: "unix".to_owned(),
                subject: "namewire".to_owned(),
                metric: "exchanges".to_owned(),
                unit: "per s".to_owned(),
                value: Summary::of(&[1.0, 2.0]),
                refused: None,
                remark: None,
            }],
            headline: BTreeMap::from([("exchanges".to_owned(), 1.5)]),
            intervals: BTreeMap::from([("exchanges".to_owned(), [1.25, 1.75])]),
            notes: Vec::new(),
        };
        let path = record.write(&dir.path().join("deep/er"))?;
        let path_again = record.write(&dir.path().join("deep/er"))?;
        assert_eq!(path, path_again);
        assert_eq!(Record::read(&path)?, record);
        let files: Vec<_> = std::fs::read_dir(dir.path().join("deep/er"))?.collect();
        assert_eq!(files.len(), 1);
        Ok(())
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_nothing_behind() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let target = dir.path().join("taken.json");
        std::fs::create_dir(&target)?;
        assert!(write_whole(&target, b"{}").is_err());
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
        Ok(())
    }
}
