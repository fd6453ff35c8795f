//! The certificates that the router has: configured anchors, certificates from files, and fetched certificates. A
//! fetched certificate is not trusted until the rules accept it.
//!
//! A certificate that a host supplied for its own command counts for this host only. So no host can block another host
//! with a false certificate.
//!
//! Limits: [`MAX_FETCHED`] certificates from the network, and the same number supplied by hosts, at most [`MAX_TOLD`]
//! by each; beyond that the oldest is dropped. There is no limit for certificates from files.

use super::{
    MAX_CHAIN,
    revocation::Revocations,
    rules::{AnchorCertificate, TrustAnchor},
};
use crate::{
    Certificate,
    certificate::{is_certificate_name, key_name_in},
};
use namewire_packet::{Name, NameBuf};
use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
};

/// Most certificates kept from the network.
pub const MAX_FETCHED: usize = 256;

/// Most certificates kept that one host told.
pub const MAX_TOLD: usize = 32;

/// A host that tells certificates, by a number that the caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teller(pub u32);

/// Certificates at hand, by where they came from.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Certificates by file or directory, as the configuration names it.
    from_files: HashMap<PathBuf, Vec<AnchorCertificate>>,
    fetched: VecDeque<Fetched>,
    revocations: Revocations,
}

/// A fetched certificate, and the host that told it; `None` is the network.
#[derive(Debug)]
struct Fetched {
    certificate: Certificate,
    teller: Option<Teller>,
}

impl Fetched {
    /// True if it counts for what this host sent.
    fn counts_for(&self, host: Option<Teller>) -> bool {
        self.teller.is_none() || self.teller == host
    }
}

impl Certificates {
    /// Replaces the certificates read from a file or directory.
    pub fn set_file(&mut self, path: PathBuf, certificates: Vec<AnchorCertificate>) {
        self.from_files.insert(path, certificates);
    }

    /// The revocation records at hand.
    pub const fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// The same, to add some.
    pub const fn revocations_mut(&mut self) -> &mut Revocations {
        &mut self.revocations
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

    /// A fetched certificate with this name, or of the key with this name, that counts for `host`: one that is valid
    /// now, if there is one, and one that the host itself told before one of the network.
    pub fn fetched(&self, locator: Name<'_>, host: Option<Teller>, now_unix_ms: u64) -> Option<&Certificate> {
        let named = |one: &&Fetched| one.counts_for(host) && is_named(&one.certificate, locator);
        let of_locator = self.fetched.iter().filter(named);
        let best = of_locator.min_by_key(|one| (!one.certificate.is_valid_at(now_unix_ms), one.teller.is_none()))?;
        Some(&best.certificate)
    }

    /// Keeps a certificate from the network, or one that this host told.
    pub fn add_fetched(&mut self, certificate: Certificate, teller: Option<Teller>) {
        self.fetched.retain(|one| one.teller != teller || one.certificate.name() != certificate.name());
        if teller.is_some() {
            self.make_room(MAX_TOLD, |one| one.teller == teller);
        }
        self.make_room(MAX_FETCHED, |one| one.teller.is_some() == teller.is_some());
        self.fetched.push_back(Fetched { certificate, teller });
    }

    /// Drops the oldest certificate of a kind if there are `most` of it.
    fn make_room(&mut self, most: usize, is_of_kind: impl Fn(&Fetched) -> bool) {
        if self.fetched.iter().filter(|one| is_of_kind(one)).count() >= most {
            let oldest = self.fetched.iter().position(is_of_kind);
            oldest.and_then(|at| self.fetched.remove(at));
        }
    }

    /// Drops the certificates of the network with these names.
    pub fn forget(&mut self, names: &[NameBuf]) {
        self.fetched.retain(|one| !names.iter().any(|name| name.as_name() == one.certificate.name()));
    }

    /// Looks along the chain from this KeyLocator for a certificate of the network that has expired. If a KeyLocator
    /// names it by its key only, there may be a newer one: then it is dropped, and the result is true.
    pub fn forget_expired(&mut self, locator: Name<'_>, now_unix_ms: u64) -> bool {
        let mut locator = locator.to_buf();
        for _ in 0..MAX_CHAIN {
            let Some(certificate) = self.fetched(locator.as_name(), None, now_unix_ms) else { return false };
            if now_unix_ms > certificate.validity().not_after_ms {
                if is_certificate_name(locator.as_name()) {
                    return false;
                }
                self.fetched.retain(|one| {
                    !is_named(&one.certificate, locator.as_name())
                        || now_unix_ms <= one.certificate.validity().not_after_ms
                });
                return true;
            }
            let Some(namewire_packet::KeyLocator::Name(issuer)) = certificate.key_locator() else { return false };
            locator = issuer.to_buf();
        }
        false
    }

    /// Drops the certificates that count for `host` and whose issuer's certificate is unavailable. Otherwise one forged
    /// answer for a name, with a certificate that leads nowhere, would shut out the name's owner for good.
    pub fn forget_issued_by(&mut self, issuer: Name<'_>, host: Option<Teller>) {
        self.fetched.retain(|one| {
            let by = one.certificate.key_locator();
            !one.counts_for(host) || !matches!(by, Some(namewire_packet::KeyLocator::Name(name)) if name == issuer)
        });
    }

    /// Drops the certificates that count for `host` in the chain from this KeyLocator. One of them did not hold, and a
    /// later fetch may bring a valid one.
    pub fn forget_chain(&mut self, locator: Name<'_>, host: Option<Teller>) {
        let mut next: Option<NameBuf> = Some(locator.to_buf());
        while let Some(locator) = next.take() {
            let is_next = |one: &Fetched| one.counts_for(host) && is_named(&one.certificate, locator.as_name());
            let found = self.fetched.iter().position(is_next);
            let Some(one) = found.and_then(|at| self.fetched.remove(at)) else { return };
            if let Some(namewire_packet::KeyLocator::Name(name)) = one.certificate.key_locator() {
                next = Some(name.to_buf());
            }
        }
    }
}

/// True if a KeyLocator with this name means this certificate: by its name, or by its key's.
fn is_named(certificate: &Certificate, locator: Name<'_>) -> bool {
    locator.is_prefix_of(&certificate.name()) && key_name_in(locator) == Some(certificate.key_name())
}

/// The certificate, if it belongs to the key that a KeyLocator (the name of a key or of a certificate) names.
pub fn of_key<'a>(certificate: &'a AnchorCertificate, locator: Name<'_>) -> Option<&'a Certificate> {
    let certificate = certificate.certificate();
    certificate.key_name().is_prefix_of(&locator).then_some(certificate)
}
