//! Records: the lines of a list of names.
//!
//! A list is text, plain or xz (recognized by its first bytes), one record a line:
//! - a domain: `example.com`; with its rank before or after it: `example.com,7`, `7,example.com`;
//! - a URL, with or without scheme: `example.com/a/b.html`;
//! - a path, in a list of paths: `/a/b.html` or `src/main.c`. A list is one of paths if fewer than nine in ten of its
//!   records begin with a host; then no record has a host.
//!
//! Blank lines and lines that begin with `#` are skipped. Left out and counted ([`Records::left_out`]) are: a line of
//! more than [`text_lines::LINE_BYTES_MAX`] bytes, one without host in a list of hosts, and one whose name no table
//! accepts. Limits: [`RECORDS_MAX`], [`TEXT_BYTES_MAX`].

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::conversion::Url;
use super::{NameConversion, NameSet, is_within_limits};
use crate::interrupt;
use crate::name_arena::NameArena;
use crate::text_lines;

/// Most records of a list.
pub const RECORDS_MAX: usize = 200_000_000;
/// Most bytes of text of a list: an xz file does not state its unpacked size.
pub const TEXT_BYTES_MAX: usize = 16 << 30;

/// The records of a list, as its lines have them.
#[derive(Clone, Debug)]
pub struct Records {
    pub(super) title: String,
    lines: NameArena,
    begin_with_hosts: bool,
    left_out: usize,
}

impl Records {
    /// Reads a file. The title is the file's name without endings.
    ///
    /// # Errors
    /// If it cannot be read, is beyond the limits, or half of its lines are no names.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let title = text_lines::title(path);
        let lines = text_lines::open(path).map_err(Into::into).and_then(Lines::read);
        let lines = lines.with_context(|| format!("cannot read names from {}", path.display()))?;
        let records = Self::of_read(title, lines);
        let lines = records.len() + records.left_out;
        ensure!(records.left_out <= lines / 2, "{}: half of its {lines} lines are no names", path.display());
        ensure!(!records.is_empty(), "{} has no names", path.display());
        Ok(records)
    }

    /// The records of a text in memory.
    pub(super) fn of_text(title: &str, text: &[u8]) -> Self {
        let lines = Lines::read(text).unwrap_or_default(); // reading memory does not fail, and this text is small
        Self::of_read(title.to_owned(), lines)
    }

    /// The records of these lines.
    pub(super) fn of_lines(title: String, lines: NameArena) -> Self {
        Self::of_read(title, Lines { lines, too_long: 0 })
    }

    fn of_read(title: String, Lines { lines, too_long }: Lines) -> Self {
        let mut records = Self { title, lines, begin_with_hosts: false, left_out: too_long };
        let hosts = (0..records.len()).filter(|&place| Url::parse(records.record(place)).is_some()).count();
        records.begin_with_hosts = hosts * 10 >= records.len() * 9;
        if records.begin_with_hosts {
            records.left_out += records.len() - hosts;
        }
        records
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// False for a list of paths: all conversions then give the same names.
    pub fn begin_with_hosts(&self) -> bool {
        self.begin_with_hosts
    }

    /// Whether most records have a host and a path.
    pub fn are_urls(&self) -> bool {
        self.with_paths().len() * 2 > self.len()
    }

    /// The records that have a host and a path.
    pub fn with_paths(&self) -> Self {
        let has_path = |&place: &usize| {
            let url = Url::parse(self.record(place)).filter(|_| self.begin_with_hosts);
            url.is_some_and(|url| url.segments().next().is_some())
        };
        let lines = (0..self.len()).filter(has_path).map(|place| self.lines.get(place)).collect();
        Self::of_lines(self.title.clone(), lines)
    }

    /// The names of the records.
    ///
    /// # Errors
    /// If the user interrupted.
    pub fn names(&self, conversion: NameConversion, seed: u64) -> anyhow::Result<NameSet> {
        let mut names = NameArena::default();
        let mut name = Vec::new();
        for (place, url) in self.urls().enumerate() {
            if place % 65_536 == 0 {
                interrupt::check()?;
            }
            let components = url.write_name(conversion, &mut name);
            if components > 0 && is_within_limits(&name, components) {
                names.push(&name);
            }
        }
        Ok(NameSet::of_names(self.title.clone(), &names, seed))
    }

    /// The records that are names.
    pub(super) fn urls(&self) -> impl Iterator<Item = Url<'_>> {
        let parse = |record| if self.begin_with_hosts { Url::parse(record) } else { Some(Url::path_only(record)) };
        (0..self.len()).filter_map(move |place| parse(self.record(place)))
    }

    /// Line `place`, without its rank.
    fn record(&self, place: usize) -> &[u8] {
        let line = self.lines.get(place);
        let is_rank = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        match line.iter().position(|&byte| byte == b',').map(|at| (&line[..at], &line[at + 1..])) {
            Some((rank, record)) if is_rank(rank) => record,
            Some((record, rank)) if is_rank(rank) => record,
            _ => line,
        }
    }
}

/// Lines without surrounding space; blank lines and comments are left out.
#[derive(Default)]
struct Lines {
    lines: NameArena,
    too_long: usize,
}

impl Lines {
    fn read(text: impl BufRead) -> anyhow::Result<Self> {
        let mut lines = NameArena::default();
        let too_long = text_lines::for_each(text, |line| {
            ensure!(lines.len() < RECORDS_MAX, "more than {RECORDS_MAX} records");
            ensure!(lines.bytes() + line.len() <= TEXT_BYTES_MAX, "more than {} GiB of text", TEXT_BYTES_MAX >> 30);
            lines.push(line);
            Ok(())
        })?;
        Ok(Self { lines, too_long })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_sets::{one_name_set, record_sets};
    use crate::text_lines::LINE_BYTES_MAX;
    use std::fs;

    /// `www.b.example/x`, `a.example`, `www.b.example/x`, as `xz` packs them.
    const XZ: [u8; 88] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x1c, 0x00,
        0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x00, 0x29, 0x00, 0x1a, 0x5d, 0x00, 0x3b, 0xe8, 0x07, 0x8c, 0x42,
        0xde, 0xcd, 0xad, 0x71, 0x9a, 0xfd, 0xbf, 0x8c, 0xc7, 0xa4, 0x75, 0x92, 0x27, 0x77, 0x62, 0xba, 0x19, 0x09,
        0x3f, 0xe0, 0x00, 0x00, 0x00, 0x00, 0xa0, 0xfc, 0x09, 0x8b, 0xc1, 0xea, 0x82, 0xd8, 0x00, 0x01, 0x36, 0x2a,
        0x88, 0xed, 0x21, 0x72, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    fn names(records: &Records) -> Vec<Vec<u8>> {
        let set = records.names(NameConversion::Host, 1).expect("few names");
        let mut names: Vec<_> = set.names.iter().map(<[u8]>::to_vec).collect();
        names.sort();
        names
    }

    #[test]
    fn a_record_is_a_domain_a_ranked_domain_or_a_url() {
        let records =
            Records::of_text("list", b"# comment\n\n a.example \r\nb.example,12\n7,c.example\nd.example/x,3\n");
        assert!(records.begin_with_hosts() && records.len() == 4 && records.left_out == 0);
        let wanted: [&[u8]; 4] =
            [b"\x08\x09a.example", b"\x08\x09b.example", b"\x08\x09c.example", b"\x08\x09d.example\x08\x01x"];
        let wanted: Vec<_> = wanted.into_iter().map(<[u8]>::to_vec).collect();
        assert_eq!(names(&records), wanted);
        let paths = Records::of_text("list", b"src/main.c\n/a.example\nb.example/x\n");
        assert!(!paths.begin_with_hosts() && names(&paths).len() == 3);
    }

    #[test]
    fn records_with_paths_have_a_host_too() {
        let mixed = Records::of_text("list", b"a.example\nb.example/x,3\nhttp://c.example/\nd.example/y/z?q\n");
        let paths = Records::of_text("list", b"src/main.c\nb.example/x\n");
        assert_eq!((names(&mixed.with_paths()).len(), paths.with_paths().len()), (2, 0));
        assert!(mixed.with_paths().are_urls() && !mixed.are_urls() && !paths.are_urls());
    }

    #[test]
    fn lines_that_are_no_names_are_counted_and_left_out() {
        let mut text = b"a.example\n".repeat(20);
        text.extend(b"no host\n");
        text.extend(vec![b'x'; 3 * LINE_BYTES_MAX]);
        text.extend(b"\nlast.example/");
        text.extend(b"y/".repeat(300)); // more components than a name may have
        let records = Records::of_text("list", &text);
        assert_eq!((records.len(), records.left_out), (22, 2));
        assert_eq!(names(&records), [b"\x08\x09a.example".to_vec()]);
    }

    #[test]
    fn files_plain_and_packed_and_folders_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let (plain, packed) = (dir.path().join("plain.txt"), dir.path().join("packed.txt.xz"));
        fs::write(&plain, "c.example/y\na.example\n").expect("written");
        fs::write(&packed, XZ).expect("written");
        fs::write(dir.path().join("README.md"), "no list").expect("written");
        assert_eq!(names(&Records::read(&packed).expect("xz")).len(), 2);
        let sets = record_sets(Some(dir.path()), 0, 1).expect("two lists");
        assert_eq!(sets.iter().map(|records| &*records.title).collect::<Vec<_>>(), ["packed", "plain"]);
        let all = one_name_set(Some(dir.path()), 0, NameConversion::Tld, 1).expect("two lists");
        assert_eq!((all.names.len(), all.title.as_str()), (3, "packed + plain"));
        fs::write(&packed, &XZ[..60]).expect("written");
        assert!(Records::read(&packed).is_err(), "half an xz file");
        fs::write(&plain, "\n#\n").expect("written");
        assert!(Records::read(&plain).is_err(), "nothing");
        assert!(Records::read(&dir.path().join("absent")).is_err());
    }
}
