//! What a caller says of a fetch, what it learns of it, and why it fails.

use crate::{
    client::Client,
    congestion_window::{CongestionControl, WindowTuning},
    express_error::ExpressError,
    fetch_event::FetchWatch,
    rate_limit::RateLimit,
    validator::Validator,
};
use namewire_packet::{Data, NackReason, NameBuf};
use namewire_security::trust::Denial;
use std::{io, sync::Arc, time::Duration};

/// Most segments between the first missing one and the last requested one.
pub const REORDER_SEGMENTS_MAX: u64 = 4096;

/// How the version is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// The version in the name; without one the newest that metadata or a first segment tells, or else what a cache
    /// still holds.
    Auto,
    /// A prefix Interest for the first segment, as management datasets want it.
    FirstSegment,
    /// A prefix Interest for metadata or any segment, fresh or not, as repositories hold them.
    AnySegment,
    /// The version in the name; without one the one that metadata tells, and nothing else.
    Metadata,
    /// The name is complete up to the segment number.
    None,
}

/// How an object is fetched.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// How the version is found.
    pub discovery: Discovery,
    /// How the window changes.
    pub congestion_control: CongestionControl,
    /// Window at the start, in segments.
    pub window_initial: usize,
    /// Largest window, in segments.
    pub window_max: usize,
    /// The constants by which it changes.
    pub window_tuning: WindowTuning,
    /// How often one segment is requested again before the fetch fails.
    pub retries_max: u32,
    /// Lower bound of the retransmission time-out.
    pub rto_min: Duration,
    /// Upper bound; never more than three quarters of `lifetime_ms`.
    pub rto_max: Duration,
    /// InterestLifetime of segment Interests, in milliseconds.
    pub lifetime_ms: u64,
    /// MustBeFresh in each Interest for a segment.
    pub must_be_fresh: bool,
    /// Check the digest of DigestSha256 segments, if there is no `validator`.
    pub verify_digests: bool,
    /// Accept only segments and metadata that this trust schema accepts; `None`: no key is checked.
    pub validator: Option<Arc<Validator>>,
    /// Largest object accepted, in bytes.
    pub size_bytes_max: u64,
    /// The first segment wanted.
    pub first_segment: u64,
    /// The last segment wanted; `None`: up to the FinalBlockId, which also ends a fetch earlier than this.
    pub last_segment: Option<u64>,
    /// The object is no stream: the fetch fails when segments have come, none of them says which is the last, and the
    /// next one does not come, or nothing limits how many there are.
    pub must_end: bool,
    /// ForwardingHint of segment Interests; empty: none.
    pub forwarding_hint: Vec<NameBuf>,
    /// Other ways to the object: ForwardingHints that are tried in turn, after the usual way, when nobody answers.
    pub sources: Vec<NameBuf>,
    /// How long to wait for the first answer. A fetch that has found its version waits 2 s for its first segment, even
    /// if less is left.
    pub patience: Duration,
    /// True: Nacks do not end the wait for the first answer before `patience` does. A producer may be about to start.
    pub waits_for_producer: bool,
    /// How long to try for another connection when the forwarder has gone; 0: the fetch ends with the connection.
    pub reconnect: Duration,
    /// Most bytes of content per second, of this fetch and of all others that have the same limit.
    pub rate_limit: Option<Arc<RateLimit>>,
    /// Learns what happens.
    pub watch: Option<FetchWatch>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        FetchOptions {
            discovery: Discovery::Auto,
            congestion_control: CongestionControl::Cubic,
            window_initial: 2,
            window_max: 1024,
            window_tuning: WindowTuning::default(),
            retries_max: 15,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(4),
            lifetime_ms: 4000,
            must_be_fresh: false,
            verify_digests: true,
            validator: None,
            size_bytes_max: u64::MAX,
            first_segment: 0,
            last_segment: None,
            must_end: false,
            forwarding_hint: Vec::new(),
            sources: Vec::new(),
            patience: Duration::from_secs(15),
            waits_for_producer: false,
            reconnect: Duration::ZERO,
            rate_limit: None,
            watch: None,
        }
    }
}

impl FetchOptions {
    /// Ways to the object: the usual one, and the sources.
    pub(crate) fn ways(&self) -> usize {
        1 + self.sources.len()
    }

    /// A connection that is lost is opened again.
    pub(crate) fn can_reconnect(&self) -> bool {
        !self.reconnect.is_zero()
    }

    /// The ForwardingHint of this way, counted round and round; empty: none.
    pub(crate) fn hint_of(&self, way: usize) -> &[NameBuf] {
        match way % self.ways() {
            0 => &self.forwarding_hint,
            source => std::slice::from_ref(&self.sources[source - 1]),
        }
    }
}

/// Why an object could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No answer under the name.
    #[error("nothing found under {name}: {cause}")]
    NotFound {
        /// The requested name.
        name: NameBuf,
        /// The last answer, or none.
        cause: ExpressError,
    },
    /// A segment did not come, however often it was requested.
    #[error("segment {segment} did not arrive after {attempts} attempts")]
    SegmentTimeout {
        /// Its number.
        segment: u64,
        /// Interests sent for it.
        attempts: u32,
    },
    /// A segment was refused.
    #[error("segment {segment}: Nack: {reason}")]
    SegmentNack {
        /// Its number.
        segment: u64,
        /// The last reason.
        reason: NackReason,
    },
    /// The producer, or a cache, answers that there is no such Data.
    #[error("application Nack: the producer answers that it has no {0}")]
    ApplicationNack(NameBuf),
    /// The name leads to a Link: a list of names under which the object may be found.
    #[error("{0} is a Link, which says where an object is, not the object")]
    Link(NameBuf),
    /// A segment's digest does not fit its content.
    #[error("the digest of {0} is wrong: it was damaged or forged")]
    BadDigest(NameBuf),
    /// The trust schema does not accept a segment.
    #[error("{name} is not trusted: {denial}")]
    NotTrusted {
        /// Its name.
        name: NameBuf,
        /// Why.
        denial: Denial,
    },
    /// The manifest of the object does not list this packet, or is damaged.
    #[error("{0} is not what the signed manifest lists")]
    NotInManifest(NameBuf),
    /// The metadata packet holds no name.
    #[error("the metadata under {0} holds no name")]
    BadMetadata(NameBuf),
    /// A stream in the place of an object with an end ([`FetchOptions::must_end`]).
    #[error("it has no end: none of its segments says which is the last")]
    NoEnd,
    /// The object exceeds the size limit.
    #[error("the object is larger than {0} bytes")]
    TooLarge(u64),
    /// The connection to the forwarder failed.
    #[error(transparent)]
    Connection(ExpressError),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Progress of a fetch.
#[derive(Clone, Debug)]
pub struct FetchProgress {
    /// Name up to the version.
    pub versioned_name: NameBuf,
    /// No producer answered; a cache named this version.
    pub is_from_cache: bool,
    /// Segments received.
    pub segments: u64,
    /// Segments of the object, once a FinalBlockId said so.
    pub segments_total: Option<u64>,
    /// Bytes of content received.
    pub bytes: u64,
    /// Segments written, with those before [`FetchOptions::first_segment`].
    pub written_segments: u64,
    /// Bytes of content written by this fetch.
    pub written_bytes: u64,
    /// Bytes of the segment written last.
    pub last_written_bytes: usize,
    /// Window now, in segments.
    pub window: usize,
    /// Interests sent again after a loss, a time-out or a Nack.
    pub retransmissions: u64,
    /// Segments that later arrivals showed to be lost.
    pub losses: u64,
    /// RTO expiries.
    pub timeouts: u64,
    /// Nacks received.
    pub nacks: u64,
    /// Data that carried a CongestionMark.
    pub congestion_marks: u64,
    /// How often the window decreased.
    pub window_decreases: u64,
    /// Segments whose signature this fetch cannot check.
    pub unverified_segments: u64,
    /// Segments that came when the fetch did not wait for them, because they had come before.
    pub repeated_segments: u64,
    /// Bytes of content in these.
    pub repeated_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Time since the first Interest.
    pub elapsed: Duration,
}

impl FetchProgress {
    /// Of a fetch that has received nothing.
    pub(crate) fn new(versioned_name: NameBuf, first_segment: u64, is_from_cache: bool) -> Self {
        FetchProgress {
            versioned_name,
            is_from_cache,
            segments: 0,
            segments_total: None,
            bytes: 0,
            written_segments: first_segment,
            written_bytes: 0,
            last_written_bytes: 0,
            window: 0,
            retransmissions: 0,
            losses: 0,
            timeouts: 0,
            nacks: 0,
            congestion_marks: 0,
            window_decreases: 0,
            unverified_segments: 0,
            repeated_segments: 0,
            repeated_bytes: 0,
            srtt: None,
            elapsed: Duration::ZERO,
        }
    }
}

/// Judges Data by the validator of these options, if there is one.
pub(crate) async fn require_trust(client: &Client, options: &FetchOptions, data: &Data<'_>) -> Result<(), FetchError> {
    if let Some(validator) = &options.validator {
        let judged = validator.check(client, data).await;
        judged.map_err(|denial| FetchError::NotTrusted { name: data.name().to_buf(), denial })?;
    }
    Ok(())
}
