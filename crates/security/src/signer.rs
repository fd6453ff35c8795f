//! Signs packets: a signature's KeyLocator and its signed portion (packet-format §4.2, §5.1, §5.2).

use crate::{
    AdditionalDescription, Certificate, HmacKey, PrivateKey, SignError, ValidityPeriod,
    certificate::{CONTENT_TYPE_KEY, CertificateError},
};
use namewire_packet::{
    Component, DataBuilder, InterestBuilder, Name, NameBuf, SignedInterestFields, digest::sha256,
    signature::signature_type,
};
use std::sync::Arc;

/// FreshnessPeriod of the certificates made here, in milliseconds: an hour, as other NDN libraries do.
const CERTIFICATE_FRESHNESS_MS: u64 = 3_600_000;

#[derive(Clone, Debug)]
enum Secret {
    Digest,
    Hmac(HmacKey),
    Key(Arc<PrivateKey>),
}

/// Signs packets with one key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signer {
    secret: Secret,
    key_locator: Option<NameBuf>,
    /// The clock for SignatureTime of Data.
    clock: Option<fn() -> u64>,
}

impl Signer {
    /// DigestSha256: needs no key.
    pub const fn digest() -> Self {
        Signer { secret: Secret::Digest, key_locator: None, clock: None }
    }

    /// HMAC with a shared secret; `key_name` names it.
    pub fn hmac(key: HmacKey, key_name: NameBuf) -> Self {
        Signer { secret: Secret::Hmac(key), key_locator: Some(key_name), clock: None }
    }

    /// A private key; `key_locator` is the name of its certificate, or of the key if it has none.
    pub fn private_key(key: impl Into<Arc<PrivateKey>>, key_locator: NameBuf) -> Self {
        Signer { secret: Secret::Key(key.into()), key_locator: Some(key_locator), clock: None }
    }

    /// The same, and its Data say when they were signed (SignatureTime): then consumers can accept them after the
    /// certificate has expired (`at-signing-time`, [`crate::trust`]). `clock` is in milliseconds since 1970. Data
    /// signed by a digest have no time.
    pub fn with_time(self, clock: fn() -> u64) -> Self {
        Signer { clock: Some(clock), ..self }
    }

    /// SignatureType of its signatures.
    pub fn signature_type(&self) -> u64 {
        match &self.secret {
            Secret::Digest => signature_type::DIGEST_SHA256,
            Secret::Hmac(_) => signature_type::HMAC_SHA256,
            Secret::Key(key) => key.algorithm().signature_type(),
        }
    }

    /// The location of the key for verifiers; none for a digest.
    pub fn key_locator(&self) -> Option<&NameBuf> {
        self.key_locator.as_ref()
    }

    /// Signs the concatenated pieces of `signed`.
    ///
    /// # Errors
    /// Those of [`PrivateKey::sign`]. Digests and HMAC never fail.
    pub fn sign(&self, signed: &[&[u8]]) -> Result<Vec<u8>, SignError> {
        match &self.secret {
            Secret::Digest => Ok(sha256(signed).to_vec()),
            Secret::Hmac(key) => Ok(key.sign(signed).to_vec()),
            Secret::Key(key) => key.sign(signed),
        }
    }

    /// Writes the Data of `builder`, signed.
    ///
    /// # Errors
    /// Those of [`Signer::sign`].
    pub fn sign_data(&self, builder: &DataBuilder<'_>) -> Result<Vec<u8>, SignError> {
        let mut result = Ok(());
        let time_ms = self.clock.filter(|_| !matches!(self.secret, Secret::Digest)).map(|clock| clock());
        let wire = builder.sign_timed_with(self.signature_type(), self.key_locator(), time_ms, |signed| {
            self.sign(&[signed]).unwrap_or_else(|error| {
                result = Err(error);
                Vec::new()
            })
        });
        result.map(|()| wire)
    }

    /// Writes a signed Interest of packet format v0.3; it is a command if `fields` protects it against replay.
    ///
    /// # Errors
    /// Those of [`Signer::sign`].
    pub fn sign_interest(
        &self,
        builder: &InterestBuilder,
        fields: &SignedInterestFields,
    ) -> Result<Vec<u8>, SignError> {
        let mut result = Ok(());
        let wire = builder.sign_with(self.signature_type(), self.key_locator(), fields, |signed| {
            self.sign(signed).unwrap_or_else(|error| {
                result = Err(error);
                Vec::new()
            })
        });
        result.map(|()| wire)
    }
}

/// Why a certificate could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// The signature failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The result is no certificate: the key's name is not `/<identity>/KEY/<key id>`, or it is too long.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Makes the certificate `/<key name>/<issuer id>/<version>` for the key `spki`. It is self-signed if `signer` has the
/// same key; by convention the issuer id is then `self`.
///
/// # Errors
/// [`IssueError::Sign`] if the signature fails; [`IssueError::Certificate`] if `key_name` is not
/// `/<identity>/KEY/<key id>`, or if the certificate is longer than a packet.
pub fn issue_certificate(
    signer: &Signer,
    key_name: Name<'_>,
    spki: &[u8],
    issuer_id: Component<'_>,
    version: u64,
    validity: ValidityPeriod,
) -> Result<Certificate, IssueError> {
    let nothing = AdditionalDescription::default();
    issue_described_certificate(signer, key_name, spki, issuer_id, version, validity, &nothing)
}

/// The same, with what the issuer says about the owner of the key.
///
/// # Errors
/// Those of [`issue_certificate`].
pub fn issue_described_certificate(
    signer: &Signer,
    key_name: Name<'_>,
    spki: &[u8],
    issuer_id: Component<'_>,
    version: u64,
    validity: ValidityPeriod,
    description: &AdditionalDescription,
) -> Result<Certificate, IssueError> {
    let mut name = key_name.to_buf();
    name.push(issuer_id).push_version(version);
    let extension = [validity.to_tlv(), description.to_tlv()].concat();
    let builder = DataBuilder::new(name)
        .content_type(CONTENT_TYPE_KEY)
        .freshness_ms(CERTIFICATE_FRESHNESS_MS)
        .content(spki)
        .signature_info_extension(&extension);
    Ok(Certificate::parse(&signer.sign_data(&builder)?)?)
}
