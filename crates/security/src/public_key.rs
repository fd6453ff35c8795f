//! A public key, and the verification of its signatures (packet-format §5.1; NDN packet specification, Signature: types
//! 1, 3 and 5).
//!
//! Keys are SubjectPublicKeyInfo (RFC 5280 §4.1.2.7), the content of a certificate: ECDSA on P-256 and P-384, RSA of
//! 2048 to 8192 bits, Ed25519. ECDSA is always with SHA-256, whatever the curve, because the SignatureType says so.
//! Limits: [`SPKI_BYTES_MAX`] for a key, 1024 bytes for a signature.

use crate::{VerifyError, p256_parameters};
use der::{
    Decode, Reader, SliceReader,
    asn1::{AnyRef, ObjectIdentifier, UintRef},
};
use namewire_packet::{digest::sha256, signature::signature_type};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use spki::SubjectPublicKeyInfoRef;
use std::{borrow::Cow, fmt, hint::black_box};

/// Longest SubjectPublicKeyInfo, in bytes; RSA of 8192 bits needs 1062.
pub const SPKI_BYTES_MAX: usize = 2048;
/// Longest signature: RSA of [`RSA_BITS_MAX`].
const SIGNATURE_BYTES_MAX: usize = RSA_BITS_MAX / 8;
const RSA_BITS_MIN: usize = 2048;
const RSA_BITS_MAX: usize = 8192;

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The signature algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// ECDSA on the curve P-256.
    EcdsaP256,
    /// ECDSA on the curve P-384; such keys verify here, and do not sign.
    EcdsaP384,
    /// RSA with a modulus of this many bits.
    Rsa {
        /// Length of the modulus.
        bits: u16,
    },
    /// Ed25519.
    Ed25519,
}

impl KeyAlgorithm {
    /// SignatureType of such a key's signatures.
    pub const fn signature_type(self) -> u64 {
        match self {
            KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384 => signature_type::SHA256_ECDSA,
            KeyAlgorithm::Rsa { .. } => signature_type::SHA256_RSA,
            KeyAlgorithm::Ed25519 => signature_type::ED25519,
        }
    }

    fn verifier(self) -> &'static dyn VerificationAlgorithm {
        match self {
            KeyAlgorithm::EcdsaP256 => &signature::ECDSA_P256_SHA256_ASN1,
            KeyAlgorithm::EcdsaP384 => &signature::ECDSA_P384_SHA256_ASN1,
            KeyAlgorithm::Rsa { .. } => &signature::RSA_PKCS1_2048_8192_SHA256,
            KeyAlgorithm::Ed25519 => &signature::ED25519,
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyAlgorithm::EcdsaP256 => f.write_str("ECDSA P-256"),
            KeyAlgorithm::EcdsaP384 => f.write_str("ECDSA P-384"),
            KeyAlgorithm::Rsa { bits } => write!(f, "RSA {bits}"),
            KeyAlgorithm::Ed25519 => f.write_str("Ed25519"),
        }
    }
}

/// Why bytes are not a usable public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Longer than [`SPKI_BYTES_MAX`].
    #[error("a public key of {0} bytes is too long")]
    TooLong(usize),
    /// Not the DER of a SubjectPublicKeyInfo.
    #[error("not the DER of a SubjectPublicKeyInfo")]
    NotSpki,
    /// An algorithm other than ECDSA, RSA and Ed25519.
    #[error("unknown key algorithm {0}")]
    UnknownAlgorithm(ObjectIdentifier),
    /// A curve other than P-256 and P-384.
    #[error("the curve is neither P-256 nor P-384")]
    UnsupportedCurve,
    /// The key is not a point in uncompressed form.
    #[error("the key is not an uncompressed point of its curve")]
    BadPoint,
    /// Not an RSAPublicKey, or a public exponent that is even, 1, or above 2^33-1.
    #[error("the RSA key is malformed")]
    BadRsaKey,
    /// An RSA modulus that is too short for security, or too long.
    #[error("an RSA key of {0} bits is not between 2048 and 8192")]
    RsaSize(usize),
    /// An Ed25519 key with parameters, or without exactly 32 bytes.
    #[error("the Ed25519 key is malformed")]
    BadEd25519Key,
}

/// A public key. Holding one proves its form; verification finds out, and refuses, a point that is not on the curve.
/// Keys are equal if they verify the same signatures, however their curve is encoded.
#[derive(Clone)]
pub struct PublicKey {
    algorithm: KeyAlgorithm,
    /// Offset in `spki` of the bytes that `ring` reads.
    key_at: usize,
    spki: Vec<u8>,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && self.spki[self.key_at..] == other.spki[other.key_at..]
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.algorithm)
    }
}

impl PublicKey {
    /// Checks one SubjectPublicKeyInfo that fills `der`, and copies it.
    ///
    /// # Errors
    /// If `der` is longer than [`SPKI_BYTES_MAX`] or malformed, or if algorithm, curve or length of the key is
    /// unsupported.
    pub fn from_spki(der: &[u8]) -> Result<Self, PublicKeyError> {
        if der.len() > SPKI_BYTES_MAX {
            return Err(PublicKeyError::TooLong(der.len()));
        }
        let spki = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| PublicKeyError::NotSpki)?;
        let key = spki.subject_public_key.as_bytes().ok_or(PublicKeyError::NotSpki)?;
        let parameters = spki.algorithm.parameters;
        let algorithm = match spki.algorithm.oid {
            EC_PUBLIC_KEY => ecdsa_algorithm(key, parameters)?,
            RSA_ENCRYPTION => rsa_algorithm(key)?,
            ED25519 if key.len() == 32 && parameters.is_none() => KeyAlgorithm::Ed25519,
            ED25519 => return Err(PublicKeyError::BadEd25519Key),
            other => return Err(PublicKeyError::UnknownAlgorithm(other)),
        };
        // The bit string is the last element, so its bytes end `der`.
        Ok(PublicKey { algorithm, key_at: der.len() - key.len(), spki: der.to_vec() })
    }

    /// The algorithm of its signatures.
    pub const fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The SubjectPublicKeyInfo as it was read.
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// SHA-256 of the SubjectPublicKeyInfo: the KeyDigest of a KeyLocator (packet-format §5.1).
    pub fn key_digest(&self) -> [u8; 32] {
        sha256(&[&self.spki])
    }

    /// Checks a signature over the concatenated pieces of `signed`. The packet's signature type must be the key's,
    /// because the sender must not choose the use of a key.
    ///
    /// Cost: one signature check, and a copy of the bytes if they are in several pieces.
    ///
    /// # Errors
    /// [`VerifyError::WrongSignatureType`] if the key makes no signatures of type `signed_type`;
    /// [`VerifyError::BadSignatureLength`] if the signature is empty or longer than 1024 bytes;
    /// [`VerifyError::Mismatch`] if it is wrong.
    pub fn verify(&self, signed_type: u64, signed: &[&[u8]], signature: &[u8]) -> Result<(), VerifyError> {
        if signed_type != self.algorithm.signature_type() {
            return Err(VerifyError::WrongSignatureType { signature_type: signed_type, algorithm: self.algorithm });
        }
        if signature.is_empty() || signature.len() > SIGNATURE_BYTES_MAX {
            return Err(VerifyError::BadSignatureLength(signature.len()));
        }
        let message = match signed {
            [one] => Cow::Borrowed(*one),
            several => Cow::Owned(several.concat()),
        };
        UnparsedPublicKey::new(self.algorithm.verifier(), &self.spki[self.key_at..])
            .verify(&message, signature)
            .map_err(|_| VerifyError::Mismatch)
    }
}

/// Checks that a key is an uncompressed point of a curve that `ring` knows.
fn ecdsa_algorithm(key: &[u8], parameters: Option<AnyRef<'_>>) -> Result<KeyAlgorithm, PublicKeyError> {
    let (algorithm, coordinate_bytes) = match parameters {
        Some(curve) if p256_parameters::are_p256(curve) => (KeyAlgorithm::EcdsaP256, 32),
        Some(curve) if is_p384(curve) => (KeyAlgorithm::EcdsaP384, 48),
        _ => return Err(PublicKeyError::UnsupportedCurve),
    };
    if key.len() != 1 + 2 * coordinate_bytes || key[0] != 4 {
        return Err(PublicKeyError::BadPoint);
    }
    Ok(algorithm)
}

/// True for the name of P-384. A curve that is written out in full must be P-256.
pub(crate) fn is_p384(parameters: AnyRef<'_>) -> bool {
    parameters.decode_as::<ObjectIdentifier>() == Ok(P384)
}

/// Checks that an RSAPublicKey (RFC 8017 §A.1.1) is one that `ring` accepts.
fn rsa_algorithm(key: &[u8]) -> Result<KeyAlgorithm, PublicKeyError> {
    let numbers = |reader: &mut SliceReader<'_>| {
        let modulus = reader.decode::<UintRef<'_>>()?;
        let bits = modulus.as_bytes().len() * 8 - modulus.as_bytes().first().map_or(0, |o| o.leading_zeros() as usize);
        let exponent = reader.decode::<u64>()?;
        Ok::<_, der::Error>((bits, exponent))
    };
    let mut reader = SliceReader::new(key).map_err(|_| PublicKeyError::BadRsaKey)?;
    let (bits, exponent) = reader.sequence(numbers).map_err(|_| PublicKeyError::BadRsaKey)?;
    reader.finish().map_err(|_| PublicKeyError::BadRsaKey)?;
    if !(3..1 << 33).contains(&exponent) || exponent.is_multiple_of(2) {
        return Err(PublicKeyError::BadRsaKey);
    }
    match bits {
        RSA_BITS_MIN..=RSA_BITS_MAX => Ok(KeyAlgorithm::Rsa { bits: bits as u16 }),
        _ => Err(PublicKeyError::RsaSize(bits)),
    }
}

/// Checks a DigestSha256 (signature type 0) over the concatenated pieces of `signed`. It detects accidental changes,
/// but authenticates no sender. The time does not depend on how much of the digest is right.
///
/// # Errors
/// [`VerifyError::OtherSignatureType`] if `signed_type` is not 0; [`VerifyError::Mismatch`] if the digest is wrong.
pub fn verify_digest_sha256(signed_type: u64, signed: &[&[u8]], signature: &[u8]) -> Result<(), VerifyError> {
    if signed_type != signature_type::DIGEST_SHA256 {
        return Err(VerifyError::OtherSignatureType(signed_type));
    }
    if is_same(signature, &sha256(signed)) { Ok(()) } else { Err(VerifyError::Mismatch) }
}

/// Compares all bytes, wherever they differ first.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (one, other)| black_box(sum | (one ^ other)));
    one.len() == other.len() && difference == 0
}
