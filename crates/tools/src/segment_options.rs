//! The options of commands that publish a file in segments.

use crate::{Failure, Global, quantity};
use namewire_client::{PublishOptions, segment_publish};

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct SegmentOptions {
    /// Bytes of content in a segment (1200 fits a datagram on most networks)
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = segment_publish::SEGMENT_BYTES_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=segment_publish::SEGMENT_BYTES_MAX as u64)
    )]
    chunk_size: u64,
    /// FreshnessPeriod of segments; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::ms_in(0..=u64::MAX))]
    freshness: u64,
}

impl SegmentOptions {
    pub(crate) fn publish_options(self, global: &Global) -> Result<PublishOptions, Failure> {
        Ok(PublishOptions {
            segment_bytes: self.chunk_size as usize,
            freshness_ms: self.freshness,
            signer: global.signer()?,
            ..PublishOptions::default()
        })
    }
}
