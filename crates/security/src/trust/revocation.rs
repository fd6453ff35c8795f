//! Revocation: a certificate that must not count any more, although it has not expired.
//!
//! # The format that exists
//!
//! | source (July to September 2026) | what it publishes |
//! | --- | --- |
//! | `UCLA-IRL/ndnrevoke`, `src/record.cpp` and its wiki page *Data Naming* | the **revocation record** below |
//! | `named-data/ndnd`, `std/security/certificate.go` (pull requests 189, 224) | the same record; the last component of its name is always that of the certificate's issuer |
//! | `named-data/ndnd`, `docs/certlist.md` | CertList: the certificates of a self-signed key, *not* a list of revoked ones |
//! | NDNCERT 0.3, REVOKE step (`named-data/ndncert`) | a request to the CA; it defines no Data that others can read |
//!
//! So this module reads revocation records, and nothing else:
//!
//! ```text
//! certificate  /<identity>/KEY/<key id>/<issuer>/<version>
//! record       /<identity>/REVOKE/<key id>/<issuer>/<version>/<publisher>
//!              <publisher>: "self" if the key's owner revokes, the component <issuer> if the issuer does
//! Content      201 time of the revocation in ms since 1970 · 203 reason · 202 SHA-256 of the certificate's content
//!              205 (optional) signatures made before this time, in ms since 1970, still hold
//! ```
//!
//! # What a record does
//!
//! It counts if the certified key signed it, or the key of the certificate's issuer (the key that the certificate's
//! KeyLocator names, from the same chain that the certificate itself is trusted by). No other key counts, whatever
//! `<publisher>` says. A trust anchor has no issuer here: its own key can revoke it, and the operator by removing it
//! from the settings.
//!
//! | reason | the certificate does not count |
//! | --- | --- |
//! | 1 key compromise, 2 CA compromise | at all, from now on, nor does any other certificate of this key that the signer of the record may revoke. Dates in the record have no effect: the thief of a key chooses the time of its signatures |
//! | others (0 unspecified, 4 superseded, unknown numbers) | for signatures made from the record's time on (field 205, or else 201). A time in the future is an announcement: nothing changes before it |
//!
//! # What it does not do
//!
//! Absence is no error. A network that does not answer, or an attacker who suppresses a record, leaves a certificate as
//! it was; otherwise both could lock everyone out. A forged record is one way to suppress the true one: a Content Store
//! that has it answers with it. An operator who cannot accept this gives the router records in files. A record names
//! one certificate: a renewed certificate of the same key needs another record, unless the reason is a compromise and
//! the record is at hand.
//!
//! Limits: [`RECORD_BYTES_MAX`] per record, so no record has an endless content; [`MAX_IN_FILES`] records from one file
//! or directory; [`MAX_FETCHED_RECORDS`] from the network, [`MAX_OF_SIGNER`] of them by one key. Records from the
//! network are kept only if their signature was right on arrival. No socket and no clock.

mod lookups;
mod store;

pub use super::reason::Reason;
use crate::{
    Certificate, SignError, Signer, base64_lines,
    certificate::{CONTENT_TYPE_KEY, KEY_COMPONENT, is_certificate_name, key_name_in},
};
use namewire_packet::{
    Component, Data, DataBuilder, KeyLocator, Name, NameBuf, PacketError, digest::sha256, tlv, tlv::Reader,
};

pub use lookups::{LOOKUP_INTERVAL_NS, LOOKUPS_PER_SECOND_MAX, Link, Lookup, Lookups, MAX_LOOKUPS, chain};
pub use store::{MAX_FETCHED_RECORDS, MAX_IN_FILES, MAX_OF_SIGNER, Revocations};

/// The component of a record's name in place of `KEY`.
pub const REVOKE_COMPONENT: Component<'static> = Component::generic(b"REVOKE");
/// Longest record: names, keys and signatures of the usual sizes need some 600 bytes.
pub const RECORD_BYTES_MAX: usize = 4096;
/// `<publisher>` of a record that the key's owner makes.
const SELF: Component<'static> = Component::generic(b"self");
/// Components of a record's name after the identity.
const SUFFIX_LENGTH: usize = 5;
/// FreshnessPeriod of records made here: an hour, as of certificates. ndnrevoke and ndnd have a year, and so long
/// caches would keep a record from a stricter one of the same name.
const RECORD_FRESHNESS_MS: u64 = 3600 * 1000;

const TIMESTAMP: u32 = 201;
const KEY_HASH: u32 = 202;
const REASON: u32 = 203;
const NOT_BEFORE: u32 = 205;

/// Why bytes are not a revocation record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Longer than [`RECORD_BYTES_MAX`].
    #[error("a record of {0} bytes is longer than {RECORD_BYTES_MAX}")]
    TooLong(usize),
    /// Not Data.
    #[error("not Data: {0}")]
    NotData(#[from] PacketError),
    /// Another name.
    #[error("the name is not /<identity>/REVOKE/<key id>/<issuer>/<version>/<self or issuer>")]
    BadName,
    /// Time, reason or hash is missing, malformed, or there twice; or there is an unknown critical element.
    #[error("the content is not one time, one reason and one SHA-256 of a key")]
    BadContent,
    /// A text that is not base64.
    #[error("not base64")]
    NotBase64,
}

/// Why no record can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevokeError {
    /// The signer is neither the certificate's key nor its issuer's.
    #[error("only the key of the certificate, or its issuer's key, can revoke it")]
    NotEntitled,
    /// It cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The certificate's name is too long.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A checked record. Holding one proves its form, but not who signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationRecord {
    wire: Vec<u8>,
    certificate: NameBuf,
    time_ms: u64,
    reason: Reason,
    key_hash: [u8; 32],
    not_before_ms: Option<u64>,
}

impl RevocationRecord {
    /// Reads one record that fills `wire`, and copies it.
    ///
    /// # Errors
    /// See [`RecordError`]. The signature is not checked.
    pub fn parse(wire: &[u8]) -> Result<Self, RecordError> {
        if wire.len() > RECORD_BYTES_MAX {
            return Err(RecordError::TooLong(wire.len()));
        }
        let data = Data::parse(wire)?;
        let certificate = certificate_of(data.name()).ok_or(RecordError::BadName)?;
        let content = Content::parse(data.content()).ok_or(RecordError::BadContent)?;
        let Content { time_ms: Some(time_ms), reason: Some(reason), key_hash: Some(key_hash), not_before_ms } = content
        else {
            return Err(RecordError::BadContent);
        };
        Ok(RevocationRecord { wire: wire.to_vec(), certificate, time_ms, reason, key_hash, not_before_ms })
    }

    /// Makes a record that revokes `certificate` as of `time_ms` (milliseconds since 1970). The signer must be the
    /// certificate's own key or its issuer's, by the KeyLocators' names.
    ///
    /// # Errors
    /// See [`RevokeError`].
    pub fn make(signer: &Signer, certificate: &Certificate, reason: Reason, time_ms: u64) -> Result<Self, RevokeError> {
        let key_name = signer.key_locator().and_then(|locator| key_name_in(locator.as_name()));
        let publisher = match key_name {
            Some(key) if key == certificate.key_name() => SELF,
            Some(key) if Some(key) == issuer_key_name(certificate) => certificate.issuer_id(),
            _ => return Err(RevokeError::NotEntitled),
        };
        let mut content = Vec::new();
        tlv::write_nni(&mut content, TIMESTAMP, time_ms);
        tlv::write_nni(&mut content, REASON, reason.0);
        tlv::write_tlv(&mut content, KEY_HASH, &sha256(&[certificate.spki()]));
        let name = record_prefix(certificate.name()).join(publisher);
        let builder = DataBuilder::new(name).content_type(CONTENT_TYPE_KEY).freshness_ms(RECORD_FRESHNESS_MS);
        Ok(Self::parse(&signer.sign_data(&builder.content(&content))?)?)
    }

    /// The whole packet.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The record's own name.
    pub fn name(&self) -> Name<'_> {
        self.data().name()
    }

    /// The name of the revoked certificate.
    pub fn certificate(&self) -> Name<'_> {
        self.certificate.as_name()
    }

    /// The name of the key whose certificate is revoked.
    pub fn key_name(&self) -> Name<'_> {
        self.certificate().prefix(self.certificate.len() - 2)
    }

    /// Why.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// When, in milliseconds since 1970.
    pub const fn time_ms(&self) -> u64 {
        self.time_ms
    }

    fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("checked when the record was made")
    }

    /// True if it is about this certificate: it names the certificate, or its key if that is in other hands; and the
    /// certified key is the same.
    pub fn is_about(&self, certificate: &Certificate) -> bool {
        let is_named = self.certificate() == certificate.name()
            || self.reason.is_compromise() && self.key_name() == certificate.key_name();
        is_named && self.key_hash == sha256(&[certificate.spki()])
    }

    /// True if signatures of this time, or of now if it is `None`, do not count.
    pub fn refuses(&self, signed_ms: Option<u64>, now_ms: u64) -> bool {
        self.first_refused_ms() <= signed_ms.unwrap_or(now_ms)
    }

    /// The time from which signatures do not count.
    fn first_refused_ms(&self) -> u64 {
        if self.reason.is_compromise() { 0 } else { self.not_before_ms.unwrap_or(self.time_ms) }
    }

    /// True if it refuses everything that `other`, about the same certificate, refuses.
    fn is_as_strict_as(&self, other: &Self) -> bool {
        (!self.reason.is_compromise(), self.first_refused_ms())
            <= (!other.reason.is_compromise(), other.first_refused_ms())
    }

    /// The digest of the key that signed the record, if it is that of `certificate` or of its `issuer`.
    pub fn proven_signer(&self, certificate: &Certificate, issuer: Option<&Certificate>) -> Option<[u8; 32]> {
        let data = self.data();
        let info = data.signature_info();
        let Some(KeyLocator::Name(locator)) = info.key_locator() else { return None };
        let key_name = key_name_in(locator)?;
        let entitled = [Some(certificate), issuer.filter(|one| issuer_key_name(certificate) == Some(one.key_name()))];
        entitled.into_iter().flatten().filter(|one| one.key_name() == key_name).find_map(|one| {
            let key = one.public_key().ok()?;
            let signed = [data.signed_portion()];
            key.verify(info.signature_type(), &signed, data.signature_value()).ok()?;
            Some(key.key_digest())
        })
    }
}

/// The records in a file: one or more packets, or these in base64 with any white space.
///
/// # Errors
/// The first error; there is none after [`MAX_IN_FILES`] records.
pub fn records_in(bytes: Vec<u8>) -> Result<Vec<RevocationRecord>, RecordError> {
    let is_packet = bytes.first() == Some(&(tlv::types::DATA as u8)); // no character of base64
    let wire =
        if is_packet { bytes } else { base64_lines::decode(&bytes).map_err(|_| RecordError::NotBase64)?.to_vec() };
    let mut reader = Reader::new(&wire);
    let mut records = Vec::new();
    while let Some(element) = reader.next_element().map_err(PacketError::from)?
        && records.len() < MAX_IN_FILES
    {
        records.push(RevocationRecord::parse(element.wire)?);
    }
    Ok(records)
}

/// The elements of a record's content.
#[derive(Default)]
struct Content {
    time_ms: Option<u64>,
    reason: Option<Reason>,
    key_hash: Option<[u8; 32]>,
    not_before_ms: Option<u64>,
}

impl Content {
    /// `None` if an element is malformed, known and there twice, or unknown and critical.
    fn parse(content: &[u8]) -> Option<Self> {
        let mut read = Content::default();
        let mut reader = Reader::new(content);
        while let Some(element) = reader.next_element().ok()? {
            let number = || tlv::read_nni(element.value).ok();
            let is_again = match element.type_number {
                TIMESTAMP => read.time_ms.replace(number()?).is_some(),
                REASON => read.reason.replace(Reason(number()?)).is_some(),
                KEY_HASH => read.key_hash.replace(element.value.try_into().ok()?).is_some(),
                NOT_BEFORE => read.not_before_ms.replace(number()?).is_some(),
                unknown => unknown % 2 == 1 || unknown <= 31,
            };
            if is_again {
                return None;
            }
        }
        Some(read)
    }
}

/// The name of the key that issued a certificate.
fn issuer_key_name(certificate: &Certificate) -> Option<Name<'_>> {
    match certificate.key_locator() {
        Some(KeyLocator::Name(name)) => key_name_in(name),
        _ => None,
    }
}

/// Records of a certificate have this name and one component more.
pub fn record_prefix(certificate: Name<'_>) -> NameBuf {
    with_component(certificate, certificate.len().saturating_sub(SUFFIX_LENGTH - 1), REVOKE_COMPONENT)
}

/// The name of the certificate that a record of this name is about.
fn certificate_of(record: Name<'_>) -> Option<NameBuf> {
    let identity = record.len().checked_sub(SUFFIX_LENGTH)?;
    if record.get(identity) != Some(REVOKE_COMPONENT) {
        return None;
    }
    let publisher = record.last()?;
    let certificate = with_component(record.parent(), identity, KEY_COMPONENT);
    let is_known = publisher == SELF || Some(publisher) == record.get(record.len() - 3);
    (is_known && is_certificate_name(certificate.as_name())).then_some(certificate)
}

/// The name with another component at this place.
fn with_component(name: Name<'_>, at: usize, component: Component<'_>) -> NameBuf {
    let mut changed = name.prefix(at).to_buf();
    changed.push(component);
    for other in name.components().skip(at + 1) {
        changed.push(other);
    }
    changed
}

#[cfg(test)]
mod tests;
