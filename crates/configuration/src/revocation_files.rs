//! Revocation records in files and directories that `trust.revocations` names.
//!
//! They are looked at again every [`LOOK_INTERVAL`], and read when size or time of a file has changed. A file may hold
//! several records. A file that cannot be read leaves the records that were there before: a slip must not make a
//! revoked key count again. Take a path out of the settings, or a file out of its directory, to undo a revocation.
//!
//! Limits: [`MAX_FILE_BYTES`] per file, [`MAX_FILES`] per directory, and the records that
//! [`namewire_security::trust::revocation`] keeps.

use crate::input_file;
use namewire_security::trust::{
    RevocationRecord,
    revocation::{MAX_IN_FILES, records_in},
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How often files are looked at.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(3);
/// Longest file.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Most files read in a directory.
const MAX_FILES: usize = 1024;
/// A file that changed so recently may change again without another time, and is read again.
const TIME_RESOLUTION: Duration = Duration::from_secs(2);

/// A file, by what changes with its content: path, inode, size, time.
type Trace = (PathBuf, u64, u64, SystemTime);

/// The records of a path, and whether they were read without an error.
pub type RecordsOfPath = (PathBuf, Vec<RevocationRecord>);

/// A file or directory with records.
struct Source {
    path: PathBuf,
    /// The files as they were read; `None`: read them again.
    read: Option<Vec<Trace>>,
    records: Vec<RevocationRecord>,
    /// Why a record could not be read.
    problem: Option<String>,
}

impl Source {
    fn new(path: PathBuf) -> Self {
        let mut source = Source { path, read: None, records: Vec::new(), problem: None };
        source.look();
        source
    }

    /// Reads the files if they have changed. True if records or problem are others now.
    fn look(&mut self) -> bool {
        let traces = match traces(&self.path) {
            Ok(traces) if self.read.as_ref() == Some(&traces) => return false,
            Ok(traces) => traces,
            Err(error) => {
                self.read = None;
                let problem = Some(format!("revocations {}: {error}", self.path.display()));
                return std::mem::replace(&mut self.problem, problem.clone()) != problem;
            }
        };
        let (mut records, mut problem) = (Vec::new(), None);
        for (path, ..) in &traces {
            match read_records(path) {
                Ok(of_file) => records.extend(of_file),
                Err(error) => problem = Some(format!("revocations {}: {error}", path.display())),
            }
        }
        records.truncate(MAX_IN_FILES);
        if problem.is_some() {
            // What was said before by a file that is now unreadable still holds.
            records.extend(self.records.iter().filter(|record| !records.contains(record)).cloned().collect::<Vec<_>>());
            records.truncate(MAX_IN_FILES);
        }
        let now = SystemTime::now();
        let is_settled = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age > TIME_RESOLUTION);
        self.read = traces.iter().all(|(.., time)| is_settled(*time)).then_some(traces);
        let is_other = (&records, &problem) != (&self.records, &self.problem);
        (self.records, self.problem) = (records, problem);
        is_other
    }
}

/// The files of a path: itself, or those in a directory.
fn traces(path: &Path) -> io::Result<Vec<Trace>> {
    let trace = |path: PathBuf| {
        let metadata = fs::metadata(&path)?;
        Ok::<_, io::Error>((metadata.is_file(), (path, metadata.ino(), metadata.len(), metadata.modified()?)))
    };
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![trace(path.to_owned())?.1]);
    }
    let mut traces = Vec::new();
    for entry in path.read_dir()?.take(MAX_FILES) {
        // A file may go meanwhile, and a pipe or a directory beside the records is not an error.
        traces.extend(trace(entry?.path()).ok().and_then(|(is_file, trace)| is_file.then_some(trace)));
    }
    traces.sort();
    Ok(traces)
}

fn read_records(path: &Path) -> Result<Vec<RevocationRecord>, String> {
    let bytes = input_file::read(path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    records_in(bytes).map_err(|error| error.to_string())
}

/// The files and directories of one configuration.
#[derive(Default)]
pub struct RevocationFiles {
    sources: Vec<Source>,
}

impl RevocationFiles {
    /// Reads all that the paths name.
    pub fn read(paths: &[PathBuf]) -> Self {
        RevocationFiles { sources: paths.iter().cloned().map(Source::new).collect() }
    }

    /// True if nothing is to be looked at.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The records of each path.
    pub fn records(&self) -> impl Iterator<Item = RecordsOfPath> + '_ {
        self.sources.iter().map(|source| (source.path.clone(), source.records.clone()))
    }

    /// Looks at the files from a thread until `tell`, which gets the records of all paths after each change, returns
    /// false. `say` gets new problems.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn watch(
        mut self,
        mut tell: impl FnMut(Vec<RecordsOfPath>) -> bool + Send + 'static,
        say: impl Fn(String) + Send + 'static,
    ) -> io::Result<()> {
        let look = move || {
            loop {
                std::thread::sleep(LOOK_INTERVAL);
                let (changed, problems) = self.look();
                problems.into_iter().for_each(&say);
                if !changed.is_empty() && !tell(self.records().collect()) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("revocations".to_owned()).spawn(look).map(drop)
    }

    /// What could not be read, in words.
    pub fn problems(&self) -> impl Iterator<Item = String> + '_ {
        self.sources.iter().filter_map(|source| source.problem.clone())
    }

    /// Looks at the files. Returns the records of each path where something has changed, and the new problems.
    pub fn look(&mut self) -> (Vec<RecordsOfPath>, Vec<String>) {
        let (mut changed, mut problems) = (Vec::new(), Vec::new());
        for source in &mut self.sources {
            let before = source.problem.clone();
            if source.look() {
                changed.push((source.path.clone(), source.records.clone()));
                problems.extend(source.problem.clone().filter(|problem| Some(problem) != before.as_ref()));
            }
        }
        (changed, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Component, NameBuf};
    use namewire_security::{
        PrivateKey, Signer, ValidityPeriod, base64_lines, issue_certificate, trust::revocation::Reason,
    };

    fn record(version: u64) -> Vec<u8> {
        let (key, name) = (PrivateKey::generate_ed25519().unwrap(), "/a/KEY/1".parse::<NameBuf>().unwrap());
        let spki = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, name.clone());
        let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: 9 };
        let issuer = Component::generic(b"self");
        let certificate = issue_certificate(&signer, name.as_name(), &spki, issuer, version, validity).unwrap();
        RevocationRecord::make(&signer, &certificate, Reason::UNSPECIFIED, 1).unwrap().wire().to_vec()
    }

    fn names(files: &RevocationFiles) -> Vec<String> {
        files.records().flat_map(|(_, records)| records).map(|record| record.certificate().to_string()).collect()
    }

    #[test]
    fn records_come_and_go_with_their_files_and_an_unreadable_file_takes_none_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut files = RevocationFiles::read(&[directory.path().to_owned(), path("later")]);
        assert_eq!((names(&files).len(), files.problems().count()), (0, 1));

        fs::write(path("one"), [record(1), record(2)].concat()).unwrap();
        let (changed, problems) = files.look();
        assert_eq!((changed.len(), problems.len()), (1, 0));
        assert_eq!(names(&files), ["/a/KEY/1/self/v=1", "/a/KEY/1/self/v=2"]);
        assert!(files.look().0.is_empty(), "nothing has changed");

        fs::write(path("one"), "?").unwrap();
        let (_, problems) = files.look();
        assert!(problems[0].contains("/one: not base64"), "{problems:?}");
        assert_eq!(names(&files).len(), 2);

        fs::write(path("one"), record(3)).unwrap();
        files.look();
        assert_eq!((names(&files), files.problems().count()), (vec!["/a/KEY/1/self/v=3".to_owned()], 1));

        fs::write(path("later"), base64_lines::encode(&record(4)).as_bytes()).unwrap();
        files.look();
        assert_eq!((names(&files).len(), files.problems().count()), (3, 0), "twice: in the directory and by its path");
        fs::remove_file(path("one")).unwrap();
        fs::remove_file(path("later")).unwrap();
        files.look();
        assert_eq!(names(&files), ["/a/KEY/1/self/v=4"], "the path cannot be read, and the directory is empty");
    }
}
