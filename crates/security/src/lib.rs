//! NDN signatures, certificates, trust schemas and key chains: signing and verification. No socket and no clock: the
//! caller passes packets, keys and the time. Only the key chain uses files.
//!
//! Source: packet-format §4.2, §5.1 and §5.2 (NDN packet specification, Signature and Certificate Format version 2),
//! drop-in §3 (storage of keys).
//!
//! The cryptography is `ring`'s. The requirements were RSA PKCS#1 v1.5, ECDSA P-256, Ed25519 and HMAC from one crate; a
//! build with only a C compiler, also for the processors of small routers; and speed (BoringSSL's assembly verifies
//! P-256 signatures). RustCrypto's `rsa` has an open timing advisory (RUSTSEC-2023-0071), and its P-256 is three times
//! slower. aws-lc-rs would do too, but it compiles for minutes, and ring for seconds. The disadvantage of ring: it
//! cannot generate RSA keys, but only use existing ones. RustCrypto's `der` reads ASN.1.

mod additional_description;
pub mod base64_lines;
pub mod certificate;
mod hmac_key;
#[cfg(feature = "key-chain")]
pub mod key_chain;
mod p256_parameters;
mod private_key;
mod public_key;
mod quoted_name;
#[cfg(feature = "safe-bag")]
mod safe_bag;
mod signer;
pub mod trust;
mod validity_period;
mod verify_error;

pub use additional_description::{AdditionalDescription, AdditionalDescriptionError};
pub use certificate::{Certificate, CertificateError};
pub use hmac_key::{HMAC_KEY_BYTES_MAX, HmacKey};
pub use private_key::{PRIVATE_KEY_BYTES_MAX, PrivateKey, PrivateKeyError, SignError};
pub use public_key::{KeyAlgorithm, PublicKey, PublicKeyError, SPKI_BYTES_MAX, verify_digest_sha256};
#[cfg(feature = "safe-bag")]
pub use safe_bag::{ROUNDS_MAX, SAFE_BAG_BYTES_MAX, SafeBag, SafeBagError};
pub use signer::{IssueError, Signer, issue_certificate, issue_described_certificate};
pub use validity_period::{ValidityPeriod, ValidityPeriodError};
pub use verify_error::VerifyError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
