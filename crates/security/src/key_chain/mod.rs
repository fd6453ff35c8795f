//! The keys of one user: names and certificates in the [`Pib`], private keys in [`KeyFiles`], in the layout of ndn-cxx
//! and python-ndn (drop-in §3).
//!
//! A private key is written before its row is added, and removed after its row. So an interrupted change never leaves a
//! row without its key.

mod key_files;
mod location;
mod pib;
mod renewal;
mod revoke;

pub use key_files::{KeyFileError, KeyFiles};
pub use location::{KeyChainLocation, LocatorError};
pub use pib::{Entry, Pib, PibError, ROWS_MAX};
pub use renewal::{DUE_MS_MAX, EXPIRED_KEPT, Expiry};

use crate::{
    Certificate, IssueError, PrivateKey, SafeBag, SafeBagError, Signer, ValidityPeriod,
    certificate::{self, KEY_COMPONENT},
    issue_certificate,
    trust::revocation::RevokeError,
};
use namewire_packet::{Component, Name, NameBuf};
use std::path::Path;

/// Bytes of a random key id.
const KEY_ID_BYTES: usize = 8;
/// Issuer id of a self-signed certificate.
const SELF: Component<'static> = Component::generic(b"self");
/// Validity of a self-signed certificate: twenty years, as in ndn-cxx.
const SELF_SIGNED_MS: u64 = 20 * 365 * 24 * 3600 * 1000;
/// A new certificate is valid this long before its creation, for clocks that are slow.
const CLOCK_SLACK_MS: u64 = 1000;

/// Why an operation of the key chain failed.
#[derive(Debug, thiserror::Error)]
pub enum KeyChainError {
    /// A locator cannot be used.
    #[error(transparent)]
    Locator(#[from] LocatorError),
    /// The PIB failed.
    #[error(transparent)]
    Pib(#[from] PibError),
    /// A private key cannot be read or written.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// No certificate could be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// No revocation record could be made.
    #[error(transparent)]
    Revoke(#[from] RevokeError),
    /// A safe bag cannot be opened or made.
    #[error(transparent)]
    SafeBag(#[from] SafeBagError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
    /// The PIB names another location of the private keys than the configured one.
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
    /// A key without a certificate.
    #[error("{0} has no certificate")]
    NoCertificate(NameBuf),
    /// The private key of the certificate's issuer is needed and is not in this key chain.
    #[error(
        "the private key of the issuer of {0} is not here: an authority on the network renews it (namewire cert renew); \
         or the issuer must issue another certificate (namewire key issue), which `namewire key import` and `namewire \
         key default` take"
    )]
    IssuerElsewhere(NameBuf),
    /// The certificate of the certificate's issuer holds no longer than the certificate itself.
    #[error("the certificate of the issuer of {0} holds no longer than that; renew the issuer's first")]
    IssuerEndsFirst(NameBuf),
    /// The certificate's signature is not that of the issuer that it names.
    #[error("{0} is forged: its signature is not that of the issuer that it names")]
    Forged(NameBuf),
    /// The private key in the file does not match the public key in the PIB.
    #[error("the private key of {0} does not belong to its public key")]
    OtherKey(NameBuf),
    /// The key exists already.
    #[error("{0} is in the key chain already")]
    Exists(NameBuf),
}

/// The kind of a name in the key chain, by its form.
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
    /// Opens a key chain for reading. `home` is `$HOME`, for a PIB whose locator names no directory.
    ///
    /// # Errors
    /// If there is no PIB or it cannot be read, or if its locator of the private keys is unusable.
    /// [`KeyChainError::OtherTpm`] if that locator differs from the one that the user configured.
    pub fn open(location: &KeyChainLocation, home: &Path) -> Result<Self, KeyChainError> {
        let pib = Pib::open(&location.pib_directory)?;
        Self::with_pib(pib, location, home)
    }

    /// Opens a key chain for changes; creates it if it does not exist.
    ///
    /// # Errors
    /// If the PIB can be neither opened nor created; also those of [`KeyChain::open`] for its locator.
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

    /// Adds a key of `identity` with a self-signed certificate. It becomes the default key of an identity that has
    /// none. `now_ms` is the time in milliseconds since 1970.
    ///
    /// # Errors
    /// If the system provides no random numbers, if the certificate cannot be signed or is too long, or if the PIB or
    /// the key's file cannot be written.
    pub fn add_identity_key(
        &self,
        identity: Name<'_>,
        key: PrivateKey,
        now_ms: u64,
    ) -> Result<Certificate, KeyChainError> {
        let mut key_id = [0; KEY_ID_BYTES];
        getrandom::fill(&mut key_id).map_err(|_| KeyChainError::NoRandomness)?;
        self.add_named_key(identity, Component::generic(&key_id), key, now_ms)
    }

    /// The same, with a key id of the caller's choice.
    ///
    /// # Errors
    /// [`KeyFileError::Exists`] if the identity has a key with this id; otherwise those of
    /// [`KeyChain::add_identity_key`].
    pub fn add_named_key(
        &self,
        identity: Name<'_>,
        key_id: Component<'_>,
        key: PrivateKey,
        now_ms: u64,
    ) -> Result<Certificate, KeyChainError> {
        let mut key_name = identity.to_buf();
        key_name.push(KEY_COMPONENT).push(key_id);
        self.key_files.save(key_name.as_name(), &key)?;
        let spki = key.public_key().spki().to_vec();
        // A KeyLocator can only name an existing certificate, so this one names its key.
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

    /// Finds the key named by `name`: a key, the key of a certificate, or the default key of an identity.
    ///
    /// # Errors
    /// [`KeyChainError::NotFound`] for an unknown name; [`KeyChainError::NoKey`] if the identity has no key;
    /// [`KeyChainError::Pib`] if the PIB cannot be read.
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

    /// Finds the certificate named by `name`: itself, or the default one of a key or identity; `None` if that key has
    /// none.
    ///
    /// # Errors
    /// Those of [`KeyChain::key_of`]; also [`KeyChainError::NotFound`] if `name` is an unknown certificate.
    pub fn certificate_of(&self, name: Name<'_>) -> Result<Option<Entry>, KeyChainError> {
        let key = self.key_of(name)?;
        let certificates = self.pib.certificates(key.name.as_name())?;
        if kind_of(name) == Kind::Certificate {
            let found = certificates.into_iter().find(|entry| entry.name.as_name() == name);
            return found.map(Some).ok_or_else(|| KeyChainError::NotFound(name.to_buf()));
        }
        Ok(certificates.into_iter().find(|entry| entry.is_default))
    }

    /// Reads the private key named by `name`, and compares it with the PIB's public key.
    ///
    /// # Errors
    /// Those of [`KeyChain::key_of`] and [`KeyFiles::load`]; [`KeyChainError::OtherKey`] if the two keys do not match.
    pub fn private_key_of(&self, name: Name<'_>) -> Result<PrivateKey, KeyChainError> {
        let entry = self.key_of(name)?;
        let key = self.key_files.load(entry.name.as_name())?;
        if crate::PublicKey::from_spki(&entry.bytes).as_ref() != Ok(key.public_key()) {
            return Err(KeyChainError::OtherKey(entry.name));
        }
        Ok(key)
    }

    /// Makes a signer for an identity, a key or a certificate. Its KeyLocator names the certificate, or the key if it
    /// has none.
    ///
    /// # Errors
    /// Those of [`KeyChain::private_key_of`] and [`KeyChain::certificate_of`].
    pub fn signer(&self, name: Name<'_>) -> Result<Signer, KeyChainError> {
        let key = self.private_key_of(name)?;
        let key_locator = match self.certificate_of(name)? {
            Some(certificate) => certificate.name,
            None => self.key_of(name)?.name,
        };
        Ok(Signer::private_key(key, key_locator))
    }

    /// Makes an identity, key or certificate the default of its owner.
    ///
    /// # Errors
    /// [`KeyChainError::NotFound`] for an unknown name; [`KeyChainError::Pib`] if the PIB cannot be written.
    pub fn set_default(&self, name: Name<'_>) -> Result<(), KeyChainError> {
        let found = match kind_of(name) {
            Kind::Identity => self.pib.set_default_identity(name)?,
            Kind::Key => self.pib.set_default_key(name)?,
            Kind::Certificate => self.pib.set_default_certificate(name)?,
        };
        if found { Ok(()) } else { Err(KeyChainError::NotFound(name.to_buf())) }
    }

    /// Removes an identity, key or certificate, with everything below it. Missing files of private keys are ignored.
    ///
    /// # Errors
    /// [`KeyChainError::NotFound`] for an unknown name; otherwise if the PIB cannot be written or a file of a private
    /// key cannot be removed. The rows are gone already if a file remains.
    pub fn remove(&self, name: Name<'_>) -> Result<(), KeyChainError> {
        match kind_of(name) {
            Kind::Identity => self.remove_identity(name),
            Kind::Key => self.remove_key(name),
            Kind::Certificate if self.pib.remove_certificate(name)? => Ok(()),
            Kind::Certificate => Err(KeyChainError::NotFound(name.to_buf())),
        }
    }

    /// Removes an identity, also one whose name looks like that of a key.
    ///
    /// # Errors
    /// Those of [`KeyChain::remove`].
    pub fn remove_identity(&self, identity: Name<'_>) -> Result<(), KeyChainError> {
        let keys = self.pib.keys(identity)?;
        if !self.pib.remove_identity(identity)? {
            return Err(KeyChainError::NotFound(identity.to_buf()));
        }
        keys.iter().try_for_each(|key| self.remove_private_key(key.name.as_name()))
    }

    /// Removes a key, also one whose name looks like that of a certificate.
    ///
    /// # Errors
    /// Those of [`KeyChain::remove`].
    pub fn remove_key(&self, key_name: Name<'_>) -> Result<(), KeyChainError> {
        if !self.pib.remove_key(key_name)? {
            return Err(KeyChainError::NotFound(key_name.to_buf()));
        }
        self.remove_private_key(key_name)
    }

    fn remove_private_key(&self, key_name: Name<'_>) -> Result<(), KeyChainError> {
        match self.key_files.remove(key_name) {
            Ok(()) | Err(KeyFileError::Missing(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a certificate by another issuer for a key of this key chain. Its signature is not checked.
    ///
    /// # Errors
    /// [`KeyChainError::NotFound`] if the key is unknown; [`KeyChainError::OtherKey`] if the certificate holds another
    /// public key; [`KeyChainError::Pib`] if the PIB cannot be written.
    pub fn import_certificate(&self, certificate: &Certificate) -> Result<(), KeyChainError> {
        let key = self.key_of(certificate.key_name())?;
        if crate::PublicKey::from_spki(&key.bytes) != certificate.public_key() {
            return Err(KeyChainError::OtherKey(key.name));
        }
        self.pib.add_certificate(key.name.as_name(), certificate.name(), certificate.wire())?;
        Ok(())
    }

    /// Adds the key and the certificate of a safe bag.
    ///
    /// # Errors
    /// [`KeyChainError::Exists`] if the key has a file; those of [`SafeBag::open`]; otherwise if the key's file or the
    /// PIB cannot be written.
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

    /// Encrypts the key named by `name` into a safe bag, together with its certificate.
    ///
    /// # Errors
    /// Those of [`KeyChain::private_key_of`] and [`SafeBag::lock`]; [`KeyChainError::NotFound`] if the key has no
    /// certificate; [`KeyChainError::Issue`] if the certificate in the PIB is malformed.
    pub fn export_safe_bag(&self, name: Name<'_>, passphrase: &[u8]) -> Result<SafeBag, KeyChainError> {
        let entry = self.certificate_of(name)?.ok_or_else(|| KeyChainError::NotFound(name.to_buf()))?;
        let certificate = Certificate::parse(&entry.bytes).map_err(IssueError::from)?;
        Ok(SafeBag::lock(certificate, &self.private_key_of(name)?, passphrase)?)
    }
}
