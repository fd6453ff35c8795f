//! Where the bytes of a stream come from: standard input, a FIFO, a file that grows.
//!
//! A thread reads, because reads of these block; a growing file is read again every [`GROWTH_PAUSE`]. At most
//! [`CHUNKS_MAX`] chunks of [`CHUNK_BYTES`] wait to be taken; the thread waits while they do. So a program that writes
//! into the pipe goes no faster than the stream is taken. The thread ends after the [`StreamInput`] is dropped, at its
//! next byte at the latest, or with the process.

use std::{
    fs::File,
    io::{self, Read},
    os::{fd::AsFd, unix::fs::FileExt},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::sync::mpsc;

/// Most bytes of a chunk: what a pipe holds.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait.
pub const CHUNKS_MAX: usize = 8;
/// Pause at the end of a growing file.
pub const GROWTH_PAUSE: Duration = Duration::from_millis(50);

/// A source of bytes.
#[derive(Clone, Debug)]
pub enum StreamSource {
    /// Standard input, to its end.
    StandardInput,
    /// A FIFO, a device or a file, from its beginning to its end. Opening a FIFO waits for a program that writes into
    /// it.
    Path(PathBuf),
    /// A regular file from its beginning, and all that is appended to it. It has no end.
    Growing(Arc<File>),
}

/// The bytes of a source, in chunks.
pub struct StreamInput {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl StreamInput {
    /// Begins to read.
    ///
    /// # Errors
    /// If no thread can be started, or standard input is closed. That a path cannot be opened is the first result of
    /// [`StreamInput::next`].
    pub fn open(source: StreamSource) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        let reader: Box<dyn FnOnce() -> io::Result<()> + Send> = {
            let sender = sender.clone();
            match source {
                StreamSource::StandardInput => {
                    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
                    Box::new(move || read_to_end(file, &sender))
                }
                StreamSource::Path(path) => Box::new(move || read_to_end(File::open(path)?, &sender)),
                StreamSource::Growing(file) => Box::new(move || follow(&file, &sender)),
            }
        };
        let read = move || {
            if let Err(error) = reader() {
                // The one who takes the chunks may be gone.
                let _ = sender.blocking_send(Err(error));
            }
        };
        thread::Builder::new().name("stream-input".to_owned()).spawn(read)?;
        Ok(StreamInput { chunks })
    }

    /// The next bytes, at least one; `None` at the end. After an error comes the end. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.chunks.recv().await
    }
}

fn read_to_end(mut file: File, sender: &mpsc::Sender<io::Result<Vec<u8>>>) -> io::Result<()> {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let length = match file.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        chunk.truncate(length);
        if length == 0 || sender.blocking_send(Ok(chunk)).is_err() {
            return Ok(());
        }
    }
}

fn follow(file: &File, sender: &mpsc::Sender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let mut offset = 0;
    while !sender.is_closed() {
        let mut chunk = vec![0; CHUNK_BYTES];
        let length = file.read_at(&mut chunk, offset)?;
        if length == 0 {
            if file.metadata()?.len() < offset {
                return Err(io::Error::other("the file has become shorter"));
            }
            thread::sleep(GROWTH_PAUSE);
            continue;
        }
        chunk.truncate(length);
        offset += length as u64;
        if sender.blocking_send(Ok(chunk)).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Write};

    async fn take(input: &mut StreamInput, bytes: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < bytes {
            got.extend(input.next().await.unwrap().unwrap());
        }
        got
    }

    #[tokio::test]
    async fn a_fifo_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut input = StreamInput::open(StreamSource::Path(path.clone())).unwrap();
        let writer = thread::spawn(move || {
            let mut fifo = File::options().write(true).open(path).unwrap();
            fifo.write_all(&vec![7; 1_000_000]).unwrap();
        });
        assert_eq!(take(&mut input, 1_000_000).await, vec![7; 1_000_000]);
        assert!(input.next().await.is_none());
        writer.join().unwrap();
    }

    #[tokio::test]
    async fn a_growing_file_is_read_on_until_it_becomes_shorter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, b"one").unwrap();
        let mut input = StreamInput::open(StreamSource::Growing(Arc::new(File::open(&path).unwrap()))).unwrap();
        assert_eq!(take(&mut input, 3).await, b"one");
        File::options().append(true).open(&path).unwrap().write_all(b"two").unwrap();
        assert_eq!(take(&mut input, 3).await, b"two");
        File::options().write(true).open(&path).unwrap().set_len(1).unwrap();
        assert!(input.next().await.unwrap().is_err());
        assert!(input.next().await.is_none());
    }

    #[tokio::test]
    async fn a_path_that_is_not_there_is_an_error() {
        let mut input = StreamInput::open(StreamSource::Path("/nonexistent/fifo".into())).unwrap();
        assert_eq!(input.next().await.unwrap().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(input.next().await.is_none());
    }
}
