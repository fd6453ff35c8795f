//! `namewire put`: serve a file in segments until Ctrl-C, also over a restart of the router.

use crate::{Failure, Global, name_argument, quantity, segment_options::SegmentOptions, serve};
use namewire_client::{PublishOptions, SegmentPublisher};
use namewire_packet::NameBuf;
use serde::Serialize;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or folder to serve; a folder is served as it is at each moment, as by `serve`
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
    if args.file.is_dir() {
        return match args.version {
            Some(_) => Err(Failure::usage("--version is for files: a file in a folder has its time as version")),
            None => serve::folder(global, &args.file, &args.name, args.segments).await,
        };
    }
    let options = PublishOptions { version: args.version, ..args.segments.publish_options(global)? };
    let mut publisher = SegmentPublisher::of_file(&args.file, &args.name, options)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let client = global.connect().await?;
    let mut interests = publisher.open(&client).await?;
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
        served = publisher.serve(&mut interests, |_| ()) => served?,
        _ = interrupt.recv() => {}
    }
    client.flush().await;
    let counters = publisher.counters();
    eprintln!(
        "{} Interests, {} segments and {} sent",
        counters.interests,
        counters.segments,
        quantity::bytes(counters.bytes)
    );
    Ok(())
}
