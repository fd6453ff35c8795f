//! `namewire get -r`: fetch a folder with all that is in it.
//!
//! An entry that is refused is told on standard error at once, and the others go on. The exit code says that there were
//! some: the code of their failures if it is the same for all, else 1.

use super::Args;
use crate::{ExitCode, Failure, Global, explain, failure::code_of_fetch, quantity};
use indicatif::{ProgressBar, ProgressStyle};
use namewire_client::{Client, Discovery};
use namewire_files::{
    folder_fetch::{FolderError, FolderEvent, FolderFetch, FolderFetchOptions, FolderProgress},
    target::Target,
};
use serde::Serialize;
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Serialize)]
struct Summary {
    name: String,
    folders: u64,
    files_written: u64,
    files_present: u64,
    refused: u64,
    /// Of this fetch and of those before that were cut short.
    size_bytes: u64,
    resumed_bytes: u64,
    elapsed_ms: f64,
    goodput_bits_per_second: f64,
    retransmissions: u64,
    unverified_segments: u64,
}

/// `accepts_stale`: metadata may be old, as those in a repository are.
pub(super) async fn execute(global: &Global, args: Args, accepts_stale: bool) -> Result<(), Failure> {
    let place = args.folder.clone().or_else(|| args.output.clone()).filter(|place| place != Path::new("-"));
    let Some(place) = place else {
        return Err(Failure::usage("a folder needs a place: `namewire get -r NAME DIR`"));
    };
    let options = FolderFetchOptions {
        fetch: args.options(Discovery::None)?,
        is_preserving: args.preserve,
        accepts_stale,
        checked_by: args.checked_by()?,
        ..FolderFetchOptions::default()
    };
    let client = global.connect().await?;
    match fetch(&client, global, &args, place, options).await {
        Err(failure) => Err(explain::blame(&client, failure, args.name).await),
        done => done,
    }
}

async fn fetch(
    client: &Client,
    global: &Global,
    args: &Args,
    place: PathBuf,
    options: FolderFetchOptions,
) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let target = Target::new(&place);
    let bar = if args.quiet || global.json { ProgressBar::hidden() } else { progress_bar() };
    let mut refused_code = None;
    let fetch = FolderFetch { client, name: args.name.clone(), target: &target, options };
    let running = fetch.run(|event| match event {
        FolderEvent::Progress(progress) => show(&bar, progress),
        FolderEvent::Refused { path, why } => {
            bar.suspend(|| eprintln!("namewire: {path}: {why}"));
            let code = code_of(why);
            refused_code =
                Some(if refused_code.is_none_or(|earlier| earlier == code) { code } else { ExitCode::Failed });
        }
    });
    let result = tokio::select! {
        result = running => result.map_err(Failure::from),
        _ = interrupt.recv() => Err(Failure::interrupted()),
    };
    bar.finish_and_clear();
    let progress = result?;
    report(global, args, &progress)?;
    match refused_code {
        Some(code) => Err(Failure::new(code, format!("{} entries were not fetched", progress.refused))),
        None => Ok(()),
    }
}

/// The exit code for an entry, as for an object that is fetched alone.
fn code_of(error: &FolderError) -> ExitCode {
    match error {
        FolderError::Fetch(error) => code_of_fetch(error),
        _ => ExitCode::Failed,
    }
}

fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {pos}/{len} files  {msg}  {eta} left";
    ProgressBar::new(0).with_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, progress: &FolderProgress) {
    if bar.is_hidden() {
        return;
    }
    bar.set_length(progress.files_found);
    bar.set_position((progress.files_written + progress.files_present).min(progress.files_found));
    bar.set_message(format!(
        "{} of {}  {}",
        quantity::bytes(progress.bytes_received),
        quantity::bytes(progress.bytes_announced),
        quantity::bit_rate(progress.bytes_received, progress.elapsed)
    ));
}

fn report(global: &Global, args: &Args, progress: &FolderProgress) -> Result<(), Failure> {
    let summary = Summary {
        name: args.name.to_string(),
        folders: progress.folders,
        files_written: progress.files_written,
        files_present: progress.files_present,
        refused: progress.refused,
        size_bytes: progress.bytes_received + progress.bytes_resumed,
        resumed_bytes: progress.bytes_resumed,
        elapsed_ms: progress.elapsed.as_secs_f64() * 1000.0,
        goodput_bits_per_second: quantity::bits_per_second(progress.bytes_received, progress.elapsed),
        retransmissions: progress.retransmissions,
        unverified_segments: progress.unverified_segments,
    };
    if global.json {
        global.output().print(&summary, String::new)?;
    } else if !args.quiet {
        let resumed = match summary.resumed_bytes {
            0 => String::new(),
            bytes => format!(" ({} of it before)", quantity::bytes(bytes)),
        };
        eprintln!(
            "{}: {} files in {} folders, {}{resumed} in {:.3} s, {} goodput, {} retransmissions; {} files were there already",
            summary.name,
            summary.files_written,
            summary.folders,
            quantity::bytes(summary.size_bytes),
            progress.elapsed.as_secs_f64(),
            quantity::bit_rate(progress.bytes_received, progress.elapsed),
            summary.retransmissions,
            summary.files_present
        );
        if summary.unverified_segments > 0 {
            eprintln!("{} segments have signatures that were not checked", summary.unverified_segments);
        }
    }
    Ok(())
}
