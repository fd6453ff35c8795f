//! One version of a served file or listing: which bytes are in which segment, and why is there none?
//!
//! A file is read from its open descriptor, a listing from memory. Cost of a segment: two system calls for a file, one
//! copy for a listing.

use crate::{
    metadata::FileMetadata,
    served_tree::{Facts, Identity, LookError, read_unchanged},
};
use namewire_client::{NameBuf, security::SignError};
use std::{fs::File, io, sync::Arc};

/// Why an Interest gets an application Nack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotFound,
    Gone,
    NotServed,
    Unreadable,
    NameTooLong,
    FolderTooLarge,
    Sign(SignError),
}

impl Refusal {
    /// The content of the application Nack.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Refusal::NotFound => "not found",
            Refusal::Gone => "this version is gone",
            Refusal::NotServed => "neither a file nor a folder",
            Refusal::Unreadable | Refusal::Sign(_) => "cannot be read",
            Refusal::NameTooLong => "the name is too long",
            Refusal::FolderTooLarge => "the folder has too many entries",
        }
    }
}

impl From<LookError> for Refusal {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Missing => Refusal::NotFound,
            LookError::OtherKind => Refusal::NotServed,
            LookError::TooLarge => Refusal::FolderTooLarge,
            LookError::Unreadable => Refusal::Unreadable,
        }
    }
}

impl From<SignError> for Refusal {
    fn from(error: SignError) -> Self {
        Refusal::Sign(error)
    }
}

/// One version of a file or listing.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) source: Source,
    pub(crate) versioned_name: NameBuf,
    pub(crate) size_bytes: u64,
    /// Bytes of content in each segment but the last.
    pub(crate) segment_bytes: usize,
}

#[derive(Clone)]
pub(crate) enum Source {
    File(Arc<File>, Identity),
    Listing(Arc<[u8]>),
}

impl Object {
    pub(crate) fn last_segment(&self) -> u64 {
        self.size_bytes.div_ceil(self.segment_bytes as u64).saturating_sub(1)
    }

    /// What its metadata say, where the file system says `facts`.
    pub(crate) fn metadata(&self, facts: &Facts) -> FileMetadata {
        let of_file = |number: u64| matches!(self.source, Source::File(..)).then_some(number);
        FileMetadata {
            last_segment: of_file(self.last_segment()),
            segment_bytes: of_file(self.segment_bytes as u64),
            size_bytes: of_file(self.size_bytes),
            versioned_name: self.versioned_name.clone(),
            mode: facts.mode,
            atime_ns: Some(facts.atime_ns),
            btime_ns: facts.btime_ns,
            ctime_ns: Some(facts.ctime_ns),
            mtime_ns: facts.identity.mtime_ns,
        }
    }

    /// The content of a segment that exists; `None` if the version is gone.
    pub(crate) fn read(&self, segment: u64) -> io::Result<Option<Vec<u8>>> {
        let offset = segment * self.segment_bytes as u64;
        let length = (self.size_bytes - offset).min(self.segment_bytes as u64) as usize;
        match &self.source {
            Source::File(file, identity) => read_unchanged(file, identity, offset, length),
            Source::Listing(bytes) => Ok(Some(bytes[offset as usize..offset as usize + length].to_vec())),
        }
    }
}
