//! The state file: keeps the results of management commands over a restart.
//!
//! The file is TOML with the tables `[[face]]`, `[[route]]` and `[[strategy]]` of a configuration, and its entries can
//! be copied there. It names faces by their remote end, because their numbers differ with every start. The router
//! replaces the file as a whole: it writes `FILE.new` in the same folder, synchronises it to disk, then renames it. So
//! after a crash the file is either the old one or the new one. The router never reads `FILE.new`;
//! [`remove_unfinished`] removes it after a crash.
//!
//! The file states its format. A change that an older program would misread gets the next number, and [`read`]
//! continues to read the older formats.
//!
//! Limits: [`MAX_STATE_BYTES`], and as many routes as the router lists.

use crate::{
    Declarations, SettingsError, input_file,
    settings::{FaceEntry, RouteEntry, StrategyEntry},
    text::Prefix,
    toml_file,
    units::Bytes,
};
use namewire_tables::head_room;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

/// Largest file that is read, in bytes.
pub const MAX_STATE_BYTES: u64 = 64 << 20;

/// Most memory that a byte of the file takes while it is read.
const MEMORY_PER_BYTE: usize = 32;

/// The format of written files; a later one is not read.
const VERSION: u32 = 1;

const HEADER: &str = "# Written by `namewire run`; changes made here while it runs are lost.\n";

/// Why a state file was not read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read.
    #[error("cannot read the state file {}: {source}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not as it was written.
    #[error("the state file {} is damaged: {error}", path.display())]
    Damaged {
        /// Its path.
        path: PathBuf,
        /// The first error.
        error: SettingsError,
    },
    /// Another version of this program wrote the file.
    #[error(
        "the state file {} has format {version}, and this namewire reads format {VERSION}{}",
        path.display(), if *version > VERSION { ": a newer one wrote it" } else { "" }
    )]
    Version {
        /// Its path.
        path: PathBuf,
        /// Its format.
        version: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unset_strategies: Vec<Prefix>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    face: Vec<FaceEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    route: Vec<RouteEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    strategy: Vec<StrategyEntry>,
}

/// Reads only the version of a file whose other contents may be unknown.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a state file. A missing file declares nothing.
///
/// # Errors
/// If it exists and is not what [`write`] wrote.
pub fn read(path: &Path) -> Result<Declarations, StateError> {
    let failed = |source| StateError::Io { path: path.to_owned(), source };
    let bytes = match input_file::read(path, MAX_STATE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Declarations::default()),
        bytes => bytes.map_err(failed)?,
    };
    if !head_room::is_there(bytes.len().saturating_mul(MEMORY_PER_BYTE)) {
        return Err(failed(io::ErrorKind::OutOfMemory.into()));
    }
    let invalid = |error: FromUtf8Error| failed(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()));
    from_text(path, &String::from_utf8(bytes).map_err(invalid)?)
}

/// Reads the text of a state file; `path` is for the errors.
///
/// # Errors
/// If it is not what [`write`] wrote.
pub fn from_text(path: &Path, text: &str) -> Result<Declarations, StateError> {
    let damaged = |error| StateError::Damaged { path: path.to_owned(), error };
    let Versioned { version } = toml_file::parse(text).map_err(damaged)?;
    if version != VERSION {
        return Err(StateError::Version { path: path.to_owned(), version });
    }
    let contents: Contents = toml_file::parse(text).map_err(damaged)?;
    Ok(Declarations {
        faces: contents.face,
        routes: contents.route,
        strategies: contents.strategy,
        unset: contents.unset_strategies,
    })
}

/// Replaces a state file. Creates its directory if necessary. When this returns, the file and its name are on disk.
///
/// # Errors
/// If it cannot be written: then the old file is unchanged. If only the name could not be made durable, the
/// new file is there.
pub fn write(path: &Path, state: &Declarations) -> io::Result<()> {
    let text = to_text(state)?;
    if (HEADER.len() + text.len()) as u64 > MAX_STATE_BYTES {
        let why = format!("it would be larger than {}", Bytes(MAX_STATE_BYTES)); // and could not be read again
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let beside = beside(path, "new");
    let renamed = write_new(&beside, &text).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = renamed {
        let _ = fs::remove_file(&beside); // on a full disk it takes room that others need
        return Err(error);
    }
    File::open(directory)?.sync_all() // otherwise the name may be lost though the file is not
}

/// The text of a state file, without the comment at its head.
///
/// # Errors
/// If an entry has no TOML form.
pub fn to_text(state: &Declarations) -> io::Result<String> {
    let contents = Contents {
        version: VERSION,
        unset_strategies: state.unset.clone(),
        face: state.faces.clone(),
        route: state.routes.clone(),
        strategy: state.strategies.clone(),
    };
    toml::to_string(&contents).map_err(io::Error::other)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    remove_if_there(path)?;
    // A reader of this file could learn the router's neighbours.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(HEADER.as_bytes())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Where the router that has this state file keeps the commands that keys signed: `FILE.commands`.
pub fn commands_beside(path: &Path) -> PathBuf {
    beside(path, "commands")
}

/// Removes what an unfinished write left beside the state file. True if there was something.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_unfinished(path: &Path) -> io::Result<bool> {
    remove_if_there(&beside(path, "new"))
}

fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        result => result.map(|()| true),
    }
}

/// Moves an unreadable file out of the way and returns its new place.
///
/// # Errors
/// If it cannot be moved.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let place = beside(path, "ignored");
    fs::rename(path, &place)?;
    Ok(place)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_toml;
    use proptest::prelude::*;

    fn state() -> Declarations {
        let text = "[[face]]\nuri = \"udp4://192.0.2.1:6363\"\nmtu = 1400\nreliability = true\n\
                    congestion_marking_interval = \"100 ms\"\n\
                    [[route]]\nprefix = \"/a/v=1\"\nface = \"udp4://192.0.2.1:6363\"\ncost = 7\ncapture = true\n\
                    [[strategy]]\nprefix = \"/\"\nstrategy = \"multicast\"";
        let mut state = Declarations::of(&from_toml(text).unwrap());
        state.unset.push("/ndn/broadcast".parse().unwrap());
        state
    }

    #[test]
    fn what_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/for/it/state.toml");
        assert_eq!(read(&path).unwrap(), Declarations::default(), "no file says nothing");
        write(&path, &state()).unwrap();
        assert_eq!(read(&path).unwrap(), state());
        write(&path, &Declarations::default()).unwrap();
        assert_eq!(read(&path).unwrap(), Declarations::default());
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["state.toml"], "nothing else is left there");
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        write(&path, &state()).unwrap();
        fs::create_dir(beside(&path, "new")).unwrap(); // the new file would be written here
        assert!(write(&path, &Declarations::default()).is_err());
        assert_eq!(read(&path).unwrap(), state());
    }

    #[test]
    fn damage_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        for (text, word) in [
            ("", "damaged"),
            ("version = 2\nnew_things = 1", "has format 2, and this namewire reads format 1: a newer one wrote it"),
            ("version = 0", "has format 0, and this namewire reads format 1"),
            ("version = 1\n[[route]]\nprefix = \"/a", "line 3"),
            ("version = 1\nfaec = []", "damaged"),
            ("version = 1\n[[face]]\nuri = 7", "line 3"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).expect_err(text).to_string();
            assert!(error.contains(word) && error.contains("state.toml"), "{text}: {error}");
        }
        let place = set_aside(&path).unwrap();
        assert!(!path.exists() && place.exists());
    }

    /// The story: on a full disk, the part of the file that fitted was left beside it, even over a restart, so the disk
    /// stayed full.
    #[test]
    fn what_a_write_left_beside_the_file_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        write(&path, &state()).unwrap();
        let unfinished = beside(&path, "new");
        fs::write(&unfinished, "version = 1\n[[route]]\nprefix = \"/half").unwrap();
        assert_eq!(read(&path).unwrap(), state(), "it is not read");
        assert!(remove_unfinished(&path).unwrap() && !unfinished.exists());
        assert!(!remove_unfinished(&path).unwrap());
        // Renaming fails, because a directory that is not empty has the file's name.
        let place = directory.path().join("place");
        fs::create_dir_all(place.join("not empty")).unwrap();
        assert!(write(&place, &state()).is_err());
        assert!(!beside(&place, "new").exists());
    }

    /// The file of the change 6180ce6, written before the format was ever raised.
    #[test]
    fn a_file_of_format_1_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        fs::write(&path, include_str!("../tests/state_format_1.toml")).unwrap();
        let read_first = read(&path).unwrap();
        let prefixes: Vec<String> = read_first.routes.iter().map(|route| route.prefix.to_string()).collect();
        assert_eq!(prefixes, ["/a/v=1", "/b", "/d"]);
        let route = &read_first.routes[0];
        assert_eq!((route.cost, route.inherit, route.capture), (7, true, true));
        let faces: Vec<String> = read_first.faces.iter().map(|face| face.uri.to_string()).collect();
        assert_eq!(faces, ["udp4://127.0.0.1:7001", "udp4://127.0.0.1:7002", "udp6://[::1]:7003"]);
        assert_eq!(read_first.faces[0].mtu, Some(1400));
        assert_eq!((read_first.strategies.len(), read_first.unset.len()), (2, 1));
        write(&path, &read_first).unwrap();
        assert_eq!(read(&path).unwrap(), read_first, "what the next write makes of it says the same");
    }

    proptest! {
        /// A file that was cut or changed anywhere is either read or refused.
        #[test]
        fn no_damage_is_too_strange(at in 0usize..600, byte: u8) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.toml");
            write(&path, &state()).unwrap();
            let mut bytes = fs::read(&path).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            fs::write(&path, &bytes).unwrap();
            let _ = read(&path);
            fs::write(&path, &bytes[..at]).unwrap();
            let _ = read(&path);
        }
    }
}
