//! A safe bag: a certificate and its private key in one packet, encrypted with a pass phrase, to move a key between
//! machines (`ndnsec export` and `ndnsec import`; ndn-cxx `security/safe-bag.cpp`).
//!
//! The key is an EncryptedPrivateKeyInfo (RFC 5958 §3) by PBES2 (RFC 8018 §6.2). Bags are written with AES-256 and
//! 600,000 rounds of PBKDF2 with HMAC-SHA-256. They are read with any cipher of PBES2, but only with PBKDF2 and at most
//! [`ROUNDS_MAX`] rounds, so that a bag cannot keep a machine busy for minutes. Limit: [`SAFE_BAG_BYTES_MAX`].

use crate::{Certificate, CertificateError, PrivateKey, PrivateKeyError};
use der::Decode;
use namewire_packet::{
    TlvError,
    tlv::{self, Reader, types},
};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, pkcs5::pbes2};

/// Longest bag, in bytes.
pub const SAFE_BAG_BYTES_MAX: usize = 32 * 1024;
/// Most rounds of PBKDF2.
pub const ROUNDS_MAX: u32 = 10_000_000;
const ROUNDS: u32 = 600_000; // OWASP's advice for PBKDF2 with HMAC-SHA-256 since 2023
const SAFE_BAG: u32 = 128;
const ENCRYPTED_KEY: u32 = 129;

/// Why a safe bag cannot be opened or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SafeBagError {
    /// Longer than [`SAFE_BAG_BYTES_MAX`].
    #[error("a safe bag of {0} bytes is too long")]
    TooLong(usize),
    /// The TLV structure is broken.
    #[error("the safe bag is malformed: {0}")]
    Tlv(#[from] TlvError),
    /// Not a certificate and an encrypted key.
    #[error("not a safe bag: not one certificate and one encrypted key")]
    BadElements,
    /// The first element is no certificate.
    #[error("the certificate in the safe bag: {0}")]
    BadCertificate(#[from] CertificateError),
    /// The encryption is not supported.
    #[error(
        "the key in the safe bag is encrypted by something else than PBES2 with PBKDF2 of at most 10,000,000 rounds"
    )]
    UnknownEncryption,
    /// The pass phrase does not open it.
    #[error("the pass phrase does not open the safe bag")]
    WrongPassphrase,
    /// The encrypted key cannot be used.
    #[error("the key in the safe bag: {0}")]
    BadKey(#[from] PrivateKeyError),
    /// The key does not match the certificate.
    #[error("the key in the safe bag does not belong to its certificate")]
    OtherKey,
}

/// An encrypted bag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeBag {
    certificate: Certificate,
    encrypted_key: Vec<u8>,
}

impl SafeBag {
    /// Reads one bag that fills `wire`; the key stays encrypted.
    ///
    /// # Errors
    /// If `wire` is longer than [`SAFE_BAG_BYTES_MAX`], or if it is not one certificate and one encrypted key.
    pub fn parse(wire: &[u8]) -> Result<Self, SafeBagError> {
        if wire.len() > SAFE_BAG_BYTES_MAX {
            return Err(SafeBagError::TooLong(wire.len()));
        }
        let outer = tlv::read_element(wire)?;
        if outer.type_number != SAFE_BAG || outer.wire.len() != wire.len() {
            return Err(SafeBagError::BadElements);
        }
        let mut reader = Reader::new(outer.value);
        let (Some(first), Some(second), None) =
            (reader.next_element()?, reader.next_element()?, reader.next_element()?)
        else {
            return Err(SafeBagError::BadElements);
        };
        if first.type_number != types::DATA || second.type_number != ENCRYPTED_KEY {
            return Err(SafeBagError::BadElements);
        }
        Ok(SafeBag { certificate: Certificate::parse(first.wire)?, encrypted_key: second.value.to_vec() })
    }

    /// Encrypts a key with a pass phrase. Cost: 600,000 hash rounds.
    ///
    /// # Errors
    /// [`SafeBagError::OtherKey`] if `key` is not the certificate's; [`SafeBagError::BadKey`] if the system provides no
    /// random numbers.
    pub fn lock(certificate: Certificate, key: &PrivateKey, passphrase: &[u8]) -> Result<Self, SafeBagError> {
        if certificate.public_key().as_ref() != Ok(key.public_key()) {
            return Err(SafeBagError::OtherKey);
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|_| PrivateKeyError::NoRandomness)?;
        let (salt, iv) = random.split_at(16);
        let iv = iv.try_into().expect("the other half of 32 bytes");
        let encrypted = pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(ROUNDS, salt, iv)
            .map_err(|_| SafeBagError::UnknownEncryption)
            .and_then(|parameters| {
                let pkcs8 = key.to_pkcs8();
                let info = PrivateKeyInfoRef::from_der(&pkcs8).map_err(|_| PrivateKeyError::UnknownForm)?;
                info.encrypt_with_params(parameters, passphrase).map_err(|_| SafeBagError::UnknownEncryption)
            })?;
        Ok(SafeBag { certificate, encrypted_key: encrypted.as_bytes().to_vec() })
    }

    /// The certificate, which is not encrypted.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The whole packet.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nested(&mut out, SAFE_BAG, |out| {
            out.extend_from_slice(self.certificate.wire());
            tlv::write_tlv(out, ENCRYPTED_KEY, &self.encrypted_key);
        });
        out
    }

    /// Decrypts the key. Cost: the bag's number of hash rounds, at most [`ROUNDS_MAX`].
    ///
    /// # Errors
    /// [`SafeBagError::UnknownEncryption`] if it is not PBES2 with PBKDF2, or needs too many rounds;
    /// [`SafeBagError::WrongPassphrase`]; otherwise if the key is unusable or does not match the certificate.
    pub fn open(&self, passphrase: &[u8]) -> Result<PrivateKey, SafeBagError> {
        let info =
            EncryptedPrivateKeyInfoRef::from_der(&self.encrypted_key).map_err(|_| SafeBagError::UnknownEncryption)?;
        let derivation = info.encryption_algorithm.pbes2().and_then(|scheme| scheme.kdf.pbkdf2());
        if derivation.is_none_or(|pbkdf2| pbkdf2.iteration_count > ROUNDS_MAX) {
            return Err(SafeBagError::UnknownEncryption);
        }
        let pkcs8 = info.decrypt(passphrase).map_err(|_| SafeBagError::WrongPassphrase)?;
        let key = PrivateKey::from_der(pkcs8.as_bytes())?;
        if self.certificate.public_key().as_ref() != Ok(key.public_key()) {
            return Err(SafeBagError::OtherKey);
        }
        Ok(key)
    }
}
