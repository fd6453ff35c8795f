//! `namewire capture`: the frames of faces, into a file for Wireshark and ndndump, or one line each.
//!
//! The router keeps the copied frames until this process fetches them, up to a limit. It counts the frames that found
//! no room; the summary and the file show their number.

mod pieces;
pub(crate) mod session;
mod sink;

use crate::{
    Failure, Global,
    face_reference::{self, FaceReference},
    name_argument,
};
use namewire_capture::{filter::Filter, frame::FrameView};
use namewire_client::Client;
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES, NameBuf,
    nfd::{CaptureRecord, ControlParameters, FaceStatus},
};
use session::Recorder;
use sink::Sink;
use std::{path::PathBuf, str::FromStr};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  namewire capture 259\n  namewire capture all --prefix /example --count 20\n  \
    namewire capture eth0 -w frames.pcapng\n  namewire capture udp://router.example -w - | wireshark -k -i -")]
pub(crate) struct Args {
    /// Faces by number or remote URI; or a network interface, for its faces; or "all"
    #[arg(required = true, value_name = "FACE|INTERFACE|all")]
    faces: Vec<Target>,
    /// Write the frames to this file (pcapng), or to standard output for "-", instead of printing lines
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Only packets under this name; may be given several times
    #[arg(long, value_name = "NAME", value_parser = name_argument::parse)]
    prefix: Vec<NameBuf>,
    /// Stop after this number of frames [default: at Ctrl-C]
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Take one frame of N, chosen at random
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Keep the first BYTES bytes of each frame [default: all]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=MAX_PACKET_BYTES as u64))]
    snaplen: Option<u64>,
}

/// What is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    All,
    Interface(String),
    Face(FaceReference),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Target::All);
        }
        if let Some(name) = text.strip_prefix("dev://") {
            return Ok(Target::Interface(name.to_owned()));
        }
        let is_face = text.contains("://") || text.bytes().all(|byte| byte.is_ascii_digit());
        if is_face { text.parse().map(Target::Face) } else { Ok(Target::Interface(text.to_owned())) }
    }
}

/// What was captured.
#[derive(Debug, Default, serde::Serialize)]
struct Summary {
    /// Frames written or printed.
    frames: u64,
    /// Their bytes.
    bytes: u64,
    /// Faces that had frames.
    faces: u64,
    /// Frames that found no room in the router; `None` if it did not come to say how many, or if all frames that were
    /// asked for came, and others found no room.
    missed: Option<u64>,
    /// All frames that were asked for came.
    #[serde(skip)]
    is_complete: bool,
    /// The router does not know the names that were asked for: what it missed may have any name.
    #[serde(skip)]
    has_filter: bool,
}

impl Summary {
    fn text(&self) -> String {
        let Summary { frames, bytes, faces, missed, is_complete, has_filter } = *self;
        let counted = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let missed = match missed {
            None if is_complete => "all that were asked for".to_owned(),
            None => "how many were missed is not known".to_owned(),
            Some(0) => "none missed".to_owned(),
            Some(missed) => {
                let of_any = if has_filter { " of any name" } else { "" };
                format!("{missed}{of_any} missed: this program was too slow; see --sample and --snaplen")
            }
        };
        let (frames, faces) = (counted(frames, "frame"), counted(faces, "face"));
        format!("captured {frames} ({}) of {faces}, {missed}", crate::quantity::bytes(bytes))
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    // Before anyone is told that Ctrl-C ends it.
    let interrupt = signal(SignalKind::interrupt())?;
    let name = start(&client, &args).await?;
    let mut capture = Capture {
        summary: Summary { has_filter: !args.prefix.is_empty(), ..Summary::default() },
        filter: Filter::new(args.prefix),
        sink: Sink::open(args.write.as_deref(), args.snaplen, global.output())?,
        left: args.count.unwrap_or(u64::MAX),
        missed: 0,
    };
    eprintln!("namewire: capturing; Ctrl-C ends it");
    // What was captured is complete also if the connection was lost.
    let outcome = session::follow(&client, &name, interrupt, &mut capture).await;
    capture.end(outcome.is_ok());
    capture.sink.finish()?;
    if global.json {
        global.output().print_line(&capture.summary, String::new)?;
    }
    eprintln!("namewire: {}", capture.summary.text());
    let is_interrupted = outcome?;
    // Without a count, Ctrl-C is how it ends.
    let is_short = args.count.is_some_and(|count| capture.summary.frames < count);
    if is_short && is_interrupted { Err(Failure::interrupted()) } else { Ok(()) }
}

/// Begins the capture; returns its name.
async fn start(client: &Client, args: &Args) -> Result<NameBuf, Failure> {
    let mut wanted = ControlParameters { count: args.sample, mtu: args.snaplen, ..ControlParameters::default() };
    let mut faces = Vec::new();
    match &args.faces[..] {
        [Target::All] => {}
        [Target::Interface(name)] => wanted.local_uri = Some(format!("dev://{name}")),
        targets => faces = named(client, targets).await?,
    }
    wanted.face_id = faces.first().copied();
    let started = client.control("capture", "start", &wanted).await?;
    let malformed = || Failure::new(crate::ExitCode::Failed, "the forwarder's answer has no name of the capture");
    let name = started.body.and_then(|body| body.name).ok_or_else(malformed)?;
    for face in faces.into_iter().skip(1) {
        let add = ControlParameters { name: Some(name.clone()), face_id: Some(face), ..ControlParameters::default() };
        client.control("capture", "add", &add).await?;
    }
    Ok(name)
}

/// The faces that are named one by one.
async fn named(client: &Client, targets: &[Target]) -> Result<Vec<FaceId>, Failure> {
    let mut faces = Vec::new();
    for target in targets {
        let Target::Face(reference) = target else {
            return Err(Failure::usage("give faces, or one network interface, or \"all\""));
        };
        let FaceStatus { face_id, uri, .. } = face_reference::require(client, reference).await?;
        eprintln!("namewire: face {face_id} is {uri}");
        if !faces.contains(&face_id) {
            faces.push(face_id);
        }
    }
    Ok(faces)
}

/// A capture under way.
struct Capture {
    filter: Filter,
    sink: Sink,
    /// Frames that are still wanted.
    left: u64,
    /// Frames that were missed, as far as the router has said.
    missed: u64,
    summary: Summary,
}

impl Capture {
    /// Sums up. `is_whole`: the router came to say how many frames it missed.
    fn end(&mut self, is_whole: bool) {
        self.summary.is_complete = self.has_enough();
        let is_of_interest = !self.has_enough() || self.missed == 0;
        self.summary.missed = (is_whole && is_of_interest).then_some(self.missed);
    }
}

impl Recorder for Capture {
    fn take(&mut self, record: CaptureRecord) -> Result<(), Failure> {
        match record {
            CaptureRecord::Face(face) => {
                self.summary.faces += 1;
                eprintln!("namewire: frames of face {}: {} at {}", face.face, face.remote, face.local);
                self.sink.face(&face)?;
            }
            CaptureRecord::Frame(frame) => {
                let view = FrameView::of(&frame.bytes);
                if self.left > 0 && self.filter.takes(&frame, &view) {
                    self.left -= 1;
                    self.summary.frames += 1;
                    self.summary.bytes += frame.len;
                    self.sink.frame(&frame, &view)?;
                }
            }
            CaptureRecord::Left(left) => {
                self.missed += left.missed;
                self.sink.left(&left)?;
                match left.reason {
                    Some(reason) => eprintln!("namewire: face {} has closed ({reason})", left.face),
                    // Face 0: only frames missed of faces without one.
                    None if self.left > 0 && left.face != FaceId::INVALID => {
                        eprintln!("namewire: face {} is left out from now on: its program captures, too", left.face);
                    }
                    None => {}
                }
            }
            CaptureRecord::Decision(_) => {} // only a trace asks for them
        }
        Ok(())
    }

    fn end_of_piece(&mut self) -> Result<(), Failure> {
        Ok(self.sink.flush()?)
    }

    fn has_enough(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let face = |text: &str| Ok(Target::Face(text.parse().unwrap()));
        assert_eq!("all".parse(), Ok(Target::All));
        assert_eq!("259".parse(), face("259"));
        assert_eq!("udp://host".parse(), face("udp://host"));
        for name in ["eth0", "dev://eth0"] {
            assert_eq!(name.parse(), Ok(Target::Interface("eth0".to_owned())));
        }
        assert!("0".parse::<Target>().is_err() && "".parse::<Target>().is_err());
    }

    #[test]
    fn the_summary_says_what_to_do_about_missed_frames() {
        let summary = Summary { frames: 2, bytes: 1500, faces: 1, missed: Some(0), ..Summary::default() };
        assert_eq!(summary.text(), "captured 2 frames (1.5 KiB) of 1 face, none missed");
        let with = |missed| Summary { missed, ..summary }.text();
        assert!(with(Some(7)).contains("7 missed: this program was too slow"));
        assert!(with(None).ends_with("how many were missed is not known"));
        let of_names = Summary { missed: Some(7), has_filter: true, ..summary };
        assert!(of_names.text().contains("7 of any name missed"), "{}", of_names.text());
    }

    /// The story: `capture all --prefix /p --count 3` had its three frames, and said that thousands were missed: frames
    /// of other names, and those that came while it stopped.
    #[test]
    fn a_capture_that_has_all_that_it_asked_for_has_missed_nothing() {
        let mut capture = Capture {
            filter: Filter::new(Vec::new()),
            sink: Sink::open(None, None, crate::output::Output { json: true }).unwrap(),
            left: 0,
            missed: 9,
            summary: Summary { frames: 3, bytes: 300, faces: 1, ..Summary::default() },
        };
        capture.end(true);
        assert_eq!(capture.summary.text(), "captured 3 frames (300 B) of 1 face, all that were asked for");
        assert_eq!(capture.summary.missed, None);
        capture.left = 1;
        capture.end(true);
        assert_eq!(capture.summary.missed, Some(9));
        capture.end(false);
        assert_eq!(capture.summary.missed, None);
    }
}
