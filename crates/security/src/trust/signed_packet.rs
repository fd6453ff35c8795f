//! A packet's statements about its signer: a command in either format, or Data.
//!
//! Source: management.md §2 (two formats of commands); packet-format.md §4.2, §4.3, §5.1
//! (signed bytes).

use super::denial::Denial;
use crate::{PublicKey, quoted_name::quoted, verify_digest_sha256};
use namewire_packet::{
    Data, Interest, KeyLocator, Name, SignatureInfo,
    signature::signature_type,
    tlv::{self, types},
};

/// A packet and its signature, not verified.
#[derive(Clone, Copy, Debug)]
pub struct SignedPacket<'a> {
    /// The name that rules check: without the digest component (v0.3), or without SignatureInfo and SignatureValue (old
    /// format).
    pub name: Name<'a>,
    /// The name that schemas check: without all components that sign it. It is the same in both formats.
    pub plain_name: Name<'a>,
    info: SignatureInfo<'a>,
    /// When it was signed, milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// Bytes that make it unique.
    pub nonce: Option<&'a [u8]>,
    signed: [&'a [u8]; 2],
    value: &'a [u8],
}

impl<'a> SignedPacket<'a> {
    /// The signature of a signed Interest of packet format v0.3; `None` if a part is missing.
    pub fn of_interest(interest: &Interest<'a>) -> Option<Self> {
        let info = interest.signature_info()?;
        let (components, parameters) = interest.signed_portion()?;
        Some(SignedPacket {
            name: interest.name().parent(),
            plain_name: interest.name().parent(),
            info,
            time_ms: info.time_ms(),
            nonce: info.nonce(),
            signed: [components, parameters],
            value: interest.signature_value()?,
        })
    }

    /// The signature of a command in the old format: the last four components of its name are timestamp, random,
    /// SignatureInfo and SignatureValue. `None` if they are something else.
    pub fn in_name(name: Name<'a>) -> Option<Self> {
        let timestamp: [u8; 8] = name.get(name.len().checked_sub(4)?)?.value.try_into().ok()?;
        let nonce = name.get(name.len() - 3)?.value;
        let time_ms = Some(u64::from_be_bytes(timestamp));
        let plain_name = name.prefix(name.len() - 4);
        Some(SignedPacket { plain_name, time_ms, nonce: Some(nonce), ..Self::in_name_of_any(name)? })
    }

    /// The signature of an Interest in the old format that is no command: the last two components of its name are
    /// SignatureInfo and SignatureValue. `None` if they are something else.
    pub fn in_name_of_any(name: Name<'a>) -> Option<Self> {
        let info = tlv::read_element(name.get(name.len().checked_sub(2)?)?.value).ok()?;
        let value = tlv::read_element(name.get(name.len() - 1)?.value).ok()?;
        if info.type_number != types::SIGNATURE_INFO || value.type_number != types::SIGNATURE_VALUE {
            return None;
        }
        Some(SignedPacket {
            name: name.prefix(name.len() - 2),
            plain_name: name.prefix(name.len() - 2),
            info: SignatureInfo::parse_value(info.value).ok()?,
            time_ms: None,
            nonce: None,
            signed: [name.parent().value(), &[]],
            value: value.value,
        })
    }

    /// The signature of Data.
    pub fn of_data(data: &Data<'a>) -> Self {
        let info = data.signature_info();
        SignedPacket {
            name: data.name(),
            plain_name: data.name(),
            info,
            time_ms: info.time_ms(),
            nonce: info.nonce(),
            signed: [data.signed_portion(), &[]],
            value: data.signature_value(),
        }
    }

    /// The same signature, of a packet that rules see under another name.
    pub const fn with_name(self, name: Name<'a>) -> Self {
        SignedPacket { name, plain_name: name, ..self }
    }

    /// One of [`signature_type`].
    pub fn signature_type(&self) -> u64 {
        self.info.signature_type()
    }

    /// True if it names no signer.
    pub fn is_digest(&self) -> bool {
        self.signature_type() == signature_type::DIGEST_SHA256
    }

    /// The place of the signer's key.
    pub fn key_locator(&self) -> Option<KeyLocator<'a>> {
        self.info.key_locator()
    }

    /// The signer in the form that texts show.
    pub fn signer(&self) -> String {
        match self.key_locator() {
            _ if self.is_digest() => "DigestSha256".to_owned(),
            Some(KeyLocator::Name(name)) => quoted(name),
            Some(KeyLocator::KeyDigest(digest)) => {
                let bytes = digest.iter().take(32).map(|byte| format!("{byte:02x}"));
                format!("with key digest {}", bytes.collect::<String>())
            }
            None => "without KeyLocator".to_owned(),
        }
    }

    /// Verifies a DigestSha256 signature.
    ///
    /// # Errors
    /// If it does not match.
    pub fn verify_digest(&self) -> Result<(), Denial> {
        verify_digest_sha256(self.signature_type(), &self.signed, self.value)
            .map_err(|_| Denial::BadSignature("the DigestSha256 signature does not match".to_owned()))
    }

    /// Verifies a signature by this key.
    ///
    /// # Errors
    /// If this key did not sign the packet.
    pub fn verify(&self, key: &PublicKey) -> Result<(), Denial> {
        key.verify(self.signature_type(), &self.signed, self.value)
            .map_err(|error| Denial::BadSignature(format!("{}: {error}", self.signer())))
    }
}

/// Checks that the digest component is the SHA-256 of the parameters. The signature covers the name only without this
/// component, so without this check the name could be varied.
///
/// # Errors
/// If it is another digest.
pub fn check_parameters_digest(interest: &Interest<'_>) -> Result<(), Denial> {
    if interest.parameters_digest_is_valid() {
        Ok(())
    } else {
        Err(Denial::BadSignature("the parameters digest in the name is wrong".to_owned()))
    }
}
