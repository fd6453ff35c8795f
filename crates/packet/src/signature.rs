//! SignatureInfo of Data and of signed Interests (packet-format §4.2, §5.1).

use crate::{
    PacketError, is_ignorable,
    name::Name,
    tlv::{self, Reader, types},
};

/// Signature types of the packet specification.
pub mod signature_type {
    /// SHA-256 digest: integrity, no authentication.
    pub const DIGEST_SHA256: u64 = 0;
    /// RSA with SHA-256, PKCS#1 v1.5.
    pub const SHA256_RSA: u64 = 1;
    /// ECDSA with SHA-256.
    pub const SHA256_ECDSA: u64 = 3;
    /// HMAC with SHA-256.
    pub const HMAC_SHA256: u64 = 4;
    /// Ed25519.
    pub const ED25519: u64 = 5;
    /// No signature at all.
    pub const NULL: u64 = 200;
}

/// What a KeyLocator holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLocator<'a> {
    /// Name of the key or certificate.
    Name(Name<'a>),
    /// SHA-256 of the public key.
    KeyDigest(&'a [u8]),
}

/// Checked SignatureInfo or InterestSignatureInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    signature_type: u64,
    key_locator: Option<KeyLocator<'a>>,
    nonce: Option<&'a [u8]>,
    time_ms: Option<u64>,
    seq_num: Option<u64>,
}

impl<'a> SignatureInfo<'a> {
    pub(crate) const NULL: Self = SignatureInfo {
        signature_type: signature_type::NULL,
        key_locator: None,
        nonce: None,
        time_ms: None,
        seq_num: None,
    };

    /// Checks the TLV-VALUE of a SignatureInfo.
    ///
    /// Unknown elements are skipped, critical or not: certificates carry ValidityPeriod (253, odd) and extensions here,
    /// and a forwarder must forward them (§5.2).
    ///
    /// # Errors
    /// If the first element is not SignatureType, if the SignatureNonce is empty, if a number or the KeyLocator is
    /// malformed, or if the TLVs are.
    pub fn parse_value(value: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(value);
        let first = reader.next_element()?.ok_or(PacketError::Missing(types::SIGNATURE_TYPE))?;
        if first.type_number != types::SIGNATURE_TYPE {
            return Err(PacketError::Missing(types::SIGNATURE_TYPE));
        }
        let signature_type = tlv::read_nni(first.value)?;
        let mut info = SignatureInfo { signature_type, key_locator: None, nonce: None, time_ms: None, seq_num: None };
        while let Some(element) = reader.next_element()? {
            match element.type_number {
                types::KEY_LOCATOR => info.key_locator = parse_key_locator(element.value)?,
                types::SIGNATURE_NONCE if element.value.is_empty() => {
                    return Err(PacketError::BadValue(types::SIGNATURE_NONCE));
                }
                types::SIGNATURE_NONCE => info.nonce = Some(element.value),
                types::SIGNATURE_TIME => info.time_ms = Some(tlv::read_nni(element.value)?),
                types::SIGNATURE_SEQ_NUM => info.seq_num = Some(tlv::read_nni(element.value)?),
                _ => {}
            }
        }
        Ok(info)
    }

    /// The algorithm, see [`signature_type`].
    pub const fn signature_type(&self) -> u64 {
        self.signature_type
    }

    /// Where the key is found.
    pub const fn key_locator(&self) -> Option<KeyLocator<'a>> {
        self.key_locator
    }

    /// SignatureNonce: bytes, not a number (leading zeros count).
    pub const fn nonce(&self) -> Option<&'a [u8]> {
        self.nonce
    }

    /// SignatureTime, milliseconds since 1970.
    pub const fn time_ms(&self) -> Option<u64> {
        self.time_ms
    }

    /// SignatureSeqNum.
    pub const fn seq_num(&self) -> Option<u64> {
        self.seq_num
    }
}

fn parse_key_locator(value: &[u8]) -> Result<Option<KeyLocator<'_>>, PacketError> {
    let mut reader = Reader::new(value);
    while let Some(element) = reader.next_element()? {
        match element.type_number {
            types::NAME => return Ok(Some(KeyLocator::Name(Name::parse_value(element.value)?))),
            types::KEY_DIGEST => return Ok(Some(KeyLocator::KeyDigest(element.value))),
            other if is_ignorable(other) => {}
            other => return Err(PacketError::UnexpectedCritical(other)),
        }
    }
    Ok(None)
}
