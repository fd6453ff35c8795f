//! What management commands have made, in a file, so that it is there after a restart.
//!
//! The file is TOML with the tables `[[face]]`, `[[route]]` and `[[strategy]]` of a
//! configuration, whose entries can be copied there; faces are named by their far end,
//! because numbers differ with every start. It is replaced as a whole: written beside the
//! old one, to the disk, then renamed, so that a crash leaves one or the other.
//!
//! Limits: [`MAX_STATE_BYTES`], [`crate::operator::INVENTORY_ROUTES_MAX`] routes.

use crate::{
    configuration::{
        SettingsError, parse_toml,
        settings::{FaceEntry, RouteEntry, StrategyEntry},
        text::Prefix,
        units::Octets,
    },
    declarations::Declarations,
    input_file,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

/// Largest file that is read, in octets.
pub const MAX_STATE_BYTES: u64 = 64 << 20;

/// The format that is written; another one is not read.
const VERSION: u32 = 1;

const HEADER: &str = "# Written by `namewire run`; changes made here while it runs are lost.\n";

/// Why a state file was not read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("cannot read the state file {}: {source}", path.display())]
    Io {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what was written.
    #[error("the state file {} is damaged: {error}", path.display())]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// Where it stops making sense.
        error: SettingsError,
    },
    /// Another version of this program wrote it.
    #[error("the state file {} has version {version}; this program reads version {VERSION}", path.display())]
    Version {
        /// Where it is.
        path: PathBuf,
        /// Its version.
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

/// Only to know the version of a file whose other contents may be unknown.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a state file; one that does not exist says nothing.
///
/// # Errors
/// If it exists and is not what [`write`] wrote.
pub fn read(path: &Path) -> Result<Declarations, StateError> {
    let failed = |source| StateError::Io { path: path.to_owned(), source };
    let damaged = |error| StateError::Damaged { path: path.to_owned(), error };
    let octets = match input_file::read(path, MAX_STATE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Declarations::default()),
        octets => octets.map_err(failed)?,
    };
    let invalid = |error: FromUtf8Error| failed(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()));
    let text = String::from_utf8(octets).map_err(invalid)?;
    let Versioned { version } = parse_toml(&text).map_err(damaged)?;
    if version != VERSION {
        return Err(StateError::Version { path: path.to_owned(), version });
    }
    let contents: Contents = parse_toml(&text).map_err(damaged)?;
    Ok(Declarations {
        faces: contents.face,
        routes: contents.route,
        strategies: contents.strategy,
        unset: contents.unset_strategies,
    })
}

/// Replaces a state file. Its directory is made if it does not exist.
///
/// # Errors
/// If it cannot be written; then the old one is as it was.
pub fn write(path: &Path, state: &Declarations) -> io::Result<()> {
    let contents = Contents {
        version: VERSION,
        unset_strategies: state.unset.clone(),
        face: state.faces.clone(),
        route: state.routes.clone(),
        strategy: state.strategies.clone(),
    };
    let text = toml::to_string(&contents).map_err(io::Error::other)?;
    if (HEADER.len() + text.len()) as u64 > MAX_STATE_BYTES {
        let why = format!("it would be larger than {}", Octets(MAX_STATE_BYTES)); // and would not be read again
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let beside = beside(path, "new");
    // Who may read it may learn who this router's neighbours are.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(HEADER.as_bytes())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(directory)?.sync_all() // or the name may be lost though the file is not
}

/// Puts a file that cannot be read out of the way; its new place.
///
/// # Errors
/// If that cannot be done.
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
    use crate::configuration::from_toml;
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
        fs::create_dir(beside(&path, "new")).unwrap(); // where the new one would be written
        assert!(write(&path, &Declarations::default()).is_err());
        assert_eq!(read(&path).unwrap(), state());
    }

    #[test]
    fn damage_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        for (text, word) in [
            ("", "damaged"),
            ("version = 2\nnew_things = 1", "version 2"),
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

    proptest! {
        /// A file that was cut anywhere, or changed anywhere, is read or refused; nothing else.
        #[test]
        fn no_damage_is_too_strange(at in 0usize..600, octet: u8) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.toml");
            write(&path, &state()).unwrap();
            let mut octets = fs::read(&path).unwrap();
            let at = at % octets.len();
            octets[at] = octet;
            fs::write(&path, &octets).unwrap();
            let _ = read(&path);
            fs::write(&path, &octets[..at]).unwrap();
            let _ = read(&path);
        }
    }
}
