//! What a configuration file says: read, checked, and turned into a router's settings.
//!
//! ```text
//!   namewire.toml ─► toml_file ─┐
//!                               ├─► Settings ─► RouterConfig (at start)
//!   nfd.conf ─► info ─► nfd_conf┘        └────► Declarations (at start and SIGHUP)
//! ```
//!
//! Reading changes nothing: a file is wholly read and checked before anything is done
//! with it. An unknown key of ours is an error that names the nearest known one; of an
//! `nfd.conf`, which other people wrote for another program, it is a warning.
//!
//! Limits: files of [`MAX_FILE_BYTES`]; see [`info`] for those of `nfd.conf`. The file that is
//! named may be a pipe, those that it names are regular files ([`input_file`]).

mod doubts;
mod effective;
pub mod info;
mod nfd_conf;
pub mod settings;
pub mod text;
mod toml_file;
mod trust;
pub mod units;

pub use effective::needs_restart;
pub use nfd_conf::from_nfd_conf;
pub use settings::Settings;
pub(crate) use toml_file::parse as parse_toml;
pub use toml_file::{SettingsError, from_toml};

use crate::{
    input_file,
    trust_anchors::{AnchorFileError, TrustAnchors},
};
use namewire_management::trust_config::TrustConfig;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Largest configuration file that is read, in octets.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Every key with its default and what it means: the output of `namewire config default`.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// Which kind of file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Our own.
    Toml(PathBuf),
    /// Of NFD.
    NfdConf(PathBuf),
}

/// What a file says, and what of it is ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Who may command; certificates and rules are read.
    pub trust: TrustConfig,
    /// What whoever wrote it should know, one line each.
    pub warnings: Vec<String>,
}

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says cannot be.
    #[error("{}: {error}", path.display())]
    Settings {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        error: SettingsError,
    },
    /// Rules that it names trust a certificate that cannot be read.
    #[error("{}: {error}", path.display())]
    Anchor {
        /// Where the configuration is.
        path: PathBuf,
        /// Why the certificate is not to be had.
        error: AnchorFileError,
    },
}

impl Source {
    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Source::Toml(path) | Source::NfdConf(path) => path,
        }
    }

    /// Reads and checks the file. If it is a pipe, it may take ten seconds.
    ///
    /// # Errors
    /// If it cannot be read, or says what cannot be.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        let path = self.path();
        let octets = input_file::read_or_receive(path, MAX_FILE_BYTES).and_then(to_text);
        let text = octets.map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let loaded = match self {
            Source::Toml(_) => from_toml(&text).and_then(|settings| Loaded::new(settings, directory)),
            Source::NfdConf(_) => from_nfd_conf(&text, directory),
        };
        let loaded = loaded.map_err(|error| LoadError::Settings { path: path.to_owned(), error })?;
        // A router reads them when it starts; whoever only checks the file wants to know now.
        TrustAnchors::read(&loaded.trust).map_err(|error| LoadError::Anchor { path: path.to_owned(), error })?;
        Ok(loaded)
    }
}

impl Loaded {
    /// Reads the files that settings name by `directory`.
    ///
    /// # Errors
    /// If one of them is not what it should be.
    pub fn new(mut settings: Settings, directory: &Path) -> Result<Self, SettingsError> {
        let trust = settings.trust.read(directory)?;
        let websocket = &mut settings.faces.websocket;
        for path in [
            &mut settings.state.file,
            &mut settings.faces.unix.path,
            &mut websocket.certificate,
            &mut websocket.key,
            &mut websocket.trusted_certificates,
        ] {
            *path = path.take().map(|path| directory.join(path));
        }
        let warnings = doubts::of(&settings);
        Ok(Loaded { settings, trust, warnings })
    }
}

/// The text of a regular file of at most [`MAX_FILE_BYTES`].
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    input_file::read(path, MAX_FILE_BYTES).and_then(to_text)
}

fn to_text(octets: Vec<u8>) -> io::Result<String> {
    String::from_utf8(octets).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}
