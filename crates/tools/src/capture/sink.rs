//! Where captured frames go: a file, or lines on standard output.

use crate::{ExitCode, Failure, output::Output, quantity::time_of_day};
use namewire_capture::{
    frame::{FrameView, hex},
    pcapng::PcapngWriter,
};
use namewire_packet::{
    FaceId,
    nfd::{CaptureFace, CaptureFrame, CaptureLeft},
};
use serde::Serialize;
use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// See the module documentation.
pub(super) enum Sink {
    Lines(Output),
    File { writer: PcapngWriter<Box<dyn Write>>, interfaces: HashMap<FaceId, Interface> },
}

/// A face in the file.
pub(super) struct Interface {
    number: u32,
    frames: u64,
    /// Not known before the face leaves the capture.
    missed: Option<u64>,
}

/// Standard output. A reader that has seen enough is no error.
struct Pipe;

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match io::stdout().write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// One frame for programs.
#[derive(Serialize)]
struct FrameLine<'a> {
    time_ns: u64,
    face_id: u64,
    is_sent: bool,
    bytes: u64,
    packet: &'a str,
    name: Option<String>,
    nack: Option<String>,
    fragment: Option<[u64; 2]>,
    sequence: Option<u64>,
    pit_token: Option<String>,
    congestion_mark: u64,
    acks: u64,
}

impl Sink {
    /// Opens the file, which only this user may read; without a path, prints lines.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn open(path: Option<&Path>, snaplen: Option<u64>, output: Output) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Sink::Lines(output)) };
        let out: Box<dyn Write> = if path == Path::new("-") {
            Box::new(Pipe)
        } else {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            let why = |error| Failure::new(ExitCode::Failed, format!("cannot write {}: {error}", path.display()));
            Box::new(file.map_err(why)?)
        };
        let writer = PcapngWriter::new(Box::new(BufWriter::new(out)) as Box<dyn Write>, snaplen.unwrap_or(0) as u32)?;
        Ok(Sink::File { writer, interfaces: HashMap::new() })
    }

    pub(super) fn face(&mut self, face: &CaptureFace) -> io::Result<()> {
        if let Sink::File { writer, interfaces } = self {
            let interface = Interface { number: writer.interface(face)?, frames: 0, missed: None };
            interfaces.insert(face.face, interface);
        }
        Ok(())
    }

    pub(super) fn frame(&mut self, frame: &CaptureFrame, view: &FrameView) -> io::Result<()> {
        match self {
            Sink::Lines(output) => output.print_line(&json(frame, view), || line(frame, view)),
            Sink::File { writer, interfaces } => match interfaces.get_mut(&frame.face) {
                Some(interface) => {
                    interface.frames += 1;
                    writer.frame(interface.number, frame)
                }
                None => Ok(()), // the router introduces each face first
            },
        }
    }

    pub(super) fn left(&mut self, left: &CaptureLeft) -> io::Result<()> {
        if let Sink::File { interfaces, .. } = self
            && let Some(interface) = interfaces.get_mut(&left.face)
        {
            interface.missed = Some(left.missed);
        }
        Ok(())
    }

    /// Lets a reader see what there is so far.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Lines(_) => Ok(()),
            Sink::File { writer, .. } => writer.flush(),
        }
    }

    /// Completes the file. Interfaces whose missed frames are not known have no statistics.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Sink::File { writer, interfaces } = self else { return Ok(()) };
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let mut interfaces: Vec<&Interface> = interfaces.values().collect();
        interfaces.sort_by_key(|interface| interface.number);
        for Interface { number, frames, missed } in interfaces {
            if let Some(missed) = missed {
                writer.statistics(*number, now_ns, *frames, *missed)?;
            }
        }
        writer.flush()
    }
}

fn json<'a>(frame: &CaptureFrame, view: &'a FrameView) -> FrameLine<'a> {
    FrameLine {
        time_ns: frame.time_ns,
        face_id: frame.face.0,
        is_sent: frame.is_sent,
        bytes: frame.len,
        packet: view.packet.word(),
        name: view.name.as_ref().map(ToString::to_string),
        nack: view.nack.map(|reason| reason.to_string()),
        fragment: (view.frag_count > 1).then(|| [view.frag_index.saturating_add(1), view.frag_count]),
        sequence: view.sequence,
        pit_token: view.pit_token.as_deref().map(hex),
        congestion_mark: view.congestion_mark,
        acks: view.acks,
    }
}

/// Time of day (UTC), direction, face, packet, name, size, link headers.
fn line(frame: &CaptureFrame, view: &FrameView) -> String {
    let direction = if frame.is_sent { "out" } else { "in " };
    let (face, packet, name) = (frame.face, view.packet.word(), view.name_text());
    format!(
        "{} {direction} {face}  {packet:<8}  {name}  {} B{}",
        time_of_day(frame.time_ns, 6),
        frame.len,
        view.header_text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_has_everything_and_one_object_too() {
        let bytes = [5, 5, 7, 3, 8, 1, b'a'].into();
        let time_ns = (86_400 + 3600 + 62) * 1_000_000_000 + 5_678;
        let frame = CaptureFrame { face: FaceId(259), is_sent: true, time_ns, len: 7, bytes };
        let view = FrameView::of(&frame.bytes);
        assert_eq!(line(&frame, &view), "01:01:02.000005 out 259  Interest  /a  7 B");
        let json = serde_json::to_value(json(&frame, &view)).unwrap();
        assert_eq!((&json["name"], &json["packet"], &json["face_id"]), (&"/a".into(), &"Interest".into(), &259.into()));
    }
}
