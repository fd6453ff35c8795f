//! The certificates that the router has: configured anchors, certificates from files, and certificates fetched from the
//! network. A fetched certificate is not trusted until the rules accept it.
//!
//! Limits: [`MAX_FETCHED`] fetched certificates, beyond which the oldest is dropped; as many from files as the router
//! reads.

use super::rules::{AnchorCertificate, TrustAnchor};
use crate::{Certificate, certificate::KEY_COMPONENT};
use namewire_packet::{Name, NameBuf};
use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
};

/// Most certificates kept from the network.
pub const MAX_FETCHED: usize = 256;

/// Certificates at hand, by where they came from.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Certificates by file or directory, as the configuration names it.
    from_files: HashMap<PathBuf, Vec<AnchorCertificate>>,
    fetched: VecDeque<Certificate>,
}

impl Certificates {
    /// Replaces the certificates read from a file or directory.
    pub fn set_file(&mut self, path: PathBuf, certificates: Vec<AnchorCertificate>) {
        self.from_files.insert(path, certificates);
    }

    /// The trust anchor, among these, of the key that a KeyLocator names.
    pub fn anchor<'a>(&'a self, anchors: &'a [TrustAnchor], locator: Name<'_>) -> Option<&'a Certificate> {
        anchors.iter().find_map(|anchor| match anchor {
            TrustAnchor::Certificate(certificate) => [certificate].into_iter().find_map(|one| of_key(one, locator)),
            TrustAnchor::File { path, .. } | TrustAnchor::Directory { path, .. } => {
                self.of_file(path).iter().find_map(|one| of_key(one, locator))
            }
        })
    }

    fn of_file(&self, path: &Path) -> &[AnchorCertificate] {
        self.from_files.get(path).map_or(&[], Vec::as_slice)
    }

    /// A certificate from the network with this name, or of the key with this name.
    pub fn fetched(&self, locator: Name<'_>) -> Option<&Certificate> {
        let key = key_name_in(locator);
        let is_it =
            |one: &&Certificate| locator.is_prefix_of(&one.name()) && key.is_some_and(|key| key == one.key_name());
        self.fetched.iter().find(is_it)
    }

    /// Keeps a certificate from the network.
    pub fn add_fetched(&mut self, certificate: Certificate) {
        self.fetched.retain(|other| other.name() != certificate.name());
        if self.fetched.len() >= MAX_FETCHED {
            self.fetched.pop_front();
        }
        self.fetched.push_back(certificate);
    }

    /// Drops the fetched certificates whose issuer's certificate is unavailable. Otherwise one forged answer for a
    /// name, with a certificate that leads nowhere, would shut out the name's owner for good.
    pub fn forget_issued_by(&mut self, issuer: Name<'_>) {
        self.fetched.retain(|certificate| {
            !matches!(certificate.key_locator(), Some(namewire_packet::KeyLocator::Name(name)) if name == issuer)
        });
    }

    /// Drops the fetched certificates in the chain from this KeyLocator. One of them did not hold, and a later fetch
    /// may bring a valid one.
    pub fn forget_chain(&mut self, locator: Name<'_>) {
        let mut next: Option<NameBuf> = Some(locator.to_buf());
        while let Some(locator) = next.take() {
            let found = self.fetched.iter().position(|certificate| locator.as_name().is_prefix_of(&certificate.name()));
            let Some(certificate) = found.and_then(|at| self.fetched.remove(at)) else { return };
            if let Some(namewire_packet::KeyLocator::Name(name)) = certificate.key_locator() {
                next = Some(name.to_buf());
            }
        }
    }
}

/// The name of the key in a KeyLocator. The KeyLocator may name a certificate, a key, or a key and its issuer.
pub(super) fn key_name_in(locator: Name<'_>) -> Option<Name<'_>> {
    let starts = [4, 2, 3].into_iter().filter_map(|suffix| locator.len().checked_sub(suffix));
    let start = starts.into_iter().find(|&at| locator.get(at) == Some(KEY_COMPONENT))?;
    Some(locator.prefix(start + 2))
}

/// The certificate, if it belongs to the key that a KeyLocator (the name of a key or of a certificate) names.
pub fn of_key<'a>(certificate: &'a AnchorCertificate, locator: Name<'_>) -> Option<&'a Certificate> {
    let certificate = certificate.certificate();
    certificate.key_name().is_prefix_of(&locator).then_some(certificate)
}
