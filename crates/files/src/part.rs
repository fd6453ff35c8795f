//! The unfinished copy of a file: what of an object is on the disk already?
//!
//! `FILE.part` has the content from its beginning up to the end of some segment. `FILE.part.index` says of which
//! object, and how far it goes:
//!
//! ```text
//! namewire-part 1
//! /me/film/v=1700000000000000      name up to the version
//! 3b1f…                            what the segments were checked against, in the caller's words
//! 33 264000 8000 9ae3bd01          segments, bytes, bytes of the last of these segments, CRC-32 since the line before
//! whole                            the copy has all of its bytes, and is about to be renamed
//! ```
//!
//! A line is written after its bytes, once for each [`RECORD_BYTES`] and when the fetch ends for any reason. So a
//! killed process loses little more than that. After a power failure a line may be there and its bytes not: the copy
//! counts up to the last line whose checksum fits. A checksum finds accidents; forgeries are the validator's matter,
//! which has seen the segments before they are written. Lines behind that one are cut off before others follow.
//!
//! The end, in an order that a crash may cut anywhere: the line `whole`, the copy gets the file's name, the index goes.
//! An index that says `whole`, of which the copy has nothing, is left of a download that has ended, and is removed.
//!
//! A fetch that goes on asks for the last segment of the copy once more. If it has other bytes, the content under this
//! name has changed, and the copy is of no use ([`PartFile::is_contradicted`]).
//!
//! The copy is locked while a process writes it, and the lock ends with the process. A file of
//! that name without such an index is somebody else's, and is left alone.
//!
//! `part_place.rs` has the names of these files, `part_disk.rs` the writing.
//!
//! Cost: one write per MiB, or per 128 KiB of a file in a folder; one line of some 40 bytes per [`RECORD_BYTES`] (400
//! kB for 10 GB).

use crate::{
    part_disk::{Disk, DiskWriter, Job, Record},
    part_place::{HEADER, PartPlace},
};
use crc32fast::Hasher;
use namewire_client::{FetchProgress, NameBuf};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::AsyncWrite;

/// Bytes between two lines of the index.
pub const RECORD_BYTES: u64 = 1024 * 1024;

/// Bytes that are written with one call: of a single file, and of one among many.
const BUFFER_BYTES: usize = 1024 * 1024;
const BUFFER_BYTES_AMONG_MANY: usize = 128 * 1024;
const WHOLE: &str = "whole";

/// What of an object is in a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Name up to the version.
    pub versioned_name: NameBuf,
    /// Segments from the first on.
    pub segments: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Bytes in the copy behind these, of no known segment: they come again.
    pub uncounted_bytes: u64,
    last_segment_bytes: usize,
    /// Bytes of the index up to the end of the last line that counts.
    index_bytes: u64,
}

impl Held {
    /// Bytes before the last of the segments, which comes once more.
    pub fn bytes_before_last(&self) -> u64 {
        self.bytes - self.last_segment_bytes as u64
    }

    /// Segments and bytes that were there and come again: the last segment, and what is behind it. The segments behind
    /// it are counted as if they had its length.
    pub fn again(&self) -> (u64, u64) {
        let last = self.last_segment_bytes as u64;
        (1 + self.uncounted_bytes.div_ceil(last.max(1)), last + self.uncounted_bytes)
    }
}

/// The unfinished copy of a file, and the writer of its content.
pub struct PartFile {
    place: PartPlace,
    /// Holds the lock.
    file: File,
    is_one_of_many: bool,
    checked_by: String,
    held: Option<Held>,
    /// Since [`PartFile::start`].
    disk: Option<Disk>,
    buffer: Vec<u8>,
    /// Bytes of content written, and those that the index tells of.
    bytes: u64,
    recorded_bytes: u64,
    /// At the end of a segment: how many there are, and the length of the last.
    boundary: Option<(u64, usize)>,
    /// What the copy has of its last segment, until that has come again.
    expected: Vec<u8>,
    is_contradicted: bool,
}

impl PartFile {
    /// Opens or creates the unfinished copy of the file `path`, and reads what it holds. A copy whose segments were
    /// checked by something else than `checked_by` (one line of text) counts for nothing.
    ///
    /// # Errors
    /// If it cannot be written, or another process writes it.
    pub fn open(path: &Path, checked_by: &str) -> io::Result<PartFile> {
        let place = PartPlace::of_path(path)?;
        let file = place.open_locked()?;
        PartFile::of_locked(place, file, checked_by, false)
    }

    /// As [`PartFile::open`], with a copy that is open and locked. `is_one_of_many`: other files are written, too.
    pub(crate) fn of_locked(
        place: PartPlace,
        mut file: File,
        checked_by: &str,
        is_one_of_many: bool,
    ) -> io::Result<PartFile> {
        let mut index = place.read_index().and_then(|index| read_index(index, &mut file));
        if index.as_ref().is_some_and(Index::is_of_a_finished_file) {
            place.remove_index()?;
            index = None;
        }
        if index.is_none() && file.metadata()?.len() > 0 {
            let words = format!("{} is there, and was not made by a download of namewire", place.part().display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
        }
        let held = index.filter(|index| index.checked_by == checked_by).and_then(|index| index.held);
        Ok(PartFile {
            place,
            file,
            is_one_of_many,
            checked_by: checked_by.to_owned(),
            held,
            disk: None,
            buffer: Vec::new(),
            bytes: 0,
            recorded_bytes: 0,
            boundary: None,
            expected: Vec::new(),
            is_contradicted: false,
        })
    }

    /// What an earlier fetch left.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// The same, if it is a beginning of the object of this name.
    pub(crate) fn held_of(&self, versioned_name: &NameBuf) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.versioned_name == *versioned_name && held.segments > 0)
    }

    /// The name of the unfinished copy, which is beside the file.
    pub fn part_name(&self) -> &OsStr {
        self.place.part()
    }

    /// Begins to write the object of this name, and returns how many of its segments need not come. A copy of another
    /// object is emptied.
    ///
    /// # Errors
    /// If the copy cannot be read or written.
    pub fn start(&mut self, versioned_name: &NameBuf) -> io::Result<u64> {
        self.stop()?;
        (self.is_contradicted, self.boundary) = (false, None);
        let held = self.held_of(versioned_name).cloned();
        self.held = None;
        let mut segments_held = 0;
        let index = if let Some(held) = held {
            // The lines of the index stay true; bytes behind the last of them are of no known segment.
            self.file.set_len(held.bytes)?;
            self.bytes = held.bytes_before_last();
            self.recorded_bytes = held.bytes;
            self.expected = vec![0; held.last_segment_bytes];
            self.file.read_exact_at(&mut self.expected, self.bytes)?;
            self.file.seek(SeekFrom::Start(self.bytes))?;
            segments_held = held.segments - 1;
            let index = self.place.append_to_index()?;
            index.set_len(held.index_bytes)?;
            index
        } else {
            self.empty()?;
            // Before the first byte, so that the copy is known as ours.
            let mut new = self.place.create_index()?;
            new.write_all(HEADER)?;
            new.write_all(format!("{versioned_name}\n{}\n", self.checked_by).as_bytes())?;
            new
        };
        let writer = DiskWriter::new(self.file.try_clone()?, index, self.expected.len());
        self.disk = Some(Disk::start(writer, !self.is_one_of_many)?);
        Ok(segments_held)
    }

    /// Waits until everything is written, and ends the thread.
    fn stop(&mut self) -> io::Result<()> {
        let written = self.flush_buffer().and_then(|()| self.disk.as_ref().map_or(Ok(()), Disk::report));
        self.disk = None;
        written
    }

    /// Throws away what the copy has.
    fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.bytes, self.recorded_bytes) = (0, 0);
        self.buffer.clear();
        self.expected.clear();
        self.place.remove_index()
    }

    /// Notes how far the content is written: up to the end of a segment.
    ///
    /// # Errors
    /// If the content or the index cannot be written.
    pub fn note(&mut self, progress: &FetchProgress) -> io::Result<()> {
        match progress.written_bytes {
            0 => Ok(()),
            _ => self.note_boundary(progress.written_segments, progress.last_written_bytes),
        }
    }

    fn note_boundary(&mut self, segments: u64, last_segment_bytes: usize) -> io::Result<()> {
        self.boundary = Some((segments, last_segment_bytes));
        if self.bytes >= self.recorded_bytes + RECORD_BYTES { self.record() } else { Ok(()) }
    }

    fn record(&mut self) -> io::Result<()> {
        let Some((segments, last)) = self.boundary.filter(|_| self.bytes > self.recorded_bytes) else { return Ok(()) };
        self.flush_buffer()?;
        self.recorded_bytes = self.bytes;
        self.send(Job::Line(Record { segments, bytes: self.bytes, last_segment_bytes: last }))
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        match self.buffer.is_empty() {
            true => Ok(()),
            false => {
                let empty = self.disk.as_mut().map(Disk::buffer).unwrap_or_default();
                let content = std::mem::replace(&mut self.buffer, empty);
                self.send(Job::Content(content))
            }
        }
    }

    fn send(&mut self, job: Job) -> io::Result<()> {
        self.disk.as_mut().map_or(Ok(()), |disk| disk.send(job))
    }

    /// True if the segment that both the copy and the network have differs: what the copy holds is of another content.
    pub fn is_contradicted(&self) -> bool {
        self.is_contradicted
    }

    /// Renames the copy to the file: it is whole.
    ///
    /// # Errors
    /// If it cannot be written or renamed.
    pub fn finish(self) -> io::Result<()> {
        self.finish_after(|_| Ok(()))
    }

    /// As [`PartFile::finish`]; `prepare` may change the file before it has its name, and its error ends this.
    pub(crate) fn finish_after(mut self, prepare: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        self.make_whole()?;
        prepare(&self.file)?;
        self.place.rename()?;
        self.place.remove_index()
    }

    /// Writes the rest, and the last line of the index.
    fn make_whole(&mut self) -> io::Result<()> {
        self.record()?;
        self.stop()?;
        self.file.set_len(self.bytes)?;
        self.place.append_to_index()?.write_all(format!("{WHOLE}\n").as_bytes())
    }

    /// Ends without anything.
    pub(crate) fn discard(mut self) -> io::Result<()> {
        self.disk = None;
        self.place.remove_index()?;
        self.place.remove_part()
    }

    /// Ends without the whole. Returns how many bytes the next fetch need not ask for; without any, the copy is
    /// removed.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn keep(mut self) -> io::Result<u64> {
        if self.disk.is_none() {
            // The fetch ended before it knew what to write: what an earlier one left stays.
            return match self.held.as_ref().filter(|held| held.bytes > 0) {
                Some(held) => Ok(held.bytes),
                None => {
                    self.place.remove_index()?;
                    self.place.remove_part().map(|()| 0)
                }
            };
        }
        if self.expected.is_empty() && !self.is_contradicted {
            self.record()?;
        }
        self.stop()?;
        if self.is_contradicted {
            self.empty()?;
        }
        if self.recorded_bytes == 0 {
            self.place.remove_index()?;
            self.place.remove_part()?;
        }
        Ok(self.recorded_bytes)
    }

    /// The content of the segment that the copy has must be the same when it comes again.
    fn accept(&mut self, content: &[u8]) -> io::Result<()> {
        // A whole segment comes at once. One of another length has another place in the file.
        if !self.expected.is_empty() && self.expected != content {
            self.is_contradicted = true;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the content under this name has changed"));
        }
        self.expected.clear();
        self.buffer.extend_from_slice(content);
        self.bytes += content.len() as u64;
        let buffer_bytes = if self.is_one_of_many { BUFFER_BYTES_AMONG_MANY } else { BUFFER_BYTES };
        if self.buffer.len() >= buffer_bytes { self.flush_buffer() } else { Ok(()) }
    }
}

/// An index, compared with its copy.
struct Index {
    checked_by: String,
    /// `None` without a name.
    held: Option<Held>,
    /// It has the line `whole`.
    is_whole: bool,
}

impl Index {
    /// The copy has got the file's name, and what has the copy's name now is another file.
    fn is_of_a_finished_file(&self) -> bool {
        self.is_whole && self.held.as_ref().is_none_or(|held| held.bytes == 0)
    }
}

/// The next line, without its end; `None` for one that was not written to its end.
fn next_line(index: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    index.read_line(&mut line).ok()?;
    line.ends_with('\n').then(|| line.trim_end_matches('\n').to_owned())
}

/// How far the content of `file` agrees with its index, from the second line on; `None` if the copy cannot be read.
fn read_index(mut lines: BufReader<File>, file: &mut File) -> Option<Index> {
    let mut read = Index { checked_by: String::new(), held: None, is_whole: false };
    let (Some(name), Some(checked_by)) = (next_line(&mut lines), next_line(&mut lines)) else { return Some(read) };
    let header_bytes = (HEADER.len() + name.len() + checked_by.len() + 2) as u64;
    read.checked_by = checked_by;
    let Ok(versioned_name) = name.parse() else { return Some(read) };
    let mut held = Held {
        versioned_name,
        segments: 0,
        bytes: 0,
        uncounted_bytes: 0,
        last_segment_bytes: 0,
        index_bytes: header_bytes,
    };
    file.rewind().ok()?;
    let mut content = BufReader::with_capacity(BUFFER_BYTES, &*file);
    let mut is_true = true;
    while let Some(line) = next_line(&mut lines) {
        read.is_whole |= line == WHOLE;
        is_true = is_true && held.count(&line, &mut content);
    }
    held.uncounted_bytes = file.metadata().ok()?.len().saturating_sub(held.bytes);
    read.held = Some(held);
    Some(read)
}

impl Held {
    /// Counts what this line of the index tells of, if `content` goes on with that.
    fn count(&mut self, line: &str, content: &mut impl BufRead) -> bool {
        let Some((segments, bytes, last, checksum)) = parse_record(line) else { return false };
        let is_possible = bytes > self.bytes && segments > self.segments && last as u64 <= bytes;
        if !is_possible || checksum_of(content, bytes - self.bytes) != Some(checksum) {
            return false;
        }
        (self.segments, self.bytes, self.last_segment_bytes) = (segments, bytes, last);
        self.index_bytes += line.len() as u64 + 1;
        true
    }
}

fn parse_record(line: &str) -> Option<(u64, u64, usize, u32)> {
    let mut words = line.split(' ');
    let record = (
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
        u32::from_str_radix(words.next()?, 16).ok()?,
    );
    words.next().is_none().then_some(record)
}

fn checksum_of(content: &mut impl BufRead, mut bytes: u64) -> Option<u32> {
    let mut checksum = Hasher::new();
    while bytes > 0 {
        let chunk = content.fill_buf().ok().filter(|chunk| !chunk.is_empty())?;
        let used = chunk.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        checksum.update(&chunk[..used]);
        content.consume(used);
        bytes -= used as u64;
    }
    Some(checksum.finalize())
}

/// Waits for the disk where it is slower than the network, as a write to it would.
impl AsyncWrite for PartFile {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, content: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.get_mut().accept(content).map(|()| content.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let part = self.get_mut();
        Poll::Ready(part.flush_buffer().and_then(|()| part.disk.as_ref().map_or(Ok(()), Disk::report)))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    const SEGMENT: usize = 8000;

    fn content(segments: u64) -> Vec<u8> {
        let mut dice = fastrand::Rng::with_seed(3);
        (0..segments as usize * SEGMENT).map(|_| dice.u8(..)).collect()
    }

    fn film(version: u64) -> NameBuf {
        format!("/film/v={version}").parse().unwrap()
    }

    /// Writes the segments of `range`, as a fetch does.
    fn write(part: &mut PartFile, content: &[u8], range: std::ops::Range<u64>) -> io::Result<()> {
        for segment in range {
            let begin = segment as usize * SEGMENT;
            part.accept(&content[begin..begin + SEGMENT])?;
            part.note_boundary(segment + 1, SEGMENT)?;
        }
        Ok(())
    }

    /// A copy of 300 segments that a fetch left, by `keep` or by a kill.
    fn left(folder: &Path, content: &[u8], is_killed: bool) -> PathBuf {
        let path = folder.join("film");
        for name in ["film.part", "film.part.index"] {
            let _ = fs::remove_file(folder.join(name)); // it may not be there
        }
        let mut part = PartFile::open(&path, "-").unwrap();
        assert_eq!(part.start(&film(1)).unwrap(), 0);
        write(&mut part, content, 0..300).unwrap();
        match is_killed {
            true => drop(part),
            false => assert_eq!(part.keep().unwrap(), 300 * SEGMENT as u64),
        }
        path
    }

    #[test]
    fn a_fetch_goes_on_where_the_last_one_ended() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(500));
        for is_killed in [false, true] {
            let path = left(folder.path(), &content, is_killed);
            let mut part = PartFile::open(&path, "-").unwrap();
            let held = part.held().unwrap().clone();
            assert!(held.segments <= 300 && held.segments > 300 - 2 * RECORD_BYTES / SEGMENT as u64, "{held:?}");
            assert_eq!(part.start(&film(1)).unwrap(), held.segments - 1);
            write(&mut part, &content, held.segments - 1..400).unwrap();
            drop(part);
            // Once more, so that lines are appended to an index with lines.
            let mut part = PartFile::open(&path, "-").unwrap();
            let segments = part.start(&film(1)).unwrap();
            assert!(segments > 250, "{segments}");
            write(&mut part, &content, segments..500).unwrap();
            part.finish().unwrap();
            assert!(fs::read(&path).unwrap() == content);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the file is left");
        }
    }

    #[test]
    fn another_version_another_anchor_or_damage_begin_anew() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(300));
        let path = left(folder.path(), &content, false);
        let mut part = PartFile::open(&path, "-").unwrap();
        assert_eq!(part.start(&film(2)).unwrap(), 0);
        drop(part);
        let path = left(folder.path(), &content, false);
        assert_eq!(PartFile::open(&path, "an anchor").unwrap().held(), None);
        // A byte in the second megabyte: the first counts.
        let path = left(folder.path(), &content, false);
        let part_path = folder.path().join("film.part");
        let mut bytes = fs::read(&part_path).unwrap();
        bytes[3 * RECORD_BYTES as usize / 2] ^= 1;
        fs::write(&part_path, bytes).unwrap();
        let held = PartFile::open(&path, "-").unwrap().held().unwrap().clone();
        assert!((RECORD_BYTES..RECORD_BYTES + SEGMENT as u64).contains(&held.bytes), "{held:?}");
        // Bytes that never reached the disk.
        File::options().write(true).open(&part_path).unwrap().set_len(5).unwrap();
        assert_eq!(PartFile::open(&path, "-").unwrap().held().unwrap().segments, 0);
    }

    /// The story: lines were appended to a torn one, and none of them counted: a second kill lost all since the first.
    #[test]
    fn what_follows_a_torn_or_wrong_line_of_the_index_counts() {
        for rest in ["262 2096000 80", "262 2096000 8000 00000000\n", "\u{fffd}\n", "262 2096000 8000"] {
            let (folder, content) = (tempfile::tempdir().unwrap(), content(600));
            let path = left(folder.path(), &content, true);
            let mut index = File::options().append(true).open(folder.path().join("film.part.index")).unwrap();
            index.write_all(rest.as_bytes()).unwrap();
            let mut part = PartFile::open(&path, "-").unwrap();
            let held = part.start(&film(1)).unwrap();
            assert!(held > 100, "{held}");
            write(&mut part, &content, held..600).unwrap();
            assert_eq!(part.keep().unwrap(), 600 * SEGMENT as u64);
            assert_eq!(PartFile::open(&path, "-").unwrap().held().unwrap().segments, 600, "{rest:?}");
        }
    }

    /// Each moment at which a crash may cut the end of a download, and what the next one finds.
    #[test]
    fn a_crash_at_any_moment_of_the_end_leaves_what_can_go_on() {
        let content = content(300);
        for moment in ["before", "the line", "the new name", "all"] {
            let folder = tempfile::tempdir().unwrap();
            let path = left(folder.path(), &content[..], false);
            let (part_path, index_path) = (folder.path().join("film.part"), folder.path().join("film.part.index"));
            if moment != "before" {
                let mut part = PartFile::open(&path, "-").unwrap();
                assert_eq!(part.start(&film(1)).unwrap(), 299);
                write(&mut part, &content, 299..300).unwrap();
                part.make_whole().unwrap();
            }
            if ["the new name", "all"].contains(&moment) {
                fs::rename(&part_path, &path).unwrap();
            }
            if moment == "all" {
                fs::remove_file(&index_path).unwrap();
            }
            // A fetch that ends before it begins leaves no more than there was.
            let kept = PartFile::open(&path, "-").unwrap().keep().unwrap();
            assert_eq!(kept, if path.exists() { 0 } else { content.len() as u64 }, "{moment}");
            assert_eq!((part_path.exists(), index_path.exists()), (kept > 0, kept > 0), "{moment}");
            let mut part = PartFile::open(&path, "-").unwrap();
            let held = part.start(&film(1)).unwrap();
            assert_eq!(held, if kept > 0 { 299 } else { 0 }, "{moment}");
            write(&mut part, &content, held..300).unwrap();
            part.finish().unwrap();
            assert!(fs::read(&path).unwrap() == content, "{moment}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the file is left");
        }
    }

    /// The index of a download that has ended, and a part that another program began since.
    #[test]
    fn an_index_that_was_left_makes_no_other_part_ours() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(300));
        let path = left(folder.path(), &content, false);
        let mut part = PartFile::open(&path, "-").unwrap();
        part.start(&film(1)).unwrap();
        write(&mut part, &content, 299..300).unwrap();
        part.make_whole().unwrap();
        let part_path = folder.path().join("film.part");
        fs::rename(&part_path, &path).unwrap();
        drop(part);
        fs::write(&part_path, b"half a film").unwrap();
        let refused = PartFile::open(&path, "-").err().unwrap().to_string();
        assert!(refused.contains("not made by a download of namewire"), "{refused}");
        assert_eq!(fs::read(&part_path).unwrap(), b"half a film");
    }

    #[test]
    fn what_comes_again_is_known() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(300));
        let path = left(folder.path(), &content, false);
        File::options().append(true).open(folder.path().join("film.part")).unwrap().write_all(&[7; 12_000]).unwrap();
        let part = PartFile::open(&path, "-").unwrap();
        assert_eq!(part.held().unwrap().again(), (3, 20_000));
    }

    #[test]
    fn a_changed_content_under_the_same_name_is_noticed() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(300));
        let path = left(folder.path(), &content, false);
        let mut part = PartFile::open(&path, "-").unwrap();
        assert_eq!(part.start(&film(1)).unwrap(), 299);
        let mut changed = content;
        changed[299 * SEGMENT + 7] ^= 1;
        assert!(write(&mut part, &changed, 299..300).is_err());
        assert!(part.is_contradicted());
        assert_eq!(part.start(&film(1)).unwrap(), 0);
        write(&mut part, &changed, 0..300).unwrap();
        part.finish().unwrap();
        assert!(fs::read(&path).unwrap() == changed);
    }

    /// Browsers call their unfinished downloads so, too.
    #[test]
    fn a_part_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("film.part"), b"half a film").unwrap();
        let refused = PartFile::open(&folder.path().join("film"), "-").err().unwrap().to_string();
        assert!(refused.contains("not made by a download of namewire"), "{refused}");
        assert_eq!(fs::read(folder.path().join("film.part")).unwrap(), b"half a film");
    }

    /// The producer cuts the same version into other segments now.
    #[test]
    fn segments_of_another_length_begin_anew() {
        let (folder, content) = (tempfile::tempdir().unwrap(), vec![0; 300 * SEGMENT]);
        let path = left(folder.path(), &content, false);
        let mut part = PartFile::open(&path, "-").unwrap();
        part.start(&film(1)).unwrap();
        assert!(part.accept(&content[..SEGMENT / 2]).is_err());
        assert!(part.is_contradicted());
    }

    #[test]
    fn a_full_disk_ends_the_download_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut part = PartFile::open(&folder.path().join("film"), "-").unwrap();
        part.start(&film(1)).unwrap();
        // What is written to this device finds no room.
        let writer = part.disk.take().unwrap();
        drop(writer);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let index = File::create(folder.path().join("index")).unwrap();
        part.disk = Some(Disk::start(DiskWriter::new(full, index, 0), true).unwrap());
        let content = content(300);
        let error = (0..1000).find_map(|_| write(&mut part, &content, 0..300).err()).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(part.keep().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_ends_before_it_begins_changes_nothing() {
        let (folder, content) = (tempfile::tempdir().unwrap(), content(300));
        let path = left(folder.path(), &content, false);
        assert_eq!(PartFile::open(&path, "-").unwrap().keep().unwrap(), 300 * SEGMENT as u64);
        let mut part = PartFile::open(&path, "-").unwrap();
        part.start(&film(1)).unwrap();
        assert_eq!(part.keep().unwrap(), 300 * SEGMENT as u64, "not even the last segment came");
        assert_eq!(PartFile::open(&path, "-").unwrap().held().unwrap().segments, 300);
        let empty = folder.path().join("empty");
        assert_eq!(PartFile::open(&empty, "-").unwrap().keep().unwrap(), 0);
        assert!(!folder.path().join("empty.part").exists());
    }

    /// Two fetches into one file shared its unfinished part, and the second ended with "No such file or directory".
    #[test]
    fn a_second_fetch_leaves_the_first_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film");
        let mut first = PartFile::open(&path, "-").unwrap();
        let refused = PartFile::open(&path, "-").err().unwrap().to_string();
        assert!(refused.contains("another program is writing"), "{refused}");
        first.start(&film(1)).unwrap();
        first.accept(b"whole").unwrap();
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_name_too_long_for_an_ending_has_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        let mut part = PartFile::open(&path, "-").unwrap();
        part.start(&film(1)).unwrap();
        part.accept(b"whole").unwrap();
        part.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
