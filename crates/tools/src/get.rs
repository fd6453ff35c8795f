//! `namewire get`: fetch a segmented object into a file or to standard output.
//!
//! A file appears under its name only once it is whole. Until then the segments are in `FILE.part`, and the same
//! command goes on with what is there (file `get/output.rs`). A fetch outlives a restart of its router and of the
//! producer.
//!
//! ```text
//! find the version ── 3.5 s, or --wait ──► fetch its segments ──► rename FILE.part
//!        │ nobody answers                        │ interrupted, stalled, the disk is full
//!        ▼                                       ▼
//!   the reason, and its exit code           the same, and FILE.part stays
//! ```
//!
//! Folders are in `get/folder.rs`.

mod display;
mod folder;
mod output;

use crate::{Failure, Global, explain, key_files::read_file, name_argument, quantity, schema};
use display::Display;
use namewire_client::{
    Client, Discovery, FetchError, FetchOptions, FetchProgress, FoundObject, RateLimit, SegmentFetch, Validator,
    congestion_window::CongestionControl,
    security::trust::{DataValidator, RulesOrAny},
};
use namewire_packet::{NameBuf, digest::sha256};
use output::Output;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// How long the router may be away.
const RECONNECT: Duration = Duration::from_secs(60);
/// How long nobody may answer, in milliseconds, unless Interests live longer than the usual 4 s.
const PATIENCE_MS: u64 = 3500;
const LIFETIME_MS: u64 = 4000;
/// `--wait` without a time.
const FOREVER_MS: u64 = u64::MAX / 1_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the object, with or without its version
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// With -r: the folder to write into, as with --output
    #[arg(value_name = "DIR", requires = "recursive", conflicts_with = "output")]
    folder: Option<PathBuf>,
    /// Fetch the folder of this name with all that is in it (see `put` and `serve`)
    #[arg(short, long, conflicts_with = "version")]
    recursive: bool,
    /// With -r: keep permissions and times of change, and fetch no file again whose size and time are the same
    #[arg(long, requires = "recursive")]
    preserve: bool,
    /// File to write, or - for standard output [default: standard output; a terminal there gets no binary data]. Until
    /// it is whole, the content is in FILE.part, and the same command goes on there
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Fetch this version instead of the newest
    #[arg(long)]
    version: Option<u64>,
    /// Wait until a producer appears, at most so long
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "forever",
        value_parser = wait_ms
    )]
    wait: Option<u64>,
    /// Most bytes per second, for example 2MiB; with -r of all files together
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    limit_rate: Option<u64>,
    /// If nobody answers for the name, or the fetch stalls, ask by way of this prefix (as a ForwardingHint); several
    /// are tried in turn (repeatable)
    #[arg(long, value_name = "PREFIX", value_parser = name_argument::parse_not_root)]
    source: Vec<NameBuf>,
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
    /// With --anchor: accept old Data, too, that were signed while their certificates were valid. Whoever has a key
    /// that has expired can choose the time in its signatures
    #[arg(long, requires = "anchor")]
    at_signing_time: bool,
    /// Let this compiled LVS schema say which keys may sign which names; the anchors are its roots of trust
    #[arg(long, value_name = "FILE", requires = "anchor")]
    schema: Option<PathBuf>,
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

fn wait_ms(text: &str) -> Result<u64, String> {
    if text == "forever" { Ok(FOREVER_MS) } else { quantity::ms_in(1..=FOREVER_MS)(text) }
}

impl Args {
    fn options(&self, discovery: Discovery) -> Result<FetchOptions, Failure> {
        let (control, initial) = match self.congestion_control {
            Algorithm::Cubic => (CongestionControl::Cubic, self.initial_window),
            Algorithm::Aimd => (CongestionControl::Aimd, self.initial_window),
            Algorithm::Fixed => (CongestionControl::Fixed, self.window),
        };
        let patience_ms = if self.lifetime > LIFETIME_MS { self.lifetime } else { PATIENCE_MS };
        Ok(FetchOptions {
            discovery,
            congestion_control: control,
            window_initial: initial.min(self.window) as usize,
            window_max: self.window as usize,
            retries_max: self.retries,
            lifetime_ms: self.lifetime,
            validator: self.validator()?,
            patience: Duration::from_millis(self.wait.unwrap_or(patience_ms)),
            waits_for_producer: self.wait.is_some(),
            reconnect: RECONNECT,
            rate_limit: self.limit_rate.map(|bytes| Arc::new(RateLimit::new(bytes))),
            sources: self.source.clone(),
            ..FetchOptions::default()
        })
    }

    /// What the segments are checked against; `None` without anchors.
    fn validator(&self) -> Result<Option<Arc<Validator>>, Failure> {
        if self.anchor.is_empty() {
            return Ok(None);
        }
        let validator = match &self.schema {
            Some(schema) => {
                let config = schema::with_anchors(schema::read(schema)?, &self.anchor)?;
                DataValidator::new(RulesOrAny::Schema(config)).into()
            }
            None => {
                let anchors =
                    self.anchor.iter().map(|path| schema::read_anchor(path)).collect::<Result<Vec<_>, _>>()?;
                Validator::hierarchical(anchors)
            }
        };
        Ok(Some(Arc::new(if self.at_signing_time { validator.at_signing_time() } else { validator })))
    }

    /// What stands in an unfinished copy for the anchors and the schema that its segments were checked against.
    fn checked_by(&self) -> Result<String, Failure> {
        if self.anchor.is_empty() {
            return Ok("digests".to_owned());
        }
        let mut digests = Vec::new();
        for path in &self.anchor {
            digests.push(sha256(&[&read_file(path)?]));
        }
        if let Some(schema) = &self.schema {
            digests.push(sha256(&[&schema::bytes_of(schema)?]));
        }
        digests.sort_unstable();
        digests.extend(self.at_signing_time.then(|| sha256(&[b"at-signing-time"])));
        Ok(sha256(&[digests.as_flattened()]).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The file to write; `None`: standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    fetch(global, args, Discovery::Auto).await
}

/// Fetches an object whose version, if it has one, is found in this way, or a folder.
pub(crate) async fn fetch(global: &Global, mut args: Args, discovery: Discovery) -> Result<(), Failure> {
    if args.recursive {
        return folder::execute(global, args, discovery == Discovery::AnySegment).await;
    }
    if let Some(version) = args.version {
        args.name.push_version(version);
    }
    let options = args.options(discovery)?;
    let client = global.connect().await?;
    let mut output = Output::open(args.output.as_deref(), &args.checked_by()?)?;
    let display = Display::new(global, args.quiet, args.file().is_some(), &args.name);
    let result = until_interrupted(fetch_into(&client, &args, &options, &mut output, &display)).await;
    display.clear();
    match result {
        Ok(progress) => {
            output.finish()?;
            display.summarise(&progress)
        }
        Err(failure) => {
            let kept = output.keep();
            let failure = explain::blame(&client, failure, args.name).await;
            Err(match kept? {
                Some(kept) => failure.with_line(kept),
                None => failure,
            })
        }
    }
}

/// Does the work until Ctrl-C or SIGTERM.
async fn until_interrupted<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        result = work => result,
        _ = interrupt.recv() => Err(Failure::interrupted()),
        _ = terminate.recv() => Err(Failure::interrupted()),
    }
}

async fn fetch_into(
    client: &Client,
    args: &Args,
    options: &FetchOptions,
    output: &mut Output,
    display: &Display,
) -> Result<FetchProgress, Failure> {
    let fetch = || SegmentFetch::new(client, args.name.clone(), options.clone());
    let found = fetch().find().await?;
    display.found(&found);
    match run(fetch(), found, output, display).await {
        Err(_) if output.is_contradicted() => {
            display.starts_again();
            let found = fetch().find().await?;
            run(fetch(), found, output, display).await
        }
        result => result,
    }
}

async fn run(
    fetch: SegmentFetch<'_>,
    found: FoundObject,
    output: &mut Output,
    display: &Display,
) -> Result<FetchProgress, Failure> {
    let segments_held = output.start(found.versioned_name(), display)?;
    let name = output.name().to_owned();
    let fetched = fetch.run_from(found, segments_held, output, |progress, output| {
        display.show(progress);
        output.note(progress)
    });
    fetched.await.map_err(|error| match error {
        FetchError::Output(error) => output::cannot_write(&name, &error),
        error => error.into(),
    })
}
