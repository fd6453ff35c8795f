//! Manifests: one signature for all segments of an object.
//!
//! Signing each segment by a key costs its producer and its consumers some 30 µs and 100 µs (ECDSA), ten times the rest
//! of their work. A manifest lists the implicit digests of the segments, and is signed once:
//!
//! ```text
//! /<object>/v=<version>/32=manifest/seg=0   signed by the key; digest of seg=1 here, digests of segments 0 to 238
//! /<object>/v=<version>/32=manifest/seg=1   DigestSha256;      digest of seg=2 here, digests of segments 239 to 477
//! …                                         the last has no digest of a next one, and a FinalBlockId
//! /<object>/v=<version>/seg=<n>             DigestSha256
//! ```
//!
//! Each packet is known by the one before, so the one signature covers them all, and a consumer checks segments while
//! they arrive. Packets have ContentType 4 (Manifest); their Content is a sequence of ImplicitSha256DigestComponents.
//! There is no agreed manifest in the NDN ecosystem; this one uses its packet types only.
//!
//! The first packet need not be judged by its signature. Another signed packet can name the SHA-256 of its content
//! ([`Manifest::of_content`]), or the digest of an only segment ([`Manifest::of_segment`]); the manifest of a folder
//! does so for what is in it. The digests behind those of the segments are such names ([`Manifest::rest`]).
//!
//! Cost: the producer reads the object once before it serves the manifest, and keeps 34 bytes for each segment; the
//! consumer hashes each segment, and waits a round trip for each 239 segments.

use crate::{
    ExpressError,
    client::Client,
    connection::Backoff,
    fetch_options::{FetchError, FetchOptions, require_trust},
};
use namewire_packet::{
    Component, Data, DataBuilder, InterestBuilder, MAX_PACKET_BYTES, NameBuf, content_type,
    digest::sha256,
    tlv::{self, types},
};
use namewire_security::{SignError, Signer};
use std::time::Duration;
use tokio::time::timeout;

/// The keyword component of manifests.
pub const MANIFEST: Component<'static> = Component { type_number: types::KEYWORD_COMPONENT, value: b"manifest" };
/// Digests of segments in one packet, at most: with their headers and that of the next packet some 8,200 bytes.
const SEGMENTS_PER_PACKET: usize = 239;
const DIGEST_BYTES: usize = 32;
/// Bytes of a packet for all but name and content, so that the content does not depend on the key.
const SIGNATURE_BYTES: usize = 600;
/// Attempts for a packet of a manifest, for the first of one that may not exist, and how long each waits.
const ATTEMPTS: u32 = 5;
const FIRST_ATTEMPTS: u32 = 2;
const ATTEMPT_WAIT: Duration = Duration::from_secs(1);

/// Pause after a Nack.
const NACK_PAUSE: Duration = Duration::from_millis(100);

/// A SHA-256.
pub type Digest = [u8; DIGEST_BYTES];

/// The packets of a manifest of `versioned_name` that lists `digests`: those of its segments, and perhaps more behind
/// them. `signer` signs the first.
///
/// # Errors
/// If the key cannot sign.
pub fn packets(
    versioned_name: &NameBuf,
    digests: &[Digest],
    freshness_ms: u64,
    signer: &Signer,
) -> Result<Vec<Vec<u8>>, SignError> {
    let mut last_name = versioned_name.join(MANIFEST);
    last_name.push_segment(u64::MAX);
    let room = MAX_PACKET_BYTES.saturating_sub(SIGNATURE_BYTES + last_name.value().len()) / (DIGEST_BYTES + 2);
    let lists: Vec<&[Digest]> = digests.chunks(room.saturating_sub(1).clamp(1, SEGMENTS_PER_PACKET)).collect();
    let last = lists.len().saturating_sub(1) as u64;
    let mut packets = Vec::with_capacity(lists.len());
    let mut next: Option<Digest> = None;
    for (number, list) in lists.iter().enumerate().rev() {
        let mut content = Vec::with_capacity((list.len() + 1) * (DIGEST_BYTES + 2));
        for digest in next.iter().chain(*list) {
            tlv::write_tlv(&mut content, types::IMPLICIT_SHA256_DIGEST, digest);
        }
        let mut name = versioned_name.join(MANIFEST);
        name.push_segment(number as u64);
        let data = DataBuilder::new(name).content_type(content_type::MANIFEST).freshness_ms(freshness_ms);
        let data = data.final_segment(last).content(&content);
        let wire = if number == 0 { signer.sign_data(&data)? } else { data.sign_digest() };
        next = Data::parse(&wire).ok().map(|data| data.implicit_digest());
        packets.push(wire);
    }
    packets.reverse();
    Ok(packets)
}

/// The SHA-256 of the content of a packet.
pub fn content_digest(packet: &Data<'_>) -> Digest {
    sha256(&[packet.content()])
}

/// How the first packet is judged.
#[derive(Clone, Copy, Debug, Default)]
enum Head {
    /// By the validator of the fetch. Without such a packet there is no manifest.
    #[default]
    Signed,
    /// By the SHA-256 of its content.
    Content(Digest),
    /// It does not exist: the only digest is known.
    None,
}

/// A manifest as far as a consumer has it. The default is one whose first packet a key has signed, or that does not
/// exist.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    head: Head,
    /// Of the segments from the first on, then others.
    digests: Vec<Digest>,
    packets: u64,
    /// Of the packet that comes next.
    next: Option<Digest>,
    is_complete: bool,
    /// The object has none.
    is_absent: bool,
}

impl Manifest {
    /// A manifest whose first packet has content of this SHA-256.
    pub fn of_content(digest: Digest) -> Self {
        Manifest { head: Head::Content(digest), ..Manifest::default() }
    }

    /// That of an object of one segment, which has this implicit digest.
    pub fn of_segment(digest: Digest) -> Self {
        Manifest { head: Head::None, digests: vec![digest], is_complete: true, ..Manifest::default() }
    }

    /// True if there is one: it is required, or a part of it has come.
    pub fn exists(&self) -> bool {
        self.is_required() || self.packets > 0
    }

    /// True if the object must have one: no other signature counts.
    pub(crate) fn is_required(&self) -> bool {
        !matches!(self.head, Head::Signed)
    }

    /// Checks a segment of `versioned_name`, and fetches as much of the manifest as that needs. False if the object has
    /// no manifest; nobody is asked for it again then.
    ///
    /// # Errors
    /// If a part of the manifest does not come, or is not accepted, or it lists another segment.
    pub(crate) async fn check(
        &mut self,
        client: &Client,
        options: &FetchOptions,
        hint: &[NameBuf],
        versioned_name: &NameBuf,
        (segment, data): (u64, &Data<'_>),
    ) -> Result<bool, FetchError> {
        while self.digests.len() as u64 <= segment && !self.is_complete && !self.is_absent {
            match self.fetch_next(client, options, hint, versioned_name).await {
                Err(FetchError::NotFound { .. } | FetchError::ApplicationNack(_)) if !self.exists() => {
                    self.is_absent = true;
                }
                fetched => fetched?,
            }
        }
        if self.is_absent {
            return Ok(false);
        }
        let listed = usize::try_from(segment).ok().and_then(|segment| self.digests.get(segment));
        match listed {
            Some(listed) if *listed == data.implicit_digest() => Ok(true),
            _ => Err(FetchError::NotInManifest(data.name().to_buf())),
        }
    }

    /// The digests behind those of the object's `segments` segments, at most `count_max`. Fetches what is missing of
    /// the manifest.
    ///
    /// # Errors
    /// If a part of the manifest does not come, or is not accepted, or there are more digests.
    pub async fn rest(
        &mut self,
        client: &Client,
        options: &FetchOptions,
        versioned_name: &NameBuf,
        segments: usize,
        count_max: usize,
    ) -> Result<&[Digest], FetchError> {
        loop {
            let count = self.digests.len().saturating_sub(segments);
            if count > count_max || (self.is_complete && self.digests.len() < segments) {
                return Err(FetchError::NotInManifest(versioned_name.join(MANIFEST)));
            }
            if self.is_complete {
                return Ok(&self.digests[segments..]);
            }
            self.fetch_next(client, options, options.hint_of(0), versioned_name).await?;
        }
    }

    async fn fetch_next(
        &mut self,
        client: &Client,
        options: &FetchOptions,
        hint: &[NameBuf],
        versioned_name: &NameBuf,
    ) -> Result<(), FetchError> {
        let mut name = versioned_name.join(MANIFEST);
        name.push_segment(self.packets);
        let mut interest = InterestBuilder::new(name.clone());
        if !hint.is_empty() {
            interest = interest.forwarding_hint(hint);
        }
        let (mut missing, mut backoff) = (ExpressError::Timeout(ATTEMPT_WAIT.as_millis() as u64), Backoff::default());
        let mut attempts = if self.exists() { ATTEMPTS } else { FIRST_ATTEMPTS };
        while attempts > 0 {
            attempts -= 1;
            match timeout(ATTEMPT_WAIT, client.express(&interest)).await {
                Ok(Ok(packet)) => return self.add(client, options, &packet.data()).await,
                Ok(Err(ExpressError::Closed(_))) if options.can_reconnect() => {
                    let came_back = client.come_back_within(options.reconnect, &mut backoff).await;
                    came_back.map_err(FetchError::Connection)?;
                    attempts += 1;
                }
                Ok(Err(error)) => {
                    missing = error;
                    tokio::time::sleep(NACK_PAUSE).await;
                }
                Err(_) => {}
            }
        }
        Err(FetchError::NotFound { name, cause: missing })
    }

    async fn add(&mut self, client: &Client, options: &FetchOptions, data: &Data<'_>) -> Result<(), FetchError> {
        let name = || data.name().to_buf();
        match data.content_type() {
            content_type::NACK => return Err(FetchError::ApplicationNack(name())),
            content_type::MANIFEST => {}
            _ => return Err(FetchError::NotInManifest(name())),
        }
        let is_listed = match (self.next.take(), self.head) {
            (Some(next), _) => next == data.implicit_digest(),
            (None, Head::Content(digest)) => digest == content_digest(data),
            (None, Head::Signed | Head::None) => require_trust(client, options, data).await.map(|()| true)?,
        };
        if !is_listed {
            return Err(FetchError::NotInManifest(name()));
        }
        let last = data.final_block_id().and_then(|component| component.segment());
        self.is_complete = last.is_none_or(|last| self.packets >= last);
        let mut digests = read_digests(data.content()).ok_or_else(|| FetchError::NotInManifest(name()))?.into_iter();
        if !self.is_complete {
            self.next = Some(digests.next().ok_or_else(|| FetchError::NotInManifest(name()))?);
        }
        self.digests.extend(digests);
        self.packets += 1;
        Ok(())
    }
}

/// The digests that this content is; `None` if it is anything else.
fn read_digests(mut content: &[u8]) -> Option<Vec<Digest>> {
    let mut digests = Vec::with_capacity(content.len() / (DIGEST_BYTES + 2));
    while !content.is_empty() {
        let element = tlv::read_element(content).ok()?;
        if element.type_number != types::IMPLICIT_SHA256_DIGEST {
            return None;
        }
        digests.push(element.value.try_into().ok()?);
        content = &content[element.wire.len()..];
    }
    Some(digests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(count: usize) -> Vec<Digest> {
        (0..count).map(|number| namewire_packet::digest::sha256(&[&number.to_be_bytes()])).collect()
    }

    #[test]
    fn the_packets_lead_to_each_other_and_list_all_segments() {
        let name: NameBuf = "/film/v=1".parse().unwrap();
        for count in [1, 239, 240, 1000] {
            let segments = digests(count);
            let packets = packets(&name, &segments, 1000, &Signer::digest()).unwrap();
            assert_eq!(packets.len(), count.div_ceil(SEGMENTS_PER_PACKET));
            let mut listed = Vec::new();
            for (number, wire) in packets.iter().enumerate() {
                assert!(wire.len() <= namewire_packet::MAX_PACKET_BYTES, "{}", wire.len());
                let data = Data::parse(wire).unwrap();
                assert_eq!(data.name().to_string(), format!("/film/v=1/32=manifest/seg={number}"));
                let mut list = read_digests(data.content()).unwrap();
                if let Some(next) = packets.get(number + 1) {
                    assert_eq!(list.remove(0), Data::parse(next).unwrap().implicit_digest());
                }
                listed.append(&mut list);
            }
            assert!(listed == segments);
        }
    }

    #[test]
    fn a_long_name_leaves_room_for_fewer_digests() {
        let mut name = NameBuf::new();
        (0..20).for_each(|_| {
            name.push_generic(&[b'n'; 250]);
        });
        for wire in packets(&name, &digests(300), 1000, &Signer::digest()).unwrap() {
            assert!(wire.len() <= MAX_PACKET_BYTES - SIGNATURE_BYTES / 2, "{}", wire.len());
        }
    }

    #[test]
    fn only_digests_are_digests() {
        assert_eq!(read_digests(&[]), Some(Vec::new()));
        let mut content = Vec::new();
        tlv::write_tlv(&mut content, types::IMPLICIT_SHA256_DIGEST, &[7; 32]);
        assert_eq!(read_digests(&content), Some(vec![[7; 32]]));
        assert_eq!(read_digests(&content[..33]), None);
        tlv::write_tlv(&mut content, types::IMPLICIT_SHA256_DIGEST, &[7; 31]);
        assert_eq!(read_digests(&content), None);
        let mut other = Vec::new();
        tlv::write_tlv(&mut other, types::NAME, &[7; 32]);
        assert_eq!(read_digests(&other), None);
    }
}
