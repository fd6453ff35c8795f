//! `namewire repo put`: store a file, a stream or a folder in a repository.
//!
//! ```text
//!   file          ─────────────────────────────────► an object of segments
//!   FIFO, pipe    ─► temporary file, up to the end ─► the same: only then the number of segments is known
//!   folder        ─► metadata, listing and content of all that is in it (`namewire_files::stored_folder`)
//! ```

use super::client::{Repository, interruptible};
use crate::{ExitCode, Failure, Global, name_argument, put::is_stream, quantity, segment_options::SegmentOptions};
use namewire_client::{PublishOptions, SegmentPublisher};
use namewire_files::{
    folder_server::FolderOptions,
    stored_folder::{StoredFolder, StoredObject},
};
use namewire_packet::NameBuf;
use namewire_repo::{PutProgress, command::ObjectParam};
use serde::Serialize;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::NamedTempFile;

#[derive(Debug, clap::Args)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    repository: Repository,
    /// File to store; a folder, with all that is in it; a FIFO; or - for standard input
    file: PathBuf,
    /// Name to store it under
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// Add this version to the name
    #[arg(long)]
    version: Option<u64>,
    #[command(flatten)]
    segments: SegmentOptions,
    /// Show neither progress nor summary
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Stored {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    size_bytes: u64,
    packets: u64,
    elapsed_ms: f64,
}

pub(super) async fn put(global: &Global, args: PutArgs) -> Result<(), Failure> {
    if args.file.is_dir() {
        return folder(global, args).await;
    }
    let options = PublishOptions {
        version: args.version,
        is_versioned: args.version.is_some(),
        ..args.segments.publish_options(global)?
    };
    // It is read until the object has been stored.
    let spooled = if is_stream(&args.file) { Some(spool(&args.file).await?) } else { None };
    let file = spooled.as_ref().map_or(&*args.file, NamedTempFile::path);
    let object = SegmentPublisher::of_file(file, &args.name, options)?;
    let (name, size_bytes, total) = (object.versioned_name().to_string(), object.size_bytes(), object.segments());
    let remote = args.repository.connect(global).await?;
    let bar = global.output().progress_bar(args.quiet, total, "packets");
    let begin = Instant::now();
    let put = remote.put(object, |PutProgress { stored, .. }| bar.set_position(stored));
    let result = interruptible(put, &bar).await?;
    let packets = result.objects.first().and_then(|object| object.inserted).unwrap_or(total);
    report(global, args.quiet, Stored { name, files: None, size_bytes, packets, elapsed_ms: 0.0 }, begin.elapsed())
}

/// Reads a stream up to its end into a file that no other program can open.
async fn spool(path: &Path) -> Result<NamedTempFile, Failure> {
    let path = path.to_owned();
    let read = move || {
        let mut file = NamedTempFile::new()?;
        if path == Path::new("-") {
            io::copy(&mut io::stdin().lock(), &mut file)?;
        } else {
            io::copy(&mut File::open(path)?, &mut file)?;
        }
        Ok::<_, io::Error>(file)
    };
    // The thread may wait for the stream for ever; the end of the process ends it, too.
    tokio::select! {
        read = tokio::task::spawn_blocking(read) => Ok(read.map_err(io::Error::from)??),
        _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
    }
}

async fn folder(global: &Global, args: PutArgs) -> Result<(), Failure> {
    if args.version.is_some() {
        return Err(Failure::usage("--version is for files: a file in a folder has its time as version"));
    }
    let PublishOptions { segment_bytes, freshness_ms, signer, .. } = args.segments.publish_options(global)?;
    let options = FolderOptions { segment_bytes, freshness_ms, signer, ..FolderOptions::default() };
    let mut folder = StoredFolder::open(&args.file, &args.name, options)
        .map_err(|error| Failure::new(ExitCode::Failed, format!("cannot read {}: {error}", args.file.display())))?;
    let survey = folder.survey();
    if survey.not_served > 0 {
        eprintln!("namewire: {} links, devices, FIFOs and sockets are not stored", survey.not_served);
    }
    let mut objects: Vec<ObjectParam> = folder.objects().iter().map(param_of).collect();
    if let Some(root) = objects.last_mut() {
        // Once all is there.
        root.register_prefix = Some(args.name.clone());
    }
    let client = global.connect().await?;
    let mut interests = folder.register(&client).await?;
    let serving = async {
        let served = folder.serve(&mut interests).await;
        drop(served); // the commands tell that the connection is lost
    };
    let remote = args.repository.over(client, global)?;
    let bar = global.output().progress_bar(args.quiet, 0, "packets");
    let begin = Instant::now();
    let put = remote.put_all(&objects, serving, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.stored);
    });
    let done = interruptible(put, &bar).await?;
    let stored = Stored {
        name: args.name.to_string(),
        files: Some(survey.files),
        size_bytes: survey.bytes,
        packets: done.stored,
        elapsed_ms: 0.0,
    };
    report(global, args.quiet, stored, begin.elapsed())
}

fn param_of(object: &StoredObject) -> ObjectParam {
    ObjectParam {
        name: object.name.clone(),
        start: object.last_segment.map(|_| 0),
        end: object.last_segment,
        ..ObjectParam::default()
    }
}

fn report(global: &Global, is_quiet: bool, stored: Stored, elapsed: Duration) -> Result<(), Failure> {
    if is_quiet && !global.json {
        return Ok(());
    }
    let stored = Stored { elapsed_ms: elapsed.as_secs_f64() * 1000.0, ..stored };
    global.output().print(&stored, || {
        let Stored { name, files, size_bytes, packets, .. } = &stored;
        let what = files.map_or(String::new(), |files| format!("{files} files, "));
        let (size, rate) = (quantity::bytes(*size_bytes), quantity::bit_rate(*size_bytes, elapsed));
        format!("stored {name}: {what}{size} in {packets} packets, {:.3} s, {rate}\n", elapsed.as_secs_f64())
    })?;
    Ok(())
}
