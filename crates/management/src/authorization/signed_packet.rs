//! A packet's statements about its signer: a command in either format, or Data.
//!
//! Source: management.md §2 (two formats of commands); packet-format.md §4.2, §4.3, §5.1
//! (signed bytes).

use super::denial::{Denial, quoted};
use crate::command::{COMMAND_NAME_LEN, Refusal, malformed};
use namewire_packet::{
    Data, Interest, KeyLocator, Name, SignatureInfo,
    signature::signature_type,
    tlv::{self, types},
};
use namewire_security::{PublicKey, verify_digest_sha256};

/// A packet and its signature, not verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedPacket<'a> {
    /// The name that rules check: without the digest component (v0.3), or without SignatureInfo and SignatureValue (old
    /// format).
    pub(crate) name: Name<'a>,
    info: SignatureInfo<'a>,
    /// When it was signed, milliseconds since 1970.
    pub(crate) time_ms: Option<u64>,
    /// Bytes that make it unique.
    pub(crate) nonce: Option<&'a [u8]>,
    signed: [&'a [u8]; 2],
    value: &'a [u8],
}

impl<'a> SignedPacket<'a> {
    /// The signature of a command. In its name, `parameters` components are between the verb and the parts of the
    /// signature. `None` if it is not signed.
    ///
    /// # Errors
    /// The answer to a command whose name or signature cannot be read.
    pub(crate) fn of_command(interest: &Interest<'a>, parameters: usize) -> Result<Option<Self>, Refusal> {
        let name = interest.name();
        let last_type = name.last().map(|component| component.type_number);
        let extra = name.len().checked_sub(COMMAND_NAME_LEN + parameters);
        match (interest.signature_info(), extra) {
            (Some(info), Some(1)) => Self::in_interest(interest, info)
                .map(Some)
                .ok_or_else(|| malformed("the Interest's signature cannot be read")),
            (None, Some(0)) => Ok(None),
            // ApplicationParameters without a signature add a digest component.
            (None, Some(1)) if last_type == Some(types::PARAMETERS_SHA256_DIGEST) => Ok(None),
            (None, Some(4)) => {
                Self::in_name(name).map(Some).ok_or_else(|| malformed("the signature in the name cannot be read"))
            }
            _ => Err(malformed("unexpected name components")),
        }
    }

    fn in_interest(interest: &Interest<'a>, info: SignatureInfo<'a>) -> Option<Self> {
        let (components, parameters) = interest.signed_portion()?;
        Some(SignedPacket {
            name: interest.name().parent(),
            info,
            time_ms: info.time_ms(),
            nonce: info.nonce(),
            signed: [components, parameters],
            value: interest.signature_value()?,
        })
    }

    /// The old format: the last four components are timestamp, random, SignatureInfo and SignatureValue.
    fn in_name(name: Name<'a>) -> Option<Self> {
        let info = tlv::read_element(name.get(name.len() - 2)?.value).ok()?;
        let value = tlv::read_element(name.get(name.len() - 1)?.value).ok()?;
        if info.type_number != types::SIGNATURE_INFO || value.type_number != types::SIGNATURE_VALUE {
            return None;
        }
        let timestamp: [u8; 8] = name.get(name.len() - 4)?.value.try_into().ok()?;
        Some(SignedPacket {
            name: name.prefix(name.len() - 2),
            info: SignatureInfo::parse_value(info.value).ok()?,
            time_ms: Some(u64::from_be_bytes(timestamp)),
            nonce: Some(name.get(name.len() - 3)?.value),
            signed: [name.parent().value(), &[]],
            value: value.value,
        })
    }

    /// The signature of Data.
    pub(crate) fn of_data(data: &Data<'a>) -> Self {
        let info = data.signature_info();
        SignedPacket {
            name: data.name(),
            info,
            time_ms: info.time_ms(),
            nonce: info.nonce(),
            signed: [data.signed_portion(), &[]],
            value: data.signature_value(),
        }
    }

    /// The same signature, of a packet that rules see under another name.
    pub(crate) const fn with_name(self, name: Name<'a>) -> Self {
        SignedPacket { name, ..self }
    }

    /// One of [`signature_type`].
    pub(crate) fn signature_type(&self) -> u64 {
        self.info.signature_type()
    }

    /// True if it names no signer.
    pub(crate) fn is_digest(&self) -> bool {
        self.signature_type() == signature_type::DIGEST_SHA256
    }

    /// The place of the signer's key.
    pub(crate) fn key_locator(&self) -> Option<KeyLocator<'a>> {
        self.info.key_locator()
    }

    /// The signer in the form that texts show.
    pub(crate) fn signer(&self) -> String {
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
    pub(crate) fn verify_digest(&self) -> Result<(), Denial> {
        verify_digest_sha256(self.signature_type(), &self.signed, self.value)
            .map_err(|_| Denial::BadSignature("the DigestSha256 signature does not match".to_owned()))
    }

    /// Verifies a signature by this key.
    pub(crate) fn verify(&self, key: &PublicKey) -> Result<(), Denial> {
        key.verify(self.signature_type(), &self.signed, self.value)
            .map_err(|error| Denial::BadSignature(format!("{}: {error}", self.signer())))
    }
}

/// Checks that the digest component is the SHA-256 of the parameters. The signature covers the name only without this
/// component, so without this check the name could be varied.
pub(crate) fn check_parameters_digest(interest: &Interest<'_>) -> Result<(), Denial> {
    if interest.parameters_digest_is_valid() {
        Ok(())
    } else {
        Err(Denial::BadSignature("the parameters digest in the name is wrong".to_owned()))
    }
}
