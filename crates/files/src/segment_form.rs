//! How a served folder cuts its objects into segments, and which digests these have.
//!
//! A name that leaves little room in a packet gets smaller segments. Segments that a manifest lists are signed by
//! digest, so their bytes, and with them the digests, are the same each time.

use crate::served_object::{Object, Refusal};
use namewire_client::{
    manifest::{self, Digest, content_digest},
    security::{SignError, Signer},
};
use namewire_packet::{Data, DataBuilder, MAX_PACKET_BYTES, NameBuf};

/// Fewest bytes of content in a segment; a longer name is not served.
pub(crate) const SEGMENT_BYTES_LEAST: usize = 256;
/// Bytes by which signatures of one key, and lengths of elements, may differ.
const PACKET_SLACK_BYTES: usize = 24;

/// What the segments of a folder have in common.
pub(crate) struct SegmentForm {
    segment_bytes_max: usize,
    freshness_ms: u64,
    signer: Signer,
    /// Bytes of a segment besides its name and content.
    overhead_bytes: usize,
}

impl SegmentForm {
    /// Segments of at most `segment_bytes_max` bytes of content, signed by `signer`.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub(crate) fn new(segment_bytes_max: usize, freshness_ms: u64, signer: Signer) -> Result<Self, SignError> {
        let mut widest = NameBuf::new();
        widest.push_segment(u64::MAX);
        let empty = DataBuilder::new(widest).freshness_ms(freshness_ms).final_segment(u64::MAX).content(b"");
        let overhead_bytes = signer.sign_data(&empty)?.len() + PACKET_SLACK_BYTES;
        Ok(SegmentForm { segment_bytes_max, freshness_ms, signer, overhead_bytes })
    }

    /// Bytes of content that a segment of this name can have.
    pub(crate) fn segment_bytes(&self, versioned_name: &NameBuf) -> Result<usize, Refusal> {
        let room = MAX_PACKET_BYTES.saturating_sub(self.overhead_bytes + versioned_name.value().len());
        match room {
            0..SEGMENT_BYTES_LEAST => Err(Refusal::NameTooLong),
            _ => Ok(room.min(self.segment_bytes_max)),
        }
    }

    /// Reads a segment, and makes its packet.
    pub(crate) fn segment(&self, object: &Object, segment: u64) -> Result<Vec<u8>, Refusal> {
        let content = object.read(segment).map_err(|_| Refusal::Unreadable)?.ok_or(Refusal::Gone)?;
        let mut name = object.versioned_name.clone();
        name.push_segment(segment);
        let data = DataBuilder::new(name)
            .freshness_ms(self.freshness_ms)
            .final_segment(object.last_segment())
            .content(&content);
        Ok(self.signer.sign_data(&data)?)
    }

    /// The packets of the manifest of `object`, which also lists `entries`. `signer` signs the first.
    pub(crate) fn manifest(
        &self,
        object: &Object,
        entries: &[Digest],
        signer: &Signer,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut digests = self.digests(object)?;
        digests.extend_from_slice(entries);
        let packets = manifest::packets(&object.versioned_name, &digests, self.freshness_ms, signer)?;
        if packets.iter().all(|packet| packet.len() <= MAX_PACKET_BYTES) {
            Ok(packets)
        } else {
            Err(Refusal::NameTooLong)
        }
    }

    /// The digest by which the manifest of a folder knows the content of a file in it.
    pub(crate) fn content_of_file(&self, object: &Object) -> Result<Digest, Refusal> {
        match object.last_segment() {
            0 => Ok(self.digest(object, 0)?),
            _ => self.content_of_folder(object, &[]),
        }
    }

    /// The same for a folder, whose manifest lists `entries`.
    pub(crate) fn content_of_folder(&self, listing: &Object, entries: &[Digest]) -> Result<Digest, Refusal> {
        let packets = self.manifest(listing, entries, &Signer::digest())?;
        Ok(content_digest(&Data::parse(&packets[0]).expect("just encoded, and there is always a segment")))
    }

    fn digests(&self, object: &Object) -> Result<Vec<Digest>, Refusal> {
        (0..=object.last_segment()).map(|segment| self.digest(object, segment)).collect()
    }

    fn digest(&self, object: &Object, segment: u64) -> Result<Digest, Refusal> {
        let wire = self.segment(object, segment)?;
        Ok(Data::parse(&wire).expect("just encoded").implicit_digest())
    }
}
