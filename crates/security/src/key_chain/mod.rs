//! The keys of one user: names and certificates in the [`Pib`], private keys in [`KeyFiles`], the layout that ndn-cxx
//! and python-ndn share (drop-in §3).
//!
//! A private key is written before its row and removed after it, so that what breaks off half-way never leaves a row
//! without its key.

mod key_files;
mod location;
mod pib;

pub use key_files::{KeyFileError, KeyFiles};
pub use location::{KeyChainLocation, LocatorError};
pub use pib::{Entry, Pib, PibError, ROWS_MAX};

use crate::{
    Certificate, IssueError, PrivateKey, SafeBag, SafeBagError, Signer, ValidityPeriod,
    certificate::{self, KEY_COMPONENT},
    issue_certificate,
};
use namewire_packet::{Component, Name, NameBuf};
use std::path::Path;

/// Octets of a key id, drawn at random.
const KEY_ID_BYTES: usize = 8;
/// Issuer id of a certificate that a key makes for itself.
const SELF: Component<'static> = Component::generic(b"self");
/// How long a self-signed certificate holds: twenty years, as in ndn-cxx.
const SELF_SIGNED_MS: u64 = 20 * 365 * 24 * 3600 * 1000;
/// Clocks that are a little behind accept a new certificate too.
const CLOCK_SLACK_MS: u64 = 1000;

/// Why the key chain did not do it.
#[derive(Debug, thiserror::Error)]
pub enum KeyChainError {
    /// A locator leads nowhere.
    #[error(transparent)]
    Locator(#[from] LocatorError),
    /// The PIB does not answer.
    #[error(transparent)]
    Pib(#[from] PibError),
    /// A private key cannot be read or written.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// No certificate could be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A safe bag does not open or cannot be made.
    #[error(transparent)]
    SafeBag(#[from] SafeBagError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// The PIB says that its private keys are in another place than the one configured.
    #[error("pib.db has its private keys in {in_pib}, but {configured} is configured")]
    OtherTpm {
        /// Locator in the PIB.
        in_pib: String,
        /// Locator configured.
        configured: String,
    },
    /// No identity, key or certificate of that name.
    #[error("{0} is not in the key chain")]
    NotFound(NameBuf),
    /// An identity without keys.
    #[error("{0} has no key")]
    NoKey(NameBuf),
    /// The private key in the file is not the one that the PIB knows.
    #[error("the private key of {0} does not belong to its public key")]
    OtherKey(NameBuf),
    /// There is a key of that name.
    #[error("{0} is in the key chain already")]
    Exists(NameBuf),
}

/// What a name in the key chain is, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Identity,
    Key,
    Certificate,
}

fn kind_of(name: Name<'_>) -> Kind {
    if certificate::is_certificate_name(name) {
        Kind::Certificate
    } else if certificate::is_key_name(name) {
        Kind::Key
    } else {
        Kind::Identity
    }
}

/// An open key chain.
#[derive(Debug)]
pub struct KeyChain {
    pib: Pib,
    key_files: KeyFiles,
}

impl KeyChain {
    /// Opens a key chain to be read. `home` is `$HOME`, for a PIB that names no directory of keys.
    pub fn open(location: &KeyChainLocation, home: &Path) -> Result<Self, KeyChainError> {
        let pib = Pib::open(&location.pib_directory)?;
        Self::with_pib(pib, location, home)
    }

    /// Opens a key chain to be changed, and makes it if there is none.
    pub fn open_or_create(location: &KeyChainLocation, home: &Path) -> Result<Self, KeyChainError> {
        let pib = Pib::open_or_create(&location.pib_directory)?;
        if pib.tpm_locator()?.is_none_or(|locator| locator.is_empty()) {
            pib.set_tpm_locator(&location.tpm_locator)?;
        }
        Self::with_pib(pib, location, home)
    }

    fn with_pib(pib: Pib, location: &KeyChainLocation, home: &Path) -> Result<Self, KeyChainError> {
        let mut key_directory = location.key_directory.clone();
        if let Some(in_pib) = pib.tpm_locator()?.filter(|locator| !locator.is_empty()) {
            let named = location::key_directory_of(&in_pib, home)?;
            if location.tpm_is_explicit && named != key_directory {
                return Err(KeyChainError::OtherTpm { in_pib, configured: location.tpm_locator.clone() });
            }
            key_directory = named;
        }
        Ok(KeyChain { pib, key_files: KeyFiles::new(key_directory) })
    }

    /// Names and certificates.
    pub const fn pib(&self) -> &Pib {
        &self.pib
    }

    /// Private keys.
    pub const fn key_files(&self) -> &KeyFiles {
        &self.key_files
    }

    /// Adds a key of `identity` with a self-signed certificate. Where the identity is new it gets this key as default;
    /// where it has one, that stays.
    pub fn add_identity_key(
        &self,
        identity: Name<'_>,
        key: PrivateKey,
        now_ms: u64,
    ) -> Result<Certificate, KeyChainError> {
        let mut key_id = [0; KEY_ID_BYTES];
        getrandom::fill(&mut key_id).map_err(|_| KeyChainError::NoRandomness)?;
        let mut key_name = identity.to_buf();
        key_name.push(KEY_COMPONENT).push_generic(&key_id);
        self.key_files.save(key_name.as_name(), &key)?;
        let spki = key.public_key().spki().to_vec();
        // A certificate can be named only by one that exists: this one names its key.
        let signer = Signer::private_key(key, key_name.clone());
        let validity = ValidityPeriod {
            not_before_ms: now_ms.saturating_sub(CLOCK_SLACK_MS),
            not_after_ms: now_ms.saturating_add(SELF_SIGNED_MS),
        };
        let certificate = issue_certificate(&signer, key_name.as_name(), &spki, SELF, now_ms, validity)?;
        self.pib.add_key(identity, key_name.as_name(), &spki)?;
        self.pib.add_certificate(key_name.as_name(), certificate.name(), certificate.wire())?;
        Ok(certificate)
    }

    /// The name of the key that `name` means: itself, the key of a certificate, or the default key of an identity.
    pub fn key_of(&self, name: Name<'_>) -> Result<Entry, KeyChainError> {
        let not_found = || KeyChainError::NotFound(name.to_buf());
        match kind_of(name) {
            Kind::Identity => {
                let identities = self.pib.identities()?;
                identities.iter().find(|entry| entry.name.as_name() == name).ok_or_else(not_found)?;
                let keys = self.pib.keys(name)?;
                let mut defaults = keys.into_iter().filter(|key| key.is_default);
                defaults.next().ok_or_else(|| KeyChainError::NoKey(name.to_buf()))
            }
            kind => {
                let key_name = if kind == Kind::Certificate { name.prefix(name.len() - 2) } else { name };
                let keys = self.pib.keys(certificate::identity_of(name).unwrap_or(Name::ROOT))?;
                keys.into_iter().find(|key| key.name.as_name() == key_name).ok_or_else(not_found)
            }
        }
    }

    /// The certificate that `name` means: itself, or the default one of a key or identity; none if that key has none.
    pub fn certificate_of(&self, name: Name<'_>) -> Result<Option<Entry>, KeyChainError> {
        let key = self.key_of(name)?;
        let certificates = self.pib.certificates(key.name.as_name())?;
        if kind_of(name) == Kind::Certificate {
            let found = certificates.into_iter().find(|entry| entry.name.as_name() == name);
            return found.map(Some).ok_or_else(|| KeyChainError::NotFound(name.to_buf()));
        }
        Ok(certificates.into_iter().find(|entry| entry.is_default))
    }

    /// The private key that `name` means, which is the one the PIB knows.
    pub fn private_key_of(&self, name: Name<'_>) -> Result<PrivateKey, KeyChainError> {
        let entry = self.key_of(name)?;
        let key = self.key_files.load(entry.name.as_name())?;
        if crate::PublicKey::from_spki(&entry.octets).as_ref() != Ok(key.public_key()) {
            return Err(KeyChainError::OtherKey(entry.name));
        }
        Ok(key)
    }

    /// A signer by the name of an identity, a key or a certificate. Its KeyLocator names the certificate, or the key if
    /// there is none.
    pub fn signer(&self, name: Name<'_>) -> Result<Signer, KeyChainError> {
        let key = self.private_key_of(name)?;
        let key_locator = match self.certificate_of(name)? {
            Some(certificate) => certificate.name,
            None => self.key_of(name)?.name,
        };
        Ok(Signer::private_key(key, key_locator))
    }

    /// Makes the identity, key or certificate of that name the default among its owner's.
    pub fn set_default(&self, name: Name<'_>) -> Result<(), KeyChainError> {
        let found = match kind_of(name) {
            Kind::Identity => self.pib.set_default_identity(name)?,
            Kind::Key => self.pib.set_default_key(name)?,
            Kind::Certificate => self.pib.set_default_certificate(name)?,
        };
        if found { Ok(()) } else { Err(KeyChainError::NotFound(name.to_buf())) }
    }

    /// Removes the identity, key or certificate of that name, with everything below it. A private key whose file is
    /// gone already does not stop it.
    pub fn remove(&self, name: Name<'_>) -> Result<(), KeyChainError> {
        let (found, keys) = match kind_of(name) {
            Kind::Identity => {
                let keys = self.pib.keys(name)?;
                (self.pib.remove_identity(name)?, keys.into_iter().map(|key| key.name).collect())
            }
            Kind::Key => (self.pib.remove_key(name)?, vec![name.to_buf()]),
            Kind::Certificate => (self.pib.remove_certificate(name)?, vec![]),
        };
        if !found {
            return Err(KeyChainError::NotFound(name.to_buf()));
        }
        for key in keys {
            match self.key_files.remove(key.as_name()) {
                Ok(()) | Err(KeyFileError::Missing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Adds a certificate for a key that is here, from whoever issued it.
    pub fn import_certificate(&self, certificate: &Certificate) -> Result<(), KeyChainError> {
        let key = self.key_of(certificate.key_name())?;
        if crate::PublicKey::from_spki(&key.octets) != certificate.public_key() {
            return Err(KeyChainError::OtherKey(key.name));
        }
        self.pib.add_certificate(key.name.as_name(), certificate.name(), certificate.wire())?;
        Ok(())
    }

    /// Adds the key and the certificate of a safe bag.
    pub fn import_safe_bag(&self, bag: &SafeBag, passphrase: &[u8]) -> Result<(), KeyChainError> {
        let certificate = bag.certificate();
        let key_name = certificate.key_name();
        if self.key_files.has(key_name) {
            return Err(KeyChainError::Exists(key_name.to_buf()));
        }
        let key = bag.open(passphrase)?;
        self.key_files.save(key_name, &key)?;
        self.pib.add_key(certificate.identity(), key_name, certificate.spki())?;
        self.pib.add_certificate(key_name, certificate.name(), certificate.wire())?;
        Ok(())
    }

    /// Locks the key that `name` means, and its certificate, into a safe bag.
    pub fn export_safe_bag(&self, name: Name<'_>, passphrase: &[u8]) -> Result<SafeBag, KeyChainError> {
        let entry = self.certificate_of(name)?.ok_or_else(|| KeyChainError::NotFound(name.to_buf()))?;
        let certificate = Certificate::parse(&entry.octets).map_err(IssueError::from)?;
        Ok(SafeBag::lock(certificate, &self.private_key_of(name)?, passphrase)?)
    }
}
