//! `namewire get`: fetch a segmented object into a file or to standard output.
//!
//! A file appears under its name only once it is whole: segments go to `FILE.part`, which
//! is renamed at the end and removed on failure. Folders are in `get/folder.rs`.

mod folder;

use crate::{ExitCode, Failure, Global, explain, key_files::read_file, name_argument, quantity, text_only::TextOnly};
use indicatif::{ProgressBar, ProgressStyle};
use namewire_client::{
    Client, Discovery, FetchError, FetchOptions, FetchProgress, SegmentFetch, Validator,
    congestion_window::CongestionControl, security::trust::AnchorCertificate,
};
use namewire_packet::NameBuf;
use serde::Serialize;
use std::{
    fs::{self, File, TryLockError},
    io::{self, IsTerminal},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    io::{AsyncWrite, BufWriter},
    signal::unix::{SignalKind, signal},
};

/// Bytes gathered before a write to the output.
const WRITE_BUFFER_BYTES: usize = 1024 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the object, with or without its version
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// With -r: the folder to write into, as with --output
    #[arg(value_name = "DIR", requires = "recursive", conflicts_with = "output")]
    folder: Option<PathBuf>,
    /// Fetch the folder of this name with all that is in it (see `put` and `serve`)
    #[arg(short, long)]
    recursive: bool,
    /// With -r: keep permissions and times of change, and fetch no file again whose size and time are the same
    #[arg(long, requires = "recursive")]
    preserve: bool,
    /// File to write, or - for standard output [default: standard output; a terminal there gets no binary data]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Most segments in flight
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=4096))]
    window: u64,
    /// Segments in flight at the start
    #[arg(long, value_name = "SEGMENTS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=4096))]
    initial_window: u64,
    /// How the window changes; fixed keeps --window
    #[arg(long, value_enum, default_value_t = Algorithm::Cubic)]
    congestion_control: Algorithm,
    /// How often a segment is asked for again
    #[arg(long, default_value_t = 15)]
    retries: u32,
    /// InterestLifetime, for example 500ms; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = quantity::ms_in(1..=3_600_000))]
    lifetime: u64,
    /// Accept only segments signed by the key of this certificate, or by a key with a chain of certificates from it;
    /// each key may sign only names under its identity (repeatable)
    #[arg(long, value_name = "FILE")]
    anchor: Vec<PathBuf>,
    /// Show neither progress nor summary
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    Cubic,
    Aimd,
    Fixed,
}

#[derive(Serialize)]
struct Summary {
    versioned_name: String,
    size_bytes: u64,
    segments: u64,
    elapsed_ms: f64,
    goodput_bits_per_second: f64,
    retransmissions: u64,
    timeouts: u64,
    nacks: u64,
    congestion_marks: u64,
    window_decreases: u64,
    window_final: usize,
    unverified_segments: u64,
    srtt_ms: Option<f64>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if args.recursive {
        return folder::execute(global, args).await;
    }
    fetch(global, args, Discovery::Auto).await
}

/// Fetches an object whose version, if it has one, is found in this way.
pub(crate) async fn fetch(global: &Global, args: Args, discovery: Discovery) -> Result<(), Failure> {
    if args.recursive {
        return Err(Failure::usage("-r is for `get`: a repository keeps objects, not folders"));
    }
    let (client, name) = (global.connect().await?, args.name.clone());
    match fetch_by(&client, global, args, discovery).await {
        Err(failure) => Err(explain::blame(&client, failure, name).await),
        done => done,
    }
}

async fn fetch_by(client: &Client, global: &Global, args: Args, discovery: Discovery) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let options = FetchOptions { discovery, ..fetch_options(&args)? };
    let path = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let sink = Sink::open(path)?;
    let file = tokio::fs::File::from_std(sink.file.try_clone()?);
    let file: Box<dyn AsyncWrite + Unpin> = match args.output {
        None if io::stdout().is_terminal() => Box::new(TextOnly(file)),
        _ => Box::new(file),
    };
    let mut writer = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
    let bar = if args.quiet || global.json { ProgressBar::hidden() } else { progress_bar() };
    let fetch = SegmentFetch::new(client, args.name, options);
    let result = tokio::select! {
        result = fetch.run(&mut writer, |progress| show(&bar, progress)) => result.map_err(|error| match error {
            FetchError::Output(error) => sink.failed(&error),
            error => error.into(),
        }),
        _ = interrupt.recv() => Err(Failure::interrupted()),
    };
    bar.finish_and_clear();
    drop(writer);
    let progress = match result {
        Ok(progress) => progress,
        Err(error) => {
            sink.discard();
            return Err(error);
        }
    };
    sink.keep()?;
    report(global, args.quiet, path.is_some(), &progress)
}

/// What the options say of each object.
fn fetch_options(args: &Args) -> Result<FetchOptions, Failure> {
    let (control, initial) = match args.congestion_control {
        Algorithm::Cubic => (CongestionControl::Cubic, args.initial_window),
        Algorithm::Aimd => (CongestionControl::Aimd, args.initial_window),
        Algorithm::Fixed => (CongestionControl::Fixed, args.window),
    };
    Ok(FetchOptions {
        congestion_control: control,
        window_initial: initial.min(args.window) as usize,
        window_max: args.window as usize,
        retries_max: args.retries,
        lifetime_ms: args.lifetime,
        validator: validator(&args.anchor)?,
        ..FetchOptions::default()
    })
}

/// The trust schema of these anchors; `None` without any.
fn validator(files: &[PathBuf]) -> Result<Option<Arc<Validator>>, Failure> {
    if files.is_empty() {
        return Ok(None);
    }
    let read = |path: &PathBuf| {
        let certificate = AnchorCertificate::parse(read_file(path)?.to_vec());
        certificate.map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display())))
    };
    let anchors = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Arc::new(Validator::hierarchical(anchors))))
}

/// Where the content goes.
struct Sink {
    file: File,
    /// The unfinished file and its final name.
    part: Option<(PathBuf, PathBuf)>,
    /// Stands for the output in messages.
    name: String,
}

/// A part that another process finishes just now is gone when it can be locked. Nobody meets so many of them in a row.
const LOCK_ATTEMPTS: usize = 16;

/// Opens the unfinished file for this process alone. The lock ends with the process, so a part that a killed one left
/// is taken over.
fn open_part(part: &Path) -> io::Result<File> {
    for _ in 0..LOCK_ATTEMPTS {
        let file = File::options().write(true).create(true).truncate(false).open(part)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other(format!("another program is writing {}", part.display())),
            TryLockError::Error(error) => error,
        })?;
        let is_the_part = fs::metadata(part).and_then(|meta| Ok(meta.ino() == file.metadata()?.ino())).unwrap_or(false);
        if is_the_part {
            file.set_len(0)?;
            return Ok(file);
        }
    }
    Err(io::Error::other(format!("other programs keep writing {}", part.display())))
}

impl Sink {
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let file = io::stdout().as_fd().try_clone_to_owned()?.into();
            return Ok(Sink { file, part: None, name: "the output".to_owned() });
        };
        let name = path.display().to_string();
        let failed = |error: io::Error| cannot_write(&name, &error);
        // A device or pipe is written to, not replaced.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            let file = File::options().write(true).open(path).map_err(failed)?;
            return Ok(Sink { file, part: None, name });
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = open_part(&part).map_err(failed)?;
        Ok(Sink { file, part: Some((part, path.to_owned())), name })
    }

    fn keep(self) -> Result<(), Failure> {
        match &self.part {
            Some((part, path)) => fs::rename(part, path).map_err(|error| self.failed(&error)),
            None => Ok(()),
        }
    }

    fn failed(&self, error: &io::Error) -> Failure {
        cannot_write(&self.name, error)
    }

    fn discard(self) {
        if let Some((part, _)) = self.part {
            // The failure to report is the one that led here.
            drop(fs::remove_file(part));
        }
    }
}

fn cannot_write(name: &str, error: &io::Error) -> Failure {
    Failure::new(ExitCode::Failed, format!("cannot write {name}: {error}"))
}

fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {percent:>3} %  {msg}  {eta} left";
    ProgressBar::new(0).with_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, progress: &FetchProgress) {
    if bar.is_hidden() {
        return;
    }
    if let Some(total) = progress.segments_total {
        bar.set_length(total);
    }
    bar.set_position(progress.segments);
    let rate = quantity::bit_rate(progress.bytes, progress.elapsed);
    bar.set_message(format!("{}  {rate}  window {}", quantity::bytes(progress.bytes), progress.window));
}

fn report(global: &Global, quiet: bool, has_file: bool, progress: &FetchProgress) -> Result<(), Failure> {
    let summary = Summary {
        versioned_name: progress.versioned_name.to_string(),
        size_bytes: progress.bytes,
        segments: progress.segments,
        elapsed_ms: progress.elapsed.as_secs_f64() * 1000.0,
        goodput_bits_per_second: quantity::bits_per_second(progress.bytes, progress.elapsed),
        retransmissions: progress.retransmissions,
        timeouts: progress.timeouts,
        nacks: progress.nacks,
        congestion_marks: progress.congestion_marks,
        window_decreases: progress.window_decreases,
        window_final: progress.window,
        unverified_segments: progress.unverified_segments,
        srtt_ms: progress.srtt.map(|srtt| srtt.as_secs_f64() * 1000.0),
    };
    if global.json {
        // Standard output may be carrying the content.
        if has_file {
            global.output().print(&summary, String::new)?;
        } else {
            eprintln!("{}", serde_json::to_string(&summary).map_err(io::Error::from)?);
        }
    } else if !quiet {
        eprintln!(
            "{}: {} in {:.3} s, {} goodput, {} segments, {} retransmissions, {} Nacks, {} marks",
            summary.versioned_name,
            quantity::bytes(summary.size_bytes),
            progress.elapsed.as_secs_f64(),
            quantity::bit_rate(progress.bytes, progress.elapsed),
            summary.segments,
            summary.retransmissions,
            summary.nacks,
            summary.congestion_marks
        );
        if summary.unverified_segments > 0 {
            eprintln!("{} segments have signatures that were not checked", summary.unverified_segments);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two fetches into one file shared its unfinished part, and the second ended with "No such file or directory".
    #[test]
    fn a_second_fetch_into_a_file_names_the_file_and_leaves_it_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let mut first = Sink::open(Some(&path)).unwrap();
        let refused = Sink::open(Some(&path)).err().unwrap().to_string();
        assert!(refused.contains(&format!("cannot write {}: another program is writing", path.display())), "{refused}");
        io::Write::write_all(&mut first.file, b"whole").unwrap();
        first.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        // What a killed fetch left is no obstacle.
        fs::write(directory.path().join("out.part"), b"a long unfinished part").unwrap();
        let mut next = Sink::open(Some(&path)).unwrap();
        io::Write::write_all(&mut next.file, b"new").unwrap();
        next.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let gone = Sink::open(Some(&path)).unwrap();
        fs::remove_file(directory.path().join("out.part")).unwrap();
        assert!(gone.keep().unwrap_err().to_string().contains(&path.display().to_string()));
    }
}
