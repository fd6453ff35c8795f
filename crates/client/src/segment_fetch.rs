//! Fetches a segmented object: finds its version, gets all segments, and writes them in order.
//!
//! 1. **Version** (file `version_discovery.rs`): the newest that answers within a short window.
//! 2. **Segments** (file `transfer.rs`): as many in flight as the congestion window allows.
//! 3. **Output** ([`SegmentFetch::run`]) is written in order, after [`FetchOptions::validator`] has accepted each
//!    segment, or a manifest that lists it (file `manifest.rs`). Without a validator, digests of DigestSha256 segments
//!    are checked, and other signatures are counted as unverified. An application Nack or a Link in the place of a
//!    segment ends the fetch, because it carries no content of the object. All other ContentTypes are content.
//!
//! [`SegmentFetch::stream`] gives the segments as packets instead, in the order of their arrival.
//! [`SegmentFetch::find`] stops after the first step; a caller that has a part of that version already starts behind it
//! ([`SegmentFetch::run_from`]).
//!
//! Limits: [`crate::REORDER_SEGMENTS_MAX`] segments between the first missing one and the last requested one;
//! [`FetchOptions::size_bytes_max`].

use crate::{
    client::Client,
    data_buf::DataBuf,
    fetch_options::{FetchError, FetchOptions, FetchProgress},
    manifest::Manifest,
    transfer::Transfer,
    version_discovery::{Discovered, Found, discover},
};
use namewire_packet::NameBuf;
use std::io;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::Instant,
};

/// An object whose version is known.
pub struct FoundObject {
    found: Found,
    asked_at: Instant,
}

impl FoundObject {
    /// Name up to the version.
    pub fn versioned_name(&self) -> &NameBuf {
        &self.found.base
    }

    /// No producer answered; a cache named this version.
    pub fn is_from_cache(&self) -> bool {
        self.found.is_from_cache
    }
}

/// A fetch that has not begun.
pub struct SegmentFetch<'a> {
    client: &'a Client,
    name: NameBuf,
    options: FetchOptions,
}

impl<'a> SegmentFetch<'a> {
    /// Prepares to fetch the object `name`.
    pub fn new(client: &'a Client, name: NameBuf, options: FetchOptions) -> Self {
        SegmentFetch { client, name, options }
    }

    /// Fetches the object and writes the content to `sink` in order. Calls `progress` after each batch of arrivals; it
    /// should return soon.
    ///
    /// # Errors
    /// See [`FetchError`]; the content written so far stays written.
    pub async fn run<W: AsyncWrite + Unpin>(
        self,
        sink: &mut W,
        mut progress: impl FnMut(&FetchProgress),
    ) -> Result<FetchProgress, FetchError> {
        let found = self.find().await?;
        self.run_from(found, 0, sink, |now, _| {
            progress(now);
            Ok(())
        })
        .await
    }

    /// Finds the version.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn find(&self) -> Result<FoundObject, FetchError> {
        let asked_at = Instant::now();
        Ok(FoundObject { found: discover(self.client, &self.name, &self.options).await?, asked_at })
    }

    /// As [`SegmentFetch::run`], of a version that was found, without the first `segments_held` segments. `progress`
    /// may note at which byte of the sink the last written segment ends; its error ends the fetch.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn run_from<W: AsyncWrite + Unpin>(
        self,
        found: FoundObject,
        segments_held: u64,
        sink: &mut W,
        progress: impl FnMut(&FetchProgress, &mut W) -> io::Result<()>,
    ) -> Result<FetchProgress, FetchError> {
        self.run_listed(found, segments_held, &mut Manifest::default(), sink, progress).await
    }

    /// As [`SegmentFetch::run_from`]. Segments are checked by `manifest`, which at the end has all that came of it.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn run_listed<W: AsyncWrite + Unpin>(
        mut self,
        found: FoundObject,
        segments_held: u64,
        manifest: &mut Manifest,
        sink: &mut W,
        mut progress: impl FnMut(&FetchProgress, &mut W) -> io::Result<()>,
    ) -> Result<FetchProgress, FetchError> {
        self.options.first_segment = self.options.first_segment.max(segments_held);
        let mut transfer = self.begin(found, std::mem::take(manifest)).await?;
        loop {
            transfer.write_ready(sink).await?;
            transfer.update_progress();
            progress(&transfer.progress, sink)?;
            // What a stream has sent is not kept back until there is more of it.
            if transfer.is_open_ended() {
                sink.flush().await?;
            }
            if transfer.is_complete() {
                break;
            }
            transfer.fill_window().await?;
            transfer.await_event().await?;
        }
        sink.flush().await?;
        *manifest = transfer.manifest;
        Ok(transfer.progress)
    }

    /// Finds the version; the stream then fetches the segments.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn stream(self) -> Result<SegmentStream<'a>, FetchError> {
        let found = self.find().await?;
        Ok(SegmentStream { transfer: self.begin(found, Manifest::default()).await? })
    }

    async fn begin(
        self,
        FoundObject { found, asked_at }: FoundObject,
        manifest: Manifest,
    ) -> Result<Transfer<'a>, FetchError> {
        let mut transfer = Transfer::new(self.client, self.options, found.base, found.is_from_cache, asked_at);
        transfer.manifest = manifest;
        match found.first {
            Discovered::Name => {}
            Discovered::Segment(segment, data) => transfer.accept(segment, data).await?,
            Discovered::Single(data) => {
                transfer.limit_to(0);
                transfer.accept(0, data).await?;
            }
        }
        Ok(transfer)
    }
}

/// The segments of an object as packets, in the order of their arrival. Nothing is fetched between the calls, so a
/// caller that is slow slows the fetch.
pub struct SegmentStream<'a> {
    transfer: Transfer<'a>,
}

impl SegmentStream<'_> {
    /// Waits for segments, and appends those that have arrived to `segments`. False at the end of the object.
    ///
    /// # Errors
    /// See [`FetchError`]; the segments that came before stay valid.
    pub async fn next(&mut self, segments: &mut Vec<DataBuf>) -> Result<bool, FetchError> {
        let transfer = &mut self.transfer;
        while transfer.arrived.is_empty() {
            if transfer.is_complete() {
                return Ok(false);
            }
            transfer.fill_window().await?;
            transfer.await_event().await?;
        }
        transfer.take_arrived(segments);
        // Keeps the window full while the caller handles these.
        transfer.fill_window().await?;
        Ok(true)
    }
}
