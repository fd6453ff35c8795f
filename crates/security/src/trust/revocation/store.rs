//! Records at hand, and whether they refuse a certificate.

use super::RevocationRecord;
use crate::{
    Certificate,
    quoted_name::quoted,
    trust::{denial::Denial, instant::Instant},
};
use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
};

/// Most records from one file or directory.
pub const MAX_IN_FILES: usize = 4096;
/// Most records kept from the network; beyond that the oldest is dropped, and must be fetched again.
pub const MAX_FETCHED_RECORDS: usize = 1024;
/// Most of them that one key signed.
pub const MAX_OF_SIGNER: usize = 64;

/// Records, by the name of the key that they are about.
type ByKey = HashMap<Box<[u8]>, Vec<RevocationRecord>>;

/// Records at hand.
#[derive(Debug, Default)]
pub struct Revocations {
    /// As the operator's files have them. Their signatures are checked when a certificate is judged, because only then
    /// its issuer is known.
    from_files: HashMap<PathBuf, ByKey>,
    fetched: VecDeque<Proven>,
}

/// A record whose signature was right.
#[derive(Debug)]
struct Proven {
    record: RevocationRecord,
    /// Digest of the key that signed it.
    signer: [u8; 32],
}

impl Revocations {
    /// Replaces the records from a file or directory. Those after [`MAX_IN_FILES`] are left out.
    pub fn set_file(&mut self, path: PathBuf, records: Vec<RevocationRecord>) {
        let mut by_key = ByKey::new();
        for record in records.into_iter().take(MAX_IN_FILES) {
            by_key.entry(record.key_name().value().into()).or_default().push(record);
        }
        self.from_files.insert(path, by_key);
    }

    /// Drops the records of all files and directories but these.
    pub fn retain_files(&mut self, paths: &[PathBuf]) {
        self.from_files.retain(|path, _| paths.contains(path));
    }

    /// Keeps a record from the network if it is about `certificate` and was signed by its key or by the key of its
    /// `issuer`. Returns whether it was.
    pub fn add_fetched(
        &mut self,
        record: RevocationRecord,
        certificate: &Certificate,
        issuer: Option<&Certificate>,
    ) -> bool {
        if !record.is_about(certificate) {
            return false;
        }
        let Some(signer) = record.proven_signer(certificate, issuer) else { return false };
        // One record per certificate and signer, the strictest: the thief of a key cannot soften what its owner said.
        let of_same = |one: &Proven| one.signer == signer && one.record.certificate == record.certificate;
        if self.fetched.iter().any(|one| of_same(one) && one.record.is_as_strict_as(&record)) {
            return true;
        }
        self.fetched.retain(|one| !of_same(one));
        self.make_room(MAX_OF_SIGNER, |one| one.signer == signer);
        self.make_room(MAX_FETCHED_RECORDS, |_| true);
        self.fetched.push_back(Proven { record, signer });
        true
    }

    fn make_room(&mut self, most: usize, is_of_kind: impl Fn(&Proven) -> bool) {
        if self.fetched.iter().filter(|one| is_of_kind(one)).count() >= most {
            let oldest = self.fetched.iter().position(is_of_kind);
            oldest.and_then(|at| self.fetched.remove(at));
        }
    }

    /// Records from the network.
    pub fn fetched_len(&self) -> usize {
        self.fetched.len()
    }

    /// Refuses the certificate of a trust anchor that its own key has revoked.
    ///
    /// # Errors
    /// [`Denial::CertificateRevoked`].
    pub fn check_anchor(&self, certificate: &Certificate, now_unix_ms: u64) -> Result<(), Denial> {
        self.check(certificate, None, Instant::now(now_unix_ms))
    }

    /// Refuses a certificate that was revoked by its key or by `issuer`, the trusted certificate that proves it; an
    /// anchor has none.
    ///
    /// # Errors
    /// [`Denial::CertificateRevoked`].
    pub(crate) fn check(
        &self,
        certificate: &Certificate,
        issuer: Option<&Certificate>,
        at: Instant,
    ) -> Result<(), Denial> {
        let refuses =
            |record: &RevocationRecord| record.refuses(at.signed_ms, at.now_ms) && record.is_about(certificate);
        let key_name = certificate.key_name();
        let in_files = self.from_files.values().filter_map(|of_file| of_file.get(key_name.value())).flatten();
        let mut in_files = in_files.filter(|record| refuses(record));
        let from_file = in_files.find(|record| record.proven_signer(certificate, issuer).is_some());
        let found = from_file.or_else(|| {
            let of_key = self.fetched.iter().filter(|one| one.record.key_name() == key_name);
            let mut refusing = of_key.filter(|one| refuses(&one.record));
            let found = refusing.find(|one| {
                let is_by =
                    |one_key: &Certificate| one_key.public_key().is_ok_and(|key| key.key_digest() == one.signer);
                is_by(certificate) || issuer.is_some_and(is_by)
            });
            found.map(|one| &one.record)
        });
        match found {
            None => Ok(()),
            Some(record) => Err(Denial::CertificateRevoked {
                certificate: quoted(certificate.name()),
                time_ms: record.time_ms(),
                reason: record.reason(),
            }),
        }
    }
}
