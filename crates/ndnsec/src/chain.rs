//! The user's key chain: look-ups by kind, with ndn-cxx's messages.
//!
//! `KeyChain` takes the kind of a name from its form. In ndnsec, an option gives the kind, and an identity may have a
//! name that looks like a key's. So these look-ups check the form first, then each level.

use crate::stop::Stop;
use namewire_client::discovery::Environment;
use namewire_packet::{Name, NameBuf, name_uri::UriError};
use namewire_security::{
    Certificate, Signer,
    certificate::{is_certificate_name, is_key_name},
    key_chain::{Entry, KeyChain, KeyChainError, KeyFileError},
};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) struct Chain {
    pub(crate) inner: KeyChain,
    /// As `list` prints it.
    pub(crate) locator: String,
}

impl Chain {
    /// Opens the key chain of this process's user; makes an empty one if there is none.
    pub(crate) fn open() -> Result<Self, Stop> {
        let (location, home) =
            Environment::of_process().key_chain_location().map_err(|error| Stop::Failed(error.to_string()))?;
        let locator = match &location.pib_directory {
            usual if *usual == home.join(".ndn") => "pib-sqlite3:".to_owned(),
            other => format!("pib-sqlite3:{}", other.display()),
        };
        Ok(Chain { inner: KeyChain::open_or_create(&location, &home)?, locator })
    }

    /// Checks that there is this identity.
    pub(crate) fn identity(&self, name: Name<'_>) -> Result<(), Stop> {
        let found = self.inner.pib().identities()?.iter().any(|entry| entry.name.as_name() == name);
        if found { Ok(()) } else { Err(Stop::Missing(format!("Identity `{name}` does not exist"))) }
    }

    pub(crate) fn default_identity(&self) -> Result<Entry, Stop> {
        default_of(self.inner.pib().identities()?).ok_or_else(|| Stop::Missing("No default identity".to_owned()))
    }

    pub(crate) fn key(&self, name: Name<'_>) -> Result<Entry, Stop> {
        if !is_key_name(name) {
            return Err(bad_form("Key", name));
        }
        let identity = name.prefix(name.len() - 2);
        self.identity(identity)?;
        named(self.inner.pib().keys(identity)?, name)
            .ok_or_else(|| Stop::Missing(format!("Key `{name}` not found in PIB")))
    }

    pub(crate) fn default_key(&self, identity: Name<'_>) -> Result<Entry, Stop> {
        self.identity(identity)?;
        default_of(self.inner.pib().keys(identity)?)
            .ok_or_else(|| Stop::Missing(format!("No default key for identity `{identity}`")))
    }

    pub(crate) fn certificate(&self, name: Name<'_>) -> Result<Entry, Stop> {
        if !is_certificate_name(name) {
            return Err(bad_form("Certificate", name));
        }
        let key = self.key(name.prefix(name.len() - 2))?;
        named(self.inner.pib().certificates(key.name.as_name())?, name)
            .ok_or_else(|| Stop::Missing(format!("Certificate `{name}` not found in PIB")))
    }

    pub(crate) fn default_certificate(&self, key_name: Name<'_>) -> Result<Entry, Stop> {
        default_of(self.inner.pib().certificates(key_name)?)
            .ok_or_else(|| Stop::Missing(format!("No default certificate for key `{key_name}`")))
    }

    /// Signs with a key of this key chain.
    pub(crate) fn signer(&self, key_name: Name<'_>) -> Result<Signer, Stop> {
        self.inner.signer(key_name).map_err(|error| match error {
            KeyChainError::KeyFile(KeyFileError::Missing(_)) => Stop::Failed(format!(
                "TPM signing failed for key `{key_name}` (e.g., PIB contains info about the key, but TPM is missing \
                 the corresponding private key)"
            )),
            other => other.into(),
        })
    }
}

fn named(entries: Vec<Entry>, name: Name<'_>) -> Option<Entry> {
    entries.into_iter().find(|entry| entry.name.as_name() == name)
}

/// The default among the rows of one owner.
pub(crate) fn default_of(entries: Vec<Entry>) -> Option<Entry> {
    entries.into_iter().find(|entry| entry.is_default)
}

/// The certificate in a row.
pub(crate) fn parse(entry: &Entry) -> Result<Certificate, Stop> {
    Certificate::parse(&entry.bytes).map_err(|error| Stop::Failed(format!("{}: {error}", entry.name)))
}

fn bad_form(what: &str, name: Name<'_>) -> Stop {
    Stop::Failed(format!("{what} name `{name}` does not respect the naming conventions"))
}

/// Reads a name as ndn-cxx does; the slash before it may be missing.
///
/// # Errors
/// ndn-cxx's message.
pub(crate) fn name_of(text: &str) -> Result<NameBuf, String> {
    text.parse().map_err(|error| match error {
        UriError::EmptyComponent | UriError::DotComponent => {
            "Illegal URI (name component cannot be . or ..)".to_owned()
        }
        UriError::BadType(part) => {
            let word = part.split('=').next().unwrap_or_default();
            format!("Unknown TLV-TYPE '{word}' in NameComponent URI")
        }
        other => other.to_string(),
    })
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
