//! What an Interest asks the producer of a segmented object for, and the answers that are no segments: RDR metadata and
//! application Nacks.
//!
//! The object is `N`; its segments are `V/seg=<n>`, where `V` is `N/v=<version>`, or `N` if the names have no version.
//!
//! | name of the Interest | it asks for | answer |
//! | --- | --- | --- |
//! | `V/seg=n`, also with its implicit digest | a segment | the segment; the forwarder compares the digest |
//! | the same, and there is no such segment | – | application Nack; with a digest: nothing, because no Nack has that digest |
//! | `N` to `V`, CanBePrefix | any segment (discovery) | segment 0 |
//! | `N` to `V`, without CanBePrefix | a Data that does not exist | nothing |
//! | `N/32=metadata`, CanBePrefix | the latest version (discovery) | metadata |
//! | `V/32=manifest/seg=n` | a packet of the manifest | the packet, if the object has a manifest; else an application Nack |
//! | other names under `N/32=metadata` | an earlier metadata packet | nothing: caches answer |
//! | another name below `N`: another version, no segment | a Data that does not exist | application Nack; nothing if it ends in an implicit digest |
//!
//! Why some get no Nack: Data also answers each shorter name with CanBePrefix. A Nack under the names of discovery
//! would sit in caches, and would answer an Interest that has a right answer. For the same reason a Nack is sent with
//! CachePolicy NoCache and with the FreshnessPeriod [`NACK_FRESHNESS_MS`]. What remains: a Nack for `N/v=9` satisfies
//! an Interest for `N` that waits in a router at that moment. So a consumer does not take a Nack as the answer of
//! discovery.
//!
//! An application Nack for a segment beyond the end has the FinalBlockId of the object: a consumer whose first segment
//! is late learns that it has asked for too much.
//!
//! Cost: an application Nack is one signature, and it is not kept. So a consumer that asks for names that do not exist
//! makes the producer sign each time.

use crate::{manifest::MANIFEST, version_discovery::METADATA};
use namewire_packet::{
    Component, DataBuilder, Interest, MAX_PACKET_BYTES, Name, NameBuf, content_type,
    tlv::{self, types},
};
use namewire_security::{SignError, Signer};
use std::time::{SystemTime, UNIX_EPOCH};

/// FreshnessPeriod of metadata, in milliseconds: long enough to answer, too short to mislead.
pub const METADATA_FRESHNESS_MS: u64 = 10;
/// FreshnessPeriod of application Nacks, in milliseconds.
pub const NACK_FRESHNESS_MS: u64 = 1;

/// What an Interest asks the producer of an object for. See the table of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The latest version.
    Metadata,
    /// Some segment, by a prefix of its name.
    AnySegment,
    /// The segment of this number, which may not exist.
    Segment {
        /// The number.
        segment: u64,
        /// The name has an implicit digest.
        has_digest: bool,
    },
    /// The packet of this number of the manifest, which may not exist.
    Manifest(u64),
    /// A Data that this producer does not have and would know: an application Nack answers.
    Absent,
    /// Nothing that an answer could help with.
    Unanswerable,
}

impl Asked {
    /// What `interest` asks the producer of `object` for, whose segments are below `versioned_name`.
    pub fn of(interest: &Interest<'_>, object: &NameBuf, versioned_name: &NameBuf) -> Asked {
        let name = interest.name();
        if !object.as_name().is_prefix_of(&name) {
            return Asked::Unanswerable;
        }
        if name.get(object.len()) == Some(METADATA) {
            let is_discovery = interest.can_be_prefix() && name.len() == object.len() + 1;
            return if is_discovery { Asked::Metadata } else { Asked::Unanswerable };
        }
        if name.is_prefix_of(&versioned_name.as_name()) {
            return if interest.can_be_prefix() { Asked::AnySegment } else { Asked::Unanswerable };
        }
        let has_digest = interest.implicit_digest().is_some();
        let tail_at = versioned_name.len();
        let length = name.len() - usize::from(has_digest);
        if versioned_name.as_name().is_prefix_of(&name)
            && length == tail_at + 1
            && let Some(segment) = name.get(tail_at).and_then(|component| component.segment())
        {
            return Asked::Segment { segment, has_digest };
        }
        if has_digest {
            return Asked::Unanswerable;
        }
        if versioned_name.as_name().is_prefix_of(&name)
            && length == tail_at + 2
            && name.get(tail_at) == Some(MANIFEST)
            && let Some(packet) = name.get(tail_at + 1).and_then(|component| component.segment())
        {
            return Asked::Manifest(packet);
        }
        Asked::Absent
    }
}

/// The name by which consumers ask for the latest version of `object`.
pub fn metadata_name(object: &NameBuf) -> NameBuf {
    object.join(METADATA)
}

/// The Data that names `versioned_name` as the latest version of `object`.
///
/// # Errors
/// If the key cannot sign.
pub fn metadata(object: &NameBuf, versioned_name: &NameBuf, signer: &Signer) -> Result<Vec<u8>, SignError> {
    let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64);
    let mut name = metadata_name(object);
    name.push_version(now_us).push_segment(0);
    let mut content = Vec::new();
    versioned_name.as_name().write_tlv(&mut content);
    let data = DataBuilder::new(name).freshness_ms(METADATA_FRESHNESS_MS).final_segment(0).content(&content);
    signer.sign_data(&data)
}

/// The name that metadata tells; `None` if the content does not begin with a Name that has components.
pub fn name_in_metadata(content: &[u8]) -> Option<NameBuf> {
    // More elements may follow the Name.
    let element = tlv::read_element(content).ok()?;
    Name::parse_tlv(element.wire).ok().filter(|name| !name.is_empty()).map(|name| name.to_buf())
}

/// The Data of ContentType Nack that tells that there is no Data `name`; with the number of the object's last segment,
/// if that is known. `None` if the name cannot be that of a Data: it has an implicit digest, or is too long.
///
/// # Errors
/// If the key cannot sign.
pub fn application_nack(
    name: Name<'_>,
    last_segment: Option<u64>,
    signer: &Signer,
) -> Result<Option<Vec<u8>>, SignError> {
    let is_digest = |component: Component<'_>| component.type_number == types::IMPLICIT_SHA256_DIGEST;
    if name.components().any(is_digest) {
        return Ok(None);
    }
    let mut data = DataBuilder::new(name.to_buf()).content_type(content_type::NACK).freshness_ms(NACK_FRESHNESS_MS);
    if let Some(last) = last_segment {
        data = data.final_segment(last);
    }
    Ok(Some(signer.sign_data(&data)?).filter(|wire| wire.len() <= MAX_PACKET_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Data, InterestBuilder};

    fn asked(uri: &str, can_be_prefix: bool, versioned: &str) -> Asked {
        let wire = InterestBuilder::new(uri.parse::<NameBuf>().unwrap()).can_be_prefix(can_be_prefix).build();
        Asked::of(&Interest::parse(&wire).unwrap(), &"/a/b".parse().unwrap(), &versioned.parse().unwrap())
    }

    /// The table of the module, row by row.
    #[test]
    fn each_name_below_an_object_asks_for_one_thing() {
        let digest = format!("/sha256digest={}", "0".repeat(64));
        let segment = |segment, has_digest| Asked::Segment { segment, has_digest };
        for (tail, exact, as_prefix) in [
            ("", Asked::Unanswerable, Asked::AnySegment),
            ("/v=5", Asked::Unanswerable, Asked::AnySegment),
            ("/v=5/seg=7", segment(7, false), segment(7, false)),
            ("/v=5/seg=7/x", Asked::Absent, Asked::Absent),
            ("/v=5/x", Asked::Absent, Asked::Absent),
            ("/v=6", Asked::Absent, Asked::Absent),
            ("/v=6/seg=7", Asked::Absent, Asked::Absent),
            ("/seg=7", Asked::Absent, Asked::Absent),
            ("/x", Asked::Absent, Asked::Absent),
            ("/32=metadata", Asked::Unanswerable, Asked::Metadata),
            ("/32=metadata/v=1/seg=0", Asked::Unanswerable, Asked::Unanswerable),
        ] {
            let name = format!("/a/b{tail}");
            assert_eq!((asked(&name, false, "/a/b/v=5"), asked(&name, true, "/a/b/v=5")), (exact, as_prefix), "{name}");
        }
        for (tail, expected) in [
            ("/v=5/seg=7", segment(7, true)),
            ("/v=6/seg=7", Asked::Unanswerable),
            ("/v=5", Asked::Unanswerable),
            ("", Asked::Unanswerable),
        ] {
            assert_eq!(asked(&format!("/a/b{tail}{digest}"), false, "/a/b/v=5"), expected, "{tail}");
        }
        assert_eq!(asked("/a/c", true, "/a/b/v=5"), Asked::Unanswerable);
        // Without a version.
        assert_eq!(asked("/a/b/seg=7", false, "/a/b"), segment(7, false));
        assert_eq!(asked("/a/b/v=5/seg=7", false, "/a/b"), Asked::Absent);
        assert_eq!(asked("/a/b", true, "/a/b"), Asked::AnySegment);
    }

    #[test]
    fn a_nack_has_the_name_asked_for_and_the_end_and_little_freshness() {
        let name: NameBuf = "/a/b/v=5/seg=7".parse().unwrap();
        let wire = application_nack(name.as_name(), Some(3), &Signer::digest()).unwrap().unwrap();
        let data = Data::parse(&wire).unwrap();
        assert_eq!((data.name().to_buf(), data.content_type(), data.freshness_ms()), (name, content_type::NACK, 1));
        assert_eq!(data.final_block_id().and_then(|last| last.segment()), Some(3));
        assert!(data.verify_digest_sha256() && data.content().is_empty());
        let digest: NameBuf = format!("/a/sha256digest={}", "0".repeat(64)).parse().unwrap();
        assert_eq!(application_nack(digest.as_name(), None, &Signer::digest()).unwrap(), None);
        let mut long = NameBuf::new();
        long.push_generic(&vec![0; MAX_PACKET_BYTES - 40]);
        assert_eq!(application_nack(long.as_name(), None, &Signer::digest()).unwrap(), None);
    }

    #[test]
    fn metadata_names_the_version() {
        let (object, versioned) = ("/a/b".parse().unwrap(), "/a/b/v=5".parse().unwrap());
        let wire = metadata(&object, &versioned, &Signer::digest()).unwrap();
        let data = Data::parse(&wire).unwrap();
        assert!(metadata_name(&object).as_name().is_prefix_of(&data.name()));
        assert_eq!(name_in_metadata(data.content()), Some(versioned));
        assert_eq!(name_in_metadata(b""), None);
        assert_eq!(name_in_metadata(&[7, 0]), None, "the empty name");
    }
}
