//! `namewire put`: serve a file, a folder, a pipe or a file that grows, also over a restart of the router.
//!
//! | input | file | version | ends |
//! | --- | --- | --- | --- |
//! | a regular file | `put/file.rs` | its modification time | with Ctrl-C |
//! | a folder | `serve.rs` | of each file in it, its modification time | with Ctrl-C |
//! | standard input, a FIFO, a device | `put/stream.rs` | the time of the start | with Ctrl-C; with `--once` when all was sent |
//! | a file that grows (`--follow`) | `put/stream.rs` | the time of the start | with Ctrl-C, which ends the stream |

mod file;
mod stream;

use crate::{Failure, Global, name_argument, quantity, segment_options::SegmentOptions, serve};
use namewire_client::Client;
use namewire_files::{
    standing::{FIRST_LOOK_TIME, Look, OtherProducer, StandingChange, look},
    stream_server::KEEP_BYTES_DEFAULT,
};
use namewire_packet::NameBuf;
use std::{
    cmp::Ordering,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to serve; a folder, which is served as it is at each moment, as by `serve`; a FIFO; or - for standard input
    file: PathBuf,
    /// Name to serve it under; a version is added
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// Version number [default: microseconds since 1970, of the last change of a file or of the start of a stream]
    #[arg(long)]
    version: Option<u64>,
    /// Serve a file that grows: what is appended follows, until Ctrl-C ends the stream
    #[arg(long)]
    follow: bool,
    /// End when each segment of the stream has been sent, and none was asked for in the last 2 s
    #[arg(long, conflicts_with = "follow")]
    once: bool,
    /// Bytes of a stream to keep for consumers that ask later or again [default: 33 MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    keep: Option<u64>,
    /// Sign a list of the digests of all segments of a file, or of all that is in a folder, instead of each segment:
    /// faster for the producer, and for consumers with --anchor
    #[arg(long, conflicts_with = "follow")]
    manifest: bool,
    #[command(flatten)]
    segments: SegmentOptions,
}

impl Args {
    fn keep_bytes(&self) -> usize {
        self.keep.map_or(KEEP_BYTES_DEFAULT, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if args.follow || is_stream(&args.file) {
        if args.manifest {
            return Err(Failure::usage("a stream has no --manifest: it begins before its end is known"));
        }
        return stream::execute(global, args).await;
    }
    let is_folder = args.file.is_dir();
    match (args.once, args.keep) {
        (false, None) if is_folder && args.version.is_some() => {
            Err(Failure::usage("--version is for files: a file in a folder has its time as version"))
        }
        (false, None) if is_folder => serve::folder(global, &args.file, &args.name, args.segments, args.manifest).await,
        (true, _) => Err(Failure::usage("--once is for streams: standard input, a FIFO")),
        (_, Some(_)) => Err(Failure::usage("--keep is for streams: standard input, a FIFO, a file with --follow")),
        (false, None) => file::execute(global, args).await,
    }
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

pub(crate) fn is_stream(path: &Path) -> bool {
    let is_pipe_or_device = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device();
    is_standard_input(path) || fs::metadata(path).is_ok_and(|metadata| is_pipe_or_device(metadata.file_type()))
}

/// Looks whether another producer answers for this name, and says so.
async fn look_first(client: &Client, name: &NameBuf, version: u64) -> Look {
    let found = look(client, name, FIRST_LOOK_TIME).await;
    if let Look::Found(other) = &found {
        let (which, who) = described(other);
        let gets = match other.version.map(|other| other.cmp(&version)) {
            Some(Ordering::Greater) => "newer than this one: consumers that ask for the newest version get that one",
            Some(Ordering::Less) => "older than this one: consumers that ask for the newest version get this one",
            Some(Ordering::Equal) => "the same as this one: consumers get it from either",
            None => "not comparable with this one: consumers get the one or the other",
        };
        eprintln!("namewire: another producer answers for {name}: {which}, {who}. It is {gets}.");
    }
    found
}

/// Which version, and whose key.
fn described(other: &OtherProducer) -> (String, String) {
    let which = other.version.map_or_else(|| other.versioned_name.to_string(), |version| format!("version {version}"));
    let who = other.key.as_ref().map_or_else(|| "not signed by a key".to_owned(), |key| format!("signed by {key}"));
    (which, who)
}

fn say_standing(name: &NameBuf, change: &StandingChange) {
    match change {
        StandingChange::Superseded(other) => {
            let (which, who) = described(other);
            eprintln!(
                "namewire: another producer answers for {name} with a newer version: {which}, {who}. Consumers that ask \
                 for the newest version get that one."
            );
        }
        StandingChange::Newest => {
            eprintln!("namewire: no newer version of {name} is served any more; consumers get this one");
        }
    }
}
