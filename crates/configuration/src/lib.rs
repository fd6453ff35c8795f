//! Settings of a node: files and options fill one struct, which a router takes over.
//!
//! ```text
//!   namewire.toml ─► toml_file ─┐
//!   nfd.conf ─► info ─► nfd_conf┼─► Settings ─► the router (at start)
//!   options of `namewire run` ──┘         └───► Declarations (at start and SIGHUP)
//! ```
//!
//! Defaults are written once: in `Default` of a section, or in the engine's own settings where the engine has the same
//! setting.
//!
//! Reading changes nothing: a file is read and checked completely before it takes effect. An unknown key of our own
//! format is an error that names the nearest known key. In an `nfd.conf`, which was written for another program, it is
//! a warning.
//!
//! Limits: files of [`MAX_FILE_BYTES`]; see [`info`] for the limits of `nfd.conf`. The named file may be a pipe; the
//! files that it names are regular files ([`input_file`]).

mod assignment;
pub mod changed_file;
pub mod command_journal;
mod declarations;
mod flat;
pub mod in_force;
pub mod info;
pub mod input_file;
pub mod interface_pattern;
pub mod likeness;
pub mod log_levels;
mod nfd_conf;
mod restart;
pub mod revocation_files;
pub mod settings;
pub mod sources;
pub mod state_file;
pub mod text;
mod toml_error;
mod toml_file;
mod trust;
pub mod trust_anchors;
pub mod units;
mod warnings;

pub use assignment::{Assignment, setting_keys};
pub use declarations::Declarations;
pub use interface_pattern::InterfacePattern;
pub use nfd_conf::{from_nfd_conf, nfd_modules};
pub use restart::{changed_keys, needs_restart};
pub use settings::Settings;
pub use toml_error::SettingsError;
pub use toml_file::{from_toml, parse as parse_toml};
pub use trust::RepoTrust;
pub use warnings::open_observers;

/// Types of the settings that belong to the tables and designs.
pub use namewire_designs::{
    fib::catalogue::FibDesign,
    policies::catalogue::{AdmissionName, EvictionName, PolicyChoice},
};
use namewire_management::trust_config::TrustConfig;
pub use namewire_tables::{PageSize, PrefixLookup};
use std::{
    io,
    path::{Path, PathBuf},
};

use sources::Sources;
use trust_anchors::TrustAnchors;

/// Largest configuration file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Every key with its default and what it means: the output of `namewire config default`.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// The kind of file, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file in our own format.
    Toml(PathBuf),
    /// A file of NFD.
    NfdConf(PathBuf),
}

/// A node's configuration, with the contents of all files that its settings name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// The settings.
    pub settings: Settings,
    /// The rules of who may command, with their certificates read.
    pub trust: TrustConfig,
    /// The rules of the repository.
    pub repo_trust: RepoTrust,
    /// What the author of a file should know, one line each.
    pub warnings: Vec<String>,
    /// Where the values of the settings came from.
    pub sources: Sources,
}

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not well-formed, or contradicts itself.
    #[error("{}: {error}", path.display())]
    Settings {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        error: SettingsError,
    },
}

impl Source {
    /// The path.
    pub fn path(&self) -> &Path {
        match self {
            Source::Toml(path) | Source::NfdConf(path) => path,
        }
    }

    /// Reads and checks the file. For a pipe, this may take ten seconds.
    ///
    /// # Errors
    /// If it cannot be read, is not well-formed or contradicts itself.
    pub fn load(&self) -> Result<Configuration, LoadError> {
        let path = self.path();
        let bytes = input_file::read_or_receive(path, MAX_FILE_BYTES).and_then(to_text);
        let text = bytes.map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let configuration = match self {
            Source::Toml(_) => toml_file::read(&text).and_then(|(settings, lines)| {
                let configuration = Configuration::new(settings, directory)?;
                Ok(Configuration { sources: Sources::of_toml(path, lines), ..configuration })
            }),
            Source::NfdConf(_) => from_nfd_conf(&text, directory).map(|configuration| {
                let sources = Sources::of_nfd_conf(path, &configuration.settings);
                Configuration { sources, ..configuration }
            }),
        };
        let mut configuration = configuration.map_err(|error| LoadError::Settings { path: path.to_owned(), error })?;
        // A router reads the certificates when it starts; a user who only checks the file learns of missing ones now.
        configuration.warnings.extend(TrustAnchors::read(&configuration.trust).problems());
        configuration.warnings.extend(configuration.repo_trust.unreadable());
        Ok(configuration)
    }
}

impl From<Settings> for Configuration {
    /// With the default rules of trust. Settings that name files need [`Configuration::new`].
    fn from(settings: Settings) -> Self {
        Configuration { settings, ..Configuration::default() }
    }
}

impl Configuration {
    /// Reads the files that the settings name, relative to `directory`.
    ///
    /// # Errors
    /// If one of them is not well-formed.
    pub fn new(mut settings: Settings, directory: &Path) -> Result<Self, SettingsError> {
        let schema = settings.trust.read_schema(directory)?;
        let trust = settings.trust.read(schema.as_ref(), directory)?;
        let repo_trust = RepoTrust::read(&settings.repo, schema.as_ref(), directory)?;
        let websocket = &mut settings.faces.websocket;
        for path in [
            &mut settings.trust.schema,
            &mut settings.state.file,
            &mut settings.repo.folder,
            &mut settings.tagnet.key_file,
            &mut settings.faces.unix.path,
            &mut settings.faces.memif.path,
            &mut websocket.certificate,
            &mut websocket.key,
            &mut websocket.trusted_certificates,
        ] {
            *path = path.take().map(|path| directory.join(path));
        }
        let warnings = warnings::of(&settings);
        Ok(Configuration { settings, trust, repo_trust, warnings, sources: Sources::default() })
    }
}

/// The text of a regular file of at most [`MAX_FILE_BYTES`].
fn read_text(path: &Path) -> io::Result<String> {
    input_file::read(path, MAX_FILE_BYTES).and_then(to_text)
}

fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}
