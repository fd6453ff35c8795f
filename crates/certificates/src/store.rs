//! Which certificate answers an Interest? No socket, no file and no clock: the caller passes the time.
//!
//! - An Interest for the name of a certificate gets it, also if the certificate has expired: old Data needs it.
//! - An Interest with CanBePrefix for a key, or for a key and an issuer, gets the best of the certificates under this
//!   name. Valid ones come first, those of lasting sources before fetched ones, those that another key issued before
//!   self-signed ones, then the newest. A self-signed certificate helps nobody who must ask for it: it counts only as
//!   an anchor, and those who have the anchor do not ask.
//! - With MustBeFresh, such an Interest gets only a certificate that is valid now.
//!
//! Each [`Source`] has a share ([`Limits`]). A lasting source that has more than its share is served up to the limit;
//! the caller learns how many were refused. A fetched certificate pushes out the oldest of its own source. If all
//! fetched ones together reach their limit, a source that has none to give up is refused. So a flood from one source
//! costs only certificates of this source.
//!
//! Cost: one search in a tree for each way to read the name (at most three), and a comparison for each certificate of
//! the key.

use namewire_packet::{Interest, Name, NameBuf};
use namewire_security::{Certificate, certificate::KEY_COMPONENT};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// Where a certificate came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The user's key chain.
    KeyChain,
    /// Files, directories and settings: anchors and intermediates.
    Files,
    /// Handed in while the program runs, by a number that the caller chooses for each peer or task.
    Fetched(u32),
}

impl Source {
    /// True if the user chose the certificates: they are replaced, never pushed out.
    pub const fn is_lasting(self) -> bool {
        !matches!(self, Source::Fetched(_))
    }
}

/// The limits of a [`CertificateStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Certificates of one lasting source.
    pub lasting: usize,
    /// Their bytes.
    pub lasting_bytes: usize,
    /// Fetched certificates of one source.
    pub fetched_of_source: usize,
    /// Their bytes.
    pub fetched_of_source_bytes: usize,
    /// Fetched certificates of all sources.
    pub fetched: usize,
    /// Their bytes.
    pub fetched_bytes: usize,
    /// Keys whose prefixes are registered.
    pub prefixes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            lasting: 10_000,
            lasting_bytes: 32 << 20,
            fetched_of_source: 64,
            fetched_of_source_bytes: 128 << 10,
            fetched: 1024,
            fetched_bytes: 2 << 20,
            prefixes: 10_000,
        }
    }
}

/// Why a fetched certificate is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// It alone is larger than the share of its source.
    #[error("the certificate is larger than the share of its source")]
    TooLarge,
    /// Other sources have fetched as many as are kept, and this source has none to give up.
    #[error("no more fetched certificates are kept")]
    Full,
}

/// A certificate and its source.
#[derive(Debug)]
struct Held {
    certificate: Arc<Certificate>,
    source: Source,
}

/// What a source holds.
#[derive(Debug, Default)]
struct Share {
    /// Names in the order of their arrival.
    names: VecDeque<NameBuf>,
    bytes: usize,
}

/// Certificates by the names of their keys.
#[derive(Debug, Default)]
pub struct CertificateStore {
    limits: Limits,
    keys: BTreeMap<NameBuf, Vec<Held>>,
    shares: HashMap<Source, Share>,
    fetched: usize,
    fetched_bytes: usize,
}

impl CertificateStore {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        CertificateStore { limits, ..CertificateStore::default() }
    }

    /// Replaces all certificates of a lasting source. Returns how many did not fit.
    pub fn replace(&mut self, source: Source, certificates: Vec<Certificate>) -> usize {
        self.remove_all(source);
        let mut refused = 0;
        for certificate in certificates {
            let share = self.shares.entry(source).or_default();
            let bytes = share.bytes + certificate.wire().len();
            if share.names.len() >= self.limits.lasting || bytes > self.limits.lasting_bytes {
                refused += 1;
            } else {
                self.remove(source, certificate.name());
                self.insert(source, certificate);
            }
        }
        refused
    }

    /// Keeps a fetched certificate. The caller has verified it: here, only its form is known.
    ///
    /// # Errors
    /// If the source's share or the room for all fetched certificates does not allow it.
    pub fn add(&mut self, number: u32, certificate: Certificate) -> Result<(), AddError> {
        let (source, size) = (Source::Fetched(number), certificate.wire().len());
        if size > self.limits.fetched_of_source_bytes.min(self.limits.fetched_bytes) {
            return Err(AddError::TooLarge);
        }
        self.remove(source, certificate.name());
        while !self.has_room(source, size) {
            let oldest = self.shares.get(&source).and_then(|share| share.names.front().cloned());
            let oldest = oldest.ok_or(AddError::Full)?;
            self.remove(source, oldest.as_name());
        }
        self.insert(source, certificate);
        Ok(())
    }

    fn has_room(&self, source: Source, size: usize) -> bool {
        let Limits { fetched_of_source, fetched_of_source_bytes, fetched, fetched_bytes, .. } = self.limits;
        let (names, bytes) = self.shares.get(&source).map_or((0, 0), |share| (share.names.len(), share.bytes));
        names < fetched_of_source
            && bytes + size <= fetched_of_source_bytes
            && self.fetched < fetched
            && self.fetched_bytes + size <= fetched_bytes
    }

    fn insert(&mut self, source: Source, certificate: Certificate) {
        let (name, size) = (certificate.name().to_buf(), certificate.wire().len());
        let share = self.shares.entry(source).or_default();
        share.names.push_back(name);
        share.bytes += size;
        if !source.is_lasting() {
            self.fetched += 1;
            self.fetched_bytes += size;
        }
        let held = Held { source, certificate: Arc::new(certificate) };
        self.keys.entry(held.certificate.key_name().to_buf()).or_default().push(held);
    }

    /// Removes the certificate with this name that came from this source.
    fn remove(&mut self, source: Source, name: Name<'_>) {
        let key = name.prefix(name.len().saturating_sub(2)).to_buf();
        let Some(of_key) = self.keys.get_mut(&key) else { return };
        let is_it = |held: &Held| held.source == source && held.certificate.name() == name;
        let Some(at) = of_key.iter().position(is_it) else { return };
        let size = of_key.remove(at).certificate.wire().len();
        if of_key.is_empty() {
            self.keys.remove(&key);
        }
        if let Some(share) = self.shares.get_mut(&source) {
            share.names.retain(|other| other.as_name() != name);
            share.bytes -= size;
            if share.names.is_empty() {
                self.shares.remove(&source);
            }
        }
        if !source.is_lasting() {
            self.fetched -= 1;
            self.fetched_bytes -= size;
        }
    }

    /// Removes all certificates of a source.
    pub fn remove_all(&mut self, source: Source) {
        let Some(share) = self.shares.remove(&source) else { return };
        if !source.is_lasting() {
            self.fetched -= share.names.len();
            self.fetched_bytes -= share.bytes;
        }
        self.keys.retain(|_, of_key| {
            of_key.retain(|held| held.source != source);
            !of_key.is_empty()
        });
    }

    /// The certificate that answers this Interest best; see the module.
    pub fn find(&self, interest: &Interest<'_>, now_unix_ms: u64) -> Option<Arc<Certificate>> {
        let name = interest.name();
        let with_digest = usize::from(interest.implicit_digest().is_some());
        let matching = keys_in(name, with_digest).filter_map(|key| self.keys.get(&key.to_buf())).flatten();
        let matching = matching.filter(|held| interest.matches(&held.certificate.data()));
        let is_exact = |held: &Held| held.certificate.name().len() + with_digest == name.len();
        let is_wanted =
            |held: &&Held| is_exact(held) || !interest.must_be_fresh() || held.certificate.is_valid_at(now_unix_ms);
        let best = matching.filter(is_wanted).max_by_key(|held| {
            let certificate = &held.certificate;
            let version = certificate.name().last().and_then(|last| last.version());
            (
                certificate.is_valid_at(now_unix_ms),
                held.source.is_lasting(),
                !certificate.names_itself_as_issuer(),
                certificate.validity().not_before_ms,
                version,
                Reverse(held.source),
            )
        });
        best.map(|held| Arc::clone(&held.certificate))
    }

    /// The keys that have certificates here, at most [`Limits::prefixes`], those of the key chain first: the name, the
    /// number of certificates, and the first of their sources.
    pub fn keys(&self) -> Vec<(NameBuf, usize, Source)> {
        let mut keys: Vec<_> = self.keys.iter().collect();
        keys.sort_by_key(|(_, of_key)| of_key.iter().map(|held| held.source).min());
        let described = keys.into_iter().take(self.limits.prefixes).map(|(key, of_key)| {
            let names: std::collections::BTreeSet<_> = of_key.iter().map(|held| held.certificate.name()).collect();
            let source = of_key.iter().map(|held| held.source).min().expect("a key without certificates is not here");
            (key.clone(), names.len(), source)
        });
        described.collect()
    }

    /// Keys beyond [`Limits::prefixes`], whose prefixes are not registered.
    pub fn keys_refused(&self) -> usize {
        self.keys.len().saturating_sub(self.limits.prefixes)
    }

    /// Certificates of all sources.
    pub fn len(&self) -> usize {
        self.shares.values().map(|share| share.names.len()).sum()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes of all certificates.
    pub fn bytes(&self) -> usize {
        self.shares.values().map(|share| share.bytes).sum()
    }
}

/// The names of keys that this name may begin with: it names the key, an issuer of it, or a certificate.
fn keys_in(name: Name<'_>, with_digest: usize) -> impl Iterator<Item = Name<'_>> {
    let end = name.len() - with_digest;
    let start = move |suffix: usize| end.checked_sub(suffix).filter(|&at| name.get(at) == Some(KEY_COMPONENT));
    [4, 3, 2].into_iter().filter_map(start).map(move |at| name.prefix(at + 2))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
