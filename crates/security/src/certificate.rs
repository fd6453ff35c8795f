//! An NDN certificate: a public key as signed Data (packet-format §5.2; NDN Certificate Format version 2).
//!
//! Name `/<identity>/KEY/<key id>/<issuer>/<version>`, ContentType KEY, a FreshnessPeriod above 0, the
//! SubjectPublicKeyInfo as content, and the ValidityPeriod in SignatureInfo; ndn-cxx requires the same. A certificate
//! is at most one packet long ([`MAX_PACKET_BYTES`]).

use crate::{PublicKey, PublicKeyError, ValidityPeriod, ValidityPeriodError, VerifyError};
use namewire_packet::{
    Component, Data, KeyLocator, MAX_PACKET_BYTES, Name, NameBuf, PacketError,
    tlv::{Reader, types},
};
use std::fmt;

/// The component that marks the names of keys and certificates.
pub const KEY_COMPONENT: Component<'static> = Component::generic(b"KEY");
/// ContentType of certificates (packet-format §5).
pub const CONTENT_TYPE_KEY: u64 = 2;
/// Components of a certificate's name after the identity.
const SUFFIX_LENGTH: usize = 4;
/// Components of a key's name after the identity.
const KEY_SUFFIX_LENGTH: usize = 2;

/// Why bytes are not a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Longer than a packet may be.
    #[error("a certificate of {0} bytes is longer than a packet")]
    TooLong(usize),
    /// Not Data.
    #[error("not Data: {0}")]
    NotData(#[from] PacketError),
    /// The name does not end in KEY, key id, issuer and version.
    #[error("the name is not /<identity>/KEY/<key id>/<issuer>/<version>")]
    BadName,
    /// ContentType is not KEY.
    #[error("the content type {0} is not KEY (2)")]
    WrongContentType(u64),
    /// FreshnessPeriod is absent or 0.
    #[error("the freshness period is 0")]
    NoFreshness,
    /// No ValidityPeriod in SignatureInfo.
    #[error("there is no validity period")]
    NoValidityPeriod,
    /// More than one ValidityPeriod in SignatureInfo.
    #[error("there are several validity periods")]
    SeveralValidityPeriods,
    /// A malformed ValidityPeriod.
    #[error("{0}")]
    BadValidityPeriod(#[from] ValidityPeriodError),
}

/// A checked certificate. Holding one proves its form, but not that its signature is right, that it is valid now, or
/// that its content is a supported key.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    wire: Vec<u8>,
    name: NameBuf,
    validity: ValidityPeriod,
}

impl Certificate {
    /// Checks one certificate that fills `wire`, and copies it.
    ///
    /// # Errors
    /// If `wire` is longer than a packet or is not Data, or if its name, ContentType, FreshnessPeriod or ValidityPeriod
    /// is not a certificate's. The signature is not checked.
    pub fn parse(wire: &[u8]) -> Result<Self, CertificateError> {
        if wire.len() > MAX_PACKET_BYTES {
            return Err(CertificateError::TooLong(wire.len()));
        }
        let data = Data::parse(wire)?;
        if !is_certificate_name(data.name()) {
            return Err(CertificateError::BadName);
        }
        if data.content_type() != CONTENT_TYPE_KEY {
            return Err(CertificateError::WrongContentType(data.content_type()));
        }
        if data.freshness_ms() == 0 {
            return Err(CertificateError::NoFreshness);
        }
        let validity = read_validity(data.signature_info_value())?;
        Ok(Certificate { wire: wire.to_vec(), name: data.name().to_buf(), validity })
    }

    /// The packet, which [`Certificate::parse`] has checked.
    pub fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("checked when the certificate was made")
    }

    /// The whole packet.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The certificate's own name.
    pub fn name(&self) -> Name<'_> {
        self.name.as_name()
    }

    /// The name without issuer and version: `/<identity>/KEY/<key id>`.
    pub fn key_name(&self) -> Name<'_> {
        self.name().prefix(self.name.len() - SUFFIX_LENGTH + KEY_SUFFIX_LENGTH)
    }

    /// The owner of the key.
    pub fn identity(&self) -> Name<'_> {
        self.name().prefix(self.name.len() - SUFFIX_LENGTH)
    }

    /// The component that names the issuer; by convention `self` if the key signed its own certificate.
    pub fn issuer_id(&self) -> Component<'_> {
        self.name().get(self.name.len() - 2).expect("checked when the certificate was made")
    }

    /// The SubjectPublicKeyInfo, unparsed.
    pub fn spki(&self) -> &[u8] {
        self.data().content()
    }

    /// Reads the certified key.
    ///
    /// # Errors
    /// If the content is not a key that [`PublicKey::from_spki`] supports.
    pub fn public_key(&self) -> Result<PublicKey, PublicKeyError> {
        PublicKey::from_spki(self.spki())
    }

    /// The period of validity.
    pub const fn validity(&self) -> ValidityPeriod {
        self.validity
    }

    /// True if the certificate is valid at `unix_ms`, in milliseconds since 1970.
    pub const fn is_valid_at(&self, unix_ms: u64) -> bool {
        self.validity.contains(unix_ms)
    }

    /// SignatureType of the issuer's signature.
    pub fn signature_type(&self) -> u64 {
        self.data().signature_info().signature_type()
    }

    /// The location of the issuer's key: the name of a key or of a certificate, or a digest.
    pub fn key_locator(&self) -> Option<KeyLocator<'_>> {
        self.data().signature_info().key_locator()
    }

    /// True if the key locator names this key, this certificate or another certificate of this key.
    pub fn names_itself_as_issuer(&self) -> bool {
        matches!(self.key_locator(), Some(KeyLocator::Name(name)) if self.key_name().is_prefix_of(&name))
    }

    /// The bytes that the issuer signed.
    pub fn signed_portion(&self) -> &[u8] {
        self.data().signed_portion()
    }

    /// The issuer's signature.
    pub fn signature_value(&self) -> &[u8] {
        self.data().signature_value()
    }

    /// Checks the issuer's signature; the caller decides whether it trusts the issuer.
    ///
    /// # Errors
    /// Those of [`PublicKey::verify`]: `issuer` did not make this signature.
    pub fn verify(&self, issuer: &PublicKey) -> Result<(), VerifyError> {
        let data = self.data();
        issuer.verify(data.signature_info().signature_type(), &[data.signed_portion()], data.signature_value())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.name())
    }
}

/// True for `/<identity>/KEY/<key id>/<issuer>/<version>`; the identity may be `/`.
pub fn is_certificate_name(name: Name<'_>) -> bool {
    name.len() >= SUFFIX_LENGTH && name.get(name.len() - SUFFIX_LENGTH) == Some(KEY_COMPONENT)
}

/// True for `/<identity>/KEY/<key id>`; the identity may be `/`.
pub fn is_key_name(name: Name<'_>) -> bool {
    name.len() >= KEY_SUFFIX_LENGTH && name.get(name.len() - KEY_SUFFIX_LENGTH) == Some(KEY_COMPONENT)
}

/// The identity in the name of a certificate or of a key, by the form of the name.
pub fn identity_of(name: Name<'_>) -> Option<Name<'_>> {
    if is_certificate_name(name) {
        Some(name.prefix(name.len() - SUFFIX_LENGTH))
    } else {
        is_key_name(name).then(|| name.prefix(name.len() - KEY_SUFFIX_LENGTH))
    }
}

/// The name of the key in a KeyLocator. The KeyLocator may name a certificate, a key, or a key and its issuer.
pub(crate) fn key_name_in(locator: Name<'_>) -> Option<Name<'_>> {
    let starts = [4, 2, 3].into_iter().filter_map(|suffix| locator.len().checked_sub(suffix));
    let start = starts.into_iter().find(|&at| locator.get(at) == Some(KEY_COMPONENT))?;
    Some(locator.prefix(start + 2))
}

fn read_validity(signature_info: &[u8]) -> Result<ValidityPeriod, CertificateError> {
    let mut reader = Reader::new(signature_info);
    let mut validity = None;
    while let Some(element) = reader.next_element().map_err(PacketError::from)? {
        if element.type_number != types::VALIDITY_PERIOD {
            continue; // AdditionalDescription and future elements
        }
        if validity.replace(ValidityPeriod::parse_value(element.value)?).is_some() {
            return Err(CertificateError::SeveralValidityPeriods);
        }
    }
    validity.ok_or(CertificateError::NoValidityPeriod)
}
