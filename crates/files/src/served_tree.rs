//! The disk below a served folder: what is at this path now?
//!
//! The folder itself is opened by its path at each look, so a folder that was replaced is served as it is now. Below
//! it, every component is opened in the folder before it, and no symbolic link is followed, so nothing outside is ever
//! opened. Only regular files and folders are opened: opening a device can have effects, opening a FIFO can wait.
//!
//! Cost of a look: one system call for each component of the path. Listing a folder needs two for each hundred or so of
//! its entries. Limits: [`LISTING_BYTES_MAX`] for a listing; [`DEPTH_MAX`] folders for a survey.

use crate::{
    entry_name::{EntryName, EntryPath},
    listing::{Entry, LISTING_BYTES_MAX},
};
use namewire_packet::digest::sha256;
use rustix::{
    fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};
use std::{
    fs::{File, Metadata},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Most folders around an entry that a survey or a manifest counts.
pub(crate) const DEPTH_MAX: usize = 128;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A device that took a file's place just now neither waits nor becomes this process's terminal.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Why a path is not served.
#[derive(Debug)]
pub(crate) enum LookError {
    /// Nothing is there.
    Missing,
    /// A symbolic link, a device, a FIFO or a socket.
    OtherKind,
    /// A listing would exceed [`LISTING_BYTES_MAX`].
    TooLarge,
    /// It cannot be read.
    Unreadable,
}

impl From<io::Error> for LookError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LookError::Missing,
            _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => LookError::OtherKind,
            _ => LookError::Unreadable,
        }
    }
}

impl From<Errno> for LookError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// What distinguishes two states of a file or folder. Two writes of the same number of bytes within one tick of the
/// file system's clock (4 ms or less) look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: u64,
    /// SHA-256 of a folder's listing; all zero for files, and for folders that are not listed yet.
    listing_digest: [u8; 32],
}

impl Identity {
    /// True if nothing but the listing may differ.
    pub(crate) fn is_same_folder(&self, other: &Identity) -> bool {
        (self.device, self.inode, self.mtime_ns) == (other.device, other.inode, other.mtime_ns)
    }
}

/// The content of what was found.
pub(crate) enum Content {
    File(File),
    Folder(OwnedFd),
}

/// What the file system says of a file or folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) identity: Identity,
    /// As `st_mode`.
    pub(crate) mode: u32,
    pub(crate) atime_ns: u64,
    pub(crate) btime_ns: Option<u64>,
    pub(crate) ctime_ns: u64,
}

/// What a folder holds, with all folders in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Regular files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Folders, without the one that was surveyed.
    pub folders: u64,
    /// Symbolic links, devices, FIFOs and sockets, which are not served.
    pub not_served: u64,
    /// Folders that cannot be read, or are too deep.
    pub unreadable: u64,
}

/// A served folder.
pub(crate) struct ServedTree {
    path: PathBuf,
}

impl ServedTree {
    pub(crate) fn new(path: &Path) -> Self {
        ServedTree { path: path.to_owned() }
    }

    /// The folder itself. Its path is the user's, so links in it are followed.
    fn root(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(&self.path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?)
    }

    /// Opens the file or folder at `path`.
    pub(crate) fn look(&self, path: &EntryPath) -> Result<(Content, Facts), LookError> {
        let components = path.components();
        let Some((last, folders)) = components.split_last() else { return folder(self.root()?) };
        let mut around = self.root()?;
        for name in folders {
            around = openat(&around, name.as_os_str(), FOLDER, Mode::empty())?;
        }
        match FileType::from_raw_mode(statat(&around, last.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?.st_mode) {
            FileType::RegularFile => file(openat(&around, last.as_os_str(), FILE, Mode::empty())?.into()),
            FileType::Directory => folder(openat(&around, last.as_os_str(), FOLDER, Mode::empty())?),
            _ => Err(LookError::OtherKind),
        }
    }

    /// Counts what the folder holds.
    pub(crate) fn survey(&self) -> io::Result<Survey> {
        let mut survey = Survey::default();
        count(self.root()?.as_fd(), 0, &mut survey)?;
        Ok(survey)
    }
}

/// Reads a part of a file whose identity was `identity`; `None` if the file has changed since, or is shorter.
///
/// The change is looked for after the bytes are read: a writer sets the time before it writes.
pub(crate) fn read_unchanged(
    file: &File,
    identity: &Identity,
    offset: u64,
    length: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut content = vec![0; length];
    match file.read_exact_at(&mut content, offset) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let now = file.metadata()?;
    let is_same = now.len() == identity.size_bytes && mtime_ns(&now) == identity.mtime_ns;
    Ok(is_same.then_some(content))
}

fn file(file: File) -> Result<(Content, Facts), LookError> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(LookError::OtherKind);
    }
    Ok((Content::File(file), facts(&meta, meta.len(), [0; 32])))
}

fn folder(folder: OwnedFd) -> Result<(Content, Facts), LookError> {
    let folder = File::from(folder);
    let meta = folder.metadata()?;
    Ok((Content::Folder(folder.into()), facts(&meta, 0, [0; 32])))
}

/// Lists a folder, and completes its identity. What comes while this runs changes the time that was read before.
pub(crate) fn list(folder: &OwnedFd, facts: &mut Facts) -> Result<Vec<u8>, LookError> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    for entry in entries_of(folder.as_fd())? {
        if let Some(entry) = served_entry(folder.as_fd(), &entry?) {
            bytes += entry.name.as_bytes().len() + 2;
            if bytes > LISTING_BYTES_MAX {
                return Err(LookError::TooLarge);
            }
            entries.push(entry);
        }
    }
    // The order of the file system may differ from one look to the next.
    entries.sort_unstable();
    let mut listing = Vec::with_capacity(bytes);
    entries.iter().for_each(|entry| entry.write(&mut listing));
    (facts.identity.size_bytes, facts.identity.listing_digest) = (listing.len() as u64, sha256(&[&listing]));
    Ok(listing)
}

fn facts(meta: &Metadata, size_bytes: u64, listing_digest: [u8; 32]) -> Facts {
    let (device, inode, mtime_ns) = (meta.dev(), meta.ino(), mtime_ns(meta));
    Facts {
        identity: Identity { device, inode, size_bytes, mtime_ns, listing_digest },
        mode: meta.mode(),
        atime_ns: unix_ns(meta.atime(), meta.atime_nsec()),
        btime_ns: meta.created().ok().and_then(ns_since_1970),
        ctime_ns: unix_ns(meta.ctime(), meta.ctime_nsec()),
    }
}

fn mtime_ns(meta: &Metadata) -> u64 {
    unix_ns(meta.mtime(), meta.mtime_nsec())
}

/// 0 for times before 1970.
fn unix_ns(seconds: i64, nanoseconds: i64) -> u64 {
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u64::try_from(nanoseconds)) else { return 0 };
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

fn ns_since_1970(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

fn entries_of(folder: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = rustix::io::Result<DirEntry>>> {
    let is_other = |name: &[u8]| name != b"." && name != b"..";
    Ok(Dir::read_from(folder)?
        .filter(move |entry| entry.as_ref().map_or(true, |entry| is_other(entry.file_name().to_bytes()))))
}

/// The kind of an entry. Some file systems do not say it with the name.
fn kind_of(folder: BorrowedFd<'_>, entry: &DirEntry) -> Option<FileType> {
    match entry.file_type() {
        FileType::Unknown => {
            let stat = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(FileType::from_raw_mode(stat.st_mode))
        }
        kind => Some(kind),
    }
}

fn served_entry(folder: BorrowedFd<'_>, entry: &DirEntry) -> Option<Entry> {
    let is_folder = match kind_of(folder, entry)? {
        FileType::RegularFile => false,
        FileType::Directory => true,
        _ => return None,
    };
    Some(Entry { name: EntryName::new(entry.file_name().to_bytes()).ok()?, is_folder })
}

fn count(folder: BorrowedFd<'_>, depth: usize, survey: &mut Survey) -> io::Result<()> {
    for entry in entries_of(folder)? {
        let entry = entry?;
        match kind_of(folder, &entry) {
            Some(FileType::RegularFile) => {
                survey.files += 1;
                let stat = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                survey.bytes += stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
            }
            Some(FileType::Directory) => {
                survey.folders += 1;
                let inner = openat(folder, entry.file_name(), FOLDER, Mode::empty()).map_err(io::Error::from);
                let counted = inner.and_then(|inner| match depth < DEPTH_MAX {
                    true => count(inner.as_fd(), depth + 1, survey),
                    false => Err(io::ErrorKind::InvalidFilename.into()),
                });
                survey.unreadable += u64::from(counted.is_err());
            }
            Some(_) => survey.not_served += 1,
            None => {} // it has gone meanwhile
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn path(components: &[&str]) -> EntryPath {
        components.iter().map(|one| EntryName::new(one.as_bytes()).unwrap()).collect()
    }

    fn listing(tree: &ServedTree, components: &[&str]) -> Vec<u8> {
        match tree.look(&path(components)).unwrap() {
            (Content::Folder(folder), mut facts) => list(&folder, &mut facts).unwrap(),
            (Content::File(_), _) => panic!("a file"),
        }
    }

    /// A folder `served` with a file, a folder, links out of it, and a FIFO.
    fn example() -> (tempfile::TempDir, ServedTree) {
        let directory = tempfile::tempdir().unwrap();
        let served = directory.path().join("served");
        fs::create_dir_all(served.join("inner")).unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/secret"), b"secret").unwrap();
        fs::write(served.join("inner/file"), b"content").unwrap();
        fs::write(served.join("b"), b"").unwrap();
        symlink("../outside/secret", served.join("link")).unwrap();
        symlink("../../outside", served.join("inner/up")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, served.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        (directory, ServedTree::new(&served))
    }

    #[test]
    fn files_and_folders_are_found_and_nothing_else() {
        let (_directory, tree) = example();
        assert_eq!(listing(&tree, &[]), b"b\0inner/\0");
        assert_eq!(listing(&tree, &["inner"]), b"file\0");
        let (content, facts) = tree.look(&path(&["inner", "file"])).unwrap();
        assert!(matches!(content, Content::File(_)) && facts.identity.size_bytes == 7);
        assert_eq!(facts.mode & 0o170_000, 0o100_000);
        for (what, is_other) in [
            (&["link"][..], true),
            (&["pipe"], true),
            (&["inner", "up"], true),
            (&["inner", "up", "secret"], false),
            (&["absent"], false),
            (&["b", "below"], false),
        ] {
            match tree.look(&path(what)).err().unwrap() {
                LookError::OtherKind => assert!(is_other, "{what:?}"),
                LookError::Missing => assert!(!is_other, "{what:?}"),
                other => panic!("{what:?}: {other:?}"),
            }
        }
        let survey = tree.survey().unwrap();
        assert_eq!(survey, Survey { files: 2, bytes: 7, folders: 1, not_served: 3, unreadable: 0 });
    }

    #[test]
    fn a_file_that_changes_in_place_is_not_read_any_more() {
        let (directory, tree) = example();
        let look = || match tree.look(&path(&["inner", "file"])).unwrap() {
            (Content::File(file), facts) => (file, facts.identity),
            _ => panic!("a folder"),
        };
        let (file, before) = look();
        assert_eq!(read_unchanged(&file, &before, 3, 4).unwrap().unwrap(), b"tent");
        assert!(read_unchanged(&file, &before, 3, 5).unwrap().is_none(), "beyond its end");
        let place = directory.path().join("served/inner/file");
        fs::write(&place, b"longer content").unwrap();
        assert!(read_unchanged(&file, &before, 3, 4).unwrap().is_none());
        let (file, now) = look();
        assert_ne!(now, before);
        fs::write(directory.path().join("new"), b"new").unwrap();
        fs::rename(directory.path().join("new"), &place).unwrap();
        assert_eq!(read_unchanged(&file, &now, 0, 6).unwrap().unwrap(), b"longer");
        fs::remove_dir_all(directory.path().join("served")).unwrap();
        assert!(matches!(tree.look(&path(&[])), Err(LookError::Missing)));
    }
}
