//! Finds the latest version of an object.
//!
//! Realtime Data Retrieval (RDR): a producer that publishes versions answers `/<object>/32=metadata` (CanBePrefix,
//! MustBeFresh) with a Data whose Content begins with the Name of the latest version. Without such an answer, a prefix
//! Interest for `/<object>` fetches some segment, whose name contains the version. An application Nack under the
//! metadata name counts as no answer.

use crate::{
    client::Client,
    data_buf::DataBuf,
    express_error::ExpressError,
    segment_fetch::{Discovery, FetchError, FetchOptions, require_trust},
};
use namewire_packet::{
    Component, InterestBuilder, NackReason, Name, NameBuf, content_type,
    tlv::{self, types},
};
use std::time::Duration;

/// The keyword component of RDR metadata.
pub(crate) const METADATA: Component<'static> = Component { type_number: types::KEYWORD_COMPONENT, value: b"metadata" };
/// A producer of metadata answers within this time.
const METADATA_LIFETIME_MS: u64 = 1000;
/// Pauses after which an unanswered Interest is sent again. All but the last are shorter than the usual lifetime, so
/// forwarders still have the earlier Interest and send the later one another way.
const WAITS_MS: [u64; 5] = [1000, 2000, 3000, 3000, u64::MAX];
/// The same for Interests for metadata.
const METADATA_WAITS_MS: [u64; 2] = [METADATA_LIFETIME_MS / 2, u64::MAX];
/// Nacks of prefix Interests before giving up.
const NACKS_MAX: u32 = 3;
/// Pause after a Nack: a route may be on its way into the FIB.
const NACK_PAUSE: Duration = Duration::from_millis(50);

/// What the search found.
pub(crate) enum Discovered {
    /// The name up to the version.
    Versioned(NameBuf),
    /// The same, with a segment that came with it.
    Segment { base: NameBuf, segment: u64, data: DataBuf },
    /// An object of a single packet without segment number.
    Single(DataBuf),
}

/// Finds the version of `name`.
pub(crate) async fn discover(
    client: &Client,
    name: &NameBuf,
    options: &FetchOptions,
) -> Result<Discovered, FetchError> {
    let (how, lifetime_ms) = (options.discovery, options.lifetime_ms);
    let has_version = name.as_name().last().is_some_and(|last| last.version().is_some());
    match how {
        Discovery::None => return Ok(Discovered::Versioned(name.clone())),
        Discovery::Auto if has_version => return Ok(Discovered::Versioned(name.clone())),
        Discovery::Auto => {
            let metadata = latest(name.join(METADATA)).lifetime_ms(METADATA_LIFETIME_MS.min(lifetime_ms));
            for wait_ms in METADATA_WAITS_MS {
                match express_within(client, &metadata, wait_ms).await {
                    // An application Nack says that there is no metadata, not that there is no object.
                    Ok(data) if data.data().content_type() == content_type::NACK => break,
                    Ok(data) => {
                        require_trust(client, options, &data.data()).await?;
                        return versioned_name(&data).map(Discovered::Versioned);
                    }
                    Err(ExpressError::Timeout(_)) => {}
                    Err(ExpressError::Nack(_)) => break,
                    Err(error) => return Err(FetchError::Connection(error)),
                }
            }
        }
        Discovery::FirstSegment | Discovery::AnySegment => {}
    }
    let interest = latest(name.clone()).must_be_fresh(how != Discovery::AnySegment);
    some_segment(client, name, interest, lifetime_ms).await
}

async fn some_segment(
    client: &Client,
    name: &NameBuf,
    interest: InterestBuilder,
    lifetime_ms: u64,
) -> Result<Discovered, FetchError> {
    let interest = interest.lifetime_ms(lifetime_ms);
    let mut nacks = 0;
    let mut cause = ExpressError::Timeout(lifetime_ms);
    for wait_ms in WAITS_MS {
        cause = match express_within(client, &interest, wait_ms).await {
            Ok(data) => return classify(name, data),
            Err(error @ ExpressError::Timeout(_)) => error,
            Err(error @ ExpressError::Nack(reason)) => {
                nacks += 1;
                if nacks >= NACKS_MAX {
                    cause = error;
                    break;
                }
                if reason != NackReason::Duplicate {
                    tokio::time::sleep(NACK_PAUSE * nacks).await;
                }
                error
            }
            Err(error) => return Err(FetchError::Connection(error)),
        };
    }
    Err(FetchError::NotFound { name: name.clone(), cause })
}

/// Like [`Client::express`], but gives up earlier.
async fn express_within(client: &Client, interest: &InterestBuilder, wait_ms: u64) -> Result<DataBuf, ExpressError> {
    match tokio::time::timeout(Duration::from_millis(wait_ms), client.express(interest)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ExpressError::Timeout(wait_ms)),
    }
}

fn latest(name: NameBuf) -> InterestBuilder {
    InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true)
}

fn classify(asked: &NameBuf, data: DataBuf) -> Result<Discovered, FetchError> {
    let view = data.data();
    let name = view.name();
    if name.get(asked.len()) == Some(METADATA) {
        return versioned_name(&data).map(Discovered::Versioned); // from a cache, by the shorter name
    }
    match name.last().and_then(|last| last.segment()) {
        Some(segment) => {
            let base = name.parent().to_buf();
            Ok(Discovered::Segment { base, segment, data })
        }
        None => Ok(Discovered::Single(data)),
    }
}

fn versioned_name(metadata: &DataBuf) -> Result<NameBuf, FetchError> {
    let view = metadata.data();
    if view.signature_info().signature_type() == namewire_packet::signature::signature_type::DIGEST_SHA256
        && !view.verify_digest_sha256()
    {
        return Err(FetchError::BadDigest(view.name().to_buf()));
    }
    // More elements may follow the Name.
    tlv::read_element(view.content())
        .ok()
        .and_then(|element| Name::parse_tlv(element.wire).ok())
        .filter(|name| !name.is_empty())
        .map(|name| name.to_buf())
        .ok_or_else(|| FetchError::BadMetadata(view.name().to_buf()))
}
