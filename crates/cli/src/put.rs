//! `namewire put`: serve a file in segments until Ctrl-C.

use crate::{Failure, Global, name_argument, quantity};
use namewire_client::{PublishOptions, RouteOptions, SegmentPublisher, segment_publish};
use namewire_packet::NameBuf;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to serve
    file: PathBuf,
    /// Name to serve it under; a version is added
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// Version number [default: microseconds since 1970]
    #[arg(long)]
    version: Option<u64>,
    /// Bytes of content in a segment (1200 fits a datagram on most networks)
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = segment_publish::SEGMENT_BYTES_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=segment_publish::SEGMENT_BYTES_MAX as u64)
    )]
    chunk_size: u64,
    /// FreshnessPeriod of segments in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    freshness: u64,
}

/// Printed once the name is registered.
#[derive(Serialize)]
struct Serving {
    versioned_name: String,
    size_bytes: u64,
    segments: u64,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let options = PublishOptions {
        version: args.version,
        segment_bytes: args.chunk_size as usize,
        freshness_ms: args.freshness,
        signer: global.signer()?,
        ..PublishOptions::default()
    };
    let mut publisher = SegmentPublisher::of_file(&args.file, &args.name, options)?;
    let client = global.connect().await?;
    let mut interests = publisher.open(&client)?;
    client.register_prefix(&args.name, RouteOptions::default()).await?;
    let serving = Serving {
        versioned_name: publisher.versioned_name().to_string(),
        size_bytes: publisher.size_bytes(),
        segments: publisher.segments(),
    };
    global.output().print_line(&serving, || {
        format!(
            "serving {} ({}, {} segments); Ctrl-C to stop",
            serving.versioned_name,
            quantity::bytes(serving.size_bytes),
            serving.segments
        )
    })?;
    tokio::select! {
        result = publisher.serve(&mut interests, |_| ()) => {
            result?;
            return Err(Failure::new(crate::ExitCode::NoForwarder, "the connection to the forwarder was lost"));
        }
        _ = tokio::signal::ctrl_c() => {}
    }
    let counters = publisher.counters();
    eprintln!(
        "{} Interests, {} segments and {} sent",
        counters.interests,
        counters.segments,
        quantity::bytes(counters.bytes)
    );
    Ok(())
}
