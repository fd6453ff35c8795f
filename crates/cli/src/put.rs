//! `namewire put`: serve a file in segments until Ctrl-C, also if the router starts anew meanwhile.

use crate::{
    Failure, Global, name_argument, quantity,
    reconnect::{self, Served},
    segment_options::SegmentOptions,
};
use namewire_client::{InterestStream, PublishError, PublishOptions, RespondError, RouteOptions, SegmentPublisher};
use namewire_packet::NameBuf;
use serde::Serialize;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

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
    #[command(flatten)]
    segments: SegmentOptions,
}

/// Printed once the name is registered.
#[derive(Serialize)]
struct Serving {
    versioned_name: String,
    size_bytes: u64,
    segments: u64,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let options = PublishOptions { version: args.version, ..args.segments.publish_options(global)? };
    let mut publisher = SegmentPublisher::of_file(&args.file, &args.name, options)?;
    let interrupt = signal(SignalKind::interrupt())?;
    let interests = open(global, &args.name).await?;
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
    let serve = async |interests: &mut InterestStream| match publisher.serve(interests, |_| ()).await {
        Ok(()) | Err(RespondError::Closed(_)) => Ok(Served::Lost),
        Err(error) => Err(error.into()),
    };
    let (_, interests) = reconnect::serve(interests, async || open(global, &args.name).await, serve, interrupt).await?;
    interests.client().flush().await;
    let counters = publisher.counters();
    eprintln!(
        "{} Interests, {} segments and {} sent",
        counters.interests,
        counters.segments,
        quantity::bytes(counters.bytes)
    );
    Ok(())
}

/// Connects, and registers the name.
async fn open(global: &Global, name: &NameBuf) -> Result<InterestStream, Failure> {
    let client = global.connect().await?;
    let interests = client.serve(name).map_err(PublishError::from)?;
    client.register_prefix(name, RouteOptions::default()).await?;
    Ok(interests)
}
