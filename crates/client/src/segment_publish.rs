//! Serves a file or bytes as a segmented object.
//!
//! A segment is `/<object>/v=<version>/seg=<n>` (the version can be left out), has a FinalBlockId, and is signed by
//! DigestSha256 or by a key. Three kinds of Interest are answered: a segment's name; a prefix of the first segment's
//! name that includes the object's name (discovery); and `/<object>/32=metadata` (RDR, FreshnessPeriod
//! [`METADATA_FRESHNESS_MS`]). Other Interests get no answer.
//!
//! Segments are built on their first request; the last [`PublishOptions::cache_bytes`] of them are kept. Files are read
//! in place, a segment at a time: the page cache answers in microseconds, faster than another thread could.

use crate::{
    client::Client,
    incoming_interest::{ReplyBatch, RespondError},
    producer::{InterestStream, ServeError},
    version_discovery::METADATA,
};
use namewire_packet::{DataBuilder, Interest, NameBuf};
use namewire_security::{SignError, Signer};
use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes of content in a segment by default.
pub const SEGMENT_BYTES_DEFAULT: usize = 8000;
/// Most bytes of content in a segment; the rest of the 8800 bytes of a packet is for name, signature and headers.
pub const SEGMENT_BYTES_MAX: usize = 8192;
/// FreshnessPeriod of metadata, in milliseconds: long enough to answer, too short to mislead.
pub const METADATA_FRESHNESS_MS: u64 = 10;

/// Interests that are answered with one call.
const SERVED_TOGETHER_MAX: usize = 64;
/// Most bytes by which one ECDSA signature may be longer than another (two numbers in DER without leading zeros), with
/// some slack.
const SIGNATURE_LENGTH_SLACK_BYTES: usize = 8;

/// How an object is published.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Version; `None` = microseconds since 1970.
    pub version: Option<u64>,
    /// False: the names of segments have no version, as repositories' clients have it.
    pub is_versioned: bool,
    /// Bytes of content in each segment, 1 to [`SEGMENT_BYTES_MAX`].
    pub segment_bytes: usize,
    /// FreshnessPeriod of segments, in milliseconds.
    pub freshness_ms: u64,
    /// Bytes of built segments to keep.
    pub cache_bytes: usize,
    /// Signs segments and metadata.
    pub signer: Signer,
}

impl Default for PublishOptions {
    fn default() -> Self {
        PublishOptions {
            version: None,
            is_versioned: true,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            freshness_ms: 10_000,
            cache_bytes: 16 * 1024 * 1024,
            signer: Signer::digest(),
        }
    }
}

/// Why an object cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The segment size is not from 1 to [`SEGMENT_BYTES_MAX`].
    #[error("a segment can have 1 to 8192 bytes, not {0}")]
    BadSegmentSize(usize),
    /// The name leaves no room for the content.
    #[error(
        "the name is so long that a segment of {segment_bytes} bytes makes a packet of {packet_bytes}, more than 8800"
    )]
    PacketTooLarge {
        /// Content of a segment.
        segment_bytes: usize,
        /// Size of such a packet.
        packet_bytes: usize,
    },
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
}

enum Source {
    File(File),
    Bytes(Arc<[u8]>),
}

/// Counters of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishCounters {
    /// Interests received.
    pub interests: u64,
    /// Segments sent.
    pub segments: u64,
    /// Bytes of content sent.
    pub bytes: u64,
    /// Metadata packets sent.
    pub metadata: u64,
    /// Interests for content that does not exist.
    pub not_found: u64,
    /// Segments that could not be read: the file changed or was removed.
    pub read_errors: u64,
    /// Packets that could not be signed.
    pub sign_errors: u64,
}

/// An object ready to be served.
pub struct SegmentPublisher {
    source: Source,
    size_bytes: u64,
    name: NameBuf,
    versioned_name: NameBuf,
    options: PublishOptions,
    cache: HashMap<u64, Arc<[u8]>>,
    cache_order: VecDeque<u64>,
    cache_used_bytes: usize,
    counters: PublishCounters,
}

impl SegmentPublisher {
    /// Publishes a file under `name`. Its size is fixed now.
    ///
    /// # Errors
    /// If the file cannot be opened or the options do not fit.
    pub fn of_file(path: &Path, name: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        let failed = |error| PublishError::File { path: path.display().to_string(), error };
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        Self::new(Source::File(file), meta.len(), name, options)
    }

    /// Publishes bytes under `name`.
    ///
    /// # Errors
    /// If the options do not fit.
    pub fn of_bytes(bytes: &[u8], name: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        Self::new(Source::Bytes(bytes.into()), bytes.len() as u64, name, options)
    }

    fn new(source: Source, size_bytes: u64, name: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        if options.segment_bytes == 0 || options.segment_bytes > SEGMENT_BYTES_MAX {
            return Err(PublishError::BadSegmentSize(options.segment_bytes));
        }
        let version = options
            .version
            .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64));
        let mut versioned_name = name.clone();
        if options.is_versioned {
            versioned_name.push_version(version);
        }
        let publisher = SegmentPublisher {
            source,
            size_bytes,
            name: name.clone(),
            versioned_name,
            options,
            cache: HashMap::new(),
            cache_order: VecDeque::new(),
            cache_used_bytes: 0,
            counters: PublishCounters::default(),
        };
        let slack_bytes =
            if publisher.options.signer.key_locator().is_some() { SIGNATURE_LENGTH_SLACK_BYTES } else { 0 };
        let largest = publisher.encode(u64::MAX, &vec![0; publisher.options.segment_bytes])?;
        let packet_bytes = largest.len() + slack_bytes;
        if packet_bytes > namewire_packet::MAX_PACKET_BYTES {
            return Err(PublishError::PacketTooLarge { segment_bytes: publisher.options.segment_bytes, packet_bytes });
        }
        Ok(publisher)
    }

    /// Name up to the version, or without one.
    pub fn versioned_name(&self) -> &NameBuf {
        &self.versioned_name
    }

    /// Bytes of content.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Number of segments; an empty object has one.
    pub fn segments(&self) -> u64 {
        self.size_bytes.div_ceil(self.options.segment_bytes as u64).max(1)
    }

    /// The counters since the publisher was created.
    pub fn counters(&self) -> PublishCounters {
        self.counters
    }

    /// Registers the name, and opens the stream of Interests for this object.
    ///
    /// # Errors
    /// If the client serves this name already, or the forwarder refuses the route.
    pub async fn open(&self, client: &Client) -> Result<InterestStream, ServeError> {
        client.interests(&self.name).await
    }

    /// Answers Interests until the stream ends. `progress` is called after each answer.
    ///
    /// # Errors
    /// If an answer cannot be sent.
    pub async fn serve(
        &mut self,
        interests: &mut InterestStream,
        mut progress: impl FnMut(&PublishCounters),
    ) -> Result<(), RespondError> {
        let (mut batch, mut replies) = (Vec::new(), ReplyBatch::default());
        while interests.next_batch(&mut batch, SERVED_TOGETHER_MAX).await > 0 {
            for incoming in batch.drain(..) {
                if let Some(wire) = self.answer(&incoming.interest()) {
                    replies.push_data(&incoming, &wire);
                }
                progress(&self.counters);
            }
            match interests.client().send_replies(&mut replies).await {
                // The stream comes back with other Interests, or ends.
                Ok(()) | Err(RespondError::Closed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The Data that answers `interest`, if there is one.
    pub fn answer(&mut self, interest: &Interest<'_>) -> Option<Arc<[u8]>> {
        self.counters.interests += 1;
        let name = interest.name();
        let tail_at = self.versioned_name.len();
        if name.get(self.name.len()) == Some(METADATA) && self.name.as_name().is_prefix_of(&name) {
            // `/<object>/32=metadata` itself; caches answer for its versions.
            if interest.can_be_prefix() && name.len() == self.name.len() + 1 {
                let metadata = self.metadata();
                let wire = self.signed(metadata)?;
                self.counters.metadata += 1;
                return Some(wire.into());
            }
        } else if self.versioned_name.as_name().is_prefix_of(&name) && name.len() > tail_at {
            // The segment, perhaps with its digest; the forwarder compares that.
            if let Some(segment) = name.get(tail_at).and_then(|component| component.segment())
                && name.len() <= tail_at + 2
                && segment < self.segments()
            {
                return self.segment(segment);
            }
        } else if interest.can_be_prefix()
            && self.name.as_name().is_prefix_of(&name)
            && name.is_prefix_of(&self.versioned_name.as_name())
        {
            return self.segment(0);
        }
        self.counters.not_found += 1;
        None
    }

    fn segment(&mut self, segment: u64) -> Option<Arc<[u8]>> {
        let wire = match self.cache.get(&segment) {
            Some(wire) => Arc::clone(wire),
            None => {
                let Ok(content) = self.read(segment) else {
                    self.counters.read_errors += 1;
                    return None;
                };
                let encoded = self.encode(segment, &content);
                let wire: Arc<[u8]> = self.signed(encoded)?.into();
                self.keep(segment, &wire);
                wire
            }
        };
        self.counters.segments += 1;
        self.counters.bytes += self.content_range(segment).1 as u64;
        Some(wire)
    }

    /// The packet; `None`, and counted, if it could not be signed.
    fn signed(&mut self, result: Result<Vec<u8>, SignError>) -> Option<Vec<u8>> {
        self.counters.sign_errors += u64::from(result.is_err());
        result.ok()
    }

    /// Offset and length of a segment's content.
    fn content_range(&self, segment: u64) -> (u64, usize) {
        let offset = segment * self.options.segment_bytes as u64;
        let rest = self.size_bytes.saturating_sub(offset);
        (offset, rest.min(self.options.segment_bytes as u64) as usize)
    }

    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        let (offset, length) = self.content_range(segment);
        match &self.source {
            Source::Bytes(bytes) => Ok(bytes[offset as usize..offset as usize + length].to_vec()),
            Source::File(file) => {
                let mut content = vec![0; length];
                file.read_exact_at(&mut content, offset)?;
                Ok(content)
            }
        }
    }

    fn encode(&self, segment: u64, content: &[u8]) -> Result<Vec<u8>, SignError> {
        let mut name = self.versioned_name.clone();
        name.push_segment(segment);
        // The size check at the start asks for the largest possible numbers.
        let last = if segment == u64::MAX { u64::MAX } else { self.segments() - 1 };
        let data = DataBuilder::new(name).freshness_ms(self.options.freshness_ms).final_segment(last).content(content);
        self.options.signer.sign_data(&data)
    }

    fn metadata(&self) -> Result<Vec<u8>, SignError> {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64);
        let mut name = self.name.join(METADATA);
        name.push_version(now_us).push_segment(0);
        let mut content = Vec::new();
        self.versioned_name.as_name().write_tlv(&mut content);
        let data = DataBuilder::new(name).freshness_ms(METADATA_FRESHNESS_MS).final_segment(0).content(&content);
        self.options.signer.sign_data(&data)
    }

    fn keep(&mut self, segment: u64, wire: &Arc<[u8]>) {
        self.cache_used_bytes += wire.len();
        self.cache.insert(segment, Arc::clone(wire));
        self.cache_order.push_back(segment);
        while self.cache_used_bytes > self.options.cache_bytes {
            let Some(oldest) = self.cache_order.pop_front() else { break };
            self.cache_used_bytes -= self.cache.remove(&oldest).map_or(0, |wire| wire.len());
        }
    }
}
