//! Trust anchors in files: read before the router starts, and again after each `refresh`.
//!
//! Source: ndn-cxx `security-validator-config.rst`, `trust-anchor`, and `trust-anchor-group.cpp`. A file or directory
//! may appear after the start of the router. An unreadable one has no certificates until a `refresh` finds some. The
//! router logs when a file or directory becomes unreadable or readable, and counts each failure. In a directory, files
//! without a certificate are skipped.
//!
//! The files of revocation records ([`crate::revocation_files`]) are read with them.
//!
//! Limits: [`MAX_FILE_BYTES`] per file, [`MAX_FILES`] per directory, [`SHORTEST_REFRESH`].

use crate::{
    RepoTrust, input_file,
    revocation_files::{LOOK_INTERVAL, RevocationFiles},
};
use namewire_management::{Management, TrustConfig};
use namewire_security::trust::{AnchorCertificate, RulesOrAny, TrustAnchor};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Longest file of a certificate; a packet in base64 has 12 kB.
const MAX_FILE_BYTES: u64 = 65_536;

/// Most files read in a directory.
const MAX_FILES: usize = 1024;

/// Files are read again at most this often.
const SHORTEST_REFRESH: Duration = Duration::from_secs(1);

const LOOK_INTERVAL_NS: u64 = LOOK_INTERVAL.as_nanos() as u64;

/// Why the certificates of a file or directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("trust anchor {}: {why}", .path.display())]
pub struct AnchorFileError {
    /// The file or directory.
    pub path: PathBuf,
    /// The reason in words.
    pub why: String,
}

/// The certificate in a file, as [`AnchorCertificate::parse`] reads it.
///
/// # Errors
/// If the file cannot be read, or has no certificate.
pub fn read_certificate(path: &Path) -> Result<AnchorCertificate, AnchorFileError> {
    let failed = |why: String| AnchorFileError { path: path.to_owned(), why };
    let text = input_file::read(path, MAX_FILE_BYTES).map_err(|error| failed(error.to_string()))?;
    AnchorCertificate::parse(text).map_err(|error| failed(error.to_string()))
}

/// A file or directory, and its contents.
struct Source {
    path: PathBuf,
    is_directory: bool,
    refresh: Option<Duration>,
    /// When to read it again.
    due_ns: Option<u64>,
    certificates: Vec<AnchorCertificate>,
    /// Why it could not be read the last time.
    unreadable: Option<String>,
}

impl Source {
    /// `None`: the rules contain the certificate.
    fn read_first(anchor: &TrustAnchor) -> Option<Self> {
        let (path, refresh, is_directory) = match anchor {
            TrustAnchor::Certificate(_) => return None,
            TrustAnchor::File { path, refresh } => (path, refresh, false),
            TrustAnchor::Directory { path, refresh } => (path, refresh, true),
        };
        let refresh = refresh.map(|refresh| refresh.max(SHORTEST_REFRESH));
        let (path, certificates) = (path.clone(), Vec::new());
        let mut source = Source { path, is_directory, refresh, due_ns: None, certificates, unreadable: None };
        source.read();
        Some(source)
    }

    /// Reads the file or directory, and says if that has become impossible, for another reason, or possible.
    fn read(&mut self) -> Option<AnchorNews> {
        let (certificates, unreadable) = match self.certificates_now() {
            Ok(certificates) => (certificates, None),
            Err(error) => (Vec::new(), Some(error.why)),
        };
        self.certificates = certificates;
        let before = std::mem::replace(&mut self.unreadable, unreadable);
        if before == self.unreadable {
            return None;
        }
        Some(self.error().map_or_else(|| AnchorNews::Readable(self.path.clone()), AnchorNews::Unreadable))
    }

    fn error(&self) -> Option<AnchorFileError> {
        self.unreadable.clone().map(|why| AnchorFileError { path: self.path.clone(), why })
    }

    fn certificates_now(&self) -> Result<Vec<AnchorCertificate>, AnchorFileError> {
        if !self.is_directory {
            return Ok(vec![read_certificate(&self.path)?]);
        }
        let failed = |error: io::Error| AnchorFileError { path: self.path.clone(), why: error.to_string() };
        let mut certificates = Vec::new();
        for entry in self.path.read_dir().map_err(failed)?.take(MAX_FILES) {
            let path = entry.map_err(failed)?.path();
            // A pipe or a directory beside the certificates is not an error.
            if path.is_file() {
                certificates.extend(read_certificate(&path));
            }
        }
        Ok(certificates)
    }
}

/// The certificates in a file or directory that rules name.
pub type AnchorsOfFile = (PathBuf, Vec<AnchorCertificate>);

/// A file or directory can be read that could not be read before, or the other way round.
#[derive(Debug)]
pub enum AnchorNews {
    /// It cannot be read, for this reason. Its certificates are not trusted.
    Unreadable(AnchorFileError),
    /// The file or directory can be read.
    Readable(PathBuf),
    /// A revocation record cannot be read, for this reason in words. Those that were read before count.
    NoRevocation(String),
}

impl RepoTrust {
    /// Reads the certificates of all files and directories that the rules name. What cannot be read has none.
    pub fn anchors(&self) -> Vec<AnchorsOfFile> {
        self.sources().map(|source| (source.path, source.certificates)).collect()
    }

    /// Why files and directories that the rules name cannot be read, in words.
    pub fn unreadable(&self) -> Vec<String> {
        let reason =
            |source: Source| source.error().map(|error| format!("{error}; it is read again at the next start"));
        self.sources().filter_map(reason).collect()
    }

    /// The trust anchors of all rules.
    pub fn trust_anchors(&self) -> impl Iterator<Item = &TrustAnchor> {
        let RepoTrust { commands, data } = self;
        [commands, data].into_iter().flatten().flat_map(RulesOrAny::anchors)
    }

    fn sources(&self) -> impl Iterator<Item = Source> {
        self.trust_anchors().filter_map(Source::read_first)
    }
}

/// The files of one configuration.
#[derive(Default)]
pub struct TrustAnchors {
    sources: Vec<Source>,
    revocations: RevocationFiles,
    /// When to look at the revocation records again.
    revocations_due_ns: Option<u64>,
    /// Times that a file or directory could not be read.
    pub unreadable: u64,
}

impl TrustAnchors {
    /// Reads all files and directories that a configuration names.
    pub fn read(trust: &TrustConfig) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        for source in trust.anchor_files().filter_map(Source::read_first) {
            // Several sections may name the same file.
            if !sources.iter().any(|one| (&one.path, one.refresh) == (&source.path, source.refresh)) {
                sources.push(source);
            }
        }
        let unreadable = sources.iter().filter(|source| source.unreadable.is_some()).count() as u64;
        let revocations = RevocationFiles::read(&trust.revocations);
        TrustAnchors { sources, revocations, revocations_due_ns: None, unreadable }
    }

    /// Why files and directories could not be read the last time, and when they are read again, in words.
    pub fn problems(&self) -> Vec<String> {
        let problem = |source: &Source| {
            let again = match source.refresh {
                Some(refresh) => format!("every {} s, as its refresh says, and at a SIGHUP", refresh.as_secs()),
                None => "at a SIGHUP".to_owned(),
            };
            source.error().map(|error| format!("{error}; it is read again {again}"))
        };
        self.sources.iter().filter_map(problem).chain(self.revocations.problems()).collect()
    }

    /// The files and directories that a configuration names.
    pub fn files(trust: &TrustConfig) -> impl Iterator<Item = &Path> {
        let anchors = trust.anchor_files().filter_map(|anchor| match anchor {
            TrustAnchor::Certificate(_) => None,
            TrustAnchor::File { path, .. } | TrustAnchor::Directory { path, .. } => Some(path.as_path()),
        });
        anchors.chain(trust.revocations.iter().map(PathBuf::as_path))
    }

    /// Gives management what was read.
    pub fn give_to(&mut self, management: &mut Management, now_ns: u64) {
        for source in &mut self.sources {
            source.due_ns = source.refresh.map(|refresh| now_ns.saturating_add(refresh.as_nanos() as u64));
            management.set_anchors(source.path.clone(), source.certificates.clone());
        }
        for (path, records) in self.revocations.records() {
            management.set_revocations(path, records);
        }
        self.revocations_due_ns = (!self.revocations.is_empty()).then(|| now_ns.saturating_add(LOOK_INTERVAL_NS));
    }

    /// When [`TrustAnchors::refresh`] has work.
    pub fn next_refresh_ns(&self) -> Option<u64> {
        self.sources.iter().filter_map(|source| source.due_ns).chain(self.revocations_due_ns).min()
    }

    /// Reads the files again whose refresh is due. Returns what has become readable or unreadable.
    pub fn refresh(&mut self, management: &mut Management, now_ns: u64) -> Vec<AnchorNews> {
        let mut news = Vec::new();
        for source in &mut self.sources {
            let (Some(due_ns), Some(refresh)) = (source.due_ns, source.refresh) else { continue };
            if due_ns <= now_ns {
                news.extend(source.read());
                self.unreadable += u64::from(source.unreadable.is_some());
                source.due_ns = Some(now_ns.saturating_add(refresh.as_nanos() as u64));
                management.set_anchors(source.path.clone(), source.certificates.clone());
            }
        }
        if self.revocations_due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.revocations_due_ns = Some(now_ns.saturating_add(LOOK_INTERVAL_NS));
            let (changed, problems) = self.revocations.look();
            changed.into_iter().for_each(|(path, records)| management.set_revocations(path, records));
            news.extend(problems.into_iter().map(AnchorNews::NoRevocation));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What a reading says, in words.
    fn said(source: &mut Source) -> Option<String> {
        source.read().map(|news| match news {
            AnchorNews::Unreadable(error) => error.why,
            AnchorNews::Readable(_) => "readable".to_owned(),
            AnchorNews::NoRevocation(why) => why,
        })
    }

    #[test]
    fn what_cannot_be_read_is_said_when_that_changes_and_not_at_each_refresh() {
        let directory = tempfile::tempdir().unwrap();
        let (folder, file) = (directory.path().join("anchors"), directory.path().join("anchor"));
        let anchor = TrustAnchor::Directory { path: folder.clone(), refresh: None };
        let mut source = Source::read_first(&anchor).expect("no certificate in the rules");
        assert!(source.error().expect("missing").to_string().contains("anchors: No such file"));
        assert_eq!(said(&mut source), None);
        fs::create_dir(&folder).unwrap();
        assert_eq!(said(&mut source).as_deref(), Some("readable"));
        assert_eq!(said(&mut source), None);
        fs::remove_dir(&folder).unwrap();
        assert!(said(&mut source).expect("gone").contains("No such file"));

        let mut source = Source::read_first(&TrustAnchor::File { path: file.clone(), refresh: None }).expect("a file");
        fs::write(&file, "?").unwrap();
        assert!(said(&mut source).expect("another reason").contains("base64"));
        assert_eq!(said(&mut source), None);
    }
}
