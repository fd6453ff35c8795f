//! The records that the tables quote.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use crate::record::Record;

/// The records of a folder, and those of other machines in folders beside it.
#[derive(Debug, Default)]
pub struct Records {
    /// By experiment.
    pub kept: BTreeMap<String, Record>,
    /// By `FOLDER/EXPERIMENT`; folders are named `record-…`.
    pub elsewhere: BTreeMap<String, Record>,
}

impl Records {
    /// Reads every record of `dir`, and of the folders `record-…` beside it.
    ///
    /// # Errors
    /// If a folder cannot be read, or a file in it is not a record.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let mut records = Self { kept: read_folder(dir)?, ..Self::default() };
        let Some(parent) = dir.parent() else { return Ok(records) };
        for folder in read_sorted(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })? {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("record-") && folder.is_dir() {
                let others = read_folder(&folder)?.into_iter();
                records.elsewhere.extend(others.map(|(experiment, record)| (format!("{name}/{experiment}"), record)));
            }
        }
        Ok(records)
    }
}

fn read_folder(dir: &Path) -> anyhow::Result<BTreeMap<String, Record>> {
    let mut records = BTreeMap::new();
    for path in read_sorted(dir)? {
        if path.extension().is_some_and(|extension| extension == "json") {
            let record = Record::read(&path)?;
            records.insert(record.experiment.clone(), record);
        }
    }
    Ok(records)
}

fn read_sorted(dir: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
