//! Names of the file server protocol: which Interest asks for what, below the name of a served folder?
//!
//! | name below the folder's | asks for |
//! | --- | --- |
//! | `<path>/32=metadata` | metadata of the file or folder (RDR: CanBePrefix, MustBeFresh) |
//! | `<path>/32=ls/32=metadata` | metadata of the folder's listing |
//! | `<path>/v=<n>/seg=<n>` | a segment of a file |
//! | `<path>/32=ls/v=<n>/seg=<n>` | a segment of a folder's listing |
//! | `…/v=<n>/32=manifest/seg=<n>` | a packet of the manifest of either |
//! | `<path>`, `<path>/32=ls`, each perhaps with `v=<n>`, and CanBePrefix | the first segment |
//!
//! A path has one generic component for each file name. A segment's name may have an implicit digest behind it. Cost:
//! one allocation for each component of the path.

use crate::entry_name::{EntryName, EntryPath};
use namewire_client::manifest::MANIFEST;
use namewire_packet::{
    Component, Interest, Name, NameBuf,
    tlv::types::{GENERIC_COMPONENT, IMPLICIT_SHA256_DIGEST, KEYWORD_COMPONENT},
};

/// The keyword component of RDR metadata.
pub(crate) const METADATA: Component<'static> = Component { type_number: KEYWORD_COMPONENT, value: b"metadata" };
/// The keyword component of listings.
pub(crate) const LISTING: Component<'static> = Component { type_number: KEYWORD_COMPONENT, value: b"ls" };

/// What an Interest asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Below the served folder.
    pub(crate) path: EntryPath,
    /// The name has `32=ls`: the path must be a folder.
    pub(crate) is_listing: bool,
    pub(crate) part: Part,
}

/// The part of a file or listing that an Interest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Metadata,
    /// The first segment, of this version or of the newest.
    Beginning(Option<u64>),
    Segment {
        version: u64,
        segment: u64,
    },
    /// A packet of the manifest.
    Manifest {
        version: u64,
        packet: u64,
    },
}

impl Request {
    /// Reads an Interest for a name below the first `prefix_len` components; `None` if such a name means nothing.
    pub(crate) fn read(interest: &Interest<'_>, prefix_len: usize) -> Option<Request> {
        let name = interest.name();
        let mut rest = name.components().skip(prefix_len).peekable();
        let mut path = EntryPath::default();
        while let Some(component) = rest.next_if(|component| component.type_number == GENERIC_COMPONENT) {
            path = path.join(EntryName::new(component.value).ok()?);
        }
        let is_listing = rest.next_if_eq(&LISTING).is_some();
        let prefix = |part| interest.can_be_prefix().then_some(part);
        let may_end =
            |digest: Option<Component<'_>>| digest.is_none_or(|digest| digest.type_number == IMPLICIT_SHA256_DIGEST);
        let part = match [rest.next(), rest.next(), rest.next(), rest.next()] {
            [None, ..] => prefix(Part::Beginning(None))?,
            [Some(METADATA), None, ..] => prefix(Part::Metadata)?,
            [Some(version), None, ..] => prefix(Part::Beginning(Some(version.version()?)))?,
            [Some(version), Some(MANIFEST), Some(packet), digest] if may_end(digest) => {
                Part::Manifest { version: version.version()?, packet: packet.segment()? }
            }
            [Some(version), Some(segment), digest, None] if may_end(digest) => {
                Part::Segment { version: version.version()?, segment: segment.segment()? }
            }
            _ => return None,
        };
        Some(Request { path, is_listing, part })
    }
}

/// The name of a file or folder below `prefix`, without version.
pub(crate) fn name_of(prefix: &NameBuf, path: &EntryPath) -> NameBuf {
    let mut name = prefix.clone();
    for component in path.components() {
        name.push_generic(component.as_bytes());
    }
    name
}

/// True if `versioned` is a version of the file `name`, or of the listing of the folder `name`. Metadata that leads
/// elsewhere could pass another object off as this one.
pub(crate) fn is_version_of(versioned: Name<'_>, name: Name<'_>, is_folder: bool) -> bool {
    let length = name.len() + usize::from(is_folder) + 1;
    name.is_prefix_of(&versioned)
        && versioned.len() == length
        && (!is_folder || versioned.get(name.len()) == Some(LISTING))
        && versioned.last().is_some_and(|last| last.version().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::InterestBuilder;

    fn read(uri: &str, can_be_prefix: bool) -> Option<(String, bool, Part)> {
        let wire = InterestBuilder::new(uri.parse::<NameBuf>().unwrap()).can_be_prefix(can_be_prefix).build();
        let request = Request::read(&Interest::parse(&wire).unwrap(), 1)?;
        Some((request.path.to_string(), request.is_listing, request.part))
    }

    #[test]
    fn each_name_of_the_table_is_read() {
        let found = |path: &str, is_listing, part| Some((path.to_owned(), is_listing, part));
        assert_eq!(read("/p/32=metadata", true), found(".", false, Part::Metadata));
        assert_eq!(read("/p/a/b/32=ls/32=metadata", true), found("a/b", true, Part::Metadata));
        assert_eq!(read("/p/a/v=3/seg=4", false), found("a", false, Part::Segment { version: 3, segment: 4 }));
        let digest = "ab".repeat(32);
        let with_digest = format!("/p/32=ls/v=3/seg=4/sha256digest={digest}");
        assert_eq!(read(&with_digest, false), found(".", true, Part::Segment { version: 3, segment: 4 }));
        assert_eq!(
            read("/p/a/v=3/32=manifest/seg=4", false),
            found("a", false, Part::Manifest { version: 3, packet: 4 })
        );
        assert_eq!(read("/p/a", true), found("a", false, Part::Beginning(None)));
        assert_eq!(read("/p/a/v=3", true), found("a", false, Part::Beginning(Some(3))));
        let meaningless = [
            "/p/32=metadata/v=1/seg=0",
            "/p/...../32=metadata",
            "/p/..../32=metadata",
            "/p/.../32=metadata",
            "/p/a%2Fb/v=1/seg=0",
            "/p/a%00/v=1/seg=0",
            "/p/a/seg=0",
            "/p/a/v=1/b",
            "/p/a/v=1/seg=0/b",
            "/p/a/v=1/32=manifest/seg=0/b",
            "/p/a/32=manifest/seg=0",
            "/p/a/32=other",
        ];
        for uri in meaningless {
            assert_eq!(read(uri, true), None, "{uri}");
        }
        for uri in ["/p/a", "/p/a/v=3", "/p/a/32=metadata"] {
            assert_eq!(read(uri, false), None, "{uri}");
        }
    }

    #[test]
    fn only_versions_of_the_name_are_its_versions() {
        let is = |versioned: &str, is_folder| {
            let (versioned, name): (NameBuf, NameBuf) = (versioned.parse().unwrap(), "/p/a".parse().unwrap());
            is_version_of(versioned.as_name(), name.as_name(), is_folder)
        };
        assert!(is("/p/a/v=1", false) && is("/p/a/32=ls/v=1", true));
        for (other, is_folder) in [("/p/b/v=1", false), ("/p/a/b/v=1", false), ("/p/a", false), ("/p/a/v=1", true)] {
            assert!(!is(other, is_folder), "{other}");
        }
        assert!(!is("/p/a/32=ls/v=1", false) && !is("/p/a/32=ls/b", true));
    }
}
