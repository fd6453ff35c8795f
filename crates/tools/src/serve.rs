//! `namewire serve`: serve a folder until SIGTERM or Ctrl-C, also over restarts of the router. `namewire put` does the
//! same with a folder.

use crate::{
    ExitCode, Failure, Global,
    certificates::SignersCertificates,
    name_argument, quantity,
    segment_options::SegmentOptions,
    service::{EndSignals, notify},
};
use namewire_client::PublishOptions;
use namewire_files::folder_server::{FolderOptions, FolderServer};
use namewire_packet::NameBuf;
use sd_notify::NotifyState;
use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to serve; files that change, come or go later are served as they are then
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Name to serve it under; DIR/a/b has the name PREFIX/a/b
    #[arg(value_name = "PREFIX", value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// Sign one manifest, which covers all of the folder, instead of each segment: faster for the producer, and for
    /// consumers with --anchor. All files are read at the start, and those that change again
    #[arg(long)]
    manifest: bool,
    #[command(flatten)]
    segments: SegmentOptions,
}

/// Printed once the name is registered.
#[derive(Serialize)]
struct Serving {
    name: String,
    files: u64,
    folders: u64,
    size_bytes: u64,
    not_served: u64,
    /// Certificates of the signer that are served as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    folder(global, &args.folder, &args.name, args.segments, args.manifest).await
}

/// Serves the folder at `path` under `name`, with or without a manifest.
pub(crate) async fn folder(
    global: &Global,
    path: &Path,
    name: &NameBuf,
    segments: SegmentOptions,
    has_manifest: bool,
) -> Result<(), Failure> {
    let cannot_read =
        |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot read {}: {error}", path.display()));
    let mut end = EndSignals::listen()?;
    let PublishOptions { segment_bytes, freshness_ms, signer, .. } = segments.publish_options(global)?;
    let options = FolderOptions { segment_bytes, freshness_ms, signer, has_manifest, ..FolderOptions::default() };
    let mut server = FolderServer::open(path, name, options).map_err(cannot_read)?;
    let survey = server.survey().map_err(cannot_read)?;
    let client = global.connect().await?;
    let mut interests = server.register(&client).await?;
    let certificates = SignersCertificates::serve(global, &client).await?;
    let serving = Serving {
        name: name.to_string(),
        files: survey.files,
        folders: survey.folders,
        size_bytes: survey.bytes,
        not_served: survey.not_served,
        certificates: certificates.count,
    };
    if survey.not_served > 0 {
        eprintln!("namewire: {} links, devices, FIFOs and sockets are not served", survey.not_served);
    }
    if survey.unreadable > 0 {
        eprintln!("namewire: {} folders cannot be read", survey.unreadable);
    }
    global.output().print_line(&serving, || {
        let size = quantity::bytes(serving.size_bytes);
        let certificates = certificates.text();
        format!("serving {} ({} files, {size}{certificates}); Ctrl-C to stop", serving.name, serving.files)
    })?;
    notify(&[NotifyState::Ready]);
    let is_lost = tokio::select! {
        served = server.serve(&mut interests) => served.map(|()| true)?,
        () = end.came() => false,
    };
    notify(&[NotifyState::Stopping]);
    client.flush().await;
    let counters = server.counters();
    eprintln!(
        "{} Interests, {} metadata and {} segments ({}) sent; {} not found, {} gone",
        counters.interests,
        counters.metadata,
        counters.segments,
        quantity::bytes(counters.bytes),
        counters.not_found,
        counters.gone
    );
    match is_lost {
        true => Err(Failure::new(ExitCode::NoForwarder, "the connection to the forwarder was lost")),
        false => Ok(()),
    }
}
