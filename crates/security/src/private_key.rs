//! A private key: generated here, or read from other tools' DER.
//!
//! Reads PKCS#8 (RFC 5958), SEC 1 ECPrivateKey (RFC 5915; the form of ndn-cxx and python-ndn for ECDSA) and PKCS#1
//! RSAPrivateKey (RFC 8017). Writes SEC 1, PKCS#1, and PKCS#8 for Ed25519: OpenSSL's traditional forms, because ndn-cxx
//! reads its key files with OpenSSL. Limit: [`PRIVATE_KEY_BYTES_MAX`].
//!
//! `ring` does not compute a public key from an ECDSA key alone, so an ECDSA key without its public key is refused. All
//! tools above write the public key.

use crate::{KeyAlgorithm, PublicKey, PublicKeyError, p256_parameters, public_key::is_p384};
use der::{
    Decode, Encode, Reader, SliceReader, TagNumber,
    asn1::{AnyRef, BitStringRef, ContextSpecific, ObjectIdentifier, OctetStringRef, UintRef},
};
use pkcs8::PrivateKeyInfoRef;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use std::fmt;
use zeroize::Zeroizing;

/// Longest private key, in bytes; PKCS#8 of RSA with 4096 bits needs 2375.
pub const PRIVATE_KEY_BYTES_MAX: usize = 8192;

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Why bytes are not a usable private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateKeyError {
    /// Longer than [`PRIVATE_KEY_BYTES_MAX`].
    #[error("a private key of {0} bytes is too long")]
    TooLong(usize),
    /// Neither PKCS#8 nor SEC 1 nor PKCS#1.
    #[error("not the DER of a private key (PKCS#8, SEC 1 or PKCS#1)")]
    UnknownForm,
    /// An algorithm other than ECDSA, RSA and Ed25519.
    #[error("unknown key algorithm {0}")]
    UnknownAlgorithm(ObjectIdentifier),
    /// A curve other than P-256.
    #[error("the curve is not P-256")]
    UnsupportedCurve,
    /// The curve P-384: `ring` signs on it only with SHA-384, and NDN has no SignatureType for that.
    #[error("keys on P-384 verify signatures here, and do not sign")]
    VerifiesOnly,
    /// An ECDSA key without its public key.
    #[error("the ECDSA key comes without its public key")]
    NoPublicKey,
    /// Inconsistent numbers: out of range, or private and public half do not match.
    #[error("the numbers of the private key are wrong")]
    Inconsistent,
    /// The public half cannot be used.
    #[error("{0}")]
    BadPublicKey(#[from] PublicKeyError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

/// Signing failed: the system provided no random numbers, or an RSA key is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("signing failed")]
pub struct SignError;

enum Pair {
    EcdsaP256(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// A private key with matching halves. Its debug output hides the secret half.
pub struct PrivateKey {
    pair: Pair,
    public: PublicKey,
    /// The traditional form.
    der: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public.algorithm())
    }
}

impl PrivateKey {
    /// Generates an ECDSA key on P-256, NDN's default.
    ///
    /// # Errors
    /// [`PrivateKeyError::NoRandomness`] if the system provides no random numbers.
    pub fn generate_ecdsa() -> Result<Self, PrivateKeyError> {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        Self::from_der(pkcs8.map_err(|_| PrivateKeyError::NoRandomness)?.as_ref())
    }

    /// Generates an Ed25519 key.
    ///
    /// # Errors
    /// [`PrivateKeyError::NoRandomness`] if the system provides no random numbers.
    pub fn generate_ed25519() -> Result<Self, PrivateKeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|_| PrivateKeyError::NoRandomness)?;
        Self::ed25519(&*seed)
    }

    /// Reads a key from its DER: PKCS#8, SEC 1 ECPrivateKey or PKCS#1 RSAPrivateKey.
    ///
    /// # Errors
    /// If `der` is too long or has none of these forms, if algorithm, curve or length of the key is unsupported, or if
    /// its numbers do not fit together. [`PrivateKeyError::NoPublicKey`] for an ECDSA key without its public key.
    pub fn from_der(der: &[u8]) -> Result<Self, PrivateKeyError> {
        if der.len() > PRIVATE_KEY_BYTES_MAX {
            return Err(PrivateKeyError::TooLong(der.len()));
        }
        if let Ok(info) = PrivateKeyInfoRef::from_der(der) {
            return match info.algorithm.oid {
                EC_PUBLIC_KEY => {
                    let public_key = info.public_key.and_then(|bits| bits.as_bytes());
                    Self::ecdsa(info.private_key.as_bytes(), info.algorithm.parameters, public_key)
                }
                RSA_ENCRYPTION => Self::rsa(info.private_key.as_bytes()),
                ED25519 => {
                    let seed = <&OctetStringRef>::from_der(info.private_key.as_bytes());
                    Self::ed25519(seed.map_err(|_| PrivateKeyError::UnknownForm)?.as_bytes())
                }
                other => Err(PrivateKeyError::UnknownAlgorithm(other)),
            };
        }
        // Version 1 is an ECPrivateKey; version 0 followed by a number is an RSAPrivateKey.
        match SliceReader::new(der).and_then(|mut reader| reader.sequence(|inner| version_of(inner))) {
            Ok(0) => Self::rsa(der),
            Ok(1) => Self::ecdsa(der, None, None),
            _ => Err(PrivateKeyError::UnknownForm),
        }
    }

    /// From an ECPrivateKey; its container may give curve and public key instead.
    fn ecdsa(
        ec_private_key: &[u8],
        parameters: Option<AnyRef<'_>>,
        public_key: Option<&[u8]>,
    ) -> Result<Self, PrivateKeyError> {
        let inner = EcPrivateKey::parse(ec_private_key).map_err(|_| PrivateKeyError::UnknownForm)?;
        let parameters = parameters.or(inner.parameters).ok_or(PrivateKeyError::UnsupportedCurve)?;
        if !p256_parameters::are_p256(parameters) {
            let is_p384 = is_p384(parameters);
            return Err(if is_p384 { PrivateKeyError::VerifiesOnly } else { PrivateKeyError::UnsupportedCurve });
        }
        let point = inner.public_key.or(public_key).ok_or(PrivateKeyError::NoPublicKey)?;
        // Old tools drop leading zeros of the secret number, against RFC 5915 §3.
        let mut secret = Zeroizing::new([0; 32]);
        let from = 32_usize.checked_sub(inner.secret.len()).ok_or(PrivateKeyError::Inconsistent)?;
        secret[from..].copy_from_slice(inner.secret);
        let random = SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_ASN1_SIGNING, &*secret, point, &random)
                .map_err(|_| PrivateKeyError::Inconsistent)?;
        let public = public_key_of(EC_PUBLIC_KEY, Some(AnyRef::from(&P256)), point)?;
        let der = Zeroizing::new([SEC1_BEFORE_SECRET, &secret[..], SEC1_BEFORE_POINT, point].concat());
        Ok(PrivateKey { pair: Pair::EcdsaP256(pair), public, der })
    }

    fn rsa(pkcs1: &[u8]) -> Result<Self, PrivateKeyError> {
        let pair = RsaKeyPair::from_der(pkcs1).map_err(|_| PrivateKeyError::Inconsistent)?;
        let public = public_key_of(RSA_ENCRYPTION, Some(AnyRef::NULL), pair.public().as_ref())?;
        Ok(PrivateKey { pair: Pair::Rsa(Box::new(pair)), public, der: Zeroizing::new(pkcs1.to_vec()) })
    }

    fn ed25519(seed: &[u8]) -> Result<Self, PrivateKeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| PrivateKeyError::Inconsistent)?;
        let public = public_key_of(ED25519, None, pair.public_key().as_ref())?;
        let der = Zeroizing::new([PKCS8_BEFORE_ED25519_SEED, seed].concat());
        Ok(PrivateKey { pair: Pair::Ed25519(pair), public, der })
    }

    /// The public half.
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// The algorithm of its signatures.
    pub const fn algorithm(&self) -> KeyAlgorithm {
        self.public.algorithm()
    }

    /// The traditional form: SEC 1, PKCS#1, or PKCS#8 for Ed25519.
    pub fn to_traditional_der(&self) -> Zeroizing<Vec<u8>> {
        self.der.clone()
    }

    /// PKCS#8, unencrypted.
    pub fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let (oid, parameters) = match &self.pair {
            Pair::Ed25519(_) => return self.der.clone(),
            Pair::EcdsaP256(_) => (EC_PUBLIC_KEY, AnyRef::from(&P256)),
            Pair::Rsa(_) => (RSA_ENCRYPTION, AnyRef::NULL),
        };
        let algorithm = AlgorithmIdentifierRef { oid, parameters: Some(parameters) };
        let key = OctetStringRef::new(&self.der).expect("shorter than any limit of DER");
        Zeroizing::new(PrivateKeyInfoRef::new(algorithm, key).to_der().expect("all its parts have been read from DER"))
    }

    /// Signs the concatenated pieces of `signed`. Cost: one signature, and a copy of the bytes.
    ///
    /// # Errors
    /// If the system provides no random numbers, or if an RSA key is broken.
    pub fn sign(&self, signed: &[&[u8]]) -> Result<Vec<u8>, SignError> {
        let message = signed.concat();
        match &self.pair {
            Pair::EcdsaP256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), &message).map_err(|_| SignError)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &message, &mut signature).map_err(|_| SignError)?;
                Ok(signature)
            }
            Pair::Ed25519(pair) => Ok(pair.sign(&message).as_ref().to_vec()),
        }
    }
}

/// ECPrivateKey { version 1, the secret of 32 bytes …
const SEC1_BEFORE_SECRET: &[u8] = &[0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
/// … [0] the curve P-256, [1] BIT STRING of the public point }.
const SEC1_BEFORE_POINT: &[u8] =
    &[0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0xA1, 0x44, 0x03, 0x42, 0x00];
/// PrivateKeyInfo { version 0, Ed25519, the seed of 32 bytes } (RFC 8410 §7).
const PKCS8_BEFORE_ED25519_SEED: &[u8] =
    &[0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

fn public_key_of(
    oid: ObjectIdentifier,
    parameters: Option<AnyRef<'_>>,
    key: &[u8],
) -> Result<PublicKey, PrivateKeyError> {
    let spki = SubjectPublicKeyInfoRef {
        algorithm: AlgorithmIdentifierRef { oid, parameters },
        subject_public_key: BitStringRef::from_bytes(key).map_err(|_| PrivateKeyError::Inconsistent)?,
    };
    Ok(PublicKey::from_spki(&spki.to_der().map_err(|_| PrivateKeyError::Inconsistent)?)?)
}

/// The version; the rest is read and ignored.
fn version_of<'a>(inner: &mut SliceReader<'a>) -> Result<u8, der::Error> {
    let version = inner.decode::<u8>()?;
    match version {
        0 => drop(inner.decode::<UintRef<'a>>()?),
        _ => drop(inner.decode::<&OctetStringRef>()?),
    }
    while !inner.is_finished() {
        inner.decode::<AnyRef<'a>>()?;
    }
    Ok(version)
}

/// RFC 5915 §3.
struct EcPrivateKey<'a> {
    secret: &'a [u8],
    parameters: Option<AnyRef<'a>>,
    public_key: Option<&'a [u8]>,
}

impl<'a> EcPrivateKey<'a> {
    fn parse(der: &'a [u8]) -> Result<Self, der::Error> {
        let mut reader = SliceReader::new(der)?;
        let key = reader.sequence(|inner| {
            let version = inner.decode::<u8>()?;
            if version != 1 {
                return Err(der::ErrorKind::Failed.into());
            }
            let secret = inner.decode::<&OctetStringRef>()?.as_bytes();
            let parameters = ContextSpecific::<AnyRef<'a>>::decode_explicit(inner, TagNumber(0))?;
            let public_key = ContextSpecific::<BitStringRef<'a>>::decode_explicit(inner, TagNumber(1))?;
            let public_key = public_key.and_then(|tagged| tagged.value.as_bytes());
            Ok::<_, der::Error>(EcPrivateKey { secret, parameters: parameters.map(|tagged| tagged.value), public_key })
        })?;
        reader.finish()?;
        Ok(key)
    }
}
