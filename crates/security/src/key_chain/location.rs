//! The location of the user's key chain (drop-in §3).
//!
//! ndn-cxx names it by two locators `<scheme>:<directory>`: `pib-sqlite3:` for names and certificates, `tpm-file:` for
//! private keys. An empty directory means `$HOME/.ndn`. The caller takes the locators from NDN_CLIENT_PIB,
//! NDN_CLIENT_TPM and client.conf. Private keys are in the subdirectory `ndnsec-key-file`; python-ndn writes that
//! subdirectory into the locator too, and this code understands both.

use std::path::{Path, PathBuf};

/// Directory of the private keys within the directory of a `tpm-file:` locator.
const KEY_FILE_DIRECTORY: &str = "ndnsec-key-file";
/// Longest locator, in bytes.
const LOCATOR_BYTES_MAX: usize = 4096;

/// Why a locator cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocatorError {
    /// A PIB or TPM that is not files: a key chain in memory, or the one of macOS.
    #[error("{0}: only pib-sqlite3: and tpm-file: can be used")]
    UnsupportedScheme(String),
    /// Longer than a path can be.
    #[error("a locator of {0} bytes is too long")]
    TooLong(usize),
}

/// The location of a key chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChainLocation {
    /// Directory of `pib.db`.
    pub pib_directory: PathBuf,
    /// Directory of the private keys.
    pub key_directory: PathBuf,
    /// The TPM's locator, as written into a new PIB.
    pub(super) tpm_locator: String,
    /// The user named the TPM, so a PIB with another TPM is an error.
    pub(super) tpm_is_explicit: bool,
}

impl KeyChainLocation {
    /// Finds the directories from the locators of environment or client.conf, if set; `home` is `$HOME`.
    ///
    /// # Errors
    /// If a locator is longer than 4096 bytes or has a scheme other than `pib-sqlite3:` or `tpm-file:`.
    pub fn new(pib: Option<&str>, tpm: Option<&str>, home: &Path) -> Result<Self, LocatorError> {
        let own = home.join(".ndn");
        let pib_directory = directory_of(pib.unwrap_or_default(), "pib-sqlite3", &own)?;
        let (tpm_locator, tpm_is_explicit) = match tpm.filter(|locator| !locator.is_empty()) {
            Some(locator) => (locator, true),
            None => ("tpm-file", false),
        };
        let key_directory = key_directory_of(tpm_locator, home)?;
        // ndn-cxx compares the text, and empties the default PIB if it differs: so write the colon always.
        let tpm_locator = if tpm_locator.contains(':') { tpm_locator.to_owned() } else { format!("{tpm_locator}:") };
        Ok(KeyChainLocation { pib_directory, key_directory, tpm_locator, tpm_is_explicit })
    }
}

/// The directory of private keys for a `tpm-file:` locator.
pub(super) fn key_directory_of(locator: &str, home: &Path) -> Result<PathBuf, LocatorError> {
    let directory = directory_of(locator, "tpm-file", &home.join(".ndn"))?;
    if directory.ends_with(KEY_FILE_DIRECTORY) { Ok(directory) } else { Ok(directory.join(KEY_FILE_DIRECTORY)) }
}

fn directory_of(locator: &str, scheme: &str, default: &Path) -> Result<PathBuf, LocatorError> {
    if locator.len() > LOCATOR_BYTES_MAX {
        return Err(LocatorError::TooLong(locator.len()));
    }
    let (found, directory) = locator.split_once(':').unwrap_or((locator, ""));
    if !found.is_empty() && found != scheme {
        return Err(LocatorError::UnsupportedScheme(locator.to_owned()));
    }
    Ok(if directory.is_empty() { default.to_owned() } else { PathBuf::from(directory) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators_name_directories() {
        let home = Path::new("/home/a");
        let at = |pib, tpm| KeyChainLocation::new(pib, tpm, home).unwrap();
        for (pib, tpm, pib_directory, key_directory, locator) in [
            (None, None, "/home/a/.ndn", "/home/a/.ndn/ndnsec-key-file", "tpm-file:"),
            (Some("pib-sqlite3"), Some("tpm-file"), "/home/a/.ndn", "/home/a/.ndn/ndnsec-key-file", "tpm-file:"),
            (Some("pib-sqlite3:/p"), Some("tpm-file:/t"), "/p", "/t/ndnsec-key-file", "tpm-file:/t"),
            (
                None,
                Some("tpm-file:/t/ndnsec-key-file"),
                "/home/a/.ndn",
                "/t/ndnsec-key-file",
                "tpm-file:/t/ndnsec-key-file",
            ),
        ] {
            let location = at(pib, tpm);
            assert_eq!(location.pib_directory, Path::new(pib_directory));
            assert_eq!(location.key_directory, Path::new(key_directory));
            assert_eq!(location.tpm_locator, locator);
        }
        for (pib, tpm) in [(Some("pib-memory:"), None), (None, Some("tpm-osxkeychain:")), (Some("/p"), None)] {
            assert!(matches!(KeyChainLocation::new(pib, tpm, home), Err(LocatorError::UnsupportedScheme(_))));
        }
        let long = "x".repeat(LOCATOR_BYTES_MAX + 1);
        assert_eq!(KeyChainLocation::new(Some(&long), None, home), Err(LocatorError::TooLong(4097)));
    }
}
