//! Private keys as files (drop-in §3; as ndn-cxx's `tpm-file`). `<SHA-256 of the key's Name element, in hex>.privkey`
//! holds the key's traditional DER in Base64, in lines of 64 characters. Only the owner can read the file (0400) and
//! its directory (0700), whatever the umask.

use crate::{PRIVATE_KEY_BYTES_MAX, PrivateKey, PrivateKeyError, base64_lines};
use namewire_packet::{Name, digest::sha256};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// Base64 of the largest key and its line ends fits into this.
const FILE_BYTES_MAX: u64 = PRIVATE_KEY_BYTES_MAX as u64 * 3 / 2;

/// Why a private key cannot be read from or written to its file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// There is no file for this key.
    #[error("there is no private key at {}", .0.display())]
    Missing(PathBuf),
    /// There is a file for this key already.
    #[error("there is a private key at {} already", .0.display())]
    Exists(PathBuf),
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not Base64, or longer than any key.
    #[error("{} is not a key in Base64", .0.display())]
    NotBase64(PathBuf),
    /// The key itself cannot be used.
    #[error("{}: {error}", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PrivateKeyError,
    },
}

/// A directory of private keys.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    directory: PathBuf,
}

impl KeyFiles {
    /// The keys in this directory, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        KeyFiles { directory: directory.into() }
    }

    /// The file of a key.
    pub fn path(&self, key_name: Name<'_>) -> PathBuf {
        let mut wire = Vec::with_capacity(key_name.tlv_size());
        key_name.write_tlv(&mut wire);
        let digest: String = sha256(&[&wire]).iter().map(|byte| format!("{byte:02x}")).collect();
        self.directory.join(digest + ".privkey")
    }

    /// True if a key has a file.
    pub fn has(&self, key_name: Name<'_>) -> bool {
        self.path(key_name).exists()
    }

    /// Reads a key from its file.
    ///
    /// # Errors
    /// If the key has no file, or if the file cannot be read, is not Base64, or holds no supported private key.
    pub fn load(&self, key_name: Name<'_>) -> Result<PrivateKey, KeyFileError> {
        let path = self.path(key_name);
        let mut text = Zeroizing::new(Vec::new());
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(KeyFileError::Missing(path)),
            Err(error) => return Err(KeyFileError::Io { path, error }),
            Ok(file) => file,
        };
        if let Err(error) = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text) {
            return Err(KeyFileError::Io { path, error });
        }
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(KeyFileError::NotBase64(path));
        }
        let Ok(der) = base64_lines::decode(&text) else {
            return Err(KeyFileError::NotBase64(path));
        };
        PrivateKey::from_der(&der).map_err(|error| KeyFileError::BadKey { path, error })
    }

    /// Writes a key that has no file yet; makes the directory if it is missing.
    ///
    /// # Errors
    /// [`KeyFileError::Exists`] if the key has a file; [`KeyFileError::Io`] if directory or file cannot be written.
    pub fn save(&self, key_name: Name<'_>, key: &PrivateKey) -> Result<(), KeyFileError> {
        let path = self.path(key_name);
        make_private_directory(&self.directory)
            .map_err(|error| KeyFileError::Io { path: self.directory.clone(), error })?;
        let text = base64_lines::encode(&key.to_traditional_der());
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(KeyFileError::Exists(path)),
            Err(error) => return Err(KeyFileError::Io { path, error }),
            Ok(file) => file,
        };
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| KeyFileError::Io { path, error })
    }

    /// Removes a key's file.
    ///
    /// # Errors
    /// [`KeyFileError::Missing`] if the key has no file; [`KeyFileError::Io`] if the file cannot be removed.
    pub fn remove(&self, key_name: Name<'_>) -> Result<(), KeyFileError> {
        let path = self.path(key_name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(KeyFileError::Missing(path)),
            Err(error) => Err(KeyFileError::Io { path, error }),
            Ok(()) => Ok(()),
        }
    }
}

/// Makes a directory that only its owner may read, and missing parents; an existing one keeps its mode.
pub(super) fn make_private_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
