//! Text lines: the lines of a file, plain or packed.
//!
//! A file is text, plain or xz, recognized by its first bytes. Blank lines and lines that begin with `#` are skipped.
//! Limits: lines longer than [`LINE_BYTES_MAX`] are left out and counted; an xz file may ask for [`XZ_KIB_MAX`] KiB of
//! memory. The caller limits the number of lines, because an xz file does not state its unpacked size.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use lzma_rust2::XzReader;

use crate::interrupt;

/// Most bytes of a line.
pub const LINE_BYTES_MAX: usize = 16 * 1024;
/// Most memory that an xz file may ask for: the largest preset (`xz -9`) asks for 65 MiB.
pub const XZ_KIB_MAX: u32 = 512 * 1024;
/// The first bytes of an xz file.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// The text of a file.
///
/// # Errors
/// If it cannot be read.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    (&file).take(XZ_MAGIC.len() as u64).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(if magic == XZ_MAGIC {
        Box::new(BufReader::new(XzReader::new_mem_limit(BufReader::new(file), true, XZ_KIB_MAX)))
    } else {
        Box::new(BufReader::new(file))
    })
}

/// Passes every line, without surrounding space, blank lines and comments, to `take`; returns the number of lines that
/// were too long.
///
/// # Errors
/// If reading or `take` fails, or the user interrupted.
pub fn for_each(mut text: impl BufRead, mut take: impl FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<usize> {
    let (mut line, mut too_long) = (Vec::new(), 0);
    for read in 1_usize.. {
        line.clear();
        let bytes = (&mut text).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
        if bytes == 0 {
            break;
        }
        if bytes > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            text.skip_until(b'\n')?;
            too_long += 1;
        } else if !matches!(line.trim_ascii(), [] | [b'#', ..]) {
            take(line.trim_ascii())?;
        }
        if read % 65_536 == 0 {
            interrupt::check()?;
        }
    }
    Ok(too_long)
}

/// The given file, or the files in the given folder whose names `is_meant` accepts, in the order of their names. Hidden
/// files are left out.
///
/// # Errors
/// If the folder cannot be read or has no such file; `meant` describes such files.
pub fn files(given: &Path, meant: &str, is_meant: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    if !given.is_dir() {
        return Ok(vec![given.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in given.read_dir().with_context(|| format!("cannot read {}", given.display()))? {
        let path = entry?.path();
        let plain_name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        if is_meant(plain_name) && !plain_name.starts_with('.') && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "{} has no {meant} file", given.display());
    Ok(files)
}

/// The title of a file's content: its name without endings.
pub fn title(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.display().to_string());
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_long_lines_are_skipped() -> anyhow::Result<()> {
        let mut text = b"# comment\n\n a \r\n".to_vec();
        text.extend(vec![b'x'; 3 * LINE_BYTES_MAX]);
        text.extend(b"\nlast");
        let mut lines = Vec::new();
        let too_long = for_each(&text[..], |line| {
            lines.push(line.to_vec());
            Ok(())
        })?;
        assert_eq!((lines, too_long), (vec![b"a".to_vec(), b"last".to_vec()], 1));
        assert!(for_each(&b"a\n"[..], |_| anyhow::bail!("enough")).is_err());
        Ok(())
    }
}
