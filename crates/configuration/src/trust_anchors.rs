//! Trust anchors in files: read before the router starts, and again after each `refresh`.
//!
//! Source: ndn-cxx `security-validator-config.rst`, `trust-anchor`. At the start an unreadable file is an error. Later
//! its certificates are no longer trusted, and the failure is counted. In a directory, files without a certificate are
//! skipped.
//!
//! Limits: [`MAX_FILE_BYTES`] per file, [`MAX_FILES`] per directory, [`SHORTEST_REFRESH`].

use crate::{RepoTrust, input_file};
use base64::{Engine as _, engine::general_purpose::STANDARD};
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

/// Why the certificates of a file or directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("trust anchor {}: {why}", .path.display())]
pub struct AnchorFileError {
    /// The file or directory.
    pub path: PathBuf,
    /// The reason in words.
    pub why: String,
}

/// A certificate as `ndnsec cert-dump` writes it: base64, in lines.
///
/// # Errors
/// Why the text is not a certificate, in words.
pub fn certificate_in_base64(mut text: Vec<u8>) -> Result<AnchorCertificate, String> {
    text.retain(|byte| !byte.is_ascii_whitespace());
    let wire = STANDARD.decode(text).map_err(|error| format!("not base64: {error}"))?;
    AnchorCertificate::parse(wire).map_err(|error| error.to_string())
}

/// The certificate in a file, as [`certificate_in_base64`] reads it.
///
/// # Errors
/// If the file cannot be read, or has no certificate.
pub fn read_certificate(path: &Path) -> Result<AnchorCertificate, AnchorFileError> {
    let failed = |why: String| AnchorFileError { path: path.to_owned(), why };
    let text = input_file::read(path, MAX_FILE_BYTES).map_err(|error| failed(error.to_string()))?;
    certificate_in_base64(text).map_err(failed)
}

/// A file or directory, and its contents.
struct Source {
    path: PathBuf,
    is_directory: bool,
    refresh: Option<Duration>,
    /// When to read it again.
    due_ns: Option<u64>,
    certificates: Vec<AnchorCertificate>,
}

impl Source {
    fn new(anchor: &TrustAnchor) -> Option<Self> {
        let (path, refresh, is_directory) = match anchor {
            TrustAnchor::Certificate(_) => return None,
            TrustAnchor::File { path, refresh } => (path, refresh, false),
            TrustAnchor::Directory { path, refresh } => (path, refresh, true),
        };
        let refresh = refresh.map(|refresh| refresh.max(SHORTEST_REFRESH));
        Some(Source { path: path.clone(), is_directory, refresh, due_ns: None, certificates: Vec::new() })
    }

    fn read(&mut self) -> Result<(), AnchorFileError> {
        self.certificates.clear();
        if self.is_directory {
            let failed = |error: io::Error| AnchorFileError { path: self.path.clone(), why: error.to_string() };
            for entry in self.path.read_dir().map_err(failed)?.take(MAX_FILES) {
                let path = entry.map_err(failed)?.path();
                // A pipe or a directory beside the certificates is not an error.
                if path.is_file() {
                    self.certificates.extend(read_certificate(&path));
                }
            }
        } else {
            self.certificates.push(read_certificate(&self.path)?);
        }
        Ok(())
    }
}

/// The certificates in a file or directory that rules name.
pub type AnchorsOfFile = (PathBuf, Vec<AnchorCertificate>);

impl RepoTrust {
    /// Reads the certificates of all files and directories that the rules name.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn anchors(&self) -> Result<Vec<AnchorsOfFile>, AnchorFileError> {
        let RepoTrust { commands, data } = self;
        let anchors = [commands, data].into_iter().flatten().flat_map(|rules| match rules {
            RulesOrAny::Any => &[][..],
            RulesOrAny::Rules(rules) => &rules.anchors,
        });
        let read = |mut source: Source| {
            source.read()?;
            Ok((source.path, source.certificates))
        };
        anchors.filter_map(Source::new).map(read).collect()
    }
}

/// The files of one configuration.
#[derive(Default)]
pub struct TrustAnchors {
    sources: Vec<Source>,
    /// Times that a file could not be read again.
    pub unreadable: u64,
}

impl TrustAnchors {
    /// Reads all files that a configuration names.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn read(trust: &TrustConfig) -> Result<Self, AnchorFileError> {
        let mut sources: Vec<Source> = trust.anchor_files().filter_map(Source::new).collect();
        sources.iter_mut().try_for_each(Source::read)?;
        Ok(TrustAnchors { sources, unreadable: 0 })
    }

    /// The files and directories that a configuration names.
    pub fn files(trust: &TrustConfig) -> impl Iterator<Item = &Path> {
        trust.anchor_files().filter_map(|anchor| match anchor {
            TrustAnchor::Certificate(_) => None,
            TrustAnchor::File { path, .. } | TrustAnchor::Directory { path, .. } => Some(path.as_path()),
        })
    }

    /// Gives management what was read.
    pub fn give_to(&mut self, management: &mut Management, now_ns: u64) {
        for source in &mut self.sources {
            source.due_ns = source.refresh.map(|refresh| now_ns.saturating_add(refresh.as_nanos() as u64));
            management.set_anchors(source.path.clone(), source.certificates.clone());
        }
    }

    /// When [`TrustAnchors::refresh`] has work.
    pub fn next_refresh_ns(&self) -> Option<u64> {
        self.sources.iter().filter_map(|source| source.due_ns).min()
    }

    /// Reads the files again whose refresh is due.
    pub fn refresh(&mut self, management: &mut Management, now_ns: u64) {
        for source in &mut self.sources {
            let (Some(due_ns), Some(refresh)) = (source.due_ns, source.refresh) else { continue };
            if due_ns <= now_ns {
                self.unreadable += u64::from(source.read().is_err());
                source.due_ns = Some(now_ns.saturating_add(refresh.as_nanos() as u64));
                management.set_anchors(source.path.clone(), source.certificates.clone());
            }
        }
    }
}
