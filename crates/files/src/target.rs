//! The target of a fetch on disk: how does nothing that a producer says get written outside one folder?
//!
//! Every path below the target is opened component by component, each in the folder before it, without following
//! symbolic links. Components are [`EntryName`]s, so none of them leads out either. A link that is already in the
//! target is an error that names it, as is a device, a FIFO, a socket or a folder in the place of a file: none is
//! replaced.
//!
//! A file is written beside its place, and renamed when it is whole; `part_place.rs` has the names of unfinished files.
//! A lock keeps two programs from writing the same unfinished file. Of a small file, what a killed program left is
//! taken over. A large one ([`Target::resume`]) goes on with it, as [`crate::part`] describes.
//!
//! Cost: one system call for each component, and seven or so for each file; of a large one, twice as many.

use crate::{
    entry_name::{EntryName, EntryPath},
    part::PartFile,
    part_place::{PartName, PartPlace, remove_index_of},
};
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens, mkdirat, openat,
        renameat, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    cell::OnceCell,
    ffi::{OsStr, OsString},
    fs::{File, TryLockError},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
    },
    path::{Path, PathBuf},
};

/// An unfinished file that another program finishes just now is gone when it can be locked. This many in a row are no
/// accident.
const LOCK_ATTEMPTS: usize = 16;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opening a FIFO does not wait, and no device becomes this process's terminal.
const PART: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Something else has the place of a file or folder.
    #[error("{path} is {what}, which is not replaced")]
    Taken {
        /// The place.
        path: String,
        /// What is there.
        what: &'static str,
    },
    /// Another program writes the same file.
    #[error("another program is writing {0}")]
    Busy(String),
    /// The file system refuses.
    #[error("cannot write {path}: {error}")]
    Io {
        /// The place.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// What is kept of a file or folder besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions; other bits are ignored.
    pub permissions: u32,
    /// Time of the last change, in nanoseconds since 1970.
    pub mtime_ns: u64,
}

/// A folder below which files and folders are written.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    root: OnceCell<OwnedFd>,
}

impl Target {
    /// The folder at `path`. It is opened, and made if it is not there, when something is written. The path is the
    /// user's, so links in it are followed.
    pub fn new(path: &Path) -> Self {
        Target { path: path.to_owned(), root: OnceCell::new() }
    }

    fn root(&self) -> Result<&OwnedFd, TargetError> {
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let failed = |error| TargetError::Io { path: self.path.display().to_string(), error };
        std::fs::create_dir_all(&self.path).map_err(failed)?;
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        let root = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        Ok(self.root.get_or_init(|| root))
    }

    /// Makes the folder at `path` and those around it, as far as they are not there.
    ///
    /// # Errors
    /// [`TargetError::Taken`] if a component is no folder; [`TargetError::Io`] if the file system refuses.
    pub fn make_folder(&self, path: &EntryPath) -> Result<(), TargetError> {
        self.folder(path).map(|_| ())
    }

    /// True if a regular file of this size and time is at `path`.
    pub fn has_file(&self, path: &EntryPath, size_bytes: u64, mtime_ns: u64) -> bool {
        let Some((around, name)) = path.split_last() else { return false };
        let Ok(folder) = self.folder(around) else { return false };
        let Ok(stat) = statat(&folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let time = timespec(mtime_ns);
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size) == Ok(size_bytes)
            && (i128::from(stat.st_mtime), stat.st_mtime_nsec as i128)
                == (i128::from(time.tv_sec), i128::from(time.tv_nsec))
    }

    /// Begins to write the file at `path`. The folders around it are made.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn begin(&self, path: &EntryPath, part: PartName) -> Result<TargetFile, TargetError> {
        let (place, file, _) = self.open_part(path, part)?;
        // A second fetch must not find an index of what comes now.
        let emptied = file.metadata().and_then(|meta| match meta.len() {
            0 => Ok(()),
            _ => remove_index_of(&place.folder, place.part.as_bytes()).and_then(|()| file.set_len(0)),
        });
        emptied.map_err(|error| place.failed(error))?;
        Ok(TargetFile { file, place, is_kept: false })
    }

    /// Goes on to write the file at `path`, whose unfinished copy may be there. The folders around it are made.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn resume(&self, path: &EntryPath, part: PartName, checked_by: &str) -> Result<ResumedFile, TargetError> {
        let (place, file, shown_part) = self.open_part(path, part)?;
        let failed = |error| TargetError::Io { path: shown_part, error };
        let opened = place.folder.try_clone().and_then(|folder| {
            let part = PartPlace::new(folder, place.name.as_os_str(), part);
            PartFile::of_locked(part, file, checked_by, true)
        });
        Ok(ResumedFile { part: Some(opened.map_err(failed)?), place })
    }

    /// Opens the unfinished file for this process alone, and says how messages call it.
    fn open_part(&self, path: &EntryPath, part: PartName) -> Result<(Place, File, String), TargetError> {
        let shown = self.shown(&path.components());
        let Some((around, name)) = path.split_last() else {
            return Err(TargetError::Taken { path: shown, what: "a folder" });
        };
        let folder = self.folder(around)?;
        require_replaceable(&folder, name.as_os_str(), &shown)?;
        let part = OsString::from_vec(part.of(name.as_bytes()));
        let shown_part = self.path.join(self.shown_below(&around.components())).join(&part).display().to_string();
        let file = open_part(&folder, &part, &shown_part)?;
        Ok((Place { folder, name: name.clone(), part, shown }, file, shown_part))
    }

    /// Gives the folder at `path` permissions and time. Do it when everything in it is written.
    ///
    /// # Errors
    /// [`TargetError::Io`] if the file system refuses.
    pub fn set_folder_attributes(&self, path: &EntryPath, attributes: Attributes) -> Result<(), TargetError> {
        let folder = self.folder(path)?;
        let set = set_attributes(&folder, attributes);
        set.map_err(|error| TargetError::Io { path: self.shown(&path.components()), error: error.into() })
    }

    /// Opens the folder at this path, and makes what is missing.
    fn folder(&self, path: &EntryPath) -> Result<OwnedFd, TargetError> {
        let path = path.components();
        let failed = |error: io::Error, depth: usize| TargetError::Io { path: self.shown(&path[..depth]), error };
        let mut folder = self.root()?.try_clone().map_err(|error| failed(error, 0))?;
        for (depth, name) in (1..).zip(&path) {
            let name = name.as_os_str();
            let mut opened = openat(&folder, name, FOLDER, Mode::empty());
            if matches!(opened, Err(Errno::NOENT)) {
                match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => opened = openat(&folder, name, FOLDER, Mode::empty()),
                    Err(error) => return Err(failed(error.into(), depth)),
                }
            }
            folder = opened.map_err(|error| match what_is(&folder, name) {
                Some(what) if what != "a folder" => TargetError::Taken { path: self.shown(&path[..depth]), what },
                _ => failed(error.into(), depth),
            })?;
        }
        Ok(folder)
    }

    /// A place as messages show it.
    fn shown(&self, path: &[&EntryName]) -> String {
        match path {
            [] => self.path.display().to_string(),
            _ => self.path.join(self.shown_below(path)).display().to_string(),
        }
    }

    fn shown_below(&self, path: &[&EntryName]) -> String {
        path.iter().map(|name| name.to_string()).collect::<Vec<_>>().join("/")
    }
}

/// Where a file and its unfinished copy are.
#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    name: EntryName,
    part: OsString,
    shown: String,
}

impl Place {
    fn failed(&self, error: io::Error) -> TargetError {
        TargetError::Io { path: self.shown.clone(), error }
    }

    fn require_replaceable(&self) -> Result<(), TargetError> {
        require_replaceable(&self.folder, self.name.as_os_str(), &self.shown)
    }

    /// The file has its name.
    fn came(&self) -> Result<(), TargetError> {
        remove_index_of(&self.folder, self.name.as_bytes()).map_err(|error| self.failed(error))
    }
}

/// A file that is being written. Dropping it removes the unfinished file.
#[derive(Debug)]
pub struct TargetFile {
    file: File,
    place: Place,
    is_kept: bool,
}

impl TargetFile {
    /// Where the content goes.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// See [`TargetError`]; then the unfinished file is removed.
    pub fn keep(mut self, attributes: Option<Attributes>) -> Result<(), TargetError> {
        let place = &self.place;
        if let Some(attributes) = attributes {
            set_attributes(&self.file, attributes).map_err(|error| place.failed(error.into()))?;
        }
        place.require_replaceable()?;
        let renamed = renameat(&place.folder, &place.part, &place.folder, place.name.as_os_str());
        renamed.map_err(|error| place.failed(error.into()))?;
        place.came()?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for TargetFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // The failure to report is the one that led here.
            let _ = unlinkat(&self.place.folder, &self.place.part, AtFlags::empty());
        }
    }
}

/// A large file that is being written. Dropping it leaves the unfinished copy, for the next fetch to go on with.
pub struct ResumedFile {
    /// Until the end.
    part: Option<PartFile>,
    place: Place,
}

impl ResumedFile {
    /// Where the content goes; `None` after the end.
    pub fn part(&mut self) -> Option<&mut PartFile> {
        self.part.as_mut()
    }

    /// Why the file cannot be written.
    pub(crate) fn failed(&self, error: io::Error) -> TargetError {
        self.place.failed(error)
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// See [`TargetError`]; then the unfinished copy is left.
    pub fn keep(mut self, attributes: Option<Attributes>) -> Result<(), TargetError> {
        self.place.require_replaceable()?;
        if let Some(part) = self.part.take() {
            let prepare = |file: &File| match attributes {
                Some(attributes) => Ok(set_attributes(file, attributes)?),
                None => Ok(()),
            };
            part.finish_after(prepare).map_err(|error| self.place.failed(error))?;
        }
        self.place.came()
    }

    /// Removes the unfinished copy: what came is not the file.
    ///
    /// # Errors
    /// [`TargetError::Io`] if the file system refuses.
    pub fn discard(mut self) -> Result<(), TargetError> {
        let discarded = self.part.take().map_or(Ok(()), PartFile::discard);
        discarded.map_err(|error| self.place.failed(error))
    }
}

impl Drop for ResumedFile {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            // The failure to report is the one that led here.
            let _ = part.keep();
        }
    }
}

/// What has this name, in words; `None` if nothing has.
fn what_is(folder: &OwnedFd, name: &OsStr) -> Option<&'static str> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    })
}

fn require_replaceable(folder: &OwnedFd, name: &OsStr, shown: &str) -> Result<(), TargetError> {
    match what_is(folder, name) {
        None | Some("a file") => Ok(()),
        Some(what) => Err(TargetError::Taken { path: shown.to_owned(), what }),
    }
}

/// Opens the unfinished file for this process alone.
fn open_part(folder: &OwnedFd, part: &OsStr, shown: &str) -> Result<File, TargetError> {
    let failed = |error: io::Error| TargetError::Io { path: shown.to_owned(), error };
    for _ in 0..LOCK_ATTEMPTS {
        let opened = openat(folder, part, PART, Mode::from_raw_mode(0o666));
        let file = File::from(opened.map_err(|error| match what_is(folder, part) {
            Some(what) if what != "a file" => TargetError::Taken { path: shown.to_owned(), what },
            _ => failed(error.into()),
        })?);
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            let what = what_is(folder, part).unwrap_or("no file");
            return Err(TargetError::Taken { path: shown.to_owned(), what });
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => TargetError::Busy(shown.to_owned()),
            TryLockError::Error(error) => failed(error),
        })?;
        let stat = fstat(&file).map_err(|error| failed(error.into()))?;
        match stat.st_nlink {
            // Renamed or removed by the program that had the lock.
            0 => continue,
            1 if statat(folder, part, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|one| one.st_ino == meta.ino()) => {
                return Ok(file);
            }
            1 => continue,
            // A second name of the file may be anywhere.
            _ => unlinkat(folder, part, AtFlags::empty()).map_err(|error| failed(error.into()))?,
        }
    }
    Err(TargetError::Busy(shown.to_owned()))
}

fn set_attributes(file: &impl std::os::fd::AsFd, attributes: Attributes) -> rustix::io::Result<()> {
    fchmod(file, Mode::from_raw_mode(attributes.permissions & 0o777))?;
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    futimens(file, &Timestamps { last_access, last_modification: timespec(attributes.mtime_ns) })
}

/// A time that fits: eight bytes of nanoseconds are 584 years.
fn timespec(time_ns: u64) -> Timespec {
    Timespec { tv_sec: (time_ns / 1_000_000_000) as i64, tv_nsec: (time_ns % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Write, os::unix::fs::symlink};

    fn path(text: &str) -> EntryPath {
        text.split('/').map(|one| EntryName::new(one.as_bytes()).unwrap()).collect()
    }

    fn write(target: &Target, place: &str, content: &[u8]) -> Result<(), TargetError> {
        let mut file = target.begin(&path(place), PartName::Usual)?;
        file.file().write_all(content).unwrap();
        file.keep(None)
    }

    /// A target with links out of it, and the folder outside.
    fn example() -> (tempfile::TempDir, Target, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("target"), directory.path().join("outside"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("file"), b"precious").unwrap();
        let target = Target::new(&inside);
        (directory, target, outside)
    }

    #[test]
    fn files_are_written_with_their_folders() {
        let (directory, target, _) = example();
        write(&target, "a/b/c", b"content").unwrap();
        write(&target, "a/b/c", b"again").unwrap();
        let place = directory.path().join("target/a/b");
        assert_eq!(fs::read(place.join("c")).unwrap(), b"again");
        drop(target.begin(&path("a/b/d"), PartName::Usual).unwrap());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "no unfinished file stays");
        let long = "x".repeat(255);
        write(&target, &long, b"long").unwrap();
        assert_eq!(fs::read(directory.path().join("target").join(long)).unwrap(), b"long");
    }

    #[test]
    fn no_link_in_the_target_leads_outside() {
        let (directory, target, outside) = example();
        let inside = directory.path().join("target");
        symlink(&outside, inside.join("out")).unwrap();
        symlink(outside.join("file"), inside.join("link")).unwrap();
        symlink(outside.join("new"), inside.join("c.part")).unwrap();
        fs::hard_link(outside.join("file"), inside.join("d.part")).unwrap();
        for (place, shown) in [("out/a", "out"), ("link", "link"), ("c", "c.part")] {
            let error = write(&target, place, b"x").unwrap_err().to_string();
            let expected = format!("{} is a symbolic link, which is not replaced", inside.join(shown).display());
            assert_eq!(error, expected);
        }
        assert!(target.make_folder(&path("out/inner")).is_err());
        assert!(!target.has_file(&path("out/file"), 8, 0));
        write(&target, "d", b"x").unwrap();
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let (directory, target, _) = example();
        let inside = directory.path().join("target");
        fs::create_dir(inside.join("folder")).unwrap();
        for pipe in ["pipe", "e.part"] {
            rustix::fs::mknodat(rustix::fs::CWD, inside.join(pipe), FileType::Fifo, Mode::RUSR, 0).unwrap();
        }
        for (place, what) in [("folder", "a folder"), ("pipe", "a FIFO"), ("e", "a FIFO")] {
            let error = write(&target, place, b"x").unwrap_err().to_string();
            assert!(error.contains(&format!("is {what}, which is not replaced")), "{error}");
        }
        fs::write(inside.join("file"), b"").unwrap();
        assert!(target.make_folder(&path("file/below")).unwrap_err().to_string().contains("file is a file"));
    }

    #[test]
    fn two_programs_do_not_write_one_file() {
        let (directory, target, _) = example();
        let first = target.begin(&path("a"), PartName::Usual).unwrap();
        let busy = target.begin(&path("a"), PartName::Usual).unwrap_err();
        assert!(matches!(&busy, TargetError::Busy(_)), "{busy}");
        drop(first);
        // What a killed program left is no obstacle, and not part of the next file.
        let inside = directory.path().join("target");
        fs::write(inside.join("a.part"), b"a long unfinished file").unwrap();
        write(&target, "a", b"new").unwrap();
        assert_eq!(fs::read(inside.join("a")).unwrap(), b"new");
        // `a.part` may be a file of its own.
        fs::write(inside.join("a.part"), b"mine").unwrap();
        target.begin(&path("a"), PartName::Digest).unwrap().keep(None).unwrap();
        assert_eq!(fs::read(inside.join("a.part")).unwrap(), b"mine");
    }

    #[test]
    fn permissions_and_times_are_kept_and_no_special_bits() {
        let (directory, target, _) = example();
        let attributes = Attributes { permissions: 0o7750, mtime_ns: 1_234_567_890_123_456_789 };
        target.begin(&path("folder/a"), PartName::Usual).unwrap().keep(Some(attributes)).unwrap();
        target.set_folder_attributes(&path("folder"), attributes).unwrap();
        for place in ["target/folder/a", "target/folder"] {
            let meta = fs::metadata(directory.path().join(place)).unwrap();
            assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (0o750, 1_234_567_890, 123_456_789));
        }
        assert!(target.has_file(&path("folder/a"), 0, attributes.mtime_ns));
        assert!(!target.has_file(&path("folder/a"), 1, attributes.mtime_ns));
        assert!(!target.has_file(&path("folder/a"), 0, attributes.mtime_ns + 1));
        assert!(!target.has_file(&path("folder"), 0, attributes.mtime_ns));
    }
}
