//! Serves a file or bytes as a segmented object.
//!
//! A segment is `/<object>/v=<version>/seg=<n>` (the version can be left out), has a FinalBlockId, and is signed by
//! DigestSha256 or by a key. [`crate::object_protocol`] has the table of the Interests and their answers: segments,
//! metadata (RDR), and application Nacks for names below the object that do not exist.
//!
//! Segments are built on their first request; the last [`PublishOptions::cache_bytes`] of them are kept. Files are read
//! in place, a segment at a time: the page cache answers in microseconds, faster than another thread could.
//!
//! A version is one content. After each read of a file, its size and modification time must be those of the start.
//! Otherwise the segment gets an application Nack, and so does every later one that is not kept:
//! [`SegmentPublisher::has_changed`]. Limit: the kernel's clock ticks every few milliseconds, so a change right after
//! another one may not be seen. A file that may be changing is opened when its modification time is 20 ms old
//! (`namewire_files` does so).

use crate::{
    client::Client,
    incoming_interest::{Reply, ReplyBatch, RespondError},
    manifest,
    object_protocol::{Asked, application_nack, metadata},
    producer::{InterestStream, ServeError},
};
use namewire_packet::{Data, DataBuilder, Interest, Name, NameBuf};
use namewire_security::{SignError, Signer};
use std::{
    collections::{HashMap, VecDeque},
    fs::{File, Metadata},
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

/// Interests that are answered with one call.
const SERVED_TOGETHER_MAX: usize = 64;
/// Most bytes by which one ECDSA signature may be longer than another (two numbers in DER without leading zeros), with
/// some slack.
const SIGNATURE_LENGTH_SLACK_BYTES: usize = 8;

/// How an object is published.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Version. `None`: the time of a file's last change, or for bytes the time now, in microseconds since 1970.
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
    /// The object is read once at the start, and has a manifest that the key signs in place of the segments (file
    /// `manifest.rs`).
    pub has_manifest: bool,
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
            has_manifest: false,
        }
    }
}

impl PublishOptions {
    /// The Data of a segment. `last` is the number of the last one, if that is known.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn encode_segment(
        &self,
        versioned_name: &NameBuf,
        segment: u64,
        last: Option<u64>,
        content: &[u8],
    ) -> Result<Vec<u8>, SignError> {
        let mut name = versioned_name.clone();
        name.push_segment(segment);
        let mut data = DataBuilder::new(name).freshness_ms(self.freshness_ms).content(content);
        if let Some(last) = last {
            data = data.final_segment(last);
        }
        if self.has_manifest { Ok(data.sign_digest()) } else { self.signer.sign_data(&data) }
    }

    /// Checks that segments below this name fit into packets, whatever their numbers.
    ///
    /// # Errors
    /// If they do not, or if the key cannot sign.
    pub fn check_fit(&self, versioned_name: &NameBuf) -> Result<(), PublishError> {
        let segment_bytes = self.segment_bytes;
        if segment_bytes == 0 || segment_bytes > SEGMENT_BYTES_MAX {
            return Err(PublishError::BadSegmentSize(segment_bytes));
        }
        let slack_bytes = if self.signer.key_locator().is_some() { SIGNATURE_LENGTH_SLACK_BYTES } else { 0 };
        let content = vec![0; segment_bytes];
        let largest = self.encode_segment(versioned_name, u64::MAX, Some(u64::MAX), &content)?;
        let packet_bytes = largest.len() + slack_bytes;
        if packet_bytes > namewire_packet::MAX_PACKET_BYTES {
            return Err(PublishError::PacketTooLarge { segment_bytes, packet_bytes });
        }
        Ok(())
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
    /// The content changed, or could not be read, while the manifest was made.
    #[error("the file changed, or cannot be read, while its manifest was made")]
    NoManifest,
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
}

enum Source {
    File {
        file: File,
        /// At the start.
        modified: SystemTime,
    },
    Bytes(Arc<[u8]>),
}

/// Microseconds from 1970 to `time`; 0 if it was earlier.
pub fn version_of_time(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64)
}

/// Why a segment was not read.
enum NotRead {
    Changed,
    Failed,
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
    /// Interests for segments of a file that has changed since the start.
    pub changed: u64,
    /// Application Nacks sent.
    pub application_nacks: u64,
    /// Segments that could not be read.
    pub read_errors: u64,
    /// Packets that could not be signed.
    pub sign_errors: u64,
}

impl std::ops::AddAssign for PublishCounters {
    fn add_assign(&mut self, other: Self) {
        self.interests += other.interests;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.metadata += other.metadata;
        self.not_found += other.not_found;
        self.changed += other.changed;
        self.application_nacks += other.application_nacks;
        self.read_errors += other.read_errors;
        self.sign_errors += other.sign_errors;
    }
}

/// An object ready to be served.
pub struct SegmentPublisher {
    source: Source,
    size_bytes: u64,
    name: NameBuf,
    versioned_name: NameBuf,
    options: PublishOptions,
    /// Empty: there is none.
    manifest: Vec<Arc<[u8]>>,
    cache: HashMap<u64, Arc<[u8]>>,
    cache_order: VecDeque<u64>,
    cache_used_bytes: usize,
    has_changed: bool,
    counters: PublishCounters,
}

impl SegmentPublisher {
    /// Publishes a file under `name`. Its content is fixed now: see the module for a file that changes.
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
        Self::of_open_file(file, &meta, name, options)
    }

    /// Publishes a regular file that is open, and was as `metadata` tells.
    ///
    /// # Errors
    /// If the options do not fit.
    pub fn of_open_file(
        file: File,
        metadata: &Metadata,
        name: &NameBuf,
        mut options: PublishOptions,
    ) -> Result<Self, PublishError> {
        // Every file system that we know has this time.
        let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
        options.version.get_or_insert(version_of_time(modified));
        Self::new(Source::File { file, modified }, metadata.len(), name, options)
    }

    /// Publishes bytes under `name`.
    ///
    /// # Errors
    /// If the options do not fit.
    pub fn of_bytes(bytes: &[u8], name: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        Self::new(Source::Bytes(bytes.into()), bytes.len() as u64, name, options)
    }

    fn new(source: Source, size_bytes: u64, name: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        let version = options.version.unwrap_or_else(|| version_of_time(SystemTime::now()));
        let mut versioned_name = name.clone();
        if options.is_versioned {
            versioned_name.push_version(version);
        }
        options.check_fit(&versioned_name)?;
        let mut publisher = SegmentPublisher {
            source,
            size_bytes,
            name: name.clone(),
            versioned_name,
            options,
            manifest: Vec::new(),
            cache: HashMap::new(),
            cache_order: VecDeque::new(),
            cache_used_bytes: 0,
            has_changed: false,
            counters: PublishCounters::default(),
        };
        if publisher.options.has_manifest {
            publisher.manifest = publisher.make_manifest()?;
        }
        Ok(publisher)
    }

    /// Reads the object once for the digests of its segments.
    fn make_manifest(&self) -> Result<Vec<Arc<[u8]>>, PublishError> {
        let last = Some(self.segments() - 1);
        let mut digests = Vec::with_capacity(self.segments() as usize);
        for segment in 0..self.segments() {
            let content = self.read(segment).map_err(|_| PublishError::NoManifest)?;
            let wire = self.options.encode_segment(&self.versioned_name, segment, last, &content)?;
            digests.push(Data::parse(&wire).expect("just encoded").implicit_digest());
        }
        let options = &self.options;
        let packets = manifest::packets(&self.versioned_name, &digests, options.freshness_ms, &options.signer)?;
        Ok(packets.into_iter().map(Arc::from).collect())
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

    /// True once a read has shown that the file is not what it was. Only kept segments are served then.
    pub fn has_changed(&self) -> bool {
        self.has_changed
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
                let reply = self.answer(&incoming.interest());
                replies.push(&incoming, &reply);
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

    /// The answer to `interest`.
    pub fn answer(&mut self, interest: &Interest<'_>) -> Reply {
        self.counters.interests += 1;
        match Asked::of(interest, &self.name, &self.versioned_name) {
            Asked::Metadata => {
                let metadata = metadata(&self.name, &self.versioned_name, &self.options.signer);
                let Some(wire) = self.signed(metadata) else { return Reply::Nothing };
                self.counters.metadata += 1;
                Reply::Data(wire.into())
            }
            Asked::AnySegment => self.segment(0, interest.name()),
            Asked::Segment { segment, .. } if segment < self.segments() => self.segment(segment, interest.name()),
            Asked::Segment { .. } => {
                self.counters.not_found += 1;
                self.nack(interest.name(), Some(self.segments() - 1))
            }
            Asked::Manifest(packet) if packet < self.manifest.len() as u64 => {
                Reply::Data(Arc::clone(&self.manifest[packet as usize]))
            }
            Asked::Absent | Asked::Manifest(_) => {
                self.counters.not_found += 1;
                self.nack(interest.name(), None)
            }
            Asked::Unanswerable => {
                self.counters.not_found += 1;
                Reply::Nothing
            }
        }
    }

    fn segment(&mut self, segment: u64, asked: Name<'_>) -> Reply {
        let wire = match self.cache.get(&segment) {
            Some(wire) => Arc::clone(wire),
            None => {
                let content = match self.read(segment) {
                    Ok(content) => content,
                    Err(NotRead::Changed) => {
                        self.has_changed = true;
                        self.counters.changed += 1;
                        // Under a name of discovery, the version that comes next will answer.
                        let is_segment = asked.len() > self.versioned_name.len();
                        return if is_segment { self.nack(asked, None) } else { Reply::Nothing };
                    }
                    Err(NotRead::Failed) => {
                        self.counters.read_errors += 1;
                        return Reply::Nothing;
                    }
                };
                let last = Some(self.segments() - 1);
                let encoded = self.options.encode_segment(&self.versioned_name, segment, last, &content);
                let Some(wire) = self.signed(encoded) else { return Reply::Nothing };
                let wire: Arc<[u8]> = wire.into();
                self.keep(segment, &wire);
                wire
            }
        };
        self.counters.segments += 1;
        self.counters.bytes += self.content_range(segment).1 as u64;
        Reply::Data(wire)
    }

    fn nack(&mut self, name: Name<'_>, last_segment: Option<u64>) -> Reply {
        let nack = application_nack(name, last_segment, &self.options.signer);
        match self.signed(nack).flatten() {
            Some(wire) => {
                self.counters.application_nacks += 1;
                Reply::UncachedData(wire.into())
            }
            None => Reply::Nothing,
        }
    }

    /// The packet; `None`, and counted, if it could not be signed.
    fn signed<T>(&mut self, result: Result<T, SignError>) -> Option<T> {
        self.counters.sign_errors += u64::from(result.is_err());
        result.ok()
    }

    /// Offset and length of a segment's content.
    fn content_range(&self, segment: u64) -> (u64, usize) {
        let offset = segment * self.options.segment_bytes as u64;
        let rest = self.size_bytes.saturating_sub(offset);
        (offset, rest.min(self.options.segment_bytes as u64) as usize)
    }

    fn read(&self, segment: u64) -> Result<Vec<u8>, NotRead> {
        let (offset, length) = self.content_range(segment);
        match &self.source {
            Source::Bytes(bytes) => Ok(bytes[offset as usize..offset as usize + length].to_vec()),
            Source::File { .. } if self.has_changed => Err(NotRead::Changed),
            Source::File { file, modified } => {
                let mut content = vec![0; length];
                let read = file.read_exact_at(&mut content, offset);
                let now = file.metadata().map_err(|_| NotRead::Failed)?;
                if now.len() != self.size_bytes || now.modified().ok() != Some(*modified) {
                    return Err(NotRead::Changed);
                }
                read.map_err(|_| NotRead::Failed)?;
                Ok(content)
            }
        }
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
