//! Files that administrators name: configurations, rules, certificates, keys.
//!
//! Opening a named pipe waits until another process writes to it, and a pipe can stay silent for ever. But the readers
//! of these files must obey signals or serve management. So files are opened without waiting, and only regular files
//! are accepted. The configuration itself may come through a pipe or a terminal (`--config /dev/stdin`, `--config
//! <(…)`): see [`read_or_receive`].
//!
//! If a regular file changes while it is read, it is read again, so that half of a new version is not taken for the
//! whole. N.B. A writer that empties the file and pauses before it writes looks like a writer that wants the file
//! empty. Replace files by renaming.
//!
//! Limits: each caller limits the bytes; the whole text of a pipe must arrive within [`PIPE_PATIENCE`]; a file is read
//! at most [`READ_ATTEMPTS`] times.

use crate::units::Bytes;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
};
use std::{
    fs::{File, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};

/// Longest wait until all text of a pipe is there.
pub(crate) const PIPE_PATIENCE: Duration = Duration::from_secs(10);

/// Most attempts to read a file that keeps changing, and the pause between them.
const READ_ATTEMPTS: usize = 5;
const READ_PAUSE: Duration = Duration::from_millis(10);

/// Bytes read from a pipe at once: as many as a pipe of Linux holds.
const PIPE_CHUNK: usize = 64 << 10;

/// All of a regular file.
///
/// # Errors
/// If it is not a regular file, is larger than `limit`, or cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_unchanged(path, limit, || ())
}

/// `meanwhile` runs before the check whether the file has changed.
fn read_unchanged(path: &Path, limit: u64, mut meanwhile: impl FnMut()) -> io::Result<Vec<u8>> {
    for _ in 0..READ_ATTEMPTS {
        let file = open(path)?;
        let before = file.metadata()?;
        if !before.is_file() {
            let what = kind(before.file_type());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")));
        }
        let bytes = read_whole(&file, limit)?;
        meanwhile();
        if version(&before) == version(&file.metadata()?) {
            return Ok(bytes);
        }
        std::thread::sleep(READ_PAUSE);
    }
    Err(io::Error::other("it changes while it is read; replace it by renaming another file"))
}

/// Reads a regular file as [`read`] does, or everything that comes through a pipe or from a character device. Waits at
/// most [`PIPE_PATIENCE`]. Do not call it where signals or packets wait.
///
/// # Errors
/// As [`read`]; also if a pipe's writer is not done in time, or wrote nothing.
pub fn read_or_receive(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let file_type = file.metadata()?.file_type();
    if !file_type.is_fifo() && !file_type.is_char_device() {
        return read(path, limit);
    }
    let bytes = receive(&file, limit, PIPE_PATIENCE)?;
    if bytes.is_empty() && file_type.is_fifo() {
        // The program that should have written it failed. The router must not start without its configuration.
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nothing came through the pipe"));
    }
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    // Opens without waiting for a writer, and without making a terminal our controlling one.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        _ if file_type.is_dir() => "a directory",
        _ if file_type.is_fifo() => "a pipe",
        _ if file_type.is_char_device() || file_type.is_block_device() => "a device",
        _ => "something else",
    }
}

/// The properties of a file that a write changes.
fn version(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {}", Bytes(limit)))
}

fn read_whole(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes) }
}

fn receive(mut file: &File, limit: u64, patience: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + patience;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; PIPE_CHUNK];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => {
                let why = format!("the pipe was not written and closed within {} s", patience.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match file.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(size) => bytes.extend_from_slice(&chunk[..size]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > limit {
            return Err(too_large(limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Write, path::PathBuf, sync::mpsc::channel, thread};

    fn pipe(directory: &Path) -> PathBuf {
        let path = directory.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        path
    }

    /// The story: `File::open` of a pipe without a writer waited for ever, in the thread that obeys SIGTERM or in the
    /// one that serves management.
    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = pipe(directory.path());
        let (refused, refusals) = channel();
        for (path, word) in
            [(pipe, "a pipe"), (directory.path().to_owned(), "a directory"), (PathBuf::from("/dev/null"), "a device")]
        {
            let refused = refused.clone();
            thread::spawn(move || refused.send(read(&path, 10).unwrap_err().to_string()));
            let why = refusals.recv_timeout(Duration::from_secs(60)).expect("it waits");
            assert!(why.contains(word), "{why}");
        }
        assert!(read_or_receive(directory.path(), 10).is_err());
    }

    #[test]
    fn files_are_read_up_to_their_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap(), b"0123456789");
        assert_eq!(read_or_receive(&path, 10).unwrap(), b"0123456789");
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_or_receive(Path::new("/dev/null"), 0).unwrap(), b"");
        assert_eq!(read_or_receive(Path::new("/dev/zero"), 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_pipe_gives_all_that_is_written_until_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = pipe(directory.path());
        let write = |pieces: &'static [&'static str]| {
            let path = path.clone();
            thread::spawn(move || {
                let mut writer = OpenOptions::new().write(true).open(path).unwrap();
                pieces.iter().for_each(|piece| writer.write_all(piece.as_bytes()).unwrap());
            })
        };
        let writer = write(&["a = 1\n", "b = 2\n"]);
        assert_eq!(read_or_receive(&path, 100).unwrap(), b"a = 1\nb = 2\n");
        writer.join().unwrap();
        let writer = write(&[]);
        assert_eq!(read_or_receive(&path, 100).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        writer.join().unwrap();
        let writer = write(&["more than that"]);
        assert_eq!(read_or_receive(&path, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        writer.join().unwrap();
    }

    #[test]
    fn a_pipe_that_stays_open_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = pipe(directory.path());
        let patience = Duration::from_millis(50);
        let silent = open(&path).unwrap();
        assert_eq!(receive(&silent, 100, patience).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(b"a = 1").unwrap();
        assert_eq!(receive(&silent, 100, patience).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// A version written while another is read is never taken in part.
    #[test]
    fn a_file_that_changes_meanwhile_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut changes = 0;
        let mut change = |most: usize| {
            if changes < most {
                changes += 1;
                fs::write(&path, format!("new {}", "x".repeat(changes))).unwrap();
            }
        };
        assert_eq!(read_unchanged(&path, 100, || change(2)).unwrap(), b"new xx");
        assert!(read_unchanged(&path, 100, || change(usize::MAX)).unwrap_err().to_string().contains("changes"));
    }
}
