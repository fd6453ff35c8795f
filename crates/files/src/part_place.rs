//! The place of an unfinished copy: which files beside `FILE` belong to it, and how does no link lead elsewhere?
//!
//! All files are opened, renamed and removed in one open folder, and no symbolic link is followed. The copy of `FILE`
//! is `FILE.part`, or `.<digest of the name>.part` if that is too long or is taken; the index has `.index` behind it.
//!
//! An index is believed: what it says was checked is not checked again. So none may come from a producer. An entry of a
//! folder whose name is that of an index ([`is_index_name`]) is not fetched, and a file that gets the place of an
//! unfinished copy takes the index with it ([`remove_index_of`]).

use crate::entry_name::ENTRY_NAME_BYTES_MAX;
use namewire_packet::digest::sha256;
use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, statat, unlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fmt::Write,
    fs::{File, TryLockError},
    io::{self, BufReader, Read},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
    },
    path::Path,
};

/// The first line of an index.
pub(crate) const HEADER: &[u8; 16] = b"namewire-part 1\n";
const PART: &[u8] = b".part";
const INDEX: &[u8] = b".index";
/// A part that another process finishes just now is gone when it can be locked. Nobody meets so many of them in a row.
const LOCK_ATTEMPTS: usize = 16;
/// Opening a FIFO does not wait, and no device becomes this process's terminal.
const SAFELY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Which of its two names an unfinished copy has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartName {
    /// `FILE.part`, if that is not too long.
    #[default]
    Usual,
    /// `.<digest of the name>.part`.
    Digest,
}

impl PartName {
    /// The name of the copy of the file `name`.
    pub(crate) fn of(self, name: &[u8]) -> Vec<u8> {
        let is_short = name.len() + PART.len() + INDEX.len() <= ENTRY_NAME_BYTES_MAX;
        if self == PartName::Usual && is_short {
            return [name, PART].concat();
        }
        let mut part = String::from(".");
        for byte in &sha256(&[name])[..16] {
            // Writing to a String cannot fail.
            let _ = write!(part, "{byte:02x}");
        }
        [part.as_bytes(), PART].concat()
    }

    /// The name for the copy of `name` that is none of the names which `is_taken` knows; `None`: both are taken.
    pub(crate) fn free(name: &[u8], is_taken: impl Fn(&[u8]) -> bool) -> Option<PartName> {
        [PartName::Usual, PartName::Digest].into_iter().find(|which| !is_taken(&which.of(name)))
    }
}

/// True if an index could have this name.
pub(crate) fn is_index_name(name: &[u8]) -> bool {
    name.strip_suffix(INDEX).is_some_and(|part| part.ends_with(PART))
}

/// The file `name` has come, and is no unfinished copy any more if it was one.
pub(crate) fn remove_index_of(folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
    if !name.ends_with(PART) {
        return Ok(());
    }
    let index = OsString::from_vec([name, INDEX].concat());
    match read_index(folder, &index) {
        Some(_) => Ok(unlinkat(folder, &index, AtFlags::empty())?),
        None => Ok(()),
    }
}

/// The index, from its second line on; `None` if there is none of ours.
fn read_index(folder: &OwnedFd, index: &OsStr) -> Option<BufReader<File>> {
    let index = File::from(openat(folder, index, OFlags::RDONLY | SAFELY, Mode::empty()).ok()?);
    // Another name of the file may be anywhere, and lines will be appended.
    if !index.metadata().is_ok_and(|meta| meta.is_file() && meta.nlink() == 1) {
        return None;
    }
    let mut lines = BufReader::new(index);
    let mut first = [0; HEADER.len()];
    lines.read_exact(&mut first).ok()?;
    (first == *HEADER).then_some(lines)
}

/// A file that is being written, and its unfinished copy, in their folder.
pub(crate) struct PartPlace {
    folder: OwnedFd,
    name: OsString,
    part: OsString,
    index: OsString,
}

impl PartPlace {
    pub(crate) fn new(folder: OwnedFd, name: &OsStr, part: PartName) -> Self {
        let part = part.of(name.as_bytes());
        let index = OsString::from_vec([&part[..], INDEX].concat());
        PartPlace { folder, name: name.to_owned(), part: OsString::from_vec(part), index }
    }

    /// The place of the file at `path`. The path is the user's, so links in it are followed.
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no file name"))?;
        let around = path.parent().filter(|around| !around.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(PartPlace::new(File::open(around)?.into(), name, PartName::Usual))
    }

    /// The name of the unfinished copy.
    pub(crate) fn part(&self) -> &OsStr {
        &self.part
    }

    /// Opens the copy for this process alone.
    pub(crate) fn open_locked(&self) -> io::Result<File> {
        let part = self.part.display();
        for _ in 0..LOCK_ATTEMPTS {
            let file = self.open(&self.part, OFlags::RDWR | OFlags::CREATE)?;
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => io::Error::other(format!("another program is writing {part}")),
                TryLockError::Error(error) => error,
            })?;
            let meta = file.metadata()?;
            if !meta.is_file() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{part} is no file")));
            }
            if statat(&self.folder, &self.part, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|one| one.st_ino == meta.ino()) {
                return Ok(file);
            }
        }
        Err(io::Error::other(format!("other programs keep writing {part}")))
    }

    /// The index, from its second line on; `None` if there is none of ours.
    pub(crate) fn read_index(&self) -> Option<BufReader<File>> {
        read_index(&self.folder, &self.index)
    }

    /// Makes the index anew.
    pub(crate) fn create_index(&self) -> io::Result<File> {
        self.remove_index()?;
        self.open(&self.index, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    pub(crate) fn append_to_index(&self) -> io::Result<File> {
        self.open(&self.index, OFlags::WRONLY | OFlags::APPEND)
    }

    pub(crate) fn remove_index(&self) -> io::Result<()> {
        match unlinkat(&self.folder, &self.index, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn remove_part(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, &self.part, AtFlags::empty())?)
    }

    /// Puts the copy in the place of the file.
    pub(crate) fn rename(&self) -> io::Result<()> {
        Ok(renameat(&self.folder, &self.part, &self.folder, &self.name)?)
    }

    fn open(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.folder, name, flags | SAFELY, Mode::from_raw_mode(0o666))?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_has_the_name_of_another_file() {
        let free = |taken: &[&str]| PartName::free(b"film", |name| taken.iter().any(|one| one.as_bytes() == name));
        let digest = String::from_utf8(PartName::Digest.of(b"film")).unwrap();
        assert_eq!(free(&["film", "other.part"]), Some(PartName::Usual));
        assert_eq!(free(&["film.part"]), Some(PartName::Digest));
        assert_eq!(free(&[&digest]), Some(PartName::Usual));
        assert_eq!(free(&["film.part", &digest]), None);
        let long = [b'n'; 255];
        let is_taken = |name: &[u8]| name == PartName::Usual.of(&long);
        assert_eq!(PartName::free(&long, is_taken), None, "too long for an ending, so it has one name");
        assert!(is_index_name(b"film.part.index") && !is_index_name(b"film.index") && !is_index_name(b"film.part"));
    }
}
