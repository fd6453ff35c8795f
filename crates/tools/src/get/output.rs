//! Where the content of a fetch goes: an unfinished copy, a device or pipe, or standard output.

use super::display::Display;
use crate::{ExitCode, Failure, quantity};
use namewire_client::FetchProgress;
use namewire_files::part::PartFile;
use namewire_packet::NameBuf;
use namewire_printing::text_only::TextOnly;
use std::{
    fs::{self, File},
    io::{self, IsTerminal},
    os::fd::AsFd,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncWrite, BufWriter};

/// Bytes gathered before a write to a pipe or device.
const WRITE_BUFFER_BYTES: usize = 1024 * 1024;

/// The output of a fetch.
pub(super) struct Output {
    target: Target,
    /// Stands for it in messages.
    name: String,
}

enum Target {
    Part(Box<PartFile>),
    Stream(BufWriter<Box<dyn AsyncWrite + Unpin>>),
}

impl Output {
    /// Opens the file `path`, or standard output. The segments are checked by `checked_by`.
    pub(super) fn open(path: Option<&Path>, checked_by: &str) -> Result<Self, Failure> {
        let Some(file_path) = path.filter(|path| *path != Path::new("-")) else {
            let out = tokio::fs::File::from_std(io::stdout().as_fd().try_clone_to_owned()?.into());
            let out: Box<dyn AsyncWrite + Unpin> = match path {
                None if io::stdout().is_terminal() => Box::new(TextOnly(out)),
                _ => Box::new(out),
            };
            return Ok(Output { target: stream(out), name: "the output".to_owned() });
        };
        let name = file_path.display().to_string();
        let failed = |error: io::Error| cannot_write(&name, &error);
        // A device or pipe is written to, not replaced.
        let target = if fs::metadata(file_path).is_ok_and(|meta| !meta.is_file()) {
            let file = File::options().write(true).open(file_path).map_err(failed)?;
            stream(Box::new(tokio::fs::File::from_std(file)))
        } else {
            Target::Part(Box::new(PartFile::open(file_path, checked_by).map_err(failed)?))
        };
        Ok(Output { target, name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Begins to write this object, and returns how many of its segments are there already.
    pub(super) fn start(&mut self, versioned_name: &NameBuf, display: &Display) -> Result<u64, Failure> {
        let Target::Part(part) = &mut self.target else { return Ok(0) };
        if let Some(held) = part.held().filter(|held| held.segments > 0) {
            let (part, size) = (beside(&self.name, part), quantity::bytes(held.bytes));
            match held.versioned_name == *versioned_name {
                true => display.resumes(held, &format!("{part} has {size} of it; going on")),
                false => display.say(&format!("{part} has {size} of {}; starting again", held.versioned_name)),
            }
        }
        part.start(versioned_name).map_err(|error| cannot_write(&self.name, &error))
    }

    /// Notes how far the content is written.
    pub(super) fn note(&mut self, progress: &FetchProgress) -> io::Result<()> {
        match &mut self.target {
            Target::Part(part) => part.note(progress),
            Target::Stream(_) => Ok(()),
        }
    }

    /// What an earlier fetch left has other content than the network.
    pub(super) fn is_contradicted(&self) -> bool {
        matches!(&self.target, Target::Part(part) if part.is_contradicted())
    }

    /// All content is written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.target {
            Target::Part(part) => part.finish().map_err(|error| cannot_write(&self.name, &error)),
            Target::Stream(_) => Ok(()),
        }
    }

    /// The fetch ended before the end. Returns what to tell about the unfinished copy.
    pub(super) fn keep(self) -> Result<Option<String>, Failure> {
        let Target::Part(part) = self.target else { return Ok(None) };
        let path = beside(&self.name, &part);
        let bytes = part.keep().map_err(|error| cannot_write(&self.name, &error))?;
        let size = quantity::bytes(bytes);
        Ok((bytes > 0).then(|| format!("{path} keeps the first {size}; the same command goes on from there")))
    }
}

/// The path of the unfinished copy of the file `name`.
fn beside(name: &str, part: &PartFile) -> String {
    Path::new(name).with_file_name(part.part_name()).display().to_string()
}

fn stream(out: Box<dyn AsyncWrite + Unpin>) -> Target {
    Target::Stream(BufWriter::with_capacity(WRITE_BUFFER_BYTES, out))
}

pub(super) fn cannot_write(name: &str, error: &io::Error) -> Failure {
    Failure::new(ExitCode::Failed, format!("cannot write {name}: {error}"))
}

impl Target {
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        match self {
            Target::Part(part) => Pin::new(&mut **part),
            Target::Stream(out) => Pin::new(out),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, content: &[u8]) -> Poll<io::Result<usize>> {
        self.target.writer().poll_write(context, content)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.target.writer().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.target.writer().poll_shutdown(context)
    }
}
