//! The certificates that the router has: configured anchors, certificates from files, and certificates fetched from the
//! network. A fetched certificate is not trusted until the rules accept it.
//!
//! Limits: [`MAX_FETCHED`] fetched certificates, beyond which the oldest is dropped; as many from files as the router
//! reads.

use super::{
    judge::MAX_CHAIN,
    rules::{AnchorCertificate, TrustAnchor},
};
use crate::{
    Certificate,
    certificate::{KEY_COMPONENT, is_certificate_name},
};
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

    /// A certificate from the network with this name, or of the key with this name: one that is valid now, if there is
    /// one.
    pub fn fetched(&self, locator: Name<'_>, now_unix_ms: u64) -> Option<&Certificate> {
        let mut of_locator = self.fetched.iter().filter(|certificate| is_named(certificate, locator));
        let first = of_locator.next();
        match first {
            Some(certificate) if !certificate.is_valid_at(now_unix_ms) => {
                of_locator.find(|certificate| certificate.is_valid_at(now_unix_ms)).or(first)
            }
            _ => first,
        }
    }

    /// Keeps a certificate from the network.
    pub fn add_fetched(&mut self, certificate: Certificate) {
        self.fetched.retain(|other| other.name() != certificate.name());
        if self.fetched.len() >= MAX_FETCHED {
            self.fetched.pop_front();
        }
        self.fetched.push_back(certificate);
    }

    /// Drops the fetched certificates with these names.
    pub fn forget(&mut self, names: &[NameBuf]) {
        self.fetched.retain(|certificate| !names.iter().any(|name| name.as_name() == certificate.name()));
    }

    /// Looks along the chain from this KeyLocator for a certificate that has expired. If a KeyLocator names it by its
    /// key only, there may be a newer one: then it is dropped, and the result is true.
    pub fn forget_expired(&mut self, locator: Name<'_>, now_unix_ms: u64) -> bool {
        let mut locator = locator.to_buf();
        for _ in 0..MAX_CHAIN {
            let Some(certificate) = self.fetched(locator.as_name(), now_unix_ms) else { return false };
            if now_unix_ms > certificate.validity().not_after_ms {
                if is_certificate_name(locator.as_name()) {
                    return false;
                }
                self.fetched.retain(|other| {
                    !is_named(other, locator.as_name()) || now_unix_ms <= other.validity().not_after_ms
                });
                return true;
            }
            let Some(namewire_packet::KeyLocator::Name(issuer)) = certificate.key_locator() else { return false };
            locator = issuer.to_buf();
        }
        false
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
            let found = self.fetched.iter().position(|certificate| is_named(certificate, locator.as_name()));
            let Some(certificate) = found.and_then(|at| self.fetched.remove(at)) else { return };
            if let Some(namewire_packet::KeyLocator::Name(name)) = certificate.key_locator() {
                next = Some(name.to_buf());
            }
        }
    }
}

/// True if a KeyLocator with this name means this certificate: by its name, or by its key's.
fn is_named(certificate: &Certificate, locator: Name<'_>) -> bool {
    locator.is_prefix_of(&certificate.name()) && key_name_in(locator) == Some(certificate.key_name())
}

/// The name of the key in a KeyLocator. The KeyLocator may name a certificate, a key, or a key and its issuer.
pub(crate) fn key_name_in(locator: Name<'_>) -> Option<Name<'_>> {
    let starts = [4, 2, 3].into_iter().filter_map(|suffix| locator.len().checked_sub(suffix));
    let start = starts.into_iter().find(|&at| locator.get(at) == Some(KEY_COMPONENT))?;
    Some(locator.prefix(start + 2))
}

/// The certificate, if it belongs to the key that a KeyLocator (the name of a key or of a certificate) names.
pub fn of_key<'a>(certificate: &'a AnchorCertificate, locator: Name<'_>) -> Option<&'a Certificate> {
    let certificate = certificate.certificate();
    certificate.key_name().is_prefix_of(&locator).then_some(certificate)
}
