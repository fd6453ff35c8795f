//! Traces: requests recorded in files.
//!
//! A trace is text ([`text_lines`]), one request a line, in the order of the requests, with tabs between columns:
//! - `object`;
//! - `object`, `bytes`;
//! - `seconds`, `object`, `bytes`; the seconds are not kept.
//!
//! The first line sets the number of columns. An object is any text; objects get numbers in the order of their first
//! requests. The name of a Data packet means one content, so an object has one size: the largest in the trace, at least
//! 1, or [`DATA_BYTES`] if the trace gives none.
//!
//! A line with other columns, or without a number where one is required, is left out and counted; a trace is refused
//! if half of its lines are. Limits: [`REQUESTS_MAX`], [`OBJECTS_MAX`], [`OBJECT_TEXT_MAX`]. Memory: a request takes 8
//! bytes; while the trace is read, an object also takes its text and about 60 bytes.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::{DATA_BYTES, Request, churn};
use crate::text_lines;

/// Most requests of a trace.
pub const REQUESTS_MAX: usize = 400_000_000;
/// Most objects of a trace.
pub const OBJECTS_MAX: u32 = 200_000_000;
/// Most bytes of the text of all objects.
pub const OBJECT_TEXT_MAX: usize = 8 << 30;

/// Recorded requests.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it is called.
    pub title: String,
    /// How many objects.
    pub objects: u32,
    /// The requests, in order.
    pub requests: Vec<Request>,
    /// Lines that were no requests.
    pub left_out: usize,
}

/// The traces for an experiment: the file at `given`, or every file in that folder whose name begins with `trace` and
/// ends in `.txt` or `.tsv`, plain or packed. Without `given`, an invented one ([`churn`]).
///
/// # Errors
/// If a file cannot be read or is no trace.
pub fn traces(given: Option<&Path>, invented_requests: usize, seed: u64) -> anyhow::Result<Vec<Trace>> {
    let Some(given) = given else { return Ok(vec![churn::invented(invented_requests, seed)]) };
    trace_files(given)?.iter().map(|file| Trace::read(file)).collect()
}

/// The files that [`traces`] reads, for a caller that reads them one by one.
///
/// # Errors
/// If a folder cannot be read or has no trace.
pub fn trace_files(given: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let is_trace = |name: &str| {
        name.starts_with("trace") && [".txt", ".tsv", ".txt.xz", ".tsv.xz"].iter().any(|end| name.ends_with(end))
    };
    text_lines::files(given, "trace*.txt, .tsv, .txt.xz or .tsv.xz", is_trace)
}

impl Trace {
    /// Reads a file. The title is the file's name without endings.
    ///
    /// # Errors
    /// If it cannot be read, is beyond the limits, or half of its lines are no requests.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text_lines::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of_text(&text_lines::title(path), text).with_context(|| format!("no trace: {}", path.display()))
    }

    /// The requests of a text.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_text(title: &str, text: impl BufRead) -> anyhow::Result<Self> {
        let mut reading = Reading::default();
        let too_long = text_lines::for_each(text, |line| reading.line(line))?;
        let left_out = reading.left_out + too_long;
        ensure!(left_out <= reading.objects_of_requests.len(), "half of its lines are no requests");
        ensure!(!reading.objects_of_requests.is_empty(), "it has no requests");
        let bytes = |object: u32| reading.bytes[object as usize];
        Ok(Self {
            title: title.to_owned(),
            objects: reading.bytes.len() as u32,
            requests: reading
                .objects_of_requests
                .iter()
                .map(|&object| Request { object, bytes: bytes(object) })
                .collect(),
            left_out,
        })
    }
}

/// A trace while it is read.
#[derive(Default)]
struct Reading {
    /// Columns of the first line; 0 before it.
    columns: usize,
    numbers: HashMap<Box<[u8]>, u32>,
    object_text: usize,
    /// The size of each object.
    bytes: Vec<u32>,
    objects_of_requests: Vec<u32>,
    left_out: usize,
}

impl Reading {
    fn line(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let columns = line.split(|&byte| byte == b'\t').count();
        if self.columns == 0 {
            ensure!(columns <= 3, "a line of {columns} columns");
            self.columns = columns;
        }
        match parsed(line).filter(|_| columns == self.columns) {
            Some((object, bytes)) => self.request(object, bytes),
            None => {
                self.left_out += 1;
                Ok(())
            }
        }
    }

    fn request(&mut self, object: &[u8], bytes: u32) -> anyhow::Result<()> {
        ensure!(self.objects_of_requests.len() < REQUESTS_MAX, "more than {REQUESTS_MAX} requests");
        let number = match self.numbers.get(object) {
            Some(&number) => number,
            None => {
                let number = self.bytes.len() as u32;
                ensure!(number < OBJECTS_MAX, "more than {OBJECTS_MAX} objects");
                self.object_text += object.len();
                ensure!(self.object_text <= OBJECT_TEXT_MAX, "more than {} GiB of objects", OBJECT_TEXT_MAX >> 30);
                self.numbers.insert(object.into(), number);
                self.bytes.push(1);
                number
            }
        };
        let known = &mut self.bytes[number as usize];
        *known = bytes.max(*known);
        self.objects_of_requests.push(number);
        Ok(())
    }
}

/// The object and size of a line.
fn parsed(line: &[u8]) -> Option<(&[u8], u32)> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let mut columns = line.split(|&byte| byte == b'\t');
    let (object, bytes) = match (columns.next()?, columns.next(), columns.next()) {
        (object, None, _) => (object, u64::from(DATA_BYTES)),
        (object, Some(bytes), None) => (object, number(bytes)?),
        (seconds, Some(object), Some(bytes)) => {
            std::str::from_utf8(seconds).ok()?.parse::<f64>().ok()?;
            (object, number(bytes)?)
        }
    };
    Some((object, u32::try_from(bytes).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Trace> {
        Trace::of_text("t", text.as_bytes())
    }

    fn pairs(trace: &Trace) -> Vec<(u32, u32)> {
        trace.requests.iter().map(|request| (request.object, request.bytes)).collect()
    }

    #[test]
    fn each_form_is_read_and_objects_are_numbered_anew() -> anyhow::Result<()> {
        let plain = read("17\n4\n17\n")?;
        assert_eq!((pairs(&plain), plain.objects), (vec![(0, 1024), (1, 1024), (0, 1024)], 2));
        let sized = read("# a comment\na\t5\nb\t0\na\t70\n")?;
        assert_eq!(pairs(&sized), [(0, 70), (1, 1), (0, 70)], "one size an object, and never none");
        let timed = read("0\t/x y/z\t10\n1.5\t/\t99999999999\n")?;
        assert_eq!(pairs(&timed), [(0, 10), (1, u32::MAX)]);
        Ok(())
    }

    #[test]
    fn what_is_no_request_is_counted_and_a_trace_of_such_lines_refused() -> anyhow::Result<()> {
        let trace = read("a\t5\nb\nc\tmany\nd\t6\n")?;
        assert_eq!((pairs(&trace), trace.left_out), (vec![(0, 5), (1, 6)], 2));
        for text in ["", "# nothing\n", "a\t5\nb\nc\n", "a\tb\tc\td\n", "x\ty\t1\n"] {
            assert!(read(text).is_err(), "{text:?}");
        }
        Ok(())
    }

    #[test]
    fn a_folder_stands_for_its_traces() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("trace-b.tsv"), "1\tx\t2\n")?;
        std::fs::write(dir.path().join("trace-a.txt"), "x\n")?;
        std::fs::write(dir.path().join("names.txt"), "no trace")?;
        let titles: Vec<String> = traces(Some(dir.path()), 0, 1)?.into_iter().map(|trace| trace.title).collect();
        assert_eq!(titles, ["trace-a", "trace-b"]);
        assert!(traces(Some(&dir.path().join("absent")), 0, 1).is_err());
        Ok(())
    }

    #[test]
    fn without_a_file_there_is_an_invented_one_with_churn() -> anyhow::Result<()> {
        let [trace] = <[Trace; 1]>::try_from(traces(None, 50_000, 1)?).map_err(|_| anyhow::anyhow!("one trace"))?;
        assert_eq!(trace.requests.len(), 50_000);
        let mut asked = vec![0_u32; trace.objects as usize];
        trace.requests.iter().for_each(|request| asked[request.object as usize] += 1);
        let once = asked.iter().filter(|&&times| times == 1).count();
        assert!(once > 5_000, "{once} objects requested once");
        let newest_in_first_half = trace.requests[..25_000].iter().map(|request| request.object).max();
        let again = trace.requests[25_000..].iter().filter(|request| Some(request.object) > newest_in_first_half);
        assert!(again.clone().count() > 4_000, "{} requests for new objects", again.count());
        Ok(())
    }
}
