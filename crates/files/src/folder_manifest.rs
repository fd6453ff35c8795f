//! The manifest of a folder: how does one signature cover a folder with all that is in it?
//!
//! Every file and every listing has a manifest as single objects have it ([`namewire_client::manifest`]): a list of the
//! digests of its segments, which have no other signature. That of a listing goes on with two digests for each entry:
//!
//! ```text
//! /<folder>/32=ls/v=<n>/32=manifest/seg=0…     digests of the segments of the listing, then for each entry
//!     state                                     SHA-256 of its metadata, without the times of access, birth and inode
//!     content                                   a file of one segment: implicit digest of this segment
//!                                               others: SHA-256 of the content of the first packet of the manifest
//! ```
//!
//! So the folders are a Merkle tree. A consumer checks one signature, that of the first packet of the outermost folder.
//! It looks up the state of the metadata that came, and gets the digest by which the content is judged. The metadata
//! has the name with the version, the size, the mode and the time of change. An entry that is not listed is refused.
//!
//! Why the content of a packet, and not its implicit digest: keys sign the same content differently each time. So the
//! producer need not keep what it has signed, and signs the first packet of each manifest by its key when somebody asks
//! for it. A file or an inner folder that is fetched alone is checked as any other object with a manifest.
//!
//! The FinalBlockId of a first packet is not in this digest. A wrong one moves the digests by one place, so no segment
//! and no further packet fits, and the fetch ends.
//!
//! Cost: 64 bytes for each entry; of a file with several segments one round trip more. Clients that know no manifests
//! see segments that are signed by digest, and metadata signed by the key.
//!
//! Limits: a consumer takes two digests for each name of a listing, which has limits itself.

use crate::{
    folder_fetch::FolderError,
    metadata::{FileKind, FileMetadata},
};
use namewire_client::manifest::{Digest, Manifest};
use namewire_packet::digest::sha256;
use std::collections::HashMap;

/// The digest that stands for what a manifest says of an entry besides its content.
pub(crate) fn state_digest(metadata: &FileMetadata) -> Digest {
    let lasting = FileMetadata { atime_ns: None, btime_ns: None, ctime_ns: None, ..metadata.clone() };
    sha256(&[&lasting.encode()])
}

/// What the manifest of a folder lists: content digests by state digests.
#[derive(Debug, Default)]
pub(crate) struct ListedEntries(HashMap<Digest, Digest>);

impl ListedEntries {
    /// Reads the digests behind those of the listing's segments. One without its partner counts for nothing.
    pub(crate) fn new(digests: &[Digest]) -> Self {
        let (pairs, _) = digests.as_chunks::<2>();
        ListedEntries(pairs.iter().map(|[state, content]| (*state, *content)).collect())
    }

    /// The manifest that the content of this entry must have.
    ///
    /// # Errors
    /// [`FolderError::NotListed`] if the folder's manifest does not list an entry in this state.
    pub(crate) fn manifest_of(&self, metadata: &FileMetadata) -> Result<Manifest, FolderError> {
        let content = self.0.get(&state_digest(metadata)).ok_or(FolderError::NotListed)?;
        Ok(match (metadata.kind()?, metadata.last_segment) {
            (FileKind::File, Some(0)) => Manifest::of_segment(*content),
            _ => Manifest::of_content(*content),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(mode: u32, last_segment: Option<u64>) -> FileMetadata {
        FileMetadata {
            versioned_name: "/p/a/v=5".parse().unwrap(),
            last_segment,
            segment_bytes: Some(8000),
            size_bytes: Some(9000),
            mode,
            atime_ns: Some(1),
            btime_ns: Some(2),
            ctime_ns: Some(3),
            mtime_ns: 5,
        }
    }

    #[test]
    fn an_entry_is_listed_in_one_state() {
        let file = metadata(0o100_644, Some(1));
        let listed = ListedEntries::new(&[state_digest(&file), [7; 32], [8; 32]]);
        assert!(listed.manifest_of(&file).is_ok());
        let touched = FileMetadata { atime_ns: Some(9), ctime_ns: None, ..file.clone() };
        assert!(listed.manifest_of(&touched).is_ok(), "being read is no change");
        let other_name = FileMetadata { versioned_name: "/p/b/v=5".parse().unwrap(), ..file.clone() };
        let others = [
            other_name,
            metadata(0o104_755, Some(1)),
            metadata(0o100_644, Some(2)),
            FileMetadata { mtime_ns: 6, ..file.clone() },
            FileMetadata { size_bytes: Some(8999), ..file },
        ];
        for other in others {
            assert!(matches!(listed.manifest_of(&other), Err(FolderError::NotListed)), "{other:?}");
        }
    }
}
